"""Programs for another architecture, run by QEMU and compared with NumPy.

python -m tests.emulated                              AArch64: the golden programs, and 200 random ones
python -m tests.emulated --target sifive-x280 --count 50
"""

from __future__ import annotations

import argparse
import sys

from tests.emulated.device import Lacking, emulated
from tests.emulated.programs import Counts, run_golden, run_random

ABSENT = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--target", default="neoverse-n1", help="the CPU to compile for, by LLVM's name")
    parser.add_argument("--count", type=int, default=200, help="random programs beside the golden ones")
    parser.add_argument("--first", type=int, default=0, help="number of the first random one")
    options = parser.parse_args()
    counts = Counts()
    try:
        with emulated(options.target) as emulator:
            run_golden(emulator, counts)
            run_random(emulator, counts, range(options.first, options.first + options.count))
    except Lacking as error:
        print(f"nothing was run: {error}")
        return ABSENT
    for name, words in counts.different:
        print(f"{name}: {words}")
    print(
        f"{options.target} under QEMU: {counts.programs} programs of {counts.kernels} kernels ran, "
        f"{len(counts.different)} differed"
    )
    return 1 if counts.different else 0


if __name__ == "__main__":
    sys.exit(main())
