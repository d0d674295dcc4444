"""Registers the devices of this package by name. A device's modules are imported when it is first opened."""

from __future__ import annotations

from tinyexplore.device import Device, DeviceInterface, Storage


def _open_llvm() -> DeviceInterface:
    from tinyexplore.runtime.llvm_device import open_llvm

    return open_llvm()


def _open_clang() -> DeviceInterface:
    from tinyexplore.runtime.clang import open_clang

    return open_clang()


def _open_gpu() -> DeviceInterface:
    from tinyexplore.runtime.opencl import open_gpu

    return open_gpu()


def _open_cuda(number: int = 0) -> DeviceInterface:
    from tinyexplore.runtime.cuda_device import open_cuda

    return open_cuda(number)


def _open_python() -> DeviceInterface:
    from tinyexplore.runtime.python import open_python

    return open_python()


def _open_wasm() -> DeviceInterface:
    from tinyexplore.runtime.wasm import open_wasm

    return open_wasm()


def _open_webgpu() -> DeviceInterface:
    from tinyexplore.runtime.webgpu import open_webgpu

    return open_webgpu()


def _open_disk(path: str) -> Storage:
    from tinyexplore.runtime.disk import open_disk

    return open_disk(path)


def _open_numpy(_: str) -> Storage:
    from tinyexplore.runtime.host_memory import HOST_ALLOCATOR

    return Storage("NPY", HOST_ALLOCATOR)


def register_devices() -> None:
    """Registers the devices LLVM, CLANG, PYTHON, GPU, CUDA, WASM and WEBGPU, and as storage DISK (files) and NPY (NumPy
    arrays)."""
    Device.register("LLVM", _open_llvm)
    Device.register("CLANG", _open_clang)
    Device.register("PYTHON", _open_python)
    Device.register("GPU", _open_gpu)
    Device.register("CUDA", _open_cuda, _open_cuda)
    Device.register("WASM", _open_wasm)
    Device.register("WEBGPU", _open_webgpu)
    Device.register_storage("DISK", _open_disk)
    Device.register_storage("NPY", _open_numpy)


register_devices()
