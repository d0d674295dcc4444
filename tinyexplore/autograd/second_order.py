"""Gradients of gradients: repeats the walk back over the tape when needed, and records the repetition on the tape.

Before that, a gradient only references its walk. So the first walk costs no more than without this feature, and
gradients that are not differentiated again are never built twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from weakref import ref

from tinyexplore.autograd.tape import TapeEntry, TapeTensor
from tinyexplore.autograd.taped_buffer import TapedBuffer, same_gradient
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops


class BackwardPass:
    """The record of one call of `gradients`: the tensors `reached`, and the gradient `seed` of the root.

    A second walk uses the gradients of the first walk that still exist. If nothing was computed, these are all.
    """

    def __init__(self, reached: Sequence[tuple[TapeTensor, LazyBuffer]], seed: TapedBuffer) -> None:
        self._trail = [(tensor, tensor._ctx, ref(gradient)) for tensor, gradient in reached]
        self._seed = seed
        self._found: dict[int, TapedBuffer] = {}

    def gradient_of(self, target: TapeTensor) -> TapedBuffer:
        """Returns the gradient of `target` on its own tape: gradients can flow through it."""
        if not self._found:
            self._found = self._repeat_steps()
        return self._found[id(target)]

    def _repeat_steps(self) -> dict[int, TapedBuffer]:
        rebuilt: dict[int, TapedBuffer] = {id(self._trail[0][0]): self._seed}
        for tensor, step, rebuilt_source in self._trail:
            gradient, value = rebuilt[id(tensor)], rebuilt_source()
            if value is not None:
                gradient = rebuilt[id(tensor)] = TapedBuffer(value, gradient._ctx)
            if step is None:
                continue
            for source, source_gradient in zip(
                step.inputs, step.rule(_record_step(tensor, step), cast(LazyBuffer, gradient))
            ):
                if source_gradient is None or not source.requires_grad:
                    continue
                new, previous_gradient = gradient.wrap_like(source_gradient), rebuilt.get(id(source))
                rebuilt[id(source)] = new if previous_gradient is None else previous_gradient.alu(Ops.ADD, new)
        return rebuilt


def _record_step(result: TapeTensor, step: TapeEntry) -> TapeEntry:
    """Returns `step`, which made `result`, with all values on the tape."""
    sources: Any = tuple([TapedBuffer.of(tensor, value) for tensor, value in zip(step.inputs, step.sources)])
    value: Any = TapedBuffer.of(result, step.result)
    return TapeEntry(step.rule, step.inputs, sources, value, _with_buffers(step.arg))


def _with_buffers(arg: Any) -> Any:
    """Returns the argument of a step with each LazyBuffer (an index, for example) replaced by a TapedBuffer."""
    if isinstance(arg, LazyBuffer):
        return TapedBuffer(arg)
    return tuple([_with_buffers(item) for item in arg]) if type(arg) is tuple else arg


class GradientStep(TapeEntry):
    """The tape step of a gradient, which `walk` computed for `target`.

    `inputs` repeats the walk on a tape, so that gradients flow through it.
    """

    __slots__ = ("walk", "target")

    def __init__(self, walk: BackwardPass, target: TapeTensor, value: LazyBuffer) -> None:
        self.walk, self.target = walk, target
        self.rule = same_gradient
        self.sources = (value,)
        self.result = value
        self.arg = None

    @property
    def inputs(self) -> tuple[Any, ...]:  # type: ignore[override]
        return (self.walk.gradient_of(self.target),)
