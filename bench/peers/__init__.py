"""The peers by name, and what the worker asks of each."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

Arrays = dict[str, np.ndarray]
Call = Callable[[], Any]
E = TypeVar("E", bound="Engine")
WIDE_PREFIX = "wide_"  # of the families that `bench.wide` has, in a module for each engine


class Unsupported(NotImplementedError):
    """This peer has no way to do that family of cases."""


@dataclass(frozen=True)
class Peer:
    """`module` is in `bench.peers`; `variant` is told to its Engine; `needs` is what must be installed."""

    name: str
    module: str
    variant: str
    needs: str
    what: str


class Engine:
    """A peer inside its worker. `version` says which; `note`, after `prepare`, how it was done where that varies."""

    version: str = ""
    note: str = ""

    def __init__(self, variant: str, threads: int) -> None:
        self.variant = variant
        self.threads = threads

    def prepare(self, family: str, arrays: Arrays) -> Call:
        """A function of nothing that does the case once, to the end, from inputs that are ready. Or Unsupported."""
        raise NotImplementedError

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        """What a call returned, copied."""
        raise NotImplementedError

    def spoil(self, result: Any) -> None:
        """Overwrites the memory of a result that the next call will use again, where there is such memory."""

    def drop(self) -> None:
        """Lets go of what belongs to the last case."""


LINE = 64  # bytes: what all memory of a case starts at a multiple of, whoever computes with it


def empty(shape: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """A result's memory, at a cache line: NumPy's own lies at any 16 bytes, and every second vector on two lines."""
    wanted = np.dtype(dtype)
    nbytes = int(np.prod(shape)) * wanted.itemsize
    memory = np.empty(nbytes + LINE, np.uint8)
    return _at_a_line(memory, nbytes).view(wanted).reshape(shape)


def as_input(values: np.ndarray) -> np.ndarray:
    """A copy of `values` at a cache line, in memory that NumPy does not own: so nobody takes it for a result's."""
    memory = np.frombuffer(bytearray(values.nbytes + LINE), np.uint8)
    copy = _at_a_line(memory, values.nbytes).view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def _at_a_line(memory: np.ndarray, nbytes: int) -> np.ndarray:
    start = -memory.ctypes.data % LINE
    return memory[start : start + nbytes]


def spoil_array(result: Any) -> None:
    """`spoil` for NumPy arrays, but those that are a case's input."""
    if not isinstance(result, np.ndarray):
        return
    owner = result if result.base is None else result.base
    if isinstance(owner, np.ndarray) and owner.flags.owndata and result.flags.writeable:
        result.view(np.uint8).fill(0xFF)


class Families(Generic[E]):
    """How one peer does each family: `@families("matmul")` on a function of (engine, arrays) that returns the call."""

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
