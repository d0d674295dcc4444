"""The tape: records the inputs of each operation, and is walked backwards to compute gradients.

It hangs on the tensors themselves (`_ctx`), not on the LazyBuffers: those forget their sources when they are realized,
so a loss may be read before it is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops


class Taped(Protocol):
    """The attributes of a tensor that the tape uses."""

    lazydata: LazyBuffer
    requires_grad: bool | None
    _ctx: TapeEntry | None


class TapeEntry:
    """One operation on the tape: `result` was made from `inputs`, whose values then were `sources`.

    `sources` is kept beside `inputs`, because an input may have been assigned to since.
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
        """True where the gradient of that input will be read."""
        return bool(self.inputs[position].requires_grad)


def beside(like: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """`made`, which no gradient flows to, as a rule that computes with `like` needs it: on the tape if that is there.

    Then `like` is a `TapedBuffer`, and so must be whatever a method of it is not called on, but given to.
    """
    return value if isinstance(like, LazyBuffer) else cast(Any, like).beside(value)


GradientRule = Callable[[TapeEntry, LazyBuffer], "tuple[LazyBuffer | None, ...]"]
"""(step, gradient of its result) → gradient of each input; None where there is none or it is not needed."""


def taped_order(root: Taped) -> list[Taped]:
    """Lists the tensors that `root` was computed from, and `root`, each after its inputs."""
    order: list[Taped] = []
    seen: set[int] = set()  # by identity: tensors compare element by element
    stack: list[Taped | None] = [root]  # after None stands what all inputs have been walked of
    while stack:
        tensor = stack.pop()
        if tensor is None:
            order.append(cast(Taped, stack.pop()))
            continue
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        step = tensor._ctx
        if step is None:
            order.append(tensor)
            continue
        stack += (tensor, None)
        for source in reversed(step.inputs):
            if source.requires_grad and id(source) not in seen:
                stack.append(source)
    return order


def gradients(root: Taped, seed: LazyBuffer) -> list[tuple[Taped, LazyBuffer]]:
    """Every tensor that `root` depends on and that requires a gradient, with the gradient: d(root · seed) / d(tensor).

    In the order in which they were used, last first. A tensor that no gradient reaches is left out.
    """
    gradients_of: dict[int, LazyBuffer] = {id(root): seed}
    reached: list[tuple[Taped, LazyBuffer]] = []
    for tensor in reversed(taped_order(root)):
        gradient = gradients_of.pop(id(tensor), None)
        if gradient is None:
            continue
        reached.append((tensor, gradient))
        if (step := tensor._ctx) is None:
            continue
        for source, part in zip(step.inputs, step.rule(step, gradient)):
            if part is None or not source.requires_grad:
                continue
            previous = gradients_of.get(id(source))
            gradients_of[id(source)] = part if previous is None else previous.alu(Ops.ADD, part)
    return reached
