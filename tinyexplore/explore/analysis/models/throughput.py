"""The cost of a kernel's busiest loop on the CPU's ports, and its bottleneck, by LLVM's models (`llvm-mca`).

There are three lower bounds for one iteration, in cycles: the busiest port, the front end's issue width, and the
simulation. The simulated time exceeds both other bounds only if instructions wait for results of others.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import Any

from tinyexplore.explore.analysis.comparisons.instructions import hot_loop
from tinyexplore.explore.analysis.models.ports import describe_port
from tinyexplore.explore.analysis.models.throughput_data import Bound, ThroughputData
from tinyexplore.explore.analysis.models.throughput_picture import bounds, throughput_svg
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow, Table
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.util.config import getenv

INSTALLATION_HINT = (
    "llvm-mca is not installed; it comes with LLVM (apt install llvm, brew install llvm), or set LLVM_MCA"
)
BROWSER_HINT = (
    "llvm-mca is a native program, which a browser cannot start. A page has the results that its notebook "
    "computed before, by view.kernels[0].throughput()"
)
ITERATIONS = 500  # simulated iterations: enough that the first ones do not matter
NEAR_FACTOR = 1.1  # factor: a bound this close to the cycles explains them
FAR_FACTOR = 2.0  # factor: if model and measurement differ by more, no bottleneck is named
# substitutes with the same features for CPUs that a version of llvm-mca does not know
SUBSTITUTE_CPUS = (
    ("+avx512f", ("sapphirerapids", "icelake-server", "skylake-avx512")),
    ("+avx2", ("alderlake", "skylake", "haswell")),
    ("+sve", ("neoverse-n2", "a64fx", "neoverse-n1")),
)
BY_ARCH = {"x86_64": "x86-64", "aarch64": "neoverse-n1", "riscv64": "sifive-u74"}


class ThroughputError(RuntimeError):
    """The kernel has no loop to analyze, or `llvm-mca` is missing."""


@dataclass(frozen=True, slots=True, repr=False)
class InstructionCost(DisplayableRow):
    """An instruction of the loop.

    text: the assembly.
    uops: the number of micro-operations.
    latency: cycles until its result is ready.
    reciprocal_throughput: cycles between two instructions of its kind.
    ports: the cycles for which it occupies each port.
    line: its line in the listing, from 0; None if unknown.
    """

    text: str
    uops: int
    latency: int
    reciprocal_throughput: float
    ports: dict[str, float]
    line: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Throughput(DisplayableRow):
    """A loop in the model of a CPU.

    lines: the first and the last line in the listing, None if unknown.
    instructions: the instructions of one iteration.
    cycles: the simulated cycles of one iteration.
    reciprocal_throughput: LLVM's figure for the block without dependencies, in cycles.
    port_cycles: the cycles of each port.
    front_end_cycles: the fewest cycles in which its instructions can issue.
    bound: the bottleneck; "unknown" if the measurement differs by more than 2×.
    reason: the reason, as text.
    cpu: the modeled CPU.
    tool: the program that simulated it.
    measured_cycles: the measured cycles of one iteration; None if unknown, and `notes` have the reason.
    notes: remarks for the reader.
    kernel: the name of the kernel.
    """

    lines: tuple[int, int] | None
    instructions: tuple[InstructionCost, ...]
    cycles: float
    reciprocal_throughput: float
    port_cycles: dict[str, float]
    front_end_cycles: float
    bound: Bound
    reason: str
    cpu: str
    tool: str
    measured_cycles: float | None = None
    notes: tuple[str, ...] = field(default=())
    kernel: str = ""

    def as_data(self) -> ThroughputData:
        """Returns the data that the panel draws."""
        instructions = [
            (
                instruction.text,
                instruction.uops,
                instruction.latency,
                tuple(sorted(instruction.ports.items())),
                instruction.line,
            )
            for instruction in self.instructions
        ]
        return ThroughputData(
            self.kernel,
            self.lines,
            tuple(instructions),
            self.cycles,
            tuple([(name, cycles) for name, cycles in self.port_cycles.items() if cycles]),
            self.front_end_cycles,
            self.bound,
            self.reason,
            self.cpu,
            self.tool,
            self.measured_cycles,
            self.notes,
        )

    def svg(self) -> str:
        """Returns the loop as a static picture."""
        return throughput_svg(self.as_data())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}

    def _repr_html_(self) -> str:
        rows = tuple((figure_text, f"{cycles:,.2f} cycles") for figure_text, cycles in bounds(self.as_data()))
        notes = (self.reason, f"{self.cpu}, {self.tool}. print() lists the instructions.")
        return Table(self.as_text(), ("bound", "an iteration takes"), rows, notes).html()

    def as_text(self) -> str:
        return f"throughput of {self.kernel or 'a loop'}: {self.cycles:,.2f} cycles an iteration"

    def __str__(self) -> str:
        """Returns the loop as a table, with the busiest ports first, and its bottleneck."""
        ports = [name for name, cycles in sorted(self.port_cycles.items(), key=lambda item: -item[1]) if cycles]
        width = max((len(row.text) for row in self.instructions), default=0)
        head = " ".join(f"{name:>8.8}" for name in ports)
        rows = [f"{'':{width}}  uops  latency  {head}"]
        for instruction in self.instructions:
            cells = " ".join(f"{instruction.ports.get(name, 0) or '':>8.4}" for name in ports)
            rows.append(
                f"{instruction.text:{width}}  {instruction.uops:>4}  {instruction.latency:>7}  {cells}".rstrip()
            )
        rows.append(f"{self.cycles:.2f} cycles an iteration on {self.cpu} ({self.tool}): {self.reason}")
        if self.measured_cycles is not None:
            rows.append(f"{self.measured_cycles:.2f} cycles an iteration as measured")
        return "\n".join([*rows, *self.notes])


def find_tool() -> str:
    """Returns the path of the tool: the environment variable LLVM_MCA, else `llvm-mca`.

    Raises:
        ThroughputError: it is not installed.
    """
    if sys.platform == "emscripten":
        raise ThroughputError(BROWSER_HINT)
    path = shutil.which(str(getenv("LLVM_MCA", "llvm-mca")))
    if path is None:
        raise ThroughputError(INSTALLATION_HINT)
    return path


@cache
def _list_known_cpus(tool: str, arch: str) -> frozenset[str]:
    help_text = _run(tool, [f"-mtriple={arch}", "-mcpu=help"], "").stderr
    return frozenset(re.findall(r"^  (\S+) +- Select the", help_text, re.MULTILINE))


@cache
def _read_version(tool: str) -> str:
    match = re.search(r"LLVM version (\S+)", _run(tool, ["--version"], "").stdout)
    return f"llvm-mca {match[1]}" if match else "llvm-mca"


def _run(tool: str, arguments: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([tool, *arguments], input=text, capture_output=True, encoding="utf-8", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ThroughputError(f"{tool} does not respond: {error}") from None


def model_for(target: Target, cpus_known: frozenset[str]) -> tuple[str, str]:
    """Returns the CPU to model, and a remark if it differs from the target's. `cpus_known` are those of the tool."""
    if target.cpu in cpus_known:
        return target.cpu, ""
    features = set(target.features.split(","))
    similar = [cpu for feature, cpus in SUBSTITUTE_CPUS if feature in features for cpu in cpus if cpu in cpus_known]
    chosen = similar[0] if similar else BY_ARCH[target.arch]
    return chosen, f"{target.cpu} is unknown to this llvm-mca; {chosen} is used instead"


def analyze(lines: Sequence[str], arch: str, cpu: str, tool: str = "") -> Throughput:
    """Analyzes the instructions in `lines` (without labels) as the body of an endless loop on `cpu`."""
    tool = tool or find_tool()
    body = [line.strip() for line in lines if line[:1] == " "]
    if not body:
        raise ThroughputError("the loop has no instruction to analyze")
    head = ".intel_syntax noprefix\n" if arch == "x86_64" else ""
    options = [f"-mtriple={arch}", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-json"]
    process = _run(tool, options, head + "\n".join(body) + "\n")
    start = process.stdout.find("{")
    try:
        data: dict[str, Any] = json.loads(process.stdout[start:]) if start >= 0 else {}
        region = data.get("CodeRegions", [data])[0]
        result = _parse_report(region, data.get("TargetInfo") or region["TargetInfo"], cpu, _read_version(tool))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        message = (process.stderr.strip().splitlines() or [f"{type(error).__name__}: {error}"])[0]
        raise ThroughputError(f"{_read_version(tool)} cannot analyze this loop: {message}") from None
    return result


def _parse_report(region: dict[str, Any], machine: dict[str, Any], cpu: str, tool: str) -> Throughput:
    """Parses the JSON report of llvm-mca for one region."""
    summary, names = region["SummaryView"], machine["Resources"]
    texts = [" ".join(text.split()) for text in region["Instructions"]]
    ports: list[dict[str, float]] = [{} for _ in texts]
    totals = {name: 0.0 for name in names}
    for pressure in region["ResourcePressureView"]["ResourcePressureInfo"]:
        number, name, used = (
            pressure["InstructionIndex"],
            names[pressure["ResourceIndex"]],
            float(pressure["ResourceUsage"]),
        )
        if number < len(texts):  # the last entries are sums
            ports[number][name] = ports[number].get(name, 0.0) + used
            totals[name] += used
    costs = tuple(
        InstructionCost(
            text,
            description["NumMicroOpcodes"],
            description["Latency"],
            float(description["RThroughput"] or 0.0),
            ports[number],
        )
        for number, (text, description) in enumerate(zip(texts, region["InstructionInfoView"]["InstructionList"]))
    )
    cycles = summary["TotalCycles"] / summary["Iterations"]
    front = sum(cost.uops for cost in costs) / summary["DispatchWidth"]
    bound, reason = _find_bottleneck(cycles, totals, front, summary["DispatchWidth"])
    return Throughput(
        lines=None,
        instructions=costs,
        cycles=round(cycles, 3),
        reciprocal_throughput=float(summary["BlockRThroughput"]),
        port_cycles={name: round(used, 3) for name, used in totals.items()},
        front_end_cycles=round(front, 3),
        bound=bound,
        reason=reason,
        cpu=cpu,
        tool=tool,
    )


def _find_bottleneck(cycles: float, ports: dict[str, float], front: float, width: int) -> tuple[Bound, str]:
    """Returns the bottleneck of a loop ("dependencies", "ports" or "front end") and the reason."""
    busiest = max(ports, key=lambda name: ports[name])
    if cycles > NEAR_FACTOR * max(ports[busiest], front):
        busiest_cycles = max(ports[busiest], front)
        return (
            "dependencies",
            f"instructions wait for each other's results; without waiting it took {busiest_cycles:.2f}",
        )
    if ports[busiest] >= front:
        names = [describe_port(name) for name, used in ports.items() if used > 0.95 * ports[busiest]]
        return "ports", f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} busy {ports[busiest]:.2f} cycles"
    return "front end", f"{width} instructions begin in a cycle at most, which takes {front:.2f}"


def throughput(
    assembly: Sequence[str],
    target: Target,
    uops: Sequence[UOp] = (),
    time_us: float | None = None,
    *,
    threads: int = 1,
    tool: str = "",
    kernel: str = "",
    clock_ghz: float | None = None,
) -> Throughput:
    """Models the busiest loop of a kernel with llvm-mca.

    Args:
        assembly: the listing of the kernel.
        target: the CPU.
        uops: the linear program of the kernel.
        time_us: the median of its samples, for the measured cycles.
        threads: the number of threads that shared each run.
        tool: the path of `llvm-mca`; "" finds it.
        kernel: the name of the kernel.
        clock_ghz: the measured clock of a core, for the measured cycles.

    Raises:
        ThroughputError: the kernel has no loop, or `llvm-mca` is missing.
    """
    tool = tool or find_tool()
    weights = loop_weights(uops)
    depth = max((depth for depth, _ in weights), default=0)
    body = hot_loop(assembly, target.arch, target.vector_bytes * 8, depth, [weight for _, weight in weights])
    if not body:
        raise ThroughputError("this kernel's assembly has no loop to analyze; larger sizes or fewer opts keep a loop")
    cpu, note = model_for(target, _list_known_cpus(tool, target.arch))
    result = analyze([assembly[number] for number in body], target.arch, cpu, tool)
    unrolled = loop_of_program([assembly[number] for number in body], uops)[2]
    measured, why = measured_cycles(uops, time_us, threads, clock_ghz, unrolled)
    used = [name for name, cycles in result.port_cycles.items() if cycles and describe_port(name) != name]
    legend = "; ".join(f"{name}: {describe_port(name)}" for name in used)
    result = replace(
        result,
        lines=(body[0], body[-1]),
        instructions=_add_lines(result.instructions, assembly, body),
        measured_cycles=measured,
        notes=tuple(text for text in (note, why, legend) if text),
        kernel=kernel,
    )
    return without_doubtful_bound(result)


def without_doubtful_bound(result: Throughput) -> Throughput:
    """Returns the result without a bottleneck if model and measurement differ by more than 2×."""
    measured = result.measured_cycles
    if measured is None or not result.cycles or 1 / FAR_FACTOR <= measured / result.cycles <= FAR_FACTOR:
        return result
    reason = (
        f"the model takes {result.cycles:.3g} cycles, the measurement {measured:.3g}, so the model names no bottleneck"
    )
    if measured > result.cycles:
        reason += ": it assumes that every load hits L1, and excludes memory, waiting for threads and the launch"
    return replace(result, bound="unknown", reason=reason)


def loop_weights(uops: Sequence[UOp]) -> list[tuple[int, float]]:
    """Returns, for each innermost loop of a linear program in order, its depth and its weight (iterations × nodes)."""
    weights: list[tuple[int, float]] = []
    stack: list[tuple[float, int]] = []  # iterations, nodes
    is_inner = False
    for node in common_path(uops):
        if node.op is Ops.RANGE:
            size = node.src[0].arg if node.src[0].op is Ops.CONST else 1
            stack.append((size * (stack[-1][0] if stack else 1), 0))
            is_inner = True
        elif node.op is Ops.ENDRANGE and stack:
            steps, nodes = stack.pop()
            if is_inner:
                weights.append((len(stack) + 1, float(steps * nodes)))
            is_inner = False
        elif stack:
            stack[-1] = (stack[-1][0], stack[-1][1] + 1)
    return weights


def common_path(uops: Sequence[UOp]) -> list[UOp]:
    """Returns a linear program without cold loops over few values, such as that of `sin` for large arguments."""
    path: list[UOp] = []
    skipped: UOp | None = None
    for node in uops:
        if skipped is None and node.op is Ops.RANGE and node.arg.kind is AxisKind.RARE:
            skipped = node
        elif skipped is None:
            path.append(node)
        elif node.op is Ops.ENDRANGE and node.src[0] is skipped:
            skipped = None
    return path


_POINTED = {"zmmword": 64, "ymmword": 32, "xmmword": 16, "qword": 8, "dword": 4, "word": 2, "byte": 1}
# memory operands except spills: a spill has a constant offset from the stack pointer, an array on the stack an index
_OPERAND = re.compile(r"\b(\w+) ptr \[(?!r[sb]p(?: [+-] \d\w*)?\])")


def loop_of_program(body: Sequence[str], uops: Sequence[UOp]) -> tuple[int, float, float]:
    """Finds the innermost loop of the linear program that corresponds to a loop of the assembly.

    It is the busiest loop, or the busiest of those whose bytes an iteration accesses a whole number of times.

    Returns:
        Its position among the innermost loops, its iterations, and how many of these one iteration of the assembly
        does.
    """
    accessed = sum(_POINTED.get(word, 0) for line in body for word in _OPERAND.findall(line))
    loops = _list_inner_loops(uops)
    if not loops:
        return 0, 1.0, 1.0
    order = sorted(range(len(loops)), key=lambda number: -loops[number][0])
    for number in order:
        steps, nbytes = loops[number]
        times = round(accessed / nbytes) if nbytes else 0
        if times >= 1 and abs(accessed / nbytes - times) < 0.1:
            return number, steps, float(times)
    return order[0], loops[order[0]][0], 1.0


def _list_inner_loops(uops: Sequence[UOp]) -> list[tuple[float, int]]:
    """Returns, for each innermost loop in order, its total number of iterations and the bytes that one accesses."""
    loops: list[tuple[float, int]] = []
    stack: list[tuple[float, int]] = []
    is_inner = False
    for node in common_path(uops):
        if node.op is Ops.RANGE:
            size = node.src[0].arg if node.src[0].op is Ops.CONST else 1
            stack.append((float(size * (stack[-1][0] if stack else 1)), 0))
            is_inner = True
        elif node.op is Ops.ENDRANGE and stack:
            if is_inner:
                loops.append(stack[-1])
            stack.pop()
            is_inner = False
        elif stack and node.op in (Ops.LOAD, Ops.STORE) and node.src[0].op is Ops.INDEX:
            dtype = node.dtype if node.op is Ops.LOAD else node.src[1].dtype
            steps, nbytes = stack[-1]
            stack[-1] = (steps, nbytes + dtype.scalar.itemsize * dtype.count)
    return loops


def _add_lines(
    costs: tuple[InstructionCost, ...], assembly: Sequence[str], body: Sequence[int]
) -> tuple[InstructionCost, ...]:
    """Returns the instructions with their lines, if each line of the loop is an instruction."""
    lines = [number for number in body if assembly[number][:1] == " "]
    if len(lines) != len(costs):
        return costs  # a directive is no instruction
    return tuple(replace(cost, line=line) for cost, line in zip(costs, lines, strict=True))


def measured_cycles(
    uops: Sequence[UOp],
    time_us: float | None,
    threads: int = 1,
    clock_ghz: float | None = None,
    unrolled: float = 1.0,
) -> tuple[float | None, str]:
    """Estimates the cycles of one iteration of the assembly's busiest loop from the median time and the measured clock.

    Returns the cycles, or None, and the method of the estimate or the reason why there is none.

    threads: the number of threads that share the kernel's THREAD axis.
    unrolled: how many iterations of the linear program one iteration of the assembly does.
    """
    if time_us is None or not uops:
        return None, ""
    if clock_ghz is None:
        return None, "no cycles were measured: the clock of this CPU was not measured"
    loops: list[UOp] = []
    iterations = 0
    for node in common_path(uops):
        if node.op is Ops.RANGE:
            loops.append(node)
            if any(loop.src[0].op is not Ops.CONST for loop in loops):
                return None, "no cycles were measured: the sizes of its loops are known only when it runs"
            iterations = max(iterations, prod(loop.src[0].arg for loop in loops))
        elif node.op is Ops.ENDRANGE:
            loops.pop()
    if iterations == 0:
        return None, ""
    each = iterations
    if any(node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD for node in uops):
        each = -(-iterations // threads)
    per_thread = f" on each of {threads} threads" if each != iterations else ""
    explanation = (
        f"measured: {time_us:.3g} µs × {clock_ghz:.2f} GHz / {count_text(each, 'iteration')}{per_thread} "
        "of the linear program"
    )
    if unrolled > 1:
        explanation += f" × {unrolled:.3g}, which LLVM merged into one"
    return round(time_us * clock_ghz * 1e3 / each * unrolled, 3), f"{explanation}; the call overhead is included"


__all__ = [
    "INSTALLATION_HINT",
    "BROWSER_HINT",
    "InstructionCost",
    "Throughput",
    "ThroughputError",
    "analyze",
    "without_doubtful_bound",
    "common_path",
    "find_tool",
    "loop_of_program",
    "loop_weights",
    "measured_cycles",
    "model_for",
    "throughput",
]
