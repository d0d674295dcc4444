"""The WEBGPU device: WGSL through wgpu, on any driver of Vulkan, Metal or Direct3D 12 (Mesa's lavapipe runs on the
CPU).

Buffers are host memory. For each kernel, the content of its buffers is copied to the device, and results are copied
back. A bool takes a word on the device, because WGSL has no memory of bools. Calls run one at a time.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from tinyexplore.device import Buffer, DeviceInterface, DeviceUnavailable, Memory
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.renderer.gpu import GPURenderer
from tinyexplore.renderer.gpu.wgsl import group_counts
from tinyexplore.renderer.program import Launch, ProgramSpec, global_buffers, variable_arguments
from tinyexplore.runtime.errors import CompileError, compile_error
from tinyexplore.runtime.gpu import gpu_target, no_listings
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.native import check_arguments
from tinyexplore.target import GPUS, current_choice
from tinyexplore.util.config import environment_default
from tinyexplore.util.locks import new_in_children
from tinyexplore.util.workers import Job, ThreadWorkers

T = TypeVar("T")
PROGRAM_BYTES = 64 << 10  # approximate memory of a program in the driver
WORD = 4  # bytes of an element; sizes of buffers are multiples of it
TICKS = 16  # bytes of two timestamps
ADAPTER_KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU")  # kinds of adapters, in order of preference
NO_PACKAGE = "the WEBGPU device needs wgpu: pip install 'tinyexplore[webgpu]'"
NO_DRIVER = (
    "the WEBGPU device needs a driver of Vulkan, Metal or Direct3D 12, and wgpu found none: install that of your GPU, "
    "or Mesa's lavapipe, which runs Vulkan on the CPU (Debian: apt-get install mesa-vulkan-drivers)"
)


class WebGPU:
    """A device of wgpu and its queue. `wgpu`: the module."""

    def __init__(self) -> None:
        try:
            import wgpu  # noqa: PLC0415 (a package that few have; it loads drivers)
        except ImportError as error:
            raise DeviceUnavailable(f"{NO_PACKAGE} ({error})") from error
        self.wgpu: Any = wgpu
        # OpenGL is not used, and would print which features it lacks
        with suppress(ImportError, KeyError, RuntimeError):
            from wgpu.backends.wgpu_native.extras import set_instance_extras  # noqa: PLC0415

            set_instance_extras(backends=["Primary"])
        # Mesa looks for the folder of a desktop session, and complains on stderr if there is none
        with environment_default("XDG_RUNTIME_DIR", tempfile.gettempdir()):
            adapters = wgpu.gpu.enumerate_adapters_sync()
        usable = [candidate for candidate in adapters if candidate.info["backend_type"] != "OpenGL"]
        if not usable:
            raise DeviceUnavailable(NO_DRIVER)
        adapter = min(
            usable,
            key=lambda candidate: [*ADAPTER_KINDS, candidate.info["adapter_type"]].index(
                candidate.info["adapter_type"]
            ),
        )
        self.name = str(adapter.info["device"])
        self.is_cpu = adapter.info["adapter_type"] == "CPU"
        self.version = f"wgpu {wgpu.__version__} {adapter.info['backend_type']} {adapter.info['description']}"
        clock = {"timestamp-query"} & set(adapter.features)
        try:
            self.device = adapter.request_device_sync(required_features=clock, required_limits=adapter.limits)
        except (wgpu.GPUError, RuntimeError) as error:
            raise DeviceUnavailable(f"the WEBGPU device: {self.name} does not open: {error}") from error
        self.limits: dict[str, int] = self.device.limits
        # nanoseconds per tick of the device's clock; 0: it has no clock
        self.nanoseconds = self._tick() if clock else 0.0
        self.most_bytes = min(self.limits["max-storage-buffer-binding-size"], self.limits["max-buffer-size"])
        self.lock = threading.RLock()
        self._workers = ThreadWorkers(1)
        self._held: dict[weakref.ref[_WebGPUCall], _BoundWebGPU] = {}
        self._gone: list[weakref.ref[_WebGPUCall]] = []
        new_in_children(self, "lock")

    def _tick(self) -> float:
        """Returns the nanoseconds of one tick of the device's timestamps."""
        try:
            from wgpu.backends.wgpu_native import lib  # noqa: PLC0415

            return float(lib.wgpuQueueGetTimestampPeriod(self.device.queue._internal))
        except (ImportError, AttributeError):  # this implementation counts in ns, as the standard says
            return 1.0

    def compile(self, spec: ProgramSpec) -> WebGPUProgram:
        """Returns `spec` ready to run. Raises CompileError if wgpu rejects it."""
        buffers, most_buffers = len(global_buffers(spec.uops)), self.limits["max-storage-buffers-per-shader-stage"]
        if buffers > most_buffers:
            raise CompileError(
                f"the kernel {spec.name} accesses {buffers} buffers, and {self.name} supports {most_buffers}: "
                "split it with .contiguous(), or lower MAX_KERNEL_OPS"
            )
        try:
            return self.run_on_own_thread(partial(WebGPUProgram, self, spec))
        except self.wgpu.GPUError as error:
            raise compile_error("wgpu", str(error), spec.source, r"wgsl:(\d+):\d+") from error

    def run_on_own_thread(self, work: Callable[[], T]) -> T:
        """Calls `work` on this device's own thread and returns its result. An interrupt waits for the end of `work`.

        wgpu is written in Python, and an interrupt inside it would leave locks held.
        """
        job = Job(partial(self._run_alone, work))
        self._workers.run_alongside([job], _do_nothing)
        return job.result()

    def _run_alone(self, work: Callable[[], T]) -> T:
        with self.lock:
            while self._gone:  # freed here, on this thread, because their finalizers are Python, too
                del self._held[self._gone.pop()]
            return work()

    def callable_for(self, bound: _BoundWebGPU) -> _WebGPUCall:
        """Returns a function that runs `bound`. This device's own thread frees `bound` later."""
        call = _WebGPUCall(bound)
        self._held[weakref.ref(call, self._gone.append)] = bound
        return call

    def new_buffer(self, nbytes: int, usage: int) -> Any:
        """Allocates memory of the device. Raises MemoryError if there is not enough for a kernel."""
        if nbytes > self.most_bytes:
            raise MemoryError(
                f"a buffer of {nbytes:,} bytes exceeds the limit of {self.name}, {self.most_bytes:,} bytes: work in "
                "smaller pieces, or choose another device"
            )
        try:
            return self.device.create_buffer(size=max(-(-nbytes // WORD) * WORD, WORD), usage=usage)
        except self.wgpu.GPUError as error:
            raise MemoryError(f"{self.name} could not allocate {nbytes:,} bytes: {error}") from error


def _do_nothing() -> None:
    """Does nothing: the default for work that the caller does meanwhile."""


class WebGPUProgram:
    """A pipeline, and the layout of its bindings."""

    entry_address: int | None = None
    nbytes = PROGRAM_BYTES
    code_bytes = 0
    refusal = ""

    def __init__(self, webgpu: WebGPU, spec: ProgramSpec) -> None:
        self.webgpu = webgpu
        self.spec = spec
        self.launch = Launch.of(spec.uops)
        self.types = [node.dtype for node in global_buffers(spec.uops)]
        device = webgpu.device
        binding_types = ["storage" if slot in spec.writes else "read-only-storage" for slot in range(len(self.types))]
        binding_types += ["uniform"] * len(variable_arguments(spec.uops))
        stage = webgpu.wgpu.ShaderStage.COMPUTE
        entries = [
            {"binding": slot, "visibility": stage, "buffer": {"type": binding_type}}
            for slot, binding_type in enumerate(binding_types)
        ]
        self.layout = device.create_bind_group_layout(entries=entries)
        module = device.create_shader_module(code=spec.source)
        self.pipeline = device.create_compute_pipeline(
            layout=device.create_pipeline_layout(bind_group_layouts=[self.layout]),
            compute={"module": module, "entry_point": spec.name},
        )

    def __repr__(self) -> str:
        return f"WebGPUProgram({self.spec.name!r})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function that runs the program on `buffers` and waits for it."""
        check_arguments(self.spec, buffers, values)
        memories = [buffer.allocate().memory for buffer in buffers]
        return self.webgpu.run_on_own_thread(partial(self._bind, memories, values))

    def _bind(self, memories: Sequence[Memory], values: Sequence[int]) -> _WebGPUCall:
        usage = self.webgpu.wgpu.BufferUsage
        device_buffers: list[_MirroredMemory] = []
        for slot, (memory, pointer_type) in enumerate(zip(memories, self.types)):
            assert isinstance(pointer_type, PtrDType)
            factor = WORD if pointer_type.base is dtypes.bool else 1
            how = usage.STORAGE | usage.COPY_DST | (usage.COPY_SRC if slot in self.spec.writes else 0)
            device_buffers.append(_MirroredMemory(self.webgpu.new_buffer(memory.nbytes * factor, how), memory, factor))
        uniforms = []
        for value in values:
            uniforms.append(self.webgpu.new_buffer(WORD, usage.UNIFORM | usage.COPY_DST))
            self.webgpu.device.queue.write_buffer(uniforms[-1], 0, value.to_bytes(WORD, "little", signed=True))
        return self.webgpu.callable_for(_BoundWebGPU(self, device_buffers, uniforms, group_counts(self.launch, values)))


class _MirroredMemory:
    """Memory of the device that mirrors host memory. Each byte of the host has `factor` bytes there."""

    def __init__(self, memory: Any, host_memory: Memory, factor: int) -> None:
        self.memory, self.host_memory, self.factor = memory, host_memory, factor

    def content_to_send(self) -> Any:
        """Returns the content to copy to the device."""
        self.host_memory.check_backed()
        view = self.host_memory.view()
        if self.factor == 1:
            return view
        words = bytearray(len(view) * self.factor)
        words[:: self.factor] = view
        return words

    def store_content(self, data: memoryview) -> None:
        """Stores the content copied from the device."""
        self.host_memory.view()[:] = data if self.factor == 1 else bytes(data)[:: self.factor]


class _BoundWebGPU:
    """A program with its buffers. `counts`: the number of groups, by dimension."""

    def __init__(
        self,
        program: WebGPUProgram,
        device_buffers: Sequence[_MirroredMemory],
        uniforms: Sequence[Any],
        counts: Sequence[int],
    ) -> None:
        self.webgpu, self.program, self.device_buffers, self.counts = (
            program.webgpu,
            program,
            device_buffers,
            tuple(counts),
        )
        self.seconds = 0.0
        if 0 in self.counts:
            return
        device, usage = self.webgpu.device, self.webgpu.wgpu.BufferUsage
        memories = [*(device_buffer.memory for device_buffer in device_buffers), *uniforms]
        resources = [{"buffer": memory, "offset": 0, "size": memory.size} for memory in memories]
        entries = [{"binding": slot, "resource": resource} for slot, resource in enumerate(resources)]
        self.group = device.create_bind_group(layout=program.layout, entries=entries)
        self.written = [
            buffer
            for slot, buffer in enumerate(device_buffers)
            if slot in program.spec.writes and buffer.host_memory.nbytes
        ]
        # timestamps and results are in one buffer, timestamps first, so that one wait is for all of them
        size = sum([buffer.memory.size for buffer in self.written], TICKS)
        self.back = device.create_buffer(size=size, usage=usage.MAP_READ | usage.COPY_DST)
        self.marks: dict[str, Any] = {}
        if self.webgpu.nanoseconds:
            self.ticks = device.create_query_set(type="timestamp", count=2)
            self.counted = device.create_buffer(size=TICKS, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
            begin_key, end_key = "beginning_of_pass_write_index", "end_of_pass_write_index"
            self.marks = {"timestamp_writes": {"query_set": self.ticks, begin_key: 0, end_key: 1}}

    def run(self) -> None:
        device = self.webgpu.device
        for buffer in self.device_buffers:
            if buffer.host_memory.nbytes:
                device.queue.write_buffer(buffer.memory, 0, buffer.content_to_send())
        encoder = device.create_command_encoder()
        work = encoder.begin_compute_pass(**self.marks)
        work.set_pipeline(self.program.pipeline)
        work.set_bind_group(0, self.group)
        work.dispatch_workgroups(*[*self.counts, 1, 1][:3])
        work.end()
        if self.marks:
            encoder.resolve_query_set(self.ticks, 0, 2, self.counted, 0)
            encoder.copy_buffer_to_buffer(self.counted, 0, self.back, 0, TICKS)
        offset = TICKS
        for buffer in self.written:
            encoder.copy_buffer_to_buffer(buffer.memory, 0, self.back, offset, buffer.memory.size)
            offset += buffer.memory.size
        device.queue.submit([encoder.finish()])
        self.back.map_sync(self.webgpu.wgpu.MapMode.READ)
        try:
            self._receive(self.back.read_mapped(copy=False))
        finally:
            self.back.unmap()

    def _receive(self, data: memoryview) -> None:
        offset = TICKS
        for buffer in self.written:
            buffer.store_content(data[offset : offset + buffer.host_memory.nbytes * buffer.factor])
            offset += buffer.memory.size
        if self.marks:
            began, ended = memoryview(bytes(data[:TICKS])).cast("Q")
            self.seconds = max(ended - began, 0) * self.webgpu.nanoseconds / 1e9


class _WebGPUCall:
    """The callable for a bound program."""

    def __init__(self, bound: _BoundWebGPU) -> None:
        self._bind = bound

    def timed(self) -> float:
        """Runs the program. Returns the seconds by the device's clock, or 0 if it has none."""
        self(0, 1)
        return self._bind.seconds

    def __call__(self, start: int, stop: int) -> None:
        if 0 not in self._bind.counts:
            self._bind.webgpu.run_on_own_thread(self._bind.run)


def open_webgpu() -> DeviceInterface:
    """Opens the WEBGPU device. Raises DeviceUnavailable, with a remedy, if a package or a driver is missing."""
    choice = current_choice()
    if choice.gpu is not None and choice.gpu is not GPUS["webgpu"]:
        raise DeviceUnavailable(
            f"TARGET={choice.text!r}: the WEBGPU device runs WGSL, not {choice.gpu.language}; DEVICE=LLVM shows the "
            "text, DEVICE=PYTHON emulates it"
        )
    webgpu = WebGPU()
    gpu = replace(
        GPUS["webgpu"],
        shared_bytes=webgpu.limits["max-compute-workgroup-storage-size"],
        group_items=min(
            webgpu.limits["max-compute-invocations-per-workgroup"],
            webgpu.limits["max-compute-workgroup-size-x"],
            webgpu.limits["max-compute-workgroup-size-y"],
            1024,
        ),
    )
    target = replace(gpu_target("WEBGPU", gpu, webgpu.name, choice.text), shared_is_near=not webgpu.is_cpu)
    renderer = GPURenderer(target, webgpu.version)
    return DeviceInterface("WEBGPU", target, HOST_ALLOCATOR, renderer, webgpu.compile, no_listings)


__all__ = ["WebGPU", "WebGPUProgram", "open_webgpu"]
