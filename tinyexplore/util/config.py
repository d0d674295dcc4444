"""The configuration: one frozen object. Only this module reads `os.environ`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar as _PythonContextVar
from contextvars import Token
from dataclasses import dataclass, fields, replace
from functools import cached_property, total_ordering
from types import TracebackType
from typing import Any, ClassVar
from weakref import WeakValueDictionary


@dataclass(frozen=True)
class Config:
    """All settings of the engine, under tinygrad's names where tinygrad has them.

    DEBUG: console output. 1 devices, 2 kernels with times, 3 buffers, opts and decisions with reasons, 4 sources, 5
      each kernel's ast, 6 its linear program, 7 its assembly.
    BEAM: width of the beam search for opts (0: off).
    BEAM_SEED: selects the candidates where there are too many to try all.
    NOOPT: 1 leaves kernels as scheduled.
    JIT: 0 turns TinyJit off.
    DEVICE: the default device ("": LLVM).
    THREADS: worker threads of the CPU devices (0: one per core).
    CACHELEVEL: 0 turns the disk cache off.
    CACHE_MB: size limit of the disk cache without downloads; least recently used entries are removed (0: nothing is
      stored).
    KERNEL_MB: size limit of the compiled kernels cached in memory, and of the cached plans; least recently used ones
      are removed (`docs/memory.md`).
    EXPLORER_MB: size limit of traces that Explorers hold as objects; further traces are kept compressed. Also the limit
      of compressed views without an Explorer; further views are closed.
    DEFAULT_FLOAT: dtype of Python floats.
    MAX_KERNEL_OPS: the most operations of a fused kernel.
    SPEC: 1 verifies the result of every lowering pass against the specification of its stage.
    SPLIT_REDUCEOP: 0 does not split large reductions with few results.
    MULTIOUTPUT: 0 gives each output its own kernel.
    TRANSCENDENTAL: exp, sin and other functions of floats. 0: the device's own functions (libm's, lane by lane). 1: our
      own arithmetic where the device runs machine code. 2: our own arithmetic on every device. erf and powers of
      float64 are always the device's.
    PROFILE: 1 writes a timeline to profile.json when the process ends.
    GRAPH: 1 draws the graph of all realized LazyBuffers when the process ends.
    GRAPHPATH: the file of that picture ("": a new temporary file, whose path is printed).
    TC: on CPUs, 1 computes sums of products of bfloat16 and int8 by dot instructions. 0 does not. 2 writes the same
      order of operations in plain arithmetic, also on CPUs without these instructions. On GPUs, 1 multiplies float16,
      bfloat16 and int8 on tensor cores.
    TC_OPT: 0 uses them where they divide the sum evenly, 1 also where a remainder is left.
    ALLOW_TF32: 1 lets tensor cores multiply float32 with 10 bits of mantissa, which changes results.
    THREEFRY: 1 computes random numbers in the kernels that use them, by Threefry. 0 draws them on the host (Mersenne
      Twister).
    WINO: 1 computes 3×3 convolutions by Winograd's minimal filters.
    TARGET: the CPU that LLVM and CLANG generate code for: LLVM's name, or a level such as x86-64-v3 ("" or "native":
      this machine). "opencl" makes GPU run work-groups. `tinyexplore/target/choice.py` describes the suffixes.
    INTERPRETER_TRICKS: 0 does not use CPython internals (`util/interpreter.py`). Results are the same, and slower. Read
      when the process starts.
    SANITIZE: 1 runs each kernel of CLANG under AddressSanitizer and UndefinedBehaviorSanitizer, in a separate process.
      An access outside of a buffer is an error with its line.
    """

    DEBUG: int = 0
    BEAM: int = 0
    BEAM_SEED: int = 0
    NOOPT: int = 0
    JIT: int = 1
    DEVICE: str = ""
    THREADS: int = 0
    CACHELEVEL: int = 1
    CACHE_MB: int = 256
    KERNEL_MB: int = 128
    EXPLORER_MB: int = 64
    DEFAULT_FLOAT: str = "float32"
    MAX_KERNEL_OPS: int = 512
    SPEC: int = 0
    SPLIT_REDUCEOP: int = 1
    MULTIOUTPUT: int = 1
    TRANSCENDENTAL: int = 1
    PROFILE: int = 0
    GRAPH: int = 0
    GRAPHPATH: str = ""
    TC: int = 1
    TC_OPT: int = 0
    ALLOW_TF32: int = 0
    THREEFRY: int = 1
    WINO: int = 0
    TARGET: str = ""
    INTERPRETER_TRICKS: int = 1
    SANITIZE: int = 0

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """Returns every option, in order. It is part of the key of results that depend on options."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def uses_console_recorder(self) -> bool:
        """Whether DEBUG, PROFILE or GRAPH is set, so that kernels are recorded for the console or a file."""
        return self.DEBUG > 0 or self.PROFILE > 0 or self.GRAPH > 0

    @cached_property
    def token(self) -> object:
        """Returns an object that stands for `values` in a key. Equal configurations have the same object, which is
        fast to hash."""
        return _tokens.setdefault(self.values, _Token())


class _Token:
    """The class of the objects that `Config.token` returns."""

    __slots__ = ("__weakref__",)


_tokens: WeakValueDictionary[tuple[Any, ...], _Token] = WeakValueDictionary()
# variables that choose a device; using a device that is not listed raises an error (`Device.canonicalize`)
FOREIGN_DEVICES = ("METAL", "AMD", "NV", "QCOM", "HIP", "HSA", "DSP", "CL")
DEVICE_FLAGS = ("LLVM", "CLANG", "PYTHON", "GPU", "CUDA", "WASM", "WEBGPU", "CPU", *FOREIGN_DEVICES)


FOREIGN_OPTIONS = frozenset(
    "ALLREDUCE_CAST ARANGE_DIFF CAPTURING CORRECT_DIVMOD_FOLDING DEVECTORIZE FUSE_ARANGE FUSE_ATTENTION FUSE_CONV_BW "
    "FUSE_OPTIM IGNORE_BEAM_CACHE IGNORE_OOB IMAGE LRU NO_MEMORY_PLANNER RANGEIFY RING SAVE_SCHEDULE TC_SELECT "
    "TRACEMETA VIZ".split()
)
"""Variables of other tinygrad-like engines: they are accepted, and ignored."""


def environment_with(**variables: str) -> dict[str, str]:
    """Returns the environment of a child process: this process's environment, with `variables`."""
    return {**os.environ, **variables}


def getenv(key: str, default: Any = 0) -> Any:
    """Returns the environment variable `key`, converted to the type of `default`."""
    return type(default)(os.environ.get(key, default))


@contextmanager
def environment_default(name: str, value: str) -> Iterator[None]:
    """Sets the environment variable `name` to `value` inside the block if it is not set. For libraries that read it."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def config_from_environment() -> Config:
    """Returns the configuration that the process was started with. `LLVM=1` and similar variables select a device."""
    values: dict[str, Any] = {}
    for field in fields(Config):
        raw = os.environ.get(field.name)
        if raw is None:
            continue
        option_type: type = type(getattr(Config, field.name))
        try:
            values[field.name] = option_type(raw)
        except ValueError:
            raise ValueError(f"environment variable {field.name}={raw!r}: expected {option_type.__name__}") from None
        check_option(field.name, values[field.name])
    for name in DEVICE_FLAGS:
        raw = os.environ.get(name, "0")
        if "DEVICE" not in values and raw.isdecimal() and int(raw):
            values["DEVICE"] = name
    return Config(**values)


def check_option(name: str, value: Any) -> None:
    """Raises if `value` is invalid for the option `name`: a number must be a whole number ≥ 0, a name must be text."""
    option_type: type = type(getattr(Config, name))
    if not isinstance(value, option_type):
        expected = "a whole number" if option_type is int else "text"
        raise TypeError(f"{name}={value!r} ({type(value).__name__}): need {expected}")
    if isinstance(value, int) and value < 0:
        raise ValueError(f"{name}={value}: cannot be negative; 0 is off or the default")
    if name in _further:
        _further[name](value)


_further: dict[str, Callable[[Any], None]] = {}


def check_further(name: str, check: Callable[[Any], None]) -> None:
    """Registers `check`, which is called on every value of the option `name`, and raises ValueError for an invalid one.

    A higher package, which knows the valid values, registers the check.
    """
    _further[name] = check


_current: _PythonContextVar[Config | None] = _PythonContextVar("tinyexplore_config", default=None)
_process_config: list[Config] = []


def config_variable() -> _PythonContextVar[Config | None]:
    """Returns the context variable that `config` reads; None stands for the configuration of the environment."""
    return _current


def config() -> Config:
    """Returns the configuration of the innermost `Context`, else that of the environment."""
    current = _current.get()
    return current if current is not None else process_config()


def process_config() -> Config:
    """Returns the configuration that this process was started with, even inside a `Context`."""
    if not _process_config:
        _process_config.append(config_from_environment())
    return _process_config[0]


@total_ordering
class ContextVar:
    """A whole number that `Context` changes by its name: an option of the `Config`, or a variable of the program.

    `ContextVar("LEVEL", 0)` starts from the environment variable LEVEL, else from 0. Equal names are the same variable.
    """

    _own: ClassVar[dict[str, _PythonContextVar[Any]]] = {}

    def __init__(self, key: str, default_value: Any = 0) -> None:
        self.key = key
        if not _is_option(key) and key not in self._own:
            start = getenv(key, default_value)
            self._own[key] = _PythonContextVar(key, default=start)

    @property
    def value(self) -> Any:
        return getattr(config(), self.key) if _is_option(self.key) else self._own[self.key].get()

    @value.setter
    def value(self, value: Any) -> None:
        _change(self.key, value)

    def __repr__(self) -> str:
        return f"ContextVar({self.key}={self.value!r})"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, ContextVar) else other))

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < (other.value if isinstance(other, ContextVar) else other))


def _is_option(name: str) -> bool:
    return name in Config.__dataclass_fields__


def _change(name: str, value: Any) -> tuple[_PythonContextVar[Any], Token[Any]]:
    """Sets an option or a variable of the program. Returns the context variable and the token that undo the change."""
    if _is_option(name):
        check_option(name, value)
        return _current, _current.set(replace(config(), **{name: value}))
    variable = ContextVar._own[name]
    return variable, variable.set(value)


class Context(ContextDecorator):
    """Changes the configuration inside a block (or the decorated function): `with Context(DEBUG=2, BEAM=4): ...`."""

    def __init__(self, **changes: Any) -> None:
        for name in FOREIGN_OPTIONS.intersection(changes):
            ContextVar(name, 0)
        option_names = {*Config.__dataclass_fields__, *ContextVar._own}
        if unknown := sorted(set(changes) - option_names):
            raise ValueError(
                f"Context({', '.join(unknown)}): no such option; supported: {', '.join(sorted(option_names))}"
            )
        for name, value in changes.items():
            if _is_option(name):
                check_option(name, value)
        self.changes = changes
        self.undo: list[list[tuple[_PythonContextVar[Any], Token[Any]]]] = []

    def __enter__(self) -> Context:
        self.undo.append([_change(name, value) for name, value in self.changes.items()])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for variable, token in reversed(self.undo.pop()):
            variable.reset(token)
