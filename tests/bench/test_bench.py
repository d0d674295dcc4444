"""The benchmark harness: peers in processes, rejection of wrong results, correct ratios."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import references, rewriting
from bench.__main__ import main
from bench.awake import Awake
from bench.cases import CASES, CLEAR, TINY, UnknownCase, choose_cases
from bench.first_run import measure_first_runs
from bench.harness import Harness, Settings, Timing, rounds_of_peers
from bench.overhead import python_cases
from bench.peers import PEERS, Engine, Peer, as_input, empty, spoil_array
from bench.peers.tinyexplore import Engine as TinyexploreEngine
from bench.references import STEPS
from bench.report import Figures, FirstRun, Report, make_row
from bench.stripped import strip
from bench.tables import markdown, text, three_digits
from bench.targets import aims, cases_with_aims, python_costs
from bench.wasm import Case, measure
from bench.worker import Worker, WrongResult, compare
from tests.support.patience import seconds

QUICK = Settings(rounds=2, slice_seconds=0.002, rest_seconds=0.0, setup_timeout=seconds(60))


def tiny(name: str):
    return choose_cases([name])[0]


def test_two_tiny_cases_run_against_numpy_and_are_written_as_table_data_and_plot(tmp_path: Path, capsys) -> None:
    arguments = ["tiny_add", "tiny_matmul", "--against", "numpy", "--without-us", "--rounds", "2", "--slice-ms", "2"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "results.json").read_text())
    assert [case["name"] for case in data["cases"]] == ["tiny_add", "tiny_matmul"]
    assert all(case["best_peer"] == "numpy" for case in data["cases"])
    assert all(0 < case["peers"]["numpy"]["min_ms"] <= case["peers"]["numpy"]["median_ms"] for case in data["cases"])
    assert {probe["name"] for probe in data["probes"]} >= {"fma_float32", "read_l1", "read_memory", "copy_memory_nt"}
    assert (tmp_path / "plot.svg").read_text().count("numpy:") == 2
    assert "tiny_matmul" in capsys.readouterr().out


def test_tinyexplore_itself_is_a_peer_that_is_checked_and_timed() -> None:
    said: list[str] = []
    with Harness(["tinyexplore", "numpy"], QUICK, say=said.append) as harness:
        assert (harness.peers, said) == (["tinyexplore", "numpy"], [])
        timings = harness.run(tiny("tiny_softmax"))
    assert {name: timing.failure for name, timing in timings.items()} == dict.fromkeys(timings)
    row = make_row(tiny("tiny_softmax"), timings, None)
    assert (row.ours, row.best) == ("tinyexplore", "numpy")
    assert row.ours_over_best == row.figures["tinyexplore"].minimum / row.figures["numpy"].minimum


def test_a_peer_with_a_wrong_result_gets_no_time() -> None:
    case = tiny("tiny_add")
    wrong = replace(case, reference=lambda x: (x["a"] - x["b"],))
    with Harness(["numpy"], QUICK) as harness:
        timing = harness.run(wrong)["numpy"]
        assert (timing.failure, timing.samples) == ("wrong", [])
        assert "the reference has" in timing.reason
        # and the process is still good for the next case
        assert harness.run(case)["numpy"].failure is None


def test_a_result_that_becomes_wrong_during_timing_is_refused(tmp_path: Path) -> None:
    class Drifting(Engine):
        def prepare(self, family, arrays):
            calls = [0.0]

            def call():
                calls[0] += 1
                return arrays["a"] + (0 if calls[0] < 4 else 1)

            return call

        def to_numpy(self, result):
            return (result,)

    worker = Worker("numpy")
    worker.engine = Drifting("", 1)
    values = np.arange(4, dtype=np.float32)
    np.savez(tmp_path / "i.npz", a=values)
    np.savez(tmp_path / "r.npz", values)
    files = {"inputs": str(tmp_path / "i.npz"), "reference": str(tmp_path / "r.npz")}
    assert worker.answer({"do": "setup", "family": "", **files, "rtol": 0, "atol": 0, "traffic": [0, 0], "steps": 0})[
        "ok"
    ]
    reply = worker.answer({"do": "check"})
    assert (reply["ok"], reply["kind"]) == (False, "wrong")


class Recorded(Engine):
    """A peer that computes once and then only shows the same memory again, as a broken replay would."""

    def prepare(self, family, arrays):
        out = arrays["a"] + arrays["b"]
        return lambda: out

    def to_numpy(self, result):
        return (result.copy(),)

    def spoil(self, result):
        spoil_array(result)


def test_a_replay_that_does_nothing_is_detected(tmp_path: Path) -> None:
    worker = Worker("numpy")
    worker.engine = Recorded("", 1)
    case = tiny("tiny_add")
    assert worker.answer(setup_request(case, tmp_path, steps=0))["ok"]
    assert worker.answer({"do": "check"})["kind"] == "wrong"


def test_inputs_and_results_of_all_peers_start_at_a_cache_line_and_only_results_are_spoiled() -> None:
    for number in range(1, 8):  # NumPy's own would lie at 16, 32 or 48 bytes from one
        values = np.arange(number, dtype=np.float32)
        given, result = as_input(values), empty((number, 2), np.int64)
        assert (given.ctypes.data % 64, result.ctypes.data % 64, result.shape) == (0, 0, (number, 2))
        result[...] = 0
        for array in (given, given[::-1][::-1], result):
            spoil_array(array)
        assert given.tolist() == values.tolist() and set(result.flat) == {-1}


def test_a_training_step_that_trains_only_once_is_detected(tmp_path: Path) -> None:
    case = tiny("tiny_mlp_sgd")

    class Once(Engine):
        def prepare(self, family, arrays):
            found = case.reference(arrays)[:-1]
            return lambda: found

        def to_numpy(self, result):
            return result

    worker = Worker("numpy")
    worker.engine = Once("", 1)
    reply = worker.answer(setup_request(case, tmp_path, steps=STEPS))
    assert (reply["ok"], reply["kind"]) == (False, "wrong")
    assert "result 7 at [" in reply["reason"]


def setup_request(case, folder: Path, steps: int) -> dict:
    arrays = case.make_inputs()
    np.savez(folder / "i.npz", **arrays)
    np.savez(folder / "r.npz", *(np.asarray(value) for value in case.reference(arrays)))
    files = {"inputs": str(folder / "i.npz"), "reference": str(folder / "r.npz")}
    tolerance = {"rtol": case.rtol, "atol": case.atol}
    return {"do": "setup", "family": case.family, **files, **tolerance, "traffic": [0, 0], "steps": steps}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (np.array([1.0, 2.1]), "result 0 at \\[1\\] is 2.1; .* 2 "),
        (np.array([1.0, np.nan]), "not numbers"),
        (np.array([[1.0, 2.0]]), "shape"),
    ],
)
def test_compare_refuses_wrong_results(found: np.ndarray, words: str) -> None:
    with pytest.raises(WrongResult, match=words):
        compare((found,), (np.array([1.0, 2.0]),), rtol=0.01, atol=0.0)


def test_compare_returns_the_error_as_a_share_of_the_tolerance() -> None:
    assert compare((np.array([1.0, 2.01]),), (np.array([1.0, 2.0]),), rtol=0.01, atol=0.0) == pytest.approx(0.5)


def test_a_missing_peer_is_skipped_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "absent", Peer("absent", "absent", "", "absent", ""))
    said: list[str] = []
    with Harness(["absent", "numpy"], QUICK, say=said.append) as harness:
        assert harness.peers == ["numpy"]
        assert list(harness.left_out) == ["absent"]
    assert len(said) == 1
    assert "absent is LEFT OUT" in said[0]


def test_ratios_of_a_synthetic_run() -> None:
    case = replace(tiny("tiny_add"), flops=2_000_000, read_bytes=10**6, write_bytes=0)
    timings = {
        "tinyexplore": Timing(samples=[0.004, 0.002, 0.003]),
        "tinyexplore.jit": Timing(samples=[0.001, 0.0015]),
        "numpy": Timing(samples=[0.002, 0.002]),
        "torch": Timing(samples=[0.0005, 0.01]),
        "jax": Timing(failure="wrong", reason="off by one"),
        "machine": Timing(samples=[0.0001, 0.0002]),
    }
    row = make_row(case, timings, peak_flops=10e9)
    assert (row.ours, row.best) == ("tinyexplore.jit", "torch")
    assert row.ours_over_best == pytest.approx(2.0)
    assert (row.limit, row.limited_by) == (pytest.approx(0.0002), "flops")
    assert row.over_limit(row.ours) == pytest.approx(5.0)
    assert row.figures["tinyexplore"] == Figures(0.002, 0.0025, 0.003, 0.0035, 3)
    report = Report({}, {}, {"numba": "not installed"}, [], [row])
    table = text(report)
    assert "tiny_add, jax: wrong: off by one" in table
    assert "LEFT OUT: numba: not installed" in table
    assert "best peer in 0 of 1" in table and "geometric mean 2.00×" in table
    assert "Spread: " in table
    (data,) = report.to_dict()["cases"]
    assert (data["ours_over_best_peer"], data["ours_over_limit"]) == (pytest.approx(2.0), pytest.approx(5.0))


def sample_report() -> Report:
    timings = {
        "tinyexplore": Timing(samples=[0.004, 0.002, 0.003]),
        "tinyexplore.jit": Timing(samples=[0.001, 0.0015]),
        "torch.compile": Timing(samples=[0.003]),
        "torch.max": Timing(samples=[0.002]),
        "jax": Timing(failure="wrong", reason="off by\none"),
        "machine": Timing(samples=[0.0005]),
    }
    case = replace(choose_cases(["matmul_512"])[0], flops=10**9, read_bytes=10**6)
    first = FirstRun(
        "matmul_512",
        {"tinyexplore": 0.03, "tinyexplore, warm disk": 0.01, "jax": 0.06},
        {"tinyexplore": 0.1, "jax": 0.4},
        date="2026-01-02",
    )
    entry = {"area": "import", "name": "import", "who": "tinyexplore", "value": 80.0, "unit": "ms", "target": 100.0}
    about = {"machine": "some CPU", "threads": 2}
    row = make_row(case, timings, peak_flops=4e12, date="2026-01-02")
    return Report(about, {"jax": "1"}, {}, [("fma_float32", 1, 267.0, "GFLOP/s")], [row], [first], [entry])


def test_a_report_round_trips_through_its_file(tmp_path: Path) -> None:
    report = sample_report()
    assert Report.load(report.save(tmp_path / "results.json")) == report


def test_markdown_has_a_column_for_each_engine_at_its_best_and_every_aim() -> None:
    lines = markdown(sample_report(), "some command").splitlines()
    assert "| `matmul_512` | 2.00 | 1.00 | **2.00** | WRONG | 0.50× | 0.500 | memory | 50 % |" in lines
    assert "| `matmul_512` | 30.0 | 10.0 | 60.0 | 0.50× | 0.25× |" in lines
    rates = "≥ 0.865 of the limit (460 of 532 GFLOP/s) | 0.500 of the limit (1000 of 2000 GFLOP/s)"
    assert f"| matmul, all layouts | matmul_512 | {rates} | 1.73× off |" in lines
    assert "| import | import | ≤ 100 ms | 80.0 ms | yes |" in lines
    assert any(line.startswith("| sort | sort_1M | ≤ 0.990 ×") and "| not measured |" in line for line in lines)
    assert "- matmul_512, jax: wrong: off by one" in lines


def test_a_later_run_keeps_what_it_did_not_measure_and_only_of_the_same_machine() -> None:
    older = sample_report()
    row = make_row(choose_cases(["sort_1M"])[0], {"numpy": Timing(samples=[0.004])}, None)
    newer = Report(older.about, {"numpy": "2"}, {}, [], [row])
    both = newer.updating(older)
    assert [row.name for row in both.rows] == ["matmul_512", "sort_1M"]
    assert (both.first, both.overhead, both.probes) == (older.first, older.overhead, older.probes)
    elsewhere = Report({"machine": "another CPU", "threads": 2}, {}, {}, [])
    with pytest.raises(ValueError, match="some CPU, .*another CPU"):
        elsewhere.updating(older)


def test_every_case_with_an_aim_exists_and_a_missed_aim_reports_its_ratio() -> None:
    assert set(cases_with_aims()) <= {case.name for case in CASES}
    report = sample_report()
    report.overhead[0]["value"] = 150.0
    (aim,) = [aim for aim in aims(report) if aim.area == "import"]
    assert (aim.is_met, aim.found, aim.aim) == (False, 150.0, 100.0)
    assert "| import | import | ≤ 100 ms | 150 ms | 1.50× off |" in markdown(report, "")


def test_a_kernels_aim_is_compared_as_a_share_of_each_machines_limit() -> None:
    times = {"tinyexplore.jit": 3e-3, "numpy": 4e-3, "machine": 2e-3}
    timings = {name: Timing(samples=[seconds]) for name, seconds in times.items()}
    rows = [make_row(choose_cases([name])[0], timings, None) for name in ("ew_chain_16M", "sort_1M")]
    found = {aim.name: aim for aim in aims(Report({}, {}, {}, [], rows)) if aim.found is not None}
    assert found["ew_chain_16M"].found == pytest.approx(1.5) and found["ew_chain_16M"].aim == pytest.approx(6 / 2.88)
    assert found["sort_1M"].found == pytest.approx(0.75) and found["sort_1M"].here == "3 of 4 ms"
    assert len(found) == 2 and all(aim.is_met for aim in found.values())


def test_first_runs_are_checked_and_the_second_finds_the_first_ones_code() -> None:
    case = tiny("tiny_bias_relu")
    (run,) = measure_first_runs([case], ["numpy"], QUICK, say=lambda text: None)
    assert (run.name, run.failures) == (case.name, {})
    assert set(run.seconds) == {"tinyexplore", "tinyexplore, warm disk", "numpy"}
    assert all(run.with_imports[way] > seconds for way, seconds in run.seconds.items())
    (bad,) = measure_first_runs([replace(case, rtol=0, atol=0)], ["numpy"], QUICK, say=lambda text: None)
    assert bad.failures["tinyexplore"][0] == "wrong"


def test_no_image_of_the_convnet_is_close_to_a_kink_of_a_gradient() -> None:
    arrays = tiny("tiny_convnet_adam").make_inputs()
    assert references.convnet_clearance(arrays).min() >= CLEAR
    # a first convolution of 0 puts every ReLU's input at its bias: one all but 0 is found in every image
    arrays["c1"][3], arrays["d1"][3] = 0, 1e-9
    assert references.convnet_clearance(arrays).max() < 1e-8


def test_a_case_that_tinyexplore_does_not_support_stays_in_the_table() -> None:
    timings = {"tinyexplore": Timing(failure="unsupported", reason="no sort"), "numpy": Timing(samples=[0.001])}
    row = make_row(tiny("tiny_sort"), timings, None)
    assert (row.ours, row.ours_over_best) == (None, None)
    table = text(Report({}, {}, {}, [], [row]))
    assert "CANNOT YET" in table
    assert "tiny_sort, tinyexplore: unsupported: no sort" in table


def test_slow_peers_take_part_in_fewer_rounds_spread_evenly() -> None:
    settings = Settings(rounds=6, slice_seconds=0.01)
    rounds = rounds_of_peers({"fast": 0.001, "slow": 0.06, "slower": 10.0}, settings)
    assert [names.count("fast") for names in rounds] == [1] * 6
    assert [number for number, names in enumerate(rounds) if "slow" in names] == [0, 2, 4]
    assert [number for number, names in enumerate(rounds) if "slower" in names] == [0, 3]


def test_cases_are_chosen_by_beginning_and_unknown_ones_refused() -> None:
    assert [case.name for case in choose_cases(["mlp_"])] == ["mlp_fwd_128", "mlp_sgd_128", "mlp_adam_128"]
    assert choose_cases([]) == list(CASES)
    with pytest.raises(UnknownCase, match="no case is called 'nonsense'"):
        choose_cases(["nonsense"])


@pytest.mark.parametrize(
    "words",
    ["--rounds 0", "--rounds -3", "--rounds x", "--slice-ms 0", "--timeout -1", "--timeout nan", "--threads 0"]
    + [f"--threads {(os.cpu_count() or 1) + 1}"],
)
def test_settings_that_measure_nothing_are_refused(words: str, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tiny_add", *words.split()])
    option, value = words.split()
    assert f"argument {option}: " in (told := capsys.readouterr().err) and value in told


def test_every_family_of_cases_has_a_tiny_one() -> None:
    assert {case.family for case in CASES} == {case.family for case in TINY}


def test_inputs_are_the_same_every_time() -> None:
    case = tiny("tiny_mlp_sgd")
    first, second = case.make_inputs(), case.make_inputs()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def block_gradients(arrays):
    loss, *found = references.block_fwdbwd(arrays)
    return loss, dict(zip([name for name in arrays if name != "x"], found, strict=True))


@pytest.mark.parametrize(
    ("name", "gradients"),
    [
        ("tiny_mlp_sgd", references.mlp_gradients),
        ("tiny_block_fwdbwd", block_gradients),
        ("tiny_convnet_adam", references.convnet_gradients),
    ],
)
def test_the_references_gradients_are_those_of_their_losses(name: str, gradients) -> None:
    """Central differences in float64, along one random direction for each parameter."""
    arrays = {
        key: value.astype(np.float64) if value.dtype == np.float32 else value
        for key, value in tiny(name).make_inputs().items()
    }
    rng = np.random.default_rng(0)
    found = gradients(arrays)[1]
    assert len(found) >= 6
    for key, gradient in found.items():
        direction, step = rng.standard_normal(arrays[key].shape), 1e-8  # a larger step would cross kinks of a ReLU
        ends = [float(gradients({**arrays, key: arrays[key] + move * direction})[0]) for move in (step, -step)]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-5), key


def test_numbers_have_three_digits() -> None:
    assert [three_digits(value) for value in (0, 0.01234, 1.5, 123.456, 12345.6)] == [
        "0",
        "0.0123",
        "1.50",
        "123",
        "12,346",
    ]


def test_the_command_finds_the_checkouts_bench_from_any_folder(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "bench.py").write_text("raise SystemExit('the wrong bench')")
    command = [sys.executable, "-m", "tinyexplore", "bench", "--list"]
    env = {**os.environ, "PYTHONPATH": str(repository)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds(60))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ew_chain_16M")


def test_stripping_removes_every_recorder_check() -> None:
    lines = [
        "def f(x):",
        "    r = 1",
        "    recorder = active_recorder()",
        "    if recorder is not None:",
        "        recorder.record(x)",
        "    if recorder is None:",
        "        r = 2",
        "    return record_stage('a', x, lambda: r)",
    ]
    tree, removed = strip("\n".join(lines))
    stripped = "def f(x):\n    r = 1\n    recorder = None\n    pass\n    r = 2\n    return (lambda: r)()"
    assert ast.dump(tree) == ast.dump(ast.parse(stripped))
    assert removed == 4


def test_costs_in_python_are_compared_with_half_of_tinygrads() -> None:
    def cost(what: str, who: str, value: float | str, unit: str = "µs") -> dict:
        return {"area": "Python", "name": what, "who": who, "value": value, "unit": unit, "target": None}

    entries = [
        cost("an op", "tinyexplore", 1.2),
        cost("an op", "tinygrad", 4.0),
        cost("an op", "tinygrad.llvm", 3.0),
        cost("a call", "tinyexplore.jit", 2.0),
        cost("a call", "tinygrad", 3.2),
        cost("a replay", "tinyexplore.jit", 0.5),
        cost("a replay", "tinygrad", "ERROR", ""),
        cost("a replay", "torch", 0.1),
        {**cost("import", "tinygrad", 90.0), "area": "import"},
    ]
    report = Report({}, {}, {}, [], overhead=entries)
    found = [(cost.what, cost.ours, cost.theirs, cost.ratio, cost.is_met) for cost in python_costs(report)]
    assert found == [
        ("an op", 1.2, 3.0, 1.2 / 3.0, True),
        ("a call", 2.0, 3.2, 0.625, False),
        ("a replay", 0.5, None, None, None),
    ]
    lines = markdown(report, "").splitlines()
    start = lines.index("## Python, beside tinygrad")
    assert lines[start + 4].endswith("| at most 0.5× |")
    assert lines[start + 5 :][:4] == [
        "| --- | ---: | ---: | ---: | ---: |",
        "| an op | 1.20 | 3.00 | 0.400× | yes |",
        "| a call | 2.00 | 3.20 | 0.625× | no |",
        "| a replay | 0.500 | – | – | – |",
    ]
    assert "| Python / tinygrad's | a call | ≤ 0.500 × | 0.625 × | 1.25× off |" in lines
    assert "a call  " in text(report).splitlines()[-2]
    assert "beside tinygrad" not in markdown(Report({}, {}, {}, [], overhead=entries[:1]), "")


def test_the_programs_of_pythons_costs_are_run_and_checked() -> None:
    with Harness(["tinyexplore", "tinyexplore.jit"], QUICK) as harness:
        for row in python_cases():
            timings = harness.run(row.case)
            assert {timing.failure for timing in timings.values()} <= {None, "unsupported"}, timings
            assert any(timing.samples for timing in timings.values())


# *** cores that stay awake ***


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="this system has no class of processes that give way")
def test_each_core_runs_a_low_priority_loop_while_others_are_timed() -> None:
    said: list[str] = []
    with Awake(said.append, settles=0.0) as awake:
        numbers = [process.pid for process in awake.processes]
        assert [os.sched_getaffinity(number) for number in numbers] == [{core} for core in os.sched_getaffinity(0)]
        assert {os.sched_getscheduler(number) for number in numbers} == {os.SCHED_IDLE}
        assert all(process.poll() is None for process in awake.processes)
    assert (awake.processes, said) == ([], [])
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="this system has no class of processes that give way")
def test_the_loops_end_when_their_parent_is_killed() -> None:
    code = (
        "from bench.awake import Awake; a = Awake(print, settles=0.0).__enter__(); print(a.processes[0].pid); input()"
    )
    started = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    number = int(started.stdout.readline())
    os.kill(number, 0)
    started.kill()
    started.wait()
    for _ in range(1000):
        if not Path(f"/proc/{number}").exists() or " Z " in Path(f"/proc/{number}/stat").read_text():
            return
        time.sleep(0.02)
    pytest.fail("it still spins")


@pytest.mark.parametrize("graphs", rewriting.GRAPHS.values(), ids=lambda graphs: graphs.name)
def test_the_rewriter_is_measured_on_correctly_simplified_graphs(graphs: rewriting.Graphs) -> None:
    api = TinyexploreEngine("", 1).api
    found = rewriting.measure(api, graphs, rounds=2)
    assert found["rewrites"] > 40
    assert [len(found[way]) for way in ("alone", "recorded")] == [2, 2]
    api.simplify = lambda expressions: tuple(expression + 1 for expression in expressions)
    with pytest.raises((ArithmeticError, AttributeError)):
        rewriting.measure(api, graphs, rounds=1)


def test_webassembly_is_compared_with_machine_code() -> None:
    found = measure(Case("softmax", lambda a: a.softmax(), ((8, 12),)), samples=3)
    assert found.apart < 1e-6 and found.native_us > 0 and found.ratio == found.wasm_us / found.native_us
