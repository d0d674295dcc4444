"""Tensor: the class that users write with.

Its methods stand in the modules beside this one, in classes by subject. A class names as its bases those whose methods
it calls, down to `Base`, which holds the value; mypy checks that it calls no other. So no module needs to know Tensor.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import ClassVar

from tinyexplore.tensor.linalg import LinearAlgebra
from tinyexplore.tensor.operators import NamedCasts
from tinyexplore.tensor.processing import Processing
from tinyexplore.tensor.resampling import Resampling


class Tensor(Processing, LinearAlgebra, Resampling, NamedCasts):
    """An array of numbers on a device, computed when its values are requested.

    `data`: a number, nested lists, bytes, a NumPy array (row-major ones are not copied), another Tensor, or a
    pathlib.Path. The bytes of a file are read when they are needed (on the device `DISK:path` by default).
    """

    __slots__ = ()
    __array_priority__: ClassVar[int] = 100  # NumPy leaves array (op) Tensor to us

    def __repr__(self) -> str:
        state = "realized" if self.lazydata.is_realized else f"lazy {self.lazydata.op.name}"
        suffix = ", requires_grad" if self.requires_grad else ""
        return f"<Tensor {self.shape} {self.dtype.name} on {self.device}, {state}{suffix}>"

    # *** modes ***

    class train(ContextDecorator):
        """`with Tensor.train():` dropout drops and batch statistics are kept, inside the block."""

        def __init__(self, mode: bool = True) -> None:
            self.mode = mode
            self.before: list[bool] = []

        def __enter__(self) -> None:
            self.before.append(Tensor.training)
            Tensor.training = self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.training = self.before.pop()

    class inference_mode(ContextDecorator):
        """`with Tensor.inference_mode():` nothing is taped inside the block."""

        def __init__(self, mode: bool = True) -> None:
            self.mode = mode
            self.before: list[bool] = []

        def __enter__(self) -> None:
            self.before.append(Tensor.no_grad)
            Tensor.no_grad = self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.no_grad = self.before.pop()

    class test(inference_mode):
        """`with Tensor.test():` nothing is taped inside the block, and nothing drops out."""

        def __enter__(self) -> None:
            super().__enter__()
            self.before.append(Tensor.training)
            Tensor.training = Tensor.training and not self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.training = self.before.pop()
            super().__exit__(*error)


Tensor.plain = Tensor
for _part in Tensor.__mro__:
    for _method in vars(_part).values():  # a signature shows what a user has, a Tensor
        _method = getattr(_method, "__func__", _method)
        for _name, _type in getattr(_method, "__annotations__", {}).items():
            if "Self" in str(_type):
                _method.__annotations__[_name] = _type.replace("Self", "Tensor")
