"""Published ONNX models, compared with onnxruntime: `python -m bench.onnx [WORD …] [--write]`.

For each model and both engines: the time of the first call (load and compilation included), and of a later call, timed
alternately. `--write` puts the table into docs/performance/onnx.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from bench.__main__ import _cpu_name
from bench.onnx_models import PUBLISHED, Published
from bench.torch_models import call_until_idle
from tinyexplore.frontends.onnx import load
from tinyexplore.util import config

TURNS = 15
SPINNING = 0.2  # seconds; with 0.05, the second thread of a model of 13 ms did not get a core in time
PAGE = Path(__file__).parents[1] / "docs" / "performance" / "onnx.md"


def threads() -> int:
    """Return the number of threads of both engines."""
    return config().THREADS or os.cpu_count() or 1


def measure(published: Published) -> dict[str, Any] | None:
    """Return the times of one model in seconds, or None if its package is missing."""
    import onnxruntime

    if published.file is None:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    inputs = published.inputs(np.random.default_rng(0))
    started = time.perf_counter()
    session = onnxruntime.InferenceSession(str(published.file), options)
    expected = session.run(None, inputs)
    first_other = time.perf_counter() - started
    started = time.perf_counter()
    model = load(published.file)

    def call() -> list[Any]:
        outputs = model(**inputs)
        return [output.numpy() for output in (outputs if isinstance(outputs, tuple) else (outputs,))]

    results = call()
    first = time.perf_counter() - started
    error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(results, expected))
    for _ in range(3):
        call()
    ours, others = [], []
    for _ in range(TURNS):
        for function, times in ((call, ours), (lambda: session.run(None, inputs), others)):
            call_until_idle(function, SPINNING)
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
    return {
        "name": published.name,
        "first": first,
        "first_other": first_other,
        "steady": statistics.median(ours),
        "other": statistics.median(others),
        "error": error,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| model | first call, s | onnxruntime, s | later call, ms | onnxruntime, ms | ratio | largest difference |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['name']} | {row['first']:.2f} | {row['first_other']:.2f} | {row['steady'] * 1e3:.2f} |"
            f" {row['other'] * 1e3:.2f} | {row['steady'] / row['other']:.2f} | {row['error']:.0e} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only models whose name has one of these")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    chosen = [model for model in PUBLISHED if not options.words or any(word in model.name for word in options.words)]
    rows = [row for model in chosen if (row := measure(model)) is not None]
    print(table(rows))
    if options.write:
        import onnxruntime

        PAGE.write_text(
            "# Published ONNX models beside onnxruntime\n\n"
            "This page answers: how fast are published models here, and how fast in onnxruntime?\n\n"
            "Written by `python -m bench.onnx --write`, after `make models`.\n"
            "A first call includes loading and compiling.\n"
            f"A later call is the median of {TURNS}, interleaved with onnxruntime's.\n"
            "Each turn begins with untimed calls for 200 ms, until the threads of the engine before stop spinning.\n\n"
            f"- date: {date.today()}\n- cpu: {_cpu_name()}, {threads()} threads\n"
            f"- peer: onnxruntime {onnxruntime.__version__}\n\n{table(rows)}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
