"""Gradients without requires_grad: builds a tape afterwards from the graph of LazyBuffers.

Most operations are nodes of that graph, with a rule for their op. A function with its own rule leaves a note on its
result. A realized value has dropped its sources. If a gradient might have to flow through it, `MissingGraphError` is
raised.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from weakref import ref

from tinyexplore.autograd.indexing import broadcast_gather_gradient, running_extreme_gradient, write_gradient
from tinyexplore.autograd.rules import GRADIENTS, REDUCE_GRADIENTS, product_of_others
from tinyexplore.autograd.scans import cumprod_gradient, cumsum_gradient, recurrence_gradient
from tinyexplore.autograd.tape import GradientRule, TapeEntry, gradients
from tinyexplore.autograd.taped_buffer import TapedBuffer
from tinyexplore.dtype import dtypes
from tinyexplore.lazy import (
    DataCopy,
    GatheredParts,
    LazyBuffer,
    Origin,
    ShardedBuffer,
    Simplification,
    SourceNumberBound,
    sources_of,
)
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.symbolic import is_symbolic

SCAN_GRADIENTS: dict[Ops, GradientRule] = {
    Ops.ADD: cumsum_gradient,
    Ops.MUL: cumprod_gradient,
    Ops.MULACC: recurrence_gradient,
    Ops.MAX: running_extreme_gradient,
    Ops.MIN: running_extreme_gradient,
}


class CustomGradient:
    """A note: this value is differentiated by `rule` with respect to `inputs`, not operation by operation.

    The value's graph, not the note, holds the inputs, which the value is computed from.
    """

    __slots__ = ("rule", "inputs", "arg")

    def __init__(self, rule: GradientRule, inputs: Sequence[LazyBuffer | None], arg: Any = None) -> None:
        self.rule = rule
        self.inputs = tuple([_dead_reference if tensor is None else ref(tensor) for tensor in inputs])
        self.arg = arg

    def __reduce__(self) -> tuple[Any, ...]:
        return CustomGradient, (self.rule, [reference() for reference in self.inputs], self.arg)

    def attached_to(self, node: LazyBuffer) -> CustomGradient:
        """Returns this note for `node`. For a simplified node, whose graph holds no inputs, returns a note that
        holds them."""
        if type(getattr(node, "note", None)) is not Simplification:
            return self
        inputs = self.inputs_of(node)
        return self if inputs is None else CustomGradientOfInputs(self.rule, inputs, self.arg)

    def inputs_of(self, node: LazyBuffer) -> tuple[LazyBuffer, ...] | None:
        """Returns the inputs; None if one is freed."""
        inputs = [reference() for reference in self.inputs]
        alive = tuple([tensor for tensor in inputs if tensor is not None])
        return alive if len(alive) == len(inputs) else None


class CustomGradientByPath(CustomGradient):
    """A `CustomGradient` whose only input is found by following the sources numbered `path`. Nodes can share it."""

    __slots__ = ("path",)

    def __init__(self, rule: GradientRule, *path: int) -> None:
        super().__init__(rule, ())
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return CustomGradientByPath, (self.rule, *self.path)

    def inputs_of(self, node: LazyBuffer) -> tuple[LazyBuffer, ...] | None:
        for number in self.path:
            sources = sources_of(node)
            if not sources:
                return None
            node = sources[number]
        return (node,)


class CustomGradientOfInputs(CustomGradient):
    """A `CustomGradient` that holds its inputs itself, because nothing else references them."""

    __slots__ = ("held_inputs",)

    def __init__(self, rule: GradientRule, inputs: tuple[LazyBuffer, ...], arg: Any = None) -> None:
        super().__init__(rule, (), arg)
        self.held_inputs = inputs

    def __reduce__(self) -> tuple[Any, ...]:
        return CustomGradientOfInputs, (self.rule, self.held_inputs, self.arg)

    def inputs_of(self, node: LazyBuffer) -> tuple[LazyBuffer, ...] | None:
        return self.held_inputs


def _dead_reference() -> None:
    return None


class MissingGraphError(RuntimeError):
    """Raised if a value on the path to a target is realized, so that its sources are unknown."""


def taped_graph(
    root: LazyBuffer, targets: Sequence[LazyBuffer], ends: Collection[LazyBuffer] = ()
) -> tuple[TapedBuffer, dict[int, TapedBuffer]]:
    """Returns `root` with the steps that lead back to `targets`, and each target that was found, by the id of its
    LazyBuffer.

    Nodes in `ends` count as computed from nothing. Raises MissingGraphError if a node in memory may depend on a target,
    because it was computed after the target was made.
    """
    target_ids, stops = {id(target) for target in targets}, {id(end) for end in ends}
    target_numbers = sorted([target.number for target in targets])
    taped_nodes: dict[int, TapedBuffer] = {}
    # a node whose inputs are not walked yet, or a node with its tape entry, after its inputs
    stack: list[tuple[LazyBuffer, TapeEntry | None] | LazyBuffer] = [root]
    while stack:
        top = stack.pop()
        if not isinstance(top, tuple):
            if id(top) not in taped_nodes:
                step = None if id(top) in stops else _make_step(top, target_numbers, target_ids)
                stack.append((top, step))
                if step is not None:
                    stack += [tensor for tensor in step.inputs if id(tensor) not in taped_nodes]
            continue
        node, step = top
        if id(node) in taped_nodes:
            continue
        taped = taped_nodes[id(node)] = TapedBuffer(node)
        if step is not None:
            step.inputs = tuple([taped_nodes[id(tensor)] for tensor in step.inputs])
            taped.requires_grad = any([tensor.requires_grad for tensor in step.inputs])
            taped._ctx = step if taped.requires_grad else None
        taped.requires_grad = taped.requires_grad or id(node) in target_ids
    return taped_nodes[id(root)], {number: taped_nodes[number] for number in target_ids if number in taped_nodes}


def _make_step(node: LazyBuffer, target_numbers: Sequence[int], target_ids: Collection[int]) -> TapeEntry | None:
    """Returns the step that made `node`, with LazyBuffers as inputs; None where the gradient stops."""
    if not dtypes.is_float(node.dtype):
        return None
    note = node.noted
    if note is Origin.DATA or note is Origin.DETACHED:
        return None
    if node.buffer is not None or (isinstance(node, ShardedBuffer) and not node.src and node.is_realized):
        _check_known(node, target_numbers)
        return None
    if isinstance(note, GatheredParts):
        return _make_entry(node, GRADIENTS[Ops.COPY], (note.source,))
    if isinstance(note, CustomGradient):
        inputs = note.inputs_of(node)
        if inputs is None and node.op is not Ops.CONST:  # its gradient is 0
            _check_known(node, target_numbers)
        if inputs is None:
            return None
        return _make_entry(node, note.rule, inputs, note.arg)
    if type(note) is Simplification:
        return _make_step_by_op(node, note.op, note.src, note.arg)
    if node.op is Ops.BITCAST:
        return _make_entry(node, bitcast_gradient, tuple(_find_floats_behind(node, target_numbers)))
    if node.op is Ops.GATHER:
        return _gather_step(node, target_ids)
    return _make_step_by_op(node, node.op, node.src, node.arg)


def _check_known(node: LazyBuffer, target_numbers: Sequence[int]) -> None:
    """Raises MissingGraphError if the unknown sources of `node` may depend on one of the targets.

    target_numbers: the numbers of the targets.
    """
    note = node.noted
    if note is Origin.DATA or (note is not Origin.UNKNOWN and node.number <= target_numbers[0]):
        return
    if type(note) is DataCopy and note.numbers.isdisjoint(target_numbers):
        return
    if type(note) is SourceNumberBound and not any([note.number <= number < node.number for number in target_numbers]):
        return
    raise MissingGraphError(
        f"an intermediate {node.dtype.name} tensor of shape {node.shape} was computed (realized, printed, read, "
        "or by a TinyJit) after a target was created, so its graph is gone"
    )


def _make_entry(
    node: LazyBuffer, rule: GradientRule | None, inputs: tuple[LazyBuffer, ...], arg: Any = None
) -> TapeEntry | None:
    return None if rule is None else TapeEntry(rule, inputs, inputs, node, arg)


def _make_step_by_op(node: LazyBuffer, op: Ops, src: tuple[LazyBuffer, ...], arg: Any) -> TapeEntry | None:
    """Returns the step with the gradient rule of `op`, from the sources and the argument of the operation."""
    match op:
        case Ops.REDUCE_AXIS:
            reduce_op, axes = arg
            return _make_entry(node, prod_gradient if reduce_op is Ops.MUL else REDUCE_GRADIENTS[reduce_op], src, axes)
        case Ops.SCAN_AXIS:
            reduce_op, axis = arg
            return _make_entry(node, SCAN_GRADIENTS[reduce_op], src, axis)
        case Ops.SCATTER:
            x, index, values = src
            return _make_entry(node, GRADIENTS[op], (x, values), (*arg, index))
        case Ops.WRITE:
            x, indices, value = src
            return _make_entry(node, write_gradient, (x, value), indices)
    return _make_entry(node, GRADIENTS.get(op), src, arg if op in OpGroups.MOVEMENT else None)


def _gather_step(node: LazyBuffer, target_ids: Collection[int]) -> TapeEntry | None:
    """Builds the tape step of a GATHER. If the table was expanded, the gradient is scattered to its source."""
    table, index = node.src
    is_repeated = table.op is Ops.EXPAND and table.buffer is None and id(table) not in target_ids
    if not is_repeated or is_symbolic((*table.shape, *table.src[0].shape)):
        return _make_entry(node, GRADIENTS[Ops.GATHER], (table,), index)
    if index.op is Ops.EXPAND and index.buffer is None:
        index = index.src[0]
    return _make_entry(node, broadcast_gather_gradient, table.src, index)


def _find_floats_behind(node: LazyBuffer, target_numbers: Sequence[int]) -> list[LazyBuffer]:
    """Returns the nearest floats whose bits `node` is computed from."""
    floats, stack, visited = [], list(node.src), set()
    while stack:
        source = stack.pop()
        if id(source) in visited:
            continue
        visited.add(id(source))
        if dtypes.is_float(source.dtype):
            floats.append(source)
        elif source.buffer is not None:
            _check_known(source, target_numbers)
        else:
            stack += source.src
    return floats


def prod_gradient(step: TapeEntry, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """y = Π x: dxᵢ = g · product of the others, which has its own rule (as a quotient, it would have no gradient at
    a zero)"""
    (x,) = step.sources
    product = product_of_others(x, step.arg)
    product.note = CustomGradient(product_of_others_gradient, (x,), step.arg).attached_to(product)
    return (g.expand(x.shape).alu(Ops.MUL, product),)


def product_of_others_gradient(step: TapeEntry, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """y = products of the others: dx is that of y written as products from both sides"""
    (x,) = step.sources
    root, taped_sources = taped_graph(product_of_others(x, step.arg), [x])
    reached = {id(taped): gradient for taped, gradient in gradients(root, g)}
    return (reached[id(taped_sources[id(x)])],)


def bitcast_gradient(step: TapeEntry, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """Raises an error: a bitcast has no gradient."""
    raise RuntimeError("bitcast has no gradient: detach() the tensor first")
