"""Target: the capabilities of a machine, as data. Codegen and heuristics read a Target and never a renderer."""

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
    current_choice,
    machine,
    nearest_level,
)
from tinyexplore.target.gpus import GPUS, GPUTarget
from tinyexplore.target.tensor_cores import AMX, TENSOR_CORES, FragmentLayout, TensorCore
from tinyexplore.uop import Ops
from tinyexplore.util import config

LAST_CACHE_BYTES = 32 << 20  # bytes of the last-level cache: the default if TARGET does not give it


@dataclass(frozen=True)
class Target:
    """A machine as the compiler models it.

    name: the name of the device.
    arch: the instruction set.
    cpu: the model, as LLVM calls it.
    features: the features of the CPU, as LLVM writes them.
    vector_bytes: width of a vector register; 0: scalars only.
    vector_registers: number of vector registers.
    threads: cores that a THREAD axis may use; 1: no THREAD axes.
    l1_bytes: L1 data cache of a core.
    l2_bytes: L2 cache of a core.
    native_ops: transcendental operations that the device computes itself for `native_dtypes`; the others are expanded
    to arithmetic.
    native_dtypes: the dtypes of `native_ops`.
    storage_only: dtypes that are stored in memory and computed in float32.
    dots: dot products of several small numbers per word for which it has instructions.
    fuses_multiply_add: whether every MULACC of floats is rounded once.
    has_scale: whether SCALE, and a TABLE as large as a register, are one instruction each on vectors.
    registers_per_op: registers that a vector of one operation may take; the device's compiler divides it.
    most_lanes: the most lanes of a vector in the language of its programs; 0: a whole register.
    target_setting: the setting TARGET that it comes from.
    l3_bytes: the last-level cache, which cores share.
    line_bytes: bytes of a cache line.
    page_bytes: bytes of a page of memory.
    way_bytes: addresses at multiples of this distance share one set of the L1 cache.
    bytes_per_ns: bandwidth of one core from its caches.
    flops_per_ns: arithmetic of one core with vectors, if not all operations are multiply-adds.
    sums_in_flight: independent sums that keep a core's units busy; each addition takes some cycles.
    lines_in_flight: cache lines from memory that a core can wait for at one time.
    ahead_bytes: how far ahead a prefetch must be to arrive in time, in accesses that jump from page to page.
    streams: sequences of accesses that its prefetchers follow at one time.
    prefetches_streams: whether prefetch instructions for each of these sequences save time.
    hidden_load: cost of a vector load that multiply-adds hide, in multiply-adds.
    far_load: cost of a vector load that waits for memory, in multiply-adds.
    wake_up_steps: steps of a loop that take as long as waking another core.
    has_local: whether it is a GPU: output axes are a grid of work-groups, whose work-items share memory and wait for
    each other at barriers.
    shared_bytes: shared memory of a work-group.
    shared_is_near: whether shared memory is faster than other memory.
    group_items: the most work-items of a work-group.
    warp: work-items that execute in lockstep.
    access_bytes: the most contiguous bytes that a work-item loads or stores together; 0: one element at a time.
    unsupported_dtypes: dtypes that it does not compute with.
    cores: its tensor cores, preferred ones first.
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
    fuses_multiply_add: bool = False
    has_scale: bool = False
    registers_per_op: int = 1
    most_lanes: int = 0
    target_setting: str = ""
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
    prefetches_streams: bool = True
    hidden_load: float = 0.15
    far_load: float = 0.5
    wake_up_steps: int = 1 << 15
    has_local: bool = False
    shared_bytes: int = 0
    shared_is_near: bool = True
    group_items: int = 1
    warp: int = 1
    access_bytes: int = 0
    unsupported_dtypes: tuple[DType, ...] = ()
    cores: tuple[TensorCore, ...] = ()

    @property
    def min_memory_bytes(self) -> int:
        """Data of at least this size comes from memory. The last-level cache holds most of smaller data."""
        return self.l3_bytes * 3 // 4

    @property
    def row_bytes(self) -> int:
        """The largest row to buffer: rows that do not fit in L1 come from L2."""
        return 2 * self.l1_bytes

    @property
    def private_cache_bytes(self) -> int:
        """The largest data that stays in a core's own cache between two kernels: half of L2."""
        return self.l2_bytes // 2

    @property
    def shared_cache_bytes(self) -> int:
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
    """Returns among how many cores work is divided: the number in TARGET, else THREADS, else this machine's."""
    return current_choice().threads or config().THREADS or core_count()


def core_count() -> int:
    """Returns the number of cores on which this process may run."""
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
    "current_choice",
    "core_count",
    "machine",
    "nearest_level",
    "planned_cores",
]
