"""Rebuild the kernels of a trace from its nodes, which are plain data."""

from __future__ import annotations

from functools import partial

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuildError, RebuiltUOps
from tinyexplore.explore.analysis.opts import to_opts
from tinyexplore.explore.exports.engine_pages.page_data import PageData
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.tracefile.model import KernelInfo, Program, Stage
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.kernel import Kernel, apply_opt
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.renderer.program import spec_of
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine, recording
from tinyexplore.uop import UOp


class RebuiltKernels:
    """The rebuilt kernels of one trace.

    why_not: the reason why a kernel could not be rebuilt, by kernel number.
    """

    def __init__(self, trace: Trace, carried: PageData) -> None:
        self.trace = trace
        self.carried = carried
        self.rebuilt = RebuiltUOps(trace)
        self.why_not: dict[int, str] = {}

    def kernels(self) -> dict[int, Kernel]:
        """Returns the kernels with the data for a compilation: the scheduler's AST, and the opts, not yet applied."""
        kernels = {}
        for info in self.trace.kernels:
            try:
                kernels[info.id] = self._rebuild_kernel(info)
            except (RebuildError, DeviceUnavailable, ValueError, LookupError) as error:
                self.why_not[info.id] = str(error)
        return kernels

    def captured(self) -> dict[int, CapturedKernel]:
        """Returns the kernels with their linear programs, and with the inputs that the page carries."""
        captured = {}
        for info in self.trace.kernels:
            if info.id not in self.why_not:
                try:
                    captured[info.id] = self._rebuild_captured(info)
                except (RebuildError, DeviceUnavailable, ValueError, LookupError) as error:
                    self.why_not[info.id] = str(error)
        return captured

    def _rebuild_kernel(self, info: KernelInfo) -> Kernel:
        ast = self.rebuilt.uop(self._find_stage(info, "").before[0])
        return Kernel(ast, self._find_target(info), ast, ast, to_opts(", ".join(info.opts)))

    def _rebuild_captured(self, info: KernelInfo) -> CapturedKernel:
        kernel = self._rebuild_kernel(info)
        uops = tuple(self.rebuilt.uop(node) for node in self._find_stage(info, "render").after)
        program = next((candidate for candidate in self._list_programs(info) if candidate.language != "uops"), None)
        language = "" if program is None else program.language
        spec = spec_of(info.name, kernel.target, uops, language, self._rebuild_lines(program), "")
        values = self.carried.values.get(info.id, ())
        return CapturedKernel(info.id, spec, partial(_apply_opts, kernel), values, self.carried.contents.get(info.id))

    def _rebuild_lines(self, program: Program | None) -> list[SourceLine]:
        """Returns a listing with those UOps that can be rebuilt."""
        if program is None:
            return []
        return [SourceLine(line.text, self._rebuild_uops(line.nodes)) for line in program.lines]

    def _rebuild_uops(self, nodes: tuple[int, ...]) -> tuple[UOp, ...]:
        return tuple(self.rebuilt.uop(node) for node in nodes)

    def _find_stage(self, info: KernelInfo, name: str) -> Stage:
        """Returns the last stage with this name; for "" the first stage that began with one UOp."""
        number = info.id if info.same_as is None else info.same_as
        kernel_stages = [stage for stage in self.trace.stages if stage.kernel == number]
        if name:
            stages = [stage for stage in kernel_stages if stage.name == name and stage.after][-1:]
        else:
            stages = [
                stage
                for stage in kernel_stages
                if len(stage.before) == 1 and self.trace.nodes[stage.before[0]].kind == "uop"
            ][:1]
        if not stages:
            raise LookupError(
                f"kernel {info.id} ({info.name}) was not compiled in this capture and cannot be compiled again"
            )
        return stages[0]

    def _list_programs(self, info: KernelInfo) -> list[Program]:
        number = info.id if info.same_as is None else info.same_as
        return [program for program in self.trace.programs if program.kernel == number]

    def _find_target(self, info: KernelInfo) -> Target:
        return Device[info.device.partition(":")[0]].target


def _apply_opts(kernel: Kernel) -> Kernel:
    """Returns `kernel` with its opts applied."""
    with recording(None):
        result = with_merged_axes(with_split_axes(Kernel.of(kernel.original, kernel.target)))
    for opt in kernel.applied:
        result = apply_opt(result, opt)
    return result


__all__ = ["RebuiltKernels"]
