"""Pages with engine, without a browser: their contents, the source of their Python, and that their worker responds like
a notebook's kernel."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyexplore import Device, Tensor, Variable, explore
from tinyexplore.devices import register_devices
from tinyexplore.dtype import dtypes
from tinyexplore.explore import Explorer, Trace
from tinyexplore.explore.analysis.models.kernel_analyses import StoredResults
from tinyexplore.explore.exports.engine_pages import precompilation as precompiled_module
from tinyexplore.explore.exports.engine_pages import pyodide
from tinyexplore.explore.exports.engine_pages.bytecode import add_bytecode, to_bytecode
from tinyexplore.explore.exports.engine_pages.graphs import graph_from_data, graph_to_data, is_plain
from tinyexplore.explore.exports.engine_pages.packing import PACKAGE, UNUSED_MODULES, packed_engine, slim_stdlib
from tinyexplore.explore.exports.engine_pages.page_data import (
    PageData,
    collect_page_data,
    target_from_data,
    target_to_data,
)
from tinyexplore.explore.exports.engine_pages.precompilation import with_first_bytecode
from tinyexplore.explore.exports.engine_pages.pyodide import PYODIDE_VERSION, PyodideMissing, find_pyodide
from tinyexplore.explore.live.page_server import PageServer
from tinyexplore.explore.notebook.requests import RequestHandler
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.whatif.editing.output_comparison import compare_outputs, compare_without_numpy
from tinyexplore.util import Context, private_folder


@pytest.fixture(scope="module")
def view() -> Explorer:
    rows = np.arange(16 * 24, dtype=np.float32).reshape(16, 24) / 64
    x, w = Tensor(rows).realize(), Tensor(np.ones((24, 8), np.float32)).realize()
    return explore(lambda: (x @ w).softmax(), repeat=1, keep_inputs=True, title="softmax")


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Afterwards the devices are this machine's again."""
    yield
    register_devices()


@pytest.fixture
def served(view: Explorer, interpreted: None) -> tuple[PageServer, list[tuple[str, Any]]]:
    """The worker of a page that shows the view, and the messages that it sent without a request."""
    told: list[tuple[str, Any]] = []
    serving = PageServer(lambda kind, data: told.append((kind, json.loads(data))))
    trace = view.trace
    serving.open(
        trace_to_bytes(trace), collect_page_data(trace, view.capture.captured_kernels, view.whatif.graphs).to_json()
    )
    return serving, told


def asked(serving: PageServer, **question: Any) -> Any:
    return json.loads(serving.respond(json.dumps(question)))


def test_page_data_round_trips_unchanged(view: Explorer) -> None:
    carried = collect_page_data(view.trace, view.capture.captured_kernels)
    assert carried.targets["LLVM"] == Device["LLVM"].target and carried.contents[0][1] is not None
    assert PageData.from_json(carried.to_json()) == carried


@pytest.mark.parametrize("name", ["sm_80", "gfx90a"])
def test_a_target_is_serialized_completely(name: str) -> None:
    with Context(TARGET=name):
        target = Device["PYTHON"].target
    assert target.cores
    assert target_from_data(json.loads(json.dumps(target_to_data(target)))) == target


def test_the_kernels_of_a_trace_are_rebuilt_node_by_node(view: Explorer, served: Any) -> None:
    serving, _ = served
    for number, kept in view.capture.captured_kernels.items():
        again = serving.explorer.capture.captured_kernels[number]
        assert again.uops == kept.uops and again.contents == kept.contents
        assert again.make_kernel().ast is kept.make_kernel().ast


def test_a_workers_responses_equal_those_of_a_notebook(view: Explorer, served: Any) -> None:
    serving, _ = served
    notebook = RequestHandler(lambda: view.trace, view.capture)
    trace = view.trace
    stage = next(stage for stage in trace.stages if any(step.rule is not None for step in stage.steps))
    questions = [
        {"ask": "why", "node": stage.steps[0].before, "stage": stage.id, "step": 0},
        {"ask": "debug", "kernel": 0, "do": "step", "count": 20},
        {"ask": "debug", "kernel": 1, "do": "finish"},
        {"ask": "debug", "kernel": 99},
    ]
    for question in questions:
        assert asked(serving, **question) == json.loads(json.dumps(notebook(question)))
    caches = asked(serving, ask="caches", kernel=0)
    expected = notebook({"ask": "caches", "kernel": 0})
    assert caches["after"]["total"] == expected["after"]["total"]


def test_opts_are_those_of_the_captured_machine_and_uops_are_counted_not_timed(view: Explorer, served: Any) -> None:
    serving, told = served
    assert asked(serving, ask="begin", kernel=0)["status"] == "done"
    branches = serving.explorer.kernels[0].branches
    native = view.kernels[0].branch
    captured = next(branch for branch in branches if "as captured" in branch.labels)
    assert captured.kernels[0].opts == native.kernels[0].opts and captured.kernels[0].offers == native.kernels[0].offers
    assert all(branch.kernels[0].median_us is None for branch in branches)
    plain = next(branch for branch in branches if "no opts" in branch.labels)
    assert plain.kernels[0].uops > captured.kernels[0].uops > 0
    assert "interpreting one run took" in captured.reason
    assert {"branches", "working"} == {kind for kind, _ in told}


def test_a_restarted_worker_restores_the_branches(view: Explorer, served: Any) -> None:
    serving, told = served
    assert asked(serving, ask="begin", kernel=0)["status"] == "done"
    recorded = json.dumps([row for kind, data in told if kind == "branches" for row in data["rows"]])
    anew = PageServer(lambda kind, data: None)
    anew.open(
        trace_to_bytes(view.trace), collect_page_data(view.trace, view.capture.captured_kernels).to_json(), recorded
    )
    assert anew.explorer is not None and anew.explorer.whatif.branches == serving.explorer.whatif.branches


def test_an_edited_linear_program_is_interpreted_and_c_needs_a_compiler(view: Explorer, served: Any) -> None:
    explorer = served[0].explorer
    text = explorer.kernels[0].edit_text("uops")
    same = explorer.kernels[0].edit("uops", f"{text}# nothing else\n")
    assert same.status == "done" and "the PYTHON device" in same.reason and same.kernels[0].median_us is None
    lines = text.splitlines()
    wrong = explorer.kernels[0].edit("uops", "\n".join([*lines[:5], "no such thing", *lines[5:]]))
    assert wrong.status == "failed" and wrong.edited.diagnostics[0].line == 6
    other = explorer.kernels[0].edit("uops", text.replace("0.0:float32", "0.5:float32"))
    assert other.edited.verdict == "differs" and other.edited.first.found == "4.8125" and "first at" in other.reason
    c = explorer.kernels[0].edit("c", explorer.kernels[0].edit_text("c") + "// more\n")
    assert c.status == "failed" and "no compiler for C" in c.reason


def test_a_rule_written_in_a_page_reports_errors_at_the_line(view: Explorer, served: Any) -> None:
    serving, _ = served
    text = """from tinyexplore.explore import playground
from tinyexplore.explore.playground import cvar, var

x, c = var("x"), cvar("c")

@playground.rule(x * c)
def twice_as_much(x, c):
    return x * (c.arg * 2) if isinstance(c.arg, int) and c.arg == 24 else None
"""
    assert asked(serving, ask="write", text=text) == {"rules": ["twice_as_much"]}
    places = asked(serving, ask="matches", rule="twice_as_much")["places"]
    assert "differs" in {place["verdict"]["status"] for place in places}
    branch = serving.explorer.rules.insert("twice_as_much")
    assert any(one.verdict == "differs" for one in branch.firings) and "[Errno" not in branch.reason
    wrong = asked(serving, ask="write", text=text.replace("(x * c)", "(x * q)"))
    assert wrong == {"error": "line 6: NameError: name 'q' is not defined"}
    assert asked(serving, ask="write", text="x = = 1")["error"].startswith("line 1: SyntaxError: ")
    assert "defines no rule" in asked(serving, ask="write", text="x = 1")["error"]


def test_a_schedule_cut_in_a_page_is_compared_without_times(view: Explorer, served: Any) -> None:
    board = served[0].explorer.fusion
    edge = next(edge for edge in board.edges() if not edge.against_cut)
    branch = board.cut(edge)
    assert branch.status == "done" and all(output.same for output in branch.schedule.outputs)
    native = view.fusion.cut(edge.src, edge.dst)
    assert [one.digest for one in branch.schedule.kernels] == [one.digest for one in native.schedule.kernels]
    assert branch.schedule.median_us is None and "has no times" in branch.reason


def test_graphs_are_read_back_equal(view: Explorer) -> None:
    (graph,) = view.whatif.graphs.values()
    again = graph_from_data(json.loads(json.dumps(graph_to_data(graph))))
    assert (again.rows, again.outputs, again.why) == (graph.rows, graph.outputs, graph.why)
    n = Variable("n", 1, 9).bind(4)
    changing = explore(lambda: Tensor.ones(9, 4).contiguous().shrink(((0, n), (0, 4))) + 1, repeat=1)
    assert not all(is_plain(one) for one in changing.whatif.graphs.values())


def test_a_page_of_a_trace_file_responds_within_the_files_data(
    view: Explorer, interpreted: None, tmp_path: Path
) -> None:
    trace = Trace.load(view.save(tmp_path / "trace.json.gz"))
    serving = PageServer(lambda kind, data: None)
    serving.open(trace_to_bytes(trace), collect_page_data(trace, {}).to_json())
    assert "keep_inputs" in asked(serving, ask="debug", kernel=0)["error"]
    assert asked(serving, ask="debug", kernel=0, do="generated")["note"]


def test_a_page_contains_engine_and_python_and_makes_no_request(view: Explorer, monkeypatch: Any) -> None:
    monkeypatch.setattr(view.capture, "_stored", StoredResults())  # other tests did
    page = view.to_html(live=True)
    names = re.findall(r'data-carried="([^"]+)"', page)
    assert {"pyodide.asm.wasm", "python_stdlib.zip", "tinyexplore.zip", "carried.json"} < set(names)
    assert "default-src 'none'" in page and "'unsafe-eval'" not in page
    assert len(page.encode()) < 10.6e6
    monkeypatch.setattr(
        precompiled_module, "_compile_archives", lambda *given: pytest.fail("compiled ahead, and not kept")
    )
    assert view.to_html().find("data-carried") == -1
    assert page == view.to_html(live=True)  # the same whenever it is made


def test_the_engine_is_packed_without_the_front_end() -> None:
    with zipfile.ZipFile(io.BytesIO(packed_engine())) as archive:
        names = set(archive.namelist())
    assert f"{PACKAGE.name}/explore/live/page_server.py" in names
    assert not any("/static/" in name or "__pycache__" in name for name in names)
    assert {name.partition("/widgets/")[2] for name in names if "/widgets/" in name} == {"__init__.py", "panels.py"}
    assert not any(name.endswith(".ll") or name.endswith("/cli.py") for name in names), (
        "LLVM and a terminal are not there"
    )


def test_results_are_compared_equally_without_numpy() -> None:
    one = np.array([1, 2, np.nan, 4], np.float32)
    names = [("data0", dtypes.float32)]
    for other in ([1, 2, np.nan, 4], [1, 2.0000002, np.nan, 4], [1, 2, 3, 4], [1, 5, np.nan, np.inf]):
        found = {0: np.array(other, np.float32).tobytes()}
        assert compare_without_numpy(names, found, {0: one.tobytes()}) == compare_outputs(
            names, found, {0: one.tobytes()}
        )


# *** bytecode ***


def archive_of(**texts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name.replace("__", "/") + ".py", text)
    return file.getvalue()


def test_bytecode_is_imported_with_or_without_sources(tmp_path: Path) -> None:
    given = archive_of(alone='"""Words."""\nvalue = 7\n', inside__deep="value = __file__\n")
    stdlib, engine = str(tmp_path / "stdlib.zip"), str(tmp_path / "engine")
    loaded = [f"{stdlib}/alone.py", f"{engine}/inside/deep.py"]
    (tmp_path / "stdlib.zip").write_bytes(to_bytecode(given, stdlib, loaded))
    with zipfile.ZipFile(io.BytesIO(add_bytecode(given, engine, loaded))) as archive:
        archive.extractall(tmp_path / "engine")
    (cached,) = (tmp_path / "engine" / "inside" / "__pycache__").iterdir()
    (tmp_path / "engine" / "inside" / "deep.py").write_text("value = 'compiled anew'\n")
    places = [stdlib, engine]
    program = (
        f"import sys; sys.dont_write_bytecode = True; sys.path[:0] = {places!r}\n"
        "import alone; print(alone.value, alone.__doc__); del sys.modules['alone']; sys.path.pop(0)\n"
        "import inside.deep; print(inside.deep.value); import alone; print(alone.__doc__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["7 None", str(tmp_path / "engine" / "inside" / "deep.py"), "Words."]
    assert cached.suffix == ".pyc"


def test_without_node_a_page_contains_sources(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "")
    assert with_first_bytecode(tmp_path, b"one", b"two") == (b"one", b"two")


# *** where Pyodide comes from ***


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An npm package that looks like Pyodide's."""
    path = tmp_path / "pyodide.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name in pyodide._ALL_FILES:
            text = json.dumps({"version": PYODIDE_VERSION}) if name == "package.json" else name
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def test_a_package_file_is_unpacked_into_the_cache(package: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = find_pyodide(package)
    assert (folder / "pyodide.asm.wasm").read_text() == "pyodide.asm.wasm" and folder == find_pyodide(package)
    monkeypatch.setenv("PYODIDE", str(folder))
    assert find_pyodide() == folder


def test_files_that_others_can_write_are_not_run(package: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """A page carries it to others, and Node runs it here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(private_folder, "_warned", set())
    folder = find_pyodide(package)
    (folder / "pyodide.mjs").write_text("something else")
    folder.parent.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"others may write there"):
        again = find_pyodide(package)
    assert again != folder and (again / "pyodide.mjs").read_text() == "pyodide.mjs"


def test_bytecode_that_others_can_write_is_recompiled(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(precompiled_module.shutil, "which", lambda name: name)
    (tmp_path / "package.json").write_text("{}")
    made: list[Any] = []
    monkeypatch.setattr(
        precompiled_module, "_compile_archives", lambda *given: made.append(given) or (b"stdlib", b"engine")
    )
    for _ in range(2):
        assert with_first_bytecode(tmp_path, b"one", b"two") == (b"stdlib", b"engine")
    assert len(made) == 1
    first, second = sorted((tmp_path / "cache" / "tinyexplore").glob("live-*"))
    first.write_bytes(second.read_bytes())
    assert with_first_bytecode(tmp_path, b"one", b"two") == (b"stdlib", b"engine") and len(made) == 2


def test_an_invalid_pyodide_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(PyodideMissing, match=r"no pyodide\.mjs.*pyodide@"):
        find_pyodide(tmp_path)


def test_without_a_download_the_error_names_the_manual_installation(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYODIDE", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("NPM_CONFIG_REGISTRY", raising=False)
    monkeypatch.delenv("npm_config_registry", raising=False)
    monkeypatch.setattr(pyodide, "_find_checkout", lambda: tmp_path)
    with pytest.raises(PyodideMissing, match=rf"npm pack pyodide@{PYODIDE_VERSION}.*PYODIDE="):
        find_pyodide()


def test_a_package_with_a_wrong_checksum_is_not_stored(package: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(pyodide, "_fetch_by_npm", package.read_bytes)
    monkeypatch.setattr(pyodide, "_fetch_by_https", package.read_bytes)
    with pytest.raises(PyodideMissing, match="not the package"):
        pyodide._fetch_package()


def test_the_version_is_the_one_that_the_front_end_is_tested_with(repository: Path) -> None:
    lock = json.loads((repository / "widgets" / "package-lock.json").read_text())["packages"]["node_modules/pyodide"]
    assert (lock["version"], lock["integrity"]) == (PYODIDE_VERSION, f"sha512-{pyodide._INTEGRITY}")


def test_the_standard_library_is_packed_without_unused_modules() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in (
            "encodings/cp1251.py",
            "encodings/utf_8.py",
            "json/__init__.py",
            "unittest/mock.py",
            "pdb.py",
            "re/__init__.py",
        ):
            archive.writestr(name, name)
    with zipfile.ZipFile(io.BytesIO(slim_stdlib(file.getvalue()))) as archive:
        assert archive.namelist() == ["encodings/utf_8.py", "json/__init__.py", "re/__init__.py"]


def test_the_engine_runs_without_the_modules_that_a_page_omits() -> None:
    program = "Tensor.arange(6).reshape(2, 3)\\n# %%\\nnn.Linear(3, 2)(Tensor.ones(2, 3)).softmax()"
    script = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(UNUSED_MODULES)!r}))
import tinyexplore.explore.live.page_server
from tinyexplore.explore.live.typed_programs import play
played = play("{program}")
assert played.explorer is not None, played.error
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
