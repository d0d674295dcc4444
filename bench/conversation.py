"""The worker side of the protocol between harness and workers (`bench.harness.PeerProcess`): JSON lines."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]


def serve(answer: Callable[[Message], Message]) -> None:
    """Answer requests until one is `bye` or the harness ends.

    Other output goes to stderr, since stdout carries the replies.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "bye":
            return
        replies.write(json.dumps(answer(request)) + "\n")
        replies.flush()


def error_reply(error: Exception) -> Message:
    """Return the reply for an exception of a worker: a failure must reach the report, and must not end the process."""
    traceback.print_exception(error, limit=-6)
    words = "".join(traceback.format_exception_only(type(error), error)).strip()
    return {"ok": False, "kind": "error", "reason": words[-600:]}
