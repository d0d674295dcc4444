"""The emulated programs: the golden files' small programs with numbers, and the random programs of the fuzz."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.emulated.device import Crashed, Emulator
from tests.fuzz.opts import compare, random_opts, start_of
from tests.fuzz.programs import PROGRAMS
from tests.golden import programs as golden
from tests.reference import evaluate
from tinyexplore import Tensor
from tinyexplore.device import Device
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer

DRAWN = ("random", "normal")  # what they give is drawn when they are built: NumPy has no say in it


@dataclass
class Counts:
    """What ran, and what came out otherwise: (program, words)."""

    programs: int = 0
    kernels: int = 0
    different: list[tuple[str, str]] = field(default_factory=list)


def numbers(*shape: int, dtype: str = "float32") -> Tensor:
    """In place of the golden programs' zeros: small numbers, positive whole ones where they may be places."""
    generator = np.random.default_rng(sum(shape) + len(dtype))
    if dtype.startswith("float"):
        return Tensor((generator.integers(-8, 9, shape) / 4).astype(dtype))
    return Tensor(generator.integers(1, 8, shape).astype(dtype))


def golden_programs() -> Iterator[tuple[str, list[LazyBuffer]]]:
    """Each program's results, not yet computed."""
    with patch.object(golden, "x", numbers):
        for name, make in golden.MADE.items():
            made: Any = make()
            several = made if isinstance(made, tuple) else (made,)
            yield name, [tensor.lazydata for tensor in several]


def run_golden(emulator: Emulator, counts: Counts) -> None:
    """The golden files' programs, as the scheduler and the heuristics have them."""
    for name, nodes in golden_programs():
        before = emulator.linked
        with np.errstate(all="ignore"):
            expected = [None if name in DRAWN else evaluate(node) for node in nodes]
        counts.programs += 1
        try:
            tensors = [Tensor(node) for node in nodes]
            tensors[0].realize(*tensors[1:])
            for node, tensor, values in zip(nodes, tensors, expected):
                if values is not None and (words := compare(contents(tensor), node, values)):
                    counts.different.append((name, words))
        except Crashed as error:
            counts.different.append((name, str(error)))
        counts.kernels += emulator.linked - before


def run_random(emulator: Emulator, counts: Counts, numbers: range) -> None:
    """The fuzz's programs, each kernel under opts drawn at random."""
    for number in numbers:
        random = Random(number)
        name = random.choice(sorted(PROGRAMS))
        node = PROGRAMS[name](random, Device.DEFAULT).lazydata
        if node.buffer is not None or node.size == 0:
            continue
        counts.programs += 1
        try:
            words = run_one(random, node, counts)
        except Crashed as error:
            words = str(error)
        if words:
            counts.different.append((f"{name}, number {number}", words))


def run_one(random: Random, node: LazyBuffer, counts: Counts) -> str:
    """ "" where all kernels of `node` give what NumPy does, else what differs."""
    items = create_schedule([node.base if node.base.size == node.size else node])
    for item in items:
        if item.ast is None:
            continue
        with np.errstate(all="ignore"):
            expected = [evaluate(output) for output in item.outputs]
        kernel = random_opts(random, start_of(random, Kernel.of(item.ast, Device[item.device].target)))
        runner = compile_optimized(item.device, kernel)
        counts.kernels += 1
        runner.program.bind(item.buffers)(0, runner.spec.thread_extent or 1)
        for output, buffer, values in zip(item.outputs, item.buffers, expected):
            if words := compare(np.frombuffer(buffer.copyout(), np.uint8), output, values):
                return f"{', '.join(map(str, kernel.applied))}: {words}"
    return ""


def contents(tensor: Tensor) -> np.ndarray:
    """The bytes of a result, row-major."""
    found = tensor.contiguous().realize().lazydata
    assert found.base.buffer is not None
    return np.frombuffer(found.base.buffer.copyout(), np.uint8)[: found.size * found.dtype.itemsize]
