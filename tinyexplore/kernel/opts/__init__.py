"""The kinds of Opt: a file for each has its laws, its legality check and its substitution; `KINDS` is the table.

Legality, the search, messages and the explorer read the table: another kind is another file, a member of `OptOps` and
a row here.
"""

from __future__ import annotations

from tinyexplore.kernel.opt import Opt, OptError, OptOps
from tinyexplore.kernel.opts import (
    ahead,
    collect,
    cut,
    group,
    grouptop,
    local,
    merge,
    nolocals,
    padto,
    pipe,
    stage,
    swap,
    tc,
    thread,
    unroll,
    upcast,
    vector,
)
from tinyexplore.kernel.opts.kind import Law, OptKind

KINDS: dict[OptOps, OptKind] = {
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
    OptOps.MERGE: merge.KIND,
    OptOps.STAGE: stage.KIND,
    OptOps.COLLECT: collect.KIND,
    OptOps.CUT: cut.KIND,
    OptOps.TC: tc.KIND,
    OptOps.AHEAD: ahead.KIND,
    OptOps.PIPE: pipe.KIND,
}


def law_of(op: OptOps) -> str:
    """What a kind does: a sentence, and the loop nest before and after."""
    return "\n\n".join(law.text for law in KINDS[op].laws)


OptOps.__doc__ = "\n\n".join(
    (
        "The kinds of Opt, each with its law on the loop nest, before → after. An axis is named by its id in "
        "`Kernel.axes`.",
        *(f"{op.name}: {law_of(op)}" for op in OptOps),
        "An output axis that `amount` does not divide takes its last block so that it ends at the end, over part of\n"
        "the block before (both write the same values); a reduction does the remainder in a loop of its own.",
    )
)

__all__ = ["KINDS", "Law", "Opt", "OptError", "OptKind", "OptOps", "law_of"]
