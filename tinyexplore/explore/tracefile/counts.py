"""Formats counts with their noun. This module imports nothing of the trace's model."""

from __future__ import annotations


def count_text(number: int, singular: str, many: str = "") -> str:
    """Returns a count with its noun: "1 node", "2,001 nodes". `many` is an irregular plural."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


__all__ = ["count_text"]
