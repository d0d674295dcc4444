"""The linear program as editable text: parsing returns the same program, and errors have a position."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.fuzz.stepping import drawn, lowered
from tests.golden.machines import MACHINES, opened
from tests.golden.programs import PROGRAMS, SMALL
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.explore.whatif.editing.linear_text import ProgramError, check_program, parse_program, program_text
from tinyexplore.uop import UOp


def is_there_and_back(uops: tuple[UOp, ...]) -> None:
    """The same objects in the same order, and nothing is wrong with them."""
    found = parse_program(program_text(uops))
    assert len(found) == len(uops)
    assert all(one.uop is uop for one, uop in zip(found, uops))
    check_program(found, uops)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_programs_text_is_read_back_as_the_same_uops(name, machine):
    with opened(machine) as listener:
        PROGRAMS[name]()
        assert listener.bound
        for program in listener.bound.values():
            is_there_and_back(tuple(program.spec.uops))  # made again, for this machine


def test_random_programs_with_every_operation_and_type_are_read_back_as_well():
    for number in range(200):
        is_there_and_back(tuple(drawn(Random(number))))
    kernels = [uops for number in range(20) if (uops := lowered(Random(number))) is not None]
    assert kernels
    for uops in kernels:
        is_there_and_back(tuple(uops))


PROGRAM = """\
DEFINE_GLOBAL data0 : float32[64]
DEFINE_GLOBAL data1 : float32[64]
CONST 64
for g0 in range(64):
  %4 = INDEX data1[g0]
  %5 = LOAD %4 : float32
  CONST 2.0:float32
  %7 = MUL %5, 2.0:float32 : float32
  %8 = INDEX data0[g0]
  %9 = STORE %8, %7
end g0
"""


def test_a_number_without_a_line_of_its_own_gets_one():
    short = "\n".join(line for line in PROGRAM.splitlines() if "CONST" not in line)
    before = [one.uop for one in parse_program(PROGRAM)]
    assert program_text(before) == PROGRAM
    found = [one.uop for one in parse_program(short + "  # and a comment")]
    assert found == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("LOAD", "LOOD", "line 6, column 8: .*LOOD"),
        ("MUL %5", "MUL %55", "line 8, column 12: .*%55"),
        ("float32[64]\nC", "flout32[64]\nC", "line 2, column 23: .*'flout32"),
        ("end g0", "end g1", "line 11, column 5: .*g1"),
        ("end g0\n", "", "line 4: .*g0 .*end g0"),
        ("range(64):", "range(64)", "line 4, column 20: .*':'"),
        ("for g0", "for y0", "line 4, column 5: .*g global, t thread"),
        ("2.0:float32 : float32", "2.0:float32 : int32", "line 8: .*MUL : int32 of LOAD"),
        ("%5, 2.0:float32", "%5, 2.0", "line 8, column 16: .*type.*2.0:float32"),
        ("%8, %7", "%8, %7, %5", "line 10: .*STORE"),
        ("float32[64]\nD", "float32[32]\nD", "line 1: .*arguments"),
        ("DEFINE_GLOBAL data1 : float32[64]\n", "", "line 4, column 14: .*data1"),
        ("%4 = INDEX", "%4 = INDEX{(1,}", "line 5, column 14: .*argument"),
        ("INDEX data1[g0]", "INDEX data1[g0", "line 5, column 22: expected '\\]'"),
        ("end g0\n", "end g0\n%11 = STORE %8, %5\n", "line 12: .*STORE uses INDEX.*g0"),
        ("%7 = MUL", "%5 = MUL", "line 8, column 3: %5 is defined already"),
    ],
)
def test_errors_have_their_line_and_column(old, new, words):
    before = [one.uop for one in parse_program(PROGRAM)]
    assert old in PROGRAM
    with pytest.raises(ProgramError) as caught:
        check_program(parse_program(PROGRAM.replace(old, new, 1)), before)
    assert re.match(words, str(caught.value))


# *** edited in a kernel ***


@pytest.fixture(scope="module")
def view() -> Explorer:
    x = Tensor.rand(64).realize()
    return explore(lambda: x * 2 + 1, repeat=1, keep_inputs=True)


def test_an_edited_program_is_rendered_compiled_and_compared(view):
    text = view.kernels[0].edit_text("uops")
    lines = text.splitlines()
    number = next(number for number, line in enumerate(lines) if "MUL " in line and "float32" in line)
    line = lines[number]
    x, two = line.partition("MUL ")[2].partition(" :")[0].split(", ")
    lines[number] = line.replace(f"MUL {x}, {two}", f"ADD {x}, {x}")
    branch = view.kernels[0].edit("uops", "\n".join(lines) + "\n")
    assert branch.status == "done" and branch.edited.verdict in ("same bits", "within rounding")
    listings = {listing.language: "\n".join(listing.lines) for listing in branch.kernels[0].listings}
    assert {"uops", "llvm", "c", "asm"} <= listings.keys() and "%" in listings["uops"] and "fadd" in listings["llvm"]
    again = view.kernels[0].edit("c", view.kernels[0].edit_text("c") + "// of the edited program\n")
    assert again.parent == branch.id and again.status == "done"
    assert view.kernels[0].undo() == branch and view.kernels[0].undo().edited is None
    three = view.kernels[0].edit("uops", text.replace(two, two.replace("2.0", "3.0")))
    assert three.edited.verdict == "differs" and three.status == "done"
    view.kernels[0].undo()


def test_a_wrong_program_is_refused_at_its_line_and_a_wrong_index_is_caught(view):
    text = view.kernels[0].edit_text("uops")
    number = next(number for number, line in enumerate(text.splitlines(), 1) if "LOAD" in line)
    branch = view.kernels[0].edit("uops", text.replace("LOAD", "LOOD", 1))
    (found,) = branch.edited.diagnostics
    assert branch.status == "failed" and found.line == number and "LOOD" in found.text
    line = next(line for line in text.splitlines() if "INDEX data1" in line)
    far = line.partition("[")[0] + "[4000]"
    branch = view.kernels[0].edit("uops", text.replace(line, far, 1))
    assert branch.status == "failed" and "the end of data1 (x)" in branch.reason


def test_on_the_python_device_an_endless_program_is_stopped_as_well(monkeypatch):
    monkeypatch.setattr("tinyexplore.explore.whatif.editing.client.LIMIT_S", 1.5)
    x = Tensor.rand(8, device="PYTHON").realize()
    view = explore(lambda: x + 1, repeat=1)
    text = view.kernels[0].edit_text("uops")
    assert "range(8)" in text
    good = view.kernels[0].edit("uops", text + "# nothing else\n")
    assert good.reason == "nothing was changed" or good.status == "done"
    line = next(line for line in text.splitlines() if "STORE" in line)
    slow = "  for g7 in range(1000000000):\n  " + line + "\n  end g7"
    branch = view.kernels[0].edit("uops", text.replace(line, slow, 1))
    assert branch.status == "failed" and "longer than 1.5 s" in branch.reason
