"""Traces to JSON and back."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from tests.explore import toy
from tinyexplore.explore import Trace, TraceFormatError, trace_from_json, trace_to_json
from tinyexplore.explore.codec import trace_from_bytes, trace_to_bytes
from tinyexplore.explore.model import (
    BufferInfo,
    Candidate,
    Decision,
    KernelInfo,
    Line,
    Message,
    OptStep,
    Program,
    Run,
    Stage,
)


def full_trace() -> Trace:
    """A trace with something in every table."""
    stage = Stage(
        id=1,
        name="schedule",
        parent=0,
        kernel=None,
        before=(0, 1),
        after=(),
        started_us=1.5,
        elapsed_us=2.0,
        steps=(),
        decisions=(Decision(0, "fuse", "why “not” ↔ <ok>"),),
        opts=(OptStep("UPCAST(0, 4)", False, "the axis has size 3"),),
        candidates=(Candidate(("UPCAST(0, 4)", "UNROLL(1, 2)"), 3.25), Candidate((), None)),
    )
    kernel = KernelInfo(0, "r_8_4", "PYTHON", (1,), (0, 1), (0,), (), (("g0", "global", 8),), 64, 128, 12.5, True, None)
    trace = toy.trace()
    return replace(
        trace,
        stages=(*trace.stages, stage),
        kernels=(kernel,),
        programs=(Program(0, 0, "c", (Line("x = 1;", (0, 1)), Line("}", ()))),),
        runs=(Run(0, 0, (3.0, 1.0, 2.0), 2.0, 1.5, 2.5),),
        buffers=(BufferInfo(0, "PYTHON", "float32", 8, 32, 0.5, None),),
        messages=(Message("error", "two\nlines", 0), Message("note", "", None)),
    )


def test_a_trace_survives_json_unchanged():
    trace = full_trace()
    assert trace_from_json(trace_to_json(trace)) == trace


def test_json_holds_plain_objects_under_the_models_field_names():
    data = json.loads(trace_to_json(full_trace()))
    assert data["kernels"][0]["axes"] == [["g0", "global", 8]]
    assert data["programs"][0]["lines"] == [{"text": "x = 1;", "nodes": [0, 1]}, {"text": "}", "nodes": []}]
    assert data["messages"][1] == {"level": "note", "text": "", "frame": None}


def test_equal_traces_give_equal_bytes():
    trace = full_trace()
    assert trace_to_bytes(trace) == trace_to_bytes(trace_from_bytes(trace_to_bytes(trace)))


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_saved_trace_loads_equal(tmp_path, name):
    trace = full_trace()
    path = trace.save(tmp_path / name)
    assert Trace.load(path) == trace
    assert Trace.load(str(path)) == trace
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"not json", "not a trace: the text is not JSON"),
        (b"[1, 2]", 'expected a JSON object with "version", found list'),
        (b'{"nodes": []}', 'expected a JSON object with "version"'),
        (b'{"version": 99}', "trace version 99: this tinyexplore reads version 1"),
        (b'{"version": 1}', "Trace has no 'title'"),
        (b"\xff\xfe\x00", "not a trace"),
        (gzip.compress(b"{}")[:-3], "the gzip data is damaged"),
    ],
)
def test_what_is_not_a_trace_is_refused_with_the_reason(tmp_path, content, complaint):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError) as caught:
        Trace.load(path)
    assert complaint in str(caught.value)
    assert "bad.json" in str(caught.value)


def test_a_field_of_the_wrong_type_is_named():
    data = json.loads(trace_to_json(full_trace()))
    data["nodes"][0]["label"] = 3
    with pytest.raises(TraceFormatError, match="Trace.nodes: Node.label: expected str, found 3"):
        trace_from_json(json.dumps(data))


def test_fields_added_later_may_be_missing_from_older_traces():
    trace = toy.trace()
    data = json.loads(trace_to_json(trace))
    for stage in data["stages"]:
        del stage["candidates"]
    assert trace_from_json(json.dumps(data)) == trace
