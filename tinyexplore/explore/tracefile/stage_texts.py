"""Searches the texts of stages: lines that match a text, the history of a line, and the changes of a stage."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tinyexplore.explore.tracefile.model import Stage, StageText, TextLine, TraceTables
from tinyexplore.explore.tracefile.result_display import DisplayableRow

CONTEXT = 3  # number of equal lines around a change


@dataclass(frozen=True, slots=True, repr=False)
class TextPlace(DisplayableRow):
    """A line of the text after a stage.

    stage: the stage.
    text: the text of the stage.
    number: the line number, from 0.
    line: the line.
    """

    stage: Stage
    text: StageText
    number: int
    line: TextLine

    def as_text(self) -> str:
        return f"after {self.stage.name}, line {self.number + 1}: {self.line.text.strip()}"


def find_lines(trace: TraceTables, text: str, language: str | None = None) -> tuple[TextPlace, ...]:
    """Returns the lines of all stages' texts that match a regular expression, ignoring case.

    Args:
        trace: the trace.
        text: the expression.
        language: a key of the dialect's languages; by default all.
    """
    pattern = re.compile(text, re.IGNORECASE)
    return tuple(
        TextPlace(trace.stages[stage_text.stage], stage_text, number, line)
        for stage_text in trace.stage_texts
        if language in (None, stage_text.language)
        for number, line in enumerate(stage_text.lines)
        if pattern.search(line.text)
    )


def line_history(trace: TraceTables, text: StageText | int, number: int) -> tuple[TextPlace, ...]:
    """Returns the history of a line: the lines from which it was derived, oldest first, and the line itself last.

    Texts in which the line is unchanged are omitted. A line without an origin follows its first node to the previous
    text, then to the last text of the previous language.

    Args:
        trace: the trace.
        text: the text of a stage, or its id.
        number: the line number, from 0.

    Raises:
        IndexError: there is no such text or line.
    """
    origin: tuple[StageText, int] | None = (trace.stage_texts[text] if isinstance(text, int) else text, number)
    history: list[TextPlace] = []
    while origin is not None:
        stage_text, number = origin
        text_place = TextPlace(trace.stages[stage_text.stage], stage_text, number, stage_text.lines[number])
        if (
            history
            and history[-1].text.language == stage_text.language
            and history[-1].line.text == text_place.line.text
        ):
            history[-1] = text_place  # the text of the line is older
        else:
            history.append(text_place)
        origin = _find_origin(trace, stage_text, text_place.line)
    return tuple(reversed(history))


def _find_origin(trace: TraceTables, text: StageText, line: TextLine) -> tuple[StageText, int] | None:
    """Returns the text and line from which a line was made: its recorded origin, else a line with a common node."""
    before = None if text.before is None else trace.stage_texts[text.before]
    if before is not None and line.origin is not None:
        return before, line.origin
    others = [earlier for earlier in reversed(trace.stage_texts[: text.id]) if earlier.language != text.language]
    for earlier in ([before] if before is not None else []) + others:
        number = next(
            (position for position, other in enumerate(earlier.lines) if set(line.nodes) & set(other.nodes)), None
        )
        if number is not None:
            return earlier, number
    return None


def changed_rows(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, int | None, str]]:
    """Returns the differences between a text and the previous text, as rows.

    - (" ", number, line): an equal line near a change
    - ("+", number, line): a new line
    - ("−", number, line): a removed line
    - ("…", None, count): equal lines farther away

    Numbers count from 1, in the text that has the line.
    """
    rows: list[tuple[str, int | None, str]] = []
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for number, (kind, low, high, start, end) in enumerate(blocks):
        if kind != "equal":
            rows += [("−", index + 1, before[index]) for index in range(low, high)]
            rows += [("+", index + 1, after[index]) for index in range(start, end)]
            continue
        head = CONTEXT if number > 0 else 0
        tail = CONTEXT if number < len(blocks) - 1 else 0
        hidden = end - start - head - tail
        shown = [*range(start, start + head), *range(end - tail, end)] if hidden > 1 else list(range(start, end))
        for index in shown:
            if hidden > 1 and index == end - tail:
                rows.append(("…", None, f"{hidden} equal lines"))
            rows.append((" ", index + 1, after[index]))
        if hidden > 1 and not tail:
            rows.append(("…", None, f"{hidden} equal lines"))
    return rows


__all__ = ["TextPlace", "changed_rows", "find_lines", "line_history"]
