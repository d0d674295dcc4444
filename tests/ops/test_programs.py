"""Part of the random programs; `python -m tests.ops.programs 20000` runs more."""

from __future__ import annotations

import pytest

from tests.backends.programs import GPUS, OPENCL_CPUS, under
from tests.ops.program import Program
from tests.ops.programs import NAMES, check, is_wrong
from tests.ops.support import HOW

COUNTS = {"LLVM": 25, "CLANG": 4, "PYTHON": 40, "WASM": 12, "GPU for opencl": 1, "GPU": 1, "WEBGPU": 4}


@pytest.mark.parametrize("device", [how for how in (*HOW, "WASM", *GPUS, *OPENCL_CPUS) if how in COUNTS])
def test_random_programs_agree_with_numpy(device: str) -> None:
    first = 1_000_000  # seeds of their own: a long run starts at 0
    head, within = under(device)
    with within:
        found = [(seed, check(seed, head)) for seed in range(first, first + COUNTS[device])]
    assert [(seed, said) for seed, said in found if is_wrong(said, head)] == []
    assert any(said is None for _, said in found)


def test_wide_programs_agree_with_numpy() -> None:
    wrong = [(seed, check(seed, "LLVM", wide=True)) for seed in range(2_000_000, 2_000_005)]
    assert [(seed, said) for seed, said in wrong if said is not None] == []


def test_programs_are_repeatable_and_reach_every_step() -> None:
    steps: list[list[str]] = []
    for _ in range(2):
        program = Program(7, "LLVM")
        program.run()
        steps.append(program.steps)
    assert steps[0] == steps[1] and 5 <= len(steps[0]) <= 30
    assert len(NAMES) >= 100


@pytest.mark.parametrize("seed", [910220, 910309, 930056, 950006])
def test_an_int_next_to_an_index_list_removes_its_axis_first(seed: int) -> None:
    """NumPy moves the axis of both to the front, PyTorch and this package do not: programs in which that happens."""
    assert check(seed, "LLVM") is None
