"""Fusion: decides which LazyBuffers are stored in memory and which are computed inside the kernels that read them.

The graph is walked from the outputs to the inputs. Each node gets a list of its *uses*: the kernel that reads it, at
which index, and inside which loops. A node is fused if its uses do not compute its elements (much) more often than
once. Otherwise its own kernel realizes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod

from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.analysis.dot_products import DOTS, VALUES_PER_WORD, has_dot
from tinyexplore.kernel.analysis.tensor_cores import usable_cores
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.costs import EXPENSIVE, CostModel, operations_of
from tinyexplore.schedule.indexing import ZERO, source_index
from tinyexplore.schedule.overrides import NO_OVERRIDES, Overrides
from tinyexplore.schedule.plan import IN_ORDER, KernelPlan, RowBuffer, Use, make_use
from tinyexplore.schedule.row_loops import (
    RowLoops,
    bytes_every_row_reads,
    common_row,
    is_read_across,
    reduces_within,
    reductions_within,
    row_bytes,
    steps_between,
)
from tinyexplore.schedule.writes import (
    NO_WRITES,
    WritePlan,
    find_needed_in_memory,
    graph_order,
    is_leaf,
    must_be_realized,
)
from tinyexplore.target import Target
from tinyexplore.trace import NumberCompared, ScheduleDecided, active_recorder
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.symbolic import as_size, product, simplified, sint
from tinyexplore.util import config

# a policy, the same for every machine, that determines the set of kernels (machine facts are in `Target`)
MAX_REDUCE_COMPUTATIONS = 1.5  # how often a reduced element may be computed, on average
MAX_EXPENSIVE_COMPUTATIONS = 2.5
MAX_CHEAP_COMPUTATIONS = 4.0
MAX_MASKED_READS_PER_ELEMENT = 8.0  # reads per element from which a padded copy costs less than masks in an inner loop
READS_UNPADDED = 1 << 22  # up to this many reads, masks cost less than another kernel
READS_SELECTED = 1 << 18  # the same for padding with a number other than 0, which takes two reads and a select
MAX_SEQUENTIAL_STEPS = 1 << 12  # sequential steps: from here on they cost more than another kernel
SMALL_WORK = 1 << 15  # steps: below it, consecutive loops in one kernel cost less than another kernel
LARGE_STRIDED = 1 << 16  # steps of a reduction from which scalar strided reads cost more than another kernel
MAX_SEARCHED_OPERATIONS = 256  # most operations to search for common parts of two reductions
LARGE_PRODUCT = 1 << 23  # steps from which a product is as fast or faster in its own kernel than beside another product
MIN_READS_FOR_REGISTER_TILE = 8  # reads of each element from which a register tile of a product pays
TILE_COLUMNS = 64  # typical columns of a product's register tile, which computes the factors of a row once
PANEL_COLUMNS = 256  # columns from which the other factor is packed into panels, unless a core's own cache holds it
REPEATS_LABEL = "computations per element"
REREAD_LABEL = "bytes reread per row"
STORED_BY_READER = "the kernel that uses it also stores it"
ELEMENTWISE_VIEWS = (
    Ops.RESHAPE,
    Ops.CAST,
    Ops.BITCAST,
    Ops.CONTIGUOUS,
)  # these work element by element, like arithmetic
MIN_ROWS = 16  # fewest rows among which threads can divide a kernel that reduces a row and then uses the result


class Fusion:
    """The fusion decisions for one set of outputs.

    plans: the kernels, in no particular order.
    realized: the nodes that get memory.
    old_values: for each WRITE that is not in place, the copy of its target that it stores into.
    decisions: for each node that was decided on, the decision and the reason.
    original_of: the node that the user wrote, as which a node is recorded.
    overrides: the user's overrides of decisions.
    """

    def __init__(
        self,
        outputs: Sequence[LazyBuffer],
        target_of: Callable[[str], Target],
        writes: WritePlan = NO_WRITES,
        original_of: Callable[[LazyBuffer], LazyBuffer] = lambda node: node,
        overrides: Overrides = NO_OVERRIDES,
    ) -> None:
        self.target_of = target_of
        self.overrides = overrides
        self.recorder = active_recorder()
        self.compared: dict[str, NumberCompared] = {}  # comparisons for the current node, if a recorder is attached
        self.outputs = dict.fromkeys(outputs)
        self.original_of = original_of
        self.order = graph_order(outputs)
        self.writes = writes
        self.pending: dict[LazyBuffer, list[Use]] = {}
        self.plans: list[KernelPlan] = []
        self.copies: list[LazyBuffer] = []
        self.copied = {node.src[0] for node in self.order if node.op is Ops.COPY and node.buffer is None}
        self.old_values: dict[LazyBuffer, LazyBuffer] = {}
        self.realized: set[LazyBuffer] = set()
        self.max_ops = config().MAX_KERNEL_OPS
        self.may_store_several = config().MULTIOUTPUT > 0
        self.costs = CostModel(self.order, overrides)
        self.users = Counter(src for node in self.order if node.buffer is None for src in set(node.src))
        self.dot_factors = {factor for node in self.order for factor in self.factors_of_dots(node)}
        self.needed = find_needed_in_memory(self.order)
        self.forced = must_be_realized(self.order, outputs, overrides) | writes.computed_first
        self.decisions: dict[LazyBuffer, tuple[str, str, str]] = {}
        self.ancestors: dict[LazyBuffer, set[LazyBuffer]] = {}  # pairs of reductions: all are compared
        for node in reversed(self.order):
            self.decide(node)

    def record_decision(self, node: LazyBuffer, decision: str, reason: str, legality_error: str = "") -> None:
        self.decisions[node] = decision, reason, legality_error
        if self.recorder is not None:
            compared = tuple(self.compared.values())
            self.recorder.record(ScheduleDecided(self.original_of(node), decision, reason, compared, legality_error))

    def exceeds(self, quantity: str, value: float, bound: float) -> bool:
        """Whether `value` is greater than `bound`. The comparison is recorded with the decision."""
        return self.record_comparison(quantity, value, bound, value > bound)

    def reaches(self, quantity: str, value: float, bound: float) -> bool:
        """Whether `value` is at least `bound`. The comparison is recorded with the decision."""
        return self.record_comparison(quantity, value, bound, value >= bound)

    def record_comparison(self, quantity: str, value: float, bound: float, over: bool) -> bool:
        if self.recorder is not None:
            self.compared[quantity] = NumberCompared(quantity, value, bound, over)
        return over

    def decide(self, node: LazyBuffer) -> None:
        """Decides on `node`, after all its readers, and passes its uses on to its sources."""
        uses = self.pending.pop(node, [])
        self.compared = {}
        if node.size == 0 or (is_leaf(node) and node not in self.forced):
            return
        if node in self.forced:
            self.decide_forced(node, uses)
            return
        if not uses:
            return  # only an empty value reads it
        repeats = sum(use.executions for use in uses) / node.size
        if node not in self.overrides.join and self.prefers_padded_copy(node, uses, repeats):
            self.realize(node, f"each element would be bounds-checked {_times_text(repeats)}")
            return
        if node not in self.overrides.join and self.prefers_reordered_copy(node, uses):
            self.realize(
                node, "its source is in memory; a kernel copies it into the order in which its readers access it"
            )
            return
        if node.op in OpGroups.MOVEMENT:
            self.record_decision(node, "view", "a movement operation only changes indices")
            for use in uses:
                self.visit_sources(node, use)
            return
        reason = self.reason_to_realize(node, uses)
        row = self.row_to_buffer(node, uses, reason)
        if row is not None:
            self.buffer_row(node, uses, row)
            return
        legality_error = reason_against_fusing(node)
        is_joined = reason is not None and node in self.overrides.join and not legality_error
        if reason is not None and not is_joined:
            self.realize(node, reason, legality_error)
            return
        plans = {use.plan for use in uses}
        if is_joined:
            self.record_decision(
                node,
                "duplicate" if len(plans) > 1 else "fuse",
                f"you joined here; the scheduler would store it in memory: {reason}",
            )
        elif len(plans) > 1:
            self.record_decision(
                node, "duplicate", f"recomputing it in each of its {len(plans)} consumer kernels is cheap"
            )
        else:
            self.record_decision(node, "fuse", "its only consumer kernel computes it, which saves a store and a load")
        for use in uses:
            self.visit_sources(node, use)

    def decide_forced(self, node: LazyBuffer, uses: list[Use]) -> None:
        if node.op is Ops.COPY:
            self.realized.add(node)
            self.copies.append(node)
            reason_text = f"copied from {node.arg} to {node.device}"
            self.record_decision(
                node, "realize", reason_text, f"{reason_text}: a kernel cannot read another device's memory"
            )
            return
        if node.op is Ops.WRITE:
            self.add_write_kernel(node)
            return
        reason_text, forced_error = self.reason_forced(node)
        legality_error, reason = self.why_not_stored_by_reader(node, uses)
        plan = None if legality_error or reason is not None else uses[0].plan
        if plan is None:
            self.realize(
                node, reason_text, f"{forced_error}: {legality_error}" if forced_error and legality_error else ""
            )
            return
        self.realized.add(node)
        plan.stores.append(node)
        self.record_decision(node, "realize", f"{reason_text}; {STORED_BY_READER}")
        self.visit_sources(node, uses[0])

    def add_write_kernel(self, node: LazyBuffer) -> None:
        """Creates the kernel of a WRITE. It loops over the value and stores nothing else."""
        target, indices, _ = node.src
        self.realized.add(node)
        write_reason = self.writes.reasons.get(node, "")
        legality_error = "a write needs a target in memory"
        if node in self.writes.in_place:
            self.record_decision(node, "realize", f"written in place: {write_reason}", legality_error)
        else:
            reason = f"written into a copy of its target: {write_reason}"
            self.record_decision(node, "realize", reason, legality_error)
            copy = LazyBuffer(Ops.CONTIGUOUS, target.dtype, target.shape, (target,), None, target.device)
            self.old_values[node] = copy
            plan = KernelPlan.over(copy)
            self.plans.append(plan)
            self.visit_sources(copy, make_use(plan, plan.idxs, (), plan.loops))
        # in any order, independent of the order in which the indices are computed
        plan = KernelPlan.over(indices.contiguous())
        plan.stores = [node]
        self.plans.append(plan)
        self.visit_sources(node, make_use(plan, plan.idxs, (), plan.loops))

    def reason_forced(self, node: LazyBuffer) -> tuple[str, str]:
        """Returns why `node` must be stored in memory regardless of its uses, and the legality error of fusing it.

        The second is empty if only the user's override requires memory.
        """
        legality_error = "a copy, gather or write needs it in memory" if node in self.needed else ""
        legality_error = "it is an output of the program" if node in self.outputs else legality_error
        if node in self.writes.computed_first:
            legality_error = "its inputs are overwritten before its last use"
            return legality_error, legality_error
        reason = legality_error
        if node.op is Ops.CONTIGUOUS and node not in self.outputs:
            reason = "contiguous() stores it in memory"
        if node in self.overrides.cut:
            reason = f"{reason}; you also cut here" if reason else "you cut here"
        return reason, legality_error

    def why_not_stored_by_reader(self, node: LazyBuffer, uses: list[Use]) -> tuple[str, str | None]:
        """Returns the legality error and the cost reason against storing `node` in the kernel that reads it; "" and
        None if none.

        It is legal if this kernel is the only reader and reads each element at its own position. A node that is copied
        to another device has a second reader, whose result the kernel may need.
        """
        if not self.may_store_several:
            return "MULTIOUTPUT=0 gives each output its own kernel", None
        if node in self.copied:
            return "a copy to another device also reads it", None
        if node in self.writes.stored_separately:
            return "its kernel must run before a write overwrites its inputs", None
        if len(uses) != 1:
            return "it has several uses" if uses else "no kernel in this schedule reads it", None
        (use,) = uses
        if node.device != use.plan.device:
            return "a kernel on another device reads it", None
        if use.plan.stores[0].op in (Ops.SCATTER, Ops.FETCH_ADD, Ops.WRITE):
            return "the loops of the consumer kernel do not iterate over its output", None
        if not is_same_element(node, use):
            return "the consumer kernel iterates over another shape or order", None
        if legality_error := reason_against_fusing(node):
            return legality_error, None
        if node in self.overrides.cut:
            return "", "you cut here"
        return "", None if node in self.overrides.join else self.reason_to_realize(node, uses)

    def realize(self, node: LazyBuffer, reason: str, legality_error: str = "") -> None:
        self.realized.add(node)
        plan = KernelPlan.over(node, self.bounds_of_reduced(node))
        self.plans.append(plan)
        self.record_decision(node, "realize", reason, legality_error)
        self.visit_sources(node, make_use(plan, plan.idxs, (), plan.loops))

    def bounds_of_reduced(self, root: LazyBuffer) -> frozenset[int]:
        """Returns how many neighbors in `root` share a value that was reduced and then expanded in another shape.

        Example: the mean of a group, computed over (groups, elements of a group) and used as (channels, height, width).
        A separate loop over the neighbors keeps the reduction outside of its use.
        """
        bounds: set[int] = set()
        visited = {root}
        todo = [(root, False)]
        while todo and len(visited) <= MAX_SEARCHED_OPERATIONS:
            node, is_reshaped = todo.pop()
            if node.op is Ops.EXPAND:
                bounds |= expanded_bounds(node) if is_reshaped and reduces_within(node) else set()
            elif node.op in OpGroups.ALU or node.op in ELEMENTWISE_VIEWS:
                is_reshaped = is_reshaped or (node.op is Ops.RESHAPE and has_other_axes(node))
                for src in node.src:
                    if src not in visited and src.size == root.size and not is_leaf(src) and src not in self.forced:
                        visited.add(src)
                        todo.append((src, is_reshaped))
        return frozenset(bounds)

    def reason_to_realize(self, node: LazyBuffer, uses: list[Use]) -> str | None:
        """Returns the reason to store `node`; None if the kernels that read it can compute it."""
        plans = {use.plan for use in uses}
        is_reduce = node.op is Ops.REDUCE_AXIS
        if legality_error := reason_against_fusing(node):
            return legality_error
        work = node.src[0].size if is_reduce else node.size if node.op in OpGroups.TRANSCENDENTAL else 0
        if any(runs_sequentially(plan, sums_up=is_reduce) for plan in plans) and self.exceeds(
            "sequential steps of the fused kernel", work, MAX_SEQUENTIAL_STEPS
        ):
            return "its consumer's loop runs sequentially; a separate kernel can be vectorized"
        if self.reaches("operations in the consumer kernel", max([plan.op_count for plan in plans]), self.max_ops):
            return f"its consumer kernel has reached the limit of {self.max_ops} operations (MAX_KERNEL_OPS)"
        if len(plans) > 1:
            if is_reduce:
                return f"{len(plans)} kernels read this reduction"
            if not self.costs.recomputing_is_cheaper(node, len(plans), self.exceeds):
                operations = self.costs.operations[node]
                return f"{len(plans)} kernels read it; recomputing it takes {operations:.0f} operations per element"
        executions = sum(use.executions for use in uses)
        repeats = executions / node.size / len(plans)
        if is_reduce:
            return self.reason_to_realize_reduce(node, uses, repeats)
        if node in self.dot_factors:
            return None
        if self.costs.is_little_to_read(node):
            return self.reason_to_store_factor(node, uses, repeats)
        limit = MAX_EXPENSIVE_COMPUTATIONS if node.op in EXPENSIVE else MAX_CHEAP_COMPUTATIONS
        if self.exceeds(REPEATS_LABEL, repeats, limit) and not self.is_recomputed_cheaply(node, uses):
            return f"fusing it would compute each element {_times_text(repeats)}"
        return None

    def reason_to_store_factor(self, node: LazyBuffer, uses: list[Use], repeats: float) -> str | None:
        """Returns the reason to store a factor of a product although its inputs are small (an identity matrix, a mask);
        else None.

        The product would compute the factor again for each tile of its results. A factor that does not depend on the
        last axis of the results is computed only once for a row of a tile.
        """
        totals = {total for use in uses for total in use.plan.sums if node in factors_of(total)}
        most_repeats = MIN_READS_FOR_REGISTER_TILE if any(map(depends_on_last_loop, uses)) else TILE_COLUMNS
        if not totals or not self.exceeds("computations per element in the product", repeats, most_repeats):
            return None
        if not any([self.is_product(total, total.src[0].size) for total in totals]):
            return None
        return f"fusing it into a product would compute each element {_times_text(repeats)}"

    def is_recomputed_cheaply(self, node: LazyBuffer, uses: list[Use]) -> bool:
        """Whether recomputing `node` costs at most one operation per element of the results. False for a value of
        reductions.

        Example: a channel's scale in each row of an image.
        """
        if reduces_within(node):
            return False
        operations = self.costs.operations[node] + operations_of(node.op)
        results = sum([prod([loop.size for loop in plan.loops]) for plan in {use.plan for use in uses}])
        recomputed_operations = sum([use.executions for use in uses]) * operations
        return not self.exceeds(
            "operations of the recomputation (bound: one per output element)", recomputed_operations, results
        )

    def reason_to_realize_reduce(self, node: LazyBuffer, uses: list[Use], repeats: float) -> str | None:
        if self.exceeds(REPEATS_LABEL, repeats, MAX_REDUCE_COMPUTATIONS):
            return f"fusing this reduction would compute each element {_times_text(repeats)}"
        if self.exceeds("index expressions per kernel", len(uses), 1):
            return f"one kernel reads it with {len(uses)} different index expressions"
        (use,) = uses
        work = node.src[0].size
        if any(loop not in use.plan.loops for loop in use.loops):
            if self.exceeds("steps of the reduction", work, SMALL_WORK) and not self.stays_in_cache(node, use):
                return "inside another reduction, it could not be parallelized"
            return None
        kernel_steps = prod(loop.size for loop in use.plan.loops)
        if (
            use.executions != kernel_steps
            and not self.reaches("rows available to threads", use.executions, MIN_ROWS)
            and self.exceeds("steps of the kernel", max(work, kernel_steps), SMALL_WORK)
        ):
            return f"fusing it would leave only {use.executions} rows available to threads"
        if use.executions != kernel_steps and self.is_product(node, work):
            return "the kernel's inner loops do not index this product, so it would get no register tile"
        if (
            use.executions != kernel_steps
            and self.exceeds("steps of the reduction", work, LARGE_STRIDED)
            and is_read_across(node, use.idxs)
        ):
            return "its loads would have a large stride; a separate kernel can vectorize them"
        if use.plan.sums:
            return self.reason_to_separate(node, use.plan)
        return None

    def reason_to_separate(self, node: LazyBuffer, plan: KernelPlan) -> str | None:
        """Returns the reason to give `node` a separate kernel instead of adding it to the reductions of `plan`; None to
        fuse it.

        A large product needs its own register tile and panels. It shares a kernel only with related reductions: one
        reads the other (attention), or both read the same values (a softmax's weights and their sum).
        """
        work = node.src[0].size
        is_product = self.is_product(node, work)
        for kernel_sum in plan.sums:
            if self.is_product(kernel_sum, kernel_sum.src[0].size) is not is_product:
                if not self.are_related(node, kernel_sum):
                    return "a product and an unrelated reduction cannot share a register tile"
            elif (
                is_product
                and kernel_sum not in self.nodes_computed_for(node)
                and node not in self.nodes_computed_for(kernel_sum)
            ):
                if self.reaches("steps of the second product", work, LARGE_PRODUCT):
                    return "two large products: each needs its own register tile and packed panels"
        return None

    def are_related(self, node: LazyBuffer, other: LazyBuffer) -> bool:
        """Whether both reductions read a common computed value, or one of them reads the other."""
        node_inputs, other_inputs = self.nodes_computed_for(node), self.nodes_computed_for(other)
        return (
            not node_inputs.isdisjoint(other_inputs)
            or max(len(node_inputs), len(other_inputs)) > MAX_SEARCHED_OPERATIONS
        )

    def nodes_computed_for(self, node: LazyBuffer) -> set[LazyBuffer]:
        """Returns the nodes computed for `node`, without those of other reductions.

        Stops after about `MAX_SEARCHED_OPERATIONS` nodes.
        """
        cached = self.ancestors.get(node)
        if cached is not None:
            return cached
        ancestors = self.ancestors[node] = {node}
        todo = [node]
        while todo and len(ancestors) <= MAX_SEARCHED_OPERATIONS:
            for src in todo.pop().src:
                if src not in ancestors and not is_leaf(src) and src not in self.forced:
                    ancestors.add(src)
                    if src.op is not Ops.REDUCE_AXIS:
                        todo.append(src)
        return ancestors

    def has_only_products(self, node: LazyBuffer) -> bool:
        """Whether `node` combines sums of products, and no other reductions, elementwise."""
        return all([self.is_product(total, total.src[0].size) for total in reductions_within(node)])

    def is_product(self, node: LazyBuffer, work: int) -> bool:
        """Whether `node` is a sum of products that reads each element many times: a matmul or a convolution."""
        inner = node.src[0]
        while inner.buffer is None and (inner.op is Ops.CAST or inner.op is Ops.RESHAPE):
            inner = inner.src[0]
        if inner.op is not Ops.MUL or inner.buffer is not None:
            return False
        return self.reaches(
            f"multiply-adds (bound: {MIN_READS_FOR_REGISTER_TILE} per input element)",
            work,
            MIN_READS_FOR_REGISTER_TILE * self.costs.input_size(inner),
        )

    def factors_of_dots(self, node: LazyBuffer) -> tuple[LazyBuffer, ...]:
        """Returns the casts of small numbers whose product `node` sums, if the device can multiply such numbers without
        a cast.

        It can if it has a dot instruction or a tensor core for their dtype.
        """
        if node.op is not Ops.REDUCE_AXIS or node.arg[0] is not Ops.ADD or node.src == () or not config().TC:
            return ()
        product = node.src[0]
        if product.op is not Ops.MUL or product.buffer is not None:
            return ()
        sizes = [product.shape[axis] for axis in node.arg[1] if product.shape[axis] != 1]
        factors = tuple(source.base for source in product.src)
        small_dtypes = {factor.src[0].dtype for factor in factors if factor.op is Ops.CAST and factor.buffer is None}
        if len(sizes) != 1 or len(small_dtypes) != 1 or any(factor.op is not Ops.CAST for factor in factors):
            return ()
        if not self.has_dot_of(node, small_dtypes.pop(), sizes[0]):
            return ()
        return factors if self.is_product(node, product.size) else ()

    def has_dot_of(self, node: LazyBuffer, dtype: DType, size: sint) -> bool:
        """Whether the device of `node` has a dot instruction or a tensor core for `size` factors of `dtype`."""
        target = self.target_of(node.device)
        op = DOTS.get((dtype, node.dtype))
        if type(size) is not int:
            return False
        if any([not core.tiles for core in usable_cores(target, dtype, node.dtype)]):
            return True
        return op is not None and has_dot(target, op) and (not size % VALUES_PER_WORD[op] or bool(config().TC_OPT))

    def row_to_buffer(self, node: LazyBuffer, uses: list[Use], reason: str | None) -> RowLoops | None:
        """Returns the row of `node` to compute once and keep in a row buffer, if fusing would compute it repeatedly;
        else None."""
        if node.op in (*IN_ORDER, Ops.GATHER) or (reason is None and (len(uses) < 2 or node.op not in EXPENSIVE)):
            return None
        target = self.target_of(node.device)
        if target.has_local:
            return None  # work-items have no private cache that would hold a row
        row = common_row(node, uses)
        if row is None or self.exceeds("bytes of a row", row_bytes(node, row), target.row_bytes):
            return None
        if prod(loop.size for loop in row.loops) < MIN_ROWS and node.size > SMALL_WORK:
            return None
        if reason is None:
            return row
        # Between two products, as in an MLP, rows that are not fused are written once and read once. A shared cache is
        # fast enough for that, and plain products have the better tiles. Attention also reduces its rows themselves.
        cached = (
            target.min_memory_bytes if len(uses) == 1 and self.has_only_products(node) else target.private_cache_bytes
        )
        if not self.exceeds("bytes of all rows", node.size * node.dtype.itemsize, cached):
            return None  # the cache holds all rows between two simpler kernels
        if node.op is not Ops.REDUCE_AXIS and not reduces_within(node):
            return None  # plain arithmetic is better stored once, for all kernels that stream it
        columns = max(steps_between(row, use) for use in uses)
        read_again = bytes_every_row_reads(node, uses[0].idxs, row)
        if read_again is None:
            return None
        shared = max(row_bytes(node, row) * columns, read_again)
        needs_panels = columns >= PANEL_COLUMNS and any([node in factors_of(total) for total in uses[0].plan.sums])
        bound = target.private_cache_bytes if needs_panels else target.shared_cache_bytes
        return None if self.exceeds(REREAD_LABEL, shared, bound) else row

    def buffer_row(self, node: LazyBuffer, uses: list[Use], row: RowLoops) -> None:
        """Computes `node` once for each row, into a row buffer that all uses then read."""
        plan = uses[0].plan
        ranges = tuple(plan.inner_range(node.shape[axis], AxisKind.ROW) for axis in row.axes)
        range_of = dict(zip(row.axes, ranges))
        idxs = tuple(range_of.get(axis, idx) for axis, idx in enumerate(uses[0].idxs))
        loops = row.loops + ranges
        fill_use = Use(plan, idxs, (), loops, prod(loop.size for loop in loops))
        row_buffer = RowBuffer(plan.rows, fill_use, row.axes, ranges)
        plan.rows += 1
        for use in uses:
            use.row_buffer = row_buffer
        size = row_bytes(node, row)
        reads_per_row = sum(steps_between(row, use) for use in uses)
        size_text = f"{size} B" if size < 1024 else f"{size / 1024:.3g} KiB"
        self.record_decision(
            node,
            "keep",
            f"one kernel reads it {_times_text(reads_per_row)}; a row buffer of {size_text} stays in the cache",
        )
        self.visit_sources(node, fill_use)

    def stays_in_cache(self, node: LazyBuffer, use: Use) -> bool:
        """Whether a reduction that fills a row reads memory that the cache holds for all rows."""
        outer = tuple(loop for loop in use.loops if loop in use.plan.loops)
        if any(loop.arg.kind is not AxisKind.ROW for loop in use.loops[len(outer) :]):
            return False
        shared = bytes_every_row_reads(node, use.idxs, RowLoops((), outer))
        if shared is None:
            return False
        return not self.exceeds(REREAD_LABEL, shared, self.target_of(node.device).shared_cache_bytes)

    def prefers_padded_copy(self, node: LazyBuffer, uses: list[Use], repeats: float) -> bool:
        """Whether padding is read so often that a padded copy costs less than masks."""
        if node.op is not Ops.PAD and not is_padded_with_number(node):
            return False
        has_several_readers = len({use.plan for use in uses}) > 1  # kernels that share the copy
        min_reads = MAX_MASKED_READS_PER_ELEMENT / 2 if has_several_readers else MAX_MASKED_READS_PER_ELEMENT
        bound = READS_UNPADDED if node.op is Ops.PAD else READS_SELECTED
        return self.reaches("reads per element", repeats, min_reads) and self.exceeds(
            "elements read", repeats * node.size, bound
        )

    def prefers_reordered_copy(self, node: LazyBuffer, uses: list[Use]) -> bool:
        """Whether a separate kernel stores a reordering.

        That pays if several kernels read its elements in another order than they are computed, and none of these should
        recompute them.
        """
        source = node
        while source.op in (Ops.RESHAPE, Ops.PERMUTE) and source.buffer is None and source not in self.forced:
            source = source.src[0]
            if self.users[source] != 1:
                return False
        if source is node or is_leaf(source) or source.op not in OpGroups.ALU or source in self.forced:
            return False
        kernels = len({use.plan for use in uses})
        return kernels > 1 and not self.costs.recomputing_is_cheaper(source, kernels)

    def visit_sources(self, node: LazyBuffer, use: Use) -> None:
        """Adds the uses of the sources of `node`, which is computed for the use `use`."""
        plan = use.plan
        plan.uses.append((node, use))
        if node.size == 0 or node.op in (Ops.CONST, Ops.IOTA):
            return
        if node.op in OpGroups.MOVEMENT:
            source = node.src[0]
            idxs, conditions = source_index(node, use.idxs)
            all_conditions = (*use.conditions, *(c for c in conditions if c not in use.conditions))
            inner = make_use(plan, idxs, all_conditions, use.loops)
            use.sources = (self.add_use(source, inner),)
            return
        if node.op is Ops.REDUCE_AXIS:
            source = node.src[0]
            axes = [axis for axis in node.arg[1] if source.shape[axis] != 1]
            ranges = {axis: plan.inner_range(source.shape[axis], AxisKind.REDUCE) for axis in axes}
            use.ranges = tuple(ranges.values())
            if all(loop in plan.loops for loop in use.loops):
                plan.sums.append(node)
            idxs = tuple(ranges.get(axis, idx) for axis, idx in enumerate(use.idxs))
            inner = make_use(plan, idxs, use.conditions, use.loops + use.ranges)
            use.sources = (self.add_use(source, inner),)
            plan.op_count += 1
            return
        plan.op_count += 1
        if node.op is Ops.GATHER:
            self.visit_sources_of_gather(node, use)
            return
        if node.op is Ops.SCATTER:
            self.visit_sources_of_scatter(node, use)
            return
        if node.op is Ops.FETCH_ADD:
            self.visit_sources_of_fetch(node, use)
            return
        inner = Use(plan, use.idxs, use.conditions, use.loops, use.executions)
        sources = node.src[1:] if node.op is Ops.WRITE else node.src  # the target of a write is not read
        use.sources = tuple(self.add_use(source, inner) for source in sources)

    def visit_sources_of_gather(self, node: LazyBuffer, use: Use) -> None:
        """Adds the use of the index like that of any operand, and of the table at the gathered position.

        That position is a variable until the index is computed.
        """
        plan = use.plan
        table, index = node.src
        at_index = Use(plan, use.idxs, use.conditions, use.loops, use.executions)
        loops = sorted(frozenset().union(*(idx.ranges for idx in use.idxs)), key=lambda loop: loop.arg.id)
        name = f"gathered{len(plan.uses)}"
        last_index = as_size(simplified(table.shape[-1] - 1))
        use.gathered_index = UOp(Ops.DEFINE_VAR, dtypes.index, (last_index, *loops), (name, 0, bounds(last_index)[1]))
        at_table = make_use(plan, (*use.idxs, use.gathered_index), use.conditions, use.loops)
        use.sources = (self.add_use(table, at_table), self.add_use(index, at_index))

    def visit_sources_of_scatter(self, node: LazyBuffer, use: Use) -> None:
        """Adds the uses of index and values like those of any operand. The target is copied first, in separate loops.

        Memory (or a constant) is copied in one loop, any other target in one loop per axis.
        """
        plan, (target, index, values), axis = use.plan, node.src, node.arg[1]
        outer = tuple(loop for loop in use.loops if loop in use.idxs[:axis])
        copied = [number for number in range(axis, len(node.shape)) if node.shape[number] != 1]
        sizes = {number: node.shape[number] for number in copied}
        if is_leaf(target) and copied:
            sizes = {copied[-1]: product(tuple(sizes.values()))}
        rows = {number: plan.inner_range(size, AxisKind.ROW) for number, size in sizes.items()}
        idxs = tuple(rows.get(number, ZERO if number >= axis else idx) for number, idx in enumerate(use.idxs))
        use.ranges = tuple(rows.values())
        copy = make_use(plan, idxs, (), outer + use.ranges)
        sources = [self.add_use(target, copy)]
        sources += [self.add_use(source, make_use(plan, use.idxs, (), use.loops)) for source in (index, values)]
        use.sources = tuple(sources)

    def visit_sources_of_fetch(self, node: LazyBuffer, use: Use) -> None:
        """Adds the use of the index like that of any operand. The counters are copied first, in a separate loop."""
        counters, index = node.src
        row = use.plan.inner_range(counters.shape[-1], AxisKind.ROW)
        use.ranges = (row,)
        outer = tuple(loop for loop in use.loops if loop in use.idxs[:-1])
        copy = make_use(use.plan, (*use.idxs[:-1], row), (), (*outer, row))
        at_index = make_use(use.plan, use.idxs, (), use.loops)
        use.sources = (self.add_use(counters, copy), self.add_use(index, at_index))

    def add_use(self, node: LazyBuffer, use: Use) -> Use:
        """Returns the use of `node` like `use` in its kernel. An equal existing use is reused."""
        uses = self.pending.setdefault(node, [])
        for existing_use in uses:
            if existing_use.plan is use.plan and existing_use.key == use.key:
                return existing_use
        new_use = Use(use.plan, use.idxs, use.conditions, use.loops, use.executions)
        uses.append(new_use)
        return new_use


def depends_on_last_loop(use: Use) -> bool:
    """Whether neighboring results of the kernel read different elements."""
    last_loop = frozenset(use.plan.loops[-1:])
    return any([idx.ranges & last_loop for idx in use.idxs])


def factors_of(total: LazyBuffer) -> set[LazyBuffer]:
    """Returns the factors of a sum of products, below casts and movements; an empty set for another reduction."""
    product = total.src[0].base
    while product.op is Ops.CAST and product.buffer is None:
        product = product.src[0].base
    if product.op is not Ops.MUL or product.buffer is not None:
        return set()
    return {factor.base for factor in product.src}


def is_padded_with_number(node: LazyBuffer) -> bool:
    """Whether `node` is `x.pad(amounts, value)`: a WHERE that selects between padded memory and a number."""
    if node.op is not Ops.WHERE or node.buffer is not None:
        return False
    mask, padded, number = node.src
    return (
        mask.op is Ops.PAD
        and padded.op is Ops.PAD
        and mask.arg == padded.arg
        and mask.base.op is Ops.CONST
        and number.base.op is Ops.CONST
    )


def reason_against_fusing(node: LazyBuffer) -> str:
    """Returns the reason why `node` cannot be computed inside another kernel, or "" if it can."""
    if node.op is Ops.SCAN_AXIS:
        return "a scan carries state from step to step, so its loop must run in order"
    if node.op is Ops.SCATTER:
        return "a scatter writes in data-dependent order, so its result must be in memory"
    if node.op is Ops.FETCH_ADD:
        return "fetch-and-add counts from step to step, so its loop must run in order"
    return ""


def expanded_bounds(node: LazyBuffer) -> set[int]:
    """Returns how many neighbors in an EXPAND equal one source element, as a set; empty if 1."""
    equal_count: sint = 1
    for size, source_size in zip(reversed(node.shape), reversed(node.src[0].shape)):
        if source_size != 1:
            break
        equal_count = equal_count * size
    return {equal_count} if isinstance(equal_count, int) and equal_count > 1 else set()


def has_other_axes(node: LazyBuffer) -> bool:
    """Whether a reshape does more than add or remove axes of size 1."""
    return [size for size in node.shape if size != 1] != [size for size in node.src[0].shape if size != 1]


def is_same_element(node: LazyBuffer, use: Use) -> bool:
    """Whether a kernel reads `node` at the position of its own result."""
    plan = use.plan
    return use.idxs == plan.idxs and not use.conditions and node.shape == plan.shape


def runs_sequentially(plan: KernelPlan, *, sums_up: bool) -> bool:
    """Whether the kernel is a scan or a scatter along the innermost axis, in order.

    Operations fused into it cannot be vectorized. Running sums and extremes have lanes along that axis. They count only
    if `sums_up`.
    """
    root = plan.stores[0]
    if root.op not in IN_ORDER:
        return False
    if root.op is Ops.SCAN_AXIS and root.arg[0] in (Ops.ADD, Ops.MAX, Ops.MIN) and not sums_up:
        return False
    return all(size == 1 for size in root.src[-1].shape[root.arg[1] + 1 :])


def _times_text(repeats: float) -> str:
    return f"{int(repeats + 0.5)} times" if repeats >= 10 else f"{repeats:.2g} times"
