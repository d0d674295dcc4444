"""Part of the fuzz of opts: `python -m tests.fuzz.opts --count 5000` runs more."""

from __future__ import annotations

import ctypes
import os
from itertools import count

import numpy as np
import pytest

from tests.fuzz.opts import Mismatch, Tried, compare, fenced, run_case, run_cases, run_fenced
from tests.fuzz.programs import PROGRAMS
from tests.graphs import from_numpy, matmul, numbers
from tests.ops.support import HAS_COMPILER
from tests.reference import evaluate
from tests.support.kernels import kernel_of
from tinyexplore import Tensor
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_opt, apply_opts, available_opts
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.kernel.transforms import split
from tinyexplore.uop import AxisKind, Ops, UOp

SEQUENCES = {"LLVM": 240, "CLANG": 30}


@pytest.mark.parametrize("device", sorted(SEQUENCES))
def test_opts_change_no_result(device: str) -> None:
    if device == "CLANG" and not HAS_COMPILER:
        pytest.skip("CLANG: there is no C compiler on this machine")
    tried: Tried = run_cases(count(100_000), device, SEQUENCES[device])
    assert tried.sequences >= SEQUENCES[device]
    if device == "LLVM":
        for_cpus = [op for op in OptOps if OPT_KINDS[op].machine != "gpu"]
        assert len(tried.kinds) >= len(for_cpus) - 2  # few kernels allow TRIM, for one
        assert len(tried.programs) > len(PROGRAMS) * 2 // 3


def test_loops_trimmed_by_a_mask_change_no_result() -> None:
    tried = Tried()
    for number in count(300_000):
        run_case(number, "LLVM", tried, ("attention", "masked"))
        if tried.kinds["TRIM"] >= 3 or tried.sequences > 500:
            break
    assert tried.kinds["TRIM"] >= 3


def test_a_wrong_result_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = split.split_output

    def always_the_first(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> dict[UOp, UOp]:
        return {old: place * 0 for old, place in honest(kernel, axis, opt, kind).items()}

    monkeypatch.setattr(split, "split_output", always_the_first)
    with pytest.raises(Mismatch, match="case 1000.., .* on LLVM: "):
        run_cases(count(100_000), "LLVM", 40)


def test_a_buffer_of_the_fuzzer_is_next_to_a_guard_page() -> None:
    last = fenced("LLVM", Buffer("LLVM", 5, dtypes.float32))
    first = fenced("LLVM", Buffer("LLVM", 5, dtypes.float32), at_start=True)
    assert (last.address + last.nbytes) % 4096 == first.address % 4096 == 0
    assert last.copyout() == first.copyout() == b"\xff" * 20
    assert [readable(place) for place in (last.address + 19, last.address + 20)] == [True, False]
    assert [readable(place) for place in (first.address, first.address - 1)] == [True, False]


def readable(address: int) -> bool:
    """Whether the system may read a byte there for this process."""
    receiver, sender = os.pipe()
    try:
        return ctypes.CDLL(None).write(sender, ctypes.c_void_p(address), ctypes.c_size_t(1)) == 1
    finally:
        os.close(receiver)
        os.close(sender)


def test_staged_axes_take_no_further_opts() -> None:
    kernel = kernel_of(matmul(from_numpy(numbers(8, 9)), from_numpy(numbers(9, 10))))
    staged = apply_opts(kernel, Opt(OptOps.SWAP, 0, 1), Opt(OptOps.STAGE, 1))
    for op in (OptOps.UPCAST, OptOps.VECTOR, OptOps.LOCAL):
        with pytest.raises(OptError, match="apply this opt before STAGE"):
            apply_opt(staged, Opt(op, 0, 2))
    assert Opt(OptOps.UPCAST, 1, 2) in available_opts(staged)


def test_unread_lanes_are_lanes_too() -> None:
    x = from_numpy(np.ones((1, 32), np.float32)).expand((4, 32))
    kernel = apply_opt(kernel_of(x.reduce(Ops.MAX, (0,))), Opt(OptOps.VECTOR, 1, 4))
    with pytest.raises(OptError, match="lanes along one axis"):
        apply_opt(kernel, Opt(OptOps.VECTOR, 0, 16))


def test_adjacent_remainders_have_separate_signs() -> None:
    values = np.random.default_rng(0).normal(0, 1.5, (32, 5)).astype(np.float32)
    x = Tensor(values, device="LLVM").exp()
    node = ((x * 0.5).floor().cast("int32") % 3 + x.cast("int32")).lazydata
    (item,) = create_schedule([node])
    assert item.ast is not None
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    for opt in (Opt(OptOps.UPCAST, 0, 8), Opt(OptOps.LOCAL, 1, 4), Opt(OptOps.LOCAL, 3, 2)):
        kernel = apply_opt(kernel, opt)
    source = item.buffers[1]
    (found,) = run_fenced(item, kernel, {source.id: np.frombuffer(source.allocate().copyout(), np.uint8)})
    assert compare(found, item.outputs[0], evaluate(item.outputs[0])) == ""


def test_the_remainder_of_an_outer_loop_has_its_own_inner_loops() -> None:
    """Blocks of one axis stand inside the loop over the other, and once more inside that over what it leaves; a loop
    of the results inside of both hid that these are two places."""
    node = from_numpy(numbers(17, 63, 129)).reduce(Ops.MAX, (0, 2))
    (item,) = create_schedule([node])
    assert item.ast is not None
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    split = (OptOps.VECTOR, 2, kernel.lanes), (OptOps.UNROLL, 1, 4), (OptOps.UNROLL, 2, 6), (OptOps.GROUP, 1, 2)
    for op, axis, amount in (*split, (OptOps.LOCAL, 0, 45), (OptOps.UNROLL, 1, 2), (OptOps.LOCAL, 10, 3)):
        kernel = apply_opt(kernel, Opt(op, axis, amount))
    source = item.buffers[1]
    (found,) = run_fenced(item, kernel, {source.id: np.frombuffer(source.copyout(), np.uint8)})
    assert compare(found, item.outputs[0], evaluate(item.outputs[0])) == ""


def test_masked_lanes_do_not_extend_loops() -> None:
    """Two of the three sums written out are of padding alone: they stand outside the loop over the rows, and may not
    share one with the third."""
    node = Tensor(numbers(8, 1, 31), device="LLVM").pad(((0, 2), (2, 3), (0, 3))).flip(2).sum((1, 2)).lazydata
    (item,) = create_schedule([node.base])
    assert item.ast is not None
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    for op, axis, amount in (
        (OptOps.THREAD, 0, 0),
        (OptOps.PREFETCH, 2, 4),
        (OptOps.UNROLL, 1, 3),
        (OptOps.VECTOR, 1, 2),
    ):
        kernel = apply_opt(kernel, Opt(op, axis, amount))
    source = item.buffers[1]
    (found,) = run_fenced(item, kernel, {source.id: np.frombuffer(source.allocate().copyout(), np.uint8)})
    assert compare(found, item.outputs[0], evaluate(item.outputs[0])) == ""
