"""The active part of a line: column ranges of frames, in the Trace, as text and in pictures."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore import trace_from_json, trace_to_json
from tinyexplore.explore.recording.spans import Spans
from tinyexplore.explore.tracefile.pictures.table_pictures import listing_svg
from tinyexplore.explore.tracefile.spans import marks, span_text
from tinyexplore.explore.tracefile.table_export import rows_of
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.trace import UserFrame

HAS_COLUMNS = sys.version_info >= (3, 11)


def parts(trace: Trace) -> dict[str, set[str]]:
    """What was written → the operations that it built."""
    found: dict[str, set[str]] = {}
    for node in trace.nodes:
        if node.user is not None:
            found.setdefault(span_text(trace, trace.frames[node.user]), set()).add(node.op)
    return found


@pytest.fixture(scope="module")
def one_line() -> Trace:
    x, w = Tensor.rand(64, 48).realize(), Tensor.rand(48, 32).realize()
    return explore(lambda: (x @ w).softmax().sum()).trace


def test_each_call_of_a_line_knows_its_own_columns(one_line: Trace) -> None:
    found = parts(one_line)
    if not HAS_COLUMNS:
        assert set(found) == {""}
        return
    assert set(found) == {"x @ w", ".softmax()", ".sum()"}
    assert "MUL" in found["x @ w"] and "EXP" in found[".softmax()"] and "REDUCE_AXIS" in found[".sum()"]
    assert len({frame.line for frame in one_line.frames}) == 1


def test_attributes_operators_strings_and_further_lines(tmp_path) -> None:
    x, y = Tensor.rand(4, 4).realize(), {"é🙂": Tensor.rand(4).realize()}

    def several(x, y):
        return x.T[0, :4] + y["é🙂"].exp(
        ).relu() * 2  # fmt: skip

    found = set(parts(explore(several, x, y).trace))
    if HAS_COLUMNS:
        assert {".T", "x.T[0, :4]", ".relu()", 'y["é🙂"].exp( ).relu() * 2'} <= found
        assert any(part.replace(" ", "") == ".exp()" for part in found)


def test_a_name_that_a_line_assigns_is_of_its_last_operation() -> None:
    x = Tensor.rand(8, 4).realize()

    def named(x):
        hidden = (x * 2).relu().sum(1)
        return hidden + 1

    assert [node.op for node in explore(named, x).trace.nodes if node.name == "hidden"][-1:] == ["RESHAPE"]


def test_frames_without_columns_have_none() -> None:
    spans = Spans()
    assert spans.span_of_frame(UserFrame(__file__, 3, "f")) is None
    code = compile("x\n", "<nothing to read>", "exec")
    assert spans.span_of_frame(UserFrame("<nothing to read>", 1, "<module>", code, 2)) is None


def test_an_older_file_has_no_spans_and_loads(one_line: Trace) -> None:
    data = json.loads(trace_to_json(one_line))
    assert trace_from_json(json.dumps(data)) == one_line
    for frame in data["frames"]:
        del frame["span"]
    older = trace_from_json(json.dumps(data))
    assert {frame.span for frame in older.frames} == {None}
    assert marks(older, 0) == {} and span_text(older, older.frames[0]) == ""


def test_tables_and_the_picture_show_the_parts(one_line: Trace) -> None:
    said = {row["part"] for row in rows_of(one_line, "nodes") if row["line"] is not None}
    assert said == ({"x @ w", ".softmax()", ".sum()"} if HAS_COLUMNS else {""})
    picture = listing_svg(one_line)
    ElementTree.fromstring(picture)
    assert len(one_line.kernels) > 1
    assert ('class="k-0"' in picture and 'class="k-1"' in picture) is HAS_COLUMNS
