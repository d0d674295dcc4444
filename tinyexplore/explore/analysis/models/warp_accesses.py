"""The loads and stores of a GPU kernel, with the memory requests of a warp at each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tinyexplore.explore.analysis.models.warps import WarpRequest
from tinyexplore.explore.tracefile.result_display import DisplayableRow


@dataclass(frozen=True, repr=False)
class WarpAccessData(DisplayableRow):
    """A load or store of a GPU kernel, as the panel of warps draws it."""

    place: int
    """Line of the listing."""
    text: str
    """Text of the line."""
    source: str
    """Source line of the access."""
    buffer: str
    """Name of the buffer."""
    space: Literal["global", "shared"]
    """The memory space."""
    stored: bool
    """Whether it is a store."""
    nbytes: int
    """Bytes of one lane."""
    loops: tuple[str, ...]
    """Names of the loops around it."""
    lanes: tuple[int | None, ...]
    """Address of each lane of the first warp, in bytes; None for a masked lane."""
    banks: tuple[int, ...]
    """Number of accesses of each bank of shared memory."""
    segments: int
    """Number of segments of 32 bytes that the first warp accesses."""
    lines: int
    """Number of cache lines that the first warp accesses."""
    requests: int
    """Number of simulated requests of all warps."""
    mean: float
    """Average number of segments per request."""
    least: float
    """Average of the fewest segments that could hold the bytes of a request."""
    efficiency: float | None
    """Used bytes / transferred bytes; None for shared memory."""
    degree: int
    """Number of accesses of the busiest bank in one request."""
    says: str
    """The access pattern, as text."""
    advice: str
    """A suggestion to improve it; "" if there is none."""


@dataclass(frozen=True, repr=False)
class WarpAccess(DisplayableRow):
    """One LOAD or STORE of a GPU kernel.

    place: its line in the listing of UOps.
    text: the text of that line.
    source: its line in the program.
    buffer: the buffer that it reads or writes.
    space: the memory space.
    stored: whether it writes.
    nbytes: bytes of one access.
    loops: the names of the loops around it.
    shown: the request of the first warp in the first iteration; None if it depends on loaded values.
    requests: the number of simulated requests.
    segments: the number of segments that memory transfers for all of them.
    least: the fewest segments that could hold their bytes.
    used_bytes: the bytes that some lane uses.
    degree: the largest bank conflict of shared memory; 1 for none.
    note: why `shown` is None, else "".
    """

    place: int
    text: str
    source: str
    buffer: str
    space: Literal["global", "shared"]
    stored: bool
    nbytes: int
    loops: tuple[str, ...]
    shown: WarpRequest | None
    requests: int = 0
    segments: int = 0
    least: int = 0
    used_bytes: int = 0
    degree: int = 1
    note: str = ""

    @property
    def efficiency(self) -> float | None:
        """Used bytes / transferred bytes; None for shared memory, and if unknown."""
        return self.used_bytes / (32 * self.segments) if self.segments and self.space == "global" else None

    @property
    def says(self) -> str:
        """The verdict on the access as text, or the reason why there is none."""
        return self.shown.says if self.shown is not None else self.note

    @property
    def advice(self) -> str:
        """A suggestion to avoid bank conflicts and uncoalesced segments; "" if there are none."""
        if self.degree > 1:
            return (
                f"The busiest bank serves {self.degree} accesses one after the other. Rows of the tile that are a few "
                "words longer (STAGE pads the rows), or vectors along a row, spread the words over the banks."
            )
        if self.requests and self.segments > self.least:
            moved, enough = self.segments / self.requests, self.least / self.requests
            return (
                f"Memory moves {moved:.3g} segments; {enough:.3g} would suffice. Neighboring lanes should access "
                "neighboring elements. Make the contiguous axis the first LOCAL axis, UPCAST along it, or "
                "STAGE a tile."
            )
        return ""

    @property
    def figures(self) -> tuple[str, str, str]:
        """Returns segments per request, the share of used bytes, and the bank conflict, as text."""
        if not self.requests:
            return "", "", ""
        if self.space == "shared":
            return "", "", f"{self.degree}-way" if self.degree > 1 else "free"
        share = f"{100 * self.efficiency:.3g}%" if self.efficiency is not None else ""
        return f"{self.segments / self.requests:.4g} of {self.least / self.requests:.4g}", share, ""

    def as_data(self) -> WarpAccessData:
        """Returns the data that the panel draws."""
        request, requests = self.shown, self.requests
        return WarpAccessData(
            place=self.place,
            text=self.text,
            source=self.source,
            buffer=self.buffer,
            space=self.space,
            stored=self.stored,
            nbytes=self.nbytes,
            loops=self.loops,
            lanes=tuple(request.addresses) if request is not None else (),
            banks=tuple(request.banks()) if request is not None and request.shared else (),
            segments=request.segments if request is not None else 0,
            lines=request.lines if request is not None else 0,
            requests=requests,
            mean=self.segments / requests if requests else 0,
            least=self.least / requests if requests else 0,
            efficiency=self.efficiency,
            degree=self.degree,
            says=self.says,
            advice=self.advice,
        )
