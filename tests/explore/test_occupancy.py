"""Occupancy agrees with the vendors' documents: NVIDIA's calculator, and the tables of AMD and LLVM."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from itertools import product
from pathlib import Path

import pytest

from tinyexplore.explore.analysis.models.occupancy import resident_groups
from tinyexplore.target import GPUS

FOLDER = Path(__file__).parents[1] / "fixtures" / "occupancy"
TABLE = [line.split() for line in (FOLDER / "nvidia.txt").read_text().splitlines() if not line.startswith("#")]
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability":
# warps and groups of a multiprocessor, its shared memory in KiB
PUBLISHED = {
    "sm_75": (32, 16, 64),
    "sm_80": (64, 32, 164),
    "sm_86": (48, 16, 100),
    "sm_89": (48, 24, 100),
    "sm_90": (64, 32, 228),
    "sm_100": (64, 32, 228),
}
# registers of a work-item up to which a SIMD holds N waves: AMD's for CDNA 2, LLVM's of its backend for RDNA 3
WAVES = {
    "gfx90a": {64: 8, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 512: 1},
    "gfx1100": {96: 16, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_limits_are_those_that_are_published(name: str) -> None:
    gpu = GPUS[name]
    found = gpu.resident_items // gpu.warp, gpu.resident_groups, gpu.resident_shared_bytes >> 10
    assert found == PUBLISHED[name]
    assert (gpu.registers, gpu.item_registers) == (64 << 10, 255)


@pytest.mark.parametrize("name", PUBLISHED)
def test_resident_groups_equal_those_of_nvidias_calculator(name: str) -> None:
    rows = [[int(cell) for cell in row[1:]] for row in TABLE if row[0] == name]
    assert len(rows) == 75
    found = [resident_groups(GPUS[name], *row[:3]).groups for row in rows]
    assert found == [row[3] for row in rows]


def test_nvidias_calculator_agrees_with_the_table(tmp_path: Path) -> None:
    """Compiled again if its header is installed, on many more kernels than the table has."""
    site = Path(sysconfig.get_path("purelib"))
    places = [*site.glob("nvidia/**/include/cuda_occupancy.h"), Path("/usr/local/cuda/include/cuda_occupancy.h")]
    header = next((place for place in places if place.exists()), None)
    compiler = shutil.which("cc")
    if header is None or compiler is None:
        pytest.skip("no cuda_occupancy.h, or no C compiler: pip install nvidia-cuda-nvcc; the table is compared anyway")
    program = tmp_path / "calculator"
    subprocess.run([compiler, f"-I{header.parent}", str(FOLDER / "nvidia.c"), "-o", str(program)], check=True)
    kernels = list(product(PUBLISHED, (32, 128, 224, 512, 768), range(16, 256, 13), (0, 1, 1024, 8448, 24576, 49152)))
    asked = []
    for name, *kernel in kernels:
        gpu, number = GPUS[name], int(name[3:])
        asked.append((number // 10, number % 10, gpu.resident_items, gpu.resident_shared_bytes, *kernel))
    rows = "\n".join(" ".join(map(str, row)) for row in asked)
    done = subprocess.run([program], input=rows, capture_output=True, text=True, check=True)
    assert [resident_groups(GPUS[name], *kernel).groups for name, *kernel in kernels] == [
        *map(int, done.stdout.split())
    ]


@pytest.mark.parametrize("name", WAVES)
def test_waves_of_amd_equal_the_published_tables(name: str) -> None:
    """Groups of four waves put one on each of the four SIMDs."""
    gpu = GPUS[name]
    below = 1
    for most, waves in WAVES[name].items():
        for registers in (below, most):
            found = resident_groups(gpu, 4 * gpu.warp, registers, 0)
            assert found.limits[0][3] == waves or found.limits[0][3] > waves == gpu.resident_items // gpu.warp // 4
            assert found.share == waves * 4 * gpu.warp / gpu.resident_items
        below = most + 1


def test_groups_of_one_wave_need_no_barrier() -> None:
    """LLVM, getMaxWorkGroupsPerCU: a compute unit has 16 barriers, which a group of one wave does not need."""
    assert (resident_groups(GPUS["gfx90a"], 64, 8, 0).groups, resident_groups(GPUS["gfx90a"], 128, 8, 0).groups) == (
        32,
        16,
    )
    assert (resident_groups(GPUS["gfx1100"], 32, 8, 0).groups, resident_groups(GPUS["gfx1100"], 64, 8, 0).groups) == (
        64,
        32,
    )


def test_the_limit_of_occupancy_is_reported_with_advice() -> None:
    full, few = resident_groups(GPUS["sm_80"], 256, 32, 0), resident_groups(GPUS["sm_80"], 256, 88, 0)
    assert (full.share, full.advice) == (1.0, "")
    assert few.limit == "registers" and few.share == 0.25 and few.advice.startswith("a smaller tile")
