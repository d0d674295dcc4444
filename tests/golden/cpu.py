"""python -m tests.golden.cpu [--update]

The texts of the fixed set of kernels (`tests/golden/gpu.py`) for CPUs: C and LLVM IR for one level, and WebAssembly,
compared with the golden files, or written.
"""

from __future__ import annotations

import sys

from tests.golden.__main__ import differences, path_of
from tests.golden.gpu import PROGRAMS
from tests.golden.record import Sections, read, written
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.explore.comparing.languages import renderer_of
from tinyexplore.kernel import Kernel, hand_coded
from tinyexplore.schedule import create_schedule
from tinyexplore.util import Context

LEVEL = "x86-64-v3,threads=4,l1=32K,l2=512K"
TARGETS = {"c": LEVEL, "llvm": LEVEL, "wasm": "wasm32"}
NAMES = ("elementwise", "reduce", "matmul", "softmax", "convolution", "gather")


def made(language: str) -> Sections:
    """The text of every kernel in this language."""
    found: Sections = {}
    with Context(TARGET=TARGETS[language], DEVICE="LLVM", SPEC=1):
        target = Device["LLVM"].target
        for name in NAMES:
            for number, item in enumerate(create_schedule([PROGRAMS[name]().lazydata]), 1):
                if item.ast is not None:
                    kernel = hand_coded(Kernel.of(item.ast, target))
                    text = renderer_of(language, target).render(kernel.name, lower(kernel)).source.rstrip()
                    found[f"{name} · {number} {kernel.name}"] = text
    return found


def head(language: str) -> str:
    return f"Kernels for TARGET={TARGETS[language]}; made by `python -m tests.golden.cpu --update`."


def main(arguments: list[str]) -> int:
    """Exit status 1 where something differs and is not updated."""
    count = 0
    for language in TARGETS:
        after = made(language)
        before = read(path_of(language)) if path_of(language).exists() else {}
        for difference in differences(before, after):
            count += 1
            print(f"--- {language}\n{difference}\n")
        if "--update" in arguments:
            path_of(language).write_text(written(head(language), after), encoding="utf-8")
    print(f"{len(TARGETS)} languages: {f'{count} sections differ' if count else 'all equal'}")
    return 1 if count and "--update" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
