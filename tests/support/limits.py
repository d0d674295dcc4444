"""The features that a device lacks, as data: each raises an error that names it, and all others must work.

Tests on every device read these tables: an error that they do not list is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer import RenderError
from tinyexplore.uop import Ops

# dtypes that a device does not compute with
TYPES = {
    "WEBGPU": (
        *(dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.uint64),
        *(dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16),
    )
}
# operations that it does not have of a dtype that it has
OPERATIONS = {("WASM", dtypes.float64): (Ops.SIN, Ops.COS, Ops.ERF, Ops.POW)}
# the error that says so
WORDS = {
    "WASM": r"(SIN|COS|ERF|POW) of dtypes.float64: WebAssembly has no such operation, .* cast to float32",
    "WEBGPU": rf"({'|'.join(one.name for one in TYPES['WEBGPU'])}): .*; cast to another type, or choose another device",
}
UNIT = 2.0**-23
# How far from the truth a function may be, by the section "Floating Point Accuracy" of the WGSL specification: x, y and
# the true result are given. Subnormal numbers may be 0 there.
WGSL_ERRORS: dict[Ops, Callable[[float, float, float], float]] = {
    Ops.EXP: lambda x, y, true: (3 + 2 * abs(x)) * UNIT * true,
    Ops.EXP2: lambda x, y, true: (3 + 2 * abs(x)) * UNIT * true,
    Ops.LOG: lambda x, y, true: 2.0**-21 if 0.5 <= x <= 2 else 3 * UNIT * abs(true),
    Ops.LOG2: lambda x, y, true: 2.0**-21 if 0.5 <= x <= 2 else 3 * UNIT * abs(true),
    Ops.SIN: lambda x, y, true: 2.0**-11 if abs(x) <= 3.1415926 else 2.0,
    Ops.COS: lambda x, y, true: 2.0**-11 if abs(x) <= 3.1415926 else 2.0,
    Ops.TANH: lambda x, y, true: max(1e-5, 16 * UNIT * abs(true)),
    Ops.POW: lambda x, y, true: (8 + 8 * abs(y) * 8) * UNIT * abs(true),  # that of exp2(y * log2(x))
    Ops.FDIV: lambda x, y, true: 2.5 * UNIT * abs(true),
    Ops.SQRT: lambda x, y, true: 2.5 * UNIT * abs(true),
}


def has(device: str, dtype: DType) -> bool:
    """Whether the device computes with `dtype`."""
    return dtype not in TYPES.get(device, ())


def has_operation(device: str, dtype: DType, op: Ops) -> bool:
    return op not in OPERATIONS.get((device, dtype), ())


def is_declared(device: str, error: object) -> bool:
    """Whether an error (or the text "RenderError: …") names a missing feature that these tables list."""
    if isinstance(error, BaseException) and not isinstance(error, RenderError):
        return False
    words = str(error).removeprefix("RenderError: ")
    return device in WORDS and re.match(WORDS[device], words) is not None


__all__ = ["OPERATIONS", "TYPES", "WGSL_ERRORS", "WORDS", "has", "has_operation", "is_declared"]
