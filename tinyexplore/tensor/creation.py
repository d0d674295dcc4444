"""New tensors: constants, sequences, random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import ConstType, DType, dtypes, to_dtype
from tinyexplore.lazy import LazyBuffer, Origin, ShardedBuffer, laid_out_as
from tinyexplore.lazy.lazybuffer import check_dtype_holds
from tinyexplore.tensor import random
from tinyexplore.tensor.base import DTypeLike, Shape
from tinyexplore.tensor.checks import need_int, need_number, need_tensor
from tinyexplore.tensor.data import check_value, elements_at
from tinyexplore.tensor.errors import ArgumentError
from tinyexplore.tensor.movement import flat_sizes, has_negative
from tinyexplore.tensor.ordering import Ordering
from tinyexplore.tensor.precision import wide_float
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import as_size, greatest, limits, product, simplified
from tinyexplore.util import fetch

if TYPE_CHECKING:
    from typing_extensions import Self


def _check_sizes(shape: tuple[Any, ...]) -> Shape:
    sizes = flat_sizes(shape[0], shape[1:]) if shape else ()
    if has_negative(sizes):
        raise ValueError(f"shape {sizes}: sizes cannot be negative")
    return sizes


class Creation(Ordering):
    __slots__ = ()

    @classmethod
    def _mark_as_data(cls, tensor: Self, requires_grad: bool | None) -> Self:
        """Marks a new tensor as data and sets its `requires_grad`. Returns the tensor."""
        tensor.lazydata.note = Origin.DATA
        tensor.requires_grad = requires_grad
        return tensor

    # *** constants ***

    @classmethod
    def full(
        cls,
        shape: int | Sequence[int],
        fill_value: ConstType,
        *,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Returns a tensor filled with `fill_value`. It takes no memory until a kernel needs it."""
        need_number(fill_value, "full: the value")
        value_dtype = dtypes.default_int if isinstance(fill_value, UOp) else dtypes.from_py(fill_value)
        target = value_dtype if dtype is None else to_dtype(dtype)
        sizes = _check_sizes((shape,))
        value = fill_value if isinstance(fill_value, UOp) else check_value(fill_value, target)
        lazydata = LazyBuffer.const(value, target, Device.canonicalize(device), sizes)
        return cls._mark_as_data(cls._wrap(lazydata), requires_grad)

    @classmethod
    def zeros(cls, *shape: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        return cls.full(_check_sizes(shape), 0, dtype=dtypes.default_float if dtype is None else dtype, **kwargs)

    @classmethod
    def ones(cls, *shape: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        return cls.full(_check_sizes(shape), 1, dtype=dtypes.default_float if dtype is None else dtype, **kwargs)

    @classmethod
    def empty(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Returns a tensor with undefined content."""
        sizes = _check_sizes(shape)
        target = dtypes.default_float if dtype is None else to_dtype(dtype)
        shards = []
        for member in Device.members(Device.canonicalize(device)):
            buffer = Buffer(member, greatest(product(sizes)), target).allocate()
            shards.append(LazyBuffer.from_buffer(buffer, sizes))
        return cls._mark_as_data(
            cls._wrap(shards[0] if len(shards) == 1 else ShardedBuffer(shards, None)), requires_grad
        )

    @classmethod
    def from_blob(
        cls, ptr: int, shape: Sequence[int], *, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Self:
        """Returns a tensor over host memory at address `ptr`, row-major, not copied. The owner must keep the memory
        alive."""
        sizes = _check_sizes((tuple(shape),))
        target = dtypes.default_float if dtype is None else to_dtype(dtype)
        lazydata = elements_at(ptr, prod(sizes), target, Device.canonicalize(device))
        return cls._mark_as_data(cls._wrap(lazydata.reshape(sizes)), None)

    @classmethod
    def from_url(cls, url: str, gunzip: bool = False, *, checksum: str | None = None, **kwargs: Any) -> Self:
        """Returns the bytes of the file at `url`. The file is downloaded once (see `tinyexplore.util.fetch`) and read
        when needed."""
        return cls(fetch(url, gunzip=gunzip, checksum=checksum), **kwargs)

    def full_like(self, fill_value: ConstType, *, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Returns a tensor filled with `fill_value`, with this tensor's shape, dtype and device."""
        return self._make_like(type(self).full, self.shape, fill_value, dtype=dtype, **kwargs)

    def _make_like(self, make: Callable[..., Self], *args: Any, **kwargs: Any) -> Self:
        """Calls `make` with this tensor's dtype and device, unless others are given. The result is sharded like this
        tensor."""
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = self.dtype
        if kwargs.get("device") is not None:
            return make(*args, **kwargs)
        kwargs["device"] = self.device
        result = make(*args, **kwargs)
        result.lazydata = laid_out_as(result.lazydata, self.lazydata)
        return result

    def zeros_like(self, **kwargs: Any) -> Self:
        return self.full_like(0, **kwargs)

    def ones_like(self, **kwargs: Any) -> Self:
        return self.full_like(1, **kwargs)

    # *** sequences ***

    @classmethod
    def arange(
        cls,
        start: float,
        stop: float | None = None,
        step: float = 1,
        *,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Returns start, start + step, … up to `stop`, which is excluded. With one argument, counts from 0 to that
        argument."""
        if stop is None:
            start, stop = 0, start
        for name, argument in (("start", start), ("stop", stop), ("step", step)):
            need_number(argument, f"arange: {name}")
        if limits(step)[0] <= 0 <= limits(step)[1] if isinstance(step, UOp) else step == 0:
            raise ValueError(f"arange with step {step!r}: the step must not be 0, nor a size that may be 0")
        is_whole = all(isinstance(argument, (int, UOp)) for argument in (start, stop, step))
        target = (dtypes.default_int if is_whole else dtypes.default_float) if dtype is None else to_dtype(dtype)
        if any(isinstance(argument, UOp) for argument in (start, stop, step)):
            distance: Any = stop - start if step > 0 else start - stop
            step_size = step if step > 0 else -step
            length = simplified(((as_size(distance) + (step_size - 1)) // step_size).maximum(0))
            for limit in (start, start + (as_size(length) - 1).maximum(0) * step):
                check_dtype_holds(limit, target)
        else:
            length = max(0, int(-((stop - start) // -step)) if is_whole else math.ceil((stop - start) / step))
            if length:
                for limit in (start, start + (length - 1) * step):
                    check_value(limit, target)
        ints = dtypes.default_int if greatest(length) <= dtypes.max(dtypes.int32) else dtypes.int64
        counter = cls._wrap(LazyBuffer.iota(length, ints, Device.canonicalize(device)))
        return cls._mark_as_data(counter._make_progression(start, step, target), requires_grad)

    def _make_progression(self, start: Any, step: Any, target: DType) -> Self:
        """Returns start + step · self for self = 0, 1, …, rounded to `target` once.

        Ints are exact. Other numbers are computed in float32 or wider.
        """
        dtype = self.dtype
        if not all(isinstance(argument, (int, UOp)) for argument in (start, step)):
            dtype = _range_float(target, start, step * self.shape[0])
        elif dtypes.is_int(target):
            dtype = target
        elif isinstance(start, int) and isinstance(step, int):
            count = greatest(self.shape[0])
            dtype = next(
                (
                    candidate
                    for candidate in (dtype, dtypes.int64)
                    if all(
                        dtypes.min(candidate) <= number <= dtypes.max(candidate)
                        for number in (start, step, start + count * step)
                    )
                ),
                wide_float(target),
            )
        result = self.cast(dtype)
        if step != 1:
            result = result._alu(Ops.MUL, result._const(step))
        if start != 0:
            result = result._alu(Ops.ADD, result._const(start))
        return result.cast(target)

    @classmethod
    def linspace(cls, start: float, stop: float, steps: int, *, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Returns `steps` equally spaced numbers from `start` to `stop`, both included."""
        need_number(start, "linspace: start")
        need_number(stop, "linspace: stop")
        need_int(steps, "linspace: steps")
        if steps < 0:
            raise ValueError(f"linspace with {steps} steps: need 0 at least")
        target = dtypes.default_float if dtype is None else to_dtype(dtype)
        if target is dtypes.bool:
            raise ArgumentError("linspace with dtype bool: need an int or float dtype")
        for limit in (start, stop) if not isinstance(steps, UOp) and steps else ():
            if not isinstance(limit, UOp):
                check_value(limit, target)
        wide_dtype = _range_float(target, start, stop)
        requires_grad = kwargs.pop("requires_grad", None)
        counter = cls.arange(steps, **kwargs)
        last: Any = steps - 1 if isinstance(steps, UOp) else max(steps - 1, 1)
        step = (stop - start) / (counter._const(last.maximum(1)).cast(wide_dtype) if isinstance(steps, UOp) else last)
        rising = counter.cast(wide_dtype) * step + start
        # so that the last number is exactly `stop`
        falling = (counter._const(last) - counter).cast(wide_dtype) * -step + stop
        halfway = last.maximum(1) if isinstance(steps, UOp) else last
        values = (counter < (halfway + 1) // 2).where(rising, falling)
        return cls._mark_as_data(values.cast(target), requires_grad)

    @classmethod
    def eye(cls, n: int, m: int | None = None, *, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Returns a matrix of `n` rows and `m` (or `n`) columns, with 1 on the diagonal and 0 elsewhere."""
        columns = n if m is None else m
        need_int(n, "eye: rows")
        need_int(columns, "eye: columns")
        if n < 0 or columns < 0:
            raise ValueError(f"eye({n}, {columns}): sizes cannot be negative")
        requires_grad = kwargs.pop("requires_grad", None)
        row, column = cls.arange(n, **kwargs).unsqueeze(1), cls.arange(columns, **kwargs)
        return cls._mark_as_data((row == column).cast(dtypes.default_float if dtype is None else dtype), requires_grad)

    def meshgrid(self, *args: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Returns the coordinates of a grid over vectors, as one tensor per axis."""
        if indexing not in ("ij", "xy"):
            raise ArgumentError(f"meshgrid indexing {indexing!r}: choose 'ij' or 'xy'")
        lines = [self, *args]
        for line in lines:
            need_tensor(line, "meshgrid: one of the vectors")
        shape = tuple(line.numel() for line in lines)
        grids = []
        for axis, line in enumerate(lines):
            line_shape = line.reshape(tuple(size if i == axis else 1 for i, size in enumerate(shape)))
            grid = line_shape._broadcast_to(shape)
            grids.append(grid.transpose(0, 1) if indexing == "xy" and len(lines) > 1 else grid)
        return tuple(grids)

    # *** random numbers ***

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Restarts the random number generator from the lower 32 bits of `seed`."""
        if not isinstance(seed, int):
            raise TypeError(f"manual_seed {seed!r} ({type(seed).__name__}): need an int")
        random.generator.start(seed)

    @classmethod
    def rand(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Returns random numbers, uniform in [0, 1)."""
        result = random.rand(cls, _check_sizes(shape), dtype, Device.canonicalize(device))
        return cls._mark_as_data(result, requires_grad)

    @classmethod
    def randn(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Returns normally distributed numbers with mean 0 and standard deviation 1. An int dtype rounds them towards
        zero."""
        result = random.randn(cls, _check_sizes(shape), dtype, Device.canonicalize(device))
        return cls._mark_as_data(result, requires_grad)

    @classmethod
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Returns random ints, uniform in [low, high)."""
        result = random.randint(cls, _check_sizes(shape), low, high, dtype, Device.canonicalize(device))
        result.requires_grad = requires_grad
        return result

    @classmethod
    def randperm(cls, n: int, *, device: str | None = None, dtype: DTypeLike | None = None) -> Self:
        """Returns the ints 0 … n - 1 in random order."""
        need_int(n, "randperm: n", 0)
        target = dtypes.default_int if dtype is None else to_dtype(dtype)
        if isinstance(n, int) and n:
            check_value(n - 1, target)
        return cls.rand(n, device=device, dtype=wide_float(dtypes.default_float)).argsort().cast(target)

    def rand_like(self, **kwargs: Any) -> Self:
        return self._make_like(type(self).rand, *self.shape, **kwargs)

    def randn_like(self, **kwargs: Any) -> Self:
        return self._make_like(type(self).randn, *self.shape, **kwargs)

    @classmethod
    def _scale_random(cls, random_tensor: Self, scale: float, shift: float, requires_grad: bool | None) -> Self:
        result = random_tensor if scale == 1 else random_tensor * scale
        return cls._mark_as_data(result if shift == 0 else result + shift, requires_grad)

    @classmethod
    def normal(
        cls,
        *shape: Any,
        mean: float = 0.0,
        std: float = 1.0,
        requires_grad: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Returns normally distributed numbers with mean `mean` and standard deviation `std`."""
        need_number(mean, "normal: mean")
        need_number(std, "normal: std")
        return cls._scale_random(cls.randn(*shape, **kwargs), std, mean, requires_grad)

    @classmethod
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        requires_grad: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Returns random numbers, uniform in [low, high). For an int dtype, the result is `low` plus a random int."""
        target = to_dtype(kwargs.pop("dtype", None) or dtypes.default_float)
        need_number(low, "uniform: low")
        need_number(high, "uniform: high")
        check_value(low, target)
        check_value(high, target)
        drawn = cls.rand(*shape, **kwargs)
        if dtypes.is_float(target):
            return cls._mark_as_data(random.between(drawn, low, high, target), requires_grad)
        scaled = (drawn * (high - low)).cast(target)
        return cls._mark_as_data(scaled if low == 0 else (scaled + low).cast(target), requires_grad)

    @classmethod
    def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Returns numbers uniform in ±1 / √n, for n elements in total."""
        return cls._draw_uniform(max(prod(_check_sizes(shape)), 1) ** -0.5, shape, **kwargs)

    @classmethod
    def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Returns numbers uniform in ±√(6 / (fan in + fan out)) (Glorot and Bengio, 2010)."""
        sizes = _check_sizes(shape)
        if not sizes:
            raise ValueError("glorot_uniform of shape (): fan-in and fan-out need at least one axis")
        return cls._draw_uniform((6 / max(sizes[0] + prod(sizes[1:]), 1)) ** 0.5, shape, **kwargs)

    @classmethod
    def _draw_uniform(
        cls, bound: float, shape: tuple[Any, ...], requires_grad: bool | None = None, **kwargs: Any
    ) -> Self:
        return cls._mark_as_data(cls.uniform(*shape, low=-1.0, high=1.0, **kwargs) * bound, requires_grad)

    @classmethod
    def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Returns numbers uniform in ±√3 · √(2 / (1 + a²) / fan in) (He et al., 2015)."""
        bound = math.sqrt(3.0) * _he_deviation(_check_sizes(shape), a)
        return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

    @classmethod
    def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Returns normally distributed numbers with variance 2 / (1 + a²) / fan in (He et al., 2015)."""
        return cls.normal(*shape, mean=0.0, std=_he_deviation(_check_sizes(shape), a), **kwargs)

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Draws `num_samples` indices of the last axis for each row. The row holds the probability of each index; its
        sum need not be 1."""
        need_int(num_samples, "multinomial: num_samples")
        if self.ndim not in (1, 2) or num_samples < 1:
            raise ValueError(f"multinomial of shape {self.shape}, {num_samples} samples: need 1 or 2 axes, ≥ 1")
        weights = self if self.ndim == 2 else self.unsqueeze(0)
        rows, classes = weights.shape
        if not replacement and num_samples > 1:
            if num_samples > classes:
                raise ValueError(f"multinomial draws {num_samples} of {classes} without replacement: there are too few")
            # the order of exponential times with these rates is a sample without replacement (Efraimidis and
            # Spirakis, 2006)
            times = (1.0 - self.rand(rows, classes, device=self.device)).log().neg() / weights._to_float()
            indices = times.topk(num_samples, largest=False)[1]
        else:
            sums = weights._to_float().cumsum(1)
            drawn = self.rand(num_samples, rows, device=self.device).T
            indices = random.places_in(sums / sums[:, -1:], drawn).minimum(classes - 1)
        return (indices if self.ndim == 2 else indices.squeeze(0)).cast(dtypes.default_int)


def _he_deviation(shape: Shape, slope: float) -> float:
    return math.sqrt(2.0 / (1 + slope**2)) / math.sqrt(max(prod(shape[1:]), 1))


def _range_float(target: DType, start: Any, stop: Any) -> DType:
    """Returns the float dtype in which numbers from `start` to `stop` are computed before they are rounded to
    `target`."""
    if dtypes.is_float(target):
        return wide_float(target)
    is_large = target.itemsize >= 4 and not isinstance(start, UOp) and not isinstance(stop, UOp)
    # float32 represents every int up to 2**24
    return dtypes.float64 if is_large and max(abs(start), abs(stop)) > 1 << 24 else wide_float(dtypes.default_float)
