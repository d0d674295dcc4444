"""Element types, their limits, and how they promote."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import Any
from weakref import WeakValueDictionary

from tinyexplore.util import config

ConstType = bool | int | float
LANES_BIT = 1 << 31  # flag in `DType.bit`: more than one lane


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """A scalar or vector element type.

    priority: the order of promotion.
    itemsize: bytes of an element, all lanes included.
    name: its name.
    fmt: the `struct` code of one lane; None if Python has none (bfloat16).
    count: number of lanes.
    """

    priority: int
    itemsize: int
    name: str
    fmt: str | None
    count: int = 1
    scalar: DType = field(init=False, repr=False)  # the type of one lane
    bit: int = field(init=False, repr=False)  # one bit per scalar type, and LANES_BIT: a set of types is an int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scalar", self if self.count == 1 else _make_vector_dtype(self, 1))
        object.__setattr__(self, "bit", 1 << (self.priority + 1) | (LANES_BIT if self.count > 1 else 0))

    def __repr__(self) -> str:
        return f"dtypes.{self.name}" + (f".vec({self.count})" if self.count > 1 else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.name, self.count)

    def ptr(self, size: int, space: str = "global") -> PtrDType:
        """Returns the type of an address of `size` elements; space: "global" | "local" | "shared" | "reg"."""
        return PtrDType(self, size, space)

    def __call__(self) -> DType:
        """Returns the type itself, so that `dtype.scalar()` works: a method in tinygrad, an attribute here."""
        return self

    def __lt__(self, other: DType) -> bool:
        """Whether this type precedes `other` in the order of promotion. For vectors, fewer lanes come first."""
        if not isinstance(other, DType):
            return NotImplemented
        return (self.priority, self.itemsize, self.name, self.count) < (
            other.priority,
            other.itemsize,
            other.name,
            other.count,
        )

    def __le__(self, other: DType) -> bool:
        return self is other or self < other

    def vec(self, count: int) -> DType:
        """Returns this type with `count` lanes."""
        return self if count == self.count else _make_vector_dtype(self, count)

    @property
    def bits(self) -> int:
        return self.itemsize * 8

    @property
    def base(self) -> DType:
        """The type of a value loaded from memory of this type: the type itself, or float32 for a texture."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class ImageDType(DType):
    """A texture of `shape` (height, width, 4): pixels of four numbers.

    Devices here store it in plain memory, as elements of `scalar`. Values loaded from a texture are float32, as on
    texture units. A tensor that is cast to a texture type has the dtype `base`, with values rounded to `scalar`.
    """

    shape: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"dtypes.{self.name}({self.shape})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_image_dtype, (self.name, self.shape)

    @property
    def base(self) -> DType:
        """The type of a value loaded from a texture: float32."""
        return dtypes.float32

    def fits(self, shape: Sequence[Any]) -> bool:
        """Whether a tensor of `shape` fills the texture, with whole pixels in each row."""
        return prod(shape) == prod(self.shape) and self.shape[-1:] == (4,) and bool(shape) and shape[-1] % 4 == 0

    def __post_init__(self) -> None:
        scalar = dtypes.float16 if self.name == "imageh" else dtypes.float32
        object.__setattr__(self, "scalar", scalar)
        object.__setattr__(self, "bit", scalar.bit)


@cache
def _make_image_dtype(name: str, shape: tuple[int, ...]) -> ImageDType:
    base = dtypes.float16 if name == "imageh" else dtypes.float32
    return ImageDType(100, base.itemsize, name, base.fmt, 1, shape)


class _WeakrefSlot:
    """Adds the slot for weak references (`dataclass(weakref_slot=True)` needs Python 3.11)."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True, eq=False)
class PtrDType(_WeakrefSlot):
    """The address of elements. Equal types are the same object.

    base: the dtype of an element.
    size: the number of elements.
    space: "global", "local", "shared" or "reg".
    count: the number of lanes.
    bit: the bit of this dtype in a set of dtypes.
    """

    base: DType
    size: int
    space: str = "global"
    count: int = field(default=1, init=False, repr=False)
    bit: int = field(init=False, repr=False)

    def __new__(cls, base: DType, size: int, space: str = "global") -> PtrDType:
        interned = _POINTERS.get((base, size, space))
        return _POINTERS.setdefault((base, size, space), object.__new__(cls)) if interned is None else interned

    def __post_init__(self) -> None:
        object.__setattr__(self, "bit", self.base.bit)

    def __repr__(self) -> str:
        return f"{self.base!r}.ptr({self.size}, {self.space!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PtrDType, (self.base, self.size, self.space)

    @property
    def name(self) -> str:
        return f"{self.base.name}*"


_POINTERS: WeakValueDictionary[tuple[DType, int, str], PtrDType] = WeakValueDictionary()


def _make_vector_dtype(base: DType, count: int) -> DType:
    key = (base.name, count)
    if (interned := _INTERNED.get(key)) is None:
        interned = _INTERNED[key] = replace(base, count=count)
    return interned


def _restore(name: str, count: int) -> DType:
    return getattr(dtypes, name).vec(count) if name != "void" else dtypes.void


@cache
def _find_float(name: str) -> DType:
    dtype = to_dtype(name)
    if not dtypes.is_float(dtype):
        raise ValueError(f"DEFAULT_FLOAT={name}: the default float cannot be {dtype.name}, need a float dtype")
    return dtype


class _DTypesMeta(type):
    """The metaclass of `dtypes`: `default_float` is the assigned type, else the type that DEFAULT_FLOAT names."""

    _chosen_float: DType | None = None

    @property
    def default_float(cls) -> DType:
        return cls._chosen_float or _find_float(config().DEFAULT_FLOAT)

    @default_float.setter
    def default_float(cls, dtype: DType) -> None:
        if dtype is not None and not dtypes.is_float(dtype):
            raise ValueError(f"the default float cannot be {dtype.name}: need a float dtype")
        cls._chosen_float = dtype


class dtypes(metaclass=_DTypesMeta):
    """The element types, and functions on them."""

    void = DType(-1, 0, "void", None)
    bool = DType(0, 1, "bool", "?")
    int8 = DType(1, 1, "int8", "b")
    uint8 = DType(2, 1, "uint8", "B")
    int16 = DType(3, 2, "int16", "h")
    uint16 = DType(4, 2, "uint16", "H")
    int32 = DType(5, 4, "int32", "i")
    uint32 = DType(6, 4, "uint32", "I")
    int64 = DType(7, 8, "int64", "q")
    uint64 = DType(8, 8, "uint64", "Q")
    fp8e4m3 = DType(9, 1, "fp8e4m3", None)  # 3 bits of mantissa, up to 448, no infinity
    fp8e5m2 = DType(10, 1, "fp8e5m2", None)  # 2 bits of mantissa, up to 57344
    float16 = DType(11, 2, "float16", "e")
    bfloat16 = DType(12, 2, "bfloat16", None)
    float32 = DType(13, 4, "float32", "f")
    float64 = DType(14, 8, "float64", "d")

    half, float, double = float16, float32, float64
    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64
    pyint = int64  # the type of Python ints in tensors
    index = int64  # the type of index arithmetic inside kernels: large enough for tensors past 4 GiB

    fp8s = (fp8e4m3, fp8e5m2)  # Source: "FP8 formats for deep learning" (Micikevicius et al., 2022)
    floats = (float16, bfloat16, float32, float64)
    unsigned = (uint8, uint16, uint32, uint64)
    signed = (int8, int16, int32, int64)
    uints, sints = unsigned, signed
    ints = unsigned + signed
    all = (bool,) + ints + floats  # types that programs compute with; fp8s are bytes there (`codegen/rewrites/fp8.py`)

    default_int = int32

    @staticmethod
    def is_float(x: DType) -> bool:  # type: ignore[valid-type]
        return x.scalar in _FLOATS

    @staticmethod
    def is_int(x: DType) -> bool:  # type: ignore[valid-type]
        return x.scalar in _INTS

    @staticmethod
    def is_unsigned(x: DType) -> bool:  # type: ignore[valid-type]
        return x.scalar in dtypes.unsigned

    @staticmethod
    def is_bool(x: DType) -> bool:  # type: ignore[valid-type]
        return x.scalar == dtypes.bool

    @staticmethod
    def from_py(x: Any) -> DType:
        """Returns the dtype of a Python scalar, or of the elements of a (nested) list or tuple."""
        if isinstance(x, builtins.bool):
            return dtypes.bool
        if isinstance(x, builtins.int):
            return dtypes.default_int
        if isinstance(x, builtins.float):
            return dtypes.default_float
        if isinstance(x, (list, tuple)):
            dtypes_of_items = [dtypes.from_py(item) for item in x]
            return max(dtypes_of_items, key=lambda dtype: dtype.priority) if dtypes_of_items else dtypes.default_float
        raise TypeError(f"no dtype for {type(x).__name__} {x!r}; expected bool, int, float or a nested list of these")

    @staticmethod
    def as_const(value: ConstType, dtype: DType) -> ConstType:
        """Converts `value` to the Python type of `dtype`. Returns infinity if an IEEE float would round to it."""
        if dtypes.is_float(dtype):
            number = builtins.float(value)
            if -65e3 < number < 65e3:  # true of most values
                return number
            return (
                math.copysign(math.inf, number) if abs(number) >= _INFINITE_FROM.get(dtype.scalar, math.inf) else number
            )
        if dtypes.is_bool(dtype):
            return builtins.bool(value)
        return builtins.int(value)

    @staticmethod
    def min(dtype: DType) -> ConstType:
        """Returns the least value of `dtype` (minus infinity for floats that have it)."""
        if dtypes.is_float(dtype):
            return -448.0 if dtype.scalar is dtypes.fp8e4m3 else -math.inf
        if dtypes.is_bool(dtype):
            return False
        return 0 if dtypes.is_unsigned(dtype) else -(1 << (dtype.bits - 1))

    @staticmethod
    def max(dtype: DType) -> ConstType:
        """Returns the greatest value of `dtype` (infinity for floats that have it)."""
        if dtypes.is_float(dtype):
            return 448.0 if dtype.scalar is dtypes.fp8e4m3 else math.inf
        if dtypes.is_bool(dtype):
            return True
        return (1 << (dtype.bits - (0 if dtypes.is_unsigned(dtype) else 1))) - 1

    @staticmethod
    def imageh(shp: Sequence[builtins.int]) -> ImageDType:
        """Returns the type of a float16 texture of shape `shp`."""
        return _make_image_dtype("imageh", tuple(shp))

    @staticmethod
    def imagef(shp: Sequence[builtins.int]) -> ImageDType:
        """Returns the type of a float32 texture of shape `shp`."""
        return _make_image_dtype("imagef", tuple(shp))

    @staticmethod
    def fields() -> dict[str, DType]:
        """Returns every type by its name."""
        return {dtype.name: dtype for dtype in (*dtypes.all, *dtypes.fp8s)}


_INTERNED: dict[tuple[str, builtins.int], DType] = {
    (dtype.name, 1): dtype for dtype in (*dtypes.fields().values(), dtypes.void)
}

# The direct successors of each type in the promotion lattice. The least upper bound is the least common successor.
_PROMOTES_TO = {
    "bool": ("int8", "uint8", "fp8e4m3", "fp8e5m2"),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("float16", "bfloat16"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("float16", "bfloat16"),
    "fp8e4m3": ("float16", "bfloat16"),
    "fp8e5m2": ("float16", "bfloat16"),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float64",),
    "float64": (),
}

# half a step above the greatest finite number: by IEEE 754, numbers from here on round to infinity
_INFINITE_FROM = {
    dtypes.float16: (2 - 2.0**-11) * 2.0**15,
    dtypes.bfloat16: (2 - 2.0**-8) * 2.0**127,
    dtypes.float32: (2 - 2.0**-24) * 2.0**127,
}
_FLOATS, _INTS = frozenset(dtypes.floats + dtypes.fp8s), frozenset(dtypes.ints)


def _find_successors(name: str) -> frozenset[str]:
    successors = {name}
    for successor in _PROMOTES_TO[name]:
        successors |= _find_successors(successor)
    return frozenset(successors)


_SUCCESSORS = {name: _find_successors(name) for name in _PROMOTES_TO}


@cache
def least_upper_dtype(*operands: DType) -> DType:
    """Returns the least type in the promotion lattice that each of `operands` promotes to."""
    common = frozenset.intersection(*(_SUCCESSORS[dtype.name] for dtype in operands))
    return min(map(to_dtype, common), key=lambda dtype: dtype.priority)


def least_upper_float(dtype: DType) -> DType:
    """Returns `dtype` itself if it is a float, else the least float that it and the default float promote to."""
    return dtype if dtypes.is_float(dtype) else least_upper_dtype(dtype, dtypes.default_float)


def to_dtype(x: DType | str) -> DType:
    """Returns the DType for a DType or a name ("float32", "half", "HALF", …). A texture becomes its `base`."""
    if isinstance(x, DType):
        if x.count > 1:
            raise ValueError(
                f"a tensor of {x!r}: elements must be scalars, such as {x.scalar!r}; use another axis for vectors"
            )
        return x.base
    dtype = getattr(dtypes, x.lower(), None) if isinstance(x, str) and not x.startswith("default") else None
    if not isinstance(dtype, DType):
        raise ValueError(f"unknown dtype {x!r}; supported: {', '.join(dtypes.fields())}")
    return dtype


__all__ = [
    "ConstType",
    "DType",
    "ImageDType",
    "PtrDType",
    "dtypes",
    "least_upper_dtype",
    "least_upper_float",
    "to_dtype",
]
