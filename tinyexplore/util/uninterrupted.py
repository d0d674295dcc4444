"""Changes that no interrupt can split: Ctrl-C, another signal's handler, or an exception from another thread.

Python checks for interrupts only between bytecodes: when a function begins, when a call returns, when a loop repeats.
Work that built-in functions do without a bytecode in between is done completely or not at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import chain, repeat
from typing import Any


def run_uninterrupted(
    calls: Iterable[partial[Any]], objects: Iterable[Any] = (), name: str = "", values: Iterable[Any] = ()
) -> None:
    """Calls each of `calls`, in order, then sets the field `name` of each of `objects` to the matching one of `values`.

    This is one step only if `calls` are built-in functions, all arguments are lists or tuples, and no Python code is
    called. So the replaced values must be referenced elsewhere until it is done, because their finalizers could call
    Python code.
    """
    deque(chain(map(partial.__call__, calls), map(setattr, objects, repeat(name), values)), maxlen=0)
