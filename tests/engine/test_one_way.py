"""A program does the same work with and without a recorder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyexplore
from tinyexplore import Tensor, explore
from tinyexplore.engine import step_by_step
from tinyexplore.explore.recording.event_order import ordered_events
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.trace import ExecItemRan, ProgramCompiled, Recorder, StageBegan, StageEnded, recording
from tinyexplore.uop import UOp

ROOT = Path(tinyexplore.__file__).parents[1]
WIDTHS = (3, 5, 6)


def in_a_process(*arguments: str) -> Any:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CACHELEVEL": "0"}
    command = [sys.executable, "-m", "tests.engine.one_way", *arguments]
    return json.loads(subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout)


def test_recording_does_not_change_decisions_kernels_and_firings() -> None:
    plain, watched = in_a_process(), in_a_process("watched")
    assert plain == watched
    assert all(program["told"] and len(program["fired"]) > 10 for program in watched.values())


def test_code_that_checks_for_a_recorder_only_records() -> None:
    """The engine's checks for a recorder: each guards only a call of `record`."""
    allowed = re.compile(
        r"recorder( is not None)?:$"  # if recorder is not None:
        r"|recorder = active_recorder\(\)( if how is not None else None)?$"
        r"|listening = active_recorder\(\)$"
        r"|if recorder := active_recorder\(\):$"
        r"|self\.recorder = active_recorder\(\)$"
    )
    asked = []
    for file in sorted(Path(tinyexplore.__file__).parent.rglob("*.py")):
        floor = file.relative_to(ROOT / "tinyexplore").parts[0]
        if floor in ("trace", "explore", "widgets", "cli.py"):
            continue
        for line in file.read_text().splitlines():
            if "active_recorder()" in line and not allowed.search(line.strip()):
                asked.append(f"{file.relative_to(ROOT)}: {line.strip()}")
    assert asked == [
        "tinyexplore/compile/compiler.py: if (recorder := active_recorder()) and scope.plans is None:",
        "tinyexplore/compile/search.py: recorder = SearchRecorder(active_recorder())",
    ]


def total() -> Tensor:
    """Three kernels that are not alike, one for each contiguous result."""
    found = Tensor.ones(4, 7).contiguous()
    for width in WIDTHS:
        found = (found @ Tensor.ones(7, width).contiguous()).sum(1, keepdim=True).expand(4, 7).contiguous()
    return found


def test_events_of_other_threads_are_ordered_with_their_kernel() -> None:
    recorder = Recorder()
    with step_by_step(), recording(recorder):
        total().realize()
    times = [entry.time for entry in recorder.log]
    assert times == sorted(times)
    kernel, compiled = None, []
    for event, _, _ in ordered_events(recorder):
        if isinstance(event, StageBegan) and event.stage == "kernel":
            kernel = event.kernel
        elif isinstance(event, StageEnded) and event.stage == "kernel":
            kernel = None
        elif isinstance(event, ProgramCompiled):
            compiled.append(kernel)
    assert None not in compiled
    assert compiled == sorted(set(compiled)) and len(compiled) >= len(WIDTHS)


def test_a_stage_lasts_at_least_as_long_as_its_nested_stages() -> None:
    trace = explore(total, repeat=1).trace
    for stage in trace.stages:
        inside = sum(child.elapsed_us for child in trace.stages if child.parent == stage.id)
        assert inside <= stage.elapsed_us + 1.0


def test_a_cached_kernel_names_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x = Tensor(np.ones((5, 11), np.float32)).realize()

    def known() -> set[str]:
        return {kernel.known for kernel in explore(lambda: (x * 3 + 11).sin(), repeat=1).trace.kernels}

    assert known() == {""}
    (x * 3 + 11).sin().realize()
    assert known() == {"in this process"}


def test_an_error_ends_all_open_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    render, rendered = LLVMRenderer.render, []

    def all_but_the_third(self: LLVMRenderer, name: str, uops: tuple[UOp, ...]) -> ProgramSpec:
        rendered.append(name)
        if len(rendered) == 3:
            raise RuntimeError("no such kernel")
        return render(self, name, uops)

    monkeypatch.setattr(LLVMRenderer, "render", all_but_the_third)
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="no such kernel"), step_by_step(), recording(recorder):
        total().realize()
    assert not any(isinstance(event, ExecItemRan) for event in recorder.events)
    kinds = [type(event) for event in recorder.events]
    assert kinds.count(StageBegan) == kinds.count(StageEnded)
