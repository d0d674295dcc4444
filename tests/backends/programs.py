"""Hand-written linear programs, and functions that run them on a device with plain Python values."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import tinyexplore.devices  # noqa: F401  makes the devices known
from tinyexplore.device import Buffer, Device, DeviceInterface, DeviceUnavailable
from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.semantics import from_bits, to_bits
from tinyexplore.util import Context

C_COMPILERS = tuple(name for name in ("clang", "gcc") if shutil.which(name))
DEVICES = ("PYTHON", "LLVM", *(f"CLANG with {name}" for name in C_COMPILERS), "WASM")


def under(name: str) -> tuple[str, Context]:
    """A device's own name, and the settings in which it is meant: "GPU for opencl" is open for that TARGET."""
    head, _, target = name.partition(" for ")
    return head, Context(TARGET=target) if target else Context()


def _opens(name: str, required: str) -> bool:
    head, settings = under(name)
    try:
        with settings:
            return bool(Device[head])
    except DeviceUnavailable:
        if os.environ.get(required, "") not in ("", "0"):
            raise
        return False


WORK_ITEMS = "GPU for opencl"  # the GPU device, whatever it is, with kernels for a GPU
REQUIRED = {WORK_ITEMS: "TINYEXPLORE_REQUIRE_OPENCL", "WEBGPU": "TINYEXPLORE_REQUIRE_VULKAN"}
GPUS = tuple(name for name in REQUIRED if _opens(name, REQUIRED[name]))  # devices whose programs have no vectors
OPENCL_CPUS = tuple(["GPU"] if WORK_ITEMS in GPUS and not Device["GPU"].target.has_local else [])  # with vectors
# how wide: PoCL takes half a second for each program, so that of many cases each has one width, and all those that
# OPENCL_LANES=1,2,4,8,16 names
WIDTHS_OF_OPENCL = tuple(
    map(int, os.environ.get("OPENCL_LANES", "").split(",") if "OPENCL_LANES" in os.environ else ())
)
EMULATED = "PYTHON for opencl"


@cache
def device(name: str) -> DeviceInterface:
    """An open device; "CLANG with gcc" compiles by that compiler, "PYTHON for opencl" is open for that TARGET."""
    head, settings = under(name)
    if head != name:
        with settings:
            return Device[head]
    head, _, compiler = name.partition(" with ")
    if not compiler:
        return Device[head]
    from tinyexplore.runtime.clang import open_clang

    path = shutil.which(compiler)
    assert path is not None
    return open_clang(path)


def to_bytes(values: Sequence[Any], dtype: DType) -> bytes:
    """The memory of `values`."""
    return b"".join(to_bits(value, dtype).to_bytes(dtype.itemsize, "little") for value in values)


def from_bytes(data: bytes, dtype: DType) -> list[Any]:
    """The values in memory; bytes of bools other than 0 and 1 are an error of the device."""
    size = dtype.itemsize
    chunks = [int.from_bytes(data[start : start + size], "little") for start in range(0, len(data), size)]
    if dtype is dtypes.bool:
        assert set(chunks) <= {0, 1}, f"bools stored as {sorted(set(chunks))}"
    return [from_bits(bits, dtype) for bits in chunks]


def pointer(position: int, dtype: DType, size: int) -> UOp:
    return UOp(Ops.DEFINE_GLOBAL, PtrDType(dtype, size), (), position)


def load(buffer: UOp, idx: UOp | int, count: int = 1, valid: UOp | None = None) -> UOp:
    position = index_const(idx) if isinstance(idx, int) else idx
    assert isinstance(buffer.dtype, PtrDType)
    return UOp(Ops.LOAD, buffer.dtype.base.vec(count), (buffer.index(position, valid),))


def store(buffer: UOp, idx: UOp | int, value: UOp, valid: UOp | None = None) -> UOp:
    position = index_const(idx) if isinstance(idx, int) else idx
    return UOp(Ops.STORE, dtypes.void, (buffer.index(position, valid), value))


def loop(size: int, number: int = 0, kind: AxisKind = AxisKind.GLOBAL) -> UOp:
    return UOp.range(size, Axis(number, kind))


def end(opened: UOp) -> UOp:
    return UOp(Ops.ENDRANGE, dtypes.void, (opened,))


def linear(*roots: UOp) -> list[UOp]:
    """Everything that `roots` need, sources first, the roots in this order."""
    order: dict[UOp, None] = {}
    for root in roots:
        for node in root.toposort():
            order[node] = None
    return list(order)


def elementwise(
    inputs: Sequence[DType], build: Callable[[list[UOp]], Sequence[UOp]], size: int, lanes: int = 1
) -> tuple[list[UOp], list[DType]]:
    """A program that computes `build` of `size` elements, `lanes` at a time; outputs come first among the buffers."""
    steps = loop(size // lanes)
    probe = build([UOp(Ops.DEFINE_VAR, dtype.vec(lanes), (), (f"x{i}", 0, 0)) for i, dtype in enumerate(inputs)])
    outputs = [value.dtype.scalar for value in probe]  # type: ignore[union-attr]
    sources = [pointer(len(outputs) + number, dtype, size) for number, dtype in enumerate(inputs)]
    values = build([load(source, steps * lanes, lanes) for source in sources])
    targets = [pointer(number, dtype, size) for number, dtype in enumerate(outputs)]
    stores = [store(target, steps * lanes, value) for target, value in zip(targets, values, strict=True)]
    return linear(*targets, *sources, *stores, end(steps)), outputs


def compiled(name: str, uops: Sequence[UOp], title: str = "a_kernel") -> Any:
    """The program, ready to run."""
    opened = device(name)
    return opened.compile(opened.renderer.render(title, uops))


def call(
    program: Any,
    outputs: Sequence[tuple[DType, int] | tuple[DType, list[Any]]],
    inputs: Sequence[tuple[DType, Sequence[Any]]],
    start: int = 0,
    stop: int = 0,
) -> list[list[Any]]:
    """What the output buffers hold after one call; an output is given by its size or by what it holds before."""
    name = program.spec.target.name
    buffers = []
    for dtype, content in outputs:
        size = content if isinstance(content, int) else len(content)
        before = bytes(size * dtype.itemsize) if isinstance(content, int) else to_bytes(content, dtype)
        buffers.append(Buffer(name, size, dtype).copyin(before))
    for dtype, values in inputs:
        buffers.append(Buffer.from_memory(name, dtype, to_bytes(values, dtype)))
    program.bind(buffers)(start, stop)
    return [from_bytes(buffer.copyout(), buffer.dtype) for buffer in buffers[: len(outputs)]]
