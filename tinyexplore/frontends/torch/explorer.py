"""Runs a PyTorch function once for the explorer. Records the names of tensors and modules, and remarks about the
run."""

from __future__ import annotations

import inspect
import operator
import os
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks
from torch.utils._pytree import tree_map

from tinyexplore.frontends.torch.backend import PartCompiler, compiled
from tinyexplore.frontends.torch.listing import (
    LineCaller,
    ModuleTree,
    TorchLocation,
    caller_at,
    is_gradient,
    location_of_node,
)
from tinyexplore.frontends.torch.program import AtenFallbackWarning, Observer, TorchProgram, given_tensor
from tinyexplore.frontends.torch.values import is_plain
from tinyexplore.lazy import ExternalOperation, LazyBuffer
from tinyexplore.lazy.lazybuffer import numbers
from tinyexplore.tensor import Tensor
from tinyexplore.trace import LazyBufferBuilt, Recorder, SourceLine, UserFrame, active_recorder, recording

MAX_COMPILED_VERSIONS = 1 << 16  # versions of a function: each exploration is one
Note = tuple[str, str, UserFrame | None]  # (level, text, the user's line)


def is_of_torch(function: Any, args: Sequence[Any]) -> bool:
    """Whether `function` is a PyTorch module, or one of its arguments is a PyTorch tensor."""
    return isinstance(function, torch.nn.Module) or any(isinstance(value, torch.Tensor) for value in args)


class ExplorerObserver(Observer):
    """Records a run for the explorer: names of Tensors, and operations of ATen as nodes of its graph.

    Attributes:
        named: names of arguments and parameters, by their addresses.
        names: the Tensors that kernels read, by name.
        node_ranges: for each operation, the first and the last number of its LazyBuffers.
    """

    def __init__(self, named: dict[int, str], names: dict[str, Tensor]) -> None:
        super().__init__()
        self.named = named
        self.names = names
        self.node_ranges: list[tuple[int, int, TorchProgram, Any]] = []
        self._tensors: dict[Any, Tensor] = {}
        self._counted: set[Any] = set()  # operations with a recorded result

    def record_input(self, node: Any, value: Any, flat: Tensor) -> None:
        name = self.named.get(value.data_ptr()) or (node.name if node.op == "call_function" else "")
        if name:
            self.names.setdefault(name, flat)
        self._tensors[node] = flat

    def record_output(self, node: Any, tensor: Tensor) -> None:
        self._tensors[node] = tensor

    @contextmanager
    def translating(self, node: Any, program: TorchProgram) -> Iterator[None]:
        first = next(numbers)
        yield
        last = next(numbers)
        self.node_ranges.append((first, last, program, node))
        recorder = active_recorder()
        if recorder is not None:
            scopes = getattr(recorder, "scopes", None)
            if scopes is not None and is_gradient(node):
                for number in range(first, last):
                    if number in scopes.of:
                        scopes.of[number] = (scopes.of[number][0], True)

    def record_aten_result(self, node: Any, program: TorchProgram, values: Mapping[Any, Any], seconds: float) -> None:
        """Adds a graph node for an operation that ATen computed. Its sources are the values that ATen read."""
        value = values[node]
        if not isinstance(value, torch.Tensor) or not is_plain(value) or not value.numel():
            return
        source = node.args[0] if node.target is operator.getitem else node

        def record_node(recorder: Recorder) -> None:
            read = [self._flatten(argument, values[argument]) for argument in source.all_input_nodes]
            with recording(None):
                layout, flat = given_tensor(value)
            assert flat is not None
            name = str(source.target).removesuffix(".default")
            flat.lazydata.arg = ExternalOperation(
                name, program.seconds.get(source, seconds), tuple(value.shape), source not in self._counted
            )
            self._counted.add(source)
            src = tuple([flat_input.lazydata for flat_input in read if flat_input is not None])
            recorder.record(LazyBufferBuilt(flat.lazydata, src, _frame_of(location), (name,)))
            self._tensors[node] = flat
            self.known[node] = (layout, flat)
            self.names.setdefault(node.name, flat)

        location = program.lines.place(node, program.listing)
        recorder = active_recorder()
        if recorder is not None:
            program.lines.call(node, program.listing, partial(record_node, recorder))

    def _flatten(self, node: Any, value: Any) -> Tensor | None:
        """Returns the elements of a node's result, in its memory; None if a Tensor cannot represent them."""
        if node not in self._tensors:
            if not isinstance(value, torch.Tensor) or not is_plain(value) or not value.numel():
                return None
            _, flat = given_tensor(value)
            assert flat is not None
            self.record_input(node, value, flat)
        return self._tensors[node]


def _frame_of(location: TorchLocation) -> UserFrame:
    """Returns a place as a stack frame of the trace, with columns."""
    return UserFrame(location.file, location.line, location.function, caller_at(location).__code__, 2)


class ExploredFunction:
    """A PyTorch function or module, compiled for one run.

    The capture ends with the call. The results are detached, so a graph computes nothing for a later backward pass. If
    the function itself computes gradients, forward and backward are one graph, provided that Dynamo can trace that
    (PyTorch 2.11 and later).

    Attributes:
        names: the Tensors that kernels read, by name: parameters, arguments, results of ATen.
        programs: a program for each graph, after the run.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], in_aten: bool = False) -> None:
        self.function = function
        self._tops = _modules_of(function)
        self._named = _name_tensors(function, args, self._tops)
        self._in_aten = in_aten
        self.names: dict[str, Tensor] = {}
        self._begin()
        self._breaks: list[Note] = []

    def _begin(self) -> None:
        self.names.clear()
        self._watch = ExplorerObserver(self._named, self.names)
        lines = LineCaller(ModuleTree(self._tops, self.function), self._in_aten)
        self._compiler = PartCompiler(partial(TorchProgram, replay=False, lines=lines, observer=self._watch))

    @property
    def programs(self) -> list[TorchProgram]:
        return self._compiler.programs

    @property
    def text(self) -> str:
        """The graphs as text, one operation per line."""
        return "\n".join([f"# {program.listing.file[1:-1]}\n{program.listing.text}" for program in self.programs])

    def __call__(self, *args: Any) -> Any:
        """Runs the function, including a backward pass that it starts. Returns its result."""
        self._begin()  # the function may run again
        counted = torch._dynamo.utils.counters["graph_break"]
        before, reasons = dict(counted), list(torch._dynamo.utils.graph_break_reasons)
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", AtenFallbackWarning)
            settings = {
                "allow_rnn": True,
                "recompile_limit": MAX_COMPILED_VERSIONS,
                "cache_size_limit": MAX_COMPILED_VERSIONS,
                "trace_autograd_ops": True,
            }
            supported = {name: value for name, value in settings.items() if hasattr(torch._dynamo.config, name)}
            stack.enter_context(torch._dynamo.config.patch(supported))
            function = torch.compile(_detach_results(self.function), backend=self._compile_graph, dynamic=False)
            result = function(*args)
        new_reasons = torch._dynamo.utils.graph_break_reasons[len(reasons) :]
        counts = {reason: count - before.get(reason, 0) for reason, count in counted.items()}
        self._breaks = _describe_breaks(new_reasons, {reason: count for reason, count in counts.items() if count > 0})
        return result

    def _compile_graph(self, module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Returns a graph of Dynamo as a function. Each gradient in it has the number of its forward operation."""
        for node in module.graph.nodes:
            if node.target is torch.autograd.grad:
                node.target = _number_gradients
        module.recompile()
        return compiled(self._compiler, module, inputs)

    def lines_of(self, lazybuffers: Sequence[LazyBuffer]) -> list[SourceLine]:
        """Returns the operations that LazyBuffers belong to, as lines of the ATen graph."""
        spans = self._watch.node_ranges
        firsts = [first for first, *_ in spans]
        values_of: dict[int, list[LazyBuffer]] = {}
        for value in lazybuffers:
            number = bisect_right(firsts, value.number) - 1
            if number >= 0 and value.number < spans[number][1]:
                values_of.setdefault(number, []).append(value)
        return [
            SourceLine(spans[number][2].listing.line(spans[number][3]), tuple(values_of[number]))
            for number in sorted(values_of)
        ]

    def notes(self) -> list[Note]:
        """Returns messages: the operations that ATen computed, with time and line, and the graph breaks of Dynamo."""
        notes = list(self._breaks)
        for program in self.programs:
            for part in program.parts:
                for node in part.nodes:
                    if node not in program.left:
                        continue
                    location = location_of_node(node)
                    seconds = program.seconds.get(node, 0.0)
                    text = f"ATen computed {node.target} in {seconds * 1e6:,.0f} µs: {program.left[node]}"
                    notes.append(("note", text, None if location is None else _frame_of(location)))
        return notes


def _number_gradients(outputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `torch.autograd.grad`. Gives each of its nodes the number of its forward operation."""
    roots = [output.grad_fn for output in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    setup_stacktrace_preservation_hooks([root for root in roots if root is not None])
    return torch.autograd.grad(outputs, *args, **kwargs)


def _detach_results(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with detached results."""

    def call_and_detach(*args: Any) -> Any:
        return tree_map(_detach, function(*args))

    return call_and_detach


def _detach(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _describe_breaks(reasons: Sequence[Any], counts: Mapping[str, int]) -> list[Note]:
    """Returns messages about Dynamo's graph breaks: with their lines if Dynamo knows them, and the other reasons.

    Args:
        reasons: Dynamo's messages for graphs that ended at a break.
        counts: how often each reason led to a break, by Dynamo's own count.
    """
    breaks: dict[tuple[str, TorchLocation | None], int] = {}
    for reason in reasons:
        if not reason.graph_break:
            continue
        frames = [frame for frame in reason.user_stack if not _is_library(frame.filename)] or reason.user_stack
        location = None
        if frames:
            last = frames[-1]
            location = TorchLocation(last.filename, last.lineno or 1, last.name)
        key = (_first_line_of(reason.reason), location)
        breaks[key] = breaks.get(key, 0) + 1
    known_reasons = {text for text, _ in breaks}
    for why, count in counts.items():
        if _first_line_of(why) not in known_reasons:
            breaks[_first_line_of(why), None] = count
    return [
        (
            "note",
            f"Dynamo cut the program {f'{count} times' if count > 1 else 'once'}: {text}",
            None if location is None else UserFrame(location.file, location.line, location.function),
        )
        for (text, location), count in breaks.items()
    ]


def _first_line_of(text: str) -> str:
    return " ".join(text.strip().split("\n")[0].split())


def _is_library(file: str) -> bool:
    return file.startswith(os.path.dirname(torch.__file__))


def _modules_of(function: Any) -> dict[str, Any]:
    """Returns PyTorch modules by the names under which a function references them; "" for the function itself."""
    if isinstance(function, torch.nn.Module):
        return {"": function, "self": function}
    values: dict[str, Any] = {}
    owner = getattr(function, "__self__", None)
    if owner is not None:
        values["self"] = owner
        values.update(getattr(owner, "__dict__", {}))
    try:
        outside = inspect.getclosurevars(inspect.unwrap(function))
        values.update({**outside.globals, **outside.nonlocals})
    except (TypeError, ValueError):
        pass
    return {name: value for name, value in values.items() if isinstance(value, torch.nn.Module)}


def _name_tensors(function: Any, args: Sequence[Any], tops: dict[str, Any]) -> dict[int, str]:
    """Returns the names of arguments, parameters and buffers, by their addresses."""
    names_by_address: dict[int, str] = {}
    for top, module in tops.items():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            names_by_address.setdefault(value.data_ptr(), f"{top}.{name}" if top not in ("", "self") else name)
    call = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        names = list(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        names = []
    for number, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            names_by_address[value.data_ptr()] = names[number] if number < len(names) else f"input{number}"
    return names_by_address
