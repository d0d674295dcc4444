"""StoredBuffer: values in storage (a file, a NumPy array). They can be viewed and copied, but not computed with.

A copy of a view reads only the elements of the view. Contiguous bytes are copied directly. A kernel of the destination
device copies any other view and reads the storage in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType
from tinyexplore.lazy.lazybuffer import LazyBuffer, Origin, Shape, ShapeError, move_like
from tinyexplore.lazy.sharded import ShardedBuffer
from tinyexplore.uop import OpGroups, Ops


class StorageError(TypeError):
    """Raised for an operation that storage does not support. The message says where to move the tensor."""


class StoredBuffer(LazyBuffer):
    """A LazyBuffer in storage. Its movements are StoredBuffers, too."""

    __slots__ = ()

    @staticmethod
    def of(buffer: Buffer, shape: Shape) -> StoredBuffer:
        """Returns the row-major content of `buffer`."""
        return StoredBuffer(Ops.BUFFER, buffer.dtype, shape, (), None, buffer.device, buffer=buffer)

    # *** unsupported operations ***

    def refuse(self, operation: str) -> NoReturn:
        """Raises StorageError. Every computation ends here."""
        raise StorageError(
            f'{operation} on {self.device}: storage is only viewed and copied; move it first: .to("LLVM")'
        )

    def alu(self, op: Ops, *others: LazyBuffer) -> LazyBuffer:
        self.refuse(op.name)

    def cast(self, dtype: DType) -> LazyBuffer:
        return self if dtype is self.dtype else self.refuse(f"cast to {dtype.name}")

    def reduce(self, op: Ops, axes: Sequence[int]) -> LazyBuffer:
        self.refuse(f"reduction by {op.name}")

    def scan(self, op: Ops, axis: int) -> LazyBuffer:
        self.refuse(f"running {op.name}")

    def gather(self, index: LazyBuffer) -> LazyBuffer:
        self.refuse("gather")

    def contiguous(self) -> LazyBuffer:
        return self

    # *** memory ***

    def run(self) -> Buffer | None:
        """Returns the buffer of the stored elements if they are contiguous in row-major order; else None."""
        buffer = self.base.buffer
        if buffer is None:
            return None
        if self.size == 0:
            return Buffer(self.device, 0, self.dtype, buffer.memory.part(0, 0))
        tracker = self.st.simplify()
        if not tracker.single_view:
            return None
        (view,) = tracker.views
        if view.mask is not None or view.strides != type(view).create(view.shape).strides:
            return None
        size = self.dtype.itemsize
        return Buffer(self.device, self.size, self.dtype, buffer.memory.part(view.offset * size, self.size * size))

    def write(self, content: memoryview) -> None:
        """Overwrites the stored elements with bytes, immediately."""
        run = self.run()
        if run is None:
            raise StorageError(
                f"assign to a view of shape {self.shape} on {self.device} whose elements do not lie in one run: "
                "assign to whole rows, or to the elements one by one"
            )
        if run.is_readonly:
            raise StorageError(f"assign to {self.device}: this memory is read-only")
        run.copyin(content)

    # *** supported operations ***

    def bitcast(self, dtype: DType) -> LazyBuffer:
        """Reinterprets the bytes as another dtype. If the sizes differ, the last axis grows or shrinks."""
        if dtype is self.dtype:
            return self
        last_size, extra_bytes = divmod(self.shape[-1] * self.dtype.itemsize, dtype.itemsize) if self.shape else (0, 1)
        if dtype.itemsize == self.dtype.itemsize:
            last_size, extra_bytes = self.shape[-1] if self.shape else 1, 0
        if extra_bytes:
            raise ShapeError(
                f"bitcast {self.dtype.name} of shape {self.shape} to {dtype.name}: the last axis is not a whole number "
                f"of {dtype.itemsize} bytes"
            )
        run = self.run()
        if run is None:
            self.refuse("bitcast of a view whose elements do not lie in one run")
        shape = (*self.shape[:-1], last_size) if self.shape else ()
        count = run.nbytes // dtype.itemsize
        return StoredBuffer.of(Buffer(self.device, count, dtype, run.memory), shape)

    def copy_to_device(self, device: str) -> LazyBuffer:
        """Returns the values in the memory of `device`. They are read when they are computed."""
        if device == self.device:
            return self
        copy = self._make_copy(device)
        copy.note = Origin.DATA
        return copy

    def _make_copy(self, device: str) -> LazyBuffer:
        if Device.is_group(device):
            return ShardedBuffer.of(self, device, None)
        run = self.run()
        if run is not None:
            buffer_class = StoredBuffer if Device.is_storage(device) else LazyBuffer
            return buffer_class(
                Ops.COPY, self.dtype, self.shape, (StoredBuffer.of(run, self.shape),), self.device, device
            )
        if Device.is_storage(device):
            return self.copy_to_device(Device.DEFAULT).copy_to_device(device)
        base = self.base
        if base.buffer is None:
            assert base.op is Ops.COPY  # a copy to this storage that has not been computed yet
            return self._replay_movements(base.src[0].copy_to_device(device))
        memory = base.buffer.memory
        memory.check_backed()
        if memory.address % self.dtype.itemsize:
            return self._replay_movements(base.copy_to_device(device))
        in_place = Buffer(device, base.size, self.dtype, memory.part(0, memory.nbytes, readonly=True))
        return self._replay_movements(LazyBuffer.from_buffer(in_place, base.shape)).contiguous()

    def _replay_movements(self, start: LazyBuffer) -> LazyBuffer:
        """Applies the movements between the base and this view to `start`."""
        steps: list[LazyBuffer] = []
        node: LazyBuffer = self
        while node.op in OpGroups.MOVEMENT and node.buffer is None:
            steps.append(node)
            node = node.src[0]
        for step in reversed(steps):
            start = move_like(start, step)
        return start


LazyBuffer.stored = StoredBuffer
