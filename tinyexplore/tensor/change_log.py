"""Notifies TinyJit when a tensor gets another value, and when a random tensor draws its key.

Also computes the value of a tensor after an assignment to a part of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count as counter
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer, parts_of
from tinyexplore.lazy.lazybuffer import move_like
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.symbolic import product
from tinyexplore.util.uninterrupted import run_uninterrupted

if TYPE_CHECKING:
    from tinyexplore.device import Buffer

T = TypeVar("T")


class ChangeableTensor(Protocol):
    """The attributes of a Tensor that a change of its value uses.

    lazydata: the value.
    requires_grad: whether it requires a gradient; None: not decided.
    was_changed: set by the first change.
    no_grad: whether the program is inside `inference_mode`.
    """

    lazydata: LazyBuffer
    requires_grad: bool | None
    was_changed: bool
    no_grad: ClassVar[bool]


@dataclass(eq=False)
class ChangeLog:
    """The tensors that changed inside a block.

    changed: (tensor, value before the first change) by the identity of the tensor.
    in_part: identities of the tensors of which a part was written.
    keys: the buffers of the random keys drawn, in order, each with the number of random elements.
    about_to_change: called with each tensor before its first change.
    outer: the notes of the enclosing block, which records the same changes.
    values_to_restore: values to restore, by identity, for tensors whose former memory is overwritten.
    """

    changed: dict[int, tuple[ChangeableTensor, LazyBuffer]] = field(default_factory=dict)
    in_part: set[int] = field(default_factory=set)
    keys: dict[Buffer, int] = field(default_factory=dict)
    about_to_change: Callable[[ChangeableTensor], None] = lambda tensor: None
    outer: ChangeLog | None = None
    values_to_restore: dict[int, LazyBuffer] = field(default_factory=dict)

    def undo(self) -> None:
        """Restores the earlier values of all changed tensors."""
        tensors = [tensor for tensor, _ in self.changed.values()]
        values = [self.values_to_restore.get(key, old) for key, (_, old) in self.changed.items()]
        run_uninterrupted([Epoch.advance], tensors, "lazydata", values)


class Epoch:
    """Counts the changes of tensor values in this process. While `count[0]` stays equal, no tensor has changed.

    `count` is an array of one element because machine code reads it, too. Each change gives it a number that it never
    had before.
    """

    count = array("q", [0])
    advance = partial(next, map(count.__setitem__, repeat(0), counter(1)))  # called before and after each change


_notes: ContextVar[ChangeLog | None] = ContextVar("tinyexplore_notes", default=None)


def record_changes(notes: ChangeLog, work: Callable[[], T]) -> T:
    """Calls `work` and returns its result. Records in `notes` the changes that `work` makes."""
    notes.outer = _notes.get()
    try:
        _notes.set(notes)
        return work()
    finally:
        _notes.set(notes.outer)


def undo_on_error(notes: ChangeLog, work: Callable[[], T]) -> T:
    """Calls `record_changes`. If `work` raises or is interrupted, restores the tensors that it changed."""
    try:
        return record_changes(notes, work)
    except BaseException:
        notes.undo()
        raise


def is_recording_changes() -> bool:
    """Whether the program is inside `record_changes`."""
    return _notes.get() is not None


def note_change(tensor: ChangeableTensor, *, in_part: bool = False) -> None:
    """Records that the value of `tensor` is about to change. `in_part`: only a part of the value will be written."""
    Epoch.advance()
    tensor.was_changed = True
    notes = _notes.get()
    while notes is not None:
        if id(tensor) not in notes.changed:
            notes.about_to_change(tensor)
            notes.changed[id(tensor)] = (tensor, tensor.lazydata)
        if in_part:
            notes.in_part.add(id(tensor))
        notes = notes.outer


def note_key(buffer: Buffer, size: int) -> None:
    """Records that `buffer` holds the key of a random tensor of `size` elements."""
    notes = _notes.get()
    while notes is not None:
        notes.keys[buffer] = size
        notes = notes.outer


# *** writing to a part ***


def refuse_gradient_of_part(whole: ChangeableTensor, part: Any) -> None:
    """Raises NotImplementedError if gradients are recorded and `whole`, or the value `part` written into it, requires a
    gradient."""
    if not type(whole).no_grad and (whole.requires_grad or getattr(part, "requires_grad", False)):
        raise NotImplementedError(
            "assigning to parts of a tensor has no gradient: use where(), detach() it first, or write inside "
            "inference_mode()"
        )


def shows_a_part(view: LazyBuffer) -> bool:
    """Whether a view without memory of its own leaves out some elements of its base."""
    while is_view(view):
        if view.op is Ops.SHRINK:
            return True
        view = view.src[0]
    return False


def is_view(node: LazyBuffer) -> bool:
    """Whether `node` is a movement without memory of its own."""
    return node.op in OpGroups.MOVEMENT and all(stored.buffer is None for stored in parts_of(node))


def with_part(view: LazyBuffer, root: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """Returns `root` with `value` at the positions of `view`. Raises RuntimeError if `view` is not a view of the
    current `root`."""
    steps: list[LazyBuffer] = []
    node = view
    while node is not root:
        if not is_view(node):
            raise RuntimeError(
                f"assign to a view of shape {view.shape} of a tensor that was assigned after the view was created; "
                "create the view again"
            )
        steps.append(node)
        node = node.src[0]
    if not steps:
        return value
    if value.size == 0:
        return root
    if type(root) is LazyBuffer and root.can_be_written and all([_shows_each_once(step) for step in steps]):
        indices = LazyBuffer.iota(product(root.shape), dtypes.index, root.device).reshape(root.shape)
        for step in reversed(steps):
            indices = move_like(indices, step)
        return root.written_at(indices, value)
    is_written = LazyBuffer.const(True, dtypes.bool, view.device, view.shape)
    for step in steps:
        value, is_written = invert_movement(step, value), invert_movement(step, is_written)
    return is_written.alu(Ops.WHERE, value, root)


def _shows_each_once(step: LazyBuffer) -> bool:
    """Whether a movement shows each element at most once and adds no padding."""
    if step.op is Ops.WINDOW:
        return bool(step.arg[1] == 1)
    return step.op in (Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.SHRINK)


def invert_movement(step: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """Applies the inverse of the movement `step` to `value`. Elements that `step` leaves out become 0."""
    source = step.src[0].shape
    match step.op:
        case Ops.RESHAPE:
            return value.reshape(source)
        case Ops.PERMUTE:
            return value.permute(sorted(range(len(step.arg)), key=step.arg.__getitem__))
        case Ops.FLIP:
            return value.flip(step.arg)
        case Ops.SHRINK:
            return value.pad([(start, size - stop) for (start, stop), size in zip(step.arg, source)])
    raise RuntimeError(
        f"cannot assign through {step.op.name.lower()}: the view repeats or drops elements; "
        "assign to a slice, or to the tensor itself"
    )
