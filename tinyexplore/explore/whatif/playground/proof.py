"""Prove equivalence with z3, if it is installed: integers are bit vectors of their dtype's width.

Floats, memory and loops are not supported; they are compared on samples.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds

LIMIT_MS = 1000
_BOOL_OPS = "NEG, AND, MUL, MIN, OR, ADD, MAX, XOR, CMPNE, CMPEQ, CMPLT, CMPLE"
_INTEGER_OPS = f"{_BOOL_OPS}, IDIV, MOD, SHL, SHR"
ABSENT = "z3 is not installed (pip install 'tinyexplore[z3]'): samples are compared, nothing is proved"


@dataclass(frozen=True, slots=True, repr=False)
class Proof(DisplayableRow):
    """The result of z3.

    status: "proved", "differs" or "unknown".
    values: inputs for which the graphs differ, by node and lane.
    """

    status: Literal["proved", "differs", "unknown"]
    values: Mapping[tuple[UOp, int], Any] = field(default_factory=dict)


@cache
def solver_module() -> Any:
    """Returns the module z3, or None if it is not installed."""
    try:
        return importlib.import_module("z3")
    except ImportError:
        return None


def can_prove() -> bool:
    """Whether z3 is installed."""
    return solver_module() is not None


def describe_certainty() -> str:
    """Returns whether z3 proves firings here, or why not, as text."""
    return "z3 proves simple cases; samples check the others" if can_prove() else ABSENT


def prove_equal(before: UOp, after: UOp, cut: frozenset[UOp]) -> Proof:
    """Returns a Proof about whether two graphs are equal for all values of `cut` nodes, loops and Variables in bounds.

    Its status is "proved", "differs" (with values for which the graphs differ), or "unknown": z3 is missing, reached
    its time limit, or the graphs are not exact arithmetic of integers and booleans.
    """
    z3 = solver_module()
    if z3 is None or not (_is_exact(before, cut) and _is_exact(after, cut)):
        return Proof("unknown")
    form = _FormulaBuilder(z3, cut)
    first = form.term(before)
    allowed = list(form.conditions)
    form.conditions.clear()
    other = form.term(after)
    solver = z3.Solver()
    solver.set("timeout", LIMIT_MS)
    solver.add(*form.ranges, *allowed)
    solver.add(z3.Or(first != other, z3.Not(z3.And(*form.conditions))))
    answer = solver.check()
    if answer == z3.unsat:
        return Proof("proved")
    if answer == z3.sat:
        return Proof("differs", form.values(solver.model()))
    return Proof("unknown")


_EXACT_OPS = (OpGroups.BINARY - {Ops.FDIV, Ops.POW, Ops.SCALE}) | {Ops.NEG, Ops.WHERE, Ops.CAST, Ops.CONST}


def _is_exact(root: UOp, cut: frozenset[UOp]) -> bool:
    """Whether a graph is only arithmetic of scalar integers and booleans."""
    stack, visited = [root], set[UOp]()
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        if not isinstance(node.dtype, DType) or dtypes.is_float(node.dtype) or node.dtype.count > 1:
            return False
        if node in cut or node.op in (Ops.RANGE, Ops.DEFINE_VAR):
            continue
        if node.op not in _EXACT_OPS:
            return False
        stack.extend(node.src)
    return True


class _FormulaBuilder:
    """UOps as formulas of z3.

    ranges: the bounds of the inputs.
    conditions: the conditions under which every part has a value.
    """

    def __init__(self, z3: Any, cut: frozenset[UOp]) -> None:
        self.z3 = z3
        self.cut = cut
        self.inputs: dict[UOp, Any] = {}
        self.done: dict[UOp, Any] = {}
        self.ranges: list[Any] = []
        self.conditions: list[Any] = []

    def term(self, root: UOp) -> Any:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self.done:
                stack.pop()
                continue
            is_input = node in self.cut or node.op in (Ops.RANGE, Ops.DEFINE_VAR)
            missing = () if is_input else [src for src in node.src if src not in self.done]
            if missing:
                stack.extend(missing)
                continue
            self.done[node] = self.input(node) if is_input else self.make_term(node)
            stack.pop()
        return self.done[root]

    def input(self, node: UOp) -> Any:
        z3, name = self.z3, f"v{len(self.inputs)}"
        if node.dtype is dtypes.bool:
            symbol = self.inputs[node] = z3.Bool(name)
            return symbol
        symbol = self.inputs[node] = z3.BitVec(name, node.dtype.bits)
        low, high = bounds(node)
        if dtypes.is_unsigned(node.dtype):
            self.ranges += [z3.UGE(symbol, low), z3.ULE(symbol, high)]
        else:
            self.ranges += [symbol >= low, symbol <= high]
        return symbol

    def values(self, model: Any) -> dict[tuple[UOp, int], Any]:
        """Returns the values of the inputs in a model."""
        values: dict[tuple[UOp, int], Any] = {}
        for node, name in self.inputs.items():
            value = model.eval(name, model_completion=True)
            if node.dtype is dtypes.bool:
                values[node, 0] = bool(self.z3.is_true(value))
            else:
                values[node, 0] = value.as_long() if dtypes.is_unsigned(node.dtype) else value.as_signed_long()
        return values

    def make_term(self, node: UOp) -> Any:
        z3, op, src = self.z3, node.op, [self.done[source] for source in node.src]
        if op is Ops.CONST:
            return z3.BoolVal(bool(node.arg)) if node.dtype is dtypes.bool else z3.BitVecVal(node.arg, node.dtype.bits)
        if op is Ops.WHERE:
            return z3.If(*src)
        if op is Ops.CAST:
            return self.cast(src[0], node.src[0].dtype, node.dtype)
        if node.src[0].dtype is dtypes.bool:
            return self.logic(op, *src)
        return self.arithmetic(op, node.src[0].dtype, *src)

    def cast(self, value: Any, source: DType, dtype: DType) -> Any:
        z3 = self.z3
        if dtype is source:
            return value
        if dtype is dtypes.bool:
            return value != 0
        if source is dtypes.bool:
            return z3.If(value, z3.BitVecVal(1, dtype.bits), z3.BitVecVal(0, dtype.bits))
        more = dtype.bits - source.bits
        if more <= 0:
            return z3.Extract(dtype.bits - 1, 0, value)
        return z3.ZeroExt(more, value) if dtypes.is_unsigned(source) else z3.SignExt(more, value)

    def logic(self, op: Ops, x: Any, y: Any = None) -> Any:
        z3 = self.z3
        match op:
            case Ops.NEG:
                return x
            case Ops.AND | Ops.MUL | Ops.MIN:
                return z3.And(x, y)
            case Ops.OR | Ops.ADD | Ops.MAX:
                return z3.Or(x, y)
            case Ops.XOR | Ops.CMPNE:
                return x != y
            case Ops.CMPEQ:
                return x == y
            case Ops.CMPLT:
                return z3.And(z3.Not(x), y)
            case Ops.CMPLE:
                return z3.Or(z3.Not(x), y)
        raise NotImplementedError(f"z3 proof: {op.name} of bools is not supported; supported: {_BOOL_OPS}")

    def arithmetic(self, op: Ops, dtype: DType, x: Any, y: Any = None) -> Any:
        z3, unsigned = self.z3, dtypes.is_unsigned(dtype)
        less: Callable[[Any, Any], Any] = z3.ULT if unsigned else operator.lt
        match op:
            case Ops.NEG:
                return -x
            case Ops.ADD:
                return x + y
            case Ops.MUL:
                return x * y
            case Ops.AND:
                return x & y
            case Ops.OR:
                return x | y
            case Ops.XOR:
                return x ^ y
            case Ops.MAX:
                return z3.If(less(y, x), x, y)
            case Ops.MIN:
                return z3.If(less(x, y), x, y)
            case Ops.CMPLT:
                return less(x, y)
            case Ops.CMPLE:
                return z3.Not(less(y, x))
            case Ops.CMPEQ:
                return x == y
            case Ops.CMPNE:
                return x != y
            case Ops.IDIV | Ops.MOD:
                self.conditions.append(y != 0)
                if op is Ops.IDIV:
                    return z3.UDiv(x, y) if unsigned else x / y
                return z3.URem(x, y) if unsigned else z3.SRem(x, y)
            case Ops.SHL | Ops.SHR:
                self.conditions.append(z3.ULT(y, dtype.bits))
                if op is Ops.SHL:
                    return x << y
                return z3.LShR(x, y) if unsigned else x >> y
        raise NotImplementedError(f"z3 proof: {op.name} of integers is not supported; supported: {_INTEGER_OPS}")


__all__ = ["ABSENT", "Proof", "can_prove", "describe_certainty", "prove_equal"]
