"""Requests permission to use the tile registers of a CPU (AMX): Linux saves their 8 KiB only for processes that
request it."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from tinyexplore.target import machine

ARCH_PRCTL = 158  # the system call arch_prctl on x86-64
ASK = 0x1023  # ARCH_REQ_XCOMP_PERM
TILE_DATA = 18  # the number of the tile data in the CPU's state components


@cache
def request_permission() -> bool:
    """Asks Linux once for permission to use AMX tile data in this process, existing threads included.

    False if the system refuses, or is not Linux: then this process uses no tiles."""
    if sys.platform != "linux" or machine() != "x86_64":
        return False
    try:
        return bool(ctypes.CDLL(None).syscall(ARCH_PRCTL, ASK, TILE_DATA) == 0)
    except (OSError, TypeError, AttributeError):  # the process's own libraries cannot be opened, or lack the function
        return False


def usable_features(features: str) -> str:
    """Returns LLVM's list of this CPU's features ("+avx2,+amx-tile,…"), without the tiles if they may not be used."""
    if "+amx-tile" not in features.split(",") or request_permission():
        return features
    return ",".join(f"-{name[1:]}" if name.startswith("+amx-") else name for name in features.split(","))


__all__ = ["request_permission", "usable_features"]
