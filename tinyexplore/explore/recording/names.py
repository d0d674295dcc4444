"""What the user calls things: the variables that hold Tensors when a capture begins and ends, and what a line assigns.

Names go by the LazyBuffers' numbers, so that no name keeps memory alive.
"""

from __future__ import annotations

import ast
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any

from tinyexplore.explore.recording.sources import is_ours
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

MOST_VALUES = 20_000  # that are looked at in one search
MOST_ITEMS = 200  # of one list or dict
DEEPEST = 4  # model.layers[0].weight
NO_TENSOR = frozenset({"backward", "data", "item", "numpy", "step", "tolist", "zero_grad"})  # what a call returns then
SKIPPED = (ModuleType, type, FunctionType, str, bytes, int, float, complex)

Names = dict[int, str]


def names_here(more: Mapping[str, Any] | None = None) -> Names:
    """The names by which the caller's frame (the first one outside the package) reaches Tensors; `more` goes first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    spaces = [more or {}]
    if frame is not None:
        spaces += [frame.f_locals, frame.f_globals]
    return names_in(*spaces)


def names_in(*spaces: Mapping[str, Any]) -> Names:
    """The shortest way to each Tensor from the variables of `spaces`, those first named first: `w`, `params[0]`,
    `model.l1.weight`."""
    found: Names = {}
    seen: set[int] = set()
    level = [(name, value) for space in spaces for name, value in list(space.items()) if not name.startswith("_")]
    for _ in range(DEEPEST):
        inner: list[tuple[str, Any]] = []
        for name, value in level:
            if issubclass(type(value), Tensor):
                for node in _with_base(value.lazydata):
                    found.setdefault(node.number, name)
            elif not issubclass(type(value), SKIPPED) and id(value) not in seen and len(seen) < MOST_VALUES:
                seen.add(id(value))
                inner += parts(name, value)
        level = inner
    return found


def _with_base(node: LazyBuffer) -> Iterator[LazyBuffer]:
    yield node
    if node.base is not node and node.base.buffer is not None:
        yield node.base  # the memory that a Tensor is a view of


def parts(name: str, value: Any) -> list[tuple[str, Any]]:
    """What is inside a container, or an object of the user's or of nn."""
    if isinstance(value, dict):
        keys = [key for key in list(value)[:MOST_ITEMS] if isinstance(key, (str, int))]
        return [(f"{name}[{key!r}]", value[key]) for key in keys]
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{place}]", item) for place, item in enumerate(value[:MOST_ITEMS])]
    try:
        held = object.__getattribute__(value, "__dict__")  # a proxy's own way of finding things may do anything
    except AttributeError:
        return []
    return [(f"{name}.{key}", item) for key, item in list(held.items())[:MOST_ITEMS] if not key.startswith("_")]


def names_of_arguments(f: Callable[..., Any], args: tuple[Any, ...]) -> Names:
    """What `f` calls its arguments."""
    try:
        return names_in(inspect.signature(f).bind(*args).arguments)
    except (TypeError, ValueError):
        return {}


def assigned_names(text: str) -> dict[int, str]:
    """Line → the one name that its statement assigns, of Python source; a statement may span several lines.

    Left out: lines of several assignments, and values that are no Tensor as far as one can see (`loss.item()`).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's own code, said already where it was compiled
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, set[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {ast.unparse(target) for target in targets}
        may_be_tensor = isinstance(node, ast.AugAssign) or _may_be_tensor(node.value)
        if may_be_tensor and all(isinstance(target, (ast.Name, ast.Attribute)) for target in targets):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, set()).update(names)
    return {line: next(iter(names)) for line, names in found.items() if len(names) == 1}


def _may_be_tensor(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute, ast.Compare))
    return not (isinstance(value.func, ast.Attribute) and value.func.attr in NO_TENSOR)
