"""Movements of a ShapeTracker as data: the effect of each as text and as a formula, and whether it fits a shape."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.explore.recording.expression import Printer
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.schedule.indexing import reshape_index
from tinyexplore.shape import ShapeTracker
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

Shape = tuple[int, ...]

LAWS = {
    "RESHAPE": "the same elements in the same row-major order, under a new shape",
    "PERMUTE": "the axes in another order; memory stays, strides change places",
    "EXPAND": "an axis of size 1 repeated: its stride is 0, every step reads the same element",
    "PAD": "zeros around: a mask marks the valid elements; no memory is read outside of it",
    "SHRINK": "a part of each axis: the offset moves on, the shape gets smaller",
    "FLIP": "axes walked backwards: the stride changes its sign, the offset moves to the last element",
    "STRIDE": "every k-th element of an axis, backwards where k is negative",
    "WINDOW": "sliding windows along an axis: two axes visit the same elements, so elements are read several times",
    "DIAGONAL": "one axis walks two of equal size at once: its stride is the sum of theirs",
}
"""The effect of each movement, as text."""

HINTS = {
    "RESHAPE": "the new shape: 6, 4 (one size may be -1)",
    "PERMUTE": "the axes in their new order: 1, 0",
    "EXPAND": "the new shape: axes of size 1 may grow",
    "PAD": "before and after of each axis: (1, 1), (0, 2)",
    "SHRINK": "start and stop of each axis: (0, 2), (1, 3)",
    "FLIP": "the axes to reverse: 0",
    "STRIDE": "a step for each axis, negative for backwards: 2, -1",
    "WINDOW": "axis, size, stride, dilation: 0, 3, 1, 1",
    "DIAGONAL": "two axes of equal size: 0, 1",
}
"""The argument of each movement."""


@dataclass(frozen=True, slots=True, repr=False)
class MovementStep(DisplayableRow):
    """One movement.

    op: the operation; for the first step "BUFFER" or "VIEW".
    arg: its argument.
    tracker: the view after it.
    formula: the source element of each element.
    node: its LazyBuffer in the trace, None for none.
    """

    op: str
    arg: Any
    tracker: ShapeTracker
    formula: str = ""
    node: int | None = None

    @property
    def law(self) -> str:
        """The effect of the movement, as text; "" if the operation is not a movement."""
        return LAWS.get(self.op, "")


def apply_movement(source: ShapeTracker, op: str, arg: Any, node: int | None = None) -> MovementStep:
    """Returns `source` after one movement.

    Raises:
        ShapeError: the movement does not fit the shape.
    """
    name = op.upper()
    if name not in LAWS:
        raise ShapeError(f"no movement {op!r}; supported: {', '.join(LAWS).lower()}")
    arg = _CHECKS[name](source.shape, arg)
    if name == "STRIDE":
        return MovementStep(name, arg, _apply_stride(source, arg), formula(name, arg, source.shape, ()), node)
    method = getattr(source, name.lower())
    tracker = method(*arg) if name in ("WINDOW", "DIAGONAL") else method(arg)
    return MovementStep(name, arg, tracker, formula(name, arg, source.shape, tracker.shape), node)


def read_argument(op: str, text: str) -> Any:
    """Parses the argument of a movement: "6, 4", "(1, 1), (0, 2)"."""
    arguments = text.strip().rstrip(",")
    try:
        items: list[Any] = list(literal_eval(f"({arguments},)")) if arguments else []
    except (ValueError, SyntaxError):
        raise ShapeError(f"{op.lower()} {text!r}: give {HINTS.get(op.upper(), 'numbers')}") from None
    is_one = len(items) == 1 and isinstance(items[0], tuple)
    nested = op.upper() in ("PAD", "SHRINK")
    return items[0] if is_one and (not nested or any(isinstance(item, tuple) for item in items[0])) else tuple(items)


_FIRST_ARGUMENTS: dict[str, Callable[[Shape, int], Any]] = {  # arguments: a shape and its largest axis
    "RESHAPE": lambda shape, axis: shape[::-1] if shape != shape[::-1] else (prod(shape),),
    "PERMUTE": lambda shape, axis: tuple(reversed(range(len(shape)))) if len(shape) > 1 else None,
    "EXPAND": lambda shape, axis: tuple(4 if size == 1 else size for size in shape) if 1 in shape else None,
    "PAD": lambda shape, axis: tuple((int(at == axis),) * 2 for at in range(len(shape))),
    "SHRINK": lambda shape, axis: tuple((int(at == axis and size > 1), size) for at, size in enumerate(shape)),
    "FLIP": lambda shape, axis: (axis,) if shape else None,
    "STRIDE": lambda shape, axis: tuple(2 if at == axis else 1 for at in range(len(shape))),
    "WINDOW": lambda shape, axis: (axis, min(3, shape[axis]), 1, 1) if shape and shape[axis] else None,
}


def suggestion(op: str, shape: Shape) -> str:
    """Returns an argument of `op` that fits `shape`, as a first suggestion; "" if there is none."""
    largest = max(range(len(shape)), key=lambda axis: shape[axis], default=0)
    if op in _FIRST_ARGUMENTS:
        argument = _FIRST_ARGUMENTS[op](shape, largest)
    else:
        argument = next(((a, b) for b in range(len(shape)) for a in range(b) if shape[a] == shape[b]), None)
    return "" if argument is None else _join_values(argument)


def _join_values(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))


# *** formulas ***


def axes_of(shape: Shape) -> tuple[UOp, ...]:
    """Returns a loop counter for each axis. `printer_of` names the counters i0, i1, …"""
    return tuple(
        [
            UOp(Ops.RANGE, dtypes.index, (index_const(max(size, 1)),), Axis(axis, AxisKind.GLOBAL))
            for axis, size in enumerate(shape)
        ]
    )


def printer_of(axes: Sequence[UOp]) -> Printer:
    """Returns a printer of expressions, in which the counters are named i0, i1, …"""
    printer = Printer(limit=4000)
    for number, axis in enumerate(axes):
        printer.name(axis, f"i{number}")
    return printer


def formula(op: str, arg: Any, source: Shape, shape: Shape) -> str:
    """Returns the movement as a formula of indices: "y[i0, i1] = x[i1, i0]"."""
    result = shape if op != "STRIDE" else source
    names = [f"i{axis}" for axis in range(len(result))]
    condition = ""
    match op:
        case "RESHAPE":
            axes = axes_of(shape)
            printer = printer_of(axes)
            inner = [printer.text(part) for part in reshape_index(source, shape, axes)]
        case "PERMUTE":
            inner = [names[arg.index(axis)] for axis in range(len(arg))]
        case "EXPAND":
            inner = ["0" if size == 1 else name for size, name in zip(source, names)]
        case "PAD":
            inner = [_write_sum(name, -before) for name, (before, _) in zip(names, arg)]
            inside = [
                _write_bounds(name, before, before + size, before + size + after)
                for name, (before, after), size in zip(names, arg, source)
            ]
            condition_text = " and ".join(part for part in inside if part)
            condition = f" where {condition_text}, else 0" if condition_text else ""
        case "SHRINK":
            inner = [_write_sum(name, start) for name, (start, _) in zip(names, arg)]
        case "FLIP":
            inner = [f"{source[axis] - 1} - {name}" if axis in arg else name for axis, name in enumerate(names)]
        case "STRIDE":
            inner = [_write_scaled_index(name, step, size) for name, step, size in zip(names, arg, source)]
        case "WINDOW":
            axis, _, stride, dilation = arg
            index_text = f"{_write_product(names[axis], stride)} + {_write_product(names[-1], dilation)}"
            inner = [*names[:axis], index_text, *names[axis + 1 : -1]]
        case _:
            first, second = arg
            inner = [*names[:second], names[first], *names[second:]]
    return f"y[{', '.join(names)}] = x[{', '.join(inner)}]{condition}"


def _write_sum(name: str, by: int) -> str:
    return name if by == 0 else f"{name} {'+' if by > 0 else '-'} {abs(by)}"


def _write_product(name: str, by: int) -> str:
    return name if by == 1 else f"{name}*{by}"


def _write_scaled_index(name: str, step: int, size: int) -> str:
    return _write_product(name, step) if step > 0 else f"{size - 1} - {_write_product(name, -step)}"


def _write_bounds(name: str, start: int, stop: int, size: int) -> str:
    if start > 0 and stop < size:
        return f"{start} <= {name} < {stop}"
    return f"{start} <= {name}" if start > 0 else f"{name} < {stop}" if stop < size else ""


# *** valid arguments ***


def _check_ints(op: str, shape: Shape, arg: Any, count: int | None = None) -> Shape:
    values = (arg,) if isinstance(arg, int) else tuple(arg)
    if any(not isinstance(value, int) or isinstance(value, bool) for value in values) or (
        count is not None and len(values) != count
    ):
        raise ShapeError(f"{op} {shape} by {arg!r}: give {HINTS[op.upper()]}")
    return values


def _check_pairs(op: str, shape: Shape, arg: Any) -> tuple[tuple[int, int], ...]:
    pairs = tuple(arg)
    if len(pairs) == 2 and len(shape) == 1 and all(isinstance(item, int) for item in pairs):
        pairs = (pairs,)
    valid_pairs = [pair for pair in pairs if isinstance(pair, tuple | list) and len(pair) == 2]
    if len(valid_pairs) != len(shape) or len(pairs) != len(shape):
        raise ShapeError(f"{op} {shape} by {arg!r}: one pair for each of {len(shape)} axes")
    return tuple([_check_pair(op, shape, pair) for pair in pairs])


def _check_pair(op: str, shape: Shape, pair: Any) -> tuple[int, int]:
    first, second = _check_ints(op, shape, pair, 2)
    return first, second


def _check_reshape(shape: Shape, arg: Any) -> Shape:
    sizes = _check_ints("reshape", shape, arg)
    size = prod(shape)
    product = prod(value for value in sizes if value != -1)
    if sizes.count(-1) == 1 and product > 0 and size % product == 0:
        sizes = tuple([size // product if value == -1 else value for value in sizes])
    if min(sizes, default=0) < 0 or prod(sizes) != size:
        raise ShapeError(f"reshape {shape} to {sizes}: {size} elements, not {prod(sizes)}")
    return sizes


def _check_permute(shape: Shape, arg: Any) -> Shape:
    order = _check_ints("permute", shape, arg)
    if sorted(order) != list(range(len(shape))):
        raise ShapeError(f"permute {shape} by {order}: need each of the axes 0 … {len(shape) - 1} once")
    return order


def _check_expand(shape: Shape, arg: Any) -> Shape:
    sizes = _check_ints("expand", shape, arg, len(shape))
    if any(size not in (1, new) or new < 0 for size, new in zip(shape, sizes)):
        raise ShapeError(f"expand {shape} to {sizes}: only axes of size 1 can grow")
    return sizes


def _check_pad(shape: Shape, arg: Any) -> tuple[tuple[int, int], ...]:
    amounts = _check_pairs("pad", shape, arg)
    if any(part < 0 for pair in amounts for part in pair):
        raise ShapeError(f"pad {shape} by {amounts}: no amount may be negative")
    return amounts


def _check_shrink(shape: Shape, arg: Any) -> tuple[tuple[int, int], ...]:
    bounds = _check_pairs("shrink", shape, arg)
    if any(not 0 <= start <= stop <= size for (start, stop), size in zip(bounds, shape)):
        raise ShapeError(f"shrink {shape} to {bounds}: need 0 ≤ start ≤ stop ≤ size for every axis")
    return bounds


def _check_flip(shape: Shape, arg: Any) -> Shape:
    axes = tuple(sorted(set(_check_ints("flip", shape, arg))))
    if any(not 0 <= axis < len(shape) for axis in axes):
        raise ShapeError(f"flip axes {axes} of {shape}: the axes are 0 … {len(shape) - 1}")
    return axes


def _check_stride(shape: Shape, arg: Any) -> Shape:
    steps = _check_ints("stride", shape, arg, len(shape))
    if 0 in steps:
        raise ShapeError(f"stride {shape} by {steps}: a step of 0 does not move")
    return steps


def _check_window(shape: Shape, arg: Any) -> tuple[int, int, int, int]:
    values = _check_ints("window", shape, arg)
    if not 2 <= len(values) <= 4:
        raise ShapeError(f"window {shape} by {values}: give {HINTS['WINDOW']}")
    axis, size, stride, dilation = (*values, *(1, 1)[len(values) - 2 :])
    reach = dilation * (size - 1) + 1
    if not 0 <= axis < len(shape) or min(size, stride, dilation) < 1 or reach > shape[axis]:
        raise ShapeError(f"window {shape} by {values}: need an axis of at least {reach}")
    return axis, size, stride, dilation


def _check_diagonal(shape: Shape, arg: Any) -> tuple[int, int]:
    first, second = _check_pair("diagonal", shape, arg)
    if not 0 <= first < second < len(shape) or shape[first] != shape[second]:
        raise ShapeError(f"diagonal {shape} of axes {first}, {second}: need two axes of equal size, in order")
    return first, second


_CHECKS: dict[str, Callable[[Shape, Any], Any]] = {
    "RESHAPE": _check_reshape,
    "PERMUTE": _check_permute,
    "EXPAND": _check_expand,
    "PAD": _check_pad,
    "SHRINK": _check_shrink,
    "FLIP": _check_flip,
    "STRIDE": _check_stride,
    "WINDOW": _check_window,
    "DIAGONAL": _check_diagonal,
}


def _apply_stride(source: ShapeTracker, steps: Shape) -> ShapeTracker:
    """Returns every k-th element, like `tensor[::k]`: flip, pad to whole groups of k, keep the first of each."""
    tracker = source.flip([axis for axis, step in enumerate(steps) if step < 0])
    counts = [-(-size // abs(step)) for size, step in zip(source.shape, steps)]
    groups = [(count, abs(step)) for count, step in zip(counts, steps)]
    tracker = tracker.pad([(0, count * step - size) for (count, step), size in zip(groups, source.shape)])
    tracker = tracker.reshape(tuple(size for group in groups for size in group))
    tracker = tracker.shrink([bounds for count, _ in groups for bounds in ((0, count), (0, 1))])
    return tracker.reshape(tuple(counts)).simplify()


__all__ = [
    "HINTS",
    "LAWS",
    "MovementStep",
    "apply_movement",
    "axes_of",
    "formula",
    "printer_of",
    "read_argument",
    "suggestion",
]
