"""A view without a widget: nbconvert's page without a network, and a notebook that JupyterLab does not trust."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.lab import LabPage, jupyterlab
from tests.support.patience import milliseconds
from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer

pytestmark = [pytest.mark.browser]

STATE = "application/vnd.jupyter.widget-state+json"
PICTURES = """[...document.querySelectorAll('img[class^=tinyexplore-picture]')].map(
    (image) => image.complete && image.naturalWidth > 300 && image.getBoundingClientRect().width > 300)"""


@pytest.fixture(params=["with the widgets' state", "without state"])
def notebook(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stored notebook with an explorer and one of its views, as another reader gets it."""
    view = Explorer(sample_trace())
    cells = []
    for one in (view, view.kernels.widget):
        shown: list[dict[str, Any]] = []
        monkeypatch.setattr("IPython.display.display", lambda data, shown=shown, **_: shown.append(data))
        one._ipython_display_()
        outputs = [nbformat.v4.new_output("display_data", data=data) for data in shown]
        cells.append(nbformat.v4.new_code_cell("view", outputs=outputs, execution_count=1))
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    if "with the" in request.param:
        models = {one.model_id: one.get_view_spec() | {"state": {}} for one in (view.widget, view.kernels.widget)}
        metadata["widgets"] = {STATE: {"state": models, "version_major": 2, "version_minor": 0}}
    path = tmp_path / "work" / "view.ipynb"
    path.parent.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_nbconvert_shows_the_pictures_without_a_network(browser: Any, notebook: Path) -> None:
    subprocess.run([sys.executable, "-m", "nbconvert", "--to", "html", str(notebook)], check=True, capture_output=True)
    context = browser.new_context(offline=True)
    tab = context.new_page()
    tab.goto(notebook.with_suffix(".html").as_uri())
    assert tab.evaluate(PICTURES) == [True, True]
    context.close()


@pytest.mark.slow
def test_an_untrusted_notebook_shows_the_pictures(browser: Any, notebook: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with jupyterlab(notebook.parent, tmp_path / "state") as address:
        page = browser.new_page(viewport={"width": 1400, "height": 1200})
        LabPage(page, address).open("view.ipynb")
        page.wait_for_function(f"({PICTURES}).length === 2", timeout=milliseconds(20))
        assert page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets[0].model.trusted") is False
        assert page.evaluate(PICTURES) == [True, True]
        page.close()
