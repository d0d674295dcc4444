"""A browser for the tests of the front end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium. Its absence fails the tests, unless TINYEXPLORE_NO_BROWSER=1 says that it is meant."""
    if os.environ.get("TINYEXPLORE_NO_BROWSER") == "1":
        pytest.skip("TINYEXPLORE_NO_BROWSER=1: the browser tests were not wanted")
    program = next(filter(None, map(shutil.which, BROWSER_NAMES)), None)
    if program is None:
        pytest.fail(
            f"no browser: looked for {', '.join(BROWSER_NAMES)} on PATH; install Debian's chromium, "
            "or set TINYEXPLORE_NO_BROWSER=1 to leave these tests out"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield running
        running.close()
