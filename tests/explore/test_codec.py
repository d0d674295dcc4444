"""Traces to JSON and back."""

from __future__ import annotations

import gzip
import json
from dataclasses import is_dataclass, replace
from pathlib import Path

import pytest

from tests.explore import toy
from tests.support.less_memory import limited
from tinyexplore.explore import Limits, Trace, TraceFormatError, trace_from_json, trace_to_json
from tinyexplore.explore.tracefile import model
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.model import (
    Branch,
    BufferInfo,
    Candidate,
    CommandInfo,
    Decision,
    KernelInfo,
    KernelVariant,
    Line,
    Listing,
    Message,
    NestLine,
    OperandAccess,
    OptEffect,
    OptOffer,
    OptStep,
    Program,
    Run,
    Stage,
    StageTime,
)
from tinyexplore.explore.tracefile.trace import trace_from_bytes
from tinyexplore.explore.tracefile.validation import hints_of

ROWS = [kind for kind in vars(model).values() if is_dataclass(kind) and kind.__module__ == model.__name__]
INTS = (int, int | None, tuple[int, ...])


def full_trace() -> Trace:
    """A trace with something in every table."""
    command = CommandInfo("ApplyOpt", (("kernel", 0), ("opt", "UPCAST(0, 4)")))
    variant = KernelVariant(
        kernel=0,
        name="r_2_4",
        device="LLVM",
        opts=("UPCAST(0, 4)",),
        steps=(OptStep("UPCAST(0, 4)", True, "", ()),),
        axes=(("g0", "global", "v"),),
        nest=(
            NestLine(
                0, "for g0 in range(v)", 0, "global", "v", (OperandAccess(None, "row0", 64, True, None),), 64, "L1"
            ),
            NestLine(1, "data0[g0] = 1"),
        ),
        offers=(OptOffer("UPCAST", 0, (2, 3), "", "long"), OptOffer("UNROLL", 0, (2,), "the axis is global")),
        listings=(Listing("c", ("int x;", "")),),
        stages=(StageTime("lower", 2.5, 3),),
        times_us=(2.0, 1.0),
        median_us=1.5,
        low_us=1.25,
        high_us=1.75,
        flops=8,
    )
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
        opts=(OptStep("UPCAST(0, 4)", False, "the axis has size 3", (0,)),),
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
        laws=(OptEffect(0, "UPCAST", "Unrolls some steps", "for i in 0..8: f(i)", "for i in 0..2: f(4*i); ..."),),
        branches=(
            Branch(0, None, 0, CommandInfo("AsCaptured", (("kernel", 0),)), "done", "", (), ("as captured",)),
            Branch(1, 0, 0, command, "failed", "its results are wrong", (variant,)),
        ),
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
    ("content", "message"),
    [
        (b"not json", "not a trace"),
        (b"[1, 2]", 'JSON object with "version", found list'),
        (b'{"nodes": []}', 'expected a JSON object with "version"'),
        (b'{"version": 99}', "trace version 99: "),
        (b'{"version": 1}', "Trace has no 'title'"),
        (b"\xff\xfe\x00", "not a trace"),
        (gzip.compress(b"{}", mtime=0)[:-3], "the gzip data is damaged"),
    ],
)
def test_invalid_traces_are_refused_with_the_reason(tmp_path, content, message):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError) as caught:
        Trace.load(path)
    assert message in str(caught.value)
    assert "bad.json" in str(caught.value)


def test_a_field_of_the_wrong_type_is_named():
    data = json.loads(trace_to_json(full_trace()))
    data["nodes"][0]["label"] = 3
    with pytest.raises(TraceFormatError, match=r"nodes\[0\].label: expected str, found 3"):
        trace_from_json(json.dumps(data))


def test_fields_added_later_may_be_missing_from_older_traces():
    trace = toy.trace()
    data = json.loads(trace_to_json(trace))
    for stage in data["stages"]:
        del stage["candidates"]
    assert trace_from_json(json.dumps(data)) == trace


FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
REFUSED = json.loads((FIXTURES / "refused.json").read_text())


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_an_invalid_value_is_refused_with_its_position(case):
    """The front end refuses the same: `widgets/test/trace_validation.test.ts` reads the same cases."""
    data = json.loads((FIXTURES / "whole.json").read_text())
    assert trace_from_json(json.dumps(data)).nodes
    *path, last = REFUSED[case]["at"]
    place = data
    for key in path:
        place = place[key]
    place[last] = REFUSED[case]["value"]
    with pytest.raises(TraceFormatError) as caught:
        trace_from_json(json.dumps(data))
    assert str(caught.value).startswith(REFUSED[case]["says"])


def with_title(text: str) -> str:
    return trace_to_json(toy.trace()).replace('"title":"toy"', f'"title":{text}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (with_title("NaN"), "not JSON"),
        (with_title("1e999"), "title: expected str"),
        (with_title("9" * 5000), "not a trace|title: expected str"),
        (with_title(r'"\ud800"'), "title: half of a surrogate"),
        (with_title('"\ud800"'), "not UTF-8"),
        (with_title("[" * 100_000), "nested more than 32 deep"),
        (with_title("[" * 40 + "]" * 40), "more than 32 deep|title: expected str"),
        (with_title("[" * 100 + "]" * 100), "nested more than 32 deep"),
        (
            json.dumps(json.loads(trace_to_json(full_trace()))).replace('"elapsed_us": 2.0', '"elapsed_us": 1e999'),
            "finite",
        ),
        (trace_to_json(full_trace()).replace('"flops":64', f'"flops":{10**400}'), "flops: .*64 bits"),
    ],
)
def test_json_that_python_reads_but_no_trace_has_is_refused(text, message):
    with pytest.raises(TraceFormatError, match=message):
        trace_from_json(text)


@pytest.mark.parametrize("cut", [1, 9, 100])
def test_a_damaged_body_of_gzip_is_refused(cut):
    data = bytearray(trace_to_bytes(toy.trace()))
    for wrong in (data[:-cut], data + b"more", data[:60] + bytes([data[60] ^ 255]) + data[61:]):
        with pytest.raises(TraceFormatError, match="the gzip data is damaged"):
            trace_from_bytes(bytes(wrong))


def test_oversized_traces_are_refused_before_allocation():
    bomb = gzip.compress(b'{"version": 1, "title": "' + b"x" * (300 << 20) + b'"}', compresslevel=1)
    assert len(bomb) < 2 << 20
    with limited(megabytes=300), pytest.raises(TraceFormatError, match="more than [0-9]+ bytes"):
        trace_from_bytes(bomb)
    numbers, quotes = b"[" + b"1,    " * 11_000_000 + b"[]]", b'"' * 50_000_000
    with limited(megabytes=100), pytest.raises(TraceFormatError, match="more than 10000000 values"):
        trace_from_json(numbers)
    with limited(megabytes=200), pytest.raises(TraceFormatError, match="more than [0-9]+ bytes of memory"):
        trace_from_json(quotes)


def test_limits_are_an_argument(tmp_path):
    path = toy.trace().save(tmp_path / "trace.json.gz")
    assert Trace.load(path, Limits(nbytes=1 << 20)) == Trace.load(path)
    with pytest.raises(TraceFormatError, match="more than 1000 bytes"):
        Trace.load(path, Limits(nbytes=1000))
    with pytest.raises(TraceFormatError, match=r"more than 50 values; .*limits=Limits\(...\)"):
        Trace.load(path, Limits(values=50))


def test_every_id_field_declares_its_table():
    """An undeclared reference is not checked."""
    plain = {f"{kind.__name__}.{name}" for kind in ROWS for name, hint in hints_of(kind).items() if hint in INTS}
    assert plain == {"TraceTables.version", "OperandAccess.stride"}
