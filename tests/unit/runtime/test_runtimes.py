"""The devices: errors of opening and compiling, the disk cache, aligned stores, the interpreter's speed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.backends.programs import C_COMPILERS, call, device, elementwise, end, linear, load, loop, pointer, store
from tests.support.missing import without_package
from tinyexplore.device import Buffer, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime import clang
from tinyexplore.runtime.native import cache_bytes, cpu_target
from tinyexplore.target.choice import machine
from tinyexplore.trace import SourceLine
from tinyexplore.uop import UOp
from tinyexplore.util import Context

f32 = dtypes.float32


def spec_with_text(spec: ProgramSpec, text: str) -> ProgramSpec:
    from dataclasses import replace

    return replace(spec, lines=tuple(SourceLine(line, ()) for line in text.splitlines()))


def doubled() -> list[UOp]:
    return elementwise([f32], lambda x: [x[0] * 2.0], 4)[0]


def test_without_llvmlite_the_llvm_device_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyexplore.runtime.llvm import LLVMCompiler

    without_package(monkeypatch, "llvmlite")
    with pytest.raises(DeviceUnavailable, match="pip install llvmlite"):
        LLVMCompiler()


def test_without_a_c_compiler_the_clang_device_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(DeviceUnavailable, match="CC='no-such-compiler': no such program"):
        clang.open_clang()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DeviceUnavailable, match="clang, gcc, cc .*install"):
        clang.open_clang()


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_errors_of_the_c_compiler_show_the_line(compiler: str) -> None:
    opened = device(f"CLANG with {compiler}")
    spec = opened.renderer.render("broken", doubled())
    with pytest.raises(clang.CompileError, match=r"could not compile(.|\n)*line 2: int x = nonsense;"):
        opened.compile(spec_with_text(spec, "#include <math.h>\nint x = nonsense;\n"))


def test_invalid_ir_is_refused() -> None:
    opened = device("LLVM")
    spec = opened.renderer.render("broken", doubled())
    with pytest.raises(RuntimeError, match="use of undefined value"):
        opened.compile(spec_with_text(spec, "define float @broken() {\n  ret float %nothing\n}"))


@pytest.mark.parametrize("name", ["LLVM", *(f"CLANG with {compiler}" for compiler in C_COMPILERS)])
def test_programs_from_the_cache_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    opened = device(name)
    with Context(CACHELEVEL=1):
        for _ in range(2):
            program = opened.compile(opened.renderer.render("kernel", doubled()))
            assert call(program, [(f32, 4)], [(f32, [1.0, 2.0, 3.0, 4.0])]) == [[2.0, 4.0, 6.0, 8.0]]
    assert len(list((tmp_path / "tinyexplore").glob("[!.]*"))) == 1


def test_a_large_result_may_be_in_unaligned_memory() -> None:
    size = device("LLVM").target.min_memory_bytes // 4
    out, source = pointer(0, f32, size), pointer(1, f32, size)
    step = loop(size // 16)
    uops = linear(out, source, step, store(out, step * 16, load(source, step * 16, 16) + 1.0), end(step))
    opened = device("LLVM")
    spec = opened.renderer.render("copy", uops)
    assert spec.aligned == {0}
    program = opened.compile(spec)
    values = Buffer("LLVM", size, f32).copyin(bytes(4 * size))
    aligned = Buffer("LLVM", size, f32).allocate()
    raw = bytearray(4 * size + 128)
    offset = 4 + -Buffer.from_memory("LLVM", dtypes.uint8, raw).address % 64
    unaligned = Buffer.from_memory("LLVM", f32, memoryview(raw)[offset : offset + 4 * size])
    for target in (aligned, unaligned):
        program.bind([target, values])(0, 0)
        assert target.copyout() == b"\0\0\x80?" * size


def test_the_interpreter_is_not_far_behind_a_plain_loop() -> None:
    """It checks types and bounds and rounds to float32, and does ten million operations a second all the same."""
    out, source = pointer(0, f32, 50_000), pointer(1, f32, 50_000)
    step = loop(50_000)
    x = load(source, step)
    uops = linear(out, source, step, store(out, step, (x * 2.0 + 1.0) * x + 3.0), end(step))
    opened = device("PYTHON")
    program = opened.compile(opened.renderer.render("polynomial", uops))
    buffers = [Buffer("PYTHON", 50_000, f32).copyin(bytes(200_000)) for _ in range(2)]
    run = program.bind(buffers)
    numbers, results = [0.5] * 50_000, [0.0] * 50_000

    def plain() -> None:
        for i in range(50_000):
            value = numbers[i]
            results[i] = (value * 2.0 + 1.0) * value + 3.0

    interpreted = loop_of_python = float("inf")
    for _ in range(3):
        start = time.thread_time()
        run(0, 0)
        interpreted = min(interpreted, time.thread_time() - start)
        start = time.thread_time()
        plain()
        loop_of_python = min(loop_of_python, time.thread_time() - start)
    assert interpreted < 40 * loop_of_python, (interpreted, loop_of_python)


def test_float16_is_converted_exactly_on_a_cpu_without_instructions_for_it() -> None:
    from tinyexplore.renderer.llvm import LLVMRenderer
    from tinyexplore.runtime.llvm import LLVMCompiler
    from tinyexplore.target import choice_of, machine
    from tinyexplore.uop.semantics import float16, from_bits

    choice = choice_of("x86-64" if machine() == "x86_64" else "native")
    compiler = LLVMCompiler(choice)
    target = cpu_target("LLVM", compiler.cpu, compiler.features, frozenset(), (), choice)
    numbers = [from_bits(bits, dtypes.float16) for bits in range(0, 1 << 16, 7)]
    between = [x * (1 + step * 2.0**-12) for x in numbers[::5] for step in (-1, 0, 1, 2)]
    for values, source, to in ((numbers, dtypes.float16, f32), (between, f32, dtypes.float16)):
        uops, _ = elementwise([source], lambda x, to=to: [x[0].cast(to)], len(values))
        spec = LLVMRenderer(target, compiler.version).render("convert", uops)
        (found,) = call(
            compiler.load(spec, compiler.object_code(spec.source, spec.options)),
            [(to, len(values))],
            [(source, values)],
        )
        expected = values if to is f32 else [float16(x) for x in values]
        assert [repr(x) for x in found] == [repr(x) for x in expected]


def test_the_target_has_the_vector_width_of_the_machine() -> None:
    wide = cpu_target("X", "any", "+avx2,+avx512f,-sse4a", frozenset(), ())
    narrow = cpu_target("X", "any", "+avx2,-avx512f", frozenset(), ())
    from tinyexplore.target import machine

    if machine() == "x86_64":
        assert (wide.vector_bytes, wide.vector_registers) == (64, 32)
        assert (narrow.vector_bytes, narrow.vector_registers) == (32, 16)
    assert cache_bytes(9, 12345) == 12345
    assert 0 < wide.l1_bytes <= wide.l2_bytes


@pytest.mark.skipif(machine() != "x86_64" or not C_COMPILERS, reason="the first x86-64, by a C compiler")
def test_a_target_without_any_feature_runs() -> None:
    program = "from tinyexplore import Tensor\nprint((Tensor([1, 2]) + 1).tolist())"
    for name in ("x86-64", "native"):
        with_target = {**os.environ, "TARGET": name, "DEVICE": "CLANG"}
        found = subprocess.run([sys.executable, "-c", program], env=with_target, capture_output=True, text=True)
        assert found.stdout == "[2, 3]\n", found.stderr
