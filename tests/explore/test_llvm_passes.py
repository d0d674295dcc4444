"""LLVM's passes: the texts, what they are linked to, other pipelines, and modules that are not this package's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyexplore import Context, Device, Tensor, dtypes, explore
from tinyexplore.explore import Explorer, LLVMPassesError
from tinyexplore.explore.analysis.passes.reading import read_remarks, read_runs, read_times

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
    uops = view.capture.kept[0].uops
    for line in fused:
        assert line.uop is not None and uops[line.uop].op.name == "MULACC"
        assert any(view.trace.nodes[node].op == "MULACC" for node in line.nodes)
        assert any("test_llvm_passes" in place for place in line.python)


def test_a_pass_that_is_switched_off_does_not_run_and_an_unknown_one_is_told(view: Explorer) -> None:
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
    with pytest.raises(ValueError, match="no CPU"):
        view.kernels[0].passes(cpu="nothing")


def test_displays_have_the_passes_and_their_diffs(view: Explorer) -> None:
    found = view.kernels[0].passes("O3")
    assert "instcombine" in str(found) and str(len(found.changed)) in str(found)
    html = found._repr_html_()
    assert html.count("<details>") == len(found.changed) and "LLVMPass(" not in html
    one = found["instcombine"]
    assert one.diff().count("\n+") >= 1 and one.added and one.removed
    assert "UOp" in one._repr_html_() and "<script" not in html


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.int32, dtypes.float16])
def test_kernels_of_other_types(dtype: object) -> None:
    x = Tensor.ones(40, 30).cast(dtype).contiguous().realize()  # type: ignore[arg-type]
    with Context(DEVICE="LLVM"):
        made = explore(lambda: (x * 3 + x).sum(1), repeat=1)
    found = made.kernels[0].passes()
    assert found[-1].stage == "assembly" and found.linked > 0.9


def test_a_kernel_that_llvm_does_not_compile_is_refused_with_the_reason() -> None:
    x = Tensor.ones(8, device="PYTHON").contiguous().realize()
    made = explore(lambda: x + 1, repeat=1)
    with pytest.raises(ValueError, match="PYTHON"):
        made.kernels[0].passes()


# *** modules of others ***


def test_any_module_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "scale.ll"
    path.write_text(LOOP)
    found = explore.llvm(path, "scale")
    assert found.kernel == "scale" and found["loop-vectorize"].changed
    assert any("vectorized loop" in remark.text for remark in found.remarks)
    assert "define" in found[0].text and "@other" not in found[0].text
    plain = explore.llvm(LOOP, "scale", without=["loop-vectorize"])
    assert not plain.find("loop-vectorize") and plain.assembly != found.assembly
    assert len(explore.llvm(LOOP, "scale", level="O0").changed) < len(found.changed)
    assert explore.llvm(LOOP).kernel == "other"


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="defines no function"):
        explore.llvm("; nothing\n")
    with pytest.raises(ValueError, match="it defines: other, scale"):
        explore.llvm(LOOP, "another")
    with pytest.raises(LLVMPassesError):
        explore.llvm("define void @f() {\n  %x = add i32 1, true\n  ret void\n}\n")
    with pytest.raises(FileNotFoundError):
        explore.llvm(str(tmp_path / "none.ll"))


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
