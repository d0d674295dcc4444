"""What a page with engine knows of a capture beside its trace: the machines that kernels were compiled for, and what
the kernels read, where that was kept. Plain data, as JSON."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.explore.exports.live_pages.graphs import graph_from_data, graph_to_data, is_plain
from tinyexplore.explore.recording.rows import KeptGraph
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.target import TENSOR_CORES, Target
from tinyexplore.uop import Ops

CARRIED_BYTES = 2 << 20  # of what kernels read: a page is to stay small

_OPS, _TYPES = ("native_ops", "dots"), ("native_dtypes", "storage_only", "lacks")
Contents = tuple[bytes | None, ...]


@dataclass(frozen=True)
class Carried:
    """targets: by device. values: of a kernel's Variables, by its number. contents: what lay in its buffers before it
    ran. left_out: how many kernels' contents are too much for a page. graphs: what was scheduled, by the stages."""

    targets: Mapping[str, Target] = field(default_factory=dict)
    values: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    contents: Mapping[int, Contents] = field(default_factory=dict)
    left_out: int = 0
    graphs: Mapping[int, KeptGraph] = field(default_factory=dict)

    def to_json(self) -> str:
        """As a page has it."""
        contents = {
            number: [None if one is None else b64encode(one).decode() for one in parts]
            for number, parts in self.contents.items()
        }
        targets = {device: target_to_data(target) for device, target in self.targets.items()}
        graphs = {stage: graph_to_data(graph) for stage, graph in self.graphs.items()}
        data = {
            "targets": targets,
            "values": dict(self.values),
            "contents": contents,
            "left_out": self.left_out,
            "graphs": graphs,
        }
        return json.dumps(data, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Carried:
        data = json.loads(text)
        contents = {
            int(number): tuple(None if one is None else b64decode(one) for one in parts)
            for number, parts in data["contents"].items()
        }
        return Carried(
            {device: target_from_data(target) for device, target in data["targets"].items()},
            {int(number): tuple(values) for number, values in data["values"].items()},
            contents,
            data["left_out"],
            {int(stage): graph_from_data(graph) for stage, graph in data["graphs"].items()},
        )


def carried_of(trace: Trace, kept: Mapping[int, Any], graphs: Mapping[int, KeptGraph] | None = None) -> Carried:
    """What a page of `trace` carries. `kept`: `Kept` kernels by their numbers, none where it came from a file; so are
    `graphs`, what was scheduled."""
    targets: dict[str, Target] = {}
    contents: dict[int, Contents] = {}
    room, left_out = CARRIED_BYTES, 0
    for number, one in kept.items():
        targets.setdefault(_family(trace.kernels[number].device), one.spec.target)
        if one.contents is None:
            continue
        needed = sum(len(part) for part in one.contents if part is not None)
        if needed > room:
            left_out += 1
            continue
        room -= needed
        contents[number] = one.contents
    described = dict(trace.options).get("target", "")
    for device in {_family(kernel.device) for kernel in trace.kernels} - targets.keys():
        if (target := _described(device, described)) is not None:
            targets[device] = target
    values = {number: tuple(one.values) for number, one in kept.items() if one.values}
    known = {stage: graph for stage, graph in (graphs or {}).items() if is_plain(graph)}
    return Carried(targets, values, contents, left_out, known)


def _family(device: str) -> str:
    return device.partition(":")[0]


def _described(device: str, text: str) -> Target | None:
    """The target of a device here, if it is the one that a trace was made for."""
    try:
        target = Device[device].target
    except (DeviceUnavailable, ValueError, KeyError):
        return None
    return target if target.describe() == text else None


def target_to_data(target: Target) -> dict[str, Any]:
    """A Target as what JSON can write."""
    found: dict[str, Any] = {}
    for one in fields(target):
        value = getattr(target, one.name)
        if one.name in _OPS:
            value = sorted(op.name for op in value)
        elif one.name in _TYPES:
            value = [dtype.name for dtype in value]
        elif one.name == "cores":
            value = [core.name for core in value]
        found[one.name] = value
    return found


def target_from_data(data: Mapping[str, Any]) -> Target:
    """The Target that `target_to_data` wrote."""
    types = dtypes.fields()
    ops = {name: frozenset(Ops[op] for op in _words(data[name])) for name in _OPS}
    kinds = {name: tuple(types[word] for word in _words(data[name])) for name in _TYPES}
    cores = tuple(TENSOR_CORES[name] for name in _words(data["cores"]))
    return Target(**{**data, **ops, **kinds, "cores": cores})


def _words(value: Iterable[str]) -> list[str]:
    return list(value)


__all__ = ["CARRIED_BYTES", "Carried", "carried_of", "target_from_data", "target_to_data"]
