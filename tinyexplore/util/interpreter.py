"""All code that depends on CPython internals. tests/architecture/test_interpreter.py checks that no other module has
such code.

Each trick makes something faster, or saves memory, and has an alternative that `INTERPRETER_TRICKS=0` selects. Then
every object counts as referenced, and tensors are listed when they are made. No object is read by its address, and no
setting of the whole process is changed. Results are the same.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import sysconfig
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from sys import getrefcount
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from tinyexplore.util.config import check_further, process_config
from tinyexplore.util.uninterrupted import run_uninterrupted

try:
    from _ctypes import dlclose
except ImportError:  # the name of the library on Windows
    dlclose = None  # type: ignore[assignment]

T = TypeVar("T")

TRICKS = process_config().INTERPRETER_TRICKS != 0


def _check_tricks(value: int) -> None:
    if (value != 0) is not TRICKS:
        raise ValueError(f"INTERPRETER_TRICKS={value}: it is an option of the whole process; set it in the environment")


check_further("INTERPRETER_TRICKS", _check_tricks)


# *** references to an object: a value without other references may be overwritten, or need no memory ***

UNKNOWN_REFERENCES = 1 << 60


def references(objects: Iterable[object]) -> tuple[int, ...]:
    """Returns the number of references to each object in a container: `BASE_REFERENCES` if only the container has one.

    Without tricks it is `UNKNOWN_REFERENCES`, so that the caller keeps everything that might be needed.
    """
    return tuple(map(getrefcount if TRICKS else _return_many, objects))


def _return_many(value: object) -> int:
    return UNKNOWN_REFERENCES


BASE_REFERENCES = references([object()])[0] if TRICKS else 0


def referrers(value: object) -> list[Any]:
    """Returns the known objects that refer to `value`; [] without tricks."""
    return gc.get_referrers(value) if TRICKS else []


class TrackedObject:
    """Base class of objects that `living` finds.

    Each object refers to its class, and the interpreter can search for referrers. So objects need not be listed when
    they are made, except without tricks.
    """

    __slots__ = ()

    if not TRICKS:

        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            instance = object.__new__(cls)
            _findable[next(_numbers)] = instance
            return instance


_numbers = count()
_findable: WeakValueDictionary[int, Any] = WeakValueDictionary()


def living(classes: set[type]) -> list[Any]:
    """Returns every object of the classes `classes`, which must be subclasses of `TrackedObject`."""
    return [
        instance
        for instance in (gc.get_referrers(*classes) if TRICKS else _findable.values())
        if type(instance) in classes
    ]


# *** addresses of objects: machine code reads and creates objects (runtime/entry.py) ***


def has_addresses() -> bool:
    """Whether objects may be read at their addresses: in CPython with a GIL, on 64 bits."""
    if not TRICKS or sys.implementation.name != "cpython" or sys.maxsize < 1 << 62:
        return False
    return not sysconfig.get_config_var("Py_GIL_DISABLED")


def pointer_to(value: object) -> int:
    """Returns the address of an object, without a reference to it."""
    return id(value)


@cache
def field_offsets(slotted_class: type) -> dict[str, int] | None:
    """Finds the byte offsets of a class's slots, by a search in a probe object.

    None if the class has a __dict__, or an offset cannot be found.
    """
    names = [
        name
        for base in slotted_class.__mro__
        for name in vars(base).get("__slots__", ())
        if name not in ("__weakref__", "__dict__")
    ]
    if slotted_class.__dictoffset__ or len(set(names)) != len(names):
        return None
    markers = {name: object() for name in names}
    probe: Any = object.__new__(slotted_class)
    for name, marker in markers.items():
        setattr(probe, name, marker)
    size = slotted_class.__basicsize__
    words = array("Q", ctypes.string_at(id(probe), size - size % 8))
    for name in names:
        setattr(probe, name, None)
    offsets = {name: words.index(id(marker)) * 8 for name, marker in markers.items() if id(marker) in words}
    return offsets if len(offsets) == len(names) else None


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef, which is part of its stable interface."""

    _fields_ = (
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    )

    VARARGS_AND_KEYWORDS = 3  # METH_VARARGS | METH_KEYWORDS


def interface_address(name: str) -> int:
    """Returns the address of the function `name` of CPython's C interface. Raises AttributeError if it does not
    exist."""
    return function_address(getattr(ctypes.pythonapi, name))


def function_address(function: Any) -> int:
    """Returns the address of a function that ctypes found."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def new_builtin(definition: MethodDef, bound: object) -> Callable[..., Any]:
    """Returns a builtin function that gets `bound` as its first argument, and keeps it alive. `definition` must live
    as long."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    constructor: Callable[..., Any] = prototype(interface_address("PyCFunction_NewEx"))(
        ctypes.addressof(definition), bound, None
    )
    return constructor


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer. Only the field `buf` is used."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def memory_address(view: memoryview) -> int:
    """Returns the address of the bytes of a view, by the buffer protocol of Python's stable interface.

    ctypes' `from_buffer` rejects read-only memory. This works without INTERPRETER_TRICKS, too.
    """
    buffer_view = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer_view), 0)
    address = buffer_view.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer_view))
    return address


# *** libraries: private handles of ctypes and llvmlite ***


class SharedObject(ctypes.CDLL):
    """A shared library, unloaded with its last reference. Without tricks it stays loaded."""

    def __del__(self) -> None:
        if TRICKS and getattr(self, "_handle", None) and dlclose is not None:  # no handle if it did not load
            dlclose(self._handle)


@cache
def without_lock(name: str) -> Any:
    """Returns the function `name` of llvmlite's library, with llvmlite's types, but without llvmlite's lock around
    every call."""
    from llvmlite.binding import ffi

    locked = getattr(ffi.lib, name)
    function = getattr(ctypes.CDLL(ffi.lib._name, handle=ffi.lib._handle), name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def dispose_passes(manager: Any) -> None:
    """Frees llvmlite's pass manager, including 70 kB that its `close()` does not free.

    The `_dispose` of the first of its classes does nothing.
    """
    from llvmlite.binding.newpassmanagers import NewPassManager

    NewPassManager._dispose(manager)
    manager.detach()


# *** settings of the whole process that change while something is compiled ***


class ProcessSetting(Generic[T]):
    """A setting that is changed while any thread is inside a block (`with setting():`).

    read: returns its value.
    change: changes it.
    restore: called with the old value when the last thread leaves. A forked child, which has no other threads, restores
    it immediately.
    """

    def __init__(self, read: Callable[[], T], change: Callable[[], object], restore: Callable[[T], object]) -> None:
        self._read, self._change, self._restore = read, change, restore
        self._lock = threading.Lock()
        self._open: set[object] = set()  # the blocks that threads are inside
        self._before: list[T] = []  # the value before the first of these blocks
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if not TRICKS:
            yield
            return
        block = object()
        try:
            self._enter(block)
            yield
        finally:
            try:
                self._leave(block)
            except BaseException:  # after an interrupt: steps that are done already are not repeated
                self._leave(block)
                raise

    def _enter(self, block: object) -> None:
        with self._lock:
            self._open.add(block)
            if not self._before:
                self._before = [self._read()]
                self._change()

    def _leave(self, block: object) -> None:
        with self._lock:
            self._open.discard(block)
            if self._before and not self._open:
                self._restore(self._before[0])
                self._before = []

    @property
    def before(self) -> T | None:
        """Returns the value before the block that was opened first; None if no thread is in a block."""
        with self._lock:
            return self._before[0] if self._before else None

    def _forget(self) -> None:
        if self._before:
            self._restore(self._before[0])
        self._lock, self._open, self._before = threading.Lock(), set(), []


# Most objects that count as old without a search. Python searches everything when the number of old objects has grown
# by a quarter, but does not count these. Without this limit it might never search, and garbage cycles among them would
# stay.
MAX_UNSEARCHED_OBJECTS = 500_000
_unsearched = [0]


def _collect_again(was_on: bool) -> None:
    """Enables garbage collection, if it was on, and makes existing objects count as old."""
    if not was_on:
        return
    if not gc.get_freeze_count():  # no other code has frozen objects
        _unsearched[0] += gc.get_count()[0]  # objects made since the last search, minus those that are gone
        if _unsearched[0] > MAX_UNSEARCHED_OBJECTS:
            _unsearched[0] = 0
            gc.collect()
        # existing objects count as old, so the next search for garbage skips them
        run_uninterrupted([partial(gc.freeze), partial(gc.unfreeze)])
    gc.enable()


# Python does not collect garbage meanwhile. Capturing needs this: afterwards everything that the call made is young,
# so one collection of the young objects shows which buffers are not referenced. Compiling gained nothing from it.
collecting_later = ProcessSetting(gc.isenabled, gc.disable, _collect_again)


def collect_young() -> None:
    """Collects garbage among the objects made since the last search."""
    _unsearched[0] += gc.get_count()[0]
    gc.collect(0)


__all__ = [
    "BASE_REFERENCES",
    "UNKNOWN_REFERENCES",
    "MAX_UNSEARCHED_OBJECTS",
    "TRICKS",
    "TrackedObject",
    "ProcessSetting",
    "MethodDef",
    "SharedObject",
    "collect_young",
    "collecting_later",
    "dispose_passes",
    "field_offsets",
    "function_address",
    "has_addresses",
    "interface_address",
    "living",
    "memory_address",
    "new_builtin",
    "pointer_to",
    "references",
    "referrers",
    "without_lock",
]
