"""Lowering: small golden programs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, numbers, softmax
from tests.support.kernels import MACHINE, kernel_of, unread
from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore.codegen import PASSES, GraphPass, Rewrite, bytes_moved, flop_count, lower
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.rewrites.narrow_comparisons import NARROW_COMPARISONS
from tinyexplore.codegen.rewrites.unroll import copies
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import Recorder, recording
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, graph_rewrite, index_const
from tinyexplore.uop.spec import AST_SPEC, LINEAR_SPEC, SpecError, verify
from tinyexplore.util import Context


def text(uops: tuple[UOp, ...]) -> list[str]:
    """The program, a line each, constants inlined."""
    number = {node: place for place, node in enumerate(node for node in uops if node.op is not Ops.CONST)}
    lines = []
    depth = 0
    for node in uops:
        if node.op is Ops.CONST:
            continue
        if node.op is Ops.ENDRANGE:
            depth -= 1
        sources = ", ".join(str(src.arg) if src.op is Ops.CONST else f"%{number[src]}" for src in node.src)
        lanes = f".{node.dtype.count}" if node.dtype.count > 1 else ""
        lines.append(f"{'  ' * depth}%{number[node]} = {node.op.name}{lanes}({sources})")
        if node.op is Ops.RANGE:
            depth += 1
    return lines


def test_a_sum_of_rows_without_opts() -> None:
    kernel = kernel_of(from_numpy(numbers(4, 6)).reduce(Ops.ADD, (1,)))
    assert text(lower(kernel)) == [
        "%0 = DEFINE_GLOBAL()",
        "%1 = DEFINE_GLOBAL()",
        "%2 = RANGE(4)",
        "  %3 = INDEX(%0, %2)",
        "  %4 = DEFINE_ACC(0.0)",
        "  %5 = MUL(%2, 6)",
        "  %6 = RANGE(6)",
        "    %7 = ADD(%5, %6)",
        "    %8 = INDEX(%1, %7)",
        "    %9 = LOAD(%8)",
        "    %10 = ADD(%4, %9)",
        "    %11 = ASSIGN(%4, %10)",
        "  %12 = ENDRANGE(%6)",
        "  %13 = RESULT(%4, %11, %6)",
        "  %14 = STORE(%3, %13)",
        "%15 = ENDRANGE(%2)",
    ]


def test_an_addition_in_vectors() -> None:
    x = from_numpy(numbers(64))
    assert text(lower(apply_heuristics(kernel_of(x.alu(Ops.ADD, x))))) == [
        "%0 = DEFINE_GLOBAL()",
        "%1 = DEFINE_GLOBAL()",
        "%2 = RANGE(4)",
        "  %3 = MUL(%2, 16)",
        "  %4 = INDEX(%0, %3)",
        "  %5 = INDEX(%1, %3)",
        "  %6 = LOAD.16(%5)",
        "  %7 = ADD.16(%6, %6)",
        "  %8 = STORE(%4, %7)",
        "%9 = ENDRANGE(%2)",
    ]


def test_loops_of_a_softmax_nest_one_after_another_in_the_row() -> None:
    uops = lower(kernel_of(softmax(from_numpy(numbers(8, 10)))))
    assert [node.op.name for node in uops if node.op in (Ops.RANGE, Ops.ENDRANGE)] == [
        "RANGE",
        *("RANGE", "ENDRANGE") * 4,
        "ENDRANGE",
    ]


@pytest.mark.parametrize(("rows", "asks"), [(512, True), (32, False)])
def test_values_used_after_sums_are_prefetched_before_and_loaded_after_them(rows: int, asks: bool) -> None:
    gradient = matmul(unread(rows, 64), unread(64, 512))
    mean = unread(rows, 512).alu(Ops.ADD, gradient)
    weight = unread(rows, 512).alu(Ops.ADD, mean.alu(Ops.NEG))
    (item,) = create_schedule([mean, weight])
    uops = lower(apply_heuristics(Kernel.of(item.ast, MACHINE)))
    verify(uops, LINEAR_SPEC)
    begun, summed = [(place, node) for place, node in enumerate(uops) if node.op is Ops.RANGE][-1]
    done = next(place for place, node in enumerate(uops) if node.op is Ops.ENDRANGE and node.src[0] is summed)
    stored = [node.src[0].src[0].arg for node in uops if node.op is Ops.STORE]
    read = [place for place, node in enumerate(uops) if node.op is Ops.LOAD and summed not in node.ranges]
    asked = [place for place, node in enumerate(uops) if node.op is Ops.PREFETCH]
    assert stored == [0, 1] * (len(stored) // 2)  # nothing is held until the other result is stored
    assert len(read) == len(stored) and done < min(read)
    assert len(asked) == (len(read) if asks else 0) and max(asked, default=-1) < begun


def test_a_cold_path_is_in_a_branch() -> None:
    """Sine and cosine of one angle share it; integers of 64 bits are what only the long reduction computes with."""
    x = from_numpy(numbers(4, 32))
    kernel = apply_heuristics(kernel_of(x.alu(Ops.SIN).alu(Ops.MUL, x.alu(Ops.COS)).reduce(Ops.ADD, (1,))))
    uops = lower(kernel)
    verify(uops, LINEAR_SPEC)
    inside: list[UOp] = []
    rare, reductions = 0, 0
    for node in uops:
        if node.op is Ops.RANGE:
            inside.append(node)
            rare += node.arg.kind is AxisKind.RARE
        elif node.op is Ops.ENDRANGE:
            inside.pop()
        elif node.op is Ops.MUL and node.dtype.scalar is dtypes.uint64:
            assert inside[-1].arg.kind is AxisKind.RARE
            reductions += 1
    assert rare > 0
    assert reductions == 3 * rare


@pytest.mark.parametrize("greatest", [100, (1 << 31) - 8, (1 << 31) - 7, 1 << 40])
@pytest.mark.parametrize("op", [Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE])
def test_masks_compare_indices_as_int32_if_they_fit(op: Ops, greatest: int) -> None:
    lanes, place = dtypes.index.vec(8), UOp(Ops.DEFINE_VAR, dtypes.index, (), ("i", 0, greatest))
    steps = UOp(Ops.VECTORIZE, lanes, tuple(index_const(step) for step in range(8)))
    for limit in (0, 5, 97, greatest):
        mask = (place.broadcast(8) + steps).alu(op, UOp.const(lanes, limit))
        narrow = graph_rewrite(mask, NARROW_COMPARISONS)
        fits = greatest + 7 < 1 << 31
        assert narrow.src[0].dtype is (dtypes.int32.vec(8) if fits else lanes)
        first = np.array([0, limit, max(0, limit - 3), greatest]).reshape(4, 1)
        np.testing.assert_array_equal(in_lanes(narrow, first), in_lanes(mask, first))


def in_lanes(mask: UOp, first: np.ndarray) -> np.ndarray:
    """What a mask is where the scalar in it is `first`."""
    vectors = mask.find(Ops.VECTORIZE, Ops.DEFINE_VAR)
    steps = {node: np.arange(8) if node.src and node.src[0].op is Ops.CONST else first for node in vectors}
    return evaluate_in_numpy(mask, {node: step.astype(node.dtype.scalar.name) for node, step in steps.items()})


def test_every_pass_has_a_unique_name_and_a_description() -> None:
    assert len({step.name for step in PASSES}) == len(PASSES)
    for step in PASSES:
        for part in step.table.rules if isinstance(step, Rewrite) else (step,):
            assert part.law, part.name
            assert part.file.endswith(".py") and part.line > 0
    rules = [rule for step in PASSES if isinstance(step, Rewrite) for rule in step.table.rules]
    assert [rule.name for rule in rules if not (rule.doc or rule.result is not None)] == []


def test_each_pass_accepts_the_spec_of_the_previous_one() -> None:
    assert PASSES[0].before is AST_SPEC
    assert [step.before for step in PASSES[1:]] == [step.after for step in PASSES[:-1]]
    assert PASSES[-1].after is LINEAR_SPEC


def test_no_rule_is_a_transform_in_disguise() -> None:
    """What looks at the whole of a graph is a transform; a SINK of SINKs is flattened by a rule."""
    rules = {rule for step in PASSES if isinstance(step, Rewrite) for rule in step.table.rules}
    whole = {rule.name for rule in rules if rule.pattern.ops and Ops.SINK in rule.pattern.ops}
    assert whole == {"flatten_sink"}


def test_a_pass_that_breaks_its_spec_is_named() -> None:
    def forget_loops(sink: UOp, lowering: Lowering) -> UOp:
        return UOp(Ops.SINK, dtypes.void, tuple(src.src[1] for src in sink.src))

    careless = GraphPass("careless", forget_loops, AST_SPEC, AST_SPEC)
    kernel = kernel_of(unread(8, 8).alu(Ops.NEG))
    with Context(SPEC=1), pytest.raises(SpecError, match="ast, made by 'careless'.*SINK"):
        lower(kernel, (careless, *PASSES))


def test_the_register_tile_keeps_24_accumulators_and_passes_the_spec() -> None:
    uops = lower(apply_heuristics(kernel_of(matmul(from_numpy(numbers(60, 64)), from_numpy(numbers(64, 64))))))
    verify(uops, LINEAR_SPEC)
    assert sum(node.op is Ops.DEFINE_ACC for node in uops) == 24
    assert sum(node.op is Ops.MULACC for node in uops) == 24


def test_cost_counts_values_and_not_indices() -> None:
    kernel = kernel_of(matmul(from_numpy(numbers(8, 10)), from_numpy(numbers(10, 12))))
    assert flop_count(kernel.ast) == 2 * 8 * 10 * 12
    assert bytes_moved(kernel.ast) == 4 * (80 + 120 + 96)
    assert MACHINE.lanes(kernel.vector_dtype) == 16


def test_adjacent_results_are_interleaved_in_registers() -> None:
    x, y = from_numpy(numbers(64, 16)), from_numpy(numbers(64, 32))
    twice = x.reshape((64, 16, 1)).expand((64, 16, 2)).reshape((64, 32))
    uops = lower(apply_heuristics(kernel_of(twice.alu(Ops.MUL, y), MACHINE)))
    assert [node.src[1].dtype.count for node in uops if node.op is Ops.STORE] == [MACHINE.lanes(x.dtype)] * 2


@pytest.mark.parametrize(
    "graph",
    (
        lambda: matmul(from_numpy(numbers(40, 24)), from_numpy(numbers(24, 64))),
        lambda: softmax(from_numpy(numbers(30, 70))),
        lambda: from_numpy(numbers(32, 48)).permute((1, 0)).contiguous(),
        lambda: from_numpy(numbers(6, 50)).pad(((0, 0), (1, 1))).window(1, 3, 2, 1).reduce(Ops.MAX, (2,)),
    ),
    ids=("matmul", "softmax", "transposition", "pool"),
)
def test_recording_does_not_change_the_program(graph: Callable[[], LazyBuffer]) -> None:
    kernel = apply_heuristics(kernel_of(graph()))
    assert kernel.applied
    recorder = Recorder()
    with recording(recorder):
        told = lower(kernel)
    assert recorder.events
    assert told == lower(kernel)


def test_unrolled_copies_equal_substitution() -> None:
    tile = [UOp.range(size, Axis(number, AxisKind.UPCAST)) for number, size in enumerate((3, 4))]
    loop = UOp.range(10, Axis(2, AxisKind.GLOBAL))
    wide = (loop * 12 + tile[0] * 4) + tile[1]
    closed = UOp(Ops.REDUCE, wide.dtype, (tile[1] + loop, tile[1]), Ops.ADD)
    for node in (wide // 8, (wide % 8) * (tile[1] // 2) + closed, tile[1] * 2, closed):
        steps = product(*(range(axis.size) for axis in tile))
        one_by_one = [node.with_axes(dict(zip(tile, map(index_const, step))), how="") for step in steps]
        assert copies(node, tile) == one_by_one
