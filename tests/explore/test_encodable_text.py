"""Names with lone surrogates, as Python gives file names that are not UTF-8: every export works, with U+FFFD."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.patience import seconds
from tinyexplore import Tensor, cli
from tinyexplore.explore import Explorer, Trace, compare, explore, reproducer
from tinyexplore.explore.tracefile.encodable_text import well_formed

LONE = "caf\udce9"
WHOLE = "caf\ufffd"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("café", "café"),
        (LONE, WHOLE),
        ("\ud83d\ude00", "😀"),  # a pair is a character
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\udce9\udce8x", "\ufffd\ufffdx"),
        ("x\ud800", "x\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced_and_all_else_stays(text: str, expected: str) -> None:
    assert well_formed(text) == expected


@pytest.fixture(scope="module")
def view() -> Explorer:
    parameters = {LONE: Tensor([1.0, 2.0, 3.0]).realize()}
    return explore(lambda: parameters[LONE] * 2, title=LONE, repeat=1)


@pytest.fixture(scope="module")
def foreign(view: Explorer) -> Trace:
    """A trace with lone surrogates in its names."""
    trace = view.trace
    nodes = tuple(replace(node, name=LONE) for node in trace.nodes)
    buffers = tuple(replace(buffer, name=LONE) for buffer in trace.buffers)
    return replace(trace, title=LONE, nodes=nodes, buffers=buffers)


def test_no_text_of_a_captured_trace_has_a_lone_surrogate(view: Explorer) -> None:
    assert view.trace.title == WHOLE
    repr(view.trace.nodes).encode()
    repr(view).encode()


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_trace_is_saved_and_read_again(foreign: Trace, tmp_path: Path, suffix: str) -> None:
    path = foreign.save(tmp_path / f"{LONE}{suffix}")
    found = Trace.load(path)
    assert found.title == WHOLE and {node.name for node in found.nodes} == {WHOLE}


def test_pages_pictures_and_scripts_are_utf_8(foreign: Trace, tmp_path: Path) -> None:
    view = Explorer(foreign)
    view.tour([(LONE, None)])
    page = tmp_path / f"{LONE}.html"
    view.to_html(page)
    assert f"<title>{WHOLE}</title>" in page.read_text(encoding="utf-8")
    for picture in (view.trace.svg(), foreign.graph().svg()):
        ElementTree.fromstring(picture.encode())
    assert WHOLE in view.trace.svg()
    script = tmp_path / f"{LONE}.py"
    reproducer(foreign, 0, script)
    compile(script.read_text(encoding="utf-8"), "script", "exec")


@pytest.mark.parametrize("suffix", [".csv", ".chrome.json", ".perfetto-trace", ".svg", ".dot", ".html"])
def test_the_command_exports_it(foreign: Trace, tmp_path: Path, suffix: str) -> None:
    if suffix == ".perfetto-trace":
        pytest.importorskip("perfetto")
    if suffix == ".dot":
        pytest.importorskip("graphviz")
    trace = foreign.save(tmp_path / f"{LONE}.json")
    out = tmp_path / f"{LONE}{suffix}"
    assert cli.main(["export", str(trace), str(out)]) == 0
    data = out.read_bytes()
    if suffix == ".chrome.json":
        assert WHOLE in {event["args"]["name"] for event in json.loads(data)["traceEvents"] if event["ph"] == "M"}
    elif suffix == ".csv":
        assert list(csv.DictReader(data.decode().splitlines()))
    elif suffix != ".perfetto-trace":
        data.decode()


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes on POSIX alone")
def test_a_script_whose_name_is_not_utf_8_runs(tmp_path: Path) -> None:
    script = os.fsencode(tmp_path) + b"/caf\xe9.py"
    with open(script, "w") as file:
        file.write("from tinyexplore import Tensor\n(Tensor([1.0]) + 1).realize()\n")
    command = [os.fsencode(sys.executable), b"-m", b"tinyexplore", b"run", b"--html", b"o.html", script]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=seconds(120))
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert f"Explorer('{WHOLE}.py')" in done.stdout.decode()
    assert f"<title>{WHOLE}.py</title>" in (tmp_path / "o.html").read_text(encoding="utf-8")


def test_a_page_at_the_end_of_a_cell_is_shown_by_its_size() -> None:
    before = explore(lambda: Tensor([1.0, 2.0]).realize() + 1)
    after = explore(lambda: Tensor([1.0, 2.0]).realize() * 3)
    for page in (before.to_html(), compare(before, after).to_html()):
        assert page.startswith("<!") and len(repr(page)) < 80
