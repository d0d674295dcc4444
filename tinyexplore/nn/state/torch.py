"""Loads the files that torch.save writes. Nothing that such a file names is imported or called.

Since PyTorch 1.6 a file is a zip archive with a pickle and one record for each storage. An older file has five pickles
in a row, then the storages.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from tinyexplore.device import Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.nn.state.archive import ArchiveError, find_content, read_members
from tinyexplore.nn.state.file import E4M3FNUZ, E5M2FNUZ, E8M0FNU, ByteFloat, FormatError, Source, TensorFile, fits
from tinyexplore.nn.state.pickles import PickleBudget, PickledGlobal, PickleError, plain_key, read_pickle
from tinyexplore.tensor import Tensor

_FORMAT = "a file of tensors by torch.save"
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
# For the structure around the tensors, in either kind of file: a million steps suffice for about 20 000 tensors.
_MAX_PICKLE = 64 << 20
_MAX_STEPS = 1_000_000
_MAX_TENSORS = 100_000
_MAX_STRIDED = 2_000  # most tensors with strides: each is a graph that gathers its elements
_MAX_RANK = 64
_MAX_DEPTH = 200
_MAX_BYTES = 1 << 62  # greatest size of a tensor; a broadcast tensor is larger than its storage

_STORAGES = {
    "Float": dtypes.float32,
    "Double": dtypes.float64,
    "Half": dtypes.float16,
    "BFloat16": dtypes.bfloat16,
    "Long": dtypes.int64,
    "Int": dtypes.int32,
    "Short": dtypes.int16,
    "Char": dtypes.int8,
    "Byte": dtypes.uint8,
    "Bool": dtypes.bool,
}
_DTYPES: dict[str, DType | ByteFloat] = {
    **{name: dtype for name, dtype in dtypes.fields().items() if not name.startswith("fp8")},
    "float8_e4m3fn": dtypes.fp8e4m3,
    "float8_e5m2": dtypes.fp8e5m2,
    **{kind.name: kind for kind in (E4M3FNUZ, E5M2FNUZ, E8M0FNU)},
    "half": dtypes.float16,
    "float": dtypes.float32,
    "double": dtypes.float64,
    "long": dtypes.int64,
    "int": dtypes.int32,
    "short": dtypes.int16,
}


class _NumpyType:
    """A NumPy dtype in a pickle: its code, and the byte order that the pickle sets afterwards."""

    def __init__(self, code: str, *_: Any) -> None:
        if not isinstance(code, str):
            raise PickleError(f"expected the code of a NumPy type as text, found a {type(code).__name__}")
        self.code = code

    def restore(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] == ">":
            raise PickleError("big-endian NumPy numbers are not supported")


def _rebuild_numpy_scalar(numpy_type: _NumpyType, content: bytes) -> Any:
    codes = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
    codes |= {"f2": "e", "f4": "f", "f8": "d"}
    return struct.unpack("<" + codes[numpy_type.code.lstrip("<=|")], content)[0]


def torch_load(fn: Source) -> dict[str, Any]:
    """Loads an object that torch.save wrote: nested dicts, lists and numbers, with tensors on the file's device.

    Raises:
        FormatError: the file is damaged; it names a class or function that plain tensors do not need; or the structure
            around the tensors takes more than 64 MiB or a million opcodes.
    """
    file = TensorFile(fn)
    try:
        tensors: dict[str, Any] = _load_zip(file) if bytes(file.raw[:2]) == b"PK" else _load_legacy(file)
        return tensors
    except ArchiveError as error:
        raise file.error(_FORMAT, f"damaged zip archive: {error}") from None
    except PickleError as error:
        raise file.error(_FORMAT, str(error)) from None


# *** tensors ***


class _Storage:
    """`count` elements of `dtype` from byte `start` on. In old files, `start` is known only at the end."""

    def __init__(self, file: TensorFile, dtype: DType, count: int, start: int | None) -> None:
        self.file, self.dtype, self.count, self.start = file, dtype, count, start


class _View:
    """A tensor in a storage. `tensor` builds it when the offset of the storage is known.

    kind: the float format of the bytes if it is not a dtype; `dtype` is uint8 then.
    """

    def __init__(
        self, storage: Any, offset: Any, size: Any, stride: Any, dtype: DType | ByteFloat | None = None
    ) -> None:
        if not isinstance(storage, _Storage):
            raise PickleError(f"expected the storage of a tensor, found a {type(storage).__name__}")
        self.storage = storage
        self.kind = dtype if isinstance(dtype, ByteFloat) else None
        self.dtype = dtypes.uint8 if isinstance(dtype, ByteFloat) else dtype or storage.dtype
        if len(size) != len(stride) or len(size) > _MAX_RANK:
            raise PickleError(
                f"a tensor has {len(size)} axes and {len(stride)} strides; expected as many, at most {_MAX_RANK}"
            )
        if any(type(number) is not int or not 0 <= number < _MAX_BYTES for number in (offset, *size, *stride)):
            raise PickleError("the offset, sizes and strides of a tensor must be whole numbers from 0 to 2⁶² - 1")
        if not isinstance(self.dtype, DType) or not fits(self.dtype, size, _MAX_BYTES):
            raise PickleError(f"a tensor of size {tuple(size)} exceeds 2⁶² bytes")
        self.offset, self.size, self.stride = offset, tuple(size), tuple(stride)
        available = storage.count * storage.dtype.itemsize // self.dtype.itemsize
        last_element = offset + sum((size - 1) * stride for size, stride in zip(self.size, self.stride))
        if prod(self.size) and last_element >= available:
            raise PickleError(
                f"a tensor of size {self.size} ends at element {last_element} of a storage of {available}"
            )

    @property
    def is_strided(self) -> bool:
        """Whether no order of the axes makes the elements contiguous."""
        order = self._order()
        return prod(self.size) > 0 and not _is_row_major(
            [self.size[axis] for axis in order], [self.stride[axis] for axis in order]
        )

    def _order(self) -> list[int]:
        """Returns the axes, largest stride first."""
        return sorted(range(len(self.size)), key=lambda axis: (-self.stride[axis], self.size[axis] == 1, axis))

    def tensor(self) -> Tensor:
        return self._read_elements() if self.kind is None else self.kind.decode(self._read_elements())

    def _read_elements(self) -> Tensor:
        storage = self.storage
        if storage.start is None:
            raise PickleError("the content of a storage is missing")
        start = storage.start + self.offset * self.dtype.itemsize
        if prod(self.size) == 0:
            return storage.file.tensor(storage.start, self.dtype, self.size)
        if not self.is_strided:
            order = self._order()
            packed = storage.file.tensor(start, self.dtype, [self.size[axis] for axis in order])
            return packed.permute([order.index(axis) for axis in range(len(order))])
        reach = 1 + sum((size - 1) * stride for size, stride in zip(self.size, self.stride))
        elements = storage.file.tensor(start, self.dtype, (reach,)).to(Device.DEFAULT)
        indices = Tensor.zeros(*self.size, dtype=dtypes.int64, device=elements.device)
        for axis, (size, stride) in enumerate(zip(self.size, self.stride)):
            steps = Tensor.arange(size, dtype=dtypes.int64, device=elements.device) * stride
            indices = indices + steps.reshape([-1 if i == axis else 1 for i in range(len(self.size))])
        return elements[indices]


def _is_row_major(size: Sequence[int], stride: Sequence[int]) -> bool:
    step = 1
    for extent, actual in zip(reversed(size), reversed(stride)):
        if extent != 1 and actual != step:
            return False
        step *= extent
    return True


def _rebuild_with_state(function: Any, tensor_type: Any, arguments: Any, state: Any) -> Any:
    """Builds a tensor that was saved with extra attributes, and ignores these attributes."""
    if not isinstance(function, PickledGlobal) or function.build is _rebuild_with_state:
        raise PickleError(
            "cannot load a tensor with extra attributes: its constructor is not a supported tensor constructor"
        )
    return function(arguments)


def _rebuild_device(device_type: Any, number: Any = None) -> str:
    if not isinstance(device_type, str) or not isinstance(number, int | None):
        raise PickleError(
            "expected a device name and an optional number, found "
            f"a {type(device_type).__name__} and a {type(number).__name__}"
        )
    return device_type if number is None else f"{device_type}:{number}"


def _rebuild_size(sizes: Any = ()) -> tuple[Any, ...]:
    if not isinstance(sizes, (list, tuple)):
        raise PickleError(f"expected a size as a list or tuple, found a {type(sizes).__name__}")
    return tuple(sizes)


def _rebuild_encoded(text: Any, coding: Any = "latin1") -> bytes:
    if not isinstance(text, str):
        raise PickleError(f"expected text that encodes bytes, found a {type(text).__name__}")
    return text.encode("latin1")


_BUILDERS: dict[str, Any] = {
    "collections.OrderedDict": lambda pairs=(): {plain_key(key): value for key, value in pairs},
    "torch._utils._rebuild_tensor": _View,
    "torch._utils._rebuild_tensor_v2": lambda storage, offset, size, stride, *_: _View(storage, offset, size, stride),
    "torch._utils._rebuild_tensor_v3": lambda storage, offset, size, stride, grad, hooks, dtype, *_: _View(
        storage, offset, size, stride, dtype
    ),
    "torch._utils._rebuild_parameter": lambda data, *_: data,
    "torch._utils._rebuild_parameter_with_state": lambda data, *_: data,
    "torch._tensor._rebuild_from_type_v2": _rebuild_with_state,
    "torch.nn.parameter.Parameter": lambda data=None, *_: data,
    "torch.Tensor": lambda data=None, *_: data,
    "torch.Size": _rebuild_size,
    "torch.device": _rebuild_device,
    "torch.storage.UntypedStorage": dtypes.uint8,
    "torch.UntypedStorage": dtypes.uint8,
    **{f"torch.{name}Storage": dtype for name, dtype in _STORAGES.items()},
    **{f"torch.{name}": dtype for name, dtype in _DTYPES.items()},
    "_codecs.encode": _rebuild_encoded,
    "numpy.dtype": _NumpyType,
    "numpy.core.multiarray.scalar": _rebuild_numpy_scalar,
    "numpy._core.multiarray.scalar": _rebuild_numpy_scalar,
    "builtins.set": lambda items=(): set(map(plain_key, items)),
    "__builtin__.set": lambda items=(): set(map(plain_key, items)),
}


def _with_tensors(value: Any) -> Any:
    """Returns `value` with a tensor in place of each view. Lists, tuples and dicts are rebuilt."""
    tensor_of: dict[int, Any] = {}
    tensors, strided = PickleBudget(_MAX_TENSORS), PickleBudget(_MAX_STRIDED)

    def of(value_part: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise PickleError(f"lists and dicts are nested more than {_MAX_DEPTH} deep")
        if id(value_part) in tensor_of:
            return tensor_of[id(value_part)]
        if isinstance(value_part, _View):
            tensors.spend(1)
            strided.spend(value_part.is_strided)
            tensor_of[id(value_part)] = value_part.tensor()
        elif isinstance(value_part, dict):
            named: dict[Any, Any] = {}
            tensor_of[id(value_part)] = named
            named.update((key, of(inner, depth + 1)) for key, inner in value_part.items())
        elif isinstance(value_part, list):
            items: list[Any] = []
            tensor_of[id(value_part)] = items
            items.extend(of(inner, depth + 1) for inner in value_part)
        elif isinstance(value_part, tuple):
            tensor_of[id(value_part)] = tuple(of(inner, depth + 1) for inner in value_part)
        else:
            return value_part
        return tensor_of[id(value_part)]

    return of(value, 0)


def _read_storage_id(value: Any) -> tuple[DType, str, int]:
    """Reads the dtype, the key and the number of elements of a storage from a persistent id."""
    if not isinstance(value, tuple) or len(value) not in (5, 6) or value[0] != "storage":
        raise PickleError(
            f"a persistent id is not a storage: {value!r:.80}; expected ('storage', dtype, key, device, count)"
        )
    _, dtype, key, _, count = value[:5]
    if not isinstance(dtype, DType) or not isinstance(key, str) or type(count) is not int or count < 0:
        raise PickleError("the persistent id of a storage lacks a dtype, a key or a number of elements")
    return dtype, key, count


# *** the zip archive ***


def _load_zip(file: TensorFile) -> Any:
    """Loads a file of PyTorch 1.6 or later: a zip archive with one pickle and one member per storage."""
    members = read_members(file.raw)
    pickles = [name for name in members if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(pickles) != 1:
        raise file.error(_FORMAT, f"the zip archive has {len(pickles)} members named */data.pkl; expected one")
    root = pickles[0].removesuffix("data.pkl")

    def extent_of(name: str) -> tuple[int, int]:
        member = members.get(root + name)
        if member is None:
            raise PickleError(f"{root + name:.80} is missing in the archive")
        return find_content(file.raw, member)

    def content(name: str) -> bytes:
        start, stop = extent_of(name)
        if stop - start > _MAX_PICKLE:
            raise PickleError(f"{root + name} has more than {_MAX_PICKLE} bytes, which no structure of tensors needs")
        return bytes(file.raw[start:stop])

    if root + "byteorder" in members and content("byteorder") != b"little":
        raise file.error(_FORMAT, "its numbers are big-endian")

    def storage(identity: Any) -> _Storage:
        dtype, key, count = _read_storage_id(identity)
        start, stop = extent_of(f"data/{key}")
        if count * dtype.itemsize > stop - start:
            raise PickleError(f"storage {key} has {stop - start} bytes, too few for {count} of {dtype.name}")
        return _Storage(file, dtype, count, start)

    return _with_tensors(read_pickle(io.BytesIO(content("data.pkl")), _BUILDERS, PickleBudget(_MAX_STEPS), storage))


# *** pickles in a row ***


def _load_legacy(file: TensorFile) -> Any:
    """Loads a file in the format before PyTorch 1.6: pickles, followed by the elements of each storage."""
    stream, budget = io.BytesIO(bytes(file.raw[:_MAX_PICKLE])), PickleBudget(_MAX_STEPS)

    def next_pickle(builders: dict[str, Any], storage: Any = None) -> Any:
        try:
            return read_pickle(stream, builders, budget, storage)
        except PickleError as error:
            if stream.read(1) or file.nbytes <= _MAX_PICKLE:
                raise
            problem = f"its pickles have more than {_MAX_PICKLE} bytes, which no structure of tensors needs"
            raise PickleError(f"{problem} ({error})") from None

    magic = next_pickle({})
    if magic != _LEGACY_MAGIC or next_pickle({}) != _LEGACY_PROTOCOL:
        raise file.error(
            _FORMAT, "it is neither a zip archive nor a sequence of pickles (the format before PyTorch 1.6)"
        )
    system = next_pickle({})
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise file.error(_FORMAT, "its numbers are big-endian")
    storages: dict[str, _Storage] = {}

    def storage(identity: Any) -> _Storage:
        dtype, key, count = _read_storage_id(identity)
        if len(identity) == 6 and identity[5] is not None:
            raise PickleError(f"storage {key} is a view of another one, which PyTorch wrote before 0.4")
        return storages.setdefault(key, _Storage(file, dtype, count, None))

    structure = next_pickle(_BUILDERS, storage)
    keys = next_pickle({})
    start = stream.tell()
    if not isinstance(keys, list):
        raise file.error(_FORMAT, "the list of its storages is missing")
    for key in keys:
        storage_found = storages.get(key) if isinstance(key, str) else None
        if storage_found is None:
            raise file.error(_FORMAT, "a storage does not belong to any tensor")
        count = int.from_bytes(file.raw[start : start + 8], "little")
        size = storage_found.count * storage_found.dtype.itemsize
        if count != storage_found.count or start + 8 + size > file.nbytes:
            raise file.error(
                _FORMAT,
                f"storage {key} must have {storage_found.count} elements; it is truncated or declares {count}",
            )
        storage_found.start = start + 8
        start += 8 + size
    return _with_tensors(structure)


__all__ = ["FormatError", "torch_load"]
