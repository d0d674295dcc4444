"""List the opts that may be tried on a kernel, by axis, with the legality errors of the others."""

from __future__ import annotations

from collections.abc import Iterator

from tinyexplore.explore.tracefile.model import OptOffer
from tinyexplore.kernel import Kernel, Opt, OptOps
from tinyexplore.kernel.legality import illegal_because
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.kernel.search import MAX_UNROLLED_STEPS, exceeds_limits
from tinyexplore.uop import UOp

CAUTIONS = {
    OptOps.VECTOR: "shorter vectors than the machine has",
    OptOps.UPCAST: f"more than {MAX_UNROLLED_STEPS} steps written out: a long program, and more values than registers",
    OptOps.UNROLL: f"more than {MAX_UNROLLED_STEPS} steps written out: a long program, and more values than registers",
}


def list_opt_offers(kernel: Kernel) -> Iterator[OptOffer]:
    """Yields, for each axis and kind of opt, the usual amounts, grouped by legality."""
    for axis in kernel.axes:
        for op in OptOps:
            yield from _yield_offers_of_kind(kernel, axis, op)


def _yield_offers_of_kind(kernel: Kernel, axis: UOp, op: OptOps) -> Iterator[OptOffer]:
    amounts_by_reason: dict[tuple[str, str], list[int]] = {}
    for amount in OPT_KINDS[op].amounts_to_try(kernel, axis):
        opt = Opt(op, axis.arg.id, amount)
        against = illegal_because(kernel, opt, axis) or ""
        caution = CAUTIONS.get(op, "") if not against and exceeds_limits(kernel, opt) else ""
        amounts_by_reason.setdefault((against, caution), []).append(amount)
    for (against, caution), amounts in amounts_by_reason.items():
        yield OptOffer(op.name, axis.arg.id, tuple(amounts), against, caution)


def legal_opts(offers: tuple[OptOffer, ...]) -> tuple[str, ...]:
    """Returns the legal opts, as text."""
    return tuple(
        str(Opt(OptOps[offer.op], offer.axis, amount))
        for offer in offers
        if not offer.legality_error
        for amount in offer.amounts
    )


__all__ = ["legal_opts", "list_opt_offers"]
