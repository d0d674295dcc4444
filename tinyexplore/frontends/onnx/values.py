"""Values of an ONNX graph: Tensors, arrays whose elements are known before the kernels run, and sequences of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tinyexplore.dtype import DType, dtypes
from tinyexplore.frontends.onnx.errors import OnnxError, UnsupportedOperator
from tinyexplore.tensor import Tensor

if TYPE_CHECKING:
    from onnx import TensorProto

Array: TypeAlias = "np.ndarray[Any, Any]"
Value: TypeAlias = "Tensor | Array | list[Any] | None"  # None: an absent input, or an empty optional

# TensorProto.DataType → the engine's dtype; the other types of the standard have no dtype here
DTYPES: dict[int, DType] = {
    1: dtypes.float32,
    2: dtypes.uint8,
    3: dtypes.int8,
    4: dtypes.uint16,
    5: dtypes.int16,
    6: dtypes.int32,
    7: dtypes.int64,
    9: dtypes.bool,
    10: dtypes.float16,
    11: dtypes.float64,
    12: dtypes.uint32,
    13: dtypes.uint64,
    16: dtypes.bfloat16,
    17: dtypes.fp8e4m3,
    19: dtypes.fp8e5m2,
}
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
ARRAY_DTYPES: dict[Any, DType] = {}  # cache by NumPy's dtype
MAX_ELEMENTS = 1 << 31  # most elements of one tensor: a larger one is rejected before anything is allocated


def dtype_of_number(number: int) -> DType:
    """Returns the dtype of a TensorProto.DataType. Raises UnsupportedOperator for strings, complex, 2- and 4-bit
    types."""
    dtype = DTYPES.get(number)
    if dtype is None:
        from onnx import TensorProto  # noqa: PLC0415 (the package is an extra)

        names = {value: name for name, value in TensorProto.DataType.items()}
        raise UnsupportedOperator(f"elements of type {names.get(number, number)} have no dtype in tinyexplore")
    return dtype


def array_dtype(array: Array) -> DType:
    """Returns the dtype of a NumPy array, also of a type of ml_dtypes."""
    cached = ARRAY_DTYPES.get(array.dtype)
    if cached is not None:
        return cached
    name = {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2"}.get(str(array.dtype), str(array.dtype))
    dtype = getattr(dtypes, name, None)
    if not isinstance(dtype, DType):
        raise UnsupportedOperator(f"elements of type {array.dtype} have no dtype in tinyexplore")
    ARRAY_DTYPES[array.dtype] = dtype
    return dtype


def numpy_dtype(dtype: DType) -> Any:
    """Returns the NumPy dtype for elements of `dtype`: that of ml_dtypes for bfloat16 and 8-bit floats."""
    from onnx import helper  # noqa: PLC0415 (the package is an extra)

    return helper.tensor_dtype_to_np_dtype(NUMBERS[dtype])


def number_of(value: Value) -> int:
    """Returns the TensorProto.DataType of a value's elements."""
    if isinstance(value, list) or value is None:
        raise UnsupportedOperator("expected a tensor, found a sequence or an optional")
    return NUMBERS[value.dtype if isinstance(value, Tensor) else array_dtype(value)]


def tensor_of(value: Value) -> Tensor:
    """Returns a value as a Tensor. Copies an array to the default device."""
    if isinstance(value, Tensor):
        return value
    if value is None or isinstance(value, list):
        raise OnnxError(f"expected a tensor, found {'nothing' if value is None else 'a sequence'}")
    array_dtype(value)
    return Tensor(np.ascontiguousarray(value).reshape(value.shape))


def shape_of(value: Value) -> tuple[int, ...]:
    """Returns the shape of a Tensor or an array."""
    if value is None or isinstance(value, list):
        raise OnnxError(f"expected a tensor, found {'nothing' if value is None else 'a sequence'}")
    return tuple(int(size) for size in value.shape)


def check_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape. Raises OnnxError for a negative size, and for more elements than MAX_ELEMENTS."""
    if any(size < 0 for size in shape):
        raise OnnxError(f"shape {shape}: a size is negative")
    if math.prod(shape) > MAX_ELEMENTS:
        raise OnnxError(f"shape {shape}: {math.prod(shape):,} elements; a tensor may have {MAX_ELEMENTS:,}")
    return shape


def array_of_proto(proto: TensorProto) -> Array:
    """Returns the elements of a TensorProto. Raises OnnxError if its data has another length than its shape
    requires."""
    from onnx import numpy_helper  # noqa: PLC0415 (the package is an extra)

    check_shape(tuple(proto.dims))
    try:
        return np.asarray(numpy_helper.to_array(proto))
    except Exception as error:  # the package raises different exceptions for different errors
        raise OnnxError(f"the tensor {proto.name!r} of shape {tuple(proto.dims)}: {error}") from error
