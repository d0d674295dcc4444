"""Each decision that proposes an Opt records the numbers that it compared and its options."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs import attention, from_numpy, numbers, softmax
from tests.support.kernels import MACHINE, unread
from tinyexplore import Context, Tensor, dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, OptOps, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import HeuristicConsidered, NumberCompared, OptApplied, OptionsScored, Recorder, recording


def causal() -> LazyBuffer:
    """Enough rows for one kernel."""
    sizes = ((684, 12), (192, 12), (192, 12))
    return attention(*(from_numpy(numbers(*size)) for size in sizes), causal=True)


def small_numbers() -> LazyBuffer:
    a, b = (Tensor(np.zeros((64, 64), np.int8)) for _ in range(2))
    return a.matmul(b.T, acc_dtype=dtypes.int32).lazydata


PROGRAMS: dict[str, tuple[Callable[[], LazyBuffer], OptOps]] = {
    "prefetch": (lambda: softmax(unread(4096, 4096)), OptOps.PREFETCH),
    "pipeline_rows": (lambda: softmax(unread(4096, 1024)), OptOps.PIPELINE),
    "trim_masked_loops": (causal, OptOps.TRIM),
    "use_dot_instructions": (small_numbers, OptOps.TC),
}


def told(node: LazyBuffer, decision: str) -> list[object]:
    """The events of one heuristic while the opts of `node` were chosen."""
    recorder = Recorder()
    with Context(TC=2):
        kernel = Kernel.of(create_schedule([node])[-1].ast, MACHINE)
        with recording(recorder):
            apply_heuristics(kernel)
    found: list[object] = []
    current = ""
    for event in recorder.events:
        if isinstance(event, HeuristicConsidered):
            current = event.decision.name
        elif current == decision:
            found.append(event)
    return found


@pytest.mark.pinned
@pytest.mark.parametrize("decision", PROGRAMS)
def test_a_heuristic_records_its_scores_and_the_next_best_option(decision: str) -> None:
    make, opt = PROGRAMS[decision]
    events = told(make(), decision)
    assert opt in [event.opt.op for event in events if isinstance(event, OptApplied)]
    (weighed,) = [event for event in events if isinstance(event, OptionsScored)]
    scores = dict(weighed.options)
    assert weighed.chosen in scores and len(scores) > 1, "there is a next best"
    compared = [event for event in events if isinstance(event, NumberCompared)]
    assert compared or decision == "trim_masked_loops", "a mask is there or is not: there is no number"


@pytest.mark.pinned
def test_pipelining_records_block_sizes_and_trimming_records_steps() -> None:
    (blocks,) = [
        event for event in told(softmax(unread(4096, 1024)), "pipeline_rows") if isinstance(event, OptionsScored)
    ]
    assert list(dict(blocks.options)) == [str(int(blocks.chosen) // 2), blocks.chosen, str(2 * int(blocks.chosen))]
    (steps,) = [event for event in told(causal(), "trim_masked_loops") if isinstance(event, OptionsScored)]
    assert len(steps.options) == 2 and dict(steps.options)[steps.chosen] * 2 == max(dict(steps.options).values())


def test_a_small_operand_records_why_nothing_is_prefetched() -> None:
    (row,) = told(softmax(unread(64, 64)), "prefetch")
    assert isinstance(row, NumberCompared) and not row.over
    assert (row.value, row.bound) == (64 * 64 * 4, 1 << 20)
