"""Applies Opts to a kernel, and undoes the last one."""

from __future__ import annotations

from dataclasses import replace

from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.legality import check_opt
from tinyexplore.kernel.opt import Opt
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.trace import OptApplied, active_recorder


def apply_opt(kernel: Kernel, opt: Opt, reason: str = "") -> Kernel:
    """Applies `opt` to `kernel`. Emits the event with `reason` to an attached recorder. Raises OptError if `opt` is
    illegal."""
    axis = check_opt(kernel, opt)
    ast = OPT_KINDS[opt.op].apply(kernel, axis, opt)
    new_kernel = replace(kernel, ast=ast, applied=(*kernel.applied, opt))
    recorder = active_recorder()
    if recorder is not None:
        recorder.record(OptApplied(kernel, opt, new_kernel, reason))
    return new_kernel


def apply_opts(kernel: Kernel, *opts: Opt) -> Kernel:
    """Applies `opts` to `kernel`, first to last. Raises OptError if one of them is illegal."""
    for opt in opts:
        kernel = apply_opt(kernel, opt)
    return kernel


def undo_opt(kernel: Kernel) -> Kernel:
    """Returns the kernel without its last Opt."""
    return apply_opts(kernel.restart(kernel.start), *kernel.applied[:-1])
