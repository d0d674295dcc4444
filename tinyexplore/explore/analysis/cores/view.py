"""The tensor cores of a GPU or a CPU, or those that a capture uses, lane by lane: as data, as text, and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.analysis.cores.elements import FragmentElement, elements, formulas
from tinyexplore.explore.analysis.cores.page import cores_html
from tinyexplore.explore.analysis.cores.picture import core_svg
from tinyexplore.explore.tracefile.readable import page_frame
from tinyexplore.explore.tracefile.wellformed import PageText, write_text
from tinyexplore.target import AMX, GPUS, TENSOR_CORES, TensorCore, UnknownTarget, choice_of

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparing.comparison import HasTrace


@dataclass(frozen=True)
class TensorCores:
    """`cores`: in order; `title`: whose they are. In a notebook they show themselves as the page of `to_html`."""

    title: str
    cores: tuple[TensorCore, ...]

    def __len__(self) -> int:
        return len(self.cores)

    def __iter__(self) -> Iterator[TensorCore]:
        return iter(self.cores)

    def __getitem__(self, core: int | str) -> TensorCore:
        """A core by its place or its name."""
        if isinstance(core, int):
            return self.cores[core]
        for candidate in self.cores:
            if candidate.name == core:
                return candidate
        raise KeyError(f"{core!r}; there are {', '.join(candidate.name for candidate in self.cores)}")

    def __repr__(self) -> str:
        return f"<{self.title}: {', '.join(core.name for core in self.cores) or 'none'}>"

    def __str__(self) -> str:
        return "\n\n".join(core_text(core) for core in self.cores) or f"{self.title}: none"

    def elements(self, core: int | str = 0) -> tuple[FragmentElement, ...]:
        """Every element of A, B and C of a core, row by row."""
        return elements(self[core])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: of each core its facts, and its elements as (row, column, lanes, register)."""
        return {"title": self.title, "cores": [core_dict(core) for core in self.cores]}

    def svg(self, core: int | str = 0) -> str:
        """One core as a picture: A on the left, B above, C between them, each element with its lane and register."""
        return core_svg(self[core])

    def to_html(self, path: str | Path | None = None) -> str:
        """One page without script or request: point at an element to see all that its lane holds; written to `path` if
        one is given."""
        page = cores_html(self.title, self.cores)
        if path is not None:
            write_text(path, page)
        return PageText(page)

    def _repr_html_(self) -> str:
        return page_frame("tensor cores", self.to_html(), "46rem")


def tensor_cores(of: str | HasTrace) -> TensorCores:
    """The tensor cores of a GPU (`"sm_80"`), the tile registers of a CPU (`"sapphirerapids"`), the core of a name
    (`"mma_m16n8k16_f16"`), or those that the kernels of a capture use. ValueError for a name that is none of these."""
    if not isinstance(of, str):
        used = dict.fromkeys(node.arg.strip("'") for node in of.trace.nodes if node.op == "WMMA")
        title = of.trace.title or "this capture"
        return TensorCores(f"Tensor cores that {title} uses", tuple(TENSOR_CORES[name] for name in used))
    if of in TENSOR_CORES:
        return TensorCores(f"Tensor core {of}", (TENSOR_CORES[of],))
    if of in GPUS:
        return TensorCores(f"Tensor cores of {of}, {GPUS[of].words}", GPUS[of].cores)
    if (features := features_of_cpu(of)) is not None:
        tiles = tuple(core for core in AMX if features.issuperset(core.needs))
        return TensorCores(f"Tile registers of {of}", tiles)
    have = ", ".join(name for name, gpu in GPUS.items() if gpu.cores)
    raise ValueError(f"tensor_cores({of!r}): no GPU, no CPU and no core of that name; GPUs with cores are {have}")


def features_of_cpu(name: str) -> frozenset[str] | None:
    """The features of the CPU with this name; None for a name that no CPU has."""
    try:
        return choice_of(name).features
    except UnknownTarget:
        return None


def core_dict(core: TensorCore) -> dict[str, Any]:
    """A core as plain data."""
    elements_of: dict[str, list[Any]] = {"A": [], "B": [], "C": []}
    for element in elements(core):
        elements_of[element.matrix].append([element.row, element.column, list(element.lanes), element.register])
    facts = {"name": core.name, "dims": list(core.dims), "lanes": core.lanes, "instruction": core.call}
    kinds = {"factor": core.factor.name, "accumulator": core.accumulator.name, "source": core.source}
    return {**facts, **kinds, "elements": elements_of}


def core_text(core: TensorCore) -> str:
    """A core in a few lines: its facts, and where each lane's elements lie."""
    return "\n".join((core.describe(), f"  {core.call}", *(f"  {line}" for line in formulas(core))))


__all__ = ["TensorCores", "core_text", "tensor_cores"]
