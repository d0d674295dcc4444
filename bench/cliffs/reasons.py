"""Why rows are above the aim: the causes that are known, by program."""

from __future__ import annotations

CALLS = "Python builds and matches {} operations in each lazy call; replayed by TinyJit it takes {} of PyTorch's time"

REASONS: dict[str, str] = {}
