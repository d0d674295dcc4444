"""ExecItem: a compiled kernel or a copy, with its buffers, ready to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.sampling import sample_launch
from tinyexplore.schedule import ScheduleItem
from tinyexplore.trace import ExecItemRan, active_recorder
from tinyexplore.uop.symbolic import sint, value_of
from tinyexplore.util import GlobalCounters


@dataclass(eq=False)
class ExecItem:
    """A scheduled item that is ready to run.

    item: the schedule item.
    runner: its compiled kernel; None for a copy between devices.
    kernel: the kernel's number in this process, if it has one.
    buffers: the buffers that it accesses.
    bound: the program bound to its buffers, after the first run.
    values: the values of the kernel's Variables.
    """

    item: ScheduleItem
    runner: Runner | None
    kernel: int | None
    buffers: tuple[Buffer, ...]
    bound: Callable[[int, int], None] | None = field(default=None, repr=False)
    values: tuple[int, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "bound": None}  # addresses are valid only in this process

    def run(self) -> None:
        """Runs the item on all its threads. Records `ExecItemRan`, then takes the samples that `sampling` requests."""
        recorder = active_recorder()
        if recorder is not None:
            recorder.about_to_run(self)
        seconds = self._run_timed()
        GlobalCounters.add(1, self.flops, self.bytes_moved, seconds)
        if recorder is not None:
            recorder.record_gone()
            recorder.record(ExecItemRan(self, seconds, self.bytes_moved, self.flops))
        sample_launch(self, seconds)

    @property
    def flops(self) -> int:
        return 0 if self.runner is None else self._evaluate_cost(self.runner.flops)

    @property
    def bytes_moved(self) -> int:
        return 2 * self.buffers[0].nbytes if self.runner is None else self._evaluate_cost(self.runner.bytes_moved)

    def _evaluate_cost(self, cost: sint) -> int:
        return value_of(cost, dict(zip(self.item.variables, self.values)))

    def execute(self) -> None:
        """Runs the item once. An asynchronous device may return after the launch."""
        if self.runner is None:
            target, source = self.buffers
            target.allocate().copyin(source.memoryview())
            return
        self.runner.run(self.bind(), self.values)

    def bind(self) -> Callable[[int, int], None]:
        """Binds the kernel to its current buffers and values."""
        assert self.runner is not None
        if self.bound is None:
            self.bound = self.runner.program.bind(self.buffers, self.values)
        return self.bound

    def measure(self, repeat: int) -> list[float]:
        """Returns the seconds of each of `repeat` further runs, which all write the same values."""
        return [self._run_timed() for _ in range(repeat)]

    def _run_timed(self) -> float:
        """Runs the item once, waits, and returns the seconds, by the device's own clock if it has one."""
        if self.runner is None:
            for buffer in self.buffers:  # a copy's time excludes the wait for earlier kernels
                buffer.allocate().memory.wait_for_kernels()
        start = time.perf_counter()
        timed = None if self.runner is None else getattr(self.bind(), "timed", None)
        seconds = 0.0
        if timed is None:
            self.execute()
        else:
            seconds = timed()
        return seconds or time.perf_counter() - start


__all__ = ["ExecItem"]
