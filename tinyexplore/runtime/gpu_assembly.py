"""Writes programs for GPUs as assembly, by LLVM's backends: PTX for NVIDIA, AMDGCN for AMD. Runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyexplore.device import DeviceUnavailable
from tinyexplore.renderer.llvm import with_debug_info
from tinyexplore.renderer.llvm.gpu import BACKENDS, GPUIRRenderer
from tinyexplore.renderer.program import ProgramSpec, RenderError
from tinyexplore.runtime.asm import amdgcn_lines, ptx_lines
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import UOp

LEVEL = 3


class GPUAssembler:
    """Renders programs as assembly for a GPU with an LLVM backend. Each line has the UOp that it comes from."""

    def __init__(self, target: Target) -> None:
        try:
            import llvmlite.binding as llvm
        except ImportError as error:
            raise DeviceUnavailable(
                f"assembly for {target.cpu} needs llvmlite, which does not import ({error}): pip install llvmlite"
            ) from error
        self.llvm = llvm
        self.target = target
        self.backend = BACKENDS[target.arch]
        self.language = self.backend.language
        self.compiler = f"llvm {'.'.join(map(str, llvm.llvm_version_info))}"
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`. Raises RenderError if it needs a feature that the
        backend lacks."""
        ir = GPUIRRenderer(self.target, self.compiler).render(name, uops)
        # source locations only, without tables, so that ptxas accepts the PTX as it is
        text = self.assemble(with_debug_info(ir, "DebugDirectivesOnly"))
        lines = ptx_lines if self.language == "ptx" else amdgcn_lines
        return replace(ir, language=self.language, lines=lines(ir, text))

    def assemble(self, ir: str) -> str:
        """Returns the assembly that LLVM generates for a module."""
        llvm = self.llvm
        options = {"cpu": self.target.cpu, "features": self.backend.features.get(self.target.cpu, "")}
        machine = llvm.Target.from_triple(self.backend.triple).create_target_machine(opt=LEVEL, **options)
        module = llvm.parse_assembly(ir, llvm.create_context())
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        tuning = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
        tuning.loop_unrolling = False  # opts have unrolled loops already
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
        text: str = machine.emit_assembly(module)
        return text


def assembly_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Returns a GPU's program as assembly, for display; empty without a backend, or without LLVM.

    If the backend lacks a feature that the program needs, the text says so.
    """
    if spec.target.arch not in BACKENDS:
        return []
    try:
        assembler = GPUAssembler(spec.target)
    except DeviceUnavailable:
        return []
    try:
        return [(assembler.language, assembler.render(spec.name, spec.uops).lines)]
    except RenderError as error:
        return [(assembler.language, (SourceLine(f"// {error}", ()),))]


__all__ = ["GPUAssembler", "assembly_listings"]
