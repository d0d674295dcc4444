"""The GPU device (OpenCL): what an interrupt leaves, and integers that wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.programs import GPUS
from tests.support.kernels import compile_all
from tinyexplore import Tensor
from tinyexplore.device import Buffer
from tinyexplore.engine import schedule


def test_a_kernel_that_was_interrupted_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hears of the interrupt may put its memory right: nobody may write there afterwards."""
    if "GPU" not in GPUS:
        pytest.skip("GPU: no OpenCL driver on this machine")
    size = 640
    x = Tensor(np.ones((size, size), np.float32), device="GPU").contiguous().realize()
    (item,) = schedule([(x @ x).lazydata])
    (runner,) = compile_all([item])
    assert runner is not None
    given = [x.lazydata.base.buffer, Buffer("GPU", size * size, x.dtype)]
    out, *others = (given[1] if place in runner.spec.writes else given[0] for place in range(runner.spec.n_buffers))
    cl = runner.program.opencl.cl
    enqueue = cl.enqueue_nd_range_kernel

    def interrupted(*args: Any) -> None:
        enqueue(*args)
        raise KeyboardInterrupt

    run = runner.program.bind([out, *others])
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(0, 0)
    content = bytes(out.copyout())
    assert np.frombuffer(content, np.float32).tolist() == [float(size)] * size * size


def test_integers_wrap_as_a_compiler_of_c_may_not_know() -> None:
    """It may take -x or x + 1 of a signed int for what it would be without a limit, and leave a comparison out."""
    if "GPU" not in GPUS:
        pytest.skip("GPU: no OpenCL driver on this machine")
    for dtype in (np.int32, np.int64):
        limits = np.iinfo(dtype)
        x = np.array([limits.min, limits.max, -1, 5], dtype)
        t = Tensor(x, device="GPU")
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal((abs(t) % 9).numpy(), np.abs(x) % 9)
            np.testing.assert_array_equal((t + 1 > t).numpy(), x + dtype(1) > x)
            np.testing.assert_array_equal((t * t < 0).numpy(), x * x < 0)
