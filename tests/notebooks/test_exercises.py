"""The course's exercises: the folded solution passes its check, and a wrong solution fails it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor, course, explore
from tinyexplore.explore import Cache

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))
SOLUTION = re.compile(r"<details>.*?```python\n(.*?)```.*?</details>", re.DOTALL)

Cell = dict[str, Any]


def cells_of(notebook: Path) -> list[Cell]:
    cells: list[Cell] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return cells


def tagged(cells: list[Cell], tag: str) -> list[int]:
    return [at for at, cell in enumerate(cells) if tag in cell["metadata"].get("tags", ())]


COURSE = [path for path in NOTEBOOKS if tagged(cells_of(path), "check")]
EXERCISES = [
    (path, at) for path in COURSE for at in tagged(cells_of(path), "check")
]  # a notebook, and the place of its check


def text_of(cell: Cell) -> str:
    return "".join(cell["source"])


def run(text: str, name: str, names: dict[str, Any]) -> None:
    """Execute a cell. It does not inherit this file's `from __future__` imports."""
    exec(compile(text, name, "exec", dont_inherit=True), names)


def number_of(cell: Cell) -> str:
    found = re.match(r'check\("([\d.]+)"', text_of(cell))
    assert found is not None
    return found.group(1)


@cache
def names_after_setup(notebook: Path) -> dict[str, Any]:
    """The names of a notebook after its first code cell, which solutions may use."""
    cells = cells_of(notebook)
    (setup,) = [text_of(cells[at]) for at in tagged(cells, "setup")]
    code = "\n".join(line for line in setup.splitlines() if not line.startswith("%"))
    names: dict[str, Any] = {"__name__": "lesson"}
    run(code, f"{notebook.stem}, setup", names)
    return names


def test_every_exercise_has_a_check_and_every_check_an_exercise() -> None:
    numbers = [number_of(cells_of(path)[at]) for path, at in EXERCISES]
    assert sorted(numbers) == sorted(course.GRADERS)


@pytest.mark.parametrize("notebook", COURSE, ids=lambda path: path.stem)
def test_a_notebook_of_the_course_has_its_parts(notebook: Path) -> None:
    """A question, learning goals, time and prerequisites; what one can explain; two exercises with folded solutions."""
    cells = cells_of(notebook)
    title = text_of(cells[0])
    number = int(notebook.stem[:2])
    assert title.startswith(f"# {number} · ")
    assert re.search(r"^\*\*.*\?\*\*$", title, re.MULTILINE), "the question of the notebook"
    assert [word for word in ("You learn", "Time", "Before") if f"| {word} |" not in title] == []
    prose = "\n".join(text_of(cell) for cell in cells if cell["cell_type"] == "markdown")
    assert [part for part in ("What you can explain now", "One change", "uess") if part not in prose] == []
    assert len(tagged(cells, "answer") or tagged(cells, "exercise")) == len(tagged(cells, "check")) == 2
    assert len(SOLUTION.findall(prose)) == 2
    assert [text_of(cell) for cell in cells if cell["cell_type"] == "code" and "assert " in text_of(cell)][:1] in (
        [],
        [text_of(cells[1])],
    ), "what tests the product is in the tests"


@pytest.mark.parametrize(("notebook", "at"), EXERCISES, ids=lambda one: one.stem if isinstance(one, Path) else str(one))
def test_the_hidden_solution_is_right_and_the_open_answer_is_wrong(
    notebook: Path, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = cells_of(notebook)
    (solution,) = SOLUTION.findall(text_of(cells[at + 1]))
    exercise, names = number_of(cells[at]), dict(names_after_setup(notebook))
    capsys.readouterr()
    run(text_of(cells[at - 1]), f"{notebook.stem}, answer", names)
    run(text_of(cells[at]), f"{notebook.stem}, check", names)
    open_answer = capsys.readouterr().out
    assert "right" not in open_answer.split(".")[1] and open_answer.startswith(f"{exercise}: ")
    run(solution, f"{notebook.stem}, solution", names)
    run(text_of(cells[at]), f"{notebook.stem}, check", names)
    assert capsys.readouterr().out.startswith(f"{exercise}: right. ")


def sorted_gather_in_place(table: Any, places: Any) -> Tensor:
    """Sorts its argument, and undoes the order with NumPy."""
    order = np.argsort(places)
    places.sort()
    result = np.empty(len(places), np.float32)
    result[order] = table[Tensor(places)].numpy()
    return Tensor(result)


def sorted_gather_of_unique(table: Any, places: Any) -> Tensor:
    unique, back = np.unique(places, return_inverse=True)
    return table.gather(0, Tensor(unique.astype(np.int32)))[back]


def logsumexp_in_place(x: Any) -> Any:
    largest = x.max(axis=1)
    x -= largest[:, None]
    return largest + np.log(np.exp(x).sum(axis=1))


def render_as_one(instructions: Any) -> list[str]:
    forms = {"load": "{} = {}[{}]", "add": "{} = {} + {}", "store": "{}[{}] = {}"}
    return [forms[op].format(*words) for op, *words in instructions]


RIGHT: list[tuple[str, Any]] = [  # answers that differ from the solution
    ("7.1", np.float32(200)),
    ("7.1", Fraction(200)),
    ("7.2", 63.0),
    ("8.2", (6, 5)),
    ("8.2", [5, 6]),
    ("10.2", np.int64(4)),
    ("11.1", " Compute"),
    ("11.2", lambda table, places: table[np.sort(places)][np.argsort(np.argsort(places))]),
    ("11.2", sorted_gather_in_place),
    ("11.2", sorted_gather_of_unique),
    ("13.1", "Greedy"),
    ("16.1", lambda a, slope: ("mul", ("div", 1, a), slope)),
    ("16.1", lambda a, slope: ("mul", slope, ("div", 1.0, a))),
    ("18.2", logsumexp_in_place),
    ("21.1", "x>=0"),
    ("21.2", lambda x, a: (x // a) * a + x % a),
    ("21.2", lambda x, a: x % a + a * (x // a)),
    ("21.2", lambda x, a: (x // a.arg) * a.arg + x % a.arg),
    ("22.1", lambda i, n: i + n // 2 if i < n // 2 else i - n // 2),
    ("22.2", lambda outer, inner, n: outer + 4 * inner),
    ("23.2", render_as_one),
    ("25.1", [47_185_920, 153_600]),
    ("25.2", lambda view: list(sorted(dict.fromkeys(operation.name for operation in view.trace.outside)))),
    ("26.1", np.int64(114_624)),
    ("26.2", lambda table, indices, function: np.take(function(table), indices, axis=0)),
    ("27.1", [2048, 64.0]),
    ("27.2", (2, 8)),
    ("24.2", "total = fmaxf(total, data1[r0 + 5 * i0])"),
    ("24.2", "total = fmaxf(data1[(i0 * 5) + r0], total);"),
]
WRONG: list[tuple[str, Any]] = [
    ("7.2", 7),
    ("7.2", 64),
    ("7.2", 128),
    ("8.2", (-5, -6)),
    ("8.2", (5.5, 5.45)),
    ("8.2", (4, 7)),
    ("11.1", "bandwidth"),
    ("11.2", lambda table, places: table[Tensor(places)]),
    ("11.2", lambda table, places: Tensor(table.numpy()[places])),
    ("11.2", lambda table, places: table[np.sort(places)]),
    ("11.2", lambda table, places: table),
    ("13.2", lambda assignments: assignments[:1]),
    ("13.2", lambda assignments: [("a", "*", "x", "y"), ("c", "+", "a", "z"), ("e", "*", "c", "c")]),
    ("16.1", lambda a, slope: ("div", a, slope)),
    ("21.2", lambda x, a: x),
    ("21.2", lambda x, a: (x // a) * a - x % a),
    ("21.2", lambda x, a: (x // a) + x % a),
    ("21.2", lambda x, a: ((x // a) * a + x % a, x)),
    ("22.1", lambda i, n: i ^ (n // 2)),
    ("22.2", lambda outer, inner, n: inner * 4 + (outer if outer == 0 else 4 - outer)),
    ("23.2", lambda instructions: ["v0 = x[i]", "v1 = v0 + 1.0", "y[i] = v1"]),
    ("23.2", lambda instructions: "v0 = x[i]"),
    ("25.1", (23_592_960, 153_600)),
    ("25.1", (47_185_920, 4_800)),
    ("25.2", lambda view: [operation.name for operation in view.trace.outside]),
    ("25.2", lambda view: {operation.name for operation in view.trace.outside}),
    ("26.1", 131_072),
    ("26.2", lambda table, indices, function: function(table[indices])),
    ("26.2", lambda table, indices, function: function(table)),
    ("27.1", (64, 2048)),
    ("27.2", (8, 2)),
    ("24.2", "total = fmaxf(total, data1[r0 * 5 + i0]);"),
    ("24.2", "total += data1[i0 * 5 + r0];"),
    ("28.2", lambda first, second: (second[0], first[1] * exp(first[0] - second[0]) + second[1], first[2] + second[2])),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT, ids=lambda one: one if isinstance(one, str) else "")
def test_other_right_answers_are_right(exercise: str, answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    course.check(exercise, answer)
    assert capsys.readouterr().out.startswith(f"{exercise}: right. ")


@pytest.mark.parametrize(("exercise", "answer"), WRONG, ids=lambda one: one if isinstance(one, str) else "")
def test_wrong_answers_are_not_right(exercise: str, answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    course.check(exercise, answer)
    assert capsys.readouterr().out.startswith(f"{exercise}: not yet. ")


def test_the_maximum_of_lesson_7_equals_that_of_the_cache_model() -> None:
    """One line is missed for each 16 numbers, and one for each 16 results, as long as all lines stay."""
    small = Tensor.rand(128, 128).realize()
    for ways, most in ((64, 63), (8, 7)):
        for rows in (most, most + 1):
            kernel = explore(lambda: small[:rows].sum(axis=0), noopt=1, repeat=1).kernels[0]  # noqa: B023
            misses = kernel.caches(opts=(), caches=[Cache("L1", 4096, ways=ways)]).total.misses()
            assert (misses == 8 * rows + 8) is (rows == most)


def test_a_variance_of_another_array_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"x": Tensor.rand(64, 30).realize()}
    run("right = lambda: ((x - x.mean(1, keepdim=True)).contiguous() ** 2).mean(1)", "right", names)
    run("wrong = lambda: ((x * 2).contiguous() ** 2).mean(1)", "wrong", names)
    course.check("4.2", names["right"])
    course.check("4.2", names["wrong"])
    assert [line[:12] for line in capsys.readouterr().out.splitlines()] == ["4.2: right. ", "4.2: not yet"]


def test_under_nbgrader_a_wrong_answer_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(course.WrongAnswer):
        course.check("6.1", 12)
    course.check("6.1", 11)


def test_an_unknown_exercise_names_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"1\.1, 1\.2, 2\.1"):
        course.check("99.1", 1)


@pytest.mark.parametrize("notebook", COURSE, ids=lambda path: path.stem)
def test_cells_have_the_format_of_nbgrader(notebook: Path) -> None:
    """Answers are solution cells, checks are locked tests of one point, and each grade_id is unique."""
    cells = cells_of(notebook)
    found = [cell["metadata"]["nbgrader"] for cell in cells if "nbgrader" in cell["metadata"]]
    assert [(one["solution"], one["grade"], one["locked"], one["schema_version"]) for one in found] == [
        (True, False, False, 3),
        (False, True, True, 3),
    ] * 2
    assert len({one["grade_id"] for one in found}) == 4
