"""Tensor cores in LLVM IR: PTX as inline assembly for NVIDIA, intrinsics for AMD and for Intel's AMX.

The AMX intrinsics use tile registers, which LLVM allocates and configures. The elements that a lane holds are a vector.
PTX takes it as words of 32 bits, and returns a struct of floats (or integers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.renderer.llvm.arithmetic import TILE_ROW_BYTES, TILE_ROWS, InstructionWriter, register_type
from tinyexplore.target import TensorCore
from tinyexplore.uop import UOp

Value = Callable[[str, str], str]  # writes an instruction into a register with this name


def product_of(writer: InstructionWriter, core: TensorCore, node: UOp, values: Sequence[str]) -> str:
    """Writes a WMMA whose sources are in `values`. Returns its register."""
    ir_types = [register_type(src.dtype) for src in node.src]
    if core.language == "hip":
        return _write_intrinsic(writer, core, ir_types, values)
    result = register_type(core.accumulator)
    words = [
        word for operand in (0, 1) for word in _split_words(writer.value, core, ir_types[operand], values[operand])
    ]
    count = core.c.registers
    addends = [
        writer.value(f"extractelement {ir_types[2]} {values[2]}, i64 {element}", "c") for element in range(count)
    ]
    letter = "r" if core.accumulator is dtypes.int32 else "f"
    a = len(_word_range(core, core.a.registers))
    groups = (range(count), range(count, count + a), range(count + a, count + len(words)))
    lists = [", ".join(f"${register}" for register in group) for group in groups]
    lists.append(", ".join(f"${count + len(words) + number}" for number in range(count)))
    text = f"{core.call} {', '.join(f'{{{registers}}}' for registers in lists)};"
    constraints = ",".join([f"={letter}"] * count + ["r"] * len(words) + [letter] * count)
    operands = ", ".join([f"i32 {word}" for word in words] + [f"{result} {element_of_c}" for element_of_c in addends])
    struct = f"{{ {', '.join([result] * count)} }}"
    result_struct = writer.value(
        f'call {struct} asm sideeffect "{text}", "{constraints}"({operands}) convergent', "mma"
    )
    vector = "poison"
    for element in range(count):
        element_of_c = writer.value(f"extractvalue {struct} {result_struct}, {element}", "d")
        vector = writer.value(f"insertelement {ir_types[2]} {vector}, {result} {element_of_c}, i64 {element}", "held")
    return vector


def _word_range(core: TensorCore, registers: int) -> range:
    """Returns a range over the machine words that hold `registers` elements of a factor."""
    return range(registers * core.factor.itemsize // dtypes.uint32.itemsize)


def _split_words(value: Value, core: TensorCore, ir_type: str, factor: str) -> list[str]:
    """Returns a factor as words. A float of fewer bits is rounded first."""
    count = int(ir_type[1:].partition(" ")[0])
    if core.mantissa:
        elements = [value(f"extractelement {ir_type} {factor}, i64 {element}", "part") for element in range(count)]
        rounding = 'call i32 asm "cvt.rna.tf32.f32 $0, $1;", "=r,f"'
        return [value(f"{rounding}(float {element_value})", "tf32") for element_value in elements]
    words = _word_range(core, count)
    packed = value(f"bitcast {ir_type} {factor} to <{len(words)} x i32>", "words")
    return [value(f"extractelement <{len(words)} x i32> {packed}, i64 {element}", "word") for element in words]


def _write_intrinsic(
    writer: InstructionWriter, core: TensorCore, ir_types: Sequence[str], values: Sequence[str]
) -> str:
    """Returns the name and arguments of AMD's intrinsic.

    MFMA: without a broadcast or another order of lanes. WMMA: the name includes the types.
    """
    name = core.name.replace("_w32", "").replace("_", ".")
    arguments = list(zip(ir_types, values))
    if name.startswith("mfma"):
        arguments += [("i32", "0")] * 3
    else:
        name += f".v{core.c.registers}f32.v{core.a.registers}{'f16' if core.factor is dtypes.float16 else 'i16'}"
    return writer.call(ir_types[2], f"llvm.amdgcn.{name}", *arguments, hint="mma")


# *** tile registers ***

SHAPE = (("i16", str(TILE_ROWS)), ("i16", str(TILE_ROW_BYTES)))  # rows of a tile, and bytes of each
STRIDE = ("i64", str(TILE_ROW_BYTES))  # a tile is row-major in memory
TILE_TYPE = "x86_amx"


def zero_tile(writer: InstructionWriter) -> str:
    return writer.call(TILE_TYPE, "llvm.x86.tilezero.internal", *SHAPE, hint="tile")


def load_tile(writer: InstructionWriter, pointer: str) -> str:
    return writer.call(TILE_TYPE, "llvm.x86.tileloadd64.internal", *SHAPE, ("ptr", pointer), STRIDE, hint="tile")


def store_tile(writer: InstructionWriter, pointer: str, tile: str) -> None:
    arguments = (*SHAPE, ("ptr", pointer), STRIDE, (TILE_TYPE, tile))
    name = "llvm.x86.tilestored64.internal"
    writer.declared[name] = f"declare void @{name}({', '.join(ir_type for ir_type, _ in arguments)})"
    writer.raw(f"  call void @{name}({', '.join(f'{ir_type} {value}' for ir_type, value in arguments)})")


def product_of_tiles(writer: InstructionWriter, core: TensorCore, a: str, b: str, c: str) -> str:
    """Writes C + A · B on tiles. Arguments are the rows of C, the bytes of its rows, and the bytes of the rows of A."""
    shape = (*SHAPE, ("i16", str(TILE_ROW_BYTES)))
    return writer.call(
        TILE_TYPE, f"llvm.x86.{core.call}.internal", *shape, (TILE_TYPE, c), (TILE_TYPE, a), (TILE_TYPE, b), hint="tile"
    )


__all__ = ["load_tile", "product_of", "product_of_tiles", "store_tile", "zero_tile"]
