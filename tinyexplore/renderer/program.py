"""ProgramSpec: a kernel as source, with the UOps of each line, and the facts that a runner needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import Any
from weakref import ref

from tinyexplore.dtype import DType
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, Ops, UOp, index_const
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.symbolic import value_of

LOCALITY = 2  # locality of a PREFETCH, which fills the L2 cache only: the L1 cache is for current accesses
STACK_LIMIT_BYTES = 512 << 10  # larger scratch memory comes from the allocator of C


class RenderError(ValueError):
    """Raised for a linear program that cannot be written. The message names the UOp and the expected form."""


def check_bitcast(source: DType, target: DType) -> None:
    """Raises RenderError unless both dtypes take the same number of bytes."""
    if source.itemsize * source.count != target.itemsize * target.count:
        raise RenderError(f"BITCAST of {source!r} to {target!r}: they must take the same number of bytes")


class Effort(Enum):
    """How much a compiler optimizes a program.

    FULL: all passes. LIGHT: only code generation, because LLVM's passes would find little to improve. LEAST: code
    generation instruction by instruction, for a program whose run is shorter than a good compilation.
    """

    FULL = "full"
    LIGHT = "light"
    LEAST = "least"


@dataclass(frozen=True)
class CompileOptions:
    """How a program is compiled.

    effort: how much optimization the compiler does.
    branches: whether branches around conditional accesses are simplified even if the effort is not FULL.
    """

    effort: Effort = Effort.FULL
    branches: bool = False


@dataclass(frozen=True, eq=False)
class ProgramSpec:
    """A rendered kernel.

    name: the name of its function.
    target: the machine that it is for.
    uops: the linear program.
    language: the language of `lines`.
    lines: its source.
    thread_end: the length of the THREAD axis (a UOp over the kernel's Variables), None without one.
    n_buffers: the number of buffers that a call takes.
    writes: positions of the buffers that it stores to.
    flops: floating-point operations of one run, if known.
    bytes_moved: bytes read and written in one run, if known.
    compiler: name and version of the compiler.
    aligned: positions of buffers that must start at a cache line.
    variables: its integer arguments, in order.
    options: how it is compiled.
    """

    name: str
    target: Target
    uops: tuple[UOp, ...]
    language: str
    lines: tuple[SourceLine, ...]
    thread_end: UOp | None
    n_buffers: int
    writes: frozenset[int]
    flops: int = 0
    bytes_moved: int = 0
    compiler: str = ""
    aligned: frozenset[int] = frozenset()
    variables: tuple[UOp, ...] = ()
    options: CompileOptions = CompileOptions()

    @property
    def thread_extent(self) -> int | None:
        """The greatest length of the THREAD axis; None without one."""
        return None if self.thread_end is None else bounds(self.thread_end)[1]

    def extent(self, values: Sequence[int]) -> int | None:
        """Returns the length of the THREAD axis for these values of `variables`."""
        size = self.thread_end
        if size is None or size.op is Ops.CONST:
            return None if size is None else size.arg
        return max(0, value_of(size, dict(zip(self.variables, values))))

    def __repr__(self) -> str:
        return f"ProgramSpec({self.name!r}, {self.language}, {len(self.uops)} uops, {len(self.lines)} lines)"

    @cached_property
    def source(self) -> str:
        """The text of all lines."""
        return "\n".join(line.text for line in self.lines) + "\n"

    @cached_property
    def key(self) -> str:
        """A digest of the content: equal if source, target, compiler and its options are equal."""
        machine = (self.target.name, self.target.arch, self.target.cpu, self.target.features)
        how = (self.compiler, self.options.effort.value, str(self.options.branches))
        text = "\0".join((self.name, self.source, self.language, *machine, *how))
        return blake2b(text.encode(), digest_size=20).hexdigest()


class StoredSpec(ProgramSpec):
    """A ProgramSpec that keeps only the facts that a call needs; `rebuild` builds the rest again on demand.

    spec: the whole program; kept until `forget_text`, and afterwards as long as a reference to it exists.
    """

    def __init__(
        self, rebuild: Callable[[], ProgramSpec], key: str, spec: ProgramSpec | None = None, **facts: Any
    ) -> None:
        vars(self).update(facts, flops=0, bytes_moved=0, key=key)
        vars(self).update(_again=rebuild, _made=spec, _elsewhere=_no_program)

    @staticmethod
    def of(spec: ProgramSpec, rebuild: Callable[[], ProgramSpec]) -> StoredSpec:
        """Returns a StoredSpec of `spec`, whose text can be dropped because `rebuild` rebuilds it."""
        return StoredSpec(
            rebuild,
            spec.key,
            spec,
            name=spec.name,
            target=spec.target,
            language=spec.language,
            thread_end=spec.thread_end,
            n_buffers=spec.n_buffers,
            writes=spec.writes,
            compiler=spec.compiler,
            aligned=spec.aligned,
            variables=spec.variables,
        )

    def __repr__(self) -> str:
        return f"StoredSpec({self.name!r}, {self.language})"

    def forget_text(self) -> None:
        """Drops the text and the UOps, which are most of a kernel. They are rebuilt on demand."""
        spec = vars(self)["_made"]
        if spec is not None:
            vars(self).update(_made=None, _elsewhere=ref(spec))

    @property
    def _whole(self) -> ProgramSpec:
        spec: ProgramSpec | None = vars(self)["_made"] or vars(self)["_elsewhere"]()
        if spec is None:
            spec = vars(self)["_made"] = vars(self)["_again"]()
        return spec

    @property
    def uops(self) -> tuple[UOp, ...]:
        return self._whole.uops

    @property
    def lines(self) -> tuple[SourceLine, ...]:
        return self._whole.lines

    @property
    def source(self) -> str:
        return self._whole.source

    @property
    def options(self) -> CompileOptions:
        return self._whole.options


def _no_program() -> None:
    """Stands for a missing reference to the whole program."""


def thread_axis(uops: Sequence[UOp]) -> UOp | None:
    """Returns the RANGE that calls divide among themselves; None if there is none."""
    thread_axes = [node for node in uops if node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD]
    if len(thread_axes) > 1:
        raise RenderError(
            f"{len(thread_axes)} THREAD axes ({', '.join(n.arg.name for n in thread_axes)}); a kernel has at most one"
        )
    return thread_axes[0] if thread_axes else None


def global_buffers(uops: Sequence[UOp]) -> list[UOp]:
    """Returns the DEFINE_GLOBALs in the order of their positions, which are 0, 1, 2, …"""
    buffers = sorted((node for node in uops if node.op is Ops.DEFINE_GLOBAL), key=lambda node: node.arg)
    positions = [node.arg for node in buffers]
    if positions != list(range(len(buffers))):
        raise RenderError(f"buffer positions {positions}; a kernel's buffers are numbered 0, 1, 2, … without gaps")
    return buffers


def variable_arguments(uops: Sequence[UOp]) -> tuple[UOp, ...]:
    """Returns the DEFINE_VARs, in the order of the arguments."""
    return tuple(node for node in uops if node.op is Ops.DEFINE_VAR)


def is_group_barrier(node: UOp) -> bool:
    """Whether work-items of a GPU wait at this BARRIER: for shared memory, or at the end of a loop's step."""
    if node.op is not Ops.BARRIER:
        return False
    first_source = node.src[0]
    return first_source.op is Ops.RANGE or is_shared(first_source.src[0].src[0])


def is_shared(memory: UOp) -> bool:
    """Whether the work-items of a group share this memory."""
    return memory.op is Ops.DEFINE_LOCAL and memory.dtype.space == "shared"


@dataclass(frozen=True)
class Launch:
    """The launch configuration of a GPU program, fastest dimension first.

    grid: the number of groups by dimension (may contain Variables).
    group: the work-items of a group by dimension; None if the runtime may choose.
    variables: the Variables in `grid`.
    """

    grid: tuple[UOp, ...]
    group: tuple[int, ...] | None
    variables: tuple[UOp, ...] = ()

    @staticmethod
    def of(uops: Sequence[UOp]) -> Launch:
        """Returns the launch of a linear program, from its SPECIALs. A program without SPECIALs runs in one
        work-item."""
        ends = {node.arg: node.src[0] for node in uops if node.op is Ops.SPECIAL}
        chooses = any(name.startswith("idx") for name in ends)
        grid = _list_dimensions(ends, "idx" if chooses else "gidx")
        group = None if chooses else tuple(size.arg for size in _list_dimensions(ends, "lidx"))
        return Launch(grid, group, variable_arguments(uops))

    def sizes(self, values: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns the grid for these values of the Variables."""
        bound = dict(zip(self.variables, values))
        return tuple([size.arg if size.op is Ops.CONST else value_of(size, bound) for size in self.grid])


def _list_dimensions(ends: dict[str, UOp], name: str) -> tuple[UOp, ...]:
    """Returns the ends of name0, name1, …: 1 for an unused one."""
    count = max((int(key[len(name) :]) + 1 for key in ends if key.startswith(name)), default=1)
    return tuple([ends.get(f"{name}{number}", index_const(1)) for number in range(count)])


def spec_of(
    name: str,
    target: Target,
    uops: Sequence[UOp],
    language: str,
    lines: Sequence[SourceLine],
    compiler: str,
    aligned: frozenset[int] = frozenset(),
    options: CompileOptions = CompileOptions(),
) -> ProgramSpec:
    """Returns the `ProgramSpec` of rendered `lines`, completed with facts from the program."""
    axis = thread_axis(uops)
    stores = [node for node in uops if node.op is Ops.STORE]
    buffers = [node.src[0].src[0] for node in stores]
    writes = {buffer.arg for buffer in buffers if buffer.op is Ops.DEFINE_GLOBAL}
    return ProgramSpec(
        name=name,
        target=target,
        uops=tuple(uops),
        language=language,
        lines=tuple(lines),
        thread_end=None if axis is None else axis.src[0],
        n_buffers=len(global_buffers(uops)),
        writes=frozenset(writes),
        compiler=compiler,
        aligned=aligned,
        variables=variable_arguments(uops),
        options=options,
    )
