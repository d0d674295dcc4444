"""Writes the arithmetic of the linear program as C expressions, scalar and vector, and the helpers that they call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.c import parts
from tinyexplore.renderer.c.parts import BITS_ONLY, SCALAR, SHORT, short_name, type_name
from tinyexplore.renderer.program import RenderError, check_bitcast
from tinyexplore.renderer.text import ATOM, LOOSE, PRODUCT, SUM, TextWriter, infix
from tinyexplore.target import TENSOR_CORES
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds

_NAMED_AS_IN_LIBM = (
    Ops.SQRT,
    Ops.EXP,
    Ops.EXP2,
    Ops.LOG,
    Ops.LOG2,
    Ops.SIN,
    Ops.COS,
    Ops.TANH,
    Ops.ERF,
    Ops.FLOOR,
    Ops.POW,
)
LIBM = {Ops.MOD: "fmod", **{op: op.name.lower() for op in _NAMED_AS_IN_LIBM}}
_SYMBOL = {
    Ops.ADD: "+",
    Ops.MUL: "*",
    Ops.FDIV: "/",
    Ops.AND: "&",
    Ops.OR: "|",
    Ops.XOR: "^",
    Ops.SHL: "<<",
    Ops.SHR: ">>",
    Ops.CMPLT: "<",
    Ops.CMPLE: "<=",
    Ops.CMPEQ: "==",
    Ops.CMPNE: "!=",
}
_BOOL_SYMBOL = {Ops.ADD: "|", Ops.MAX: "|", Ops.OR: "|", Ops.MUL: "&", Ops.MIN: "&", Ops.AND: "&", Ops.XOR: "^"}
_MASK_COMPARE = {Ops.CMPLT: "~{0} & {1}", Ops.CMPLE: "~{0} | {1}", Ops.CMPEQ: "~({0} ^ {1})", Ops.CMPNE: "{0} ^ {1}"}


class CArithmetic(TextWriter):
    """Writes C expressions. `needs` collects the helpers that they call; `prelude` writes these helpers.

    as_x86: whether the machine converts floats outside an integer's range as `uop/semantics.py` defines it.
    """

    def __init__(self, uops: Sequence[UOp], *, as_x86: bool) -> None:
        super().__init__(uops)
        self.as_x86 = as_x86
        self._types: dict[DType, list[UOp]] = {}
        self._helpers: dict[str, tuple[str, list[UOp]]] = {}
        self._tables: dict[tuple[float, ...], int] = {}

    # *** definitions before the kernel ***

    def vector(self, dtype: DType) -> str:
        """Returns the name of a vector type. The prelude then defines it."""
        if dtype.count == 1:
            return type_name(dtype)
        if dtype.count & (dtype.count - 1):
            raise RenderError(f"{dtype!r}: C vectors have 2, 4, 8, … lanes")
        if dtype.scalar in BITS_ONLY:
            dtype = dtypes.uint16.vec(dtype.count)
        users = self._types.setdefault(dtype, [])
        if self.node is not None:
            users.append(self.node)
        return short_name(dtype)

    def vector_type(self, dtype: DType) -> str:
        """Returns the definition of a vector type."""
        return parts.vector_type(dtype)

    def type_of(self, node: UOp) -> str:
        assert isinstance(node.dtype, DType)
        return self.vector(node.dtype)

    def needs(self, name: str, text: Callable[[], str], types: Iterable[DType] = ()) -> str:
        """Adds the helper `name` to the prelude, after the helpers that its text needs. Returns the name."""
        for dtype in types:
            self.vector(dtype)
        if name not in self._helpers:
            self._helpers[name] = (text(), [])
        if self.node is not None:
            self._helpers[name][1].append(self.node)
        return name

    def conversion(self, name: str) -> str:
        for helper in parts.CONVERSIONS_NEED.get(name, ()):
            self.conversion(helper)
        return self.needs(name, lambda: parts.CONVERSIONS[name])

    def prelude(self) -> list[SourceLine]:
        """Returns vector types and helpers, each line with the UOps that requested it."""
        definitions = []
        for dtype, users in self._types.items():
            for text in self.vector_type(dtype).split("\n"):
                definitions.append(SourceLine(text, tuple(dict.fromkeys(users))))
        for text, users in self._helpers.values():
            for line in text.split("\n"):
                definitions.append(SourceLine(line, tuple(dict.fromkeys(users))))
        return definitions

    def constant(self, node: UOp) -> str:
        assert isinstance(node.dtype, DType)
        text = parts.literal(node.arg, node.dtype)
        return text if node.dtype.count == 1 else self.splat(text, node.dtype)

    def splat(self, text: str, dtype: DType) -> str:
        bits_dtype = dtypes.uint16.vec(dtype.count) if dtype.scalar in BITS_ONLY else dtype
        name = self.needs(f"splat_{short_name(bits_dtype)}", lambda: parts.splat_text(bits_dtype), types=(bits_dtype,))
        return f"{name}({text})"

    # *** operations ***

    def alu(self, node: UOp) -> tuple[str, int]:
        """Returns the expression of an ALU node, and its precedence."""
        op, dtype = node.op, node.dtype
        assert isinstance(dtype, DType)
        source = node.src[0].dtype
        assert isinstance(source, DType)
        if op is Ops.CAST:
            return self.cast(self.operand(node.src[0], ATOM), source, dtype), SUM
        if op is Ops.BITCAST:
            return self.bitcast(self.operand(node.src[0], ATOM), source, dtype), SUM
        if op is Ops.WHERE:
            return self.where(node, source, dtype), LOOSE
        if source.count == 1 and (source is dtypes.int64 or op in OpGroups.COMPARE) and source not in BITS_ONLY:
            if op in (Ops.ADD, Ops.MUL) or op in OpGroups.COMPARE:
                return infix(self, node)
        if op in (Ops.IDIV, Ops.MOD) and dtypes.is_int(dtype):
            return self.divide(node, op, dtype)
        values = [self.operand(src, ATOM) for src in node.src]
        return self.arithmetic(op, source, values)

    def combine(self, op: Ops, dtype: DType, left: str, right: str) -> str:
        """Combines two scalars of `dtype` by ADD, MUL, MAX or MIN."""
        return self.arithmetic(op, dtype, [left, right])[0]

    def arithmetic(self, op: Ops, dtype: DType, values: list[str]) -> tuple[str, int]:
        """Returns `op` on expressions that all have `dtype`, and its precedence."""
        if dtype.scalar in BITS_ONLY:
            wide_dtype = dtypes.float32.vec(dtype.count)
            text, tightness = self.arithmetic(op, wide_dtype, [self.cast(value, dtype, wide_dtype) for value in values])
            return (text, tightness) if op in OpGroups.COMPARE else (self.cast(f"({text})", wide_dtype, dtype), ATOM)
        if op in OpGroups.COMPARE:
            return self.compare(op, dtype, values)
        if dtypes.is_bool(dtype):
            return self.bool_arithmetic(op, dtype, values)
        if op in (Ops.MAX, Ops.MIN):
            return self.extreme(op, dtype, values), ATOM
        if dtypes.is_float(dtype) and op in LIBM:
            return self.libm(op, dtype, values), ATOM
        if op is Ops.NEG:
            return (
                f"-{values[0]}" if dtype.count > 1 or dtype.itemsize >= 4 else f"({SCALAR[dtype]})-{values[0]}"
            ), SUM
        if op in OpGroups.DOT:
            return self.dot(op, dtype, values), ATOM
        if op is Ops.SCALE:
            return self.scale(dtype, values), ATOM
        if op is Ops.MULACC:
            text, tightness = f"{values[0]} * {values[1]} + {values[2]}", SUM
        elif op in _SYMBOL and (op is Ops.FDIV) <= dtypes.is_float(dtype):
            tightness = {Ops.MUL: PRODUCT, Ops.ADD: SUM}.get(op, LOOSE)
            text = f"{values[0]} {_SYMBOL[op]} {values[1]}"
        else:
            raise RenderError(f"{op.name} of {dtype!r}: C has no such operation")
        if dtype.count == 1 and dtypes.is_int(dtype) and dtype.itemsize < 4:
            return f"({SCALAR[dtype]})({text})", SUM  # C computes small integers as int
        return text, tightness

    def dot(self, op: Ops, dtype: DType, values: list[str]) -> str:
        """Calls a helper that multiplies words part by part and adds the products. `dtype` is the dtype of the
        words."""
        words, result = dtypes.uint32, dtypes.float32 if op is Ops.DOT_BF16 else dtypes.int32
        if op is Ops.DOT_BF16:
            self.conversion("bf16_to_f32")
        name = self.needs(op.name.lower(), lambda: parts.dot_text(op))
        if dtype.count == 1:
            return f"{name}({', '.join(values)})"
        vectors = (words.vec(dtype.count), result.vec(dtype.count))
        lanes = f"{name}_x{dtype.count}"
        self.needs(lanes, lambda: parts.dot_lanes_text(lanes, name, *vectors), types=vectors)
        return f"{lanes}({', '.join(values)})"

    def tiles(self, node: UOp) -> str:
        """Returns a product of tile registers in plain C. Of the compilers, only Clang has types for tile registers."""
        core, (words, _, result) = TENSOR_CORES[node.arg], [src.dtype for src in node.src]
        op = Ops.DOT_BF16 if core.factor is dtypes.bfloat16 else Ops.DOT_I8
        if op is Ops.DOT_BF16:
            self.conversion("bf16_to_f32")
        scalar = self.needs(op.name.lower(), lambda: parts.dot_text(op))
        m, n, k = core.dims
        shape = (m, n, k // core.words)
        self.needs(node.arg, lambda: parts.tiles_text(node.arg, scalar, words, result, shape), types=(words, result))
        return f"{node.arg}({', '.join([self.operand(src) for src in node.src])})"

    def compare(self, op: Ops, dtype: DType, values: list[str]) -> tuple[str, int]:
        if dtype.count == 1:
            return f"{values[0]} {_SYMBOL[op]} {values[1]}", LOOSE
        if dtypes.is_bool(dtype):
            return _MASK_COMPARE[op].format(*values), LOOSE
        mask = self.vector(dtypes.bool.vec(dtype.count))
        self.vector(parts.mask_int(dtype))
        return f"__builtin_convertvector({values[0]} {_SYMBOL[op]} {values[1]}, {mask})", ATOM

    def bool_arithmetic(self, op: Ops, dtype: DType, values: list[str]) -> tuple[str, int]:
        if op is Ops.NEG:
            return values[0], ATOM
        if op is Ops.MULACC:
            return f"({values[0]} & {values[1]}) | {values[2]}", LOOSE
        if op not in _BOOL_SYMBOL:
            raise RenderError(f"{op.name} of {dtype!r}: C has no such operation on bools")
        return f"{values[0]} {_BOOL_SYMBOL[op]} {values[1]}", LOOSE

    def extreme(self, op: Ops, dtype: DType, values: list[str]) -> str:
        name = f"{op.name.lower()}_{short_name(dtype)}"
        types = (dtype,) if dtype.count == 1 else (dtype, parts.mask_int(dtype))
        self.needs(name, lambda: parts.extreme_text(op, dtype), types=types)
        return f"{name}({', '.join(values)})"

    def select(self, dtype: DType) -> str:
        dtype = dtypes.uint16.vec(dtype.count) if dtype.scalar in BITS_ONLY else dtype
        types = (dtype, parts.mask_int(dtype), dtypes.bool.vec(dtype.count))
        return self.needs(f"select_{short_name(dtype)}", lambda: parts.select_text(dtype), types=types)

    def where(self, node: UOp, source: DType, dtype: DType) -> str:
        yes, no = self.operand(node.src[1], ATOM), self.operand(node.src[2], ATOM)
        if source.count == 1:
            return f"{self.operand(node.src[0], ATOM)} ? {yes} : {no}"
        condition = self.operand(node.src[0], ATOM)
        if dtypes.is_bool(dtype):
            return f"({condition} & {yes}) | (~{condition} & {no})"
        return f"{self.select(dtype)}({condition}, {yes}, {no})"

    def libm(self, op: Ops, dtype: DType, values: list[str]) -> str:
        function = LIBM[op] + ("f" if dtype.scalar is dtypes.float32 else "")
        if dtype.count == 1:
            return f"{function}({', '.join(values)})"
        call = f"{function}({', '.join(f'{letter}[i]' for letter in 'xyz'[: len(values)])})"
        name = f"{LIBM[op]}_{short_name(dtype)}"
        self.needs(name, lambda: parts.lanes_text(name, dtype, dtype, call, len(values)), types=(dtype,))
        return f"{name}({', '.join(values)})"

    def scale(self, dtype: DType, values: list[str]) -> str:
        scalar = self.needs(f"scale_{short_name(dtype.scalar)}", lambda: parts.scale_text(dtype.scalar))
        if dtype.count == 1:
            return f"{scalar}({', '.join(values)})"
        name = f"scale_{short_name(dtype)}"
        call = f"{scalar}(x[i], y[i])"
        self.needs(name, lambda: parts.lanes_text(name, dtype, dtype, call, 2), types=(dtype,))
        return f"{name}({', '.join(values)})"

    def table_name(self, numbers: tuple[float, ...], target: DType) -> str:
        """Returns the name of the function that looks up a number in a table."""
        return f"table{self._tables.setdefault(numbers, len(self._tables))}_{short_name(target)}"

    def table(self, node: UOp) -> str:
        target, source = node.dtype, node.src[0].dtype
        assert isinstance(target, DType) and isinstance(source, DType)
        name = self.table_name(node.arg, target)
        types = [dtype for dtype in (target, source) if dtype.count > 1]
        self.needs(name, lambda: parts.table_text(name, node.arg, target, source), types=types)
        return f"{name}({self.operand(node.src[0])})"

    def divide(self, node: UOp, op: Ops, dtype: DType) -> tuple[str, int]:
        left, right = (self.operand(src, ATOM) for src in node.src)
        low, high = bounds(node.src[1])
        if low > 0 or high < -1:
            text = f"{left} {'/' if op is Ops.IDIV else '%'} {right}"
            is_small = dtype.count == 1 and dtype.itemsize < 4
            return (f"({SCALAR[dtype]})({text})", SUM) if is_small else (text, LOOSE)
        name = self.divisor(op, dtype.scalar)
        if dtype.count > 1:
            function = name
            name = f"{op.name.lower()}_{short_name(dtype)}"
            call = f"{function}(x[i], y[i])"
            self.needs(name, lambda: parts.lanes_text(name, dtype, dtype, call, 2), types=(dtype,))
        return f"{name}({left}, {right})", ATOM

    def divisor(self, op: Ops, dtype: DType) -> str:
        """Returns the name of the function that divides any two numbers."""
        return self.needs(f"{op.name.lower()}_{short_name(dtype)}", lambda: parts.divide_text(op, dtype))

    # *** conversions ***

    def cast(self, text: str, source: DType, target: DType) -> str:
        """Returns C's conversion of an expression in parentheses or an atom. Helpers convert 16-bit floats on their
        bits."""
        if source is target:
            return text
        count = source.count
        f32 = dtypes.float32.vec(count)
        if source.scalar in BITS_ONLY:
            widened = self.convert_bits(f"{SHORT[source.scalar]}_to_f32", text, source, f32)
            return self.cast(widened, f32, target)
        if target.scalar in BITS_ONLY:
            if target.scalar is dtypes.float16 and source.scalar is dtypes.float64:
                return self.convert_bits("f64_to_f16", text, source, target)
            single = self.cast(text, source, f32)
            return self.convert_bits(f"f32_to_{SHORT[target.scalar]}", f"({single})", f32, target)
        if dtypes.is_float(source) and dtypes.is_int(target):
            if not self.as_x86:
                return self.float_to_int(text, source, target)
            if target.scalar is dtypes.uint64:
                return self.float_to_uint64(text, source, target)
        if count == 1:
            return self.scalar_cast(text, source, target)
        name = self.vector(target)
        if dtypes.is_bool(target):
            self.vector(parts.mask_int(source))
            return f"__builtin_convertvector({text} != 0, {name})"
        if dtypes.is_bool(source):
            return f"__builtin_convertvector({text} & 1, {name})"
        step = conversion_type(source, target)
        if step is not None:
            text = f"__builtin_convertvector({text}, {self.vector(step.vec(count))})"
        return f"__builtin_convertvector({text}, {name})"

    def float_to_uint64(self, text: str, source: DType, target: DType) -> str:
        """Converts a float to uint64. Negative numbers wrap.

        C leaves negative numbers undefined, and compilers give different results with and without AVX-512.
        """
        name = self.needs("f64_to_u64", lambda: parts.TO_UINT64)
        if source.count == 1:
            return f"{name}({text})"
        return self.by_lane(f"{name}_{short_name(source)}", name, source, target) + f"({text})"

    def float_to_int(self, text: str, source: DType, target: DType) -> str:
        """Calls a helper that tests whether the number fits, because C leaves other conversions undefined."""
        name, helpers = parts.float_to_int_texts(source.scalar, target.scalar)
        for helper, helper_text in helpers.items():
            self.needs(helper, lambda helper_text=helper_text: helper_text)  # type: ignore[misc]
        result = type_name(target.scalar)
        if source.count == 1:
            return (
                f"{name}({text})"
                if helpers[name].startswith(f"static inline {result} ")
                else f"({result}){name}({text})"
            )
        lanes = f"{short_name(source)}_to_{short_name(target)}"
        return self.by_lane(lanes, name, source, target) + f"({text})"

    def by_lane(self, name: str, function: str, source: DType, target: DType) -> str:
        """Returns the name of a helper that calls `function` for each lane."""
        call = f"{function}(x[i])"
        return self.needs(name, lambda: parts.lanes_text(name, target, source, call, 1), types=(target, source))

    def scalar_cast(self, text: str, source: DType, target: DType) -> str:
        if dtypes.is_bool(target):
            return f"({text} != 0)"
        step = conversion_type(source, target)
        return f"({SCALAR[target]})" + (f"({SCALAR[step]})" if step is not None else "") + text

    def convert_bits(self, name: str, text: str, source: DType, target: DType) -> str:
        self.conversion(name)
        if source.count == 1:
            return f"{name}({text})"
        vectors = [dtypes.uint16.vec(x.count) if x.scalar in BITS_ONLY else x for x in (target, source)]
        lanes = f"{name}_x{source.count}"
        self.needs(lanes, lambda: parts.lanes_text(lanes, vectors[0], vectors[1], f"{name}(x[i])", 1), types=vectors)
        return f"{lanes}({text})"

    def bitcast(self, text: str, source: DType, target: DType) -> str:
        check_bitcast(source, target)
        if dtypes.is_bool(source) or dtypes.is_bool(target):
            return self.cast(text, source, target)
        if source.count > 1 or target.count > 1:
            return f"({self.vector(target)}){text}"
        if SCALAR[source] == SCALAR[target]:
            return text
        source_type, target_type = SCALAR[source], SCALAR[target]
        name = f"bits_{SHORT[source]}_as_{SHORT[target]}"
        body = f"{target_type} y; memcpy(&y, &x, {source.itemsize}); return y;"
        self.needs(name, lambda: f"static inline {target_type} {name}({source_type} x) {{ {body} }}")
        return f"{name}({text})"


def conversion_type(source: DType, target: DType) -> DType | None:
    """Returns the integer type through which floats are converted to a narrower or unsigned one, as on the machine;
    or None."""
    if not (dtypes.is_float(source) and dtypes.is_int(target)) or target.itemsize == 8:
        return None
    wide_type = dtypes.int64 if target.scalar is dtypes.uint32 else dtypes.int32
    return None if wide_type is target.scalar else wide_type
