"""Text in a trace of any origin stays text: no view creates elements or scripts from it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tests.support.panels import open_panel, panels_with_tabs
from tests.widgets.sample_traces import sample_trace
from tests.widgets.test_browser import Open, open_page
from tinyexplore.explore.tracefile.model import RuleInfo, Source
from tinyexplore.explore.tracefile.trace import Trace

pytestmark = pytest.mark.browser
EVIL = """'"><img src="x:" onerror="pwned = 1"></script></style><script>pwned = 1</script>"""
SHOWN = "title text function arg label detail law doc file reason legality_error note not_run says words".split()

__all__ = ["open_page"]


def hostile(value: Any) -> Any:
    """`value`, with markup behind each text in it that views only show."""
    if isinstance(value, tuple):
        return tuple(map(hostile, value))
    if not is_dataclass(value):
        return value
    changed = {}
    for field in fields(value):
        found = getattr(value, field.name)
        is_shown = field.name in SHOWN or (field.name == "name" and isinstance(value, (RuleInfo, Source)))
        changed[field.name] = found + EVIL if is_shown and isinstance(found, str) else hostile(found)
    return replace(value, **changed)  # type: ignore[type-var]


def test_no_markup_in_a_trace_becomes_part_of_the_page(open_page: Open) -> None:
    trace: Trace = hostile(sample_trace())
    tab = open_page(trace)
    for panel in panels_with_tabs(tab):
        open_panel(tab, panel)
    for place in ("passes", "code", "story"):
        tab.evaluate(f"tinyexplore.handle.go({{place: '{place}'}})")
    assert tab.evaluate("[window.pwned ?? 0, document.querySelectorAll('img').length]") == [0, 0]
    assert "onerror" in tab.inner_text("body")
