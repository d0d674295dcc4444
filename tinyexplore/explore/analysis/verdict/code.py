"""Facts from a kernel's program and assembly: executed operations, repeated accumulations, cycles of the hot loop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tinyexplore.dtype import dtypes
from tinyexplore.explore.analysis.comparisons.instructions import hot_loop
from tinyexplore.explore.analysis.models.ports import describe_port
from tinyexplore.explore.analysis.models.throughput import (
    ThroughputError,
    loop_of_program,
    loop_weights,
    throughput,
)
from tinyexplore.explore.analysis.verdict.access import size_of
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.kernel import Kernel
from tinyexplore.target import Target
from tinyexplore.uop import Ops, UOp

LATENCY = 4  # cycles from an addition or multiply-add to a dependent one
WIDTH = 6  # most instructions issued per cycle
DIVISION = 10  # multiply-adds in the time of one vector division or square root, at least
_FLOAT = {Ops.ADD, Ops.MUL, Ops.MULACC, Ops.MAX, Ops.MIN, Ops.NEG, Ops.FDIV, Ops.SQRT}
_INTEGER = {
    Ops.ADD,
    Ops.MUL,
    Ops.MULACC,
    Ops.XOR,
    Ops.AND,
    Ops.OR,
    Ops.SHL,
    Ops.SHR,
    Ops.MAX,
    Ops.MIN,
    Ops.NEG,
}
SIMPLE_OPS_PER_MULTIPLICATION = (
    4  # vector additions, shifts and bit operations in the time of one multiplication of int32
)
_VECTOR = re.compile(r"\b[xyz]mm\d+")
_SCALAR = re.compile(r"(ss|sd|sh)$")
_ARITHMETIC = re.compile(
    r"^v?p?(add|sub|mul|fn?m(add|sub)|div|sqrt|max|min|dp|rndscale|round|scalef|and|or|xor|cmp|cvt)"
)
_STACK = re.compile(r"ptr \[r[sb]p(?: [+-] \d+)?\]|\bptr \[r[sb]p\]")
_WIDE_LOAD = re.compile(r"\b[yz]mmword ptr \[(?!r[sb]p)")
_BITS = {"x": 128, "y": 256, "z": 512}


@dataclass(frozen=True, slots=True, repr=False)
class HotLoop(DisplayableRow):
    """The assembly's busiest loop."""

    instructions: int
    """Number of its instructions."""
    vector: int
    """Number of instructions that compute or move several values."""
    stack: int
    """Number of register spills: vector registers that it loads from the stack or stores there."""
    wide_loads: int
    """Number of loads of 32 or 64 bytes, except from the stack."""
    arithmetic: float
    """Vector arithmetic in units of one full-width instruction; divisions and square roots count DIVISION."""
    past_caches: bool
    """Whether the kernel has non-temporal stores."""
    lines: tuple[int, int]
    """Its first and last line in the listing."""


def hot_loop_of(assembly: Sequence[str], target: Target, uops: Sequence[UOp]) -> HotLoop | None:
    """Returns the busiest loop of x86 assembly; None if there is none, or for another architecture."""
    if target.arch != "x86_64":
        return None
    weights = loop_weights(uops)
    depth = max((depth for depth, _ in weights), default=0)
    body = hot_loop(assembly, target.arch, target.vector_bytes * 8, depth, [weight for _, weight in weights])
    if not body:
        return None
    texts = [assembly[number].strip() for number in body if assembly[number][:1] == " "]
    return HotLoop(
        instructions=len(texts),
        vector=sum(_is_vector(text) for text in texts),
        stack=sum(_STACK.search(text) is not None and _VECTOR.search(text) is not None for text in texts),
        wide_loads=sum(_WIDE_LOAD.search(text) is not None and "movnt" not in text for text in texts),
        arithmetic=sum(_count_arithmetic_slots(text, target.vector_bytes * 8) for text in texts),
        past_caches=any("movnt" in line for line in assembly),
        lines=(body[0], body[-1]),
    )


def _is_vector(text: str) -> bool:
    mnemonic, _, operands = text.partition(" ")
    return _VECTOR.search(operands) is not None and not _SCALAR.search(mnemonic) and not mnemonic.startswith("vcvtsi")


def _count_arithmetic_slots(text: str, bits: int) -> float:
    mnemonic, _, operands = text.partition(" ")
    if not _ARITHMETIC.match(mnemonic) or "mm" not in operands:
        return 0.0
    width = max((_BITS[name] for name in re.findall(r"\b([xyz])mm\d", operands)), default=128)
    is_division = re.match(r"v?(div|sqrt)", mnemonic) is not None
    part = min(1.0, max(width, 256) / bits) if bits > 256 else 1.0
    return part * (DIVISION if is_division else 1)


@dataclass(frozen=True, slots=True, repr=False)
class CodeModel(DisplayableRow):
    """The time of a kernel's instructions, if all loads hit the L1."""

    cycles: float
    """Cycles of one iteration of the hot loop."""
    busiest: float
    """Cycles without dependencies: of the busiest port, or the front end."""
    explains: float
    """The modeled time / the measured time."""
    measured: float
    """Cycles of one iteration by the measured time, without the time of other loops in proportion to their work."""
    is_carried: bool
    """Whether an iteration depends on the result of the previous one."""
    ports: str
    """The busiest ports as text; "" if the model may name none."""
    source: str
    """The tool of the model."""


def code_model(
    assembly: Sequence[str],
    target: Target,
    uops: Sequence[UOp],
    time_us: float,
    threads: int,
    clock_ghz: float | None,
    loop: HotLoop | None,
    fma_a_cycle: float,
    has_ports: bool,
    tool: bool = True,
) -> tuple[CodeModel | None, str]:
    """Models the time of the kernel's instructions.

    fma_a_cycle: measured full-width multiply-adds that one core issues per cycle.
    has_ports: whether llvm-mca's ports are reliable enough to name one.
    tool: whether to run llvm-mca.

    Returns:
        The model or None, and the reason why there is none or what it lacks, else "".
    """
    if loop is None:
        return None, "the assembly has no loop for the model"
    if clock_ghz is None:
        return None, "the clock of this CPU was not measured"
    if _has_variable_sizes(uops):
        return None, "the loop sizes are known only at run time"
    number, steps, unrolled = loop_of_program(assembly[loop.lines[0] : loop.lines[1] + 1], uops)
    measured = time_us * clock_ghz * 1e3 / max(steps / threads, 1.0) * unrolled
    weights = [weight for _, weight in loop_weights(uops)]
    others = sum(weights) / weights[number] if weights and weights[number] else 1.0
    counted = max(loop.arithmetic / max(fma_a_cycle, 0.1), loop.instructions / WIDTH)
    chain = _find_chain_cycles(uops)
    cycles, ports, lacks = max(counted, chain), "", ""
    busiest, source = counted, "instructions counted, dependence chains by the program"
    if tool:
        try:
            model = throughput(assembly, target, uops)
            busiest = max(*model.port_cycles.values(), model.front_end_cycles)
            cycles, source = model.cycles, f"{model.tool}, {model.cpu}"
            top = [name for name, used in model.port_cycles.items() if used > 0.95 * max(model.port_cycles.values())]
            ports = ", ".join(describe_port(name) for name in top)
            if any("not known" in note for note in model.notes):
                lacks = f"the model is that of another CPU ({model.cpu})"
            if counted > 1.3 * busiest:  # the arithmetic alone takes longer on this machine than in the tool's model
                busiest, ports = counted, ""
                cycles = max(cycles, counted)
        except ThroughputError as error:
            lacks = str(error)
    measured /= others
    explains = cycles / measured if measured else 0.0
    return CodeModel(cycles, busiest, explains, measured, chain > 0, ports if has_ports else "", source), lacks


def _has_variable_sizes(uops: Sequence[UOp]) -> bool:
    return any(node.op is Ops.RANGE and node.src[0].op is not Ops.CONST for node in uops)


def _find_chain_cycles(uops: Sequence[UOp]) -> float:
    """Returns LATENCY if an innermost loop has an accumulator (each iteration waits for the previous one), else 0."""
    inside = False
    for node in uops:
        if node.op is Ops.RANGE:
            inside = True
        elif node.op is Ops.ENDRANGE:
            inside = False
        elif inside and node.op is Ops.ASSIGN and dtypes.is_float(node.dtype):
            return LATENCY
    return 0.0


def redundancy(uops: Sequence[UOp], kernel: Kernel) -> float:
    """Returns the executed accumulations / the accumulations that the result needs; 1 without accumulations."""
    needed = 0
    for node in kernel.ast.toposort():
        if node.op is Ops.REDUCE:
            loops = {*node.ranges, *node.src[1:]}
            needed += node.dtype.count * prod(size_of(loop) for loop in loops if loop.op is Ops.RANGE)
    executed, times = 0, [1]
    for node in uops:
        if node.op is Ops.RANGE:
            times.append(times[-1] * size_of(node))
        elif node.op is Ops.ENDRANGE:
            times.pop()
        elif node.op is Ops.ASSIGN:
            executed += times[-1] * node.dtype.count
    return executed / needed if needed else 1.0


def executed_operations(uops: Sequence[UOp]) -> int:
    """Returns the floating-point operations of one run, per lane.

    A multiply-add counts once, `exp` with all its operations.
    """
    total, times = 0, [1]
    for node in uops:
        if node.op is Ops.RANGE:
            times.append(times[-1] * size_of(node))
        elif node.op is Ops.ENDRANGE:
            times.pop()
        elif node.op in _FLOAT and dtypes.is_float(node.dtype):
            total += times[-1] * node.dtype.count
    return total


def integer_operations(uops: Sequence[UOp]) -> int:
    """Returns the number of integer multiply-adds that take as long as the integer operations of one run, per lane.

    It is the number of multiplications, or a quarter of the others, whichever is larger. Index arithmetic does not
    count.
    """
    counted = _find_stored_values(uops)
    products = others = 0
    times = [1]
    for node in uops:
        if node.op is Ops.RANGE:
            times.append(times[-1] * size_of(node))
        elif node.op is Ops.ENDRANGE:
            times.pop()
        elif node in counted and node.op in _INTEGER and dtypes.is_int(node.dtype):
            lanes = times[-1] * node.dtype.count
            is_product = node.op in (Ops.MUL, Ops.MULACC)
            products, others = products + lanes * is_product, others + lanes * (not is_product)
    return max(products, others // SIMPLE_OPS_PER_MULTIPLICATION)


def _find_stored_values(uops: Sequence[UOp]) -> set[UOp]:
    """Returns the stored or accumulated values and all values from which they are computed, without addresses."""
    values: set[UOp] = set()
    pending = [node.src[1] for node in uops if node.op in (Ops.STORE, Ops.ASSIGN)]
    while pending:
        node = pending.pop()
        if node not in values and node.op not in (Ops.INDEX, Ops.RANGE):
            values.add(node)
            pending += node.src
    return values


__all__ = [
    "CodeModel",
    "HotLoop",
    "code_model",
    "executed_operations",
    "hot_loop_of",
    "integer_operations",
    "redundancy",
]
