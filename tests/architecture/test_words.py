"""Names are terms of the field, and one concept is defined in one module."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import tinyexplore
from tinyexplore.kernel.opts import OptOps

PACKAGE = Path(tinyexplore.__file__).parent
FRONT_END = PACKAGE.parent / "widgets" / "src"
# a word of our own that a term of the field has replaced, and the term
INSTEAD = {
    "abreast": "wide vectors",
    "crew": "threads, workers",
    "fullness": "effort",
    "lightly": "effort",
    "practise": "warm-up",
    "practice": "warm-up",
    "row_ends": "horizontal reductions",
    "viewer": "root",
    "viewers": "roots",
}
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# queries of the machine that a compiler may not make: its Target has the answers
OF_THE_MACHINE = re.compile(r"\b(cpu_count|core_count|sched_getaffinity|get_host_cpu\w*|platform\.\w+)\b")
COMPILER = ("shape", "lazy", "schedule", "kernel", "codegen", "renderer", "uop")


def names_in(path: Path) -> Iterator[str]:
    """The names of a module, Python's or TypeScript's, and its own."""
    yield path.stem
    if path.suffix == ".ts":
        yield from re.findall(r"\b(?:class|function|const|let|interface|type|enum)\s+(\w+)", path.read_text("utf-8"))
        return
    with path.open("rb") as file:
        yield from {token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME}


def words_of(name: str) -> set[str]:
    """The words of `_some_name` or `someName`, and the whole name."""
    return {name.strip("_"), *[part.lower() for part in PART.findall(name)]}


def test_no_name_has_a_word_that_a_term_of_the_field_replaced() -> None:
    files = [*PACKAGE.rglob("*.py"), *FRONT_END.rglob("*.ts")]
    found = {
        f"{path.relative_to(PACKAGE.parent)}: {name} (say: {INSTEAD[word]})"
        for path in files
        for name in names_in(path)
        for word in words_of(name) & INSTEAD.keys()
    }
    assert found == set()


def test_names_are_split_into_words() -> None:
    assert words_of("_row_ends") >= {"row_ends", "row", "ends"}
    assert words_of("addViewer") >= {"add", "viewer"}


def test_each_opt_is_one_file_and_each_file_one_opt() -> None:
    folder = PACKAGE / "kernel" / "opts"
    defined = {
        path.stem for path in folder.glob("*.py") if re.search(r"^KIND = OptKind\(", path.read_text(), re.MULTILINE)
    }
    assert defined == {op.name.lower() for op in OptOps}


def test_the_compiler_does_not_query_the_machine() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for floor in COMPILER
        for path in sorted((PACKAGE / floor).rglob("*.py"))
        for name in OF_THE_MACHINE.findall(code_of(path))
    ]
    assert found == []


def code_of(path: Path) -> str:
    """A module without comments and docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    return ast.unparse(tree)
