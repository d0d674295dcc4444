"""Folds operations whose result is an operand or a constant when the graph is built. They need no kernel.

The laws of `uop/folding.py` decide this for one element. The result is still a separate node: a view of the operand, or
a constant. So the graph shows what the user wrote, also to gradients (`Simplification`).
"""

from __future__ import annotations

from math import copysign, prod
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.folding import Outcome, outcome, reduced_constant
from tinyexplore.uop.semantics import evaluate

if TYPE_CHECKING:
    from typing_extensions import Self

_MOVEMENT, _CONST, _PAD = OpGroups.MOVEMENT, Ops.CONST, Ops.PAD
_ARITHMETIC = frozenset({Ops.NEG, Ops.ADD, Ops.XOR, Ops.CMPEQ})  # operations whose laws depend on their sources
_MAY_BE_CONSTANT = _MOVEMENT | {_CONST}
# operations with laws for equal operands
EQUAL_OPERAND_OPS = frozenset({Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.WHERE})
MAX_CACHED_FORMS = 4096
_nothing_known: set[tuple[Any, ...]] = set()  # (operation, dtype, second operand) of constants for which no law exists
_CONVERSIONS = frozenset({Ops.CAST, Ops.BITCAST})


class GraphNode(Protocol):
    """The attributes of a LazyBuffer that the laws read."""

    @property
    def op(self) -> Ops: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[Any, ...]: ...
    @property
    def src(self) -> tuple[Self, ...]: ...
    @property
    def arg(self) -> Any: ...
    @property
    def device(self) -> str: ...
    @property
    def buffer(self) -> object | None: ...


N = TypeVar("N", bound=GraphNode)


class Simplification:
    """A note on a folded node: it is `op` of `src`, which by `law` is a constant or a view of a source.

    Gradients flow to the sources, and a captured call depends on them.
    """

    __slots__ = ("law", "op", "src", "arg")

    def __init__(self, law: str, op: Ops, src: tuple[Any, ...], arg: Any = None) -> None:
        self.law = law
        self.op = op
        self.src = src
        self.arg = arg


def sources_of(node: N) -> tuple[N, ...]:
    """Returns the sources of `node` as the user wrote it, before simplification."""
    note = getattr(node, "note", None)
    return note.src if type(note) is Simplification else node.src


def graph_as_written(node: N) -> set[N]:
    """Returns all nodes that `node` was computed from as the user wrote it, down to realized nodes."""
    nodes: set[N] = set()
    stack = list(sources_of(node))
    while stack:
        source = stack.pop()
        if source not in nodes:
            nodes.add(source)
            stack += sources_of(source) if source.buffer is None else ()
    return nodes


def constant_in(node: GraphNode) -> ConstType | None:
    """Returns the value that all elements of `node` share; None if it is unknown."""
    is_padded = False
    while node.op in _MOVEMENT and node.buffer is None:
        is_padded = is_padded or node.op is _PAD
        node = node.src[0]
    if node.op is not _CONST or node.buffer is not None or isinstance(node.arg, UOp):
        return None
    value: ConstType = node.arg
    return None if is_padded and str(value) not in ("0", "0.0", "False") else value


def _fold_conversion(op: Ops, dtype: DType, src: tuple[N, ...], value: Any) -> N | None:
    """Converts the constant `value`; returns None if the value is unknown."""
    if value is None:
        return None
    result = evaluate(op, dtype, value, src_dtypes=(src[0].dtype,))
    return _make_result(("fold_constants", None, result), src, op, dtype, src)


def known_result(op: Ops, dtype: DType, src: tuple[N, ...]) -> N | None:
    """Returns the known result of elementwise `op` on `src`; None if it must be computed."""
    form = None
    if len(src) == 2:  # fast path for the usual case: a constant on one side for which no law applies
        number = 1 if src[1].op is _CONST else 0
        value, other_operand = src[number], src[1 - number]
        is_number = value.op is _CONST and value.buffer is None and type(value.arg) is not UOp
        if is_number and not (other_operand.op is op and op in _ARITHMETIC):
            form = op, other_operand.dtype, number, value.arg or copysign(1.0, value.arg), value.arg == 0
            if value.arg not in (0, 1, -1) and form in _nothing_known and constant_in(other_operand) is None:
                return None
    values = [constant_in(source) for source in src]
    if op in _CONVERSIONS:
        return _fold_conversion(op, dtype, src, values[0])
    if all([value is None for value in values]):
        if not (op is Ops.NEG and src[0].op is Ops.NEG and src[0].buffer is None) and src[-1] is not src[len(src) - 2]:
            return None
    leaves: list[N] = []
    forms = tuple([_describe_node(source, value, leaves, is_outer=True) for source, value in zip(src, values)])
    result = outcome(op, dtype, forms)
    if result is not None:
        return _make_result(result, leaves, op, dtype, src)
    if form is not None and None in values:
        if len(_nothing_known) >= MAX_CACHED_FORMS:
            _nothing_known.clear()
        _nothing_known.add(form)
    return None


def known_reduction(x: N, op: Ops, axes: tuple[int, ...], shape: tuple[Any, ...]) -> N | None:
    """Returns the known result of the reduction `op` over `axes` of `x`; None if it must be computed."""
    value = None
    for axis in axes:
        if x.shape[axis] != 1:
            if x.op in _MAY_BE_CONSTANT:
                value = constant_in(x)
            break
    else:
        return _make_result(("reduce_one", 0, None), [x], Ops.REDUCE_AXIS, x.dtype, (x,), (op, axes))
    sizes = [x.shape[axis] for axis in axes]
    if value is None or not all([type(size) is int and size > 0 for size in sizes]):
        return None
    result = ("reduce_constant", None, reduced_constant(op, x.dtype, value, prod(sizes)))
    return _make_result(result, [x], Ops.REDUCE_AXIS, x.dtype, (x,), (op, axes), shape)


def _describe_node(node: N, value: ConstType | None, leaves: list[N], *, is_outer: bool) -> tuple[Any, ...]:
    """Returns `node` in the format that `outcome` takes."""
    if value is not None:
        return node.dtype, None, str(value), value
    if is_outer and node.op in _ARITHMETIC and node.buffer is None and type(node.shape) is tuple:
        inner = [_describe_node(source, constant_in(source), leaves, is_outer=False) for source in node.src]
        if node.op is Ops.NEG or any([leaf_kind is None for _, leaf_kind, *_ in inner]):
            return node.dtype, node.op, tuple(inner)
    for number, leaf in enumerate(leaves):
        if leaf is node:
            return node.dtype, number
    leaves.append(node)
    return node.dtype, len(leaves) - 1


def _make_result(
    outcome: Outcome,
    leaves: Any,
    op: Ops,
    dtype: DType,
    src: tuple[N, ...],
    arg: Any = None,
    shape: tuple[Any, ...] | None = None,
) -> N:
    """Builds the node that `outcome` describes, a constant or a leaf, with a note of the simplified operation."""
    law, number, value = outcome
    model = src[-1]
    shape = model.shape if shape is None else shape
    if number is None:
        node_class: Any = type(model)
        node = node_class(_CONST, dtype, shape, (), dtypes.as_const(value, dtype), model.device)
    else:
        node = leaves[number]._view(Ops.RESHAPE, shape, shape)
    node.note = Simplification(law, op, src, arg)
    return cast("N", node)
