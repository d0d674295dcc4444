"""The fuzz of opts on GPUs: random programs under random legal opts, run on the emulator, compared with NumPy.

    python -m tests.fuzz.gpu --count 2000              all of it, in pieces, each in a process of its own
    python -m tests.fuzz.gpu --only 1234               one case again

A case is known by its number alone: it says the GPU, the program and the opts. The emulator (`runtime/emulator.py`)
watches memory while it runs: a race, a barrier that not all work-items of a group come to, and a place outside of a
buffer are failures as a wrong result is.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np

from tests.fuzz.opts import Mismatch, Tried, drawn, random_opts, start_of
from tests.fuzz.programs import PROGRAMS, filled
from tinyexplore import Tensor
from tinyexplore.device import Buffer
from tinyexplore.engine import compile_optimized
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt, illegal_because
from tinyexplore.kernel.analysis.work_groups import group_items
from tinyexplore.renderer.program import RenderError
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import AxisKind
from tinyexplore.util import Context

TARGETS = ("opencl", "sm_75", "sm_90", "gfx90a", "gfx1100", "metal", "webgpu")
SEQUENCES = 3  # of opts for each kernel of a program
MAX_STEPS = 12_000  # of a kernel that is run: the emulator takes some microseconds for each
MAX_TOTAL_STEPS = 60_000  # steps that are run all in all, by work-items that do the same several times
PIECE = 25
SIDES = (1, 3, 4, 5, 7, 8, 12, 13, 16, 17, 23, 31, 32, 33)


def small_product(random: Random, device: str) -> Tensor:
    """A product, batched at times, whose operands are views: what shared memory is for."""
    dtype = random.choice(("float32", "float32", "float16", "int32", "bfloat16"))
    while True:
        rows, inner, columns = (random.choice(SIDES) for _ in range(3))
        batch = random.choice((1, 1, 1, 2, 3))
        if batch * rows * inner * columns <= MAX_STEPS:
            break
    head = (batch,) if batch > 1 else ()
    x = filled(random, (*head, rows, inner), device, dtype)
    y = filled(random, (*head, inner, columns), device, dtype)
    if random.random() < 0.3:
        x = filled(random, (*head, inner, rows), device, dtype).transpose(-1, -2)
    if random.random() < 0.3:
        y = filled(random, (*head, columns, inner), device, dtype).transpose(-1, -2)
    found = x @ y
    return random.choice((found, found, found * 2 + 1, found.maximum(0), (x.flip(-1) @ y)))


def stencil(random: Random, device: str) -> Tensor:
    """Each result reads neighbors that other results read as well."""
    x = filled(random, (random.choice(SIDES), random.choice((8, 17, 33, 64))), device)
    wide = random.choice((2, 3, 5))
    weights = filled(random, (1, 1, 1, wide), device)
    found = x.reshape(1, 1, *x.shape).conv2d(weights, padding=(0, wide // 2))
    return random.choice((found, found.transpose(-1, -2).contiguous(), found.max(-1)))


EVERY = {**PROGRAMS, "small_product": small_product, "stencil": stencil}
NAMES = [*sorted(PROGRAMS), *["small_product"] * 8, *["stencil"] * 2]


def in_groups(random: Random, kernel: Kernel) -> Kernel:
    """`kernel`, some of its output axes in work-groups at times, and what they read staged: what few draws come to."""
    for axis in random.sample(kernel.output_axes, min(len(kernel.output_axes), random.choice((0, 0, 1, 2, 2)))):
        kernel = where_legal(kernel, Opt(OptOps.LOCAL, axis.arg.id, random.choice((2, 4, 5, 8, 16))))
    if random.random() < 0.5:
        kernel = random_opts(random, kernel, 2)
    if kernel.reduces and random.random() < 0.6:
        loop = random.choice(random.choice(kernel.reduces).src[1:])
        kernel = where_legal(kernel, Opt(OptOps.STAGE, loop.arg.id, random.choice((2, 3, 4, 8, 13, 16))))
    return kernel


def in_halves(random: Random, kernel: Kernel) -> Kernel:
    """`kernel`, most times with what it stages double-buffered, which is the last opt."""
    loops = [loop for loop in kernel.axes if loop.arg.kind is AxisKind.REDUCE and random.random() < 0.7]
    for loop in loops:
        kernel = where_legal(kernel, Opt(OptOps.PIPELINE, loop.arg.id, 2))
    return kernel


def where_legal(kernel: Kernel, opt: Opt) -> Kernel:
    """`kernel` after `opt`, if that is legal."""
    return apply_opt(kernel, opt) if illegal_because(kernel, opt, kernel.axis(opt.axis)) is None else kernel


def run_emulated(item: ScheduleItem, kernel: Kernel, memory: dict[int, np.ndarray]) -> list[np.ndarray]:
    """What `kernel` writes on the emulator; `memory` has what lies in the buffers that it reads."""
    runner = compile_optimized(item.device, kernel)
    buffers = [Buffer(item.device, given.size, given.dtype).allocate() for given in item.buffers]
    for given, buffer in zip(item.buffers, buffers):
        buffer.copyin(memory[given.id].tobytes() if given.id in memory else b"\xff" * buffer.nbytes)
    runner.program.bind(buffers)(0, 1)
    return [np.frombuffer(buffer.copyout(), np.uint8).copy() for buffer in buffers[: len(item.outputs)]]


def is_too_long(kernel: Kernel) -> bool:
    """True where the emulator would be at it for long."""
    return kernel.steps > MAX_STEPS or kernel.steps * group_items(kernel.ast) > 40 * MAX_TOTAL_STEPS


def run_case(number: int, tried: Tried, target: str = "", names: Iterable[str] = (), *, device: str = "PYTHON") -> None:
    """The GPU, the program (of `names`, or any) and the opts with this number; Mismatch where NumPy says otherwise, or
    the emulator finds what must not be. `device`: one that is a GPU itself has a target of its own."""
    random = Random(number)
    emulated = device == "PYTHON"
    target = target or (TARGETS[number % len(TARGETS)] if emulated else "")
    name = random.choice([*names] or NAMES)
    with Context(SPEC=1, CACHELEVEL=0, TARGET=target), np.errstate(all="ignore"):
        node = EVERY[name](random, device).lazydata

        def draw(plain: Kernel) -> Kernel:
            return in_halves(random, random_opts(random, in_groups(random, start_of(random, plain))))

        for one in drawn(node, draw, SEQUENCES, MAX_STEPS if emulated else math.inf):
            if emulated and is_too_long(one.kernel):
                continue
            where = f"case {number}, {name} on {target or device}: {one.opts}"
            try:
                results = run_emulated(one.item, one.kernel, one.memory)
            except RenderError as error:
                if "does not compute with" in str(error) or "in float64" in str(error):
                    return  # a declared limit of this GPU
                raise Mismatch(f"{where}: {type(error).__name__}: {error}") from error
            except Exception as error:
                raise Mismatch(f"{where}: {type(error).__name__}: {error}") from error
            if words := one.difference(results):
                raise Mismatch(f"{where}: {words}")
            tried.sequences += 1
            tried.programs[name] += 1
            tried.targets[target or device] += 1
            tried.kinds.update(opt.op.name for opt in one.kernel.applied)


def run_cases(numbers: Iterable[int], wanted: int, *, announce: bool = False) -> Tried:
    """Cases in turn until `wanted` sequences have been tried; announce: prints each one's number before it runs."""
    tried = Tried()
    for number in numbers:
        if tried.sequences >= wanted:
            break
        if announce:
            print(f"case {number}", flush=True)
        run_case(number, tried)
    return tried


# *** the command ***


def main() -> int:
    parser = argparse.ArgumentParser(description="Random legal opts of GPUs on the emulator, compared with NumPy.")
    parser.add_argument("--count", type=int, default=2000, help="sequences of opts to try")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--processes", type=int, default=2, help="how many pieces at one time")
    parser.add_argument("--only", type=int, help="one case, in this process")
    parser.add_argument("--piece", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        print(run_cases([options.only], 1 << 30))
        return 0
    if options.piece is not None:
        failures, tried = 0, Tried()
        for number in range(options.first, options.first + options.piece):
            try:
                run_case(number, tried)
            except Mismatch as error:
                failures += 1
                print("failed", " ".join(str(error).split())[:700], flush=True)
        print("sequences", tried.sequences)
        for counts in (tried.kinds, tried.programs, tried.targets):
            print("tried", *(f"{kind}={count}" for kind, count in counts.items()))
        return 1 if failures else 0
    return in_pieces(options)


def in_pieces(options: argparse.Namespace) -> int:
    """Pieces in processes of their own, some at one time, until enough has been tried."""
    began, total, failures, first = time.time(), 0, 0, options.first
    kinds, programs, targets = Counter[str](), Counter[str](), Counter[str]()

    def piece(start: int) -> list[str]:
        words = [sys.executable, "-m", "tests.fuzz.gpu", "--first", str(start), "--piece", str(PIECE)]
        done = subprocess.run(words, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        if not any(line.startswith("sequences") for line in lines):
            lines.append(f"failed cases {start} to {start + PIECE - 1} (exit {done.returncode}): {done.stderr[-500:]}")
        return lines

    with ThreadPoolExecutor(options.processes) as pool:
        while total < options.count:
            starts = range(first, first + PIECE * options.processes, PIECE)
            for lines in pool.map(piece, starts):
                counters = iter((kinds, programs, targets))
                for word, *rest in (line.split() for line in lines):
                    if word == "sequences":
                        total += int(rest[0])
                    elif word == "tried":
                        next(counters).update({kind: int(count) for kind, count in (one.split("=") for one in rest)})
                    else:
                        failures += 1
                        print(" ".join(rest), flush=True)
            first += PIECE * options.processes
            print(f"{total} sequences to case {first}, {failures} failures, {time.time() - began:.0f} s", flush=True)
    print(f"{total} sequences of opts on the emulator, cases {options.first} to {first - 1}: {failures} failures")
    for counts in (kinds, targets, programs):
        print(", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
