"""The panel of decisions in a real JupyterLab: its requests reach the notebook's kernel, and the responses return."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.patience import milliseconds
from tests.widgets import test_jupyterlab
from tests.widgets.test_jupyterlab import lab as lab  # the fixture

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = (
    "from tinyexplore import Tensor, explore\n"
    "x, w = Tensor.rand(16, 32).realize(), Tensor.rand(32, 24).realize()\n"
    "view = explore(lambda: (x @ w).softmax(), repeat=1)\n"
    "stage = next(one for one in view.trace.stages if one.name == 'simplify' and one.steps)\n"
    "view.widget.mode = 'workbench'\n"
    "view.selected = stage.steps[0].before\n"
    "view.widget.go(stage=stage.id, step=0, graph='uops', place='passes', panel='why')\n"
    "view.widget",
    "print('done')",
)


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the cells of the notebook."""
    monkeypatch.setattr(test_jupyterlab, "CELLS", CELLS)


def test_the_jupyter_kernel_responds_to_the_panels_requests(browser: Any, cells: None, lab: str) -> None:
    tab = browser.new_page(viewport={"width": 1400, "height": 1000})
    tab.goto(lab)
    tab.wait_for_selector("text=| Idle", timeout=milliseconds(90))
    tab.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell')")
    tab.wait_for_selector(".tinyexplore .boxes .box", timeout=milliseconds(60))
    first = tab.wait_for_selector(".tinyexplore .why-body .attempt.fires", timeout=milliseconds(30))
    assert "fires" in first.inner_text()
    assert "could fire" in tab.inner_text(".tinyexplore .why-body .note >> nth=0")
    tab.close()
