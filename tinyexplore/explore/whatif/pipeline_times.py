"""Times a kernel that another LLVM pipeline compiled.

The worker of edits runs the kernel between guard pages, compares its results, and times it alternately with the
original kernel. A pipeline that generates wrong code can crash only this worker, and the page reports the crash.
"""

from __future__ import annotations

from tinyexplore.compile.search import refusal_of
from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.analysis.passes import LLVMPassesError, Pipeline, PipelineTimes, object_code
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.whatif.editing.client import EditResult, Text, describe_verdict, try_edit
from tinyexplore.explore.whatif.kernel_compiler import KernelCompiler
from tinyexplore.explore.whatif.measurement import Measurement
from tinyexplore.explore.whatif.outcome import CommandRejected


def times_of_pipeline(
    analyses: KernelAnalyses, number: int, level: str, without: tuple[str, ...], cpu: str
) -> PipelineTimes:
    """Returns the times of a kernel under a pipeline, or the reason why it cannot run here.

    Each pipeline is timed once, and later pages contain the times.

    Raises:
        ValueError: LLVM does not compile this kernel, or the pipeline is invalid.
    """
    pipeline = Pipeline(level, without, cpu)
    captured = analyses.captured(number)
    request = {"kernel": captured.number, "level": level, "without": without, "cpu": cpu}
    response = analyses.responses.get("pipeline times", **request)
    if response is None:
        response = _measure_pipeline(analyses.whatif.compiler(captured.number), captured, pipeline)
        analyses.responses.store("pipeline times", response, **request)
    times: PipelineTimes = response
    return times


def _measure_pipeline(compiler: KernelCompiler, captured: CapturedKernel, pipeline: Pipeline) -> PipelineTimes:
    """Compiles a kernel by a pipeline, runs it in a worker, and returns its times or the reason why there are none."""
    subject = compiler.subjects[captured.number]
    if why := compiler.under_settings(lambda: refusal_of(subject.device)):
        return PipelineTimes(reason=why)
    try:
        llvm_compiler, code = object_code(captured.spec, pipeline)
    except LLVMPassesError as error:
        return PipelineTimes(reason=f"LLVM refused: {error}")
    if llvm_compiler.refusal:
        return PipelineTimes(reason=llvm_compiler.refusal)
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
        cpu=llvm_compiler.choice.text,
    )
    attempt = compiler.try_text or try_edit
    try:
        result = compiler.under_settings(lambda: attempt(text, captured))
    except (CommandRejected, WhatIfError) as error:
        return PipelineTimes(reason=str(error))
    return _make_times(result)


def _make_times(result: EditResult) -> PipelineTimes:
    verdict_text = describe_verdict(result.edited)
    if result.lost:
        return PipelineTimes(results=verdict_text, reason=result.lost)
    fields = Measurement(result.times_us, result.edited.before_us).fields()
    return PipelineTimes(results=verdict_text, **fields)


__all__ = ["times_of_pipeline"]
