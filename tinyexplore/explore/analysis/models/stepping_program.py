"""The renderer of the PYTHON device, instrumented: the generated program yields an event after each UOp.

`renderer/python` generates the text, without inlining. The program is a generator, so its caller controls when it
continues. Its results equal those of the plain text bit for bit (`tests/explore/test_stepping_program.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyexplore.dtype import DType
from tinyexplore.renderer.python import PythonWriter, memory_format
from tinyexplore.runtime.python import cast_view, names_for
from tinyexplore.uop import Ops, UOp

# (position in the program, value); a LOAD or STORE also has the element and the mask (None: valid),
# and a STORE the old content: an element, or one per lane
Event = tuple[Any, ...]

_SILENT = frozenset({Ops.CONST, Ops.INDEX, Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.ENDRANGE, Ops.BARRIER, Ops.PREFETCH})


def before_store(view: memoryview, position: int, count: int, mask: Any) -> list[Any]:
    """Returns the values in memory before a store of `count` lanes; None for a lane that is masked or out of range."""
    lanes = [True if mask is None else mask] * count if not isinstance(mask, list) else mask
    inside = range(len(view))
    return [view[index] if valid and index in inside else None for index, valid in enumerate(lanes, position)]


class SteppingWriter(PythonWriter):
    """Writes a program as a generator of `Event`s."""

    def __init__(self, uops: Sequence[UOp]) -> None:
        super().__init__(uops)
        self.places = {node: number for number, node in enumerate(self.uops)}

    def inlined(self, node: UOp, text: str, tightness: int) -> bool:
        return False

    def write_node(self, node: UOp) -> None:
        if node.op is Ops.STORE:
            self.look_before(node)
        super().write_node(node)
        if node.op not in _SILENT:
            self.line(f"yield {', '.join([str(self.places[node]), *self.event_fields(node)])}")

    def event_fields(self, node: UOp) -> list[str]:
        """Returns the fields of an event: the value, and for an access its position."""
        match node.op:
            case Ops.LOAD:
                return [self.operand(node), *self.where(node.src[0])]
            case Ops.STORE:
                return [self.operand(node.src[1]), *self.where(node.src[0]), "before"]
            case Ops.ASSIGN:
                return [self.operand(node.src[0])]
            case _:
                return [self.operand(node)]

    def view(self, memory: UOp) -> str:
        """Returns memory whose accesses are not reported."""
        return self.operand(memory)

    def where(self, index: UOp) -> list[str]:
        return [self.operand(index.src[1]), self.operand(index.src[2]) if len(index.src) > 2 else "None"]

    def look_before(self, node: UOp) -> None:
        index, value = node.src[:2]
        assert isinstance(value.dtype, DType)
        view, (position, mask) = self.view(index.src[0]), self.where(index)
        self.line(f"before = before_store({view}, {position}, {value.dtype.count}, {mask})")


class SteppingProgram:
    """A program as a generator; `start(views, values)` returns it before its first step."""

    writer: type[SteppingWriter] = SteppingWriter

    def __init__(self, name: str, uops: Sequence[UOp]) -> None:
        self.uops = tuple(uops)
        self.lines = self.writer(self.uops).write(name)
        text = "\n".join([*(line.text for line in self.lines), "    yield from ()"])
        namespace = {**names_for(self.uops), "before_store": before_store}
        self.file = f"<debugged {name}>"
        exec(compile(text, self.file, "exec"), namespace)
        self.function: Callable[..., Any] = namespace[name]

    def start(
        self, views: Sequence[memoryview], values: Sequence[int] = (), start: int = 0, stop: int = 0
    ) -> Iterator[Event]:
        """Starts the program on these buffers, from `start` to `stop` of its THREAD axis, if it has one."""
        events: Iterator[Event] = self.function(*views, *values, start, stop)
        return events

    def place_of_line(self, line: int) -> int | None:
        """Returns the position in the program of the UOp from which a line of the text (from 1) was generated."""
        made_by = self.lines[line - 1].uops if 0 < line <= len(self.lines) else ()
        return self.uops.index(made_by[0]) if made_by else None


def element_view(memory: bytearray, dtype: DType) -> memoryview:
    """Casts memory to the elements that the interpreter reads: those of `dtype`, or the bits of 16-bit floats."""
    return cast_view(memoryview(memory), memory_format(dtype))


__all__ = ["Event", "SteppingProgram", "SteppingWriter", "element_view"]
