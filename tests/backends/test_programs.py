"""Whole linear programs on every device: loops, accumulators, masks, vectors, scratch memory, THREAD axes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.backends.programs import (
    DEVICES,
    OPENCL_CPUS,
    WIDTHS_OF_OPENCL,
    call,
    compiled,
    device,
    elementwise,
    end,
    from_bytes,
    linear,
    load,
    loop,
    pointer,
    store,
)
from tinyexplore.device import Buffer
from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer import RenderError
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

f32 = dtypes.float32
every_device = pytest.mark.parametrize("name", (*DEVICES, *OPENCL_CPUS))


def accumulator(init: UOp, number: int = 0) -> UOp:
    return UOp(Ops.DEFINE_ACC, init.dtype, (init,), number)


def assign(acc: UOp, value: UOp) -> UOp:
    return UOp(Ops.ASSIGN, acc.dtype, (acc, value))


def result(acc: UOp, assigned: UOp, *ranges: UOp) -> UOp:
    return UOp(Ops.RESULT, acc.dtype, (acc, assigned, *ranges))


def hreduce(vector: UOp, op: Ops) -> UOp:
    return UOp(Ops.HREDUCE, vector.dtype.scalar, (vector,), op)  # type: ignore[union-attr]


def gep(vector: UOp, lane: int) -> UOp:
    return UOp(Ops.GEP, vector.dtype.scalar, (vector,), lane)  # type: ignore[union-attr]


def vectorize(*lanes: UOp) -> UOp:
    return UOp(Ops.VECTORIZE, lanes[0].dtype.vec(len(lanes)), lanes)  # type: ignore[union-attr]


@every_device
def test_a_row_sum_keeps_its_accumulator_across_the_inner_loop(name: str) -> None:
    out, source = pointer(0, f32, 3), pointer(1, f32, 12)
    row, column = loop(3, 0), loop(4, 1, AxisKind.REDUCE)
    acc = accumulator(UOp.const(f32, 1.0))
    step = assign(acc, acc + load(source, row * 4 + column))
    total = result(acc, step, column)
    uops = linear(out, source, row, acc, column, step, end(column), total, store(out, row, total), end(row))
    (found,) = call(compiled(name, uops), [(f32, 3)], [(f32, [float(i) for i in range(12)])])
    assert found == [7.0, 23.0, 39.0]


@every_device
def test_two_reductions_one_after_the_other_share_a_row(name: str) -> None:
    out, source = pointer(0, f32, 2), pointer(1, f32, 8)
    row, first, second = loop(2, 0), loop(4, 1, AxisKind.REDUCE), loop(4, 2, AxisKind.REDUCE)
    high = accumulator(UOp.const(f32, -float("inf")), 0)
    high_step = assign(high, high.maximum(load(source, row * 4 + first)))
    top = result(high, high_step, first)
    total = accumulator(UOp.const(f32, 0.0), 1)
    total_step = assign(total, total + (load(source, row * 4 + second) - top))
    answer = result(total, total_step, second)
    uops = linear(out, source, row, row * 4, high, first, high_step, end(first), top)
    uops = linear(*uops, total, second, total_step, end(second), answer, store(out, row, answer), end(row))
    (found,) = call(compiled(name, uops), [(f32, 2)], [(f32, [1.0, 5.0, 2.0, 0.0, -1.0, -2.0, -3.0, -4.0])])
    assert found == [-12.0, -6.0]


@every_device
def test_an_accumulator_read_before_its_assignment_keeps_the_value_read(name: str) -> None:
    out, source = pointer(0, dtypes.int32, 4), pointer(1, dtypes.int32, 4)
    step = loop(4)
    acc = accumulator(UOp.const(dtypes.int32, 100))
    before = acc * 2  # must be computed before the assignment below
    assigned = assign(acc, acc + load(source, step))
    uops = linear(out, source, acc, step, before, assigned, store(out, step, before), end(step))
    (found,) = call(compiled(name, uops), [(dtypes.int32, 4)], [(dtypes.int32, [1, 2, 3, 4])])
    assert found == [200, 202, 206, 212]


@every_device
def test_int64_values_read_from_an_accumulator_are_not_moved_past_its_assignment(name: str) -> None:
    out = pointer(0, dtypes.int64, 4)
    step = loop(4)
    acc = accumulator(UOp.const(dtypes.int64, 5))
    before = acc + step
    assigned = assign(acc, acc * 3)
    uops = linear(out, acc, step, before, assigned, store(out, step, before), end(step))
    (found,) = call(compiled(name, uops), [(dtypes.int64, 4)], [])
    assert found == [5, 16, 47, 138]


@every_device
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", [f32, dtypes.float64, dtypes.int32, dtypes.uint8, dtypes.bool, dtypes.bfloat16])
def test_lanes_that_are_not_valid_load_zero_and_are_not_stored(name: str, dtype: DType, lanes: int) -> None:
    size = 2 * lanes - 1  # the last lane of the second step lies outside
    out, source = pointer(0, dtype, size), pointer(1, dtype, size)
    step = loop(2)
    position = vectorize(*(step * lanes + lane for lane in range(lanes)))
    inside = position < UOp.const(position.dtype, size)
    even = vectorize(*(index_const(lane % 2) for lane in range(lanes))).eq(UOp.const(position.dtype, 0))
    value = load(source, step * lanes, lanes, inside)
    uops = linear(out, source, step, store(out, step * lanes, value, inside & even), end(step))
    kind = {dtypes.bool: bool, dtypes.int32: int, dtypes.uint8: int}.get(dtype, float)
    values = [kind(i % 7 + 1) for i in range(size)]
    before = [kind(0) if i % 3 else kind(1) for i in range(size)]
    (found,) = call(compiled(name, uops), [(dtype, before)], [(dtype, values)])
    assert found == [values[i] if i % lanes % 2 == 0 else before[i] for i in range(size)]


@every_device
@pytest.mark.parametrize("lanes", [1, 4])
def test_one_condition_can_hold_for_all_lanes(name: str, lanes: int) -> None:
    out, source = pointer(0, f32, 5 * lanes), pointer(1, f32, 3 * lanes)
    step = loop(5)
    shifted = step - 1
    valid = (index_const(-1) < shifted) & (shifted < 3)
    value = load(source, shifted * lanes, lanes, valid)
    uops = linear(out, source, step, store(out, step * lanes, value, step < 4), end(step))
    values = [float(i + 1) for i in range(3 * lanes)]
    (found,) = call(compiled(name, uops), [(f32, [9.0] * (5 * lanes))], [(f32, values)])
    assert found == [0.0] * lanes + values + [9.0] * lanes


HALVED = (f32, dtypes.int64, dtypes.bool, dtypes.float16)
HALVES = [
    (name, dtype, op, lanes)
    for dtype in HALVED
    for place, op in enumerate((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN))
    for lanes in (2, 4, 8, 16)
    for name in (*DEVICES, *OPENCL_CPUS)
    if name not in OPENCL_CPUS or WIDTHS_OF_OPENCL or (HALVED[place], lanes) == (dtype, 2 << place)
]


@pytest.mark.parametrize("name, dtype, op, lanes", HALVES, ids=lambda value: getattr(value, "name", str(value)))
def test_all_lanes_combine_in_halves(name: str, dtype: DType, op: Ops, lanes: int) -> None:
    from tinyexplore.runtime.python import halves
    from tinyexplore.uop.semantics import evaluate

    out, source = pointer(0, dtype, 1), pointer(1, dtype, lanes)
    uops = linear(out, source, store(out, 0, hreduce(load(source, 0, lanes), op)))
    raw = [0.5, 3.0, -1.25, 2.0, 0.1875, 7.0, -0.5, 1.5, 1.0, 2.5, -3.0, 0.75, 1.0, -1.0, 1.25, 0.5][:lanes]
    values = (
        [x != 0.5 for x in raw]
        if dtype is dtypes.bool
        else raw
        if dtypes.is_float(dtype)
        else [int(x * 16) for x in raw]
    )
    (found,) = call(compiled(name, uops), [(dtype, 1)], [(dtype, values)])
    assert found == [halves(lambda x, y: evaluate(op, dtype, x, y), values)]


@every_device
def test_lanes_are_taken_and_put_together_in_any_order(name: str) -> None:
    for dtype in (f32, dtypes.bool, dtypes.int16):
        out, source = pointer(0, dtype, 8), pointer(1, dtype, 8)
        low, high = load(source, 0, 4), load(source, 4, 4)
        mixed = [gep(low, 3), gep(high, 0), gep(low, 1), gep(high, 2)]
        same = vectorize(*[gep(high, 1)] * 4)
        uops = linear(out, source, store(out, 0, vectorize(*mixed)), store(out, 4, same))
        values = (
            [bool(i & 2) ^ (i == 4) for i in range(8)]
            if dtype is dtypes.bool
            else [dtype.itemsize * i for i in range(8)]
        )
        values = [float(x) for x in values] if dtype is f32 else values
        (found,) = call(compiled(name, uops), [(dtype, 8)], [(dtype, values)])
        assert found == [values[i] for i in (3, 4, 1, 6, 5, 5, 5, 5)]


@every_device
def test_scratch_memory_carries_values_between_loops(name: str) -> None:
    for size in (64, 300_000):  # on the stack; too large for it
        out, source = pointer(0, f32, 4), pointer(1, f32, 4)
        scratch = UOp(Ops.DEFINE_LOCAL, PtrDType(f32, size, "local"), (), "tile")
        write, read = loop(4, 0), loop(4, 1)
        kept = store(scratch, write * (size // 4), load(source, write) * 2.0)
        reversed_position = read * -(size // 4) + 3 * (size // 4)
        uops = linear(out, source, scratch, write, kept, end(write))
        uops = linear(*uops, read, store(out, read, load(scratch, reversed_position)), end(read))
        (found,) = call(compiled(name, uops), [(f32, 4)], [(f32, [1.0, 2.0, 3.0, 4.0])])
        assert found == [8.0, 6.0, 4.0, 2.0]


@pytest.mark.parametrize("name", DEVICES)  # OpenCL's work-items divide the axis among themselves
def test_a_call_runs_its_range_of_the_thread_axis(name: str) -> None:
    out = pointer(0, dtypes.int32, 12)
    outer, inner = loop(6, 0, AxisKind.THREAD), loop(2, 1)
    value = (outer * 10 + inner).cast(dtypes.int32)
    uops = linear(out, outer, inner, store(out, outer * 2 + inner, value), end(inner), end(outer))
    program = compiled(name, uops)
    assert program.spec.thread_extent == 6
    (found,) = call(program, [(dtypes.int32, [-1] * 12)], [], 2, 5)
    assert found == [-1] * 4 + [20, 21, 30, 31, 40, 41] + [-1] * 2
    (found,) = call(program, [(dtypes.int32, [-1] * 12)], [], 3, 3)
    assert found == [-1] * 12


@every_device
def test_a_loop_bound_may_be_another_loop_index(name: str) -> None:
    out = pointer(0, dtypes.int64, 5)
    outer = loop(5, 0)
    inner = UOp.range(outer, loop(1, 1, AxisKind.REDUCE).arg)  # runs not at all for the first row
    acc = accumulator(UOp.const(dtypes.int64, 0))
    step = assign(acc, acc + inner)
    total = result(acc, step, inner)
    uops = linear(out, outer, acc, inner, step, end(inner), total, store(out, outer, total), end(outer))
    (found,) = call(compiled(name, uops), [(dtypes.int64, 5)], [])
    assert found == [0, 0, 1, 3, 6]


@every_device
def test_a_lane_of_a_constant_vector_is_the_constant(name: str) -> None:
    def build(sources: list[UOp]) -> list[UOp]:
        return [gep(UOp(Ops.CONST, f32.vec(2), (), -1.5), 1).alu(Ops.MUL, sources[0])]

    uops, outputs = elementwise([f32], build, 3)
    (found,) = call(compiled(name, uops), [(outputs[0], 3)], [(f32, [1.0, -2.0, 4.0])])
    assert found == [-1.5, 3.0, -6.0]


@every_device
def test_vector_accumulators_make_a_small_matmul(name: str) -> None:
    m, n, k = 3, 8, 5
    out, a, b = pointer(0, f32, m * n), pointer(1, f32, m * k), pointer(2, f32, k * n)
    row, inner = loop(m, 0, AxisKind.THREAD), loop(k, 1, AxisKind.REDUCE)
    halves = [accumulator(UOp.const(f32.vec(4), 0.0), number) for number in (0, 1)]
    left = load(a, row * k + inner).broadcast(4)
    steps = [assign(h, left.alu(Ops.MULACC, load(b, inner * n + 4 * i, 4), h)) for i, h in enumerate(halves)]
    totals = [result(h, s, inner) for h, s in zip(halves, steps, strict=True)]
    stores = [store(out, row * n + 4 * i, total) for i, total in enumerate(totals)]
    uops = linear(out, a, b, row, *halves, inner, *steps, end(inner), *totals, *stores, end(row))
    left_values = [float(i % 4) for i in range(m * k)]
    right_values = [float(i % 5 - 2) for i in range(k * n)]
    (found,) = call(compiled(name, uops), [(f32, m * n)], [(f32, left_values), (f32, right_values)], 0, m)
    expected = [
        sum(left_values[i * k + q] * right_values[q * n + j] for q in range(k)) for i in range(m) for j in range(n)
    ]
    assert found == expected


@every_device
def test_threads_run_parts_at_the_same_time(name: str) -> None:
    uops, outputs = elementwise([f32], lambda x: [x[0] * 2.0 + 1.0], 64)
    outer = loop(64, 0, AxisKind.THREAD)
    out, source = pointer(0, f32, 64), pointer(1, f32, 64)
    uops = linear(out, source, outer, store(out, outer, load(source, outer) * 2.0 + 1.0), end(outer))
    program = compiled(name, uops)

    target = Buffer(program.spec.target.name, 64, f32).allocate()
    source_buffer = Buffer.from_memory(program.spec.target.name, f32, memoryview(bytearray(256)))
    run = program.bind([target, source_buffer])
    threads = [threading.Thread(target=run, args=(part * 16, part * 16 + 16)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(target.memoryview().cast("f")) == [1.0] * 64


@every_device
def test_bound_buffers_stay_alive_and_readonly_buffers_are_not_written(name: str) -> None:
    out, source = pointer(0, f32, 2), pointer(1, f32, 2)
    step = loop(2)
    program = compiled(name, linear(out, source, step, store(out, step, load(source, step)), end(step)))

    home = program.spec.target.name
    source_buffer = Buffer.from_memory(home, f32, bytearray(b"\0\0\x80?\0\0\0@"))
    target = Buffer(home, 2, f32).allocate()
    view = target.memoryview().cast("f")
    run = program.bind([target, source_buffer])
    del target, source_buffer, program
    run(0, 0)
    assert list(view) == [1.0, 2.0]
    again = compiled(name, linear(out, source, step, store(out, step, load(source, step)), end(step)))
    with pytest.raises(ValueError, match="may only be read"):
        again.bind([Buffer.from_memory(home, f32, bytes(8)), Buffer.from_memory(home, f32, bytes(8))])
    with pytest.raises(ValueError, match="takes 2 buffers; 1 were given"):
        again.bind([Buffer(home, 2, f32)])


@every_device
def test_an_invalid_operation_of_a_linear_program_is_named(name: str) -> None:
    out = pointer(0, f32, 1)
    bad = UOp(Ops.REDUCE, f32, (UOp.const(f32, 1.0),), Ops.ADD)
    with pytest.raises(RenderError, match="REDUCE"):
        device(name).renderer.render("bad", linear(out, store(out, 0, bad)))
    with pytest.raises(RenderError, match="positions"):
        device(name).renderer.render(
            "bad", linear(pointer(1, f32, 1), store(pointer(1, f32, 1), 0, UOp.const(f32, 1.0)))
        )


@every_device
def test_variables_are_arguments_after_the_buffers(name: str) -> None:
    n, m = (
        UOp(Ops.DEFINE_VAR, dtypes.int64, (), (label, 0, 9)) for label in ("int", "x y")
    )  # whatever a user calls it
    out = pointer(0, f32, 9)
    step = UOp.range(n, Axis(0, AxisKind.GLOBAL))
    program = compiled(name, linear(out, n, m, store(out, step, (m * step).cast(f32)), end(step)), "arguments")
    assert program.spec.variables == (n, m)
    for count, factor in ((3, 2), (0, 1), (9, 0)):
        buffer = Buffer(device(name).name, 9, f32).copyin(bytes(36))
        program.bind([buffer], (count, factor))(0, 1)
        assert from_bytes(buffer.copyout(), f32) == [float(i * factor) if i < count else 0.0 for i in range(9)]
    with pytest.raises(ValueError, match="takes int, x y; 0"):
        program.bind([buffer])


@every_device
def test_a_threads_axis_may_end_at_a_variable(name: str) -> None:
    n = UOp(Ops.DEFINE_VAR, dtypes.int64, (), ("n", 1, 9))
    out = pointer(0, f32, 36)
    step = UOp.range(n * index_const(4), Axis(0, AxisKind.THREAD))
    program = compiled(name, linear(out, n, store(out, step, step.cast(f32)), end(step)), "threads")
    if name not in OPENCL_CPUS:
        assert (program.spec.thread_extent, program.spec.extent((3,))) == (36, 12)
    buffer = Buffer(program.spec.target.name, 36, f32).copyin(bytes(144))
    program.bind([buffer], (3,))(0, 12)
    assert from_bytes(buffer.copyout(), f32) == [float(i) if i < 12 else 0.0 for i in range(36)]


def every_uop_that_computes(uops: list[UOp]) -> set[Any]:
    silent = (Ops.CONST, Ops.BARRIER, Ops.DEFINE_GLOBAL, Ops.DEFINE_ACC, Ops.RESULT)
    return {node for node in uops if node.op not in silent}


@every_device
def test_every_uop_has_a_line_and_every_line_of_the_loop_its_uops(name: str) -> None:
    out, source = pointer(0, f32, 16), pointer(1, f32, 16)
    step = loop(4)
    x = load(source, step * 4, 4)
    value = (x < x * 0.5).where(x.alu(Ops.SQRT), x + 1.0)
    uops = linear(out, source, step, store(out, step * 4, value), end(step))
    opened = device(name)
    spec = opened.renderer.render("kernel", uops)
    named = {node for line in spec.lines for node in line.uops}
    assert every_uop_that_computes(uops) <= named
    for language, lines in opened.listings(spec):
        listed = {node for line in lines for node in line.uops}
        assert listed <= set(uops), language
        assert {Ops.LOAD, Ops.STORE} <= {node.op for node in listed}, language
        assert all(line.uops for line in lines if line.text.startswith("    ")), language


@every_device
def test_equal_programs_have_equal_keys_and_other_programs_others(name: str) -> None:
    renderer = device(name).renderer
    one, _ = elementwise([f32], lambda x: [x[0] + 1.0], 8)
    other, _ = elementwise([f32], lambda x: [x[0] + 2.0], 8)
    assert renderer.render("kernel", one).key == renderer.render("kernel", list(one)).key
    assert renderer.render("kernel", one).key != renderer.render("kernel", other).key
