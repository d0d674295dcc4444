"""Panels about a selected node, opened before any selection: a button shows an example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.panels import open_panel
from tests.widgets.test_throughput_view import opened
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    x = Tensor(np.ones((8, 8), np.float32)).realize()
    return explore(lambda: x.softmax(), repeat=1, title="softmax")


@pytest.mark.parametrize("panel", ["why", "history"])
def test_a_button_shows_an_example(browser: Any, view: Explorer, tmp_path: Path, panel: str) -> None:
    tab = opened(browser, view.to_html(), tmp_path)
    open_panel(tab, panel)
    shown = ".low > :not(.panel-tabs):not([hidden])"
    tab.click(f"{shown} .empty button")
    tab.wait_for_function("() => tinyexplore.handle.state.selected.length === 1")
    tab.wait_for_function(
        "(shown) => document.querySelector(shown).querySelector('.empty') === null"
        " && document.querySelector(shown).childElementCount > 1",
        arg=shown,
    )
    tab.close()


def test_the_decisions_panel_explains_opts_and_rules(browser: Any, view: Explorer, tmp_path: Path) -> None:
    tab = opened(browser, view.to_html(), tmp_path)
    open_panel(tab, "why")
    tab.click(".why-body .questions button:has-text('opts')")
    tab.wait_for_function("() => document.querySelector('.why-body .questions') === null")
    assert "default schedule" in tab.inner_text(".why-body")
    tab.evaluate("tinyexplore.handle.go({stage: null})")
    tab.click(".why-body .questions button:has-text('rules')")
    tab.wait_for_function("() => document.querySelector('.why-body .questions') === null")
    assert "Fired" in tab.inner_text(".why-body")
    tab.close()
