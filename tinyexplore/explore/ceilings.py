"""What this machine does at best, measured with programs of this compiler: the ceilings of a roofline.

After Y. Lo et al., "Roofline Model Toolkit" (2014): rates that a program was seen to reach, not those of a data sheet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tinyexplore.device import Device
from tinyexplore.explore.model import Ceiling, Trace
from tinyexplore.explore.session import explore
from tinyexplore.tensor import Tensor

_SIDE = 512  # of the matrices that are multiplied
_CACHED = 1 << 20  # bytes that a second cache holds
_FAR = 64 << 20  # bytes that none does
_REPEAT = 12


def measure_ceilings(device: str = "") -> tuple[Ceiling, ...]:
    """The best of a dozen runs of a matrix product, and of sums over memory in a cache and past it; measured once in
    a process. Nothing for the interpreter, whose rates say nothing of a machine."""
    return _measured(device or Device.DEFAULT)


@cache
def _measured(device: str) -> tuple[Ceiling, ...]:
    if device.partition(":")[0] == "PYTHON":
        return ()
    left, right = (Tensor.rand(_SIDE, _SIDE, device=device).realize() for _ in range(2))
    flops, _ = _best(lambda: left @ right, device)
    found = [Ceiling(f"product of {_SIDE}×{_SIDE} matrices", "arithmetic", flops)]
    for name, nbytes, holds in (("in the cache", _CACHED, 2 * _CACHED), ("memory", _FAR, 0)):
        values = Tensor.zeros(nbytes // 4, device=device).contiguous().realize()
        _, rate = _best(values.sum, device)
        found.append(Ceiling(name, "memory", rate, holds))
    return tuple(found)


def _best(asked: Callable[[], Tensor], device: str) -> tuple[float, float]:
    """10⁹ operations and bytes a second of the kernel that moves most, in its quickest run."""
    trace = explore(asked, device=device, repeat=_REPEAT, noopt=0, beam=0).trace
    kernel = max(trace.kernels, key=lambda kernel: kernel.bytes_moved)
    quickest = min(next(run for run in trace.runs if run.kernel == kernel.id).times_us)
    return kernel.flops / quickest / 1e3, kernel.bytes_moved / quickest / 1e3


def is_of_this_machine(trace: Trace) -> bool:
    """Whether a trace is from here, as far as its options tell."""
    options = dict(trace.options)
    device = options.get("DEVICE", "")
    return bool(device) and options.get("target") == Device[device].target.describe()


__all__ = ["is_of_this_machine", "measure_ceilings"]
