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
        kind = step.arg[0]
        if isinstance(g, LazyBuffer):
            gradients = rule(step, [kind._wrap(source) for source in step.sources], kind._wrap(g))
            return tuple([None if gradient is None else gradient.lazydata for gradient in gradients])
        with kind.inference_mode(False):  # the values are on the tape, so the results computed from them must be, too
            gradients = rule(step, [kind._on_tape(source) for source in step.sources], kind._on_tape(g))
        return tuple(
            [None if gradient is None else TapedBuffer(gradient.lazydata, gradient._ctx) for gradient in gradients]
        )

    return on_values
