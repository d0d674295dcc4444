"""Tensor cores as data: the matrices that a warp multiplies in one instruction, and the lane of each element.

A core adds the product of A (m × k) and B (k × n) to C (m × n). No lane has a whole matrix: the elements are in the
registers of all lanes, at positions that a permutation of bits describes. `L2` is bit 2 of the lane's number, `r0` bit
0 of the register's, and a coordinate is a list of such bits, the lowest first: `rows=("L2", "L3", "L4", "r1")` means
row = lane / 4 + 8 for the registers that have bit 1. Lanes that differ only in a bit that no coordinate names hold the
same elements.

Sources: NVIDIA's PTX ISA, "Matrix Fragments for mma.m16n8k8" (…k16, …k32); AMD's "CDNA 2 Instruction Set Architecture"
and its Matrix Instruction Calculator for MFMA; AMD's "RDNA 3 Instruction Set Architecture", section "Wave Matrix
Multiply Accumulate". Apple does not document the layout of its simdgroup matrices; the one here is what Apple's MLX
relies on. Intel's "Architecture Instruction Set Extensions Programming Reference", chapter "Intel AMX", has the tiles
of a CPU.

A CPU with AMX has eight tile registers of 16 rows of 64 bytes. There, rows of a register correspond to the lanes of a
GPU: `L2` is bit 2 of the row's number, and `r0` bit 0 of the position in the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import frexp, fsum, isfinite, ldexp
from operator import mul

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.semantics import bfloat16_from_bits, to_dtype_range

ElementPosition = tuple[int, int]  # (row, column)


@dataclass(frozen=True)
class FragmentLayout:
    """The lane and the register of each element of a matrix.

    Registers are counted by element: two 16-bit values that share a register of 32 bits count as two.
    rows: the bits of the row, lowest first.
    columns: the bits of the column, lowest first.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def shape(self) -> ElementPosition:
        return 1 << len(self.rows), 1 << len(self.columns)

    @property
    def registers(self) -> int:
        """The number of elements that each lane holds."""
        return 1 << sum(bit.startswith("r") for bit in (*self.rows, *self.columns))

    def copies(self, lanes: int) -> int:
        """Returns the number of lanes that hold each element, among `lanes` lanes."""
        rows, columns = self.shape
        return lanes * self.registers // (rows * columns)

    def position_of(self, lane: int, register: int) -> ElementPosition:
        """Returns the row and the column of the element that `lane` holds in `register`."""

        def number(bits: tuple[str, ...]) -> int:
            holder_numbers = {"L": lane, "r": register}
            return sum((holder_numbers[bit[0]] >> int(bit[1:]) & 1) << exponent for exponent, bit in enumerate(bits))

        return number(self.rows), number(self.columns)


@dataclass(frozen=True)
class TensorCore:
    """An instruction that a warp executes together: C + A · B, of shapes m × n, m × k and k × n.

    name: its name in programs and in the explorer.
    factor: the dtype of A and B in memory.
    accumulator: the dtype of C.
    lanes: the number of lanes of the warp.
    a: the lanes and registers of A.
    b: the lanes and registers of B.
    c: the lanes and registers of C.
    call: the instruction in `language`: of PTX for cuda, a builtin of clang for hip, a function of metal, an
    instruction of the CPU for x86.
    language: the language of `call`.
    source: the document with the map of lanes.
    mantissa: the bits of a factor's fraction that it multiplies; 0: all of them.
    tiles: the number of tile registers of a CPU, of which the product takes one for each matrix; 0: a GPU, whose lanes
    hold the matrices.
    needs: the required features of the CPU, as LLVM calls them.
    """

    name: str
    factor: DType
    accumulator: DType
    lanes: int
    a: FragmentLayout
    b: FragmentLayout
    c: FragmentLayout
    call: str
    language: str
    source: str
    mantissa: int = 0
    tiles: int = 0
    needs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<TensorCore {self.name}>"

    @property
    def dims(self) -> tuple[int, int, int]:
        """m, n and k."""
        return self.a.shape[0], self.b.shape[1], self.a.shape[1]

    @property
    def layouts(self) -> dict[str, FragmentLayout]:
        return {"A": self.a, "B": self.b, "C": self.c}

    def describe(self) -> str:
        m, n, k = self.dims
        capacity = f"{self.tiles} tile registers of {self.lanes} rows" if self.tiles else f"{self.lanes} lanes"
        return f"{self.name}: {m} × {n} × {k}, {self.factor.name} → {self.accumulator.name}, {capacity}"

    @property
    def holder(self) -> tuple[str, str]:
        """The names of an element's holder and position: lane and register, or row of the tile and position."""
        return ("row of the tile", "place") if self.tiles else ("lane", "register")

    @property
    def words(self) -> int:
        """The number of neighboring steps of a factor in a 32-bit word of a tile."""
        return dtypes.int32.itemsize // self.factor.itemsize


def _make_layout(rows: str, columns: str) -> FragmentLayout:
    return FragmentLayout(tuple(rows.split()), tuple(columns.split()))


_PTX = 'PTX ISA, "Matrix Fragments for mma"'
_PTX_C = _make_layout("L2 L3 L4 r1", "r0 L0 L1")
_K8 = (_make_layout("L2 L3 L4 r1", "r0 L0 L1"), _make_layout("r0 L0 L1", "L2 L3 L4"), _PTX_C)
_K16 = (_make_layout("L2 L3 L4 r1", "r0 L0 L1 r2"), _make_layout("r0 L0 L1 r1", "L2 L3 L4"), _PTX_C)
_K32 = (_make_layout("L2 L3 L4 r2", "r0 r1 L0 L1 r3"), _make_layout("r0 r1 L0 L1 r2", "L2 L3 L4"), _PTX_C)
_TF32 = (_make_layout("L2 L3 L4 r0", "L0 L1 r1"), _make_layout("L0 L1 r0", "L2 L3 L4"), _PTX_C)

_CDNA = "CDNA 2 Instruction Set Architecture; Matrix Instruction Calculator"
_MFMA_32 = (
    _make_layout("L0 L1 L2 L3 L4", "r0 r1 L5"),
    _make_layout("r0 r1 L5", "L0 L1 L2 L3 L4"),
    _make_layout("r0 r1 L5 r2 r3", "L0 L1 L2 L3 L4"),
)
_MFMA_16 = (
    _make_layout("L0 L1 L2 L3", "r0 r1 L4 L5"),
    _make_layout("r0 r1 L4 L5", "L0 L1 L2 L3"),
    _make_layout("r0 r1 L4 L5", "L0 L1 L2 L3"),
)

_RDNA = 'RDNA 3 Instruction Set Architecture, "Wave Matrix Multiply Accumulate"'
_WMMA = (  # both halves of the warp hold all of A, and all of B
    _make_layout("L0 L1 L2 L3", "r0 r1 r2 r3"),
    _make_layout("r0 r1 r2 r3", "L0 L1 L2 L3"),
    _make_layout("L4 r0 r1 r2", "L0 L1 L2 L3"),
)

_INTEL = 'Intel, "Architecture Instruction Set Extensions Programming Reference", chapter "Intel AMX"'
_AMX_C = _make_layout("L0 L1 L2 L3", "r0 r1 r2 r3")
_AMX_16 = (_make_layout("L0 L1 L2 L3", "r0 r1 r2 r3 r4"), _make_layout("r0 L0 L1 L2 L3", "r1 r2 r3 r4"), _AMX_C)
_AMX_8 = (_make_layout("L0 L1 L2 L3", "r0 r1 r2 r3 r4 r5"), _make_layout("r0 r1 L0 L1 L2 L3", "r2 r3 r4 r5"), _AMX_C)

_MLX = "not documented by Apple; as its MLX relies on it (steel/gemm/mma.h)"
_EIGHT = _make_layout("L1 L2 L4", "r0 L0 L3")
_SIMDGROUP = (_EIGHT, _EIGHT, _EIGHT)

_F16, _BF16, _F32 = dtypes.float16, dtypes.bfloat16, dtypes.float32
_MMA = "mma.sync.aligned.{shape}.row.col.{c}.{ab}.{ab}.{c}"


def _make_mma(
    shape: str,
    ab: str,
    factor: DType,
    layouts: tuple[FragmentLayout, FragmentLayout, FragmentLayout],
    mantissa: int = 0,
) -> TensorCore:
    accumulator, c = (dtypes.int32, "s32") if factor is dtypes.int8 else (_F32, "f32")
    call = _MMA.format(shape=shape, ab=ab, c=c)
    return TensorCore(f"mma_{shape}_{ab}", factor, accumulator, 32, *layouts, call, "cuda", _PTX, mantissa)


def _make_amd_core(
    call: str, factor: DType, lanes: int, layouts: tuple[FragmentLayout, FragmentLayout, FragmentLayout], source: str
) -> TensorCore:
    return TensorCore(call, factor, _F32, lanes, *layouts, f"__builtin_amdgcn_{call}", "hip", source)


def _make_simdgroup_core(name: str, factor: DType) -> TensorCore:
    call = "simdgroup_multiply_accumulate"
    return TensorCore(f"simdgroup_8x8x8_{name}", factor, _F32, 32, *_SIMDGROUP, call, "metal", _MLX)


def _make_amx_core(
    call: str, factor: DType, layouts: tuple[FragmentLayout, FragmentLayout, FragmentLayout], feature: str
) -> TensorCore:
    accumulator = dtypes.int32 if factor is dtypes.int8 else _F32
    needs = ("amx-tile", feature)
    return TensorCore(f"amx_{call}", factor, accumulator, 16, *layouts, call, "x86", _INTEL, tiles=8, needs=needs)


# the cores of each GPU, larger ones first
TURING = (_make_mma("m16n8k8", "f16", _F16, _K8),)
AMPERE = (
    _make_mma("m16n8k16", "f16", _F16, _K16),
    *TURING,
    _make_mma("m16n8k16", "bf16", _BF16, _K16),
    _make_mma("m16n8k8", "bf16", _BF16, _K8),
    _make_mma("m16n8k32", "s8", dtypes.int8, _K32),
    _make_mma("m16n8k8", "tf32", _F32, _TF32, mantissa=10),
)
CDNA_2 = (
    _make_amd_core("mfma_f32_16x16x16f16", _F16, 64, _MFMA_16, _CDNA),
    _make_amd_core("mfma_f32_32x32x8f16", _F16, 64, _MFMA_32, _CDNA),
    _make_amd_core("mfma_f32_16x16x16bf16_1k", _BF16, 64, _MFMA_16, _CDNA),
    _make_amd_core("mfma_f32_32x32x8bf16_1k", _BF16, 64, _MFMA_32, _CDNA),
)
RDNA_3 = (
    _make_amd_core("wmma_f32_16x16x16_f16_w32", _F16, 32, _WMMA, _RDNA),
    _make_amd_core("wmma_f32_16x16x16_bf16_w32", _BF16, 32, _WMMA, _RDNA),
)
APPLE = (_make_simdgroup_core("f16", _F16), _make_simdgroup_core("bf16", _BF16), _make_simdgroup_core("f32", _F32))

AMX = (
    _make_amx_core("tdpbf16ps", _BF16, _AMX_16, "amx-bf16"),
    _make_amx_core("tdpbssd", dtypes.int8, _AMX_8, "amx-int8"),
)

TENSOR_CORES = {core.name: core for core in (*AMPERE, *CDNA_2, *RDNA_3, *APPLE, *AMX)}


def multiply(
    core: TensorCore, a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], c: Sequence[Sequence[float]]
) -> list[list[float]]:
    """Computes a tensor-core instruction. Returns each lane's registers of C after it.

    a, b, c: the registers of A, B and C of each lane before it. Each result is an exact sum, rounded once. Hardware
    also rounds in between, in an undocumented order. If a float is not finite, the sum is computed in order.
    """
    rows_of_a, columns_of_b = matrix(core.a, a), list(zip(*matrix(core.b, b)))
    if core.mantissa:
        rows_of_a = [[with_mantissa(value, core.mantissa) for value in row] for row in rows_of_a]
        columns_of_b = [tuple([with_mantissa(value, core.mantissa) for value in column]) for column in columns_of_b]
    result = []
    for row, row_of_c in zip(rows_of_a, matrix(core.c, c)):
        sums = [exact_sum([start, *map(mul, row, column)]) for start, column in zip(row_of_c, columns_of_b)]
        result.append([to_dtype_range(total, core.accumulator) for total in sums])
    return [[result[row][column] for row, column in elements] for elements in element_positions(core.c, core.lanes)]


def multiply_tiles(core: TensorCore, a: Sequence[int], b: Sequence[int], c: Sequence[float]) -> list[float]:
    """Returns C after an instruction on tile registers. A and B are words of 32 bits, row by row."""
    decode = bfloat16_from_bits if core.factor is dtypes.bfloat16 else _to_signed_byte
    bits = core.factor.bits

    def rows(words: Sequence[int]) -> list[list[float]]:
        flat = [
            decode(word >> bits * part_number & (1 << bits) - 1) for word in words for part_number in range(core.words)
        ]
        size = len(flat) // core.lanes
        return [flat[start : start + size] for start in range(0, len(flat), size)]

    size = core.c.registers
    rows_of_c = [c[start : start + size] for start in range(0, len(c), size)]
    return [value for row in multiply(core, rows(a), rows(b), rows_of_c) for value in row]


def _to_signed_byte(bits: int) -> int:
    return bits - 256 if bits & 128 else bits


def matrix(layout: FragmentLayout, registers_of_lanes: Sequence[Sequence[float]]) -> list[list[float]]:
    """Returns the matrix whose elements the lanes hold, row by row."""
    rows, columns = layout.shape
    rows_of_values: list[list[float]] = [[0] * columns for _ in range(rows)]
    for elements, registers in zip(element_positions(layout, len(registers_of_lanes)), registers_of_lanes):
        for (row, column), value in zip(elements, registers):
            rows_of_values[row][column] = value
    return rows_of_values


@cache
def element_positions(layout: FragmentLayout, lanes: int) -> list[list[ElementPosition]]:
    """Returns for each lane the (row, column) of the element in each of its registers."""
    return [[layout.position_of(lane, register) for register in range(layout.registers)] for lane in range(lanes)]


def exact_sum(terms: Sequence[float]) -> float:
    """Returns the exact sum of integers, or the sum of floats, rounded once."""
    if not isinstance(terms[0], float):
        return sum(terms)
    return fsum(terms) if all(map(isfinite, terms)) else sum(terms)


def with_mantissa(value: float, bits: int) -> float:
    """Rounds a float32 to `bits` bits of fraction: to the nearest value, halves away from zero (`cvt.rna.tf32`)."""
    if value == 0.0 or not isfinite(value):
        return value
    fraction, exponent = frexp(abs(value))
    scaled = int(fraction * (1 << (bits + 1)) + 0.5)
    return (1 if value > 0 else -1) * ldexp(scaled, exponent - bits - 1)


__all__ = ["AMX", "TENSOR_CORES", "FragmentLayout", "TensorCore", "multiply", "multiply_tiles", "with_mantissa"]
