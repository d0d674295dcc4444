"""Exchanges memory with other array packages, without a copy: DLPack, and NumPy's array protocol.

A DLPack capsule holds a pointer to a `DLManagedTensor`: an address, a shape, strides and a function that releases the
memory. NumPy makes the capsules of our tensors, because it has this function in C. NumPy has neither bfloat16 nor 8-bit
floats. For these it makes a capsule of integers, and this module then sets the element type. A capsule of another
package stays unopened. When the last buffer over its memory is gone, the capsule's own destructor releases the memory.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

from tinyexplore.device import Buffer, Memory
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer

CPU = 1  # kDLCPU
CPU_KINDS = (1, 3, 11, 13)  # devices whose memory the host can read: the CPU, and pinned or managed memory of GPUs
VERSION = (1, 1)  # the newest version of the protocol that this module reads
READ_ONLY, COPIED = 1, 2  # bits of the field `flags`
# code and bits of an element type; the codes of 8-bit floats are those of version 1.1
INT, UINT, FLOAT, BFLOAT, BOOL, FP8E4M3, FP8E5M2 = 0, 1, 2, 4, 6, 10, 12


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    """The C structure `DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensorVersioned(ctypes.Structure):
    """The C structure `DLManagedTensorVersioned`. The older `DLManagedTensor` begins with its field `array`."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", _DLTensor),
    ]


def _element_code(dtype: DType) -> tuple[int, int]:
    """Returns DLPack's type code of `dtype`, and its number of bits."""
    special = {dtypes.bfloat16: BFLOAT, dtypes.fp8e4m3: FP8E4M3, dtypes.fp8e5m2: FP8E5M2}
    if dtype in special:
        return special[dtype], dtype.itemsize * 8
    if dtypes.is_bool(dtype):
        return BOOL, 8
    code = FLOAT if dtypes.is_float(dtype) else UINT if dtypes.is_unsigned(dtype) else INT
    return code, dtype.itemsize * 8


_DTYPES = {_element_code(dtype): dtype for dtype in dtypes.fields().values()}


def _open_capsule(capsule: Any) -> tuple[int, bool]:
    """Returns the address in a DLPack capsule, and whether the capsule is versioned. Raises BufferError for other
    objects."""
    is_valid, get = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes, get.argtypes, get.restype = (
        [ctypes.py_object, ctypes.c_char_p],
        [ctypes.py_object, ctypes.c_char_p],
        ctypes.c_void_p,
    )
    for name in (b"dltensor_versioned", b"dltensor"):
        if is_valid(capsule, name):
            return int(get(capsule, name)), name == b"dltensor_versioned"
    raise BufferError(f"{capsule!r} is not a DLPack capsule, or was consumed before: get a new one from __dlpack__()")


def _read_array(capsule: Any) -> tuple[_DLTensor, int]:
    """Returns the array description in a capsule, and its flags."""
    address, is_versioned = _open_capsule(capsule)
    if not is_versioned:
        return _DLTensor.from_address(address), 0
    managed = _DLManagedTensorVersioned.from_address(address)
    if managed.major > VERSION[0]:
        raise BufferError(f"DLPack {managed.major}.{managed.minor}: versions up to {VERSION[0]} are supported")
    return managed.array, managed.flags


# *** other package → LazyBuffer ***


def capsule_of(source: Any, copy: bool | None = None) -> Any:
    """Requests a capsule from an object with `__dlpack__`, in the newest version that the object supports."""
    device_type, _ = source.__dlpack_device__()
    if device_type not in CPU_KINDS:
        raise BufferError(
            f"from_dlpack of memory on device kind {device_type}: bring it to the CPU first (kinds {CPU_KINDS})"
        )
    try:
        return source.__dlpack__(max_version=VERSION, copy=copy)
    except TypeError:  # the exporter is older than version 1.0
        if copy is not None:
            raise BufferError(f"{type(source).__name__} cannot control copies (DLPack before 1.0)") from None
        return source.__dlpack__()


def share_capsule(capsule: Any, device: str) -> LazyBuffer | None:
    """Wraps the elements of a capsule without a copy. Returns None if movements of dense memory cannot produce its
    strides.

    Row-major memory, its permutations, and expanded axes (stride 0) can be shared, from any offset.

    Raises:
        BufferError: the element type is unknown, or the memory is not aligned to it.
    """
    array, flags = _read_array(capsule)
    code = (array.dtype.code, array.dtype.bits)
    dtype = _DTYPES.get(code)
    if dtype is None or array.dtype.lanes != 1:
        raise BufferError(f"elements of DLPack type {code} with {array.dtype.lanes} lanes have no dtype in tinyexplore")
    shape = tuple(array.shape[: array.ndim])
    strides = tuple(array.strides[: array.ndim]) if array.ndim and array.strides else _row_major(shape)
    address = (array.data or 0) + array.byte_offset
    if prod(shape) == 0:
        return LazyBuffer.from_buffer(Buffer(device, 0, dtype).allocate(), shape)
    if address % dtype.itemsize:
        return None
    order = _order(shape, strides)
    if order is None:
        return None
    in_memory = tuple([shape[axis] for axis in order])
    count = prod(in_memory)
    memory = Memory(address, count * dtype.itemsize, capsule, readonly=bool(flags & READ_ONLY))
    shared_buffer = LazyBuffer.from_buffer(Buffer(device, count, dtype, memory), in_memory)
    expanded_axes = [axis for axis in range(len(shape)) if axis not in order]
    order_of_all = [*order, *expanded_axes]
    if not expanded_axes and order_of_all == sorted(order_of_all):
        return shared_buffer
    shared_buffer = shared_buffer.reshape((*in_memory, *[1] * len(expanded_axes)))
    shared_buffer = shared_buffer.permute([order_of_all.index(axis) for axis in range(len(shape))])
    return shared_buffer.expand(shape)


def _order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int] | None:
    """Returns the axes in memory order, slowest first, without axes of stride 0. None if there are gaps."""
    moving = [axis for axis, size in enumerate(shape) if size > 1 and strides[axis] != 0]
    order = sorted(moving, key=lambda axis: -strides[axis])
    step = 1
    for axis in reversed(order):
        if strides[axis] != step:
            return None
        step *= shape[axis]
    return order


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([prod(shape[axis + 1 :]) for axis in range(len(shape))])


def lazydata_from(source: Any, device: str, copy: bool | None = None) -> LazyBuffer:
    """Returns the elements of an object with `__dlpack__`. They share its memory if possible, unless `copy` is True."""
    capsule = capsule_of(source, copy or None)
    lazydata = share_capsule(capsule, device)
    _, flags = _read_array(capsule)
    if lazydata is not None and (not copy or flags & COPIED):
        return lazydata
    if copy is False:
        raise BufferError("from_dlpack(copy=False): the strides have gaps or go backwards, or it is not aligned")
    return _copy_densely(capsule, device)


def _copy_densely(capsule: Any, device: str) -> LazyBuffer:
    """Copies the elements of a capsule to separate memory, row-major."""
    import numpy

    array, _ = _read_array(capsule)
    dtype = _DTYPES[array.dtype.code, array.dtype.bits]
    shape = tuple(array.shape[: array.ndim])
    steps = tuple(array.strides[: array.ndim]) if array.ndim and array.strides else _row_major(shape)
    size = dtype.itemsize
    lowest = sum(min(0, (count - 1) * step) for count, step in zip(shape, steps))
    highest = sum(max(0, (count - 1) * step) for count, step in zip(shape, steps))
    start = (array.data or 0) + array.byte_offset
    memory = Memory(start + lowest * size, (highest - lowest + 1) * size, capsule)
    raw = numpy.frombuffer(memory.view(), numpy.uint8)
    copied = numpy.ndarray(
        (*shape, size), numpy.uint8, raw, offset=-lowest * size, strides=(*[step * size for step in steps], 1)
    )
    return LazyBuffer.from_buffer(Buffer(device, prod(shape), dtype).copyin(copied.tobytes()), shape)


# *** buffer → other package ***


def array_over(buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    """Returns a NumPy array over the elements of a buffer, not copied. Types that NumPy lacks become unsigned integers.

    The array keeps the memory alive. It is writable if kernels may write to the memory.
    """
    import numpy

    dtype = buffer.dtype
    numpy_dtype = numpy.dtype(f"uint{dtype.itemsize * 8}" if dtype.fmt is None else dtype.name)
    if prod(shape) == 0:
        return numpy.empty(shape, numpy_dtype)
    steps = tuple([stride * dtype.itemsize for stride in strides])
    return numpy.ndarray(shape, numpy_dtype, buffer.memoryview(), offset * dtype.itemsize, steps)


def export_array(array: Any, dtype: DType, max_version: tuple[int, int] | None, copied: bool) -> Any:
    """Returns a capsule over a NumPy array from `array_over`, with elements of `dtype`.

    Raises:
        BufferError: the memory is read-only, and the consumer's DLPack version has no flag for that.
    """
    import numpy

    is_versioned = max_version is not None and max_version[0] >= 1
    bits = array.view(f"uint{dtype.itemsize * 8}")  # NumPy rejects some dtypes: the code below sets the right one
    if is_versioned:
        try:
            capsule = bits.__dlpack__(max_version=VERSION)
        except TypeError:  # NumPy before 2.1
            capsule = bits.__dlpack__()
    elif array.flags.writeable:
        capsule = bits.__dlpack__()
    else:
        raise BufferError("memory that may only be read needs DLPack 1.0: the consumer asks for an older version")
    address, has_flags = _open_capsule(capsule)
    tensor = _DLManagedTensorVersioned.from_address(address).array if has_flags else _DLTensor.from_address(address)
    tensor.dtype.code, tensor.dtype.bits = _element_code(dtype)
    if has_flags and copied:
        _DLManagedTensorVersioned.from_address(address).flags |= COPIED
    assert isinstance(array, numpy.ndarray)
    return capsule
