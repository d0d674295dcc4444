"""Documents agree with the code: named files exist, and named functions are called in the stated order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LINK = re.compile(r"^\d+\. \[`([\w.]+)`\]\(\.\./(tinyexplore/[\w/]+\.py)\)", re.MULTILINE)

# Prints which of the named functions are called by one line, on this thread, in order.
PROGRAM = """
import importlib, inspect, json, sys
from contextlib import nullcontext
from functools import reduce
from tinyexplore import Tensor, capture

codes = {}
for name, file in json.loads(sys.argv[1]):
    module = importlib.import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    code = inspect.unwrap(reduce(getattr, name.split("."), module)).__code__
    assert code.co_filename.endswith(file), f"{name} stands in {code.co_filename}, not in {file}"
    codes[code] = name

called = []


def profile(frame, event, argument):
    if event == "call" and frame.f_code in codes:
        called.append(codes[frame.f_code])


with capture() if sys.argv[2] == "watched" else nullcontext():
    sys.setprofile(profile)
    values = (Tensor([1, 2, 3], device="LLVM") + 1).tolist()
    sys.setprofile(None)
assert values == [2, 3, 4], values
print(json.dumps(called))
"""


def hops(repository: Path) -> list[tuple[str, str]]:
    page = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    return [(name, file) for name, file in LINK.findall(page)]


def test_the_page_follows_a_line_in_at_most_fifteen_functions(repository: Path) -> None:
    assert 10 <= len(hops(repository)) <= 15


@pytest.mark.parametrize("mode", ["plain", "watched"])
def test_the_line_calls_the_functions_of_the_page(repository: Path, mode: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(repository), "CACHELEVEL": "0"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(hops(repository)), mode]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    called = iter(json.loads(done.stdout))
    lost = [name for name, _ in hops(repository) if name not in called]  # `in` uses up what comes before
    assert lost == []


def test_files_that_the_documents_name_exist(repository: Path) -> None:
    here = [repository, repository / "docs", repository / "tinyexplore"]
    lost = []
    for page in [repository / "README.md", *sorted((repository / "docs").glob("*.md"))]:
        named = set(re.findall(r"`([a-z_]+/[\w/]+\.(?:py|ll|ts))`", page.read_text(encoding="utf-8")))
        lost += [f"{page.name}: {file}" for file in sorted(named) if not any((root / file).exists() for root in here)]
    assert lost == []


def test_every_floor_and_every_package_of_the_explorer_is_on_the_page(repository: Path) -> None:
    page = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = repository / "tinyexplore"
    floors = {path.parent.name for path in package.glob("*/__init__.py")}
    parts = {path.parent.name for path in (package / "explore").glob("*/__init__.py")}
    named = [f"`{name}`" for name in sorted(floors)] + [f"`{name}/`" for name in sorted(parts)]
    assert [name for name in named if name not in page] == []
    prose = [line for line in page.splitlines() if not line.startswith("|")]
    assert len(" ".join(prose).split()) < 1600, "short enough to be read at once: what measures goes to performance.md"


SECTIONS = ("Context", "Decision", "Alternatives", "Consequences")


def test_every_decision_has_its_sections_and_is_listed(repository: Path) -> None:
    folder = repository / "docs" / "decisions"
    head = re.compile(r"# (\d+)\. ([^\n]+)\n\n- Date: \d{4}-\d\d-\d\d\n- Status: [^\n]+\n")
    entries, incomplete = [], []
    for page in sorted(folder.glob("0*.md")):
        text = page.read_text(encoding="utf-8")
        match = head.match(text)
        titles = tuple(re.findall(r"^## (\w+)$", text, re.MULTILINE))
        if match is None or int(match[1]) != int(page.name[:4]) or titles != SECTIONS:
            incomplete.append(page.name)
            continue
        entries.append(f"- [{match[1]}. {match[2]}]({page.name})")
    assert incomplete == []
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert sorted(line for line in lines if line.startswith("- [")) == sorted(entries)


def test_links_between_documents_lead_to_files(repository: Path) -> None:
    pages = [repository / "README.md", repository / "widgets" / "README.md", *(repository / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(repository)}: {path}"
        for page in pages
        for path in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / path).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(
    ("subject", "file"),
    [
        ("loop fusion", "schedule/fusion.py"),
        ("the tile of a matmul", "kernel/heuristics/product_tile.py"),
        ("the timing of kernels", "execute/sampling.py"),
        ("loop-invariant code motion", "schedule/hoisting.py"),
        ("a click in the explorer", "widgets/explorer.py"),
        ("the panels", "howto.md#a-panel"),
        ("devices", "tinyexplore/devices.py"),
        ("a rewrite rule", "howto.md#a-rule"),
        ("golden files", "tests/golden/"),
        ("saving a page", "explorer/pages.md"),
        ("dead code elimination", "schedule/writes.py"),
        ("register allocation", "product_tile.py"),
        ("the number of threads", "execute/threads.py"),
        ("writing and reading a trace", "tracefile/codec.py"),
        ("the roofline's measured ceilings", "explore/analysis/machine/probes.py"),
        ("register spills", "explore/analysis/verdict/code.py"),
        ("vectorization", "codegen/rewrites/vectorize.py"),
        ("unrolling", "codegen/rewrites/unroll.py"),
        ("the disk cache", "compile/program_cache.py"),
        ("memory planning", "execute/memory.py"),
        ("bank conflicts", "explore/analysis/models/warps.py"),
        ("occupancy", "explore/analysis/models/occupancy.py"),
        ("cache misses", "explore/analysis/models/caches.py"),
        ("all compiler passes", "codegen/pipeline.py"),
        ("software prefetch", "kernel/heuristics/prefetch.py"),
        ("a graph of PyTorch as Tensors", "frontends/torch/program.py"),
        ("splitting a reduction", "schedule/splitting.py"),
        ("whether an opt is legal", "kernel/legality.py"),
        ("AMX", "renderer/llvm/tensor_cores.py"),
        ("the vector width", "kernel/heuristics/lanes.py"),
        ("strength reduction", "codegen/rewrites/division.py"),
        ("the source of a kernel", "renderer/gpu/wgsl.py"),
        ("the replay of a TinyJit", "jit/replay.py"),
        ("the meaning of an operation", "tensor/operators.py"),
        ("the pages of the story", "widgets/src/story_chapters.ts"),
        ("types and texts that TypeScript shares", "explore/schema.py"),
        ("an instruction’s line of Python", "lazy/lazybuffer.py"),
        ("time and thread", "trace/recorder.py"),
    ],
)
def test_the_readme_and_the_table_lead_to_the_file(repository: Path, subject: str, file: str) -> None:
    """The README leads to the table of architecture.md, and its row to the file."""
    assert "(docs/architecture.md#where-is-)" in (repository / "README.md").read_text("utf-8")
    page = (repository / "docs" / "architecture.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {subject}")]
    assert f"{file})" in row or f"{file}__init__.py)" in row


NAMED = re.compile(
    r"\[`([A-Za-z_]\w*(?:\.\w+)*)`\]\(([^)#\s:]+\.py)\)|`([A-Za-z_]\w*(?:\.\w+)*)` in \[`[^`]*`\]\(([^)#\s:]+)\)"
)


def test_documents_name_functions_of_the_linked_files(repository: Path) -> None:
    """`name` in [`file.py`](…) and [`Class.method`](….py): each part of the name is a word of the linked file."""
    seen, missing = 0, []
    for page in [*(repository / "docs").glob("*.md"), *(repository / "docs" / "explorer").glob("*.md")]:
        for match in NAMED.finditer(page.read_text("utf-8")):
            name, path = match[1] or match[3], match[2] or match[4]
            if name.endswith(".py"):
                continue
            seen += 1
            text = (page.parent / path).resolve().read_text("utf-8")
            if any(not re.search(rf"\b{part}\b", text) for part in name.split(".")):
                missing.append(f"{page.name}: {name} is not in {path}")
    assert seen > 50 and missing == []


def test_the_documents_count_the_panels(repository: Path) -> None:
    from tinyexplore.widgets.panels import PANELS

    text = (repository / "docs" / "compared.md").read_text("utf-8")
    assert f"{len(PANELS)} panels in" in text
