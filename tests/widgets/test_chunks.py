"""Panels whose code loads on first opening: in a page, in a stored notebook, and where scripts may not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.panels import open_panel, panels_with_tabs
from tests.support.patience import milliseconds
from tests.support.widget_model import MODEL, traits_of
from tests.widgets.sample_traces import gzipped, page, sample_trace
from tinyexplore.explore.exports.html_export import export_html
from tinyexplore.explore.tracefile.model import Branch, CommandInfo
from tinyexplore.widgets import ExplorerWidget
from tinyexplore.widgets.front_end import bundle, chunk_names

READY = "html[data-tinyexplore=ready]"
STYLES = "[...document.querySelectorAll('style[data-chunk]')].map((style) => style.dataset.chunk)"
TRACE = sample_trace()

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    found = browser.new_page(viewport={"width": 1280, "height": 800})
    found.add_init_script("try { localStorage.setItem('tinyexplore.mode', 'workbench') } catch {}")
    yield found
    found.close()


def show(tab: Any, html: str, folder: Path) -> None:
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    tab.goto(path.as_uri())
    tab.wait_for_selector(READY, state="attached", timeout=milliseconds(15))


def test_the_code_of_a_panel_is_loaded_once_when_its_tab_is_opened(tab: Any, tmp_path: Path) -> None:
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.add_init_script("""window.imported = 0; const make = URL.createObjectURL.bind(URL);
      URL.createObjectURL = (blob) => { if (blob.type === 'text/javascript') window.imported += 1; return make(blob); };""")
    show(tab, page(TRACE), tmp_path)
    tab.wait_for_selector(".drawing .box", state="attached")
    before = tab.evaluate("imported")
    assert tab.evaluate(STYLES) == [] and tab.locator(".kernels").count() == 0
    for _ in range(2):
        tab.evaluate("tinyexplore.handle.go({panel: 'kernels'})")
        assert tab.locator(".kernels tbody tr").count() == len(TRACE.kernels)
        tab.evaluate("tinyexplore.handle.go({panel: 'rewrites'})")
        assert tab.locator(".kernels").is_hidden() and tab.locator(".lazy-view:not([hidden])").count() == 0
    assert tab.evaluate(STYLES) == ["kernels"] and tab.evaluate("imported") == before + 1
    tab.evaluate("tinyexplore.handle.show('story')")
    tab.wait_for_selector(".story[data-step]")
    tab.evaluate("tinyexplore.handle.show('workbench')")
    tab.evaluate("tinyexplore.handle.go({panel: 'roofline'})")
    tab.wait_for_selector(".roofline .dot")
    tab.evaluate("tinyexplore.handle.go({panel: 'kernels'})")
    assert tab.locator(".kernels tbody tr").count() == len(TRACE.kernels)
    # the kernels, the story, the roofline
    assert tab.evaluate("imported") == before + 3 and errors == []


def test_a_link_opens_a_page_at_a_panel_that_is_loaded(tab: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(export_html(TRACE), encoding="utf-8")
    tab.goto(f"{path.as_uri()}#panel=timeline&kernel=0")
    tab.wait_for_selector(READY, state="attached", timeout=milliseconds(15))
    assert tab.locator(".timeline svg").count() == 1


def test_a_page_contains_the_usable_code_and_reports_missing_code(tab: Any, tmp_path: Path) -> None:
    def carried(html: str) -> set[str]:
        return {name for name in chunk_names() if f'data-chunk="{name}"' in html}

    tried = Branch(0, None, 0, CommandInfo("SetOpts", (("kernel", 0), ("opts", ""))), "failed", "no", ())
    assert carried(export_html(replace(TRACE, branches=(tried,)))) == {*chunk_names()} - {
        "kernel_analysis",
        "fusion",
        "language_comparison",
        "browser_run",
        "stage_texts",
        "throughput",
        "warps",
    }
    plain = export_html(TRACE)
    assert carried(plain) == {*chunk_names()} - {
        "kernel_analysis",
        "fusion",
        "language_comparison",
        "browser_run",
        "stage_texts",
        "throughput",
        "tuner",
        "warps",
    }
    show(tab, plain, tmp_path)
    tab.evaluate("tinyexplore.handle.go({panel: 'tuner'})")
    assert tab.inner_text(".lazy-view:not([hidden]) code") == "view.kernels[0].apply(opts)"
    tab.evaluate("tinyexplore.handle.go({panel: 'debugger', kernel: 0})")
    assert tab.inner_text(".lazy-view:not([hidden]) code") == "view.to_html(path, iterations=2000)"
    tab.evaluate("tinyexplore.handle.go({panel: 'caches', kernel: 1})")
    assert tab.inner_text(".lazy-view:not([hidden]) code") == "view.kernels[1].caches()"


def test_a_content_security_policy_that_blocks_code_is_reported(tab: Any, tmp_path: Path) -> None:
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    show(tab, page(TRACE).replace("<head>", f"<head>{meta}"), tmp_path)
    tab.evaluate("tinyexplore.handle.go({panel: 'kernels'})")
    said = tab.inner_text(".lazy-view:not([hidden]) [role=alert]")
    assert "(script-src blob:)" in said
    tab.evaluate("tinyexplore.handle.go({panel: 'timing'})")  # all else goes on
    assert tab.locator(".timing").is_visible()


def test_a_stored_notebook_has_the_code_of_every_panel(tab: Any) -> None:
    """No Python answers: there are the traits that the notebook stored, and nothing else."""
    widget = ExplorerWidget(gzipped(TRACE), mode="workbench")
    traits = traits_of(widget)
    widget.close()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto("about:blank")
    tab.expose_function("answer", lambda _: {})
    tab.evaluate(MODEL, [bundle("explorer.js"), traits])
    tab.wait_for_selector(".panel-tabs")
    for panel, found in {"kernels": "kernels", "timeline": "timeline", "why": "why-body"}.items():
        open_panel(tab, panel)
        assert tab.locator(f".low .{found}").first.is_visible()
    assert not {"debugger", "tuner"} & set(panels_with_tabs(tab)), "they need Python"
    assert errors == []
