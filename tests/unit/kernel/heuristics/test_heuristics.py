"""The list of heuristics: run in order; the first proposal settles an aspect; rejections are recorded."""

from __future__ import annotations

import pytest

from tests.graphs import from_numpy, numbers
from tests.support.kernels import kernel_of, unread
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, heuristics
from tinyexplore.kernel.heuristics import HEURISTICS, Heuristic, Proposal, ScheduleAspect
from tinyexplore.kernel.heuristics.heuristic import Proposals, apply_heuristic
from tinyexplore.trace import OptApplied, OptRejected, Recorder, recording
from tinyexplore.uop import Ops


def row_sum() -> Kernel:
    return kernel_of(from_numpy(numbers(6, 70)).reduce(Ops.ADD, (1,)))


def doubled(kernel: Kernel) -> Proposals:
    """UPCAST of the rows by 2."""
    yield Proposal(Opt(OptOps.UPCAST, 0, 2), "two rows")


def tripled(kernel: Kernel) -> Proposals:
    """UPCAST of the rows by 3."""
    yield Proposal(Opt(OptOps.UPCAST, 0, 3), "three rows")


def hopeless(kernel: Kernel) -> Proposals:
    """UPCAST of the rows by 7, of which there are 6."""
    yield Proposal(Opt(OptOps.UPCAST, 0, 7), "seven rows")


def silent(kernel: Kernel) -> Proposals:
    """Nothing."""
    yield from ()


TILE = frozenset({ScheduleAspect.TILE})


@pytest.mark.parametrize(
    ("asked", "opts"),
    [
        ((doubled, tripled), (Opt(OptOps.UPCAST, 0, 2),)),
        ((tripled, doubled), (Opt(OptOps.UPCAST, 0, 3),)),
        ((silent, doubled), (Opt(OptOps.UPCAST, 0, 2),)),
        ((hopeless, tripled), (Opt(OptOps.UPCAST, 0, 3),)),
    ],
)
def test_the_first_heuristic_that_changes_the_kernel_settles_its_aspect(
    monkeypatch: pytest.MonkeyPatch, asked: tuple, opts: tuple[Opt, ...]
) -> None:
    monkeypatch.setattr(heuristics, "HEURISTICS", tuple(Heuristic(choose, settles=TILE) for choose in asked))
    assert apply_heuristics(row_sum()).applied == opts


def test_heuristics_of_different_aspects_all_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = Heuristic(doubled, settles=frozenset({ScheduleAspect.LANES}))
    monkeypatch.setattr(heuristics, "HEURISTICS", (lanes, Heuristic(tripled, settles=TILE)))
    assert apply_heuristics(row_sum()).applied == (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UPCAST, 0, 3))


def test_a_heuristic_gets_the_kernel_after_the_previous_choice() -> None:
    seen: list[Kernel] = []

    def two_steps(kernel: Kernel) -> Proposals:
        seen.append((yield Proposal(Opt(OptOps.UPCAST, 0, 7), "not legal")))
        seen.append((yield Proposal(Opt(OptOps.UPCAST, 0, 2), "legal")))

    start, recorder = row_sum(), Recorder()
    with recording(recorder):
        end = apply_heuristic(start, Heuristic(two_steps))
    assert seen == [start, end] and end.applied == (Opt(OptOps.UPCAST, 0, 2),)
    told = [event for event in recorder.events if isinstance(event, OptApplied | OptRejected)]
    rejected, accepted = told
    assert isinstance(rejected, OptRejected) and rejected.reason.startswith("UPCAST axis 0 by 7: ")
    assert isinstance(accepted, OptApplied) and accepted.reason == "legal"


def test_each_heuristic_has_a_unique_name_and_a_description() -> None:
    names = [decision.name for decision in HEURISTICS]
    assert len(set(names)) == len(names)
    for decision in HEURISTICS:
        assert decision.choose.__doc__ and decision.choose.__module__.startswith("tinyexplore.kernel.heuristics.")


@pytest.mark.parametrize(
    ("functions", "size", "divided"),
    [(0, 1 << 16, False), (1, 1 << 16, False), (4, 1 << 16, True), (4, 1 << 12, False), (0, 1 << 20, True)],
)
def test_functions_count_as_their_number_of_instructions(functions: int, size: int, divided: bool) -> None:
    """Four exps of 65 536 elements take 40 µs on one core: worth another one."""
    node = unread(size)
    for _ in range(functions):
        node = node.alu(Ops.EXP)
    kernel = apply_heuristics(kernel_of(node.alu(Ops.ADD, node)))
    assert any(opt.op is OptOps.THREAD for opt in kernel.applied) is divided
