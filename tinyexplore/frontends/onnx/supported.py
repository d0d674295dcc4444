"""Lists the supported operators."""

from __future__ import annotations

from tinyexplore.frontends.onnx import operators as _operators  # noqa: F401 (fills the table)
from tinyexplore.frontends.onnx.node import OPERATORS


def supported_operators() -> list[str]:
    """Returns the operators with a function here, sorted; those of other domains as "domain.Name".

    Operators that the standard defines by a graph of others are also supported.
    """
    return sorted(f"{domain}.{name}" if domain else name for domain, name in OPERATORS)
