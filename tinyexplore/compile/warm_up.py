"""Opens a device before its first kernel, so that the kernel need not wait for the compiler to load."""

from __future__ import annotations

from tinyexplore.compile.program_cache import engine_digest, is_as_written
from tinyexplore.device import Device
from tinyexplore.runtime.pool import wait_for_pool_ahead
from tinyexplore.util import config

_ready: set[str] = set()


def make_ready(device: str) -> None:
    """Opens `device` once, unless it only stores. Raises DeviceUnavailable if it cannot open.

    Loads its compiler and its threads' code, and reads the data that validates lowerings on disk.
    """
    if device in _ready:
        return
    if not Device.is_storage(device):
        interface = Device[device]
        if config().CACHELEVEL >= 1 and interface.renderer.language != "python":
            is_as_written()
            engine_digest()
        wait_for_pool_ahead()
    _ready.add(device)


__all__ = ["make_ready"]
