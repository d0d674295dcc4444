"""Times of a kernel compiled by another pipeline of LLVM.

The worker of edits runs it: between guard pages, with its results compared, and timed alternately with the kernel as
it was compiled. A pipeline that makes wrong code costs a process, and is reported.
"""

from __future__ import annotations

from tinyexplore.compile.search import refusal_of
from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.analysis.passes import LLVMPassesError, Pipeline, PipelineTimes, object_code
from tinyexplore.explore.recording.captured import CapturedKernel
from tinyexplore.explore.whatif.bench import KernelBench
from tinyexplore.explore.whatif.editing.client import EditResult, Text, tried, verdict_words
from tinyexplore.explore.whatif.measure import Measurement
from tinyexplore.explore.whatif.outcome import CommandRejected


def times_of_pipeline(
    analyses: KernelAnalyses, number: int, level: str, without: tuple[str, ...], cpu: str
) -> PipelineTimes:
    """The times of a kernel under a pipeline; with a reason in place of times where it cannot run here.

    Each pipeline is timed once, and later pages contain the times. ValueError for a kernel that LLVM does not compile,
    and for a pipeline that has no meaning.
    """
    pipeline = Pipeline(level, without, cpu)
    captured = analyses.captured(number)
    request = {"kernel": captured.number, "level": level, "without": without, "cpu": cpu}
    response = analyses.responses.get("pipeline times", **request)
    if response is None:
        response = _measured(analyses.whatif.bench(captured.number), captured, pipeline)
        analyses.responses.store("pipeline times", response, **request)
    times: PipelineTimes = response
    return times


def _measured(bench: KernelBench, captured: CapturedKernel, pipeline: Pipeline) -> PipelineTimes:
    subject = bench.subjects[captured.number]
    if why := bench.under_settings(lambda: refusal_of(subject.device)):
        return PipelineTimes(reason=why)
    try:
        compiler, code = object_code(captured.spec, pipeline)
    except LLVMPassesError as error:
        return PipelineTimes(reason=f"LLVM refused: {error}")
    if compiler.refusal:
        return PipelineTimes(reason=compiler.refusal)
    base = captured.uops
    buffers = tuple(f"data{node.arg}" for node in base if node.op.name == "DEFINE_GLOBAL")
    text = Text(
        subject.device,
        "llvm",
        captured.spec.name,
        "",
        subject.original,
        base,
        names=buffers,
        code=code,
        cpu=compiler.choice.text,
    )
    attempt = bench.try_text or tried
    try:
        result = bench.under_settings(lambda: attempt(text, captured))
    except (CommandRejected, WhatIfError) as error:
        return PipelineTimes(reason=str(error))
    return _times(result)


def _times(result: EditResult) -> PipelineTimes:
    words = verdict_words(result.edited)
    if result.lost:
        return PipelineTimes(results=words, reason=result.lost)
    fields = Measurement(result.times_us, result.edited.before_us).fields()
    return PipelineTimes(results=words, **fields)


__all__ = ["times_of_pipeline"]
