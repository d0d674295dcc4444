"""tinyexplore's own compile times, in a process: `python -m bench.compile_worker plain|stripped`, JSON lines.

Requests: {"do": "prepare", "case"} · {"do": "cold", "recording": "off"|"on"|"trace"}: one call with every kernel
compiled anew · {"do": "running"}: what the kernels themselves take · {"do": "stages"}: where that time goes ·
{"do": "bye"}.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cases import choose_cases
from bench.conversation import raised, serve


def forget() -> None:
    """No compiled kernel and no memoised result is left: the next call does all the work again."""
    from tinyexplore.compile.lowering import _programs  # not before hooks are taken out

    _programs.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("tinyexplore."):
            for value in vars(module).values():
                if not isinstance(value, type) and callable(clear := getattr(value, "cache_clear", None)):
                    clear()
    gc.collect()


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds on the wall and on the CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


class CompileWorker:
    """One process of tinyexplore and the case that it compiles."""

    def __init__(self) -> None:
        self.call: Callable[[], Any] = lambda: None
        self.started = time.perf_counter()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; whatever goes wrong becomes one too."""
        try:
            return {"ok": True, **getattr(self, f"do_{request.pop('do')}")(**request)}
        except Exception as error:
            return raised(error)

    def do_hello(self, **_: Any) -> dict[str, Any]:
        from bench import stripped
        from bench.peers.tinyexplore import Engine

        self.engine = Engine("", os.cpu_count() or 1)
        self.engine.prepare("ew_add", {"a": np.ones(3, np.float32), "b": np.ones(3, np.float32)})()
        return {"version": self.engine.version, "removed": sum(stripped.counts.values())}

    def do_prepare(self, case: str, warm: bool = True) -> dict[str, Any]:
        (found,) = choose_cases([case])
        self.call = self.engine.prepare(found.family, found.make_inputs())
        if warm:
            self.call()
        return {}

    def do_cold(self, recording: str) -> dict[str, Any]:
        """One call; `cpu_seconds` of all threads, which other programs on the machine change less."""
        forget()
        if recording == "off":
            return {**_timed(self.call), "events": 0}
        if recording == "trace":
            from tinyexplore.explore import capture

            traces = []

            def captured() -> None:
                with capture() as session:
                    self.call()
                traces.append(session.trace)

            return {**_timed(captured), "events": len(traces[0].nodes)}
        from tinyexplore.trace import Recorder
        from tinyexplore.trace import recording as listening_to

        listener = Recorder()

        def recorded() -> None:
            with listening_to(listener):
                self.call()

        return {**_timed(recorded), "events": len(listener.events)}

    def do_running(self) -> dict[str, Any]:
        """Seconds that the kernels of a call take, when everything is compiled: the least of three calls."""
        from tinyexplore.trace import Ran, Recorder
        from tinyexplore.trace import recording as listening_to

        found = []
        for _ in range(3):
            listener = Recorder()
            with listening_to(listener):
                self.call()
            found.append(sum(event.seconds for event in listener.events if isinstance(event, Ran)))
        return {"seconds": min(found)}

    def do_stages(self) -> dict[str, Any]:
        """Seconds by stage, each without the stages inside it; and how many rules fired, for each second of them.

        `lowering_seconds`: all stages but the compiler's, from scheduling to the source, whether rules fire in them or
        not; `rewriting_seconds`: those of them that are passes of rules.
        """
        from tinyexplore.explore import capture

        forget()
        with capture() as session:
            self.call()
        trace = session.trace
        own = {stage.id: stage.elapsed_us for stage in trace.stages}
        for stage in trace.stages:
            if stage.parent is not None:
                own[stage.parent] -= stage.elapsed_us
        seconds: defaultdict[str, float] = defaultdict(float)
        firings = 0
        rewriting = 0.0
        for stage in trace.stages:
            seconds[stage.name] += own[stage.id] / 1e6
            if stage.steps:
                firings += sum(step.rule is not None for step in stage.steps)
                rewriting += own[stage.id] / 1e6
        return {
            "stages": dict(seconds),
            "kernels": len(trace.kernels),
            "firings": firings,
            "lowering_seconds": sum(seconds.values()) - seconds.get("compile", 0.0),
            "rewriting_seconds": rewriting,
        }


def run(way: str) -> None:
    """Serves with hooks in place, or without them."""
    os.environ["CACHELEVEL"] = "0"  # nothing from disk
    if way == "stripped":
        from bench.stripped import install

        install()
    serve(CompileWorker().answer)


if __name__ == "__main__":
    run(sys.argv[1])
