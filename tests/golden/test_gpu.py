"""The texts for GPUs equal the golden files, and the installed compilers accept them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.golden.__main__ import differences, path_of
from tests.golden.gpu import TEXTS, made
from tests.golden.record import read
from tinyexplore.renderer.gpu import DIALECTS
from tinyexplore.renderer.gpu.renderer import GPUWriter
from tinyexplore.renderer.gpu.tensor_cores import core_text, held_text, types_of
from tinyexplore.target import TENSOR_CORES, TensorCore

# what clang has no headers for: the few words of CUDA that kernels are written with
CUDA_WORDS = """\
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(most) __attribute__((launch_bounds(most)))
struct uint3 { unsigned x, y, z; };
extern const __device__ uint3 blockIdx, threadIdx, blockDim;
__device__ void __syncthreads();
__device__ float __int_as_float(int);
__device__ extern "C" void* memcpy(void*, const void*, __SIZE_TYPE__);
__device__ float expf(float); __device__ float exp2f(float); __device__ float logf(float);
__device__ double floor(double); __device__ float floorf(float);
"""
METAL_WORDS = """\
#define kernel
#define device
#define constant
#define threadgroup
#define LONG_MIN (-__LONG_MAX__ - 1)
#define INFINITY __builtin_inff()
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
struct uint3 { uint x, y, z; };
struct half { half(float); operator float() const; };
template <typename T, typename S> T as_type(S);
enum class mem_flags { mem_threadgroup };
void threadgroup_barrier(mem_flags);
struct bfloat { operator float() const; };
template <typename T, int R, int C> struct simdgroup_matrix { T* thread_elements(); };
template <typename C, typename T>
void simdgroup_multiply_accumulate(C& d, const T& a, const T& b, const C& c);
float exp(float); float log(float); float exp2(float); float floor(float);
"""
FLAGS = {
    "opencl": ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header"],
    "cuda": [
        "-x",
        "cuda",
        "-nocudainc",
        "-nocudalib",
        "--cuda-device-only",
        "--cuda-gpu-arch=sm_75",
        "-Wno-unknown-cuda-version",
    ],
}
FLAGS["hip"] = ["-x", "hip", "-nogpuinc", "-nogpulib", "--cuda-device-only", "--offload-arch=gfx90a"]
FLAGS["metal"] = ["-x", "c++", "-std=c++14", "-fno-builtin", "-Wno-unknown-attributes", "-Wno-unused-parameter"]
HEADS = {"cuda": CUDA_WORDS, "hip": CUDA_WORDS, "metal": METAL_WORDS}


@pytest.mark.parametrize("language", TEXTS)
def test_texts_equal_the_golden_files(language: str) -> None:
    found = "\n".join(differences(read(path_of(language)), made(language)))
    assert not found, f"{found}\nwhere this is meant: python -m tests.golden.gpu --update"


@pytest.mark.parametrize("language", ["cuda", "hip", "metal"])
def test_clang_accepts_every_tensor_core(language: str, tmp_path: Path) -> None:
    cores = [core for core in TENSOR_CORES.values() if core.language == language and "wmma" not in core.name]
    assert not refusal("clang", language, FLAGS[language], cores, tmp_path)


def test_a_clang_with_rdna_3_accepts_its_tensor_cores(tmp_path: Path) -> None:
    """Debian 12 has such a clang beside its own: clang-16."""
    found = [name for name in ("clang", *(f"clang-{version}" for version in range(15, 23))) if knows_rdna_3(name)]
    if not found:
        pytest.skip("no clang from 15 on: AMD's builtins for RDNA 3 are not checked (LLVM's own are, as AMDGCN)")
    flags = [flag.replace("gfx90a", "gfx1100") for flag in FLAGS["hip"]]
    cores = [core for core in TENSOR_CORES.values() if "wmma" in core.name]
    assert not refusal(found[0], "hip", flags, cores, tmp_path)


def knows_rdna_3(clang: str) -> bool:
    if shutil.which(clang) is None:
        return False
    done = subprocess.run([clang, "-dumpversion"], capture_output=True, text=True, check=True)
    return int(done.stdout.partition(".")[0]) >= 15


def refusal(clang: str, language: str, flags: list[str], cores: list[TensorCore], folder: Path) -> str:
    """The messages of clang about the functions of these cores; "" if it accepts them."""
    helpers = {dtype: held_text(dtype) for core in cores for dtype in types_of(core)}
    text = "\n".join((*helpers.values(), *map(core_text, cores)))
    writer = GPUWriter([], DIALECTS[language])
    path = folder / "cores.txt"
    path.write_text(HEADS[language] + "\n".join(map(writer.translate_names, text.split("\n"))))
    command = [clang, *flags, "-Wall", "-Werror", "-Wno-unused-function", "-fsyntax-only", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{path.read_text()}\n{done.stderr}" if done.returncode else ""


@pytest.mark.parametrize("language", FLAGS)
def test_clang_accepts_every_text(language: str, tmp_path: Path) -> None:
    for number, text in enumerate(read(path_of(language)).values()):
        path = tmp_path / f"{number}.txt"
        for line in DIALECTS[language].head:
            text = text.replace(f"{line}\n", "")
        path.write_text(HEADS.get(language, "") + text)
        command = ["clang", *FLAGS[language], "-Wall", "-Werror", "-Wno-unused-variable", "-fsyntax-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
