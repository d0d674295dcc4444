"""Reads the GGUF format: a header of keys with values, entries for the tensors, and their data.

Tensor data is often in one of GGML's block quantizations, which become float32 when they are computed. Source:
github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod
from typing import Any

from tinyexplore.device import Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.nn.state.file import FormatError, Source, TensorFile, fits
from tinyexplore.tensor import Tensor

_FORMAT = "a GGUF file"
_MAX_RANK = 8
_MAX_DEPTH = 4  # greatest depth of arrays in arrays
_MAX_HEADER = 256 << 20  # greatest number of bytes before the data
_MAX_VALUES = 10_000_000  # most values in the header; a vocabulary has some hundred thousand
_MAX_BYTES = 1 << 62
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9

PLAIN: dict[int, DType] = {
    0: dtypes.float32,
    1: dtypes.float16,
    24: dtypes.int8,
    25: dtypes.int16,
    26: dtypes.int32,
    27: dtypes.int64,
    28: dtypes.float64,
    30: dtypes.bfloat16,
}


def gguf_load(tensor: Source) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Loads a GGUF file, or a tensor of its bytes. Returns the keys with their values, and the tensors by name.

    Tensors of a plain dtype are on the file's device. Quantized tensors are lazy float32, computed from their blocks,
    on the default device or the device of `tensor`.

    Raises:
        FormatError: the file is damaged or of an unknown kind.
    """
    reader = _GGUFReader(TensorFile(tensor))
    file = reader.file
    if reader.take(4) != b"GGUF":
        raise file.error(_FORMAT, "it does not begin with GGUF")
    version = reader.number("I")
    if version not in (2, 3):
        raise file.error(_FORMAT, f"it has version {version}; supported: 2 and 3")
    tensor_count, key_count = reader.number("Q"), reader.number("Q")
    values: dict[str, Any] = {}
    for _ in range(reader.count(key_count, 13)):
        key = reader.text()
        if key in values:
            raise file.error(_FORMAT, f"two values are named {key!a:.80}")
        values[key] = reader.value(reader.number("I"), 0)
    entries = [_read_entry(reader) for _ in range(reader.count(tensor_count, 25))]
    alignment = values.get("general.alignment", 32)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
        raise file.error(_FORMAT, f"the alignment {alignment!a:.40} is not a power of two")
    start = -(-reader.at // alignment) * alignment
    tensors: dict[str, Tensor] = {}
    for name, shape, value_type, offset in entries:
        if name in tensors:
            raise file.error(_FORMAT, f"two tensors are named {name:.80}")
        if offset % alignment:
            raise file.error(
                _FORMAT, f"tensor {name:.80} starts at byte {offset} of the data, not at a multiple of {alignment}"
            )
        tensors[name] = _read_tensor(file, name, shape, value_type, start + offset)
    return values, tensors


class _GGUFReader:
    """Reads values in sequence from the bytes of a file. Raises FormatError at the end of the file."""

    def __init__(self, file: TensorFile) -> None:
        self.file, self.at, self.values = file, 0, 0

    def take(self, size: int) -> bytes:
        if size > self.file.nbytes - self.at:
            raise self.file.error(_FORMAT, f"it is truncated: expected {size} bytes at byte {self.at}")
        if self.at + size > _MAX_HEADER:
            raise self.file.error(_FORMAT, f"its header has more than {_MAX_HEADER} bytes")
        self.at += size
        return bytes(self.file.raw[self.at - size : self.at])

    def number(self, code: str) -> Any:
        (value,) = struct.unpack("<" + code, self.take(struct.calcsize(code)))
        return value

    def count(self, count: int, least_bytes: int) -> int:
        """Returns `count`. Raises FormatError if the rest of the file is too short for that many items of this size."""
        if count * least_bytes > self.file.nbytes - self.at:
            raise self.file.error(_FORMAT, f"it is truncated: expected {count} entries at byte {self.at}")
        self.values += count
        if self.values > _MAX_VALUES:
            raise self.file.error(_FORMAT, f"its header has more than {_MAX_VALUES} values")
        return count

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", errors="replace")

    def value(self, value_type: int, depth: int) -> Any:
        """Reads a value of one of the format's types: a number, a bool, text, or a list of values of one type."""
        if value_type in _NUMBERS:
            return self.number(_NUMBERS[value_type])
        if value_type == _TEXT:
            return self.text()
        if value_type != _ARRAY or depth == _MAX_DEPTH:
            raise self.file.error(_FORMAT, f"a value inside {depth} arrays has the unsupported type {value_type}")
        inner, length = self.number("I"), self.number("Q")
        if inner in _NUMBERS:
            code = _NUMBERS[inner]
            size = self.count(length, struct.calcsize(code)) * struct.calcsize(code)
            return list(struct.unpack(f"<{length}{code}", self.take(size)))
        return [self.value(inner, depth + 1) for _ in range(self.count(length, 8))]


def _read_entry(reader: _GGUFReader) -> tuple[str, tuple[int, ...], int, int]:
    """Reads the name, shape (the file has the innermost axis first), type and data offset of a tensor."""
    name, rank = reader.text(), reader.number("I")
    if rank > _MAX_RANK:
        raise reader.file.error(_FORMAT, f"tensor {name:.80} has {rank} axes")
    shape = tuple(reversed([reader.number("Q") for _ in range(rank)]))
    return name, shape, reader.number("I"), reader.number("Q")


def _read_tensor(file: TensorFile, name: str, shape: tuple[int, ...], value_type: int, start: int) -> Tensor:
    """Reads a tensor of one of the format's types: plain numbers, or blocks that its decoder expands."""
    if any(size >= _MAX_BYTES for size in shape) or not fits(dtypes.float64, shape, _MAX_BYTES):
        raise file.error(_FORMAT, f"tensor {name:.80} of shape {shape} exceeds 2⁶² bytes")
    count = prod(shape)
    quantized = QUANTIZED.get(value_type)
    if quantized is None and value_type not in PLAIN:
        supported = ", ".join(
            [dtype.name for dtype in PLAIN.values()] + [quantized.name for quantized in QUANTIZED.values()]
        )
        raise file.error(_FORMAT, f"tensor {name:.80} has type {value_type}; supported: {supported}")
    size, block = (PLAIN[value_type].itemsize, 1) if quantized is None else (quantized.nbytes, quantized.elements)
    if count % block or (count // block * size > file.nbytes - start):
        raise file.error(
            _FORMAT, f"tensor {name:.80} of shape {shape} is cut off, or its size is not a whole number of blocks"
        )
    if quantized is None:
        return file.tensor(start, PLAIN[value_type], shape)
    stored = file.tensor(start, dtypes.uint8, (count // block, size))
    blocks = stored.to(Device.DEFAULT) if Device.is_storage(stored.device) else stored
    return quantized.unpack(blocks).reshape(shape)


# *** blocks ***


class Quantization:
    """A block format of GGML.

    name: its name.
    nbytes: bytes of a block.
    elements: numbers in a block.
    unpack: converts uint8 (blocks, nbytes) to float32 (blocks, elements).
    """

    def __init__(self, name: str, nbytes: int, elements: int, unpack: Callable[[Tensor], Tensor]) -> None:
        self.name, self.nbytes, self.elements, self.unpack = name, nbytes, elements, unpack


def _read_half(blocks: Tensor, offset: int) -> Tensor:
    """Reads the float16 at byte `offset` of each block, as float32 (blocks, 1)."""
    low, high = (blocks[:, column : column + 1].cast(dtypes.uint16) for column in (offset, offset + 1))
    return (low + high * 256).bitcast(dtypes.float16).cast(dtypes.float32)


def _extract_bits(x: Tensor, shift: int, width: int) -> Tensor:
    """Extracts `width` bits of each byte, from bit `shift` on."""
    return (x >> shift) & ((1 << width) - 1)


def _split_nibbles(packed: Tensor) -> Tensor:
    """Returns the lower halves of all bytes of the last axis, then the upper ones."""
    return _extract_bits(packed, 0, 4).cat(_extract_bits(packed, 4, 4), dim=-1)


def _read_fifth_bits(blocks: Tensor, offset: int) -> Tensor:
    """Reads the fifth bit of 32 elements from the four bytes at `offset`. Each result is 0 or 16."""
    return ((blocks[:, offset : offset + 4].unsqueeze(-1) >> _count_to_eight(blocks)) & 1).reshape(-1, 32) * 16


def _count_to_eight(like: Tensor) -> Tensor:
    return Tensor.arange(8, dtype=dtypes.uint8, device=like.device)


def _decode_q4_0(blocks: Tensor) -> Tensor:
    return _read_half(blocks, 0) * (_split_nibbles(blocks[:, 2:18]).float() - 8)


def _decode_q4_1(blocks: Tensor) -> Tensor:
    return _read_half(blocks, 0) * _split_nibbles(blocks[:, 4:20]).float() + _read_half(blocks, 2)


def _decode_q5_0(blocks: Tensor) -> Tensor:
    return _read_half(blocks, 0) * ((_split_nibbles(blocks[:, 6:22]) + _read_fifth_bits(blocks, 2)).float() - 16)


def _decode_q5_1(blocks: Tensor) -> Tensor:
    return _read_half(blocks, 0) * (_split_nibbles(blocks[:, 8:24]) + _read_fifth_bits(blocks, 4)).float() + _read_half(
        blocks, 2
    )


def _decode_q8_0(blocks: Tensor) -> Tensor:
    return _read_half(blocks, 0) * blocks[:, 2:34].bitcast(dtypes.int8).float()


def _read_scales_and_mins(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the eight scales and eight minima of six bits from the twelve bytes at byte 4, as float32 (blocks, 8,
    1)."""
    low_bytes, middle_bytes, high_bytes = (blocks[:, offset : offset + 4] for offset in (4, 8, 12))
    scales = _extract_bits(low_bytes, 0, 6).cat(
        _extract_bits(high_bytes, 0, 4) + _extract_bits(low_bytes, 6, 2) * 16, dim=-1
    )
    mins = _extract_bits(middle_bytes, 0, 6).cat(
        _extract_bits(high_bytes, 4, 4) + _extract_bits(middle_bytes, 6, 2) * 16, dim=-1
    )
    return (
        (_read_half(blocks, 0) * scales.float()).unsqueeze(-1),
        (_read_half(blocks, 2) * mins.float()).unsqueeze(-1),
    )


def _split_quarters(packed: Tensor) -> Tensor:
    """Splits 64 bytes into four two-bit numbers each, in their order: (blocks, 2, 4, 32)."""
    halves = packed.reshape(-1, 2, 1, 32)
    return Tensor.cat(*(_extract_bits(halves, shift, 2) for shift in (0, 2, 4, 6)), dim=2)


def _decode_q2_k(blocks: Tensor) -> Tensor:
    scales, mins = (_extract_bits(blocks[:, :16], shift, 4).float().unsqueeze(-1) for shift in (0, 4))
    numbers = _split_quarters(blocks[:, 16:80]).reshape(-1, 16, 16).float()
    return _read_half(blocks, 80).unsqueeze(-1) * scales * numbers - _read_half(blocks, 82).unsqueeze(-1) * mins


def _decode_q3_k(blocks: Tensor) -> Tensor:
    lower = _split_nibbles(blocks[:, 96:104])
    upper = Tensor.cat(*(_extract_bits(blocks[:, 104:108], shift, 2) for shift in (0, 2, 4, 6)), dim=-1)
    scales = ((lower + upper * 16).float() - 32) * _read_half(blocks, 108)
    third = ((blocks[:, :32].unsqueeze(1) >> _count_to_eight(blocks).reshape(1, 8, 1)) & 1).reshape(-1, 2, 4, 32) * 4
    numbers = (_split_quarters(blocks[:, 32:96]) + third).reshape(-1, 16, 16).float() - 4
    return scales.unsqueeze(-1) * numbers


def _decode_q4_k(blocks: Tensor) -> Tensor:
    scales, mins = _read_scales_and_mins(blocks)
    numbers = _split_nibbles(blocks[:, 16:144].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return scales * numbers.float() - mins


def _decode_q5_k(blocks: Tensor) -> Tensor:
    scales, mins = _read_scales_and_mins(blocks)
    numbers = _split_nibbles(blocks[:, 48:176].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    fifth = ((blocks[:, 16:48].unsqueeze(1) >> _count_to_eight(blocks).reshape(1, 8, 1)) & 1) * 16
    return scales * (numbers + fifth).float() - mins


def _decode_q6_k(blocks: Tensor) -> Tensor:
    lower = _split_nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    upper = _split_quarters(blocks[:, 128:192])
    scales = (blocks[:, 192:208].bitcast(dtypes.int8).float() * _read_half(blocks, 208)).unsqueeze(-1)
    return scales * ((lower + upper * 16).float() - 32).reshape(-1, 16, 16)


QUANTIZED: dict[int, Quantization] = {
    2: Quantization("Q4_0", 18, 32, _decode_q4_0),
    3: Quantization("Q4_1", 20, 32, _decode_q4_1),
    6: Quantization("Q5_0", 22, 32, _decode_q5_0),
    7: Quantization("Q5_1", 24, 32, _decode_q5_1),
    8: Quantization("Q8_0", 34, 32, _decode_q8_0),
    10: Quantization("Q2_K", 84, 256, _decode_q2_k),
    11: Quantization("Q3_K", 110, 256, _decode_q3_k),
    12: Quantization("Q4_K", 144, 256, _decode_q4_k),
    13: Quantization("Q5_K", 176, 256, _decode_q5_k),
    14: Quantization("Q6_K", 210, 256, _decode_q6_k),
}

__all__ = ["FormatError", "QUANTIZED", "gguf_load"]
