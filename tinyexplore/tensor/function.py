"""Function: an operation that the user defines, with its own gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.autograd import TapeEntry
from tinyexplore.lazy import LazyBuffer

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor


class Function:
    """Base class of an operation that the user defines. `Operation.apply(*tensors, **kwargs)` applies it.

    A subclass defines two methods:
    `forward(self, *values, **kwargs)` computes the result from LazyBuffers, by their methods: `x.alu(Ops.MUL, y)`,
    `x.reduce(Ops.ADD, axes)`.
    `backward(self, gradient)` returns the gradients of the inputs, given the gradient of the result: one LazyBuffer, or
    a tuple with one (or None) per input.

    `backward` can use the attributes that `forward` sets on `self`. `needs_input_grad` has a bool for each input. If
    gradients are differentiated again, `forward` is called once more, with values that are on the tape.
    """

    def __init__(self, device: str, *tensors: Tensor) -> None:
        self.device = device
        self.needs_input_grad = [tensor.requires_grad for tensor in tensors]
        self.requires_grad = True if any(self.needs_input_grad) else None if None in self.needs_input_grad else False
        self.parents = tensors if self.requires_grad else ()

    def forward(self, *values: Any, **kwargs: Any) -> LazyBuffer:
        raise NotImplementedError(f"{type(self).__name__} has no forward: define it")

    def backward(self, gradient: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} has no backward: detach() its inputs, or write one")

    @classmethod
    def apply(cls, *tensors: Tensor, **kwargs: Any) -> Tensor:
        """Calls `forward` with the values of `tensors`, and returns the result as a Tensor on the tape."""
        if not tensors:
            raise TypeError(f"{cls.__name__}.apply: need at least one tensor")
        device: Any = tensors[0].device
        context = cls(device, *tensors)
        value = context.forward(*[tensor.lazydata for tensor in tensors], **kwargs)
        if any([value is tensor.lazydata for tensor in tensors]):
            value = value.detached()  # a separate node, which gets the gradient rule below

        def function_gradient(step: TapeEntry, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
            """Calls the user's `backward`."""
            function = context
            if not isinstance(g, LazyBuffer):  # the gradient will be differentiated again
                function = cls(device, *step.inputs)
                function.forward(*step.sources, **kwargs)
            gradient = function.backward(g)
            gradients = gradient if isinstance(gradient, tuple) else (gradient,)
            if len(gradients) != len(step.sources):
                raise ValueError(
                    f"{cls.__name__}.backward gave {len(gradients)} gradients for {len(step.sources)} inputs"
                )
            for gradient_part, source in zip(gradients, step.sources):
                if gradient_part is not None and gradient_part.shape != source.shape:
                    raise ValueError(
                        f"{cls.__name__}.backward gave a gradient of shape {gradient_part.shape} "
                        f"for an input of {source.shape}"
                    )
            return gradients

        return tensors[0]._wrap_with_rule(value, function_gradient, tensors)
