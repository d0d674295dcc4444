"""The notebook's side of an edit: sends the request to the worker, and converts the response to rows of the trace."""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tinyexplore.compile.workers import FOLDER, CompilerWorkers
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import Diagnostic, Difference, EditReport, Listing
from tinyexplore.explore.whatif.editing.diagnostics import c_diagnostics, llvm_diagnostics
from tinyexplore.explore.whatif.outcome import CommandRejected
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.serialization import to_plain
from tinyexplore.util import config

LIMIT_S = 5.0  # most seconds for one run of a kernel
RESPONSE_S = 180.0  # most seconds to wait for the worker, which ends a slow kernel much earlier
PROGRAM = (
    f"import sys; sys.path.insert(0, {FOLDER!r}); from tinyexplore.explore.whatif.editing.worker import main; main()"
)
_workers = CompilerWorkers(PROGRAM)


@dataclass(frozen=True, eq=False)
class Text:
    """A stage of a kernel as edited text.

    device: the device that runs it.
    stage: "opts", "uops", "llvm" or "c".
    name: the name of the program.
    text: the edited text.
    original: the kernel's AST before any opt.
    base: the program before the edit.
    uops: the program after the edit, if the program was edited; else empty.
    names: the names of its buffers.
    code: an object file of LLVM to run instead of the text; None to compile the text.
    cpu: the CPU for which LLVM generated `code`.
    """

    device: str
    stage: str
    name: str
    text: str
    original: UOp
    base: tuple[UOp, ...]
    uops: tuple[UOp, ...] = ()
    names: tuple[str, ...] = ()
    code: bytes | None = None
    cpu: str = ""


@dataclass(frozen=True)
class EditResult:
    """The result of an edit.

    edited: the comparison and the diagnostics.
    listings: the texts of the later stages.
    times_us: the samples, in microseconds.
    compile_us: the compile time, in microseconds.
    lost: why the kernel cannot be used, "" if it can.
    """

    edited: EditReport
    listings: tuple[Listing, ...]
    times_us: tuple[float, ...]
    compile_us: float
    lost: str


def try_edit(text: Text, captured: CapturedKernel | None) -> EditResult:
    """Lets a worker compile, run, compare and time `text`.

    Raises:
        CommandRejected: no worker can run here.
    """
    with _inputs_of(captured) as (inputs, digest):
        variables = [node for node in text.base if node.op is Ops.DEFINE_VAR]
        values = captured.values if captured is not None and inputs is not None else [node.arg[2] for node in variables]
        plain = to_plain([text.original, *text.base, *text.uops])
        identity = json.dumps([text.device, text.stage, digest, list(values), to_plain([text.original, *text.base])])
        key = blake2b(identity.encode(), digest_size=16).hexdigest()
        request = {
            "settings": {**asdict(config()), "DEBUG": 0, "BEAM": 0, "PROFILE": 0, "CACHELEVEL": 0},
            "key": key,
            "device": text.device,
            "stage": text.stage,
            "name": text.name,
            "text": text.text,
            "graphs": plain,
            "base": len(text.base),
            "buffers": text.names,
            "values": list(values),
            "inputs": inputs,
            "limit_s": LIMIT_S,
            "object": None if text.code is None else b64encode(text.code).decode(),
            "cpu": text.cpu,
        }
        reply = json.loads(_workers.ask(json.dumps(request), "", RESPONSE_S))
    if "lost" in reply:
        raise CommandRejected(f"the edit could not be tried: {reply['lost']}")
    return _edit_result(text, reply)


def warm_up() -> None:
    """Starts a worker if none runs, so that the first edit does not wait for the start."""
    with suppress(OSError):  # if no process can start here, the edit reports it
        _workers.put_back(_workers.take(""))


def dismiss() -> None:
    """Ends the workers of this process; the next edit starts a new one."""
    _workers.dismiss()


@contextmanager
def _inputs_of(captured: CapturedKernel | None) -> Iterator[tuple[tuple[str, list[int | None]] | None, str]]:
    """Yields a file with the kernel's inputs, the length of each input in bytes, and a digest of their content."""
    if captured is None or captured.contents is None:
        yield None, ""
        return
    digest = blake2b(digest_size=16)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tinyexplore-"))
            path = Path(folder) / "inputs"
            with path.open("wb") as file:
                for content in captured.contents:
                    file.write(content or b"")
                    digest.update(content or b"-")
        except OSError as error:
            reason = f"the edit could not be tried: no temporary folder has space for the kernel's inputs ({error})"
            raise CommandRejected(
                f"{reason}; set TMPDIR to a folder with enough space that you may write to"
            ) from error
        yield (
            (str(path), [None if initial is None else len(initial) for initial in captured.contents]),
            digest.hexdigest(),
        )


def _edit_result(text: Text, reply: dict[str, Any]) -> EditResult:
    """Returns the result of an edit from a worker's response."""
    lines = text.text.splitlines()
    diagnostics: tuple[Diagnostic, ...] = ()
    lost = ""
    ended = reply.get("overrun") or reply["ended"]
    if "compiler_error" in reply:
        read = c_diagnostics if text.stage == "c" else llvm_diagnostics
        diagnostics = read(reply["compiler_error"], lines)
        if text.stage == "uops":
            diagnostics = (Diagnostic(0, 0, "error", reply["compiler_error"].splitlines()[0]),)
        first = next((diagnostic for diagnostic in diagnostics if diagnostic.level == "error"), diagnostics[0])
        lost = f"line {first.line}: {first.text}" if first.line else first.text
    elif reply.get("phase") == "list":
        ended = ""  # the kernel was timed; only its listings are missing
    elif ended and reply.get("phase") == "time":
        lost = f"the results were compared; then, on several threads or in repeated runs, the kernel {ended}"
    elif ended:
        lost = f"the kernel {ended}" if not _is_error(ended) else ended
    elif reply.get("phase") != "done":
        lost = ended = "its process ended too early, with status 0"
    first_off = reply.get("first")
    edited = EditReport(
        stage=text.stage,
        diagnostics=diagnostics,
        ended=ended,
        against=reply["against"] if reply.get("verdict") else "",
        verdict=reply.get("verdict", ""),
        compared=reply.get("compared", 0),
        differing=reply.get("differing", 0),
        largest_error=reply.get("largest_error"),
        magnitude=reply.get("magnitude", 0.0),
        tolerance=reply.get("tolerance", 0.0),
        first=None if first_off is None else Difference(**first_off),
        before_us=tuple(reply.get("before_us", ())),
        unprotected=tuple(reply["unprotected"]),
    )
    listings = tuple(Listing(language, tuple(lines)) for language, lines in reply.get("listings", ()))
    return EditResult(edited, listings, tuple(reply.get("times_us", ())), reply.get("compile_us", 0.0), lost)


def _is_error(ended: str) -> bool:
    """Whether this text is an exception of the worker, not a fault of the edited code."""
    return ":" in ended.partition(" ")[0]


def describe_verdict(edited: EditReport) -> str:
    """Returns the comparison of the results as a sentence; "" if they were not compared."""
    if not edited.verdict:
        return ""
    if edited.verdict == "same bits":
        return f"the same bits as {edited.against}, {count_text(edited.compared, 'element')}"
    error = "" if edited.largest_error is None else f", {difference_text(edited.largest_error, edited.magnitude)}"
    if edited.tolerance:
        error += f" (tolerance {tolerance_text(edited.tolerance)})"
    if edited.verdict == "within rounding":
        return f"equal to {edited.against} within the tolerance{error}, {count_text(edited.compared, 'element')}"
    summary = (
        f"differs from {edited.against} in {edited.differing:,} of {count_text(edited.compared, 'element')}{error}"
    )
    first = edited.first
    return (
        summary
        if first is None
        else f"{summary}; first at {first.buffer}[{first.index}]: {first.found}, not {first.expected}"
    )


def difference_text(difference: float, magnitude: float) -> str:
    """Returns the largest difference as text: "at most 0.00977 apart, 4.9e-05 of the largest value (200)"."""
    if not magnitude:
        return f"at most {difference:.3g} apart"
    return f"at most {difference:.3g} apart, {difference / magnitude:.2g} of the largest value ({magnitude:.3g})"


def tolerance_text(tolerance: float) -> str:
    """Returns the tolerance for rounding as text: "0.001 of a value + 1e-05 of the largest"."""
    return f"{tolerance:g} of a value + {tolerance / 100:g} of the largest"


def expected_signature(stage: str, name: str, text: str) -> Sequence[str]:
    """Returns the lines of `text` that define the signatures of the kernel and its entry."""
    heads = (f"void {name}(", f"void {name}_entry(") if stage == "c" else (f"define void @{name}(", f"@{name}_entry")
    parameters = []
    for line in text.splitlines():
        plain = " ".join(line.split())
        if plain.startswith(heads) or (stage == "llvm" and plain.startswith(f"define void @{name}_entry(")):
            parameters.append(plain)
    return parameters


def check_signature(stage: str, name: str, before: str, after: str) -> Diagnostic | None:
    """Returns the error in the signatures of `after`; None if they equal those of `before`."""
    expected, actual = expected_signature(stage, name, before), expected_signature(stage, name, after)
    if expected == actual:
        return None
    missing = [line for line in expected if line not in actual]
    problem = f"expected exactly: {missing[0]}" if missing else f"{name} is defined twice"
    stem = missing[0].partition("(")[0] if missing else expected[0].partition("(")[0]
    lines_of_kernel = (
        number for number, line in enumerate(after.splitlines(), 1) if " ".join(line.split()).startswith(stem)
    )
    return Diagnostic(next(lines_of_kernel, 0), 0, "error", f"the signature of the kernel must not change; {problem}")


__all__ = [
    "LIMIT_S",
    "Text",
    "EditResult",
    "difference_text",
    "check_signature",
    "dismiss",
    "tolerance_text",
    "try_edit",
    "describe_verdict",
    "warm_up",
]
