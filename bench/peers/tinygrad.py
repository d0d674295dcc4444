"""tinygrad on its CPU device, in its TinyJit.

Compiler: clang (variant ""), LLVM ("llvm") or its own ("x86").
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.peers.tensors import LazyEngine

LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "~/.rustup/toolchains", "/opt/homebrew/opt")
SMALLEST_LIBRARY = 1 << 20  # bytes; a smaller file is a linker script
OPAQUE_POINTERS = 16  # the first LLVM that reads the typed pointers of tinygrad's text as opaque pointers


class Engine(LazyEngine):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        self._choose_device(variant.upper())
        os.environ.setdefault("CPU_COUNT", str(threads))
        from tinygrad import Context, Device, Tensor, TinyJit, Variable, nn
        from tinygrad.nn.optim import SGD, Adam

        self.jit, self.replays_only = True, bool(variant)
        training = Tensor.train if hasattr(Tensor, "train") else lambda: Context(TRAINING=1)
        self.api = SimpleNamespace(
            Tensor=Tensor,
            nn=nn,
            TinyJit=TinyJit,
            SGD=SGD,
            Adam=Adam,
            training=training,
            Variable=Variable,
            simplify=simplify,
        )
        self.api.simplify_recorded, self.api.rewrites = None, rewrites
        self.version = f"{version('tinygrad')}, {Device.DEFAULT}"
        if variant == "llvm":
            self.version += f", {Path(os.environ.get('LLVM_PATH', 'its own choice of LLVM')).name}"

    @staticmethod
    def _choose_device(compiler: str) -> None:
        """Set the environment variables that tinygrad reads at its import. They depend on the release."""
        release = tuple(int(part) for part in version("tinygrad").split(".")[:2])
        if compiler == "LLVM" and release >= (0, 11):
            os.environ.setdefault("LLVM_PATH", newest_llvm())
        if release >= (0, 14):
            os.environ["DEV"] = f"CPU:{compiler}" if compiler else "CPU"
        elif release >= (0, 11):
            os.environ["CPU"] = "1"
            os.environ["CPU_LLVM"] = str(int(compiler == "LLVM"))
        else:
            os.environ[compiler or "CLANG"] = "1"


def simplify(expressions: list[Any]) -> tuple[Any, ...]:
    """Return index expressions, rewritten until no rule fires."""
    from tinygrad.uop.ops import UOp, graph_rewrite
    from tinygrad.uop.symbolic import symbolic

    return graph_rewrite(UOp.sink(*expressions), symbolic).src


class _CountingTable:
    """A table of rules that counts as tinygrad's TRACK_MATCH_STATS does: rule results that differ from their node."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.count = 0

    def rewrite(self, node: Any, ctx: Any = None) -> Any:
        result = self.table.rewrite(node, ctx)
        self.count += result is not None and result is not node
        return result


def rewrites(expressions: list[Any]) -> int:
    """Return the number of rule firings until none fires."""
    from tinygrad.uop.ops import UOp, graph_rewrite
    from tinygrad.uop.symbolic import symbolic

    counted = _CountingTable(symbolic)
    graph_rewrite(UOp.sink(*expressions), counted)  # type: ignore[arg-type]
    return counted.count


def newest_llvm() -> str:
    """Return the shared library of the newest LLVM on this machine. tinygrad would take an arbitrary one."""
    libraries = dict(_llvm_libraries())
    newest = max(libraries, default=0)
    if newest < OPAQUE_POINTERS:
        available = f"only LLVM {', '.join(map(str, sorted(libraries)))}" if libraries else "none"
        raise RuntimeError(
            f"tinygrad's LLVM backend needs LLVM {OPAQUE_POINTERS} or newer and there is {available}; install one "
            "(Debian: apt-get install libllvm19) or name its shared library in LLVM_PATH"
        )
    return libraries[newest]


def _llvm_libraries() -> Iterator[tuple[int, str]]:
    for folder in LIBRARY_FOLDERS:
        for pattern in ("libLLVM*", "*/libLLVM*", "*/lib/libLLVM*"):
            for path in Path(folder).expanduser().glob(pattern):
                match = re.match(r"libLLVM[-.](?:so\.)?(\d+)[-.]", path.name)
                is_library = ".so" in path.name or path.suffix == ".dylib"
                if match is not None and is_library and path.stat().st_size > SMALLEST_LIBRARY:
                    yield int(match[1]), str(path)
