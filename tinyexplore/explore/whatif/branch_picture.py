"""Draws the branches of a trace as a static picture."""

from __future__ import annotations

from tinyexplore.explore.tracefile.fusions import name_of as name_of_node
from tinyexplore.explore.tracefile.model import Branch, KernelVariant, ScheduleVariant
from tinyexplore.explore.tracefile.pictures.table_pictures import Bar, Cell, Column, sheet_svg
from tinyexplore.explore.tracefile.texts import duration_text, ratio_text, spread_text
from tinyexplore.explore.tracefile.trace import Trace

EDITED_NAMES = {"c": "C", "llvm": "LLVM IR", "uops": "UOps"}


def branches_svg(trace: Trace) -> str:
    """Returns the branches of each kernel as a tree, with their times as bars."""
    times = [kernel.median_us for branch in trace.branches for kernel in branch.kernels if kernel.median_us is not None]
    slowest = max(times, default=1.0) or 1.0
    children: dict[int | None, list[Branch]] = {}
    for branch in trace.branches:
        children.setdefault(branch.parent, []).append(branch)
    rows: list[tuple[Cell, ...]] = []

    def walk(parent: int | None, depth: int) -> None:
        for branch in children.get(parent, []):
            if branch.kernel is None:
                continue
            rows.append(_make_row(trace, branch, depth, slowest))
            walk(branch.id, depth + 1)

    walk(None, 0)
    columns = (
        Column("kernel", mono=True),
        Column("tried", mono=True),
        Column(""),
        Column("median", right=True),
        Column(""),
    )
    return sheet_svg(
        f"Tried on {trace.title}".strip(), columns, rows, "" if rows else "no change was tried on a kernel"
    )


def schedules_svg(trace: Trace) -> str:
    """Returns the cuts and joins as a tree, with kernels, bytes, peak memory and times."""
    branches = [branch for branch in trace.branches if schedule_of(branch) is not None]
    times = [
        branch.schedule.median_us for branch in branches if branch.schedule and branch.schedule.median_us is not None
    ]
    slowest = max(times, default=1.0) or 1.0
    rows: list[tuple[Cell, ...]] = []

    def walk(parent: int | None, depth: int) -> None:
        for branch in branches:
            if branch.parent == parent:
                rows.append(_schedule_row(trace, branch, depth, slowest))
                walk(branch.id, depth + 1)

    walk(None, 0)
    columns = (
        Column("tried", mono=True),
        Column("kernels", right=True),
        Column("bytes moved", right=True),
        Column("peak", right=True),
        Column(""),
        Column("median", right=True),
        Column(""),
    )
    return sheet_svg(
        f"Cut and joined in {trace.title}".strip(), columns, rows, "" if rows else "no edge was cut or joined"
    )


def schedule_of(branch: Branch) -> int | None:
    """Returns the schedule that a branch is about, or None."""
    number = dict(branch.command.arguments).get("schedule")
    return number if isinstance(number, int) else None


def _schedule_row(trace: Trace, branch: Branch, depth: int, slowest: float) -> tuple[Cell, ...]:
    """Returns the row of a schedule in the table of its branches."""
    arguments = dict(branch.command.arguments)
    src = arguments.get("src")
    name = f"{branch.command.kind.lower()} {name_of_node(trace.nodes[src])}" if isinstance(src, int) else "as captured"
    label, variant = f"{'  ' * depth}{name}", branch.schedule
    if variant is None:
        return (label, "", "", "", "", "failed", branch.reason)
    median_us = variant.median_us
    time = "failed" if branch.status == "failed" else "not run" if median_us is None else duration_text(median_us)
    bar: Cell = "" if median_us is None else Bar(0.0, median_us / slowest)
    sizes = (str(len(variant.kernels)), f"{variant.bytes_moved:,}", f"{variant.peak_bytes:,}")
    ratio = comparison_text(variant) if variant.cut or variant.join else ""
    return (label, *sizes, bar, time, branch.reason or ratio)


def _make_row(trace: Trace, branch: Branch, depth: int, slowest: float) -> tuple[Cell, ...]:
    kernel = trace.kernels[branch.kernel].name if branch.kernel is not None and depth == 0 else ""
    median_us = branch.kernels[0].median_us if branch.kernels else None
    time = "failed" if branch.status == "failed" else "not timed" if median_us is None else duration_text(median_us)
    bar: Cell = "" if median_us is None else Bar(0.0, median_us / slowest)
    ratio = comparison_text(branch.kernels[0]) if branch.kernels and branch.status == "done" else ""
    return (kernel, f"{'  ' * depth}{name_of(branch)}", bar, time, branch.reason or ratio)


def comparison_text(variant: KernelVariant | ScheduleVariant) -> str:
    """Compares the times of a variant with its base, which was sampled alternately, and appends the base's times."""
    ratio = ratio_text(variant.median_us, variant.base_median_us, variant.verdict, "the base")
    return f"{ratio}: {spread_text(variant.base_median_us, variant.base_low_us, variant.base_high_us)}" if ratio else ""


def name_of(branch: Branch) -> str:
    """Returns the name of a branch: its opt, its edited stage, its label, or its command."""
    arguments = dict(branch.command.arguments)
    if branch.command.kind == "ApplyOpt":
        return str(arguments["opt"])
    if branch.edited is not None:
        return f"edited {EDITED_NAMES.get(branch.edited.stage, branch.edited.stage)}"
    if branch.labels:
        return " · ".join(branch.labels)
    if "rule" in arguments:
        return f"{branch.command.kind} {arguments['rule']}"
    opts = branch.kernels[0].opts if branch.kernels else ()
    return opts[-1] if opts else branch.command.kind


__all__ = ["branches_svg", "name_of", "schedules_svg"]
