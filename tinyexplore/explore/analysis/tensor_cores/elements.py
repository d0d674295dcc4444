"""Maps each element of a tensor core's matrices to its lane and register."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.target import FragmentLayout, TensorCore


@dataclass(frozen=True, slots=True, repr=False)
class FragmentElement(DisplayableRow):
    """An element of a matrix, and the lanes that hold it. For the tile registers of a CPU, a lane is a row of the tile.

    matrix: "A", "B" or "C".
    row: the row in the matrix.
    column: the column in the matrix.
    lanes: one lane, or several with the same value.
    register: the register of the lane; on a CPU the position in the row.
    """

    matrix: str
    row: int
    column: int
    lanes: tuple[int, ...]
    register: int


def elements(core: TensorCore) -> tuple[FragmentElement, ...]:
    """Returns every element of A, B and C, row by row."""
    holders_of: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for matrix, layout in core.layouts.items():
        for lane in range(core.lanes):
            for register in range(layout.registers):
                holders_of.setdefault((matrix, *layout.position_of(lane, register)), []).append((lane, register))
    return tuple(
        FragmentElement(*position, tuple(lane for lane, _ in holders), holders[0][1])
        for position, holders in sorted(holders_of.items())
    )


def formulas(core: TensorCore) -> list[str]:
    """Returns, for A, B and C, formulas for the row and column of the element in a lane's register."""
    return [
        f"{matrix}[{coordinate_text(layout.rows, core, layout)}, {coordinate_text(layout.columns, core, layout)}]"
        for matrix, layout in core.layouts.items()
    ]


def coordinate_text(bits: tuple[str, ...], core: TensorCore, layout: FragmentLayout) -> str:
    """Returns a coordinate as arithmetic: `lane // 4 + register // 2 % 2 * 8`."""
    sizes, parts, bit = {"L": core.lanes, "r": layout.registers}, [], 0
    fields = dict(zip("Lr", [name.split()[0] for name in core.holder]))
    while bit < len(bits):
        letter, first = bits[bit][0], int(bits[bit][1:])
        width = 1
        while bit + width < len(bits) and bits[bit + width] == f"{letter}{first + width}":
            width += 1
        part = fields[letter] + (f" // {1 << first}" if first else "")
        part += f" % {1 << width}" if 1 << (first + width) < sizes[letter] else ""
        parts.append(part + (f" * {1 << bit}" if bit else ""))
        bit += width
    return " + ".join(sorted(parts, key=lambda part: part.startswith(fields["r"])))


__all__ = ["FragmentElement", "elements", "formulas"]
