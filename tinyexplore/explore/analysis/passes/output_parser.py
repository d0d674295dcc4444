"""Parses LLVM's output: the text after each pass, the passes that ran, remarks, and times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tinyexplore.explore.tracefile.result_display import DisplayableRow

_DUMP = re.compile(r"^(?:# )?\*\*\* IR Dump After (.*?) on (.*?) \*\*\*:?$")
_RUNNING = re.compile(r"^OptDisable: (running|not running) pass (\S+) on (.*)$")
_REMARK = re.compile(r"^remark: [^:\s]*:(\d+):\d+: (.*)$")
_STATISTIC = re.compile(
    r"instruction count changed|^BasicBlock: |instructions in function$|"
    r"^\d+ virtual registers copies [^,]* generated in",
    re.IGNORECASE,
)
_MACHINE = re.compile(r"^(.*) \(([\w-]*)\)$")
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_DEBUG = re.compile(r",? !dbg !(\d+)")
_MACHINE_DEBUG = re.compile(r",? debug-location !\d+")
_MACHINE_LINE = re.compile(r"; [\w.<>]*:(\d+)(?::\d+)?(?: @\[.*\])?$")
_LIVENESS = re.compile(r"\b(?:killed|dead|renamable) (?=[%$])")  # flags that change with each analysis
_METADATA = re.compile(r", !(?!dbg)[\w.]+ !\d+")
_ON = re.compile(
    r"^(?:function \((?P<machine>.*)\)|\((?P<cycle>.*)\)|loop .* in function (?P<loop>.*)|(?P<plain>[^\[\s]*))$"
)
_TIME = re.compile(r"^\s+(?:[\d.]+ \([^)]*\)\s+){0,2}([\d.]+) \([^)]*\)\s+[\d.]+ \([^)]*\)\s+(\S+) #(\d+)$")


@dataclass(frozen=True, slots=True, repr=False)
class PassDump(DisplayableRow):
    """The text of one function after a pass."""

    name: str
    """LLVM's name of the pass: "InstCombinePass", or "Register Coalescer" for a machine pass."""
    argument: str
    """Its name in options: "instcombine", "register-coalescer"; "" if it has none."""
    is_machine: bool
    """Whether it works on machine instructions."""
    lines: tuple[tuple[str, int], ...]
    """Text (without debug information and liveness flags) and source line (0: none) of each line."""


@dataclass(frozen=True, slots=True, repr=False)
class PassRun(DisplayableRow):
    """One run of a pass that may have changed nothing."""

    argument: str
    """Its name in options."""
    on: str
    """The function, loop or module on which it ran."""
    dump: PassDump | None
    """The text after it, None if it changed nothing."""
    remarks: tuple[tuple[int, str], ...] = ()
    """Optimization remarks: (source line, text)."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that it ran on; () for the whole module, or if LLVM does not report them."""
        match = _ON.match(self.on)
        if match is None or self.on == "loop":
            return ()
        names = next(text for text in match.groups() if text is not None)
        return tuple(name for name in names.split(", ") if name)


def read_runs(errors: str, function: str) -> list[PassRun]:
    """Returns the passes that ran, in order, each with the text of `function` after it.

    LLVM names a pass when it begins, and prints the text when it ends and has changed something. Some passes of code
    generation are printed but not named. A remark belongs to the pass that LLVM named last, or to the text after it.
    """
    runs: list[PassRun] = []
    said_since: list[tuple[int, str]] = []  # remarks since the last text
    parts = re.split(r"^(?=(?:# )?\*\*\* IR Dump After |OptDisable: )", errors, flags=re.MULTILINE)
    for part in parts:
        head, *block = part.split("\n")
        if match := _RUNNING.match(head):
            if match[1] != "running":
                continue
            if runs:
                runs[-1] = _add_remarks(runs[-1], said_since)
            said_since = []
            runs.append(PassRun(match[2], match[3], None))
        elif match := _DUMP.match(head):
            dump = _dump(match[1], [line for line in block if not line.startswith("remark: ")], function)
            last = runs[-1] if runs else None
            if last is None or last.dump is not None or dump.argument not in ("", last.argument):
                runs.append(PassRun(dump.argument, match[2], dump, tuple(dict.fromkeys(said_since))))
            else:
                runs[-1] = PassRun(last.argument, last.on, dump, tuple(dict.fromkeys((*last.remarks, *said_since))))
            said_since = []
        said_since += read_remarks(part)
    if runs:
        runs[-1] = _add_remarks(runs[-1], said_since)
    return runs


def _add_remarks(run: PassRun, remarks: Sequence[tuple[int, str]]) -> PassRun:
    return replace(run, remarks=tuple(dict.fromkeys((*run.remarks, *remarks)))) if remarks else run


def _dump(name: str, block: list[str], function: str) -> PassDump:
    machine = _MACHINE.match(name)
    is_machine = any(line.startswith("# Machine code for function") for line in block[:2])
    argument = machine[2] if machine else ""
    lines = _read_machine_lines(block) if is_machine else _read_ir_lines(block, function)
    return PassDump(machine[1] if machine else name, argument, is_machine, tuple(lines))


def _read_ir_lines(block: list[str], function: str) -> Iterator[tuple[str, int]]:
    """Yields the function's lines, each with the source line of its instruction."""
    line_of = {match[1]: int(match[2]) for text in block if (match := _LOCATION.match(text))}
    is_inside = False
    for text in block:
        if text.startswith("define") and (not function or f"@{function}(" in text):
            is_inside = True
        if not is_inside or text.lstrip().startswith(("#dbg", ";")):
            continue
        debug = _DEBUG.search(text)
        clean = _METADATA.sub("", _DEBUG.sub("", text))
        clean = re.sub(r"\s*; preds = .*$", "", re.sub(r" #\d+", "", clean)).rstrip()
        if clean:
            yield clean, line_of.get(debug[1], 0) if debug else 0
        if text.startswith("}"):
            is_inside = not function
            if function:
                return


def function_lines(module: str, function: str) -> Iterator[tuple[str, int]]:
    """Yields the lines of one function of a module, like those of a dump."""
    yield from _read_ir_lines(module.splitlines(), function)


def _read_machine_lines(block: list[str]) -> Iterator[tuple[str, int]]:
    for text in block:
        if not text.strip() or text.startswith(("#", "; ")) or text.startswith(("  successors:", "  liveins:")):
            continue
        line = _MACHINE_LINE.search(text)
        clean = _LIVENESS.sub("", _MACHINE_LINE.sub("", _MACHINE_DEBUG.sub("", text))).rstrip()
        yield clean, int(line[1]) if line else 0


def read_remarks(errors: str) -> list[tuple[int, str]]:
    """Returns (line, text) of each optimization remark, once, except for counts of instructions and copies."""
    remarks = [(int(match[1]), match[2]) for line in errors.splitlines() if (match := _REMARK.match(line))]
    return [remark for remark in dict.fromkeys(remarks) if remark[1].strip() and not _STATISTIC.search(remark[1])]


def read_times(report: str) -> dict[tuple[str, int], float]:
    """Returns the CPU seconds of each run of a pass, by the name of the pass and the number of the run (from 1)."""
    times: dict[tuple[str, int], float] = {}
    for line in report.splitlines():
        if match := _TIME.match(line):
            times.setdefault((match[2], int(match[3])), float(match[1]))
    return times


__all__ = ["PassDump", "PassRun", "function_lines", "read_remarks", "read_runs", "read_times"]
