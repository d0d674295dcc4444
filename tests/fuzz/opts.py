"""The fuzz of opts: random programs of awkward sizes, each kernel under random legal opts, compared with NumPy.

    python -m tests.fuzz.opts --count 5000             all of it, in pieces, each in a process of its own
    python -m tests.fuzz.opts --only 1234              one case again

A case is known by its number alone. Every buffer ends, or begins, at a guard page, so that a program crashes
if it reads or writes past the end, or before the start.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import mmap
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from tests.fuzz.programs import PROGRAMS
from tests.reference import buffer_array, evaluate, to_buffer
from tinyexplore.device import Buffer, Device
from tinyexplore.device.allocator import Memory
from tinyexplore.dtype import dtypes
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.execute.threads import run_divided
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_heuristics, apply_opt, available_opts
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import AxisKind
from tinyexplore.util import Context

SEQUENCES = 4  # of opts for each kernel of a program
MAX_OPTS = 6
MAX_COPIES = 64
RARE = (OptOps.TRIM, OptOps.PIPELINE)  # few kernels allow them
SHARES = (OptOps.GROUP, OptOps.GROUPTOP, OptOps.STAGE)
UNUSUAL = (OptOps.UPCAST, OptOps.UNROLL, OptOps.LOCAL, OptOps.PIPELINE, OptOps.PADTO, *SHARES)
PIECE = 50
PAGE = mmap.PAGESIZE
TOLERANCE = {dtypes.float16: 2e-2, dtypes.bfloat16: 6e-2, dtypes.float64: 1e-7}


class Mismatch(AssertionError):
    """A sequence of opts that changed a kernel's result: the case, the opts and where they differ."""


@dataclass
class Tried:
    """What has been tried: sequences of opts, and how often each kind of opt, program and GPU was among them."""

    sequences: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)


def fenced(device: str, like: Buffer, *, at_start: bool = False) -> Buffer:
    """A buffer for as much as `like` holds, all bits set, between two guard pages: it ends where the
    second begins, or begins where the first ends."""
    pages = -(-max(1, like.nbytes) // PAGE)
    region = mmap.mmap(-1, (pages + 2) * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    region[:] = b"\xff" * len(region)
    libc = ctypes.CDLL(None, use_errno=True)
    for fence in (base, base + (pages + 1) * PAGE):
        if libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = base + PAGE if at_start else base + (pages + 1) * PAGE - like.nbytes
    return Buffer(device, like.size, like.dtype, Memory(start, like.nbytes, region))


def random_opts(random: Random, kernel: Kernel, most: int = MAX_OPTS) -> Kernel:
    """`kernel` after some legal opts: every kind as likely as another, amounts usual and unusual."""
    for _ in range(random.randint(0, most)):
        copies = math.prod(axis.size for axis in kernel.axes if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
        legal = [opt for opt in available_opts(kernel) if not too_long(opt, copies)]
        if not legal:
            break
        kinds = sorted({opt.op for opt in legal}, key=lambda op: op.name)
        last = [kind for kind in kinds if kind in RARE or (kernel.target.has_local and kind in SHARES)]
        kind = random.choice(last if last and random.random() < 0.3 else kinds)
        opt = random.choice([opt for opt in legal if opt.op is kind])
        if random.random() < 0.3 and kind in UNUSUAL:
            unusual = Opt(kind, opt.axis, random.randint(2, max(2, kernel.axis(opt.axis).size)))
            opt = opt if too_long(unusual, copies) else unusual
        try:
            kernel = apply_opt(kernel, opt)
        except OptError:  # an unusual amount
            continue
    return kernel


def too_long(opt: Opt, copies: int) -> bool:
    return opt.op in (OptOps.UPCAST, OptOps.UNROLL) and copies * opt.amount > MAX_COPIES


def start_of(random: Random, kernel: Kernel) -> Kernel:
    """One of the kernels that a search may start from."""
    match random.randint(0, 3):
        case 0:
            return kernel
        case 1:
            return apply_heuristics(kernel)
    return with_merged_axes(with_split_axes(kernel))


def run_fenced(
    item: ScheduleItem, kernel: Kernel, memory: dict[int, np.ndarray], *, at_start: bool = False
) -> list[np.ndarray]:
    """What `kernel` writes; `memory` has what lies in the buffers that it reads."""
    runner = compile_optimized(item.device, kernel)
    buffers = [fenced(item.device, buffer, at_start=at_start) for buffer in item.buffers]
    for given, buffer in zip(item.buffers, buffers):
        if given.id in memory:
            buffer.copyin(memory[given.id].tobytes())
    run_divided(runner.program.bind(buffers), runner.spec.thread_extent)
    return [np.frombuffer(buffer.copyout(), np.uint8).copy() for buffer in buffers[: len(item.outputs)]]


def compare(found: np.ndarray, node: LazyBuffer, expected: np.ndarray) -> str:
    """ "" where the bytes `found` are the values `expected`, else what differs."""
    buffer = Buffer(node.device, expected.size, node.dtype).copyin(found.tobytes())
    values = buffer_array(buffer, expected.shape)
    tolerance = 0.2 if node.dtype in dtypes.fp8s else TOLERANCE.get(node.dtype, 2e-4)
    try:
        if expected.dtype.kind == "f":
            scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
            np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(values, expected)
    except AssertionError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Drawn:
    """A kernel of a program under opts that were drawn: `memory` has what it reads, by the buffers' ids, and `expected`
    what NumPy has for its outputs."""

    item: ScheduleItem
    kernel: Kernel
    memory: dict[int, np.ndarray]
    expected: list[np.ndarray]

    @property
    def opts(self) -> str:
        return ", ".join(map(str, self.kernel.applied)) or "no opts"

    def difference(self, results: Sequence[np.ndarray]) -> str:
        """ "" where the bytes of its outputs are the expected values, else what differs."""
        found = map(compare, results, self.item.outputs, self.expected)
        return next((words for words in found if words), "")


def drawn(
    node: LazyBuffer, draw: Callable[[Kernel], Kernel], count: int, most_steps: float = math.inf
) -> Iterator[Drawn]:
    """Each kernel of the graph behind `node`, `count` times as `draw` gives it, but no two that are alike; those of
    more steps not at all. What a kernel reads of another's results is what NumPy expects of them."""
    if node.buffer is not None or node.size == 0:
        return
    memory: dict[int, np.ndarray] = {}
    for item in create_schedule([node.base if node.base.size == node.size else node]):
        if item.ast is None:
            continue
        for buffer in item.buffers[len(item.outputs) :]:
            if buffer.id not in memory:
                memory[buffer.id] = np.frombuffer(buffer.allocate().copyout(), np.uint8)
        expected = [evaluate(output) for output in item.outputs]
        plain = Kernel.of(item.ast, Device[item.device].target)
        done = set()
        for _ in range(count if plain.steps <= most_steps else 0):
            kernel = draw(plain)
            if kernel.ast not in done:
                done.add(kernel.ast)
                yield Drawn(item, kernel, memory, expected)
        for output, buffer, values in zip(item.outputs, item.buffers, expected):
            memory[buffer.id] = results_bytes(values, output)


def run_case(number: int, device: str, tried: Tried, names: Sequence[str] = ()) -> None:
    """The program (of `names`, or any) and the opts with this number; Mismatch where NumPy says otherwise."""
    random = Random(number)
    name = random.choice(names or sorted(PROGRAMS))
    node = PROGRAMS[name](random, device).lazydata
    with Context(SPEC=1, CACHELEVEL=0, TC=1 + number % 2), np.errstate(all="ignore"):
        for one in drawn(node, lambda plain: random_opts(random, start_of(random, plain)), SEQUENCES):
            tried.sequences += 1
            tried.programs[name] += 1
            tried.kinds.update(opt.op.name for opt in one.kernel.applied)
            where = f"case {number}, {name} on {device}: {one.opts}"
            try:
                results = run_fenced(one.item, one.kernel, one.memory, at_start=tried.sequences % 2 == 0)
            except Exception as error:
                raise Mismatch(f"{where}: {type(error).__name__}: {error}") from error
            if words := one.difference(results):
                raise Mismatch(f"{where}: {words}")


def results_bytes(values: np.ndarray, node: LazyBuffer) -> np.ndarray:
    """The expected values as the next kernel reads them."""
    return np.frombuffer(to_buffer(values, node.dtype, node.device).copyout(), np.uint8)


def run_cases(numbers: Iterable[int], device: str, wanted: int, *, announce: bool = False) -> Tried:
    """Cases in turn until `wanted` sequences have been tried; announce: prints each one's number before it runs."""
    tried = Tried()
    for number in numbers:
        if tried.sequences >= wanted:
            break
        if announce:
            print(f"case {number}", flush=True)
        run_case(number, device, tried)
    return tried


# *** the command ***


def main() -> int:
    parser = argparse.ArgumentParser(description="Random legal opts on random programs, compared with NumPy.")
    parser.add_argument("--count", type=int, default=5000, help="sequences of opts to try")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--device", default="LLVM")
    parser.add_argument("--only", type=int, help="one case, in this process")
    parser.add_argument("--piece", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        print(run_cases([options.only], options.device, 1 << 30))
        return 0
    if options.piece is not None:
        tried = run_cases(range(options.first, options.first + options.piece), options.device, 1 << 30, announce=True)
        print("tried", tried.sequences, *(f"{kind}={count}" for kind, count in tried.kinds.items()))
        return 0
    return in_pieces(options)


def in_pieces(options: argparse.Namespace) -> int:
    """Pieces in processes of their own: a program that crashes is one failure, and the next piece goes on."""
    began, total, failures, first = time.time(), 0, [], options.first
    kinds: Counter[str] = Counter()
    while total < options.count:
        words = [sys.executable, "-m", "tests.fuzz.opts", "--device", options.device]
        words += ["--first", str(first), "--piece", str(PIECE)]
        done = subprocess.run(words, capture_output=True, text=True)
        cases = [line for line in done.stdout.splitlines() if line.startswith("case ")]
        last = int(cases[-1].split()[1]) if cases else first
        if done.returncode == 0:
            counts = done.stdout.splitlines()[-1].split()[1:]
            total += int(counts[0])
            kinds.update({kind: int(count) for kind, count in (word.split("=") for word in counts[1:])})
            first += PIECE
        else:
            words = done.stderr.strip().splitlines() or [f"died of signal {-done.returncode}"]
            shown = next((line for line in reversed(words) if "Mismatch: case" in line), words[-1])
            failures.append(f"case {last} (exit {done.returncode}): {shown[:600]}")
            print(failures[-1], flush=True)
            total += 2 * (last - first)
            first = last + 1
        print(f"{total} sequences to case {first}, {len(failures)} failures, {time.time() - began:.0f} s", flush=True)
    print(
        f"{total} sequences of opts on {options.device}, cases {options.first} to {first - 1}: {len(failures)} failures"
    )
    print(", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
