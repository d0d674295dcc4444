"""The GPU device (OpenCL): its kernels, the state after an interrupt, integer overflow, and threads."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tests.backends.programs import (
    GPUS,
    OPENCL_CPUS,
    WORK_ITEMS,
    call,
    compiled,
    end,
    linear,
    load,
    loop,
    pointer,
    store,
    under,
)
from tests.support.kernels import compile_all
from tinyexplore import Context, Tensor
from tinyexplore.device import Buffer, Device, DeviceUnavailable
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.engine import ExecItem, schedule
from tinyexplore.execute.runner import Runner
from tinyexplore.runtime.opencl import SHARES_PER_THREAD, OpenCL, SharedMemory, _open_opencl
from tinyexplore.target import machine
from tinyexplore.uop import AxisKind, Ops, UOp

f32 = dtypes.float32
both_models = pytest.mark.parametrize("name", [WORK_ITEMS, "GPU"])


@pytest.fixture(autouse=True)
def driver() -> None:
    if WORK_ITEMS not in GPUS:
        pytest.skip("GPU: no OpenCL driver on this machine")


@pytest.fixture
def opencl_cpu() -> None:
    if not OPENCL_CPUS:
        pytest.skip("GPU: no OpenCL driver for the CPU on this machine")


def runner_of(tensor: Tensor) -> Runner:
    """Of the one kernel that computes `tensor`."""
    (item,) = schedule([tensor.lazydata])
    (runner,) = compile_all([item])
    assert runner is not None
    return runner


@pytest.mark.usefixtures("opencl_cpu")
def test_a_cpu_gets_vectors_and_threads_and_where_target_names_a_gpu_work_groups() -> None:
    texts = []
    for name in ("GPU", WORK_ITEMS):
        with under(name)[1]:
            x = Tensor(np.ones((1024, 1024), np.float32), device="GPU").contiguous().realize()
            texts.append(runner_of((x + 1).sum(1)).spec.source)
            words = Device["GPU"].target.describe()
            assert ("-bit vectors" in words) == (name == "GPU") != ("work-items" in words)
    of_cpu, of_gpu = texts
    assert "vload" in of_cpu and "get_global_size(0)" in of_cpu and "barrier" not in of_cpu
    assert "vload" not in of_gpu and "get_local_id(0)" in of_gpu


@pytest.mark.usefixtures("opencl_cpu")
def test_target_chooses_the_width_of_vectors_on_a_cpu_and_no_other_architecture() -> None:
    if machine() == "x86_64":
        for level, lanes in (("x86-64-v2", 4), ("x86-64-v3", 8), ("x86-64-v4", 16)):
            with Context(TARGET=level):
                assert f"vload{lanes}(0, " in runner_of(Tensor(np.ones(4096, np.float32), device="GPU") + 1).spec.source
    with Context(TARGET="wasm32"), pytest.raises(DeviceUnavailable, match="the GPU device is a CPU here"):
        Device["GPU"]


@pytest.mark.usefixtures("opencl_cpu")
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_work_items_divide_the_thread_axis(threads: int) -> None:
    with Context(THREADS=threads):
        x = Tensor(np.arange(7 * 65536, dtype=np.float32).reshape(7, 65536), device="GPU").contiguous().realize()
        runner = runner_of(x * 2 + 1)
        assert "get_global_size(0)" in runner.spec.source and runner.spec.thread_extent is None
        np.testing.assert_array_equal((x * 2 + 1).numpy(), x.numpy() * 2 + 1)
        units = runner.program.opencl.device.max_compute_units  # type: ignore[attr-defined]
        assert runner.program.shares(1000) == (threads if 0 < threads < units else units * SHARES_PER_THREAD)  # type: ignore[attr-defined]
        assert runner.program.shares(1) == runner.program.shares(0) == 1  # type: ignore[attr-defined]


@pytest.mark.usefixtures("opencl_cpu")
def test_each_work_item_has_scratch_memory_of_its_own() -> None:
    for size in (64, 300_000):  # on the stack; too large for it
        out, tile = pointer(0, f32, 40), UOp(Ops.DEFINE_LOCAL, PtrDType(f32, size, "local"), (), "tile")
        row, write, read = loop(10, 0, AxisKind.THREAD), loop(4, 1), loop(4, 2)
        kept = store(tile, write * (size // 4), (row * 4 + write).cast(f32))
        uops = linear(out, tile, row, row * 4, write, kept, end(write), read)
        uops = linear(*uops, store(out, row * 4 + read, load(tile, read * (size // 4))), end(read), end(row))
        (found,) = call(compiled("GPU", uops), [(f32, 40)], [])
        assert found == [float(i) for i in range(40)]


@both_models
def test_a_kernel_that_was_interrupted_has_ended(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler of the interrupt may repair its memory: no kernel may write there afterwards."""
    size = 640
    with under(name)[1]:
        x = Tensor(np.ones((size, size), np.float32), device="GPU").contiguous().realize()
        runner = runner_of(x @ x)
    given = [x.lazydata.base.buffer, Buffer("GPU", size * size, x.dtype)]
    out, *others = (given[1] if place in runner.spec.writes else given[0] for place in range(runner.spec.n_buffers))
    cl = runner.program.opencl.cl  # type: ignore[attr-defined]
    enqueue = cl.enqueue_nd_range_kernel

    def interrupted(*args: Any) -> None:
        enqueue(*args)
        raise KeyboardInterrupt

    run = runner.program.bind([out, *others])
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(0, 0)
    content = bytes(out.copyout())
    assert np.frombuffer(content, np.float32).tolist() == [float(size)] * size * size


@pytest.fixture
def one_address(opencl_cpu: None) -> OpenCL:
    """The device, where it and the host use memory by one address: PoCL does."""
    opencl = _open_opencl()
    assert isinstance(opencl.allocator, SharedMemory)
    return opencl


def test_kernels_are_launched_and_the_host_waits_where_it_reads(
    one_address: OpenCL, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    finish = one_address.finish

    def finishing(names: Any, pending: int) -> None:
        waits.append(pending)
        finish(names, pending)

    monkeypatch.setattr(one_address, "finish", finishing)
    x = (Tensor(np.arange(4096, dtype=np.float32), device="GPU") + 0).realize()
    one_address.synchronize()
    waits.clear()
    first = (x + 1).realize()
    second = (first * 2).realize()
    assert waits == []
    np.testing.assert_array_equal(second.numpy(), (np.arange(4096, dtype=np.float32) + 1) * 2)
    assert waits == [2]
    np.testing.assert_array_equal(first.numpy(), np.arange(4096, dtype=np.float32) + 1)
    assert waits == [2]  # it was waited for with the other
    third = (second - 1).realize()
    Device["GPU"].synchronize()
    assert waits == [2, 1] and third.numpy()[0] == 1
    assert waits == [2, 1]


@pytest.mark.usefixtures("one_address")
def test_a_reused_block_keeps_the_order_of_launches() -> None:
    """The host writes to memory that a kernel may still read: it waits; another kernel comes after it anyhow."""
    size = 512
    x = (Tensor(np.ones((size, size), np.float32), device="GPU") + 0).realize()
    for turn in range(20):
        y = (x * turn).contiguous().realize()
        product = (y @ x).realize()
        del y  # its block is the next one's, while the product still runs
        filled = Tensor(np.full((size, size), 7, np.float32), device="GPU").contiguous().realize()
        assert product.numpy().tolist() == [[float(turn * size)] * size] * size
        assert (filled == 7).all().item()


@pytest.mark.usefixtures("one_address")
def test_slices_and_large_blocks_are_in_shared_memory() -> None:
    x = np.arange(1 << 20, dtype=np.float32)
    t = (Tensor(x, device="GPU") + 0).realize()
    address = t.lazydata.base.buffer.allocate().address
    assert address % 64 == 0
    for start in (0, 1, 16, 37):
        np.testing.assert_array_equal((t[start : start + 1000] + 1).numpy(), x[start : start + 1000] + 1)
    with under(WORK_ITEMS)[1]:  # another Target of the same device
        np.testing.assert_array_equal((t * 2).numpy(), x * 2)


def test_wrapped_memory_is_synchronized(one_address: OpenCL) -> None:
    """A NumPy array: the caller may change it after the call."""
    x = np.arange(4096, dtype=np.float32)
    y = (Tensor(x, device="GPU") + 1).realize()
    assert one_address.done == one_address.launched
    x[:] = 0
    np.testing.assert_array_equal(y.numpy(), np.arange(4096, dtype=np.float32) + 1)


@pytest.mark.parametrize("shares", [True, False])
def test_a_device_with_its_own_addresses_gets_copies_of_its_inputs(
    one_address: OpenCL, monkeypatch: pytest.MonkeyPatch, shares: bool
) -> None:
    """As of OpenCL 1.2: in the host's memory where it shares that, else by copies."""
    monkeypatch.setattr(one_address, "is_shared", lambda memory: False)
    monkeypatch.setattr(one_address, "shares_memory", shares)
    x = Tensor(np.arange(4096, dtype=np.float32), device="GPU").contiguous().realize()
    y = ((x + 1).realize() * 3).realize()
    assert bytes(y.lazydata.base.buffer.copyout()) == ((np.arange(4096, dtype=np.float32) + 1) * 3).tobytes()


def test_a_failed_allocation_of_the_driver_is_a_memory_error(one_address: OpenCL) -> None:
    with pytest.raises(MemoryError, match=f"{1 << 50:,}"):
        one_address.allocator.allocate(1 << 50)
    assert one_address.allocator.allocate(64).nbytes == 64


@both_models
def test_signed_integers_wrap_in_c(name: str) -> None:
    """It may take -x or x + 1 of a signed int for what it would be without a limit, and leave a comparison out."""
    for dtype in (np.int32, np.int64):
        limits = np.iinfo(dtype)
        x = np.tile(np.array([limits.min, limits.max, -1, 5], dtype), 8)
        t = Tensor(x, device="GPU")
        with np.errstate(over="ignore"), under(name)[1]:
            np.testing.assert_array_equal((abs(t) % 9).numpy(), np.abs(x) % 9)
            np.testing.assert_array_equal((t + 1 > t).numpy(), x + dtype(1) > x)
            np.testing.assert_array_equal((t * t < 0).numpy(), x * x < 0)


def test_kernels_are_timed_by_the_devices_clock() -> None:
    """Seconds of the kernel alone: fewer than the host counts around it, and more where there is more to do."""
    told = []
    for size in (32, 256):
        x = Tensor(np.ones((size, size), np.float32), device="GPU").contiguous().realize()
        (item,) = schedule([(x @ x).lazydata])
        (runner,) = compile_all([item])
        ready = ExecItem(item, runner, None, item.buffers)
        (ready.execute(), ready.measure(1))  # bound, and the memory mapped
        began = time.perf_counter()
        least = min(ready.measure(3))
        assert 0 < least < time.perf_counter() - began
        told.append(least)
        bound: Any = ready.bound
        assert isinstance(bound.timed(), float)
    assert told[1] > told[0]
