"""Stores the inputs of kernels during a capture with the option `keep_inputs`."""

from __future__ import annotations

from typing import Any

from tinyexplore.explore.tracefile.counts import count_text

KEEP_BYTES = 64 << 20  # the limit for `keep_inputs=True`


class InputKeeper:
    """Copies the inputs of each kernel before its first run, up to `limit` bytes in total."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self.left_out = 0
        self.contents: dict[Any, tuple[bytes | None, ...] | None] = {}

    def about_to_run(self, exec_item: Any) -> None:
        """Copies the inputs of `exec_item` if they fit into the limit."""
        if not self.limit or exec_item.runner is None or exec_item.item in self.contents:
            return
        needed = sum(buffer.nbytes for buffer in exec_item.buffers)
        if self.nbytes + needed > self.limit:
            self.left_out += 1
            self.contents[exec_item.item] = None
            return
        self.nbytes += needed
        contents = tuple(buffer.copyout() if buffer.is_allocated else None for buffer in exec_item.buffers)
        self.contents[exec_item.item] = contents

    def note(self) -> str:
        """Returns the remark for the reader: how many inputs were stored, and how many exceeded the limit."""
        count = sum(content is not None for content in self.contents.values())
        text = f"the inputs of {count_text(count, 'kernel')} are stored, {count_text(self.nbytes, 'byte')}"
        if self.left_out:
            text += f"; those of {self.left_out} more would exceed the limit of {self.limit:,} bytes (keep_inputs=…)"
        return text


def limit_of(keep_inputs: object) -> int:
    """Returns the limit in bytes for an option `keep_inputs`: 64 MiB for True, 0 for False."""
    if isinstance(keep_inputs, bool):
        return KEEP_BYTES if keep_inputs else 0
    text = f"keep_inputs={keep_inputs!r}: give True (64 MiB), False, or a number of bytes"
    if not isinstance(keep_inputs, int):
        raise TypeError(text)
    if keep_inputs < 0:
        raise ValueError(text)
    return keep_inputs


__all__ = ["KEEP_BYTES", "InputKeeper", "limit_of"]
