"""The file of `python -m bench.gpu` as tables."""

from __future__ import annotations

from typing import Any


def markdown(run: dict[str, Any]) -> str:
    """Return all parts of a run as Markdown."""
    parts = run["parts"]
    about = {row["name"]: row["is"] for row in parts.get("machine", {}).get("rows", [])}
    lines = [f"{run['date']}, {about.get('gpu', 'no GPU')}" + (", by the stand-in" if run["stand_in"] else ""), ""]
    lines += [f"- {name}: {value}" for name, value in about.items()]
    for name, part in parts.items():
        failed = [row for row in part["rows"] if row.get("wrong")]
        lines += ["", f"**{name}**: {len(part['rows'])} rows, {len(failed)} wrong; {part['ended']}.", ""]
        lines += TABLES[name](part["rows"]) if name in TABLES else []
        lines += [f"- {row['name']}: {row['wrong']}" for row in failed]
        if part["ended"] != "whole":
            lines += ["```", *part["log"].splitlines()[-12:], "```"]
    return "\n".join(lines)


def speed(rows: list[dict[str, Any]]) -> list[str]:
    """Return lines with the medians of both engines, and the rate of tinyexplore."""
    lines = [
        "| program | ours, µs | PyTorch, µs | ratio | quartiles | rate | kernels |",
        "|---|---:|---:|---:|---|---:|---:|",
    ]
    for row in rows:
        if "us" not in row:
            continue
        theirs, low, high = row.get("theirs_us"), row["low_us"], row["high_us"]
        beside = f"{theirs:,.1f} | {row['us'] / theirs:.2f}" if theirs else "– | –"
        spread = f"{low:,.1f} to {high:,.1f}"
        small = ", small: " + ", ".join("×".join(map(str, shape)) for shape in row["inputs"]) if "inputs" in row else ""
        lines.append(
            f"| {row['name']}{small} | {row['us']:,.1f} | {beside} | {spread} | {rate(row)} | {row['kernels']} |"
        )
    return lines


def rate(row: dict[str, Any]) -> str:
    """Return the operations or the bytes per second, as text."""
    if row.get("flops"):
        return f"{row['flops'] / row['us'] / 1e6:,.2f} TFLOP/s"
    return f"{row['moved'] / row['us'] / 1e3:,.0f} GB/s" if row.get("moved") else ""


def graphs(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each row that has the time of a replay."""
    return [f"- {row['name']}: {row['us']:,.1f} µs" for row in rows if "us" in row]


def count_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each row: how many programs had each result."""
    lines = []
    for row in rows:
        if "counts" in row:
            lines.append(f"- {row['name']}: " + ", ".join(f"{count} {kind}" for kind, count in row["counts"].items()))
    return lines


TABLES = {"speed": speed, "graphs": graphs, "backends": count_lines, "fuzz": count_lines}

__all__ = ["markdown"]
