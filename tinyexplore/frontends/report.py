"""A report of the available front ends and the operators that they translate."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any


@dataclass(frozen=True)
class FrontEnd:
    """One front end on this machine.

    Attributes:
        name: the name of the framework.
        package: the distribution that it needs.
        extra: the extra of `pip install 'tinyexplore[…]'` that installs it.
        oldest: the oldest version that the extra allows.
        version: the installed version; None if the package is missing.
        call: how to explore a program.
        operators: the supported operators of the framework, sorted; empty if the package is missing.
    """

    name: str
    package: str
    extra: str
    oldest: str
    version: str | None
    call: str
    operators: tuple[str, ...]

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.name:8} not installed: pip install 'tinyexplore[{self.extra}]' ({self.oldest} or newer)"
        operators = f"{len(self.operators):,} operators are supported"
        return f"{self.name:8} {self.package} {self.version} ({self.oldest} or newer); {operators}; {self.call}"

    def as_data(self) -> dict[str, Any]:
        """Returns the attributes as data for JSON."""
        return asdict(self)


def front_ends() -> tuple[FrontEnd, ...]:
    """Returns every front end, whether or not its package is installed."""
    onnx, torch = _read_version("onnx"), _read_version("torch")
    of_onnx = _list_onnx_operators() if onnx else ()
    of_torch = _list_torch_operators() if torch else ()
    compiled = 'torch.compile(f, backend="tinyexplore")'
    return (
        FrontEnd("ONNX", "onnx", "onnx", "1.17", onnx, 'explore.onnx("model.onnx")', of_onnx),
        FrontEnd("PyTorch", "torch", "torch", "2.7", torch, compiled, of_torch),
    )


def _read_version(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _list_onnx_operators() -> tuple[str, ...]:
    from tinyexplore.frontends.onnx import supported_operators

    return tuple(supported_operators())


def _list_torch_operators() -> tuple[str, ...]:
    from tinyexplore.frontends.torch import supported_operations

    return supported_operations()


__all__ = ["FrontEnd", "front_ends"]
