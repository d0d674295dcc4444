"""From a kernel of a capture to a Debugger: its program and what to run it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyexplore.explore.byhand.debugger import LOG, Debugger, DebuggerError
from tinyexplore.explore.kept import Kept, buffer_types
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.semantics import to_bits, to_dtype_range
from tinyexplore.uop.symbolic import value_of

MADE_UP = "made up"


def debugger_of(
    kept: Kept, inputs: Sequence[Any] | str | None = None, log: int = LOG, item: Mapping[str, int] | None = None
) -> Debugger:
    """`kept` on `inputs`: a buffer each, or "made up" for numbers that only show which element goes where. `item`: of a
    GPU's kernel, the work-item that is followed; the first one where nothing is said."""
    note = ""
    if isinstance(inputs, str):
        if inputs != MADE_UP:
            raise DebuggerError(f"inputs={inputs!r}: give a buffer each, or {MADE_UP!r}")
        inputs = made_up(kept.uops)
        note = "the inputs were not kept: 0, 1, 2 … stand for them"
    elif inputs is None:
        inputs = kept.contents
    if inputs is None:
        raise DebuggerError(
            f"the inputs of kernel {kept.number} ({kept.spec.name}) were not kept: capture with keep_inputs=True, "
            f"give inputs=[…], one for each of its {kept.spec.n_buffers} buffers, or inputs={MADE_UP!r}"
        )
    if item is None and not kept.spec.target.has_local:
        return Debugger(kept.spec.name, kept.uops, inputs, kept.values, log=log, lines=kept.spec.lines, note=note)
    followed = chosen_item(kept, item or {})
    name = ", ".join(f"{name} = {number}" for name, number in followed.items())
    says = f"work-item {name or '0'}; the others of its group come to each barrier with it, other groups are not run"
    note = f"{says}; {note}" if note else says
    uops, lines = kept.uops, kept.spec.lines
    return Debugger(kept.spec.name, uops, inputs, kept.values, log=log, lines=lines, note=note, item=followed)


def chosen_item(kept: Kept, item: Mapping[str, int]) -> dict[str, int]:
    """All numbers of a work-item of `kept`, those that `item` does not have 0. DebuggerError where there is none."""
    if not kept.spec.target.has_local:
        raise DebuggerError(f"item: kernel {kept.number} ({kept.spec.name}) is a CPU's, which has no work-items")
    known = dict(zip(kept.spec.variables, kept.values))
    ends = {node.arg: value_of(node.src[0], known) for node in kept.uops if node.op is Ops.SPECIAL}
    there = ", ".join(f"{name} (0 … {end - 1})" for name, end in ends.items()) or "none"
    for name, number in item.items():
        if name not in ends or not 0 <= number < ends[name]:
            raise DebuggerError(f"item: no {name} = {number}; a work-item of {kept.spec.name} has the numbers {there}")
    return {name: item.get(name, 0) for name in ends}


def made_up(uops: Sequence[UOp]) -> list[bytes]:
    """Each buffer filled with 0, 1, 2 …, begun anew as often as its elements need."""
    found = []
    for dtype, size in buffer_types(uops):
        few = [to_bits(to_dtype_range(number, dtype), dtype).to_bytes(dtype.itemsize, "little") for number in range(97)]
        once = b"".join(few)
        found.append((once * (size // 97 + 1))[: size * dtype.itemsize])
    return found


__all__ = ["MADE_UP", "debugger_of", "made_up"]
