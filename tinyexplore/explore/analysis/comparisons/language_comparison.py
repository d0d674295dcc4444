"""Language comparison: one kernel in several languages; each line has the nodes of the kernel's AST that it derives
from.

The AST from the scheduler, before any opt, is the same for every machine. The opts and passes of each machine are
recorded. So every UOp of a linear program, and every line rendered from it, can be traced back to nodes of the AST. Two
lines correspond if they derive from the same node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tinyexplore.explore.analysis.comparisons.languages import LanguageError, find_language
from tinyexplore.explore.tracefile.pictures.highlight import lines_html
from tinyexplore.explore.tracefile.result_display import DisplayableRow

AS_TEXT = 2  # columns of a printed comparison
COLUMN = 58  # characters of each column
_TABLE = "table-layout:fixed;width:100%;border-collapse:collapse"
_CELL = "text-align:left;vertical-align:top;padding:1px 8px"
_LINES = "margin:0;white-space:pre-wrap;overflow-wrap:anywhere"
Run = tuple[int | None, int, int]  # adjacent lines of one row: the row, the first line, and the line after the last


@dataclass(frozen=True, slots=True, repr=False)
class LineOrigin(DisplayableRow):
    """The key by which lines are aligned: a node of the kernel's AST, or the end of its loop.

    label: as in `Node`.
    detail: as in `Node`.
    group: as in `Node`.
    node: the node's id in the trace, None if it is not in the trace.
    ends: whether it is the end of the loop.
    """

    label: str
    detail: str
    group: str
    node: int | None
    ends: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class LanguageLine(DisplayableRow):
    """A line of a text. Numbers are positions in `LanguageComparison.origins`.

    text: the line.
    row: the origin by which it is aligned, None for text without a UOp.
    origins: all origins of the line.
    """

    text: str
    row: int | None
    origins: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class TranslationData(DisplayableRow):
    """A kernel in one language, as the panel of languages draws it."""

    target: str
    """The language or machine as requested, or both."""
    words: str
    """Display name of the language."""
    machine: str
    """The machine for which it is compiled."""
    language: str
    """The key of the language, for highlighting."""
    opts: tuple[str, ...]
    """The opts of the kernel on that machine."""
    lines: tuple[tuple[str, int | None, tuple[int, ...]], ...]
    """Text, alignment origin, and all origins of each line."""
    refusal: str
    """Why there are no lines; "" if there are."""


@dataclass(frozen=True, slots=True, repr=False)
class LanguageComparisonData(DisplayableRow):
    """A kernel in several languages, as the panel of languages draws it."""

    kernel: str
    """Name of the kernel."""
    origins: tuple[tuple[str, str, str, int | None, bool], ...]
    """Label, detail, group, id in the trace, and whether its loop ends here, for each node of the AST."""
    translations: tuple[TranslationData, ...]
    """The texts, one for each target."""


@dataclass(frozen=True, slots=True, repr=False)
class Translation(DisplayableRow):
    """The kernel in one language.

    target: the language and machine as requested.
    words: the display name of the language.
    machine: the machine for which it is compiled.
    language: the key of the language, as in `Program`.
    name: the name of the program.
    opts: the opts chosen for the machine.
    lines: the lines of the text.
    refusal: why there are no lines, "" if there are.
    """

    target: str
    words: str
    machine: str
    language: str
    name: str
    opts: tuple[str, ...]
    lines: tuple[LanguageLine, ...]
    refusal: str = ""

    @property
    def head(self) -> tuple[str, str]:
        """The heading of the text: the language, the machine and its opts, or the reason why there is no text."""
        return f"{self.words} · {self.machine}", ", ".join(self.opts) or self.refusal or "no opts"

    @property
    def source(self) -> str:
        """The text of all lines."""
        return "\n".join(line.text for line in self.lines) + "\n"

    def as_data(self) -> TranslationData:
        """Returns the data that the panel draws."""
        lines = tuple([(line.text, line.row, line.origins) for line in self.lines])
        return TranslationData(self.target, self.words, self.machine, self.language, self.opts, lines, self.refusal)


@dataclass(frozen=True, slots=True, repr=False)
class AlignedLines(DisplayableRow):
    """Lines that are side by side.

    origin: the origin by which they are aligned, None for other text.
    spans: for each text the first line, and the line after the last.
    elsewhere: for a text without lines here, whether other lines of it derive from the origin.
    """

    origin: int | None
    spans: tuple[tuple[int, int], ...]
    elsewhere: tuple[bool, ...]


@dataclass(frozen=True, slots=True, repr=False)
class LanguageComparison(DisplayableRow):
    """A kernel in several languages. `rows()` returns aligned lines.

    kernel: the name of the kernel.
    origins: the keys by which lines are aligned.
    translations: the texts; `comparison["cuda"]` returns one.
    """

    kernel: str
    origins: tuple[LineOrigin, ...]
    translations: tuple[Translation, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The languages as requested."""
        return tuple(translation.target for translation in self.translations)

    def __getitem__(self, target: str) -> Translation:
        name = find_language(self.targets, target)
        return next(translation for translation in self.translations if translation.target == name)

    def rows(self, *targets: str) -> tuple[AlignedLines, ...]:
        """Returns the texts of `targets` (by default all) side by side, each in its own order."""
        columns = [self[target] for target in targets or self.targets]
        return align_lines([column.lines for column in columns])

    def text(self, *targets: str) -> str:
        """Returns the rows as text, each with its origin in front; by default for the first two texts."""
        columns = [self[target] for target in targets or self._choose_first_targets()]
        label = max((len(_format_origin(origin)) for origin in self.origins), default=0)
        lines = [_format_table_line("", label, [column.head[part] for column in columns]) for part in (0, 1)]
        for row in align_lines([column.lines for column in columns]):
            cells = [list(column.lines[start:stop]) for column, (start, stop) in zip(columns, row.spans)]
            for number in range(max(map(len, cells))):
                texts = [cell[number].text if number < len(cell) else "" for cell in cells]
                if number == 0:
                    texts = [text or _blank_text(row, column_number) for column_number, text in enumerate(texts)]
                name = _format_origin(self.origins[row.origin]) if number == 0 and row.origin is not None else ""
                lines.append(_format_table_line(name, label, texts))
        return "\n".join(lines)

    def _choose_first_targets(self) -> tuple[str, ...]:
        return tuple([translation.target for translation in self.translations if not translation.refusal][:AS_TEXT])

    def __str__(self) -> str:
        return self.text()

    def to_html(self, *targets: str) -> str:
        """Returns the rows as an HTML table; by default for the first two texts."""
        columns = [self[target] for target in targets or self._choose_first_targets()]
        colors = [lines_html(column.language, [line.text for line in column.lines], inline=True) for column in columns]
        head = "".join(
            f'<th style="{_CELL}">{escape(column.head[0])}<br><small>{escape(column.head[1])}</small></th>'
            for column in columns
        )
        body = []
        for row in align_lines([column.lines for column in columns]):
            name = "" if row.origin is None else _format_origin(self.origins[row.origin])
            cells = []
            for number, (start, stop) in enumerate(row.spans):
                lines = "\n".join(colors[number][start:stop])
                cell = (
                    f'<pre style="{_LINES}">{lines}</pre>'
                    if stop > start
                    else f"<small>{_blank_text(row, number)}</small>"
                )
                cells.append(f'<td style="{_CELL}">{cell}</td>')
            body.append(f'<tr><th style="{_CELL}"><small>{escape(name)}</small></th>{"".join(cells)}</tr>')
        table = f'<table style="{_TABLE}"><thead><tr><th style="width:7em"></th>'
        return f"{table}{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.to_html()}

    def as_data(self) -> LanguageComparisonData:
        """Returns the data that the panel draws."""
        return LanguageComparisonData(
            self.kernel,
            tuple([(origin.label, origin.detail, origin.group, origin.node, origin.ends) for origin in self.origins]),
            tuple([translation.as_data() for translation in self.translations]),
        )


def align_lines(texts: Sequence[Sequence[LanguageLine]]) -> tuple[AlignedLines, ...]:
    """Aligns the lines of several texts in rows, without reordering.

    Groups of adjacent lines of one row are matched from the first text to the last, with the most matches that do not
    cross.
    """
    rows: list[tuple[int | None, tuple[tuple[int, int], ...]]] = []
    for count, text in enumerate(texts):
        text_runs = runs(text)
        matched = []
        for row, run in _match_rows([row for row, _ in rows], [run[0] for run in text_runs]):
            spans = ((0, 0),) * count if row is None else rows[row][1]
            span = (0, 0) if run is None else text_runs[run][1:]
            key = rows[row][0] if row is not None else text_runs[run or 0][0]
            matched.append((key, (*spans, span)))
        rows = matched
    everywhere = [{origin for line in text for origin in line.origins} for text in texts]
    return tuple(
        AlignedLines(
            key, spans, tuple([start == stop and key in keys for (start, stop), keys in zip(spans, everywhere)])
        )
        for key, spans in rows
    )


def runs(lines: Sequence[LanguageLine]) -> list[Run]:
    """Groups adjacent lines of one row."""
    text_runs: list[Run] = []
    for number, line in enumerate(lines):
        if text_runs and text_runs[-1][0] == line.row:
            text_runs[-1] = (line.row, text_runs[-1][1], number + 1)
        else:
            text_runs.append((line.row, number, number + 1))
    return text_runs


def _match_rows(a: Sequence[int | None], b: Sequence[int | None]) -> list[tuple[int | None, int | None]]:
    """Aligns `a` and `b` by a common subsequence; returns pairs of positions, None for a line without a partner.

    The subsequence has the most nodes of the AST, and among these the most lines without a UOp.
    """
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        row, below = best[i], best[i + 1]
        for j in reversed(range(len(b))):
            worth = 1 if a[i] is None else len(a) + len(b)
            row[j] = below[j + 1] + worth if a[i] == b[j] else max(below[j], row[j + 1])
    pairs: list[tuple[int | None, int | None]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif j == len(b) or (i < len(a) and best[i + 1][j] >= best[i][j + 1]):
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    return pairs


def _format_origin(origin: LineOrigin) -> str:
    return f"{origin.label} {origin.detail}" if origin.ends else origin.label


def _blank_text(row: AlignedLines, number: int) -> str:
    start, stop = row.spans[number]
    if start != stop or row.origin is None:
        return ""
    return "· at another place" if row.elsewhere[number] else "· no counterpart"


def _format_table_line(name: str, label: int, cells: Sequence[str]) -> str:
    clipped = [cell if len(cell) <= COLUMN else f"{cell[: COLUMN - 1]}…" for cell in cells]
    return f"{name:{label}} │ " + " │ ".join(f"{cell:{COLUMN}}" for cell in clipped).rstrip()


__all__ = [
    "LineOrigin",
    "LanguageComparison",
    "LanguageError",
    "LanguageLine",
    "AlignedLines",
    "Translation",
    "align_lines",
]
