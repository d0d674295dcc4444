"""A queue of kernel launches: a device gets them in order, and the host waits only before it accesses their memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

from tinyexplore.device.allocator import Block

NAMED = 8  # most pending kernels that a message names


class LaunchQueue(ABC):
    """Launches kernels on a device that runs them in this order.

    launched: the number of launched kernels.
    done: the number of kernels that are known to have ended.
    names: the names of the last kernels.
    lock: protects the order of launches.
    """

    def __init__(self) -> None:
        self.launched = self.done = 0
        self.names: deque[str] = deque(maxlen=NAMED)
        self.lock = threading.RLock()

    def launch(self, names: Sequence[str], blocks: Sequence[Block], enqueue: Callable[[], None]) -> None:
        """Calls `enqueue`, which launches the kernels `names`.

        `blocks` is the memory that they use. A host access to it waits until they have ended.
        """
        for block in blocks:
            earlier_wait = block.wait
            if isinstance(earlier_wait, _QueueWait) and earlier_wait.queue is not self:
                earlier_wait()  # another device has its own order
        with self.lock:
            self.launched += len(names)
            self.names.extend(names)
            wait = _QueueWait(self, self.launched)
            for block in blocks:
                block.wait = wait  # before the launch: if an interrupt prevents it, a later wait is merely unnecessary
            enqueue()

    def synchronize(self) -> None:
        """Waits until all launched kernels have ended."""
        with self.lock:
            number, names = self.launched, list(self.names)
            pending = number - self.done
        if pending:
            self.finish(names[-pending:], pending)
            self.done = max(self.done, number)

    @abstractmethod
    def finish(self, names: Sequence[str], pending: int) -> None:
        """Waits for all kernels of the device.

        pending: how many kernels are not known to have ended.
        names: the names of the last of them.
        """


class _QueueWait:
    """Waits for the first `number` kernels of a queue."""

    __slots__ = ("queue", "number")

    def __init__(self, queue: LaunchQueue, number: int) -> None:
        self.queue, self.number = queue, number

    def __call__(self) -> None:
        if self.queue.done < self.number:
            self.queue.synchronize()


__all__ = ["LaunchQueue"]
