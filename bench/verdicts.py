"""Programs whose bottleneck is known: `python -m bench.verdicts [NAME…]` prints the expected and the found verdict.

`--facts FILE` also writes their facts and what NumPy reaches on the machine, with which
`tests/explore/test_verdict.py` tests the rules and the shares of the limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinyexplore import Tensor, dtypes
from tinyexplore.explore import Explorer, SpeedVerdict, explore
from tinyexplore.explore.analysis.machine.table import cpu_name
from tinyexplore.target import core_count


@dataclass(frozen=True)
class Program:
    """A program and what bounds it.

    name: of the program. kinds: the kinds that are right; several where machines or LLVM differ. make: its inputs.
    run: what is captured. options: of `explore`. opts: the kernel's opts, instead of the heuristics'.
    """

    name: str
    kinds: tuple[str, ...]
    make: Callable[[], tuple[Any, ...]]
    run: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    opts: str = ""

    def captured(self) -> Explorer:
        """The capture of it, with samples."""
        inputs = self.make()
        if not self.opts:
            return explore(lambda: self.run(*inputs), **self.options)
        return with_opts(self.opts, lambda: explore(lambda: self.run(*inputs), **self.options))


def with_opts(text: str, work: Callable[[], Explorer]) -> Explorer:
    """`work()`, with these opts in place of those that the heuristics choose; `{lanes}` is the width of a vector."""
    from unittest.mock import patch

    from tinyexplore.compile import compiler
    from tinyexplore.explore.analysis.opts import to_opts
    from tinyexplore.kernel import Kernel, apply_opt
    from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes

    def chosen(kernel: Kernel, *_: Any, **__: Any) -> Kernel:
        kernel = with_merged_axes(with_split_axes(kernel))
        is_wide = kernel.target.vector_bytes == 64  # with 32 vector registers
        sizes = {"lanes": kernel.target.vector_bytes // 4, "columns": 4 if is_wide else 2, "rows": 6 if is_wide else 4}
        for opt in to_opts(text.format(**sizes)):
            kernel = apply_opt(kernel, opt)
        return kernel

    with patch.object(compiler, "hand_coded", chosen):
        return work()


def _random(*shape: int) -> Tensor:
    return Tensor.rand(*shape).realize()


def _narrow(dtype: Any, *shape: int) -> Tensor:
    return _random(*shape).cast(dtype).realize()


def _table(log_size: int, count: int) -> tuple[Tensor, Tensor]:
    numbers = np.random.default_rng(0).integers(0, 1 << log_size, count)
    return _random(1 << log_size), Tensor(numbers.astype(np.int32)).realize()


ON_TILES = ("compute", "unexplained")  # on tile registers, packing takes time that nothing here models


def programs() -> Iterator[Program]:
    """Those of the table, small ones first where the kind allows."""
    yield Program("16 elements", ("launch overhead",), lambda: (_random(16), _random(16)), lambda a, b: a + b)
    yield Program(
        "add out of memory", ("bandwidth",), lambda: (_random(4096, 4096), _random(4096, 4096)), lambda a, b: a + b
    )
    yield Program("add in L2", ("bandwidth",), lambda: (_random(256, 192), _random(256, 192)), lambda a, b: a + b)
    product = Program(
        "matmul 1024", ("compute",), lambda: (_random(1024, 1024), _random(1024, 1024)), lambda a, b: a @ b
    )
    yield product
    yield Program(
        "matmul 256 without opts",
        ("latency", "not vectorized"),
        lambda: (_random(256, 256), _random(256, 256)),
        lambda a, b: a @ b,
        {"noopt": 1},
    )
    yield Program(
        "running sum in one chain",
        ("latency",),
        lambda: (_random(1024, 1024),),
        lambda a: a.sum(),
        {"noopt": 1, "split_reduceop": 0},
    )
    yield Program(
        "transposed copy without opts",
        ("strided access",),
        lambda: (_random(4096, 4096),),
        lambda a: a.T.contiguous(),
        {"noopt": 1},
    )
    yield Program(
        "sum over columns by strides",
        ("strided access",),
        lambda: (_random(4096, 4096),),
        lambda a: a.sum(0),
        {"noopt": 1},
    )
    yield Program("gather from 256 MB", ("random access",), lambda: _table(26, 1 << 21), lambda a, i: a[i])
    yield Program("exp of 1 M", ("compute",), lambda: (_random(1024, 1024),), lambda a: a.exp().exp().exp().exp())
    yield Program(
        "matmul 512 on one thread",
        ("one thread",),
        lambda: (_random(512, 512), _random(512, 512)),
        lambda a, b: a @ b,
        opts="VECTOR(1, {lanes}), UPCAST(1, {columns}), UPCAST(0, {rows})",
    )
    yield Program(
        "matmul 512 with spills",
        ("spills",),
        lambda: (_random(512, 512), _random(512, 512)),
        lambda a, b: a @ b,
        opts="VECTOR(1, {lanes}), UPCAST(1, 4), UPCAST(0, 16), THREAD(0)",
    )
    yield Program(
        "bfloat16 product without dots",
        ("compute",),
        lambda: (_narrow(dtypes.bfloat16, 512, 512), _narrow(dtypes.bfloat16, 512, 512)),
        lambda a, b: a @ b,
        {"tc": 0},
    )
    yield Program(
        "half of each line unused",
        ("strided access",),
        lambda: (_random(4096, 4096),),
        lambda a: a[:, ::16] * 2,
    )
    yield Program(
        "square roots and divisions",
        ("compute",),
        lambda: (_random(512, 512),),
        lambda a: (1 / (a + 1)).sqrt() / (a + 2),
    )


def neighbours() -> Iterator[Program]:
    """Further programs whose bottleneck is known, of the same and of other families."""
    yield Program("softmax out of memory", ("bandwidth",), lambda: (_random(8192, 4096),), lambda a: a.softmax(-1))
    yield Program("sum out of memory", ("bandwidth",), lambda: (_random(4096, 8192),), lambda a: a.sum())
    yield Program("prefix sum of 1 M", ("bandwidth", "latency"), lambda: (_random(1 << 20),), lambda a: a.cumsum(0))
    yield Program(
        "scatter add to 64 MB",
        ("random access",),
        lambda: (Tensor.zeros(1 << 24).contiguous().realize(), _table(24, 1 << 20)[1], _random(1 << 20)),
        lambda a, i, b: a.scatter_reduce(0, i, b, "sum"),
    )
    yield Program(
        "a column of a matrix", ("strided access",), lambda: (_random(16384, 4096),), lambda a: a[:, 3].contiguous()
    )
    yield Program(
        "3x3 convolution",
        ("compute", "unaligned loads"),
        lambda: (_random(8, 64, 56, 56), _random(64, 64, 3, 3)),
        lambda a, w: a.conv2d(w, padding=1),
    )
    yield Program(
        "one reduction on one thread",
        ("one thread",),
        lambda: (_random(4096, 4096),),
        lambda a: a.sum(),
        {"split_reduceop": 0},
        opts="VECTOR(0, {lanes}), UNROLL(0, 8)",
    )
    yield Program(
        "tiny kernels in a loop",
        ("launch overhead",),
        lambda: (_random(64),),
        _many_tiny,
    )
    yield Program(
        "int8 product",
        ON_TILES,
        lambda: (_narrow(dtypes.int8, 512, 512), _narrow(dtypes.int8, 512, 512)),
        _int_product,
    )
    yield Program(
        "int8 product without dots",
        ("compute", "not vectorized"),
        lambda: (_narrow(dtypes.int8, 512, 512), _narrow(dtypes.int8, 512, 512)),
        _int_product,
        {"tc": 0},
    )
    yield Program("bfloat16 product", ON_TILES, lambda: (_narrow(dtypes.bfloat16, 512, 512),) * 2, lambda a, b: a @ b)
    yield Program(
        "gather in cache", ("random access", "bandwidth", "compute"), lambda: _table(13, 1 << 20), lambda a, i: a[i]
    )
    yield Program(
        "divisions",
        ("compute",),
        lambda: (_random(512, 512), _random(512, 512)),
        lambda a, b: (1 / (a + 1)) / (b + 1) / (a + 2) / (b + 3),
    )
    yield Program(
        "vector times matrix", ("bandwidth",), lambda: (_random(1, 4096), _random(4096, 8192)), lambda a, b: a @ b
    )
    yield Program("product of float64", ("compute",), lambda: (_wide(512, 512), _wide(512, 512)), lambda a, b: a @ b)
    yield Program("hashes of int32", ("latency", "compute"), lambda: (_numbers(1 << 18),), _hashed)
    yield Program("layer norm", ("bandwidth",), lambda: (_random(4096, 1024),), lambda a: a.layernorm())
    yield Program("gelu of 8 M", ("compute", "bandwidth"), lambda: (_random(4096, 2048),), lambda a: a.gelu())
    yield Program(
        "sum over rows without opts",
        ("latency", "not vectorized"),
        lambda: (_random(2048, 2048),),
        lambda a: a.sum(1),
        {"noopt": 1},
    )
    yield Program(
        "copy of a transpose",
        ("strided access", "bandwidth"),
        lambda: (_random(4096, 4096),),
        lambda a: a.T.contiguous(),
    )
    yield Program("sin of 1 M", ("compute",), lambda: (_random(1024, 1024),), lambda a: a.sin().sin())
    yield Program("rows of a table", ("bandwidth", "random access"), _rows_of_table, lambda a, i: a[i])


def _rows_of_table() -> tuple[Tensor, Tensor]:
    numbers = np.random.default_rng(0).integers(0, 1 << 16, 1 << 15)
    return _random(1 << 16, 256), Tensor(numbers.astype(np.int32)).realize()


def _many_tiny(a: Tensor) -> Tensor:
    for _ in range(12):
        a = (a * 1.5 + 0.5).contiguous()
    return a


def _int_product(a: Tensor, b: Tensor) -> Tensor:
    return a.matmul(b, dtype=dtypes.int32)


def _wide(*shape: int) -> Tensor:
    return _random(*shape).cast(dtypes.float64).realize()


def _numbers(count: int) -> Tensor:
    return Tensor(np.random.default_rng(0).integers(0, 1 << 30, count).astype(np.int32)).realize()


def _hashed(a: Tensor) -> Tensor:
    for _ in range(24):
        a = (a * 1664525 + 1013904223) ^ (a >> 13)
    return a


def least_disturbed(program: Program, tries: int) -> SpeedVerdict:
    """The verdict on the kernel that takes longest, from the capture that other processes disturbed least."""
    best: SpeedVerdict | None = None
    for _ in range(max(1, tries)):
        view = program.captured()
        run = max(view.trace.runs, key=lambda one: one.median_us)
        found = view.kernels[run.kernel].verdict()
        if best is None or _waited(found) < _waited(best):
            best = found
        if best.kind != "noise":
            break
        time.sleep(0.2)
    assert best is not None
    return best


def _waited(found: SpeedVerdict) -> float:
    return (found.facts.waited if found.facts is not None else None) or 0.0


def numpy_gflops(seconds: float = 1.0) -> float:
    """10⁹ operations a second of a float32 product by NumPy on all cores, the best within `seconds`: a peak that this
    project did not measure."""
    a, b = (np.random.default_rng(0).random((2048, 2048), np.float32) for _ in range(2))
    out = np.empty_like(a)
    return 2 * 2048**3 / _least_seconds(lambda: np.matmul(a, b, out=out), seconds) / 1e9


def numpy_memory_us(moved: int, written: int, seconds: float = 0.5) -> float:
    """Microseconds in which NumPy moves as many bytes on all cores, in arrays that are as large together.

    It copies what is written (`np.copyto`), and multiplies vectors of what else is read (`np.dot`), each at the best
    rate within `seconds`.
    """
    cores = core_count()
    length = moved // 8 // cores
    pairs = [[np.ones(length, np.float32) for _ in range(2)] for _ in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        copy_s = _least_seconds(lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs)), seconds)
        read_s = _least_seconds(lambda: list(pool.map(lambda pair: np.dot(pair[0], pair[1]), pairs)), seconds)
    copied = min(moved, 2 * written)
    return (copied * copy_s + (moved - copied) * read_s) / moved * 1e6


def _least_seconds(work: Callable[[], Any], seconds: float) -> float:
    work()
    until, least = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < until:
        began = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - began)
    return least


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; the number of wrong kinds."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of programs; all by default")
    parser.add_argument("--facts", help="a file for the facts, as JSON")
    parser.add_argument("--tries", type=int, default=3, help="captures of a program while other processes disturb it")
    given = parser.parse_args(arguments)
    wrong, stored = 0, {}
    gflops = numpy_gflops() if given.facts else 0.0
    print(f"{'program':34} {'expected':26} {'found':18} {'likely':18} {'level':7} {'share':>6}  text")
    for program in (*programs(), *neighbours()):
        if given.names and not any(name in program.name for name in given.names):
            continue
        found = least_disturbed(program, given.tries)
        is_right = found.likely in program.kinds
        wrong += not is_right
        share = f"{100 * found.share_of_limit:.3g} %" if found.share_of_limit is not None else "?"
        mark = " " if is_right else "✗"
        expected = " or ".join(program.kinds)
        kinds = f"{expected:26} {found.kind:18} {found.likely:17}{mark}"
        print(f"{program.name:34} {kinds} {found.level:7} {share:>6}  {found.text}")
        if found.facts is not None:
            stored[program.name] = {"kinds": program.kinds, "facts": found.facts.as_data()}
            if given.facts and found.facts.level == "memory":
                moved = numpy_memory_us(found.facts.bytes_moved, found.facts.bytes_written)
                stored[program.name]["numpy_memory_us"] = round(moved, 1)
    if given.facts:
        with open(given.facts, "w", encoding="utf-8") as file:
            content = {"cpu": cpu_name(), "numpy_gflops": round(gflops, 1), "programs": stored}
            json.dump(content, file, indent=1, ensure_ascii=False)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
