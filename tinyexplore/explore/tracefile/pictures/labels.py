"""Places the labels of a chart without overlaps between labels or with points.

Mirrors widgets/src/label_placement.ts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LabelPlace = tuple[float, float, float]
"""(x, y) of the middle of a label, and its angle in degrees."""

Spot = tuple[float, float]

_HALF = 6.5  # half the height of a line of text, with its border
_LETTER = 6.3  # average width of a letter


def place_labels(
    labels: Sequence[tuple[str, Sequence[LabelPlace]]],
    points: Sequence[Spot] = (),
    lines: Sequence[tuple[Spot, Spot]] = (),
    radius: float = 10.0,
) -> list[LabelPlace]:
    """Chooses a position for each label: the first free one, else the one that covers least."""
    covered = [(x, y, radius) for x, y in points]
    for (x0, y0), (x1, y1) in lines:
        steps = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / 6))
        shares = [step / steps for step in range(steps + 1)]
        covered += [(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, 1.0) for share in shares]
    chosen = []
    for text, anchors in labels:
        scored = []
        for number, anchor in enumerate(anchors):
            spots = _list_middle_points(text, anchor)
            hits = sum(
                any(math.hypot(x - a, y - b) < _HALF + radius_other for a, b, radius_other in covered) for x, y in spots
            )
            scored.append((hits, number))
        best = anchors[min(scored)[1]]
        covered += [(x, y, _HALF) for x, y in _list_middle_points(text, best)]
        chosen.append(best)
    return chosen


def _list_middle_points(text: str, anchor: LabelPlace) -> list[tuple[float, float]]:
    """Returns points along the middle line of a label."""
    x, y, angle = anchor
    half = len(text) * _LETTER / 2
    turn = math.radians(angle)
    steps = max(1, math.ceil(half / 4))
    shares = [(step - steps) / steps * half for step in range(2 * steps + 1)]
    return [(x + share * math.cos(turn), y + share * math.sin(turn)) for share in shares]


def positions_on_line(text: str, start: Spot, stop: Spot, shares: Sequence[float]) -> list[LabelPlace]:
    """Returns label positions above and below a line, at these shares of its length. No label passes its ends."""
    (x0, y0), (x1, y1) = start, stop
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    half = min(0.5, len(text) * _LETTER / 2 / length)
    across, down = (y1 - y0) / length, -(x1 - x0) / length
    anchors = []
    for offset in (9.0, -10.0):
        for share in shares:
            t = max(half, min(1 - half, share))
            anchors.append((x0 + (x1 - x0) * t + across * offset, y0 + (y1 - y0) * t + down * offset, angle))
    return anchors


__all__ = ["LabelPlace", "place_labels", "positions_on_line"]
