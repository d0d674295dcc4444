"""Random numbers by counting: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
as easy as 1, 2, 3", SC 2011), written in tensor operations.

Element i of the n-th random tensor is a function of (seed, n, i) alone: the same on every device.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import prod
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, dtypes, to_dtype
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor.changes import note_key
from tinyexplore.uop import Ops
from tinyexplore.util import config

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
KEY_WORDS = 3


_drawing = Lock()  # every tensor gets a number of its own, whichever thread asks


@dataclass
class Generator:
    """Where the random numbers of this process come from."""

    seed: int = 0
    stream: int = 0

    def next_key(self, device: str) -> LazyBuffer:
        """Seed and number of the next random tensor, as data: a kernel does not change with them."""
        first = Device.members(device)[0]
        buffer = Buffer(first, KEY_WORDS, dtypes.uint32)
        self.fill(buffer)
        note_key(buffer)
        return LazyBuffer.from_buffer(buffer, (KEY_WORDS,)).copy_to_device(device)

    def next_words(self, size: int, device: str) -> LazyBuffer:
        """Two words of 32 random bits for each of `size` elements, drawn here: what THREEFRY=0 takes."""
        first = Device.members(device)[0]
        buffer = Buffer(first, 2 * size, dtypes.uint32)
        self.fill(buffer)
        note_key(buffer)
        return LazyBuffer.from_buffer(buffer, (2, size)).copy_to_device(device)

    def fill(self, buffer: Buffer) -> None:
        """Draws the next random tensor: its key into memory made by `next_key`, or all of it, by `next_words`."""
        with _drawing:
            seed, stream = self.seed, self.stream
            self.stream += 1
        if buffer.size != KEY_WORDS:
            buffer.copyin(Random(f"{seed} {stream}").randbytes(buffer.nbytes))
            return
        buffer.copyin(array("I", [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF, stream & 0xFFFFFFFF]))


generator = Generator()


def threefry(x0: Tensor, x1: Tensor, key0: Tensor, key1: Tensor) -> tuple[Tensor, Tensor]:
    """The two words of counter (x0, x1) under the key: uint32 tensors of one shape."""

    def add(a: Tensor, b: Tensor) -> Tensor:
        return a._alu(Ops.ADD, b)

    keys = (key0, key1, key0._alu(Ops.XOR, key1)._alu(Ops.XOR, key0._const(PARITY)))
    left = {count: x0._const(count) for row in ROTATIONS for count in row}
    right = {count: x0._const(32 - count) for count in left}
    x0, x1 = add(x0, keys[0]), add(x1, keys[1])
    for group in range(5):
        for count in ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            turned = x1._alu(Ops.SHL, left[count])._alu(Ops.OR, x1._alu(Ops.SHR, right[count]))
            x1 = turned._alu(Ops.XOR, x0)
        injected = add(keys[(group + 2) % 3], x0._const(group + 1))
        x0, x1 = add(x0, keys[(group + 1) % 3]), add(x1, injected)
    return x0, x1


def random_words(kind: type[Tensor], size: int, device: str) -> tuple[Tensor, Tensor]:
    """Two words of 32 random bits for each of `size` elements."""
    if size >= 1 << 32:
        raise ValueError(f"a random tensor of {size} elements: at most 2**32 - 1 are counted")
    if not config().THREEFRY and size:
        both = kind._wrap(generator.next_words(size, device))
        return both[0], both[1]
    key = kind._wrap(generator.next_key(device))
    seed0, seed1, stream = (key.shrink(((i, i + 1),))._broadcast_to((size,)) for i in range(3))
    count = kind._wrap(LazyBuffer.iota(size, dtypes.uint32, device))
    return threefry(count, stream, seed0, seed1)


def uniform_of(words: Tensor, dtype: DType) -> Tensor:
    """0 ≤ u < 1 from the upper bits: as many as every value of `dtype` below 1 can hold."""
    bits = {dtypes.fp8e5m2: 3, dtypes.fp8e4m3: 4, dtypes.float16: 11, dtypes.bfloat16: 8}.get(dtype, 24)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    whole = words._alu(Ops.SHR, words._const(32 - bits)).cast(wide)
    return whole._alu(Ops.MUL, whole._const(2.0**-bits)).cast(dtype)


def rand(kind: type[Tensor], shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
    """Evenly from 0 to 1, 1 excluded."""
    target = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(target):
        raise ValueError(f"rand of dtype {target.name}: need a float dtype (randint gives ints)")
    first, second = random_words(kind, prod(shape), device)
    if target is dtypes.float64:
        upper = first._alu(Ops.SHR, first._const(5)).cast(target)  # 27 bits and 26 bits make 53
        lower = second._alu(Ops.SHR, second._const(6)).cast(target)
        return ((upper * 67108864.0 + lower) * 2.0**-53).reshape(shape)
    return uniform_of(first, target).reshape(shape)


def randn(kind: type[Tensor], shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
    """Normally distributed, by Box and Muller: √(-2 ln u) · cos(2π v); of another dtype: converted to it"""
    target = dtypes.default_float if dtype is None else to_dtype(dtype)
    first, second = random_words(kind, prod(shape), device)
    wide = dtypes.float64 if target is dtypes.float64 else dtypes.float32
    u, v = uniform_of(first, wide), uniform_of(second, wide)
    radius = ((1.0 - u).log() * -2.0).sqrt()
    return (radius * (v * (2 * 3.141592653589793)).cos()).cast(target).reshape(shape)


def randint(kind: type[Tensor], shape: tuple[int, ...], low: int, high: int, dtype: Any, device: str) -> Tensor:
    """Evenly from low … high - 1."""
    target = dtypes.default_int if dtype is None else to_dtype(dtype)
    if not isinstance(low, int) or not isinstance(high, int):
        raise TypeError(f"randint from {low!r} to {high!r}: need ints, low < high")
    if high <= low:
        raise ValueError(f"randint from {low} to {high}: need ints, low < high")
    if not dtypes.is_int(target):
        raise TypeError(f"randint of dtype {target.name}: need an int dtype")
    if high - low > 1 << 32:
        raise ValueError(f"randint from {low} to {high}: the range is at most 2**32 wide")
    first, _ = random_words(kind, prod(shape), device)
    # the upper word of bits · range is even over the range, to within range / 2**32
    spread = first.cast(dtypes.uint64)
    found = (spread._alu(Ops.MUL, spread._const(high - low)))._alu(Ops.SHR, spread._const(32))
    return (found.cast(dtypes.int64) + low).cast(target).reshape(shape)


FEW_BOUNDS = 32  # up to here all are compared at once


def places_in(bounds: Tensor, values: Tensor) -> Tensor:
    """How many of the rising `bounds` (rows, n) are at most each of the `values` (rows, m): by bisection."""
    count = bounds.shape[1]
    if count <= FEW_BOUNDS:
        return (values.unsqueeze(-1) >= bounds.unsqueeze(1)).sum(-1)
    table = bounds.contiguous().unsqueeze(1)
    found = values._const(0, dtypes.default_int, values.shape)
    step = 1 << (count.bit_length() - 1)
    while step:
        probe = found + step
        below = table._picked((probe - 1).minimum(count - 1).unsqueeze(-1)) <= values
        found = ((probe <= count) & below).where(probe, found)
        step >>= 1
    return found


def multinomial(probabilities: Tensor, num_samples: int, replacement: bool) -> Tensor:
    """Places of the last axis, each drawn with its probability (rows need not add up to 1)."""
    if probabilities.ndim not in (1, 2) or num_samples < 1:
        raise ValueError(f"multinomial of shape {probabilities.shape}, {num_samples} samples: need 1 or 2 axes, ≥ 1")
    weights = probabilities if probabilities.ndim == 2 else probabilities.unsqueeze(0)
    rows, classes = weights.shape
    kind = cast(Any, type(probabilities))
    if not replacement and num_samples > 1:
        if num_samples > classes:
            raise ValueError(f"multinomial draws {num_samples} of {classes} without replacement: there are too few")
        # the smallest of exponential times with these rates comes first (Efraimidis and Spirakis, 2006)
        times = (1.0 - kind.rand(rows, classes, device=probabilities.device)).log().neg() / weights._float()
        places = times.topk(num_samples, largest=False)[1]
        return (places if probabilities.ndim == 2 else places.squeeze(0)).cast(dtypes.default_int)
    sums = weights._float().cumsum(1)
    bounds = sums / sums[:, -1:]
    drawn = kind.rand(rows, num_samples, 1, device=probabilities.device)
    places = places_in(bounds, drawn.squeeze(-1)).minimum(classes - 1)
    return (places if probabilities.ndim == 2 else places.squeeze(0)).cast(dtypes.default_int)
