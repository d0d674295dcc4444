"""Devices are made ready when values are realised there: the first kernel finds all that no kernel goes without."""

from __future__ import annotations

from tinyexplore.device import Device
from tinyexplore.engine.lowered import engine_digest, is_as_written
from tinyexplore.engine.practice import practise
from tinyexplore.runtime.pool import is_pool_being_compiled, wait_for_pool_ahead
from tinyexplore.util import config

_ready: set[str] = set()


def make_ready(device: str) -> None:
    """Opens `device`, once, unless it only stores: its compiler is loaded, its threads' code is there, and what says
    whether a lowering kept on disk still counts is read. Where the threads' code is being compiled, because the disk
    does not have it, lowering is practised meanwhile. DeviceUnavailable where it cannot open."""
    if device in _ready:
        return
    if not Device.is_storage(device):
        interface = Device[device]
        keeps = config().CACHELEVEL >= 1 and interface.renderer.language != "python"
        if keeps:
            is_as_written()
        if is_pool_being_compiled():
            practise(device)
        if keeps:
            engine_digest()
        wait_for_pool_ahead()
    _ready.add(device)


__all__ = ["make_ready"]
