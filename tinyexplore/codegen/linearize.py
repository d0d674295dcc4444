"""From a graph to a list: every value in the outermost loop that has what it needs, every loop opened and closed."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from tinyexplore.trace import Derived, active_recorder, staged
from tinyexplore.uop import Ops, UOp
from tinyexplore.util import consumers

Path = tuple[UOp, ...]  # the open loops, outermost first
ARGUMENTS = (Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR)  # stand first in the list


def by_id(loops: Iterable[UOp]) -> Path:
    return tuple(sorted(loops, key=lambda loop: loop.arg.id))


def linearize(sink: UOp, arguments: Iterable[UOp] = ()) -> tuple[UOp, ...]:
    """The program of `sink` (form: `docs/architecture.md`, "The linear program").

    `arguments`: the DEFINE_GLOBALs and DEFINE_VARs that a call gives; those that simplification left unused stay
    arguments.
    """
    return staged("linearize", sink, lambda: tuple(_Blocks(sink).emit(arguments)))


def common_prefix(paths: list[Path]) -> Path:
    first = paths[0]
    length = len(first)
    for path in paths:
        if path is first:
            continue
        length = min(length, len(path))
        for place in range(length):
            if path[place] is not first[place]:
                length = place
                break
    return first[:length]


class _Blocks:
    """Which loops each node stands in, and the order inside them."""

    def __init__(self, sink: UOp) -> None:
        self.recorder = active_recorder()
        self.order = [node for node in sink.toposort() if node.op not in (Ops.SINK, Ops.RANGE)]
        self.place = {node: number for number, node in enumerate(self.order)}
        self.path: dict[UOp, Path] = {}
        self.find_paths()

    def find_paths(self) -> None:
        users = consumers(self.order, lambda node: node.src)
        steps: dict[UOp, list[UOp]] = {}  # of each loop, what uses its variable
        ends: dict[UOp, list[UOp]] = {}  # the loops that end at a node
        for node in self.order:
            for loop in node.src:
                if loop.op is Ops.RANGE:
                    steps.setdefault(loop, []).append(node)
        for loop in steps:
            ends.setdefault(loop.src[0], []).append(loop)
        for node in reversed(self.order):
            if node in self.path:
                continue
            if node.op is Ops.STORE:
                self.path[node] = by_id(node.ranges)
                continue
            paths = [self.path[user] for user in users[node]]
            paths += [around for loop in ends.get(node, ()) for around in self.paths_around(loop, steps[loop])]
            wanted = common_prefix(paths) if paths else ()
            if any(src.op is Ops.DEFINE_ACC for src in node.src) and node.op is not Ops.RESULT:
                self.path[node] = wanted  # it reads a register that the loop changes: it stays inside
                continue
            self.path[node] = self.outermost(node, wanted)
            if node.op is Ops.RESULT:
                register, assigned, *loops = node.src
                is_scan = len(assigned.src) == 3  # read in the loop that changes it, which is the innermost
                self.path[register] = self.path[node][:-1] if is_scan else self.path[node]
                self.path[assigned] = self.path[node] + by_id(loops)
            if node.op is Ops.BARRIER:
                inside = self.path[node] + by_id(src for src in node.src if src.op is Ops.RANGE)
                self.path.update({src: inside for src in node.src if src.op is Ops.STORE})

    def paths_around(self, loop: UOp, users: list[UOp]) -> list[Path]:
        """The loops outside of `loop`, wherever its variable is used."""
        return [path[: path.index(loop)] for user in users if loop in (path := self.path[user])]

    def outermost(self, node: UOp, wanted: Path) -> Path:
        """The shortest part of `wanted` that has every loop that `node` depends on."""
        ranges, depth, found = node.ranges, 0, 0
        if not ranges:
            return ()
        for place, loop in enumerate(wanted, 1):
            if loop in ranges:
                depth, found = place, found + 1
        if found < len(ranges):
            missing = ranges - set(wanted)
            names = ", ".join(sorted(loop.arg.name for loop in missing))
            raise ValueError(f"{node!r} is used outside the loops {names} that it depends on")
        return wanted[:depth]

    def emit(self, arguments: Iterable[UOp]) -> list[UOp]:
        given = {*arguments, *(node for node in self.order if node.op in ARGUMENTS)}
        out = sorted((node for node in given if node.op is Ops.DEFINE_GLOBAL), key=lambda node: node.arg)
        out += sorted((node for node in given if node.op is Ops.DEFINE_VAR), key=lambda node: node.arg[0])
        self.emit_block((), self.order, out)
        return out

    def emit_block(self, path: Path, inside: list[UOp], out: list[UOp]) -> None:
        """The nodes of one loop body and the loops in it, each after what it needs, else in the graph's order."""
        depth = len(path)
        unit: dict[UOp, UOp] = {}  # what is put in order here: the node itself, or the loop that it stands in
        contents: dict[UOp, list[UOp]] = {}
        for node in inside:
            own = self.path[node]
            name = unit[node] = node if len(own) == depth else own[depth]
            contents.setdefault(name, []).append(node)
        needs: dict[UOp, set[UOp]] = {name: set() for name in contents}
        for node in inside:
            mine = unit[node]
            for src in node.src:
                other = unit.get(src)
                if other is not None and other is not mine:
                    needs[mine].add(other)
        for name, nodes in contents.items():
            if name.op is Ops.RANGE:  # where it, and the loops inside it, end
                ends = {loop.src[0] for node in nodes for loop in self.path[node][depth:]}
                needs[name].update(end for end in ends if self.path[end] == path)
        users: dict[UOp, list[UOp]] = {name: [] for name in contents}
        for name, sources in needs.items():
            for source in sources:
                users[source].append(name)
        left = {name: len(sources) for name, sources in needs.items()}
        key = {name: self.place[nodes[-1]] for name, nodes in contents.items()}
        ready = [(key[name], id(name), name) for name, count in left.items() if count == 0]
        ready.sort()
        emitted = 0
        while ready:
            _, _, name = heappop(ready)
            emitted += 1
            if name.op is Ops.RANGE:
                out.append(name)
                self.emit_block((*path, name), contents[name], out)
                closed = UOp(Ops.ENDRANGE, src=(name,))
                if self.recorder is not None:
                    self.recorder.record(Derived(name, closed, "closes the loop"))
                out.append(closed)
            elif name.op not in ARGUMENTS:
                out.append(name)
            for user in users[name]:
                left[user] -= 1
                if left[user] == 0:
                    heappush(ready, (key[user], id(user), user))
        if emitted != len(contents):
            raise ValueError("loops that need each other's results: the kernel cannot be put in order")
