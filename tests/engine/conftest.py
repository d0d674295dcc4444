"""Which devices open on this machine."""

from __future__ import annotations

import shutil

import pytest

from tests.backends.programs import GPUS, OPENCL_CPUS, REQUIRED


@pytest.fixture
def device_or_leave_out(device: str) -> None:
    """CLANG needs a C compiler, GPU and WEBGPU a driver; a machine without one says so."""
    if device == "CLANG" and not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("CLANG: there is no C compiler on this machine")
    if device == "GPU" and device not in OPENCL_CPUS:
        pytest.skip("GPU with a CPU's kernels: there is no OpenCL driver for the CPU on this machine")
    if device in REQUIRED and device not in GPUS:
        pytest.skip(f"{device}: there is no driver on this machine")
