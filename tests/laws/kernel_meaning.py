"""The semantics of a kernel in range form, element by element: every pass must preserve it.

A RANGE is a loop; once VECTOR axes have become vectors, it is the vector of its steps. Slow; for small kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any

from tests.laws.meaning import Lanes
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.identity import reduce_identity
from tinyexplore.uop.semantics import evaluate

Memory = Mapping[Any, list[Any]]


def run_kernel(sink: UOp, memory: Memory, *, lanes: bool) -> None:
    """Every store of `sink`, at every point of its loops. lanes: VECTOR axes are vectors already."""
    machine = Machine(memory, lanes)
    machine.assigns = {assign.src[0]: assign for assign in sink.find(Ops.ASSIGN)}
    for store in sink.src:
        stores = store.src if store.op is Ops.SINK else (store,)
        for one in stores:
            machine.store(one)


class Machine:
    def __init__(self, memory: Memory, lanes: bool) -> None:
        self.memory = memory
        self.lanes = lanes
        self.assigns: dict[UOp, UOp] = {}  # of each register
        self.scratch: dict[UOp, list[Any]] = {}
        self.filled: dict[
            UOp, Any
        ] = {}  # for which barrier, and where in the loops around it, scratch memory is filled
        self.loops_done: dict[Any, Lanes] = {}  # a node that loops has one value for each step of the loops around

    def points(self, loops: list[UOp], at: dict[UOp, Lanes]) -> Iterator[dict[UOp, Lanes]]:
        """`at` with every combination of steps of `loops`; the sizes may depend on outer loops."""
        if not loops:
            yield at
            return
        first, *rest = loops
        (end,) = self.value(first.src[0], dict(at))
        for step in range(end):
            yield from self.points(rest, {**at, first: (step,)})

    def is_loop(self, axis: UOp) -> bool:
        return not (self.lanes and axis.arg.kind is AxisKind.VECTOR)

    def store(self, store: UOp) -> None:
        loops = sorted(filter(self.is_loop, store.ranges), key=lambda axis: axis.arg.id)
        for at in self.points(loops, {}):
            self.store_at(store, at)

    def store_at(self, store: UOp, at: dict[UOp, Lanes]) -> None:
        place, value = store.src
        values = self.value(value, dict(at))
        if place.op is Ops.VECTORIZE:
            for lane, one in enumerate(place.src):
                self.put(one, (values[lane % len(values)],), at)
        else:
            count = store.arg or value.dtype.count
            self.put(place, values * count if len(values) == 1 else values, at)

    def fill(self, barrier: UOp, around: dict[UOp, Lanes]) -> None:
        """What the stores of `barrier` put into scratch memory at this point of the loops around it."""
        at = {axis: around[axis] for axis in sorted(barrier.ranges, key=lambda axis: axis.arg.id) if axis in around}
        here = (barrier, tuple(at.items()))
        stores = [
            one for src in barrier.src for one in (src.src if src.op is Ops.SINK else (src,)) if one.op is Ops.STORE
        ]
        pointers = {
            (place.src[0] if place.op is Ops.VECTORIZE else place).src[0] for place in (s.src[0] for s in stores)
        }
        if all(self.filled.get(pointer) == here for pointer in pointers):
            return
        loops = [src for src in barrier.src if src.op is Ops.RANGE and self.is_loop(src)]
        for inside in self.points(loops, at):
            for store in stores:
                self.store_at(store, inside)
        self.filled.update(dict.fromkeys(pointers, here))

    def buffer(self, pointer: UOp) -> list[Any]:
        if pointer.op is Ops.DEFINE_LOCAL:
            return self.scratch.setdefault(pointer, [None] * pointer.dtype.size)
        return self.memory[pointer.arg]

    def put(self, place: UOp, values: Lanes, at: dict[UOp, Lanes]) -> None:
        for where, value in zip(self.places(place, len(values), at), values, strict=True):
            if where is not None:
                self.buffer(place.src[0])[where] = value

    def places(self, index: UOp, count: int, at: dict[UOp, Lanes]) -> list[int | None]:
        """The elements of an access of `count` lanes; None for lanes that are not valid."""
        (start,) = self.value(index.src[1], dict(at))
        valid = self.value(index.src[2], dict(at)) if len(index.src) > 2 else (True,)
        valid = valid * count if len(valid) == 1 else valid
        found = [start + lane if allowed else None for lane, allowed in enumerate(valid)]
        size = len(self.buffer(index.src[0]))
        assert all(where is None or 0 <= where < size for where in found), f"outside of the buffer: {found} of {size}"
        return found

    def value(self, node: UOp, known: dict[UOp, Lanes]) -> Lanes:
        """The lanes of `node`; `known` holds the loop variables and what has been computed at this point."""
        for part in _needed(node, known):
            if part.op not in (Ops.REDUCE, Ops.RESULT):
                known[part] = self.compute(part, known)
                continue
            around = (part, *((axis, known[axis]) for axis in part.ranges if self.is_loop(axis)))
            if around not in self.loops_done:
                self.loops_done[around] = self.compute(part, known)
            known[part] = self.loops_done[around]
        return known[node]

    def registers_of(self, assign: UOp, around: dict[UOp, Lanes]) -> dict[UOp, UOp]:
        """The register of `assign` and those that change in the same steps, as its new value needs them; each with
        its own new value."""
        found: dict[UOp, UOp] = {}
        pending = [assign]
        while pending:
            register, value, *_ = pending.pop().src
            found[register] = value
            read = [part for part in _needed(value, around) if part.op is Ops.DEFINE_ACC and part not in found]
            pending += [self.assigns[one] for one in read]
        return found

    def compute(self, node: UOp, known: dict[UOp, Lanes]) -> Lanes:
        loops = {part: lanes for part, lanes in known.items() if part.op in (Ops.RANGE, Ops.DEFINE_ACC)}
        match node.op:
            case Ops.CONST:
                return (node.arg,) * node.dtype.count
            case Ops.RANGE:
                assert not self.is_loop(node), f"the loop {node.arg} is not open"
                return tuple(range(node.size))
            case Ops.LOAD:
                for barrier in node.src[1:]:
                    if barrier.op is Ops.BARRIER:
                        self.fill(barrier, loops)
                buffer = self.buffer(node.src[0].src[0])
                places = self.places(node.src[0], node.dtype.count, loops)
                zero = reduce_identity(Ops.ADD, node.dtype.scalar).arg
                return tuple(zero if place is None else buffer[place] for place in places)
            case Ops.REDUCE:
                total: Lanes = (reduce_identity(node.arg, node.dtype.scalar).arg,)
                for at in self.points([axis for axis in node.src[1:] if self.is_loop(axis)], loops):
                    total = _lane_by_lane(node.arg, node, [total, self.value(node.src[0], at)])
                return total
            case Ops.HREDUCE:
                rows = [known[src] for src in node.src if src.op is not Ops.RANGE]
                return tuple(reduce(partial(evaluate, node.arg, node.dtype.scalar), row) for row in rows)
            case Ops.DEFINE_ACC:
                return known[node.src[0]]
            case Ops.RESULT:
                register, assign, *axes = node.src
                together = self.registers_of(assign, loops)
                held = {one: self.value(one.src[0], dict(loops)) for one in together}
                for at in self.points(list(axes), loops):
                    held = {one: self.value(value, {**at, **held}) for one, value in together.items()}
                return held[register]
            case Ops.VECTORIZE:
                return tuple(known[src][0] for src in node.src)
            case Ops.WMMA:  # any product that is added to the last source
                return _lane_by_lane(Ops.MULACC, node, [known[src] for src in node.src])
            case Ops.GEP:
                vector, *axis = (known[src] for src in node.src)
                return (vector[axis[0][0] if axis else node.arg],)
        assert node.op in OpGroups.ALU, f"{node.op} has no value in range form"
        return _lane_by_lane(node.op, node, [known[src] for src in node.src])


def _needed(root: UOp, known: dict[UOp, Lanes]) -> list[UOp]:
    """Returns the nodes to compute for `root`, sources first. A node that loops computes its own sources later."""
    found: dict[UOp, None] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        if node in known or node in found:
            stack.pop()
            continue
        own = node.op in (Ops.LOAD, Ops.REDUCE, Ops.RESULT, Ops.RANGE)
        sources = () if own else node.src
        if node.op is Ops.HREDUCE:  # before the lanes are vectors, the axis that they are stands there as well
            sources = tuple(src for src in node.src if src.op is not Ops.RANGE)
        missing = [src for src in sources if src not in known and src not in found]
        if missing:
            stack.extend(missing)
            continue
        found[stack.pop()] = None
    return list(found)


def _lane_by_lane(op: Ops, node: UOp, sources: list[Lanes]) -> Lanes:
    count = max(map(len, sources))
    wide = [lanes * count if len(lanes) == 1 else lanes for lanes in sources]
    dtype = node.dtype.scalar
    kinds = (dtype,) * len(sources) if node.op is Ops.REDUCE else tuple(src.dtype.scalar for src in node.src)
    return tuple(evaluate(op, dtype, *lane, src_dtypes=kinds) for lane in zip(*wide, strict=True))


__all__ = ["Machine", "run_kernel"]
