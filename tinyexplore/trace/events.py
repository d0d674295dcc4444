"""The events that the engine emits: a closed union of immutable values. Frequent ones are tuples.

The values in events are immutable objects of higher packages. They are opaque here, and nothing is formatted.
`tinyexplore.explore` interprets them (see `explore/recording/trace_builder.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, NamedTuple


class UserFrame(NamedTuple):
    """The first frame outside the package when a Tensor operation was called.

    `code` and `instruction` (an offset in its bytes) determine which part of the line it was.
    """

    file: str
    line: int
    function: str
    code: CodeType | None = None
    instruction: int = -1


@dataclass(frozen=True, slots=True)
class StageBegan:
    """A stage started. Stages nest: "kernel" contains "optimize", the passes, "render" and "compile".

    stage: its name.
    root: its input graph.
    kernel: the number of the kernel that it works on; None if the enclosing stage determines it, or there is no kernel
    yet.
    """

    stage: str
    root: Any
    kernel: int | None


@dataclass(frozen=True, slots=True)
class StageEnded:
    """The innermost open stage of that name ended.

    stage: its name.
    root: its result.
    seconds: its wall time.
    """

    stage: str
    root: Any
    seconds: float


@dataclass(frozen=True, slots=True)
class LazyBufferBuilt:
    """A Tensor operation built a LazyBuffer.

    lazybuffer: the new LazyBuffer.
    src: a copy of its sources, because realizing a LazyBuffer clears them.
    user_frame: the user's line, or None.
    calls: the public functions that built it, the user's own call first: ("softmax", "max").
    """

    lazybuffer: Any
    src: tuple[Any, ...]
    user_frame: UserFrame | None
    calls: tuple[str, ...] = ()


class NumberCompared(NamedTuple):
    """Two numbers that a decision compared.

    what: the name of the first number.
    value: the first number.
    bound: the second number.
    over: whether `value` is over `bound`.
    """

    what: str
    value: float
    bound: float
    over: bool


class OptionsScored(NamedTuple):
    """A decision chose between options.

    what: the name of the choice.
    options: each option with its score.
    chosen: the chosen option; "" for none.
    least: whether the lowest score is the best.
    """

    what: str
    options: tuple[tuple[str, float], ...]
    chosen: str
    least: bool


@dataclass(frozen=True, slots=True)
class HeuristicConsidered:
    """A heuristic was considered. The following comparisons, scores and opts belong to it, until the next one is
    considered.

    decision: the `tinyexplore.kernel.heuristics.Heuristic`.
    settled_by: the heuristic that had settled the same aspect before, so that this one was skipped; or "".
    """

    decision: Any
    settled_by: str


@dataclass(frozen=True, slots=True)
class ScheduleDecided:
    """The scheduler decided on one LazyBuffer.

    lazybuffer: the LazyBuffer.
    decision: "realize" | "fuse" | "duplicate" | "keep" | "view" | "split" | "merge" | "hoist".
    reason: why, as text.
    compared: the numbers that the scheduler compared, in that order.
    legality_error: why fusion is illegal; "" if it is legal, or only too expensive.
    equal_to: for a merged node, the node that replaces it.
    """

    lazybuffer: Any
    decision: str
    reason: str
    compared: tuple[NumberCompared, ...] = ()
    legality_error: str = ""
    equal_to: Any = None


@dataclass(frozen=True, slots=True)
class WritesAllowed:
    """The in-place writes that the innermost open stage may do.

    writes: the `WritePlan`.
    """

    writes: Any


class RuleApplied(NamedTuple):
    """Rule `rule` (a `tinyexplore.uop.Rule`) turned `before` into `after` in the innermost open stage."""

    rule: Any
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class PassApplied:
    """A graph pass ran, in the innermost open stage.

    transform: the `tinyexplore.codegen.GraphPass`.
    before: the graph before.
    after: the graph after; the same object if there was nothing to do.
    """

    transform: Any
    before: Any
    after: Any


class NodeRebuilt(NamedTuple):
    """`before` was rebuilt as `after`, because its sources changed."""

    before: Any
    after: Any


class NodeDerived(NamedTuple):
    """`after` was made from `before` at the step from one IR to the next. `how`: the transformation, in a few words."""

    before: Any
    after: Any
    how: str


class SourceLine(NamedTuple):
    """One line of a listing and the UOps that it comes from (none only for text that no UOp requires)."""

    text: str
    uops: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"<line: {self.text}>"


# The same events, built from the tuple of their fields in less than half the time of a call of the class.
rule_applied: Callable[[tuple[Any, Any, Any]], RuleApplied] = partial(tuple.__new__, RuleApplied)
node_rebuilt: Callable[[tuple[Any, Any]], NodeRebuilt] = partial(tuple.__new__, NodeRebuilt)
node_derived: Callable[[tuple[Any, Any, str]], NodeDerived] = partial(tuple.__new__, NodeDerived)
source_line: Callable[[tuple[str, tuple[Any, ...]]], SourceLine] = partial(tuple.__new__, SourceLine)


@dataclass(frozen=True, slots=True)
class OptApplied:
    """An Opt was applied.

    before: the kernel before.
    opt: the Opt.
    after: the kernel after.
    reason: the reason of the heuristic, as text.
    """

    before: Any
    opt: Any
    after: Any
    reason: str


@dataclass(frozen=True, slots=True)
class OptRejected:
    """An Opt was rejected as illegal.

    kernel: the kernel.
    opt: the Opt.
    reason: why it is illegal, as text.
    """

    kernel: Any
    opt: Any
    reason: str


@dataclass(frozen=True, slots=True)
class CandidateMeasured:
    """A candidate of a search was timed.

    kernel: the candidate.
    seconds: its best time; infinite if it failed.
    note: why it failed, or the origin of the time.
    """

    kernel: Any
    seconds: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """Progress of a search, recorded only for progress displays (`register_progress`).

    kernel: the kernel to find opts for.
    compiled: candidates compiled in this round.
    measured: candidates measured in this round.
    candidates: candidates of this round.
    best_seconds: the best time of all rounds so far.
    """

    kernel: Any
    compiled: int
    measured: int
    candidates: int
    best_seconds: float


@dataclass(frozen=True, slots=True)
class SearchEnded:
    """A search ended.

    before: the kernel that it began with.
    after: the kernel that it chose; the same kernel if nothing was faster.
    before_seconds: the time of `before`, measured interleaved with that of `after`.
    after_seconds: the time of `after`.
    tried: the number of candidates measured.
    reason: the outcome as text.
    """

    before: Any
    after: Any
    before_seconds: float
    after_seconds: float
    tried: int
    reason: str


@dataclass(frozen=True, slots=True)
class ListingRendered:
    """A listing of a program was written.

    program: the `ProgramSpec`.
    language: "uops" | "c" | "llvm" | "llvm-opt" | "asm" | "python".
    lines: its lines, with the UOps that each was written for.
    """

    program: Any
    language: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class ProgramCompiled:
    """A program was compiled.

    program: the `ProgramSpec`.
    seconds: seconds that the compiler took.
    cached: whether the machine code came from a cache.
    code_bytes: size of the machine code in bytes (0: unknown).
    """

    program: Any
    seconds: float
    cached: bool
    code_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ExecItemRan:
    """A kernel or copy ran once.

    exec_item: the ExecItem.
    seconds: wall time.
    bytes_moved: the least bytes read and written.
    flops: floating-point operations.
    """

    exec_item: Any
    seconds: float
    bytes_moved: int
    flops: int


@dataclass(frozen=True, slots=True)
class ExecItemRetimed:
    """`exec_item` was run again only to be timed. All samples were taken under the same conditions.

    exec_item: the ExecItem.
    seconds: the seconds of each sample.
    took: seconds of all runs, including the time to restore memory that the kernel overwrites.
    reason: why there are no samples; "" if there are some.
    single: seconds of samples on one thread, for a kernel that several threads share.
    waited: seconds that threads waited for a core, divided by the seconds of the samples; None: unknown.
    """

    exec_item: Any
    seconds: tuple[float, ...]
    took: float
    reason: str = ""
    single: tuple[float, ...] = ()
    waited: float | None = None


@dataclass(frozen=True, slots=True)
class NativeFallback:
    """Native code computed the results of `exec_item`, because this machine cannot execute its program. It has no
    times.

    exec_item: the ExecItem.
    reason: why this machine cannot execute the program.
    """

    exec_item: Any
    reason: str


@dataclass(frozen=True, slots=True)
class CacheHit:
    """A cached kernel is lowered again, because the recorder needs every stage.

    kernel: the number of the kernel.
    where: where the cache has it: "in this process" or "on disk".
    """

    kernel: int
    where: str


@dataclass(frozen=True, slots=True)
class MemoryPlanned:
    """The memory planner placed the intermediates of a schedule, or of a captured call.

    plan: the `tinyexplore.engine.MemoryPlan`.
    """

    plan: Any


@dataclass(frozen=True, slots=True)
class LaunchesGrouped:
    """The kernels of a replay that a device launches together.

    sizes: the number of kernels in each graph.
    ungrouped: kernels outside of any graph, as text, with the reason.
    """

    sizes: tuple[int, ...]
    ungrouped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BufferAllocated:
    """A buffer was allocated.

    buffer: its `BufferKey`.
    """

    buffer: Any


@dataclass(frozen=True, slots=True)
class BufferFreed:
    """A buffer was freed.

    buffer: its `BufferKey`.
    """

    buffer: Any


Event = (
    StageBegan
    | StageEnded
    | LazyBufferBuilt
    | NumberCompared
    | OptionsScored
    | HeuristicConsidered
    | ScheduleDecided
    | WritesAllowed
    | RuleApplied
    | PassApplied
    | NodeRebuilt
    | NodeDerived
    | OptApplied
    | OptRejected
    | CandidateMeasured
    | SearchProgress
    | SearchEnded
    | ListingRendered
    | ProgramCompiled
    | ExecItemRan
    | ExecItemRetimed
    | NativeFallback
    | CacheHit
    | MemoryPlanned
    | LaunchesGrouped
    | BufferAllocated
    | BufferFreed
)
