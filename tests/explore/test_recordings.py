"""The first steps of a kernel in a trace: equal to the debugger's steps, with a stated limit."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import Tensor, Trace, explore
from tinyexplore.explore.analysis.models import recordings
from tinyexplore.explore.analysis.models.debugger import value_text

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def test_a_recording_equals_the_steps_of_the_debugger() -> None:
    view = explore(lambda: (Tensor(X).realize() * 2).sum(1), repeat=1, record_iterations=10_000)
    (recording,) = view.trace.recordings
    debugger = view.kernels[recording.kernel].debug()
    assert recording.ended and [line.text for line in debugger.listing] == list(recording.listing)
    for step in recording.steps:
        debugger.step()
        value = debugger.value
        texts = tuple(map(value_text, value)) if isinstance(value, list) else (value_text(value),)
        assert (step.place, step.value) == (debugger.place, texts)
        accesses = [(one.buffer, one.stored, one.index) for one in debugger.accesses]
        assert accesses == ([(step.buffer, step.stored, step.index)] if step.buffer else [])
        around = [loop.name for loop in recording.loops if loop.begin <= step.place < loop.end]
        assert around == list(debugger.loops)
    assert debugger.step().ended
    buffers = {one.name: one for one in recording.buffers}
    assert buffers["data1"].cells == tuple(str(float(x)).removesuffix(".0") for x in X.ravel())
    assert buffers["data1"].size == 64


def test_recordings_are_saved_with_the_trace(tmp_path) -> None:
    view = explore(lambda: Tensor(X).realize() + 1, repeat=1, record_iterations=20)
    (recording,) = view.trace.recordings
    assert len(recording.steps) == 20 and not recording.ended
    assert Trace.load(view.save(tmp_path / "kept.json.gz")) == view.trace
    assert explore(lambda: Tensor(X).realize() + 1, repeat=1).trace.recordings == ()


def test_the_limit_is_respected_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MAX_CHARACTERS", 6000)
    x = Tensor(X).realize()
    view = explore(lambda: (x.sum(1), x.max(1)), repeat=1, noopt=1, record_iterations=5000)
    assert 0 < sum(len(one.steps) for one in view.trace.recordings) < 300
    (note,) = [one.text for one in view.trace.messages if "are recorded" in one.text]
    assert "are incomplete" in note


def test_inputs_that_were_not_saved_are_generated_with_a_message() -> None:
    view = explore(lambda: Tensor(X).realize() + 1, repeat=1)
    page = view.to_html(iterations=30)
    assert "tinyexplore" in page and view.trace.recordings == (), "the page has them, not the trace"
    found = recordings.with_recordings(view.trace, {0: view.capture.analyses.captured(0)}, 30)
    assert "keep_inputs=True" in found.recordings[0].note
    with pytest.raises(ValueError, match="record_iterations=-1: how many steps"):
        explore(lambda: Tensor(X) + 1, record_iterations=-1)
