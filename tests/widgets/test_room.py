"""How the workbench divides its width in a notebook at 1440 px: code, the graph, and the card of the selected node."""

from __future__ import annotations

import pytest

from tests.support.pages import reload
from tests.support.panels import open_panel
from tests.widgets.test_browser import Open, open_page  # noqa: F401

pytestmark = pytest.mark.browser

CELL = 1005  # pixels that JupyterLab leaves a cell's output of 1440


def test_sixty_columns_of_code_are_visible(open_page: Open) -> None:  # noqa: F811
    tab = open_page(width=CELL, height=780)
    columns = tab.evaluate(
        """() => [...document.querySelectorAll('.codes .listing')].map((listing) => {
          const probe = document.createElement('code');
          probe.textContent = 'x'.repeat(60);
          listing.querySelector('.line').append(probe);
          const wide = probe.getBoundingClientRect().width;
          const gutter = listing.querySelector('.line u').getBoundingClientRect().width;
          probe.remove();
          return (listing.clientWidth - gutter) / (wide / 60);
        })"""
    )
    assert len(columns) == 2 and min(columns) >= 60
    assert tab.get_attribute(".pane-bc [role=tab]", "data-key") is not None


@pytest.mark.parametrize("panel", ["kernels", "timing", "glossary", "rewrites"])
def test_the_graph_does_not_move_when_a_panel_opens(open_page: Open, panel: str) -> None:  # noqa: F811
    tab = open_page(width=CELL, height=780)
    open_panel(tab, panel)
    assert tab.locator(".graph .canvas").bounding_box()["height"] > 80


def test_the_card_docks_next_to_the_graph_and_is_remembered(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, width=CELL, height=780)
    tab.click(".graph .box >> nth=0")
    tab.click(".card .dock")
    canvas, card = (tab.locator(one).bounding_box() for one in (".graph .canvas", ".card"))
    assert card["x"] >= canvas["x"] + canvas["width"] - 1  # it covers nothing
    first = tab.inner_text(".card")
    tab.evaluate("tinyexplore.handle.select([tinyexplore.handle.state.selected[0] + 1])")
    assert tab.is_visible(".card") and tab.inner_text(".card") != first
    tab.focus(".tinyexplore")
    tab.keyboard.press("Escape")
    assert "Select a node" in tab.inner_text(".card")
    reload(tab)
    tab.wait_for_selector(".card.is-docked")
    tab.evaluate("tinyexplore.handle.select([])")
    tab.click(".card .dock")
    assert tab.locator(".card").is_hidden()


def test_the_keyboard_focus_enters_the_card_stays_and_returns(open_page: Open) -> None:  # noqa: F811
    """C goes to it, Tab to its buttons; it keeps the focus while the selection changes; Escape leads back."""
    tab = open_page(busy=False, width=CELL, height=780)
    tab.evaluate("tinyexplore.handle.select([0])")
    tab.focus(".tinyexplore")
    tab.keyboard.press("c")
    on = "(where) => document.activeElement.matches(where)"
    assert tab.evaluate(on, ".card")
    tab.keyboard.press("Tab")
    assert tab.evaluate(on, ".card .dock")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".card.is-docked") and tab.evaluate(on, ".card .dock")
    tab.evaluate("tinyexplore.handle.select([1])")
    assert tab.evaluate(on, ".card, .card *")
    tab.keyboard.press("Escape")
    assert tab.evaluate(on, ".tinyexplore") and "Select a node" in tab.inner_text(".card")
    tab.keyboard.press("c")
    assert tab.evaluate(on, ".card.is-docked")
