"""Results of a view, its kernels and `explore` functions display as text or HTML, never as a dataclass's fields."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import tinyexplore.explore as package
from tinyexplore import Context, Device, Tensor, dtypes
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.notebook.kernels import KernelView
from tinyexplore.explore.tracefile.result_display import page_frame
from tinyexplore.uop import UOp

pytest.importorskip("IPython")

FIELDS = re.compile(r"\b[A-Z]\w*\([a-z_]\w*=")
Call = Callable[[Explorer, Path], Any]


def program() -> Tensor:
    x = Tensor.ones(16, 32).contiguous().realize()
    w = Tensor.ones(32, 8).contiguous().realize()
    return (x @ w).relu().softmax()


@pytest.fixture(scope="module")
def view() -> Iterator[Explorer]:
    with Context(DEVICE="LLVM" if "LLVM" in Device.available() else "PYTHON", BEAM=2):
        made = explore(program)
        yield made
        made.close()


def _rewritten(view: Explorer) -> int:
    """A node that a rewriting pass began with."""
    return next(stage for stage in view.trace.stages if stage.steps and stage.before).before[0]


VIEW: dict[str, Call] = {
    "capture": lambda view, path: view.capture,
    "close": lambda view, path: None,
    "fusion": lambda view, path: [view.fusion, view.fusion.edges(), view.fusion.branches()],
    "graph": lambda view, path: view.graph,
    "kernels": lambda view, path: [view.kernels, list(view.kernels)],
    "panels": lambda view, path: [view.panels, view.panels.shape_of(view.trace.nodes[0]), view.panels.kernels],
    "question": lambda view, path: view.question("kernels"),
    "result": lambda view, path: view.result,
    "rules": lambda view, path: [view.rules, view.rules.of(), view.rules.check(), list(view.rules.of()[:3])],
    "save": lambda view, path: view.save(path / "saved.json.gz"),
    "selected": lambda view, path: view.selected,
    "show": lambda view, path: view.show(view.trace.nodes[0]),
    "to_html": lambda view, path: None,
    "tour": lambda view, path: view.tour([]),
    "trace": lambda view, path: [view.trace, list(view.trace.nodes[:3]), list(view.trace.runs), view.trace.modules()],
    "verdict": lambda view, path: view.verdict(),
    "whatif": lambda view, path: [view.whatif, view.whatif.branches],
    "why_kernels": lambda view, path: view.why_kernels(view.trace.kernels[0].roots[0], view.trace.kernels[-1].roots[0]),
    "why_not": lambda view, path: view.why_not(_rewritten(view)),
    "widget": lambda view, path: view.widget,
}


def passes_of(kernel: KernelView) -> Any:
    if "llvm" not in kernel.languages:
        return None
    found = kernel.passes()
    return [found, found[0], found[0].lines[0], found.remarks]


KernelCall = Callable[[KernelView], Any]
KERNEL: dict[str, KernelCall] = {
    "apply": lambda kernel: [kernel.set_opts(""), kernel.apply(next(iter(kernel.available_opts())))],
    "available_opts": lambda kernel: [kernel.available_opts(), kernel.available_opts().offers],
    "beam": lambda kernel: kernel.beam,
    "branch": lambda kernel: kernel.branch,
    "branches": lambda kernel: [kernel.branches, list(kernel.branches)],
    "caches": lambda kernel: kernel.caches(),
    "debug": lambda kernel: kernel.debug("generated"),
    "edit": lambda kernel: kernel.edit("opts", ""),
    "edit_text": lambda kernel: kernel.edit_text("opts"),
    "gpu": lambda kernel: None,  # of a GPU's kernels: see below
    "info": lambda kernel: kernel.info,
    "languages": lambda kernel: kernel.languages,
    "opt_steps": lambda kernel: kernel.opt_steps(timed=False),
    "listing": lambda kernel: kernel.listing(),
    "memory_stream": lambda kernel: kernel.memory_stream(),
    "name": lambda kernel: kernel.name,
    "opts": lambda kernel: kernel.opts,
    "passes": lambda kernel: passes_of(kernel),
    "reproducer": lambda kernel: None,  # a program, which calls constructors
    "run": lambda kernel: [kernel.run, [kernel.run]],
    "search": lambda kernel: kernel.search(1),
    "set_opts": lambda kernel: kernel.set_opts(""),
    "table": lambda kernel: kernel.table(),
    "throughput": lambda kernel: kernel.throughput(kernel.set_opts("")),
    "translate": lambda kernel: kernel.translate("c"),
    "undo": lambda kernel: kernel.undo(),
    "use_heuristics": lambda kernel: kernel.use_heuristics(),
    "verdict": lambda kernel: kernel.verdict(),
    "why_opts": lambda kernel: kernel.why_opts(),
}

FUNCTIONS: dict[str, Call] = {
    "rewrite_history": lambda view, path: package.rewrite_history(view.trace, view.trace.nodes[0]),
    "compare": lambda view, path: package.compare(view.trace, view.trace),
    "could_fire": lambda view, path: package.could_fire(UOp.const(dtypes.int32, 1) * 1),
    "diff": lambda view, path: package.diff(view.trace, view.trace),
    "line_frames": lambda view, path: package.line_frames(view.trace, 0, 0),
    "related": lambda view, path: package.related(view.trace, view.trace.nodes[0]),
    "rows_of": lambda view, path: package.rows_of(view.trace),
    "shape": lambda view, path: package.shape((2, 3)),
    "tensor_cores": lambda view, path: package.tensor_cores("sm_80"),
    "trace_lines": lambda view, path: package.trace_lines(view.trace, view.trace.nodes[0]),
    "user_lines": lambda view, path: package.user_lines(view.trace, 1),
    "where": lambda view, path: package.where(view.trace, op="ADD"),
    "why_opts": lambda view, path: view.kernels[0].why_opts(),
}


def outputs(value: Any) -> str:
    """All texts that a notebook's cell, or a console, shows of a value."""
    from IPython.core.interactiveshell import InteractiveShell

    formatter = InteractiveShell.instance().display_formatter
    data, _ = formatter.format(value)
    shown = [text for kind, text in data.items() if isinstance(text, str) and kind.startswith("text/")]
    return "\n".join([*shown, repr(value), str(value)])


def reached(value: Any, depth: int = 4) -> Iterator[Any]:
    """A value, and what its fields and elements hold: one of each type."""
    yield value
    if depth == 0:
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        kinds: dict[type, Any] = {type(one): one for one in list(value)[:50]}
        for one in kinds.values():
            yield from reached(one, depth - 1)
    elif dataclasses.is_dataclass(value) and type(value).__module__.startswith("tinyexplore.explore"):
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                yield from reached(getattr(value, field.name), depth - 1)


def check(value: Any) -> None:
    leaked = {}
    for one in reached(value):
        found = FIELDS.search(outputs(one))
        if found is not None:
            leaked[type(one).__name__] = found.group()
    assert leaked == {}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_table_has_every_public_name() -> None:
    assert set(VIEW) == public(Explorer)
    assert set(KERNEL) == public(KernelView)


@pytest.mark.parametrize("name", VIEW)
def test_results_of_a_view(view: Explorer, name: str, tmp_path: Path) -> None:
    check(VIEW[name](view, tmp_path))


@pytest.mark.parametrize("name", KERNEL)
def test_results_of_a_kernel(view: Explorer, name: str) -> None:
    check(KERNEL[name](view.kernels[0]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_of_a_function(view: Explorer, name: str, tmp_path: Path) -> None:
    check(FUNCTIONS[name](view, tmp_path))


def test_the_view_of_a_gpu() -> None:
    with Context(DEVICE="PYTHON", TARGET="sm_80"):
        check(explore(program).kernels[0].gpu())


def test_a_field_list_is_found() -> None:
    @dataclasses.dataclass
    class PlainList:
        number: int = 1

    with pytest.raises(AssertionError, match="PlainList"):
        check([PlainList()])


@pytest.mark.browser
@pytest.mark.parametrize(
    ("system", "light", "inverted"), [("light", "true", 0), ("light", "false", 1), ("dark", "true", 1)]
)
def test_a_page_in_an_output_has_the_colors_of_the_notebook(
    browser: Any, tmp_path: Path, system: str, light: str, inverted: int
) -> None:
    page = tmp_path / "output.html"
    page.write_text(f"<body data-jp-theme-light='{light}'>{page_frame('cores', '<p>one', '20rem')}", encoding="utf-8")
    tab = browser.new_page(color_scheme=system)
    tab.goto(page.as_uri())
    chosen = tab.evaluate("getComputedStyle(document.querySelector('iframe')).filter")
    assert ("invert" in chosen) == inverted
    assert tab.frame_locator("iframe[title=cores]").locator("p").inner_text() == "one"
    tab.close()
