"""One kernel for several machines as a picture and as a page: registers, figures and assembly side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

from tinyexplore.explore.analysis.comparisons.machine_kernel import (
    FACTS,
    Machine,
    MachineKernel,
    Row,
    describe_time,
    describe_vectors,
)
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.pictures.drawing import COLORS, document, shorten, text
from tinyexplore.explore.tracefile.pictures.highlight import lines_html, style_sheet

_COLUMN, _GAP, _MARGIN = 176.0, 22.0, 22.0
_REGISTER, _STEP = 5.0, 7.0  # height of a drawn register, and distance between two
_MAX_ROWS = 32
_WIDEST_BITS = 512  # wider registers are drawn at this width

_STYLE = """
:root { color-scheme: light dark; --line: #dfe3e8; --soft: #f7f8fa; --ink2: #5b6675; --loop: #fdf3e3; --edge: #b35c00; }
@media (prefers-color-scheme: dark) { :root { --line: #303a47; --soft: #1a2029; --ink2: #a9b4c2; --loop: #2c2415;
  --edge: #f0a04b; } body { background: #14181f; color: #e8edf3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 104rem; font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
code, .code { font: 12px/1.5 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
.quiet { color: var(--ink2); }
.scroll { overflow-x: auto; }
.scroll svg { display: block; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: 600; }
.facts td, .facts th { padding: .22rem 1.4rem .22rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
.facts th:first-child { font-weight: 400; color: var(--ink2); white-space: nowrap; }
.facts td { font-variant-numeric: tabular-nums; min-width: 9rem; max-width: 17rem; overflow-wrap: anywhere; }
.side { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(19rem, 1fr); gap: .7rem; }
.listing { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; min-width: 0; }
.listing h3 { margin: 0; padding: .35rem .7rem; font-size: .86rem; background: var(--soft);
  border-bottom: 1px solid var(--line); }
.listing .lines { max-height: 34rem; overflow: auto; padding: .35rem 0; }
.listing .line { display: block; padding: 0 .7rem; white-space: pre; min-height: 1.5em; }
.listing .in { background: var(--loop); box-shadow: inset 3px 0 var(--edge); }
details { margin: .6rem 0; border: 1px solid var(--line); border-radius: 6px; padding: 0 .7rem; }
summary { padding: .4rem 0; cursor: pointer; }
"""


class KernelsByMachine(Protocol):
    """The data of the page: the kernels of a program, each for all machines."""

    @property
    def title(self) -> str: ...

    @property
    def machines(self) -> tuple[Machine, ...]: ...

    @property
    def rows(self) -> tuple[Row, ...]: ...

    @property
    def main(self) -> Row: ...


# *** the picture ***


def machines_svg(row: Row, title: str = "") -> str:
    """Returns a column for each machine: its vector registers to scale, used ones filled, and bars for instructions."""
    present = [result for result in row if result is not None]
    most_registers = max((min(result.machine.registers, _MAX_ROWS) for result in present), default=0)
    longest = max(result.instructions.total for result in present)
    calls = ", ".join(call.strip("_") for call in present[0].kernel.calls) or present[0].kernel.name
    heading = f"{title}: {calls}" if title else calls
    top, foot = 92.0, 92.0 + most_registers * _STEP + 14.0
    width = 2 * _MARGIN + len(present) * _COLUMN + (len(present) - 1) * _GAP
    parts = [text(_MARGIN, 28, shorten(heading, int(width / 8)), size=13, bold=True)]
    for number, result in enumerate(present):
        x = _MARGIN + number * (_COLUMN + _GAP)
        parts.append(text(x, 56, result.machine.name, size=12, bold=True, mono=True))
        parts.append(text(x, 73, f"{result.machine.arch} · {describe_vectors(result.machine)}", size=11, shade="ink2"))
        parts.append(_registers_svg(result, x, top))
        parts.append(_bars_svg(result, x, foot, longest))
    label = "; ".join(_result_text(result) for result in present)
    note = "vector registers, divided into floats; filled: used · bars: all instructions, dark: the busiest loop"
    height = foot + 100.0
    parts.append(text(_MARGIN, height - 14, note, size=11, shade="ink2"))
    return document(max(width, 620.0), height, heading, f"{label}.", parts)


def _result_text(result: MachineKernel) -> str:
    counted = result.instructions
    return (
        f"{result.machine.name}: {describe_vectors(result.machine)}, {len(counted.registers)} used, "
        f"{counted.total} instructions, {counted.in_loop} in the busiest loop, {describe_time(result)}"
    )


def _registers_svg(result: MachineKernel, x: float, y: float) -> str:
    """Draws the vector registers of a machine, divided into floats; used registers are filled."""
    used = set(result.instructions.registers)
    bits = min(result.machine.vector_bits, _WIDEST_BITS)
    width = _COLUMN * bits / _WIDEST_BITS
    plain, filled = COLORS["const"], COLORS["reduce"]
    parts = []
    for number in range(min(result.machine.registers, _MAX_ROWS)):
        name, color = ("reduce", filled) if number in used else ("const", plain)
        top = y + number * _STEP
        fill = color.light if number in used else color.light_fill
        look = 'style="fill:var(--reduce)"' if number in used else ""
        size = f'x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_REGISTER:.0f}" rx="1"'
        parts.append(f'<rect class="g-{name}" {look} {size} fill="{fill}" stroke="{color.light}" stroke-width="0.6"/>')
    if not parts:
        return text(x, y + 8, "one number at a time", size=11, shade="ink2")
    bottom = y + len(parts) * _STEP - (_STEP - _REGISTER)
    lanes = [x + width * lane * 32 / bits for lane in range(1, bits // 32)]
    path = "".join(f"M{top:.1f} {y:.1f}V{bottom:.1f}" for top in lanes)
    parts.append(f'<path class="lanes" d="{path}" stroke="#fff" style="stroke:var(--bg)" stroke-width="0.8"/>')
    return "".join(parts)


def _bars_svg(result: MachineKernel, x: float, y: float, longest: int) -> str:
    """Draws bars of the number of instructions: all, and those in the busiest loop."""
    counted = result.instructions
    full_width, loop = _COLUMN * counted.total / longest, _COLUMN * counted.in_loop / longest
    parts = [
        f'<rect class="g-memory" x="{x:.1f}" y="{y:.1f}" width="{full_width:.1f}" height="9" rx="2" '
        f'fill="{COLORS["memory"].light_fill}" stroke="{COLORS["memory"].light}" stroke-width="0.6"/>',
        f'<rect class="g-memory" style="fill:var(--memory)" x="{x:.1f}" y="{y:.1f}" width="{max(loop, 1.0):.1f}" '
        f'height="9" rx="2" fill="{COLORS["memory"].light}"/>',
        text(x, y + 24, f"{counted.total} instructions, {counted.in_loop} in the loop", size=11),
    ]
    used = (
        f"{len(counted.registers)} of {result.machine.registers} vector registers"
        if result.machine.registers
        else "scalars"
    )
    parts.append(text(x, y + 39, used, size=11, shade="ink2"))
    parts.append(text(x, y + 54, describe_time(result), size=11, shade="ink2"))
    return "".join(parts)


# *** the page ***


def machines_html(machines: KernelsByMachine) -> str:
    """Returns the page with the largest kernel open first, and the others folded below."""
    title = escape(machines.title or "One program")
    main = machines.main
    others = [row for row in machines.rows if row is not main]
    reasons = dict.fromkeys(
        result.kernel.not_run for row in machines.rows for result in row if result and result.kernel.not_run
    )
    body = [
        f"<h1>{title} for {len(machines.machines)} machines</h1>",
        '<p class="quiet">Compiled here for each machine. Programs that this machine can execute were timed.</p>',
        _write_section(main, machines.title),
    ]
    if others:
        body.append(f"<h2>The other kernels ({len(others)})</h2>")
        body += [f"<details><summary>{_names_html(row)}</summary>{_write_section(row, '')}</details>" for row in others]
    if reasons:
        lines = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
        body.append(f'<h2>Why some have no times</h2><ul class="quiet">{lines}</ul>')
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{title} for {len(machines.machines)} machines</title>\n"
        f"<style>{_STYLE}{style_sheet()}</style>\n</head>\n"
        "<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _names_html(row: Row) -> str:
    names = dict.fromkeys(result.kernel.name for result in row if result is not None)
    calls = next(
        (", ".join(call.strip("_") for call in result.kernel.calls) for result in row if result is not None), ""
    )
    return f"<code>{escape(' · '.join(names))}</code> {escape(calls)}"


def _write_section(row: Row, title: str) -> str:
    """Writes the section of a kernel: picture, table and assembly for each machine."""
    present = [result for result in row if result is not None]
    head = "".join(f"<th><code>{escape(result.machine.name)}</code></th>" for result in present)
    rows = [("kernel", [_write_code([result.kernel.name]) for result in present])]
    rows += [(name, [escape(describe(result)) for result in present]) for name, describe in FACTS]
    rows.append(("opts", [_write_code(result.kernel.opts) for result in present]))
    cells = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in values)}</tr>" for name, values in rows
    )
    listings = "".join(_write_listing(result) for result in present)
    return (
        f'<div class="scroll">{machines_svg(row, title)}</div>'
        f'<div class="scroll"><table class="facts"><tr><th></th>{head}</tr>{cells}</table></div>'
        "<h2>Assembly</h2>"
        '<p class="quiet">Marked: the busiest loop, the innermost one with most instructions on vectors.</p>'
        f'<div class="scroll"><div class="side">{listings}</div></div>'
    )


def _write_code(names: Sequence[str]) -> str:
    return "<br>".join(f"<code>{escape(name)}</code>" for name in names) or "none"


def _write_listing(result: MachineKernel) -> str:
    """Writes the assembly for a machine. The busiest loop is highlighted."""
    loop = result.instructions.loop or (-1, -1)
    lines = "".join(
        f'<span class="line code{" in" if loop[0] <= number <= loop[1] else ""}">{line}</span>'
        for number, line in enumerate(lines_html("asm", result.assembly))
    )
    count = len(result.assembly)
    name = escape(result.machine.name)
    return (
        f'<div class="listing"><h3><code>{name}</code> <span class="quiet">{count_text(count, "line")}</span></h3>'
        f'<div class="lines" tabindex="0" role="region" aria-label="Assembly for {name}">{lines}</div></div>'
    )


__all__ = ["machines_html", "machines_svg"]
