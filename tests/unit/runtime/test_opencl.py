"""The GPU device (OpenCL): what an interrupt leaves."""

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
