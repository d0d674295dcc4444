"""Benchmark loops in LLVM IR that reach the machine's limits: memory streams, and chains of arithmetic instructions.

llvmlite compiles them for this CPU, or for the current TARGET. Pointers are aligned to 64 bytes; sizes are multiples of
CHUNK.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.runtime.tile_registers import request_permission, usable_features
from tinyexplore.target import AMX, current_choice

try:
    import mmap
except ImportError:  # some browsers' Python lacks this module
    mmap = None  # type: ignore[assignment]

CHUNK = 4096  # fewest bytes of one loop iteration; sizes are multiples of it
STREAMS = 8  # vectors of one loop iteration
TILE_TYPE = "x86_amx"  # LLVM's type of a tile register
TILE_CHAINS = 4  # independent products of tiles: eight registers hold them and two factors for each side
CHAINS = 12  # independent multiply-adds: more than latency × units, fewer than registers

# name → (reads, writes, bypasses the caches)
_COPIES = {
    "copy": (True, True, False),
    "copy_nt": (True, True, True),
    "fill": (False, True, False),
    "fill_nt": (False, True, True),
}


def _write_loop(name: str, arguments: str, body: str, after: str = "") -> str:
    """Returns `void name(…, i64 size, i64 repeat)`: it runs `body` for i = 0, step, … below size, `repeat` times."""
    return f"""
define void @{name}({arguments}, i64 %size, i64 %step, i64 %repeat) {{
entry:
  br label %again
again:
  %turn = phi i64 [0, %entry], [%turn1, %done]
  call void asm sideeffect "", "~{{memory}}"()
  %some = icmp ugt i64 %size, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [0, %again], [%i1, %loop]
{body}
  %i1 = add nuw i64 %i, %step
  %more = icmp ult i64 %i1, %size
  br i1 %more, label %loop, label %done
done:
  %turn1 = add nuw i64 %turn, 1
  %left = icmp ult i64 %turn1, %repeat
  br i1 %left, label %again, label %end
end:
{after}
  ret void
}}
"""


def _copy_ir(name: str, vector: str, width: int, fence: str) -> str:
    """Returns the IR of a copy: one read and one write per vector."""
    reads, writes, past = _COPIES[name]
    lines = []
    hint = ", !nontemporal !0" if past else ""
    for k in range(STREAMS):
        lines.append(f"  %o{k} = add nuw i64 %i, {k * width}")
        value = f"<{', '.join(['i32 7'] * (width // 4))}>"
        if reads:
            lines.append(f"  %p{k} = getelementptr i8, ptr %from, i64 %o{k}")
            lines.append(f"  %v{k} = load {vector}, ptr %p{k}, align {width}")
            value = f"%v{k}"
        lines.append(f"  %q{k} = getelementptr i8, ptr %to, i64 %o{k}")
        lines.append(f"  store {vector} {value}, ptr %q{k}, align {width}{hint}")
    return _write_loop(name, "ptr noalias %from, ptr noalias %to", "\n".join(lines), fence if past else "")


def _read_ir(vector: str, width: int) -> str:
    """Returns the IR of the read stream: each vector is or-ed into one of STREAMS accumulators.

    Accumulators are stored to memory only between repetitions.
    """
    head, lines = [], []
    for k in range(STREAMS):
        head.append(f"  %o{k} = add nuw i64 %i, {k * width}")
        head.append(f"  %p{k} = getelementptr i8, ptr %from, i64 %o{k}")
        head.append(f"  %v{k} = load {vector}, ptr %p{k}, align {width}")
        lines.append(f"  %a{k} = phi {vector} [zeroinitializer, %again], [%b{k}, %loop]")
    adds = [f"  %b{k} = or {vector} %a{k}, %v{k}" for k in range(STREAMS)]
    last = [f"  %c{k} = phi {vector} [zeroinitializer, %again], [%b{k}, %loop]" for k in range(STREAMS)]
    total = "%c0"
    sums = []
    for k in range(1, STREAMS):
        sums.append(f"  %s{k} = or {vector} {total}, %c{k}")
        total = f"%s{k}"
    sums.append(f"  store {vector} {total}, ptr %to, align {width}")
    text = _write_loop("read", "ptr noalias %from, ptr noalias %to", "\n".join([*lines, *head, *adds]))
    return text.replace("done:\n", "done:\n" + "\n".join([*last, *sums]) + "\n")


def _write_triad_ir(name: str, vector: str, width: int, fence: str) -> str:
    """Returns the IR of the triad: to = from | second, two reads and one write per vector.

    `second` is `size` bytes after `from`.
    """
    lines = []
    hint = ", !nontemporal !0" if name.endswith("_nt") else ""
    for k in range(STREAMS):
        lines.append(f"  %o{k} = add nuw i64 %i, {k * width}")
        lines.append(f"  %p{k} = getelementptr i8, ptr %from, i64 %o{k}")
        lines.append(f"  %v{k} = load {vector}, ptr %p{k}, align {width}")
        lines.append(f"  %r{k} = getelementptr i8, ptr %p{k}, i64 %size")
        lines.append(f"  %w{k} = load {vector}, ptr %r{k}, align {width}")
        lines.append(f"  %x{k} = or {vector} %v{k}, %w{k}")
        lines.append(f"  %q{k} = getelementptr i8, ptr %to, i64 %o{k}")
        lines.append(f"  store {vector} %x{k}, ptr %q{k}, align {width}{hint}")
    return _write_loop(name, "ptr noalias %from, ptr noalias %to", "\n".join(lines), fence if hint else "")


@dataclass(frozen=True, repr=False)
class FmaRate(DisplayableRow):
    """An instruction whose rate is measured.

    name: the name of the rate.
    factor: the vector type of its factors.
    accumulator: the type of its accumulator.
    intrinsic: LLVM's intrinsic, "" for a multiplication and an addition.
    operations: the number of operations of one instruction.
    element: one element of a factor, as bytes.
    """

    name: str
    factor: str
    accumulator: str
    intrinsic: str
    operations: int
    element: bytes

    @property
    def symbol(self) -> str:
        """The name of the loop."""
        return self.name.replace(" ", "_")


def arithmetic_of(vector_bytes: int, features: set[str], is_x86: bool) -> list[FmaRate]:
    """Returns the arithmetic instructions that kernels for this target use."""
    kinds = []
    for name, kind, suffix, size, element in (
        ("float32", "float", "f32", 4, struct.pack("<f", 0.999)),
        ("float64", "double", "f64", 8, struct.pack("<d", 0.999)),
    ):
        lanes = vector_bytes // size
        vector = f"<{lanes} x {kind}>"
        is_fused = not is_x86 or "fma" in features
        kinds.append(
            FmaRate(name, vector, vector, f"llvm.fma.v{lanes}{suffix}" if is_fused else "", 2 * lanes, element)
        )
    lanes = vector_bytes // 4
    numbers = f"<{lanes} x i32>"
    kinds.append(FmaRate("int32", numbers, numbers, "", 2 * lanes, struct.pack("<i", 1664525)))
    if "avx512bf16" in features:
        intrinsic = "llvm.x86.avx512bf16.dpbf16ps.512"
        factor = struct.pack("<f", 1.0)[2:]
        kinds.append(FmaRate("bfloat16 dot", "<32 x bfloat>", "<16 x float>", intrinsic, 64, factor))
    if "avx512vnni" in features:
        kinds.append(FmaRate("int8 dot", "<64 x i8>", "<16 x i32>", "llvm.x86.avx512.vpdpbusd.512", 128, b"\x01"))
    return kinds + [
        FmaRate(
            f"{core.factor.name} tile",
            TILE_TYPE,
            TILE_TYPE,
            f"llvm.x86.{core.call}.internal",
            2 * prod(core.dims),
            element,
        )
        for core, element in ((core, b"\x01" if core.factor.itemsize == 1 else b"\x80\x3f") for core in AMX)
        if features.issuperset(core.needs) and request_permission()
    ]


def _write_tile_ir(rate: FmaRate) -> str:
    """Returns `void NAME(ptr at, i64 turns)`: TILE_CHAINS chains on tile registers.

    Each row of a factor is the one at `at`.
    """
    shape = "i16 16, i16 64"
    phis, steps, ends = [], [], []
    for k in range(TILE_CHAINS):
        phis.append(f"  %a{k} = phi {TILE_TYPE} [%zero{k}, %entry], [%b{k}, %loop]")
        factors = f"{TILE_TYPE} %x{k % 2}, {TILE_TYPE} %y{k // 2}"
        steps.append(f"  %b{k} = call {TILE_TYPE} @{rate.intrinsic}({shape}, i16 64, {TILE_TYPE} %a{k}, {factors})")
        ends.append(f"  %p{k} = getelementptr i8, ptr %at, i64 {(k + 1) * 64}")
        ends.append(f"  call void @llvm.x86.tilestored64.internal({shape}, ptr %p{k}, i64 0, {TILE_TYPE} %b{k})")
    load = f"call {TILE_TYPE} @llvm.x86.tileloadd64.internal({shape}, ptr %at, i64 0)"
    starts = [f"  %{name}{k} = {load}" for name in "xy" for k in range(2)]
    starts += [f"  %zero{k} = call {TILE_TYPE} @llvm.x86.tilezero.internal({shape})" for k in range(TILE_CHAINS)]
    head, body, tail, start = ("\n".join(lines) for lines in (phis, steps, ends, starts))
    return f"""
declare {TILE_TYPE} @{rate.intrinsic}(i16, i16, i16, {TILE_TYPE}, {TILE_TYPE}, {TILE_TYPE})
define void @{rate.symbol}(ptr %at, i64 %turns) {{
entry:
{start}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
{head}
{body}
  %i1 = add nuw i64 %i, 1
  %more = icmp ult i64 %i1, %turns
  br i1 %more, label %loop, label %end
end:
{tail}
  ret void
}}
"""


_TILE_DECLARATIONS = f"""
declare {TILE_TYPE} @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare {TILE_TYPE} @llvm.x86.tilezero.internal(i16, i16)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, {TILE_TYPE})
"""


def _write_arithmetic_ir(rate: FmaRate) -> str:
    """Returns `void NAME(ptr at, i64 turns)`: CHAINS chains of `turns` instructions.

    `at` holds the factor, then the results.
    """
    vector, kind = rate.accumulator, rate.factor
    is_dot = kind != vector
    phis, steps, ends = [], [], []
    for k in range(CHAINS):
        phis.append(f"  %a{k} = phi {vector} [%start, %entry], [%b{k}, %loop]")
        if is_dot:
            called = f"{vector} %a{k}, {kind} %x, {kind} %x"
            steps.append(f"  %b{k} = call {vector} @{rate.intrinsic}({called})")
        elif rate.intrinsic:
            called = f"{vector} %a{k}, {vector} %x, {vector} %x"
            steps.append(f"  %b{k} = call {vector} @{rate.intrinsic}({called})")
        else:
            kind_of = "" if " x i" in vector else "f"
            steps.append(f"  %m{k} = {kind_of}mul {vector} %a{k}, %x\n  %b{k} = {kind_of}add {vector} %m{k}, %x")
        ends.append(f"  %p{k} = getelementptr i8, ptr %at, i64 {(k + 1) * 64}")
        ends.append(f"  store {vector} %b{k}, ptr %p{k}, align 16")
    head, body, tail = ("\n".join(lines) for lines in (phis, steps, ends))
    start = f"  %start = load {vector}, ptr %at, align 16"
    if is_dot:  # the accumulator is loaded from the zeros after the factor
        start = f"  %at1 = getelementptr i8, ptr %at, i64 64\n  %start = load {vector}, ptr %at1, align 16"
    arguments = f"{vector}, {kind}, {kind}"
    declared = f"declare {vector} @{rate.intrinsic}({arguments})" if rate.intrinsic else ""
    return f"""
{declared}
define void @{rate.symbol}(ptr %at, i64 %turns) {{
entry:
  %x = load {kind}, ptr %at, align 16
{start}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
{head}
{body}
  %i1 = add nuw i64 %i, 1
  %more = icmp ult i64 %i1, %turns
  br i1 %more, label %loop, label %end
end:
{tail}
  ret void
}}
"""


def _gather_ir() -> str:
    """Returns `void gather(ptr table, ptr to, i64 mask, i64 seed, i64 turns)`: four loads per iteration.

    Positions are random and do not depend on loaded values. `mask` is the number of floats in the table - 1, a power of
    two minus 1.
    """
    steps, sums = [], []
    for k, (state, shift) in enumerate((("x3", 0), ("x3", 16), ("y", 20), ("y", 30))):
        steps.append(f"  %s{k} = lshr i64 %{state}, {shift}\n  %m{k} = and i64 %s{k}, %mask")
        steps.append(f"  %p{k} = getelementptr float, ptr %table, i64 %m{k}\n  %v{k} = load i32, ptr %p{k}, align 4")
        sums.append(f"  %b{k} = or i32 %a{k}, %v{k}")
    phis = "\n".join(f"  %a{k} = phi i32 [0, %entry], [%b{k}, %loop]" for k in range(4))
    body, ends = "\n".join([*steps, *sums]), "  %e1 = or i32 %b0, %b1\n  %e2 = or i32 %b2, %b3\n  %e = or i32 %e1, %e2"
    return f"""
define void @gather(ptr %table, ptr %to, i64 %mask, i64 %seed, i64 %turns) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %x0 = phi i64 [%seed, %entry], [%x3, %loop]
{phis}
  %l1 = shl i64 %x0, 13
  %x1 = xor i64 %x0, %l1
  %r1 = lshr i64 %x1, 7
  %x2 = xor i64 %x1, %r1
  %l2 = shl i64 %x2, 17
  %x3 = xor i64 %x2, %l2
  %y = mul i64 %x3, -7046029254386353131
{body}
  %i1 = add nuw i64 %i, 1
  %more = icmp ult i64 %i1, %turns
  br i1 %more, label %loop, label %end
end:
{ends}
  store i32 %e, ptr %to, align 4
  ret void
}}
"""


ROW = 16384  # bytes between the contiguous pieces of the probe "runs"
MAX_ROW_PIECES = 8  # most pieces of each row that the probe reads
COLUMNS = 64  # of single floats


def _write_runs_ir(vector: str, width: int) -> str:
    """Returns `void runs(ptr from, ptr to, i64 rows, i64 run, i64 blocks)`: for each block, it reads one piece of every
    row.

    A piece of `run` bytes that is shorter than a vector is one float.
    """
    return f"""
define void @runs(ptr noalias %from, ptr noalias %to, i64 %rows, i64 %run, i64 %blocks) {{
entry:
  %apart = udiv i64 {ROW}, %blocks
  %is_wide = icmp uge i64 %run, {width}
  br label %block
block:
  %b = phi i64 [0, %entry], [%b1, %next]
  %left = mul i64 %b, %apart
  br label %row
row:
  %r = phi i64 [0, %block], [%r1, %done]
  %at = mul i64 %r, {ROW}
  %begin = add i64 %at, %left
  br i1 %is_wide, label %loop, label %one
loop:
  %o = phi i64 [0, %row], [%o1, %loop]
  %place = add i64 %begin, %o
  %p = getelementptr i8, ptr %from, i64 %place
  %v = load volatile {vector}, ptr %p, align {width}
  %o1 = add nuw i64 %o, {width}
  %more = icmp ult i64 %o1, %run
  br i1 %more, label %loop, label %done
one:
  %q = getelementptr i8, ptr %from, i64 %begin
  %w = load volatile i32, ptr %q, align 4
  br label %done
done:
  %r1 = add nuw i64 %r, 1
  %below = icmp ult i64 %r1, %rows
  br i1 %below, label %row, label %next
next:
  %b1 = add nuw i64 %b, 1
  %again = icmp ult i64 %b1, %blocks
  br i1 %again, label %block, label %end
end:
  ret void
}}
"""


CLOCK_STEPS = 32  # dependent instructions of one iteration


def _write_clock_ir(is_x86: bool) -> tuple[str, int]:
    """Returns `void clock(ptr at, i64 turns)` and the cycles of one iteration: a chain of dependent instructions.

    A 64-bit multiplication takes 3 cycles on x86 CPUs. An addition or exclusive or takes 1 cycle on all CPUs.
    """
    lines = []
    for k in range(CLOCK_STEPS):
        if is_x86:  # squares, because LLVM reassociates products by a constant factor
            lines.append(f"  %v{k + 1} = mul i64 %v{k}, %v{k}")
        else:
            lines.append(f"  %v{k + 1} = {('add', 'xor')[k % 2]} i64 %v{k}, %y")
    body = "\n".join(lines)
    text = f"""
define void @clock(ptr %at, i64 %turns) {{
entry:
  %x = load i64, ptr %at, align 8
  %at1 = getelementptr i8, ptr %at, i64 8
  %y = load i64, ptr %at1, align 8
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %v0 = phi i64 [%x, %entry], [%v{CLOCK_STEPS}, %loop]
{body}
  %i1 = add nuw i64 %i, 1
  %more = icmp ult i64 %i1, %turns
  br i1 %more, label %loop, label %end
end:
  store i64 %v{CLOCK_STEPS}, ptr %at, align 8
  ret void
}}
"""
    return text, CLOCK_STEPS * (3 if is_x86 else 1)


class HugePageMemory:
    """Zeroed memory on huge pages if available, aligned to a huge page.

    huge: whether to use huge pages.
    """

    HUGE = 2 << 20

    def __init__(self, nbytes: int, *, huge: bool = True) -> None:
        self.nbytes = -(-max(nbytes, 1) // CHUNK) * CHUNK
        self._map = _map_private_memory(self.nbytes + self.HUGE)
        advice = "MADV_HUGEPAGE" if huge else "MADV_NOHUGEPAGE"
        if not isinstance(self._map, bytearray) and hasattr(mmap, advice):
            try:
                self._map.madvise(getattr(mmap, advice))
            except OSError:
                pass  # the kernel has no huge pages: use normal ones
        self._first = ctypes.c_char.from_buffer(self._map)
        start = ctypes.addressof(self._first)
        self.address = -(-start // self.HUGE) * self.HUGE

    def close(self) -> None:
        """Frees the memory."""
        del self._first
        if not isinstance(self._map, bytearray):
            self._map.close()


def _write_barrier_ir(pause: str) -> str:
    """Returns `void meet(ptr counter, i64 count)`: increments the counter and spins until it has reached `count`."""
    return f"""
define void @meet(ptr %counter, i64 %count) {{
entry:
  %mine = atomicrmw add ptr %counter, i64 1 seq_cst
  br label %wait
wait:
{pause}
  %now = load atomic i64, ptr %counter acquire, align 8
  %here = icmp uge i64 %now, %count
  br i1 %here, label %end, label %wait
end:
  ret void
}}
"""


def _map_private_memory(nbytes: int) -> mmap.mmap | bytearray:
    """Maps private memory. Shared memory, Python's default, gets no huge pages."""
    if mmap is None:
        return bytearray(nbytes)
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, nbytes)


class Loops:
    """The loops, compiled for the current TARGET. `vector_bytes` is the width of its vectors."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        choice = current_choice()
        features = llvm.get_host_cpu_features()
        if choice.is_native:
            self.cpu, flags = llvm.get_host_cpu_name(), usable_features(features.flatten())
            supported = {flag[1:] for flag in flags.split(",") if flag.startswith("+")}
        else:
            self.cpu, flags, supported = choice.cpu, "", set(choice.features)
        self.vector_bytes = 64 if "avx512f" in supported else 32 if "avx" in supported else 16
        self.lanes = self.vector_bytes // 4
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=self.cpu, features=flags, opt=3, codemodel="jitdefault")
        is_x86 = "x86_64" in machine.triple
        vector = f"<{self.lanes} x i32>"
        fence = "  call void @llvm.x86.sse.sfence()" if is_x86 else "  fence seq_cst"
        pause = "  call void @llvm.x86.sse2.pause()" if is_x86 else ""
        declared = ("llvm.x86.sse.sfence", "llvm.x86.sse2.pause") if is_x86 else ()
        parts = [f"declare void @{name}()" for name in declared]
        parts.append(_write_barrier_ir(pause))
        parts.extend(_copy_ir(name, vector, self.vector_bytes, fence) for name in _COPIES)
        parts.extend(_write_triad_ir(name, vector, self.vector_bytes, fence) for name in ("triad", "triad_nt"))
        self.arithmetic = {rate.name: rate for rate in arithmetic_of(self.vector_bytes, supported, is_x86)}
        tiles = [rate for rate in self.arithmetic.values() if rate.factor == TILE_TYPE]
        parts.extend([_TILE_DECLARATIONS, *map(_write_tile_ir, tiles)] if tiles else [])
        parts.extend(_write_arithmetic_ir(rate) for rate in self.arithmetic.values() if rate.factor != TILE_TYPE)
        parts.extend([_gather_ir(), _write_runs_ir(vector, self.vector_bytes)])
        clock, self.clock_cycles = _write_clock_ir(is_x86)
        parts.extend([clock, _read_ir(vector, self.vector_bytes), "!0 = !{i32 1}"])
        module = llvm.parse_assembly("\n".join(parts))
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self.step = STREAMS * self.vector_bytes
        self._functions: dict[str, Callable[..., None]] = {}
        for name in (*_COPIES, "triad", "triad_nt", "read", "gather", "runs"):
            kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3)
            self._functions[name] = kind(self._engine.get_function_address(name))
        for name in ("meet", "clock", *(rate.symbol for rate in self.arithmetic.values())):
            kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
            self._functions[name] = kind(self._engine.get_function_address(name))

    def stream(self, name: str, source: int, to: int, nbytes: int, repeat: int = 1) -> None:
        """Runs the stream `name` ("read", "copy", "copy_nt", "fill", "fill_nt", "triad", "triad_nt") over `nbytes`.

        `nbytes` is a multiple of CHUNK. The triads read twice that size.
        """
        self._functions[name](source, to, nbytes, self.step, repeat)

    def gather(self, table: int, to: int, nbytes: int, seed: int, turns: int) -> int:
        """Loads single floats from random positions in `nbytes` (a power of two), and returns the number of loads."""
        self._functions["gather"](table, to, nbytes // 4 - 1, seed, turns)
        return 4 * turns

    def runs(self, source: int, to: int, nbytes: int, run: int) -> int:
        """Reads pieces of `run` bytes (below a vector: one float), one per row of ROW bytes, block after block.

        Returns the number of bytes read.
        """
        rows, is_wide = nbytes // ROW, run >= self.vector_bytes
        blocks = min(MAX_ROW_PIECES, ROW // run) if is_wide else COLUMNS
        self._functions["runs"](source, to, rows, run, blocks)
        return rows * blocks * (run if is_wide else 4)

    def synchronize(self, counter: int, count: int) -> None:
        """Spins until `count` threads have arrived."""
        self._functions["meet"](counter, count)

    def compute(self, name: str, at: int, turns: int) -> int:
        """Runs the chains of `self.arithmetic[name]` on registers, and returns the number of operations.

        at: the address of the memory from `factors`.
        """
        rate = self.arithmetic[name]
        self._functions[rate.symbol](at, turns)
        return turns * (TILE_CHAINS if rate.factor == TILE_TYPE else CHAINS) * rate.operations

    def fma(self, at: int, turns: int) -> int:
        """Runs `compute` with float32 multiply-adds."""
        return self.compute("float32", at, turns)

    def factors(self, name: str) -> HugePageMemory:
        """Returns memory for `compute`, with the factor in its first bytes."""
        area = HugePageMemory(CHUNK, huge=False)
        element = self.arithmetic[name].element
        ctypes.memmove(area.address, element * (64 // len(element)), 64)
        return area

    def clock(self, at: int, turns: int) -> int:
        """Runs a chain of dependent instructions, and returns its number of cycles.

        at: the address of 16 bytes of odd integers.
        """
        self._functions["clock"](at, turns)
        return turns * self.clock_cycles


@contextmanager
def pinned(number: int) -> Iterator[None]:
    """Pins this thread to one of its allowed cores inside the block, if the system supports it.

    Two threads of a probe on the same core would halve its rate.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    os.sched_setaffinity(0, {cores[number % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class ThreadTeam:
    """Threads that run work together repeatedly, synchronized before each repetition."""

    def __init__(self, loops: Loops, threads: int) -> None:
        self.loops = loops
        self.threads = threads

    def seconds(self, work: Callable[[int], Any], times: int) -> list[float]:
        """Runs `work(number)` on all threads at once, `times` times; returns each time from first start to last end."""
        counter = ctypes.c_int64(0)
        address = ctypes.addressof(counter)
        spans: list[list[tuple[float, float]]] = [[] for _ in range(self.threads)]

        def run(number: int) -> None:
            with pinned(number):
                for turn in range(1, times + 1):
                    self.loops.synchronize(address, turn * self.threads)
                    start = time.perf_counter()
                    work(number)
                    spans[number].append((start, time.perf_counter()))

        others = [threading.Thread(target=run, args=(number,)) for number in range(1, self.threads)]
        for member in others:
            member.start()
        run(0)
        for member in others:
            member.join()
        return [max(end for _, end in turn) - min(start for start, _ in turn) for turn in zip(*spans)]

    def best_seconds(self, work: Callable[[int], Any], times: int) -> float:
        """Returns the shortest of `seconds`."""
        return min(self.seconds(work, times))


def shares(nbytes: int, parts: int) -> Sequence[tuple[int, int]]:
    """Returns (offset, size) of `parts` nearly equal pieces of `nbytes`, in multiples of CHUNK, the last rounded up."""
    chunks = -(-nbytes // CHUNK)
    edges = [chunks * part // parts * CHUNK for part in range(parts + 1)]
    return [(low, high - low) for low, high in zip(edges, edges[1:])]
