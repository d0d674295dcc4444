"""Tensors computed kernel by kernel, by any executor of GPU programs; a GPU is not needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyexplore import Tensor
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.engine import create_schedule
from tinyexplore.explore.recording.captured_kernel import buffer_types
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.renderer import ProgramSpec
from tinyexplore.util import Context

Run = Callable[[ProgramSpec, Sequence[np.ndarray]], list[np.ndarray]]  # what the buffers of a program hold after it ran


def computed_by(run: Run, target: str, result: Tensor, *, with_opts: bool = True) -> np.ndarray:
    """Compute a tensor for TARGET `target` with `run`, kernel by kernel, and return its elements."""
    known: dict[Any, np.ndarray] = {}
    with Context(TARGET=target, DEVICE="LLVM"):
        items = create_schedule([result.lazydata])
        for item in items:
            kernel = Kernel.of(item.ast, Device["LLVM"].target)
            kernel = apply_heuristics(kernel) if with_opts else kernel
            spec = Device["LLVM"].renderer.render(kernel.name, lower(kernel))
            arrays = []
            for buffer, (dtype, size) in zip(item.buffers, buffer_types(spec.uops), strict=True):
                if buffer not in known:
                    content = bytes(buffer.copyout()) if buffer.is_allocated else bytes(size * dtype.itemsize)
                    known[buffer] = np.frombuffer(content, dtype.fmt)
                arrays.append(known[buffer])
            known.update(zip(item.buffers, run(spec, arrays), strict=True))
    return known[items[-1].buffers[0]]
