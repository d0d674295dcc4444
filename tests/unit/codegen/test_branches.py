"""Pass "branches": cold paths of WHEREs, each rewritten once."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.kernels import kernel_of, unread
from tinyexplore.codegen import lower
from tinyexplore.trace import NodeDerived, Recorder, recording
from tinyexplore.uop import Ops


def rewrites_of_chain(length: int) -> Counter[tuple[object, object]]:
    """How often the pass recorded each rewrite of a node, in a kernel of `length` sines."""
    value = unread(16)
    for _ in range(length):
        value = value.alu(Ops.SIN)
    recorder = Recorder()
    with recording(recorder):
        lower(kernel_of(value))
    events = [entry.event for entry in recorder.log]
    return Counter(
        (event.before, event.after) for event in events if type(event) is NodeDerived and event.how == "in a branch"
    )


@pytest.mark.parametrize("length", [1, 24])
def test_each_node_is_rewritten_once(length: int) -> None:
    """A rewrite that began again for every WHERE would visit the sines below it again: quadratic time."""
    counts = rewrites_of_chain(length)
    assert counts
    assert set(counts.values()) == {1}


def test_rewrites_grow_linearly_with_the_program() -> None:
    short, long = (rewrites_of_chain(length).total() for length in (16, 32))
    assert long < 2.2 * short
