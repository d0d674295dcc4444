"""Why these opts: each decision of the hand-coded choice with what it compared, and what would be without it."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.explore.model import Choice, OptStep, Stage, Trace, Weighed
from tinyexplore.explore.why.fusions import compared_text
from tinyexplore.explore.why.remade import Remade
from tinyexplore.explore.why.rules import settings_of
from tinyexplore.kernel import Kernel
from tinyexplore.kernel.decisions import hand_coded
from tinyexplore.trace import Recorder, recording
from tinyexplore.util import Context

OPTIMISE = "optimise"


@dataclass(frozen=True, slots=True)
class Chosen:
    """One decision: `choice` as it was recorded, the opts that it proposed, and `instead`: the kernel's opts had it not
    been asked, None where that is not known here or nothing came of it."""

    choice: Choice
    opts: tuple[OptStep, ...]
    instead: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class WhyOpts:
    """The opts of a kernel, and the decisions that came to them, in the order in which they were asked."""

    kernel: int
    name: str
    opts: tuple[str, ...]
    chosen: tuple[Chosen, ...]

    def __str__(self) -> str:
        lines = [f"kernel {self.kernel} ({self.name}): {', '.join(self.opts) or 'no opts'}"]
        for one in self.chosen:
            lines += _lines(one)
        return "\n".join(lines)

    def __getitem__(self, decision: str) -> Chosen:
        """The decision of that name."""
        for one in self.chosen:
            if one.choice.name == decision:
                return one
        raise KeyError(f"no decision {decision!r}; there are: {', '.join(one.choice.name for one in self.chosen)}")


def next_best(weighed: Weighed) -> tuple[str, float] | None:
    """The best of the options that were not chosen."""
    others = [option for option in weighed.options if option[0] != weighed.chosen]
    best = min if weighed.least else max
    return best(others, key=lambda option: option[1], default=None)


def weighed_text(weighed: Weighed) -> str:
    """What was chosen and what would have been next: "rows at a time: 6 (1.02); next best 5 (1.04)"."""
    scores = dict(weighed.options)
    text = f"{weighed.what}: {weighed.chosen}"
    if weighed.chosen in scores:
        text += f" ({scores[weighed.chosen]:.3g})"
    following = next_best(weighed)
    return text if following is None else f"{text}; next best {following[0]} ({following[1]:.3g})"


def _lines(one: Chosen) -> list[str]:
    choice = one.choice
    if choice.settled_by:
        return [f"{choice.name}: not asked, {choice.settled_by} had answered its question"]
    opts = [f"{opt.opt}: {opt.reason}" if opt.applied else f"{opt.opt} is not legal: {opt.reason}" for opt in one.opts]
    lines = [f"{choice.name}: {'; '.join(opts) or 'nothing'}"]
    lines += [f"    {weighed_text(weighed)}" for weighed in choice.weighed]
    lines += [f"    {compared_text(compared)}" for compared in choice.compared]
    if one.instead is not None:
        lines.append(f"    without it: {', '.join(one.instead) or 'no opts'}")
    return lines


def why_opts(trace: Trace, kernel: int = 0) -> WhyOpts:
    """Why a kernel has its opts: decision by decision, with what each compared and weighed; where the device is to be
    had here, also what the opts would be without it."""
    if not 0 <= kernel < len(trace.kernels):
        raise ValueError(f"kernel {kernel}: this trace has kernels 0 … {len(trace.kernels) - 1}")
    info = trace.kernels[kernel]
    owner = kernel if info.same_as is None else info.same_as
    stage = next((one for one in trace.stages if one.kernel == owner and one.choices), None)
    if stage is None:
        return WhyOpts(kernel, info.name, info.opts, ())
    started = kernel_before(trace, stage)
    chosen = []
    for choice in stage.choices:
        opts = tuple(stage.opts[place] for place in choice.opts)
        instead = None
        if started is not None and any(opt.applied for opt in opts):
            with Context(**settings_of(trace)), recording(Recorder()):  # nobody else is to hear of it
                instead = tuple(map(str, hand_coded(started, frozenset((choice.name,))).applied))
        chosen.append(Chosen(choice, opts, instead))
    return WhyOpts(kernel, info.name, info.opts, tuple(chosen))


def kernel_before(trace: Trace, stage: Stage) -> Kernel | None:
    """The kernel as the decisions got it; None where its device is not to be had."""
    assert stage.kernel is not None
    try:
        with Context(**settings_of(trace)):  # TARGET among them
            target = Device[trace.kernels[stage.kernel].device].target
    except (DeviceUnavailable, ValueError, KeyError):
        return None
    (ast,) = stage.before
    return Kernel.of(Remade(trace).uop(ast), target)


__all__ = ["Chosen", "WhyOpts", "kernel_before", "next_best", "weighed_text", "why_opts"]
