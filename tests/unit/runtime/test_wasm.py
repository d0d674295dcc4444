"""The WASM device: its memory, buffers outside it, scratch memory, and a machine without wasmtime."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.support.interrupts import Interrupter
from tests.support.kernels import compile_all
from tests.support.missing import without_package
from tinyexplore import Context, Device, Tensor, TinyJit, nn
from tinyexplore.device import DeviceUnavailable
from tinyexplore.engine import schedule
from tinyexplore.runtime import wasm


def test_without_wasmtime_the_device_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    without_package(monkeypatch, "wasmtime")
    with pytest.raises(DeviceUnavailable, match=r"pip install 'tinyexplore\[wasm\]'"):
        wasm.Engine()


def test_freed_memory_is_reused_and_merged() -> None:
    memory = wasm.Engine().allocator
    blocks = [memory.allocate(3 << 20) for _ in range(4)]
    addresses = [block.address for block in blocks]
    assert all(memory.holds(block) and block.address % 64 == 0 for block in blocks)
    assert len({address % 4096 for address in addresses}) > 1  # not all at the same place in a page
    end = memory._end
    del blocks
    again = memory.allocate(3 << 20)
    assert again.address in addresses and memory._end == end
    del again
    memory.empty_cache()
    assert memory.allocate(12 << 20).address <= max(addresses) and memory._end == end
    with pytest.raises(MemoryError, match="cannot allocate 5,"):
        memory.allocate(5 << 30)


def test_memory_grows_while_a_kernel_runs_on_another_thread() -> None:
    x = Tensor(np.arange(1 << 18, dtype=np.float32), device="WASM") + 0
    x.realize()
    jitted = TinyJit(lambda x: (x * 2 + 1).realize())
    found: list[float] = []

    def run() -> None:
        for _ in range(60):
            found.append(jitted(x)[1000].item())

    thread = threading.Thread(target=run)
    thread.start()
    allocator = Device["WASM"].allocator
    held = [allocator.allocate(5 << 20) for _ in range(20)]
    thread.join()
    assert found == [2001.0] * 60 and len({block.address for block in held}) == 20


def test_numpy_arrays_are_read_and_written_in_place() -> None:
    numbers = np.arange(12, dtype=np.float32)
    x = Tensor(numbers, device="WASM")
    total = TinyJit(lambda x: (x * 2).realize())
    for _ in range(4):
        numbers += 1
        np.testing.assert_array_equal(total(Tensor(numbers, device="WASM")).numpy(), numbers * 2)
    np.testing.assert_array_equal((x + 1).numpy(), numbers + 1)
    np.testing.assert_array_equal((x.to("LLVM") + x.to("WASM").to("LLVM")).numpy(), numbers * 2)


def test_training_equals_training_on_llvm() -> None:
    """The digits' network, for some steps: the weights stay those of the LLVM device."""
    pictures = np.random.default_rng(0).random((3, 16, 1, 8, 8), dtype=np.float32)
    labels = np.random.default_rng(1).integers(0, 10, (3, 16)).astype(np.int32)
    found = {}
    for device in ("LLVM", "WASM"):
        with Context(DEVICE=device), Tensor.train():
            Tensor.manual_seed(3)
            first, last = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(8 * 4 * 4, 10)
            optimizer = nn.optim.Adam([first.weight, first.bias, last.weight, last.bias], lr=5e-3)
            for batch, expected in zip(pictures, labels):
                optimizer.zero_grad()
                scores = last(first(Tensor(batch)).relu().max_pool2d(2).flatten(1))
                loss = scores.sparse_categorical_crossentropy(Tensor(expected))
                loss.backward()
                optimizer.step()
            assert last.weight.device == device
            found[device] = [loss.item(), first.weight.numpy(), last.weight.numpy()]
    for ours, theirs in zip(found["WASM"], found["LLVM"]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_interrupt_while_a_kernel_is_compiled_is_raised() -> None:
    """wasmtime's finalizers, in which it would be lost, run in another thread."""
    items = schedule([(Tensor.empty(5, 7, device="WASM").realize() * 3).sum(1).lazydata])
    with Context(CACHELEVEL=0):
        (runner,) = compile_all(items)
        assert runner is not None
        spec, interrupter = runner.spec, Interrupter()
        places = interrupter.count(lambda: Device["WASM"].compile(spec))
        heard = [interrupter.run(lambda: Device["WASM"].compile(spec), place) for place in range(1, places + 1)]
    assert sum(heard) > 10 and interrupter.lost == []


def test_two_instances_share_programs_and_memory() -> None:
    with Context(DEVICE="WASM:1"):
        assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]
    assert Device["WASM:1"] is Device["WASM"]
