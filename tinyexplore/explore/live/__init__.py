"""The engine inside a page: `page_server.py` runs in the page's worker and responds like a notebook.

It uses the devices of `interpreted_devices.py` and the kernels of `rebuilt_kernels.py`. `exports/engine_pages` writes
such pages.
"""
