"""What the engine tells: a closed union of immutable values. Those that come by the thousand are tuples.

Values are live immutable objects of any floor above; they are opaque here, and nothing is formatted.
Who makes sense of them is `tinyexplore.explore` (see `explore/recording/build.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, NamedTuple


class UserFrame(NamedTuple):
    """The first frame outside the package when a Tensor operation was called.

    `code` and `instruction` (an offset in its bytes) say which part of the line that was, to who looks it up.
    """

    file: str
    line: int
    function: str
    code: CodeType | None = None
    instruction: int = -1


@dataclass(frozen=True, slots=True)
class StageBegan:
    """A stage starts with `root`. Stages nest: "schedule" holds "fuse"; "compile kernel" holds every pass.

    `kernel` is the number of the kernel that the stage works for (None: before kernels; inside a stage: its kernel).
    """

    stage: str
    root: Any
    kernel: int | None


@dataclass(frozen=True, slots=True)
class StageEnded:
    """The innermost open stage of that name ends; `root` is what it returned, `seconds` its wall time."""

    stage: str
    root: Any
    seconds: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """A Tensor operation built this LazyBuffer. `src` is copied: realising a LazyBuffer forgets its sources.

    `calls`: the public functions in which that was, the user's own call first: ("softmax", "max").
    """

    lazybuffer: Any
    src: tuple[Any, ...]
    user_frame: UserFrame | None
    calls: tuple[str, ...] = ()


class Compared(NamedTuple):
    """Two numbers that led to a decision: `value` of `what`, which is `over` its `bound`, or within it."""

    what: str
    value: float
    bound: float
    over: bool


class Weighed(NamedTuple):
    """What a decision chose from: each of `options` with its score, and the one `chosen`, "" for none of them. `least`:
    the lowest score is the best."""

    what: str
    options: tuple[tuple[str, float], ...]
    chosen: str
    least: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """`decision` (a `tinyexplore.kernel.decisions.Decision`) is asked for Opts, or not, as `settled_by` has answered
    its question before. What is compared, weighed and applied from then on is its doing, until another is asked."""

    decision: Any
    settled_by: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The scheduler's decision on one LazyBuffer, and its reason.

    decision: "realize" | "fuse" | "duplicate" | "keep" | "view" | "split" | "merge" | "hoist".
    compared: the numbers that the scheduler compared, in that order.
    obstacle: what forbids computing the node where it is read; "" where nothing does, or only the cost.
    equal_to: the node that a merged one is computed with.
    """

    lazybuffer: Any
    decision: str
    reason: str
    compared: tuple[Compared, ...] = ()
    obstacle: str = ""
    equal_to: Any = None


@dataclass(frozen=True, slots=True)
class Permitted:
    """What the scheduler may overwrite: the `Writes` with which the innermost open stage was asked for."""

    writes: Any


class Rewrote(NamedTuple):
    """Rule `rule` (a `tinyexplore.uop.Rule`) turned `before` into `after` in the innermost open stage."""

    rule: Any
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Transformed:
    """`transform` (a `tinyexplore.codegen.Transform`) made `after` of the whole graph `before`, in the innermost open
    stage, which is its own; the same, where there was nothing to do."""

    transform: Any
    before: Any
    after: Any


class Rebuilt(NamedTuple):
    """`before` was made anew as `after`, because its sources changed."""

    before: Any
    after: Any


class Derived(NamedTuple):
    """`after` was made from `before` when crossing from one IR to the next; `how` says it in a few words."""

    before: Any
    after: Any
    how: str


class SourceLine(NamedTuple):
    """One line of a listing and the UOps that made it (empty only for text that no UOp asked for)."""

    text: str
    uops: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"<line: {self.text}>"


# The same, of the tuple of their fields: made in less than half the time that a call of the class takes.
rewrote: Callable[[tuple[Any, Any, Any]], Rewrote] = partial(tuple.__new__, Rewrote)
rebuilt: Callable[[tuple[Any, Any]], Rebuilt] = partial(tuple.__new__, Rebuilt)
derived: Callable[[tuple[Any, Any, str]], Derived] = partial(tuple.__new__, Derived)
source_line: Callable[[tuple[str, tuple[Any, ...]]], SourceLine] = partial(tuple.__new__, SourceLine)


@dataclass(frozen=True, slots=True)
class OptApplied:
    """`opt` turned kernel `before` into `after`; `reason` is the heuristic's, in words."""

    before: Any
    opt: Any
    after: Any
    reason: str


@dataclass(frozen=True, slots=True)
class OptRejected:
    kernel: Any
    opt: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One candidate of a search was timed: `seconds` is its best, infinite where it was lost; `note` says why, or
    where else the time is from."""

    kernel: Any
    seconds: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Searching:
    """How far the present round of a search for `kernel` is: `compiled` and `measured` of `candidates`.

    Told only to whoever shows progress (`register_progress`). `best_seconds`: the best so far, in all rounds.
    """

    kernel: Any
    compiled: int
    measured: int
    candidates: int
    best_seconds: float


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that began with kernel `before` chose `after`; the seconds of both, run in turns.

    They are the same kernel where nothing was faster. `tried`: how many were measured; `reason`: the outcome in words.
    """

    before: Any
    after: Any
    before_seconds: float
    after_seconds: float
    tried: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A listing of `program` (a `ProgramSpec`): language "uops" | "c" | "llvm" | "llvm-opt" | "asm" | "python"."""

    program: Any
    language: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """`program` is machine code now; `code_bytes` of it are instructions (0: nobody tells)."""

    program: Any
    seconds: float
    cached: bool
    code_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """`exec_item` ran once in `seconds` (wall), moving at least `bytes_moved` and doing `flops`."""

    exec_item: Any
    seconds: float
    bytes_moved: int
    flops: int


@dataclass(frozen=True, slots=True)
class Retimed:
    """`exec_item` was run again only to be timed: `seconds` of each sample, all under the same conditions.

    `took`: seconds of all of it, with restoring what the kernel overwrites; a plain run does not spend them.
    `reason`: why there are no samples, "" where there are some. `single`: seconds of samples on one thread, of a kernel
    that several share. `waited`: seconds that threads waited for a core / seconds of the samples; None: unknown.
    """

    exec_item: Any
    seconds: tuple[float, ...]
    took: float
    reason: str = ""
    single: tuple[float, ...] = ()
    waited: float | None = None


@dataclass(frozen=True, slots=True)
class StoodIn:
    """This machine cannot execute the program of `exec_item`, for `reason`: native code computed its results, so it has
    no times."""

    exec_item: Any
    reason: str


@dataclass(frozen=True, slots=True)
class KnownAlready:
    """Kernel number `kernel` is gone through because somebody wants to see every stage: otherwise it would have been
    found, "in this process" or "on disk"."""

    kernel: int
    where: str


@dataclass(frozen=True, slots=True)
class Planned:
    """What the intermediates of one schedule, or of a captured call, need (a `tinyexplore.engine.MemoryPlan`)."""

    plan: Any


@dataclass(frozen=True, slots=True)
class Launches:
    """What of a replay its device launches together: `sizes`, the kernels of each graph. apart: what no graph has, in
    words, with why."""

    sizes: tuple[int, ...]
    apart: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Allocated:
    buffer: Any


@dataclass(frozen=True, slots=True)
class Freed:
    buffer: Any


Event = (
    StageBegan
    | StageEnded
    | Recorded
    | Compared
    | Weighed
    | Asked
    | Decided
    | Permitted
    | Rewrote
    | Transformed
    | Rebuilt
    | Derived
    | OptApplied
    | OptRejected
    | Measured
    | Searching
    | Searched
    | Rendered
    | Compiled
    | Ran
    | Retimed
    | StoodIn
    | KnownAlready
    | Planned
    | Launches
    | Allocated
    | Freed
)
