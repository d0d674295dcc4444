"""Compare the results of an edited kernel with the expected results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tinyexplore.compile.candidate import TOLERANCE
from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.tracefile.model import Difference
from tinyexplore.renderer.python import memory_format
from tinyexplore.runtime.python import cast_view


@dataclass(frozen=True)
class _Apart:
    """The difference of two elements of a buffer.

    error: the absolute difference; not finite if one element is not finite.
    magnitude: the largest finite expected element.
    tolerance: the tolerance for rounding, relative to the elements.
    """

    error: float = 0.0
    magnitude: float = 0.0
    tolerance: float = 0.0

    def beside(self, other: _Apart) -> _Apart:
        """Return the larger of two differences, relative to the largest element."""
        return max(self, other, key=_Apart.relative)

    def relative(self) -> float:
        if not math.isfinite(self.error):
            return math.inf
        return self.error / self.magnitude if self.magnitude else self.error and math.inf

    def fields(self) -> dict[str, Any]:
        """Return the fields of `Edited` by name."""
        error = self.error if math.isfinite(self.error) else None
        return {"largest_error": error, "magnitude": self.magnitude, "tolerance": self.tolerance}


def compared(
    names: Sequence[tuple[str, DType]], outputs: Mapping[int, bytes], right: Mapping[int, bytes]
) -> dict[str, Any]:
    """Return the fields of `Edited` that compare `outputs` with the correct contents `right`.

    Both map a buffer's position to its bytes. `largest_error` is the largest error relative to the largest value of its
    buffer.

    Two NaNs are equal. Floats may differ by the rounding of another summation order.
    """
    try:
        import numpy
    except ImportError:
        return compared_one_by_one(names, outputs, right)
    count = differing = 0
    worst, same = _Apart(), True
    first: Difference | None = None
    for position, expected in sorted(right.items()):
        name, dtype = names[position]
        mine, other = numbers(outputs[position], dtype), numbers(expected, dtype)
        count += mine.size
        if outputs[position] == expected or mine.size == 0:
            continue
        with numpy.errstate(all="ignore"):
            both_nan = numpy.isnan(mine) & numpy.isnan(other) if mine.dtype.kind == "f" else False
            unequal = (mine != other) & ~both_nan
            if not unequal.any():
                continue
            same = False
            error = numpy.abs(mine.astype("float64") - other.astype("float64"))
            error[~unequal] = 0.0
            finite = numpy.abs(other[numpy.isfinite(other)].astype("float64"))
            scale = float(finite.max()) if finite.size else 0.0
            error_here = math.nan if numpy.isnan(error).any() else float(error.max())
            worst = worst.beside(_Apart(error_here, scale, TOLERANCE.get(dtype, 0.0)))
            off = unequal & ~_close(mine, other, dtype)
        indices = numpy.flatnonzero(off)
        differing += int(indices.size)
        if indices.size and first is None:
            index = int(indices[0])
            first = Difference(name, index, _text(mine[index]), _text(other[index]))
    verdict = "differs" if differing else "same bits" if same else "within rounding"
    return {
        "verdict": verdict,
        "compared": count,
        "differing": differing,
        **worst.fields(),
        "first": None if first is None else asdict(first),
    }


def compared_one_by_one(
    names: Sequence[tuple[str, DType]], outputs: Mapping[int, bytes], right: Mapping[int, bytes]
) -> dict[str, Any]:
    """Compare without NumPy, which pages lack."""
    count = differing = 0
    worst, same = _Apart(), True
    first: Difference | None = None
    for position, expected in sorted(right.items()):
        name, dtype = names[position]
        mine, other = _elements(outputs[position], dtype), _elements(expected, dtype)
        count += len(mine)
        scale = max((abs(value) for value in other if math.isfinite(value)), default=1.0)
        near = TOLERANCE.get(dtype, 0.0)
        magnitude = max((abs(value) for value in other if math.isfinite(value)), default=0.0)
        for index, (a, b) in enumerate(zip(mine, other)):
            if a == b or (a != a and b != b):
                continue
            same = False
            error = abs(a - b)
            worst = worst.beside(_Apart(error, magnitude, near))
            if not error <= near * (1e-2 * scale + abs(b)):
                differing += 1
                first = first or Difference(name, index, _said(a), _said(b))
    return {
        "verdict": "differs" if differing else "same bits" if same else "within rounding",
        "compared": count,
        "differing": differing,
        **worst.fields(),
        "first": None if first is None else asdict(first),
    }


def _elements(content: bytes, dtype: DType) -> Sequence[Any]:
    elements: list[Any] = cast_view(memoryview(bytearray(content)), memory_format(dtype)).tolist()
    return elements


def _said(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _close(mine: Any, other: Any, dtype: DType) -> Any:
    import numpy

    if dtype in dtypes.fp8s:
        return abs(mine - other) <= 1  # neighboring values
    if dtype not in TOLERANCE:
        return numpy.zeros(mine.shape, bool)
    finite = numpy.abs(other[numpy.isfinite(other)].astype("float64"))
    scale = float(finite.max()) if finite.size else 1.0
    return numpy.isclose(mine, other, TOLERANCE[dtype], TOLERANCE[dtype] * scale * 1e-2, equal_nan=True)


def numbers(content: bytes, dtype: DType) -> Any:
    """Return the elements of a buffer as a NumPy array. NumPy lacks the fp8 types; their elements are bytes."""
    import numpy

    if dtype is dtypes.bfloat16:
        return (numpy.frombuffer(content, "uint16").astype("uint32") << 16).view("float32")
    if dtype in dtypes.fp8s:
        return numpy.frombuffer(content, "uint8").astype("int16")
    return numpy.frombuffer(content, dtype.name)


def _text(value: Any) -> str:
    return f"{value:.9g}" if getattr(value, "dtype", None) is not None and value.dtype.kind == "f" else str(value)


__all__ = ["compared", "compared_one_by_one", "numbers"]
