"""Calls without Python: a builtin function that runs a batch of kernels if nothing has changed since the last call.

The function is machine code (`entry.ll`) that CPython calls like one of its own functions. It compares pointers, runs
the batch and builds the result. If something differs, it calls a Python function with the same arguments instead. It
holds the GIL while the batch runs, and is meant for batches of at most some tens of microseconds.

Gain: 100 000 replays of a small kernel take 23 ms instead of 308 ms (13 times).
"""

from __future__ import annotations

import ctypes
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Any

from tinyexplore.device import Buffer, DeviceUnavailable, Memory
from tinyexplore.dtype import DType
from tinyexplore.renderer.program import CompileOptions, Effort
from tinyexplore.runtime.disk_cache import load_cached
from tinyexplore.runtime.pool import Batch
from tinyexplore.util.interpreter import (
    MethodDef,
    field_offsets,
    function_address,
    has_addresses,
    interface_address,
    new_builtin,
    pointer_to,
)

FORMS: dict[type | None, int] = {None: 0, tuple: 1, list: 2}
MAX_ARGUMENTS = 16
AS_WRITTEN = CompileOptions(Effort.LIGHT, branches=True)  # how `entry.ll` is compiled
_IMPORTED = (
    "PyTuple_GetItem",
    "PyTuple_Size",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyList_New",
    "PyList_GetItem",
    "PyList_SetItem",
    "PyDict_Size",
    "PyBytes_AsString",
    "PyContextVar_Get",
    "PyObject_GetAttr",
    "PyObject_Type",
    "PyObject_Call",
    "PyObject_RichCompareBool",
    "PyLong_AsUnsignedLongLong",
    "PyErr_Clear",
    "PyType_GenericAlloc",
    "Py_IncRef",
    "Py_DecRef",
)


class _Record(ctypes.Structure):
    """The C structure `%NativeEntry` of `entry.ll`, which explains each field. Pointers to objects are borrowed."""

    _fields_ = (
        ("ready", ctypes.c_int64),
        ("fallback", ctypes.c_void_p),
        ("arguments", ctypes.c_int64),
        ("kind", ctypes.c_void_p),
        ("field", ctypes.c_int64),
        ("expected", ctypes.c_void_p),
        ("changes", ctypes.c_void_p),
        ("seen", ctypes.c_int64),
        ("attribute", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("variables", ctypes.c_int64),
        ("variables_at", ctypes.c_void_p),
        ("contents_at", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("batch", ctypes.c_void_p),
        ("counters", ctypes.c_void_p),
        ("kernels", ctypes.c_int64),
        ("operations", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("clock", ctypes.c_int64),
        ("results", ctypes.c_int64),
        ("form", ctypes.c_int64),
        ("fields", ctypes.c_int64),
        ("offsets", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("held", ctypes.c_void_p),
        ("moves", ctypes.c_int64),
        ("slots", ctypes.c_void_p),
        ("classes", ctypes.c_void_p * 3),
        ("places", ctypes.c_int64 * 6),
        ("written_count", ctypes.c_int64),
        ("written", ctypes.c_void_p),
    )


class _Slot(ctypes.Structure):
    """The C structure `%Slot` of `entry.ll`."""

    _fields_ = (
        ("shape", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
        ("mask", ctypes.c_int64),
        ("places", ctypes.c_int64),
        ("places_at", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class Argument:
    """The conditions on an argument of a native call, and the tables that receive its address.

    shape: its shape.
    dtype: its dtype.
    device: its device.
    is_aligned: whether it must start at a cache line.
    tables: (table, index) of each pointer table that holds its address.
    """

    shape: tuple[Any, ...]
    dtype: DType
    device: str
    is_aligned: bool
    tables: tuple[tuple[array[int], int], ...]


class NativeEntry:
    """The data of a builtin function. It is not ready (all calls go to Python) until `activate` states the expected
    values.

    batch: the batch to run.
    counters: four numbers, to which `costs` and the elapsed nanoseconds are added.
    costs: (kernels, operations, bytes) of the batch.
    changes: one number, the count of tensor changes.
    watched: the class of arguments and results, and the name of its attribute that must be unchanged.
    argument_field: the field of an argument with its value.
    value_kind: the class of that value, with fields shape, dtype, device and buffer.
    arguments: the conditions on each argument; None if its value must stay the same object.
    written: the addresses that the batch writes to, at which no argument may be.
    variables: context variables whose content must be unchanged.
    fields: for each result, the values of its fields.
    form: tuple or list; None if the single result is returned itself.
    """

    def __init__(
        self,
        batch: Batch,
        counters: array[int],
        costs: tuple[int, int, int],
        changes: array[int],
        watched: tuple[type, str],
        argument_field: str,
        value_kind: type,
        arguments: Sequence[Argument | None],
        written_addresses: Iterable[int],
        variables: Sequence[ContextVar[Any]],
        fields: Sequence[dict[str, Any]],
        form: type | None,
    ) -> None:
        watched_type, attribute = watched
        offsets, inner = (
            field_offsets(watched_type),
            [field_offsets(structure) for structure in (value_kind, Buffer, Memory)],
        )
        assert offsets is not None and None not in inner, "ask has_entries first"
        names = list(offsets)
        attribute = sys.intern(attribute)
        self._expected = array("Q", [0] * max(1, len(arguments)))
        self._variables = array("Q", [pointer_to(variable) for variable in variables])
        self._contents = array("Q", [0] * len(variables))
        self._offsets = array("Q", [offsets[name] for name in names])
        values = [field[name] for field in fields for name in names]
        self._values = array("Q", [pointer_to(value) for value in values])
        self._keeps = (batch, counters, changes, watched_type, attribute, tuple(variables), values)
        self.held: list[Any] = [None] * len(arguments)
        self._options: tuple[Any, ...] = ()
        self._moves = 0
        self.has_moved = False  # machine code exchanged arguments, unknown to Python
        self.is_lent = False  # Python does not know the current arguments
        self._record = record = _Record()
        record.arguments, record.kind, record.field = len(arguments), pointer_to(watched_type), offsets[argument_field]
        record.held = pointer_to(self.held)
        self._written = array("Q", written_addresses)
        record.written_count, record.written = len(self._written), _address_of(self._written)
        record.classes[:] = [pointer_to(value_kind), pointer_to(Buffer), pointer_to(Memory)]
        field_names = ((0, "shape"), (0, "dtype"), (0, "device"), (0, "buffer"), (1, "_memory"), (2, "address"))
        record.places[:] = [offset[name] for number, name in field_names if (offset := inner[number]) is not None]
        self._slots, self._places = _make_slots(arguments)
        self._arguments = tuple(arguments)
        record.slots = ctypes.addressof(self._slots)
        record.changes, record.attribute = _address_of(changes), pointer_to(attribute)
        record.expected = _address_of(self._expected)
        record.variables = len(variables)
        record.variables_at, record.contents_at = _address_of(self._variables), _address_of(self._contents)
        record.run, record.batch, record.counters = batch.run_address, batch.record_address, _address_of(counters)
        record.kernels, record.operations, record.bytes = costs
        record.clock = time.CLOCK_MONOTONIC
        record.results, record.form = len(fields), FORMS[form]
        record.fields, record.offsets, record.values = len(names), _address_of(self._offsets), _address_of(self._values)

    def activate(self, counter: int, value: Any, contents: Sequence[Any], expected: Sequence[Any]) -> None:
        """Makes the entry ready: calls run in machine code while all examined values are the same objects as now."""
        record = self._record
        record.seen = counter
        options = (value, *contents)
        if options != self._options or not record.value:
            self._options = options
            record.value = pointer_to(value)
            for number, content in enumerate(contents):
                self._contents[number] = pointer_to(content)
        # released at the end, because that may run any code, including calls of this function
        old_objects = list(self.held)
        self.held[:] = expected
        for number, watched in enumerate(expected):
            self._expected[number] = 0 if watched is None else pointer_to(watched)
        self.is_lent = True
        record.ready = 1
        del old_objects

    def deactivate(self) -> None:
        """Makes the entry not ready: every call runs in Python.

        The caller then reads the last arguments from `held` and calls `mark_known`. `has_moved`: machine code has
        exchanged arguments since the last call of `mark_known`.
        """
        record = self._record
        record.ready = 0
        self.has_moved = self.has_moved or record.moves != self._moves
        self._moves = record.moves = record.moves + 1

    def mark_known(self) -> None:
        """Marks the arguments as known to Python."""
        self.is_lent = self.has_moved = False

    def function(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the builtin function, built once. It keeps this object alive, and calls `fallback` for calls that
        it cannot do."""
        self._record.fallback = pointer_to(fallback)
        makers = _load_makers()
        holder = ctypes.addressof(self._record).to_bytes(8, sys.byteorder)
        return new_builtin(makers.definition, (holder, self, fallback, makers))


def _make_slots(arguments: Sequence[Argument | None]) -> tuple[ctypes.Array[_Slot], list[array[int]]]:
    """Returns the conditions on each argument in the layout of the machine code, and the tables of its positions.

    The tables must live as long as the conditions.
    """
    tables = [
        array("Q", [_address_of(table) + 8 * position for table, position in argument.tables] if argument else [0])
        for argument in arguments
    ]
    slots = (_Slot * max(1, len(arguments)))()
    for slot, argument, addresses in zip(slots, arguments, tables):
        if argument is not None:
            slot.shape, slot.dtype = pointer_to(argument.shape), pointer_to(argument.dtype)
            slot.device = pointer_to(argument.device)
            slot.mask = 63 if argument.is_aligned else 0
            slot.places, slot.places_at = len(addresses), _address_of(addresses)
    return slots, tables


def _address_of(numbers: array[int]) -> int:
    return numbers.buffer_info()[0]


class _EntryLibrary:
    """The compiled machine code of `entry.ll`, and its registration in CPython."""

    def __init__(self) -> None:
        from tinyexplore.runtime.llvm import shared_compiler  # noqa: PLC0415 (start-up: it loads the renderer)

        compiler = shared_compiler()
        text = resources.files("tinyexplore.runtime").joinpath("entry.ll").read_text("utf-8")
        text = text.replace("MAX_ARGUMENTS", str(MAX_ARGUMENTS))
        key_text = "\0".join((text, str(AS_WRITTEN), compiler.version, compiler.cpu, compiler.features))
        key = blake2b(key_text.encode(), digest_size=20).hexdigest()
        imports = {name: interface_address(name) for name in _IMPORTED}
        imports["clock_gettime"] = function_address(ctypes.CDLL(None).clock_gettime)
        self.library = load_cached(
            key,
            lambda: compiler.object_code(text, AS_WRITTEN),
            lambda code: compiler.link("entry", (code,), ("entry_call",), imports),
        )
        document = b"A captured function: see tinyexplore.TinyJit."
        self.definition = MethodDef(b"captured", self.library["entry_call"], MethodDef.VARARGS_AND_KEYWORDS, document)


@cache
def _load_makers() -> _EntryLibrary:
    return _EntryLibrary()


@cache
def has_entries(object_type: type, value_kind: type) -> bool:
    """Whether builtin functions on objects of `object_type` are possible: LLVM is installed, and their field offsets
    can be found."""
    if (
        not has_addresses()
        or not hasattr(time, "CLOCK_MONOTONIC")
        or None in map(field_offsets, (object_type, value_kind, Buffer, Memory))
    ):
        return False
    try:
        _load_makers()
    # an error of Windows, which has no CDLL(None)
    except (DeviceUnavailable, AttributeError, OSError, RuntimeError, TypeError):
        return False
    return True
