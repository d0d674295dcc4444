"""Writes a trace in Perfetto's own format, with the message types of the optional `perfetto` package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.explore.tracefile.model import TimelineSpan, TraceTables
from tinyexplore.explore.tracefile.timeline import span_facts, timeline
from tinyexplore.util.atomic_files import write_whole

_PROCESS, _ROWS, _MEMORY, _BUFFERS, _LANES = 1, 10, 2, 3, 10_000  # first track ids
_SEQUENCE = 1


class MissingPackage(ImportError):
    """An optional package is not installed. The message gives the command to install it."""


def to_perfetto(trace: TraceTables, path: str | Path | None = None) -> bytes:
    """Returns the timeline in Perfetto's format, for ui.perfetto.dev and the trace processor.

    The timeline has a track for each row, a track for each lane of buffer lifetimes, and a counter of allocated bytes.
    Times are nanoseconds since the trace began. If `path` is given, the bytes are also written there; the usual suffix
    is ".perfetto-trace".
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError as error:
        text = f"Perfetto's format needs the package perfetto, which does not import ({error}); Chrome's format, which "
        text += "Perfetto opens too, does without (save_chrome_trace): pip install 'tinyexplore[data]'"
        raise MissingPackage(text) from error
    writer = _PacketWriter(TraceProtoBuilder(), messages)
    rows = timeline(trace)
    process = writer.track(_PROCESS, "")
    process.process.pid = 1
    process.process.process_name = well_formed(trace.title) or "tinyexplore"
    for row, name in rows.rows:
        writer.track(_ROWS + row, name, _PROCESS)
        writer.spans(_ROWS + row, [(span, span_facts(trace, span)) for span in rows.spans if span.row == row])
    counter = writer.track(_MEMORY, "memory", _PROCESS)
    counter.counter.unit = messages.CounterDescriptor.UNIT_SIZE_BYTES
    for time_us, total in rows.memory:
        event = writer.event(time_us, _MEMORY, messages.TrackEvent.TYPE_COUNTER)
        event.counter_value = max(-(1 << 63), min(total, (1 << 63) - 1))
    writer.track(_BUFFERS, "buffers", _PROCESS)
    for lane in sorted({lifetime.lane for lifetime in rows.lives if lifetime.lane is not None}):
        writer.track(_LANES + lane, f"lane {lane}", _BUFFERS)
        lifetimes = [lifetime for lifetime in rows.lives if lifetime.lane == lane]
        spans = [
            (
                TimelineSpan(lane, lifetime.name, lifetime.started_us, lifetime.ended_us - lifetime.started_us),
                {"bytes": lifetime.bytes},
            )
            for lifetime in lifetimes
        ]
        writer.spans(_LANES + lane, spans)
    data: bytes = writer.builder.serialize()
    if path is not None:
        write_whole(path, data)
    return data


class _PacketWriter:
    """Writes the packets of one sequence."""

    def __init__(self, builder: Any, messages: Any) -> None:
        self.builder = builder
        self.messages = messages

    def track(self, uuid: int, name: str, parent: int | None = None) -> Any:
        descriptor = self.builder.add_packet().track_descriptor
        descriptor.uuid = uuid
        if name:
            descriptor.name = well_formed(name)
        if parent is not None:
            descriptor.parent_uuid = parent
        return descriptor

    def event(self, time_us: float, track: int, kind: int) -> Any:
        packet = self.builder.add_packet()
        packet.timestamp = max(0, round(time_us * 1e3))  # the field is unsigned
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet.track_event

    def spans(self, track: int, spans: list[tuple[TimelineSpan, dict[str, Any]]]) -> None:
        """Writes the begin and end packets of spans, in order.

        A span that outlasts its parent by rounding ends with the parent.
        """
        kinds = self.messages.TrackEvent
        open_ends: list[float] = []
        for span, facts in sorted(spans, key=lambda entry: (entry[0].started_us, -entry[0].elapsed_us)):
            while open_ends and open_ends[-1] <= span.started_us:
                self.event(open_ends.pop(), track, kinds.TYPE_SLICE_END)
            event = self.event(span.started_us, track, kinds.TYPE_SLICE_BEGIN)
            event.name = well_formed(span.name)
            for key, value in facts.items():
                self.note(event, key, value)
            end_us = span.started_us + span.elapsed_us
            open_ends.append(min(end_us, open_ends[-1]) if open_ends else end_us)
        while open_ends:
            self.event(open_ends.pop(), track, kinds.TYPE_SLICE_END)

    def note(self, event: Any, key: str, value: Any) -> None:
        note = event.debug_annotations.add()
        note.name = key
        if isinstance(value, bool):
            note.bool_value = value
        elif isinstance(value, int):
            note.int_value = max(-(1 << 63), min(value, (1 << 63) - 1))
        elif isinstance(value, float):
            note.double_value = value
        else:
            note.string_value = well_formed(", ".join(value) if isinstance(value, tuple) else str(value))
