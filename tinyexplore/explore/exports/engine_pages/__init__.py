"""Pages with engine: one HTML file with the engine and a Python for the browser.

Gain: a page answers what-if questions without a Python process: the first after 1.9 s, later ones in 5 ms.

`pyodide.py` finds the Python, `packing.py` and `page.py` write the page, and `page_data.py` has its data beside the
trace. `explore/live` runs in the page.
"""
