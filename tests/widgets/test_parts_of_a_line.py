"""Parts of a line of Python in a real browser: a selection shows which part of the expression it is."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.widgets.test_browser import Open, open_page, state  # noqa: F401
from tinyexplore import Tensor, explore
from tinyexplore.explore.tracefile.spans import marks, span_text

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="this interpreter knows no columns"),
]


def one_line_trace() -> Any:
    x, w = Tensor.rand(64, 48).realize(), Tensor.rand(48, 32).realize()
    return explore(lambda: (x @ w).softmax().sum()).trace


PIECES = """(mark) => [...document.querySelectorAll(`.pane-a .piece${mark}`)].map((one) => one.textContent).join('')"""


def test_a_selection_marks_its_part_of_a_line_and_preserves_kernel_colors(open_page: Open) -> None:  # noqa: F811
    trace = one_line_trace()
    (softmax,) = [frame.id for frame in trace.frames if span_text(trace, frame) == ".softmax()"]
    built = [node.id for node in trace.nodes if node.user == softmax]
    tab = open_page(trace, busy=False)
    before = tab.evaluate("getComputedStyle(document.querySelector('.box.k-1 rect')).fill")
    tab.click(".pane-a .piece:text-is('softmax')")
    assert state(tab)["selected"] == built
    assert tab.evaluate(PIECES, ".at") == tab.evaluate(PIECES, ".in") == ".softmax()"
    fill = "(box) => getComputedStyle(document.querySelector(box)).fill"
    plain, chosen = tab.evaluate(fill, ".box.k-1:not(.sel) rect"), tab.evaluate(fill, ".box.k-1.sel rect")
    assert before in (plain, chosen) and plain != chosen
    product = next(node.id for node in trace.nodes if node.op == "MUL" and node.kind == "lazybuffer")
    tab.evaluate(f"tinyexplore.handle.select([{product}])")
    assert tab.evaluate(PIECES, ".at") == "x @ w"
    assert tab.evaluate(fill, ".box.k-0.sel rect") not in (plain, chosen)  # tinted, and still of its kernel
    assert tab.evaluate("getComputedStyle(document.querySelector('.piece.at')).borderBottomWidth") == "2px"
    # by keyboard: the whole line, then its parts
    tab.evaluate("tinyexplore.handle.select([])")
    tab.focus(".pane-a .listing")
    seen = []
    for _ in range(4):
        tab.keyboard.press("ArrowDown")
        seen.append(tab.evaluate(PIECES, ".at"))
    assert seen == ["x @ w.softmax().sum()", "x @ w", ".softmax()", ".sum()"]


def test_the_parts_of_a_line_have_the_kernels_of_the_static_picture(open_page: Open) -> None:  # noqa: F811
    trace = one_line_trace()
    tab = open_page(trace, busy=False)
    drawn = tab.evaluate(
        "[...document.querySelectorAll('.pane-a .piece')].map((one) => [one.textContent, /k-(\\d+)/.exec(one.className)?.[1] ?? ''])"
    )
    lines = trace.sources[0].text.splitlines()
    told = [
        (lines[line - 1][mark.start : mark.stop], "" if mark.kernel is None else str(mark.kernel))
        for line, row in marks(trace, 0).items()
        for mark in row
    ]
    for words, kernel in told:
        pieces = [own for text, own in drawn if text and text in words]
        assert pieces and set(pieces) == {kernel}
    assert "".join(text for text, _ in drawn) == "".join(words for words, _ in told)
