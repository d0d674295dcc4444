"""tinyexplore: a tensor-to-kernel compiler. Each stage can be viewed, stepped through, changed and timed in a notebook.

Names are imported when they are first used, so that `import tinyexplore` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyexplore.aliases import register_aliases
from tinyexplore.trace import Recorder, register_console, register_progress
from tinyexplore.util.import_hooks import when_imported

if TYPE_CHECKING:
    from tinyexplore import nn
    from tinyexplore import onnx as onnx
    from tinyexplore.device import Device
    from tinyexplore.dtype import dtypes
    from tinyexplore.engine import measuring_on
    from tinyexplore.explore import Explorer, Trace, capture, explore
    from tinyexplore.jit import TinyJit
    from tinyexplore.tensor import Tensor
    from tinyexplore.uop.symbolic import Variable
    from tinyexplore.util import Context, ContextVar, GlobalCounters, Profiling, Timing, fetch, getenv

_HOMES = {
    "Tensor": "tinyexplore.tensor",
    "dtypes": "tinyexplore.dtype",
    "Device": "tinyexplore.device",
    "TinyJit": "tinyexplore.jit",
    "Variable": "tinyexplore.uop.symbolic",
    "Context": "tinyexplore.util",
    "ContextVar": "tinyexplore.util",
    "GlobalCounters": "tinyexplore.util",
    "Profiling": "tinyexplore.util",
    "Timing": "tinyexplore.util",
    "fetch": "tinyexplore.util",
    "getenv": "tinyexplore.util",
    "capture": "tinyexplore.explore",
    "explore": "tinyexplore.explore",
    "measuring_on": "tinyexplore.engine",
    "Explorer": "tinyexplore.explore",
    "Trace": "tinyexplore.explore",
}

__version__ = "0.2.0"
__all__ = [
    "Context",
    "ContextVar",
    "Device",
    "Explorer",
    "GlobalCounters",
    "Profiling",
    "Tensor",
    "Timing",
    "TinyJit",
    "Trace",
    "Variable",
    "capture",
    "dtypes",
    "explore",
    "fetch",
    "getenv",
    "load_ipython_extension",
    "measuring_on",
    "nn",
]


when_imported("tinyexplore.device", lambda: importlib.import_module("tinyexplore.devices"))  # registers all devices
register_aliases()  # import paths of tinygrad programs


def _console() -> Recorder:
    from tinyexplore.explore.recording.console import ConsoleRecorder

    return ConsoleRecorder()


def _progress() -> Recorder | None:
    from tinyexplore.explore.recording.progress import find_progress

    return find_progress()


register_console(_console)  # the recorder for DEBUG, made when it is first needed
register_progress(_progress)  # the progress display of BEAM


def __getattr__(name: str) -> Any:
    # packages; `explore` can be called, whichever way it was imported; `onnx` needs NumPy, so `import *` omits it
    if name in ("nn", "explore", "onnx"):
        return importlib.import_module(f"tinyexplore.{name}")
    module_name = _HOMES.get(name)
    if module_name is None:
        raise AttributeError(f"module 'tinyexplore' has no attribute {name!r}; available: {', '.join(__all__)}")
    value = getattr(importlib.import_module(module_name), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: Any) -> None:
    """Implements `%load_ext tinyexplore`: registers magics, and rich displays of tensors, kernels and traces."""
    from tinyexplore.explore.notebook.ipython_extension import load_ipython_extension as load

    load(ipython)
