"""Stores the first steps of kernels in a trace, so that a page without an engine can step through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tinyexplore.explore.analysis.models.debugger import Debugger, value_text
from tinyexplore.explore.analysis.models.kernel_debugger import GENERATED, debugger_of
from tinyexplore.explore.analysis.models.panel_data import row_width, row_widths
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import Message, RecordedBuffer, RecordedLoop, RecordedStep, Recording
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.uop import Ops

MAX_CHARACTERS = 4 << 20  # most characters of all recordings of a trace
MAX_ELEMENTS = 4096  # most elements of a buffer
_STEP_TEXT = 24  # characters of a step in addition to its values


def with_recordings(trace: Trace, captured: Mapping[int, CapturedKernel], steps: int) -> Trace:
    """Returns the trace with the first `steps` steps of each kernel that can run, as far as they fit.

    A message of the trace reports how many fit.
    """
    recordings: list[Recording] = []
    left = MAX_CHARACTERS
    missing = 0
    for number, kernel in captured.items():
        if left <= 0:
            missing += 1
            continue
        recording, size = record_steps(kernel, steps, left, row_widths(trace, number))
        left -= size
        recordings.append(replace(recording, id=len(recordings)))
    count = sum(len(kernel_recording.steps) for kernel_recording in recordings)
    first = f"the first {count_text(steps, 'step')} of each kernel are recorded"
    text = f"{first}: {count:,} in all. A page replays them without Python"
    cut = missing + sum(
        not kernel_recording.ended and len(kernel_recording.steps) < steps for kernel_recording in recordings
    )
    if cut:
        text += f"; the steps of {cut} are incomplete: the limit is {MAX_CHARACTERS >> 20} MiB of text"
    messages = tuple(message for message in trace.messages if " are recorded: " not in message.text)
    return replace(trace, recordings=tuple(recordings), messages=(*messages, Message("note", text, None)))


def record_steps(
    captured: CapturedKernel, steps: int, most_text: int, widths: Mapping[str, int] | None = None
) -> tuple[Recording, int]:
    """Returns the recorded first steps of one kernel, on its inputs or generated ones, and their size in characters."""
    debugger = debugger_of(captured, None if captured.contents is not None else GENERATED, log=1)
    before = {name: debugger.read(name, 0, MAX_ELEMENTS) for name in debugger.buffers}
    recorded_steps: list[RecordedStep] = []
    size = sum(len(line.text) for line in debugger.listing)
    size += sum(len(cells) * 6 for cells in before.values())
    while len(recorded_steps) < steps and size < most_text:
        debugger.step()
        if debugger.ended:
            break
        for step in _yield_steps(debugger):
            size += _STEP_TEXT + sum(map(len, step.value)) + 4 * len(step.index)
            recorded_steps.append(step)
    recording = Recording(
        id=0,
        kernel=captured.number,
        name=debugger.name,
        note=debugger.note,
        listing=tuple(line.text for line in debugger.listing),
        loops=_list_loops(debugger),
        buffers=tuple(
            RecordedBuffer(
                name,
                length,
                (widths or {}).get(name) or row_width(debugger.uops, name, length),
                tuple(_cell_text(value) for value in before.get(name, [0] * min(length, MAX_ELEMENTS))),
            )
            for name, length in debugger.buffers.items()
        ),
        steps=tuple(recorded_steps),
        ended=debugger.ended,
    )
    return recording, size


def _yield_steps(debugger: Debugger) -> Iterator[RecordedStep]:
    """Yields the last executed step; for a barrier one step per memory to which other work-items stored."""
    slot = debugger.slot
    assert debugger.place is not None and slot is not None
    value = debugger.value
    texts = tuple(map(value_text, value)) if isinstance(value, list) else (value_text(value),)
    for access in debugger.accesses:
        if debugger.uops[debugger.place].op in (Ops.LOAD, Ops.STORE):
            yield RecordedStep(debugger.place, slot, texts, access.buffer, access.stored, access.index)
        else:
            stored = tuple(map(value_text, access.value))
            yield RecordedStep(debugger.place, slot, stored, access.buffer, access.stored, access.index)
    if not debugger.accesses:
        yield RecordedStep(debugger.place, slot, texts)


def _list_loops(debugger: Debugger) -> tuple[RecordedLoop, ...]:
    """Returns each loop with the lines at which it begins and ends."""
    loops: list[RecordedLoop] = []
    open_now: list[int] = []
    names = {number: name for name, number in debugger.names.items()}
    for number, node in enumerate(debugger.uops):
        if node.op is Ops.RANGE:
            open_now.append(number)
        elif node.op is Ops.ENDRANGE:
            innermost = open_now.pop()
            loops.append(RecordedLoop(innermost, number, names[innermost]))
    return tuple(sorted(loops, key=lambda loop: loop.begin))


def _cell_text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


__all__ = ["record_steps", "with_recordings"]
