"""The PYTHON device: the reference interpreter, which defines the linear program.

A program is rendered as a Python function once (`renderer/python`) and executed. It needs neither NumPy nor a compiler,
so it also runs in a browser.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from tinyexplore.device import Buffer, DeviceInterface
from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.renderer.python import PythonRenderer, meaning_name, memory_format
from tinyexplore.runtime.emulator import EmulatedGroups, bind
from tinyexplore.runtime.gpu import gpu_target
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.native import check_arguments
from tinyexplore.target import AMX, TENSOR_CORES, Target, current_choice, machine
from tinyexplore.target.tensor_cores import multiply_tiles
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.semantics import bfloat16_bits, bfloat16_from_bits, from_bits, scalar_function, to_bits


def _check_position(position: int) -> int:
    if position < 0:
        raise IndexError(f"element {position} is before the start of the buffer")
    return position


def _check_aligned(position: int, count: int) -> int:
    if position % count:
        raise IndexError(f"{count} elements from {position} on: a GPU's vector starts at a multiple of its width")
    return position


def _load(view: memoryview, position: int, count: int, mask: Any) -> list[Any]:
    """Returns `count` neighbors. Lanes that `mask` excludes are 0 and not read."""
    if mask is None or mask is True:
        return [view[_check_position(position + lane)] for lane in range(count)]
    if mask is False:
        return [0] * count
    return [
        view[_check_position(position + lane)] if valid else 0 for lane, valid in zip(range(count), mask, strict=True)
    ]


def _store(view: memoryview, position: int, values: list[Any], mask: Any) -> None:
    if mask is False:
        return
    lanes = [True] * len(values) if mask is None or mask is True else mask
    for lane, (value, valid) in enumerate(zip(values, lanes, strict=True)):
        if valid:
            view[_check_position(position + lane)] = value


def halves(function: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    """Combines all lanes in the order of devices: lane i with lane i + half. An odd lane waits for the next round."""
    lanes = list(values)
    while len(lanes) > 1:
        half_count = len(lanes) // 2
        merged = [function(x, y) for x, y in zip(lanes[:half_count], lanes[half_count : 2 * half_count], strict=True)]
        lanes = merged + lanes[2 * half_count :]
    return lanes[0]


PROGRAM_BYTES = 8 << 10  # bytes of a program beside those proportional to its text

_NAMES: dict[str, Any] = {
    "at": _check_position,
    "aligned": _check_aligned,
    "load": _load,
    "store": _store,
    "halves": halves,
    "inf": math.inf,
    "nan": math.nan,
    "float16_bits": lambda x: to_bits(x, dtypes.float16),
    "float16_from_bits": lambda bits: from_bits(bits, dtypes.float16),
    "bfloat16_bits": bfloat16_bits,
    "bfloat16_from_bits": bfloat16_from_bits,
}


@cache
def _compile_function(op: Ops, dtype: DType, source: DType) -> Callable[..., Any]:
    return scalar_function(op, dtype, (source, source, source))


def names_for(uops: Sequence[UOp]) -> dict[str, Any]:
    """Returns the names that the text of a program of `uops` refers to, with their values."""
    names = dict(_NAMES)
    for node in uops:
        if node.op in OpGroups.ALU or node.op is Ops.HREDUCE:
            op = node.arg if node.op is Ops.HREDUCE else node.op
            source = node.src[1].dtype if op is Ops.WHERE else node.src[0].dtype
            assert isinstance(source, DType) and isinstance(node.dtype, DType)
            scalar = node.dtype.scalar
            names[meaning_name(op, scalar, source.scalar)] = _compile_function(op, scalar, source.scalar)
        elif node.op is Ops.WMMA:
            names[node.arg] = partial(multiply_tiles, TENSOR_CORES[node.arg])
    return names


def cast_view(view: memoryview, element: Any) -> memoryview:
    """Returns bytes as elements of the format `element`."""
    return view.cast(element)


class PythonProgram:
    """A Python function over memoryviews. `nbytes`: approximate bytes of process memory that it takes."""

    entry_address: int | None = None
    code_bytes = 0
    refusal = ""

    def __init__(self, spec: ProgramSpec) -> None:
        self.spec = spec
        namespace = names_for(spec.uops)
        exec(compile(spec.source, f"<kernel {spec.name}>", "exec"), namespace)
        self.function: Callable[..., None] = namespace[spec.name]
        self.groups = EmulatedGroups(spec, self.function) if spec.target.has_local else None
        self.nbytes = PROGRAM_BYTES + 4 * len(spec.source)

    def __repr__(self) -> str:
        return f"PythonProgram({self.spec.name!r})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function of (start, stop) that interprets the program on `buffers`."""
        check_arguments(self.spec, buffers, values)
        if self.groups is not None:
            return bind(self.groups, buffers, values)
        views = [cast_view(buffer.allocate().memoryview(), memory_format(buffer.dtype)) for buffer in buffers]
        function = self.function

        def run(start: int, stop: int) -> None:
            function(*views, *values, start, stop)

        return run


def open_python() -> DeviceInterface:
    """Opens the PYTHON device, which is always available. If TARGET names a GPU, `emulator` runs its programs."""
    version = platform.python_version()
    choice = current_choice()
    if choice.gpu is not None:
        gpu = gpu_target("PYTHON", choice.gpu, choice.cpu, choice.text)
        return DeviceInterface(
            "PYTHON", gpu, HOST_ALLOCATOR, PythonRenderer(gpu, f"python {version}"), PythonProgram, _no_listings
        )
    target = Target(
        name="PYTHON",
        arch=machine(),
        cpu=f"{platform.python_implementation()} {version}",
        features="",
        vector_bytes=0,
        vector_registers=0,
        threads=1,
        l1_bytes=32 << 10,
        l2_bytes=256 << 10,
        native_ops=OpGroups.TRANSCENDENTAL | {Ops.SQRT, Ops.FLOOR, Ops.MOD},
        native_dtypes=dtypes.floats,
        cores=AMX,
    )
    renderer = PythonRenderer(target, f"python {version}")
    return DeviceInterface("PYTHON", target, HOST_ALLOCATOR, renderer, PythonProgram, _no_listings)


def _no_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Returns no listings beside the source."""
    return []
