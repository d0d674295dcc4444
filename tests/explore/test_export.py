"""The exported page needs only a browser."""

from __future__ import annotations

import base64
import re
from html import escape

import pytest

from tests.explore import toy
from tests.support.patience import milliseconds
from tinyexplore import Tensor, explore
from tinyexplore.explore.exports.html_export import export_html, static_html, summary_text
from tinyexplore.explore.tracefile.trace import trace_from_bytes


@pytest.fixture(scope="module")
def session():
    x = Tensor.ones(8, 8).contiguous().realize()
    return explore(lambda: (x @ x).softmax(), title="<softmax> & more", repeat=3)


def test_a_page_contains_the_whole_trace(session):
    page = export_html(session.trace)
    (payload,) = re.findall(r'<script type="application/octet-stream\+base64" id="trace">([^<]*)</script>', page)
    assert trace_from_bytes(base64.b64decode(payload)) == session.trace


def test_a_page_forbids_every_request_and_makes_none(session):
    page = export_html(session.trace)
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)


def test_titles_are_escaped(session):
    page = export_html(session.trace)
    assert "<title>&lt;softmax&gt; &amp; more</title>" in page
    assert "<softmax>" not in page


def test_without_scripts_there_are_a_picture_the_kernels_and_the_options(session):
    page = static_html(session.trace)
    assert "<svg" in page
    assert "<script" not in page
    for kernel in session.trace.kernels:
        assert kernel.name in page
    assert "DEVICE=" in page


def test_an_error_is_shown_in_page_and_summary():
    with pytest.raises(ZeroDivisionError) as caught:
        explore(lambda: 1 / 0)
    trace = caught.value.explorer.trace  # type: ignore[attr-defined]
    assert "ZeroDivisionError" in summary_text(trace)
    assert "<strong>error</strong>: ZeroDivisionError" in static_html(trace)


def test_a_summary_counts_the_rows_of_the_trace():
    text = "Explorer('toy'): 2 LazyBuffers → 1 kernel (kernel 0); 4 firings of 2 rules"
    assert summary_text(toy.trace()) == text


@pytest.mark.browser
def test_a_page_opens_from_a_file_without_a_request(session, tmp_path, browser):
    session.to_html(tmp_path / "page.html")
    assert session.save(tmp_path / "saved.html").read_bytes() == (tmp_path / "page.html").read_bytes()
    url = (tmp_path / "page.html").as_uri()
    requests, problems = [], []
    page = browser.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    page.wait_for_selector(
        "html[data-tinyexplore]", state="attached", timeout=milliseconds(15)
    )  # its policy lets no text be evaluated
    assert page.evaluate("document.documentElement.dataset.tinyexplore") == "ready"
    shown = page.inner_text("#explorer")
    page.close()
    assert problems == []
    assert [request for request in requests if not request.startswith(("data:", "blob:"))] == [url]
    assert "<softmax> & more" in shown


def test_the_page_of_a_capture_without_kernels_is_one_line():
    """As in a notebook: no empty workbench, no script, and the line that says why."""
    for view in (explore(lambda: None, title="<nothing>"), explore(lambda: 3)):
        page = view.to_html()
        body = page[page.index("<body>") :]
        assert "<script" not in page and "script-src" not in page and len(page) < 3_000
        assert re.findall(r"<p>(.*?)</p>", body) == [escape(view._repr_mimebundle_()[0]["text/plain"])]
        assert re.sub(r"<[^>]+>", "", body).strip().count("\n") == 0
    assert "&lt;nothing&gt;" in explore(lambda: None, title="<nothing>").to_html()


def test_the_page_of_a_failed_capture_shows_the_error():
    def fails():
        raise ValueError(str((Tensor.ones(4) + 1).shape))

    with pytest.raises(ValueError) as failed:
        explore(fails)
    assert 'id="trace"' in failed.value.explorer.to_html()  # type: ignore[attr-defined]
