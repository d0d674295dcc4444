"""The caches that successive realizes share: plans and kernels. Step-by-step recordings use empty caches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from tinyexplore.compile.cache import OwnKernels, RunnerCache, runners
from tinyexplore.execute.plan import Plans, plans
from tinyexplore.util import config


@dataclass(frozen=True, eq=False)
class ReuseScope:
    """The caches that kernels and plans are looked up in.

    kernels: the cache of compiled kernels.
    plans: the cache of plans. None: every graph is scheduled, lowerings on disk are not used, and kernels run one at a
      time.
    stands_in: whether native code replaces a program that this machine cannot execute.
    """

    kernels: RunnerCache | OwnKernels = field(default_factory=OwnKernels)
    plans: Plans | None = None
    stands_in: bool = False


_of_process = ReuseScope(runners, plans)
_of_console = ReuseScope(RunnerCache())
_kept: ContextVar[ReuseScope | None] = ContextVar("tinyexplore_kept", default=None)


def kept_variable() -> ContextVar[ReuseScope | None]:
    """The context variable that `kept_here` reads; None stands for the caches of the process."""
    return _kept


def kept_here() -> ReuseScope:
    """The caches of the present context."""
    scope = _kept.get()
    if scope is not None:
        return scope
    return _of_console if config().asks_the_console else _of_process


@contextmanager
def step_by_step(*, stand_in: bool = False) -> Iterator[None]:
    """Inside the block no earlier cache is used: each graph is scheduled, each of its kernels is lowered and compiled
    once, and kernels run one at a time. It serves recordings of every stage and timings of each kernel. The kernels
    and their results are the same.

    stand_in: kernels for a TARGET that this machine cannot execute are compiled, and native ones compute their results;
    otherwise running one is an error."""
    token = _kept.set(ReuseScope(stands_in=stand_in))
    try:
        yield
    finally:
        _kept.reset(token)


__all__ = ["ReuseScope", "kept_here", "kept_variable", "step_by_step"]
