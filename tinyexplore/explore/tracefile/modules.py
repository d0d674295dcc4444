"""The modules of a trace (`model`, `model.layers[0]`, …) as a tree, with the time and memory of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import is_tensor, tensor_kinds
from tinyexplore.explore.tracefile.encodable_text import for_terminal
from tinyexplore.explore.tracefile.model import KernelInfo, ModuleCost, Node, TraceTables
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.texts import duration_text

K = TypeVar("K")
OUTSIDE = "(outside of modules)"


@dataclass(frozen=True, slots=True, repr=False)
class Module(DisplayableRow):
    """A module and its cost, including the modules inside it. `Trace.module_costs` has the same data as rows.

    If several modules are fused into one kernel, its time is divided among them by the elements that each computes. The
    times of a tree therefore add up.

    name: the name of the variable, or of the attribute of the module around it.
    kind: the name of its class.
    time_us: its share of the kernels' median times, in microseconds.
    backward_us: the part of `time_us` for gradients, in microseconds.
    parameter_bytes: the size of its Tensors, in bytes.
    result_bytes: the size of the buffers that kernels stored for it, in bytes.
    kernels: the kernels that compute a part of it.
    children: the modules inside it.
    nodes: the LazyBuffers created in it.
    scope: its id in the trace, None for the root and for work outside of modules.
    """

    name: str
    kind: str
    time_us: float
    backward_us: float
    parameter_bytes: int
    result_bytes: int
    kernels: tuple[int, ...]
    children: tuple[Module, ...]
    nodes: tuple[int, ...] = ()
    scope: int | None = None

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Module]]:
        """Yields this module and all modules inside it, outermost first, each with its depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    def to_dict(self) -> dict[str, Any]:
        """Returns the tree as plain data for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "time_us": self.time_us,
            "backward_us": self.backward_us,
            "parameter_bytes": self.parameter_bytes,
            "result_bytes": self.result_bytes,
            "kernels": list(self.kernels),
            "children": [child.to_dict() for child in self.children],
        }

    def as_text(self) -> str:
        return f"module {self.name}: {duration_text(self.time_us)}, {count_text(len(self.kernels), 'kernel')}"

    def __str__(self) -> str:
        """Returns the tree as a table for a terminal."""
        lines = [f"{'module':36} {'time':>9} {'backward':>9} {'parameters':>11} {'results':>11}  kernels"]
        for depth, module in self.walk():
            name = f"{'  ' * depth}{module.name}" + (f": {module.kind}" if module.kind != module.name else "")
            backward = duration_text(module.backward_us) if module.backward_us else ""
            lines.append(
                f"{name:36} {duration_text(module.time_us):>9} {backward:>9} {module.parameter_bytes:>9} B "
                f"{module.result_bytes:>9} B  {len(module.kernels)}"
            )
        return for_terminal("\n".join(lines))


@dataclass(slots=True)
class _CostSum:
    """A running sum of costs.

    time_us: microseconds.
    backward_us: the microseconds for gradients.
    result_bytes: bytes that kernels stored.
    """

    time_us: float = 0.0
    backward_us: float = 0.0
    result_bytes: int = 0


def modules(trace: TraceTables) -> Module:
    """Returns the tree of modules.

    The root is the whole trace, with a child for each outermost module. The last child is the work outside of all
    modules.
    """
    sums: dict[int | None, _CostSum] = {}
    kernels: dict[int | None, set[int]] = {}
    medians = {run.kernel: run.median_us for run in trace.runs}
    for kernel in trace.kernels:
        for (scope, is_backward), share in _compute_shares(trace, kernel).items():
            time_us = share * medians.get(kernel.id, 0.0)
            total = sums.setdefault(scope, _CostSum())
            total.time_us += time_us
            total.backward_us += time_us if is_backward else 0.0
            kernels.setdefault(scope, set()).add(kernel.id)
        for root, buffer in zip(kernel.roots, kernel.buffers, strict=False):
            sums.setdefault(trace.nodes[root].scope, _CostSum()).result_bytes += trace.buffers[buffer].bytes
    nodes_of: dict[int | None, list[int]] = {}
    kinds = tensor_kinds(trace)
    for node in trace.nodes:
        if node.kind in kinds:
            nodes_of.setdefault(node.scope, []).append(node.id)
    inner: dict[int | None, list[int]] = {}
    for row in trace.scopes:
        inner.setdefault(row.parent, []).append(row.id)
    for ids in inner.values():
        if all(trace.scopes[scope].name.isdecimal() for scope in ids):  # `0`, `1`, `2` in a Sequential
            ids.sort(key=lambda scope: int(trace.scopes[scope].name))

    def module(scope: int) -> Module:
        row = trace.scopes[scope]
        return _add_children(
            row.name,
            row.kind,
            sums.get(scope, _CostSum()),
            row.parameter_bytes,
            kernels.get(scope, set()),
            tuple(module(child) for child in inner.get(scope, ())),
            nodes_of.get(scope, []),
            scope,
        )

    children = [module(scope) for scope in inner.get(None, ())]
    if None in sums:
        children.append(
            _add_children(OUTSIDE, OUTSIDE, sums[None], 0, kernels.get(None, set()), (), nodes_of.get(None, []))
        )
    title = trace.title or "trace"
    return _add_children(title, title, _CostSum(), 0, set(), tuple(children), [])


def _add_children(
    name: str,
    kind: str,
    own_cost: _CostSum,
    parameter_bytes: int,
    kernels: set[int],
    children: tuple[Module, ...],
    nodes: list[int],
    scope: int | None = None,
) -> Module:
    """Returns a module whose cost is its own part plus those of its children."""
    return Module(
        name,
        kind,
        own_cost.time_us + sum(child.time_us for child in children),
        own_cost.backward_us + sum(child.backward_us for child in children),
        parameter_bytes + sum(child.parameter_bytes for child in children),
        own_cost.result_bytes + sum(child.result_bytes for child in children),
        tuple(sorted(kernels.union(*(child.kernels for child in children)))),
        children,
        tuple(sorted({*nodes, *(node for child in children for node in child.nodes)})),
        scope,
    )


def module_costs(trace: TraceTables) -> tuple[ModuleCost, ...]:
    """Returns the tree of modules as rows, outermost first; empty if the trace has no modules."""
    if not trace.scopes:
        return ()
    rows: list[ModuleCost] = []

    def add(module: Module, parent: int | None) -> None:
        row = len(rows)
        sizes = (module.parameter_bytes, module.result_bytes)
        rows.append(ModuleCost(row, parent, module.scope, module.time_us, module.backward_us, *sizes, module.kernels))
        for child in module.children:
            add(child, row)

    add(modules(trace), None)
    return tuple(rows)


def _compute_shares(trace: TraceTables, kernel: KernelInfo) -> dict[tuple[int | None, bool], float]:
    """Returns the share of a kernel for each (module id, whether for gradients)."""
    return shares(trace, kernel, lambda node: (node.scope, node.backward))


def shares(trace: TraceTables, kernel: KernelInfo, key_of: Callable[[Node], K]) -> dict[K, float]:
    """Divides a kernel among keys by the elements that its operations compute. Returns each key's share; they add up to
    1.

    A kernel that only moves data is divided evenly among the keys of its results.
    """
    work: dict[K, float] = {}
    for member in dict.fromkeys((*kernel.nodes, *kernel.roots)):
        node = trace.nodes[member]
        if is_tensor(trace, node) and node.group not in ("movement", "const", "buffer"):
            key = key_of(node)
            work[key] = work.get(key, 0.0) + _count_elements(trace, node)
    total = sum(work.values())
    if not total:
        roots = [trace.nodes[root] for root in kernel.roots]
        keys = list(dict.fromkeys(key_of(node) for node in roots))
        return {key: 1 / len(keys) for key in keys}
    return {key: part / total for key, part in work.items()}


def _count_elements(trace: TraceTables, node: Node) -> int:
    """Returns the number of elements that an operation processes; for a reduction, the number that it reads."""
    sources = [trace.nodes[src] for src in node.src] if node.group == "reduce" else []
    return max([_count_shape(node), *(_count_shape(source) for source in sources)])


def _count_shape(node: Node) -> int:
    """Returns the number of elements of a node's shape. A symbolic size ("v=3") counts as its bound value."""
    sizes = [
        int(str(size).rpartition("=")[2]) if str(size).rpartition("=")[2].isdigit() else 1 for size in node.shape or ()
    ]
    return prod(sizes)
