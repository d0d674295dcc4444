"""The recorder of a capture. It also records graphs that were created before it was attached."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import Any

from tinyexplore.explore.recording.inputs import InputKeeper
from tinyexplore.explore.recording.roots import NodeBuffer, buffer_of, roots_of
from tinyexplore.explore.recording.scheduled_graph import ScheduledGraph
from tinyexplore.explore.recording.scopes import Scopes
from tinyexplore.explore.recording.sources import user_frame_here
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import (
    Event,
    ExecItemRan,
    ExecItemRetimed,
    LazyBufferBuilt,
    Recorder,
    StageBegan,
    StageEnded,
    UserFrame,
    WritesAllowed,
)
from tinyexplore.util import toposort

MAX_KERNELS = 1000  # default limit for the kernels of a capture: a training program can launch many times this number


class CaptureRecorder(Recorder):
    """A Recorder that also forwards all events to the recorder of an enclosing capture, if there is one.

    keep_bytes: most bytes of kernel inputs to store.
    most_kernels: most kernels to record. At this limit, recording ends as soon as no stage is open. `left_out` counts
        the kernels that run afterwards.
    """

    def __init__(self, outer: Recorder | None = None, most_kernels: int = MAX_KERNELS, keep_bytes: int = 0) -> None:
        super().__init__()
        self.inputs = InputKeeper(keep_bytes)
        self.most_kernels = most_kernels
        self.ran = 0
        self.left_out = 0
        self.open_stages = 0
        self.outer = outer
        self.known: set[LazyBuffer] = set()
        self.earlier = 0
        self.lazy_inputs = 0
        self.scopes = Scopes()
        self.schedules: list[ScheduledGraph] = []
        self._lock = RLock()  # compiler threads record, too

    def about_to_run(self, exec_item: Any) -> None:
        if self.ran < self.most_kernels:
            self.inputs.about_to_run(exec_item)
        if self.outer is not None:
            self.outer.about_to_run(exec_item)

    def record(self, event: Event) -> None:
        with self._lock:
            self._record(event)

    def _record(self, event: Event) -> None:
        kind = type(event)
        is_last = kind is ExecItemRetimed and not self.left_out  # the samples of the last recorded launch
        if self.ran >= self.most_kernels and self.open_stages == 0 and not is_last:
            self.left_out += kind is ExecItemRan
            if self.outer is not None:
                self.outer.record(event)
            return
        if kind is LazyBufferBuilt:
            self._record_earlier(event.src, event.user_frame)  # type: ignore[union-attr]
            self.known.add(event.lazybuffer)  # type: ignore[union-attr]
            self.scopes.see(event.lazybuffer)  # type: ignore[union-attr]
        elif kind is StageBegan:
            self._record_earlier(roots_of(event.root), None)  # type: ignore[union-attr]
            self.open_stages += 1
            if event.stage == "schedule":  # type: ignore[union-attr]
                self.schedules.append(ScheduledGraph(tuple(roots_of(event.root))))  # type: ignore[union-attr]
        elif kind is WritesAllowed and self.schedules:
            self.schedules[-1].writes = event.writes  # type: ignore[union-attr]
        self.open_stages -= kind is StageEnded
        self.ran += kind is ExecItemRan
        super().record(event)
        if self.outer is not None:
            self.outer.record(event)

    def _record_earlier(self, nodes: Iterable[object], frame: UserFrame | None) -> None:
        """Records LazyBuffers that were created before the capture, before realizing them removes their sources.

        Their recorded origin is the line that first uses them or requests their values.
        """
        fresh = [node for node in nodes if isinstance(node, LazyBuffer) and node not in self.known]
        if not fresh:
            return
        frame = frame or user_frame_here()
        for root in fresh:
            before = self.earlier
            for node in toposort([root], lambda node: () if node in self.known else node.src):
                if node in self.known:
                    continue
                self.known.add(node)
                if node.buffer is None:
                    self.earlier += not node.base.is_realized  # a view of memory computes nothing
                    self.record(LazyBufferBuilt(node, node.src, frame, getattr(node, "calls", ())))
            self.lazy_inputs += self.earlier > before

    def storage(self) -> dict[LazyBuffer, NodeBuffer | None]:
        """Returns the buffer that now holds the value of each recorded LazyBuffer."""
        return {node: buffer_of(node) for node in self.known}

    def files(self) -> set[str]:
        """Returns the names of the user's files and cells that appeared in the events."""
        frames = (event.user_frame for event in self.events if isinstance(event, LazyBufferBuilt))
        return {frame.file for frame in frames if frame is not None}
