"""Computes a tensor, and converts its values to Python, NumPy and C."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import ConstType, dtypes
from tinyexplore.lazy import ShardedBuffer, StoredBuffer
from tinyexplore.tensor import data as conversion
from tinyexplore.tensor import exchange
from tinyexplore.tensor.base import Shape, TensorBase
from tinyexplore.tensor.checks import need_tensor
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import value_of
from tinyexplore.util import GlobalCounters

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Self


@cache
def _engine() -> Any:
    """Imports and returns the engine at the first computation, so that `import tinyexplore` is fast."""
    from tinyexplore import engine  # noqa: PLC0415 (start-up: see above)

    return engine


class Values(TensorBase):
    __slots__ = ()

    # *** computing ***

    def realize(self, *others: Self, do_update_stats: bool = True) -> Self:
        """Computes this tensor (and `others`, together) into memory. For a view that was assigned to, also computes its
        base tensor.

        `do_update_stats=False`: `GlobalCounters` do not count this computation.
        """
        for other in others:
            need_tensor(other, "realize: one of the others")
        outputs = [self.lazydata, *[tensor.lazydata for tensor in others]] if others else [self.lazydata]
        if self._root is not None or others:
            for tensor in (self, *others):
                root = None if tensor._root is None else tensor._root()
                if root is not None and getattr(tensor, "was_changed", False):
                    outputs.append(root.lazydata)
        if do_update_stats:
            _engine().realize(outputs)
        else:
            with GlobalCounters.paused():
                _engine().realize(outputs)
        return self

    def schedule(self, *others: Self) -> list[Any]:
        """Returns the kernels that compute this tensor (and `others`), in order. Runs nothing."""
        return list(_engine().schedule([tensor.lazydata for tensor in (self, *others)]))

    def schedule_with_vars(self, *others: Self) -> tuple[list[Any], dict[UOp, int]]:
        """Returns `schedule`, and the values that the Variables in it are bound to."""
        items = self.schedule(*others)
        return items, {variable: value for item in items for variable, value in item.bound.items()}

    def _read(self) -> Buffer:
        lazydata = self.lazydata
        if isinstance(lazydata, StoredBuffer):
            result_buffer = lazydata.run()
            if result_buffer is not None:
                return result_buffer
            lazydata = lazydata.copy_to_device(Device.DEFAULT)
        if isinstance(lazydata, ShardedBuffer):
            lazydata = lazydata.copy_to_device(lazydata.devices[0])
        buffer: Buffer = _engine().read(lazydata)
        return buffer

    def _store(self) -> None:
        """Computes pending copies to storage."""
        _engine().realize([self.lazydata.base])

    def _evaluate_shape(self) -> Shape:
        """Returns the shape as ints, with Variables at their bound values. Raises SymbolicError if one is not bound."""
        return tuple([value_of(size) for size in self.shape])

    def numpy(self) -> np.ndarray:
        """Copies the values to a NumPy array (bfloat16 as float32)."""
        return conversion.array_of(self._read(), self._evaluate_shape())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Implements `np.asarray(tensor)`: returns an array over the tensor's memory, or a copy if the dtype or `copy`
        requires it.

        A view of a tensor (a transpose, a slice) gives a NumPy view. bfloat16 and 8-bit floats, which NumPy lacks, are
        copied to float32.

        Raises:
            ValueError: `copy` is False, but only a copy can hold the values.
        """
        if self.dtype.fmt is None:
            if copy is False:
                raise ValueError(f"NumPy has no {self.dtype.name}: an array of it is a copy, as float32")
            array = self.numpy()
        else:
            array, is_copy = self._view_as_array()
            if copy is False and (is_copy or (dtype is not None and array.dtype != dtype)):
                raise ValueError(
                    f"an array of this tensor ({self.shape}, {self.dtype.name}, {self.device}) is a copy; "
                    "leave out copy=False"
                )
            if copy and not is_copy:
                array = array.copy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def _view_as_array(self) -> tuple[np.ndarray, bool]:
        """Returns a NumPy array of the elements in the tensor's memory, and whether they had to be copied.

        bfloat16 and 8-bit floats appear as unsigned integers of their bits.
        """
        lazydata, shape = self.lazydata, self._evaluate_shape()
        row_major = tuple([prod(shape[axis + 1 :]) for axis in range(len(shape))])
        if isinstance(lazydata, (StoredBuffer, ShardedBuffer)) or _engine().active_capture() is not None:
            return exchange.array_over(self._read(), shape, row_major, 0), True
        if lazydata.base.buffer is None:
            self.realize()
        base = lazydata.base
        views = lazydata.st.views
        if base.buffer is not None and len(views) == 1 and views[0].mask is None:
            return exchange.array_over(base.buffer, shape, views[0].strides, views[0].offset), False
        return exchange.array_over(self._read(), shape, row_major, 0), True

    # *** DLPack ***

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns (1, 0), the CPU: all devices here compute in memory that the host reads."""
        return exchange.CPU, 0

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the elements as a DLPack capsule: `torch.from_dlpack(tensor)`, `np.from_dlpack(tensor)`.

        The consumer shares the tensor's memory; a transpose or slice has its strides. The memory lives until both are
        gone. The capsule has no gradient tape.

        Args:
            stream: the consumer's GPU stream; must be None.
            max_version: the newest version that the consumer reads. Versions before 1.0 have no flag for read-only
            memory.
            dl_device: the device that the consumer requests; only the CPU, (1, 0), is possible.
            copy: True for a copy; False raises an error if only a copy is possible.

        Raises:
            BufferError: another device, a stream, a forbidden copy, or read-only memory for a consumer before 1.0.
        """
        if stream is not None:
            raise BufferError(f"__dlpack__(stream={stream!r}): memory of the CPU has no streams; give None")
        if dl_device is not None and tuple(dl_device) != (exchange.CPU, 0):
            raise BufferError(f"__dlpack__(dl_device={dl_device}): only the CPU, (1, 0), is possible")
        array, is_copy = self._view_as_array()
        if copy is False and is_copy:
            raise BufferError(
                f"__dlpack__(copy=False): elements of shape {self.shape} on {self.device} do not lie in one memory "
                "with a stride for each axis; call contiguous().realize() first"
            )
        if copy and not is_copy:
            array, is_copy = array.copy(), True
        return exchange.export_array(array, self.dtype, max_version, is_copy)

    @classmethod
    def from_dlpack(cls, source: Any, /, *, device: str | None = None, copy: bool | None = None) -> Self:
        """Wraps the memory of another package's array: of PyTorch, NumPy, JAX, or any object with `__dlpack__`.

        Row-major memory, its permutations and expanded axes are shared. Other strides are copied. Kernels do not write
        to read-only memory.

        Args:
            source: an object with `__dlpack__` and `__dlpack_device__`, in memory of the CPU.
            device: the device of the Tensor; default: the default device.
            copy: True for a copy; False raises an error if only a copy is possible.

        Raises:
            BufferError: the memory is on a GPU, the element type has no dtype here, or `copy` is False and the
                strides cannot be shared.
        """
        return cls._wrap(exchange.lazydata_from(source, Device.canonicalize(device), copy))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Calls a NumPy function on the values: np.sum(tensor) is np.sum(tensor.numpy())."""
        return function(*_with_arrays(args), **{name: _with_arrays(argument) for name, argument in kwargs.items()})

    def data(self) -> memoryview:
        """Returns the elements as a memoryview of the tensor's shape, not copied."""
        if self.dtype.fmt is None or self.dtype is dtypes.float16:
            raise TypeError(f"Python's memoryview has no {self.dtype.name}: use .numpy(), or .float().data()")
        raw = self._read().memoryview()
        code: Any = self.dtype.fmt
        return raw.cast(code) if raw.nbytes == 0 else raw.cast(code, self._evaluate_shape())

    def tolist(self) -> Any:
        """Returns the values as Python numbers, in nested lists of the tensor's shape."""
        return conversion.nest_numbers(conversion.numbers_of(self._read()), self._evaluate_shape())

    def item(self) -> ConstType:
        """Returns the only element as a Python number."""
        if prod(self._evaluate_shape()) != 1:
            raise ValueError(f"item() of a tensor of shape {self.shape}: it has {self.numel()} elements, not one")
        return conversion.numbers_of(self._read())[0]

    def __bool__(self) -> bool:
        if prod(self._evaluate_shape()) != 1:
            raise TypeError(f"truth of a tensor of shape {self.shape}: use .any() or .all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not dtypes.is_int(self.dtype):
            raise TypeError(f"a tensor of {self.dtype.name} cannot be an index: cast it to an int dtype")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor without axes has no length")
        if isinstance(self.shape[0], UOp):
            raise TypeError(f"the length of a tensor of shape {self.shape} is symbolic: use .shape[0].val")
        return self.shape[0]


def _with_arrays(argument: Any) -> Any:
    """Replaces tensors by NumPy arrays in an argument, also inside tuples and lists."""
    if isinstance(argument, Values):
        return argument.numpy()
    return type(argument)([_with_arrays(item) for item in argument]) if type(argument) in (list, tuple) else argument
