"""The verdict on a kernel or a program: one sentence, the numbers behind it, and suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from tinyexplore.explore.analysis.machine.roofs import MIN_EXCESS
from tinyexplore.explore.analysis.verdict.facts import WAKE_UP_US, KernelFacts
from tinyexplore.explore.analysis.verdict.rules import MODEL_ERROR_RATIO, RULES, judge, share_of_time
from tinyexplore.explore.analysis.verdict.suggestions import Suggestion, suggestions_for
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import OutsideOperation
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table, join_lines
from tinyexplore.explore.tracefile.texts import duration_text, figures_text

SLOWER = 1.3  # time of a stream now / at the ceiling, from which on the text says that the memory is slower
FAST, SLOW = 0.65, 0.3  # shares of the limit: fast from the first on, slow below the second
TONES = {"fast": "#067647", "middle": "#a15c00", "slow": "#b42318", "none": "inherit"}


@dataclass(frozen=True, slots=True, repr=False)
class Evidence(DisplayableRow):
    """One number of a verdict."""

    name: str
    """Name of the number."""
    value: str
    """The number with its unit, and its reference."""
    panel: str
    """The panel that shows it, such as "timing", "roofline" or "caches"; "" for none."""


@dataclass(frozen=True, repr=False)
class SpeedVerdict(DisplayableResult):
    """The verdict on a kernel or a program. A notebook displays it as a card."""

    kind: str
    """One of `VERDICT_KINDS`: "bandwidth", "compute", "latency", …"""
    level: str
    """The limiting memory level: "L1", "L2", "L3", "memory"; "" for other kinds."""
    share_of_limit: float | None
    """The least time on this machine / the median, 0 to 1; None without a time or a ceiling."""
    text: str
    """The verdict as a sentence."""
    evidence: tuple[Evidence, ...]
    """The numbers behind it."""
    suggestions: tuple[Suggestion, ...]
    """Suggestions, with their measured gains if they were tried."""
    kernel: int | None = None
    """Number of the kernel; for a program, that of the decisive kernel."""
    name: str = ""
    """The kernel's name, or the program's title."""
    likely: str = ""
    """For "noise" the kind by the fastest sample, else the kind."""
    reason: str = ""
    """The rule that decided: its threshold, and the reason for it."""
    missing: tuple[str, ...] = ()
    """Facts that could not be measured or modeled, with the reasons."""
    facts: KernelFacts | None = None
    """All facts, for one kernel that ran."""
    parts: tuple[SpeedVerdict, ...] = ()
    """For a program: the verdicts on its kernels, the slowest first."""

    @property
    def tone(self) -> str:
        """ "fast", "middle", "slow", or "none" if speed does not matter or is unknown."""
        if self.kind in ("launch overhead", "noise", "unexplained") or self.share_of_limit is None:
            return "none"
        return "fast" if self.share_of_limit >= FAST else "middle" if self.share_of_limit >= SLOW else "slow"

    def table(self) -> Table:
        """Returns the sentence, and a row for each number and each suggestion."""
        rows = [(item.name, item.value, item.panel) for item in self.evidence]
        rows += [("try", trial.text, trial.result) for trial in self.suggestions]
        for part in self.parts:
            rows.append((f"kernel {part.kernel} · {part.name}", part.text, ""))
        return Table(self.text, ("", "", ""), tuple(rows), self._list_notes())

    def _list_notes(self) -> tuple[str, ...]:
        missing = f"Not known: {'; '.join(self.missing)}." if self.missing else ""
        rule = f"Rule: {self.reason}" if self.reason else ""
        return tuple(note for note in (rule, missing) if note)

    def _repr_html_(self) -> str:
        color = TONES[self.tone]
        head, _, details = self.text.partition(". ")
        chips = "".join(
            f"<span title='{escape(item.panel)}' style='display:inline-block;border:1px solid currentColor;opacity:.85;"
            f"border-radius:4px;padding:1px 7px;margin:2px 4px 2px 0;font-size:.9em'>{escape(item.name)} "
            f"<b>{escape(item.value)}</b></span>"
            for item in self.evidence
        )
        tries = "".join(
            f"<p style='margin:4px 0'><b>Try</b> {escape(trial.text)}"
            f"{f' <b>{escape(trial.result)}</b>' if trial.result else ''}</p>"
            for trial in self.suggestions
        )
        parts = "".join(
            f"<tr><td style='text-align:left;vertical-align:top'>{part.kernel} · {escape(part.name)}</td>"
            f"<td style='text-align:left;color:{TONES[part.tone]}'>{escape(part.text)}</td></tr>"
            for part in self.parts
        )
        table = f"<table>{parts}</table>" if parts else ""
        notes = (
            f"<p style='font-size:.85em;opacity:.75'>{escape(join_lines(self._list_notes()))}</p>"
            if self._list_notes()
            else ""
        )
        return (
            f"<div style='border-left:4px solid {color};padding:2px 0 2px 12px'>"
            f"<p style='margin:2px 0 6px'><b style='color:{color}'>{escape(head)}.</b> {escape(details)}</p>"
            f"{chips}{tries}{table}{notes}</div>"
        )


def judge_kernel(facts: KernelFacts, suggestions: Sequence[Suggestion] = ()) -> SpeedVerdict:
    """Returns the verdict by the rules. Its figures are those of the median; the fastest of disturbed samples decides
    the kind.

    Raises:
        ValueError: the facts have no samples.
    """
    kind, likely, rule = judge(facts)
    shown = facts.at_median()
    share = min(1.0, round(share_of_time(shown, shown.limit_for(likely)), 3)) or None
    text = _write_sentence(facts, shown, kind, likely)
    return SpeedVerdict(
        kind=kind,
        level=facts.level if kind == "bandwidth" else "",
        share_of_limit=share,
        text=text,
        evidence=tuple(_list_evidence(facts, shown)),
        suggestions=tuple(suggestions) or tuple(suggestions_for(likely, shown)),
        kernel=facts.kernel,
        name=facts.name,
        likely=likely,
        reason=f"{rule.threshold} {rule.reason}" if rule is not None else "No rule explains the time.",
        missing=(*facts.missing, *_limit_notes(shown)),
        facts=facts,
    )


def _limit_notes(facts: KernelFacts) -> tuple[str, ...]:
    """Returns the note on a limit that the kernel exceeds."""
    if facts.share <= MIN_EXCESS:
        return ()
    times = f"{duration_text(facts.limit_us)} by the ceilings, {duration_text(facts.time_us)} measured"
    return (f"the limit ({times}): a ceiling was measured under load; call ceilings(again=True)",)


# *** the sentence ***


def _write_sentence(facts: KernelFacts, shown: KernelFacts, kind: str, likely: str) -> str:
    """Returns the sentence. `shown` has the facts at the median, for all figures."""
    text = _KERNEL_TEXTS[likely](shown) + _opts_text(shown, likely) + _model_text(shown, likely)
    if kind != "noise":
        return text
    why = f"each thread waited for a core for {_waited_text(facts)} of the time"
    guess = "" if likely == "unexplained" else f", probably {likely}"
    if facts.is_spread:
        why = f"the fastest sample took {duration_text(facts.best_us)}, the median {duration_text(facts.time_us)}"
    if likely == "unexplained":
        return f"Noise{guess}: {why}. Even the fastest sample is disturbed, so the kernel has no verdict. Run it again."
    return f"Noise{guess}: {why}. {text} The fastest sample decides the bottleneck. All other figures are medians."


def _opts_text(facts: KernelFacts, likely: str) -> str:
    """Returns the sentence about a slow kernel without opts."""
    if facts.opts is None or facts.opts or facts.share >= 0.5 or likely in ("launch overhead", "random access"):
        return ""
    return f" The kernel has no opts: it runs {'' if facts.vector else 'one element at a time '}on one thread."


def _waited_text(facts: KernelFacts) -> str:
    return f"{100 * (facts.waited or 0.0) / max(facts.threads, 1):.0f} %"


def _slow_text(facts: KernelFacts) -> str:
    """Returns the distance from the limit: "76 % of its limit", or "Slow: 4.2 times the least possible time"."""
    if not facts.share:
        return "No ceiling is known"
    if facts.share >= 0.5:
        return _limit_share_text(facts).capitalize()
    times = 1 / facts.share
    return f"Slow: {f'{times:,.0f}' if times >= 10 else f'{times:.2g}'} times the least possible time"


def _limit_share_text(facts: KernelFacts) -> str:
    """Returns the share of the limit as text: "76 % of its limit", or "faster than its measured limit"."""
    if facts.share > MIN_EXCESS:
        return "faster than its measured limit"
    return f"{_format_percent(min(1.0, facts.share))} of its limit"


def _format_percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{min(100 * share, 100):.0f} %"


def _format_rate(amount: float, time_us: float) -> str:
    return figures_text(amount / time_us / 1e3) if time_us else "?"


def _format_bytes(nbytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= size:
            return f"{figures_text(nbytes / size)} {unit}"
    return f"{nbytes:.0f} bytes"


def _bandwidth_text(facts: KernelFacts) -> str:
    time_us = facts.judged_us
    used, highest = _format_rate(facts.bytes_moved, time_us), _format_rate(facts.bytes_moved, facts.least_us[0])
    name = "Memory" if facts.level == "memory" else facts.level
    moved = f"{_format_bytes(facts.bytes_moved)} at {used} GB/s of {highest}"
    fetched = (
        f" Stores also fetch {_format_bytes(facts.bytes_written)} of cache lines before they write."
        if facts.fetch_us
        else ""
    )
    if facts.stream_us >= SLOWER * max(facts.least_us):
        stream, best = duration_text(facts.stream_us), duration_text(facts.memory_us)
        fetched += f" A stream of the same size takes {stream} now, {best} at best. Other programs use the memory now."
    elif facts.share < 0.5 and facts.has_model:
        fetched += f" Instructions explain {_format_percent(min(1.0, facts.code_share))} of the time."
    return f"{name} bandwidth, {_limit_share_text(facts)}. The kernel moves {moved}.{fetched}"


def _compute_text(facts: KernelFacts) -> str:
    time_us = facts.judged_us
    used, highest = _format_rate(facts.operations, time_us), _format_rate(facts.operations, facts.least_us[1])
    executed = f"The kernel executes {used} of {highest} billion operations per second ({facts.arithmetic})"
    parts = [executed] if facts.least_us[1] else []
    limit = f"Compute, {_limit_share_text(facts)}"
    if facts.share < 0.65 and facts.has_model:
        ports = f", most of it on {facts.ports}" if facts.ports and facts.code_share <= MODEL_ERROR_RATIO else ""
        parts.append(f"Instructions explain {_format_percent(min(1.0, facts.code_share))} of the time{ports}")
        if facts.code_share <= MODEL_ERROR_RATIO and facts.cycles >= 1.5 * facts.busiest:
            waits = f"{facts.cycles:.3g} cycles per iteration, {facts.busiest:.3g} without the chains"
            parts.append(f"Dependence chains limit the loop: {waits}")
    return f"{limit}. {'. '.join(parts)}."


def _latency_text(facts: KernelFacts) -> str:
    return (
        f"{_slow_text(facts)}. Latency: each iteration waits for the result of the previous one (a dependence chain). "
        f"An iteration takes {facts.cycles:.2g} cycles, {facts.busiest:.2g} without the chain."
    )


def _random_text(facts: KernelFacts) -> str:
    access_text = "stores to" if facts.scatters else "loads from"
    rate = facts.gathers / facts.judged_us / 1e3
    peak_text = f" (this machine reaches {facts.gathers / facts.gather_us / 1e3:.2g})" if facts.gather_us else ""
    return (
        f"Random access. The kernel does {facts.gathers:,} {access_text} data-dependent addresses in "
        f"{facts.gather_of}, {rate:.2g} billion per second{peak_text}."
    )


def _strided_text(facts: KernelFacts) -> str:
    if facts.line_use < 0.5:
        line_use = _format_percent(facts.line_use)
        return f"{_slow_text(facts)}. Strided access: the kernel uses {line_use} of each cache line of {facts.worst}."
    if facts.worst_pitch and (facts.worst_run < 4096 or not facts.conflict):
        runs_text = f"{facts.worst_run:,} bytes, {facts.worst_pitch:,} bytes apart"
        refetch_text = (
            f" The kernel fetches {facts.worst} {facts.worst_times:.2g} times from L3 or memory."
            if facts.worst_times >= 1.8
            else ""
        )
        access_text = f"the kernel accesses {facts.worst} in runs of {runs_text}"
        return f"{_slow_text(facts)}. Strided access: {access_text}.{refetch_text}"
    lines = f"cache lines of {facts.conflict}, {facts.conflict_pitch:,} bytes apart"
    return f"{_slow_text(facts)}. Strided access: {lines}, map to the same cache sets."


def _rereads_text(facts: KernelFacts) -> str:
    return (
        f"{_slow_text(facts)}. Re-reads: the kernel fetches its bytes {facts.l2_traffic:.2g} times from L3 or memory. "
        f"It fetches {facts.worst} {facts.worst_times:.2g} times."
    )


def _redundant_text(facts: KernelFacts) -> str:
    times_text = f"{facts.redundant:,.0f} times the accumulations that its result needs"
    return f"{_slow_text(facts)}. Redundant work: the kernel does {times_text}."


def _unaligned_text(facts: KernelFacts) -> str:
    part = _format_percent(min(1.0, share_of_time(facts, facts.crossing_us)))
    crossing_text = f"loads of {facts.crossing} cross cache lines and explain {part} of the time"
    return f"{_slow_text(facts)}. Unaligned loads: {crossing_text}."


def _scalar_text(facts: KernelFacts) -> str:
    return f"{_slow_text(facts)}. Not vectorized: the busiest loop has no vector instruction."


def _spills_text(facts: KernelFacts) -> str:
    return (
        f"{_slow_text(facts)}. Spills: {facts.stack} of {facts.instructions} instructions of the busiest loop "
        "access the stack."
    )


def _one_thread_text(facts: KernelFacts) -> str:
    share_text = _format_percent(min(1.0, share_of_time(facts, facts.own_limit_us)))
    return f"{_slow_text(facts)}. One thread of {facts.all_threads} works and reaches {share_text} of its limit."


def _launch_text(facts: KernelFacts) -> str:
    time, launch = duration_text(facts.judged_us), duration_text(facts.launch_us)
    if facts.launch_us >= 0.5 * facts.judged_us:
        return f"Launch overhead. The kernel takes {time}, of which the launch takes {launch}."
    work = duration_text(max(facts.least_us))
    return f"Launch overhead. The kernel takes {time}, its work {work}, and an empty kernel {launch}."


def _unexplained_text(facts: KernelFacts) -> str:
    """Returns the sentence if no rule explains the time: the share that each part alone explains."""
    parts = [
        ("reading and writing all bytes once", share_of_time(facts, facts.memory_us)),
        ("arithmetic", share_of_time(facts, facts.compute_us)),
    ]
    parts += [("the access pattern", share_of_time(facts, facts.pattern_us))]
    if facts.has_model:
        parts.append(("instructions", facts.code_share))
    if not facts.share:
        share_text = (
            f" Instructions explain {_format_percent(facts.code_share)} of the time." if facts.has_model else ""
        )
        return f"Unexplained: no ceilings of this target were measured.{share_text}"
    shares = ", ".join(f"{name} {_format_percent(share)}" for name, share in parts)
    return f"{_slow_text(facts)}. Unexplained. Share of the time that each part alone explains: {shares}."


_KERNEL_TEXTS = {
    "bandwidth": _bandwidth_text,
    "compute": _compute_text,
    "latency": _latency_text,
    "random access": _random_text,
    "strided access": _strided_text,
    "re-reads": _rereads_text,
    "redundant work": _redundant_text,
    "unaligned loads": _unaligned_text,
    "not vectorized": _scalar_text,
    "one thread": _one_thread_text,
    "launch overhead": _launch_text,
    "spills": _spills_text,
    "unexplained": _unexplained_text,
}


def _model_text(facts: KernelFacts, likely: str) -> str:
    """Returns the remark for a kernel on which the model is wrong."""
    if not facts.has_model or facts.code_share <= MODEL_ERROR_RATIO or likely in ("launch overhead", "redundant work"):
        return ""
    return f" The model predicts {facts.cycles:.3g} cycles per iteration, the measurement {facts.measured_cycles:.3g}."


# *** evidence ***


def _list_evidence(measured: KernelFacts, facts: KernelFacts) -> list[Evidence]:
    """Returns the figures. `facts` are those at the median, `measured` the original ones."""
    quartiles = f"{duration_text(facts.low_us)} to {duration_text(facts.high_us)}, n = {facts.samples}"
    evidence = [Evidence("median", f"{duration_text(facts.time_us)} ({quartiles})", "timing")]
    if measured.is_disturbed:
        evidence.append(Evidence("fastest sample", duration_text(measured.best_us), "timing"))
    if facts.launch_us:
        evidence.append(Evidence("launch", duration_text(facts.launch_us), "timing"))
    if facts.least_us[0]:
        reached = _format_rate(facts.bytes_moved, facts.judged_us)
        rate = f"{reached} of {_format_rate(facts.bytes_moved, facts.least_us[0])} GB/s"
        text = f"{_format_bytes(facts.bytes_moved)}, {rate}, {facts.level}{_thread_limit_text(facts)}"
        evidence.append(Evidence("bytes", text, "roofline"))
    if facts.least_us[1] and facts.operations:
        used, highest = (
            _format_rate(facts.operations, facts.judged_us),
            _format_rate(facts.operations, facts.least_us[1]),
        )
        rate = f"{used} of {highest} G op/s executed, {facts.arithmetic}{_thread_limit_text(facts)}"
        evidence.append(Evidence("arithmetic", rate, "roofline"))
    evidence.append(Evidence("threads", f"{facts.threads} of {facts.all_threads}", "timing"))
    if facts.single_us:
        evidence.append(Evidence("median on one thread", duration_text(facts.single_us), "timing"))
    if facts.l2_traffic >= 1.3:
        evidence.append(
            Evidence(
                "bytes fetched from L3 or memory", f"{figures_text(facts.l2_traffic)}× the kernel's bytes", "caches"
            )
        )
    if facts.worst_pitch >= 4096:
        evidence.append(
            Evidence("runs", f"{facts.worst_run:,} bytes, {facts.worst_pitch:,} apart ({facts.worst})", "caches")
        )
    if facts.gathers:
        evidence.append(Evidence("random accesses", f"{facts.gathers:,} of {facts.gather_bytes} bytes", "caches"))
    if facts.redundant >= 1.3:
        evidence.append(Evidence("accumulations", f"{figures_text(facts.redundant)}× those needed", "code"))
    if facts.has_code:
        evidence.append(Evidence("vector instructions", f"{facts.vector} of {facts.instructions}", "code"))
        if facts.stack:
            evidence.append(Evidence("stack accesses", f"{facts.stack} of {facts.instructions}", "code"))
    if facts.has_model:
        evidence.append(Evidence("cycles per iteration", _format_cycles(facts), "throughput"))
    if measured.waited is not None:
        evidence.append(Evidence("waited for a core", f"{_waited_text(measured)} of the time per thread", "timing"))
    return evidence


def _thread_limit_text(facts: KernelFacts) -> str:
    """Returns the text about the number of threads in a short kernel's limit; "" if it uses all threads."""
    if facts.judged_us > WAKE_UP_US or facts.threads == facts.all_threads:
        return ""
    return f" (limit of {count_text(facts.threads, 'thread')})"


def _format_cycles(facts: KernelFacts) -> str:
    model = f"{facts.cycles:.3g} by the model, {facts.busiest:.3g} without dependence chains"
    return f"{facts.measured_cycles:.3g} measured, {model}"


# *** programs ***


def program_verdict(
    title: str,
    parts: Sequence[SpeedVerdict],
    counts: Sequence[int],
    unknown: int = 0,
    outside: Sequence[OutsideOperation] = (),
) -> SpeedVerdict:
    """Returns the verdict on a program, by its slowest kernel.

    If operations of another library took at least as long as all kernels, the verdict is "unexplained", because their
    time has no model here.

    Args:
        title: the title of the capture.
        parts: the verdicts of the kernels.
        counts: the number of launches of each kernel.
        unknown: the number of kernels without a verdict.
        outside: operations that another library computed.

    Raises:
        ValueError: no kernel has a verdict.
    """
    if not parts:
        raise ValueError("no kernel of this program has a verdict: none ran here and was timed")
    verdict = _judge_kernels(title, parts, counts, unknown)
    if not outside:
        return verdict
    kernels_us, outside_us = sum(_compute_times(parts, counts)), sum(operation.time_us for operation in outside)
    is_longer = outside_us >= kernels_us
    return replace(
        verdict,
        kind="unexplained" if is_longer else verdict.kind,
        level="" if is_longer else verdict.level,
        share_of_limit=None,
        text=_add_outside_operations(verdict.text, outside, kernels_us),
        evidence=(*verdict.evidence, Evidence("outside of the kernels", duration_text(outside_us), "")),
        reason="",
        facts=None,
    )


def _compute_times(parts: Sequence[SpeedVerdict], counts: Sequence[int]) -> list[float]:
    """Returns the time of all launches of each kernel, in microseconds."""
    return [
        (verdict.facts.time_us if verdict.facts is not None else 0.0) * count for verdict, count in zip(parts, counts)
    ]


def _judge_kernels(title: str, parts: Sequence[SpeedVerdict], counts: Sequence[int], unknown: int) -> SpeedVerdict:
    """Returns the verdict on a program without the operations of other libraries."""
    times = _compute_times(parts, counts)
    total = sum(times)
    order = sorted(range(len(parts)), key=lambda number: -times[number])
    first = parts[order[0]]
    limits = sum(
        min(time, verdict.share_of_limit * time) if verdict.share_of_limit else 0.0
        for verdict, time in zip(parts, times)
    )
    launches = sum((verdict.facts.launch_us if verdict.facts else 0.0) * count for verdict, count in zip(parts, counts))
    share = round(limits / total, 3) if total and all(verdict.share_of_limit for verdict in parts) else None
    kind, level, text = first.kind, first.level, first.text
    if len(parts) > 1:
        part = _format_percent(times[order[0]] / total) if total else "?"
        text = f"{first.text} This is kernel {first.kernel}, which takes {part} of {duration_text(total)}."
    if total and launches >= 0.5 * total and first.kind != "noise":
        kind, level = "launch overhead", ""
        cost = (
            f"{count_text(sum(counts), 'launch', 'launches')} cost {duration_text(launches)} of {duration_text(total)}"
        )
        text = f"Launch overhead. {cost}."
    evidence = [
        Evidence("kernels", str(len(parts) + unknown), "kernels"),
        Evidence("sum of the medians", duration_text(total), "timing"),
    ]
    if len(parts) == 1:
        evidence = list(first.evidence)
    missing = [f"verdicts of {count_text(unknown, 'kernel')} without samples"] if unknown else []
    return SpeedVerdict(
        kind=kind,
        level=level,
        share_of_limit=share,
        text=text,
        evidence=tuple(evidence),
        suggestions=first.suggestions,
        kernel=first.kernel,
        name=title,
        likely=first.likely,
        reason=first.reason if len(parts) == 1 else "",
        missing=tuple(dict.fromkeys((*(fact for verdict in parts for fact in verdict.missing), *missing))),
        facts=first.facts if len(parts) == 1 else None,
        parts=tuple(parts[number] for number in order) if len(parts) > 1 else (),
    )


def _add_outside_operations(text: str, outside: Sequence[OutsideOperation], kernels_us: float) -> str:
    """Returns the verdict on the kernels with the time of other operations; the longer of both comes first."""
    total = sum(operation.time_us for operation in outside)
    longest = max(outside, key=lambda operation: operation.time_us)
    same = [operation for operation in outside if operation.name == longest.name]
    names = longest.name if len(same) == len(outside) else f"mostly {longest.name}"
    calls = f"{count_text(len(outside), 'operation')} outside of the kernels ({names}) took {duration_text(total)}"
    if total < kernels_us:
        return f"{text} {calls}, measured once."
    return f"{calls}, measured once. The kernels take {duration_text(kernels_us)}: {text}"


__all__ = ["RULES", "Evidence", "Suggestion", "SpeedVerdict", "program_verdict", "judge_kernel"]
