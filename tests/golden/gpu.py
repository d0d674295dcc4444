"""python -m tests.golden.gpu [--update]

The texts of a fixed set of kernels in every language of GPUs, and as the LLVM IR that PTX and AMDGCN are made of:
compared with the golden files, or written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from tests.golden.record import Sections
from tests.golden.texts import main
from tinyexplore import Tensor
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, apply_opt
from tinyexplore.renderer import RenderError
from tinyexplore.renderer.gpu import GPU_LANGUAGES
from tinyexplore.renderer.llvm.gpu import GPUIRRenderer
from tinyexplore.target import GPUS
from tinyexplore.util import Context

REFUSED = "RenderError: "
TARGETS = {GPUS[name].language: name for name in ("opencl", "sm_80", "gfx90a", "metal", "webgpu")}
IR_TARGETS = {"ptx-ir": "sm_80", "amdgcn-ir": "gfx90a"}
TARGETS |= IR_TARGETS
TEXTS = (*GPU_LANGUAGES, *IR_TARGETS)


def x(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(np.zeros(shape, dtype))


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (x(1000) * 2 + 1).exp(),
    "half floats": lambda: x(64, 32, dtype="float16") * x(64, 32, dtype="float16"),
    "reduce": lambda: x(8, 4096).sum(1),
    "matmul": lambda: x(256, 128) @ x(128, 256),
    "staged matmul": lambda: x(50, 40) @ x(40, 60),
    "double-buffered matmul": lambda: x(64, 64) @ x(64, 64),
    "matmul of halves": lambda: x(64, 32, dtype="float16") @ x(32, 64, dtype="float16"),
    "the same without tensor cores": lambda: x(64, 32, dtype="float16") @ x(32, 64, dtype="float16"),
    "softmax": lambda: x(16, 512).softmax(),
    "convolution": lambda: x(1, 4, 16, 16).conv2d(x(8, 4, 3, 3), padding=1),
    "gather": lambda: x(100, 16)[x(40, dtype="int32")],
}
OPTS = {
    "staged matmul": [(OptOps.LOCAL, 0, 8), (OptOps.LOCAL, 1, 16), (OptOps.UPCAST, 0, 2), (OptOps.STAGE, 2, 8)],
    "double-buffered matmul": [
        *((OptOps.UPCAST, axis, 4) for axis in (0, 1)),
        *((OptOps.LOCAL, axis, 8) for axis in (0, 1)),
        (OptOps.STAGE, 2, 16),
        (OptOps.PIPELINE, 2, 2),
    ],
    "matmul": [(OptOps.UPCAST, 0, 4), (OptOps.UPCAST, 1, 4), (OptOps.LOCAL, 0, 8), (OptOps.LOCAL, 1, 16)],
}


def kernels(name: str, target: str) -> list[Kernel]:
    """Those of a program, with the opts that they get (of a matmul: those of a larger one)."""
    with Context(TARGET=target, DEVICE="LLVM", TC=0 if "without" in name else 1):
        items = create_schedule([PROGRAMS[name]().lazydata])
        found = []
        for item in items:
            kernel = Kernel.of(item.ast, Device["LLVM"].target) if item.ast is not None else None
            if kernel is None:
                continue
            if name in OPTS:
                for opt in OPTS[name]:
                    kernel = apply_opt(kernel, Opt(*opt))
                found.append(kernel)
            else:
                found.append(apply_heuristics(kernel))
    return found


def made(language: str) -> Sections:
    """The text of every kernel in this language, one of TEXTS."""
    found: Sections = {}
    target = TARGETS[language]
    for name in PROGRAMS:
        for number, kernel in enumerate(kernels(name, target), 1):
            with Context(TARGET=target, SPEC=1):
                try:
                    of_device = Device["LLVM"]
                    renderer = GPUIRRenderer(of_device.target) if language in IR_TARGETS else of_device.renderer
                    text = renderer.render(kernel.name, lower(kernel)).source.rstrip()
                except RenderError as error:  # of a type that the language has not
                    text = f"{REFUSED}{error}"
            found[f"{name} · {number} {kernel.name}"] = text
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "tests.golden.gpu", TARGETS, made))
