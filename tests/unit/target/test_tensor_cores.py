"""The lane maps of tensor cores against the vendors' documents, and the semantics of the instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tinyexplore.dtype import dtypes
from tinyexplore.target import AMX, GPUS, TENSOR_CORES, FragmentLayout, TensorCore
from tinyexplore.target.tensor_cores import multiply, multiply_tiles, with_mantissa

Map = Callable[[int, int], tuple[int, int]]


def core_id(core: TensorCore) -> str:
    return core.name


def of_ptx(core: str) -> dict[str, Map]:
    """The PTX ISA's formulas ("Matrix Fragments for mma"): its groupID is lane // 4, its threadID_in_group lane % 4."""
    match core.split("_")[1:]:
        case ["m16n8k8", "tf32"]:
            return {
                "A": lambda lane, i: (lane // 4 + 8 * (i in (1, 3)), lane % 4 + 4 * (i >= 2)),
                "B": lambda lane, i: (lane % 4 + 4 * i, lane // 4),
                "C": accumulators_of_ptx,
            }
        case ["m16n8k8", _]:
            return {
                "A": lambda lane, i: (lane // 4 + 8 * (i >= 2), lane % 4 * 2 + (i & 1)),
                "B": lambda lane, i: (lane % 4 * 2 + i, lane // 4),
                "C": accumulators_of_ptx,
            }
        case ["m16n8k16", _]:
            return {
                "A": lambda lane, i: (
                    lane // 4 + 8 * (not (0 <= i < 2 or 4 <= i < 6)),
                    lane % 4 * 2 + (i & 1) + 8 * (i >= 4),
                ),
                "B": lambda lane, i: (lane % 4 * 2 + (i & 1) + 8 * (i >= 2), lane // 4),
                "C": accumulators_of_ptx,
            }
    return {
        "A": lambda lane, i: (
            lane // 4 + 8 * (not (0 <= i < 4 or 8 <= i < 12)),
            lane % 4 * 4 + (i & 3) + 16 * (i >= 8),
        ),
        "B": lambda lane, i: (lane % 4 * 4 + (i & 3) + 16 * (i >= 4), lane // 4),
        "C": accumulators_of_ptx,
    }


def accumulators_of_ptx(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + 8 * (i >= 2), lane % 4 * 2 + (i & 1)


def of_amd(core: str) -> dict[str, Map]:
    """AMD's: of MFMA, four neighbors along k to a lane; of WMMA, a whole row (column), twice over."""
    if "wmma" in core:
        return {
            "A": lambda lane, i: (lane % 16, i),
            "B": lambda lane, i: (i, lane % 16),
            "C": lambda lane, i: (2 * i + lane // 16, lane % 16),
        }
    side = 32 if "32x32" in core else 16
    return {
        "A": lambda lane, i: (lane % side, 4 * (lane // side) + i),
        "B": lambda lane, i: (4 * (lane // side) + i, lane % side),
        "C": lambda lane, i: (8 * (i // 4) + 4 * (lane // side) + i % 4, lane % side),
    }


def of_mlx(core: str) -> dict[str, Map]:
    """What MLX counts on: quads of lanes, in them pairs of neighbors."""

    def place(lane: int, i: int) -> tuple[int, int]:
        quad = lane // 4
        return (quad & 4) + lane // 2 % 4, (quad & 2) * 2 + lane % 2 * 2 + i

    return dict.fromkeys("ABC", place)


def of_intel(core: str) -> dict[str, Map]:
    """Intel's: row by row; of B, a row has the neighbors along k of each column side by side, as a word of 32 bits."""
    words = 2 if "bf16" in core else 4
    return {
        "A": lambda row, i: (row, i),
        "B": lambda row, i: (words * row + i % words, i // words),
        "C": lambda row, i: (row, i),
    }


DOCUMENTED = {"x86": of_intel, "cuda": of_ptx, "hip": of_amd, "metal": of_mlx}


@pytest.mark.parametrize("core", TENSOR_CORES.values(), ids=core_id)
def test_maps_are_those_that_are_documented(core: TensorCore) -> None:
    documented = DOCUMENTED[core.language](core.name)
    for matrix, layout in core.layouts.items():
        every = [(lane, register) for lane in range(core.lanes) for register in range(layout.registers)]
        assert [layout.position_of(*one) for one in every] == [documented[matrix](*one) for one in every], matrix


@pytest.mark.parametrize("core", TENSOR_CORES.values(), ids=core_id)
def test_each_element_is_held_as_often_as_the_layout_states(core: TensorCore) -> None:
    m, n, k = core.dims
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    for matrix, layout in core.layouts.items():
        assert layout.shape == shapes[matrix]
        held = Counter(layout.position_of(lane, reg) for lane in range(core.lanes) for reg in range(layout.registers))
        assert set(held) == {(row, column) for row in range(layout.shape[0]) for column in range(layout.shape[1])}
        assert set(held.values()) == {layout.copies(core.lanes)}
        assert layout.copies(core.lanes) == (2 if "wmma" in core.name and matrix != "C" else 1)


def test_every_gpu_has_cores_of_its_own_language_and_warp() -> None:
    for name, gpu in GPUS.items():
        assert {(core.language, core.lanes) for core in gpu.cores} <= {(gpu.language, gpu.warp)}, name
        assert set(gpu.cores) <= set(TENSOR_CORES.values())
    assert [name for name, gpu in GPUS.items() if not gpu.cores] == ["opencl", "webgpu"]


def held(layout: FragmentLayout, lanes: int, matrix: np.ndarray) -> list[list[float]]:
    """A matrix as the lanes of a warp hold it."""
    return [[matrix[layout.position_of(lane, reg)].item() for reg in range(layout.registers)] for lane in range(lanes)]


@pytest.mark.parametrize("core", TENSOR_CORES.values(), ids=core_id)
def test_a_core_adds_the_product(core: TensorCore) -> None:
    rng = np.random.default_rng(0)
    (m, n, k), whole = core.dims, core.accumulator is dtypes.int32
    kinds = (np.int64, np.int32) if whole else (np.float64, np.float32)
    a, b, c = (rng.integers(-8, 8, shape).astype(kinds[0]) for shape in ((m, k), (k, n), (m, n)))
    if not whole:
        a, b, c = a / 8, b / 4, c + rng.normal(size=c.shape).astype(np.float32)
    found = multiply(core, *(held(one, core.lanes, x) for one, x in zip((core.a, core.b, core.c), (a, b, c))))
    assert found == held(core.c, core.lanes, (a @ b + c).astype(kinds[1]))


@pytest.mark.parametrize("core", AMX, ids=core_id)
def test_tiles_are_words_row_by_row(core: TensorCore) -> None:
    rng = np.random.default_rng(2)
    m, n, k = core.dims
    a, b, c = (rng.integers(-100, 100, shape) for shape in ((m, k), (k, n), (m, n)))
    if core.factor is dtypes.bfloat16:
        x, y = ((one.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for one in (a, b))
    else:
        x, y = a.astype(np.int8), b.astype(np.int8)
    pairs = np.ascontiguousarray(y.reshape(k // core.words, core.words, n).transpose(0, 2, 1))
    words = [np.ascontiguousarray(one).reshape(-1).view(np.uint32).tolist() for one in (x, pairs)]
    assert [len(one) for one in words] == [256, 256]
    sums = c.reshape(-1).astype(float if core.factor is dtypes.bfloat16 else int).tolist()
    found = multiply_tiles(core, *words, sums)  # type: ignore[call-arg]
    np.testing.assert_array_equal(np.reshape(found, (m, n)), a @ b + c)


def test_infinities_and_nans_are_propagated() -> None:
    core = TENSOR_CORES["mma_m16n8k16_f16"]
    a, b, c = np.ones((16, 16)), np.ones((16, 8)), np.zeros((16, 8))
    a[0, 0], b[0, 1], c[2, 3] = np.inf, 0, np.nan
    found = multiply(core, *(held(one, 32, x) for one, x in zip((core.a, core.b, core.c), (a, b, c))))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, held(core.c, 32, (a @ b + c)))


def test_tf32_keeps_ten_bits_and_rounds_to_the_nearest_away_from_zero() -> None:
    rng = np.random.default_rng(1)
    ties = (np.float32(1) + np.arange(1, 4096, 2, dtype=np.float32) * np.float32(2**-11)).astype(np.float32)
    values = np.concatenate((rng.normal(size=2000).astype(np.float32) * 10.0, ties, -ties, [0.0])).astype(np.float32)
    bits = (values.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    assert [with_mantissa(float(value), 10) for value in values] == bits.view(np.float32).tolist()
