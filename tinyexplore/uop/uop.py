"""UOp: a small immutable node for kernels, index arithmetic and programs. Nodes with equal content are the same
object."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from numbers import Number
from threading import RLock
from typing import Any, ClassVar
from weakref import ref

from tinyexplore.dtype import LANES_BIT, ConstType, DType, PtrDType, dtypes
from tinyexplore.trace import active_recorder, node_derived
from tinyexplore.uop.ops import Axis, AxisKind, OpGroups, Ops
from tinyexplore.util import toposort
from tinyexplore.util.locks import new_in_children
from tinyexplore.util.tree import tree_text

AnyDType = DType | PtrDType

_BIT = {op: 1 << number for number, op in enumerate(Ops, 32)}  # the lower bits are those of dtypes
_KIND_BIT = {kind: 1 << number for number, kind in enumerate(AxisKind, 32 + len(Ops))}
_CONST = Ops.CONST
_INDEX = dtypes.index
_BOOL = dtypes.bool
_OF_NUMBERS = frozenset({Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD})  # operations in which Python counts a bool as 1 or 0
_SAME = object()
_new = object.__new__
_NO_RANGES: frozenset[Any] = frozenset()


class _Table:
    """Interns all nodes by their content, with weak references. Nodes without references are released by the thousand.

    A key holds the sources of its node. So these stay, without other references, until the table has grown by half and
    is swept. Cached analyses of a node live as long.
    """

    least = 1 << 16  # entries before the first sweep: 25 MB, more than a training step of a small net creates
    limit = least
    lock = RLock()


_interned: dict[Any, ref[UOp]] = {}
# one object per mask, so that a walk over thousands of nodes finds it in the CPU's cache
_masks: dict[int, int] = {}
_MAX_MASKS = 1 << 14
new_in_children(_Table, "lock")


def _settle(key: Any, new_reference: ref[UOp], node: UOp) -> UOp:
    """Enters `node` under a key that just had an entry: a node of another thread, or a node that is being released."""
    with _Table.lock:
        reference = _interned.setdefault(key, new_reference)
        if reference is not new_reference:
            if (existing := reference()) is not None:
                return existing
            _interned[key] = new_reference
    return node


def _sweep() -> None:
    """Releases the nodes without references, newest first: a node's sources are older than the node."""
    with _Table.lock:
        if len(_interned) < _Table.limit:
            return
        _Table.limit = 1 << 62  # a finalizer may create nodes
        try:
            # copied in one step, because other threads may enter nodes meanwhile
            entries = list(_interned.copy().items())
            while entries:
                key, reference = entries.pop()
                if reference() is None and _interned.get(key) is reference:
                    del _interned[key]
        finally:
            _Table.limit = len(_interned) + max(_Table.least, len(_interned) >> 1)
            if len(_masks) > _MAX_MASKS:
                _masks.clear()


def forget_unheld() -> None:
    """Releases the nodes without references immediately, instead of when there are many."""
    with _Table.lock:
        _Table.limit = 0
        _sweep()


def ops_mask(ops: Iterable[Ops]) -> int:
    """Returns a set of operations as an int, to compare with `UOp.mask`."""
    return sum(_BIT[op] for op in set(ops))


_CLOSES = ops_mask((Ops.REDUCE, Ops.HREDUCE, Ops.BARRIER, Ops.RESULT, Ops.TILE))
_OPENS_OR_CLOSES = _CLOSES | ops_mask((Ops.RANGE,))
_VARIABLE = ops_mask((Ops.DEFINE_VAR,))
# operations that occur in no size: sizes are arithmetic on constants and Variables
NO_SIZE = ops_mask(set(Ops) - {Ops.CONST, Ops.DEFINE_VAR, Ops.BIND, Ops.NEG, *OpGroups.BINARY})


def axes_mask(kinds: Iterable[AxisKind]) -> int:
    """Returns a set of kinds of axes as an int, to compare with `UOp.mask`."""
    return sum(_KIND_BIT[kind] for kind in set(kinds))


def dtypes_mask(dtypes_in_use: Iterable[DType]) -> int:
    """Returns a set of scalar dtypes as an int, to compare with `UOp.mask`."""
    return sum({dtype.bit for dtype in dtypes_in_use})


def _are_sizes(first: UOp, second: Any) -> bool:
    """Whether both operands are sizes and one contains a Variable. `//` and `%` then have Python's meaning."""
    mask = first.mask | second.mask if type(second) is UOp else first.mask
    return bool(mask & _VARIABLE and not mask & NO_SIZE)


def _get_sources(node: UOp) -> tuple[UOp, ...]:
    return node.src


def _format_head(node: UOp) -> str:
    if node.op is Ops.CONST:
        return f"UOp.const({node.dtype!r}, {argument_text(node.arg)}"
    arg = "" if node.arg is None else f", arg={argument_text(node.arg)}"
    return f"UOp({node.op!r}, {node.dtype!r}{arg}"


def _format_tail(node: UOp) -> str:
    return ")"


def argument_text(arg: Any) -> str:
    """Returns the argument of a node as Python source."""
    if isinstance(arg, float) and not math.isfinite(arg):
        return f'float("{arg}")'
    if isinstance(arg, UOp):
        return arg.tree("s")  # a symbolic size
    if type(arg) is tuple:
        return f"({', '.join(map(argument_text, arg))}{',' if len(arg) == 1 else ''})"
    return repr(arg)


class Queries:
    """Queries on a UOp that modules built on UOps implement. Each module registers its functions here."""

    bounds: ClassVar[Callable[[UOp], tuple[int, int]]]
    as_number: ClassVar[Callable[[UOp], UOp]]
    bound: ClassVar[Callable[[UOp, int], UOp]]
    floor_divided: ClassVar[Callable[[Any, Any], UOp]]
    floor_remainder: ClassVar[Callable[[Any, Any], UOp]]
    is_size: ClassVar[Callable[[UOp], bool]]
    read_value: ClassVar[Callable[[UOp], int]]
    text: ClassVar[Callable[[Any], str]]
    truth: ClassVar[Callable[[UOp], bool]]
    valued_text: ClassVar[Callable[[UOp], str]]
    written_out: ClassVar[Callable[[UOp], Any]]


class UOp:
    """An operation `op` of type `dtype` on `src`, with a hashable `arg`.

    Call the class to create a node. The same content gives the same object, so `is` compares whole graphs.
    """

    __slots__ = (
        "op",
        "dtype",
        "src",
        "arg",
        "mask",
        "ranges",
        "settled",
        "_bounds",
        "_linear",
        "_digest",
        "__weakref__",
    )
    op: Ops
    dtype: Any  # a DType, or a PtrDType for an address
    src: tuple[UOp, ...]
    arg: Any
    mask: int  # one bit for each operation (`ops_mask`), scalar dtype and kind of axis in this graph, and LANES_BIT
    settled: object  # a table of rules of which none fires in this graph, if known
    ranges: frozenset[UOp]  # the loop variables that this value depends on, without those of its reductions
    _bounds: tuple[int, int] | None
    _linear: tuple[dict[UOp, int], int, int] | None  # the form of a sum (`tinyexplore.uop.divmod.linear_form`)
    _digest: str | None

    def __new__(cls, op: Ops, dtype: AnyDType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        return make_uop(op, dtype, src, arg)

    def __reduce__(self) -> tuple[Any, ...]:
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def __repr__(self) -> str:
        if self.src and (self.op is Ops.BIND or self.op is Ops.NEG or self.op in OpGroups.BINARY):
            if self.mask & _VARIABLE and not self.mask & NO_SIZE:
                return Queries.valued_text(self)
        arg = "" if self.arg is None else f" {self.arg!r}"
        return f"UOp({self.op.name}, {self.dtype!r},{arg} src={len(self.src)})"

    def __str__(self) -> str:
        """Returns the whole graph as an expression that rebuilds it, or a size with Variables as arithmetic: `4*v +
        1`."""
        return repr(self) if self.mask & _VARIABLE and not self.mask & NO_SIZE else self.tree()

    def tree(self, name: str = "x") -> str:
        """Returns the graph of this node as text that `eval` turns back into this node.

        The text needs `from tinyexplore import dtypes` and `from tinyexplore.uop import Axis, AxisKind, Ops, UOp`. A
        node that several nodes use gets a name, `x0`, `x1`, …, at its first occurrence. name: another letter.
        """
        return tree_text(self, _get_sources, _format_head, _format_tail, name)

    # *** creation ***

    @staticmethod
    def const(dtype: AnyDType, value: ConstType) -> UOp:
        """Returns a constant. With a vector dtype, every lane has this value."""
        if dtype is _INDEX and type(value) is int:
            return index_const(value)
        assert isinstance(dtype, DType)
        value = dtypes.as_const(value, dtype)
        if isinstance(value, float) and math.isnan(value):
            value = math.nan  # the only NaN object: NaN is not equal to itself, and interning compares identity first
        return UOp(Ops.CONST, dtype, (), value)

    @staticmethod
    def range(size: int | UOp, axis: Axis) -> UOp:
        """Returns a loop variable 0 ≤ i < size."""
        end = size if isinstance(size, UOp) else index_const(size)
        return UOp(Ops.RANGE, dtypes.index, (end,), axis)

    @staticmethod
    def sink(*src: UOp) -> UOp:
        return UOp(Ops.SINK, dtypes.void, src)

    def replace(self, *, op: Any = _SAME, dtype: Any = _SAME, src: Any = _SAME, arg: Any = _SAME) -> UOp:
        """Returns a copy with the given fields replaced."""
        return UOp(
            self.op if op is _SAME else op,
            self.dtype if dtype is _SAME else dtype,
            self.src if src is _SAME else src,
            self.arg if arg is _SAME else arg,
        )

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """Returns `op` on self and `others`. Comparisons have bool lanes; WHERE has the dtype of its second source."""
        dtype = self.dtype
        if op is Ops.WHERE:
            dtype = others[0].dtype
        elif op in OpGroups.COMPARE:
            dtype = dtypes.bool.vec(self.dtype.count)
        return make_uop(op, dtype, (self, *others))

    def cast(self, dtype: AnyDType) -> UOp:
        return self if self.dtype is dtype else UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: AnyDType) -> UOp:
        return self if self.dtype is dtype else UOp(Ops.BITCAST, dtype, (self,))

    def index(self, idx: UOp, valid: UOp | None = None) -> UOp:
        """Returns the address of element `idx` of this buffer. It is meaningful only where `valid` holds."""
        return UOp(Ops.INDEX, self.dtype, (self, idx) if valid is None else (self, idx, valid))

    def broadcast(self, count: int) -> UOp:
        """Returns this scalar in `count` lanes."""
        if count == 1 or self.dtype.count == count:
            return self
        assert isinstance(self.dtype, DType)
        if self.op is Ops.CONST:
            return UOp.const(self.dtype.vec(count), self.arg)
        return UOp(Ops.VECTORIZE, self.dtype.vec(count), (self,) * count)

    def _to_operand(self, other: Any) -> UOp:
        if isinstance(other, UOp):
            return other
        if type(other) is not int:
            if not isinstance(other, Number):
                type_name = type(other).__name__
                raise TypeError(f"arithmetic of {self!r} and {type_name}: need a number, a size or a Tensor")
            if self.dtype is _INDEX and other != int(other):  # type: ignore[call-overload]
                raise TypeError(f"arithmetic of {self.render()} and {other!r}: sizes are whole numbers")
        return UOp.const(self.dtype, other)

    def _with(self, op: Ops, other: Any) -> UOp:
        """Returns `self op other`; NotImplemented if `other` takes precedence, as a Tensor does."""
        if not isinstance(other, UOp):
            if type(other) is not int and getattr(other, "__array_priority__", 0) > 0:
                return NotImplemented
            number = self._to_number() if op in _OF_NUMBERS else self
            return number.alu(op, number._to_operand(other))
        if op in _OF_NUMBERS and (self.dtype is _BOOL or other.dtype is _BOOL):
            return self._to_number().alu(op, other._to_number())
        return self.alu(op, other)

    def _to_number(self) -> UOp:
        """Converts a comparison of sizes to 1 or 0, for arithmetic. Returns any other node unchanged."""
        if self.dtype is not _BOOL or not _are_sizes(self, self):
            return self
        return Queries.as_number(self)

    def __add__(self, other: Any) -> UOp:
        # the usual case, in half the time that `_with` takes
        if type(other) is UOp and self.dtype is other.dtype is not _BOOL:
            return make_uop(Ops.ADD, self.dtype, (self, other))
        return self._with(Ops.ADD, other)

    def __radd__(self, other: Any) -> UOp:
        number = self._to_number()
        return number._to_operand(other).alu(Ops.ADD, number)

    def __sub__(self, other: Any) -> UOp:
        if not isinstance(other, (UOp, Number)):
            return self._with(Ops.ADD, other)  # the result of the other operand (a Tensor's), or an error
        number = self._to_number()
        other = number._to_operand(other)._to_number()
        if dtypes.is_float(other.dtype):
            return number.alu(Ops.ADD, other.alu(Ops.NEG))
        return number.alu(Ops.ADD, other * -1)

    def __rsub__(self, other: Any) -> UOp:
        return self._to_number()._to_operand(other) - self

    def __mul__(self, other: Any) -> UOp:
        if type(other) is UOp and self.dtype is other.dtype is not _BOOL:  # as in `__add__`
            return make_uop(Ops.MUL, self.dtype, (self, other))
        return self._with(Ops.MUL, other)

    def __rmul__(self, other: Any) -> UOp:
        number = self._to_number()
        return number._to_operand(other).alu(Ops.MUL, number)

    def __truediv__(self, other: Any) -> UOp:
        if self.dtype is _INDEX and isinstance(other, (UOp, Number)):
            raise TypeError(f"{self.render()} / {other!r}: sizes are whole numbers, divide with //")
        return self._with(Ops.FDIV, other)

    def __floordiv__(self, other: Any) -> UOp:
        if isinstance(other, (UOp, Number)) and _are_sizes(self, other):
            return Queries.floor_divided(*self._to_numbers(other))
        return self._with(Ops.IDIV, other)

    def __rfloordiv__(self, other: Any) -> UOp:
        return self._to_number()._to_operand(other) // self

    def __mod__(self, other: Any) -> UOp:
        if isinstance(other, (UOp, Number)) and _are_sizes(self, other):
            return Queries.floor_remainder(*self._to_numbers(other))
        return self._with(Ops.MOD, other)

    def __rmod__(self, other: Any) -> UOp:
        return self._to_number()._to_operand(other) % self

    def __divmod__(self, other: Any) -> tuple[UOp, UOp]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[UOp, UOp]:
        return other // self, other % self

    def _to_numbers(self, other: Any) -> tuple[UOp, UOp]:
        number = self._to_number()
        return number, number._to_operand(other)._to_number()

    def __and__(self, other: Any) -> UOp:
        return self._with(Ops.AND, other)

    def __or__(self, other: Any) -> UOp:
        return self._with(Ops.OR, other)

    def __xor__(self, other: Any) -> UOp:
        return self._with(Ops.XOR, other)

    def __lshift__(self, other: Any) -> UOp:
        if type(other) is int and _are_sizes(self, other):
            return self * (1 << other)
        return self._with(Ops.SHL, other)

    def __rshift__(self, other: Any) -> UOp:
        if type(other) is int and _are_sizes(self, other):
            return self // (1 << other)
        return self._with(Ops.SHR, other)

    def __neg__(self) -> UOp:
        return self._to_number().alu(Ops.NEG)

    def __lt__(self, other: Any) -> UOp:
        return self._with(Ops.CMPLT, other)

    def __le__(self, other: Any) -> UOp:
        return self._with(Ops.CMPLE, other)

    def __gt__(self, other: Any) -> UOp:
        if not isinstance(other, (UOp, Number)):
            return self._with(Ops.CMPLT, other)  # the result of the other operand (a Tensor's), or an error
        return self._to_operand(other).alu(Ops.CMPLT, self)

    def __ge__(self, other: Any) -> UOp:
        if not isinstance(other, (UOp, Number)):
            return self._with(Ops.CMPLE, other)  # the result of the other operand (a Tensor's), or an error
        return self._to_operand(other).alu(Ops.CMPLE, self)

    def eq(self, other: Any) -> UOp:
        return self.alu(Ops.CMPEQ, self._to_operand(other))

    def ne(self, other: Any) -> UOp:
        return self.alu(Ops.CMPNE, self._to_operand(other))

    def maximum(self, other: Any) -> UOp:
        return self.alu(Ops.MAX, self._to_operand(other))

    def minimum(self, other: Any) -> UOp:
        return self.alu(Ops.MIN, self._to_operand(other))

    def where(self, yes: Any, no: Any) -> UOp:
        """Returns `yes` where self holds, else `no`, lane by lane. At least one of the two must be a UOp."""
        if not isinstance(yes, UOp):
            yes = UOp.const(no.dtype, yes)
        return self.alu(Ops.WHERE, yes, yes._to_operand(no))

    # *** sizes (`tinyexplore.uop.symbolic`) ***

    def __bool__(self) -> bool:
        """Whether a size is not 0, or a comparison of sizes holds: for all values of its Variables, else for their
        bound values.

        TinyJit keeps an answer for bound values as a condition of its replays. Raises SymbolicError for a Variable
        without a value.
        """
        if self.dtype is not dtypes.index and self.dtype is not dtypes.bool:
            return True
        return Queries.truth(self)

    def bind(self, value: int) -> UOp:
        """Returns this Variable with its value in this call."""
        return Queries.bound(self, value)

    def unbind(self) -> tuple[UOp, int]:
        """Returns the Variable and its bound value."""
        if self.op is not Ops.BIND:
            raise ValueError(f"unbind {self!r}: it is not a bound Variable")
        return self.src[0], self.val

    @property
    def val(self) -> int:
        """The current value of this bound Variable, or of arithmetic on bound Variables.

        A call that TinyJit captures is then valid for this value only. If the value is only compared with a number
        (`v.val == 0`), the call is valid for all values with the same answer.
        """
        return Queries.read_value(self)

    @property
    def expr(self) -> str:
        """The name of this Variable, bound or not."""
        variable = self.src[0] if self.op is Ops.BIND else self
        if variable.op is not Ops.DEFINE_VAR:
            raise AttributeError(f"{self!r} has no name: only a Variable has one; .render() writes any size")
        return str(variable.arg[0])

    def render(self) -> str:
        """Returns this size, or comparison of sizes, as source text: `2*v + 1`."""
        return Queries.text(Queries.written_out(self)) if Queries.is_size(self) else repr(self)

    # *** queries ***

    def toposort(self, within: int = -1) -> list[UOp]:
        """Returns this node and every UOp below it, sources first.

        within: a mask; only nodes with such an operation below them are visited.
        """
        visits_all = within == -1
        if not (visits_all or self.mask & within):
            return []
        order: dict[UOp, None] = {}
        path = []  # the nodes on the way down, and their remaining sources
        node, sources = self, iter(self.src)
        while True:
            for source in sources:
                if source not in order and (visits_all or source.mask & within):
                    if source.src:
                        path.append((node, sources))
                        node, sources = source, iter(source.src)
                        break
                    order[source] = None
            else:
                order[node] = None
                if not path:
                    return list(order)
                node, sources = path.pop()

    def find(self, *ops: Ops) -> list[UOp]:
        """Returns the nodes of this graph with one of these operations, sources first."""
        return [node for node in self.toposort(ops_mask(ops)) if node.op in ops]

    @property
    def value_count(self) -> int:
        """The number of sources that are values; in a REDUCE or a SCAN, loops follow them."""
        if self.op is Ops.SCAN:
            return 2 if self.arg is Ops.MULACC else 1
        return 1 if self.op is Ops.REDUCE else len(self.src)

    @property
    def digest(self) -> str:
        """Returns a short hash of the content, equal in every process."""
        if self._digest is None:
            for node in toposort((self,), lambda node: node.src if node._digest is None else ()):
                if node._digest is None:
                    text = (
                        f"{node.op.name}|{node.dtype!r}|{node.arg!r}|{','.join(str(src._digest) for src in node.src)}"
                    )
                    node._digest = blake2b(text.encode(), digest_size=8).hexdigest()
        return str(self._digest)

    @property
    def size(self) -> int:
        """The number of steps of a RANGE; the greatest number if its end is not a constant."""
        assert self.op is Ops.RANGE
        end = self.src[0]
        if end.op is Ops.CONST:
            return end.arg
        return max(0, Queries.bounds(end)[1])

    @property
    def vmin(self) -> int:
        """The least value of an integer; for a Variable, its lower bound."""
        return Queries.bounds(self)[0]

    @property
    def vmax(self) -> int:
        """The greatest value of an integer."""
        return Queries.bounds(self)[1]

    min, max = vmin, vmax

    @property
    def is_static(self) -> bool:
        """Whether a RANGE ends at a constant."""
        return self.src[0].op is Ops.CONST

    def substitute(self, replacements: Mapping[UOp, UOp], how: str | None = None) -> UOp:
        """Returns this graph with each key replaced by its value. Values are not searched again.

        With `how`, each rebuilt node is recorded as derived from its original, with `how` as the reason.
        """
        only_axes = all([node.op is Ops.RANGE for node in replacements])
        axes = frozenset(replacements) if only_axes else None
        mask = ops_mask(node.op for node in replacements)
        return self._substitute_in(dict(replacements), mask, how, axes, _CLOSES)

    def substitute_more(self, replacements: dict[UOp, UOp], ops: Iterable[Ops], how: str) -> UOp:
        """Calls `substitute` and keeps the results in `replacements`, so that calls for many graphs visit each shared
        node once.

        `replacements` starts empty or with replacements. Between calls, a replacement of a node may be added if its
        operation is one of `ops` and no earlier call visited it.
        """
        return self._substitute_in(replacements, ops_mask(ops), how, None, 0)

    def with_axes(self, index_of: Mapping[UOp, UOp], how: str) -> UOp:
        """Calls `substitute` for RANGEs that are open here. Skips nodes that do not depend on them."""
        return self._substitute_in(dict(index_of), ops_mask(node.op for node in index_of), how, frozenset(index_of), 0)

    def _substitute_in(
        self, replacements: dict[UOp, UOp], mask: int, how: str | None, axes: frozenset[UOp] | None, closing: int
    ) -> UOp:
        """Implements the substitutions.

        replacements: the replacements, to which results are added.
        mask: the operations of the replaced nodes.
        axes: nodes that depend on none of them are left unchanged, unless an operation of `closing` is below.
        """
        recorder = active_recorder() if how is not None else None
        result_of = replacements.__getitem__
        if self in replacements:
            return replacements[self]
        if not self.mask & mask or not (axes is None or self.mask & closing or not axes.isdisjoint(self.ranges)):
            return self
        path = []  # as in `toposort`
        node, sources = self, iter(self.src)
        while True:
            for source in sources:
                if source in replacements:
                    continue
                source_mask = source.mask
                if source_mask & mask and (axes is None or source_mask & closing or not axes.isdisjoint(source.ranges)):
                    path.append((node, sources))
                    node, sources = source, iter(source.src)
                    break
                replacements[source] = source
            else:
                src = tuple(map(result_of, node.src))
                replacement = replacements[node] = (
                    node if src == node.src else make_uop(node.op, node.dtype, src, node.arg)
                )
                if recorder is not None and replacement is not node:
                    recorder.record(node_derived((node, replacement, how or "")))
                if not path:
                    return replacement
                node, sources = path.pop()


def make_uop(op: Ops, dtype: AnyDType, src: tuple[UOp, ...], arg: Any = None) -> UOp:
    """Returns `UOp(op, dtype, src, arg)`, for callers that create thousands: calling the class takes 1.5 times as
    long."""
    if op is _CONST:  # 0.0 and -0.0, 1 and True are different constants, although equal in Python
        key: Any = (dtype, type(arg), arg or repr(arg))
    else:
        key = (op, dtype, src, arg)
    reference = _interned.get(key)
    if reference is not None and (existing := reference()) is not None:
        return existing
    node = _new(UOp)
    node.op = op
    node.dtype = dtype
    node.src = src
    node.arg = arg
    op_bit = _BIT[op]
    mask = op_bit | dtype.bit
    ranges = _NO_RANGES
    for source in src:
        mask |= source.mask
        source_ranges = source.ranges
        if source_ranges is not ranges and not source_ranges <= ranges:
            ranges = source_ranges if ranges <= source_ranges else ranges | source_ranges
    if op_bit & _OPENS_OR_CLOSES:
        ranges = _open_ranges(node, ranges)
        if op is Ops.RANGE:
            axis_kind = arg.kind
            mask |= _KIND_BIT[axis_kind] | (LANES_BIT if axis_kind is AxisKind.VECTOR else 0)
    node.mask = _masks.setdefault(mask, mask)
    node.ranges = ranges
    node.settled = None
    node._bounds = None
    node._linear = None
    node._digest = None
    new_reference = ref(node)
    if _interned.setdefault(key, new_reference) is not new_reference:
        return _settle(key, new_reference, node)
    if len(_interned) > _Table.limit:
        _sweep()
    return node


def _open_ranges(node: UOp, ranges: frozenset[UOp]) -> frozenset[UOp]:
    """Returns the loop variables of a node that opens or closes loops. `ranges`: those of its sources."""
    if node.op is Ops.RANGE:
        return ranges | {node}
    closed = node.src[2:] if node.op is Ops.RESULT else node.src[1:]
    return ranges.difference(closed)


@lru_cache(1 << 12, typed=True)
def index_const(value: int) -> UOp:
    """Returns a constant of the index dtype."""
    return UOp(Ops.CONST, dtypes.index, (), value)


__all__ = [
    "NO_SIZE",
    "Axis",
    "AxisKind",
    "UOp",
    "axes_mask",
    "dtypes_mask",
    "index_const",
    "make_uop",
    "ops_mask",
]
