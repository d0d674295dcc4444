"""One module uses CPython's internals, and the engine computes the same results without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.patience import seconds
from tinyexplore import Context
from tinyexplore.util.interpreter import TRICKS

PACKAGE = Path(__file__).parents[2] / "tinyexplore"
ONE_PLACE = PACKAGE / "util" / "interpreter.py"
CAPSULES = PACKAGE / "tensor" / "exchange.py"  # DLPack hands memory over in capsules, which only the C API opens
INSIDE = re.compile(
    r"getrefcount|get_referrers|get_referents|get_objects|setswitchinterval|\bgc\.|\bimport gc\b|from gc import"
    r"|ctypes\.pythonapi|py_object|\bid\([^)]*\)\s*[-+]\s*\d|string_at\(id\(|__basicsize__|__dictoffset__|_ctypes\b"
    r"|\._handle\b|ffi\.lib\b|\b\w+\._dispose\("
)


def test_one_module_depends_on_cpython_internals() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in (ONE_PLACE, CAPSULES)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if INSIDE.search(line)
    ]
    assert found == []


def test_of_the_interpreter_dlpack_needs_capsules_alone() -> None:
    text = CAPSULES.read_text()
    assert set(re.findall(r"pythonapi\.(\w+?)_", text)) == {"PyCapsule"}


def test_the_search_finds_such_a_line() -> None:
    assert len([line for line in ONE_PLACE.read_text().splitlines() if INSIDE.search(line)]) > 20


PROGRAM = """
    import gc, json, sys
    asked = []
    if sys.argv[1] == "0":
        sys.setswitchinterval = gc.disable = gc.freeze = lambda *given: asked.append(given)
        gc.get_referrers = sys.getrefcount = lambda *given: asked.append(given)
    from tinyexplore import Tensor, TinyJit
    from tinyexplore.nn.optim import SGD

    weight = Tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    optimizer = SGD([weight], lr=0.125)
    cache = Tensor.zeros(4).contiguous().realize()

    @TinyJit
    def step(x):
        with Tensor.train():
            optimizer.zero_grad()
            loss = ((x @ weight).relu() ** 2).sum()
            loss.backward()
            optimizer.step()
        cache[1:3] = x[0]
        return loss.realize(), cache.realize()

    found = [[one.tolist() for one in step(Tensor([[n / 4, 1.0]]))] for n in range(5)]
    view = cache[:2]
    cache[0] = 9.0
    assert asked == []
    print(json.dumps([found, weight.tolist(), view.tolist(), cache.tolist()]))
"""


def printed(tricks: str) -> str:
    """The output of PROGRAM in a process with or without tricks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM), tricks],
        capture_output=True,
        text=True,
        timeout=seconds(300),
        env={**os.environ, "INTERPRETER_TRICKS": tricks},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_are_the_same_without_tricks() -> None:
    assert printed("0") == printed("1")


def test_tricks_apply_to_the_whole_process() -> None:
    with pytest.raises(ValueError, match="of the whole process"):
        Context(INTERPRETER_TRICKS=0 if TRICKS else 1)
