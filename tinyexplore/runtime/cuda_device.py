"""Opens the CUDA device."""

from __future__ import annotations

from dataclasses import replace

from tinyexplore.device import DeviceInterface, DeviceUnavailable, GraphFactory
from tinyexplore.renderer.gpu import GPURenderer
from tinyexplore.runtime.cuda import device_name, get_cuda
from tinyexplore.runtime.cuda_graph import KernelGraph, refusal
from tinyexplore.runtime.gpu import gpu_target, no_listings
from tinyexplore.target import GPUS, current_choice


def open_cuda(number: int = 0) -> DeviceInterface:
    """Opens the device CUDA, or CUDA:1, …. Raises DeviceUnavailable, with a remedy, if something is missing."""
    choice = current_choice()
    if choice.gpu is not None and choice.gpu.language != "cuda":
        raise DeviceUnavailable(
            f"TARGET={choice.text!r}: the CUDA device runs CUDA C++, not {choice.gpu.language}; DEVICE=LLVM shows the "
            "text, DEVICE=PYTHON emulates it"
        )
    cuda = get_cuda(number)
    if choice.gpu is not None and choice.cpu != cuda.architecture:
        raise DeviceUnavailable(
            f"TARGET={choice.text!r}: this GPU ({cuda.name}) is {cuda.architecture}; unset TARGET, or DEVICE=LLVM "
            "shows the text"
        )
    gpu = replace(
        GPUS[nearest(cuda.architecture)],
        description=cuda.name,
        shared_bytes=cuda.query_attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
        group_items=cuda.query_attribute("MAX_THREADS_PER_BLOCK"),
        warp=cuda.query_attribute("WARP_SIZE"),
    )
    name = device_name(number)
    target = gpu_target(name, gpu, cuda.architecture, choice.text)
    renderer = GPURenderer(target, cuda.compiler)
    return DeviceInterface(
        name,
        target,
        cuda.allocator,
        renderer,
        cuda.compile,
        no_listings,
        wait=cuda.synchronize,
        graphs=GraphFactory(KernelGraph, refusal),
    )


def nearest(architecture: str) -> str:
    """Returns the GPU of the table whose properties apply to this architecture: itself, else the one before it."""
    numbers = sorted(int(name[3:]) for name, gpu in GPUS.items() if gpu.language == "cuda")
    number = int(architecture[3:])
    return f"sm_{max([supported for supported in numbers if supported <= number], default=numbers[0])}"


__all__ = ["nearest", "open_cuda"]
