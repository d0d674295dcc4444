"""LLVM's passes: the texts and their links, other pipelines, and modules of other packages."""

from __future__ import annotations

from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

import pytest

from bench.verdict_programs import with_opts
from tinyexplore import Context, Device, Tensor, explore
from tinyexplore.explore import Explorer, LLVMPassesError, compare
from tinyexplore.explore.analysis.passes.output_parser import read_remarks, read_runs, read_times
from tinyexplore.explore.analysis.passes.passes_data import passes_data
from tinyexplore.explore.analysis.passes.quotations import refusal_text, spills_text
from tinyexplore.explore.analysis.passes.sequence import LLVMPass, LLVMPasses, PassLine, Remark, Spill
from tinyexplore.explore.analysis.passes.spills import spills_of
from tinyexplore.explore.analysis.passes.stages import trace_of
from tinyexplore.explore.tracefile.columns import _unpack_texts
from tinyexplore.explore.tracefile.validation import check_trace

pytestmark = pytest.mark.skipif("LLVM" not in Device.available(), reason="needs llvmlite")

LOOP = """
define void @other() {
  ret void
}

define void @scale(ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %a = load float, ptr %p
  %b = fmul float %a, 2.0
  %c = fadd float %b, 0.0
  %q = getelementptr float, ptr %y, i64 %i
  store float %c, ptr %q
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = Tensor.rand(64, 48).realize(), Tensor.rand(48, 32).realize()
    with Context(DEVICE="LLVM"):
        return explore(lambda: (x @ w).softmax(), repeat=1)


def test_every_kernel_has_its_passes_from_the_rendered_ir_to_the_assembly(view: Explorer) -> None:
    for kernel in view.kernels:
        found = kernel.passes("O3")
        assert len(found.changed) > 20
        assert found[0].text.splitlines()[0].startswith("define") and found[-1].stage == "assembly"
        assert {"IR", "machine IR", "assembly"} == {one.stage for one in found}
        assert found.linked > 0.95
        for before, after in zip(found, found[1:]):
            assert after.before == before.lines and after.number == before.number + 1
            assert after.changed is (after.text != before.text)
        assert found.seconds > 0
        assert found["instcombine"].seconds is not None and found["x86-isel" if _is_x86() else "assembly"]


def _is_x86() -> bool:
    return Device["LLVM"].target.arch == "x86_64"


def test_the_end_is_the_assembly_that_the_capture_has(view: Explorer) -> None:
    for kernel in view.kernels:
        found = kernel.passes()
        listed = [line.split() for line in kernel.listing("asm").splitlines()]
        assert [line.split() for line in found.assembly.splitlines()] == listed
        assert [line.text for line in found[0].lines] == [
            line for line in kernel.listing("llvm").split("\n}")[0].splitlines() if line
        ] + ["}"]


def test_a_line_leads_to_its_uop_and_to_the_line_of_python(view: Explorer) -> None:
    kernel = view.kernels[0]
    fused = [
        line for line in kernel.passes("O3")["instcombine"].lines if "llvm.fma" in line.text and line.uop is not None
    ]
    assert fused
    uops = view.capture.captured_kernels[0].uops
    for line in fused:
        assert line.uop is not None and uops[line.uop].op.name == "MULACC"
        assert any(view.trace.nodes[node].op == "MULACC" for node in line.nodes)
        assert any("test_llvm_passes" in place for place in line.python)


def test_a_disabled_pass_does_not_run_and_an_unknown_one_raises_an_error(view: Explorer) -> None:
    kernel = view.kernels[0]
    assert kernel.passes("O3").find("instcombine")
    without = kernel.passes("O3", without=["instcombine"])
    assert not without.find("InstCombinePass") and "instcombine" in without.pipeline
    with pytest.raises(KeyError, match="these changed something"):
        without["instcombine"]
    with pytest.raises(ValueError, match="option name"):
        kernel.passes(without=["a, b"])
    with pytest.raises(ValueError, match="O0, O1, O2, O3"):
        kernel.passes("O9")
    assert kernel.passes("O3") is kernel.passes("O3")


def test_code_for_another_cpu(view: Explorer) -> None:
    found = view.kernels[0].passes(cpu="neoverse-n1")
    assert found.cpu == "neoverse-n1" and "fmla" in found.assembly
    with pytest.raises(ValueError, match="has no CPU named"):
        view.kernels[0].passes(cpu="nothing")


def test_displays_have_the_passes_and_their_diffs(view: Explorer) -> None:
    found = view.kernels[0].passes("O3")
    assert "instcombine" in str(found) and str(len(found.changed)) in str(found)
    html = found._repr_html_()
    assert html.count("<details>") == len(found.changed) and "LLVMPass(" not in html
    one = found["instcombine"]
    assert one.diff().count("\n+") >= 1 and one.added and one.removed
    assert "UOp" in one._repr_html_() and "<script" not in html


def test_a_kernel_that_llvm_does_not_compile_is_refused_with_the_reason() -> None:
    x = Tensor.ones(8, device="PYTHON").contiguous().realize()
    made = explore(lambda: x + 1, repeat=1)
    with pytest.raises(ValueError, match="PYTHON"):
        made.kernels[0].passes()


def test_the_data_of_a_page_are_the_texts_again(view: Explorer) -> None:
    for kernel in view.kernels:
        found = kernel.passes("O3")
        data = passes_data(found, kernel.number)
        lines = _unpack_texts(asdict(data.lines), 1 << 30)
        uops = list(accumulate(data.line_uops))
        now: list[int] = []
        for one, row in zip(found, data.passes, strict=True):
            after, at = [], 0
            for first, removed, *added in row.edits:
                after += [*now[at:first], *accumulate(added)]
                at = first + removed
            now = after + now[at:]
            assert [lines[number] for number in now] == [line.text for line in one.lines]
            assert [uops[number] for number in now] == [-1 if line.uop is None else line.uop for line in one.lines]


# *** what a verdict says of them ***


def mir(text: str, uop: int | None = None) -> PassLine:
    return PassLine(text, uop, (), () if uop is None else (f"cell:{uop}",))


def test_spilled_values_are_named_with_their_pass_and_line() -> None:
    store = "  VMOVAPSZmr %stack.2, 1, $noreg, 0, $noreg, %7:vr512 :: (store (s512) into %stack.2)"
    load = "  %9:vr512 = VMOVAPSZrm %stack.2, 1, $noreg, 0, $noreg :: (load (s512) from %stack.2)"
    before = LLVMPass(0, "Register Coalescer", "", "machine IR", True, None, (mir("  %7:vr512 = LOAD", 3),))
    after = LLVMPass(
        1, "Greedy Register Allocator", "", "machine IR", True, None, (mir(store, 3), mir(load, 4), mir(load, 4))
    )
    name, found = spills_of([before, after], {4: "%a = load float"})
    assert name == "Greedy Register Allocator"
    assert found == [Spill(2, 64, 1, 2, 3, "%a = load float", ("cell:3",))]
    passes = LLVMPasses("k", "cpu", "", [before, after], (), found, name)
    assert "1 value: 1 of `%a = load float` (cell:3)." in spills_text(passes) and name in spills_text(passes)
    assert spills_text(LLVMPasses("k", "cpu", "", [before])) == ""


def test_a_spilled_accumulator_is_named_by_its_sum_and_not_by_the_zero_that_it_begins_with() -> None:
    lines = [
        mir("bb.1.outer:"),
        mir("  %4:vr256 = AVX_SET0", 1),
        mir("  VMOVUPSYmr %stack.0, 1, $noreg, 0, $noreg, %4:vr256 :: (store (s256) into %stack.0, align 16)", 1),
        mir("bb.2.inner:"),
        mir("  %6:vr256 = VMOVUPSYrm %stack.0, 1, $noreg, 0, $noreg :: (load (s256) from %stack.0, align 16)", 2),
        mir("  %7:vr256 = COPY %6:vr256", 2),
        mir("  %7:vr256 = nofpexcept VFMADD231PSYr %7:vr256(tied-def 0), %1:vr256, %2:vr256, implicit $mxcsr", 5),
        mir("  %8:vr256 = COPY %7:vr256", 1),
        mir("  VMOVUPSYmr %stack.0, 1, $noreg, 0, $noreg, %8:vr256 :: (store (s256) into %stack.0, align 16)", 1),
        mir("bb.3.done:"),
        mir("  %9:vr256 = VADDPSYrm %3:vr256, %stack.0, 1, $noreg, 0, $noreg :: (load (s256) from %stack.0)", 7),
    ]
    after = LLVMPass(1, "Greedy Register Allocator", "", "machine IR", True, None, tuple(lines))
    _, (spill,) = spills_of([after], {6: "%sum = fma", 8: "%last = fadd"})
    assert (spill.subject, spill.python, spill.uop) == ("%sum = fma", ("cell:5",), 5)
    assert (spill.stores, spill.loads, spill.blocks) == (2, 2, ("outer", "inner", "done"))
    assert spill.live_range == "from outer to done"


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "neoverse-n1"])
def test_the_accumulators_of_a_tile_that_is_too_large_are_spilled(target: str) -> None:
    """64 vector registers of sums for 16 or 32 that the CPU has; LLVM compiles for every target on every machine."""
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()

    def captured() -> Explorer:
        return explore(lambda: a @ b, repeat=1, target=target)

    view = with_opts("VECTOR(1, {lanes}), UPCAST(1, 4), UPCAST(0, 16)", captured)
    passes = view.kernels[0].passes()
    uops = view.capture.captured_kernels[0].uops
    products = [one for one in passes.spills if one.uop is not None and uops[one.uop].op.name == "MULACC"]
    assert passes.spilled_by == "Greedy Register Allocator"
    assert len(products) >= 24 and len(products) >= 0.8 * len(passes.spills)
    for one in products:
        assert one.stores and one.loads and one.live_range and "test_llvm_passes" in one.python[0]
    fitting = with_opts("VECTOR(1, {lanes}), UPCAST(1, 2), UPCAST(0, 4)", captured).kernels[0].passes()
    assert not fitting.spills and fitting.spilled_by == ""


def test_llvms_reason_for_a_loop_without_vectors_is_quoted() -> None:
    remarks = [Remark("loop not vectorized", 1, "br"), Remark("loop not vectorized: call in loop", 2, "%c = call")]
    passes = LLVMPasses("k", "cpu", "", [], remarks)
    assert refusal_text(passes) == "LLVM says of `%c = call`: “loop not vectorized: call in loop”."
    assert refusal_text(LLVMPasses("k", "cpu", "", [], [Remark("33 spills", None)])) == ""


# *** modules of others ***


def test_any_module_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "scale.ll"
    path.write_text(LOOP)
    found = explore.llvm(path, "scale").passes
    assert found.kernel == "scale" and found["loop-vectorize"].changed
    assert any("vectorized loop" in remark.text for remark in found.remarks)
    assert "define" in found[0].text and "@other" not in found[0].text
    plain = explore.llvm(LOOP, "scale", without=["loop-vectorize"]).passes
    assert not plain.find("loop-vectorize") and plain.assembly != found.assembly
    assert len(explore.llvm(LOOP, "scale", level="O0").passes.changed) < len(found.changed)
    assert explore.llvm(LOOP).passes.kernel == "other"


def test_a_module_is_a_view_as_any_file_that_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "scale.ll"
    path.write_text(LOOP)
    view = explore.llvm(path, "scale")
    assert isinstance(view, Explorer) and view.trace == trace_of(view.passes)
    assert "of LLVM" in repr(view) and 'data-chunk="stage_texts"' in view.to_html()
    opened = explore.open(path)
    assert [stage.name for stage in opened.trace.stages][-1] == "assembly" and opened.trace.title == "other in LLVM"


def test_passes_on_other_functions_of_the_module_are_left_out() -> None:
    """LLVM runs and prints the passes of code generation function by function."""
    others = LOOP.replace("@other", "@before").replace("@scale", "@after").replace("2.0", "3.0")
    alone, among = (explore.llvm(text, "scale").passes for text in (LOOP, LOOP + others))
    for one in (alone, among):
        assert sum(line.text.startswith("define") for each in one if each.stage == "IR" for line in each.lines) == sum(
            each.stage == "IR" for each in one
        )
    assert [(one.name, one.text) for one in alone] == [(one.name, one.text) for one in among]
    runs = read_runs("OptDisable: running pass licm on loop %i in function f\n", "f")
    assert runs[0].functions == ("f",)
    for on, functions in (("(f, g)", ("f", "g")), ("function (g)", ("g",)), ("[module]", ()), ("g", ("g",))):
        assert read_runs(f"OptDisable: running pass inline on {on}\n", "f")[0].functions == functions


def test_any_module_is_a_trace_whose_lines_lead_to_its_own() -> None:
    found = explore.llvm(LOOP, "scale").passes
    assert found.linked > 0.95
    trace = trace_of(found)
    check_trace(trace)
    assert len(trace.stages) == len(found) and len(trace.stage_texts) == len(found.changed)
    multiply = next(at for at, line in enumerate(trace.sources[0].text.splitlines(), 1) if "fmul" in line)
    vectors = [line for text in trace.stage_texts for line in text.lines if "fmul <" in line.text]
    assert vectors
    for line in vectors:
        (node,) = line.nodes
        user = trace.nodes[node].user
        assert user is not None and trace.frames[user].line == multiply


def test_invalid_modules_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="defines no function"):
        explore.llvm("; nothing\n")
    with pytest.raises(ValueError, match="it defines: other, scale"):
        explore.llvm(LOOP, "another")
    with pytest.raises(LLVMPassesError):
        explore.llvm("define void @f() {\n  %x = add i32 1, true\n  ret void\n}\n")
    with pytest.raises(FileNotFoundError):
        explore.llvm(str(tmp_path / "none.ll"))


def test_two_pipelines_are_compared_stage_by_stage(view: Explorer, tmp_path: Path) -> None:
    found = compare(explore.llvm(LOOP, "scale", level="O1"), explore.llvm(LOOP, "scale"))
    assert not found.same and found.diff.first is not None and found.diff.first.name == "loop-vectorize"
    assert [text.language for text in found.texts if not text.same] == ["llvm", "mir", "asm"]
    ends = {text.language: text for text in found.texts}
    assert any(line.startswith("+") and "fmul <" in line for line in ends["llvm"].diff().splitlines())
    names = [pair.name for pair in found.stages]
    assert "loop-vectorize" in names and "function-attrs" not in names  # both change the attributes in the same way
    assert "fmul &lt;" not in found.to_html() and "loop-vectorize" in found.to_html(tmp_path / "c.html")
    assert {"loop-vectorize"} <= {one["name"] for one in found.to_dict()["stages"]}
    kernel = view.kernels[0]
    assert compare(kernel.passes("O3"), kernel.passes("O3")).same
    assert not compare(kernel.passes("O0"), kernel.passes("O3")).same


def test_a_kernel_runs_as_another_pipeline_compiles_it(view: Explorer) -> None:
    """Its results are compared, and its samples are interleaved with those of the original kernel."""
    found = view.kernels[0].passes("O0", timed=True)
    assert found.times is not None and found.times.reason == ""
    assert len(found.times.times_us) >= 5 and len(found.times.base_times_us) >= 5
    assert "same bits" in found.times.results and "runs in" in str(found) and "runs in" in found._repr_html_()
    assert view.kernels[0].passes("O0").times is None
    elsewhere = view.kernels[0].passes(cpu="neoverse-n1" if _is_x86() else "x86-64-v3", timed=True).times
    assert elsewhere is not None and elsewhere.median_us is None and "cannot run" in elsewhere.reason


def test_a_line_of_assembly_leads_back_to_the_input_ir() -> None:
    trace = explore.llvm(LOOP.replace("2.0", "3.0"), "scale").trace
    place = trace.find_lines("mulps|fmul", "asm")[0]
    history = trace.line_history(place.text, place.number)
    assert history[-1] == place and history[0].line.text.strip() == "%b = fmul float %a, 3.0"
    assert [one.text.id for one in history] == sorted({one.text.id for one in history})
    assert {one.text.language for one in history} == {"llvm", "mir", "asm"}
    assert any("fmul <" in one.line.text and one.stage.name == "loop-vectorize" for one in history)


# *** reading ***


def test_dumps_remarks_and_times_are_read() -> None:
    said = "\n".join(
        [
            "OptDisable: running pass gvn on f",
            "OptDisable: not running pass licm on f",
            "OptDisable: running pass indvars on loop %l in function f",
            "*** IR Dump After IndVarSimplifyPass on loop %l in function f ***",
            "define void @f() {",
            "  ret void, !dbg !7",
            "}",
            "!7 = !DILocation(line: 5, scope: !3)",
            "# *** IR Dump After Live Variable Analysis (livevars) on f ***:",
            "# Machine code for function f: IsSSA",
            "bb.0:",
            "  successors: %bb.1",
            "  %1:gr64 = COPY $rdi, debug-location !7; uops:5",
            "# End machine code for function f.",
        ]
    )
    runs = read_runs(said, "f")
    assert [run.argument for run in runs] == ["gvn", "indvars", "livevars"]
    assert runs[0].dump is None and runs[1].dump is not None and runs[2].dump is not None
    assert runs[1].dump.lines[1] == ("  ret void", 5) and not runs[1].dump.is_machine
    assert runs[2].dump.lines == (("bb.0:", 0), ("  %1:gr64 = COPY $rdi", 5)) and runs[2].dump.is_machine
    assert read_remarks("remark: uops:4:0: hoisting mul\nremark: uops:4:0: hoisting mul\n") == [(4, "hoisting mul")]
    report = "   0.0002 (  2.6%)   0.0021 ( 12.5%)   0.0023 (  9.6%)   0.0303 ( 17.8%)  GVNPass #2\n"
    assert read_times(report) == {("GVNPass", 2): 0.0023}


def test_a_cpu_without_the_instructions_of_a_kernel_is_refused_with_a_remedy() -> None:
    x = Tensor.ones(64, 1024).contiguous().realize()
    kernel = explore(lambda: x.exp().realize(), target="cooperlake").kernels[0]
    with pytest.raises(LLVMPassesError, match='target="haswell"'):
        kernel.passes(cpu="haswell")
