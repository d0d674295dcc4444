"""Writes the arithmetic of the linear program as LLVM instructions: types, constants, conversions and every ALU
operation.

`InstructionWriter` writes one operation; `renderer/llvm/renderer.py` walks the program.
"""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.program import RenderError, check_bitcast
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine, source_line
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds, is_exact
from tinyexplore.uop.semantics import bfloat16_bits

_REGISTER = {
    dtypes.bool: "i1",
    dtypes.int8: "i8",
    dtypes.uint8: "i8",
    dtypes.int16: "i16",
    dtypes.uint16: "i16",
    dtypes.int32: "i32",
    dtypes.uint32: "i32",
    dtypes.int64: "i64",
    dtypes.uint64: "i64",
    dtypes.float16: "half",
    # its bits: integer arithmetic converts it, so that no machine flushes or rounds differently
    dtypes.bfloat16: "i16",
    dtypes.float32: "float",
    dtypes.float64: "double",
}

# each is an LLVM intrinsic with the same name
_INTRINSICS = {
    Ops.SQRT,
    Ops.EXP,
    Ops.EXP2,
    Ops.LOG,
    Ops.LOG2,
    Ops.SIN,
    Ops.COS,
    Ops.TANH,
    Ops.FLOOR,
    Ops.POW,
}

_FLOAT_OP = {Ops.ADD: "fadd contract", Ops.MUL: "fmul contract", Ops.FDIV: "fdiv", Ops.MOD: "frem"}
_INT_OP = {Ops.ADD: "add", Ops.MUL: "mul", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.SHL: "shl"}
_LOGIC = frozenset({Ops.AND, Ops.OR, Ops.XOR})
_BOOL_OP = {Ops.ADD: "or", Ops.MAX: "or", Ops.MUL: "and", Ops.MIN: "and"}
_FLOAT_COMPARE = {Ops.CMPLT: "olt", Ops.CMPLE: "ole", Ops.CMPEQ: "oeq", Ops.CMPNE: "une"}
_INT_COMPARE = {Ops.CMPLT: "lt", Ops.CMPLE: "le", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}

# CPU features of dot instructions, which process 16 words at a time
DOT_FEATURES = {Ops.DOT_BF16: "+avx512bf16", Ops.DOT_I8: "+avx512vnni"}
SCALE_FEATURES = frozenset({"+avx512f", "+avx512vl"})
REGISTER_BITS = 512  # the greatest register size

_COMPUTED_IN_FLOAT32 = (dtypes.float16, dtypes.bfloat16)


DOT_LANES = 16
TILE_ROWS, TILE_ROW_BYTES = 16, 64  # AMX's palette 1: eight registers of this shape


@cache
def register_type(dtype: DType) -> str:
    """Returns the LLVM type of a value in a register."""
    if is_tile(dtype):
        return "x86_amx"
    scalar = _REGISTER[dtype.scalar]
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def is_tile(dtype: DType) -> bool:
    """Whether a tile register of a CPU holds this dtype. No vector is as long."""
    return dtype.count * dtype.itemsize == TILE_ROWS * TILE_ROW_BYTES


@cache
def memory_type(dtype: DType) -> str:
    """Returns the LLVM type of a value in memory, where a bool takes a byte."""
    if dtype.scalar is not dtypes.bool:
        return register_type(dtype)
    return "i8" if dtype.count == 1 else f"<{dtype.count} x i8>"


def _scalar_literal(value: Any, dtype: DType) -> str:
    """Writes a constant in LLVM's syntax, with its exact bits after rounding to `dtype`."""
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if dtype is dtypes.float32:
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    if dtype in (dtypes.float32, dtypes.float64):
        if math.isfinite(value) and value == int(value) and abs(value) < 1e6:
            return f"{value:.1f}"
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if dtype is dtypes.float16:
        try:
            return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
        except OverflowError:
            return "0xH7C00" if value > 0 else "0xHFC00"
    return str(bfloat16_bits(value) if dtype is dtypes.bfloat16 else value)


def literal(value: Any, dtype: DType) -> str:
    """Returns a constant, the same in every lane."""
    scalar = _scalar_literal(value, dtype.scalar)
    return scalar if dtype.count == 1 else f"splat ({_REGISTER[dtype.scalar]} {scalar})"


@cache
def plain_instruction(op: Ops, dtype: DType) -> tuple[str, str] | None:
    """Returns the text of `op` up to the operands, and a name for its register, if one instruction is enough for all
    values.

    None otherwise.
    """
    if dtypes.is_float(dtype) and dtype.scalar not in _COMPUTED_IN_FLOAT32 and op in _FLOAT_OP:
        name = _FLOAT_OP[op]
    elif dtypes.is_int(dtype) and op in _INT_OP and (dtype is not dtypes.index or op not in (Ops.ADD, Ops.MUL)):
        name = _INT_OP[op]
    else:
        return None
    return f"{name} {register_type(dtype)}", op.name.lower()


def is_logic_on(node: UOp, leaf: UOp) -> bool:
    """Whether `node` is computed from `leaf` and other values by at most three levels of AND, OR and XOR."""

    def without_bitcasts(value: UOp) -> UOp:
        while value.op is Ops.BITCAST:
            value = value.src[0]
        return value

    leaf = without_bitcasts(leaf)
    level = [without_bitcasts(node)]
    for _ in range(3):
        level = [without_bitcasts(source) for value in level if value.op in _LOGIC for source in value.src]
        if leaf in level:
            return True
    return False


@cache
def suffix(dtype: DType) -> str:
    """Returns the name of a dtype in intrinsics: f32, v16f32."""
    scalar = dtype.scalar
    letter = "f" if dtypes.is_float(scalar) else "i"
    bits = 1 if scalar is dtypes.bool else scalar.bits
    return f"{letter}{bits}" if dtype.count == 1 else f"v{dtype.count}{letter}{bits}"


class InstructionWriter:
    """Appends instructions to `lines`, and the functions that they call to `declared`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: list[SourceLine] = []
        self.declared: dict[str, str] = {}
        self.made_by: tuple[UOp, ...] = ()  # the current node, with the constants and addresses written with it
        self._count = 0
        self._fuses = target.fuses_multiply_add

    def raw(self, text: str) -> None:
        self.lines.append(source_line((text, self.made_by)))

    def value(self, text: str, hint: str = "v") -> str:
        """Writes an instruction. Returns the new register that it sets."""
        self._count += 1
        name = f"%{hint}{self._count}"
        self.lines.append(source_line((f"  {name} = {text}", self.made_by)))
        return name

    def call(self, result: str, function: str, *arguments: tuple[str, str], flags: str = "", hint: str = "v") -> str:
        """Writes a call of `function` with (type, value) arguments. Returns the register of the result."""
        if function not in self.declared:
            types = ", ".join([ir_type for ir_type, _ in arguments])
            self.declared[function] = f"declare {result} @{function}({types})"
        text = ", ".join([f"{ir_type} {value}" for ir_type, value in arguments])
        return self.value(f"call {flags}{result} @{function}({text})", hint)

    # *** operations ***

    def alu(self, node: UOp, values: list[str]) -> str:
        """Writes an ALU node whose sources are in `values`. Returns its register."""
        op, dtype = node.op, node.dtype
        assert isinstance(dtype, DType)
        source = node.src[0].dtype
        assert isinstance(source, DType)
        plain_text = plain_instruction(op, source)
        if plain_text is not None:
            return self.value(f"{plain_text[0]} {values[0]}, {values[1]}", plain_text[1])
        if op is Ops.CAST:
            return self.cast(values[0], source, dtype)
        if op is Ops.BITCAST:
            return self.bitcast(values[0], source, dtype)
        if op is Ops.WHERE:
            ir_type = register_type(dtype)
            condition = register_type(source)
            if self.target.has_scale and dtype.count > 1 and dtype.scalar.bits in (32, 64):
                values = self.fenced_arms(node, dtype, values)
            return self.value(f"select {condition} {values[0]}, {ir_type} {values[1]}, {ir_type} {values[2]}", "where")
        if op in OpGroups.DOT:
            return self.dot(op, dtype, values)
        return self.arithmetic(node, op, source, values)

    def fenced_arms(self, node: UOp, dtype: DType, values: list[str]) -> list[str]:
        """Returns the sources of a WHERE. If one arm is bitwise logic on the other arm, keeps LLVM from combining them.

        Only for AVX-512: LLVM 22 makes one masked `vpternlog` of `where(c, a, b & 0x7fffffff | a & 0x80000000)`, and
        exchanges its operands wrongly if one is in memory (llvm-project issue 157929).
        """
        floats = (dtypes.float32 if dtype.scalar.bits == 32 else dtypes.float64).vec(dtype.count)
        float_type, words = register_type(floats), register_type(dtype)
        values = list(values)
        for arm, other_arm in ((1, 2), (2, 1)):
            if not is_logic_on(node.src[arm], node.src[other_arm]):
                continue
            bits = (
                values[arm]
                if float_type == words
                else self.value(f"bitcast {words} {values[arm]} to {float_type}", "bits")
            )
            fence = self.call(float_type, f"llvm.arithmetic.fence.{suffix(floats)}", (float_type, bits), hint="fence")
            values[arm] = (
                fence if float_type == words else self.value(f"bitcast {float_type} {fence} to {words}", "bits")
            )
        return values

    def dot(self, op: Ops, dtype: DType, values: list[str]) -> str:
        """Writes one instruction that multiplies the parts of 16 words and adds the products.

        Instructions on bytes take the first factor as unsigned (DOT_U8). For a signed factor, 128 is added to it, and
        128 times the other factor is subtracted again; sums do so at their end (`codegen/rewrites/dot_products.py`).
        """
        if dtype.count != DOT_LANES:
            raise RenderError(f"{op.name} of {dtype.count} words: only {DOT_LANES} words have an instruction")
        x, y, acc = values
        words, result = register_type(dtypes.uint32.vec(DOT_LANES)), register_type(dtype)
        if op is Ops.DOT_BF16:
            parts_type = f"<{2 * DOT_LANES} x bfloat>"
            x, y = (self.value(f"bitcast {words} {value} to {parts_type}", "pairs") for value in (x, y))
            name = "llvm.x86.avx512bf16.dpbf16ps.512"
            return self.call(result, name, (result, acc), (parts_type, x), (parts_type, y), hint="dot")
        parts_type, name = f"<{4 * DOT_LANES} x i8>", "llvm.x86.avx512.vpdpbusd.512"
        if op is Ops.DOT_U8:
            x, y = (self.value(f"bitcast {words} {value} to {parts_type}", "bytes") for value in (x, y))
            return self.call(result, name, (result, acc), (parts_type, x), (parts_type, y), hint="dot")
        flipped = self.value(f"xor {words} {x}, splat (i32 {0x80808080 - (1 << 32)})", "xor")
        x, y, offset = (
            self.value(f"bitcast {words} {value} to {parts_type}", "bytes")
            for value in (flipped, y, f"splat (i32 {0x80808080 - (1 << 32)})")
        )
        zero = literal(0, dtype)
        too_much = self.call(result, name, (result, zero), (parts_type, offset), (parts_type, y), hint="offset")
        product = self.call(result, name, (result, acc), (parts_type, x), (parts_type, y), hint="dot")
        return self.value(f"sub {result} {product}, {too_much}", "dot")

    def scale(self, dtype: DType, x: str, n: str) -> str:
        """Writes x times 2 to the power of floor(n), by AVX-512's instruction."""
        lanes = max(dtype.count, 128 // dtype.bits)
        wide_dtype = dtype.scalar.vec(lanes)
        ir_type, bits = register_type(wide_dtype), lanes * dtype.bits
        name = f"llvm.x86.avx512.mask.scalef.p{'s' if dtype.scalar is dtypes.float32 else 'd'}.{bits}"
        values = [(ir_type, self.lanes(value, dtype, lanes)) for value in (x, n)]
        all_lanes = (f"i{max(lanes, 8)}", "-1")
        rounding = [("i32", "4")] if bits == REGISTER_BITS else []  # rounding mode: as the processor is set
        scaled = self.call(ir_type, name, *values, (ir_type, "zeroinitializer"), all_lanes, *rounding, hint="scale")
        return self.lanes(scaled, wide_dtype, dtype.count)

    def table(self, node: UOp, index: str) -> str:
        """Returns the lanes of a register that the low bits of `index` select."""
        dtype, source = node.dtype, node.src[0].dtype
        assert isinstance(dtype, DType) and isinstance(source, DType)
        count = REGISTER_BITS // dtype.scalar.bits
        if len(node.arg) != count or dtype.count > count:
            raise RenderError(f"TABLE of {len(node.arg)} {dtype!r}: only tables of {count} have an instruction")
        wide_dtype, index_dtype = dtype.scalar.vec(count), source.scalar.vec(count)
        ir_type = register_type(wide_dtype)
        scalar = register_type(dtype.scalar)
        values = ", ".join([f"{scalar} {literal(value, dtype.scalar)}" for value in node.arg])
        name = f"llvm.x86.avx512.permvar.{'s' if dtype.scalar is dtypes.float32 else 'd'}f.{REGISTER_BITS}"
        position = (register_type(index_dtype), self.lanes(index, source, count))
        return self.lanes(
            self.call(ir_type, name, (ir_type, f"<{values}>"), position, hint="table"), wide_dtype, dtype.count
        )

    def lanes(self, value: str, dtype: DType, count: int) -> str:
        """Returns the first `count` lanes of a vector. Further lanes are undefined."""
        if dtype.count == count:
            return value
        ir_type = register_type(dtype)
        lane_mask = ", ".join([f"i32 {lane}" if lane < dtype.count else "i32 poison" for lane in range(count)])
        return self.value(f"shufflevector {ir_type} {value}, {ir_type} poison, <{count} x i32> <{lane_mask}>", "lanes")

    def arithmetic(self, node: UOp, op: Ops, dtype: DType, values: list[str]) -> str:
        """Writes `op` on values that all have `dtype`."""
        plain_text = plain_instruction(op, dtype)
        if plain_text is not None:
            return self.value(f"{plain_text[0]} {values[0]}, {values[1]}", plain_text[1])
        if dtype.scalar in _COMPUTED_IN_FLOAT32:
            wide_dtype = dtypes.float32.vec(dtype.count)
            result = self.arithmetic(node, op, wide_dtype, [self.cast(value, dtype, wide_dtype) for value in values])
            return result if op in OpGroups.COMPARE else self.cast(result, wide_dtype, dtype)
        if op in OpGroups.COMPARE:
            return self.compare(op, dtype, values)
        if dtypes.is_float(dtype):
            return self.float_op(node, op, dtype, values)
        if dtypes.is_bool(dtype):
            return self.bool_op(node, op, dtype, values)
        return self.int_op(node, op, dtype, values)

    def compare(self, op: Ops, dtype: DType, values: list[str]) -> str:
        ir_type = register_type(dtype)
        if dtypes.is_float(dtype):
            return self.value(f"fcmp {_FLOAT_COMPARE[op]} {ir_type} {values[0]}, {values[1]}", "cmp")
        condition = _INT_COMPARE[op]
        if len(condition) == 2 and condition[0] == "l":
            condition = ("u" if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype) else "s") + condition
        return self.value(f"icmp {condition} {ir_type} {values[0]}, {values[1]}", "cmp")

    def float_op(self, node: UOp, op: Ops, dtype: DType, values: list[str]) -> str:
        ir_type = register_type(dtype)
        hint = op.name.lower()
        if op is Ops.NEG:
            return self.value(f"fneg {ir_type} {values[0]}", hint)
        if op in (Ops.MAX, Ops.MIN):
            if self.target.has_scale and node.src[0].op is Ops.DEFINE_ACC:
                bits = dtype.count * dtype.bits
                if bits in (REGISTER_BITS // 4, REGISTER_BITS // 2, REGISTER_BITS):
                    return self.extreme(op, dtype, values, bits)
            name = f"llvm.{'maximum' if op is Ops.MAX else 'minimum'}.{suffix(dtype)}"
            return self.call(ir_type, name, (ir_type, values[0]), (ir_type, values[1]), flags="nsz ", hint=hint)
        if op in _INTRINSICS:
            name = f"llvm.{op.name.lower()}.{suffix(dtype)}"
            return self.call(ir_type, name, *((ir_type, value) for value in values), hint=hint)
        if op is Ops.MULACC and self._fuses:
            name = f"llvm.fma.{suffix(dtype)}"
            return self.call(ir_type, name, *((ir_type, value) for value in values), hint=hint)
        if op is Ops.MULACC:
            product = self.value(f"fmul contract {ir_type} {values[0]}, {values[1]}", "mul")
            return self.value(f"fadd contract {ir_type} {product}, {values[2]}", hint)
        if op is Ops.SCALE:
            return self.scale(dtype, values[0], values[1])
        if op is Ops.ERF:
            return self.per_lane("erff" if dtype.scalar is dtypes.float32 else "erf", dtype, values[0])
        raise RenderError(f"{op.name} of {dtype!r}: not an operation on floats ({node!r})")

    def extreme(self, op: Ops, dtype: DType, values: list[str], bits: int) -> str:
        """Writes MAX or MIN of two vectors of `bits` bits with AVX-512: `vmaxps`, then `vfixupimmps`.

        `vmaxps` returns the second operand if one of them is NaN. `vfixupimmps` puts the first operand where it is
        NaN. LLVM's `llvm.maximum` takes a compare to a mask and a masked move instead. Maxima of rows of 4096 x 4096
        from memory take 0.89 of the time of `llvm.maximum`, from L2 0.79 (Zen 5).
        """
        ir_type, flags = register_type(dtype), register_type(dtypes.bool.vec(dtype.count))
        is_first = self.value(f"fcmp {'ogt' if op is Ops.MAX else 'olt'} {ir_type} {values[0]}, {values[1]}", "cmp")
        number = self.value(f"select {flags} {is_first}, {ir_type} {values[0]}, {ir_type} {values[1]}", "number")
        words = (dtypes.int32 if dtype.bits == 32 else dtypes.int64).vec(dtype.count)
        # a digit for each class of the first operand, NaNs first: 2 puts it there as a quiet NaN, 0 leaves the result
        table = (register_type(words), literal(0x22, words))
        name = f"llvm.x86.avx512.mask.fixupimm.p{'s' if dtype.scalar is dtypes.float32 else 'd'}.{bits}"
        all_lanes = (f"i{max(dtype.count, 8)}", "-1")
        rounding = [("i32", "4")] if bits == REGISTER_BITS else []  # as the processor is set
        operands = ((ir_type, number), (ir_type, values[0]), table, ("i32", "0"), all_lanes, *rounding)
        return self.call(ir_type, name, *operands, hint=op.name.lower())

    def per_lane(self, function: str, dtype: DType, value: str) -> str:
        """Calls a scalar C function lane by lane."""
        scalar = register_type(dtype.scalar)
        if dtype.count == 1:
            return self.call(scalar, function, (scalar, value), hint=function)
        ir_type = register_type(dtype)
        result = "poison"
        for lane in range(dtype.count):
            element = self.value(f"extractelement {ir_type} {value}, i64 {lane}")
            element = self.call(scalar, function, (scalar, element))
            result = self.value(f"insertelement {ir_type} {result}, {scalar} {element}, i64 {lane}")
        return result

    def bool_op(self, node: UOp, op: Ops, dtype: DType, values: list[str]) -> str:
        ir_type = register_type(dtype)
        if op is Ops.NEG:
            return values[0]
        if op is Ops.MULACC:
            product = self.value(f"and {ir_type} {values[0]}, {values[1]}", "and")
            return self.value(f"or {ir_type} {product}, {values[2]}", "or")
        name = _BOOL_OP.get(op) or (_INT_OP[op] if op in (Ops.AND, Ops.OR, Ops.XOR) else None)
        if name is None:
            raise RenderError(f"{op.name} of {dtype!r}: not an operation on bools ({node!r})")
        return self.value(f"{name} {ir_type} {values[0]}, {values[1]}", name)

    def int_op(self, node: UOp, op: Ops, dtype: DType, values: list[str]) -> str:
        ir_type = register_type(dtype)
        hint = op.name.lower()
        unsigned = dtypes.is_unsigned(dtype)
        if op is Ops.NEG:
            return self.value(
                f"sub {ir_type} zeroinitializer, {values[0]}" if dtype.count > 1 else f"sub {ir_type} 0, {values[0]}"
            )
        if op in (Ops.ADD, Ops.MUL):  # only indices: other operations wrap
            nsw = " nsw" if is_exact(node) else ""
            return self.value(f"{_INT_OP[op]}{nsw} {ir_type} {values[0]}, {values[1]}", hint)
        if op is Ops.SHR:
            return self.value(f"{'lshr' if unsigned else 'ashr'} {ir_type} {values[0]}, {values[1]}", hint)
        if op in (Ops.MAX, Ops.MIN):
            name = f"llvm.{'u' if unsigned else 's'}{hint}.{suffix(dtype)}"
            return self.call(ir_type, name, (ir_type, values[0]), (ir_type, values[1]), hint=hint)
        if op is Ops.MULACC:
            product = self.value(f"mul {ir_type} {values[0]}, {values[1]}", "mul")
            return self.value(f"add {ir_type} {product}, {values[2]}", "add")
        if op in (Ops.IDIV, Ops.MOD):
            return self.divide(node, op, dtype, values)
        raise RenderError(f"{op.name} of {dtype!r}: not an operation on integers ({node!r})")

    def divide(self, node: UOp, op: Ops, dtype: DType, values: list[str]) -> str:
        """Writes a truncating division that never traps: division by 0 gives 0, and the least integer divided by -1
        wraps."""
        ir_type = register_type(dtype)
        unsigned = dtypes.is_unsigned(dtype)
        (low, _), (divisor_low, divisor_high) = bounds(node.src[0]), bounds(node.src[1])
        instruction = {Ops.IDIV: "div", Ops.MOD: "rem"}[op]
        instruction = ("u" if unsigned or (low >= 0 and divisor_low > 0) else "s") + instruction
        hint = op.name.lower()
        if divisor_low > 0 or divisor_high < -1:
            return self.value(f"{instruction} {ir_type} {values[0]}, {values[1]}", hint)
        flags = register_type(dtypes.bool.vec(dtype.count))
        by_zero = self.value(f"icmp eq {ir_type} {values[1]}, {literal(0, dtype)}", "cmp")
        unsafe = by_zero
        if not unsigned:
            extreme = self.value(f"icmp eq {ir_type} {values[0]}, {literal(dtypes.min(dtype), dtype)}", "cmp")
            by_minus_one = self.value(f"icmp eq {ir_type} {values[1]}, {literal(-1, dtype)}", "cmp")
            overflow = self.value(f"and {flags} {extreme}, {by_minus_one}", "and")
            unsafe = self.value(f"or {flags} {by_zero}, {overflow}", "or")
        divisor = self.value(
            f"select {flags} {unsafe}, {ir_type} {literal(1, dtype)}, {ir_type} {values[1]}", "divisor"
        )
        result = self.value(f"{instruction} {ir_type} {values[0]}, {divisor}", hint)
        if op is Ops.MOD:
            return result
        return self.value(f"select {flags} {by_zero}, {ir_type} {literal(0, dtype)}, {ir_type} {result}", hint)

    # *** conversions ***

    def convert(self, instruction: str, value: str, source: DType | str, target: DType | str) -> str:
        source_type = source if isinstance(source, str) else register_type(source)
        target_type = target if isinstance(target, str) else register_type(target)
        return self.value(f"{instruction} {source_type} {value} to {target_type}", "cast")

    def cast(self, value: str, source: DType, target: DType) -> str:
        """Writes the conversion that `uop/semantics.py` defines, also for values outside an integer dtype's range."""
        if source is target:
            return value
        count = source.count
        f32 = dtypes.float32.vec(count)
        if dtypes.is_bool(target):
            if dtypes.is_float(source):
                wide_dtype = f32 if source.scalar in _COMPUTED_IN_FLOAT32 else source
                return self.compare(
                    Ops.CMPNE, wide_dtype, [self.cast(value, source, wide_dtype), literal(0.0, wide_dtype)]
                )
            return self.compare(Ops.CMPNE, source, [value, literal(0, source)])
        if source.scalar is dtypes.bfloat16:
            return self.cast(self.from_bfloat16(value, count), f32, target)
        if target.scalar is dtypes.bfloat16:
            return self.to_bfloat16(self.cast(value, source, f32), count)
        if source.scalar is dtypes.float16 and target is not f32:
            return self.cast(self.convert("fpext", value, source, f32), f32, target)
        if target.scalar is dtypes.float16 and source is not f32:
            narrowed = self.double_to_odd_float(value, count) if source.scalar is dtypes.float64 else None
            return self.convert("fptrunc", narrowed or self.cast(value, source, f32), f32, target)
        from_float, to_float = dtypes.is_float(source), dtypes.is_float(target)
        if from_float and to_float:
            return self.convert("fpext" if target.itemsize > source.itemsize else "fptrunc", value, source, target)
        if to_float:
            unsigned = dtypes.is_unsigned(source) or dtypes.is_bool(source)
            return self.convert("uitofp" if unsigned else "sitofp", value, source, target)
        if from_float:
            return self.float_to_int(value, source, target)
        source_bits = 1 if dtypes.is_bool(source) else source.bits
        if source_bits == target.bits:
            return value
        if source_bits > target.bits:
            return self.convert("trunc", value, source, target)
        unsigned = dtypes.is_unsigned(source) or dtypes.is_bool(source)
        return self.convert("zext" if unsigned else "sext", value, source, target)

    def float_to_int(self, value: str, source: DType, target: DType) -> str:
        """Converts through the signed integer type for which machines have one instruction."""
        if target.scalar is dtypes.uint64:
            return self.float_to_uint64(value, source)
        wide_type = dtypes.int64 if target.scalar in (dtypes.uint32, dtypes.int64) else dtypes.int32
        wide_dtype = wide_type.vec(source.count)
        integer = self.truncate(value, source, wide_dtype)
        return integer if wide_dtype.bits == target.bits else self.convert("trunc", integer, wide_dtype, target)

    def truncate(self, value: str, source: DType, target: DType) -> str:
        """Converts a float to int32 or int64. Values out of range become the least integer, as on x86."""
        integer = self.convert("fptosi", value, source, target)
        integer = self.value(f"freeze {register_type(target)} {integer}", "cast")
        if self.target.arch == "x86_64":
            return integer
        ir_type, flags, bits = register_type(source), register_type(dtypes.bool.vec(source.count)), target.scalar.bits
        limit = 2.0 ** (bits - 1)
        is_finer = (source.scalar, bits) == (dtypes.float64, 32)  # float64 has numbers between -2³¹ - 1 and -2³¹
        lower_test = (
            f"ogt {ir_type} {value}, {literal(-limit - 1, source)}"
            if is_finer
            else f"oge {ir_type} {value}, {literal(-limit, source)}"
        )
        is_above = self.value(f"fcmp {lower_test}", "above")
        is_below = self.value(f"fcmp olt {ir_type} {value}, {literal(limit, source)}", "below")
        fits = self.value(f"and {flags} {is_above}, {is_below}", "fits")
        words = register_type(target)
        return self.value(f"select {flags} {fits}, {words} {integer}, {words} {literal(-int(limit), target)}", "cast")

    def float_to_uint64(self, value: str, source: DType) -> str:
        """Converts a float to uint64. Numbers from 2⁶³ on are converted less 2⁶³, as int64, and get the highest bit.
        Negative ones wrap.

        `fptoui` gives other results for negative numbers with AVX-512 than without.
        """
        i64, u64 = (dtype.vec(source.count) for dtype in (dtypes.int64, dtypes.uint64))
        ir_type, bits, flags = register_type(source), register_type(u64), register_type(dtypes.bool.vec(source.count))
        is_large = self.value(f"fcmp oge {ir_type} {value}, {literal(2.0**63, source)}", "large")
        reduced = self.value(f"fsub {ir_type} {value}, {literal(2.0**63, source)}", "less")
        in_range = self.value(f"select {flags} {is_large}, {ir_type} {reduced}, {ir_type} {value}", "inside")
        integer = self.truncate(in_range, source, i64)
        highest = self.value(
            f"select {flags} {is_large}, {bits} {literal(1 << 63, u64)}, {bits} {literal(0, u64)}", "high"
        )
        return self.value(f"xor {bits} {integer}, {highest}", "cast")

    def from_bfloat16(self, bits: str, count: int) -> str:
        u16, u32, f32 = (dtype.vec(count) for dtype in (dtypes.uint16, dtypes.uint32, dtypes.float32))
        wide_bits = self.convert("zext", bits, u16, u32)
        high = self.value(f"shl {register_type(u32)} {wide_bits}, {literal(16, u32)}", "bits")
        return self.convert("bitcast", high, u32, f32)

    def to_bfloat16(self, value: str, count: int) -> str:
        """Converts to the nearest bfloat16, ties to even. NaN stays NaN."""
        u16, u32, f32 = (dtype.vec(count) for dtype in (dtypes.uint16, dtypes.uint32, dtypes.float32))
        ir_type, flags = register_type(u32), register_type(dtypes.bool.vec(count))
        bits = self.convert("bitcast", value, f32, u32)
        lowest_kept_bit = self.value(f"lshr {ir_type} {bits}, {literal(16, u32)}", "bits")
        lowest_kept_bit = self.value(f"and {ir_type} {lowest_kept_bit}, {literal(1, u32)}", "bits")
        rounding = self.value(f"add {ir_type} {lowest_kept_bit}, {literal(0x7FFF, u32)}", "bits")
        rounded = self.value(f"add {ir_type} {bits}, {rounding}", "bits")
        rounded = self.value(f"lshr {ir_type} {rounded}, {literal(16, u32)}", "bits")
        is_nan = self.value(f"fcmp uno {register_type(f32)} {value}, {literal(0.0, f32)}", "nan")
        with_nan = self.value(f"select {flags} {is_nan}, {ir_type} {literal(0x7FC0, u32)}, {ir_type} {rounded}", "bits")
        return self.convert("trunc", with_nan, u32, u16)

    def double_to_odd_float(self, value: str, count: int) -> str:
        """Converts a double to a float32 that rounds to the same float16 as the double.

        It rounds towards zero and sets the last bit if bits were lost (round to odd).
        """
        i32, f32, f64 = (dtype.vec(count) for dtype in (dtypes.int32, dtypes.float32, dtypes.float64))
        ir_type, double, flags = register_type(i32), register_type(f64), register_type(dtypes.bool.vec(count))
        nearest = self.convert("fptrunc", value, f64, f32)
        converted_back = self.convert("fpext", nearest, f32, f64)
        inexact = self.value(f"fcmp one {double} {converted_back}, {value}", "inexact")
        size, back_size = (
            self.call(double, f"llvm.fabs.{suffix(f64)}", (double, number), hint="abs")
            for number in (value, converted_back)
        )
        is_larger = self.value(f"fcmp ogt {double} {back_size}, {size}", "beyond")
        bits = self.convert("bitcast", nearest, f32, i32)
        step = self.convert("sext", is_larger, flags, i32)
        toward_zero = self.value(f"add {ir_type} {bits}, {step}", "bits")
        odd_bits = self.value(f"or {ir_type} {toward_zero}, {literal(1, i32)}", "bits")
        odd_if_inexact = self.value(f"select {flags} {inexact}, {ir_type} {odd_bits}, {ir_type} {bits}", "bits")
        return self.convert("bitcast", odd_if_inexact, i32, f32)

    def bitcast(self, value: str, source: DType, target: DType) -> str:
        if dtypes.is_bool(source) and target.itemsize == 1:
            return value if dtypes.is_bool(target) else self.convert("zext", value, source, target)
        if dtypes.is_bool(target) and source.itemsize == 1:
            return self.compare(Ops.CMPNE, source, [value, literal(0, source)])
        check_bitcast(source, target)
        if register_type(source) == register_type(target):
            return value
        return self.convert("bitcast", value, source, target)
