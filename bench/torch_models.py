"""Twelve programs of PyTorch: eager, Inductor and tinyexplore. `python -m bench.torch_models [WORD …] [--write]`.

For each program: the time of the first call (compilation included) and of a later call. The engines are eager PyTorch,
`torch.compile(program)` (Inductor) and `torch.compile(program, backend="tinyexplore")`, timed alternately.

`--train` times a training step: forward and backward, without an optimizer. `--cpu` measures the CPU time of one
thread, which other processes change less. `--write` puts the rows into docs/performance/torch.json and the table of all
rows into docs/performance/torch.md.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from bench.__main__ import _cpu_name
from tinyexplore.util import Context, config

SECONDS = 1.5  # of later calls, for each engine
MAX_ROUNDS = 60
SPINNING = 0.01  # seconds that idle threads of OpenMP spin
AIM, LIMIT = 1.2, 3.0
FOLDER = Path(__file__).parents[1] / "docs" / "performance"
CLOCKS = {True: "time on the CPU, one thread", False: "the wall's, a thread for each core"}
ENGINES = ("eager", "inductor", "tinyexplore")


def threads() -> int:
    """Return the number of threads of all engines."""
    return config().THREADS or os.cpu_count() or 1


def clock_seconds() -> float:
    """Return the clock in seconds: CPU time of the process with one thread, else wall time."""
    return time.process_time() if threads() == 1 else time.perf_counter()


def make_call(engine: str, module: Any, args: tuple[Any, ...], train: bool) -> Callable[[], Any]:
    """Return a call of a module by one engine. The results of a training step are the gradients."""
    import torch

    from tinyexplore.frontends.torch import tinyexplore

    step = module
    if engine != "eager":
        step = torch.compile(module, backend="inductor" if engine == "inductor" else tinyexplore, dynamic=False)

    def infer() -> list[Any]:
        with torch.no_grad():
            return [step(*args)]

    def learn() -> list[Any]:
        for parameter in module.parameters():
            parameter.grad = None
        step(*args).square().mean().backward()
        return [parameter.grad for parameter in module.parameters() if parameter.grad is not None]

    return learn if train else infer


def largest_difference(actual: list[Any], expected: list[Any]) -> float:
    """Return the largest difference as a share of the largest value."""
    largest = max(float(value.abs().max()) for value in expected)
    return max(float((a - b).abs().max()) for a, b in zip(actual, expected, strict=True)) / max(largest, 1e-30)


def call_until_idle(call: Callable[[], Any], spinning: float = SPINNING) -> None:
    """Call `call` untimed for `spinning` seconds.

    Idle threads of the previous engine spin that long on its cores.
    """
    ends = time.perf_counter() + spinning
    while time.perf_counter() < ends:
        call()


def measure(name: str, train: bool) -> dict[str, Any]:
    """Return the times of one program in seconds."""
    import torch

    from bench.torch_programs import PROGRAMS

    torch._dynamo.reset()
    torch.manual_seed(0)
    module, args = PROGRAMS[name]()
    module.train(train)
    calls, first, results = {}, {}, {}
    with torch._dynamo.config.patch(allow_rnn=True):
        for engine in ENGINES:
            began = time.perf_counter()
            calls[engine] = make_call(engine, copy.deepcopy(module), args, train)
            results[engine] = [value.detach().clone() for value in calls[engine]()]
            first[engine] = time.perf_counter() - began
        for call in calls.values():
            for _ in range(3):
                call()
        times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        ends = time.perf_counter() + SECONDS * len(ENGINES)
        while len(times["eager"]) < 5 or (time.perf_counter() < ends and len(times["eager"]) < MAX_ROUNDS):
            for engine, call in calls.items():
                call_until_idle(call)
                began = clock_seconds()
                call()
                times[engine].append(clock_seconds() - began)
    row: dict[str, Any] = {"name": name, "train": train, "turns": len(times["eager"]), "date": str(date.today())}
    row["threads"] = threads()
    for engine in ENGINES:
        ordered = sorted(times[engine])
        row[engine] = {
            "first": first[engine],
            "median": statistics.median(ordered),
            "low": ordered[len(ordered) // 4],
            "high": ordered[3 * len(ordered) // 4],
        }
    row["error"] = largest_difference(results["tinyexplore"], results["eager"])
    return row


def ratio(row: dict[str, Any]) -> float:
    """Return tinyexplore's time over that of the faster of the other two."""
    return float(row["tinyexplore"]["median"] / min(row["eager"]["median"], row["inductor"]["median"]))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table, with a summary."""
    lines = [
        "| program | eager, ms | Inductor, ms | tinyexplore, ms | ratio to the faster | first call, s: Inductor |"
        " tinyexplore | largest difference |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        ms = [
            f"{row[engine]['median'] * 1e3:.2f} ({row[engine]['low'] * 1e3:.2f} to {row[engine]['high'] * 1e3:.2f})"
            for engine in ENGINES
        ]
        lines.append(
            f"| {row['name']} | {' | '.join(ms)} | {ratio(row):.2f} | {row['inductor']['first']:.1f} |"
            f" {row['tinyexplore']['first']:.1f} | {row['error']:.0e} |"
        )
    ratios = [ratio(row) for row in rows]
    within, beyond = sum(engine <= AIM for engine in ratios), sum(engine > LIMIT for engine in ratios)
    lines += ["", f"{within} of {len(rows)} within {AIM}× of the faster one; {beyond} above {LIMIT:g}×."]
    return "\n".join(lines)


def write_rows(rows: list[dict[str, Any]]) -> None:
    """Add rows to the file of all rows, and write the page."""
    import torch

    from bench.torch_programs import PROGRAMS

    path = FOLDER / "torch.json"
    rows_of_file = json.loads(path.read_text())["rows"] if path.is_file() else []
    rows_of_file = [
        row for row in rows_of_file if row["threads"] == threads()
    ]  # rows of other settings are not comparable
    merged = {(row["name"], row["train"]): row for row in [*rows_of_file, *rows]}
    order = [merged[name, train] for train in (False, True) for name in PROGRAMS if (name, train) in merged]
    path.write_text(json.dumps({"cpu": _cpu_name(), "rows": order}, indent=1) + "\n", encoding="utf-8")
    text = (
        "# Programs of PyTorch beside eager and Inductor\n\n"
        'This page answers: how fast are programs of PyTorch under `torch.compile(backend="tinyexplore")`?\n\n'
        "Written by `python -m bench.torch_models --write`. `bench/torch_programs.py` has the programs.\n"
        "Weights are random. A later call is a median, with the quartiles; the samples are interleaved.\n"
        "Each turn begins with untimed calls for 10 ms, until the threads of the engine before stop spinning.\n"
        "A first call includes compilation; caches on disk may have kernels of both compilers.\n\n"
        f"- dates: {', '.join(sorted({row['date'] for row in order}))}\n- cpu: {_cpu_name()}, {os.cpu_count()} cores\n"
        f"- clock of later calls: {CLOCKS[threads() == 1]}\n"
        f"- peer: PyTorch {torch.__version__}, eager and Inductor\n\n"
    )
    for title, train in (("One call", False), ("A training step: forward and backward", True)):
        group = [row for row in order if row["train"] is train]
        if group:
            text += f"## {title}\n\n{table(group)}\n\n"
    (FOLDER / "torch.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only programs whose name has one of these")
    parser.add_argument("--train", action="store_true", help="a training step")
    parser.add_argument("--cpu", action="store_true", help="time of one thread on the CPU")
    parser.add_argument("--write", action="store_true", help="write torch.json and torch.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with Context(THREADS=1 if options.cpu else config().THREADS):
        _measure_all(options)


def _measure_all(options: argparse.Namespace) -> None:
    """Measure the programs that the command line names."""
    import torch

    from bench.torch_programs import PROGRAMS

    torch.set_num_threads(threads())
    rows = []
    for name in PROGRAMS:
        if not options.words or any(word.lower() in name.lower() for word in options.words):
            rows.append(measure(name, options.train))
            row = rows[-1]
            ms = ", ".join([f"{one} {row[one]['median'] * 1e3:.3f} ms" for one in ENGINES])
            print(f"{name}: {ms}, ratio {ratio(row):.2f}, error {row['error']:.0e}", flush=True)
            if options.write:
                write_rows(rows)
    print(table(rows))


if __name__ == "__main__":
    main()
