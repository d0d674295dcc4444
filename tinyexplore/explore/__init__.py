"""The explorer: from what the engine tells to a Trace, and from a Trace to what one can see and ask.

`tinyexplore.explore` is both this package and the function in it: `from tinyexplore import explore; explore(f, x)`
must work whether or not something has imported the package before, so the package can be called.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.byhand.caches import CacheComparison, CacheModel
    from tinyexplore.explore.analysis.byhand.debugger import Debugger, DebuggerError, StepAccess
    from tinyexplore.explore.analysis.byhand.lru import Cache
    from tinyexplore.explore.analysis.comparing.comparison import Comparison, compare
    from tinyexplore.explore.analysis.comparing.difference import diff
    from tinyexplore.explore.analysis.comparing.machines import Machines
    from tinyexplore.explore.analysis.comparing.rosetta import Rosetta, RosettaError
    from tinyexplore.explore.analysis.cores.view import TensorCores, tensor_cores
    from tinyexplore.explore.analysis.machine.table import Ceilings, ceilings
    from tinyexplore.explore.analysis.passes import LLVMPass, LLVMPasses, LLVMPassesError
    from tinyexplore.explore.analysis.shapes.cells import Cell
    from tinyexplore.explore.analysis.shapes.view import ShapeView, shape
    from tinyexplore.explore.analysis.traffic import loaded_bytes
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.analysis.why.chosen import WhyOpts, why_opts
    from tinyexplore.explore.analysis.why.fusions import WhyKernels, why_kernels
    from tinyexplore.explore.analysis.why.rules import RuleAttempt, WhyNot, could_fire, why_not
    from tinyexplore.explore.exports.scripts import ReproducerError, reproducer
    from tinyexplore.explore.notebook.exploring import explore
    from tinyexplore.explore.notebook.frontends import llvm, onnx, torch
    from tinyexplore.explore.notebook.session import CaptureError, Explorer, capture
    from tinyexplore.explore.notebook.targets import targets
    from tinyexplore.explore.tracefile.codec import Limits, trace_to_json
    from tinyexplore.explore.tracefile.interchange import Graph, NoDotProgram
    from tinyexplore.explore.tracefile.perfetto import MissingPackage, to_perfetto
    from tinyexplore.explore.tracefile.pictures.roofline import Dot, roofline_svg
    from tinyexplore.explore.tracefile.query import (
        line_frames,
        related,
        rewrite_history,
        trace_lines,
        user_lines,
        where,
    )
    from tinyexplore.explore.tracefile.tabular import rows_of, to_dataframe
    from tinyexplore.explore.tracefile.trace import Trace, trace_from_json
    from tinyexplore.explore.tracefile.valid import TraceFormatError

_HOMES = {
    "Trace": "tracefile.trace",
    "Limits": "tracefile.codec",
    "TraceFormatError": "tracefile.valid",
    "trace_from_json": "tracefile.trace",
    "trace_to_json": "tracefile.codec",
    "rewrite_history": "tracefile.query",
    "Machines": "analysis.comparing.machines",
    "targets": "notebook.targets",
    "Comparison": "analysis.comparing.comparison",
    "compare": "analysis.comparing.comparison",
    "Rosetta": "analysis.comparing.rosetta",
    "RosettaError": "analysis.comparing.rosetta",
    "TensorCores": "analysis.cores.view",
    "tensor_cores": "analysis.cores.view",
    "StepAccess": "analysis.byhand.debugger",
    "Cache": "analysis.byhand.lru",
    "CacheComparison": "analysis.byhand.caches",
    "CacheModel": "analysis.byhand.caches",
    "GPUView": "analysis.byhand.gpu",
    "Debugger": "analysis.byhand.debugger",
    "DebuggerError": "analysis.byhand.debugger",
    "diff": "analysis.comparing.difference",
    "line_frames": "tracefile.query",
    "related": "tracefile.query",
    "reproducer": "exports.scripts",
    "rows_of": "tracefile.tabular",
    "to_dataframe": "tracefile.tabular",
    "to_perfetto": "tracefile.perfetto",
    "trace_lines": "tracefile.query",
    "user_lines": "tracefile.query",
    "where": "tracefile.query",
    "ReproducerError": "exports.scripts",
    "Graph": "tracefile.interchange",
    "NoDotProgram": "tracefile.interchange",
    "MissingPackage": "tracefile.perfetto",
    "Ceilings": "analysis.machine.table",
    "Dot": "tracefile.pictures.roofline",
    "ceilings": "analysis.machine.table",
    "SpeedVerdict": "analysis.verdict.verdict",
    "loaded_bytes": "analysis.traffic",
    "roofline_svg": "tracefile.pictures.roofline",
    "equivalent": "whatif.playground.equivalence",
    "Counterexample": "whatif.playground.equivalence",
    "Verdict": "whatif.playground.equivalence",
    "CaptureError": "notebook.session",
    "Explorer": "notebook.session",
    "capture": "notebook.session",
    "explore": "notebook.exploring",
    "llvm": "notebook.frontends",
    "onnx": "notebook.frontends",
    "torch": "notebook.frontends",
    "LLVMPass": "analysis.passes",
    "LLVMPasses": "analysis.passes",
    "LLVMPassesError": "analysis.passes",
    "Cell": "analysis.shapes.cells",
    "ShapeView": "analysis.shapes.view",
    "shape": "analysis.shapes.view",
    "RuleAttempt": "analysis.why.rules",
    "WhyNot": "analysis.why.rules",
    "could_fire": "analysis.why.rules",
    "why_not": "analysis.why.rules",
    "WhyKernels": "analysis.why.fusions",
    "why_kernels": "analysis.why.fusions",
    "WhyOpts": "analysis.why.chosen",
    "why_opts": "analysis.why.chosen",
}

__all__ = [
    "StepAccess",
    "Cache",
    "CacheComparison",
    "CacheModel",
    "CaptureError",
    "Ceilings",
    "Cell",
    "Comparison",
    "Counterexample",
    "Debugger",
    "DebuggerError",
    "Dot",
    "Explorer",
    "Graph",
    "LLVMPass",
    "LLVMPasses",
    "LLVMPassesError",
    "Limits",
    "Machines",
    "MissingPackage",
    "NoDotProgram",
    "ReproducerError",
    "Rosetta",
    "RosettaError",
    "ShapeView",
    "SpeedVerdict",
    "TensorCores",
    "Trace",
    "TraceFormatError",
    "RuleAttempt",
    "Verdict",
    "WhyKernels",
    "WhyNot",
    "WhyOpts",
    "rewrite_history",
    "capture",
    "ceilings",
    "compare",
    "could_fire",
    "diff",
    "equivalent",
    "explore",
    "line_frames",
    "llvm",
    "loaded_bytes",
    "onnx",
    "torch",
    "related",
    "reproducer",
    "roofline_svg",
    "rows_of",
    "shape",
    "targets",
    "tensor_cores",
    "to_dataframe",
    "to_perfetto",
    "trace_from_json",
    "trace_lines",
    "trace_to_json",
    "user_lines",
    "where",
    "why_kernels",
    "why_not",
    "why_opts",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; known: {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _CallablePackage(types.ModuleType):
    """This package; called, it is the function `explore` in it."""

    def __call__(self, f: Any, *args: Any, **options: Any) -> Any:
        """`explore(f, *args, **options)`: what becomes of `f(*args)`."""
        from tinyexplore.explore.notebook.exploring import explore  # noqa: PLC0415 (start-up: it loads the engine)

        return explore(f, *args, **options)


sys.modules[__name__].__class__ = _CallablePackage
