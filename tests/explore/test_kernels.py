"""The kernels of a view as objects, and how results display."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.explore.notebook.attribute_hints import FORMER, find_replacement
from tinyexplore.explore.notebook.kernels import AvailableOpts, Kernels, KernelView
from tinyexplore.explore.notebook.panels import Panels
from tinyexplore.explore.tracefile.result_display import CONSOLE_WIDTH, Table


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = (Tensor.rand(16, 16).realize() for _ in range(2))
    return explore(lambda: (x @ w).softmax(), repeat=2, keep_inputs=True)


class Cells(HTMLParser):
    """The texts of a page's table cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_kernels_are_a_sequence_by_number_and_by_name(view: Explorer) -> None:
    kernels = view.trace.kernels
    assert isinstance(view.kernels, Kernels) and len(view.kernels) == len(kernels)
    assert [one.info for one in view.kernels] == list(kernels)
    assert view.kernels[-1].number == len(kernels) - 1
    assert [one.number for one in view.kernels[:1]] == [0]
    assert view.kernels[kernels[0].name].number == 0
    with pytest.raises(IndexError, match=f"kernel 9: this view has {len(kernels)} kernels"):
        view.kernels[9]
    with pytest.raises(KeyError, match=kernels[0].name):
        view.kernels["no such kernel"]


def test_a_kernel_has_its_listings_and_samples(view: Explorer) -> None:
    kernel = view.kernels[0]
    assert (kernel.name, kernel.opts) == (view.trace.kernels[0].name, view.trace.kernels[0].opts)
    program = next(one for one in view.trace.programs if one.kernel == 0 and one.language == "c")
    assert kernel.listing("c") == "\n".join(line.text for line in program.lines)
    assert kernel.run is not None and kernel.run.kernel == 0
    with pytest.raises(ValueError, match="no listing 'fortran'; .*: uops, llvm"):
        kernel.listing("fortran")


def test_opts_are_offered_applied_and_removed(view: Explorer) -> None:
    kernel = view.kernels[0]
    kernel.set_opts()
    available = kernel.available_opts()
    assert isinstance(available, AvailableOpts) and "UPCAST(0, 4)" in available
    branch = kernel.apply("UPCAST(0, 4)")
    assert (branch.status, branch.kernels[0].opts) == ("done", ("UPCAST(0, 4)",))
    assert kernel.branch == branch and branch in kernel.branches
    assert kernel.undo().kernels[0].opts == ()
    assert kernel.apply("UPCAST(9, 4)").status == "failed"
    assert kernel.use_heuristics().kernels[0].opts == kernel.opts
    text = kernel.edit_text("opts")
    assert kernel.edit("opts", text).kernels[0].opts == kernel.opts


def test_analyses_are_those_of_the_view(view: Explorer) -> None:
    kernel = view.kernels[0]
    assert kernel.why_opts() == view.kernels[0].why_opts()
    assert kernel.caches(opts=()).total == view.kernels[0].caches(opts=()).total
    assert kernel.debug().step().position == 1
    assert kernel.translate(["c"]).text("c")
    assert "import" in kernel.reproducer()


def test_results_display_as_text_and_as_a_table(view: Explorer) -> None:
    kernel = view.kernels[0]
    node = view.trace.where(op="ADD", kind="uop")[-1]
    total = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")[0]
    for result in (
        view.kernels,
        kernel,
        kernel.why_opts(),
        kernel.available_opts(),
        view.why_not(node),
        view.why_kernels(total, total.src[0]),
    ):
        text, rows = repr(result), Cells(result._repr_html_()).rows
        assert f"{type(result).__name__}(" not in text
        assert max(map(len, result.table().text().splitlines())) <= CONSOLE_WIDTH
        assert len(rows) > 1 or "0 could fire, 0 cannot" in text
        assert len({len(row) for row in rows if any(row)}) <= 1


def test_a_branch_displays_its_kernels(view: Explorer) -> None:
    branch = view.kernels[0].set_opts()
    head, row = Cells(branch._repr_html_()).rows
    assert head == ["kernel", "opts", "time", "as captured, interleaved", "compared", "note"]
    assert row[:2] == [branch.kernels[0].name, "no opts"]


def test_texts_of_a_table_are_escaped_and_wrapped() -> None:
    table = Table("<title>", ("a", "b"), (("<b>", "word " * 40), ("one\ntwo", "x")), ("a & b",))
    assert "<b>" not in table.html() and "&lt;b&gt;" in table.html() and "a &amp; b" in table.html()
    lines = table.text().splitlines()
    assert max(map(len, lines)) <= CONSOLE_WIDTH
    assert lines[1].split() == ["a", "b"] and lines[-3].split() == ["one", "x"] and lines[-2].split() == ["two"]


def test_a_kernel_view_is_found_by_tab() -> None:
    public = [name for name in dir(KernelView) if not name.startswith("_")]
    assert {"why_opts", "available_opts", "apply", "caches", "debug", "gpu", "edit"} <= set(public)
    assert all(getattr(KernelView, name).__doc__ for name in public)


def test_an_explorer_has_at_most_twenty_names_each_with_a_docstring() -> None:
    names = [name for name in dir(Explorer()) if not name.startswith("_")]
    assert len(names) <= 20
    for kind in (Explorer, KernelView, Kernels, Panels):
        public = [name for name in vars(kind) if not name.startswith("_")]
        assert [name for name in public if not getattr(kind, name).__doc__] == []


def test_a_former_name_raises_an_error_with_its_replacement() -> None:
    for name in FORMER:
        assert name not in dir(Explorer())
        with pytest.raises(AttributeError, match=re.escape(find_replacement(name))):
            getattr(Explorer(), name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("kernel", "did you mean kernels"), ("why", "use view.verdict()"), ("verdct", "did you mean verdict")],
)
def test_a_misspelled_name_of_a_view_suggests_the_right_one(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"'Explorer' object has no attribute '{name}'; {re.escape(hint)}"):
        getattr(Explorer(), name)


def test_a_misspelled_name_of_a_result_suggests_the_right_one(view: Explorer) -> None:
    kernel = view.kernels[0]
    for one, name, hint in (
        (kernel, "verdit", "did you mean verdict"),
        (kernel, "why", "use verdict()"),
        (view.kernels, "widgets", "did you mean widget"),
        (view.panels, "timelines", "did you mean timeline"),
        (view.trace, "node", "did you mean nodes"),
        (view.trace.nodes[0], "shapes", "did you mean shape"),
        (view.fusion, "cuts", "did you mean cut"),
        (view.rules, "match", "did you mean matches"),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}; {hint}")):
            getattr(one, name)
    with pytest.raises(AttributeError, match="'_nothing'$"):
        _ = kernel._nothing  # type: ignore[attr-defined]


def test_the_branches_of_a_view_are_a_table(view: Explorer) -> None:
    branch = view.kernels[0].branch
    assert branch in view.whatif.branches
    for text in (repr(view.whatif), repr(view.whatif.branches), view.whatif.branches._repr_html_()):
        assert "Branch(" not in text and "branch" in text
