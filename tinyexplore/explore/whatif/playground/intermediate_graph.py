"""Rebuild graphs in the middle of a pass as live UOps: lower the captured kernel again and replay it up to a step."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.codegen import PASSES
from tinyexplore.codegen import lower as lower_kernel
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuiltUOps
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.explore.tracefile.model import Stage
from tinyexplore.explore.tracefile.replay import StageReplay
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.kernel_compiler import KernelCompiler
from tinyexplore.explore.whatif.playground.modified_pipeline import pass_named
from tinyexplore.explore.whatif.playground.trials import UOpRewrite, lowered_by
from tinyexplore.trace import Recorder, recording
from tinyexplore.uop import UOp


@dataclass(frozen=True, repr=False)
class IntermediateGraph(DisplayableRow):
    """The graph of a kernel in the middle of a pass.

    root: the root of the graph.
    fired: the firing of the last step, None if the step was no firing.
    """

    root: UOp
    fired: UOpRewrite | None


def graph_at(compiler: KernelCompiler, number: int, stage: str, step: int) -> IntermediateGraph:
    """Returns the graph of captured kernel `number` after `step` steps of pass `stage`."""
    if number not in compiler.subjects:
        raise WhatIfError(f"no kernel {number} that can be compiled again; available: {sorted(compiler.subjects)}")
    try:
        pass_named(stage)
    except ValueError as error:
        raise WhatIfError(str(error)) from None
    trace = _lower_again(compiler, number)
    row: Stage = next(candidate for candidate in trace.stages if candidate.name == stage)
    if not 0 <= step <= len(row.steps):
        raise WhatIfError(f"step {step} of {stage}: in kernel {number} it has {len(row.steps)} steps")
    rebuilt = RebuiltUOps(trace)
    if row.steps:
        graph = StageReplay(trace, row.id).graph_at(step, marked=False)
        root = rebuilt.graph(graph)[graph.root[0]]
    else:
        root = rebuilt.uop(row.before[0])
    fired = lowered_by(compiler, number, PASSES).fired
    return IntermediateGraph(
        root, next((firing for firing in fired if firing.stage == stage and firing.step == step), None)
    )


def _lower_again(compiler: KernelCompiler, number: int) -> Trace:
    """Lowers a kernel again, and returns the trace of this lowering."""
    recorder = Recorder()
    with recording(None):
        kernel = compiler.under_settings(lambda: compiler.captured(number))
    with recording(recorder):
        compiler.under_settings(lambda: lower_kernel(kernel))
    return compiler.under_settings(lambda: build_trace(recorder, title=kernel.name))


__all__ = ["IntermediateGraph", "graph_at"]
