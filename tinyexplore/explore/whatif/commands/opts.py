"""What the commands share that change the opts of one kernel."""

from __future__ import annotations

from collections.abc import Callable

from tinyexplore.explore.whatif.place import Outcome, Place, Refused
from tinyexplore.kernel import Kernel, OptError
from tinyexplore.trace import recording


def try_out(place: Place, number: int, make: Callable[[], Kernel]) -> Outcome:
    """The kernel that `make` gives, compiled and timed; or the branch that has it already."""
    try:
        with recording(None):
            kernel = place.bench.under_settings(make)
    except OptError as error:
        raise Refused(str(error)) from None
    same = place.known(number, tuple(map(str, kernel.applied)))
    if same is not None and same.kernels[0].listings:
        return Outcome(same=same)
    variant, note, lost = place.bench.variant(number, make)
    if lost:
        raise Refused(lost, (variant,))
    return Outcome((variant,), note=note)
