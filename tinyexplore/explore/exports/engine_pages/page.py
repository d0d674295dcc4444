"""Writes pages with engine: the page of a trace or a playground, with the engine and a Python for the browser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.explore.exports.engine_pages.packing import data_block, write_python_blocks
from tinyexplore.explore.exports.engine_pages.page_data import PageData, collect_page_data
from tinyexplore.explore.exports.engine_pages.pyodide import find_pyodide
from tinyexplore.explore.exports.html_export import chunk_scripts, content_policy, export_html, script_text
from tinyexplore.explore.recording.captured_graph import CapturedGraph
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.tracefile.encodable_text import write_text
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.util import Context


def live_html(
    trace: Trace,
    captured: Mapping[int, CapturedKernel] | None = None,
    *,
    graphs: Mapping[int, CapturedGraph] | None = None,
    tour: Sequence[dict[str, Any]] = (),
    responses: Mapping[str, Any] | None = None,
    pyodide: str | Path | None = None,
) -> str:
    """Returns the page of `trace` with an engine.

    captured: the captured kernels.
    graphs: the captured schedules.
    pyodide: see `find_pyodide`.
    """
    engine = engine_elements(collect_page_data(trace, captured or {}, graphs), find_pyodide(pyodide))
    return export_html(trace, tour, responses=responses, engine=engine)


def engine_elements(carried: PageData, pyodide: Path) -> str:
    """Returns the engine of a page and the code of all panels, as elements before the script that mounts the page."""
    blocks = [
        write_python_blocks(pyodide),
        data_block("carried.json", carried.to_json().encode()),
    ]
    return "\n".join([*blocks, chunk_scripts(), f"<script>{script_text('live')}</script>"])


# Targets of a playground's kernels, fully specified, so that the page does not depend on the machine that writes it.
MACHINES = (
    ("AVX2 · x86-64-v3", "x86-64-v3,threads=1,l1=32K,l2=512K"),
    ("AVX-512 · x86-64-v4", "x86-64-v4,threads=1,l1=32K,l2=1M"),
    ("Arm · Neoverse N1", "neoverse-n1,threads=1,l1=64K,l2=1M"),
)


def playground_html(*, pyodide: str | Path | None = None) -> str:
    """Returns a page with an editor. The Python in the page runs programs, and their views open below."""
    targets = {}
    for _, machine in MACHINES:
        try:
            with Context(TARGET=machine):
                targets[machine] = Device["LLVM"].target
        except DeviceUnavailable:
            continue  # without llvmlite only the interpreter's own machine is offered
    offered = [("Interpreter · scalars", ""), *(choice for choice in MACHINES if choice[1] in targets)]
    elements = engine_elements(PageData(targets), find_pyodide(pyodide))
    script = script_text("standalone")
    allowed = content_policy(script, script_text("live"), compiles=True)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<meta name="referrer" content="no-referrer">
<title>tinyexplore playground</title>
<style>body {{ margin: 0 }}</style>
</head>
<body>
<div id="playground" data-machines="{escape(json.dumps(offered))}"></div>
<noscript>The playground runs Python in this page, which takes JavaScript.</noscript>
{elements}
<script>{script}</script>
</body>
</html>
"""


def write_playground(folder: str | Path, *, pyodide: str | Path | None = None) -> Path:
    """Writes the playground as `index.html` in `folder`, for any server of static files."""
    page = playground_html(pyodide=pyodide)
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / "index.html"
    return write_text(path, page)


__all__ = ["engine_elements", "live_html", "playground_html", "write_playground"]
