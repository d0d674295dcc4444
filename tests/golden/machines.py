"""Fixed machines as devices that only generate text: they compile nothing and run nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import Any

import tinyexplore.devices  # noqa: F401  makes the devices known
from tinyexplore.device import Buffer, Device, DeviceInterface
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.llvm import compiler_for, llvm_target
from tinyexplore.target import choice_of
from tinyexplore.util import Context
from tinyexplore.util.config import Config


@dataclass(frozen=True)
class Machine:
    """`target`: as TARGET has it, with cores and caches. programs: those that are compiled for it (none: all)."""

    name: str
    target: str
    programs: tuple[str, ...] = ()

    def of(self, names: Iterable[str]) -> list[str]:
        """Those of the programs that are compiled for it."""
        return [name for name in names if not self.programs or name in self.programs]


MACHINES = (
    Machine("x86-64-v3", "x86-64-v3,threads=4,l1=32K,l2=512K"),
    Machine("cooperlake", "cooperlake,threads=2,l1=48K,l2=1M"),  # AVX-512, with products of words
    Machine(
        "sapphirerapids", "sapphirerapids,threads=2,l1=48K,l2=2M", ("bfloat16 product", "int8 product of two tiles")
    ),
)


@dataclass(frozen=True, eq=False)
class Unrun:
    """A program that leaves memory as it is. `bound`: the programs in the order in which they would first run."""

    spec: ProgramSpec
    source: str
    bound: dict[str, Unrun]
    entry_address: int | None = None
    nbytes: int = 0
    code_bytes: int = 0
    refusal: str = ""

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        for buffer in buffers:
            buffer.allocate()
        self.bound.setdefault(self.source, self)
        return _nothing


def _nothing(start: int, stop: int) -> None:
    pass


@dataclass(eq=False)
class Listener:
    """What was to run on a machine, in order, each program once."""

    device: str
    bound: dict[str, Unrun] = field(default_factory=dict)


_numbers = count(1)


@contextmanager
def opened(machine: Machine) -> Iterator[Listener]:
    """Inside the block, the machine as the default device: a new one each time, so that nothing compiled before counts.

    Nothing is read from the disk cache or put there.
    """
    listener = Listener(f"GOLDEN{next(_numbers)}")

    def open_it() -> DeviceInterface:
        choice = choice_of(machine.target)
        target = replace(llvm_target(compiler_for(choice.cpu), choice), name=listener.device)
        renderer = LLVMRenderer(target, "golden")
        return DeviceInterface(listener.device, target, HOST_ALLOCATOR, renderer, compiled, lambda spec: [])

    def compiled(spec: ProgramSpec) -> Any:
        return Unrun(spec, spec.source, listener.bound)

    settings = {option.name: option.default for option in fields(Config)}
    settings |= {"CACHELEVEL": 0, "DEVICE": listener.device, "TARGET": machine.target}
    Device.register(listener.device, open_it)
    try:
        with Context(**settings):
            yield listener
    finally:
        Device.forget(listener.device)
