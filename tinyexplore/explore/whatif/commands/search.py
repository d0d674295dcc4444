"""Search: run BEAM on one kernel; every candidate becomes a branch as soon as it is timed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.compile.search import search_opts
from tinyexplore.explore.tracefile.model import Search as SearchData
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import Cancelled, CommandOutcome, CommandRejected
from tinyexplore.kernel import Kernel
from tinyexplore.trace import (
    CandidateMeasured,
    Event,
    Recorder,
    SearchEnded,
    SearchProgress,
    recording,
    showing_progress,
)


@dataclass(frozen=True, slots=True)
class SearchOpts:
    """Search for the fastest opts with a beam, and record all candidates.

    kernel: the number of the kernel.
    width: the width of the beam.
    """

    kernel: int
    width: int
    label: ClassVar[str] = "BEAM"

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        if self.width < 1:
            raise CommandRejected(f"beam width {self.width}: need at least 1 kernel")
        listener = CandidateRecorder(self.kernel, context)
        try:
            fastest = context.compiler.under_settings(lambda: self._run_search(context, listener))
        except Cancelled:
            raise CommandRejected(f"cancelled after {listener.tried} candidates, which are stored") from None
        outcome = try_out(context, self.kernel, lambda: context.compiler.with_opts(self.kernel, fastest.applied))
        outcome_text = listener.outcome
        is_better = (
            outcome_text is not None
            and outcome_text.after_us is not None
            and outcome_text.after_us != outcome_text.before_us
        )
        note = "" if outcome_text is None or is_better else outcome_text.reason
        return CommandOutcome(outcome.kernels, same=outcome.same, note=note, search=outcome_text)

    def _run_search(self, context: CommandContext, listener: CandidateRecorder) -> Kernel:
        subject = context.compiler.subjects[self.kernel]
        with recording(listener), showing_progress(listener if context.shows_progress else None):
            return search_opts(subject.device, context.compiler.unchanged(self.kernel), self.width)


def _make_outcome(event: SearchEnded) -> SearchData:
    """Returns the result of a search with the search's own times. The KernelCompiler times the kernels again."""
    before_us, after_us = (
        None if math.isinf(seconds) else round(seconds * 1e6, 3)
        for seconds in (event.before_seconds, event.after_seconds)
    )
    return SearchData(before_us, after_us, event.tried, event.reason)


class CandidateRecorder(Recorder):
    """Records a search: it passes candidates and progress to the context, which can cancel the search."""

    def __init__(self, kernel: int, context: CommandContext) -> None:
        super().__init__()
        self.kernel = kernel
        self.context = context
        self.tried = 0
        self.outcome: SearchData | None = None

    def record(self, event: Event) -> None:
        match event:
            case CandidateMeasured(kernel, seconds, note):
                self.tried += 1
                time_us = None if math.isinf(seconds) else round(seconds * 1e6, 3)
                self.context.candidate(self.kernel, tuple(map(str, kernel.applied)), time_us, note)
            case SearchProgress(_, compiled, measured, candidates, _):
                message = f"BEAM: {self.tried} tried, {candidates} in this round"
                self.context.progress(message, (compiled + measured) / 2, candidates)
            case SearchEnded():
                self.outcome = _make_outcome(event)
        if self.context.is_cancelled():
            raise Cancelled


__all__ = ["SearchOpts"]
