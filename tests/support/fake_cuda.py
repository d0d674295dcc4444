"""A stand-in for the package cuda-bindings (`cuda.bindings.driver` and `.nvrtc`): the same functions, parameters and
results, on this machine's processor. A launched kernel runs as the LLVM IR of its program. It runs as late as a driver
may run it: when the host waits for its stream. A host that reads memory without waiting sees the old content.

`test_the_fake_is_like_the_package` compares the two where the package is installed.
"""

from __future__ import annotations

import ctypes
import enum
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tests.support.gpu_ir import Loaded
from tinyexplore.renderer.program import ProgramSpec


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class nvrtcResult(enum.IntEnum):
    NVRTC_SUCCESS = 0
    NVRTC_ERROR_COMPILATION = 6


class CUdevice_attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89


class CUmemAttach_flags(enum.IntEnum):
    CU_MEM_ATTACH_GLOBAL = 1


class CUstream_flags(enum.IntEnum):
    CU_STREAM_NON_BLOCKING = 1


ENUMS = (CUresult, nvrtcResult, CUdevice_attribute, CUmemAttach_flags, CUstream_flags)
OK = CUresult.CUDA_SUCCESS
CUBIN = b"CUBIN of "
LOADED: dict[str, Loaded] = {}  # by CUDA C++; held for ever, for LLVM's parts must not go in the order of a collector
GOOD = nvrtcResult.NVRTC_SUCCESS


class CUDA_KERNEL_NODE_PARAMS:
    """The fields of a kernel node of a graph."""

    __slots__ = (
        "func",
        *(f"{what}Dim{letter}" for what in ("grid", "block") for letter in "XYZ"),
        "sharedMemBytes",
        "kernelParams",
        "extra",
        "kern",
        "ctx",
    )


class Handle:
    """A handle of the driver: an opaque reference. A CUdeviceptr converts to an integer."""

    def __init__(self, kind: str, value: Any = 0) -> None:
        self.kind, self.value = kind, value

    def __int__(self) -> int:
        return int(self.value)


class FakeCUDA:
    """A machine with `count` GPUs of `memory_bytes` each. `calls`: the names of all functions called, in order."""

    def __init__(self, count: int = 1, *, memory_bytes: int = 1 << 30, has_driver: bool = True) -> None:
        self.count, self.memory_bytes, self.has_driver = count, memory_bytes, has_driver
        self.calls: list[str] = []
        self.held: dict[int, Any] = {}
        self.programs: dict[bytes, ProgramSpec] = {}  # by its source: what a launch does
        self.launch_status = OK
        self.late_status = OK  # of the kernels themselves; a wait returns it
        self.is_concurrent = True
        self.streams: list[list[Callable[[], None]]] = [[] for _ in range(count)]  # what is still to be done, by GPU
        self.loaded_on: list[int] = []  # which GPU was current when a module was loaded
        self.graphs = 0  # handles of graphs that were made and not destroyed
        self.clock = 0.0  # milliseconds: each kernel takes a quarter of one
        self.log = b""
        self.current: Any = None
        public = [name for name in dir(self) if name.startswith(("cu", "nvrtc")) and callable(getattr(self, name))]
        self.driver, self.nvrtc = types.ModuleType("cuda.bindings.driver"), types.ModuleType("cuda.bindings.nvrtc")
        for name in public:
            setattr(self.nvrtc if name.startswith("nvrtc") else self.driver, name, self.noted(name))
        self.driver.CUDA_KERNEL_NODE_PARAMS = CUDA_KERNEL_NODE_PARAMS  # type: ignore[attr-defined]
        for one in ENUMS:
            setattr(self.nvrtc if one is nvrtcResult else self.driver, one.__name__, one)

    def noted(self, name: str) -> Any:
        function = getattr(self, name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            return function(*arguments)

        call.__name__ = name
        return call

    @property
    def modules(self) -> dict[str, types.ModuleType]:
        """The modules by the names under which they are imported."""
        package, bindings = types.ModuleType("cuda"), types.ModuleType("cuda.bindings")
        package.bindings, bindings.driver, bindings.nvrtc = bindings, self.driver, self.nvrtc  # type: ignore[attr-defined]
        names = ("cuda", "cuda.bindings", "cuda.bindings.driver", "cuda.bindings.nvrtc")
        return dict(zip(names, (package, bindings, self.driver, self.nvrtc)))

    # *** the driver ***

    def cuInit(self, Flags: int) -> Any:
        if not self.has_driver:
            raise RuntimeError('"cuda" is an NVIDIA driver library and can only be found via system search.\nmore')
        return (OK if self.count else CUresult.CUDA_ERROR_NO_DEVICE,)

    def cuDeviceGetCount(self) -> Any:
        return OK, self.count

    def cuDeviceGet(self, ordinal: int) -> Any:
        assert 0 <= ordinal < self.count
        return OK, Handle("CUdevice", ordinal)

    def cuDeviceGetName(self, length: int, dev: Any) -> Any:
        return OK, b"NVIDIA of paper".ljust(_integer(length), b"\0")

    def cuDeviceGetAttribute(self, attrib: Any, dev: Any) -> Any:
        known = {"MAX_THREADS_PER_BLOCK": 1024, "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10, "WARP_SIZE": 32}
        known |= {"COMPUTE_CAPABILITY_MAJOR": 8, "COMPUTE_CAPABILITY_MINOR": 7}
        known |= {"CONCURRENT_MANAGED_ACCESS": int(self.is_concurrent)}
        return OK, known[CUdevice_attribute(attrib).name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDevicePrimaryCtxRetain(self, dev: Any) -> Any:
        return OK, Handle("CUcontext", dev.value)

    def cuCtxSetCurrent(self, ctx: Any) -> Any:
        self.current = _is("CUcontext", ctx)
        return (OK,)

    def cuStreamCreate(self, Flags: int) -> Any:
        return OK, Handle("CUstream", self.current.value)

    def cuStreamSynchronize(self, hStream: Any) -> Any:
        waiting = self.streams[_is("CUstream", hStream).value]
        while waiting:
            waiting.pop(0)()
        return (self.late_status,)

    def cuEventCreate(self, Flags: int) -> Any:
        return OK, Handle("CUevent")

    def cuEventRecord(self, hEvent: Any, hStream: Any) -> Any:
        event = _is("CUevent", hEvent)
        event.value = None

        def reached() -> None:
            event.value = self.clock

        self.streams[_is("CUstream", hStream).value].append(reached)
        return (OK,)

    def cuEventElapsedTime(self, hStart: Any, hEnd: Any) -> Any:
        begin, end = _is("CUevent", hStart).value, _is("CUevent", hEnd).value
        return (CUresult.CUDA_ERROR_NOT_READY, None) if begin is None or end is None else (OK, end - begin)

    def cuMemAllocManaged(self, bytesize: int, flags: int) -> Any:
        if sum(map(len, self.held.values())) + _integer(bytesize) > self.memory_bytes:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        room = ctypes.create_string_buffer(bytesize + 256)
        address = -(-ctypes.addressof(room) // 256) * 256
        self.held[address] = room
        return OK, Handle("CUdeviceptr", address)

    def cuMemFree(self, dptr: Any) -> Any:
        assert not any(self.streams), "memory is freed while kernels may use it"
        del self.held[int(_is("CUdeviceptr", dptr))]
        return (OK,)

    def cuModuleLoadData(self, image: Any) -> Any:
        assert isinstance(image, bytes)
        self.loaded_on.append(self.current.value)
        is_ours = image.startswith(CUBIN)
        return (OK, Handle("CUmodule", image[len(CUBIN) :])) if is_ours else (CUresult.CUDA_ERROR_INVALID_VALUE, None)

    def cuModuleGetFunction(self, hmod: Any, name: bytes) -> Any:
        source = _is("CUmodule", hmod).value
        assert self.programs[source].name.encode() == name
        return OK, Handle("CUfunction", source)

    def cuLaunchKernel(
        self,
        f: Any,
        gridDimX: int,
        gridDimY: int,
        gridDimZ: int,
        blockDimX: int,
        blockDimY: int,
        blockDimZ: int,
        sharedMemBytes: int,
        hStream: Any,
        kernelParams: Any,
        extra: Any,
    ) -> Any:
        sizes = (gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ)
        assert _is("CUstream", hStream).value == self.current.value and sharedMemBytes == extra == 0
        if self.launch_status is not OK:
            return (self.launch_status,)
        self.streams[hStream.value].append(self.kernel(f, sizes, kernelParams))
        return (OK,)

    def kernel(self, function: Any, sizes: Sequence[int], parameters: Any) -> Callable[[], None]:
        """The launch of a kernel with a copy of its current arguments, as the driver makes one."""
        assert min(map(_integer, sizes)) > 0
        spec = self.programs[_is("CUfunction", function).value]
        count = spec.n_buffers + len(spec.variables)
        places = (ctypes.c_void_p * count).from_address(_integer(parameters))
        return partial(self.work, spec, sizes, [ctypes.c_int64.from_address(place).value for place in places])

    def work(self, spec: ProgramSpec, sizes: Sequence[int], arguments: Sequence[int]) -> None:
        """Run a kernel."""
        self.clock += 0.25
        if self.late_status is OK:
            if spec.source not in LOADED:
                LOADED[spec.source] = Loaded(spec)
            LOADED[spec.source].start(sizes[:3], sizes[3:], arguments)

    # a graph is its nodes, of which each is the kernel that it launches

    def cuGraphCreate(self, flags: int) -> Any:
        assert _integer(flags) == 0
        self.graphs += 1
        return OK, Handle("CUgraph", [])

    def cuGraphAddKernelNode(self, hGraph: Any, dependencies: Any, numDependencies: int, nodeParams: Any) -> Any:
        nodes = _is("CUgraph", hGraph).value
        assert [_is("CUgraphNode", one) for one in dependencies] == nodes[-1:] and numDependencies == len(dependencies)
        nodes.append(Handle("CUgraphNode", self.node(nodeParams)))
        return OK, nodes[-1]

    def node(self, parameters: CUDA_KERNEL_NODE_PARAMS) -> tuple[Any, Callable[[], None]]:
        sizes = [getattr(parameters, f"{what}Dim{letter}") for what in ("grid", "block") for letter in "XYZ"]
        assert parameters.sharedMemBytes == 0  # type: ignore[attr-defined]
        return parameters.func, self.kernel(parameters.func, sizes, parameters.kernelParams)  # type: ignore[attr-defined]

    def cuGraphInstantiate(self, hGraph: Any, flags: int) -> Any:
        assert _integer(flags) == 0
        self.graphs += 1
        return OK, Handle("CUgraphExec", {node: node.value for node in _is("CUgraph", hGraph).value})

    def cuGraphExecKernelNodeSetParams(self, hGraphExec: Any, hNode: Any, nodeParams: Any) -> Any:
        nodes = _is("CUgraphExec", hGraphExec).value
        function, _ = nodes[_is("CUgraphNode", hNode)]
        assert function is nodeParams.func
        nodes[hNode] = self.node(nodeParams)
        return (OK,)

    def cuGraphLaunch(self, hGraphExec: Any, hStream: Any) -> Any:
        waiting = self.streams[_is("CUstream", hStream).value]
        if self.launch_status is not OK:
            return (self.launch_status,)
        waiting += [kernel for _, kernel in _is("CUgraphExec", hGraphExec).value.values()]
        return (OK,)

    def cuGraphExecDestroy(self, hGraphExec: Any) -> Any:
        assert _is("CUgraphExec", hGraphExec) and not any(self.streams)
        self.graphs -= 1
        return (OK,)

    def cuGraphDestroy(self, hGraph: Any) -> Any:
        assert _is("CUgraph", hGraph)
        self.graphs -= 1
        return (OK,)

    def cuGetErrorString(self, error: Any) -> Any:
        return OK, f"the words of {int(error)}".encode()

    # *** NVRTC ***

    def nvrtcVersion(self) -> Any:
        return GOOD, 13, 0

    def nvrtcCreateProgram(self, src: bytes, name: bytes, numHeaders: int, headers: Any, includeNames: Any) -> Any:
        assert isinstance(src, bytes) and isinstance(name, bytes) and numHeaders == len(headers) == len(includeNames)
        return GOOD, Handle("nvrtcProgram", src)

    def nvrtcCompileProgram(self, prog: Any, numOptions: int, options: Any) -> Any:
        assert numOptions == len(options) and all(isinstance(one, bytes) for one in options)
        assert b"--gpu-architecture=sm_87" in options
        return (nvrtcResult.NVRTC_ERROR_COMPILATION if self.log else GOOD,)

    def nvrtcGetProgramLogSize(self, prog: Any) -> Any:
        return GOOD, len(self.log) + 1

    def nvrtcGetProgramLog(self, prog: Any, log: bytes) -> Any:
        return _written(log, self.log + b"\0")

    def nvrtcGetCUBINSize(self, prog: Any) -> Any:
        return GOOD, len(CUBIN + _is("nvrtcProgram", prog).value)

    def nvrtcGetCUBIN(self, prog: Any, cubin: bytes) -> Any:
        return _written(cubin, CUBIN + prog.value)

    def nvrtcDestroyProgram(self, prog: Any) -> Any:
        _is("nvrtcProgram", prog)
        return (GOOD,)


def _is(kind: str, handle: Any) -> Any:
    assert isinstance(handle, Handle) and handle.kind == kind, f"{handle!r} is no {kind}"
    return handle


def _integer(value: Any) -> int:
    assert type(value) is int, f"{value!r} is no integer"
    return value


def _written(place: bytes, content: bytes) -> Any:
    """Write `content` into the memory of the bytes object `place`, as NVRTC does."""
    assert len(place) == len(content)
    ctypes.memmove(place, content, len(content))
    return (GOOD,)


def functions(fake: FakeCUDA) -> Iterator[tuple[str, str]]:
    """The module and the name of every function of the stand-in."""
    for module, found in (("driver", fake.driver), ("nvrtc", fake.nvrtc)):
        for name in vars(found):
            if name.startswith(("cu", "nvrtc")) and callable(getattr(FakeCUDA, name, None)):
                yield module, name
