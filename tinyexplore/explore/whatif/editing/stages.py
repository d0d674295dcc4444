"""The stages of a kernel that can be edited, and the text of each in a branch."""

from __future__ import annotations

from tinyexplore.codegen import lower
from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.editing.linear_text import parse_program, program_text
from tinyexplore.kernel import Kernel
from tinyexplore.renderer.c import CRenderer
from tinyexplore.trace import recording
from tinyexplore.uop import UOp

STAGES = ("opts", "uops", "llvm", "c")


def stages_of(context: CommandContext, kernel: int) -> tuple[str, ...]:
    """Returns the stages of a kernel that can be edited.

    LLVM IR is included if the device compiles LLVM IR. For GPU kernels, only the first two stages can be edited.
    """
    device = context.compiler.subjects[kernel].device
    interface = context.compiler.under_settings(lambda: Device[device])
    if interface.target.has_local:
        return STAGES[:2]
    return tuple(stage for stage in STAGES if stage != "llvm" or interface.renderer.language == "llvm")


def base_program(context: CommandContext, number: int) -> tuple[Kernel, tuple[UOp, ...]]:
    """Returns the kernel of the parent branch and its linear program, including an earlier edit of the program."""
    branch = context.parent
    while branch is not None and branch.edited is not None:
        arguments = dict(branch.command.arguments)
        if arguments.get("stage") == "uops":
            kernel = context.compiler.under_settings(lambda: context.kernel(number))
            return kernel, tuple(line.uop for line in parse_program(str(arguments["text"])))
        branch = None if branch.parent is None else context.branches[branch.parent]

    def work() -> tuple[Kernel, tuple[UOp, ...]]:
        with recording(None):
            kernel = context.kernel(number)
            return kernel, lower(kernel)

    return context.compiler.under_settings(work)


def stage_text(context: CommandContext, number: int, stage: str) -> str:
    """Returns the text of a stage in the parent branch, for editing."""
    if stage not in (stages := stages_of(context, number)):
        raise WhatIfError(f"no stage {stage!r} of kernel {number} can be edited; available: {', '.join(stages)}")
    branch = context.parent
    if stage == "opts":
        return ", ".join(_read_opts(branch) if branch is not None and branch.kernels else ())
    if branch is not None and branch.edited is not None and branch.edited.stage == stage:
        return str(dict(branch.command.arguments)["text"])
    kernel, uops = base_program(context, number)
    if stage == "uops":
        return program_text(uops)
    device = context.compiler.subjects[number].device

    def render() -> str:
        renderer = Device[device].renderer
        if stage == "c" and renderer.language != "c":
            renderer = CRenderer(Device[device].target)
        source: str = renderer.render(kernel.name, uops).source
        return source

    try:
        return context.compiler.under_settings(render)
    except DeviceUnavailable as error:
        raise WhatIfError(str(error)) from None


def _read_opts(branch: Branch) -> tuple[str, ...]:
    return branch.kernels[0].opts


__all__ = ["STAGES", "base_program", "stage_text", "stages_of"]
