"""The GPU device: OpenCL C through pyopencl, on any installed driver (PoCL runs it on the CPU).

A device of OpenCL's type CPU gets a CPU's kernels: each work-item is a thread, alone in its group. If TARGET names a
GPU (`TARGET=opencl`), and on every other device, it gets a GPU's work-items and groups.
If the device and the host use the same addresses (fine-grained shared virtual memory: PoCL, most integrated GPUs),
buffers are such memory. Kernels are then launched asynchronously into one queue, and the host waits before it reads or
writes (`Memory.wait_for_kernels`). Other memory (a NumPy array) belongs to the host. A device that shares it computes
in place. For other devices it is copied, and results are copied back; each kernel on it waits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from tinyexplore.device import Buffer, DeviceInterface, DeviceUnavailable
from tinyexplore.device.allocator import ALIGNMENT, HUGE_PAGE, MIN_MAPPED_BYTES, Block, HostAllocator, Memory
from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.gpu import MAX_LANES, GPURenderer, VectorRenderer, scratch_in_memory
from tinyexplore.renderer.program import Launch, ProgramSpec, thread_axis
from tinyexplore.runtime.errors import compile_error
from tinyexplore.runtime.gpu import gpu_target, is_misaligned, no_listings, without_vectors
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.launch_queue import LaunchQueue
from tinyexplore.runtime.native import check_arguments, cpu_target
from tinyexplore.runtime.pool import thread_count
from tinyexplore.target import GPUS, Target, TargetChoice, current_choice, machine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.symbolic import value_of

SHARES_PER_THREAD = 4  # several work-items per core, so that other threads can take the work of a delayed thread
PROGRAM_BYTES = 64 << 10  # approximate memory of a program in the driver
NO_PACKAGE = "the GPU device needs pyopencl: pip install 'tinyexplore[opencl]'"
NO_DRIVER = (
    "the GPU device needs an OpenCL driver, and none was found: install that of your GPU, or PoCL, which runs OpenCL "
    "on the CPU (Debian: apt-get install pocl-opencl-icd ocl-icd-libopencl1)"
)


class OpenCL(LaunchQueue):
    """An OpenCL device and its queue.

    cl: the module pyopencl.
    clock: a queue for kernels that run alone, to be timed.
    shares_memory: whether it computes in the host's memory.
    """

    def __init__(self) -> None:
        super().__init__()
        try:
            import pyopencl as cl  # noqa: PLC0415 (a package that few have)
        except ImportError as error:
            raise DeviceUnavailable(f"{NO_PACKAGE} ({error})") from error
        self.cl: Any = cl
        try:
            devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        except cl.Error as error:
            raise DeviceUnavailable(f"{NO_DRIVER} ({error})") from error
        if not devices:
            raise DeviceUnavailable(NO_DRIVER)
        self.device = min(devices, key=lambda device: not device.type & cl.device_type.GPU)
        self.context = cl.Context([self.device])
        self.queue = cl.CommandQueue(self.context)
        self.clock = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.shares_memory = bool(self.device.host_unified_memory)
        self.allocator = SharedMemory(self) if self._has_one_address() else HOST_ALLOCATOR
        rounds = self.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        self.options = ["-cl-std=CL1.2", *(["-cl-fp32-correctly-rounded-divide-sqrt"] if rounds else [])]

    def _has_one_address(self) -> bool:
        """Whether host and device use the same addresses.

        False for a device with its own memory, which may offer that over a bus: copying buffers is faster there.
        """
        try:
            return self.shares_memory and bool(
                self.device.svm_capabilities & self.cl.device_svm_capabilities.FINE_GRAIN_BUFFER
            )
        except self.cl.Error:  # OpenCL 1.2 lacks this property
            return False

    def finish(self, names: Sequence[str], pending: int) -> None:
        self.queue.finish()

    def is_shared(self, memory: Memory) -> bool:
        """Whether `memory` is a `SharedMemory`, or a part of one."""
        block = memory.root.owner
        return isinstance(block, Block) and isinstance(block.owner, self.cl.SVMAllocation)

    @property
    def version(self) -> str:
        """The compiler of programs, with its options."""
        return f"{self.device.platform.version} {self.device.driver_version} {' '.join(self.options)}"

    def compile(self, spec: ProgramSpec) -> OpenCLProgram:
        """Returns `spec` ready to run. Raises CompileError if the driver rejects it."""
        try:
            built = self.cl.Program(self.context, spec.source).build(self.options)
        except self.cl.RuntimeError as error:
            raise compile_error("the OpenCL driver", str(error), spec.source, r":(\d+):\d+: error") from error
        return OpenCLProgram(self, spec, built)


class OpenCLProgram:
    """A program of the driver."""

    entry_address: int | None = None
    nbytes = PROGRAM_BYTES
    code_bytes = 0
    refusal = ""

    def __init__(self, opencl: OpenCL, spec: ProgramSpec, built: Any) -> None:
        self.opencl = opencl
        self.spec = spec
        self.built = built
        self.launch = Launch.of(spec.uops)
        self.threaded: UOp | None = thread_axis(spec.uops)
        is_cpu = not spec.target.has_local
        self.scratch_bytes = [nbytes for _, nbytes in scratch_in_memory(spec.uops)] if is_cpu else []

    def __repr__(self) -> str:
        return f"OpenCLProgram({self.spec.name!r})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function that launches the program on `buffers`. Its `timed` waits, and returns the seconds of
        the kernel."""
        check_arguments(self.spec, buffers, values)
        cl, opencl = self.opencl.cl, self.opencl
        memories = [buffer.allocate().memory for buffer in buffers]
        in_place = opencl.shares_memory or all(map(opencl.is_shared, memories))
        if in_place and is_misaligned(self.spec, [memory.address for memory in memories]):
            return self.unaligned_variant.bind(buffers, values)
        flags = cl.mem_flags
        kernel = cl.Kernel(self.built, self.spec.name)
        hosts: list[_HostBuffers] = []
        for slot, memory in enumerate(memories):
            is_written = slot in self.spec.writes
            access = flags.READ_WRITE if is_written else flags.READ_ONLY
            if memory.nbytes == 0:
                kernel.set_arg(slot, None)
            elif opencl.is_shared(memory):
                kernel.set_arg(slot, cl.SVM((ctypes.c_char * memory.nbytes).from_address(memory.address)))
            else:
                if opencl.shares_memory:
                    device_buffer = cl.Buffer(opencl.context, access | flags.USE_HOST_PTR, hostbuf=memory.view())
                else:
                    device_buffer = cl.Buffer(opencl.context, access, memory.nbytes)
                kernel.set_arg(slot, device_buffer)
                hosts.append(_HostBuffers(memory, device_buffer, is_written))
        for slot, value in enumerate(values, len(memories)):
            kernel.set_arg(slot, value.to_bytes(8, "little", signed=True))
        grid, group = self.launch.sizes(values), self.launch.group
        if self.threaded is not None:
            grid = (self.shares(value_of(self.threaded.src[0], dict(zip(self.spec.variables, values)))),)
        scratch = [cl.Buffer(opencl.context, flags.READ_WRITE, nbytes * grid[0]) for nbytes in self.scratch_bytes]
        for slot, device_buffer in enumerate(scratch, len(memories) + len(values)):
            kernel.set_arg(slot, device_buffer)
        return _BoundOpenCL(self, kernel, grid, group, memories, hosts, scratch)

    @cached_property
    def unaligned_variant(self) -> OpenCLProgram:
        """The program for buffers of any alignment."""
        return self.opencl.compile(without_vectors(self.spec))

    def shares(self, extent: int) -> int:
        """Returns the number of work-items that share a THREAD axis. The driver decides how many threads run them."""
        units, threads = int(self.opencl.device.max_compute_units), thread_count()
        return max(1, min(extent, threads if threads < units else units * SHARES_PER_THREAD))


@dataclass(frozen=True)
class _HostBuffers:
    """Host memory that the device accesses through a buffer of its own.

    memory: the host memory.
    device_memory: the device's buffer.
    is_written: whether the kernel writes it.
    """

    memory: Memory
    device_memory: Any
    is_written: bool


class _BoundOpenCL:
    """A kernel with its arguments: `memories`, and `hosts` for memory that is not shared."""

    def __init__(
        self,
        program: OpenCLProgram,
        kernel: Any,
        grid: Sequence[int],
        group: Sequence[int] | None,
        memories: Sequence[Memory],
        hosts: Sequence[_HostBuffers],
        scratch: Sequence[Any],
    ) -> None:
        self.opencl, self.kernel, self.hosts = program.opencl, kernel, hosts
        self.kept = (memories, scratch)  # a kernel does not keep its arguments alive
        self.names = (program.spec.name,)
        shared = [memory for memory in memories if program.opencl.is_shared(memory)]
        self.blocks = list(dict.fromkeys([memory.root.owner for memory in shared]))
        dimensions = max(len(grid), len(group or ()))
        self.group = None if group is None else (*group, *[1] * (dimensions - len(group)))
        full_grid = (*grid, *[1] * (dimensions - len(grid)))
        self.items = tuple(size * (1 if self.group is None else self.group[n]) for n, size in enumerate(full_grid))

    def __call__(self, start: int, stop: int) -> None:
        """Launches the kernel. Waits only if some memory belongs to the host alone.

        It then waits even after an interrupt: the kernel must not write to memory that has been freed or changed
        meanwhile.
        """
        try:
            self.run(self.opencl.queue)
        finally:
            if self.hosts:
                self.opencl.synchronize()

    def timed(self) -> float:
        """Runs the kernel alone and waits. Returns its seconds by the device's timestamps."""
        opencl = self.opencl
        with opencl.lock:
            opencl.synchronize()
            try:
                event = self.run(opencl.clock)
            finally:
                opencl.clock.finish()
        return 0.0 if event is None else (event.profile.end - event.profile.start) / 1e9

    def run(self, queue: Any) -> Any:
        """Puts the kernel into `queue`. Returns its event, or None if there is nothing to do."""
        if 0 in self.items:
            return None
        for host in self.hosts:
            host.memory.wait_for_kernels()
        events: list[Any] = []
        self.opencl.launch(self.names, self.blocks, lambda: events.append(self._enqueue(queue)))
        return events[0]

    def _enqueue(self, queue: Any) -> Any:
        cl, shares = self.opencl.cl, self.opencl.shares_memory
        if not shares:
            for host in self.hosts:
                cl.enqueue_copy(queue, host.device_memory, host.memory.view(), is_blocking=False)
        event = cl.enqueue_nd_range_kernel(queue, self.kernel, self.items, self.group)
        for host in self.hosts:
            if host.is_written and shares:
                mapping = (cl.map_flags.READ, 0, host.memory.nbytes, "uint8")
                mapped, _ = cl.enqueue_map_buffer(queue, host.device_memory, *mapping, is_blocking=False)
                mapped.base.release(queue)
            elif host.is_written:
                cl.enqueue_copy(queue, host.memory.view(), host.device_memory, is_blocking=False)
        queue.flush()  # starts the kernel now, not at the first wait
        return event


class SharedMemory(HostAllocator):
    """Memory that the host and the device use at the same address."""

    def __init__(self, opencl: OpenCL) -> None:
        super().__init__()
        self._opencl = opencl

    def _map(self, size: int) -> Block:
        cl, is_large = self._opencl.cl, size >= MIN_MAPPED_BYTES
        flags = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        span = size + 2 * HUGE_PAGE if is_large else size
        try:  # with its queue, the memory is freed after all kernels launched before have ended
            allocation = cl.SVMAllocation(self._opencl.context, span, ALIGNMENT, flags, queue=self._opencl.queue)
        except cl.Error as error:
            raise MemoryError(f"{self._opencl.device.name}: {error}") from error
        return Block(self._block_start(allocation.svm_ptr) if is_large else allocation.svm_ptr, size, allocation)


@cache
def _open_opencl() -> OpenCL:
    return OpenCL()


def open_gpu() -> DeviceInterface:
    """Opens the GPU device. Raises DeviceUnavailable, with a remedy, if a package or a driver is missing."""
    choice = current_choice()
    if choice.gpu is not None and choice.gpu.language != "opencl":
        raise DeviceUnavailable(
            f"TARGET={choice.text!r}: the GPU device runs OpenCL, not {choice.gpu.language}; DEVICE=LLVM shows the "
            "text, DEVICE=PYTHON emulates it"
        )
    opencl = _open_opencl()
    is_cpu = bool(opencl.device.type & opencl.cl.device_type.CPU)
    target = _make_cpu_target(opencl, choice) if is_cpu and choice.gpu is None else _make_gpu_target(opencl, choice)
    renderer = (GPURenderer if target.has_local else VectorRenderer)(target, opencl.version)
    return DeviceInterface(
        "GPU", target, opencl.allocator, renderer, opencl.compile, no_listings, wait=opencl.synchronize
    )


def _missing_dtypes(device: Any) -> tuple[DType, ...]:
    return () if device.double_fp_config else (dtypes.float64,)


def _make_gpu_target(opencl: OpenCL, choice: TargetChoice) -> Target:
    """Returns the Target of the device as a GPU, even if it is a CPU."""
    device = opencl.device
    gpu = replace(
        GPUS["opencl"],
        shared_bytes=int(device.local_mem_size),
        unsupported_dtypes=_missing_dtypes(device),
        group_items=min(int(device.max_work_group_size), *map(int, device.max_work_item_sizes[:2]), 1024),
    )
    is_near = device.local_mem_type == opencl.cl.device_local_mem_type.LOCAL
    return replace(gpu_target("GPU", gpu, device.name.strip(), choice.text), shared_is_near=is_near)


def _make_cpu_target(opencl: OpenCL, choice: TargetChoice) -> Target:
    """Returns the Target of the device as a CPU, with the vectors that OpenCL reports, unless TARGET names another
    CPU."""
    device = opencl.device
    if choice.arch != machine():
        raise DeviceUnavailable(
            f"TARGET={choice.text!r}: the GPU device is a CPU here, {machine()} and not {choice.arch}; the LLVM device "
            "generates code for that"
        )
    features = ",".join(f"+{feature}" for feature in sorted(choice.features))
    native_ops = OpGroups.TRANSCENDENTAL | {Ops.SQRT, Ops.FLOOR}
    target = cpu_target("GPU", device.name.strip(), features, native_ops, (), choice)
    if choice.is_native and (width := 4 * int(device.native_vector_width_float)) > 4:
        registers = 32 if width > 32 else target.vector_registers
        target = replace(target, vector_bytes=width, vector_registers=registers)
    return replace(target, unsupported_dtypes=_missing_dtypes(device), most_lanes=MAX_LANES)


__all__ = ["OpenCL", "OpenCLProgram", "open_gpu"]
