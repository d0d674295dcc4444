"""TinyJit: runs the first call normally, captures the second, and replays every later one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import ref

from tinyexplore import engine
from tinyexplore.jit.arguments import Arguments, JitError, realize_packed
from tinyexplore.jit.capture import CaptureDeferred, capture
from tinyexplore.jit.entry import activate, deactivate, make_entry
from tinyexplore.jit.replay import CallReplay
from tinyexplore.runtime.entry import NativeEntry
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.change_log import ChangeLog, Epoch, record_changes
from tinyexplore.util import config

R = TypeVar("R")

# consecutive calls that assign to tensors never seen before: a program that always does gets a warning
MAX_DEFERRED_CAPTURES = 2


class TinyJit(Generic[R]):
    """Replays the kernels of `fxn`, a function that realizes tensors, from the third call on. Also a decorator of
    methods.

    Arguments: each call may pass other tensors (also in lists, tuples and dicts), of the same shape, dtype and device.
    All other arguments must be as in the second call. Python values that the function reads from elsewhere keep their
    values of the second call.
    Results: the memory of the returned tensors belongs to the TinyJit. The next call overwrites it, so copy values that
    must outlive that call (`.numpy()`, or `.clone().realize()` for a tensor).
    State: tensors that the function assigns to (parameters, an optimizer's state, running averages) change in every
    call, and random tensors are drawn again, as without TinyJit. A replay that is interrupted (Ctrl-C) has assigned to
    all of them or to none. Assignments elsewhere to tensors that the function only reads are followed.
    Threads: calls from several threads wait for each other, and each overwrites the previous result. Threads that work
    at the same time need one TinyJit each. If a finalizer, or the function itself, calls the TinyJit inside one of its
    calls, that call runs the plain function.
    Pickling: a pickle has the captured call, the values of the tensors that it reads, and the function if it can be
    found by name. A copy (`copy.copy`, `copy.deepcopy`) starts again.

    prune: kernels whose results do not depend on arguments, assigned tensors or random numbers run once, when captured,
    and are not replayed. An assignment to a tensor that they read makes the next call capture again.
    """

    __slots__ = ("__call__", "calls", "name", "__weakref__")

    if TYPE_CHECKING:  # each object has its own function: of Python, or of machine code

        def __call__(self, *args: Any, **kwargs: Any) -> R: ...

    def __init__(self, fxn: Callable[..., R], *, prune: bool = False) -> None:
        self.name: str | None = None
        self.calls: CallDispatcher[R] = CallDispatcher(fxn, ref(self), prune)
        object.__setattr__(self, "__call__", self.calls)

    @property
    def fxn(self) -> Callable[..., R]:
        """The function itself."""
        return self.calls.fxn

    def reset(self) -> None:
        """Forgets the captured call. The next call counts as the first one."""
        self.calls.reset()

    def __repr__(self) -> str:
        calls = self.calls
        state = f"{len(self.jit_cache)} kernels captured" if calls.replay is not None else f"{calls.count} calls"
        return f"TinyJit({getattr(self.fxn, '__qualname__', self.fxn)!s}, {state})"

    def __copy__(self) -> TinyJit[R]:
        return TinyJit(self.fxn, prune=self.calls.prune)

    def __deepcopy__(self, memo: dict[int, Any]) -> TinyJit[R]:
        # a copied model captures its own parameters
        return TinyJit(copy.deepcopy(self.fxn, memo), prune=self.calls.prune)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the captured call, its kernels, the tensors that they read, and the function if it has a name."""
        replay, prune = self.calls.replay, self.calls.prune
        if replay is None:
            return partial(TinyJit, prune=prune), (self.fxn,)
        try:
            pickle.dumps(self.fxn)
        except (pickle.PicklingError, AttributeError, TypeError):
            return _with_replay, (None, replay, prune)
        return _with_replay, (self.fxn, replay, prune)

    @property
    def captured(self) -> CallReplay | None:
        """The captured call, or None before the second call."""
        return self.calls.replay

    @property
    def jit_cache(self) -> list[engine.ExecItem]:
        """The kernels and copies of a replay, in order."""
        return [] if self.calls.replay is None else list(self.calls.replay.items)

    @property
    def cnt(self) -> int:
        """The kind of the next call: 0 runs without capture, 1 is captured, 2 is a replay."""
        return min(self.calls.count, 2)

    # *** methods: each object gets its own TinyJit ***

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> TinyJit[R]:
        if instance is None:
            return self
        name = self.name or self.fxn.__name__
        try:
            attributes = vars(instance)
        except TypeError:
            class_name = type(instance).__name__
            raise TypeError(
                f"TinyJit of a method of {class_name}, which has no __dict__: leave out its __slots__"
            ) from None
        # Python finds it there itself, except for `__call__` and other special methods
        method_jit: TinyJit[R] | None = attributes.get(name)
        if method_jit is None:
            method_jit = attributes[name] = TinyJit(partial(self.fxn, instance), prune=self.calls.prune)
        return method_jit


class CallDispatcher(Generic[R]):
    """The calls of one TinyJit, one after the other.

    If nothing has changed, machine code (`jit/entry.py`) runs a call without this object.
    """

    __slots__ = (
        "fxn",
        "owner",
        "prune",
        "count",
        "changed",
        "in_part",
        "parts_of",
        "put_off",
        "replay",
        "entry",
        "lock",
        "is_busy",
        "__weakref__",
    )

    def __init__(self, fxn: Callable[..., R], owner: ref[TinyJit[R]], prune: bool) -> None:
        self.fxn = fxn
        self.owner = owner
        self.prune = prune
        self.lock = RLock()
        self.is_busy = False  # set during a call, in which a finalizer may call again
        self.entry: NativeEntry | None = None
        self.reset()

    def reset(self) -> None:
        self.replay: CallReplay | None = None
        self.count = 0
        self.changed: list[ref[Any]] = []
        self.in_part: list[ref[Any]] = []  # those among `changed` of which the function writes parts
        self.parts_of: list[int] = []  # numbers of the arguments of which the function writes parts
        self.put_off = 0  # number of calls that could not be captured yet
        self._install_entry(None)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if not config().JIT or engine.active_capture() is not None:
            return self.fxn(*args, **kwargs)  # inside another capture, the kernels belong to that capture
        with self.lock:
            if self.is_busy:
                return self.fxn(*args, **kwargs)
            self.is_busy = True
            try:
                return self._run_call(args, kwargs)
            finally:
                self.is_busy = False

    def _run_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        replay, entry = self.replay, self.entry
        if replay is None or (Epoch.count[0] != replay.epoch and not replay.ready()):
            return self._run_first(args, kwargs) if self.count == 0 else self._capture_again(args, kwargs)
        if entry is not None:
            deactivate(entry, replay)  # another thread must not run `entry` during this replay
        elif not replay.is_known:
            entry = self._install_entry(make_entry(replay))
            replay.is_known = True
        result: R = replay(args, kwargs)
        if entry is not None:
            activate(entry, replay)
        return result

    def _install_entry(self, entry: NativeEntry | None) -> NativeEntry | None:
        """Lets `entry` receive the calls from now on; None: this object receives them. Returns `entry`."""
        if self.entry is not None:
            self.entry.deactivate()
        owner = self.owner()
        if owner is not None:
            function = self if entry is None else entry.function(self)
            object.__setattr__(owner, "__call__", function)
        self.entry = entry
        return entry

    def _capture_again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        if self.replay is not None:
            states, self.parts_of = self.replay.states, self.replay.captured.in_place
            self.changed = _merge_references(self.changed, [state.tensor for state in states])
            self.in_part = _merge_references(self.in_part, [state.tensor for state in states if state.is_in_place])
            self.replay = None
        self._install_entry(None)
        tensors = [tensor for _, tensor in Arguments(args, kwargs).tensors] if self.parts_of else []
        in_part = _find_living_tensors(self.in_part)
        in_part.extend(tensors[number] for number in self.parts_of if number < len(tensors))
        try:
            replay, result = capture(self.fxn, args, kwargs, _find_living_tensors(self.changed), in_part, self.prune)
        except CaptureDeferred as later:
            self.changed = _merge_references(self.changed, later.changed)
            self.in_part = _merge_references(self.in_part, later.in_part)
            self.put_off += 1
            if self.put_off > MAX_DEFERRED_CAPTURES:
                raise
            return cast(R, later.result)
        self.count, self.put_off = 2, 0
        self.replay = replay
        return cast(R, result)

    def _run_first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Makes an ordinary call. Brings the tensors that it assigns to into memory."""
        tensors = [tensor for _, tensor in Arguments(args, kwargs).tensors]
        realize_packed(tensors)
        notes = ChangeLog()
        result = record_changes(notes, lambda: self.fxn(*args, **kwargs))
        changed = [tensor for tensor, _ in notes.changed.values() if isinstance(tensor, Tensor)]
        realize_packed(changed)
        self.changed = [ref(tensor) for tensor in changed]
        self.in_part = [ref(tensor) for tensor in changed if id(tensor) in notes.in_part]
        self.parts_of = [number for number, tensor in enumerate(tensors) if id(tensor) in notes.in_part]
        self.count = 1
        return result


def _find_living_tensors(references: list[ref[Any]]) -> list[Any]:
    return [tensor for reference in references if (tensor := reference()) is not None]


def _merge_references(references: list[ref[Any]], tensors: list[Tensor]) -> list[ref[Any]]:
    """Returns references to the referenced objects and to `tensors`, each once."""
    return [
        ref(tensor)
        for tensor in {id(tensor): tensor for tensor in [*_find_living_tensors(references), *tensors]}.values()
    ]


def _with_replay(fxn: Callable[..., R] | None, replay: CallReplay, prune: bool) -> TinyJit[R]:
    """Rebuilds a pickled TinyJit, which goes on replaying."""
    jit: TinyJit[R] = TinyJit(_refuse_capture if fxn is None else fxn, prune=prune)
    jit.calls.replay, jit.calls.count = replay, 2
    return jit


def _refuse_capture(*args: Any, **kwargs: Any) -> Any:
    raise JitError(
        "this TinyJit cannot capture again: it was pickled without its function, which other processes cannot import. "
        "Call it with arguments of the captured form, or pickle the TinyJit of a function at module level"
    )
