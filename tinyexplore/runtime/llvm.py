"""The LLVM device: IR optimised and turned into machine code in this process, by llvmlite's binding alone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any
from weakref import WeakValueDictionary

from tinyexplore.device import DeviceInterface, DeviceUnavailable
from tinyexplore.renderer.llvm import BRANCH, HARDLY, LIGHTLY, LLVMRenderer, cut, with_debug_info
from tinyexplore.renderer.llvm_arith import DOT_FEATURES, SCALE_FEATURES
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime.asm import assembly_lines, optimised_ir_lines
from tinyexplore.runtime.cache import cached
from tinyexplore.runtime.host import HOST_ALLOCATOR
from tinyexplore.runtime.native import NativeProgram, cpu_target, machine
from tinyexplore.runtime.pool import make_pool_ahead
from tinyexplore.runtime.side_by_side import emit_object, parsed, run_passes, verify
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Group, Ops
from tinyexplore.util.locks import SharedLock, held_in_forks

OPTIMISATION_LEVEL = 3
# Of turning the result into instructions. More would order them anew when they have their registers, which the CPU
# does by itself: all programs of the benchmark ran as fast, and took 4 % longer to compile.
CODE_LEVEL = 1
# part of cache keys, as is the attribute
PIPELINE = (
    f"O{OPTIMISATION_LEVEL}, loops vectorised, not unrolled; or simplify_cfg of branches; code O{CODE_LEVEL} or O0; "
    "in parts"
)
# a loop over vectors, as most kernels are
A_LOOP = f"""
define void @warm_up(ptr %data, i64 %stop) nounwind "prefer-vector-width"="512" {LIGHTLY} {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %acc = phi <16 x float> [ zeroinitializer, %entry ], [ %sum, %body ]
  %place = getelementptr inbounds float, ptr %data, i64 %i
  %value = load <16 x float>, ptr %place, align 4
  %sum = fadd <16 x float> %acc, %value
  %next = add nuw nsw i64 %i, 16
  %again = icmp slt i64 %next, %stop
  br i1 %again, label %body, label %done
done:
  store <16 x float> %sum, ptr %data, align 4
  ret void
}}
"""


@dataclass(frozen=True)
class _Shared:
    """The two modules of a program (see `cut`); `done`: the second as an object file."""

    first: str
    second: str
    done: Future[bytes] = field(default_factory=Future)


class LLVMCompiler:
    """IR to machine code for this CPU, or for one that has less (`cpu`, `features`). Any thread may call it."""

    def __init__(self, cpu: str | None = None, features: str | None = None) -> None:
        try:
            import llvmlite
            import llvmlite.binding as llvm
        except ImportError as error:
            raise DeviceUnavailable(
                f"the LLVM device needs llvmlite, which does not import ({error}): pip install llvmlite, "
                "or use Device.DEFAULT = 'CLANG' or 'PYTHON'"
            ) from error
        self.llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        self.cpu = llvm.get_host_cpu_name() if cpu is None else cpu
        self.features = llvm.get_host_cpu_features().flatten() if features is None else features
        version = ".".join(map(str, llvm.llvm_version_info))
        self.version = f"llvm {version}, llvmlite {llvmlite.__version__}, {PIPELINE}"
        self.in_use = SharedLock()
        self._linking = threading.Lock()
        self._numbers = itertools.count()
        # programs that another thread may do a part of, by their keys, until it has
        self._shared: WeakValueDictionary[str, _Shared] = WeakValueDictionary()
        self._idle: dict[int, list[Any]] = {level: [self._target_machine(level)] for level in (CODE_LEVEL, 0)}
        machine_now = self._idle[CODE_LEVEL][0]
        self._triple, self._layout = machine_now.triple, str(machine_now.target_data)
        self._jit = llvm.create_lljit_compiler(self._target_machine())
        self._half = b""  # object code of the conversions of float16, for CPUs that have no instructions for them
        if machine() == "x86_64" and "+f16c" not in self.features:
            self._half = self.object_code(resources.files("tinyexplore.runtime").joinpath("half.ll").read_text())

    def _target_machine(self, level: int = CODE_LEVEL) -> Any:
        target = self.llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )

    @contextmanager
    def _machine_for(self, ir: str) -> Iterator[Any]:
        """A target machine that nobody else uses meanwhile."""
        level = 0 if HARDLY in ir else CODE_LEVEL
        idle = self._idle[level]
        try:
            found = idle.pop()
        except IndexError:
            found = self._target_machine(level)
        try:
            yield found
        finally:
            idle.append(found)

    def _optimised(self, ir: str, target_machine: Any) -> Any:
        """The parsed, verified and optimised module. RuntimeError where the IR is not valid."""
        llvm = self.llvm
        module = parsed(ir, llvm.create_context())
        module.triple, module.data_layout = self._triple, self._layout
        verify(module)
        if LIGHTLY in ir or HARDLY in ir:
            if BRANCH in ir:
                self._simplify_branches(module, target_machine)
            return module
        tuning = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION_LEVEL)
        tuning.loop_vectorization = True
        tuning.slp_vectorization = False  # opts make vectors; of truths in those made so, LLVM 22 generates wrong code
        tuning.loop_unrolling = False  # code generation unrolls by its opts; more only costs compile time
        builder = llvm.create_pass_builder(target_machine, tuning)
        run_passes(builder.getModulePassManager(), module, builder)
        return module

    def _simplify_branches(self, module: Any, target_machine: Any) -> None:
        """All that is done to IR that says LIGHTLY or HARDLY, where a branch may go (see `BRANCH`).

        The instruction selector combines what is left; equal values are one node, and sums registers, before there is
        IR.
        """
        manager = self.llvm.create_new_module_pass_manager()
        manager.add_simplify_cfg_pass()
        options = self.llvm.create_pipeline_tuning_options()
        run_passes(manager, module, self.llvm.create_pass_builder(target_machine, options))

    def object_code(self, ir: str) -> bytes:
        """The relocatable object file of `ir`; where that says HARDLY, instruction by instruction, in a fifth of the
        time. Several threads compile side by side."""
        with self.in_use, self._machine_for(ir) as target_machine:
            return emit_object(target_machine, self._optimised(ir, target_machine))

    def warm_up(self) -> None:
        """Compiles a loop for nothing: what LLVM does once in a process, 2 to 3 ms of the first kernel, is done."""
        self.object_code(A_LOOP)

    def link(
        self, name: str, codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int] | None = None
    ) -> Any:
        """Object files in this process: maps `exports` to their addresses, which hold as long as it lives.

        `imports`: addresses of functions that it calls, where the process does not tell them itself.
        """
        with self.in_use, self._linking:
            builder = self.llvm.JITLibraryBuilder()
            for code in codes:
                builder.add_object_img(code)
            builder.add_current_process()
            for symbol, address in (imports or {}).items():
                builder.import_symbol(symbol, address)
            if self._half:
                builder.add_object_img(self._half)
            for symbol in exports:
                builder.export_symbol(symbol)
            return builder.link(self._jit, f"{name}.{next(self._numbers)}")

    def load(self, spec: ProgramSpec, *codes: bytes) -> NativeProgram:
        """The program in object files made by `object_code`, linked into this process."""
        entry = f"{spec.name}_entry"
        library = self.link(spec.name, codes, (entry,))
        unaligned = (lambda: self.compile(self._without_streaming(spec))) if spec.aligned else None
        return NativeProgram(spec, library[entry], (library, self), unaligned)

    def _without_streaming(self, spec: ProgramSpec) -> ProgramSpec:
        return LLVMRenderer(spec.target, spec.compiler, streaming=False).render(spec.name, spec.uops)

    def compile(self, spec: ProgramSpec) -> NativeProgram:
        """`spec` as machine code, ready to run."""
        shared = self._shared.pop(spec.key, None)
        code = cached(spec.key, lambda: packed(self._codes(spec, shared)))
        if shared is not None:
            shared.done.cancel()
        return self.load(spec, *unpacked(code))

    def share(self, spec: ProgramSpec) -> Callable[[], None] | None:
        """A part of what `compile` will do for `spec`, for another thread to do meanwhile; None where it is not worth
        it. If nobody has begun it when `compile` comes to it, it is done there."""
        modules = cut(spec.source)
        if len(modules) == 1:
            return None
        shared = _Shared(modules[0], modules[1])
        self._shared[spec.key] = shared

        def work() -> None:
            if shared.done.set_running_or_notify_cancel():
                try:
                    shared.done.set_result(self.object_code(shared.second))
                except BaseException as error:
                    shared.done.set_exception(error)
                    raise

        return work

    def _codes(self, spec: ProgramSpec, shared: _Shared | None) -> list[bytes]:
        """The object files of `spec`."""
        if shared is None:
            return [self.object_code(spec.source)]
        first = self.object_code(shared.first)
        return [first, self.object_code(shared.second) if shared.done.cancel() else shared.done.result()]

    def listings(self, spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
        """What LLVM makes of `spec`: its IR after optimisation ("llvm-opt") and the assembly ("asm")."""
        with self.in_use, self._linking:
            if "x86" in self._triple and not _intel_syntax:
                _intel_syntax.append(True)
                self.llvm.set_option("tinyexplore", "-x86-asm-syntax=intel")
            source = with_debug_info(spec)
            with self._machine_for(source) as target_machine:
                module = self._optimised(source, target_machine)
            level = 0 if HARDLY in source else CODE_LEVEL
            ir, assembly = str(module), self._target_machine(level).emit_assembly(module)
        return [("llvm-opt", optimised_ir_lines(spec, ir)), ("asm", assembly_lines(spec, assembly))]


def packed(codes: Sequence[bytes]) -> bytes:
    """Several object files as one sequence of bytes."""
    return b"".join([len(code).to_bytes(8, "little") + code for code in codes])


def unpacked(code: bytes) -> list[bytes]:
    """What `packed` was given."""
    found, start = [], 0
    while start < len(code):
        end = start + 8 + int.from_bytes(code[start : start + 8], "little")
        found.append(code[start + 8 : end])
        start = end
    return found


_intel_syntax: list[bool] = []  # the option belongs to the process and may be given once


@cache
def shared_compiler() -> LLVMCompiler:
    """The compiler of this process."""
    compiler = LLVMCompiler()
    held_in_forks(compiler.in_use)
    return compiler


def open_llvm() -> DeviceInterface:
    """The LLVM device. DeviceUnavailable where llvmlite is not installed."""
    compiler = shared_compiler()
    target = cpu_target("LLVM", compiler.cpu, compiler.features, Group.TRANSCENDENTAL | {Ops.SQRT}, ())
    have = set(compiler.features.split(","))
    dots = frozenset(op for op, feature in DOT_FEATURES.items() if feature in have)
    fuses = "+fma" in have or target.arch == "aarch64"
    target = replace(target, dots=dots, fuses=fuses, scales=fuses and have >= SCALE_FEATURES, abreast=4)
    renderer = LLVMRenderer(target, compiler.version)
    make_pool_ahead()
    return DeviceInterface(
        "LLVM", target, HOST_ALLOCATOR, renderer, compiler.compile, compiler.listings, compiler.share
    )
