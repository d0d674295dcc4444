"""The cost of `import tinyexplore`, the modules that it loads, and the package without its optional dependencies."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tinyexplore
from tests.support.patience import seconds

IMPORT_BUDGET_MS = 100
NOISE_FACTOR = 3  # this runs beside other work on small machines
HEAVY = ("numpy", "llvmlite", "IPython", "ipywidgets", "anywidget", "jupyterlab", "networkx", "graphviz", "sklearn")
PUBLIC_NAMES = ("Context", "Device", "Tensor", "capture", "dtypes", "explore", "nn")


def run_python(program: str, *arguments: str) -> str:
    """The output of `program` in a new interpreter; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=seconds(300),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_helpers_exports_the_objects_of_the_package() -> None:
    from tinyexplore import helpers

    for name in set(helpers.__all__) & set(tinyexplore.__all__):
        assert getattr(helpers, name) is getattr(tinyexplore, name)


def test_editors_know_every_function_of_explore() -> None:
    """The type of `explore` for type checkers lists the functions that the package imports on first use."""
    from tinyexplore import explore
    from tinyexplore.explore.package_type import ExplorePackage

    functions = {name for name in vars(explore)["__all__"] if name[0].islower() and name != "explore"}
    assert functions == {name for name in vars(ExplorePackage) if not name.startswith("_")}
    for name in functions:
        assert getattr(explore, name) is getattr(ExplorePackage, name)


def test_importing_the_package_is_cheap() -> None:
    timed_import = """
        import time
        began = time.process_time()  # of the processor: other programs may keep it busy
        import tinyexplore
        print((time.process_time() - began) * 1e3)
    """
    best_ms = min(float(run_python(timed_import)) for _ in range(5))
    assert best_ms <= IMPORT_BUDGET_MS * NOISE_FACTOR


@pytest.mark.parametrize("statement", ["import tinyexplore", "from tinyexplore import Tensor, Device, dtypes, nn"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    loaded = run_python(f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))")
    assert set(HEAVY) & set(json.loads(loaded)) == set()


def test_computing_on_the_default_device_loads_no_user_interface() -> None:
    program = """
        from tinyexplore import Tensor
        import sys, json
        assert (Tensor([1, 2, 3]) * 2).tolist() == [2, 4, 6]
        print(json.dumps(sorted(sys.modules)))
    """
    interface = {"IPython", "ipywidgets", "anywidget", "jupyterlab", "networkx", "graphviz"}
    assert interface & set(json.loads(run_python(program))) == set()


def test_a_device_opens_when_values_are_realized_there_and_not_before() -> None:
    """Lazy graphs cost no compiler; the first kernel after that imports nothing, and the threads' code is made."""
    program = """
        import json, sys
        import numpy
        from tinyexplore import Context, Tensor
        loaded = lambda: {name for name in sys.modules if name.startswith(("tinyexplore", "llvmlite"))}
        with Context(DEVICE="LLVM", THREADS=2):
            x = Tensor(numpy.ones((4, 8), dtype=numpy.float32))
            y = (x @ x.T).softmax() + 1
            lazily = "llvmlite" in sys.modules
            x.realize()
            ready = loaded()
            from tinyexplore.runtime.pool import _pools
            pools = len(_pools.pools)
            y.realize()
            print(json.dumps([lazily, "llvmlite" in ready, pools, sorted(loaded() - ready)]))
    """
    assert json.loads(run_python(program)) == [False, True, 1, []]


def test_a_saved_trace_opens_without_the_engine_and_the_widgets(tmp_path: Path) -> None:
    """In a new process: load, query, tables, the timeline, replay and pictures; then no module of either is loaded."""
    from tinyexplore import Context, Tensor, explore

    path = tmp_path / "saved.json.gz"
    with Context(DEVICE="PYTHON"):
        explore(lambda: (Tensor.ones(4, 4).contiguous() @ Tensor.ones(4, 4).contiguous()).relu()).trace.save(path)
    program = f"""
        import json, sys
        from tinyexplore.explore.tracefile.codec import trace_to_bytes
        from tinyexplore.explore.tracefile.trace import Trace, trace_from_bytes
        from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg, pipeline_svg
        from tinyexplore.explore.tracefile.replay import StageReplay
        trace = Trace.load({str(path)!r})
        assert trace == trace_from_bytes(trace_to_bytes(trace))
        stage = next(stage.id for stage in trace.stages if stage.steps)
        assert trace.where(op="ADD") and trace.modules() and trace.timeline().spans
        assert StageReplay(trace, stage).graph_at(0)
        assert "<svg" in pipeline_svg(trace) and "<svg" in graph_svg(trace, stage)
        print(json.dumps(sorted(sys.modules)))
    """
    loaded = {name for name in json.loads(run_python(program)) if name.startswith("tinyexplore.")}
    # the package root itself imports `aliases`, and `trace` to find the recorder
    assert {name.split(".")[1] for name in loaded} == {"aliases", "explore", "trace", "util"}
    assert {name.split(".")[2] for name in loaded if name.startswith("tinyexplore.explore.")} == {"tracefile"}


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_the_public_package_has(name: str) -> None:
    import tinyexplore

    assert getattr(tinyexplore, name) is not None
    assert name in dir(tinyexplore)


def test_an_unknown_name_is_an_attribute_error() -> None:
    import tinyexplore

    with pytest.raises(AttributeError, match="no_such_name"):
        tinyexplore.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    "before",
    [
        "",
        "from tinyexplore import Explorer",
        "import tinyexplore.explore.tracefile.model",
        "from tinyexplore.explore.tracefile import queries",
    ],
)
def test_explore_is_callable_after_any_import(before: str) -> None:
    """The subpackage has the same name, and the import system may put it in the function's place."""
    program = f"{before}\nfrom tinyexplore import Context, Tensor, explore\n"
    program += "with Context(DEVICE='PYTHON'): print(explore(Tensor([1, 2]) + 1).trace.version)"
    assert int(run_python(program)) > 0


WITHOUT = """
    import sys

    class Missing:
        '''Makes the named packages look as if they were not installed.'''

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in sys.argv[1:]:
                raise ImportError(f"{name} is not installed here")

    sys.meta_path.insert(0, Missing())
"""


def test_the_python_device_works_without_numpy_and_llvmlite() -> None:
    program = """
        from tinyexplore import Context, Tensor

        with Context(DEVICE="PYTHON"):
            assert (Tensor([1, 2, 3]) + 1).tolist() == [2, 3, 4]
            x = Tensor([[1.0, 2.0], [3.0, 4.0]])
            w = Tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
            assert (x @ w).tolist() == [[1.0, 3.0], [2.5, 5.0]]
            (x @ w).relu().sum().backward()
            assert w.grad.tolist() == [[4.0, 4.0], [6.0, 6.0]]
        print("done")
    """
    program = textwrap.dedent(WITHOUT) + textwrap.dedent(program)
    assert run_python(program, "numpy", "llvmlite") == "done\n"


def test_a_missing_llvmlite_is_explained() -> None:
    program = """
        from tinyexplore import Tensor
        try:
            (Tensor([1, 2, 3], device="LLVM") + 1).tolist()
        except Exception as error:
            print(error)
    """
    program = textwrap.dedent(WITHOUT) + textwrap.dedent(program)
    message = run_python(program, "llvmlite")
    assert "llvmlite" in message and "PYTHON" in message, "say what is missing and which device does without it"


def test_only_the_configuration_reads_the_environment(repository: Path) -> None:
    readers = [
        path.relative_to(repository).as_posix()
        for path in sorted((repository / "tinyexplore").rglob("*.py"))
        if "os.environ" in path.read_text() or "os.getenv" in path.read_text()
    ]
    assert readers == ["tinyexplore/util/config.py"]
