"""Random expressions that a pattern matches, generated from the pattern."""

from __future__ import annotations

from random import Random
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp, UPat
from tinyexplore.uop.pattern import _ANY_ARG
from tinyexplore.uop.semantics import to_dtype_range

EVERY = frozenset(dtypes.fields().values())
FLOAT_ONLY = OpGroups.TRANSCENDENTAL | {Ops.SCALE, Ops.SQRT, Ops.FDIV, Ops.FLOOR}
INTEGER_ONLY = frozenset({Ops.IDIV, Ops.SHL, Ops.SHR})
INTEGER_OR_BOOL = frozenset({Ops.AND, Ops.OR, Ops.XOR})
NUMBERS_ONLY = frozenset({Ops.NEG, Ops.MOD})
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), -float("inf"), float("nan"), 1e-45, 3e38, 7.0, -2.5)


def dtypes_of(op: Ops) -> frozenset[DType]:
    """The dtypes that `op` can give."""
    if op in OpGroups.COMPARE:
        return frozenset((dtypes.bool,))
    if op in OpGroups.DOT:
        return frozenset()  # of words, which no pattern asks for
    if op in FLOAT_ONLY:
        return frozenset(dtypes.floats)
    if op in INTEGER_ONLY:
        return frozenset(dtypes.ints)
    if op in INTEGER_OR_BOOL:
        return frozenset((dtypes.bool, *dtypes.ints))
    if op in NUMBERS_ONLY:
        return EVERY - {dtypes.bool}
    return EVERY


def allowed(pattern: UPat) -> frozenset[DType]:
    """The dtypes that a match of `pattern` can have."""
    found = EVERY if pattern.dtypes is None else frozenset(pattern.dtypes)
    if pattern.ops is None or pattern.ops == {Ops.CONST}:
        return found
    by_op = [dtypes_of(op) & _passed_up(op, pattern.src or ()) for op in pattern.ops]
    return found & frozenset.union(*by_op)


def _passed_up(op: Ops, sources: tuple[UPat, ...]) -> frozenset[DType]:
    if op in OpGroups.COMPARE or op in (Ops.CAST, Ops.BITCAST):
        return EVERY
    values = sources[1:] if op is Ops.WHERE else sources
    return frozenset.intersection(EVERY, *map(allowed, values))


class Instances:
    """Makes expressions for one pattern after another; the same seed, the same expressions."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.leaves = 0

    def of(self, pattern: UPat) -> UOp | None:
        """An expression that looks like `pattern`; None where the choices made on the way do not fit."""
        kinds = sorted(allowed(pattern), key=lambda dtype: dtype.priority)
        if not kinds:
            return None
        count = self.random.choice((1, 1, 1, 2, 4))
        return self._match(pattern, self.random.choice(kinds).vec(count), {})

    def _match(self, pattern: UPat, dtype: DType, bound: dict[str, UOp]) -> UOp | None:
        if pattern.name is not None and pattern.name in bound:
            found = bound[pattern.name]
            return found if found.dtype is dtype else None
        node = self._new(pattern, dtype, bound)
        if node is not None and pattern.name is not None:
            bound[pattern.name] = node
        return node

    def _new(self, pattern: UPat, dtype: DType, bound: dict[str, UOp]) -> UOp | None:
        if pattern.ops is None:
            return self.constant(dtype) if self.random.random() < 0.1 else self.leaf(dtype)
        if pattern.ops == {Ops.CONST}:
            return self.constant(dtype) if pattern.arg is _ANY_ARG else UOp.const(dtype, pattern.arg)
        if pattern.ops == {Ops.VECTORIZE}:
            return UOp(Ops.VECTORIZE, dtype, (self.constant(dtype.scalar),) * dtype.count)
        ops = sorted(op for op in pattern.ops if op in OpGroups.ALU and dtype.scalar in dtypes_of(op))
        if not ops:
            return None
        op = self.random.choice(ops)
        patterns = pattern.src or (UPat(),) * _arity(op)
        if len(patterns) != _arity(op):
            return None
        if op in OpGroups.COMMUTATIVE and self.random.random() < 0.5:
            patterns = patterns[::-1]
        sources = []
        for part, kind in zip(patterns, self._source_dtypes(op, dtype, patterns), strict=True):
            if pattern.src is None and self.random.random() < 0.9:
                part = UPat(frozenset((Ops.CONST,)), ())
            source = self._match(part, kind, bound) if kind is not None else None
            if source is None:
                return None
            sources.append(source)
        if op in (Ops.SHL, Ops.SHR):
            sources[1] = UOp.const(dtype, self.random.randrange(dtype.bits))
        return UOp(op, dtype, tuple(sources))

    def _source_dtypes(self, op: Ops, dtype: DType, patterns: tuple[UPat, ...]) -> list[DType | None]:
        if op is Ops.WHERE:
            return [dtypes.bool.vec(dtype.count), dtype, dtype]
        if op not in OpGroups.COMPARE and op not in (Ops.CAST, Ops.BITCAST):
            return [dtype] * len(patterns)
        kinds = frozenset.intersection(*map(allowed, patterns))
        if op is Ops.BITCAST:
            kinds &= {kind for kind in EVERY - {dtypes.bool} if kind.itemsize == dtype.itemsize}
            kinds = kinds if dtype.scalar is not dtypes.bool else frozenset()
        if not kinds:
            return [None] * len(patterns)
        kind = self.random.choice(sorted(kinds, key=lambda dtype: dtype.priority))
        for usual in (dtype.scalar, dtypes.float32):
            if op is Ops.CAST and self.random.random() < 0.2 and usual in kinds:
                kind = usual
        return [kind.vec(dtype.count)] * len(patterns)

    def constant(self, dtype: DType) -> UOp:
        return UOp.const(dtype, self.value(dtype))

    def leaf(self, dtype: DType) -> UOp:
        """A variable with bounds or a loop variable, also in every lane; for scalar indices a sum of products too."""
        if dtype.count > 1 and dtype.scalar is dtypes.index and self.random.random() < 0.5:
            return self._variable(dtypes.index).broadcast(dtype.count)
        if dtype is dtypes.index and self.random.random() < 0.5:
            terms = [self._variable(dtype) * self.random.choice((1, 2, 3, 4, 6, 12, -1, -4)) for _ in range(2)]
            return terms[0] + terms[1] + self.random.choice((0, 1, 5, 24))
        return self._variable(dtype)

    def _variable(self, dtype: DType) -> UOp:
        self.leaves += 1
        if dtype is dtypes.index and self.random.random() < 0.5:
            return UOp.range(self.random.randint(1, 9), Axis(self.leaves, AxisKind.GLOBAL))
        low, high = 0, 0
        if dtypes.is_int(dtype):
            low, high = sorted((self.value(dtype), self.value(dtype)))
        elif dtypes.is_bool(dtype):
            high = 1
        return UOp(Ops.DEFINE_VAR, dtype, (), (f"v{self.leaves}", low, high))

    def value(self, dtype: DType) -> Any:
        """Any value of `dtype`, small and extreme ones often."""
        pick = self.random.random()
        if dtypes.is_bool(dtype):
            return pick < 0.5
        if dtypes.is_float(dtype):
            number = self.random.choice(SPECIAL_FLOATS) if pick < 0.5 else self.random.uniform(-100, 100)
            return to_dtype_range(number, dtype)
        low, high = int(dtypes.min(dtype.scalar)), int(dtypes.max(dtype.scalar))
        if pick < 0.75:
            return max(low, min(high, self.random.randint(-12, 30)))
        return self.random.choice((low, low + 1, high - 1, high, self.random.randint(low, high)))

    def values(self, root: UOp) -> dict[UOp, Any]:
        """A value within its bounds for every leaf of `root`."""
        return {node: self._within(node) for node in root.toposort() if node.op in (Ops.DEFINE_VAR, Ops.RANGE)}

    def _within(self, node: UOp) -> Any:
        if node.op is Ops.RANGE:
            return self.random.randrange(node.size)
        if not dtypes.is_int(node.dtype):
            return self.value(node.dtype)
        low, high = node.arg[1:]
        return self.random.choice((low, high, self.random.randint(low, high), max(low, min(high, 0))))


def _arity(op: Ops) -> int:
    return 1 if op in OpGroups.UNARY else 3 if op in OpGroups.TERNARY else 2
