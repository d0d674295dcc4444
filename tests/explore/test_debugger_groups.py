"""The debugger in a GPU kernel: it follows one work-item, and the group synchronizes at each barrier."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.backends.programs import linear, load, pointer, store
from tinyexplore import Context, Tensor, explore
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.explore import Debugger, DebuggerError, Explorer
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

RANDOM = np.random.default_rng(3)
A = RANDOM.standard_normal((16, 32)).astype(np.float32)
B = RANDOM.standard_normal((32, 16)).astype(np.float32)
SQUARE = RANDOM.integers(-4, 5, (32, 32)).astype(np.float16)


def summed() -> Explorer:
    x = Tensor(RANDOM.standard_normal((2, 512)).astype(np.float32)).realize()
    return explore(lambda: x.sum(1), target="sm_80", keep_inputs=True)


def elementwise() -> Explorer:
    x = Tensor(RANDOM.standard_normal(64).astype(np.float32)).realize()
    return explore(lambda: x * 2 + 1, target="sm_80", keep_inputs=True)


def by_tensor_cores() -> Explorer:
    a = Tensor(SQUARE).realize()
    return explore(lambda: (a @ a).cast(dtypes.float32), target="sm_80", keep_inputs=True)


KERNELS: dict[str, tuple[Callable[[], Explorer], set[Ops]]] = {
    "elementwise": (elementwise, set()),
    "sum": (summed, {Ops.BARRIER}),
    "tensor cores": (by_tensor_cores, {Ops.WMMA}),
}


@pytest.fixture(scope="module", params=KERNELS)
def view(request: Any) -> Explorer:
    captured, wanted = KERNELS[request.param]
    with Context(DEVICE="PYTHON"):
        found = captured()
    assert wanted <= {node.op for node in found.kernels[0].debug().uops}, "the kernel is what the test is for"
    return found


def items_of(debugger: Debugger) -> list[dict[str, int]]:
    ends = {node.arg: node.src[0].arg for node in debugger.uops if node.op is Ops.SPECIAL}
    return [dict(zip(ends, numbers)) for numbers in product(*map(range, ends.values()))]


def stored_by(debugger: Debugger) -> dict[int, Any]:
    """The values that a work-item stores in data0, by index."""
    found: dict[int, Any] = {}
    while not debugger.ended:
        debugger.run_until(lambda at: at.uop.op is Ops.STORE)
        for access in () if debugger.ended else debugger.accesses:
            values = access.value if isinstance(access.value, list) else [access.value]
            if access.buffer == "data0":
                found |= {at: value for at, value in zip(access.index, values, strict=True) if at is not None}
    assert debugger.reason == "at the end", debugger.error
    return found


def test_the_stores_of_all_work_items_are_the_kernels_result(view: Explorer) -> None:
    wanted = view.result.numpy().ravel().tolist()
    found: dict[int, Any] = {}
    for item in items_of(view.kernels[0].debug()):
        found |= stored_by(view.kernels[0].debug(item=item))
    assert [found[place] for place in range(len(wanted))] == wanted


@pytest.mark.parametrize("piped", [False, True])
def test_a_staged_product_is_stepped_with_the_tiles_of_its_group(piped: bool) -> None:
    opts = [Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, 4), Opt(OptOps.STAGE, 2, 8)]
    with Context(TARGET="sm_80", DEVICE="LLVM"):
        (item,) = create_schedule([(Tensor(A) @ Tensor(B)).lazydata])
        assert item.ast is not None
        kernel = Kernel.of(item.ast, Device["LLVM"].target)
        for opt in [*opts, *([Opt(OptOps.PIPELINE, 2, 2)] if piped else [])]:
            kernel = apply_opt(kernel, opt)
        uops = lower(kernel)
    last = {"gidx0": 3, "gidx1": 3, "lidx0": 3, "lidx1": 2}
    debugger = Debugger("product", uops, [None, A.tobytes(), B.tobytes()], item=last)
    debugger.run_until(lambda at: at.uop.op is Ops.BARRIER)
    names = {access.buffer for access in debugger.accesses}
    assert names == {"tile0", "tile1"} and all(access.stored for access in debugger.accesses)
    assert debugger.value == "with 15 others"
    (place, value), *others = stored_by(debugger).items()
    assert not others and value == pytest.approx((A @ B).ravel()[place], rel=1e-5)


def test_stepping_back_undoes_the_stores_of_other_work_items(view: Explorer) -> None:
    debugger = view.kernels[0].debug(item=dict.fromkeys(items_of(view.kernels[0].debug())[0], 0))
    states = []
    while not debugger.ended:
        states.append(seen(debugger))
        debugger.step()
    assert len(states) > 5
    for place in range(len(states) - 1, -1, -1):
        debugger.back(debugger.position - place)
        assert seen(debugger) == states[place], place
    for place in range(1, len(states)):
        assert seen(debugger.step()) == states[place], place


def test_conditions_are_evaluated_at_barriers(view: Explorer) -> None:
    assert view.kernels[0].debug().run_until("value > 1e9").reason == "at the end"


def seen(debugger: Debugger) -> Any:
    registers = {name: value for name, value in debugger.registers.items() if not isinstance(value, memoryview)}
    return debugger.position, registers, {name: debugger.memory(name) for name in debugger.buffers}


def test_a_note_names_the_followed_work_item_and_an_invalid_one_raises_an_error(view: Explorer) -> None:
    debugger = view.kernels[0].debug()
    first = debugger.item
    assert first is not None and all(number == 0 for number in first.values())
    assert debugger.note.startswith(f"work-item {next(iter(first))} = 0") and "other groups do not run" in debugger.note
    with pytest.raises(DebuggerError, match="lidx7 = 0; .*0 … "):
        view.kernels[0].debug(item={"lidx7": 0})
    name = next(iter(first))
    with pytest.raises(DebuggerError, match=f"no work-item has {name} = 100000"):
        view.kernels[0].debug(item={name: 100_000})
    on_a_cpu = explore(lambda: Tensor([1.0, 2.0]) + 1, keep_inputs=True)
    with pytest.raises(DebuggerError, match="no work-items"):
        on_a_cpu.kernels[0].debug(item={"lidx0": 0})


def test_another_work_item_is_chosen_by_its_numbers() -> None:
    debugger = neighbors(barriers=1)
    assert debugger.loops == {"lidx0": 1} and list(debugger.nest.items())[0] == ("lidx0", ())
    debugger.finish().iteration(lidx0=2)
    assert (debugger.position, debugger.loops) == (0, {"lidx0": 2})
    assert debugger.note.startswith("work-item lidx0 = 2;")
    assert stored_by(debugger) == {2: 3.0}
    debugger.iteration(lidx0=3, **{name: 0 for name in debugger.nest if name != "lidx0"})
    assert debugger.loops["lidx0"] == 3 and debugger.position > 0


def neighbors(barriers: UOp | int, reads: bool = True) -> Debugger:
    """Each of four work-items stores a number, waits at `barriers` barriers, and reads its neighbor's number."""
    out, shared = (
        pointer(0, dtypes.float32, 4),
        UOp(Ops.DEFINE_LOCAL, PtrDType(dtypes.float32, 4, "shared"), (), "tile"),
    )
    item = UOp(Ops.SPECIAL, dtypes.index, (index_const(4),), "lidx0")
    kept = store(shared, item, item.cast(dtypes.float32))
    end = item if barriers is ITEM else index_const(barriers)
    loop = UOp.range(end, Axis(0, AxisKind.REDUCE))
    around = [loop, UOp(Ops.BARRIER, dtypes.void, (kept,)), UOp(Ops.ENDRANGE, dtypes.void, (loop,))]
    value = load(shared, (item + 1) % 4) if reads else UOp.const(dtypes.float32, 7.0)
    uops = linear(out, shared, item, kept, *around, store(out, item, value))
    return Debugger("neighbors", uops, [None], item={"lidx0": 1})


ITEM = UOp(Ops.SPECIAL, dtypes.index, (index_const(4),), "lidx0")


def test_a_race_and_a_skipped_barrier_end_the_run_with_a_message() -> None:
    assert stored_by(neighbors(barriers=1)) == {1: 2.0}
    early = neighbors(barriers=ITEM).finish()  # the first does not wait, and reads what the second has stored
    assert "RaceError in line" in early.error and "lidx0=0 reads tile[1], which" in early.error
    late = neighbors(barriers=ITEM, reads=False).finish()
    assert "DivergenceError in line" in late.error and "lidx0=0 of its group has ended" in late.error


def test_a_page_stores_the_first_steps_with_the_stores_of_other_work_items() -> None:
    x = Tensor(RANDOM.standard_normal((2, 512)).astype(np.float32)).realize()
    view = explore(lambda: x.sum(1), target="sm_80", keep_inputs=True, record_iterations=500)
    (found,) = view.trace.recordings
    stores = [step for step in found.steps if step.buffer not in ("", "data0") and step.stored and len(step.index) > 1]
    assert stores and all(len(step.value) == len(step.index) for step in stores)
    assert found.note.startswith("work-item gidx0 = 0")
