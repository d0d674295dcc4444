"""Running a program's text for the value of its last line, as a notebook's cell has one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

Compile = Callable[[Any, str], CodeType]  # of a tree and a mode, "exec" or "eval"


def run_tree(tree: ast.Module, compiled: Compile, namespace: dict[str, Any]) -> Any:
    """Runs the tree. Returns the value of the last line: of the expression, or the assigned value (`y = …`); else
    None."""
    __tracebackhide__ = True
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compiled(tree, "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compiled(ast.Expression(last.value), "eval"), namespace)
    return None if last is None else _assigned(last, namespace)


def _assigned(statement: ast.stmt, namespace: dict[str, Any]) -> Any:
    """The value that an assignment to plain names gave them, or a tuple of several; None for any other statement."""
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
    """The title of a program: the last line of its code."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith(("#", "%"))), "")


__all__ = ["last_line", "run_tree"]
