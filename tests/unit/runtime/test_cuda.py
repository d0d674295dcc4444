"""The CUDA device, on a stand-in for NVIDIA's package (no test here needs a GPU), and CUDA C++ as NVRTC takes it."""

from __future__ import annotations

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
from tests.support.fake_cuda import ENUMS, CUresult, FakeCUDA, functions
from tinyexplore import Tensor, TinyJit, Variable
from tinyexplore.device import Buffer, Device, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.explore import explore
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime import cuda
from tinyexplore.runtime.cuda import CUDA, CUDAError
from tinyexplore.runtime.errors import CompileError
from tinyexplore.util import Context
from tinyexplore.util.config import DEVICE_FLAGS, config_from_environment

NOT_INSTALLED = "NVIDIA's cuda-bindings is not installed: pip install 'tinyexplore[cuda]'"
Machine = Callable[..., FakeCUDA]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Makes a machine with NVIDIA's GPUs of this one; CUDA is opened anew."""
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
    cuda._opened.cache_clear()
    Device.register("CUDA", cuda.open_cuda, cuda.open_cuda)


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


def test_several_gpus_have_programs_and_memory_of_their_own(machine: Machine) -> None:
    fake = machine(2)
    with pytest.raises(DeviceUnavailable, match="CUDA:2: this machine has CUDA, CUDA:1"):
        Device["CUDA:2"]
    both = Tensor(A).shard(("CUDA", "CUDA:1"), axis=0)
    np.testing.assert_allclose((both * 2).sum(0).numpy(), (A * 2).sum(0), rtol=1e-5)
    assert Device["CUDA:1"].target.name == "CUDA:1" and Device["CUDA"].target.cpu == "sm_87"
    assert Device["CUDA"].allocator is not Device["CUDA:1"].allocator
    assert fake.calls.count("cuDevicePrimaryCtxRetain") == 2


def test_times_are_the_gpus_own(machine: Machine) -> None:
    machine()
    a = Tensor(A, device="CUDA").realize()
    view = explore(lambda: a + 1, device="CUDA", repeat=3)
    assert {time for run in view.trace.runs for time in run.times_us} == {250.0}
    assert {"uops", "cuda", "ptx"} <= {one.language for one in view.trace.programs}


def test_memory_is_managed_and_given_back(machine: Machine) -> None:
    fake = machine()
    allocator = Device["CUDA"].allocator
    memory = allocator.allocate(5000)
    assert memory.address in fake.held and cuda.is_managed(memory.part(100, 50))
    del memory
    assert allocator.empty_cache() >= 5000
    assert not fake.held


def test_out_of_memory_says_how_much_was_asked_for(machine: Machine) -> None:
    machine(memory_bytes=1 << 20)
    held = [Buffer("CUDA", 100_000, dtypes.float32).allocate()]
    with pytest.raises(MemoryError, match=r"cannot allocate [\d,]+ bytes: [\d,]+ bytes are in use"):
        held.append(Buffer("CUDA", 300_000, dtypes.float32).allocate())
    del held
    Buffer("CUDA", 200_000, dtypes.float32).allocate()  # what was kept for reuse is given back first


def test_a_kernel_that_does_not_compile_is_shown_with_its_line(machine: Machine) -> None:
    fake = machine()
    fake.log = b'kernel.cu(3): error: identifier "blah" is undefined\n\n1 error detected'
    with pytest.raises(CompileError) as caught:
        (Tensor(A, device="CUDA") * 3).numpy()
    assert re.search(
        r"NVRTC could not compile the kernel:\nkernel.cu\(3\): error.*\nline 3: \S", str(caught.value), re.S
    )
    assert fake.calls.count("nvrtcDestroyProgram") == 1


def test_a_launch_that_fails_names_kernel_and_status(machine: Machine) -> None:
    fake = machine()
    fake.launch_status = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(
        CUDAError, match=r"CUDAProgram\('\w+'\): cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS \(the words"
    ):
        (Tensor(A, device="CUDA") * 3).numpy()
    assert fake.calls[-1] == "cuGetErrorString" or "cuStreamSynchronize" in fake.calls[-3:]


def test_the_flag_chooses_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = machine()
    for name in (*DEVICE_FLAGS, "DEVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA", "1")
    with Context(DEVICE=config_from_environment().DEVICE):
        assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]
    assert "cuLaunchKernel" in fake.calls


def test_what_is_missing_is_said(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(has_driver=False)
    with pytest.raises(DeviceUnavailable, match="needs NVIDIA's driver, and none was found.*system search.\\)$"):
        Device["CUDA"]
    machine(0)
    with pytest.raises(DeviceUnavailable, match="needs an NVIDIA GPU, and the driver finds none.*CUDA_ERROR_NO_DEVICE"):
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
def test_nvrtc_takes_every_golden_text(architecture: str) -> None:
    compiler = without_driver(architecture)
    for text in read(path_of("cuda")).values():
        if not text.startswith(REFUSED) and ("mma_" not in text or architecture != "sm_75"):
            assert compiler.machine_code(SimpleNamespace(source=text)).startswith(b"\x7fELF")


def test_nvrtcs_own_words_name_the_line() -> None:
    source = 'extern "C" __global__ void k(float* a) {\n  a[0] = blah;\n}\n'
    with pytest.raises(CompileError, match=r'identifier "blah" is undefined(.|\n)*\nline 2: a\[0\] = blah;$'):
        without_driver("sm_80").machine_code(SimpleNamespace(source=source))
