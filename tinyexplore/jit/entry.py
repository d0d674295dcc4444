"""Decides which replays machine code can run from call to result (`runtime/entry.py`), and when it may run them."""

from __future__ import annotations

from typing import cast

from tinyexplore import engine
from tinyexplore.jit.arguments import Leaf
from tinyexplore.jit.replay import CallReplay
from tinyexplore.jit.slots import Slot
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.entry import MAX_ARGUMENTS, Argument, NativeEntry, has_entries
from tinyexplore.runtime.pool import Batch
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.change_log import Epoch
from tinyexplore.util import GlobalCounters, config_variable
from tinyexplore.util.interpreter import field_offsets

LONGEST_NS = 20_000  # estimated nanoseconds; a longer batch should let other Python threads run meanwhile


def make_entry(replay: CallReplay) -> NativeEntry | None:
    """Builds a machine-code entry for calls of `replay`, which `activate` prepares; None if `replay` does not qualify.

    An entry only compares arguments and runs one batch of machine code. It supports tensors as arguments and new
    tensors as results, but no random numbers and no state.
    """
    batch = _find_only_batch(replay)
    results = _find_new_results(replay)
    if batch is None or not results or not _needs_only_comparison(replay) or not _runs_briefly(replay):
        return None
    if not has_entries(Tensor, LazyBuffer):
        return None
    structure = replay.captured.structure
    names = field_offsets(Tensor) or ()
    tensors = [Tensor._wrap(value) for value in results]
    return NativeEntry(
        batch,
        GlobalCounters.native,
        replay.costs,
        Epoch.count,
        (Tensor, "training"),
        "lazydata",
        LazyBuffer,
        [_describe_argument(slot) for slot in replay.slots],
        replay.written,
        (config_variable(), engine.capture_variable(), engine.cache_scope_variable()),
        [{name: getattr(tensor, name, None) for name in names} for tensor in tensors],
        None if isinstance(structure, Leaf) else type(structure),
    )


def _find_only_batch(replay: CallReplay) -> Batch | None:
    """Returns the machine-code batch of `replay`; None if `replay` launches anything else."""
    if len(replay.steps[0]) != 1:
        return None
    (step,) = replay.steps[0]
    return step if isinstance(step, Batch) else None


def _runs_briefly(replay: CallReplay) -> bool:
    """Whether the estimated time of all kernels is at most LONGEST_NS."""
    return sum(0 if item.runner is None else item.runner.work_ns(()) for item in replay.items) <= LONGEST_NS


def _needs_only_comparison(replay: CallReplay) -> bool:
    """Whether a call only needs to compare its arguments: no state, no random keys, no argument given twice."""
    if not replay.plain or replay.has_side_effects or replay.keys or replay.same:
        return False
    return len(replay.slots) <= MAX_ARGUMENTS


def _find_new_results(replay: CallReplay) -> list[LazyBuffer]:
    """Returns the values of the result: one new tensor, or a tuple or list of new tensors; [] for any other result."""
    structure = replay.captured.structure
    leaves = [structure] if isinstance(structure, Leaf) else structure
    if type(leaves) not in (tuple, list) or not all(isinstance(leaf, Leaf) for leaf in leaves):
        return []
    values = [output.value for output in replay.captured.outputs]
    if any(value is None for value in values):
        return []
    return [cast("LazyBuffer", values[leaf.number]) for leaf in leaves]


def _describe_argument(slot: Slot) -> Argument | None:
    """Describes the values that may replace an argument; None if only the captured value is allowed."""
    like = slot.like
    if type(like) is not LazyBuffer or len(slot.buffer_uses) != 1 or slot.buffer_uses[0].others:
        return None
    (uses,) = slot.buffer_uses
    return Argument(like.shape, like.dtype, like.device, uses.aligned, tuple(uses.tables))


def deactivate(entry: NativeEntry, replay: CallReplay) -> None:
    """Makes TinyJit handle calls in Python again. Updates the slots with the arguments since `activate`."""
    if not entry.is_lent:
        return
    entry.deactivate()
    for slot, value in zip(replay.slots, entry.held):
        slot.last = value
        if entry.has_moved:
            for uses in slot.buffer_uses:
                uses.buffer = None  # unknown, so that the next buffer is put there again
    entry.mark_known()  # last, so that a call after an interrupt repeats all of it


def activate(entry: NativeEntry, replay: CallReplay) -> None:
    """Lets `entry` run the next calls that resemble this one, if no recorder is attached."""
    if engine.current_cache_scope().plans is None:
        return
    last_tensors = [slot.last for slot in replay.slots]
    for slot in replay.slots:
        slot.last = None  # `entry` holds it now, and releases it with the next argument
    entry.activate(replay.epoch, replay.training, (config_variable().get(), None, None), last_tensors)
