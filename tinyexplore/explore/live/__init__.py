"""Live pages: one HTML file that carries the engine and a Python for the browser, and answers what a notebook would.

`pyodide.py` has the Python, `packing.py` and `page.py` make the page, `carried.py` is what it knows beside the trace;
`serving.py` is what runs in the page's worker, on the devices of `interpreted.py` and the kernels of `again.py`.
"""

from __future__ import annotations

from tinyexplore.explore.live.page import live_html, playground_html, write_playground
from tinyexplore.explore.live.pyodide import PYODIDE_VERSION, PyodideMissing, find_pyodide

__all__ = ["PYODIDE_VERSION", "PyodideMissing", "find_pyodide", "live_html", "playground_html", "write_playground"]
