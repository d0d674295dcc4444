"""Describes how a process that ran edited code ended, and sets the limits of that process."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import signal
import struct
import sys
from collections.abc import Sequence
from typing import Any

from tinyexplore.explore.whatif.editing.guard_pages import describe_access, protect

try:
    import resource
except ImportError:  # this system has no process limits
    resource = None  # type: ignore[assignment]

SPARE_BYTES = 1 << 30  # bytes that the process may allocate after its start
FAULT_STATUS = 70
_MAILBOX = struct.Struct("=iiQ")  # signal, errno, address
_ADDRESS_AT, _SIGINFO_FLAG = 16, 4  # offsets in the 64-bit siginfo_t of Linux, and the flag of sigaction
_ERROR_CODE_AT = 192  # offset in ucontext_t on x86-64; bit 1 means that a page fault was a write
_OUT_OF_MEMORY = 12  # ENOMEM
_NULL_PAGE = 1 << 16

_MEANINGS = {
    "SIGFPE": "divided an integer by zero (SIGFPE)",
    "SIGABRT": "called abort() (SIGABRT)",
    "SIGILL": "executed an instruction that this CPU does not have, or reached unreachable code (SIGILL)",
    "SIGBUS": "used an address without memory (SIGBUS)",
    "SIGSEGV": "used memory that it does not own (SIGSEGV; the address is unknown: perhaps a stack overflow)",
    "SIGTRAP": "reached a trap (SIGTRAP)",
    "SIGXCPU": "exceeded its CPU time",
}


def can_report_addresses() -> bool:
    """Whether this system reports the address of an invalid access."""
    return sys.platform == "linux" and struct.calcsize("P") == 8 and hasattr(os, "fork")


def list_unprotected() -> tuple[str, ...]:
    """Returns the faults against which this system offers no protection, as text."""
    pages = []
    if not hasattr(os, "fork"):
        pages.append("no separate process for each edit: after a crash, the next edit starts a new worker")
    if resource is None:
        pages.append("no memory limit")
    if protect() is None:
        pages.append("no guard pages: a wrong access may go unnoticed")
    elif not can_report_addresses():
        pages.append("no address of a wrong access")
    return tuple(pages)


def limit_resources(buffers_bytes: int, seconds: float) -> int:
    """Limits the memory and CPU time of this process, and forbids core files.

    Returns the bytes that the process may allocate, or 0 without a limit.
    """
    if resource is None:
        return 0
    spare = SPARE_BYTES + 8 * buffers_bytes
    for name, limit_value in (
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", int(seconds) * (os.cpu_count() or 1) + 1),
        ("RLIMIT_AS", _measure_address_space() + spare),
    ):
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        allowed = limit_value if hard == resource.RLIM_INFINITY else min(limit_value, hard)
        try:
            resource.setrlimit(kind, (allowed, hard if name == "RLIMIT_CPU" else allowed))
        except (OSError, ValueError):
            continue
    return spare


def _measure_address_space() -> int:
    """Returns the size of this process's address space in bytes."""
    try:
        with open("/proc/self/statm", encoding="utf-8") as file:
            return int(file.read().split()[0]) * mmap.PAGESIZE
    except (OSError, ValueError):
        return 1 << 36


class Mailbox:
    """Memory shared with a child process, in which the child records the address of an invalid access."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        self._keep: Any = None

    def clear(self) -> None:
        self._shared[: _MAILBOX.size + 1] = bytes(_MAILBOX.size + 1)

    def listen(self) -> None:
        """Installs signal handlers that report an invalid access and end the process. Call it in the child process."""
        if not can_report_addresses():
            return
        shared, on_x86 = self._shared, platform.machine() in ("x86_64", "AMD64")

        def fault(number: int, info: int, context: int) -> None:
            address = ctypes.c_uint64.from_address(info + _ADDRESS_AT).value
            code = ctypes.c_uint64.from_address(context + _ERROR_CODE_AT).value if on_x86 else 0
            verb = (2 if code & 2 else 1) if on_x86 else 0
            shared[: _MAILBOX.size + 1] = _MAILBOX.pack(number, ctypes.get_errno(), address) + bytes([verb])
            os._exit(FAULT_STATUS)

        kind = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, use_errno=True)
        self._keep = kind(fault)
        handler = ctypes.cast(self._keep, ctypes.c_void_p).value
        assert handler is not None
        # struct sigaction of glibc and musl: the handler, 1024 bits of signals, flags, the restorer
        action = struct.pack("@P128siP", handler, bytes(128), _SIGINFO_FLAG, 0)
        libc = ctypes.CDLL(None)
        for number in (signal.SIGSEGV, signal.SIGBUS):
            libc.sigaction(int(number), action, None)

    def read(self) -> tuple[int, int, int, str] | None:
        """Returns (signal, errno, address, "read", "wrote" or "used") of the reported fault; None if there is none."""
        number, errno, address = _MAILBOX.unpack(self._shared[: _MAILBOX.size])
        verb = ("used", "read", "wrote")[self._shared[_MAILBOX.size]]
        return (number, errno, address, verb) if number else None


def describe_exit(status: int, fault: tuple[int, int, int, str] | None, buffers: Sequence[Any], spare: int) -> str:
    """Describes the end of a process by its `status` (`os.waitstatus_to_exitcode`): "wrote past the end of data0"."""
    if fault is not None:
        number, errno, address, verb = fault
        name = signal.Signals(number).name
        if beside := describe_access(buffers, address, verb):
            return beside
        if errno == _OUT_OF_MEMORY:
            limit = f"the limit is {spare / 2**30:.1f} GiB"
            return f"ran out of memory: {limit}; an allocation failed, and the kernel used the null pointer ({name})"
        if address < _NULL_PAGE:
            return f"{verb} a null pointer (address {address:#x}, {name})"
        return f"{verb} memory that is not its own, at {address:#x} ({name})"
    if status < 0:
        names = {-number.value: number.name for number in signal.Signals}
        name = names.get(status, f"signal {-status}")
        return _MEANINGS.get(name, f"was stopped by {name}")
    return f"ended its process with status {status}"


__all__ = ["FAULT_STATUS", "Mailbox", "describe_exit", "limit_resources", "can_report_addresses", "list_unprotected"]
