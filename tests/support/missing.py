"""Simulates a package that is not installed."""

from __future__ import annotations

import builtins
from typing import Any

import pytest


def without_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Until the test ends, importing `package` fails."""
    real = builtins.__import__

    def imported(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith(package):
            raise ImportError(f"No module named {package!r}")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", imported)
