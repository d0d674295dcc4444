"""Jitted functions of Variables: several at once, results of changing shape, state, pickles, other devices, misuse."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.ops.support import HAS_COMPILER, random_array
from tests.support.patience import seconds
from tinyexplore import Context, Tensor, TinyJit, Variable
from tinyexplore.jit import JitError
from tinyexplore.lazy.lazybuffer import ShapeError

DEVICES = ["LLVM", "CLANG", "PYTHON"] if HAS_COMPILER else ["LLVM", "PYTHON"]
ROWS, COLUMNS = Variable("rows", 1, 12), Variable("columns", 2, 9)
X = random_array((12, 9), seed=1)


@pytest.mark.parametrize("device", DEVICES)
def test_several_variables_shape_several_results(device: str) -> None:
    with Context(DEVICE=device):

        @TinyJit
        def parts(x: Tensor, n: Variable, m: Variable, scale: Variable) -> dict[str, Any]:
            part = x[:n, :m]
            return {
                "whole": part * scale,
                "square": part.T @ part,
                "sizes": (n * m, n + 1),
                "rest": (x[n:, m:].sum() + Tensor.arange(m).sum(), part.reshape(-1).max()),
            }

        whole = Tensor(X)
        scale = Variable("scale", 0, 5)
        for n, m, by in ((3, 4, 2), (12, 9, 0), (1, 2, 5), (7, 9, 1), (12, 2, 3)):
            found = parts(whole, ROWS.bind(n), COLUMNS.bind(m), scale.bind(by))
            part = X[:n, :m]
            assert found["whole"].shape == (ROWS.bind(n), COLUMNS.bind(m)) and found["square"].numpy().shape == (m, m)
            assert [size.val for size in found["sizes"]] == [n * m, n + 1]
            np.testing.assert_allclose(found["whole"].numpy(), part * by, rtol=1e-5)
            np.testing.assert_allclose(found["square"].numpy(), part.T @ part, rtol=1e-4, atol=1e-5)
            rest, largest = found["rest"]
            assert rest.item() == pytest.approx(X[n:, m:].sum() + m * (m - 1) / 2, rel=1e-4, abs=1e-4)
            assert largest.item() == part.max()


def test_a_result_of_symbolic_shape_is_an_argument_of_the_next_jit() -> None:
    first = TinyJit(lambda x, n: (x[:n] * 2).realize())
    second = TinyJit(lambda y: (y - y.mean(0)).realize())
    for n in (4, 12, 1, 7):
        found = second(first(Tensor(X), ROWS.bind(n)))
        assert found.shape == (ROWS.bind(n), 9)
        np.testing.assert_allclose(found.numpy(), 2 * (X[:n] - X[:n].mean(0)), rtol=1e-4, atol=1e-5)


def test_after_reset_a_function_is_captured_with_other_variables() -> None:
    total = TinyJit(lambda x, n: x[:n].sum().realize())
    for n in (4, 5, 6):
        assert total(Tensor(X), ROWS.bind(n)).item() == pytest.approx(X[:n].sum(), rel=1e-4)
    other = Variable("other", 1, 5)
    with pytest.raises(JitError, match="Variable rows from 1 to 12, .*Variable other"):
        total(Tensor(X), other.bind(5))
    total.reset()
    for n in (4, 5, 1):
        assert total(Tensor(X), other.bind(n)).item() == pytest.approx(X[:n].sum(), rel=1e-4)
    total.reset()
    for _ in range(3):  # an int is one, too
        assert total(Tensor(X), 3).item() == pytest.approx(X[:3].sum(), rel=1e-4)


def test_values_out_of_range_raise_an_error_at_the_call() -> None:
    with pytest.raises(ValueError, match="'rows' to 13: .*1 to 12"):
        ROWS.bind(13)
    with pytest.raises(TypeError, match="'rows' to 2.0 .*need an int"):
        ROWS.bind(2.0)
    with pytest.raises(ValueError, match="no value yet"):
        ROWS.bind(3).bind(4)
    with pytest.raises(ValueError, match="0 ≤ min_val ≤ max_val"):
        Variable("backwards", 5, 2)
    total = TinyJit(lambda x, n, m: x[n:m].sum().realize())
    n, m = Variable("first", 0, 12), Variable("past", 0, 12)
    for at in (3, 4, 5):
        total(Tensor(X), n.bind(2), m.bind(at))
    with pytest.raises(JitError, match="first <= past, .*first=6, past=5"):
        total(Tensor(X), n.bind(6), m.bind(5))
    assert total(Tensor(X), n.bind(5), m.bind(5)).item() == 0
    with pytest.raises(JitError, match="Variable first from 0 to 12, .*Variable past"):
        total(Tensor(X), m.bind(5), n.bind(5))
    unbound = TinyJit(lambda x, n: x[:n].sum().realize())
    with pytest.raises(Exception, match="'rows' has no value: bind it"):
        for _ in range(2):
            unbound(Tensor(X), ROWS)


PROGRAM = """
import pickle, sys
import numpy as np
from tinyexplore import Tensor, Variable
step, cache = pickle.load(open(sys.argv[1], "rb"))
at = Variable("at", 0, 7)
assert step.captured is not None and len(step.jit_cache) == int(sys.argv[2])
expected = np.zeros((8, 3), np.float32)
expected[:3] = [[0], [1], [2]]
for place in (5, 3, 6):
    expected[place] = place
    found = step(Tensor(np.full((1, 3), place, np.float32)), at.bind(place))
    assert found.shape[0].val == place + 1
    assert np.allclose(found.numpy(), expected[: place + 1] + 1), found.numpy()
assert np.allclose(cache.numpy(), expected)
print("went on")
"""


def test_a_pickled_function_of_variables_runs_in_another_process(tmp_path: object) -> None:
    cache, at = Tensor.zeros(8, 3).contiguous().realize(), Variable("at", 0, 7)

    def put(x: Tensor, place: Variable) -> Tensor:
        cache[place : place + 1] = x
        return (cache[: place + 1] + 1).realize()

    step = TinyJit(put)
    for place in range(3):
        step(Tensor(np.full((1, 3), place, np.float32)), at.bind(place))
    path = f"{tmp_path}/step.pickle"
    with open(path, "wb") as file:
        pickle.dump((step, cache), file)
    command = [sys.executable, "-c", PROGRAM, path, str(len(step.jit_cache))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds(300))
    assert done.stdout == "went on\n", done.stderr
    again, copied = pickle.loads(pickle.dumps((step, cache)))
    found = again(Tensor.ones(1, 3).contiguous(), at.bind(4)).numpy()
    assert found.shape == (5, 3) and copied.numpy()[4].tolist() == [1, 1, 1] and cache.numpy()[4].tolist() == [0, 0, 0]


def test_a_sharded_tensor_has_sizes_that_are_numbers() -> None:
    devices = ("LLVM:0", "LLVM:1")
    parts = Tensor(X).shard(devices, axis=1)
    with pytest.raises(ShapeError, match="sharded .*rows=3.*numbers"):
        parts[: ROWS.bind(3)]
    with pytest.raises(ShapeError, match="its sizes must be numbers"):
        Tensor(X)[: ROWS.bind(3)].shard(devices)
    scaled = TinyJit(lambda x, n: (x * n + n).realize())  # as a number, each device gets it
    for n in (3, 1, 12):
        np.testing.assert_allclose(scaled(parts, ROWS.bind(n)).numpy(), X * n + n, rtol=1e-5)
