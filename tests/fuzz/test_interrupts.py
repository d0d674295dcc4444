"""Interrupts at each place of a call where Python hears one; `python -m tests.fuzz.interrupts` sends real signals."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.fuzz.interrupts import SCENES, Pair, Search, left_behind, missing
from tests.support.interrupts import Interrupter

MOST = {
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
    """Circles of other libraries' objects, as wasmtime's, would be found in the middle of a call, and their finalisers
    interrupted."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", SCENES)
def test_state_changes_as_one_or_not_at_all(name: str) -> None:
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
    if len(places) > MOST.get(name, 500):
        places = Random(3).sample(places, MOST.get(name, 500))
    for place in places:
        pair.interrupted(lambda call, place=place: interrupter.run(call, place))  # type: ignore[misc]
    assert interrupter.lost == []


@pytest.mark.parametrize("place", [1_000, 8_000])
def test_a_search_that_was_interrupted_leaves_nothing_and_is_done_again(place: int) -> None:
    scene, interrupter = Search(place // 100), Interrupter()
    scene.prepare()
    assert interrupter.run(scene.call, place)
    assert (left_behind(), interrupter.lost) == ([], [])
    sum_of_ones = 8.0 + scene.number
    found = scene.state()[0]  # what was assigned and not yet computed is computed now
    assert found.tolist() in ([0.0] * 64, [sum_of_ones] * 64)
    scene.call()
    assert scene.state()[0].tolist() == (found + sum_of_ones).tolist()
