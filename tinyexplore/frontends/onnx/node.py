"""A node during its evaluation, and the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tinyexplore.dtype import DType
from tinyexplore.frontends.onnx.errors import OnnxError, UnsupportedOperator
from tinyexplore.frontends.onnx.values import Array, Value, array_dtype, dtype_of_number, shape_of
from tinyexplore.tensor import Tensor

T = TypeVar("T")


class OnnxNode:
    """A node with the values of its inputs. An operator is a function of an OnnxNode.

    Attributes:
        operator: its name, such as "Conv".
        version: the version of the operator set in the model; the meaning of some operators depends on it.
        attributes: the attributes as Python values; a graph stays a GraphProto.
        outputs: the number of outputs.
        used: for each output, whether something reads it.
    """

    def __init__(
        self,
        operator: str,
        version: int,
        attributes: Mapping[str, Any],
        inputs: list[Value],
        used: list[bool],
        as_tensor: Callable[[int], Tensor],
        as_array: Callable[[int], Array],
    ) -> None:
        self.operator = operator
        self.version = version
        self.attributes = attributes
        self.inputs = inputs
        self.used = used
        self._as_tensor = as_tensor
        self._as_array = as_array

    @property
    def outputs(self) -> int:
        return len(self.used)

    def has(self, index: int) -> bool:
        """Whether the input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def tensor(self, index: int) -> Tensor:
        """Returns an input as a Tensor. Raises OnnxError if it is missing."""
        if not self.has(index):
            raise OnnxError(f"{self.operator}: input {index} is missing")
        return self._as_tensor(index)

    def tensor_or(self, index: int) -> Tensor | None:
        """Returns an optional input as a Tensor; None if it is missing."""
        return self.tensor(index) if self.has(index) else None

    def tensors(self) -> list[Tensor]:
        """Returns all inputs as Tensors."""
        return [self.tensor(index) for index in range(len(self.inputs))]

    def array(self, index: int) -> Array:
        """Returns the elements of an input. If they must be computed, a later call cannot be replayed."""
        if not self.has(index):
            raise OnnxError(f"{self.operator}: input {index} is missing")
        return self._as_array(index)

    def ints(self, index: int) -> list[int]:
        """Returns the elements of an input, as integers."""
        return [int(item) for item in np.asarray(self.array(index)).reshape(-1)]

    def scalar(self, index: int) -> Any:
        """Returns the only element of an input, as a Python number."""
        array = np.asarray(self.array(index))
        if array.size != 1:
            raise OnnxError(f"{self.operator}: input {index} has {array.size} elements; expected one")
        return array.reshape(()).item()

    def sequence(self, index: int) -> list[Any]:
        """Returns an input that is a sequence."""
        value = self.inputs[index]
        if not isinstance(value, list):
            raise OnnxError(f"{self.operator}: input {index} is not a sequence, but a {type(value).__name__}")
        return value

    def shape(self, index: int) -> tuple[int, ...]:
        """Returns the shape of an input."""
        return shape_of(self.inputs[index])

    def dtype(self, index: int) -> DType:
        """Returns the dtype of an input."""
        value = self.inputs[index]
        return array_dtype(value) if isinstance(value, np.ndarray) else self.tensor(index).dtype

    def attribute(self, name: str, default: T) -> T:
        """Returns an attribute, or `default`."""
        value = self.attributes.get(name, default)
        return value  # type: ignore[no-any-return]

    def require(self, name: str) -> Any:
        """Returns a required attribute. Raises OnnxError if it is missing."""
        if name not in self.attributes:
            raise OnnxError(f"{self.operator}: the attribute {name!r} is missing")
        return self.attributes[name]

    def dtype_attribute(self, name: str, default: DType) -> DType:
        """Returns the dtype that an attribute names."""
        number = self.attributes.get(name)
        return default if not number else dtype_of_number(int(number))

    def axis(self, rank: int, default: int = 0) -> int:
        """Returns the attribute `axis`, counted from the front. Raises OnnxError if it is out of range."""
        return axis_in(self.attribute("axis", default), rank)

    def unsupported(self, feature: str) -> UnsupportedOperator:
        """Returns an error to raise for an unsupported mode of this operator."""
        return UnsupportedOperator(f"{self.operator}: {feature} is not supported", self.operator)


Operator = Callable[[OnnxNode], "Value | tuple[Value, ...]"]
OPERATORS: dict[tuple[str, str], Operator] = {}  # by domain ("" is the standard's) and name


def operator(*names: str, domain: str = "") -> Callable[[Operator], Operator]:
    """Registers a function for operators of these names."""

    def register(function: Operator) -> Operator:
        for name in names:
            if (domain, name) in OPERATORS:
                raise ValueError(f"the operator {name} has a function already")
            OPERATORS[domain, name] = function
        return function

    return register


def axis_in(axis: int, rank: int) -> int:
    """Returns an axis counted from the front. Raises OnnxError if it is out of range."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise OnnxError(f"axis {axis} of a tensor with {rank} dimensions: choose one of {-rank}..{rank - 1}")
    return axis % max(rank, 1)
