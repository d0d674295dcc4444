"""What a page needs to run kernels by itself: WebAssembly modules, what to run them on, and what should come out."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tinyexplore.codegen import lower
from tinyexplore.compile.lowering import compile_optimised
from tinyexplore.device import Buffer, Device, DeviceUnavailable
from tinyexplore.explore.analysis.byhand.debugging import generated_inputs
from tinyexplore.explore.recording.kept import CapturedKernel, buffer_types
from tinyexplore.explore.tracefile.model import KernelInfo
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.kernel import Kernel, hand_coded
from tinyexplore.renderer import RenderError
from tinyexplore.renderer.wasm import WASMRenderer, assemble
from tinyexplore.runtime.wasm import wasm_target
from tinyexplore.target import NATIVE
from tinyexplore.trace import recording
from tinyexplore.util import Context

LANGUAGE = "wat"
INPUT_BYTES = 2 << 20  # of what kernels read, in all: a page is to stay small
SAMPLE = 4096  # elements of a result that a page compares
CHECKED = "LLVM"  # what should come out is computed there, by other machine code


def runnable(
    trace: Trace, kept: Mapping[int, CapturedKernel] | None = None, *, all_devices: bool = False
) -> list[dict[str, Any]]:
    """The kernels of `trace` that a page can run, as JSON: those captured on the WASM device, or all that can be made
    for it. `kept`: what a capture kept of them; without it a page has no result to compare with.
    """
    known, room, found = kept or {}, INPUT_BYTES, []
    listed = {one.kernel: one.lines for one in trace.programs if one.language == LANGUAGE}
    for kernel in trace.kernels:
        mine = known.get(kernel.id)
        text: str | None = "\n".join([line.text for line in listed.get(kernel.id, ())])
        if not text and all_devices and mine is not None:
            text = _made_for_pages(mine)
        if not text:
            continue
        data: dict[str, Any] = {"kernel": kernel.id, "wasm": b64encode(assemble(text)).decode(), "values": []}
        data["name"] = _exported(text)
        if mine is None:
            if "(param $var_" in text:
                continue  # nobody tells the values of its Variables
            data["buffers"] = _buffers_told(trace, kernel)
        else:
            data["values"] = list(mine.values)
            data["buffers"] = [[dtype.name, size * dtype.itemsize] for dtype, size in buffer_types(mine.uops)]
            room = _with_results(data, mine, room)
        found.append(data)
    return found


def _exported(text: str) -> str:
    match = re.search(r'\(func \$\S+ \(export "([^"]+)"\)', text)
    assert match is not None
    return match[1]


def _buffers_told(trace: Trace, kernel: KernelInfo) -> list[list[Any]]:
    return [[trace.buffers[number].dtype, trace.buffers[number].bytes] for number in kernel.buffers]


def _made_for_pages(kept: CapturedKernel) -> str | None:
    """The text of a kernel of another device, with the opts that it gets for WebAssembly; None where there is none."""
    with recording(None):
        ast = kept.make_kernel().original
        kernel = hand_coded(Kernel.of(ast, wasm_target()))
        try:
            return WASMRenderer(kernel.target).render(kernel.name, lower(kernel)).source
        except RenderError:
            return None


def _with_results(data: dict[str, Any], kept: CapturedKernel, room: int) -> int:
    """Adds what the kernel read, as far as there is room for it, and what it should write; the room that is left."""
    contents = kept.contents
    total = sum([len(one) for one in contents or () if one is not None])
    given: list[bytes]
    if contents is not None and total <= room:
        sizes = [nbytes for _, nbytes in data["buffers"]]
        given = [bytes(size) if one is None else one for one, size in zip(contents, sizes)]
        data["inputs"] = [None if one is None else b64encode(one).decode() for one in contents]
        room -= total
    else:
        given = generated_inputs(kept.uops)
    data["results"] = list(_results(kept, given))
    return room


def _results(kept: CapturedKernel, given: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """A sample of each buffer that the kernel writes, by a device that computes it otherwise than the page will."""
    try:
        with recording(None), Context(TARGET=NATIVE, BEAM=0):
            kernel = hand_coded(Kernel.of(kept.make_kernel().original, Device[CHECKED].target))
            runner = compile_optimised(CHECKED, kernel)
            types = buffer_types(runner.spec.uops)
            buffers = [Buffer(CHECKED, size, dtype).copyin(one) for (dtype, size), one in zip(types, given)]
            runner.run(runner.program.bind(buffers, kept.values), kept.values)
    except DeviceUnavailable:
        return
    for place in sorted(runner.spec.writes):
        dtype, size = types[place]
        step = -(-size // SAMPLE) | 1  # odd: not always the same column
        content = buffers[place].copyout()
        width = dtype.itemsize
        sample = b"".join([content[at : at + width] for at in range(0, size * width, step * width)])
        yield {"buffer": place, "step": step, "sample": b64encode(sample).decode()}


__all__ = ["runnable"]
