"""Opts as views write them: "UPCAST(0, 4), VECTOR(1, 16)"."""

from __future__ import annotations

import re

from tinyexplore.kernel import Opt, OptOps

_OPT = re.compile(r"\s*([A-Z]+)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*")


class WhatIfError(ValueError):
    """A question that cannot be asked: no such kernel, no such opt, nothing here that can be compiled again."""


def to_opt(text: str) -> Opt:
    """The Opt that a view writes so: "UPCAST(0, 4)"."""
    match = _OPT.fullmatch(text)
    if match is None or match[1] not in OptOps.__members__:
        names = ", ".join(OptOps.__members__)
        raise WhatIfError(f"{text!r:.60} is no opt: write NAME(axis) or NAME(axis, amount); there are {names}")
    return Opt(OptOps[match[1]], int(match[2]), int(match[3] or 0))


def to_opts(text: str) -> tuple[Opt, ...]:
    """The Opts in "UPCAST(0, 4), VECTOR(1, 16)"."""
    parts = re.findall(r"[^(),\s]+\s*\([^)]*\)|[^\s,]+", text)
    return tuple(to_opt(part) for part in parts)


__all__ = ["WhatIfError", "to_opt", "to_opts"]
