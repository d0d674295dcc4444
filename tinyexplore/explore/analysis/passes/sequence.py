"""The passes of a kernel as results: `view.kernels[0].passes()`."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import overload

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.encodable_text import for_terminal
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table
from tinyexplore.explore.tracefile.texts import duration_text

CONTEXT = 2  # lines around a change
SHOWN_REMARKS = 8
_FRAME = re.compile(
    r"^\s+(?:fi|cp|jt)#|"  # in machine IR: stack slots, constants, jump tables
    r"\bframe-(?:setup|destroy)\b|CFI_INSTRUCTION|"
    r"^\s+(?:RET\w*|ret|retq|push|pop)\b"
)
_VALUE = re.compile(r"%[\w.-]+")
_COPIED = re.compile(r"^\s+(%[\w.-]+):\w+ = COPY ")
_ADDED = "background:rgba(46,160,67,.18)"
_REMOVED = "background:rgba(248,81,73,.18)"
_PRE = "margin:0;font-family:var(--jp-code-font-family, monospace);font-size:12px;line-height:1.35;overflow-x:auto"


@dataclass(frozen=True, slots=True, repr=False)
class PassLine(DisplayableRow):
    """A line of the text after a pass."""

    text: str
    """Text of the line without debug information."""
    uop: int | None
    """Position of its UOp in the kernel's linear program, from 0; None if the line belongs to no single one."""
    nodes: tuple[int, ...] = ()
    """Nodes of the trace to which it belongs."""
    python: tuple[str, ...] = ()
    """Lines of Python from which it derives: "notebook:3"."""

    def as_text(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, repr=False)
class Remark(DisplayableRow):
    """LLVM's remark on an optimization that it did, or did not do."""

    text: str
    """LLVM's text."""
    uop: int | None
    """Position of its UOp in the linear program."""
    subject: str = ""
    """That UOp as text."""

    def as_text(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


@dataclass(frozen=True, slots=True, repr=False)
class LLVMPass(DisplayableResult):
    """One run of one of LLVM's passes, and the text after it."""

    number: int
    """Position in the pipeline."""
    name: str
    """LLVM's name: "InstCombinePass", "Register Coalescer"."""
    argument: str
    """The name that disables it: `passes(without=["instcombine"])`; "" if it cannot be disabled."""
    stage: str
    """Its input: "IR" or "machine IR"; "assembly" for the end."""
    changed: bool
    """Whether it changed the text."""
    seconds: float | None
    """CPU time of a run that prints nothing; None if LLVM does not measure it (code generation)."""
    lines: tuple[PassLine, ...]
    """The text after this pass."""
    before: tuple[PassLine, ...] = field(default=(), compare=False)
    """The text before this pass."""
    begins: bool = False
    """Whether it is the first text of its language, which is shown whole instead of as a diff."""
    remarks: tuple[Remark, ...] = ()
    """Its optimization remarks."""

    @property
    def text(self) -> str:
        """The text after this pass."""
        return "\n".join(line.text for line in self.lines)

    @property
    def change(self) -> str:
        """The numbers of added and removed lines as text; for the first text of a language, its number of lines."""
        if self.begins:
            return count_text(len(self.lines), "line")
        if self.changed and not self.added and not self.removed:
            return "reordered"
        return f"+{self.added} −{self.removed}" if self.changed else "no change"

    @property
    def added(self) -> int:
        """The number of lines that the pass added or rewrote."""
        return sum((Counter(self._list_texts(self.lines)) - Counter(self._list_texts(self.before))).values())

    @property
    def removed(self) -> int:
        """The number of lines that the pass removed or rewrote."""
        return sum((Counter(self._list_texts(self.before)) - Counter(self._list_texts(self.lines))).values())

    def diff(self) -> str:
        """Returns the changes of the pass as a unified diff without a header; the whole text if its language is new."""
        return "\n".join(self._list_changed_lines())

    def _list_changed_lines(self) -> list[str]:
        if self.begins:
            return [f" {text}" for text in self._list_texts(self.lines)]
        before, after = self._list_texts(self.before), self._list_texts(self.lines)
        lines = list(difflib.unified_diff(before, after, lineterm="", n=CONTEXT))[2:]
        return ["…" if line.startswith("@@") else line for line in lines]

    @staticmethod
    def _list_texts(lines: Sequence[PassLine]) -> list[str]:
        return [line.text for line in lines]

    def as_text(self) -> str:
        """Returns the pass in one line."""
        return f"{self.number}: {self.name} ({self.stage}), {self.change}"

    def table(self) -> Table:
        """Returns one row per line of the text after the pass."""
        rows = tuple(
            (str(number), line.text, "" if line.uop is None else str(line.uop), ", ".join(line.python))
            for number, line in enumerate(self.lines, 1)
        )
        return Table(self.as_text(), ("line", "text", "UOp", "Python"), rows, code=frozenset({"text"}))

    def __str__(self) -> str:
        return for_terminal(f"{self.as_text()}\n{self.diff()}" if self.changed else self.as_text())

    def _repr_html_(self) -> str:
        return f"<p><strong>{escape(self.as_text())}</strong></p>{self.diff_html()}"

    def diff_html(self) -> str:
        """Returns the diff as HTML: added lines green, removed ones red, each with its UOp and Python as a tooltip."""
        line_of_text = {line.text: line for line in self.lines}
        rows = []
        for text in self._list_changed_lines():
            style = _ADDED if text.startswith("+") else _REMOVED if text.startswith("-") else ""
            line = line_of_text.get(text[1:])
            origin = [] if line is None or line.uop is None else [f"UOp {line.uop}", *line.python]
            title = f" title='{escape(' · '.join(origin), quote=True)}'" if origin else ""
            rows.append(f"<div style='{style}'{title}>{escape(text) or ' '}</div>")
        return f"<pre style='{_PRE}'>{''.join(rows)}</pre>"


@dataclass(frozen=True, slots=True, repr=False)
class Spill(DisplayableRow):
    """A value without a register: it is stored on the stack and loaded again."""

    slot: int
    """Number of the stack slot."""
    bytes: int
    """Size of the slot in bytes."""
    stores: int
    """Number of instructions that store it."""
    loads: int
    """Number of instructions that load it."""
    uop: int | None
    """Position in the linear program of the UOp with this value."""
    subject: str = ""
    """That UOp as text."""
    python: tuple[str, ...] = ()
    """Lines of Python from which it derives."""
    blocks: tuple[str, ...] = ()
    """Its live range: the blocks that store or load it, in order."""

    @property
    def live_range(self) -> str:
        """The live range of the value as text: "from g1.body to r2.done"."""
        if not self.blocks:
            return ""
        return f"in {self.blocks[0]}" if len(self.blocks) == 1 else f"from {self.blocks[0]} to {self.blocks[-1]}"

    def as_text(self) -> str:
        value = self.subject or "a value of several UOps"
        live = f" {self.live_range}" if self.blocks else ""
        return f"{value}: {self.bytes} bytes on the stack{live}, stored {self.stores}×, loaded {self.loads}×"


@dataclass(frozen=True, slots=True, repr=False)
class PipelineTimes(DisplayableRow):
    """The times of a kernel under a pipeline, and as it was compiled.

    A process of its own took alternate samples of single runs.
    """

    times_us: tuple[float, ...] = ()
    """Samples under the pipeline, in microseconds."""
    median_us: float | None = None
    """Their median, in microseconds."""
    low_us: float | None = None
    """Their lower quartile, in microseconds."""
    high_us: float | None = None
    """Their upper quartile, in microseconds."""
    base_times_us: tuple[float, ...] = ()
    """Samples of the kernel as compiled in the capture, in microseconds."""
    base_median_us: float | None = None
    """Their median, in microseconds."""
    base_low_us: float | None = None
    """Their lower quartile, in microseconds."""
    base_high_us: float | None = None
    """Their upper quartile, in microseconds."""
    verdict: str = "unknown"
    """Comparison of pipeline and kernel: "faster", "slower", "noise", or "unknown" with too few samples."""
    results: str = ""
    """Reference of its results, and their difference from it."""
    reason: str = ""
    """Why there are no times."""

    def as_text(self) -> str:
        if self.reason or self.median_us is None or self.base_median_us is None:
            return f"not timed: {self.reason or 'there are no samples'}"
        times = _format_spread(self.median_us, self.low_us, self.high_us, len(self.times_us))
        base = _format_spread(self.base_median_us, self.base_low_us, self.base_high_us, len(self.base_times_us))
        verdict_texts = {"noise": "no difference beyond noise", "unknown": "too few samples to compare"}
        return f"runs in {times}; as compiled {base}: {verdict_texts.get(self.verdict, self.verdict)}"


def _format_spread(median_us: float, low_us: float | None, high_us: float | None, samples: int) -> str:
    if low_us is None or high_us is None:
        return duration_text(median_us)
    quartiles = f"{duration_text(low_us)} to {duration_text(high_us)}"
    return f"{duration_text(median_us)} ({quartiles}, {count_text(samples, 'sample')})"


def _yield_instructions(lines: Sequence[PassLine]) -> Iterator[PassLine]:
    """Yields the instructions that may belong to a UOp, from the last to the first."""
    read: set[str] = set()
    for line in reversed(lines):
        copied = _COPIED.match(line.text)
        if line.uop is None and copied is not None and copied[1] not in read:
            continue  # no line reads it
        values = _VALUE.findall(line.text)
        read.update(values[1:] if " = " in line.text else values)
        if line.text.startswith(" ") and not _FRAME.search(line.text):
            yield line


class LLVMPasses(DisplayableResult, Sequence[LLVMPass]):
    """LLVM's compilation of one kernel, pass by pass: a sequence of `LLVMPass`.

    The first entry is the rendered IR, the last one the assembly. In a notebook each pass opens to its diff.
    """

    def __init__(
        self,
        kernel: str,
        cpu: str,
        pipeline: str,
        passes: Sequence[LLVMPass],
        remarks: Sequence[Remark] = (),
        spills: Sequence[Spill] = (),
        spilled_by: str = "",
        llvm: str = "",
        times: PipelineTimes | None = None,
    ) -> None:
        self.kernel = kernel
        """Name of the kernel, or of the function."""
        self.cpu = cpu
        """The CPU that code was generated for."""
        self.pipeline = pipeline
        """What LLVM was asked to do, as text."""
        self.remarks = tuple(remarks)
        """LLVM's optimization remarks: applied or missed, and why."""
        self.spills = tuple(spills)
        """The values that the register allocator put on the stack."""
        self.spilled_by = spilled_by
        """The pass that did so; "" where there are no spills."""
        self.llvm = llvm
        """LLVM's version."""
        self.times = times
        """How long the kernel runs as this pipeline compiles it; None where that was not asked."""
        self._passes = tuple(passes)

    def with_times(self, times: PipelineTimes) -> LLVMPasses:
        """Returns the same passes with the run times of the kernel."""
        return LLVMPasses(
            self.kernel,
            self.cpu,
            self.pipeline,
            self._passes,
            self.remarks,
            self.spills,
            self.spilled_by,
            self.llvm,
            times,
        )

    @overload
    def __getitem__(self, key: int | str) -> LLVMPass: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[LLVMPass, ...]: ...
    def __getitem__(self, key: int | str | slice) -> LLVMPass | tuple[LLVMPass, ...]:
        if not isinstance(key, str):
            return self._passes[key]
        matches = self.find(key)
        if not matches:
            names = sorted({llvm_pass.argument or llvm_pass.name for llvm_pass in self.changed})
            raise KeyError(f"no pass {key!r} ran; these changed something: {', '.join(names)}")
        return next((llvm_pass for llvm_pass in matches if llvm_pass.changed), matches[0])

    def __len__(self) -> int:
        return len(self._passes)

    def __iter__(self) -> Iterator[LLVMPass]:
        return iter(self._passes)

    @property
    def changed(self) -> tuple[LLVMPass, ...]:
        """The passes that changed something."""
        return tuple(llvm_pass for llvm_pass in self._passes if llvm_pass.changed)

    @property
    def seconds(self) -> float:
        """The CPU time of all passes that LLVM times."""
        return sum(llvm_pass.seconds or 0.0 for llvm_pass in self._passes)

    @property
    def assembly(self) -> str:
        """The assembly, which is the text after the last pass."""
        return self._passes[-1].text

    def find(self, name: str) -> tuple[LLVMPass, ...]:
        """Returns the runs of a pass by either of its names: "instcombine", "InstCombinePass"."""
        return tuple(llvm_pass for llvm_pass in self._passes if name in (llvm_pass.argument, llvm_pass.name))

    @property
    def linked(self) -> float:
        """The share of instructions that link to a UOp, over all texts.

        Function prologues, returns and unused copies belong to no UOp, and do not count.
        """
        is_linked = [
            line.uop is not None for llvm_pass in self.changed for line in _yield_instructions(llvm_pass.lines)
        ]
        return sum(is_linked) / len(is_linked) if is_linked else 1.0

    def table(self) -> Table:
        """Returns one row per pass that changed something."""
        rows = tuple(
            (
                str(llvm_pass.number),
                llvm_pass.name,
                llvm_pass.argument,
                llvm_pass.stage,
                llvm_pass.change,
                str(len(llvm_pass.lines)),
                "" if llvm_pass.seconds is None else duration_text(llvm_pass.seconds * 1e6),
            )
            for llvm_pass in self.changed
        )
        heads = ("#", "pass", "name of the option", "works on", "lines", "of", "CPU time")
        return Table(self._title(), heads, rows, self._write_notes(), frozenset({"name of the option"}))

    def _title(self) -> str:
        idle = len(self) - len(self.changed)
        return (
            f"{self.kernel} for {self.cpu}, {self.pipeline}: {count_text(len(self.changed), 'pass', 'passes')} changed "
            f"something; {idle} changed nothing and are left out"
        )

    def _write_notes(self) -> tuple[str, ...]:
        times = [] if self.times is None else [f"the kernel {self.times.as_text()}"]
        spills = [f"spilled by {self.spilled_by}: {spill.as_text()}" for spill in self.spills[:SHOWN_REMARKS]]
        shown = times + spills + [f"remark: {remark.as_text()}" for remark in self.remarks[:SHOWN_REMARKS]]
        more = len(self.remarks) - min(len(self.remarks), SHOWN_REMARKS)
        return (*shown, f"{more} more remarks: .remarks") if more else tuple(shown)

    def _repr_html_(self) -> str:
        rows = []
        for llvm_pass in self.changed:
            time = "" if llvm_pass.seconds is None else f" · {duration_text(llvm_pass.seconds * 1e6)}"
            head = f"<b>{escape(llvm_pass.name)}</b> <span>{llvm_pass.change} · {llvm_pass.stage}{time}</span>"
            inside = llvm_pass.diff_html()
            rows.append(f"<details><summary>{llvm_pass.number} · {head}</summary>{inside}</details>")
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._write_notes())
        return f"<p><strong>{escape(self._title())}</strong></p>{''.join(rows)}{notes}"


__all__ = ["LLVMPass", "LLVMPasses", "PassLine", "PipelineTimes", "Remark", "Spill"]
