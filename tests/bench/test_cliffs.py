"""The table of ordinary programs: two of its rows are measured, and a wrong number is a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from bench.cliffs.measure import Settings, import_engines, measure
from bench.cliffs.programs import PROGRAMS

QUICK = Settings(threads=1, rounds=1, slice_seconds=0.001, rest_seconds=0)
BY_NAME = {program.name: program for program in PROGRAMS}


@pytest.mark.parametrize("name", ["lazy call: x + 1", "lazy call: gradient"])
def test_a_program_is_timed_beside_pytorch(name: str) -> None:
    import_engines()
    row = measure(BY_NAME[name], QUICK)
    assert row.failure == "" and min(row.ours, row.theirs, row.first) > 0


def test_a_wrong_number_is_a_failure() -> None:
    import_engines()
    program = BY_NAME["lazy call: x + 1"]
    assert measure(replace(program, theirs=lambda x: x + 1.1), QUICK).failure


def test_the_table_has_at_least_80_programs() -> None:
    assert len(BY_NAME) == len(PROGRAMS) >= 80
