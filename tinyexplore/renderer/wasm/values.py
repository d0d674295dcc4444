"""Values of the linear program in WebAssembly: scalars, and vector registers of 16 bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.program import RenderError
from tinyexplore.uop.semantics import bfloat16_bits, float16, float32, to_bits

REGISTER_BYTES = 16
BITS_ONLY = (dtypes.float16, dtypes.bfloat16)
MIN_I32, MAX_I32 = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class WasmValue:
    """The text of a scalar, or of the registers that hold a vector's lanes.

    A vector of bools is a mask: -1 or 0 in each lane, as wide as the compared lanes. Lanes beyond the last have
    unspecified values.

    parts: one expression for each register.
    lane: bytes of a lane.
    """

    parts: tuple[str, ...]
    lane: int = 0

    @property
    def text(self) -> str:
        assert len(self.parts) == 1, self.parts
        return self.parts[0]


def scalar_type(dtype: DType) -> str:
    """Returns the wasm type that holds a scalar: an i32 for small integers, bools and the bits of 16-bit floats."""
    if dtype is dtypes.float32:
        return "f32"
    if dtype is dtypes.float64:
        return "f64"
    return "i64" if dtype.itemsize == 8 else "i32"


def lane_bytes(dtype: DType) -> int:
    """Returns the bytes of a lane of a vector of `dtype` that is not a mask."""
    return dtype.scalar.itemsize


def registers(count: int, lane: int) -> int:
    """Returns the number of registers that hold `count` lanes of `lane` bytes."""
    return -(-count * lane // REGISTER_BYTES)


def int_shape(lane: int) -> str:
    """Returns the name of a register of integers in instructions: i32x4."""
    return f"i{8 * lane}x{REGISTER_BYTES // lane}"


def shape(dtype: DType) -> str:
    """Returns the name of a register of `dtype` in instructions: f32x4, i8x16."""
    if dtype.scalar is dtypes.float32:
        return "f32x4"
    return "f64x2" if dtype.scalar is dtypes.float64 else int_shape(lane_bytes(dtype))


def sign(dtype: DType) -> str:
    """Returns the last letter of instructions that distinguish signed from unsigned integers."""
    return "u" if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype) or dtype.scalar in BITS_ONLY else "s"


def literal(value: Any, dtype: DType) -> str:
    """Returns a number in the text format."""
    dtype = dtype.scalar
    if dtypes.is_bool(dtype):
        return "1" if value else "0"
    if dtype is dtypes.bfloat16:
        return f"{bfloat16_bits(value):#x}"
    if dtype is dtypes.float16:
        return f"{to_bits(float16(value), dtype):#x}"
    if not dtypes.is_float(dtype):
        return str(int(value))
    value = float32(value) if dtype is dtypes.float32 else float(value)
    if math.isnan(value) or math.isinf(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if dtype is dtypes.float64:
        return _shorten_number(repr(value))
    return _shorten_number(
        next(text for digits in range(1, 18) if float32(float(text := f"{value:.{digits}g}")) == value)
    )


def _shorten_number(text: str) -> str:
    return text.removesuffix(".0").replace("e+", "e")


def constant(value: Any, dtype: DType, lane: int = 0) -> WasmValue:
    """Returns a constant in every lane. `lane`: the bytes of a lane of a mask."""
    if dtype.count == 1:
        return WasmValue((f"({scalar_type(dtype)}.const {literal(value, dtype)})",))
    if dtypes.is_bool(dtype):
        lane = lane or 1
        text = lanes_text(int_shape(lane), ["-1" if value else "0"] * (REGISTER_BYTES // lane))
    else:
        lane = lane_bytes(dtype)
        text = lanes_text(shape(dtype), [literal(value, dtype)] * (REGISTER_BYTES // lane))
    return WasmValue((text,) * registers(dtype.count, lane), lane)


def lanes_text(lane_shape: str, numbers: list[str]) -> str:
    return f"(v128.const {lane_shape} {' '.join(numbers)})"


def shuffle_bytes(low_register: str, high_register: str, byte_numbers: list[int]) -> str:
    """Selects bytes of two registers, by their numbers. The second register's bytes start at 16."""
    return f"(i8x16.shuffle {' '.join(map(str, byte_numbers))} {low_register} {high_register})"


def low_halves(first: str, second: str, half_bytes: int = 8) -> str:
    """Returns the first `half_bytes` bytes of one register, then those of another."""
    byte_numbers = [*range(half_bytes), *range(REGISTER_BYTES, REGISTER_BYTES + half_bytes)]
    return shuffle_bytes(first, second, (byte_numbers * (REGISTER_BYTES // len(byte_numbers)))[:REGISTER_BYTES])


def unsupported_error(operation: str) -> RenderError:
    """Returns the error for an operation that this renderer does not support."""
    return RenderError(
        f"{operation}: WebAssembly has no such operation, and it is not written out in arithmetic; cast to float32, "
        "where all are, or compute this on another device, x.to('LLVM')"
    )
