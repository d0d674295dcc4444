"""Reads tinygrad: every rewrite of its graphs, with the rule and the position of its pattern.

`record` runs in a process that has tinygrad and writes plain tables; `read` needs no tinygrad.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import os.path
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from tinyexplore.explore.foreign.dump import Budget, Dump, ForeignError
from tinyexplore.explore.foreign.rewrite_driver import RewriteDriver
from tinyexplore.explore.foreign.tinygrad_versions import TrackedRewrite, Tracking
from tinyexplore.explore.foreign.trace_builder import ForeignTraceBuilder, Place, sources_of, strip_colors
from tinyexplore.explore.tracefile.model import Level, Link
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.util.config import environment_default
from tinyexplore.util.untrusted_data import JsonLimits, bounded_json

TABLES = "rewrites.json"
TRACKING = {"TRACK_MATCH_STATS": "2", "TRACEMETA": "2", "PARALLEL": "0", "CACHELEVEL": "0", "VIZ": "0"}
_GROUPS = {
    "memory": "LOAD STORE INDEX COPY CONTIGUOUS STAGE SLICE SHRINK",
    "buffer": "BUFFER PARAM BUFFER_VIEW DEFINE_GLOBAL DEFINE_LOCAL DEFINE_REG DEFINE_ACC",
    "reduce": "REDUCE REDUCE_AXIS ALLREDUCE WMMA",
    "loop": "RANGE END SPECIAL",
    "const": "CONST",
    "movement": "VIEW RESHAPE EXPAND PERMUTE PAD FLIP STACK CAST BITCAST BROADCAST",
    "control": "SINK KERNEL CALL FUNCTION PROGRAM LINEAR AFTER GROUP BARRIER SOURCE BINARY TUPLE GETTUPLE DEVICE"
    " UNIQUE",
}
_GROUP_OF = {op: group for group, ops in _GROUPS.items() for op in ops.split()}
_COLUMNS = ("op", "dtype", "arg", "tag", "src", "user")
_LANGUAGES = (("c", "C"),)
_MAX_ARG_CHARACTERS = 380  # characters of an argument; a digest replaces the rest
_PANELS = ("rewrites", "history", "kernels", "lines")
_SHOWN_ARG = frozenset(("CONST", "RANGE", "PARAM", "REDUCE", "SPECIAL"))


def record(f: Callable[[], Any], *, title: str = "") -> Dump:
    """Calls `f`, realizes its result, and returns the rewrites of tinygrad during the call.

    Raises:
        ModuleNotFoundError: tinygrad is not installed.
        ForeignError: tinygrad was imported without tracking, or its version has none.
    """
    with ExitStack() as settings:
        for name, value in TRACKING.items():  # tinygrad reads these variables when it is imported
            settings.enter_context(environment_default(name, value))
        import tinygrad
        from tinygrad.helpers import Context

        tracking = Tracking()

    if not tracking.is_on:
        raise ForeignError(
            "tinygrad was imported without tracking: import tinyexplore's recorder first, or start Python with "
            + " ".join(f"{name}={value}" for name, value in TRACKING.items())
        )
    first = tracking.count
    with Context(TRACK_MATCH_STATS=2), _UserLines(tinygrad.tensor) as lines:
        result = f()
        if hasattr(result, "realize"):
            result.realize()
    tracking.stop()
    writer = _Writer(tracking.fields, lines.places)
    groups = [[name, [writer.rewrite(rewrite) for rewrite in rewrites]] for name, rewrites in tracking.groups(first)]
    tables = {**writer.tables(), "groups": groups}
    files = {TABLES: json.dumps(tables, separators=(",", ":")), **sources_of(file for file, _ in lines.places.values())}
    return Dump("tinygrad", tracking.version, title or getattr(f, "__name__", "tinygrad"), files)


class _UserLines:
    """A context manager that adds the user's line to tinygrad's metadata of Tensor methods.

    places: (file, line) by the `id()` of the metadata object.
    notes: the metadata objects, kept alive so that their `id()` stays unique.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._inside = os.path.dirname(module.__file__)
        self.places: dict[int, tuple[str, int]] = {}
        self.notes: list[Any] = []

    def __enter__(self) -> _UserLines:
        self._original = original = self._module.Metadata

        def metadata(*args: Any, **options: Any) -> Any:
            note = original(*args, **options)
            frame: Any = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(self._inside):
                frame = frame.f_back
            if frame is not None and frame.f_code.co_filename != __file__:
                self.places[id(note)] = (frame.f_code.co_filename, frame.f_lineno)
                self.notes.append(note)
            return note

        self._module.Metadata = metadata
        return self

    def __exit__(self, *_: object) -> None:
        self._module.Metadata = self._original


class _Writer:
    """Writes UOps and rules as tables, each once."""

    def __init__(self, fields: Mapping[int, tuple[Any, ...]], locations: Mapping[int, tuple[str, int]]) -> None:
        self._fields = fields
        self._places = locations
        self._rows: dict[int, int] = {}  # tinygrad's number of a UOp → its row
        self._uops: dict[tuple[Any, ...], int] = {}
        self._users: list[tuple[int, int, int]] = []
        self._texts: dict[str, int] = {}
        self._rules: dict[tuple[str, int], int] = {}

    def rewrite(self, rewrite: TrackedRewrite) -> list[Any]:
        """Returns a rewrite as data: name, UOp, depth, whether it is a single walk, whether it enters calls; then its
        matches.

        The matches are stored as columns.
        """
        rows = [
            (self.uop(a), self.uop(b), self._add_rule(location), round(s * 1e6, 2))
            for a, b, location, s in rewrite.matches
        ]
        flags = [rewrite.depth, int(rewrite.walk), int(rewrite.enter_calls)]
        columns = [[row[column] for row in rows] for column in range(4)]
        return [rewrite.name, self.uop(rewrite.sink), *flags, *columns]

    def uop(self, number: int) -> int:
        """Returns the row of a UOp, by tinygrad's number; adds it after its sources if it is missing."""
        stack = [number]
        while stack:
            pending = [source for source in self._fields[stack[-1]][2] if source not in self._rows]
            stack += pending
            if not pending:
                top = stack.pop()
                self._rows[top] = self._add_row(*self._fields[top])
        return self._rows[number]

    def _add_row(self, op: Any, dtype: Any, src: tuple[int, ...], arg: Any, tag: Any, *metadata: Any) -> int:
        text = "" if arg is None else strip_colors(_argument_text(arg))
        if len(text) > _MAX_ARG_CHARACTERS and op.name != "SOURCE":
            shown = f"{len(arg)} bytes" if isinstance(arg, bytes) else text[:_MAX_ARG_CHARACTERS]
            text = f"{shown} … {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        kind = str(dtype).removeprefix("dtypes.")
        texts = (op.name, "" if kind == "void" else kind, text, "" if tag is None else str(tag))
        key = (*map(self._text, texts), *(self._rows[number] for number in src))
        if key not in self._uops:
            notes = (metadata or [()])[0] or ()
            file, line = next((self._places[id(note)] for note in notes if id(note) in self._places), ("", 0))
            self._uops[key] = len(self._uops)
            self._users.append((self._text(file), line, self._text(",".join(note.name for note in notes))))
        return self._uops[key]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _add_rule(self, location: tuple[Any, ...]) -> int:
        return self._rules.setdefault((location[0], location[1]), len(self._rules))

    def tables(self) -> dict[str, Any]:
        """Returns the tables; the sources of a UOp are distances to earlier rows."""
        columns: dict[str, Any] = {
            name: [row[column] for row in self._uops] for column, name in enumerate(_COLUMNS[:4])
        }
        columns["src"] = [[number - source for source in row[4:]] for number, row in enumerate(self._uops)]
        columns["user"] = self._users
        rules = [
            ["tinygrad/" + file.rpartition("/tinygrad/")[2], line, linecache.getline(file, line).strip()]
            for file, line in self._rules
        ]
        return {"texts": list(self._texts), "rules": rules, "uops": columns}


def _argument_text(arg: Any) -> str:
    """Returns an argument as text. Kernels of tinygrad 0.11 contain the number of a UOp, and their own `str` fails."""
    try:
        return str(arg)
    except AttributeError:
        return f"{type(arg).__name__}({vars(arg)})"


def recognizes(dump: Dump) -> bool:
    """Whether `record` wrote the dump."""
    return dump.compiler == "tinygrad" and TABLES in dump.files


def read(dump: Dump, budget: Budget) -> Trace:
    """Returns the trace of the rewrites.

    Raises:
        ForeignError: the tables are damaged.
    """
    limits = JsonLimits(budget.limits.nbytes, 16_000_000, 16, 1 << 30)
    levels = (Level("uop", "UOp", "UOps", "program"),)
    building = ForeignTraceBuilder(
        dump, budget, compiler="tinygrad", levels=levels, languages=_LANGUAGES, panels=_PANELS
    )
    try:
        tables = bounded_json(dump.files[TABLES], limits)
        reader = _Reader(building, tables)
        for name, rewrites in tables["groups"]:
            reader.group(name, rewrites)
    except ForeignError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ForeignError(f"{TABLES} is damaged ({type(error).__name__}: {error})") from None
    return building.trace()


def is_function(name: str) -> bool:
    """Whether the name of a rewrite is that of a function that calls rewrites."""
    return name.isidentifier() and name != "graph_rewrite"


class _Reader:
    """Builds the nodes of UOps and the stages of rewrites."""

    def __init__(self, building: ForeignTraceBuilder, tables: Any) -> None:
        self._b = building
        self._texts = tables["texts"]
        self._rules = [
            building.rule(file, line, text, doc=f"tinygrad's pattern at {file}:{line}")
            for file, line, text in tables["rules"]
        ]
        self._parts: dict[int, tuple[str, str, str, Place | None, tuple[str, ...]]] = {}  # op, arg, tag, user, calls
        self._equal: dict[tuple[Any, ...], dict[str, int]] = {}  # all fields but the dtype → node by dtype
        self._nodes: list[int] = []
        for row in zip(*(tables["uops"][name] for name in _COLUMNS)):
            self._nodes.append(self._add_recorded_node(*row))

    def _add_recorded_node(self, op: int, dtype: int, arg: int, tag: int, distances: list[int], user: list[Any]) -> int:
        number = len(self._nodes)
        if not all(1 <= distance <= number for distance in distances):
            raise ValueError(f"UOp {number} has a source that is not before it")
        file, line, calls = (self._texts[user[0]], user[1], self._texts[user[2]])
        location = Place(file, line) if file else None
        parts = (
            self._texts[op],
            self._texts[arg],
            self._texts[tag],
            location,
            tuple(calls.split(",")) if calls else (),
        )
        return self._add_node(
            tuple(self._nodes[number - distance] for distance in distances), self._texts[dtype], parts
        )

    def _add_node(
        self, src: tuple[int, ...], dtype: str, parts: tuple[str, str, str, Place | None, tuple[str, ...]]
    ) -> int:
        op, arg, tag, location, calls = parts
        node = self._b.node(
            "uop",
            op,
            src,
            dtype=dtype,
            arg=arg,
            detail=arg if op in _SHOWN_ARG else "",
            group=_GROUP_OF.get(op, "alu"),
            place=location,
            calls=calls,
            tag=tag,
        )
        self._parts[node] = parts
        self._equal.setdefault((op, src, arg, tag), {}).setdefault(dtype, node)
        return node

    def _replace_sources(self, node: int, src: tuple[int, ...]) -> int:
        """Returns the node with other sources.

        tinygrad may change the dtype when it rebuilds a node. Only a recorded node has this dtype, so it has priority.
        """
        old, parts = self._b.nodes[node], self._parts[node]
        equal_nodes = self._equal.get((parts[0], src, parts[1], parts[2]))
        if equal_nodes:
            return equal_nodes.get(old.dtype, next(iter(equal_nodes.values())))
        return self._add_node(src, old.dtype, parts)

    def group(self, name: str, rewrites: list[Any]) -> None:
        """Adds the rewrites of one schedule or kernel."""
        is_kernel = bool(re.match(r"[rE]_|copy |view ", name))
        kernel = self._b.kernel(name, self._b.dump.facts.get("device", "CPU")) if is_kernel else None
        group = self._b.stage(name, kernel=kernel)
        around = [(group, -1)]  # open stages with their depth
        for number, (title, sink, depth, walk, enter_calls, *columns) in enumerate(rewrites):
            matches = [(self._nodes[a], self._nodes[b], self._rules[rule], us) for a, b, rule, us in zip(*columns)]
            while len(around) > 1 and around[-1][1] >= depth:
                self._b.close_stage(around.pop()[0])
            parent = around[-1][0]
            if is_function(title) and not matches and number + 1 < len(rewrites) and rewrites[number + 1][2] > depth:
                self._b.budget.check_depth(len(around))
                around.append((self._b.stage(title, parent=parent, kernel=kernel), depth))
                continue
            before = self._nodes[sink]
            rewriting = RewriteDriver(self._b.nodes, self._replace_sources, matches, bool(walk), bool(enter_calls))
            after = rewriting.final_node(before)
            steps = rewriting.steps()
            elapsed = sum(us for *_, us in matches)
            stage = self._b.stage(
                title, parent=parent, kernel=kernel, before=(before,), after=(after,), elapsed_us=elapsed, steps=steps
            )
            for step in steps:
                kind = "rebuild" if step.rule is None else "rewrite"
                self._b.links[Link(step.before, step.after, kind, stage)] = None
        for stage, _ in reversed(around[1:]):
            self._b.close_stage(stage)
        self._b.close_stage(group)
        if kernel is not None:
            self._add_listing(name, kernel, group)

    def _add_listing(self, name: str, kernel: int, group: int) -> None:
        """Adds the source code from the last rewrites of a kernel, and its list of UOps."""
        nodes = self._b.nodes
        programs = [
            nodes[number] for stage in self._b.stages[group:] for number in stage.after if nodes[number].op == "PROGRAM"
        ]
        for program in reversed(programs):
            sources = [number for number in program.src if nodes[number].op == "SOURCE"]
            if sources:
                text = self._parts[sources[0]][1]
                self._b.program(kernel, "c", [(line, ()) for line in text.splitlines()])
                return


__all__ = ["TRACKING", "is_function", "read", "recognizes", "record"]
