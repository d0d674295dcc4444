"""The fuzz of the instrumented interpreter: its memory equals the PYTHON device's, bit for bit.

    python -m tests.fuzz.stepping --count 2000
    python -m tests.fuzz.stepping --only 1234      one program again

A program is known by its number. Two of three are drawn operation by operation: loops, accumulators, vectors, masks,
scratch memory, every dtype. The third is a kernel of `tests/fuzz/programs.py` with random opts, lowered for vectors.
All NaNs count as one: which of two NaNs a sum is, CPython itself decides differently once it has specialized the code.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from random import Random

import numpy as np

import tinyexplore.devices  # noqa: F401  makes the devices known
from tests.backends.programs import end, linear, load, loop, pointer, store, to_bytes
from tests.fuzz.programs import PROGRAMS
from tinyexplore.codegen import lower
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.explore.analysis.models.debugger import Debugger
from tinyexplore.explore.analysis.models.stepping_program import SteppingProgram, element_view
from tinyexplore.explore.recording.captured_kernel import buffer_types
from tinyexplore.kernel import Kernel, apply_opt, available_opts
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp, index_const

VECTORS = Target("TEST", "any", "any", "", 32, 16, 2, 32768, 1 << 20, frozenset(OpGroups.TRANSCENDENTAL), dtypes.floats)
MAX_STEPS = 60_000

_ON_FLOATS = (Ops.ADD, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.MIN, Ops.MOD, Ops.POW)
_ON_INTS = (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR)
_ON_BOOLS = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR)
_OF_ONE = (Ops.NEG, Ops.FLOOR, Ops.SQRT, Ops.EXP2, Ops.LOG2, Ops.SIN)


def drawn(random: Random) -> list[UOp]:
    """A program of its own: a loop over elements, in it arithmetic and an inner loop that accumulates."""
    dtype = random.choice([kind for kind in dtypes.all if kind not in dtypes.fp8s])
    lanes, steps, inner_steps = random.choice((1, 1, 2, 4, 7)), random.randint(1, 5), random.randint(0, 4)
    size = lanes * steps
    sources = [pointer(number, dtype, size + 4) for number in (1, 2)]
    outer, inner = loop(steps, 0), loop(inner_steps, 1, AxisKind.REDUCE)
    place = outer * lanes
    valid = None if random.random() < 0.5 else outer < random.randint(0, steps)
    known = [load(source, place, lanes, valid) for source in sources]
    known += [UOp.const(dtype.vec(lanes), random.randint(0, 3))]
    for _ in range(random.randint(1, 8)):
        known.append(operation(random, known, dtype))
    acc = UOp(Ops.DEFINE_ACC, dtype.vec(lanes), (random.choice(known),), 0)
    ahead = tuple(known)  # the inner loop may not run at all
    known.append(load(sources[0], inner + outer * (lanes - 1), lanes))
    for _ in range(random.randint(0, 4)):
        known.append(operation(random, known, dtype))
    step = UOp(Ops.ASSIGN, acc.dtype, (acc, operation(random, [acc, known[-1]], dtype)))
    total = UOp(Ops.RESULT, acc.dtype, (acc, step, inner))
    scratch = UOp(Ops.DEFINE_LOCAL, PtrDType(dtype, lanes, "local"), (), "kept")
    keep = store(scratch, index_const(0), total)
    found = [load(scratch, index_const(0), lanes), total.cast(random.choice(dtypes.all).vec(lanes))]
    outputs = [pointer(0, dtype, size), pointer(3, found[1].dtype.scalar, size)]  # type: ignore[union-attr]
    before = linear(*outputs, *sources, scratch, outer, *ahead, acc, inner)
    after = [store(to, place, value, valid) for to, value in zip(outputs, found, strict=True)]
    return linear(*before, step, end(inner), total, keep, *after, end(outer))


def operation(random: Random, known: Sequence[UOp], dtype: DType) -> UOp:
    """Something done to values of one dtype and width."""
    x, y = random.choice(known), random.choice(known)
    if random.random() < 0.2:
        return (x < y).where(x, y)
    if dtypes.is_float(dtype):
        return x.alu(random.choice(_OF_ONE)) if random.random() < 0.3 else x.alu(random.choice(_ON_FLOATS), y)
    return x.alu(random.choice(_ON_BOOLS if dtypes.is_bool(dtype) else _ON_INTS), y)


def lowered(random: Random) -> list[UOp] | None:
    """The program of a kernel with random opts; None where it would run for long."""
    made = random.choice(list(PROGRAMS.values()))(random, "PYTHON")
    items = [item for item in create_schedule([made.lazydata.base]) if item.ast is not None]
    if not items:
        return None
    kernel = Kernel.of(random.choice(items).ast, VECTORS)
    for _ in range(random.randint(0, 4)):
        options = available_opts(kernel)
        if options:
            kernel = apply_opt(kernel, random.choice(list(options)))
    uops = list(lower(kernel))
    return uops if steps_in(uops) <= MAX_STEPS else None


def steps_in(uops: Sequence[UOp]) -> int:
    """About how many UOps one run does."""
    times, total = [1], 0
    for node in uops:
        if node.op is Ops.ENDRANGE:
            times.pop()
        total += times[-1]
        if node.op is Ops.RANGE:
            times.append(times[-1] * max(1, node.src[0].arg if node.src[0].op is Ops.CONST else 8))
    return total


def contents_of(random: Random, uops: Sequence[UOp]) -> list[bytes]:
    """What lies in the buffers before: special values now and then, and indices that lie inside."""
    found = []
    least = min((size for _, size in buffer_types(uops)), default=1)
    for dtype, size in buffer_types(uops):
        if dtypes.is_float(dtype):
            values = [random.choice((0.0, -0.0, 1.0, -2.5, float("inf"), float("nan"), random.uniform(-9, 9)))]
            values = [random.choice((*values, random.uniform(-4, 4), 0.5)) for _ in range(size)]
        elif dtypes.is_bool(dtype):
            values = [random.random() < 0.5 for _ in range(size)]
        else:
            values = [random.randrange(max(1, min(least, 100))) for _ in range(size)]
        found.append(to_bytes(values, dtype))
    return found


def plain(uops: Sequence[UOp], contents: Sequence[bytes], stop: int) -> list[bytes] | str:
    """What the PYTHON device leaves in the buffers, or the exception that it raises."""
    device = Device["PYTHON"]
    program = device.compile(device.renderer.render("kernel", uops))
    types = buffer_types(uops)
    buffers = [Buffer("PYTHON", size, dtype).copyin(data) for (dtype, size), data in zip(types, contents, strict=True)]
    try:
        program.bind(buffers)(0, stop)
    except (ArithmeticError, IndexError, ValueError) as error:
        return type(error).__name__
    return [buffer.copyout() for buffer in buffers]


def stepped(uops: Sequence[UOp], contents: Sequence[bytes], stop: int) -> list[bytes] | str:
    """What the instrumented program leaves there."""
    memory = [bytearray(data) for data in contents]
    views = [element_view(data, dtype) for data, (dtype, _) in zip(memory, buffer_types(uops), strict=True)]
    try:
        for _ in SteppingProgram("kernel", uops).start(views, (), 0, stop):
            pass
    except (ArithmeticError, IndexError, ValueError) as error:
        return type(error).__name__
    return [bytes(data) for data in memory]


_INFINITY = {
    dtypes.float16: 0x7C00,
    dtypes.bfloat16: 0x7F80,
    dtypes.float32: 0x7F80 << 16,
    dtypes.float64: 0x7FF0 << 48,
}


def one_nan(found: list[bytes] | str, uops: Sequence[UOp]) -> list[bytes] | str:
    """The same with one NaN in the place of every NaN."""
    if isinstance(found, str):
        return found
    changed = []
    for data, (dtype, _) in zip(found, buffer_types(uops), strict=True):
        if dtype in _INFINITY:
            bits = np.frombuffer(data, f"u{dtype.itemsize}").copy()
            most = np.iinfo(bits.dtype).max
            bits[(bits & (most >> 1)) > _INFINITY[dtype]] = most
            data = bits.tobytes()
        changed.append(data)
    return changed


def thread_extent(uops: Sequence[UOp]) -> int:
    """The length of the THREAD axis, 0 where there is none."""
    threads = [node.src[0].arg for node in uops if node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD]
    return threads[0] if threads else 0


def back_and_forth(random: Random, uops: Sequence[UOp], contents: Sequence[bytes]) -> None:
    """A debugger that goes back and on again is where it was."""
    debugger = Debugger("kernel", uops, contents, log=random.choice((1, 7, 50_000)))
    debugger.step(random.randint(1, 200))

    def memory() -> list[bytes] | str:
        return one_nan([debugger.memory(f"data{number}") for number in range(len(contents))], uops)

    there, lay = debugger.state(), memory()
    count = random.randint(1, 60)
    came_from = debugger.position
    debugger.back(count)
    assert debugger.position == max(0, came_from - count)
    debugger.step(came_from - debugger.position)
    same = [
        name
        for name in ("position", "place", "loops", "registers", "accesses")
        if debugger.state()[name] != there[name]
    ]
    assert same == [], f"{same} differ after going {count} steps back and on again"
    assert memory() == lay


def check(number: int) -> bool:
    """Whether program `number` was run; AssertionError where the two differ."""
    random = Random(number)
    uops = lowered(random) if number % 3 == 2 else drawn(random)
    if uops is None:
        return False
    contents = contents_of(random, uops)
    stop = thread_extent(uops)
    expected = one_nan(plain(uops, contents, stop), uops)
    found = one_nan(stepped(uops, contents, stop), uops)
    assert found == expected, f"program {number}: {found!r:.300}, not {expected!r:.300}"
    if not isinstance(expected, str) and number % 4 == 0:
        back_and_forth(random, uops, contents)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    if given.only is not None:
        check(given.only)
        return
    done = number = 0
    while done < given.count:
        done += check(number)
        number += 1
    print(f"{done} programs: the same bits as the PYTHON device, {number - done} too long and left out")


if __name__ == "__main__":
    main()
