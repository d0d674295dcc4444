"""The differences between the GPU languages, as data. `renderer/c` writes the parts that are plain C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tinyexplore.dtype import dtypes
from tinyexplore.renderer.c.parts import BITS_ONLY, CONVERSIONS, SCALAR, SHORT

_INTEGERS = {
    "uint8_t": "uchar",
    "int16_t": "short",
    "uint16_t": "ushort",
    "int32_t": "int",
    "uint32_t": "uint",
    "int64_t": "long",
    "uint64_t": "ulong",
}
_FUNCTIONS = "sqrt exp exp2 log log2 sin cos tanh erf floor pow fmod ldexp".split()
_PLAIN = {f"{name}f": name for name in _FUNCTIONS}  # OpenCL has one name of each function for all dtypes

WIDTHS = (2, 4, 8, 16)  # widths of OpenCL's vectors


def _vector_names() -> dict[str, str]:
    """Returns OpenCL's names of vector types, and of functions named after them."""
    words = {**_INTEGERS, "int8_t": "char"}
    names = {}
    for dtype, name in SHORT.items():
        if dtype in BITS_ONLY:
            continue
        scalar = "char" if dtype is dtypes.bool else words.get(SCALAR[dtype], SCALAR[dtype])
        for lanes in WIDTHS:
            for verb in ("", "convert_", "as_"):
                names[f"{verb}{name}x{lanes}"] = f"{verb}{scalar}{lanes}"
    return names


def _remove_compiler_types(text: str) -> str:
    """Removes types that only some C compilers have from the text of a helper."""
    head, separator, after_test = text.partition("#ifdef __FLT16_MAX__\n")
    return head + after_test.partition("#else\n")[2].replace("#endif\n", "") if separator else text


@dataclass(frozen=True)
class GPUDialect:
    """A language of GPUs. Texts contain the placeholders in braces.

    language: its short name.
    full_name: its full name.
    kernel: the declaration of a kernel ({name}).
    parameter: the declaration of a buffer parameter ({type}, {name}, {number}).
    variable: the declaration of an integer parameter.
    shared: the declaration of memory that a group shares.
    barrier: the statement that waits for the group.
    special: the expression of a work-item's index, by the first letters of a SPECIAL ({d}: the dimension, {x}: its
    letter).
    names: replacements of words of C99.
    spaces: address spaces of a pointer into a buffer, and of one into shared memory.
    vectors: whether the language has vector types; else vectors are structs.
    together: the expression of a vector ({type}, {lanes}).
    lane: the expression of one lane ({vector}, {n}).
    limit: the declaration of the size of a group ({x}, {y}, {z}, {all}).
    further: further parameters of a kernel.
    helper: the keywords that declare a helper.
    conversions: helpers that have another text in this language.
    bits: the expression that reinterprets bits as another type; "" for memcpy.
    head: the first lines of a program.
    double: a further first line if the program has doubles.
    guards: whether the runtime runs whole groups, also for a grid for which the program does not state a group.
    """

    language: str
    full_name: str
    kernel: str
    parameter: str
    variable: str
    shared: str
    barrier: str
    special: Mapping[str, str]
    names: Mapping[str, str]
    spaces: tuple[str, str] = ("", "")
    vectors: bool = False
    together: str = "{type}{{{{{lanes}}}}}"
    lane: str = "{vector}.of[{n}]"
    limit: str = ""
    further: tuple[str, ...] = ()
    helper: str = "static inline"
    conversions: Mapping[str, str] = field(default_factory=dict)
    bits: str = ""
    head: tuple[str, ...] = ()
    double: str = ""
    guards: bool = False


OPENCL = GPUDialect(
    language="opencl",
    full_name="OpenCL C",
    kernel="__kernel void",
    parameter="__global {const}{type}* restrict {name}",
    variable="const {type} {name}",
    shared="__local",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    special={"gidx": "get_group_id({d})", "lidx": "get_local_id({d})", "idx": "get_global_id({d})"},
    limit="__attribute__((reqd_work_group_size({x}, {y}, {z}))) ",
    names={**_INTEGERS, **_PLAIN, **_vector_names(), "int8_t": "char", "INT64_MIN": "LONG_MIN", "ll": "L", "ull": "UL"},
    spaces=("__global ", "__local "),
    vectors=True,
    together="({type})({lanes})",
    lane="{vector}.s{n:x}",
    conversions={
        "bits_f32": "static inline uint bits_f32(float x) { return as_uint(x); }",
        "f32_bits": "static inline float f32_bits(uint u) { return as_float(u); }",
        "f16_to_f32": "static inline float f16_to_f32(ushort u) { return vload_half(0, (const half*)&u); }",
        "f32_to_f16": (
            "static inline ushort f32_to_f16(float x) { ushort u; vstore_half_rte(x, 0, (half*)&u); return u; }"
        ),
        "f64_to_f16": (
            "static inline ushort f64_to_f16(double x) { ushort u; vstore_half_rte(x, 0, (half*)&u); return u; }"
        ),
    },
    bits="as_{type}({value})",
    double="#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
)

CUDA = GPUDialect(
    language="cuda",
    full_name="CUDA C++",
    kernel='extern "C" __global__ void',
    parameter="{const}{type}* __restrict__ {name}",
    variable="const {type} {name}",
    shared="__shared__",
    barrier="__syncthreads();",
    special={"gidx": "blockIdx.{x}", "lidx": "threadIdx.{x}", "idx": "blockIdx.{x} * blockDim.{x} + threadIdx.{x}"},
    limit="__launch_bounds__({all}) ",
    names={
        "uint8_t": "unsigned char",
        "int8_t": "signed char",
        "int16_t": "short",
        "uint16_t": "unsigned short",
        "int32_t": "int",
        "uint32_t": "unsigned int",
        "int64_t": "long long",
        "uint64_t": "unsigned long long",
        "INT64_MIN": "(-9223372036854775807LL - 1)",
        "INFINITY": "__int_as_float(0x7f800000)",
        "NAN": "__int_as_float(0x7fffffff)",
        "ll": "LL",
        "ull": "ULL",
    },
    helper="static __device__ __forceinline__",
    conversions={name: _remove_compiler_types(text) for name, text in CONVERSIONS.items()},
    guards=True,
)

HIP = replace(CUDA, language="hip", full_name="HIP C++")

METAL = GPUDialect(
    language="metal",
    full_name="Metal",
    kernel="kernel void",
    parameter="device {const}{type}* {name} [[buffer({number})]]",
    variable="constant {type}& {name} [[buffer({number})]]",
    further=(
        "uint3 group [[threadgroup_position_in_grid]]",
        "uint3 item [[thread_position_in_threadgroup]]",
        "uint3 place [[thread_position_in_grid]]",
    ),
    shared="threadgroup",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup);",
    spaces=("device ", "threadgroup "),
    special={"gidx": "group.{x}", "lidx": "item.{x}", "idx": "place.{x}"},
    names={**_INTEGERS, **_PLAIN, "int8_t": "char", "INT64_MIN": "LONG_MIN", "ll": "L", "ull": "UL"},
    conversions={
        "bits_f32": "static inline uint bits_f32(float x) { return as_type<uint>(x); }",
        "f32_bits": "static inline float f32_bits(uint u) { return as_type<float>(u); }",
        "f16_to_f32": "static inline float f16_to_f32(ushort u) { return float(as_type<half>(u)); }",
        "f32_to_f16": "static inline ushort f32_to_f16(float x) { return as_type<ushort>(half(x)); }",
    },
    bits="as_type<{type}>({value})",
    head=("#include <metal_stdlib>", "using namespace metal;"),
)

DIALECTS = {dialect.language: dialect for dialect in (OPENCL, CUDA, HIP, METAL)}

__all__ = ["CUDA", "DIALECTS", "HIP", "METAL", "OPENCL", "WIDTHS", "GPUDialect"]
