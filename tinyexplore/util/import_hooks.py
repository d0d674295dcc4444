"""Runs work of the package root when a package is first imported.

The root knows the names of all devices, but `import tinyexplore` must not import `tinyexplore.device`: a reader of
saved traces needs no device.
"""

from __future__ import annotations

from collections.abc import Callable

_waiting: dict[str, Callable[[], object]] = {}


def when_imported(package: str, work: Callable[[], object]) -> None:
    """Lets `work` run at the end of the import of `package`."""
    _waiting[package] = work


def run_waiting(package: str) -> None:
    """Runs the work that waits for `package`, once."""
    if (work := _waiting.pop(package, None)) is not None:
        work()


__all__ = ["run_waiting", "when_imported"]
