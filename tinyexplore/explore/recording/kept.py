"""What a capture keeps of its kernels beside the trace: how to make them again, and what was in their buffers."""

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
    """One kernel of a capture. The program's UOps are made again when needed.

    values: of its Variables. contents: what lay in each of its buffers before it ran first (None: nothing yet); None
    where the capture was not asked to keep that, or it was too much.
    """

    number: int
    spec: ProgramSpec
    make_kernel: Callable[[], Kernel]
    values: tuple[int, ...]
    contents: tuple[bytes | None, ...] | None = None

    @property
    def uops(self) -> tuple[UOp, ...]:
        """The linear program."""
        return self.spec.uops


def kept_kernels(
    drafts: Iterable[Any], contents: Mapping[Any, tuple[bytes | None, ...] | None]
) -> dict[int, CapturedKernel]:
    """The kernels of a trace by their numbers there; copies are none."""
    found = {}
    for draft in drafts:
        if draft.spec is not None and draft.make_kernel is not None:
            known = contents.get(draft.item)
            found[draft.number] = CapturedKernel(draft.number, draft.spec, draft.make_kernel, draft.values, known)
    return found


def buffer_types(uops: Sequence[UOp]) -> list[tuple[DType, int]]:
    """The element type and the size of each buffer of a program, in the order of its arguments."""
    found = []
    for node in global_buffers(uops):
        assert isinstance(node.dtype, PtrDType)
        found.append((node.dtype.base, node.dtype.size))
    return found


def read_buffers(uops: Sequence[UOp]) -> set[int]:
    """The positions of the buffers that a program loads from."""
    order = {node: place for place, node in enumerate(global_buffers(uops))}
    loads = [node.src[0].src[0] for node in uops if node.op is Ops.LOAD]
    return {order[base] for base in loads if base in order}


__all__ = ["CapturedKernel", "buffer_types", "kept_kernels", "read_buffers"]
