"""The responses that a capture stores for later pages, by request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Key = tuple[str, tuple[tuple[str, Any], ...]]


class Responses:
    """Responses by the name of a request and its fields; each is computed once.

    A request is named here, not imported: requests respond by the analyses, which store what they computed here.
    """

    def __init__(self) -> None:
        self._stored: dict[Key, Any] = {}

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any], Any]]:
        """(name of the request, its fields, the response), in the order in which they were stored."""
        for (name, fields), response in self._stored.items():
            yield name, dict(fields), response

    def get(self, name: str, **fields: Any) -> Any:
        """The response to a request, or None."""
        return self._stored.get(_key(name, fields))

    def store(self, name: str, response: Any, **fields: Any) -> None:
        """Pages store `response`. `fields`: all that the request has."""
        self._stored[_key(name, fields)] = response

    def compare(self, kernel: int, before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> None:
        """Pages compare the caches of a kernel with these opts: computed when a page is made, in place of what was
        compared before."""
        for key in [key for key in self._stored if key[0] == "caches" and dict(key[1])["kernel"] == kernel]:
            del self._stored[key]
        self.store("caches", None, kernel=kernel, before=before, after=after)


def _key(name: str, fields: dict[str, Any]) -> Key:
    return name, tuple(sorted(fields.items()))


__all__ = ["Responses"]
