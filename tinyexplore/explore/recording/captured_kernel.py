"""Stores the kernels of a capture beside its trace: the data to compile them again, and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import DType, PtrDType
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.program import global_buffers
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel import Kernel


@dataclass(frozen=True)
class CapturedKernel:
    """One kernel of a capture. The program's UOps are rebuilt on demand.

    number: its row.
    spec: the rendered program.
    make_kernel: builds the Kernel with its opts.
    values: the values of its Variables.
    contents: the content of each buffer before the first run, None for a buffer without content. None if the capture
        did not store contents, or if they were too large.
    """

    number: int
    spec: ProgramSpec
    make_kernel: Callable[[], Kernel]
    values: tuple[int, ...]
    contents: tuple[bytes | None, ...] | None = None

    @property
    def uops(self) -> tuple[UOp, ...]:
        """Returns the linear program."""
        return self.spec.uops


def captured_kernels(
    drafts: Iterable[Any], contents: Mapping[Any, tuple[bytes | None, ...] | None]
) -> dict[int, CapturedKernel]:
    """Returns the kernels of a trace by number, except for copies."""
    captured = {}
    for draft in drafts:
        if draft.spec is not None and draft.make_kernel is not None:
            content = contents.get(draft.item)
            captured[draft.number] = CapturedKernel(draft.number, draft.spec, draft.make_kernel, draft.values, content)
    return captured


def buffer_types(uops: Sequence[UOp]) -> list[tuple[DType, int]]:
    """Returns the element type and the size of each buffer of a program, in argument order."""
    types = []
    for node in global_buffers(uops):
        assert isinstance(node.dtype, PtrDType)
        types.append((node.dtype.base, node.dtype.size))
    return types


def read_buffers(uops: Sequence[UOp]) -> set[int]:
    """Returns the argument positions of the buffers that a program loads from."""
    order = {node: number for number, node in enumerate(global_buffers(uops))}
    loads = [node.src[0].src[0] for node in uops if node.op is Ops.LOAD]
    return {order[base] for base in loads if base in order}


__all__ = ["CapturedKernel", "buffer_types", "captured_kernels", "read_buffers"]
