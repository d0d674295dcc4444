"""The data with which a page runs kernels: WebAssembly modules, inputs, and expected results."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tinyexplore.codegen import lower
from tinyexplore.compile.lowering import compile_optimized
from tinyexplore.device import Buffer, Device, DeviceUnavailable
from tinyexplore.explore.analysis.models.kernel_debugger import generated_inputs
from tinyexplore.explore.recording.captured_kernel import CapturedKernel, buffer_types
from tinyexplore.explore.tracefile.model import KernelInfo
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.renderer import RenderError
from tinyexplore.renderer.wasm import WASMRenderer, assemble
from tinyexplore.runtime.wasm import wasm_target
from tinyexplore.target import NATIVE
from tinyexplore.trace import recording
from tinyexplore.util import Context

LANGUAGE = "wat"
INPUT_BYTES = 2 << 20  # most bytes of all kernels' inputs, so that a page stays small
SAMPLE = 4096  # most elements of a result that a page compares
CHECKED = "LLVM"  # the device that computes the expected results, by different machine code


def runnable(
    trace: Trace, captured: Mapping[int, CapturedKernel] | None = None, *, all_devices: bool = False
) -> list[dict[str, Any]]:
    """Returns the kernels of `trace` that a page can run, as JSON.

    captured: the captured kernels; without them a page has no expected results.
    all_devices: whether to compile kernels of other devices than WASM, too.
    """
    by_number, bytes_left, inputs = captured or {}, INPUT_BYTES, []
    listed = {program.kernel: program.lines for program in trace.programs if program.language == LANGUAGE}
    for kernel in trace.kernels:
        captured_kernel = by_number.get(kernel.id)
        text: str | None = "\n".join([line.text for line in listed.get(kernel.id, ())])
        if not text and all_devices and captured_kernel is not None:
            text = _compile_for_pages(captured_kernel)
        if not text:
            continue
        data: dict[str, Any] = {"kernel": kernel.id, "wasm": b64encode(assemble(text)).decode(), "values": []}
        data["name"] = _find_exported_name(text)
        if captured_kernel is None:
            if "(param $var_" in text:
                continue  # the values of its Variables are unknown
            data["buffers"] = _list_buffer_types(trace, kernel)
        else:
            data["values"] = list(captured_kernel.values)
            data["buffers"] = [
                [dtype.name, size * dtype.itemsize] for dtype, size in buffer_types(captured_kernel.uops)
            ]
            bytes_left = _add_results(data, captured_kernel, bytes_left)
        inputs.append(data)
    return inputs


def _find_exported_name(text: str) -> str:
    match = re.search(r'\(func \$\S+ \(export "([^"]+)"\)', text)
    assert match is not None
    return match[1]


def _list_buffer_types(trace: Trace, kernel: KernelInfo) -> list[list[Any]]:
    return [[trace.buffers[number].dtype, trace.buffers[number].bytes] for number in kernel.buffers]


def _compile_for_pages(captured_kernel: CapturedKernel) -> str | None:
    """Returns the text of a kernel compiled for WebAssembly, with its own opts; None if it cannot be compiled."""
    with recording(None):
        ast = captured_kernel.make_kernel().original
        kernel = apply_heuristics(Kernel.of(ast, wasm_target()))
        try:
            return WASMRenderer(kernel.target).render(kernel.name, lower(kernel)).source
        except RenderError:
            return None


def _add_results(data: dict[str, Any], captured: CapturedKernel, bytes_left: int) -> int:
    """Adds the kernel's inputs, if they fit into `bytes_left`, and its outputs to `data`; returns the bytes left."""
    contents = captured.contents
    total = sum([len(content) for content in contents or () if content is not None])
    inputs: list[bytes]
    if contents is not None and total <= bytes_left:
        sizes = [nbytes for _, nbytes in data["buffers"]]
        inputs = [bytes(size) if content is None else content for content, size in zip(contents, sizes)]
        data["inputs"] = [None if content is None else b64encode(content).decode() for content in contents]
        bytes_left -= total
    else:
        inputs = generated_inputs(captured.uops)
    data["results"] = list(_yield_results(captured, inputs))
    return bytes_left


def _yield_results(captured: CapturedKernel, inputs: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """Yields a sample of each buffer that the kernel writes, computed by a device that differs from the page's."""
    try:
        with recording(None), Context(TARGET=NATIVE, BEAM=0):
            kernel = apply_heuristics(Kernel.of(captured.make_kernel().original, Device[CHECKED].target))
            runner = compile_optimized(CHECKED, kernel)
            types = buffer_types(runner.spec.uops)
            buffers = [Buffer(CHECKED, size, dtype).copyin(initial) for (dtype, size), initial in zip(types, inputs)]
            runner.run(runner.program.bind(buffers, captured.values), captured.values)
    except DeviceUnavailable:
        return
    for slot in sorted(runner.spec.writes):
        dtype, size = types[slot]
        step = -(-size // SAMPLE) | 1  # odd, so that the samples are not all from the same column
        content = buffers[slot].copyout()
        width = dtype.itemsize
        sample = b"".join([content[start : start + width] for start in range(0, size * width, step * width)])
        yield {"buffer": slot, "step": step, "sample": b64encode(sample).decode()}


__all__ = ["runnable"]
