"""Tells, once, of a view that somebody keeps while a part of its tensor is written: it keeps its values, too."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from warnings import warn
from weakref import ref

from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor.changes import is_noted, is_view
from tinyexplore.uop import Ops
from tinyexplore.uop.symbolic import is_symbolic
from tinyexplore.util.interpreter import ASKING, references, referrers

if TYPE_CHECKING:
    from tinyexplore.tensor.base import Base


class KeptViews:
    """Looks for such views; in PyTorch they change with their tensor (docs/decisions/0006).

    One search costs some milliseconds, as the interpreter asks every object whether it is such a view: it is made only
    where there may be one, until one was told of, and `searches` times at most; with INTERPRETER_TRICKS=0 never.
    """

    searches = 100

    @classmethod
    def warn_of(cls, whole: Base, written: LazyBuffer, *own: Any) -> None:
        """Warns where somebody holds a view of `whole`, none of `own`, that shows something of what `written`, such a
        view too, is about to change."""
        root = ref(whole)  # one object, which all views have
        if not cls.searches or references((root,))[0] <= ASKING + 1 or is_noted():
            return
        cls.searches -= 1
        views = referrers(root)
        description = _held(views)
        while views:
            view, is_held = views.pop(), description.pop()
            if not isinstance(view, type(whole)) or not is_held or any([view is one for one in own]):
                continue
            if _overlap(written, view.lazydata, whole.lazydata):
                cls.searches = 0
                warn(
                    f"a part of a tensor of shape {whole.shape} is written, of which a view of shape {view.shape} is "
                    "kept: that view keeps the values from before (in PyTorch it would change, too); take it anew "
                    "after writing, or .clone() it if that is what you mean. This is said once",
                    stacklevel=_calls_to_the_user(),
                )
                return


def _held(objects: list[Any]) -> list[bool]:
    """Which of `objects`, a list that the caller alone has, others refer to than the tape, whose steps have tuples."""
    counts = references(objects)
    tuples = [sum([type(one) is tuple for one in referrers(each)]) for each in objects]
    return [count - inside > ASKING for count, inside in zip(counts, tuples)]


def _overlap(one: LazyBuffer, other: LazyBuffer, root: LazyBuffer) -> bool:
    """True where two views of `root` may show the same element, by the bounds of their first slices."""
    first, second = _bounds(one, root), _bounds(other, root)
    if first is None or second is None:
        return False
    return all([start < end and begin < stop for (start, stop), (begin, end) in zip(first, second)])


def _bounds(view: LazyBuffer, root: LazyBuffer) -> tuple[tuple[int, int], ...] | None:
    """The part of each axis of `root` that `view` shows something of; None where it is no view of `root` now, or where
    that is symbolic."""
    first = root
    while view is not root:
        if not is_view(view):
            return None
        first, view = view, view.src[0]
    window = first.arg if first is not root and first.op is Ops.SHRINK else tuple([(0, size) for size in root.shape])
    return None if is_symbolic([place for bounds in window for place in bounds]) else window


def _calls_to_the_user() -> int:
    """How many calls up from `KeptViews.warn_of` the code stands that is not this package's; 1 for its own."""
    frame, calls = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("tinyexplore"):
        frame, calls = frame.f_back, calls + 1
    return calls
