"""Interrupts wherever Python handles signals in a call; `python -m tests.fuzz.interrupts` sends real signals."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import numpy as np
import pytest

from tests.fuzz import interrupts
from tests.fuzz.interrupts import SCENES, Pair, Search, left_behind, missing
from tests.support.interrupts import Interrupted, Interrupter
from tinyexplore import Tensor
from tinyexplore.device import DeviceUnavailable
from tinyexplore.explore import Explorer, capture, explore
from tinyexplore.explore.recording.capture_recorder import CaptureRecorder
from tinyexplore.explore.recording.event_order import ordered_events
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.trace import trace_from_bytes
from tinyexplore.trace import StageEnded

MAX_PLACES = {
    "capture": 6,
    "step() now": 20,
    "realize": 30,
    "parts now": 60,
    "parts now, PYTHON": 60,
    "DISK": 60,
    "in place, WASM": 100,
    "in place, GPU": 40,
    "in place, WEBGPU": 40,
}  # places tried


@pytest.fixture(autouse=True)
def without_what_other_tests_left() -> Iterator[None]:
    """Circles of other libraries' objects, as wasmtime's, would be found in the middle of a call, and their finalizers
    interrupted."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", SCENES)
def test_state_changes_are_atomic(name: str) -> None:
    if reason := missing(name):
        pytest.skip(reason)
    pair, interrupter = Pair(name), Interrupter()
    counted: list[int] = []

    def count(call: Callable[[], None]) -> bool:
        counted.append(interrupter.count(call))
        return False

    pair.interrupted(count)
    pair.interrupted(count)
    places = list(range(1, counted[-1] + 1))
    if len(places) > MAX_PLACES.get(name, 500):
        places = Random(3).sample(places, MAX_PLACES.get(name, 500))
    for place in places:
        pair.interrupted(lambda call, place=place: interrupter.run(call, place))  # type: ignore[misc]
    assert interrupter.lost == []


@pytest.mark.parametrize("place", [1_000, 8_000])
def test_an_interrupted_search_leaves_no_state_and_can_be_repeated(place: int) -> None:
    scene, interrupter = Search(place // 100), Interrupter()
    scene.prepare()
    assert interrupter.run(scene.call, place)
    assert (left_behind(), interrupter.lost) == ([], [])
    sum_of_ones = 8.0 + scene.number
    found = scene.state()[0]  # what was assigned and not yet computed is computed now
    assert found.tolist() in ([0.0] * 64, [sum_of_ones] * 64)
    scene.call()
    assert scene.state()[0].tolist() == (found + sum_of_ones).tolist()


# *** captures ***


def product() -> Tensor:
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8))
    return (x @ x).relu().sum(1)


class Captured:
    """Captures of `product()`; `session` is the last one, also when an interrupt stopped it."""

    def __init__(self) -> None:
        self.session: Explorer | None = None

    def call(self) -> None:
        self.session = None
        try:
            self.session = explore(product, repeat=2)
        except Interrupted as error:
            self.session = getattr(error, "explorer", None)
            raise


def test_an_interrupted_capture_has_a_trace_that_can_be_saved() -> None:
    captured, interrupter = Captured(), Interrupter()
    captured.call()
    count = min(interrupter.count(captured.call) for _ in range(2))
    near_the_ends = [*range(1, 40, 6), *range(count - 900, count, 75)]
    interrupted = 0
    for place in [*near_the_ends, *Random(5).sample(range(1, count), 15)]:
        interrupted += interrupter.run(captured.call, place)
        assert (left_behind(), interrupter.lost) == ([], []), place
        if captured.session is not None:  # else it was interrupted before there was a session
            trace = captured.session.trace
            assert trace_from_bytes(trace_to_bytes(trace)) == trace, place
            assert not trace.messages or "Interrupted" in trace.messages[0].text, place
    assert interrupted > 15, "most places are reached: later calls may be shorter than the counted one"
    captured.call()
    assert captured.session is not None
    assert captured.session.result.numpy().tolist() == product().numpy().tolist()
    assert len(captured.session.trace.kernels) == 1


def test_a_recorder_loses_no_part_of_an_event() -> None:
    interrupter, event = Interrupter(), StageEnded("kernel", None, 0.0)
    count = interrupter.count(partial(CaptureRecorder().record, event))
    assert count > 4
    for place in range(1, count + 1):
        recorder = CaptureRecorder()
        assert interrupter.run(partial(recorder.record, event), place)
        recorder.record(event)
        assert [entry[0] for entry in ordered_events(recorder)] in ([event], [event, event])


def test_a_capture_continues_after_a_caught_interrupt() -> None:
    interrupter = Interrupter()
    for place in range(1, interrupter.count(product), 50):
        with capture() as session:
            assert interrupter.run(product, place)
            result = product().numpy()
        assert result.tolist() == product().numpy().tolist()
        assert len(session.trace.kernels) == 1
        assert trace_from_bytes(trace_to_bytes(session.trace)) == session.trace


def test_an_interrupt_leaves_no_partial_view() -> None:
    interrupter = Interrupter()
    whole = explore(product, repeat=1).trace
    places = interrupter.count(lambda: Explorer(whole).widget)
    for place in Random(6).sample(range(1, places), 15):
        shows = Explorer(whole)
        interrupter.run(lambda shows=shows: shows.widget, place)  # type: ignore[misc]
        widget = shows.widget
        assert widget.payload == trace_to_bytes(whole)
        assert widget is shows.widget
        shows.close()
    assert interrupter.lost == []


def test_scenes_of_unavailable_devices_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(dict[str, object]):
        def __missing__(self, name: str) -> object:
            raise DeviceUnavailable(f"{name} does not open here")

    monkeypatch.setattr(interrupts, "Device", Closed())
    assert missing("in place, WASM") == "WASM: WASM does not open here"
    assert missing("in place") == ""
