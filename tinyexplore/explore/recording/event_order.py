"""Orders the events of a recording: events of compiler threads are moved to the kernel that they compiled."""

from __future__ import annotations

from tinyexplore.trace import Event, ExecItemRetimed, LazyBufferBuilt, Recorder, StageBegan, StageEnded

TimedEvent = tuple[Event, float, int]


def ordered_events(recorder: Recorder) -> list[TimedEvent]:
    """Returns the recorded events in order, each with its time in seconds and its thread number (0: the user's thread).

    Events keep the order of recording, except for stages of other threads. Such a stage gets the number of its kernel
    and follows the kernel's own stages. Times exclude repeated runs of kernels for timing (`ExecItemRetimed`).
    """
    main = recorder.log[0].thread if recorder.log else 0
    aside: dict[int, list[TimedEvent]] = {}  # events of compiler threads, by kernel
    kernel_of: dict[int, int] = {}  # compiler thread → the kernel of its open stage
    depth: dict[int, int] = {}
    blocks: dict[int, list[TimedEvent]] = {main: []}  # user's thread → its events since it had no open stage
    ordered: list[TimedEvent] = []
    paused = 0.0
    number = {main: 0}
    for event, time, thread in recorder.log:
        if isinstance(event, ExecItemRetimed):
            paused += event.took
        entry = event, time - paused, number.setdefault(thread, len(number))
        change = isinstance(event, StageBegan) - isinstance(event, StageEnded)
        if thread not in blocks and (thread in kernel_of or _is_in_other_thread(event)):
            if thread not in kernel_of:
                kernel_of[thread] = event.kernel  # type: ignore[union-attr, assignment]
            aside.setdefault(kernel_of[thread], []).append(entry)
            depth[thread] = depth.get(thread, 0) + change
            if not depth[thread]:
                del kernel_of[thread]
            continue
        if isinstance(event, (StageBegan, LazyBufferBuilt)):
            blocks.setdefault(thread, [])
        block = blocks.get(thread, blocks[main])
        block.append(entry)
        depth[thread] = max(0, depth.get(thread, 0) + change)
        if not depth[thread]:  # stages of several threads are not interleaved
            ordered += block
            block.clear()
    for block in blocks.values():
        ordered += block
    return _insert_other_threads(ordered, aside) if aside else ordered


def _is_in_other_thread(event: Event) -> bool:
    return isinstance(event, StageBegan) and event.kernel is not None


def _insert_other_threads(entries: list[TimedEvent], aside: dict[int, list[TimedEvent]]) -> list[TimedEvent]:
    """Inserts the events in `aside` before the end of their kernel's stage; appends the rest at the end."""
    ordered: list[TimedEvent] = []
    open_stages: list[StageBegan] = []
    for entry in entries:
        event = entry[0]
        if isinstance(event, StageBegan):
            open_stages.append(event)
        elif isinstance(event, StageEnded):
            while open_stages and open_stages[-1].stage != event.stage:
                open_stages.pop()
            began = open_stages.pop() if open_stages else None
            if began is not None and began.kernel is not None:
                ordered += aside.pop(began.kernel, ())
        ordered.append(entry)
    for left in aside.values():
        ordered += left
    return ordered


__all__ = ["ordered_events"]
