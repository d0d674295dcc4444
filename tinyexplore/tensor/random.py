"""Counter-based random numbers: Threefry-2x32 with 20 rounds, written in tensor operations.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

The numbers for a seed are those of tinygrad 0.9.2 with THREEFRY=1, on every device. A process counts the numbers that
it draws. If the count is c, the next n numbers are the first words of the counters (c + i, c + i + m) for i < m = ⌈n /
2⌉, then the second words. Two details differ from tinygrad: narrow floats that would round to 1 become the largest
number below 1, and in a range of more than 2**24 ints each int can be drawn.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from math import prod
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, dtypes, to_dtype
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor.change_log import note_key
from tinyexplore.tensor.data import check_value
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.precision import wide_float
from tinyexplore.uop import Ops
from tinyexplore.uop.semantics import from_bits, to_bits, to_dtype_range
from tinyexplore.util import config

if TYPE_CHECKING:
    pass

T = TypeVar("T", bound="Indexing")
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
KEY_WORDS = 2


_drawing = Lock()  # each tensor gets separate numbers, in any thread


@dataclass
class Generator:
    """The random number generator of this process.

    seed: the seed.
    drawn: how many numbers were drawn since the seed was set; None before the first one.
    """

    seed: int = 0
    drawn: int | None = None

    def start(self, seed: int) -> None:
        """Restarts the generator from `seed`."""
        with _drawing:
            self.seed, self.drawn = seed, None

    def next_key(self, size: int, device: str) -> LazyBuffer:
        """Returns the seed and the count for the next `size` random numbers, as data, so that kernels do not depend on
        them."""
        return self._draw_next(KEY_WORDS, (KEY_WORDS,), size, device)

    def next_words(self, size: int, device: str) -> LazyBuffer:
        """Draws two words of 32 random bits for each of `size` elements immediately, for THREEFRY=0."""
        return self._draw_next(2 * size, (2, size), 0, device)

    def _draw_next(self, words: int, shape: tuple[int, ...], size: int, device: str) -> LazyBuffer:
        buffer = Buffer(Device.members(device)[0], words, dtypes.uint32)
        self.fill(buffer, size)
        note_key(buffer, size)
        return LazyBuffer.from_buffer(buffer, shape).copy_to_device(device)

    def fill(self, buffer: Buffer, size: int) -> None:
        """Redraws the key of `size` numbers into `buffer`. For a `size` of 0, redraws all words that `next_words`
        drew."""
        with _drawing:
            count = 0 if self.drawn is None else self.drawn + (size or 1)
            seed, self.drawn = self.seed, count
        if size:
            buffer.copyin(array("I", [seed & 0xFFFFFFFF, count & 0xFFFFFFFF]))
        else:
            buffer.copyin(Random(f"{seed} {count}").randbytes(buffer.nbytes))


generator = Generator()


def threefry(x0: T, x1: T, key0: T, key1: T) -> tuple[T, T]:
    """Returns the two words of the counter (x0, x1) under the key: uint32 tensors of one shape."""

    def add(a: T, b: T) -> T:
        return a._alu(Ops.ADD, b)

    keys = (key0, key1, key0._alu(Ops.XOR, key1)._alu(Ops.XOR, key0._const(PARITY)))
    left_shifts = {count: x0._const(count) for row in ROTATIONS for count in row}
    right_shifts = {count: x0._const(32 - count) for count in left_shifts}
    x0, x1 = add(x0, keys[0]), add(x1, keys[1])
    for group in range(5):
        for count in ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            rotated = x1._alu(Ops.SHL, left_shifts[count])._alu(Ops.OR, x1._alu(Ops.SHR, right_shifts[count]))
            x1 = rotated._alu(Ops.XOR, x0)
        injected = add(keys[(group + 2) % 3], x0._const(group + 1))
        x0, x1 = add(x0, keys[(group + 1) % 3]), add(x1, injected)
    return x0, x1


def _draw_words(tensor_class: type[T], count: LazyBuffer, half: int, key: T) -> tuple[T, T]:
    """Returns the two words of each counter (c + count, c + count + half). `key` holds the seed and c."""
    counter = tensor_class._wrap(count)
    seed, drawn = (key.shrink(((i, i + 1),))._broadcast_to(counter.shape) for i in range(KEY_WORDS))
    first_counter = counter._alu(Ops.ADD, drawn)
    return threefry(first_counter, first_counter._alu(Ops.ADD, first_counter._const(half)), seed, seed._const(0))


def random_pairs(tensor_class: type[T], size: int, device: str) -> tuple[T, T]:
    """Draws 32 random bits for each of 2 · `size` elements. Returns the first half and the second half."""
    if not config().THREEFRY:
        word_pairs = tensor_class._wrap(generator.next_words(size, device))
        return word_pairs[0], word_pairs[1]
    key = tensor_class._wrap(generator.next_key(2 * size, device))
    return _draw_words(tensor_class, LazyBuffer.iota(size, dtypes.uint32, device), size, key)


def random_bits(tensor_class: type[T], size: int, device: str) -> T:
    """Draws 32 random bits for each of `size` elements."""
    if not config().THREEFRY:
        return random_pairs(tensor_class, size, device)[0]
    key = tensor_class._wrap(generator.next_key(size, device))
    half = (size + 1) // 2
    counter = tensor_class._wrap(LazyBuffer.iota(size, dtypes.uint32, device))
    is_first = counter._alu(Ops.CMPLT, counter._const(half))
    count = is_first._alu(Ops.WHERE, counter, counter._alu(Ops.ADD, counter._const((1 << 32) - half)))
    return is_first._alu(Ops.WHERE, *_draw_words(tensor_class, count.lazydata, half, key))


def uniform_of(words: T, below: int = 1) -> T:
    """Returns float32 numbers 0 ≤ u < `below` (at most 2**24), from the upper 24 bits of each word."""
    upper = words._alu(Ops.SHR, words._const(8)).cast(dtypes.float32)
    return upper._alu(Ops.MUL, upper._const(below * 2.0**-24))


LAST = 1 - 2.0**-24  # the greatest result of `uniform_of`
# the largest float below 1, for dtypes in which numbers of 24 bits may round to 1
BELOW_ONE = {
    dtypes.float16: 1 - 2.0**-11,
    dtypes.bfloat16: 1 - 2.0**-8,
    dtypes.fp8e4m3: 1 - 2.0**-4,
    dtypes.fp8e5m2: 1 - 2.0**-3,
}


def _counted(shape: tuple[int, ...]) -> int:
    size = prod(shape)
    if size >= 1 << 32:
        raise ValueError(f"a random tensor of {size} elements: at most 2**32 - 1 elements")
    return size


def rand(tensor_class: type[T], shape: tuple[int, ...], dtype: Any, device: str) -> T:
    """Returns numbers uniform in [0, 1): one of 2**24 numbers, converted to `dtype`.

    bool: true unless the number is 0. Ints: 0, as in tinygrad 0.9.2.
    """
    target = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(target):
        return rand(tensor_class, shape, dtypes.float32, device).cast(target)
    size = _counted(shape)
    if not size:
        generator.drawn = generator.drawn or 0
        return tensor_class._wrap(LazyBuffer.const(0.0, target, device, shape))
    numbers = uniform_of(random_bits(tensor_class, size, device))
    if target in BELOW_ONE:
        numbers = numbers.minimum(BELOW_ONE[target])
    return numbers.cast(target).reshape(shape)


def between(drawn: T, low: float, high: float, target: DType) -> T:
    """Scales numbers from [0, 1) to [low, high) in the float dtype `target`.

    As in tinygrad 0.9.2, rounds before it adds `low`, unless that might overflow.
    """
    wide_dtype, spread, upper_bound = wide_float(target), high - low, to_dtype_range(float(high), target)
    if all(math.isfinite(to_dtype_range(float(spread), dtype)) for dtype in (target, drawn.dtype)):
        scaled = (drawn * spread).cast(target)
        largest = to_dtype_range(to_dtype_range(LAST * spread, target) + low, target)
        scaled = scaled if low == 0 else (scaled + low).cast(target)
    else:
        u = drawn.cast(wide_dtype)
        scaled = (u * high + (1.0 - u) * low).cast(target)
        largest = to_dtype_range(to_dtype_range(LAST * high + (1 - LAST) * low, wide_dtype), target)
    return (
        scaled.minimum(next_below(upper_bound, target))
        if low < high and math.isfinite(upper_bound) and largest >= upper_bound
        else scaled
    )


def next_below(x: float, dtype: DType) -> float:
    """Returns the next smaller number of a float dtype."""
    bits, sign = to_bits(x, dtype), 1 << (dtype.bits - 1)
    if x == 0:
        return float(from_bits(sign | 1, dtype))
    return float(from_bits(bits - 1 if x > 0 else bits + 1, dtype))


def randn(tensor_class: type[T], shape: tuple[int, ...], dtype: Any, device: str) -> T:
    """Returns normally distributed numbers by Box and Muller: cos(2π u) · √(-2 ln (1 - v)), in float32, converted to
    `dtype`."""
    target = dtypes.default_float if dtype is None else to_dtype(dtype)
    size = _counted((2, *shape)) // 2
    if not size:
        return rand(tensor_class, shape, dtypes.float32, device).cast(target)
    u, v = (uniform_of(words) for words in random_pairs(tensor_class, size, device))
    radius = ((1.0 - v).log() * -2.0).sqrt()
    return ((u * (2 * math.pi)).cos() * radius).cast(target).reshape(shape)


def randint(tensor_class: type[T], shape: tuple[int, ...], low: int, high: int, dtype: Any, device: str) -> T:
    """Returns ints uniform in low … high - 1, up to a deviation of range / 2**24 (for wider ranges, range / 2**32)."""
    target = dtypes.default_int if dtype is None else to_dtype(dtype)
    if not isinstance(low, int) or not isinstance(high, int):
        raise TypeError(f"randint from {low!r} to {high!r}: need ints, low < high")
    if high <= low:
        raise ValueError(f"randint from {low} to {high}: need ints, low < high")
    if not dtypes.is_int(target):
        raise TypeError(f"randint of dtype {target.name}: need an int dtype")
    check_value(low, target)
    check_value(high - 1, target)
    if high - low > 1 << 32:
        raise ValueError(f"randint from {low} to {high}: the range is at most 2**32 wide")
    size, range_size = _counted(shape), high - low
    if not size:
        return rand(tensor_class, shape, dtypes.float32, device).cast(target)
    bits = random_bits(tensor_class, size, device)
    lowest, highest = dtypes.min(dtypes.int32), dtypes.max(dtypes.int32)
    int_dtype = dtypes.int32 if lowest <= low and high <= highest else dtypes.int64
    if range_size <= 1 << 24:
        steps = uniform_of(bits, range_size)
    else:  # the upper word of bits · range
        product = bits.cast(dtypes.uint64)
        steps = product._alu(Ops.MUL, product._const(range_size))._alu(Ops.SHR, product._const(32))
    return (steps.cast(int_dtype) + low).cast(target).reshape(shape)


MAX_BOUNDS_COMPARED_AT_ONCE = 32  # up to this many bounds, one operation compares all


def places_in(bounds: T, values: T) -> T:
    """Counts for each of `values` (rows, m) how many of the ascending `bounds` (rows, n) are at most that value, by
    bisection."""
    count = bounds.shape[1]
    if count <= MAX_BOUNDS_COMPARED_AT_ONCE:
        return (values.unsqueeze(-1) >= bounds.unsqueeze(1)).sum(-1)
    table = bounds.contiguous().unsqueeze(1)
    index = values._const(0, dtypes.default_int, values.shape)
    step = 1 << (count.bit_length() - 1)
    while step:
        probe = index + step
        is_below = table._gather_last_axis((probe - 1).minimum(count - 1).unsqueeze(-1)) <= values
        index = ((probe <= count) & is_below).where(probe, index)
        step >>= 1
    return index
