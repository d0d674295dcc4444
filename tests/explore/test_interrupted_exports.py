"""Interrupts during an export or a what-if command leave complete files and a consistent state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.support.interrupts import Interrupter
from tests.widgets.sample_traces import sample_trace
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, Trace, explore
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.trace import trace_from_bytes
from tinyexplore.util.atomic_files import write_whole

WRITERS: dict[str, Callable[[Trace, Path], object]] = {
    "bytes": lambda trace, path: write_whole(path, b"new"),
    "trace": lambda trace, path: trace.save(path),
    "page": lambda trace, path: Explorer(trace).to_html(path),
    "dot": lambda trace, path: trace.graph().save(path.with_suffix(".dot")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_an_interrupted_export_leaves_a_whole_file(name: str, tmp_path: Path) -> None:
    trace, interrupter = sample_trace(), Interrupter()
    path = tmp_path / ("out.dot" if name == "dot" else "out.json")
    write = partial(WRITERS[name], trace, path)
    write()
    new = path.read_bytes()
    count = interrupter.count(write)
    near_the_end = range(max(1, count - 40), count + 1)
    for place in sorted({*near_the_end, *Random(4).sample(range(1, count + 1), min(count, 20))}):
        path.write_bytes(b"earlier")
        interrupter.run(write, place)
        assert path.read_bytes() in (b"earlier", new), place
        assert list(tmp_path.iterdir()) == [path], place
    assert interrupter.lost == []


def test_an_interrupted_what_if_command_leaves_a_whole_trace() -> None:
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8)).realize()
    interrupter = Interrupter()

    def applied(session: Explorer) -> None:
        session.kernels[0].apply("UPCAST(0, 4)")

    session = explore(lambda: (x * 2).sum(1), repeat=1)
    count = interrupter.count(partial(applied, session))
    whole = [branch.status for branch in session.whatif.branches]
    assert whole[-1] == "done"
    for place in Random(7).sample(range(1, count), 12):
        session = explore(lambda: (x * 2).sum(1), repeat=1)
        interrupter.run(partial(applied, session), place)
        assert trace_from_bytes(trace_to_bytes(session.trace)) == session.trace, place
        if [branch.status for branch in session.whatif.branches] != whole:
            applied(session)
        assert session.whatif.branches[-1].status == "done", place
        assert trace_from_bytes(trace_to_bytes(session.trace)) == session.trace, place
    assert interrupter.lost == []
