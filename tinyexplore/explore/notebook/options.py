"""Validate options when they are passed, not when a page is written.

A wrong type raises a TypeError, a wrong value a ValueError. Both name the option, its value, and valid values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

COUNTS = {
    "repeat": "how many samples each launch gets",
    "kernels": "how many kernels are kept",
    "record_iterations": "how many steps of each kernel are recorded",
    "iterations": "how many steps of each kernel are recorded",
}


def check_count(option: str, count: Any, smallest: int = 1) -> int:
    """Returns `count` if it is a whole number from `smallest` on, else raise."""
    text = f"{option}={count!r}: {COUNTS[option]}; give a whole number from {smallest} on"
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(text)
    if count < smallest:
        raise ValueError(text)
    return count


def check_text(option: str, text: Any) -> str:
    """Returns `text` if it is a string, else raise."""
    if not isinstance(text, str):
        raise TypeError(f"{option}={text!r} ({type(text).__name__}): give a string")
    return text


def check_flag(option: str, flag: Any) -> bool:
    """Returns `flag` as a bool if it is True, False, 0 or 1, else raise."""
    if not isinstance(flag, int) or flag not in (0, 1):
        raise TypeError(f"{option}={flag!r} ({type(flag).__name__}): give True or False")
    return bool(flag)


def check_path(option: str, path: Any) -> str | os.PathLike[str] | None:
    """Returns `path` if it is a string, a path or None, else raise."""
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{option}={path!r} ({type(path).__name__}): give a string or a pathlib.Path")
    return path


def node_ids(nodes: Any) -> list[int]:
    """Returns the ids of one or several nodes, each given by its id or as an object with an `id`."""
    items = list(nodes) if isinstance(nodes, Iterable) and not isinstance(nodes, str) else [nodes]
    ids = [getattr(node, "id", node) for node in items]
    for node, number in zip(items, ids, strict=True):
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{node!r} ({type(node).__name__}) is not a node: give nodes of the trace, or their ids")
    return ids


__all__ = ["COUNTS", "check_count", "check_flag", "node_ids", "check_path", "check_text"]
