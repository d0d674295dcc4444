"""The state of models: named tensors, and the safetensors file format.

A safetensors file is the length of a JSON header (8 bytes, little endian), the header (name → dtype, shape, place in
the data), and the data.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

_NAMES: dict[str, DType] = {
    "BOOL": dtypes.bool,
    "I8": dtypes.int8,
    "U8": dtypes.uint8,
    "I16": dtypes.int16,
    "U16": dtypes.uint16,
    "I32": dtypes.int32,
    "U32": dtypes.uint32,
    "I64": dtypes.int64,
    "U64": dtypes.uint64,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
_CODES = {dtype: name for name, dtype in _NAMES.items()}


# *** the tensors of an object ***


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
    """Every tensor in `obj` (attributes, lists, tuples, dicts, nested), by its dotted name."""
    return dict(_named(obj, prefix.rstrip("."), tensor_type))


def _named(obj: Any, name: str, tensor_type: type) -> Iterator[tuple[str, Tensor]]:
    if isinstance(obj, tensor_type):
        yield name, obj  # type: ignore[misc]
        return
    if hasattr(obj, "_asdict"):
        parts = obj._asdict()
    elif isinstance(obj, dict):
        parts = obj
    elif isinstance(obj, (list, tuple)):
        parts = dict(enumerate(obj))
    elif hasattr(obj, "__dict__") and not isinstance(obj, type):
        parts = obj.__dict__
    else:
        return
    for key, part in parts.items():
        yield from _named(part, f"{name}.{key}" if name else str(key), tensor_type)


def get_parameters(obj: Any) -> list[Tensor]:
    """Every tensor in `obj`."""
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True, consume: bool = False
) -> None:
    """The tensors of `model` take over the values of those with their names, converted to their dtype.

    `strict`: every name must be known. `consume` empties `state_dict` on the way, to free memory.
    """
    from tqdm.auto import tqdm

    own = get_state_dict(model)
    missing = [name for name in own if name not in state_dict]
    unknown = [name for name in state_dict if name not in own]
    if strict and missing:
        raise KeyError(f"load_state_dict: the model has {missing[:5]} ({len(missing)} in all), the state has not")
    if strict and unknown:
        raise KeyError(f"load_state_dict: the state has {unknown[:5]} ({len(unknown)} in all), the model has not")
    for name, tensor in tqdm(own.items(), desc="loading", disable=not verbose, leave=False, delay=1):
        if name not in state_dict:
            continue
        found = state_dict.pop(name) if consume else state_dict[name]
        if found.shape != tensor.shape:
            raise ValueError(
                f"load_state_dict: {name} has shape {tensor.shape} in the model, {found.shape} in the state"
            )
        tensor.replace(found.to(tensor.device).cast(tensor.dtype)).realize()


# *** safetensors ***


def safe_save(tensors: dict[str, Tensor], fn: str | PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Writes named tensors to a safetensors file; `metadata` (strings) goes into its header."""
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = {key: str(value) for key, value in metadata.items()}
    place = 0
    for name, tensor in tensors.items():
        size = tensor.nbytes()
        header[name] = {
            "dtype": _CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if tensors:
        first, *others = tensors.values()
        first.realize(*others)
    with open(fn, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for tensor in tensors.values():
            if tensor.numel():
                file.write(tensor._read().memoryview())


def _bytes_of(fn: Tensor | str | PathLike[str]) -> memoryview:
    """The content of a file, mapped and not read, or of a tensor of bytes."""
    if isinstance(fn, Tensor):
        return fn._read().memoryview()
    with open(Path(fn), "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _header(raw: memoryview, fn: object) -> tuple[int, dict[str, Any]]:
    """Where the data starts, and the header."""
    where = "the tensor" if isinstance(fn, Tensor) else str(fn)
    length = int.from_bytes(raw[:8], "little") if raw.nbytes >= 8 else -1
    if not 0 <= length <= raw.nbytes - 8:
        raise ValueError(f"{where} is not a safetensors file: {raw.nbytes} bytes cannot hold a header of {length}")
    try:
        header = json.loads(bytes(raw[8 : 8 + length]))
    except ValueError as error:
        raise ValueError(f"{where} is not a safetensors file: its header is not JSON ({error})") from None
    return 8 + length, header


def safe_load_metadata(fn: Tensor | str | PathLike[str]) -> tuple[Tensor, int, Any]:
    """The file as a tensor of bytes, where its data starts, and its header."""
    raw = _bytes_of(fn)
    start, header = _header(raw, fn)
    buffer = Buffer.from_memory(Device.canonicalize(None), dtypes.uint8, raw)
    return Tensor(LazyBuffer.from_buffer(buffer, (raw.nbytes,))), start, header


def safe_load(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The named tensors of a safetensors file. They lie in the mapped file until something changes them."""
    raw = _bytes_of(fn)
    start, header = _header(raw, fn)
    device = Device.canonicalize(None)
    found: dict[str, Tensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype = _NAMES.get(entry["dtype"])
        if dtype is None:
            raise ValueError(f"{name} has dtype {entry['dtype']}; known: {', '.join(_NAMES)}")
        begin, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        content = raw[start + begin : start + end]
        if (start + begin) % dtype.itemsize:
            buffer = Buffer(device, (end - begin) // dtype.itemsize, dtype).copyin(content)
        else:
            buffer = Buffer.from_memory(device, dtype, content)
        found[name] = Tensor(LazyBuffer.from_buffer(buffer, shape))
    return found
