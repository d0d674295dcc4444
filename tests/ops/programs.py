"""Random programs of 5 to 30 tensor operations against NumPy.

    python -m tests.ops.programs 20000 --device LLVM --first 0

tries this number of programs and prints the seed of each that differs. One that asks for what its device lacks
(`tests/support/limits.py`) gets the error that says so, and is counted.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tests.ops import more_steps  # noqa: F401 (enters its steps)
from tests.ops.program import STEPS, Mismatch, Program
from tests.support.limits import is_declared

NAMES = sorted(STEPS)


def check(seed: int, device: str, wide: bool = False) -> str | None:
    """What is wrong with the program of `seed`; None where nothing is."""
    program = Program(seed, device, wide)
    try:
        with np.errstate(all="ignore"):  # ints that wrap are part of the matter
            program.run()
    except Mismatch as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{program.text()}"
    return None


def is_wrong(said: str | None, device: str) -> bool:
    """Whether what `check` said is anything else than that the device lacks something, which is declared."""
    return said is not None and not is_declared(device, said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--device", default="LLVM")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--wide", action="store_true", help="axes up to 100 long instead of 5")
    asked = parser.parse_args()
    bad = lacking = 0
    for seed in range(asked.first, asked.first + asked.count):
        wrong = check(seed, asked.device, asked.wide)
        lacking += wrong is not None and not is_wrong(wrong, asked.device)
        if is_wrong(wrong, asked.device):
            bad += 1
            print(f"--- seed {seed} on {asked.device}\n{wrong}", flush=True)
        if (seed + 1) % 500 == 0:
            print(f"{seed + 1 - asked.first} programs, {bad} differ", flush=True)
    print(f"{asked.count} programs on {asked.device}: {bad} differ, {lacking} ask for what it lacks")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
