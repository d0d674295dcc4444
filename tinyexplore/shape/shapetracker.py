"""ShapeTracker: maps the indices of a moved tensor to memory offsets, by a stack of Views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from tinyexplore.shape.view import CACHED_VIEWS, Shape, View


class ShapeTracker:
    """A stack of Views, immutable. `views[0]` gives memory offsets; each further View gives row-major positions in the
    one before it.

    A movement changes the last View if a single View can express the result; else it pushes a new View. Trackers share
    the Views below, so a long chain of movements takes time and memory linear in its length.
    """

    __slots__ = ("_below", "_view", "_count")
    _below: ShapeTracker | None
    _view: View
    _count: int

    def __new__(cls, views: Sequence[View]) -> ShapeTracker:
        if not views:
            raise ValueError("a ShapeTracker needs at least one View")
        tracker: ShapeTracker | None = None
        for view in views:
            tracker = _make_tracker(tracker, view)
        assert tracker is not None
        return tracker

    @staticmethod
    def from_shape(shape: Shape) -> ShapeTracker:
        """Returns the row-major layout of `shape`, from offset 0."""
        return _from_shape(shape)

    # *** properties ***

    @property
    def shape(self) -> Shape:
        return self._view.shape

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def views(self) -> tuple[View, ...]:
        return tuple(self._iterate_top_down())[::-1]

    @property
    def single_view(self) -> bool:
        return self._below is None

    @property
    def contiguous(self) -> bool:
        """Whether this is the identity: element n (row-major) is at offset n."""
        return self._below is None and self._view.contiguous

    @property
    def real_strides(self) -> tuple[int | None, ...]:
        """Returns the memory stride of each axis, in elements. None for an axis without a constant stride."""
        tracker = self.simplify()
        if tracker._below is None:
            return tracker._view.strides
        pairs = zip(tracker._view.shape, tracker._view.strides)
        return tuple(0 if size == 1 or stride == 0 else None for size, stride in pairs)

    def _iterate_top_down(self) -> Iterator[View]:
        tracker: ShapeTracker | None = self
        while tracker is not None:
            yield tracker._view
            tracker = tracker._below

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        return isinstance(other, ShapeTracker) and self._count == other._count and self.views == other.views

    def __hash__(self) -> int:
        return hash(self.views)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapeTracker, (self.views,)

    def __repr__(self) -> str:
        return f"ShapeTracker({', '.join(map(repr, self.views))})"

    # *** movements ***

    def reshape(self, shape: Shape) -> ShapeTracker:
        tracker = self
        while True:
            view = tracker._view.reshape(shape)
            inner = tracker._below
            if view is None:
                if inner is None:
                    break
                merged = tracker._view.over(inner._view)
                if merged is None:
                    break
                tracker = _make_tracker(inner._below, merged)
            elif inner is not None and view.contiguous:
                tracker = inner  # a contiguous View adds nothing: drop it, and reshape the View below
            else:
                return _make_tracker(inner, view)
        return _make_tracker(tracker, View.create(shape))

    def expand(self, shape: Shape) -> ShapeTracker:
        return _make_tracker(self._below, self._view.expand(shape))

    def permute(self, order: Sequence[int]) -> ShapeTracker:
        return _make_tracker(self._below, self._view.permute(order))

    def pad(self, amounts: Sequence[tuple[int, int]]) -> ShapeTracker:
        return _make_tracker(self._below, self._view.pad(amounts))

    def shrink(self, bounds: Sequence[tuple[int, int]]) -> ShapeTracker:
        return _make_tracker(self._below, self._view.shrink(bounds))

    def flip(self, axes: Sequence[int]) -> ShapeTracker:
        return _make_tracker(self._below, self._view.flip(axes))

    def window(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> ShapeTracker:
        """Replaces `axis` by an axis that counts sliding windows, and a new last axis over the elements of a window."""
        view = self._view.window(axis, size, stride, dilation)
        if view is not None:
            return _make_tracker(self._below, view)
        view = View.create(self.shape).window(axis, size, stride, dilation)
        assert view is not None
        return _make_tracker(self, view)

    def diagonal(self, first: int, second: int) -> ShapeTracker:
        """Removes axis `second`. Axis `first` then walks along both."""
        return _make_tracker(self._below, self._view.diagonal(first, second))

    def simplify(self) -> ShapeTracker:
        """Merges Views where possible. The offsets stay the same."""
        if self._below is None:
            return self
        views = self.views
        while True:
            merged: list[View] = []
            for view in views:
                while merged:
                    single = view.over(merged[-1])
                    if single is None:
                        break
                    merged.pop()
                    view = single
                merged.append(view)
            if len(merged) == len(views):
                return self if len(merged) == self._count else ShapeTracker(merged)
            views = tuple(merged)

    # *** offsets ***

    def index(self, coords: Sequence[int]) -> int | None:
        """Returns the memory offset of the element at `coords`, or None in the padding. This defines the meaning of a
        ShapeTracker."""
        offset = None
        for view in self._iterate_top_down():
            if offset is not None:
                coords = _split_position(offset, view.shape)
            offset = view.locate(coords)
            if offset is None:
                return None
        return offset


def _make_tracker(inner: ShapeTracker | None, view: View) -> ShapeTracker:
    tracker = object.__new__(ShapeTracker)
    tracker._below = inner
    tracker._view = view
    tracker._count = 1 if inner is None else inner._count + 1
    return tracker


@lru_cache(CACHED_VIEWS)
def _from_shape(shape: Shape) -> ShapeTracker:
    return _make_tracker(None, View.create(shape))


def _split_position(position: int, shape: Shape) -> list[int]:
    """Returns the coordinates of a row-major position in `shape`."""
    coords = []
    for size in reversed(shape):
        position, coordinate = divmod(position, size)
        coords.append(coordinate)
    return coords[::-1]


__all__ = ["ShapeTracker"]
