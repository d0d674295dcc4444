"""Draws the README's pictures of the explorer: `python docs/images/draw.py` (needs Playwright and a Chromium)."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from playwright.sync_api import sync_playwright  # noqa: E402

from tests.support.chromium import find_chromium  # noqa: E402
from tinyexplore import Tensor, explore  # noqa: E402

x = Tensor.rand(64, 48).realize()
w = Tensor.rand(48, 32).realize()
b = Tensor.rand(32).realize()


def classify() -> Tensor:
    logits = x @ w + b
    return logits.softmax()


def draw(page_path: Path) -> None:
    """Writes explorer_light.png and explorer_dark.png beside this file: an instruction selected in the workbench."""
    explore(classify, title="(x @ w + b).softmax()").to_html(page_path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        for theme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1300, "height": 780}, color_scheme=theme)
            page.goto(page_path.as_uri())
            page.get_by_text("Workbench", exact=True).click()
            page.locator("[data-pane=c] .line", has_text="vfmadd").first.click()
            page.locator(".graph .box.rel, .graph .box.sel").first.wait_for()
            page.wait_for_timeout(500)  # until what moves has arrived
            page.screenshot(path=HERE / f"explorer_{theme}.png")
        browser.close()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder) / "softmax.html")
