"""From a kernel of a capture to a Debugger: its program and what to run it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyexplore.explore.analysis.byhand.debugger import LOG, Debugger, DebuggerError
from tinyexplore.explore.recording.kept import CapturedKernel, buffer_types
from tinyexplore.uop import UOp
from tinyexplore.uop.semantics import to_bits, to_dtype_range

GENERATED = "generated"


def debugger_of(
    kept: CapturedKernel,
    inputs: Sequence[Any] | str | None = None,
    log: int = LOG,
    item: Mapping[str, int] | None = None,
) -> Debugger:
    """`kept` on `inputs`: a buffer each, or "generated" for numbers that only show which element goes where. `item`: of
    a GPU's kernel, the work-item that is followed; the first one where nothing is said."""
    note = ""
    if isinstance(inputs, str):
        if inputs != GENERATED:
            raise DebuggerError(f"inputs={inputs!r}: give a buffer each, or {GENERATED!r}")
        inputs = generated_inputs(kept.uops)
        note = "The inputs were not kept: 0, 1, 2 … stand for them. A capture with keep_inputs=True keeps them."
    elif inputs is None:
        inputs = kept.contents
    if inputs is None:
        raise DebuggerError(
            f"the inputs of kernel {kept.number} ({kept.spec.name}) were not kept: capture with keep_inputs=True, "
            f"give inputs=[…], one for each of its {kept.spec.n_buffers} buffers, or inputs={GENERATED!r}"
        )
    if kept.spec.target.has_local:
        item = item or {}
    elif item is not None:
        raise DebuggerError(f"item: kernel {kept.number} ({kept.spec.name}) is a CPU's, which has no work-items")
    uops, lines = kept.uops, kept.spec.lines
    return Debugger(kept.spec.name, uops, inputs, kept.values, log=log, lines=lines, note=note, item=item)


def generated_inputs(uops: Sequence[UOp]) -> list[bytes]:
    """Each buffer filled with 0, 1, 2 …, begun anew as often as its elements need."""
    found = []
    for dtype, size in buffer_types(uops):
        few = [to_bits(to_dtype_range(number, dtype), dtype).to_bytes(dtype.itemsize, "little") for number in range(97)]
        once = b"".join(few)
        found.append((once * (size // 97 + 1))[: size * dtype.itemsize])
    return found


__all__ = ["GENERATED", "debugger_of", "generated_inputs"]
