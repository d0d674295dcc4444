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
    from tinyexplore.explore.byhand.caches import CacheComparison, CacheModel
    from tinyexplore.explore.byhand.debugger import Access, Debugger, DebuggerError
    from tinyexplore.explore.byhand.lru import Cache
    from tinyexplore.explore.codec import Limits, trace_from_json, trace_to_json
    from tinyexplore.explore.comparing.comparison import Comparison, compare
    from tinyexplore.explore.comparing.difference import diff
    from tinyexplore.explore.comparing.machines import Machines, targets
    from tinyexplore.explore.comparing.rosetta import Rosetta, RosettaError
    from tinyexplore.explore.cores.view import TensorCores, tensor_cores
    from tinyexplore.explore.exports.interchange import Graph, NoDotProgram
    from tinyexplore.explore.exports.perfetto import MissingPackage
    from tinyexplore.explore.exports.scripts import ReproducerError, reproducer
    from tinyexplore.explore.exports.tabular import rows_of
    from tinyexplore.explore.model import Trace
    from tinyexplore.explore.pictures.roofline import Dot, loaded_bytes, roofline_svg
    from tinyexplore.explore.query import biography, line_frames, related, trace_lines, user_lines, where
    from tinyexplore.explore.session import CaptureError, Explorer, capture, explore
    from tinyexplore.explore.shapes.cells import Cell
    from tinyexplore.explore.shapes.view import ShapeView, shape
    from tinyexplore.explore.valid import TraceFormatError
    from tinyexplore.explore.why.chosen import WhyOpts, why_opts
    from tinyexplore.explore.why.fusions import WhyKernels, why_kernels
    from tinyexplore.explore.why.rules import Tried, WhyNot, could_fire, why_not

_HOMES = {
    "Trace": "model",
    "Limits": "codec",
    "TraceFormatError": "valid",
    "trace_from_json": "codec",
    "trace_to_json": "codec",
    "biography": "query",
    "Machines": "comparing.machines",
    "targets": "comparing.machines",
    "Comparison": "comparing.comparison",
    "compare": "comparing.comparison",
    "Rosetta": "comparing.rosetta",
    "RosettaError": "comparing.rosetta",
    "TensorCores": "cores.view",
    "tensor_cores": "cores.view",
    "Access": "byhand.debugger",
    "Cache": "byhand.lru",
    "CacheComparison": "byhand.caches",
    "CacheModel": "byhand.caches",
    "GPUView": "byhand.gpu",
    "Debugger": "byhand.debugger",
    "DebuggerError": "byhand.debugger",
    "diff": "comparing.difference",
    "line_frames": "query",
    "related": "query",
    "reproducer": "exports.scripts",
    "rows_of": "exports.tabular",
    "trace_lines": "query",
    "user_lines": "query",
    "where": "query",
    "ReproducerError": "exports.scripts",
    "Graph": "exports.interchange",
    "NoDotProgram": "exports.interchange",
    "MissingPackage": "exports.perfetto",
    "Dot": "pictures.roofline",
    "loaded_bytes": "pictures.roofline",
    "roofline_svg": "pictures.roofline",
    "equivalent": "playground.equivalence",
    "Counterexample": "playground.equivalence",
    "Verdict": "playground.equivalence",
    "CaptureError": "session",
    "Explorer": "session",
    "capture": "session",
    "explore": "session",
    "Cell": "shapes.cells",
    "ShapeView": "shapes.view",
    "shape": "shapes.view",
    "Tried": "why.rules",
    "WhyNot": "why.rules",
    "could_fire": "why.rules",
    "why_not": "why.rules",
    "WhyKernels": "why.fusions",
    "why_kernels": "why.fusions",
    "WhyOpts": "why.chosen",
    "why_opts": "why.chosen",
}

__all__ = [
    "Access",
    "Cache",
    "CacheComparison",
    "CacheModel",
    "CaptureError",
    "Cell",
    "Comparison",
    "Counterexample",
    "Debugger",
    "DebuggerError",
    "Dot",
    "Explorer",
    "Graph",
    "Limits",
    "Machines",
    "MissingPackage",
    "NoDotProgram",
    "ReproducerError",
    "Rosetta",
    "RosettaError",
    "ShapeView",
    "TensorCores",
    "Trace",
    "TraceFormatError",
    "Tried",
    "Verdict",
    "WhyKernels",
    "WhyNot",
    "WhyOpts",
    "biography",
    "capture",
    "compare",
    "could_fire",
    "diff",
    "equivalent",
    "explore",
    "line_frames",
    "loaded_bytes",
    "related",
    "reproducer",
    "roofline_svg",
    "rows_of",
    "shape",
    "targets",
    "tensor_cores",
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
        from tinyexplore.explore.session import explore  # noqa: PLC0415 (start-up: it loads the engine)

        return explore(f, *args, **options)


sys.modules[__name__].__class__ = _CallablePackage
