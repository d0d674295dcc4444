"""Settings of the whole interpreter that are other ones while something is compiled."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from tinyexplore.util.at_once import at_once

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """A setting that is changed while any thread is in a block (`with one():`).

    read: gives what it is; change: changes it; restore: is called with what it was when the last thread leaves. A
    forked child has none of the other threads: there it is restored at once.
    """

    def __init__(self, read: Callable[[], T], change: Callable[[], object], restore: Callable[[T], object]) -> None:
        self._read, self._change, self._restore = read, change, restore
        self._lock = threading.Lock()
        self._open: set[object] = set()  # the blocks that threads are in
        self._before: list[T] = []  # what it was before the first of them
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        block = object()
        try:
            self._enter(block)
            yield
        finally:
            try:
                self._leave(block)
            except BaseException:  # interrupted on the way: what is done already is not done again
                self._leave(block)
                raise

    def _enter(self, block: object) -> None:
        with self._lock:
            self._open.add(block)
            if not self._before:
                self._before = [self._read()]
                self._change()

    def _leave(self, block: object) -> None:
        with self._lock:
            self._open.discard(block)
            if self._before and not self._open:
                self._restore(self._before[0])
                self._before = []

    @property
    def before(self) -> T | None:
        """What it was before the block that was opened first; None where no thread is in one."""
        with self._lock:
            return self._before[0] if self._before else None

    def _forget(self) -> None:
        if self._before:
            self._restore(self._before[0])
        self._lock, self._open, self._before = threading.Lock(), set(), []


# A thread that calls into a compiler asks for the interpreter between the calls, some ten for a kernel. Where another
# one computes in Python, it would wait Python's own 5 ms each time: longer than it works.
SWITCH_SECONDS = 1e-4


def _switch_quickly() -> None:
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))


# Objects that came to count as old without a search. Python looks through everything when a quarter as many have grown
# old as there were, and does not count these: it never might, and cycles of garbage among them would stay for good.
MOST_UNSEARCHED = 500_000
_unsearched = [0]


def _collect_again(was_on: bool) -> None:
    if not was_on:
        return
    if not gc.get_freeze_count():  # none that somebody else keeps out of all searches
        _unsearched[0] += gc.get_count()[0]  # made since the last search, less those that are gone
        if _unsearched[0] > MOST_UNSEARCHED:
            _unsearched[0] = 0
            gc.collect()
        # what there is counts as old: the next search for garbage does not go through it
        at_once([partial(gc.freeze), partial(gc.unfreeze)])
    gc.enable()


# The interpreter goes from thread to thread some fifty times as often.
switching_quickly = Meanwhile(sys.getswitchinterval, _switch_quickly, sys.setswitchinterval)

# No cycles of garbage are looked for. Compiling makes hundreds of thousands of nodes without cycles, and forgets most
# of them at once; looking through all that there is, again and again, took up to a tenth of its time. What is left
# afterwards is kept, by a recorder say, and is looked through when Python next looks through everything.
collecting_later = Meanwhile(gc.isenabled, gc.disable, _collect_again)


def collect_now() -> None:
    """The search that `collecting_later` put off, among what is young, for a moment with nothing to do but wait: after
    the block what is garbage by then counts as old, too. Nothing, where the program itself has turned searches off."""
    if collecting_later.before is True:
        collect_young()


def collect_young() -> None:
    """Searches what was made since the last search for garbage."""
    _unsearched[0] += gc.get_count()[0]
    gc.collect(0)


__all__ = [
    "MOST_UNSEARCHED",
    "SWITCH_SECONDS",
    "Meanwhile",
    "collect_now",
    "collect_young",
    "collecting_later",
    "switching_quickly",
]
