"""How an IR value is shown: its label, its details, its group, its argument; index expressions and linear programs.

This module alone knows how a UOp or a LazyBuffer looks; the engine formats nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Axis, AxisKind, Group, Ops, UOp
from tinyexplore.util import toposort

MAX_EXPRESSION = 120  # characters: a longer operand is cut to its operation, so that text stays linear in nodes


@dataclass(frozen=True, slots=True)
class Description:
    """What a view writes about one IR value; the fields of `model.Node` of the same names."""

    label: str
    detail: str
    group: str
    arg: str
    dtype: str
    shape: tuple[int, ...] | None


@singledispatch
def describe(value: object, printer: Printer | None = None) -> Description:
    """How `value` is shown. Pass one `printer` for many values: it remembers the expressions it has written."""
    name = type(value).__name__
    return Description(name, str(value)[:MAX_EXPRESSION], "control", "", "", None)


# *** small values ***


def dtype_text(dtype: DType | PtrDType) -> str:
    """ "float32", "float32×8" for eight lanes, "float32*" for an address."""
    if isinstance(dtype, PtrDType):
        return f"{dtype.base.name}*"
    return dtype.name if dtype.count == 1 else f"{dtype.name}×{dtype.count}"


def number_text(value: Any) -> str:
    """A constant as Python would write it, shortest first: 0.5, -inf, 1e-05, True."""
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return str(value)
        if value == int(value) and abs(value) < 1e6:
            return f"{value:.1f}"
        return f"{value:.7g}"
    return str(value)


def arg_text(arg: Any) -> str:
    """The argument of a node in words: an operation by its name, an axis by its letter, tuples flat."""
    if arg is None:
        return ""
    if isinstance(arg, Ops):
        return arg.name
    if isinstance(arg, Axis):
        return f"{arg.name} {arg.kind.value}"
    if isinstance(arg, tuple):
        return f"({', '.join(arg_text(item) for item in arg)}{',' if len(arg) == 1 else ''})"
    return number_text(arg)


def shape_text(shape: Sequence[int]) -> str:
    """ "2×3×4"; "scalar" for no axes."""
    return "×".join(str(size) for size in shape) or "scalar"


# *** groups: the role of a node, which gives its colour ***

_GROUPS: dict[Ops, str] = {
    **{op: "alu" for op in Group.ALU},
    **{op: "movement" for op in Group.MOVEMENT},
    **{op: "memory" for op in (Ops.INDEX, Ops.LOAD, Ops.STORE, Ops.CONTIGUOUS, Ops.COPY)},
    **{op: "buffer" for op in (Ops.BUFFER, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL)},
    **{op: "reduce" for op in (Ops.REDUCE, Ops.REDUCE_AXIS, Ops.HREDUCE, Ops.DEFINE_ACC, Ops.ASSIGN, Ops.RESULT)},
    **{op: "loop" for op in (Ops.RANGE, Ops.ENDRANGE)},
    **{op: "const" for op in (Ops.CONST, Ops.DEFINE_VAR, Ops.IOTA)},
    **{op: "movement" for op in (Ops.VECTORIZE, Ops.GEP)},
    **{op: "control" for op in (Ops.SINK, Ops.BARRIER)},
}


def group_of(op: Ops) -> str:
    """The role of an operation: what colours its box."""
    return _GROUPS.get(op, "control")


# *** expressions ***

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
_TIGHT = 7  # products are written without spaces: g0*384 + r1
_PREFIX = 8

Text = tuple[str, int]  # the text of an expression, and how tightly its outermost operator binds


class Printer:
    """Writes expressions with as few parentheses as Python needs; each node is written once and remembered."""

    def __init__(self) -> None:
        self._done: dict[UOp, Text] = {}

    def text(self, uop: UOp) -> str:
        """The expression that computes `uop`, from ranges, constants and loads."""
        return self._text(uop)[0]

    def _text(self, uop: UOp) -> Text:
        done = self._done
        found = done.get(uop)
        if found is None:
            for node in toposort((uop,), lambda node: () if node in done else node.src):
                if node not in done:
                    done[node] = self._write(node)
            found = done[uop]
        return found

    def _operand(self, uop: UOp, binding: int) -> str:
        text, binds = self._done[uop]
        if len(text) > MAX_EXPRESSION:
            return f"{uop.op.name.lower()}(…)"
        return f"({text})" if binds < binding else text

    def _call(self, name: str, sources: Iterable[UOp]) -> Text:
        return f"{name}({', '.join(self._operand(src, 0) for src in sources)})", _ATOM

    def _write(self, uop: UOp) -> Text:
        op, src = uop.op, uop.src
        if op in _INFIX and len(src) == 2:
            return self._infix(uop)
        match op:
            case Ops.CONST:
                text = number_text(uop.arg)
                return text, _PREFIX if text.startswith("-") else _ATOM
            case Ops.RANGE:
                return uop.arg.name, _ATOM
            case Ops.DEFINE_VAR:
                return str(uop.arg[0]), _ATOM
            case Ops.DEFINE_GLOBAL:
                return f"data{uop.arg}", _ATOM
            case Ops.DEFINE_LOCAL:
                return str(uop.arg), _ATOM
            case Ops.DEFINE_ACC:
                return f"acc{uop.arg}", _ATOM
            case Ops.ASSIGN:
                return f"{self._operand(src[0], 0)} = {self._operand(src[1], 0)}", 0
            case Ops.RESULT:
                return self._operand(src[0], 0), _ATOM
            case Ops.INDEX:
                where = f" if {self._operand(src[2], 0)}" if len(src) > 2 else ""
                return f"{self._operand(src[0], _ATOM)}[{self._operand(src[1], 0)}{where}]", _ATOM
            case Ops.LOAD:
                return self._operand(src[0], _ATOM), _ATOM
            case Ops.STORE:
                return f"{self._operand(src[0], 0)} = {self._operand(src[1], 0)}", 0
            case Ops.NEG:
                return f"-{self._operand(src[0], _PREFIX)}", _PREFIX
            case Ops.WHERE:
                condition, yes, no = (self._operand(part, 1) for part in src)
                return f"{yes} if {condition} else {no}", 0
            case Ops.CAST:
                return self._call(dtype_text(uop.dtype), src)
            case Ops.BITCAST:
                return self._call(f"bits_as_{dtype_text(uop.dtype)}", src)
            case Ops.GEP:
                return f"{self._operand(src[0], _ATOM)}.{uop.arg}", _ATOM
            case Ops.VECTORIZE if len(set(src)) == 1:
                return self._call(f"splat{uop.dtype.count}", src[:1])
            case Ops.VECTORIZE:
                return self._call("vec", src)
            case Ops.REDUCE | Ops.HREDUCE:
                word = {Ops.ADD: "sum", Ops.MUL: "prod", Ops.MAX: "max", Ops.MIN: "min"}[uop.arg]
                axes = f" for {', '.join(self._operand(axis, 0) for axis in src[1:])}" if len(src) > 1 else ""
                return f"{word}({self._operand(src[0], 1)}{axes})", _ATOM
            case _:
                return self._call(op.name.lower(), src)

    def _infix(self, uop: UOp) -> Text:
        sign, binds = _INFIX[uop.op]
        left, right = uop.src
        if uop.op is Ops.ADD:
            if right.op is Ops.NEG:
                return f"{self._operand(left, binds)} - {self._operand(right.src[0], binds + 1)}", binds
            if right.op is Ops.CONST and not isinstance(right.arg, bool) and right.arg < 0:
                return f"{self._operand(left, binds)} - {number_text(-right.arg)}", binds
            if right.op is Ops.MUL and right.src[1].op is Ops.CONST and right.src[1].arg == -1:
                return f"{self._operand(left, binds)} - {self._operand(right.src[0], binds + 1)}", binds
        flat = uop.op in _ASSOCIATIVE and right.op is uop.op and not dtypes.is_float(uop.dtype)
        compared = uop.op in Group.COMPARE  # a < b < c would mean something else
        left_text = self._operand(left, binds + 1 if compared else binds)
        right_text = self._operand(right, binds if flat else binds + 1)
        space = "" if binds == _TIGHT else " "
        return f"{left_text}{space}{sign}{space}{right_text}", binds


def expr_text(uop: UOp) -> str:
    """`uop` as one expression: "data1[g0*384 + r1] * 0.5" with the parentheses that Python would need."""
    return Printer().text(uop)


# *** nodes ***


@describe.register
def _(value: UOp, printer: Printer | None = None) -> Description:
    printer = printer or Printer()
    return Description(
        label=_uop_label(value),
        detail=_uop_detail(value, printer),
        group=_GROUPS.get(value.op, "control"),
        arg=arg_text(value.arg),
        dtype="" if value.dtype is dtypes.void else dtype_text(value.dtype),
        shape=None,
    )


def _uop_label(uop: UOp) -> str:
    match uop.op:
        case Ops.REDUCE | Ops.HREDUCE:
            return f"{uop.op.name} {uop.arg.name}"
        case Ops.DEFINE_GLOBAL:
            return f"data{uop.arg}"
        case Ops.DEFINE_ACC:
            return f"acc{uop.arg}"
        case _:
            return uop.op.name


def _uop_detail(uop: UOp, printer: Printer) -> str:
    src = uop.src
    match uop.op:
        case Ops.CONST:
            return number_text(uop.arg)
        case Ops.RANGE:
            return f"{uop.arg.name} < {printer.text(src[0])} · {uop.arg.kind.value}"
        case Ops.ENDRANGE:
            return printer.text(src[0])
        case Ops.DEFINE_VAR:
            name, low, high = uop.arg
            return f"{low} ≤ {name} ≤ {high}"
        case Ops.DEFINE_GLOBAL | Ops.DEFINE_LOCAL if isinstance(uop.dtype, PtrDType):
            return f"{uop.dtype.base.name}[{uop.dtype.size}]"
        case Ops.INDEX | Ops.LOAD:
            return printer.text(uop)
        case Ops.STORE:
            return printer.text(src[0])
        case Ops.GEP:
            return f"lane {uop.arg}"
        case Ops.SINK:
            return f"{len(src)} store{'s' if len(src) != 1 else ''}"
        case Ops.REDUCE:
            return f"over {', '.join(printer.text(axis) for axis in src[1:])}"
        case Ops.BARRIER:
            return ""
        case _:
            return printer.text(uop) if uop.dtype is dtypes.index else dtype_text(uop.dtype)


@describe.register
def _(value: LazyBuffer, printer: Printer | None = None) -> Description:
    shape = shape_text(value.shape)
    match value.op:
        case Ops.CONST:
            detail = number_text(value.arg)
        case Ops.REDUCE_AXIS:
            detail = f"{value.arg[0].name} over {', '.join(map(str, value.arg[1]))} → {shape}"
        case Ops.COPY:
            detail = f"{value.arg} → {value.device}"
        case Ops.BUFFER:
            return describe_memory(value)
        case Ops.PERMUTE | Ops.PAD | Ops.SHRINK | Ops.FLIP | Ops.WINDOW | Ops.DIAGONAL:
            detail = f"{arg_text(value.arg)} → {shape}"
        case _:
            detail = shape
    return Description(value.op.name, detail, group_of(value.op), arg_text(value.arg), value.dtype.name, value.shape)


def describe_memory(value: LazyBuffer) -> Description:
    """A LazyBuffer whose values lie in memory, whatever computed them."""
    detail = f"{value.dtype.name} {shape_text(value.shape)} on {value.device}"
    return Description("BUFFER", detail, "buffer", "", value.dtype.name, value.shape)


# *** the linear program ***

_LOOP_WORDS = {
    AxisKind.GLOBAL: "",
    AxisKind.THREAD: "  # split among threads",
    AxisKind.LOCAL: "  # workgroup",
    AxisKind.REDUCE: "  # accumulates",
    AxisKind.GROUP: "  # accumulates across the workgroup",
    AxisKind.UNROLL: "  # written out",
    AxisKind.UPCAST: "  # written out",
    AxisKind.VECTOR: "  # lanes",
}


def uops_listing(uops: Sequence[UOp]) -> tuple[SourceLine, ...]:
    """The linear program as text: one numbered line a UOp, indented by its loops.

    `%7 = MUL %5, %6 : float32` names its operands by line; constants, ranges and buffers stand by value or name.
    """
    names: dict[UOp, str] = {}
    width = len(str(max(len(uops) - 1, 0)))
    lines = []
    depth = 0
    for position, uop in enumerate(uops):
        if uop.op is Ops.ENDRANGE:
            depth = max(depth - 1, 0)
        names[uop] = _operand_name(uop, position)
        text = f"{position:>{width}}  {'  ' * depth}{_uop_line(uop, names)}"
        lines.append(SourceLine(text, (uop,)))
        if uop.op is Ops.RANGE:
            depth += 1
    return tuple(lines)


def _operand_name(uop: UOp, position: int) -> str:
    match uop.op:
        case Ops.CONST:
            return number_text(uop.arg)
        case Ops.RANGE:
            return uop.arg.name
        case Ops.DEFINE_GLOBAL:
            return f"data{uop.arg}"
        case Ops.DEFINE_LOCAL:
            return str(uop.arg)
        case Ops.DEFINE_ACC:
            return f"acc{uop.arg}"
        case Ops.DEFINE_VAR:
            return str(uop.arg[0])
        case _:
            return f"%{position}"


def _missing_name(uop: UOp) -> str:
    """A source that is not in the list: the verifier rejects such a program, yet it has to be shown."""
    return number_text(uop.arg) if uop.op is Ops.CONST else f"?{uop.op.name}"


def _uop_line(uop: UOp, names: dict[UOp, str]) -> str:
    sources = [names[src] if src in names else _missing_name(src) for src in uop.src]
    kind = dtype_text(uop.dtype)
    match uop.op:
        case Ops.RANGE:
            return f"for {names[uop]} in range({sources[0]}):{_LOOP_WORDS[uop.arg.kind]}"
        case Ops.ENDRANGE:
            return f"end {sources[0]}"
        case Ops.CONST:
            return f"CONST {names[uop]} : {kind}"
        case Ops.DEFINE_GLOBAL | Ops.DEFINE_LOCAL if isinstance(uop.dtype, PtrDType):
            return f"{uop.op.name} {names[uop]} : {uop.dtype.base.name}[{uop.dtype.size}]"
        case Ops.DEFINE_VAR:
            return f"DEFINE_VAR {names[uop]} from {uop.arg[1]} to {uop.arg[2]}"
        case Ops.DEFINE_ACC:
            return f"DEFINE_ACC {names[uop]} = {', '.join(sources)} : {kind}"
        case Ops.ASSIGN:
            return f"ASSIGN {sources[0]} = {sources[1]}"
        case Ops.INDEX:
            valid = f" if {sources[2]}" if len(sources) > 2 else ""
            return f"{names[uop]} = INDEX {sources[0]}[{sources[1]}{valid}]"
        case Ops.STORE:
            return f"STORE {sources[0]} = {sources[1]}"
        case Ops.RESULT:
            return f"{names[uop]} = RESULT {sources[0]} : {kind}"
        case Ops.GEP:
            return f"{names[uop]} = GEP {sources[0]} lane {uop.arg} : {kind}"
        case Ops.HREDUCE:
            return f"{names[uop]} = HREDUCE {uop.arg.name} {sources[0]} : {kind}"
        case _ if uop.dtype is dtypes.void:
            return f"{uop.op.name} {', '.join(sources)}".rstrip()
        case _:
            return f"{names[uop]} = {uop.op.name} {', '.join(sources)} : {kind}"
