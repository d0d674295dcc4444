"""AttributeErrors that name the attributes which may be meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

SHORTEST = 3  # letters of a name that is taken for the beginning of another
MOST = 3  # names in a hint


def similar_names(name: str, kind: type) -> str:
    """ "; did you mean …?", with the public attributes of `kind` that are spelled or begin like `name`; or ""."""
    names = [candidate for candidate in dir(kind) if not candidate.startswith("_")]
    begun = [
        candidate for candidate in names if min(len(candidate), len(name)) >= SHORTEST and _begins(candidate, name)
    ]
    matches = list(dict.fromkeys([*get_close_matches(name, names), *begun]))
    return f"; did you mean {' or '.join(matches[:MOST])}?" if matches else ""


def _begins(first: str, other: str) -> bool:
    return first.startswith(other) or other.startswith(first)


class Hinting:
    """A class whose AttributeErrors name the attributes that may be meant."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker finds a wrong name itself

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if hasattr(kind, name):  # a property raised an AttributeError: that one, again
                return object.__getattribute__(self, name)
            hint = "" if name.startswith("_") else self._instead(name) or similar_names(name, kind)
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{hint}")

    def _instead(self, name: str) -> str:
        """The name to use for an attribute that has another name: "; use …", or ""."""
        return ""


__all__ = ["Hinting", "similar_names"]
