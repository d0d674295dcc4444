"""The data about a capture that a page with engine carries beside the trace, as JSON.

It has the machines for which kernels were compiled, and the stored inputs of the kernels.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.explore.exports.engine_pages.graphs import graph_from_data, graph_to_data, is_plain
from tinyexplore.explore.recording.captured_graph import CapturedGraph
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.target import TENSOR_CORES, Target
from tinyexplore.uop import Ops

CARRIED_BYTES = 2 << 20  # most bytes of kernels' inputs, so that a page stays small

_OPS, _TYPES = ("native_ops", "dots"), ("native_dtypes", "storage_only", "unsupported_dtypes")
Contents = tuple[bytes | None, ...]


@dataclass(frozen=True)
class PageData:
    """The data that a page with engine carries beside the trace.

    targets: the target of each device.
    values: the values of a kernel's Variables, by kernel number.
    contents: the contents of a kernel's buffers before it ran, by kernel number.
    left_out: the number of kernels whose contents are too large for a page.
    graphs: the scheduled graphs, by stage.
    """

    targets: Mapping[str, Target] = field(default_factory=dict)
    values: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    contents: Mapping[int, Contents] = field(default_factory=dict)
    left_out: int = 0
    graphs: Mapping[int, CapturedGraph] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns the data as the JSON text in a page."""
        contents = {
            number: [None if part is None else b64encode(part).decode() for part in parts]
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
    def from_json(text: str) -> PageData:
        data = json.loads(text)
        contents = {
            int(number): tuple(None if part is None else b64decode(part) for part in parts)
            for number, parts in data["contents"].items()
        }
        return PageData(
            {device: target_from_data(target) for device, target in data["targets"].items()},
            {int(number): tuple(values) for number, values in data["values"].items()},
            contents,
            data["left_out"],
            {int(stage): graph_from_data(graph) for stage, graph in data["graphs"].items()},
        )


def collect_page_data(
    trace: Trace, captured: Mapping[int, Any], graphs: Mapping[int, CapturedGraph] | None = None
) -> PageData:
    """Returns the data that a page of `trace` carries beside the trace.

    Args:
        trace: the trace.
        captured: the captured kernels by number; empty for a trace from a file.
        graphs: the scheduled graphs by stage; None for a trace from a file.
    """
    targets: dict[str, Target] = {}
    contents: dict[int, Contents] = {}
    bytes_left, left_out = CARRIED_BYTES, 0
    for number, kernel in captured.items():
        targets.setdefault(_name_of_device(trace.kernels[number].device), kernel.spec.target)
        if kernel.contents is None:
            continue
        needed = sum(len(part) for part in kernel.contents if part is not None)
        if needed > bytes_left:
            left_out += 1
            continue
        bytes_left -= needed
        contents[number] = kernel.contents
    described = dict(trace.options).get("target", "")
    for device in {_name_of_device(kernel.device) for kernel in trace.kernels} - targets.keys():
        if (target := _find_described_target(device, described)) is not None:
            targets[device] = target
    values = {number: tuple(kernel.values) for number, kernel in captured.items() if kernel.values}
    plain_graphs = {stage: graph for stage, graph in (graphs or {}).items() if is_plain(graph)}
    return PageData(targets, values, contents, left_out, plain_graphs)


def _name_of_device(device: str) -> str:
    return device.partition(":")[0]


def _find_described_target(device: str, text: str) -> Target | None:
    """Returns the target of a device of this process if its description is `text`, else None."""
    try:
        target = Device[device].target
    except (DeviceUnavailable, ValueError, KeyError):
        return None
    return target if target.describe() == text else None


def target_to_data(target: Target) -> dict[str, Any]:
    """Returns a Target as plain data for JSON."""
    data: dict[str, Any] = {}
    for target_field in fields(target):
        value = getattr(target, target_field.name)
        if target_field.name in _OPS:
            value = sorted(op.name for op in value)
        elif target_field.name in _TYPES:
            value = [dtype.name for dtype in value]
        elif target_field.name == "cores":
            value = [core.name for core in value]
        data[target_field.name] = value
    return data


def target_from_data(data: Mapping[str, Any]) -> Target:
    """Returns the Target that `target_to_data` encoded."""
    types = dtypes.fields()
    ops = {name: frozenset(Ops[op] for op in _split_words(data[name])) for name in _OPS}
    kinds = {name: tuple(types[word] for word in _split_words(data[name])) for name in _TYPES}
    cores = tuple(TENSOR_CORES[name] for name in _split_words(data["cores"]))
    return Target(**{**data, **ops, **kinds, "cores": cores})


def _split_words(value: Iterable[str]) -> list[str]:
    return list(value)


__all__ = ["CARRIED_BYTES", "PageData", "collect_page_data", "target_from_data", "target_to_data"]
