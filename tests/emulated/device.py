"""A device whose kernels QEMU runs: cross-compiled, on buffers between guard pages."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tinyexplore.device import Buffer, Device, DeviceInterface
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.llvm import compiler_for, llvm_target
from tinyexplore.target import choice_of
from tinyexplore.util import Context

DEVICE = "EMULATED"
RUNNER = Path(__file__).with_name("runner.c")
# by architecture: the cross compiler's prefix, QEMU's program with a CPU that has everything, and Debian's packages
TOOLS = {
    "aarch64": ("aarch64-linux-gnu", ("qemu-aarch64", "-cpu", "max"), "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    "riscv64": ("riscv64-linux-gnu", ("qemu-riscv64", "-cpu", "rv64,v=true"), "gcc-riscv64-linux-gnu"),
}


class Lacking(RuntimeError):
    """What is not installed here; the text says how to get it."""


class Crashed(RuntimeError):
    """The emulated process ended: a kernel accessed protected memory, or contains invalid code for that machine."""


class Emulator:
    """One process of QEMU's, which runs kernels one after the other."""

    def __init__(self, target: str) -> None:
        self.choice = choice_of(target)
        if self.choice.arch not in TOOLS:
            raise Lacking(f"{target}: no emulator is known for {self.choice.arch}; for: {', '.join(TOOLS)}")
        prefix, emulator, packages = TOOLS[self.choice.arch]
        self.compiler = f"{prefix}-gcc"
        for program in (self.compiler, emulator[0]):
            if shutil.which(program) is None:
                raise Lacking(f"{program} was not found: apt-get install {packages} qemu-user")
        self._folder = tempfile.TemporaryDirectory(prefix="emulated-")
        self.folder = Path(self._folder.name)
        runner = self.folder / "runner"
        self._run_compiler("-O1", "-rdynamic", str(RUNNER), "-o", str(runner), "-ldl", "-Wl,--no-as-needed", "-lm")
        if self.choice.arch == "riscv64":
            emulator = (*emulator[:-1], f"{emulator[-1]},vlen={8 * max(16, vector_bytes(target))}")
        self.command = [*emulator, "-L", f"/usr/{prefix}", str(runner)]
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()
        self.linked = 0
        self.calls = 0

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait(10)
            self.process = None
        self._folder.cleanup()

    def link(self, name: str, code: bytes) -> Path:
        """A shared object of an object file."""
        with self.lock:  # several threads compile
            self.linked += 1
            library = self.folder / f"{name[:40]}.{self.linked}.so"
        library.with_suffix(".o").write_bytes(code)
        self._run_compiler("-shared", "-nostartfiles", str(library.with_suffix(".o")), "-o", str(library), "-lm")
        return library

    def compile_c(self, spec: ProgramSpec) -> bytes:
        """The object file of a program in C."""
        source = self.folder / f"{spec.name}.c"
        source.write_text(spec.source)
        self._run_compiler("-O2", "-fPIC", "-std=gnu11", "-Wno-psabi", "-c", str(source), "-o", f"{source}.o")
        return Path(f"{source}.o").read_bytes()

    def _run_compiler(self, *arguments: str) -> None:
        subprocess.run([self.compiler, *arguments], check=True)

    def call(
        self,
        library: Path,
        symbol: str,
        start: int,
        stop: int,
        memories: Sequence[tuple[bytes, bool]],
        values: Sequence[int],
    ) -> list[bytes]:
        """What lies in the buffers after the call. `memories`: what lies in each before, and whether it begins where
        its pages do (else it ends where they end)."""
        parts = [_text(str(library)), _text(symbol), _numbers(start, stop, len(memories), len(values))]
        for content, at_start in memories:
            parts += [_numbers(len(content), int(at_start)), content]
        parts.append(_numbers(*values))
        with self.lock:
            self.calls += 1
            if self.process is None:
                self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            process = self.process
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(b"".join(parts))
                process.stdin.flush()
                found = [process.stdout.read(len(content)) for content, _ in memories]
            except OSError:
                found = []
            if [len(content) for content in found] != [len(content) for content, _ in memories]:
                self.process = None
                raise Crashed(f"{symbol}: the emulated process ended with {process.wait(10)}")
            return found


def vector_bytes(target: str) -> int:
    """What a vector register of the target holds."""
    with Context(TARGET=target):
        return Device["LLVM"].target.vector_bytes


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _numbers(len(encoded)) + encoded


def _numbers(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


class EmulatedProgram:
    """A kernel in a shared object of another architecture."""

    entry_address: int | None = None
    nbytes = 0
    refusal = ""

    def __init__(self, emulator: Emulator, spec: ProgramSpec, code: bytes) -> None:
        self.emulator, self.spec = emulator, spec
        self.code_bytes = len(code)
        self.library = emulator.link(spec.name, code)

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        for buffer in buffers:
            buffer.allocate()

        def run(start: int, stop: int) -> None:
            # buffers end and begin at a fence in turn; those that must be aligned begin
            placed = [
                (buffer.copyout(), (place + self.emulator.calls) % 2 == 0 or place in self.spec.aligned)
                for place, buffer in enumerate(buffers)
            ]
            found = self.emulator.call(self.library, f"{self.spec.name}_entry", start, stop, placed, values)
            for place in self.spec.writes:
                buffers[place].copyin(found[place])

        return run


@contextmanager
def emulated(target: str) -> Iterator[Emulator]:
    """Inside the block, the target as the default device, one thread. Lacking where a tool is not there."""
    emulator = Emulator(target)
    compiler = compiler_for(emulator.choice.cpu)
    described = replace(llvm_target(compiler, emulator.choice), name=DEVICE)

    def compiled(spec: ProgramSpec) -> EmulatedProgram:
        return EmulatedProgram(emulator, spec, compiler.object_code(spec.source, spec.options))

    def open_it() -> DeviceInterface:
        renderer = LLVMRenderer(described, compiler.version)
        return DeviceInterface(DEVICE, described, HOST_ALLOCATOR, renderer, compiled, lambda spec: [])

    Device.register(DEVICE, open_it)
    try:
        with Context(DEVICE=DEVICE, TARGET=target, CACHELEVEL=0, THREADS=1):
            yield emulator
    finally:
        Device.forget(DEVICE)
        emulator.close()
