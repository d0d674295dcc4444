"""Renders the linear program as Python: one function over memoryviews, which the reference interpreter executes.

Scalars are Python numbers, vectors are lists. float32 results are rounded by passing through a one-element float32
view. An operation without a short form calls a function named after its meaning (`exp_float32`), which
`tinyexplore.uop.semantics` defines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.program import (
    ProgramSpec,
    RenderError,
    global_buffers,
    is_group_barrier,
    is_shared,
    spec_of,
    variable_arguments,
)
from tinyexplore.renderer.text import ATOM, LOOSE, SUM, TextWriter, infix, variable_name
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds, is_exact
from tinyexplore.uop.semantics import to_dtype_range


def memory_format(dtype: DType) -> str:
    """Returns the memoryview format of elements of `dtype`. 16-bit floats are read as their bits."""
    if dtype.scalar in dtypes.fp8s:
        return "B"
    return "H" if dtype.scalar in (dtypes.float16, dtypes.bfloat16) else str(dtype.fmt)


def meaning_name(op: Ops, dtype: DType, source: DType) -> str:
    """Returns the name of the function of `op` in the text."""
    if op in (Ops.CAST, Ops.BITCAST):
        return f"{op.name.lower()}_{source.name}_to_{dtype.name}"
    return f"{op.name.lower()}_{source.name}"


class PythonRenderer:
    """Renders Python source for the interpreter. `compiler` names the Python that executes it."""

    language = "python"

    def __init__(self, target: Target, compiler: str = "python") -> None:
        self.target = target
        self.compiler = compiler

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a function called `name`."""
        lines = (WorkItemWriter if self.target.has_local else PythonWriter)(uops).write(name)
        return spec_of(name, self.target, uops, self.language, lines, self.compiler)


class PythonWriter(TextWriter):
    """Writes a function whose parameters are views of the buffers, Variables, and the start and stop of the THREAD
    axis."""

    indent_text = "    "

    def write(self, name: str) -> list[SourceLine]:
        buffers = global_buffers(self.uops)
        self.opened: dict[UOp, int] = {}
        variables = variable_arguments(self.uops)
        names = [f"data{node.arg}" for node in buffers] + [self.name(node, variable_name(node)) for node in variables]
        parameters = ", ".join([*names, *self.further_parameters()])
        self.lines.append(SourceLine(f"def {name}({parameters}):", (*buffers, *variables)))
        if any(node.dtype is dtypes.float32 and node.op in _ROUNDED for node in self.uops):
            self.line('f32 = memoryview(bytearray(4)).cast("f")  # rounds what passes through it')
        for node in self.uops:
            self.begin(node)
            self.write_node(node)
        if len(self.lines) == 1:
            self.line("pass")
        return self.lines

    def further_parameters(self) -> list[str]:
        """Returns the parameters beside buffers and Variables."""
        return ["start", "stop"]

    def constant(self, node: UOp) -> str:
        assert isinstance(node.dtype, DType)
        value = to_dtype_range(node.arg, node.dtype)
        text = repr(value) if not isinstance(value, float) or math.isfinite(value) else f"{value}"
        return text if node.dtype.count == 1 else f"[{text}] * {node.dtype.count}"

    def write_vector(self, node: UOp) -> None:
        """Writes an operation on whole vectors."""
        match node.op:
            case Ops.VECTORIZE:
                if all(src is node.src[0] for src in node.src):
                    self.assign(node, f"[{self.operand(node.src[0])}] * {len(node.src)}")
                else:
                    self.assign(node, f"[{', '.join(self.operand(src) for src in node.src)}]")
            case Ops.GEP:
                vector = self.operand(node.src[0], ATOM)
                self.assign(node, f"({vector})[{node.arg}]" if node.src[0].op is Ops.CONST else f"{vector}[{node.arg}]")
            case Ops.TABLE:
                index, mask = self.operand(node.src[0]), len(node.arg) - 1
                vector = node.dtype.count > 1
                self.assign(
                    node, f"[{node.arg}[i & {mask}] for i in {index}]" if vector else f"{node.arg}[{index} & {mask}]"
                )
            case Ops.HREDUCE:
                function = meaning_name(node.arg, node.dtype.scalar, node.dtype.scalar)
                rows = [f"halves({function}, {self.operand(src)})" for src in node.src]
                self.assign(node, rows[0] if len(rows) == 1 else f"[{', '.join(rows)}]")

    def write_node(self, node: UOp) -> None:
        op = node.op
        if op in OpGroups.ALU:
            self.write_alu(node)
            return
        match op:
            case Ops.CONST | Ops.BARRIER | Ops.INDEX | Ops.DEFINE_VAR | Ops.PREFETCH:
                pass
            case Ops.DEFINE_GLOBAL:
                self.name(node, f"data{node.arg}")
            case Ops.DEFINE_LOCAL:
                assert isinstance(node.dtype, PtrDType)
                base = node.dtype.base
                name = self.name(node, str(node.arg))
                self.line(
                    f'{name} = memoryview(bytearray({node.dtype.size * base.itemsize})).cast("{memory_format(base)}")'
                )
            case Ops.DEFINE_ACC:
                value = self.operand(node.src[0])
                self.line(f"{self.name(node, f'acc{node.arg}')} = {value}")
            case Ops.ASSIGN:
                self.line(f"{self.operand(node.src[0])} = {self.operand(node.src[1])}")
            case Ops.RESULT:
                self.texts[node] = self.texts[node.src[0]]
            case Ops.RANGE:
                bounds_text = "start, stop" if node.arg.kind is AxisKind.THREAD else self.operand(node.src[0])
                self.opened[node] = len(self.lines)
                self.line(f"for {self.name(node, node.arg.name)} in range({bounds_text}):")
                self.depth += 1
            case Ops.ENDRANGE:
                if self.lines[-1].text.endswith(":"):
                    self.line("pass")
                self.depth -= 1
                opening = self.lines[self.opened[node.src[0]]]  # the end of a loop has no separate line
                self.lines[self.opened[node.src[0]]] = opening._replace(uops=(*opening.uops, node))
            case Ops.LOAD:
                self.load(node)
            case Ops.STORE:
                self.store(node)
            case Ops.WMMA:
                operands = ", ".join([self.operand(src) for src in node.src])
                self.assign(node, f"{node.arg}({operands})")
            case Ops.VECTORIZE | Ops.GEP | Ops.TABLE | Ops.HREDUCE:
                self.write_vector(node)
            case _:
                raise RenderError(f"{node!r} does not belong in a linear program")

    def assign(self, node: UOp, text: str) -> None:
        self.line(f"{self.variable(node)} = {text}")

    # *** memory ***

    def index_operands(self, index: UOp) -> tuple[str, str]:
        """Returns the view and the position of an INDEX. Python counts negative positions from the end; `at` rejects
        them."""
        buffer, position = index.src[:2]
        self.attribute_to((index,))
        text = self.operand(position)
        return self.operand(buffer), text if bounds(position)[0] >= 0 else f"at({text})"

    def load(self, node: UOp) -> None:
        index = node.src[0]
        dtype = node.dtype
        assert isinstance(dtype, DType)
        view, position = self.index_operands(index)
        valid = index.src[2] if len(index.src) > 2 else None
        if dtype.count == 1:
            text = self.from_bits(dtype, f"{view}[{position}]")
            if valid is not None:
                zero = {True: "0.0", False: "0"}[dtypes.is_float(dtype)]
                zero = "False" if dtypes.is_bool(dtype) else zero
                text = f"{text} if {self.operand(valid)} else {zero}"
            self.assign(node, text)
            return
        mask = "None" if valid is None else self.operand(valid)
        text = f"load({view}, {self.start(index, dtype.count)}, {dtype.count}, {mask})"
        if memory_format(dtype) == "H" and dtypes.is_float(dtype):
            text = f"[{self.from_bits(dtype, 'x')} for x in {text}]"
        self.assign(node, text)

    def store(self, node: UOp) -> None:
        index, value = node.src[:2]
        dtype = value.dtype
        assert isinstance(dtype, DType)
        view, position = self.index_operands(index)
        valid = index.src[2] if len(index.src) > 2 else None
        if dtype.count == 1:
            condition = "" if valid is None else f"if {self.operand(valid)}: "
            self.line(f"{condition}{view}[{position}] = {self.to_bits(dtype, self.operand(value))}")
            return
        text = self.operand(value)
        if memory_format(dtype) == "H" and dtypes.is_float(dtype):
            text = f"[{self.to_bits(dtype, 'x')} for x in {text}]"
        mask = "None" if valid is None else self.operand(valid)
        self.line(f"store({view}, {self.start(index, dtype.count)}, {text}, {mask})")

    def start(self, index: UOp, count: int) -> str:
        """Returns the position of the first of `count` neighbors."""
        return self.operand(index.src[1])

    def from_bits(self, dtype: DType, text: str) -> str:
        return f"{dtype.name}_from_bits({text})" if dtype.scalar in (dtypes.float16, dtypes.bfloat16) else text

    def to_bits(self, dtype: DType, text: str) -> str:
        return f"{dtype.name}_bits({text})" if dtype.scalar in (dtypes.float16, dtypes.bfloat16) else text

    # *** arithmetic ***

    def write_alu(self, node: UOp) -> None:
        if node.dtype.count > 1 or node.src[0].dtype.count > 1:
            self.assign(node, self.lanewise(node))
            return
        text, tightness = self.scalar(node)
        if self.inlined(node, text, tightness):
            return
        if node.dtype is dtypes.float32 and node.op in _ROUNDED:
            self.line(f"f32[0] = {text}; {self.variable(node)} = f32[0]")
            return
        self.assign(node, text)

    def call(self, node: UOp) -> str:
        """Writes a call of the function that defines this operation."""
        source = node.src[1].dtype if node.op is Ops.WHERE else node.src[0].dtype
        assert isinstance(node.dtype, DType) and isinstance(source, DType)
        return meaning_name(node.op, node.dtype.scalar, source.scalar)

    def lanewise(self, node: UOp) -> str:
        names = "xyz"[: len(node.src)]
        sources = [self.operand(src) for src in node.src]
        scalar_condition = node.op is Ops.WHERE and node.src[0].dtype.count == 1
        if scalar_condition:
            return f"{self.operand(node.src[1])} if {self.operand(node.src[0])} else {self.operand(node.src[2])}"
        if len(names) == 1:
            return f"[{self.call(node)}(x) for x in {sources[0]}]"
        return f"[{self.call(node)}({', '.join(names)}) for {', '.join(names)} in zip({', '.join(sources)})]"

    def scalar(self, node: UOp) -> tuple[str, int]:
        """Returns the expression of a scalar operation, not yet rounded to float32, and its precedence."""
        op, dtype, src = node.op, node.dtype, node.src
        assert isinstance(dtype, DType)
        source = src[0].dtype
        assert isinstance(source, DType)
        if op is Ops.WHERE:
            return f"{self.operand(src[1], SUM)} if {self.operand(src[0], SUM)} else {self.operand(src[2], SUM)}", LOOSE
        if op in OpGroups.COMPARE:
            return infix(self, node)
        if op in (Ops.MAX, Ops.MIN) and not dtypes.is_bool(dtype) and not any(s.op is Ops.CONST for s in src):
            left, right = (self.operand(item, ATOM) for item in src)
            unordered = f" or {left} != {left}" if dtypes.is_float(dtype) else ""
            return f"{left} if {left} {'>' if op is Ops.MAX else '<'} {right}{unordered} else {right}", LOOSE
        if dtype in (dtypes.float32, dtypes.float64):
            return self.float_scalar(node)
        if dtypes.is_bool(dtype) and op in _BOOL:
            left, right = (self.operand(item, SUM) for item in src)
            return f"{left} {_BOOL[op]} {right}", LOOSE
        if dtypes.is_int(dtype):
            return self.int_scalar(node)
        return self.call_text(node)

    def call_text(self, node: UOp) -> tuple[str, int]:
        return f"{self.call(node)}({', '.join(self.operand(src) for src in node.src)})", ATOM

    def float_scalar(self, node: UOp) -> tuple[str, int]:
        op, src = node.op, node.src
        if op in (Ops.ADD, Ops.MUL):
            return infix(self, node)
        if op is Ops.NEG:
            return f"-{self.operand(src[0], ATOM)}", LOOSE
        if op is Ops.MULACC:
            return f"{self.operand(src[0], ATOM)} * {self.operand(src[1], ATOM)} + {self.operand(src[2], SUM)}", SUM
        exact_double = node.dtype is dtypes.float64 and src[0].dtype in (
            dtypes.float32,
            dtypes.float16,
            dtypes.bfloat16,
        )
        if op is Ops.CAST and exact_double:
            return self.operand(src[0]), LOOSE
        return self.call_text(node)

    def int_scalar(self, node: UOp) -> tuple[str, int]:
        op, dtype, src = node.op, node.dtype, node.src
        assert isinstance(dtype, DType)
        if op in (Ops.AND, Ops.OR, Ops.XOR) or (op is Ops.SHR and bounds(src[1])[0] >= 0):
            return infix(self, node)
        if op in (Ops.IDIV, Ops.MOD) and bounds(src[0])[0] >= 0 and bounds(src[1])[0] > 0:
            symbol = "//" if op is Ops.IDIV else "%"
            return f"{self.operand(src[0], ATOM)} {symbol} {self.operand(src[1], ATOM)}", SUM
        if op is Ops.CAST and dtypes.is_int(src[0].dtype) and _fits(src[0], dtype):
            return self.operand(src[0]), LOOSE
        if op not in (Ops.ADD, Ops.MUL):
            return self.call_text(node)
        text, tightness = infix(self, node)
        if is_exact(node):
            return text, tightness
        if dtypes.is_unsigned(dtype):
            return f"({text}) & {(1 << dtype.bits) - 1:#x}", LOOSE
        sign_bit = 1 << (dtype.bits - 1)
        return f"(({text} + {sign_bit:#x}) & {2 * sign_bit - 1:#x}) - {sign_bit:#x}", SUM


class WorkItemWriter(PythonWriter):
    """Writes the code of one work-item of a GPU: a function of its indices and of its group's shared memory.

    With barriers or tensor cores it is a generator. It stops at every barrier, and at a tensor core that needs operands
    of all lanes of a warp.
    """

    def further_parameters(self) -> list[str]:
        shared = [str(node.arg) for node in self.uops if is_shared(node)]
        return shared + [node.arg for node in self.uops if node.op is Ops.SPECIAL]

    def start(self, index: UOp, count: int) -> str:
        return f"aligned({super().start(index, count)}, {count})"

    def write_node(self, node: UOp) -> None:
        if node.op is Ops.SPECIAL or is_shared(node):
            self.name(node, str(node.arg))
        elif is_group_barrier(node):
            self.line(f"yield {len(self.lines)}  # barrier")
        elif node.op is Ops.WMMA:
            args = ", ".join(self.operand(src) for src in node.src)
            text = (
                f"{self.variable(node)} = yield {len(self.lines)}, {node.arg!r}, {args}  # with all lanes of the warp"
            )
            self.line(text)
        else:
            super().write_node(node)


# written as double arithmetic; all other operations are exact, or calls
_ROUNDED = frozenset({Ops.ADD, Ops.MUL, Ops.MULACC})
_BOOL = {Ops.ADD: "|", Ops.MAX: "|", Ops.OR: "|", Ops.MUL: "&", Ops.MIN: "&", Ops.AND: "&", Ops.XOR: "^"}


def _fits(node: UOp, dtype: DType) -> bool:
    low, high = bounds(node)
    return low >= dtypes.min(dtype) and high <= dtypes.max(dtype)
