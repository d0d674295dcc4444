"""The tape: records the inputs of each operation, and is walked backwards to compute gradients.

The tensors hold it (`_ctx`), not the LazyBuffers, which drop their sources when they are realized. So a loss may be
read before it is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops


class TapeTensor(Protocol):
    """The attributes of a tensor that the tape uses."""

    lazydata: LazyBuffer
    requires_grad: bool | None
    _ctx: TapeEntry | None


class TapeEntry:
    """One operation on the tape: `result` was computed from `inputs`, whose values then were `sources`.

    The entry stores `sources`, too, because an input may have been assigned to since.
    """

    __slots__ = ("rule", "inputs", "sources", "result", "arg")

    def __init__(
        self,
        rule: GradientRule,
        inputs: tuple[Any, ...],
        sources: tuple[LazyBuffer, ...],
        result: LazyBuffer,
        arg: Any = None,
    ) -> None:
        self.rule = rule
        self.inputs = inputs
        self.sources = sources
        self.result = result
        self.arg = arg

    def __repr__(self) -> str:
        return f"Step({self.rule.__name__}, {', '.join(str(lb.shape) for lb in self.sources)} → {self.result.shape})"

    def needs(self, position: int) -> bool:
        """Whether the gradient of input number `position` will be read."""
        return bool(self.inputs[position].requires_grad)


def wrap_like(like: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """Returns `value`, which has no gradient, in the form of `like`: on the tape if `like` is.

    If `like` is a `TapedBuffer`, all other operands must be, too.
    """
    return value if isinstance(like, LazyBuffer) else cast(Any, like).wrap_like(value)


GradientRule = Callable[[TapeEntry, LazyBuffer], "tuple[LazyBuffer | None, ...]"]
"""(step, gradient of its result) → gradient of each input; None if there is none or it is not needed."""


def taped_order(root: TapeTensor) -> list[TapeTensor]:
    """Returns the tensors that `root` was computed from, and `root`, each after its inputs."""
    order: list[TapeTensor] = []
    visited_ids: set[int] = set()  # by identity, because tensors compare element by element
    stack: list[TapeTensor | None] = [root]  # None, then a tensor: all inputs of the tensor have been walked
    while stack:
        tensor = stack.pop()
        if tensor is None:
            order.append(cast(TapeTensor, stack.pop()))
            continue
        if id(tensor) in visited_ids:
            continue
        visited_ids.add(id(tensor))
        step = tensor._ctx
        if step is None:
            order.append(tensor)
            continue
        stack += (tensor, None)
        for source in reversed(step.inputs):
            if source.requires_grad and id(source) not in visited_ids:
                stack.append(source)
    return order


def gradients(root: TapeTensor, seed: LazyBuffer) -> list[tuple[TapeTensor, LazyBuffer]]:
    """Returns every tensor that `root` depends on and that requires a gradient, with the gradient d(root · seed) /
    d(tensor).

    They are in the order of their use, last first. Tensors that no gradient reaches are left out.
    """
    gradients_of: dict[int, LazyBuffer] = {id(root): seed}
    reached: list[tuple[TapeTensor, LazyBuffer]] = []
    for tensor in reversed(taped_order(root)):
        gradient = gradients_of.pop(id(tensor), None)
        if gradient is None:
            continue
        reached.append((tensor, gradient))
        if (step := tensor._ctx) is None:
            continue
        for source, source_gradient in zip(step.inputs, step.rule(step, gradient)):
            if source_gradient is None or not source.requires_grad:
                continue
            previous = gradients_of.get(id(source))
            gradients_of[id(source)] = source_gradient if previous is None else previous.alu(Ops.ADD, source_gradient)
    return reached
