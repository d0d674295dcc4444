"""Graphs of neighboring kernels of a replay, which a device launches by one driver call (a CUDA graph)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import groupby

from tinyexplore.device import Device, DeviceGraph, GraphFactory
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.trace import LaunchesGrouped, active_recorder


class GraphLaunch:
    """Launches `items`, kernels of one device, in their order, as one graph.

    The first call builds the graph; later calls change its arguments. If the graph does not support a call, the kernels
    run one by one, and the first of them records the reason.
    """

    def __init__(self, items: Sequence[ExecItem], graphs: GraphFactory) -> None:
        self.items, self.graphs = items, graphs
        self.graph: DeviceGraph | None = None
        self.refusal = ""  # why the last call did not use the graph

    def __call__(self) -> None:
        kernels = [item.bind() for item in self.items]
        refusal = self.graphs.refusal(kernels)
        if refusal and not self.refusal:
            warnings.warn(f"{len(kernels)} kernels of a replay are launched one by one: {refusal}", stacklevel=2)
        self.refusal = refusal
        if refusal:
            for item in self.items:
                item.execute()
            return
        if self.graph is None:
            self.graph = self.graphs.make(kernels)
        self.graph.launch(kernels)


def graph_functions(items: Sequence[ExecItem]) -> list[Callable[[], None]]:
    """Returns functions that run `items` in order. Neighboring kernels of a device with graphs become one function."""
    steps: list[Callable[[], None]] = []
    for device, neighbors in groupby(items, key=_find_device_with_graphs):
        neighboring_items = list(neighbors)
        graphs = None if device is None else Device[device].graphs
        if graphs is not None and len(neighboring_items) > 1:
            steps.append(GraphLaunch(neighboring_items, graphs))
        else:
            steps += [item.execute for item in neighboring_items]
    return steps


def record_launches(items: Sequence[ExecItem]) -> None:
    """Records which of `items` are launched together on devices with graphs, if a recorder is attached."""
    recorder = active_recorder()
    if recorder is None:
        return
    sizes: list[int] = []
    outside_graphs: list[str] = []
    for device, neighbors in groupby(items, key=_find_device_with_graphs):
        neighboring_items = list(neighbors)
        if device is None:
            pairs = [item.buffers for item in neighboring_items if item.runner is None]
            outside_graphs += [
                f"copy: the host does it, from {source.device} to {target.device}" for target, source in pairs
            ]
        elif len(neighboring_items) > 1:
            sizes.append(len(neighboring_items))
        else:
            outside_graphs += [
                f"{item.runner.spec.name}: it has no neighbor" for item in neighboring_items if item.runner is not None
            ]
    if sizes:
        recorder.record(LaunchesGrouped(tuple(sizes), tuple(outside_graphs)))


def _find_device_with_graphs(item: ExecItem) -> str | None:
    name = item.item.device
    return name if item.runner is not None and Device[name].graphs is not None else None


__all__ = ["GraphLaunch", "graph_functions", "record_launches"]
