"""Lists the operations with a translation."""

from __future__ import annotations

from tinyexplore.frontends.torch import operations  # noqa: F401 (fills the table)
from tinyexplore.frontends.torch.table import OPERATIONS


def supported_operations() -> tuple[str, ...]:
    """Returns the names of the ATen and prims operations that Tensors compute. ATen computes all others."""
    return tuple(sorted(OPERATIONS))
