"""Devices are made ready when values are realised there: the first kernel finds all that no kernel goes without."""

from __future__ import annotations

from tinyexplore.compile.disk import engine_digest, is_as_written
from tinyexplore.device import Device
from tinyexplore.runtime.pool import wait_for_pool_ahead
from tinyexplore.util import config

_ready: set[str] = set()


def make_ready(device: str) -> None:
    """Opens `device`, once, unless it only stores: its compiler is loaded, its threads' code is there, and what says
    whether a lowering kept on disk still counts is read. DeviceUnavailable where it cannot open."""
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
