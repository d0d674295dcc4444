"""Tensor cores as a page without script: one core at a time, colored by lane or by register.

Pointing at an element highlights all elements of its lane, and lists them as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tinyexplore.explore.analysis.tensor_cores.elements import FragmentElement, elements, formulas
from tinyexplore.explore.analysis.tensor_cores.picture import hue_of, lanes_text
from tinyexplore.target import TensorCore

_STYLE = """
:root { color-scheme: light dark; --bg: #fff; --ink: #1b2330; --ink2: #5b6675; --line: #dfe3e8; --soft: #f7f8fa;
  --brand: #0b63ce; --tint: 32%; }
@media (prefers-color-scheme: dark) { :root { --bg: #14181f; --ink: #e8edf3; --ink2: #a9b4c2; --line: #303a47;
  --soft: #1a2029; --brand: #6db1ff; --tint: 45%; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem 1.2rem; background: var(--bg); color: var(--ink);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0 0 .6rem; }
code, .m { font-family: 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
code { font-size: 12px; overflow-wrap: anywhere; }
p { margin: 0 0 .5rem; max-width: 62rem; }
.quiet { color: var(--ink2); }
fieldset { border: 0; margin: 0 0 .6rem; padding: 0; display: flex; flex-wrap: wrap; gap: .35rem; align-items: center; }
legend { float: left; padding: 0 .5rem 0 0; color: var(--ink2); }
label { border: 1px solid var(--line); border-radius: 999px; padding: .1rem .7rem; cursor: pointer;
  background: var(--soft); font-size: 13px; }
input { position: absolute; opacity: 0; pointer-events: none; }
label:has(:checked) { border-color: var(--brand); box-shadow: inset 0 0 0 1px var(--brand); }
label:has(:focus-visible) { outline: 2px solid var(--brand); outline-offset: 2px; }
.core { display: none; }
.fig { display: grid; grid-template-columns: auto auto; gap: .9rem 1.4rem; justify-content: start; overflow-x: auto;
  padding: .2rem; }
.key { align-self: end; justify-self: end; }
.said { position: sticky; top: 0; overflow: auto; margin: .2rem 0 .8rem; padding: .5rem .8rem;
  border: 1px solid var(--line); border-radius: 6px; background: var(--soft); max-width: 62rem; }
.said div { display: none; }
.said b { font-weight: 600; }
.m { border-collapse: separate; border-spacing: 2px; font-size: 11px; line-height: 1.15;
  font-variant-numeric: tabular-nums; }
.m caption { text-align: left; font: 600 13px/1.6 system-ui, sans-serif; }
.m th { font-weight: 400; color: var(--ink2); min-width: 1.4em; padding: 0 .3em 0 0; text-align: right; }
.m thead th { text-align: center; padding: 0; }
.m td { text-align: center; border-radius: 3px; padding: 2px 3px; min-width: 28px; cursor: default;
  white-space: nowrap; }
.small td { min-width: 21px; padding: 2px 1px; } .small th { padding: 0 .2em 0 0; }
.m i { display: block; font-style: normal; opacity: .82; }
"""
_ELEMENTS_PER_LINE = 11  # elements per line of text
_CELLS = 16  # most rows or columns whose cells show the register


def cores_html(title: str, cores: Sequence[TensorCore]) -> str:
    """Returns the page of these cores."""
    title = escape(title)
    picks = "".join(
        f'<label><input type="radio" name="core" id="c{number}"{" checked" if number == 0 else ""}>'
        f"{escape(core.name)}</label>"
        for number, core in enumerate(cores)
    )
    body = [f"<h1>{title}</h1>"]
    lane, register = cores[0].holder if cores else ("lane", "register")
    if not cores:
        body.append('<p class="quiet">None.</p>')
    else:
        body.append(f"<fieldset><legend>core</legend>{picks}</fieldset>")
        body.append(
            '<fieldset><legend>color by</legend><label><input type="radio" name="by" id="by-lane" checked>'
            f'{lane}</label><label><input type="radio" name="by" id="by-register">{register}</label></fieldset>'
        )
    body += [_core_html(core, number) for number, core in enumerate(cores)]
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}{_write_style_rules(cores)}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _write_style_rules(cores: Sequence[TensorCore]) -> str:
    """Returns the style rules of the page: visibility by choice, colors, and highlights under the pointer."""
    lanes = max((core.lanes for core in cores), default=0)
    rules = []
    for number, core in enumerate(cores):
        rules.append(f"main:has(#c{number}:checked) .core{number}{{display:block}}")
        for matrix, layout in core.layouts.items():
            for register in range(layout.registers):
                rules.append(
                    f"main:has(#by-register:checked) .core{number} .{matrix} .r{register}"
                    f"{{background:hsl({hue_of(register, layout.registers)} 75% 50%/var(--tint))}}"
                )
        for lane in reversed(range(core.lanes)):  # if several lanes hold an element, the first gives the color
            rules.append(
                f"main:has(#by-lane:checked) .core{number} .l{lane}"
                f"{{background:hsl({hue_of(lane, core.lanes)} 75% 50%/var(--tint))}}"
            )
    for lane in range(lanes):
        rules.append(
            f"main:has(td.l{lane}:hover) td.l{lane}"
            "{outline:2px solid var(--brand);outline-offset:-1px;font-weight:700}"
            f".core:has(td.l{lane}:hover) .say{lane}{{display:block}}"
        )
    rules.append(".core:has(td:hover) .idle{display:none}.said .idle{display:block}")
    rules.append(".core:has(td:hover) .said .idle{display:none}")
    return "\n".join(rules)


def _core_html(core: TensorCore, number: int) -> str:
    """Writes the section of a tensor core: its facts, its layout formulas and its three matrices."""
    fragments = elements(core)
    m, n, k = core.dims
    shared = core.a.copies(core.lanes) > 1
    lane, register = core.holder
    holder = "The CPU, whose tile registers hold the matrices," if core.tiles else f"A warp of {core.lanes} lanes"
    facts = (
        f"<b>{m} × {n} × {k}</b>: A is {m} × {k}, B {k} × {n}, both of {core.factor.name}"
        f"{f' of which {core.mantissa} bits of the fraction count' if core.mantissa else ''}; "
        f"C, {m} × {n}, of {core.accumulator.name}. {holder} adds A · B to C in one instruction."
        f"{' Both halves of the warp hold all of A and of B.' if shared else ''}"
    )
    maps = "".join(f"<br><code>{escape(line)}</code>" for line in formulas(core))
    says = "".join(_lane_text(core, fragments, lane) for lane in range(core.lanes))
    also = f" (of A and B also lane + {core.lanes // 2})" if shared else ""
    key = f"{lane}{also}" + ("" if max(core.dims) > _CELLS else f"<br>{register}")
    lines = 1 + sum(-(-layout.registers // _ELEMENTS_PER_LINE) for layout in core.layouts.values())
    return (
        f'<section class="core core{number}"><p>{facts}</p>'
        f"<p><code>{escape(core.call)}</code></p>"
        f'<p class="quiet">The element in each {register} of a {lane}:{maps}</p>'
        f'<div class="said" style="height:{21 * lines + 20}px" aria-live="polite">'
        '<div class="idle quiet">Point at an element to see all that its '
        f"{lane} holds. Source of the map: {escape(core.source)}.</div>{says}</div>"
        f'<div class="fig"><div class="key quiet">in each cell:<br>{key}</div>'
        + "".join(_write_matrix(core, fragments, matrix) for matrix in ("B", "A", "C"))
        + "</div></section>"
    )


def _lane_text(core: TensorCore, fragments: tuple[FragmentElement, ...], lane: int) -> str:
    """Returns the elements that a lane holds, as text."""
    parts = []
    for matrix in "ABC":
        lane_elements = sorted(
            (fragment for fragment in fragments if fragment.matrix == matrix and lane in fragment.lanes),
            key=lambda fragment: fragment.register,
        )
        positions = ", ".join(f"[{fragment.row}, {fragment.column}]" for fragment in lane_elements)
        parts.append(f"<br><b>{matrix}</b> <code>{positions}</code>")
    holder, register = core.holder
    return f'<div class="say{lane}"><b>{holder} {lane}</b>, {register} by {register}:{"".join(parts)}</div>'


def _write_matrix(core: TensorCore, fragments: tuple[FragmentElement, ...], matrix: str) -> str:
    """Writes a matrix as a table with the lane and register of each element."""
    rows, columns = core.layouts[matrix].shape
    two_lines = max(core.dims) <= _CELLS
    cells = {(fragment.row, fragment.column): fragment for fragment in fragments if fragment.matrix == matrix}
    head = "".join(f"<th>{column}</th>" for column in range(columns))
    body = []
    for row in range(rows):
        cells_html = "".join(_write_cell(core, cells[row, column], two_lines=two_lines) for column in range(columns))
        body.append(f"<tr><th>{row}</th>{cells_html}</tr>")
    caption = f"<caption>{matrix}</caption>"
    size = "" if two_lines else " small"
    return f'<table class="m {matrix}{size}">{caption}<thead><tr><th></th>{head}</tr></thead>{"".join(body)}</table>'


def _write_cell(core: TensorCore, element: FragmentElement, *, two_lines: bool) -> str:
    lanes = " ".join(f"l{lane}" for lane in element.lanes)
    lane, register = core.holder
    position = f"{element.matrix}[{element.row}, {element.column}]"
    title = f"{position} · {lane} {lanes_text(element)} · {register} {element.register}"
    register = f"<i>r{element.register}</i>" if two_lines else ""
    return f'<td class="{lanes} r{element.register}" title="{title}">{element.lanes[0]}{register}</td>'


__all__ = ["cores_html"]
