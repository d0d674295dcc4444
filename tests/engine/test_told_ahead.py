"""A recording compiles the kernels of a schedule ahead, and tells of each as if that were done in its turn."""

from __future__ import annotations

from typing import Any

import pytest

from tinyexplore import Tensor
from tinyexplore.engine import runner
from tinyexplore.explore.listen import CaptureRecorder
from tinyexplore.kernel import Kernel
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.trace import Compiled, Event, Ran, Recorded, Recorder, Rewrote, StageBegan, StageEnded, recording
from tinyexplore.uop import UOp

WIDTHS = (3, 5, 6)


def realise(recorder: Recorder) -> None:
    """Three kernels that are not alike, one for each realised result."""
    total = Tensor.ones(4, 7).contiguous()
    for width in WIDTHS:
        total = (total @ Tensor.ones(7, width).contiguous()).sum(1, keepdim=True).expand(4, 7).contiguous()
    with recording(recorder):
        total.realize()


def content(event: Event) -> tuple[Any, ...]:
    """What an event says, but for times, and for objects that every realisation makes anew."""
    parts = [event.rule.name, event.before, event.after] if isinstance(event, Rewrote) else []
    if isinstance(event, (StageBegan, StageEnded)):
        parts = [event.stage]
    if isinstance(event, Compiled):
        parts = [event.program.source]
    return (type(event).__name__, *(part.digest if isinstance(part, UOp) else part for part in parts))


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """What is heard where nothing is done ahead."""
    recorder = Recorder()
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_compile_ahead", lambda items, recorder: {})
        realise(recorder)
    return recorder


@pytest.mark.parametrize("kind", [Recorder, CaptureRecorder])
def test_what_is_told_is_the_same(in_turn: Recorder, kind: type[Recorder]) -> None:
    recorder = kind()
    realise(recorder)
    kinds = [type(event) for event in recorder.events]
    assert kinds.count(Ran) >= len(WIDTHS)
    heard = [content(event) for event in recorder.events if not isinstance(event, Recorded)]  # a capture's own
    assert heard == [content(event) for event in in_turn.events]
    assert recorder.times == sorted(recorder.times)


def test_an_outer_recorder_hears_it_in_order_too() -> None:
    outer = Recorder()
    inner = CaptureRecorder(outer=outer)
    realise(inner)
    assert inner.events == outer.events
    for recorder in (inner, outer):
        assert recorder.times == sorted(recorder.times)


def test_a_stage_lasts_as_long_as_the_stages_in_it() -> None:
    recorder = Recorder()
    realise(recorder)
    opened: list[tuple[str, float, float]] = []
    for event, time in zip(recorder.events, recorder.times):
        if isinstance(event, StageBegan):
            opened.append((event.stage, time, 0.0))
        elif isinstance(event, StageEnded):
            name, began, inside = opened.pop()
            assert name == event.stage
            assert inside <= event.seconds + 1e-4
            assert time - began == pytest.approx(event.seconds, abs=2e-3)
            if opened:
                opened[-1] = (*opened[-1][:2], opened[-1][2] + event.seconds)


def test_an_error_is_told_in_its_turn(monkeypatch: pytest.MonkeyPatch, in_turn: Recorder) -> None:
    (*_, last) = (event.program.name for event in in_turn.events if isinstance(event, Compiled))
    render = LLVMRenderer.render

    def all_but_the_last(self: LLVMRenderer, name: str, uops: tuple[UOp, ...]) -> Any:
        if name == last:
            raise RuntimeError("no last kernel")
        return render(self, name, uops)

    monkeypatch.setattr(LLVMRenderer, "render", all_but_the_last)
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="no last kernel"):
        realise(recorder)
    heard = [content(event) for event in recorder.events]
    ran = sum(kind == "Ran" for kind, *_ in heard)
    assert ran == sum(isinstance(event, Ran) for event in in_turn.events) - 1
    ends = sum(kind == "StageEnded" for kind, *_ in heard)
    assert ends == sum(kind == "StageBegan" for kind, *_ in heard)
    last_run = max(number for number, event in enumerate(heard) if event[0] == "Ran")
    assert heard[: last_run + 1] == [content(event) for event in in_turn.events][: last_run + 1]


def test_what_is_compiled_is_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[UOp] = []
    choose = runner.choose_opts

    def counted(device: str, ast: UOp) -> Kernel:
        lowered.append(ast)
        return choose(device, ast)

    monkeypatch.setattr(runner, "choose_opts", counted)
    realise(Recorder())
    assert len(lowered) == len(set(lowered)) >= len(WIDTHS)
