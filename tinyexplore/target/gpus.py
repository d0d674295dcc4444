"""The GPUs that TARGET may name: what is known of each, as data.

The limits of NVIDIA's are those of the CUDA C++ Programming Guide, "Compute Capabilities"; `opencl` has what the
specification of OpenCL 1.2 promises of every device (section 4.2: 32 KiB of local memory), and groups of 256
work-items, which every GPU of the last ten years runs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GPU:
    """A machine with work-groups. `words`: what it is. `language`: what its programs are written in.

    shared_bytes: of one group. group_items: the most of one group. warp: how many of them go in step. registers: 32-bit
    ones of a multiprocessor; resident_items: the work-items that it holds at one time.
    """

    words: str
    language: str
    shared_bytes: int
    group_items: int
    warp: int
    registers: int = 64 << 10
    resident_items: int = 1024
    flops_per_ns: int = 10_000
    bytes_per_ns: int = 1_000


def _cuda(words: str, resident_items: int) -> GPU:
    """48 KiB of shared memory is what every kernel may have without asking for more at the launch."""
    return GPU(words, "cuda", 48 << 10, 1024, 32, resident_items=resident_items)


GPUS = {
    "opencl": GPU("any GPU with OpenCL 1.2", "opencl", 32 << 10, 256, 32),
    "sm_75": _cuda("NVIDIA Turing (T4, RTX 20)", 1024),
    "sm_80": _cuda("NVIDIA Ampere (A100)", 2048),
    "sm_86": _cuda("NVIDIA Ampere (RTX 30, A10)", 1536),
    "sm_89": _cuda("NVIDIA Ada (RTX 40, L4)", 1536),
    "sm_90": _cuda("NVIDIA Hopper (H100, H200)", 2048),
    "sm_100": _cuda("NVIDIA Blackwell (B200)", 2048),
}

__all__ = ["GPU", "GPUS"]
