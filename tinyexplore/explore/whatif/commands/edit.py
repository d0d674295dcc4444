"""Edit: replace a stage of a kernel by an edited text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tinyexplore.compile.search import refusal_of
from tinyexplore.explore.analysis.opts import WhatIfError, to_opts
from tinyexplore.explore.tracefile.model import Diagnostic, EditReport, KernelVariant
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.editing.client import EditResult, Text, check_signature, describe_verdict, try_edit
from tinyexplore.explore.whatif.editing.linear_text import ProgramError, check_program, parse_program
from tinyexplore.explore.whatif.editing.stages import base_program, stage_text, stages_of
from tinyexplore.explore.whatif.kernel_variant import count_executed
from tinyexplore.explore.whatif.measurement import Measurement
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected
from tinyexplore.trace import recording
from tinyexplore.uop import UOp


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a stage of a kernel by a text.

    All later stages run again. The compiled code runs in its own process. Its results are compared with those of the
    reference device, and it is timed alternately with the earlier code.

    kernel: the number of the kernel.
    stage: "opts", "uops" (the linear program), "llvm" or "c".
    text: the new text.
    """

    kernel: int
    stage: str
    text: str
    label: ClassVar[str] = ""

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        if self.stage == "opts":
            return self._set_edited_opts(context)
        if self.stage not in (stages := stages_of(context, self.kernel)):
            raise WhatIfError(
                f"no stage {self.stage!r} of kernel {self.kernel} can be edited; available: {', '.join(stages)}"
            )
        for branch in context.branches:
            if (
                branch.edited is not None
                and branch.status == "done"
                and dict(branch.command.arguments) == self._list_arguments()
            ):
                return CommandOutcome(same=branch)
        return self._try_text(context)

    def _list_arguments(self) -> dict[str, int | str]:
        return {"kernel": self.kernel, "stage": self.stage, "text": self.text}

    def _set_edited_opts(self, context: CommandContext) -> CommandOutcome:
        try:
            opts = to_opts(self.text)
        except WhatIfError as error:
            edited = EditReport("opts", (_diagnose_opts(self.text, str(error)),))
            raise CommandRejected(str(error), rest=CommandOutcome(edited=edited)) from None
        return try_out(context, self.kernel, lambda: context.compiler.with_opts(self.kernel, opts))

    def _try_text(self, context: CommandContext) -> CommandOutcome:
        compiler, number = context.compiler, self.kernel
        device = compiler.subjects[number].device
        if why := compiler.under_settings(lambda: refusal_of(device)):
            raise CommandRejected(why)
        with recording(None):
            kernel, base = base_program(context, number)
            before = stage_text(context, number, self.stage)
        if self.text.split() == before.split() and context.parent is not None:
            return CommandOutcome(same=context.parent, note="nothing was changed")
        uops: tuple[UOp, ...] = ()
        if self.stage == "uops":
            uops = self._parse_text(base)
        elif wrong := check_signature(self.stage, kernel.name, before, self.text):
            raise CommandRejected(wrong.text, rest=CommandOutcome(edited=EditReport(self.stage, (wrong,))))
        names = compiler.names.get(number, ())
        buffers = [node for node in base if node.op.name == "DEFINE_GLOBAL"]
        display_names = tuple(_name_buffer(place_of.arg, names) for place_of in buffers)
        text = Text(
            device, self.stage, kernel.name, self.text, compiler.subjects[number].original, base, uops, display_names
        )
        attempt = compiler.try_text or try_edit
        context.step("compiling, comparing and timing the text")
        edit_result = compiler.under_settings(lambda: attempt(text, compiler.contents.get(number)))
        variant = variant_of_edit(context, edit_result, self.stage, self.text, uops)
        if edit_result.lost:
            raise CommandRejected(
                edit_result.lost, (variant,) if edit_result.listings else (), CommandOutcome(edited=edit_result.edited)
            )
        return CommandOutcome((variant,), note=describe_verdict(edit_result.edited), edited=edit_result.edited)

    def _parse_text(self, base: tuple[UOp, ...]) -> tuple[UOp, ...]:
        """Parses the text as a linear program.

        Raises:
            CommandRejected: the text is no linear program; the message has the position.
        """
        try:
            lines = parse_program(self.text)
            check_program(lines, base)
        except ProgramError as error:
            edited = EditReport(self.stage, (Diagnostic(error.line, error.column, "error", error.message),))
            raise CommandRejected(str(error), rest=CommandOutcome(edited=edited)) from None
        return tuple(line.uop for line in lines)


def variant_of_edit(
    context: CommandContext, edit_result: EditResult, stage: str, text: str, uops: tuple[UOp, ...]
) -> KernelVariant:
    """Returns the variant of the branch's kernel after the edit."""
    assert context.parent is not None
    variant = context.parent.kernels[0]
    listings = edit_result.listings
    if stage == "uops" and listings:
        listings = (replace(listings[0], language="uops", lines=tuple(text.splitlines())), *listings)
    return replace(
        variant,
        listings=listings,
        stages=(),
        compile_us=edit_result.compile_us,
        uops=count_executed(uops) if uops else variant.uops,
        **{"verdict": "unknown", **Measurement(edit_result.times_us, edit_result.edited.before_us).fields()},
    )


def _name_buffer(position: int, names: tuple[str, ...]) -> str:
    """Returns the name of a buffer: "data0", followed by the user's name in parentheses if there is one."""
    name = names[position] if position < len(names) else ""
    return f"data{position} ({name})" if name and name != f"data{position}" else f"data{position}"


def _diagnose_opts(text: str, message: str) -> Diagnostic:
    """Returns the diagnostic of an error in opts, at the opt that `message` quotes."""
    quoted = message.partition("'")[2].partition("'")[0]
    for number, line in enumerate(text.splitlines(), 1):
        column = line.find(quoted) if quoted else -1
        if column >= 0:
            return Diagnostic(number, column + 1, "error", message)
    return Diagnostic(0, 0, "error", message)


__all__ = ["Edit"]
