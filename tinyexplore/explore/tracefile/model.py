"""The Trace: everything a view may show, as plain immutable data; JSON in and out; comparable with `==`.

Ids are dense and index the tuple they name (`trace.nodes[i].id == i`). The TypeScript types are generated
from this module (`explore/schema.py`), so every field is int, float, str, bool, None, a tuple of these,
or one of the dataclasses below. What a value must be beside its type stands in its annotation, by the names at the
top; `Trace.load` and the front end refuse what is not (`explore/tracefile/valid.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.readable import ReadableRow, Table
from tinyexplore.explore.tracefile.texts import LANGUAGE_NAMES, duration_text, ratio_text, spread_text
from tinyexplore.explore.tracefile.valid import AtLeast, Id, Index, OneOf

TRACE_VERSION = 1

RowId = Annotated[int, Id()]
SourceId = Annotated[int, Index("sources")]
FrameId = Annotated[int, Index("frames")]
NodeId = Annotated[int, Index("nodes")]
EarlierNode = Annotated[int, Index("nodes", before=True)]
TransformId = Annotated[int, Index("transforms")]
LawId = Annotated[int, Index("laws")]
RuleId = Annotated[int, Index("rules")]
StageId = Annotated[int, Index("stages")]
EarlierStage = Annotated[int, Index("stages", before=True)]
KernelId = Annotated[int, Index("kernels")]
ScopeId = Annotated[int, Index("scopes")]
EarlierScope = Annotated[int, Index("scopes", before=True)]
EarlierCost = Annotated[int, Index("module_costs", before=True)]
EarlierKernel = Annotated[int, Index("kernels", before=True)]
EarlierBranch = Annotated[int, Index("branches", before=True)]
BufferId = Annotated[int, Index("buffers")]
Count = Annotated[int, AtLeast(0)]
LineNumber = Annotated[int, AtLeast(1)]
MOST_US = 10**15  # 31 years: longer times are damage, and overflow when they are added or drawn
Duration = Annotated[float, AtLeast(0, MOST_US)]
Moment = Annotated[float, AtLeast(-MOST_US, MOST_US)]  # microseconds since the trace began, or a span of them
Amount = Annotated[float, AtLeast(0)]
Depth = Annotated[int, AtLeast(0, 1000)]


@dataclass(frozen=True, slots=True, repr=False)
class Frame(ReadableRow):
    """A place in the user's code; `source` indexes `Trace.sources`, `line` counts from 1.

    `span`: the part of the expression that was at work, as (line, column, line, column) of its begin and its end,
    columns in characters from 0; of a method's call without what it is called on. None before Python 3.11.
    """

    id: RowId
    source: SourceId
    line: LineNumber
    function: str
    span: tuple[LineNumber, Count, LineNumber, Count] | None = None

    def in_words(self) -> str:
        return f"frame {self.id}: {self.function}, line {self.line} of source {self.source}"


@dataclass(frozen=True, slots=True, repr=False)
class Source(ReadableRow):
    """A file of the user's (or a notebook cell), copied in, so that the trace stands alone."""

    id: RowId
    name: str
    text: str

    def in_words(self) -> str:
        return f"source {self.id}: {self.name}, {count_text(len(self.text.splitlines()), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class Node(ReadableRow):
    """One IR value. kind: "lazybuffer" | "uop". `digest` is equal across runs for equal content.

    `label` is what a box says ("LOAD", "ADD"); `detail` its second line (shape, index, constant);
    `group` its role, which gives the colour: "memory" | "reduce" | "loop" | "alu" | "const" | "movement" |
    "control" | "buffer". `user` indexes `Trace.frames`. `calls`: the public functions that made a LazyBuffer, the
    user's own call first: ("softmax", "max"). `name`: what the user's Python calls a LazyBuffer ("x",
    "model.l1.weight"). `scope`: the module in which a LazyBuffer was made, or (`backward`) whose gradient it is for.
    """

    id: RowId
    kind: Annotated[str, OneOf(("lazybuffer", "uop"))]
    op: str
    src: tuple[EarlierNode, ...]
    dtype: str
    shape: tuple[int | str, ...] | None
    arg: str
    digest: str
    user: FrameId | None
    label: str
    detail: str
    group: str
    calls: tuple[str, ...] = ()
    name: str = ""
    scope: ScopeId | None = None
    backward: bool = False

    def in_words(self) -> str:
        parts = [self.op, self.dtype, *([] if self.shape is None else [f"shape {_tuple_text(self.shape)}"])]
        parts += [f"of {', '.join(map(str, self.src))}"] if self.src else []
        return f"node {self.id}{f' {self.name}' if self.name else ''}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, repr=False)
class Scope(ReadableRow):
    """A module of the user's (`model`, its `layers[0]`): an object with Tensors whose methods made LazyBuffers.

    `name`: the variable, or the attribute of `parent`; `kind`: its class; `parameter_bytes`: its own Tensors.
    """

    id: RowId
    name: str
    kind: str
    parent: EarlierScope | None
    parameter_bytes: Count

    def in_words(self) -> str:
        return f"module {self.id}: {self.name} ({self.kind}), {self.parameter_bytes:,} bytes of its own Tensors"


@dataclass(frozen=True, slots=True, repr=False)
class ModuleCost(ReadableRow):
    """What a module cost, the modules inside included; `Trace.modules()` gives the rows as a tree.

    The first row is the whole trace. A kernel that several modules are fused into is divided among them by the elements
    that each computes: the times of the rows inside a row add up to its time.

    id: the row.
    parent: the row of the module around it, None for the whole trace.
    scope: the module, None for the whole trace and for what no module made.
    time_us: its share of the kernels' median times, in microseconds.
    backward_us: the part of `time_us` for gradients.
    parameter_bytes: size of its Tensors.
    result_bytes: size of the buffers that kernels stored for it.
    kernels: those that compute a part of it.
    """

    id: RowId
    parent: EarlierCost | None
    scope: ScopeId | None
    time_us: Amount
    backward_us: Amount
    parameter_bytes: Count
    result_bytes: Count
    kernels: tuple[KernelId, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Figure(ReadableRow):
    """The figures of one part of the pipeline.

    place: the part.
    title: its name on the screen.
    words: its counts, as text.
    time_us: its time in microseconds, 0 where it takes none.
    """

    place: Annotated[str, OneOf(("python", "lazy", "kernels", "passes", "uops", "code", "run"))]
    title: str
    words: str
    time_us: Amount

    @property
    def time(self) -> str:
        return duration_text(self.time_us) if self.time_us > 0 else ""


@dataclass(frozen=True, slots=True, repr=False)
class Figures(ReadableRow):
    """The figures of a whole trace, or of one kernel.

    kernel: the kernel, None for the whole trace.
    parts: the parts of the pipeline, in order.
    compile_us: the sum of all parts but the run.
    search_us: time of searches, with all that they compiled; no part has it.
    run_us: one run of each kernel, by the medians.
    firings: how many times a rule was applied in `passes`.
    passes: the rewrite passes: stages that get a graph and have no stage inside.
    code: the last stage that made code.
    summary: what all kernels took, as parts of a line; empty for one kernel.
    """

    kernel: KernelId | None
    parts: tuple[Figure, ...]
    compile_us: Amount
    search_us: Amount
    run_us: Amount
    firings: Count
    passes: tuple[StageId, ...]
    code: StageId | None
    summary: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class RooflinePoint(ReadableRow):
    """A timed kernel in the roofline.

    kernel: its number.
    flops_per_byte: operations for each byte that it reads or writes.
    gflops: 10⁹ operations a second.
    attainable: what its roof leaves it, in GFLOP/s; None without a roof.
    limit: which ceiling that is: "memory", "arithmetic", or "" without a roof.
    ceiling: the name of that ceiling.
    time_us: the median of its samples, in microseconds.
    text: the point as text.
    """

    kernel: KernelId
    flops_per_byte: Amount
    gflops: Amount
    attainable: Amount | None
    limit: Annotated[str, OneOf(("memory", "arithmetic", ""))]
    ceiling: str
    time_us: Amount
    text: str

    @property
    def share(self) -> float | None:
        """Speed / attainable speed."""
        return self.gflops / self.attainable if self.attainable else None


@dataclass(frozen=True, slots=True, repr=False)
class RooflineCeiling(ReadableRow):
    """A ceiling that is drawn.

    name: of the ceiling.
    kind: "memory" or "arithmetic".
    rate: GB/s or GFLOP/s.
    """

    name: str
    kind: Annotated[str, OneOf(("memory", "arithmetic"))]
    rate: Amount


@dataclass(frozen=True, slots=True, repr=False)
class Roofline(ReadableRow):
    """The timed kernels of a trace under the ceilings of the machine.

    points: by kernel; kernels without floating-point arithmetic have none.
    ceilings: those of the kernels' roofs, each once.
    note: where the ceilings are from, and which kernels have no point.
    """

    points: tuple[RooflinePoint, ...]
    ceilings: tuple[RooflineCeiling, ...]
    note: str


@dataclass(frozen=True, slots=True, repr=False)
class Rule(ReadableRow):
    """A rewrite rule as the stepper shows it; `text` is its source code, copied in."""

    id: RowId
    name: str
    law: str
    doc: str
    file: str
    line: Count
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Transform(ReadableRow):
    """A pass over whole graphs, as the stepper shows it: `law` says in words what it does, `text` is the source code
    of its function, copied in."""

    id: RowId
    name: str
    law: str
    file: str
    line: Count
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Step(ReadableRow):
    """In a rewrite stage, `before` became `after`: by `rule`, or (rule None) because its sources changed. In the stage
    of a transform there is one step, of the whole graph, or none where nothing changed.

    `at_us`: microseconds since the stage began.
    """

    rule: RuleId | None
    before: NodeId
    after: NodeId
    at_us: Moment


@dataclass(frozen=True, slots=True, repr=False)
class Compared(ReadableRow):
    """Two numbers that led to a decision: `value` of `what`, which is `over` its `bound`, or within it."""

    what: str
    value: float
    bound: float
    over: bool


@dataclass(frozen=True, slots=True, repr=False)
class Decision(ReadableRow):
    """The scheduler's decision on a LazyBuffer, and its reason.

    decision: "realize" | "fuse" | "duplicate" | "keep" | "view" | "split" | "merge" | "hoist".
    compared: the numbers that the scheduler compared, in that order.
    obstacle: what forbids computing the node where it is read; "" where nothing does, or only the cost.
    """

    node: NodeId
    decision: str
    reason: str
    compared: tuple[Compared, ...] = ()
    obstacle: str = ""

    def in_words(self) -> str:
        return f"node {self.node}: {self.decision}, {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class OptLaw(ReadableRow):
    """What a kind of opt does, in words, and as a loop nest before and after."""

    id: RowId
    name: str
    words: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, repr=False)
class OptStep(ReadableRow):
    """An opt on a kernel: applied (with its reason) or rejected (with the obstacle), and the laws of its kind.

    axis: the name of the axis that it changes, with its size before: "g1 of 32". "" where it was rejected.
    made: the names of the axes that are new after it.
    """

    opt: str
    applied: bool
    reason: str
    laws: tuple[LawId, ...] = ()
    axis: str = ""
    made: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Weighed(ReadableRow):
    """What a decision chose from: each of `options` with its score, and the one `chosen`, "" for none of them. `least`:
    the lowest score is the best."""

    what: str
    options: tuple[tuple[str, float], ...]
    chosen: str
    least: bool


@dataclass(frozen=True, slots=True, repr=False)
class Choice(ReadableRow):
    """A decision of the hand-coded choice of opts, in the order in which they are asked. `law`: what it decides, and
    why; `settled_by`: the one that had answered its question before, so that it was not asked. `opts`: those of the
    stage that it proposed, by their place."""

    name: str
    law: str
    settled_by: str
    compared: tuple[Compared, ...]
    weighed: tuple[Weighed, ...]
    opts: tuple[Count, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Candidate(ReadableRow):
    """One candidate of a search: the opts applied to the kernel, and its best time in microseconds.

    `best_us` is None for a candidate that was lost; `note` says why, or where else the time is from.
    """

    opts: tuple[str, ...]
    best_us: Duration | None
    note: str = ""

    def in_words(self) -> str:
        time = self.note or "lost" if self.best_us is None else duration_text(self.best_us)
        return f"{' '.join(self.opts) or 'no opts'}: {time}"


@dataclass(frozen=True, slots=True, repr=False)
class Search(ReadableRow):
    """The outcome of a search: the hand-coded choice and the one that was found, timed in turns, in microseconds.

    They are the same where nothing was faster. `tried`: how many candidates were measured; `reason`: the outcome in
    words. A time is None where nothing could be measured.
    """

    before_us: Duration | None
    after_us: Duration | None
    tried: Count
    reason: str

    def in_words(self) -> str:
        times = ["no time" if one is None else duration_text(one) for one in (self.before_us, self.after_us)]
        tried = count_text(self.tried, "candidate")
        return f"search of {tried}: {times[0]} by the heuristics' opts, {times[1]} by the best; {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Stage(ReadableRow):
    """One stage of the compiler. Stages form a tree by `parent`; `kernel` is the kernel it worked for.

    name: "schedule" | "optimise" | "lower" | a pass's name | "linearize" | "render" | "compile" | "run" ...
    before, after: root node ids (several for a schedule). `steps` are the firings of a rewrite pass, in order.
    `candidates` are those that a search timed, in order, `search` is its outcome. `thread`: 0 for the one that
    asked, else another that worked meanwhile; `elapsed_us` of a stage is its own and what other threads did for it.
    `transform`: the one that this stage is, if it is one. `choices`: the decisions that chose the opts.
    """

    id: RowId
    name: str
    parent: EarlierStage | None
    kernel: KernelId | None
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    started_us: Moment
    elapsed_us: Moment
    steps: tuple[Step, ...]
    decisions: tuple[Decision, ...]
    opts: tuple[OptStep, ...]
    candidates: tuple[Candidate, ...] = ()
    search: Search | None = None
    thread: Count = 0
    transform: TransformId | None = None
    choices: tuple[Choice, ...] = ()

    def in_words(self) -> str:
        steps = count_text(len(self.steps), "step")
        return f"stage {self.id}: {self.name}, {duration_text(max(self.elapsed_us, 0.0))}, {steps}"


@dataclass(frozen=True, slots=True, repr=False)
class Link(ReadableRow):
    """Provenance: node `dst` came from node `src`; `how`: "rewrite" | "rebuild" | a transform's name | words of a
    `Derived` event."""

    src: NodeId
    dst: NodeId
    how: str
    stage: StageId | None

    def in_words(self) -> str:
        return f"node {self.dst} from node {self.src}: {self.how}"


@dataclass(frozen=True, slots=True, repr=False)
class Line(ReadableRow):
    """A line of a listing and the nodes (UOps) that made it."""

    text: str
    nodes: tuple[NodeId, ...]

    def in_words(self) -> str:
        return self.text or "(empty line)"


@dataclass(frozen=True, slots=True, repr=False)
class Program(ReadableRow):
    """One listing of one kernel; language: "uops" | "c" | "llvm" | "llvm-opt" | "asm" | "python".

    effort: how much the compiler does for what the device compiles, "full" | "light" | "least", else "". branches:
    whether it simplifies branches all the same.
    """

    id: RowId
    kernel: KernelId
    language: str
    lines: tuple[Line, ...]
    effort: str = ""
    branches: bool = False

    def in_words(self) -> str:
        language = LANGUAGE_NAMES.get(self.language, self.language)
        return f"program {self.id}: {language} of kernel {self.kernel}, {count_text(len(self.lines), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class KernelInfo(ReadableRow):
    """One kernel: what it computes (LazyBuffer ids), the opts applied, its axes and its cost.

    `axes`: (name, kind, size) outermost first; a size that Variables give is their arithmetic, as text. `roots`:
    LazyBuffers it realises. `nodes`: all LazyBuffers fused into it. `same_as`: an earlier kernel whose program it
    reuses, else None. `calls`: the user's calls that these LazyBuffers are of, each once. `known`: "in this process" or
    "on disk" where it would have been found, had nobody wanted to see every stage. `code_bytes`: its machine code, 0
    where nobody tells. `not_run`: why it has no times: this machine cannot execute it, or it takes too long to sample.
    `nest`: its loops and what stands in them, as the program runs them, without touches. `bytes_written`: those of
    `bytes_moved` that it stores. `arithmetic`: the types of its floating-point operations ("float32", "int8 dot").
    `title`: its name for people, from the user's Python: "x @ w", "softmax of scores".
    """

    id: RowId
    name: str
    device: str
    roots: tuple[NodeId, ...]
    nodes: tuple[NodeId, ...]
    buffers: tuple[BufferId, ...]
    opts: tuple[str, ...]
    axes: tuple[tuple[str, str, int | str], ...]
    flops: Count
    bytes_moved: Count
    compile_us: Duration
    cached: bool
    same_as: EarlierKernel | None
    calls: tuple[str, ...] = ()
    known: str = ""
    code_bytes: Count = 0
    not_run: str = ""
    nest: tuple[NestLine, ...] = ()
    bytes_written: Count = 0
    arithmetic: tuple[str, ...] = ()
    title: str = ""

    def in_words(self) -> str:
        work = f"{count_text(self.flops, 'operation')}, {count_text(self.bytes_moved, 'byte')} moved"
        return f"kernel {self.id}: {self.name} on {self.device}, {' '.join(self.opts) or 'no opts'}; {work}"


@dataclass(frozen=True, slots=True, repr=False)
class Run(ReadableRow):
    """Samples of one launch in microseconds, in the order measured; `median_us`, `low_us`, `high_us` (quartiles).

    `started_us`: when the launch itself began, in microseconds since the trace began; `first_us`: how long it took.
    `warm`: whether the samples are further runs with warm caches. Otherwise the only sample is the launch itself. All
    runs of a trace are of one kind. `single_us`: samples on one thread, of a kernel that several share. `waited`:
    seconds that threads waited for a core / seconds of the samples; None: unknown.
    """

    id: RowId
    kernel: KernelId
    times_us: tuple[Duration, ...]
    median_us: Duration
    low_us: Duration
    high_us: Duration
    started_us: Moment = 0.0
    first_us: Duration = 0.0
    warm: bool = False
    single_us: tuple[Duration, ...] = ()
    waited: Amount | None = None

    def in_words(self) -> str:
        time = spread_text(self.median_us, self.low_us, self.high_us)
        samples = count_text(len(self.times_us), "sample" if self.warm else "cold run")
        return f"run of kernel {self.kernel}: {time}, {samples}"


@dataclass(frozen=True, slots=True, repr=False)
class Ceiling(ReadableRow):
    """The best rate that a probe reached on this machine, see `explore.ceilings`.

    `rate`: 10⁹ operations a second ("arithmetic"), 10⁹ bytes a second ("memory"), GHz ("clock"), the microseconds of
    the smallest kernel ("launch"), 10⁹ loads a second from random places ("gather"), or 10⁹ bytes a second in runs of
    `what` bytes, each in another row of 16 KB ("runs"; "4": a single float). `holds`: the working set in bytes, 0 for
    any. `what`: the type of the operations ("float32", "int8 dot"), or what is done with each byte ("read", "triad":
    two reads and a write, "copy", "write"). `threads`: how many worked together. `samples`: all measured rates.
    """

    name: str
    kind: Annotated[str, OneOf(("arithmetic", "memory", "clock", "launch", "gather", "runs"))]
    rate: Duration
    holds: Count = 0
    what: str = ""
    threads: Count = 0
    samples: tuple[Duration, ...] = ()

    @property
    def spread(self) -> float:
        """Interquartile range of the samples / rate."""
        ordered = sorted(self.samples)
        if len(ordered) < 2 or not self.rate:
            return 0.0
        last = len(ordered) - 1
        return (ordered[round(0.75 * last)] - ordered[round(0.25 * last)]) / self.rate


@dataclass(frozen=True, slots=True, repr=False)
class Roof(ReadableRow):
    """What the ceilings leave one kernel. `gflops`: 10⁹ operations a second of its types of arithmetic; `gb_per_s`:
    10⁹ bytes a second of its working set and its share of writes; 0 where no ceiling is known. `arithmetic`, `memory`:
    the names of these ceilings; `spread`: of their samples, as a share of the rate."""

    kernel: KernelId
    gflops: Duration
    gb_per_s: Duration
    arithmetic: str
    memory: str
    spread: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class BufferInfo(ReadableRow):
    """A device buffer and its life in microseconds since the trace began (None: outlived the trace).

    `name`: what the user's Python calls what lies in it, "" for nothing. `maker`: the first kernel that wrote it here.
    """

    id: RowId
    device: str
    dtype: str
    size: Count
    bytes: Count
    allocated_us: Moment | None
    freed_us: Moment | None
    name: str = ""
    maker: KernelId | None = None


@dataclass(frozen=True, slots=True, repr=False)
class MemoryUse(ReadableRow):
    """What the intermediates of one schedule (or of a captured call) take, in bytes.

    `total_bytes`: each by itself. `bound_bytes`: the most that is live at one time. `peak_bytes`: where they share
    memory. `lives`: (bytes, first item, last item, offset in the shared memory) of each.
    """

    id: RowId
    total_bytes: Count
    bound_bytes: Count
    peak_bytes: Count
    lives: tuple[tuple[Count, Count, Count, Count], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Message(ReadableRow):
    """What the reader must know of this trace. level: "error" | "warning" | "note"."""

    level: Annotated[str, OneOf(("error", "warning", "note"))]
    text: str
    frame: FrameId | None


@dataclass(frozen=True, slots=True, repr=False)
class Touch(ReadableRow):
    """What one step of a loop touches of an operand, in bytes of the cache lines; `again`: every step of the loop reads
    the same of it. `stride`: by how many elements a step moves the address, None where that differs.

    `name` is what the user's Python calls it, else "data1"; `buffer` its position among the kernel's arguments, None
    for scratch memory.
    """

    buffer: Count | None
    name: str
    bytes: Count
    again: bool
    stride: int | None


@dataclass(frozen=True, slots=True, repr=False)
class NestLine(ReadableRow):
    """A line of an annotated loop nest: a loop (`axis` is its id, `kind` and `size` what it is) or a statement.

    `touches` and `bytes`: what one step of the loop touches, its working set; `cache` the first that holds as much:
    "L1" | "L2" | "L3" | "memory".
    """

    depth: Depth
    text: str
    axis: Count | None = None
    kind: str = ""
    size: int | str = 0
    touches: tuple[Touch, ...] = ()
    bytes: Count = 0
    cache: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class OptOffer(ReadableRow):
    """An opt that may be tried on an axis, by any of `amounts`; of some kinds the amount is another axis' id, of some
    0 and without a meaning.

    `obstacle`: what stands against it, "" where it is legal. `caution`: what speaks against a legal one.
    """

    op: str
    axis: Count
    amounts: tuple[Count, ...]
    obstacle: str = ""
    caution: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(ReadableRow):
    """A listing of a kernel in a branch; the languages are those of `Program`."""

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class StageTime(ReadableRow):
    """A stage that made a kernel of a branch: how long it took, and how many firings it had."""

    name: str
    elapsed_us: Duration
    steps: Count


@dataclass(frozen=True, slots=True, repr=False)
class KernelVariant(ReadableRow):
    """A kernel as it is in a branch. `kernel`: the captured one that it stands for, None for one that is new.

    `opts`: those applied, in order; `steps` tells them with reasons, and those that were refused. `bytes_loaded`: what
    its load instructions ask for. `caches`: those of the target, by name, in bytes. Times are of a worker process that
    ran it on memory of its own, in microseconds; there are none where it could not be timed. What a search timed has no
    listings, no nest and no offers.

    `base_times_us`: times of the kernel as captured (of an edit: of the text before it), taken in turns with these;
    none where it is that kernel itself. Only these two compare: times of two branches are of two sittings. `verdict`
    compares them: "faster" | "slower" | "noise" | "unknown". `note`: a remark on this kernel alone ("its results are
    wrong"). `uops`: how many one run executes, counted in the program, a vector's as one; 0 where that is not known.
    """

    kernel: KernelId | None
    name: str
    device: str
    opts: tuple[str, ...]
    steps: tuple[OptStep, ...] = ()
    axes: tuple[tuple[str, str, int | str], ...] = ()
    nest: tuple[NestLine, ...] = ()
    offers: tuple[OptOffer, ...] = ()
    listings: tuple[Listing, ...] = ()
    stages: tuple[StageTime, ...] = ()
    times_us: tuple[Duration, ...] = ()
    median_us: Duration | None = None
    low_us: Duration | None = None
    high_us: Duration | None = None
    flops: Count = 0
    bytes_moved: Count = 0
    bytes_loaded: Count = 0
    compile_us: Duration = 0.0
    caches: tuple[tuple[str, Count], ...] = ()
    base_times_us: tuple[Duration, ...] = ()
    base_median_us: Duration | None = None
    base_low_us: Duration | None = None
    base_high_us: Duration | None = None
    verdict: Annotated[str, OneOf(("faster", "slower", "noise", "unknown"))] = "unknown"
    note: str = ""
    uops: Count = 0


@dataclass(frozen=True, slots=True, repr=False)
class RuleFiring(ReadableRow):
    """A firing of the rule that a branch is about, in kernel `kernel`: `step` (from 1) of pass `stage` made `after` of
    `before`, both in words. `node`: the digest of the node that it fired on.

    verdict: "proved" | "agrees" | "differs" | "not checked"; `says` tells it in words. Where it differs, `inputs` are
    the values at which, and `was` and `has_become` what the two give there.
    """

    kernel: KernelId
    stage: str
    step: Count
    rule: str
    before: str
    after: str
    node: str
    verdict: Annotated[str, OneOf(("proved", "agrees", "differs", "not checked"))]
    says: str
    inputs: tuple[tuple[str, str], ...] = ()
    was: str = ""
    has_become: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class FiringCheck(ReadableRow):
    """What the check says of a firing of this trace: `step` (from 1) of `stage`.

    verdict: "proved" | "agrees" | "differs" | "not checked"; `says` tells it in words. Where it differs, `inputs` are
    the values at which, and `was` and `has_become` what the two give there.
    """

    stage: StageId
    step: LineNumber
    verdict: Annotated[str, OneOf(("proved", "agrees", "differs", "not checked"))]
    says: str
    inputs: tuple[tuple[str, str], ...] = ()
    was: str = ""
    has_become: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class FusedKernel(ReadableRow):
    """A kernel (or copy) of a schedule in a branch: the LazyBuffers that it computes (`nodes`), stores (`roots`) and
    reads from memory (`reads`). `kernel`: the captured one that is the same, None for one that is new.

    `digest`: equal for equal kernels. Times are of a run of the whole schedule, in microseconds; None where it was not
    run.
    """

    name: str
    device: str
    kernel: KernelId | None
    digest: str
    nodes: tuple[NodeId, ...]
    roots: tuple[NodeId, ...]
    reads: tuple[NodeId, ...]
    flops: Count
    bytes_moved: Count
    median_us: Duration | None = None
    low_us: Duration | None = None
    high_us: Duration | None = None


@dataclass(frozen=True, slots=True, repr=False)
class OutputCheck(ReadableRow):
    """An output of a schedule in a branch beside the same of the schedule as captured, both computed from the same made
    up inputs. `difference`: the largest between two finite elements that were looked at; `same`: no more than rounding.
    `magnitude`: of the largest finite element; `tolerance`: what `same` allows, relative to the elements (0: none).
    """

    node: NodeId
    difference: Amount
    same: bool
    dtype: str = ""
    magnitude: Amount = 0.0
    tolerance: Amount = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class ScheduleVariant(ReadableRow):
    """A schedule as it is in a branch. `stage`: the captured one; `cut`, `join`: the LazyBuffers that get memory, and
    those that are fused, because the reader wants it.

    `decisions`: the scheduler's last word on each LazyBuffer. `total_bytes`, `peak_bytes`: what the intermediates take,
    each by itself, and where they share memory. `times_us`: of all kernels, one run after another; `base_times_us`:
    those of the schedule as captured, run in turns with these. `verdict`: what these two say of each other: "faster" |
    "slower" | "noise" | "unknown". `outputs`: what came of comparing the values.
    """

    stage: StageId
    cut: tuple[NodeId, ...]
    join: tuple[NodeId, ...]
    kernels: tuple[FusedKernel, ...]
    decisions: tuple[Decision, ...]
    total_bytes: Count
    peak_bytes: Count
    times_us: tuple[Duration, ...] = ()
    base_times_us: tuple[Duration, ...] = ()
    median_us: Duration | None = None
    low_us: Duration | None = None
    high_us: Duration | None = None
    base_median_us: Duration | None = None
    base_low_us: Duration | None = None
    base_high_us: Duration | None = None
    verdict: Annotated[str, OneOf(("faster", "slower", "noise", "unknown"))] = "unknown"
    outputs: tuple[OutputCheck, ...] = ()

    @property
    def bytes_moved(self) -> int:
        """What all kernels read and write."""
        return sum(kernel.bytes_moved for kernel in self.kernels)

    @property
    def flops(self) -> int:
        """What all kernels compute."""
        return sum(kernel.flops for kernel in self.kernels)


@dataclass(frozen=True, slots=True, repr=False)
class CommandInfo(ReadableRow):
    """A command of `explore.whatif` as data: its kind, and its arguments by name."""

    kind: str
    arguments: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic(ReadableRow):
    """What a compiler says of a text, at which line and column, counted from 1; 0 where it names none."""

    line: Count
    column: Count
    level: Annotated[str, OneOf(("error", "warning", "note"))]
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Difference(ReadableRow):
    """An element of a result that is not what was expected, both as text."""

    buffer: str
    index: Count
    found: str
    expected: str


@dataclass(frozen=True, slots=True, repr=False)
class Edited(ReadableRow):
    """What became of a stage of a kernel that was edited as text: "c" | "llvm" | "uops".

    `ended`: how its process ended, in words, where it did not end well. `against`: what its results were compared with,
    "" where they were not. `compared` elements, of which `differing` are further off than rounding explains, the
    `first` of them; `largest_error` is an absolute one, None where one side is no finite number; `magnitude` is that of
    the largest finite element of that buffer, and `tolerance` what rounding may do, relative to the elements (0:
    nothing). `before_us`: times of the text before the edit, taken in turns with those of the branch. `unprotected`:
    what this system cannot guard.
    """

    stage: str
    diagnostics: tuple[Diagnostic, ...] = ()
    ended: str = ""
    against: str = ""
    verdict: Annotated[str, OneOf(("", "same bits", "within rounding", "differs"))] = ""
    compared: Count = 0
    differing: Count = 0
    largest_error: float | None = None
    magnitude: Amount = 0.0
    tolerance: Amount = 0.0
    first: Difference | None = None
    before_us: tuple[Duration, ...] = ()
    unprotected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Branch(ReadableRow):
    """What came of a command: the trace as it would be otherwise, from branch `parent` on (None: from the capture).

    status: "done" | "failed", then `reason` says why; what was made until then is there all the same. `kernel`: the one
    that the command is about. `labels`: what it is known for ("as captured", "heuristics"). Of a command about a rule,
    `rule_law` and `rule_text` are what it states and its source code, `firings` its firings, each checked. `edited`:
    where it is about a text that was edited, what became of that. `schedule`: where it is about a schedule, likewise.
    `search`: where a search led there, what it measured; these times are its own, and compare with no other.
    """

    id: RowId
    parent: EarlierBranch | None
    kernel: KernelId | None
    command: CommandInfo
    status: Annotated[str, OneOf(("done", "failed"))]
    reason: str
    kernels: tuple[KernelVariant, ...]
    labels: tuple[str, ...] = ()
    rule_law: str = ""
    rule_text: str = ""
    firings: tuple[RuleFiring, ...] = ()
    edited: Edited | None = None
    schedule: ScheduleVariant | None = None
    search: Search | None = None

    def __str__(self) -> str:
        """One line: what was asked, what the kernel is by it, and how long that takes."""
        asked = self._asked()
        parts = [f"branch {self.id}", asked]
        for variant in self.kernels[:1]:
            time = " · ".join(_times(variant)) or "not timed"
            opts = " ".join(variant.opts) or "no opts"
            said = asked.replace("), ", ") ").endswith(f": {opts}")
            parts += [variant.name if said else f"{variant.name}: {opts}", time]
        if self.schedule is not None:
            parts.append(f"{len(self.schedule.kernels)} kernels")
            parts += _times(self.schedule) or ["not timed"]
        return " · ".join([*parts, *([self.reason] if self.reason else [])])

    def _asked(self) -> str:
        """The command in words where its arguments are texts, which may be long; else as it is written."""
        match self.command.kind, dict(self.command.arguments):
            case "SetOpts", {"opts": opts}:
                return f"opts set: {_one_line(opts) or 'no opts'}"
            case "Edit", {"stage": "opts", "text": opts}:
                return f"edit of the opts: {_one_line(opts) or 'no opts'}"
            case "Edit", {"stage": stage}:
                return f"edit of the {LANGUAGE_NAMES.get(str(stage), stage)}"
            case kind, given:
                return f"{kind}({', '.join(map(_one_line, given.values()))})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints of it, in place of all its listings."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """The command with its kernels: opts, time with its spread, that of the captured kernel, taken in turns with
        it, and what the two say."""
        rows = tuple(_variant_row(variant) for variant in self.kernels)
        columns = ("kernel", "opts", "time", "as captured, interleaved", "compared", "note")
        return Table(str(self), columns, rows, code=frozenset(columns[:2])).html()

    def in_words(self) -> str:
        return str(self)


def _tuple_text(sizes: tuple[int | str, ...]) -> str:
    """A shape as Python writes it, symbolic sizes without quotes."""
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _variant_row(variant: KernelVariant) -> tuple[str, ...]:
    """The row of a kernel in the table of its branch."""
    times = (*_times(variant), "", "", "")[:3] if variant.median_us is not None else ("not timed", "", "")
    return (variant.name, " ".join(variant.opts) or "no opts", *times, variant.note)


def _times(variant: KernelVariant | ScheduleVariant) -> list[str]:
    """The time, that of the base, which was taken in turns with it, and what the two say; what there is of them."""
    mine = spread_text(variant.median_us, variant.low_us, variant.high_us)
    base = spread_text(variant.base_median_us, variant.base_low_us, variant.base_high_us)
    if isinstance(variant, ScheduleVariant) and not (variant.cut or variant.join):
        base = ""  # it is the captured schedule itself
    said = ratio_text(variant.median_us, variant.base_median_us, variant.verdict, "the base") if base else ""
    return [text for text in (mine, base and f"base {base}", said) if text]


def _one_line(value: int | str) -> str:
    """An argument of a command on one line."""
    return " ".join(str(value).split())


@dataclass(frozen=True, slots=True, repr=False)
class RecordedLoop(ReadableRow):
    """A loop of a linear program, and the lines of the listing at which it begins and ends."""

    begin: Count
    end: Count
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class RecordedBuffer(ReadableRow):
    """What lay in the first elements of a buffer before its kernel ran; drawn in rows of `width`."""

    name: str
    size: Count
    width: LineNumber
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class RecordedStep(ReadableRow):
    """A step of a kernel: `place` is the line of the UOp that was done, `slot` the line whose value that is (of an
    ASSIGN, its accumulator's), `value` a text for each lane. Of an access also what it touched, of each lane the
    element, None where it is not valid."""

    place: Count
    slot: Count
    value: tuple[str, ...]
    buffer: str = ""
    stored: bool = False
    index: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Recording(ReadableRow):
    """The first steps of a kernel, for whoever has no engine to step it. `ended`: it has no more."""

    id: RowId
    kernel: KernelId
    name: str
    note: str
    listing: tuple[str, ...]
    loops: tuple[RecordedLoop, ...]
    buffers: tuple[RecordedBuffer, ...]
    steps: tuple[RecordedStep, ...]
    ended: bool


@dataclass(frozen=True, slots=True, repr=False)
class TraceTables:
    """One capture, whole. `Trace` (`trace.py`) adds what can be asked of it.

    `options` are the settings that produced it, as (name, value). `module_costs`, `figures` and `roofline` follow from
    the other tables: they are filled when the trace is written, for the front end, and do not count for `==`.
    """

    version: int
    title: str
    options: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    frames: tuple[Frame, ...]
    nodes: tuple[Node, ...]
    rules: tuple[Rule, ...]
    stages: tuple[Stage, ...]
    links: tuple[Link, ...]
    kernels: tuple[KernelInfo, ...]
    programs: tuple[Program, ...]
    runs: tuple[Run, ...]
    buffers: tuple[BufferInfo, ...]
    messages: tuple[Message, ...]
    memory: tuple[MemoryUse, ...] = ()
    scopes: tuple[Scope, ...] = ()
    transforms: tuple[Transform, ...] = ()
    laws: tuple[OptLaw, ...] = ()
    branches: tuple[Branch, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    roofs: tuple[Roof, ...] = ()
    recordings: tuple[Recording, ...] = ()
    checks: tuple[FiringCheck, ...] = ()
    module_costs: tuple[ModuleCost, ...] = field(default=(), compare=False)
    figures: tuple[Figures, ...] = field(default=(), compare=False)
    roofline: Roofline | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        tables = ("nodes", "rules", "stages", "links", "kernels", "programs", "runs", "buffers", "messages")
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in tables)
        return f"Trace({self.title!r}: {counts})"
