"""The Trace: all data that a view may show, as plain immutable dataclasses; JSON in and out; comparable with `==`.

Ids are dense and index the tuple that they name (`trace.nodes[i].id == i`). `explore/schema.py` generates the
TypeScript types from this module. Every field is therefore int, float, str, bool, None, a tuple of these, or one of the
dataclasses below. The annotated types at the top constrain values further. `Trace.load` and the front end reject values
that violate these constraints (`explore/tracefile/validation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow, Table
from tinyexplore.explore.tracefile.texts import LANGUAGE_NAMES, duration_text, ratio_text, spread_text
from tinyexplore.explore.tracefile.validation import AtLeast, Id, Index, OneOf

TRACE_VERSION = 1

RowId = Annotated[int, Id()]
SourceId = Annotated[int, Index("sources")]
FrameId = Annotated[int, Index("frames")]
NodeId = Annotated[int, Index("nodes")]
EarlierNode = Annotated[int, Index("nodes", before=True)]
TransformId = Annotated[int, Index("transforms")]
OptEffectId = Annotated[int, Index("laws")]
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
MAX_US = 10**15  # 31 years: a longer time is damaged data, and would overflow in sums and drawings
Duration = Annotated[float, AtLeast(0, MAX_US)]
Moment = Annotated[float, AtLeast(-MAX_US, MAX_US)]  # microseconds since the trace began, or a span of them
Amount = Annotated[float, AtLeast(0)]
Depth = Annotated[int, AtLeast(0, 1000)]


@dataclass(frozen=True, slots=True, repr=False)
class Frame(DisplayableRow):
    """A line of the user's code.

    id: its row.
    source: the file, an index of `Trace.sources`.
    line: the line number, from 1.
    function: the name of the function.
    span: (line, column, line, column): start and end of the expression in the source; columns count characters from 0.
        For a method call, the object is excluded. None before Python 3.11.
    """

    id: RowId
    source: SourceId
    line: LineNumber
    function: str
    span: tuple[LineNumber, Count, LineNumber, Count] | None = None

    def as_text(self) -> str:
        return f"frame {self.id}: {self.function}, line {self.line} of source {self.source}"


@dataclass(frozen=True, slots=True, repr=False)
class Source(DisplayableRow):
    """A file of the user, or a notebook cell, with its text.

    id: its row.
    name: the path of the file, or the name of the cell.
    text: the whole text.
    """

    id: RowId
    name: str
    text: str

    def as_text(self) -> str:
        return f"source {self.id}: {self.name}, {count_text(len(self.text.splitlines()), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class Node(DisplayableRow):
    """One IR value.

    id: its row.
    kind: a level of the trace's dialect; "lazybuffer" or "uop" where the trace has no dialect.
    op: the operation.
    src: its operands, in order.
    dtype: the element type.
    shape: the shape of a LazyBuffer, symbolic sizes as text; None for a UOp.
    arg: the argument of the operation, as text.
    digest: equal for equal content, also in other traces.
    user: the line of the user's code, None if unknown.
    label: the first line of its box: "LOAD", "ADD".
    detail: the second line of its box: shape, index, constant.
    group: its role, which gives the color: "memory", "reduce", "loop", "alu", "const", "movement", "control" or
        "buffer".
    calls: the public functions that created a LazyBuffer, the user's own call first: ("softmax", "max").
    name: the name of a LazyBuffer in the user's Python: "x", "model.l1.weight"; "" for none.
    scope: the module that created a LazyBuffer; None for none.
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

    def as_text(self) -> str:
        parts = [self.op, self.dtype, *([] if self.shape is None else [f"shape {_tuple_text(self.shape)}"])]
        parts += [f"of {', '.join(map(str, self.src))}"] if self.src else []
        return f"node {self.id}{f' {self.name}' if self.name else ''}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, repr=False)
class Scope(DisplayableRow):
    """A module of the user (`model`, its `layers[0]`): an object that holds Tensors and whose methods created
    LazyBuffers.

    id: its row.
    name: the name of the variable, or of the attribute of `parent`.
    kind: the name of its class.
    parent: the module that contains it, None for an outermost module.
    parameter_bytes: the size of its own Tensors, in bytes.
    """

    id: RowId
    name: str
    kind: str
    parent: EarlierScope | None
    parameter_bytes: Count

    def as_text(self) -> str:
        return f"module {self.id}: {self.name} ({self.kind}), {self.parameter_bytes:,} bytes of its own Tensors"


@dataclass(frozen=True, slots=True, repr=False)
class ModuleCost(DisplayableRow):
    """The cost of a module, including the modules inside it; `Trace.modules()` gives the rows as a tree.

    The first row is the whole trace. If several modules are fused into one kernel, its time is divided among them by
    the elements that each computes. The times of the rows inside a row therefore add up to its time.

    id: the row.
    parent: the row of the module around it, None for the whole trace.
    scope: the module, None for the whole trace and for work outside of modules.
    time_us: its share of the kernels' median times, in microseconds.
    backward_us: the part of `time_us` for gradients, in microseconds.
    parameter_bytes: the size of its Tensors, in bytes.
    result_bytes: the size of the buffers that kernels stored for it, in bytes.
    kernels: the kernels that compute a part of it.
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
class Figure(DisplayableRow):
    """The figures of one part of the pipeline.

    place: the key of the part.
    title: the display name of the part.
    words: the counts of the part, as text.
    time_us: the time of the part in microseconds, 0 if it takes none.
    """

    place: Annotated[str, OneOf(("python", "lazy", "kernels", "passes", "uops", "code", "run"))]
    title: str
    words: str
    time_us: Amount

    @property
    def time(self) -> str:
        return duration_text(self.time_us) if self.time_us > 0 else ""


@dataclass(frozen=True, slots=True, repr=False)
class Figures(DisplayableRow):
    """The figures of a whole trace, or of one kernel.

    kernel: the kernel, None for the whole trace.
    parts: the parts of the pipeline, in order.
    compile_us: the sum of all parts except the run, in microseconds.
    search_us: the time of searches and their compilations, in microseconds; no part includes it.
    run_us: one run of each kernel, the sum of the medians, in microseconds.
    firings: how many times a rule was applied in `passes`.
    passes: the rewrite passes: stages that receive a graph and contain no stage.
    code: the last stage that generated code.
    summary: the times of all kernels, as parts of one line; empty for one kernel.
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
class RooflinePoint(DisplayableRow):
    """A timed kernel in the roofline plot.

    kernel: the id of the kernel.
    flops_per_byte: arithmetic intensity: operations for each byte that it reads or writes.
    gflops: the measured speed, in 10⁹ operations a second.
    attainable: the attainable speed under its roof, in GFLOP/s; None without a roof.
    limit: the ceiling that limits it: "memory", "arithmetic", or "" without a roof.
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
        """Returns the measured speed divided by the attainable speed; None without a roof."""
        return self.gflops / self.attainable if self.attainable else None


@dataclass(frozen=True, slots=True, repr=False)
class RooflineCeiling(DisplayableRow):
    """A ceiling in the roofline plot.

    name: the name of the ceiling.
    kind: "memory" or "arithmetic".
    rate: the rate, in GB/s or GFLOP/s.
    """

    name: str
    kind: Annotated[str, OneOf(("memory", "arithmetic"))]
    rate: Amount


@dataclass(frozen=True, slots=True, repr=False)
class Roofline(DisplayableRow):
    """The timed kernels of a trace under the ceilings of the machine.

    points: one point per kernel, except for kernels without floating-point arithmetic.
    ceilings: the ceilings of the kernels' roofs, each once.
    note: the origin of the ceilings, and which kernels have no point.
    """

    points: tuple[RooflinePoint, ...]
    ceilings: tuple[RooflineCeiling, ...]
    note: str


@dataclass(frozen=True, slots=True, repr=False)
class TimelineSpan(DisplayableRow):
    """A stage, or a launch with the median of its samples, as an interval of time.

    Spans of one row are nested or follow one another.

    row: the number of its row.
    name: the name of the stage or the kernel.
    started_us: its start, in microseconds since the trace began.
    elapsed_us: its length in microseconds, without the work of other threads for it.
    depth: how many spans of its row contain it.
    kernel: the kernel that it belongs to, None for none.
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
class BufferLifetime(DisplayableRow):
    """The lifetime of a buffer, from allocation to deallocation.

    buffer: the id of the buffer.
    name: its name, data type and size.
    bytes: its size in bytes.
    started_us: when it was allocated, in microseconds; 0 if that was before the trace.
    ended_us: when it was freed, in microseconds; the end of the trace if it was not freed.
    lane: lifetimes in one lane do not overlap; None for a buffer that is older than the trace.
    """

    buffer: BufferId
    name: str
    bytes: Count
    started_us: float
    ended_us: float
    lane: Count | None


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(DisplayableRow):
    """The stages, launches and buffers of a trace on a time axis.

    rows: (number, name) of each row, from top to bottom.
    spans: the stages and launches.
    memory: (microsecond, bytes allocated from then on), in order; older buffers count from 0 on.
    lives: the lifetimes of the buffers, by the time of allocation.
    end_us: the end of the last span, in microseconds.
    """

    rows: tuple[tuple[Count, str], ...]
    spans: tuple[TimelineSpan, ...]
    memory: tuple[tuple[float, int], ...]
    lives: tuple[BufferLifetime, ...]
    end_us: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class FusionEdge(DisplayableRow):
    """The scheduler's decision on an edge between LazyBuffers, direct or through movement operations.

    src: the LazyBuffer that `dst` reads.
    dst: the LazyBuffer that reads `src`.
    mark: "fused": `src` is computed in the kernel of `dst`. "cut": one kernel stores `src`, another one loads it.
        "again": several kernels compute `src`. "read": `src` was in memory already.
    illegal: why a cut edge cannot be joined, or a joined edge cannot be cut; "" if the change is legal.
    """

    src: NodeId
    dst: NodeId
    mark: Annotated[str, OneOf(("fused", "cut", "again", "read"))]
    illegal: str


@dataclass(frozen=True, slots=True, repr=False)
class KernelScript(DisplayableRow):
    """The standalone script of a kernel, without the texts that a page stores already.

    The script is `texts[0]`, the text that `inserts[0]` names, `texts[1]`, and so on.

    kernel: the id of the kernel.
    texts: the parts of the script, one more than `inserts`.
    inserts: "shared" (the code common to all scripts), or the language of a listing of the kernel.
    """

    kernel: KernelId
    texts: tuple[str, ...]
    inserts: tuple[Annotated[str, OneOf(("shared", "llvm", "c"))], ...]


@dataclass(frozen=True, slots=True, repr=False)
class RuleInfo(DisplayableRow):
    """A rewrite rule, with its source code.

    id: its row.
    name: the name of the rule.
    law: the law that the rule states, as text.
    doc: the docstring of the rule.
    file: the file that defines the rule.
    line: the first line of the definition, from 1.
    text: the source code of the rule.
    """

    id: RowId
    name: str
    law: str
    doc: str
    file: str
    line: Count
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Transform(DisplayableRow):
    """A transform: a pass over whole graphs, with its source code.

    id: its row.
    name: the name of the pass.
    law: the effect of the pass, as text.
    file: the file that defines its function.
    line: the first line of the function, from 1.
    text: the source code of its function.
    """

    id: RowId
    name: str
    law: str
    file: str
    line: Count
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Step(DisplayableRow):
    """One change in a stage.

    A rewrite pass has one step for each firing. A transform has one step for the whole graph, or none if nothing
    changed.

    rule: the rule that fired; None if a node was rebuilt because its sources changed.
    before: the node that was replaced.
    after: the replacement.
    at_us: when the change happened, in microseconds since the stage began.
    """

    rule: RuleId | None
    before: NodeId
    after: NodeId
    at_us: Moment


@dataclass(frozen=True, slots=True, repr=False)
class NumberComparison(DisplayableRow):
    """Two numbers that a heuristic or the scheduler compared.

    what: the name of the quantity.
    value: the value of the quantity.
    bound: the limit.
    over: whether the value is above the limit.
    """

    what: str
    value: float
    bound: float
    over: bool


@dataclass(frozen=True, slots=True, repr=False)
class Decision(DisplayableRow):
    """The scheduler's decision on a LazyBuffer, and its reason.

    node: the LazyBuffer.
    decision: "realize", "fuse", "duplicate", "keep", "view", "split", "merge" or "hoist".
    reason: the reason, as text.
    compared: the numbers that the scheduler compared, in that order.
    legality_error: why fusing the node into its consumers is illegal; "" if it is legal, at any cost.
    """

    node: NodeId
    decision: str
    reason: str
    compared: tuple[NumberComparison, ...] = ()
    legality_error: str = ""

    def as_text(self) -> str:
        return f"node {self.node}: {self.decision}, {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class OptEffect(DisplayableRow):
    """The effect of a kind of opt.

    id: its row.
    name: the name of the kind.
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
class OptStep(DisplayableRow):
    """An opt that was proposed for a kernel.

    opt: the opt, as text.
    applied: whether it was applied; if not, it was rejected.
    reason: why it was applied, or why it is illegal.
    laws: the effect of its kind, as ids of `Trace.laws`.
    axis: the axis that it changes, with the size before the opt: "g1 of 32"; "" if it was rejected.
    made: the axes that it created.
    """

    opt: str
    applied: bool
    reason: str
    laws: tuple[OptEffectId, ...] = ()
    axis: str = ""
    made: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class OptionScores(DisplayableRow):
    """The scores of the options between which a heuristic chose.

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
class Choice(DisplayableRow):
    """One heuristic of the default schedule, in the order in which they run.

    name: the name of the heuristic.
    law: which opts it proposes, when and why.
    settled_by: the earlier heuristic that made this one unnecessary; "" if it ran.
    compared: the numbers that it compared.
    weighed: the scores from which it chose.
    opts: the opts that it proposed, as positions in the opts of the stage.
    """

    name: str
    law: str
    settled_by: str
    compared: tuple[NumberComparison, ...]
    weighed: tuple[OptionScores, ...]
    opts: tuple[Count, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Candidate(DisplayableRow):
    """One candidate of a search.

    opts: the opts applied to the kernel.
    best_us: its shortest time in microseconds; None if it failed.
    note: why it failed, or the source of the time if it was not measured here.
    """

    opts: tuple[str, ...]
    best_us: Duration | None
    note: str = ""

    def as_text(self) -> str:
        time = self.note or "lost" if self.best_us is None else duration_text(self.best_us)
        return f"{' '.join(self.opts) or 'no opts'}: {time}"


@dataclass(frozen=True, slots=True, repr=False)
class Search(DisplayableRow):
    """The result of a search.

    The default schedule and the best candidate are timed alternately. They are the same if no candidate was faster.

    before_us: time of the default schedule in microseconds; None if it could not be measured.
    after_us: time of the best candidate in microseconds; None if it could not be measured.
    tried: the number of candidates that were measured.
    reason: the result, as text.
    """

    before_us: Duration | None
    after_us: Duration | None
    tried: Count
    reason: str

    def as_text(self) -> str:
        times = [
            "no time" if time_us is None else duration_text(time_us) for time_us in (self.before_us, self.after_us)
        ]
        count = count_text(self.tried, "candidate")
        return f"search of {count}: {times[0]} by the heuristics' opts, {times[1]} by the best; {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Stage(DisplayableRow):
    """One stage of the compiler.

    id: its row.
    name: "schedule", "optimize", "lower", a pass's name, "linearize", "render", "compile", "run", ….
    parent: the stage that contains it, None for an outermost stage.
    kernel: the kernel that it processed, None for all kernels.
    before: the root nodes of its input graph; several for a schedule.
    after: the root nodes of its output graph.
    started_us: microseconds since the trace began.
    elapsed_us: its time in microseconds, including the work of other threads for it.
    steps: the firings of a rewrite pass, in order.
    decisions: the scheduler's decisions.
    opts: the opts that were proposed, in order.
    candidates: the candidates that a search timed, in order.
    search: the result of the search, None without one.
    thread: 0 for the main thread, else the number of a compiler thread.
    transform: the transform that this stage ran, None for other stages.
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

    def as_text(self) -> str:
        steps = count_text(len(self.steps), "step")
        return f"stage {self.id}: {self.name}, {duration_text(max(self.elapsed_us, 0.0))}, {steps}"


@dataclass(frozen=True, slots=True, repr=False)
class Link(DisplayableRow):
    """Provenance: the compiler derived node `dst` from node `src`.

    src: the earlier node.
    dst: the node derived from it.
    how: "rewrite", "rebuild", the name of a transform, or the word of a `NodeDerived` event.
    stage: the stage that created `dst`, None if unknown.
    """

    src: NodeId
    dst: NodeId
    how: str
    stage: StageId | None

    def as_text(self) -> str:
        return f"node {self.dst} from node {self.src}: {self.how}"


@dataclass(frozen=True, slots=True, repr=False)
class Line(DisplayableRow):
    """A line of a listing.

    text: the text, without the line end.
    nodes: the UOps from which the renderer wrote this line.
    """

    text: str
    nodes: tuple[NodeId, ...]

    def as_text(self) -> str:
        return self.text or "(empty line)"


@dataclass(frozen=True, slots=True, repr=False)
class TextLine(DisplayableRow):
    """A line of the program text after a stage.

    text: the text of the line.
    nodes: the nodes that this line represents or derives from.
    origin: the line of the previous text, from 0, that it derives from.
    """

    text: str
    nodes: tuple[NodeId, ...] = ()
    origin: Count | None = None

    def as_text(self) -> str:
        return self.text or "(empty line)"


@dataclass(frozen=True, slots=True, repr=False)
class StageText(DisplayableRow):
    """The text of the compiled program after a stage, such as LLVM IR after one of LLVM's passes.

    id: the row.
    stage: the stage that produced this text.
    language: a key of the dialect's languages.
    lines: the lines of the text.
    title: the name of the text, if a stage has several texts.
    before: the id of the text to compare it with, None for the first text.
    """

    id: RowId
    stage: StageId
    language: str
    lines: tuple[TextLine, ...]
    title: str = ""
    before: EarlierText | None = None

    def as_text(self) -> str:
        name = f" of {self.title}" if self.title else ""
        return f"text {self.id}{name}: {self.language} after stage {self.stage}, {count_text(len(self.lines), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class Region(DisplayableRow):
    """A block, a computation or a function of another compiler's program.

    id: the row.
    name: its name in that compiler.
    kind: "block", "computation", "function", or another word of the compiler.
    nodes: the nodes directly in it.
    parent: the region that contains it.
    """

    id: RowId
    name: str
    kind: str
    nodes: tuple[NodeId, ...] = ()
    parent: EarlierRegion | None = None

    def as_text(self) -> str:
        return f"{self.kind} {self.name}: {count_text(len(self.nodes), 'node')}"


@dataclass(frozen=True, slots=True, repr=False)
class BackEdge(DisplayableRow):
    """A loop-carried operand: it is defined at or after its user.

    src: the operand, the next value of `dst`.
    dst: the user: a phi, or a block argument.
    """

    src: NodeId
    dst: NodeId

    def as_text(self) -> str:
        return f"node {self.dst} from the later node {self.src}"


@dataclass(frozen=True, slots=True, repr=False)
class OutsideOperation(DisplayableRow):
    """An operation that another library computed between the kernels, such as one of PyTorch's ATen.

    node: its first result.
    name: the name of the operation: "aten.polygamma".
    time_us: the time of its only call, in microseconds.
    """

    node: NodeId
    name: str
    time_us: Duration

    def as_text(self) -> str:
        return f"{self.name} (node {self.node}), {duration_text(self.time_us)}"


@dataclass(frozen=True, slots=True, repr=False)
class Level(DisplayableRow):
    """A level of a compiler's IR: one kind of nodes.

    kind: the value of `Node.kind`.
    name, plural: the display name of one node, and of several.
    role: "tensors" for the graph of the whole program, "program" for the graph of a stage. "lines": the nodes are in no
        graph, and only connect lines of texts with lines of Python.
    """

    kind: str
    name: str
    plural: str
    role: Annotated[str, OneOf(("tensors", "program", "lines"))]


@dataclass(frozen=True, slots=True, repr=False)
class Language(DisplayableRow):
    """A language of listings and texts.

    key: the key that listings and texts store.
    name: the display name.
    """

    key: str
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class Dialect(DisplayableRow):
    """The vocabulary of a compiler's trace, and the panels that it supports.

    compiler: the name of the compiler.
    version: the version that was recorded, "" if unknown.
    levels: the kinds of its nodes.
    languages: the languages of its listings and texts.
    panels: the panels that it supports; all others are absent.
    notes: the parts of the dump that could not be read.
    """

    compiler: str
    version: str
    levels: tuple[Level, ...]
    languages: tuple[Language, ...]
    panels: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def as_text(self) -> str:
        return f"{self.compiler} {self.version}".strip()


@dataclass(frozen=True, slots=True, repr=False)
class Program(DisplayableRow):
    """One listing of one kernel.

    id: its row.
    kernel: its kernel.
    language: "uops", "c", "llvm", "llvm-opt", "asm", "python", ….
    lines: its lines, in order.
    effort: LLVM's optimization level for this program: "full", "light" or "least"; "" for other languages.
    branches: whether LLVM also simplifies branches, at a level that omits this by default.
    """

    id: RowId
    kernel: KernelId
    language: str
    lines: tuple[Line, ...]
    effort: str = ""
    branches: bool = False

    def as_text(self) -> str:
        language = LANGUAGE_NAMES.get(self.language, self.language)
        return f"program {self.id}: {language} of kernel {self.kernel}, {count_text(len(self.lines), 'line')}"


@dataclass(frozen=True, slots=True, repr=False)
class KernelInfo(DisplayableRow):
    """One kernel: what it computes, its opts, its loops and its cost.

    id: its row.
    name: the name of the program.
    device: the device that runs it.
    roots: the LazyBuffers that it stores.
    nodes: all LazyBuffers fused into it.
    buffers: its arguments, in order.
    opts: the opts that were applied, in order.
    axes: (name, kind, size) of each loop, outermost first; a symbolic size is its arithmetic, as text.
    flops: floating-point operations of one run.
    bytes_moved: bytes of the elements that it reads and writes, each element once.
    compile_us: its compile time, in microseconds.
    cached: whether its program came from a cache.
    same_as: an earlier kernel whose program it reuses, else None.
    calls: the user's calls that created its LazyBuffers, each once.
    known: the cache that a run without a recorder would have used: "in this process", "on disk", or "" for none.
    code_bytes: the size of its machine code in bytes, 0 if unknown.
    not_run: why it has no times: this machine cannot execute it, or sampling takes too long; "" if it has times.
    nest: its loops and statements in program order, without memory accesses.
    bytes_written: the bytes of `bytes_moved` that it stores.
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

    def as_text(self) -> str:
        work = f"{count_text(self.flops, 'operation')}, {count_text(self.bytes_moved, 'byte')} moved"
        return f"kernel {self.id}: {self.name} on {self.device}, {' '.join(self.opts) or 'no opts'}; {work}"


@dataclass(frozen=True, slots=True, repr=False)
class Run(DisplayableRow):
    """The samples of one launch. All runs of a trace are warm, or all are cold.

    id: its row.
    kernel: the kernel that was launched.
    times_us: the samples in microseconds, in the order measured.
    median_us: the median of the samples, in microseconds.
    low_us: the first quartile, in microseconds.
    high_us: the third quartile, in microseconds.
    started_us: when the launch itself began, in microseconds since the trace began.
    first_us: how long the launch itself took, in microseconds.
    warm: whether the samples are further runs with warm caches; if not, the launch itself is the only sample.
    single_us: the samples on one thread, for a kernel that several threads share, in microseconds.
    waited: seconds that threads waited for a core / seconds of the samples; None if unknown.
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

    def as_text(self) -> str:
        time = spread_text(self.median_us, self.low_us, self.high_us)
        samples = count_text(len(self.times_us), "sample" if self.warm else "cold run")
        return f"run of kernel {self.kernel}: {time}, {samples}"


@dataclass(frozen=True, slots=True, repr=False)
class Ceiling(DisplayableRow):
    """The best rate that a probe reached on this machine, see `explore.ceilings`.

    name: the display name: "float32 arithmetic", "read L2".
    kind: the kind of rate, which fixes its unit.
    rate: "arithmetic": 10⁹ operations a second. "memory": 10⁹ bytes a second. "clock": GHz. "launch": microseconds of
        an empty launch. "gather": 10⁹ loads a second from random positions. "runs": 10⁹ bytes a second for contiguous
        pieces of `what` bytes, each piece in another row of 16 KB.
    holds: the largest working set in bytes, 0 for any.
    what: the type of the operations ("float32", "int8 dot"), the use of each byte ("read", "copy", "write", "triad":
        two reads and a write), or the length of a contiguous piece in bytes ("4": a single float).
    threads: the number of threads that ran the probe.
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
        """Returns the interquartile range of the samples divided by the rate."""
        ordered = sorted(self.samples)
        if len(ordered) < 2 or not self.rate:
            return 0.0
        last = len(ordered) - 1
        return (ordered[round(0.75 * last)] - ordered[round(0.25 * last)]) / self.rate


@dataclass(frozen=True, slots=True, repr=False)
class Roof(DisplayableRow):
    """The ceilings that apply to one kernel.

    kernel: the id of the kernel.
    gflops: the arithmetic ceiling for its operation types, in 10⁹ operations a second; 0 if unknown.
    gb_per_s: the memory ceiling for its working set and its share of writes, in 10⁹ bytes a second; 0 if unknown.
    arithmetic: the name of the arithmetic ceiling.
    memory: the name of the memory ceiling.
    spread: the spread of the samples of both ceilings, as a share of the rate.
    """

    kernel: KernelId
    gflops: Duration
    gb_per_s: Duration
    arithmetic: str
    memory: str
    spread: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class BufferInfo(DisplayableRow):
    """A device buffer and its lifetime.

    id: its row.
    device: the device that holds it.
    dtype: the element type.
    size: the number of elements.
    bytes: the size in bytes.
    allocated_us: when it was allocated, in microseconds since the trace began; None if it is older than the trace.
    freed_us: when it was freed, in microseconds since the trace began; None if it outlives the trace.
    name: the name of its content in the user's Python, "" for none.
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
class MemoryUse(DisplayableRow):
    """The memory of the intermediates of one schedule, or of a captured call.

    id: its row.
    total_bytes: the sum of the sizes of the intermediates.
    bound_bytes: the most bytes that are live at one time: the lower bound.
    peak_bytes: the bytes that the memory planner allocates for them.
    lives: (bytes, first item, last item, offset in the shared memory) of each intermediate.
    """

    id: RowId
    total_bytes: Count
    bound_bytes: Count
    peak_bytes: Count
    lives: tuple[tuple[Count, Count, Count, Count], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Message(DisplayableRow):
    """A remark on the whole trace.

    level: the severity.
    text: the remark.
    frame: the line of the user's code that it is about, None for none.
    """

    level: Annotated[str, OneOf(("error", "warning", "note"))]
    text: str
    frame: FrameId | None


@dataclass(frozen=True, slots=True, repr=False)
class OperandAccess(DisplayableRow):
    """The accesses of one loop iteration to one operand.

    buffer: its position among the kernel's arguments, None for scratch memory.
    name: its name in the user's Python, else "data1".
    bytes: the size of the accessed cache lines, in bytes.
    again: whether every iteration of the loop reads the same elements.
    stride: the number of elements by which one iteration advances the address, None if that differs.
    """

    buffer: Count | None
    name: str
    bytes: Count
    again: bool
    stride: int | None


@dataclass(frozen=True, slots=True, repr=False)
class NestLine(DisplayableRow):
    """A line of an annotated loop nest: a loop or a statement.

    depth: the number of loops around it.
    text: the line.
    axis: the id of the loop's axis, None for a statement.
    kind: the kind of the axis; "" for a statement.
    size: the size of the axis, symbolic sizes as text; 0 for a statement.
    touches: the accesses of one iteration of the loop, by operand.
    bytes: the working set of one iteration, in bytes.
    cache: the first cache level that holds this working set: "L1", "L2", "L3" or "memory".
    """

    depth: Depth
    text: str
    axis: Count | None = None
    kind: str = ""
    size: int | str = 0
    touches: tuple[OperandAccess, ...] = ()
    bytes: Count = 0
    cache: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class OptOffer(DisplayableRow):
    """An opt that the user may try on an axis.

    op: the kind of the opt.
    axis: the id of the axis.
    amounts: the usual amounts. For some kinds an amount is the id of another axis; for others it is 0 and has no
        meaning.
    legality_error: why the opt is illegal, "" if it is legal.
    caution: why a legal opt may be slow, "" if no reason is known.
    """

    op: str
    axis: Count
    amounts: tuple[Count, ...]
    legality_error: str = ""
    caution: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(DisplayableRow):
    """A listing of a kernel in a branch.

    language: a language of `Program.language`.
    lines: its lines, in order.
    """

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class StageTime(DisplayableRow):
    """A compiler stage that processed a kernel of a branch.

    name: the name of the stage.
    elapsed_us: its time in microseconds.
    steps: the number of its firings.
    """

    name: str
    elapsed_us: Duration
    steps: Count


@dataclass(frozen=True, slots=True, repr=False)
class KernelVariant(DisplayableRow):
    """A kernel in a branch.

    A worker process ran it in separate memory. Times are in microseconds. The candidates of a search have no listings,
    nest or offers. The samples and the base samples are measured alternately. Compare only these two: different
    branches are timed at different moments.

    kernel: the captured kernel that it replaces, None for a new one.
    name: the name of the program.
    device: the device that runs it.
    opts: the opts that were applied, in order.
    steps: all opts that were proposed, with their reasons.
    axes: (name, kind, size) of each loop, outermost first.
    nest: its loops and statements, with their accesses.
    offers: the opts that the user may try next.
    listings: its program in each language.
    stages: the compiler stages that processed it.
    times_us: all samples; empty if it could not be timed.
    median_us: the median, None without samples.
    low_us: the first quartile, None without samples.
    high_us: the third quartile, None without samples.
    flops: floating-point operations of one run.
    bytes_moved: bytes of the elements that it reads and writes, each element once.
    bytes_loaded: bytes that its load instructions read.
    compile_us: its compile time.
    caches: (name, bytes) of the target's caches.
    base_times_us: samples of the base: the captured kernel, or for an edit the text before the edit. Empty for the base
        itself.
    base_median_us: the median of the base samples, None without samples.
    base_low_us: the first quartile of the base samples, None without samples.
    base_high_us: the third quartile of the base samples, None without samples.
    verdict: the comparison of samples and base samples.
    note: a remark on this kernel ("its results are wrong").
    uops: the number of UOps that one run executes, a vector operation counted once; 0 if unknown.
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
class RuleFiring(DisplayableRow):
    """A firing of the rule that a branch is about.

    kernel: the kernel that the pass processed.
    stage: the name of the pass.
    step: the number of the firing in the pass, from 1.
    rule: the name of the rule.
    before: the node that was replaced, as text.
    after: the replacement, as text.
    node: the digest of the replaced node.
    verdict: the result of the check.
    says: the result as text.
    inputs: (name, value) of a counterexample; empty if the check found none.
    was: the value of `before` for the counterexample.
    has_become: the value of `after` for the counterexample.
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
class FiringCheck(DisplayableRow):
    """The check of a firing of this trace.

    stage: the id of the pass.
    step: the number of the firing in the pass, from 1.
    verdict: the result of the check.
    says: the result as text.
    inputs: (name, value) of a counterexample; empty if the check found none.
    was: the value before the firing, for the counterexample.
    has_become: the value after the firing, for the counterexample.
    """

    stage: StageId
    step: LineNumber
    verdict: Annotated[str, OneOf(("proved", "agrees", "differs", "not checked"))]
    says: str
    inputs: tuple[tuple[str, str], ...] = ()
    was: str = ""
    has_become: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class FusedKernel(DisplayableRow):
    """A kernel or a copy of a schedule in a branch.

    Times are in microseconds and belong to runs of the whole schedule; None if it was not run.

    name: the name of the program.
    device: the device that runs it.
    kernel: the equal captured kernel, None for a new one.
    digest: a hash of the kernel; equal kernels have equal digests.
    nodes: the LazyBuffers that it computes.
    roots: the LazyBuffers that it stores.
    reads: the LazyBuffers that it reads from memory.
    flops: floating-point operations of one run.
    bytes_moved: bytes of the elements that it reads and writes, each element once.
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
class OutputCheck(DisplayableRow):
    """An output of a schedule in a branch, compared with the same output of the captured schedule.

    Both are computed from the same generated inputs.

    node: the output.
    difference: the largest absolute difference between two finite elements.
    same: whether rounding explains the difference.
    dtype: the element type.
    magnitude: the largest finite element.
    tolerance: the relative tolerance of `same`; 0 if the elements must be equal.
    """

    node: NodeId
    difference: Amount
    same: bool
    dtype: str = ""
    magnitude: Amount = 0.0
    tolerance: Amount = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class ScheduleVariant(DisplayableRow):
    """A schedule in a branch. It and the captured schedule are timed alternately, in microseconds.

    stage: the id of the captured schedule.
    cut: the LazyBuffers that the user forced into memory.
    join: the LazyBuffers that the user forced to fuse.
    kernels: all kernels, in order.
    decisions: the last decision on each LazyBuffer.
    total_bytes: the sum of the sizes of the intermediates, in bytes.
    peak_bytes: the bytes that the memory planner allocates for them.
    times_us: samples of one run of all kernels.
    base_times_us: samples of the captured schedule.
    median_us: the median, None without samples.
    low_us: the first quartile, None without samples.
    high_us: the third quartile, None without samples.
    base_median_us: the median of the captured schedule, None without samples.
    base_low_us: its first quartile, None without samples.
    base_high_us: its third quartile, None without samples.
    verdict: the comparison of both schedules.
    outputs: the comparison of the output values.
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
        """Returns the bytes that all kernels read and write."""
        return sum(kernel.bytes_moved for kernel in self.kernels)

    @property
    def flops(self) -> int:
        """Returns the number of floating-point operations of all kernels."""
        return sum(kernel.flops for kernel in self.kernels)


@dataclass(frozen=True, slots=True, repr=False)
class CommandInfo(DisplayableRow):
    """A command of `explore.whatif` as data.

    kind: the class name of the command.
    arguments: (name, value) of each argument.
    """

    kind: str
    arguments: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic(DisplayableRow):
    """A message of a compiler about a position in a text.

    line: the line, from 1; 0 if the message names none.
    column: the column, from 1; 0 if the message names none.
    level: the severity.
    text: the message.
    """

    line: Count
    column: Count
    level: Annotated[str, OneOf(("error", "warning", "note"))]
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Difference(DisplayableRow):
    """An element of a result that differs from the expected value.

    buffer: the name of the result.
    index: the position of the element.
    found: the computed value, as text.
    expected: the expected value, as text.
    """

    buffer: str
    index: Count
    found: str
    expected: str


@dataclass(frozen=True, slots=True, repr=False)
class EditReport(DisplayableRow):
    """The result of editing a text of a kernel. The edited kernel's results are compared with those before the edit.

    stage: the edited text: "c", "llvm" or "uops".
    diagnostics: the messages of the compiler.
    ended: how the worker process failed, as text; "" if it succeeded.
    against: the reference of the comparison, "" without a comparison.
    verdict: the result of the comparison.
    compared: the number of elements compared.
    differing: the number of elements that differ by more than rounding.
    largest_error: the largest absolute difference, None if an element is not finite on one side.
    magnitude: the largest finite element of that buffer.
    tolerance: the relative tolerance for rounding; 0 if the elements must be equal.
    first: the first element that differs, None for none.
    before_us: samples of the text before the edit, measured alternately with those of the branch, in microseconds.
    unprotected: the protections that this system lacks.
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
class Branch(DisplayableRow):
    """The result of a command: how the trace would change.

    id: its row.
    parent: the branch that it continues, None for the capture.
    kernel: the kernel that the command is about, None for none.
    command: the command.
    status: "failed" keeps the results up to the failure.
    reason: why it failed; "" if it did not.
    kernels: the kernels that it changed.
    labels: its labels: "as captured", "heuristics".
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
    edited: EditReport | None = None
    schedule: ScheduleVariant | None = None
    search: Search | None = None

    def __str__(self) -> str:
        """Returns one line: the command, the opts of the first kernel, and its time."""
        asked_for = self._command_text()
        parts = [f"branch {self.id}", asked_for]
        for variant in self.kernels[:1]:
            time = " · ".join(_format_times(variant)) or "not timed"
            opts = " ".join(variant.opts) or "no opts"
            suffix = asked_for.replace("), ", ") ").endswith(f": {opts}")
            parts += [variant.name if suffix else f"{variant.name}: {opts}", time]
        if self.schedule is not None:
            parts.append(f"{len(self.schedule.kernels)} kernels")
            parts += _format_times(self.schedule) or ["not timed"]
        return " · ".join([*parts, *([self.reason] if self.reason else [])])

    def _command_text(self) -> str:
        """Returns the command as text: a sentence for commands with long texts, else a call with its arguments."""
        match self.command.kind, dict(self.command.arguments):
            case "SetOpts", {"opts": opts}:
                return f"opts set: {_format_on_one_line(opts) or 'no opts'}"
            case "Edit", {"stage": "opts", "text": opts}:
                return f"edit of the opts: {_format_on_one_line(opts) or 'no opts'}"
            case "Edit", {"stage": stage}:
                return f"edit of the {LANGUAGE_NAMES.get(str(stage), stage)}"
            case kind, arguments:
                return f"{kind}({', '.join(map(_format_on_one_line, arguments.values()))})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Prints one line in IPython, without the listings."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """Returns the command and its kernels as HTML.

        Each row has the opts, the time with its spread, the time of the captured kernel, and the comparison.
        """
        rows = tuple(_make_variant_row(variant) for variant in self.kernels)
        columns = ("kernel", "opts", "time", "as captured, interleaved", "compared", "note")
        return Table(str(self), columns, rows, code=frozenset(columns[:2])).html()

    def as_text(self) -> str:
        return str(self)


def _tuple_text(sizes: tuple[int | str, ...]) -> str:
    """Returns a shape as Python writes it, with symbolic sizes unquoted."""
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _make_variant_row(variant: KernelVariant) -> tuple[str, ...]:
    """Returns the row of a kernel in the table of its branch."""
    times = (*_format_times(variant), "", "", "")[:3] if variant.median_us is not None else ("not timed", "", "")
    return (variant.name, " ".join(variant.opts) or "no opts", *times, variant.note)


def _format_times(variant: KernelVariant | ScheduleVariant) -> list[str]:
    """Returns the time, the base time and their comparison, as far as they exist. Both were measured alternately."""
    variant_time = spread_text(variant.median_us, variant.low_us, variant.high_us)
    base = spread_text(variant.base_median_us, variant.base_low_us, variant.base_high_us)
    if isinstance(variant, ScheduleVariant) and not (variant.cut or variant.join):
        base = ""  # this is the captured schedule
    ratio = ratio_text(variant.median_us, variant.base_median_us, variant.verdict, "the base") if base else ""
    return [text for text in (variant_time, base and f"base {base}", ratio) if text]


def _format_on_one_line(value: int | str) -> str:
    """Returns an argument of a command on one line."""
    return " ".join(str(value).split())


@dataclass(frozen=True, slots=True, repr=False)
class RecordedLoop(DisplayableRow):
    """A loop of a linear program.

    begin: the first line of the loop in the listing.
    end: the last line of the loop.
    name: the name of the loop counter.
    """

    begin: Count
    end: Count
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class RecordedBuffer(DisplayableRow):
    """The content of a buffer before its kernel ran.

    name: the name in the listing.
    size: the number of elements.
    width: the number of elements in a drawn row.
    cells: the first elements, as text.
    """

    name: str
    size: Count
    width: LineNumber
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class RecordedStep(DisplayableRow):
    """A recorded step of a kernel: one executed UOp.

    place: the line of the executed UOp.
    slot: the line whose value changed; for an ASSIGN, the line of its accumulator.
    value: one text for each lane.
    buffer: the buffer that an access reads or writes; "" for other steps.
    stored: whether the access writes.
    index: for an access, the element index of each lane; None for a masked lane.
    """

    place: Count
    slot: Count
    value: tuple[str, ...]
    buffer: str = ""
    stored: bool = False
    index: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Recording(DisplayableRow):
    """The first steps of a kernel, which a page without an engine can show.

    id: its row.
    kernel: the recorded kernel.
    name: the name of the program.
    note: a remark, for example that the inputs were generated.
    listing: the lines of the program.
    loops: the loops of the program.
    buffers: the buffers of the program.
    steps: its steps, in order.
    ended: whether `steps` has all steps of the kernel.
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

    `module_costs` and all fields after it are derived tables. `trace_to_bytes` computes them for the front end, and
    `==` ignores them.

    version: the version of the format.
    title: the title of the capture.
    options: (name, value) of the settings that produced it.
    sources: the user's files.
    frames: the lines of the user's code.
    nodes: all LazyBuffers and UOps.
    rules: the rewrite rules that fired.
    stages: the stages of the compiler; parents come first.
    links: which node was derived from which.
    kernels: the kernels, in the order of their launches.
    programs: the listings of the kernels.
    runs: the samples of the kernels.
    buffers: the device buffers.
    messages: remarks on the whole trace.
    memory: the memory of the intermediates, by schedule.
    scopes: the user's modules.
    transforms: the passes over whole graphs.
    laws: the effect of each kind of opt.
    branches: the results of commands.
    ceilings: the measured ceilings of the machine; empty where they were not measured.
    roofs: the ceilings that apply to each kernel.
    recordings: recorded steps of kernels.
    checks: checks of firings.
    stage_texts: the texts after stages.
    regions: blocks, computations and functions of another compiler.
    back_edges: operands that come after their users.
    dialect: the dialect of another compiler; None for tinyexplore.
    origins: for a program of another front end, the operations of its graph that each kernel computes.
    outside: the operations that another library computed, in call order.
    module_costs: time and memory by module.
    figures: the figures of the whole trace, then of each kernel.
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
    laws: tuple[OptEffect, ...] = ()
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
