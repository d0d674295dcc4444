"""ScheduleItem: a kernel's ast, or a copy between devices, with the buffers that it accesses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tinyexplore.device import Buffer
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import SymbolicError, text, value_of


@dataclass(frozen=True, eq=False)
class Requirement:
    """A condition on the values of Variables that must hold before a kernel runs.

    condition: a UOp of dtype bool.
    buffer: the buffer that is too small otherwise, or None.
    what: the operation that requires it.
    """

    condition: UOp
    buffer: Buffer | None
    what: str

    def check(self, values: Mapping[UOp, int]) -> None:
        """Raises SymbolicError if `values` do not meet the condition."""
        if not value_of(self.condition, values):
            bindings = ", ".join(f"{variable.arg[0]}={value}" for variable, value in values.items())
            raise SymbolicError(f"{self.what} needs {text(self.condition)}, which does not hold for {bindings}")


@dataclass(frozen=True, eq=False)
class ScheduleItem:
    """One kernel, or one copy between devices, of a schedule.

    device: the device that runs it.
    ast: a SINK of STOREs over `buffers` (by the number in DEFINE_GLOBAL); None for a copy.
    buffers: the buffers that it reads and writes; of a copy: destination, source.
    outputs: the LazyBuffers that it realizes, in the order of the first buffers.
    members: every LazyBuffer computed in it.
    origins: for UOps of the ast: the LazyBuffer that each was made for, and how.
    variables: the kernel's Variables, in the order of its arguments.
    bound: their values in this call.
    requires: conditions on these values.
    reads: the LazyBuffers whose memory it reads.
    in_place: whether it stores into a part of its first buffer, which has a value already.
    starts: Variables for start offsets, with values that are the same in each call.
    """

    device: str
    ast: UOp | None
    buffers: tuple[Buffer, ...]
    outputs: tuple[LazyBuffer, ...]
    members: tuple[LazyBuffer, ...]
    origins: tuple[tuple[LazyBuffer, UOp, str], ...] = ()
    variables: tuple[UOp, ...] = ()
    bound: Mapping[UOp, int] = field(default_factory=dict)
    requires: tuple[Requirement, ...] = ()
    reads: tuple[LazyBuffer, ...] = ()
    in_place: bool = False
    starts: Mapping[UOp, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        item_text = "copy" if self.ast is None else f"kernel of {len(self.members)} LazyBuffers"
        memory = ", ".join(map(repr, self.buffers))
        calls = f" ({', '.join(self.metadata)})" if self.metadata else ""
        return f"ScheduleItem({item_text}{calls} on {self.device}: {memory})"

    def __str__(self) -> str:
        """Writes the item as text, with the kernel's ast (`UOp.tree`)."""
        return repr(self) if self.ast is None else f"{self!r}\n{self.ast.tree()}"

    @property
    def metadata(self) -> tuple[str, ...]:
        """The user's calls that it computes ("softmax", "__add__"), each once. Empty if no recorder was attached."""
        calls = [getattr(node, "calls", ()) for node in sorted(self.members, key=lambda node: node.number)]
        return tuple(dict.fromkeys(names[0] for names in calls if names))

    @property
    def free_variables(self) -> tuple[UOp, ...]:
        """The Variables whose values the caller must supply: all but the start offsets."""
        return tuple([variable for variable in self.variables if variable not in self.starts])

    @property
    def is_copy(self) -> bool:
        return self.ast is None

    def arguments(self, values: Mapping[UOp, int]) -> tuple[int, ...]:
        """Returns the kernel's integer arguments for these values. Raises SymbolicError if one is missing or
        invalid."""
        for requirement in self.requires:
            requirement.check(values)
        try:
            all_values = {**values, **self.starts} if self.starts else values
            return tuple([all_values[variable] for variable in self.variables])
        except KeyError as missing:
            return (value_of(missing.args[0], values),)  # raises the error with the name of the missing Variable


def kernel_variables(nodes: Iterable[UOp]) -> tuple[UOp, ...]:
    """Returns the Variables among the nodes of a kernel, by name: its integer arguments in their order."""
    variables = [node for node in nodes if node.op is Ops.DEFINE_VAR]
    names = [node.arg[0] for node in variables]
    if duplicates := [name for name in names if names.count(name) > 1]:
        forms = " and ".join(
            f"{low}..{high}" for name, low, high in (node.arg for node in variables) if name == duplicates[0]
        )
        raise SymbolicError(
            f"two Variables are called {duplicates[0]!r}, with ranges {forms}: give them different names"
        )
    return tuple(sorted(variables, key=lambda node: node.arg[0]))
