"""Translates a captured kernel: lowers it for each machine, renders it in each language, and traces every line back."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from tinyexplore.codegen import lower
from tinyexplore.device import DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.explore.analysis.comparisons.language_comparison import (
    LanguageComparison,
    LanguageLine,
    LineOrigin,
    Translation,
)
from tinyexplore.explore.analysis.comparisons.languages import (
    COMPARED_LANGUAGES,
    LanguageTarget,
    parse_targets,
    renderer_of,
    target_of,
)
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.recording.descriptions import describe
from tinyexplore.explore.recording.expression import Printer, expr_text
from tinyexplore.explore.recording.row_builders import opt_text
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.explore.tracefile.digests import DIGEST_LENGTH
from tinyexplore.explore.tracefile.queries import related
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.kernel import Kernel, apply_heuristics, apply_opt
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.renderer import ProgramSpec, RenderError
from tinyexplore.target import Target
from tinyexplore.trace import Recorder, SourceLine, record_stage, recording, stage
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.util import Config, Context

R = TypeVar("R")

# priority of a node for the alignment of its lines: the largest wins
SHARED, DECLARED, INDEX, LOOP, VALUE = range(5)
_SHARED = frozenset({Ops.CONST, Ops.INDEX})  # a constant occurs in many expressions, an address in its access
_LOOPS = frozenset({Ops.RANGE, Ops.SPECIAL})
_INDEX_OPS = (OpGroups.ALU - OpGroups.TRANSCENDENTAL) | {Ops.CONST, Ops.RANGE, Ops.DEFINE_VAR}


def translate(
    kernel: CapturedKernel, targets: Sequence[LanguageTarget], trace: Trace, settings: Config
) -> LanguageComparison:
    """Translates a kernel of `trace` to each requested language, under the configuration of its capture."""
    captured = kernel.make_kernel()
    ast = captured.original
    nodes = ast.toposort()
    number_of = {node: number for number, node in enumerate(nodes)}
    numbers = {row.digest: row.id for row in trace.nodes if row.kind == "uop"}
    alignment = Alignment(nodes)
    lowerings: dict[Target, TargetLowering] = {}

    def written(want: LanguageTarget) -> Translation:
        language_title = COMPARED_LANGUAGES[want.language]
        try:
            target = target_of(want, captured.target)
            if target not in lowerings:
                lowerings[target] = lower_for_target(captured, target, number_of, settings)
            lowering = lowerings[target]
            spec = renderer_of(want.language, target).render(lowering.kernel.name, lowering.uops)
        except (DeviceUnavailable, RenderError) as error:
            return Translation(want.name, language_title, want.machine, want.language, "", (), (), str(error))
        opts = tuple(map(opt_text, lowering.kernel.applied))
        return Translation(
            want.name,
            language_title,
            target.cpu,
            spec.language,
            spec.name,
            opts,
            alignment.lines(spec.lines, lowering.behind),
        )

    translations = _run_with_settings(settings, lambda: [written(want) for want in targets])
    return LanguageComparison(kernel.spec.name, alignment.origins(numbers), tuple(translations))


@dataclass(frozen=True, eq=False, repr=False)
class TargetLowering(DisplayableRow):
    """The kernel for one machine.

    kernel: the Kernel with its opts.
    uops: the linear program.
    behind: returns the positions in the AST from which a UOp was derived.
    """

    kernel: Kernel
    uops: tuple[UOp, ...]
    behind: Callable[[UOp], frozenset[int]]


def lower_for_target(captured: Kernel, target: Target, number_of: dict[UOp, int], settings: Config) -> TargetLowering:
    """Returns the kernel for `target`: the captured one for its own machine, else one with the heuristics' opts."""
    ast = captured.original
    recorder = Recorder()

    def choose() -> Kernel:
        kernel = Kernel.of(ast, target)
        if target != captured.target:
            return kernel if settings.NOOPT else apply_heuristics(kernel)
        if captured.start is not ast:
            kernel = with_merged_axes(with_split_axes(kernel))
        for opt in captured.applied:
            kernel = apply_opt(kernel, opt)
        return kernel

    with recording(recorder), stage("kernel", ast, 0, ast):
        kernel = record_stage("optimize", ast, choose)
        uops = tuple(lower(kernel))
    return TargetLowering(kernel, uops, _make_origin_finder(build_trace(recorder), number_of))


def compile_for_gpu(kernel_captured: CapturedKernel, machine: str, settings: Config) -> CapturedKernel:
    """Compiles the kernel for a GPU such as "sm_80", with the opts that the heuristics choose there. Nothing runs.

    Raises:
        LanguageError: there is no such GPU.
    """
    (want,) = parse_targets([f"cuda:{machine}"])
    captured = kernel_captured.make_kernel()

    def compiled() -> tuple[Kernel, ProgramSpec]:
        target = target_of(want, captured.target)
        kernel = Kernel.of(captured.original, target)
        kernel = kernel if settings.NOOPT else apply_heuristics(kernel)
        return kernel, renderer_of(want.language, target).render(kernel.name, tuple(lower(kernel)))

    kernel, spec = _run_with_settings(settings, compiled)
    return CapturedKernel(kernel_captured.number, spec, lambda: kernel, kernel_captured.values)


def _make_origin_finder(trace: Trace, number_of: dict[UOp, int]) -> Callable[[UOp], frozenset[int]]:
    """Returns a function from a UOp to the numbers of the AST nodes from which it was made."""
    numbers = {row.digest: row.id for row in trace.nodes if row.kind == "uop"}
    digests = UopDigests()
    origins = {_trace_number(numbers, node, digests): number for node, number in number_of.items()}
    reached_from: dict[UOp, frozenset[int]] = {}
    nodes = list(number_of)

    def behind(node: UOp) -> frozenset[int]:
        if node not in reached_from:
            number = _trace_number(numbers, node, digests)
            back = related(trace, number, "back") if number is not None else ()
            reached = [origins[row.id] for row in back if row.id in origins]
            if node.op is Ops.MULACC:  # derives from a sum and from its product
                reached += [number_of[src] for position in reached for src in nodes[position].src if src.op is Ops.MUL]
            reached_from[node] = frozenset(reached)
        return reached_from[node]

    return behind


def _trace_number(numbers: dict[str, int], node: UOp, digests: UopDigests) -> int | None:
    number = numbers.get(digests.of(node))
    return numbers.get(node.digest[:DIGEST_LENGTH]) if number is None else number  # in traces of older releases


class Alignment:
    """Maps the nodes of an AST to the origins of lines. `ends` has the origins for the ends of loops."""

    def __init__(self, nodes: Sequence[UOp]) -> None:
        self.nodes = nodes
        self.loops = [number for number, node in enumerate(nodes) if node.op is Ops.RANGE]
        self.ends = {loop_number: len(nodes) + number for number, loop_number in enumerate(self.loops)}
        valued: set[UOp] = set()  # nodes that depend on a value, not only on loops and constants
        for node in nodes:
            if node.op not in _INDEX_OPS or not valued.isdisjoint(node.src):
                valued.add(node)
        self.weights = [_weigh_origin(node, node in valued) for node in nodes]

    def is_index(self, number: int) -> bool:
        """Whether a node is index arithmetic: it depends only on loop counters."""
        return self.weights[number] == INDEX

    def lines(self, lines: Sequence[SourceLine], behind: Callable[[UOp], frozenset[int]]) -> tuple[LanguageLine, ...]:
        """Returns the lines of a text with their origins. Lines before the function's head have none."""
        listed, is_inside = [], False
        for line in lines:
            numbers = frozenset[int]().union(*[behind(node) for node in line.uops if node.op is not Ops.CONST])
            origins = sorted(number for number in numbers if self.weights[number])
            row: int | None = None
            if _is_function_head(line):
                is_inside, row = True, len(self.nodes) - 1
                origins = [row]
            elif is_inside:
                row = self.row(line, origins, behind)
                if row in self.ends.values():
                    origins.append(row)  # type: ignore[arg-type]
            listed.append(LanguageLine(line.text, row, tuple(origins)))
        return tuple(listed)

    def row(self, line: SourceLine, origins: Sequence[int], behind: Callable[[UOp], frozenset[int]]) -> int | None:
        """Returns the origin by which a line is aligned.

        It is the loop for a loop's line, and the index for an index's line. Otherwise it is the last node that computes
        or accesses memory. A declaration counts only if there is nothing else.
        """
        loop = next((node for node in line.uops[:1] if node.op in (*_LOOPS, Ops.ENDRANGE)), None)
        if loop is not None:
            numbers = [number for number in sorted(behind(loop)) if number in self.ends]
            if numbers:
                return self.ends[numbers[-1]] if loop.op is Ops.ENDRANGE else numbers[-1]
        if line.uops and line.uops[0].op in OpGroups.ALU and line.uops[0].dtype in (dtypes.int64, dtypes.bool):
            origins = [number for number in origins if self.weights[number] <= LOOP] or origins
        return max(origins, key=lambda number: (self.weights[number], number), default=None)

    def origins(self, numbers: dict[str, int]) -> tuple[LineOrigin, ...]:
        """Returns the nodes of the AST, then the ends of loops. `numbers` has the nodes of the trace, by digest."""
        printer, digests = Printer(), UopDigests()
        rows = []
        for number, node in enumerate(self.nodes):
            description = describe(node, printer)
            label, detail = description.label, description.detail
            if node.op is Ops.RANGE:
                label = node.arg.name
            elif node.op is Ops.SINK:
                label = "kernel"
            elif node.op is Ops.DEFINE_LOCAL:
                label = str(node.arg)
            elif self.is_index(number):
                label, detail = "index", expr_text(node)
            rows.append(LineOrigin(label, detail, description.group, _trace_number(numbers, node, digests)))
        for number in self.loops:
            rows.append(LineOrigin("end of", self.nodes[number].arg.name, "loop", rows[number].node, ends=True))
        return tuple(rows)


def _weigh_origin(node: UOp, has_value: bool) -> int:
    if node.op in _SHARED:
        return SHARED
    if node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR):
        return DECLARED
    if node.op is Ops.RANGE:
        return LOOP
    return VALUE if has_value else INDEX


def _is_function_head(line: SourceLine) -> bool:
    """Whether a line is the function's head: it names the buffers, and has the UOps of the whole program."""
    ops = {node.op for node in line.uops}
    return Ops.DEFINE_GLOBAL in ops and Ops.STORE in ops


def _run_with_settings(settings: Config, work: Callable[[], R]) -> R:
    """Runs `work()` under the configuration of a capture, without a recorder."""
    quiet = {**asdict(settings), "DEBUG": 0, "PROFILE": 0, "BEAM": 0}

    def run() -> R:
        with Context(**quiet):
            return work()

    return contextvars.Context().run(run)


__all__ = ["translate"]
