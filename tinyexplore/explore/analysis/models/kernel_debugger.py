"""Builds a Debugger for a captured kernel, from its program and its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyexplore.explore.analysis.models.debugger import LOG, Debugger, DebuggerError
from tinyexplore.explore.recording.captured_kernel import CapturedKernel, buffer_types
from tinyexplore.uop import UOp
from tinyexplore.uop.semantics import to_bits, to_dtype_range

GENERATED = "generated"


def debugger_of(
    captured: CapturedKernel,
    inputs: Sequence[Any] | str | None = None,
    log: int = LOG,
    item: Mapping[str, int] | None = None,
) -> Debugger:
    """Returns a debugger of the kernel `captured`.

    Args:
        captured: the kernel.
        inputs: a content for each buffer, or "generated" for numbers that identify each element.
        log: the number of steps that the log holds.
        item: the work-item of a GPU kernel to follow; None is the first one.
    """
    note = ""
    if isinstance(inputs, str):
        if inputs != GENERATED:
            raise DebuggerError(f"inputs={inputs!r}: give a buffer each, or {GENERATED!r}")
        inputs = generated_inputs(captured.uops)
        note = "The inputs were not stored, so 0, 1, 2 … replace them. Capture with keep_inputs=True to store them."
    elif inputs is None:
        inputs = captured.contents
    if inputs is None:
        raise DebuggerError(
            f"the inputs of kernel {captured.number} ({captured.spec.name}) were not stored. Capture with "
            f"keep_inputs=True, give inputs=[…] with {captured.spec.n_buffers} contents, one a buffer, or give "
            f"inputs={GENERATED!r}"
        )
    if captured.spec.target.has_local:
        item = item or {}
    elif item is not None:
        raise DebuggerError(
            f"item: kernel {captured.number} ({captured.spec.name}) is for a CPU, which has no work-items"
        )
    uops, lines = captured.uops, captured.spec.lines
    return Debugger(captured.spec.name, uops, inputs, captured.values, log=log, lines=lines, note=note, item=item)


def generated_inputs(uops: Sequence[UOp]) -> list[bytes]:
    """Returns each buffer filled with 0, 1, 2 …, starting again at 0 after 96 or at the end of the element type."""
    contents = []
    for dtype, size in buffer_types(uops):
        elements = [
            to_bits(to_dtype_range(number, dtype), dtype).to_bytes(dtype.itemsize, "little") for number in range(97)
        ]
        once = b"".join(elements)
        contents.append((once * (size // 97 + 1))[: size * dtype.itemsize])
    return contents


__all__ = ["GENERATED", "debugger_of", "generated_inputs"]
