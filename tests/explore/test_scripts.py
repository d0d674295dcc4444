"""A kernel as a script: it runs without this package, and computes the same result."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.patience import seconds
from tinyexplore import Tensor, Variable, cli, explore
from tinyexplore.explore import ReproducerError, reproducer
from tinyexplore.explore.tracefile import script_body
from tinyexplore.renderer import Effort
from tinyexplore.runtime.clang import FLAGS
from tinyexplore.runtime.llvm import OPTIMIZATION_LEVEL, code_level
from tinyexplore.util import Context

# what imports this package, or anything that a listed compiler does not need, fails
ALONE = """
import runpy, sys
for name in ["tinyexplore", *sys.argv[1].split(",")]:
    sys.modules[name] = None
script = sys.argv[2]
sys.argv = sys.argv[2:]
runpy.run_path(script, run_name="__main__")
"""


def run_alone(script: Path, *arguments: str, without: str = "anywidget") -> str:
    command = [sys.executable, "-I", "-c", ALONE, without, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=script.parent, timeout=seconds(120))
    assert done.returncode == 0, done.stderr
    return done.stdout


def results_of(script: Path, inputs: dict[str, np.ndarray], *arguments: str, without: str) -> np.ndarray:
    np.savez(script.parent / "inputs.npz", **inputs)
    saved = script.parent / "results.npz"
    run_alone(script, "--inputs", "inputs.npz", "--save", str(saved), "--runs", "3", *arguments, without=without)
    (found,) = np.load(saved).values()
    return found


WAYS = (pytest.param("llvm", "tinygrad", id="llvm"), pytest.param("c", "llvmlite", id="c"))
GENERATOR = np.random.default_rng(1)
X, W = (GENERATOR.standard_normal((48, 48)).astype(np.float32) for _ in range(2))
INDEX = GENERATOR.integers(0, 48, 30).astype(np.int32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


CASES: list[tuple[str, Callable[..., Tensor], tuple[np.ndarray, ...], np.ndarray]] = [
    ("matmul", lambda x, w: x @ w, (X, W), X @ W),
    ("softmax", lambda x: x.softmax(), (X,), softmax(X)),
    ("gather", lambda x, i: x[i] + 1, (X, INDEX), X[INDEX] + 1),
    ("truths", lambda x, w: x < w, (X, W), X < W),
]


@pytest.mark.parametrize(("way", "without"), WAYS)
@pytest.mark.parametrize(("title", "function", "inputs", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_script_agrees_with_numpy(title, function, inputs, expected, way, without, tmp_path):
    with Context(DEVICE="LLVM", BEAM=0, NOOPT=0):
        view = explore(function, *[Tensor(value).realize() for value in inputs], title=title, repeat=1)
    assert len(view.trace.kernels) == 1
    view.kernels[0].reproducer(tmp_path / "kernel.py")
    read = {f"data{number}": value for number, value in enumerate(inputs, 1)}
    found = results_of(tmp_path / "kernel.py", read, "--with", way, without=without)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_threads_divide_the_work_of_a_script(tmp_path):
    with Context(DEVICE="LLVM", THREADS=2, BEAM=0):
        x = np.ones((256, 256), np.float32)
        view = explore(lambda a: a @ a, Tensor(x).realize(), repeat=1)
    assert any(kind == "thread" for _, kind, _ in view.trace.kernels[0].axes)
    view.kernels[0].reproducer(tmp_path / "kernel.py")
    read = {name: x for name in ("data1",)}
    found = results_of(tmp_path / "kernel.py", read, "--threads", "2", without="anywidget")
    np.testing.assert_array_equal(found, 256.0)


def test_variables_have_the_values_of_the_capture(tmp_path):
    rows = Variable("rows", 1, 10).bind(3)
    x = np.arange(640, dtype=np.float32).reshape(10, 64)
    with Context(DEVICE="LLVM"):
        view = explore(lambda a: (a[:rows] * 2).sum(1), Tensor(x).realize(), repeat=1)
    script = view.kernels[0].reproducer(tmp_path / "kernel.py")
    assert "\nrows = 3  # bound" in script
    found = results_of(tmp_path / "kernel.py", {"data1": x}, without="anywidget")
    np.testing.assert_allclose(found[:3], (x[:3] * 2).sum(1))
    np.testing.assert_array_equal(found[3:], 0)


def test_a_script_prints_the_kernel_and_its_time(tmp_path):
    with Context(DEVICE="CLANG"):
        view = explore(lambda: Tensor.ones(8).contiguous() + 1, title='a "title"', repeat=1)
    view.kernels[len(view.trace.kernels) - 1].reproducer(tmp_path / "kernel.py")
    told = run_alone(tmp_path / "kernel.py", "--runs", "5").splitlines()
    assert told[0] == f"{view.trace.kernels[-1].name}, by c, 1 thread"
    assert told[1].startswith("  data0: float32[8], sum ")
    assert "us median of 5 runs, quartiles" in told[-2]


def test_kernels_without_a_script_are_refused():
    with Context(DEVICE="LLVM"):
        trace = explore(lambda: Tensor.ones(8).contiguous().to("LLVM:1"), repeat=1).trace
    copy = next(kernel for kernel in trace.kernels if kernel.name == "copy")
    with pytest.raises(ReproducerError, match="a copy or was not"):
        reproducer(trace, copy)
    with pytest.raises(IndexError, match="numbered from 0"):
        reproducer(trace, 99)


def test_the_command_writes_a_script(tmp_path, capsys):
    with Context(DEVICE="CLANG"):
        trace = str(explore(lambda: Tensor.ones(8).contiguous() + 1, repeat=1).save(tmp_path / "trace.json.gz"))
    out = tmp_path / "kernel.py"
    assert cli.main(["reproduce", trace, "0", str(out)]) == 0
    assert "by c, 1 thread" in run_alone(out)
    assert cli.main(["reproduce", trace, "7", str(out)]) == 2
    assert "kernel 7: the trace has" in capsys.readouterr().err


def test_the_script_compiles_as_the_devices_do():
    for effort in Effort:
        assert script_body.LLVM_LEVELS[effort.value] == (OPTIMIZATION_LEVEL if effort is Effort.FULL else 0)
        assert script_body.CODE[effort.value] == code_level(effort)
    assert tuple(script_body.C_FLAGS) == FLAGS
