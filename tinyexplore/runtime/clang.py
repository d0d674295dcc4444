"""The CLANG device: C source through a C compiler into a shared object, loaded into this process."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from tinyexplore.device import DeviceInterface, DeviceUnavailable
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime.asm import assembly_lines, program_roots
from tinyexplore.runtime.cache import cached
from tinyexplore.runtime.host import HOST_ALLOCATOR
from tinyexplore.runtime.native import NativeProgram, cpu_target, machine
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Group, Ops, UOp
from tinyexplore.util import getenv

COMPILERS = ("clang", "gcc", "cc")
FLAGS = ("-O2", "-std=gnu99", "-ffp-contract=fast", "-fno-math-errno", "-fwrapv", "-fno-unroll-loops", "-fPIC", "-w")
_MACROS = {"__AVX512F__": "avx512f", "__AVX2__": "avx2", "__FMA__": "fma", "__F16C__": "f16c"}


class CompileError(RuntimeError):
    """The C compiler refused a program: its words, and the line of the source."""


class CCompiler:
    """C to machine code by the program `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        native = "-mcpu=native" if machine() == "aarch64" else "-march=native"
        self.flags = (*FLAGS, native)
        macros = self._run(["-dM", "-E", "-x", "c", os.devnull], "").stdout
        found = dict(line.split(" ", 2)[1:] for line in macros.splitlines() if line.count(" ") >= 2)
        self.version = f"{os.path.basename(path)} {found.get('__VERSION__', '?')} {' '.join(self.flags)}"
        self.features = ",".join(f"+{feature}" for macro, feature in _MACROS.items() if macro in found)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._count = 0

    def _run(self, arguments: list[str], source: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self.path, *self.flags, *arguments], input=source, capture_output=True, text=True, check=True
            )
        except OSError as error:
            raise DeviceUnavailable(f"the C compiler {self.path!r} does not start: {error}") from error
        except subprocess.CalledProcessError as error:
            raise CompileError(_explain(error.stderr, source, self.path)) from error

    def _new_path(self, name: str) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="tinyexplore-")
            self._count += 1
            return Path(self._folder.name) / f"{name}.{self._count}.so"

    def _shared_object(self, spec: ProgramSpec) -> bytes:
        path = self._new_path(spec.name)
        self._run(["-shared", "-x", "c", "-", "-o", str(path), "-lm"], spec.source)
        content = path.read_bytes()
        path.unlink()
        return content

    def compile(self, spec: ProgramSpec) -> NativeProgram:
        """`spec` as machine code, ready to run."""
        path = self._new_path(spec.name)
        path.write_bytes(cached(spec.key, lambda: self._shared_object(spec)))
        library = ctypes.CDLL(str(path))
        path.unlink()  # what is loaded stays loaded
        entry = ctypes.cast(getattr(library, f"{spec.name}_entry"), ctypes.c_void_p).value
        assert entry is not None
        return NativeProgram(spec, entry, library)

    def listings(self, spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
        """The assembly that the compiler makes of `spec`, each line with the UOps of the C line it came from."""
        syntax = ["-masm=intel"] if machine() == "x86_64" else []
        result = self._run(["-S", "-g1", *syntax, "-x", "c", "-", "-o", "-"], spec.source)
        roots = program_roots(spec.uops)

        def find(line: int) -> tuple[UOp, ...]:
            made_by = spec.lines[line - 1].uops if 1 <= line <= len(spec.lines) else ()
            return made_by or roots

        return [("asm", assembly_lines(spec, result.stdout, find))]


def _explain(words: str, source: str, path: str) -> str:
    """The compiler's first error with the line that it is about."""
    place = re.search(r"<stdin>:(\d+)", words)
    lines = source.splitlines()
    shown = ""
    if place is not None and 1 <= int(place[1]) <= len(lines):
        shown = f"\nline {place[1]}: {lines[int(place[1]) - 1].strip()}"
    return f"{os.path.basename(path)} could not compile the kernel:\n{words.strip()}{shown}"


def find_compiler() -> str:
    """The C compiler: what the environment variable CC names, else clang, gcc or cc."""
    chosen = getenv("CC", "")
    for name in (chosen,) if chosen else COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return path
    if chosen:
        raise DeviceUnavailable(f"CC={chosen!r}: no such program; unset CC or name a C compiler that is installed")
    raise DeviceUnavailable(
        f"the CLANG device needs a C compiler; none of {', '.join(COMPILERS)} was found: install clang or gcc, set CC, "
        "or use the LLVM device"
    )


def open_clang(path: str | None = None) -> DeviceInterface:
    """The CLANG device, compiling with `path` (None: what `find_compiler` finds)."""
    compiler = CCompiler(path or find_compiler())
    native_ops = Group.TRANSCENDENTAL | {Ops.SQRT, Ops.FLOOR}
    target = cpu_target("CLANG", os.path.basename(compiler.path), compiler.features, native_ops, ())
    renderer = CRenderer(target, compiler.version)
    return DeviceInterface("CLANG", target, HOST_ALLOCATOR, renderer, compiler.compile, compiler.listings)
