"""The runner cache: bounded, without duplicates; a runner is freed with its last user, and rebuilt equal."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, numbers, to_numpy
from tests.support.kernels import compile_all
from tinyexplore import Tensor, TinyJit, engine
from tinyexplore.compile.runner_cache import runners
from tinyexplore.device import Device
from tinyexplore.engine import create_schedule
from tinyexplore.execute.plan import plans
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.linking import loaded_libraries
from tinyexplore.trace import Recorder, recording
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def forget() -> None:
    plans.cache_clear()
    runners.cache_clear()
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    assert Device["LLVM"]
    forget()
    with Context(CACHELEVEL=0):
        yield
    forget()


def graphs() -> list[LazyBuffer]:
    """Kernels with every kind of axis and most kinds of opts; axes merged and split; one that streams its result."""
    product = matmul(from_numpy(numbers(48, 64)), from_numpy(numbers(64, 40)))
    row = from_numpy(numbers(8, 4096))
    total = row.alu(Ops.EXP).reduce(Ops.ADD, (1,)).expand((8, 4096))
    return [
        product,
        row.alu(Ops.EXP).alu(Ops.FDIV, total),
        from_numpy(numbers(3, 5, 7)).permute((2, 0, 1)).alu(Ops.SIN),
        from_numpy(numbers(1 << 20)).reduce(Ops.ADD, (0,)),
        from_numpy(np.ones((3 << 20,), np.float32)).pad(((1, 1),)).alu(Ops.SQRT),
    ]


def test_kernels_and_plans_are_bounded_and_their_code_is_unloaded() -> None:
    before = loaded_libraries()
    with Context(KERNEL_MB=1):
        for size in range(2, 30):
            assert to_numpy(from_numpy(numbers(size)).alu(Ops.MUL, from_numpy(numbers(size)))).shape == (size,)
            gc.collect()
            assert loaded_libraries() - before == len(runners) <= 12, "a mebibyte has room for some ten"
    assert len(runners) >= 5
    forget()
    assert loaded_libraries() == before


def test_an_evicted_kernel_that_is_referenced_is_found() -> None:
    def square(size: int) -> LazyBuffer:
        x = from_numpy(numbers(size))
        return x.alu(Ops.MUL, x)

    before = loaded_libraries()
    with Context(KERNEL_MB=0):  # only the last one used is kept for its own sake
        (held,) = compile_all(create_schedule([square(3)]))
        to_numpy(square(4))
        to_numpy(square(5))
        assert compile_all(create_schedule([square(3)])) == [held]
        assert loaded_libraries() == before + 2, "that one and the last"
        del held
        for size in (6, 7):
            to_numpy(square(size))
        assert loaded_libraries() == before + 1, "only the last"


def test_a_program_is_not_unloaded_while_it_is_referenced() -> None:
    @TinyJit
    def captured(x: Tensor) -> Tensor:
        return (x * 3 + 1).realize()

    x = Tensor(numbers(1000)).realize()
    for _ in range(3):
        captured(x)
    (item,) = captured.jit_cache
    bound = item.runner.program.bind(item.buffers)
    del item
    stop = threading.Event()
    wrong: list[object] = []

    def run() -> None:
        while not stop.is_set():
            bound(0, 1)
            if not np.allclose(captured(x).numpy(), numbers(1000) * 3 + 1):
                wrong.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    with Context(KERNEL_MB=0):
        for size in range(2, 12):
            to_numpy(from_numpy(numbers(size)).alu(Ops.SIN))
            forget()
            loaded_libraries()
    stop.set()
    thread.join()
    assert not wrong


def test_unreferenced_programs_of_a_capture_are_unloaded() -> None:
    before = loaded_libraries()

    def capture(size: int) -> None:
        @TinyJit
        def step(x: Tensor) -> Tensor:
            return (x * 2 + 1).relu().sum().realize()

        for _ in range(3):
            step(Tensor.ones(size, 3).contiguous().realize())

    for size in range(2, 12):
        capture(size)
    forget()
    assert loaded_libraries() <= before + 1, "the function that captured calls go through is made once"


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
def test_a_kernel_and_its_text_are_rebuilt_unchanged(device: str) -> None:
    for made in graphs()[: 3 if device == "PYTHON" else None]:
        for item in create_schedule([made]):
            if item.ast is None:
                continue
            seen = Recorder()
            with engine.step_by_step(), recording(seen):
                runner = engine.compile_item(item).runner
            assert runner is not None
            kernel = runner.kernel
            (spec,) = (event.program for event in seen.events if type(event).__name__ == "ListingRendered")
            assert runner.spec.lines is spec.lines, "as long as a recording holds it, it is not made again"
            name, ast, applied, lines, uops = kernel.name, kernel.ast, kernel.applied, spec.lines, spec.uops
            del kernel, spec, seen
            again = runner.kernel
            assert (again.name, again.ast, again.applied) == (name, ast, applied)
            with Context(NOOPT=1, TRANSCENDENTAL=0):  # as it was, whatever holds now
                assert runner.spec.uops == uops and runner.spec.lines is not lines
                assert [line.text for line in runner.spec.lines] == [line.text for line in lines]


def test_compiled_programs_keep_no_kernel_in_memory() -> None:
    def held() -> int:
        gc.collect()
        return sum(issubclass(type(one), Kernel) for one in gc.get_objects())

    before = held()
    for made in graphs():
        engine.realize([made])
    assert held() == before
    specs = [runner.spec for runner in runners._held.values()]
    assert specs and all(vars(spec)["_made"] is None and vars(spec)["_elsewhere"]() is None for spec in specs)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell what is loaded")
def test_a_shared_object_is_unloaded_with_its_program() -> None:
    assert Device["CLANG"]

    def loaded() -> int:
        files = {line.split(None, 5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
        return sum("/tinyexplore-" in file for file in files)

    before = loaded()
    to_numpy(from_numpy(numbers(7, 3), "CLANG").alu(Ops.SIN))
    assert loaded() > before
    forget()
    assert loaded() == before
