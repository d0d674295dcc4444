"""Shared parts of the devices that run machine code: binding a compiled entry to buffers, and the properties of the
CPU."""

from __future__ import annotations

import ctypes
import os
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinyexplore.device import Buffer, DeviceUnavailable, Memory
from tinyexplore.dtype import DType
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.target import LAST_CACHE_BYTES, NATIVE, Target, TargetChoice, choice_of, core_count, machine
from tinyexplore.target.caches import SEQUENTIAL_READS
from tinyexplore.uop import Ops

_SYMBOL_TABLE, _FUNCTION = 2, 2  # bytes of ELF's section headers, and of its symbols
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)  # a call of this type releases the GIL


class NativeProgram:
    """Machine code with the entry `name_entry(buffers, start, stop)`.

    entry_address: the address of the entry.
    owner: keeps the code loaded.
    nbytes: approximate bytes of process memory that it takes.
    code_bytes: bytes of its instructions.
    """

    refusal = ""

    def __init__(
        self,
        spec: ProgramSpec,
        entry_address: int,
        owner: Any,
        nbytes: int,
        unaligned: Callable[[], NativeProgram] | None = None,
        code_bytes: int = 0,
    ) -> None:
        self.spec = spec
        self.nbytes = nbytes
        self.code_bytes = code_bytes
        self._unaligned = unaligned
        self._unaligned_made: NativeProgram | None = None
        self.entry_address: int = entry_address
        self.owner = owner
        self._entry = _ENTRY(entry_address)

    def __repr__(self) -> str:
        return f"NativeProgram({self.spec.name!r} at {self.entry_address:#x})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> BoundProgram:
        """Returns a function of (start, stop) that runs on `buffers`, from any thread and without the GIL.

        values: the values of the kernel's Variables, which follow the addresses in `pointers`.
        """
        check_arguments(self.spec, buffers, values)
        memories = [buffer.allocate().memory for buffer in buffers]
        variant = self.variant_for(buffers)
        if variant is not self:
            return variant.bind(buffers, values)
        pointers = array("Q", [*(memory.address for memory in memories), *values] or [0])
        return BoundProgram(self, memories, pointers)

    def variant_for(self, buffers: Sequence[Buffer]) -> NativeProgram:
        """Returns this program, or its variant for buffers that do not start at a cache line (wrapped memory need
        not)."""
        if all(buffers[position].address % 64 == 0 for position in self.spec.aligned) or self._unaligned is None:
            return self
        if self._unaligned_made is None:
            self._unaligned_made = self._unaligned()
        return self._unaligned_made


class ForeignProgram:
    """Machine code for display. This machine cannot execute it because of `refusal`."""

    entry_address: int | None = None

    def __init__(self, spec: ProgramSpec, refusal: str, code: bytes) -> None:
        self.spec = spec
        self.refusal = refusal
        self.nbytes = 0
        self.code_bytes = function_bytes(code)

    def __repr__(self) -> str:
        return f"ForeignProgram({self.spec.name!r} for {self.spec.target.cpu})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Raises DeviceUnavailable."""
        raise cannot_run(self.spec.target.target_setting, self.refusal)


class BoundProgram:
    """A native program and its buffers. Call it with (start, stop), or pass its addresses to machine code."""

    __slots__ = ("entry_address", "table_address", "pointers", "records", "_entry", "_keep")

    def __init__(self, program: NativeProgram, memories: list[Memory], pointers: array[int]) -> None:
        self.entry_address = program.entry_address
        self.pointers = pointers  # the table at `table_address`; code that replaces an entry keeps its memory alive
        self.table_address: int = pointers.buffer_info()[0]
        # lists of calls that contain this call, each with the position of its extent and parts
        self.records: list[tuple[array[int], int]] = []
        self._entry = program._entry
        self._keep = (program, memories)

    def __call__(self, start: int, stop: int) -> None:
        self._entry(self.table_address, start, stop)

    def give_values(self, values: Sequence[int]) -> None:
        """Sets the values of the Variables, which are last in the table."""
        for slot, value in enumerate(values, len(self.pointers) - len(values)):
            self.pointers[slot] = value

    def divide(self, extent: int, part_count: int) -> None:
        """Sets the extent of the THREAD axis and the number of parts in all lists that contain this call."""
        for record, offset in self.records:
            record[offset] = extent
            record[offset + 1] = max(1, min(part_count, extent))


def check_arguments(spec: ProgramSpec, buffers: Sequence[Buffer], values: Sequence[int]) -> None:
    """Raises ValueError if `buffers` and `values` do not match the arguments of `spec`."""
    if len(values) != len(spec.variables):
        names = ", ".join(variable.arg[0] for variable in spec.variables) or "no Variables"
        raise ValueError(f"kernel {spec.name} takes {names}; {len(values)} values were given")
    if len(buffers) != spec.n_buffers:
        raise ValueError(f"kernel {spec.name} takes {spec.n_buffers} buffers; {len(buffers)} were given")
    for position in spec.writes:
        if buffers[position].is_readonly:
            raise ValueError(
                f"kernel {spec.name} writes to buffer {position}, {buffers[position]!r}, whose memory may only be read"
            )


def function_bytes(code: bytes) -> int:
    """Returns the bytes of the functions in an object file or a shared object; 0 if it is not a 64-bit ELF file."""
    if code[:6] != b"\x7fELF\x02\x01":
        return 0
    (sections,) = struct.unpack_from("<Q", code, 40)
    entry_bytes, count = struct.unpack_from("<HH", code, 58)
    for number in range(count):
        section_type, _, _, offset, size = struct.unpack_from("<IQQQQ", code, sections + number * entry_bytes + 4)
        if section_type == _SYMBOL_TABLE:
            symbols = struct.iter_unpack("<IBBHQQ", code[offset : offset + size])
            return sum([size for _, info, _, section, _, size in symbols if info & 15 == _FUNCTION and section])
    return 0


def cache_bytes(level: int, default: int) -> int:
    """Returns the size of the data cache of `level` of the first core, or `default` if the system does not report
    it."""
    root = "/sys/devices/system/cpu/cpu0/cache"
    try:
        for entry in sorted(os.listdir(root)):
            if not entry.startswith("index"):
                continue
            sizes = {}
            for name in ("level", "type", "size"):
                with open(f"{root}/{entry}/{name}", encoding="utf-8") as file:
                    sizes[name] = file.read().strip()
            if sizes["level"] == str(level) and sizes["type"] in ("Data", "Unified"):
                unit = {"K": 1 << 10, "M": 1 << 20}.get(sizes["size"][-1], 1)
                return int(sizes["size"].rstrip("KM")) * unit
    except (OSError, ValueError, KeyError):
        pass
    return default


def cpu_target(
    name: str,
    cpu: str,
    features: str,
    native_ops: frozenset[Ops],
    native_dtypes: tuple[DType, ...],
    choice: TargetChoice | None = None,
) -> Target:
    """Returns the Target of a CPU.

    features: LLVM's list, "+avx2,+fma,…".
    choice: the properties that TARGET names; other properties are this machine's.
    """
    choice = choice or choice_of(NATIVE)
    feature_names = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    vector_bytes, registers = 16, 16
    if choice.arch == "x86_64":
        if "avx512f" in feature_names:
            vector_bytes, registers = 64, 32
        elif "avx2" in feature_names:
            vector_bytes = 32
    elif choice.arch == "aarch64":
        registers = 32
    elif choice.arch == "riscv64":
        vector_bytes, registers = riscv_vector_bytes(feature_names), 32
    streams, prefetches_streams = SEQUENTIAL_READS.get(cpu, (Target.streams, Target.prefetches_streams))
    return Target(
        name=name,
        arch=choice.arch,
        cpu=cpu,
        features=features,
        vector_bytes=vector_bytes,
        vector_registers=registers,
        threads=choice.threads or core_count(),
        l1_bytes=choice.l1_bytes or cache_bytes(1, 32 << 10),
        l2_bytes=choice.l2_bytes or cache_bytes(2, 256 << 10),
        native_ops=native_ops,
        native_dtypes=native_dtypes,
        target_setting=choice.text,
        l3_bytes=choice.l3_bytes or LAST_CACHE_BYTES,
        streams=streams,
        prefetches_streams=prefetches_streams,
    )


def riscv_vector_bytes(features: set[str]) -> int:
    """Returns the least width of a vector register. RISC-V leaves it to each CPU, and LLVM's features state it in
    bits."""
    return max((int(name[3:-1]) // 8 for name in features if name[:3] == "zvl"), default=0) if "v" in features else 0


def refusal(choice: TargetChoice, required: Iterable[str], features: Iterable[str]) -> str:
    """Returns why this machine cannot execute code for `choice`, which uses the features `required`; "" if it can."""
    head = f"code for {choice.cpu} is generated here and cannot run on this machine"
    if choice.is_native:
        return ""
    if choice.arch != machine():
        return f"{head}, which is {machine()}, not {choice.arch}"
    if not choice.features and choice.arch != "x86_64":
        return f"{head}: which instructions it has is not known"
    # "" comes from splitting an empty list
    missing_features = sorted(name.lstrip("+") for name in set(required) - set(features) - {""})
    return f"{head}, which lacks {', '.join(missing_features)}" if missing_features else ""


def cannot_run(text: str, refusal: str) -> DeviceUnavailable:
    """Returns the error for running code for TARGET=`text` here."""
    return DeviceUnavailable(f"TARGET={text!r}: {refusal}; run with TARGET=native, or look at it: explore(f, target=…)")
