"""The setting TARGET: the name of the machine to generate code for.

`TARGET=x86-64-v3` names a CPU or a level that LLVM knows, `native` (or nothing) the CPU of this process. A named CPU
has its own caches if they are known (`target/caches.py`). Other properties, the cores and the caches of a level, are
this machine's, unless the setting gives them: `x86-64-v3,threads=8,l1=32K,l2=512K` depends on no machine. The
last-level cache counts as 32 MiB unless the name or `l3=` says otherwise, because the size that a system reports is
shared with other processes. A GPU is named in the same way: `sm_80`, `opencl` (`target/gpus.py`), and so is `wasm32`,
which a browser runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tinyexplore.target.caches import CACHES
from tinyexplore.target.cpus import AARCH64, RISCV64, X86_64
from tinyexplore.target.gpus import GPUS, GPUTarget
from tinyexplore.util import config
from tinyexplore.util.config import check_further

NATIVE = "native"
WASM32 = "wasm32"  # WebAssembly with vectors, on any engine
LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
KNOWN = {"x86_64": X86_64, "aarch64": AARCH64, "riscv64": RISCV64}  # names of CPUs by architecture, as LLVM calls it
FEATURES = sorted({word for words in X86_64.values() for word in words.split()} - set(X86_64))
_UNITS = {"K": 1 << 10, "M": 1 << 20}


class UnknownTarget(ValueError):
    """Raised if TARGET names no CPU that LLVM knows, or sets an invalid property."""


@dataclass(frozen=True)
class TargetChoice:
    """The parts of the setting TARGET. A number of 0 means the value of this machine.

    text: the setting as the user wrote it.
    cpu: LLVM's name of the processor, or the name of a GPU; "" for this machine.
    threads: number of threads.
    l1_bytes: L1 data cache of a core, in bytes.
    l2_bytes: L2 cache of a core, in bytes.
    l3_bytes: last-level cache, shared by the cores, in bytes.
    """

    text: str
    cpu: str
    threads: int = 0
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0

    @property
    def is_native(self) -> bool:
        """Whether it is the CPU of this process."""
        return self.cpu == NATIVE

    @property
    def gpu(self) -> GPUTarget | None:
        """The GPU, if TARGET names one."""
        return GPUS.get(self.cpu)

    @property
    def arch(self) -> str:
        """The architecture, as LLVM calls it; for a GPU, the language of its programs."""
        if self.is_native:
            return machine()
        if self.gpu is not None:
            return self.gpu.language
        if self.cpu == WASM32:
            return WASM32
        return next(arch for arch, names in KNOWN.items() if self.cpu in names)

    @property
    def features(self) -> frozenset[str]:
        """The features that code generation may use beyond the architecture's baseline, if they are known for the
        name."""
        return features_of(self.cpu)


@cache
def choice_of(text: str) -> TargetChoice:
    """Returns the TargetChoice for TARGET=`text`. Raises UnknownTarget if it is invalid."""
    cpu, *details = [detail.strip() for detail in text.split(",")]
    cpu = cpu.lower() or NATIVE
    names = [NATIVE, WASM32, *GPUS, *(name for names in KNOWN.values() for name in names)]
    if cpu not in names:
        import difflib  # noqa: PLC0415 (start-up: for a message only)

        close = difflib.get_close_matches(cpu, names, 4, 0.5)
        similar_names = (
            f"close to it: {', '.join(close)}" if close else f"for example: {', '.join((NATIVE, *LEVELS, 'znver3'))}"
        )
        raise UnknownTarget(f"TARGET={text!r}: LLVM has no CPU named {cpu!r}; {similar_names}")
    cache_sizes = dict(zip(("l1_bytes", "l2_bytes", "l3_bytes"), CACHES.get(cpu, ())))
    return TargetChoice(text, cpu, **{**cache_sizes, **dict([_parse_detail(text, detail) for detail in details])})


def current_choice() -> TargetChoice:
    """Returns the current TargetChoice."""
    return choice_of(config().TARGET)


def _parse_detail(text: str, detail: str) -> tuple[str, int]:
    """Parses an option after the name, such as "l2=512K". Returns the field and its value."""
    name, equals, value = detail.partition("=")
    field = {"threads": "threads", "l1": "l1_bytes", "l2": "l2_bytes", "l3": "l3_bytes"}.get(name.strip().lower())
    number, unit = value.strip().upper(), 1
    if field not in (None, "threads") and number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    if field is None or not equals or not number.isdecimal() or int(number) == 0:
        raise UnknownTarget(
            f"TARGET={text!r}: {detail!r} is not a CPU option; the options after the name are "
            "threads=8, l1=32K, l2=1M and l3=32M, separated by commas"
        )
    return field, int(number) * unit


@cache
def features_of(cpu: str) -> frozenset[str]:
    """Returns the features of a CPU in the table; empty if only its name is known."""
    names: set[str] = set()
    for word in (X86_64.get(cpu) or RISCV64.get(cpu, "")).split():
        names |= features_of(word) if word in X86_64 else {word}
    return frozenset(names)


def nearest_level(features: frozenset[str]) -> str:
    """Returns the widest of LEVELS whose features are all in `features`."""
    return next(level for level in reversed(LEVELS) if features_of(level) <= features)


def machine() -> str:
    """Returns the architecture of this machine, as LLVM and GCC call it."""
    import platform  # noqa: PLC0415 (start-up asks for no machine)

    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def _check(value: str) -> None:
    choice_of(value)


check_further("TARGET", _check)
