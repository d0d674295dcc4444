"""Renders the linear program of a GPU as LLVM IR, for LLVM's targets of NVIDIA (PTX) and AMD (AMDGCN).

Arithmetic, loops and accesses are the same as for a CPU. The differences are data (`Backend`): the marking of a kernel,
the index of a work-item, the barrier. Memory is accessed by generic pointers. Pointers of an address space are cast to
them once; from this LLVM infers which are global, shared or private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.llvm.arithmetic import memory_type
from tinyexplore.renderer.llvm.renderer import WITHOUT_LINES, FunctionWriter
from tinyexplore.renderer.llvm.tensor_cores import product_of
from tinyexplore.renderer.program import (
    Launch,
    ProgramSpec,
    RenderError,
    global_buffers,
    is_group_barrier,
    is_shared,
    spec_of,
    variable_arguments,
)
from tinyexplore.target import TENSOR_CORES, Target
from tinyexplore.trace import SourceLine, recording
from tinyexplore.uop import OpGroups, Ops, UOp, graph_rewrite
from tinyexplore.uop.remainder import REMAINDER
from tinyexplore.uop.transcendental import TRANSCENDENTAL
from tinyexplore.uop.transcendental64 import DOUBLE

CHOSEN_ITEMS = 256  # work-items of a group if the runtime chooses it, for a backend that must state the number
LETTERS = "xyz"
FUNCTIONS = TRANSCENDENTAL + DOUBLE + REMAINDER
_EXPANDED_OPS = OpGroups.TRANSCENDENTAL | {Ops.MOD}
# functions for which a GPU has neither a formula in the passes nor an instruction: GPUs are not linked with C's
# functions
_MISSING_FUNCTIONS = frozenset({Ops.ERF, Ops.POW, Ops.TANH, Ops.SIN, Ops.COS, Ops.EXP, Ops.EXP2, Ops.LOG, Ops.LOG2})


@dataclass(frozen=True)
class Backend:
    """A GPU backend of LLVM.

    language: the short name of its assembly.
    full_name: the full name of its assembly.
    triple: LLVM's target triple.
    kernel: the calling convention of kernels.
    numbers: the intrinsic that returns a work-item's number, by the first letters of a SPECIAL ({x}: its dimension).
    size: the intrinsic that returns the size of a group; "" where the program states it.
    barrier: the instructions of a barrier.
    private: the address space of private memory; "" for the generic one.
    limit: the attribute that states the size of a group ({x}, {y}, {z}, {all}).
    native: functions of float32 that are a single instruction.
    features: LLVM features that some GPUs need, by GPU.
    """

    language: str
    full_name: str
    triple: str
    kernel: str
    numbers: Mapping[str, str]
    size: str
    barrier: tuple[str, ...]
    private: str
    limit: str
    native: frozenset[Ops]
    features: Mapping[str, str] = field(default_factory=dict)


PTX = Backend(
    language="ptx",
    full_name="PTX",
    triple="nvptx64-nvidia-cuda",
    kernel="ptx_kernel",
    numbers={"gidx": "llvm.nvvm.read.ptx.sreg.ctaid.{x}", "lidx": "llvm.nvvm.read.ptx.sreg.tid.{x}"},
    size="llvm.nvvm.read.ptx.sreg.ntid.{x}",
    barrier=("call void @llvm.nvvm.barrier0()",),
    private="",
    limit='"nvvm.reqntid"="{x},{y},{z}"',
    native=frozenset({Ops.EXP2}),
    features={"sm_75": "+ptx65"},  # the default PTX version of LLVM is 6.3, which has no tensor cores
)
AMDGCN = Backend(
    language="amdgcn",
    full_name="AMDGCN assembly",
    triple="amdgcn-amd-amdhsa",
    kernel="amdgpu_kernel",
    numbers={"gidx": "llvm.amdgcn.workgroup.id.{x}", "lidx": "llvm.amdgcn.workitem.id.{x}"},
    size="",
    barrier=(
        'fence syncscope("workgroup") release',
        "call void @llvm.amdgcn.s.barrier()",
        'fence syncscope("workgroup") acquire',
    ),
    private="addrspace(5)",
    limit='"amdgpu-flat-work-group-size"="{all},{all}" "uniform-work-group-size"="true"',
    native=frozenset({Ops.EXP2, Ops.LOG2}),
)
BACKENDS = {"cuda": PTX, "hip": AMDGCN}  # by the language of a GPU's programs


class GPUIRRenderer:
    """Renders LLVM IR for a GPU with an LLVM backend. `compiler` names the compiler, for cache keys."""

    language = "llvm"

    def __init__(self, target: Target, compiler: str = "llvm") -> None:
        if target.arch not in BACKENDS:
            raise RenderError(f"{target.cpu}: LLVM has no backend for its language; supported: {', '.join(BACKENDS)}")
        self.target = target
        self.backend = BACKENDS[target.arch]
        self.compiler = compiler

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`."""
        lines = _KernelWriter(self.target, self.backend).write(name, uops)
        return spec_of(name, self.target, uops, self.language, lines, self.compiler)


class _KernelWriter(FunctionWriter):
    """Writes a program as for a CPU, with the additions for a GPU."""

    without_lines = WITHOUT_LINES - {Ops.BARRIER}

    def __init__(self, target: Target, backend: Backend) -> None:
        super().__init__(target)
        self.backend = backend
        self.formulas = replace(target, native_ops=backend.native, native_dtypes=(dtypes.float32,))
        self.shared: list[SourceLine] = []
        self.has_guard = False

    def write(self, name: str, uops: Sequence[UOp]) -> list[SourceLine]:
        buffers, variables = global_buffers(uops), variable_arguments(uops)
        self.prepare(uops)
        self.write_nodes(uops)
        self.made_by = ()
        if self.has_guard:
            self.raw("  br label %outside")
            self.label("outside")
        parameters = []
        for node in buffers:
            assert isinstance(node.dtype, PtrDType)
            pointer, size = f"{self.names[node]}.global", node.dtype.base.itemsize
            parameters.append(f"ptr addrspace(1) noalias align {size} {pointer}")
            self.entry_block.append(cast_line(self.names[node], "ptr addrspace(1)", pointer, node))
        parameters += [f"i64 {self.names[node]}" for node in variables]
        roots = [node for node in uops if node.op in (Ops.STORE, Ops.RANGE, Ops.SPECIAL)]
        head = f"define {self.backend.kernel} void @{name}({', '.join(parameters)}) nounwind{self.limit(uops)} {{"
        return [
            *self.shared,
            SourceLine(head, (*buffers, *variables, *roots)),
            SourceLine("entry:", ()),
            *self.entry_block,
            *self.lines,
            SourceLine("  ret void", ()),
            SourceLine("}", ()),
            SourceLine("", ()),
            *[SourceLine(text, ()) for text in self.declared.values()],
        ]

    def limit(self, uops: Sequence[UOp]) -> str:
        """Returns the attribute with the number of work-items of a group, if it is known."""
        group = Launch.of(uops).group
        if group is None and not self.backend.size:
            group = (CHOSEN_ITEMS,)
        if group is None:
            return ""
        sizes = (*group, 1, 1)
        return " " + self.backend.limit.format(x=sizes[0], y=sizes[1], z=sizes[2], all=prod(group))

    def write_node(self, node: UOp) -> None:
        if node.op is Ops.SPECIAL:
            self.special(node)
        elif is_group_barrier(node):
            for text in self.backend.barrier:
                if text.startswith("call"):
                    name = text.partition("@")[2].partition("(")[0]
                    self.declared[name] = f"declare void @{name}() convergent"
                self.raw(f"  {text}")
        elif node.op is Ops.WMMA:
            core = TENSOR_CORES[node.arg]
            if core.language != self.target.arch:
                raise RenderError(f"{node.arg} is a tensor core of {core.language}, not {self.target.arch}")
            self.names[node] = product_of(self, core, node, [self.operand(src) for src in node.src])
        elif node.op is not Ops.BARRIER:
            super().write_node(node)

    def special(self, node: UOp) -> None:
        """Writes the index of a work-item or a group. If the runtime chooses groups, it skips surplus work-items."""
        index_kind, dimension, item_count = node.arg[:-1], int(node.arg[-1]), node.src[0]
        if index_kind != "idx":
            self.names[node] = self.number(index_kind, dimension)
            return
        group, item = self.number("gidx", dimension), self.number("lidx", dimension)
        size = self.number("", dimension)
        first_index = self.value(f"mul nuw nsw i64 {group}, {size}", "first")
        index = self.names[node] = self.value(f"add nuw nsw i64 {first_index}, {item}", "idx")
        is_inside = self.value(f"icmp slt i64 {index}, {self.operand(item_count)}", "inside")
        self.has_guard = True
        label = f"item.at{len(self.lines)}"
        self.raw(f"  br i1 {is_inside}, label %{label}, label %outside")
        self.label(label)

    def number(self, index_kind: str, dimension: int) -> str:
        """Returns a register with the index of the work-item, of its group, or ("") the number of work-items in a
        group."""
        function = self.backend.numbers[index_kind] if index_kind else self.backend.size
        if not function:
            return str(CHOSEN_ITEMS if dimension == 0 else 1)
        index32 = self.call("i32", function.format(x=LETTERS[dimension]), hint=index_kind or "size")
        return self.value(f"zext nneg i32 {index32} to i64", index_kind or "size")

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        array_type = f"[{node.dtype.size} x {memory_type(node.dtype.base)}]"
        name = self.unique(str(node.arg))
        self.names[node] = f"%{name}"
        if is_shared(node):
            text = f"@{name} = internal addrspace(3) global {array_type} poison, align 16"
            self.shared.append(SourceLine(text, (node,)))
            self.entry_block.append(cast_line(f"%{name}", "ptr addrspace(3)", f"@{name}", node))
        elif space := self.backend.private:
            self.entry_block.append(SourceLine(f"  %{name}.own = alloca {array_type}, align 16, {space}", (node,)))
            self.entry_block.append(cast_line(f"%{name}", f"ptr {space}", f"%{name}.own", node))
        else:
            self.entry_block.append(SourceLine(f"  %{name} = alloca {array_type}, align 16", (node,)))

    def alignment(self, dtype: DType) -> int:
        """Returns the alignment of an access. Vectors are aligned to their width; otherwise LLVM would divide the
        access."""
        return dtype.itemsize * dtype.count

    def alu(self, node: UOp, values: list[str]) -> str:
        """Writes an operation as for a CPU. Expands functions that the backend lacks to arithmetic."""
        dtype = node.dtype
        assert isinstance(dtype, DType)
        if dtype.count > 1:
            raise RenderError(f"{dtype!r}: GPU programs have no vector arithmetic, because each work-item is one lane")
        if node.op not in _EXPANDED_OPS or not dtypes.is_float(dtype):
            return super().alu(node, values)
        placeholders = [UOp(Ops.DEFINE_ACC, src.dtype, (), number) for number, src in enumerate(node.src)]
        with recording(None):
            formula = graph_rewrite(UOp(node.op, dtype, tuple(placeholders), node.arg), FUNCTIONS, self.formulas)
        operands = dict(zip(placeholders, values))
        for inner in formula.toposort():
            if inner.op is Ops.CONST or inner in operands:
                continue
            sources = [operands.get(src) or self.operand(src) for src in inner.src]
            if inner.op in _MISSING_FUNCTIONS and not (
                inner.op in self.backend.native and inner.dtype is dtypes.float32
            ):
                raise RenderError(
                    f"{inner.op.name} of {inner.dtype!r}: no function of it in {self.backend.full_name} without the "
                    "vendor's library; cast to float32"
                )
            operands[inner] = super().alu(inner, sources)
        return operands[formula]


def cast_line(name: str, pointer_type: str, value: str, node: UOp) -> SourceLine:
    """Writes the cast of a pointer in an address space to a generic pointer."""
    return SourceLine(f"  {name} = addrspacecast {pointer_type} {value} to ptr", (node,))


__all__ = ["AMDGCN", "BACKENDS", "CHOSEN_ITEMS", "PTX", "Backend", "GPUIRRenderer"]
