"""The caches that successive realizations share: plans and kernels. Step-by-step recordings use empty caches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from tinyexplore.compile.runner_cache import RecordingCache, RunnerCache, runners
from tinyexplore.execute.plan import Plans, plans
from tinyexplore.util import config


@dataclass(frozen=True, eq=False)
class ReuseScope:
    """The caches in which the compiler looks up kernels and plans.

    kernels: the cache of compiled kernels.
    plans: the cache of plans. None: every graph is scheduled, lowerings on disk are not used, and kernels run one at a
      time.
    stands_in: whether native code replaces a program that this machine cannot execute.
    """

    kernels: RunnerCache | RecordingCache = field(default_factory=RecordingCache)
    plans: Plans | None = None
    stands_in: bool = False


_process_caches = ReuseScope(runners, plans)
_console_caches = ReuseScope(RunnerCache())
_scope: ContextVar[ReuseScope | None] = ContextVar("tinyexplore_cache_scope", default=None)


def cache_scope_variable() -> ContextVar[ReuseScope | None]:
    """Returns the context variable that `current_cache_scope` reads; None stands for the caches of the process."""
    return _scope


def current_cache_scope() -> ReuseScope:
    """Returns the caches of the current context."""
    scope = _scope.get()
    if scope is not None:
        return scope
    return _console_caches if config().uses_console_recorder else _process_caches


@contextmanager
def step_by_step(*, stand_in: bool = False) -> Iterator[None]:
    """Uses empty caches inside the block, to record every stage and to time each kernel.

    Each graph is scheduled, each of its kernels is lowered and compiled once, and kernels run one at a time. The
    kernels and their results are the same as outside.

    stand_in: if this machine cannot execute a kernel for TARGET, native code computes its results; otherwise running
      such a kernel is an error.
    """
    token = _scope.set(ReuseScope(stands_in=stand_in))
    try:
        yield
    finally:
        _scope.reset(token)


__all__ = ["ReuseScope", "current_cache_scope", "cache_scope_variable", "step_by_step"]
