"""Prints UOp expressions as text, with the fewest parentheses that Python needs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.util import toposort

# characters; a longer operand is abbreviated to its operation, so that the text stays linear in nodes
MAX_EXPRESSION = 120


def dtype_text(dtype: DType | PtrDType) -> str:
    """Returns a data type as text: "float32", "float32×8" for eight lanes, "float32*" for an address."""
    if isinstance(dtype, PtrDType):
        return f"{dtype.base.name}*"
    return dtype.name if dtype.count == 1 else f"{dtype.name}×{dtype.count}"


def number_text(value: Any) -> str:
    """Returns a constant as Python writes it, in the shortest form: 0.5, -inf, 1e-05, True."""
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return str(value)
        if value == int(value) and abs(value) < 1e6:
            return f"{value:.1f}"
        return f"{value:.7g}"
    return str(value)


_INFIX: dict[Ops, tuple[str, int]] = {
    Ops.OR: ("|", 2),
    Ops.XOR: ("^", 3),
    Ops.AND: ("&", 4),
    Ops.CMPEQ: ("==", 1),
    Ops.CMPNE: ("!=", 1),
    Ops.CMPLT: ("<", 1),
    Ops.CMPLE: ("<=", 1),
    Ops.SHL: ("<<", 5),
    Ops.SHR: (">>", 5),
    Ops.ADD: ("+", 6),
    Ops.MUL: ("*", 7),
    Ops.FDIV: ("/", 7),
    Ops.IDIV: ("//", 7),
    Ops.MOD: ("%", 7),
}
_ASSOCIATIVE = frozenset({Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR})
_ATOM = 10
_TIGHT = 7  # products have no spaces: g0*384 + r1
_PREFIX = 8

Text = tuple[str, int]  # the text of an expression, and the precedence of its outermost operator


_LEAVES = frozenset(
    (Ops.CONST, Ops.RANGE, Ops.DEFINE_VAR, Ops.BIND, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_ACC)
)


def _print_leaf(uop: UOp) -> Text:
    """Returns the value or name of a constant, a loop variable, a Variable or memory."""
    match uop.op:
        case Ops.CONST:
            text = number_text(uop.arg)
            return text, _PREFIX if text.startswith("-") else _ATOM
        case Ops.RANGE:
            return uop.arg.name, _ATOM
        case Ops.DEFINE_VAR:
            return str(uop.arg[0]), _ATOM
        case Ops.BIND:
            return str(uop.src[0].arg[0]), _ATOM
        case Ops.DEFINE_GLOBAL:
            return f"data{uop.arg}", _ATOM
        case Ops.DEFINE_ACC:
            return f"acc{uop.arg}", _ATOM
    return str(uop.arg), _ATOM


class Printer:
    """Prints expressions with the fewest parentheses that Python needs, and caches the text of each node.

    limit: most characters of an operand; a longer one is abbreviated to its operation.
    sizes: whether reductions print their number of iterations.
    """

    def __init__(self, *, limit: int = MAX_EXPRESSION, sizes: bool = False) -> None:
        self._done: dict[UOp, Text] = {}
        self._limit = limit
        self._sizes = sizes

    def name(self, uop: UOp, name: str) -> None:
        """Prints `uop` as `name` from now on."""
        self._done[uop] = (name, _ATOM)

    def text(self, uop: UOp) -> str:
        """Returns the expression that computes `uop` from ranges, constants and loads."""
        return self._text(uop)[0]

    def _text(self, uop: UOp) -> Text:
        memo = self._done
        text = memo.get(uop)
        if text is None:
            for node in toposort((uop,), lambda node: () if node in memo else node.src):
                if node not in memo:
                    memo[node] = self._write(node)
            text = memo[uop]
        return text

    def _print_operand(self, uop: UOp, binding: int) -> str:
        text, binds = self._done[uop]
        if len(text) > self._limit:
            return f"{uop.op.name.lower()}(…)"
        return f"({text})" if binds < binding else text

    def _call(self, name: str, sources: Iterable[UOp]) -> Text:
        return f"{name}({', '.join(self._print_operand(src, 0) for src in sources)})", _ATOM

    def _write(self, uop: UOp) -> Text:
        op, src = uop.op, uop.src
        if op in _INFIX and len(src) == 2:
            return self._print_infix(uop)
        if op in _LEAVES:
            return _print_leaf(uop)
        match op:
            case Ops.ASSIGN | Ops.STORE:
                return f"{self._print_operand(src[0], 0)} = {self._print_operand(src[1], 0)}", 0
            case Ops.RESULT:
                return self._print_operand(src[0], 0), _ATOM
            case Ops.INDEX:
                condition_text = f" if {self._print_operand(src[2], 0)}" if len(src) > 2 else ""
                return f"{self._print_operand(src[0], _ATOM)}[{self._print_operand(src[1], 0)}{condition_text}]", _ATOM
            case Ops.LOAD:
                return self._print_operand(src[0], _ATOM), _ATOM
            case Ops.NEG:
                return f"-{self._print_operand(src[0], _PREFIX)}", _PREFIX
            case Ops.WHERE:
                condition, yes, no = (self._print_operand(part, 1) for part in src)
                return f"{yes} if {condition} else {no}", 0
            case Ops.CAST:
                return self._call(dtype_text(uop.dtype), src)
            case Ops.BITCAST:
                return self._call(f"bits_as_{dtype_text(uop.dtype)}", src)
            case Ops.GEP if len(src) == 3:
                row, column = (self._print_operand(part, 1) for part in src[1:])
                return f"{self._print_operand(src[0], _ATOM)}[{row}, {column}]", _ATOM
            case Ops.TILE:
                axes = "".join(f" for {self._walk(axis)}" for axis in src[1:])
                return f"tile({self._print_operand(src[0], 1)}{axes})", _ATOM
            case Ops.GEP:
                return f"{self._print_operand(src[0], _ATOM)}.{uop.arg}", _ATOM
            case Ops.TABLE:
                return self._call(f"table{len(uop.arg)}", src)
            case Ops.VECTORIZE if len(set(src)) == 1:
                return self._call(f"splat{uop.dtype.count}", src[:1])
            case Ops.VECTORIZE:
                return self._call("vec", src)
            case Ops.WMMA:
                return self._call(uop.arg, src)
            case Ops.REDUCE | Ops.HREDUCE:
                return self._print_reduction(uop)
            case _:
                return self._call(op.name.lower(), src)

    def _print_reduction(self, uop: UOp) -> Text:
        """Prints a reduction: "sum(x[i] for i in range(4))", or of lanes "vec(sum(a), sum(b))"."""
        word = {Ops.ADD: "sum", Ops.MUL: "prod", Ops.MAX: "max", Ops.MIN: "min"}[uop.arg]
        if uop.op is Ops.HREDUCE and len(uop.src) > 1:
            rows = [f"{word}({self._print_operand(row, 1)})" for row in uop.src]
            return f"vec({', '.join(rows)})", _ATOM
        axes = "".join(f" for {self._walk(axis)}" for axis in uop.src[1:])
        return f"{word}({self._print_operand(uop.src[0], 1)}{axes})", _ATOM

    def _walk(self, axis: UOp) -> str:
        name = self._print_operand(axis, 0)
        return f"{name} in range({self._print_operand(axis.src[0], 0)})" if self._sizes else name

    def _print_infix(self, uop: UOp) -> Text:
        sign, binds = _INFIX[uop.op]
        left, right = uop.src
        if uop.op is Ops.ADD:
            if right.op is Ops.NEG:
                return f"{self._print_operand(left, binds)} - {self._print_operand(right.src[0], binds + 1)}", binds
            if right.op is Ops.CONST and not isinstance(right.arg, bool) and right.arg < 0:
                return f"{self._print_operand(left, binds)} - {number_text(-right.arg)}", binds
            if right.op is Ops.MUL and right.src[1].op is Ops.CONST and right.src[1].arg == -1:
                return f"{self._print_operand(left, binds)} - {self._print_operand(right.src[0], binds + 1)}", binds
        flat = uop.op in _ASSOCIATIVE and right.op is uop.op and not dtypes.is_float(uop.dtype)
        compared = uop.op in OpGroups.COMPARE  # a < b < c would be a chained comparison
        left_text = self._print_operand(left, binds + 1 if compared else binds)
        right_text = self._print_operand(right, binds if flat else binds + 1)
        space = "" if binds == _TIGHT else " "
        return f"{left_text}{space}{sign}{space}{right_text}", binds


def expr_text(uop: UOp) -> str:
    """Returns `uop` as one expression, with the parentheses that Python needs: "data1[g0*384 + r1] * 0.5"."""
    return Printer().text(uop)
