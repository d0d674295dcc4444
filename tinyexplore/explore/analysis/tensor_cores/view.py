"""The tensor cores of a GPU or CPU, or of a capture, lane by lane: as data, as text, and as pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.analysis.tensor_cores.elements import FragmentElement, elements, formulas
from tinyexplore.explore.analysis.tensor_cores.page import cores_html
from tinyexplore.explore.analysis.tensor_cores.picture import core_svg
from tinyexplore.explore.tracefile.encodable_text import PageText, write_text
from tinyexplore.explore.tracefile.result_display import page_frame
from tinyexplore.target import AMX, GPUS, TENSOR_CORES, TensorCore, UnknownTarget, choice_of

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparisons.comparison import HasTrace


@dataclass(frozen=True)
class TensorCores:
    """A list of tensor cores. A notebook displays it as the page of `to_html`.

    cores: the cores, in order.
    title: the machine or capture that has them.
    """

    title: str
    cores: tuple[TensorCore, ...]

    def __len__(self) -> int:
        return len(self.cores)

    def __iter__(self) -> Iterator[TensorCore]:
        return iter(self.cores)

    def __getitem__(self, core: int | str) -> TensorCore:
        """Returns a core by its position or its name."""
        if isinstance(core, int):
            return self.cores[core]
        for candidate in self.cores:
            if candidate.name == core:
                return candidate
        raise KeyError(f"{core!r}; available: {', '.join(candidate.name for candidate in self.cores)}")

    def __repr__(self) -> str:
        return f"<{self.title}: {', '.join(core.name for core in self.cores) or 'none'}>"

    def __str__(self) -> str:
        return "\n\n".join(core_text(core) for core in self.cores) or f"{self.title}: none"

    def elements(self, core: int | str = 0) -> tuple[FragmentElement, ...]:
        """Returns every element of A, B and C of a core, row by row."""
        return elements(self[core])

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for JSON: the facts of each core, and its elements as (row, column, lanes, register)."""
        return {"title": self.title, "cores": [core_dict(core) for core in self.cores]}

    def svg(self, core: int | str = 0) -> str:
        """Returns one core as a picture: A on the left, B above, C between; each element has its lane and register."""
        return core_svg(self[core])

    def to_html(self, path: str | Path | None = None) -> str:
        """Returns one page without script or request; also write it to `path` if given.

        Pointing at an element shows all elements of its lane.
        """
        page = cores_html(self.title, self.cores)
        if path is not None:
            write_text(path, page)
        return PageText(page)

    def _repr_html_(self) -> str:
        return page_frame("tensor cores", self.to_html(), "46rem")


def tensor_cores(of: str | HasTrace) -> TensorCores:
    """Returns the tensor cores of a machine, of a name or of a capture.

    of: a GPU (`"sm_80"`), a CPU with tile registers (`"sapphirerapids"`), a core (`"mma_m16n8k16_f16"`), or a capture.

    Raises:
        ValueError: the name is none of these.
    """
    if not isinstance(of, str):
        used = dict.fromkeys(node.arg.strip("'") for node in of.trace.nodes if node.op == "WMMA")
        title = of.trace.title or "this capture"
        return TensorCores(f"Tensor cores that {title} uses", tuple(TENSOR_CORES[name] for name in used))
    if of in TENSOR_CORES:
        return TensorCores(f"Tensor core {of}", (TENSOR_CORES[of],))
    if of in GPUS:
        return TensorCores(f"Tensor cores of {of}, {GPUS[of].description}", GPUS[of].cores)
    if (features := features_of_cpu(of)) is not None:
        tiles = tuple(core for core in AMX if features.issuperset(core.needs))
        return TensorCores(f"Tile registers of {of}", tiles)
    gpu_names = ", ".join(name for name, gpu in GPUS.items() if gpu.cores)
    raise ValueError(f"tensor_cores({of!r}): no GPU, no CPU and no core of that name; GPUs with cores are {gpu_names}")


def features_of_cpu(name: str) -> frozenset[str] | None:
    """Returns the features of the CPU with this name; None if there is no such CPU."""
    try:
        return choice_of(name).features
    except UnknownTarget:
        return None


def core_dict(core: TensorCore) -> dict[str, Any]:
    """Returns a core as plain data."""
    elements_of: dict[str, list[Any]] = {"A": [], "B": [], "C": []}
    for element in elements(core):
        elements_of[element.matrix].append([element.row, element.column, list(element.lanes), element.register])
    facts = {"name": core.name, "dims": list(core.dims), "lanes": core.lanes, "instruction": core.call}
    kinds = {"factor": core.factor.name, "accumulator": core.accumulator.name, "source": core.source}
    return {**facts, **kinds, "elements": elements_of}


def core_text(core: TensorCore) -> str:
    """Returns a core as a few lines of text: its facts, and the positions of each lane's elements."""
    return "\n".join((core.describe(), f"  {core.call}", *(f"  {line}" for line in formulas(core))))


__all__ = ["TensorCores", "core_text", "tensor_cores"]
