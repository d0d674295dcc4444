"""tinyexplore without its hooks, loaded by an import hook that removes them from the syntax tree.

The cost of a detached recorder is visible only in comparison with code without hooks. The import hook makes that code
of the same files. It removes `if recorder is not None:` blocks, and replaces `record_stage(name, root, work)` by
`work()`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

RECORDERS = {"recorder", "listening"}
KEPT = ("tinyexplore.trace", "tinyexplore.explore")


class _Stripper(ast.NodeTransformer):
    """Replaces names of a recorder by None, and removes the branches that depend on them."""

    def __init__(self) -> None:
        self.removed = 0

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "active_recorder":
            self.removed += 1
            return ast.copy_location(ast.Constant(None), node)
        if name == "record_stage":
            self.removed += 1
            return ast.copy_location(ast.Call(node.args[2], [], []), node)
        return node

    def visit_If(self, node: ast.If) -> Any:
        value = value_of_test(node.test)
        if value is None:
            return self.generic_visit(node)
        self.removed += 1
        branch = node.body if value else node.orelse
        statements: list[ast.stmt] = []
        for statement in branch:
            visited = self.visit(statement)
            statements.extend(visited if isinstance(visited, list) else [visited])
        return statements or ast.copy_location(ast.Pass(), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        value = value_of_test(node.test)
        if value is None:
            return self.generic_visit(node)
        self.removed += 1
        return self.visit(node.body if value else node.orelse)


def value_of_test(test: ast.expr) -> bool | None:
    """Return the value of a test without a recorder, or None if it also depends on something else."""
    if _is_recorder(test):
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = value_of_test(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [value_of_test(value) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(test, ast.Compare) and _is_recorder(test.left) and len(test.ops) == 1:
        against = test.comparators[0]
        if isinstance(against, ast.Constant) and against.value is None:
            return isinstance(test.ops[0], ast.Is)
    return None


def _is_recorder(value: ast.expr) -> bool:
    match value:
        case ast.NamedExpr(value=inner):
            return _is_recorder(inner)
        case ast.Call(func=ast.Name(id="active_recorder")):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in RECORDERS
    return False


def strip(source: str | bytes, path: str = "<source>") -> tuple[ast.Module, int]:
    """Return the tree without hooks, and the number of changed places."""
    stripper = _Stripper()
    tree = stripper.visit(ast.parse(source, path))
    return ast.fix_missing_locations(tree), stripper.removed


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        return self.source_to_code(self.get_data(self.path), self.path)  # never the cached code of the usual modules

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree, removed = strip(data, str(path))
        counts[self.name] = removed
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)


counts: dict[str, int] = {}


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("tinyexplore.") or fullname.startswith(KEPT):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Install the import hook. Later imports of tinyexplore's modules are without hooks."""
    if any(name.startswith("tinyexplore.") for name in sys.modules):
        raise RuntimeError("tinyexplore is imported already")
    sys.meta_path.insert(0, _Finder())
