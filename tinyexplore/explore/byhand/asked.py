"""What an Explorer can be asked of its kernels by hand: to be stepped, and what their memory accesses do to caches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Device
from tinyexplore.explore.kept import Kept

if TYPE_CHECKING:
    from tinyexplore.explore.byhand.caches import CacheModel
    from tinyexplore.explore.byhand.debugger import Debugger
    from tinyexplore.explore.byhand.lru import Cache
    from tinyexplore.explore.byhand.streams import AddressStream
    from tinyexplore.explore.byhand.throughput import Throughput
    from tinyexplore.explore.model import KernelInfo, Trace
    from tinyexplore.kernel import Opt


class NotKeptError(RuntimeError):
    """A kernel was asked for that cannot be run again: its Explorer was loaded from a file, or closed."""


class ByHand:
    """The part of `Explorer` that runs kernels again. `_kept`: by their numbers in the trace."""

    _kept: dict[int, Kept]

    @property
    def trace(self) -> Trace:
        """What was captured."""
        raise NotImplementedError

    def _know_kernels(self) -> None:
        """Sees to it that `_kept` has what the capture told."""
        raise NotImplementedError

    def kept(self, kernel: int | KernelInfo = 0) -> Kept:
        """What the capture keeps of a kernel beside the trace: its program, and with `keep_inputs` what it read."""
        self._know_kernels()
        number = kernel if isinstance(kernel, int) else kernel.id
        found = self._kept.get(number)
        if found is not None:
            return found
        if not self._kept:
            raise NotKeptError("no kernel of this Explorer can be run again: it was loaded or closed, or none ran")
        raise ValueError(f"kernel {number}: those of this capture that can run are {', '.join(map(str, self._kept))}")

    def kept_of_a_core(self, kernel: int | KernelInfo = 0) -> Kept:
        """The same, of a kernel that one core goes through from its first line to its last."""
        kept = self.kept(kernel)
        if kept.spec.target.has_local:
            raise NotKeptError(
                f"kernel {kept.number} ({kept.spec.name}) is a GPU's ({kept.spec.target.cpu}): many work-items go "
                "through it together, and this looks at one core; capture it for a CPU, or run it on DEVICE=PYTHON, "
                "which watches what the work-items do"
            )
        return kept

    def debug(
        self, kernel: int | KernelInfo = 0, inputs: Sequence[Any] | str | None = None, **options: Any
    ) -> Debugger:
        """A kernel that can be stepped: see `explore.Debugger`. `inputs`: what each of its buffers holds before the
        run (anything with the buffer protocol, None for zeros), or "made up"; by default what `keep_inputs` kept."""
        from tinyexplore.explore.byhand.debugging import debugger_of

        return debugger_of(self.kept_of_a_core(kernel), inputs, **options)

    def memory_stream(self, kernel: int | KernelInfo = 0, unit: int | None = None) -> AddressStream:
        """Which pieces of `unit` bytes each load and store of a kernel touches, in order: by default elements."""
        from tinyexplore.explore.byhand.streams import AddressStream

        kept = self.kept_of_a_core(kernel)
        known = dict(zip(kept.spec.variables, kept.values))
        return AddressStream(kept.uops, known, unit=unit, contents=kept.contents)

    def caches(
        self,
        kernel: int | KernelInfo = 0,
        opts: Iterable[Opt | str] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> CacheModel:
        """What a kernel's accesses do to its target's caches, or to `caches`. `opts`: as if it had these, () none."""
        from tinyexplore.explore.byhand.microscope import model_of

        kept = self.kept_of_a_core(kernel)
        device = Device[self.trace.kernels[kept.number].device]
        return model_of(kept, opts, caches, device.renderer.render if kept.spec.target == device.target else None)

    def throughput(self, kernel: int | KernelInfo = 0) -> Throughput:
        """What bounds the busiest loop of a kernel on its CPU, as `llvm-mca` models it: ports, the front end, or
        results that are waited for; per instruction its ports and cycles. ThroughputError where it is not installed."""
        from tinyexplore.explore.byhand.throughput import ThroughputError, throughput

        kept = self.kept(kernel)
        found = [one for one in self.trace.programs if one.kernel == kept.number and one.language == "asm"]
        if not found:
            raise ThroughputError(f"kernel {kept.number} ({kept.spec.name}) has no assembly: it is no machine code")
        times = [run.median_us for run in self.trace.runs if run.kernel == kept.number]
        return throughput([line.text for line in found[0].lines], kept.spec.target, kept.uops, min(times, default=None))


__all__ = ["ByHand", "NotKeptError"]
