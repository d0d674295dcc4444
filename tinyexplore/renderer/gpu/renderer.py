"""Renders the linear program of a GPU in its language: the code of one work-item."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.c.parts import CONVERSIONS, CONVERSIONS_NEED, SCALAR, memory_name, short_name
from tinyexplore.renderer.c.renderer import CWriter
from tinyexplore.renderer.gpu.accesses import ALIGNMENT, find_vector_memory, split_accesses
from tinyexplore.renderer.gpu.dialects import DIALECTS, GPUDialect
from tinyexplore.renderer.gpu.tensor_cores import core_text, held_text, types_of
from tinyexplore.renderer.gpu.wgsl import WGSLWriter, find_unsupported_type, is_short
from tinyexplore.renderer.program import (
    Launch,
    ProgramSpec,
    RenderError,
    check_bitcast,
    global_buffers,
    is_group_barrier,
    is_shared,
    spec_of,
    variable_arguments,
)
from tinyexplore.renderer.text import ATOM, SUM, variable_name
from tinyexplore.target import GPUS, TENSOR_CORES, Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import is_exact
from tinyexplore.uop.symbolic import text

WGSL = "wgsl"
GPU_LANGUAGES = {**{name: dialect.full_name for name, dialect in DIALECTS.items()}, WGSL: "WGSL"}  # their full names
LETTERS = "xyz"  # letters of the dimensions, fastest first
# operations that may wrap, and the type to compute them in; shorter dtypes use `int`, which fits all but uint16
# products
_UNSIGNED: dict[DType | PtrDType, str] = {
    dtypes.int32: "uint32_t",
    dtypes.int64: "uint64_t",
    dtypes.uint16: "uint32_t",
}
WRAPPING = {Ops.NEG: "-{}", Ops.ADD: "{} + {}", Ops.MUL: "{} * {}", Ops.SHL: "{} << {}", Ops.MULACC: "{} * {} + {}"}
_WORD = re.compile(r"\b(?:(\d+)(u?ll)|[A-Za-z_]\w*)\b")


class GPURenderer:
    """Renders a kernel in the language of the target.

    aligned: whether memory is aligned for vectors, as an allocator's is; otherwise elements are accessed one by one.
    """

    def __init__(self, target: Target, compiler: str, *, aligned: bool = True) -> None:
        self.target = target
        self.aligned = aligned
        self.language = target.arch
        self.compiler = compiler

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`. Raises RenderError if it uses a dtype that the target
        lacks."""
        check_types(self.target, uops)
        if not self.aligned:
            uops = list(split_accesses(uops))
        for node in uops:
            if node.op is Ops.WMMA and TENSOR_CORES[node.arg].language != self.language:
                raise RenderError(
                    f"{node.arg} is a tensor core of {TENSOR_CORES[node.arg].language}, not {self.language}"
                )
        if self.language == WGSL and (unsupported := find_unsupported_type(uops)):
            raise RenderError(f"{unsupported}; cast to another type, or choose another device")
        lines = write_kernel(self.language, name, uops)
        aligned = frozenset(node.arg for node in find_vector_memory(uops) if node.op is Ops.DEFINE_GLOBAL)
        return spec_of(name, self.target, uops, self.language, lines, self.compiler, aligned)


def in_other_languages(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Writes the program in each other GPU language that has all its dtypes and functions."""
    programs = []
    for gpu in {target.language: target for target in GPUS.values()}.values():
        if any(node.op is Ops.WMMA for node in spec.uops):
            continue  # tensor cores differ between languages
        if gpu.language == spec.language or any(lacks(gpu.unsupported_dtypes, node) for node in spec.uops):
            continue
        if any(node.op in gpu.lacks_ops for node in spec.uops) or (
            gpu.language == WGSL and find_unsupported_type(spec.uops)
        ):
            continue
        programs.append((gpu.language, tuple(write_kernel(gpu.language, spec.name, spec.uops))))
    return programs


def write_kernel(language: str, name: str, uops: Sequence[UOp]) -> list[SourceLine]:
    """Returns the lines of a kernel called `name` in `language`."""
    if language == WGSL:  # in WGSL a buffer is an array of numbers or an array of vectors, not both
        stands_for = split_accesses(uops)
        lines = WGSLWriter(list(stands_for)).write(name)
        return [line._replace(uops=tuple(dict.fromkeys(stands_for[node] for node in line.uops))) for line in lines]
    return GPUWriter(uops, DIALECTS[language]).write(name)


def check_types(target: Target, uops: Sequence[UOp]) -> None:
    """Raises RenderError if a program computes with a dtype that the target lacks."""
    for node in uops:
        if target.has_local and node.op in OpGroups.ALU and node.dtype.count > 1:
            raise RenderError(
                f"{node.dtype!r}: GPU programs have no vector arithmetic, because each work-item is one lane"
            )
        if (missing := lacks(target.unsupported_dtypes, node)) is not None:
            raise RenderError(
                f"{missing.name}: {target.cpu} does not compute with it; cast to another type, or choose another device"
            )


def lacks(missing: tuple[DType, ...], node: UOp) -> DType | None:
    """Returns the dtype of a node if it is among the missing ones; else None."""
    base: DType = node.dtype.base if isinstance(node.dtype, PtrDType) else node.dtype
    return base.scalar if base.scalar in missing else None


class GPUWriter(CWriter):
    """Writes C99 with GPU keywords. `translate_names` then translates it to the dialect."""

    def __init__(self, uops: Sequence[UOp], dialect: GPUDialect, *, as_x86: bool = False) -> None:
        super().__init__(uops, as_x86=as_x86)
        self.dialect = dialect
        self.vector_memory = find_vector_memory(uops)
        self.names = dict(dialect.names)
        if all(map(_is_short, uops)) and not variable_arguments(uops):
            self.names["int64_t"] = dialect.names["int32_t"]  # enough for every address

    def write(self, name: str) -> list[SourceLine]:
        dialect, launch = self.dialect, Launch.of(self.uops)
        buffers, variables = global_buffers(self.uops), variable_arguments(self.uops)
        written_memory = {node.src[0].src[0] for node in self.uops if node.op is Ops.STORE}
        for node in variables:
            self.name(node, variable_name(node))
        for node in self.uops:
            self.begin(node)
            self.write_node(node)
        parameters = []
        for node in buffers:
            assert isinstance(node.dtype, PtrDType)
            how = {"const": "" if node in written_memory else "const ", "type": memory_name(node.dtype.base)}
            parameters.append(dialect.parameter.format(name=f"data{node.arg}", number=node.arg, **how))
        for number, node in enumerate(variables, len(buffers)):
            parameters.append(dialect.variable.format(type="int64_t", name=self.texts[node][0], number=number))
        parameters += dialect.further
        sizes = (*(launch.group or ()), 1, 1, 1)
        limit = dialect.limit.format(x=sizes[0], y=sizes[1], z=sizes[2], all=prod(sizes))
        has_limit = launch.group is not None
        head = f"{dialect.kernel} {limit if has_limit else ''}{name}({', '.join(parameters)}) {{"
        if dialect.limit.startswith("__attribute__") and has_limit:
            head = f"{limit}{dialect.kernel} {name}({', '.join(parameters)}) {{"
        roots = tuple(node for node in self.uops if node.op in (Ops.STORE, Ops.RANGE, Ops.SPECIAL))
        head_lines = [*dialect.head, *([dialect.double] if dialect.double and self.has_doubles() else [])]
        lines = [
            *(SourceLine(line, ()) for line in head_lines),
            *self.prelude(),
            SourceLine(head, (*buffers, *variables, *roots)),
            *self.lines,
            SourceLine("}", ()),
        ]
        return [line._replace(text=self.translate_names(line.text)) for line in lines]

    def translate_names(self, line: str) -> str:
        """Translates a line of C99 to the dialect."""
        line = line.replace("static inline", self.dialect.helper).replace("static const", "const")

        def word(match: re.Match[str]) -> str:
            if match[1] is not None:
                return match[1] + self.names[match[2]]
            return self.names.get(match[0], match[0])

        return _WORD.sub(word, line)

    def has_doubles(self) -> bool:
        return any(isinstance(node.dtype, DType) and node.dtype.scalar is dtypes.float64 for node in self.uops)

    def write_node(self, node: UOp) -> None:
        if node.op is Ops.SPECIAL:
            self.special(node)
        elif is_group_barrier(node):
            self.line(self.dialect.barrier)
        elif node.op is Ops.WMMA:
            core = TENSOR_CORES[node.arg]
            function = self.needs(core.name, lambda: core_text(core), types_of(core))
            self.declare(node, f"{function}({', '.join(self.operand(src) for src in node.src)})")
        elif node.op is Ops.GEP:
            self.lane(node)
        elif node.op is not Ops.DEFINE_VAR:
            super().write_node(node)

    def alu(self, node: UOp) -> tuple[str, int]:
        """Returns an operation, with wrapping integers. Signed integers need not wrap in these languages, so they
        become unsigned."""
        if node.op not in WRAPPING or node.dtype not in _UNSIGNED or is_exact(node):
            return super().alu(node)
        assert isinstance(node.dtype, DType)
        unsigned = _UNSIGNED[node.dtype]
        values = [f"({unsigned}){self.operand(src, ATOM)}" for src in node.src]
        return f"({SCALAR[node.dtype]})({WRAPPING[node.op].format(*values)})", SUM

    def special(self, node: UOp) -> None:
        """Writes the index of a work-item or a group. The node has their number."""
        index_kind, dimension = node.arg[:-1], int(node.arg[-1])
        name, size = self.name(node, node.arg), node.src[0]
        call = self.dialect.special[index_kind].format(d=dimension, x=LETTERS[dimension])
        self.line(f"int64_t {name} = {call}; /* {text(size)} */")
        if index_kind == "idx" and self.dialect.guards:
            self.line(f"if ({name} >= {self.operand(size)}) return;")

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        space = f"{self.dialect.shared} " if is_shared(node) else ""
        declarator = f"{self.name(node, str(node.arg))}[{node.dtype.size}]"
        aligned = f" __attribute__((aligned({ALIGNMENT})))" if node in self.vector_memory else ""
        self.line(f"{space}{memory_name(node.dtype.base)} {declarator}{aligned};")

    def conversion(self, name: str) -> str:
        text = self.dialect.conversions.get(name, CONVERSIONS[name])
        for helper in CONVERSIONS_NEED.get(name, ()):
            if f"{helper}(" in text:
                self.conversion(helper)
        return self.needs(name, lambda: text)

    def bitcast(self, text: str, source: DType, target: DType) -> str:
        is_equal_type = SCALAR[source] == SCALAR[target] or dtypes.is_bool(source) or dtypes.is_bool(target)
        if is_equal_type or not self.dialect.bits:
            return super().bitcast(text, source, target)
        check_bitcast(source, target)
        return self.dialect.bits.format(type=self.translate_names(SCALAR[target]), value=text)

    # *** vectors: neighbors in memory, and the operands of a tensor core in a lane ***

    def load(self, node: UOp) -> None:
        dtype, index = node.dtype, node.src[0]
        assert isinstance(dtype, DType)
        if dtype.count == 1:
            super().load(node)
            return
        element, valid = self.vector_at(index, dtype, "const ")
        if valid is None:
            self.declare(node, element)
            return
        self.declare(node, self.splat("0", dtype))
        self.line(f"if ({self.operand(valid)}) {self.operand(node)} = {element};")

    def store(self, node: UOp) -> None:
        index, value = node.src[:2]
        dtype = value.dtype
        assert isinstance(dtype, DType)
        if dtype.count == 1:
            super().store(node)
            return
        element, valid = self.vector_at(index, dtype)
        condition = "" if valid is None else f"if ({self.operand(valid)}) "
        self.line(f"{condition}{element} = {self.operand(value)};")

    def vector_at(self, index: UOp, dtype: DType, const: str = "") -> tuple[str, UOp | None]:
        """Returns a vector at its address in memory, and the condition of the access."""
        buffer, _, valid = self.index_operands(index)
        space = self.dialect.spaces[is_shared(index.src[0])]
        return f"*({space}{const}{self.vector(dtype)}*)({buffer} + {self.operand(index.src[1], SUM)})", valid

    def vectorize(self, node: UOp) -> None:
        lanes = ", ".join(self.operand(src) for src in node.src)
        self.declare(node, self.dialect.together.format(type=self.type_of(node), lanes=lanes))

    def lane(self, node: UOp) -> None:
        vector = node.src[0]
        text = self.dialect.lane.format(vector=self.operand(vector, ATOM), n=node.arg)
        self.declare(node, f"{text} != 0" if dtypes.is_bool(node.dtype) else text)

    def splat(self, text: str, dtype: DType) -> str:
        return self.dialect.together.format(type=self.vector(dtype), lanes=", ".join([text] * dtype.count))

    def vector_type(self, dtype: DType) -> str:
        return held_text(dtype)

    def vector(self, dtype: DType) -> str:
        """Returns the name of a vector type. Bools are bytes."""
        if dtype.count > 1 and dtypes.is_bool(dtype):
            dtype = dtypes.uint8.vec(dtype.count)
        return short_name(dtype) if self.dialect.vectors and dtype.count > 1 else super().vector(dtype)


def _is_short(node: UOp) -> bool:
    """Whether a 64-bit integer certainly fits in 32 bits, and a float is not converted through a 64-bit integer."""
    if node.op is Ops.CAST and dtypes.is_float(node.src[0].dtype) and node.dtype in (dtypes.uint32, dtypes.uint64):
        return False
    if isinstance(node.dtype, PtrDType):
        return node.dtype.base is not dtypes.int64
    return node.dtype is not dtypes.int64 or is_short(node)
