"""WGSL programs run through wgpu, on whatever Vulkan driver there is (Mesa's lavapipe runs on the CPU)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.support.item_by_item import computed_by
from tinyexplore import Tensor
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.program import Launch

ITEMS = 64  # of a group that the program leaves to the runtime


@cache
def webgpu() -> Any:
    """The device of wgpu, or the test is skipped (failed, where one is required): it needs a Vulkan driver."""
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")
    wgpu = importlib.import_module("wgpu")  # loads drivers: not before a test asks
    found = [one for one in wgpu.gpu.enumerate_adapters_sync() if one.info["backend_type"] == "Vulkan"]
    if not found and os.environ.get("TINYEXPLORE_REQUIRE_VULKAN", "") not in ("", "0"):
        pytest.fail("TINYEXPLORE_REQUIRE_VULKAN is set, but there is no Vulkan driver")
    if not found:
        pytest.skip("no Vulkan driver; Debian: apt-get install mesa-vulkan-drivers")
    return found[0].request_device_sync()


def parsed(text: str) -> Any:
    """A program as naga takes it; it raises wgpu.GPUValidationError, with naga's words, where it does not."""
    return webgpu().create_shader_module(code=text)


def run(spec: ProgramSpec, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the buffers of a program hold after it ran on these."""
    device, launch = webgpu(), Launch.of(spec.uops)
    usage = importlib.import_module("wgpu").BufferUsage
    stage = {"module": parsed(spec.source), "entry_point": spec.name}
    pipeline = device.create_compute_pipeline(layout="auto", compute=stage)
    buffers = [device.create_buffer_with_data(data=one, usage=usage.STORAGE | usage.COPY_SRC) for one in arrays]
    entries = [
        {"binding": k, "resource": {"buffer": one, "offset": 0, "size": one.size}} for k, one in enumerate(buffers)
    ]
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
    grid = list(launch.sizes())
    if launch.group is None:
        grid[0] = -(-grid[0] // ITEMS)
    compute.dispatch_workgroups(*[*grid, 1, 1][:3])
    compute.end()
    device.queue.submit([encoder.finish()])
    return [np.frombuffer(device.queue.read_buffer(b), a.dtype) for b, a in zip(buffers, arrays, strict=True)]


def computed(result: Tensor, *, with_opts: bool = True) -> np.ndarray:
    """The elements of a tensor (made where TARGET=webgpu), computed by WGSL; its inputs lie in memory."""
    return computed_by(run, "webgpu", result, with_opts=with_opts)
