"""The memory that all devices on this CPU share: each can read the buffers of the others."""

from tinyexplore.device import HostAllocator
from tinyexplore.util.locks import new_in_children

HOST_ALLOCATOR = HostAllocator()
new_in_children(HOST_ALLOCATOR, "_lock")
