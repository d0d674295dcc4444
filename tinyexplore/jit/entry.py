"""Which replays machine code can do from call to result (`runtime/entry.py`), and when it may."""

from __future__ import annotations

from tinyexplore import engine
from tinyexplore.jit.arguments import Leaf
from tinyexplore.jit.replay import Replay
from tinyexplore.jit.slots import Slot
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.entry import MOST_ARGUMENTS, Argument, Entry, has_entries
from tinyexplore.runtime.pool import Batch
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.changes import Epoch
from tinyexplore.util import GlobalCounters, config_variable
from tinyexplore.util.interpreter import field_offsets

LONGEST_NS = 20_000  # estimated; a longer batch should let other threads of Python work meanwhile


def make_entry(replay: Replay) -> Entry | None:
    """Calls of `replay` as machine code, which `settle` makes ready; None where there is more to a call.

    It does what needs no more than comparing: tensors as arguments, one batch of machine code, nothing random, no
    state, and as a result new tensors.
    """
    batch = replay.steps[0][0] if len(replay.steps[0]) == 1 else None
    if not isinstance(batch, Batch) or not replay.plain or replay.changes:
        return None
    if replay.keys or replay.same or any(output.value is None for output in replay.found.outputs):
        return None
    structure = replay.found.structure
    form = None if isinstance(structure, Leaf) else type(structure)
    leaves = [structure] if form is None else list(structure) if form in (tuple, list) else []
    if not leaves or not all(isinstance(leaf, Leaf) for leaf in leaves):
        return None
    if sum(0 if item.runner is None else item.runner.work_ns(()) for item in replay.items) > LONGEST_NS:
        return None
    if len(replay.slots) > MOST_ARGUMENTS:
        return None
    if not has_entries(Tensor, LazyBuffer):
        return None
    names = field_offsets(Tensor) or ()
    results = [replay.found.outputs[leaf.number].value for leaf in leaves]
    tensors = [Tensor._wrap(value) for value in results if value is not None]
    return Entry(
        batch,
        GlobalCounters.native,
        replay.costs,
        Epoch.count,
        (Tensor, "training"),
        "lazydata",
        LazyBuffer,
        [_argument(slot) for slot in replay.slots],
        replay.written,
        (config_variable(), engine.capture_variable(), engine.kept_variable()),
        [{name: getattr(tensor, name, None) for name in names} for tensor in tensors],
        form,
    )


def _argument(slot: Slot) -> Argument | None:
    """What may stand for an argument; None: nothing else but what does now."""
    like = slot.like
    if type(like) is not LazyBuffer or len(slot.places) != 1 or slot.places[0].others:
        return None
    (places,) = slot.places
    return Argument(like.shape, like.dtype, like.device, places.aligned, tuple(places.tables))


def unsettle(entry: Entry, replay: Replay) -> None:
    """Calls come to Python again; the slots are told what was given since."""
    if not entry.is_lent:
        return
    entry.unsettle()
    for slot, value in zip(replay.slots, entry.held):
        slot.last = value
        if entry.has_moved:
            for places in slot.places:
                places.buffer = None  # whatever comes next is put there anew
    entry.taken_back()  # last: who is interrupted before does all of it again


def settle(entry: Entry, replay: Replay) -> None:
    """The next call may be done by `entry`, if nobody wants to be told of it; it must be like the one just done."""
    if engine.kept_here().plans is None:
        return
    given = [slot.last for slot in replay.slots]
    for slot in replay.slots:
        slot.last = None  # `entry` has it now, and lets it go when another is given
    entry.settle(replay.epoch, replay.training, (config_variable().get(), None, None), given)
