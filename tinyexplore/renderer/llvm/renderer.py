"""Renders the linear program as LLVM IR: explicit vectors, loops in canonical form, one instruction per line.

The text is complete without debug information. `with_debug_info` adds it: the *line* of each instruction is the index
of its UOp in the program plus one. So the output of the optimizer and the assembler can be traced back to UOps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.llvm.arithmetic import (
    InstructionWriter,
    is_tile,
    literal,
    memory_type,
    register_type,
    suffix,
)
from tinyexplore.renderer.llvm.effort import (
    effort_for,
    find_shuffled_vectors,
    find_vectorizes,
    lanes_of_alone,
)
from tinyexplore.renderer.llvm.streaming import streaming_stores
from tinyexplore.renderer.llvm.tensor_cores import load_tile, product_of_tiles, store_tile, zero_tile
from tinyexplore.renderer.program import (
    LOCALITY,
    STACK_LIMIT_BYTES,
    CompileOptions,
    Effort,
    ProgramSpec,
    RenderError,
    global_buffers,
    spec_of,
    variable_arguments,
)
from tinyexplore.renderer.text import variable_name
from tinyexplore.target import TENSOR_CORES, Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds

# attributes that show the effort to readers of the IR; compilation uses `ProgramSpec.options`
EFFORT_ATTRIBUTE = {Effort.FULL: "", Effort.LIGHT: ' "effort"="light"', Effort.LEAST: ' "effort"="least"'}
WITHOUT_LINES = frozenset({Ops.CONST, Ops.BARRIER, Ops.INDEX})  # the LOADs and STOREs that use them write them
ACCESSES = frozenset({Ops.LOAD, Ops.STORE, Ops.PREFETCH})
USES_NO_PLACE = frozenset({Ops.LOAD, Ops.GEP, Ops.CONST})  # their sources are not used in arithmetic
WRITTEN_ALONE = frozenset({Ops.GEP, Ops.RESULT, Ops.ENDRANGE, Ops.DEFINE_GLOBAL})
STORES_AND_LOOPS = frozenset({Ops.STORE, Ops.RANGE})
BLOCK_BYTES = 16  # moving lanes within blocks of this size is cheapest


class LLVMRenderer:
    """Renders textual LLVM IR for the CPU `target`. `compiler` names the compiler, for cache keys."""

    language = "llvm"

    def __init__(self, target: Target, compiler: str = "llvm", *, streaming: bool = True) -> None:
        self.target = target
        self.compiler = compiler
        self.streaming = streaming  # whether stores of large results may bypass the caches

    def render(self, name: str, uops: Sequence[UOp]) -> ProgramSpec:
        """Returns the `ProgramSpec` of a kernel called `name`: `define void @name(...)` and `@name_entry`."""
        streaming = streaming_stores(uops, self.target) if self.streaming else set()
        effort = effort_for(uops, self.target.vector_bytes)
        writer = FunctionWriter(self.target, streaming, effort)
        lines = writer.write(name, uops)
        aligned = frozenset(node.src[0].src[0].arg for node in streaming)
        options = CompileOptions(effort, writer.has_branches)
        return spec_of(name, self.target, uops, self.language, lines, self.compiler, aligned, options)


class FunctionWriter(InstructionWriter):
    """Writes a function in one walk over the linear program.

    names: the register, constant or pointer of each UOp; for an accumulator, the current one.
    """

    without_lines = WITHOUT_LINES

    def __init__(self, target: Target, streaming: Collection[UOp] = (), effort: Effort = Effort.FULL) -> None:
        super().__init__(target)
        self.streaming = streaming
        self.effort = effort
        self.has_branches = False  # whether some blocks so far have conditional accesses
        self.names: dict[UOp, str] = {}
        self.entry_block: list[SourceLine] = []  # allocates scratch memory once, for all loops
        self.block = "entry"
        self.to_free: list[str] = []
        self.used_names: set[str] = set()
        self.loop_ends: dict[UOp, str] = {}
        # for each loop still to be opened: the accumulators that it changes, and their ASSIGNs
        self.changed: Iterator[dict[UOp, UOp]] = iter(())
        # the state before each open loop: see `open_loop`
        self.before: dict[UOp, tuple[str, int, dict[UOp, tuple[str, int]]]] = {}
        self.columns: dict[tuple[UOp, ...], list[str]] = {}  # columns of the matrices transposed in the current loop
        self.near: set[UOp] = set()  # indices at a constant distance from a pointer that their neighbors share
        self.serving: set[tuple[UOp, UOp]] = set()  # (buffer, index) of those shared pointers that are frozen
        self.pointers: dict[tuple[UOp, UOp], str] = {}  # all valid pointers, by (buffer, index)
        self.outside: list[dict[tuple[UOp, UOp], str]] = []  # the valid pointers of the surrounding loops
        # Loads of LEAST are volatile. Instruction by instruction (FastISel, up to LLVM 22 at least), a load that only
        # a select of single floats uses becomes an operand of `vblendvps`, which reads 16 bytes instead of 4. A
        # volatile load never becomes an operand of an instruction.
        self.loads = "load volatile" if effort is Effort.LEAST else "load"
        self.hides_steps = False  # whether the change of addresses in loops is hidden from LLVM
        self.freezes = False  # whether the change of indices that are minima or maxima is hidden from LLVM
        self.unwritten: set[UOp] = set()  # nodes that need no instruction
        self.distances: set[UOp] = set()  # the unwritten nodes that are sums, and part of an address

    def write(self, name: str, uops: Sequence[UOp]) -> list[SourceLine]:
        buffers = global_buffers(uops)
        attributes = self.attributes()
        is_final = self.effort is not Effort.FULL  # no pass changes this IR
        self.hides_steps = is_final and self.has_long_vectors(uops)
        self.freezes = is_final and not self.hides_steps  # vectorizers cannot analyze frozen values
        self.prepare(uops)
        self.write_nodes(uops)
        self.made_by = ()
        if self.streaming:
            self.raw("  fence seq_cst")  # other threads see such stores only after a fence
        for pointer in self.to_free:
            self.raw(f"  call void @free(ptr {pointer})")
        variables = variable_arguments(uops)
        arguments = [*buffers, *variables]
        stores_and_loops = [node for node in uops if node.op in STORES_AND_LOOPS]
        parameters = ["ptr %buffers"] if is_final else self.parameters(buffers, variables)
        signature = ", ".join([*parameters, "i64 %start", "i64 %stop"])
        lines = [SourceLine(f"define void @{name}({signature}) {attributes} {{", (*arguments, *stores_and_loops))]
        lines.append(SourceLine("entry:", ()))
        if is_final:
            lines += [line for slot, node in enumerate(arguments) for line in self.load_argument(slot, node)]
        lines += [*self.entry_block, *self.lines]
        lines += [SourceLine("  ret void", ()), SourceLine("}", ()), SourceLine("", ())]
        if is_final:
            lines.append(SourceLine(f"@{name}_entry = alias void (ptr, i64, i64), ptr @{name}", ()))
        else:
            lines += self.entry_function(name, arguments, parameters, attributes)
        if self.declared:
            lines.append(SourceLine("", ()))
            lines += [SourceLine(text, ()) for text in self.declared.values()]
        return lines

    def prepare(self, uops: Sequence[UOp]) -> None:
        """Analyzes the whole program before its first line is written."""
        self.near, distances = _find_near_indexes(uops)
        if self.freezes:
            self.serving = {(index.src[0], index.src[1].src[0]) for index in self.near}
        self.changed = iter(_find_changed_in_loops(uops))
        self.unwritten, self.distances = _find_only_shuffled(uops) | distances, distances

    def write_nodes(self, nodes: Sequence[UOp]) -> None:
        """Writes `nodes`, one after the other."""
        names, unwritten, arithmetic, without_lines = self.names, self.unwritten, OpGroups.ALU, self.without_lines
        for node in nodes:
            if node.op in without_lines or node in unwritten:
                continue
            self.made_by = _collect_written_with(node, self.distances)
            if node.op in arithmetic:
                values = [names[src] if src in names else self.operand(src) for src in node.src]
                result = self.alu(node, values)
                if self.freezes and node.op in (Ops.MIN, Ops.MAX) and node.dtype is dtypes.index:
                    # keeps LLVM from analyzing its change in loops
                    result = self.value(f"freeze i64 {result}", "place")
                names[node] = result
            else:
                self.write_node(node)

    def attributes(self) -> str:
        """Returns the LLVM attributes of the kernel `@name` and of `@name_entry`, which calls it.

        LLVM rebuilds its description of the CPU for each set of attributes that mentions it, which takes a millisecond.
        So there are at most two.
        """
        width = f' "prefer-vector-width"="{max(128, self.target.vector_bytes * 8)}"'
        return f"noinline nounwind{'' if self.effort is Effort.LEAST else width}{EFFORT_ATTRIBUTE[self.effort]}"

    def has_long_vectors(self, uops: Sequence[UOp]) -> bool:
        """Whether vectors take several registers. Recomputing each address then costs nothing in comparison.

        LLVM's work to make addresses cheaper takes a tenth to a sixth of the compile time of a product.
        """
        width = self.target.vector_bytes
        return any(node.op is Ops.MULACC and node.dtype.count * node.dtype.itemsize > width for node in uops)

    def parameters(self, buffers: Sequence[UOp], variables: Sequence[UOp]) -> list[str]:
        """Returns the parameters of a kernel, buffers and integers, with attributes for LLVM's passes."""
        aligned = {node.src[0].src[0] for node in self.streaming}
        declarations = []
        for node in buffers:
            assert isinstance(node.dtype, PtrDType)
            align = self.target.line_bytes if node in aligned else node.dtype.base.itemsize
            declarations.append(f"ptr noalias align {align} {self.names[node]}")
        return declarations + [f"i64 {self.names[node]}" for node in variables]

    def load_argument(self, number: int, node: UOp) -> list[SourceLine]:
        """Loads the address of a buffer, or an integer, from the argument array of `@name_entry`."""
        ir_type = "ptr" if node.op is Ops.DEFINE_GLOBAL else "i64"
        slot = f"  %slot{number} = getelementptr inbounds ptr, ptr %buffers, i64 {number}"
        loaded = f"  {self.names[node]} = load {ir_type}, ptr %slot{number}, align 8"
        return [SourceLine(slot, (node,)), SourceLine(loaded, (node,))]

    def entry_function(
        self, name: str, arguments: Sequence[UOp], parameters: Sequence[str], attributes: str
    ) -> list[SourceLine]:
        """Writes `@name_entry(ptr %buffers, …)`, which unpacks an array of pointers, then integers, and calls the
        kernel.

        Only for IR that LLVM's passes optimize, because they use that parameters do not overlap. Code generation alone
        does not, and takes half a millisecond per function: then `@name` unpacks the array itself, and `@name_entry` is
        an alias.
        """
        texts = [f"define void @{name}_entry(ptr %buffers, i64 %start, i64 %stop) {attributes} {{", "entry:"]
        texts += [line.text for slot, node in enumerate(arguments) for line in self.load_argument(slot, node)]
        forwarded = [f"{text.split()[0]} {text.split()[-1]}" for text in parameters]
        call = ", ".join([*forwarded, "i64 %start", "i64 %stop"])
        texts += [f"  tail call void @{name}({call})", "  ret void", "}"]
        return [SourceLine(text, ()) for text in texts]

    def unique(self, name: str) -> str:
        """Returns `name`, with a number if it is in use."""
        count = 1
        unique_name = name
        while unique_name in self.used_names:
            count += 1
            unique_name = f"{name}.{count}"
        self.used_names.add(unique_name)
        return unique_name

    def label(self, name: str) -> None:
        self.raw(f"{name}:")
        self.block = name

    def operand(self, node: UOp) -> str:
        """Returns the register or constant of a source; for an accumulator, the current one."""
        operand_text = self.names.get(node)
        if operand_text is not None:
            return operand_text
        if node.op is Ops.CONST:
            operand_text = self.names[node] = literal(node.arg, node.dtype)
            return operand_text
        raise RenderError(f"{self.made_by[0]!r} uses {node!r}, which does not come before it in the program")

    def write_node(self, node: UOp) -> None:
        """Writes a node that is not arithmetic."""
        match node.op:  # the most frequent first
            case Ops.LOAD:
                self.names[node] = self.load(node)
            case Ops.STORE:
                self.store(node)
            case Ops.DEFINE_ACC:
                self.names[node] = zero_tile(self) if is_tile(node.dtype) else self.operand(node.src[0])
            case Ops.WMMA:
                self.names[node] = self.multiply_tiles(node)
            case Ops.ASSIGN:
                self.names[node.src[0]] = self.operand(node.src[1])
            case Ops.RESULT:
                self.names[node] = self.operand(node.src[0])
            case Ops.VECTORIZE:
                self.names[node] = self.vectorize(node)
            case Ops.GEP:
                ir_type = register_type(node.src[0].dtype)
                self.names[node] = self.value(
                    f"extractelement {ir_type} {self.operand(node.src[0])}, i64 {node.arg}", "lane"
                )
            case Ops.RANGE:
                self.open_loop(node)
            case Ops.ENDRANGE:
                self.close_loop(node)
            case Ops.DEFINE_GLOBAL:
                self.names[node] = f"%data{node.arg}"
            case Ops.DEFINE_LOCAL:
                self.define_local(node)
            case Ops.PREFETCH:
                self.prefetch(node)
            case Ops.TABLE:
                self.names[node] = self.table(node, self.operand(node.src[0]))
            case Ops.HREDUCE:
                self.names[node] = self.horizontal(node)
            case Ops.DEFINE_VAR:
                self.names[node] = "%" + self.unique(variable_name(node))
            case _:
                raise RenderError(f"{node!r} does not belong in a linear program")

    def multiply_tiles(self, node: UOp) -> str:
        """Writes a product on the tile registers of the CPU, added to a tile, or to zeros."""
        a, b, c = node.src
        addend = zero_tile(self) if c.op is Ops.CONST else self.operand(c)
        return product_of_tiles(self, TENSOR_CORES[node.arg], self.operand(a), self.operand(b), addend)

    # *** memory ***

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        ir_type, size = memory_type(node.dtype.base), node.dtype.size
        name = self.names[node] = "%" + self.unique(str(node.arg))
        nbytes = size * node.dtype.base.itemsize
        if nbytes <= STACK_LIMIT_BYTES:
            self.entry_block.append(SourceLine(f"  {name} = alloca [{size} x {ir_type}], align 64", (node,)))
            return
        self.declared["aligned_alloc"] = "declare noalias ptr @aligned_alloc(i64, i64)"
        self.declared["free"] = "declare void @free(ptr)"
        rounded = -(-nbytes // 64) * 64
        text = f"  {name} = call noalias align 64 ptr @aligned_alloc(i64 64, i64 {rounded})"
        self.entry_block.append(SourceLine(text, (node,)))
        self.to_free.append(name)

    def address(self, index: UOp) -> tuple[str, DType]:
        """Returns the pointer to an INDEX's element. It may be outside the buffer if `valid` is false."""
        buffer, position = index.src[:2]
        assert isinstance(buffer.dtype, PtrDType)
        base = buffer.dtype.base
        if len(index.src) == 3:
            ir_type = memory_type(base)
            text = f"getelementptr {ir_type}, ptr {self.names[buffer]}, i64 {self.operand(position)}"
            return self.value(text, "ptr"), base
        if index not in self.near:
            return self.pointer(buffer, base, position), base
        base_position, distance = position.src
        return self.offset_pointer(base, self.pointer(buffer, base, base_position), distance), base

    def pointer(self, buffer: UOp, base: DType, position: UOp) -> str:
        """Returns the pointer to an element of the buffer, computed once while it is valid.

        A pointer for several elements is frozen, so that LLVM analyzes the change of one pointer instead of each
        element's. That saves a tenth of the compile time of a product.
        """
        address = self.pointers.get((buffer, position))
        if address is None:
            address = self.offset_pointer(base, self.names[buffer], position)
            if (buffer, position) in self.serving:
                address = self.value(f"freeze ptr {address}", "base")
            self.pointers[buffer, position] = address
        return address

    def offset_pointer(self, base: DType, start: str, distance: UOp) -> str:
        """Returns a pointer `distance` elements after another one in the same buffer."""
        text = f"getelementptr inbounds {memory_type(base)}, ptr {start}, i64 {self.operand(distance)}"
        return self.value(text, "ptr")

    def load(self, node: UOp) -> str:
        index = node.src[0]
        dtype = node.dtype
        assert isinstance(dtype, DType)
        valid = index.src[2] if len(index.src) > 2 else None
        pointer, _ = self.address(index)
        if is_tile(dtype):
            return load_tile(self, pointer)
        ir_type = memory_type(dtype)
        plain_load = f"{self.loads} {ir_type}, ptr {pointer}, align {self.alignment(dtype)}"
        if valid is None:
            return self.from_memory(self.value(plain_load, "load"), dtype)
        if valid.dtype.count > 1:
            loaded = self.masked_load(pointer, valid, dtype)
            return self.from_memory(loaded, dtype)
        self.has_branches = True
        block_before = self.block
        condition = self.operand(valid)
        line_number = len(self.lines)
        self.raw(f"  br i1 {condition}, label %load.at{line_number}, label %load.done{line_number}")
        self.label(f"load.at{line_number}")
        loaded = self.value(plain_load, "load")
        self.raw(f"  br label %load.done{line_number}")
        self.label(f"load.done{line_number}")
        zero = "zeroinitializer"
        merged = self.value(f"phi {ir_type} [ {loaded}, %load.at{line_number} ], [ {zero}, %{block_before} ]", "load")
        return self.from_memory(merged, dtype)

    def alignment(self, dtype: DType) -> int:
        """Returns the alignment of a load or store of this dtype, in bytes. Vectors may start at any element."""
        return dtype.itemsize

    def masked_load(self, pointer: str, valid: UOp, dtype: DType) -> str:
        ir_type, flags = memory_type(dtype), register_type(valid.dtype)
        stored = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
        stored = dtypes.uint16.vec(dtype.count) if dtype.scalar is dtypes.bfloat16 else stored
        name = f"llvm.masked.load.{suffix(stored)}.p0"
        self.declared[name] = f"declare {ir_type} @{name}(ptr, i32 immarg, {flags}, {ir_type})"
        align = dtype.itemsize
        mask = self.operand(valid)
        return self.value(
            f"call {ir_type} @{name}(ptr {pointer}, i32 {align}, {flags} {mask}, {ir_type} zeroinitializer)", "load"
        )

    def from_memory(self, value: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype):
            return value
        zero = "0" if dtype.count == 1 else "zeroinitializer"
        return self.value(f"icmp ne {memory_type(dtype)} {value}, {zero}", "bool")

    def store(self, node: UOp) -> None:
        index, stored = node.src[:2]
        dtype = stored.dtype
        assert isinstance(dtype, DType)
        value = self.operand(stored)
        if is_tile(dtype):
            store_tile(self, self.address(index)[0], value)
            return
        ir_type = memory_type(dtype)
        if dtypes.is_bool(dtype):
            value = self.value(f"zext {register_type(dtype)} {value} to {ir_type}", "byte")
        valid = index.src[2] if len(index.src) > 2 else None
        pointer, base = self.address(index)
        plain_store = f"  store {ir_type} {value}, ptr {pointer}, align {self.alignment(dtype)}"
        if node in self.streaming:
            align = min(self.target.line_bytes, dtype.itemsize * dtype.count)
            self.raw(f"  store {ir_type} {value}, ptr {pointer}, align {align}, !nontemporal !{{i32 1}}")
            return
        if valid is None:
            self.raw(plain_store)
            return
        condition = self.operand(valid)
        if valid.dtype.count > 1:
            flags = register_type(valid.dtype)
            in_memory = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
            in_memory = dtypes.uint16.vec(dtype.count) if dtype.scalar is dtypes.bfloat16 else in_memory
            name = f"llvm.masked.store.{suffix(in_memory)}.p0"
            self.declared[name] = f"declare void @{name}({ir_type}, ptr, i32 immarg, {flags})"
            self.raw(f"  call void @{name}({ir_type} {value}, ptr {pointer}, i32 {base.itemsize}, {flags} {condition})")
            return
        self.has_branches = True
        line_number = len(self.lines)
        self.raw(f"  br i1 {condition}, label %store.at{line_number}, label %store.done{line_number}")
        self.label(f"store.at{line_number}")
        self.raw(plain_store)
        self.raw(f"  br label %store.done{line_number}")
        self.label(f"store.done{line_number}")

    def prefetch(self, node: UOp) -> None:
        index = node.src[0]
        buffer, position = index.src
        assert isinstance(buffer.dtype, PtrDType)
        ir_type, start = memory_type(buffer.dtype.base), self.names[buffer]
        if index in self.near:
            base_position, position = position.src
            start = self.pointer(buffer, buffer.dtype.base, base_position)
        pointer = self.value(f"getelementptr {ir_type}, ptr {start}, i64 {self.operand(position)}", "ahead")
        name = "llvm.prefetch.p0"
        self.declared[name] = f"declare void @{name}(ptr, i32 immarg, i32 immarg, i32 immarg)"
        self.raw(f"  call void @{name}(ptr {pointer}, i32 0, i32 {LOCALITY}, i32 1)")

    # *** loops ***

    def open_loop(self, node: UOp) -> None:
        self.columns.clear()
        name = self.unique(node.arg.name)
        self.names[node] = f"%{name}"
        threaded = node.arg.kind is AxisKind.THREAD
        start, stop = ("%start", "%stop") if threaded else ("0", self.operand(node.src[0]))
        self.loop_ends[node] = stop
        block_before = self.block
        if runs_always(node):
            self.raw(f"  br label %{name}.body")
        else:
            runs = self.value(f"icmp slt i64 {start}, {stop}", "runs")
            self.raw(f"  br i1 {runs}, label %{name}.body, label %{name}.done")
        self.label(f"{name}.body")
        self.outside.append(self.pointers)
        self.pointers = dict(self.pointers)
        count = len(self.lines)
        # `close_loop` appends the block in which the loop ends
        self.raw(f"  %{name} = phi i64 [ {start}, %{block_before} ], [ %{name}.next, ")
        merged = {}
        for acc, assign in next(self.changed).items():  # their last values are known when the loop closes
            merged[acc] = self.names[acc], len(self.lines)
            loop_value = self.names[acc] = "%" + self.unique(f"acc{acc.arg}")
            self.lines.append(SourceLine(loop_value, (acc, assign)))
        self.before[node] = block_before, count, merged

    def close_loop(self, node: UOp) -> None:
        self.columns.clear()
        self.pointers = self.outside.pop()
        opened = node.src[0]
        name = self.names[opened][1:]
        self.raw(f"  %{name}.{'step' if self.hides_steps else 'next'} = add nuw nsw i64 %{name}, 1")
        if self.hides_steps:
            self.raw(f"  %{name}.next = freeze i64 %{name}.step")
        has_next = self.value(f"icmp slt i64 %{name}.next, {self.loop_ends[opened]}", "again")
        self.raw(f"  br i1 {has_next}, label %{name}.body, label %{name}.done")
        last_block = self.block
        self.label(f"{name}.done")
        block_before, count, merged = self.before[opened]
        self.lines[count] = SourceLine(f"{self.lines[count].text}%{last_block} ]", self.lines[count].uops)
        for acc, (register, line_number) in merged.items():
            open_line = self.lines[line_number]
            phi = (
                f"phi {register_type(acc.dtype)} [ {register}, %{block_before} ], [ {self.names[acc]}, %{last_block} ]"
            )
            self.lines[line_number] = SourceLine(f"  {open_line.text} = {phi}", open_line.uops)
            if not runs_always(opened):
                self.names[acc] = self.value(phi, "after")

    # *** vectors ***

    def vectorize(self, node: UOp) -> str:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        ir_type, scalar = register_type(dtype), register_type(dtype.scalar)
        if all(src.op is Ops.CONST for src in node.src):
            lanes = ", ".join(f"{scalar} {literal(src.arg, dtype.scalar)}" for src in node.src)
            return f"<{lanes}>"
        if all(src is node.src[0] for src in node.src):
            first_lane = self.value(
                f"insertelement {ir_type} poison, {scalar} {self.operand(node.src[0])}, i64 0", "lane"
            )
            return self.value(
                f"shufflevector {ir_type} {first_lane}, {ir_type} poison, <{dtype.count} x i32> zeroinitializer",
                "splat",
            )
        matrix = _find_transposed_rows(node)
        if matrix is not None:
            return self.transpose_registers(matrix)[node.src[0].arg]
        vectors = find_shuffled_vectors(node)
        if vectors is not None:
            return self.combine_lanes(node, vectors)
        result = "poison"
        for lane, src in enumerate(node.src):
            result = self.value(f"insertelement {ir_type} {result}, {scalar} {self.operand(src)}, i64 {lane}", "vec")
        return result

    def combine_lanes(self, node: UOp, vectors: tuple[UOp, ...]) -> str:
        """Combines lanes of one or two vectors, in any order, then inserts the lanes of each further vector."""
        ir_type, width = register_type(vectors[0].dtype), vectors[0].dtype.count
        number = [vectors.index(lane.src[0]) for lane in node.src]
        mask_lanes = [
            lane.arg + width * vector_number if vector_number < 2 else None
            for lane, vector_number in zip(node.src, number)
        ]
        result = self.shuffle(ir_type, self.operand(vectors[0]), "poison", mask_lanes) if len(vectors) == 1 else ""
        for vector_index, vector in enumerate(vectors[1:], 1):
            if vector_index > 1:
                lane_indices = [
                    width + lane.arg if vector_number == vector_index else i
                    for i, (lane, vector_number) in enumerate(zip(node.src, number))
                ]
                mask_lanes = [
                    lane if vector_number <= vector_index else None for lane, vector_number in zip(lane_indices, number)
                ]
            result = self.shuffle(ir_type, result or self.operand(vectors[0]), self.operand(vector), mask_lanes)
        return result

    def shuffle(self, ir_type: str, first: str, second: str, mask_lanes: Sequence[int | None]) -> str:
        """Selects lanes of two concatenated vectors, by their numbers; None: any lane."""
        return self.shuffle_by_mask(ir_type, first, second, mask_of(mask_lanes))

    def shuffle_by_mask(self, ir_type: str, first: str, second: str, mask: str) -> str:
        return self.value(f"shufflevector {ir_type} {first}, {ir_type} {second}, {mask}", "picked")

    def transpose_registers(self, matrix: tuple[UOp, ...]) -> list[str]:
        """Returns the columns of a matrix of registers: see `columns_of_square` and `columns_of_blocks`."""
        if matrix not in self.columns:
            is_square = len(matrix) == matrix[0].dtype.count
            self.columns[matrix] = self.columns_of_square(matrix) if is_square else self.columns_of_blocks(matrix)
        return self.columns[matrix]

    def columns_of_blocks(self, matrix: tuple[UOp, ...]) -> list[str]:
        """Returns the columns of a matrix with four times as many rows as columns. A row is a quarter of a register.

        Blocks are 128 bits. First, rows whose distance is that of a column's four blocks are put into one register.
        Then blocks are transposed in place, in log n rounds.
        """
        dtype = matrix[0].dtype
        assert isinstance(dtype, DType)
        size, width = len(matrix), BLOCK_BYTES // dtype.itemsize
        group, count = [self.operand(row) for row in matrix], width
        while count < size:
            ir_type, both_vectors = register_type(dtype.scalar.vec(count)), mask_of(range(2 * count))
            firsts = [start + i for start in range(0, len(group), 2 * width) for i in range(width)]
            group = [self.shuffle_by_mask(ir_type, group[i], group[i + width], both_vectors) for i in firsts]
            count *= 2
        whole_type = register_type(dtype.scalar.vec(size))
        group = [self.hide_origin(row, dtype.scalar.vec(size)) for row in group]
        for step in [1 << number for number in range(width.bit_length() - 1)]:
            chunks = [start + i for start in range(0, size, width) for i in range(0, width // 2, step)]
            low = [start + i for chunk in chunks for start in (chunk, size + chunk) for i in range(step)]
            low_mask, high_mask = mask_of(low), mask_of([lane + width // 2 for lane in low])
            for i in [i for i in range(width) if not i & step]:
                lower, upper = group[i], group[i + step]
                group[i] = self.shuffle_by_mask(whole_type, lower, upper, low_mask)
                group[i + step] = self.shuffle_by_mask(whole_type, lower, upper, high_mask)
        return [group[int(f"{i:b}".zfill(width.bit_length() - 1)[::-1], 2)] for i in range(width)]

    def columns_of_square(self, matrix: tuple[UOp, ...]) -> list[str]:
        """Returns the columns of a square matrix of registers, in log n rounds in which row i and row i + n/2
        interleave.

        LLVM would look for a better instruction in every chain of shuffles, at an exponential price: three quarters of
        the instruction selection time of a 16 × 16 matrix. So chains end after two rounds. For 16 floats, ints or
        halves it would find nothing better; for smaller matrices, and for bytes, it finds some.
        """
        size = len(matrix)
        ir_type = register_type(matrix[0].dtype)
        halves = []
        for start in (0, size // 2):
            lanes = ", ".join(f"i32 {start + i}, i32 {start + i + size}" for i in range(size // 2))
            halves.append(f"<{size} x i32> <{lanes}>")
        rows = [self.operand(row) for row in matrix]
        rounds = size.bit_length() - 1
        are_fenced = rounds >= 4 and matrix[0].dtype.itemsize > 1
        for number in range(1, rounds + 1):
            rows = [
                self.value(f"shufflevector {ir_type} {rows[i]}, {ir_type} {rows[i + size // 2]}, {half_mask}", "mix")
                for i in range(size // 2)
                for half_mask in halves
            ]
            if are_fenced and number % 2 == 0 and number < rounds:
                rows = [self.hide_origin(row, matrix[0].dtype) for row in rows]
        return rows

    def hide_origin(self, vector: str, dtype: DType) -> str:
        """Returns `vector` with its origin hidden from LLVM. Only floats have `llvm.arithmetic.fence`."""
        ir_type, words = register_type(dtype), dtypes.float32.vec(dtype.count * dtype.itemsize // 4)
        floats = register_type(words)
        name = f"llvm.arithmetic.fence.{suffix(words)}"
        self.declared[name] = f"declare {floats} @{name}({floats})"
        if ir_type == floats:
            return self.value(f"call {floats} @{name}({floats} {vector})", "mix")
        bits = self.value(f"bitcast {ir_type} {vector} to {floats}", "bits")
        fence = self.value(f"call {floats} @{name}({floats} {bits})", "bits")
        return self.value(f"bitcast {floats} {fence} to {ir_type}", "mix")

    def horizontal(self, node: UOp) -> str:
        """Combines all lanes of a vector: lane i with lane i + half, until one is left.

        The last lane of an odd number waits for the next round. Bools are combined as the bits of one number.
        """
        source = node.src[0].dtype
        assert isinstance(source, DType)
        if len(node.src) > 1:
            return self.horizontal_of_rows(node, source)
        value, count = self.operand(node.src[0]), source.count
        if dtypes.is_bool(source):
            bits = self.value(f"bitcast {register_type(source)} {value} to i{count}", "bits")
            is_any = node.arg in (Ops.ADD, Ops.MAX)
            return self.value(f"icmp {'ne' if is_any else 'eq'} i{count} {bits}, {0 if is_any else -1}", "truth")
        while count % 2 == 0:
            ir_type = register_type(source.scalar.vec(count))
            halves = []
            for start in (0, count // 2):
                mask = ", ".join(f"i32 {start + lane}" for lane in range(count // 2))
                halves.append(
                    self.value(
                        f"shufflevector {ir_type} {value}, {ir_type} poison, <{count // 2} x i32> <{mask}>", "half"
                    )
                )
            count //= 2
            if count == 1:
                halves = [
                    self.value(f"extractelement <1 x {register_type(source.scalar)}> {half}, i64 0") for half in halves
                ]
            value = self.arithmetic(node, node.arg, source.scalar.vec(count), halves)
        ir_type = register_type(source.scalar.vec(count))
        lanes = [value]
        if count > 1:
            lanes = [self.value(f"extractelement {ir_type} {value}, i64 {lane}", "lane") for lane in range(count)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            pairs = zip(lanes[:half], lanes[half : 2 * half])
            merged = [self.arithmetic(node, node.arg, source.scalar, list(pair)) for pair in pairs]
            lanes = merged + lanes[2 * half :]
        return lanes[0]

    def horizontal_of_rows(self, node: UOp, dtype: DType) -> str:
        """Computes `horizontal` for several vectors of `dtype`, to one lane each.

        While there are two vectors, their combined halves fill one; the rows stay in order.
        """
        # each vector has `rows` × `row_size` lanes
        vectors, row_size, rows = [self.operand(src) for src in node.src], dtype.count, 1
        while row_size > 1:
            ir_type = register_type(dtype.scalar.vec(rows * row_size))
            pairs = list(zip(vectors[::2], vectors[1::2])) or [(vectors[0], "poison")]
            rows *= min(len(vectors), 2)
            row_size //= 2
            lower = [2 * row_size * row + lane for row in range(rows) for lane in range(row_size)]
            halves = [
                [self.shuffle(ir_type, *pair, [lane + start for lane in lower]) for start in (0, row_size)]
                for pair in pairs
            ]
            vectors = [
                self.arithmetic(node, node.arg, dtype.scalar.vec(rows * row_size), operands) for operands in halves
            ]
        return vectors[0]


def mask_of(mask_lanes: Sequence[int | None]) -> str:
    """Returns the lane mask of a shuffle."""
    lanes = ", ".join(["i32 poison" if lane is None else f"i32 {lane}" for lane in mask_lanes])
    return f"<{len(mask_lanes)} x i32> <{lanes}>"


def runs_always(loop: UOp) -> bool:
    """Whether a loop has a first step for all arguments of the call."""
    return loop.arg.kind is not AxisKind.THREAD and loop.src[0].op is Ops.CONST and loop.src[0].arg > 0


def _find_changed_in_loops(uops: Sequence[UOp]) -> list[dict[UOp, UOp]]:
    """Returns the accumulators that each loop changes, with their ASSIGNs, in the order in which the loops open.

    One RANGE may open two loops: a sum that depends on fewer loops than another one is outside of them.
    """
    changed: list[dict[UOp, UOp]] = []
    open_loops: list[dict[UOp, UOp]] = []
    depth: dict[UOp, int] = {}
    for node in uops:
        op = node.op
        if op is Ops.RANGE:
            open_loops.append({})
            changed.append(open_loops[-1])
        elif op is Ops.ENDRANGE:
            open_loops.pop()
        elif op is Ops.DEFINE_ACC:
            depth[node] = len(open_loops)
        elif op is Ops.ASSIGN:
            acc = node.src[0]
            for loop in open_loops[depth[acc] :]:
                loop[acc] = node
    return changed


def _find_transposed_rows(node: UOp) -> tuple[UOp, ...] | None:
    """Returns the rows of the matrix of which this VECTORIZE is a column; None if it is none.

    The matrix is square, or its rows are quarters of registers.
    """
    first_lane = node.src[0]
    if first_lane.op is not Ops.GEP or len(node.src) & (len(node.src) - 1):
        return None
    rows = tuple(src.src[0] if src.op is Ops.GEP and src.arg == first_lane.arg else node for src in node.src)
    row, count = rows[0].dtype, node.dtype.count
    if node in rows or len(set(rows)) < len(rows) or any([row_dtype.dtype is not row for row_dtype in rows]):
        return None
    is_block = 4 * row.count == count and row.count * row.itemsize == BLOCK_BYTES and row.itemsize >= 4
    return rows if row is node.dtype or is_block else None


def _find_only_shuffled(uops: Sequence[UOp]) -> set[UOp]:
    """Returns the GEPs that only shuffles, and columns of transposed matrices, use: they need no instruction."""
    shuffled = {node for node in find_vectorizes(uops) if find_shuffled_vectors(node) or _find_transposed_rows(node)}
    return lanes_of_alone(shuffled, uops)


def _find_near_indexes(uops: Sequence[UOp]) -> tuple[set[UOp], set[UOp]]:
    """Returns the INDEXes whose position is another position in the buffer plus a constant, and the sums that only they
    use.

    An instruction addresses memory by a register and a constant anyway. If the IR does so too, LLVM has less to
    analyze.
    """
    indices = {node.src[0] for node in uops if node.op in ACCESSES}
    near_indices = {index for index in indices if len(index.src) == 2 and _is_near(*index.src)}
    sums = {index.src[1] for index in near_indices}
    if sums:
        sums.difference_update(
            *[node.src for node in uops if node.op not in USES_NO_PLACE and node not in near_indices]
        )
    return near_indices, sums


def _is_near(buffer: UOp, position: UOp) -> bool:
    if position.op is not Ops.ADD or position.src[1].op is not Ops.CONST or not isinstance(buffer.dtype, PtrDType):
        return False
    lowest, highest = bounds(position.src[0])
    return lowest >= 0 and highest < buffer.dtype.size


def _collect_written_with(node: UOp, distances: set[UOp]) -> tuple[UOp, ...]:
    """Returns `node` and its sources without an instruction: constants, and addresses with their sources."""
    if node.op in WRITTEN_ALONE:
        return (node,)
    nodes = [node]
    for src in node.src:
        if src.op is Ops.CONST:
            nodes.append(src)
        elif src.op is Ops.INDEX:
            nodes.append(src)
            for inner in src.src:
                if inner.op is Ops.CONST:
                    nodes.append(inner)
                elif inner in distances:
                    nodes += (inner, inner.src[1])
    return tuple(nodes)


def with_debug_info(spec: ProgramSpec, kind: str = "LineTablesOnly") -> str:
    """Returns the IR of `spec` with the source line of every instruction: line i + 1 is `spec.uops[i]`.

    kind: the DICompileUnit's emissionKind, for LLVM's output.
    """
    position = {node: number for number, node in enumerate(spec.uops)}
    texts = []
    used_numbers: set[int] = set()
    for line in spec.lines:
        text = line.text
        if text.startswith("  ") and line.uops and line.uops[0] in position:
            number = position[line.uops[0]] + 1
            used_numbers.add(number)
            text += f", !dbg !{number + 16}"
        elif text.startswith("define ") and f" @{spec.name}(" in text:
            text = text.removesuffix("{") + "!dbg !3 {"
        elif text.startswith("  call") or text == "  ret void":
            text += ", !dbg !6" if "_entry" not in text else ""
        elif text.startswith(f"define void @{spec.name}_entry"):
            texts.append(text)
            break
        texts.append(text)
    remaining_lines = [line.text for line in spec.lines[len(texts) :]]
    metadata = [
        "!llvm.dbg.cu = !{!0}",
        "!llvm.module.flags = !{!4, !5}",
        '!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, producer: "tinyexplore", isOptimized: true, '
        f"runtimeVersion: 0, emissionKind: {kind})",
        '!1 = !DIFile(filename: "uops", directory: "")',
        "!2 = !DISubroutineType(types: !{})",
        f'!3 = distinct !DISubprogram(name: "{spec.name}", scope: !1, file: !1, line: 0, type: !2, scopeLine: 0, '
        "spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)",
        '!4 = !{i32 7, !"Dwarf Version", i32 4}',
        '!5 = !{i32 2, !"Debug Info Version", i32 3}',
        "!6 = !DILocation(line: 0, scope: !3)",
    ]
    metadata += [f"!{number + 16} = !DILocation(line: {number}, scope: !3)" for number in sorted(used_numbers)]
    return "\n".join([*texts, *remaining_lines, *metadata]) + "\n"
