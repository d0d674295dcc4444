"""No circular imports between modules. Imports inside functions and imports for types count."""

from __future__ import annotations

import ast
from pathlib import Path

import networkx
import pytest

import tinyexplore

PACKAGE = Path(tinyexplore.__file__).parent

# The import circles that are allowed, each with its reason. The test fails on another circle, and on a row without one.
ALLOWED: dict[frozenset[str], str] = {}


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by their full names."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules among `known` that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: -node.level + (path.name == "__init__.py") or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in known else base)
    return {one for one in found if one in known and one != name}


def circles(package: Path) -> set[frozenset[str]]:
    """Sets of modules of which each needs all others."""
    known = modules(package)
    graph = networkx.DiGraph([(name, one) for name, path in known.items() for one in imported(name, path, known)])
    return {frozenset(part) for part in networkx.strongly_connected_components(graph) if len(part) > 1}


def test_no_modules_need_each_other() -> None:
    assert circles(PACKAGE) == set(ALLOWED)


@pytest.mark.parametrize(
    "back",
    [
        "import family.upper",
        "from family import upper",
        "from . import upper",
        "from .upper import work",
        "def f():\n    from family.upper import work",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from family.upper import work",
    ],
)
def test_every_kind_of_import_is_found(tmp_path: Path, back: str) -> None:
    package = tmp_path / "family"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "upper.py").write_text("from family.lower import base\n\ndef work(): return base\n")
    (package / "lower.py").write_text(f"base = 1\n{back}\n")
    assert circles(package) == {frozenset({"family.upper", "family.lower"})}
    (package / "lower.py").write_text("base = 1\n")
    assert circles(package) == set()
