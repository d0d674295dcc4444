"""IR values as text."""

from __future__ import annotations

import pytest

from tests.explore import toy
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.explore.recording.descriptions import describe, expr_text, uops_listing
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

i = UOp.range(8, Axis(0, AxisKind.GLOBAL))
j = UOp.range(4, Axis(1, AxisKind.REDUCE))
data = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 64), (), 1)
load = UOp(Ops.LOAD, dtypes.float32, (data.index(i * 384 + j),))
n = UOp(Ops.DEFINE_VAR, dtypes.index, (), ("n", 1, 9))


@pytest.mark.parametrize(
    ("uop", "text"),
    [
        (i * 384 + j, "g0*384 + r1"),
        (i * (j + 1), "g0*(r1 + 1)"),
        ((i + j) + n, "g0 + r1 + n"),
        (i + (j + n), "g0 + r1 + n"),
        (i // (j // 2), "g0//(r1//2)"),
        (i - j, "g0 - r1"),
        (i - (j + n), "g0 - (r1 + n)"),
        (i + -3, "g0 - 3"),
        ((i < 3) & (j < 2), "(g0 < 3) & (r1 < 2)"),
        ((i + 1) % 4, "(g0 + 1)%4"),
        (load, "data1[g0*384 + r1]"),
        (UOp(Ops.LOAD, dtypes.float32, (data.index(i, i < 3),)), "data1[g0 if g0 < 3]"),
        (load * 0.5 + 1e-5, "data1[g0*384 + r1]*0.5 + 1e-05"),
        (load + load.alu(Ops.NEG), "data1[g0*384 + r1] - data1[g0*384 + r1]"),
        (load.alu(Ops.EXP), "exp(data1[g0*384 + r1])"),
        (load.cast(dtypes.int32), "int32(data1[g0*384 + r1])"),
        (load.maximum(0.0), "max(data1[g0*384 + r1], 0.0)"),
        ((i < 3).where(load, 0.0), "data1[g0*384 + r1] if g0 < 3 else 0.0"),
        (UOp(Ops.REDUCE, dtypes.float32, (load, j), Ops.ADD), "sum(data1[g0*384 + r1] for r1)"),
        (load.broadcast(4), "splat4(data1[g0*384 + r1])"),
        (UOp(Ops.GEP, dtypes.float32, (load.broadcast(4),), 2), "splat4(data1[g0*384 + r1]).2"),
    ],
)
def test_an_expression_has_the_parentheses_it_needs_and_no_others(uop, text):
    assert expr_text(uop) == text


def test_floats_are_not_reassociated_in_print():
    assert expr_text(load + (load + 1.0)) == "data1[g0*384 + r1] + (data1[g0*384 + r1] + 1.0)"


def test_a_chain_of_20_000_nodes_is_written_without_recursion_and_cut():
    chain: UOp = n
    for number in range(10_000):
        chain = (chain + n) * (2 + number % 2)
    assert len(expr_text(chain)) < 200


def test_a_node_has_a_description():
    told = {
        value: (told.label, told.detail, told.group)
        for value, told in (
            (name, describe(node))
            for name, node in {
                "range": i,
                "const": index_const(7),
                "load": load,
                "index": i * 2,
                "value": load + load,
                "reduce": UOp(Ops.REDUCE, dtypes.float32, (load, j), Ops.MAX),
                "pointer": data,
            }.items()
        )
    }
    assert told == {
        "range": ("RANGE", "g0 < 8 · global", "loop"),
        "const": ("CONST", "7", "const"),
        "load": ("LOAD", "data1[g0*384 + r1]", "memory"),
        "index": ("MUL", "g0*2", "alu"),
        "value": ("ADD", "float32", "alu"),
        "reduce": ("REDUCE MAX", "over r1", "reduce"),
        "pointer": ("data1", "float32[64]", "buffer"),
    }


def test_a_lazybuffer_has_a_description_with_its_shape():
    values = LazyBuffer.iota(6, dtypes.int32, "PYTHON").reshape((2, 3))
    told = describe(values.permute((1, 0)).reduce(Ops.ADD, (1,)))
    assert (told.label, told.detail, told.group, told.shape) == ("REDUCE_AXIS", "ADD over 1 → 3×1", "reduce", (3, 1))


def test_every_operation_has_a_group():
    from tinyexplore.explore.recording.descriptions import _GROUPS

    assert set(Ops) == set(_GROUPS)


def test_every_kind_of_loop_has_a_description():
    from tinyexplore.explore.recording.descriptions import _LOOP_WORDS

    assert set(AxisKind) == set(_LOOP_WORDS)


def test_the_linear_program_is_numbered_and_indented_by_its_loops():
    sink = toy.row_sum()
    (store,) = sink.src
    place, total = store.src
    value = total.src[0]
    acc = UOp(Ops.DEFINE_ACC, dtypes.float32, (UOp.const(dtypes.float32, 0.0),), 0)
    row, column = place.src[1], total.src[1]
    added = UOp(Ops.ASSIGN, dtypes.float32, (acc, acc + value))
    result = UOp(Ops.RESULT, dtypes.float32, (acc, added, column))
    end = UOp(Ops.ENDRANGE, dtypes.void, (column,))
    uops = [place.src[0], row, acc, column, value, acc + value, added, end, result, place]
    uops += [UOp(Ops.STORE, dtypes.void, (place, result)), UOp(Ops.ENDRANGE, dtypes.void, (row,))]
    listing = uops_listing(uops)
    assert "\n".join(line.text for line in listing) == (
        " 0  DEFINE_GLOBAL data0 : float32[8]\n"
        " 1  for g0 in range(8):\n"
        " 2    DEFINE_ACC acc0 = 0.0 : float32\n"
        " 3    for r1 in range(4):  # accumulates\n"
        " 4      %4 = ADD ?MUL, 0.0 : float32\n"
        " 5      %5 = ADD acc0, %4 : float32\n"
        " 6      ASSIGN acc0 = %5\n"
        " 7    end r1\n"
        " 8    %8 = RESULT acc0 : float32\n"
        " 9    %9 = INDEX data0[g0]\n"
        "10    STORE %9 = %8\n"
        "11  end g0"
    )
    assert [line.uops for line in listing] == [(uop,) for uop in uops]
