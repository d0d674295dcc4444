"""The responses that a capture stores for later pages, by request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Key = tuple[str, tuple[tuple[str, Any], ...]]


class Responses:
    """Responses by request name and fields; each is computed once.

    Requests are identified by name, not imported: their handlers use the analyses, which store their results here.
    """

    def __init__(self) -> None:
        self._stored: dict[Key, Any] = {}

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any], Any]]:
        """Yields (request name, fields, response), in the order of storage."""
        for (name, fields), response in self._stored.items():
            yield name, dict(fields), response

    def get(self, name: str, **fields: Any) -> Any:
        """Returns the response to a request, or None."""
        return self._stored.get(_make_key(name, fields))

    def store(self, name: str, response: Any, **fields: Any) -> None:
        """Stores `response` for pages. `fields` are all fields of the request."""
        self._stored[_make_key(name, fields)] = response

    def compare(self, kernel: int, before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> None:
        """Sets the opts with which pages compare the caches of a kernel; this replaces an earlier choice.

        The comparison is computed when a page is written.
        """
        for key in [key for key in self._stored if key[0] == "caches" and dict(key[1])["kernel"] == kernel]:
            del self._stored[key]
        self.store("caches", None, kernel=kernel, before=before, after=after)


def _make_key(name: str, fields: dict[str, Any]) -> Key:
    return name, tuple(sorted(fields.items()))


__all__ = ["Responses"]
