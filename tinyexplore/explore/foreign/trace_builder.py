"""Builds a Trace from the results of a reader: nodes, rules, stages with a graph or a text, and the user's lines."""

from __future__ import annotations

import hashlib
import linecache
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from tinyexplore.explore.foreign.dump import Budget, Dump
from tinyexplore.explore.tracefile.line_origins import origins
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
from tinyexplore.explore.tracefile.validation import check_trace

_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MAX_ARG_CHARACTERS = 400  # most characters of an argument that are stored


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the user's code.

    file: the path of the file, as the compiler writes it.
    line: the line, from 1.
    function: the enclosing function, "" if unknown.
    span: (line, column, line, column), columns from 0; None if unknown.
    """

    file: str
    line: int
    function: str = ""
    span: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A line of a text.

    text: the line.
    op: the operation, "" if the line is no operation.
    defines: names of the values that it defines; a second definition of a name is another value.
    uses: names of the values that it reads.
    dtype: the type of its value.
    shape: the shape of its value, None if unknown.
    arg: its attributes as text.
    place: the user's line, None if unknown.
    group: the role, which gives the color, as in `Node.group`.
    region: the names of the enclosing blocks, outermost first.
    keys: the keys by which lines of other texts refer to it.
    of: the keys of the operations from which it was derived.
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
class _LastText:
    """The last text of one subject.

    text: its row.
    language: a key of the dialect's languages.
    operations: its lines.
    nodes: the node of each line.
    root: the node that represents the whole text.
    """

    text: int
    language: str
    operations: Sequence[Operation]
    nodes: Sequence[int | None]
    root: int | None


class ForeignTraceBuilder:
    """A trace under construction. Every part counts against the budget."""

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
        self._last: dict[str, _LastText] = {}
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
        """Returns the user's file, with its text if the dump has it or if it is a readable Python file."""
        if file not in self._sources:
            text = self.dump.files.get(f"sources/{file.lstrip('/')}", "")
            self._sources[file] = Source(len(self._sources), PurePath(file).name or file, text)
        return self._sources[file]

    def frame(self, location: Place | None) -> int | None:
        """Returns the id of the frame of a position; None without a position."""
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
        """Returns the id of a node. Nodes with equal content and position are one node; names may differ."""
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
            number,
            kind,
            op,
            src,
            dtype,
            shape,
            arg[:_MAX_ARG_CHARACTERS],
            digest,
            user,
            op,
            shown[:60],
            group,
            calls,
            name,
        )
        self.nodes.append(new_node)
        self._keys[key] = number
        return number

    def rule(self, file: str, line: int, text: str, *, doc: str = "") -> int:
        """Adds a rule of the compiler's source code, and returns its id."""
        number = len(self.rules)
        name = f"{PurePath(file).name}:{line}"
        self.rules.append(RuleInfo(number, name, text[:120], doc, file, max(line, 0), text))
        return number

    def transform(self, name: str, law: str) -> int:
        """Adds a pass over whole graphs, and returns its id."""
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
        """Adds a stage that begins at the end of the previous one, and returns its id."""
        self.budget.spend("steps", len(steps))
        number = len(self.stages)
        name = strip_colors(name)
        self.stages.append(
            Stage(
                number, name, parent, kernel, before, after, self._clock, elapsed_us, steps, (), (), transform=transform
            )
        )
        self._clock += elapsed_us
        return number

    def close_stage(self, number: int) -> None:
        """Sets the graphs and the time of an enclosing stage from the stages inside it."""
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
        """Adds a stage whose result is a text, and returns its id. If the text is unchanged, returns None.

        Args:
            name: the name of the stage.
            language: the key of the text's language.
            operations: the lines of the text.
            kind: the kind of nodes for operations; "" for no nodes.
            subject: the name of the program; its text is compared with the last text of that subject.
            parent: the enclosing stage.
            kernel: the kernel of the stage.
            law: the effect of the pass, as text.
            elapsed_us: the time of the stage, in microseconds.
            firings: the rules that fired inside the pass, in order, each with the text after it.
            of: the nodes from which all lines were derived.
            follows: the subject whose last text precedes the first text of this one.
        """
        last = self._last.get(subject) or self._last.get(follows if follows else subject)
        if last is not None and last.language == language:
            if [operation.text for operation in last.operations] == [operation.text for operation in operations]:
                return None
        self.budget.spend("lines", len(operations))
        came_from = self._list_origins(last, operations)
        operations = self._fill_in_places(last, operations, came_from)
        node_ids, root = self._make_graph(kind, operations) if kind else ([None] * len(operations), None)
        before = () if last is None or last.root is None or root is None else (last.root,)
        after = () if root is None else (root,)
        steps = self._make_steps(kind, before[0], root, firings) if before and root is not None else ()
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
                self._find_nodes_of_line(operation, node, of),
                origin,
            )
            for operation, node, origin in zip(operations, node_ids, came_from)
        )
        text = StageText(len(self.texts), number, language, lines, "", None if last is None else last.text)
        self.texts.append(text)
        self._last[subject] = _LastText(text.id, language, operations, node_ids, root)
        return number

    def _find_nodes_of_line(self, operation: Operation, node: int | None, of: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the nodes of a line: of its operation, of those that it was derived from, or of its position."""
        if node is None and (nodes := self.nodes_of(operation.of) if operation.of else of):
            return nodes
        if node is None and operation.place is not None:
            node = self._lines.get(operation.place)
            if node is None:
                position = f"{PurePath(operation.place.file).name}:{operation.place.line}"
                node = self._lines[operation.place] = self.node(
                    "line", "line", arg=position, detail=position, place=operation.place
                )
        return () if node is None else (node,)

    def _make_steps(
        self, kind: str, before: int, after: int, firings: Sequence[tuple[int, Sequence[Operation]]]
    ) -> tuple[Step, ...]:
        """Returns the steps from one module to the next: one for each rule that fired, one for the rest of the pass."""
        steps = []
        for rule, operations in firings:
            _, root = self._make_graph(kind, operations)
            if root is not None and root != before:
                steps.append(Step(rule, before, root, 0.0))
                before = root
        if before != after:
            steps.append(Step(None, before, after, 0.0))
        return tuple(steps)

    def _make_graph(self, kind: str, operations: Sequence[Operation]) -> tuple[list[int | None], int | None]:
        """Returns the node of each line, and a root node above all unused values."""
        value_of: dict[str, int] = {}
        unresolved: list[tuple[str, int]] = []
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
            unresolved += [(name, node) for name in operation.uses if name not in value_of]
            value_of.update(dict.fromkeys(operation.defines, node))
            for source in src:
                unused.pop(source, None)
            unused[node] = None
            in_region.setdefault(operation.region, []).append(node)
            node_ids.append(node)
        self._add_regions(in_region)
        self.back_edges += [
            BackEdge(value_of[name], node) for name, node in unresolved if value_of.get(name, -1) >= node
        ]
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
    def _list_origins(last: _LastText | None, operations: Sequence[Operation]) -> list[int | None]:
        if last is None:
            return [None] * len(operations)
        locations = [
            [operation.place for operation in side_operations] for side_operations in (last.operations, operations)
        ]
        return list(
            origins(
                [operation.text for operation in last.operations],
                [operation.text for operation in operations],
                *locations,
            )
        )

    @staticmethod
    def _fill_in_places(
        last: _LastText | None, operations: Sequence[Operation], came_from: Sequence[int | None]
    ) -> Sequence[Operation]:
        """Returns the operations with missing positions filled in.

        An operation gets the position of the same operation in the previous text, else that of its first user, else
        that of its first operand.
        """
        locations = [operation.place for operation in operations]
        for index, (operation, origin) in enumerate(zip(operations, came_from)):
            old = None if origin is None or last is None else last.operations[origin]
            if locations[index] is None and operation.op and old is not None and old.op == operation.op:
                locations[index] = old.place
        of_user: dict[str, Place | None] = {}
        for index in range(len(operations) - 1, -1, -1):
            operation = operations[index]
            if locations[index] is None and operation.op and operation.group != "buffer":
                locations[index] = next((of_user[name] for name in operation.defines if of_user.get(name)), None)
            if locations[index] is not None:
                of_user.update(dict.fromkeys(operation.uses, locations[index]))
        of_operand: dict[str, Place | None] = {}
        for index, operation in enumerate(operations):
            if locations[index] is None and operation.op and operation.group != "buffer":
                locations[index] = next((of_operand[name] for name in operation.uses if of_operand.get(name)), None)
            of_operand.update(dict.fromkeys(operation.defines, locations[index]))
        return [
            operation if operation.place is location else replace(operation, place=location)
            for operation, location in zip(operations, locations)
        ]

    def _link(
        self,
        how: str,
        stage: int,
        last: _LastText | None,
        operations: Sequence[Operation],
        node_ids: Sequence[int | None],
        came_from: Sequence[int | None],
    ) -> None:
        """Links nodes to those of the previous text, and to nodes of other levels that their keys name."""
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
        """Returns the nodes of operations by their keys; ignores unknown keys."""
        return tuple(dict.fromkeys(self._by_key[key] for key in keys if key in self._by_key))

    def connect(self, before: str, after: str, how: str, stage: int | None) -> None:
        """Links two operations by their keys, if both are known."""
        nodes = self.nodes_of((before,)), self.nodes_of((after,))
        for source in nodes[0]:
            for target in nodes[1]:
                if source != target:
                    self.links[Link(source, target, how, stage)] = None

    def kernel(self, name: str, device: str) -> int:
        """Adds a kernel of the compiler, and returns its id. Terminal colors are removed from the name."""
        number = len(self.kernels)
        self.kernels.append(KernelInfo(number, strip_colors(name), device, (), (), (), (), (), 0, 0, 0.0, False, None))
        return number

    def program(self, kernel: int, language: str, lines: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        """Adds a listing of a kernel, as (text, nodes) of each line."""
        self.budget.spend("lines", len(lines))
        most_columns = self.budget.limits.columns
        program_lines = tuple(Line(text[:most_columns], nodes) for text, nodes in lines)
        self.programs.append(Program(len(self.programs), kernel, language, program_lines))

    def note(self, text: str, level: str = "note") -> None:
        """Adds a message to the trace."""
        self.messages.append(Message(level, text, None))

    def skip(self, what: str, error: object) -> None:
        """Adds a message about a part that could not be read, with the reason."""
        self.note(f"could not read {what}: {error}", "warning")

    def trace(self) -> Trace:
        """Returns the trace after validation."""
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


def strip_colors(text: str) -> str:
    """Returns the text without terminal colors."""
    return _TERMINAL.sub("", text)


def sources_of(files: Iterable[str]) -> dict[str, str]:
    """Returns the texts of Python files, by their names in a dump."""
    sources = {}
    for file in dict.fromkeys(files):
        text = "".join(linecache.getlines(file))
        if text:
            sources[f"sources/{file.lstrip('/')}"] = text
    return sources


__all__ = ["ForeignTraceBuilder", "Operation", "Place", "strip_colors", "sources_of"]
