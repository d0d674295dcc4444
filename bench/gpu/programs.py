"""Programs that are timed on a GPU here and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.cliffs.programs import (
    BLOCK,
    BLOCK_WEIGHTS,
    F,
    our_attention,
    our_block,
    te,
    their_attention,
    their_block,
    torch,
)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Timed:
    """A program of arrays.

    name: unique name.
    shapes: shapes of its inputs.
    small: shapes with which the program takes seconds on a driver stand-in.
    ours: the program on tinyexplore's Tensors.
    theirs: the program on PyTorch's Tensors, or None if `ours` works for both.
    dtype: of the inputs: float32 or bfloat16.
    tf32: tensor cores may read 10 bits of a float32's fraction.
    gradients: indices of the inputs whose gradients (of the sum of squares) are the results.
    flops: operations of one run.
    moved: bytes that one run has to read and write.
    """

    name: str
    shapes: tuple[Shape, ...]
    small: tuple[Shape, ...]
    ours: Callable[..., Any]
    theirs: Callable[..., Any] | None = None
    dtype: str = "float32"
    tf32: bool = False
    gradients: tuple[int, ...] = ()
    flops: int = 0
    moved: int = 0

    @property
    def rounding(self) -> float:
        """Return the approximate error of one product of two inputs."""
        return 2e-2 if self.dtype == "bfloat16" else 3e-3 if self.tf32 else 1e-4


def product(x: Any, y: Any) -> Any:
    return x @ y


def _matmul(size: int, dtype: str = "float32", *, tf32: bool = False) -> Timed:
    kind = "tf32" if tf32 else dtype
    square, flops = (size, size), 2 * size**3
    return Timed(f"matmul {kind} {size}", (square,) * 2, ((8, 8),) * 2, product, None, dtype, tf32, flops=flops)


def _attention(batch: int, heads: int, length: int, dtype: str) -> Timed:
    shape, small = (batch, heads, length, 64), (1, 2, 16, 16)
    name, flops = f"attention {dtype} {length}", 4 * batch * heads * length * length * 64
    return Timed(name, (shape,) * 3, (small,) * 3, our_attention, their_attention, dtype, flops=flops)


def _stream(name: str, shape: Shape, small: Shape, count: int, moved: int, ours: Any, theirs: Any = None) -> Timed:
    """Return a program that memory traffic bounds: `count` inputs, and `moved` bytes per element of an input."""
    size = 1
    for side in shape:
        size *= side
    return Timed(name, (shape,) * count, (small,) * count, ours, theirs, moved=moved * size)


_BLOCK_SMALL = ((1, 16, 64), (64, 192), (64, 64), (64, 128), (128, 64))
_BLOCK_SHAPES = tuple(each.shape for each in BLOCK.values())
_WEIGHTS = tuple(list(BLOCK).index(name) for name in BLOCK_WEIGHTS)
_MIB16 = 1 << 24

PROGRAMS = (
    _matmul(1024),
    _matmul(4096),
    _matmul(4096, tf32=True),
    _matmul(1024, "bfloat16"),
    _matmul(4096, "bfloat16"),
    _stream("a · b + a, 16 Mi", (_MIB16,), (32,), 2, 12, lambda a, b: a * b + a),
    _stream("gelu, 16 Mi", (_MIB16,), (32,), 1, 8, lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh")),
    _stream("sum of 16 Mi", (_MIB16,), (32,), 1, 4, lambda x: x.sum()),
    _stream("sums of columns, 4096²", (4096, 4096), (4, 8), 1, 4, lambda x: x.sum(0)),
    _stream("maxima of rows, 4096²", (4096, 4096), (4, 8), 1, 4, lambda x: x.max(1), lambda x: x.amax(1)),
    _stream("transposed, 4096²", (4096, 4096), (4, 8), 1, 8, lambda x: x.T.contiguous()),
    _stream("softmax, 4096²", (4096, 4096), (2, 16), 1, 8, lambda x: x.softmax(-1)),
    _stream(
        "layernorm, 4096 × 1024",
        (4096, 1024),
        (2, 16),
        1,
        8,
        lambda x: x.layernorm(),
        lambda x: F.layer_norm(x, x.shape[-1:]),
    ),
    _attention(4, 8, 512, "float32"),
    _attention(4, 8, 2048, "bfloat16"),
    Timed(
        "conv 3×3, 32×64×56×56",
        ((32, 64, 56, 56), (64, 64, 3, 3)),
        ((1, 4, 8, 8), (4, 4, 3, 3)),
        lambda x, w: x.conv2d(w, padding=1),
        lambda x, w: F.conv2d(x, w, padding=1),
        flops=2 * 32 * 56 * 56 * 64 * 64 * 9,
    ),
    Timed("block forward", _BLOCK_SHAPES, _BLOCK_SMALL, our_block, their_block),
    Timed("block forward and backward", _BLOCK_SHAPES, _BLOCK_SMALL, our_block, their_block, gradients=_WEIGHTS),
)

__all__ = ["F", "PROGRAMS", "Timed", "te", "torch"]
