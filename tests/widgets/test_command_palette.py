"""The box *Go to*: in a page, in a narrow page, in a notebook's widget, and from the story."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import wait_until
from tests.support.patience import milliseconds
from tests.support.widget_model import MODEL, traits_of
from tests.widgets.sample_traces import gzipped, page, sample_trace
from tests.widgets.test_accessibility import findings
from tests.widgets.test_browser import Open, state
from tests.widgets.test_browser import open_page as open_page  # the fixture
from tinyexplore.widgets import ExplorerWidget
from tinyexplore.widgets.front_end import bundle

TRACE = sample_trace()
CHOSEN = ".goto [aria-selected=true]"

pytestmark = pytest.mark.browser


def ask(tab: Any, query: str) -> list[str]:
    """Opens the box by its key and types; the names that answer, the best first."""
    tab.keyboard.press("g")
    tab.wait_for_selector(".goto")
    tab.keyboard.type(query)
    return tab.locator(".goto .entry-name").all_inner_texts()


def take(tab: Any, query: str) -> None:
    ask(tab, query)
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".goto", state="detached")


def test_the_palette_has_entries_for_sharing_and_comparing(open_page: Open) -> None:
    tab = open_page(busy=False)
    assert ask(tab, "share")[0].startswith("This page is")
    tab.keyboard.press("Enter")
    wait_until(tab, "/cop/i.test(document.querySelector('.goto-status').textContent)")
    assert "file:" in tab.inner_text(".goto-status")
    tab.keyboard.press("Escape")
    assert ask(tab, "compare")[0] == "Compare two captures"


def test_the_palette_opens_panels_kernels_passes_and_rules_by_name(open_page: Open) -> None:
    tab = open_page(busy=False)
    take(tab, "roofl")
    assert state(tab)["cursor"]["panel"] == "roofline"
    take(tab, TRACE.kernels[1].name)
    assert state(tab)["cursor"]["kernel"] == 1
    fired = next(stage for stage in TRACE.stages if any(step.rule is not None for step in stage.steps))
    take(tab, f"pass {fired.name} kernel {fired.kernel}")
    assert state(tab)["cursor"]["stage"] == fired.id and state(tab)["cursor"]["panel"] == "rewrites"
    rule = next(step.rule for step in fired.steps if step.rule is not None)
    firings = [
        (stage.id, number)
        for stage in TRACE.stages
        for number, step in enumerate(stage.steps, 1)
        if step.rule == rule and stage.kernel in (None, fired.kernel)
    ]
    for place in firings:  # each time the next one
        take(tab, f"rule {TRACE.rules[rule].name}")
        assert (state(tab)["cursor"]["stage"], state(tab)["cursor"]["step"]) == place


def test_operations_and_uops_are_selected_and_an_opcode_chooses_its_next_line(open_page: Open) -> None:
    tab = open_page(busy=False)
    take(tab, "operation REDUCE_AXIS")
    kinds = {node.id for node in TRACE.nodes if node.op == "REDUCE_AXIS" and node.kind == "lazybuffer"}
    assert set(state(tab)["selected"]) == kinds and state(tab)["cursor"]["graph"] == "lazy"
    op = next(
        node.op for stage in TRACE.stages for node in map(TRACE.nodes.__getitem__, stage.after) if node.kind == "uop"
    )
    take(tab, f"UOp {op}")
    found = [TRACE.nodes[node] for node in state(tab)["selected"]]
    assert found and {(node.kind, node.op) for node in found} == {("uop", op)}
    program = next(one for one in TRACE.programs if one.language == "asm" and one.kernel == 0)
    word = next(line.text.split()[0] for line in program.lines if line.text.startswith("\t") or line.nodes)
    at = [number for number, line in enumerate(program.lines) if line.text.split()[:1] == [word]]
    for line in [*at, at[0]]:
        take(tab, f"opcode {word} assembly")
        tab.wait_for_selector(f".pane-c .line.caret[data-line='{line}']")


def test_actions_equal_their_keys_and_open_the_workbench_first(open_page: Open) -> None:
    tab = open_page(busy=False, mode="story")
    assert tab.locator(".story").count() == 1
    take(tab, "full size")
    tab.wait_for_selector(".tinyexplore[data-mode=workbench].is-filled")
    take(tab, "full size")
    tab.wait_for_selector(".tinyexplore:not(.is-filled)")
    take(tab, "chapter loops")
    tab.wait_for_selector(".story[data-chapter=loops]")


def test_text_without_an_entry_is_searched_in_the_graph(open_page: Open) -> None:
    tab = open_page(busy=False)
    names = ask(tab, "op:REDUCE_AXIS")
    assert names == ["Find “op:REDUCE_AXIS” in the graph"]
    expected = sum(node.op == "REDUCE_AXIS" for node in TRACE.nodes if node.kind == "lazybuffer")
    assert tab.inner_text(".goto .entry-description") == f"{expected} nodes"
    tab.keyboard.press("Enter")
    wait_until(tab, "document.querySelector('.graph .search').value === 'op:REDUCE_AXIS'")
    wait_until(tab, f"document.querySelector('.graph .found').innerText.startsWith('{expected} found')")
    assert tab.evaluate("document.activeElement.closest('.graph') !== null")


def test_keys_move_through_the_results_and_escape_restores_the_focus(open_page: Open) -> None:
    tab = open_page(busy=False)
    tab.focus(".panel-tabs .groups [aria-selected=true]")
    names = ask(tab, "re")
    field = tab.locator(".goto [role=combobox]")

    def chosen() -> str:
        assert field.get_attribute("aria-activedescendant") == tab.get_attribute(CHOSEN, "id")
        return tab.inner_text(f"{CHOSEN} .entry-name")

    assert field.get_attribute("aria-controls") == tab.get_attribute(".goto [role=listbox]", "id")
    assert chosen() == names[0]
    tab.keyboard.press("ArrowDown")
    assert chosen() == names[1]
    for _ in range(2):
        tab.keyboard.press("ArrowUp")
    assert chosen() == names[-1]
    assert tab.evaluate(f"document.querySelector('{CHOSEN}').getBoundingClientRect().bottom <= innerHeight")
    before = state(tab)
    tab.keyboard.press("Escape")
    assert tab.locator(".goto").count() == 0 and state(tab) == before
    assert tab.evaluate("document.activeElement.getAttribute('role')") == "tab"


def test_the_button_toggles_the_palette_and_a_click_outside_closes_it(open_page: Open) -> None:
    tab = open_page(busy=False)
    for expected in (1, 0, 1):
        tab.click("header .go-to")
        wait_until(tab, f"document.querySelectorAll('.goto').length === {expected}")
    tab.click("header .name")
    tab.wait_for_selector(".goto", state="detached")
    tab.click("header .go-to")
    tab.click(".goto .entry-name:text-is('Memory')")
    assert state(tab)["cursor"]["panel"] == "memory"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 366)])
def test_the_palette_is_complete_legible_and_without_grave_findings(
    open_page: Open, screenshots: Any, scheme: str, width: int
) -> None:
    tab = open_page(busy=False, width=width, scheme=scheme)
    assert tab.locator("header .go-to").is_visible()
    ask(tab, "re")
    box = tab.locator(".goto").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    sizes = tab.evaluate(
        "[...document.querySelectorAll('.goto span')].map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert min(sizes) >= 11
    assert tab.evaluate(
        "(() => { const { scrollWidth, clientWidth } = document.querySelector('.goto .found-list'); return scrollWidth <= clientWidth; })()"
    )
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"goto_{width}_{scheme}.png")


def test_a_notebook_has_the_palette_too(browser: Any) -> None:
    """There are the traits that the notebook stored, and keys that reach a notebook are none of the view's."""
    widget = ExplorerWidget(gzipped(TRACE), mode="workbench")
    traits = traits_of(widget)
    widget.close()
    tab = browser.new_page(viewport={"width": 800, "height": 900})
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto("about:blank")
    tab.expose_function("answer", lambda _: {})
    tab.evaluate(MODEL, [bundle("explorer.js"), traits])
    tab.evaluate("window.heard = []; document.addEventListener('keydown', (event) => heard.push(event.key))")
    tab.focus(".tinyexplore")
    ask(tab, "timel")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".low > .timeline")
    assert tab.evaluate("heard") == [] and errors == []
    tab.close()


def test_blocked_code_of_the_palette_is_reported(browser: Any, tmp_path: Path) -> None:
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    (tmp_path / "page.html").write_text(page(TRACE).replace("<head>", f"<head>{meta}"), encoding="utf-8")
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    tab.click("header .go-to")
    assert "script-src blob:" in tab.wait_for_selector(".message.error[role=alert]").inner_text()
    tab.close()
