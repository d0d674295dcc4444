"""DEBUG output: a recorder that prints events instead of storing them."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tinyexplore.engine import further_listings
from tinyexplore.explore.recording.descriptions import describe, launches_text, search_text, uops_listing
from tinyexplore.explore.recording.realized_graph import RealizedGraph
from tinyexplore.explore.recording.roots import roots_of
from tinyexplore.explore.tracefile.encodable_text import write_text
from tinyexplore.explore.tracefile.pictures.highlight import for_stream
from tinyexplore.schedule import ScheduleItem
from tinyexplore.trace import (
    CandidateMeasured,
    Event,
    ExecItemRan,
    LaunchesGrouped,
    ListingRendered,
    MemoryPlanned,
    OptApplied,
    ProgramCompiled,
    Recorder,
    ScheduleDecided,
    SearchEnded,
    SourceLine,
    StageBegan,
)
from tinyexplore.util import GlobalCounters, config

PROFILE_FILE = "profile.json"


class ConsoleRecorder(Recorder):
    """Prints events to standard output, according to the level of DEBUG.

    1: devices at their first use. 2: kernels with times as they run, and results of BEAM. 3: buffers, opts, candidates,
        and
    decisions with reasons. 4: sources. 5: the ast of each kernel. 6: its linear program. 7: its assembly.
    With PROFILE=1 the recorder writes a timeline of all runs when the process ends. With GRAPH=1 it writes a picture of
    the realized graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self.devices: set[str] = set()
        self.total_seconds = 0.0
        self.profile: list[dict[str, Any]] = []
        self.graph = RealizedGraph()

    def record(self, event: Event) -> None:
        settings = config()
        if settings.PROFILE and isinstance(event, ExecItemRan):
            self.keep(event)
        if settings.GRAPH and isinstance(event, StageBegan) and event.stage == "schedule":
            self.draw(event)
        text = self.text(event, settings.DEBUG) if settings.DEBUG else None
        if text:
            print(text, file=sys.stdout, flush=True)

    def text(self, event: Event, level: int) -> str | None:
        """Returns the text for `event` at this level; None if it prints nothing."""
        match event:
            case ProgramCompiled(program=program) if program.target.name not in self.devices:
                self.devices.add(program.target.name)
                return str(program.target.describe())
            case ExecItemRan() if level >= 2:
                return self.ran(event)
            case MemoryPlanned(plan=plan) if level >= 2:
                return f"memory: {plan.describe()}"
            case LaunchesGrouped() if level >= 2:
                return launches_text(event)
            case SearchEnded() if level >= 2:
                return f"BEAM    {search_text(event)}"
            case CandidateMeasured(kernel=kernel, seconds=seconds, note=note) if level >= 3:
                opts = ", ".join(map(str, kernel.applied)) or "no opts"
                return f"    {seconds * 1e6:10.1f} µs  {opts}{note and f' ({note})'}"
            case OptApplied(opt=opt, reason=reason) if level >= 3:
                return f"    {opt}: {reason}"
            case ScheduleDecided(lazybuffer=node, decision=decision, reason=reason) if level >= 3:
                return f"    {describe(node).label}: {decision}, {reason}"
            case StageBegan(stage="kernel", root=ScheduleItem() as item) if level >= 3:
                return _kernel_text(item, level)
            case ListingRendered(language=language, program=program) if level >= 4 and language == program.language:
                return _program_text(event, level)
        return None

    def ran(self, event: ExecItemRan) -> str:
        runner = event.exec_item.runner
        self.total_seconds += event.seconds
        name = f"{event.exec_item.item.device} {runner.spec.name}" if runner is not None else "copy"
        times = f"{event.seconds * 1e6:9.1f} µs {self.total_seconds * 1e3:8.2f} ms in all"
        seconds = max(event.seconds, 1e-9)
        rates = f"{event.flops / seconds / 1e9:7.2f} GFLOP/s {event.bytes_moved / seconds / 1e9:6.2f} GB/s"
        return f"{name:34s}{times} {rates} {GlobalCounters.mem_used / 1e6:7.2f} MB used"

    def keep(self, event: ExecItemRan) -> None:
        """Stores one span of the timeline. The first call registers the writing at exit."""
        if not self.profile:
            atexit.register(self.write_profile)
        runner = event.exec_item.runner
        started_us = (time.perf_counter() - event.seconds) * 1e6
        self.profile.append(
            {
                "ph": "X",
                "pid": os.getpid(),
                "tid": 0 if runner is None else event.exec_item.item.device,
                "name": "copy" if runner is None else runner.spec.name,
                "ts": started_us,
                "dur": event.seconds * 1e6,
                "args": {"flops": event.flops, "bytes_moved": event.bytes_moved},
            }
        )

    def draw(self, event: StageBegan) -> None:
        """Adds the graph that is about to be realized to the picture. The first call registers the writing at exit."""
        if not self.graph.nodes:
            atexit.register(self.write_graph, config().GRAPHPATH)
        self.graph.add(roots_of(event.root))

    def write_graph(self, path: str = "") -> Path:
        """Writes the picture, and prints its path."""
        written = self.graph.write(path)
        print(f"GRAPH: {len(self.graph.nodes)} LazyBuffers in {written}", file=sys.stdout, flush=True)
        return written

    def write_profile(self) -> Path:
        """Writes the timeline into the current folder, for ui.perfetto.dev or chrome://tracing."""
        path = Path(PROFILE_FILE)
        return write_text(path, json.dumps({"traceEvents": self.profile, "displayTimeUnit": "ms"}))


def _listing_text(language: str, lines: tuple[SourceLine, ...]) -> str:
    """Returns a listing as text, colored if standard output is a terminal."""
    return "\n".join(for_stream(language, [line.text for line in lines], sys.stdout))


def _kernel_text(item: ScheduleItem, level: int) -> str:
    """Returns the list of a kernel's buffers, before it is compiled; from level 5 on also its ast."""
    buffers = [f"    data{number}: {buffer!r}" for number, buffer in enumerate(item.buffers)]
    if level >= 5 and item.ast is not None:
        buffers.append(_listing_text("uops", uops_listing(item.ast.toposort())))
    return "\n".join(buffers)


def _program_text(event: ListingRendered, level: int) -> str:
    """Returns the source of a program; from level 6 after its linear program, from level 7 before its assembly."""
    parts = [_listing_text(event.language, event.lines)]
    if level >= 6:
        parts.insert(0, _listing_text("uops", uops_listing(event.program.uops)))
    if level >= 7:
        parts += [
            _listing_text("asm", lines) for language, lines in further_listings(event.program) if language == "asm"
        ]
    return "\n".join(parts)
