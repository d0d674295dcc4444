"""Part of the fuzz of opts on GPUs: `python -m tests.fuzz.gpu --count 2000` runs more."""

from __future__ import annotations

from itertools import count

import pytest

from tests.fuzz import gpu
from tests.fuzz.gpu import TARGETS, Mismatch, Tried, run_case, run_cases
from tests.fuzz.programs import PROGRAMS
from tinyexplore.codegen import PASSES
from tinyexplore.engine import compile_optimized
from tinyexplore.kernel import Kernel, OptOps
from tinyexplore.kernel.opts import OPT_KINDS

SEQUENCES = 60


def test_opts_of_gpus_change_no_result_and_let_no_work_items_race() -> None:
    tried = run_cases(count(100_000), SEQUENCES)
    assert tried.sequences >= SEQUENCES
    assert set(tried.targets) == set(TARGETS)
    for_gpus = {op.name for op in OptOps if OPT_KINDS[op].machine != "cpu"} - {
        "TRIM",
        "PREFETCH",
        "VECTOR",
        "THREAD",
        "TRANSPOSE_STORE",
    }
    assert len(for_gpus & set(tried.kinds)) >= len(for_gpus) - 2, for_gpus - set(tried.kinds)
    assert len(tried.programs) > len(PROGRAMS) // 3


def test_a_race_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the barrier at the end of a step, a work-item fills shared memory for the next one while others read."""

    def without_the_last_barrier(device: str, kernel: Kernel) -> object:
        return compile_optimized(device, kernel, tuple(step for step in PASSES if step.name != "loop barriers"))

    monkeypatch.setattr(gpu, "compile_optimized", without_the_last_barrier)
    with pytest.raises(Mismatch, match=r"STAGE.*RaceError: .*tile0\[\d+\], which work-item .* has"):
        for number in range(100_000, 100_200):
            run_case(number, Tried(), "sm_90", ["small_product"])


def test_a_barrier_required_by_later_stores_is_not_removed() -> None:
    """Shared memory of a reduction is filled from a tile that is copied in vectors: the copy was there twice."""
    run_case(101, Tried())


def test_vector_stores_wait_for_the_copy_of_a_scatters_result() -> None:
    """A scatter of one step per row: its stores, joined to a vector, lost the copy that comes before them."""
    run_case(1_590_963, Tried())
