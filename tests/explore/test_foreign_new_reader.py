"""A new reader is one module and one row, here for GIMPLE of `gcc -fdump-tree-ssa-lineno`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tinyexplore import explore
from tinyexplore.explore import compare, foreign
from tinyexplore.explore.foreign import ForeignError, Reader
from tinyexplore.explore.foreign.dump import Budget, Dump
from tinyexplore.explore.foreign.trace_builder import ForeignTraceBuilder, Operation, Place
from tinyexplore.explore.tracefile.model import Level
from tinyexplore.explore.tracefile.trace import Trace

SSA = """\
;; Function scale (scale, funcdef_no=0, decl_uid=1980, cgraph_uid=1, symbol_order=0)

float scale (float * x, int n)
{
  <bb 2> :
  [scale.c:2:9] s_8 = 0.0;
  [scale.c:3:12] i_9 = 0;

  <bb 3> :
  [scale.c:4:11] _1 = (long unsigned int) i_7;
  [scale.c:4:11] _2 = _1 * 4;
  [scale.c:4:11] _3 = x_13(D) + _2;
  [scale.c:4:11] _4 = [scale.c:4:11] *_3;
  [scale.c:4:15] _5 = _4 * 2.0e+0;
  [scale.c:4:7] s_14 = s_6 + _5;
  [scale.c:3:27] i_15 = i_7 + 1;

  <bb 4> :
  # s_6 = PHI <[scale.c:2:9] s_8(2), [scale.c:4:7] s_14(3)>
  # i_7 = PHI <[scale.c:3:12] i_9(2), [scale.c:3:27] i_15(3)>
  [scale.c:5:10] return s_6;
}
"""
OPTIMIZED = SSA.replace("_5 = _4 * 2.0e+0", "_5 = _4 + _4")
ASSIGNMENT = re.compile(r"\s+(?:\[(\S+):(\d+):\d+\] |# )(?:(\w+) = )?(.*)")


# the module


def recognizes(dump: Dump) -> bool:
    return any(text.startswith(";; Function ") for text in dump.files.values())


def read(dump: Dump, budget: Budget) -> Trace:
    levels = (Level("gimple", "statement", "statements", "program"),)
    building = ForeignTraceBuilder(dump, budget, compiler="GCC", levels=levels, languages=(("gimple", "GIMPLE"),))
    for number, text in enumerate(re.split(r"^(?=;; Function )", "".join(dump.files.values()), flags=re.MULTILINE)[1:]):
        building.text(f"pass {number}", "gimple", list(operations(text)), kind="gimple", law="a pass of GCC")
    return building.trace()


def operations(text: str) -> Iterator[Operation]:
    for line in text.splitlines():
        match = ASSIGNMENT.match(line)
        if not match:
            yield Operation(line)
            continue
        file, number, name, value = match.groups()
        op = "phi" if value.startswith("PHI") else (re.findall(r" ([-+*/]) |(return)", value) or [("copy", "")])[0]
        place = Place(file, int(number)) if file else None
        uses = tuple(re.findall(r"\b\w*_\d+\b", value))
        shown = f"  {name} = {value}" if name else f"  {value}"  # the view has the locations
        yield Operation(shown, op if isinstance(op, str) else "".join(op), (name,) if name else (), uses, place=place)


# the row


ROW = Reader("gimple", "GCC", "12", "a text of gcc -fdump-tree-all-lineno")


@pytest.fixture
def dumped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A dump of two passes, before the reader is there."""
    (tmp_path / "scale.txt").write_text(SSA + OPTIMIZED)
    with pytest.raises(ForeignError, match="no known format"):
        explore.open(tmp_path / "scale.txt")
    module = ModuleType(f"{foreign.__name__}.{ROW.module}")
    module.recognizes, module.read = recognizes, read  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(foreign, "READERS", (*foreign.READERS, ROW))
    return tmp_path / "scale.txt"


def test_a_trace_of_a_new_reader_works_in_every_view_and_export(dumped: Path) -> None:
    view = explore.open(dumped)
    trace = view.trace
    assert trace.dialect is not None and trace.dialect.compiler == "GCC"
    assert [trace.stages[text.stage].name for text in trace.stage_texts] == ["pass 0", "pass 1"]
    (before, after) = trace.stage_texts
    assert len(before.lines) == len(after.lines) == len(SSA.splitlines())
    (place,) = [one for one in trace.find_lines(r"_4 \+ _4", "gimple") if one.text.id == after.id]
    history = trace.line_history(place.text, place.number)
    assert [one.line.text.strip() for one in history] == [
        "_5 = _4 * 2.0e+0;",
        "_5 = _4 + _4;",
    ]
    (node,) = place.line.nodes
    user = trace.nodes[node].user
    assert user is not None and (trace.frames[user].line, trace.nodes[node].op) == (4, "+")
    assert trace.back_edges  # to the PHIs of the loop
    page = view.to_html()
    assert 'data-chunk="stage_texts"' in page and trace.graph(len(trace.stages) - 1).svg().startswith("<svg")
    assert compare(view, explore.open(dumped)).same and "GCC" in repr(view)
