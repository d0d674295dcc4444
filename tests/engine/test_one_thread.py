"""Without new threads, one thread does all work: in a browser's Python, or at interpreter exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tinyexplore
from tests.support.node import need_node
from tests.support.patience import seconds

ROOT = Path(tinyexplore.__file__).parents[1]
PYODIDE = ROOT / "widgets" / "node_modules" / "pyodide"
PROGRAM = "tests.engine.one_thread"


def printed_by(*command: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "DEVICE"}
    env |= {"PYTHONPATH": str(ROOT), "CACHELEVEL": "0"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds(300))
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def with_threads(device: str) -> str:
    """The output of the program with threads."""
    return printed_by(sys.executable, "-m", PROGRAM, device)


def one_by_one(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from one_by_one(part)
    else:
        yield value


@pytest.mark.parametrize("device", ["PYTHON", "LLVM"])
def test_without_threads_all_values_kernels_and_firings_are_the_same(device: str) -> None:
    expected = json.loads(with_threads(device))
    found = json.loads(printed_by(sys.executable, "-m", PROGRAM, device, "--no-threads"))
    assert expected.pop("threads") and not found.pop("threads")
    assert len(expected["captured"].pop("threads")) > 1 or os.cpu_count() == 1
    assert found["captured"].pop("threads") == [0]
    assert bool(expected.pop("searched")) is bool(found.pop("searched"))  # how many, the clock decides
    assert found == expected


def test_a_browsers_python_computes_trains_and_captures_as_cpython_does() -> None:
    node = need_node()
    if not PYODIDE.exists():
        lacking = f"{PYODIDE.relative_to(ROOT)} (cd widgets && npm ci)"
        if os.environ.get("TINYEXPLORE_REQUIRE_BROWSER", "") not in ("", "0"):
            pytest.fail(f"TINYEXPLORE_REQUIRE_BROWSER is set, but there is no {lacking}")
        pytest.skip(f"a browser's Python needs {lacking}")
    expected = json.loads(with_threads("PYTHON"))
    found = json.loads(printed_by(node, "tests/engine/pyodide.mjs", PROGRAM))
    assert found["device"] == "PYTHON" and not found["threads"]
    shown, seen = expected.pop("captured"), found.pop("captured")
    assert sum(seen["fired"].values()) > 50 and seen["svg"] and seen["html"]
    assert seen.pop("threads") == [0]
    assert seen == {name: shown[name] for name in seen}
    for name in ("softmax", "sort", "convolution", "losses", "losses under TinyJit", "instances"):
        values = list(one_by_one(found[name]))  # its C library's exp and log may round otherwise
        assert values == pytest.approx(list(one_by_one(expected[name])), rel=1e-5, abs=1e-7), name


AT_THE_END = """
import atexit, sys, threading, time
from tinyexplore import Tensor

def compute():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    x = Tensor.arange(6).reshape(2, 3).float()
    print((x @ x.T).softmax().argmax(1).tolist(), (Tensor.ones(500, 500).contiguous() + 1).sum().item())

if "used" in sys.argv:
    (Tensor.ones(7).contiguous() + 2).sin().tolist()
if "atexit" in sys.argv:
    atexit.register(compute)
else:
    threading.Thread(target=compute).start()
"""


@pytest.mark.parametrize("device", ["PYTHON", "LLVM"])
@pytest.mark.parametrize("used", ["used", "unused"])
@pytest.mark.parametrize("when", ["atexit", "in a thread"])
def test_results_after_the_end_of_the_main_thread_are_right(device: str, used: str, when: str) -> None:
    command = f"import os; os.environ['DEVICE'] = {device!r}\n{AT_THE_END}"
    assert printed_by(sys.executable, "-c", command, used, when) == "[1, 1] 500000.0\n"
