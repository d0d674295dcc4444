"""Memory on devices, and the devices themselves: what they can do, how they render, compile and run."""

from tinyexplore.device.allocator import Allocator, HostAllocator, Memory
from tinyexplore.device.buffer import Buffer, BufferKey
from tinyexplore.device.registry import (
    CompiledProgram,
    Device,
    DeviceInterface,
    DeviceUnavailable,
    Storage,
    UnknownDevice,
)

__all__ = [
    "Allocator",
    "Buffer",
    "BufferKey",
    "CompiledProgram",
    "Device",
    "DeviceInterface",
    "DeviceUnavailable",
    "HostAllocator",
    "Memory",
    "Storage",
    "UnknownDevice",
]
