"""Computing a tensor, and its values as Python, NumPy and C have them."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import ConstType, dtypes
from tinyexplore.lazy import ShardedBuffer, StoredBuffer
from tinyexplore.tensor import data as conversion
from tinyexplore.tensor.base import Base, Shape
from tinyexplore.tensor.checks import need_tensor
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import value_of
from tinyexplore.util import GlobalCounters

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Self


@cache
def _engine() -> Any:
    """The engine, imported when something is first computed: `import tinyexplore` is quick."""
    from tinyexplore import engine  # noqa: PLC0415 (start-up: see above)

    return engine


class Values(Base):
    __slots__ = ()

    # *** computing ***

    def realize(self, *others: Self, do_update_stats: bool = True) -> Self:
        """Computes this tensor (and the others, together) into memory; of a view that was assigned to, the tensor that
        it is a view of as well.

        `do_update_stats=False`: what runs is not counted in `GlobalCounters`.
        """
        for other in others:
            need_tensor(other, "realize: one of the others")
        found = [self.lazydata, *[tensor.lazydata for tensor in others]] if others else [self.lazydata]
        if self._root is not None or others:
            for tensor in (self, *others):
                root = None if tensor._root is None else tensor._root()
                if root is not None and getattr(tensor, "was_changed", False):
                    found.append(root.lazydata)
        if do_update_stats:
            _engine().realize(found)
        else:
            with GlobalCounters.paused():
                _engine().realize(found)
        return self

    def schedule(self, *others: Self) -> list[Any]:
        """The kernels that computing this tensor (and the others) takes, in order; nothing runs."""
        return list(_engine().schedule([tensor.lazydata for tensor in (self, *others)]))

    def schedule_with_vars(self, *others: Self) -> tuple[list[Any], dict[UOp, int]]:
        """`schedule`, and what the Variables in it are bound to."""
        items = self.schedule(*others)
        return items, {variable: value for item in items for variable, value in item.bound.items()}

    def _read(self) -> Buffer:
        lazydata = self.lazydata
        if isinstance(lazydata, StoredBuffer):
            found = lazydata.run()
            if found is not None:
                return found
            lazydata = lazydata.copy_to_device(Device.DEFAULT)
        if isinstance(lazydata, ShardedBuffer):
            lazydata = lazydata.copy_to_device(lazydata.devices[0])
        buffer: Buffer = _engine().read(lazydata)
        return buffer

    def _store(self) -> None:
        """Computes what is on its way to storage."""
        _engine().realize([self.lazydata.base])

    def _shape_now(self) -> Shape:
        """The shape in ints: Variables at what they are bound to. SymbolicError where one is not."""
        return tuple([value_of(size) for size in self.shape])

    def numpy(self) -> np.ndarray:
        """A copy as a NumPy array (bfloat16 as float32)."""
        return conversion.array_of(self._read(), self._shape_now())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What a function of NumPy gives for the values: np.sum(tensor) is np.sum(tensor.numpy())."""
        return function(*_with_arrays(args), **{name: _with_arrays(given) for name, given in kwargs.items()})

    def data(self) -> memoryview:
        """The elements as a memoryview of the tensor's shape, not copied."""
        if self.dtype.fmt is None or self.dtype is dtypes.float16:
            raise TypeError(f"Python's memoryview has no {self.dtype.name}: use .numpy(), or .float().data()")
        raw = self._read().memoryview()
        code: Any = self.dtype.fmt
        return raw.cast(code) if raw.nbytes == 0 else raw.cast(code, self._shape_now())

    def tolist(self) -> Any:
        """Python numbers, in nested lists of the tensor's shape."""
        return conversion.nested(conversion.numbers_of(self._read()), self._shape_now())

    def item(self) -> ConstType:
        """The one element as a Python number."""
        if prod(self._shape_now()) != 1:
            raise ValueError(f"item() of a tensor of shape {self.shape}: it has {self.numel()} elements, not one")
        return conversion.numbers_of(self._read())[0]

    def __bool__(self) -> bool:
        if prod(self._shape_now()) != 1:
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
            raise TypeError(f"the length of a tensor of shape {self.shape} is symbolic: ask for its .shape[0].val")
        return self.shape[0]


def _with_arrays(given: Any) -> Any:
    """Arguments, nested in tuples and lists, with tensors as arrays."""
    if isinstance(given, Values):
        return given.numpy()
    return type(given)([_with_arrays(part) for part in given]) if type(given) in (list, tuple) else given
