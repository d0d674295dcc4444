"""Values on the tape: gradient rules compute with them if their results are to be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tinyexplore.autograd.indexing import take_elements, take_gradient
from tinyexplore.autograd.rules import GRADIENTS, REDUCE_GRADIENTS, stationary_gradient
from tinyexplore.autograd.scans import cumprod_gradient, cumsum_gradient, recurrence_gradient
from tinyexplore.autograd.tape import GradientRule, TapeEntry, TapeTensor
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import Shape
from tinyexplore.uop import Ops
from tinyexplore.util.interpreter import TrackedObject


class TapedBuffer(TrackedObject):
    """A LazyBuffer and, if its gradient is needed, the step that computed it.

    It has the methods of LazyBuffers that rules use, with the same arguments, so that a rule works on both.
    """

    __slots__ = ("lazydata", "requires_grad", "_ctx", "__weakref__")
    lazydata: LazyBuffer
    requires_grad: bool | None
    _ctx: TapeEntry | None

    def __init__(self, lazydata: LazyBuffer, step: TapeEntry | None = None) -> None:
        self.lazydata = lazydata
        self.requires_grad = step is not None
        self._ctx = step

    def __repr__(self) -> str:
        return f"TapedBuffer({self.lazydata}, {self._ctx})"

    @staticmethod
    def of(tensor: TapeTensor, value: LazyBuffer) -> TapedBuffer:
        """Returns `value`, which `tensor` had when it was used, on the tape."""
        if not tensor.requires_grad:
            return TapedBuffer(value)
        step = tensor._ctx
        if step is not None and step.rule is stationary_gradient:
            tensor = step.arg
        return TapedBuffer(value, TapeEntry(same_gradient, (tensor,), (value,), value))

    def wrap_like(self, value: LazyBuffer) -> TapedBuffer:
        """Returns `value`, which has no gradient, as a TapedBuffer."""
        return value if isinstance(value, TapedBuffer) else TapedBuffer(value)

    def _wrap(
        self, lazydata: LazyBuffer, rule: GradientRule | None, others: tuple[Any, ...] = (), arg: Any = None
    ) -> TapedBuffer:
        """Wraps `lazydata`, which `rule` differentiates with respect to this and `others`. Returns this if nothing
        was done."""
        if lazydata is self.lazydata:
            return self
        inputs = (self, *[self.wrap_like(other) for other in others])
        if rule is None or not dtypes.is_float(lazydata.dtype) or not any([tensor.requires_grad for tensor in inputs]):
            return TapedBuffer(lazydata)
        return TapedBuffer(
            lazydata, TapeEntry(rule, inputs, tuple([tensor.lazydata for tensor in inputs]), lazydata, arg)
        )

    # *** the methods of LazyBuffer that rules use ***

    @property
    def shape(self) -> Shape:
        return self.lazydata.shape

    @property
    def dtype(self) -> DType:
        return self.lazydata.dtype

    @property
    def device(self) -> str:
        return self.lazydata.device

    def alu(self, op: Ops, *others: Any) -> TapedBuffer:
        return self._wrap(self.lazydata.alu(op, *[plain(other) for other in others]), GRADIENTS.get(op), others)

    def cast(self, dtype: DType) -> TapedBuffer:
        return self._wrap(self.lazydata.cast(dtype), GRADIENTS[Ops.CAST])

    def reduce(self, op: Ops, axes: Sequence[int]) -> TapedBuffer:
        return self._wrap(self.lazydata.reduce(op, axes), REDUCE_GRADIENTS[op], (), tuple(axes))

    def scan(self, op: Ops, axis: int) -> TapedBuffer:
        rule = {Ops.ADD: cumsum_gradient, Ops.MUL: cumprod_gradient}[op]
        return self._wrap(self.lazydata.scan(op, axis), rule, (), axis)

    def recurrence(self, factor: Any, axis: int) -> TapedBuffer:
        return self._wrap(self.lazydata.recurrence(plain(factor), axis), recurrence_gradient, (factor,), axis)

    def gather(self, index: Any) -> TapedBuffer:
        return self._wrap(self.lazydata.gather(plain(index)), GRADIENTS[Ops.GATHER], (), plain(index))

    def take_elements(self, axis: int, index: Any) -> TapedBuffer:
        """Calls `indexing.take_elements` as one step, whose gradient is a scatter."""
        indices = plain(index)
        return self._wrap(take_elements(self.lazydata, axis, indices), take_gradient, (), (axis, indices))

    def scatter(self, op: Ops | None, axis: int, index: Any, values: Any) -> TapedBuffer:
        indices = plain(index)
        scattered = self.lazydata.scatter(op, axis, indices, plain(values))
        return self._wrap(scattered, GRADIENTS[Ops.SCATTER], (values,), (op, axis, indices))

    def contiguous(self) -> TapedBuffer:
        return self._wrap(self.lazydata.contiguous(), GRADIENTS[Ops.CONTIGUOUS])

    def copy_to_device(self, device: str) -> TapedBuffer:
        return self._wrap(self.lazydata.copy_to_device(device), GRADIENTS[Ops.COPY])

    # *** movements ***

    def _wrap_movement(self, op: Ops, lazydata: LazyBuffer) -> TapedBuffer:
        return self._wrap(lazydata, GRADIENTS[op], (), lazydata.arg)

    def reshape(self, shape: Shape) -> TapedBuffer:
        return self._wrap_movement(Ops.RESHAPE, self.lazydata.reshape(shape))

    def expand(self, shape: Shape) -> TapedBuffer:
        return self._wrap_movement(Ops.EXPAND, self.lazydata.expand(shape))

    def permute(self, order: Sequence[int]) -> TapedBuffer:
        return self._wrap_movement(Ops.PERMUTE, self.lazydata.permute(order))

    def pad(self, amounts: Sequence[tuple[Any, Any]]) -> TapedBuffer:
        return self._wrap_movement(Ops.PAD, self.lazydata.pad(amounts))

    def shrink(self, bounds: Sequence[tuple[Any, Any]]) -> TapedBuffer:
        return self._wrap_movement(Ops.SHRINK, self.lazydata.shrink(bounds))

    def flip(self, axes: Sequence[int]) -> TapedBuffer:
        return self._wrap_movement(Ops.FLIP, self.lazydata.flip(axes))

    def window(self, axis: int, size: Any, stride: int = 1, dilation: int = 1) -> TapedBuffer:
        return self._wrap_movement(Ops.WINDOW, self.lazydata.window(axis, size, stride, dilation))

    def diagonal(self, first: int, second: int) -> TapedBuffer:
        return self._wrap_movement(Ops.DIAGONAL, self.lazydata.diagonal(first, second))


def plain(value: Any) -> LazyBuffer:
    """Returns the LazyBuffer in `value`, or `value` itself."""
    return value.lazydata if isinstance(value, TapedBuffer) else cast(LazyBuffer, value)


def same_gradient(step: TapeEntry, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """y = x: dx = g"""
    return (g,)
