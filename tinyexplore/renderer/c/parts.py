"""Building blocks of C programs: type names, constants, and small helper functions.

A helper is written into a program only if it is called. Vectors are GCC's and Clang's `vector_size` types; vectors of
bools are masks, bytes of 0 and -1. 16-bit floats are stored as their bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops
from tinyexplore.uop.semantics import bfloat16_bits, float32, to_bits

SHORT = {
    dtypes.bool: "b8",
    dtypes.int8: "i8",
    dtypes.uint8: "u8",
    dtypes.int16: "i16",
    dtypes.uint16: "u16",
    dtypes.int32: "i32",
    dtypes.uint32: "u32",
    dtypes.int64: "i64",
    dtypes.uint64: "u64",
    dtypes.float16: "f16",
    dtypes.bfloat16: "bf16",
    dtypes.float32: "f32",
    dtypes.float64: "f64",
}

SCALAR = {
    dtypes.bool: "bool",
    dtypes.int8: "int8_t",
    dtypes.uint8: "uint8_t",
    dtypes.int16: "int16_t",
    dtypes.uint16: "uint16_t",
    dtypes.int32: "int32_t",
    dtypes.uint32: "uint32_t",
    dtypes.int64: "int64_t",
    dtypes.uint64: "uint64_t",
    dtypes.float16: "uint16_t",
    dtypes.bfloat16: "uint16_t",
    dtypes.float32: "float",
    dtypes.float64: "double",
}

BITS_ONLY = (dtypes.float16, dtypes.bfloat16)


def type_name(dtype: DType) -> str:
    """Returns the C type of a value: `float`, `f32x16`."""
    return SCALAR[dtype] if dtype.count == 1 else f"{short_name(dtype)}"


def short_name(dtype: DType) -> str:
    """Returns the name of a dtype in helpers: f32, f32x16. 16-bit floats are u16 vectors."""
    name = SHORT[dtype.scalar]
    if dtype.count == 1:
        return name
    return f"{'u16' if dtype.scalar in BITS_ONLY else name}x{dtype.count}"


def memory_name(dtype: DType) -> str:
    """Returns the C type of one element in memory."""
    return "uint8_t" if dtype.scalar is dtypes.bool else SCALAR[dtype.scalar]


def mask_int(dtype: DType) -> DType:
    """Returns the signed integer vector type that results from comparing vectors of `dtype`."""
    signed = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
    return signed[dtype.itemsize].vec(dtype.count)


def literal(value: Any, dtype: DType) -> str:
    """Returns a scalar constant."""
    dtype = dtype.scalar
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if dtype is dtypes.bfloat16:
        return f"{bfloat16_bits(value):#06x}"
    if dtype is dtypes.float16:
        return f"{to_bits(_limit_to_half_range(value), dtype):#06x}"
    if dtypes.is_float(dtype):
        return _float_literal(value, single=dtype is dtypes.float32)
    if value == -(1 << 63):
        return "INT64_MIN"
    if dtypes.is_unsigned(dtype):
        return f"{value}{'ull' if dtype.itemsize == 8 else 'u' if dtype.itemsize == 4 else ''}"
    return f"{value}{'' if abs(value) < 1 << 31 else 'll'}"


def _limit_to_half_range(value: float) -> float:
    return value if abs(value) < 65520 else math.copysign(math.inf, value)


def _float_literal(value: float, *, single: bool) -> str:
    """Writes a float as the shortest C literal of equal value, or as INFINITY or NAN."""
    if single:
        value = float32(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    if not single:
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if float32(float(text)) == value:
            break
    if "e" not in text and "." not in text:
        text += ".0"
    return text + "f"


# *** helper functions: name → (other helpers and types needed, text) ***


def vector_type(dtype: DType) -> str:
    """Returns the typedefs of a vector type: one for registers, one for unaligned memory (`_u`)."""
    scalar = "int8_t" if dtype.scalar is dtypes.bool else SCALAR[dtype.scalar]
    name, size = short_name(dtype), dtype.itemsize * dtype.count
    return (
        f"typedef {scalar} {name} __attribute__((vector_size({size})));\n"
        f"typedef {scalar} {name}_u __attribute__((vector_size({size}), aligned({dtype.itemsize}), may_alias));"
    )


def select_text(dtype: DType) -> str:
    vector, bits = short_name(dtype), short_name(mask_int(dtype))
    mask = short_name(dtypes.bool.vec(dtype.count))
    return (
        f"static inline {vector} select_{vector}({mask} c, {vector} x, {vector} y) {{\n"
        f"  {bits} m = __builtin_convertvector(c, {bits});\n"
        f"  return ({vector})((m & ({bits})x) | (~m & ({bits})y));\n"
        "}"
    )


def extreme_text(op: Ops, dtype: DType) -> str:
    """Writes the function of the greater or lesser value. NaN if either is NaN."""
    name, symbol = op.name.lower(), ">" if op is Ops.MAX else "<"
    c_type = type_name(dtype)
    head = f"static inline {c_type} {name}_{short_name(dtype)}({c_type} x, {c_type} y)"
    if dtype.count == 1:
        nan = " || x != x" if dtypes.is_float(dtype) else ""
        return f"{head} {{ return x {symbol} y{nan} ? x : y; }}"
    bits = short_name(mask_int(dtype))
    nan = " | (x != x)" if dtypes.is_float(dtype) else ""
    return f"{head} {{\n  {bits} m = (x {symbol} y){nan};\n  return ({c_type})((m & ({bits})x) | (~m & ({bits})y));\n}}"


def divide_text(op: Ops, dtype: DType) -> str:
    """Writes a division that never traps: division by 0 gives 0, and the least integer divided by -1 wraps."""
    c_type, name = SCALAR[dtype], op.name.lower()
    symbol = "/" if op is Ops.IDIV else "%"
    by_minus_one = ""
    if not dtypes.is_unsigned(dtype):
        by_minus_one = f"y == -1 ? {f'({c_type})-x' if op is Ops.IDIV else '0'} : "
    return (
        f"static inline {c_type} {name}_{short_name(dtype)}({c_type} x, {c_type} y) "
        f"{{ return y == 0 ? 0 : {by_minus_one}x {symbol} y; }}"
    )


def lanes_text(name: str, target: DType, source: DType, scalar_call: str, arity: int) -> str:
    """Writes a function that calls a scalar function for each lane. `scalar_call` contains `x[i]`, `y[i]`, `z[i]`."""
    parameters = ", ".join(f"{short_name(source)} {letter}" for letter in "xyz"[:arity])
    return (
        f"static inline {short_name(target)} {name}({parameters}) {{\n"
        f"  {short_name(target)} result;\n"
        f"  for (int i = 0; i < {target.count}; i++) result[i] = {scalar_call};\n"
        "  return result;\n"
        "}"
    )


def scale_text(dtype: DType) -> str:
    """Writes the function x times 2 to the power of floor(n)."""
    c_type, letter = SCALAR[dtype], "f" if dtype is dtypes.float32 else ""
    exponent = f"n < -5000 ? -5000 : n > 5000 ? 5000 : (int)floor{letter}(n)"
    return (
        f"static inline {c_type} scale_{short_name(dtype)}({c_type} x, {c_type} n) "
        f"{{ return n != n ? n : ldexp{letter}(x, {exponent}); }}"
    )


def table_text(name: str, values: Sequence[float], target: DType, source: DType) -> str:
    """Writes the function that returns, in every lane, the table entry that the low bits of an index select."""
    numbers = ", ".join(literal(value, target) for value in values)
    head = (
        f"static inline {type_name(target)} {name}({type_name(source)} x) {{\n"
        f"  static const {SCALAR[target.scalar]} numbers[] = {{{numbers}}};\n"
    )
    if target.count == 1:
        return f"{head}  return numbers[x & {len(values) - 1}];\n}}"
    return (
        f"{head}  {short_name(target)} result;\n"
        f"  for (int i = 0; i < {target.count}; i++) result[i] = numbers[x[i] & {len(values) - 1}];\n"
        "  return result;\n"
        "}"
    )


def dot_text(op: Ops) -> str:
    """Writes the function z plus the products of the parts of two words."""
    if op is Ops.DOT_BF16:
        terms = "bf16_to_f32(x) * bf16_to_f32(y) + bf16_to_f32(x >> 16) * bf16_to_f32(y >> 16)"
        return f"static inline float dot_bf16(uint32_t x, uint32_t y, float z) {{ return z + {terms}; }}"
    name, unsigned_or_signed = ("dot_u8", "uint8_t") if op is Ops.DOT_U8 else ("dot_i8", "int8_t")
    terms = " + ".join(f"({unsigned_or_signed})(x >> {shift}) * (int8_t)(y >> {shift})" for shift in (0, 8, 16, 24))
    return f"static inline int32_t {name}(uint32_t x, uint32_t y, int32_t z) {{ return z + {terms}; }}"


def dot_lanes_text(name: str, scalar_name: str, words: DType, result: DType) -> str:
    """Writes `dot_text` for each lane."""
    factor, total = short_name(words), short_name(result)
    return (
        f"static inline {total} {name}({factor} x, {factor} y, {total} z) {{\n"
        f"  for (int i = 0; i < {result.count}; i++) z[i] = {scalar_name}(x[i], y[i], z[i]);\n"
        "  return z;\n"
        "}"
    )


def tiles_text(name: str, scalar_name: str, words: DType, result: DType, shape: tuple[int, int, int]) -> str:
    """Writes C + A · B of tiles in plain C. `shape` has the rows and columns of C, and the words of a row of A."""
    rows, columns, word_count = shape
    factor, tile = short_name(words), short_name(result)
    product = f"{scalar_name}(a[i * {word_count} + k], b[k * {columns} + j], c[i * {columns} + j])"
    return (
        f"static inline {tile} {name}({factor} a, {factor} b, {tile} c) {{\n"
        f"  for (int i = 0; i < {rows}; i++)\n"
        f"    for (int j = 0; j < {columns}; j++)\n"
        f"      for (int k = 0; k < {word_count}; k++) c[i * {columns} + j] = {product};\n"
        "  return c;\n"
        "}"
    )


def splat_text(dtype: DType) -> str:
    vector = short_name(dtype)
    if dtypes.is_bool(dtype):
        return f"static inline {vector} splat_{vector}(bool x) {{ return (int8_t)-x - ({vector}){{0}}; }}"
    scalar = SCALAR[dtype.scalar]
    return f"static inline {vector} splat_{vector}({scalar} x) {{ return x - ({vector}){{0}}; }}"


def masked_load_text(dtype: DType) -> str:
    """Writes the function that loads a vector; lanes whose mask is false are 0 and access no memory."""
    vector, mask = short_name(dtype), short_name(dtypes.bool.vec(dtype.count))
    element = memory_name(dtype)
    value = "-(p[i] != 0)" if dtypes.is_bool(dtype) else "p[i]"
    return (
        f"static inline {vector} load_{vector}(const {element}* p, {mask} valid) {{\n"
        f"  {vector} result = {{0}};\n"
        f"  for (int i = 0; i < {dtype.count}; i++) if (valid[i]) result[i] = {value};\n"
        "  return result;\n"
        "}"
    )


def masked_store_text(dtype: DType) -> str:
    vector, mask = short_name(dtype), short_name(dtypes.bool.vec(dtype.count))
    element = memory_name(dtype)
    value = "x[i] & 1" if dtypes.is_bool(dtype) else "x[i]"
    return (
        f"static inline void store_{vector}({element}* p, {vector} x, {mask} valid) {{\n"
        f"  for (int i = 0; i < {dtype.count}; i++) if (valid[i]) p[i] = {value};\n"
        "}"
    )


def horizontal_text(op: Ops, dtype: DType, step: str) -> str:
    """Writes the function that combines all lanes: lane i with lane i + half. `step` combines `x[i]` and `x[i +
    half]`."""
    vector = short_name(dtype)
    return (
        f"static inline {SCALAR[dtype.scalar]} h{op.name.lower()}_{vector}({vector} x) {{\n"
        f"  for (int half = {dtype.count // 2}; half > 0; half /= 2)\n"
        f"    for (int i = 0; i < half; i++) x[i] = {step};\n"
        f"  return x[0]{' != 0' if dtypes.is_bool(dtype) else ''};\n"
        "}"
    )


TO_UINT64 = """\
static inline uint64_t f64_to_u64(double x) {
  return x >= 0x1p63 ? (uint64_t)(int64_t)(x - 0x1p63) ^ (uint64_t)1 << 63 : (uint64_t)(int64_t)x;
}"""


def float_to_int_texts(source: DType, target: DType) -> tuple[str, dict[str, str]]:
    """Returns the helper that converts any float to an integer, and all helpers by name; called helpers come first.

    Small integers are truncated from its result, an int32 or an int64.
    """
    float_name, suffix = SHORT[source], "f" if source is dtypes.float32 else ""
    bits = 64 if target.itemsize == 8 or target is dtypes.uint32 else 32
    name, int_type, c_type = f"{float_name}_to_i{bits}", f"int{bits}_t", SCALAR[source]
    limit, smallest = f"{2 ** (bits - 1)}.0{suffix}", "INT64_MIN" if bits == 64 else "(-2147483647 - 1)"
    lower_test = "> -2147483649.0" if (source, bits) == (dtypes.float64, 32) else f">= -{limit}"
    texts = {
        name: f"static inline {int_type} {name}({c_type} x) "
        f"{{ return x {lower_test} && x < {limit} ? ({int_type})x : {smallest}; }}"
    }
    if target is dtypes.uint64:
        texts[f"{float_name}_to_u64"] = (
            f"static inline uint64_t {float_name}_to_u64({c_type} x) {{\n"
            f"  return x >= {limit} ? (uint64_t){name}(x - {limit}) ^ (uint64_t)1 << 63 : (uint64_t){name}(x);\n}}"
        )
    return list(texts)[-1], texts


CONVERSIONS = {
    "bits_f32": "static inline uint32_t bits_f32(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }",
    "f32_bits": "static inline float f32_bits(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }",
    "bf16_to_f32": "static inline float bf16_to_f32(uint16_t u) { return f32_bits((uint32_t)u << 16); }",
    "f32_to_bf16": (
        "static inline uint16_t f32_to_bf16(float x) {\n"
        "  uint32_t u = bits_f32(x);\n"
        "  return x != x ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;\n"
        "}"
    ),
    "f16_to_f32": (
        "static inline float f16_to_f32(uint16_t u) {\n"
        "#ifdef __FLT16_MAX__\n"
        "  _Float16 x; memcpy(&x, &u, 2); return (float)x;\n"
        "#else\n"
        "  uint32_t sign = (uint32_t)(u & 0x8000) << 16, rest = u & 0x7fff;\n"
        "  if (rest >= 0x7c00) return f32_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);\n"
        "  float size = f32_bits(rest << 13) * 0x1p112f; // rebiases the exponent, subnormals too\n"
        "  return f32_bits(sign | bits_f32(size));\n"
        "#endif\n"
        "}"
    ),
    "f32_to_f16": (
        "static inline uint16_t f32_to_f16(float x) {\n"
        "#ifdef __FLT16_MAX__\n"
        "  _Float16 h = (_Float16)x; uint16_t u; memcpy(&u, &h, 2); return u;\n"
        "#else\n"
        "  uint32_t u = bits_f32(x), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;\n"
        "  if (size > 0x7f800000) return sign | 0x7e00;\n"
        "  if (size >= 0x477ff000) return sign | 0x7c00; // 65520 and more round to infinity\n"
        "  if (size < 0x38800000) return sign | (bits_f32(f32_bits(size) + 0.5f) - 0x3f000000); // subnormal\n"
        "  return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;\n"
        "#endif\n"
        "}"
    ),
    "f64_to_f16": (
        "static inline uint16_t f64_to_f16(double x) {\n"
        "  float f = (float)x; // made odd where it is inexact, so that the second rounding sees what was lost\n"
        "  if (x == x && (double)f != x) f = f32_bits((bits_f32(f) - (fabs((double)f) > fabs(x))) | 1);\n"
        "  return f32_to_f16(f);\n"
        "}"
    ),
}

CONVERSIONS_NEED = {
    "bf16_to_f32": ("f32_bits",),
    "f32_to_bf16": ("bits_f32",),
    "f16_to_f32": ("f32_bits", "bits_f32"),
    "f32_to_f16": ("bits_f32", "f32_bits"),
    "f64_to_f16": ("bits_f32", "f32_bits", "f32_to_f16"),
}
