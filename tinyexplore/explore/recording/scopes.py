"""Finds the user's module in which a LazyBuffer is created: an object that holds Tensors and whose method is running.

The search reads the interpreter's frames between the LazyBuffer and the capture. The engine does not record modules.
"""

from __future__ import annotations

import sys
from functools import cached_property
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Literal

from tinyexplore.explore.recording.names import (
    SKIPPED,
    attributes_of,
    class_name,
    classes_of,
    namespace_of,
    parts_of,
    variables_of,
)
from tinyexplore.explore.recording.sources import is_ours
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

LAYERS = "tinyexplore.nn"
SESSION = "tinyexplore.explore.notebook.explorer"
TAPE = "tinyexplore.autograd.tape"
HISTORY = frozenset({"In", "Out"})  # IPython's variables for past cells
MAX_SEARCHED_OBJECTS = 5_000  # most objects searched for the name of a module
MAX_WRAPPERS = 8  # most decorators around one function
DEEPEST = 3  # levels, such as model.layers[0].weight
Role = Literal["method", "tape", "session", "other"]


class Scopes:
    """The modules found so far, and the module that created each LazyBuffer.

    capturing: the code that opened the capture. Its frame and the frames that called it are ignored.
    """

    def __init__(self, capturing: CodeType | None = None) -> None:
        self.capturing = capturing
        self.rows: list[tuple[int, str, str, int | None, int]] = []  # the fields of each Scope of the trace
        self.objects: list[Any] = []  # the objects of the rows, kept alive so that their `id()` stays unique
        self.ids: dict[tuple[int | None, int], int] = {}
        self.of: dict[int, tuple[int, bool]] = {}  # LazyBuffer number → (its module, whether it is a gradient)
        self.is_module: dict[int, bool] = {}
        self.looked_at: list[Any] = []
        self.counted: set[int] = set()
        self.roles: dict[int, tuple[CodeType, Role]] = {}
        self.is_method: dict[tuple[int, int], bool] = {}  # by the `id()` of a code object and of a class

    def see(self, lazybuffer: LazyBuffer) -> None:
        """Finds the module of `lazybuffer`. Call it while `lazybuffer` is being created."""
        values: list[tuple[Any, FrameType]] = []  # innermost first
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            cached = self.roles.get(id(code))  # by `id()`, because hashing a code object hashes all its contents
            role = cached[1] if cached is not None else _find_role(frame)
            if cached is None:
                self.roles[id(code)] = (code, role)
            if role == "tape" and not values:
                # the gradient of a value belongs to the module that computed the value
                step = frame.f_locals.get("step")
                forward = None if step is None else self.of.get(step.result.number)
                if forward is not None:
                    self.of[lazybuffer.number] = (forward[0], True)
                    return
            if code is self.capturing or role == "session":
                break
            if role == "method":
                value = frame.f_locals.get(code.co_varnames[0])
                if (
                    self.is_receiver(value, code)
                    and self.holds_tensors(value)
                    and (not values or values[-1][0] is not value)
                ):
                    values.append((value, frame))
            frame = frame.f_back
        parent: int | None = None
        for value, frame in reversed(values):
            parent = self.row(value, parent, frame)
        if parent is not None:
            self.of[lazybuffer.number] = (parent, False)

    def is_receiver(self, value: Any, code: CodeType) -> bool:
        """Whether `code` is a method whose receiver is `value`, its first argument, under any name."""
        if code.co_varnames[0] == "self":
            return True
        kind = type(value)
        key = (id(code), id(kind))
        is_known_method = self.is_method.get(key)
        if is_known_method is None:
            is_known_method = self.is_method[key] = any(
                candidate is code
                for base in classes_of(kind)
                for attribute in list(namespace_of(base).values())
                for candidate in _list_codes(attribute)
            )
            self.looked_at.append(kind)  # kept alive so that its `id()` stays unique
        return is_known_method or any(_code_of(attribute) is code for attribute in attributes_of(value).values())

    def holds_tensors(self, value: Any) -> bool:
        """Whether an object has a Tensor somewhere in its attributes, or stands for another framework's module."""
        if hasattr(type(value), "stands_for_a_module"):
            return True
        if value is None or issubclass(type(value), (Tensor, LazyBuffer, *SKIPPED)):
            return False
        has_tensors = self.is_module.get(id(value))
        if has_tensors is None:
            has_tensors = self.is_module[id(value)] = any(
                issubclass(type(part), Tensor) for _, part in reachable_objects(value)
            )
            self.looked_at.append(value)  # kept alive, like `objects`
        return has_tensors

    def row(self, value: Any, parent: int | None, frame: FrameType) -> int:
        """Returns the row number of `value` as a part of `parent`; adds the row if it is missing."""
        key = (parent, id(value))
        number = self.ids.get(key)
        if number is None:
            number = self.ids[key] = len(self.rows)
            name = self.variable(value, frame) if parent is None else _find_attribute_path(value, self.objects[parent])
            kind = class_name(value)
            self.objects.append(value)
            self.rows.append((number, name or kind, kind, parent, self.own_bytes(value)))
        return number

    def variable(self, value: Any, frame: FrameType) -> str:
        """Returns the nearest caller's name of `value` outside the package: "model", "models[0]" or "trainer.model"."""
        level: list[tuple[str, Any]] = []
        caller = frame.f_back
        while caller is not None:
            module = caller.f_globals.get("__name__")
            if not is_ours(module if type(module) is str else ""):  # inside the package, explore(model) names it "f"
                level += self.names_outside(value, caller)
            caller = caller.f_back
        level = [item for item in level if item[0][:1] != "_" and item[0] not in HISTORY]
        for name, item in level:
            if item is value:
                return name
        visited: set[int] = set()
        for _ in range(DEEPEST):
            inner: list[tuple[str, Any]] = []
            for name, item in level:
                if (
                    issubclass(type(item), (Tensor, LazyBuffer, *SKIPPED))
                    or id(item) in visited
                    or len(visited) > MAX_SEARCHED_OBJECTS
                ):
                    continue
                visited.add(id(item))
                for way, part in parts_of(name, item):
                    if part is value:
                        return way
                    inner.append((way, part))
            level = inner
        return ""

    def names_outside(self, value: Any, frame: FrameType) -> list[tuple[str, Any]]:
        """Returns the variables of a frame, except for a method's receiver if that is `value` itself."""
        code = frame.f_code
        receiver = code.co_varnames[0] if code.co_argcount else ""
        variables = variables_of(frame.f_locals)
        if receiver and frame.f_locals.get(receiver) is value and self.is_receiver(value, code):
            variables = [item for item in variables if item[0] != receiver]
        return variables + variables_of(frame.f_globals)

    def own_bytes(self, value: Any) -> int:
        """Returns the bytes of the Tensors in the object's own attributes. A Tensor in several modules counts once."""
        total = 0
        for _, part in parts_of("", value):
            tensors = [item for _, item in parts_of("", part)] if issubclass(type(part), (list, tuple)) else [part]
            for tensor in tensors:
                if issubclass(type(tensor), Tensor) and tensor.lazydata.number not in self.counted:
                    self.counted.add(tensor.lazydata.number)
                    total += int(tensor.nbytes())
        return total


def _find_role(frame: FrameType) -> Role:
    """Returns the role of a frame, from its code and module."""
    code, module = frame.f_code, frame.f_globals.get("__name__")
    if type(module) is not str:
        module = ""
    if module == SESSION:
        return "session"
    if module == TAPE and code.co_name == "gradients":
        return "tape"
    is_outside = not is_ours(module) or module.startswith(LAYERS)
    return "method" if is_outside and code.co_argcount else "other"


def _list_codes(value: Any) -> list[CodeType]:
    accessors = (value.fget, value.fset, value.fdel) if type(value) is property else (value,)
    return [code for accessor in accessors if (code := _code_of(accessor)) is not None]


def _code_of(value: Any) -> CodeType | None:
    """Returns the code of a function, of a bound method, or of the function that a decorator wrapped."""
    for _ in range(MAX_WRAPPERS):
        if type(value) is MethodType:
            value = value.__func__
        if type(value) is cached_property:
            value = value.func
        if type(value) is not FunctionType:
            return None
        wrapped = value.__dict__.get("__wrapped__")
        if wrapped is None:
            return value.__code__
        value = wrapped
    return None


def reachable_objects(value: Any) -> list[tuple[str, Any]]:
    """Returns the objects reachable from an object by attributes and items, each with its path, nearest first."""
    variables: list[tuple[str, Any]] = []
    visited = {id(value)}
    level = [("", value)]
    for _ in range(DEEPEST):
        level = [item for name, holder in level for item in parts_of(name, holder) if id(item[1]) not in visited]
        visited.update(id(item) for _, item in level)
        variables += level
        level = [item for item in level if not issubclass(type(item[1]), (Tensor, LazyBuffer, *SKIPPED))]
    return variables


def _find_attribute_path(value: Any, holder: Any) -> str:
    """Returns the path from `holder` to `value`, such as "layers[0]"; "" if there is none."""
    return next((name.lstrip(".") for name, item in reachable_objects(holder) if item is value), "")
