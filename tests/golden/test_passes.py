"""LLVM's passes on every kernel of the golden traces: their number, their links, and their size in a page."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.golden.machines import MACHINES, opened
from tests.golden.programs import PROGRAMS, TRACED
from tinyexplore import Device
from tinyexplore.explore import Trace, capture
from tinyexplore.explore.analysis.passes import Pipeline, kernel_passes
from tinyexplore.explore.analysis.passes.passes_data import passes_data
from tinyexplore.explore.analysis.requests import to_data
from tinyexplore.renderer.program import Effort, ProgramSpec

pytestmark = pytest.mark.skipif("LLVM" not in Device.available(), reason="needs llvmlite")

LINKED = 0.95
PAGE_BYTES = 25_000  # of a kernel, as a page has it
MIN_FULL_PASSES = 20
MIN_BRIEF_PASSES = 8  # of a kernel that runs once, for which LLVM does the least


def test_every_golden_kernel_is_followed_through_the_passes_of_llvm() -> None:
    """15 s on two quiet cores: LLVM compiles 30 kernels twice."""
    for name in TRACED:
        with opened(MACHINES[1]):
            with capture(title=name) as session:
                PROGRAMS[name]()
            for number, kernel in session.capture.captured_kernels.items():
                if session.trace.kernels[number].same_as is None:
                    check(session.trace, number, kernel.spec)


def check(trace: Trace, number: int, spec: ProgramSpec) -> None:
    about = (trace.title, number)
    found = kernel_passes(trace, number, spec, Pipeline())
    assert len(found) > (MIN_BRIEF_PASSES if spec.options.effort is Effort.LEAST else MIN_FULL_PASSES), about
    assert found.linked >= LINKED, (about, found.linked)
    data = json.dumps(to_data(passes_data(found, number)), separators=(",", ":")).encode()
    assert len(gzip.compress(data)) * 4 / 3 <= PAGE_BYTES, about
