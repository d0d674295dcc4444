"""Warns once if a view is referenced while a part of its tensor is written: the view keeps the old values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from warnings import warn
from weakref import ref

from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor.change_log import is_recording_changes, is_view
from tinyexplore.uop import Ops
from tinyexplore.uop.symbolic import is_symbolic
from tinyexplore.util.interpreter import BASE_REFERENCES, references, referrers

if TYPE_CHECKING:
    from tinyexplore.tensor.base import TensorBase


class StaleViews:
    """Warns about views that do not change when their tensor is written, although they do in PyTorch
    (docs/decisions/0006).

    A search for such views takes some milliseconds, because the interpreter tests every object. So it runs only if such
    a view may exist, until one has been reported, and at most `searches` times. With INTERPRETER_TRICKS=0 it never
    runs.
    """

    searches = 100

    @classmethod
    def warn_of(cls, whole: TensorBase, written: LazyBuffer, *known_views: Any) -> None:
        """Warns if the program holds another view of `whole` that overlaps `written`, a view that is about to be
        changed.

        known_views: views that do not count.
        """
        root = ref(whole)  # one object, which all views share
        if not cls.searches or references((root,))[0] <= BASE_REFERENCES + 1 or is_recording_changes():
            return
        cls.searches -= 1
        views = referrers(root)
        description = _have_outside_references(views)
        while views:
            view, is_held = views.pop(), description.pop()
            if (
                not isinstance(view, type(whole))
                or not is_held
                or any([view is known_view for known_view in known_views])
            ):
                continue
            if _views_overlap(written, view.lazydata, whole.lazydata):
                cls.searches = 0
                warn(
                    f"a write changes a part of a tensor of shape {whole.shape} that has a view of shape {view.shape}. "
                    "The view keeps its old values; in PyTorch it would change. Create the view again after the write, "
                    "or call .clone() to keep the old values. This warning appears once",
                    stacklevel=_count_calls_to_user(),
                )
                return


def _have_outside_references(objects: list[Any]) -> list[bool]:
    """Returns for each object whether it has references from outside the tape (whose steps use tuples).

    objects: a list that only the caller references.
    """
    counts = references(objects)
    tuples = [sum([type(referrer) is tuple for referrer in referrers(value)]) for value in objects]
    return [count - tape_count > BASE_REFERENCES for count, tape_count in zip(counts, tuples)]


def _views_overlap(first_view: LazyBuffer, other: LazyBuffer, root: LazyBuffer) -> bool:
    """Whether two views of `root` may share an element, according to the bounds of their first slices."""
    first_bounds, other_bounds = _bounds(first_view, root), _bounds(other, root)
    if first_bounds is None or other_bounds is None:
        return False
    return all([start < end and begin < stop for (start, stop), (begin, end) in zip(first_bounds, other_bounds)])


def _bounds(view: LazyBuffer, root: LazyBuffer) -> tuple[tuple[int, int], ...] | None:
    """Returns the part (begin, end) of each axis of `root` that `view` covers.

    None if it is not a view of the current `root`, or is symbolic.
    """
    first_movement = root
    while view is not root:
        if not is_view(view):
            return None
        first_movement, view = view, view.src[0]
    window = (
        first_movement.arg
        if first_movement is not root and first_movement.op is Ops.SHRINK
        else tuple([(0, size) for size in root.shape])
    )
    return None if is_symbolic([bound for bounds in window for bound in bounds]) else window


def _count_calls_to_user() -> int:
    """Returns the number of frames from `StaleViews.warn_of` up to the first frame outside this package."""
    frame, calls = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("tinyexplore"):
        frame, calls = frame.f_back, calls + 1
    return calls
