"""Buffers and the host allocator: views, lifetimes, reuse, errors."""

from __future__ import annotations

import gc
import pickle
import threading
from array import array

import pytest

import tinyexplore.devices  # noqa: F401  makes the devices known
from tinyexplore.device import Buffer, BufferKey, HostAllocator
from tinyexplore.device.allocator import HUGE_PAGE, MIN_MAPPED_BYTES, size_class
from tinyexplore.dtype import dtypes
from tinyexplore.trace import BufferAllocated, BufferFreed, Recorder, recording

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 1000, 4097, MIB - 1, MIB, 3 * MIB + 5])
def test_memory_starts_at_a_cache_line_and_has_the_requested_size(nbytes: int) -> None:
    allocator = HostAllocator()
    memory = allocator.allocate(nbytes)
    view = memory.view()
    assert memory.address % 64 == 0
    assert view.nbytes == nbytes and view.format == "B"
    view[:] = bytes(range(256)) * (nbytes // 256) + bytes(nbytes % 256)
    assert bytes(view) == bytes(range(256)) * (nbytes // 256) + bytes(nbytes % 256)


@pytest.mark.parametrize("nbytes", [1, 64, 65, 1000, 100_000, MIB, 5 * MIB, 100 * MIB])
def test_a_size_class_wastes_little(nbytes: int) -> None:
    size = size_class(nbytes)
    assert nbytes <= size and size % 64 == 0
    allowed = max(64, nbytes // 8, HUGE_PAGE if nbytes >= MIN_MAPPED_BYTES else 0)
    assert size - nbytes <= allowed


def test_a_freed_block_is_reused_first() -> None:
    allocator = HostAllocator()
    for nbytes in (100, 3 * MIB):
        first = allocator.allocate(nbytes)
        address = first.address
        del first
        assert allocator.allocate(nbytes).address == address


def test_memory_lives_as_long_as_its_views() -> None:
    allocator = HostAllocator()
    memory = allocator.allocate(256)
    view = memory.view().cast("f")[8:]
    size = size_class(256)
    del memory
    gc.collect()
    assert (allocator.used_bytes, allocator.cached_bytes) == (size, 0)
    del view
    assert (allocator.used_bytes, allocator.cached_bytes) == (0, size)


def test_least_recently_used_blocks_are_freed_beyond_the_limit() -> None:
    allocator = HostAllocator(cache_bytes=5000)
    for nbytes in (2048, 1024, 4096):
        allocator.allocate(nbytes)
    assert allocator.cached_bytes == 4096
    allocator.allocate(6000)  # larger than all that may be kept: it drives nothing out
    assert (allocator.used_bytes, allocator.cached_bytes) == (0, 4096)
    assert allocator.empty_cache() == 4096
    assert allocator.cached_bytes == 0


def test_an_allocation_that_fails_reports_the_sizes() -> None:
    allocator = HostAllocator()
    kept = size_class(2 * MIB)
    allocator.allocate(2 * MIB)
    with pytest.raises(MemoryError, match=f"cannot allocate .* 0 bytes .* {kept:,} bytes"):
        allocator.allocate(1 << 60)
    assert allocator.cached_bytes == 0


def test_threads_may_allocate_and_free_together() -> None:
    allocator = HostAllocator(cache_bytes=100_000)
    failures = []

    def work(number: int) -> None:
        for round in range(200):
            memory = allocator.allocate(64 * (round % 7 + 1))
            mark = bytes([number]) * memory.nbytes
            memory.view()[:] = mark
            if bytes(memory.view()) != mark:
                failures.append((number, round))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and allocator.used_bytes == 0


def test_a_buffer_takes_memory_when_it_is_first_needed() -> None:
    buffer = Buffer("PYTHON", 4, dtypes.float32)
    assert not buffer.is_allocated and buffer.nbytes == 16
    with pytest.raises(ValueError, match=r"call allocate\(\) first"):
        buffer.memoryview()
    assert buffer.allocate() is buffer and buffer.is_allocated
    assert buffer.copyin(array("f", [1, 2, 3, 4])).copyout() == array("f", [1, 2, 3, 4]).tobytes()
    assert list(buffer.memoryview().cast("f")) == [1, 2, 3, 4]


def test_a_copy_accepts_any_format_and_order() -> None:
    import numpy as np

    half = np.array([[1.0, 2.0], [3.0, 4.0]], np.float16)
    for source in (half, half.T, half[:, ::-1], half.astype(">f2"), np.array([True, False] * 4)):
        buffer = Buffer("PYTHON", 4, dtypes.float16).copyin(source)
        assert buffer.copyout() == source.tobytes()
    assert Buffer("PYTHON", 1, dtypes.float64).copyin(np.array(2.5)).copyout() == np.array(2.5).tobytes()


def test_a_buffer_of_nothing_works() -> None:
    buffer = Buffer("PYTHON", 0, dtypes.int64).copyin(b"")
    assert buffer.copyout() == b"" and buffer.nbytes == 0
    assert Buffer.from_memory("PYTHON", dtypes.int64, b"").size == 0


def test_wrapped_memory_is_shared_and_kept_alive() -> None:
    numbers = array("i", [1, 2, 3])
    buffer = Buffer.from_memory("PYTHON", dtypes.int32, numbers)
    assert buffer.address == numbers.buffer_info()[0] and not buffer.is_readonly
    numbers[1] = 7
    assert list(buffer.memoryview().cast("i")) == [1, 7, 3]
    del numbers
    gc.collect()
    buffer.copyin(array("i", [4, 5, 6]))
    assert list(buffer.memoryview().cast("i")) == [4, 5, 6]


def test_wrapped_memory_must_be_contiguous_whole_and_aligned() -> None:
    data = memoryview(bytearray(64))
    with pytest.raises(ValueError, match="not C-contiguous"):
        Buffer.from_memory("PYTHON", dtypes.uint8, data[::2])
    with pytest.raises(ValueError, match="7 bytes .*float32"):
        Buffer.from_memory("PYTHON", dtypes.float32, data[:7])
    with pytest.raises(ValueError, match="not aligned to float64"):
        Buffer.from_memory("PYTHON", dtypes.float64, data[1:9])


def test_memory_that_may_only_be_read_is_not_written() -> None:
    buffer = Buffer.from_memory("PYTHON", dtypes.uint8, b"abc")
    assert buffer.is_readonly and buffer.memoryview().readonly
    with pytest.raises(ValueError, match="may only be read"):
        buffer.copyin(b"xyz")


def test_a_copy_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="holds 8 bytes; 4 were given"):
        Buffer("PYTHON", 2, dtypes.float32).copyin(bytes(4))


def test_buffers_travel_by_pickle_with_their_content() -> None:
    buffer = Buffer("PYTHON", 3, dtypes.int8).copyin(b"\1\2\3")
    again = pickle.loads(pickle.dumps(buffer))
    assert (again.copyout(), again.dtype, again.id != buffer.id) == (b"\1\2\3", dtypes.int8, True)
    assert not pickle.loads(pickle.dumps(Buffer("PYTHON", 3, dtypes.int8))).is_allocated


def test_the_recorder_records_allocated_and_freed_memory() -> None:
    recorder = Recorder()
    with recording(recorder):
        buffer = Buffer("PYTHON", 2, dtypes.float64).allocate()
        key = BufferKey(buffer.id, "PYTHON", dtypes.float64, 2)
        view = buffer.memoryview()
        del buffer
        assert recorder.events == [BufferAllocated(key)]
        del view
    assert recorder.events == [BufferAllocated(key), BufferFreed(key)]
    assert key.nbytes == 16
