"""Keeps every core awake while others are timed.

A core with nothing to do is put to sleep, and some systems put work on few cores to let others sleep. In a virtual
machine a sleeping core goes back to the host, which wakes it again next to whoever woke it: two cores that then share
one cache for some seconds, until the host has spread them. On the machine of `docs/performance/` 64 MiB took 0.7 ms to
read where both cores had been busy, 1.3 ms where one had slept a moment before, and who was timed after a peer with one
thread got the second. So each core has something to do that counts for nothing: a process of the class SCHED_IDLE,
which gives way to any other at once, and spins with pauses, which takes next to nothing from another thread of the
same core. It is what `idle=poll` does where one may choose how to boot. Where the host puts the cores is still its own
choice; they are moved less often, and those of all engines alike.
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

from tinyexplore.explore.analysis.machine.loops import Loops

NEVER = 1 << 62  # more than will come to meet


class Awake:
    """A context in which no core sleeps, where the system can do that; `say` hears where it cannot.

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
    """Spins on `core` until whoever started it closes its input, or ends."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    loops = Loops()
    counter = ctypes.c_int64(0)
    threading.Thread(target=loops.meet, args=(ctypes.addressof(counter), NEVER), daemon=True).start()
    print("awake", flush=True)
    sys.stdin.read()
    os._exit(0)  # the thread would never end


if __name__ == "__main__":
    _spin(int(sys.argv[1]))
