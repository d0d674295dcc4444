"""Settings of the whole interpreter that are other ones while something is compiled."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """A setting that is changed while any thread is in a block (`with one():`).

    change: changes it and gives what it was; restore: is called with that when the last thread leaves. A forked child
    has none of the other threads: there it is restored at once.
    """

    def __init__(self, change: Callable[[], T], restore: Callable[[T], None]) -> None:
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._before: list[T] = []  # what it was, for each block that is open
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._before.append(self._before[0] if self._before else self._change())
        try:
            yield
        finally:
            with self._lock:
                before = self._before.pop() if self._before else None  # none is left of those of a parent process
                if before is not None and not self._before:
                    self._restore(before)

    @property
    def before(self) -> T | None:
        """What it was before the block that was opened first; None where no thread is in one."""
        with self._lock:
            return self._before[0] if self._before else None

    def _forget(self) -> None:
        if self._before:
            self._restore(self._before[0])
        self._lock, self._before = threading.Lock(), []


# A thread that calls into a compiler asks for the interpreter between the calls, some ten for a kernel. Where another
# one computes in Python, it would wait Python's own 5 ms each time: longer than it works.
SWITCH_SECONDS = 1e-4


def _switch_quickly() -> float:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, SWITCH_SECONDS))
    return usual


def _collect_nothing() -> bool:
    was_on = gc.isenabled()
    gc.disable()
    return was_on


def _collect_again(was_on: bool) -> None:
    if not was_on:
        return
    if not gc.get_freeze_count():  # none that somebody else keeps out of all searches
        gc.freeze()
        gc.unfreeze()  # what there is counts as old: the next search for garbage does not go through it
    gc.enable()


# The interpreter goes from thread to thread some fifty times as often.
switching_quickly = Meanwhile(_switch_quickly, sys.setswitchinterval)

# No cycles of garbage are looked for. Compiling makes hundreds of thousands of nodes without cycles, and forgets most
# of them at once; looking through all that there is, again and again, took up to a tenth of its time. What is left
# afterwards is kept, by a recorder say, and is looked through when Python next looks through everything.
collecting_later = Meanwhile(_collect_nothing, _collect_again)


def collect_now() -> None:
    """The search that `collecting_later` put off, among what is young, for a moment with nothing to do but wait: after
    the block what is garbage by then counts as old, too. Nothing, where the program itself has turned searches off."""
    if collecting_later.before is True:
        gc.collect(0)


__all__ = ["SWITCH_SECONDS", "Meanwhile", "collect_now", "collecting_later", "switching_quickly"]
