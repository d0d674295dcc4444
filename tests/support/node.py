"""Node, in which some tests run WebAssembly or a browser's Python."""

from __future__ import annotations

import os
import shutil

import pytest


def need_node() -> str:
    """The path of Node. Without Node the test is skipped, or fails where the browser tests are required."""
    node = shutil.which("node")
    if node is None and os.environ.get("TINYEXPLORE_REQUIRE_BROWSER", "") not in ("", "0"):
        pytest.fail("TINYEXPLORE_REQUIRE_BROWSER is set, but there is no Node")
    return node or pytest.skip("there is no Node")
