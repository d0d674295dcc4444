"""Lists all referenced tensors and their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinyexplore.autograd import TapedBuffer
from tinyexplore.lazy import LazyBuffer, ShardedBuffer
from tinyexplore.tensor.tensor import Tensor
from tinyexplore.util.interpreter import living


def live_tensors() -> list[Tensor]:
    """Returns every referenced Tensor. This includes every tensor that a function may change from outside."""
    return _find_living({Tensor, *_iterate_subclasses(Tensor)})


def _find_living(classes: set[type]) -> list[Any]:
    return [instance for instance in living(classes) if hasattr(instance, "lazydata")]


def _iterate_subclasses(tensor_class: type[Tensor]) -> Iterator[type[Tensor]]:
    for subclass in tensor_class.__subclasses__():
        yield subclass
        yield from _iterate_subclasses(subclass)


def live_values() -> Iterator[LazyBuffer]:
    """Yields the values of all tensors, and the values that their gradients need."""
    for tensor in _find_living({TapedBuffer, Tensor, *_iterate_subclasses(Tensor)}):
        yield from _list_parts(tensor.lazydata)
        step = tensor._ctx
        if step is not None:
            for value in (*step.sources, step.result, step.arg):
                if isinstance(value, LazyBuffer):
                    yield from _list_parts(value)


def _list_parts(value: LazyBuffer) -> tuple[LazyBuffer, ...]:
    return value.parts if isinstance(value, ShardedBuffer) else (value,)
