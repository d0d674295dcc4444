"""Links object files into this process, and unloads them when they cannot be called any more."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

# Most libraries of one LLVM linker. Its symbol tables keep some 9 kB of every unloaded library until the linker is
# freed, together with its last library. A new linker takes half a millisecond.
MAX_LIBRARIES = 32
LIBRARY_BYTES = 44 << 10  # memory of a library beside its object files: separate pages, and symbol tables


class Library:
    """Linked machine code. Its addresses are valid as long as this object lives."""

    __slots__ = ("_tracker", "_let_go")

    def __init__(self, tracker: Any, let_go: deque[Any]) -> None:
        self._tracker, self._let_go = tracker, let_go

    def __getitem__(self, symbol: str) -> int:
        """Returns the address of an exported symbol."""
        address: int = self._tracker[symbol]
        return address

    def __del__(self) -> None:
        # unloading takes LLVM's lock, but a finalizer may run anywhere, so `Linker.link` unloads
        self._let_go.append(self._tracker)


class Linker:
    """Links with LLVM's `LLJIT`. Any thread may link; forks must wait for that.

    make_jit: returns a new LLJIT.
    new_library: returns a new JITLibraryBuilder.
    """

    def __init__(self, make_jit: Callable[[], Any], new_library: Callable[[], Any]) -> None:
        self._make_jit, self._new_library = make_jit, new_library
        self._lock = threading.Lock()
        self._let_go: deque[Any] = deque()  # libraries that cannot be called any more
        self._jit = make_jit()
        self._numbers = itertools.count()
        self._in_this_jit = 0
        self.loaded = 0  # libraries in memory
        _linkers.add(self)

    def link(
        self, name: str, codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int] | None = None
    ) -> Library:
        """Links the object files `codes` into this process, and looks up the addresses of `exports`.

        imports: addresses of functions that the code calls, if the process does not have them itself.
        """
        with self._lock:
            self._unload()
            if self._in_this_jit == MAX_LIBRARIES:
                self._jit, self._in_this_jit = self._make_jit(), 0  # the old linker is freed with its last library
            builder = self._new_library()
            for code in codes:
                builder.add_object_img(code)
            builder.add_current_process()
            for symbol, address in (imports or {}).items():
                builder.import_symbol(symbol, address)
            for symbol in exports:
                builder.export_symbol(symbol)
            self._in_this_jit += 1
            tracker = builder.link(self._jit, f"{name}.{next(self._numbers)}")
            self.loaded += 1
            return Library(tracker, self._let_go)

    def unload(self) -> None:
        """Frees libraries that cannot be called any more, immediately; linking does the same."""
        with self._lock:
            self._unload()

    def _unload(self) -> None:
        while self._let_go:
            self._let_go.popleft().close()
            self.loaded -= 1


_linkers: WeakSet[Linker] = WeakSet()  # the linkers of this process, one for each target that it compiles for


def loaded_libraries() -> int:
    """Returns the number of libraries in memory that can be called. Unloads the others first."""
    linkers = list(_linkers)
    for linker in linkers:
        linker.unload()
    return sum([linker.loaded for linker in linkers])


__all__ = ["LIBRARY_BYTES", "MAX_LIBRARIES", "Library", "Linker", "loaded_libraries"]
