"""A captured TinyJit can be pickled: kernels, weights and state, for a process without its function."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.patience import seconds
from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.jit import JitError


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def named(x: Tensor) -> Tensor:
    return x * 2 + 1


def test_another_process_continues_from_the_pickle(tmp_path: Path) -> None:
    layer, other = nn.Linear(8, 16), nn.Linear(16, 4)
    total = Tensor.zeros(3, 4).contiguous().realize(*nn.state.get_parameters([layer, other]))

    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = layer(x).relu().contiguous()
        total.assign(total + other(hidden).softmax().contiguous())
        return total, hidden.sum(axis=1)

    for seed in range(3):
        step(Tensor(numbers(3, 8, seed=seed)))
    other.weight.assign(other.weight * 2).realize()  # after the capture: followed
    path = tmp_path / "step.pickle"
    path.write_bytes(pickle.dumps(step))
    inputs = [numbers(3, 8, seed=seed) for seed in range(10, 13)]
    np.savez(tmp_path / "inputs.npz", *inputs)
    code = """
import pickle, sys
import numpy as np
from tinyexplore import Tensor
step = pickle.load(open(sys.argv[1] + "/step.pickle", "rb"))
given = np.load(sys.argv[1] + "/inputs.npz")
found = [[result.numpy() for result in step(Tensor(given[name]))] for name in given.files]
np.savez(sys.argv[1] + "/found.npz", *[result for results in found for result in results])
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=seconds(120)
    )
    assert result.returncode == 0, result.stderr
    expected = [result.numpy() for given in inputs for result in step(Tensor(given))]
    found = np.load(tmp_path / "found.npz")
    for name, wanted in zip(found.files, expected):
        np.testing.assert_array_equal(found[name], wanted)


def test_a_pickled_jit_shares_memory_again_and_checks_its_arguments() -> None:
    jit = TinyJit(lambda x: (((x.flip(0) + 1).contiguous().flip(0) * 2).contiguous().flip(0) + 3).contiguous())
    x = Tensor(numbers(1000))
    for _ in range(3):
        expected = jit(x).numpy()
    back = pickle.loads(pickle.dumps(jit))
    assert [plan.describe() for plan in back.captured.memory] == [plan.describe() for plan in jit.captured.memory]
    np.testing.assert_array_equal(back(x).numpy(), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(back))(x).numpy(), expected)
    with pytest.raises(JitError, match=r"captured as \(1000,\)"):
        back(Tensor(numbers(5)))
    back.reset()
    with pytest.raises(JitError, match="without its function"):
        back(x)


def test_a_named_function_is_pickled_with_its_jit() -> None:
    jit = TinyJit(named)
    before = pickle.loads(pickle.dumps(jit))
    for _ in range(3):
        assert jit(Tensor([1.0])).tolist() == before(Tensor([1.0])).tolist() == [3.0]
    back = pickle.loads(pickle.dumps(jit))
    assert back.captured is not None and back(Tensor([4.0])).tolist() == [9.0]
    back.reset()
    assert back(Tensor([[5.0]])).tolist() == [[11.0]]
    assert copy.deepcopy(jit).captured is None
