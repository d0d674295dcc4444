"""The registry of devices, by name. Runtimes register themselves from the package root. A device opens when it is first
requested."""

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

_GROUP = "|"  # separates the names of devices that hold a value together


class UnknownDevice(ValueError):
    """Raised for an unregistered device name. The message lists the known ones."""


class DeviceUnavailable(RuntimeError):
    """Raised for a known device that cannot open here (no compiler, no package). The message says what to install."""


class ProgramLike(Protocol):
    """The part of a renderer's `ProgramSpec` that devices use."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...


class Renderer(Protocol):
    """Writes the source of a linear program."""

    language: str
    compiler: str  # the compiler of the source, and its version

    def render(self, name: str, uops: Sequence[UOp]) -> Any:
        """Returns the `ProgramSpec` of a kernel called `name`."""
        ...


class CompiledProgram(Protocol):
    """A program that is ready to run.

    entry_address: address of the machine code of `name_entry`; None if there is none.
    nbytes: approximate bytes of process memory that it takes.
    code_bytes: bytes of its instructions; 0 if unknown.
    refusal: why this machine cannot execute it, which is the error of `bind`; "" if it can.
    """

    @property
    def entry_address(self) -> int | None: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def code_bytes(self) -> int: ...

    @property
    def refusal(self) -> str: ...

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Binds the program to `buffers`, with `values` for its Variables. Returns a function of (start, stop) that
        runs it.

        It allocates the buffers if necessary, and keeps them alive. start and stop: the range of the THREAD axis to
        run, (0, its size) for all. Programs without a THREAD axis ignore them. Machine code runs without the GIL. A
        device that runs launches in order may return after the launch. Each reader or writer of memory then waits
        (`Memory.wait_for_kernels`). If the device has its own clock, the function has an attribute `timed`: it runs the
        program, waits, and returns the seconds by that clock, or 0.0 if the clock gave none.
        """
        ...


class DeviceGraph(Protocol):
    """Several kernels with arguments, which a device launches by one call."""

    def launch(self, kernels: Sequence[Any]) -> None:
        """Launches the kernels that the graph was built from, with their current arguments."""
        ...


@dataclass(frozen=True)
class GraphFactory:
    """How a device builds a graph of bound programs.

    make: builds the graph.
    refusal: returns why the device cannot build it, or "".
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
    wait: Callable[[], None] = lambda: None  # waits for all launched kernels
    graphs: GraphFactory | None = None  # None: the device launches each kernel alone

    @property
    def dname(self) -> str:
        """`name`. tinygrad programs use this spelling."""
        return self.name

    @property
    def compiler(self) -> Compiler:
        """The compiler that `compile` uses."""
        return Compiler(self.renderer.compiler, self.compile)

    def synchronize(self) -> None:
        """Waits until all launched kernels are done. Returns immediately if the device has no asynchronous launches."""
        self.wait()


@dataclass(frozen=True, eq=False)
class Storage:
    """An open device that holds values but computes nothing: a file, or the memory of NumPy arrays.

    name: its canonical name.
    allocator: allocates its memory.
    """

    name: str
    allocator: Allocator


class DeviceRegistry:
    """The devices by name: `Device["LLVM"]`, `Device.DEFAULT`. A device is opened once for each TARGET."""

    def __init__(self) -> None:
        self._factories: dict[str, Callable[[], DeviceInterface]] = {}
        self._further: dict[str, Callable[[int], DeviceInterface]] = {}  # devices of which a machine may have several
        self._storages: dict[str, Callable[[str], Storage]] = {}
        # open devices, by name and by the TARGET that they generate code for
        self._open: dict[tuple[str, str], DeviceInterface] = {}
        self._lock = threading.RLock()
        # the default device if set manually, and config().DEVICE at that time
        self._chosen: tuple[str, str] | None = None

    def register(
        self,
        name: str,
        factory: Callable[[], DeviceInterface],
        further: Callable[[int], DeviceInterface] | None = None,
    ) -> None:
        """Registers a device.

        Args:
            name: its name.
            factory: opens it, once. Raises `DeviceUnavailable` if that fails.
            further: opens NAME:n, for a machine that may have several such devices. Without it, NAME:n is NAME with
            separate memory.
        """
        with self._lock:
            self.forget(name)
            self._factories[name.upper()] = factory
            if further is not None:
                self._further[name.upper()] = further

    def forget(self, name: str) -> None:
        """Removes a device that `register` registered."""
        with self._lock:
            self._factories.pop(name.upper(), None)
            self._further.pop(name.upper(), None)
            for opened in [opened for opened in self._open if opened[0].partition(":")[0] == name.upper()]:
                del self._open[opened]

    def register_storage(self, name: str, opens: Callable[[str], Storage]) -> None:
        """Registers storage called `NAME` or `NAME:what`. `opens` gets the text after the colon, in its original
        spelling."""
        self._storages[name.upper()] = opens

    def is_storage(self, name: str) -> bool:
        """Whether `name` is a device that holds values but computes nothing."""
        return name.partition(":")[0] in self._storages

    def group(self, devices: Sequence[str]) -> str:
        """Joins the names of several devices, each with a part of a value, to one device name."""
        if len(set(devices)) != len(devices):
            raise ValueError(f"a group of devices {tuple(devices)}: a device is repeated; name each device once")
        return _GROUP.join(devices)

    def is_group(self, name: str) -> bool:
        """Whether `group` joined `name` from more than one device."""
        return _GROUP in name and not self.is_storage(name)

    def members(self, name: str) -> tuple[str, ...]:
        """Returns the devices of a group, in order. For a single device, returns that device."""
        return tuple(name.split(_GROUP)) if self.is_group(name) else (name,)

    def names(self) -> tuple[str, ...]:
        """Returns the known devices, whether they can open here or not."""
        return tuple(self._factories)

    def available(self) -> tuple[str, ...]:
        """Returns the devices that open here. This opens them."""
        devices = []
        for name in self.names():
            try:
                self[name]
            except DeviceUnavailable:
                continue
            devices.append(name)
        return tuple(devices)

    def canonicalize(self, name: str | Sequence[str] | None = None) -> str:
        """Returns the canonical spelling of a device name: "llvm", "LLVM:0" → "LLVM", "disk:a/B" → "DISK:a/B". None:
        the default.

        Several names give the name of their group. "LLVM:1" is another instance of LLVM, with separate memory. "CPU" is
        the best device that computes on this machine's processor.
        """
        if name is None:
            return self.DEFAULT
        if not isinstance(name, (str, list, tuple)):
            raise TypeError(f"device {name!r} ({type(name).__name__}): need a name, such as 'LLVM'")
        if not isinstance(name, str):
            return self.group([self.canonicalize(member) for member in name])
        if name in self._factories:
            return name
        head, colon, suffix = name.partition(":")
        if head.upper() in self._storages:
            return head.upper() + colon + suffix
        if _GROUP in name:
            return self.canonicalize(self.members(name))
        head, _, number = name.upper().partition(":")
        head = _choose_device() if head == "CPU" else head
        if head not in self._factories:
            names = ", ".join((*self.names(), *self._storages)) or "none"
            if head in FOREIGN_DEVICES:
                raise UnknownDevice(
                    f"unknown device {name!r}; supported: {names}; this package has no runtime for {head}: "
                    f"choose a supported device, and unset {head} in the environment"
                )
            raise UnknownDevice(f"unknown device {name!r}; supported: {names}")
        if number and not number.isdecimal():
            raise UnknownDevice(f"device {name!r}: expected a number after the colon, such as {head}:0")
        return head if int(number or 0) == 0 else f"{head}:{int(number)}"

    def allocator(self, name: str) -> Allocator:
        """Returns the allocator of a computing device or of a storage device."""
        head, _, path = name.partition(":")
        if head in self._storages:
            return self._storages[head](path).allocator
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

    def device_for(self, target: Target) -> DeviceInterface:
        """Returns the device of `target`, open for the TARGET that `target` was chosen by, whatever the current TARGET
        is."""
        with Context(TARGET=target.target_setting):
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
        """The device of tensors without a given device.

        In this order: set manually, by `Context(DEVICE=...)` or the environment, LLVM, PYTHON if llvmlite is not
        installed.
        """
        configured = config().DEVICE
        if self._chosen is not None and self._chosen[1] == configured:
            return self._chosen[0]
        if configured:
            return self.canonicalize(configured)
        return _choose_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._chosen = (self.canonicalize(name), config().DEVICE)


_best: list[str] = []


def _choose_device() -> str:
    if not _best:
        _best.append("LLVM" if importlib.util.find_spec("llvmlite") is not None else "PYTHON")
    return _best[0]


Device = Buffer.devices = DeviceRegistry()
new_in_children(Device, "_lock")
