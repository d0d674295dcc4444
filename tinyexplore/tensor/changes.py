"""Notifies TinyJit when a tensor takes over another value, and when a random tensor draws its key.

And what a tensor becomes when a part of it is assigned to.
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
from tinyexplore.lazy.lazybuffer import moved_like
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.symbolic import product
from tinyexplore.util.uninterrupted import run_uninterrupted

if TYPE_CHECKING:
    from tinyexplore.device import Buffer

T = TypeVar("T")


class Changeable(Protocol):
    """The part of a Tensor that changes of its value concern.

    lazydata: the value; requires_grad: as on a tensor
    was_changed: set by the first change; no_grad: True inside `inference_mode`
    """

    lazydata: LazyBuffer
    requires_grad: bool | None
    was_changed: bool
    no_grad: ClassVar[bool]


@dataclass(eq=False)
class Notes:
    """The tensors that changed inside of a block.

    changed: the tensors and their values before, by identity.
    in_part: identities of those of which a part was written.
    keys: the random keys drawn, in order, and how many numbers each is for.
    about_to_change: called with each tensor before its first change.
    outer: the notes of the enclosing block, which records the same.
    kept: values to restore, of tensors whose former memory is overwritten.
    """

    changed: dict[int, tuple[Changeable, LazyBuffer]] = field(default_factory=dict)
    in_part: set[int] = field(default_factory=set)
    keys: dict[Buffer, int] = field(default_factory=dict)
    about_to_change: Callable[[Changeable], None] = lambda tensor: None
    outer: Notes | None = None
    kept: dict[int, LazyBuffer] = field(default_factory=dict)

    def undo(self) -> None:
        """Restores the earlier values of all changed tensors."""
        tensors = [tensor for tensor, _ in self.changed.values()]
        values = [self.kept.get(key, old) for key, (_, old) in self.changed.items()]
        run_uninterrupted([Epoch.advance], tensors, "lazydata", values)


class Epoch:
    """Changes of any tensor in this process: as long as `count[0]` stays the same, no tensor has another value.

    `count` has one element, which machine code reads as well: a number that it never had before, with each change.
    """

    count = array("q", [0])
    advance = partial(next, map(count.__setitem__, repeat(0), counter(1)))  # there is, or will be, a change


_notes: ContextVar[Notes | None] = ContextVar("tinyexplore_notes", default=None)


def noting(notes: Notes, work: Callable[[], T]) -> T:
    """The result of `work()`. Changes that it makes are recorded in `notes`."""
    notes.outer = _notes.get()
    try:
        _notes.set(notes)
        return work()
    finally:
        _notes.set(notes.outer)


def undone_on_error(notes: Notes, work: Callable[[], T]) -> T:
    """Calls `noting`. If `work()` raises or is interrupted, restores the tensors that it changed."""
    try:
        return noting(notes, work)
    except BaseException:
        notes.undo()
        raise


def is_noted() -> bool:
    """True inside `noting`."""
    return _notes.get() is not None


def note_change(tensor: Changeable, *, in_part: bool = False) -> None:
    """`tensor` is about to take over another value, or its own with another part."""
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
    """`buffer` holds the key of a random tensor of `size` elements."""
    notes = _notes.get()
    while notes is not None:
        notes.keys[buffer] = size
        notes = notes.outer


# *** writing to a part ***


def refuse_gradient_of_part(whole: Changeable, part: Any) -> None:
    """Raises NotImplementedError if gradients are recorded and `whole`, or `part` that is to be written into it,
    requires one."""
    if not type(whole).no_grad and (whole.requires_grad or getattr(part, "requires_grad", False)):
        raise NotImplementedError(
            "assigning to parts of a tensor has no gradient: use where(), detach() it first, or write inside "
            "inference_mode()"
        )


def shows_a_part(view: LazyBuffer) -> bool:
    """Whether a view, which is not computed itself, leaves out some of its base."""
    while is_view(view):
        if view.op is Ops.SHRINK:
            return True
        view = view.src[0]
    return False


def is_view(node: LazyBuffer) -> bool:
    """Whether this is a movement that is not computed itself."""
    return node.op in OpGroups.MOVEMENT and all(part.buffer is None for part in parts_of(node))


def with_part(view: LazyBuffer, root: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """`root` with `value` at the positions of `view`. RuntimeError if `view` is no view of the present `root`."""
    steps: list[LazyBuffer] = []
    node = view
    while node is not root:
        if not is_view(node):
            raise RuntimeError(
                f"assign to a view of shape {view.shape} of a tensor that has another value by now: take the view again"
            )
        steps.append(node)
        node = node.src[0]
    if not steps:
        return value
    if value.size == 0:
        return root
    if type(root) is LazyBuffer and root.can_be_written and all([_keeps_apart(step) for step in steps]):
        indices = LazyBuffer.iota(product(root.shape), dtypes.index, root.device).reshape(root.shape)
        for step in reversed(steps):
            indices = moved_like(indices, step)
        return root.written_at(indices, value)
    written = LazyBuffer.const(True, dtypes.bool, view.device, view.shape)
    for step in steps:
        value, written = moved_back(step, value), moved_back(step, written)
    return written.alu(Ops.WHERE, value, root)


def _keeps_apart(step: LazyBuffer) -> bool:
    """Whether a movement shows each element at most once, and nothing else."""
    if step.op is Ops.WINDOW:
        return bool(step.arg[1] == 1)
    return step.op in (Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.SHRINK)


def moved_back(step: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """The inverse of the movement `step`, applied to `value`, with zeros for elements that it leaves out."""
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
        f"assign to a view by {step.op.name.lower()}, where an element stands in several places or in none: "
        "assign to a slice, or to the tensor itself"
    )
