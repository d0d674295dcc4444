"""Kernels for AArch64 under QEMU agree with NumPy; `python -m tests.emulated` runs all programs."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backends.programs import call, elementwise
from tests.emulated import __main__ as command
from tests.emulated.device import Crashed, EmulatedProgram, Emulator, Lacking, emulated
from tests.emulated.programs import Counts, run_golden, run_random
from tests.golden import programs as golden
from tinyexplore import Tensor
from tinyexplore.device import Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.program import CompileOptions
from tinyexplore.runtime.llvm import compiler_for
from tinyexplore.uop.semantics import cast, to_dtype_range

BEYOND = """
define void @beyond_entry(ptr %buffers, i64 %start, i64 %stop) {
  %buffer = load ptr, ptr %buffers
  %place = getelementptr i8, ptr %buffer, i64 %stop
  store i8 7, ptr %place
  ret void
}
"""


@pytest.fixture
def arm() -> Iterator[Emulator]:
    try:
        opened = emulated("neoverse-n1")
        emulator = opened.__enter__()
    except Lacking as error:
        pytest.skip(str(error))
    try:
        yield emulator
    finally:
        opened.__exit__(None, None, None)


def test_programs_for_arm_agree_with_numpy(arm: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = dict(list(golden.MADE.items())[::4])  # the command has all
    monkeypatch.setattr(golden, "MADE", chosen)
    counts = Counts()
    run_golden(arm, counts)
    run_random(arm, counts, range(1000, 1012))
    assert counts.different == []
    assert counts.programs > len(chosen) + 5 and counts.kernels > counts.programs and arm.calls >= counts.kernels


EDGES = [sign * 2.0**n + step for n in (7, 8, 15, 31, 32, 63, 64, 70) for sign in (1, -1) for step in (0, -1, 0.75)]
EDGES += [math.inf, -math.inf, math.nan, -0.0, 0.5, -0.999, 65504.0, -300.0, *range(-4, 4)]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("source", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("language", ["LLVM", "C"])
def test_floats_out_of_integer_range_are_cast_as_on_other_devices(
    arm: Emulator, language: str, source: DType, lanes: int
) -> None:
    targets = [one for one in dtypes.all if dtypes.is_int(one)]
    values = [to_dtype_range(value, source) for value in EDGES]
    uops, outputs = elementwise([source], lambda x: [x[0].cast(one.vec(lanes)) for one in targets], len(values), lanes)
    opened = Device["EMULATED"]
    if language == "C":
        spec = CRenderer(opened.target).render("casts", uops)
        ready: Any = EmulatedProgram(arm, spec, arm.compile_c(spec))
    else:
        ready = opened.compile(opened.renderer.render("casts", uops))
    results = call(ready, [(one, len(values)) for one in outputs], [(source, values)])
    for target, found in zip(targets, results, strict=True):
        assert found == [cast(value, target, source) for value in values], target


def test_a_wrong_instruction_is_detected(arm: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = compiler_for("neoverse-n1")
    honest = compiler.object_code
    monkeypatch.setattr(compiler, "object_code", lambda ir, options: honest(ir.replace("fadd", "fsub"), options))
    monkeypatch.setattr(golden, "MADE", {"add": golden.MADE["add"]})
    counts = Counts()
    run_golden(arm, counts)
    assert [name for name, _ in counts.different] == ["add"]


def test_accesses_outside_a_buffer_are_detected(arm: Emulator) -> None:
    compiler = compiler_for("neoverse-n1")
    library = arm.link("beyond", compiler.object_code(BEYOND, CompileOptions()))
    content = bytes(24)
    for at_start in (False, True):
        assert arm.call(library, "beyond_entry", 0, 3, [(content, at_start)], ()) == [b"\0\0\0\7" + bytes(20)]
    for at_start, place in ((False, 24), (True, -1)):
        with pytest.raises(Crashed, match="beyond_entry: the emulated process ended"):
            arm.call(library, "beyond_entry", 0, place, [(content, at_start)], ())
    assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]  # with a new process


def test_a_missing_emulator_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Lacking, match="no emulator is known for x86_64"):
        Emulator("x86-64-v3")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["emulated"])
    assert command.main() == command.ABSENT
    assert "aarch64-linux-gnu-gcc was not found: apt-get" in capsys.readouterr().out
