"""The roof of each kernel of a trace: the ceilings of the machine that apply to the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings
from tinyexplore.explore.tracefile.model import Ceiling, KernelInfo, Roof
from tinyexplore.explore.tracefile.trace import Trace

MAX_REPEATED_PROBES = 40  # most probes for one trace, of some milliseconds each
MIN_EXCESS = 1.1  # a kernel this much faster than its roof shows that the probe was disturbed, so the probe is repeated

Improve = Callable[[Ceilings, list[Ceiling]], Ceilings]


def with_ceilings(trace: Trace, ceilings: Ceilings, improve: Improve | None = None) -> Trace:
    """Returns `trace` with `ceilings` and a roof for each kernel.

    improve: measures a ceiling again, at the working set of a kernel that exceeds it by more than 10 %.
    """
    if improve is not None and (beaten_rows := exceeded_ceilings(trace, ceilings)):
        ceilings = improve(ceilings, beaten_rows)
    roofs = (roof_of(kernel, ceilings) for kernel in trace.kernels)
    return replace(trace, ceilings=ceilings.rows, roofs=tuple(roof for roof in roofs if roof is not None))


def roof_of(kernel: KernelInfo, ceilings: Ceilings) -> Roof | None:
    """Returns the fastest arithmetic among the kernel's types, and the bandwidth for its working set and writes."""
    if not kernel.bytes_moved:
        return None
    peaks = [peak for operation in kernel.arithmetic or ("float32",) if (peak := ceilings.peak(operation))]
    peak = max(peaks, key=lambda row: row.rate, default=None)
    memory = ceilings.bandwidth(kernel.bytes_moved, kernel.bytes_written / kernel.bytes_moved)
    if peak is None and memory is None:
        return None
    return Roof(
        kernel=kernel.id,
        gflops=peak.rate if peak else 0.0,
        gb_per_s=memory.rate if memory else 0.0,
        arithmetic=peak.name if peak else "",
        memory=memory.name if memory else "",
        spread=max((row.spread for row in (peak, memory) if row is not None), default=0.0),
    )


def exceeded_ceilings(trace: Trace, ceilings: Ceilings) -> list[Ceiling]:
    """Returns the ceilings that a sampled kernel exceeds, to be measured again."""
    medians = {run.kernel: run.median_us for run in trace.runs if run.warm and run.median_us}
    rows_by_key: dict[tuple[str, str, int, int], Ceiling] = {}
    for kernel in trace.kernels:
        roof, median_us = roof_of(kernel, ceilings), medians.get(kernel.id)
        if roof is None or median_us is None:
            continue
        if roof.gflops and kernel.flops / median_us / 1e3 > MIN_EXCESS * roof.gflops:
            _add_rows(
                rows_by_key, (row for row in ceilings.rows if row.kind == "arithmetic" and row.name == roof.arithmetic)
            )
        if roof.gb_per_s and kernel.bytes_moved / median_us / 1e3 > MIN_EXCESS * roof.gb_per_s:
            rows = [row for row in ceilings.rows if row.kind == "memory"]
            most_threads = max(row.threads for row in rows)
            accesses = dict.fromkeys(row.what for row in rows)
            candidates = (
                replace(rows[0], what=access_kind, threads=most_threads, holds=kernel.bytes_moved)
                for access_kind in accesses
            )
            _add_rows(rows_by_key, candidates)
    return list(rows_by_key.values())[:MAX_REPEATED_PROBES]


def _add_rows(rows_by_key: dict[tuple[str, str, int, int], Ceiling], rows: Iterable[Ceiling]) -> None:
    for row in rows:
        rows_by_key[row.kind, row.what, row.threads, row.holds] = row


__all__ = ["MIN_EXCESS", "exceeded_ceilings", "roof_of", "with_ceilings"]
