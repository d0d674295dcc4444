"""Quiz questions about a trace, which has the answer and the position that shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.tracefile.trace import Trace

_MAX_CHOICES = 4


@dataclass(frozen=True, slots=True, repr=False)
class Stop(DisplayableRow):
    """A stop of a tour: a position in a trace with a note, or a question.

    text: the note, or the question.
    link: the position, "" for the current one.
    choices: the answers to choose from; empty for a note.
    answer: the index of the right answer, None for a note.
    reveal: the explanation from the trace.
    after: a link to the position that shows it.
    """

    text: str
    link: str = ""
    choices: tuple[str, ...] = ()
    answer: int | None = None
    reveal: str = ""
    after: str = ""

    def grade(self, guess: int | str) -> bool:
        """Returns whether a choice, given by its index or its text, is right."""
        if not self.choices:
            raise ValueError("this stop is a note and has no question; only a stop with a question can be graded")
        if isinstance(guess, str):
            if guess not in self.choices:
                raise ValueError(f"{guess!r} is not one of the choices: {', '.join(self.choices)}")
            guess = self.choices.index(guess)
        return guess == self.answer

    def as_data(self) -> dict[str, Any]:
        """Returns the stop as data for the front end."""
        data = {**asdict(self), "choices": [well_formed(choice) for choice in self.choices]}
        return {name: well_formed(value) if isinstance(value, str) else value for name, value in data.items()}


def how_many_kernels(trace: Trace) -> Stop:
    """Asks how many kernels (compiled loop nests) a program has."""
    count = len(trace.kernels)
    computing = [node for node in trace.nodes if node.kind == "lazybuffer" and node.group in ("alu", "reduce")]
    wrong = [number for number in (len(computing), count + 1, count - 1, count + 2, 1) if number > 0]
    numbers = sorted({count, *list(dict.fromkeys(number for number in wrong if number != count))[: _MAX_CHOICES - 1]})
    operations = "one operation that computes" if len(computing) == 1 else f"{len(computing)} operations that compute"
    reveal = f"It is {count}, for {operations}{_write_shares(trace)}."
    choices = tuple(str(number) for number in numbers)
    text = "How many kernels (compiled loop nests) does this need?"
    return Stop(text, "#story=python", choices, numbers.index(count), reveal, "#story=kernels")


def _write_shares(trace: Trace) -> str:
    """Returns which calls each of a few kernels computes: ": matmul in kernel 0, add and softmax in kernel 1".

    Each call is listed only at its first kernel.
    """
    if not 1 < len(trace.kernels) <= _MAX_CHOICES:
        return ""
    share_texts: set[str] = set()
    shares = []
    for kernel in trace.kernels:
        if fresh := [call.strip("_") for call in kernel.calls if call not in share_texts]:
            share_texts.update(kernel.calls)
            shares.append(f"{', '.join(fresh)} in kernel {kernel.id}")
    return f": {'; '.join(shares)}" if shares else ""


def which_rule_next(trace: Trace, stage: int, step: int = 0) -> Stop:
    """Asks which rule fires next, after `step` steps of a stage."""
    steps = trace.stages[stage].steps
    next_step = next((k for k in range(step, len(steps)) if steps[k].rule is not None), None)
    if next_step is None:
        name = trace.stages[stage].name
        raise ValueError(f"no rule fires in stage {stage} ({name}) after step {step}; it has {len(steps)} steps")
    rule = trace.rules[steps[next_step].rule or 0]
    fired = Counter(
        fired_step.rule for other in trace.stages for fired_step in other.steps if fired_step.rule is not None
    )
    others = [trace.rules[other].name for other, _ in fired.most_common() if trace.rules[other].name != rule.name]
    names = sorted({rule.name, *list(dict.fromkeys(others))[: _MAX_CHOICES - 1]})
    node = trace.nodes[steps[next_step].before]
    text = f"In “{trace.stages[stage].name}”, which rule fires next, on {f'{node.label} {node.detail}'.strip()}?"
    reveal = f"It is {rule.name}: {rule.law}." if rule.law else f"It is {rule.name}."
    link, after = (
        f"#stage={stage}&step={k}&graph=uops&place=passes&panel=rewrites" for k in (next_step, next_step + 1)
    )
    return Stop(text, link, tuple(names), names.index(rule.name), reveal, after)


def which_is_slowest(trace: Trace) -> Stop:
    """Asks which kernel of the trace is slowest."""
    runs = sorted(trace.runs, key=lambda run: -run.median_us)
    if len(runs) < 2:
        raise ValueError(f"which kernel is slowest: {len(runs)} of this trace ran; two or more are needed")
    kernels = sorted(run.kernel for run in runs[:_MAX_CHOICES])
    slowest = runs[0]
    choices = tuple(f"kernel {kernel}: {trace.kernels[kernel].name}" for kernel in kernels)
    times = "; ".join(f"kernel {run.kernel} {duration_text(run.median_us)}" for run in runs[:_MAX_CHOICES])
    text = "Which kernel takes longest?"
    return Stop(text, "#story=kernels", choices, kernels.index(slowest.kernel), f"{times}.", "#story=time")


def which_is_faster(trace: Trace, other: Trace) -> Stop:
    """Asks which of two captures runs faster; neither is right if their spreads overlap."""
    times = [capture.runs for capture in (trace, other)]
    if not all(times):
        raise ValueError("which is faster: a trace without timed kernels was given")
    totals = [sum(run.median_us for run in runs) for runs in times]
    lows = [sum(run.low_us for run in runs) for runs in times]
    highs = [sum(run.high_us for run in runs) for runs in times]
    overlap = max(lows) <= min(highs)
    names = [capture.title or f"capture {k}" for k, capture in enumerate((trace, other))]
    if names[0] == names[1]:
        names = [f"the first ({names[0]})", f"the second ({names[1]})"]
    choices = (*names, "no difference above the noise")
    answer = 2 if overlap else totals.index(min(totals))
    times_text = "; ".join(f"{name} {duration_text(total)}" for name, total in zip(names, totals, strict=True))
    verdict = " The spreads overlap." if overlap else f" That is {max(totals) / min(totals):.1f} times as fast."
    return Stop("Which is faster?", "#story=loops", choices, answer, f"{times_text}.{verdict}", "#story=time")


QUESTIONS = {
    "kernels": how_many_kernels,
    "next rule": which_rule_next,
    "slowest": which_is_slowest,
    "faster": which_is_faster,
}


def question(trace: Trace, about: str, *args: Any, **options: Any) -> Stop:
    """Returns a question: "kernels" (how many?), "next rule" (stage=, step=), "slowest", "faster" (and a trace)."""
    if about not in QUESTIONS:
        raise ValueError(f"no question about {about!r}; supported: {', '.join(QUESTIONS)}")
    ask: Any = QUESTIONS[about]
    stop: Stop = ask(trace, *args, **options)
    return stop


__all__ = ["QUESTIONS", "Stop", "question"]
