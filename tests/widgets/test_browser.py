"""The standalone viewer in a real browser, on hand-made traces: no Jupyter, no engine, no network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import wait_until
from tests.support.panels import open_panel, panels_with_tabs
from tests.support.patience import milliseconds
from tests.widgets.sample_traces import big_trace, page, sample_trace, unrolled_trace
from tinyexplore.explore.glossary import TERMS
from tinyexplore.explore.tracefile.figures import figures, summary
from tinyexplore.explore.tracefile.model import Decision, Step, Transform
from tinyexplore.explore.tracefile.pictures.drawing import KERNEL_HUES, kernel_hue
from tinyexplore.explore.tracefile.pictures.graph_picture import pipeline_svg
from tinyexplore.explore.tracefile.trace import Trace

Open = Callable[..., Any]
TRACE = sample_trace()

pytestmark = pytest.mark.browser


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a trace; at the end of the test, no page may have raised an error or asked the network for anything.

    `busy`: then goes to the end of the pass that did most. `mode` and `flow` (the graph's direction): what the reader
    chose before, "" for nothing.
    """
    pages = []
    errors: list[str] = []
    requests: list[str] = []

    def open_(
        trace: Any = TRACE,
        *,
        busy: bool = True,
        scheme: str = "light",
        width: int = 1280,
        height: int = 800,
        mode: str = "workbench",
        link: str = "",
        flow: str = "down",
    ) -> Any:
        path = tmp_path / f"trace{len(pages)}.html"
        path.write_text(page(trace), encoding="utf-8")
        tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        tab.on("request", lambda request: requests.append(request.url))
        for name, chosen in (("mode", mode), ("flow", flow)):
            if chosen:
                key = f"tinyexplore.{name}"
                tab.add_init_script(f"localStorage.getItem('{key}') ?? localStorage.setItem('{key}', '{chosen}')")
        tab.goto(path.as_uri() + link)
        tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
        pages.append(tab)
        if busy:
            stage = max(trace.stages, key=lambda stage: sum(step.rule is not None for step in stage.steps)).id
            tab.evaluate(f"tinyexplore.handle.go({{stage: {stage}, graph: 'uops', place: 'passes'}})")
        return tab

    yield open_
    for tab in pages:
        tab.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def meaning(group: str, word: str) -> str:
    """The text of the glossary."""
    return next(term.meaning for term in TERMS if (term.group, term.word) == (group, word))


def state(tab: Any) -> dict[str, Any]:
    return tab.evaluate("tinyexplore.handle.state")


def lines(tab: Any, pane: str, mark: str) -> list[int]:
    """The numbers (from 0) of the marked lines of a code pane."""
    found = f".pane-{pane} .line.{mark}"
    return tab.evaluate("(where) => [...document.querySelectorAll(where)].map((line) => +line.dataset.line)", found)


def boxes(tab: Any, mark: str) -> set[str]:
    found = f".boxes .box.{mark} .label"
    return set(tab.evaluate("(where) => [...document.querySelectorAll(where)].map((text) => text.textContent)", found))


def select_box(tab: Any, words: str) -> None:
    """Selects the node of the first box with these words, which may be out of sight."""
    tab.evaluate(
        """(words) => {
          const found = [...document.querySelectorAll('.boxes .box')].find((box) => box.textContent.includes(words));
          tinyexplore.handle.select([+found.dataset.node]);
        }""",
        words,
    )


def stage(name: str) -> int:
    return next(stage.id for stage in TRACE.stages if stage.name == name)


SMALLEST_WORDS = """() => {
  const { a: zoom } = document.querySelector('.drawing .world').getCTM();
  const words = [...document.querySelectorAll('.drawing text')];
  return Math.min(...words.map((text) => parseFloat(getComputedStyle(text).fontSize) * zoom));
}"""


@pytest.mark.parametrize("width", [620, 800, 1280])
def test_the_page_opens_at_the_slowest_kernel_with_legible_frames_and_inputs_on_top(
    open_page: Open, width: int
) -> None:
    tab = open_page(busy=False, width=width, height=900)
    assert tab.inner_text(".graph .title b") == "Tensor graph"
    names = tab.evaluate("[...document.querySelectorAll('.frame:not(.product) .name')].map((name) => name.textContent)")
    assert names == ["kernel 0 · r_64_32_48", "kernel 1 · softmax_64_32"]
    assert tab.evaluate(SMALLEST_WORDS) >= 11
    canvas = tab.query_selector(".canvas").bounding_box()
    axis = "y" if tab.get_attribute(".graph", "data-flow") == "down" else "x"  # inputs on top, or at the left
    first = min(tab.query_selector_all(".boxes .box"), key=lambda box: box.bounding_box()[axis])
    assert first.query_selector(".label").text_content() == "BUFFER"
    slowest = max(TRACE.runs, key=lambda run: run.median_us).kernel
    assert state(tab)["cursor"]["kernel"] == slowest
    frame = tab.locator(".frame:not(.product) .name", has_text=f"kernel {slowest}").bounding_box()
    assert canvas["x"] <= frame["x"] <= canvas["x"] + canvas["width"]
    assert canvas["y"] <= frame["y"] <= canvas["y"] + canvas["height"]
    assert "an output of the program" in tab.inner_text(".diff") or tab.query_selector(".decision")


@pytest.mark.parametrize("trace", [big_trace(1000), unrolled_trace(30)], ids=["2000 nodes", "copies"])
def test_a_large_graph_opens_legible_too(open_page: Open, trace: Any) -> None:
    assert open_page(trace, busy=False).evaluate(SMALLEST_WORDS) >= 11


def test_arrow_keys_visit_all_passes_and_report_both_ends(open_page: Open) -> None:
    tab = open_page(busy=False)
    fired = [(stage.id, k, step.rule) for stage in TRACE.stages for k, step in enumerate(stage.steps, start=1)]
    firings = [(stage_id, k) for stage_id, k, rule in fired if rule is not None]

    def press(key: str) -> tuple[int, int]:
        tab.keyboard.press(key)
        cursor = state(tab)["cursor"]
        assert cursor["kernel"] == (TRACE.stages[cursor["stage"]].kernel or 0)
        return cursor["stage"], cursor["step"]

    tab.focus(".tinyexplore")
    assert [press("ArrowRight") for _ in firings] == firings
    assert tab.inner_text(".scrub .end") == "the last firing"
    assert press("ArrowRight") == firings[-1]
    assert "the end: " in tab.inner_text(".scrub .end")
    assert [press("ArrowLeft") for _ in firings[1:]] == firings[-2::-1]
    assert press("ArrowLeft") == (firings[0][0], 0)
    assert press("ArrowLeft") == (firings[0][0], 0)
    assert "the beginning: " in tab.inner_text(".scrub .end")


def test_the_right_arrow_in_passes_shows_the_first_firing(open_page: Open) -> None:
    tab = open_page(busy=False)
    tab.click("[data-place=passes]")
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text(".scrub .at") == "1 / 4"
    assert tab.inner_text(".detail.scroll h5") == "add_zero"


def counts(tab: Any) -> tuple[int, int]:
    """What the graph says is shown, folded, in regions and hidden, added up; and of how many that is."""
    text = tab.inner_text(".status > span")
    of = re.match(r"([\d,]+) of ([\d,]+) shown", text)
    others = re.findall(r"([\d,]+) (?:in|folded|views? folded|hidden|outside)", text)
    return sum(int(n.replace(",", "")) for n in [of[1], *others]), int(of[2].replace(",", ""))


@pytest.mark.parametrize("trace", [TRACE, big_trace(1000), unrolled_trace(30)], ids=["sample", "2000 nodes", "copies"])
def test_shown_folded_in_regions_and_hidden_are_all(open_page: Open, trace: Any) -> None:
    tab = open_page(trace, busy=False)
    for graph in ("lazy", "uops"):
        tab.evaluate(f"tinyexplore.handle.go({{graph: '{graph}', stage: {trace.stages[-1].id}}})")
        added, total = counts(tab)
        assert added == total
        if tab.query_selector(".detail-choice"):
            for detail in ("kernels", "lines", "operations", "views"):
                tab.select_option(".detail-choice", detail)
                assert counts(tab) == (total, total), detail


def parts(tab: Any) -> list[tuple[str, str, str]]:
    """Title, words and time of each part of the strip; without the kernel's name, which stands beside."""
    return tab.evaluate("""() => [...document.querySelectorAll('.pipeline .part')].map((part) => {
      const words = part.querySelector('.what').firstChild.textContent;
      return [part.querySelector('b').textContent, words, part.querySelector('.took')?.textContent ?? ''];
    })""")


@pytest.mark.parametrize("trace", [TRACE, unrolled_trace(30)], ids=["sample", "copies"])
def test_the_strip_the_footer_and_the_static_picture_have_the_same_figures(open_page: Open, trace: Any) -> None:
    tab = open_page(trace, busy=False)
    told = [[part.title, part.words, part.time] for part in figures(trace).parts]
    assert parts(tab) == told
    footer = tab.inner_text("footer .facts")
    assert footer.startswith(" · ".join(summary(trace)))
    picture = pipeline_svg(trace)
    for words in {text for part in told for text in part if text} | {" · ".join(summary(trace))}:
        assert f">{words}</text>" in picture, words


def test_the_figures_of_one_kernel_are_labeled_and_agree(open_page: Open) -> None:
    tab = open_page(busy=False)
    tab.click(".scope button:text-is('kernel 0')")
    assert parts(tab) == [[part.title, part.words, part.time] for part in figures(TRACE, 0).parts]
    assert "of kernel 0:" in tab.get_attribute("[data-place=run]", "title")
    tab.click(".scope button:text-is('all kernels')")
    assert parts(tab) == [[part.title, part.words, part.time] for part in figures(TRACE).parts]


def test_a_kernel_has_one_hue_in_pictures_and_views(open_page: Open) -> None:
    tab = open_page(busy=False)
    hue = "([...document.querySelectorAll('.frame.k-1')].map((f) => getComputedStyle(f).getPropertyValue('--hue')))[0]"
    assert int(tab.evaluate(hue)) == kernel_hue(1)
    sheet = "document.querySelector('.tinyexplore style').textContent"
    hues = re.findall(r"\.k-(\d+) ?{ ?--hue: ?(\d+)", tab.evaluate(sheet))
    assert {int(kernel): int(hue) for kernel, hue in hues} == {kernel: kernel_hue(kernel) for kernel in range(24)}
    assert len({kernel_hue(kernel) for kernel in range(KERNEL_HUES)}) == KERNEL_HUES == 24


def test_the_code_stage_of_the_strip_shows_every_listing_and_opens_one(open_page: Open) -> None:
    tab = open_page(busy=False)
    tab.click("[data-place=code]")
    assert {"C", "Assembly"} <= {name.inner_text() for name in tab.query_selector_all(".diff .listing-link b")}
    tab.click(".diff .listing-link:has-text('UOps')")
    assert tab.get_attribute(".pane-a [data-key=uops]", "aria-selected") == "true"


def test_a_schedule_of_ten_thousand_decisions_is_drawn_at_once_and_scrolls_to_its_end(open_page: Open) -> None:
    trace = big_trace(50)
    decisions = tuple(Decision(i % 50, "fuse", f"reason {i}") for i in range(10_000))
    stages = (replace(trace.stages[0], steps=(), decisions=decisions), *trace.stages[1:])
    tab = open_page(replace(trace, stages=stages), busy=False)
    took = tab.evaluate("""() => {
      tinyexplore.handle.go({stage: 1});
      const start = performance.now();
      tinyexplore.handle.go({stage: 0, step: 0});
      document.querySelector('.diff').offsetHeight;
      return performance.now() - start;
    }""")
    assert len(tab.query_selector_all(".diff .decision")) < 100
    assert took < 250
    tab.evaluate("() => { const box = document.querySelector('.diff'); box.scrollTop = box.scrollHeight; }")
    tab.wait_for_selector(".decision:has-text('reason 9999')")
    tab.click(".decision:has-text('reason 9999')")
    assert state(tab)["selected"] == [decisions[-1].node]
    assert tab.get_attribute(".decision.sel:has-text('reason 9999')", "aria-setsize") == "10000"


def test_opening_another_kernel_brings_its_graph_where_a_selection_of_it_is_found(open_page: Open) -> None:
    stages = TRACE.stages
    first = next(stage for stage in stages if stage.kernel == 0 and stage.steps)
    twin = replace(first, id=len(stages), parent=None, kernel=1)
    tab = open_page(replace(TRACE, stages=(*stages, twin)), busy=False)
    tab.evaluate(f"tinyexplore.handle.go({{stage: {first.id}, graph: 'uops', place: 'passes'}})")
    tab.click(".boxes .box:has-text('LOAD')")
    open_panel(tab, "kernels")
    tab.evaluate("tinyexplore.handle.go({kernel: 1})")
    cursor = state(tab)["cursor"]
    assert (cursor["kernel"], cursor["stage"]) == (1, twin.id)
    assert "not in this graph" not in tab.inner_text(".card")
    tab.evaluate("tinyexplore.handle.go({kernel: 0})")
    assert state(tab)["cursor"]["stage"] == first.id


def test_nodes_folded_into_a_label_count_as_shown(open_page: Open) -> None:
    tab = open_page(busy=False)
    first = next(stage for stage in TRACE.stages if stage.kernel == 0 and stage.steps)
    nodes, open_nodes = set(), list(first.before)
    while open_nodes:
        node = open_nodes.pop()
        nodes.add(node)
        open_nodes += [source for source in TRACE.nodes[node].src if source not in nodes]
    constant = next(node for node in sorted(nodes) if TRACE.nodes[node].op == "CONST")
    tab.evaluate(f"tinyexplore.handle.go({{stage: {first.id}, step: 0, graph: 'uops', place: 'passes'}})")
    tab.evaluate(f"tinyexplore.handle.select([{constant}])")
    assert "not drawn in this graph" in tab.inner_text(".card")


def test_a_listing_that_jumps_is_read_from_its_left_edge(open_page: Open) -> None:
    tab = open_page(width=1280, height=900)
    scrolled = "document.querySelector('.pane-b .listing').scrollLeft"
    tab.evaluate(f"{scrolled} = 60")
    assert tab.evaluate(scrolled) > 0
    tab.evaluate("tinyexplore.handle.go({kernel: 1})")
    assert tab.evaluate(scrolled) == 0


def test_opts_axes_columns_passes_and_operations_explain_themselves(open_page: Open) -> None:
    tab = open_page(busy=False)

    def title(where: str) -> str:
        return tab.locator(where).first.get_attribute("title") or ""

    open_panel(tab, "kernels")
    opt = TRACE.kernels[0].opts[0]
    assert meaning("opt", re.split(r"\W", opt)[0]) in title(f".kernels .chip:text-is('{opt}')")
    assert meaning("column", "GB/s") in title(".kernels th button:has-text('GB/s')")
    assert meaning("column", "time") in title(".kernels th button:has-text('time')")
    legend = tab.inner_text(".name-legend")
    assert all(f"{size}" in legend and kind in legend for _, kind, size in TRACE.kernels[0].axes)
    assert meaning("axis", "reduce") in title(".name-legend .axis:has(.axis-reduce)")
    assert meaning("stage", "LazyBuffers") in title("[data-place=lazy]")
    assert meaning("option", "NOOPT") in title("header .chip:has-text('NOOPT')") or "noopt" in tab.inner_text("header")
    assert meaning("word", "with changes") in title("[data-place=passes]")
    assert "with changes" in tab.inner_text("[data-place=passes]")
    open_panel(tab, "rewrites")
    assert meaning("pass", "simplify") in title(".passes .row:has-text('simplify')")
    wait_until(tab, "document.querySelector('.listing .t-call[title]') !== null")
    # before any pointer comes: one that a title is given under it shows it a move later
    opcodes = tab.locator(".listing[data-language=asm] .t-call[title]").all_inner_texts()
    assert "vfmadd231ps" in {word.strip() for word in opcodes}, opcodes
    box = tab.evaluate("document.querySelector('.boxes .box title').textContent")
    assert any(meaning("op", op) in box for op in ("BUFFER", "MUL"))
    open_panel(tab, "glossary")
    tab.fill(".glossary input", "lanes of one vector instruction")
    assert [word.inner_text() for word in tab.query_selector_all(".glossary dt")] == ["VECTOR"]


def test_python_names_are_in_the_graph_the_listing_and_memory(open_page: Open) -> None:
    names = {0: "x", 1: "w", 2: "b", 4: "y"}
    makers = {3: 0, 4: 1}
    told = [replace(one, name=names.get(one.id, ""), maker=makers.get(one.id)) for one in TRACE.buffers]
    sources = iter(("x", "w", "b"))
    nodes = [replace(one, name=next(sources)) if one.op == "BUFFER" else one for one in TRACE.nodes]
    tab = open_page(replace(TRACE, buffers=tuple(told), nodes=tuple(nodes)), busy=False)
    drawn = tab.evaluate("[...document.querySelectorAll('.boxes .label')].map((label) => label.textContent)")
    assert {"x", "w", "b"} <= set(drawn) and "BUFFER" not in drawn
    argument = "[...document.querySelectorAll('.pane-b .argument')].map((one) => one.textContent + one.dataset.name)"
    assert {"data1x", "data2w", "data3b"} <= set(tab.evaluate(argument))
    assert "‹x›" in tab.evaluate(
        "getComputedStyle(document.querySelector('.argument[data-name=x]'), '::after').content"
    )
    tab.click("[data-place=passes]")
    drawn = tab.evaluate("[...document.querySelectorAll('.boxes .box text')].map((text) => text.textContent)")
    assert {"x", "w"} <= set(drawn) and any(text.startswith("x[") for text in drawn)
    open_panel(tab, "memory")
    lanes = [lane.inner_text() for lane in tab.query_selector_all(".memory .lane:not(.total) .label")]
    assert [lane.split(":")[0] for lane in lanes] == ["x", "w", "b", "result of kernel 0", "y, result of kernel 1"]


def test_the_page_mounts_itself_and_draws_every_view(open_page: Open) -> None:
    tab = open_page()
    assert tab.inner_text("header .name") == "(x @ w + b).softmax(-1)"
    assert tab.inner_text("header .chips").split("\n")[0].startswith("device LLVM")
    assert "came from the disk cache" in tab.inner_text(".banner")
    assert len(tab.query_selector_all(".pipeline .part")) == 7
    assert len(tab.query_selector_all(".boxes .box")) == 19
    assert len(tab.query_selector_all(".pane-a .line")) == 10
    assert len(tab.query_selector_all(".pane-b .line")) == 16
    assert len(tab.query_selector_all(".pane-c .line")) == 14
    assert "9 folded into labels" in tab.inner_text(".status")
    assert "mul_one" in tab.inner_text(".detail.scroll")


def test_a_python_line_highlights_the_graph_and_the_assembly(open_page: Open) -> None:
    tab = open_page()
    tab.click(".pane-a .line >> nth=4")
    assert lines(tab, "a", "sel") == [4]
    assert {"LOAD", "MUL", "REDUCE ADD", "ADD", "STORE"} <= boxes(tab, "rel")
    assert "RANGE" not in boxes(tab, "rel")
    assert 4 in lines(tab, "c", "rel")  # vfmadd231ps
    assert 5 not in lines(tab, "c", "rel")  # inc rcx, which only counts


def test_an_assembly_line_leads_back_to_the_python_line(open_page: Open) -> None:
    tab = open_page()
    tab.click(".pane-c .line >> nth=10")  # the store
    assert lines(tab, "c", "sel") == [10]
    assert lines(tab, "b", "sel") == [12]
    assert lines(tab, "a", "rel") == [4]


def test_hovering_a_line_outlines_its_relatives(open_page: Open) -> None:
    tab = open_page()
    tab.hover(".pane-b .line >> nth=8")
    assert lines(tab, "b", "hov") == [8]
    assert lines(tab, "c", "hov") == [4]
    tab.hover("header")
    assert lines(tab, "c", "hov") == []


def test_a_box_of_the_graph_selects_its_node(open_page: Open) -> None:
    tab = open_page(height=1000)
    tab.click(".boxes .box:has-text('REDUCE ADD')")
    assert boxes(tab, "sel") == {"REDUCE ADD"}
    assert lines(tab, "a", "rel") == [4]
    assert "cell 3:5" in tab.inner_text(".card")
    tab.keyboard.press("Escape")
    assert state(tab)["selected"] == []


def test_arrow_keys_step_through_firings_and_passes(open_page: Open) -> None:
    tab = open_page()
    assert tab.inner_text(".scrub .at") == "4 / 4"
    first = state(tab)["cursor"]["step"]
    tab.focus(".tinyexplore")
    tab.keyboard.press("ArrowLeft")
    assert tab.inner_text(".scrub .at") == "3 / 4"
    assert state(tab)["cursor"]["step"] < first
    tab.keyboard.press("Home")
    assert tab.inner_text(".scrub .at") == "0 / 4"
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text(".detail.scroll h5") == "add_zero"
    tab.keyboard.press("ArrowDown")
    assert state(tab)["cursor"]["stage"] == stage("reduce to loop")
    assert state(tab)["cursor"]["step"] == 0
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text(".detail.scroll h5") == "reduce_to_loop"
    assert len(tab.query_selector_all(".cell.add")) > 2
    tab.keyboard.press("ArrowUp")
    assert state(tab)["cursor"]["stage"] == stage("simplify")


def test_a_transform_is_one_step_of_the_whole_graph_with_its_law_and_its_source(open_page: Open) -> None:
    law = "Unrolls the loop that is left.\n\n    for k: s += x[k]  →  s += x[0]; s += x[1]"
    transform = Transform(0, "unroll", law, "codegen/rewrites/unroll.py", 7, "def unroll(sink, lowering): ...")
    old = TRACE.stages[stage("reduce to loop")]
    steps = (Step(None, old.before[0], old.after[0], 0.0),)
    changed = replace(old, name="unroll", steps=steps, transform=0)
    stages = tuple(changed if one is old else one for one in TRACE.stages)
    tab = open_page(replace(TRACE, stages=stages, transforms=(transform,)))
    tab.evaluate("(stage) => tinyexplore.handle.go({panel: 'rewrites', stage, step: 0, place: 'passes'})", old.id)
    assert "Before unroll" in tab.inner_text(".diff")
    assert tab.inner_text(".graph .title").startswith("UOp graph")
    assert "before unroll" in tab.inner_text(".graph .title")
    tab.focus(".tinyexplore")
    tab.keyboard.press("ArrowRight")
    assert state(tab)["cursor"]["stage"] == old.id and state(tab)["cursor"]["step"] == 1
    assert tab.query_selector_all(".cell.del") and tab.query_selector_all(".cell.add")
    detail = tab.inner_text(".detail.scroll")
    assert "transform of the whole graph" in detail and "for k: s += x[k]" in detail
    assert "def unroll(sink, lowering)" in detail
    before, after = (under(TRACE, roots) for roots in (old.before, old.after))
    assert f"{len(after - before)} added, {len(before - after)} removed" in detail


def test_the_laws_of_opts_are_shown_as_loop_nests_before_and_after(open_page: Open) -> None:
    tab = open_page()
    tab.evaluate(
        "(stage) => tinyexplore.handle.go({panel: 'rewrites', stage, step: 0, place: 'passes'})", stage("optimize")
    )
    for law in TRACE.laws:
        assert f"{law.name} {law.words.replace('`', '')}:" in tab.inner_text(".diff")
    shown = [nests.inner_text().split("\n") for nests in tab.query_selector_all(".diff .nests")]
    assert shown == [[law.before, "→", law.after] for law in TRACE.laws]


def under(trace: Trace, roots: tuple[int, ...]) -> set[int]:
    """The nodes of a graph."""
    found, waiting = set(roots), list(roots)
    while waiting:
        fresh = set(trace.nodes[waiting.pop()].src) - found
        found |= fresh
        waiting.extend(fresh)
    return found


def test_passes_that_change_nothing_are_hidden_by_default(open_page: Open) -> None:
    tab = open_page()
    assert "strength of divisions" not in tab.inner_text(".passes")
    tab.uncheck(".passes input")
    assert "strength of divisions" in tab.inner_text(".passes")


def test_a_program_is_its_nodes_in_order_and_no_change_of_a_tree(open_page: Open) -> None:
    tab = open_page()
    (linearize,) = [stage for stage in TRACE.stages if stage.name == "linearize"]
    tab.click(".row:has-text('linearize')")
    shown = tab.evaluate("() => [...document.querySelectorAll('.diff .cell')].map((cell) => +cell.dataset.node)")
    assert shown == list(linearize.after)
    assert not tab.query_selector_all(".cell.del, .cell.add")
    assert f"{len(linearize.after)} UOps in order" in tab.inner_text(".detail.scroll")


def test_boxes_keep_their_positions_between_steps(open_page: Open) -> None:
    tab = open_page()
    places = (
        "() => Object.fromEntries([...document.querySelectorAll('.boxes .box')]"
        ".map((box) => [box.dataset.id, box.style.transform]))"
    )
    before = tab.evaluate(places)
    tab.focus(".tinyexplore")
    tab.keyboard.press("ArrowLeft")
    after = tab.evaluate(places)
    moved = [key for key in before if key in after and before[key] != after[key]]
    assert len(moved) <= len(before) // 4


def test_search_marks_matches_and_enter_visits_them(open_page: Open) -> None:
    tab = open_page()
    tab.focus(".tinyexplore")
    tab.keyboard.press("/")
    tab.keyboard.type("op:load /data[12]/")
    assert tab.inner_text(".found") == "2 found"
    assert boxes(tab, "hit") == {"LOAD"}
    tab.keyboard.press("Enter")
    assert boxes(tab, "sel") == {"LOAD"}
    tab.keyboard.press("Escape")
    assert boxes(tab, "hit") == set()


def test_keys_show_origin_and_history(open_page: Open) -> None:
    tab = open_page()
    tab.click(".row:has-text('multiply-add')")
    tab.focus(".tinyexplore")
    tab.keyboard.press("End")
    tab.click(".boxes .box:has-text('MULACC')")
    tab.focus(".tinyexplore")
    tab.keyboard.press("b")
    told = tab.inner_text(".history")
    assert "reduce_to_loop" in told and "mul_add_to_mulacc" in told
    tab.keyboard.press("o")
    assert state(tab)["cursor"]["graph"] == "lazy"
    kinds = {TRACE.nodes[node].kind for node in state(tab)["selected"]}
    assert kinds == {"lazybuffer"}


def test_the_graph_is_walked_by_keyboard(open_page: Open) -> None:
    tab = open_page()
    tab.focus(".tinyexplore")
    tab.keyboard.press("f")
    select_box(tab, "STORE")
    tab.keyboard.press("Shift+ArrowUp")
    assert boxes(tab, "sel") <= {"INDEX", "ADD"}
    tab.keyboard.press("Shift+ArrowDown")
    assert boxes(tab, "sel") == {"STORE"}


def test_the_dependence_filter_shows_only_sources_and_users(open_page: Open) -> None:
    tab = open_page()
    select_box(tab, "REDUCE ADD")
    tab.focus(".tinyexplore")
    tab.keyboard.press("i")
    assert "outside the dependency cone" in tab.inner_text(".status")
    assert "data3" not in tab.text_content(".boxes")
    tab.keyboard.press("i")
    assert len(tab.query_selector_all(".boxes .box")) == 19


def test_the_dependence_filter_may_be_limited_to_a_number_of_edges(open_page: Open) -> None:
    tab = open_page()
    select_box(tab, "REDUCE ADD")
    tab.focus(".tinyexplore")
    tab.keyboard.press("i")
    whole = len(tab.query_selector_all(".boxes .box"))
    tab.click(".hops button:has-text('1')")
    near = len(tab.query_selector_all(".boxes .box"))
    tab.click(".hops button:has-text('2')")
    assert 1 < near < len(tab.query_selector_all(".boxes .box")) < whole
    assert counts(tab)[0] == counts(tab)[1]
    tab.click(".hops button:has-text('all')")
    assert len(tab.query_selector_all(".boxes .box")) == whole


def test_decisions_give_their_reasons(open_page: Open) -> None:
    tab = open_page()
    tab.click(".row:has-text('schedule')")
    assert state(tab)["cursor"]["graph"] == "lazy"
    tab.click(".decision:has-text('two users')")
    assert boxes(tab, "sel") == {"ADD"}
    assert "two users" in tab.inner_text(".card")


def test_the_kernel_table_sorts_and_chooses(open_page: Open) -> None:
    tab = open_page()
    tab.click("[data-place=kernels]")
    tab.click(".kernels th:has-text('time') button")
    names = [row.inner_text() for row in tab.query_selector_all(".kernels tbody .kernel-name")]
    assert names == ["r_64_32_48", "softmax_64_32"]
    tab.click(".kernels tbody tr:has-text('softmax')")
    assert state(tab)["cursor"]["kernel"] == 1
    assert "softmax_64_32" in tab.inner_text(".pane-b")


def test_symbolic_sizes_are_shown_as_they_are_written(open_page: Open) -> None:
    axes = (("g0", "global", "4*v"), *TRACE.kernels[0].axes[1:])
    kernel = replace(TRACE.kernels[0], name="r_4v_32", axes=axes)
    chosen = next(node for node in TRACE.nodes if node.shape)
    nodes = tuple(replace(node, shape=("v=3", 4)) if node is chosen else node for node in TRACE.nodes)
    tab = open_page(replace(TRACE, kernels=(kernel, *TRACE.kernels[1:]), nodes=nodes))
    open_panel(tab, "kernels")
    assert tab.locator(".axis-global", has_text="4v").count() > 0
    tab.click(".part:has-text('LazyBuffers')")
    tab.focus(".tinyexplore")
    tab.keyboard.press("/")
    tab.keyboard.type("shape:v=3×4")
    assert tab.inner_text(".found") == "1 found"


def test_timing_and_memory_are_drawn(open_page: Open) -> None:
    tab = open_page()
    open_panel(tab, "timing")
    assert "11.8 µs" in tab.inner_text(".timing")
    assert len(tab.query_selector_all(".timing .whisker")) == 2
    open_panel(tab, "memory")
    assert len(tab.query_selector_all(".memory .life")) == 5
    assert "peak 34.9 kB" in tab.inner_text(".memory")


def test_the_theme_follows_the_system(open_page: Open) -> None:
    color = "getComputedStyle(document.querySelector('.tinyexplore')).backgroundColor"
    assert open_page(scheme="dark").evaluate(color) == "rgb(20, 24, 31)"
    assert open_page(scheme="light").evaluate(color) == "rgb(255, 255, 255)"


def test_the_theme_of_jupyterlab_takes_precedence(open_page: Open) -> None:
    tab = open_page(scheme="light")
    tab.evaluate("document.body.dataset.jpThemeLight = 'false'")
    tab.wait_for_selector(".tinyexplore[data-theme=dark]", timeout=milliseconds(2))


OVERLAPS = """() => {
  const parts = ['.pipeline', '.graph', '.codes .code', '.panel-tabs', '.stepper', 'footer'];
  const boxes = parts.flatMap((part) => [...document.querySelectorAll(part)].map((e) => [part, e.getBoundingClientRect()]));
  const over = [];
  boxes.forEach(([name, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    const meet = a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    if (meet) over.push(`${name} and ${other}`);
  }));
  return over;
}"""


@pytest.mark.parametrize("width", [540, 600, 800])
def test_a_narrow_notebook_has_all_controls_without_overlap(open_page: Open, width: int) -> None:
    tab = open_page(busy=False, width=width, height=980)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERLAPS) == []
    for part in (".graph", ".pane-all", ".passes", ".diff"):
        box = tab.query_selector(part).bounding_box()
        assert box["width"] > 120 and box["height"] > 60, part
    assert [pane.get_attribute("data-pane") for pane in tab.query_selector_all(".code")] == ["all"]
    strip = ", .pipeline button" if width > 720 else ""  # where it is one line, it scrolls
    for control in tab.query_selector_all(f".graph > .bar button, .graph > .bar input{strip}"):
        box = control.bounding_box()
        assert box is None or box["x"] + box["width"] <= width, control.inner_text()
    tab.click("button:text-is('fit')")
    in_menu = tab.is_visible(".overflow")  # where the bar has no room for them
    assert in_menu == (width == 540)
    if in_menu:
        tab.click(".overflow")
    tab.select_option(".detail-choice", "views")
    assert "27" not in tab.inner_text(".status") and "folded into edges" not in tab.inner_text(".status")
    if in_menu:
        tab.click(".overflow")
    tab.click(".keys-menu summary")
    assert "move in the graph" in tab.inner_text(".keys-menu")
    tab.click(".keys-menu summary")
    tab.click(".pane-all [data-key=asm]")
    assert tab.evaluate("document.querySelectorAll('.pane-all .line').length") == 14
    tab.click("[data-place=python]")
    assert tab.get_attribute(".pane-all [data-key='source 0']", "aria-selected") == "true"
    tab.click("[data-place=code]")
    tab.click(".diff .listing-link:has-text('Assembly')")
    assert tab.get_attribute(".pane-all [data-key=asm]", "aria-selected") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_cell_of_a_notebook_with_its_side_bar_open_the_graph_has_room(
    open_page: Open, screenshots: Any, scheme: str
) -> None:
    tab = open_page(busy=False, width=366, height=1200, scheme=scheme)
    as_in_a_cell = "const it = document.querySelector('.tinyexplore'); delete it.dataset.page; it.style.setProperty('--height', '780px')"
    tab.evaluate(as_in_a_cell)
    for width in (366, 480, 600, 800):
        tab.set_viewport_size({"width": width, "height": 1200})
        wait_until(tab, f"document.querySelector('.tinyexplore').clientWidth === {width - 2}")
        for panel in ("rewrites", "debugger"):
            tab.evaluate(f"tinyexplore.handle.go({{panel: '{panel}', place: 'lazy'}})")
            part = ".canvas" if panel == "rewrites" else ".graph"
            assert tab.query_selector(part).bounding_box()["height"] >= 260, (width, panel)
            assert tab.evaluate(OVERLAPS) == [], (width, panel)
            tab.screenshot(path=screenshots / f"cell_{width}_{panel}_{scheme}.png")
        if width <= 720:
            assert tab.query_selector(".pipeline").bounding_box()["height"] <= 60
            assert tab.query_selector("header").bounding_box()["height"] <= 66
        for place in ("run", "python", "code"):  # the strip follows where the reader goes, the window stays
            tab.evaluate(f"tinyexplore.handle.go({{place: '{place}'}})")
            wait_until(
                tab,
                """() => {
                  const [strip, part] = [".pipeline", ".part[aria-current]"].map((one) => document.querySelector(one).getBoundingClientRect());
                  return part.left >= strip.left - 1 && part.right <= strip.right + 1;
                }""",
            )
        tabs = panels_with_tabs(tab)
        assert {"kernels", "memory", "glossary", "rewrites"} <= set(tabs)
        for panel in ("memory", "glossary", tabs[-1], "rewrites"):  # each tab can be clicked
            open_panel(tab, panel)
            assert state(tab)["cursor"]["panel"] == panel
        assert tab.evaluate("[scrollX, scrollY]") == [0, 0]


def test_panes_merge_and_split_with_the_window_size(open_page: Open) -> None:
    tab = open_page(busy=False)
    assert len(tab.query_selector_all(".code")) == 3
    tab.set_viewport_size({"width": 700, "height": 900})
    tab.wait_for_selector(".pane-all")
    tab.click(".pane-all .line >> nth=4")
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.wait_for_selector(".pane-c")
    assert 4 in lines(tab, "c", "rel")


def test_a_graph_of_two_thousand_nodes_counts_hidden_nodes_and_can_show_all(open_page: Open) -> None:
    tab = open_page(big_trace(1000))
    assert "hidden" in tab.inner_text(".status")
    assert "400 of" in tab.inner_text(".status")
    tab.click(".status button:has-text('show all')")
    tab.wait_for_selector(".status button:has-text('at most 400')")
    assert "hidden" not in tab.inner_text(".status")
    took = tab.evaluate(
        "() => { const t = performance.now(); tinyexplore.handle.go({step: 10}); return performance.now() - t }"
    )
    assert took < 2000


def test_selection_and_cursor_can_be_set_and_emit_events(open_page: Open) -> None:
    tab = open_page()
    told = """async () => {
      const data = tinyexplore.fromBase64(document.getElementById('trace').textContent);
      const trace = await tinyexplore.readTrace(data);
      const heard = [];
      const place = document.createElement('div');
      document.body.append(place);
      const handle = tinyexplore.mount(place, trace, { onSelect: (n) => heard.push(n), initial: { selected: [8] } });
      const first = handle.state.selected;
      handle.select([7]);
      const silent = heard.length;
      place.querySelectorAll('.pane-a .line')[5].click();
      handle.destroy();
      return { first, silent, heard: heard.length, left: place.childElementCount };
    }"""
    assert tab.evaluate(told) == {"first": [8], "silent": 0, "heard": 1, "left": 0}


def test_a_cursor_from_outside_may_name_only_a_stage_and_is_made_valid(open_page: Open) -> None:
    tab = open_page()
    there = stage("multiply-add")
    tab.evaluate(f"tinyexplore.handle.go({{stage: {there}}})")
    cursor = state(tab)["cursor"]
    ended = [step.rule is not None for step in TRACE.stages[there].steps].index(True) + 1
    assert (cursor["stage"], cursor["kernel"], cursor["step"]) == (there, 0, ended)
    tab.evaluate("tinyexplore.handle.go({stage: 999, step: 10000, kernel: -3})")
    cursor = state(tab)["cursor"]
    assert (cursor["stage"], cursor["kernel"], cursor["step"]) == (there, 0, len(TRACE.stages[there].steps))


def test_copies_are_one_box_that_a_double_click_opens(open_page: Open) -> None:
    tab = open_page(unrolled_trace(30))
    assert "210 in 7 regions" in tab.inner_text(".status")
    before = len(tab.query_selector_all(".boxes .box"))
    assert before == 11
    tab.evaluate("""document.querySelector('.boxes .box.region rect:nth-of-type(2)')
      .dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))""")
    assert len(tab.query_selector_all(".boxes .box")) > before
    tab.click(".status button:has-text('close 1 region')")
    assert len(tab.query_selector_all(".boxes .box")) == before
    tab.click(".boxes .box.region >> nth=0")
    for expected in (True, False):
        tab.keyboard.press("e")
        assert (len(tab.query_selector_all(".boxes .box")) > before) is expected


def test_a_frame_names_its_kernel_and_a_click_on_it_chooses_that_one(open_page: Open) -> None:
    tab = open_page(busy=False)
    assert state(tab)["cursor"]["kernel"] == 0
    tab.click("button:text-is('fit')")
    for event in ("pointerdown", "pointerup"):  # it may be out of sight
        tab.locator(".frame[data-kernel='1'] rect").dispatch_event(event, {"button": 0})
    assert state(tab)["cursor"]["kernel"] == 1
    assert "softmax_64_32" in tab.inner_text(".pane-b")


def test_every_control_has_a_name_for_screen_readers(open_page: Open) -> None:
    tab = open_page()
    nameless = """() => [...document.querySelectorAll('button, input, [role=tab], [role=separator]')]
      .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.closest('label')))
      .map((e) => e.outerHTML)"""
    assert tab.evaluate(nameless) == []


def test_a_damaged_page_shows_an_error_instead_of_the_views(browser: Any, tmp_path: Path) -> None:
    wrong = replace(TRACE, nodes=(replace(TRACE.nodes[0], src=(0,)), *TRACE.nodes[1:]))
    whole = page(TRACE)
    at = whole.index('id="trace"') + 2000
    damaged = {
        "nodes[0].src[0]: 0 is no earlier one of the nodes (there are none)": page(wrong),
        "The gzip data is damaged": whole[:at] + "AAAAAAAA" + whole[at + 8 :],
    }
    for number, (why, text) in enumerate(damaged.items()):
        path = tmp_path / f"{number}.html"
        path.write_text(text, encoding="utf-8")
        tab = browser.new_page()
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-tinyexplore=failed]", state="attached", timeout=milliseconds(15))
        told = tab.locator("#explorer[role=alert]").text_content()
        tab.close()
        assert "The explorer cannot show" in told and why in told


def test_lines_are_colored_near_the_viewport_and_panels_are_created_when_opened(
    open_page: Open,
) -> None:
    long = [replace(program, lines=program.lines * 60) for program in TRACE.programs]
    tab = open_page(replace(TRACE, programs=tuple(long)))
    last = "document.querySelector('.pane-c .chunk:last-child .line:last-child code').textContent"
    plain = tab.evaluate(last)
    colored = ".pane-c .chunk:{} .line code span[class^=t-]"
    assert tab.query_selector(colored.format("first-child")) is not None
    assert plain and tab.query_selector(colored.format("last-child")) is None
    tab.evaluate("document.querySelector('.pane-c .listing').scrollTop = 1e6")
    tab.wait_for_selector(colored.format("last-child"), state="attached")
    assert tab.evaluate(last) == plain
    assert tab.query_selector(".glossary") is None
    open_panel(tab, "glossary")
    assert tab.is_visible(".glossary dt")
    tab.keyboard.press("ArrowRight")  # the stepper reacts also when it is hidden
    assert state(tab)["cursor"]["panel"] == "rewrites"


def test_the_rewrites_play_from_firing_to_firing_and_pause(open_page: Open) -> None:
    tab = open_page()
    tab.evaluate(f"tinyexplore.handle.go({{stage: {stage('simplify')}, step: 0}})")
    tab.select_option(".stepper .speed >> visible=true", "4")
    tab.focus(".tinyexplore")
    tab.keyboard.press(" ")
    wait_until(tab, "tinyexplore.handle.state.cursor.step > 1")
    assert tab.inner_text(".play-firings >> visible=true") == "pause"
    tab.keyboard.press(" ")
    at = state(tab)["cursor"]
    tab.wait_for_timeout(600)
    assert state(tab)["cursor"] == at
    assert tab.inner_text(".play-firings >> visible=true") == "play"
