"""The address stream of a kernel: which bytes each load and store accesses, in order.

NumPy evaluates the index expressions over the iteration space, in chunks of the outer loops. If an index depends on
loaded values, the program runs instead (`stepping_program.py`) and needs its inputs. Without NumPy (in a browser) it
also runs, on zeros if there are no inputs.

Buffers are consecutive in memory, each from a new page on. The THREAD axis is traversed in order, as on one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.explore.analysis.models.debugger import Debugger
from tinyexplore.explore.recording.descriptions import operand_name, uops_listing
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.renderer.program import variable_arguments
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.bounds import bounds

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 1 << 17  # most accesses in memory at the same time
NONE = -1  # a masked access
_PAGE = 4096


class DataDependentAddress(ValueError):
    """An address depends on loaded values, so the stream cannot be computed without the kernel's inputs."""


@dataclass(frozen=True, repr=False)
class ProgramAccess(DisplayableRow):
    """A LOAD or STORE of a program.

    place: its line in the listing.
    text: the text of that line.
    buffer: the buffer that it reads or writes.
    stored: whether it writes.
    nbytes: bytes of one access.
    loops: the positions of the loops around it.
    node: its UOp.
    """

    place: int
    text: str
    buffer: str
    stored: bool
    nbytes: int
    loops: tuple[int, ...]
    node: UOp = field(repr=False)


@dataclass(frozen=True, repr=False)
class Chunk(DisplayableRow):
    """A part of the address stream. Without NumPy both arrays are `PlainList` lists.

    lines: the numbers of the cache lines, row by row.
    columns: the access of each column.
    """

    lines: Array
    columns: Array


class PlainList(list[Any]):
    """A list with the method of NumPy arrays that callers use."""

    def tolist(self) -> list[Any]:
        return self


def has_numpy() -> bool:
    """Whether NumPy is installed."""
    return find_spec("numpy") is not None


@dataclass
class _Loop:
    """A loop of the program.

    node: its RANGE.
    body: the loops and accesses inside, in order; an access is its number.
    """

    node: UOp
    body: list[_Loop | int]  # an int is the number of an access


class AddressStream:
    """The address stream of a linear program.

    unit: the bytes of a piece of memory, a power of two; by default the smallest element.
    accesses: the loads and stores, in program order.
    bases: the address of each buffer, in bytes.
    """

    def __init__(
        self,
        uops: Sequence[UOp],
        values: Mapping[UOp, int] | None = None,
        *,
        unit: int | None = None,
        page: int = _PAGE,
        contents: Sequence[Any] | None = None,
    ) -> None:
        self.uops = tuple(uops)
        self.values = dict(values or {})
        self.contents = contents
        self.fixed: dict[UOp, Any] = {}  # counters of loops that are restricted to one iteration
        self.accesses: list[ProgramAccess] = []
        self.bases: dict[UOp, int] = {}
        self.sizes: dict[str, int] = {}
        self.loop_names: dict[int, str] = {}
        self._place_buffers(page)
        self.tree = self._read_tree()
        self.unit = unit or min((_element_of(access.node).itemsize for access in self.accesses), default=1)

    def _place_buffers(self, page: int) -> None:
        address = 0
        for number, node in enumerate(self.uops):
            if node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
                assert isinstance(node.dtype, PtrDType)
                self.bases[node] = address
                nbytes = node.dtype.size * node.dtype.base.itemsize
                self.sizes[operand_name(node, number)] = nbytes
                address += -(-nbytes // page) * page
        self.nbytes = address

    def _read_tree(self) -> list[_Loop | int]:
        listing = uops_listing(self.uops)
        top: list[_Loop | int] = []
        stack, around = [top], []
        for number, node in enumerate(self.uops):
            if node.op is Ops.RANGE:
                loop = _Loop(node, [])
                stack[-1].append(loop)
                stack.append(loop.body)
                around.append(number)
                self.loop_names[number] = operand_name(node, number)
            elif node.op is Ops.ENDRANGE:
                stack.pop()
                around.pop()
            elif node.op in (Ops.LOAD, Ops.STORE):
                dtype = node.dtype if node.op is Ops.LOAD else node.src[1].dtype
                assert isinstance(dtype, DType)
                text = listing[number].text.split(None, 1)[1]
                buffer = operand_name(node.src[0].src[0], 0)
                nbytes = dtype.count * dtype.scalar.itemsize
                stack[-1].append(len(self.accesses))
                access = ProgramAccess(number, text, buffer, node.op is Ops.STORE, nbytes, tuple(around), node)
                self.accesses.append(access)
        return top

    @cached_property
    def is_data_dependent(self) -> bool:
        """Whether an index, a mask or the end of a loop depends on loaded values."""
        roots = [node.src[0] for node in self.uops if node.op is Ops.RANGE]
        for access in self.accesses:
            roots += access.node.src[0].src[1:]
        data_ops = (Ops.LOAD, Ops.DEFINE_ACC, Ops.RESULT, Ops.ASSIGN)
        return any(node.op in data_ops for root in roots for node in root.toposort())

    def count_most_accesses(self) -> int | None:
        """An upper estimate of the number of accesses; None if the end of a loop depends on data."""
        return self._count_accesses(self.tree)

    def restrict(self, counters: Mapping[UOp, int]) -> AddressStream:
        """Returns the accesses that are inside all of these loops, for these counters."""
        stream = copy(self)
        stream.fixed = dict(counters)
        stream.tree = _bodies_of(self.tree, set(counters))
        return stream

    @cached_property
    def _integer(self) -> str:
        """Returns the NumPy type that can hold every index and every address."""
        limit = 1 << 31
        roots = [src for access in self.accesses for src in access.node.src[0].src[1:]]
        ends = [end for root in roots for node in root.toposort() for end in bounds(node)]
        return "int32" if self.nbytes < limit and all(-limit <= end < limit for end in ends) else "int64"

    def chunks(self) -> Iterator[Chunk]:
        """Yields the stream in order.

        Raises:
            DataDependentAddress: an address depends on missing inputs.
        """
        if self.is_data_dependent or not has_numpy():
            yield from self._interpret_program()
        else:
            yield from self._walk_tree(self.tree, self.fixed)

    def whole(self) -> tuple[Array, Array]:
        """Returns the whole stream as two arrays: the access number and the piece of memory of each access."""
        import numpy as np

        numbers, lines = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for chunk in self.chunks():
            flat = chunk.lines.ravel()
            order = np.tile(chunk.columns, chunk.lines.shape[0])
            numbers.append(order[flat != NONE])
            lines.append(flat[flat != NONE].astype(np.int64))
        return np.concatenate(numbers), np.concatenate(lines)

    # *** by arithmetic ***

    def _walk_tree(self, items: Sequence[_Loop | int], env: dict[UOp, Any]) -> Iterator[Chunk]:
        import numpy as np

        count = self._count_accesses(items)
        if count is not None and count <= CHUNK:
            lines, columns = self._emit(items, env, 0)
            yield Chunk(lines.reshape(1, -1), np.asarray(columns, np.int32))
            return
        for item in items:
            if isinstance(item, int):
                lines, columns = self._emit([item], env, 0)
                yield Chunk(lines.reshape(1, -1), np.asarray(columns, np.int32))
                continue
            end = int(self._evaluate(item.node.src[0], env, 0, {}))
            inside = self._count_accesses(item.body)
            if inside is None or inside > CHUNK // 2:
                for counter in range(end):
                    yield from self._walk_tree(item.body, {**env, item.node: counter})
                continue
            step = max(1, CHUNK // max(1, inside))
            for start in range(0, end, step):
                counters = np.arange(start, min(end, start + step), dtype=self._integer)
                lines, columns = self._emit(item.body, {**env, item.node: counters}, 1, (len(counters),))
                yield Chunk(lines, np.asarray(columns, np.int32))

    def _count_accesses(self, items: Sequence[_Loop | int]) -> int | None:
        """Estimates the number of accesses; returns None if the end of a loop is no constant."""
        total = 0
        for item in items:
            if isinstance(item, int):
                total += self._count_most_pieces(self.accesses[item])
                continue
            inside = self._count_accesses(item.body)
            if inside is None or item.node.src[0].op is not Ops.CONST:
                return None
            total += inside * int(item.node.src[0].arg)
        return total

    def _count_most_pieces(self, access: ProgramAccess) -> int:
        """Returns the largest number of memory pieces that one access reaches, starting at a whole element."""
        size = _element_of(access.node).itemsize
        return (
            access.nbytes // self.unit if size >= self.unit else (self.unit - size + access.nbytes - 1) // self.unit + 1
        )

    def _emit(
        self, items: Sequence[_Loop | int], env: dict[UOp, Any], depth: int, shape: tuple[int, ...] = ()
    ) -> tuple[Array, list[int]]:
        """Returns the accesses of `items` for all counters in `env`, as an array of shape (*shape, columns).

        depth: the number of axes of the counters.
        """
        import numpy as np

        parts: list[Array] = []
        columns: list[int] = []
        memo: dict[UOp, Any] = {}
        for item in items:
            if isinstance(item, int):
                accessed = self._list_accessed_pieces(self.accesses[item], env, depth, memo)
                parts += [np.broadcast_to(lines, shape) for lines in accessed]
                columns += [item] * len(accessed)
                continue
            end = int(item.node.src[0].arg)
            inner = {
                node: value[..., None] if depth and not isinstance(value, int) else value for node, value in env.items()
            }
            inner[item.node] = np.arange(end, dtype=self._integer).reshape(*[1] * depth, end)
            lines, names = self._emit(item.body, inner, depth + 1, (*shape, end))
            parts.append(lines.reshape(*shape, -1))
            columns += names * end
        if len(parts) == 1 and parts[0].ndim == len(shape) + 1:
            return parts[0], columns
        out = np.empty((*shape, len(columns)), np.int32)
        column = 0
        for part in parts:
            if part.ndim == len(shape):
                out[..., column] = part
                column += 1
            else:
                out[..., column : column + part.shape[-1]] = part
                column += part.shape[-1]
        return out, columns

    def _list_accessed_pieces(
        self, access: ProgramAccess, env: dict[UOp, Any], depth: int, memo: dict[UOp, Any]
    ) -> list[Array]:
        import numpy as np

        index = access.node.src[0]
        dtype = access.node.dtype if access.node.op is Ops.LOAD else access.node.src[1].dtype
        assert isinstance(dtype, DType)
        size, base = dtype.scalar.itemsize, self.bases[index.src[0]]
        first: Any = self._evaluate(index.src[1], env, depth, memo)
        last = first + (dtype.count - 1)
        valid: Any = None
        if len(index.src) > 2:
            valid = np.asarray(self._evaluate(index.src[2], env, depth, memo))
            if index.src[2].dtype.count > 1:
                lanes = dtype.count
                last = first + (lanes - 1 - np.argmax(valid[::-1], axis=0))
                first = first + np.argmax(valid, axis=0)
                valid = valid.any(axis=0)
        shift = self.unit.bit_length() - 1
        low = (np.asarray(first) * size + base) >> shift
        spans = self._count_most_pieces(access)
        high = low if spans == 1 else (np.asarray(last) * size + (base + size - 1)) >> shift
        blocks = []
        for span in range(spans):
            lines = low + span if span else low
            inside = lines <= high if span else None
            if inside is not None and not inside.any():
                break
            if inside is not None and not inside.all():
                lines = np.where(inside, lines, NONE)
            blocks.append(lines if valid is None else np.where(valid, lines, NONE))
        return blocks

    def _evaluate(self, node: UOp, env: dict[UOp, Any], depth: int, memo: dict[UOp, Any]) -> Any:
        """Evaluates an index expression for all counters in `env`. A vector's lanes are the first axis."""
        if node in env:
            return env[node]
        if node not in memo:
            memo[node] = self._compute_value(node, env, depth, memo)
        return memo[node]

    def _compute_value(self, node: UOp, env: dict[UOp, Any], depth: int, memo: dict[UOp, Any]) -> Any:
        import numpy as np

        if node.op is Ops.CONST:
            return node.arg
        if node.op is Ops.DEFINE_VAR:
            if node not in self.values:
                raise DataDependentAddress(f"the value of {node.arg[0]} is not known")
            return self.values[node]
        src = [self._evaluate(source, env, depth, memo) for source in node.src]
        if node.op is Ops.VECTORIZE:
            shape = np.broadcast_shapes(*(np.shape(value) for value in src))
            full_shape = (1,) * (depth - len(shape)) + tuple(shape)
            return np.stack([np.broadcast_to(source, full_shape) for source in src])
        if node.op is Ops.GEP:
            return src[0][node.arg] if np.ndim(src[0]) else src[0]
        if node.op is Ops.CAST:
            return src[0] if not dtypes.is_bool(node.dtype) else np.asarray(src[0]) != 0
        function = _numpy_function_of(node.op)
        if function is None:
            raise DataDependentAddress(f"an index uses {node.op.name}, which the address stream cannot evaluate")
        return function(*src)

    # *** by interpretation ***

    def _interpret_program(self) -> Iterator[Chunk]:
        contents = self.contents
        if self.is_data_dependent and self.fixed:
            raise DataDependentAddress(
                "the addresses of this kernel depend on loaded values: the footprint of one tile is unknown"
            )
        if self.is_data_dependent and contents is None:
            raise DataDependentAddress(
                "the addresses of this kernel depend on loaded values: capture with keep_inputs=True to run it"
            )
        if contents is None:
            contents = [None] * sum(node.op is Ops.DEFINE_GLOBAL for node in self.uops)
        loops = {self.uops.index(node): counter for node, counter in self.fixed.items()}
        inside = [
            (access.place, number) for number, access in enumerate(self.accesses) if loops.keys() <= {*access.loops}
        ]
        number = dict(inside)
        values = [self.values[node] for node in variable_arguments(self.uops)]
        debugger = Debugger("kernel", self.uops, contents, values, log=1)
        counters: dict[int, Any] = dict.fromkeys(loops)
        lines: list[int] = []
        columns: list[int] = []
        for event in debugger.events():
            if event[0] in loops:
                counters[event[0]] = event[1]
            access = number.get(event[0])
            if access is None or counters != loops:
                continue
            pieces = self._list_pieces_of_access(self.accesses[access], event[2], event[3])
            lines += pieces
            columns += [access] * len(pieces)
            if len(lines) >= CHUNK:
                yield _make_chunk(lines, columns)
                lines, columns = [], []
        yield _make_chunk(lines, columns)

    def _list_pieces_of_access(self, access: ProgramAccess, position: int, mask: Any) -> list[int]:
        dtype = access.node.dtype if access.node.op is Ops.LOAD else access.node.src[1].dtype
        assert isinstance(dtype, DType)
        lanes = mask if isinstance(mask, list) else [True if mask is None else mask] * dtype.count
        valid = [lane for lane in range(dtype.count) if lanes[lane]]
        if not valid:
            return []
        size, base = dtype.scalar.itemsize, self.bases[access.node.src[0].src[0]]
        low = (base + (position + valid[0]) * size) // self.unit
        return list(range(low, (base + (position + valid[-1]) * size + size - 1) // self.unit + 1))


def _make_chunk(lines: list[int], columns: list[int]) -> Chunk:
    """Returns a chunk of one row, as NumPy arrays if NumPy is installed."""
    if not has_numpy():
        plain: Any = PlainList
        return Chunk(plain([lines]), plain(columns))
    import numpy as np

    return Chunk(np.asarray([lines], np.int32), np.asarray(columns, np.int32))


def _element_of(access: UOp) -> DType:
    dtype = access.dtype if access.op is Ops.LOAD else access.src[1].dtype
    assert isinstance(dtype, DType)
    return dtype.scalar


def _bodies_of(items: Sequence[_Loop | int], loops: set[UOp]) -> list[_Loop | int]:
    """Returns the tree with `loops` replaced by their bodies, without items outside of all of them."""
    if not loops:
        return list(items)
    body_items: list[_Loop | int] = []
    for item in items:
        if isinstance(item, int):
            continue
        body = _bodies_of(item.body, loops - {item.node})
        if item.node in loops:
            body_items += body
        elif body:
            body_items.append(_Loop(item.node, body))
    return body_items


def _numpy_function_of(op: Ops) -> Any:
    """Returns the NumPy function of an integer operation; None for an operation that occurs in no index."""
    import numpy as np

    def divide(x: Any, y: Any) -> Any:
        return np.where((np.asarray(x) % y != 0) & ((np.asarray(x) < 0) != (np.asarray(y) < 0)), x // y + 1, x // y)

    functions = {
        Ops.ADD: np.add,
        Ops.MUL: np.multiply,
        Ops.NEG: np.negative,
        Ops.MAX: np.maximum,
        Ops.MIN: np.minimum,
        Ops.CMPLT: np.less,
        Ops.CMPLE: np.less_equal,
        Ops.CMPEQ: np.equal,
        Ops.CMPNE: np.not_equal,
        Ops.AND: np.bitwise_and,
        Ops.OR: np.bitwise_or,
        Ops.XOR: np.bitwise_xor,
        Ops.SHL: np.left_shift,
        Ops.SHR: np.right_shift,
        Ops.WHERE: np.where,
        Ops.IDIV: divide,
        Ops.MOD: lambda x, y: x - divide(x, y) * y,
        Ops.MULACC: lambda x, y, z: x * y + z,
    }
    return functions.get(op)


__all__ = ["AddressStream", "Chunk", "DataDependentAddress", "ProgramAccess"]
