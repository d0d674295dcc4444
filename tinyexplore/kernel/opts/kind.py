"""What an Opt of one kind is: its laws, the amounts that are tried, what stands against it, and what it does."""

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
ITEMS = (64, 128, 256)  # and of a work-group
ARROW = "  →  "


@dataclass(frozen=True)
class Law:
    """A loop nest `before` and `after`, and in `words` what was done. No result differs but for rounding."""

    words: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """The words, and the two nests side by side."""
        return "\n".join((fill(f"{self.words}::", 110, break_on_hyphens=False), "", *self.beside()))

    def beside(self) -> Iterator[str]:
        lines = self.before.splitlines()
        width = max(map(len, lines))
        for number, (left, right) in enumerate(zip_longest(lines, self.after.splitlines(), fillvalue="")):
            arrow = " " * len(ARROW) if number else ARROW
            yield f"    {left:{width}}{arrow}{right}".rstrip()


@dataclass(frozen=True, eq=False)
class OptKind:
    """One kind of Opt.

    obstacle: (kernel, axis, amount) → what stands against it, in words, or None where it is legal.
    apply: (kernel, axis, opt) → the ast after it, told to a recorder; asked only where nothing stands against it.
    amounts: what `available_opts` tries, and a search in place of each other; (0,) where the amount is not used.
    partners: (kernel, axis) → the ids of other axes, where the amount names one; `amounts` is empty then.
    comes_last: why nothing else may be done after it.
    on_cores: it may be done to what TC has put on tensor cores; on_tiles: on those of a CPU.
    machine: that it is for, "cpu" or "gpu", or "" for any. items: further amounts that are tried on a GPU.
    """

    laws: tuple[Law, ...]
    obstacle: Callable[[Kernel, UOp, int], str | None]
    apply: Callable[[Kernel, UOp, Opt], UOp]
    amounts: tuple[int, ...] = (0,)
    partners: Callable[[Kernel, UOp], Sequence[int]] | None = None
    comes_last: str = ""
    on_cores: bool = False
    on_tiles: bool = False
    machine: str = ""
    items: tuple[int, ...] = ()

    def tried(self, kernel: Kernel, axis: UOp) -> Sequence[int]:
        """The amounts that are tried on this axis."""
        if self.partners is not None:
            return self.partners(kernel, axis)
        return (*self.amounts, *self.items) if kernel.target.has_local else self.amounts
