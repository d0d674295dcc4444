"""The instructions of WebAssembly that kernels use, by name: data from the tables of the core specification."""

from __future__ import annotations

from collections.abc import Iterator

_COMPARE = "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u"
_FLOAT_COMPARE = "eq ne lt gt le ge"
_INT = "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr"
_FLOAT = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign"
_FLOAT_LANES = "abs neg - sqrt add sub mul div min max pmin pmax"
_FROM_FLOATS = "trunc{0}_f32_s trunc{0}_f32_u trunc{0}_f64_s trunc{0}_f64_u"
_FROM_INTS = "convert_i32_s convert_i32_u convert_i64_s convert_i64_u"

# (first opcode, type, consecutive names; "-": an opcode that is not used)
_PLAIN = (
    (0x45, "i32", f"eqz {_COMPARE}"),
    (0x50, "i64", f"eqz {_COMPARE}"),
    (0x5B, "f32", _FLOAT_COMPARE),
    (0x61, "f64", _FLOAT_COMPARE),
    (0x67, "i32", _INT),
    (0x79, "i64", _INT),
    (0x8B, "f32", _FLOAT),
    (0x99, "f64", _FLOAT),
    (0xA7, "i32", "wrap_i64 " + _FROM_FLOATS.format("")),
    (0xAC, "i64", "extend_i32_s extend_i32_u " + _FROM_FLOATS.format("")),
    (0xB2, "f32", f"{_FROM_INTS} demote_f64"),
    (0xB7, "f64", f"{_FROM_INTS} promote_f32"),
    (0xBC, "i32", "reinterpret_f32"),
    (0xBD, "i64", "reinterpret_f64"),
    (0xBE, "f32", "reinterpret_i32"),
    (0xBF, "f64", "reinterpret_i64"),
    (0xC0, "i32", "extend8_s extend16_s"),
    (0xC2, "i64", "extend8_s extend16_s extend32_s"),
)
_SATURATING = ((0x00, "i32", _FROM_FLOATS.format("_sat")), (0x04, "i64", _FROM_FLOATS.format("_sat")))
_VECTOR = (
    (0x0E, "i8x16", "swizzle splat"),
    (0x10, "i16x8", "splat"),
    (0x11, "i32x4", "splat"),
    (0x12, "i64x2", "splat"),
    (0x13, "f32x4", "splat"),
    (0x14, "f64x2", "splat"),
    (0x23, "i8x16", _COMPARE),
    (0x2D, "i16x8", _COMPARE),
    (0x37, "i32x4", _COMPARE),
    (0x41, "f32x4", _FLOAT_COMPARE),
    (0x47, "f64x2", _FLOAT_COMPARE),
    (0x4D, "v128", "not and andnot or xor bitselect any_true"),
    (0x5E, "f32x4", "demote_f64x2_zero"),
    (0x5F, "f64x2", "promote_low_f32x4"),
    (0x60, "i8x16", "abs neg popcnt all_true bitmask narrow_i16x8_s narrow_i16x8_u"),
    (0x67, "f32x4", "ceil floor trunc nearest"),
    (0x6B, "i8x16", "shl shr_s shr_u add add_sat_s add_sat_u sub sub_sat_s sub_sat_u"),
    (0x74, "f64x2", "ceil floor"),
    (0x76, "i8x16", "min_s min_u max_s max_u"),
    (0x7A, "f64x2", "trunc"),
    (0x80, "i16x8", "abs neg - all_true bitmask narrow_i32x4_s narrow_i32x4_u"),
    (0x87, "i16x8", "extend_low_i8x16_s extend_high_i8x16_s extend_low_i8x16_u extend_high_i8x16_u"),
    (0x8B, "i16x8", "shl shr_s shr_u add add_sat_s add_sat_u sub sub_sat_s sub_sat_u - mul min_s min_u max_s max_u"),
    (0x9C, "i16x8", "extmul_low_i8x16_s extmul_high_i8x16_s extmul_low_i8x16_u extmul_high_i8x16_u"),
    (0xA0, "i32x4", "abs neg - all_true bitmask"),
    (0xA7, "i32x4", "extend_low_i16x8_s extend_high_i16x8_s extend_low_i16x8_u extend_high_i16x8_u"),
    (0xAB, "i32x4", "shl shr_s shr_u add - - sub - - - mul min_s min_u max_s max_u dot_i16x8_s"),
    (0xC0, "i64x2", "abs neg - all_true bitmask"),
    (0xC7, "i64x2", "extend_low_i32x4_s extend_high_i32x4_s extend_low_i32x4_u extend_high_i32x4_u"),
    (0xCB, "i64x2", "shl shr_s shr_u add - - sub - - - mul eq ne lt_s gt_s le_s ge_s"),
    (0xE0, "f32x4", _FLOAT_LANES),
    (0xEC, "f64x2", _FLOAT_LANES),
    (0xF8, "i32x4", "trunc_sat_f32x4_s trunc_sat_f32x4_u"),
    (0xFA, "f32x4", "convert_i32x4_s convert_i32x4_u"),
    (0xFC, "i32x4", "trunc_sat_f64x2_s_zero trunc_sat_f64x2_u_zero"),
    (0xFE, "f64x2", "convert_low_i32x4_s convert_low_i32x4_u"),
)
_MEMORY = (
    (0x28, "i32", "load"),
    (0x29, "i64", "load"),
    (0x2A, "f32", "load"),
    (0x2B, "f64", "load"),
    (0x2C, "i32", "load8_s load8_u load16_s load16_u"),
    (0x36, "i32", "store"),
    (0x37, "i64", "store"),
    (0x38, "f32", "store"),
    (0x39, "f64", "store"),
    (0x3A, "i32", "store8 store16"),
)
_VECTOR_MEMORY = (
    (0x00, "v128", "load"),
    (0x07, "v128", "load8_splat load16_splat load32_splat load64_splat store"),
    (0x5C, "v128", "load32_zero load64_zero"),
)
_LANES = (
    (0x15, "i8x16", "extract_lane_s extract_lane_u replace_lane"),
    (0x18, "i16x8", "extract_lane_s extract_lane_u replace_lane"),
    (0x1B, "i32x4", "extract_lane replace_lane"),
    (0x1D, "i64x2", "extract_lane replace_lane"),
    (0x1F, "f32x4", "extract_lane replace_lane"),
    (0x21, "f64x2", "extract_lane replace_lane"),
)
_LANES_IN_MEMORY = (
    (0x54, "v128", "load8_lane load16_lane load32_lane load64_lane store8_lane store16_lane store32_lane store64_lane"),
)


def leb(value: int) -> bytes:
    """Encodes an unsigned number in LEB128."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def signed_leb(value: int) -> bytes:
    """Encodes a signed number in LEB128."""
    encoded = bytearray()
    while not -0x40 <= value < 0x40:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value & 0x7F)
    return bytes(encoded)


def _number_opcodes(table: tuple[tuple[int, str, str], ...], prefix: int | None = None) -> Iterator[tuple[str, bytes]]:
    for first_number, wasm_type, names in table:
        for number, name in enumerate(names.split(), first_number):
            if name != "-":
                yield f"{wasm_type}.{name}", bytes([number]) if prefix is None else bytes([prefix]) + leb(number)


# grouped by the operands of the opcode: none; an address; a lane; an address and a lane
PLAIN = {
    "return": b"\x0f",
    "drop": b"\x1a",
    "select": b"\x1b",
    "unreachable": b"\x00",
    **dict(_number_opcodes(_PLAIN)),
    **dict(_number_opcodes(_SATURATING, 0xFC)),
    **dict(_number_opcodes(_VECTOR, 0xFD)),
}
MEMORY = {**dict(_number_opcodes(_MEMORY)), **dict(_number_opcodes(_VECTOR_MEMORY, 0xFD))}
LANE = dict(_number_opcodes(_LANES, 0xFD))
MEMORY_LANE = dict(_number_opcodes(_LANES_IN_MEMORY, 0xFD))
LOCAL = {"local.get": b"\x20", "local.set": b"\x21", "local.tee": b"\x22"}
CONST = {"i32.const": b"\x41", "i64.const": b"\x42", "f32.const": b"\x43", "f64.const": b"\x44"}
TYPE = {"i32": b"\x7f", "i64": b"\x7e", "f32": b"\x7d", "f64": b"\x7c", "v128": b"\x7b"}


def alignment(name: str) -> int:
    """Returns the natural alignment of a memory instruction, as the power of two that the binary format has."""
    wasm_type, _, access = name.partition(".")
    digits = "".join([letter for letter in access.partition("_")[0] if letter.isdecimal()])
    bits = int(digits) if digits else {"i32": 32, "f32": 32, "i64": 64, "f64": 64, "v128": 128}[wasm_type]
    return (bits // 8).bit_length() - 1
