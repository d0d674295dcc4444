"""The tests of each public name, their devices and references: the table `docs/api_coverage.md`.

    python -m tests.support.api_coverage [folders]

runs the tests, notes every call that a test makes (calls inside the package do not count), and writes the table.
`api_names.txt` lists the API's names, by section.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tinyexplore
from tinyexplore import Tensor
from tinyexplore.tensor.base import TensorBase

ROOT = Path(__file__).parents[2]
NAMES = Path(__file__).with_name("api_names.txt")
TABLE = ROOT / "docs" / "api_coverage.md"
FOLDERS = (
    "tests/ops",
    "tests/unit/autograd",
    "tests/unit/compile",
    "tests/unit/execute",
    "tests/unit/jit",
    "tests/unit/lazy",
    "tests/unit/nn",
    "tests/unit/runtime",
    "tests/unit/tensor",
    "tests/unit/util",
)
OWN_TESTS = 2  # how many tests a row names
REFERENCES = {
    "NumPy": r"\bnp\.(?!s_|array\b|float32|random|ndarray|testing)|numpy_value|\bexpected\b.*\bnp\b",
    "finite differences": r"\bcheck_gradient\b",
    "PyTorch": r"\btorch\b",
    "ml_dtypes": r"\bml_dtypes\b",
    "the definition": r"\bmath\.|\bstruct\.|\bevaluate\b|\bconvolution\(",
}
STATED = "stated values"


def api_names() -> dict[str, list[str]]:
    """Section → names."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text().splitlines():
        if line.startswith("["):
            names = found.setdefault(line.strip("[]"), [])
        elif line:
            names.append(line)
    return found


def home_of(section: str) -> Any:
    """The object that the names of a section are attributes of."""
    if section.startswith("Tensor"):
        return Tensor
    home: Any = tinyexplore
    for part in section.split(".") if section != "package" else ():
        home = getattr(home, part)
    return home


# *** recording calls while tests run ***


Key = tuple[str, str]  # section and name
Calls = dict[str, set[str]]  # test → devices


class Recorder:
    """A pytest plugin: notes the outermost calls of API names, test by test."""

    def __init__(self) -> None:
        self.seen: dict[Key, Calls] = defaultdict(dict)
        self.test = ""
        self.depth = 0

    def note(self, key: Key, values: tuple[Any, ...]) -> None:
        if not self.test or self.depth:
            return
        devices = {
            value.lazydata.device for value in values if isinstance(value, TensorBase) and hasattr(value, "lazydata")
        }
        self.seen[key].setdefault(self.test, set()).update(devices)

    def watched(self, key: Key, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result: Any = None
            self.depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                self.depth -= 1
                self.note(key, (*args, *(result if isinstance(result, (tuple, list)) else (result,))))
            return result

        return call

    def install(self) -> None:
        """Replace every name of the API by a spy that records its caller."""
        for section, names in api_names().items():
            home = home_of(section)
            for name in names:
                if hasattr(home, name):
                    self._watch(section, home, name)

    def _watch(self, section: str, home: Any, name: str) -> None:
        key = (section, name)
        raw = next((vars(kind)[name] for kind in home.__mro__ if name in vars(kind)), None) if home is Tensor else None
        value = getattr(home, name)
        if isinstance(raw, property):
            setattr(home, name, property(self.watched(key, raw.fget)))  # type: ignore[arg-type]
        elif isinstance(raw, (classmethod, staticmethod)):
            setattr(home, name, type(raw)(self.watched(key, raw.__func__)))
        elif home is Tensor:
            setattr(home, name, self.watched(key, raw))
        elif isinstance(value, type) and "__init__" in vars(value) and section.startswith("nn"):
            for method in ("__init__", "__call__"):
                if method in vars(value):
                    setattr(value, method, self.watched(key, vars(value)[method]))
        elif callable(value) and section in ("nn.optim", "nn.state"):
            setattr(home, name, self.watched(key, value))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        """Discard the calls of a test that fails."""
        self.test = f"{item.location[0]}::{item.originalname}"
        outcome = yield
        if outcome.excinfo is not None:  # type: ignore[attr-defined]
            for calls in self.seen.values():
                calls.pop(self.test, None)
        self.test = ""


# *** what a test compares with ***


def sources(path: Path) -> dict[str, str]:
    """Top-level name → its text, with the text of the module's names that it uses, and so on."""
    text = path.read_text()
    parts: dict[str, str] = {}
    for node in ast.parse(text).body:
        names = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        start = node.decorator_list[0] if getattr(node, "decorator_list", None) else node  # type: ignore[attr-defined]
        body = "\n".join(text.splitlines()[start.lineno - 1 : node.end_lineno])
        parts.update({name: body for name in names})

    def whole(name: str, known: set[str]) -> str:
        known.add(name)
        used = [word for word in re.findall(r"\w+", parts[name]) if word in parts and word not in known]
        return "\n".join([parts[name], *(whole(word, known) for word in dict.fromkeys(used) if word not in known)])

    return {name: whole(name, set()) for name in parts}


@functools.cache
def _sources(path: str) -> dict[str, str]:
    return sources(ROOT / path)


def references(test: str) -> list[str]:
    """What the test called `file::function` compares with, by its text."""
    path, function = test.split("::")
    text = _sources(path).get(function, "")
    return [name for name, pattern in REFERENCES.items() if re.search(pattern, text)] or [STATED]


def mentions(section: str, name: str) -> Calls:
    """Tests whose text has `section.name`, for names that are no functions."""
    wanted = re.compile(rf"\b{re.escape(name)}\b" if section == "package" else rf"\b{section}\.{re.escape(name)}\b")
    found: Calls = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("test_*.py")):
            for function, text in _sources(str(path.relative_to(ROOT))).items():
                if function.startswith("test_") and wanted.search(text):
                    found[f"{path.relative_to(ROOT)}::{function}"] = set()
    return found


# *** the table ***

HEADER = """\
# Coverage of the public API

This page answers: which public calls do the tests make, and with what do they compare the results?

Written by `python -m tests.support.api_coverage`, which runs the tests and notes the calls that they make; do not edit.
*against*: what the named tests compare with. *devices*: where tensors of such a call were.
"""


def table(seen: dict[Key, Calls]) -> str:
    """The whole document."""
    lines = [HEADER]
    for section, names in api_names().items():
        lines += [f"## {section}", "", "| name | tests | against | devices | for example |", "|---|---|---|---|---|"]
        home = home_of(section)
        for name in names:
            calls: Calls = {}
            if hasattr(home, name):
                kind = getattr(home, name)
                aliases = [one for one in names if isinstance(kind, type) and getattr(home, one, None) is kind]
                for other in aliases or [name]:
                    calls.update(seen.get((section, other), {}))
                calls = calls or mentions(section, name)
            lines.append(_row(name, calls))
        lines.append("")
    return "\n".join(lines)


def device_kinds(device: str) -> set[str]:
    """The devices of a name without instances and files: "LLVM|LLVM:1" is LLVM, in several parts."""
    parts = device.split("|")
    return {part.partition(":")[0] for part in parts} | ({"sharded"} if len(parts) > 1 else set())


def _row(name: str, calls: Calls) -> str:
    ranked = sorted(calls, key=lambda test: (-len(calls[test]), STATED in references(test), test))
    compared = {reference for test in ranked for reference in references(test)}
    against = [one for one in (*REFERENCES, STATED) if one in compared]
    devices = sorted({kind for found in calls.values() for device in found for kind in device_kinds(device)})
    examples = [f"`{test.removeprefix('tests/')}`" for test in ranked[:OWN_TESTS]]
    return f"| `{name}` | {len(calls)} | {', '.join(against)} | {', '.join(devices)} | {' '.join(examples)} |"


def rows(text: str) -> dict[Key, tuple[int, list[str]]]:
    """(section, name) → (how many tests, those named), read from the document."""
    found: dict[Key, tuple[int, list[str]]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found[section, cells[0].strip("`")] = int(cells[1]), re.findall(r"`(\S+::\w+)`", cells[-1])
    return found


def main(folders: list[str]) -> int:
    recorder = Recorder()
    recorder.install()
    code = pytest.main(["-q", "-p", "no:cacheprovider", *(folders or FOLDERS)], plugins=[recorder])
    TABLE.write_text(table(recorder.seen))
    empty = [f"{section}: {name}" for (section, name), (count, _) in rows(TABLE.read_text()).items() if not count]
    print(f"wrote {TABLE}; without a test: {', '.join(empty) or 'none'}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
