"""The devices by name. Runtimes register themselves from the package root; one opens when it is first requested."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tinyexplore.device.allocator import Allocator
from tinyexplore.device.buffer import Buffer
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import UOp
from tinyexplore.util import Context, config
from tinyexplore.util.config import FOREIGN_DEVICES
from tinyexplore.util.locks import new_in_children

_GROUP = "|"  # between the names of devices that hold a value together


class UnknownDevice(ValueError):
    """An unregistered device name; the message lists the known ones."""


class DeviceUnavailable(RuntimeError):
    """Raised for a known device that cannot open here (no compiler, no package). The message says what would help."""


class ProgramLike(Protocol):
    """The part of a renderer's `ProgramSpec` that devices use."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...


class Renderer(Protocol):
    """Writes the linear program as source."""

    language: str
    compiler: str  # what compiles the source, and its version

    def render(self, name: str, uops: Sequence[UOp]) -> Any:
        """The `ProgramSpec` of a kernel called `name`."""
        ...


class CompiledProgram(Protocol):
    """A program ready to run. `entry_address`: the machine code of `name_entry`, None where there is none. `nbytes`:
    about what it takes of the process's memory; `code_bytes`: its instructions, 0 where unknown. `refusal`: why
    this machine cannot execute it, which `bind` raises; "" where it can."""

    @property
    def entry_address(self) -> int | None: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def code_bytes(self) -> int: ...

    @property
    def refusal(self) -> str: ...

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function of (start, stop) that runs the program on `buffers`, with `values` for its Variables.

        It allocates the buffers if necessary, and keeps them alive. start and stop: the steps of the THREAD axis to
        run, (0, its size) for all; without a THREAD axis they are ignored. Machine code runs without the GIL. A device
        may return after the launch, if it runs launches in order: each reader or writer of memory then waits
        (`Memory.settle`). If the device has its own clock, the function has an attribute `timed`: it runs the program,
        waits, and returns the seconds by that clock, or 0.0 if the clock gave none.
        """
        ...


class DeviceGraph(Protocol):
    """Kernels with arguments that a device launches by one call."""

    def launch(self, kernels: Sequence[Any]) -> None:
        """The kernels that it was made of, with the arguments that they have by now."""
        ...


@dataclass(frozen=True)
class Graphs:
    """How a device builds a graph of bound programs.

    make: builds the graph.
    refusal: returns why it cannot, or "".
    """

    make: Callable[[Sequence[Any]], DeviceGraph]
    refusal: Callable[[Sequence[Any]], str]


@dataclass(frozen=True)
class Compiler:
    """A compiler of a device.

    name: its name and version.
    compile: compiles a `ProgramSpec`.
    """

    name: str
    compile: Callable[[Any], CompiledProgram]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class DeviceInterface:
    """An open device.

    name: its canonical name.
    target: the machine that it generates code for.
    allocator: allocates its memory.
    renderer: writes the source of its programs.
    compile: compiles a `ProgramSpec`.
    listings: returns further listings of a `ProgramSpec` for display, by language: optimized LLVM IR, assembly.
    refusal: why this machine cannot execute its programs; "" where it can.
    wait: waits until all launched kernels are done.
    graphs: builds graphs of launches; None where the device has none.
    """

    name: str
    target: Target
    allocator: Allocator
    renderer: Renderer
    compile: Callable[[Any], CompiledProgram]
    listings: Callable[[Any], list[tuple[str, tuple[SourceLine, ...]]]]
    refusal: str = ""
    wait: Callable[[], None] = lambda: None  # for all that was launched
    graphs: Graphs | None = None  # None: it launches each kernel alone

    @property
    def dname(self) -> str:
        """`name`, under the name that tinygrad programs use."""
        return self.name

    @property
    def compiler(self) -> Compiler:
        """The compiler that `compile` uses."""
        return Compiler(self.renderer.compiler, self.compile)

    def synchronize(self) -> None:
        """Waits until all launched kernels are done; returns immediately where realizing waits for its kernels."""
        self.wait()


@dataclass(frozen=True, eq=False)
class Storage:
    """An open device that holds values and computes nothing: a file, the memory of NumPy arrays.

    name: its canonical name.
    allocator: allocates its memory.
    """

    name: str
    allocator: Allocator


class DeviceRegistry:
    """The devices by name: `Device["LLVM"]`, `Device.DEFAULT`. A device is opened once for each TARGET."""

    def __init__(self) -> None:
        self._factories: dict[str, Callable[[], DeviceInterface]] = {}
        self._further: dict[str, Callable[[int], DeviceInterface]] = {}  # of machines with several
        self._storages: dict[str, Callable[[str], Storage]] = {}
        self._open: dict[tuple[str, str], DeviceInterface] = {}  # by name, and the TARGET that it generates code for
        self._lock = threading.RLock()
        self._chosen: tuple[str, str] | None = None  # the default set manually, and config().DEVICE at that time

    def register(
        self,
        name: str,
        factory: Callable[[], DeviceInterface],
        further: Callable[[int], DeviceInterface] | None = None,
    ) -> None:
        """Registers a device. `factory` opens it, once, and raises `DeviceUnavailable` where it cannot; `further`
        opens the one that NAME:1 is, where a machine may have several. Without it, NAME:1 is NAME with memory of its
        own."""
        with self._lock:
            self.forget(name)
            self._factories[name.upper()] = factory
            if further is not None:
                self._further[name.upper()] = further

    def forget(self, name: str) -> None:
        """Undoes `register`."""
        with self._lock:
            self._factories.pop(name.upper(), None)
            self._further.pop(name.upper(), None)
            for opened in [opened for opened in self._open if opened[0].partition(":")[0] == name.upper()]:
                del self._open[opened]

    def register_storage(self, name: str, opens: Callable[[str], Storage]) -> None:
        """Makes storage known: `NAME` or `NAME:what`; `opens` gets what stands after the colon, in its own spelling."""
        self._storages[name.upper()] = opens

    def is_storage(self, name: str) -> bool:
        """True for devices that hold values and compute nothing."""
        return name.partition(":")[0] in self._storages

    def group(self, devices: Sequence[str]) -> str:
        """Joins the names of several devices, each with a part of a value, to one device name."""
        if len(set(devices)) != len(devices):
            raise ValueError(f"a group of devices {tuple(devices)}: a device is repeated")
        return _GROUP.join(devices)

    def is_group(self, name: str) -> bool:
        """True for a name that `group` made of more than one."""
        return _GROUP in name and not self.is_storage(name)

    def members(self, name: str) -> tuple[str, ...]:
        """The devices of a group, in order; of a single device, itself."""
        return tuple(name.split(_GROUP)) if self.is_group(name) else (name,)

    def names(self) -> tuple[str, ...]:
        """The known devices, whether they can open here or not."""
        return tuple(self._factories)

    def available(self) -> tuple[str, ...]:
        """The devices that open here (this opens them)."""
        devices = []
        for name in self.names():
            try:
                self[name]
            except DeviceUnavailable:
                continue
            devices.append(name)
        return tuple(devices)

    def canonicalize(self, name: str | Sequence[str] | None = None) -> str:
        """The one spelling of a device name: "llvm", "LLVM:0" → "LLVM", "disk:a/B" → "DISK:a/B"; None: the default.

        Of several names: that of their group. "LLVM:1" is a further instance of LLVM, with memory of its own. "CPU" is
        the best device that computes on this machine's processor.
        """
        if name is None:
            return self.DEFAULT
        if not isinstance(name, (str, list, tuple)):
            raise TypeError(f"device {name!r} ({type(name).__name__}): need a name, such as 'LLVM'")
        if not isinstance(name, str):
            return self.group([self.canonicalize(part) for part in name])
        if name in self._factories:
            return name
        head, colon, rest = name.partition(":")
        if head.upper() in self._storages:
            return head.upper() + colon + rest
        if _GROUP in name:
            return self.canonicalize(self.members(name))
        head, _, number = name.upper().partition(":")
        head = _best_device() if head == "CPU" else head
        if head not in self._factories:
            names = ", ".join((*self.names(), *self._storages)) or "none"
            if head in FOREIGN_DEVICES:
                raise UnknownDevice(
                    f"unknown device {name!r}; known: {names}; this package has no runtime for {head}: choose one of "
                    f"the known, and unset {head} in the environment"
                )
            raise UnknownDevice(f"unknown device {name!r}; known: {names}")
        if number and not number.isdecimal():
            raise UnknownDevice(f"device {name!r}: expected a number after the colon, such as {head}:0")
        return head if int(number or 0) == 0 else f"{head}:{int(number)}"

    def allocator(self, name: str) -> Allocator:
        """The allocator of a device, which may compute or only store."""
        head, _, rest = name.partition(":")
        if head in self._storages:
            return self._storages[head](rest).allocator
        return self[name].allocator

    def __getitem__(self, name: str) -> DeviceInterface:
        target = config().TARGET
        device = self._open.get((name, target))
        if device is not None:
            return device
        canonical = self.canonicalize(name)
        if self.is_storage(canonical):
            raise DeviceUnavailable(f"{canonical} only stores values and cannot compute: move the tensor with .to()")
        with self._lock:
            opened = (canonical, target)
            if opened not in self._open:
                head, _, number = canonical.partition(":")
                if number and head in self._further:
                    self._open[opened] = self._further[head](int(number))
                else:
                    self._open[opened] = self[head] if number else self._factories[head]()
            return self._open[opened]

    def made_for(self, target: Target) -> DeviceInterface:
        """The device that `target` is of, open for the TARGET that it was chosen by, whatever is in force here."""
        with Context(TARGET=target.chosen):
            return self[target.name]

    def runs_programs_of(self, name: str) -> str:
        """Returns the device whose programs run on device `name`: NAME for NAME:1, unless these are two machines."""
        head = name.partition(":")[0]
        return name if head in self._further else head

    def __contains__(self, name: object) -> bool:
        head = name.upper().partition(":")[0] if isinstance(name, str) else ""
        return head in self._factories or head in self._storages or head == "CPU"

    @property
    def DEFAULT(self) -> str:
        """The device of tensors that name none: set manually, else by `Context(DEVICE=...)` or the environment,
        else LLVM, or PYTHON where llvmlite is not installed."""
        configured = config().DEVICE
        if self._chosen is not None and self._chosen[1] == configured:
            return self._chosen[0]
        if configured:
            return self.canonicalize(configured)
        return _best_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._chosen = (self.canonicalize(name), config().DEVICE)


_best: list[str] = []


def _best_device() -> str:
    if not _best:
        _best.append("LLVM" if importlib.util.find_spec("llvmlite") is not None else "PYTHON")
    return _best[0]


Device = Buffer.devices = DeviceRegistry()
new_in_children(Device, "_lock")
