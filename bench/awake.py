"""Keeps every core awake during measurements.

The system puts an idle core to sleep, and may pack work on few cores. In a virtual machine a sleeping core returns to
the host. The host wakes it later beside the core that needs it, so that both share one cache for some seconds. On the
machine of `docs/performance/`, a read of 64 MiB took 0.7 ms with two busy cores and 1.3 ms after one had slept. The
slow time fell on any engine that was measured after an engine with one thread.

So each core runs a process of the class SCHED_IDLE, which gives way to every other process. It spins with pauses,
which takes almost nothing from another thread of the same core. The effect is that of `idle=poll`, which only a boot
option can choose. The host may still move cores, but less often, and equally for all engines.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyexplore.explore.analysis.machine.benchmark_loops import Loops

NEVER = 1 << 62  # a counter value that no loop reaches


class Awake:
    """A context in which no core sleeps, where the system supports that. `say` receives a message if it does not.

    `settles`: seconds to wait until a host has spread the cores.
    """

    def __init__(self, say: Callable[[str], Any], settles: float) -> None:
        self.say = say
        self.settles = settles
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Awake:
        if not hasattr(os, "SCHED_IDLE"):
            self.say("!! cores may fall asleep between slices: this system has no class of processes that give way")
            return self
        for core in sorted(os.sched_getaffinity(0)):
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "bench.awake", str(core)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=Path(__file__).parent.parent,
                )
            )
        for process in self.processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                self.say(f"!! a core may fall asleep between slices: its process ended with {process.wait()}")
        time.sleep(self.settles)
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            process.wait()
        self.processes.clear()


def _spin(core: int) -> None:
    """Spin on `core` until the parent process closes this process's input, or ends."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    loops = Loops()
    counter = ctypes.c_int64(0)
    threading.Thread(target=loops.synchronize, args=(ctypes.addressof(counter), NEVER), daemon=True).start()
    print("awake", flush=True)
    sys.stdin.read()
    os._exit(0)  # the spinning thread would never end


if __name__ == "__main__":
    _spin(int(sys.argv[1]))
