"""Passes "signed dot products" and "dot products": adapt products of words to the target's instructions."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.target import Target
from tinyexplore.uop import Ops, PatternMatcher, UOp, UPat, cvar, rule, var
from tinyexplore.uop.uop import ops_mask
from tinyexplore.util import config


@rule(UPat.of(Ops.REDUCE, UPat.of(Ops.DOT_I8, var("x"), var("y"), cvar("z"), name="dot"), name="reduce", more_src=True))
def signs_at_the_end(reduce: UOp, dot: UOp, x: UOp, y: UOp, z: UOp, ctx: Lowering) -> UOp | None:
    """Σ x · y of signed bytes is Σ (x + 128) · y - 128 Σ y, if the instruction takes the first factor as unsigned.

    The second sum is the same for all rows of a product, so it costs less than a correction of each term.
    """
    if reduce.arg is not Ops.ADD or z.arg != 0 or not has_instruction(dot, ctx.target):
        return None
    upper_bits = UOp.const(x.dtype, 0x80808080)  # flipping the upper bit of a byte adds 128 to its value
    products = dot.replace(op=Ops.DOT_U8, src=(x ^ upper_bits, y, z))
    excess = dot.replace(op=Ops.DOT_U8, src=(upper_bits, y, z))
    loops = reduce.src[1:]
    return reduce.replace(src=(products, *loops)) + -reduce.replace(src=(excess, *loops))


def has_instruction(dot: UOp, target: Target) -> bool:
    """Whether the target has one instruction that multiplies words in this many lanes."""
    return dot.op in target.dots and dot.dtype.count * 4 == target.vector_bytes and config().TC == 1


@rule(UPat.of((Ops.DOT_BF16, Ops.DOT_I8), var("x"), var("y"), var("z"), name="dot"))
def dot_written_out(dot: UOp, x: UOp, y: UOp, z: UOp, ctx: Lowering) -> UOp | None:
    """A dot product of two words is z + x₀ · y₀ + x₁ · y₁ + … of their parts, if the target has no instruction for
    it."""
    if has_instruction(dot, ctx.target):
        return None
    for x_part, y_part in zip(parts_of_word(dot.op, x), parts_of_word(dot.op, y)):
        z = x_part * y_part + z if dot.op is Ops.DOT_I8 else UOp(Ops.MULACC, dot.dtype, (x_part, y_part, z))
    return z


def parts_of_word(op: Ops, word: UOp) -> list[UOp]:
    """Returns the numbers in a word, lowest first, in the dtype in which they are multiplied."""
    if op is Ops.DOT_BF16:
        high = word & UOp.const(word.dtype, 0xFFFF0000)
        low = word.alu(Ops.SHL, UOp.const(word.dtype, 16))
        return [part.bitcast(dtypes.float32.vec(word.dtype.count)) for part in (low, high)]
    shifts = [word.alu(Ops.SHL, UOp.const(word.dtype, 24 - 8 * number)) if number < 3 else word for number in range(4)]
    signed = dtypes.int32.vec(word.dtype.count)
    return [part.bitcast(signed).alu(Ops.SHR, UOp.const(signed, 24)) for part in shifts]


SIGNED_DOT_PRODUCTS = PatternMatcher((signs_at_the_end,), within=ops_mask((Ops.DOT_I8,)))
DOT_PRODUCTS = PatternMatcher((dot_written_out,))

__all__ = ["DOT_PRODUCTS", "SIGNED_DOT_PRODUCTS"]
