"""The explorer in Notebook 7, marimo and other anywidget hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage, await_server, free_port, notebook7
from tests.support.patience import milliseconds, seconds
from tests.widgets.sample_traces import gzipped, sample_trace
from tinyexplore.widgets import ExplorerWidget

VIEW = """import sys
sys.path.insert(0, {root!r})
from tests.widgets.sample_traces import gzipped, sample_trace
from tinyexplore.widgets import ExplorerWidget
view = ExplorerWidget(gzipped(sample_trace()), mode="workbench")
"""


@pytest.mark.browser
@pytest.mark.slow
def test_the_widget_works_in_notebook_7_and_a_click_reaches_python(
    browser: Any, repository: Path, tmp_path: Path, screenshots: Path
) -> None:
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    state.mkdir()
    source = VIEW.format(root=str(repository)) + "view"
    cell = {"cell_type": "code", "id": "c0", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (work / "view.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with notebook7(work, state) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 1100})
        lab = LabPage(page, address)
        lab.open("view.ipynb", at="notebooks")
        lab.errors.clear()  # the frame's own, while it starts
        lab.run_all()
        assert lab.raised() == []
        page.locator(".tinyexplore .boxes .box").nth(3).wait_for(timeout=milliseconds(30))
        page.click(".tinyexplore .pane-bc [data-key=asm]")
        page.click(".tinyexplore .pane-bc .line >> nth=10")
        assert lab.await_python("len(view.selected) > 0", "True") == "True"
        page.screenshot(path=screenshots / "notebook7.png")
        box = page.locator(".tinyexplore").bounding_box()
        assert box["width"] > 700 and box["x"] + box["width"] <= 1400
        assert lab.errors == [] and lab.foreign_requests == []
        page.close()


MARIMO = """import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import marimo as mo
    {view}
    shown = mo.ui.anywidget(view)
    shown
    return mo, shown, view


@app.cell
def _(mo, shown):
    mo.md(f"selected {{len(shown.value['selected'])}} nodes")
    return
"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(find_spec("marimo") is None, reason="marimo is not installed: pip install marimo; CI does")
def test_the_widget_works_in_marimo_and_a_click_reaches_other_cells(
    browser: Any, repository: Path, tmp_path: Path, screenshots: Path
) -> None:
    app = tmp_path / "app.py"
    view = "\n    ".join(VIEW.format(root=str(repository)).splitlines())
    app.write_text(MARIMO.format(view=view), encoding="utf-8")
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "marimo", "run", str(app), "--headless", "--no-token"]
    log = tmp_path / "marimo.log"
    with log.open("w") as stream:
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
        server = subprocess.Popen(
            [*command, "--host=127.0.0.1", f"--port={port}"],
            cwd=tmp_path,
            env=environment,
            stdout=stream,
            stderr=stream,
        )
        try:
            await_server(server, address, log, "/health")
            page = browser.new_page(viewport={"width": 1300, "height": 1000})
            page.goto(address)
            page.locator(".tinyexplore .boxes .box").nth(3).wait_for(timeout=milliseconds(90))
            page.get_by_text("selected 0 nodes").wait_for(timeout=milliseconds(20))
            page.locator(".tinyexplore .pane-bc [data-key=asm]").click()
            page.locator(".tinyexplore .pane-bc .line").nth(10).click()
            page.get_by_text(re.compile("selected [1-9]")).wait_for(timeout=milliseconds(20))
            page.screenshot(path=screenshots / "marimo.png")
            page.close()
        finally:
            server.terminate()
            server.wait(timeout=seconds(20))


def test_the_widget_sends_json_or_bytes_and_its_code_is_one_module() -> None:
    """VS Code, Colab and marimo take no more than that: traits, and an ES module with `initialize` and `render`."""
    widget = ExplorerWidget(gzipped(sample_trace()))
    state = {name: value for name, value in widget.get_state().items() if name not in ("layout", "tabbable", "tooltip")}
    for name, value in state.items():
        if not isinstance(value, (bytes, memoryview)):
            assert json.dumps(value), name
    code = state["_esm"]
    assert re.search(r"export\{[\w$]+ as default\};?\s*$", code)
    assert re.findall(r"(?:^|[;}])import[ {*\"']", code) == [] and "require(" not in code
    assert not state.get("_css")  # styles come with the code
    widget.close()


def test_the_front_end_uses_only_anywidgets_model_interface(repository: Path) -> None:
    asked: dict[str, set[str]] = {}
    for source in (repository / "widgets" / "src").rglob("*.ts"):
        for word in re.findall(
            r"\b(?:model|explorer)\.(get|set|on|off|save_changes|send|\w*manager\w*|comm\w*|_\w+)\b", source.read_text()
        ):
            asked.setdefault(word, set()).add(source.name)
    assert set(asked) <= {"get", "set", "on", "off", "save_changes", "send", "widget_manager"}
    # a single view finds its explorer by the widget manager; the explorer needs none
    assert asked["widget_manager"] == {"view_widget.ts"}
