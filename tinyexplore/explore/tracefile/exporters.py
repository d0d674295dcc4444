"""How a Trace reaches the functions that export it.

`Trace.graph`, `Trace.to_dataframe` and `Trace.to_perfetto` call packages above this one. `explore/__init__.py`
registers how to find them, so this package imports nothing above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_find: Callable[[str], Any] | None = None


def register_exporters(find: Callable[[str], Any]) -> None:
    """From now on `find(name)` returns the public function or class of that name."""
    global _find
    _find = find


def exporter(name: str) -> Any:
    """The function or class that exports a trace: "Graph", "to_dataframe" or "to_perfetto"."""
    assert _find is not None, "tinyexplore.explore registers the exporters when it is imported"
    return _find(name)


__all__ = ["exporter", "register_exporters"]
