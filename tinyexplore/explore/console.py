"""DEBUG output: one more recorder, which writes what it hears instead of keeping it."""

from __future__ import annotations

import sys

from tinyexplore.explore.describe import describe
from tinyexplore.trace import Compiled, Decided, Event, OptApplied, Ran, Recorder, Rendered
from tinyexplore.util import config


class ConsoleRecorder(Recorder):
    """Writes events to standard output: DEBUG=1 devices, 2 kernels as they run, 3 opts and decisions, 4 sources."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: set[str] = set()
        self.total_seconds = 0.0

    def record(self, event: Event) -> None:
        level = config().DEBUG
        text = self.line(event, level)
        if text is not None:
            print(text, file=sys.stdout, flush=True)

    def line(self, event: Event, level: int) -> str | None:
        """What there is to say of `event` at this level; None for nothing."""
        match event:
            case Compiled(program=program) if program.target.name not in self.devices:
                self.devices.add(program.target.name)
                return program.target.describe()
            case Ran() if level >= 2:
                return self.ran(event)
            case OptApplied(opt=opt, reason=reason) if level >= 3:
                return f"    {opt}: {reason}"
            case Decided(lazybuffer=node, decision=decision, reason=reason) if level >= 3:
                return f"    {describe(node).label}: {decision}, {reason}"
            case Rendered(language=language, lines=lines, program=program) if level >= 4:
                own = language == program.language
                return "\n".join(line.text for line in lines) if own else None
        return None

    def ran(self, event: Ran) -> str:
        runner = event.exec_item.runner
        self.total_seconds += event.seconds
        name = f"{runner.device:7s} {runner.kernel.name}" if runner is not None else "copy"
        times = f"{event.seconds * 1e6:10.1f} µs   {self.total_seconds * 1e3:9.2f} ms in all"
        rates = f"{event.flops / event.seconds / 1e9:8.2f} GFLOP/s {event.bytes_moved / event.seconds / 1e9:7.2f} GB/s"
        return f"{name:50s} {times}   {rates}"
