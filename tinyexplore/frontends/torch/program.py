"""Runs a graph of ATen operations: parts that Tensors compute, and parts that ATen computes.

Operations without a translation run in ATen, on PyTorch tensors, between the parts that Tensors compute. A part on
Tensors is captured by a TinyJit, once for each memory layout of its inputs, and replayed.
"""

from __future__ import annotations

import ctypes
import operator
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch.fx.node import map_arg

from tinyexplore.device import Device
from tinyexplore.frontends.torch import operations  # noqa: F401 (fills the table)
from tinyexplore.frontends.torch.listing import LineCaller, TorchListing, place_gradients
from tinyexplore.frontends.torch.table import AtenCall, TranslationError, translation
from tinyexplore.frontends.torch.values import DTYPES, StridedLayout, flat_tensor, is_plain, layout_of, torch_of
from tinyexplore.jit import TinyJit
from tinyexplore.jit.arguments import JitError
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor
from tinyexplore.trace import active_recorder, recording

MAX_CAPTURED_LAYOUTS = 8  # most layouts of inputs for which a captured part is kept
# movements that ATen does without accessing the elements
VIEWS = frozenset(
    "view _unsafe_view reshape permute transpose t expand unsqueeze squeeze slice select alias detach split "
    "split_with_sizes unbind diagonal unfold as_strided".split()
)
STRIDED = frozenset("as_strided as_strided_copy as_strided_scatter".split())  # defined on the storage of a tensor


class AtenFallbackWarning(UserWarning):
    """Warning: ATen, not Tensors, computed operations of a program."""


class Observer:
    """Receives the events of a running program. The default ignores them.

    Attributes:
        known: the layout and the elements of part inputs that are Tensors already.
    """

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, Tensor]] = {}

    def record_input(self, node: Any, value: Any, flat: Tensor) -> None:
        """Called when a part on Tensors reads the result `value` of a node, whose elements are those of `flat`."""

    def record_output(self, node: Any, tensor: Tensor) -> None:
        """Called when a part on Tensors computed a node that is read outside the part."""

    def translating(self, node: Any, program: TorchProgram) -> AbstractContextManager[None]:
        """Returns a context manager around the function of an operation."""
        return nullcontext()

    def record_aten_result(self, node: Any, program: TorchProgram, values: Mapping[Any, Any], seconds: float) -> None:
        """Called when ATen computed a node, outside the parts on Tensors."""


@dataclass
class GraphPart:
    """A part of a graph.

    Attributes:
        nodes: its nodes, in the order of the graph.
        inputs: the nodes outside it that it reads.
        outputs: its nodes that are read outside it.
        by_aten: whether ATen computes it.
    """

    nodes: list[Any]
    inputs: list[Any]
    outputs: list[Any]
    by_aten: bool


def vals_in(node: Any) -> list[Any]:
    """Returns PyTorch's fake tensors and numbers for a node's results."""
    val = node.meta.get("val")
    return list(val) if isinstance(val, (list, tuple)) else [val]


def _to_operand(value: Any) -> Any:
    return value.meta.get("val") if isinstance(value, torch.fx.Node) else value


def call_of(node: Any) -> AtenCall:
    """Returns PyTorch's metadata of a node's results and operands."""
    return AtenCall(node.meta.get("val"), tuple([_to_operand(value) for value in node.args]))


def reason_against(node: Any) -> str:
    """Returns why Tensors cannot compute a node; "" if they can. Builds it once on empty tensors, and computes
    nothing."""
    if node.target is operator.getitem:
        return ""
    function = translation(node.target)
    if function is None:
        return "no translation"
    tensors = [value for source in (node, *node.all_input_nodes) for value in vals_in(source) if value is not None]
    for value in tensors:
        if not isinstance(value, torch.Tensor):
            return f"a value of type {type(value).__name__}"
        if not is_plain(value):
            return f"dtype {value.dtype}" if value.dtype not in DTYPES else f"{value.layout} on {value.device}"
    try:
        with recording(None), torch.no_grad():
            results = function(call_of(node), *map_arg(node.args, _make_empty), **map_arg(node.kwargs, _make_empty))
    except TranslationError as error:
        return str(error)
    except Exception as error:  # the function does not support this form, so ATen computes it
        return f"{type(error).__name__}: {error}"
    for value, result in zip(vals_in(node), results if isinstance(results, (tuple, list)) else (results,)):
        if isinstance(value, torch.Tensor) and isinstance(result, Tensor):
            expected = (tuple(value.shape), DTYPES[value.dtype])
            if (result.shape, result.dtype) != expected:
                return f"the translation gives {result.dtype.name}{list(result.shape)}, not {expected[1].name}" + str(
                    list(expected[0])
                )
    return ""


def _make_empty(node: Any) -> Any:
    """Returns Tensors without values, of the shapes of a node's results."""
    val = node.meta["val"]
    if isinstance(val, (list, tuple)):
        return [_make_empty_like(value) for value in val]
    return _make_empty_like(val)


def _make_empty_like(value: Any) -> Any:
    if value is None:
        return None
    dtype = DTYPES[value.dtype]
    if value.numel() == 0:
        return Tensor.zeros(*value.shape, dtype=dtype)
    return Tensor.empty(*[1] * value.ndim, dtype=dtype).expand(tuple(value.shape))


def divide_graph(graph: Any, by_aten: Callable[[Any], bool], in_order: Callable[[Any], bool]) -> list[GraphPart]:
    """Divides a graph into parts, in an order in which they can run.

    A part has the nodes of one level: the number of changes between Tensors and ATen on the path to the node.

    Args:
        graph: a graph of operations that write nothing.
        by_aten: whether ATen computes a node.
        in_order: whether a node must run in the order of the graph (random numbers, for example).
    """
    level: dict[Any, int] = {}
    ordered = 0
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    kinds: dict[Any, bool] = {}
    for node in nodes:
        source = node.args[0] if node.target is operator.getitem else None
        if source in kinds:
            kinds[node], level[node] = kinds[source], level[source]
            continue
        kind = kinds[node] = by_aten(node)
        lowest_level = 1 if kind else 0  # levels of ATen are odd
        for operand in node.all_input_nodes:
            if operand in kinds:
                lowest_level = max(lowest_level, level[operand] + (kinds[operand] is not kind))
        if in_order(node):
            ordered = lowest_level = max(lowest_level, ordered)
        level[node] = lowest_level
    parts = []
    for number in sorted(set(level.values())):
        level_nodes = [node for node in nodes if level[node] == number]
        part_nodes = set(level_nodes)
        inputs = {
            operand: None for node in level_nodes for operand in node.all_input_nodes if operand not in part_nodes
        }
        outputs = [node for node in level_nodes if any(user not in part_nodes for user in node.users)]
        parts.append(GraphPart(level_nodes, list(inputs), outputs, number % 2 == 1))
    return parts


class TorchProgram:
    """A graph as a function of PyTorch tensors.

    Attributes:
        parts: its parts, in the order in which they run.
        left: for each operation that ATen computes, the reason.
        seconds: how long each of these operations took in the last call.
        lines: calls the functions of operations from the user's lines.
        observer: receives the events of the run.
    """

    def __init__(
        self, module: Any, *, replay: bool = True, lines: LineCaller | None = None, observer: Observer | None = None
    ) -> None:
        self.module = module
        self.replay = replay
        self.lines = lines or LineCaller()
        self.observer = observer or Observer()
        graph = module.graph
        place_gradients(graph)
        self.placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        (output,) = [node for node in graph.nodes if node.op == "output"]
        self.results = output.args[0] if isinstance(output.args[0], (tuple, list)) else (output.args[0],)
        self.attributes = [node for node in graph.nodes if node.op == "get_attr"]
        functions = [node for node in graph.nodes if node.op == "call_function"]
        writes = [node for node in functions if getattr(getattr(node.target, "_schema", None), "is_mutable", False)]
        self.left: dict[Any, str] = {}
        self.seconds: dict[Any, float] = {}
        for node in functions:
            reason = "the graph has a write" if writes else reason_against(node)
            if reason:
                self.left[node] = reason
        self.parts = divide_graph(graph, lambda node: node in self.left, _is_random)
        self.calls = {node: call_of(node) for node in functions if node not in self.left}
        self._views = self._find_movements()
        self._runners: dict[int, PartRunner] = {
            number: PartRunner(self, part, self._list_needed(part)) for number, part in enumerate(self.parts)
        }

    def _find_movements(self) -> dict[Any, Any]:
        """Returns for each node on Tensors that only moves elements the node that it moves. ATen makes the view at
        no cost."""
        source_of: dict[Any, Any] = {}
        for part in self.parts:
            if part.by_aten:
                continue
            for node in part.nodes:
                source = node.args[0] if node.args else None
                if isinstance(source, (list, tuple)) or len(node.all_input_nodes) != 1:
                    continue
                is_element = node.target is operator.getitem and source in source_of
                if is_element or getattr(node.target, "_opname", "") in VIEWS:
                    source_of[node] = source_of.get(source, source)
        return source_of

    def _list_needed(self, part: GraphPart) -> list[Any]:
        """Returns the nodes that a part must compute for others. For a movement, this is the moved node."""
        part_nodes = set(part.nodes)
        outputs = {
            self._views.get(node, node): None for node in part.outputs if node in self._views or not _is_several(node)
        }
        return [node for node in outputs if node in part_nodes]

    def __call__(self, *args: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(self.placeholders, args))
        for node in self.attributes:
            values[node] = operator.attrgetter(node.target)(self.module)
        for number, part in enumerate(self.parts):
            if part.by_aten:
                for node in part.nodes:
                    began = time.perf_counter()
                    self._run_by_aten(node, values)
                    seconds = self.seconds[node] = time.perf_counter() - began
                    self.observer.record_aten_result(node, self, values, seconds)
                continue
            runner = self._runners[number]
            for node, value in zip(runner.wanted, runner([values[node] for node in part.inputs])):
                values[node] = value
            for node in part.outputs:
                if node in self._views:
                    self._run_movement(node, values)
        return [values[node] if isinstance(node, torch.fx.Node) else node for node in self.results]

    def _run_by_aten(self, node: Any, values: dict[Any, Any]) -> None:
        args, kwargs = map_arg((node.args, node.kwargs), lambda argument: values[argument])
        values[node] = node.target(*args, **kwargs)

    def _run_movement(self, node: Any, values: dict[Any, Any]) -> None:
        """Computes the movement `node` with ATen into `values`, after the movements that it reads.

        Computes nothing if `values` has the node.
        """
        if node not in values:
            for source in node.all_input_nodes:
                self._run_movement(source, values)
            self._run_by_aten(node, values)

    @cached_property
    def listing(self) -> TorchListing:
        """The graph as text."""
        backward = any(node.meta.get("partitioner_tag") == "is_backward" for node in self.module.graph.nodes)
        return self.lines.listing(self.module.graph, "backward" if backward else "forward")

    def message(self) -> str:
        """Returns which operations ATen computes and why, one per line; "" if none."""
        if not self.left:
            return ""
        reasons: dict[tuple[str, str], int] = {}
        for node, reason in self.left.items():
            key = (str(node.target), reason)
            reasons[key] = reasons.get(key, 0) + 1
        lines = [
            f"  {name}{f' ({count} times)' if count > 1 else ''}: {reason}" for (name, reason), count in reasons.items()
        ]
        return f"ATen computes {len(self.left)} of {len(self.left) + len(self.calls)} operations:\n" + "\n".join(lines)

    def computed(self, part: GraphPart, outputs: Sequence[Any], tensors: Sequence[Tensor]) -> list[Tensor]:
        """Returns the results of a part on Tensors, not realized."""
        values: dict[Any, Any] = dict(zip(part.inputs, tensors))
        for node in part.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), lambda argument: values[argument])
            if node.target is operator.getitem:
                values[node] = args[0][args[1]]
                continue
            function, call = translation(node.target), self.calls[node]
            assert function is not None
            with self.observer.translating(node, self):
                values[node] = self.lines.call(node, self.listing, partial(function, call, *args, **kwargs))
        return [values[node] for node in outputs]


def _is_several(node: Any) -> bool:
    return isinstance(node.meta.get("val"), (tuple, list))


def _is_random(node: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


class PartInput:
    """An input of a part. If it is the same tensor in each call, like parameters and buffers, its layout is cached.

    Attributes:
        reader: a node of the part that reads it.
        is_same_parameter: whether it was the same parameter in all calls so far.
    """

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.is_same_parameter = False
        self._last: Callable[[], Any] | None = None
        self._is_again = False
        self._place: Any = None
        self._found: tuple[Any, Tensor | None] | None = None

    def known(self, value: Any) -> tuple[Any, Tensor | None] | None:
        """Returns the cached result for the same tensor object, if its memory has not moved; else None."""
        if self._last is None:
            self.is_same_parameter = isinstance(value, torch.nn.Parameter)
        self._is_again = self._last is not None and self._last() is value
        if self._is_again:
            if self._found is not None and self._place == _place_of(value):
                return self._found
        elif self._last is not None:
            self.is_same_parameter = False
        self._last, self._found = weakref.ref(value), None
        return None

    def keep(self, value: Any, layout_and_tensor: tuple[Any, Tensor | None]) -> None:
        """Stores the layout of a tensor for later calls: where the elements are in the tensor's own memory."""
        buffer = None if layout_and_tensor[1] is None else layout_and_tensor[1].lazydata.buffer
        is_own = buffer is not None and buffer.memory.address == value.data_ptr()
        self.is_same_parameter = self.is_same_parameter and is_own
        if is_own and (self.is_same_parameter or self._is_again):  # inputs that change in each call are not kept alive
            self._place, self._found = _place_of(value), layout_and_tensor


def _place_of(value: Any) -> Any:
    return value.data_ptr(), value.dtype, value.shape, value.stride()


class CapturedPart:
    """A part captured for one layout of its inputs. Inputs that stay the same are built in.

    Attributes:
        moving: positions of the inputs that each call passes.
    """

    def __init__(self, compute: Callable[[Sequence[Tensor]], list[Tensor]], flats: list[Tensor], moving: list[int]):
        self.moving = moving
        stays = dict(enumerate(flats))

        def step(*moved_tensors: Tensor) -> list[Tensor]:
            return compute([*{**stays, **dict(zip(moving, moved_tensors))}.values()])

        for number in moving:
            stays[number] = flats[number]
        self._step = TinyJit(step)
        self._values: list[LazyBuffer] = []
        self._views: list[Any] = []

    def __call__(self, flats: Sequence[Tensor]) -> list[Any]:
        """Returns the results as PyTorch tensors. The next call writes into the same memory."""
        results = self._step(*[flats[number] for number in self.moving])
        values = [tensor.lazydata for tensor in results]  # a replay returns new Tensors of the same values
        if len(values) != len(self._values) or any([a is not b for a, b in zip(values, self._values)]):
            self._values, self._views = values, [torch_of(tensor) for tensor in results]
        return self._views


class PartRunner:
    """Runs a part on Tensors: captured for each layout of its inputs, then replayed."""

    def __init__(self, program: TorchProgram, part: GraphPart, outputs: list[Any]) -> None:
        self.program = program
        self.part = part
        self.wanted = outputs
        self.forms = [ResultForm.of(node.meta["val"]) for node in outputs]
        part_nodes = set(part.nodes)
        self.inputs = [PartInput(next(user for user in node.users if user in part_nodes)) for node in part.inputs]
        self.storages = self._storages()
        self.captured: dict[Any, CapturedPart | None] = {}
        self.is_left = False  # left to ATen, because a kernel could not be compiled

    def _storages(self) -> list[tuple[int, Any]]:
        """Returns the inputs whose storage the part reads by strides, with their fake tensors. Dynamo compares no
        storage offsets."""
        storages: dict[Any, None] = {}
        for node in self.part.nodes:
            if getattr(node.target, "_opname", "") in STRIDED:
                source = node.args[0]
                while source in self.program._views and source not in self.part.inputs:
                    source = source.args[0]
                storages[source] = None
        return [(number, node.meta["val"]) for number, node in enumerate(self.part.inputs) if node in storages]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if not self.wanted:
            return []
        if self.is_left or (self.storages and not self._are_as_traced(inputs)):
            return self._run_in_aten(inputs)
        layouts: list[Any] = []
        flats: list[Tensor] = []
        stays: list[bool] = []
        observer = self.program.observer
        for slot, node, value in zip(self.inputs, self.part.inputs, inputs):
            layout_and_tensor = observer.known.get(node) or slot.known(value)
            if layout_and_tensor is None:
                layout_and_tensor = self._run_at_line(slot.reader, partial(given_tensor, value))
                slot.keep(value, layout_and_tensor)
            layouts.append(layout_and_tensor[0])
            if layout_and_tensor[1] is not None:
                flats.append(layout_and_tensor[1])
                stays.append(slot.is_same_parameter)
                observer.record_input(node, value, layout_and_tensor[1])
        try:
            return self._run(layouts, flats, stays)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            self.is_left = True
            text = f"a part of {len(self.part.nodes)} operations runs in ATen, as its kernels failed"
            warnings.warn(f"{text}: {type(error).__name__}: {error}", AtenFallbackWarning, stacklevel=2)
            return self._run_in_aten(inputs)

    def _are_as_traced(self, inputs: Sequence[Any]) -> bool:
        """Whether the inputs read by strides have the place in their storage that PyTorch expected."""
        return all(
            inputs[number].storage_offset() == val.storage_offset() and inputs[number].stride() == val.stride()
            for number, val in self.storages
        )

    def _run(self, layouts: list[Any], flats: list[Tensor], stays: list[bool]) -> list[Any]:
        if not self.program.replay or not flats:
            return [
                _make_result(torch_of(output), form) for output, form in zip(self._compute(layouts, flats), self.forms)
            ]
        key = (
            *layouts,
            *[id(flat) if is_constant else None for flat, is_constant in zip(flats, stays)],
            Device.DEFAULT,
        )
        if key not in self.captured:
            while len(self.captured) >= MAX_CAPTURED_LAYOUTS:
                self.captured.pop(next(iter(self.captured)))
            moving = [number for number, is_constant in enumerate(stays) if not is_constant]
            self.captured[key] = CapturedPart(partial(self._compute, layouts), flats, moving)
        replayed = self.captured[key]
        if replayed is not None:
            try:
                return [_make_result(view, form, copy=True) for view, form in zip(replayed(flats), self.forms)]
            except JitError:
                self.captured[key] = None
        return [_make_result(torch_of(output), form) for output, form in zip(self._compute(layouts, flats), self.forms)]

    def _compute(self, layouts: Sequence[Any], flats: Sequence[Tensor]) -> list[Tensor]:
        remaining_flats = iter(flats)
        tensors = []
        for slot, layout in zip(self.inputs, layouts):
            if isinstance(layout, StridedLayout):
                restore_shape = partial(layout.view_memory, next(remaining_flats))
            else:
                restore_shape = partial(Tensor.zeros, *layout[0], dtype=layout[1])
            tensors.append(self._run_at_line(slot.reader, restore_shape))
        results = self.program.computed(self.part, self.wanted, tensors)
        outputs = [
            self._run_at_line(node, partial(_copy_to_memory, tensor)) for node, tensor in zip(self.wanted, results)
        ]
        Tensor.realize(*outputs)
        for node, tensor in zip(self.wanted, outputs):
            self.program.observer.record_output(node, tensor)
        return outputs

    def _run_at_line(self, node: Any, compute: Callable[[], Any]) -> Any:
        """Calls `compute`. If a recorder is attached, it sees a frame at the line of `node`."""
        recorder = active_recorder()
        if recorder is not None:
            return self.program.lines.call(node, self.program.listing, compute)
        return compute()

    def _run_in_aten(self, inputs: Sequence[Any]) -> list[Any]:
        values = dict(zip(self.part.inputs, inputs))
        for node in self.part.nodes:
            self.program._run_by_aten(node, values)
        return [values[node] for node in self.wanted]


def _copy_to_memory(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous()


def given_tensor(value: Any) -> tuple[Any, Tensor | None]:
    """Returns the memory layout of a PyTorch tensor, and its elements as a Tensor (None if it has no elements)."""
    plain = value.detach()
    if plain.numel() == 0:
        return (tuple(plain.shape), DTYPES[plain.dtype]), None
    if plain.is_neg() or plain.is_conj():
        plain = plain.resolve_neg().resolve_conj()
    layout = layout_of(plain)
    if layout is None:
        plain = plain.clone(memory_format=torch.contiguous_format)
        layout = layout_of(plain)
        assert layout is not None
    return layout, flat_tensor(plain, layout.count, layout.dtype, Device.DEFAULT)


@dataclass(frozen=True)
class ResultForm:
    """The layout that PyTorch expects of a result.

    Attributes:
        shape: the sizes of its axes.
        strides: the steps of its axes in memory, in elements.
        dtype: PyTorch's dtype of its elements.
        nbytes: the size of its elements.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    nbytes: int

    @staticmethod
    def of(val: Any) -> ResultForm:
        """Returns the form of a fake tensor."""
        return ResultForm(tuple(val.shape), val.stride(), val.dtype, val.numel() * val.element_size())


def _make_result(tensor: Any, form: ResultForm, copy: bool = False) -> Any:
    """Returns a result in memory, in the layout that PyTorch expects."""
    is_in_form = tensor.stride() == form.strides
    if is_in_form and not copy:
        return tensor
    result = torch.empty_strided(form.shape, form.strides, dtype=form.dtype)
    if not is_in_form or not tensor.is_contiguous():
        return result.copy_(tensor)
    # `copy_` would wake PyTorch's threads, which then spin for milliseconds on the cores of the next call's kernels
    ctypes.memmove(result.data_ptr(), tensor.data_ptr(), form.nbytes)
    return result
