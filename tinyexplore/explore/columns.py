"""Tables as columns, as traces travel: the values of a field beside each other, ids as differences from the row before.

Said of what `codec` makes of a trace, so that its types and constraints are checked afterwards as ever. A table of rows
becomes `{"rows": 3, "columns": {"src": [5, 1, -2], "how": ["rewrite", ...]}}`: the names of fields are said once, equal
values stand together, and ids, which mostly count on, become small. The twin is `widgets/src/columns.ts`.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tinyexplore.explore.valid import Id, Index, TraceFormatError, constraint_of, hints_of, within

FEW = 4  # rows; a smaller table stays as it is
Recode = Callable[[Any], Any]


def packed(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    """`data`, an object of `kind`, with its tables as columns."""
    found: dict[str, Any] = _of_row(kind, _pack_table)(data)
    return found


def unpacked(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    """`data` with rows in place of columns; TraceFormatError where columns do not make a table."""
    found: dict[str, Any] = _of_row(kind, _unpack_table)(data)
    return found


# *** through the model ***


@cache
def _of_row(kind: type, table: Callable[[type, Any], Any]) -> Recode:
    """Recodes the tables in an object of `kind`."""
    fields = {name: _of_value(hint, table) for name, hint in hints_of(kind).items()}
    deep = {name: recode for name, recode in fields.items() if recode is not None}

    def recode_row(data: Any) -> Any:
        if not deep or not isinstance(data, dict):
            return data
        found = dict(data)
        for name, recode in deep.items():
            if name in found:
                try:
                    found[name] = recode(found[name])
                except TraceFormatError as error:
                    raise within(f".{name}", error) from None
        return found

    return recode_row


def _of_value(hint: Any, table: Callable[[type, Any], Any]) -> Recode | None:
    """Recodes values of a field; None where there is no table in them."""
    kind, _ = constraint_of(hint)
    if dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        return _of_row(kind, table)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        found = [recode for argument in arguments if (recode := _of_value(argument, table)) is not None]
        return found[0] if found else None
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        row = arguments[0]
        if isinstance(row, type) and dataclasses.is_dataclass(row):
            return lambda values: table(row, values)
    return None


# *** tables ***


def _pack_table(kind: type, rows: list[dict[str, Any]]) -> Any:
    rows = [_of_row(kind, _pack_table)(row) for row in rows]
    if len(rows) < FEW:
        return rows
    columns = {name: [row[name] for row in rows] for name in hints_of(kind)}
    for name, code in _codes(kind).items():
        columns[name] = _differences(columns[name]) if code == "previous" else _distances(columns[name])
    return {"rows": len(rows), "columns": columns}


def _unpack_table(kind: type, data: Any) -> Any:
    if not isinstance(data, dict):
        rows = data
    else:
        rows = _rows_of(kind, data)
    if not isinstance(rows, list):
        return rows  # whoever decodes it says what is wrong
    return [_of_row(kind, _unpack_table)(row) for row in rows]


def _rows_of(kind: type, data: dict[str, Any]) -> list[dict[str, Any]]:
    columns, count = data.get("columns"), data.get("rows")
    if not isinstance(columns, dict) or type(count) is not int or count < 0:
        raise TraceFormatError("expected an array, or an object with rows and columns")
    codes = _codes(kind)
    values: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if not isinstance(column, list) or len(column) != count:
            raise TraceFormatError(f"the column {name!r:.40} has not {count} values")
        code = codes.get(name)
        values[name] = column if code is None else _sums(column) if code == "previous" else _ids(column)
    if not values:
        raise TraceFormatError("a table without columns")
    names = list(values)
    return [dict(zip(names, row, strict=True)) for row in zip(*values.values(), strict=True)]


@cache
def _codes(kind: type) -> dict[str, str]:
    """The fields that are coded: ids by their difference from the row "previous" to it, lists of ids of earlier rows by
    their "distance" from the row that they are in."""
    found = {}
    for name, hint in hints_of(kind).items():
        plain, constraint = constraint_of(hint)
        arguments = typing.get_args(plain)
        if isinstance(constraint, Id | Index):
            found[name] = "previous"
        elif typing.get_origin(plain) in (types.UnionType, typing.Union):
            if any(isinstance(constraint_of(argument)[1], Id | Index) for argument in arguments):
                found[name] = "previous"
        elif typing.get_origin(plain) is tuple and arguments[1:] == (Ellipsis,):
            _, item = constraint_of(arguments[0])
            if isinstance(item, Index) and item.before:
                found[name] = "distance"
    return found


def _differences(values: Sequence[int | None]) -> list[int | None]:
    """None stays None, and is passed over."""
    found: list[int | None] = []
    last = 0
    for value in values:
        found.append(None if value is None else value - last)
        last = last if value is None else value
    return found


def _sums(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    last = 0
    for value in values:
        if type(value) is int:
            last += value
            found.append(last)
        else:
            found.append(value)
    return found


def _distances(values: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[place - value for value in items] for place, items in enumerate(values)]


def _ids(values: Sequence[Any]) -> list[Any]:
    return [
        [place - item if type(item) is int else item for item in items] if isinstance(items, list) else items
        for place, items in enumerate(values)
    ]


__all__ = ["packed", "unpacked"]
