"""The verdict on a GPU kernel without that GPU: coalescing, bank conflicts, occupancy, arithmetic intensity."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.verdict.suggestions import Suggestion
from tinyexplore.explore.analysis.verdict.verdict import Evidence, SpeedVerdict
from tinyexplore.explore.tracefile.texts import figures_text

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.models.gpu import GPUView
    from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
    from tinyexplore.explore.analysis.models.warp_accesses import WarpAccess
    from tinyexplore.explore.tracefile.model import KernelInfo

MIN_USED_SHARE = 0.5  # share of the transferred bytes that are used; below it, an access is not coalesced
CONFLICT_DEGREE = 4  # degree of a bank conflict from which on shared memory is the bottleneck
RIDGE = 16.0  # operations per byte above which arithmetic is the bottleneck: 13 on an A100, 20 on an H100
SMALL_ITEMS = 4096  # work-items that fill no GPU
SMALL_BYTES = 1 << 18
LOW_OCCUPANCY = 0.25  # occupancy; a lower one does not hide the latency of memory


def gpu_verdict(view: KernelAnalyses, number: int) -> SpeedVerdict:
    """Returns the verdict on a GPU kernel by the model alone, without a share of the limit. Its text states this."""
    return model_verdict(view.trace.kernels[number], view.gpu(number))


def model_verdict(info: KernelInfo, gpu: GPUView) -> SpeedVerdict:
    """Returns the verdict from the accesses of a warp, the occupancy, and the arithmetic intensity."""
    memory = [access for access in gpu.accesses if access.efficiency is not None]
    worst = min(memory, key=lambda access: access.efficiency or 0.0, default=None)
    conflict = max(
        (access for access in gpu.accesses if access.space == "shared"),
        key=lambda access: access.degree,
        default=None,
    )
    intensity = info.flops / info.bytes_moved if info.bytes_moved else 0.0
    items = prod(gpu.grid) * gpu.items
    kind, text = _classify(info, worst, conflict, intensity, items)
    limits = _occupancy_text(gpu)
    evidence = [Evidence("arithmetic intensity", f"{figures_text(intensity)} FLOP/B", "roofline")]
    if worst is not None:
        evidence.append(
            Evidence("used / moved bytes", f"{100 * (worst.efficiency or 0):.0f} % ({worst.buffer})", "gpu")
        )
    if conflict is not None:
        ways = f"{conflict.degree}-way" if conflict.degree > 1 else "none"
        evidence.append(Evidence("bank conflicts", ways, "gpu"))
    if gpu.occupancy is not None:
        limit = f"{100 * gpu.occupancy.share:.0f} % of the warps, limited by {gpu.occupancy.limit}"
        evidence.append(Evidence("occupancy", limit, "gpu"))
    return SpeedVerdict(
        kind=kind,
        level="memory" if kind == "bandwidth" else "",
        share_of_limit=None,
        text=f"By the model, without a GPU: {text}{limits}",
        evidence=tuple(evidence),
        suggestions=tuple(_make_suggestions(worst, conflict, gpu)),
        kernel=info.id,
        name=info.name,
        likely=kind,
        reason="The first of these decides: amount of work, coalescing, bank conflicts, operations per byte.",
        missing=("times: no kernel ran on this GPU",),
    )


def _classify(
    info: KernelInfo, worst: WarpAccess | None, conflict: WarpAccess | None, intensity: float, items: int
) -> tuple[str, str]:
    """Returns the kind of the bottleneck of a GPU kernel, and its sentence."""
    if items <= SMALL_ITEMS and info.bytes_moved <= SMALL_BYTES and info.flops <= 64 * SMALL_BYTES:
        return (
            "launch overhead",
            f"Launch overhead. {items:,} work-items do not fill a GPU, so the launch takes longer than the work.",
        )
    if worst is not None and worst.efficiency is not None and worst.efficiency < MIN_USED_SHARE:
        access = "stores to" if worst.stored else "loads of"
        used = f"and the kernel uses {100 * worst.efficiency:.0f} % of the moved bytes"
        return "strided access", f"Strided access: {access} {worst.buffer} are not coalesced, {used}."
    if conflict is not None and conflict.degree >= CONFLICT_DEGREE:
        ways = f"{conflict.degree}-way for {conflict.buffer}, because a bank serves one word at a time"
        return "strided access", f"Bank conflicts in shared memory: {ways}."
    if intensity >= RIDGE:
        return "compute", f"Compute: {figures_text(intensity)} operations per byte."
    return (
        "bandwidth",
        f"Memory bandwidth: {figures_text(intensity)} operations per byte, and the accesses are coalesced.",
    )


def _occupancy_text(gpu: GPUView) -> str:
    if gpu.occupancy is None or gpu.occupancy.share >= LOW_OCCUPANCY:
        return ""
    share_text = f"{100 * gpu.occupancy.share:.0f} % of a multiprocessor's warps"
    return f" Occupancy is low: {share_text}, limited by {gpu.occupancy.limit}."


def _make_suggestions(worst: WarpAccess | None, conflict: WarpAccess | None, gpu: GPUView) -> list[Suggestion]:
    texts = [worst.advice if worst is not None else "", conflict.advice if conflict is not None else ""]
    if gpu.occupancy is not None and gpu.occupancy.share < LOW_OCCUPANCY:
        texts.append(gpu.occupancy.advice)
    return [Suggestion(text) for text in texts if text]


__all__ = ["gpu_verdict", "model_verdict"]
