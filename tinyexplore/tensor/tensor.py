"""Tensor: the class that users write with.

Its methods stand in the modules beside this one, in mixins by subject: each is a base of Tensor and of nothing else,
has no base itself, and no two have a method of the same name. What holds the value is `Base`. A mixin's methods say
`self: Tensor`, so that they may call what any other has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ContextDecorator
from functools import cache
from math import prod
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tinyexplore.autograd import GRADIENTS, Step, assigned_gradient
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import ConstType, ImageDType, dtypes, to_dtype
from tinyexplore.lazy import LazyBuffer, Origin, ShardedBuffer, StoredBuffer, laid_out_as
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor import data as conversion
from tinyexplore.tensor.arithmetic import Arithmetic, broadcast_shape
from tinyexplore.tensor.base import Base, DTypeLike, Shape
from tinyexplore.tensor.changes import note_change, refuse_gradient_of_part, shows_a_part, with_part
from tinyexplore.tensor.checks import need_tensor
from tinyexplore.tensor.creation import Creation
from tinyexplore.tensor.errors import OperandError
from tinyexplore.tensor.functions import Functions
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.kept import KeptViews
from tinyexplore.tensor.linalg import LinearAlgebra
from tinyexplore.tensor.loss import Loss
from tinyexplore.tensor.movement import Movement
from tinyexplore.tensor.operators import NamedCasts, Operators
from tinyexplore.tensor.ordering import Ordering
from tinyexplore.tensor.pooling import Pooling
from tinyexplore.tensor.processing import Processing
from tinyexplore.tensor.reduction import Reduction
from tinyexplore.tensor.resampling import Resampling
from tinyexplore.tensor.scattering import Scattering
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import value_of
from tinyexplore.util import GlobalCounters
from tinyexplore.util.at_once import at_once
from tinyexplore.util.interpreter import Findable

if TYPE_CHECKING:
    import numpy as np

_new = Findable.__new__


@cache
def _engine() -> Any:
    """The engine, imported when something is first computed: `import tinyexplore` is quick."""
    from tinyexplore import engine  # noqa: PLC0415 (start-up: see above)

    return engine


class Tensor(
    Base,
    Movement,
    Arithmetic,
    Functions,
    Reduction,
    Pooling,
    Processing,
    Loss,
    Indexing,
    Resampling,
    Scattering,
    Ordering,
    LinearAlgebra,
    Creation,
    NamedCasts,
    Operators,
):
    """An array of numbers on a device, computed when somebody looks at it.

    `data`: a number, nested lists, bytes, a NumPy array (row-major ones are not copied), another Tensor, or the
    pathlib.Path of a file, whose bytes are read when they are needed (on the device `DISK:path` unless told otherwise).
    """

    __slots__ = ()
    __array_priority__: ClassVar[int] = 100  # NumPy leaves array (op) Tensor to us

    def __init__(
        self,
        data: Any,
        device: str | Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        self._ctx = self._root = None
        self.grad = None
        self.requires_grad = requires_grad
        target = None if dtype is None else to_dtype(dtype)
        if isinstance(data, Tensor):
            data = data.lazydata.detached()
        if isinstance(data, PurePath):
            data, target = conversion.file_elements(data, target or dtypes.uint8), None
        if isinstance(data, LazyBuffer):
            lazydata = data if target is None else data.cast(target)
            self.lazydata = lazydata if device is None else lazydata.copy_to_device(Device.canonicalize(device))
        else:
            self.lazydata = conversion.lazydata_of(data, target, Device.canonicalize(device))
            self.lazydata.note = Origin.DATA
        if isinstance(dtype, ImageDType):
            self.lazydata = self.cast(dtype).lazydata

    @staticmethod
    def _wrap(lazydata: LazyBuffer) -> Tensor:
        result: Tensor = _new(Tensor)
        result.lazydata = lazydata
        result.requires_grad = None
        result.grad = None
        result._ctx = None
        result._root = None
        return result

    @classmethod
    def from_node(cls, y: int | UOp, **kwargs: Any) -> Tensor:
        """A size, symbolic or not, as a tensor without axes."""
        return cls(y, **kwargs)

    def __repr__(self) -> str:
        state = "realized" if self.lazydata.is_realized else f"lazy {self.lazydata.op.name}"
        asked = ", requires_grad" if self.requires_grad else ""
        return f"<Tensor {self.shape} {self.dtype.name} on {self.device}, {state}{asked}>"

    # *** computing ***

    def realize(self, *others: Tensor, do_update_stats: bool = True) -> Tensor:
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

    def schedule(self, *others: Tensor) -> list[Any]:
        """The kernels that computing this tensor (and the others) takes, in order; nothing runs."""
        return list(_engine().schedule([tensor.lazydata for tensor in (self, *others)]))

    def schedule_with_vars(self, *others: Tensor) -> tuple[list[Any], dict[UOp, int]]:
        """`schedule`, and what the Variables in it are bound to."""
        items = self.schedule(*others)
        return items, {variable: value for item in items for variable, value in item.bound.items()}

    # *** looking at it ***

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

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("a tensor without axes cannot be iterated over: use .item()")
        return (self[place] for place in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool(self.eq(value).any().item())

    # *** changing it ***

    def assign(self, x: Any) -> Tensor:
        """This tensor takes over the value of `x`, of its dtype and device, and of a shape that expands to its own.

        What was computed from tensors that require a gradient loses its way back to them: backward() says so.
        A view of a part (a slice) writes it there: the tensor that it is a view of takes over itself with that part,
        stored in its place unless somebody still has the old value.
        One that lies in storage (on DISK, say) is written there, now, whatever device `x` is on.
        """
        stored = isinstance(self.lazydata, StoredBuffer)
        if not isinstance(x, Tensor):
            x = Tensor(x, device=None if stored else self.device, dtype=self.dtype)
        if x.shape != self.shape:
            if broadcast_shape("assign", self.shape, x.shape) != self.shape:
                raise ShapeError(
                    f"assign a tensor of shape {x.shape} to one of shape {self.shape}: it must expand to it"
                )
            x = x._broadcast_to(self.shape)
        if x.dtype is not self.dtype:
            raise OperandError(f"assign a tensor of {x.dtype.name} to one of {self.dtype.name}: cast it first")
        if isinstance(self.lazydata, StoredBuffer):
            if self.lazydata.base.buffer is None:  # on its way there
                _engine().realize([self.lazydata.base])
            self.lazydata.write(x._read().memoryview())
            return self
        if x.device != self.device:
            raise ValueError(f"assign a tensor on {x.device} to one on {self.device}: move it with .to()")
        value = laid_out_as(x.lazydata, self.lazydata)
        root = None if self._root is None else self._root()
        if root is not None and shows_a_part(self.lazydata):
            refuse_gradient_of_part(root, x)
            KeptViews.warn_of(root, self.lazydata, self, x)
            whole = laid_out_as(with_part(self.lazydata, root.lazydata, value), root.lazydata)
            note_change(root, in_part=True)
            note_change(self)
            at_once((), (root, self), "lazydata", (whole, value))
            if root._ctx is not None:
                root._ctx = Step(assigned_gradient, (), (), whole)
        else:
            note_change(self)
            self.lazydata = value
        if self._ctx is not None:
            self._ctx = Step(assigned_gradient, (), (), value)
        return self

    def replace(self, x: Tensor) -> Tensor:
        """This tensor becomes what `x` is, of the same shape, off the tape."""
        need_tensor(x, "replace: what it becomes")
        if x.shape != self.shape:
            raise ShapeError(f"replace a tensor of shape {self.shape} by one of shape {x.shape}: they must be equal")
        note_change(self)
        self.lazydata = x.lazydata
        self._ctx = None
        return self

    def clone(self, device: str | None = None) -> Tensor:
        """A copy of its own, there or on this tensor's device, on the tape."""
        if device is not None and Device.canonicalize(device) != self.device:
            return self.to(device)
        return self._taped(self.lazydata.packed(), GRADIENTS[Ops.CONTIGUOUS], (self,), None)

    # *** modes ***

    class train(ContextDecorator):
        """`with Tensor.train():` dropout drops and batch statistics are kept, inside the block."""

        def __init__(self, mode: bool = True) -> None:
            self.mode = mode
            self.before: list[bool] = []

        def __enter__(self) -> None:
            self.before.append(Tensor.training)
            Tensor.training = self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.training = self.before.pop()

    class inference_mode(ContextDecorator):
        """`with Tensor.inference_mode():` nothing is taped inside the block."""

        def __init__(self, mode: bool = True) -> None:
            self.mode = mode
            self.before: list[bool] = []

        def __enter__(self) -> None:
            self.before.append(Tensor.no_grad)
            Tensor.no_grad = self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.no_grad = self.before.pop()

    class test(inference_mode):
        """`with Tensor.test():` nothing is taped inside the block, and nothing drops out."""

        def __enter__(self) -> None:
            super().__enter__()
            self.before.append(Tensor.training)
            Tensor.training = Tensor.training and not self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.training = self.before.pop()
            super().__exit__(*error)


def _with_arrays(given: Any) -> Any:
    """Arguments, nested in tuples and lists, with tensors as arrays."""
    if isinstance(given, Tensor):
        return given.numpy()
    return type(given)([_with_arrays(part) for part in given]) if type(given) in (list, tuple) else given


for _mixin in Tensor.__bases__:
    for _method in vars(_mixin).values():  # a signature shows `self` as any other class's does
        getattr(_method, "__annotations__", {}).pop("self", None)
