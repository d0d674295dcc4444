"""tinygrad on its CPU device, inside its TinyJit: compiled by clang (variant ""), or by LLVM ("llvm")."""

from __future__ import annotations

import os
from importlib.metadata import version
from types import SimpleNamespace

from bench.peers.tensors import LazyEngine


class Engine(LazyEngine):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        self._choose_device("LLVM" if variant == "llvm" else "")
        os.environ.setdefault("CPU_COUNT", str(threads))
        from tinygrad import Context, Device, Tensor, TinyJit
        from tinygrad.nn.optim import SGD, Adam

        self.jit, self.replays_only = True, variant == "llvm"
        training = Tensor.train if hasattr(Tensor, "train") else lambda: Context(TRAINING=1)
        self.api = SimpleNamespace(Tensor=Tensor, TinyJit=TinyJit, SGD=SGD, Adam=Adam, training=training)
        self.version = f"{version('tinygrad')}, {Device.DEFAULT}"

    @staticmethod
    def _choose_device(compiler: str) -> None:
        """By the environment, which it reads when it is imported; each generation of releases has its own way."""
        release = tuple(int(part) for part in version("tinygrad").split(".")[:2])
        if release >= (0, 14):
            os.environ["DEV"] = f"CPU:{compiler}" if compiler else "CPU"
        elif release >= (0, 11):
            os.environ["CPU"] = "1"
            os.environ["CPU_LLVM"] = str(int(bool(compiler)))
        else:
            os.environ[compiler or "CLANG"] = "1"
