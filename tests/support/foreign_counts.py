"""Counts of the recorded dumps: `python -m tests.support.foreign_counts` writes the table of docs/foreign.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tinyexplore.explore.foreign import Dump, read_dump
from tinyexplore.explore.tracefile.model import StageText, TextLine
from tinyexplore.explore.tracefile.queries import user_lines
from tinyexplore.explore.tracefile.trace import Trace

FOLDER = Path(__file__).resolve().parents[2] / "notebooks" / "recorded"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "foreign.md"
DUMPS = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))
BEGIN, END = "<!-- counts: begin -->\n", "<!-- counts: end -->\n"
HEAD = """| dump | version | stages | nodes | lines | operations | with a line of Python | linked | kB |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""
LINEAR = ("llvm", "mir", "llir", "asm", "ptx")  # their indented lines are instructions, with a node or without
_NOT_OPERATIONS = frozenset(("parameter", "lambda", "module", "func.func", "block", "placeholder", "output", "line"))


@cache
def dump(name: str) -> Dump:
    """A recorded dump."""
    return Dump.load(FOLDER / f"{name}.json.gz")


@cache
def traced(name: str) -> Trace:
    """The trace of a recorded dump."""
    return read_dump(dump(name))


def operations_of(trace: Trace, text: StageText) -> list[TextLine]:
    """The lines that are operations, without inputs, outputs and what contains operations."""
    if text.language in LINEAR:
        return [line for line in text.lines if line.text.startswith(" ") and not line.text.rstrip().endswith(":")]
    left_out = () if text.language == "python" else _NOT_OPERATIONS  # a line of generated code may have its place alone
    return [line for line in text.lines if line.nodes and trace.nodes[line.nodes[0]].op not in left_out]


def is_placed(trace: Trace, line: TextLine) -> bool:
    """Whether a line leads to a line of the user's program."""
    return any(trace.nodes[node].user is not None for node in line.nodes)


@dataclass(frozen=True, slots=True)
class DumpCounts:
    """What a recorded dump holds.

    name: of the dump.
    version: of the compiler.
    stages: passes and rewrites, and the groups of these.
    nodes: of all graphs.
    lines: of all texts.
    operations: lines that are operations; the nodes of a dump without texts.
    placed: of these, those that lead to a line of the user's program.
    linked: of these, those that lead to a line or a node of another stage.
    nbytes: its size in the repository.
    """

    name: str
    version: str
    stages: int
    nodes: int
    lines: int
    operations: int
    placed: int
    linked: int
    nbytes: int

    def row(self) -> str:
        """The row of the table."""
        numbers = (self.stages, self.nodes, self.lines, self.operations)
        shares = (f"{100 * part / self.operations:.1f} %" for part in (self.placed, self.linked))
        cells = (self.name, self.version, *(f"{one:,}" for one in numbers), *shares, f"{self.nbytes / 1000:.1f}")
        return f"| {' | '.join(cells)} |\n"


def counts(name: str) -> DumpCounts:
    """The counts of one dump."""
    trace = traced(name)
    of_links = {node for link in trace.links for node in (link.src, link.dst)}
    rows = [line for text in trace.stage_texts for line in operations_of(trace, text)]
    if rows:
        placed = sum(is_placed(trace, line) for line in rows)
        linked = sum(line.origin is not None or not of_links.isdisjoint(line.nodes) for line in rows)
    else:
        placed = sum(bool(user_lines(trace, node)) for node in trace.nodes)
        linked = sum(node.id in of_links for node in trace.nodes)
    return DumpCounts(
        name=name,
        version=trace.dialect.version if trace.dialect is not None else "",
        stages=len(trace.stages),
        nodes=len(trace.nodes),
        lines=sum(len(text.lines) for text in trace.stage_texts),
        operations=len(rows) or len(trace.nodes),
        placed=placed,
        linked=linked,
        nbytes=(FOLDER / f"{name}.json.gz").stat().st_size,
    )


def table(names: Iterable[str] = DUMPS) -> str:
    """The table of all dumps."""
    return HEAD + "".join(counts(name).row() for name in names)


def with_table(page: str) -> str:
    """The page with the table of today."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
