"""Static pictures and exports: well-formed, complete, and safe with any text."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tinyexplore.explore.tracefile.graph_export import to_dot, to_networkx
from tinyexplore.explore.tracefile.model import TRACE_VERSION, KernelInfo, Node, Run, Stage, Step
from tinyexplore.explore.tracefile.pictures.drawn_graph import drawn_graph
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg, pipeline_svg
from tinyexplore.explore.tracefile.trace import Trace

SVG = "{http://www.w3.org/2000/svg}"


def node(i: int, op: str, src: tuple[int, ...], detail: str, group: str, kind: str = "lazybuffer") -> Node:
    return Node(i, kind, op, src, "float32", None, "", f"d{i}", None, op, detail, group)


LAZYBUFFERS = (
    node(0, "BUFFER", (), "float32 6", "buffer"),
    node(1, "RESHAPE", (0,), "2×3", "movement"),
    node(2, "EXPAND", (1,), "2×3", "movement"),
    node(3, "CONST", (), "0.5", "const"),
    node(4, "EXPAND", (3,), "2×3", "movement"),
    node(5, "MUL", (2, 4), "2×3", "alu"),
    node(6, "REDUCE_AXIS", (5,), "ADD over 1 → 2×1", "reduce"),
    node(7, "RESHAPE", (6,), "2", "movement"),
    node(8, "EXP", (7,), "2", "alu"),
)
UOPS = (
    node(9, "DEFINE_GLOBAL", (), "float32[6]", "buffer", "uop"),
    node(10, "RANGE", (), "g0 < 6 · global", "loop", "uop"),
    node(11, "CONST", (), "4", "const", "uop"),
    node(12, "MUL", (10, 11), "g0*4", "alu", "uop"),
    node(13, "INDEX", (9, 12), "data0[g0*4]", "memory", "uop"),
    node(14, "LOAD", (13,), "data0[g0*4]", "memory", "uop"),
    node(15, "STORE", (13, 14), "data0[g0*4]", "memory", "uop"),
)


def kernel(i: int, roots: tuple[int, ...], nodes: tuple[int, ...]) -> KernelInfo:
    return KernelInfo(i, f"r_<{i}>", "C", roots, nodes, (), (), (), 12, 48, 1500.0, False, None)


def stage(i: int, name: str, of: int | None, before: tuple[int, ...], after: tuple[int, ...], *steps: Step) -> Stage:
    return Stage(i, name, None, of, before, after, 0.0, 2400.0, steps, (), ())


TRACE = Trace(
    TRACE_VERSION,
    'a & b < "c"',
    (),
    (),
    (),
    LAZYBUFFERS + UOPS,
    (),
    (
        stage(0, "schedule", None, (8,), (8,)),
        stage(1, "simplify", 0, (15,), (15,), Step(0, 14, 14, 1.0)),
        stage(2, "late", 0, (15,), ()),
    ),
    (),
    (kernel(0, (6,), (6, 5, 4, 3, 2, 1)), kernel(1, (8,), (8, 7))),
    (),
    (Run(0, 0, (11.8,), 11.8, 11.8, 11.8),),
    (),
    (),
)


def words(svg: str) -> list[str]:
    return [item.text or "" for item in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_constants_and_chains_of_views_are_folded_into_labels() -> None:
    graph = drawn_graph(LAZYBUFFERS)
    assert [(box.id, box.label, box.src) for box in graph.nodes] == [
        (0, "BUFFER", ()),
        (2, "RESHAPE → EXPAND", (0,)),
        (5, "MUL ·, 0.5", (2,)),
        (6, "REDUCE_AXIS", (5,)),
        (7, "RESHAPE", (6,)),
        (8, "EXP", (7,)),
    ]
    assert "6 boxes for 9 nodes · folded" in graph.note


def test_index_maths_is_folded_into_the_accesses_that_write_it_out() -> None:
    graph = drawn_graph(UOPS)
    assert [(box.id, box.src) for box in graph.nodes] == [(9, ()), (10, ()), (14, (9, 10)), (15, (9, 10, 14))]
    assert "4 boxes for 7 nodes · folded" in graph.note


def test_the_box_and_the_note_count_hidden_nodes() -> None:
    graph = drawn_graph(LAZYBUFFERS, (), 3)
    assert [(box.id, box.hidden) for box in graph.nodes] == [(6, 1), (7, 0), (8, 0)]
    svg = graph_svg(LAZYBUFFERS, max_nodes=3)
    assert "+1 hidden" in words(svg)
    assert any("furthest from the result: 3" in text for text in words(svg))


def test_a_graph_is_a_standalone_svg_with_title_and_description() -> None:
    root = ElementTree.fromstring(graph_svg(TRACE))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img" and root.get("aria-label") == "LazyBuffer graph"
    assert root.findtext(f"{SVG}title") == "LazyBuffer graph"
    assert "6 boxes for 9 nodes" in (root.findtext(f"{SVG}desc") or "")
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


def test_every_outside_reference_is_missing() -> None:
    for svg in (graph_svg(TRACE), pipeline_svg(TRACE)):
        assert re.findall(r"(?:href|src|url)\s*[=(]", svg) == []
        assert svg.count("http") == 1  # the namespace


def test_all_elements_are_inside_the_picture() -> None:
    for svg in (graph_svg(TRACE), pipeline_svg(TRACE)):
        root = ElementTree.fromstring(svg)
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        for rect in root.iter(f"{SVG}rect"):
            x, y, w, h = (float(rect.get(name, 0)) for name in ("x", "y", "width", "height"))
            assert x >= 0 and y >= 0 and x + w <= width + 0.6 and y + h <= height + 0.6


def test_a_stage_shows_its_graph_before_and_after() -> None:
    assert words(graph_svg(TRACE, 1, "before"))[0] == "before simplify of kernel 0 · r_<0>"
    assert words(graph_svg(TRACE, 1))[0] == "after simplify of kernel 0 · r_<0>"
    assert "before late" in words(graph_svg(TRACE, 2))[0]
    assert "after the passes" in words(graph_svg(TRACE, kind="uop"))[0]
    with pytest.raises(IndexError, match="stage 9: the trace has 3 stages"):
        graph_svg(TRACE, 9)


def test_the_pipeline_counts_and_times() -> None:
    found = words(pipeline_svg(TRACE))
    assert found[0] == 'a & b < "c"'
    for text in (
        "9 nodes · 4 views",
        "2 passes · 1 firing",
        "2.40 ms",
        "11.8 µs",
        "kernel 0 · r_<0>",
    ):
        assert text in found
    assert "6 LazyBuffers · 11.8 µs" in found
    assert "result of kernel 0" in found  # what the second kernel reads stands in it as a box


def test_without_kernels_only_lazybuffers_are_drawn() -> None:
    found = words(pipeline_svg(replace(TRACE, kernels=(), runs=(), title="")))
    assert "EXP" in found
    assert any(text.startswith("no kernels · 6 boxes for 9 nodes") for text in found)
    empty = replace(TRACE, kernels=(), runs=(), nodes=(), stages=())
    assert "no LazyBuffers, no kernels" in words(pipeline_svg(empty))


def test_many_kernels_become_one_box_each_and_the_rest_is_counted() -> None:
    kernels = tuple(kernel(i, (6,), (6, 5, 4, 3, 2, 1)) for i in range(70))
    svg = pipeline_svg(replace(TRACE, kernels=kernels, runs=()))
    assert any("the last 10 kernels" in text for text in words(svg))


def test_text_from_the_trace_cannot_break_the_picture() -> None:
    evil = replace(LAZYBUFFERS[8], label='</text><script>"&', detail="]]>\\" + "x" * 300)
    found = words(graph_svg((*LAZYBUFFERS[:8], evil)))
    assert '</text><script>"&' in found
    assert any(text.endswith("x…") for text in found)
    assert '\\"&' in to_dot(replace(TRACE, nodes=(*LAZYBUFFERS[:8], evil, *UOPS)))


def test_dot_has_the_same_boxes_and_edges() -> None:
    dot = to_dot(TRACE)
    assert re.findall(r"n\d+ -> n\d+", dot) == ["n0 -> n2", "n2 -> n5", "n5 -> n6", "n6 -> n7", "n7 -> n8"]
    assert 'n5 [label="MUL ·, 0.5\\n2×3"' in dot
    assert dot.startswith("digraph tinyexplore {") and dot.rstrip().endswith("}")


def test_networkx_has_everything() -> None:
    networkx = pytest.importorskip("networkx")
    graph = to_networkx(TRACE, stage=1)
    assert sorted(graph.nodes) == [9, 10, 11, 12, 13, 14, 15]
    assert graph.nodes[14]["op"] == "LOAD"
    assert [(src, dst, data["operand"]) for src, dst, data in graph.in_edges(15, data=True)] == [
        (13, 15, 0),
        (14, 15, 1),
    ]
    assert networkx.is_directed_acyclic_graph(graph)
