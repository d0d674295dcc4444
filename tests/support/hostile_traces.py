"""Foreign traces with extreme numbers and hostile texts, and a function that runs every export on them."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from tinyexplore.cli import main
from tinyexplore.explore import Explorer, Trace, compare
from tinyexplore.explore.exports.html_export import static_html
from tinyexplore.explore.notebook.requests import RequestHandler
from tinyexplore.explore.tracefile.chrome import to_chrome_trace
from tinyexplore.explore.tracefile.codec import trace_to_json
from tinyexplore.explore.tracefile.perfetto import to_perfetto
from tinyexplore.explore.tracefile.pictures.pipeline_picture import pipeline_svg
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline
from tinyexplore.explore.tracefile.table_export import TABLES, rows_of, table_text
from tinyexplore.explore.tracefile.trace import trace_from_json

Place = tuple[str, str]  # a dataclass of the model and one of its fields


def places_of(value: Any, kinds: tuple[type, ...], name: str = "") -> Iterator[Place]:
    """The fields in `value` with a leaf of these types, each once for its dataclass."""
    found: dict[Place, None] = {}
    _collect(value, kinds, found)
    yield from found


def _collect(value: Any, kinds: tuple[type, ...], found: dict[Place, None]) -> None:
    if isinstance(value, tuple):
        for item in value:
            _collect(item, kinds, found)
    elif is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name)
            if _has_leaf(inner, kinds):
                found[type(value).__name__, field.name] = None
            _collect(inner, kinds, found)


def _has_leaf(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, tuple):
        return any(_has_leaf(item, kinds) for item in value)
    return type(value) in kinds


def changed(value: Any, place: Place, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` at each leaf of the fields at `place`."""
    if isinstance(value, tuple):
        return tuple([changed(item, place, change) for item in value])
    if not is_dataclass(value):
        return value
    new = {}
    for field in fields(value):
        inner = getattr(value, field.name)
        is_there = (type(value).__name__, field.name) == place
        new[field.name] = _mapped(inner, change) if is_there else changed(inner, place, change)
    return replace(value, **new)  # type: ignore[type-var]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple([_mapped(item, change) for item in value])
    return value if is_dataclass(value) or value is None else change(value)


def uses(trace: Trace, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each export of a trace, by its name."""
    shown = Explorer(trace)
    yield "svg", lambda: pipeline_svg(trace)
    yield "page", lambda: shown.to_html()
    yield "static page", lambda: static_html(trace)
    yield "text", lambda: repr(shown)
    yield "modules", lambda: str(trace.modules())
    yield "compare", lambda: str(compare(trace, trace))
    yield "compare as data", lambda: json.dumps(compare(trace, trace).to_dict())
    yield "compare page", lambda: compare(trace, trace).to_html()
    yield "chrome", lambda: json.dumps(to_chrome_trace(trace), allow_nan=False)
    yield "perfetto", lambda: to_perfetto(trace)
    yield "roofline", lambda: roofline(trace)
    yield "graph", lambda: trace.graph().svg()
    yield "dot", lambda: trace.to_graphviz().source
    for table in TABLES:
        yield f"table {table}", lambda table=table: table_text(rows_of(trace, table))  # type: ignore[misc]
    yield "json", lambda: trace_from_json(trace_to_json(trace))
    for kernel in trace.kernels:
        yield f"script {kernel.id}", lambda kernel=kernel: shown.kernels[kernel.id].reproducer()  # type: ignore[misc]


def command(*words: str) -> tuple[int, str]:
    """The status of the command line, and all that it wrote."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(list(words))
    return status, out.getvalue()


__all__ = ["RequestHandler", "Place", "changed", "command", "places_of", "uses"]
