"""Describes IR values as text: label, details, group and argument; index expressions and linear programs.

Only this module formats UOps and LazyBuffers; the engine formats nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import isfinite
from typing import Any

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.explore.recording.expression import MAX_EXPRESSION, Printer, dtype_text, expr_text, number_text
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.lazy import ExternalOperation, LazyBuffer
from tinyexplore.trace import LaunchesGrouped, SearchEnded, SourceLine
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp


@dataclass(frozen=True, slots=True)
class Description:
    """The text of one IR value, under the field names of `model.Node`.

    label: the first line of its box.
    detail: the second line of its box.
    group: its role, which gives the color.
    arg: the argument of the operation.
    dtype: the element type.
    shape: the shape of a LazyBuffer; None for a UOp.
    """

    label: str
    detail: str
    group: str
    arg: str
    dtype: str
    shape: tuple[int | str, ...] | None


@singledispatch
def describe(value: object, printer: Printer | None = None) -> Description:
    """Describes `value` as text. Share one `printer` between many values: it caches their expressions."""
    name = type(value).__name__
    return Description(name, str(value)[:MAX_EXPRESSION], "control", "", "", None)


def walk_text(axis: Axis) -> str:
    """Returns the kind of an axis: "thread", or "thread, 2 ahead" if it prefetches two steps ahead."""
    return f"{axis.kind.value}, {axis.ahead} ahead" if axis.ahead else axis.kind.value


def arg_text(arg: Any) -> str:
    """Returns the argument of a node as text: an operation by name, an axis by its letter, tuples without nesting.

    Numbers are exact, so that a node can be rebuilt from the text (`explore/analysis/explanations/rebuilt_uops.py`).
    """
    if arg is None:
        return ""
    if isinstance(arg, Ops):
        return arg.name
    if isinstance(arg, Axis):
        return f"{arg.name} {walk_text(arg)}"
    if isinstance(arg, tuple):
        return f"({', '.join(arg_text(item) for item in arg)}{',' if len(arg) == 1 else ''})"
    return repr(arg) if isinstance(arg, float) else number_text(arg)


def symbolic_shape(value: LazyBuffer) -> tuple[int | str, ...]:
    """Returns the shape of a LazyBuffer, with symbolic sizes as text: `v=3`."""
    return tuple(size if isinstance(size, int) else repr(size) for size in value.shape)


def shape_text(shape: Sequence[int | str]) -> str:
    """Returns a shape as text: "2×3×4"; "scalar" for no axes."""
    return "×".join(str(size) for size in shape) or "scalar"


# *** groups: the role of a node, which gives its color ***

_GROUPS: dict[Ops, str] = {
    **{op: "alu" for op in OpGroups.ALU},
    **{op: "movement" for op in OpGroups.MOVEMENT},
    **{op: "memory" for op in (Ops.INDEX, Ops.LOAD, Ops.STORE, Ops.GATHER, Ops.SCATTER, Ops.CONTIGUOUS, Ops.COPY)},
    **{op: "memory" for op in (Ops.WRITE, Ops.PREFETCH, Ops.FETCH_ADD)},
    **{op: "buffer" for op in (Ops.BUFFER, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL)},
    **{op: "reduce" for op in (Ops.REDUCE, Ops.REDUCE_AXIS, Ops.SCAN, Ops.SCAN_AXIS, Ops.HREDUCE)},
    **{op: "reduce" for op in (Ops.DEFINE_ACC, Ops.ASSIGN, Ops.RESULT, Ops.WMMA)},
    **{op: "loop" for op in (Ops.RANGE, Ops.ENDRANGE, Ops.SPECIAL)},
    **{op: "const" for op in (Ops.CONST, Ops.DEFINE_VAR, Ops.BIND, Ops.IOTA)},
    **{op: "movement" for op in (Ops.VECTORIZE, Ops.GEP, Ops.TABLE, Ops.TILE)},
    **{op: "control" for op in (Ops.SINK, Ops.BARRIER)},
}


def group_of(op: Ops) -> str:
    """Returns the role of an operation, which gives the color of its box."""
    return _GROUPS.get(op, "control")


# *** nodes ***


@describe.register
def _(value: UOp, printer: Printer | None = None) -> Description:
    printer = printer or Printer()
    return Description(
        label=_write_uop_label(value),
        detail=_write_uop_detail(value, printer),
        group=_GROUPS.get(value.op, "control"),
        arg=arg_text(value.arg),
        dtype="" if value.dtype is dtypes.void else dtype_text(value.dtype),
        shape=None,
    )


def content_of(uop: UOp) -> tuple[str, str, str]:
    """Returns the type and the argument of a UOp's node as text; for memory also its detail, else ""."""
    dtype = "" if uop.dtype is dtypes.void else dtype_text(uop.dtype)
    return dtype, arg_text(uop.arg), memory_text(uop)


def memory_text(uop: UOp) -> str:
    """Returns the type and size of memory as text; "" for other nodes."""
    is_memory = uop.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL) and isinstance(uop.dtype, PtrDType)
    return f"{uop.dtype.base.name}[{uop.dtype.size}]" if is_memory else ""


def _write_uop_label(uop: UOp) -> str:
    match uop.op:
        case Ops.REDUCE | Ops.HREDUCE:
            return f"{uop.op.name} {uop.arg.name}"
        case Ops.DEFINE_GLOBAL:
            return f"data{uop.arg}"
        case Ops.DEFINE_ACC:
            return f"acc{uop.arg}"
        case _:
            return uop.op.name


def _write_uop_detail(uop: UOp, printer: Printer) -> str:
    """Returns the operands and the argument of a UOp as text."""
    src = uop.src
    match uop.op:
        case Ops.CONST:
            return number_text(uop.arg)
        case Ops.RANGE:
            return f"{uop.arg.name} < {printer.text(src[0])} · {walk_text(uop.arg)}"
        case Ops.ENDRANGE:
            return printer.text(src[0])
        case Ops.SPECIAL:
            return f"{uop.arg} < {printer.text(src[0])}"
        case Ops.DEFINE_VAR:
            name, low, high = uop.arg
            return f"{low} ≤ {name} ≤ {high}"
        case Ops.BIND:
            return f"{src[0].arg[0]} = {src[1].arg}"
        case Ops.DEFINE_GLOBAL | Ops.DEFINE_LOCAL:
            return memory_text(uop)
        case Ops.INDEX | Ops.LOAD:
            return printer.text(uop)
        case Ops.STORE | Ops.PREFETCH:
            return printer.text(src[0])
        case Ops.WMMA:
            return str(uop.arg)
        case Ops.GEP if len(src) == 3:
            return f"row {printer.text(src[1])}, column {printer.text(src[2])}"
        case Ops.GEP if uop.arg is None:
            return f"lane {printer.text(src[1])}"
        case Ops.GEP:
            return f"lane {uop.arg}"
        case Ops.TILE:
            return f"{src[1].size} × {src[2].size} words"
        case Ops.TABLE:
            return f"one of {len(uop.arg)} numbers"
        case Ops.SINK:
            return count_text(len(src), "store")
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
        case Ops.SCAN_AXIS:
            detail = f"running {value.arg[0].name} along {value.arg[1]} · {shape}"
        case Ops.SCATTER:
            how = f"{value.arg[0].name} into" if value.arg[0] else "writes"
            detail = f"{how} places of axis {value.arg[1]} · {shape}"
        case Ops.COPY:
            detail = f"{value.arg} → {value.device}"
        case Ops.BUFFER:
            return describe_memory(value)
        case Ops.PERMUTE | Ops.PAD | Ops.SHRINK | Ops.FLIP | Ops.WINDOW | Ops.DIAGONAL:
            detail = f"{arg_text(value.arg)} → {shape}"
        case _:
            detail = shape
    return Description(
        value.op.name, detail, group_of(value.op), arg_text(value.arg), value.dtype.name, symbolic_shape(value)
    )


def describe_memory(value: LazyBuffer) -> Description:
    """Describes a LazyBuffer as memory, ignoring the operation that computed its values."""
    detail = f"{value.dtype.name} {shape_text(value.shape)} on {value.device}"
    if isinstance(value.arg, ExternalOperation):
        detail = f"{value.arg.seconds * 1e6:,.0f} µs outside · {value.dtype.name} {shape_text(value.arg.shape)}"
        return Description(value.arg.name, detail, "control", value.arg.name, value.dtype.name, symbolic_shape(value))
    return Description("BUFFER", detail, "buffer", "", value.dtype.name, symbolic_shape(value))


# *** the linear program ***

_LOOP_WORDS = {
    AxisKind.GLOBAL: "",
    AxisKind.THREAD: "  # split among threads",
    AxisKind.WARP: "  # the lanes of a warp",
    AxisKind.LOCAL: "  # workgroup",
    AxisKind.REDUCE: "  # accumulates",
    AxisKind.GROUP: "  # accumulates across the workgroup",
    AxisKind.UNROLL: "  # written out",
    AxisKind.UPCAST: "  # written out",
    AxisKind.VECTOR: "  # lanes",
    AxisKind.SCAN: "  # in order, each from the one before",
    AxisKind.COPY: "  # fills scratch memory",
    AxisKind.TILE: "  # rows of a tile",
    AxisKind.ROW: "  # fills a row",
    AxisKind.RARE: "  # only where some lane needs it",
}


def search_text(outcome: SearchEnded) -> str:
    """Returns the result of a search as text: the kernel's new name, its time before and after, and the outcome."""
    times = f"{outcome.before_seconds * 1e6:.3g} µs → {outcome.after_seconds * 1e6:.3g} µs, "
    return f"{outcome.after.name}: {times if isfinite(outcome.after_seconds) else ''}{outcome.reason}"


def launches_text(launches: LaunchesGrouped) -> str:
    """Returns the launches of a replay as text: which kernels are launched together and which are not."""
    kernels = " and ".join(map(str, launches.sizes))
    by = "one call" if len(launches.sizes) == 1 else f"{len(launches.sizes)} calls"
    ungrouped = f"; ungrouped: {', '.join(launches.ungrouped)}" if launches.ungrouped else ""
    return f"a replay launches {kernels} kernels at once, by {by} of the driver{ungrouped}"


def uops_listing(uops: Sequence[UOp]) -> tuple[SourceLine, ...]:
    """Returns the linear program as text: one numbered line per UOp, indented by its loops.

    `%7 = MUL %5, %6 : float32` refers to operands by line; constants, ranges and buffers appear by value or name.
    """
    names: dict[UOp, str] = {}
    width = len(str(max(len(uops) - 1, 0)))
    lines = []
    depth = 0
    for position, uop in enumerate(uops):
        if uop.op is Ops.ENDRANGE:
            depth = max(depth - 1, 0)
        names[uop] = operand_name(uop, position)
        text = f"{position:>{width}}  {'  ' * depth}{_write_uop_line(uop, names)}"
        lines.append(SourceLine(text, (uop,)))
        if uop.op is Ops.RANGE:
            depth += 1
    return tuple(lines)


def operand_name(uop: UOp, position: int) -> str:
    """Returns the name of a UOp in the listing; `position` is its line."""
    match uop.op:
        case Ops.CONST:
            return number_text(uop.arg)
        case Ops.RANGE:
            return str(uop.arg.name)
        case Ops.SPECIAL:
            return str(uop.arg)
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


def _name_missing(uop: UOp) -> str:
    """Returns the name of a source that is not in the list. The verifier rejects such a program; the views show it."""
    return number_text(uop.arg) if uop.op is Ops.CONST else f"?{uop.op.name}"


def _write_uop_line(uop: UOp, names: dict[UOp, str]) -> str:
    """Returns the line of a UOp in the linear program, without its number and indent."""
    sources = [names[src] if src in names else _name_missing(src) for src in uop.src]
    kind = dtype_text(uop.dtype)
    match uop.op:
        case Ops.RANGE:
            ahead = f"  # looks {uop.arg.ahead} ahead" if uop.arg.ahead else ""
            return f"for {names[uop]} in range({sources[0]}):{_LOOP_WORDS[uop.arg.kind]}{ahead}"
        case Ops.ENDRANGE:
            return f"end {sources[0]}"
        case Ops.SPECIAL:
            return f"SPECIAL {names[uop]} < {sources[0]}"
        case Ops.CONST:
            return f"CONST {names[uop]} : {kind}"
        case Ops.DEFINE_GLOBAL | Ops.DEFINE_LOCAL if isinstance(uop.dtype, PtrDType):
            shared = " shared" if uop.dtype.space == "shared" else ""
            return f"{uop.op.name} {names[uop]} : {uop.dtype.base.name}[{uop.dtype.size}]{shared}"
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
        case Ops.TABLE:
            return f"{names[uop]} = TABLE {sources[0]} of {len(uop.arg)} : {kind}"
        case Ops.WMMA:
            return f"{names[uop]} = WMMA {', '.join(sources)} by {uop.arg} : {kind}"
        case Ops.HREDUCE:
            return f"{names[uop]} = HREDUCE {uop.arg.name} {', '.join(sources)} : {kind}"
        case _ if uop.dtype is dtypes.void:
            return f"{uop.op.name} {', '.join(sources)}".rstrip()
        case _:
            return f"{names[uop]} = {uop.op.name} {', '.join(sources)} : {kind}"


__all__ = [
    "Description",
    "Printer",
    "arg_text",
    "describe",
    "describe_memory",
    "dtype_text",
    "expr_text",
    "group_of",
    "number_text",
    "operand_name",
    "shape_text",
    "uops_listing",
    "walk_text",
]
