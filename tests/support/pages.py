"""Waiting in pages whose policy lets no text be evaluated, which `page.wait_for_function` does after its first look."""

from __future__ import annotations

from time import monotonic
from typing import Any

EVERY_MS = 20


def wait_until(tab: Any, expression: str, arg: Any = None, timeout: float = 30_000) -> None:
    """Asks the page until `expression` (or a function of `arg`) is true. AssertionError after `timeout` ms."""
    end = monotonic() + timeout / 1e3
    while not tab.evaluate(expression, arg):
        assert monotonic() < end, f"not true within {timeout:.0f} ms: {expression}"
        tab.wait_for_timeout(EVERY_MS)
