"""First runs: the first call of a fresh process, compilation included, with an empty disk cache.

For tinyexplore, a second first run with a full disk cache follows. The measured time starts when imports are done and
the inputs lie in the engine's memory. To put them there, each engine opens its device (JAX its client), which is
therefore not measured. The time ends with the result, which must agree with NumPy's. A second time, which users wait
for, includes the import of the engine and the transfer of the inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.cases import Case
from bench.harness import ROOT, PeerProcess, Settings, WorkerLost, store_case
from bench.report import FirstRun

COLD, WARM = "tinyexplore", "tinyexplore, warm disk"
COMPILING_PEERS = ("torch.compile", "jax")
REPEATS = 5
PATIENCE = 2.0  # seconds: a longer first run is not repeated
LONGEST = 60.0  # seconds: a longer first run is stopped and has no result; torch.compile takes 1 to 18 for most cases

# the folder in which each engine keeps compiled code
CACHES = (
    "XDG_CACHE_HOME",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
)


def measure_first_runs(
    cases: Sequence[Case], peers: Sequence[str], settings: Settings, say: Callable[[str], None]
) -> list[FirstRun]:
    """Return a FirstRun for each case: of tinyexplore (with an empty and a full disk cache) and of each of `peers`."""
    runs = []
    for number, case in enumerate(cases, 1):
        run = FirstRun(case.name, date=datetime.now(timezone.utc).isoformat(timespec="seconds"))
        with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-") as folder:
            request = store_case(case, Path(folder))
            left = [COLD, *peers]
            for _ in range(REPEATS):  # alternately, so that noise of the machine affects all engines
                left = [way for way in left if _measure(run, way, request, settings)]
        runs.append(run)
        shown = ", ".join(f"{way} {seconds * 1e3:,.0f}" for way, seconds in run.seconds.items())
        failed = ", ".join(f"{way}: {kind}" for way, (kind, _) in run.failures.items())
        say(f"{number}/{len(cases)} {case.name}, first run: {shown} ms" + (f"; {failed}" if failed else ""))
    return runs


def _measure(run: FirstRun, way: str, request: dict[str, Any], settings: Settings) -> bool:
    """Run one more fresh process with an empty cache folder, and keep the best time.

    Return whether to repeat.
    """
    with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-cache-") as cache:
        try:
            for kind in (way, WARM) if way == COLD else (way,):
                seconds, before = first_call(way, request, settings, cache)
                run.seconds[kind] = min(seconds, run.seconds.get(kind, seconds))
                total_s = before + seconds
                run.with_imports[kind] = min(total_s, run.with_imports.get(kind, total_s))
        except WorkerLost as lost:
            run.failures[way] = (lost.kind, str(lost))
            run.seconds.pop(way, None)
            run.with_imports.pop(way, None)
            return False
    return seconds <= PATIENCE


def first_call(
    peer: str, request: dict[str, Any], settings: Settings, cache: str, root: Path = ROOT
) -> tuple[float, float]:
    """Return the seconds of the first call, and the seconds before it (the import, and the transfer of the inputs)."""
    before = 0.0
    process = PeerProcess(peer, settings, variables=dict.fromkeys(CACHES, cache), root=root)
    try:
        for question in ({"do": "load", "threads": settings.thread_count}, {"do": "first", **request}):
            limit = settings.setup_timeout if question["do"] == "load" else min(settings.setup_timeout, LONGEST)
            reply = process.ask(limit, **question)
            if not reply["ok"]:
                raise WorkerLost(reply.get("kind", "error"), reply["reason"])
            before += float(reply["seconds"]) if question["do"] == "load" else float(reply["ready_seconds"])
        return float(reply["seconds"]), before
    finally:
        process.close()
