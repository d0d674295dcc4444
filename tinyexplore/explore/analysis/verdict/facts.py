"""The measured and modeled facts about one kernel, as plain data: the input of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tinyexplore.execute.sampling import MAX_WAIT_SHARE
from tinyexplore.explore.tracefile.result_display import DisplayableRow

SPREAD = 0.65  # share of the median: undisturbed samples of a kernel are within 20 %
SHORT_US = 50.0  # in shorter kernels the samples vary with the wake-up time of threads
WAKE_UP_US = 20.0  # microseconds; above this, the limit is that of all threads


@dataclass(frozen=True, slots=True, repr=False)
class KernelFacts(DisplayableRow):
    """The facts about one kernel on one machine, as plain data. Times are in microseconds; 0 means no such time."""

    kernel: int
    """Number of the kernel in the trace."""
    name: str
    """Name of the kernel."""
    time_us: float
    """Median of its samples; 0 without samples."""
    best_us: float
    """Fastest sample."""
    low_us: float
    """First quartile."""
    high_us: float
    """Third quartile."""
    samples: int
    """Number of samples."""
    waited: float | None
    """Seconds that threads waited for a core / seconds of the samples; None if unknown."""
    single_us: float
    """Median on one thread; 0 if not measured."""
    threads: int
    """Number of threads that shared it."""
    all_threads: int
    """Number of threads of the machine."""
    has_thread_axis: bool
    """Whether its opts allow several threads to share it."""
    launch_us: float
    """Time of the smallest kernel."""
    bytes_moved: int
    """Least bytes that it must move. For a table with data-dependent addresses: the bytes that it reads."""
    bytes_written: int
    """Bytes that it must write, a part of `bytes_moved`."""
    level: str
    """Memory level of a working set of `bytes_moved` bytes: "L1", "L2", "L3" or "memory"."""
    memory_us: float
    """Time to move `bytes_moved` bytes once at the measured rate of all threads."""
    own_memory_us: float
    """Time to move `bytes_moved` bytes once at the measured rate of the threads that shared the kernel."""
    operations: int
    """Needed operations of type `arithmetic`, per lane; with dot instructions, as the kernel counts them."""
    arithmetic: str
    """Type of the arithmetic ceiling that applies."""
    compute_us: float
    """Time of `operations` at the measured rate of all threads."""
    own_compute_us: float
    """Time of `operations` at the measured rate of the threads that shared the kernel."""
    redundant: float = 1.0
    """Accumulations executed / needed."""
    not_run: str = ""
    """Why it could not run here."""
    opts: tuple[str, ...] | None = None
    """Opts of the kernel; None if unknown."""
    unused_dots: str = ""
    """Dot instructions of its types that this machine has but the kernel does not use."""
    gather_us: float = 0.0
    """Time of its random loads or stores at the measured rate."""
    gathers: int = 0
    """Number of its random loads or stores."""
    gather_bytes: int = 0
    """Contiguous bytes of each random load or store."""
    gather_of: str = ""
    """Buffer of its random loads or stores."""
    scatters: bool = False
    """Whether its random accesses are stores."""
    pattern_us: float = 0.0
    """Time of its bytes beyond the L2, at the rate of their contiguous pieces."""
    fetch_us: float = 0.0
    """Time of the cache lines that its stores fetch before they write, unless they bypass the caches."""
    stream_us: float = 0.0
    """Time of a stream of as many bytes, measured with the verdict; 0 if it was not measured."""
    refill_us: float = 0.0
    """Time of its bytes beyond the L1, at the rate of the L2."""
    l2_traffic: float = 1.0
    """Bytes beyond the L2 / bytes that must move."""
    line_use: float = 1.0
    """Used share of each cache line."""
    worst: str = ""
    """Operand with the most expensive access pattern."""
    worst_run: int = 0
    """Bytes of a contiguous piece of the operand `worst`."""
    worst_pitch: int = 0
    """Bytes from one piece of the operand `worst` to the next; 0 if they are contiguous."""
    worst_bytes: int = 0
    """Total bytes of the operand `worst`."""
    worst_times: float = 0.0
    """Number of times that the operand `worst` is fetched from beyond the L2."""
    conflict: str = ""
    """Operand whose lines use too few sets of a cache."""
    conflict_pitch: int = 0
    """Bytes between the lines that conflict."""
    crossing_us: float = 0.0
    """Time of its loads, if each crosses a cache line."""
    crossing: str = ""
    """Operands of the loads that cross a cache line."""
    has_code: bool = False
    """Whether its assembly was read, so that the next four fields are valid."""
    instructions: int = 0
    """Number of instructions of the hot loop."""
    vector: int = 0
    """Number of instructions of the hot loop that process several values."""
    stack: int = 0
    """Number of instructions of the hot loop that load or store a vector register on the stack."""
    first_line: int = 0
    """First line of the hot loop in the assembly."""
    has_model: bool = False
    """Whether its instructions were modeled, so that the following fields are valid."""
    cycles: float = 0.0
    """Modeled cycles of one iteration of the hot loop."""
    busiest: float = 0.0
    """Modeled cycles of one iteration if no instruction waited for another."""
    is_carried: bool = True
    """Whether an iteration of the hot loop depends on the result of the previous one."""
    code_share: float = 0.0
    """The modeled time / the measured time."""
    measured_cycles: float = 0.0
    """Measured cycles of one iteration of the hot loop."""
    ports: str = ""
    """The busiest ports; "" if the model may name none."""
    model: str = ""
    """The tool that modeled the hot loop, such as llvm-mca."""
    missing: tuple[str, ...] = ()
    """Facts that could not be measured or modeled, with the reasons."""

    def as_data(self) -> dict[str, Any]:
        """Returns the facts as plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> KernelFacts:
        """Returns the facts that `as_data` encoded, also those of an earlier version."""
        names = {field.name for field in fields(KernelFacts)}
        known_fields = {name: value for name, value in data.items() if name in names}
        opts = known_fields.get("opts")
        lists = {"missing": tuple(known_fields.get("missing", ())), "opts": None if opts is None else tuple(opts)}
        return KernelFacts(**{**known_fields, **lists})

    @property
    def is_disturbed(self) -> bool:
        """Whether other processes used a core during the samples, or the samples disagree."""
        return self.is_spread or (self.waited is not None and self.waited > MAX_WAIT_SHARE)

    @property
    def is_spread(self) -> bool:
        """Whether the fastest sample took less than SPREAD of the median, which means that the machine's speed varied.

        Another virtual machine on the same host may cause this, and no counter here shows it.
        """
        return self.time_us >= SHORT_US and self.best_us < SPREAD * self.time_us

    @property
    def judged_us(self) -> float:
        """The time by which the rules choose the kind: the median, or the fastest of disturbed samples."""
        return self.best_us if self.is_disturbed else self.time_us

    def at_median(self) -> KernelFacts:
        """Returns these facts with the median as the judged time, for figures that are compared with other medians."""
        scale = self.judged_us / self.time_us if self.time_us else 1.0
        return replace(
            self,
            best_us=self.time_us,
            waited=None,
            code_share=self.code_share * scale,
            measured_cycles=self.measured_cycles / scale if scale else 0.0,
        )

    @property
    def least_us(self) -> tuple[float, float]:
        """The least times of its bytes and of its operations, with all threads, or with its own if it is short."""
        if self.judged_us > WAKE_UP_US:
            return self.memory_us, self.compute_us
        return self.own_memory_us, self.own_compute_us

    @property
    def limit_us(self) -> float:
        """The least time on this machine: the longer of bytes and operations, plus the launch."""
        return max(self.least_us) + self.launch_us

    def limit_for(self, kind: str) -> float:
        """Returns the least time in microseconds for a kind of bottleneck: for "random access" that of the accesses."""
        return self.gather_us + self.launch_us if kind == "random access" and self.gather_us else self.limit_us

    @property
    def own_limit_us(self) -> float:
        """The least time on this machine with the threads that the kernel uses."""
        return max(self.own_memory_us, self.own_compute_us) + self.launch_us

    @property
    def share(self) -> float:
        """The least time / the judged time."""
        return self.limit_us / self.judged_us if self.judged_us else 0.0


__all__ = ["KernelFacts"]
