"""The Trace: everything a view may show, as plain immutable data; JSON in and out; comparable with `==`.

Ids are dense and index the tuple they name (`trace.nodes[i].id == i`). The TypeScript types are generated
from this module (`explore/schema.py`), so every field is int, float, str, bool, None, a tuple of these,
or one of the dataclasses below. Annotations state further constraints on values, by the names at the top;
`Trace.load` and the front end reject values that violate them (`explore/tracefile/valid.py`).
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
EarlierRegion = Annotated[int, Index("regions", before=True)]
EarlierText = Annotated[int, Index("stage_texts", before=True)]
MOST_US = 10**15  # 31 years: longer times are damage, and overflow when they are added or drawn
Duration = Annotated[float, AtLeast(0, MOST_US)]
Moment = Annotated[float, AtLeast(-MOST_US, MOST_US)]  # microseconds since the trace began, or a span of them
Amount = Annotated[float, AtLeast(0)]
Depth = Annotated[int, AtLeast(0, 1000)]


@dataclass(frozen=True, slots=True, repr=False)
class Frame(ReadableRow):
    """A line of the user's code.

    id: its row.
    source: the file, in `Trace.sources`.
    line: from 1.
    function: the name of the function.
    span: (line, column, line, column), the begin and the end of the part of the expression; columns in characters from
        0; of a method's call without the object. None before Python 3.11.
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
    """A file of the user's, or a notebook cell, with its text.

    id: its row.
    name: the path, or the name of the cell.
    text: all of it.
    """

    id: RowId
    name: str
    text: str

    def in_words(self) -> str:
        return f"source {self.id}: {self.name}, {count_text(len(self.text.splitlines()), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class Node(ReadableRow):
    """One IR value.

    id: its row.
    kind: a level of the trace's dialect; "lazybuffer" or "uop" where the trace has no dialect.
    op: the operation.
    src: the nodes it reads, in order.
    dtype: the element type.
    shape: of a LazyBuffer, symbolic sizes as text; None for a UOp.
    arg: the argument of the operation, as text.
    digest: equal for equal content, also in other traces.
    user: the line of the user's code, None where none is known.
    label: the first line of its box: "LOAD", "ADD".
    detail: the second line of its box: shape, index, constant.
    group: its role, which gives the color: "memory", "reduce", "loop", "alu", "const", "movement", "control" or
        "buffer".
    calls: the public functions that made a LazyBuffer, the user's own call first: ("softmax", "max").
    name: of a LazyBuffer in the user's Python: "x", "model.l1.weight"; "" for none.
    scope: the module in which a LazyBuffer was made; None for none.
    backward: whether it belongs to the gradient of that module.
    """

    id: RowId
    kind: str
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

    id: its row.
    name: the variable, or the attribute of `parent`.
    kind: its class.
    parent: the module around it, None for the outermost.
    parameter_bytes: size of its own Tensors.
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
    """The cost of a module, including the modules inside it; `Trace.modules()` gives the rows as a tree.

    The first row is the whole trace. A kernel that several modules are fused into is divided among them by the elements
    that each computes: the times of the rows inside a row add up to its time.

    id: the row.
    parent: the row of the module around it, None for the whole trace.
    scope: the module, None for the whole trace and for work of no module.
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
    attainable: the attainable rate under its roof, in GFLOP/s; None without a roof.
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
class TimelineSpan(ReadableRow):
    """Something that took time: a stage, or a launch with the median of its samples.

    Spans of one row nest or follow one another.

    row: the number of its row.
    name: of the stage or the kernel.
    started_us: its begin, in microseconds since the trace began.
    elapsed_us: its length in microseconds, without what other threads did for it.
    depth: how many spans of its row contain it.
    kernel: the kernel it belongs to, None for none.
    stage: the stage, None for a launch.
    """

    row: Count
    name: str
    started_us: float
    elapsed_us: Amount
    depth: Count = 0
    kernel: KernelId | None = None
    stage: StageId | None = None


@dataclass(frozen=True, slots=True, repr=False)
class BufferLifetime(ReadableRow):
    """A buffer from its allocation until it is freed.

    buffer: its number.
    name: its name, data type and size.
    bytes: its size.
    started_us: when it was allocated; 0 if that was before the trace.
    ended_us: when it was freed; the end of the trace if it was not.
    lane: lifetimes in one lane do not overlap; None for a buffer that is older than the trace.
    """

    buffer: BufferId
    name: str
    bytes: Count
    started_us: float
    ended_us: float
    lane: Count | None


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(ReadableRow):
    """A trace on an axis of time.

    rows: (number, name) of each row, in the order in which they are drawn.
    spans: stages and launches.
    memory: (microsecond, bytes allocated from then on), in order; older buffers count from 0 on.
    lives: the buffers, by the time of their allocation.
    end_us: the end of the last span, in microseconds.
    """

    rows: tuple[tuple[Count, str], ...]
    spans: tuple[TimelineSpan, ...]
    memory: tuple[tuple[float, int], ...]
    lives: tuple[BufferLifetime, ...]
    end_us: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class FusionEdge(ReadableRow):
    """The scheduler's decision on an edge between LazyBuffers, direct or through movements.

    src: the LazyBuffer that is read.
    dst: the one that reads it.
    mark: "fused", computed where it is read; "cut", one kernel stores it and another one reads it; "again", computed
        in several kernels; "read", it was in memory already.
    illegal: why the edge cannot be joined if it is cut, or cut if it is not; "" where it can.
    """

    src: NodeId
    dst: NodeId
    mark: Annotated[str, OneOf(("fused", "cut", "again", "read"))]
    illegal: str


@dataclass(frozen=True, slots=True, repr=False)
class KernelScript(ReadableRow):
    """The script of a kernel, without the texts that a page has already.

    The script is `texts[0]`, the text that `inserts[0]` names, `texts[1]`, and so on.

    kernel: its kernel.
    texts: parts of the script, one more than `inserts`.
    inserts: "shared", the code of all scripts, or the language of a listing of the kernel.
    """

    kernel: KernelId
    texts: tuple[str, ...]
    inserts: tuple[Annotated[str, OneOf(("shared", "llvm", "c"))], ...]


@dataclass(frozen=True, slots=True, repr=False)
class RuleInfo(ReadableRow):
    """A rewrite rule, with its source code.

    id: its row.
    name: of the rule.
    law: the law that it states, as text.
    doc: its docstring.
    file: the file of its code.
    line: the first line there, from 1.
    text: its source code.
    """

    id: RowId
    name: str
    law: str
    doc: str
    file: str
    line: Count
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Transform(ReadableRow):
    """A pass over whole graphs, with its source code.

    id: its row.
    name: of the pass.
    law: its effect, as text.
    file: the file of its function.
    line: the first line there, from 1.
    text: the source code of its function.
    """

    id: RowId
    name: str
    law: str
    file: str
    line: Count
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Step(ReadableRow):
    """One change in a stage. A rewrite pass has one for each firing. A transform has one for the whole graph, or none
    where nothing changed.

    rule: the rule that fired; None where a node was rebuilt because its sources changed.
    before: the node that was replaced.
    after: the node in its place.
    at_us: microseconds since the stage began.
    """

    rule: RuleId | None
    before: NodeId
    after: NodeId
    at_us: Moment


@dataclass(frozen=True, slots=True, repr=False)
class Compared(ReadableRow):
    """Two numbers that led to a decision.

    what: the name of the quantity.
    value: its value.
    bound: the limit.
    over: whether the value is over the limit.
    """

    what: str
    value: float
    bound: float
    over: bool


@dataclass(frozen=True, slots=True, repr=False)
class Decision(ReadableRow):
    """The scheduler's decision on a LazyBuffer, and its reason.

    node: the LazyBuffer.
    decision: "realize", "fuse", "duplicate", "keep", "view", "split", "merge" or "hoist".
    reason: as text.
    compared: the numbers that the scheduler compared, in that order.
    legality_error: why the node cannot be computed where it is read; "" where it can, at whatever cost.
    """

    node: NodeId
    decision: str
    reason: str
    compared: tuple[Compared, ...] = ()
    legality_error: str = ""

    def in_words(self) -> str:
        return f"node {self.node}: {self.decision}, {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class OptLaw(ReadableRow):
    """The effect of a kind of opt.

    id: its row.
    name: of the kind.
    words: the effect, as text.
    before: a loop nest before the opt.
    after: the same loop nest after it.
    """

    id: RowId
    name: str
    words: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, repr=False)
class OptStep(ReadableRow):
    """An opt that was proposed for a kernel.

    opt: the opt, as text.
    applied: whether it was applied; else it was rejected.
    reason: why it was applied, or why it is illegal.
    laws: what its kind does.
    axis: the axis that it changes, with its size before: "g1 of 32"; "" where it was rejected.
    made: the axes that are new after it.
    """

    opt: str
    applied: bool
    reason: str
    laws: tuple[LawId, ...] = ()
    axis: str = ""
    made: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Weighed(ReadableRow):
    """The scores from which a decision chose.

    what: the quantity that the scores measure.
    options: (option, score) of each.
    chosen: the option that was chosen, "" for none.
    least: whether the lowest score is the best.
    """

    what: str
    options: tuple[tuple[str, float], ...]
    chosen: str
    least: bool


@dataclass(frozen=True, slots=True, repr=False)
class Choice(ReadableRow):
    """One heuristic of the default schedule, in the order in which they run.

    name: of the heuristic.
    law: what it proposes, when and why.
    settled_by: the earlier heuristic that made this one unnecessary; "" where it ran.
    compared: the numbers that it compared.
    weighed: the scores from which it chose.
    opts: the opts of the stage that it proposed, by their positions.
    """

    name: str
    law: str
    settled_by: str
    compared: tuple[Compared, ...]
    weighed: tuple[Weighed, ...]
    opts: tuple[Count, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Candidate(ReadableRow):
    """One candidate of a search.

    opts: the opts applied to the kernel.
    best_us: its best time in microseconds; None where it failed.
    note: why it failed, or where else the time is from.
    """

    opts: tuple[str, ...]
    best_us: Duration | None
    note: str = ""

    def in_words(self) -> str:
        time = self.note or "lost" if self.best_us is None else duration_text(self.best_us)
        return f"{' '.join(self.opts) or 'no opts'}: {time}"


@dataclass(frozen=True, slots=True, repr=False)
class Search(ReadableRow):
    """The result of a search. The default schedule and the best candidate are timed alternately; they are the same
    if no candidate was faster.

    before_us: time of the default schedule in microseconds; None where it could not be measured.
    after_us: time of the best candidate in microseconds; None where it could not be measured.
    tried: the number of candidates that were measured.
    reason: the result, as text.
    """

    before_us: Duration | None
    after_us: Duration | None
    tried: Count
    reason: str

    def in_words(self) -> str:
        times = [
            "no time" if time_us is None else duration_text(time_us) for time_us in (self.before_us, self.after_us)
        ]
        count = count_text(self.tried, "candidate")
        return f"search of {count}: {times[0]} by the heuristics' opts, {times[1]} by the best; {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Stage(ReadableRow):
    """One stage of the compiler.

    id: its row.
    name: "schedule", "optimize", "lower", a pass's name, "linearize", "render", "compile", "run", ….
    parent: the stage around it, None for an outermost one.
    kernel: the kernel it worked for, None for all.
    before: the root nodes of the graph that it got; several for a schedule.
    after: the root nodes of the graph that it returned.
    started_us: microseconds since the trace began.
    elapsed_us: its time in microseconds, with the work of other threads for it.
    steps: the firings of a rewrite pass, in order.
    decisions: the scheduler's decisions.
    opts: the opts that were proposed, in order.
    candidates: those that a search timed, in order.
    search: the result of the search, None without one.
    thread: 0 for the thread that computes, else the number of a compiler thread.
    transform: the pass over whole graphs that this stage is, None for others.
    choices: the heuristics that chose the opts, in order.
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
    """Provenance: one node was made from another one.

    src: the earlier node.
    dst: the node made from it.
    how: "rewrite", "rebuild", the name of a transform, or the word of a `Derived` event.
    stage: the stage that made it, None for none.
    """

    src: NodeId
    dst: NodeId
    how: str
    stage: StageId | None

    def in_words(self) -> str:
        return f"node {self.dst} from node {self.src}: {self.how}"


@dataclass(frozen=True, slots=True, repr=False)
class Line(ReadableRow):
    """A line of a listing.

    text: without the line end.
    nodes: the UOps that it was made from.
    """

    text: str
    nodes: tuple[NodeId, ...]

    def in_words(self) -> str:
        return self.text or "(empty line)"


@dataclass(frozen=True, slots=True, repr=False)
class TextLine(ReadableRow):
    """A line of the text after a stage.

    text: the line.
    nodes: those that it is or came from.
    origin: the line of the text before, from 0, that it came from.
    """

    text: str
    nodes: tuple[NodeId, ...] = ()
    origin: Count | None = None

    def in_words(self) -> str:
        return self.text or "(empty line)"


@dataclass(frozen=True, slots=True, repr=False)
class StageText(ReadableRow):
    """The text of the compiled program after a stage, such as LLVM IR after one of LLVM's passes.

    id: the row.
    stage: the stage after which it looks so.
    language: a key of the dialect's languages.
    lines: the text.
    title: the name of the text, where a stage has several.
    before: the text that it is compared with, None for the first one.
    """

    id: RowId
    stage: StageId
    language: str
    lines: tuple[TextLine, ...]
    title: str = ""
    before: EarlierText | None = None

    def in_words(self) -> str:
        name = f" of {self.title}" if self.title else ""
        return f"text {self.id}{name}: {self.language} after stage {self.stage}, {count_text(len(self.lines), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class Region(ReadableRow):
    """A block, a computation or a function.

    id: the row.
    name: as the compiler calls it.
    kind: "block", "computation", "function", or another word of the compiler.
    nodes: those that stand directly in it.
    parent: the region around it.
    """

    id: RowId
    name: str
    kind: str
    nodes: tuple[NodeId, ...] = ()
    parent: EarlierRegion | None = None

    def in_words(self) -> str:
        return f"{self.kind} {self.name}: {count_text(len(self.nodes), 'node')}"


@dataclass(frozen=True, slots=True, repr=False)
class BackEdge(ReadableRow):
    """An operand that stands at or after its user.

    src: the next value of `dst`.
    dst: a phi, or an argument of a block.
    """

    src: NodeId
    dst: NodeId

    def in_words(self) -> str:
        return f"node {self.dst} from the later node {self.src}"


@dataclass(frozen=True, slots=True, repr=False)
class OutsideOperation(ReadableRow):
    """An operation that another library computed between the kernels, such as one of PyTorch's ATen.

    node: its first result.
    name: of the operation: "aten.polygamma".
    time_us: of its only call, in microseconds.
    """

    node: NodeId
    name: str
    time_us: Duration

    def in_words(self) -> str:
        return f"{self.name} (node {self.node}), {duration_text(self.time_us)}"


@dataclass(frozen=True, slots=True, repr=False)
class Level(ReadableRow):
    """A kind of nodes.

    kind: the value of `Node.kind`.
    name, plural: the name of one of them, and of several.
    role: "tensors" for the graph of the whole program, "program" for that of a stage, "lines" for nodes that are in no
        graph and lead from lines of texts to lines of Python.
    """

    kind: str
    name: str
    plural: str
    role: Annotated[str, OneOf(("tensors", "program", "lines"))]


@dataclass(frozen=True, slots=True, repr=False)
class Language(ReadableRow):
    """A language of listings and texts.

    key: as listings and texts have it.
    name: on the screen.
    """

    key: str
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class Dialect(ReadableRow):
    """The vocabulary of a compiler's trace, and the panels that it supports.

    compiler: its name.
    version: the one that was recorded, "" where that is unknown.
    levels: the kinds of its nodes.
    languages: those of its listings and texts.
    panels: those that it supports; all others are absent.
    notes: the parts that could not be read.
    """

    compiler: str
    version: str
    levels: tuple[Level, ...]
    languages: tuple[Language, ...]
    panels: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def in_words(self) -> str:
        return f"{self.compiler} {self.version}".strip()


@dataclass(frozen=True, slots=True, repr=False)
class Program(ReadableRow):
    """One listing of one kernel.

    id: its row.
    kernel: its kernel.
    language: "uops", "c", "llvm", "llvm-opt", "asm", "python", ….
    lines: its lines, in order.
    effort: how much LLVM optimizes what the device compiles: "full", "light" or "least"; else "".
    branches: whether it simplifies branches all the same.
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
    """One kernel: what it computes, its opts, its loops and its cost.

    id: its row.
    name: of the program.
    device: where it runs.
    roots: the LazyBuffers that it stores.
    nodes: all LazyBuffers fused into it.
    buffers: its arguments, in order.
    opts: those that were applied, in order.
    axes: (name, kind, size) of each loop, outermost first; a symbolic size is its arithmetic, as text.
    flops: floating-point operations of one run.
    bytes_moved: bytes that it reads and writes, each once.
    compile_us: time to compile it, in microseconds.
    cached: whether its program came from a cache.
    same_as: an earlier kernel whose program it reuses, else None.
    calls: the user's calls that its LazyBuffers come from, each once.
    known: "in this process" or "on disk" where a run without a recorder would have found it in a cache; else "".
    code_bytes: size of its machine code, 0 where it is unknown.
    not_run: why it has no times: this machine cannot execute it, or it takes too long to sample; "" where it has.
    nest: its loops and statements, as the program runs them, without memory accesses.
    bytes_written: the part of `bytes_moved` that it stores.
    arithmetic: the types of its floating-point operations: "float32", "int8 dot".
    title: its name from the user's Python: "x @ w", "softmax of scores".
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
    """The samples of one launch. All runs of a trace are of one kind.

    id: its row.
    kernel: its kernel.
    times_us: microseconds, in the order measured.
    median_us: the median of the samples.
    low_us: the first quartile.
    high_us: the third quartile.
    started_us: when the launch itself began, in microseconds since the trace began.
    first_us: how long the launch itself took.
    warm: whether the samples are further runs with warm caches; else the launch itself is the only sample.
    single_us: samples on one thread, of a kernel that several threads share.
    waited: seconds that threads waited for a core / seconds of the samples; None where it is unknown.
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

    name: as shown: "float32 arithmetic", "read L2".
    kind: what the rate counts, which gives its unit.
    rate: "arithmetic": 10⁹ operations a second. "memory": 10⁹ bytes a second. "clock": GHz. "launch": microseconds of
        the smallest kernel. "gather": 10⁹ loads a second from random positions. "runs": 10⁹ bytes a second in runs of
        `what` bytes, each in another row of 16 KB.
    holds: the working set in bytes, 0 for any.
    what: the type of the operations ("float32", "int8 dot"), the use of each byte ("read", "copy", "write", "triad":
        two reads and a write), or the length of a run in bytes ("4": a single float).
    threads: how many threads worked together.
    samples: all measured rates.
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
    """The ceilings that apply to one kernel.

    kernel: its kernel.
    gflops: 10⁹ operations a second of its types of arithmetic; 0 where it is unknown.
    gb_per_s: 10⁹ bytes a second of its working set, for its share of writes; 0 where it is unknown.
    arithmetic: the name of the ceiling of arithmetic.
    memory: the name of the ceiling of memory.
    spread: of the samples of both, as a share of the rate.
    """

    kernel: KernelId
    gflops: Duration
    gb_per_s: Duration
    arithmetic: str
    memory: str
    spread: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class BufferInfo(ReadableRow):
    """A device buffer and its life.

    id: its row.
    device: where it is.
    dtype: the element type.
    size: the number of elements.
    bytes: its size.
    allocated_us: microseconds since the trace began; None where it is older than the trace.
    freed_us: microseconds since the trace began; None where it outlives the trace.
    name: of its contents in the user's Python, "" for none.
    maker: the first kernel of the trace that wrote it, None for none.
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
    """Memory of the intermediates of one schedule, or of a captured call.

    id: its row.
    total_bytes: the sum of their sizes.
    bound_bytes: the most bytes that are live at one time.
    peak_bytes: what they take where they share memory.
    lives: (bytes, first item, last item, offset in the shared memory) of each.
    """

    id: RowId
    total_bytes: Count
    bound_bytes: Count
    peak_bytes: Count
    lives: tuple[tuple[Count, Count, Count, Count], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Message(ReadableRow):
    """A remark on the whole trace.

    level: how serious it is.
    text: the remark.
    frame: the line of the user's code that it is about, None for none.
    """

    level: Annotated[str, OneOf(("error", "warning", "note"))]
    text: str
    frame: FrameId | None


@dataclass(frozen=True, slots=True, repr=False)
class Touch(ReadableRow):
    """The accesses of one step of a loop to an operand.

    buffer: its position among the kernel's arguments, None for scratch memory.
    name: in the user's Python, else "data1".
    bytes: size of the cache lines.
    again: whether every step of the loop reads the same.
    stride: elements by which a step moves the address, None where that differs.
    """

    buffer: Count | None
    name: str
    bytes: Count
    again: bool
    stride: int | None


@dataclass(frozen=True, slots=True, repr=False)
class NestLine(ReadableRow):
    """A line of an annotated loop nest: a loop or a statement.

    depth: how many loops are around it.
    text: the line.
    axis: the id of the loop's axis, None for a statement.
    kind: of the axis; "" for a statement.
    size: of the axis, symbolic as text; 0 for a statement.
    touches: the accesses of one step of the loop, by operand.
    bytes: the working set of one step.
    cache: the first level that holds it: "L1", "L2", "L3" or "memory".
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
    """An opt that may be tried on an axis.

    op: the kind of the opt.
    axis: the id of the axis.
    amounts: the usual amounts; of some kinds an amount is another axis' id, of some 0 and without a meaning.
    legality_error: why it is illegal, "" where it is legal.
    caution: why a legal one may be slow, "" for no reason.
    """

    op: str
    axis: Count
    amounts: tuple[Count, ...]
    legality_error: str = ""
    caution: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(ReadableRow):
    """A listing of a kernel in a branch.

    language: one of those of `Program`.
    lines: its lines, in order.
    """

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class StageTime(ReadableRow):
    """A stage that made a kernel of a branch.

    name: of the stage.
    elapsed_us: its time in microseconds.
    steps: how many firings it had.
    """

    name: str
    elapsed_us: Duration
    steps: Count


@dataclass(frozen=True, slots=True, repr=False)
class KernelVariant(ReadableRow):
    """A kernel in a branch.

    A worker process ran it in separate memory. Times are in microseconds. The candidates of a search have no listings,
    nest and offers.
    The times and the base times are taken alternately, and only these two may be compared: two branches are timed at
    different times.

    kernel: the captured kernel that it replaces, None for a new one.
    name: of the program.
    device: where it runs.
    opts: those that were applied, in order.
    steps: all opts that were proposed, with their reasons.
    axes: (name, kind, size) of each loop, outermost first.
    nest: its loops and statements, with their accesses.
    offers: the opts that may be tried next.
    listings: its texts.
    stages: the stages that made it.
    times_us: all samples; none where it could not be timed.
    median_us: the median, None without samples.
    low_us: the first quartile, None without samples.
    high_us: the third quartile, None without samples.
    flops: floating-point operations of one run.
    bytes_moved: bytes that it reads and writes, each once.
    bytes_loaded: bytes that its load instructions read.
    compile_us: time to compile it.
    caches: (name, bytes) of the target's caches.
    base_times_us: samples of the kernel as captured, of an edit those of the text before it; none for that kernel
        itself.
    base_median_us: their median, None without samples.
    base_low_us: their first quartile, None without samples.
    base_high_us: their third quartile, None without samples.
    verdict: the comparison of both.
    note: a remark on this kernel ("its results are wrong").
    uops: how many UOps one run executes, a vector's as one; 0 where it is unknown.
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
    """A firing of the rule that a branch is about.

    kernel: the kernel whose pass it is in.
    stage: the name of the pass.
    step: the number of the firing in the pass, from 1.
    rule: the name of the rule.
    before: the node that was replaced, as text.
    after: the node in its place, as text.
    node: the digest of the node that it fired on.
    verdict: the result of the check.
    says: the result as text.
    inputs: (name, value) at which both differ; empty where they do not.
    was: the value of `before` there.
    has_become: the value of `after` there.
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
    """The check of a firing of this trace.

    stage: the pass.
    step: the number of the firing in the pass, from 1.
    verdict: the result of the check.
    says: the result as text.
    inputs: (name, value) at which both sides differ; empty where they do not.
    was: the value before the firing there.
    has_become: the value after the firing there.
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
    """A kernel or a copy of a schedule in a branch. Times are of one run of the whole schedule, in microseconds; None
    where it was not run.

    name: of the program.
    device: where it runs.
    kernel: the captured kernel that is the same, None for a new one.
    digest: equal for equal kernels.
    nodes: the LazyBuffers that it computes.
    roots: the LazyBuffers that it stores.
    reads: the LazyBuffers that it reads from memory.
    flops: floating-point operations of one run.
    bytes_moved: bytes that it reads and writes, each once.
    median_us: the median of its samples.
    low_us: the first quartile.
    high_us: the third quartile.
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
    """An output of a schedule in a branch, compared with that of the captured schedule. Both are computed from the same
    generated inputs.

    node: the output.
    difference: the largest between two finite elements that were read.
    same: whether rounding explains the difference.
    dtype: the element type.
    magnitude: the largest finite element.
    tolerance: what `same` allows, relative to the elements; 0 for nothing.
    """

    node: NodeId
    difference: Amount
    same: bool
    dtype: str = ""
    magnitude: Amount = 0.0
    tolerance: Amount = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class ScheduleVariant(ReadableRow):
    """A schedule in a branch. It and the captured one are timed alternately, in microseconds.

    stage: the captured schedule.
    cut: the LazyBuffers that the reader stores in memory.
    join: the LazyBuffers that the reader fuses.
    kernels: all kernels, in order.
    decisions: the last decision on each LazyBuffer.
    total_bytes: the sum of the sizes of the intermediates.
    peak_bytes: what they take where they share memory.
    times_us: samples of all kernels, one run after another.
    base_times_us: samples of the captured schedule.
    median_us: the median, None without samples.
    low_us: the first quartile, None without samples.
    high_us: the third quartile, None without samples.
    base_median_us: the median of the captured schedule, None without samples.
    base_low_us: its first quartile, None without samples.
    base_high_us: its third quartile, None without samples.
    verdict: the comparison of both.
    outputs: the comparison of the values.
    edges: the fusion edges to the LazyBuffers that its kernels compute.
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
    edges: tuple[FusionEdge, ...] = ()

    @property
    def bytes_moved(self) -> int:
        """The bytes that all kernels read and write."""
        return sum(kernel.bytes_moved for kernel in self.kernels)

    @property
    def flops(self) -> int:
        """The floating-point operations of all kernels."""
        return sum(kernel.flops for kernel in self.kernels)


@dataclass(frozen=True, slots=True, repr=False)
class CommandInfo(ReadableRow):
    """A command of `explore.whatif` as data.

    kind: the name of its class.
    arguments: (name, value) of each.
    """

    kind: str
    arguments: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic(ReadableRow):
    """A message of a compiler on a text.

    line: from 1, 0 where it names none.
    column: from 1, 0 where it names none.
    level: how serious it is.
    text: the message.
    """

    line: Count
    column: Count
    level: Annotated[str, OneOf(("error", "warning", "note"))]
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Difference(ReadableRow):
    """An element of a result that is not the expected one.

    buffer: the name of the result.
    index: the position of the element.
    found: its value, as text.
    expected: the right value, as text.
    """

    buffer: str
    index: Count
    found: str
    expected: str


@dataclass(frozen=True, slots=True, repr=False)
class Edited(ReadableRow):
    """The result of editing a text of a kernel. Its results are compared with those of the text before the edit.

    stage: "c", "llvm" or "uops".
    diagnostics: the messages of its compiler.
    ended: how its process ended, as text; "" where it ended well.
    against: the reference of the comparison, "" without a comparison.
    verdict: the result of the comparison.
    compared: how many elements were compared.
    differing: how many of them differ by more than rounding.
    largest_error: the largest absolute difference, None where one side is no finite number.
    magnitude: the largest finite element of that buffer.
    tolerance: what rounding may do, relative to the elements; 0 for nothing.
    first: the first element that differs, None for none.
    before_us: times of the text before the edit, taken alternately with those of the branch.
    unprotected: what this system cannot guard.
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
    """The result of a command: the trace as it would be otherwise.

    id: its row.
    parent: the branch that it continues, None for the capture.
    kernel: the kernel that the command is about, None for none.
    command: the command.
    status: "failed" keeps what was made until then.
    reason: why it failed; "" where it did not.
    kernels: the kernels that it changed.
    labels: its names: "as captured", "heuristics".
    rule_law: the law of the rule that the command is about; "" for none.
    rule_text: the source code of that rule.
    firings: the firings of that rule, each checked.
    edited: the result of an edited text, None for other commands.
    schedule: the schedule, None for commands about other things.
    search: the times of a search, None without one. They cannot be compared with other times.
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
        asked_for = self._asked()
        parts = [f"branch {self.id}", asked_for]
        for variant in self.kernels[:1]:
            time = " · ".join(_times(variant)) or "not timed"
            opts = " ".join(variant.opts) or "no opts"
            suffix = asked_for.replace("), ", ") ").endswith(f": {opts}")
            parts += [variant.name if suffix else f"{variant.name}: {opts}", time]
        if self.schedule is not None:
            parts.append(f"{len(self.schedule.kernels)} kernels")
            parts += _times(self.schedule) or ["not timed"]
        return " · ".join([*parts, *([self.reason] if self.reason else [])])

    def _asked(self) -> str:
        """The command as a sentence where its arguments are texts, which may be long; else as it is written."""
        match self.command.kind, dict(self.command.arguments):
            case "SetOpts", {"opts": opts}:
                return f"opts set: {_one_line(opts) or 'no opts'}"
            case "Edit", {"stage": "opts", "text": opts}:
                return f"edit of the opts: {_one_line(opts) or 'no opts'}"
            case "Edit", {"stage": stage}:
                return f"edit of the {LANGUAGE_NAMES.get(str(stage), stage)}"
            case kind, arguments:
                return f"{kind}({', '.join(map(_one_line, arguments.values()))})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text that IPython prints, without all the listings."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """The command with its kernels: opts, time with its spread, that of the captured kernel, taken alternately with
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
    """The time, the time of the base, which was taken alternately, and the comparison, as far as they exist."""
    mine = spread_text(variant.median_us, variant.low_us, variant.high_us)
    base = spread_text(variant.base_median_us, variant.base_low_us, variant.base_high_us)
    if isinstance(variant, ScheduleVariant) and not (variant.cut or variant.join):
        base = ""  # it is the captured schedule itself
    ratio = ratio_text(variant.median_us, variant.base_median_us, variant.verdict, "the base") if base else ""
    return [text for text in (mine, base and f"base {base}", ratio) if text]


def _one_line(value: int | str) -> str:
    """An argument of a command on one line."""
    return " ".join(str(value).split())


@dataclass(frozen=True, slots=True, repr=False)
class RecordedLoop(ReadableRow):
    """A loop of a linear program.

    begin: the line of the listing at which it begins.
    end: the line at which it ends.
    name: of its counter.
    """

    begin: Count
    end: Count
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class RecordedBuffer(ReadableRow):
    """The contents of a buffer before its kernel ran.

    name: in the listing.
    size: the number of elements.
    width: elements in a drawn row.
    cells: the first elements, as text.
    """

    name: str
    size: Count
    width: LineNumber
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class RecordedStep(ReadableRow):
    """A step of a kernel.

    place: the line of the UOp that ran.
    slot: the line whose value changed; of an ASSIGN that of its accumulator.
    value: a text for each lane.
    buffer: the buffer that an access reads or writes; "" for other steps.
    stored: whether the access writes.
    index: of an access, the element for each lane; None where the lane is not valid.
    """

    place: Count
    slot: Count
    value: tuple[str, ...]
    buffer: str = ""
    stored: bool = False
    index: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Recording(ReadableRow):
    """The first steps of a kernel, which a page without an engine can show.

    id: its row.
    kernel: its kernel.
    name: of the program.
    note: a remark, as on inputs that were generated.
    listing: the lines of the program.
    loops: its loops.
    buffers: its buffers.
    steps: its steps, in order.
    ended: whether these are all steps.
    """

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
    """One capture. `Trace` (`trace.py`) adds its queries.

    `module_costs` and the fields after it follow from the other tables: `trace_to_bytes` computes them for the front
    end, and `==` ignores them.

    version: of the format.
    title: of the capture.
    options: (name, value) of the settings that produced it.
    sources: the user's files.
    frames: the lines of the user's code.
    nodes: all LazyBuffers and UOps.
    rules: the rewrite rules that fired.
    stages: the stages of the compiler; parents come first.
    links: which node was made from which.
    kernels: in the order of their launches.
    programs: the listings of the kernels.
    runs: the samples of the kernels.
    buffers: the device buffers.
    messages: remarks on the whole trace.
    memory: of the intermediates, by schedule.
    scopes: the user's modules.
    transforms: the passes over whole graphs.
    laws: the effect of each kind of opt.
    branches: the commands that were tried.
    ceilings: the measured ceilings of the machine; empty where they were not measured.
    roofs: the ceilings that apply to each kernel.
    recordings: recorded steps of kernels.
    checks: checks of firings.
    stage_texts: the texts after stages.
    regions: blocks, computations and functions of another compiler.
    back_edges: operands that come after their users.
    dialect: of another compiler; None for this one.
    origins: of a program of another front end, the operations of its graph that each kernel computes.
    outside: the operations that another library computed, in the order of their calls.
    module_costs: time and memory by module.
    figures: of the whole trace, then of each kernel.
    roofline: the timed kernels under their ceilings; None before it is computed.
    kernel_time: the timeline of the runs alone; None before it is computed.
    elapsed_time: the timeline with the stages of the compiler; None before it is computed.
    fusion_edges: the scheduler's decision on each edge.
    scripts: the scripts of the kernels.
    """

    version: int
    title: str
    options: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    frames: tuple[Frame, ...]
    nodes: tuple[Node, ...]
    rules: tuple[RuleInfo, ...]
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
    stage_texts: tuple[StageText, ...] = ()
    regions: tuple[Region, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()
    dialect: Dialect | None = None
    origins: tuple[Program, ...] = ()
    outside: tuple[OutsideOperation, ...] = ()
    module_costs: tuple[ModuleCost, ...] = field(default=(), compare=False)
    figures: tuple[Figures, ...] = field(default=(), compare=False)
    roofline: Roofline | None = field(default=None, compare=False)
    kernel_time: Timeline | None = field(default=None, compare=False)
    elapsed_time: Timeline | None = field(default=None, compare=False)
    fusion_edges: tuple[FusionEdge, ...] = field(default=(), compare=False)
    scripts: tuple[KernelScript, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        tables = ("nodes", "rules", "stages", "links", "kernels", "programs", "runs", "buffers", "messages")
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in tables)
        return f"Trace({self.title!r}: {counts})"
