"""A place in a trace as a link: `#stage=4&step=2&node=17`, as pages and views understand it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PARTS = ("stage", "step", "kernel", "graph", "place", "panel")


def link_of(cursor: Mapping[str, Any], selected: Iterable[int] = ()) -> str:
    """The link to the reader's place, in the form that the views write."""
    parts = [f"{name}={cursor[name]}" for name in _PARTS if cursor.get(name) is not None]
    nodes = ",".join(str(node) for node in selected)
    return "#" + "&".join([*parts, *([f"node={nodes}"] if nodes else [])])


__all__ = ["link_of"]
