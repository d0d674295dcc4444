"""Loops that the machine itself limits, in LLVM IR: streams through memory and chains of multiply-adds.

They are compiled by llvmlite for the CPU at hand, or for the TARGET in force. Pointers are aligned to 64 bytes, sizes
whole numbers of CHUNKs.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinyexplore.target import chosen

CHUNK = 4096  # bytes that one turn of a loop handles at least; sizes are rounded to it
STREAMS = 8  # vectors that one turn of a loop handles
CHAINS = 12  # independent multiply-adds: more than latency × units, fewer than registers

# name → (does it read, does it write, does it write past the caches)
_COPIES = {
    "copy": (True, True, False),
    "copy_nt": (True, True, True),
    "fill": (False, True, False),
    "fill_nt": (False, True, True),
}


def _loop(name: str, arguments: str, body: str, after: str = "") -> str:
    """`void name(…, i64 size, i64 repeat)`: body over i = 0, step, … below size; all of that `repeat` times."""
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
    return _loop(name, "ptr noalias %from, ptr noalias %to", "\n".join(lines), fence if past else "")


def _read_ir(vector: str, width: int) -> str:
    """Every vector is or-ed into one of STREAMS accumulators, kept in memory between repeats only."""
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
    text = _loop("read", "ptr noalias %from, ptr noalias %to", "\n".join([*lines, *head, *adds]))
    return text.replace("done:\n", "done:\n" + "\n".join([*last, *sums]) + "\n")


def _fma_ir(lanes: int, fused: bool) -> str:
    """`void fma(ptr at, i64 turns)`: CHAINS chains of `turns` multiply-adds; `at` holds factor, addend, and results.

    `fused`: in one instruction.
    """
    vector, width = f"<{lanes} x float>", 4 * lanes
    suffix = f"v{lanes}f32"
    phis, steps, ends = [], [], []
    for k in range(CHAINS):
        phis.append(f"  %a{k} = phi {vector} [%x, %entry], [%b{k}, %loop]")
        if fused:
            steps.append(f"  %b{k} = call {vector} @llvm.fma.{suffix}({vector} %a{k}, {vector} %x, {vector} %y)")
        else:
            steps.append(f"  %m{k} = fmul {vector} %a{k}, %x\n  %b{k} = fadd {vector} %m{k}, %y")
        ends.append(f"  %p{k} = getelementptr i8, ptr %at, i64 {(k + 2) * width}")
        ends.append(f"  store {vector} %b{k}, ptr %p{k}, align {width}")
    joined = ("\n".join(lines) for lines in (phis, steps, ends))
    head, body, tail = joined
    return f"""
declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})
define void @fma(ptr %at, i64 %turns) {{
entry:
  %x = load {vector}, ptr %at, align {width}
  %at1 = getelementptr i8, ptr %at, i64 {width}
  %y = load {vector}, ptr %at1, align {width}
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


class Memory:
    """Zeroed memory on huge pages where there are any (`huge=False`: on the usual ones), aligned to a huge page."""

    HUGE = 2 << 20

    def __init__(self, nbytes: int, *, huge: bool = True) -> None:
        self.nbytes = -(-max(nbytes, 1) // CHUNK) * CHUNK
        self._map = _private_map(self.nbytes + self.HUGE)
        advice = "MADV_HUGEPAGE" if huge else "MADV_NOHUGEPAGE"
        if hasattr(mmap, advice):
            try:
                self._map.madvise(getattr(mmap, advice))
            except OSError:
                pass  # a kernel without them: the usual pages then
        self._first = ctypes.c_char.from_buffer(self._map)
        start = ctypes.addressof(self._first)
        self.address = -(-start // self.HUGE) * self.HUGE

    def close(self) -> None:
        """Gives the memory back."""
        del self._first
        self._map.close()


def _meet_ir(pause: str) -> str:
    """`void meet(ptr counter, i64 count)`: adds one to the counter and spins until it has reached `count`."""
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


def _private_map(nbytes: int) -> mmap.mmap:
    """Memory of this process alone: what is shared, Python's default, gets no huge pages."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, nbytes)


class Loops:
    """The loops, compiled for the TARGET in force; `vector_bytes` is the width that it has."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        choice = chosen()
        features = llvm.get_host_cpu_features()
        if choice.is_native:
            self.cpu, flags = llvm.get_host_cpu_name(), features.flatten()
            has = {name for name, there in features.items() if there}
        else:
            self.cpu, flags, has = choice.cpu, "", set(choice.features)
        self.vector_bytes = 64 if "avx512f" in has else 32 if "avx" in has else 16
        self.lanes = self.vector_bytes // 4
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=self.cpu, features=flags, opt=3, codemodel="jitdefault")
        is_x86 = "x86_64" in machine.triple
        vector = f"<{self.lanes} x i32>"
        fence = "  call void @llvm.x86.sse.sfence()" if is_x86 else "  fence seq_cst"
        pause = "  call void @llvm.x86.sse2.pause()" if is_x86 else ""
        declared = ("llvm.x86.sse.sfence", "llvm.x86.sse2.pause") if is_x86 else ()
        parts = [f"declare void @{name}()" for name in declared]
        parts.append(_meet_ir(pause))
        parts.extend(_copy_ir(name, vector, self.vector_bytes, fence) for name in _COPIES)
        parts.extend(
            [
                _read_ir(vector, self.vector_bytes),
                _fma_ir(self.lanes, fused=not is_x86 or "fma" in has),
                "!0 = !{i32 1}",
            ]
        )
        module = llvm.parse_assembly("\n".join(parts))
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self.step = STREAMS * self.vector_bytes
        self._functions: dict[str, Callable[..., None]] = {}
        for name in (*_COPIES, "read"):
            kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3)
            self._functions[name] = kind(self._engine.get_function_address(name))
        for name in ("fma", "meet"):
            kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
            self._functions[name] = kind(self._engine.get_function_address(name))

    def stream(self, name: str, source: int, to: int, nbytes: int, repeat: int = 1) -> None:
        """`name` ("read", "copy", "copy_nt", "fill", "fill_nt") over `nbytes`, a whole number of CHUNKs."""
        self._functions[name](source, to, nbytes, self.step, repeat)

    def meet(self, counter: int, count: int) -> None:
        """Waits, spinning, until as many have come as `count` says."""
        self._functions["meet"](counter, count)

    def fma(self, at: int, turns: int) -> int:
        """Multiply-adds on registers; how many floating-point operations that was."""
        self._functions["fma"](at, turns)
        return turns * CHAINS * self.lanes * 2


class Team:
    """Threads that do a piece of work together, again and again, meeting before each time."""

    def __init__(self, loops: Loops, threads: int) -> None:
        self.loops = loops
        self.threads = threads

    def best_seconds(self, work: Callable[[int], Any], times: int) -> float:
        """`work(number)` on every thread at once, `times` times: the shortest, from the first start to the last end."""
        counter = ctypes.c_int64(0)
        place = ctypes.addressof(counter)
        spans: list[list[tuple[float, float]]] = [[] for _ in range(self.threads)]

        def run(number: int) -> None:
            for turn in range(1, times + 1):
                self.loops.meet(place, turn * self.threads)
                start = time.perf_counter()
                work(number)
                spans[number].append((start, time.perf_counter()))

        others = [threading.Thread(target=run, args=(number,)) for number in range(1, self.threads)]
        for member in others:
            member.start()
        run(0)
        for member in others:
            member.join()
        return min(max(end for _, end in turn) - min(start for start, _ in turn) for turn in zip(*spans))


def shares(nbytes: int, parts: int) -> Sequence[tuple[int, int]]:
    """(offset, size) of `parts` nearly equal pieces of `nbytes`, in whole CHUNKs, the last rounded up."""
    chunks = -(-nbytes // CHUNK)
    edges = [chunks * part // parts * CHUNK for part in range(parts + 1)]
    return [(low, high - low) for low, high in zip(edges, edges[1:])]
