"""What the busiest loop of a kernel costs on the CPU's ports, and what bounds it, by LLVM's models (`llvm-mca`).

Three bounds of one iteration, in cycles: the busiest port, the instructions that can begin in a cycle, and what the
simulation takes, which is more than either only where an instruction waits for the result of another.
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

from tinyexplore.explore.byhand.throughput_picture import throughput_svg
from tinyexplore.explore.comparing.instructions import instructions_of
from tinyexplore.explore.counted import count_text
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.util.config import getenv

HOW_TO_GET_IT = "llvm-mca is not installed; it comes with LLVM (apt install llvm, brew install llvm), or set LLVM_MCA"
NOT_IN_A_BROWSER = (
    "llvm-mca is a native program, which no browser starts; what a notebook asked before (view.throughput(0)) goes "
    "with its pages"
)
ITERATIONS = 500  # simulated: how the first ones differ no longer shows
NEAR = 1.1  # cycles this close to a bound are explained by it
# of CPUs that a version of llvm-mca does not know: those to take in their place, by what they can do
IN_THEIR_PLACE = (
    ("+avx512f", ("sapphirerapids", "icelake-server", "skylake-avx512")),
    ("+avx2", ("alderlake", "skylake", "haswell")),
    ("+sve", ("neoverse-n2", "a64fx", "neoverse-n1")),
)
BY_ARCH = {"x86_64": "x86-64", "aarch64": "neoverse-n1", "riscv64": "sifive-u74"}


class ThroughputError(RuntimeError):
    """There is nothing to analyse, or nothing to analyse it with."""


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """An instruction of the loop. `latency` and `reciprocal_throughput` in cycles; `ports`: the cycles that it keeps
    each busy. `line`: where it stands in the listing, from 0; None where that is not known."""

    text: str
    uops: int
    latency: int
    reciprocal_throughput: float
    ports: dict[str, float]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Throughput:
    """A loop, by the model of `cpu`. `cycles`: of one iteration, as simulated; `bound` and `reason`: what bounds it.

    `port_cycles`: the busiest port's; `front_end_cycles`: those in which its instructions can begin at best.
    `reciprocal_throughput`: LLVM's figure for the block, without dependencies. `measured_cycles`: of one iteration, by
    the time of a run; None where nobody can tell, `notes` say why, and what else a reader must know.
    """

    lines: tuple[int, int] | None
    instructions: tuple[InstructionCost, ...]
    cycles: float
    reciprocal_throughput: float
    port_cycles: dict[str, float]
    front_end_cycles: float
    bound: str
    reason: str
    cpu: str
    tool: str
    measured_cycles: float | None = None
    notes: tuple[str, ...] = field(default=())
    kernel: str = ""

    def as_data(self) -> dict[str, Any]:
        """What the panel draws; ports that nothing uses are left out."""
        return {
            "kernel": self.kernel,
            "lines": self.lines,
            "instructions": [
                [one.text, one.uops, one.latency, sorted(one.ports.items()), one.line] for one in self.instructions
            ],
            "cycles": self.cycles,
            "ports": [[name, cycles] for name, cycles in self.port_cycles.items() if cycles],
            "front_end": self.front_end_cycles,
            "bound": self.bound,
            "reason": self.reason,
            "cpu": self.cpu,
            "tool": self.tool,
            "measured": self.measured_cycles,
            "notes": self.notes,
        }

    def svg(self) -> str:
        """The loop as a static picture."""
        return throughput_svg(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}

    def __str__(self) -> str:
        """The loop as a table, the busiest ports first, and what bounds it."""
        ports = [name for name, cycles in sorted(self.port_cycles.items(), key=lambda one: -one[1]) if cycles]
        width = max((len(one.text) for one in self.instructions), default=0)
        head = " ".join(f"{name:>8.8}" for name in ports)
        rows = [f"{'':{width}}  uops  latency  {head}"]
        for one in self.instructions:
            cells = " ".join(f"{one.ports.get(name, 0) or '':>8.4}" for name in ports)
            rows.append(f"{one.text:{width}}  {one.uops:>4}  {one.latency:>7}  {cells}".rstrip())
        rows.append(f"{self.cycles:.2f} cycles an iteration on {self.cpu} ({self.tool}): {self.reason}")
        if self.measured_cycles is not None:
            rows.append(f"{self.measured_cycles:.2f} cycles an iteration as measured")
        return "\n".join([*rows, *self.notes])


def find_tool() -> str:
    """The program: what the environment variable LLVM_MCA names, else `llvm-mca`. ThroughputError where it is not."""
    if sys.platform == "emscripten":
        raise ThroughputError(NOT_IN_A_BROWSER)
    found = shutil.which(str(getenv("LLVM_MCA", "llvm-mca")))
    if found is None:
        raise ThroughputError(HOW_TO_GET_IT)
    return found


@cache
def _known_cpus(tool: str, arch: str) -> frozenset[str]:
    words = _run(tool, [f"-mtriple={arch}", "-mcpu=help"], "").stderr
    return frozenset(re.findall(r"^  (\S+) +- Select the", words, re.MULTILINE))


@cache
def _version(tool: str) -> str:
    found = re.search(r"LLVM version (\S+)", _run(tool, ["--version"], "").stdout)
    return f"llvm-mca {found[1]}" if found else "llvm-mca"


def _run(tool: str, arguments: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([tool, *arguments], input=text, capture_output=True, encoding="utf-8", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ThroughputError(f"{tool} does not answer: {error}") from None


def model_for(target: Target, known: frozenset[str]) -> tuple[str, str]:
    """The CPU to be modelled, and a word on it where that is another than the target's; `known`: those of the tool."""
    if target.cpu in known:
        return target.cpu, ""
    have = set(target.features.split(","))
    wanted = [cpu for feature, cpus in IN_THEIR_PLACE if feature in have for cpu in cpus if cpu in known]
    chosen = wanted[0] if wanted else BY_ARCH[target.arch]
    return chosen, f"{target.cpu} is not known to this llvm-mca: {chosen} stands in its place"


def analyse(lines: Sequence[str], arch: str, cpu: str, tool: str = "") -> Throughput:
    """The instructions in `lines` (labels are left out) as the body of a loop, again and again, on `cpu`."""
    tool = tool or find_tool()
    body = [line.strip() for line in lines if line[:1] == " "]
    if not body:
        raise ThroughputError("there is no instruction to analyse")
    head = ".intel_syntax noprefix\n" if arch == "x86_64" else ""
    given = [f"-mtriple={arch}", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-json"]
    done = _run(tool, given, head + "\n".join(body) + "\n")
    start = done.stdout.find("{")
    try:
        data: dict[str, Any] = json.loads(done.stdout[start:]) if start >= 0 else {}
        region = data.get("CodeRegions", [data])[0]
        found = _read(region, data.get("TargetInfo") or region["TargetInfo"], cpu, _version(tool))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        words = (done.stderr.strip().splitlines() or [f"{type(error).__name__}: {error}"])[0]
        raise ThroughputError(f"{_version(tool)} cannot analyse this loop: {words}") from None
    return found


def _read(region: dict[str, Any], machine: dict[str, Any], cpu: str, tool: str) -> Throughput:
    summary, names = region["SummaryView"], machine["Resources"]
    texts = [" ".join(text.split()) for text in region["Instructions"]]
    ports: list[dict[str, float]] = [{} for _ in texts]
    totals = {name: 0.0 for name in names}
    for one in region["ResourcePressureView"]["ResourcePressureInfo"]:
        place, name, used = one["InstructionIndex"], names[one["ResourceIndex"]], float(one["ResourceUsage"])
        if place < len(texts):  # the last are the sums
            ports[place][name] = ports[place].get(name, 0.0) + used
            totals[name] += used
    costs = tuple(
        InstructionCost(text, told["NumMicroOpcodes"], told["Latency"], float(told["RThroughput"] or 0.0), ports[place])
        for place, (text, told) in enumerate(zip(texts, region["InstructionInfoView"]["InstructionList"]))
    )
    cycles = summary["TotalCycles"] / summary["Iterations"]
    front = sum(cost.uops for cost in costs) / summary["DispatchWidth"]
    bound, reason = _bound(cycles, totals, front, summary["DispatchWidth"])
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


def _bound(cycles: float, ports: dict[str, float], front: float, width: int) -> tuple[str, str]:
    """What bounds a loop: "dependencies", "ports" or "front end", and why that is said."""
    busiest = max(ports, key=lambda name: ports[name])
    if cycles > NEAR * max(ports[busiest], front):
        least = max(ports[busiest], front)
        return "dependencies", f"instructions wait for each other's results; without that it took {least:.2f}"
    if ports[busiest] >= front:
        names = [name for name, used in ports.items() if used > 0.95 * ports[busiest]]
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
) -> Throughput:
    """The busiest loop of a kernel. assembly: its listing; uops: its linear program, time_us: the time of a run,
    threads: how many shared it, for the cycles that it was measured to take. ThroughputError where it has no loop, or
    there is no `llvm-mca`."""
    tool = tool or find_tool()
    loop = instructions_of(assembly, target.arch, target.vector_bytes * 8).loop
    if loop is None:
        raise ThroughputError("this kernel's assembly has no loop")
    cpu, note = model_for(target, _known_cpus(tool, target.arch))
    found = analyse(assembly[loop[0] : loop[1] + 1], target.arch, cpu, tool)
    measured, why = measured_cycles(uops, time_us, threads)
    notes = tuple(text for text in (note, why) if text)
    return replace(
        found,
        lines=loop,
        instructions=_placed(found.instructions, assembly, loop),
        measured_cycles=measured,
        notes=notes,
        kernel=kernel,
    )


def _placed(
    costs: tuple[InstructionCost, ...], assembly: Sequence[str], loop: tuple[int, int]
) -> tuple[InstructionCost, ...]:
    """The instructions with their lines, where each line of the loop is one."""
    lines = [place for place in range(loop[0], loop[1] + 1) if assembly[place][:1] == " "]
    if len(lines) != len(costs):
        return costs  # a directive is no instruction
    return tuple(replace(cost, line=line) for cost, line in zip(costs, lines, strict=True))


def measured_cycles(uops: Sequence[UOp], time_us: float | None, threads: int = 1) -> tuple[float | None, str]:
    """Cycles of one iteration of the loop that is done most often, by the time of a run and the clock that the system
    tells; how that is estimated, or why it cannot be. threads: that share the kernel's THREAD axis."""
    if time_us is None or not uops:
        return None, ""
    clock = clock_mhz()
    if clock is None:
        return None, "no cycles were measured: this system does not tell the clock of its CPU"
    loops: list[UOp] = []
    most = 0
    for node in uops:
        if node.op is Ops.RANGE:
            loops.append(node)
            if any(loop.src[0].op is not Ops.CONST for loop in loops):
                return None, "no cycles were measured: the sizes of its loops are known only when it runs"
            most = max(most, prod(loop.src[0].arg for loop in loops))
        elif node.op is Ops.ENDRANGE:
            loops.pop()
    if most == 0:
        return None, ""
    each = most
    if any(node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD for node in uops):
        each = -(-most // threads)
    on = f" on each of {threads} threads" if each != most else ""
    how = f"measured: {time_us:.3g} µs × {clock:.0f} MHz, which the system tells, / {count_text(each, 'iteration')}{on}"
    says = f"{how} of the linear program; LLVM may have unrolled several into one, and a call takes time, too"
    return round(time_us * clock / each, 3), says


def clock_mhz() -> float | None:
    """The fastest clock of a core, as the system tells it now."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = [float(line.partition(":")[2]) for line in file if line.startswith("cpu MHz")]
    except (OSError, ValueError):
        return None
    return max(found, default=None)


__all__ = [
    "HOW_TO_GET_IT",
    "NOT_IN_A_BROWSER",
    "InstructionCost",
    "Throughput",
    "ThroughputError",
    "analyse",
    "clock_mhz",
    "find_tool",
    "measured_cycles",
    "model_for",
    "throughput",
]
