"""PREFETCH: a loop requests data before it reads them. No bit of a result changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, numbers, softmax
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore import Tensor, Variable
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.kernel import (
    Kernel,
    Opt,
    OptError,
    OptOps,
    apply_heuristics,
    apply_opt,
    apply_opts,
    available_opts,
    undo_opt,
)
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.util import Context


def with_most(x: LazyBuffer) -> LazyBuffer:
    """Each row and its maximum, added: read twice, and nothing is kept of it."""
    return x.alu(Ops.ADD, x.reduce(Ops.MAX, (1,)).expand(x.shape))


def centered_squares(x: LazyBuffer, function: Ops = Ops.NEG) -> LazyBuffer:
    """Of each row a sum over how far its elements are from the largest."""
    distance = x.alu(Ops.ADD, x.reduce(Ops.MAX, (1,)).alu(Ops.NEG).expand(x.shape))
    return distance.alu(function).alu(Ops.MUL, distance).reduce(Ops.ADD, (1,))


def stored_at(places: np.ndarray) -> LazyBuffer:
    """Numbers in the places that values say, some of which may be outside."""
    memory = LazyBuffer.const(0, dtypes.float32, "LLVM", (places.size,)).contiguous()
    return memory.written_at(from_numpy(places), from_numpy(numbers(places.size)))


def test_scattered_stores_to_large_buffers_are_prefetched() -> None:
    for count, opts in ((1 << 20, ["PREFETCH(0, 16)"]), (1 << 12, [])):
        *_, item = create_schedule([stored_at(np.zeros(count, np.int32))])
        kernel = apply_heuristics(Kernel.of(item.ast, MACHINE))
        assert [str(opt) for opt in kernel.applied if opt.op is OptOps.PREFETCH] == opts


def chosen(node: LazyBuffer) -> list[str]:
    return [str(opt) for opt in apply_heuristics(kernel_of(node)).applied if opt.op is OptOps.PREFETCH]


@pytest.mark.parametrize(
    ("node", "opts"),
    [
        (lambda: softmax(unread(4096, 4096)), ["PREFETCH(0, 1)"]),
        (lambda: softmax(unread(16384, 1024)), ["PREFETCH(0, 2)"]),
        (lambda: softmax(unread(1024, 1024)), []),  # a cache has it
        (lambda: with_most(unread(4096, 4096)), ["PREFETCH(0, 1)"]),
        (lambda: with_most(unread(16384, 1024)), []),
        (lambda: softmax(unread(65536, 256)), []),  # the hardware prefetches the next short row
        (lambda: softmax(unread(64, 262144)), []),  # no cache keeps two such rows
        (lambda: unread(3000, 5000).permute((1, 0)).contiguous(), ["PREFETCH(0, 2)"]),
        (
            lambda: unread(4096, 4096).permute((1, 0)).contiguous(),
            ["PREFETCH(1, 4)"],
        ),  # follows more loads than the hardware
        (lambda: unread(64, 262144).permute((1, 0)).contiguous(), []),  # follows the loads
        (lambda: unread(256, 256).permute((1, 0)).contiguous(), []),
        (lambda: unread(2048, 2048).permute((1, 0)).contiguous(), []),  # a cache has it
        (lambda: unread(1024, 1024).permute((1, 0)).contiguous(), []),
        (lambda: unread(4096, 4096).reduce(Ops.ADD, (0,)), ["PREFETCH(1, 64)"]),
        (lambda: unread(256, 65536).reduce(Ops.ADD, (0,)), ["PREFETCH(0, 2)"]),
        (lambda: unread(256, 256, 256).reduce(Ops.ADD, (1,)), []),  # whole rows, one after the other
        (lambda: unread(64, 262144).reduce(Ops.ADD, (0,)), ["PREFETCH(0, 8)"]),
        (lambda: unread(65536, 1024).reduce(Ops.ADD, (0,)), ["PREFETCH(1, 42)"]),
        (lambda: unread(512, 512).reduce(Ops.ADD, (0,)), []),
        (
            lambda: centered_squares(unread(4096, 4096)),
            ["PREFETCH(0, 1)"],
        ),  # one number per row, read twice
        (lambda: centered_squares(unread(16384, 1024)), []),
        (lambda: centered_squares(unread(4096, 4096), Ops.EXP), []),  # exp is dearer than waiting
        (lambda: unread(4096, 4096).alu(Ops.EXP).reduce(Ops.MAX, (1,)), []),
        (lambda: unread(4096, 4096).reduce(Ops.ADD, (1,)), ["PREFETCH(0, 1)"]),  # rows side by side
        (lambda: unread(64, 64, 64, 64).permute((1, 0, 2, 3)).reduce(Ops.ADD, (1, 2, 3)), ["PREFETCH(2, 32)"]),
        (lambda: unread(1 << 24).alu(Ops.EXP), []),
        (lambda: matmul(unread(4096, 4096), unread(4096, 4096)), []),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_loops_prefetch_where_the_hardware_does_not(node: Callable[[], LazyBuffer], opts: list[str]) -> None:
    assert chosen(node()) == opts


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "opts"),
    [
        (8, 1024, 1024, ["PREFETCH(2, 10)"]),  # three lines of each row of the matrix
        (8, 3072, 768, ["PREFETCH(2, 10)"]),
        (4, 1024, 1024, []),  # four lines: the hardware follows
        (8, 256, 256, []),  # the L2 cache has it
    ],
)
def test_products_of_few_rows_prefetch_if_they_read_little_of_each_row(
    rows: int, inner: int, columns: int, opts: list[str]
) -> None:
    with Context(TARGET="x86-64-v4,threads=2,l1=48K,l2=2M"):
        kernel = apply_heuristics(kernel_of(matmul(unread(rows, inner), unread(inner, columns)), Device["LLVM"].target))
    assert [str(opt) for opt in kernel.applied if opt.op is OptOps.PREFETCH] == opts


def prefetches(kernel: Kernel) -> list[tuple[UOp, UOp]]:
    """Of each load that comes after a prefetch: both places."""
    loads = [node for node in lower(kernel) if node.op is Ops.LOAD and node.src[-1].op is Ops.PREFETCH]
    return [(load.src[0].src[1], load.src[1].src[0].src[1]) for load in loads]


def distance(now: UOp, later: UOp) -> int:
    (terms, offset), (later_terms, later_offset) = linear_terms(now), linear_terms(later)
    assert terms == later_terms
    return later_offset - offset


def test_the_loop_that_fills_a_row_buffer_prefetches_the_next_row() -> None:
    kernel = apply_heuristics(kernel_of(softmax(unread(4096, 4096))))
    ((now, later),) = prefetches(kernel)
    assert distance(now, later) == 4096
    inner = max(now.ranges, key=lambda axis: axis.arg.id)
    assert inner.arg.kind is AxisKind.ROW


def test_every_cache_line_of_a_tile_is_prefetched_once() -> None:
    kernel = apply_heuristics(kernel_of(unread(3000, 5000).permute((1, 0)).contiguous()))
    assert [distance(*places) for places in prefetches(kernel)] == [32] * 16
    windows = kernel_of(unread(64, 4096).window(1, 9).reduce(Ops.ADD, (2,)))
    kernel = apply_opts(windows, Opt(OptOps.UNROLL, 2, 9), Opt(OptOps.PREFETCH, 0, 1))
    assert [distance(*places) for places in prefetches(kernel)] == [4096]


def test_prefetches_of_masked_loads_have_no_mask() -> None:
    padded = kernel_of(unread(64, 4096).pad(((3, 3), (0, 0))).reduce(Ops.ADD, (0,)))
    kernel = apply_opt(padded, Opt(OptOps.PREFETCH, 1, 4))
    assert [distance(*places) for places in prefetches(kernel)] == [4 * 4096]
    with Context(SPEC=1):
        lower(kernel)


SIZE = Variable("size", 1, 40)


@pytest.mark.parametrize("axis", [0, 1])
def test_loops_of_symbolic_size_may_prefetch(axis: int) -> None:
    values, tried = numbers(40, 40), 0
    for size in (40, 7, 1):
        shown = values[:size].T if axis else values[:size]
        (item,) = create_schedule([(Tensor(values, device="LLVM")[: SIZE.bind(size)] * 2).sum(1 - axis).lazydata])
        start = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
        for opt in available_opts(start):
            if opt.op is OptOps.PREFETCH:
                tried += 1
                runner, bound = compile_optimized("LLVM", apply_opt(start, opt)), item.arguments(item.bound)
                ExecItem(item, runner, None, item.buffers, values=bound).run()
                found = np.frombuffer(item.buffers[0].copyout(), np.float32)
                np.testing.assert_allclose(found[: len(shown)], 2 * shown.sum(1), rtol=1e-4, atol=1e-4)
    assert tried


PROGRAMS = {
    "softmax": lambda: softmax(from_numpy(numbers(9, 41))),
    "transpose": lambda: from_numpy(numbers(35, 50)).permute((1, 0)).contiguous(),
    "column sum": lambda: from_numpy(numbers(45, 70)).reduce(Ops.ADD, (0,)),
    "padded": lambda: from_numpy(numbers(4, 40)).pad(((0, 0), (2, 3))).window(1, 3).reduce(Ops.ADD, (2,)),
    "flipped": lambda: from_numpy(numbers(7, 33)).flip((0, 1)).reduce(Ops.MAX, (1,)),
    "stored where values say": lambda: stored_at(np.random.default_rng(0).permutation(40).astype(np.int32) - 2),
    "stored where sums say": lambda: Tensor(numbers(31, 2), device="LLVM").sort(1)[1].lazydata,
}


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_no_bit_of_a_result_changes(program: str, device: str) -> None:
    try:
        target = Device[device].target
    except Exception as error:
        pytest.skip(f"{device} is not here: {error}")
    *_, item = create_schedule([PROGRAMS[program]()])
    item = replace(item, device=device)
    start = apply_heuristics(Kernel.of(item.ast, target))
    last = [opt for opt in available_opts(start) if opt.op is OptOps.PREFETCH]
    assert last

    def result(kernel: Kernel) -> bytes:
        with Context(SPEC=1):
            runner = compile_optimized(device, kernel)
        item.buffers[0].allocate().copyin(b"\xff" * item.buffers[0].nbytes)
        ExecItem(item, runner, None, item.buffers).run()
        return bytes(item.buffers[0].copyout())

    expected = result(start)
    for opt in last[:: 1 if device == "LLVM" else 4]:
        assert result(apply_opt(start, opt)) == expected, opt


def test_renderers_write_their_compilers_prefetch() -> None:
    kernel = apply_opt(kernel_of(unread(64, 64).reduce(Ops.ADD, (0,))), Opt(OptOps.PREFETCH, 1, 4))
    uops = lower(kernel)
    texts = {}
    for name in ("LLVM", "CLANG", "PYTHON"):
        spec = Device[name].renderer.render("kernel", uops)
        texts[name] = "\n".join(line.text for line in spec.lines)
    assert "call void @llvm.prefetch.p0(ptr %ahead" in texts["LLVM"] and "i32 0, i32 2, i32 1)" in texts["LLVM"]
    assert "__builtin_prefetch((const void*)((uintptr_t)data1 + 4 * (" in texts["CLANG"]
    assert "fetch" not in texts["PYTHON"]


def test_an_illegal_prefetch_is_explained() -> None:
    kernel = kernel_of(unread(64, 64).reduce(Ops.ADD, (0,)))
    ahead = apply_opt(kernel, Opt(OptOps.PREFETCH, 1, 4))
    assert undo_opt(ahead).ast is kernel.ast
    for start, opt, words in (
        (ahead, Opt(OptOps.PREFETCH, 0, 1), "already prefetches"),
        (ahead, Opt(OptOps.UNROLL, 1, 4), "apply this opt before PREFETCH"),
        (kernel, Opt(OptOps.PREFETCH, 1, 64), "choose steps from 1 to 63"),
        (apply_opt(kernel, Opt(OptOps.VECTOR, 0, 16)), Opt(OptOps.PREFETCH, 2, 1), "PREFETCH needs a loop"),
        (
            kernel_of(unread(64).reshape((1, 64)).expand((8, 64)).contiguous()),
            Opt(OptOps.PREFETCH, 0, 1),
            "no load has",
        ),
    ):
        with pytest.raises(OptError, match=words):
            apply_opt(start, opt)
    assert apply_opt(ahead, Opt(OptOps.THREAD, 0)).axis(1).arg.ahead == 4
