"""The measurement of two checkouts, and of the gain of each trick."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from bench import against
from bench.against import FIRST, RECORDING, WARM, Comparison, Pair, measure_warm, rotated
from bench.cases import choose_cases
from bench.harness import ROOT, Settings
from bench.tricks import ONCE, TRICKS, Trick, TrickTimes, measure_trick
from tests.support.patience import seconds


def test_a_row_is_over_by_the_minimum_and_by_the_median() -> None:
    assert Pair(WARM, "slower", (1.0, 1.0, 1.0), (1.1, 1.1, 1.1)).is_over
    assert not Pair(WARM, "held up", (1.0, 1.0, 1.0), (1.0, 2.0, 2.0)).is_over
    assert not Pair(WARM, "lucky before", (0.5, 1.0, 1.0), (1.0, 1.0, 1.0)).is_over
    assert not Pair(FIRST, "a little", (1.0,), (1.14,)).is_over
    assert Pair(RECORDING, "dear", (1.0, 1.0), (1.3, 1.3)).is_over


def test_the_table_shows_exceeded_limits_and_failures() -> None:
    pairs = [
        Pair(WARM, "add", (1e-3,), (1e-3,)),
        Pair(WARM, "sum", (1e-3,), (4e-3,)),
        Pair(FIRST, "add", (0.02,), (0.02,)),
    ]
    lines = Comparison(pairs, ["sort: died"]).text().splitlines()
    sentences = lines[6:8]
    assert lines == [
        "| | row | old | new | minima | medians | |",
        "|---|---|---:|---:|---:|---:|---|",
        "| warm | add | 1 ms | 1 ms | 1.000 | 1.000 |  |",
        "| warm | sum | 1 ms | 4 ms | 4.000 | 4.000 | over |",
        "| first run | add | 20 ms | 20 ms | 1.000 | 1.000 |  |",
        "",
        *sentences,
        "sort: died",
    ]
    figures = [re.findall(r"[\d.]+", sentence) for sentence in sentences]
    assert figures == [["1", "2", "1.05", "2.000", "2.000"], ["1", "1", "1.15", "1.000", "1.000"]]
    assert sentences[0].startswith("warm: ") and sentences[0].endswith("over: sum")


def test_the_order_of_the_trees_alternates() -> None:
    assert [rotated(["old", "new"], turn) for turn in range(2)] == [["old", "new"], ["new", "old"]]


def test_a_folder_without_a_checkout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert against.main([str(tmp_path)]) == 2
    assert "git worktree add" in capsys.readouterr().err


def test_samples_of_two_trees_are_interleaved() -> None:
    found = Comparison()
    settings = Settings(rounds=2, slice_seconds=0.002, rest_seconds=0.0, setup_timeout=seconds(60))
    measure_warm(found, choose_cases(["tiny_add"]), {"old": ROOT, "new": ROOT}, settings, lambda text: None)
    assert found.failed == []
    assert [(pair.part, pair.name) for pair in found.pairs] == [(WARM, "tiny_add"), (WARM, "tiny_add, jit")]
    assert all(0 < min(pair.old) and 0 < min(pair.new) for pair in found.pairs)


def test_a_trick_with_a_gain_is_distinguished_from_one_without() -> None:
    idle = [0.0]

    @contextmanager
    def slower():
        idle[0] = 0.01
        yield
        idle[0] = 0.0

    trick = Trick("a nap spared", "nothing", "wall", lambda: lambda: time.sleep(0.001 + idle[0]), slower)
    assert measure_trick(trick, 3).ratio > 2
    assert "less than 5 %" in TrickTimes("nothing", "nothing", "CPU", (1.0,), (1.04,)).line()


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.name)
def test_a_disabled_trick_exists_and_is_restored(trick: Trick) -> None:
    with trick.without():
        pass


def test_tricks_disabled_in_a_fresh_process_exist() -> None:
    program = """
        from tinyexplore.compile import warm_up
        from tinyexplore.jit import tinyjit

        before = [
            (tinyjit, "make_entry"),
            (warm_up, "is_as_written"), (warm_up, "engine_digest"), (warm_up, "wait_for_pool_ahead"),
        ]
        values = [getattr(*place) for place in before]
    """
    after = "assert not any(getattr(*place) is value for place, value in zip(before, values))"
    named = [trick.without for trick in ONCE if "INTERPRETER_TRICKS" not in trick.without]
    whole = "\n".join([dedent(program), *named, after])
    done = subprocess.run([sys.executable, "-c", whole], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
