"""The language check (`tests/support/prose.py`) finds its patterns; `make check` runs it on the project."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support import prose

PROGRAM = '''
"""Tells somebody."""

from dataclasses import dataclass


@dataclass
class Run:
    """A run.

    seconds: how long it took.
    """

    seconds: float
    name: str  # of the kernel
    hidden: int


message = f"it was {told} in words, somebody said"
'''
LONG = "One sentence " + "with many words " * 12 + "is too long.\n\nA short one is not: `in words` is code.\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    return tmp_path


def test_words_and_fields_of_a_module_are_found(project: Path) -> None:
    (project / "module.py").write_text(PROGRAM)
    found = [
        (finding.line, finding.kind, finding.text.split(":")[0]) for finding in prose.findings(project / "module.py")
    ]
    assert sorted(found) == [
        (2, "word", "'Tells'"),
        (2, "word", "'somebody'"),
        (16, "field", "Run.hidden is not described"),
        (19, "word", "'in words'"),
        (19, "word", "'somebody'"),
    ]


def test_long_sentences_of_a_page_are_found_and_code_is_not(project: Path) -> None:
    (project / "page.md").write_text(LONG)
    (finding,) = prose.findings(project / "page.md")
    assert (finding.kind, finding.line, finding.text.split()[0]) == ("sentence", 1, "41")


def test_the_check_fails_where_there_is_a_finding(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "module.py").write_text('"""A page. obstacle: is the name of a field, `told` is code."""\n')
    monkeypatch.setattr("sys.argv", ["prose", "--check"])
    monkeypatch.setattr(prose, "packages", lambda: {"all": [project]})
    with pytest.raises(SystemExit) as ended:
        prose.main()
    assert ended.value.code == 1 and "'obstacle'" in capsys.readouterr().out
    (project / "module.py").write_text('"""A page.\n\nobstacle: the name of a field, `told` is code.\n"""\n')
    with pytest.raises(SystemExit) as ended:
        prose.main()
    assert ended.value.code == 0 and capsys.readouterr().out == ""


def test_texts_of_the_front_end_and_cells_of_notebooks_are_read_and_code_is_not(project: Path) -> None:
    (project / "view.ts").write_text(
        'import x from "./twins";\nconst told = `${told} bytes`; // somebody\nconst title = "what nobody reads";\n'
    )
    (project / "lesson.ipynb").write_text(
        json.dumps(
            {"cells": [{"cell_type": "markdown", "source": ["Told.\n"]}, {"cell_type": "code", "source": ["told"]}]}
        )
    )
    words = [
        (finding.line, finding.text.split(":")[0])
        for name in ("view.ts", "lesson.ipynb")
        for finding in prose.findings(project / name)
    ]
    assert words == [(2, "'somebody'"), (3, "'nobody'"), (1, "'Told'")]


def test_a_string_below_a_field_describes_it(project: Path) -> None:
    (project / "module.py").write_text(
        'from dataclasses import dataclass\n\n\n@dataclass\nclass Run:\n    """A run."""\n\n'
        '    seconds: float\n    """How long it took."""\n    count: int\n'
    )
    assert [finding.text for finding in prose.findings(project / "module.py")] == ["Run.count is not described"]


def test_a_count_and_the_next_word_have_a_space_between_them(repository: Path) -> None:
    """`f"{count_text(n, 'kernel')} are"`: the noun ends inside the braces."""
    glued = [
        f"{path.relative_to(repository)}: {text}"
        for path in (repository / "tinyexplore").rglob("*.py")
        for text in re.findall(r"\bcount_text\([^{}\"]*\)\}[A-Za-z]\w*", path.read_text("utf-8"))
    ]
    assert glued == []
