"""Renders the linear program as a WebAssembly module, in text format, with registers of 16 bytes.

The module exports a function and imports the memory of the buffers. The function takes, each as an i32:

- the addresses of the buffers;
- the kernel's Variables, as an i64 if they may need it;
- the address of scratch memory, if the kernel has some: the exported constant "scratch" is its size, in whole cache
  lines;
- start and stop of the THREAD axis, if the kernel has one.

`assemble` converts the text to the binary format.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.program import (
    ProgramSpec,
    RenderError,
    global_buffers,
    spec_of,
    thread_axis,
    variable_arguments,
)
from tinyexplore.renderer.text import variable_name
from tinyexplore.renderer.wasm.arithmetic import WasmArithmetic
from tinyexplore.renderer.wasm.helpers import HELPERS
from tinyexplore.renderer.wasm.memory import AccessWriter
from tinyexplore.renderer.wasm.use_analysis import BaseAddress, UseAnalysis
from tinyexplore.renderer.wasm.values import WasmValue, constant, lane_bytes, registers, scalar_type
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds

INLINE_LIMIT = 90  # a longer expression gets a separate local
SCRATCH_ALIGNMENT = 64
LOCALS_PER_LINE = 8


class WASMRenderer:
    """Renders WebAssembly's text format."""

    language = "wat"

    def __init__(self, target: Target, compiler: str = "wasm") -> None:
        self.target = target
        self.compiler = compiler

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`."""
        lines = _WasmWriter(uops).write(name)
        return spec_of(name, self.target, uops, self.language, lines, self.compiler)


class _WasmWriter(WasmArithmetic, AccessWriter):
    def __init__(self, uops: Sequence[UOp]) -> None:
        self.uops = tuple(uops)
        self.uses = UseAnalysis(self.uops)
        self.narrow = self.uses.narrow
        self.lines: list[SourceLine] = []
        self.depth = 2
        self.node: UOp | None = None
        self.values: dict[UOp, WasmValue] = {}
        self.made_by: dict[UOp, tuple[UOp, ...]] = {}  # the nodes that an inlined text represents
        self.collected: list[UOp] = []
        self.locals: dict[str, str] = {}  # types by name
        self.taken = {"$scratch", "$start", "$stop"}  # names in use
        self.counts: dict[str, int] = {}  # counts of numbered names
        self.addresses: dict[BaseAddress, str] = {}
        self.helpers: list[str] = []
        self.scratch_bytes = 0

    def write(self, name: str) -> list[SourceLine]:
        buffers = global_buffers(self.uops)
        variables = variable_arguments(self.uops)
        thread = thread_axis(self.uops)
        parameters = [f"(param $data{node.arg} i32)" for node in buffers]
        parameters += [f"(param ${variable_name(node)} {self.kind(node)})" for node in variables]
        self.taken.update([f"$data{node.arg}" for node in buffers])
        self.taken.update([f"${variable_name(node)}" for node in variables])
        scratch = [node for node in self.uops if node.op is Ops.DEFINE_LOCAL]
        for node in [*scratch, *self.uops]:
            if node in self.uses.live and node not in self.values:
                self.node, self.collected = node, []
                self.write_node(node)
        self.node = None
        head = [SourceLine("(module", ()), SourceLine('  (memory (import "tinyexplore" "memory") 1)', ())]
        if self.scratch_bytes:
            head.append(SourceLine(f'  (global (export "scratch") i32 (i32.const {self.scratch_bytes}))', ()))
            parameters.append("(param $scratch i32)")
        if thread is not None:
            parameters += ["(param $start i32)", "(param $stop i32)"]
        roots = tuple(node for node in self.uops if node.op in (Ops.STORE, Ops.RANGE))
        head_text = " ".join([f'  (func ${name} (export "{name}")', *parameters])
        head.append(SourceLine(head_text, (*buffers, *variables, *roots)))
        declared = [
            f"(local {local} {wasm_type})" for local, wasm_type in sorted(self.locals.items(), key=lambda x: x[1])
        ]
        for start in range(0, len(declared), LOCALS_PER_LINE):
            head.append(SourceLine(f"    {' '.join(declared[start : start + LOCALS_PER_LINE])}", ()))
        helpers = [SourceLine(line, ()) for text in self.helpers for line in HELPERS[text].split("\n")]
        return [*head, *self.lines, SourceLine("  )", ()), *helpers, SourceLine(")", ())]

    # *** lines and locals ***

    def line(self, text: str) -> None:
        made_by = () if self.node is None else tuple(dict.fromkeys((self.node, *self.collected)))
        self.lines.append(SourceLine("  " * self.depth + text, made_by))

    def attribute_to(self, *nodes: UOp) -> None:
        self.collected.extend(nodes)

    def local(self, name: str, wasm_type: str) -> str:
        """Declares a new local. Returns `$name`, with a number if the name is in use.

        Names: v0, v1, … for values, a0, … for addresses, t0, … for values used twice, m0, … for the bits of masks.
        """
        if name in ("v", "a", "t", "m"):
            self.counts[name] = number = self.counts.get(name, -1) + 1
            name = f"{name}{number}"
        unique_name, count = f"${name}", 1
        while unique_name in self.taken:
            count += 1
            unique_name = f"${name}_{count}"
        self.taken.add(unique_name)
        self.locals[unique_name] = wasm_type
        return unique_name

    def store_in_locals(self, value: WasmValue) -> WasmValue:
        parts = []
        for part in value.parts:
            if not part.startswith(("(local.get", "(v128.const")):
                name = self.local("t", "v128" if value.lane else "i32")
                self.line(f"(local.set {name} {part})")
                part = f"(local.get {name})"
            parts.append(part)
        return WasmValue(tuple(parts), value.lane)

    def needs(self, helper: str) -> str:
        if helper not in self.helpers:
            self.helpers.append(helper)
        return helper

    def operand(self, node: UOp) -> WasmValue:
        assert isinstance(node.dtype, DType)
        if node.op is Ops.CONST:
            self.attribute_to(node)
            return (
                constant(node.arg, node.dtype) if node not in self.narrow else WasmValue((f"(i32.const {node.arg})",))
            )
        expression = self.values.get(node)
        if expression is None:
            raise RenderError(f"{self.node!r} uses {node!r}, which does not come before it in the program")
        self.attribute_to(*self.made_by.get(node, ()))
        return expression

    def define(self, node: UOp, value: WasmValue, name: str = "v") -> None:
        """Stores `value` in locals, which represent `node` from then on."""
        assert isinstance(node.dtype, DType)
        wasm_type = self.kind(node) if node.dtype.count == 1 else "v128"
        parts = []
        for part in value.parts:
            local = self.local(name, wasm_type)
            self.line(f"(local.set {local} {part})")
            parts.append(f"(local.get {local})")
        self.values[node] = WasmValue(tuple(parts), value.lane)

    # *** nodes ***

    def write_node(self, node: UOp) -> None:
        op = node.op
        if op in OpGroups.ALU:
            self.write_alu(node)
            return
        match op:
            case Ops.CONST | Ops.BARRIER | Ops.INDEX | Ops.PREFETCH:
                pass
            case Ops.DEFINE_GLOBAL:
                self.values[node] = WasmValue((f"(local.get $data{node.arg})",))
            case Ops.DEFINE_LOCAL:
                self.define_local(node)
            case Ops.DEFINE_VAR:
                self.values[node] = WasmValue((f"(local.get ${variable_name(node)})",))
            case Ops.DEFINE_ACC:
                self.define(node, self.whole(node.src[0]), f"acc{node.arg}")
            case Ops.ASSIGN:
                self.assign(node)
            case Ops.RESULT:
                self.values[node] = self.values[node.src[0]]
            case Ops.RANGE:
                self.open_loop(node)
            case Ops.ENDRANGE:
                self.close_loop(node)
            case Ops.LOAD:
                self.load(node)
            case Ops.STORE:
                self.store(node)
            case Ops.VECTORIZE:
                self.vectorize(node)
            case Ops.GEP:
                source = node.src[0]
                assert isinstance(source.dtype, DType)
                if source.op is Ops.CONST:
                    self.values[node] = constant(source.arg, source.dtype.scalar)
                else:
                    self.define(node, WasmValue((self.lane(self.operand(source), node.arg, source.dtype.scalar),)))
            case Ops.HREDUCE:
                self.reduce_lanes(node)
            case _:
                raise RenderError(f"{node!r} does not belong in a linear program")
        self.write_addresses(node)

    def write_alu(self, node: UOp) -> None:
        value = self.alu(node)
        if node in self.uses.inlinable and len(value.parts) == 1 and len(value.text) <= INLINE_LIMIT:
            self.values[node] = value
            self.made_by[node] = (node, *self.collected)
        else:
            self.define(node, value)
        self.write_addresses(node)

    def whole(self, node: UOp) -> WasmValue:
        """Returns the value of a node at the width of its dtype: an int64 in 64 bits, a mask with lanes of a byte."""
        assert isinstance(node.dtype, DType)
        if node.dtype.count == 1:
            return WasmValue((self.number(node, scalar_type(node.dtype)),))
        return self.mask(node, 1) if dtypes.is_bool(node.dtype) else self.operand(node)

    def assign(self, node: UOp) -> None:
        for register, part in zip(self.values[node.src[0]].parts, self.whole(node.src[1]).parts):
            self.line(f"(local.set {_name_in(register)} {part})")
        self.values[node] = self.values[node.src[0]]

    def open_loop(self, node: UOp) -> None:
        """Writes the head of a loop from 0 to the end. A loop that may have no step tests that first."""
        wasm_type = self.kind(node)
        name = self.local(node.arg.name, wasm_type)
        self.values[node] = WasmValue((f"(local.get {name})",))
        low, high = bounds(node.src[0])
        start = f"({wasm_type}.const 0)"
        if node.arg.kind is AxisKind.THREAD:
            start = "(local.get $start)" if wasm_type == "i32" else "(i64.extend_i32_s (local.get $start))"
        stop = self.loop_end(node)
        self.line(f"(local.set {name} {start})")
        if high <= 1 and node.arg.kind is not AxisKind.THREAD:
            self.line(f"(if ({wasm_type}.gt_s {stop} {start}) (then")
        elif low < 1 or node.arg.kind is AxisKind.THREAD:
            self.line(f"(if ({wasm_type}.lt_s (local.get {name}) {stop}) (then (loop ${node.arg.name}")
        else:
            self.line(f"(loop ${node.arg.name}")
        self.depth += 1

    def loop_end(self, node: UOp) -> str:
        wasm_type = self.kind(node)
        if node.arg.kind is AxisKind.THREAD:
            return "(local.get $stop)" if wasm_type == "i32" else "(i64.extend_i32_s (local.get $stop))"
        return self.number(node.src[0], wasm_type)

    def close_loop(self, node: UOp) -> None:
        loop = node.src[0]
        self.attribute_to(loop)
        wasm_type, (name,) = self.kind(loop), self.values[loop].parts
        low, high = bounds(loop.src[0])
        if high <= 1 and loop.arg.kind is not AxisKind.THREAD:
            self.depth -= 1
            self.line("))")
            return
        self.line(f"(local.set {_name_in(name)} ({wasm_type}.add {name} ({wasm_type}.const 1)))")
        self.line(f"(br_if ${loop.arg.name} ({wasm_type}.lt_s {name} {self.loop_end(loop)}))")
        self.depth -= 1
        self.line(")))" if low < 1 or loop.arg.kind is AxisKind.THREAD else ")")

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        name = self.local(str(node.arg), "i32")
        self.line(f"(local.set {name} (i32.add (local.get $scratch) (i32.const {self.scratch_bytes})))")
        nbytes = node.dtype.size * node.dtype.base.itemsize
        self.scratch_bytes += -(-nbytes // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        self.values[node] = WasmValue((f"(local.get {name})",))

    # *** vectors ***

    def vectorize(self, node: UOp) -> None:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        if node.src[0] in self.uses.splatted:
            count = registers(dtype.count, lane_bytes(dtype))
            self.values[node] = WasmValue(self.values[node.src[0]].parts * count, lane_bytes(dtype))
            return
        wasm_type = scalar_type(dtype.scalar)
        if all(src is node.src[0] for src in node.src):
            parts = self.assemble_lanes([self.number(node.src[0], wasm_type)] * 2, dtype.scalar.vec(2)).parts
            self.define(node, WasmValue(parts, lane_bytes(dtype)))
            repeated_parts = self.values[node].parts * registers(dtype.count, lane_bytes(dtype))
            self.values[node] = WasmValue(repeated_parts, lane_bytes(dtype))
            return
        self.define(node, self.assemble_lanes([self.number(src, wasm_type) for src in node.src], dtype))

    def reduce_lanes(self, node: UOp) -> None:
        dtype, source = node.dtype, node.src[0].dtype
        assert isinstance(dtype, DType) and isinstance(source, DType)
        rows = [self.horizontal(node.arg, self.operand(src), source) for src in node.src]
        self.define(node, WasmValue((rows[0],)) if len(rows) == 1 else self.assemble_lanes(rows, dtype))


def _name_in(text: str) -> str:
    """Returns the name of the local in `(local.get $x)`."""
    return text.removeprefix("(local.get ").removesuffix(")")
