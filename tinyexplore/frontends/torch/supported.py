"""Which operations have a translation."""

from __future__ import annotations

from tinyexplore.frontends.torch import operations  # noqa: F401 (fills the table)
from tinyexplore.frontends.torch.table import OPERATIONS


def supported_operations() -> tuple[str, ...]:
    """The names of the ATen and prims operations that Tensors compute; all others are left to ATen."""
    return tuple(sorted(OPERATIONS))
