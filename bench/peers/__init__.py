"""The peers by name, and the interface that the worker uses."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

Arrays = dict[str, np.ndarray]
Call = Callable[[], Any]
E = TypeVar("E", bound="Engine")
WIDE_PREFIX = "wide_"  # of the families in `bench.wide`, which has a module for each engine


class Unsupported(NotImplementedError):
    """The peer does not implement that family of cases."""


@dataclass(frozen=True)
class Peer:
    """An entry of the table of peers.

    name: of the peer, in tables and on the command line.
    module: the module in `bench.peers`.
    variant: the argument of its Engine.
    needs: the package that must be installed.
    what: a description for `--help` and the tables.
    """

    name: str
    module: str
    variant: str
    needs: str
    what: str


class Engine:
    """A peer inside its worker process. `version` describes it.

    `note` describes, after `prepare`, the chosen method where a peer has several.
    """

    version: str = ""
    note: str = ""

    def __init__(self, variant: str, threads: int) -> None:
        self.variant = variant
        self.threads = threads

    def prepare(self, family: str, arrays: Arrays) -> Call:
        """Return a function without parameters that runs the case to its end, from inputs in memory.

        Raise Unsupported if the peer does not implement `family`.
        """
        raise NotImplementedError

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        """Return copies of the results of a call."""
        raise NotImplementedError

    def spoil(self, result: Any) -> None:
        """Overwrite the memory of a result if the next call uses it again."""

    def drop(self) -> None:
        """Release everything that belongs to the last case."""


LINE = 64  # bytes; the memory of a case starts at a multiple of this for every peer


def empty(shape: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Return memory for a result, aligned to a cache line.

    NumPy aligns to 16 bytes only, so that every second vector would lie on two lines.
    """
    result_type = np.dtype(dtype)
    nbytes = int(np.prod(shape)) * result_type.itemsize
    memory = np.empty(nbytes + LINE, np.uint8)
    return _align_to_line(memory, nbytes).view(result_type).reshape(shape)


def as_input(values: np.ndarray) -> np.ndarray:
    """Return a copy of `values`, aligned to a cache line, in memory that NumPy does not own.

    `spoil_array` therefore does not take it for a result.
    """
    memory = np.frombuffer(bytearray(values.nbytes + LINE), np.uint8)
    copy = _align_to_line(memory, values.nbytes).view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def _align_to_line(memory: np.ndarray, nbytes: int) -> np.ndarray:
    start = -memory.ctypes.data % LINE
    return memory[start : start + nbytes]


def spoil_array(result: Any) -> None:
    """Overwrite a NumPy array, unless it is an input of a case."""
    if not isinstance(result, np.ndarray):
        return
    owner = result if result.base is None else result.base
    if isinstance(owner, np.ndarray) and owner.flags.owndata and result.flags.writeable:
        result.view(np.uint8).fill(0xFF)


class Families(Generic[E]):
    """The implementations of one peer.

    `@families("matmul")` registers a function of (engine, arrays) that returns the call.
    """

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.makers: dict[str, Callable[[E, Arrays], Call]] = {}

    def __call__(self, *names: str) -> Callable[[Callable[[E, Arrays], Call]], Callable[[E, Arrays], Call]]:
        def keep(maker: Callable[[E, Arrays], Call]) -> Callable[[E, Arrays], Call]:
            self.makers.update(dict.fromkeys(names, maker))
            return maker

        return keep

    def prepare(self, engine: E, family: str, arrays: Arrays) -> Call:
        if family.startswith(WIDE_PREFIX):
            wide = importlib.import_module(f"bench.wide.{self.peer}")
            call: Call = wide.prepare(engine, family.removeprefix(WIDE_PREFIX), arrays)
            return call
        if family not in self.makers:
            raise Unsupported(f"{self.peer} has nothing for {family}")
        return self.makers[family](engine, arrays)


OURS = ("tinyexplore", "tinyexplore.jit")

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("tinyexplore", "tinyexplore", "", "numpy", "a call builds the lazy graph and realizes it"),
        Peer("tinyexplore.jit", "tinyexplore", "jit", "numpy", "the same inside TinyJit"),
        Peer("numpy", "numpy", "", "numpy", ""),
        Peer("torch", "torch", "", "torch", "eager"),
        Peer("torch.compile", "torch", "compile", "torch", "torch.compile, default mode"),
        Peer("torch.max", "torch", "max", "torch", "torch.compile, max-autotune"),
        Peer("jax", "jax", "", "jax", "jax.jit"),
        Peer("numba", "numba", "", "numba", "parallel loops"),
        Peer("tinygrad", "tinygrad", "", "tinygrad", "its CPU device, inside TinyJit"),
        Peer("tinygrad.llvm", "tinygrad", "llvm", "tinygrad", "its CPU device through LLVM, inside TinyJit"),
        Peer("tinygrad.x86", "tinygrad", "x86", "tinygrad", "its CPU device through its own assembler, inside TinyJit"),
        Peer("machine", "machine", "", "llvmlite", "the least traffic of a case, at the machine's best"),
    )
}
