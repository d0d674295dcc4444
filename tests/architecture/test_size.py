"""How much there is to read: `python -m tests.architecture.test_size` prints it."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tinyexplore"
NOT_ENGINE = {"explore", "widgets", "static", "cli.py"}
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}

MOST_TOKENS = 365_800  # the aim is 240 000; what makes this larger is to make something else smaller
MOST_LINES = 60
MOST_LINES_OF_A_MODULE = 400  # of the front end
LONGER = {
    "uop/rewrite.py:_rewrite",  # the rewriter's one loop, the hottest there is: left whole
    "cli.py:_parser",  # a list of commands and their options
    "explore/exports/script_body.py:main",  # written whole into the scripts that pages hand out
}


def engine_files() -> list[Path]:
    """The engine's own files."""
    return [path for path in package_files() if path.relative_to(PACKAGE).parts[0] not in NOT_ENGINE]


def package_files() -> list[Path]:
    """All that is not generated."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "uop" / "matchers.py")


def tokens_in(path: Path) -> int:
    """Tokens that say something: neither layout nor comments; a docstring is one."""
    with path.open("rb") as file:
        return sum(token.type not in LAYOUT for token in tokenize.tokenize(file.readline)) - 1  # the encoding


def long_functions(path: Path) -> dict[str, int]:
    """The functions that take more than `MOST_LINES` lines, with how many."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    lines = [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in functions]  # a name may come twice
    return {f"{path.relative_to(PACKAGE)}:{name}": count for name, count in lines if count > MOST_LINES}


def test_the_engine_does_not_grow() -> None:
    assert sum(map(tokens_in, engine_files())) <= MOST_TOKENS


def test_functions_fit_on_a_screen() -> None:
    found = {name for path in package_files() for name in long_functions(path)}
    assert found == LONGER


def test_a_module_of_the_front_end_can_be_held_in_the_head() -> None:
    paths = set((PACKAGE.parent / "widgets" / "src").rglob("*.ts")) - {PACKAGE.parent / "widgets" / "src" / "model.ts"}
    lengths = {path.name: len(path.read_text().splitlines()) for path in paths}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_MODULE} == {}


def report() -> None:
    """Prints tokens by folder, the largest first, and the longest functions."""
    folders: dict[str, int] = {}
    for path in engine_files():
        folder = path.relative_to(PACKAGE).parts[0]
        folders[folder] = folders.get(folder, 0) + tokens_in(path)
    for folder, count in sorted(folders.items(), key=lambda entry: -entry[1]):
        print(f"{count:8,}  {folder}")
    print(f"{sum(folders.values()):8,}  the engine; at most {MOST_TOKENS:,}")
    for path in package_files():
        for name, count in long_functions(path).items():
            print(f"{count:8}  lines: {name}")


if __name__ == "__main__":
    report()
