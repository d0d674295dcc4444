"""Writes the arithmetic of the linear program as expressions of WebAssembly, on scalars and on registers."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.wasm.casts import CastWriter
from tinyexplore.renderer.wasm.values import (
    BITS_ONLY,
    WasmValue,
    constant,
    registers,
    scalar_type,
    shape,
    sign,
    unsupported_error,
)
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds

_BOOLS = {
    **dict.fromkeys((Ops.ADD, Ops.MAX, Ops.OR), "or"),
    **dict.fromkeys((Ops.MUL, Ops.MIN, Ops.AND), "and"),
    Ops.XOR: "xor",
}
_BITS = {Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor"}
_FLOATS = {
    Ops.ADD: "add",
    Ops.MUL: "mul",
    Ops.FDIV: "div",
    Ops.SQRT: "sqrt",
    Ops.FLOOR: "floor",
    Ops.NEG: "neg",
}
_COMPARE = {Ops.CMPLT: "lt", Ops.CMPLE: "le", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
_EXTREME = {Ops.MAX: "max", Ops.MIN: "min"}


class WasmArithmetic(CastWriter):
    """Operations on `WasmValue`s."""

    def alu(self, node: UOp) -> WasmValue:
        """Returns the value of an ALU node, as expressions over locals."""
        op, dtype = node.op, node.dtype
        source = node.src[0].dtype
        assert isinstance(dtype, DType) and isinstance(source, DType)
        if op is Ops.WHERE:
            return self.where(node, dtype)
        if op is Ops.CAST:
            return self.cast_node(node, source, dtype)
        if op is Ops.BITCAST:
            is_vector = source.count > 1
            value = (
                self.operand(node.src[0]) if is_vector else WasmValue((self.number(node.src[0], scalar_type(source)),))
            )
            return self.bitcast(value, source, dtype)
        if source is dtypes.int64:
            return self.long_arithmetic(node, op)
        values = [self.operand(src) for src in node.src]
        if op in (Ops.IDIV, Ops.MOD) and dtypes.is_int(dtype) and dtype.count == 1:
            return WasmValue((self.divide(node, op, dtype, scalar_type(dtype), *[value.text for value in values]),))
        if op in (Ops.SHL, Ops.SHR) and dtype.count > 1:
            return self.shift_lanes(op, dtype, values, node.src[1])
        if (
            op in _EXTREME
            and dtypes.is_float(dtype)
            and node.src[1].op is Ops.CONST
            and node.src[1].arg == node.src[1].arg
        ):
            return self.extreme_of_number(op, dtype, values)
        return self.arithmetic(op, source, values)

    def long_arithmetic(self, node: UOp, op: Ops) -> WasmValue:
        """Returns arithmetic of int64 scalars, in 32 bits if every result that is used fits."""
        is_narrow = all([src in self.narrow for src in node.src]) and (node in self.narrow or op in OpGroups.COMPARE)
        wasm_type = "i32" if is_narrow else "i64"
        texts = [self.number(src, wasm_type) for src in node.src]
        if op in (Ops.IDIV, Ops.MOD):
            return WasmValue((self.divide(node, op, dtypes.int64, wasm_type, *texts),))
        return WasmValue((self.int_text(op, wasm_type, "s", texts),))

    def arithmetic(self, op: Ops, dtype: DType, values: Sequence[WasmValue]) -> WasmValue:
        """Returns `op` on values that all have `dtype`."""
        if dtype.scalar in BITS_ONLY:
            wide_dtype = dtypes.float32.vec(dtype.count)
            result = self.arithmetic(op, wide_dtype, [self.cast(value, dtype, wide_dtype) for value in values])
            return result if op in OpGroups.COMPARE else self.cast(result, wide_dtype, dtype)
        if dtype.count > 1:
            return self.lanes_arithmetic(op, dtype, values)
        return WasmValue((self.scalar_arithmetic(op, dtype, [value.text for value in values]),))

    # *** scalars ***

    def scalar_arithmetic(self, op: Ops, dtype: DType, texts: list[str]) -> str:
        wasm_type = scalar_type(dtype)
        if op is Ops.MULACC:
            return self.scalar_arithmetic(Ops.ADD, dtype, [self.scalar_arithmetic(Ops.MUL, dtype, texts[:2]), texts[2]])
        if dtypes.is_bool(dtype):
            if op is Ops.NEG:
                return texts[0]
            if op in _BOOLS:
                return f"(i32.{_BOOLS[op]} {' '.join(texts)})"
        elif dtypes.is_float(dtype):
            if op is Ops.MOD:
                texts = texts if wasm_type == "f64" else [f"(f64.promote_f32 {text})" for text in texts]
                text = f"(call ${self.needs('fmod')} {' '.join(texts)})"
                return text if wasm_type == "f64" else f"(f32.demote_f64 {text})"
            name = _FLOATS.get(op) or _EXTREME.get(op) or _COMPARE.get(op)
            if name is None:
                raise unsupported_error(f"{op.name} of {dtype.scalar!r}")
            return f"({wasm_type}.{name} {' '.join(texts)})"
        text = self.int_text(op, wasm_type, sign(dtype), texts)
        exact = op in OpGroups.COMPARE or op in _BITS or op in _EXTREME or op in (Ops.SHR, Ops.MOD)
        return text if exact else self.wrap_integer(text, dtype)

    def int_text(self, op: Ops, wasm_type: str, sign: str, texts: list[str]) -> str:
        """Returns `op` on integers of the type `wasm_type`, without wrapping to a narrower dtype."""
        joined = " ".join(texts)
        if op is Ops.NEG:
            return f"({wasm_type}.sub ({wasm_type}.const 0) {joined})"
        if op in (Ops.CMPLT, Ops.CMPLE):
            return f"({wasm_type}.{_COMPARE[op]}_{sign} {joined})"
        if op in _COMPARE:
            return f"({wasm_type}.{_COMPARE[op]} {joined})"
        if op in _EXTREME:
            return f"(select {joined} ({wasm_type}.{'gt' if op is Ops.MAX else 'lt'}_{sign} {joined}))"
        if op is Ops.SHR:
            return f"({wasm_type}.shr_{sign} {joined})"
        if op is Ops.MULACC:
            return f"({wasm_type}.add ({wasm_type}.mul {texts[0]} {texts[1]}) {texts[2]})"
        if op in (Ops.IDIV, Ops.MOD):
            return self.guarded_divide(op, wasm_type, sign, joined)
        name = {Ops.ADD: "add", Ops.MUL: "mul", Ops.SHL: "shl", **_BITS}.get(op)
        if name is None:
            raise unsupported_error(f"{op.name} of integers")
        return f"({wasm_type}.{name} {joined})"

    def guarded_divide(self, op: Ops, wasm_type: str, sign: str, joined: str) -> str:
        """Returns a division that never traps: division by 0 gives 0."""
        name = (
            f"div_{wasm_type}"
            if op is Ops.IDIV and sign == "s"
            else f"{'div' if op is Ops.IDIV else 'rem'}_{wasm_type}_{sign}"
        )
        return f"(call ${self.needs(name)} {joined})"

    def divide(self, node: UOp, op: Ops, dtype: DType, wasm_type: str, left: str, right: str) -> str:
        low, high = bounds(node.src[1])
        letter = sign(dtype)
        if low > 0 or high < -1:
            if bounds(node.src[0])[0] >= 0 and low > 0:
                letter = "u"
            return self.wrap_integer(
                f"({wasm_type}.{'div' if op is Ops.IDIV else 'rem'}_{letter} {left} {right})", dtype
            )
        return self.wrap_integer(self.guarded_divide(op, wasm_type, letter, f"{left} {right}"), dtype)

    def where(self, node: UOp, dtype: DType) -> WasmValue:
        condition = node.src[0]
        if condition.dtype.count == 1:
            wasm_type = self.kind(node)
            yes, no = (
                [self.number(src, wasm_type)] if dtype.count == 1 else self.operand(src).parts for src in node.src[1:]
            )
            if dtypes.is_bool(dtype) and dtype.count > 1:
                yes, no = (self.mask(src, 1).parts for src in node.src[1:])
            test = self.operand(condition).text
            return WasmValue(tuple(f"(select {x} {y} {test})" for x, y in zip(yes, no)), self.lane_of(dtype))
        lane = self.lane_of(dtype) if not dtypes.is_bool(dtype) else self.operand(condition).lane
        arms = [self.mask(src, lane) if dtypes.is_bool(dtype) else self.operand(src) for src in node.src[1:]]
        mask = self.mask(condition, lane)
        parts = zip(arms[0].parts, arms[1].parts, mask.parts)
        return WasmValue(tuple(f"(v128.bitselect {x} {y} {m})" for x, y, m in parts), lane)

    # *** registers ***

    def lanes_arithmetic(self, op: Ops, dtype: DType, values: Sequence[WasmValue]) -> WasmValue:
        """Returns arithmetic register by register, or lane by lane if there is no instruction."""
        if dtypes.is_bool(dtype):
            return self.masks(op, dtype.count, values)
        if op is Ops.MULACC:
            product = self.lanes_arithmetic(Ops.MUL, dtype, values[:2])
            return self.lanes_arithmetic(Ops.ADD, dtype, [product, values[2]])
        if op in (Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR):
            return self.lane_by_lane(op, dtype, values)
        if op in _EXTREME and (dtypes.is_float(dtype) or dtype.itemsize == 8):
            values = [self.store_in_locals(value) for value in values]
        texts = [self.register(op, dtype, list(parts)) for parts in zip(*[value.parts for value in values])]
        return WasmValue(tuple(texts), dtype.scalar.itemsize)

    def register(self, op: Ops, dtype: DType, texts: list[str]) -> str:
        """Returns `op` on one register of each value."""
        wasm_type, joined = shape(dtype), " ".join(texts)
        if op in _BITS:
            return f"(v128.{_BITS[op]} {joined})"
        if dtypes.is_float(dtype):
            if op in _EXTREME:  # the greater one, as on x86: if the first is NaN, the first
                greater = f"({wasm_type}.p{_EXTREME[op]} {texts[1]} {texts[0]})"
                return f"(v128.bitselect {texts[0]} {greater} ({wasm_type}.ne {texts[0]} {texts[0]}))"
            name = _FLOATS.get(op) or _COMPARE.get(op)
            if name is None:
                raise unsupported_error(f"{op.name} of {dtype.scalar!r}")
            return f"({wasm_type}.{name} {joined})"
        letter = sign(dtype)
        if dtype.scalar.itemsize == 8 and letter == "u" and (op in _EXTREME or op in (Ops.CMPLT, Ops.CMPLE)):
            flip = constant(-(1 << 63), dtypes.int64.vec(2)).text  # only signed comparisons exist
            joined = " ".join([f"(v128.xor {text} {flip})" for text in texts])
        if op in _EXTREME:
            if dtype.scalar.itemsize < 8:
                return f"({wasm_type}.{_EXTREME[op]}_{letter} {joined})"
            test = f"({wasm_type}.{'gt' if op is Ops.MAX else 'lt'}_s {joined})"
            return f"(v128.bitselect {texts[0]} {texts[1]} {test})"
        if op in (Ops.CMPLT, Ops.CMPLE):
            return f"({wasm_type}.{_COMPARE[op]}_{'s' if dtype.scalar.itemsize == 8 else letter} {joined})"
        if op is Ops.MUL and dtype.scalar.itemsize == 1:
            low, high = (f"(i16x8.extmul_{half}_i8x16_u {joined})" for half in ("low", "high"))
            bytes_only = constant(0xFF, dtypes.uint16.vec(8)).text
            return f"(i8x16.narrow_i16x8_u (v128.and {low} {bytes_only}) (v128.and {high} {bytes_only}))"
        name = {Ops.ADD: "add", Ops.MUL: "mul", Ops.NEG: "neg", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}.get(op)
        if name is None:
            raise unsupported_error(f"{op.name} of {dtype.scalar!r}")
        return f"({wasm_type}.{name} {joined})"

    def extreme_of_number(self, op: Ops, dtype: DType, values: list[WasmValue]) -> WasmValue:
        """Returns the extreme of any value and a constant number. A NaN in the first stays."""
        if dtype.scalar in BITS_ONLY or dtype.count == 1:
            return self.arithmetic(op, dtype, values)
        name = f"{shape(dtype)}.p{_EXTREME[op]}"
        return WasmValue(tuple(f"({name} {x} {y})" for x, y in zip(*[value.parts for value in values])), values[0].lane)

    def masks(self, op: Ops, count: int, values: Sequence[WasmValue]) -> WasmValue:
        """Computes an operation of bools, which are masks, after resizing them to one width."""
        lane = values[0].lane
        rows = list(zip(*[self.resize_lanes(value, lane, count, signed=True).parts for value in values]))
        if op is Ops.NEG:
            return values[0]
        forms = {
            Ops.CMPLT: "(v128.andnot {1} {0})",
            Ops.CMPLE: "(v128.or (v128.not {0}) {1})",
            Ops.CMPEQ: "(v128.not (v128.xor {0} {1}))",
            Ops.CMPNE: "(v128.xor {0} {1})",
            Ops.MULACC: "(v128.or (v128.and {0} {1}) {2})",
            **{comparison: f"(v128.{name} {{0}} {{1}})" for comparison, name in _BOOLS.items()},
        }
        if op not in forms:
            raise unsupported_error(f"{op.name} of bools")
        return WasmValue(tuple(forms[op].format(*row) for row in rows), lane)

    def shift_lanes(self, op: Ops, dtype: DType, values: list[WasmValue], counts: UOp) -> WasmValue:
        """Shifts all lanes by one count if the counts are known to be equal; else lane by lane."""
        is_one_count = counts.op is Ops.CONST or (counts.op is Ops.VECTORIZE and len(set(counts.src)) == 1)
        if not is_one_count:
            return self.lane_by_lane(op, dtype, values)
        if counts.op is Ops.CONST:
            count = f"(i32.const {counts.arg})"
        else:
            count = self.number(counts.src[0], "i32")
        name = f"{shape(dtype)}.{'shl' if op is Ops.SHL else f'shr_{sign(dtype)}'}"
        return WasmValue(tuple(f"({name} {part} {count})" for part in values[0].parts), values[0].lane)

    def lane_by_lane(self, op: Ops, dtype: DType, values: Sequence[WasmValue]) -> WasmValue:
        scalar = dtype.scalar
        locals_of = [self.store_in_locals(value) for value in values]
        lanes = []
        for number in range(dtype.count):
            texts = [self.lane(value, number, scalar) for value in locals_of]
            lanes.append(self.scalar_arithmetic(op, scalar, texts))
        return self.assemble_lanes(lanes, dtype)

    def horizontal(self, op: Ops, value: WasmValue, dtype: DType) -> str:
        """Combines all lanes: lane i with lane i + half."""
        count = dtype.count
        while count > 1:
            count //= 2
            value = self.store_in_locals(value)
            half_bytes = count * value.lane
            if half_bytes >= 16:
                cut = registers(count, value.lane)
                lower, upper = WasmValue(value.parts[:cut], value.lane), WasmValue(value.parts[cut:], value.lane)
            else:
                byte_numbers = [*range(half_bytes, 2 * half_bytes)] * (16 // half_bytes)
                lower, upper = value, self.permute_bytes(value, byte_numbers)
            value = self.arithmetic(op, dtype.scalar.vec(max(count, 2)), [lower, upper])
        return self.lane(value, 0, dtype.scalar)
