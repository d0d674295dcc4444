"""`explore.targets`: one program captured for several machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinyexplore.explore.analysis.comparisons.machines import Machines, machines_of
from tinyexplore.explore.notebook.explore_function import explore
from tinyexplore.target import choice_of

REPEAT = 5  # samples of each launch


def targets(f: Callable[..., Any], targets: Sequence[str], *args: Any, title: str = "", **options: Any) -> Machines:
    """Compiles `f(*args)` for each of `targets` (LLVM's CPU names) and returns the results side by side.

    `f` is called once per target. For the options see `explore`. Kernels that cannot run here have no times.
    """
    if not callable(f):
        raise TypeError(f"targets({type(f).__name__}): expected a function, which will be called once for each target")
    if isinstance(targets, str) or not targets:
        raise TypeError(f"targets(f, {targets!r}): expected a list of names, such as ['x86-64-v3', 'neoverse-n1']")
    for name in targets:  # a wrong name raises before anything runs
        choice_of(name)
    options = {"repeat": REPEAT, "device": "LLVM", **options}
    views = [explore(f, *args, title=title, target=name, **options) for name in targets]
    return machines_of(targets, [view.trace for view in views])


__all__ = ["targets"]
