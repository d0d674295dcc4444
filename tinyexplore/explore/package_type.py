"""The type of `tinyexplore.explore` for type checkers and editors: a package that is also a function.

Nothing imports this module when a program runs. `tinyexplore.explore` imports the same functions on first use.
"""

from __future__ import annotations

from tinyexplore.explore.analysis.comparisons.comparison import compare
from tinyexplore.explore.analysis.comparisons.trace_diff import diff
from tinyexplore.explore.analysis.explanations.opt_reasons import why_opts
from tinyexplore.explore.analysis.explanations.rules import could_fire, why_not
from tinyexplore.explore.analysis.machine.ceiling_table import ceilings
from tinyexplore.explore.analysis.shapes.view import shape
from tinyexplore.explore.analysis.tensor_cores.view import tensor_cores
from tinyexplore.explore.analysis.traffic import loaded_bytes
from tinyexplore.explore.notebook.explore_function import explore as explore_function
from tinyexplore.explore.notebook.explorer import capture
from tinyexplore.explore.notebook.foreign import jax, mlir, numba, open, tinygrad
from tinyexplore.explore.notebook.frontends import llvm, onnx, torch
from tinyexplore.explore.notebook.targets import targets
from tinyexplore.explore.tracefile.codec import trace_to_json
from tinyexplore.explore.tracefile.fusions import why_kernels
from tinyexplore.explore.tracefile.perfetto import to_perfetto
from tinyexplore.explore.tracefile.pictures.roofline_plot import roofline_svg
from tinyexplore.explore.tracefile.queries import line_frames, related, rewrite_history, trace_lines, user_lines, where
from tinyexplore.explore.tracefile.scripts import reproducer
from tinyexplore.explore.tracefile.table_export import rows_of, to_dataframe
from tinyexplore.explore.tracefile.trace import trace_from_json
from tinyexplore.explore.whatif.playground.equivalence import equivalent


class ExplorePackage:
    """`explore(f, *args)`, and the functions `explore.NAME`."""

    __call__ = staticmethod(explore_function)
    capture = staticmethod(capture)
    ceilings = staticmethod(ceilings)
    compare = staticmethod(compare)
    could_fire = staticmethod(could_fire)
    diff = staticmethod(diff)
    equivalent = staticmethod(equivalent)
    jax = staticmethod(jax)
    line_frames = staticmethod(line_frames)
    llvm = staticmethod(llvm)
    loaded_bytes = staticmethod(loaded_bytes)
    mlir = staticmethod(mlir)
    numba = staticmethod(numba)
    onnx = staticmethod(onnx)
    open = staticmethod(open)
    related = staticmethod(related)
    reproducer = staticmethod(reproducer)
    rewrite_history = staticmethod(rewrite_history)
    roofline_svg = staticmethod(roofline_svg)
    rows_of = staticmethod(rows_of)
    shape = staticmethod(shape)
    targets = staticmethod(targets)
    tensor_cores = staticmethod(tensor_cores)
    tinygrad = staticmethod(tinygrad)
    to_dataframe = staticmethod(to_dataframe)
    to_perfetto = staticmethod(to_perfetto)
    torch = staticmethod(torch)
    trace_from_json = staticmethod(trace_from_json)
    trace_lines = staticmethod(trace_lines)
    trace_to_json = staticmethod(trace_to_json)
    user_lines = staticmethod(user_lines)
    where = staticmethod(where)
    why_kernels = staticmethod(why_kernels)
    why_not = staticmethod(why_not)
    why_opts = staticmethod(why_opts)


explore = ExplorePackage()
