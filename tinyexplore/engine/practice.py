"""A kernel for practice: what lowering does once in a process is done while the device's threads are being made."""

from __future__ import annotations

from contextlib import suppress
from contextvars import Context as EmptyContext

from tinyexplore.codegen import bytes_moved, flop_count
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine.compile import lowered, start_compilers
from tinyexplore.engine.lowered import lowering_key
from tinyexplore.kernel import Kernel, hand_coded
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import create_schedule
from tinyexplore.uop import Ops
from tinyexplore.util.interpreter import collect_now, collecting_later

SIZE = 16  # of the matrices: one vector wide, so that there are few copies to make


def practise(device: str) -> None:
    """Schedules, lowers and renders a product of small matrices, which is neither compiled nor kept nor told of.

    Rules look for their matching functions then, tables of rules for those that fit a node, and the interpreter sees
    how its instructions are used: 1 to 2 ms of the first kernel, whichever that is. Threads that compile are started.
    What goes wrong here goes wrong there again, and is told there.
    """

    def whole_way() -> None:
        for item in create_schedule([_product(device)]):
            assert item.ast is not None
            kernel = hand_coded(Kernel.of(item.ast, Device[device].target))
            lowering_key(device, item.ast)
            lowered(device, kernel)
            flop_count(kernel.original), bytes_moved(kernel.original)

    with suppress(Exception):
        start_compilers()
        with collecting_later():
            EmptyContext().run(whole_way)  # nobody listens there, and options are the process's own
            collect_now()


def _product(device: str) -> LazyBuffer:
    """A matrix times a matrix in buffers that have no memory."""
    size, cube = SIZE, (SIZE, SIZE, SIZE)
    x, y = [LazyBuffer.from_buffer(Buffer(device, size * size, dtypes.float32), (size, size)) for _ in range(2)]
    rows = x.reshape((size, 1, size)).expand(cube)
    columns = y.permute((1, 0)).reshape((1, size, size)).expand(cube)
    return rows.alu(Ops.MUL, columns).reduce(Ops.ADD, (2,)).reshape((size, size))


__all__ = ["practise"]
