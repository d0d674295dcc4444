"""The figures of a trace, in counts and microseconds, for the strip, the static picture, the footer and texts.

A stage's time excludes the stages inside it, so the parts add up to `compile_us`. The times of searches and of listings
created on request are reported separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import level_for, tensor_kinds
from tinyexplore.explore.tracefile.model import (
    Figure,
    Figures,
    KernelInfo,
    Node,
    Program,
    Run,
    Stage,
    TraceTables,
)
from tinyexplore.explore.tracefile.texts import LANGUAGE_NAMES, duration_text, spread_text

_IN_TITLE = {"llvm-opt": "LLVM IR"}  # two listings of one language


def figures(trace: TraceTables, kernel: int | None = None) -> Figures:
    """Returns the figures of one kernel, or of all kernels if `kernel` is None.

    A kernel that reuses a program shows the stages of the kernel that compiled it.
    """
    return _FigureTables(trace).figures(kernel)


def all_figures(trace: TraceTables) -> tuple[Figures, ...]:
    """Returns the figures of the whole trace, then those of each kernel in order."""
    tables = _FigureTables(trace)
    return tuple(tables.figures(kernel) for kernel in (None, *range(len(trace.kernels))))


class _FigureTables:
    """The tables of a trace grouped by kernel, built once for all figures."""

    def __init__(self, trace: TraceTables) -> None:
        self.trace = trace
        self.tensor_kinds = tensor_kinds(trace)
        self.runs = {run.kernel: run for run in trace.runs}
        self.parents = {stage.parent for stage in trace.stages}
        self.searched = _find_searches(trace)
        self.own_us = {stage.id: stage.elapsed_us for stage in trace.stages}
        self.stages: dict[int | None, list[Stage]] = {}
        for stage in trace.stages:
            if stage.parent is not None:
                self.own_us[stage.parent] -= stage.elapsed_us
            self.stages.setdefault(stage.kernel, []).append(stage)
        self.programs: dict[int, list[Program]] = {}
        for program in trace.programs:
            self.programs.setdefault(program.kernel, []).append(program)

    def figures(self, kernel: int | None) -> Figures:
        trace = self.trace
        kernels = trace.kernels if kernel is None else (trace.kernels[kernel],)
        if kernel is None:
            stages: Sequence[Stage] = trace.stages
            programs: Sequence[Program] = trace.programs
            lazy = [node for node in trace.nodes if node.kind in self.tensor_kinds]
        else:
            info = trace.kernels[kernel]
            stages, programs = self.stages.get(_find_owner(info), []), self.programs.get(_find_owner(info), [])
            members = (trace.nodes[node] for node in sorted({*info.nodes, *info.roots}))
            lazy = [node for node in members if node.kind in self.tensor_kinds]
        times, search_us = self._sum_times(stages)
        timed = [self.runs[candidate.id] for candidate in kernels if candidate.id in self.runs]
        compile_us = sum(times.values())
        times["run"] = run_us = sum(run.median_us for run in timed)
        passes = [stage for stage in stages if self._is_pass(stage)]
        firings = sum(step.rule is not None for stage in passes for step in stage.steps)
        lines_of = _count_lines_by_language(programs)
        parts: tuple[tuple[str, str, str], ...] = (
            ("python", "Python", _python_text(trace, lazy)),
            ("lazy", "LazyBuffers", _lazy_text(lazy)),
            ("kernels", "Kernels", _describe_kernel(trace, kernel)),
            ("passes", "Passes", _passes_text(passes, firings)),
            ("uops", "UOps", f"{lines_of['uops']:,} linear" if "uops" in lines_of else "not listed"),
            ("code", *_write_code_texts(lines_of)),
            ("run", "Run", _describe_runs(timed, len(kernels))),
        )
        if trace.dialect is not None:
            parts = self._list_foreign_figures(parts, lazy, stages, lines_of)
        return Figures(
            kernel,
            tuple(Figure(part, title, counts, times[part]) for part, title, counts in parts),
            compile_us,
            search_us,
            run_us,
            firings,
            tuple(stage.id for stage in passes),
            max((stage.id for stage in stages if part_of_stage(stage) == "code"), default=None),
            _write_summary(trace, compile_us, search_us, run_us) if kernel is None else (),
        )

    def _list_foreign_figures(
        self,
        parts: Iterable[tuple[str, str, str]],
        tensors: Sequence[Node],
        stages: Sequence[Stage],
        lines_of: dict[str, int],
    ) -> tuple[tuple[str, str, str], ...]:
        """Returns (place, title, text) of each part of a foreign compiler, in that compiler's terms."""
        trace = self.trace
        level = level_for(trace, "tensors")
        firings = sum(step.rule is not None for stage in stages for step in stage.steps)
        passes = f"{count_text(len(stages), 'stage')}" + (f" · {count_text(firings, 'firing')}" if firings else "")
        is_there = {
            "python": bool(trace.sources),
            "lazy": bool(tensors),
            "kernels": bool(trace.kernels),
            "passes": bool(stages),
            "uops": "uops" in lines_of,
            "code": bool(set(lines_of) - {"uops"}),
            "run": bool(trace.runs),
        }
        python = _python_text(trace, trace.nodes)
        counts = {"lazy": count_text(len(tensors), "node"), "passes": passes, "python": python}
        titles = {} if level is None else {"lazy": level.plural}
        return tuple(
            (part, titles.get(part, title), counts.get(part, text)) for part, title, text in parts if is_there[part]
        )

    def _is_pass(self, stage: Stage) -> bool:
        """Whether a stage is a rewrite pass: it receives a graph and contains no other stage."""
        is_leaf = stage.id not in self.parents and stage.id not in self.searched
        return is_leaf and part_of_stage(stage) == "passes" and bool(stage.before or stage.after)

    def _sum_times(self, stages: Iterable[Stage]) -> tuple[dict[str, float], float]:
        """Returns the time of each part in microseconds, and the time of searches with all that they compiled."""
        times = dict.fromkeys(("python", "lazy", "kernels", "passes", "uops", "code", "run"), 0.0)
        search_us = 0.0
        for stage in stages:
            own_us = max(0.0, self.own_us[stage.id])
            part = part_of_stage(stage)
            if stage.id in self.searched:
                search_us += own_us
            elif part is not None:
                times[part] += own_us
        return times, search_us


def _python_text(trace: TraceTables, lazy: Iterable[Node]) -> str:
    """Returns the number of Python lines that built the LazyBuffers, as text."""
    users = {node.user for node in lazy if node.user is not None}
    return count_text(len({(trace.frames[user].source, trace.frames[user].line) for user in users}), "line")


def _lazy_text(lazy: Sequence[Node]) -> str:
    """Returns the number of LazyBuffers and of views among them, as text."""
    views = sum(node.group == "movement" for node in lazy)
    return f"{count_text(len(lazy), 'node')} · {count_text(views, 'view')}"


def _passes_text(passes: Sequence[Stage], firings: int) -> str:
    """Returns the numbers of passes, of passes with changes and of firings, as text."""
    changed = sum(_is_changed(stage) for stage in passes)
    text = count_text(len(passes), "pass", "passes") + (f", {changed:,} with changes" if changed < len(passes) else "")
    return f"{text} · {count_text(firings, 'firing')}"


def _count_lines_by_language(programs: Iterable[Program]) -> dict[str, int]:
    """Returns the number of lines of all listings, by language."""
    lines: dict[str, int] = {}
    for program in programs:
        lines[program.language] = lines.get(program.language, 0) + len(program.lines)
    return lines


def _write_code_texts(lines_of: dict[str, int]) -> tuple[str, str]:
    """Returns the title (the languages) and the text (lines of source, lines of assembly) of the code part."""
    listed = [language for language in lines_of if language != "uops"]
    if not listed:
        return "Code", "not rendered"
    names = dict.fromkeys(_IN_TITLE.get(language, LANGUAGE_NAMES.get(language, language)) for language in listed)
    source = sum(lines_of[language] for language in listed if language != "asm")
    if listed == ["asm"]:
        return " · ".join(names), count_text(lines_of["asm"], "line")
    assembly = f" · {lines_of['asm']:,} assembly" if "asm" in lines_of else ""
    return " · ".join(names), count_text(source, "line") + assembly


def part_of_stage(stage: Stage) -> str | None:
    """Returns the part of the compile time that includes this stage's time; None for listings on request."""
    match stage.name:
        case "list":
            return None
        case "linearize" | "interleave":
            return "uops"
        case "render" | "compile":
            return "code"
        case "optimize" | "optimise":  # older traces spell it "optimise"
            return "kernels"
        case _:
            return "kernels" if stage.kernel is None else "passes"


def _find_searches(trace: TraceTables) -> set[int]:
    """Returns the ids of all stages that searched, and of all stages inside them."""
    kernels: set[int] = set()
    for stage in trace.stages:  # parents come before their children
        if stage.candidates or stage.search is not None or stage.parent in kernels:
            kernels.add(stage.id)
    return kernels


def _is_changed(stage: Stage) -> bool:
    return bool(stage.steps) or stage.before != stage.after


def _find_owner(kernel: KernelInfo) -> int:
    return kernel.id if kernel.same_as is None else kernel.same_as


def _describe_kernel(trace: TraceTables, kernel: int | None) -> str:
    if kernel is not None:
        return f"{kernel} of {len(trace.kernels)}"
    reused = sum(info.same_as is not None for info in trace.kernels)
    return f"{len(trace.kernels):,}" + (f" · {reused:,} reused" if reused else "")


def _describe_runs(timed: list[Run], kernels: int) -> str:
    if not timed:
        return "not timed"
    if kernels > 1:
        return count_text(len(timed), "kernel")
    (run,) = timed
    return " · ".join(part for part in (quartiles_text(run), samples_text(run)) if part)


def summary(trace: TraceTables) -> list[str]:
    """Returns the summary line of all kernels: the times of the strip's parts, summed."""
    return list(figures(trace).summary)


def _write_summary(trace: TraceTables, compile_us: float, search_us: float, run_us: float) -> tuple[str, ...]:
    """Returns the facts for the footer: kernels, and the times of compilation, search and runs."""
    cached = sum(kernel.cached for kernel in trace.kernels)
    count = len(trace.kernels)
    kernels = "both kernels" if count == 2 else f"all {count:,} kernels" if count > 1 else count_text(count, "kernel")
    facts = [
        kernels if count or trace.dialect is None else "",
        f"compiled in {duration_text(compile_us)}" if compile_us > 0 else "",
        f"searched for {duration_text(search_us)}" if search_us > 0 else "",
        f"{cached} from the cache" if cached else "",
        f"run in {duration_text(run_us)}" if run_us > 0 else "",
    ]
    return tuple(fact for fact in facts if fact)


# *** times and counts as text ***


def span_text(run: Run) -> str:
    """Returns the median and the quartiles as text: "12.1 µs (11.9 to 12.4 µs)"."""
    return spread_text(run.median_us, run.low_us, run.high_us)


def samples_text(run: Run) -> str:
    """Returns the number of samples as text: "10 samples", or "1 cold run" if only the launch itself was timed."""
    return count_text(len(run.times_us), "sample") if run.warm else count_text(len(run.times_us), "cold run")


def sum_text(runs: Sequence[Run]) -> str:
    """Names the total time of `runs`: a sum of medians, or of single cold runs."""
    return "the sum of the medians" if all(run.warm for run in runs) else "the sum of single cold runs"


def no_time_text(kernel: KernelInfo) -> str:
    """Returns the text for a kernel without times: "no samples" if `not_run` gives a reason, else "not run"."""
    return "no samples" if kernel.not_run else "not run"


def quartiles_text(run: Run) -> str:
    """Returns the quartiles as short text for a narrow column: "11.9–12.4 µs"; "" for a single sample."""
    if len(run.times_us) < 2:
        return ""
    low, high = duration_text(run.low_us), duration_text(run.high_us)
    number, unit = low.split()
    return f"{number if high.endswith(f' {unit}') else low}–{high}"


def argument_text(trace: TraceTables, kernel: KernelInfo, number: int) -> str:
    """Names the content of a kernel's argument data0, data1, …: "x", "result", "result of kernel 2"; "" if unknown.

    `argumentText` in widgets/src/trace_index.ts is the same function.
    """
    if number >= len(kernel.buffers):
        return ""
    buffer = trace.buffers[kernel.buffers[number]]
    if buffer.name or buffer.maker is None:
        return buffer.name
    return "result" if buffer.maker == kernel.id else f"result of kernel {buffer.maker}"
