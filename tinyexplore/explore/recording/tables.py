"""Builds the tables of a trace: every object is described once and gets the next dense id of its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from tinyexplore.explore.recording.descriptions import Printer, content_of, describe, describe_memory
from tinyexplore.explore.recording.roots import NodeBuffer, buffer_key, buffer_of, roots_of
from tinyexplore.explore.recording.sources import function_text, package_path, rule_text, source_name, source_text
from tinyexplore.explore.recording.spans import Spans
from tinyexplore.explore.tracefile.digests import DIGEST_LENGTH, content_digest
from tinyexplore.explore.tracefile.model import (
    BufferInfo,
    Frame,
    Node,
    OptEffect,
    OutsideOperation,
    RuleInfo,
    Source,
    Transform,
)
from tinyexplore.explore.tracefile.spans import Span
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.lazy import ExternalOperation, LazyBuffer
from tinyexplore.trace import UserFrame
from tinyexplore.uop import Ops, UOp
from tinyexplore.util import toposort


class Tables:
    """The tables under construction: nodes, frames, sources, rules, transforms, laws of opts, and buffers."""

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        self.names = names or {}  # by LazyBuffer number
        self.storage: Mapping[LazyBuffer, NodeBuffer | None] = {}  # at the end of the recording
        self.texts: Mapping[str, str] = {}  # texts of files at the end of the recording
        # LazyBuffer number → (the module, whether it is a gradient)
        self.scopes: Mapping[int, tuple[int | None, bool]] = {}
        self.nodes: list[Node] = []
        self.node_ids: dict[object, int] = {}  # by identity: UOps are interned, LazyBuffers compare with `is`
        self.recorded: dict[LazyBuffer, tuple[tuple[LazyBuffer, ...], UserFrame | None, tuple[str, ...]]] = {}
        self.buffer_digests: dict[int, str] = {}
        self.frames: list[Frame] = []
        self.frame_ids: dict[tuple[int, int, str, Span | None], int] = {}
        # by the fields of a UserFrame; the events keep its code alive
        self.frame_places: dict[tuple[object, ...], int] = {}
        self.spans = Spans(self._text_of)
        self.sources: list[Source] = []
        self.source_ids: dict[str, int] = {}
        self.rules: list[RuleInfo] = []
        self.rule_ids: dict[object, int] = {}
        self.transforms: list[Transform] = []
        self.transform_ids: dict[object, int] = {}
        self.laws: list[OptEffect] = []
        self.law_ids: dict[object, tuple[int, ...]] = {}
        self.buffers: dict[int, BufferInfo] = {}  # by Buffer.id, which is unique in a process
        self.outside: list[OutsideOperation] = []
        self.printer = Printer()

    def roots(self, value: Any) -> tuple[int, ...]:
        """Returns the node ids of a stage's roots: one, several, or none."""
        return tuple(self.node(root) for root in roots_of(value))

    def node(self, value: UOp | LazyBuffer) -> int:
        ids = self.node_ids
        number = ids.get(value)
        if number is not None:
            return number
        sources = self._sources_of
        if any(source not in ids for source in sources(value)):
            for node in toposort(sources(value), lambda node: () if node in ids else sources(node)):
                if node not in ids:
                    ids[node] = len(self.nodes)
                    self.nodes.append(self._make(node))
        number = ids[value] = len(self.nodes)
        self.nodes.append(self._make(value))
        return number

    def _sources_of(self, value: UOp | LazyBuffer) -> tuple[Any, ...]:
        if type(value) is LazyBuffer and value in self.recorded:
            return self.recorded[value][0]
        return value.src

    def _make(self, value: UOp | LazyBuffer) -> Node:
        description = describe(value, self.printer)
        src = tuple([self.node_ids[source] for source in self._sources_of(value)])
        op = value.op.name
        calls: tuple[str, ...] = ()
        name = ""
        scope: tuple[int | None, bool] = (None, False)
        if isinstance(value, UOp):
            kind, user = "uop", None
            digest = content_digest(
                op,
                description.dtype,
                description.arg,
                description.detail,
                [self.nodes[source].digest for source in src],
            )
        else:
            told_of = self.recorded.get(value)
            name = self.names.get(value.number, "")
            scope = self.scopes.get(value.number, scope)
            kind, user = "lazybuffer", self.frame(None if told_of is None else told_of[1])
            calls = calls if told_of is None else told_of[2]
            if self._is_memory(value):
                # its sources are outside of this trace
                op, description = Ops.BUFFER.name, describe_memory(value)
                if isinstance(value.arg, ExternalOperation) and value.arg.is_first:
                    operation = OutsideOperation(len(self.nodes), value.arg.name, round(value.arg.seconds * 1e6, 2))
                    self.outside.append(operation)
            digest = self._digest(value, src)
        return Node(
            id=len(self.nodes),
            kind=kind,
            op=op,
            src=src,
            dtype=description.dtype,
            shape=description.shape,
            arg=description.arg,
            digest=digest,
            user=user,
            label=description.label,
            detail=description.detail,
            group=description.group,
            calls=calls,
            name=name,
            scope=scope[0],
            backward=scope[1],
        )

    def find_storage(self, value: LazyBuffer) -> NodeBuffer | None:
        """Returns the buffer with the values of `value`, at the end of the recording if known, else now."""
        return self.storage[value] if value in self.storage else buffer_of(value)

    def _is_memory(self, value: LazyBuffer) -> bool:
        """Whether the values of a LazyBuffer were in memory before the trace began."""
        storage_of = self.find_storage(value)
        return storage_of is not None and storage_of.is_own and (value.op is Ops.BUFFER or value not in self.recorded)

    def _digest(self, value: LazyBuffer, src: tuple[int, ...]) -> str:
        """Returns a hash of the content that is equal across runs; buffers are numbered by first appearance."""
        op, arg = value.op, value.arg
        storage_of = self.find_storage(value)
        if storage_of is not None and self._is_memory(value):
            op = Ops.BUFFER
            arg = self.buffer_digests.setdefault(storage_of.buffer.id, f"buffer {len(self.buffer_digests)}")
        sources = ",".join(self.nodes[source].digest for source in src)
        text = f"{op.name}|{value.dtype!r}|{value.shape}|{arg!r}|{sources}"
        return blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_LENGTH // 2).hexdigest()

    def frame(self, frame: UserFrame | None) -> int | None:
        if frame is None:
            return None
        frame_key = (frame.file, frame.line, frame.function, id(frame.code), frame.instruction)
        number = self.frame_places.get(frame_key)
        if number is None:
            function = "" if frame.function == "<module>" else frame.function
            span = self.spans.span_of_frame(frame)
            key = (self.source(frame.file), frame.line, function, span)
            number = self.frame_ids.setdefault(key, len(self.frames))
            self.frame_places[frame_key] = number
            if number == len(self.frames):
                self.frames.append(Frame(number, *key))
        return number

    def source(self, file: str) -> int:
        number = self.source_ids.get(file)
        if number is None:
            number = self.source_ids[file] = len(self.sources)
            self.sources.append(Source(number, source_name(file), self._text_of(file)))
        return number

    def _text_of(self, file: str) -> str:
        return self.texts[file] if file in self.texts else source_text(file)

    def rule(self, rule: Any) -> int:
        number = self.rule_ids.get(rule)
        if number is None:
            number = self.rule_ids[rule] = len(self.rules)
            file = package_path(rule.file)
            self.rules.append(RuleInfo(number, rule.name, rule.law, rule.doc, file, rule.line, rule_text(rule)))
        return number

    def transform(self, transform: Any) -> int:
        number = self.transform_ids.get(transform)
        if number is None:
            number = self.transform_ids[transform] = len(self.transforms)
            file, text = package_path(transform.file), function_text(transform.function)
            self.transforms.append(Transform(number, transform.name, transform.law, file, transform.line, text))
        return number

    def find_opt_effects(self, op: Any) -> tuple[int, ...]:
        """Returns the ids of the laws of a kind of opt."""
        numbers = self.law_ids.get(op)
        if numbers is None:
            first = len(self.laws)
            rows = [
                OptEffect(number, op.name, effect.text, effect.before, effect.after)
                for number, effect in enumerate(OPT_KINDS[op].effects, first)
            ]
            self.laws += rows
            numbers = self.law_ids[op] = tuple(row.id for row in rows)
        return numbers

    def buffer(self, buffer: Any) -> int:
        """Returns the id of a Buffer, or of the key that represents it in events."""
        key = buffer_key(buffer)
        info = self.buffers.get(key.id)
        if info is None:
            info = BufferInfo(len(self.buffers), key.device, key.dtype.name, key.size, key.nbytes, None, None)
            self.buffers[key.id] = info
        return info.id


def nodes_of(roots: Iterable[UOp | LazyBuffer]) -> tuple[Node, ...]:
    """Returns the graph under live values as plain nodes, sources first."""
    tables = Tables()
    for root in roots:
        tables.node(root)
    return tuple(tables.nodes)


class UopDigests:
    """Computes the digests of live UOps; they equal the digests of their nodes in a trace."""

    def __init__(self) -> None:
        self._known: dict[UOp, str] = {}

    def of(self, uop: UOp) -> str:
        """Returns the digest of the node for `uop`."""
        digests = self._known
        if uop not in digests:
            for node in toposort((uop,), lambda node: () if node in digests else node.src):
                if node not in digests:
                    sources = [digests[source] for source in node.src]
                    digests[node] = content_digest(node.op.name, *content_of(node), sources)
        return digests[uop]

    def is_named(self, uop: UOp, digest: str) -> bool:
        """Whether `digest` belongs to `uop`. In traces of older releases, digests are prefixes of `UOp.digest`."""
        return self.of(uop) == digest or uop.digest.startswith(digest)
