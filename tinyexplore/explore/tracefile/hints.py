"""AttributeErrors that suggest attributes with a similar name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

SHORTEST = 3  # letters; a shorter name is not matched as the beginning of another one
MAX_NAMES = 3  # most names in a hint


def similar_names(name: str, kind: type) -> str:
    """Returns "; did you mean …?" with public attributes of `kind` spelled or beginning like `name`; "" if none."""
    names = [candidate for candidate in dir(kind) if not candidate.startswith("_")]
    prefixed = [
        candidate
        for candidate in names
        if min(len(candidate), len(name)) >= SHORTEST and _shares_prefix(candidate, name)
    ]
    matches = list(dict.fromkeys([*get_close_matches(name, names), *prefixed]))
    return f"; did you mean {' or '.join(matches[:MAX_NAMES])}?" if matches else ""


def _shares_prefix(first: str, other: str) -> bool:
    return first.startswith(other) or other.startswith(first)


class AttributeHints:
    """Base class whose AttributeErrors suggest attributes with a similar name."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers report wrong names themselves

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if hasattr(kind, name):  # a property raised an AttributeError: raise the same error again
                return object.__getattribute__(self, name)
            hint = "" if name.startswith("_") else self._suggest_instead(name) or similar_names(name, kind)
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{hint}")

    def _suggest_instead(self, name: str) -> str:
        """Returns the replacement for a renamed attribute: "; use …", or "" if there is none."""
        return ""


__all__ = ["AttributeHints", "similar_names"]
