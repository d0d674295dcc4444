"""The programs of `python -m bench.verdicts`: the computations, and their bottlenecks by first principles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinyexplore import Tensor, dtypes
from tinyexplore.explore import Explorer, explore


@dataclass(frozen=True)
class Program:
    """A program and its bottleneck.

    name: of the program.
    kinds: the correct kinds; several where machines or LLVM versions differ.
    make: returns its inputs.
    run: the function to capture.
    options: of `explore`.
    opts: the opts of the kernel, instead of the heuristics' choice.
    why: the reason for `kinds`, from sizes and instructions alone.
    """

    name: str
    kinds: tuple[str, ...]
    make: Callable[[], tuple[Any, ...]]
    run: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    opts: str = ""
    why: str = ""

    def captured(self) -> Explorer:
        """Return the capture of the program, with samples."""
        inputs = self.make()
        if not self.opts:
            return explore(lambda: self.run(*inputs), **self.options)
        return with_opts(self.opts, lambda: explore(lambda: self.run(*inputs), **self.options))


def with_opts(text: str, work: Callable[[], Explorer]) -> Explorer:
    """Return `work()`, run with these opts instead of the heuristics' choice.

    Placeholders: `{lanes}` is the number of float32 in a vector, `{doubles}` that of float64. `{columns}` and `{rows}`
        are
    the sizes of the tile that fits the registers.
    """
    from unittest.mock import patch

    from tinyexplore.compile import compiler
    from tinyexplore.explore.analysis.opts import to_opts
    from tinyexplore.kernel import Kernel, apply_opt
    from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes

    def chosen(kernel: Kernel, *_: Any, **__: Any) -> Kernel:
        kernel = with_merged_axes(with_split_axes(kernel))
        is_wide = kernel.target.vector_bytes == 64  # with 32 vector registers
        sizes = {
            "lanes": kernel.target.vector_bytes // 4,
            "doubles": kernel.target.vector_bytes // 8,
            "columns": 4 if is_wide else 2,
            "rows": 6 if is_wide else 4,
        }
        for opt in to_opts(text.format(**sizes)):
            kernel = apply_opt(kernel, opt)
        return kernel

    with patch.object(compiler, "apply_heuristics", chosen):
        return work()


def _random(*shape: int) -> Tensor:
    return Tensor.rand(*shape).realize()


def _narrow(dtype: Any, *shape: int) -> Tensor:
    return _random(*shape).cast(dtype).realize()


def _table(log_size: int, count: int) -> tuple[Tensor, Tensor]:
    numbers = np.random.default_rng(0).integers(0, 1 << log_size, count)
    return _random(1 << log_size), Tensor(numbers.astype(np.int32)).realize()


ON_TILES = ("compute", "unexplained")  # on tile registers, no model covers the time to pack the operands


def programs() -> Iterator[Program]:
    """Yield the programs of the table, small ones first where the kind allows."""
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
        ("one thread", "re-reads"),
        lambda: (_random(512, 512), _random(512, 512)),
        lambda a, b: a @ b,
        opts="VECTOR(1, {lanes}), UPCAST(1, {columns}), UPCAST(0, {rows})",
        why="no THREAD opt; an L2 of less than the 1 MB of `b` is filled again for each tile of rows",
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


def neighbors() -> Iterator[Program]:
    """Yield further programs with a known bottleneck, of the same and of other families."""
    yield Program(
        "softmax out of memory", ("bandwidth", "compute"), lambda: (_random(8192, 4096),), lambda a: a.softmax(-1)
    )
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
        "vector times matrix",
        ("bandwidth", "strided access"),
        lambda: (_random(1, 4096), _random(4096, 8192)),
        lambda a, b: a @ b,
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


def _halves(*shape: int) -> Tensor:
    return _narrow(dtypes.float16, *shape)


def _bytes(*shape: int) -> Tensor:
    numbers = np.random.default_rng(0).integers(-9, 9, shape)
    return Tensor(numbers.astype(np.int8)).realize()


def _tiny_sum(items: list[Tensor]) -> list[Tensor]:
    return [(item + 1).contiguous() for item in items]


def _rows(count: int, width: int, chosen: int) -> tuple[Tensor, Tensor]:
    numbers = np.random.default_rng(1).integers(0, count, chosen)
    return _random(count, width), Tensor(numbers.astype(np.int32)).realize()


def _rooted(a: Tensor) -> Tensor:
    for _ in range(8):
        a = (a + 1).rsqrt()
    return a


def _blur(a: Tensor) -> Tensor:
    return a[:, :-2] + a[:, 1:-1] * 2 + a[:, 2:]


def new_programs() -> Iterator[Program]:
    """Yield programs of the same kinds that were not used to make the rules: other types, shapes, devices and
    chains.
    """
    yield Program(
        "outer product",
        ("bandwidth",),
        lambda: (_random(4096, 1), _random(1, 4096)),
        lambda a, b: a * b,
        why="64 MB are written; one multiplication for each",
    )
    yield Program(
        "outer product in L2",
        ("bandwidth", "launch overhead"),
        lambda: (_random(256, 1), _random(1, 384)),
        lambda a, b: a * b,
        why="384 KB are written in 4 µs; waking a second thread and the launch take as long",
    )
    yield Program(
        "add of float16",
        ("bandwidth", "compute", "not vectorized", "spills"),
        lambda: (_halves(4096, 4096), _halves(4096, 4096)),
        lambda a, b: a + b,
        why="96 MB; where the CPU cannot convert, software takes longer than the bytes",
    )
    yield Program(
        "relu of bfloat16",
        ("bandwidth", "compute"),
        lambda: (_narrow(dtypes.bfloat16, 4096, 8192),),
        lambda a: a.relu(),
    )
    yield Program("add of int8", ("bandwidth",), lambda: (_bytes(8192, 4096), _bytes(8192, 4096)), lambda a, b: a + b)
    yield Program(
        "float32 to int8",
        ("bandwidth",),
        lambda: (_random(4096, 4096),),
        lambda a: a.cast(dtypes.int8),
        why="80 MB; a conversion and some packing of each vector",
    )
    yield Program(
        "flip", ("bandwidth",), lambda: (_random(4096, 4096),), lambda a: a.flip(1).contiguous(), why="128 MB, in order"
    )
    yield Program(
        "flip in L2",
        ("bandwidth", "not vectorized", "launch overhead"),
        lambda: (_random(256, 192),),
        lambda a: a.flip(1).contiguous(),
        why="384 KB in 5 µs and one shuffle a vector, or scalar copies; the launch takes half as long",
    )
    yield Program(
        "flip of rows", ("bandwidth",), lambda: (_random(4096, 4096),), lambda a: a.flip(0).contiguous(), why="128 MB"
    )
    yield Program(
        "int8 column of four",
        ("strided access", "not vectorized"),
        lambda: (_bytes(1 << 24, 4),),
        lambda a: a[:, 1].contiguous(),
        why="one byte of four is used; scalar copies of bytes take as long",
    )
    yield Program(
        "sum of int8 columns, four of them",
        ("bandwidth", "compute", "strided access"),
        lambda: (_bytes(1 << 22, 4),),
        lambda a: a.sum(0),
        why="16 MB; tiles read several streams, whose lines fall into the same sets of the L1",
    )
    yield Program(
        "each fourth column",
        ("strided access",),
        lambda: (_random(4096, 8192),),
        lambda a: a[:, ::4] + 1,
        why="4 of each 16 bytes are used",
    )
    yield Program(
        "each second row", ("bandwidth",), lambda: (_random(8192, 4096),), lambda a: a[::2] + 1, why="rows of 16 KB"
    )
    yield Program(
        "gather of rows of 64 bytes",
        ("random access",),
        lambda: _rows(1 << 21, 16, 1 << 19),
        lambda a, i: a[i],
        why="each row is one random line of 128 MB",
    )
    yield Program(
        "gather of rows of 4 KB",
        ("bandwidth",),
        lambda: _rows(1 << 15, 1024, 1 << 13),
        lambda a, i: a[i],
        why="rows are long: 64 MB move",
    )
    yield Program(
        "gather from 64 MB by int64",
        ("random access",),
        lambda: (_random(1 << 24), _table(24, 1 << 20)[1].cast(dtypes.int64).realize()),
        lambda a, i: a[i],
    )
    yield Program(
        "cumulative maximum of rows",
        ("latency", "bandwidth", "compute"),
        lambda: (_random(1024, 4096),),
        lambda a: a.cummax(1)[0],
        why="32 MB, and a chain along each row",
    )
    yield Program(
        "64 products of 32 x 32",
        ("compute",),
        lambda: (_random(64, 32, 32), _random(64, 32, 32)),
        lambda a, b: a @ b,
        why="4.2 M operations, 790 KB",
    )
    yield Program(
        "matmul 192 of float64 without opts",
        ("latency", "not vectorized"),
        lambda: (_wide(192, 192), _wide(192, 192)),
        lambda a, b: a @ b,
        {"noopt": 1},
    )
    yield Program(
        "matmul 192 without opts by Clang",
        ("latency", "not vectorized"),
        lambda: tuple(Tensor.rand(192, 192, device="CLANG").realize() for _ in range(2)),
        lambda a, b: a @ b,
        {"noopt": 1},
    )
    yield Program(
        "add out of memory by Clang",
        ("bandwidth",),
        lambda: tuple(Tensor.rand(4096, 4096, device="CLANG").realize() for _ in range(2)),
        lambda a, b: a + b,
    )
    yield Program(
        "transposed product",
        ("compute",),
        lambda: (_random(768, 768), _random(768, 768)),
        lambda a, b: a.T @ b,
        why="0.9 G operations, 7 MB",
    )
    yield Program(
        "transposed copy of int8 without opts",
        ("strided access",),
        lambda: (_bytes(4096, 4096),),
        lambda a: a.T.contiguous(),
        {"noopt": 1},
        why="one byte of each line at a time, 4 KB apart",
    )
    yield Program(
        "transposed copy of int8",
        ("strided access", "bandwidth"),
        lambda: (_bytes(8192, 8192),),
        lambda a: a.T.contiguous(),
        why="runs of a tile's width, 8 KB apart",
    )
    yield Program(
        "permuted axes",
        ("strided access", "bandwidth"),
        lambda: (_random(64, 512, 512),),
        lambda a: a.permute(2, 0, 1).contiguous(),
        why="the last axis becomes the first: runs of a tile's width, 1 MB apart",
    )
    yield Program(
        "pad",
        ("bandwidth",),
        lambda: (_random(4094, 4094),),
        lambda a: a.pad(((1, 1), (1, 1))).contiguous(),
        why="128 MB",
    )
    yield Program(
        "where with broadcast",
        ("bandwidth",),
        lambda: (_random(4096, 4096), _random(4096), _random(4096, 1)),
        lambda a, row, column: (a > row).where(a, column),
        why="128 MB, a comparison and a selection for each vector",
    )
    yield Program(
        "two tensors joined",
        ("bandwidth",),
        lambda: (_random(2048, 4096), _random(2048, 4096)),
        lambda a, b: a.cat(b, dim=0),
        why="128 MB are copied",
    )
    yield Program("log of 1 M", ("compute",), lambda: (_random(1024, 1024),), lambda a: (a + 1).log().exp().log())
    yield Program("tanh in L2", ("compute",), lambda: (_random(256, 256),), lambda a: a.tanh().tanh())
    yield Program(
        "exp in L1",
        ("compute", "one thread"),
        lambda: (_random(4096),),
        lambda a: a.exp().log().exp().log().exp().log().exp(),
        why="over 70 operations for each element; 50 µs are worth a second thread",
    )
    yield Program(
        "erf of 4 M",
        ("compute",),
        lambda: (_random(2048, 2048),),
        lambda a: a.erf().erf(),
        why="over 40 operations each",
    )
    yield Program(
        "1000 elements", ("launch overhead",), lambda: (_random(1000), _random(1000)), lambda a, b: a * b, why="0.1 µs"
    )
    yield Program(
        "16 sums of tiny tensors",
        ("launch overhead",),
        lambda: ([_random(32) for _ in range(16)],),
        _tiny_sum,
    )
    yield Program(
        "sum over the first axis",
        ("bandwidth", "strided access"),
        lambda: (_random(4096, 4096),),
        lambda a: a.sum(0),
        why="64 MB, by rows or in runs of a tile's width",
    )
    yield Program(
        "sum over the middle axis",
        ("bandwidth", "strided access"),
        lambda: (_random(64, 512, 512),),
        lambda a: a.sum(1),
        why="64 MB in runs of at most 2 KB",
    )
    yield Program("sum over the last axis", ("bandwidth",), lambda: (_random(8192, 2048),), lambda a: a.sum(1))
    yield Program(
        "position of the maximum",
        ("bandwidth", "compute"),
        lambda: (_random(4096, 4096),),
        lambda a: a.argmax(1),
        why="64 MB; two comparisons and selections for each vector take about as long",
    )
    yield Program(
        "matrix times vector", ("bandwidth",), lambda: (_random(4096, 8192), _random(8192, 1)), lambda a, b: a @ b
    )
    yield Program(
        "row times float16 matrix",
        ("bandwidth", "strided access", "compute", "not vectorized", "spills"),
        lambda: (_halves(1, 4096), _halves(4096, 8192)),
        lambda a, b: a.matmul(b, dtype=dtypes.float32),
        why="64 MB, in order or in runs of a tile's width; where the CPU cannot convert, software takes longer",
    )
    yield Program(
        "matmul 256 on one thread",
        ("one thread",),
        lambda: (_random(256, 256), _random(256, 256)),
        lambda a, b: a @ b,
        opts="VECTOR(1, {lanes}), UPCAST(1, {columns}), UPCAST(0, {rows})",
        why="no THREAD opt; 256 KB stay in the L2",
    )
    yield Program(
        "exponentials on one thread",
        ("one thread",),
        lambda: (_random(1024, 1024),),
        lambda a: a.exp().exp().exp(),
        opts="VECTOR(0, {lanes})",
    )
    yield Program(
        "maximum of rows without opts",
        ("latency", "not vectorized", "one thread"),
        lambda: (_random(2048, 2048),),
        lambda a: a.max(1),
        {"noopt": 1},
    )
    yield Program(
        "sum over columns of float64 by strides",
        ("strided access",),
        lambda: (_wide(4096, 2048),),
        lambda a: a.sum(0),
        {"noopt": 1},
    )
    yield Program(
        "matmul 384 of float64 with spills",
        ("spills",),
        lambda: (_wide(384, 384), _wide(384, 384)),
        lambda a, b: a @ b,
        opts="VECTOR(1, {doubles}), UPCAST(1, {columns}), UPCAST(0, 16), THREAD(0)",
        why="32 or 64 accumulators of vectors and 16 or 32 registers",
    )
    yield Program(
        "division of int32",
        ("compute", "not vectorized"),
        lambda: (_numbers(1 << 20), (_numbers(1 << 20) % 1000 + 1).realize()),
        lambda a, b: a // b,
        why="the divider takes 6 to 20 cycles for each element; it has no vectors",
    )
    yield Program("remainder by 7", ("compute",), lambda: (_numbers(1 << 20),), lambda a: (a % 7) * (a % 11) + a % 13)
    yield Program(
        "reciprocal roots in L1",
        ("compute", "one thread"),
        lambda: (_random(4096),),
        _rooted,
        why="32 KB; 8 square roots and 8 divisions for each element, of 2 to 5 cycles a vector",
    )
    yield Program(
        "random numbers",
        ("compute",),
        lambda: (),
        lambda: Tensor.rand(1 << 22),
        why="20 rounds of additions and shifts",
    )
    yield Program(
        "random stores",
        ("random access",),
        lambda: (_random(1 << 24), _table(24, 1 << 20)[1], _random(1 << 20)),
        lambda a, i, b: a.scatter(0, i, b),
    )
    yield Program(
        "three neighbors of each element",
        ("bandwidth",),
        lambda: (_random(4096, 4098),),
        _blur,
        why="128 MB; the unaligned loads are of lines in the L1",
    )
    yield Program(
        "expanded row times matrix",
        ("bandwidth", "strided access"),
        lambda: (_random(1, 4096), _random(4096, 4096)),
        lambda a, b: a.expand(64, 4096) @ b,
        why="the product of one row is computed once: 64 MB are read, in order or in runs of a tile's width",
    )
    yield Program(
        "maximum of windows",
        ("bandwidth", "compute"),
        lambda: (_random(8, 64, 256, 256),),
        lambda a: a.max_pool2d((2, 2)),
        why="168 MB; three comparisons and shuffles for each vector",
    )
    yield Program("variance of rows", ("bandwidth",), lambda: (_random(4096, 4096),), lambda a: a.var(1))
    yield Program(
        "softmax without opts",
        ("latency", "not vectorized", "one thread"),
        lambda: (_random(512, 1024),),
        lambda a: a.softmax(-1),
        {"noopt": 1},
    )
    yield Program(
        "transposed sum",
        ("bandwidth", "strided access"),
        lambda: (_random(4096, 4096), _random(4096, 4096)),
        lambda a, b: a.T + b,
    )
