"""Measures tinyexplore's compile times in one process: `python -m bench.compile_worker plain|stripped`, JSON lines.

Requests:

- {"do": "prepare", "case"};
- {"do": "cold", "recording": "off"|"on"|"trace"}: one call that compiles every kernel again;
- {"do": "running"}: the time of the kernels themselves;
- {"do": "stages"}: the compile time of each stage;
- {"do": "bye"}.
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
from bench.conversation import error_reply, serve


def clear_caches() -> None:
    """Drop every compiled kernel and every memoised result, so that the next call does all the work again."""
    # not at the top: the import hook of `bench.stripped` must come first
    from tinyexplore.compile.lowering import _programs

    _programs.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("tinyexplore."):
            for value in vars(module).values():
                if not isinstance(value, type) and callable(clear := getattr(value, "cache_clear", None)):
                    clear()
    gc.collect()


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    """Run `work` and return its wall time and CPU time, in seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


class CompileWorker:
    """A process of tinyexplore, with the case that it compiles."""

    def __init__(self) -> None:
        self.call: Callable[[], Any] = lambda: None
        self.started = time.perf_counter()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request. An exception becomes a reply too."""
        try:
            return {"ok": True, **getattr(self, f"do_{request.pop('do')}")(**request)}
        except Exception as error:
            return error_reply(error)

    def do_hello(self, **_: Any) -> dict[str, Any]:
        from bench import stripped
        from bench.peers.tinyexplore import Engine

        self.engine = Engine("", os.cpu_count() or 1)
        self.engine.prepare("ew_add", {"a": np.ones(3, np.float32), "b": np.ones(3, np.float32)})()
        return {"version": self.engine.version, "removed": sum(stripped.counts.values())}

    def do_prepare(self, case: str, warm: bool = True) -> dict[str, Any]:
        (case_found,) = choose_cases([case])
        self.call = self.engine.prepare(case_found.family, case_found.make_inputs())
        if warm:
            self.call()
        return {}

    def do_cold(self, recording: str) -> dict[str, Any]:
        """Run one cold call.

        `cpu_seconds` is the CPU time of all threads, which other programs change less than wall time.
        """
        clear_caches()
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
        """Return the seconds of the kernels of one call when everything is compiled: the least of three calls."""
        from tinyexplore.trace import ExecItemRan, Recorder
        from tinyexplore.trace import recording as listening_to

        seconds_of_runs = []
        for _ in range(3):
            listener = Recorder()
            with listening_to(listener):
                self.call()
            seconds_of_runs.append(sum(event.seconds for event in listener.events if isinstance(event, ExecItemRan)))
        return {"seconds": min(seconds_of_runs)}

    def do_stages(self) -> dict[str, Any]:
        """Return the seconds of each stage without its inner stages, and the rate of rule firings.

        `lowering_seconds`: all stages from scheduling to the source, except those of the compiler. `rewriting_seconds`:
            the
        share of them in passes that apply rules.
        """
        from tinyexplore.explore import capture

        clear_caches()
        with capture() as session:
            self.call()
        trace = session.trace
        own_us = {stage.id: stage.elapsed_us for stage in trace.stages}
        for stage in trace.stages:
            if stage.parent is not None:
                own_us[stage.parent] -= stage.elapsed_us
        seconds: defaultdict[str, float] = defaultdict(float)
        firings = 0
        rewriting = 0.0
        for stage in trace.stages:
            seconds[stage.name] += own_us[stage.id] / 1e6
            if stage.steps:
                firings += sum(step.rule is not None for step in stage.steps)
                rewriting += own_us[stage.id] / 1e6
        return {
            "stages": dict(seconds),
            "kernels": len(trace.kernels),
            "firings": firings,
            "lowering_seconds": sum(seconds.values()) - seconds.get("compile", 0.0),
            "rewriting_seconds": rewriting,
        }


def run(way: str) -> None:
    """Serve requests with the recorder's hooks in place ("plain"), or without them ("stripped")."""
    os.environ["CACHELEVEL"] = "0"  # no compiled code from disk
    if way == "stripped":
        from bench.stripped import install

        install()
    serve(CompileWorker().answer)


if __name__ == "__main__":
    run(sys.argv[1])
