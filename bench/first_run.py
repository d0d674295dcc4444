"""First runs: the first call of a fresh process, compiling included, with nothing on disk; ours also with a warm disk.

What is timed begins where imports are done and the inputs lie in the engine's own memory, and ends with the result,
which is compared with NumPy's before it counts. To bring them there each engine opens its device (JAX its client), so
that this is no part of it. Beside it stands what a user waits for: the same with the engine's
import and the handing over of the inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.cases import Case
from bench.harness import ROOT, PeerProcess, Settings, WorkerLost, store
from bench.report import FirstRun

COLD, WARM = "tinyexplore", "tinyexplore, warm disk"
COMPILING_PEERS = ("torch.compile", "jax")
REPEATS = 5
PATIENCE = 2.0  # seconds: a longer first run is not repeated
LONGEST = 60.0  # seconds: who needs more for one first run has none; torch.compile takes 1 to 18 for most cases

# where each engine keeps what it compiled
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
    """A FirstRun for each case: of tinyexplore, of tinyexplore again on a warm disk, and of each of `peers`."""
    found = []
    for number, case in enumerate(cases, 1):
        run = FirstRun(case.name, date=datetime.now(timezone.utc).isoformat(timespec="seconds"))
        with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-") as folder:
            request = store(case, Path(folder))
            left = [COLD, *peers]
            for _ in range(REPEATS):  # in turns: whatever befalls the machine befalls all
                left = [way for way in left if _measure(run, way, request, settings)]
        found.append(run)
        shown = ", ".join(f"{way} {seconds * 1e3:,.0f}" for way, seconds in run.seconds.items())
        failed = ", ".join(f"{way}: {kind}" for way, (kind, _) in run.failures.items())
        say(f"{number}/{len(cases)} {case.name}, first run: {shown} ms" + (f"; {failed}" if failed else ""))
    return found


def _measure(run: FirstRun, way: str, request: dict[str, Any], settings: Settings) -> bool:
    """One more fresh process, with an empty folder for what it compiles; the best so far counts. True: again."""
    with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-cache-") as cache:
        try:
            for kind in (way, WARM) if way == COLD else (way,):
                seconds, before = first_call(way, request, settings, cache)
                run.seconds[kind] = min(seconds, run.seconds.get(kind, seconds))
                whole = before + seconds
                run.with_imports[kind] = min(whole, run.with_imports.get(kind, whole))
        except WorkerLost as lost:
            run.failures[way] = (lost.kind, str(lost))
            run.seconds.pop(way, None)
            run.with_imports.pop(way, None)
            return False
    return seconds <= PATIENCE


def first_call(
    peer: str, request: dict[str, Any], settings: Settings, cache: str, root: Path = ROOT
) -> tuple[float, float]:
    """Seconds of the first call, and of importing and putting the inputs in place before it."""
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
