"""Memory on devices, and the devices themselves: what they can do, how they render, compile and run."""

from tinyexplore.device.allocator import Allocator, HostAllocator, Memory
from tinyexplore.device.buffer import Buffer, BufferKey
from tinyexplore.device.registry import (
    CompiledProgram,
    Device,
    DeviceGraph,
    DeviceInterface,
    DeviceUnavailable,
    Graphs,
    Storage,
    UnknownDevice,
)
from tinyexplore.util.on_import import imported

__all__ = [
    "Allocator",
    "Buffer",
    "BufferKey",
    "CompiledProgram",
    "Device",
    "DeviceGraph",
    "DeviceInterface",
    "DeviceUnavailable",
    "Graphs",
    "HostAllocator",
    "Memory",
    "Storage",
    "UnknownDevice",
]

imported(__name__)
