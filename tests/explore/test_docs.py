"""The page about the explorer tells the truth."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explorer.md"


def test_the_code_on_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    text = "\n".join(blocks)
    name = "<docs/explorer.md>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), {"__name__": "page"})
