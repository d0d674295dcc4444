"""Check a site that `make site` wrote, in Chromium without a network: `python -m tests.support.site_check FOLDER`.

Every page loads nothing from elsewhere and writes no error to the console. The links and anchors of all pages lead
somewhere. The playground runs a program. JupyterLite runs its lessons from top to bottom, without an exception.
`--pictures FOLDER` keeps a picture of each page.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.chromium import FLAGS, find_chromium
from tests.support.patience import milliseconds

NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
PROGRAM = "(Tensor.rand(4, 3) @ Tensor.rand(3, 2)).softmax()"
_OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code').flatMap(cell => cell.model.outputs.toJSON())"""
_RUN_ALL = """() => { window.ranAllCells = false;
    window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.ranAllCells = true; }); }"""
_IDLE = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


class Links(HTMLParser):
    """The links of a page, and the names that a link may lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and key in ("id", "name"):
                self.names.add(value)
            elif value and (key, tag) in (("href", "a"), ("href", "link"), ("src", "img"), ("src", "iframe")):
                self.links.append(value)


def broken_links(folder: Path, *, skipped: Sequence[str] = ("notebooks",)) -> list[str]:
    """Links of a site's pages that lead nowhere. Anchors of explorations are places of the explorer, not names."""
    pages = [page for page in sorted(folder.rglob("*.html")) if page.relative_to(folder).parts[0] not in skipped]
    parsed = {page: Links(page) for page in pages if page.relative_to(folder).parts[0] != "gallery"}
    broken = []
    for page, found in parsed.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            is_anchor = bool(parts.fragment) and target in parsed
            if not target.exists() or (is_anchor and unquote(parts.fragment) not in parsed[target].names):
                broken.append(f"{page.relative_to(folder)}: {link}")
    return broken


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of a folder's files, on this machine only."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Check:
    """Pages of a site in a browser, and the faults found.

    folder: the site.
    address: where it is served.
    browser: a Chromium without a network.
    pictures: where pictures of pages go; None: nowhere.
    faults: what is wrong, one line each.
    """

    def __init__(self, folder: Path, address: str, browser: Any, pictures: Path | None) -> None:
        self.folder, self.address, self.browser, self.pictures = folder, address, browser, pictures
        self.faults: list[str] = []

    @contextmanager
    def page(self, place: str, width: int = 1400, scheme: str = "light") -> Iterator[Any]:
        """A page in a window of its own; what it requests from elsewhere, and its errors, are faults."""
        context = self.browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(milliseconds(240))
        page.on("pageerror", lambda error: self.faults.append(f"{place}: {error}"))
        local = (self.address, "blob:", "data:")
        context.on(
            "request",
            lambda request: (
                None if request.url.startswith(local) else self.faults.append(f"{place}: requests {request.url}")
            ),
        )
        page.goto(self.address + place)
        yield page
        if self.pictures is not None:
            name = place.partition("?path=")[2] or place.partition("?")[0]
            page.screenshot(path=self.pictures / f"{name.replace('/', '_')}_{width}_{scheme}.png")
        context.close()

    def plain_pages(self) -> None:
        """The landing page, the documentation, and an exploration: light, dark, and narrow."""
        for place in (
            "index.html",
            "docs/index.html",
            "docs/course/01_first_look.html",
            "docs/generated/functions.html",
        ):
            for width, scheme in ((1400, "light"), (1400, "dark"), (700, "light")):
                with self.page(place, width, scheme) as page:
                    page.wait_for_load_state("networkidle")
                    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                        self.faults.append(f"{place}: wider than a window of {width} pixels")
        for exploration in sorted((self.folder / "gallery").glob("*.html")):
            with self.page(f"gallery/{exploration.name}") as page:
                page.wait_for_selector("html[data-tinyexplore=ready]", state="attached")

    def playground(self) -> None:
        with self.page("playground/index.html") as page:
            page.wait_for_selector("#playground textarea, #playground [contenteditable]")

    def lesson(self, name: str) -> float:
        """Run a lesson in JupyterLite. Returns how many seconds its cells took."""
        with self.page(f"notebooks/lab/index.html?path={name}") as page:
            page.wait_for_function(_IDLE)
            start = time.monotonic()
            page.evaluate(_RUN_ALL)
            page.wait_for_function("window.ranAllCells")
            taken = time.monotonic() - start
            outputs = page.evaluate(_OUTPUTS)
            failed = [one for one in outputs if one["output_type"] == "error"]
            self.faults += [f"{name}: {one['ename']}: {one['evalue']}" for one in failed]
            if not any("widget-view" in kind for one in outputs for kind in one.get("data", ())) and "02" > name[:2]:
                self.faults.append(f"{name}: no view")
            page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer')?.scrollTo(0, 0)")
        return taken


def check(folder: Path, pictures: Path | None = None, only: Sequence[str] = ()) -> list[str]:
    """The faults of a site. `only`: names of lessons; empty: all."""
    from playwright.sync_api import sync_playwright

    faults = [f"a link leads nowhere: {one}" for one in broken_links(folder)]
    print(f"links: {len(faults)} broken", flush=True)
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    with served(folder) as address, sync_playwright() as playwright:
        flags = [*FLAGS, NO_NETWORK]
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        site = Check(folder, address, browser, pictures)
        site.plain_pages()
        print(f"pages: {len(site.faults)} faults", flush=True)
        if (folder / "playground").is_dir():
            site.playground()
        lessons = sorted(path.name for path in (folder / "notebooks" / "files").glob("*.ipynb"))
        for name in [one for one in lessons if not only or one in only]:
            print(f"{name}: ran in {site.lesson(name):.0f} s", flush=True)
        browser.close()
        return faults + site.faults


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/site"), help="default: build/site")
    parser.add_argument("--pictures", type=Path, help="keep a picture of each page in this folder")
    parser.add_argument("--only", nargs="*", default=(), metavar="NOTEBOOK", help="run these lessons only")
    options = parser.parse_args(arguments)
    faults = check(options.folder, options.pictures, options.only)
    print(*faults, f"{len(faults)} faults", sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
