"""The work-groups that the heuristics choose for a GPU, and their reasons."""

from __future__ import annotations

import pytest

from tests.graphs import matmul, softmax
from tests.support.kernels import kernel_of, unread
from tinyexplore.kernel import apply_heuristics
from tinyexplore.kernel.heuristics.work_groups import sharing_items
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.gpu import gpu_target
from tinyexplore.target import GPUS
from tinyexplore.uop import Ops

TARGET = gpu_target("TEST", GPUS["opencl"], "opencl", "opencl")


def test_the_group_size_of_a_reduction_minimizes_the_steps() -> None:
    """Their own part, what is left over, and one for each part when they meet."""
    assert [sharing_items(steps, 32, 256) for steps in (64, 512, 4096, 4097, 15625)] == [32, 32, 64, 64, 128]


@pytest.mark.parametrize(
    "node, opts",
    [
        (unread(1000).alu(Ops.NEG), ["LOCAL(0, 256)"]),
        (unread(8, 4096).reduce(Ops.ADD, (1,)), ["GROUP(1, 64)"]),
        (unread(8192, 16).reduce(Ops.ADD, (1,)), ["LOCAL(0, 256)"]),
        (softmax(unread(16, 512)), ["GROUP(4, 32)", "GROUP(2, 32)", "LOCAL(1, 32)"]),
        (
            matmul(unread(256, 31), unread(31, 256)),
            ["UPCAST(0, 4)", "UPCAST(1, 4)", "LOCAL(0, 16)", "LOCAL(1, 16)"],
        ),
        (
            matmul(unread(256, 128), unread(128, 256)),
            ["UPCAST(0, 4)", "UPCAST(1, 4)", "LOCAL(0, 16)", "LOCAL(1, 16)", "STAGE(2, 16)"],
        ),
    ],
    ids=["elementwise", "long rows", "many rows", "softmax", "short matmul", "matmul"],
)
def test_a_grid_is_divided_and_a_long_reduction_shared(node: LazyBuffer, opts: list[str]) -> None:
    assert [str(opt) for opt in apply_heuristics(kernel_of(node, TARGET)).applied] == opts
