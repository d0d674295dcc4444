"""Where programs of this family import helpers from: those of `tinyexplore`, its options, and small functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from math import prod
from typing import Any, TypeVar

from tqdm.auto import tqdm, trange

from tinyexplore.util import Context, ContextVar, GlobalCounters, Profiling, Timing, fetch, getenv

__all__ = [
    "BEAM",
    "CACHELEVEL",
    "CI",
    "DEBUG",
    "IMAGE",
    "JIT",
    "NOOPT",
    "OSX",
    "PROFILE",
    "SPLIT_REDUCEOP",
    "TC",
    "TC_OPT",
    "THREEFRY",
    "TRANSCENDENTAL",
    "WINO",
    "Context",
    "ContextVar",
    "GlobalCounters",
    "Profiling",
    "Timing",
    "all_same",
    "argfix",
    "ceildiv",
    "colored",
    "dedup",
    "fetch",
    "flatten",
    "get_child",
    "getenv",
    "make_tuple",
    "merge_dicts",
    "partition",
    "prod",
    "round_up",
    "tqdm",
    "trange",
    "unwrap",
]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

BEAM, NOOPT, JIT, DEBUG = (ContextVar(name) for name in ("BEAM", "NOOPT", "JIT", "DEBUG"))
WINO, IMAGE, PROFILE, CACHELEVEL = (ContextVar(name) for name in ("WINO", "IMAGE", "PROFILE", "CACHELEVEL"))
TC, TC_OPT, THREEFRY = (ContextVar(name) for name in ("TC", "TC_OPT", "THREEFRY"))
TRANSCENDENTAL, SPLIT_REDUCEOP = (ContextVar(name) for name in ("TRANSCENDENTAL", "SPLIT_REDUCEOP"))
CI = bool(getenv("CI", ""))
OSX = sys.platform == "darwin"

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def colored(text: str, color: str | None, background: bool = False) -> str:
    """`text` as a terminal shows it in `color`: a name, in capitals a bright one; None leaves it as it is."""
    if color is None:
        return text
    code = 30 + 10 * background + 60 * color.isupper() + _COLORS.index(color.lower())
    return f"\033[{code}m{text}\033[0m"


def dedup(values: Iterable[K]) -> list[K]:
    """Each value once, in the order of their first places."""
    return list(dict.fromkeys(values))


def flatten(lists: Iterable[Iterable[T]]) -> list[T]:
    """One list of what is in all of them."""
    return [value for values in lists for value in values]


def partition(values: Iterable[T], belongs: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Those that belong, and the others."""
    both: tuple[list[T], list[T]] = ([], [])
    for value in values:
        both[0 if belongs(value) else 1].append(value)
    return both


def merge_dicts(dicts: Iterable[dict[K, T]]) -> dict[K, T]:
    """One dict of all; a key that two of them have must have one value."""
    merged: dict[K, T] = {}
    for one in dicts:
        for key, value in one.items():
            if merged.setdefault(key, value) != value:
                raise ValueError(f"{key!r} is {merged[key]!r} in one of the dicts and {value!r} in another")
    return merged


def argfix(*values: Any) -> tuple[Any, ...]:
    """The arguments of a function that may be called with several or with one tuple (or list) of them."""
    if not values or not isinstance(values[0], (tuple, list)):
        return values
    if len(values) > 1:
        raise ValueError(
            f"several arguments, the first of which is a {type(values[0]).__name__}: give one or the other"
        )
    return tuple(values[0])


def make_tuple(value: int | Iterable[int], length: int) -> tuple[int, ...]:
    """`length` times a number; what is no number, as a tuple."""
    return (value,) * length if isinstance(value, int) else tuple(value)


def all_same(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether all of them are equal (none: they are)."""
    return all(value == values[0] for value in values)


def ceildiv(number: Any, divisor: Any) -> Any:
    """The quotient, rounded up."""
    return -(number // -divisor)


def round_up(number: int, multiple: int) -> int:
    """The least multiple of `multiple` from `number` on."""
    return int(ceildiv(number, multiple)) * multiple


def get_child(root: Any, path: str) -> Any:
    """What the dotted `path` leads to: attributes, keys of dicts, places of lists."""
    here = root
    for name in path.split("."):
        if isinstance(here, dict):
            here = here[name]
        else:
            here = here[int(name)] if name.isdigit() else getattr(here, name)
    return here


def unwrap(value: T | None) -> T:
    """`value`, which is not None."""
    if value is None:
        raise ValueError("unwrap(None): there is no value")
    return value
