"""What-if commands, the branches that they make, and the results that a branch has for its kernel."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from threading import Event, Thread

import pytest
from IPython.lib.pretty import pretty

from tinyexplore import Tensor, Trace, explore
from tinyexplore.compile import lowering, workers
from tinyexplore.compile.search_worker import SearchWorker
from tinyexplore.explore import Explorer
from tinyexplore.explore.analysis.opts import WhatIfError, to_opt
from tinyexplore.explore.analysis.traffic import count_accessed_bytes
from tinyexplore.explore.tracefile.model import CommandInfo
from tinyexplore.explore.tracefile.model import Search as SearchData
from tinyexplore.explore.tracefile.texts import spread_text
from tinyexplore.explore.whatif.annotated_nest import cache_of
from tinyexplore.explore.whatif.commands import (
    COMMANDS,
    ApplyOpt,
    AsCaptured,
    SetOpts,
    UndoOpt,
    UseHeuristics,
    from_info,
    from_json,
    info_of,
    to_json,
)
from tinyexplore.kernel import Opt, OptOps, apply_opt, available_opts
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.runtime.llvm import LLVMCompiler
from tinyexplore.target import Target
from tinyexplore.trace import CandidateMeasured, SearchEnded, active_recorder
from tinyexplore.util import Context


def product() -> Explorer:
    """A product of 32 × 48 by 48 × 64, captured without opts."""
    a, b = Tensor.rand(32, 48).realize(), Tensor.rand(48, 64).realize()
    return explore(lambda: (a @ b).relu(), noopt=1, repeat=1)


@pytest.fixture(scope="module")
def view() -> Explorer:
    return product()


# *** commands ***


@pytest.mark.parametrize(
    "command", [ApplyOpt(2, "UPCAST(0, 4)"), UndoOpt(0), SetOpts(1, ""), AsCaptured(0), UseHeuristics(3)]
)
def test_a_command_is_serialized_and_parsed(command):
    assert from_json(to_json(command)) == command
    assert from_info(info_of(command)) == command


def test_a_command_under_its_former_name_is_read():
    assert from_json('{"kind": "HandCode", "kernel": 3}') == UseHeuristics(3)


def test_every_kind_of_command_is_documented_and_has_plain_fields():
    for kind in COMMANDS:
        assert kind.__doc__ and not kind.__doc__.startswith(kind.__name__)
        assert {str(field.type) for field in fields(kind)} <= {"int", "str"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is not a command"),
        ("[]", "a command is an object"),
        (
            '{"kind": "Explode"}',
            "no command 'Explode'; supported: AsCaptured, UseHeuristics, SetOpts, ApplyOpt, UndoOpt, Search",
        ),
        ('{"kind": "UndoOpt"}', "UndoOpt takes kernel; given: nothing"),
        ('{"kind": "UndoOpt", "kernel": "0"}', "UndoOpt: kernel is '0', expected int"),
        ('{"kind": "UndoOpt", "kernel": true}', "UndoOpt: kernel is True, expected int"),
    ],
)
def test_invalid_commands_are_refused_with_the_reason(text, why):
    with pytest.raises(WhatIfError) as caught:
        from_json(text)
    assert str(caught.value).startswith(why)


# *** branches ***


def test_opts_are_applied_undone_and_branched_from_and_each_is_timed(view):
    before = len(view.whatif.branches)
    root = view.kernels[0].set_opts()
    first = view.kernels[0].apply("VECTOR(1, 4)")
    second = view.kernels[0].apply("UPCAST(0, 4)")
    back = view.kernels[0].undo()
    other = view.kernels[0].apply("UNROLL(2, 4)")
    assert back == first and view.kernels[0].branch == other
    opts = [branch.kernels[0].opts for branch in (root, first, second, other)]
    assert opts == [(), ("VECTOR(1, 4)",), ("VECTOR(1, 4)", "UPCAST(0, 4)"), ("VECTOR(1, 4)", "UNROLL(2, 4)")]
    assert [branch.parent for branch in (first, second, other)] == [root.id, first.id, first.id]
    assert len(view.whatif.branches) <= before + 4
    for branch in (root, first, second, other):
        (variant,) = branch.kernels
        assert branch.status == "done" and branch.reason == ""
        assert variant.times_us and variant.low_us <= variant.median_us <= variant.high_us
        assert {"uops", "llvm", "c", "asm"} <= {listing.language for listing in variant.listings}
        assert variant.flops == 2 * 32 * 48 * 64 + 32 * 64 and variant.bytes_loaded > 0
        assert [step.opt for step in variant.steps if step.applied] == list(variant.opts)


def test_the_root_is_the_kernel_as_it_was_captured(view):
    root = view.kernels[0].branches[0]
    assert root.command == CommandInfo("AsCaptured", (("kernel", 0),)) and root.parent is None
    assert root.labels[0] == "as captured"
    assert root.kernels[0].opts == view.trace.kernels[0].opts == ()


def test_an_illegal_opt_is_a_failed_branch_with_the_legality_error_and_is_not_selected(view):
    here = view.kernels[0].branch
    branch = view.kernels[0].apply("UPCAST(7, 4)")
    assert branch.status == "failed" and "no axis 7" in branch.reason
    assert branch.kernels == () and branch.parent == here.id and view.kernels[0].branch == here
    assert str(branch) == f"branch {branch.id} · ApplyOpt(0, UPCAST(7, 4)) · {branch.reason}"


def time_of(branch):
    variant = branch.kernels[0]
    return spread_text(variant.median_us, variant.low_us, variant.high_us)


def test_a_branch_prints_as_one_line_in_a_notebook(view):
    view.kernels[0].set_opts()
    branch = view.kernels[0].apply("UPCAST(0, 4)")
    start = f"branch {branch.id} · ApplyOpt(0, UPCAST(0, 4)) · {branch.kernels[0].name}: UPCAST(0, 4) · "
    assert pretty(branch) == str(branch) and str(branch).startswith(start)
    assert time_of(branch) in str(branch)


def test_a_branch_of_set_opts_lists_each_opt_once(view):
    opts = "UPCAST(0, 2), UPCAST(1, 2), UNROLL(2, 2), VECTOR(1, 4), UPCAST(0, 2)"
    branch = view.kernels[0].set_opts(opts.replace(", UN", ",\n  UN"))
    name, time = branch.kernels[0].name, time_of(branch)
    assert str(branch).startswith(f"branch {branch.id} · opts set: {opts} · {name} · {time}")
    wrong = view.kernels[0].set_opts(f"UPCAST(7, 4), {opts}")
    assert str(wrong) == f"branch {wrong.id} · opts set: UPCAST(7, 4), {opts} · {wrong.reason}"


def test_undo_without_an_opt_is_reported(view):
    view.kernels[0].set_opts()
    assert "nothing to undo" in view.kernels[0].undo().reason


def test_every_offered_opt_can_be_applied_and_the_others_have_a_legality_error(view):
    view.kernels[0].set_opts()
    kernel = view.whatif.compiler(0).start(0)
    legal = view.kernels[0].available_opts()
    assert legal == tuple(map(str, available_opts(kernel)))
    offers = view.kernels[0].branch.kernels[0].offers
    words = {(offer.op, offer.axis): offer.legality_error for offer in offers if offer.legality_error}
    assert "the axis is global" in words["UNROLL", 0]
    assert {offer.op for offer in offers} == {op.name for op in OptOps}


def test_the_heuristics_choice_has_its_reasons_and_is_named(view):
    branch = view.kernels[0].use_heuristics()
    (variant,) = branch.kernels
    assert "heuristics" in branch.labels and variant.opts
    assert all(step.reason for step in variant.steps if step.applied)
    assert view.kernels[0].use_heuristics().id == branch.id


def test_a_kernel_captured_with_the_heuristics_opts_has_their_reasons():
    x = Tensor.rand(64, 64).realize()
    session = explore(lambda: x + 1, repeat=1)
    branch = session.kernels[0].branch
    assert branch.kernels[0].opts == session.trace.kernels[0].opts != ()
    assert all(step.reason for step in branch.kernels[0].steps if step.applied)
    assert session.kernels[0].use_heuristics().labels == ("as captured", "heuristics")


def test_invalid_opts_invalid_kernels_and_traces_of_files_raise_an_error(view, tmp_path):
    with pytest.raises(WhatIfError, match="is not an opt; write NAME"):
        view.kernels[0].apply("EXPLODE(0)")
    with pytest.raises(IndexError, match="kernel 5: .*1 kernel"):
        view.kernels[5].apply("UPCAST(0, 4)")
    view.save(tmp_path / "trace.json")
    loaded = Explorer(Trace.load(tmp_path / "trace.json"))
    assert loaded.kernels[0].branches == view.kernels[0].branches and loaded.kernels[0].branch
    with pytest.raises(WhatIfError, match="came from a file"):
        loaded.kernels[0].apply("UPCAST(0, 4)")


def test_branches_are_saved_with_the_trace(view, tmp_path):
    view.kernels[0].set_opts()
    path = view.save(tmp_path / "trace.json.gz")
    trace = Trace.load(path)
    assert trace == view.trace and trace.branches == view.whatif.branches
    assert {law.name for law in trace.laws} == {op.name for op in OptOps}


def test_a_trace_without_branches_loads_as_before(view, tmp_path):
    path = view.save(tmp_path / "trace.json")
    data = json.loads(path.read_text())
    del data["branches"]
    path.write_text(json.dumps(data))
    assert Trace.load(path).branches == ()


def test_commands_are_replayed_on_another_capture(view):
    view.kernels[0].set_opts()
    view.kernels[0].apply("VECTOR(1, 4)")
    again = product()
    made = again.whatif.replay([branch for branch in view.whatif.branches if branch.status == "done"])
    assert {branch.kernels[0].opts for branch in made} >= {(), ("VECTOR(1, 4)",)}


def test_two_branches_are_compared_listing_by_listing(view):
    plain = view.kernels[0].set_opts()
    wide = view.kernels[0].apply("VECTOR(1, 4)")
    found = view.whatif.compare(plain, wide)
    (pair,) = found.kernels
    assert pair.change == "changed" and "opts" in pair.reasons
    c = next(listing for listing in pair.listings if listing.language == "c")
    assert any(line.startswith("+") for line in c.lines())
    assert pair.times.a.median_us == plain.kernels[0].median_us


def test_a_kernel_with_wrong_results_or_one_that_crashes_is_a_branch_that_failed(monkeypatch):
    session = product()
    session.kernels[0].set_opts()

    reply = json.dumps({"lost": "it crashed its worker (SIGSEGV)"})
    monkeypatch.setattr("tinyexplore.explore.whatif.measurement.ask_worker", lambda *_: reply)
    branch = session.kernels[0].apply("UPCAST(0, 2)")
    assert (branch.status, branch.reason) == ("failed", "it crashed its worker (SIGSEGV)")
    assert branch.kernels[0].listings and session.kernels[0].branch.kernels[0].opts == ()


def test_a_kernel_for_another_machine_has_all_but_times():
    session = explore(lambda: Tensor.rand(16, 16).sum(1), target="neoverse-n1", repeat=1)
    branch = session.kernels[len(session.trace.kernels) - 1].set_opts()
    assert branch.status == "done" and branch.reason.startswith("not timed: DeviceUnavailable: TARGET='neoverse-n1'")
    assert branch.kernels[0].times_us == () and branch.kernels[0].listings


def test_a_copy_between_devices_has_no_loops_to_change():
    x = Tensor.ones(8).contiguous().realize()
    session = explore(lambda: x.to("PYTHON").contiguous(), repeat=1)
    copy = next(kernel for kernel in session.trace.kernels if kernel.name == "copy")
    with pytest.raises(WhatIfError, match="is a copy between devices"):
        _ = session.kernels[copy].branch


# *** searches ***


def fake_search(tries):
    """A search that records `tries`, [(opts, seconds, note)], and finds the first."""

    def searched(device, kernel, width):
        start = with_merged_axes(with_split_axes(kernel))
        made = []
        for opts, seconds, note in tries:
            candidate = start
            for opt in opts:
                candidate = apply_opt(candidate, opt)
            made.append(candidate)
            active_recorder().record(CandidateMeasured(candidate, seconds, note))
        active_recorder().record(SearchEnded(start, made[0], 2e-6, 1e-6, len(made), "2.00× faster"))
        return made[0]

    return searched


VECTOR, UPCAST = Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.UPCAST, 0, 2)


def test_candidates_of_a_search_are_branches_and_its_result_is_complete(monkeypatch):
    tries = [([VECTOR, UPCAST], 1e-6, ""), ([VECTOR], 2e-6, "given up"), ([UPCAST], math.inf, "it crashed its worker")]
    monkeypatch.setattr("tinyexplore.explore.whatif.commands.search.search_opts", fake_search(tries))
    session = product()
    plain = session.kernels[0].set_opts()
    found = session.kernels[0].search(1)
    assert (
        "BEAM" in found.labels and found.search == SearchData(2.0, 1.0, 3, "2.00× faster") and found.kernels[0].listings
    )
    assert found.kernels[0].opts == ("VECTOR(1, 4)", "UPCAST(0, 2)")
    light, lost = session.kernels[0].branches[-2:]
    assert (light.kernels[0].opts, light.kernels[0].median_us, light.reason) == (("VECTOR(1, 4)",), 2.0, "given up")
    assert light.parent == plain.id and not light.kernels[0].listings
    assert (lost.status, lost.reason, lost.kernels[0].times_us) == ("failed", "it crashed its worker", ())
    whole = session.whatif.complete_branch(light)
    assert whole.id == light.id and whole.kernels[0].listings and session.kernels[0].branch == whole


def test_a_cancelled_search_preserves_its_candidates(monkeypatch):
    monkeypatch.setattr(
        "tinyexplore.explore.whatif.commands.search.search_opts", fake_search([([VECTOR], 1e-6, "")] * 2)
    )
    session = product()
    session.kernels[0].set_opts()
    session.whatif.on_change = lambda branch: session.whatif.cancel()
    branch = session.kernels[0].search(1)
    assert branch.status == "failed" and branch.reason.startswith("cancelled after 1")
    assert session.kernels[0].branches[-2].kernels[0].opts == ("VECTOR(1, 4)",)


def test_a_command_during_a_search_in_another_thread_raises_an_error(monkeypatch):
    monkeypatch.setattr("tinyexplore.explore.whatif.commands.search.search_opts", fake_search([([VECTOR], 1e-6, "")]))
    session = product()
    session.kernels[0].set_opts()
    messages = []

    def ask():
        try:
            session.kernels[0].undo()
        except WhatIfError as error:
            messages.append(str(error))

    def on_change(branch):
        thread = Thread(target=ask)
        thread.start()
        thread.join()
        session.whatif.on_change = None

    session.whatif.on_change = on_change
    session.kernels[0].search(1)
    (message,) = messages
    assert "another command" in message and "view.whatif.cancel()" in message


def test_two_concurrent_commands_run_sequentially():
    session = product()
    root = session.kernels[0].set_opts()
    opts = ["UPCAST(0, 2)", "UPCAST(0, 4)", "UPCAST(1, 2)"]
    made = []
    threads = [Thread(target=lambda opt=opt: made.append(session.whatif.do(ApplyOpt(0, opt), root))) for opt in opts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(branch.kernels[0].opts for branch in made) == sorted((opt,) for opt in opts)
    assert [branch.id for branch in session.whatif.branches] == list(range(len(opts) + 1))
    assert all(branch.parent == root.id for branch in made)


def test_each_opt_is_applied_once_and_a_kernel_is_lowered_and_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = {"opts": [], "lowered": [], "compiled": []}
    requests = []
    with Context(CACHELEVEL=1):
        session = product()
        session.kernels[0].set_opts()
        session.kernels[0].apply("VECTOR(1, 4)")

        def counting(name, key, function):
            def counted(*arguments):
                made[name].append(key(arguments))
                return function(*arguments)

            return counted

        def answered(request, name, timeout_s):
            requests.append(json.loads(request))
            return workers.ask_worker(request, name, timeout_s)

        compiled = LLVMCompiler.object_code
        applied = counting("opts", lambda arguments: str(arguments[1]), apply_opt)
        monkeypatch.setattr("tinyexplore.explore.whatif.kernel_compiler.apply_opt", applied)
        monkeypatch.setattr("tinyexplore.explore.whatif.commands.apply_opt.apply_opt", applied)
        monkeypatch.setattr(
            lowering, "render_kernel", counting("lowered", lambda arguments: arguments[1], lowering.render_kernel)
        )
        monkeypatch.setattr(LLVMCompiler, "object_code", counting("compiled", lambda arguments: arguments[1], compiled))
        monkeypatch.setattr("tinyexplore.explore.whatif.measurement.ask_worker", answered)
        branch = session.kernels[0].apply("UPCAST(0, 4)")
        assert branch.status == "done" and made["opts"] == ["VECTOR(1, 4)", "UPCAST(0, 4)"]
        assert len(made["lowered"]) == len(made["compiled"]) == 1
        reply = SearchWorker().respond(requests[0])  # what the worker does, in this process
        assert len(reply["seconds"]) >= 1 and made["compiled"].count(made["compiled"][0]) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_command_does_not_change_the_branches(monkeypatch, error):
    session = product()
    session.kernels[0].set_opts()
    before, at = session.whatif.branches, session.whatif.all_places()

    def interrupted(*_):
        raise error

    with monkeypatch.context() as context, pytest.raises(error):
        context.setattr("tinyexplore.explore.whatif.kernel_compiler.variant_of", interrupted)
        session.kernels[0].apply("VECTOR(1, 4)")
    assert session.whatif.branches == before and session.whatif.all_places() == at
    assert session.kernels[0].apply("VECTOR(1, 4)").status == "done"


def test_a_branch_whose_message_was_interrupted_is_sent_with_the_next(monkeypatch):
    session = product()
    told = []
    session.whatif.on_change = told.append
    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(session.whatif, "_make_current", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        session.kernels[0].set_opts()
    assert told == []
    session.kernels[0].apply("VECTOR(1, 4)")
    assert [branch.id for branch in told] == list(range(len(session.whatif.branches)))


def test_a_command_cancelled_during_timing_adds_no_branch(monkeypatch):
    session = product()
    session.kernels[0].set_opts()
    before = session.whatif.branches
    began = Event()
    asked = workers.ask_worker

    def slow(request, name, timeout_s):
        began.set()
        return asked(request, name, timeout_s)

    monkeypatch.setattr("tinyexplore.explore.whatif.measurement.ask_worker", slow)
    messages = []

    def work():
        try:
            session.whatif.do(ApplyOpt(0, "VECTOR(1, 4)"))
        except WhatIfError as error:
            messages.append(str(error))

    thread = Thread(target=work)
    thread.start()
    assert began.wait(60)
    session.whatif.cancel()
    thread.join(60)
    assert messages == ["cancelled: no branch was created"] and session.whatif.branches == before
    assert session.kernels[0].apply("VECTOR(1, 4)").status == "done"


# *** the nest ***


def test_the_nest_of_a_product_shows_the_reuse_of_each_loop(view):
    nest = view.kernels[0].set_opts().kernels[0].nest
    assert [(line.depth, line.text, line.kind) for line in nest] == [
        (0, "for g0 in range(32)", "global"),
        (1, "for g1 in range(64)", "global"),
        (2, "for r2 in range(48)", "reduce"),
        (3, "total0 += a[g0*48 + r2]*b[r2*64 + g1]", ""),
        (2, nest[4].text, ""),
    ]
    again = [{touch.name for touch in line.touches if touch.again} for line in nest[:3]]
    assert again == [{"b"}, {"a"}, set()]
    inside = {touch.name: touch.bytes for touch in nest[0].touches}
    assert inside["b"] == 48 * 64 * 4 and inside["a"] == 48 * 4
    assert nest[0].bytes == sum(inside.values()) and nest[0].cache == "L1"
    strides = {touch.name: touch.stride for touch in nest[2].touches}
    assert strides == {"a": 1, "b": 64}


def test_a_tile_is_inside_the_reduction_loop(view):
    view.kernels[0].set_opts()
    view.kernels[0].apply("VECTOR(1, 4)")
    nest = view.kernels[0].apply("UPCAST(0, 4)").kernels[0].nest
    loops = [line.kind for line in nest if line.axis is not None]
    assert loops == ["global", "global", "reduce", "upcast", "vector", "upcast", "vector"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], 64),
        ([(1, 16)], 64),
        ([(1, 17)], 128),
        ([(0, 100)], 64),
        ([(64, 48)], 48 * 64),
        ([(1, 64), (64, 48)], 64 * 48 * 4),
        ([(1, 4), (64, 48)], 48 * 64),
        ([(2, 8)], 64),
        ([(None, 10)], 640),
        ([(-1, 32)], 128),
    ],
)
def test_cache_lines_accessed_by_loops(steps, expected):
    assert count_accessed_bytes(steps, 4, 64) == expected


def test_the_cache_that_holds_a_working_set(view):
    target: Target = view.whatif.compiler(0).start(0).target
    sizes = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    assert [cache_of(size, target) for size in sizes] == ["L1", "L2", "L3"]
    assert cache_of(target.l3_bytes + 1, target) == "memory"


def test_spellings_of_earlier_versions_name_the_same_opts() -> None:
    renamed = {
        "MERGE": "COLLAPSE",
        "COLLECT": "TRANSPOSE_STORE",
        "CUT": "TRIM",
        "AHEAD": "PREFETCH",
        "PIPE": "PIPELINE",
    }
    for earlier, name in renamed.items():
        assert to_opt(f"{earlier}(0, 4)") == to_opt(f"{name}(0, 4)") == Opt(OptOps[name], 0, 4)
        assert str(to_opt(f"{earlier}(0, 4)")) == f"{name}(0, 4)"
    assert set(OPT_KINDS) == set(OptOps)
