"""Constraints on the values of a trace, in addition to their types, and their validation.

An annotation in `model.py` declares a constraint: `src: tuple[Annotated[int, Index("nodes", before=True)], ...]`. The
front end's validation (`widgets/src/trace_validation.ts`) uses the same constraints, generated from these annotations.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

# arguments: the value, the sizes of the tables, and the index of the row
Check = Callable[[Any, Mapping[str, int], int], None]


class TraceFormatError(ValueError):
    """The data is not a valid trace of this version. The message names the value, its position, and valid values."""


@dataclass(frozen=True, slots=True)
class Id:
    """Constraint: the index of a row in its own table."""


@dataclass(frozen=True, slots=True)
class Index:
    """Constraint: the id of a row of `table`.

    table: the name of the table.
    before: whether the row must come before the current row, so that there are no cycles.
    """

    table: str
    before: bool = False


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Constraint: a number in a range.

    least: the smallest value.
    most: the largest value, None for no limit.
    """

    least: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Constraint: one of several words.

    words: the allowed words.
    """

    words: tuple[str, ...]


Constraint = Id | Index | AtLeast | OneOf


OWN_KINDS = ("lazybuffer", "uop")  # the kinds of nodes of a trace without a dialect


def check_trace(trace: Any) -> None:
    """Raises TraceFormatError with the path of the first value that violates a constraint."""
    kind: Any = type(trace)
    sizes = {name: len(rows) for name in _read_hints(kind) if isinstance(rows := getattr(trace, name), tuple)}
    check = _check_of(kind)
    if check is not None:
        try:
            check(trace, sizes, 0)
        except TraceFormatError as error:
            raise TraceFormatError(str(error).removeprefix(".")) from None
    _check_kinds(trace)
    _check_origins(trace)


def _check_kinds(trace: Any) -> None:
    """Checks that every node's kind is a level of the dialect."""
    kinds = OWN_KINDS if trace.dialect is None else tuple(level.kind for level in trace.dialect.levels)
    allowed = frozenset(kinds)
    for number, node in enumerate(trace.nodes):
        if node.kind not in allowed:
            raise TraceFormatError(f"nodes[{number}].kind: {node.kind!r:.40} is not one of {', '.join(kinds)}")


def _check_origins(trace: Any) -> None:
    """Checks that the origin of each line exists in the previous text."""
    for number, text in enumerate(trace.stage_texts):
        count = 0 if text.before is None else len(trace.stage_texts[text.before].lines)
        for line_number, line in enumerate(text.lines):
            if line.origin is not None and line.origin >= count:
                label = f"stage_texts[{number}].lines[{line_number}].origin"
                raise TraceFormatError(f"{label}: line {line.origin} does not exist; the text before has {count} lines")


def hints_of(kind: type) -> dict[str, Any]:
    """Returns the annotations of a dataclass's fields, including constraints."""
    return dict(_read_hints(kind))


def constraint_of(hint: Any) -> tuple[Any, Constraint | None]:
    """Splits an annotation into its type and its constraint, if it has one."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, None
    kind, constraint = typing.get_args(hint)
    return kind, constraint


def with_path(name: str, error: TraceFormatError) -> TraceFormatError:
    """Returns `error` with the path extended by one level: `[3].src: …` becomes `nodes[3].src: …`."""
    text = str(error)
    if not text.startswith(("[", ".", ":")):
        text = f": {text}"
    return TraceFormatError(f"{name}{text}")


@cache
def _read_hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@cache
def _check_of(hint: Any) -> Check | None:
    """Returns the function that checks values of an annotation; None if there is nothing to check."""
    kind, constraint = constraint_of(hint)
    if constraint is not None:
        return _check_constraint(constraint)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _check_fields(kind)
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return _check_present(arguments)
    if typing.get_origin(kind) is tuple:
        return _check_items(arguments)
    return None


def _check_constraint(constraint: Constraint) -> Check:
    """Returns the check of a constraint of a field."""

    def check(value: Any, sizes: Mapping[str, int], row: int) -> None:
        match constraint:
            case Id():
                if value != row:
                    raise TraceFormatError(f"found id {value} in row {row}; an id must equal its row number")
            case Index(table, before):
                end = row if before else sizes[table]
                if not 0 <= value < end:
                    reason = f"no earlier one of the {table}" if before else f"none of the {table}"
                    raise TraceFormatError(f"{value} is {reason} ({f'0..{end - 1}' if end else 'there are none'})")
            case AtLeast(least, most):
                if value < least:
                    raise TraceFormatError(f"{value} is below {least}")
                if most is not None and value > most:
                    raise TraceFormatError(f"{value} is above {most}")
            case OneOf(words):
                if value not in words:
                    raise TraceFormatError(f"{value!r:.40} is not one of {', '.join(words)}")

    return check


def _check_fields(kind: type) -> Check | None:
    """Returns the check of all fields of a dataclass; None if none has a constraint."""
    checks = [(name, check) for name, hint in _read_hints(kind).items() if (check := _check_of(hint)) is not None]
    if not checks:
        return None

    def check_fields(value: Any, sizes: Mapping[str, int], row: int) -> None:
        for name, check in checks:
            try:
                check(getattr(value, name), sizes, row)
            except TraceFormatError as error:
                raise with_path(f".{name}", error) from None

    return check_fields


def _check_present(arguments: tuple[Any, ...]) -> Check | None:
    """Returns the check of an optional value; None if its type has no constraint."""
    checks = [check for argument in arguments if (check := _check_of(argument)) is not None]
    if not checks:
        return None
    (check,) = checks

    def check_present(value: Any, sizes: Mapping[str, int], row: int) -> None:
        if value is not None:
            check(value, sizes, row)

    return check_present


def _check_items(arguments: tuple[Any, ...]) -> Check | None:
    """Returns the check of a tuple. For a table, the index of each row is passed as `row`; other items inherit it."""
    is_variadic = arguments[-1] is Ellipsis
    checks = [_check_of(argument) for argument in arguments if argument is not Ellipsis]
    if not any(checks):
        return None
    row_type = arguments[0]
    rows = (
        is_variadic
        and isinstance(row_type, type)
        and dataclasses.is_dataclass(row_type)
        and "id" in _read_hints(row_type)
    )

    def check_items(values: Any, sizes: Mapping[str, int], row: int) -> None:
        for number, value in enumerate(values):
            check = checks[0 if is_variadic else number]
            if check is None:
                continue
            try:
                check(value, sizes, number if rows else row)
            except TraceFormatError as error:
                raise with_path(f"[{number}]", error) from None

    return check_items
