"""Conversions between the dtypes of the linear program, and between lanes and registers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.program import RenderError, check_bitcast
from tinyexplore.renderer.wasm.values import (
    BITS_ONLY,
    REGISTER_BYTES,
    WasmValue,
    constant,
    int_shape,
    lane_bytes,
    lanes_text,
    low_halves,
    registers,
    scalar_type,
    shape,
    shuffle_bytes,
    sign,
)
from tinyexplore.uop import Ops, UOp


class CastWriter(ABC):
    """Conversions and access to operands.

    A writer supplies the values of nodes, keeps values in locals, and adds helpers.
    """

    narrow: set[UOp]

    @abstractmethod
    def operand(self, node: UOp) -> WasmValue:
        """Returns the value of a source."""

    @abstractmethod
    def store_in_locals(self, value: WasmValue) -> WasmValue:
        """Stores `value` in locals, so that it can be used more than once."""

    @abstractmethod
    def needs(self, helper: str) -> str:
        """Returns the name of a helper, and adds the helper to the module."""

    # *** scalars ***

    def kind(self, node: UOp) -> str:
        """Returns the wasm type that holds a scalar."""
        assert isinstance(node.dtype, DType)
        return "i32" if node in self.narrow else scalar_type(node.dtype.scalar)

    def number(self, node: UOp, expected_type: str) -> str:
        """Returns the text of a scalar. Integers have the width of `expected_type`."""
        if node.op is Ops.CONST and expected_type[0] == "i" and not dtypes.is_float(node.dtype):
            return f"({expected_type}.const {int(node.arg)})"
        text, wasm_type = self.operand(node).text, self.kind(node)
        if wasm_type == expected_type:
            return text
        if (wasm_type, expected_type) == ("i32", "i64"):
            return f"(i64.extend_i32_{'s' if node in self.narrow else sign(node.dtype)} {text})"
        if (wasm_type, expected_type) == ("i64", "i32"):
            return f"(i32.wrap_i64 {text})"
        raise RenderError(f"{node!r} is {wasm_type}; {expected_type} is expected")

    def wrap_integer(self, text: str, dtype: DType) -> str:
        """Returns the small integer of `dtype` that has the low bits of an i32."""
        dtype = dtype.scalar
        if dtypes.is_bool(dtype) or dtype.itemsize >= 4 or dtypes.is_float(dtype) and dtype not in BITS_ONLY:
            return text
        if sign(dtype) == "s":
            return f"(i32.extend{dtype.bits}_s {text})"
        return f"(i32.and {text} (i32.const {(1 << dtype.bits) - 1}))"

    def cast_node(self, node: UOp, source: DType, target: DType) -> WasmValue:
        if target is dtypes.int64 and node in self.narrow:
            return WasmValue((self.number(node.src[0], "i32"),))
        if source is dtypes.int64 and node.src[0] in self.narrow:
            if dtypes.is_float(target) and target not in BITS_ONLY:
                return WasmValue((f"({scalar_type(target)}.convert_i32_s {self.operand(node.src[0]).text})",))
            return self.cast(self.operand(node.src[0]), dtypes.int32, target)
        return self.cast(self.operand(node.src[0]), source, target)

    def cast(self, value: WasmValue, source: DType, target: DType) -> WasmValue:
        """Converts a value as C does."""
        if source is target:
            return value
        if source.count > 1:
            return self.cast_lanes(value, source, target)
        return WasmValue((self.cast_scalar(value.text, source, target),))

    def cast_scalar(self, text: str, source: DType, target: DType) -> str:
        if source in BITS_ONLY:
            single = self.from_bits(source, f"(i32x4.splat {text})")
            return self.cast_scalar(f"(f32x4.extract_lane 0 {single})", dtypes.float32, target)
        if target in BITS_ONLY:
            return self.to_bits_scalar(text, source, target)
        source_type, target_type = scalar_type(source), scalar_type(target)
        if dtypes.is_bool(target):
            return f"({source_type}.ne {text} ({source_type}.const 0))"
        if dtypes.is_float(target):
            if dtypes.is_float(source):
                return (
                    text
                    if source_type == target_type
                    else f"({target_type}.{'demote_f64' if target_type == 'f32' else 'promote_f32'} {text})"
                )
            return f"({target_type}.convert_{source_type}_{sign(source)} {text})"
        if dtypes.is_float(source):
            return self.truncate(text, source_type, target)
        if source_type != target_type:
            name = "i32.wrap_i64" if target_type == "i32" else f"i64.extend_i32_{sign(source)}"
            text = f"({name} {text})"
        fits = (
            source_type == target_type
            and source.itemsize < target.itemsize
            and (sign(source) == "u" or sign(target) == "s")
        )
        return text if fits or dtypes.is_bool(source) else self.wrap_integer(text, target)

    def truncate(self, text: str, source_type: str, target: DType) -> str:
        """Converts a float to an integer, as on x86; through a wider type if there is no instruction."""
        if target is dtypes.uint64:
            double = text if source_type == "f64" else f"(f64.promote_f32 {text})"
            return f"(call ${self.needs('f64_to_u64')} {double})"
        if target is dtypes.uint32:
            return f"(i32.wrap_i64 (call ${self.needs(f'{source_type}_to_i64')} {text}))"
        return self.wrap_integer(f"(call ${self.needs(f'{source_type}_to_{scalar_type(target)}')} {text})", target)

    def to_bits_scalar(self, text: str, source: DType, target: DType) -> str:
        if source is dtypes.float64 and target is dtypes.float16:
            single = f"(call ${self.needs('f64_to_odd_f32')} (f64x2.splat {text}))"
        else:
            single = f"(f32x4.splat {self.cast_scalar(text, source, dtypes.float32)})"
        return f"(i32x4.extract_lane 0 (call ${self.needs(_to_bits_name(target))} {single}))"

    def from_bits(self, source: DType, register: str) -> str:
        """Returns the float32s of a register of 16-bit floats, each in 32 bits."""
        if source.scalar is dtypes.bfloat16:
            return f"(i32x4.shl {register} (i32.const 16))"
        return f"(call ${self.needs('f16_to_f32')} {register})"

    def bitcast(self, value: WasmValue, source: DType, target: DType) -> WasmValue:
        check_bitcast(source, target)
        if dtypes.is_bool(source) or dtypes.is_bool(target):
            return self.cast(value, source, target)
        if source.count > 1 and target.count > 1:
            return WasmValue(value.parts, lane_bytes(target))
        if source.count > 1 or target.count > 1:
            raise RenderError(f"BITCAST of {source!r} to {target!r}: one is a vector, the other a scalar")
        source_type, target_type = scalar_type(source), scalar_type(target)
        if source_type == target_type:
            return WasmValue((self.wrap_integer(value.text, target),))
        return WasmValue((f"({target_type}.reinterpret_{source_type} {value.text})",))

    # *** registers ***

    def cast_lanes(self, value: WasmValue, source: DType, target: DType) -> WasmValue:
        count, single = source.count, dtypes.float32.vec(source.count)
        if dtypes.is_bool(target):
            if source.scalar in BITS_ONLY:
                return self.cast_lanes(self.cast_lanes(value, source, single), single, target)
            zero = constant(0, source).parts[0]
            return WasmValue(tuple(f"({shape(source)}.ne {part} {zero})" for part in value.parts), lane_bytes(source))
        if dtypes.is_bool(source):
            if target.scalar in BITS_ONLY:
                return self.cast_lanes(self.cast_lanes(value, source, single), single, target)
            mask, one_in_each = (
                self.resize_lanes(value, lane_bytes(target), count, signed=True),
                constant(1, target).parts[0],
            )
            return WasmValue(tuple(f"(v128.and {part} {one_in_each})" for part in mask.parts), mask.lane)
        if source.scalar in BITS_ONLY:
            words = self.resize_lanes(value, 4, count, signed=False)
            parts = tuple(self.from_bits(source, part) for part in words.parts)
            return self.cast_lanes(WasmValue(parts, 4), single, target) if target is not single else WasmValue(parts, 4)
        if target.scalar in BITS_ONLY:
            return self.to_bits_lanes(value, source, target)
        if dtypes.is_float(source) or dtypes.is_float(target):
            return self.cast_float_lanes(value, source, target)
        return self.resize_lanes(value, lane_bytes(target), count, signed=sign(source) == "s")

    def to_bits_lanes(self, value: WasmValue, source: DType, target: DType) -> WasmValue:
        single = dtypes.float32.vec(source.count)
        if source.scalar is dtypes.float64 and target.scalar is dtypes.float16:
            halves = [f"(call ${self.needs('f64_to_odd_f32')} {part})" for part in value.parts]
            floats = self.merge_halves(halves)
        else:
            floats = self.cast(value, source, single).parts
        name = self.needs(_to_bits_name(target))
        words = WasmValue(tuple(f"(call ${name} {part})" for part in floats), 4)
        return self.resize_lanes(words, 2, source.count, signed=False)

    def cast_float_lanes(self, value: WasmValue, source: DType, target: DType) -> WasmValue:
        """Converts between floats, and between floats and integers; in 32 bits, or lane by lane."""
        count, letter = source.count, sign(source)
        int_type = target if dtypes.is_float(source) else source
        ints = dtypes.int32.vec(count)
        if not dtypes.is_float(int_type) and (int_type.scalar.itemsize == 8 or target.scalar is dtypes.uint32):
            local = self.store_in_locals(value)
            scalars = [self.lane(local, lane, source.scalar) for lane in range(count)]
            return self.assemble_lanes([self.cast_scalar(x, source.scalar, target.scalar) for x in scalars], target)
        if not dtypes.is_float(source):
            words = self.resize_lanes(value, 4, count, signed=letter == "s")
            letter = letter if lane_bytes(source) == 4 else "s"
            if target.scalar is dtypes.float32:
                return WasmValue(tuple(f"(f32x4.convert_i32x4_{letter} {part})" for part in words.parts), 4)
            return self.widen_halves(words, count, lambda part: f"(f64x2.convert_low_i32x4_{letter} {part})")
        if target.scalar is dtypes.float64:
            return self.widen_halves(value, count, lambda part: f"(f64x2.promote_low_f32x4 {part})")
        if target.scalar is dtypes.float32:
            return WasmValue(self.merge_halves([f"(f32x4.demote_f64x2_zero {part})" for part in value.parts]), 4)
        if source.scalar is dtypes.float64:
            words = WasmValue(
                self.merge_halves([f"(call ${self.needs('f64x2_to_i32')} {part})" for part in value.parts]), 4
            )
        else:
            words = WasmValue(tuple(f"(call ${self.needs('f32x4_to_i32')} {part})" for part in value.parts), 4)
        return words if target is ints else self.resize_lanes(words, lane_bytes(target), count, signed=True)

    def merge_halves(self, halves: list[str]) -> tuple[str, ...]:
        """Merges the lower halves of each pair of registers into one register."""
        if len(halves) == 1:
            return tuple(halves)
        return tuple(low_halves(x, y) for x, y in zip(halves[::2], halves[1::2]))

    def widen_halves(self, value: WasmValue, count: int, convert: Callable[[str], str]) -> WasmValue:
        """Converts each half of a register to a whole register."""
        if count == 2:
            return WasmValue((convert(value.text),), 8)
        parts = []
        for part in self.store_in_locals(value).parts:
            high = shuffle_bytes(part, part, [*range(8, 16), *range(8)])
            parts += [convert(part), convert(high)]
        return WasmValue(tuple(parts), 8)

    def mask(self, node: UOp, lane: int) -> WasmValue:
        """Returns a vector of bools with lanes of `lane` bytes."""
        assert isinstance(node.dtype, DType)
        if node.op is Ops.CONST:
            return constant(node.arg, node.dtype, lane)
        return self.resize_lanes(self.operand(node), lane, node.dtype.count, signed=True)

    def resize_lanes(self, value: WasmValue, lane: int, count: int, *, signed: bool) -> WasmValue:
        """Converts `count` integers to lanes of `lane` bytes: extends them, or takes their low bits."""
        while value.lane < lane:
            name = f"{int_shape(2 * value.lane)}.extend_{{}}_{int_shape(value.lane)}_{'s' if signed else 'u'}"
            count_after = registers(count, 2 * value.lane)
            if count_after > 1:
                value = self.store_in_locals(value)
            parts = [f"({name.format(half_lane)} {part})" for part in value.parts for half_lane in ("low", "high")]
            value = WasmValue(tuple(parts[:count_after]), 2 * value.lane)
        while value.lane > lane:
            half_lane = value.lane // 2
            byte_numbers = [
                byte for start in range(0, 2 * REGISTER_BYTES, value.lane) for byte in range(start, start + half_lane)
            ]
            parts = list(value.parts)
            if len(parts) % 2:
                parts[-1:] = self.store_in_locals(WasmValue((parts[-1],), value.lane)).parts * 2
            value = WasmValue(
                tuple(shuffle_bytes(x, y, byte_numbers) for x, y in zip(parts[::2], parts[1::2])), half_lane
            )
        return value

    def permute_bytes(self, value: WasmValue, byte_numbers: list[int]) -> WasmValue:
        """Returns one register with its bytes permuted."""
        return WasmValue((shuffle_bytes(value.text, value.text, byte_numbers),), value.lane)

    # *** lanes ***

    def lane_of(self, dtype: DType) -> int:
        return 0 if dtype.count == 1 else lane_bytes(dtype)

    def lane(self, value: WasmValue, number: int, dtype: DType) -> str:
        """Returns the scalar in a lane."""
        per = REGISTER_BYTES // value.lane
        part, lane = value.parts[number // per], number % per
        if dtypes.is_bool(dtype):
            text = f"({int_shape(value.lane)}.extract_lane{'_u' if value.lane < 4 else ''} {lane} {part})"
            if value.lane == 8:
                text = f"(i32.wrap_i64 {text})"
            return f"(i32.and {text} (i32.const 1))"
        letter = f"_{sign(dtype)}" if dtype.itemsize < 4 else ""
        return f"({shape(dtype)}.extract_lane{letter} {lane} {part})"

    def assemble_lanes(self, lanes: list[str], dtype: DType) -> WasmValue:
        """Assembles a vector from the texts of scalars. Bools are 0 or 1."""
        lane = lane_bytes(dtype)
        lane_shape, per = shape(dtype), REGISTER_BYTES // lane
        if dtypes.is_bool(dtype):
            lanes = [f"(i32.sub (i32.const 0) {text})" for text in lanes]
        registers = []
        for start in range(0, len(lanes), per):
            register_lanes = lanes[start : start + per]
            numbers = [_parse_constant(text) for text in register_lanes]
            if all(number is not None for number in numbers):
                filled = [str(number) for number in numbers] + ["0"] * (per - len(register_lanes))
                registers.append(lanes_text(lane_shape, filled))
                continue
            text = f"({lane_shape}.splat {register_lanes[0]})"
            if set(register_lanes) != {register_lanes[0]}:
                for lane_number, element in enumerate(register_lanes[1:], 1):
                    text = f"({lane_shape}.replace_lane {lane_number} {text} {element})"
            registers.append(text)
        return WasmValue(tuple(registers), lane)


def _to_bits_name(target: DType) -> str:
    return "f32_to_bf16" if target.scalar is dtypes.bfloat16 else "f32_to_f16"


def _parse_constant(text: str) -> str | None:
    """Returns the number in `(i32.const 3)`; None for other texts."""
    head, _, number = text[1:].partition(" ")
    return number[:-1] if head in ("i32.const", "i64.const", "f32.const", "f64.const") else None
