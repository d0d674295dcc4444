"""Export a trace as one HTML page that needs no network, as static HTML, and as a text summary."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any

from tinyexplore.explore.analysis.requests import Shape, request_key, to_data
from tinyexplore.explore.analysis.shapes.trace_shapes import shapes_data
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import language_name, level_for, tensor_kinds
from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.explore.tracefile.figures import figures, no_time_text, samples_text, span_text
from tinyexplore.explore.tracefile.texts import call_text, figures_text
from tinyexplore.explore.tracefile.trace import Trace


def content_policy(*scripts: str, compiles: bool = False) -> str:
    """Returns the Content-Security-Policy of a page: nothing is fetched or sent, and only `scripts` run.

    Panels and workers are modules that these scripts create (`blob:`). Without scripts, none runs.

    compiles: whether the page runs WebAssembly.
    """
    if not scripts:
        return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    wasm = " 'wasm-unsafe-eval'" if compiles else ""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {hashes} blob:{wasm}; worker-src blob:; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:"
    )


_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; background: Canvas; color: CanvasText; }
.static { padding: 1rem; max-width: 72rem; margin: auto; }
.static svg, .static img { max-width: 100%; height: auto; }
.static table { border-collapse: collapse; margin: 0.5rem 0; }
.static th, .static td { padding: 0.15rem 0.7rem 0.15rem 0; text-align: left; vertical-align: top; }
.static td.number { text-align: right; font-variant-numeric: tabular-nums; }
.static pre { overflow-x: auto; }
"""


def export_html(
    trace: Trace,
    tour: Sequence[dict[str, Any]] = (),
    *,
    responses: Mapping[str, Any] | None = None,
    engine: str = "",
    runnable: Sequence[dict[str, Any]] = (),
) -> str:
    """Returns the trace as one page: interactive with JavaScript, a picture and tables without.

    A trace without kernels gives a page of one line.

    Args:
        trace: the trace.
        tour: notes on positions of the trace (`questions.Stop.as_data`), through which the page leads.
        responses: the responses that the page stores, by canonical request; responses about shapes are added.
        engine: the HTML elements of the engine (`explore/live`), "" for a page without engine.
        runnable: kernels that the page can run (`runnable_kernels.py`).
    """
    if not engine and (line := empty_view_text(trace)):
        return _write_text_page(trace, line)
    payload = b64encode(trace_to_bytes(trace)).decode()
    script = script_text("standalone")
    title = escape(trace.title or "tinyexplore")
    options = f' data-options="{escape(json.dumps({"tour": list(tour)}))}"' if tour else ""
    from tinyexplore.explore.exports.panels import panel_responses  # noqa: PLC0415 (it imports the rows of panels)

    shapes = {request_key(Shape(node)): to_data(data) for node, data in shapes_data(trace).items()}
    stored = {"responses": {**shapes, **panel_responses(trace), **(responses or {})}, "runnable": list(runnable)}
    stored_json = well_formed(json.dumps(stored, ensure_ascii=False, separators=(",", ":")))
    packed = b64encode(gzip.compress(stored_json.encode(), mtime=0)).decode()
    scripts = [script, script_text("live")] if engine else [script]
    allowed = content_policy(*scripts, compiles=bool(engine or runnable))
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<div id="explorer"{options}></div>
<noscript>{static_html(trace)}</noscript>
<script type="application/octet-stream+base64" id="trace">{payload}</script>
<script type="application/octet-stream+base64" id="stored">{packed}</script>
{engine or chunk_scripts(_choose_chunks(trace, stored))}
<script>{script}</script>
</body>
</html>
"""
    return well_formed(page)


def empty_view_text(trace: Trace) -> str:
    """Returns one line to show if the views would be empty; "" if the trace has kernels, or a graph and an error."""
    failed = any(message.level == "error" for message in trace.messages)
    if trace.kernels or trace.dialect is not None or (failed and trace.nodes):
        return ""
    return f"Explorer: {next((message.text for message in trace.messages), 'no kernel ran')}"


def _write_text_page(trace: Trace, line: str) -> str:
    """Returns a page without scripts that has one line about the trace."""
    title = escape(trace.title or "tinyexplore")
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{content_policy()}">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<div class="static"><p>{_write_lines(line)}</p></div>
</body>
</html>
"""
    return well_formed(page)


def script_text(name: str) -> str:
    """Returns a bundle of the front end for a page: "standalone" mounts itself, "live" is the engine of a page."""
    from tinyexplore.widgets.front_end import bundle

    return bundle(f"{name}.js").replace("</script", "<\\/script")


def chunk_scripts(names: Iterable[str] | None = None) -> str:
    """Returns the code of panels (by default all) as inert script elements. The page loads each when a panel opens."""
    from tinyexplore.widgets.front_end import chunk_names, packed_chunk

    chosen = chunk_names() if names is None else names
    texts = {name: b64encode(packed_chunk(name)).decode() for name in chosen}
    kind = "application/octet-stream+base64"
    return "\n".join(f'<script type="{kind}" data-chunk="{name}">{text}</script>' for name, text in texts.items())


def _choose_chunks(trace: Trace, stored: Mapping[str, Any]) -> list[str]:
    """Returns the panels of a page without Python: those that show recorded data, or stored responses."""
    from tinyexplore.widgets.front_end import chunk_names
    from tinyexplore.widgets.panels import PANELS

    present = {json.loads(request)["ask"] for request in stored["responses"]}
    recorded = {
        "recordings": bool(trace.recordings),
        "branches": bool(trace.branches),
        "schedules": any(branch.schedule is not None for branch in trace.branches),
    }
    present.update(name for name, is_present in recorded.items() if is_present)
    useful = {panel.chunk for panel in PANELS if not panel.needs or present.intersection(panel.needs)}
    if trace.stage_texts:
        useful.add("stage_texts")
    useless = {panel.chunk for panel in PANELS} - useful
    if not stored["runnable"]:
        useless.add("browser_run")
    return [name for name in chunk_names() if name not in useless]


def static_html(trace: Trace) -> str:
    """Returns HTML without scripts: the trace's messages, a picture of the pipeline, and a table of the kernels."""
    from tinyexplore.explore.tracefile.pictures.graph_picture import pipeline_svg  # noqa: PLC0415 (start-up: it loads the layout)

    parts = [f"<h2>{escape(trace.title)}</h2>" if trace.title else ""]
    parts.extend(
        f"<p><strong>{escape(m.level)}</strong>: {_write_lines(m.text)}{_place_text(trace, m.frame)}</p>"
        for m in trace.messages
    )
    parts.append(pipeline_svg(trace))
    parts.append(_write_kernel_table(trace))
    parts.append(_write_texts(trace))
    options = " · ".join(f"{escape(name)}={escape(value)}" for name, value in trace.options)
    parts.append(f"<p>{escape(summary_text(trace))}<br>{options}</p>")
    return well_formed(f'<div class="static">{"".join(parts)}</div>')


def summary_text(trace: Trace) -> str:
    """Returns the content of the trace in one line, or in two with a problem.

    The text has no times or addresses, so it is equal from run to run.
    """
    kinds = tensor_kinds(trace)
    level = level_for(trace, "tensors")
    tensors = sum(node.kind in kinds for node in trace.nodes)
    kernels = ", ".join(kernel.name for kernel in trace.kernels[:4])
    if len(trace.kernels) > 4:
        kernels += f", and {len(trace.kernels) - 4} more"
    graph = count_text(tensors, level.name, level.plural) if level is not None else count_text(len(trace.nodes), "node")
    text = f"{graph} → {count_text(len(trace.kernels), 'kernel')}"
    if trace.dialect is not None and not trace.kernels:
        text = f"{graph}, {count_text(len(trace.stages), 'stage')} of {trace.dialect.as_text()}"
    if kernels:
        text += f" ({kernels})"
    if trace.rules or not trace.stage_texts:
        text += f"; {count_text(figures(trace).firings, 'firing')} of {count_text(len(trace.rules), 'rule')}"
    else:
        changing = len({stage_text.stage for stage_text in trace.stage_texts})
        text += f"; {count_text(changing, 'stage')} made a text"
    title = f"Explorer({well_formed(trace.title)!r})" if trace.title else "Explorer"
    problems = [message.text for message in trace.messages if message.level == "error"]
    return well_formed("\n".join([f"{title}: {text}", *problems]))


def _write_lines(text: str) -> str:
    return "<br>".join(escape(line) for line in text.splitlines())


def _place_text(trace: Trace, frame: int | None) -> str:
    if frame is None:
        return ""
    line_frame = trace.frames[frame]
    return f" <em>({escape(trace.sources[line_frame.source].name)}, line {line_frame.line})</em>"


_MAX_LINES = 400  # most lines of a text in a page without scripts


def _write_texts(trace: Trace) -> str:
    """Returns the last stage text in each language and title, each in a folded block."""
    last = {(text.language, text.title): text for text in trace.stage_texts}
    parts = []
    for text in last.values():
        name = " · ".join(filter(None, (language_name(trace, text.language), text.title)))
        head = f"{name}, after {trace.stages[text.stage].name}: {count_text(len(text.lines), 'line')}"
        lines = escape("\n".join(line.text for line in text.lines[:_MAX_LINES]))
        more = len(text.lines) - _MAX_LINES
        more_lines = f"<p>{count_text(more, 'more line')}</p>" if more > 0 else ""
        parts.append(f"<details><summary>{escape(head)}</summary><pre>{lines}</pre>{more_lines}</details>")
    return "".join(parts)


def _write_kernel_table(trace: Trace) -> str:
    """Writes the table of kernels for a page without scripts."""
    if not trace.kernels:
        return ""
    medians = {run.kernel: run for run in trace.runs}
    rows = []
    for kernel in trace.kernels:
        run = medians.get(kernel.id)
        time = no_time_text(kernel) if run is None else f"{span_text(run)}, {samples_text(run)}"
        rate = figures_text(kernel.flops / run.median_us / 1e3) if run and run.median_us else ""
        rows.append(
            f"<tr><td>{kernel.id}</td>"
            f"<td>{escape(kernel.title or ', '.join(map(call_text, kernel.calls)))}</td>"
            f"<td><code>{escape(kernel.name)}</code></td><td>{escape(kernel.device)}</td>"
            f"<td>{escape(', '.join(kernel.opts)) or 'none'}</td>"
            f'<td class="number">{time}</td><td class="number">{rate}</td></tr>'
        )
    head = "".join(
        f"<th>{name}</th>" for name in ("", "of", "kernel", "device", "opts", "time (median, quartiles)", "GFLOP/s")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
