"""The CUDA device, on a stand-in for NVIDIA's package (no test needs a GPU), and CUDA C++ that NVRTC accepts."""

from __future__ import annotations

import gc
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.golden.__main__ import path_of
from tests.golden.gpu import REFUSED
from tests.golden.record import read
from tests.support.fake_cuda import CUDA_KERNEL_NODE_PARAMS, ENUMS, OK, CUresult, FakeCUDA, functions
from tinyexplore import Tensor, TinyJit, Variable
from tinyexplore.compile.compiler import runners
from tinyexplore.compile.lowering import _programs, compile_optimized
from tinyexplore.compile.search_worker import SearchWorker, sample
from tinyexplore.device import Buffer, Device, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.execute.graph import GraphLaunch
from tinyexplore.execute.plan import plans
from tinyexplore.explore import explore
from tinyexplore.explore.recording.descriptions import launches_text
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime import cuda, cuda_device, cuda_graph
from tinyexplore.runtime.cuda import CUDA, CUDAError
from tinyexplore.runtime.errors import CompileError
from tinyexplore.trace import LaunchesGrouped, Recorder, recording
from tinyexplore.util import Context
from tinyexplore.util.config import DEVICE_FLAGS, config_from_environment

NOT_INSTALLED = "NVIDIA's cuda-bindings is not installed: pip install 'tinyexplore[cuda]'"
Machine = Callable[..., FakeCUDA]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Makes a machine with NVIDIA's GPUs of this one; CUDA is opened again."""
    fakes: list[FakeCUDA] = []
    real = CUDA.compile

    def compiled(self: CUDA, spec: ProgramSpec) -> Any:
        fakes[-1].programs[spec.source.encode()] = spec
        return real(self, spec)

    def make(count: int = 1, **options: Any) -> FakeCUDA:
        fakes.append(FakeCUDA(count, **options))
        for name, module in fakes[-1].modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        _forget()
        return fakes[-1]

    monkeypatch.setattr(CUDA, "compile", compiled)
    with Context(CACHELEVEL=0):
        yield make
    _forget()


def _forget() -> None:
    """The machine that there was, and the programs that it had loaded."""
    plans.cache_clear()
    runners.cache_clear()
    _programs.clear()
    cuda.get_cuda.cache_clear()
    Device.register("CUDA", cuda_device.open_cuda, cuda_device.open_cuda)


A = np.random.default_rng(0).standard_normal((24, 40)).astype(np.float32)


def test_tensors_are_computed_on_it(machine: Machine) -> None:
    fake = machine()
    a = Tensor(A, device="CUDA")
    np.testing.assert_allclose((a.exp() + 1).numpy(), np.exp(A) + 1, rtol=1e-6)
    np.testing.assert_allclose(a.softmax(1).numpy(), np.exp(A) / np.exp(A).sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose((a @ a.T).numpy(), A @ A.T, rtol=1e-4, atol=1e-4)
    moved = (Tensor(A, device="LLVM") + 1).to("CUDA") * 2
    np.testing.assert_allclose(moved.numpy(), (A + 1) * 2, rtol=1e-6)
    assert fake.calls.count("cuLaunchKernel") >= 4
    Device["CUDA"].synchronize()


def test_a_jit_and_variables(machine: Machine) -> None:
    machine()
    step = TinyJit(lambda x: (x * 2).realize())
    for number in range(4):
        assert step(Tensor([float(number)], device="CUDA").realize()).tolist() == [2.0 * number]
    for size in (3, 17):
        n = Variable("n", 1, 40).bind(size)
        part = Tensor(A, device="CUDA").realize().shrink(((0, 24), (0, n)))
        np.testing.assert_allclose(part.sum(1).numpy(), A[:, :size].sum(1), rtol=1e-5)


def test_a_replay_is_one_graph(machine: Machine) -> None:
    fake = machine()

    def step(x: Tensor, y: Tensor) -> Tensor:
        return ((x * 2).realize() + y).realize().softmax(1).realize()

    jitted = TinyJit(step)
    x, y = ((Tensor(A * number, device="LLVM") + 0.5).to("CUDA").realize() for number in (1, 2))
    expected = step(x, y).numpy()
    for _ in range(2):
        jitted(x, y)
    replay = jitted.captured
    assert replay is not None
    (launch,) = replay.steps[0]
    assert isinstance(launch, GraphLaunch) and len(launch.items) == len(replay.items) == 3
    launches = fake.calls.count("cuLaunchKernel")
    before = len(fake.calls)
    for number in range(4):
        result = jitted(x, y)
        assert len(fake.streams[0]) == len(replay.items) * (number + 1)  # without a wait
    assert fake.calls[before:].count("cuGraphLaunch") == 4 and fake.calls.count("cuLaunchKernel") == launches
    assert "cuGraphExecKernelNodeSetParams" not in fake.calls[before:]
    np.testing.assert_array_equal(result.numpy(), expected)
    before = len(fake.calls)
    np.testing.assert_array_equal(jitted(y, x).numpy(), step(y, x).numpy())
    assert fake.calls[before:].count("cuGraphExecKernelNodeSetParams") == 2  # of three: those that read x, and y
    assert "cuGraphCreate" not in fake.calls[before:]


def test_state_moves_on_in_graphs(machine: Machine) -> None:
    """Two lists of kernels alternate: a graph each."""
    fake = machine()
    weight = (Tensor(A, device="LLVM") * 1).to("CUDA").realize()

    @TinyJit
    def step(gradient: Tensor) -> Tensor:
        weight.assign(weight * 0.5 + gradient).realize()
        return (weight.sum(1) * 2).realize()

    expected = A.copy()
    for number in range(7):
        given = (Tensor(A + number, device="LLVM") * 1).to("CUDA").realize()
        expected = expected * np.float32(0.5) + (A + np.float32(number))
        found = step(given)
        if number > 4:
            np.testing.assert_allclose(found.numpy(), expected.sum(1) * 2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-6)
    assert fake.calls.count("cuGraphInstantiate") == 2 and fake.calls.count("cuGraphLaunch") == 5
    del step
    gc.collect()
    other = TinyJit(lambda x: ((x + 1).realize() * 2).realize())
    for _ in range(3):
        other(weight)
    assert fake.graphs == 2  # the other's: an unused graph is destroyed


def test_numpy_arrays_are_copied_before_a_graph_runs(machine: Machine) -> None:
    machine()
    jitted = TinyJit(lambda x: ((x * 2).realize() + 1).realize())
    mine = A.copy()
    given = Tensor(mine, device="CUDA")
    for number in range(5):
        mine[:] = A + number
        result = jitted(given)
        mine[:] = 0
        np.testing.assert_array_equal(result.numpy(), (A + np.float32(number)) * 2 + 1)


def test_a_graph_gets_new_grids_and_refuses_impossible_ones(machine: Machine) -> None:
    fake = machine()
    whole = (Tensor(A, device="LLVM") * 1).to("CUDA").realize()
    jitted = TinyJit(lambda x: ((x * 2).realize() + 1).realize())
    for size in (3, 5, 17, 40):
        n = Variable("n", 1, 40).bind(size)
        found = jitted(whole.shrink(((0, 24), (0, n))).contiguous().realize())
        np.testing.assert_array_equal(found.numpy(), A[:, :size] * 2 + 1)
    assert fake.calls.count("cuGraphInstantiate") == 1 and fake.calls.count("cuGraphLaunch") == 2
    assert "cuGraphExecKernelNodeSetParams" in fake.calls
    assert jitted.captured is not None
    launch = jitted.captured.steps[0][-1]
    assert isinstance(launch, GraphLaunch)
    kernels: list[Any] = [item.bind() for item in launch.items]
    assert cuda_graph.refusal(kernels) == ""
    kernels[0].sizes = (0, *kernels[0].sizes[1:])
    with pytest.warns(UserWarning, match="2 kernels of a replay .*nothing to do"):
        launch()
    assert fake.calls.count("cuGraphLaunch") == 2 and launch.refusal
    kernels[1].copied = [(None, None, True)]
    assert re.search("that the GPU cannot reach", cuda_graph.refusal(kernels[1:]))


def test_the_reason_why_there_is_no_graph_is_recorded(machine: Machine) -> None:
    machine()
    moved = TinyJit(lambda x: (((x + 1).realize() * 2).realize().to("LLVM") + 1).realize())
    x = (Tensor(A, device="LLVM") * 1).to("CUDA").realize()
    with recording(recorder := Recorder()):
        for _ in range(3):
            found = moved(x).numpy()
    np.testing.assert_array_equal(found, (A + 1) * 2 + 1)
    (told,) = [event for event in recorder.events if isinstance(event, LaunchesGrouped)]
    (copy,) = told.ungrouped
    assert told.sizes == (2,) and copy.startswith("copy: ") and copy.endswith("from CUDA to LLVM")
    assert "2 kernels" in launches_text(told) and copy in launches_text(told)
    assert launches_text(told) in [message.text for message in build_trace(recorder).messages]


def test_several_gpus_have_programs_and_memory_of_their_own(machine: Machine) -> None:
    fake = machine(2)
    with pytest.raises(DeviceUnavailable, match="CUDA:2: no such GPU; this machine has CUDA, CUDA:1"):
        Device["CUDA:2"]
    both = Tensor(A).shard(("CUDA", "CUDA:1"), axis=0)
    np.testing.assert_allclose((both * 2).sum(0).numpy(), (A * 2).sum(0), rtol=1e-5)
    assert Device["CUDA:1"].target.name == "CUDA:1" and Device["CUDA"].target.cpu == "sm_87"
    assert Device["CUDA"].allocator is not Device["CUDA:1"].allocator
    assert sorted(fake.loaded_on) == [0, 1]  # a kernel runs on the GPU that loaded it
    assert fake.calls.count("cuDevicePrimaryCtxRetain") == 2


def test_times_are_the_gpus_own(machine: Machine) -> None:
    machine()
    a = Tensor(A, device="CUDA").realize()
    view = explore(lambda: a + 1, device="CUDA", repeat=3)
    assert {time for run in view.trace.runs for time in run.times_us} == {250.0}
    assert {"uops", "cuda", "ptx"} <= {one.language for one in view.trace.programs}


def test_managed_memory_is_freed(machine: Machine) -> None:
    fake = machine()
    allocator = Device["CUDA"].allocator
    memory = allocator.allocate(5000)
    assert memory.address in fake.held and cuda.is_managed(memory.part(100, 50))
    del memory
    assert allocator.empty_cache() >= 5000
    assert not fake.held


def test_the_memory_error_reports_the_requested_bytes(machine: Machine) -> None:
    machine(memory_bytes=1 << 20)
    held = [Buffer("CUDA", 100_000, dtypes.float32).allocate()]
    with pytest.raises(MemoryError, match=r"cannot allocate [\d,]+ bytes: [\d,]+ bytes"):
        held.append(Buffer("CUDA", 300_000, dtypes.float32).allocate())
    del held
    Buffer("CUDA", 200_000, dtypes.float32).allocate()  # what was kept for reuse is given back first


def test_a_kernel_that_does_not_compile_is_shown_with_its_line(machine: Machine) -> None:
    fake = machine()
    fake.log = b'kernel.cu(3): error: identifier "blah" is undefined\n\n1 error detected'
    with pytest.raises(CompileError) as caught:
        (Tensor(A, device="CUDA") * 3).numpy()
    assert re.search(r"NVRTC .*:\nkernel.cu\(3\): error.*\nline 3: \S", str(caught.value), re.S)
    assert fake.calls.count("nvrtcDestroyProgram") == 1


def test_a_launch_that_fails_names_kernel_and_status(machine: Machine) -> None:
    fake = machine()
    fake.launch_status = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(
        CUDAError, match=r"^the kernel \w+: cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS \(the words of 700\)$"
    ):
        (Tensor(A, device="CUDA") * 3).numpy()
    assert fake.calls[-1] == "cuGetErrorString"


def test_kernels_are_launched_and_the_host_waits_where_it_reads(machine: Machine) -> None:
    fake = machine()
    a = (Tensor(A, device="LLVM") + 1).to("CUDA").realize()
    before = fake.calls.count("cuStreamSynchronize")
    b = (a * 2).realize()
    c = (b + 1).realize()
    assert fake.calls.count("cuLaunchKernel") == len(fake.streams[0]) == 2
    assert fake.calls.count("cuStreamSynchronize") == before
    np.testing.assert_array_equal(c.numpy(), (A + 1) * 2 + 1)
    assert fake.calls.count("cuStreamSynchronize") == before + 1 and not fake.streams[0]
    np.testing.assert_array_equal(b.numpy(), (A + 1) * 2)  # it was waited for with the other
    assert fake.calls.count("cuStreamSynchronize") == before + 1


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.to("LLVM").numpy(),
        lambda x: np.array(x.tolist(), np.float32),
        lambda x: np.frombuffer(x.data(), np.float32).reshape(x.shape),
        lambda x: np.frombuffer(x.lazydata.base.buffer.copyout(), np.float32).reshape(x.shape),
        lambda x: (Device["CUDA"].synchronize(), x)[1].numpy(),
    ],
    ids=["numpy", "to", "tolist", "data", "copyout", "synchronize"],
)
def test_every_read_of_values_waits_for_kernels(machine: Machine, read: Callable[[Tensor], np.ndarray]) -> None:
    fake = machine()
    x = ((Tensor(A, device="LLVM") + 1).to("CUDA").realize() * 2).realize()
    assert fake.streams[0]
    np.testing.assert_array_equal(read(x), (A + 1) * 2)


def test_memory_that_a_launch_uses_is_not_written_by_the_host_before(machine: Machine) -> None:
    """It is free once its tensor is gone: for kernels at once, for the host when the kernels before have ended."""
    fake = machine()
    a = (Tensor(A, device="LLVM") + 1).to("CUDA").realize()
    address = a.lazydata.base.buffer.address
    b = (a * 2).realize()
    del a
    reused = Buffer("CUDA", A.size, dtypes.float32).allocate()
    assert reused.address == address and fake.streams[0]
    reused.copyin(np.zeros_like(A))
    np.testing.assert_array_equal(b.numpy(), (A + 1) * 2)
    c = (b + 1).realize()
    del b, reused
    d = (c * 3).realize()  # a kernel into the memory of one that may still run: the stream keeps their order
    del c
    Device["CUDA"].allocator.empty_cache()  # the stand-in refuses to free what is in use
    np.testing.assert_array_equal(d.numpy(), ((A + 1) * 2 + 1) * 3)


def test_arrays_of_numpys_are_as_they_were_when_the_kernel_was_launched(machine: Machine) -> None:
    machine()
    mine = A.copy()
    b = (Tensor(mine, device="CUDA") * 2).realize()
    mine[:] = 0
    np.testing.assert_array_equal(b.numpy(), A * 2)


def test_an_asynchronous_error_names_the_kernels(machine: Machine) -> None:
    fake = machine()
    a = (Tensor(A, device="LLVM") + 1).to("CUDA").realize()
    b = (a * 2).realize()
    fake.late_status = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    names = r"the kernel \w+: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS \(the words of 700\); the contents"
    with pytest.raises(CUDAError, match=names + r" of GPU memory are lost: .*DEBUG=2"):
        b.numpy()
    fake.late_status = OK
    Device["CUDA"].synchronize()
    c = [(a * number).realize() for number in range(3, 15)]
    fake.late_status = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(CUDAError, match=r"^one of 12 kernels .*(\w+, ){7}\w+: "):
        c[0].numpy()


def test_without_concurrent_access_each_launch_is_synchronous(machine: Machine) -> None:
    fake = machine()
    fake.is_concurrent = False
    a = (Tensor(A, device="LLVM") + 1).to("CUDA").realize()
    b = (a * 2).realize()
    assert not fake.streams[0] and fake.calls.count("cuStreamSynchronize") == fake.calls.count("cuLaunchKernel") == 1
    np.testing.assert_array_equal(b.numpy(), (A + 1) * 2)


def test_a_kernel_on_another_gpu_waits_for_the_one_that_fills_its_memory(machine: Machine) -> None:
    fake = machine(2)
    first = ((Tensor(A, device="LLVM") + 1).to("CUDA").realize() * 2).realize()
    buffer = first.lazydata.base.buffer
    lent = Tensor._wrap(LazyBuffer.from_buffer(Buffer("CUDA:1", buffer.size, buffer.dtype, buffer.memory), A.shape))
    second = (lent + 1).realize()
    assert not fake.streams[0] and fake.streams[1]
    np.testing.assert_array_equal(second.numpy(), (A + 1) * 2 + 1)


def test_a_search_measures_by_the_gpus_clock(machine: Machine) -> None:
    machine()
    (item,) = create_schedule([(Tensor(A, device="CUDA").realize() * 2).lazydata])
    assert item.ast is not None
    kernel = apply_heuristics(Kernel.of(item.ast, Device["CUDA"].target))
    runner = compile_optimized("CUDA", kernel)
    worker = SearchWorker()
    worker.prepare("CUDA", kernel.original)
    run = worker.run_of(runner)
    assert [sample(run, calls)[0] for calls in (1, 4)] == [0.25e-3, 0.25e-3]
    assert worker.samples([runner], runner, 3)[0][:2] == [0.25e-3, 0.25e-3]


def test_the_flag_chooses_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = machine()
    for name in (*DEVICE_FLAGS, "DEVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA", "1")
    with Context(DEVICE=config_from_environment().DEVICE):
        assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]
    assert "cuLaunchKernel" in fake.calls


def test_a_missing_driver_or_gpu_is_reported(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(has_driver=False)
    with pytest.raises(DeviceUnavailable, match="NVIDIA's driver, .*system search.\\)$"):
        Device["CUDA"]
    machine(0)
    with pytest.raises(DeviceUnavailable, match="an NVIDIA GPU, .*CUDA_ERROR_NO_DEVICE"):
        Device["CUDA"]
    machine()
    for target, words in (("metal", "runs CUDA C\\+\\+, not metal"), ("sm_90", "this GPU .* is sm_87; unset TARGET")):
        with Context(TARGET=target), pytest.raises(DeviceUnavailable, match=words):
            Device["CUDA"]
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    _forget()
    with pytest.raises(DeviceUnavailable, match=r"cuda-bindings: pip install 'tinyexplore\[cuda\]'"):
        Device["CUDA"]


def test_the_fake_is_like_the_package() -> None:
    pytest.importorskip(
        "cuda.bindings", reason="NVIDIA's cuda-bindings is not installed: pip install 'tinyexplore[cuda]'"
    )
    modules = {name: importlib.import_module(f"cuda.bindings.{name}") for name in ("driver", "nvrtc")}
    for module, name in functions(FakeCUDA()):
        ours = list(inspect.signature(getattr(FakeCUDA, name)).parameters)[1:]
        assert ours == list(inspect.signature(getattr(modules[module], name)).parameters), name
    fields = modules["driver"].CUDA_KERNEL_NODE_PARAMS()
    assert set(CUDA_KERNEL_NODE_PARAMS.__slots__) <= set(dir(fields))
    for one in ENUMS:
        real = getattr(modules["nvrtc" if one.__name__ == "nvrtcResult" else "driver"], one.__name__)
        assert {member.name: member.value for member in one} == {
            member.name: getattr(real, member.name).value for member in one
        }


def without_driver(architecture: str) -> CUDA:
    """NVRTC alone, which needs no GPU."""
    pytest.importorskip("cuda.bindings", reason=NOT_INSTALLED)
    found = object.__new__(CUDA)
    found.nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    found.options = [b"--gpu-architecture=" + architecture.encode(), b"--std=c++17"]
    return found


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_nvrtc_compiles_every_golden_text(architecture: str) -> None:
    compiler = without_driver(architecture)
    for text in read(path_of("cuda")).values():
        if not text.startswith(REFUSED) and ("mma_" not in text or architecture != "sm_75"):
            assert compiler.machine_code(SimpleNamespace(source=text)).startswith(b"\x7fELF")


def test_errors_of_nvrtc_name_the_line() -> None:
    source = 'extern "C" __global__ void k(float* a) {\n  a[0] = blah;\n}\n'
    with pytest.raises(CompileError, match=r'identifier "blah" is undefined(.|\n)*\nline 2: a\[0\] = blah;$'):
        without_driver("sm_80").machine_code(SimpleNamespace(source=source))
