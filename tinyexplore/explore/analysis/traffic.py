"""The bytes that a program loads, and the cache lines that loops access."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from tinyexplore.renderer import ProgramSpec
from tinyexplore.uop import Ops


def loaded_bytes(program: ProgramSpec) -> int:
    """Returns the bytes that the load instructions of one run read. A symbolic loop counts with its largest size."""
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


def count_accessed_bytes(steps: Sequence[tuple[int | None, int]], item_bytes: int, line_bytes: int) -> int:
    """Returns the bytes of the cache lines that loops access together.

    Neighboring elements share lines. The loops are taken by increasing stride. As long as each continues where the
    previous ones end, they form one contiguous piece of memory; a larger stride has one piece per iteration. A loop of
    unknown stride accesses a line per iteration.

    steps: (stride, size) of each loop, in elements; None for an unknown stride.
    """
    run, runs, distance = 1, 1, None
    for stride, size in sorted(((abs(step), size) for step, size in steps if step), key=lambda step: step[0]):
        if stride <= run and runs == 1:
            run += stride * (size - 1)
        else:
            distance = stride if distance is None else distance
            runs *= size
    for unknown in [size for stride, size in steps if stride is None]:
        runs *= unknown
    each = whole_lines(run * item_bytes, line_bytes)
    if distance is not None:
        each = min(each, max(run, distance) * item_bytes)
    return whole_lines(runs * each, line_bytes)


def whole_lines(nbytes: int, line_bytes: int) -> int:
    """Returns `nbytes`, rounded up to whole cache lines."""
    return ceil(nbytes / line_bytes) * line_bytes


__all__ = ["loaded_bytes", "count_accessed_bytes", "whole_lines"]
