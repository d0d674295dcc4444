"""The WASM device: kernels as WebAssembly modules, run by wasmtime in this process.

Advantage: a page without Python can run them too. A product of 64 × 64 takes 27 µs; the interpreter takes 46 ms (Intel
Xeon).

All buffers of the device are in one linear memory, which every module imports; its addresses have 32 bits. A buffer
that wraps foreign memory is copied there for the duration of a call. wasmtime compiles a module to machine code, which
is stored on disk (`runtime/disk_cache.py`). Calls run one at a time, because a wasmtime Store is for one thread.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from tinyexplore.device import Buffer, DeviceInterface, DeviceUnavailable, HostAllocator, Memory
from tinyexplore.device.allocator import (
    ALIGNMENT,
    HUGE_PAGE,
    LINES_PER_PAGE,
    MIN_MAPPED_BYTES,
    STAGGER_LINES,
    STAGGERS,
    Block,
)
from tinyexplore.dtype import dtypes
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.renderer.wasm import WASMRenderer, assemble
from tinyexplore.runtime.disk_cache import load_cached
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.native import ForeignProgram, check_arguments
from tinyexplore.target import WASM32, Target, current_choice
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Ops
from tinyexplore.util.locks import new_in_children

T = TypeVar("T")

PAGE_BYTES = 64 << 10
_KINDS = {"i32": 0, "i64": 1}  # wasmtime's kinds of values
MAX_PAGES = 1 << 16
INSTANCES = 10_000_000  # most instances in a Store; they are small
INSTANCE_BYTES = 16 << 10  # bytes of a program beside its machine code
MISSING = (
    "the WASM device runs its kernels in wasmtime, which is not installed: pip install 'tinyexplore[wasm]', "
    "or choose another device"
)


class LinearMemory(HostAllocator):
    """The memory of all modules: at most 4 GiB. Freed blocks are kept for reuse, because linear memory cannot
    shrink."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(cache_bytes=MAX_PAGES * PAGE_BYTES)
        self._get_engine = engine
        wasmtime = engine.wasmtime
        self.memory = wasmtime.Memory(engine.store, wasmtime.MemoryType(wasmtime.Limits(1, MAX_PAGES)))
        self.start = self._base()
        self._end = PAGE_BYTES
        self._count = 0
        self._free = [(ALIGNMENT, PAGE_BYTES - ALIGNMENT)]  # (address, size), in order; no buffer is at address 0

    def _base(self) -> int:
        address = ctypes.cast(self.memory.data_ptr(self._get_engine.store), ctypes.c_void_p).value
        assert address is not None
        return address

    def holds(self, memory: Memory) -> bool:
        """Whether a module can address `memory`."""
        return 0 <= memory.address - self.start <= self._end - memory.nbytes

    def empty_cache(self) -> int:
        """Merges adjacent free blocks."""
        with self._lock:
            freed = self.cached_bytes
            free_blocks = list(self._free)
            for blocks in self._kept.values():
                free_blocks += [
                    (freed_memory.block.address - self.start, freed_memory.block.size) for freed_memory in blocks
                ]
                blocks.clear()
            self._free = _merge_blocks(free_blocks)
        return freed

    def _map(self, size: int) -> Block:
        for number, (address, free_bytes) in enumerate(self._free):
            gap = self._gap(address, size)
            if free_bytes >= gap + size:
                blocks = [(address, gap), (address + gap + size, free_bytes - gap - size)]
                self._free[number : number + 1] = [block for block in blocks if block[1]]
                self._count += 1
                return Block(self.start + address + gap, size, self)
        self._grow(size + HUGE_PAGE)
        return self._map(size)

    def _gap(self, address: int, size: int) -> int:
        """Returns the offset after `address` at which a block begins, so that large blocks have different offsets in
        a page."""
        if size < MIN_MAPPED_BYTES:
            return 0
        offset = self._count % STAGGERS * STAGGER_LINES % LINES_PER_PAGE * ALIGNMENT
        return (offset - address) % (LINES_PER_PAGE * ALIGNMENT)

    def _grow(self, size: int) -> None:
        """Adds pages: half of the current size if possible."""
        pages = self._end // PAGE_BYTES
        new_pages = min(max(-(-size // PAGE_BYTES), pages // 2), MAX_PAGES - pages)
        if new_pages * PAGE_BYTES < size:
            raise MemoryError(f"cannot allocate {size:,} bytes: a linear memory has at most 4 GiB; free tensors (del)")
        with self._get_engine.lock:  # no kernel may run meanwhile
            try:
                self.memory.grow(self._get_engine.store, new_pages)
            except self._get_engine.wasmtime.WasmtimeError as error:
                raise MemoryError(f"wasmtime could not grow the linear memory by {new_pages} pages") from error
        if self._base() != self.start:
            raise MemoryError(
                "wasmtime has moved the linear memory, so buffers have invalid addresses: restart the process"
            )
        self._free = _merge_blocks([*self._free, (self._end, new_pages * PAGE_BYTES)])
        self._end += new_pages * PAGE_BYTES


def _merge_blocks(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for address, size in sorted(blocks):
        if spans and sum(spans[-1]) == address:
            spans[-1] = spans[-1][0], spans[-1][1] + size
        else:
            spans.append((address, size))
    return spans


class Engine:
    """wasmtime, with one Store and one memory for all modules of this process."""

    def __init__(self) -> None:
        try:
            import wasmtime  # noqa: PLC0415 (only who opens the device has it)
        except ImportError as error:
            raise DeviceUnavailable(MISSING) from error
        from importlib.metadata import version  # noqa: PLC0415 (start-up: it reads mail, which a page with engine has not)

        self.wasmtime = wasmtime
        settings = wasmtime.Config()
        settings.cranelift_opt_level = "speed"
        self.engine = wasmtime.Engine(settings)
        self.store = wasmtime.Store(self.engine)
        self.store.set_limits(instances=INSTANCES)
        self.lock = threading.RLock()
        self.allocator = LinearMemory(self)
        self.version = f"wasmtime {version('wasmtime')}"
        new_in_children(self, "lock")
        new_in_children(self.allocator, "_lock")

    def compile(self, spec: ProgramSpec) -> WASMProgram:
        """Returns `spec` as a module, compiled to machine code now or read from disk."""
        return load_cached(
            spec.key,
            lambda: _run_without_signals(lambda: self._compile(spec)),
            lambda code: _run_without_signals(lambda: self._load(spec, code)),
        )

    def _compile(self, spec: ProgramSpec) -> bytes:
        binary = assemble(spec.source)
        module = self.wasmtime.Module(self.engine, binary)
        return len(binary).to_bytes(4, "little") + bytes(module.serialize())

    def _load(self, spec: ProgramSpec, code: bytes) -> WASMProgram:
        with self.lock:
            module = self.wasmtime.Module.deserialize(self.engine, code[4:])
            instance = self.wasmtime.Instance(self.store, module, [self.allocator.memory])
            exports: Any = instance.exports(self.store)
            scratch = exports.get("scratch")
            nbytes = 0 if scratch is None else scratch.value(self.store)
            function = exports[spec.name]
            parameter_types = [str(parameter_type) for parameter_type in function.type(self.store).params]
        return WASMProgram(self, spec, function, parameter_types, nbytes, len(code), int.from_bytes(code[:4], "little"))

    def quick_call(
        self, function: Any, wasm_types: Sequence[str], arguments: Sequence[int]
    ) -> Callable[[], bool] | None:
        """Returns a function that calls `function` with integers of these kinds. Their wasmtime values are made once,
        not per call.

        A call takes 10 µs instead of 200, and creates no objects with Python finalizers, in which an interrupt would be
        lost. It returns whether the call succeeded; a second call by wasmtime's API then gives the error. None if this
        version of wasmtime has another internal layout.
        """
        try:
            raw = importlib.import_module("wasmtime._bindings")
            values = (raw.wasmtime_val_t * len(arguments))()
            for value, number, wasm_type in zip(values, arguments, wasm_types):
                value.kind = _KINDS[wasm_type]
                setattr(value.of, wasm_type, number)
            no_values, trap = (raw.wasmtime_val_t * 0)(), ctypes.POINTER(raw.wasm_trap_t)()
            context, address, trap_location = self.store._context(), ctypes.byref(function._func), ctypes.byref(trap)
            call, count = raw.wasmtime_func_call, len(arguments)
        except (ImportError, AttributeError, KeyError):
            return None
        return lambda: not call(context, address, values, count, no_values, 0, trap_location) and not trap


class WASMProgram:
    """A function of a module.

    kinds: the wasmtime kinds of its parameters.
    code_bytes: the module's size.
    nbytes: the bytes of the module with its machine code.
    """

    entry_address: int | None = None
    refusal = ""

    def __init__(
        self,
        engine: Engine,
        spec: ProgramSpec,
        function: Any,
        parameter_types: Sequence[str],
        scratch_bytes: int,
        nbytes: int,
        code_bytes: int,
    ) -> None:
        self.engine = engine
        self.spec = spec
        self.function = function
        self.kinds = parameter_types
        self.scratch_bytes = scratch_bytes
        self.nbytes = nbytes + INSTANCE_BYTES
        self.code_bytes = code_bytes
        self._scratch: Memory | None = None

    def __repr__(self) -> str:
        return f"WASMProgram({self.spec.name!r})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function of (start, stop) that runs on `buffers`."""
        check_arguments(self.spec, buffers, values)
        memories = [buffer.allocate().memory for buffer in buffers]
        engine, allocator = self.engine, self.engine.allocator
        foreign = [slot for slot, memory in enumerate(memories) if not allocator.holds(memory)]
        own_memories = [allocator.allocate(x.nbytes) if slot in foreign else x for slot, x in enumerate(memories)]
        if self.scratch_bytes and self._scratch is None:
            self._scratch = allocator.allocate(self.scratch_bytes)
        scratch_arguments = [] if self._scratch is None else [self._scratch.address - allocator.start]
        arguments = [*(memory.address - allocator.start for memory in own_memories), *values, *scratch_arguments]
        written_slots = [slot for slot in foreign if slot in self.spec.writes]
        threaded = self.spec.thread_end is not None
        call = None if threaded else engine.quick_call(self.function, self.kinds, arguments)

        def run(start: int, stop: int) -> None:
            with engine.lock:
                for slot in foreign:
                    _copy(own_memories[slot], memories[slot])
                if call is None or not call():
                    self.function(engine.store, *arguments, *((start, stop) if threaded else ()))
                for slot in written_slots:
                    _copy(memories[slot], own_memories[slot])

        return run


def _copy(target: Memory, source: Memory) -> None:
    source.check_backed()
    ctypes.memmove(target.address, source.address, source.nbytes)


def _run_without_signals(work: Callable[[], T]) -> T:
    """Calls `work` on a separate thread and returns its result. This thread waits and receives signals.

    wasmtime's objects have Python finalizers. An exception that a signal handler raises in a finalizer would be printed
    and lost.
    """
    results: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            finished.release()

    finished = threading.Lock()
    finished.acquire()
    try:
        start_new_thread(run, ())  # a Thread has weak references, whose callbacks can be interrupted, too
    except RuntimeError:  # no further thread can start
        return work()
    finished.acquire()
    if failed:
        raise failed[0]
    return results[0]


@cache
def _get_engine() -> Engine:
    return _run_without_signals(Engine)


def wasm_target(text: str = "", name: str = "WASM") -> Target:
    """Returns the Target of modules, for any engine that runs them, for the device `name`. `text`: the setting
    TARGET."""
    return Target(
        name=name,
        arch=WASM32,
        cpu=WASM32,
        features="+simd128",
        vector_bytes=16,
        vector_registers=16,
        threads=1,
        l1_bytes=32 << 10,
        l2_bytes=256 << 10,
        native_ops=frozenset({Ops.SQRT, Ops.FLOOR}),
        native_dtypes=(dtypes.float32, dtypes.float64),
        target_setting=text,
        flops_per_ns=8,
    )


def open_wasm() -> DeviceInterface:
    """Opens the WASM device. Raises DeviceUnavailable if wasmtime is not installed."""
    engine = _get_engine()
    target = wasm_target(current_choice().text)
    renderer = WASMRenderer(target, engine.version)
    return DeviceInterface("WASM", target, engine.allocator, renderer, engine.compile, _no_listings)


def wasm_text_device(name: str, text: str) -> DeviceInterface:
    """Returns the device `name` for TARGET=wasm32. It writes modules but runs none, with or without wasmtime."""
    refusal = f"modules for {WASM32} are written here, not run; the WASM device runs them, device='WASM'"
    target = wasm_target(text, name)

    def compiled(spec: ProgramSpec) -> WASMText:
        return WASMText(spec, refusal, assemble(spec.source))

    return DeviceInterface(name, target, HOST_ALLOCATOR, WASMRenderer(target), compiled, _no_listings, refusal)


class WASMText(ForeignProgram):
    """A module for display."""

    def __init__(self, spec: ProgramSpec, refusal: str, binary: bytes) -> None:
        super().__init__(spec, refusal, b"")
        self.code_bytes = len(binary)


def _no_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Returns no listings: wasmtime's machine code is private to it."""
    return []
