"""Runs axe-core on an open page and returns its accessibility findings. The script comes from a Python package,
so that the tests need no Node."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

GRAVE = ("serious", "critical")


@cache
def _script() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def findings(tab: Any, within: str = ".tinyexplore", impacts: tuple[str, ...] | None = GRAVE) -> list[str]:
    """The findings of axe-core below `within`, each with its first elements.

    impacts: the levels to report; None: all.
    """
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(_script())
    found = tab.evaluate(f"() => axe.run({json.dumps(within)}, {{resultTypes: ['violations']}})")
    return [
        f"{one['impact']} {one['id']} × {len(one['nodes'])}: "
        + "; ".join(
            f"{node['target'][-1]} ({node['failureSummary'].splitlines()[-1].strip()})" for node in one["nodes"][:4]
        )
        for one in found["violations"]
        if impacts is None or one["impact"] in impacts
    ]
