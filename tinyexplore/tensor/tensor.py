"""Tensor: the class of arrays that user programs work with.

Its methods are in the other modules of this package, in classes by subject. A class has as bases the classes whose
methods it calls, down to `TensorBase`, which holds the value. mypy checks that it calls no others, so no module needs
to import Tensor.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import ClassVar

from tinyexplore.tensor.linalg import LinearAlgebra
from tinyexplore.tensor.operators import NamedCasts
from tinyexplore.tensor.processing import Processing
from tinyexplore.tensor.resampling import Resampling


class Tensor(Processing, LinearAlgebra, Resampling, NamedCasts):
    """An array of numbers on a device. Its values are computed when they are requested.

    data: a number, nested lists, bytes, a NumPy array (a row-major one is not copied), another Tensor, or a
    pathlib.Path. The bytes of a file are read when they are needed (on the device `DISK:path` by default).
    """

    __slots__ = ()
    __array_priority__: ClassVar[int] = 100  # NumPy leaves array (op) Tensor to Tensor

    def __repr__(self) -> str:
        state = "realized" if self.lazydata.is_realized else f"lazy {self.lazydata.op.name}"
        suffix = ", requires_grad" if self.requires_grad else ""
        return f"<Tensor {self.shape} {self.dtype.name} on {self.device}, {state}{suffix}>"

    # *** modes ***

    class train(ContextDecorator):
        """Context manager of training: dropout is active, and BatchNorm updates its running statistics."""

        def __init__(self, mode: bool = True) -> None:
            self.mode = mode
            self.before: list[bool] = []

        def __enter__(self) -> None:
            self.before.append(Tensor.training)
            Tensor.training = self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.training = self.before.pop()

    class inference_mode(ContextDecorator):
        """Context manager without gradients: operations inside it are not put on the tape."""

        def __init__(self, mode: bool = True) -> None:
            self.mode = mode
            self.before: list[bool] = []

        def __enter__(self) -> None:
            self.before.append(Tensor.no_grad)
            Tensor.no_grad = self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.no_grad = self.before.pop()

    class test(inference_mode):
        """Context manager of evaluation: no tape, and no dropout."""

        def __enter__(self) -> None:
            super().__enter__()
            self.before.append(Tensor.training)
            Tensor.training = Tensor.training and not self.mode

        def __exit__(self, *error: object) -> None:
            Tensor.training = self.before.pop()
            super().__exit__(*error)


Tensor.plain = Tensor
for _part in Tensor.__mro__:
    for _method in vars(_part).values():  # signatures show the class that a user has: Tensor
        _method = getattr(_method, "__func__", _method)
        for _name, _type in getattr(_method, "__annotations__", {}).items():
            if "Self" in str(_type):
                _method.__annotations__[_name] = _type.replace("Self", "Tensor")
