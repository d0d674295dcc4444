"""Compares the results of an edited kernel with the expected results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tinyexplore.compile.search_worker import TOLERANCE
from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.tracefile.model import Difference
from tinyexplore.renderer.python import memory_format
from tinyexplore.runtime.python import cast_view


@dataclass(frozen=True)
class _ElementDifference:
    """The difference of two elements of a buffer.

    error: the absolute difference; not finite if one element is not finite.
    magnitude: the largest finite expected element.
    tolerance: the tolerance for rounding, relative to the elements.
    """

    error: float = 0.0
    magnitude: float = 0.0
    tolerance: float = 0.0

    def larger_of(self, other: _ElementDifference) -> _ElementDifference:
        """Returns the larger of two differences, relative to the largest element."""
        return max(self, other, key=_ElementDifference.relative)

    def relative(self) -> float:
        if not math.isfinite(self.error):
            return math.inf
        return self.error / self.magnitude if self.magnitude else self.error and math.inf

    def fields(self) -> dict[str, Any]:
        """Returns the fields of `EditReport` by name."""
        error = self.error if math.isfinite(self.error) else None
        return {"largest_error": error, "magnitude": self.magnitude, "tolerance": self.tolerance}


def compare_outputs(
    names: Sequence[tuple[str, DType]], outputs: Mapping[int, bytes], right: Mapping[int, bytes]
) -> dict[str, Any]:
    """Returns the fields of `EditReport` that compare `outputs` with the correct contents `right`.

    Both map a buffer's position to its bytes. `largest_error` is the largest error relative to the largest value of its
    buffer.

    Two NaNs are equal. Floats may differ by the rounding of another summation order.
    """
    try:
        import numpy
    except ImportError:
        return compare_without_numpy(names, outputs, right)
    count = differing = 0
    worst, same = _ElementDifference(), True
    first: Difference | None = None
    for position, expected in sorted(right.items()):
        name, dtype = names[position]
        actual, other = elements_as_array(outputs[position], dtype), elements_as_array(expected, dtype)
        count += actual.size
        if outputs[position] == expected or actual.size == 0:
            continue
        with numpy.errstate(all="ignore"):
            both_nan = numpy.isnan(actual) & numpy.isnan(other) if actual.dtype.kind == "f" else False
            unequal = (actual != other) & ~both_nan
            if not unequal.any():
                continue
            same = False
            error = numpy.abs(actual.astype("float64") - other.astype("float64"))
            error[~unequal] = 0.0
            finite = numpy.abs(other[numpy.isfinite(other)].astype("float64"))
            scale = float(finite.max()) if finite.size else 0.0
            error_here = math.nan if numpy.isnan(error).any() else float(error.max())
            worst = worst.larger_of(_ElementDifference(error_here, scale, TOLERANCE.get(dtype, 0.0)))
            is_outside = unequal & ~_is_close(actual, other, dtype)
        indices = numpy.flatnonzero(is_outside)
        differing += int(indices.size)
        if indices.size and first is None:
            index = int(indices[0])
            first = Difference(name, index, _text(actual[index]), _text(other[index]))
    verdict = "differs" if differing else "same bits" if same else "within rounding"
    return {
        "verdict": verdict,
        "compared": count,
        "differing": differing,
        **worst.fields(),
        "first": None if first is None else asdict(first),
    }


def compare_without_numpy(
    names: Sequence[tuple[str, DType]], outputs: Mapping[int, bytes], right: Mapping[int, bytes]
) -> dict[str, Any]:
    """Compares without NumPy, which pages lack."""
    count = differing = 0
    worst, same = _ElementDifference(), True
    first: Difference | None = None
    for position, expected in sorted(right.items()):
        name, dtype = names[position]
        actual, other = _read_elements(outputs[position], dtype), _read_elements(expected, dtype)
        count += len(actual)
        scale = max((abs(value) for value in other if math.isfinite(value)), default=1.0)
        near = TOLERANCE.get(dtype, 0.0)
        magnitude = max((abs(value) for value in other if math.isfinite(value)), default=0.0)
        for index, (a, b) in enumerate(zip(actual, other)):
            if a == b or (a != a and b != b):
                continue
            same = False
            error = abs(a - b)
            worst = worst.larger_of(_ElementDifference(error, magnitude, near))
            if not error <= near * (1e-2 * scale + abs(b)):
                differing += 1
                first = first or Difference(name, index, _element_text(a), _element_text(b))
    return {
        "verdict": "differs" if differing else "same bits" if same else "within rounding",
        "compared": count,
        "differing": differing,
        **worst.fields(),
        "first": None if first is None else asdict(first),
    }


def _read_elements(content: bytes, dtype: DType) -> Sequence[Any]:
    elements: list[Any] = cast_view(memoryview(bytearray(content)), memory_format(dtype)).tolist()
    return elements


def _element_text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _is_close(actual: Any, other: Any, dtype: DType) -> Any:
    import numpy

    if dtype in dtypes.fp8s:
        return abs(actual - other) <= 1  # neighboring values
    if dtype not in TOLERANCE:
        return numpy.zeros(actual.shape, bool)
    finite = numpy.abs(other[numpy.isfinite(other)].astype("float64"))
    scale = float(finite.max()) if finite.size else 1.0
    return numpy.isclose(actual, other, TOLERANCE[dtype], TOLERANCE[dtype] * scale * 1e-2, equal_nan=True)


def elements_as_array(content: bytes, dtype: DType) -> Any:
    """Returns the elements of a buffer as a NumPy array. NumPy lacks the fp8 types; their elements are bytes."""
    import numpy

    if dtype is dtypes.bfloat16:
        return (numpy.frombuffer(content, "uint16").astype("uint32") << 16).view("float32")
    if dtype in dtypes.fp8s:
        return numpy.frombuffer(content, "uint8").astype("int16")
    return numpy.frombuffer(content, dtype.name)


def _text(value: Any) -> str:
    return f"{value:.9g}" if getattr(value, "dtype", None) is not None and value.dtype.kind == "f" else str(value)


__all__ = ["compare_outputs", "compare_without_numpy", "elements_as_array"]
