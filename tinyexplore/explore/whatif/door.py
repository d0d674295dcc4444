"""What an Explorer has of the what-ifs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparing.comparison import Comparison
    from tinyexplore.explore.tracefile.model import Branch, KernelInfo, Trace
    from tinyexplore.explore.whatif.branches import WhatIf
    from tinyexplore.explore.whatif.place import Command
    from tinyexplore.explore.whatif.playground.door import Playground
    from tinyexplore.kernel import Opt


class WhatIfDoor:
    """Commands on the kernels of a capture: each gives a `Branch`, and all of them stand in `trace.branches`.

    `kernel`: a kernel of the trace, or its number. A branch that failed says why in its `reason`.
    """

    @property
    def whatif(self) -> WhatIf:
        """The branches of this capture, and what makes more of them."""
        raise NotImplementedError

    @property
    def playground(self) -> Playground:
        """The rules of the pipeline and your own, on these kernels: where one would match, what comes of it."""
        from tinyexplore.explore.whatif.playground.door import Playground

        return Playground(self)

    def do(self, command: Command, branch: Branch | int | None = None) -> Branch:
        """The branch that a command leads to, from `branch` on, or from where its kernel is now."""
        return self.whatif.do(command, branch)

    def branches(self, kernel: KernelInfo | int | None = None) -> tuple[Branch, ...]:
        """What was tried, in order: of one kernel, or all of it."""
        return tuple(self.whatif.branches) if kernel is None else self.whatif.of_kernel(_number(kernel))

    def branch(self, kernel: KernelInfo | int = 0) -> Branch:
        """Where a kernel is now: what the last command made of it, else the kernel as it was captured."""
        from tinyexplore.explore.whatif.commands import AsCaptured

        number = _number(kernel)
        return self.whatif.at(number) or self.do(AsCaptured(number))

    def available_opts(self, kernel: KernelInfo | int = 0) -> tuple[str, ...]:
        """The opts that are legal on a kernel as it is now, with the usual amounts; its branch's `offers` have the
        others too, with what stands against them."""
        from tinyexplore.explore.whatif.offers import legal_opts

        (variant,) = self.whatif.whole(self.branch(kernel)).kernels
        return legal_opts(variant.offers)

    def apply(self, kernel: KernelInfo | int, opt: str) -> Branch:
        """One more opt: `view.apply(0, "UPCAST(0, 4)")`."""
        from tinyexplore.explore.whatif.commands import ApplyOpt

        return self.do(ApplyOpt(_number(kernel), str(opt)))

    def undo(self, kernel: KernelInfo | int = 0) -> Branch:
        """Without the last opt."""
        from tinyexplore.explore.whatif.commands import UndoOpt

        return self.do(UndoOpt(_number(kernel)))

    def set_opts(self, kernel: KernelInfo | int, opts: str | Iterable[Opt | str] = "") -> Branch:
        """With exactly these opts: `view.set_opts(0, "UPCAST(0, 4), VECTOR(1, 16)")`, or a list of such; none, to begin
        anew."""
        from tinyexplore.explore.whatif.commands import SetOpts

        return self.do(SetOpts(_number(kernel), opts if isinstance(opts, str) else ", ".join(map(str, opts))))

    def hand_code(self, kernel: KernelInfo | int = 0) -> Branch:
        """With the opts that the heuristics choose."""
        from tinyexplore.explore.whatif.commands import HandCode

        return self.do(HandCode(_number(kernel)))

    def search(self, kernel: KernelInfo | int = 0, width: int = 2) -> Branch:
        """With the opts that BEAM finds by measuring; all that it tried are branches, too."""
        from tinyexplore.explore.whatif.commands import Search

        return self.do(Search(_number(kernel), width))

    def edit(self, kernel: KernelInfo | int, stage: str, text: str) -> Branch:
        """With a stage as this text: "opts", "uops" (the linear program), "llvm" or "c", as `edit_text` gives it. What
        becomes of it is the branch's `edited`: the compiler's words at their lines, how the results compare, times."""
        from tinyexplore.explore.whatif.commands import Edit

        return self.do(Edit(_number(kernel), stage, text))

    def edit_text(self, kernel: KernelInfo | int = 0, stage: str = "c", branch: Branch | int | None = None) -> str:
        """The text of a stage as it is in `branch`, or where the kernel is now: change it, and give it to `edit`."""
        return self.whatif.text(_number(kernel), stage, branch)

    def branch_trace(self, branch: Branch | int, kernel: int | None = None) -> Trace:
        """The kernel of a branch as a trace of its own: `Explorer(view.branch_trace(branch))` shows every stage, and at
        the firings of a rule what the check says of them. `kernel`: which one, where a branch changed several."""
        return self.whatif.trace_of(branch, kernel)

    def compare_branches(self, a: Branch | int, b: Branch | int) -> Comparison:
        """The kernels of two branches side by side, listing by listing."""
        from tinyexplore.explore.analysis.comparing.comparison import compare

        return compare(self.branch_trace(a), self.branch_trace(b))


def _number(kernel: KernelInfo | int) -> int:
    return kernel if isinstance(kernel, int) else kernel.id


__all__ = ["WhatIfDoor"]
