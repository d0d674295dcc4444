"""The definition of one kind of Opt: its effect, the amounts to try, its legality check, and its transformation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import fill
from typing import TYPE_CHECKING

from tinyexplore.uop import UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

BLOCKS = (2, 3, 4, 6, 8, 12, 16, 32)  # the usual sizes of a block of steps
GROUP_SIZES = (64, 128, 256)  # the usual sizes of a work-group
ARROW = "  →  "


@dataclass(frozen=True)
class Effect:
    """The effect of a kind of Opt on a loop nest. Results may differ only by rounding.

    text: the effect, as text.
    before: a loop nest before the opt.
    after: the same loop nest after it.
    """

    text: str
    before: str
    after: str

    @property
    def full_text(self) -> str:
        """Returns the effect as text, and the two nests side by side."""
        return "\n".join((fill(f"{self.text}::", 110, break_on_hyphens=False), "", *self.side_by_side_lines()))

    def side_by_side_lines(self) -> Iterator[str]:
        lines = self.before.splitlines()
        width = max(map(len, lines))
        for number, (before_line, after_line) in enumerate(zip_longest(lines, self.after.splitlines(), fillvalue="")):
            arrow = " " * len(ARROW) if number else ARROW
            yield f"    {before_line:{width}}{arrow}{after_line}".rstrip()


@dataclass(frozen=True, eq=False)
class OptKind:
    """One kind of Opt.

    effects: its effects, each with a loop nest.
    legality_error: (kernel, axis, amount) → why it is illegal, or None if it is legal.
    apply: (kernel, axis, opt) → the ast after it. It is called for legal opts only.
    amounts: what `available_opts` tries; (0,) if the amount is not used.
    partners: (kernel, axis) → the ids of other axes, if the amount names an axis; `amounts` is empty then. Else None.
    reason_to_be_last: why no other opt may follow; "" if one may.
    may_follow_tensor_cores: whether it may change axes that TC has put on tensor cores.
    may_follow_tiles: whether it may change axes that TC has put on the tile registers of a CPU.
    machine: "cpu", "gpu", or "" for any.
    gpu_amounts: further amounts to try on a GPU.
    """

    effects: tuple[Effect, ...]
    legality_error: Callable[[Kernel, UOp, int], str | None]
    apply: Callable[[Kernel, UOp, Opt], UOp]
    amounts: tuple[int, ...] = (0,)
    partners: Callable[[Kernel, UOp], Sequence[int]] | None = None
    reason_to_be_last: str = ""
    may_follow_tensor_cores: bool = False
    may_follow_tiles: bool = False
    machine: str = ""
    gpu_amounts: tuple[int, ...] = ()

    def amounts_to_try(self, kernel: Kernel, axis: UOp) -> Sequence[int]:
        """Returns the amounts to try on this axis."""
        if self.partners is not None:
            return self.partners(kernel, axis)
        return (*self.amounts, *self.gpu_amounts) if kernel.target.has_local else self.amounts
