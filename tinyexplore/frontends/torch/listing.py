"""Source positions of a graph's operations: lines of the user's Python, and the graph as text, one operation per line.

An operation is computed below a stack frame whose code is at its line. Tracebacks, profilers and the explorer therefore
show that line like a line of Python. Around it are frames of its modules.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import os
import re
import string
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from keyword import iskeyword
from typing import Any

import torch

from tinyexplore.frontends.torch.values import is_plain, tensor_of
from tinyexplore.trace import recording

WIDEST = 400  # most characters of a line
FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)\n?([^\n]*)\n?([^\n]*)')
PACKAGE_FOLDER = os.path.dirname(__file__)
STEP = re.compile(r"\.(\w+)|\['?(\w+)'?\]")
_NAME_LETTERS = string.ascii_letters + string.digits + "_."
_numbers = itertools.count(1)

Caller = Callable[[Any, Callable[[], Any]], Any]


@dataclass(frozen=True)
class TorchLocation:
    """A part of a line of source text.

    Attributes:
        file: the name of the file.
        line: the number of the line, from 1.
        function: the name of the function around it.
        start: the first byte of the part.
        end: the byte after it; `start` for the whole line.
    """

    file: str
    line: int
    function: str
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line} in {self.function}"


def location_of_node(node: Any) -> TorchLocation | None:
    """Returns the user's line that a graph node comes from. For a backward node, it is the line of the forward
    operation."""
    frames = [
        match for match in FRAME.findall(node.meta.get("stack_trace") or "") if not match[0].startswith(PACKAGE_FOLDER)
    ]
    if not frames:
        return None
    file, line, function, shown, marks = frames[-1]
    text = linecache.getline(file, int(line))
    if not marks.strip() or marks.strip("~^ ") or not text:
        return TorchLocation(file, int(line), function)
    moved = (len(text) - len(text.lstrip())) - (len(shown) - len(shown.lstrip()))
    start, end = len(marks) - len(marks.lstrip()) + moved, len(marks.rstrip()) + moved
    start, end = _balance_brackets(text, start, end)
    before, marked = text[:start], text[start:end]
    return TorchLocation(file, int(line), function, len(before.encode()), len((before + marked).encode()))


def _balance_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    """Extends a part of a line so that each closing bracket has an opening one.

    PyTorch marks `b(x))` of `a(b(x))`, and `x).c()` of `a(x).c()`.
    """
    while (bracket := _find_unopened_bracket(text, start, end)) is not None:
        if bracket == end - 1:
            end -= 1
        elif "(" in text[:start]:
            start = text.rindex("(", 0, start)
            start = len(text[:start].rstrip(_NAME_LETTERS))
        else:
            break
    return start, end


def _find_unopened_bracket(text: str, start: int, end: int) -> int | None:
    """Returns the index of the first closing bracket in a part of a line that the part does not open; None if there
    is none."""
    depth = 0
    for index in range(start, end):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth < 0:
            return index
    return None


@cache
@lru_cache(4096)
def caller_at(location: TorchLocation) -> Caller:
    """Returns a function of (module, compute) that calls `compute` from the place.

    Its first parameter is called `self`, like a method's, because the explorer finds the node's module by that name.
    """
    name = location.function if location.function.isidentifier() and not iskeyword(location.function) else "node"
    function = ast.parse(f"def {name}(self, compute): return compute()").body[0]
    tree = ast.Module([function], [])
    for part in ast.walk(tree):
        if isinstance(part, (ast.expr, ast.stmt, ast.arg)):  # put all of it at the place
            part.lineno = part.end_lineno = location.line
            part.col_offset, part.end_col_offset = location.start, max(location.end, location.start)
    space: dict[str, Any] = {"__name__": "torch.program"}
    exec(compile(tree, location.file, "exec"), space)  # the name is checked above; the code only calls `compute`
    caller: Caller = space[name]
    return caller


class TorchListing:
    """A graph as text.

    Attributes:
        file: the name under which the text is a source file.
        text: the lines.
    """

    def __init__(self, graph: Any, name: str) -> None:
        self.file = f"<ATen {name} {next(_numbers)}>"
        self._places: dict[Any, TorchLocation] = {}
        lines: list[str] = []
        for node in graph.nodes:
            text = node_text(node)
            if node.op == "call_function":
                self._places[node] = TorchLocation(self.file, len(lines) + 1, node.name, 0, len(text.encode()))
            lines.append(f"{text}  # {_metadata_of(node)}" if node.op != "output" else text)
        self.text = "\n".join(lines) + "\n"
        # without a modification time, so that `linecache.checkcache` keeps it although the file does not exist
        linecache.cache[self.file] = (len(self.text), None, [line + "\n" for line in lines], self.file)
        weakref.finalize(self, linecache.cache.pop, self.file, None)

    def place(self, node: Any) -> TorchLocation:
        """Returns the line of an operation in the text."""
        return self._places[node]

    def line(self, node: Any) -> str:
        """Returns the line of the listing for a node."""
        return self.text.splitlines()[self._places[node].line - 1]


def is_gradient(node: Any) -> bool:
    """Whether a node of a graph computes a gradient."""
    meta = node.meta
    return meta.get("partitioner_tag") == "is_backward" or bool(meta.get("autograd_backward"))


def place_gradients(graph: Any) -> None:
    """Gives gradient nodes the lines and modules of their forward operations, in a graph with both.

    PyTorch numbers operations that have a gradient, and stores with a gradient node which number it belongs to.
    """
    forward: dict[Any, Any] = {}
    for node in graph.nodes:
        number = node.meta.get("seq_nr")
        if not node.meta.get("autograd_backward"):
            forward.setdefault(number, node)
        elif number in forward:
            node.meta["stack_trace"] = forward[number].meta.get("stack_trace")
            node.meta["fwd_nn_module_stack"] = forward[number].meta.get("nn_module_stack")


def _metadata_of(node: Any) -> str:
    """Returns PyTorch's metadata of a node: its module ("0: Linear"), its type, the operation that it is a part of,
    the user's line."""
    original = _name_operation(node.meta.get("original_aten") or "")
    parts = [
        _module_text(node),
        _type_text(node.meta.get("val")),
        f"part of {original}" if original not in ("", _name_operation(node.target)) else "",
        "gradient" if is_gradient(node) else "",
        str(location_of_node(node) or ""),
    ]
    return ", ".join(filter(None, parts))


def _module_text(node: Any) -> str:
    """Returns the path of a node's module below the outermost one, and its class: "layers.0: Linear"; "" without."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return ""
    path, kind = list(stack.values())[-1]
    name = kind if isinstance(kind, str) else kind.__name__
    steps = ".".join(steps_of(path)[1:])
    return f"{steps}: {name.rpartition('.')[2]}" if steps else ""


def _name_operation(target: Any) -> str:
    """Returns the name of an operation, with its overload unless that is the default one."""
    is_overload = isinstance(target, (str, torch._ops.OpOverload))
    return str(target if is_overload else getattr(target, "__name__", target)).replace(".default", "")


def node_text(node: Any) -> str:
    """Returns a node as one line: its name, the operation and its operands."""
    if node.op == "placeholder":
        return str(node.name)
    if node.op == "output":
        return f"return {node.args[0]}"
    inner = [
        *[_write_argument(value) for value in node.args],
        *[f"{key}={_write_argument(value)}" for key, value in node.kwargs.items()],
    ]
    line = f"{node.name} = {_name_operation(node.target)}({', '.join(inner)})"
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def _write_argument(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([_write_argument(item) for item in value]) + "]"
    return value.name if isinstance(value, torch.fx.Node) else repr(value).replace("torch.", "")


def _type_text(val: Any) -> str:
    """Returns the dtype and shape of a fake tensor: "float32[2, 3]"."""
    if isinstance(val, (list, tuple)):
        return "(" + ", ".join([_type_text(item) for item in val]) + ")"
    if isinstance(val, torch.Tensor):
        return f"{str(val.dtype).removeprefix('torch.')}[{', '.join(map(str, val.shape))}]"
    return type(val).__name__


# *** modules ***


def steps_of(path: str) -> list[str]:
    """Splits a path of Dynamo into steps: L['self'].layers.0, or L['model']._modules['layers']['0']."""
    steps = [first or second for first, second in STEP.findall(path)]
    return [step for step in steps if step not in ("_modules", "__dict__")]


class TorchModule:
    """A user's module in the explorer's tree. Parts and parameters are attributes."""

    stands_for_a_module = True  # the explorer lists it, although a ReLU holds no Tensor


class ModuleTree:
    """The modules that the operations of a program belong to.

    Attributes:
        tops: PyTorch modules by the names under which the function references them.
        function: that function, which Dynamo calls "function".
    """

    def __init__(self, tops: Mapping[str, Any], function: Any = None) -> None:
        self.tops = dict(tops)
        self.function = function
        self._made: dict[int, Any] = {}

    def of(self, node: Any) -> Iterator[Any]:
        """Yields the modules of a node, outermost first. For a backward node, these are the modules of the forward
        operation."""
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        for path, _ in stack.values():
            module = self._find_module(path)
            if module is not None:
                yield self._show_module(module)

    def outermost(self) -> Any:
        """Returns the program's module, if the program is a module."""
        module = self.tops.get("")
        return None if module is None else self._show_module(module)

    def _find_module(self, path: str) -> Any:
        """Returns the module at a path of Dynamo, from the first name in it that is known."""
        value: Any = None
        for step in steps_of(path):
            if value is None:
                value = self.tops.get(step, self.function if step == "function" else None)
            elif isinstance(value, (tuple, list)) and step.isdigit():
                value = value[int(step)] if int(step) < len(value) else None
            else:
                value = getattr(value, step, None)
        return value if isinstance(value, torch.nn.Module) else None

    def _show_module(self, module: Any) -> Any:
        shown = self._made.get(id(module))
        if shown is None:
            kind = type(module).__name__
            shown = self._made[id(module)] = type(kind, (TorchModule,), {})()
            for name, value in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                if is_plain(value):
                    with recording(None):  # no kernel reads this Tensor: it shows the size of the module
                        setattr(shown, name, tensor_of(value))
            for name, part in module.named_children():
                setattr(shown, name, self._show_module(part))
        return shown


class LineCaller:
    """Calls the functions that compute nodes from the nodes' places, inside their modules.

    Attributes:
        modules: the modules of the program.
        in_aten: whether places are lines of the graph's text, not of the user's Python.
    """

    def __init__(self, modules: ModuleTree | None = None, in_aten: bool = False) -> None:
        self.modules = modules or ModuleTree({})
        self.in_aten = in_aten
        self.listings: list[TorchListing] = []

    def listing(self, graph: Any, name: str) -> TorchListing:
        """Returns the text of a graph, which lives as long as this object."""
        torch_listing = TorchListing(graph, name)
        self.listings.append(torch_listing)
        return torch_listing

    def call(self, node: Any, listing: TorchListing, compute: Callable[[], Any]) -> Any:
        """Calls `compute` below a stack frame at the source position of the node, and returns its result."""
        caller = caller_at(self.place(node, listing))
        modules = list(self.modules.of(node))
        top = self.modules.outermost()
        if top is not None and top not in modules:
            modules.insert(0, top)
        for module in reversed(modules):
            compute = _nest_in_frame(caller, module, compute)
        return compute() if modules else caller(None, compute)

    def place(self, node: Any, listing: TorchListing) -> TorchLocation:
        """Returns the user's line, or the line of the graph's text if there is none."""
        location = None if self.in_aten else location_of_node(node)
        return location or listing.place(node)


def _nest_in_frame(caller: Caller, module: Any, compute: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: caller(module, compute)
