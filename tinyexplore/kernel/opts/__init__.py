"""The kinds of Opt. Each kind has one file with its effect (`Effect`), its legality check and its transformation.

`OPT_KINDS` is the table of all kinds. Legality checks, the search, messages and the explorer read it. To add a kind,
add a file, a member of `OptOps` and a row here.
"""

from __future__ import annotations

from tinyexplore.kernel.opt import Opt, OptError, OptOps
from tinyexplore.kernel.opts import (
    collapse,
    group,
    grouptop,
    local,
    nolocals,
    padto,
    pipeline,
    prefetch,
    stage,
    swap,
    tc,
    thread,
    transpose_store,
    trim,
    unroll,
    upcast,
    vector,
)
from tinyexplore.kernel.opts.kind import Effect, OptKind

OPT_KINDS: dict[OptOps, OptKind] = {
    OptOps.VECTOR: vector.KIND,
    OptOps.UPCAST: upcast.KIND,
    OptOps.UNROLL: unroll.KIND,
    OptOps.THREAD: thread.KIND,
    OptOps.LOCAL: local.KIND,
    OptOps.GROUP: group.KIND,
    OptOps.GROUPTOP: grouptop.KIND,
    OptOps.NOLOCALS: nolocals.KIND,
    OptOps.PADTO: padto.KIND,
    OptOps.SWAP: swap.KIND,
    OptOps.COLLAPSE: collapse.KIND,
    OptOps.STAGE: stage.KIND,
    OptOps.TRANSPOSE_STORE: transpose_store.KIND,
    OptOps.TRIM: trim.KIND,
    OptOps.TC: tc.KIND,
    OptOps.PREFETCH: prefetch.KIND,
    OptOps.PIPELINE: pipeline.KIND,
}


def effect_of(op: OptOps) -> str:
    """Describes the effect of an Opt: a sentence, and the loop nest before and after."""
    return "\n\n".join(effect.full_text for effect in OPT_KINDS[op].effects)


OptOps.__doc__ = "\n\n".join(
    (
        "The kinds of Opt, each with its effect on the loop nest, before → after. An axis is named by its id in "
        "`Kernel.axes`.",
        *(f"{op.name}: {effect_of(op)}" for op in OptOps),
        "If `amount` does not divide an output axis, the last block ends at the end of the axis and overlaps the\n"
        "block before it (both write the same values). A reduction computes the remainder in a separate loop.",
    )
)

__all__ = ["OPT_KINDS", "Effect", "Opt", "OptError", "OptKind", "OptOps", "effect_of"]
