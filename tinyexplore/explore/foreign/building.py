"""Builds a Trace from the results of a reader: nodes, rules, stages with a graph or a text, and the user's lines."""

from __future__ import annotations

import hashlib
import linecache
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from tinyexplore.explore.foreign.dump import Budget, Dump
from tinyexplore.explore.tracefile.linelinks import origins
from tinyexplore.explore.tracefile.model import (
    TRACE_VERSION,
    BackEdge,
    Dialect,
    Frame,
    KernelInfo,
    Language,
    Level,
    Line,
    Link,
    Message,
    Node,
    Program,
    Region,
    RuleInfo,
    Run,
    Source,
    Stage,
    StageText,
    Step,
    TextLine,
    Transform,
)
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.tracefile.valid import check_trace

_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MOST_ARG = 400  # characters of an argument that are kept


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the user's code.

    file: its path, as the compiler writes it.
    line: from 1.
    function: the one around it, "" for unknown.
    span: (line, column, line, column), columns from 0; None for unknown.
    """

    file: str
    line: int
    function: str = ""
    span: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A line of a text.

    text: the line.
    op: what it does, "" where the line is no operation.
    defines: names of values; a name that is defined again is another value.
    uses: names of values that it reads.
    dtype: of its value.
    shape: of its value, None for unknown.
    arg: its attributes as text.
    place: the user's line, None for unknown.
    group: the role, which gives the color, as `Node.group`.
    region: the names of the blocks around it, outermost first.
    keys: by which lines of other texts can name it.
    of: keys of the operations that it was made for.
    """

    text: str
    op: str = ""
    defines: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    dtype: str = ""
    shape: tuple[int | str, ...] | None = None
    arg: str = ""
    place: Place | None = None
    group: str = "alu"
    region: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    of: tuple[str, ...] = ()


@dataclass
class _Last:
    """The last text of one subject.

    text: its row.
    language: a key of the dialect's languages.
    operations: its lines.
    nodes: the node of each line.
    root: the node that stands for all of it.
    """

    text: int
    language: str
    operations: Sequence[Operation]
    nodes: Sequence[int | None]
    root: int | None


class Building:
    """One trace while it is built. Whatever is made is counted against the budget."""

    def __init__(
        self,
        dump: Dump,
        budget: Budget,
        *,
        compiler: str,
        levels: Sequence[Level],
        languages: Sequence[tuple[str, str]],
        panels: Sequence[str] = ("rewrites", "history"),
    ) -> None:
        self.dump = dump
        self.budget = budget
        self._compiler = compiler
        self._levels = (*levels, Level("line", "line", "lines", "lines"))
        self._languages = tuple(Language(key, name) for key, name in languages)
        self._panels = tuple(panels)
        self._sources: dict[str, Source] = {}
        self._frames: dict[Place, Frame] = {}
        self._keys: dict[Hashable, int] = {}
        self._last: dict[str, _Last] = {}
        self._by_key: dict[str, int] = {}
        self._regions: dict[Hashable, int] = {}
        self._lines: dict[Place, int] = {}
        self._clock = 0.0
        self.nodes: list[Node] = []
        self.rules: list[RuleInfo] = []
        self.transforms: list[Transform] = []
        self.stages: list[Stage] = []
        self.texts: list[StageText] = []
        self.links: dict[Link, None] = {}
        self.kernels: list[KernelInfo] = []
        self.programs: list[Program] = []
        self.runs: list[Run] = []
        self.messages: list[Message] = []
        self.regions: list[Region] = []
        self.back_edges: list[BackEdge] = []

    def source(self, file: str) -> Source:
        """The user's file, with its text if the dump has it or it can be read here as Python."""
        if file not in self._sources:
            text = self.dump.files.get(f"sources/{file.lstrip('/')}", "")
            self._sources[file] = Source(len(self._sources), PurePath(file).name or file, text)
        return self._sources[file]

    def frame(self, location: Place | None) -> int | None:
        """The id of the frame of a place; None for no place."""
        if location is None or location.line < 1:
            return None
        if location not in self._frames:
            span = location.span
            if span is not None and (span[0] < 1 or span[2] < span[0] or min(span[1], span[3]) < 0):
                span = None
            source = self.source(location.file)
            self._frames[location] = Frame(len(self._frames), source.id, location.line, location.function, span)
        return self._frames[location].id

    def node(
        self,
        kind: str,
        op: str,
        src: tuple[int, ...] = (),
        *,
        dtype: str = "",
        shape: tuple[int | str, ...] | None = None,
        arg: str = "",
        detail: str = "",
        group: str = "alu",
        place: Place | None = None,
        calls: tuple[str, ...] = (),
        name: str = "",
        tag: Hashable = None,
    ) -> int:
        """The id of a node; equal content (the place counts, the name does not) is one node."""
        key = (kind, op, src, dtype, shape, arg, place, tag)
        if key in self._keys:
            return self._keys[key]
        self.budget.spend("nodes")
        number = len(self.nodes)
        digests = tuple(self.nodes[source].digest for source in src)
        content = repr((kind, op, digests, dtype, shape, arg, tag)).encode("utf-8", "backslashreplace")
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        shown = detail or "×".join(map(str, shape or ())) or dtype
        user = self.frame(place)
        new_node = Node(
            number, kind, op, src, dtype, shape, arg[:_MOST_ARG], digest, user, op, shown[:60], group, calls, name
        )
        self.nodes.append(new_node)
        self._keys[key] = number
        return number

    def rule(self, file: str, line: int, text: str, *, doc: str = "") -> int:
        """A rule of the compiler's own source code."""
        number = len(self.rules)
        name = f"{PurePath(file).name}:{line}"
        self.rules.append(RuleInfo(number, name, text[:120], doc, file, max(line, 0), text))
        return number

    def transform(self, name: str, law: str) -> int:
        """A pass over whole graphs."""
        self.transforms.append(Transform(len(self.transforms), name, law, "", 0, ""))
        return len(self.transforms) - 1

    def stage(
        self,
        name: str,
        *,
        parent: int | None = None,
        kernel: int | None = None,
        before: tuple[int, ...] = (),
        after: tuple[int, ...] = (),
        elapsed_us: float = 0.0,
        steps: tuple[Step, ...] = (),
        transform: int | None = None,
    ) -> int:
        """A stage; it begins when the one before it ended."""
        self.budget.spend("steps", len(steps))
        number = len(self.stages)
        name = plain(name)
        self.stages.append(
            Stage(
                number, name, parent, kernel, before, after, self._clock, elapsed_us, steps, (), (), transform=transform
            )
        )
        self._clock += elapsed_us
        return number

    def closed(self, number: int) -> None:
        """Gives a stage around others the graphs and the time of those inside."""
        inside = [stage for stage in self.stages[number + 1 :] if stage.parent == number]
        if inside:
            old = self.stages[number]
            elapsed = self._clock - old.started_us
            before = next((stage.before for stage in inside if stage.before), ())
            after = next((stage.after for stage in reversed(inside) if stage.after), ())
            self.stages[number] = Stage(
                number, old.name, old.parent, old.kernel, before, after, old.started_us, elapsed, (), (), ()
            )

    def text(
        self,
        name: str,
        language: str,
        operations: Sequence[Operation],
        *,
        kind: str = "",
        subject: str = "",
        parent: int | None = None,
        kernel: int | None = None,
        law: str = "",
        elapsed_us: float = 0.0,
        firings: Sequence[tuple[int, Sequence[Operation]]] = (),
        of: tuple[int, ...] = (),
        follows: str = "",
    ) -> int | None:
        """A stage whose result is a text; None where the text is the one before it, and no stage is made.

        Args:
            kind: of the nodes that operations become; "" for none.
            subject: what the text is of; it is compared with the last text of that subject.
            law: what the pass does, as text.
            of: the nodes that all lines were made for.
            follows: the subject whose last text comes before the first text of this one.
            firings: rules that fired inside the pass, in order, each with the text after it.
        """
        last = self._last.get(subject) or self._last.get(follows if follows else subject)
        if last is not None and last.language == language:
            if [operation.text for operation in last.operations] == [operation.text for operation in operations]:
                return None
        self.budget.spend("lines", len(operations))
        came_from = self._origins(last, operations)
        operations = self._placed(last, operations, came_from)
        node_ids, root = self._graph(kind, operations) if kind else ([None] * len(operations), None)
        before = () if last is None or last.root is None or root is None else (last.root,)
        after = () if root is None else (root,)
        steps = self._steps(kind, before[0], root, firings) if before and root is not None else ()
        transform = self.transform(name, law or name) if before and not firings else None
        number = self.stage(
            name,
            parent=parent,
            kernel=kernel,
            before=before or after,
            after=after,
            elapsed_us=elapsed_us,
            steps=steps,
            transform=transform,
        )
        self._link(name, number, last, operations, node_ids, came_from)
        lines = tuple(
            TextLine(
                operation.text[: self.budget.limits.columns],
                self._nodes_of_line(operation, node, of),
                origin,
            )
            for operation, node, origin in zip(operations, node_ids, came_from)
        )
        text = StageText(len(self.texts), number, language, lines, "", None if last is None else last.text)
        self.texts.append(text)
        self._last[subject] = _Last(text.id, language, operations, node_ids, root)
        return number

    def _nodes_of_line(self, operation: Operation, node: int | None, of: tuple[int, ...]) -> tuple[int, ...]:
        """The node of the operation, or those that it was made for; else a node for its source position."""
        if node is None and (nodes := self.nodes_of(operation.of) if operation.of else of):
            return nodes
        if node is None and operation.place is not None:
            node = self._lines.get(operation.place)
            if node is None:
                where = f"{PurePath(operation.place.file).name}:{operation.place.line}"
                node = self._lines[operation.place] = self.node(
                    "line", "line", arg=where, detail=where, place=operation.place
                )
        return () if node is None else (node,)

    def _steps(
        self, kind: str, before: int, after: int, firings: Sequence[tuple[int, Sequence[Operation]]]
    ) -> tuple[Step, ...]:
        """Builds the steps from one module to the next: one for each rule that fired, one for the rest of the pass."""
        steps = []
        for rule, operations in firings:
            _, root = self._graph(kind, operations)
            if root is not None and root != before:
                steps.append(Step(rule, before, root, 0.0))
                before = root
        if before != after:
            steps.append(Step(None, before, after, 0.0))
        return tuple(steps)

    def _graph(self, kind: str, operations: Sequence[Operation]) -> tuple[list[int | None], int | None]:
        """The node of each line, and a root of all that nothing uses."""
        value_of: dict[str, int] = {}
        waiting: list[tuple[str, int]] = []
        node_ids: list[int | None] = []
        in_region: dict[tuple[str, ...], list[int]] = {}
        unused: dict[int, None] = {}
        for operation in operations:
            self.budget.check_depth(len(operation.region))
            if not operation.op:
                node_ids.append(None)
                continue
            src = tuple(value_of[name] for name in operation.uses if name in value_of)
            tag: Hashable = None
            if operation.group == "buffer":
                tag = (operation.arg, operation.region)
            elif not operation.uses and operation.group != "const":
                tag = operation.defines
            node = self.node(
                kind,
                operation.op,
                src,
                dtype=operation.dtype,
                shape=operation.shape,
                arg=operation.arg,
                group=operation.group,
                place=operation.place,
                name=operation.defines[0] if operation.group == "buffer" and operation.defines else "",
                tag=tag,
            )
            waiting += [(name, node) for name in operation.uses if name not in value_of]
            value_of.update(dict.fromkeys(operation.defines, node))
            for source in src:
                unused.pop(source, None)
            unused[node] = None
            in_region.setdefault(operation.region, []).append(node)
            node_ids.append(node)
        self._add_regions(in_region)
        self.back_edges += [BackEdge(value_of[name], node) for name, node in waiting if value_of.get(name, -1) >= node]
        roots = tuple(unused)
        if not roots:
            return node_ids, None
        return node_ids, roots[0] if len(roots) == 1 else self.node(kind, "module", roots, group="control")

    def _add_regions(self, in_region: dict[tuple[str, ...], list[int]]) -> None:
        ids: dict[tuple[str, ...], int] = {}
        for path in [inner[:end] for inner in in_region for end in range(1, len(inner) + 1)]:
            if path in ids:
                continue
            nodes = tuple(dict.fromkeys(in_region.get(path, ())))
            key = (path, nodes, ids.get(path[:-1]))
            if key not in self._regions:
                self._regions[key] = len(self.regions)
                kind = "function" if len(path) == 1 else "block"
                self.regions.append(Region(len(self.regions), path[-1], kind, nodes, ids.get(path[:-1])))
            ids[path] = self._regions[key]

    @staticmethod
    def _origins(last: _Last | None, operations: Sequence[Operation]) -> list[int | None]:
        if last is None:
            return [None] * len(operations)
        locations = [[operation.place for operation in side] for side in (last.operations, operations)]
        return list(
            origins(
                [operation.text for operation in last.operations],
                [operation.text for operation in operations],
                *locations,
            )
        )

    @staticmethod
    def _placed(
        last: _Last | None, operations: Sequence[Operation], came_from: Sequence[int | None]
    ) -> Sequence[Operation]:
        """Gives operations without a place one: that of the same operation in the text before; else that of the first
        operation that uses it; else that of its first operand."""
        locations = [operation.place for operation in operations]
        for at, (operation, origin) in enumerate(zip(operations, came_from)):
            old = None if origin is None or last is None else last.operations[origin]
            if locations[at] is None and operation.op and old is not None and old.op == operation.op:
                locations[at] = old.place
        of_user: dict[str, Place | None] = {}
        for at in range(len(operations) - 1, -1, -1):
            operation = operations[at]
            if locations[at] is None and operation.op and operation.group != "buffer":
                locations[at] = next((of_user[name] for name in operation.defines if of_user.get(name)), None)
            if locations[at] is not None:
                of_user.update(dict.fromkeys(operation.uses, locations[at]))
        of_operand: dict[str, Place | None] = {}
        for at, operation in enumerate(operations):
            if locations[at] is None and operation.op and operation.group != "buffer":
                locations[at] = next((of_operand[name] for name in operation.uses if of_operand.get(name)), None)
            of_operand.update(dict.fromkeys(operation.defines, locations[at]))
        return [
            operation if operation.place is location else replace(operation, place=location)
            for operation, location in zip(operations, locations)
        ]

    def _link(
        self,
        how: str,
        stage: int,
        last: _Last | None,
        operations: Sequence[Operation],
        node_ids: Sequence[int | None],
        came_from: Sequence[int | None],
    ) -> None:
        """Links nodes to those of the text before, and to those of other levels that their keys name."""
        for operation, node, origin in zip(operations, node_ids, came_from):
            if node is None:
                continue
            old = None if origin is None or last is None else last.nodes[origin]
            if old is not None and old < node:
                self.links[Link(old, node, how, stage)] = None
            for source in self.nodes_of(operation.of):
                if source < node:
                    self.links[Link(source, node, how, stage)] = None
        for operation, node in zip(operations, node_ids):
            if node is not None:
                self._by_key.update(dict.fromkeys(operation.keys, node))

    def nodes_of(self, keys: Iterable[str]) -> tuple[int, ...]:
        """The nodes of operations by their keys; unknown keys are left out."""
        return tuple(dict.fromkeys(self._by_key[key] for key in keys if key in self._by_key))

    def connect(self, before: str, after: str, how: str, stage: int | None) -> None:
        """Links two operations by their keys, if both are known."""
        nodes = self.nodes_of((before,)), self.nodes_of((after,))
        for source in nodes[0]:
            for target in nodes[1]:
                if source != target:
                    self.links[Link(source, target, how, stage)] = None

    def kernel(self, name: str, device: str) -> int:
        """A kernel of the compiler; its name may carry colors for a terminal."""
        number = len(self.kernels)
        self.kernels.append(KernelInfo(number, plain(name), device, (), (), (), (), (), 0, 0, 0.0, False, None))
        return number

    def program(self, kernel: int, language: str, lines: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        """A listing of a kernel, each line with its nodes."""
        self.budget.spend("lines", len(lines))
        most = self.budget.limits.columns
        program_lines = tuple(Line(text[:most], nodes) for text, nodes in lines)
        self.programs.append(Program(len(self.programs), kernel, language, program_lines))

    def note(self, text: str, level: str = "note") -> None:
        """A message of the trace."""
        self.messages.append(Message(level, text, None))

    def skip(self, what: str, error: object) -> None:
        """Add a message about a part that could not be read, with the reason."""
        self.note(f"could not read {what}: {error}", "warning")

    def trace(self) -> Trace:
        """The trace, checked."""
        unread = tuple(message.text for message in self.messages if message.level == "warning")
        facts = tuple((name, text) for name, text in self.dump.facts.items())
        version = self.dump.version
        trace = Trace(
            TRACE_VERSION,
            self.dump.title or self._compiler,
            (("compiler", f"{self._compiler} {version}".strip()), *facts),
            tuple(self._sources.values()),
            tuple(self._frames.values()),
            tuple(self.nodes),
            tuple(self.rules),
            tuple(self.stages),
            tuple(self.links),
            tuple(self.kernels),
            tuple(self.programs),
            tuple(self.runs),
            (),
            tuple(self.messages),
            transforms=tuple(self.transforms),
            stage_texts=tuple(self.texts),
            regions=tuple(self.regions),
            back_edges=tuple(self.back_edges),
            dialect=Dialect(self._compiler, version, self._levels, self._languages, self._panels, unread),
        )
        check_trace(trace)
        return trace


def plain(text: str) -> str:
    """Text without a terminal's colors."""
    return _TERMINAL.sub("", text)


def sources_of(files: Iterable[str]) -> dict[str, str]:
    """The texts of files of Python, by the names under which a dump has them."""
    sources = {}
    for file in dict.fromkeys(files):
        text = "".join(linecache.getlines(file))
        if text:
            sources[f"sources/{file.lstrip('/')}"] = text
    return sources


__all__ = ["Building", "Operation", "Place", "plain", "sources_of"]
