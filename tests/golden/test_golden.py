"""The generated sources of fixed programs for fixed machines are equal to the golden files. CI compares all of them.

If a change of the sources is intended, `python -m tests.golden --update` shows it and writes the files.
"""

from __future__ import annotations

import pytest

from tests.golden.__main__ import TRACES, about, differences, heads, path_of
from tests.golden.machines import MACHINES, Machine, opened
from tests.golden.programs import PROGRAMS, SMALL, TRACED
from tests.golden.record import made, made_traces, read, shown_sources
from tinyexplore.util import Context

HOW = "where this is meant: python -m tests.golden --update"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_sources_of_small_programs_equal_the_golden_files(machine: Machine) -> None:
    kept = read(path_of(machine.name))
    before = {title: text for title, text in kept.items() if about(title) in SMALL}
    found = "\n".join(differences(before, made(machine, machine.of(SMALL))))
    assert not found, f"{found}\n{HOW}"


def test_recorded_traces_equal_the_golden_files() -> None:
    found = "\n".join(differences(read(path_of(TRACES)), made_traces(TRACED)))
    assert not found, f"{found}\n{HOW}"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_each_pass_meets_its_spec_for_every_program(machine: Machine) -> None:
    for name in machine.of(PROGRAMS):
        program = PROGRAMS[name]
        with opened(machine) as listener, Context(SPEC=1):
            program()
        assert listener.bound, name


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_program_has_a_section_and_no_other_has(machine: Machine) -> None:
    assert set(map(about, read(path_of(machine.name)))) == set(machine.of(PROGRAMS))
    assert path_of(machine.name).read_text(encoding="utf-8").startswith(heads()[machine.name])


def test_a_program_does_not_depend_on_earlier_compilations() -> None:
    first = shown_sources("softmax", MACHINES[0])
    shown_sources("layernorm", MACHINES[1])
    assert shown_sources("softmax", MACHINES[0]) == first


def test_differences_are_shown_by_section() -> None:
    before = {"a": "1\n2\n3", "b": "same", "gone": "x"}
    after = {"a": "1\n5\n3", "b": "same", "new": "y"}
    changed, added, removed = differences(before, after)
    assert "-2" in changed and "+5" in changed and "a" in changed
    assert (added, removed) == ("+ new", "- gone")
