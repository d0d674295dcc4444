"""Compares every operation that PyTorch also has, on generated shapes, dtypes, axes and arguments.

    python -m tests.torch                           the whole table: LLVM, CLANG and PYTHON, 20 examples a row on each
    python -m tests.torch --only conv2d --examples 200 --device LLVM
    python -m tests.torch --second --device LLVM    second derivatives, against PyTorch's double backward

Needs PyTorch (`pip install '.[test,torch]'`), which is why it is not part of `make test`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded

from tests.torch.drawing import drawn
from tinyexplore import Device


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torch", description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=20, help="of each row, on each device")
    parser.add_argument("--seed", type=int, default=0, help="other examples")
    parser.add_argument("--device", action="append", help="may be given several times")
    parser.add_argument("--only", action="append", help="rows that cover this name")
    parser.add_argument("--second", action="store_true", help="compare second derivatives instead")
    asked = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: nothing was compared. Try: pip install '.[test,torch]'", file=sys.stderr)
        return 2
    from tests.torch import coverage, elementwise, further, moving, network, reducing  # noqa: F401 (the rows)
    from tests.torch.rows import ROWS

    if missing := coverage.missing(ROWS):
        print("names of the API that have neither a row nor a reason: " + ", ".join(missing))
        return 1
    rows = [row for row in ROWS if not asked.only or set(asked.only) & set(row.names)]
    wrong = 0
    for device in asked.device or ("LLVM", "CLANG", "PYTHON"):
        began = time.perf_counter()
        tried, bad = try_all(rows, device, asked.examples, asked.seed, asked.second)
        wrong += bad
        seconds = time.perf_counter() - began
        print(f"{device}: {tried} examples of {len(rows)} rows in {seconds:.0f} s, {bad} rows differ", flush=True)
    return 1 if wrong else 0


def try_all(rows: Any, device: str, examples: int, seed: int, second: bool = False) -> tuple[int, int]:
    """How many examples were tried, and how many rows had one that differs (each is printed, as small as it gets)."""
    Device.DEFAULT = device
    warnings.simplefilter("ignore")  # NumPy's and PyTorch's about overflow
    tried = bad = 0
    for row in rows:
        count, wrong = try_row(row, device, examples, seed, second)
        tried += count
        if wrong:
            bad += 1
            print(f"--- {row.name} on {device}: {wrong}", flush=True)
    return tried, bad


def try_row(row: Any, device: str, examples: int, seed: int, second: bool = False) -> tuple[int, str]:
    """How many examples were tried, and what is wrong with the smallest that differs."""
    from tests.torch.compare import run, run_again

    tried = 0

    @seeded(seed)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(drawn(row.inputs))
    def check(found: tuple[Any, ...]) -> None:
        nonlocal tried
        tried += 1
        (run_again if second else run)(row, found, device)

    try:
        check()
    except Exception as error:
        return tried, "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
    return tried, ""


if __name__ == "__main__":
    sys.exit(main())
