"""A comparison as one HTML page: a table of the kernels, then the graphs and listings of each side by side.

The page shows the first changed kernel, if it is not too large. The other kernels are stored compressed (twenty lines
in the space of one), and a short script unpacks a kernel when the reader opens it (docs/performance/pages.md).
"""

from __future__ import annotations

import difflib
import gzip
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from html import escape
from typing import Protocol

from tinyexplore.explore.analysis.comparisons.pairs import (
    CONTEXT_LINES,
    ComparisonSummary,
    KernelPair,
    ListingPair,
    describe_change,
    describe_counts,
    describe_first_difference,
)
from tinyexplore.explore.analysis.comparisons.trace_diff import StagePair, TextPair, TraceDiff
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import language_name
from tinyexplore.explore.tracefile.figures import argument_text
from tinyexplore.explore.tracefile.model import KernelInfo, Node, Stage
from tinyexplore.explore.tracefile.pictures.drawn_graph import reachable
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_within
from tinyexplore.explore.tracefile.pictures.highlight import lines_html, style_sheet
from tinyexplore.explore.tracefile.texts import LANGUAGE_NAMES
from tinyexplore.explore.tracefile.trace import Trace

_DATA = re.compile(r"\bdata(\d+)\b")
MAX_BOXES = 60  # most boxes of a graph
MIN_BOXES = 16  # fewest boxes of a graph in half the width, if it has that many
HALF_PX, WHOLE_PX = 600.0, 1240.0  # for small screens: content that fits does not scroll, and text stays legible
MAX_PLAIN = 200_000  # most characters that are stored uncompressed
MAX_PICTURES = 12  # most kernels whose graphs are drawn, so that the page of a whole network opens fast

_STYLE = """
:root { color-scheme: light dark; --line: #dfe3e8; --soft: #f7f8fa; --ink2: #5b6675; --out: #ffebe9; --in: #e6f6ec;
  --slower: #b3261e; --faster: #00694e; --brand: #0b63ce; }
@media (prefers-color-scheme: dark) { :root { --line: #303a47; --soft: #1a2029; --ink2: #a9b4c2; --out: #46201f;
  --in: #12372a; --slower: #ff9a92; --faster: #3fcfa4; --brand: #6db1ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 84rem; font: 14px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { body { background: #14181f; color: #e8edf3; } }
a { color: var(--brand); }
h1 { font-size: 1.35rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
code, pre, td.code { font: 12px/1.5 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
table { border-collapse: collapse; } th { text-align: left; font-weight: 600; }
.facts td, .facts th { padding: .2rem 1rem .2rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; }
.slower { color: var(--slower); } .faster { color: var(--faster); } .quiet { color: var(--ink2); }
.side { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; align-items: start; }
@media (max-width: 800px) { .side { grid-template-columns: 1fr; } }
.side.graphs { grid-template-columns: repeat(auto-fit, minmax(min(100%, 600px), 1fr)); }
.side.stacked { grid-template-columns: 1fr; padding-top: .5rem; } .stacked strong { padding: 0 .7rem; }
.side > div { min-width: 0; } .side svg { display: block; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; }
summary { padding: .35rem .7rem; background: var(--soft); cursor: pointer; border-radius: 6px; }
details.packed > div { padding: 0 .7rem; } details.packed > p { margin: .5rem .7rem; }
button { font: inherit; color: inherit; padding: .2rem .8rem; margin: .6rem 0 0; cursor: pointer; }
button { border: 1px solid var(--line); border-radius: 6px; background: var(--soft); }
.lines { width: 100%; table-layout: fixed; } .lines td { padding: 0 .6rem; }
.lines td.code { white-space: pre-wrap; overflow-wrap: anywhere; width: 50%; }
.lines .out { background: var(--out); } .lines .in { background: var(--in); } .lines .none { background: var(--soft); }
.lines .gap td { color: var(--ink2); background: var(--soft); text-align: center; font-size: 12px; }
"""

# unpacks a block that the reader opens by a click, by a link of the table or by the button
_SCRIPT = """
const packed = [...document.querySelectorAll("details.packed")];
async function unpack(part) {
  const holder = part.querySelector("script");
  if (holder === null) return;
  holder.remove();
  const bytes = Uint8Array.from(atob(holder.textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  part.querySelector("div").innerHTML = await new Response(stream).text();
}
async function show(id) {
  const section = document.getElementById(id)?.closest("section");
  const part = section?.querySelector("details.packed");
  if (part) {
    part.open = true;
    await unpack(part);
  }
  section?.scrollIntoView();
}
for (const part of packed) part.addEventListener("toggle", () => part.open && unpack(part));
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener("click", (event) => {
    if (location.protocol === "about:") event.preventDefault(); // in a notebook's frame it would lead to the notebook
    show(link.hash.slice(1));
  });
}
if (location.hash) show(location.hash.slice(1));
if (packed.length > 0) {
  const all = document.createElement("button");
  all.textContent = "Open every kernel";
  all.title = "So that a search finds the text of all kernels";
  all.onclick = async () => {
    all.remove();
    for (const part of packed) {
      part.open = true;
      await unpack(part);
    }
  };
  document.getElementById("kernels")?.after(all);
}
"""


class ComparedTraces(ComparisonSummary, Protocol):
    """The data of the page: two traces, their differences, and pairs of their kernels and texts."""

    @property
    def a(self) -> Trace: ...

    @property
    def b(self) -> Trace: ...

    @property
    def diff(self) -> TraceDiff: ...


def comparison_html(comparison: ComparedTraces) -> str:
    """Returns the page: the first difference, then the changed kernels, then one line for each unchanged kernel."""
    title = " with ".join(escape(trace.title or "a capture") for trace in (comparison.a, comparison.b))
    body = [
        f"<h1>{title}</h1>",
        f"<p>{escape(describe_counts(comparison))}; {escape(describe_first_difference(comparison.diff))}.</p>",
        _options_html(comparison),
        _write_kernel_table(comparison) if comparison.kernels or not comparison.texts else "",
        _texts_html(comparison),
    ]
    changed = [(number, pair) for number, pair in enumerate(comparison.kernels) if pair.change != "same"]
    body.extend(
        _write_section(comparison, number, pair, with_pictures=number < MAX_PICTURES, is_packed=position > 0)
        for position, (number, pair) in enumerate(changed)
    )
    runs = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; "
    policy += f"style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{runs}'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>Compare: {title}</title>\n<style>{_STYLE}{style_sheet()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f"\n</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _texts_html(comparison: ComparedTraces) -> str:
    """Returns the differing stages, then the last texts side by side, then the packed texts after the stages."""
    if not comparison.texts:
        return ""
    parts, rows, details = [], [], []
    for pair in comparison.stages:
        sides = "both" if pair.a is not None and pair.b is not None else "a" if pair.b is None else "b"
        rows.append(f"<tr><td>{escape(pair.name)}</td><td>{sides}</td><td>{_count_changed_lines(pair)}</td></tr>")
        if sides == "both":
            details += [f"<h3>{escape(pair.name)}</h3>", *(_text_html(comparison, text, False) for text in pair.texts)]
    if rows:
        head = "<tr><th>stage</th><th>in</th><th>lines only in a, only in b</th></tr>"
        table = f'<div class="scroll"><table class="facts">{head}{"".join(rows)}</table></div>'
        summary = f"Stages with different texts: {len(rows)}"
        parts.append(f"<details><summary>{summary}</summary>{table}</details>")
    parts.append("<h2>Texts at the end</h2>")
    is_open = True
    for text in comparison.texts:
        part = _text_html(comparison, text, is_open)
        parts.append(part if len(part) <= MAX_PLAIN else _packed_html(part, "Lines"))
        is_open = is_open and text.same
    if details:
        parts.append(_packed_html("".join(details), "Texts after the stages of both captures"))
    return "\n".join(parts)


def _text_html(comparison: ComparedTraces, text: TextPair, is_open: bool) -> str:
    trace = comparison.b if text.a is None else comparison.a
    name = " · ".join(filter(None, (language_name(trace, text.language), text.title)))
    return _write_listing(ListingPair(text.language, text.a, text.b), is_open, name)


def _count_changed_lines(pair: StagePair) -> str:
    """Returns the numbers of changed lines on both sides: "12, 8"; "" for a stage that only one trace has."""
    if pair.a is None or pair.b is None:
        return ""
    a, b = (
        Counter(line for text in pair.texts for line in lines_of(text) or ()) for lines_of in (_text_of_a, _text_of_b)
    )
    return f"{sum((a - b).values())}, {sum((b - a).values())}"


def _text_of_a(text: TextPair) -> tuple[str, ...] | None:
    return text.a


def _text_of_b(text: TextPair) -> tuple[str, ...] | None:
    return text.b


def _options_html(comparison: ComparedTraces) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{_value_html(a)}</td><td>{_value_html(b)}</td></tr>"
        for name, a, b in comparison.diff.options
    )
    if not rows:
        return '<p class="quiet">Both were captured with the same options.</p>'
    return f'<table class="facts"><tr><th>option</th><th>a</th><th>b</th></tr>{rows}</table>'


def _value_html(value: str | None) -> str:
    return '<span class="quiet">not set</span>' if value is None else f"<code>{escape(value)}</code>"


def _write_kernel_table(comparison: ComparedTraces) -> str:
    """Writes the table of kernels: name, changes and times of each pair."""
    rows = []
    for number, pair in enumerate(comparison.kernels):
        name = f"<code>{escape(pair.name)}</code>"
        if pair.change != "same":
            name = f'<a href="#kernel-{number}">{name}</a>'
        tone = pair.times.verdict if pair.times.verdict in ("slower", "faster") else "quiet"
        rows.append(
            f"<tr><td>{number}</td><td>{name}</td><td>{escape(_changes_text(pair))}</td>"
            f'<td class="{tone}">{escape(pair.times.text)}</td></tr>'
        )
    head = "<tr><th></th><th>kernel</th><th>program</th><th>time (median, quartiles)</th></tr>"
    return f'<h2>Kernels</h2><div class="scroll" id="kernels"><table class="facts">{head}{"".join(rows)}</table></div>'


def _changes_text(pair: KernelPair) -> str:
    """Returns the changes like `describe_change`, with languages named as on a view's tabs."""
    return describe_change(replace(pair, reasons=tuple(LANGUAGE_NAMES.get(reason, reason) for reason in pair.reasons)))


def _write_section(
    comparison: ComparedTraces, number: int, pair: KernelPair, *, with_pictures: bool, is_packed: bool
) -> str:
    """Writes the section of a pair of kernels: the first difference, graphs and listings."""
    parts = [f'<section><h2 id="kernel-{number}">{number} · <code>{escape(pair.name)}</code></h2>']
    if pair.first is not None:
        parts.append(f"<p>They differ from stage <strong>{escape(pair.first.name)}</strong>: ")
        parts.append(
            f"of the program, {count_text(len(pair.only_a), 'UOp')} only in a, {len(pair.only_b)} only in b.</p>"
        )
    parts.append(f'<div class="side">{_facts_html("a", pair.a)}{_facts_html("b", pair.b)}</div>')
    inside = [_draw_graphs(comparison, pair)] if with_pictures else []
    is_open = True
    for listing in pair.listings:
        inside.append(_write_listing(listing, is_open))
        is_open = is_open and listing.same
    body = "\n".join(inside)
    return "\n".join([*parts, _packed_html(body) if is_packed or len(body) > MAX_PLAIN else body, "</section>"])


def _packed_html(body: str, title: str = "Graphs and listings") -> str:
    """Returns a block that the page unpacks when it is opened."""
    data = b64encode(gzip.compress(body.encode(), mtime=0)).decode()
    without = "Unpacking them needs JavaScript; <code>tinyexplore compare A B</code> prints the differences."
    return (
        f'<details class="packed"><summary>{title}</summary>'
        f"<noscript><p>{without}</p></noscript><div></div>"
        f'<script type="application/octet-stream+base64">{data}</script></details>'
    )


def _facts_html(side: str, kernel: KernelInfo | None) -> str:
    if kernel is None:
        return f'<p class="quiet">not in {side}</p>'
    axes = ", ".join(f"{name} {kind} {size}" for name, kind, size in kernel.axes)
    opts = ", ".join(kernel.opts) or "none"
    return (
        f"<div><strong>{side}</strong> · {escape(kernel.device)}<br>"
        f"<code>{escape(axes)}</code><br>opts: <code>{escape(opts)}</code></div>"
    )


def _draw_graphs(comparison: ComparedTraces, pair: KernelPair) -> str:
    """Draws both graphs after the first differing stage. Frames mark the nodes that only one graph has."""
    if pair.first is None:
        return ""
    a, b = _find_graph_after(comparison.a, pair.first.a, pair.a), _find_graph_after(comparison.b, pair.first.b, pair.b)
    digests_a, digests_b = {node.digest for node in a}, {node.digest for node in b}
    graphs = []
    sides = ((a, digests_b, comparison.a, pair.a), (b, digests_a, comparison.b, pair.b))
    for graph, others, trace, kernel in sides:
        marked = {node.id for node in graph if node.digest not in others}
        graphs.append((graph if kernel is None else [_use_python_name(node, trace, kernel) for node in graph], marked))
    graph_pictures = [graph_within(nodes, HALF_PX, MIN_BOXES, MAX_BOXES, marked) for nodes, marked in graphs]
    is_stacked = None in graph_pictures  # side by side they would be too small
    if is_stacked:
        graph_pictures = [graph_within(nodes, WHOLE_PX, 1, MAX_BOXES, marked) for nodes, marked in graphs]
    pictures = [
        f'<div class="scroll">{f"<strong>{side}</strong>" if is_stacked else ""}{picture or ""}</div>'
        for side, picture in zip("ab", graph_pictures)
    ]
    summary = f"Graphs after {escape(pair.first.name)}; framed: nodes that only one graph has"
    look = f"side graphs{' stacked' if is_stacked else ''}"
    return f'<details open><summary>{summary}</summary><div class="{look}">{"".join(pictures)}</div></details>'


def _use_python_name(node: Node, trace: Trace, kernel: KernelInfo) -> Node:
    """Returns the node with a buffer's Python name, or the kernel that computed it, instead of "data1"."""

    def name(match: re.Match[str]) -> str:
        return argument_text(trace, kernel, int(match[1])) or match[0]

    return replace(node, label=_DATA.sub(name, node.label), detail=_DATA.sub(name, node.detail))


def _find_graph_after(trace: Trace, stage: Stage | None, kernel: KernelInfo | None) -> list[Node]:
    """Returns the graph after `stage`; if the trace has no such stage, the kernel's first graph."""
    if stage is None and kernel is not None:
        stage = next((stage for stage in trace.stages if stage.kernel == kernel.id), None)
        roots = () if stage is None else stage.before
    else:
        roots = () if stage is None else stage.after or stage.before
    return reachable(dict(enumerate(trace.nodes)), dict.fromkeys(roots))


def _write_listing(listing: ListingPair, is_open: bool, title: str = "") -> str:
    """Writes the listings of a pair side by side, folded unless `is_open`."""
    name = escape(title or LANGUAGE_NAMES.get(listing.language, listing.language))
    if listing.same:
        return f'<p class="quiet">{name}: the same in both</p>'
    if listing.a is None or listing.b is None:
        return f'<p class="quiet">{name}: only in {"b" if listing.a is None else "a"}</p>'
    rows = "".join(_write_rows(listing.language, listing.a, listing.b))
    opened = " open" if is_open else ""
    return (
        f'<details{opened}><summary>{name}</summary><div class="scroll">'
        f'<table class="lines">{rows}</table></div></details>'
    )


def _write_rows(language: str, a: Sequence[str], b: Sequence[str]) -> list[str]:
    """Returns the rows of two listings: the differing lines, and equal lines near them."""
    rows: list[str] = []
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    a, b = lines_html(language, a), lines_html(language, b)
    for block, (kind, a_from, a_to, b_from, b_to) in enumerate(blocks):
        if kind != "equal":
            length = max(a_to - a_from, b_to - b_from)
            left = [*a[a_from:a_to], *[None] * (length - a_to + a_from)]
            right = [*b[b_from:b_to], *[None] * (length - b_to + b_from)]
            rows.extend(
                f"<tr>{_cell_html(x, 'out')}{_cell_html(y, 'in')}</tr>" for x, y in zip(left, right, strict=True)
            )
            continue
        before = CONTEXT_LINES if block > 0 else 0
        after = CONTEXT_LINES if block < len(blocks) - 1 else 0
        hidden = a_to - a_from - before - after
        numbers = [*range(before), *range(a_to - a_from - after, a_to - a_from)] if hidden > 1 else range(a_to - a_from)
        for i in numbers:
            if hidden > 1 and i == a_to - a_from - after:
                rows.append(f'<tr class="gap"><td colspan="2">{hidden} equal lines</td></tr>')
            rows.append(f"<tr>{_cell_html(a[a_from + i], '')}{_cell_html(b[b_from + i], '')}</tr>")
        if hidden > 1 and not after:
            rows.append(f'<tr class="gap"><td colspan="2">{hidden} equal lines</td></tr>')
    return rows


def _cell_html(line: str | None, tone: str) -> str:
    if line is None:
        return '<td class="none"></td>'
    return f'<td class="code {tone}">{line}</td>'
