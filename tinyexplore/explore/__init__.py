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
    from tinyexplore.explore.analysis.comparisons.comparison import Comparison, compare
    from tinyexplore.explore.analysis.comparisons.language_comparison import LanguageComparison, LanguageError
    from tinyexplore.explore.analysis.comparisons.machines import Machines
    from tinyexplore.explore.analysis.comparisons.trace_diff import diff
    from tinyexplore.explore.analysis.explanations.opt_reasons import WhyOpts, why_opts
    from tinyexplore.explore.analysis.explanations.rules import RuleAttempt, WhyNot, could_fire, why_not
    from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings, ceilings
    from tinyexplore.explore.analysis.models.caches import CacheComparison, CacheModel
    from tinyexplore.explore.analysis.models.debugger import Debugger, DebuggerError, StepAccess
    from tinyexplore.explore.analysis.models.lru import Cache
    from tinyexplore.explore.analysis.passes import LLVMPass, LLVMPasses, LLVMPassesError
    from tinyexplore.explore.analysis.shapes.cells import Cell
    from tinyexplore.explore.analysis.shapes.view import ShapeView, shape
    from tinyexplore.explore.analysis.tensor_cores.view import TensorCores, tensor_cores
    from tinyexplore.explore.analysis.traffic import loaded_bytes
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.foreign.dump import Dump, DumpLimits, ForeignError
    from tinyexplore.explore.notebook.explorer import CaptureError, Explorer, capture
    from tinyexplore.explore.notebook.foreign import jax, mlir, numba, open, tinygrad
    from tinyexplore.explore.notebook.frontends import llvm, onnx, torch
    from tinyexplore.explore.notebook.targets import targets
    from tinyexplore.explore.package_type import explore
    from tinyexplore.explore.tracefile.codec import Limits, trace_to_json
    from tinyexplore.explore.tracefile.fusions import WhyKernels, why_kernels
    from tinyexplore.explore.tracefile.graph_export import Graph, NoDotProgram
    from tinyexplore.explore.tracefile.perfetto import MissingPackage, to_perfetto
    from tinyexplore.explore.tracefile.pictures.roofline_plot import Dot, roofline_svg
    from tinyexplore.explore.tracefile.queries import (
        line_frames,
        related,
        rewrite_history,
        trace_lines,
        user_lines,
        where,
    )
    from tinyexplore.explore.tracefile.scripts import ReproducerError, reproducer
    from tinyexplore.explore.tracefile.table_export import rows_of, to_dataframe
    from tinyexplore.explore.tracefile.trace import Trace, trace_from_json
    from tinyexplore.explore.tracefile.validation import TraceFormatError

_HOMES = {
    "Trace": "tracefile.trace",
    "Limits": "tracefile.codec",
    "TraceFormatError": "tracefile.validation",
    "trace_from_json": "tracefile.trace",
    "trace_to_json": "tracefile.codec",
    "rewrite_history": "tracefile.queries",
    "Machines": "analysis.comparisons.machines",
    "targets": "notebook.targets",
    "Comparison": "analysis.comparisons.comparison",
    "compare": "analysis.comparisons.comparison",
    "LanguageComparison": "analysis.comparisons.language_comparison",
    "LanguageError": "analysis.comparisons.language_comparison",
    "TensorCores": "analysis.tensor_cores.view",
    "tensor_cores": "analysis.tensor_cores.view",
    "StepAccess": "analysis.models.debugger",
    "Cache": "analysis.models.lru",
    "CacheComparison": "analysis.models.caches",
    "CacheModel": "analysis.models.caches",
    "GPUView": "analysis.models.gpu",
    "Debugger": "analysis.models.debugger",
    "DebuggerError": "analysis.models.debugger",
    "diff": "analysis.comparisons.trace_diff",
    "line_frames": "tracefile.queries",
    "related": "tracefile.queries",
    "reproducer": "tracefile.scripts",
    "rows_of": "tracefile.table_export",
    "to_dataframe": "tracefile.table_export",
    "to_perfetto": "tracefile.perfetto",
    "trace_lines": "tracefile.queries",
    "user_lines": "tracefile.queries",
    "where": "tracefile.queries",
    "ReproducerError": "tracefile.scripts",
    "Graph": "tracefile.graph_export",
    "NoDotProgram": "tracefile.graph_export",
    "MissingPackage": "tracefile.perfetto",
    "Ceilings": "analysis.machine.ceiling_table",
    "Dot": "tracefile.pictures.roofline_plot",
    "ceilings": "analysis.machine.ceiling_table",
    "SpeedVerdict": "analysis.verdict.verdict",
    "loaded_bytes": "analysis.traffic",
    "roofline_svg": "tracefile.pictures.roofline_plot",
    "equivalent": "whatif.playground.equivalence",
    "Counterexample": "whatif.playground.equivalence",
    "Verdict": "whatif.playground.equivalence",
    "CaptureError": "notebook.explorer",
    "Explorer": "notebook.explorer",
    "capture": "notebook.explorer",
    "explore": "notebook.explore_function",
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
    "RuleAttempt": "analysis.explanations.rules",
    "WhyNot": "analysis.explanations.rules",
    "could_fire": "analysis.explanations.rules",
    "why_not": "analysis.explanations.rules",
    "WhyKernels": "tracefile.fusions",
    "why_kernels": "tracefile.fusions",
    "WhyOpts": "analysis.explanations.opt_reasons",
    "why_opts": "analysis.explanations.opt_reasons",
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
    "LanguageComparison",
    "LanguageError",
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
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; available: {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{module_name}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _CallablePackage(types.ModuleType):
    """This package as a callable module; a call is passed to the function `explore` in it."""

    def __call__(self, f: Any, *args: Any, **options: Any) -> Any:
        """Calls the function `explore`: captures `f(*args)` and returns its Explorer."""
        from tinyexplore.explore.notebook.explore_function import explore  # noqa: PLC0415 (start-up: it loads the engine)

        return explore(f, *args, **options)


sys.modules[__name__].__class__ = _CallablePackage
