"""SetOpts: compile a kernel with exactly these opts."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.explore.analysis.opts import to_opts
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import CommandOutcome


@dataclass(frozen=True, slots=True)
class SetOpts:
    """Compile the kernel with exactly these opts: "UPCAST(0, 4), VECTOR(1, 16)", or "" for none."""

    kernel: int
    opts: str

    @property
    def label(self) -> str:
        return "" if self.opts.strip() else "no opts"

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        opts = to_opts(self.opts)
        return try_out(context, self.kernel, lambda: context.compiler.with_opts(self.kernel, opts))
