"""A feature that a device lacks raises a documented error (`tests/support/limits.py`), and its test passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.limits import WORDS, is_declared
from tinyexplore.renderer import RenderError

LACKING = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    """A declared limit ends a test that computes on that device, and is counted."""
    try:
        return (yield)
    except RenderError as error:
        callspec = getattr(pyfuncitem, "callspec", None)
        devices = (
            []
            if callspec is None
            else [one for one in callspec.params.values() if isinstance(one, str) and one in WORDS]
        )
        if not any(is_declared(device, error) for device in devices):
            raise
        pyfuncitem.config.stash.setdefault(LACKING, []).append(pyfuncitem.nodeid)
        return True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How many tests ended at a declared limit."""
    if found := config.stash.get(LACKING, []):
        terminalreporter.write_line(f"{len(found)} tests met what their device lacks, and were told so")
