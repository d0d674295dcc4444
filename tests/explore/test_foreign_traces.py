"""Foreign traces: the loader bounds their numbers, and exporters never write their texts as code."""

from __future__ import annotations

import ast
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile_traces import changed, command, uses
from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer, TraceFormatError
from tinyexplore.explore.tracefile import codec
from tinyexplore.explore.tracefile.codec import trace_to_json
from tinyexplore.explore.tracefile.scripts import ReproducerError, reproducer
from tinyexplore.explore.tracefile.trace import trace_from_json
from tinyexplore.util.private_folder import cache_folder

EVIL = 'x"""\nimport os; os.system("true")\n\'\0\r\\'


@pytest.mark.parametrize("value", [1e100, -1.0, 1e16, 2**62])
@pytest.mark.parametrize("place", [("Run", "times_us"), ("Run", "median_us"), ("KernelInfo", "compile_us")])
def test_times_are_bounded(place: tuple[str, str], value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "with_derived_tables", lambda trace: trace)  # figures of such a time cannot be written
    text = trace_to_json(changed(sample_trace(), place, lambda old: value))
    with pytest.raises(TraceFormatError, match="is above|is below"):
        trace_from_json(text)


@pytest.mark.parametrize("value", [0.0, 1e15, -1e15])
def test_the_longest_times_break_no_view(value: float, tmp_path: Path) -> None:
    for place in (("Run", "times_us"), ("Run", "median_us"), ("Run", "started_us"), ("Stage", "started_us")):
        try:
            trace = trace_from_json(trace_to_json(changed(sample_trace(), place, lambda old: value)))
        except TraceFormatError:
            continue
        for _, use in uses(trace, tmp_path):
            try:
                use()
            except ReproducerError:
                pass


def statements(text: str) -> list[str]:
    return [type(node).__name__ for node in ast.parse(text).body]


def scripted() -> Any:
    trace = sample_trace()
    for kernel in trace.kernels:
        try:
            return trace, kernel.id, reproducer(trace, kernel.id)
        except ReproducerError:
            continue
    raise AssertionError("no kernel of the sample has a script")


@pytest.mark.parametrize("field", ["name", "device", "opts", "axes"])
def test_a_foreign_text_in_a_script_is_quoted_or_refused(field: str) -> None:
    trace, number, plain = scripted()
    foreign = changed(trace, ("KernelInfo", field), lambda old: EVIL if isinstance(old, str) else old)
    assert statements(reproducer(foreign, number)) == statements(plain)


def test_a_thread_axis_whose_size_is_code_is_refused() -> None:
    trace, number, _ = scripted()
    for size in (
        "__import__('os').system('true')",
        "9**9**9",
        "(1).__class__",
        "f'{1}'",
        "1\nimport os",
        "unknown",
        "",
    ):
        kernels = list(trace.kernels)
        kernels[number] = replace(kernels[number], axes=(("t0", "thread", size),))
        with pytest.raises(ReproducerError):
            reproducer(replace(trace, kernels=tuple(kernels)), number)


ESCAPES = "\x1b]0;gone\x07\x9b2J\u202e\u2066\x7f\r"


@pytest.mark.parametrize("words", [["show"], ["show", "--json"], ["modules"], ["code", "1"]])
def test_the_command_line_escapes_foreign_texts(words: list[str], tmp_path: Path) -> None:
    trace = sample_trace()
    for place in (("KernelInfo", "name"), ("Line", "text"), ("Scope", "name")):
        trace = changed(trace, place, lambda old: ESCAPES + old)
    path = str(trace.save(tmp_path / "foreign.json"))
    _, text = command(words[0], path, *words[1:])
    assert not set("\x1b\x07\x9b\u202e\u2066\x7f\r") & set(text)


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    for start in "=+-@\t\r":
        trace = changed(sample_trace(), ("KernelInfo", "name"), lambda old, start=start: f"{start}1+1")
        path = str(trace.save(tmp_path / "foreign.json"))
        assert command("export", path, str(tmp_path / "out.csv"))[0] == 0
        rows = list(csv.DictReader((tmp_path / "out.csv").open(newline="", encoding="utf-8")))
        assert {row["name"] for row in rows} == {f"'{start}1+1"}


def test_pages_neither_send_forms_nor_take_another_base() -> None:
    page = Explorer(sample_trace()).to_html()
    assert "base-uri 'none'; form-action 'none'" in page


def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "rel")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "tinyexplore"
