"""Which replays machine code can do from call to result (`runtime/entry.py`), and when it may."""

from __future__ import annotations

from tinyexplore import engine
from tinyexplore.jit.arguments import Leaf
from tinyexplore.jit.replay import Replay
from tinyexplore.runtime.entry import Entry, field_offsets, has_entries
from tinyexplore.runtime.pool import Batch
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.changes import Epoch
from tinyexplore.trace import recorder_variable
from tinyexplore.util import GlobalCounters, config, config_variable

LONGEST_NS = 20_000  # estimated; a longer batch should let other threads of Python work meanwhile


def make_entry(replay: Replay) -> Entry | None:
    """Calls of `replay` as machine code, which `settle` makes ready; None where there is more to a call.

    It does what needs no more than comparing: tensors as arguments, one batch of machine code, nothing random, no
    state, and as a result new tensors.
    """
    replay.is_known = True
    batch = replay.steps[0][0] if len(replay.steps[0]) == 1 else None
    if not isinstance(batch, Batch) or not replay.plain or replay.states or replay.assigned:
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
    if not has_entries(Tensor):
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
        replay.count,
        (config_variable(), engine.capture_variable(), recorder_variable()),
        [{name: getattr(tensor, name) for name in names} for tensor in tensors],
        form,
    )


def settle(entry: Entry, replay: Replay) -> None:
    """The next call may be done by `entry`, if nobody wants to be told of it; it must be like the one just done."""
    settings = config()
    if settings.DEBUG or settings.PROFILE or engine.is_heard():
        return
    contents = (config_variable().get(), None, None)
    entry.settle(replay.epoch, replay.training, contents, [slot.last for slot in replay.slots])
