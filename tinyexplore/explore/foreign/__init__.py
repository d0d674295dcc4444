"""Readers of the dumps of other compilers: `read_dump(path)` returns the trace of any of them.

A reader is a module with `recognizes(dump)` and `read(dump, budget)`, and a row of the table `READERS`. It does not
import the compiler. `docs/foreign.md` describes how to record each dump.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyexplore.explore.foreign.dump import DUMP_LIMITS, Budget, Dump, DumpLimits, ForeignError
from tinyexplore.explore.tracefile.trace import Trace


@dataclass(frozen=True, slots=True)
class Reader:
    """A row of the table of readers.

    module: the name of the module in this package.
    compiler: the name of the compiler.
    tested: the compiler versions of the dumps in the tests.
    file: a description of the dump's files.
    """

    module: str
    compiler: str
    tested: str
    file: str

    def load(self) -> Any:
        """Imports and returns the reader's module."""
        return importlib.import_module(f"{__name__}.{self.module}")


READERS = (
    Reader("tinygrad", "tinygrad", "0.14.0, 0.12.0, 0.10.3", "what explore.tinygrad saved"),
    Reader("jax", "JAX/XLA", "0.10.2", "a folder of XLA_FLAGS=--xla_dump_to, or what explore.jax saved"),
    Reader("numba", "Numba", "0.68.1", "what explore.numba saved"),
    Reader("mlir", "MLIR", "Triton 3.9.0, xDSL 0.75.0", "a text of --mlir-print-ir-after-all or MLIR_ENABLE_DUMP=1"),
    Reader("inductor", "TorchInductor", "PyTorch 2.14.1", "a log of TORCH_TRACE"),
)


def reader_of(dump: Dump) -> Reader:
    """Returns the reader that recognizes a dump.

    Raises:
        ForeignError: no reader recognizes it.
    """
    for reader in READERS:
        if reader.load().recognizes(dump):
            return reader
    formats = "; ".join(f"{reader.compiler}: {reader.file}" for reader in READERS)
    file_names = ", ".join(list(dump.files)[:3]) or "no text"
    raise ForeignError(f"{dump.title or 'the dump'} ({file_names}) is of no known format. Known: {formats}")


def read_dump(source: Dump | str | Path, limits: DumpLimits = DUMP_LIMITS) -> Trace:
    """Returns the trace of a dump: a file, a folder, or a `Dump`.

    Raises:
        ForeignError: no reader recognizes the dump, or it is damaged or exceeds a limit.
        OSError: the file cannot be read.
    """
    dump = source if isinstance(source, Dump) else Dump.load(source, limits)
    reader = reader_of(dump)
    trace: Trace = reader.load().read(dump, Budget(limits))
    return trace


__all__ = ["READERS", "DumpLimits", "Dump", "ForeignError", "Reader", "read_dump", "reader_of"]
