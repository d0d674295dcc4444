"""Waits in pages whose policy forbids eval, which `page.wait_for_function` uses after its first check."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from time import monotonic
from typing import Any

from tests.support.patience import milliseconds, seconds

EVERY_MS = 20
ATTEMPTS = 5
STORAGE = "Object.entries(localStorage)"
IS_STILL = """async () => {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
  const ending = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity);
  return ending.every((one) => one.playState === "finished");
}"""
RESTORE = "(lost) => lost.forEach(([name, value]) => localStorage.setItem(name, value))"


def stored_in(page: str) -> dict[str, Any]:
    """The data that a page's text stores beside its trace: `responses` by canonical request, and `runnable` kernels."""
    (found,) = re.findall(r'id="stored">(.*?)</script>', page)
    stored: dict[str, Any] = json.loads(gzip.decompress(b64decode(found)))
    return stored


def responses_in(page: str, kind: str) -> dict[str, Any]:
    """The responses of one kind that a page stores, by canonical request."""
    return {key: data for key, data in stored_in(page)["responses"].items() if json.loads(key)["ask"] == kind}


def wait_until(tab: Any, expression: str, arg: Any = None, limit_s: float = 30) -> None:
    """Asks the page until `expression` (or a function of `arg`) is true. AssertionError after `limit_s`, scaled."""
    limit_s = seconds(limit_s)
    end = monotonic() + limit_s
    while not tab.evaluate(expression, arg):
        assert monotonic() < end, f"not true within {limit_s:.0f} s: {expression}"
        tab.wait_for_timeout(EVERY_MS)


def settle(tab: Any, least_ms: float) -> None:
    """Wait `least_ms`, and until all finite transitions and animations have ended."""
    tab.wait_for_timeout(least_ms)
    wait_until(tab, IS_STILL)


def reload(tab: Any, address: str = "") -> None:
    """Reloads the explorer's page, or opens `address`, with what the page stored in the browser.

    Chromium on a busy machine sometimes loses what a page read from a file has just stored. Entries that are missing
    or old after the reload are stored again, and the page is reloaded again. A page that removes them fails its test:
    they are missing after the last attempt, too.
    """
    before = tab.evaluate(STORAGE)
    for _ in range(ATTEMPTS):
        tab.goto(address) if address else tab.reload()
        tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
        after = tab.evaluate(STORAGE)
        lost = [entry for entry in before if entry not in after]
        if not lost:
            return
        tab.evaluate(RESTORE, lost)
