"""Parses opts as views write them: "UPCAST(0, 4), VECTOR(1, 16)"."""

from __future__ import annotations

import re

from tinyexplore.kernel import Opt, OptOps

_OPT = re.compile(r"\s*([A-Z_]+)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*")


class WhatIfError(ValueError):
    """The command is invalid: an unknown kernel or opt, or a capture whose kernels cannot be compiled again."""


def to_opt(text: str) -> Opt:
    """Parses an Opt such as "UPCAST(0, 4)". Spellings of earlier versions, such as "AHEAD(0, 4)", are accepted too."""
    match = _OPT.fullmatch(text)
    if match is None or match[1] not in OptOps.__members__:
        names = ", ".join(op.name for op in OptOps)
        raise WhatIfError(f"{text!r:.60} is not an opt; write NAME(axis) or NAME(axis, amount); the opts are {names}")
    return Opt(OptOps[match[1]], int(match[2]), int(match[3] or 0))


def to_opts(text: str) -> tuple[Opt, ...]:
    """Parses a list of opts: "UPCAST(0, 4), VECTOR(1, 16)"."""
    parts = re.findall(r"[^(),\s]+\s*\([^)]*\)|[^\s,]+", text)
    return tuple(to_opt(part) for part in parts)


__all__ = ["WhatIfError", "to_opt", "to_opts"]
