"""The memory that all devices on this CPU share: a buffer of one can be read by any other."""

from tinyexplore.device import HostAllocator
from tinyexplore.util.locks import new_in_children

HOST_ALLOCATOR = HostAllocator()
new_in_children(HOST_ALLOCATOR, "_lock")
