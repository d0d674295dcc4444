"""The engine inside a page: `serving.py` runs in the page's worker and responds like a notebook.

It uses the devices of `interpreted.py` and the kernels of `rebuilt_kernels.py`. `exports/live_pages` writes such pages.
"""
