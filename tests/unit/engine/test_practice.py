"""Practice leaves nothing behind but what is done once in a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyexplore.device import Device
from tinyexplore.engine import compile as compiling
from tinyexplore.engine import practice, ready, runner
from tinyexplore.kernel import Kernel, OptOps
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime.pool import wait_for_pool_ahead
from tinyexplore.trace import Recorder, recording
from tinyexplore.util import Context, GlobalCounters


def test_a_product_goes_all_the_way_to_text_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Device["LLVM"]
    wait_for_pool_ahead()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[tuple[Kernel, ProgramSpec]] = []
    lowered = compiling.lowered

    def listening(device: str, kernel: Kernel) -> ProgramSpec:
        made.append((kernel, lowered(device, kernel)))
        return made[-1][1]

    monkeypatch.setattr(practice, "lowered", listening)
    before = (dict(runner._runners), dict(compiling._programs), GlobalCounters.kernel_count, GlobalCounters.mem_used)
    recorder = Recorder()
    with recording(recorder), Context(NOOPT=1, BEAM=2):
        practice.practise("LLVM")
    after = (dict(runner._runners), dict(compiling._programs), GlobalCounters.kernel_count, GlobalCounters.mem_used)
    assert after == before
    assert not recorder.events and not list(tmp_path.rglob("*"))
    ((kernel, spec),) = made
    assert {OptOps.VECTOR, OptOps.UPCAST} <= {opt.op for opt in kernel.applied} and spec.source


def test_what_goes_wrong_is_left_to_the_first_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a rule of a notebook's")

    monkeypatch.setattr(practice, "lowered", refuse)
    practice.practise("LLVM")


def test_a_device_is_practised_on_only_while_its_threads_are_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    practised: list[str] = []
    monkeypatch.setattr(ready, "practise", practised.append)
    for being_compiled in (True, False):
        monkeypatch.setattr(ready, "is_pool_being_compiled", lambda answer=being_compiled: answer)
        monkeypatch.setattr(ready, "_ready", set())
        ready.make_ready("LLVM")
        ready.make_ready("LLVM")
    assert practised == ["LLVM"]
