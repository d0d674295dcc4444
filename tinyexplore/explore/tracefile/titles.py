"""Kernel titles from the user's Python: "x @ w", "+ b, softmax", "softmax of scores"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tinyexplore.explore.tracefile.model import Frame, KernelInfo, Node, Scope, Source
from tinyexplore.explore.tracefile.texts import call_text

MAX_EXPRESSIONS = 3  # most expressions in a title
MAX_INPUTS = 2  # most inputs of a call in a title
MAX_CHARACTERS = 48  # most characters of one expression
_QUOTE = '"'
_ATTRIBUTES = re.compile(r" <[^<>]*> \(")
_PATH = re.compile(r'"[^"\s]*?([^"/\s]+)"')
GRAPH_TEXT = "<ATen "  # begins the name of a source that is the text of a graph, not the user's Python
SILENT = frozenset(("movement", "const", "buffer"))  # groups of nodes that compute nothing


@dataclass
class _TitlePart:
    """One call or operator in the user's Python, and what it computes in one kernel.

    frame: its position in the source
    call: the name of the function
    scope: the module whose gradient it computes; None for a forward pass
    nodes: the LazyBuffers of the kernel that it created
    """

    frame: Frame
    call: str
    scope: int | None
    nodes: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class _TitleTables:
    """The tables of a trace from which titles are built.

    nodes: LazyBuffers and UOps
    frames: positions in the user's Python
    sources: the user's files
    scopes: the user's modules
    """

    nodes: Sequence[Node]
    frames: Sequence[Frame]
    sources: Sequence[Source]
    scopes: Sequence[Scope]


def with_titles(
    kernels: Sequence[KernelInfo],
    nodes: Sequence[Node],
    frames: Sequence[Frame],
    sources: Sequence[Source],
    scopes: Sequence[Scope] = (),
) -> tuple[KernelInfo, ...]:
    """Returns the kernels with titles. The largest parameter that a kernel reads distinguishes equal titles."""
    tables = _TitleTables(nodes, frames, sources, scopes)
    titles = [_title(tables, kernel) for kernel in kernels]
    if any(titles):
        titles = [title or _write_input_title(nodes, kernel) for title, kernel in zip(titles, kernels, strict=True)]
    shared = {title for title in titles if title and titles.count(title) > 1}
    return tuple(
        replace(kernel, title=_add_largest_input(tables, kernel, title) if title in shared else title)
        for kernel, title in zip(kernels, titles, strict=True)
    )


def _title(tables: _TitleTables, kernel: KernelInfo) -> str:
    parts = list(_yield_parts(tables, kernel))
    largest = sorted(parts, key=lambda part: (-_weigh_part(part), part.nodes[0].id))[:MAX_EXPRESSIONS]
    chosen = [part for part in parts if part in largest]
    texts = [_text(tables, part) for part in chosen if not _is_named_input(tables.nodes, part, chosen)]
    return ", ".join(dict.fromkeys(text for text in texts if text))


def _write_input_title(nodes: Sequence[Node], kernel: KernelInfo) -> str:
    """Returns the title "input x" of a kernel that only computes tensors from before the capture; "" without a name."""
    if any(nodes[number].calls and nodes[number].group not in SILENT for number in kernel.nodes):
        return ""
    names = dict.fromkeys(_skip_movements(nodes, nodes[root]).name for root in kernel.roots)
    return f"input {' and '.join(names)}" if names and all(names) and len(names) <= MAX_INPUTS else ""


def _skip_movements(nodes: Sequence[Node], node: Node) -> Node:
    """Walks from `node` towards its sources; returns the first node that has a name or is not a movement."""
    while node.group == "movement" and not node.name:
        node = nodes[node.src[0]]
    return node


def _is_named_input(nodes: Sequence[Node], part: _TitlePart, chosen: Sequence[_TitlePart]) -> bool:
    """Whether a part is one operation that another part names as its input: `scores` in "softmax of scores"."""
    part_names = {node.name for node in part.nodes if node.name}
    return len(part.nodes) == 1 and any(
        other is not part and part_names & set(_list_input_names(nodes, other)) for other in chosen
    )


def _weigh_part(part: _TitlePart) -> int:
    return sum(4 if node.group == "reduce" else 1 for node in part.nodes)


def _yield_parts(tables: _TitleTables, kernel: KernelInfo) -> Iterator[_TitlePart]:
    """Yields the operations of a kernel, grouped by the part of the Python that created them, in order."""
    parts: dict[tuple[int, str, int | None], _TitlePart] = {}
    for number in sorted({*kernel.nodes, *kernel.roots}):
        node = tables.nodes[number]
        if node.user is None or not node.calls or node.group in SILENT:
            continue
        scope = node.scope if node.backward else None
        key = (node.user, node.calls[0], scope)
        if key not in parts:
            parts[key] = _TitlePart(tables.frames[node.user], node.calls[0], scope)
        parts[key].nodes.append(node)
    yield from parts.values()


def _text(tables: _TitleTables, part: _TitlePart) -> str:
    """Returns the source text of an expression. If it continues another kernel's expression, returns its own end."""
    if part.scope is not None:
        return f"gradient of {_name_scope(tables.scopes, part.scope)}"
    module = part.nodes[0].scope
    if module is not None and tables.scopes[module].kind == part.call:
        return _name_scope(tables.scopes, module)
    if module is not None and tables.sources[part.frame.source].name.startswith(GRAPH_TEXT):
        return _module_text(tables.scopes, module)
    written, call = _source_text(tables.sources, part.frame), call_text(part.call)
    if written.startswith(".") or not written or part.frame.span is None:
        names = _list_input_names(tables.nodes, part)
        return f"{call} of {' and '.join(names)}" if names else call
    return _shorten(_drop_inner_begin(tables, part, written))


def _drop_inner_begin(tables: _TitleTables, part: _TitlePart, written: str) -> str:
    """Returns `written` without the longest inner expression at its start: "+ b" for "x @ w + b"."""
    heads = [_source_text(tables.sources, frame) for frame in tables.frames if _is_inside(frame, part.frame)]
    longest = max((head for head in heads if head and written.startswith(head)), key=len, default="")
    return written[len(longest) :].strip() or written


def _is_inside(inner: Frame, outer: Frame) -> bool:
    if inner is outer or inner.span is None or outer.span is None or inner.source != outer.source:
        return False
    return inner.span != outer.span and inner.span[:2] >= outer.span[:2] and inner.span[2:] <= outer.span[2:]


def _list_input_names(nodes: Sequence[Node], part: _TitlePart) -> list[str]:
    """Returns the names of a call's inputs; empty if one has no name, or if there are more than MAX_INPUTS."""
    part_ids = {node.id for node in part.nodes}
    names: dict[str, None] = {}
    for node in part.nodes:
        for source in node.src:
            source_node = _skip_movements(nodes, nodes[source])
            if source_node.id in part_ids or source_node.group == "const":
                continue
            if not source_node.name:
                return []
            names[source_node.name] = None
    return list(names) if len(names) <= MAX_INPUTS else []


def _source_text(sources: Sequence[Source], frame: Frame) -> str:
    """Returns the source text of a frame's expression on one line; "" before Python 3.11."""
    if frame.span is None:
        return ""
    first, begin, last, end = frame.span
    rows = sources[frame.source].text.split("\n")[first - 1 : last]
    if not rows:
        return ""
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][begin:]
    return " ".join(row.strip() for row in rows)


def _shorten(text: str) -> str:
    """Shortens an expression to at most MAX_CHARACTERS characters.

    ONNX nodes lose their attributes, and names keep their last part: `Conv (x:0, w:0)` for
    `Conv <group: int = 1> ("encoder/x:0", "encoder/w:0")`.
    """
    text = _PATH.sub(r"\1", _ATTRIBUTES.sub(" (", text))
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def _name_scope(scopes: Sequence[Scope], number: int) -> str:
    names = []
    scope: int | None = number
    while scope is not None:
        names.append(scopes[scope].name)
        scope = scopes[scope].parent
    return ".".join(reversed(names))


def _module_text(scopes: Sequence[Scope], number: int) -> str:
    """Returns the path of a module below the outermost one, and its class: "layers.0: Linear"."""
    path = _name_scope(scopes, number).partition(".")[2]
    return f"{path}: {scopes[number].kind}" if path else scopes[number].kind


def _add_largest_input(tables: _TitleTables, kernel: KernelInfo, title: str) -> str:
    """Returns the title extended by the name of the largest named value that the kernel reads."""
    named = [tables.nodes[number] for number in _read_nodes(tables.nodes, kernel) if tables.nodes[number].name]
    best = max(named, key=lambda node: (_count_elements(node), -node.id), default=None)
    return title if best is None else f"{title} · {best.name.strip(_QUOTE).rpartition('/')[2]}"


def _read_nodes(nodes: Sequence[Node], kernel: KernelInfo) -> list[int]:
    inside = {*kernel.nodes, *kernel.roots}
    return sorted({source for number in inside for source in nodes[number].src if source not in inside})


def _count_elements(node: Node) -> int:
    total = 1
    for size in node.shape or ():
        total *= size if isinstance(size, int) else 1
    return total


__all__ = ["with_titles"]
