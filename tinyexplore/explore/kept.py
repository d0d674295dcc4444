"""What a capture keeps of its kernels beside the trace: how to make them again, and what was in their buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import DType, PtrDType
from tinyexplore.explore.counted import count_text
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.program import global_buffers
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel import Kernel

KEEP_BYTES = 64 << 20  # of inputs, where a capture is asked to keep them and not how much


@dataclass(frozen=True)
class Kept:
    """One kernel of a capture. The program's UOps are made again when somebody asks for them.

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


class InputKeeper:
    """Copies what a kernel reads before it first runs, as long as there is room (`limit` bytes in all)."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self.left_out = 0
        self.contents: dict[Any, tuple[bytes | None, ...] | None] = {}

    def about_to_run(self, exec_item: Any) -> None:
        """Sees to the inputs of `exec_item`."""
        if not self.limit or exec_item.runner is None or exec_item.item in self.contents:
            return
        needed = sum(buffer.nbytes for buffer in exec_item.buffers)
        if self.nbytes + needed > self.limit:
            self.left_out += 1
            self.contents[exec_item.item] = None
            return
        self.nbytes += needed
        found = tuple(buffer.copyout() if buffer.is_allocated else None for buffer in exec_item.buffers)
        self.contents[exec_item.item] = found

    def note(self) -> str:
        """What the reader must know of it."""
        count = sum(found is not None for found in self.contents.values())
        text = f"the inputs of {count_text(count, 'kernel')} are kept, {count_text(self.nbytes, 'byte')}"
        if self.left_out:
            text += f"; those of {self.left_out} more would pass the limit of {self.limit:,} bytes (keep_inputs=…)"
        return text


def limit_of(keep_inputs: object) -> int:
    """The bytes that an option `keep_inputs` allows: True is 64 MiB, False none."""
    if isinstance(keep_inputs, bool):
        return KEEP_BYTES if keep_inputs else 0
    if not isinstance(keep_inputs, int) or keep_inputs < 0:
        raise ValueError(f"keep_inputs={keep_inputs!r}: give True (64 MiB), False, or a number of bytes")
    return keep_inputs


def kept_kernels(drafts: Iterable[Any], contents: Mapping[Any, tuple[bytes | None, ...] | None]) -> dict[int, Kept]:
    """The kernels of a trace by their numbers there; copies are none."""
    found = {}
    for draft in drafts:
        if draft.spec is not None and draft.make_kernel is not None:
            known = contents.get(draft.item)
            found[draft.number] = Kept(draft.number, draft.spec, draft.make_kernel, draft.values, known)
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


__all__ = ["KEEP_BYTES", "InputKeeper", "Kept", "buffer_types", "kept_kernels", "limit_of", "read_buffers"]
