"""The program of a worker process of a search: it compiles a candidate, checks its results, and times it.

`compile/workers.py` starts it. It reads requests from standard input, one per line, and writes one line for each. On
one machine, across all processes, any number of candidates compile at a time. Only one is timed at a time, and none
compiles meanwhile.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import math
import os
import random
import struct
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tinyexplore.compile.lowering import compile_given, compile_optimized
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.threads import thread_count
from tinyexplore.kernel import Kernel
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.target import core_count
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.serialization import from_plain, to_plain
from tinyexplore.util import Context, config
from tinyexplore.util.private_folder import is_private, user

try:
    import fcntl
    import resource
except ImportError:  # this system lacks them: timings are not exclusive, and interruptions are not counted
    fcntl = None  # type: ignore[assignment]
    resource = None  # type: ignore[assignment]

STOP_RATIO = 3.0  # a measurement ends if its first run is this many times slower than the best candidate
LATE_STOP_RATIO = 1.3  # it also ends if a later time is this many times slower than the best candidate
UNDISTURBED_SAMPLES = 8  # a measurement ends after this number of undisturbed samples
SAMPLE_S = 100e-6  # the least seconds of a sample, because the clock has a limited resolution
SAMPLING_S, DUEL_S = 0.3, 1.5  # seconds that the samples of one candidate, and those of a duel, may take
MIN_SAMPLES, PATIENCE_S = 5, 4.0  # a verdict needs this number of samples, unless they take longer than the seconds
MAX_CACHED_PROGRAMS = 256  # a worker caches at most this number of programs
IDLE_S = 20.0  # a worker frees its memory after these seconds without a request
MAX_COMPARED_ELEMENTS = 1 << 18  # a comparison reads at most this number of elements of a result
TOLERANCE = {dtypes.float16: 2e-2, dtypes.bfloat16: 1e-1, dtypes.float32: 1e-3, dtypes.float64: 1e-6}
MAX_DIFFERING_SHARE = 1e-3  # this share of a result may differ: a comparison can depend on a float's last bit


class CandidateError(Exception):
    """Raised for a candidate that is excluded from the search; the message is the reason."""


@dataclass
class SampledTime:
    """The time of a candidate.

    seconds: seconds of its best run.
    disturbed: whether other programs used this machine's cores during every run.
    note: the origin of the time, or why there is none.
    """

    seconds: float
    disturbed: bool
    note: str


# *** requests (the search calls `request_of`, the worker calls the rest) ***


def request_of(
    do: str, kernel: Kernel, device: str, *further_kernels: Kernel, cache_level: int = 0, **fields: Any
) -> str:
    """Returns a request as text: the command `do` ("compile", "time", "duel" or "sample"), the kernels' graphs, and the
    settings.

    cache_level: CACHELEVEL of the worker; 0 for a search, because few of its candidates occur again.
    """
    settings = {**asdict(config()), "DEBUG": 0, "BEAM": 0, "PROFILE": 0, "CACHELEVEL": cache_level}
    graphs = to_plain([kernel.original, kernel.ast, *(further_kernel.ast for further_kernel in further_kernels)])
    return json.dumps(
        {"do": do, "device": device, "machine": machine_of(device), "settings": settings, "graphs": graphs, **fields}
    )


def machine_of(device: str) -> str:
    """Returns the properties of the machine that must be equal for times to be comparable."""
    interface = Device[device]
    target = interface.target
    lanes, threads = target.vector_bytes, target.threads
    compiler = getattr(interface.renderer, "compiler", "")
    return f"{target.arch} {target.cpu} {target.features}, {lanes} bytes, {threads} threads, {compiler}"


# *** locks shared by all processes that measure on this machine ***


@contextmanager
def compiling_lock() -> Iterator[None]:
    """Holds the lock for compiling: nothing is timed meanwhile."""
    with _lock(lambda: fcntl.LOCK_SH):
        yield


@contextmanager
def timing_lock() -> Iterator[None]:
    """Holds the lock for timing: no search on this machine times or compiles anything else meanwhile."""
    with _lock(lambda: fcntl.LOCK_EX):
        yield


@contextmanager
def _lock(read_mode: Callable[[], int]) -> Iterator[None]:
    handle = _lock_file()
    try:
        if handle is not None:
            fcntl.flock(handle, read_mode())
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock_file() -> int | None:
    """Returns the file that this user's searches on this machine lock; None if it cannot be created."""
    if fcntl is None:
        return None
    try:
        path = os.path.join(tempfile.gettempdir(), f"tinyexplore-{user()}.lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return None
    if is_private(os.fstat(handle)):
        return handle
    os.close(handle)  # any user could create a file with that name and hold its lock forever
    return None


def interruptions() -> int:
    """Returns how often the system has taken a core from this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource is not None else 0


def is_crowded() -> bool:
    """Whether other programs currently want cores that a kernel on all its threads would use."""
    try:
        with open("/proc/loadavg", encoding="utf-8") as file:
            running = int(file.read().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return False
    return running - 1 + thread_count() > core_count()


# *** the worker ***


class SearchWorker:
    """The state of one worker: compiled programs, and the memory and correct results of the current kernel."""

    def __init__(self) -> None:
        self.busy = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Frees all memory and programs, unless the worker is busy."""
        if not self.busy.acquire(blocking=False):
            return
        self.runners: OrderedDict[tuple[UOp, str], Runner] = OrderedDict()  # by ast and TARGET
        self.original: UOp | None = None
        self.buffers: tuple[Buffer, ...] = ()
        self.expected: dict[UOp, list[Any]] = {}
        HOST_ALLOCATOR.empty_cache()
        self.busy.release()

    def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the reply to a request. Raises CandidateError if the search excludes the candidate."""
        with self.busy:
            return self._respond_to(request)

    def _respond_to(self, request: dict[str, Any]) -> dict[str, Any]:
        with Context(**request["settings"]):
            return self.respond_as_set(request)

    def respond_as_set(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns `_respond_to` under the settings of the request."""
        device = request["device"]
        if machine_of(device) != request["machine"]:
            raise CandidateError(
                f"this worker runs on another machine: {machine_of(device)}; the request is for {request['machine']}"
            )
        original, *asts = from_plain(request["graphs"])
        target = Device[device].target
        kernels = [Kernel(ast, target, original, ast) for ast in asts]
        graphs = [from_plain(request["program"])] if "program" in request else []
        with compiling_lock():
            runners = [compile_given(device, kernel, uops) for kernel, uops in zip(kernels, graphs)]
            runners += [self.compiled(device, kernel) for kernel in kernels[len(runners) :]]
        if request["do"] == "compile":
            return {"program": runners[0].spec.key, "compile_s": runners[0].compile_seconds}
        self.prepare(device, original)
        if request["do"] == "duel":
            return {"seconds": self.duel(*runners)}
        if request["do"] == "sample":
            compared = runners[:1] + runners[2:]  # the kernel, and the other kernel of a comparison, if any
            seconds = self.samples(compared, runners[1], request["samples"])
            return {"seconds": seconds[0], "base_seconds": [] if len(seconds) < 2 else seconds[1]}
        return vars(self.time(runners[0], runners[1], request["limit"]))

    def compiled(self, device: str, kernel: Kernel) -> Runner:
        key = kernel.ast, kernel.target.target_setting
        cached = self.runners.pop(key, None)
        runner = self.runners[key] = cached or compile_optimized(device, kernel)
        if len(self.runners) > MAX_CACHED_PROGRAMS:
            self.runners.popitem(last=False)
        return runner

    def prepare(self, device: str, original: UOp) -> None:
        """Allocates separate memory for the buffers of the kernel."""
        if original is not self.original:
            self.original, self.expected, self.buffers = original, {}, ()
            self.buffers = scratch_buffers(device, original)

    def run_of(self, runner: Runner) -> Callable[[], object]:
        """Returns a function that runs the program once. On a device with its own clock it returns the seconds by
        that clock."""
        # Variables at their greatest values, for the most work
        values = [variable.arg[2] for variable in runner.spec.variables]
        bound = runner.program.bind(self.buffers, values)
        timed: Callable[[], float] | None = getattr(bound, "timed", None)
        return timed or (lambda: runner.run(bound, values))

    def results(self, runner: Runner) -> list[Any]:
        """Returns the results of one run. Its output memory starts with every bit set."""
        slots = sorted(runner.spec.writes)
        for slot in slots:
            self.buffers[slot].copyin(b"\xff" * self.buffers[slot].nbytes)
        self.run_of(runner)()
        return [sample_elements(self.buffers[slot]) for slot in slots]

    def check(self, runner: Runner, reference: Runner) -> None:
        """Raises if the results of `runner` differ from `reference`."""
        expected = self.expected.get(reference.kernel.ast)
        if expected is None:
            with timing_lock():
                expected = self.expected[reference.kernel.ast] = self.results(reference)
        if runner is reference:
            return
        with timing_lock():
            results = self.results(runner)
        for slot, (result, expected_result) in zip(sorted(runner.spec.writes), zip(results, expected)):
            if differ(result, expected_result, self.buffers[slot].dtype):
                raise CandidateError(f"its results are wrong (buffer {slot})")

    def time(self, runner: Runner, reference: Runner, limit: float | None) -> SampledTime:
        """Returns the best run. `limit`: the seconds of the best candidate so far, if any."""
        self.check(runner, reference)
        run, best = self.run_of(runner), math.inf if limit is None else limit
        with timing_lock():
            first_seconds = sample_undisturbed(run, 1, best * STOP_RATIO)
            if first_seconds > best * STOP_RATIO:
                return SampledTime(first_seconds, False, "given up after one run")
            calls = max(1, round(SAMPLE_S / max(first_seconds, 1e-7)))
            fastest, quiet, samples, began = first_seconds, 0, 0, time.perf_counter()
            while quiet < UNDISTURBED_SAMPLES and (samples < 2 or time.perf_counter() - began < SAMPLING_S):
                seconds, was_quiet = sample(run, calls)
                fastest = min(fastest, seconds)
                quiet += was_quiet
                samples += 1
                if (quiet >= 3 or samples >= 9) and fastest > best * LATE_STOP_RATIO:
                    return SampledTime(fastest, False, f"given up after {samples} samples")
        if quiet < UNDISTURBED_SAMPLES // 4:
            return SampledTime(fastest, True, f"something else ran during {samples - quiet} of {samples} samples")
        return SampledTime(fastest, False, "")

    def samples(self, runners: Sequence[Runner], reference: Runner, most_samples: int) -> list[list[float]]:
        """Checks the results of the runners. Returns seconds of one run of each runner, measured alternately
        (`sample_alternately`)."""
        for runner in runners:
            self.check(runner, reference)
        with timing_lock():
            return sample_alternately([self.run_of(runner) for runner in runners], most_samples)

    def duel(self, *runners: Runner) -> list[float]:
        """Returns the best seconds of each runner, measured alternately."""
        runs = [self.run_of(runner) for runner in runners]
        with timing_lock():
            first_seconds = [min(sample(run, 1)[0], sample(run, 1)[0]) for run in runs]
            calls = max(1, round(SAMPLE_S / max(min(first_seconds), 1e-7)))
            fastest, began, turns = first_seconds, time.perf_counter(), 0
            while turns < 4 or (turns < 4 * UNDISTURBED_SAMPLES and time.perf_counter() - began < DUEL_S):
                fastest = [min(old, sample(run, calls)[0]) for old, run in zip(fastest, runs)]
                turns += 1
        return fastest


def sample(run: Callable[[], object], calls: int) -> tuple[float, bool]:
    """Returns the seconds of one run, measured over `calls` runs, and whether no other program disturbed this
    process."""
    crowded, interruptions_before = is_crowded(), interruptions()
    start = time.perf_counter()
    times = [run() for _ in range(calls)]
    seconds = (time.perf_counter() - start) / calls
    by_device = [elapsed for elapsed in times if isinstance(elapsed, float) and elapsed]
    if len(by_device) == calls:
        seconds = sum(by_device) / calls  # without the host's overhead per kernel
    return seconds, not crowded and interruptions() == interruptions_before


def sample_alternately(
    runs: Sequence[Callable[[], object]],
    most_samples: int,
    seconds_of: Callable[[Callable[[], object], int], tuple[float, bool]] = sample,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Returns seconds of one run of each of `runs`: up to `most_samples` samples each, in rounds of one sample of each.

    Every second round runs in reverse order, so that a change of the machine's speed affects all equally. The first run
    of each warms up and is discarded. `MIN_SAMPLES` rounds are taken if they take at most `PATIENCE_S`, otherwise at
    least one.
    """
    first_seconds = [seconds_of(run, 1)[0] for run in runs]
    calls = [max(1, round(SAMPLE_S / max(seconds, 1e-7))) for seconds in first_seconds]
    times: list[list[float]] = [[] for _ in runs]
    began = clock()
    for turn in range(most_samples):
        limit_s = SAMPLING_S * len(runs) if turn >= MIN_SAMPLES else PATIENCE_S
        if turn and clock() - began + sum(first_seconds) > limit_s:
            break
        numbers = range(len(runs))
        for number in reversed(numbers) if turn % 2 else numbers:
            times[number].append(seconds_of(runs[number], calls[number])[0])
    return times


def sample_undisturbed(run: Callable[[], object], calls: int, enough_s: float) -> float:
    """Returns a sample. Repeats a disturbed sample that took longer than `enough_s` a few times."""
    fastest, was_quiet = sample(run, calls)
    for _ in range(3):
        if was_quiet or fastest <= enough_s:
            break
        seconds, was_quiet = sample(run, calls)
        fastest = min(fastest, seconds)
    return fastest


# *** memory and results ***


def scratch_buffers(device: str, ast: UOp) -> tuple[Buffer, ...]:
    """Returns separate buffers for a kernel, filled with numbers of ordinary magnitude, always the same ones."""
    pointers = sorted((node for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL), key=lambda node: node.arg)
    buffers = []
    for pointer in pointers:
        assert isinstance(pointer.dtype, PtrDType)
        base = pointer.dtype.base
        buffer = Buffer(device, pointer.dtype.size, base).allocate()
        pattern = numbers(base, pointer.arg)
        repeats = -(-buffer.nbytes // len(pattern))
        buffers.append(buffer.copyin((pattern * repeats)[: buffer.nbytes]))
    return tuple(buffers)


def numbers(dtype: DType, seed: int) -> bytes:
    """Returns a block of numbers: floats from 0.5 to 1.5, ints from 0 to 96, or bools."""
    source = random.Random(seed)
    count = 4099  # a prime, so that rows differ
    if dtype is dtypes.bool:
        return bytes(source.randrange(2) for _ in range(count))
    if dtype is dtypes.bfloat16:
        words = (struct.unpack("<I", struct.pack("<f", source.uniform(0.5, 1.5)))[0] >> 16 for _ in range(count))
        return struct.pack(f"={count}H", *words)
    if dtype in dtypes.fp8s:
        return bytes(source.randrange(0x30, 0x40) for _ in range(count))
    is_int = dtypes.is_int(dtype)
    return struct.pack(
        f"={count}{dtype.fmt}", *(source.randrange(97) if is_int else source.uniform(0.5, 1.5) for _ in range(count))
    )


def sample_elements(buffer: Buffer) -> Any:
    """Returns elements of a buffer, evenly spaced over all of it, as a NumPy array of numbers to compare.

    Their distance is coprime to the size, so that elements of every column of every matrix and of every lane of a
    vector are examined.
    """
    import numpy

    if buffer.dtype is dtypes.bfloat16:
        float_bits = numpy.frombuffer(buffer.memoryview(), "uint16").astype("uint32") << 16
        elements = float_bits.view("float32")
    elif buffer.dtype in dtypes.fp8s:
        elements = numpy.frombuffer(buffer.memoryview(), "uint8").astype("int16")  # the distance of neighbors may be 1
    else:
        elements = numpy.frombuffer(buffer.memoryview(), buffer.dtype.name)
    distance = next(
        step
        for step in itertools.count(max(1, elements.size // MAX_COMPARED_ELEMENTS))
        if math.gcd(step, elements.size) == 1
    )
    return elements[::distance].copy()


def differ(actual: Any, expected: Any, dtype: DType) -> bool:
    """Whether `actual` differs from `expected` by more than rounding explains."""
    import numpy

    if actual.size == 0:
        return False
    with numpy.errstate(all="ignore"):
        if dtype in TOLERANCE:
            finite = expected[numpy.isfinite(expected)].astype("float64")
            scale = float(numpy.abs(finite).max()) if finite.size else 1.0
            close = numpy.isclose(actual, expected, TOLERANCE[dtype], TOLERANCE[dtype] * scale * 1e-2, equal_nan=True)
        else:
            close = abs(actual - expected) <= 1 if dtype in dtypes.fp8s else actual == expected
    return bool((~close).sum() > MAX_DIFFERING_SHARE * actual.size)


# *** the process ***


def reply_to(worker: SearchWorker, line: str) -> dict[str, Any]:
    """Returns the reply to one request. An error becomes a reply, too."""
    try:
        return worker.respond(json.loads(line))
    except CandidateError as error:
        return {"lost": str(error)}
    except MemoryError:
        worker.forget()
        return {"lost": "it ran out of memory"}
    except Exception as error:
        return {"lost": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answers requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with replies
    mark_expendable()
    worker = SearchWorker()
    idle_timer = threading.Timer(0, worker.forget)
    for line in sys.stdin:
        idle_timer.cancel()
        seconds, _, request = line.partition(" ")
        with open(os.devnull, "w", encoding="utf-8") as null_device:
            # this also interrupts machine code
            faulthandler.dump_traceback_later(float(seconds), exit=True, file=null_device)
            reply = reply_to(worker, request)
            faulthandler.cancel_dump_traceback_later()
        idle_timer = threading.Timer(IDLE_S, worker.forget)
        idle_timer.daemon = True
        idle_timer.start()
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def mark_expendable() -> None:
    """Marks this process as the first to end if memory runs out, instead of the process that it works for."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
            file.write("1000")
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (physical, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (OSError, ValueError, AttributeError):
        return


if __name__ == "__main__":
    main()
