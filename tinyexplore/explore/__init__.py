"""The explorer: it builds a Trace from the engine's events, analyzes it and displays it.

`tinyexplore.explore` is both this package and the function in it: `from tinyexplore import explore; explore(f, x)`
must work whether or not the package was imported before. The package is therefore callable.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparing.comparison import Comparison, compare
    from tinyexplore.explore.analysis.comparing.difference import diff
    from tinyexplore.explore.analysis.comparing.machines import Machines
    from tinyexplore.explore.analysis.comparing.rosetta import Rosetta, RosettaError
    from tinyexplore.explore.analysis.cores.view import TensorCores, tensor_cores
    from tinyexplore.explore.analysis.machine.table import Ceilings, ceilings
    from tinyexplore.explore.analysis.models.caches import CacheComparison, CacheModel
    from tinyexplore.explore.analysis.models.debugger import Debugger, DebuggerError, StepAccess
    from tinyexplore.explore.analysis.models.lru import Cache
    from tinyexplore.explore.analysis.passes import LLVMPass, LLVMPasses, LLVMPassesError
    from tinyexplore.explore.analysis.shapes.cells import Cell
    from tinyexplore.explore.analysis.shapes.view import ShapeView, shape
    from tinyexplore.explore.analysis.traffic import loaded_bytes
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.analysis.why.chosen import WhyOpts, why_opts
    from tinyexplore.explore.analysis.why.rules import RuleAttempt, WhyNot, could_fire, why_not
    from tinyexplore.explore.foreign.dump import Dump, DumpLimits, ForeignError
    from tinyexplore.explore.notebook.exploring import explore
    from tinyexplore.explore.notebook.foreign import jax, mlir, numba, open, tinygrad
    from tinyexplore.explore.notebook.frontends import llvm, onnx, torch
    from tinyexplore.explore.notebook.session import CaptureError, Explorer, capture
    from tinyexplore.explore.notebook.targets import targets
    from tinyexplore.explore.tracefile.codec import Limits, trace_to_json
    from tinyexplore.explore.tracefile.fusions import WhyKernels, why_kernels
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
    from tinyexplore.explore.tracefile.scripts import ReproducerError, reproducer
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
    "StepAccess": "analysis.models.debugger",
    "Cache": "analysis.models.lru",
    "CacheComparison": "analysis.models.caches",
    "CacheModel": "analysis.models.caches",
    "GPUView": "analysis.models.gpu",
    "Debugger": "analysis.models.debugger",
    "DebuggerError": "analysis.models.debugger",
    "diff": "analysis.comparing.difference",
    "line_frames": "tracefile.query",
    "related": "tracefile.query",
    "reproducer": "tracefile.scripts",
    "rows_of": "tracefile.tabular",
    "to_dataframe": "tracefile.tabular",
    "to_perfetto": "tracefile.perfetto",
    "trace_lines": "tracefile.query",
    "user_lines": "tracefile.query",
    "where": "tracefile.query",
    "ReproducerError": "tracefile.scripts",
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
    "Dump": "foreign.dump",
    "DumpLimits": "foreign.dump",
    "ForeignError": "foreign.dump",
    "jax": "notebook.foreign",
    "mlir": "notebook.foreign",
    "numba": "notebook.foreign",
    "open": "notebook.foreign",
    "tinygrad": "notebook.foreign",
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
    "WhyKernels": "tracefile.fusions",
    "why_kernels": "tracefile.fusions",
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
    "Dump",
    "DumpLimits",
    "Explorer",
    "ForeignError",
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
    "jax",
    "line_frames",
    "llvm",
    "loaded_bytes",
    "mlir",
    "numba",
    "onnx",
    "open",
    "tinygrad",
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
    module_name = _HOMES.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; known: {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{module_name}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _CallablePackage(types.ModuleType):
    """This package as a callable module; a call is passed to the function `explore` in it."""

    def __call__(self, f: Any, *args: Any, **options: Any) -> Any:
        """Calls the function `explore`: captures `f(*args)` and returns its Explorer."""
        from tinyexplore.explore.notebook.exploring import explore  # noqa: PLC0415 (start-up: it loads the engine)

        return explore(f, *args, **options)


sys.modules[__name__].__class__ = _CallablePackage
