"""Kernels that a device gets one after the other, and that nobody waits for before he looks at their memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

from tinyexplore.device.allocator import Block

NAMED = 8  # kernels that a message names, of those that were launched and not waited for


class LaunchQueue(ABC):
    """A device that runs kernels in the order in which it gets them.

    launched: how many it got; done: how many of these are known to have ended; names: of the last of them. lock: of the
    order of launches.
    """

    def __init__(self) -> None:
        self.launched = self.done = 0
        self.names: deque[str] = deque(maxlen=NAMED)
        self.lock = threading.RLock()

    def launch(self, names: Sequence[str], blocks: Sequence[Block], enqueue: Callable[[], None]) -> None:
        """`enqueue` gives the device kernels of these `names`; they work in `blocks`, which a host leaves alone until
        they have ended."""
        for block in blocks:
            other = block.wait
            if isinstance(other, _Wait) and other.queue is not self:
                other()  # another device keeps an order of its own
        with self.lock:
            self.launched += len(names)
            self.names.extend(names)
            wait = _Wait(self, self.launched)
            for block in blocks:
                block.wait = wait  # before the launch: whoever is interrupted here waits in vain, and that is all
            enqueue()

    def synchronize(self) -> None:
        """Returns when all that was launched has ended."""
        with self.lock:
            number, names = self.launched, list(self.names)
            pending = number - self.done
        if pending:
            self.finish(names[-pending:], pending)
            self.done = max(self.done, number)

    @abstractmethod
    def finish(self, names: Sequence[str], pending: int) -> None:
        """Waits for all that the device got. `pending` kernels are not known to have ended, the last of them these."""


class _Wait:
    """Waits for the first `number` kernels that a device got."""

    __slots__ = ("queue", "number")

    def __init__(self, queue: LaunchQueue, number: int) -> None:
        self.queue, self.number = queue, number

    def __call__(self) -> None:
        if self.queue.done < self.number:
            self.queue.synchronize()


__all__ = ["LaunchQueue"]
