"""A rule table tries few rules on a node, and never skips a rule that applies."""

from __future__ import annotations

from itertools import product

from tinyexplore.codegen.rewrites.simplify import ALWAYS
from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import OpGroups, Ops, UOp, index_const
from tinyexplore.uop.pattern import MAX_CACHED_FORMS

ANY = OpGroups.COMPARE | {Ops.MAX, Ops.MIN}
OPERATIONS = {
    dtypes.index: ANY | {Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR},
    dtypes.float32: ANY | {Ops.ADD, Ops.MUL, Ops.FDIV},
    dtypes.bool: ANY | {Ops.AND, Ops.OR, Ops.XOR},
}


def values(dtype: DType) -> list[UOp]:
    """Constants, names, and what is computed from these."""
    name, other = (UOp(Ops.DEFINE_ACC, dtype, (UOp.const(dtype, 0),), number) for number in range(2))
    constants = [UOp.const(dtype, number) for number in (0, 1, 3)]
    return [
        name,
        other,
        *constants,
        *(name.alu(op, constants[-1]) for op in sorted(OPERATIONS[dtype] - OpGroups.COMPARE)),
    ]


def test_the_first_rule_that_applies_is_found() -> None:
    found = 0
    for dtype, operations in OPERATIONS.items():
        for op in sorted(operations):
            for left, right in product(values(dtype), repeat=2):
                node = left.alu(op, right)
                expected = next(((rule, after) for rule in ALWAYS.rules if (after := rule(node)) is not None), None)
                assert ALWAYS.rewrite(node) == expected, node
                found += expected is not None
    assert found > 300


def test_a_table_caches_a_bounded_number_of_node_forms() -> None:
    """Each size of a buffer is a type of its own, and a program may have any number of them."""
    for size in range(1, 2 * MAX_CACHED_FORMS):
        buffer = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, size), (), 0)
        assert ALWAYS.rewrite(buffer.index(index_const(0))) is None
    assert len(ALWAYS._found) <= MAX_CACHED_FORMS + 1 and len(ALWAYS._allowed) <= MAX_CACHED_FORMS + 1
