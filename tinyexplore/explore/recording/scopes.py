"""In which module of the user's a LazyBuffer was made: objects that hold Tensors and whose methods are running.

Asked while the LazyBuffer is made, of the interpreter's frames between it and the capture; the engine knows nothing
of modules.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, Literal

from tinyexplore.explore.recording.names import SKIPPED, parts
from tinyexplore.explore.recording.sources import is_ours
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

LAYERS = "tinyexplore.nn"
SESSION = "tinyexplore.explore.session"
TAPE = "tinyexplore.autograd.tape"
DEEPEST = 3  # model.layers[0].weight
Role = Literal["method", "tape", "session", "other"]


class Scopes:
    """The modules seen so far, and the one in which each LazyBuffer was made.

    `capturing`: the code that opened the capture; it and what called it are outside.
    """

    def __init__(self, capturing: CodeType | None = None) -> None:
        self.capturing = capturing
        self.rows: list[tuple[int, str, str, int | None, int]] = []  # what a Scope of the trace is made of
        self.objects: list[Any] = []  # of the rows: held, so that no other object gets their addresses
        self.ids: dict[tuple[int | None, int], int] = {}
        self.of: dict[int, tuple[int, bool]] = {}  # a LazyBuffer's number → its module, and whether it is a gradient
        self.is_module: dict[int, bool] = {}
        self.looked_at: list[Any] = []
        self.counted: set[int] = set()
        self.roles: dict[int, tuple[CodeType, Role]] = {}

    def see(self, lazybuffer: LazyBuffer) -> None:
        """Called while `lazybuffer` is being made."""
        found: list[tuple[Any, FrameType]] = []  # innermost first
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            known = self.roles.get(id(code))  # by address: code objects hash all that they hold
            role = known[1] if known is not None else _role(frame)
            if known is None:
                self.roles[id(code)] = (code, role)
            if role == "tape" and not found:
                # the gradient of what was made in some module belongs to that one
                step = frame.f_locals.get("step")
                forward = None if step is None else self.of.get(step.result.number)
                if forward is not None:
                    self.of[lazybuffer.number] = (forward[0], True)
                    return
            if code is self.capturing or role == "session":
                break
            if role == "method":
                value = frame.f_locals.get("self")
                if self.holds_tensors(value) and (not found or found[-1][0] is not value):
                    found.append((value, frame))
            frame = frame.f_back
        parent: int | None = None
        for value, frame in reversed(found):
            parent = self.row(value, parent, frame)
        if parent is not None:
            self.of[lazybuffer.number] = (parent, False)

    def holds_tensors(self, value: Any) -> bool:
        """True for an object with a Tensor somewhere in its attributes."""
        if value is None or issubclass(type(value), (Tensor, LazyBuffer, *SKIPPED)):
            return False
        known = self.is_module.get(id(value))
        if known is None:
            known = self.is_module[id(value)] = any(isinstance(part, Tensor) for _, part in inside(value))
            self.looked_at.append(value)  # held, as `objects` are
        return known

    def row(self, value: Any, parent: int | None, frame: FrameType) -> int:
        """The number of `value` as a part of `parent`."""
        key = (parent, id(value))
        found = self.ids.get(key)
        if found is None:
            found = self.ids[key] = len(self.rows)
            name = _variable(value, frame) if parent is None else _attribute(value, self.objects[parent])
            kind = type(value).__name__
            self.objects.append(value)
            self.rows.append((found, name or kind, kind, parent, self.own_bytes(value)))
        return found

    def own_bytes(self, value: Any) -> int:
        """What the Tensors that are its own attributes take; one that several modules hold counts once."""
        total = 0
        for _, part in parts("", value):
            tensors = part if isinstance(part, (list, tuple)) else [part]
            for tensor in tensors:
                if isinstance(tensor, Tensor) and tensor.lazydata.number not in self.counted:
                    self.counted.add(tensor.lazydata.number)
                    total += int(tensor.nbytes())
        return total


def _role(frame: FrameType) -> Role:
    """What a frame of this code has to say."""
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    if module == SESSION:
        return "session"
    if module == TAPE and code.co_name == "gradients":
        return "tape"
    is_outside = not is_ours(module) or module.startswith(LAYERS)
    return "method" if is_outside and code.co_argcount and code.co_varnames[0] == "self" else "other"


def inside(value: Any) -> list[tuple[str, Any]]:
    """What is reached from an object by attributes and items, with the way there, nearest first."""
    found: list[tuple[str, Any]] = []
    seen = {id(value)}
    level = [("", value)]
    for _ in range(DEEPEST):
        level = [item for name, holder in level for item in parts(name, holder) if id(item[1]) not in seen]
        seen.update(id(item) for _, item in level)
        found += level
        level = [item for item in level if not issubclass(type(item[1]), (Tensor, LazyBuffer, *SKIPPED))]
    return found


def _attribute(value: Any, holder: Any) -> str:
    """ "layers[0]" for what `holder` reaches so; "" where it does not."""
    return next((name.lstrip(".") for name, item in inside(holder) if item is value), "")


def _variable(value: Any, frame: FrameType) -> str:
    """The variable that holds `value` in the nearest caller that has one."""
    caller = frame.f_back
    while caller is not None:
        for space in (caller.f_locals, caller.f_globals):
            for name, item in list(space.items()):
                if item is value and name != "self" and not name.startswith("_"):
                    return name
        caller = caller.f_back
    return ""
