"""The bytes that a program loads."""

from __future__ import annotations

from tinyexplore.renderer import ProgramSpec
from tinyexplore.uop import Ops


def loaded_bytes(program: ProgramSpec) -> int:
    """What the load instructions of one run ask for, as the program is written; a loop counts with its largest end."""
    total, times, opened = 0, 1, []
    for uop in program.uops:
        if uop.op is Ops.RANGE:
            opened.append(times)
            times *= uop.size
        elif uop.op is Ops.ENDRANGE:
            times = opened.pop()
        elif uop.op is Ops.LOAD:
            total += times * uop.dtype.itemsize * uop.dtype.count
    return total


__all__ = ["loaded_bytes"]
