"""Waits in pages whose policy forbids eval, which `page.wait_for_function` uses after its first check."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from time import monotonic
from typing import Any

from tests.support.patience import seconds

EVERY_MS = 20


def stored_in(page: str) -> dict[str, Any]:
    """What the text of a page stores beside its trace: `responses` by canonical request, and `runnable` kernels."""
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
