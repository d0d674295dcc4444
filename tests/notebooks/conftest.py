"""One JupyterLab for the notebooks that tests click through; each opens in its own window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage, jupyterlab


@pytest.fixture(scope="session")
def served(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab with copies of all notebooks."""
    root, state = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("state")
    for notebook in (repository / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, root)
    with jupyterlab(root, state) as address:
        yield address


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, browser: Any, served: str) -> Iterator[LabPage]:
    """The module's NOTEBOOK, opened and run from top to bottom; a script BEFORE runs in its page before all else."""
    notebook = request.module.NOTEBOOK
    context = browser.new_context(viewport={"width": 1600, "height": 1100})
    page = context.new_page()
    page.add_init_script(getattr(request.module, "BEFORE", ""))
    lab = LabPage(page, served)
    lab.open(notebook, at=f"lab/workspaces/{notebook.split('.')[0]}/tree")
    lab.run_all()
    yield lab
    lab.shut_down()
    context.close()
