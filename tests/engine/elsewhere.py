"""Tensors, a TinyJit capture and an explorer on a system that lacks a feature; prints the results as JSON.

`python -m tests.engine.elsewhere FOLDER [WHAT IS HIDDEN …]`: before anything else is imported, what is named is taken
away from this process, as if it ran on macOS or Windows. FOLDER is for files.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def without(module: Any, *names: str) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def refusing(error: type[OSError]) -> Callable[..., Any]:
    def refuse(*arguments: object, **named: object) -> Any:
        raise error("not on this system")

    return refuse


def hide_symbols(*names: bytes) -> None:
    """Machine code that calls such functions of the process finds none of them."""
    import llvmlite.binding as llvm

    honest = llvm.JITLibraryBuilder.add_object_img

    def add(builder: Any, code: bytes) -> Any:
        for name in names:
            code = code.replace(name, b"absent" + name[6:])
        return honest(builder, code)

    llvm.JITLibraryBuilder.add_object_img = add


def hide_mmap() -> None:
    sys.modules["mmap"] = None  # type: ignore[assignment]


def hide_mmap_flags() -> None:
    import mmap

    class Plain(mmap.mmap):
        """As on Windows: no flags, no advice."""

        def __new__(cls, handle: int, length: int, access: int = mmap.ACCESS_DEFAULT) -> Any:
            return super().__new__(cls, handle, length, access=access)

        madvise = property()  # type: ignore[assignment]

    for name in [name for name in vars(mmap) if name.startswith(("MAP_", "MADV_", "PROT_"))]:
        delattr(mmap, name)
    mmap.mmap = Plain  # type: ignore[misc]


def hide_process_library() -> None:
    honest = ctypes.CDLL

    class Library(honest):  # type: ignore[valid-type,misc]
        def __init__(self, name: Any, *arguments: Any, **named: Any) -> None:
            if name is None:
                raise TypeError("argument of type 'NoneType' is not iterable")
            super().__init__(name, *arguments, **named)

    ctypes.CDLL = Library  # type: ignore[misc]


def hide_unloading() -> None:
    import _ctypes

    without(_ctypes, "dlclose")


def hide_file_locks() -> None:
    sys.modules["fcntl"] = None  # type: ignore[assignment]


def hide_replacing() -> None:
    """A file that exists stays, as where another process has it open."""
    honest = os.replace

    def replace(source: Any, target: Any) -> None:
        if os.path.exists(target):
            raise PermissionError(13, "another process has it open", str(target))
        honest(source, target)

    os.replace = replace


def hide_links() -> None:
    without(os, "symlink", "link")


def call_it_darwin() -> None:
    """POSIX threads without a function that returns a thread's core."""
    import types

    from tinyexplore.runtime import pool

    pool.sys = types.SimpleNamespace(platform="darwin")  # type: ignore[attr-defined]
    hide_symbols(b"sched_getcpu", b"pthread_getaffinity_np", b"pthread_setaffinity_np")


HIDES: dict[str, Callable[[], None]] = {
    "threads of the system": lambda: hide_symbols(b"pthread_"),
    "cores of threads": call_it_darwin,
    "clock of the system": lambda: hide_symbols(b"clock_gettime"),
    "affinity": lambda: without(os, "sched_getaffinity", "sched_setaffinity", "sched_setscheduler"),
    "forks": lambda: without(os, "fork", "forkpty", "register_at_fork"),
    "flags of mmap": hide_mmap_flags,
    "mmap": hide_mmap,
    "the library of the process": hide_process_library,
    "unloading": hide_unloading,
    "clocks by number": lambda: without(time, "CLOCK_MONOTONIC", "clock_gettime"),
    "file locks": hide_file_locks,
    "links": hide_links,
    "replacing": hide_replacing,
    "users": lambda: without(os, "geteuid", "getuid", "getgid", "getegid", "chown", "fchmod"),
    "modes of opening": lambda: without(os, "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"),
}
WINDOWS = [name for name in HIDES if name not in ("mmap", "cores of threads")]


def outcome(folder: str) -> dict[str, Any]:
    """Values, which are the same wherever they are computed, and what of the system was found ("found")."""
    from tests.engine.one_thread import losses
    from tinyexplore import Context, Tensor, TinyJit, explore, nn
    from tinyexplore.lazy import LazyBuffer
    from tinyexplore.runtime.entry import has_entries
    from tinyexplore.runtime.pool import find_native_pool

    with Context(THREADS=3):
        x = (Tensor.arange(700 * 600).reshape(700, 600) % 97).float() / 97  # more than a MiB, and worth three threads
        product = (x[:300] @ x[:300].T).softmax().realize()

        @TinyJit
        def replayed(a: Tensor) -> Tensor:
            return (a * 2 + a.sum(1, keepdim=True)).realize()

        replays = [replayed((x * step).realize()).sum().item() for step in range(5)]
        path = os.path.join(folder, "weights.safetensors")
        nn.state.safe_save({"x": x[:4]}, path)
        kept = nn.state.safe_load(path)["x"].to("LLVM").tolist()
        view = explore(lambda: x.mean(0).exp())
        trace = view.save(os.path.join(folder, "trace.json.gz"))
        return {
            "found": [find_native_pool(3) is not None, has_entries(Tensor, LazyBuffer)],
            "product": product[::50, ::50].tolist(),
            "replays": replays,
            "kept": kept,
            "losses": losses(jit=True),
            "explored": [[kernel.name, kernel.opts] for kernel in view.trace.kernels],
            "trace": type(view.trace).load(trace) == view.trace,
        }


def main() -> None:
    folder, *hidden = sys.argv[1:]
    for name in WINDOWS if hidden == ["windows"] else hidden:
        HIDES[name]()
    print(json.dumps(outcome(folder)))


if __name__ == "__main__":
    main()
