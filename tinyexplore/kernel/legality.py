"""Legality of an Opt on a kernel: checks of the target, of the resulting work-group, and of the kind of Opt."""

from __future__ import annotations

from tinyexplore.kernel.analysis.work_groups import group_dimensions, group_items, shared_bytes
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptError, OptOps
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.trace import recording
from tinyexplore.uop import Ops, UOp

MAX_DIMENSIONS = 3  # most dimensions of a work-group


def check_opt(kernel: Kernel, opt: Opt) -> UOp:
    """Returns the axis of `opt`. Raises OptError if the kernel lacks the axis or the Opt is illegal."""
    axis = kernel.axis(opt.axis)
    reason = illegal_because(kernel, opt, axis)
    if reason is not None:
        amount_text = f" by {opt.amount}" if opt.amount else ""
        raise OptError(f"{opt.op.name} axis {opt.axis}{amount_text}: {reason}")
    return axis


def available_opts(kernel: Kernel) -> tuple[Opt, ...]:
    """Returns every Opt, with the usual amounts, that is legal for `kernel`."""
    legal = []
    for axis in kernel.axes:
        for op, opt_kind in OPT_KINDS.items():
            for amount in opt_kind.amounts_to_try(kernel, axis):
                opt = Opt(op, axis.arg.id, amount)
                if illegal_because(kernel, opt, axis) is None:
                    legal.append(opt)
    return tuple(legal)


def illegal_because(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """Returns why `opt` is illegal for `kernel`, as text; None if it is legal."""
    for applied_opt in kernel.applied:
        if OPT_KINDS[applied_opt.op].reason_to_be_last:
            return f"{applied_opt.op.name} comes last: {OPT_KINDS[applied_opt.op].reason_to_be_last}"
    reason = (
        machine_error(kernel, opt.op)
        or core_error(kernel, opt, axis)
        or OPT_KINDS[opt.op].legality_error(kernel, axis, opt.amount)
    )
    if reason is None and kernel.target.has_local and opt.amount and OPT_KINDS[opt.op].partners is None:
        return group_size_error(kernel, opt, axis)
    return reason


def machine_error(kernel: Kernel, op: OptOps) -> str | None:
    """Returns the legality error if this kind of Opt is for other machines; else None."""
    target = kernel.target
    if OPT_KINDS[op].machine == "gpu" and not target.has_local:
        return f"{target.name} has no work-groups: this Opt is for GPUs (for example TARGET=opencl)"
    if OPT_KINDS[op].machine == "cpu" and target.has_local:
        return f"this Opt is for CPUs; {target.name} has work-groups"
    return None


def core_error(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """Returns the legality error if tensor cores fix the loop that `opt` would change; else None.

    A kernel whose sum is on tensor cores has its results in the registers that the core fixes.
    """
    if not kernel.find(Ops.WMMA):
        return None
    opt_kind = OPT_KINDS[opt.op]
    if not (opt_kind.may_follow_tensor_cores or (opt_kind.may_follow_tiles and not kernel.target.has_local)):
        return "tensor cores do the sum; apply this opt before TC, or without TC"
    if opt.op is OptOps.UNROLL and axis.is_static and opt.amount and axis.size % opt.amount:
        return f"the remainder would be a separate sum in other registers: choose a divisor of {axis.size}"
    return None


def group_size_error(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """Returns the legality error of the work-group that a GPU kernel would have after `opt`; None if the group is
    legal."""
    target = kernel.target
    with recording(None):
        new_ast = OPT_KINDS[opt.op].apply(kernel, axis, opt)
    dimensions = group_dimensions(new_ast)
    if dimensions and any(applied_opt.op.ends_groups for applied_opt in kernel.applied):
        return "NOLOCALS leaves it to the runtime to choose the work-groups"
    if len(dimensions) > MAX_DIMENSIONS:
        return f"a work-group has at most {MAX_DIMENSIONS} dimensions, and all are in use"
    items, nbytes = group_items(new_ast), shared_bytes(new_ast)
    if items > target.group_items:
        return f"a work-group would have {items} work-items; {target.name} allows at most {target.group_items}"
    if nbytes > target.shared_bytes:
        limit_text = f"{target.name} has {target.shared_bytes >> 10}"
        return f"the kernel would need {nbytes >> 10} KiB of shared memory; {limit_text}"
    return None
