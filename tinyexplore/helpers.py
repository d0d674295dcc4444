"""Helpers under the import path of tinygrad programs: names of `tinyexplore`, its options, and small functions."""

from __future__ import annotations

import ast
import ctypes
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import wraps
from hashlib import blake2b, sha256
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from tqdm.auto import tqdm, trange  # noqa: TID253 (names that this module gives)

from tinyexplore.runtime.disk_cache import find, keep
from tinyexplore.util import Context, ContextVar, GlobalCounters, Profiling, Timing, cache_folder, fetch, getenv

__all__ = [
    "BEAM",
    "CACHELEVEL",
    "CAPTURING",
    "CI",
    "DEBUG",
    "GRAPH",
    "IMAGE",
    "JIT",
    "NOOPT",
    "OSX",
    "PROFILE",
    "SAVE_SCHEDULE",
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
    "all_int",
    "all_same",
    "ansilen",
    "ansistrip",
    "argfix",
    "argsort",
    "ceildiv",
    "colored",
    "cpu_time_execution",
    "dedup",
    "diskcache",
    "diskcache_clear",
    "diskcache_get",
    "diskcache_put",
    "fetch",
    "flat_mv",
    "flatten",
    "from_mv",
    "fully_flatten",
    "get_child",
    "getenv",
    "make_tuple",
    "memsize_to_str",
    "merge_dicts",
    "partition",
    "prod",
    "round_up",
    "temp",
    "to_mv",
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
GRAPH, CAPTURING, SAVE_SCHEDULE = ContextVar("GRAPH", 0), ContextVar("CAPTURING", 1), ContextVar("SAVE_SCHEDULE", 0)
CI = bool(getenv("CI", ""))
OSX = sys.platform == "darwin"

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def colored(text: str, color: str | None, background: bool = False) -> str:
    """Returns `text` with the escape codes of `color`: a name, in capitals for a bright color; None: no color."""
    if color is None:
        return text
    code = 30 + 10 * background + 60 * color.isupper() + _COLORS.index(color.lower())
    return f"\033[{code}m{text}\033[0m"


def dedup(values: Iterable[K]) -> list[K]:
    """Removes duplicates. Values stay in the order in which each first occurs."""
    return list(dict.fromkeys(values))


def flatten(lists: Iterable[Iterable[T]]) -> list[T]:
    """Returns one list of the elements of all lists."""
    return [value for values in lists for value in values]


def partition(values: Iterable[T], belongs: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Splits values into those that belong and the others."""
    groups: tuple[list[T], list[T]] = ([], [])
    for value in values:
        groups[0 if belongs(value) else 1].append(value)
    return groups


def merge_dicts(dicts: Iterable[dict[K, T]]) -> dict[K, T]:
    """Merges dicts. A key that two of them have must have one value."""
    merged: dict[K, T] = {}
    for source in dicts:
        for key, value in source.items():
            if merged.setdefault(key, value) != value:
                raise ValueError(f"{key!r} is {merged[key]!r} in one of the dicts and {value!r} in another")
    return merged


def argfix(*values: Any) -> tuple[Any, ...]:
    """Returns the arguments of a function that may be called with several arguments, or with one tuple (or list) of
    them."""
    if not values or not isinstance(values[0], (tuple, list)):
        return values
    if len(values) > 1:
        raise ValueError(
            f"several arguments, the first of which is a {type(values[0]).__name__}: give one or the other"
        )
    return tuple(values[0])


def make_tuple(value: int | Iterable[int], length: int) -> tuple[int, ...]:
    """Returns `length` times a number, or any other value as a tuple."""
    return (value,) * length if isinstance(value, int) else tuple(value)


def all_same(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether all values are equal. True for no values."""
    return all(value == values[0] for value in values)


def ceildiv(number: Any, divisor: Any) -> Any:
    """Returns the quotient, rounded up."""
    return -(number // -divisor)


def round_up(number: int, multiple: int) -> int:
    """Returns the least multiple of `multiple` that is at least `number`."""
    return int(ceildiv(number, multiple)) * multiple


def all_int(values: Iterable[Any]) -> bool:
    """Whether all values are ints, so that no size among them is symbolic."""
    return all(isinstance(value, int) for value in values)


def argsort(values: Sequence[Any]) -> Any:
    """Returns the indices that sort the values, as a list or tuple like `values`. For a permutation, this is its
    inverse."""
    return type(values)(sorted(range(len(values)), key=values.__getitem__))  # type: ignore[call-arg]


def fully_flatten(values: Any) -> list[Any]:
    """Returns one list of the elements of nested lists and tuples."""
    if not isinstance(values, (list, tuple)):
        return [values]
    return [element for value in values for element in fully_flatten(value)]


def ansistrip(text: str) -> str:
    """Returns `text` without the escape codes of colors."""
    return re.sub(r"\x1b\[(K|.*?m)", "", text)


def ansilen(text: str) -> int:
    """Returns the length of `text` without ANSI escape sequences."""
    return len(ansistrip(text))


def memsize_to_str(size: int) -> str:
    """Formats a number of bytes for humans: "1.50 MB"."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size:.2f} B"


def temp(name: str) -> str:
    """Returns the path of `name` in the system's folder for temporary files."""
    return (Path(tempfile.gettempdir()) / name).as_posix()


def cpu_time_execution(call: Callable[[], object], enable: bool) -> float | None:
    """Calls `call`. Returns the seconds that it took if `enable`, else None."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began if enable else None


def get_child(root: Any, path: str) -> Any:
    """Follows a dotted `path` of attributes, dict keys and list indices from `root`."""
    child = root
    for name in path.split("."):
        if isinstance(child, dict):
            child = child[name]
        else:
            child = child[int(name)] if name.isdigit() else getattr(child, name)
    return child


def unwrap(value: T | None) -> T:
    """Returns `value`, which must not be None."""
    if value is None:
        raise ValueError("unwrap(None): expected a value")
    return value


# *** memory ***


def from_mv(view: memoryview, to_type: Any = ctypes.c_char) -> Any:
    """Returns the memory of a writable `view` as a ctypes array of `to_type`."""
    return (to_type * (view.nbytes // ctypes.sizeof(to_type))).from_buffer(view)


def to_mv(address: Any, size: int) -> memoryview:
    """Returns a view of `size` bytes at `address`. The memory must stay allocated while the view is used."""
    array = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8 * size)).contents
    return memoryview(array).cast("B")


def flat_mv(view: memoryview) -> memoryview:
    """Returns a one-dimensional view of the same bytes."""
    return view.cast("B") if view.nbytes else view


# *** values stored on disk ***

_MISSING = object()


def diskcache(function: Callable[..., T]) -> Callable[..., T]:
    """Decorates a function so that each of its results is stored on disk, by its arguments, for later processes."""
    table = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> T:
        key = sha256(pickle.dumps((args, sorted(kwargs.items())))).hexdigest()
        cached = _find_stored(table, key)
        return diskcache_put(table, key, function(*args, **kwargs)) if cached is _MISSING else cached

    return call


def diskcache_get(table: str, key: dict[str, Any] | str | int) -> Any:
    """Returns the value that this user stored, in this process or an earlier one; None if there is none."""
    cached = _find_stored(table, key)
    return None if cached is _MISSING else cached


def diskcache_put(table: str, key: dict[str, Any] | str | int, value: T) -> T:
    """Stores `value` under the key and returns it: None, a bool, number, text, bytes, or lists, tuples and dicts of
    these.

    It is stored as text that can be read without running code. Raises TypeError for other values.
    """
    if (problem := _find_not_plain(value)) is not None:
        raise TypeError(
            f"diskcache_put of {problem}: need None, a bool, a finite number, text, bytes, "
            "lists, tuples or dicts of such"
        )
    keep(_cache_key(table, key), repr((table, key, value)).encode())
    return value


def diskcache_clear() -> None:
    """Removes all values that `diskcache_put` stored."""
    if cache_folder().is_dir():
        for path in cache_folder().glob("diskcache-*"):
            path.unlink(missing_ok=True)


def _find_stored(table: str, key: Any) -> Any:
    data = find(_cache_key(table, key))
    if data is None:
        return _MISSING
    try:
        of_table, of_key, value = ast.literal_eval(data.decode())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return _MISSING
    return value if (of_table, of_key) == (table, key) else _MISSING


def _cache_key(table: str, key: Any) -> str:
    return "diskcache-" + blake2b(repr((table, key)).encode(), digest_size=20).hexdigest()


def _find_not_plain(value: Any) -> str | None:
    """Returns the kind of the first part of `value` that cannot be stored and read back unchanged; None if there is
    none."""
    if type(value) is dict:
        items = [*value.keys(), *value.values()]
    elif type(value) in (list, tuple):
        items = list(value)
    elif value is None or type(value) in (bool, int, str, bytes):
        return None
    elif type(value) is float and value - value == 0:
        return None
    else:
        return f"{value!r:.40} ({type(value).__name__})"
    return next((problem for item in items if (problem := _find_not_plain(item)) is not None), None)
