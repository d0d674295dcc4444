"""Hooks for the whole suite: which tests this machine can run, and saying aloud which it cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.chromium import FLAGS, find_chromium, no_chromium_notice
from tests.support.machine import complete_environment, pinned_machine
from tests.support.patience import milliseconds

complete_environment(os.environ)  # before the package reads its settings; processes that tests start inherit it

# CI tries the same examples every time, so that a change fails by its own doing; elsewhere new ones are looked for
# how long an example takes says nothing: the first may open a device and compile
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("here" if os.environ.get("CI", "") in ("", "0") else "ci")

LAST_FOLDER, LONGEST = "widgets", "test_story_pages.py"
LEFT_OUT = pytest.StashKey[tuple[int, str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the browser tests out where they were declined or there is no Chromium; CI may demand them.

    The file that takes longest comes first in the last folder, so that no process works on it alone at the end.
    """
    items.sort(key=lambda item: (LAST_FOLDER in item.path.parts, item.path.name != LONGEST))
    browser_tests = [item for item in items if item.get_closest_marker("browser")]
    if not browser_tests:
        return
    if os.environ.get("TINYEXPLORE_NO_BROWSER", "") not in ("", "0"):
        reason = "TINYEXPLORE_NO_BROWSER is set"
    elif find_chromium() is None:
        reason = no_chromium_notice()
        if os.environ.get("TINYEXPLORE_REQUIRE_BROWSER", "") not in ("", "0"):
            raise pytest.UsageError(f"TINYEXPLORE_REQUIRE_BROWSER is set, but {reason}")
    else:
        return
    items[:] = [item for item in items if not item.get_closest_marker("browser")]
    config.hook.pytest_deselected(items=browser_tests)
    config.stash[LEFT_OUT] = (len(browser_tests), reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test with the mark `pinned` sees the machine of `tests.support.machine`, whatever TARGET says."""
    if item.get_closest_marker("pinned") is None:
        return (yield)
    with pinned_machine():
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that runs tests for another one tells it what it left out."""
    if hasattr(session.config, "workeroutput") and LEFT_OUT in session.config.stash:
        session.config.workeroutput["left out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every such process has left out the same."""
    if left_out := getattr(node, "workeroutput", {}).get("left out"):
        node.config.stash[LEFT_OUT] = tuple(left_out)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if left_out := config.stash.get(LEFT_OUT, None):
        count, reason = left_out
        terminalreporter.section("BROWSER TESTS LEFT OUT", sep="!", red=True, bold=True)
        terminalreporter.line(f"{count} browser tests did not run: {reason}", red=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium, shared by the session's browser tests; each takes a page or context of its own."""
    from playwright.sync_api import sync_playwright

    program = find_chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        _wait_longer(chromium)
        yield chromium
        chromium.close()


def _wait_longer(chromium: Any) -> None:
    """Give each page and context of `chromium` Playwright's usual limit, scaled by the speed of this machine."""
    new_context, new_page = chromium.new_context, chromium.new_page

    def patient(make: Any) -> Any:
        def with_limit(**options: Any) -> Any:
            made = make(**options)
            made.set_default_timeout(milliseconds(30))
            return made

        return with_limit

    chromium.new_context, chromium.new_page = patient(new_context), patient(new_page)


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where browser tests leave pictures for a person to look at: $SCREENSHOTS, else a temporary folder."""
    wanted = os.environ.get("SCREENSHOTS")
    folder = Path(wanted) if wanted else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).parent
