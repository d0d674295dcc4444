"""The Content-Security-Policy of pages: only their own scripts run, and no data is sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer, compare
from tinyexplore.explore.exports.html_export import export_html

pytestmark = pytest.mark.browser

INJECTED = """<base href="https://example.com/"><script>window.pwned = 1</script>
<img src="x:" onerror="window.pwned = 2"><a id="bad" href="javascript:window.pwned = 3">x</a>
<form id="form" action="https://example.com/" method="get"><input name="a" value="b"></form>"""


@pytest.mark.parametrize("kind", ["export", "comparison"])
def test_injected_markup_does_not_run(kind: str, browser: Any, tmp_path: Path) -> None:
    trace = sample_trace()
    page = export_html(trace) if kind == "export" else compare(trace, trace).to_html()
    path = tmp_path / "page.html"
    path.write_text(page.replace("<body>", f"<body>{INJECTED}", 1), encoding="utf-8")
    tab = browser.new_page()
    tab.goto(path.as_uri())
    if kind == "export":
        tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached")
    tab.evaluate("document.getElementById('bad').click(); document.getElementById('form').submit()")
    tab.wait_for_timeout(300)
    assert tab.url == path.as_uri()
    assert tab.evaluate("[window.pwned ?? 0, document.baseURI]") == [0, path.as_uri()]
    tab.close()


def test_no_page_allows_inline_scripts() -> None:
    page = Explorer(sample_trace()).to_html()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert "unsafe" not in directives["script-src"] and "sha256-" in directives["script-src"]
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
