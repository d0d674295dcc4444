"""The memory that all devices on this CPU share: a buffer of one can be read by any other."""

from tinyexplore.device import HostAllocator

HOST_ALLOCATOR = HostAllocator()
