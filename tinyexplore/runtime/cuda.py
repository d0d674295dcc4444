"""The CUDA device: NVRTC compiles CUDA C++, and NVIDIA's driver runs it, through the package cuda-bindings.

Buffers are managed memory: the processor and the GPU use the same address, and the driver moves pages as they are
accessed. Memory of other owners (a NumPy array) is copied to managed memory for a kernel, and results are copied back.

Kernels are launched asynchronously into one stream. The stream keeps the order, so a kernel may use memory that an
earlier one still uses. The host waits before it reads or writes such memory (`Memory.wait_for_kernels`).
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any
from weakref import ref

from tinyexplore.device import Buffer, DeviceUnavailable
from tinyexplore.device.allocator import Block, HostAllocator, Memory
from tinyexplore.renderer.program import Launch, ProgramSpec
from tinyexplore.runtime.disk_cache import load_cached
from tinyexplore.runtime.errors import compile_error
from tinyexplore.runtime.gpu import is_misaligned, without_vectors
from tinyexplore.runtime.launch_queue import LaunchQueue
from tinyexplore.runtime.native import check_arguments

CHOSEN_ITEMS = 256  # work-items of a group, if the program leaves it to the runtime
MODULE_BYTES = 64 << 10  # approximate memory of a program in the driver, beside its code
SOURCE_NAME = b"kernel.cu"
INSTALL_COMMAND = "pip install 'tinyexplore[cuda]'"
NO_PACKAGE = f"the CUDA device needs NVIDIA's package cuda-bindings: {INSTALL_COMMAND}"
NO_DRIVER = "the CUDA device needs NVIDIA's driver, and none was found: install the driver for your GPU"
NO_COMPILER = f"the CUDA device needs NVRTC, which compiles CUDA C++ and was not found: {INSTALL_COMMAND}"
LOST_STATE_ADVICE = (
    "the contents of GPU memory are lost: restart the process; DEBUG=2 runs one kernel at a time and names the failing "
    "one, DEVICE=PYTHON TARGET=<this GPU> emulates the kernels and checks each access"
)
NO_DEVICE = "the CUDA device needs an NVIDIA GPU, and the driver finds none (nvidia-smi lists them)"


class CUDAError(RuntimeError):
    """Raised if a call of the driver fails. The message has the call and the driver's message."""


class CUDA(LaunchQueue):
    """A GPU: its context, a queue (a stream), and two events that time a launch, which `lock` guards, too.

    number: the number of the GPU.
    is_concurrent: whether the host may use managed memory while a kernel runs; if not, each launch waits.
    """

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        try:
            from cuda.bindings import driver, nvrtc  # noqa: PLC0415 (a package that few have)
        except ImportError as error:
            raise DeviceUnavailable(f"{NO_PACKAGE} ({error})") from error
        self.driver: Any = driver
        self.nvrtc: Any = nvrtc
        try:
            self.do(driver.cuInit, 0)
            count = self.do(driver.cuDeviceGetCount)
        except CUDAError as error:
            raise DeviceUnavailable(f"{NO_DEVICE} ({error})") from error
        except RuntimeError as error:  # the driver's library is missing
            raise DeviceUnavailable(f"{NO_DRIVER} ({first_line(error)})") from error
        if number >= count:
            names = ", ".join(device_name(ordinal) for ordinal in range(count))
            raise DeviceUnavailable(
                f"{device_name(number)}: no such GPU; this machine has {names}" if count else NO_DEVICE
            )
        try:
            self.version = "NVRTC {}.{}".format(*self.do(nvrtc.nvrtcVersion))
        except RuntimeError as error:
            raise DeviceUnavailable(f"{NO_COMPILER} ({first_line(error)})") from error
        self.device = self.do(driver.cuDeviceGet, number)
        self.name = self.do(driver.cuDeviceGetName, 96, self.device).split(b"\0")[0].decode()
        self.architecture = (
            f"sm_{self.query_attribute('COMPUTE_CAPABILITY_MAJOR')}{self.query_attribute('COMPUTE_CAPABILITY_MINOR')}"
        )
        self.options = [b"--gpu-architecture=" + self.architecture.encode(), b"--std=c++17"]
        self.context = self.do(driver.cuDevicePrimaryCtxRetain, self.device)
        self.enter()
        self.stream = self.do(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        self.begin, self.end = (self.do(driver.cuEventCreate, 0) for _ in range(2))
        self.is_concurrent = bool(self.query_attribute("CONCURRENT_MANAGED_ACCESS"))
        self.allocator = ManagedMemory(self)

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of the driver or of NVRTC. Returns its results without the status: None, a value, or a
        tuple.

        Raises MemoryError if there is no memory, else CUDAError.
        """
        status, *results = function(*arguments)
        if status.value == 0:
            return results[0] if len(results) == 1 else tuple(results) or None
        if status.name == "CUDA_ERROR_OUT_OF_MEMORY":
            raise MemoryError(
                f"{function.__name__}: the GPU is out of memory; free tensors (del) or work in smaller pieces"
            )
        raise CUDAError(f"{function.__name__}: {status.name}{self.status_message(status)}")

    def status_message(self, status: Any) -> str:
        """Returns the driver's message for a status, in brackets."""
        if not status.name.startswith("CUDA_"):
            return ""
        text = self.driver.cuGetErrorString(status)[1]
        return f" ({text.decode()})" if text else ""

    def query_attribute(self, attribute: str) -> int:
        """Returns a numeric attribute of the GPU from the driver."""
        name = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{attribute}")
        number: int = self.do(self.driver.cuDeviceGetAttribute, name, self.device)
        return number

    def enter(self) -> None:
        """Makes the GPU the current one of this thread."""
        self.do(self.driver.cuCtxSetCurrent, self.context)

    def launch(self, names: Sequence[str], blocks: Sequence[Block], enqueue: Callable[[], None]) -> None:
        super().launch(names, blocks, partial(self._launch, names, enqueue))
        if not self.is_concurrent:
            self.synchronize()

    def _launch(self, names: Sequence[str], enqueue: Callable[[], None]) -> None:
        self.enter()
        try:
            enqueue()
        except CUDAError as error:
            raise CUDAError(f"the kernel {', '.join(names)}: {error}") from error

    def finish(self, names: Sequence[str], pending: int) -> None:
        """Raises CUDAError, with the names of the kernels that may have failed, if one of them failed."""
        self.enter()
        try:
            self.do(self.driver.cuStreamSynchronize, self.stream)
        except CUDAError as error:
            what_failed = (
                "the kernel" if pending == 1 else f"one of {pending} kernels that were launched together, the last"
            )
            raise CUDAError(f"{what_failed} {', '.join(names)}: {error}; {LOST_STATE_ADVICE}") from error

    @property
    def compiler(self) -> str:
        """The compiler of programs, with its options."""
        return f"{self.version} {b' '.join(self.options).decode()}"

    def compile(self, spec: ProgramSpec) -> CUDAProgram:
        """Returns `spec` ready to run, compiled now or read from disk. Raises CompileError if NVRTC rejects it."""
        return load_cached(spec.key, lambda: self.machine_code(spec), lambda code: CUDAProgram(self, spec, code))

    def machine_code(self, spec: ProgramSpec) -> bytes:
        """Returns the CUBIN of a program."""
        nvrtc = self.nvrtc
        program = self.do(nvrtc.nvrtcCreateProgram, spec.source.encode(), SOURCE_NAME, 0, [], [])
        try:
            self.do(nvrtc.nvrtcCompileProgram, program, len(self.options), self.options)
            code = bytes(self.do(nvrtc.nvrtcGetCUBINSize, program))
            self.do(nvrtc.nvrtcGetCUBIN, program, code)
            return code
        except CUDAError as error:
            log = bytes(self.do(nvrtc.nvrtcGetProgramLogSize, program))
            self.do(nvrtc.nvrtcGetProgramLog, program, log)
            message = log.rstrip(b"\0").decode(errors="replace").strip() or str(error)
            raise compile_error("NVRTC", message, spec.source, r"kernel\.cu\((\d+)\): error") from error
        finally:
            self.do(nvrtc.nvrtcDestroyProgram, program)


class CUDAProgram:
    """A kernel that the driver has loaded."""

    entry_address: int | None = None
    refusal = ""

    def __init__(self, cuda: CUDA, spec: ProgramSpec, code: bytes) -> None:
        self.cuda = cuda
        self.spec = spec
        self.code_bytes = len(code)
        self.nbytes = len(code) + MODULE_BYTES
        self.launch = Launch.of(spec.uops)
        cuda.enter()
        self.module = cuda.do(cuda.driver.cuModuleLoadData, code)
        self.function = cuda.do(cuda.driver.cuModuleGetFunction, self.module, spec.name.encode())

    def __repr__(self) -> str:
        return f"CUDAProgram({self.spec.name!r})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function that launches the program on `buffers`. Its `timed` waits, and returns the GPU's
        seconds."""
        check_arguments(self.spec, buffers, values)
        memories = [buffer.allocate().memory for buffer in buffers]
        # 0: it will be copied to managed memory
        reached = [memory.address if is_managed(memory) else 0 for memory in memories]
        if is_misaligned(self.spec, reached):
            return self.unaligned_variant.bind(buffers, values)
        return BoundKernel(self, memories, values)

    @cached_property
    def unaligned_variant(self) -> CUDAProgram:
        """The program for buffers of any alignment."""
        return self.cuda.compile(without_vectors(self.spec))


class BoundKernel:
    """A kernel with its arguments.

    copied: (memory that the GPU cannot access, its copy that the GPU can access, whether the kernel writes it).
    blocks: the memory that it uses.
    """

    def __init__(self, program: CUDAProgram, memories: Sequence[Memory], values: Sequence[int]) -> None:
        self.program, self.cuda = program, program.cuda
        allocator = self.cuda.allocator
        self.device_memories = [
            memory if is_managed(memory) else allocator.allocate(memory.nbytes) for memory in memories
        ]
        self.blocks = list(dict.fromkeys([memory.root.owner for memory in self.device_memories]))
        pairs = enumerate(zip(memories, self.device_memories))
        self.copied = [(*pair, number in program.spec.writes) for number, pair in pairs if pair[0] is not pair[1]]
        # the driver takes the addresses of the arguments
        arguments = [ctypes.c_uint64(memory.address) for memory in self.device_memories] + [
            ctypes.c_int64(value) for value in values
        ]
        self.given = arguments
        self.arguments = (ctypes.c_void_p * max(1, len(arguments)))(*map(ctypes.addressof, arguments))
        grid, group = [*program.launch.sizes(values), 1, 1][:3], program.launch.group
        if group is None:
            group = (CHOSEN_ITEMS,)
            grid[0] = -(-grid[0] // CHOSEN_ITEMS)
        self.sizes = (*grid, *[*group, 1, 1][:3])

    def __call__(self, start: int, stop: int) -> None:
        """Launches the kernel. Waits only if results are copied back.

        It then waits even after an interrupt: the kernel must not write to memory that has been freed or changed
        meanwhile.
        """
        self.run(self.enqueue)

    def timed(self) -> float:
        """Runs the kernel alone and waits. Returns the seconds between two events."""
        cuda, driver = self.cuda, self.cuda.driver

        def between_events() -> None:
            cuda.do(driver.cuEventRecord, cuda.begin, cuda.stream)
            self.enqueue()
            cuda.do(driver.cuEventRecord, cuda.end, cuda.stream)

        with cuda.lock:
            cuda.synchronize()
            if not self.run(between_events):
                return 0.0
            cuda.synchronize()
            seconds: float = cuda.do(driver.cuEventElapsedTime, cuda.begin, cuda.end) / 1e3
        return seconds

    def run(self, enqueue: Callable[[], None]) -> bool:
        """Launches the kernel by `enqueue`, between the copies. Returns False if there is nothing to do."""
        if 0 in self.sizes:
            return False
        self.copy_to_gpu()
        written_pairs = [pair[:2] for pair in self.copied if pair[2]]
        try:
            self.cuda.launch((self.program.spec.name,), self.blocks, enqueue)
        finally:
            if written_pairs:
                self.cuda.synchronize()
        for memory, gpu_memory in written_pairs:
            _copy(memory, gpu_memory)
        return True

    def copy_to_gpu(self) -> None:
        """Copies memory that the GPU cannot access to memory that it can."""
        for memory, gpu_memory, _ in self.copied:
            _copy(gpu_memory, memory)

    def enqueue(self) -> None:
        """Puts the kernel into the queue, with the current values of its arguments."""
        cuda, driver = self.cuda, self.cuda.driver
        arguments = ctypes.addressof(self.arguments)
        cuda.do(driver.cuLaunchKernel, self.program.function, *self.sizes, 0, cuda.stream, arguments, 0)


def _copy(target: Memory, source: Memory) -> None:
    source.check_backed()
    source.wait_for_kernels()
    target.wait_for_kernels()
    ctypes.memmove(target.address, source.address, source.nbytes)


class _BlockOwner:
    """Owns a block of managed memory, which is freed with this object."""

    __slots__ = ("__weakref__",)


class _BlockFinalizer(ref[_BlockOwner]):
    """Weak reference to the owner of a block, with the block's address."""

    __slots__ = ("pointer",)
    pointer: Any


class ManagedMemory(HostAllocator):
    """Memory that the processor and the GPU use at the same address."""

    def __init__(self, cuda: CUDA) -> None:
        super().__init__()
        self._cuda = cuda
        self._blocks: set[_BlockFinalizer] = set()
        self._unused: deque[_BlockFinalizer] = deque()  # blocks whose owners are gone

    def empty_cache(self) -> int:
        freed = super().empty_cache()
        self._give_back()
        return freed

    def _map(self, size: int) -> Block:
        self._give_back()
        cuda = self._cuda
        cuda.enter()
        global_flag = cuda.driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value
        pointer = cuda.do(cuda.driver.cuMemAllocManaged, size, global_flag)
        owner = _BlockOwner()
        finalizer = _BlockFinalizer(owner, self._unused.append)
        finalizer.pointer = pointer
        self._blocks.add(finalizer)
        return Block(int(pointer), size, owner)

    def _give_back(self) -> None:
        if self._unused:
            self._cuda.synchronize()  # kernels may still use them
        while self._unused:
            finalizer = self._unused.popleft()
            self._blocks.discard(finalizer)
            self._cuda.enter()
            self._cuda.do(self._cuda.driver.cuMemFree, finalizer.pointer)


def is_managed(memory: Memory) -> bool:
    """Whether `memory` is a `ManagedMemory`, or a part of one, which every GPU can access."""
    block = memory.root.owner
    return isinstance(block, Block) and isinstance(block.owner, _BlockOwner)


def device_name(number: int) -> str:
    """Returns the name of GPU `number` in this package."""
    return f"CUDA:{number}" if number else "CUDA"


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@cache
def get_cuda(number: int) -> CUDA:
    return CUDA(number)


__all__ = ["CUDA", "CUDAError", "CUDAProgram", "ManagedMemory"]
