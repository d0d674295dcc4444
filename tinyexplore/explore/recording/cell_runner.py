"""Runs a program's text and returns the value of its last line, as a notebook cell does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

Compile = Callable[[Any, str], CodeType]  # arguments: a tree, and the mode "exec" or "eval"


def run_tree(tree: ast.Module, compiled: Compile, namespace: dict[str, Any]) -> Any:
    """Runs the tree. Returns the value of its last line (an expression, or an assignment `y = …`), else None."""
    __tracebackhide__ = True
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compiled(tree, "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compiled(ast.Expression(last.value), "eval"), namespace)
    return None if last is None else _find_assigned_value(last, namespace)


def _find_assigned_value(statement: ast.stmt, namespace: dict[str, Any]) -> Any:
    """Returns the value that an assignment gave to plain names: a tuple for several, None for other statements."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return None
    inside = [node for target in targets for node in ast.walk(target)]
    names = [node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    values = tuple(namespace[name] for name in dict.fromkeys(names) if name in namespace)
    return values[0] if len(values) == 1 else values or None


def last_line(text: str) -> str:
    """Returns the title of a program: the last line of its code."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith(("#", "%"))), "")


__all__ = ["last_line", "run_tree"]
