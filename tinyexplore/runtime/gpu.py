"""Shared parts of GPU devices: the target, and devices that render programs without running them."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.device import DeviceInterface
from tinyexplore.dtype import dtypes
from tinyexplore.renderer.gpu import ALIGNMENT, GPURenderer
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.native import ForeignProgram
from tinyexplore.target import GPUTarget, Target, TargetChoice
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops

NATIVE_OPS = OpGroups.TRANSCENDENTAL | {Ops.SQRT, Ops.FLOOR, Ops.MOD}


def gpu_target(device: str, gpu: GPUTarget, name: str, target_setting: str) -> Target:
    """Returns the Target of `gpu`, called `name`. `chosen`: the setting TARGET."""
    return Target(
        name=device,
        arch=gpu.language,
        cpu=name,
        features="",
        vector_bytes=0,
        vector_registers=0,
        threads=1,
        l1_bytes=32 << 10,
        l2_bytes=4 << 20,
        native_ops=NATIVE_OPS.difference(gpu.lacks_ops),
        native_dtypes=(dtypes.float32, dtypes.float64),
        fuses_multiply_add=True,
        target_setting=target_setting,
        bytes_per_ns=gpu.bytes_per_ns,
        flops_per_ns=gpu.flops_per_ns,
        has_local=True,
        shared_bytes=gpu.shared_bytes,
        group_items=gpu.group_items,
        warp=gpu.warp,
        access_bytes=gpu.access_bytes,
        unsupported_dtypes=gpu.unsupported_dtypes,
        cores=gpu.cores,
    )


def text_device(name: str, choice: TargetChoice) -> DeviceInterface:
    """Returns the device `name` if TARGET names a GPU that this machine may not have. It writes programs but runs
    none."""
    gpu = choice.gpu
    assert gpu is not None
    target = gpu_target(name, gpu, choice.cpu, choice.text)
    refusal = f"programs for {choice.cpu} ({gpu.description}) are written here, not run; DEVICE=PYTHON emulates them"

    def compiled(spec: ProgramSpec) -> ForeignProgram:
        return ForeignProgram(spec, refusal, b"")

    renderer = GPURenderer(target, f"none ({gpu.language})")
    return DeviceInterface(name, target, HOST_ALLOCATOR, renderer, compiled, no_listings, refusal)


def without_vectors(spec: ProgramSpec) -> ProgramSpec:
    """Rewrites the program for buffers of any alignment, such as views of buffers and wrapped arrays."""
    return GPURenderer(spec.target, spec.compiler, aligned=False).render(spec.name, spec.uops)


def is_misaligned(spec: ProgramSpec, addresses: Sequence[int]) -> bool:
    """Whether a program would load or store unaligned vectors."""
    return any([addresses[slot] % ALIGNMENT for slot in spec.aligned])


def no_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Returns no listings beside the source."""
    return []


__all__ = ["gpu_target", "no_listings", "is_misaligned", "text_device", "without_vectors"]
