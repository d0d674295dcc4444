"""Analyzes a linear program before it is rendered: which nodes are used, how often, and which integers are small."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.wasm.values import MAX_I32, MIN_I32
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds

_ROOTS = frozenset(
    {
        *(Ops.STORE, Ops.ASSIGN, Ops.RANGE, Ops.ENDRANGE, Ops.RESULT),
        *(Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.DEFINE_ACC, Ops.DEFINE_LOCAL),
    }
)
_OTHERS = frozenset({Ops.CONST, Ops.BARRIER, Ops.PREFETCH, Ops.LOAD, Ops.VECTORIZE, Ops.GEP, Ops.HREDUCE})
_KNOWN = OpGroups.ALU | _ROOTS | _OTHERS
_NARROW_OPS = frozenset({Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.WHERE, Ops.NEG})
_NAMED_TWICE = frozenset({Ops.MAX, Ops.MIN, Ops.RANGE})  # operations whose text may use an operand more than once

BaseAddress = tuple[UOp, UOp | None]  # of an address: (the buffer, the variable part of the index)


class UseAnalysis:
    """The features that a linear program uses.

    live: nodes that contribute to some result.
    inlinable: nodes that are written inside the only expression that uses them.
    narrow: int64s that fit in 32 bits and are computed from other such int64s.
    base_addresses: the addresses to compute once their variable part is known.
    splatted: scalars that are loaded only to fill vectors.
    """

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.narrow: set[UOp] = set()
        for node in uops:
            if _is_narrow(node, self.narrow):
                self.narrow.add(node)
        self.live: set[UOp] = set()
        self.base_addresses: dict[UOp, list[BaseAddress]] = {}
        self._users: dict[UOp, list[UOp]] = {}
        for node in reversed(uops):
            if node.op is Ops.INDEX:
                continue  # its parts are used where memory is accessed
            if node in self.live or node.op in _ROOTS or node.op not in _KNOWN:
                self.live.add(node)
                self._use(node)
        self.splatted = {node for node in self.live if self._is_splatted(node)}
        self.inlinable = self._find_inlinable(uops)

    def _use(self, node: UOp) -> None:
        used_sources = node.src
        if node.op in (Ops.LOAD, Ops.STORE):
            index = node.src[0]
            base_address, _ = split_address(index)
            self.live.add(base_address[0])
            used_sources = (*index.src[2:], *(node.src[1:2] if node.op is Ops.STORE else ()))
            varying = base_address[1]
            if varying is not None:
                self.live.add(varying)
                uses = self.base_addresses.setdefault(varying, [])
                if varying.op is Ops.DEFINE_ACC:
                    self._users.setdefault(varying, []).append(node)
                elif base_address not in uses:
                    uses.append(base_address)
                    self._users.setdefault(varying, []).append(varying)
        for src in used_sources:
            self.live.add(src)
            self._users.setdefault(src, []).extend([node] * (2 if node.op in _NAMED_TWICE else 1))

    def _is_splatted(self, node: UOp) -> bool:
        if node.op is not Ops.LOAD or node.dtype.count > 1 or len(node.src[0].src) > 2 or dtypes.is_bool(node.dtype):
            return False
        users = self._users.get(node, ())
        return bool(users) and all(user.op is Ops.VECTORIZE and set(user.src) == {node} for user in users)

    def _find_inlinable(self, uops: Sequence[UOp]) -> set[UOp]:
        """Returns scalar integers and conditions that are used once, inside the same loop, and read no register.

        Also returns values assigned to a register before another register changes.
        """
        loop_of: dict[UOp, UOp | None] = {}
        loops: list[UOp] = []
        changes = 0
        changes_before: dict[UOp, int] = {}
        for node in uops:
            changes_before[node] = changes
            changes += node.op in (Ops.ASSIGN, Ops.DEFINE_ACC)
            if node.op is Ops.ENDRANGE:
                loops.pop()
            loop_of[node] = loops[-1] if loops else None
            if node.op is Ops.RANGE:
                loops.append(node)
        inlinable = set()
        for node in uops:
            users = self._users.get(node, ())
            if node.op not in OpGroups.ALU or len(users) != 1:
                continue
            if users[0].op is Ops.ASSIGN and changes_before[node] == changes_before[users[0]]:
                inlinable.add(node)
                continue
            if node.dtype.count > 1 or dtypes.is_float(node.dtype):
                continue
            if any(src.op in (Ops.DEFINE_ACC, Ops.RESULT) or dtypes.is_float(src.dtype) for src in node.src):
                continue
            if users[0].op is not Ops.ENDRANGE and loop_of[users[0]] is loop_of[node]:
                inlinable.add(node)
        return inlinable


def split_address(index: UOp) -> tuple[BaseAddress, int]:
    """Returns the buffer and variable position of an INDEX, and the constant offset in elements."""
    buffer, position = index.src[:2]
    if position.op is Ops.CONST:
        return (buffer, None), position.arg
    if position.op is Ops.ADD:
        for varying, constant_part in (position.src, position.src[::-1]):
            if constant_part.op is Ops.CONST and constant_part.arg >= 0 and bounds(varying)[0] >= 0:
                return (buffer, varying), constant_part.arg
    return (buffer, position), 0


def _is_narrow(node: UOp, narrow_nodes: set[UOp]) -> bool:
    """Whether an int64 fits in 32 bits and can be computed from sources that do."""
    if node.dtype is not dtypes.int64:
        return False
    low, high = bounds(node)
    if low < MIN_I32 or high > MAX_I32:
        return False
    if node.op in (Ops.CONST, Ops.DEFINE_VAR):
        return True
    if node.op is Ops.RANGE:
        return bounds(node.src[0])[1] <= MAX_I32
    if node.op is Ops.CAST:
        source = node.src[0].dtype
        return isinstance(source, DType) and not dtypes.is_float(source) and source.itemsize <= 4
    values = node.src[1:] if node.op is Ops.WHERE else node.src
    return node.op in _NARROW_OPS and all(src in narrow_nodes for src in values)
