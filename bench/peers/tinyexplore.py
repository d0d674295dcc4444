"""tinyexplore itself: realized as users do (variant ""), or replayed ("jit")."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from bench.peers import Unsupported
from bench.peers.tensors import LazyEngine


class Engine(LazyEngine):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        from tinyexplore import Tensor

        self.jit = self.replays_only = variant == "jit"
        self.api = _Api(Tensor)
        if self.jit:
            self.api.TinyJit  # noqa: B018 - says at once where there is none

    @property
    def version(self) -> str:  # type: ignore[override]
        """Return the version and the target. This opens the device."""
        import tinyexplore
        from tinyexplore import Device

        return f"{tinyexplore.__version__}, {Device[Device.DEFAULT].target.describe()}"

    def spoil(self, result: Any) -> None:
        for tensor in result:
            buffer = tensor.lazydata.base.buffer if hasattr(tensor, "lazydata") else None
            if buffer is not None:  # a lazy result has no memory yet, a simplified expression never has any
                buffer.memoryview()[:] = b"\xff" * buffer.nbytes


def simplify(expressions: list[Any]) -> tuple[Any, ...]:
    """Return index expressions, rewritten until no rule fires."""
    from tinyexplore.uop import UOp, graph_rewrite
    from tinyexplore.uop.algebra import SIMPLIFY

    return graph_rewrite(UOp.sink(*expressions), SIMPLIFY).src


def simplify_recorded(expressions: list[Any]) -> list[Any]:
    """Return the events of `simplify`."""
    from tinyexplore.trace import Recorder, recording

    recorder = Recorder()
    with recording(recorder):
        simplify(expressions)
    return recorder.events


def rewrites(expressions: list[Any]) -> int:
    """Return the number of rule firings until none fires."""
    from tinyexplore.trace import RuleApplied

    return sum(isinstance(event, RuleApplied) for event in simplify_recorded(expressions))


class _Api(SimpleNamespace):
    """The engine's API. Names are looked up at their first use, so that a missing name fails one case, not the peer."""

    _homes = {
        "TinyJit": "tinyexplore.jit",
        "SGD": "tinyexplore.nn.optim",
        "Adam": "tinyexplore.nn.optim",
        "Variable": "tinyexplore",
    }

    def __init__(self, tensor: Any) -> None:
        indices = {"simplify": simplify, "simplify_recorded": simplify_recorded, "rewrites": rewrites}
        super().__init__(Tensor=tensor, training=tensor.train, **indices)

    def __getattr__(self, name: str) -> Any:
        if name == "nn":
            return importlib.import_module("tinyexplore.nn")
        home = self._homes.get(name)
        if home is None:
            raise AttributeError(name)
        try:
            return getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError) as error:
            raise Unsupported(f"tinyexplore cannot yet: {home}.{name} does not exist ({error})") from error
