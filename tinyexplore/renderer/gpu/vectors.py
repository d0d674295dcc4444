"""Renders OpenCL C for a device that is a CPU: the kernels of the C renderer, in OpenCL's own vector types.

A work-item is a thread: each does its share of the THREAD axis, and is the only item of its group. Vectors of bools are
masks, `charN` of 0 and -1, and 16-bit floats are stored as their bits, as in `renderer/c`. Types and helpers have the C
renderer's names here; `translate_names` replaces them by OpenCL's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.c.arithmetic import LIBM, conversion_type
from tinyexplore.renderer.c.parts import (
    BITS_ONLY,
    SCALAR,
    SHORT,
    literal,
    mask_int,
    memory_name,
    short_name,
    type_name,
)
from tinyexplore.renderer.gpu.dialects import OPENCL, WIDTHS
from tinyexplore.renderer.gpu.renderer import WRAPPING, GPUWriter, check_types
from tinyexplore.renderer.program import (
    STACK_LIMIT_BYTES,
    ProgramSpec,
    RenderError,
    check_bitcast,
    spec_of,
)
from tinyexplore.renderer.text import ATOM, LOOSE
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.bounds import bounds, is_exact

MAX_LANES = 16
LINE_BYTES = 64  # scratch memory starts at a cache line
_UNSIGNED = {
    dtypes.int8: dtypes.uint8,
    dtypes.int16: dtypes.uint16,
    dtypes.int32: dtypes.uint32,
    dtypes.int64: dtypes.uint64,
}
_CONVERSIONS = {  # conversions of vectors, by the name of the scalar helper; {n}: lanes
    "f16_to_f32": "return vload_half{n}(0, (const half*)&x);",
    "f32_to_f16": "u16x{n} u; vstore_half{n}_rte(x, 0, (half*)&u); return u;",
    "f64_to_f16": "u16x{n} u; vstore_half{n}_rte(x, 0, (half*)&u); return u;",
    "bf16_to_f32": "return as_f32x{n}(convert_u32x{n}(x) << (u32x{n})(16));",
    "f32_to_bf16": (
        "u32x{n} u = as_u32x{n}(x), r = u + (u32x{n})(0x7fff) + (u >> (u32x{n})(16) & (u32x{n})(1));\n"
        "  return convert_u16x{n}(x != x ? (u32x{n})(0x7fc0) : r >> (u32x{n})(16));"
    ),
}


def scratch_in_memory(uops: Sequence[UOp]) -> list[tuple[UOp, int]]:
    """Returns the scratch memory that is too large for a stack, with the bytes of each work-item.

    It is a buffer after a program's other arguments; each work-item has a part of it.
    """
    buffers = []
    for node in uops:
        if node.op is Ops.DEFINE_LOCAL:
            assert isinstance(node.dtype, PtrDType)
            nbytes = node.dtype.size * node.dtype.base.itemsize
            if nbytes > STACK_LIMIT_BYTES:
                buffers.append((node, -(-nbytes // LINE_BYTES) * LINE_BYTES))
    return buffers


class VectorRenderer:
    """Renders a kernel for a CPU as OpenCL C."""

    language = "opencl"

    def __init__(self, target: Target, compiler: str) -> None:
        self.target = target
        self.compiler = compiler

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`. Its work-items divide the THREAD axis, so that calls
        need not.

        Raises RenderError if it uses a dtype that the target lacks.
        """
        check_types(self.target, uops)
        lines = VectorWriter(uops, as_x86=self.target.arch == "x86_64").write(name)
        spec = spec_of(name, self.target, uops, self.language, lines, self.compiler)
        return replace(spec, thread_end=None)


class VectorWriter(GPUWriter):
    """Writes the code of one work-item."""

    def __init__(self, uops: Sequence[UOp], *, as_x86: bool) -> None:
        super().__init__(uops, OPENCL, as_x86=as_x86)
        self.names = dict(OPENCL.names)
        self.scratch = {node: number for number, (node, _) in enumerate(scratch_in_memory(uops))}
        of_all = [f"__global {_element_name(node)}* restrict scratch{number}" for node, number in self.scratch.items()]
        self.dialect = replace(OPENCL, further=tuple(of_all))

    def write_node(self, node: UOp) -> None:
        if node.op is Ops.GEP:
            lane = f"{self.operand(node.src[0], ATOM)}.{_lane_name(node.arg)}"
            self.declare(node, f"{lane} != 0" if dtypes.is_bool(node.src[0].dtype) else lane)
        elif node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD:
            size = self.operand(node.src[0], ATOM)
            self.line(
                f"int64_t start = {size} * get_global_id(0) / get_global_size(0), "
                f"stop = {size} * (get_global_id(0) + 1) / get_global_size(0);"
            )
            super().write_node(node)
        else:
            super().write_node(node)

    # *** types ***

    def vector(self, dtype: DType) -> str:
        if dtype.count == 1:
            return type_name(dtype)
        if dtype.count not in WIDTHS:
            raise RenderError(f"{dtype!r}: OpenCL's vectors have 2, 4, 8 or 16 lanes")
        return short_name(dtype)

    def splat(self, text: str, dtype: DType) -> str:
        return f"({self.vector(dtype)})({'-' if dtypes.is_bool(dtype) else ''}{text})"

    def constant(self, node: UOp) -> str:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        if dtypes.is_bool(dtype) and dtype.count > 1:
            return f"({self.vector(dtype)})({'-1' if node.arg else '0'})"
        return super().constant(node)

    def vectorize(self, node: UOp) -> None:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        is_splat = all(src is node.src[0] for src in node.src)
        sign = "-" if dtypes.is_bool(dtype) else ""
        lanes = [sign + self.operand(src, ATOM if sign else LOOSE) for src in node.src[: 1 if is_splat else None]]
        self.declare(node, f"({self.vector(dtype)})({', '.join(lanes)})")

    # *** operations ***

    def alu(self, node: UOp) -> tuple[str, int]:
        """Returns an operation, with wrapping integers, also in vectors."""
        dtype = node.dtype
        assert isinstance(dtype, DType)
        if dtype.count == 1 or node.op not in WRAPPING or dtype.scalar not in _UNSIGNED or is_exact(node):
            return super().alu(node)
        unsigned = _UNSIGNED[dtype.scalar].vec(dtype.count)
        values = [self.as_unsigned(src, unsigned) for src in node.src]
        return f"as_{short_name(dtype)}({WRAPPING[node.op].format(*values)})", ATOM

    def as_unsigned(self, node: UOp, dtype: DType) -> str:
        if node.op is Ops.CONST:
            return self.operand(UOp.const(dtype, node.arg % (1 << dtype.bits)))
        return f"as_{short_name(dtype)}({self.operand(node)})"

    def compare(self, op: Ops, dtype: DType, values: list[str]) -> tuple[str, int]:
        if dtype.count == 1 or dtypes.is_bool(dtype):
            return super().compare(op, dtype, values)
        text, tightness = super().compare(op, dtype.scalar, values)
        return (text, tightness) if dtype.itemsize == 1 else (f"convert_b8x{dtype.count}({text})", ATOM)

    def extreme(self, op: Ops, dtype: DType, values: list[str]) -> str:
        if dtype.count == 1:
            return super().extreme(op, dtype, values)
        cl_type, name = short_name(dtype), f"{op.name.lower()}_{short_name(dtype)}"
        test = f"x {'>' if op is Ops.MAX else '<'} y"
        test = f"(({test}) | (x != x))" if dtypes.is_float(dtype) else f"({test})"
        text = f"static inline {cl_type} {name}({cl_type} x, {cl_type} y) {{ return {test} ? x : y; }}"
        return f"{self.needs(name, lambda: text)}({', '.join(values)})"

    def where(self, node: UOp, source: DType, dtype: DType) -> str:
        if source.count == 1 or dtypes.is_bool(dtype):
            return super().where(node, source, dtype)
        condition, yes, no = (self.operand(src, ATOM) for src in node.src)
        mask = short_name(mask_int(dtype))
        return f"{condition if dtype.itemsize == 1 else f'convert_{mask}({condition})'} ? {yes} : {no}"

    def libm(self, op: Ops, dtype: DType, values: list[str]) -> str:
        if dtype.count == 1 or op in (Ops.SQRT, Ops.FLOOR):
            return f"{LIBM[op]}({', '.join(values)})"  # one name for all types
        cl_type = short_name(dtype)  # lane by lane: PoCL's sin of a vector is wrong in all lanes if one is large
        return self.by_lanes(LIBM[op], cl_type, [cl_type] * len(values), dtype.count, values)

    def scale(self, dtype: DType, values: list[str]) -> str:
        if dtype.count == 1:
            return super().scale(dtype, values)
        cl_type, exponents = short_name(dtype), f"i32x{dtype.count}"
        name, limit = f"scale_{cl_type}", f"({cl_type})(5000)"
        text = (
            f"static inline {cl_type} {name}({cl_type} x, {cl_type} n) {{\n"
            f"  {cl_type} whole = clamp(floor(n), -{limit}, {limit});\n"
            f"  return n != n ? n : ldexp(x, convert_{exponents}(whole));\n"
            "}"
        )
        return f"{self.needs(name, lambda: text)}({', '.join(values)})"

    def table(self, node: UOp) -> str:
        target, source = node.dtype, node.src[0].dtype
        assert isinstance(target, DType) and isinstance(source, DType)
        if target.count == 1:
            return super().table(node)
        numbers = ", ".join([literal(value, target) for value in node.arg])
        name = self.table_name(node.arg, target)
        lanes = _write_lanes(target.count, f"numbers[x.{{0}} & {len(node.arg) - 1}]")
        text = (
            f"static inline {short_name(target)} {name}({short_name(source)} x) {{\n"
            f"  const {SCALAR[target.scalar]} numbers[] = {{{numbers}}};\n"
            f"  return ({short_name(target)})({lanes});\n"
            "}"
        )
        return f"{self.needs(name, lambda: text)}({self.operand(node.src[0])})"

    def dot(self, op: Ops, dtype: DType, values: list[str]) -> str:
        scalar = super().dot(op, dtype.scalar, values)
        if dtype.count == 1:
            return scalar
        words = short_name(dtypes.uint32.vec(dtype.count))
        result = short_name((dtypes.float32 if op is Ops.DOT_BF16 else dtypes.int32).vec(dtype.count))
        return self.by_lanes(op.name.lower(), result, (words, words, result), dtype.count, values)

    def divide(self, node: UOp, op: Ops, dtype: DType) -> tuple[str, int]:
        low, high = bounds(node.src[1])
        if dtype.count == 1 or low > 0 or high < -1:
            return super().divide(node, op, dtype)
        cl_type, values = short_name(dtype), [self.operand(src) for src in node.src]
        return self.by_lanes(self.divisor(op, dtype.scalar), cl_type, (cl_type, cl_type), dtype.count, values), ATOM

    def by_lanes(
        self, function: str, result: str, parameter_types: Sequence[str], count: int, values: Sequence[str]
    ) -> str:
        """Calls a helper that calls `function` for each lane."""
        name = f"{function}_{result}"
        letters = "xyz"[: len(parameter_types)]
        parameters = ", ".join(f"{parameter_type} {letter}" for parameter_type, letter in zip(parameter_types, letters))
        call = f"{function}({', '.join(letter + '.{0}' for letter in letters)})"
        text = f"static inline {result} {name}({parameters}) {{\n  return ({result})({_write_lanes(count, call)});\n}}"
        return f"{self.needs(name, lambda: text)}({', '.join(values)})"

    # *** conversions ***

    def cast(self, text: str, source: DType, target: DType) -> str:
        if source is target or target.count == 1 or source.scalar in BITS_ONLY or target.scalar in BITS_ONLY:
            return super().cast(text, source, target)
        name = f"convert_{self.vector(target)}"
        if dtypes.is_bool(target):
            return f"{name}({text} != ({short_name(source)})(0))"
        if dtypes.is_bool(source):
            return f"{name}(-{text})"
        if dtypes.is_float(source) and dtypes.is_int(target):
            if not self.as_x86:
                return self.float_to_int(text, source, target)
            if target.scalar is dtypes.uint64:
                return self.float_to_uint64(text, source, target)
        step = conversion_type(source, target)
        return f"{name}({text})" if step is None else f"{name}(convert_{short_name(step.vec(target.count))}({text}))"

    def by_lane(self, name: str, function: str, source: DType, target: DType) -> str:
        parameter_type, result = short_name(source), short_name(target)
        call = _write_lanes(source.count, function + "(x.{})")
        text = f"static inline {result} {name}({parameter_type} x) {{\n  return ({result})({call});\n}}"
        return self.needs(name, lambda: text)

    def convert_bits(self, name: str, text: str, source: DType, target: DType) -> str:
        if source.count == 1:
            return super().convert_bits(name, text, source, target)
        lanes, body = f"{name}_x{source.count}", _CONVERSIONS[name].format(n=source.count)
        helper = f"static inline {self.vector(target)} {lanes}({self.vector(source)} x) {{\n  {body}\n}}"
        return f"{self.needs(lanes, lambda: helper)}({text})"

    def bitcast(self, text: str, source: DType, target: DType) -> str:
        check_bitcast(source, target)
        if source.count == target.count == 1 or dtypes.is_bool(source) or dtypes.is_bool(target):
            return super().bitcast(text, source, target)
        return f"as_{self.vector(target)}({text})"

    def horizontal(self, node: UOp) -> str:
        """Combines all lanes: repeatedly, the two halves of the vector."""
        dtype = node.src[0].dtype
        assert isinstance(dtype, DType)
        name = f"h{node.arg.name.lower()}_{SHORT[dtype.scalar]}x{dtype.count}"
        self.needs(name, lambda: self.horizontal_text(name, node.arg, dtype))
        rows = [f"{name}({self.operand(src)})" for src in node.src]
        return rows[0] if len(rows) == 1 else f"({self.vector(node.dtype)})({', '.join(rows)})"

    def horizontal_text(self, name: str, op: Ops, dtype: DType) -> str:
        wraps = op in WRAPPING and dtype.scalar in _UNSIGNED
        scalar = _UNSIGNED[dtype.scalar] if wraps else dtype.scalar
        lines, value, count = [], f"as_{short_name(scalar.vec(dtype.count))}(x)" if wraps else "x", dtype.count
        while count > 2:
            half_dtype = scalar.vec(count // 2)
            if wraps and count == dtype.count:
                lines.append(f"  {short_name(scalar.vec(count))} y = {value};")
                value = "y"
            combined = self.combine(op, half_dtype, f"{value}.lo", f"{value}.hi")
            lines.append(f"  {short_name(half_dtype)} x{count // 2} = {combined};")
            value, count = f"x{count // 2}", count // 2
        total = f"({self.combine(op, scalar.vec(2), value, f'{value}.yx')}).x"
        total = f"{total} != 0" if dtypes.is_bool(dtype) else total
        head = f"static inline {SCALAR[dtype.scalar]} {name}({short_name(dtype)} x) {{"
        return "\n".join([head, *lines, f"  return {total};", "}"])

    # *** memory ***

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        element_type, name = _element_name(node), self.name(node, str(node.arg))
        if node not in self.scratch:
            self.line(f"{element_type} {name}[{node.dtype.size}] __attribute__((aligned({LINE_BYTES})));")
            return
        line = LINE_BYTES // node.dtype.base.itemsize
        item_size = -(-node.dtype.size // line) * line
        self.line(
            f"__global {element_type}* restrict {name} = scratch{self.scratch[node]} + {item_size} * get_global_id(0);"
        )

    def space(self, index: UOp) -> str:
        """Returns the OpenCL address space of an INDEX."""
        buffer = index.src[0]
        return "__global" if buffer.op is Ops.DEFINE_GLOBAL or buffer in self.scratch else "__private"

    def load(self, node: UOp) -> None:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        if dtype.count == 1:
            super().load(node)
            return
        vector, address, valid = self.vector(dtype), self.address(node.src[0]), self.valid(node.src[0])
        if valid is not None and valid.dtype.count > 1:
            self.declare(node, f"{self.masked_load(dtype, self.space(node.src[0]))}({address}, {self.operand(valid)})")
            return
        text = f"vload{dtype.count}(0, {address})"
        if dtypes.is_bool(dtype):
            text = f"{text} != ({short_name(dtypes.uint8.vec(dtype.count))})(0)"
        if valid is not None:
            text = f"{self.operand(valid, ATOM)} ? {f'({text})' if dtypes.is_bool(dtype) else text} : ({vector})(0)"
        self.declare(node, text)

    def store(self, node: UOp) -> None:
        index, value = node.src[:2]
        dtype = value.dtype
        assert isinstance(dtype, DType)
        if dtype.count == 1:
            super().store(node)
            return
        address, valid = self.address(index), self.valid(index)
        if valid is not None and valid.dtype.count > 1:
            helper = self.masked_store(dtype, self.space(index))
            self.line(f"{helper}({address}, {self.operand(value)}, {self.operand(valid)});")
            return
        condition = "" if valid is None else f"if ({self.operand(valid)}) "
        text = self.operand(value)
        if dtypes.is_bool(dtype):
            text = f"convert_{short_name(dtypes.uint8.vec(dtype.count))}(-{self.operand(value, ATOM)})"
        self.line(f"{condition}vstore{dtype.count}({text}, 0, {address});")

    def address(self, index: UOp) -> str:
        buffer, position, _ = self.index_operands(index)
        return buffer if position == "0" else f"{buffer} + {position}"

    def valid(self, index: UOp) -> UOp | None:
        return index.src[2] if len(index.src) > 2 else None

    def masked_load(self, dtype: DType, space: str) -> str:
        vector, mask, element = short_name(dtype), f"b8x{dtype.count}", memory_name(dtype)
        name = f"load_{vector}{'' if space == '__global' else '_here'}"
        value = "-(p[{0}] != 0)" if dtypes.is_bool(dtype) else "p[{0}]"
        lanes = ", ".join([f"valid.{_lane_name(n)} ? {value.format(n)} : 0" for n in range(dtype.count)])
        head = f"static inline {vector} {name}({space} const {element}* p, {mask} valid) {{"
        return self.needs(name, lambda: f"{head}\n  return ({vector})({lanes});\n}}")

    def masked_store(self, dtype: DType, space: str) -> str:
        vector, mask, element = short_name(dtype), f"b8x{dtype.count}", memory_name(dtype)
        name = f"store_{vector}{'' if space == '__global' else '_here'}"
        value = "x.{0} & 1" if dtypes.is_bool(dtype) else "x.{0}"
        lanes = [f"  if (valid.{_lane_name(n)}) p[{n}] = {value.format(_lane_name(n))};" for n in range(dtype.count)]
        head = f"static inline void {name}({space} {element}* p, {vector} x, {mask} valid) {{"
        text = "\n".join([head, *lanes, "}"])
        return self.needs(name, lambda: text)

    def prefetch(self, node: UOp) -> None:
        if self.space(node.src[0]) == "__global":
            self.line(f"prefetch({self.address(node.src[0])}, 1);")


def _element_name(node: UOp) -> str:
    assert isinstance(node.dtype, PtrDType)
    return memory_name(node.dtype.base)


def _lane_name(number: int) -> str:
    """Returns OpenCL's name of a lane of a vector."""
    return f"s{number:x}"


def _write_lanes(count: int, call: str) -> str:
    """Writes `call` for each lane, whose name replaces {}."""
    return ", ".join([call.format(_lane_name(number)) for number in range(count)])


__all__ = ["MAX_LANES", "VectorRenderer", "VectorWriter", "scratch_in_memory"]
