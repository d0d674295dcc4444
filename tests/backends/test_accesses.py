"""No instruction reads or writes outside the program's accesses, for any CPU and any optimization level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from tests.backends.programs import elementwise
from tests.fuzz.opts import fenced
from tests.fuzz.programs import PROGRAMS
from tests.support.accesses import type_bytes, wide_accesses
from tinyexplore.codegen import lower
from tinyexplore.device import Buffer
from tinyexplore.dtype import DType, dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.renderer import Effort, ProgramSpec
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.renderer.llvm import effort as effort_module
from tinyexplore.renderer.program import global_buffers
from tinyexplore.runtime.llvm import LLVMCompiler, llvm_target
from tinyexplore.target import Target, choice_of, machine
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Ops, UOp

pytestmark = pytest.mark.skipif(machine() != "x86_64", reason="only x86 assembly says how wide an access is")

CPUS = ("x86-64", "x86-64-v2", "sandybridge", "x86-64-v3", "znver3", "x86-64-v4", "native")
FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
INTS = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.int64, dtypes.uint64)
Build = Callable[[list[UOp]], list[UOp]]


@cache
def opened(cpu: str) -> tuple[LLVMCompiler, Target]:
    choice = choice_of(cpu)
    compiler = LLVMCompiler(choice)
    return compiler, llvm_target(compiler, choice)


def operations(dtype: DType) -> Iterator[tuple[int, Build]]:
    """Every kind of operation on `dtype`, of values that nothing else uses, and how many values it takes."""
    yield 4, lambda x: [(x[0] < x[1]).where(x[2], x[3])]
    yield 3, lambda x: [(x[0] < x[1]).where(x[2], UOp.const(x[2].dtype, 0))]
    yield 3, lambda x: [(x[0] < x[1]).where(UOp.const(x[2].dtype, 1), x[2])]
    yield 2, lambda x: [x[0].maximum(x[1])]
    yield 2, lambda x: [x[0].minimum(x[1])]
    yield 2, lambda x: [x[0] + x[1]]
    yield 2, lambda x: [x[0] * x[1]]
    yield 3, lambda x: [UOp(Ops.MULACC, x[0].dtype, (x[0], x[1], x[2]))]
    yield 1, lambda x: [-x[0]]
    yield 2, lambda x: [x[0] < x[1]]
    for other in (dtypes.bool, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int8, dtypes.int32, dtypes.int64):
        if other is not dtype:
            yield 1, lambda x, other=other: [x[0].cast(other.vec(x[0].dtype.count))]
    if dtype in FLOATS:
        yield 2, lambda x: [UOp(Ops.FDIV, x[0].dtype, (x[0], x[1]))]
        yield 1, lambda x: [UOp(Ops.SQRT, x[0].dtype, (x[0],))]
    else:
        for op in (Ops.AND, Ops.OR, Ops.XOR, Ops.IDIV):
            yield 2, lambda x, op=op: [UOp(op, x[0].dtype, (x[0], x[1]))]


def checked(cpu: str, programs: Iterator[tuple[str, list[UOp]]], hardly: bool | None) -> int:
    """How many accesses the programs have; hardly: whether all of them, or none, get the quick selection."""
    compiler, target = opened(cpu)
    total = 0
    for name, uops in programs:
        spec = LLVMRenderer(target).render(name, uops)
        assert hardly is None or (spec.options.effort is Effort.LEAST) is hardly
        count, wrong = wide_accesses(compiler, spec)
        assert not wrong, f"{cpu}: {wrong[0]}\n{spec.source}"
        total += count
    return total


def single_operations(widths: Sequence[int] = (1, 3, 8)) -> Iterator[tuple[str, list[UOp]]]:
    """A program each: quick selection gives up a block of code at the first thing that it does not know."""
    for dtype in (*FLOATS, *INTS):
        for lanes in widths:
            for number, (count, build) in enumerate(operations(dtype)):
                uops, _ = elementwise([dtype] * count, build, lanes * 3, lanes)
                yield f"op{number}_{dtype.name}_{lanes}", uops


def operations_together() -> Iterator[tuple[str, list[UOp]]]:
    """All of a type in one program, which is sooner compiled."""
    for dtype in (*FLOATS, *INTS):
        for lanes in (1, 3, 4, 8, 16):
            parts = list(operations(dtype))

            def build(x: list[UOp], parts: list[tuple[int, Build]] = parts) -> list[UOp]:
                given = iter(x)
                return [result for count, part in parts for result in part([next(given) for _ in range(count)])]

            uops, _ = elementwise([dtype] * sum(count for count, _ in parts), build, lanes * 3, lanes)
            yield f"all_{dtype.name}_{lanes}", uops


def kernels(target: Target) -> Iterator[tuple[str, list[UOp]]]:
    """The fuzz's programs, with the opts that they get."""
    for number, make in enumerate(PROGRAMS.values()):
        for item in create_schedule([make(Random(number), "LLVM").lazydata.base]):
            if item.ast is not None:
                kernel = apply_heuristics(Kernel.of(item.ast, target))
                yield kernel.name, list(lower(kernel))


@pytest.mark.parametrize("hardly", [True, False])
@pytest.mark.parametrize("cpu", CPUS)
def test_an_operation_accesses_only_its_operands(cpu: str, hardly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "is_brief", lambda uops: hardly)
    assert checked(cpu, single_operations() if hardly else operations_together(), hardly) > 2000


@pytest.mark.parametrize("cpu", CPUS)
def test_a_kernel_accesses_only_its_buffers(cpu: str) -> None:
    _, target = opened(cpu)
    assert checked(cpu, kernels(target), None) > 200


@pytest.mark.parametrize("at_start", [False, True])
@pytest.mark.parametrize("cpu", CPUS)
def test_buffers_between_guard_pages(cpu: str, at_start: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not fail but crash."""
    compiler, target = opened(cpu)
    if compiler.refusal:
        pytest.skip(compiler.refusal)
    monkeypatch.setattr(effort_module, "is_brief", lambda uops: True)
    for name, uops in single_operations((1, 3)):
        spec = LLVMRenderer(target).render(name, uops)
        types = [node.dtype for node in global_buffers(uops)]
        buffers = [fenced("LLVM", Buffer("LLVM", kind.size, kind.base), at_start=at_start) for kind in types]
        compiler.load(spec, compiler.object_code(spec.source, spec.options)).bind(buffers)(0, 0)


def test_sizes_of_llvm_types() -> None:
    widths = {"float": 4, "<8 x half>": 16, "i64": 8, "<3 x i8>": 3, "<16 x i1>": 16, "ptr": 8, "<4 x double>": 32}
    assert {text: type_bytes(text) for text in widths} == widths


def test_a_load_widened_by_instruction_selection_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's quick selection of instructions folds a plain load of 4 bytes into a blend, which reads 16."""
    render = LLVMRenderer.render

    def with_plain_loads(renderer: LLVMRenderer, name: str, uops: list[UOp]) -> ProgramSpec:
        spec = render(renderer, name, uops)
        lines = tuple(SourceLine(line.text.replace("load volatile", "load"), line.uops) for line in spec.lines)
        return replace(spec, lines=lines)

    monkeypatch.setattr(LLVMRenderer, "render", with_plain_loads)
    with pytest.raises(AssertionError, match="vblendvps .*xmmword ptr .*found=16, asked=4"):
        checked("x86-64-v3", single_operations(), None)
