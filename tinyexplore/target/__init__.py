"""The capabilities of a device, as data: codegen and heuristics read a Target and never a renderer."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tinyexplore.dtype import DType, dtypes
from tinyexplore.target.choice import (
    FEATURES,
    LEVELS,
    NATIVE,
    WASM32,
    TargetChoice,
    UnknownTarget,
    choice_of,
    chosen,
    machine,
    nearest_level,
)
from tinyexplore.target.gpus import GPUS, GPUTarget
from tinyexplore.target.tensor_cores import AMX, TENSOR_CORES, FragmentLayout, TensorCore
from tinyexplore.uop import Ops
from tinyexplore.util import config

LAST_CACHE_BYTES = 32 << 20  # of the cache that cores share: the default if TARGET does not give it


@dataclass(frozen=True)
class Target:
    """A machine as the compiler sees it.

    Instructions and arithmetic:

    name: of the device.
    arch: the instruction set.
    cpu: the model, as LLVM calls it.
    features: of the CPU, as LLVM writes them.
    vector_bytes: width of a vector register; 0: scalars only.
    vector_registers: how many of them.
    threads: cores that a THREAD axis may use; 1: no THREAD axes.
    l1_bytes: data cache of a core.
    l2_bytes: second cache of a core.
    native_ops: transcendental operations that the device computes itself for `native_dtypes`; the others are written
        out in arithmetic.
    native_dtypes: the types of these.
    storage_only: dtypes kept in memory and computed in float32.
    dots: sums of products of small numbers, several to a word, that it has instructions for.
    fuses: whether every MULACC of floats is rounded once.
    scales: whether SCALE, and a TABLE as large as a register, are one instruction each on vectors.
    registers_per_op: registers that a vector may take that is computed in one operation; the device's compiler divides
        it.
    most_lanes: the most numbers of a vector in the language of its programs; 0: a whole register.
    chosen: the setting TARGET that it was made by.
    l3_bytes: the last cache, which cores share.
    line_bytes: of a cache line.
    page_bytes: of a page of memory.
    way_bytes: addresses this far apart, or a multiple of it, share one set of the L1 cache.
    bytes_per_ns: of one core out of its caches.
    flops_per_ns: of one core with vectors, when not all are multiply-adds.
    sums_in_flight: independent sums that keep a core's units busy; each adds some cycles after it began.
    lines_in_flight: cache lines out of memory that a core waits for at a time.
    ahead_bytes: how far ahead of a walk from page to page a prefetch must be, to arrive in time.
    streams: walks along memory that its prefetchers follow at a time.
    hidden_load: cost of a vector load in multiply-adds, where these hide it.
    far_load: the same, where the load waits for memory.
    waking_steps: steps of a loop that take as long as waking another core.
    has_local: whether it is a GPU: output axes are a grid of work-groups, whose work-items share memory and wait for
        each other at barriers.
    shared_bytes: shared memory of a work-group.
    shared_is_near: whether that memory is nearer than any other.
    group_items: the most work-items of a work-group.
    warp: work-items that run in step.
    access_bytes: the most contiguous bytes that a work-item loads or stores together; 0: one element at a time.
    lacks: dtypes that it does not compute with.
    cores: its tensor cores, those to be preferred first.
    """

    name: str
    arch: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    threads: int
    l1_bytes: int
    l2_bytes: int
    native_ops: frozenset[Ops]
    native_dtypes: tuple[DType, ...]
    storage_only: tuple[DType, ...] = (dtypes.float16, dtypes.bfloat16)
    dots: frozenset[Ops] = frozenset()
    fuses: bool = False
    scales: bool = False
    registers_per_op: int = 1
    most_lanes: int = 0
    chosen: str = ""
    l3_bytes: int = LAST_CACHE_BYTES
    line_bytes: int = 64
    page_bytes: int = 4096
    way_bytes: int = 4096
    bytes_per_ns: int = 48
    flops_per_ns: int = 32
    sums_in_flight: int = 8
    lines_in_flight: int = 16
    ahead_bytes: int = 64 << 10
    streams: int = 8
    hidden_load: float = 0.15
    far_load: float = 0.5
    waking_steps: int = 1 << 15
    has_local: bool = False
    shared_bytes: int = 0
    shared_is_near: bool = True
    group_items: int = 1
    warp: int = 1
    access_bytes: int = 0
    lacks: tuple[DType, ...] = ()
    cores: tuple[TensorCore, ...] = ()

    @property
    def from_memory_bytes(self) -> int:
        """Data of at least this size comes from memory; the last cache holds most of anything smaller."""
        return self.l3_bytes * 3 // 4

    @property
    def row_bytes(self) -> int:
        """The largest row to buffer: rows that do not fit in L1 come from L2."""
        return 2 * self.l1_bytes

    @property
    def matrix_bytes(self) -> int:
        """The largest data that stays in a core's own cache between two kernels: half of L2."""
        return self.l2_bytes // 2

    @property
    def read_again_bytes(self) -> int:
        """The largest data that stays in the last cache, beside other data, while all cores read it repeatedly."""
        return self.l3_bytes // 8

    def lanes(self, dtype: DType) -> int:
        """Returns the number of values of `dtype` in a vector register (1: no vectors)."""
        fit = max(1, self.vector_bytes // dtype.itemsize)
        return min(fit, self.most_lanes or fit)

    def describe(self) -> str:
        if self.has_local:
            shared = f"{self.shared_bytes >> 10} KiB shared"
            return f"{self.name} · {self.cpu} · groups of up to {self.group_items} work-items · {shared}"
        vectors = f"{self.vector_bytes * 8}-bit vectors" if self.vector_bytes else "scalars"
        return f"{self.name} · {self.cpu} · {vectors} · {self.threads} thread{'s' if self.threads != 1 else ''}"


def planned_cores() -> int:
    """The number of cores among which work is divided: the number in TARGET, else THREADS, else this machine's."""
    return chosen().threads or config().THREADS or core_count()


def core_count() -> int:
    """The number of cores on which this process may run."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


__all__ = [
    "AMX",
    "FEATURES",
    "GPUTarget",
    "GPUS",
    "LAST_CACHE_BYTES",
    "LEVELS",
    "NATIVE",
    "TENSOR_CORES",
    "WASM32",
    "TargetChoice",
    "FragmentLayout",
    "Target",
    "TensorCore",
    "UnknownTarget",
    "choice_of",
    "chosen",
    "core_count",
    "machine",
    "nearest_level",
    "planned_cores",
]
