"""Tests assert figures, names and short key phrases, so a sentence can be improved without changing a test.

A literal in an assertion has at most five words of prose in a row; `.*` in a pattern separates two key phrases.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LONGEST_PHRASE = 5  # words
# a word of prose: letters alone, so neither a figure nor a name of code, up to a space or a mark of punctuation
WORD = re.compile(r"(?<![\w$%@<&#./\\{*'-])[A-Za-z][a-z]*(?:['’-][a-z]+)*(?=[,.;:!?)]*(?:\s|$|[.\\]))")
PIECES = re.compile(r"\n|\\n|\.\*|`[^`]*`")
ASSERTING_KEYWORDS = {"match", "has_text"}
ASSERTING_CALLS = {
    *("parametrize", "search", "fullmatch", "startswith", "endswith"),
    *("to_have_text", "to_contain_text", "get_by_text"),
}
# texts that are no prose: programs, module by module
PROGRAMS = {
    "architecture/test_asserts.py",  # assertions
    "architecture/test_imports.py",  # import statements
    "engine/test_one_way.py",  # lines of Python
    "explore/test_trace_builder.py",  # rules of the trace, as Python
    "ops/test_ordering.py",  # patterns of rearrange
    "unit/renderer/test_text.py",  # kernels in each language
}


def asserted(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that a test compares with results."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg in ASSERTING_KEYWORDS)
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if called in ASSERTING_CALLS:
                yield from node.args


def literals(expression: ast.expr) -> Iterator[tuple[int, str]]:
    """(line, text) of the string literals of an expression; a value in an f-string reads as 0."""
    parts: set[ast.AST] = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.JoinedStr):
            parts.update(ast.walk(node))
            pieces = (str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
            yield node.lineno, "".join(pieces)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.lineno, node.value


def sentences(source: str) -> list[tuple[int, str]]:
    """(line, text) of the asserted literals with more than five words of prose in a row."""
    found = {literal for expression in asserted(ast.parse(source)) for literal in literals(expression)}
    return sorted(
        (line, text)
        for line, text in found
        if any(len(WORD.findall(piece)) > LONGEST_PHRASE for piece in PIECES.split(text))
    )


def test_no_test_asserts_a_sentence() -> None:
    found = [
        f"tests/{name}:{line}: {text[:80]!r}"
        for path in sorted(ROOT.rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in PROGRAMS
        for line, text in sentences(path.read_text("utf-8"))
    ]
    assert not found, "assert a figure, a field, or a phrase of five words:\n" + "\n".join(found)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_each_exception_is_needed(name: str) -> None:
    assert sentences((ROOT / name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("assert 'the axis is global and stays as it is' in text", 1),
        ("assert text == f'kernel {number} reads all of its rows two times'", 1),
        ("raises(OptError, match='the axis is global, and only loops of sums do this')", 1),
        ("page.get_by_text('the kernel was not run on this machine').click()", 1),
        ("raises(OptError, match='axis 0 by 7: .* size 6; choose an amount')", 0),
        ("assert 'size 6' in text, 'this message of the test itself may be a sentence'", 0),
        ("words = 'a sentence that no assertion compares with a result'", 0),
    ],
)
def test_sentences_are_distinguished_from_key_phrases(source: str, count: int) -> None:
    assert len(sentences(source)) == count
