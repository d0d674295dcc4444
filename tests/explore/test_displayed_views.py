"""The memory of displayed explorers is bounded, and `close` frees it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest
from ipywidgets.widgets import widget as widgets

from tinyexplore import Tensor, explore
from tinyexplore.explore.notebook.displayed_views import displayed_views
from tinyexplore.explore.notebook.explorer import CaptureError, Explorer
from tinyexplore.explore.tracefile.codec import trace_to_json
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.util import Context, GlobalCounters


@pytest.fixture(autouse=True)
def nothing_shown() -> Iterator[None]:
    with Context(EXPLORER_MB=0):
        yield
        explored().close()


def explored(size: int = 8) -> Explorer:
    """An Explorer as a notebook has it: its views are on a page."""
    view = explore(lambda: (Tensor.ones(size, 3).contiguous() * 2).sum(1))
    data, _ = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    return view


def models() -> int:
    """Of widgets, which a page may ask for."""
    gc.collect()
    return len(widgets._instances)


def traces() -> int:
    """That are there as objects."""
    gc.collect()
    return sum(type(one) is Trace for one in gc.get_objects())


def test_views_of_a_rerun_cell_are_closed() -> None:
    explored()
    before = models()
    for _ in range(50):
        explored()
    assert models() <= before + 2, "the model of a view and that of its layout, of the one before"
    with Context(EXPLORER_MB=1):
        for _ in range(10):
            explored()
    assert models() >= before + 20, "as long as there is room, a page that is loaded again finds them"
    explored()
    assert models() <= before + 2


def test_a_referenced_view_stays_open_with_a_compressed_trace() -> None:
    explored()
    before = traces()
    first = explored()
    first.selected = first.trace.nodes[2]
    text, wanted = repr(first), trace_to_json(first.trace)
    held = [explored(), explored()]
    assert traces() <= before + 1, "the trace of the last; the others are compressed"
    assert all(view.widget.comm is not None for view in (first, *held))
    assert repr(first) == text and first.selected == (first.trace.nodes[2],)
    assert trace_to_json(first.trace) == wanted
    assert first.trace is first.trace


def test_an_unreferenced_view_is_freed_with_its_buffers() -> None:
    before = traces()
    view = explored(1 << 18)
    weak, used = ref(view), GlobalCounters.mem_used
    assert view.result is not None and traces() == before + 1
    del view
    assert traces() == before and weak() is None
    assert GlobalCounters.mem_used <= used - (1 << 20)


def test_close_frees_everything() -> None:
    explored().close()
    before = models(), traces()
    view = explored()
    result = ref(view.result)
    assert (models(), traces()) == (before[0] + 2, before[1] + 1)
    view.close()
    assert (models(), traces()) == before and result() is None
    assert repr(view) == "Explorer(closed)" and view._repr_mimebundle_()[0] == {"text/plain": "Explorer(closed)"}
    with pytest.raises(CaptureError, match="closed"):
        view.trace  # noqa: B018 - builds it
    view.close()


def test_an_open_capture_cannot_be_closed() -> None:
    from tinyexplore.explore import capture

    with capture() as session:
        with pytest.raises(CaptureError, match="not ended"):
            session.close()
    session.close()


def test_the_list_of_displayed_views_removes_closed_ones() -> None:
    explored().close()
    before = len(displayed_views)
    for _ in range(5):
        explored().close()
    assert len(displayed_views) <= before
