"""Stages with text, and dialects: a foreign trace loads, is validated, and works in all parts of the explorer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tinyexplore.explore import Explorer, TraceFormatError, compare
from tinyexplore.explore.exports.html_export import static_html, summary_text
from tinyexplore.explore.tracefile.codec import trace_to_bytes, trace_to_json
from tinyexplore.explore.tracefile.dialect import is_tensor, language_name, level_for
from tinyexplore.explore.tracefile.figures import figures
from tinyexplore.explore.tracefile.line_origins import origins
from tinyexplore.explore.tracefile.model import (
    TRACE_VERSION,
    BackEdge,
    Dialect,
    Frame,
    Language,
    Level,
    Node,
    Region,
    Source,
    Stage,
    StageText,
    TextLine,
)
from tinyexplore.explore.tracefile.pictures.table_pictures import listing_svg, passes_svg
from tinyexplore.explore.tracefile.trace import Trace, trace_from_bytes, trace_from_json

DIALECT = Dialect(
    "toyc",
    "1.0",
    (Level("tir", "instruction", "instructions", "tensors"), Level("place", "place", "places", "lines")),
    (Language("tir", "Toy IR"), Language("tasm", "Toy assembly")),
    ("rewrites", "history", "glossary"),
    ("the options of the run",),
)


def node(number: int, kind: str, op: str, src: tuple[int, ...] = (), user: int | None = None) -> Node:
    return Node(number, kind, op, src, "f32", (4,), "", f"d{number}", user, op, "", "alu")


def stage(number: int, name: str, after: tuple[int, ...] = ()) -> Stage:
    return Stage(number, name, None, None, (), after, float(number), 1.0, (), (), ())


def toy_trace() -> Trace:
    """A graph of three instructions with a loop, two texts in one language, one in another, and a pass without a
    change."""
    first = tuple(
        TextLine(text, nodes) for text, nodes in [("f:", ()), ("  %a = load x", (0,)), ("  %b = add %a, %a", (1,))]
    )
    second = (TextLine("f:", (), 0), TextLine("  %a = load x", (0,), 1), TextLine("  %b = shl %a, 1", (1,), 2))
    third = (TextLine("f:", ()), TextLine("  ld r1, x", (0,)), TextLine("  sll r1, 1", (1, 3)))
    return Trace(
        version=TRACE_VERSION,
        title="toy program",
        options=(),
        sources=(Source(0, "toy.py", "x = load()\ny = x + x\n"),),
        frames=(Frame(0, 0, 1, "f"), Frame(1, 0, 2, "f")),
        nodes=(
            node(0, "tir", "LOAD", (), 0),
            node(1, "tir", "ADD", (0, 0), 1),
            node(2, "tir", "PHI", (1,)),
            node(3, "place", "", (), 1),
        ),
        rules=(),
        stages=(stage(0, "parse", (2,)), stage(1, "combine"), stage(2, "nothing"), stage(3, "emit")),
        links=(),
        kernels=(),
        programs=(),
        runs=(),
        buffers=(),
        messages=(),
        stage_texts=(
            StageText(0, 0, "tir", first),
            StageText(1, 1, "tir", second, "", 0),
            StageText(2, 3, "tasm", third, "", 1),
        ),
        regions=(Region(0, "f", "function", (0,)), Region(1, "loop", "block", (1, 2), 0)),
        back_edges=(BackEdge(2, 2),),
        dialect=DIALECT,
    )


def test_a_trace_of_texts_round_trips_unchanged(tmp_path: Path) -> None:
    trace = toy_trace()
    assert trace_from_json(trace_to_json(trace)) == trace == trace_from_bytes(trace_to_bytes(trace))
    assert Trace.load(trace.save(tmp_path / "toy.json.gz")) == trace


def damaged(path: list[Any], value: Any) -> str:
    data = json.loads(trace_to_json(toy_trace()))
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (["nodes", 0, "kind"], "uop", r"nodes\[0\].kind: 'uop' is not one of"),
        (["dialect"], None, "one of lazybuffer, uop"),
        (["dialect", "levels", 0, "role"], "boss", "boss"),
        (["stage_texts", 1, "before"], 1, "no earlier one of the stage_texts"),
        (["stage_texts", 1, "lines", 2, "origin"], 3, r"stage_texts\[1\].lines\[2\].origin: line 3 does not exist"),
        (["stage_texts", 0, "lines", 0, "origin"], 0, "before has 0 lines"),
        (["stage_texts", 0, "lines", 1, "nodes"], [9], "none of the nodes"),
        (["stage_texts", 0, "stage"], 7, "none of the stages"),
        (["regions", 0, "parent"], 1, "earlier one of the regions"),
        (["back_edges", 0, "src"], 4, "none of the nodes"),
    ],
)
def test_damage_is_refused_with_its_place(path: list[Any], value: Any, says: str) -> None:
    with pytest.raises(TraceFormatError, match=says):
        trace_from_json(damaged(path, value))


def test_the_terms_are_those_of_the_compiler() -> None:
    trace = toy_trace()
    assert language_name(trace, "tasm") == "Toy assembly" and level_for(trace, "tensors") == DIALECT.levels[0]
    assert [is_tensor(trace, one) for one in trace.nodes] == [True, True, True, False]
    parts = {part.place: (part.title, part.words) for part in figures(trace).parts}
    assert parts == {
        "python": ("Python", "2 lines"),
        "lazy": ("instructions", "3 nodes"),
        "passes": ("Passes", "4 stages"),
    }
    assert summary_text(trace).startswith("Explorer('toy program'): 3 instructions, 4 stages of toyc 1.0")


def test_pictures_pages_and_graphs_accept_texts(tmp_path: Path) -> None:
    trace = toy_trace()
    view = Explorer(trace)
    assert "PHI" in trace.svg() and "kernel" not in trace.svg()
    assert "LOAD" in trace.graph().svg()
    assert "Toy assembly" in static_html(trace) and "sll r1, 1" in static_html(trace)
    page = view.to_html(tmp_path / "toy.html")
    assert 'data-chunk="stage_texts"' in page and "LazyBuffer" not in static_html(trace)


def test_lines_are_found_and_lead_back_to_their_origin() -> None:
    trace = toy_trace()
    assert [(one.text.id, one.number) for one in trace.find_lines(r"%B = |sll")] == [(0, 2), (1, 2), (2, 2)]
    assert [one.text.id for one in trace.find_lines("LOAD", "tir")] == [0, 1]

    def history(text: int, number: int) -> list[tuple[str, int]]:
        return [(one.stage.name, one.number) for one in trace.line_history(text, number)]

    assert history(1, 2) == [("parse", 2), ("combine", 2)]
    assert history(1, 1) == [("parse", 1)]  # unchanged by the second stage
    assert history(2, 2) == [("parse", 2), ("combine", 2), ("emit", 2)]  # by a node that both lines have
    assert history(2, 0) == [("emit", 0)]
    with pytest.raises(IndexError):
        trace.line_history(2, 9)


def test_a_long_chain_of_texts_is_walked_without_recursion() -> None:
    trace = toy_trace()
    many = [StageText(0, 0, "tir", (TextLine("  %x = 0", (0,)),))]
    many += [StageText(at, 1, "tir", (TextLine(f"  %x = {at}", (0,), 0),), "", at - 1) for at in range(1, 3000)]
    long = replace(trace, stage_texts=tuple(many))
    assert [one.line.text for one in long.line_history(2999, 0)][:2] == ["  %x = 0", "  %x = 1"]
    assert len(long.line_history(2999, 0)) == 3000


def test_a_text_has_a_static_picture_with_its_changes() -> None:
    trace = toy_trace()
    combined, emitted, nothing = (trace.graph(at).svg() for at in (1, 3, 2))
    assert "%b = add %a, %a" in combined and "%b = shl %a, 1" in combined and combined.count('stroke-width="0"') == 2
    assert "Toy assembly after emit" in emitted and "sll r1, 1" in emitted and 'stroke-width="0"' not in emitted
    assert "shl" not in nothing
    assert "sll r1, 1" in listing_svg(trace, "tasm") and "shl" in listing_svg(trace, "tir")
    table = passes_svg(trace)
    assert "combine" in table and ">1 line<" in table and "nothing" not in table


def test_traces_with_texts_are_compared() -> None:
    trace = toy_trace()
    assert compare(trace, trace).same and not compare(trace, trace).stages
    texts = list(trace.stage_texts)
    texts[1] = replace(texts[1], lines=(*texts[1].lines[:2], TextLine("  %b = mul %a, 2", (1,), 2)))
    other = replace(trace, stage_texts=tuple(texts))
    found = compare(trace, other)
    assert [pair.name for pair in found.stages] == ["combine"] and not found.same
    assert found.diff.first is found.stages[0]
    (pair,) = found.stages[0].texts
    assert pair.diff(0).splitlines() == ["@@ -3 +3 @@", "-  %b = shl %a, 1", "+  %b = mul %a, 2"]
    assert [(text.language, text.same) for text in found.texts] == [("tir", False), ("tasm", True)]
    shorter = replace(trace, stages=trace.stages[:3], stage_texts=trace.stage_texts[:2])
    gone = compare(trace, shorter)
    assert [(pair.name, pair.b) for pair in gone.stages] == [("emit", None)]
    assert gone.texts[1].b is None and "Toy assembly" in gone.to_html() and "emit" in repr(gone)


def test_equal_lines_of_many_texts_are_stored_once() -> None:
    trace = toy_trace()
    lines = tuple(TextLine(f"  %v{k} = mul %v{k - 1}, {k * 7919 % 1000}", (k % 3,)) for k in range(1, 400))
    once = replace(trace, stage_texts=(StageText(0, 0, "tir", lines),))
    many = replace(trace, stage_texts=tuple(StageText(k, 0, "tir", lines) for k in range(40)))
    assert len(trace_to_bytes(many)) < 1.5 * len(trace_to_bytes(once)) + 2000


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (
            ["f:", "  %a = add 1", "  %b = mul %a", "  ret"],
            ["f:", "  %b = shl %a", "  %a = add 2", "  ret"],
            [0, 2, 1, 3],
        ),
        (["a", "b", "c"], ["a", "x", "c"], [0, 1, 2]),
        (["a", "c"], ["a", "x", "y", "c"], [0, None, None, 1]),
        ([], ["a"], [None]),
        (["a"], [], []),
    ],
)
def test_lines_follow_names_and_alignment(before: list[str], after: list[str], wanted: list[int | None]) -> None:
    assert origins(before, after) == wanted


def test_lines_follow_locations() -> None:
    before, after = ["  load x", "  mul y", "  store z"], ["  mov q", "  vmul", "  st", "  st"]
    assert origins(before, after, ["p", "q", "r"], [None, "q", "r", "r"]) == [None, 1, 2, 2]
