"""Writes loads and stores of the linear program: addresses, partial registers, and lanes under conditions."""

from __future__ import annotations

from abc import abstractmethod

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.program import RenderError
from tinyexplore.renderer.wasm.casts import CastWriter
from tinyexplore.renderer.wasm.use_analysis import BaseAddress, UseAnalysis, split_address
from tinyexplore.renderer.wasm.values import (
    BITS_ONLY,
    REGISTER_BYTES,
    WasmValue,
    constant,
    lane_bytes,
    registers,
    scalar_type,
    sign,
)
from tinyexplore.uop import Ops, UOp

MAX_MASK_LANES = 32  # most lanes under one mask: its bits must fit in an i32
_ZERO = "(v128.const i32x4 0 0 0 0)"


class AccessWriter(CastWriter):
    """Base class that writes loads, stores and their addresses.

    A subclass implements `attribute_to`, `line`, `local` and `define`.
    """

    uses: UseAnalysis
    values: dict[UOp, WasmValue]
    addresses: dict[BaseAddress, str]

    @abstractmethod
    def attribute_to(self, *nodes: UOp) -> None:
        """Adds nodes to those that the current line comes from."""

    @abstractmethod
    def line(self, text: str) -> None:
        """Writes a line."""

    @abstractmethod
    def local(self, name: str, wasm_type: str) -> str:
        """Returns the name of a new local of that type."""

    @abstractmethod
    def define(self, node: UOp, value: WasmValue) -> None:
        """Makes `value` the value of `node`."""

    # *** addresses ***

    def write_addresses(self, node: UOp) -> None:
        """Writes the addresses that are known once `node` is computed."""
        for base_address in self.uses.base_addresses.get(node, ()):
            if node.op is not Ops.DEFINE_ACC:
                name = self.local("a", "i32")
                self.line(f"(local.set {name} {self.compute_base(base_address)})")
                self.addresses[base_address] = f"(local.get {name})"

    def compute_base(self, base_address: BaseAddress) -> str:
        buffer, varying = base_address
        assert isinstance(buffer.dtype, PtrDType) and varying is not None
        text, nbytes = self.number(varying, "i32"), buffer.dtype.base.itemsize
        if nbytes > 1:
            text = f"(i32.shl {text} (i32.const {nbytes.bit_length() - 1}))"
        return f"(i32.add {self.start_of(buffer)} {text})"

    def start_of(self, buffer: UOp) -> str:
        start = self.values.get(buffer)
        if start is not None:
            return start.text
        if buffer.op is not Ops.DEFINE_GLOBAL:
            raise RenderError(f"{buffer!r} is used before it comes in the program")
        return f"(local.get $data{buffer.arg})"

    def address(self, index: UOp) -> tuple[str, int]:
        """Returns the base address of an INDEX, and its byte offset."""
        base_address, offset = split_address(index)
        buffer, varying = base_address
        self.attribute_to(index)
        assert isinstance(buffer.dtype, PtrDType)
        if varying is None:
            text = self.start_of(buffer)
            if offset < 0:
                return f"(i32.add {text} (i32.const {offset * buffer.dtype.base.itemsize}))", 0
        elif varying.op is Ops.DEFINE_ACC:
            text = self.compute_base(base_address)
        else:
            text = self.addresses[base_address]
        return text, offset * buffer.dtype.base.itemsize

    # *** loads ***

    def load(self, node: UOp) -> None:
        dtype, index = node.dtype, node.src[0]
        assert isinstance(dtype, DType)
        address, offset = self.address(index)
        valid = index.src[2] if len(index.src) > 2 else None
        if dtype.count == 1:
            self.load_scalar(node, dtype, address, offset, valid)
            return
        texts = [
            _write_whole_load(address, part_offset, nbytes)
            for part_offset, nbytes in _split_to_registers(dtype, offset)
        ]
        if valid is None:
            self.define(node, self.to_register_form(WasmValue(tuple(texts), lane_bytes(dtype)), dtype))
            return
        names = [self.local("t", "v128") for _ in texts]
        parts = tuple(f"(local.get {name})" for name in names)
        for name in names:
            self.line(f"(local.set {name} {_ZERO})")
        load_all = " ".join([f"(local.set {name} {text})" for name, text in zip(names, texts)])
        if valid.dtype.count == 1:
            self.line(f"(if {self.operand(valid).text} (then {load_all}))")
        else:
            bits = self.mask_bits(valid)
            self.line(f"(if (i32.eq {bits} (i32.const {(1 << dtype.count) - 1})) (then {load_all}) (else")
            for lane in range(dtype.count):
                register_number, lane_of_part = divmod(lane, REGISTER_BYTES // lane_bytes(dtype))
                part_offset = offset + lane * lane_bytes(dtype)
                name = f"v128.load{8 * lane_bytes(dtype)}_lane"
                text = f"({name}{_offset_text(part_offset)} {lane_of_part} {address} {parts[register_number]})"
                self.line(f"  (if {_bit_text(bits, lane)} (then (local.set {names[register_number]} {text})))")
            self.line("))")
        self.define(node, self.to_register_form(WasmValue(parts, lane_bytes(dtype)), dtype))

    def load_scalar(self, node: UOp, dtype: DType, address: str, offset: int, valid: UOp | None) -> None:
        if node in self.uses.splatted:
            name = self.local("v", "v128")
            self.line(f"(local.set {name} (v128.load{dtype.bits}_splat{_offset_text(offset)} {address}))")
            self.values[node] = WasmValue((f"(local.get {name})",), dtype.itemsize)
            return
        wasm_type = scalar_type(dtype)
        suffix = f"{dtype.bits}_{sign(dtype)}" if dtype.itemsize < 4 else ""
        text = f"({wasm_type}.load{suffix}{_offset_text(offset)} {address})"
        if dtypes.is_bool(dtype):
            text = f"(i32.ne {text} (i32.const 0))"
        if valid is not None:
            zero = "0x0" if dtype in BITS_ONLY else "0"
            test = self.operand(valid).text
            text = f"(if (result {wasm_type}) {test} (then {text}) (else ({wasm_type}.const {zero})))"
        self.define(node, WasmValue((text,)))

    def to_register_form(self, value: WasmValue, dtype: DType) -> WasmValue:
        """Converts bytes from memory to their register form: bools become masks."""
        if not dtypes.is_bool(dtype):
            return value
        return WasmValue(tuple(f"(i8x16.ne {part} {_ZERO})" for part in value.parts), 1)

    # *** stores ***

    def store(self, node: UOp) -> None:
        index, value = node.src[:2]
        dtype = value.dtype
        assert isinstance(dtype, DType)
        address, offset = self.address(index)
        valid = index.src[2] if len(index.src) > 2 else None
        if dtype.count == 1:
            wasm_type = scalar_type(dtype)
            part = str(dtype.bits) if dtype.itemsize < 4 else ""
            text = f"({wasm_type}.store{part}{_offset_text(offset)} {address} {self.number(value, wasm_type)})"
            self.line(text if valid is None else f"(if {self.operand(valid).text} (then {text}))")
            return
        stored = self.to_memory_form(value, dtype)
        lane = lane_bytes(dtype)
        texts = [
            _write_whole_store(address, part_offset, nbytes, part)
            for (part_offset, nbytes), part in zip(_split_to_registers(dtype, offset), stored)
        ]
        if valid is None:
            for text in texts:
                self.line(text)
        elif valid.dtype.count == 1:
            self.line(f"(if {self.operand(valid).text} (then {' '.join(texts)}))")
        else:
            bits = self.mask_bits(valid)
            self.line(f"(if (i32.eq {bits} (i32.const {(1 << dtype.count) - 1})) (then {' '.join(texts)}) (else")
            for number in range(dtype.count):
                register_number, lane_of_part = divmod(number, REGISTER_BYTES // lane)
                name = f"v128.store{8 * lane}_lane{_offset_text(offset + number * lane)}"
                text = f"({name} {lane_of_part} {address} {stored[register_number]})"
                self.line(f"  (if {_bit_text(bits, number)} (then {text}))")
            self.line("))")

    def to_memory_form(self, value: UOp, dtype: DType) -> tuple[str, ...]:
        """Returns the registers of a vector in their memory form."""
        if not dtypes.is_bool(dtype):
            return self.store_in_locals(self.operand(value)).parts
        one_in_each = constant(1, dtypes.uint8.vec(REGISTER_BYTES)).text
        mask = self.mask(value, 1)
        return self.store_in_locals(
            WasmValue(tuple(f"(v128.and {part} {one_in_each})" for part in mask.parts), 1)
        ).parts

    def mask_bits(self, valid: UOp) -> str:
        """Returns the lanes of a vector of bools as bits of an i32."""
        count = valid.dtype.count
        if count > MAX_MASK_LANES:
            raise RenderError(f"{valid!r}: a mask has {count} lanes; the limit is {MAX_MASK_LANES}")
        texts = [f"(i8x16.bitmask {part})" for part in self.mask(valid, 1).parts]
        text = texts[0] if len(texts) == 1 else f"(i32.or {texts[0]} (i32.shl {texts[1]} (i32.const 16)))"
        if count < REGISTER_BYTES:
            text = f"(i32.and {text} (i32.const {(1 << count) - 1}))"
        name = self.local("m", "i32")
        self.line(f"(local.set {name} {text})")
        return f"(local.get {name})"


def _split_to_registers(dtype: DType, offset: int) -> list[tuple[int, int]]:
    """Returns the start and the number of the bytes of each register."""
    total = dtype.count * lane_bytes(dtype)
    pieces = []
    for number in range(registers(dtype.count, lane_bytes(dtype))):
        start = number * REGISTER_BYTES
        pieces.append((offset + start, min(REGISTER_BYTES, total - start)))
    return pieces


def _write_whole_load(address: str, offset: int, nbytes: int) -> str:
    if nbytes == REGISTER_BYTES:
        return f"(v128.load{_offset_text(offset)} {address})"
    if nbytes in (4, 8):
        return f"(v128.load{8 * nbytes}_zero{_offset_text(offset)} {address})"
    return f"(v128.load{8 * nbytes}_lane{_offset_text(offset)} 0 {address} {_ZERO})"


def _write_whole_store(address: str, offset: int, nbytes: int, part: str) -> str:
    if nbytes == REGISTER_BYTES:
        return f"(v128.store{_offset_text(offset)} {address} {part})"
    return f"(v128.store{8 * nbytes}_lane{_offset_text(offset)} 0 {address} {part})"


def _offset_text(nbytes: int) -> str:
    return f" offset={nbytes}" if nbytes else ""


def _bit_text(bits: str, number: int) -> str:
    return f"(i32.and {bits} (i32.const {1 << number}))"
