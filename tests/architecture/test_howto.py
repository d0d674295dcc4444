"""The Python examples of `docs/howto.md` run."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.graphs import from_numpy, numbers
from tests.support.kernels import kernel_of
from tests.support.patience import seconds
from tinyexplore import Tensor, explore
from tinyexplore.device import Device
from tinyexplore.explore.whatif.commands import set_opts
from tinyexplore.kernel import Opt, OptOps
from tinyexplore.kernel.heuristics import heuristic
from tinyexplore.uop import Ops, PatternMatcher, UOp, algebra
from tinyexplore.uop.rewrite import graph_rewrite


def examples(repository: Path, heading: str) -> list[str]:
    """The Python examples under a heading of the second level."""
    page = (repository / "docs" / "howto.md").read_text("utf-8")
    (part,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    return [dedent(text) for text in re.findall(r"^ *```py\n(.*?)^ *```", part, re.DOTALL | re.MULTILINE)]


def run(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names of `names` and of the example, after it ran."""
    everything = dict(names)
    exec(compile(code, "docs/howto.md", "exec"), everything)
    return everything


def test_the_law_holds_under_its_condition(repository: Path) -> None:
    (code,) = examples(repository, "A rule")
    names = run(code, vars(algebra))
    table = PatternMatcher((names["equal_self"],))
    number = kernel_of(from_numpy(numbers(5, 37)).alu(Ops.EXP)).output_axes[0]
    assert graph_rewrite(UOp(Ops.CMPEQ, algebra.dtypes.bool, (number, number)), table).arg is True
    real = UOp(Ops.CAST, algebra.dtypes.float32, (number,))
    assert graph_rewrite(UOp(Ops.CMPEQ, algebra.dtypes.bool, (real, real)), table).op is Ops.CMPEQ


def test_the_meaning_of_trunc_is_that_of_numpy(repository: Path) -> None:
    (code,) = examples(repository, "An op")
    trunc = run(code, {"math": math})["_trunc"]
    values = [2.7, -2.7, -0.3, 0.0, -0.0, 1e300, math.inf, -math.inf, math.nan]
    expected = np.trunc(np.array(values))
    np.testing.assert_array_equal([trunc(value) for value in values], expected)
    assert [math.copysign(1, trunc(value)) for value in values[:-1]] == np.copysign(1, expected[:-1]).tolist()


def test_the_opt_reverses_an_axis_and_its_heuristic_proposes_it(repository: Path) -> None:
    kind, choosing = examples(repository, "An Opt")
    kernel = kernel_of(from_numpy(numbers(5, 37)).alu(Ops.EXP))
    made = run(kind, {})["KIND"]
    axis = kernel.output_axes[0]
    assert made.legality_error(kernel, axis, 0) is None
    ast = made.apply(kernel, axis, Opt(OptOps.NOLOCALS, 0))
    (before,), (after,) = ([node for node in graph.toposort() if node.op is Ops.STORE] for graph in (kernel.ast, ast))
    assert before is not after and axis in after.toposort()
    names = {**vars(heuristic), "Kernel": type(kernel), "OptOps": SimpleNamespace(REVERSE=OptOps.NOLOCALS)}
    proposed = list(run(choosing, names)["reversed_loops"](kernel))
    assert [choice.opt.axis for choice in proposed] == [axis.arg.id for axis in kernel.output_axes]


def test_the_device_computes(repository: Path) -> None:
    if "CLANG" not in Device.available():
        pytest.skip("PLAINC needs a C compiler, and there is none")
    (code,) = examples(repository, "A backend")
    program = f"""{code}
from tinyexplore import Tensor
from tinyexplore.device import Device
Device.register("PLAINC", open_plainc)
print((Tensor([1, 2, 3], device="PLAINC") + 1).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds(60))
    assert done.stdout == "[2, 3, 4]\n", done.stderr


def test_the_command_tries_the_opts_in_the_opposite_order(repository: Path) -> None:
    (code,) = examples(repository, "A what-if")
    lines = Path(set_opts.__file__).read_text("utf-8")
    names = run(
        lines, {"__name__": "tinyexplore.explore.whatif.commands.set_opts", "__package__": set_opts.__package__}
    )
    names |= {name: value for name, value in vars(sys.modules["typing"]).items() if name == "ClassVar"}
    command = run(code, names)["Reverse"]
    x = Tensor.rand(64, 48).realize()
    view = explore(lambda: x.sum())
    assert command(0).about == 0
    before = view.trace.kernels[0].opts
    branch = view.whatif.do(command(0))
    assert (branch.status, branch.reason) == ("done", "")
    assert len(before) > 1 and branch.kernels[0].opts == before[::-1]
