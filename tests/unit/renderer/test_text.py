"""The text of the renderers: one complete small program in each language; names, brackets, constants."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.backends.programs import elementwise, end, linear, load, loop, pointer, store
from tests.support.kernels import MACHINE
from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.c.parts import literal as c_literal
from tinyexplore.renderer.llvm import LLVMRenderer, with_debug_info
from tinyexplore.renderer.llvm.arithmetic import literal as llvm_literal
from tinyexplore.renderer.llvm.streaming import factor, streaming_stores
from tinyexplore.renderer.python import PythonRenderer
from tinyexplore.renderer.text import inlinable
from tinyexplore.target import Target
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

f32 = dtypes.float32
TARGET = Target(
    "TEST", "x86_64", "any", "+fma", 16, 16, 1, 32 << 10, 256 << 10, frozenset(), (), fuses_multiply_add=True
)


def row_sum(steps: int = 2) -> list[UOp]:
    out, source = pointer(0, f32, 4), pointer(1, f32, 16 * steps)
    row, column = loop(4, 0, AxisKind.THREAD), loop(steps, 1, AxisKind.REDUCE)
    acc = UOp(Ops.DEFINE_ACC, f32.vec(4), (UOp.const(f32.vec(4), 0.0),), 0)
    step = UOp(Ops.ASSIGN, acc.dtype, (acc, acc + load(source, row * (4 * steps) + column * 4, 4)))
    total = UOp(Ops.RESULT, acc.dtype, (acc, step, column))
    value = UOp(Ops.HREDUCE, f32, (total,), Ops.ADD)
    return linear(
        out, source, row, row * (4 * steps), acc, column, step, end(column), total, store(out, row, value), end(row)
    )


def test_c_reads_like_c() -> None:
    spec = CRenderer(TARGET).render("row_sum", row_sum())
    kernel = spec.source[spec.source.index("void row_sum(") :]
    assert (
        kernel
        == """\
void row_sum(float* restrict data0, const float* restrict data1, int64_t start, int64_t stop) {
  for (int64_t t0 = start; t0 < stop; t0++) {
    int64_t v0 = t0 * 8;
    f32x4 acc0 = splat_f32x4(0.0f);
    for (int64_t r1 = 0; r1 < 2; r1++) {
      f32x4 v1 = *(const f32x4_u*)(data1 + v0 + r1 * 4);
      f32x4 v2 = acc0 + v1;
      acc0 = v2;
    }
    float v3 = hadd_f32x4(acc0);
    data0[t0] = v3;
  }
}

void row_sum_entry(void** buffers, int64_t start, int64_t stop) {
  row_sum(buffers[0], buffers[1], start, stop);
}
"""
    )


def test_python_reads_like_python() -> None:
    spec = PythonRenderer(TARGET).render("row_sum", row_sum())
    assert (
        spec.source
        == """\
def row_sum(data0, data1, start, stop):
    for t0 in range(start, stop):
        v0 = t0 * 8
        acc0 = [0.0] * 4
        for r1 in range(2):
            v1 = load(data1, v0 + r1 * 4, 4, None)
            v2 = [add_float32(x, y) for x, y in zip(acc0, v1)]
            acc0 = v2
        v3 = halves(add_float32, acc0)
        data0[t0] = v3
"""
    )


def test_llvm_loops_are_in_canonical_form() -> None:
    spec = LLVMRenderer(TARGET).render("row_sum", row_sum())
    assert (
        spec.source
        == """\
define void @row_sum(ptr %buffers, i64 %start, i64 %stop) noinline nounwind "effort"="least" {
entry:
  %slot0 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %data0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %data1 = load ptr, ptr %slot1, align 8
  %runs1 = icmp slt i64 %start, %stop
  br i1 %runs1, label %t0.body, label %t0.done
t0.body:
  %t0 = phi i64 [ %start, %entry ], [ %t0.next, %r1.done ]
  %mul2 = mul nsw i64 %t0, 8
  br label %r1.body
r1.body:
  %r1 = phi i64 [ 0, %t0.body ], [ %r1.next, %r1.body ]
  %acc0 = phi <4 x float> [ splat (float 0.0), %t0.body ], [ %add7, %r1.body ]
  %mul3 = mul nsw i64 %r1, 4
  %add4 = add nsw i64 %mul2, %mul3
  %ptr5 = getelementptr inbounds float, ptr %data1, i64 %add4
  %load6 = load volatile <4 x float>, ptr %ptr5, align 4
  %add7 = fadd contract <4 x float> %acc0, %load6
  %r1.next = add nuw nsw i64 %r1, 1
  %again8 = icmp slt i64 %r1.next, 2
  br i1 %again8, label %r1.body, label %r1.done
r1.done:
  %half9 = shufflevector <4 x float> %add7, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %half10 = shufflevector <4 x float> %add7, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %add11 = fadd contract <2 x float> %half9, %half10
  %half12 = shufflevector <2 x float> %add11, <2 x float> poison, <1 x i32> <i32 0>
  %half13 = shufflevector <2 x float> %add11, <2 x float> poison, <1 x i32> <i32 1>
  %v14 = extractelement <1 x float> %half12, i64 0
  %v15 = extractelement <1 x float> %half13, i64 0
  %add16 = fadd contract float %v14, %v15
  %ptr17 = getelementptr inbounds float, ptr %data0, i64 %t0
  store float %add16, ptr %ptr17, align 4
  %t0.next = add nuw nsw i64 %t0, 1
  %again18 = icmp slt i64 %t0.next, %stop
  br i1 %again18, label %t0.body, label %t0.done
t0.done:
  ret void
}

@row_sum_entry = alias void (ptr, i64, i64), ptr @row_sum
"""
    )


def test_llvm_gets_parameter_attributes_if_its_passes_run() -> None:
    spec = LLVMRenderer(replace(TARGET, vector_bytes=64)).render("row_sum", row_sum(100))
    assert "define void @row_sum(ptr noalias align 4 %data0, ptr noalias align 4 %data1, i64 %start" in spec.source
    entry = spec.source[spec.source.index("define void @row_sum_entry") :]
    assert (
        entry
        == """\
define void @row_sum_entry(ptr %buffers, i64 %start, i64 %stop) noinline nounwind "prefer-vector-width"="512" {
entry:
  %slot0 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %data0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %data1 = load ptr, ptr %slot1, align 8
  tail call void @row_sum(ptr %data0, ptr %data1, i64 %start, i64 %stop)
  ret void
}
"""
    )


def test_debug_lines_count_the_uops_from_one() -> None:
    uops = row_sum()
    text = with_debug_info(LLVMRenderer(TARGET).render("row_sum", uops))
    where = uops.index(next(node for node in uops if node.op is Ops.LOAD)) + 1
    assert f"load volatile <4 x float>, ptr %ptr5, align 4, !dbg !{where + 16}" in text
    assert f"!{where + 16} = !DILocation(line: {where}, scope: !3)" in text


def llvm_lines(*roots: UOp) -> list[str]:
    return [line.text.strip() for line in LLVMRenderer(TARGET).render("kernel", linear(*roots)).lines]


def test_adjacent_elements_are_addressed_from_one_pointer() -> None:
    row, out, source = loop(8), pointer(0, f32, 16), pointer(1, f32, 16)
    first, second = load(source, row * 2), load(source, row * 2 + 1)
    lines = llvm_lines(out, source, row, store(out, row * 2 + 1, first + second), end(row))
    assert lines[lines.index("%mul1 = mul nsw i64 %g0, 2") :][:8] == [
        "%mul1 = mul nsw i64 %g0, 2",
        "%ptr2 = getelementptr inbounds float, ptr %data1, i64 %mul1",
        "%base3 = freeze ptr %ptr2",
        "%load4 = load volatile float, ptr %base3, align 4",
        "%ptr5 = getelementptr inbounds float, ptr %base3, i64 1",
        "%load6 = load volatile float, ptr %ptr5, align 4",
        "%add7 = fadd contract float %load4, %load6",
        "%ptr8 = getelementptr inbounds float, ptr %data0, i64 %mul1",
    ]


def test_a_sum_over_an_empty_loop_keeps_its_initial_value() -> None:
    """The registers that say so have names of their own, however many sums there are."""
    row, out, source = loop(8), pointer(0, f32, 8), pointer(1, f32, 8)
    body: list[UOp] = [out, source, row]
    total = UOp.const(f32, 0.0)
    for number in range(20):
        column = UOp.range(row, Axis(1 + number, AxisKind.REDUCE))
        acc = UOp(Ops.DEFINE_ACC, f32, (total,), number)
        step = UOp(Ops.ASSIGN, f32, (acc, acc + load(source, column)))
        total = UOp(Ops.RESULT, f32, (acc, step, column))
        body += [acc, column, step, end(column), total]
    lines = llvm_lines(*body, store(out, row, total), end(row))
    made = [line.split(" = ")[0] for line in lines[: lines.index("ret void")] if " = " in line]
    assert len(made) == len(set(made))
    merged = [line for line in lines if line.startswith("%after")]
    assert len(merged) == 20
    assert merged[0].endswith("= phi float [ 0.0, %g0.body ], [ %add4, %r1.body ]")


def test_no_pointer_is_outside_its_buffer() -> None:
    """The sum is written out where what it begins with may be no place in the buffer, and where others need it."""
    row, out, source = loop(16), pointer(0, f32, 16), pointer(1, f32, 16)
    before = row + -3
    lines = llvm_lines(out, source, row, store(out, row, load(source, before, valid=before >= 0)), end(row))
    assert any(line.endswith("= add nsw i64 %g0, -3") for line in lines)
    after = loop(12) * 2 + 4  # of which only some are in the buffer: the others are never read
    lines = llvm_lines(out, source, loop(12), store(out, loop(12), load(source, after)), end(loop(12)))
    assert any(line.endswith("= add nsw i64 %mul1, 4") for line in lines)


def test_values_used_once_nearby_are_inlined() -> None:
    row, column = loop(4, 0), loop(4, 1)
    out = pointer(0, f32, 16)
    outside, inside = row * 4, column + 1
    place = outside + inside
    uops = linear(out, row, outside, column, store(out, place, UOp.const(f32, 1.0)), end(column), end(row))
    assert inlinable(uops) == {inside, place}  # row * 4 would be computed again in the inner loop


@pytest.mark.parametrize(
    ("value", "dtype", "c", "llvm"),
    [
        (0.1, f32, "0.1f", "0x3FB99999A0000000"),
        (1.0, f32, "1.0f", "1.0"),
        (-0.0, f32, "-0.0f", "-0.0"),
        (1e30, f32, "1e+30f", "0x46293E5940000000"),
        (math.inf, f32, "INFINITY", "0x7FF0000000000000"),
        (1e40, f32, "INFINITY", "0x7FF0000000000000"),
        (math.nan, dtypes.float64, "NAN", "0x7FF8000000000000"),
        (0.1, dtypes.float64, "0.1", "0x3FB999999999999A"),
        (1.5, dtypes.float16, "0x3e00", "0xH3E00"),
        (70000.0, dtypes.float16, "0x7c00", "0xH7C00"),
        (1.5, dtypes.bfloat16, "0x3fc0", "16320"),
        (-(1 << 63), dtypes.int64, "INT64_MIN", "-9223372036854775808"),
        (1 << 40, dtypes.int64, "1099511627776ll", "1099511627776"),
        (7, dtypes.uint32, "7u", "7"),
        (True, dtypes.bool, "true", "true"),
        (3, dtypes.int32.vec(4), "3", "splat (i32 3)"),
    ],
)
def test_constants(value: float, dtype: DType, c: str, llvm: str) -> None:
    assert (c_literal(value, dtype), llvm_literal(value, dtype)) == (c, llvm)


def test_a_kernel_without_work_is_still_a_kernel() -> None:
    for renderer in (CRenderer(TARGET), LLVMRenderer(TARGET), PythonRenderer(TARGET)):
        spec = renderer.render("nothing", [])
        assert (spec.n_buffers, spec.writes, spec.thread_extent) == (0, frozenset(), None)


def large_copy(lanes: int, stride: int, size: int = 1 << 23) -> list[UOp]:
    out, source = pointer(0, f32, size), pointer(1, f32, size)
    step = loop(size // stride)
    return linear(out, source, step, store(out, step * stride, load(source, step * stride, lanes)), end(step))


def test_large_results_in_whole_lines_bypass_the_caches() -> None:
    assert len(streaming_stores(large_copy(16, 16), MACHINE)) == 1
    assert streaming_stores(large_copy(8, 8), MACHINE) == set()  # half a line at a time
    assert streaming_stores(large_copy(16, 24), MACHINE) == set()  # not aligned to its width
    assert streaming_stores(large_copy(16, 16, 1 << 20), MACHINE) == set()  # small enough for the caches
    spec = LLVMRenderer(TARGET).render("copy", large_copy(16, 16))
    assert spec.aligned == {0} and "align 64, !nontemporal" in spec.source and "fence seq_cst" in spec.source
    assert "nontemporal" not in LLVMRenderer(TARGET, streaming=False).render("copy", large_copy(16, 16)).source


def test_halves_of_a_line_may_be_stored_side_by_side() -> None:
    out = pointer(0, f32, 1 << 23)
    step = loop(1 << 19)
    zero = UOp.const(f32.vec(8), 0.0)
    both = [store(out, step * 16, zero), store(out, step * 16 + 8, zero)]
    assert streaming_stores(linear(out, step, *both, end(step)), MACHINE) == set(both)


def test_rows_of_a_tile_are_counted_separately() -> None:
    out = pointer(0, f32, 1 << 23)
    step = loop(1 << 8)
    zero = UOp.const(f32.vec(16), 0.0)
    whole = [store(out, step * 16 + row * 4096, zero) for row in range(3)]
    half = store(out, step * 16 + 3 * 4096, UOp.const(f32.vec(8), 0.0))
    assert streaming_stores(linear(out, step, *whole, half, end(step)), MACHINE) == set(whole)


def test_rewritten_or_read_buffers_do_not_bypass_the_caches() -> None:
    out = pointer(0, f32, 1 << 23)
    step, again = loop(1 << 19, 0), loop(3, 1, AxisKind.REDUCE)
    zero = UOp.const(f32.vec(16), 0.0)
    assert (
        streaming_stores(linear(out, step, again, store(out, step * 16, zero), end(again), end(step)), MACHINE) == set()
    )
    doubled = load(out, step * 16, 16) * 2.0
    assert streaming_stores(linear(out, step, store(out, step * 16, doubled), end(step)), MACHINE) == set()


def test_factors_of_index_arithmetic() -> None:
    i, j = loop(5, 0), loop(5, 1)
    assert [factor(x) for x in (i, i * 48, i * 48 + j * 32, i * 48 + 8, index_const(0), i * 4 << index_const(3))] == [
        1,
        48,
        16,
        8,
        0,
        32,
    ]


def test_the_key_is_the_same_in_every_process() -> None:
    import subprocess
    import sys

    uops, _ = elementwise([f32], lambda x: [x[0] * 2.0], 4)
    here = CRenderer(TARGET, "cc 1").render("twice", uops).key
    code = (
        "from tests.unit.renderer.test_text import *\n"
        "uops, _ = elementwise([f32], lambda x: [x[0] * 2.0], 4)\n"
        "print(CRenderer(TARGET, 'cc 1').render('twice', uops).key)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == here
