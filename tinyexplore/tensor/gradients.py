"""Converts gradient rules written on Tensors to gradient rules on LazyBuffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from tinyexplore.autograd import GradientRule, TapedBuffer
from tinyexplore.lazy import LazyBuffer

if TYPE_CHECKING:
    from tinyexplore.autograd import TapeEntry


def gradient_by_tensors(rule: Callable[..., tuple[Any | None, ...]]) -> GradientRule:
    """Converts `rule(step, input values, gradient of the result)` on Tensors to a gradient rule on LazyBuffers.

    `step.arg[0]` is the class of the Tensors.
    """

    @wraps(rule)
    def on_values(step: TapeEntry, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
        tensor_class = step.arg[0]
        if isinstance(g, LazyBuffer):
            gradients = rule(step, [tensor_class._wrap(source) for source in step.sources], tensor_class._wrap(g))
            return tuple([None if gradient is None else gradient.lazydata for gradient in gradients])
        # the values are on the tape, so the results computed from them must be, too
        with tensor_class.inference_mode(False):
            gradients = rule(
                step, [tensor_class._wrap_on_tape(source) for source in step.sources], tensor_class._wrap_on_tape(g)
            )
        return tuple(
            [None if gradient is None else TapedBuffer(gradient.lazydata, gradient._ctx) for gradient in gradients]
        )

    return on_values
