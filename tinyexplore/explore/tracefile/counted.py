"""Numbers of things as text, without an import of the trace's model."""

from __future__ import annotations


def count_text(number: int, singular: str, many: str = "") -> str:
    """ "1 node", "2,001 nodes"."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


__all__ = ["count_text"]
