"""Pages that carry the engine: one HTML file with the engine and a Python for the browser.

Gain: a page answers what-if questions without a Python process: the first after 1.9 s, later ones in 5 ms.

`pyodide.py` has the Python, `packing.py` and `page.py` make the page, `carried.py` is what it knows beside the trace.
`explore/live` is what runs in such a page.
"""
