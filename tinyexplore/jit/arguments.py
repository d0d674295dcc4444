"""The arguments of a call: its tensors in order, each with a name, and the values that must not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyexplore import engine
from tinyexplore.device import Buffer
from tinyexplore.lazy import LazyBuffer, parts_of
from tinyexplore.tensor import Tensor
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import (
    BindingCount,
    SymbolicError,
    bind_together,
    bindings,
    rebound,
    simplified,
    text,
    unbound,
    variables,
)


class JitError(RuntimeError):
    """Raised for a call that TinyJit cannot capture or replay. The message compares the captured call with this one."""


class Leaf:
    """A placeholder for tensor number `number` in a structure without tensors."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and other.number == self.number

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tensor {self.number}>"


def extract_tensors(value: Any, name: str, tensors: list[tuple[str, Tensor]]) -> Any:
    """Returns a copy of nested containers with a Leaf for each tensor. Appends the tensors, with names, to `tensors`.

    Bound Variables are replaced by the unbound ones.
    """
    if isinstance(value, Tensor):
        tensors.append((name, value))
        return Leaf(len(tensors) - 1)
    if isinstance(value, UOp):
        return simplified(unbound(value))
    if isinstance(value, dict):
        return {key: extract_tensors(item, f"{name}[{key!r}]", tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [extract_tensors(item, f"{name}[{number}]", tensors) for number, item in enumerate(value)]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def insert_tensors(structure: Any, tensor_of: Callable[[int], Any], values: Mapping[UOp, int]) -> Any:
    """Replaces each Leaf by its tensor (the inverse of `extract_tensors`), and binds Variables to `values`."""
    if isinstance(structure, Leaf):
        return tensor_of(structure.number)
    if isinstance(structure, UOp):
        return rebound(structure, values)
    if isinstance(structure, dict):
        return {key: insert_tensors(item, tensor_of, values) for key, item in structure.items()}
    if isinstance(structure, list):
        return [insert_tensors(item, tensor_of, values) for item in structure]
    if isinstance(structure, tuple):
        items = [insert_tensors(item, tensor_of, values) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return structure


class Arguments:
    """The arguments of one call. `values`: the values of Variables in them and in the shapes of tensors."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tensors: list[tuple[str, Tensor]] = []
        self.structure: dict[str, Any] = {}
        self.positional = not kwargs
        for number, value in enumerate(args):
            self.structure[f"argument {number}"] = extract_tensors(value, f"argument {number}", self.tensors)
        for key in sorted(kwargs):
            self.structure[f"argument {key}"] = extract_tensors(kwargs[key], f"argument {key}", self.tensors)
        self.values = values_in((args, tuple(kwargs.values())), self.tensors) if BindingCount.count else {}

    def check(self, captured: Arguments) -> None:
        """Raises JitError if these arguments, apart from tensors, differ from the captured ones."""
        if list(self.structure) != list(captured.structure):
            raise JitError(
                f"captured with {_join_names(captured.structure)}, called with {_join_names(self.structure)}: "
                "a replay needs the same arguments; use a separate TinyJit for each form, or reset()"
            )
        for name, structure in self.structure.items():
            captured_structure = captured.structure[name]
            if not _is_same(structure, captured_structure):
                raise JitError(
                    f"{name} was captured as {_describe(captured_structure)}, and is now {_describe(structure)}: only "
                    "tensors may change between calls; pass a Tensor, use a separate TinyJit for each value, or reset()"
                )


def values_in(args: Any, tensors: Sequence[tuple[str, Tensor]] = ()) -> dict[UOp, int]:
    """Finds the values of Variables in `args` (nested) and in shapes of `tensors`. JitError if one has two values."""
    values: dict[UOp, int] = {}

    def look(value: Any) -> None:
        if isinstance(value, UOp):
            for variable, number in bindings(value).items():
                bind_together(values, variable, number)
        elif isinstance(value, dict):
            look(tuple(value.values()))
        elif isinstance(value, (list, tuple)):
            for item in value:
                look(item)

    try:
        look(args)
        for _, tensor in tensors:
            look(tensor.lazydata.shape)
    except SymbolicError as error:
        raise JitError(f"the arguments of one call: {error}") from None
    return values


def _is_same(value: Any, captured_value: Any) -> bool:
    """Whether two arguments are equal: same types, and equal items in nested containers."""
    if value is captured_value:
        return True
    if type(value) is not type(captured_value):
        return False
    if isinstance(value, dict):
        return list(value) == list(captured_value) and all(_is_same(value[key], captured_value[key]) for key in value)
    if isinstance(value, (list, tuple)):
        return len(value) == len(captured_value) and all(_is_same(a, b) for a, b in zip(value, captured_value))
    try:
        return bool(value == captured_value)
    except Exception:  # values that cannot be compared (arrays, for example) do not count as equal
        return False


def _describe(structure: Any) -> str:
    """Writes the structure as source text. Variables have names and bounds."""
    if isinstance(structure, UOp):
        bounds = ", ".join(
            f"{name} from {low} to {high}" for name, low, high in sorted(v.arg for v in variables(structure))
        )
        return f"the Variable {bounds}" if structure.op is Ops.DEFINE_VAR else f"{text(structure)} with {bounds}"
    return repr(structure)


def _join_names(structure: dict[str, Any]) -> str:
    return ", ".join(structure) or "no arguments"


def realize_packed(tensors: list[Tensor]) -> None:
    """Realizes each tensor, row-major, in a buffer of exactly its size. A capture does not record this."""
    lazy = [tensor.lazydata for tensor in tensors if not is_packed(tensor.lazydata)]
    if lazy:
        engine.capturing(None, lambda: _realize_packed(tensors, lazy))


def _realize_packed(tensors: list[Tensor], lazy: list[LazyBuffer]) -> None:
    engine.realize(lazy)
    for tensor in tensors:
        if not is_packed(tensor.lazydata):
            tensor.lazydata = tensor.lazydata.packed()
    engine.realize([tensor.lazydata for tensor in tensors])


def is_packed(value: LazyBuffer) -> bool:
    """Whether the whole value is row-major in separate memory."""
    return all(part.buffer is not None for part in parts_of(value))


def buffers_of(value: LazyBuffer) -> list[Buffer | None]:
    """Returns the memory of each part of `value`, which may be a view; None if nothing is computed."""
    return [part.base.buffer for part in parts_of(value)]


def own_buffers(value: LazyBuffer) -> list[Buffer]:
    """Returns the memory of each part of a packed value."""
    buffers = [part.buffer for part in parts_of(value) if part.buffer is not None]
    assert len(buffers) == len(parts_of(value))
    return buffers
