"""The definition of a row; `ROWS` is the whole table after its modules are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.torch.compare import Row
from tests.torch.drawing import Inputs

ROWS: list[Row] = []


def row(
    names: str, inputs: Inputs, ours: Callable[..., Any], theirs: Callable[..., Any] | None = None, **how: Any
) -> None:
    """Enters a row; `names` with spaces between, `theirs` where PyTorch writes it differently."""
    ROWS.append(Row(tuple(names.split()), inputs, ours, ours if theirs is None else theirs, **how))
