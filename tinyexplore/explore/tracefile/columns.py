"""Stores the tables of a trace as columns: one list of values per field, ids as differences from the row before.

This step runs on the output of `codec`, so the decoder still checks all types and constraints afterwards.

- A table of rows becomes `{"rows": 3, "columns": {"src": [5, 1, -2], "how": ["rewrite", ...]}}`. Each field name is
  written once, equal values are adjacent, and most ids become small numbers.
- Texts of lines are numbered in a table "texts". Kernels share most of their lines, but at distances beyond gzip's
  window.
- A text is stored as the number of its form and a list of differences. The form is the text without its numbers. The
  differences are between its numbers and those of the previous text of the same form.
- Digests that can be recomputed from the rest of a node are omitted.

`widgets/src/columns.ts` decodes this format in a page.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from tinyexplore.explore.tracefile.digests import derive_digests, remove_derived
from tinyexplore.explore.tracefile.validation import Id, Index, TraceFormatError, constraint_of, hints_of, with_path

MIN_ROWS_FOR_COLUMNS = 4  # rows; a table with fewer rows is stored as rows
_NUMBER = re.compile(r"(?<![0-9])(0|[1-9][0-9]{0,14})(?![0-9])")  # a number that JavaScript represents exactly
_HOLE = "\x01"  # stands for a number in a form
MAX_FORM_CHARACTERS = 16 << 20  # most characters of all forms
Recode = Callable[[Any], Any]


def pack_tables(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    """Returns `data`, an object of class `kind`, with its tables stored as columns."""
    if nodes := data.get("nodes"):
        data = {**data, "nodes": remove_derived(nodes)}
    packed_table: dict[str, Any] = _make_row_recoder(kind, _pack_table)(data)
    texts: dict[str, int] = {}
    for table in _find_line_tables(packed_table):
        numbers = [texts.setdefault(text, len(texts)) for text in table["columns"]["text"]]
        table["columns"]["text"] = _take_differences(numbers)
    if texts:
        packed_table["texts"] = _pack_texts(list(texts))
    return packed_table


class TableRows:
    """The rows of a table of class `kind`, created one by one while iterating: an untrusted table may be very long."""

    def __init__(self, kind: type, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        self._kind = kind
        self._names = names
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def replace(self, name: str, column: Sequence[Any]) -> None:
        """Replaces the column `name` by `column`, if the table has that column."""
        if name in self._names:
            column_index = self._names.index(name)
            self._columns = [*self._columns[:column_index], column, *self._columns[column_index + 1 :]]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        unpack = _make_row_recoder(self._kind, _unpack_table)
        for row in zip(*self._columns, strict=True):
            yield unpack(dict(zip(self._names, row, strict=True)))


def unpack_tables(kind: type, data: dict[str, Any], nbytes: int = 1 << 62, memory: int = 1 << 62) -> dict[str, Any]:
    """Returns `data` with each table as rows instead of columns.

    nbytes: most bytes that the lines of all programs may have, counting each occurrence.
    memory: most bytes that the texts of lines may have, counting each text once.

    Raises:
        TraceFormatError: the columns do not form a table.
    """
    if "texts" in data:
        texts = _unpack_texts(data["texts"], min(nbytes, memory))
        data = {name: value for name, value in data.items() if name != "texts"}
        total = 0
        for table in _find_line_tables(data):
            numbers = _sums(table["columns"]["text"])
            lines = [_look_up_text(number, texts) for number in numbers]
            total += sum(len(line) for line in lines if isinstance(line, str))
            if total > nbytes:
                raise TraceFormatError(f"programs: their lines have more than {nbytes} characters")
            table["columns"]["text"] = lines
    unpacked_row: dict[str, Any] = _make_row_recoder(kind, _unpack_table)(data)
    nodes = unpacked_row.get("nodes")
    if isinstance(nodes, TableRows):
        nodes.replace("digest", derive_digests(nodes))
    elif isinstance(nodes, list):
        digests = derive_digests(nodes)
        unpacked_row["nodes"] = [
            {**row, "digest": digest} if isinstance(row, dict) and "digest" in row else row
            for row, digest in zip(nodes, digests, strict=True)
        ]
    return unpacked_row


def _pack_texts(texts: list[str]) -> Any:
    if any(_HOLE in text for text in texts):
        return texts
    forms, form_of_text, differences = packed_forms(texts)
    if sum(map(len, forms)) > MAX_FORM_CHARACTERS:
        return texts
    return {"forms": list(forms), "form": list(form_of_text), "numbers": list(differences)}


def packed_forms(texts: Iterable[str]) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Splits texts into forms and numbers. No text may contain "\\x01".

    Returns the forms, the form number of each text, and the numbers of all texts as differences.
    """
    forms: dict[str, int] = {}
    form_of_text: list[int] = []
    last: list[list[int]] = []
    differences: list[int] = []
    for text in texts:
        pieces = _NUMBER.split(text)
        form = forms.setdefault(_HOLE.join(pieces[::2]), len(forms))
        form_of_text.append(form)
        numbers = [int(piece) for piece in pieces[1::2]]
        if form == len(last):
            last.append([0] * len(numbers))
        differences += [number - before for number, before in zip(numbers, last[form], strict=True)]
        last[form] = numbers
    return tuple(forms), tuple(form_of_text), tuple(differences)


def _unpack_texts(packed: Any, most_bytes: int) -> list[Any]:
    """Decodes the texts; they may have at most `most_bytes` characters in all. Older releases store a plain list."""
    if isinstance(packed, list):
        return packed
    wrong = TraceFormatError("texts: expected forms, the form of each text, and its numbers")
    try:
        if not all(type(number) is int for number in packed["numbers"]):
            raise wrong
        if sum(map(len, packed["forms"])) > MAX_FORM_CHARACTERS:
            raise TraceFormatError(f"texts: their forms have more than {MAX_FORM_CHARACTERS} characters")
        pieces = [form.split(_HOLE) for form in packed["forms"]]
        last = [[0] * (len(form) - 1) for form in pieces]
        differences = iter(packed["numbers"])
        texts = []
        characters = 0
        for form in packed["form"]:
            if form < 0:
                raise IndexError(form)
            numbers = last[form] = [number + next(differences) for number in last[form]]
            text = "".join([piece + str(number) for piece, number in zip(pieces[form], numbers, strict=False)])
            texts.append(text + pieces[form][-1])
            characters += len(texts[-1])
            if characters > most_bytes:
                raise TraceFormatError(f"texts: they have more than {most_bytes} characters")
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, StopIteration) as error:
        raise wrong from error
    return texts


def _find_line_tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the tables of lines in the programs and stage texts of `data` that have columns; skips other tables."""
    line_tables = []
    for name in ("programs", "stage_texts"):
        for table in _read_lines(data.get(name)):
            columns = table.get("columns") if isinstance(table, dict) else None
            if isinstance(columns, dict) and isinstance(columns.get("text"), list):
                line_tables.append(table)
    return line_tables


def _read_lines(listings: Any) -> list[Any]:
    """Returns the lines of each row of a table of listings."""
    if isinstance(listings, dict):
        columns = listings.get("columns")
        tables = columns.get("lines") if isinstance(columns, dict) else None
        return tables if isinstance(tables, list) else []
    rows = listings if isinstance(listings, list) else []
    return [row.get("lines") for row in rows if isinstance(row, dict)]


def _look_up_text(number: Any, texts: list[Any]) -> Any:
    """Returns the text with this number. Returns an invalid number unchanged, for the decoder to reject."""
    return texts[number] if type(number) is int and 0 <= number < len(texts) else number


# *** recoding, by the types of the model ***


@cache
def _make_row_recoder(kind: type, table: Callable[[type, Any], Any]) -> Recode:
    """Returns a function that applies `table` to each table inside an object of class `kind`."""
    fields = {name: _make_value_recoder(hint, table) for name, hint in hints_of(kind).items()}
    deep = {name: recode for name, recode in fields.items() if recode is not None}

    def recode_row(data: Any) -> Any:
        if not deep or not isinstance(data, dict):
            return data
        row = dict(data)
        for name, recode in deep.items():
            if name in row:
                try:
                    row[name] = recode(row[name])
                except TraceFormatError as error:
                    raise with_path(f".{name}", error) from None
        return row

    return recode_row


def _make_value_recoder(hint: Any, table: Callable[[type, Any], Any]) -> Recode | None:
    """Returns a function that recodes the tables inside values of type `hint`; None if they contain no table."""
    kind, _ = constraint_of(hint)
    if dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        return _make_row_recoder(kind, table)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        recoders = [recode for argument in arguments if (recode := _make_value_recoder(argument, table)) is not None]
        return recoders[0] if recoders else None
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        row = arguments[0]
        if isinstance(row, type) and dataclasses.is_dataclass(row):
            return lambda values: table(row, values)
    return None


# *** tables ***


def _pack_table(kind: type, rows: list[dict[str, Any]]) -> Any:
    """Returns the rows of a table as columns; few rows stay rows. `_rows_of` is the inverse."""
    rows = [_make_row_recoder(kind, _pack_table)(row) for row in rows]
    if len(rows) < MIN_ROWS_FOR_COLUMNS:
        return rows
    columns = {name: [row[name] for row in rows] for name in hints_of(kind)}
    for name, code in _list_codes(kind).items():
        columns[name] = _ENCODE[code](columns[name])
    table = {"rows": len(rows), "columns": columns}
    if chained := [name for name, code in _list_codes(kind).items() if code == "chained"]:
        table["chained"] = chained
    if times := [name for name in _list_times(kind) if all(map(_is_whole, columns[name]))]:
        table["differences"] = times
        columns |= {name: _take_differences([int(time) for time in columns[name]]) for name in times}
    return table


def _unpack_table(kind: type, data: Any) -> Any:
    if isinstance(data, dict):
        return _rows_of(kind, data)
    if not isinstance(data, list):
        return data  # the decoder rejects it
    return [_make_row_recoder(kind, _unpack_table)(row) for row in data]


def _rows_of(kind: type, data: dict[str, Any]) -> TableRows:
    """Returns the rows of a table in columns."""
    columns, count = data.get("columns"), data.get("rows")
    if not isinstance(columns, dict) or type(count) is not int or count < 0:
        raise TraceFormatError("expected an array, or an object with rows and columns")
    codes = _list_codes(kind)
    chained, differences = data.get("chained"), data.get("differences")
    values: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if not isinstance(column, list) or len(column) != count:
            raise TraceFormatError(f"the column {name!r:.40} must have {count} values")
        code = codes.get(name)
        if code == "chained" and not (isinstance(chained, list) and name in chained):
            code = None  # an older release wrote this table, without codes for lists of ids
        elif isinstance(differences, list) and name in differences:
            code = "previous"
        values[name] = column if code is None else _DECODE[code](column)
    if not values:
        raise TraceFormatError("the table has no columns")
    return TableRows(kind, list(values), list(values.values()))


@cache
def _list_times(kind: type) -> tuple[str, ...]:
    """Returns the names of the fields for times. They are stored as differences if all values are whole numbers."""
    return tuple(
        name for name, hint in hints_of(kind).items() if name.endswith("_us") and constraint_of(hint)[0] is float
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | float) and float(value).is_integer() and abs(value) < 1 << 53


@cache
def _list_codes(kind: type) -> dict[str, str]:
    """Returns the coding of each field of `kind` that is stored as differences.

    "previous": an id, as the difference from the id in the previous row.
    "distance": a list of ids of earlier rows, each as the distance back from the current row.
    "chained": a list of ids, each as the difference from the id before it. The first id counts from the first id of the
        previous list.
    """
    codes = {}
    for name, hint in hints_of(kind).items():
        plain, constraint = constraint_of(hint)
        arguments = typing.get_args(plain)
        if isinstance(constraint, Id | Index):
            codes[name] = "previous"
        elif typing.get_origin(plain) in (types.UnionType, typing.Union):
            if any(isinstance(constraint_of(argument)[1], Id | Index) for argument in arguments):
                codes[name] = "previous"
        elif typing.get_origin(plain) is tuple and arguments[1:] == (Ellipsis,):
            _, item = constraint_of(arguments[0])
            if isinstance(item, Index) and item.before:
                codes[name] = "distance"
            elif isinstance(item, Id | Index):
                codes[name] = "chained"
    return codes


def _take_differences(values: Sequence[int | None]) -> list[int | None]:
    """Returns the difference of each value from the last value that is not None. None stays None."""
    differences: list[int | None] = []
    last = 0
    for value in values:
        differences.append(None if value is None else value - last)
        last = last if value is None else value
    return differences


def _sums(values: Sequence[Any]) -> list[Any]:
    sums: list[Any] = []
    last = 0
    for value in values:
        if type(value) is int:
            last += value
            sums.append(last)
        else:
            sums.append(value)
    return sums


def _encode_distances(values: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[number - value for value in items] for number, items in enumerate(values)]


def _decode_distances(values: Sequence[Any]) -> list[Any]:
    return [
        [number - item if type(item) is int else item for item in items] if isinstance(items, list) else items
        for number, items in enumerate(values)
    ]


def _chain_spans(values: Sequence[Sequence[int]]) -> list[list[int]]:
    chained = []
    first = 0
    for items in values:
        before = (first, *items[:-1])
        chained.append([item - last for item, last in zip(items, before, strict=False)])
        first = items[0] if items else first
    return chained


def _unchain_spans(values: Sequence[Any]) -> list[Any]:
    unchained: list[Any] = []
    first = 0
    for items in values:
        if not isinstance(items, list) or any(type(item) is not int for item in items):
            unchained.append(items)  # the decoder reports the error
            continue
        ids = list(accumulate(items, initial=first))[1:]
        unchained.append(ids)
        first = ids[0] if ids else first
    return unchained


_ENCODE: dict[str, Callable[[Any], list[Any]]] = {
    "previous": _take_differences,
    "distance": _encode_distances,
    "chained": _chain_spans,
}
_DECODE: dict[str, Callable[[Any], list[Any]]] = {
    "previous": _sums,
    "distance": _decode_distances,
    "chained": _unchain_spans,
}


__all__ = ["TableRows", "pack_tables", "unpack_tables"]
