"""Tables of a trace as plain rows: for data frames, JSON, CSV and the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.tracefile.encodable_text import for_terminal
from tinyexplore.explore.tracefile.model import KernelInfo, Run, TraceTables
from tinyexplore.explore.tracefile.perfetto import MissingPackage
from tinyexplore.explore.tracefile.spans import span_text

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]


def rows_of(trace: TraceTables, table: str = "kernels") -> list[Row]:
    """Returns the rows of one table, by column name.

    table: "kernels" (with their times), "stages", "passes" (firings by kernel and pass), "firings", "nodes", "buffers",
        "lines" (of the listings).
    """
    table_rows = TABLES.get(table)
    if table_rows is None:
        raise ValueError(f"no table {table!r}; supported: {', '.join(TABLES)}")
    return table_rows(trace)


def to_dataframe(trace: TraceTables, table: str = "kernels") -> pandas.DataFrame:
    """Returns a table of `rows_of` as a pandas DataFrame."""
    try:
        import pandas
    except ImportError as error:
        text = f"a data frame needs pandas, which does not import ({error}); explore.rows_of(trace, table) gives plain "
        raise MissingPackage(text + "rows without it: pip install 'tinyexplore[data]'") from error
    return pandas.DataFrame(rows_of(trace, table))


def table_text(rows: list[Row], width: int = 48) -> str:
    """Returns rows in aligned columns, for a terminal; numbers are aligned right."""
    if not rows:
        return "no rows"
    columns = list(rows[0])
    cells = [[_format_cell(row[column], width) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    is_number = [all(isinstance(row[column], (int, float, type(None))) for row in rows) for column in columns]
    lines = [columns, *cells]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in lines
    )


def _format_cell(value: Any, width: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = for_terminal(text).replace("\n", "\\n").replace("\t", "\\t")  # one line per row
    return text if len(text) <= width else f"{text[: width - 1]}…"


# *** the tables ***


def _list_kernels(trace: TraceTables) -> list[Row]:
    runs = {run.kernel: run for run in trace.runs}
    return [_make_kernel_row(kernel, runs.get(kernel.id)) for kernel in trace.kernels]


def _make_kernel_row(kernel: KernelInfo, run: Run | None) -> Row:
    median_us = run.median_us if run is not None else None
    return {
        "kernel": kernel.id,
        "name": kernel.name,
        "device": kernel.device,
        "calls": kernel.calls,
        "opts": kernel.opts,
        "median_us": median_us,
        "low_us": run.low_us if run is not None else None,
        "high_us": run.high_us if run is not None else None,
        "samples": len(run.times_us) if run is not None else 0,
        "warm": run.warm if run is not None else None,
        "flops": kernel.flops,
        "bytes_moved": kernel.bytes_moved,
        "gflop_per_s": kernel.flops / median_us / 1e3 if median_us else None,
        "gb_per_s": kernel.bytes_moved / median_us / 1e3 if median_us else None,
        "compile_us": kernel.compile_us,
        "code_bytes": kernel.code_bytes,
        "not_run": kernel.not_run,
        "cached": kernel.cached,
        "same_as": kernel.same_as,
    }


def _list_stages(trace: TraceTables) -> list[Row]:
    return [
        {
            "stage": stage.id,
            "name": stage.name,
            "parent": stage.parent,
            "kernel": stage.kernel,
            "thread": stage.thread,
            "started_us": stage.started_us,
            "elapsed_us": stage.elapsed_us,
            "firings": sum(step.rule is not None for step in stage.steps),
        }
        for stage in trace.stages
    ]


def _list_firings(trace: TraceTables) -> list[Row]:
    return [
        {
            "stage": stage.id,
            "pass": stage.name,
            "kernel": stage.kernel,
            "step": number,
            "rule": trace.rules[step.rule].name,
            "before": step.before,
            "after": step.after,
            "at_us": step.at_us,
        }
        for stage in trace.stages
        for number, step in enumerate(stage.steps)
        if step.rule is not None
    ]


def _list_passes(trace: TraceTables) -> list[Row]:
    """Counts how often each rule fired, per pass and kernel."""
    counts: dict[tuple[int | None, str, str], int] = {}
    for row in _list_firings(trace):
        key = (row["kernel"], row["pass"], row["rule"])
        counts[key] = counts.get(key, 0) + 1
    return [
        {"kernel": kernel, "pass": name, "rule": rule, "firings": count}
        for (kernel, name, rule), count in counts.items()
    ]


def _list_nodes(trace: TraceTables) -> list[Row]:
    fields = ("op", "kind", "name", "dtype", "shape", "arg", "label", "detail", "group", "calls", "src", "digest")
    rows = []
    for node in trace.nodes:
        frame = None if node.user is None else trace.frames[node.user]
        line, part = (None, "") if frame is None else (frame.line, span_text(trace, frame))
        rows.append({"node": node.id, **{field: getattr(node, field) for field in fields}, "line": line, "part": part})
    return rows


def _list_buffers(trace: TraceTables) -> list[Row]:
    return [
        {
            "buffer": buffer.id,
            "name": buffer.name,
            "device": buffer.device,
            "dtype": buffer.dtype,
            "size": buffer.size,
            "bytes": buffer.bytes,
            "maker": buffer.maker,
            "allocated_us": buffer.allocated_us,
            "freed_us": buffer.freed_us,
        }
        for buffer in trace.buffers
    ]


def _list_lines(trace: TraceTables) -> list[Row]:
    return [
        {"kernel": program.kernel, "language": program.language, "line": number, "text": line.text, "nodes": line.nodes}
        for program in trace.programs
        for number, line in enumerate(program.lines)
    ]


TABLES: dict[str, Callable[[TraceTables], list[Row]]] = {
    "kernels": _list_kernels,
    "stages": _list_stages,
    "passes": _list_passes,
    "firings": _list_firings,
    "nodes": _list_nodes,
    "buffers": _list_buffers,
    "lines": _list_lines,
}
