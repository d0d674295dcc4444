"""Finds the user's names of Tensors: variables at the start and end of a capture, and assigned names.

Names refer to the numbers of LazyBuffers, so that they keep no memory alive.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from itertools import islice
from types import FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any

from tinyexplore.explore.recording.sources import is_ours
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

MAX_VALUES = 20_000  # most values that one search visits
MAX_ITEMS = 200  # most items visited in one list or dict
DEEPEST = 4  # levels, such as model.layers[0].weight
# methods that do not return a Tensor
NO_TENSOR = frozenset({"backward", "data", "item", "numpy", "step", "tolist", "zero_grad"})
SKIPPED = (ModuleType, type, FunctionType, str, bytes, int, float, complex)

Names = dict[int, str]


def names_in_callers(more: Mapping[str, Any] | None = None) -> Names:
    """Returns the names by which the nearest frame outside the package reaches Tensors. `more` has priority."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    spaces = [more or {}]
    if frame is not None:
        spaces += [frame.f_locals, frame.f_globals]
    return names_of_variables(*spaces)


def names_of_variables(*spaces: Mapping[str, Any]) -> Names:
    """Returns the shortest path to each Tensor from the variables of `spaces`: `w`, `params[0]`, `model.l1.weight`.

    Earlier spaces have priority. The search runs no code of the user's objects: it reads their attributes with the
    interpreter's own accessors.
    """
    names: Names = {}
    visited: set[int] = set()
    level = [(name, value) for space in spaces for name, value in variables_of(space) if not name.startswith("_")]
    for _ in range(DEEPEST):
        inner: list[tuple[str, Any]] = []
        for name, value in level:
            if issubclass(type(value), Tensor):
                for node in _nodes_of(value):
                    names.setdefault(node.number, name)
            elif not issubclass(type(value), SKIPPED) and id(value) not in visited and len(visited) < MAX_VALUES:
                visited.add(id(value))
                inner += parts_of(name, value)
        level = inner
    return names


def variables_of(space: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns the variables of a namespace; none if the namespace is a mapping of the user that raises."""
    try:
        return [(name, value) for name, value in list(space.items()) if type(name) is str]
    except Exception:
        return []


def _nodes_of(tensor: Tensor) -> list[LazyBuffer]:
    """Returns the LazyBuffer of a Tensor, and the memory of which it is a view; none if the Tensor is uninitialized."""
    try:
        node = tensor.lazydata
        base = node.base
        return [node, base] if node is not base and base.buffer is not None else [node]
    except Exception:
        return []


def parts_of(name: str, value: Any) -> list[tuple[str, Any]]:
    """Returns the items of a container, or the attributes of an object, with their paths. No code of its class runs."""
    kind = type(value)
    if issubclass(kind, dict):
        items = _list_first_items(value)
        return [(f"{name}[{key!r}]", item) for key, item in items if type(key) in (str, int, bool)]
    if issubclass(kind, (list, tuple)):
        items_of = list.__getitem__ if issubclass(kind, list) else tuple.__getitem__
        return [(f"{name}[{number}]", item) for number, item in enumerate(items_of(value, slice(MAX_ITEMS)))]
    attributes = attributes_of(value)
    return [
        (f"{name}.{key}", item) for key, item in _list_first_items(attributes) if type(key) is str and key[:1] != "_"
    ]


def _list_first_items(attributes: dict[Any, Any]) -> list[tuple[Any, Any]]:
    try:
        return list(islice(dict.items(attributes), MAX_ITEMS))
    except RuntimeError:  # another thread changed its size
        return []


def attributes_of(value: Any) -> dict[str, Any]:
    """Returns the interpreter's `value.__dict__`; empty if the class has none or replaces it."""
    for kind in classes_of(type(value)):
        slot = namespace_of(kind).get("__dict__")
        if type(slot) is GetSetDescriptorType:
            attributes = slot.__get__(value)
            return attributes if type(attributes) is dict else {}
    return {}


classes_of = type.__dict__["__mro__"].__get__  # a metaclass may override these attributes
namespace_of = type.__dict__["__dict__"].__get__
_name_of = type.__dict__["__name__"].__get__


def class_name(value: Any) -> str:
    """Returns the name of an object's class, even if its metaclass overrides `__name__`."""
    name: str = _name_of(type(value))
    return name


def names_of_arguments(f: Callable[..., Any], args: tuple[Any, ...]) -> Names:
    """Returns the names of Tensors in `args`, by the parameter names of `f`."""
    try:
        return names_of_variables(inspect.signature(f).bind(*args).arguments)
    except Exception:  # no signature, arguments that do not fit, or an attribute of the user that raises
        return {}


# "[name] y = Conv <strides: ints = [2, 2]> (x, w)": a node of a graph in text form
_NODE_LINE = re.compile(r"\s*(?:\[[^\]]*\] )?([^\s,=]+) = [A-Za-z_][\w.]* ?[<(]")


def _find_assigned_names(text: str) -> dict[int, str]:
    """Returns the name that each line assigns, for a text with one node per line."""
    matches = {number: _NODE_LINE.match(line) for number, line in enumerate(text.splitlines(), 1)}
    return {number: match[1] for number, match in matches.items() if match}


def assigned_names(text: str) -> dict[int, str]:
    """Returns, for each line of Python source, the single name that its statement assigns.

    A statement may span several lines. Lines with several assignments are omitted, and values that are clearly no
    Tensors (`loss.item()`).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user saw these warnings when the code was compiled
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return _find_assigned_names(text)
    names_by_line: dict[int, set[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {ast.unparse(target) for target in targets}
        may_be_tensor = isinstance(node, ast.AugAssign) or _may_be_tensor(node.value)
        if may_be_tensor and all(isinstance(target, (ast.Name, ast.Attribute)) for target in targets):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                names_by_line.setdefault(line, set()).update(names)
    return {line: next(iter(names)) for line, names in names_by_line.items() if len(names) == 1}


def _may_be_tensor(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute, ast.Compare))
    return not (isinstance(value.func, ast.Attribute) and value.func.attr in NO_TENSOR)
