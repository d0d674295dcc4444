"""`explore` for other compilers: their graphs, passes and listings in the same view. See `docs/foreign.md`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyexplore.explore.foreign import Dump, DumpLimits, ForeignError, read_dump
from tinyexplore.explore.foreign.dump import DUMP_LIMITS, Budget, is_json
from tinyexplore.explore.notebook.explorer import Explorer
from tinyexplore.explore.notebook.frontends import llvm
from tinyexplore.explore.tracefile.trace import Trace


def tinygrad(f: Callable[[], Any], *, title: str = "", save: str | Path | None = None) -> Explorer:
    """Captures tinygrad's compilation of `f()`: every rewrite of its graphs with the rule's text and line, and the
    source code.

    tinygrad decides at its import whether it tracks rewrites. Import it inside `f`, or start Python with
    `TRACK_MATCH_STATS=2 TRACEMETA=2 PARALLEL=0 CACHELEVEL=0`.

    Args:
        f: called once; a returned Tensor is realized.
        title: the title of the view; by default the function's name.
        save: a file for the recorded tables, which `explore.open` and `tinyexplore open` read without tinygrad.

    Raises:
        ModuleNotFoundError: tinygrad is not installed.
        ForeignError: tinygrad was imported without tracking.
    """
    from tinyexplore.explore.foreign.tinygrad import record

    return _read_and_show(record(f, title=title), save)


def jax(f: Callable[..., Any], *args: Any, title: str = "", save: str | Path | None = None) -> Explorer:
    """Captures the compilation of `f(*args)` by JAX and XLA: jaxpr, StableHLO, HLO after each pass, LLVM IR, assembly.

    `f` is compiled but does not run.

    Args:
        f: a function that `jax.jit` accepts.
        args: its arguments.
        title: the title of the view; by default the function's name.
        save: a file for the dump, which `explore.open` and `tinyexplore open` read without JAX.

    Raises:
        ModuleNotFoundError: JAX is not installed.
    """
    from tinyexplore.explore.foreign.jax import record

    return _read_and_show(record(f, *args, title=title), save)


def numba(f: Callable[..., Any], signature: Any, *, title: str = "", save: str | Path | None = None) -> Explorer:
    """Captures Numba's compilation of `f`: bytecode, Numba IR after each pass, LLVM IR after each LLVM pass, assembly.

    Args:
        f: a Python function, or one that `numba.njit` returned.
        signature: the types of its arguments: `(numba.float32[:], numba.int64)`.
        title: the title of the view; by default the function's name.
        save: a file for the dump, which `explore.open` and `tinyexplore open` read without Numba.

    Raises:
        ModuleNotFoundError: Numba is not installed.
        TypeError: `f` is no Python function.
    """
    from tinyexplore.explore.foreign.numba import record

    return _read_and_show(record(f, signature, title=title), save)


def mlir(dump: str | Path, *, title: str = "", limits: DumpLimits = DUMP_LIMITS) -> Explorer:
    """Shows an MLIR dump: the output of `--mlir-print-ir-after-all`, of Triton with `MLIR_ENABLE_DUMP=1`, or of xDSL.

    Args:
        dump: a file, a folder with such a file and the later languages (`.llir`, `.ptx`), or the text itself.
        title: the title of the view; by default the file's name.
        limits: the limits of the dump.

    Raises:
        ForeignError: the dump is no MLIR, or exceeds a limit.
    """
    is_text = isinstance(dump, str) and "\n" in dump
    loaded = Dump("mlir", "", title, {"dump.mlir": str(dump)}) if is_text else Dump.load(dump, limits)
    loaded = Dump(loaded.compiler, loaded.version, title or loaded.title, loaded.files, loaded.facts)
    from tinyexplore.explore.foreign import mlir as reader

    if not reader.recognizes(loaded):
        raise ForeignError(f"{loaded.title or 'the text'} has no module of MLIR")
    return Explorer(reader.read(loaded, Budget(limits)))


def open(path: str | Path, *, limits: DumpLimits = DUMP_LIMITS) -> Explorer:  # noqa: A001 (used as explore.open)
    """Opens a file as a view: a trace, a dump of any compiler that `docs/foreign.md` lists, or an LLVM module (".ll").

    For a module the view shows LLVM's passes at O3 on the first function; see `explore.llvm` for others.

    Args:
        path: a file, compressed or not, or a folder.
        limits: the limits of a dump.

    Raises:
        ForeignError: the format is unknown, or the dump is damaged or exceeds a limit.
        TraceFormatError: the trace is damaged, or has another version.
        LLVMPassesError: LLVM rejected the module.
        OSError: the file cannot be read.
    """
    if Path(path).suffix == ".ll" and Path(path).is_file():
        return llvm(Path(path))
    if Path(path).is_file() and is_json(path):
        return Explorer(Trace.load(path))
    return Explorer(read_dump(path, limits))


def _read_and_show(dump: Dump, save: str | Path | None) -> Explorer:
    if save is not None:
        dump.save(save)
    return Explorer(read_dump(dump))


__all__ = ["jax", "mlir", "numba", "open", "tinygrad"]
