"""Renders the linear program as C99 with GCC's and Clang's vector extensions."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.c import parts
from tinyexplore.renderer.c.arithmetic import CArithmetic
from tinyexplore.renderer.c.parts import memory_name, short_name
from tinyexplore.renderer.program import (
    LOCALITY,
    STACK_LIMIT_BYTES,
    ProgramSpec,
    RenderError,
    global_buffers,
    spec_of,
    variable_arguments,
)
from tinyexplore.renderer.text import ATOM, LOOSE, variable_name
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp


class CRenderer:
    """Renders C source: `void name(T0* restrict data0, …, int64_t start, int64_t stop)` and `name_entry`."""

    language = "c"

    def __init__(self, target: Target, compiler: str = "cc") -> None:
        self.target = target
        self.compiler = compiler

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`."""
        lines = CWriter(uops, as_x86=self.target.arch == "x86_64").write(name)
        return spec_of(name, self.target, uops, self.language, lines, self.compiler)


class CWriter(CArithmetic):
    """Writes a C function node by node."""

    def write(self, name: str) -> list[SourceLine]:
        buffers = global_buffers(self.uops)
        written_memory = {node.src[0].src[0] for node in self.uops if node.op is Ops.STORE}
        self.to_free: list[str] = []
        for node in self.uops:
            self.begin(node)
            self.write_node(node)
        self.node = None
        for scratch in self.to_free:
            self.line(f"free({scratch});")
        parameters = []
        for node in buffers:
            assert isinstance(node.dtype, PtrDType)
            const = "" if node in written_memory else "const "
            parameters.append(f"{const}{memory_name(node.dtype.base)}* restrict data{node.arg}")
        variables = variable_arguments(self.uops)
        parameters += [f"int64_t {self.texts[node][0]}" for node in variables]
        parameters += ["int64_t start", "int64_t stop"]
        roots = tuple(node for node in self.uops if node.op in (Ops.STORE, Ops.RANGE))
        slots = [f"buffers[{node.arg}]" for node in buffers]
        slots += [f"(int64_t)buffers[{len(buffers) + number}]" for number in range(len(variables))]
        arguments = ", ".join([*slots, "start", "stop"])
        headers = ["math.h", "stdbool.h", "stdint.h"] + (["stdlib.h"] if self.to_free else []) + ["string.h"]
        return [
            *(SourceLine(f"#include <{header}>", ()) for header in headers),
            *self.prelude(),
            SourceLine("", ()),
            SourceLine(f"void {name}({', '.join(parameters)}) {{", (*buffers, *variables, *roots)),
            *self.lines,
            SourceLine("}", ()),
            SourceLine("", ()),
            SourceLine(f"void {name}_entry(void** buffers, int64_t start, int64_t stop) {{", ()),
            SourceLine(f"  {name}({arguments});", ()),
            SourceLine("}", ()),
        ]

    def write_node(self, node: UOp) -> None:
        op = node.op
        if op in OpGroups.ALU:
            text, tightness = self.alu(node)
            if not self.inlined(node, text, tightness):
                self.declare(node, text)
            return
        match op:
            case Ops.CONST | Ops.BARRIER | Ops.INDEX:
                pass
            case Ops.DEFINE_GLOBAL:
                self.name(node, f"data{node.arg}")
            case Ops.DEFINE_LOCAL:
                self.define_local(node)
            case Ops.DEFINE_ACC:
                value = self.operand(node.src[0])
                self.line(f"{self.type_of(node)} {self.name(node, f'acc{node.arg}')} = {value};")
            case Ops.ASSIGN:
                self.line(f"{self.operand(node.src[0])} = {self.operand(node.src[1])};")
            case Ops.RESULT:
                self.texts[node] = self.texts[node.src[0]]
            case Ops.RANGE:
                name = self.name(node, node.arg.name)
                threaded = node.arg.kind is AxisKind.THREAD
                start, stop = ("start", "stop") if threaded else ("0", self.operand(node.src[0], ATOM))
                self.line(f"for (int64_t {name} = {start}; {name} < {stop}; {name}++) {{")
                self.depth += 1
            case Ops.ENDRANGE:
                self.depth -= 1
                self.attribute_to(node.src)
                self.line("}")
            case Ops.LOAD:
                self.load(node)
            case Ops.STORE:
                self.store(node)
            case Ops.PREFETCH:
                self.prefetch(node)
            case Ops.VECTORIZE:
                self.vectorize(node)
            case Ops.GEP:
                lane = f"{self.operand(node.src[0], ATOM)}[{node.arg}]"
                self.declare(node, f"{lane} != 0" if dtypes.is_bool(node.src[0].dtype) else lane)
            case Ops.WMMA:
                self.declare(node, self.tiles(node))
            case Ops.TABLE:
                self.declare(node, self.table(node))
            case Ops.HREDUCE:
                self.declare(node, self.horizontal(node))
            case Ops.DEFINE_VAR:
                self.name(node, variable_name(node))
            case _:
                raise RenderError(f"{node!r} does not belong in a linear program")

    def declare(self, node: UOp, text: str) -> None:
        c_type = self.type_of(node)
        self.line(f"{c_type} {self.variable(node)} = {text};")

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        base, size = node.dtype.base, node.dtype.size
        name = self.name(node, str(node.arg))
        nbytes = size * base.itemsize
        if nbytes <= STACK_LIMIT_BYTES:
            self.line(f"{memory_name(base)} {name}[{size}] __attribute__((aligned(64)));")
            return
        self.line(f"{memory_name(base)}* restrict {name} = aligned_alloc(64, {-(-nbytes // 64) * 64});")
        self.to_free.append(name)

    # *** memory ***

    def index_operands(self, index: UOp) -> tuple[str, str, UOp | None]:
        """Returns the buffer, the position and the condition of an INDEX."""
        self.attribute_to((index,))
        buffer, position = (self.operand(src) for src in index.src[:2])
        return buffer, position, index.src[2] if len(index.src) > 2 else None

    def load(self, node: UOp) -> None:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        buffer, position, valid = self.index_operands(node.src[0])
        if dtype.count == 1:
            text = f"{buffer}[{position}]" + (" != 0" if dtypes.is_bool(dtype) else "")
            if valid is not None:
                text = f"{self.operand(valid, ATOM)} ? {text} : 0"
            self.declare(node, text)
            return
        vector = self.vector(dtype)
        address = f"{buffer} + {position}" if position != "0" else buffer
        if valid is not None and valid.dtype.count > 1:
            helper = f"load_{vector}"
            self.needs(helper, lambda: parts.masked_load_text(dtype), types=(dtype, valid.dtype))
            self.declare(node, f"{helper}({address}, {self.operand(valid)})")
            return
        if dtypes.is_bool(dtype):
            bytes_type = self.vector(dtypes.uint8.vec(dtype.count))
            text = f"*(const {bytes_type}_u*)({address}) != 0"
        else:
            text = f"*(const {vector}_u*)({address})"
        if valid is not None:
            text = f"{self.operand(valid, ATOM)} ? ({vector})({text}) : ({vector}){{0}}"
        self.declare(node, text)

    def store(self, node: UOp) -> None:
        index, value = node.src[:2]
        dtype = value.dtype
        assert isinstance(dtype, DType)
        buffer, position, valid = self.index_operands(index)
        scalar_condition = valid is not None and valid.dtype.count == 1
        condition = f"if ({self.operand(valid)}) " if valid is not None and scalar_condition else ""
        if dtype.count == 1:
            self.line(f"{condition}{buffer}[{position}] = {self.operand(value)};")
            return
        vector = self.vector(dtype)
        address = f"{buffer} + {position}" if position != "0" else buffer
        if valid is not None and not scalar_condition:
            helper = f"store_{vector}"
            self.needs(helper, lambda: parts.masked_store_text(dtype), types=(dtype, valid.dtype))
            self.line(f"{helper}({address}, {self.operand(value)}, {self.operand(valid)});")
            return
        text = self.operand(value)
        if dtypes.is_bool(dtype):
            vector = self.vector(dtypes.uint8.vec(dtype.count))
            text = f"({vector})({text} & 1)"
        self.line(f"{condition}*({vector}_u*)({address}) = {text};")

    def prefetch(self, node: UOp) -> None:
        buffer, position, _ = self.index_operands(node.src[0])
        pointer = node.src[0].src[0].dtype
        assert isinstance(pointer, PtrDType)
        address = f"(uintptr_t){buffer} + {pointer.base.itemsize} * ({position})"  # C forbids pointers past the end
        self.line(f"__builtin_prefetch((const void*)({address}), 0, {LOCALITY});")

    # *** vectors ***

    def vectorize(self, node: UOp) -> None:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        if all(src is node.src[0] for src in node.src):
            self.declare(node, self.splat(self.operand(node.src[0]), dtype))
            return
        sign = "-" if dtypes.is_bool(dtype) else ""
        lanes = ", ".join(sign + self.operand(src, ATOM if sign else LOOSE) for src in node.src)
        self.declare(node, f"({self.vector(dtype)}){{{lanes}}}")

    def horizontal(self, node: UOp) -> str:
        dtype = node.src[0].dtype
        assert isinstance(dtype, DType)
        helper = f"h{node.arg.name.lower()}_{short_name(dtype)}"
        if dtype.scalar in parts.BITS_ONLY:
            helper = f"h{node.arg.name.lower()}_{parts.SHORT[dtype.scalar]}x{dtype.count}"
        step = self.combine(node.arg, dtype.scalar, "x[i]", "x[i + half]")
        text = parts.horizontal_text(node.arg, dtype, step).replace(
            f"h{node.arg.name.lower()}_{short_name(dtype)}(", f"{helper}(", 1
        )
        self.needs(helper, lambda: text, types=(dtype,))
        rows = [f"{helper}({self.operand(src)})" for src in node.src]
        return rows[0] if len(rows) == 1 else f"({self.vector(node.dtype)}){{{', '.join(rows)}}}"
