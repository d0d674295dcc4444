"""The verdict: its rules on stored facts (every machine), and real kernels on machines without other load."""

from __future__ import annotations

import json
import re
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.verdict_programs import neighbors, new_programs, programs, with_opts
from bench.verdicts import least_disturbed
from tinyexplore import Device, Tensor, explore
from tinyexplore.explore import Explorer, SpeedVerdict
from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings
from tinyexplore.explore.analysis.models import throughput as throughput_module
from tinyexplore.explore.analysis.opts import to_opts
from tinyexplore.explore.analysis.requests import RequestSource, respond
from tinyexplore.explore.analysis.verdict import fact_measurement, kernel_verdicts
from tinyexplore.explore.analysis.verdict.access import AccessPattern, CacheShape, crosses_lines, runs_of
from tinyexplore.explore.analysis.verdict.fact_measurement import facts_of
from tinyexplore.explore.analysis.verdict.facts import KernelFacts
from tinyexplore.explore.analysis.verdict.rules import RULES, VERDICT_KINDS, judge
from tinyexplore.explore.analysis.verdict.suggestions import REMEDIES, Suggestion, suggestions_for
from tinyexplore.explore.analysis.verdict.verdict import judge_kernel, program_verdict
from tinyexplore.explore.notebook.kernels import KernelView
from tinyexplore.explore.tracefile.figures import figures
from tinyexplore.explore.tracefile.model import Ceiling, OutsideOperation
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.whatif.experiments import MAX_EXPERIMENTS, with_measured_gains
from tinyexplore.kernel import OptOps
from tinyexplore.util import Context
from tinyexplore.util.config import config
from tinyexplore.widgets.panels import PANELS

FILES = {
    path.stem: json.loads(path.read_text("utf-8")) for path in (Path(__file__).parent / "verdict_facts").glob("*.json")
}
FILE: dict[str, Any] = FILES["intel_avx512"]  # the machine on which NumPy's rates were measured too
STORED: dict[str, Any] = FILE["programs"]
EVERYWHERE = [(machine, name) for machine, file in sorted(FILES.items()) for name in file["programs"]]
PROGRAMS = {one.name: one for one in programs()}
ALL = {one.name: one for one in (*programs(), *neighbors(), *new_programs())}
CAPTURES = 4


def facts(name: str, machine: str = "intel_avx512") -> KernelFacts:
    return KernelFacts.from_data(FILES[machine]["programs"][name]["facts"])


def test_every_program_has_stored_facts() -> None:
    assert set(FILES["amd_avx2"]["programs"]) == set(ALL) and len(ALL) >= 90
    assert set(STORED) == {one.name for one in (*programs(), *neighbors())}


@pytest.mark.parametrize(("machine", "name"), EVERYWHERE)
def test_stored_facts_get_the_expected_kind(machine: str, name: str) -> None:
    mine = facts(name, machine)
    kind, likely, rule = judge(mine)
    assert likely in ALL[name].kinds
    assert kind == ("noise" if mine.is_disturbed else likely)
    assert (rule.kind if rule is not None else "unexplained") == likely


@pytest.mark.parametrize(("machine", "name"), EVERYWHERE)
def test_a_verdict_has_a_sentence_its_evidence_and_something_to_try(machine: str, name: str) -> None:
    mine = facts(name, machine)
    found = judge_kernel(mine)
    assert found.kind in VERDICT_KINDS and found.likely in VERDICT_KINDS
    assert found.share_of_limit is not None and 0 < found.share_of_limit <= 1
    median = mine.at_median()
    assert median.judged_us == mine.time_us
    assert found.share_of_limit == pytest.approx(min(1.0, median.limit_for(found.likely) / mine.time_us), abs=1e-3)
    assert {one.panel for one in found.evidence} <= {"timing", "roofline", "caches", "throughput", "code", "llvm"}
    assert found.text in str(found).replace("\n", " ") and "KernelFacts(" not in str(found)
    assert found._repr_html_().startswith("<div")


def limit_by_numpy(name: str) -> float:
    """The least time in microseconds by what NumPy reached on the same machine; 0 where NumPy does nothing of the kind:
    bytes in a cache, and types other than float32."""
    found = facts(name)
    computed = found.operations / FILE["numpy_gflops"] / 1e3 if found.arithmetic == "float32" else 0.0
    return max(STORED[name].get("numpy_memory_us", 0.0), computed)


def test_a_share_of_the_limit_is_that_by_limits_that_numpy_reached() -> None:
    """Within 25 %. Of kernels that one of the two limits decides, and that take long enough for all threads. Smaller
    working sets lie in this CPU's L3, where NumPy's small pages cost more."""
    compared = []
    for name in STORED:
        found = facts(name)
        ours = found.limit_us - found.launch_us
        is_decided = found.level == "memory" or (found.arithmetic == "float32" and found.compute_us >= found.memory_us)
        is_small = found.level == "memory" and found.bytes_moved < 150e6
        if not is_decided or is_small or found.judged_us < 100 or not limit_by_numpy(name):
            continue
        compared.append(name)
        assert limit_by_numpy(name) == pytest.approx(ours, rel=0.25), name
    assert len(compared) >= 8


def test_facts_survive_a_file() -> None:
    one = facts("matmul 1024")
    assert KernelFacts.from_data(json.loads(json.dumps(one.as_data()))) == one


BASE = replace(
    facts("exp of 1 M"),
    waited=0.0,
    level="L2",
    time_us=1000.0,
    best_us=990.0,
    launch_us=1.0,
    memory_us=100.0,
    own_memory_us=100.0,
    compute_us=50.0,
    own_compute_us=50.0,
    pattern_us=0.0,
    refill_us=0.0,
    crossing_us=0.0,
    single_us=0.0,
    gathers=0,
    l2_traffic=1.0,
    line_use=1.0,
    conflict_pitch=0,
    redundant=1.0,
    worst_run=0,
    worst_pitch=0,
    has_thread_axis=True,
    has_code=True,
    instructions=50,
    vector=40,
    stack=0,
    has_model=True,
    cycles=10.0,
    is_carried=True,
    busiest=10.0,
    code_share=0.1,
)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "unexplained"),
        ({"time_us": 2.9, "best_us": 2.9}, "launch overhead"),
        ({"redundant": 4.0}, "redundant work"),
        ({"redundant": 3.9}, "unexplained"),
        ({"memory_us": 700.0, "own_memory_us": 700.0}, "bandwidth"),
        ({"memory_us": 430.0, "own_memory_us": 430.0}, "unexplained"),
        ({"memory_us": 460.0, "own_memory_us": 460.0}, "bandwidth"),
        ({"compute_us": 660.0}, "compute"),
        ({"stream_us": 700.0, "code_share": 0.9}, "bandwidth"),
        ({"stream_us": 690.0, "code_share": 0.9}, "compute"),
        ({"stream_us": 1400.0, "code_share": 0.9}, "compute"),
        ({"gathers": 9, "gather_bytes": 4, "gather_us": 900.0, "code_share": 1.0}, "compute"),
        ({"compute_us": 600.0}, "unexplained"),
        ({"gathers": 9, "gather_bytes": 4, "gather_us": 350.0}, "random access"),
        ({"gathers": 9, "gather_bytes": 512, "gather_us": 900.0}, "random access"),
        ({"gathers": 9, "gather_bytes": 512, "code_share": 0.5}, "compute"),
        ({"gathers": 9, "gather_bytes": 4096, "gather_us": 900.0}, "unexplained"),
        ({"line_use": 1 / 16, "pattern_us": 500.0}, "strided access"),
        ({"l2_traffic": 1.8, "pattern_us": 500.0, "worst_run": 256, "worst_pitch": 8192}, "re-reads"),
        ({"l2_traffic": 1.8, "pattern_us": 500.0, "worst_run": 4, "worst_pitch": 8192}, "strided access"),
        ({"pattern_us": 500.0, "worst_run": 1024, "worst_pitch": 16384}, "strided access"),
        ({"pattern_us": 400.0, "worst_run": 1024, "worst_pitch": 16384}, "unexplained"),
        ({"crossing_us": 400.0, "code_share": 0.3}, "unaligned loads"),
        ({"cycles": 15.0, "code_share": 0.5}, "latency"),
        ({"cycles": 14.0, "code_share": 0.44}, "unexplained"),
        ({"vector": 0, "code_share": 0.4}, "not vectorized"),
        ({"vector": 0, "code_share": 0.3}, "unexplained"),
        ({"stack": 4, "vector": 16}, "spills"),
        ({"stack": 3, "vector": 12}, "unexplained"),
        ({"conflict_pitch": 1024}, "strided access"),
        ({"has_thread_axis": False, "threads": 1, "all_threads": 2, "own_memory_us": 450.0}, "one thread"),
        ({"has_thread_axis": False, "threads": 1, "all_threads": 1, "own_memory_us": 440.0}, "unexplained"),
        ({"has_thread_axis": False, "all_threads": 2}, "one thread"),
        ({"has_thread_axis": False, "all_threads": 2, "time_us": 49.0, "best_us": 49.0, "launch_us": 9.0}, "bandwidth"),
        ({"code_share": 0.6}, "compute"),
        ({"cycles": 15.0, "code_share": 0.6, "is_carried": False}, "compute"),
        ({"l2_traffic": 1.8, "pattern_us": 500.0, "worst_run": 256, "code_share": 0.7}, "compute"),
        ({"crossing_us": 400.0, "memory_us": 420.0, "own_memory_us": 420.0, "code_share": 0.01}, "unexplained"),
        ({"level": "memory", "memory_us": 250.0, "own_memory_us": 250.0}, "bandwidth"),
        ({"level": "memory", "memory_us": 200.0, "own_memory_us": 200.0, "fetch_us": 50.0}, "bandwidth"),
        ({"level": "memory", "memory_us": 250.0, "own_memory_us": 250.0, "code_share": 0.3}, "unexplained"),
        (
            {"time_us": 9.9, "best_us": 9.9, "memory_us": 2.0, "own_memory_us": 2.0, "own_compute_us": 0.0},
            "launch overhead",
        ),
        (
            {"time_us": 10.1, "best_us": 10.1, "memory_us": 2.0, "own_memory_us": 2.0, "own_compute_us": 0.0},
            "unexplained",
        ),
        ({"threads": 2, "single_us": 1600.0, "own_memory_us": 240.0, "memory_us": 240.0}, "compute"),
        ({"threads": 2, "single_us": 1590.0, "own_memory_us": 240.0, "memory_us": 240.0}, "unexplained"),
        ({"threads": 2, "single_us": 1600.0, "own_memory_us": 260.0, "memory_us": 260.0}, "unexplained"),
        ({"stack": 9}, "unexplained"),
        ({"stack": 10}, "spills"),
        ({"pattern_us": 300.0, "worst_run": 32, "worst_pitch": 2048}, "strided access"),
        ({"pattern_us": 300.0, "worst_run": 1024, "worst_pitch": 2048}, "unexplained"),
    ],
)
def test_each_threshold_decides(changes: dict[str, Any], kind: str) -> None:
    assert judge(replace(BASE, **changes))[0] == kind


def test_every_kind_but_two_has_a_rule() -> None:
    assert {rule.kind for rule in RULES} == set(VERDICT_KINDS) - {"noise", "unexplained"}


def test_disturbed_samples_are_noise_with_the_kind_of_the_fastest_one() -> None:
    disturbed = replace(BASE, waited=0.41, time_us=1500.0, best_us=1000.0, compute_us=700.0)
    found = judge_kernel(disturbed)
    assert (found.kind, found.likely, found.tone) == ("noise", "compute", "none")
    assert found.share_of_limit == pytest.approx(701 / 1500, abs=1e-3)
    assert "waited for a core for 20 %" in found.text
    calm = replace(disturbed, waited=None)
    assert judge_kernel(calm).kind != "noise"
    spread = judge_kernel(replace(calm, best_us=600.0))
    assert spread.kind == "noise" and "600 µs, the median 1.50 ms" in spread.text
    assert judge_kernel(replace(calm, time_us=15.0, best_us=6.0)).kind != "noise"


def test_all_figures_of_a_disturbed_kernel_are_those_of_the_median() -> None:
    """Rates, shares and cycles in the sentence and the evidence; the other views show medians."""
    busy = replace(BASE, waited=0.41, time_us=2000.0, best_us=1000.0, memory_us=900.0, bytes_moved=8_000_000)
    calm = replace(busy, waited=None, best_us=2000.0, code_share=busy.code_share / 2)
    one, other = judge_kernel(busy), judge_kernel(calm)
    assert (one.kind, one.likely) == ("noise", "bandwidth")
    assert one.text.startswith("Noise, probably bandwidth")  # the headline, before a share that load has lowered
    assert one.share_of_limit == other.share_of_limit == pytest.approx(901 / 2000, abs=1e-3)
    numbers = {row.name: row.value for row in one.evidence}
    assert numbers["fastest sample"] == "1.00 ms"
    same = {row.name: row.value for row in other.evidence if row.name not in ("cycles per iteration",)}
    assert {name: numbers[name] for name in same} == same
    assert "4.00 of 8.89 GB/s" in numbers["bytes"] and "4.00 GB/s of 8.89" in one.text and "45 %" in one.text
    program = program_verdict("two", [one, judge_kernel(replace(BASE, kernel=7))], [1, 1])
    assert {row.name: row.value for row in program.evidence}["sum of the medians"] == "3.00 ms"


def test_memory_that_became_slower_is_the_limit_and_both_times_are_stated() -> None:
    facts = replace(BASE, level="memory", memory_us=400.0, own_memory_us=400.0, stream_us=800.0, code_share=1.0)
    found = judge_kernel(facts)
    assert (found.kind, found.level, found.share_of_limit) == ("bandwidth", "memory", 0.401)
    assert "800 µs now, 400 µs at best" in found.text
    assert found.suggestions[0].text.startswith("Capture it again")
    assert "at best" not in judge_kernel(replace(facts, stream_us=410.0, memory_us=390.0)).text


def test_the_limit_of_random_accesses_is_their_measured_rate() -> None:
    facts = replace(BASE, gathers=9, gather_bytes=4, gather_us=700.0)
    found = judge_kernel(facts)
    assert (found.kind, found.share_of_limit) == ("random access", 0.701)
    by_code = judge_kernel(replace(facts, code_share=1.0))  # its instructions explain as much: the limit is theirs
    assert (by_code.kind, by_code.share_of_limit) == ("compute", 0.101)


def test_a_working_set_beyond_the_last_cache_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_measurement, "cache_bytes", lambda level, default: default)  # a last cache of 32 MiB
    x = Tensor.rand(32 << 20).realize()
    view = explore(lambda: x.sum(), repeat=3)
    slowest = max(view.trace.runs, key=lambda run: run.median_us)
    assert facts_of(view.capture.analyses, slowest.kernel).level == "memory"


def test_a_kernel_faster_than_its_limit_has_no_share_above_one() -> None:
    fast = replace(BASE, memory_us=1500.0, own_memory_us=1500.0)
    found = judge_kernel(fast)
    assert (found.kind, found.share_of_limit) == ("bandwidth", 1.0)
    assert "faster than its measured limit" in found.text and "under load" in found.missing[-1]
    near = judge_kernel(replace(fast, memory_us=1050.0))
    assert near.missing == BASE.missing and "100 % of its limit" in near.text


def test_the_views_of_a_kernel_show_the_median_that_its_verdict_is_about() -> None:
    x = Tensor.rand(512, 512).realize()
    view = explore(lambda: x @ x, repeat=5)
    found = view.kernels[0].verdict()
    (run,), (point,) = view.trace.runs, roofline(view.trace).points
    assert found.facts is not None
    assert run.median_us == pytest.approx(statistics.median(run.times_us), abs=1e-3)
    assert point.time_us == run.median_us and found.facts.time_us == pytest.approx(run.median_us, abs=1e-3)
    assert found.share_of_limit == pytest.approx(min(1.0, found.facts.at_median().share), abs=1e-3)
    assert figures(view.trace).run_us == run.median_us


def test_where_the_model_takes_longer_than_the_kernel_no_port_is_named() -> None:
    wrong = replace(BASE, code_share=2.0, ports="divider", compute_us=300.0)
    found = judge_kernel(wrong)
    assert found.kind == "compute" and "divider" not in found.text and "the measurement" in found.text
    assert "divider" in judge_kernel(replace(wrong, code_share=0.9)).text


def test_the_verdict_of_a_slow_kernel_without_opts_says_so_with_fitting_advice() -> None:
    strided = replace(BASE, line_use=1 / 16, pattern_us=500.0, worst="x")
    bare = judge_kernel(replace(strided, opts=(), conflict="x", conflict_pitch=1024))
    assert "no opts" in bare.text and any("use_heuristics" in one.text for one in bare.suggestions)
    tuned = judge_kernel(replace(strided, opts=("VECTOR(0, 8)",)))
    assert "no opts" not in tuned.text and not any("use_heuristics" in one.text for one in tuned.suggestions)
    copied = judge_kernel(replace(strided, operations=0, opts=("VECTOR(0, 8)",)))
    assert any("only copies" in one.text for one in copied.suggestions)
    assert not any("prefetch" in one.text for one in copied.suggestions)
    ahead = judge_kernel(replace(strided, opts=("PREFETCH(1, 2)",)))
    assert any("prefetch" in one.text for one in ahead.suggestions)


def all_suggestions() -> list[Suggestion]:
    """Those of every stored kernel and of every kind."""
    stored = [facts(name, machine) for machine, name in EVERYWHERE]
    stored += [replace(one, unused_dots="int8 dot") for one in stored[:3]]
    found = [row for one in stored for kind in (judge(one)[1], *REMEDIES) for row in suggestions_for(kind, one)]
    return list({one.text: one for one in found}.values())


def test_names_in_suggestions_exist() -> None:
    """Methods of a kernel, of a view and of tensors, opts, settings, panels; sets of opts can be read."""
    titles = {info.title or info.name.capitalize() for info in PANELS}
    seen: set[str] = set()
    for one in all_suggestions():
        for owner, name in re.findall(r"(view(?:\.kernels\[\d+\])?|(?<![\w\])]))\.(\w+)", one.text):
            kind = {"view": Explorer, "": Tensor}.get(owner, KernelView)
            assert hasattr(kind, name), one.text
            seen.add(name)
        for name in re.findall(r"\b([A-Z]{3,})\b(?! of)(?=[ (,])", one.text):
            assert name in OptOps.__members__, one.text
        for name in re.findall(r"\b([A-Z_]{4,}|tc|noopt)=\d", one.text):
            assert hasattr(config(), name.upper()), one.text
        for title in re.findall(r"panel (\w+)", one.text):
            assert title in titles
        if one.opts is not None:
            assert (
                len(to_opts(", ".join(one.opts))) == len(one.opts) and f'set_opts("{", ".join(one.opts)}")' in one.text
            )
    assert {"use_heuristics", "available_opts", "search", "set_opts", "verdict", "fusion", "contiguous"} <= seen


@pytest.mark.parametrize(
    ("kind", "opts"),
    [
        ("spills", "VECTOR(1, {lanes}), UPCAST(1, 2), UPCAST(0, 8), THREAD(0)"),
        ("strided access", "VECTOR(1, {lanes}), PREFETCH(1, 2)"),
    ],
)
def test_a_suggested_set_of_opts_can_be_applied_as_it_is_written(kind: str, opts: str) -> None:
    a, b = (Tensor.rand(64, 64).realize() for _ in range(2))
    view = with_opts(opts, lambda: explore(lambda: a @ b, repeat=2))
    mine = replace(BASE, kernel=0, opts=view.trace.kernels[0].opts)
    call = next(one.text for one in suggestions_for(kind, mine) if "set_opts" in one.text)
    written = re.search(r"view\.kernels.*\)", call)
    assert written is not None
    branch = eval(written[0], {"view": view})
    assert branch.status == "done" and branch.kernels[0].opts != mine.opts


def test_the_methods_that_suggestions_name_work_on_a_kernel() -> None:
    a, b = (Tensor.rand(64, 64).realize() for _ in range(2))
    view = explore(lambda: a @ b, noopt=1, repeat=2)
    offered = view.kernels[0].available_opts()
    assert any(str(one).startswith("VECTOR(") for one in offered) and any(
        str(one).startswith("UPCAST(") for one in offered
    )
    assert view.kernels[0].apply(next(str(one) for one in offered if str(one).startswith("VECTOR("))).status == "done"
    assert view.kernels[0].use_heuristics().kernels[0].opts != ()


def test_each_rule_is_documented_in_sentences() -> None:
    for rule in RULES:
        for text in (rule.threshold, rule.reason):
            assert text[0].isupper() and text.endswith(".") and ";" not in text


def test_code_that_cannot_run_here_has_a_reason_instead_of_a_verdict() -> None:
    other = "neoverse-n1" if Device["LLVM"].target.arch == "x86_64" else "skylake"
    view = explore(lambda: Tensor.ones(8).contiguous() + 1, target=other)
    with pytest.raises(ValueError, match="cannot run on this machine"):
        view.kernels[0].verdict()


def test_without_samples_there_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="no samples"):
        judge(replace(BASE, time_us=0.0))


def test_a_program_is_judged_by_its_longest_kernel() -> None:
    slow, fast = judge_kernel(replace(BASE, kernel=1, stack=10)), judge_kernel(replace(BASE, kernel=0, time_us=500.0))
    found = program_verdict("two", [fast, slow], [1, 1])
    assert (found.kind, found.kernel, [one.kernel for one in found.parts]) == ("spills", 1, [1, 0])
    tiny = judge_kernel(replace(BASE, time_us=2.0, best_us=2.0))
    assert program_verdict("many", [tiny] * 3, [1, 1, 1]).kind == "launch overhead"
    with pytest.raises(ValueError, match="no kernel"):
        program_verdict("none", [], [])


@pytest.mark.parametrize(("outside_us", "first"), [(5000.0, "outside of the kernels"), (50.0, "")])
def test_time_outside_of_the_kernels_is_part_of_a_programs_verdict(outside_us: float, first: str) -> None:
    """The kernels take 1.5 ms. Operations of another library that take longer come first, and have no model."""
    parts = [judge_kernel(replace(BASE, kernel=0, time_us=500.0)), judge_kernel(replace(BASE, kernel=1))]
    alone = program_verdict("two", parts, [1, 1])
    operations = [OutsideOperation(0, "aten.i0", outside_us / 2), OutsideOperation(1, "aten.i0", outside_us / 2)]
    found = program_verdict("two", parts, [1, 1], outside=operations)
    assert found.kind == ("unexplained" if first else alone.kind)
    assert found.share_of_limit is None
    sentence = found.text.partition(". ")[0] if first else found.text.removeprefix(alone.text)
    assert all(part in sentence for part in ("2 operations", "aten.i0", "measured once"))
    assert {row.name: row.value for row in found.evidence}["outside of the kernels"] == duration_text(outside_us)


# *** what the facts are read from ***


def test_a_transposed_copy_fetches_each_line_once_for_each_of_its_elements() -> None:
    x = Tensor.rand(4096, 4096).realize()
    view = explore(lambda: x.T.contiguous(), noopt=1, repeat=1)
    pattern = AccessPattern(view.capture.analyses.captured(0).make_kernel())
    read = next(one for one in pattern.operands if one.buffer == 1)
    assert (runs_of(read).run_bytes, runs_of(read).pitch_bytes) == (4, 4 * 4096)
    beyond, conflict = pattern.traffic(CacheShape(1 << 20, 16))
    assert beyond == {0: 4 << 24, 1: 16 * (4 << 24)}
    assert conflict is None or conflict == (1, 4 * 4096)


def test_the_traffic_of_a_product_follows_from_its_tiles() -> None:
    a, b = (Tensor.rand(256, 256).realize() for _ in range(2))
    pattern = AccessPattern(explore(lambda: a @ b, noopt=1, repeat=1).capture.captured_kernels[0].make_kernel())
    small, _ = pattern.traffic(CacheShape(4096, 8))
    large, _ = pattern.traffic(CacheShape(1 << 22, 16))
    assert large == {0: 1 << 18, 1: 1 << 18, 2: 1 << 18}
    assert small[2] >= 64 * large[2]


def test_vectors_at_multiples_of_their_size_cross_no_cache_line() -> None:
    """32 bytes at each 32nd byte do not, 64 bytes there do."""
    x = Tensor.rand(64, 104).realize()
    for target, does in (("x86-64-v3", False), ("x86-64-v4", True)):
        kept = explore(lambda: x[:, :96] + 1, target=target, repeat=1).capture.captured_kernels[0]
        (read,) = (one for one in AccessPattern(kept.make_kernel()).operands if one.buffer == 1)
        assert crosses_lines(read) is does or kept.spec.target.vector_bytes not in (32, 64)


def test_ceilings_of_gathers_and_runs_use_the_next_larger_working_set() -> None:
    rows = [Ceiling("", "gather", rate, size, "", 1) for size, rate in ((1000, 4.0), (100_000, 1.0))]
    rows += [Ceiling("", "runs", rate, 1000, length, 1) for length, rate in (("64", 2.0), ("1024", 32.0))]
    known = Ceilings("", "", tuple(rows))
    gathers = [known.gather(size, 1) for size in (900, 1100, 1120, 10**9)]
    assert [one.rate for one in gathers if one] == [4.0, 4.0, 1.0, 1.0]
    found = [known.runs(1000, length, 1) for length in (4, 64, 256, 9999)]
    assert [one.rate for one in found if one] == [2.0, 2.0, pytest.approx(8.0), 32.0]
    assert known.gather(1, 2) is None and Ceilings("", "", ()).runs(1, 1, 1) is None


def test_the_verdict_works_without_llvm_mca_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise throughput_module.ThroughputError("llvm-mca is not installed")

    x = Tensor.rand(512, 512).realize()
    view = explore(lambda: x.exp().exp(), repeat=5)
    monkeypatch.setattr(throughput_module, "find_tool", none)
    found = facts_of(view.capture.analyses, 0)
    assert any("llvm-mca" in text for text in found.missing)
    assert found.has_model and found.cycles > 0 and found.ports == ""
    assert judge(found)[1] in VERDICT_KINDS


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_real_kernel_gets_its_kind_or_noise(name: str) -> None:
    """Each program gets the kind that is known for it, or "noise" on a disturbed machine. The caches are real.

    Another machine on the same host can take half of a core's speed for a second, and no counter here shows it: a wrong
    verdict fails where it is given CAPTURES times.
    """
    wrong = []
    for _ in range(CAPTURES):
        with Context(TARGET=config().TARGET.partition(",")[0]):
            found = least_disturbed(PROGRAMS[name], tries=2)
        assert found.facts is not None
        if found.facts.is_disturbed:
            assert found.kind == "noise" and found.likely in VERDICT_KINDS
            return
        assert found.kind == found.likely
        if found.kind == "spills":
            assert "%mul" in quoted(found) and "verdict_programs.py" in quoted(found)
        if found.kind in PROGRAMS[name].kinds or _is_of_another_machine(name, found.facts):
            return
        wrong.append(found)
        time.sleep(0.5)
    raise AssertionError("\n".join(map(str, wrong)))


def quoted(found: SpeedVerdict) -> str:
    """The verdict's sentence on LLVM's passes; "" if there is none."""
    return "".join(one.value for one in found.evidence if one.name == "LLVM")


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3"])
def test_the_verdict_names_the_pass_that_spills_the_values_and_their_live_ranges(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel and LLVM's passes are real, the times are stored: any machine compiles for both targets."""
    program = PROGRAMS["matmul 512 with spills"]
    a, b = (Tensor.rand(64, 64).realize() for _ in range(2))
    view = with_opts(program.opts, lambda: explore(lambda: program.run(a, b), repeat=1, target=target))
    stored = replace(facts(program.name, "amd_avx2"), kernel=0)
    monkeypatch.setattr(kernel_verdicts, "facts_of", lambda *_, **__: stored)
    found = kernel_verdicts.kernel_verdict(view.capture.analyses, 0)
    assert found.likely == "spills" and quoted(found) in found.text
    passes = view.kernels[0].passes()
    assert f"The pass {passes.spilled_by} spills {len(passes.spills)} values" in quoted(found)
    (most, *_) = sorted(passes.spills, key=lambda one: -(one.stores + one.loads))
    assert most.subject.startswith("%mul")
    assert {most.live_range, most.python[0]} < set(re.split(r"[(),;] *", quoted(found)))


@pytest.mark.parametrize("noopt", [0, 1])
def test_the_verdict_quotes_llvm_where_llvm_was_to_vectorize(noopt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum in the order of its elements: LLVM may not reorder it. With a VECTOR opt the loop is not LLVM's."""
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x.sum(1), noopt=noopt, repeat=1, target="x86-64-v3")
    stored = replace(BASE, kernel=0, vector=0, code_share=0.4, opts=tuple(map(str, view.kernels[0].opts)))
    monkeypatch.setattr(kernel_verdicts, "facts_of", lambda *_, **__: stored)
    found = kernel_verdicts.kernel_verdict(view.capture.analyses, 0)
    assert found.likely == "not vectorized"
    if noopt:
        remarks = [one.text for one in view.kernels[0].passes().remarks if one.text.startswith("loop not vectorized:")]
        assert remarks and f"“{remarks[0]}”" in quoted(found) and "`%" in quoted(found)
    else:
        assert any(opt.startswith("VECTOR") for opt in stored.opts or ()) and quoted(found) == ""


def _is_of_another_machine(name: str, found: KernelFacts) -> bool:
    """What differs where vectors are narrower, or memory faster: the numbers say why."""
    if name.startswith("matmul 512 with spills"):  # 32 registers hold the tile that 16 do not
        return found.stack < 4
    return False


def test_a_gpu_gets_a_verdict_marked_as_modeled() -> None:
    zeros = Tensor.zeros(1024, 1024).contiguous().realize()
    view = explore(lambda: zeros.T.contiguous(), target="sm_80")
    found = view.kernels[0].verdict()
    assert found.kind == "strided access" and found.share_of_limit is None and found.facts is None
    assert found.missing and "model" in found.text
    assert {"occupancy", "arithmetic intensity"} <= {one.name for one in found.evidence}
    product = explore(lambda: zeros @ zeros, target="sm_80").verdict()
    assert product.kind == "compute" and product.tone == "none"


def test_views_and_pages_get_a_row_for_each_kernel_and_one_for_the_program() -> None:
    a, b = (Tensor.rand(96, 96).realize() for _ in range(2))
    view = explore(lambda: ((a @ b).contiguous(), a.exp()), repeat=5)
    answer = respond(RequestSource(lambda: view.trace, lambda: view.capture.analyses), {"ask": "verdicts"})
    assert [row["kernel"] for row in answer["rows"]] == [kernel.id for kernel in view.trace.kernels]
    assert answer["whole"]["kind"] in VERDICT_KINDS and answer["whole"]["kernel"] in range(len(view.trace.kernels))
    assert all(row["evidence"] and row["tone"] in ("fast", "middle", "slow", "none") for row in answer["rows"])
    cold = explore(lambda: a + b, repeat=1)
    source = RequestSource(lambda: cold.trace, lambda: cold.capture.analyses)
    assert respond(source, {"ask": "verdicts"}) == {
        "rows": [],
        "whole": None,
    }


def test_a_tried_suggestion_shows_its_gain() -> None:
    """Opts against no opts: the difference is larger than any noise."""
    a, b = (Tensor.rand(192, 192).realize() for _ in range(2))
    view = explore(lambda: a @ b, noopt=1, repeat=5)
    slow = replace(view.kernels[0].verdict(), likely="latency")
    found = with_measured_gains(view, slow)
    best = found.suggestions[0]
    assert best.opts and best.time_us is not None and best.gain is not None and best.gain > 2
    assert len(found.suggestions) <= MAX_EXPERIMENTS + len(slow.suggestions)
    assert view.trace.kernels[0].opts == ()
    assert with_measured_gains(view, replace(slow, likely="compute")) == replace(slow, likely="compute")


def test_a_tried_fusion_shows_its_gain() -> None:
    """Two tiny kernels with memory between them take about twice as long as one."""
    a = Tensor.rand(64).realize()
    view = explore(lambda: a.exp().contiguous().sum() + 1, repeat=5)
    assert len(view.kernels) == 2
    (edge,) = (one for one in view.fusion.edges() if one.mark == "cut")
    at = view.fusion.branch().id
    small = replace(view.kernels[1].verdict(), likely="launch overhead", suggestions=())
    (tried,) = with_measured_gains(view, small).suggestions
    assert f"view.fusion.join({edge.src}, {edge.dst})" in tried.text
    assert tried.time_us is not None and tried.gain is not None and tried.gain > 1.2
    assert view.fusion.branch().id == at and len(view.kernels) == 2
    assert with_measured_gains(view, replace(small, likely="random access")).suggestions == ()


def test_no_experiment_begins_after_the_budget() -> None:
    a, b = (Tensor.rand(64, 64).realize() for _ in range(2))
    view = explore(lambda: a @ b, noopt=1, repeat=5)
    slow = replace(view.kernels[0].verdict(), likely="latency", suggestions=())
    ticks = iter([0.0, *[100.0] * 10])
    assert len(with_measured_gains(view, slow, lambda: next(ticks)).suggestions) == 1
