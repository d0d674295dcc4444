"""The code blocks of the explorer's pages run, page by page in the order of their index."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "explorer"


def test_the_index_lists_every_page() -> None:
    assert sorted(pages()) == sorted(path.name for path in FOLDER.glob("*.md") if path.name != "README.md")


def test_the_code_on_the_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for page in pages():
        blocks = re.findall(r"```python\n(.*?)```", (FOLDER / page).read_text(encoding="utf-8"), re.DOTALL)
        assert blocks, page
        text, name = "\n".join(blocks), f"<docs/explorer/{page}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), names)


def test_the_code_for_teachers_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (FOLDER.parent / "teaching.md").read_text(encoding="utf-8")
    names = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "<docs/teaching.md>", "exec"), names)
    lesson = names["without_solutions"](FOLDER.parents[1] / "notebooks" / "01_first_look.ipynb")
    texts = ["".join(cell["source"]) for cell in lesson["cells"]]
    assert [text for text in texts if "Solution" in text] == []
    assert sum('check("1.' in text for text in texts) == 2
    assert (tmp_path / "softmax_slides.html").stat().st_size > 100_000


def pages() -> list[str]:
    """The pages in the order of the index."""
    return re.findall(
        r"^\d+\. \[[^\]]+\]\((\w+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
