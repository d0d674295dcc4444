"""PIPELINE: a row of results is stored while the next one is computed. It changes no bit of a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.fuzz.opts import random_opts
from tests.fuzz.programs import kept
from tests.graphs import from_numpy, numbers, softmax
from tests.support.kernels import kernel_of, unread
from tinyexplore import Tensor
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_heuristics, apply_opt, available_opts, undo_opt
from tinyexplore.kernel.search import find_replayed
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def in_vectors(plain: Kernel) -> Kernel:
    """The opts that the heuristics choose, without tiles and PIPELINE."""
    chosen = apply_heuristics(plain)
    found = find_replayed(chosen, [opt for opt in chosen.applied if opt.op not in (OptOps.UPCAST, OptOps.PIPELINE)])
    assert found is not None
    return found


def result(item: ScheduleItem, kernel: Kernel, parts: int = 1) -> bytes:
    """The output of `kernel`; its THREAD axis, if any, in `parts` parts, the last one first."""
    with Context(SPEC=1):
        runner = compile_optimized(item.device, kernel)
    item.buffers[0].allocate().copyin(b"\xff" * item.buffers[0].nbytes)
    run = runner.program.bind(item.buffers)
    extent = runner.spec.thread_extent or 1
    parts = min(parts, extent)
    for part in reversed(range(parts)):
        run(extent * part // parts, extent * (part + 1) // parts)
    return bytes(item.buffers[0].copyout())


def lanes() -> int:
    """How many floats a vector of this machine has."""
    return Device["LLVM"].target.lanes(dtypes.float32)


def shared_softmax(rows: int, columns: int) -> LazyBuffer:
    """The softmax of rows with a number for each column and for each row beside it."""
    values = [Tensor(numbers(*shape), device="LLVM") for shape in ((rows, columns), (columns,), (rows, 1))]
    return (values[0].softmax() * values[1] + values[2]).lazydata


PROGRAMS: dict[str, Callable[[], LazyBuffer]] = {
    "softmax": lambda: softmax(from_numpy(numbers(37, 64))),
    "softmax of a prime number of rows": lambda: softmax(from_numpy(numbers(101, 32))),
    "with rows and columns": lambda: shared_softmax(26, 48),
    "rows of two axes": lambda: Tensor(numbers(19, 6, lanes()), device="LLVM").softmax((1, 2)).lazydata,
    "rows in a batch": lambda: Tensor(numbers(13, 3, 32), device="LLVM").permute((1, 0, 2)).softmax().lazydata,
}


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_no_bit_of_a_result_changes(program: str, device: str) -> None:
    try:
        target = Device[device].target
    except Exception as error:
        pytest.skip(f"{device} is not here: {error}")
    (item,) = create_schedule([PROGRAMS[program]()])
    item = replace(item, device=device)
    plain = Kernel.of(item.ast, target)
    (axis, *_) = [opt.axis for opt in available_opts(plain) if opt.op is OptOps.PIPELINE]
    most = plain.axis(axis).size // 2
    for start in (plain, in_vectors(plain)) if device == "LLVM" else (plain,):
        expected = result(item, start)
        for amount in (3, 4, most) if device == "LLVM" else (4,):
            assert result(item, apply_opt(start, Opt(OptOps.PIPELINE, axis, amount))) == expected, amount


def test_parts_may_be_done_in_any_order() -> None:
    (item,) = create_schedule([softmax(from_numpy(numbers(300, 512)))])
    start = in_vectors(Kernel.of(item.ast, Device["LLVM"].target))
    expected = result(item, start)
    for amount in (3, 7, 64, 150):
        assert result(item, apply_opt(start, Opt(OptOps.PIPELINE, 0, amount)), parts=5) == expected, amount


def test_no_bit_of_a_result_changes_after_other_opts() -> None:
    tried = 0
    for number in range(60):
        random = Random(number)
        (item, *others) = create_schedule([kept(random, "LLVM").lazydata])
        if others or item.ast is None:
            continue
        kernel = random_opts(random, Kernel.of(item.ast, Device["LLVM"].target))
        start = find_replayed(kernel, [opt for opt in kernel.applied if opt.op is not OptOps.PIPELINE])
        assert start is not None
        for opt in available_opts(start):
            if opt.op is OptOps.PIPELINE:
                tried += 1
                amount = random.randint(3, start.axis(opt.axis).size // 2)
                piped = apply_opt(start, Opt(OptOps.PIPELINE, opt.axis, amount))
                assert result(item, piped, parts=3) == result(item, start), (number, piped.applied)
                break
    assert tried > 10


def test_stores_do_not_depend_on_the_current_step() -> None:
    kernel = apply_heuristics(kernel_of(softmax(unread(4096, 4096))))
    program = lower(kernel)
    stores = [node for node in program if node.op is Ops.STORE and node.src[0].src[0].op is Ops.DEFINE_GLOBAL]
    beside, last = stores
    (fills,) = [
        node for node in program if node.op is Ops.STORE and node.ranges == beside.ranges and node is not beside
    ]
    assert program.index(beside) < program.index(fills) < program.index(last)
    assert not beside.toposort().count(fills) and fills in last.toposort()


@pytest.mark.parametrize(
    ("node", "opts"),
    [
        (lambda: softmax(unread(4096, 4096)), ["PIPELINE(0, 64)"]),
        (lambda: softmax(unread(1024, 1024)), ["PIPELINE(0, 64)"]),
        (lambda: softmax(unread(300, 4096)), ["PIPELINE(0, 19)"]),
        (lambda: softmax(unread(64, 4096)), []),  # fewer rows than cores need
        (lambda: softmax(unread(16, 64)), []),  # next to nothing to do
        (lambda: softmax(unread(4096, 1000)), []),  # the last vector of a row overlaps the one before
        (lambda: softmax(unread(4096, 1008)), []),  # the next row lies a line past this one's result
        (lambda: unread(4096, 4096).alu(Ops.EXP), []),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_row_buffers_are_pipelined(node: Callable[[], LazyBuffer], opts: list[str]) -> None:
    assert [str(opt) for opt in apply_heuristics(kernel_of(node())).applied if opt.op is OptOps.PIPELINE] == opts


def test_an_illegal_pipeline_is_explained() -> None:
    kernel = kernel_of(softmax(unread(64, 256)))
    store = kernel.ast.src[0]
    rows, columns = sorted(axis.arg.id for axis in store.ranges)
    piped = apply_opt(kernel, Opt(OptOps.PIPELINE, rows, 4))
    assert undo_opt(piped).ast is kernel.ast
    assert not available_opts(piped)
    lanes = apply_opt(kernel, Opt(OptOps.VECTOR, columns, 16))
    short = kernel_of(softmax(unread(64, 16)))
    for axis in [axis for axis in short.axes if axis.arg.id != rows]:
        short = apply_opt(short, Opt(OptOps.VECTOR, axis.arg.id, 16))
    for start, opt, words in (
        (kernel, Opt(OptOps.PIPELINE, rows, 2), "choose blocks of 3 to half of that"),
        (kernel, Opt(OptOps.PIPELINE, rows, 33), "choose blocks of 3 to half of that"),
        (kernel, Opt(OptOps.PIPELINE, columns, 4), "fills one row per step"),
        (lanes, Opt(OptOps.PIPELINE, rows, 4), "strides of the fill loops"),
        (
            apply_opt(kernel, Opt(OptOps.UPCAST, rows, 2)),
            Opt(OptOps.PIPELINE, rows, 4),
            "keeps several rows",
        ),
        (short, Opt(OptOps.PIPELINE, rows, 4), "unrolled into registers"),
        (piped, Opt(OptOps.THREAD, rows), "PIPELINE comes last"),
        (kernel_of(unread(64, 64).alu(Ops.EXP)), Opt(OptOps.PIPELINE, 0, 4), "exactly one row buffer"),
    ):
        with pytest.raises(OptError, match=words):
            apply_opt(start, opt)
