"""Mutable drafts of stages and kernels while events are read; `freeze` converts them to rows of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.engine import ExecItem
from tinyexplore.explore.recording.descriptions import uops_listing
from tinyexplore.explore.recording.loops import axis_size, plain_nest
from tinyexplore.explore.recording.roots import roots_of
from tinyexplore.explore.tracefile.model import (
    Candidate,
    Choice,
    Decision,
    KernelInfo,
    Line,
    NumberComparison,
    OptionScores,
    OptStep,
    Program,
    Run,
    Search,
    Stage,
    Step,
)
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import ProgramSpec
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import TENSOR_CORES
from tinyexplore.trace import ExecItemRan, ExecItemRetimed, SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.symbolic import text


def opt_text(opt: Any) -> str:
    """Returns an Opt as the views write it: "UPCAST(0, 4)"."""
    return str(opt)


def opt_axes(before: Kernel, opt: Any, after: Kernel) -> tuple[str, tuple[str, ...]]:
    """Returns the axis that an opt changes, with its size before ("g1 of 32"), and the names of the new axes."""
    names = {axis.arg.name for axis in before.axes}
    changed = next((f"{axis.arg.name} of {text(axis.src[0])}" for axis in before.axes if axis.arg.id == opt.axis), "")
    return changed, tuple(axis.arg.name for axis in after.axes if axis.arg.name not in names)


_DOTS = {Ops.DOT_BF16: "bfloat16 dot", Ops.DOT_I8: "int8 dot", Ops.DOT_U8: "int8 dot"}


def arithmetic_of(uops: Sequence[UOp]) -> tuple[str, ...]:
    """Returns the types of a program's arithmetic under the names of ceilings. Types below float32 count as float32."""
    names: dict[str, None] = {}
    for node in uops:
        if node.op in _DOTS:
            names[_DOTS[node.op]] = None
        elif node.op is Ops.WMMA and TENSOR_CORES[node.arg].tiles:
            names[f"{TENSOR_CORES[node.arg].factor.name} tile"] = None
        elif node.op in OpGroups.ALU and dtypes.is_float(node.dtype):
            names["float64" if node.dtype.scalar is dtypes.float64 else "float32"] = None
    return tuple(names)


def quantile(values: Sequence[float], part: float) -> float:
    """Returns the quantile at `part` (0 to 1) of sorted `values`, interpolated."""
    position = part * (len(values) - 1)
    low = int(position)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (position - low)


@dataclass(slots=True)
class ChoiceBuilder:
    """A `model.Choice` under construction: a heuristic that is running.

    name: the name of the heuristic.
    law: which opts it proposes, and why.
    settled_by: the earlier heuristic that made it unnecessary, "" for none.
    compared: the numbers that it compared.
    weighed: the scores from which it chose.
    opts: the opts that it proposed, as positions in the opts of the stage.
    """

    name: str
    law: str
    settled_by: str
    compared: list[NumberComparison] = field(default_factory=list)
    weighed: list[OptionScores] = field(default_factory=list)
    opts: list[int] = field(default_factory=list)

    def freeze(self) -> Choice:
        compared, weighed = tuple(self.compared), tuple(self.weighed)
        return Choice(self.name, self.law, self.settled_by, compared, weighed, tuple(self.opts))


@dataclass(slots=True)
class StageBuilder:
    """A `model.Stage` under construction; the stage may still be open.

    id: its row.
    name: the name of the stage.
    parent: the stage that contains it.
    kernel: the kernel that it processes.
    root: the live root of its graph; it is described when the stage ends.
    before: the root nodes of its input graph.
    started_us: its start, in microseconds since the trace began.
    after: the root nodes of its output graph.
    elapsed_us: its time in microseconds.
    steps: the firings, in order.
    decisions: the scheduler's decisions.
    opts: the opts that were proposed.
    candidates: the candidates that a search timed.
    search: the result of the search, None without one.
    thread: 0 for the main thread, else the number of a compiler thread.
    transform: the transform that the stage runs, None for other stages.
    choices: the heuristics that chose the opts.
    """

    id: int
    name: str
    parent: int | None
    kernel: int | None
    root: Any
    before: tuple[int, ...]
    started_us: float
    after: tuple[int, ...] = ()
    elapsed_us: float = 0.0
    steps: list[Step] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    opts: list[OptStep] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    search: Search | None = None
    thread: int = 0
    transform: int | None = None
    choices: list[ChoiceBuilder] = field(default_factory=list)

    def freeze(self) -> Stage:
        return Stage(
            id=self.id,
            name=self.name,
            parent=self.parent,
            kernel=self.kernel,
            before=self.before,
            after=self.after,
            started_us=self.started_us,
            elapsed_us=self.elapsed_us,
            steps=tuple(self.steps),
            decisions=tuple(self.decisions),
            opts=tuple(self.opts),
            candidates=tuple(self.candidates),
            search=self.search,
            thread=self.thread,
            transform=self.transform,
            choices=tuple(choice.freeze() for choice in self.choices),
        )


@dataclass(slots=True)
class KernelBuilder:
    """A kernel while its events are read.

    number: its row.
    ast: the AST from the scheduler.
    item: its ScheduleItem.
    kernel: the Kernel with its opts.
    spec: the rendered program.
    listings: its texts, by language.
    compile_us: its compile time, in microseconds.
    cached: whether its program came from a cache.
    known: the cache that a run without a recorder would have used: "in this process", "on disk", or "" for none.
    code_bytes: the size of its machine code, in bytes.
    not_run: why it has no times.
    flops: floating-point operations of one run.
    bytes_moved: bytes of the elements that it reads and writes, each element once.
    buffers: its arguments, in order.
    times_us: times of the launch itself, in microseconds.
    warm_us: times of further runs, in microseconds.
    single_us: times on one thread, in microseconds.
    waited: seconds that threads waited for a core / seconds of the samples.
    run_started_us: when the launch began, in microseconds since the trace began.
    make_kernel: builds the Kernel with its opts again.
    values: the values of its Variables.
    """

    number: int
    ast: UOp | None = None
    item: ScheduleItem | None = None
    kernel: Kernel | None = None
    spec: ProgramSpec | None = None
    listings: dict[str, tuple[SourceLine, ...]] = field(default_factory=dict)
    compile_us: float = 0.0
    cached: bool = False
    known: str = ""
    code_bytes: int = 0
    not_run: str = ""
    flops: int = 0
    bytes_moved: int = 0
    buffers: tuple[Any, ...] = ()
    times_us: list[float] = field(default_factory=list)
    warm_us: list[float] = field(default_factory=list)
    single_us: list[float] = field(default_factory=list)
    waited: float | None = None
    run_started_us: float = 0.0
    make_kernel: Callable[[], Kernel] | None = None
    values: tuple[int, ...] = ()

    # *** reading events ***

    def read_root(self, root: Any) -> None:
        if isinstance(root, ScheduleItem):
            self.item = root
        if isinstance(root, Kernel):
            self.kernel = root
        uops = [node for node in roots_of(root) if isinstance(node, UOp)]
        if uops and self.ast is None:
            self.ast = uops[0]

    def read_result(self, result: Any) -> None:
        if isinstance(result, Kernel):
            self.kernel = result
        elif isinstance(result, ProgramSpec):
            self.spec = result

    def read_run(self, event: ExecItemRan, ended_us: float) -> None:
        if not self.times_us:
            self.run_started_us = max(0.0, round(ended_us - event.seconds * 1e6, 2))
        self.read_exec_item(event.exec_item)
        self.times_us.append(round(event.seconds * 1e6, 3))

    def read_samples(self, event: ExecItemRetimed) -> None:
        self.warm_us += [round(seconds * 1e6, 3) for seconds in event.seconds]
        self.single_us += [round(seconds * 1e6, 3) for seconds in event.single]
        if event.waited is not None:
            self.waited = round(max(self.waited or 0.0, event.waited), 4)
        self.not_run = event.reason

    def read_exec_item(self, exec_item: ExecItem) -> None:
        self.item = exec_item.item
        if exec_item.runner is not None:  # a copy between devices has no runner
            self.spec = exec_item.runner.spec
            self.kernel = exec_item.runner.kernel
            self.make_kernel, self.values = exec_item.runner.make_kernel, exec_item.values
        self.buffers = tuple(exec_item.buffers)
        self.flops = exec_item.flops
        self.bytes_moved = exec_item.bytes_moved

    def written(self) -> tuple[Any, ...]:
        """Returns the buffers that the kernel stores to; for a copy, its first buffer."""
        written_slots = {0} if self.spec is None else self.spec.writes
        return tuple(buffer for number, buffer in enumerate(self.buffers) if number in written_slots)

    # *** conversion to rows ***

    def collect_listings(self) -> list[tuple[str, tuple[SourceLine, ...]]]:
        """Returns the recorded listings and those of a cached program, with uops first."""
        listings = dict(self.listings)
        if self.spec is not None:
            if "uops" not in listings:
                listings["uops"] = uops_listing(self.spec.uops)
            listings.setdefault(self.spec.language, self.spec.lines)
        return sorted(listings.items(), key=lambda item: item[0] != "uops")

    def program(
        self,
        program_id: int,
        language: str,
        lines: Iterable[SourceLine],
        ids: Callable[[Any], tuple[int, ...]],
    ) -> Program:
        lines = tuple(lines)
        groups = {id(line.uops): line.uops for line in lines}  # lines of the whole program share one tuple
        nodes = {group: tuple(dict.fromkeys(ids(uops))) for group, uops in groups.items()}
        frozen = tuple([Line(line.text, nodes[id(line.uops)]) for line in lines])
        if self.spec is None or language != self.spec.language:
            return Program(program_id, self.number, language, frozen)
        options = self.spec.options
        return Program(program_id, self.number, language, frozen, options.effort.value, options.branches)

    def run(self, run_id: int) -> Run:
        samples = self.warm_us or self.times_us
        ordered = sorted(samples)
        return Run(
            id=run_id,
            kernel=self.number,
            times_us=tuple(samples),
            median_us=round(median(ordered), 3),
            low_us=round(quantile(ordered, 0.25), 3),
            high_us=round(quantile(ordered, 0.75), 3),
            started_us=self.run_started_us,
            first_us=self.times_us[0],
            warm=bool(self.warm_us),
            single_us=tuple(self.single_us),
            waited=self.waited,
        )

    def info(
        self,
        kernels: Sequence[KernelBuilder],
        ids: Callable[[Any], tuple[int, ...]],
        buffer_id: Callable[[Any], int],
        lazybuffers_behind: Callable[[UOp], tuple[int, ...]],
    ) -> KernelInfo:
        roots: tuple[int, ...] = ()
        if self.item is not None:
            roots, nodes = ids(self.item.outputs), ids(self.item.members)
        else:
            nodes = lazybuffers_behind(self.ast) if self.ast is not None else ()
        return KernelInfo(
            id=self.number,
            name=self.name,
            device=self.device,
            roots=roots,
            nodes=nodes,
            buffers=tuple(buffer_id(buffer) for buffer in self.buffers),
            opts=tuple(opt_text(opt) for opt in self.kernel.applied) if self.kernel is not None else (),
            axes=self.axes(),
            flops=self.flops or (self.spec.flops if self.spec is not None else 0),
            bytes_moved=self.bytes_moved or (self.spec.bytes_moved if self.spec is not None else 0),
            compile_us=self.compile_us,
            cached=self.cached,
            same_as=self.same_as(kernels),
            known=self.known,
            code_bytes=self.code_bytes,
            not_run=self.not_run,
            nest=plain_nest(self.kernel.ast) if self.kernel is not None else (),
            bytes_written=min(self.bytes_moved, sum(buffer.nbytes for buffer in self.written())),
            arithmetic=arithmetic_of(self.spec.uops) if self.spec is not None else (),
        )

    @property
    def name(self) -> str:
        if self.spec is not None:
            return self.spec.name
        if self.kernel is not None:
            return self.kernel.name
        if self.item is not None and self.item.is_copy:
            return "copy"
        return f"kernel {self.number}"

    @property
    def device(self) -> str:
        if self.item is not None:
            return self.item.device
        if self.spec is not None:
            return self.spec.target.name
        return self.kernel.target.name if self.kernel is not None else ""

    def axes(self) -> tuple[tuple[str, str, int | str], ...]:
        """Returns name, kind and size of every loop, outermost first, as far as the kernel was compiled."""
        if self.kernel is not None:
            nodes: Iterable[UOp] = self.kernel.axes
        elif self.spec is not None:
            nodes = self.spec.uops
        else:
            nodes = self.ast.toposort() if self.ast is not None else ()
        ranges = sorted((node for node in nodes if node.op is Ops.RANGE), key=lambda node: node.arg.id)
        return tuple((axis.arg.name, axis.arg.kind.value, axis_size(axis)) for axis in ranges)

    def same_as(self, kernels: Sequence[KernelBuilder]) -> int | None:
        """Returns the first kernel of the trace with the same program; None if that is this kernel."""
        if self.spec is None:
            return None
        first = next(kernel.number for kernel in kernels if kernel.spec is self.spec)
        return first if first != self.number else None
