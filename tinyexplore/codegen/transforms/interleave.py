"""Pass "interleave": interleaves the copies of one long computation in a loop's body, operation by operation.

In sequence, the first copy would fill the processor's queues of waiting operations, and the units would idle at the end
of each dependence chain. (gelu on a Zen 4: 4.2 instead of 4.7 ns for 16 lanes.)
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType
from tinyexplore.target import Target
from tinyexplore.uop import OpGroups, Ops, UOp

MIN_OPERATIONS = 14  # fewest operations: a processor itself overlaps shorter chains
MAX_COPIES = 4  # most interleaved copies
MOVABLE_OPS = OpGroups.ALU | {Ops.CONST, Ops.INDEX, Ops.LOAD, Ops.TABLE, Ops.VECTORIZE, Ops.STORE}


def interleave(uops: Sequence[UOp], lowering: Lowering) -> tuple[UOp, ...]:
    """Interleaves the copies of a computation in an innermost loop: one operation of each copy, then the next.

        a1 a2 a3 … b1 b2 b3 …  →  a1 b1 a2 b2 a3 b3 …

    The number of copies is limited by the registers that hold their values. Only the order of the program changes.
    """
    target = lowering.target
    out: list[UOp] = []
    body: list[UOp] | None = None
    for node in uops:
        if node.op is Ops.RANGE:
            out += body or ()
            body = []
        elif node.op is Ops.ENDRANGE:
            out += _interleave_copies(body, target) if body else ()
            body = None
        if body is None or node.op is Ops.RANGE:
            out.append(node)
        else:
            body.append(node)
    return tuple(out)


def _interleave_copies(body: list[UOp], target: Target) -> list[UOp]:
    """Returns `body` with its copies interleaved; unchanged if it has no copies, or no registers for two of them."""
    stores = [node for node in body if node.op is Ops.STORE]
    if len(stores) < 2 or len(body) < len(stores) * MIN_OPERATIONS or not _may_reorder(body, stores):
        return body
    owner = _find_only_stores(body)
    chains = [[node for node in body if owner[node] is store and _moves_to_front(node)] for store in stores]
    if not _are_copies(chains) or _needs_several_registers(chains[0], target):
        return body
    group_size = _count_copies_that_fit(chains[0], target.vector_registers)
    if group_size < 2:
        return body
    out = [node for node in body if owner[node] is None or not _moves_to_front(node)]
    for group_start in range(0, len(chains), group_size):
        for step in zip(*chains[group_start : group_start + group_size], strict=True):
            out += step
    return out


def _may_reorder(body: Sequence[UOp], stores: Sequence[UOp]) -> bool:
    """Whether the order of loads is free: none is masked, and none reads memory that `stores` write."""
    if any(node.op not in MOVABLE_OPS for node in body):
        return False
    written_memory = {store.src[0].src[0] for store in stores}
    loads = [node for node in body if node.op is Ops.LOAD]
    return all(len(load.src) == 1 and load.src[0].src[0] not in written_memory for load in loads)


def _find_only_stores(body: Sequence[UOp]) -> dict[UOp, UOp | None]:
    """Returns for each node the only store that needs it; None if several do."""
    owner: dict[UOp, UOp | None] = {}
    for node in reversed(body):
        node_owner = node if node.op is Ops.STORE else owner.get(node)
        owner[node] = node_owner
        for src in node.src:
            owner[src] = node_owner if owner.get(src, node_owner) is node_owner else None
    return owner


def _are_copies(chains: Sequence[Sequence[UOp]]) -> bool:
    """Whether the chains are long and have the same operations, in the same order."""
    first_operations, *other_operations = [[(node.op, node.dtype) for node in chain] for chain in chains]
    return len(first_operations) >= MIN_OPERATIONS and all(
        chain_operations == first_operations for chain_operations in other_operations
    )


def _needs_several_registers(chain: Sequence[UOp], target: Target) -> bool:
    """Whether a vector of the chain is wider than a register."""
    return any(_is_vector(node) and node.dtype.count > target.lanes(node.dtype) for node in chain)


def _count_copies_that_fit(chain: Sequence[UOp], registers: int) -> int:
    """Returns how many copies of `chain` have values that fit in registers together, beside the values that they
    share."""
    chain_nodes = set(chain)
    shared = {src for node in chain for src in node.src if src not in chain_nodes and _is_vector(src)}
    last_user = {src: node for node in chain for src in node.src}
    live: set[UOp] = set()
    most_live = 1
    for node in chain:
        live = {value for value in live if last_user[value] is not node}
        if node in last_user:
            live.add(node)
        most_live = max(most_live, len(live))
    return max(1, min(MAX_COPIES, (registers - len(shared)) // most_live))


def _is_vector(node: UOp) -> bool:
    return isinstance(node.dtype, DType) and node.dtype.count > 1


def _moves_to_front(node: UOp) -> bool:
    """Whether `node` is an index or a constant that moves to the front. None of these depends on vectors."""
    return node.op is Ops.STORE or (_is_vector(node) and node.op is not Ops.CONST)
