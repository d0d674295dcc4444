"""Tables as columns: smaller, equal afterwards, and refused with the place where they make no table."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.explore.test_codec import full_trace
from tests.widgets.sample_traces import big_trace, sample_trace, unrolled_trace
from tinyexplore.explore.codec import trace_from_bytes, trace_from_json, trace_to_bytes, trace_to_json
from tinyexplore.explore.columns import packed, unpacked
from tinyexplore.explore.model import Trace
from tinyexplore.explore.valid import TraceFormatError

TRACES = {"full": full_trace(), "sample": sample_trace(), "large": big_trace(1000), "copies": unrolled_trace(30)}


@pytest.mark.parametrize("name", TRACES)
def test_what_travels_is_the_trace(name: str) -> None:
    assert trace_from_bytes(trace_to_bytes(TRACES[name])) == trace_from_json(trace_to_json(TRACES[name]))


@pytest.mark.parametrize("name", TRACES)
def test_columns_are_the_rows_as_json_has_them(name: str) -> None:
    rows = json.loads(trace_to_json(TRACES[name]))
    columns = packed(Trace, rows)
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
    assert packed(Trace, {"links": links}) == {"links": {"rows": 4, "columns": wanted}}
    assert packed(Trace, {"links": links[:3]}) == {"links": links[:3]}  # few rows stay rows
    nodes = {"rows": 3, "columns": {"id": [0, 1, 1], "src": [[], [1], [1, 2]]}}
    found = [{"id": 0, "src": []}, {"id": 1, "src": [0]}, {"id": 2, "src": [1, 0]}]
    assert unpacked(Trace, {"nodes": nodes}) == {"nodes": found}


WRONG: dict[str, Any] = {
    "links: expected an array, or an object with rows": {"links": {"src": []}},
    "links: the column 'src' has not 2 values": {"links": {"rows": 2, "columns": {"src": [1]}}},
    "links: a table without columns": {"links": {"rows": 10**9, "columns": {}}},
    "Link has no 'dst'": {"links": {"rows": 1, "columns": {"src": [0]}}},
    "nodes.*expected an object": {"nodes": [5]},
    "stages.*steps.*the column 'rule' has not 1 values": {
        "stages": {"rows": 1, "columns": {"steps": [{"rows": 1, "columns": {"rule": []}}]}}
    },
}


@pytest.mark.parametrize("words", WRONG)
def test_what_makes_no_table_is_refused_with_its_place(words: str) -> None:
    data = json.loads(trace_to_json(full_trace())) | WRONG[words]
    with pytest.raises(TraceFormatError, match=words):
        trace_from_json(json.dumps(data))


def test_ids_out_of_their_table_are_refused_in_columns_too() -> None:
    data = json.loads(trace_to_json(sample_trace()))
    columns = packed(Trace, data)
    columns["links"]["columns"]["src"][0] = 10**6
    with pytest.raises(TraceFormatError, match=r"links\[0\].src: 1000000 is none of the nodes"):
        trace_from_json(json.dumps(columns))
