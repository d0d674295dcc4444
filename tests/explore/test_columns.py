"""Tables as columns: smaller and lossless; malformed tables are rejected with their location."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.explore.test_codec import full_trace
from tests.widgets.sample_traces import big_trace, sample_trace, unrolled_trace
from tinyexplore.explore.tracefile.codec import trace_to_bytes, trace_to_json
from tinyexplore.explore.tracefile.columns import TableRows, pack_tables
from tinyexplore.explore.tracefile.columns import unpack_tables as lazily_unpacked
from tinyexplore.explore.tracefile.trace import Trace, trace_from_bytes, trace_from_json
from tinyexplore.explore.tracefile.validation import TraceFormatError

TRACES = {"full": full_trace(), "sample": sample_trace(), "large": big_trace(1000), "copies": unrolled_trace(30)}


def unpacked(kind: type, data: Any) -> Any:
    """Returns the tables of `columns.unpack_tables`, with each lazy row as a list."""
    return as_lists(lazily_unpacked(kind, data))


def as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: as_lists(item) for name, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, (list, TableRows)) else value


@pytest.mark.parametrize("name", TRACES)
def test_packing_and_unpacking_preserve_the_trace(name: str) -> None:
    assert trace_from_bytes(trace_to_bytes(TRACES[name])) == trace_from_json(trace_to_json(TRACES[name]))


@pytest.mark.parametrize("name", TRACES)
def test_columns_are_the_rows_as_json_has_them(name: str) -> None:
    rows = json.loads(trace_to_json(TRACES[name]))
    columns = pack_tables(Trace, rows)
    assert unpacked(Trace, json.loads(json.dumps(columns))) == rows
    assert unpacked(Trace, rows) == rows == json.loads(trace_to_json(TRACES[name]))  # rows are read as ever


def test_large_tables_take_much_less_room() -> None:
    for name in ("large", "copies"):
        rows = gzip.compress(trace_to_json(TRACES[name]).encode(), 9)
        assert len(trace_to_bytes(TRACES[name])) < 0.75 * len(rows)


def test_ids_are_differences_and_sources_distances() -> None:
    links = [{"src": 5, "dst": 7, "how": "a", "stage": 3}, {"src": 6, "dst": 7, "how": "a", "stage": None}]
    links += [{"src": 4, "dst": 7, "how": "b", "stage": 3}, {"src": 4, "dst": 8, "how": "b", "stage": 2}]
    wanted = {"src": [5, 1, -2, 0], "dst": [7, 0, 0, 1], "how": ["a", "a", "b", "b"], "stage": [3, None, 0, -1]}
    assert pack_tables(Trace, {"links": links}) == {"links": {"rows": 4, "columns": wanted}}
    assert pack_tables(Trace, {"links": links[:3]}) == {"links": links[:3]}  # few rows stay rows
    nodes = {"rows": 3, "columns": {"id": [0, 1, 1], "src": [[], [1], [1, 2]]}}
    found = [{"id": 0, "src": []}, {"id": 1, "src": [0]}, {"id": 2, "src": [1, 0]}]
    assert unpacked(Trace, {"nodes": nodes}) == {"nodes": found}


def programs_of(texts: list[str], nodes: list[list[int]]) -> dict[str, Any]:
    """Two programs with the same lines."""
    lines = [{"text": text, "nodes": ids} for text, ids in zip(texts, nodes, strict=True)]
    program = {"kernel": 0, "language": "c", "lines": lines, "effort": "", "branches": True}
    return {"programs": [{"id": 0, **program}, {"id": 1, **program}]}


def test_texts_of_lines_are_stored_once_and_their_nodes_as_differences() -> None:
    rows = programs_of(["a", "}", "b", "}"], [[7, 9], [], [8], [8, 3, 4]])
    columns = pack_tables(Trace, rows)
    assert columns["texts"] == {"forms": ["a", "}", "b"], "form": [0, 1, 2], "numbers": []}
    first, second = (program["lines"] for program in columns["programs"])
    assert first == second
    assert first == {
        "rows": 4,
        "columns": {"text": [0, 1, 1, -1], "nodes": [[7, 2], [], [1], [0, -5, 1]]},
        "chained": ["nodes"],
    }
    assert unpacked(Trace, json.loads(json.dumps(columns))) == rows


def test_lists_of_ids_of_an_older_release_are_read_as_they_are() -> None:
    rows = programs_of(["a", "}", "b", "}"], [[7, 9], [], [8], [8, 3, 4]])
    lines = {"rows": 4, "columns": {"text": ["a", "}", "b", "}"], "nodes": [[7, 9], [], [8], [8, 3, 4]]}}
    older = {"programs": [{**program, "lines": lines} for program in rows["programs"]]}
    assert unpacked(Trace, older) == rows


@pytest.mark.parametrize("wrong", [-1, 10**6, None, [0], 10**30])
def test_invalid_text_numbers_are_refused(wrong: Any) -> None:
    packed_trace = json.loads(gzip.decompress(trace_to_bytes(TRACES["sample"])))
    tables = packed_trace["programs"]
    lines = (tables["columns"]["lines"] if isinstance(tables, dict) else [row["lines"] for row in tables])[0]
    lines["columns"]["text"][0] = wrong
    with pytest.raises(TraceFormatError, match=r"text"):
        trace_from_json(json.dumps(packed_trace))


WRONG: dict[str, Any] = {
    "links: expected an array, or an object with rows": {"links": {"src": []}},
    "links: the column 'src' must have 2 values": {"links": {"rows": 2, "columns": {"src": [1]}}},
    "links: the table has no columns": {"links": {"rows": 10**9, "columns": {}}},
    "Link has no 'dst'": {"links": {"rows": 1, "columns": {"src": [0]}}},
    "nodes.*expected an object": {"nodes": [5]},
    "stages.*steps.*the column 'rule' must have 1 values": {
        "stages": {"rows": 1, "columns": {"steps": [{"rows": 1, "columns": {"rule": []}}]}}
    },
}


@pytest.mark.parametrize("words", WRONG)
def test_invalid_tables_are_refused_with_their_position(words: str) -> None:
    data = json.loads(trace_to_json(full_trace())) | WRONG[words]
    with pytest.raises(TraceFormatError, match=words):
        trace_from_json(json.dumps(data))


def test_ids_out_of_their_table_are_refused_in_columns_too() -> None:
    data = json.loads(trace_to_json(sample_trace()))
    columns = pack_tables(Trace, data)
    columns["links"]["columns"]["src"][0] = 10**6
    with pytest.raises(TraceFormatError, match=r"links\[0\].src: 1000000"):
        trace_from_json(json.dumps(columns))


def test_the_numbers_of_texts_are_differences_from_the_last_text_of_the_form() -> None:
    texts = ["%a9 = %b10", "x 007", "%a10 = %b12", "no", "9999999999999999", "-3 1e5", "%a0 = %b00", "٣ 4"]
    packed_texts = pack_tables(Trace, programs_of(texts, [[] for _ in texts]))["texts"]
    forms = ["%a\x01 = %b\x01", "x 007", "no", "9999999999999999", "-\x01 \x01e\x01", "%a\x01 = %b00", "٣ \x01"]
    assert packed_texts == {
        "forms": forms,
        "form": [0, 1, 0, 2, 3, 4, 5, 6],
        "numbers": [9, 10, 1, 2, 3, 1, 5, 0, 4],
    }
    for tried in (texts, [*texts, "with \x01"], [*texts, ""]):
        rows = programs_of(tried, [[] for _ in tried])
        assert unpacked(Trace, json.loads(json.dumps(pack_tables(Trace, rows)))) == rows


FORMS: dict[str, Any] = {"forms": ["%a\x01", "b"], "form": [0, 1, 0], "numbers": [3, 4]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"form": [0, 2]},
        {"form": [-1]},
        {"form": ["0"]},
        {"form": 3},
        {"numbers": [3]},
        {"numbers": [3, 0.5]},
        {"numbers": [True, 1]},
        {"numbers": None},
        {"forms": [3, "b"]},
        {"forms": ["x" * 2**20], "form": [0] * 30},
        {"forms": ["x" * 2**24, "y"], "form": [1]},
    ],
)
def test_invalid_text_columns_are_refused(wrong: dict[str, Any]) -> None:
    columns = pack_tables(Trace, programs_of(["a", "}", "b", "}"], [[]] * 4))
    with pytest.raises(TraceFormatError, match="texts: expected forms|characters"):
        lazily_unpacked(Trace, {**columns, "texts": {**FORMS, **wrong}}, memory=20 << 20)


def test_times_are_differences_where_all_are_whole() -> None:
    steps = [{"rule": None, "before": 0, "after": 0, "at_us": at} for at in (3.0, 5.0, 5.0, 104.0)]
    stage = {"id": 0, "steps": steps}
    table = pack_tables(Trace, {"stages": [stage]})["stages"][0]["steps"]
    assert table["columns"]["at_us"] == [3, 2, 0, 99] and table["differences"] == ["at_us"]
    assert unpacked(Trace, {"stages": [{"id": 0, "steps": table}]}) == {"stages": [stage]}
    steps[1]["at_us"] = 4.5
    table = pack_tables(Trace, {"stages": [stage]})["stages"][0]["steps"]
    assert table["columns"]["at_us"] == [3.0, 4.5, 5.0, 104.0] and "differences" not in table
