"""The debugger stops at each requested position, shows the state there, and restores it when stepping back."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from tinyexplore import Tensor, capture, explore
from tinyexplore.explore import CaptureError, Debugger, DebuggerError, Explorer
from tinyexplore.explore.analysis.models.conditions import ConditionError
from tinyexplore.uop import Ops

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = (np.arange(20, dtype=np.float32).reshape(4, 5) - 9) / 4


@pytest.fixture(scope="module")
def product() -> Explorer:
    x, w = Tensor(X).realize(), Tensor(W).realize()
    return explore(lambda: (x @ w).relu(), keep_inputs=True, noopt=1, repeat=1)


def test_at_the_end_memory_contains_the_result_of_the_kernel(product: Explorer) -> None:
    debugger = product.kernels[0].debug().finish()
    assert debugger.ended and debugger.reason == "at the end"
    assert debugger.read("data0") == pytest.approx(np.maximum(X @ W, 0).ravel().tolist())
    np.testing.assert_array_equal(np.frombuffer(debugger.memory("data0"), np.float32), product.result.numpy().ravel())


def test_an_iteration_has_its_counters_and_its_loads(product: Explorer) -> None:
    debugger = product.kernels[0].debug().iteration(g0=2, g1=3, r2=1)
    assert debugger.loops == {"g0": 2, "g1": 3, "r2": 1}
    assert debugger.registers["acc0"] == X[2, 0] * W[0, 3]
    load = next(place for place, node in enumerate(debugger.uops) if node.op is Ops.LOAD)
    debugger.run_to(load)
    (access,) = debugger.accesses
    assert (access.buffer, access.index, access.value, access.stored) == ("data1", (9,), X[2, 1], False)
    assert debugger.iteration(g0=0, g1=1, r2=3).loops == {"g0": 0, "g1": 1, "r2": 3}, "one that lies behind"


def test_conditions_are_on_values_indices_and_names(product: Explorer) -> None:
    debugger = product.kernels[0].debug().run_until("data2[7]")
    assert debugger.accesses[0].index == (7,) and debugger.loops == {"g0": 0, "g1": 2, "r2": 1}
    debugger.run_until("store data0[13]")
    assert debugger.uop is not None and debugger.uop.op is Ops.STORE and debugger.loops == {"g0": 2, "g1": 3}
    debugger.restart().run_until("acc0 > 15 and g0 == 1")
    assert debugger.registers["acc0"] > 15 and debugger.loops["g0"] == 1
    debugger.restart().run_until(lambda at: at.position == 17)
    assert debugger.position == 17
    debugger.restart().run_until("value > 1e9")
    assert debugger.ended, "it never holds"


def test_a_nan_is_found_at_its_origin() -> None:
    values = np.array([4.0, 1.0, -1.0, 9.0], np.float32)
    x = Tensor(values).realize()
    debugger = explore(lambda: x.sqrt() * 2, keep_inputs=True, noopt=1, repeat=1).kernels[0].debug().run_until("nan")
    assert debugger.loops == {"g0": 2} and debugger.uop is not None and debugger.uop.op is Ops.SQRT
    assert math.isnan(debugger.value) and debugger.recent_accesses(1)[0].value == -1.0
    assert "g0=2 · nan" in repr(debugger) and "▶" in repr(debugger)


@pytest.mark.parametrize("log", [1, 10, 50_000])
def test_going_back_undoes_registers_and_memory(product: Explorer, log: int) -> None:
    debugger = product.kernels[0].debug(log=log)
    states = []
    for _ in range(240):
        states.append((debugger.state()["registers"], debugger.memory("data0"), debugger.place))
        debugger.step()
    for count in (1, 3, 30, 5):
        debugger.back(count)
        assert (debugger.state()["registers"], debugger.memory("data0"), debugger.place) == states[debugger.position]
    debugger.finish()
    assert debugger.read("data0") == product.kernels[0].debug().finish().read("data0")
    assert debugger.back(10**9).position == 0 and debugger.reason == "at the start"


def test_a_line_of_the_source_is_a_breakpoint(product: Explorer) -> None:
    debugger = product.kernels[0].debug()
    line = 1 + next(number for number, one in enumerate(debugger.source) if any(u.op is Ops.MAX for u in one.uops))
    assert debugger.run_to(line=line).uop.op in (Ops.MAX, Ops.RESULT)  # type: ignore[union-attr]
    assert debugger.run_to(debugger.uops[-1].src[0]).uop is debugger.uops[-1].src[0]


def test_vectors_have_lanes() -> None:
    x = Tensor(np.arange(64, dtype=np.float32)).realize()
    debugger = explore(lambda: x + 1, keep_inputs=True, repeat=1).kernels[0].debug()
    debugger.run_until("store data0[5]")
    value = debugger.value
    if not isinstance(value, list):
        pytest.skip("this machine has no vectors")
    lane = debugger.accesses[0].index.index(5)
    assert value[lane] == 6.0 and 6.0 in debugger.lane(lane).values()
    assert debugger.state(lane)["registers"] != debugger.state()["registers"]


def test_inputs_written_in_place_are_saved_before_the_kernel() -> None:
    x = Tensor(np.ones(8, np.float32)).contiguous().realize()
    with capture(keep_inputs=True, noopt=1) as session:
        x[2:4] = 5
        x.realize()
    debugger = session.kernels[1].debug()  # the first kernel makes the copy that the second writes to
    assert debugger.read("data0") == [1.0] * 8
    assert debugger.finish().read("data0") == x.tolist() == [1, 1, 5, 5, 1, 1, 1, 1]


def test_inputs_that_were_not_saved_can_be_passed_or_generated() -> None:
    x = Tensor(np.ones(6, np.float32)).realize()
    view = explore(lambda: x * 3, noopt=1, repeat=1)
    with pytest.raises(DebuggerError, match="keep_inputs=True"):
        view.kernels[0].debug()
    assert view.kernels[0].debug(inputs=[None, np.arange(6, dtype=np.float32)]).finish().read("data0") == [
        0,
        3,
        6,
        9,
        12,
        15,
    ]
    generated = view.kernels[0].debug(inputs="generated").finish()
    assert generated.read("data0", 1, 2) == [3.0, 6.0] and "keep_inputs" in repr(generated)
    few = explore(lambda: x * 3, keep_inputs=10, noopt=1, repeat=1)
    assert any("limit of 10 bytes" in message.text for message in few.trace.messages)
    few.close()
    with pytest.raises(CaptureError, match="closed"):
        few.kernels[0].debug()


def test_invalid_commands_are_reported(product: Explorer) -> None:
    debugger = product.kernels[0].debug()
    with pytest.raises(DebuggerError, match="no loop k; available: g0, g1, r2"):
        debugger.iteration(k=1)
    with pytest.raises(ConditionError, match="no buffer 'data7'"):
        debugger.run_until("data7[1]")
    with pytest.raises(ConditionError, match="no 'speed' in this program"):
        debugger.run_until("speed > 3")
    with pytest.raises(ConditionError, match="a condition is"):
        debugger.run_until("when it goes wrong")
    with pytest.raises(DebuggerError, match="no buffer 'data9'"):
        debugger.read("data9")
    with pytest.raises(ValueError, match="keep_inputs=-1"):
        explore(Tensor.ones(3), keep_inputs=-1)


def test_a_program_that_fails_stops_there() -> None:
    from tests.backends.programs import elementwise
    from tinyexplore.dtype import dtypes

    uops, _ = elementwise([dtypes.float32], lambda x: [x[0] * 2.0], 4)
    debugger = Debugger("short", uops, [bytes(16), bytes(16)])
    debugger._views[1] = debugger._views[1][:2]  # as if the buffer were shorter than the program says
    debugger.restart().finish()
    assert debugger.ended and debugger.error.startswith("IndexError in line") and debugger.loops == {"g0": 2}
    assert debugger.back().position == debugger.position


def test_it_steps_fast_enough() -> None:
    x, w = Tensor(np.ones((16, 64), np.float32)).realize(), Tensor(np.ones((64, 16), np.float32)).realize()
    debugger = explore(lambda: x @ w, keep_inputs=True, noopt=1, repeat=1).kernels[0].debug()
    best = 0.0
    for _ in range(2):
        debugger.restart()
        start = time.process_time()
        debugger.finish()
        best = max(best, debugger.position / (time.process_time() - start))
    assert best > 300_000
