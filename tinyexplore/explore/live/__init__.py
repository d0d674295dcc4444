"""The engine inside a page: `serving.py` runs in the page's worker and answers what a notebook would, on the devices of
`interpreted.py` and with the kernels of `rebuilt_kernels.py`. `exports/live_pages` writes such pages.
"""
