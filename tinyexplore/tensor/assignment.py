"""Assignment: replaces the value of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.autograd import GRADIENTS, TapeEntry, assigned_gradient
from tinyexplore.device import Device
from tinyexplore.lazy import StoredBuffer, laid_out_as
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import Arithmetic, broadcast_shape
from tinyexplore.tensor.change_log import note_change, refuse_gradient_of_part, shows_a_part, with_part
from tinyexplore.tensor.checks import need_tensor
from tinyexplore.tensor.errors import OperandError
from tinyexplore.tensor.stale_views import StaleViews
from tinyexplore.tensor.values import Values
from tinyexplore.uop import Ops
from tinyexplore.util.uninterrupted import run_uninterrupted

if TYPE_CHECKING:
    from typing_extensions import Self


class Assignment(Arithmetic, Values):
    __slots__ = ()

    def assign(self, x: Any) -> Self:
        """Replaces the value of this tensor by `x`, which must have its dtype and device, and a shape that expands to
        its shape.

        The tensor loses its connection to tensors that require a gradient: a later backward() raises.
        If this tensor is a view of a part of another tensor (a slice), the other tensor changes too: the part is
        written into it.
        The part is stored in place unless the old value is still referenced.
        If this tensor lies in storage (on DISK, for example), the value is written immediately. `x` may then be on any
        device.
        """
        stored = isinstance(self.lazydata, StoredBuffer)
        if not self._is_tensor(x):
            x = type(self)(x, device=None if stored else self.device, dtype=self.dtype)
        if x.shape != self.shape:
            if broadcast_shape("assign", self.shape, x.shape) != self.shape:
                raise ShapeError(
                    f"assign a tensor of shape {x.shape} to one of shape {self.shape}: it must expand to it"
                )
            x = x._broadcast_to(self.shape)
        if x.dtype is not self.dtype:
            raise OperandError(f"assign a tensor of {x.dtype.name} to one of {self.dtype.name}: cast it first")
        if isinstance(self.lazydata, StoredBuffer):
            if self.lazydata.base.buffer is None:  # a copy to storage is pending
                self._store()
            self.lazydata.write(x._read().memoryview())
            return self
        if x.device != self.device:
            raise ValueError(f"assign a tensor on {x.device} to one on {self.device}: move it with .to()")
        value = laid_out_as(x.lazydata, self.lazydata)
        root = None if self._root is None else self._root()
        if root is not None and shows_a_part(self.lazydata):
            refuse_gradient_of_part(root, x)
            StaleViews.warn_of(root, self.lazydata, self, x)
            root_value = laid_out_as(with_part(self.lazydata, root.lazydata, value), root.lazydata)
            note_change(root, in_part=True)
            note_change(self)
            run_uninterrupted((), (root, self), "lazydata", (root_value, value))
            if root._ctx is not None:
                root._ctx = TapeEntry(assigned_gradient, (), (), root_value)
        else:
            note_change(self)
            self.lazydata = value
        if self._ctx is not None:
            self._ctx = TapeEntry(assigned_gradient, (), (), value)
        return self

    def replace(self, x: Self) -> Self:
        """Replaces the value of this tensor by the value of `x`, which has the same shape. The result is not on the
        tape."""
        need_tensor(x, "replace: what it becomes")
        if x.shape != self.shape:
            raise ShapeError(f"replace a tensor of shape {self.shape} by one of shape {x.shape}: they must be equal")
        note_change(self)
        self.lazydata = x.lazydata
        self._ctx = None
        return self

    def clone(self, device: str | None = None) -> Self:
        """Returns a copy in separate memory, on `device` or on this tensor's device. The copy is on the tape."""
        if device is not None and Device.canonicalize(device) != self.device:
            return self.to(device)
        return self._put_on_tape(self.lazydata.packed(), GRADIENTS[Ops.CONTIGUOUS], (self,), None)
