"""Formats times, ratios and names."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from math import floor, log10

LANGUAGE_NAMES = {
    "uops": "UOps",
    "c": "C",
    "llvm": "LLVM IR",
    "aten": "ATen",
    "llvm-opt": "LLVM optimized",
    "asm": "Assembly",
    "python": "Python program",
    "ptx": "PTX",
    "amdgcn": "AMDGCN assembly",
    "cuda": "CUDA",
    "opencl": "OpenCL",
    "hip": "HIP",
    "metal": "Metal",
    "wgsl": "WGSL",
    "wat": "WebAssembly",
}


_OPERATORS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"},
    **{"neg": "-", "invert": "~", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "abs": "abs"},
    **{"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "getitem": "[]", "setitem": "[]="},
}


_MAX_DECIMAL_PLACES = 6  # decimal places


def duration_text(time_us: float) -> str:
    """Returns a time with three significant figures and a suitable unit: "0.41 µs", "12.3 ms", "2.10 s"."""
    if time_us < 999.5:  # a value that would round to 1000 gets the next unit
        return f"{figures_text(time_us)} µs"
    return f"{figures_text(time_us / 1e3)} ms" if time_us < 999.5e3 else f"{figures_text(time_us / 1e6)} s"


def ratio_text(median_us: float | None, base_median_us: float | None, verdict: str, base: str = "as captured") -> str:
    """Compares two times that were sampled alternately: "1.39× faster than as captured"; "" if one is missing.

    If the spread explains the ratio, the text has no ratio. `ratioText` in
    widgets/src/tuner/time_comparison.ts does the same.
    """
    if not median_us or not base_median_us:
        return ""
    if verdict == "noise":
        return f"no difference from {base} beyond the spread"
    if verdict == "unknown":
        return f"too few samples to compare with {base}"
    ratio = base_median_us / median_us
    if verdict == "faster":
        return f"{figures_text(ratio)}× faster than {base}"
    return f"{figures_text(1 / ratio)}× slower than {base}"


def spread_text(median_us: float | None, low_us: float | None, high_us: float | None) -> str:
    """Returns the median and the quartiles as text: "12.1 µs (11.9 to 12.4 µs)"; "" if one is None."""
    if median_us is None or low_us is None or high_us is None:
        return ""
    low, high = duration_text(low_us), duration_text(high_us)
    number, unit = low.split()
    return f"{duration_text(median_us)} ({number if high.endswith(f' {unit}') else low} to {high})"


def call_text(name: str) -> str:
    """Returns a call as written in Python: "@" for "__matmul__", "softmax" for itself."""
    special = re.fullmatch(r"__([ri]?)(\w+?)__", name)
    if special is None:
        return name
    reflected, word = special.groups()
    return _OPERATORS.get(word) or _OPERATORS.get(f"{reflected}{word}") or name


def figures_text(value: float) -> str:
    """Returns a number with three significant figures: "0.41", "10.0" (for 9.996), "100" (for 99.96), "1,234".

    Below a tenth it has two figures: "0.0041". Halves are rounded up.
    """
    if value == 0:
        return "0"
    if abs(value) < 0.095:
        return str(_round_half_even(value, min(_MAX_DECIMAL_PLACES, 1 - floor(log10(abs(value))))))
    for decimals in (2, 1):
        rounded = _round_half_even(value, decimals)
        if abs(rounded) < 10 ** (3 - decimals):
            return str(rounded)
    return f"{_round_half_even(value, 0):,}"


def _round_half_even(value: float, decimals: int) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


__all__ = [
    "LANGUAGE_NAMES",
    "call_text",
    "duration_text",
    "figures_text",
    "ratio_text",
    "spread_text",
]
