"""A file of tensors: gives format readers its bytes, and lazy tensors of its parts."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import StoredBuffer
from tinyexplore.tensor import Tensor

Source = Tensor | str | PathLike[str]


class FormatError(ValueError):
    """Raised for a file that is damaged, is not of its stated format, or requests a feature that files of tensors do
    not need."""


def fits(dtype: DType | ByteFloat, shape: Sequence[int], nbytes: int) -> bool:
    """Whether a tensor takes at most `nbytes` bytes. Axes of size 0 do not count, because their strides must be
    numbers, too."""
    return prod(size for size in shape if size) * dtype.itemsize <= nbytes


@dataclass(frozen=True)
class ByteFloat:
    """A float type of one byte that `dtypes` lacks.

    name: the name of the type in files.
    dtype: a dtype that represents all its values exactly.
    values: the value of each of the 256 bytes.
    itemsize: bytes of an element.
    """

    name: str
    dtype: DType
    values: tuple[float, ...]
    itemsize: int = 1

    def decode(self, stored: Tensor) -> Tensor:
        """Decodes the bytes to numbers on the default device."""
        codes = stored.to(Device.DEFAULT)
        return Tensor(list(self.values), dtype=self.dtype, device=codes.device)[codes]


def _decode_fnuz(bits: int, mantissa: int, bias: int) -> float:
    """Decodes a byte of a float format without infinities and -0 (Noune et al., "8-bit numerical formats", 2022)."""
    exponent, steps = (bits & 0x7F) >> mantissa, bits & ((1 << mantissa) - 1)
    if bits == 0x80:
        return math.nan
    size = math.ldexp(steps + ((exponent > 0) << mantissa), max(exponent, 1) - bias - mantissa)
    return -size if bits & 0x80 else size


E4M3FNUZ = ByteFloat("float8_e4m3fnuz", dtypes.float16, tuple(_decode_fnuz(bits, 3, 8) for bits in range(256)))
E5M2FNUZ = ByteFloat("float8_e5m2fnuz", dtypes.float16, tuple(_decode_fnuz(bits, 2, 16) for bits in range(256)))
E8M0FNU = ByteFloat("float8_e8m0fnu", dtypes.float32, (*(2.0 ** (bits - 127) for bits in range(255)), math.nan))


class TensorFile:
    """The bytes of a file, mapped but not read, or of a tensor of bytes.

    name: the name for messages.
    raw: the bytes.
    whole: the tensor of all bytes; tensors of parts are on its device.
    """

    def __init__(self, source: Source) -> None:
        self.whole = source if isinstance(source, Tensor) else Tensor(Path(source))
        if self.whole.dtype is not dtypes.uint8 or self.whole.ndim != 1:
            raise TypeError(
                f"a file as a tensor is a vector of uint8, not {self.whole.shape} of {self.whole.dtype.name}"
            )
        self.name = self.whole.device.partition(":")[2] or "the tensor"
        self.buffer = self.whole._read()
        self.raw = self.buffer.memoryview()

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes

    def error(self, expected: str, why: str) -> FormatError:
        """Returns the error for a file that was read as `expected` and is invalid because of `why`."""
        return FormatError(f"{self.name} is not {expected}: {why}")

    def stream(self) -> io.RawIOBase:
        """Returns the bytes as an open file."""
        return _Stream(self.raw)

    def tensor(self, start: int, dtype: DType | ByteFloat, shape: Sequence[int]) -> Tensor:
        """Returns elements from byte `start` on, row-major. They are read later, except for a ByteFloat, which is
        converted now."""
        if isinstance(dtype, ByteFloat):
            return dtype.decode(self.tensor(start, dtypes.uint8, shape))
        count = prod(shape)
        stored = self.buffer.device if self.buffer.device.startswith("DISK:") else "NPY"
        memory = self.buffer.memory.part(start, count * dtype.itemsize)
        lazydata = StoredBuffer.of(Buffer(stored, count, dtype, memory), tuple(shape))
        return Tensor(lazydata).to(self.whole.device)


class _Stream(io.RawIOBase):
    """Wraps a memoryview as a file that can be read and sought."""

    def __init__(self, raw: memoryview) -> None:
        self.raw, self.at = raw, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        content = self.raw[self.at : self.at + len(into)]
        into[: len(content)] = content
        self.at += len(content)
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: len(self.raw)}[whence]
        if start + offset < 0:
            raise OSError(f"the offset {start + offset} is negative")
        self.at = start + offset
        return self.at

    def tell(self) -> int:
        return self.at
