"""First runs of whole networks, compared with Inductor and JAX: `python -m bench.first_runs [WORD …] [--out FOLDER]`.

Each first call is timed in a fresh process, after imports, with inputs and weights in memory. The first process has an
empty folder for compiled code; a second process finds the folder full. All engines compute the same network with the
same weights: `torch.compile` with Inductor, `torch.compile` with `backend="tinyexplore"`, and JAX
(`bench/first_runs_jax.py`). Results are compared with those of eager PyTorch.

$TINYEXPLORE_BENCH_PYTHON names the interpreter of the engines (default: this one). It needs PyTorch, and JAX for the
column of JAX.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench.first_run import CACHES

ROOT = Path(__file__).parents[1]
ENGINES = ("tinyexplore", "inductor", "jax")
PROGRAMS = ("transformer block, forward and backward", "ResNet-18, forward", "GPT-2-tiny, forward", "MLP, forward")
SHOWN = PROGRAMS[:3]
PATIENCE_S = 400.0
FARTHEST = 2e-3  # the largest allowed difference from eager PyTorch, as a share of the largest value
JAX_KEEPS_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


@dataclass(frozen=True)
class First:
    """The first calls of one program by one engine.

    program: its name.
    engine: "tinyexplore" or a peer.
    cold_s, warm_s: wall time, with an empty folder and with the code of the cold process.
    cold_cpu_s, warm_cpu_s: CPU time of the process and of its child processes (compilers).
    failure: the reason why there are no times, or "".
    """

    program: str
    engine: str
    cold_s: float = 0.0
    warm_s: float = 0.0
    cold_cpu_s: float = 0.0
    warm_cpu_s: float = 0.0
    failure: str = ""


# *** the process of the engine ***


def network(program: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the module and its arguments, equal in every process."""
    import torch

    from bench import torch_programs

    torch.manual_seed(0)
    if program.startswith("transformer"):
        return torch_programs.Block(512, 8, causal=True), (torch.randn(4, 256, 512),)
    module, args = torch_programs.PROGRAMS[program.partition(",")[0]]()
    return module.eval(), args


def torch_call(engine: str, program: str) -> Callable[[], list[Any]]:
    """Return a function that runs a program by PyTorch.

    Its result is the output, or the gradients of the sum of squares.
    """
    import torch

    module, args = network(program)
    step = module
    if engine == "tinyexplore":
        from tinyexplore.frontends.torch import tinyexplore

        step = torch.compile(module, backend=tinyexplore, dynamic=False)
    elif engine == "inductor":
        step = torch.compile(module, dynamic=False)

    def learn() -> list[Any]:
        step(*args).square().mean().backward()
        return [parameter.grad.numpy() for parameter in module.parameters()]

    def infer() -> list[Any]:
        with torch.no_grad():
            return [step(*args).numpy()]

    return learn if program.startswith("transformer") else infer


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished child processes."""
    return sum(os.times()[:4])


def serve(engine: str, program: str) -> dict[str, float]:
    """Time the first call. Raise ArithmeticError if a result differs from that of eager PyTorch."""
    expected = torch_call("eager", program)()
    if engine == "jax":
        from bench.first_runs_jax import jax_call

        call = jax_call(program, *network(program))
    else:
        call = torch_call(engine, program)
    cpu, wall = cpu_seconds(), time.perf_counter()
    results = call()
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    largest = max(float(abs(value).max()) for value in expected)
    difference = max(float(abs(a - b).max()) for a, b in zip(results, expected, strict=True))
    if difference > FARTHEST * largest:
        raise ArithmeticError(f"differs from eager PyTorch by {difference / largest:.1e} of the largest value")
    return {"wall": wall, "cpu": cpu}


# *** the process of the caller ***


def measure(program: str, engine: str) -> First:
    """Measure a cold first call and a warm one, each in its own process."""
    python = os.environ.get("TINYEXPLORE_BENCH_PYTHON", sys.executable)
    command = [python, "-m", "bench.first_runs", "--serve", engine, program]
    times = []
    with tempfile.TemporaryDirectory(prefix="tinyexplore-first-") as folder:
        variables = {**os.environ, **dict.fromkeys(CACHES, folder), **JAX_KEEPS_ALL, "PYTHONPATH": str(ROOT)}
        for _ in ("cold", "warm"):
            try:
                process = subprocess.run(
                    command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
                )
            except subprocess.TimeoutExpired:
                return First(program, engine, failure=f"more than {PATIENCE_S:.0f} s")
            if process.returncode:
                return First(program, engine, failure=(process.stderr.strip().splitlines() or ["no message"])[-1][:160])
            times.append(json.loads(process.stdout.strip().splitlines()[-1]))
    cold, warm = times
    return First(program, engine, cold["wall"], warm["wall"], cold["cpu"], warm["cpu"])


def cell(seconds: float, cpu: float) -> str:
    """Return wall time and CPU time as the text of a cell."""
    return f"{seconds:.2f} ({cpu:.2f})"


def table(rows: Sequence[First]) -> str:
    """Return a table with one line per program: cold and warm times of each engine."""
    engines = [engine for engine in ENGINES if any(row.engine == engine for row in rows)]
    head = ["program", *(f"{engine}, {disk}" for engine in engines for disk in ("cold", "warm"))]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for program in dict.fromkeys(row.program for row in rows):
        of_engine = {row.engine: row for row in rows if row.program == program}
        cells = []
        for engine in engines:
            row = of_engine.get(engine)
            if row is None or row.failure:
                cells += [row.failure if row else "–", "–"]
            else:
                cells += [cell(row.cold_s, row.cold_cpu_s), cell(row.warm_s, row.warm_cpu_s)]
        lines.append(f"| {program} | {' | '.join(cells)} |")
    return "\n".join(lines)


def page(rows: Sequence[First], load: str) -> str:
    """Return the page of the documentation."""
    from bench.__main__ import _cpu_name

    return (
        "# First runs of networks\n\n"
        "This page answers: how long does the first call of a network take, compilation included?\n\n"
        "Written by `python -m bench.first_runs --out docs/performance`. Each figure is one fresh process: seconds of\n"
        "wall time, and in parentheses seconds on the CPU, compilers included. *Cold*: nothing on disk. *Warm*: a\n"
        "second process, which finds what the first one compiled. Imports are done before. tinyexplore and Inductor\n"
        "are backends of `torch.compile`: their times include Dynamo's tracing. Results were compared with eager\n"
        "PyTorch.\n\n"
        f"- date: {date.today()}\n- cpu: {_cpu_name()}, {os.cpu_count()} cores\n- load at the start and end: {load}\n\n"
        f"{table(rows)}\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 1 if a row failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_runs", description=__doc__)
    parser.add_argument("words", nargs="*", help="only programs whose name has one of these")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--out", metavar="FOLDER", help="write first_runs.json and first_runs.md there")
    parser.add_argument("--serve", nargs=2, metavar=("ENGINE", "PROGRAM"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        print(json.dumps(serve(*options.serve)))
        return 0
    words = [word.lower() for word in options.words]
    programs = (
        [program_name for program_name in PROGRAMS if any(word in program_name.lower() for word in words)]
        if words
        else SHOWN
    )
    rows, load = [], f"{os.getloadavg()[0]:.1f}"
    for program in programs:
        for engine in options.engines:
            rows.append(measure(program, engine))
            print(f"{program}, {engine}: {rows[-1]}", file=sys.stderr, flush=True)
    load = f"{load} and {os.getloadavg()[0]:.1f}"
    print(table(rows))
    if options.out:
        folder = Path(options.out)
        text = json.dumps({"date": str(date.today()), "load": load, "rows": [asdict(row) for row in rows]}, indent=1)
        (folder / "first_runs.json").write_text(text + "\n", encoding="utf-8")
        (folder / "first_runs.md").write_text(page(rows, load), encoding="utf-8")
    return 1 if any(row.failure for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
