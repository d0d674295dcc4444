"""Writes tensor cores in the languages of GPUs: for each core, a function of the elements that one lane holds.

The elements of a matrix that a lane holds are a struct `of`, in the order of the core's layout; 16-bit floats are their
bits. CUDA C++ uses a PTX instruction, whose operands are 32-bit words. HIP uses a builtin, whose operands are vectors.
Metal uses a simdgroup matrix, whose elements in a lane are `thread_elements()`.
"""

from __future__ import annotations

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.c.parts import SCALAR, short_name
from tinyexplore.renderer.gpu.accesses import ALIGNMENT
from tinyexplore.target import FragmentLayout, TensorCore

WORD_BYTES = 4


def held_text(dtype: DType) -> str:
    """Returns the type for the elements of a matrix that a lane holds, or accesses in memory at one time.

    Compilers do not divide an access that is aligned to its width.
    """
    nbytes = dtype.itemsize * dtype.count
    aligned = f" __attribute__((aligned({nbytes})))" if nbytes <= ALIGNMENT else ""
    return f"struct {short_name(dtype)} {{ {SCALAR[dtype.scalar]} of[{dtype.count}]; }}{aligned};"


def types_of(core: TensorCore) -> tuple[DType, DType, DType]:
    """Returns the types of A, B and C in a lane."""
    bits = dtypes.uint16 if core.factor in (dtypes.float16, dtypes.bfloat16) else core.factor
    a, b = bits.vec(core.a.registers), bits.vec(core.b.registers)
    return a, b, core.accumulator.vec(core.c.registers)


def core_text(core: TensorCore) -> str:
    """Returns the function of a core, which has the core's name."""
    a, b, c = map(short_name, types_of(core))
    body = {"cuda": _cuda, "hip": _hip, "metal": _metal}[core.language](core)
    lines = [f"static inline {c} {core.name}({a} a, {b} b, {c} c) {{", *(f"  {line}" for line in body)]
    return "\n".join((*lines, "  return c;", "}"))


def _cuda(core: TensorCore) -> list[str]:
    """Writes the body of a tensor-core function in CUDA C, as inline PTX."""
    lines, inputs = [], []
    for name, layout in (("a", core.a), ("b", core.b)):
        for number, word in enumerate(list_words(core, name, layout)):
            lines.append(f"uint32_t {name}{number}{word}")
            inputs.append(f'"r"({name}{number})')
    letter = "r" if core.accumulator is dtypes.int32 else "f"
    results = [f'"+{letter}"(c.of[{register}])' for register in range(core.c.registers)]
    in_c = range(core.c.registers)
    in_a = range(len(in_c), len(in_c) + sum("(a" in text for text in inputs))
    in_b = range(in_a.stop, len(in_c) + len(inputs))
    operands = ", ".join(
        "{" + ", ".join(f"%{register}" for register in registers) + "}" for registers in (in_c, in_a, in_b, in_c)
    )
    instruction = f'"{core.call} {operands};"'
    return [*lines, f"asm volatile({instruction}", f"  : {', '.join(results)} : {', '.join(inputs)});"]


def list_words(core: TensorCore, name: str, layout: FragmentLayout) -> list[str]:
    """Returns the expression of each 32-bit register of a factor: elements side by side, the first one lowest.

    For floats that the instruction rounds to fewer bits, a register holds one float.
    """
    if core.mantissa:
        round_it = 'asm("cvt.rna.tf32.f32 %0, %1;"'
        return [f'; {round_it} : "=r"({name}{n}) : "f"({name}.of[{n}]));' for n in range(layout.registers)]
    elements_per_word = WORD_BYTES // core.factor.itemsize
    # the cast keeps a sign inside its byte
    unsigned = "(uint32_t)(uint8_t)" if core.factor is dtypes.int8 else "(uint32_t)"
    texts = []
    for first_register in range(0, layout.registers, elements_per_word):
        shifted_parts = []
        for number in range(elements_per_word):
            part = f"{unsigned}{name}.of[{first_register + number}]"
            shifted_parts.append(f"{part} << {number * core.factor.bits}" if number else part)
        texts.append(f" = {' | '.join(shifted_parts)};")
    return texts


def _hip(core: TensorCore) -> list[str]:
    """Writes the body of a tensor-core function in HIP, as a call of AMD's builtin."""
    factor = "_Float16" if core.factor is dtypes.float16 else "short"
    count, results = core.a.registers, core.c.registers
    options = ", 0, 0, 0" if "mfma" in core.name else ""  # no broadcast, and the usual order of lanes
    return [
        f"typedef {factor} factor __attribute__((ext_vector_type({count})));",
        f"typedef float sum __attribute__((ext_vector_type({results})));",
        "factor x, y;",
        "sum z;",
        "__builtin_memcpy(&x, &a, sizeof(x));",
        "__builtin_memcpy(&y, &b, sizeof(y));",
        "__builtin_memcpy(&z, &c, sizeof(z));",
        f"z = {core.call}(x, y, z{options});",
        "__builtin_memcpy(&c, &z, sizeof(c));",
    ]


def _metal(core: TensorCore) -> list[str]:
    """Writes the body of a tensor-core function in Metal, with simdgroup matrices."""
    metal_type = {dtypes.float16: "half", dtypes.bfloat16: "bfloat", dtypes.float32: "float"}[core.factor]
    lines = [f"simdgroup_matrix<{metal_type}, 8, 8> x, y;", "simdgroup_matrix<float, 8, 8> z;"]
    for register in range(core.a.registers):
        for matrix, operand in (("x", "a"), ("y", "b")):
            value = (
                f"{operand}.of[{register}]"
                if metal_type == "float"
                else f"as_type<{metal_type}>({operand}.of[{register}])"
            )
            lines.append(f"{matrix}.thread_elements()[{register}] = {value};")
        lines.append(f"z.thread_elements()[{register}] = c.of[{register}];")
    lines.append(f"{core.call}(z, x, y, z);")
    return [*lines, *(f"c.of[{register}] = z.thread_elements()[{register}];" for register in range(core.c.registers))]


__all__ = ["core_text", "held_text", "types_of"]
