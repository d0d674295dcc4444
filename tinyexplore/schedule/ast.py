"""Builds a ScheduleItem from a KernelPlan: every use becomes a UOp, sources first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tinyexplore.device import Buffer
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.indexing import Conditions, flat_index, source_index
from tinyexplore.schedule.item import Requirement, ScheduleItem, kernel_variables
from tinyexplore.schedule.plan import KernelPlan, RowBuffer, Use
from tinyexplore.trace import active_recorder, node_derived
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.identity import reduce_identity
from tinyexplore.uop.symbolic import as_size, bind_together, bindings, greatest, product, simplified, unbound, variables


def conjunction(conditions: Conditions) -> UOp | None:
    """Returns one condition that holds if all of `conditions` hold; None for no conditions."""
    result: UOp | None = None
    for condition in conditions:
        result = condition if result is None else result & condition
    return result


def constant(node: LazyBuffer) -> UOp:
    """Returns the value of a CONST; a symbolic size is converted to its dtype."""
    return node.arg.cast(node.dtype) if isinstance(node.arg, UOp) else UOp.const(node.dtype, node.arg)


class AstBuilder:
    """Builds the ast of one kernel.

    memory: the Buffer of every LazyBuffer that is or will be in memory.
    original_of: returns the LazyBuffer that the user wrote, under which a node is recorded.
    """

    def __init__(
        self, plan: KernelPlan, memory: Mapping[LazyBuffer, Buffer], original_of: Callable[[LazyBuffer], LazyBuffer]
    ) -> None:
        self.original_of = original_of
        self.plan = plan
        self.memory = memory
        self.buffers: dict[Buffer, UOp] = {}
        self.values: dict[Use, UOp] = {}
        self.origins: list[tuple[LazyBuffer, UOp, str]] = []
        self.gathered: dict[UOp, UOp] = {}
        # for a scatter or a write: its address, and the stores that it waits for
        self.steps: dict[LazyBuffer, tuple[UOp, ...]] = {}
        self.changes: list[UOp] = []  # changes of scratch memory in each step
        self.recorder = active_recorder()
        self.memory_read: dict[LazyBuffer, None] = {}

    def build(self) -> ScheduleItem:
        plan = self.plan
        computed: dict[LazyBuffer, UOp] = {}
        targets = [self.pointer(node) for node in plan.stores]
        for node, use in reversed(plan.uses):
            value = self.compute(node, use)
            self.values[use] = value
            if node in plan.stores:
                computed[node] = value
            self.note(node, value, "computes" if node.op not in OpGroups.MOVEMENT else "moves")
        stores = []
        for node, target in zip(plan.stores, targets):
            index, *order_sources = self.steps.get(node) or (target.index(flat_index(plan.shape, plan.idxs)),)
            store = UOp(Ops.STORE, dtypes.void, (index, computed[node], *order_sources))
            self.note(node, store, "stores")
            for uop in (target, index, *(r for r in plan.loops)):
                self.note(node, uop, "indexes")
            stores.append(store)
        ast = UOp.sink(*stores, *self.changes)
        nodes = ast.toposort()
        while any(node in self.gathered for node in nodes):
            ast = ast.substitute(self.gathered, how="gathered")
            nodes = ast.toposort()
        bound = {node: node.src[0] for node in nodes if node.op is Ops.BIND}
        values: dict[UOp, int] = {}
        if bound:
            for binding in bound:
                bind_together(values, binding.src[0], binding.src[1].arg)
            ast = ast.substitute(bound, how="its value is an argument of the kernel")
            nodes = ast.toposort()
        for node in plan.stores:
            self.note(node, ast, "becomes the kernel")
        members = tuple(dict.fromkeys(node for node, _ in plan.uses if node.op not in (Ops.BUFFER,)))
        self.note_variables(bound, members)
        return ScheduleItem(
            plan.device,
            ast,
            tuple(self.buffers),
            tuple(plan.stores),
            members,
            tuple(self.origins),
            kernel_variables(nodes),
            values,
            self.requirements(members, values),
            tuple(self.memory_read),
            plan.stores[0].op is Ops.WRITE,
        )

    def requirements(self, members: Iterable[LazyBuffer], values: dict[UOp, int]) -> tuple[Requirement, ...]:
        """Returns the conditions of the kernel's movements and buffers that some values of its Variables violate.

        Adds the values of these Variables to `values`.
        """
        conditions = []
        write_targets = (node.src[0] for node in self.plan.stores if node.op is Ops.WRITE)
        for node in (*members, *self.memory_read, *write_targets):
            for condition in node.requirements():
                for variable, value in bindings(condition).items():
                    bind_together(values, variable, value)
                buffer = node.buffer if node.op is Ops.BUFFER else None
                conditions.append(Requirement(unbound(condition), buffer, f"{node.op.name} to {node.shape}"))
        return tuple(conditions)

    def note_variables(self, bound: Mapping[UOp, UOp], members: Iterable[LazyBuffer]) -> None:
        """Records the kernel's integer arguments: bound Variables in the shapes and offsets of its LazyBuffers."""
        if not bound:
            return
        if self.recorder is not None:
            for binding, variable in bound.items():
                self.recorder.record(node_derived((binding, variable, "its value is an argument of the kernel")))
        for node in (*members, *self.memory_read):
            for variable in variables(node.shape, node.arg):
                self.note(node, variable, "has it in its shape")

    def note(self, node: LazyBuffer, value: UOp, how: str) -> None:
        origin = (node, value, how)
        self.origins.append(origin)
        if self.recorder is not None:
            self.recorder.record(node_derived((self.original_of(node), value, how)))

    def pointer(self, node: LazyBuffer) -> UOp:
        """Returns the pointer to a buffer of the kernel, sized for the greatest values of its Variables."""
        buffer = self.memory[node]
        parameter = self.buffers.get(buffer)
        if parameter is None:
            dtype = PtrDType(buffer.dtype, node.size)
            parameter = self.buffers[buffer] = UOp(Ops.DEFINE_GLOBAL, dtype, (), len(self.buffers))
        return parameter

    def source_value(self, source: LazyBuffer, use: Use) -> UOp:
        """Returns the value of a source: computed in this kernel, or loaded from memory."""
        value = self.values.get(use)
        if value is None:
            value = (
                self.load_row_buffer(source, use, use.row_buffer)
                if use.row_buffer is not None
                else self.leaf(source, use)
            )
            self.values[use] = value
        return value

    def load_row_buffer(self, node: LazyBuffer, use: Use, row: RowBuffer) -> UOp:
        """Returns an element of a row buffer, loaded from scratch memory."""
        shape = tuple(node.shape[axis] for axis in row.axes)
        scratch = UOp(Ops.DEFINE_LOCAL, PtrDType(node.dtype, greatest(product(shape)), "local"), (), f"row{row.number}")
        store = UOp(Ops.STORE, dtypes.void, (scratch.index(flat_index(shape, row.ranges)), self.values[row.fill_use]))
        barrier = UOp(Ops.BARRIER, dtypes.void, (store, *row.ranges))
        index = scratch.index(flat_index(shape, tuple(use.idxs[axis] for axis in row.axes)))
        value = UOp(Ops.LOAD, node.dtype, (index, barrier))
        for uop, how in ((store, "keeps"), (barrier, "keeps"), (index, "indexes"), (value, "is read")):
            self.note(node, uop, how)
        return value

    def leaf(self, node: LazyBuffer, use: Use) -> UOp:
        if node.size == 0:
            value = UOp.const(node.dtype, 0)
        elif node.op is Ops.CONST and node not in self.memory:
            value = constant(node)
        elif node.op is Ops.IOTA and node not in self.memory:
            value = use.idxs[0].cast(node.dtype)
        else:
            pointer = self.pointer(node)
            self.memory_read[node] = None
            index = pointer.index(flat_index(node.shape, use.idxs), conjunction(use.conditions))
            value = UOp(Ops.LOAD, node.dtype, (index,))
            self.note(node, pointer, "is read from")
            for idx in use.idxs:
                self.note(node, idx, "indexes")
            self.note(node, index, "indexes")
        self.note(node, value, "is read")
        return value

    def compute(self, node: LazyBuffer, use: Use) -> UOp:
        if node.size == 0:
            return UOp.const(node.dtype, 0)
        if node.op is Ops.CONST:
            return constant(node)
        if node.op is Ops.IOTA:
            return use.idxs[0].cast(node.dtype)
        if node.op is Ops.WRITE:
            indices, value = (self.source_value(*pair) for pair in zip(node.src[1:], use.sources))
            self.steps[node] = (self.write_address(node, indices),)
            return value
        src = [self.source_value(source, inner) for source, inner in zip(node.src, use.sources)]
        if node.op is Ops.CONTIGUOUS:
            return src[0]
        if node.op is Ops.PAD:
            return self.pad_value(node, use, src[0])
        if node.op in OpGroups.MOVEMENT:
            return src[0]
        if node.op is Ops.GATHER:
            return self.pick_element(node, use, src[0], src[1])
        if node.op is Ops.SCATTER:
            return self.scatter_value(node, use, *src)
        if node.op is Ops.FETCH_ADD:
            return self.fetch_count(node, use, *src)
        if node.op is Ops.SCAN_AXIS:
            op, axis = node.arg
            loop = use.idxs[axis]
            return UOp(Ops.SCAN, node.dtype, (*src, loop), op) if loop.op is Ops.RANGE else src[0]
        if node.op is Ops.REDUCE_AXIS:
            return self.reduce_value(node, use, src[0])
        return UOp(node.op, node.dtype, tuple(src))

    def pad_value(self, node: LazyBuffer, use: Use, value: UOp) -> UOp:
        """Returns `value` inside the bounds and zero outside. A load with exactly this mask already gives zero bits."""
        _, conditions = source_index(node, use.idxs)
        condition = conjunction(conditions)
        load = value.src[0] if value.op is Ops.BITCAST else value
        if condition is None or (load.op is Ops.LOAD and load.src[0].src[2:] == (condition,)):
            return value
        return condition.where(value, UOp.const(node.dtype, 0))

    def pick_element(self, node: LazyBuffer, use: Use, value: UOp, index: UOp) -> UOp:
        """Returns the table's element if the index is in range, else 0. Never accesses memory outside the table."""
        assert use.gathered_index is not None
        position = index.cast(dtypes.index)
        last_index = use.gathered_index.src[0]
        self.gathered[use.gathered_index] = position.maximum(0).minimum(last_index)
        in_range = (position >= 0) & (position <= last_index)
        return in_range.where(value, UOp.const(node.dtype, 0))

    def scatter_value(self, node: LazyBuffer, use: Use, copied: UOp, index: UOp, value: UOp) -> UOp:
        """Returns the new value at the position that `index` gives.

        Each step reads the old value after the copy of the target and after all earlier steps.
        """
        op, axis = node.arg
        target = self.pointer(node)
        inner = use.sources[0]
        store = UOp(Ops.STORE, dtypes.void, (target.index(flat_index(node.shape, inner.idxs)), copied))
        filled = UOp(Ops.BARRIER, dtypes.void, (store, *use.ranges))
        position = index.cast(dtypes.index)
        last_index = as_size(simplified(node.shape[axis] - 1))
        in_range = (position >= 0) & (position <= last_index)
        coordinates = (*use.idxs[:axis], position, *use.idxs[axis + 1 :])
        step = use.idxs[axis]
        stored_at = target.index(flat_index(node.shape, coordinates), in_range)
        access = (stored_at, filled, *((step,) if step.op is Ops.RANGE else ()))
        for uop, how in ((store, "copies"), (filled, "copies"), (stored_at, "indexes")):
            self.note(node, uop, how)
        if op is None:
            self.steps[node] = access
            return value
        self.steps[node] = (stored_at,)
        old_value = UOp(Ops.LOAD, node.dtype, access)
        self.note(node, old_value, "is read")
        return old_value.alu(op, value)

    def fetch_count(self, node: LazyBuffer, use: Use, copied: UOp, index: UOp) -> UOp:
        """Returns the counter in scratch memory that `index` selects. This step then increases it by one."""
        bins = node.src[0].shape[-1]
        dtype = PtrDType(node.dtype, greatest(bins), "local")
        scratch = UOp(Ops.DEFINE_LOCAL, dtype, (), f"counts{self.plan.rows}")
        self.plan.rows += 1
        store = UOp(Ops.STORE, dtypes.void, (scratch.index(use.ranges[0]), copied))
        filled = UOp(Ops.BARRIER, dtypes.void, (store, *use.ranges))
        position = index.cast(dtypes.index)
        counter = scratch.index(position, (position >= 0) & (position < as_size(bins)))
        step = use.idxs[-1]
        old_count = UOp(Ops.LOAD, node.dtype, (counter, filled, *((step,) if step.op is Ops.RANGE else ())))
        change = UOp(Ops.STORE, dtypes.void, (counter, old_count + 1))
        self.changes.append(change)
        for uop, how in ((store, "copies"), (filled, "copies"), (counter, "indexes"), (change, "adds one")):
            self.note(node, uop, how)
        return old_count

    def write_address(self, node: LazyBuffer, position: UOp) -> UOp:
        """Returns the address of a WRITE. A loaded index out of range gives no address."""
        pointer = self.pointer(node)
        if not position.find(Ops.LOAD):
            return pointer.index(position)
        position = position.cast(dtypes.index)
        return pointer.index(position, (position >= 0) & (position < as_size(simplified(product(node.shape)))))

    def reduce_value(self, node: LazyBuffer, use: Use, value: UOp) -> UOp:
        op = node.arg[0]
        if node.src[0].size == 0:
            return reduce_identity(op, node.dtype)
        if not use.ranges:
            return value
        for loop in use.ranges:
            self.note(node, loop, "walks")
        return UOp(Ops.REDUCE, node.dtype, (value, *use.ranges), op)


def build_item(
    plan: KernelPlan, memory: Mapping[LazyBuffer, Buffer], original_of: Callable[[LazyBuffer], LazyBuffer]
) -> ScheduleItem:
    """Builds the ScheduleItem of `plan`. Its buffers are in the order in which the kernel numbers them, outputs
    first."""
    item = AstBuilder(plan, memory, original_of).build()
    # uses refer to their plan: without this cycle, memory is freed as soon as its last reference is gone
    plan.uses.clear()
    return item
