"""Links to a position in a trace: `#stage=4&step=2&node=17`. Pages and views read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PARTS = ("stage", "step", "kernel", "graph", "place", "panel")


def link_of(cursor: Mapping[str, Any], selected: Iterable[int] = ()) -> str:
    """Returns the link to the position `cursor`, with `selected` nodes, in the form that the views write."""
    parts = [f"{name}={cursor[name]}" for name in _PARTS if cursor.get(name) is not None]
    nodes = ",".join(str(node) for node in selected)
    return "#" + "&".join([*parts, *([f"node={nodes}"] if nodes else [])])


__all__ = ["link_of"]
