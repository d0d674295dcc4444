"""Reads and writes the safetensors format: the length of a JSON header (8 bytes, little endian), the header, the data.

The header gives the dtype, shape and data range of each name. The data has no holes. Source:
huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
import os
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.nn.state.file import E4M3FNUZ, E5M2FNUZ, E8M0FNU, ByteFloat, Source, TensorFile, fits
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.checks import need_tensor, shown
from tinyexplore.util.untrusted_data import MEMORY, MEMORY_PER_BYTE, JsonLimits, UntrustedError, bounded_json

_OF_NAME: dict[str, str] = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "F8_E4M3": "fp8e4m3",
    "F8_E5M2": "fp8e5m2",
}
_FIELDS = dtypes.fields()
_NAMES: dict[str, DType] = {name: _FIELDS[field] for name, field in _OF_NAME.items() if field in _FIELDS}
_CODES = {dtype: name for name, dtype in _NAMES.items()}
_LOADED: dict[str, DType | ByteFloat] = {  # dtypes that this module reads but does not write
    **_NAMES,
    "F8_E4M3FNUZ": E4M3FNUZ,
    "F8_E5M2FNUZ": E5M2FNUZ,
    "F8_E8M0": E8M0FNU,
}
_MAX_HEADER = 100_000_000  # the limit of the format
_MAX_VALUES = 5_000_000  # in a header: about half a million tensors
_MAX_DEPTH = 16
_MAX_RANK = 64
_MAX_BYTES = 1 << 62
_FORMAT = "a safetensors file"


def safe_save(tensors: dict[str, Tensor], fn: str | PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Writes named tensors to a safetensors file. `metadata` goes into its header, as strings.

    The new file is written beside `fn` and then replaces it. So tensors that were loaded from `fn` can be saved to
    `fn`.
    """
    if not isinstance(tensors, dict):
        raise TypeError(f"safe_save: tensors is {shown(tensors)}: need a dict of names; get_state_dict(model) gives it")
    for name, tensor in tensors.items():
        need_tensor(tensor, f"safe_save: {name!r}")
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = {str(key): str(value) for key, value in metadata.items()}
    offset = 0
    for name, tensor in tensors.items():
        if name == "__metadata__":
            raise ValueError("safe_save: the tensor name __metadata__ is reserved by the format; use another name")
        size = tensor.nbytes()
        header[name] = {
            "dtype": _CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if tensors:
        first_tensor, *other_tensors = tensors.values()
        first_tensor.realize(*other_tensors)
    path = Path(fn)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(new, "wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for tensor in tensors.values():
                if tensor.numel():
                    file.write(tensor._read().memoryview())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def safe_load_metadata(fn: Source) -> tuple[Tensor, int, Any]:
    """Returns the file as a tensor of bytes, the offset of its data, and its header."""
    file = TensorFile(fn)
    start, header = _read_header(file)
    return file.whole, start, header


def safe_load(fn: Source) -> dict[str, Tensor]:
    """Returns the named tensors of a safetensors file on its DISK device. `.to(...)` or `load_state_dict` reads them.

    Raises FormatError if the file or its header is damaged.
    """
    file = TensorFile(fn)
    start, header = _read_header(file)
    header.pop("__metadata__", None)
    entries = [(name, *_check_entry(file, name, entry)) for name, entry in header.items()]
    expected_start = 0
    for name, _, _, start_in_data, stop in sorted(entries, key=lambda entry: (entry[3], entry[4])):
        if start_in_data != expected_start:
            raise file.error(
                _FORMAT, f"{name!a:.80} starts at byte {start_in_data} of the data; expected byte {expected_start}"
            )
        expected_start = stop
    if start + expected_start != file.nbytes:
        raise file.error(_FORMAT, f"its tensors end at byte {start + expected_start}, the file at byte {file.nbytes}")
    return {name: file.tensor(start + start_in_data, dtype, shape) for name, dtype, shape, start_in_data, _ in entries}


def _read_header(file: TensorFile) -> tuple[int, dict[str, Any]]:
    """Reads the header. Returns the offset of the data, and the header."""
    length = int.from_bytes(file.raw[:8], "little") if file.nbytes >= 8 else -1
    if not 0 <= length <= min(file.nbytes - 8, _MAX_HEADER):
        raise file.error(_FORMAT, f"{file.nbytes} bytes cannot hold a header of {length}")
    try:
        content = bytes(file.raw[8 : 8 + length])
        header = bounded_json(content, _header_limits(length), pairs=_without_doubles)
    except UntrustedError as error:
        raise file.error(_FORMAT, f"header: {error}") from None
    if not isinstance(header, dict):
        raise file.error(_FORMAT, f"its header is a {type(header).__name__}, not names with their entries")
    return 8 + length, header


def _header_limits(length: int) -> JsonLimits:
    memory = max(MEMORY, 2 * MEMORY_PER_BYTE * length)  # its values are shorter than those of traces
    return JsonLimits(_MAX_HEADER, _MAX_VALUES, _MAX_DEPTH, memory)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise UntrustedError("a name is repeated")
    return mapping


def _check_entry(file: TensorFile, name: str, entry: Any) -> tuple[DType | ByteFloat, tuple[int, ...], int, int]:
    """Checks an entry of the header. Returns the dtype, the shape, and the start and end in the data."""
    name = f"{name!a:.80}"
    try:
        code, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise file.error(_FORMAT, f"{name} needs dtype, shape and two data_offsets, and has {entry!a:.100}") from None
    if not isinstance(shape, list) or len(shape) > _MAX_RANK:
        raise file.error(_FORMAT, f"{name} has shape {shape!a:.100}: need a list of at most {_MAX_RANK} sizes")
    if any(type(size) is not int or size < 0 for size in (*shape, start, stop)):
        description = f"{name} has shape {shape!a:.100} at {start!a:.20} to {stop!a:.20}"
        raise file.error(_FORMAT, f"{description}: sizes and offsets must be whole numbers from 0 on")
    dtype = _LOADED.get(code) if isinstance(code, str) else None
    if dtype is None:
        raise file.error(_FORMAT, f"{name} has dtype {code!a:.50}; supported: {', '.join(_NAMES)}")
    if not fits(dtype, shape, _MAX_BYTES):
        raise file.error(_FORMAT, f"{name}, {dtype.name} of shape {shape!a:.100}, exceeds 2⁶² bytes")
    if prod(shape) * dtype.itemsize != stop - start:
        raise file.error(
            _FORMAT, f"{name}, {dtype.name} of shape {shape!a:.100}, cannot fill bytes {start!a:.30} to {stop!a:.30}"
        )
    return dtype, tuple(shape), start, stop
