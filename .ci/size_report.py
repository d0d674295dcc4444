"""Report the size of the code by package, and fail on a function that is too complex or too long.

    python .ci/size_report.py [--since REVISION]

The report has tokens, lines, and the longest and the most complex function of each package, with the change since the
last release (the newest tag `v*`) or since REVISION. The exit status is 1 where a function has a cyclomatic
complexity above 25 or more than 80 lines. Generated modules and tests are not counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {
    "widgets/src/model.ts",
    "widgets/src/requests.ts",
    "widgets/src/panel_rows.ts",
    "widgets/src/panel_views.ts",
    "widgets/src/command_palette/panel_descriptions.ts",
}
MAX_COMPLEXITY = 25
MAX_LINES = 80

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Function:
    """One function.

    path: its file, relative to the repository; name: its name
    lines: how many lines it has, without decorators; complexity: its cyclomatic complexity
    """

    path: str
    name: str
    lines: int
    complexity: int


@dataclass
class Size:
    """The size of one package.

    tokens: tokens without layout and comments, None for TypeScript; a docstring is one token
    lines: lines of its files
    functions: its functions, empty for TypeScript
    """

    tokens: int = 0
    lines: int = 0
    functions: list[Function] = field(default_factory=list)


def complexity(function: ast.AST) -> int:
    """Cyclomatic complexity: 1 + branches, loops, handlers, boolean operators and clauses of comprehensions.

    Nested functions count towards the function that contains them.
    """
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


def count_tokens(source: bytes) -> int:
    """Tokens of a Python file, without layout and comments."""
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return sum(token.type not in LAYOUT for token in tokens) - 1  # the first token is the encoding


def functions_of(path: str, source: bytes) -> Iterator[Function]:
    """All functions of a Python file, nested ones too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTIONS):
            yield Function(path, node.name, (node.end_lineno or 0) - node.lineno + 1, complexity(node))


def package_of(path: str) -> str:
    """The package that a file is counted in: a folder of `tinyexplore`, a module of its root, or `widgets/src`."""
    if path.startswith("widgets/"):
        return "widgets/src (TypeScript)"
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else "(root modules)"


def is_counted(path: str) -> bool:
    """Whether a file is source code, not generated text."""
    if path in GENERATED:
        return False
    suffix = ".ts" if path.startswith("widgets/") else ".py"
    return path.endswith(suffix)


def measure(files: Iterator[tuple[str, bytes]]) -> dict[str, Size]:
    """The size of each package, from paths and contents of files."""
    sizes: dict[str, Size] = {}
    for path, source in files:
        if not is_counted(path):
            continue
        size = sizes.setdefault(package_of(path), Size())
        size.lines += source.count(b"\n")
        if path.endswith(".py"):
            size.tokens += count_tokens(source)
            size.functions += functions_of(path, source)
    return sizes


def working_tree() -> Iterator[tuple[str, bytes]]:
    """Paths and contents of the files as they are now."""
    for folder in ("tinyexplore", "widgets/src"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".ts"):
                yield path.relative_to(ROOT).as_posix(), path.read_bytes()


def files_at(revision: str) -> Iterator[tuple[str, bytes]]:
    """Paths and contents of the files of a revision."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", revision, "tinyexplore", "widgets/src"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                yield member.name, content.read()


def last_release() -> str | None:
    """The newest tag `v*` that HEAD descends from; None without one, or outside a Git repository."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v*"]
    try:
        described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return described.stdout.strip() or None


def print_report(sizes: dict[str, Size], before: dict[str, Size] | None) -> None:
    """Print a row for each package, the largest first, and the totals."""
    print(f"{'package':26} {'tokens':>8} {'change':>8} {'lines':>8} {'change':>8}  longest function; most complex one")
    for name, size in sorted(sizes.items(), key=lambda entry: -entry[1].lines):
        print(f"{name:26} {_counts(size, None if before is None else before.get(name, Size()))}  {_largest(size)}")
    print(f"{'all':26} {_counts(_total(sizes), None if before is None else _total(before))}")


def _counts(size: Size, before: Size | None) -> str:
    columns: list[str] = []
    earlier = (None, None) if before is None else (before.tokens, before.lines)
    for now, then in zip((size.tokens, size.lines), earlier):
        columns += [f"{now:,}" if now else "", "" if then is None or not now else f"{now - then:+,}"]
    return " ".join(f"{column:>8}" for column in columns)


def _largest(size: Size) -> str:
    if not size.functions:
        return ""
    longest = max(size.functions, key=lambda function: function.lines)
    complex_one = max(size.functions, key=lambda function: function.complexity)
    return f"{longest.name} {longest.lines}; {complex_one.name} {complex_one.complexity}"


def _total(sizes: dict[str, Size]) -> Size:
    return Size(sum(size.tokens for size in sizes.values()), sum(size.lines for size in sizes.values()))


def findings(sizes: dict[str, Size]) -> list[str]:
    """The functions over a limit, each with the limit."""
    messages = []
    for size in sizes.values():
        for function in size.functions:
            place = f"{function.path}:{function.name}"
            if function.complexity > MAX_COMPLEXITY:
                messages.append(f"{place} has complexity {function.complexity}; at most {MAX_COMPLEXITY}")
            if function.lines > MAX_LINES:
                messages.append(f"{place} has {function.lines} lines; at most {MAX_LINES}")
    return messages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--since", metavar="REVISION", help="compare with this revision (default: the last release)")
    revision = parser.parse_args().since or last_release()
    sizes = measure(working_tree())
    print_report(sizes, measure(files_at(revision)) if revision else None)
    print(f"changes since {revision}" if revision else "no release is tagged: no change is shown (see --since)")
    too_large = findings(sizes)
    for message in too_large:
        print(message)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
