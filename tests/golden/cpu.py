"""python -m tests.golden.cpu [--update]

The texts of the fixed set of kernels (`tests/golden/gpu.py`) for CPUs: C, OpenCL C and LLVM IR for one level, and
WebAssembly, compared with the golden files, or written.
"""

from __future__ import annotations

import sys

from tests.golden.gpu import PROGRAMS
from tests.golden.record import Sections
from tests.golden.texts import main
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.engine import create_schedule
from tinyexplore.explore.analysis.comparisons.languages import renderer_of
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.util import Context

LEVEL = "x86-64-v3,threads=4,l1=32K,l2=512K"
TARGETS = {"c": LEVEL, "llvm": LEVEL, "opencl-cpu": LEVEL, "wasm": "wasm32"}
NAMES = ("elementwise", "reduce", "matmul", "softmax", "convolution", "gather")


def made(language: str) -> Sections:
    """The text of every kernel in this language."""
    found: Sections = {}
    with Context(TARGET=TARGETS[language], DEVICE="LLVM", SPEC=1):
        target = Device["LLVM"].target
        for name in NAMES:
            for number, item in enumerate(create_schedule([PROGRAMS[name]().lazydata]), 1):
                if item.ast is not None:
                    kernel = apply_heuristics(Kernel.of(item.ast, target))
                    text = (
                        renderer_of(language.partition("-")[0], target)
                        .render(kernel.name, lower(kernel))
                        .source.rstrip()
                    )
                    found[f"{name} · {number} {kernel.name}"] = text
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "tests.golden.cpu", TARGETS, made))
