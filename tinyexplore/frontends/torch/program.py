"""A graph of ATen operations as a function: parts that Tensors compute, and parts that ATen computes.

Operations without a translation run in ATen, on tensors of PyTorch, between the parts that Tensors compute. A part on
Tensors is captured by a TinyJit, once for each layout of its inputs in memory, and replayed.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch.fx.node import map_arg

from tinyexplore.device import Device
from tinyexplore.frontends.torch import operations  # noqa: F401 (fills the table)
from tinyexplore.frontends.torch.listing import Lines, Listing
from tinyexplore.frontends.torch.table import Call, NotTranslated, translation
from tinyexplore.frontends.torch.values import DTYPES, Layout, flat_tensor, is_plain, layout_of, torch_of
from tinyexplore.jit import TinyJit
from tinyexplore.jit.arguments import JitError
from tinyexplore.tensor import Tensor
from tinyexplore.trace import recording

MOST_REPLAYED = 8  # layouts of inputs for which a captured part is kept
# movements that ATen does without touching the elements
VIEWS = frozenset(
    "view _unsafe_view reshape permute transpose t expand unsqueeze squeeze slice select alias detach split "
    "split_with_sizes unbind diagonal".split()
)


class LeftToAten(UserWarning):
    """Operations of a program were computed by ATen, not by Tensors."""


@dataclass
class Part:
    """A part of a graph.

    Attributes:
        nodes: in the order of the graph.
        inputs: the nodes outside of it that it reads.
        outputs: its nodes that are read outside of it.
        by_aten: ATen computes it.
    """

    nodes: list[Any]
    inputs: list[Any]
    outputs: list[Any]
    by_aten: bool


def vals_in(node: Any) -> list[Any]:
    """The fake tensors and numbers that PyTorch has for a node's results."""
    val = node.meta.get("val")
    return list(val) if isinstance(val, (list, tuple)) else [val]


def _operand(value: Any) -> Any:
    return value.meta.get("val") if isinstance(value, torch.fx.Node) else value


def call_of(node: Any) -> Call:
    """What PyTorch says of a node's results and operands."""
    return Call(node.meta.get("val"), tuple([_operand(value) for value in node.args]))


def reason_against(node: Any) -> str:
    """Why Tensors cannot compute a node; "" if they can. It is built once on empty tensors, and nothing is computed."""
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
            found = function(call_of(node), *map_arg(node.args, _empty), **map_arg(node.kwargs, _empty))
    except NotTranslated as error:
        return str(error)
    except Exception as error:  # a form that the function does not expect: ATen has it
        return f"{type(error).__name__}: {error}"
    for value, result in zip(vals_in(node), found if isinstance(found, (tuple, list)) else (found,)):
        if isinstance(value, torch.Tensor) and isinstance(result, Tensor):
            expected = (tuple(value.shape), DTYPES[value.dtype])
            if (result.shape, result.dtype) != expected:
                return f"the translation gives {result.dtype.name}{list(result.shape)}, not {expected[1].name}" + str(
                    list(expected[0])
                )
    return ""


def _empty(node: Any) -> Any:
    """Tensors without values, of the shapes of a node's results."""
    val = node.meta["val"]
    if isinstance(val, (list, tuple)):
        return [_empty_like(value) for value in val]
    return _empty_like(val)


def _empty_like(value: Any) -> Any:
    if value is None:
        return None
    dtype = DTYPES[value.dtype]
    if value.numel() == 0:
        return Tensor.zeros(*value.shape, dtype=dtype)
    return Tensor.empty(*[1] * value.ndim, dtype=dtype).expand(tuple(value.shape))


def divided(graph: Any, by_aten: Callable[[Any], bool], in_order: Callable[[Any], bool]) -> list[Part]:
    """The graph in parts, in an order in which they can run.

    A part has the nodes of one level: how often who computes changes on the way there.

    Args:
        graph: of operations that write nothing.
        by_aten: whether ATen computes a node.
        in_order: nodes that must run in the order of the graph, as random numbers must be drawn.
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
        least = 1 if kind else 0  # levels of ATen are odd
        for operand in node.all_input_nodes:
            if operand in kinds:
                least = max(least, level[operand] + (kinds[operand] is not kind))
        if in_order(node):
            ordered = least = max(least, ordered)
        level[node] = least
    parts = []
    for number in sorted(set(level.values())):
        mine = [node for node in nodes if level[node] == number]
        inside = set(mine)
        inputs = {operand: None for node in mine for operand in node.all_input_nodes if operand not in inside}
        outputs = [node for node in mine if any(user not in inside for user in node.users)]
        parts.append(Part(mine, list(inputs), outputs, number % 2 == 1))
    return parts


class Program:
    """A graph as a function of tensors of PyTorch.

    Attributes:
        parts: in the order in which they run.
        left: for each operation that ATen computes, why.
        seconds: how long each of them took in the last call.
        lines: what calls the functions of operations from the user's lines.
        given: called with each input of a part on Tensors: the node, its value, and the Tensor in its memory.
    """

    def __init__(
        self,
        module: Any,
        *,
        replay: bool = True,
        lines: Lines | None = None,
        given: Callable[[Any, Any, Tensor], None] | None = None,
    ) -> None:
        self.module = module
        self.replay = replay
        self.lines = lines or Lines()
        self.given = given
        graph = module.graph
        self.placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        (output,) = [node for node in graph.nodes if node.op == "output"]
        self.results = output.args[0] if isinstance(output.args[0], (tuple, list)) else (output.args[0],)
        functions = [node for node in graph.nodes if node.op == "call_function"]
        writes = [node for node in functions if getattr(getattr(node.target, "_schema", None), "is_mutable", False)]
        self.left: dict[Any, str] = {}
        self.seconds: dict[Any, float] = {}
        for node in functions:
            why = "the graph has a write" if writes else reason_against(node)
            if why:
                self.left[node] = why
        self.parts = divided(graph, lambda node: node in self.left, _is_random)
        self.calls = {node: call_of(node) for node in functions if node not in self.left}
        self._views = self._movements()
        self._runners: dict[int, PartRunner] = {
            number: PartRunner(self, part, self._wanted(part)) for number, part in enumerate(self.parts)
        }

    def _movements(self) -> dict[Any, Any]:
        """Of each node on Tensors that only moves elements: what it is a movement of. ATen shows it for nothing."""
        found: dict[Any, Any] = {}
        for part in self.parts:
            if part.by_aten:
                continue
            for node in part.nodes:
                source = node.args[0] if node.args else None
                if isinstance(source, (list, tuple)) or len(node.all_input_nodes) != 1:
                    continue
                is_element = node.target is operator.getitem and source in found
                if is_element or getattr(node.target, "_opname", "") in VIEWS:
                    found[node] = found.get(source, source)
        return found

    def _wanted(self, part: Part) -> list[Any]:
        """What a part must compute for others; of a movement, what is moved."""
        inside = set(part.nodes)
        wanted = {
            self._views.get(node, node): None for node in part.outputs if node in self._views or not _is_several(node)
        }
        return [node for node in wanted if node in inside]

    def __call__(self, *args: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(self.placeholders, args))
        for node in self.module.graph.nodes:
            if node.op == "get_attr":
                values[node] = operator.attrgetter(node.target)(self.module)
        for number, part in enumerate(self.parts):
            if part.by_aten:
                for node in part.nodes:
                    began = time.perf_counter()
                    self._by_aten(node, values)
                    self.seconds[node] = time.perf_counter() - began
                continue
            runner = self._runners[number]
            for node, value in zip(runner.wanted, runner([values[node] for node in part.inputs])):
                values[node] = value
            for node in part.outputs:
                if node in self._views:
                    self._moved(node, values)
        return [values[node] if isinstance(node, torch.fx.Node) else node for node in self.results]

    def _by_aten(self, node: Any, values: dict[Any, Any]) -> None:
        args, kwargs = map_arg((node.args, node.kwargs), lambda one: values[one])
        values[node] = node.target(*args, **kwargs)

    def _moved(self, node: Any, values: dict[Any, Any]) -> None:
        """A movement, with those that it is made of."""
        if node not in values:
            for source in node.all_input_nodes:
                self._moved(source, values)
            self._by_aten(node, values)

    @cached_property
    def listing(self) -> Listing:
        """The graph as text."""
        backward = any(node.meta.get("partitioner_tag") == "is_backward" for node in self.module.graph.nodes)
        return self.lines.listing(self.module.graph, "backward" if backward else "forward")

    def message(self) -> str:
        """Which operations ATen computes and why, one a line; "" if none."""
        if not self.left:
            return ""
        reasons: dict[tuple[str, str], int] = {}
        for node, why in self.left.items():
            key = (str(node.target), why)
            reasons[key] = reasons.get(key, 0) + 1
        lines = [f"  {name}{f' ({count} times)' if count > 1 else ''}: {why}" for (name, why), count in reasons.items()]
        return f"ATen computes {len(self.left)} of {len(self.left) + len(self.calls)} operations:\n" + "\n".join(lines)

    def computed(self, part: Part, wanted: Sequence[Any], tensors: Sequence[Tensor]) -> list[Tensor]:
        """The results of a part on Tensors, not realised."""
        values: dict[Any, Any] = dict(zip(part.inputs, tensors))
        for node in part.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), lambda one: values[one])
            if node.target is operator.getitem:
                values[node] = args[0][args[1]]
                continue
            function, call = translation(node.target), self.calls[node]
            assert function is not None
            values[node] = self.lines.call(node, self.listing, partial(function, call, *args, **kwargs))
        return [values[node] for node in wanted]


def _is_several(node: Any) -> bool:
    return isinstance(node.meta.get("val"), (tuple, list))


def _is_random(node: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


class PartRunner:
    """Runs a part on Tensors: captured for each layout of its inputs, then replayed."""

    def __init__(self, program: Program, part: Part, wanted: list[Any]) -> None:
        self.program = program
        self.part = part
        self.wanted = wanted
        self.vals = [node.meta["val"] for node in wanted]
        inside = set(part.nodes)
        self.readers = {node: next(user for user in node.users if user in inside) for node in part.inputs}
        self.captured: dict[Any, TinyJit[Any] | None] = {}
        self.is_left = False  # to ATen: no kernel of it could be made

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if not self.wanted:
            return []
        if self.is_left:
            return self._left(inputs)
        layouts: list[Any] = []
        flats: list[Tensor] = []
        for node, value in zip(self.part.inputs, inputs):
            layout, flat = self._at(self.readers[node], partial(_given, value))
            layouts.append(layout)
            if flat is not None:
                flats.append(flat)
                if self.program.given is not None:
                    self.program.given(node, value, flat)
        key = (tuple(layouts), Device.DEFAULT)
        try:
            return self._run(key, layouts, flats)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            self.is_left = True
            text = f"a part of {len(self.part.nodes)} operations runs in ATen, as its kernels failed"
            warnings.warn(f"{text}: {type(error).__name__}: {error}", LeftToAten, stacklevel=2)
            return self._left(inputs)

    def _run(self, key: Any, layouts: list[Any], flats: list[Tensor]) -> list[Any]:
        if not self.program.replay or not flats:
            return [_result(tensor, val) for tensor, val in zip(self._compute(layouts, flats), self.vals)]
        if key not in self.captured:
            while len(self.captured) >= MOST_REPLAYED:
                self.captured.pop(next(iter(self.captured)))
            self.captured[key] = TinyJit(lambda *flats: self._compute(layouts, flats))
        replayed = self.captured[key]
        if replayed is not None:
            try:
                # the next replay writes into the same memory
                return [_result(tensor, val, copy=True) for tensor, val in zip(replayed(*flats), self.vals)]
            except JitError:
                self.captured[key] = None
        return [_result(tensor, val) for tensor, val in zip(self._compute(layouts, flats), self.vals)]

    def _compute(self, layouts: Sequence[Any], flats: Sequence[Tensor]) -> list[Tensor]:
        given = iter(flats)
        tensors = []
        for node, layout in zip(self.part.inputs, layouts):
            if isinstance(layout, Layout):
                look = partial(layout.seen, next(given))
            else:
                look = partial(Tensor.zeros, *layout[0], dtype=layout[1])
            tensors.append(self._at(self.readers[node], look))
        found = self.program.computed(self.part, self.wanted, tensors)
        outputs = [self._at(node, partial(_in_memory, tensor)) for node, tensor in zip(self.wanted, found)]
        Tensor.realize(*outputs)
        return outputs

    def _at(self, node: Any, compute: Callable[[], Any]) -> Any:
        """What `compute` gives, below a frame at the line of a node."""
        return self.program.lines.call(node, self.program.listing, compute)

    def _left(self, inputs: Sequence[Any]) -> list[Any]:
        values = dict(zip(self.part.inputs, inputs))
        for node in self.part.nodes:
            self.program._by_aten(node, values)
        return [values[node] for node in self.wanted]


def _in_memory(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous()


def _given(value: Any) -> tuple[Any, Tensor | None]:
    """How a tensor lies in memory, and its elements as a Tensor; of one without elements, shape and dtype alone."""
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


def _result(tensor: Tensor, val: Any, copy: bool = False) -> Any:
    """A Tensor as PyTorch says that the result lies in memory."""
    found = torch_of(tensor)
    shape, strides = tuple(val.shape), val.stride()
    if not copy and found.stride() == strides:
        return found
    return torch.empty_strided(shape, strides, dtype=val.dtype).copy_(found)
