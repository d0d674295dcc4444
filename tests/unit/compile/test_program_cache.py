"""The program cache: a later process reuses the lowered program, only if lowering would give the same result."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, numbers, to_numpy
from tests.support.kernels import compile_all
from tinyexplore.compile import compiler, program_cache
from tinyexplore.compile import lowering as compiling
from tinyexplore.compile.runner_cache import runners
from tinyexplore.engine import create_schedule, step_by_step
from tinyexplore.execute.plan import plans
from tinyexplore.kernel import Kernel
from tinyexplore.kernel.heuristics import accumulators as heuristic
from tinyexplore.kernel.opts import vector
from tinyexplore.kernel.transforms import split
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import Recorder, StageBegan, recording
from tinyexplore.uop import Ops
from tinyexplore.util import Context

KEY = """
from tests.unit.compile.test_program_cache import graph
from tinyexplore.compile.program_cache import lowering_key
from tinyexplore.engine import create_schedule
print([lowering_key(item.device, item.ast) for item in create_schedule([graph()])])
"""


def graph(seed: int = 0) -> LazyBuffer:
    """Two kernels: one kept for its reader, one with a reduction."""
    product = matmul(from_numpy(numbers(24, 40, seed=seed)), from_numpy(numbers(40, 33, seed=seed + 1)))
    return product.contiguous().alu(Ops.EXP).reduce(Ops.ADD, (1,))


def forget() -> None:
    """As a new process: no compiled program is in memory."""
    plans.cache_clear()
    runners.cache_clear()
    compiling._programs.clear()


@pytest.fixture(autouse=True)
def fresh_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    with Context(CACHELEVEL=1):
        yield
    forget()


@pytest.fixture
def nothing_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("lowered again")

    refuse.__module__ = compiling.__name__
    monkeypatch.setattr(compiling, "lower", refuse)
    monkeypatch.setattr(compiler, "is_as_written", lambda: True)


@pytest.mark.parametrize("device", ["LLVM", "CLANG"])
def test_a_later_process_computes_the_same_without_lowering(device: str, request: pytest.FixtureRequest) -> None:
    def result() -> np.ndarray:
        x = from_numpy(numbers(24, 40), device)
        return to_numpy(x.alu(Ops.MUL, x).contiguous().alu(Ops.EXP).reduce(Ops.ADD, (1,)))

    first = result()
    forget()
    request.getfixturevalue("nothing_lowered")
    np.testing.assert_array_equal(result(), first)


def test_text_and_kernel_of_a_stored_program_are_rebuilt_on_request() -> None:
    items = create_schedule([graph()])
    first = compile_all(items)
    forget()
    again = compile_all(items)
    assert first[0].spec is not again[0].spec
    for one, other in zip(first, again):
        assert (one.spec.key, one.flops, one.bytes_moved) == (other.spec.key, other.flops, other.bytes_moved)
        assert (one.spec.writes, one.spec.thread_extent) == (other.spec.writes, other.spec.thread_extent)
        with Context(NOOPT=1):  # under other options the text is still that of the compilation
            assert one.spec.source == other.spec.source
            assert one.spec.uops == other.spec.uops
            assert one.kernel.applied == other.kernel.applied


def test_the_key_is_the_same_in_every_process() -> None:
    root = str(Path(__file__).parents[3])
    keys = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        done = subprocess.run([sys.executable, "-c", KEY], capture_output=True, text=True, env=env, check=True)
        keys.add(done.stdout)
    assert len(keys) == 1 and "None" not in keys.pop()


def test_the_key_contains_all_inputs_of_lowering() -> None:
    def key(node: LazyBuffer) -> str | None:
        (item,) = create_schedule([node])
        return program_cache.lowering_key(item.device, item.ast)

    def total(*shape: int) -> LazyBuffer:
        return from_numpy(numbers(*shape)).reduce(Ops.ADD, (0,))

    keys = [key(total(8, 8)), key(total(8, 9)), key(total(8, 8).alu(Ops.NEG)), key(total(8, 8).alu(Ops.EXP))]
    for options in ({"NOOPT": 1}, {"THREADS": 3}, {"SPEC": 1}):
        with Context(**options):
            keys.append(key(total(8, 8)))
    assert len(set(keys)) == len(keys) and None not in keys
    assert key(total(8, 8)) == keys[0]
    with Context(CACHELEVEL=0):
        assert key(total(8, 8)) is None
    with Context(BEAM=2):
        assert key(total(8, 8)) is None


def test_the_engines_name_covers_packages_inside_a_floor() -> None:
    texts = {text for _, text in program_cache._read_modules("kernel")}
    assert all(Path(module.__file__ or "").read_bytes() in texts for module in (heuristic, split, vector))


def test_a_warning_from_one_of_its_modules_changes_no_engine() -> None:
    assert program_cache.is_as_written()
    with pytest.warns(RuntimeWarning, match="for this test"):
        exec("import warnings; warnings.warn('for this test', RuntimeWarning)", vars(split))
    vars(split).pop("warnings")
    assert "__warningregistry__" in vars(split) and program_cache.is_as_written()


def test_an_engine_modified_at_run_time_bypasses_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert program_cache.is_as_written()

    def unchanged(kernel: Kernel) -> Kernel:
        return kernel

    changes = (
        (heuristic, "ROW_ACCUMULATORS", 1),
        (split, "split_output", lambda *arguments: None),
        (compiler, "apply_heuristics", unchanged),
        (compiling, "lower", lambda kernel: ()),
    )
    for place, name, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            assert not program_cache.is_as_written(), name
        assert program_cache.is_as_written(), name
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "apply_heuristics", unchanged)
        first = to_numpy(graph())
        forget()
    kept = set((tmp_path / "tinyexplore").iterdir())
    np.testing.assert_allclose(to_numpy(graph()), first, rtol=1e-5)
    assert len(set((tmp_path / "tinyexplore").iterdir()) - kept) >= 2  # lowered with opts, and kept


def test_a_corrupt_entry_is_rebuilt(tmp_path: Path) -> None:
    first = to_numpy(graph())
    forget()
    for file in (tmp_path / "tinyexplore").glob("[!.]*"):
        file.write_bytes(b"{}" + file.read_bytes())
    np.testing.assert_array_equal(to_numpy(graph()), first)


def test_a_recording_lowers_a_cached_kernel_again() -> None:
    to_numpy(graph())
    forget()
    recorder = Recorder()
    with step_by_step(), recording(recorder):
        to_numpy(graph())
    stages = [event.stage for event in recorder.events if isinstance(event, StageBegan)]
    assert stages.count("linearize") == 2 and stages.count("optimize") == 2
