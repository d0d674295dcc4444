"""Displays of results: text for consoles and a table for notebooks, from the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from textwrap import fill, wrap
from typing import Any

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.encodable_text import for_terminal
from tinyexplore.explore.tracefile.hints import AttributeHints
from tinyexplore.explore.tracefile.texts import duration_text

CONSOLE_WIDTH = 120  # characters
NARROWEST = 16  # characters; a narrower column is not wrapped further
SEPARATOR = "  "
MAX_LISTED_VALUES = 12  # most values of a field that are listed; a longer field shows their number
LONGEST_WORD, LONGEST_CELL = 40, 400  # characters of a value in a line, and in a cell
_FIELDS_IN_LINE = 5
_LEFT = "text-align:left;vertical-align:top;white-space:pre-wrap;padding:2px 12px 2px 0"
_CODE = f"{_LEFT};font-family:var(--jp-code-font-family, monospace)"


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """Rows of text with a title.

    title: the line above the rows.
    columns: the heads of the columns.
    rows: one text per column.
    notes: the lines below the rows.
    code: the names of the columns in a monospaced font.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    code: frozenset[str] = field(default_factory=frozenset)

    def __repr__(self) -> str:
        return for_terminal(self.text())

    def _repr_html_(self) -> str:
        return self.html()

    def text(self) -> str:
        """Returns the table for a console of 120 columns, with aligned cells and wrapped long cells."""
        lines = [fill(self.title, CONSOLE_WIDTH)]
        rows = [row for row in (self.columns, *self.rows) if any(row)] if self.rows else []
        widths = _compute_widths(rows)
        split = [[_wrap_cell(cell, width) for cell, width in zip(row, widths)] for row in rows]
        for row in split:
            for part in range(max(map(len, row))):
                cells = [cell[part] if part < len(cell) else "" for cell in row]
                lines.append(SEPARATOR.join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
        return "\n".join([*lines, *(fill(note, CONSOLE_WIDTH) for note in self.notes)])

    def html(self) -> str:
        """Returns the table for a notebook. It sets only alignment, so it follows the notebook's theme."""
        heads = "".join(f"<th style='{_LEFT}'>{escape(name)}</th>" for name in self.columns)
        head = f"<tr>{heads}</tr>" if any(self.columns) else ""
        body = "".join(f"<tr>{self._cells(row)}</tr>" for row in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>" if self.rows else ""
        return f"<p><strong>{escape(self.title)}</strong></p>{table}{notes}"

    def _cells(self, row: Sequence[str]) -> str:
        styles = [_CODE if name in self.code else _LEFT for name in self.columns]
        return "".join(f"<td style='{style}'>{escape(cell)}</td>" for style, cell in zip(styles, row))


# A page in a frame follows the system's color scheme, not JupyterLab's. If they differ, the frame is inverted.
_INVERTED = "filter: invert(0.93) hue-rotate(180deg)"
_FRAME_STYLE = (
    f"@media (prefers-color-scheme: light) {{ [data-jp-theme-light='false'] .tinyexplore-page {{ {_INVERTED} }} }} "
    f"@media (prefers-color-scheme: dark) {{ [data-jp-theme-light='true'] .tinyexplore-page {{ {_INVERTED} }} }}"
)


def page_frame(title: str, page: str, height: str, *, scripts: bool = False) -> str:
    """Returns a whole page as an output of a notebook, in a sandboxed frame with the notebook's light or dark colors.

    Args:
        title: the title of the frame, for screen readers.
        page: the HTML of the page.
        height: the height of the frame, in CSS units.
        scripts: whether the page's scripts may run.
    """
    allowed = ' sandbox="allow-scripts"' if scripts else " sandbox"
    style = f"width:100%;height:{height};border:1px solid #8886;border-radius:6px"
    attributes = f'class="tinyexplore-page" title="{title}" style="{style}"{allowed}'
    return f'<style>{_FRAME_STYLE}</style><iframe {attributes} srcdoc="{escape(page)}"></iframe>'


def _compute_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Returns the width of each column: its longest line, with the widest columns reduced until all fit."""
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows)]
    while sum(widths) + len(SEPARATOR) * (len(widths) - 1) > CONSOLE_WIDTH and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _wrap_cell(cell: str, width: int) -> list[str]:
    """Returns the lines of a cell, wrapped at `width`; a longer word stays whole."""
    return [part for line in cell.split("\n") for part in wrap(line, max(width, 1), break_long_words=False) or [""]]


class DisplayableResult(AttributeHints):
    """A result with a text and a notebook display. A subclass implements `table`.

    Subclasses that are dataclasses set `repr=False`, so that this class's `__repr__` applies.
    """

    __slots__ = ()

    def table(self) -> Table:
        """Returns the result as a table."""
        raise NotImplementedError

    def __str__(self) -> str:
        return for_terminal(self.table().text())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table().html()


class DisplayableRow(AttributeHints):
    """A row of data: one line in a console, a table of its fields in a notebook.

    Subclasses that are dataclasses set `repr=False`. A subclass overrides `as_text` to change the line.
    """

    __slots__ = ()

    def as_text(self) -> str:
        """Returns the row as a short text: its `__str__` if that is one line, else its first fields."""
        text = "" if type(self).__str__ is object.__str__ else str(self)
        if text and "\n" not in text:
            return text
        fields_text = [f"{name} {_value_text(name, value)}" for name, value in _list_fields(self) if name != "id"]
        number = getattr(self, "id", None)
        kind = type(self).__name__ if number is None else f"{type(self).__name__} {number}"
        return f"{kind}: {' · '.join(fields_text[:_FIELDS_IN_LINE])}" if fields_text else kind

    def __repr__(self) -> str:
        return f"<{for_terminal(self.as_text())}>"

    def _repr_html_(self) -> str:
        text = "" if type(self).__str__ is object.__str__ else str(self)
        if "\n" in text:
            return f"<pre>{escape(text)}</pre>"
        rows = tuple((name, _value_text(name, value, LONGEST_CELL)) for name, value in _list_fields(self))
        return Table(self.as_text(), ("field", "value"), rows, code=frozenset({"field"})).html()


def _list_fields(row: Any) -> list[tuple[str, Any]]:
    """Returns the name and value of each field that is not empty."""
    pairs = [(field.name, getattr(row, field.name)) for field in fields(row)]
    return [(name, value) for name, value in pairs if value is not None and value != () and value != ""]


def _value_text(name: str, value: Any, longest: int = LONGEST_WORD) -> str:
    """Returns the value of a field as text of at most `longest` characters."""
    if isinstance(value, (tuple, list, frozenset, set, dict)):
        parts = list(value.values() if isinstance(value, dict) else value)
        if len(parts) > MAX_LISTED_VALUES or any(isinstance(part, (DisplayableRow, tuple)) for part in parts):
            return count_text(len(parts), "value")
        keys = [f"{key}: " for key in value] if isinstance(value, dict) else [""] * len(parts)
        text = ", ".join(key + _describe_value(name, part) for key, part in zip(keys, parts))
    else:
        text = " ".join(_describe_value(name, value).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _describe_value(name: str, value: Any) -> str:
    """Returns one value as text: times with their unit, large numbers with commas."""
    if isinstance(value, DisplayableRow):
        return value.as_text()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if name.endswith("_us") and value >= 0:
        return duration_text(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def join_lines(parts: Iterable[str]) -> str:
    """Joins several texts as the lines of one cell."""
    return "\n".join(part for part in parts if part)


__all__ = ["DisplayableResult", "DisplayableRow", "Table", "join_lines", "page_frame"]
