"""Pass "linearize": orders the graph as a list of instructions, and opens and closes every loop.

Loop-invariant code motion: each value stands in the outermost loop that has its operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from heapq import heappop, heappush
from operator import itemgetter

from tinyexplore.codegen.lowering import ARGUMENTS, Lowering
from tinyexplore.codegen.rewrites.fp8 import as_bytes
from tinyexplore.dtype import dtypes
from tinyexplore.trace import NodeDerived, active_recorder
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.uop import axes_mask, ops_mask

Path = tuple[UOp, ...]  # the open loops, outermost first
RARE = axes_mask((AxisKind.RARE,))
REGISTERS = ops_mask((Ops.DEFINE_ACC,))
# nodes that are in a program for their effect, not for their readers
EFFECTS = frozenset((Ops.STORE, Ops.ASSIGN, Ops.BARRIER, Ops.PREFETCH, Ops.RESULT, Ops.DEFINE_ACC))
L2_PARTS = 8  # an argument of at least 1/FAR of the L2 cache may be evicted from it by others
WITH_LOOPS = frozenset((Ops.STORE, Ops.RESULT, Ops.BARRIER))  # their positions determine those of their loops


def by_id(loops: Iterable[UOp]) -> Path:
    return tuple(sorted(loops, key=lambda loop: loop.arg.id))


def linearize(sink: UOp, lowering: Lowering) -> tuple[UOp, ...]:
    """Orders the graph: each node is in the outermost loop that has its operands, after its operands.

        STORE(out[i], x[i] * (a + 1))  →  b = a + 1; for i: store out[i], x[i] * b; end of i

    The result is described in `docs/reference.md`, "The linear program". The arguments of the kernel come first.
    """
    arguments = [as_bytes(node) for node in lowering.arguments]
    return tuple(_BlockOrder(sink, lowering.target.l2_bytes).emit(arguments))


def common_prefix(first: Path, second: Path) -> Path:
    length = 0
    for loop, other_loop in zip(first, second):
        if loop is not other_loop:
            break
        length += 1
    return first[:length]


def extend_into_rare(shorter_path: Path, path: Path) -> Path:
    """Returns `shorter_path`, extended along `path` so that nodes that only a RARE body needs stay inside that body."""
    rare_depths = [depth for depth, loop in enumerate(path, 1) if loop.arg.kind is AxisKind.RARE]
    return path[: max(len(shorter_path), rare_depths[-1])] if rare_depths else shorter_path


class _IntermediateFinder:
    """Finds the nodes between a register and a value, in one order of a graph."""

    def __init__(self, order: Sequence[UOp]) -> None:
        self.node_position = {node: number for number, node in enumerate(order)}
        self.users: dict[UOp, list[UOp]] = {}
        for node in order:
            for src in node.src:
                self.users.setdefault(src, []).append(node)

    def nodes_between(self, value: UOp, register: UOp) -> set[UOp]:
        """Returns `value` and the nodes below it that depend on `register`. The cost is proportional to their
        number."""
        last_node_position, dependent_nodes, todo = self.node_position[value], {register}, [register]
        while todo:
            for user in self.users.get(todo.pop(), ()):
                if user not in dependent_nodes and self.node_position[user] <= last_node_position:
                    dependent_nodes.add(user)
                    todo.append(user)
        reached, todo = {value} & dependent_nodes, [value]
        while todo:
            for src in todo.pop().src:
                if src in dependent_nodes and src not in reached:
                    reached.add(src)
                    todo.append(src)
        return reached - {register}


class _BlockOrder:
    """Computes the loops around each node, and the order inside them. A block is identified by its path."""

    def __init__(self, sink: UOp, l2_bytes: int) -> None:
        self.l2_bytes = l2_bytes
        self.recorder = active_recorder()
        self.order = [node for node in sink.toposort() if node.op is not Ops.SINK and node.op is not Ops.RANGE]
        self.path: dict[UOp, Path] = {}
        self.known: dict[tuple[frozenset[UOp], Path], Path] = {}  # cached results of `outermost`
        self.has_rare = bool(sink.mask & RARE)
        self.written = {node.src[0].src[0] for node in self.order if node.op is Ops.STORE}
        self.find_paths()

    def find_paths(self) -> None:
        """Assigns each node its enclosing loops, users before operands."""
        steps: dict[UOp, list[UOp]] = {}  # for each loop, the users of its variable
        ends: dict[UOp, list[UOp]] = {}  # the loops that end at a node
        reading: set[UOp] = set()  # readers of a register that a loop changes; they stay inside the loop
        shared: dict[UOp, Path] = {}  # for each node, the loops around all of its users so far
        registers = {node for node in self.order if node.op is Ops.DEFINE_ACC}
        path, paths = self.path, self.known
        between: _IntermediateFinder | None = None
        for node in reversed(self.order):
            op = node.op
            if op is Ops.ASSIGN and (len(node.src) == 3 or node.src[0] not in node.src[1].src):
                # a scan's register may be read in several steps; also, (acc + x) + 1 reads one
                between = between or _IntermediateFinder(self.order)
                reading.update(between.nodes_between(node.src[1], node.src[0]))
            node_path = path.get(node)
            if node_path is None:
                if op is Ops.DEFINE_ACC:
                    raise ValueError(f"{node!r} has no RESULT: the accumulator cannot be placed after its loops")
                uses_register = node.mask & REGISTERS and not registers.isdisjoint(node.src)
                # a RESULT reads after its loops
                is_reading = (uses_register and op is not Ops.RESULT) or node in reading
                if is_reading or op in WITH_LOOPS or node in ends or self.has_rare:
                    node_path = self.find_path(node, shared.get(node), ends, steps, is_reading)
                elif node.ranges:
                    loops_around = shared.get(node, ())
                    node_path = paths.get((node.ranges, loops_around)) or self.outermost(node, loops_around)
                else:
                    node_path = ()
                path[node] = node_path
            for src in node.src:
                shared_path = shared.get(src)
                if shared_path is None:
                    if src.op is not Ops.RANGE:
                        shared[src] = node_path
                        continue
                    if src not in steps:
                        steps[src] = []
                        ends.setdefault(src.src[0], []).append(src)
                    steps[src].append(node)
                elif shared_path is not node_path and shared_path:
                    shared[src] = common_prefix(shared_path, node_path)

    def find_path(
        self,
        node: UOp,
        innermost: Path | None,
        ends: dict[UOp, list[UOp]],
        steps: dict[UOp, list[UOp]],
        is_reading: bool,
    ) -> Path:
        """Returns the loops around `node`, outermost first. Also sets the paths of a RESULT's or BARRIER's sources.

        node: the node. All of its users have a path.
        innermost: the loops around all of its users so far; None without users.
        ends: the loops that end at a node.
        steps: for each loop, the users of its variable.
        is_reading: whether `node` reads a register that a loop changes, so that it stays inside the loop.
        """
        if node.op is Ops.STORE:
            return by_id(node.ranges)
        if not node.ranges and not is_reading and node.op not in WITH_LOOPS:
            return ()
        for loop in ends.get(node, ()):
            for outer_path in self.paths_around(loop, steps[loop]):
                innermost = outer_path if innermost is None else common_prefix(innermost, outer_path)
        if innermost is None:
            innermost = ()
        if is_reading:
            return innermost
        node_path = self.outermost(node, innermost)
        if node.op is Ops.RESULT:
            register, assigned, *loops = node.src
            # the node reads the register in the loop that changes it, which is the innermost
            is_scan = len(assigned.src) == 3
            self.path[register] = node_path[:-1] if is_scan else node_path
            self.path[assigned] = node_path + by_id(loops)
        if node.op is Ops.BARRIER:
            inner_path = node_path + by_id(src for src in node.src if src.op is Ops.RANGE)
            self.path.update({src: inner_path for src in node.src if src.op is Ops.STORE})
        return extend_into_rare(node_path, innermost) if self.has_rare and node.op is not Ops.RESULT else node_path

    def paths_around(self, loop: UOp, users: list[UOp]) -> list[Path]:
        """Returns the loops outside `loop` at each use of its variable; for a RARE loop, at each use of its result."""
        if loop.arg.kind is AxisKind.RARE:
            return [self.path[user] for user in users]
        return [path[: path.index(loop)] for user in users if loop in (path := self.path[user])]

    def outermost(self, node: UOp, innermost: Path) -> Path:
        """Returns the shortest prefix of `innermost` that has every loop that `node` depends on."""
        key = (node.ranges, innermost)
        cached = self.known.get(key)
        if cached is None:
            missing = set(node.ranges)
            depth = 0
            while missing and depth < len(innermost):
                missing.discard(innermost[depth])
                depth += 1
            if missing:
                names = ", ".join(sorted(loop.arg.name for loop in missing))
                raise ValueError(f"{node!r} is used outside the loops {names} that it depends on")
            cached = self.known[key] = innermost[:depth]
        return cached

    def emit(self, arguments: Iterable[UOp]) -> list[UOp]:
        self.find_blocks()
        emitted = {*arguments, *(node for node in self.plain[()] if node.op in ARGUMENTS)}
        out = sorted((node for node in emitted if node.op is Ops.DEFINE_GLOBAL), key=lambda node: node.arg)
        out += sorted((node for node in emitted if node.op is Ops.DEFINE_VAR), key=lambda node: node.arg[0])
        self.emit_block((), out)
        return out

    def find_blocks(self) -> None:
        """Finds the nodes of each block, the loops in it, and the dependences between these units."""
        block_nodes: list[UOp] = []
        block: Path = ()
        self.plain: dict[Path, list[UOp]] = {block: block_nodes}
        for node in self.order:
            node_path = self.path[node]
            if node_path is not block:
                block, block_nodes = node_path, self.plain.setdefault(node_path, [])
            block_nodes.append(node)
        self.node_position = {node: number for number, node in enumerate(self.order)}
        # for each block, the position of its last node, which orders loops
        last_node_positions = {
            node_path: self.node_position[nodes[-1]] for node_path, nodes in self.plain.items() if nodes
        }
        self.key: dict[Path, int] = {}
        self.loops: dict[Path, list[Path]] = {}
        self.needs: dict[Path, set[UOp | Path]] = {}
        for node_path, number in last_node_positions.items():
            ends = []
            for depth in range(len(node_path), 0, -1):
                inner, outer = node_path[:depth], node_path[: depth - 1]
                if inner not in self.key:
                    self.loops.setdefault(outer, []).append(inner)
                    self.needs[inner] = set()
                self.key[inner] = max(number, self.key.get(inner, -1))
                ends.append(inner[-1].src[0])  # a loop starts where it, and the loops inside it, can end
                self.needs[inner].update([end for end in ends if self.path[end] == outer])
        self.find_needs_across()

    def find_needs_across(self) -> None:
        """Adds the order of blocks: if a node reads a node of another block, the two loops (or nodes) that contain them
        in their common block get an edge.
        """
        self.across: dict[UOp, set[UOp | Path]] = {}  # the dependences of a node on loops beside it
        for block_path, nodes in self.plain.items():
            outer_sources = set[UOp]().union(*[node.src for node in nodes]).difference(nodes)
            inner: dict[UOp, UOp | Path] = {}  # sources in loops of this block, and these loops
            for src in outer_sources:
                source_path = self.path.get(src)
                if source_path is None:
                    continue
                depth = len(common_prefix(block_path, source_path))
                needed_unit = src if len(source_path) == depth else source_path[: depth + 1]
                if len(block_path) == depth:
                    inner[src] = needed_unit
                else:
                    self.needs[block_path[: depth + 1]].add(needed_unit)
            for node in nodes if inner else ():
                if not inner.keys().isdisjoint(node.src):
                    self.across[node] = {inner[src] for src in node.src if src in inner}

    def units_of(self, path: Path, loops: list[Path], plain_nodes: list[UOp]) -> list[tuple[int, UOp | Path]]:
        """Returns the nodes and loops of a loop body with their positions in the graph's order, sorted by these."""
        position, key = self.node_position, self.key
        late_loads = self.loads_after_loops(path, loops, plain_nodes)
        behind = len(self.order)
        units: list[tuple[int, UOp | Path]] = [
            (position[node] + behind if node in late_loads else position[node], node) for node in plain_nodes
        ]
        units += [(key[loop], loop) for loop in loops]
        if late_loads and any(loop[-1].arg.kind is AxisKind.REDUCE for loop in loops):
            units += [
                (position[node], self.prefetch_of(node))
                for node in plain_nodes
                if node in late_loads and self.is_beyond_l2(node)
            ]
        units.sort(key=itemgetter(0))
        return units

    def emit_block(self, path: Path, out: list[UOp]) -> None:
        """Emits the nodes of one loop body and the loops in it, each after its dependences, otherwise in the graph's
        order."""
        plain_nodes = self.plain.get(path, [])
        loops = self.loops.get(path)
        if not loops:
            out += plain_nodes if path else [node for node in plain_nodes if node.op not in ARGUMENTS]
            return
        units = self.units_of(path, loops, plain_nodes)
        emitted: set[UOp | Path] = set()
        waiting: dict[UOp | Path, int] = {}  # units that came up too early, with the number of missing dependences
        users: dict[UOp | Path, list[tuple[int, UOp | Path]]] = {}
        ready: list[tuple[int, UOp | Path]] = []  # units whose dependences have been emitted

        def emit_unit(name: UOp | Path) -> None:
            emitted.add(name)
            if isinstance(name, tuple):
                out.append(name[-1])
                self.emit_block(name, out)
                closed = UOp(Ops.ENDRANGE, src=(name[-1],))
                if self.recorder is not None:
                    self.recorder.record(NodeDerived(name[-1], closed, "closes the loop"))
                out.append(closed)
            elif name.op not in ARGUMENTS:
                out.append(name)
            for user in users.pop(name, ()):
                waiting[user[1]] -= 1
                if not waiting[user[1]]:
                    heappush(ready, user)

        across = self.across
        for unit in units:
            number, name = unit
            if not waiting and name not in across and not isinstance(name, tuple):
                emitted.add(name)
                if name.op not in ARGUMENTS:
                    out.append(name)
                continue
            while ready and ready[0][0] < number:
                emit_unit(heappop(ready)[1])
            missing = self.missing_dependences(name, waiting, emitted)
            if not missing:
                emit_unit(name)
                continue
            waiting[name] = len(missing)
            for needed_unit in missing:
                users.setdefault(needed_unit, []).append(unit)
        while ready:
            emit_unit(heappop(ready)[1])
        if len(emitted) != len(units):
            raise ValueError("cannot order the kernel: two loops depend on each other's results")

    def loads_after_loops(self, path: Path, loops: list[Path], plain_nodes: list[UOp]) -> set[UOp]:
        """Returns loads of arguments, and values computed from them, that are used only after the loops of a block.

        They are placed after the loops, because registers would hold them until then for each result of a tile. Before
        a sum they are only prefetched.
        """
        if any(loop.arg.kind is AxisKind.SCAN for loop in path):
            return set()  # its stores are in order
        last_loop_key = max(self.key[loop] for loop in loops)
        loads = {
            node
            for node in plain_nodes
            if node.op is Ops.LOAD and self.node_position[node] < last_loop_key and self.reads_constant_memory(node)
        }
        if not loads:
            return loads
        later_nodes: set[UOp] = set()
        for node in plain_nodes:
            if not later_nodes.isdisjoint(node.src) or any(
                isinstance(unit, tuple) for unit in self.across.get(node, ())
            ):
                later_nodes.add(node)
        needed_nodes = {unit for loop in loops for unit in self.needs[loop] if not isinstance(unit, tuple)}
        for node in reversed(plain_nodes):
            if node in needed_nodes or (node.op in EFFECTS and node not in later_nodes):
                needed_nodes.update(node.src)
        loads -= needed_nodes
        for node in plain_nodes:
            if node not in needed_nodes and not loads.isdisjoint(node.src):
                loads.add(node)
        return loads

    def reads_constant_memory(self, load: UOp) -> bool:
        """Whether a load reads memory that the program does not write."""
        return load.src[0].src[0] not in self.written and all(src.op is Ops.PREFETCH for src in load.src[1:])

    def is_beyond_l2(self, node: UOp) -> bool:
        """Whether this is a vector load from memory that may have left the L2 cache."""
        if node.op is not Ops.LOAD or node.dtype.count == 1 or len(node.src) > 1 or len(node.src[0].src) > 2:
            return False
        dtype = node.src[0].src[0].dtype
        return 0 < self.l2_bytes <= L2_PARTS * dtype.size * dtype.base.itemsize

    def prefetch_of(self, load: UOp) -> UOp:
        """Returns the prefetch of the cache line of `load`."""
        prefetch = UOp(Ops.PREFETCH, dtypes.void, load.src[:1])
        if self.recorder is not None:
            self.recorder.record(NodeDerived(load, prefetch, "requested before the loop"))
        return prefetch

    def missing_dependences(
        self, name: UOp | Path, waiting: Mapping[UOp | Path, int], emitted: Set[UOp | Path]
    ) -> set[UOp | Path]:
        """Returns the dependences of a unit that have not been emitted. A node's own sources have come up before it."""
        if isinstance(name, tuple):
            return self.needs[name] - emitted
        missing = self.across.get(name, set()) - emitted
        if waiting:
            missing.update([src for src in name.src if src in waiting and src not in emitted])
        return missing
