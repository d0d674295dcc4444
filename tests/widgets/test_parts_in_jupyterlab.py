"""Views in several cells of a real JupyterLab: one selection, one copy of the trace, controls linked to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage, jupyterlab
from tests.support.patience import milliseconds

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = (
    "import sys\nsys.path.insert(0, ROOT)\nimport ipywidgets as W\n"
    "from tests.widgets.sample_traces import sample_trace\n"
    "from tinyexplore.explore import Explorer\nview = Explorer(sample_trace())",
    "view.graph.schedule",
    'W.HBox([view.panels.code.only("source"), view.panels.code.only("asm")])',
    "view.panels.stepper",
    'view.graph.uops("simplify")',
    'slider = W.IntSlider(max=30)\nW.jslink((view.panels.stepper, "step"), (slider, "value"))\nslider',
)
VIEWS_AND_TRACES = "[document.querySelectorAll('.tinyexplore').length, window.tinyexploreSessions.size]"


def test_views_in_several_cells_share_one_selection(
    browser: Any, repository: Path, tmp_path: Path, screenshots: Path
) -> None:
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    state.mkdir()
    texts = [text.replace("ROOT", repr(str(repository))) for text in CELLS]
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for i, text in enumerate(texts)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (root / "parts.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with jupyterlab(root, state) as address:
        page = browser.new_page(viewport={"width": 1500, "height": 3000})
        lab = LabPage(page, address)
        lab.open("parts.ipynb")
        lab.run_all()
        assert lab.raised() == []
        page.locator(".part-graph .box").nth(5).wait_for(timeout=milliseconds(20))
        page.screenshot(path=screenshots / "parts.png")
        assert page.evaluate(VIEWS_AND_TRACES) == [5, 1]

        page.locator('.part-code[data-only="c"] .line.linked:visible').first.click()
        chosen = lab.await_python("len(view.selected) > 0", "True")
        assert chosen == "True"
        assert (
            lab.python("view.graph.selected == view.panels.code.only('asm').selected == view.widget.selected") == "True"
        )
        for part in ('.part-code[data-only="a"] .line.rel', '.part-graph[data-look="schedule"] .box.rel'):
            page.locator(part).first.wait_for(timeout=milliseconds(5))
        widths = [part.bounding_box()["width"] for part in page.locator(".part-code").all()]
        assert min(widths) > 400

        before = page.locator('.part-graph[data-look="uops"] .title').inner_text()
        page.locator(".part-stepper").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        assert lab.await_python("view.panels.stepper.step == slider.value > 0", "True") == "True"
        assert lab.python("view.graph.step == view.panels.stepper.step") == "True"
        lab.python("setattr(slider, 'value', 1)")
        assert lab.await_python("view.panels.stepper.step", "1") == "1"
        assert page.locator('.part-graph[data-look="uops"] .title').inner_text() == before

        pictures = page.locator("img[class^=tinyexplore-picture]")
        assert pictures.count() == 3 and not any(picture.is_visible() for picture in pictures.all())
        lab.python("view.close()")
        page.locator(".tinyexplore").first.wait_for(state="detached", timeout=milliseconds(10))
        assert lab.errors == [] and lab.foreign_requests == []
        page.close()
