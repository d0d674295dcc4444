"""The LLVM device: optimizes IR and compiles it to machine code in this process, through llvmlite's binding."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from typing import Any, TypeVar

from tinyexplore.device import DeviceUnavailable
from tinyexplore.renderer.llvm import LLVMRenderer, with_debug_info
from tinyexplore.renderer.llvm.arithmetic import DOT_FEATURES, SCALE_FEATURES
from tinyexplore.renderer.program import CompileOptions, Effort, ProgramSpec, StoredSpec
from tinyexplore.runtime.asm import assembly_lines, optimized_ir_lines
from tinyexplore.runtime.disk_cache import load_cached
from tinyexplore.runtime.linking import LIBRARY_BYTES, Library, Linker
from tinyexplore.runtime.native import ForeignProgram, NativeProgram, cannot_run, cpu_target, function_bytes, refusal
from tinyexplore.runtime.tile_registers import usable_features
from tinyexplore.runtime.unlocked_llvm import emit_object, parse_module, run_passes, verify
from tinyexplore.target import AMX, NATIVE, WASM32, Target, TargetChoice, choice_of, machine
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.util.config import process_config
from tinyexplore.util.locks import SharedLock, held_in_forks

P = TypeVar("P")

OPTIMIZATION_LEVEL = 3
# LLVM's level of code generation. A higher one would reorder instructions after register allocation, which the CPU
# does anyway: all programs of the benchmark ran as fast, and took 4 % longer to compile.
CODE_LEVEL = 1
# part of cache keys, like the options
PIPELINE = (
    f"O{OPTIMIZATION_LEVEL}, loops vectorized, not unrolled; or simplify_cfg of branches; code O{CODE_LEVEL} or O0"
)


def code_level(effort: Effort) -> int:
    """Returns LLVM's level of code generation."""
    return 0 if effort is Effort.LEAST else CODE_LEVEL


class LLVMCompiler:
    """Compiles IR to machine code for the CPU of `choice`, which may differ from this machine's. Any thread may call
    it."""

    def __init__(self, choice: TargetChoice | None = None) -> None:
        self.choice = choice = choice or choice_of(NATIVE)
        try:
            import llvmlite
            import llvmlite.binding as llvm
        except ImportError as error:
            raise DeviceUnavailable(
                f"the LLVM device needs llvmlite, which does not import ({error}): pip install llvmlite, "
                "or use Device.DEFAULT = 'CLANG' or 'PYTHON'"
            ) from error
        self.llvm = llvm
        if choice.arch == machine():
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            llvm.initialize_native_asmparser()
        else:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        host = usable_features(llvm.get_host_cpu_features().flatten())
        self.cpu = llvm.get_host_cpu_name() if choice.is_native else choice.cpu
        self.features = host if choice.is_native else ",".join(f"+{name}" for name in sorted(choice.features))
        self.refusal = refusal(choice, [f"+{name}" for name in choice.features], host.split(","))
        version = ".".join(map(str, llvm.llvm_version_info))
        self.version = f"llvm {version}, llvmlite {llvmlite.__version__}, {PIPELINE}"
        self.in_use = SharedLock()
        self._listing = threading.Lock()
        self._idle: dict[int, list[Any]] = {level: [self._create_target_machine(level)] for level in (CODE_LEVEL, 0)}
        machine_now = self._idle[CODE_LEVEL][0]
        self.triple, self._layout = machine_now.triple, str(machine_now.target_data)
        target_machine = self._create_target_machine() if choice.arch == machine() else None  # None: nothing is linked
        # JITLink places the sections of an object file together. LLVM's older linker allocates each section
        # separately, and aborts if they are more than two GiB apart, which reservations of other libraries can cause
        self.linker = Linker(
            partial(llvm.create_lljit_compiler, target_machine, use_jit_link=True), llvm.JITLibraryBuilder
        )
        self._half: list[bytes] = []  # the conversions of float16, for CPUs without instructions for them
        if choice.arch == "x86_64" and "+f16c" not in self.features:
            self._half = [
                self.object_code(
                    resources.files("tinyexplore.runtime").joinpath("half.ll").read_text("utf-8"), CompileOptions()
                )
            ]

    def _create_target_machine(self, level: int = CODE_LEVEL) -> Any:
        native = self.choice.arch == machine()
        targets = self.llvm.Target
        target = (
            targets.from_default_triple() if native else targets.from_triple(f"{self.choice.arch}-unknown-linux-gnu")
        )
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small", abiname=self.abi
        )

    @property
    def abi(self) -> str:
        """The calling convention, if it differs from LLVM's default."""
        return "lp64d" if self.choice.arch == "riscv64" else ""

    @contextmanager
    def _borrow_machine(self, effort: Effort) -> Iterator[Any]:
        """Yields a target machine for exclusive use."""
        level = code_level(effort)
        idle_machines = self._idle[level]
        try:
            machine = idle_machines.pop()
        except IndexError:
            machine = self._create_target_machine(level)
        try:
            yield machine
        finally:
            idle_machines.append(machine)

    def _optimize(self, ir: str, options: CompileOptions, target_machine: Any) -> Any:
        """Returns the parsed, verified and optimized module. Raises RuntimeError if the IR is not valid."""
        llvm = self.llvm
        module = parse_module(ir, llvm.create_context())
        module.triple, module.data_layout = self.triple, self._layout
        verify(module)
        if options.effort is not Effort.FULL:
            if options.branches:
                self._simplify_branches(module, target_machine)
            return module
        tuning = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION_LEVEL)
        tuning.loop_vectorization = True
        # opts vectorize; for vectors of bools from LLVM's vectorizer, LLVM 22 generates wrong code
        tuning.slp_vectorization = False
        tuning.loop_unrolling = False  # opts unroll; unrolling in code generation only costs compile time
        builder = llvm.create_pass_builder(target_machine, tuning)
        run_passes(builder.getModulePassManager(), module, builder)
        return module

    def _simplify_branches(self, module: Any, target_machine: Any) -> None:
        """Removes branches where possible: the only pass for IR whose effort is not FULL.

        The instruction selector does the rest: equal values are one node, and sums are in registers, already in the
        written IR.
        """
        manager = self.llvm.create_new_module_pass_manager()
        manager.add_simplify_cfg_pass()
        options = self.llvm.create_pipeline_tuning_options()
        run_passes(manager, module, self.llvm.create_pass_builder(target_machine, options))

    def object_code(self, ir: str, options: CompileOptions) -> bytes:
        """Returns the relocatable object file of `ir`. Several threads compile concurrently.

        With the LEAST effort, code is generated instruction by instruction, in a fifth of the time.
        """
        with self.in_use, self._borrow_machine(options.effort) as target_machine:
            return emit_object(target_machine, self._optimize(ir, options, target_machine))

    def link(
        self, name: str, codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int] | None = None
    ) -> Library:
        """Links object files into this process. The result maps `exports` to their addresses, which are valid as long
        as it lives.

        imports: addresses of functions that the code calls, if the process does not have them itself.
        """
        if self.refusal:
            raise cannot_run(self.choice.text, self.refusal)
        with self.in_use:
            return self.linker.link(name, [*codes, *self._half], exports, imports)

    def load(self, spec: ProgramSpec, code: bytes) -> NativeProgram | ForeignProgram:
        """Links the program in an object file from `object_code` into this process, if it can run here."""
        if self.refusal:
            return ForeignProgram(spec, self.refusal, code)
        return self._link(spec, code)

    def _link(self, spec: ProgramSpec, code: bytes) -> NativeProgram:
        entry = f"{spec.name}_entry"
        library = self.link(spec.name, [code], (entry,))
        unaligned = partial(self._make_unaligned_variant, spec) if spec.aligned else None
        nbytes = LIBRARY_BYTES + len(code)
        return NativeProgram(spec, library[entry], (library, self), nbytes, unaligned, function_bytes(code))

    def _make_unaligned_variant(self, spec: ProgramSpec) -> NativeProgram:
        """Returns the program without streaming stores, for buffers of any alignment."""

        def rendered() -> ProgramSpec:
            spec_rendered = LLVMRenderer(spec.target, spec.compiler, streaming=False).render(spec.name, spec.uops)
            if isinstance(spec, StoredSpec):
                spec.forget_text()
            return spec_rendered

        stored_spec = StoredSpec.of(rendered(), rendered)
        program = self._load_cached(stored_spec, self._link)
        stored_spec.forget_text()
        return program

    def compile(self, spec: ProgramSpec) -> NativeProgram | ForeignProgram:
        """Returns the machine code of `spec`, ready to run, or for display if this machine cannot execute it."""
        return self._load_cached(spec, self.load)

    def _load_cached(self, spec: ProgramSpec, load: Callable[[ProgramSpec, bytes], P]) -> P:
        return load_cached(spec.key, lambda: self.object_code(spec.source, spec.options), lambda code: load(spec, code))

    def listings(self, spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
        """Returns LLVM's listings of `spec`: the IR after optimization ("llvm-opt") and the assembly ("asm")."""
        with self.in_use, self._listing:
            if "x86" in self.triple and not _intel_syntax:
                _intel_syntax.append(True)
                self.llvm.set_option("tinyexplore", "-x86-asm-syntax=intel")
            effort = spec.options.effort
            with self._borrow_machine(effort) as target_machine:
                module = self._optimize(with_debug_info(spec), spec.options, target_machine)
            ir, assembly = str(module), self._create_target_machine(code_level(effort)).emit_assembly(module)
        return [("llvm-opt", optimized_ir_lines(spec, ir)), ("asm", assembly_lines(spec, assembly))]


_intel_syntax: list[bool] = []  # the option belongs to the process and may be set once


@cache
def compiler_for(cpu: str) -> LLVMCompiler:
    """Returns the compiler for a CPU. The process has one for each CPU."""
    compiler = LLVMCompiler(choice_of(cpu))
    held_in_forks(compiler.in_use)
    return compiler


@cache
def shared_compiler() -> LLVMCompiler:
    """Returns the compiler of this process's helpers (the pool, the entries of replays), which are compiled once.

    It is for the TARGET with which the process started, or for this machine if that cannot run here.
    """
    choice = choice_of(process_config().TARGET)
    compiler = compiler_for(NATIVE if choice.gpu or choice.cpu == WASM32 else choice.cpu)
    return compiler_for(NATIVE) if compiler.refusal else compiler


def llvm_target(compiler: LLVMCompiler, choice: TargetChoice) -> Target:
    """Returns the CPU of `choice` as `compiler` describes it."""
    target = cpu_target("LLVM", compiler.cpu, compiler.features, OpGroups.TRANSCENDENTAL | {Ops.SQRT}, (), choice)
    features = set(compiler.features.split(","))
    dots = frozenset(op for op, feature in DOT_FEATURES.items() if feature in features)
    fuses = "+fma" in features or target.arch in ("aarch64", "riscv64")
    cores = tuple(core for core in AMX if features >= {f"+{feature}" for feature in core.needs})
    return replace(
        target,
        cores=cores,
        dots=dots,
        fuses_multiply_add=fuses,
        has_scale=fuses and features >= SCALE_FEATURES,
        registers_per_op=4,
    )
