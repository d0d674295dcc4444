"""What the panels of the debugger, the memory microscope, the throughput and Rosetta ask of Python, as plain data.

`{"ask": "debug", "kernel": 0, "do": "step"}`, `{"ask": "caches", "kernel": 0}`, `{"ask": "gpu", "kernel": 0}`,
`{"ask": "throughput", "kernel": 0}`, `{"ask": "rosetta", "kernel": 0}`; what cannot be is `{"error": "..."}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any
from weakref import ref

from tinyexplore.explore.byhand.asked import ByHand, NotKeptError
from tinyexplore.explore.byhand.caches import CacheModel, TooLong
from tinyexplore.explore.byhand.conditions import ConditionError
from tinyexplore.explore.byhand.debugger import Debugger, DebuggerError, value_text
from tinyexplore.explore.byhand.streams import DataDependent
from tinyexplore.explore.byhand.throughput import ThroughputError
from tinyexplore.explore.model import Node, Trace
from tinyexplore.uop import Ops, UOp

QUESTIONS = ("debug", "caches", "gpu", "throughput", "rosetta")
MOST_STEPS = 1_000_000  # of one question: half a second, so that a notebook's kernel is never gone for long
CELLS = 256  # of a tensor that are shown
MOST_IN_ROW = 64

Opts = tuple[str, ...]

_MISTAKES = (
    NotKeptError,
    DebuggerError,
    ConditionError,
    DataDependent,
    TooLong,
    ThroughputError,
    ValueError,
)


class ByHandAnswers:
    """Holds the debuggers that views stepped; the Explorer only as long as somebody else does."""

    def __init__(self, explorer: ByHand) -> None:
        self._explorer = ref(explorer)
        self._debuggers: dict[int, Debugger] = {}
        self._compared: dict[Any, dict[str, Any]] = {}  # of a kernel with these opts and those

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one of `QUESTIONS`."""
        explorer = self._explorer()
        if explorer is None:
            return {"error": "the Explorer of this view is gone: keep it in a variable, and show it again"}
        kernel = int(question.get("kernel", 0))
        try:
            if question.get("ask") == "caches":
                return self._caches(explorer, kernel, question)
            if question.get("ask") == "gpu":
                return explorer.gpu(kernel).as_data()
            if question.get("ask") == "throughput":
                branch = question.get("branch")
                chosen = None if branch is None else explorer.trace.branches[int(branch)]
                return explorer.throughput(kernel, chosen).as_data()
            if question.get("ask") == "rosetta":
                return explorer.rosetta(kernel, question.get("targets")).as_data()
            return self._debug(explorer, kernel, question)
        except _MISTAKES as error:
            return {"error": str(error)}

    def _caches(self, explorer: ByHand, kernel: int, question: Mapping[str, Any]) -> dict[str, Any]:
        sides = [None if (opts := question.get(side, ())) is None else tuple(opts) for side in ("before", "after")]
        if "after" not in question:
            sides[1] = None
        key = (kernel, *sides)
        if key not in self._compared:
            self._compared[key] = caches_data(explorer, kernel, *sides)
        explorer._asked.caches[kernel] = (sides[0], sides[1])
        return self._compared[key]

    def _debug(self, explorer: ByHand, kernel: int, question: Mapping[str, Any]) -> dict[str, Any]:
        action = str(question.get("do", "look"))
        if action == "made up":
            self._debuggers[kernel] = explorer.debug(kernel, "made up")
        debugger = self._debuggers.get(kernel)
        if debugger is None:
            debugger = self._debuggers[kernel] = explorer.debug(kernel)
        debugger.most_steps = MOST_STEPS
        match action:
            case "step":
                debugger.step(int(question.get("count", 1)))
            case "back":
                debugger.back(int(question.get("count", 1)))
            case "run to":
                debugger.run_to(int(question["line"]))
            case "run until":
                debugger.run_until(str(question["condition"]))
            case "iteration":
                debugger.iteration(**{name: int(value) for name, value in question["counters"].items()})
            case "restart":
                debugger.restart()
            case "finish":
                debugger.finish()
        lane = question.get("lane")
        return debugger_data(debugger, row_widths(explorer.trace, kernel), None if lane is None else int(lane))


def debugger_data(
    debugger: Debugger, widths: Mapping[str, int] | None = None, lane: int | None = None
) -> dict[str, Any]:
    """Where a debugger is, its listing, and the tensors around what it touched last, in rows of `widths`.

    `lane`: of vectors, only this one is shown.
    """
    state = debugger.state(lane)
    del state["error"]  # what went wrong in the kernel is the reason why it stopped; an answer with an error is none
    values: dict[int, str] = {}
    for place, _, text in state["registers"]:
        values[place] = text
    if debugger.place is not None and not isinstance(debugger.value, memoryview):
        value = debugger.value
        is_lane = lane is not None and isinstance(value, list) and lane < len(value)
        values[debugger.place] = value_text(value[lane] if is_lane else value)
    return {
        "name": debugger.name,
        "note": debugger.note,
        "listing": [line.text for line in debugger.listing],
        "lanes": debugger.lanes,
        "nest": [[name, list(around)] for name, around in debugger.nest.items()],
        "values": [[place, text] for place, text in sorted(values.items())],
        "tensors": [tensor_data(debugger, name, (widths or {}).get(name), lane) for name in debugger.buffers],
        **state,
    }


def tensor_data(debugger: Debugger, name: str, width: int | None = None, lane: int | None = None) -> dict[str, Any]:
    """A buffer as a grid: the rows around what was touched last, of `width` elements or as its indices suggest."""
    size = debugger.buffers[name]
    recent = [one for one in debugger.touched(64) if one.buffer == name]
    now = [one for one in debugger.accesses if one.buffer == name]
    last = next((place for one in recent for place in one.index if place is not None), 0)
    width = width or row_width(debugger.uops, name, size)
    rows = max(1, CELLS // width)
    first = max(0, min(last // width - rows // 2, -(-size // width) - rows)) * width
    shown = debugger.read(name, first, rows * width)
    return {
        "name": name,
        "size": size,
        "width": width,
        "first": first,
        "cells": [value_text(float(f"{value:.3g}")) if isinstance(value, float) else str(value) for value in shown],
        "lit": [place for one in now for place in _of_lane(one.index, lane) if place is not None],
        "recent": sorted({place for one in recent for place in one.index if place is not None}),
        "stored": any(one.stored for one in now),
    }


def _of_lane(index: tuple[int | None, ...], lane: int | None) -> tuple[int | None, ...]:
    """The element of one lane; of a value without that lane, all."""
    return index if lane is None or lane >= len(index) else index[lane : lane + 1]


def row_widths(trace: Trace, kernel: int) -> dict[str, int]:
    """The last axis of what the user's Python put into each buffer, where that is known and fits on a line."""
    info = trace.kernels[kernel]
    inside = [trace.nodes[node] for node in info.nodes]
    near = [
        *(trace.nodes[node] for node in info.roots),
        *inside,
        *(trace.nodes[src] for node in inside for src in node.src),
    ]
    found: dict[str, int] = {}
    for position, number in enumerate(info.buffers):
        buffer = trace.buffers[number]
        for node in near:
            sizes = sizes_of(node)
            if sizes and prod(sizes) == buffer.size and (node.name == buffer.name or node.id in info.roots):
                width = next((size for size in reversed(sizes) if size > 1), 1)
                if width <= MOST_IN_ROW:
                    found.setdefault(f"data{position}", width)
    return found


def sizes_of(node: Node) -> tuple[int, ...] | None:
    """The shape of a LazyBuffer; None where Variables say it."""
    sizes = tuple(size for size in node.shape or () if isinstance(size, int))
    return sizes if sizes and len(sizes) == len(node.shape or ()) else None


def row_width(uops: tuple[UOp, ...], name: str, size: int) -> int:
    """How many elements to draw in a row: the longest stride of an index that divides the buffer, at most 64."""
    strides = []
    for node in uops:
        if node.op is Ops.INDEX and name == (f"data{node.src[0].arg}" if node.src[0].op is Ops.DEFINE_GLOBAL else name):
            strides += [
                one.src[1].arg
                for one in node.src[1].toposort()
                if one.op is Ops.MUL and one.src[1].op is Ops.CONST and 1 < one.src[1].arg <= MOST_IN_ROW
            ]
    fitting = [stride for stride in strides if size % stride == 0]
    return max(fitting, default=min(size, 16) or 1)


def caches_data(explorer: ByHand, kernel: int, before: Opts | None = (), after: Opts | None = None) -> dict[str, Any]:
    """The caches of a kernel with the opts `before` and those `after` (None: as captured) side by side, and the lines
    of one tile of each. What is the same on both sides stands alone."""
    later = explorer.cache_model(kernel, after)
    if before == after or (before is not None and tuple(before) == later.opts):
        return {"before": None, "after": {**later.as_data(), "tile": tile_data(later)}, "rows": []}
    earlier = explorer.cache_model(kernel, before)
    found = earlier.compare(later).as_data()
    for side, model in (("before", earlier), ("after", later)):
        found[side]["tile"] = tile_data(model)
    return found


def tile_data(model: CacheModel) -> dict[str, Any] | None:
    """The cache lines that one pass of the innermost loop touches, with the loops around it in their middle."""
    loops = max((one.loops for one in model.accesses), key=len, default=())
    around = loops[:-1]
    if not around:
        return None
    ends = {name: model.stream.uops[place].src[0] for place, name in model.stream.loop_names.items()}
    counters = {name: int(ends[name].arg) // 2 for name in around if ends[name].op is Ops.CONST}
    try:
        found = model.lines_of(**counters)
    except DataDependent:
        return None
    line = model.caches[0].line_bytes
    buffers = [[name, lines, -(-model.footprint[name] // line)] for name, lines in found.items()]
    return {"counters": list(counters.items()), "buffers": buffers}


__all__ = ["QUESTIONS", "ByHandAnswers", "caches_data", "debugger_data"]
