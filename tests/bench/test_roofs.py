"""Kernels and their roofs: a share above 1 counts only if it exceeds the spread."""

from __future__ import annotations

from dataclasses import replace

from bench.cliffs.programs import PROGRAMS
from bench.roofs import NAMES, Share, capture_program, shares


def test_a_kernel_is_above_its_roof_where_it_exceeds_the_spread() -> None:
    share = Share("E_4", arithmetic=1.05, memory=0.5, spread=0.1)
    assert not share.is_above
    assert replace(share, spread=0.04).is_above and replace(share, memory=1.2).is_above


def test_each_kernel_of_a_program_has_its_share() -> None:
    by_name = {program.name: program for program in PROGRAMS}
    assert set(NAMES) <= set(by_name)
    view = capture_program(by_name["softmax of columns"])
    found = list(shares(view))
    assert len(found) == len(view.trace.runs) > 0
    assert all(share.arithmetic > 0 and share.memory > 0 for share in found)
