"""Reads pickles as data: interprets pickle's opcodes, builds plain values, and calls known builders only.

Python's own unpickler calls every function that a file names, so loading a file is as dangerous as running it. Here a
name must be one of `builders`; other files are rejected. `pickletools` reads the arguments of opcodes.

A few bytes can request much work. So each opcode, and each value passed to a function, is a step of a `PickleBudget`.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from tinyexplore.dtype import DType

Builder = Callable[..., Any]
_PLAIN_KEYS = (str, int, float, bytes, type(None))
_KEY_PARTS = 16  # a key is hashed at each use, and an attacker can easily find ints with equal hashes
_KEY_BITS = 64
_OPCODES = {ord(opcode.code): (opcode.name, opcode.arg and opcode.arg.reader) for opcode in pickletools.opcodes}
_PUSHED = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 STRING "
    "BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8".split()
)
_FRESH: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}


_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


class PickleError(ValueError):
    """Raised for a pickle that is damaged, or requests an operation that data does not need."""


class PickleBudget:
    """The number of steps left for all pickles of a file. A step takes about a microsecond and at most 200 bytes."""

    def __init__(self, steps: int) -> None:
        self.steps = self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise PickleError(f"it takes more than {self.steps} steps to read, which no structure of tensors needs")


class PickledGlobal:
    """A class or function that a pickle names. `build` makes the value that it represents."""

    def __init__(self, name: str, build: Builder, budget: PickleBudget) -> None:
        self.name, self.build, self.budget = name, build, budget

    def __call__(self, arguments: Any) -> Any:
        if not isinstance(arguments, tuple):
            raise PickleError(f"{self.name} is called with {type(arguments).__name__}, not a tuple")
        self.budget.spend(len(arguments) + sum(len(argument) for argument in arguments if isinstance(argument, _SIZED)))
        try:
            return self.build(*arguments)
        except PickleError:
            raise
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, struct.error) as error:
            raise PickleError(f"cannot build {self.name} from the arguments in the file: {error}") from None


class _Mark:
    """Marks the start of the items of a list, tuple, dict or set on the stack."""


_MARK = _Mark()


def read_pickle(
    stream: BinaryIO, builders: Mapping[str, Any], budget: PickleBudget, storage: Builder | None = None
) -> Any:
    """Reads one pickle from `stream` and returns its value.

    `builders`: the function or value for each "module.name". A function is called with the arguments in the pickle.
    `storage` builds the value of a persistent id.
    """
    machine = _PickleInterpreter(builders, budget, storage)
    read, spend, step = stream.read, budget.spend, machine.step
    try:
        while code := read(1):
            name, argument = _OPCODES[code[0]]
            if name == "STOP":
                return machine.pop()
            spend(1)
            step(name, argument and argument(stream))
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, UnicodeError, OverflowError, MemoryError) as error:
        raise PickleError(f"the pickle is damaged ({error!s:.100})") from None
    raise PickleError("the pickle is truncated: its opcode STOP is missing")


class _PickleInterpreter:
    """Interprets the opcodes of one pickle, with its stack and memo."""

    def __init__(self, builders: Mapping[str, Any], budget: PickleBudget, storage: Builder | None) -> None:
        self.builders, self.budget, self.storage = builders, budget, storage
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise PickleError("the pickle is damaged (a mark where a value is expected)")
        return value

    def pop_to_mark(self) -> list[Any]:
        """Removes the last mark; returns the values above it."""
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                items = self.stack[index + 1 :]
                del self.stack[index:]
                return items
        raise PickleError("the pickle is damaged (a mark is missing)")

    def top(self, expected_type: type) -> Any:
        value = self.stack[-1]
        if not isinstance(value, expected_type):
            raise PickleError(
                f"the pickle is damaged ({type(value).__name__} where {expected_type.__name__} is expected)"
            )
        return value

    def step(self, name: str, argument: Any) -> None:
        """Executes one opcode."""
        push = self.stack.append
        if name in _PUSHED:
            push(argument)
            return
        if name in _FRESH:
            push(_FRESH[name]())
            return
        match name:
            case "PROTO" | "FRAME":
                pass
            case "MARK":
                push(_MARK)
            case "POP":
                self.stack.pop()
            case "POP_MARK":
                self.pop_to_mark()
            case "DUP":
                push(self.stack[-1])
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                push(self.memo[argument])
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                items = [self.pop() for _ in range(int(name[-1]))]
                push(tuple(reversed(items)))
            case "TUPLE":
                push(tuple(self.pop_to_mark()))
            case "LIST":
                push(self.pop_to_mark())
            case "DICT":
                push(_take_pairs(self.pop_to_mark()))
            case "FROZENSET":
                push(frozenset(map(plain_key, self.pop_to_mark())))
            case "APPEND":
                item = self.pop()
                self.top(list).append(item)
            case "APPENDS":
                added = self.pop_to_mark()
                self.top(list).extend(added)
            case "SETITEM":
                value, key = self.pop(), self.pop()
                self.top(dict)[plain_key(key)] = value
            case "SETITEMS":
                pairs = _take_pairs(self.pop_to_mark())
                self.top(dict).update(pairs)
            case "ADDITEMS":
                added = self.pop_to_mark()
                self.top(set).update(map(plain_key, added))
            case _:
                self.named(name, argument)

    def named(self, name: str, argument: Any) -> None:
        """Executes an opcode that names or calls an object."""
        match name:
            case "GLOBAL":
                self.stack.append(self.find(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                attribute, module = self.pop(), self.pop()
                self.stack.append(self.find(module, attribute))
            case "REDUCE" | "NEWOBJ":
                arguments = self.pop()
                function = self.top(PickledGlobal)
                self.stack[-1] = function(arguments)
            case "BUILD":
                state = self.pop()
                built = self.stack[-1]
                if hasattr(built, "restore"):
                    built.restore(state)
                elif not isinstance(built, dict):  # ignore further attributes of an ordered dict
                    raise PickleError(f"the pickle gives a state to a {type(built).__name__}, which has none")
            case "BINPERSID" if self.storage is not None:
                self.stack.append(PickledGlobal("a storage", self.storage, self.budget)((self.pop(),)))
            case _:
                raise PickleError(f"the pickle uses {name}, which data does not need")

    def find(self, module: Any, attribute: Any) -> Any:
        if not isinstance(module, str) or not isinstance(attribute, str):
            raise PickleError(f"the pickle is damaged: the name {module!r:.40}.{attribute!r:.40} is not two strings")
        name = f"{module}.{attribute}"
        if name not in self.builders:
            raise PickleError(f"the pickle asks for {name!r:.100}, which no state of a model needs: it is not loaded")
        builder = self.builders[name]
        is_value = isinstance(builder, DType)  # a PickledGlobal is callable, too
        return builder if is_value or not callable(builder) else PickledGlobal(name, builder, self.budget)


def plain_key(value: Any) -> Any:
    """Returns `value` if it may be a key. Nested tuples may not: hashing them could overflow the stack."""
    items = value if isinstance(value, tuple) else (value,)
    if len(items) > _KEY_PARTS or not all(isinstance(item, _PLAIN_KEYS) for item in items):
        raise PickleError(f"the pickle has a key of type {type(value).__name__}; need text, numbers or tuples of them")
    if any(isinstance(item, int) and item.bit_length() > _KEY_BITS for item in items):
        raise PickleError(f"the pickle has a key that is an int of more than {_KEY_BITS} bits")
    return value


def _take_pairs(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise PickleError("the pickle is damaged (a key without a value)")
    return {plain_key(key): value for key, value in zip(items[::2], items[1::2])}
