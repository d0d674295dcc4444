"""Edited stages: the results of an edited text, and that it cannot harm the calling process."""

from __future__ import annotations

import os
import resource
import tempfile
import time

import pytest

from tests.support.patience import seconds
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.model import Branch, Diagnostic
from tinyexplore.explore.whatif.commands import Edit, from_json, to_json
from tinyexplore.explore.whatif.editing import faults, guard_pages
from tinyexplore.explore.whatif.editing.diagnostics import c_diagnostics, llvm_diagnostics
from tinyexplore.explore.whatif.editing.faults import describe_exit

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="edits run in forked processes where there are any")


@pytest.fixture(scope="module")
def view() -> Explorer:
    """A product of whole numbers, its inputs kept: 8 × 16 by 16 × 8. Without opts it is one program on all machines."""
    a, b = Tensor.randint(8, 16, high=9).float().realize(), Tensor.randint(16, 8, high=9).float().realize()
    return explore(lambda: (a @ b).relu(), noopt=1, repeat=1, keep_inputs=True)


@pytest.fixture(autouse=True)
def as_captured(view: Explorer) -> None:
    if view.kernels[0].branches:
        view.whatif.go(0)


def with_code(view: Explorer, code: str) -> str:
    """The kernel's C with `code` at the start of its function."""
    name = view.trace.kernels[0].name
    lines = view.kernels[0].edit_text("c").splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith(f"void {name}("))
    return "\n".join([*lines[: place + 1], f"  {code}", *lines[place + 1 :]]) + "\n"


def after_edit(view: Explorer, code: str) -> Branch:
    return view.kernels[0].edit("c", with_code(view, code))


# *** what goes well ***


@pytest.mark.parametrize(
    ("stage", "old", "new"),
    [("c", "r2 < 16", "r2 <= 15"), ("llvm", "br label %r2.body", "br label %r2.body ; the loop")],
)
def test_an_equivalent_edit_is_equal_and_timed_against_the_original(view, stage, old, new):
    text = view.kernels[0].edit_text(stage)
    branch = view.kernels[0].edit(stage, text.replace(old, new, 1))
    edited, (variant,) = branch.edited, branch.kernels
    assert branch.status == "done" and "PYTHON device, 64 elements" in branch.reason
    assert (edited.stage, edited.verdict, edited.compared, edited.differing) == (stage, "same bits", 64, 0)
    assert variant.times_us and edited.before_us and variant.median_us is not None
    listings = {listing.language: "\n".join(listing.lines) for listing in variant.listings}
    assert new in listings[stage] and "asm" in listings
    assert view.kernels[0].branch == branch and branch.parent == view.kernels[0].branches[0].id
    assert view.kernels[0].undo().id == branch.parent


def test_an_edit_that_changes_the_result_reports_the_first_difference(view):
    branch = view.kernels[0].edit("c", view.kernels[0].edit_text("c").replace("r2 < 16", "r2 < 15"))
    edited = branch.edited
    assert branch.status == "done" and edited.verdict == "differs" and 0 < edited.differing <= 64
    assert edited.first.buffer.startswith("data0") and float(edited.first.found) < float(edited.first.expected)
    assert edited.largest_error >= float(edited.first.expected) - float(edited.first.found) - 1e-6
    assert branch.reason.startswith("differs from the PYTHON device in ") and f"[{edited.first.index}]" in branch.reason


def test_an_edit_runs_on_the_saved_inputs():
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    given = Tensor(values).realize()
    view = explore(lambda: given * 2, repeat=1, keep_inputs=True)
    branch = view.kernels[0].edit("c", with_code(view, "data0[1] = 0; return;"))
    assert branch.edited.first.index == 0 and branch.edited.first.expected == "6"


@pytest.mark.parametrize("reason", ["No usable temporary directory found", "No space left on device"])
def test_without_a_temporary_folder_an_edit_reports_the_error(view, monkeypatch, reason):
    def refuse(*_args: object, **_settings: object) -> str:
        raise OSError(reason)

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    branch = after_edit(view, "return;")
    assert branch.status == "failed" and reason in branch.reason and "TMPDIR" in branch.reason


def test_an_edit_of_an_edit_starts_from_it(view):
    first = view.kernels[0].edit("c", view.kernels[0].edit_text("c").replace("r2 < 16", "r2 <= 15"))
    second = view.kernels[0].edit("c", view.kernels[0].edit_text("c").replace("r2 <= 15", "r2 != 16"))
    assert second.parent == first.id and second.edited.verdict == "same bits"
    assert view.kernels[0].edit("c", view.kernels[0].edit_text("c")) == second  # nothing was changed
    refused = view.kernels[0].apply("UNROLL(2, 4)")
    assert refused.status == "failed" and "undo the edit" in refused.reason


def test_opts_start_from_the_unedited_kernel(view):
    root = view.kernels[0].branches[0]
    view.kernels[0].edit("c", view.kernels[0].edit_text("c").replace("r2 < 16", "r2 <= 15"))
    assert view.kernels[0].set_opts(", ".join(root.kernels[0].opts)).id == root.id


def test_opts_are_edited_as_text(view):
    branch = view.kernels[0].edit("opts", "VECTOR(1, 4)")
    assert branch.status == "done" and branch.kernels[0].opts == ("VECTOR(1, 4)",)
    wrong = view.kernels[0].edit("opts", "VECTOR(1, 4),\nUPCAST[0]")
    assert wrong.status == "failed" and wrong.edited.diagnostics[0].line == 2
    assert view.kernels[0].edit("opts", "UPCAST(7, 4)").reason.startswith("no axis 7")


def test_an_edit_is_serialized_and_saved_with_the_trace(view, tmp_path):
    command = Edit(0, "c", "void f() {\n}\n")
    assert from_json(to_json(command)) == command
    branch = view.kernels[0].edit("c", view.kernels[0].edit_text("c").replace("r2 < 16", "r2 <= 15"))
    loaded = view.trace.load(view.trace.save(tmp_path / "trace.json.gz"))
    assert loaded.branches[branch.id] == branch
    first = f"branch {branch.id} · edit of the C · {branch.kernels[0].name}: "
    assert (
        str(branch).startswith(first) and str(branch).endswith(f" · {branch.reason}") and "same bits" in branch.reason
    )
    of_opts = view.kernels[0].edit("opts", "VECTOR(1, 4)")
    assert str(of_opts).startswith(
        f"branch {of_opts.id} · edit of the opts: VECTOR(1, 4) · {of_opts.kernels[0].name} · "
    )
    with pytest.raises(WhatIfError, match="no stage 'python' .*: opts, uops, llvm, c"):
        view.kernels[0].edit("python", "")


# *** what compilers say ***


def test_a_wrong_edit_shows_the_compilers_message_at_the_line(view):
    text = view.kernels[0].edit_text("c").replace("float v2 =", "floaty v2 =")
    number = next(number for number, line in enumerate(text.splitlines(), 1) if "floaty" in line)
    branch = view.kernels[0].edit("c", text)
    assert branch.status == "failed" and branch.kernels == () and view.kernels[0].branch.id == 0
    first = branch.edited.diagnostics[0]
    assert (first.line, first.level) == (number, "error") and first.column > 0 and "floaty" in first.text
    text = view.kernels[0].edit_text("llvm").replace("mul nsw i64 %r2, 8", "mul nsw i64 %r2, %nobody")
    number = next(number for number, line in enumerate(text.splitlines(), 1) if "%nobody" in line)
    (found,) = view.kernels[0].edit("llvm", text).edited.diagnostics
    assert (found.line, found.text) == (number, "use of undefined value '%nobody'") and found.column > 0
    text = view.kernels[0].edit_text("llvm").replace("entry:\n", "entry:\n  %early = add i64 %r2, 1\n", 1)
    (found,) = view.kernels[0].edit("llvm", text).edited.diagnostics
    assert "Instruction does not dominate" in found.text and found.line > 0


def test_a_signature_must_not_change(view):
    text = view.kernels[0].edit_text("c").replace("(float* restrict data0,", "(double* restrict data0,")
    branch = view.kernels[0].edit("c", text)
    assert branch.status == "failed" and branch.edited.diagnostics[0].line > 0
    assert "expected exactly: void r_8_8_16(float* restrict data0," in branch.reason


def test_an_undefined_name_is_reported_with_its_line(view):
    code = "extern void nobody_has_this(void); nobody_has_this();"
    branch = after_edit(view, code)
    assert branch.status == "failed" and "nobody_has_this" in branch.reason


def test_messages_of_compilers_are_parsed():
    words = "clang could not compile the kernel:\n<stdin>:3:7: error: expected ';'\n<stdin>:9:1: warning: odd\nfoo\n"
    expected = (Diagnostic(3, 7, "error", "expected ';'"), Diagnostic(9, 1, "warning", "odd"))
    assert c_diagnostics(words, []) == expected
    assert c_diagnostics("/tmp/x.so: undefined symbol: nobody", ["int x;", "  nobody();"]) == (
        Diagnostic(2, 3, "error", "nothing defines 'nobody'"),
    )
    words = "LLVM IR parsing error\n<string>:3:8: error: expected type\n  %a = \n"
    assert llvm_diagnostics(words, []) == (Diagnostic(3, 8, "error", "expected type"),)
    assert llvm_diagnostics("PHI nodes not grouped\n  %p = phi i64 [ 0, %a ]", ["", "  %p = phi  i64 [ 0, %a ]"]) == (
        Diagnostic(2, 0, "error", "PHI nodes not grouped"),
    )


# *** crashes: the process that asked lives, and the branch says what happened ***

MALLOC = "extern void* malloc(size_t);"
REFUSED = "ran out of memory: the limit is 1.0 GiB; an allocation failed"
CRASHES = {
    "writes behind": ("data0[64] = 1;", "the kernel wrote past the end of data0 (result): element 64 of 64"),
    "writes far behind": ("data0[5000] = 1;", "the kernel wrote past the end of data0 (result): 19744 bytes"),
    "writes before": ("data0[-1] = 1;", "the kernel wrote 4 bytes before the start of data0 (result): 4 bytes"),
    "reads before": ("volatile float x = data1[-2000]; data0[0] = x;", "the kernel read before the start of data1"),
    "writes an input": ("*(float*)(data1 + 5) = 2;", "the kernel wrote data1 (a), which it may only read (element 5)"),
    "reads NULL": ("data0[0] = *(volatile float*)0;", "the kernel read a null pointer (address 0x0, SIGSEGV)"),
    "writes anywhere": ("*(volatile long*)0x123456789a8 = 1;", "the kernel wrote memory that is not its own"),
    "divides by zero": ("volatile int64_t z = 0, q = 5 / z;", "the kernel divided an integer by zero (SIGFPE)"),
    "aborts": ("extern void abort(void); abort();", "the kernel called abort() (SIGABRT)"),
    "exits": ("extern void exit(int); exit(0);", "its process ended too early, with status 0"),
    "exits with 3": ("extern void _exit(int); _exit(3);", "the kernel ended its process with status 3"),
    "takes 100 GB": (f"{MALLOC} ((volatile char*)malloc(100L << 30))[start] = 1;", f"the kernel {REFUSED}"),
    "takes 100 GB in pieces": (f"{MALLOC} for (;;) *(volatile char*)malloc(1L << 27) = 1;", f"the kernel {REFUSED}"),
    "exhausts the stack": ("volatile char room[1L << 33]; room[0] = 1; data0[0] = room[start];", "the kernel "),
    "stops itself": ("extern int raise(int); raise(9);", "the kernel was stopped by SIGKILL"),
}  # fmt: skip


@pytest.mark.parametrize("what", CRASHES)
def test_a_crash_ends_only_the_worker_and_is_reported(view, what):
    code, words = CRASHES[what]
    branch = after_edit(view, code)
    assert branch.status == "failed" and branch.reason.startswith(words)
    assert branch.edited.ended and view.kernels[0].branch.id == 0
    assert "c" in {listing.language for listing in branch.kernels[0].listings}


def test_an_endless_loop_is_stopped(view, monkeypatch):
    monkeypatch.setattr("tinyexplore.explore.whatif.editing.client.LIMIT_S", 0.5)
    for code in ("for (volatile int i = 0; ; i++);", "extern unsigned sleep(unsigned); for (;;) sleep(100);"):
        began = time.monotonic()
        branch = after_edit(view, code)
        assert branch.status == "failed" and "longer than 0.5 s" in branch.reason
        assert time.monotonic() - began < seconds(10)


def test_code_that_forks_or_ignores_signals_leaves_no_process(view, monkeypatch):
    monkeypatch.setattr("tinyexplore.explore.whatif.editing.client.LIMIT_S", 0.5)
    code = "extern int fork(void); extern unsigned sleep(unsigned); if (fork() == 0) for (;;) sleep(7777); for (;;);"
    assert "longer than 0.5 s" in after_edit(view, code).reason


def test_fifty_crashes_in_a_row_leak_nothing(view):
    after_edit(view, CRASHES["aborts"][0])
    before, children = memory(), len(os.listdir("/proc/self/fd"))
    began = time.monotonic()
    for number in range(50):
        code, words = list(CRASHES.values())[(0, 5, 7, 8)[number % 4]]
        branch = after_edit(view, f"{code} // {number}")
        assert branch.status == "failed" and branch.reason.startswith(words)
    took = time.monotonic() - began
    assert memory() - before < 32 << 20 and len(os.listdir("/proc/self/fd")) <= children + 1
    assert took / 50 < seconds(3)
    good = view.kernels[0].edit("c", view.kernels[0].edit_text("c").replace("r2 < 16", "r2 <= 15"))
    assert good.status == "done"


def memory() -> int:
    """Bytes that this process has in memory."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_a_crash_of_the_compiled_ir_is_reported_too(view):
    text = view.kernels[0].edit_text("llvm")
    branch = view.kernels[0].edit(
        "llvm", text.replace("entry:\n", "entry:\n  call void @abort()\n") + "declare void @abort()\n"
    )
    assert branch.reason == "the kernel called abort() (SIGABRT)"
    where = "  %data0 = load ptr, ptr %slot0, align 8\n"
    wrong = "  %far = getelementptr float, ptr %data0, i64 64\n  store float 1.0, ptr %far\n"
    branch = view.kernels[0].edit("llvm", text.replace(where, where + wrong, 1))
    assert "data0 (result): element 64 of 64" in branch.reason


# *** what a system has not ***


def test_missing_protections_of_the_system_are_listed(monkeypatch):
    assert faults.list_unprotected() == ()
    monkeypatch.setattr(faults, "resource", None)
    assert faults.list_unprotected() == ("no memory limit",) and faults.limit_resources(1, 1.0) == 0
    monkeypatch.setattr(faults, "protect", lambda: None)
    assert faults.list_unprotected()[1].startswith("no guard pages")
    monkeypatch.delattr(os, "fork")
    assert faults.list_unprotected()[0].startswith("no separate process")


def test_without_guard_pages_canary_bytes_detect_writes_outside_a_buffer(monkeypatch):
    from tinyexplore.dtype import dtypes

    monkeypatch.setattr(guard_pages, "protect", lambda: None)
    names, contents = [("data0", dtypes.float32)], [bytes(400)]
    for at_start in (False, True):
        with guard_pages.make_guarded_buffers(names, contents, frozenset({0}), frozenset(), at_start=at_start) as (
            one,
        ):
            assert one.overrun() == "" and one.content() == bytes(400)
            place = one.start + 400 if at_start else one.start - 8
            (guard_pages.ctypes.c_uint32 * 1).from_address(place)[0] = 7
            expected = "wrote 4 bytes past the end of data0: element 100 of 100"
            if not at_start:
                expected = "wrote 4 bytes before the start of data0: 8 bytes before it (element -2)"
            assert one.overrun() == expected


def test_an_exit_without_an_address_is_described():
    assert "SIGFPE" in describe_exit(-8, None, (), 0)
    assert describe_exit(-63, None, (), 0) == "was stopped by signal 63"
    assert describe_exit(70, (11, 0, 16, "wrote"), (), 0) == "wrote a null pointer (address 0x10, SIGSEGV)"
