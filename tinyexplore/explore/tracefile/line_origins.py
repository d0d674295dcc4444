"""Matches each line of a text with its origin in the text before: by name, by location, or by alignment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Sequence

MAX_LINES = 4000  # lines; a longer part is matched by names and locations alone
_NAME = re.compile(
    r"^\s*(?:ROOT )?(?:renamable )?([%$@]?[\w.$-]+)(?::[\w$]+)*(?:\([^)]*\))? = |"  # %3 = add …, $eax = …, x = …
    r"^\s*([%$^\w.-]+):(?:\s|$)"  # a label
)


def origins(
    before: Sequence[str],
    after: Sequence[str],
    places_before: Sequence[Hashable] | None = None,
    places_after: Sequence[Hashable] | None = None,
) -> list[int | None]:
    """Returns for each line of `after` the index of its origin in `before`, or None for a new line.

    Equal lines are aligned first. Each remaining line follows the name that it defines (`%x = …`, `x:`), else its
    location, else its position in a replaced block of equal length.

    places_before, places_after: the location of each line, None for a line without one.
    """
    numbers: list[int | None] = [None] * len(after)
    names = _find_first_positions(before, _find_defined_name)
    line_of_location = (
        {} if places_before is None else _find_first_positions(places_before, lambda operation: operation)
    )
    for tag, low, high, start, end in _diff_lines(before, after):
        for index in range(start, end):
            if tag == "equal":
                numbers[index] = low + index - start
                continue
            named = names.get(_find_defined_name(after[index]))
            if named is None and places_after is not None and places_after[index] is not None:
                named = line_of_location.get(places_after[index])
            if named is None and tag == "replace" and high - low == end - start:
                named = low + index - start
            numbers[index] = named
    return numbers


def _find_first_positions(items: Sequence[Hashable], key: Callable[[Hashable], Hashable | None]) -> dict[Hashable, int]:
    first: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        name = key(item)
        if name is not None:
            first.setdefault(name, index)
    return first


def _find_defined_name(line: Hashable) -> str | None:
    """Returns the name that a line defines, or None."""
    match = _NAME.match(str(line))
    return (match[1] or match[2]) if match else None


def _diff_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Returns the equal and the different parts of two texts, as `difflib` opcodes.

    Common lines at the start and at the end are removed first, which is fast.
    """
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    common_end = 0
    while common_end < min(len(before), len(after)) - start and before[-1 - common_end] == after[-1 - common_end]:
        common_end += 1
    old, new = before[start : len(before) - common_end], after[start : len(after) - common_end]
    parts = [("equal", 0, start, 0, start)]
    if max(len(old), len(new)) <= MAX_LINES:
        inner = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        parts += [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in inner]
    else:
        parts.append(("replace", start, start + len(old), start, start + len(new)))
    parts.append(("equal", len(before) - common_end, len(before), len(after) - common_end, len(after)))
    return parts


__all__ = ["origins"]
