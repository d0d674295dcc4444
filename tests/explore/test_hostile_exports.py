"""Every text of a foreign trace is hostile. Parsers confirm that no export contains it as code, markup or structure."""

from __future__ import annotations

import ast
import csv
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support import typescript
from tests.support.hostile_traces import command
from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer, Trace, compare
from tinyexplore.explore.exports.html_export import static_html
from tinyexplore.explore.tracefile.chrome import to_chrome_trace
from tinyexplore.explore.tracefile.codec import trace_to_bytes, trace_to_json
from tinyexplore.explore.tracefile.model import Program
from tinyexplore.explore.tracefile.perfetto import to_perfetto
from tinyexplore.explore.tracefile.pictures import table_pictures
from tinyexplore.explore.tracefile.pictures.pipeline_picture import pipeline_svg
from tinyexplore.explore.tracefile.scripts import BODY, ReproducerError, reproducer
from tinyexplore.explore.tracefile.table_export import TABLES, rows_of, table_text
from tinyexplore.explore.tracefile.trace import trace_from_bytes, trace_from_json
from tinyexplore.explore.tracefile.validation import OneOf, constraint_of, hints_of
from tinyexplore.explore.whatif.branch_picture import branches_svg, schedules_svg

EVIL = {
    "markup": "'\"><img src=x onerror=pwned()></script></style></title></textarea>--><script>pwned()</script><!--]]>&",
    "python": '"""\nimport os; os.system("true")\n\'\'\'\\" + str(1) + "\\\n{pwned}',
    "control": "\0\x01\x08\x1b]0;gone\x07\x9b2J\x7f\x85\r\n\t\u2028\u2029\u202e\u2066\ufeff\uffff\U0001f600",
    "formula": "=cmd|' /C calc'!A0",
    "dot": '\\"]; pwned [label=<b>]; \\N\\G\\l"\\',
    "html label": "<b>pwned</b>",
    "c": '*/ int pwned; /* " \\\n#include </etc/passwd>\n',
    "markdown": "| pwned | `x` [a](javascript:pwned()) ![b](x)\n\n# pwned\n```\n",
    "format": "%s%n{0}{}${pwned}`pwned`\\u0041\\x41",
    "a backslash": "\\",
    "empty": "",
}
STRUCTURE = {("Program", "language"), ("Stage", "name"), ("Node", "kind")}  # what else views choose by


def hostile(value: Any, evil: str, *, whole: bool) -> Any:
    """`value` with `evil` behind each of its texts, or in their place. Words of closed sets stay."""
    if isinstance(value, tuple):
        return tuple([hostile(item, evil, whole=whole) for item in value])
    if isinstance(value, str):
        return evil if whole else value + evil
    if not is_dataclass(value):
        return value
    hints = hints_of(type(value))
    changed = {}
    for field in fields(value):
        _, constraint = constraint_of(hints[field.name])
        if not isinstance(constraint, OneOf) and (type(value).__name__, field.name) not in STRUCTURE:
            changed[field.name] = hostile(getattr(value, field.name), evil, whole=whole)
    return replace(value, **changed)  # type: ignore[type-var]


@pytest.fixture(params=[*EVIL], scope="module")
def evil(request: pytest.FixtureRequest) -> str:
    return EVIL[request.param]


@pytest.fixture(params=["after", "instead"], scope="module")
def foreign(request: pytest.FixtureRequest, evil: str) -> Trace:
    """A hostile trace after saving and loading."""
    return trace_from_json(trace_to_json(hostile(sample_trace(), evil, whole=request.param == "instead")))


class Outline(HTMLParser):
    """The tags of a page, the names of their attributes, and how often those tags occur that do or load something."""

    ACTIVE = ("script", "style", "iframe", "object", "img", "link", "meta", "base", "form", "a comment")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.active: Counter[str] = Counter()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name.startswith("on")]
        urls = [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        assert not [url for url in urls if re.match(r"\s*(javascript|vbscript|data:text)", url or "", re.I)]
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag in self.ACTIVE:
            self.active[tag] += 1

    def handle_comment(self, data: str) -> None:
        self.active["a comment"] += 1


HARMLESS_TAGS = {"text", "title", "tspan", "rect", "path", "g", "br", "span", "p"}
HARMLESS_ATTRIBUTES = {
    "xml:space",
    "text-anchor",
    "font-size",
    "font-weight",
    "font-family",
    "fill",
    "class",
    "stroke-dasharray",
    "title",
}


def assert_outline(page: str, plain: str) -> None:
    """`page` has no kinds of tags and attributes beside those of `plain`, and as many scripts and the like."""
    found, expected = Outline(page), Outline(plain)
    assert found.tags - expected.tags <= HARMLESS_TAGS
    assert found.attributes - expected.attributes <= HARMLESS_ATTRIBUTES
    assert found.active <= expected.active  # fewer: a hostile kernel has no machine code for the page


PAGES: dict[str, Callable[[Trace], str]] = {
    "page": lambda trace: Explorer(trace).to_html(),
    "static page": static_html,
    "comparison": lambda trace: compare(trace, trace).to_html(),
    "comparison in a notebook": lambda trace: compare(trace, trace)._repr_html_(),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str, foreign: Trace) -> None:
    assert_outline(PAGES[name](foreign), PAGES[name](sample_trace()))


def languages(trace: Trace) -> list[str]:
    return sorted({program.language for program in trace.programs})


PICTURES: dict[str, Callable[[Trace], str]] = {
    "pipeline": pipeline_svg,
    "graph": lambda trace: trace.graph().svg(),
    "uops": lambda trace: trace.graph(kind="uop", stage=max(stage.id for stage in trace.stages if stage.after)).svg(),
    "kernels": table_pictures.kernels_svg,
    "timing": table_pictures.timing_svg,
    "memory": table_pictures.memory_svg,
    "modules": table_pictures.modules_svg,
    "passes": table_pictures.passes_svg,
    "branches": branches_svg,
    "schedules": schedules_svg,
    **{
        f"listing {name}": lambda trace, name=name: table_pictures.listing_svg(trace, name)
        for name in languages(sample_trace())
    },
}
CODE = {"script", "foreignObject", "image", "a", "use", "animate", "set", "iframe", "img"}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, foreign: Trace) -> None:
    picture = PICTURES[name](foreign)
    if not picture:
        return
    elements = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()}
    assert not elements & CODE
    assert_outline(picture, PICTURES[name](sample_trace()))  # as a notebook puts it into HTML


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_dot(foreign: Trace) -> None:
    graph = foreign.graph()
    done = subprocess.run(["dot", "-Tjson"], input=graph.to_graphviz().source, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout, strict=False)
    names = [item["name"] for item in data["objects"]]
    assert all(re.fullmatch(r"n\d+|cluster_\d+", name) for name in names)
    assert len([name for name in names if name.startswith("n")]) == len(graph._make_drawn_graph().nodes)


def test_perfetto_and_chrome(foreign: Trace) -> None:
    data = json.loads(json.dumps(to_chrome_trace(foreign), allow_nan=False))
    plain = to_chrome_trace(sample_trace())
    assert [sorted(event) for event in data["traceEvents"]] == [sorted(event) for event in plain["traceEvents"]]
    assert [event["ph"] for event in data["traceEvents"]] == [event["ph"] for event in plain["traceEvents"]]
    assert to_perfetto(foreign)


def test_json(foreign: Trace) -> None:
    assert trace_from_json(trace_to_json(foreign)) == trace_from_bytes(trace_to_bytes(foreign)) == foreign


CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("suffix", [".csv", ".svg", ".dot", ".chrome.json"])
def test_exports_of_the_command_line(suffix: str, foreign: Trace, tmp_path: Path) -> None:
    path = foreign.save(tmp_path / "foreign.json")
    status, text = command("export", str(path), str(tmp_path / f"out{suffix}"))
    assert status == 0 and not CONTROL.search(text)
    if suffix == ".csv":
        rows = list(csv.reader(StringIO((tmp_path / "out.csv").read_text(encoding="utf-8"), newline="")))
        assert len({len(row) for row in rows}) == 1 and len(rows) == len(foreign.kernels) + 1
        cells = [cell for row in rows for cell in row]
        assert not [cell for cell in cells if re.match(r"\s*[=+@\t\r]", cell)]


@pytest.mark.parametrize("words", [["show"], ["show", "--json"], ["modules"], ["code", "0"], ["compare"]])
def test_terminal(words: list[str], foreign: Trace, tmp_path: Path) -> None:
    path = str(foreign.save(tmp_path / "foreign.json"))
    _, text = command(words[0], path, *(words[1:] or ([path] if words[0] == "compare" else [])))
    assert not CONTROL.search(text)


TEXTS: dict[str, Callable[[Trace], str]] = {
    "explorer": lambda trace: repr(Explorer(trace)),
    "trace": repr,
    "modules": lambda trace: str(trace.modules()),
    "comparison": lambda trace: str(compare(trace, trace)),
    "graph": lambda trace: repr(trace.graph()),
    **{f"table {name}": lambda trace, name=name: table_text(rows_of(trace, name)) for name in TABLES},
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_for_people(name: str, foreign: Trace) -> None:
    assert not CONTROL.search(TEXTS[name](foreign))


def with_hostile_texts(evil: str) -> Trace:
    """A trace whose scripts can be made: numbers and Variables are the capture's, all other texts are hostile."""
    trace = sample_trace()
    foreign = hostile(trace, evil, whole=False)
    nodes = [replace(node, label=node.label + evil, name=evil, digest=evil, calls=(evil,)) for node in trace.nodes]
    return replace(foreign, nodes=tuple(nodes))


def owners(trace: Trace) -> list[int]:
    """The kernels that have scripts."""
    languages: dict[int, set[str]] = {}
    for program in trace.programs:
        languages.setdefault(program.kernel, set()).add(program.language)
    return [kernel for kernel, known in languages.items() if "uops" in known and known & {"c", "llvm"}]


def statements(text: str) -> list[str]:
    return [type(node).__name__ for node in ast.parse(text).body]


def test_python_scripts(evil: str, foreign: Trace) -> None:
    kernel = owners(sample_trace())[0]
    expected = statements(reproducer(sample_trace(), kernel))
    assert statements(reproducer(with_hostile_texts(evil), kernel)) == expected
    try:
        text = reproducer(foreign, kernel)
    except ReproducerError:
        return
    assert statements(text) == expected


SCRIPTS = """
import { scriptText } from "src/kernel_script";

function run({ trace, kernel, shared }) {
  return trace.scripts.some((one) => one.kernel === kernel) ? scriptText(trace, kernel, shared) : null;
}
"""


def in_a_page(traces: list[Trace], folder: Path) -> list[str | None]:
    """The script of the first kernel that a page puts together, None where it has none."""
    if (reason := typescript.missing()) is not None:
        pytest.skip(reason)
    kernel = owners(sample_trace())[0]
    shared = BODY.read_text(encoding="utf-8")
    cases = [{"trace": json.loads(trace_to_json(trace)), "kernel": kernel, "shared": shared} for trace in traces]
    return typescript.run_typescript(folder, SCRIPTS, cases)


def test_a_page_has_the_script_that_python_writes(tmp_path: Path) -> None:
    kernel = owners(sample_trace())[0]
    traces = [sample_trace(), *[with_hostile_texts(evil) for evil in EVIL.values()]]
    assert in_a_page(traces, tmp_path) == [reproducer(trace, kernel) for trace in traces]


SIZES = ["rows", "rows*2", "(rows + 3)//4 % 5", "-rows", "0", "64", "2*(rows - 1)"]
EVIL_SIZES = [
    *["__import__('os').system('true')", "9**9**9", "(1).real", "f'{1}'", "1\nimport os", "unknown", "", " 1", "1 2"],
    *["rows(1)", "(rows", "rows)", "rows *", "*rows", "1<<99999999", "1,", "lambda: 0", "rows if rows else 1", "007"],
    *["rows # x", "rows;rows", "()", "rows == 1", "9" * 2000, "(" * 500 + "1" + ")" * 400, "ＲＯＷＳ", "１"],
]
EVIL_VARIABLES = ["os; import os", "print(1)", "class", "KERNEL", "a b", "", "x=1", "é", "None", 'r"', "x\n"]


def with_variable(size: str, name: str = "rows") -> Trace:
    """A kernel with a Variable, whose loop that threads share has `size`."""
    trace = sample_trace()
    kernel = owners(trace)[0]
    template = next(node for node in trace.nodes if node.op == "DEFINE_GLOBAL")
    variable = replace(template, id=len(trace.nodes), op="DEFINE_VAR", src=(), detail=f"1 ≤ {name} ≤ 010", arg="")
    programs = [_with_node(program, kernel, variable.id) for program in trace.programs]
    kernels = [replace(info, axes=(("t0", "thread", size),)) if info.id == kernel else info for info in trace.kernels]
    return replace(trace, nodes=(*trace.nodes, variable), programs=tuple(programs), kernels=tuple(kernels))


def _with_node(program: Program, kernel: int, node: int) -> Program:
    if program.kernel != kernel or program.language != "uops":
        return program
    line = replace(program.lines[-1], nodes=(*program.lines[-1].nodes, node))
    return replace(program, lines=(*program.lines[:-1], line))


def from_python(trace: Trace) -> str | None:
    try:
        return reproducer(trace, owners(sample_trace())[0])
    except ReproducerError:
        return None


def test_sizes_and_variables_are_checked(tmp_path: Path) -> None:
    good = [with_variable(size) for size in SIZES]
    bad = [with_variable(size) for size in EVIL_SIZES] + [with_variable("1", name) for name in EVIL_VARIABLES]
    texts = [from_python(trace) for trace in good]
    assert None not in texts
    assert [text for trace in bad if (text := from_python(trace)) is not None] == []
    assert in_a_page([*good, *bad], tmp_path) == [*texts, *[None] * len(bad)]
