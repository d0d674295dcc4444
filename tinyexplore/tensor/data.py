"""Converts between buffers and Python data: numbers, nested lists, bytes and NumPy arrays."""

from __future__ import annotations

import struct
import sys
from math import prod
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Buffer, Device, Memory
from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor.errors import OperandError
from tinyexplore.tensor.exchange import lazydata_from
from tinyexplore.uop import UOp
from tinyexplore.uop.semantics import from_bits, to_bits

if TYPE_CHECKING:
    import numpy

Shape = tuple[int, ...]

# dtypes that the package ml_dtypes adds to NumPy
_ML_DTYPES = {"bfloat16": dtypes.bfloat16, "float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2}


# *** Python data → LazyBuffer ***


def lazydata_of(data: Any, dtype: DType | None, device: str) -> LazyBuffer:
    """Converts any data that a Tensor accepts to a LazyBuffer."""
    if device.startswith("DISK:"):  # the file is not opened before the tensor is realized
        return lazydata_of(data, dtype, Device.DEFAULT).copy_to_device(device)
    if Device.is_group(device):
        return lazydata_of(data, dtype, Device.members(device)[0]).copy_to_device(device)
    if isinstance(data, (bool, int, float)):
        target = dtypes.from_py(data) if dtype is None else dtype
        if Device.is_storage(device):
            return LazyBuffer.from_buffer(Buffer(device, 1, target).copyin(pack_numbers([data], target)), ())
        return LazyBuffer.const(check_value(data, target), target, device)
    if isinstance(data, UOp):
        return LazyBuffer.const(data, dtypes.default_int if dtype is None else dtype, device)
    if isinstance(data, (list, tuple)):
        return _from_list(data, dtype, device)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return _from_bytes(data, dtype, device)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):  # PyTorch's tensors, JAX's arrays
        lazydata = lazydata_from(data, device)
        return lazydata if dtype is None else lazydata.cast(dtype)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return _from_array(data, dtype, device)
    raise OperandError(
        f"a Tensor cannot be made of {type(data).__name__}; "
        "give a number, a nested list of numbers, bytes, an array of NumPy or PyTorch, or a Tensor"
    )


def check_value(value: ConstType, dtype: DType) -> ConstType:
    """Returns `value` if `dtype` can represent it. Rounds a float towards zero for an int dtype. Raises OverflowError
    otherwise."""
    if not dtypes.is_int(dtype):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), -float("inf")):
            raise ValueError(f"{value} has no {dtype.name} value; use a float dtype")
        value = int(value)
    if not dtypes.min(dtype) <= value <= dtypes.max(dtype):
        raise OverflowError(
            f"{value} does not fit in {dtype.name} ({dtypes.min(dtype)} … {dtypes.max(dtype)}); "
            "give a wider dtype, such as dtype=dtypes.int64"
        )
    return value


def _from_list(data: Any, dtype: DType | None, device: str) -> LazyBuffer:
    """Converts a nested list of numbers to a LazyBuffer. A list of arrays is converted by NumPy."""
    shape: list[int] = []
    level = data
    while isinstance(level, (list, tuple)):
        shape.append(len(level))
        level = level[0] if level else None
    values: list[Any] = []
    _flatten_into(values, data, tuple(shape), ())
    invalid_value = next((value for value in values if not isinstance(value, (bool, int, float))), None)
    if invalid_value is not None:
        if hasattr(invalid_value, "__array_interface__"):
            import numpy

            return _from_array(numpy.asarray(data), dtype, device)
        advice = "join tensors with Tensor.stack()" if hasattr(invalid_value, "lazydata") else "need bool, int or float"
        raise TypeError(f"a list for a Tensor holds {type(invalid_value).__name__} {invalid_value!r}: {advice}")
    target = dtypes.from_py(values) if dtype is None else dtype
    return LazyBuffer.from_buffer(
        Buffer(device, len(values), target).copyin(pack_numbers(values, target)), tuple(shape)
    )


def _flatten_into(values: list[Any], data: Any, shape: Shape, indices: Shape) -> None:
    """Appends the numbers of a nested list to `values`. Raises for a ragged list."""
    if not shape:
        if isinstance(data, (list, tuple)):
            raise ValueError(f"ragged list: {_format_subscript(indices)} is a {type(data).__name__}; expected a number")
        values.append(data)
        return
    if not isinstance(data, (list, tuple)):
        raise ValueError(f"ragged list: {_format_subscript(indices)} is {data!r}; expected a list of length {shape[0]}")
    if len(data) != shape[0]:
        raise ValueError(
            f"ragged list: {_format_subscript(indices)} has {len(data)} elements, "
            f"{_format_subscript((*indices[:-1], 0))} has {shape[0]}; all lists of one level need equal lengths"
        )
    if len(shape) == 1 and not any(isinstance(element, (list, tuple)) for element in data):
        values.extend(data)
        return
    for number, item in enumerate(data):
        _flatten_into(values, item, shape[1:], (*indices, number))


def _format_subscript(indices: Shape) -> str:
    return "data" + "".join(f"[{number}]" for number in indices)


def pack_numbers(values: list[Any], dtype: DType) -> bytes:
    """Converts numbers to `dtype` and returns their bytes."""
    if dtype.fmt is None:
        floats = [_round_to_format(value, "f") for value in values]  # no dtype of that kind has a larger range
        return b"".join(to_bits(value, dtype).to_bytes(dtype.itemsize, sys.byteorder) for value in floats)
    if dtypes.is_bool(dtype):
        return bytes(bytearray(value != 0 for value in values))
    if dtypes.is_int(dtype):
        values = [check_value(value, dtype) for value in values]
    try:
        return struct.pack(f"={len(values)}{dtype.fmt}", *values)
    except (OverflowError, struct.error):  # values beyond the range of all floats become infinity, as in a cast
        return struct.pack(f"={len(values)}{dtype.fmt}", *[_round_to_format(value, dtype.fmt) for value in values])


def _round_to_format(value: float, form: str) -> float:
    """Rounds `value` to the float format `form` of `struct`. Beyond its range, the result is infinity."""
    try:
        struct.pack(f"={form}", value)
        return float(value)
    except (OverflowError, struct.error):
        return float("inf") if value > 0 else float("-inf")


def _from_bytes(data: Any, dtype: DType | None, device: str) -> LazyBuffer:
    """Returns the bytes as elements of `dtype` (uint8 by default). They are copied, because the owner could move or
    change them."""
    target = dtypes.uint8 if dtype is None else dtype
    size, extra_bytes = divmod(memoryview(data).nbytes, target.itemsize)
    if extra_bytes:
        raise ValueError(f"{memoryview(data).nbytes} bytes are not a whole number of {target.name} elements")
    return LazyBuffer.from_buffer(Buffer(device, size, target).copyin(data), (size,))


def _from_array(data: Any, dtype: DType | None, device: str) -> LazyBuffer:
    """Wraps a NumPy array. A row-major array of a known dtype shares its memory; another array is copied."""
    import numpy

    array = numpy.asarray(data)
    known_dtype = _ML_DTYPES.get(array.dtype.name) or dtypes.fields().get(array.dtype.name)
    if known_dtype is None:
        raise TypeError(
            f"a NumPy array of {array.dtype} cannot become a Tensor; supported: {', '.join(dtypes.fields())}"
        )
    target = known_dtype if dtype is None else dtype
    if known_dtype.fmt is None:
        buffer = Buffer(device, array.size, known_dtype).copyin(array.tobytes())
        return LazyBuffer.from_buffer(buffer, array.shape).cast(target)
    if target.fmt is None:
        return _from_array(array.astype(numpy.float32), dtypes.float32, device).cast(target)
    numpy_dtype = numpy.dtype(target.name)
    # for values out of range, NumPy's result depends on the machine
    if dtypes.is_float(known_dtype) and dtypes.is_int(target):
        return _from_array(array, known_dtype, device).cast(target)
    if array.dtype != numpy_dtype or not array.dtype.isnative:
        array = array.astype(numpy_dtype)
    if array.ndim == 0:
        return lazydata_of(array.item(), target, device)
    array = numpy.require(array, requirements=["C", "A"])
    return LazyBuffer.from_buffer(Buffer.from_memory(device, target, array), array.shape)


def file_elements(path: PurePath, dtype: DType) -> LazyBuffer:
    """Returns the elements of an existing file. They are read when they are needed."""
    resolved = Path(path).resolve(strict=True)
    if not resolved.is_file():
        raise OSError(f"{resolved} is not a file: Tensor(path) reads the bytes of a file")
    count, extra_bytes = divmod(resolved.stat().st_size, dtype.itemsize)
    if extra_bytes:
        raise ValueError(
            f"{resolved} has {resolved.stat().st_size} bytes, which are not a whole number of {dtype.name}"
        )
    return LazyBuffer.from_buffer(Buffer(f"DISK:{resolved}", count, dtype).allocate(), (count,))


def elements_at(address: int, count: int, dtype: DType, device: str) -> LazyBuffer:
    """Returns `count` elements of host memory at `address`, not copied. The owner must keep the memory alive."""
    if not isinstance(address, int):
        raise TypeError(f"memory at {address!r} ({type(address).__name__}): need an address, an int")
    if address % dtype.itemsize:
        raise ValueError(f"address {address:#x} is not aligned to {dtype.name}")
    memory = Memory(address, count * dtype.itemsize, None)
    return LazyBuffer.from_buffer(Buffer(device, count, dtype, memory), (count,))


# *** buffer → Python data ***


def numpy_type(dtype: DType) -> type | None:
    """Returns NumPy's scalar type for elements of `dtype`, or None if NumPy has none (bfloat16 and 8-bit floats)."""
    import numpy

    return None if dtype.fmt is None else numpy.dtype(dtype.name).type


def array_of(buffer: Buffer, shape: Shape) -> numpy.ndarray:
    """Copies the buffer to a NumPy array. bfloat16 and 8-bit floats, which NumPy lacks, become float32."""
    import numpy

    dtype = buffer.dtype
    if buffer.size == 0:
        return numpy.empty(shape, dtype=numpy.float32 if dtype.fmt is None else dtype.name)
    raw = buffer.memoryview()
    if dtype is dtypes.bfloat16:
        float_bits = numpy.frombuffer(raw, dtype=numpy.uint16).astype(numpy.uint32) << 16
        return float_bits.view(numpy.float32).reshape(shape)
    if dtype in dtypes.fp8s:
        table = numpy.array([from_bits(bits, dtype) for bits in range(256)], dtype=numpy.float32)
        return table[numpy.frombuffer(raw, dtype=numpy.uint8)].reshape(shape)
    return numpy.frombuffer(raw, dtype=dtype.name).reshape(shape).copy()


def numbers_of(buffer: Buffer) -> list[ConstType]:
    """Returns the elements as Python numbers, in order."""
    if buffer.size == 0:
        return []
    raw, dtype = buffer.memoryview(), buffer.dtype
    if dtype.fmt is not None:
        return list(struct.unpack(f"={buffer.size}{dtype.fmt}", raw))
    words = struct.unpack(f"={buffer.size}{'H' if dtype.itemsize == 2 else 'B'}", raw)
    return [from_bits(word, dtype) for word in words]


def nest_numbers(values: list[ConstType], shape: Shape) -> Any:
    """Arranges the numbers as nested lists of `shape`."""
    if not shape:
        return values[0]
    rows: list[Any] = [*values]
    for axis in range(len(shape) - 1, 0, -1):
        size = shape[axis]
        count = prod(shape[:axis])
        rows = [rows[i * size : (i + 1) * size] for i in range(count)]
    return rows
