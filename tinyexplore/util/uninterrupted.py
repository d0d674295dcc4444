"""Changes that no interrupt divides: Ctrl-C, another signal's handler, an exception that another thread raises here.

Python looks for these between bytecodes only: when a function begins, when a call returns, when a loop goes round. Work
that built-in functions do without a bytecode in between is done as a whole, or not begun.
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
    """Each of `calls`, in order, then the field `name` of each of `objects` gets the one of `values` that is its own.

    They are as one only if `calls` are of built-in functions and all are lists or tuples, and if no Python is called on
    the way: what they replace must be held elsewhere until they are done, or its finalizers could.
    """
    deque(chain(map(partial.__call__, calls), map(setattr, objects, repeat(name), values)), maxlen=0)
