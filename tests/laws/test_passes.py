"""Every pass of the lowering preserves the results of a kernel, for any applied opts."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache, reduce
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, softmax
from tests.laws.kernel_meaning import run_kernel
from tests.reference import buffer_array
from tinyexplore.codegen import PASSES, Rewrite
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.pipeline import nodes_of
from tinyexplore.codegen.rewrites.vectorize import VECTORIZE_VALUES
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, apply_opt, available_opts
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import Target
from tinyexplore.trace import PassApplied, Recorder, RuleApplied, recording
from tinyexplore.uop import AxisKind, Ops, PatternMatcher, UOp, graph_rewrite
from tinyexplore.uop.spec import verify

FOUR_LANES = Target("TEST", "any", "any", "", 16, 16, 2, 32768, 1 << 20, frozenset(), (), registers_per_op=2)
UNWRITTEN = object()


def whole(*shape: int, seed: int = 0) -> LazyBuffer:
    """Whole numbers, so that sums in any order are the same."""
    return from_numpy(np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32))


def small_floats() -> LazyBuffer:
    x = whole(3, 8).cast(dtypes.bfloat16).contiguous()
    return x.alu(Ops.MUL, x).reduce(Ops.ADD, (1,)).cast(dtypes.float16)


def fp8s() -> LazyBuffer:
    x = whole(2, 4).cast(dtypes.fp8e4m3)
    y = x.alu(Ops.MUL, x).cast(dtypes.fp8e5m2)
    chosen = y.alu(Ops.CMPLT, y.flip((1,))).alu(Ops.WHERE, y, LazyBuffer.const(3.0, dtypes.fp8e5m2, "LLVM", (2, 4)))
    return chosen.cast(dtypes.float32)


def truths() -> LazyBuffer:
    x = whole(4, 6)
    above = x.alu(Ops.CMPLT, x.permute((1, 0)).permute((1, 0)).flip((0,)))
    return above.reduce(Ops.MAX, (1,)).alu(Ops.MUL, above.reduce(Ops.MIN, (1,)))


def places() -> LazyBuffer:
    """The first place of each row's maximum."""
    x = whole(3, 8)
    line = LazyBuffer.iota(8, dtypes.int32, x.device).reshape((1, 8)).expand((3, 8))
    none = LazyBuffer.const(8, dtypes.int32, x.device, (3, 8))
    holds = x.alu(Ops.CMPEQ, x.reduce(Ops.MAX, (1,)).expand((3, 8)))
    return holds.alu(Ops.WHERE, line, none).reduce(Ops.MIN, (1,))


def interleaved() -> LazyBuffer:
    """Each number of a row twice, times numbers of its own: neighbors out of the lanes of two vectors."""
    return whole(8, 4, 1).expand((8, 4, 2)).reshape((8, 8)).alu(Ops.MUL, whole(8, 8, seed=1))


PROGRAMS = {
    "elementwise": lambda: whole(3, 9).alu(Ops.MUL, whole(3, 9, seed=1)),
    "transposition": lambda: whole(5, 8).permute((1, 0)).contiguous(),
    "square transposition": lambda: whole(8, 8).permute((1, 0)).contiguous(),
    "padded columns": lambda: whole(8, 6).pad(((0, 0), (1, 1))).permute((1, 0)).contiguous(),
    "matmul": lambda: matmul(whole(4, 5), whole(5, 8, seed=1)),
    "row sum": lambda: whole(3, 14).reduce(Ops.ADD, (1,)),
    "column maximum": lambda: whole(6, 5).reduce(Ops.MAX, (0,)),
    "softmax": lambda: softmax(whole(3, 8)),
    "places": places,
    "padded windows": lambda: whole(2, 9).pad(((0, 0), (2, 1))).window(1, 3).reduce(Ops.ADD, (2,)),
    "flipped and reshaped": lambda: whole(4, 6).flip((0, 1)).reshape((3, 8)).permute((1, 0)).contiguous(),
    "interleaved": interleaved,
    "16-bit floats": small_floats,
    "8-bit floats": fp8s,
    "truths": truths,
    "transcendental": lambda: whole(9).alu(Ops.SIN).alu(Ops.ADD, whole(9).alu(Ops.TANH)),
    "inner transposition": lambda: whole(4, 3, 2).permute((0, 2, 1)).contiguous(),
    "count of all": lambda: whole(4, 4).alu(Ops.CMPLT, whole(4, 4, seed=1)).cast(dtypes.int32).reduce(Ops.ADD, (0, 1)),
}

OPTS: dict[str, tuple[Opt, ...]] = {  # that random ones would seldom find together
    "square transposition": (Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.UPCAST, 0, 4)),
    "padded columns": (Opt(OptOps.VECTOR, 0, 4), Opt(OptOps.TRANSPOSE_STORE, 2)),
}


def items_of(program: str) -> list[ScheduleItem]:
    return [item for item in create_schedule([PROGRAMS[program]()]) if item.ast is not None]


def memory_of(item: ScheduleItem) -> dict[int, list[Any]]:
    """The inputs as they are (what another kernel would write: 1, 2, 3, ...), the outputs unwritten."""
    memory: dict[int, list[Any]] = {}
    for number, buffer in enumerate(item.buffers):
        if number < len(item.outputs):
            memory[number] = [UNWRITTEN] * buffer.size
        elif buffer.is_allocated:
            memory[number] = buffer_array(buffer, (buffer.size,)).tolist()
        else:
            memory[number] = [dtypes.as_const(1 + place % 5, buffer.dtype) for place in range(buffer.size)]
    return memory


def outcome(sink: UOp, item: ScheduleItem, *, lanes: bool) -> list[Any]:
    memory = memory_of(item)
    run_kernel(sink, memory, lanes=lanes)
    return [value for number in range(len(item.outputs)) for value in memory[number]]


def with_random_opts(kernel: Kernel, random: Random) -> Kernel:
    for _ in range(random.randint(0, 3)):
        copies = math.prod(a.size for a in kernel.axes if a.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
        # a staged kernel writes memory in the middle, which this oracle cannot say; tests/unit/kernel runs them
        legal = [opt for opt in available_opts(kernel) if opt.amount * copies <= 12 and opt.op is not OptOps.STAGE]
        if not legal:
            break
        kernel = apply_opt(kernel, random.choice(legal))
    return kernel


def close(found: list[Any], expected: list[Any]) -> bool:
    if any(value is UNWRITTEN for value in (*found, *expected)):
        return False
    return bool(np.allclose(np.array(found, float), np.array(expected, float), rtol=1e-5, atol=1e-6))


def assert_every_pass_keeps(item: ScheduleItem, kernel: Kernel, expected: list[Any]) -> None:
    lowering = Lowering.of(kernel)
    sink, lanes = kernel.ast, False
    opts = [str(opt) for opt in kernel.applied]
    assert close(outcome(sink, item, lanes=lanes), expected), f"{opts} changed the result"
    for step in PASSES:
        if step.name == "linearize":
            return  # from here on it is a list, which the PYTHON device runs
        before, sink = sink, step.run(sink, lowering)
        verify(nodes_of(sink), step.after, step.name)
        if isinstance(step, Rewrite) and step.table.kinds != -1:
            again = graph_rewrite(before, PatternMatcher(step.table.rules), step.context(lowering))
            assert again is sink, f"{step.name} missed a node"
        lanes = lanes or step.name == "vectorize memory"
        found = outcome(sink, item, lanes=lanes)
        assert close(found, expected), f"{step.name} with {opts}: {expected} has become {found}"


@cache
def rules_fired(program: str) -> Counter[str]:
    """Every pass is checked on the program's kernels with some opts; gives how often each rule has fired, and each
    transform has changed something."""
    random = Random(program)
    recorder = Recorder()
    for item in items_of(program):
        start = Kernel.of(item.ast, FOUR_LANES)
        expected = outcome(start.ast, item, lanes=False)
        chosen = reduce(apply_opt, OPTS.get(program, ()), start)
        kernels = [start, apply_heuristics(start), chosen, *(with_random_opts(start, random) for _ in range(8))]
        with recording(recorder):
            for kernel in {kernel.ast: kernel for kernel in kernels}.values():
                assert_every_pass_keeps(item, kernel, expected)
    fired = [event.rule.name for event in recorder.events if isinstance(event, RuleApplied)]
    changes = [event for event in recorder.events if isinstance(event, PassApplied) and event.after is not event.before]
    return Counter([*fired, *[event.transform.name for event in changes]])


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_every_pass_preserves_the_meaning_of_the_kernel(program: str) -> None:
    assert rules_fired(program)


def test_every_rule_about_memory_and_loops_is_reached() -> None:
    """The kernels above are enough for the tables that have no test of single rules."""
    tables = {
        "unroll tiles",
        "unroll reductions",
        "vectorize memory",
        "vectorize values",
        "accumulators",
    }
    rewrites = [step for step in PASSES if isinstance(step, Rewrite) and step.name in tables]
    rules = {rule.name for step in rewrites for rule in step.table.rules}
    fired = {name for program in sorted(PROGRAMS) for name in rules_fired(program)}
    # scans run on from step to step, which this oracle cannot say; they have tests of their own
    assert rules - fired == {"lane_of_constant", "lanes_scanned", "carry"}


def test_transforms_of_memory_and_loops_are_reached() -> None:
    fired = {name for program in sorted(PROGRAMS) for name in rules_fired(program)}
    assert fired >= {"early vectorization", "coalesce accesses", "argmax", "horizontal reductions", "loop fission"}


def test_every_lane_of_a_vector_constant_is_that_constant() -> None:
    lane = UOp(Ops.GEP, dtypes.float32, (UOp.const(dtypes.float32.vec(4), 2.5),), 3)
    assert graph_rewrite(lane, VECTORIZE_VALUES) is UOp.const(dtypes.float32, 2.5)
