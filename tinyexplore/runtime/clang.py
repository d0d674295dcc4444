"""The CLANG device: compiles C source by a C compiler to a shared object, and loads it into this process."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from tinyexplore.device import DeviceInterface, DeviceUnavailable
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime import sanitizer
from tinyexplore.runtime.asm import assembly_lines, program_roots
from tinyexplore.runtime.disk_cache import load_cached
from tinyexplore.runtime.errors import CompileError, compile_error
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.native import ForeignProgram, NativeProgram, cpu_target, function_bytes, refusal
from tinyexplore.target import FEATURES, NATIVE, TargetChoice, choice_of, current_choice, machine
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.util import config, getenv
from tinyexplore.util.config import environment_with
from tinyexplore.util.interpreter import SharedObject
from tinyexplore.util.private_folder import cache_folder, make_private

T = TypeVar("T")

COMPILERS = ("clang", "gcc", "cc")
FLAGS = ("-O2", "-std=gnu99", "-ffp-contract=fast", "-fno-math-errno", "-fwrapv", "-fno-unroll-loops", "-fPIC", "-w")
SANITIZED = " under sanitizers"  # suffix of a compiler's version for programs that are compiled with sanitizers
PROBE_BYTES = 256 << 10  # a folder with less room counts as full: programs have 10 to 100 KiB
LIBRARY_BYTES = 16 << 10  # memory that the system uses for a shared object beside its contents
_MACROS = {f"__{feature.upper().replace('.', '_')}__": feature for feature in FEATURES}


class WorkFolders:
    """A private folder for source and object files.

    It is in TMPDIR or the system's folder for temporary files, else in the cache folder, /dev/shm or the working
    directory.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._troubles: dict[str, str] = {}  # why each unusable folder cannot be used

    def known(self) -> str:
        """Returns the path of the folder; "" before it exists."""
        return "" if self._folder is None else self._folder.name

    def current(self) -> tempfile.TemporaryDirectory[str]:
        """Returns the folder, created at the first call. Raises DeviceUnavailable if all folders are full or not
        writable."""
        if self._folder is not None:
            return self._folder
        for directory in _temporary_folders():
            if directory in self._troubles:
                continue
            try:
                folder = tempfile.TemporaryDirectory(dir=directory, prefix="tinyexplore-", ignore_cleanup_errors=True)
            except OSError as error:
                self._troubles[directory] = error.strerror or str(error)
                continue
            if trouble := why_unusable(folder.name):
                folder.cleanup()
                self._troubles[directory] = trouble
                continue
            self._folder = folder
            return folder
        troubles = "; ".join(f"{directory}: {trouble}" for directory, trouble in self._troubles.items())
        raise DeviceUnavailable(f"a C compiler needs a folder for its files ({troubles}): set TMPDIR to a writable one")

    def give_up(self, folder: tempfile.TemporaryDirectory[str], trouble: str, error: Exception) -> None:
        """Stops using `folder` because of `error`, and records the reason. The next call chooses another folder."""
        if folder is self._folder:
            first_line = str(error).partition("\n")[0]
            self._troubles[os.path.dirname(folder.name)] = f"{trouble} ({first_line})"
            self._folder = None


def _temporary_folders() -> list[str]:
    """Returns folders for temporary files, the usual one first."""
    folders = []
    with suppress(OSError):  # gettempdir raises this if no folder is writable
        folders.append(tempfile.gettempdir())
    with suppress(OSError, RuntimeError, ValueError):
        cache = cache_folder()
        make_private(cache)
        folders.append(str(cache))
    folders.append("/dev/shm")
    with suppress(OSError):
        folders.append(os.getcwd())
    return list(dict.fromkeys(folders))


def why_unusable(folder: str) -> str:
    """Returns the reason why programs cannot be written to `folder` and run from there, or "" if they can."""
    probe = Path(folder) / ".probe"
    try:
        if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
            return "mounted with noexec"
        probe.write_bytes(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    return ""


class CCompiler:
    """Compiles C to machine code for the CPU of `choice`, by the program `path`."""

    def __init__(self, path: str, choice: TargetChoice | None = None) -> None:
        self._folders = WorkFolders()
        self.path = path
        choice = choice or choice_of(NATIVE)
        if choice.arch != machine():
            raise DeviceUnavailable(
                f"TARGET={choice.text!r}: the CLANG device compiles for this machine's architecture, {machine()}; the "
                f"LLVM device does for {choice.arch}"
            )
        option = "-mcpu" if machine() == "aarch64" else "-march"
        self.flags = (*FLAGS, f"{option}={choice.cpu}")
        try:
            macros = self._read_macros()
        except CompileError as error:
            message = str(error).partition("\n")[2]
            raise DeviceUnavailable(
                f"TARGET={choice.text!r}: the C compiler {path} does not support this CPU: {message}"
            ) from error
        # the meaning of "native" for `path`
        macros_digest = blake2b(repr(sorted(macros.items())).encode(), digest_size=8).hexdigest()
        self.version = (
            f"{os.path.basename(path)} {macros.get('__VERSION__', '?')} {' '.join(self.flags)} ({macros_digest})"
        )
        self.features = _list_features(macros)
        self.refusal = ""
        if not choice.is_native:
            native = CCompiler(path)
            self.refusal = refusal(choice, self.features.split(","), native.features.split(","))
        self._lock = threading.Lock()
        self._count = 0

    def _run(self, arguments: list[str], source: str, path: str = "") -> subprocess.CompletedProcess[str]:
        command = [path or self.path, *self.flags, *arguments]
        folder = self._folders.known()
        environment = environment_with(TMPDIR=folder) if folder else None  # for the compiler's own temporary files
        try:
            return subprocess.run(
                command, input=source, capture_output=True, encoding="utf-8", check=True, env=environment
            )
        except OSError as error:
            raise DeviceUnavailable(f"the C compiler {self.path!r} does not start: {error}") from error
        except subprocess.CalledProcessError as error:
            raise compile_error(os.path.basename(self.path), error.stderr, source, r"<stdin>:(\d+)") from error

    def _read_macros(self) -> dict[str, str]:
        """Returns the macros that the compiler predefines for its target."""
        text = self._run(["-dM", "-E", "-x", "c", os.devnull], "").stdout
        return dict(line.split(" ", 2)[1:] for line in text.splitlines() if line.count(" ") >= 2)

    def _with_file(self, name: str, work: Callable[[Path], T]) -> T:
        """Calls `work` with the path of a new file. If a folder is full or not writable, tries the next one.

        Raises DeviceUnavailable if no folder is left.
        """
        while True:
            with self._lock:
                folder = self._folders.current()
                self._count += 1
                path = Path(folder.name) / f"{name}.{self._count}.so"
            try:
                return work(path)
            except (OSError, CompileError) as error:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                trouble = why_unusable(folder.name)
                if not trouble:
                    raise
                with self._lock:
                    self._folders.give_up(folder, trouble, error)

    def _compile_shared_object(self, spec: ProgramSpec) -> bytes:
        def compile_to(path: Path) -> bytes:
            try:
                self._run(["-shared", "-x", "c", "-", "-o", str(path), "-lm"], spec.source)
                return path.read_bytes()
            finally:
                path.unlink(missing_ok=True)

        return self._with_file(spec.name, compile_to)

    def compile(self, spec: ProgramSpec) -> NativeProgram | ForeignProgram | sanitizer.SanitizedProgram:
        """Returns the machine code of `spec`, ready to run, or for display if this machine cannot execute it."""
        if spec.compiler.endswith(SANITIZED) and not self.refusal:
            return self._compile_sanitized(spec)
        return load_cached(spec.key, lambda: self._compile_shared_object(spec), lambda code: self._load(spec, code))

    def _compile_sanitized(self, spec: ProgramSpec) -> sanitizer.SanitizedProgram:
        return self._with_file(spec.name, lambda path: self._compile_sanitized_at(path, spec))

    def _compile_sanitized_at(self, path: Path, spec: ProgramSpec) -> sanitizer.SanitizedProgram:
        gcc = shutil.which("gcc")
        text = spec.source + sanitizer.driver_source(spec.name)
        arguments = [*sanitizer.FLAGS, "-x", "c", "-", "-o", str(path), "-lm"]
        try:
            self._run(arguments, text)
        except CompileError as error:
            if "cannot find" not in str(error):
                raise
            if gcc is None:
                raise CompileError(f"{sanitizer.NO_RUNTIME}\n{error}") from error
            self._run(arguments, text, gcc)
        return sanitizer.SanitizedProgram(spec, path, self._folders.current())

    def _load(self, spec: ProgramSpec, code: bytes) -> NativeProgram | ForeignProgram:
        if self.refusal:
            return ForeignProgram(spec, self.refusal, code)

        def load_from(path: Path) -> SharedObject:
            path.write_bytes(code)
            try:
                return SharedObject(str(path))
            finally:
                # Windows locks a loaded file; on other systems the library stays loaded
                with suppress(PermissionError):
                    path.unlink()

        library = self._with_file(spec.name, load_from)
        entry = ctypes.cast(getattr(library, f"{spec.name}_entry"), ctypes.c_void_p).value
        assert entry is not None
        nbytes = LIBRARY_BYTES + 2 * len(code)
        return NativeProgram(spec, entry, library, nbytes, code_bytes=function_bytes(code))

    def listings(self, spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
        """Returns the assembly of `spec`. Each line has the UOps of its line of C."""
        syntax = ["-masm=intel"] if machine() == "x86_64" else []
        result = self._run(["-S", "-g1", *syntax, "-x", "c", "-", "-o", "-"], spec.source)
        roots = program_roots(spec.uops)

        def find(line: int) -> tuple[UOp, ...]:
            made_by = spec.lines[line - 1].uops if 1 <= line <= len(spec.lines) else ()
            return made_by or roots

        return [("asm", assembly_lines(spec, result.stdout, find))]


def _list_features(macros: dict[str, str]) -> str:
    """Returns the CPU features that `macros` show, as LLVM lists them."""
    return ",".join(f"+{feature}" for macro, feature in _MACROS.items() if macro in macros)


def find_compiler() -> str:
    """Returns the C compiler in the environment variable CC, else clang, gcc or cc."""
    name_in_cc = getenv("CC", "")
    for name in (name_in_cc,) if name_in_cc else COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return path
    if name_in_cc:
        raise DeviceUnavailable(f"CC={name_in_cc!r}: no such program; unset CC or name a C compiler that is installed")
    raise DeviceUnavailable(
        f"the CLANG device needs a C compiler; none of {', '.join(COMPILERS)} was found: install clang or gcc, set CC, "
        "or use the LLVM device"
    )


class _Renderer(CRenderer):
    """The C renderer. Its programs record whether they are compiled with sanitizers."""

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        spec = super().render(name, uops)
        return replace(spec, compiler=spec.compiler + SANITIZED) if config().SANITIZE else spec


def open_clang(path: str | None = None) -> DeviceInterface:
    """Opens the CLANG device for the current TARGET, with the compiler `path` (None: the result of `find_compiler`)."""
    choice = current_choice()
    compiler = CCompiler(path or find_compiler(), choice)
    native_ops = OpGroups.TRANSCENDENTAL | {Ops.SQRT, Ops.FLOOR}
    target = cpu_target("CLANG", os.path.basename(compiler.path), compiler.features, native_ops, (), choice)
    renderer = _Renderer(target, compiler.version)
    return DeviceInterface(
        "CLANG", target, HOST_ALLOCATOR, renderer, compiler.compile, compiler.listings, compiler.refusal
    )
