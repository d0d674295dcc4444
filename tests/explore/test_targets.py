"""A target that this machine cannot execute: compiled and shown for it, computed by native code, without times."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import Context, Tensor, TinyJit, explore
from tinyexplore.device import DeviceUnavailable
from tinyexplore.explore.analysis.models.kernel_analyses import KernelUnavailableError
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.model import KernelInfo
from tinyexplore.explore.tracefile.pictures.table_pictures import timing_svg
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.renderer.gpu import DIALECTS
from tinyexplore.target import UnknownTarget, machine

FOREIGN = "neoverse-n1" if machine() == "x86_64" else "znver3"
A = np.arange(48 * 32, dtype=np.float32).reshape(48, 32) / 1000


def soft(a: np.ndarray) -> np.ndarray:
    powers = np.exp(a - a.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def listing(trace: Trace, kernel: KernelInfo, language: str) -> str:
    (found,) = [one for one in trace.programs if one.kernel == kernel.id and one.language == language]
    return "\n".join(line.text for line in found.lines)


@pytest.mark.parametrize(
    ("target", "word"),
    [("neoverse-n1", "fmla"), ("sifive-x280", "vfmacc"), ("sifive-u74", "fmadd.s"), ("novalake", "vfmadd")],
)
def test_foreign_kernels_are_shown_with_the_reason_for_missing_times(target: str, word: str) -> None:
    view = explore(lambda: (Tensor(A) @ Tensor(A.T)).softmax(), target=target)
    np.testing.assert_allclose(view.result.numpy(), soft(A @ A.T), rtol=1e-4)
    trace = view.trace
    assert trace.runs == () and len(trace.kernels) == 2
    for kernel in trace.kernels:
        assert {"c", "llvm", "llvm-opt", "asm", "uops"} == {
            one.language for one in trace.programs if one.kernel == kernel.id
        }
        assert kernel.code_bytes > 100 and kernel.opts and kernel.buffers and kernel.flops
        assert f"code for {target} is generated here" in kernel.not_run
    assert word in listing(trace, trace.kernels[0], "asm")
    (note,) = trace.messages
    assert note.text.startswith(trace.kernels[0].not_run) and "computed by native code" in note.text
    assert "cannot run on this machine" in timing_svg(trace)
    assert "generated here" in view.to_html() and dict(trace.options)["TARGET"] == target


def test_webassembly_is_a_target_that_needs_nothing_to_be_shown() -> None:
    view = explore(lambda: (Tensor(A) @ Tensor(A.T)).softmax(), device="LLVM", target="wasm32")
    np.testing.assert_allclose(view.result.numpy(), soft(A @ A.T), rtol=1e-4)
    trace = view.trace
    assert trace.runs == () and len(trace.kernels) == 2
    for kernel in trace.kernels:
        assert "the WASM device" in kernel.not_run
        assert kernel.code_bytes > 200 and "v128.store" in listing(trace, kernel, "wat")
        assert {"uops", "wat", "c"} == {one.language for one in trace.programs if one.kernel == kernel.id}
    assert "wasm-unsafe-eval" in view.to_html()  # its page runs them


def test_a_target_that_runs_here_has_times() -> None:
    view = explore(lambda: Tensor(A) * 2, target="x86-64-v2" if machine() == "x86_64" else "native")
    (kernel,) = view.trace.kernels
    assert (kernel.not_run, len(view.trace.runs), view.trace.messages) == ("", 1, ())
    assert kernel.code_bytes > 20


def test_programs_that_read_values_step_replay_and_search_run_under_a_foreign_target() -> None:
    @TinyJit
    def doubled(a: Tensor) -> Tensor:
        return (a * 2 + 1).realize()

    def program() -> list[float]:
        w = Tensor(A[:4], requires_grad=True)
        loss = (w.exp() * w).sum()
        loss.backward()
        assert w.grad is not None
        kept = [loss.item()] if loss.item() > 0 else []
        return kept + [doubled(w.grad.detach() * step).sum().item() for step in range(1, 5)]

    expected = program()
    doubled.reset()
    view = explore(program, target=FOREIGN, beam=2)
    np.testing.assert_allclose(view.result, expected, rtol=1e-4)
    assert all(kernel.not_run for kernel in view.trace.kernels if kernel.code_bytes)
    searched = [search.reason for search in [kernel.beam for kernel in view.kernels if kernel.beam is not None]]
    assert searched and all("cannot run on this machine" in reason for reason in searched)


def test_outside_an_explorer_running_it_is_an_error() -> None:
    with Context(TARGET=FOREIGN), pytest.raises(DeviceUnavailable, match=r"explore\(f, target=…\)"):
        (Tensor(A) + 1).realize()


def test_an_unknown_target_is_refused_before_anything_runs() -> None:
    with pytest.raises(UnknownTarget, match="close to it: neoverse-n"):
        explore(lambda: pytest.fail("it ran"), target="neoverse-n9")


def test_numeric_operands_of_arm_are_preserved() -> None:
    trace = explore(lambda: Tensor(A) @ Tensor(A.T), target="neoverse-n1").trace
    text = listing(trace, trace.kernels[0], "asm")
    assert "#" in text and not [line for line in text.splitlines() if line.endswith(",")]


def test_a_gpus_kernel_is_shown_in_its_languages_and_takes_opts_of_its_own() -> None:
    view = explore(lambda: Tensor(A).softmax(), target="sm_80")
    np.testing.assert_allclose(view.result.numpy(), soft(A), rtol=1e-4)
    (kernel,) = view.trace.kernels
    assert "DEVICE=PYTHON emulates them" in kernel.not_run
    assert {"uops", "ptx", "wgsl", *DIALECTS} == {one.language for one in view.trace.programs}
    assert "SPECIAL lidx0 < 32" in listing(view.trace, kernel, "uops")
    assert "threadIdx.x" in listing(view.trace, kernel, "cuda")
    view.kernels[kernel.id].set_opts("")
    assert {"NOLOCALS(0)", "GROUP(2, 8)", "GROUPTOP(2, 8)"} <= set(view.kernels[kernel.id].available_opts())
    with pytest.raises(KernelUnavailableError, match="work-items"):
        view.kernels[kernel].caches()
    assert view.kernels[kernel.id].debug("generated").finish().reason == "at the end"
    with pytest.raises(WhatIfError, match="no stage 'c' .*: opts, uops"):
        view.kernels[kernel.id].edit_text("c")
