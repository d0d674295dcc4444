"""The one frozen configuration. This module alone reads `os.environ`."""

from __future__ import annotations

import os
from contextlib import ContextDecorator
from contextvars import ContextVar as _PythonContextVar
from contextvars import Token
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Config:
    """Every knob of the engine, under the names that programs of this family know.

    DEBUG: 1 writes devices, 2 kernels with times, 3 opts and decisions with reasons, 4 sources to the console.
    BEAM: width of the search for opts (0: off).
    NOOPT: 1 leaves kernels as scheduled. JIT: 0 turns TinyJit off. DEVICE: the default device ("" = LLVM).
    THREADS: worker threads of the CPU devices (0 = one per core). CACHELEVEL: 0 no disk cache.
    DEFAULT_FLOAT: dtype of Python floats. MAX_KERNEL_OPS: where a fused kernel is cut for its size.
    """

    DEBUG: int = 0
    BEAM: int = 0
    NOOPT: int = 0
    JIT: int = 1
    DEVICE: str = ""
    THREADS: int = 0
    CACHELEVEL: int = 1
    DEFAULT_FLOAT: str = "float32"
    MAX_KERNEL_OPS: int = 512
    SPEC: int = 0


DEVICE_FLAGS = ("LLVM", "CLANG", "PYTHON")


def getenv(key: str, default: Any = 0) -> Any:
    """The environment variable `key`, converted to the type of `default`."""
    return type(default)(os.environ.get(key, default))


def config_from_environment() -> Config:
    """The configuration that the process was started with; `LLVM=1` and the like select a device."""
    values: dict[str, Any] = {}
    for field in fields(Config):
        raw = os.environ.get(field.name)
        if raw is None:
            continue
        kind: type = type(getattr(Config, field.name))
        try:
            values[field.name] = kind(raw)
        except ValueError:
            raise ValueError(f"environment variable {field.name}={raw!r}: expected {kind.__name__}") from None
        check_option(field.name, values[field.name])
    for name in DEVICE_FLAGS:
        if "DEVICE" not in values and os.environ.get(name, "0") not in ("0", ""):
            values["DEVICE"] = name
    return Config(**values)


def check_option(name: str, value: Any) -> None:
    """Raises where `value` cannot be the option `name`: numbers are whole and from 0 on, names are text."""
    kind: type = type(getattr(Config, name))
    if not isinstance(value, kind):
        wanted = "a whole number" if kind is int else "text"
        raise TypeError(f"{name}={value!r} ({type(value).__name__}): need {wanted}")
    if isinstance(value, int) and value < 0:
        raise ValueError(f"{name}={value}: cannot be negative; 0 is off or the default")


_current: _PythonContextVar[Config | None] = _PythonContextVar("tinyexplore_config", default=None)
_process_config: list[Config] = []


def config() -> Config:
    """The configuration in force here (innermost `Context`, else the environment's)."""
    current = _current.get()
    if current is not None:
        return current
    if not _process_config:
        _process_config.append(config_from_environment())
    return _process_config[0]


class Context(ContextDecorator):
    """`with Context(DEBUG=2, BEAM=4): ...` changes the configuration for the block (or the decorated function)."""

    def __init__(self, **changes: Any) -> None:
        known = {field.name for field in fields(Config)}
        if unknown := sorted(set(changes) - known):
            raise ValueError(f"Context({', '.join(unknown)}): no such option; known: {', '.join(sorted(known))}")
        for name, value in changes.items():
            check_option(name, value)
        self.changes = changes
        self.tokens: list[Token[Config | None]] = []

    def __enter__(self) -> Context:
        self.tokens.append(_current.set(replace(config(), **self.changes)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self.tokens.pop())
