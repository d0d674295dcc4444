"""Buffers in device memory, and the devices: their renderers, compilers, allocators and programs."""

from tinyexplore.device.allocator import Allocator, HostAllocator, Memory
from tinyexplore.device.buffer import Buffer, BufferKey
from tinyexplore.device.registry import (
    CompiledProgram,
    Device,
    DeviceGraph,
    DeviceInterface,
    DeviceUnavailable,
    GraphFactory,
    Storage,
    UnknownDevice,
)
from tinyexplore.util.import_hooks import run_waiting

__all__ = [
    "Allocator",
    "Buffer",
    "BufferKey",
    "CompiledProgram",
    "Device",
    "DeviceGraph",
    "DeviceInterface",
    "DeviceUnavailable",
    "GraphFactory",
    "HostAllocator",
    "Memory",
    "Storage",
    "UnknownDevice",
]

run_waiting(__name__)
