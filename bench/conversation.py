"""A worker's side of the conversation with the harness (`bench.harness.PeerProcess`): JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]


def serve(answer: Callable[[Message], Message]) -> None:
    """Answers until told `bye` or the harness goes. What else is printed goes to stderr: stdout is for replies."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "bye":
            return
        replies.write(json.dumps(answer(request)) + "\n")
        replies.flush()


def raised(error: Exception) -> Message:
    """The reply where `error` was raised: a worker's own failure must reach the report, not end the process."""
    traceback.print_exception(error, limit=-6)
    words = "".join(traceback.format_exception_only(type(error), error)).strip()
    return {"ok": False, "kind": "error", "reason": words[-600:]}
