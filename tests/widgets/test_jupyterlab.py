"""The widget in a real JupyterLab: it draws, clicks reach Python, Python reaches the view, keys stay in the widget."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import milliseconds, seconds

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = (
    "from tests.widgets.sample_traces import gzipped, sample_trace\n"
    "from tinyexplore.widgets import ExplorerWidget\n"
    "view = ExplorerWidget(gzipped(sample_trace()), mode='workbench')\n"
    "view",
    "print('selected', sorted(view.selected))\nview.select([8])",
)


def _notebook() -> str:
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for i, text in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab that serves one notebook and uses no settings of the user."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "view.ipynb").write_text(_notebook(), encoding="utf-8")
    settings = tmp_path / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}', encoding="utf-8")
    port = _free_port()
    own = {name: str(tmp_path / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    paths = {"JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path / 'work'}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen(command, env={**os.environ, **own, **paths}, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(480):  # a busy machine starts it slowly
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=seconds(1))
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.25)
        yield f"http://127.0.0.1:{port}/lab/tree/view.ipynb"
    finally:
        server.terminate()
        server.wait(timeout=seconds(20))
        log.close()


def test_selections_are_synchronized_and_keys_do_not_reach_jupyterlab(browser: Any, lab: str) -> None:
    tab = browser.new_page(viewport={"width": 1400, "height": 1000})
    elsewhere = []
    tab.on("request", lambda request: elsewhere.append(request.url) if "127.0.0.1" not in request.url else None)
    tab.goto(lab)
    tab.wait_for_selector("text=| Idle", timeout=milliseconds(90))
    tab.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell')")
    tab.wait_for_selector(".tinyexplore .boxes .box", timeout=milliseconds(30))
    tab.click(".tinyexplore .pane-bc [data-key=asm]")
    tab.click(".tinyexplore .pane-bc .line >> nth=10")
    marked = "['sel', 'linked'].map((kind) => document.querySelectorAll(`.tinyexplore .line.${kind}`).length)"
    selected, linked = tab.evaluate(marked)
    assert selected >= 1 and linked >= 1  # the instruction, and the lines of Python that lead to it
    cells = "document.querySelectorAll('.jp-Cell').length"
    before = tab.evaluate(cells)
    tab.focus(".tinyexplore")
    tab.keyboard.press("b")  # in a notebook: a new cell below
    assert tab.evaluate(cells) == before
    assert "Origin" in tab.inner_text(".tinyexplore .history")
    tab.click(".jp-Cell >> nth=1")
    tab.keyboard.press("Shift+Enter")
    tab.wait_for_selector("text=/selected \\[\\d+/", timeout=milliseconds(20))
    tab.wait_for_function("document.querySelectorAll('.tinyexplore .card .fact').length > 1", timeout=milliseconds(10))
    assert [url for url in elsewhere if url.startswith("http")] == []
    tab.close()
