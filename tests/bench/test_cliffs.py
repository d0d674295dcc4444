"""The table of ordinary programs: measures two of its rows; a wrong number is a failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from bench.cliffs.measure import Measured, Settings, import_engines, measure
from bench.cliffs.programs import PROGRAMS
from bench.cliffs.reasons import REASONS
from bench.cliffs.report import Report, markdown, with_earlier_rows, write

QUICK = Settings(threads=1, rounds=1, slice_seconds=0.001, rest_seconds=0)
BY_NAME = {program.name: program for program in PROGRAMS}


@pytest.mark.parametrize("name", ["lazy call: x + 1", "lazy call: gradient"])
def test_a_program_is_compared_with_pytorch(name: str) -> None:
    import_engines()
    row = measure(BY_NAME[name], QUICK)
    assert row.failure == "" and min(row.ours, row.theirs, row.first) > 0


def test_a_wrong_number_is_a_failure() -> None:
    import_engines()
    program = BY_NAME["lazy call: x + 1"]
    assert measure(replace(program, theirs=lambda x: x + 1.1), QUICK).failure


def test_every_reason_belongs_to_a_program_and_is_in_the_report() -> None:
    assert REASONS.keys() <= BY_NAME.keys()
    name = next(iter(REASONS))
    rows = [
        Measured(name, "", counts=True, ours=3.0, theirs=2.0),
        Measured("x @ w", "", counts=True, ours=1.0, theirs=1.0),
    ]
    found = markdown(Report({}, rows), None)
    assert f"| {name} | 1.50 | {REASONS[name]} |" in found and found.count("| x @ w |") == 1


def test_parts_of_a_run_are_merged_if_their_settings_are_equal(tmp_path: Path) -> None:
    file = str(tmp_path / "out.json")
    first, second, third = (Measured(name, "", counts=True, ours=1.0, theirs=1.0) for name in list(BY_NAME)[:3])
    write(Report({"threads": "1", "date": "a"}, [second, replace(first, ours=9.0)]), file)
    merged = with_earlier_rows(file, Report({"threads": "1", "date": "b"}, [first, third]))
    assert merged.rows == [first, second, third] and merged.about["date"] == "b"
    with pytest.raises(ValueError, match="threads"):
        with_earlier_rows(file, Report({"threads": "2"}, [first]))


def test_the_table_has_at_least_80_programs() -> None:
    assert len(BY_NAME) == len(PROGRAMS) >= 80
