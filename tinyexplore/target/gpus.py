"""The GPUs that TARGET may name, with the known properties of each, as data.

Sources: NVIDIA: the CUDA C++ Programming Guide, "Compute Capabilities", and `cuda_occupancy.h` for the allocation of
registers and shared memory. AMD: its documents of instruction sets, and LLVM's "User Guide for AMDGPU Backend". Apple:
the Metal Feature Set Tables. `opencl` has the guarantees of OpenCL 1.2 (section 4.2: 32 KiB of local memory), and
groups of 256 work-items, which every GPU of the last ten years supports. `webgpu` has the default limits of WebGPU
(section "Limits"), and the types of WGSL without its extensions. Its functions have the errors in "Floating Point
Accuracy": sine and cosine to 2^-11 between -π and π.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.dtype import DType, dtypes
from tinyexplore.target.tensor_cores import AMPERE, APPLE, CDNA_2, RDNA_3, TURING, TensorCore
from tinyexplore.uop import Ops

Cores = tuple[TensorCore, ...]


@dataclass(frozen=True)
class GPUTarget:
    """A machine that runs work-groups.

    description: its description, as text.
    language: the language of its programs.
    shared_bytes: shared memory of one work-group, in bytes.
    group_items: the most work-items of one group.
    warp: work-items that execute in lockstep.
    registers: 32-bit registers of a multiprocessor; each of its four schedulers has a quarter.
    item_registers: the most registers of one work-item.
    register_piece: registers are allocated in multiples of this number.
    own_registers: registers that the compiler reserves in each work-item.
    resident_items: the most work-items resident on a multiprocessor.
    resident_groups: the most work-groups resident on a multiprocessor (0: not documented).
    lone_warps: whether groups of a single warp are exempt from `resident_groups`.
    resident_shared_bytes: shared memory of a multiprocessor, in bytes.
    shared_piece: shared memory is allocated in multiples of this number of bytes.
    group_overhead_bytes: shared memory that each group takes in addition, in bytes.
    flops_per_ns: peak rate of float32, in operations per nanosecond.
    bytes_per_ns: peak memory bandwidth, in bytes per nanosecond.
    access_bytes: the most bytes of one load or store of a work-item; 0: one element at a time.
    unsupported_dtypes: dtypes that it does not compute with.
    lacks_ops: functions that its language lacks.
    cores: its tensor cores, the preferred one first.
    """

    description: str
    language: str
    shared_bytes: int
    group_items: int
    warp: int
    registers: int = 64 << 10
    item_registers: int = 255
    register_piece: int = 8
    own_registers: int = 8
    resident_items: int = 1024
    resident_groups: int = 0
    lone_warps: bool = False
    resident_shared_bytes: int = 0
    shared_piece: int = 128
    group_overhead_bytes: int = 0
    flops_per_ns: int = 10_000
    bytes_per_ns: int = 1_000
    access_bytes: int = 16
    unsupported_dtypes: tuple[DType, ...] = ()
    lacks_ops: tuple[Ops, ...] = ()
    cores: Cores = ()


def _make_nvidia_gpu(
    description: str, resident_items: int, resident_groups: int, shared_kib: int, cores: Cores = AMPERE
) -> GPUTarget:
    """Returns a GPU of NVIDIA.

    Every kernel may use 48 KiB of shared memory without a request at the launch. From compute capability 8.0 on, the
    system takes 1 KiB for each group.
    """
    return GPUTarget(
        description,
        "cuda",
        48 << 10,
        1024,
        32,
        resident_items=resident_items,
        resident_groups=resident_groups,
        resident_shared_bytes=shared_kib << 10,
        shared_piece=256 if shared_kib == 64 else 128,
        group_overhead_bytes=0 if shared_kib == 64 else 1 << 10,
        cores=cores,
    )


def _make_amd_gpu(
    description: str,
    warp: int,
    kilo_registers: int,
    most_registers: int,
    register_piece: int,
    groups: int,
    shared_kib: int,
    cores: Cores,
) -> GPUTarget:
    """Returns a GPU of AMD. The numbers are for a compute unit, or for the two that form a work-group processor.

    kilo_registers: vector registers in total, in units of 1024.
    most_registers: the most vector registers of a work-item.
    register_piece: the unit in which vector registers are allocated. Values that all lanes share, such as addresses of
    buffers, are in scalar registers.
    """
    return GPUTarget(
        description,
        "hip",
        64 << 10,
        1024,
        warp,
        registers=kilo_registers << 10,
        item_registers=most_registers,
        register_piece=register_piece,
        own_registers=0,
        resident_items=2048,
        resident_groups=groups,
        lone_warps=True,
        resident_shared_bytes=shared_kib << 10,
        shared_piece=512,
        cores=cores,
    )


_SMALL = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.float16, dtypes.bfloat16)

GPUS = {
    "opencl": GPUTarget("any GPU with OpenCL 1.2", "opencl", 32 << 10, 256, 32),
    "sm_75": _make_nvidia_gpu("NVIDIA Turing (T4, RTX 20)", 1024, 16, 64, TURING),
    "sm_80": _make_nvidia_gpu("NVIDIA Ampere (A100)", 2048, 32, 164),
    "sm_86": _make_nvidia_gpu("NVIDIA Ampere (RTX 30, A10)", 1536, 16, 100),
    "sm_89": _make_nvidia_gpu("NVIDIA Ada (RTX 40, L4)", 1536, 24, 100),
    "sm_90": _make_nvidia_gpu("NVIDIA Hopper (H100, H200)", 2048, 32, 228),
    "sm_100": _make_nvidia_gpu("NVIDIA Blackwell (B200)", 2048, 32, 228),
    "gfx90a": _make_amd_gpu("AMD CDNA 2 (MI200)", 64, 128, 512, 8, 16, 64, CDNA_2),
    "gfx1100": _make_amd_gpu("AMD RDNA 3 (RX 7900)", 32, 192, 256, 24, 32, 128, RDNA_3),
    "metal": GPUTarget(
        "an Apple GPU of family 7 or later (M1 …)",
        "metal",
        32 << 10,
        1024,
        32,
        flops_per_ns=2_500,
        bytes_per_ns=70,
        unsupported_dtypes=(dtypes.float64,),
        lacks_ops=(Ops.ERF,),
        cores=APPLE,
    ),
    "webgpu": GPUTarget(
        "any GPU of WebGPU",
        "wgsl",
        16 << 10,
        256,
        32,
        access_bytes=0,  # a binding is an array of numbers or an array of vectors, not both
        unsupported_dtypes=(dtypes.float64, dtypes.uint64, *_SMALL),
        lacks_ops=(Ops.ERF,),
    ),
}

__all__ = ["GPUTarget", "GPUS"]
