"""The terms of the explorer and the compiler, in one table for tooltips, the Glossary panel and docs/glossary.md.

`python -m tinyexplore.explore.glossary` writes docs/glossary.md and widgets/src/glossary.ts; `--check` compares them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Term:
    """One word of one group. A word may mean one thing as an opt and another as an axis.

    group: the group of the word.
    word: the term.
    meaning: the definition, as a sentence.
    """

    group: str
    word: str
    meaning: str


TERM_GROUPS = {
    "stage": "The stages of a program",
    "word": "Terms of the explorer",
    "term": "Terms of compilers, and where the code has them",
    "decision": "Decisions of the scheduler about a LazyBuffer",
    "axis": "Kinds of axes",
    "opt": "Opts: changes of a kernel's loops",
    "op": "Operations",
    "role": "Roles of nodes (their colors)",
    "pass": "Stages and passes of the compiler",
    "column": "Columns of the kernel table",
    "option": "Settings of a capture",
    "device": "Devices and their code generators",
}

TERMS: tuple[Term, ...] = (
    Term("stage", "Python", "Your lines that built tensors. In the story: page Python."),
    Term(
        "stage",
        "LazyBuffers",
        "The tensor graph that your lines built: one LazyBuffer per operation. Nothing is computed yet. "
        "In the story: page Tensors.",
    ),
    Term(
        "stage",
        "Kernels",
        "The groups of operations that share one loop nest, and the opts of their loops. The time is that of "
        "scheduling and of choosing opts. In the story: pages Kernels and Loops.",
    ),
    Term(
        "stage",
        "Passes",
        "The rewrites and transforms that lower a kernel to a loop program. In the story: page Rewrites.",
    ),
    Term(
        "stage",
        "UOps",
        "The loop program in execution order, one operation per line. In the story: the graphs of page Rewrites.",
    ),
    Term("stage", "Code", "The source text for the compiler, and the machine code. In the story: page Code."),
    Term(
        "stage",
        "Run",
        "The run time of each kernel: the median of its samples, with both quartiles. In the story: page Time.",
    ),
    Term(
        "word",
        "LazyBuffer",
        "A node of the tensor graph: an operation with a shape. It is computed when its values are needed.",
    ),
    Term("word", "kernel", "One compiled function: a nest of loops over some buffers."),
    Term("word", "UOp", "A node of a kernel's graph, or a line of its program: one small operation."),
    Term("word", "buffer", "A block of a device's memory."),
    Term("word", "pass", "One step of lowering. It processes the whole graph of a kernel."),
    Term("word", "firing", "One application of a rule: it matched a node and replaced it."),
    Term("word", "rebuild", "A node that was rebuilt only because its sources changed. No rule fired on it."),
    Term("word", "with changes", "Passes that rewrote something. The others left the graph unchanged."),
    Term("word", "rule", "A rewrite rule: a pattern and its replacement."),
    Term("word", "law", "A rule as one equation."),
    Term(
        "word",
        "opt",
        "One change of how a kernel's loops run, such as vector lanes, register tiles or threads. The result "
        "is the same.",
    ),
    Term("word", "axis", "One loop of a kernel, or what an opt made of it: lanes, unrolled copies, threads."),
    Term(
        "word",
        "view",
        "Another indexing of a buffer (a reshape, a transpose). It costs index arithmetic, no computation.",
    ),
    Term(
        "word",
        "ShapeTracker",
        "A list of Views that maps the index of an element to its offset in memory. The first View's result is the "
        "memory offset.",
    ),
    Term(
        "word",
        "stride",
        "The distance in memory of one step along an axis. Stride 0 reads the same element again; a negative "
        "stride goes backwards.",
    ),
    Term("word", "mask", "The valid part of a view. Outside is padding: no memory is read."),
    Term("word", "lane", "One of the numbers that a vector instruction computes together."),
    Term(
        "word",
        "recording",
        "The first steps of a kernel, stored with the trace. A page replays them without Python.",
    ),
    Term(
        "word",
        "reuse distance",
        "The number of other cache lines that are accessed before a line is accessed again.",
    ),
    Term(
        "word",
        "throughput",
        "Cycles per iteration of a loop that runs for long (the reciprocal throughput), and their bottleneck.",
    ),
    Term("word", "port", "A part of a CPU that starts one µop per cycle. Each instruction needs certain ports."),
    Term("word", "front end", "The part of a CPU that decodes and issues instructions: a few per cycle."),
    Term("word", "µop", "A small operation. A CPU splits each instruction into one or several."),
    Term("word", "warp", "The work-items of a GPU that execute together: 32 or 64. AMD calls it a wave."),
    Term(
        "word",
        "coalesced",
        "A load or store of a warp that needs no more segments of 32 bytes than its bytes would need if they "
        "were contiguous.",
    ),
    Term("word", "segment", "32 bytes of memory, which a GPU transfers as a whole."),
    Term(
        "word",
        "bank conflict",
        "Lanes of a warp access different words of one bank of shared memory. The bank serves them one after "
        "the other.",
    ),
    Term("word", "occupancy", "Resident warps of a multiprocessor divided by the most that it can hold."),
    Term(
        "word",
        "branch",
        "What-if branch: the result of a what-if command, which is kernels or a schedule with that change.",
    ),
    Term(
        "word",
        "rule playground",
        "The panel in which you write rules, test them, and disable rules of the pipeline.",
    ),
    Term("word", "counterexample", "Input values for which a rule's replacement differs from the original."),
    Term("word", "edit", "A stage of a kernel, changed as text. The later stages are rebuilt, run and compared."),
    Term("word", "region", "Several nodes drawn as one box, with their number."),
    Term("word", "cone", "Dependency cone: a node with all its inputs and all its users, transitively."),
    Term("word", "unrolled copies", "The copies of one computation that unrolling created."),
    Term("word", "origin", "The LazyBuffers from which a UOp or a line was made."),
    Term("word", "rewrite history", "The firings that led to a node, in order."),
    Term(
        "word",
        "fused",
        "Edge between tensors (a dot): the consumer's kernel computes the value, so it is not stored.",
    ),
    Term("word", "cut", "Edge between tensors (two bars): one kernel stores the value, and another reads it."),
    Term(
        "word",
        "join",
        "A change on the fusion board: a tensor that the scheduler stored is fused into its consumers.",
    ),
    Term(
        "word",
        "fusion board",
        "The panel in which you cut and join edges between tensors, and compare the schedules.",
    ),
    Term(
        "word", "fused again", "Edge between tensors (a ring): the kernel of every consumer computes the value again."
    ),
    Term(
        "word",
        "why",
        "The rules that could fire on a node at this step, those that did, and why the others did not, "
        "nearest miss first.",
    ),
    Term("word", "verdict", "Whether a kernel is fast, and if not, why: one kind, a sentence and its evidence."),
    Term(
        "word",
        "ceiling",
        "The highest rate that was measured on this machine: a limit of the roofline and of the verdict.",
    ),
    Term("word", "story", "Seven pages that lead through one program, from Python to its time."),
    Term("word", "workbench", "All views of a program side by side."),
    Term("word", "panel", "A view below the graph of the workbench, such as Timing."),
    Term("word", "trace", "What a capture recorded, as plain data. It can be saved and opened without the engine."),
    Term("word", "event", "What the engine reports while it works: a stage began, a rule fired, a kernel ran."),
    Term("word", "what-if", "A change of opts, fusion or code, tried on generated inputs. It becomes a branch."),
    Term(
        "word",
        "page with engine",
        "An HTML page that contains the compiler, so it can answer what a trace does not store.",
    ),
    Term("word", "heuristic", "A function that proposes opts with a reason: kernel/heuristics/."),
    Term("word", "ScheduleItem", "A kernel or a copy as the scheduler plans it: an AST and its buffers."),
    Term("word", "ExecItem", "A compiled ScheduleItem with its buffers, ready to run."),
    Term("word", "ProgramSpec", "A kernel as source text. Each line has its UOps."),
    Term(
        "word",
        "plan",
        "The kernels of a graph over numbered buffers (slots), used again for a graph of the same structure.",
    ),
    Term("word", "TinyJit", "Captures the kernels of a function once and then replays them with new inputs."),
    Term("word", "linear program", "A kernel's UOps as a list, in the order of execution."),
    Term(
        "word",
        "row buffer",
        "Scratch memory for one row of a value, written by one loop and read by others of the same kernel.",
    ),
    Term(
        "word",
        "register tile",
        "A block of results that a kernel holds in registers, so that each loaded value is used several times.",
    ),
    Term("word", "tensor core", "A unit that multiplies small matrices: AMX on a CPU, WMMA on a GPU."),
    Term("word", "work-item", "One thread of a GPU kernel. Work-items that share memory form a work-group."),
    Term("word", "median", "Half of the samples are at or below it."),
    Term(
        "word",
        "quartiles",
        "A quarter of the samples are at or below the lower one, a quarter at or above the upper one.",
    ),
    Term("word", "search", "BEAM: opts are tried and timed, and the best ones are extended."),
    Term(
        "term",
        "common subexpression elimination",
        "Equal operations on equal values are computed once: schedule/common_subexpressions.py for tensors, "
        "hash-consing in uop/uop.py inside a kernel.",
    ),
    Term(
        "term",
        "loop-invariant code motion",
        "A value that a loop does not change is computed outside of it: schedule/hoisting.py for reductions, "
        "codegen/transforms/linearize.py for instructions.",
    ),
    Term(
        "term",
        "dead code elimination",
        "Nodes that no output needs are never computed: graphs are walked from their outputs (schedule/writes.py, "
        "uop/uop.py).",
    ),
    Term(
        "term",
        "constant folding",
        "Operations on constants are computed at compile time: uop/algebra.py, pass simplify.",
    ),
    Term("term", "loop fusion", "Several tensor operations share one loop nest: schedule/fusion.py."),
    Term("term", "loop fission", "One loop becomes two: codegen/transforms/loop_fission.py."),
    Term("term", "loop interchange", "Two loops change places: the opt SWAP."),
    Term(
        "term",
        "loop tiling",
        "A loop is split into blocks: UPCAST for registers, LOCAL for caches and work-groups (strip mining "
        "splits it for VECTOR).",
    ),
    Term("term", "unrolling", "A loop's steps are written out: UPCAST and UNROLL, codegen/rewrites/unroll.py."),
    Term(
        "term",
        "vectorization",
        "Neighboring steps become lanes of one instruction: the opt VECTOR, codegen/rewrites/vectorize.py.",
    ),
    Term(
        "term", "software pipelining", "Parts of consecutive steps overlap: the opt PIPELINE, kernel/opts/pipeline.py."
    ),
    Term("term", "packing", "An operand is copied into the order in which a loop reads it: the opt STAGE."),
    Term(
        "term",
        "strength reduction",
        "A cheaper operation replaces an expensive one: a multiplication by 1/4 for a division by 4 "
        "(codegen/rewrites/division.py).",
    ),
    Term(
        "term",
        "scheduling",
        "The order of kernels (schedule/) and of instructions in a kernel (codegen/transforms/linearize.py).",
    ),
    Term(
        "term",
        "register allocation",
        "LLVM or the C compiler assigns registers. The register tile is chosen to fit them: "
        "kernel/heuristics/product_tile.py.",
    ),
    Term(
        "term",
        "spill",
        "A value that does not fit in a register and is stored on the stack: explore/analysis/verdict/code.py.",
    ),
    Term(
        "term",
        "live range",
        "From a value's definition to its last use: execute/memory.py for buffers, LLVM for registers.",
    ),
    Term(
        "term",
        "memory planner",
        "Intermediates whose live ranges do not overlap share memory: execute/memory.py.",
    ),
    Term(
        "term",
        "cost model",
        "An estimate instead of a measurement: schedule/costs.py for fusion, kernel/heuristics/ for opts.",
    ),
    Term(
        "term",
        "roofline",
        "Speed against operations per byte, below the machine's measured ceilings: explore.ceilings().",
    ),
    Term(
        "term",
        "arithmetic intensity",
        "Operations per byte of memory traffic: explore/tracefile/pictures/trace_roofline.py.",
    ),
    Term("term", "bandwidth-bound", "Limited by memory or cache bandwidth: explore/analysis/verdict/rules.py."),
    Term("term", "compute-bound", "Limited by arithmetic units: explore/analysis/verdict/rules.py."),
    Term(
        "term",
        "latency-bound",
        "Limited by operations that wait for each other (a dependence chain): explore/analysis/verdict/rules.py.",
    ),
    Term(
        "term",
        "critical path",
        "The longest dependence chain of a loop iteration: panel Throughput, explore/analysis/models/.",
    ),
    Term(
        "term",
        "launch overhead",
        "The time of a call in addition to its kernel: execute/runner.py, execute/step_group.py.",
    ),
    Term(
        "term",
        "cache miss",
        "An access that a cache level does not hold: panel Caches, explore/analysis/models/caches.py.",
    ),
    Term(
        "term",
        "conflict miss",
        "A miss because too many lines share one cache set; packing avoids it: explore/analysis/models/lru.py.",
    ),
    Term("term", "gather", "A load of lanes that are not contiguous in memory."),
    Term(
        "term",
        "autodiff tape",
        "The operations recorded for the backward pass: autograd/tape.py, rules in autograd/rules.py.",
    ),
    Term("term", "peephole", "A local rewrite of a few instructions: every table of rules in codegen/rewrites/."),
    Term("decision", "realize", "The LazyBuffer gets a buffer."),
    Term("decision", "fuse", "The kernel of its reader computes the value."),
    Term("decision", "duplicate", "The kernel of each reader computes the value again: cheaper than memory."),
    Term(
        "decision",
        "keep",
        "A row buffer: the value is computed once per row into scratch memory, and other loops of the kernel read it.",
    ),
    Term("decision", "split", "The value is reduced in parts, and the partial results are reduced again."),
    Term(
        "decision",
        "merge",
        "Equal to another node, so one computation serves both (common subexpression elimination).",
    ),
    Term(
        "decision",
        "hoist",
        "Loop-invariant code motion: the value is computed once for all steps of a loop that does not change it.",
    ),
    Term("decision", "view", "Another indexing of a buffer. Nothing is computed."),
    Term("axis", "global", "An ordinary loop over the output; on a GPU a dimension of the grid."),
    Term("axis", "thread", "A loop over the output, divided among the cores."),
    Term("axis", "warp", "The lanes of a warp, which together hold the operands of a tensor core."),
    Term("axis", "local", "A loop over a block of the output; on a GPU a dimension of the work-group."),
    Term("axis", "reduce", "A loop that accumulates."),
    Term("axis", "group", "A loop that accumulates in blocks, each with a partial result."),
    Term("axis", "unroll", "A fully unrolled reduction: one accumulator per step."),
    Term("axis", "upcast", "A fully unrolled output loop: a tile of results in registers."),
    Term("axis", "vector", "The lanes of vector instructions."),
    Term("axis", "scan", "A loop over the output whose steps depend on the step before."),
    Term("axis", "tile", "The rows of a matrix that fills a tile register of a CPU."),
    Term("axis", "copy", "A loop that fills scratch memory, before the loops that read it."),
    Term("axis", "row", "A loop that computes a row into scratch memory, before the loops that read it."),
    Term("axis", "rare", "Cold path: a body that runs once if some lane needs it, else not at all."),
    Term("opt", "VECTOR", "Computes this many neighboring steps of the axis in the lanes of one vector instruction."),
    Term(
        "opt",
        "UPCAST",
        "Unrolls this many steps of an output axis (register tile), so that shared operands are loaded once.",
    ),
    Term("opt", "UNROLL", "Unrolls this many steps of a reduction, each with its own accumulator."),
    Term("opt", "THREAD", "Divides the steps of the outermost output axis among the cores."),
    Term(
        "opt",
        "LOCAL",
        "Moves a block of this many steps of an output axis inside the other output loops (loop tiling). On a "
        "GPU, the block is a work-group.",
    ),
    Term(
        "opt",
        "GROUP",
        "Splits a reduction into blocks with a partial result each. On a GPU, the work-items of a group share it.",
    ),
    Term("opt", "GROUPTOP", "Like GROUP on a GPU, but each work-item reduces consecutive steps."),
    Term("opt", "NOLOCALS", "Leaves the work-group size to the GPU's runtime."),
    Term(
        "opt",
        "PADTO",
        "Pads an axis to a multiple of this number. Steps past its end are masked: they load and store nothing.",
    ),
    Term("opt", "SWAP", "Exchanges two output axes (loop interchange)."),
    Term("opt", "COLLAPSE", "Merges two output axes into one loop, so that vectors may cross the end of a short row."),
    Term(
        "opt",
        "STAGE",
        "Copies an operand that every step of the axis reads into scratch memory, in reading order (packing). On "
        "a GPU, into shared memory.",
    ),
    Term(
        "opt",
        "TRANSPOSE_STORE",
        "Writes a register tile of results to scratch memory, and stores it from there in memory order.",
    ),
    Term("opt", "TRIM", "Stops loops after the last step that the mask keeps."),
    Term(
        "opt",
        "TC",
        "Computes a sum of products with dot instructions of `amount` numbers or with tile registers. On a GPU, "
        "with tensor cores.",
    ),
    Term("opt", "PREFETCH", "Prefetches the loop's data this many steps ahead."),
    Term(
        "opt",
        "PIPELINE",
        "Software pipelining: stores a step's results while it computes the next step, in blocks of this many "
        "steps. On a GPU, double buffering: loads the next block of a staged operand while it computes a block.",
    ),
    Term("op", "SINK", "The root of a kernel: all its stores."),
    Term("op", "CONST", "A constant."),
    Term("op", "DEFINE_VAR", "An integer argument of the kernel."),
    Term("op", "BIND", "A Variable with its value in this call."),
    Term("op", "DEFINE_GLOBAL", "A buffer argument of the kernel."),
    Term("op", "DEFINE_LOCAL", "Scratch memory of one call."),
    Term("op", "DEFINE_ACC", "A register: an accumulator with its first value."),
    Term("op", "INDEX", "The address of an element of a buffer."),
    Term("op", "LOAD", "Reads memory: one element, or neighbors that fill a vector."),
    Term("op", "STORE", "Writes memory."),
    Term("op", "PREFETCH", "Requests a cache line that is read some steps later."),
    Term("op", "ASSIGN", "Gives a register a new value."),
    Term("op", "RESULT", "The value of a register after its loops."),
    Term("op", "BARRIER", "Later reads of scratch memory see all earlier writes."),
    Term("op", "RANGE", "Opens a loop."),
    Term("op", "ENDRANGE", "Closes a loop."),
    Term(
        "op", "SPECIAL", "The number of a work-item in its group (lidx), or of the group in the grid (gidx), on a GPU."
    ),
    Term("op", "REDUCE", "Combines the values of all steps of its loops: a sum, product, maximum or minimum."),
    Term("op", "SCAN", "The running result along a loop."),
    Term("op", "VECTORIZE", "A vector of scalars, or one scalar in every lane."),
    Term("op", "GEP", "One lane of a vector."),
    Term("op", "HREDUCE", "All lanes of a vector combined into one."),
    Term("op", "TABLE", "Selects one of a few constants by an index."),
    Term("op", "NEG", "−x."),
    Term("op", "SQRT", "The square root."),
    Term("op", "EXP", "e to the power of x."),
    Term("op", "EXP2", "2 to the power of x."),
    Term("op", "LOG", "The natural logarithm."),
    Term("op", "LOG2", "The logarithm to base 2."),
    Term("op", "SIN", "The sine."),
    Term("op", "COS", "The cosine."),
    Term("op", "TANH", "The hyperbolic tangent."),
    Term("op", "ERF", "The error function."),
    Term("op", "FLOOR", "The largest whole number that is not above x."),
    Term("op", "CAST", "The same value in another type."),
    Term("op", "BITCAST", "The same bits as another type."),
    Term("op", "ADD", "x + y."),
    Term("op", "MUL", "x · y."),
    Term("op", "FDIV", "x / y of floats."),
    Term("op", "IDIV", "x / y of integers, rounded towards zero."),
    Term("op", "MOD", "The remainder of a division."),
    Term("op", "MAX", "The larger operand."),
    Term("op", "MIN", "The smaller operand."),
    Term("op", "POW", "x to the power of y."),
    Term("op", "SCALE", "x times a power of two."),
    Term("op", "CMPLT", "x < y."),
    Term("op", "CMPLE", "x ≤ y."),
    Term("op", "CMPEQ", "x = y."),
    Term("op", "CMPNE", "x ≠ y."),
    Term("op", "AND", "Bitwise and, or logical and."),
    Term("op", "OR", "Bitwise or, or logical or."),
    Term("op", "XOR", "Bitwise exclusive or, or logical exclusive or."),
    Term("op", "SHL", "Shift left."),
    Term("op", "SHR", "Shift right."),
    Term("op", "WHERE", "x where the condition holds, else y."),
    Term("op", "MULACC", "x · y + z in one instruction."),
    Term(
        "op",
        "WMMA",
        "A tensor core: C + A · B. The lanes of a warp hold the three matrices, or tile registers of a CPU.",
    ),
    Term("op", "TILE", "The words of a matrix as a tile register of a CPU holds them: row by row."),
    Term("op", "DOT_BF16", "Adds two products of bfloat16 to a float32."),
    Term("op", "DOT_I8", "Adds four products of int8 to an int32."),
    Term("op", "DOT_U8", "Adds four products of uint8 and int8 to an int32."),
    Term("op", "BUFFER", "Existing memory: an input, or a realized result."),
    Term("op", "IOTA", "0, 1, 2, …"),
    Term("op", "REDUCE_AXIS", "A sum, product, maximum or minimum over axes, which stay with size 1."),
    Term("op", "RESHAPE", "The same values in another shape."),
    Term("op", "EXPAND", "An axis of size 1 repeated, without copies."),
    Term("op", "PERMUTE", "The axes in another order: a transposition."),
    Term("op", "PAD", "Padding with zeros."),
    Term("op", "SHRINK", "A slice."),
    Term("op", "FLIP", "Reversed axes."),
    Term("op", "WINDOW", "Sliding windows along an axis."),
    Term("op", "DIAGONAL", "A diagonal: two axes indexed as one."),
    Term("op", "GATHER", "Elements picked by an index."),
    Term("op", "SCATTER", "Values combined into the elements that an index names."),
    Term("op", "FETCH_ADD", "Returns the counter that an index names, and adds 1 to it."),
    Term("op", "SCAN_AXIS", "The running result along an axis."),
    Term("op", "CONTIGUOUS", "The values are stored in memory, in order."),
    Term("op", "COPY", "The same values on another device."),
    Term("op", "WRITE", "A buffer with some of its elements changed."),
    Term("role", "buffer", "Memory that exists before this graph."),
    Term("role", "memory", "Operations that read or write memory."),
    Term("role", "reduce", "Sums and other reductions, and their registers."),
    Term("role", "loop", "Loops."),
    Term("role", "alu", "Arithmetic."),
    Term("role", "movement", "Views, and operations that only rearrange lanes."),
    Term("role", "const", "Constants."),
    Term("role", "control", "Structure of a program: its root, barriers, ends of loops."),
    Term("pass", "schedule", "Decides which LazyBuffers share a kernel and which get memory."),
    Term("pass", "kernel", "Optimize, lower, render and compile one kernel."),
    Term("pass", "optimize", "Chooses the opts: by heuristics, or by search (BEAM)."),
    Term("pass", "lower", "Lowers a kernel to a graph of UOps."),
    Term("pass", "simplify", "Constant folding and algebraic simplification."),
    Term("pass", "work items", "On a GPU: output loops become a grid of work-groups, which share memory and barriers."),
    Term("pass", "wide vectors", "Merges lanes and a tile of whole vectors into one long vector."),
    Term(
        "pass",
        "early vectorization",
        "Neighboring loads and stores along a vector axis become vectors, and so do the values computed from them.",
    ),
    Term("pass", "unroll tiles", "Unrolls UPCAST axes."),
    Term("pass", "unroll reductions", "Unrolls UNROLL axes, with an accumulator per step."),
    Term("pass", "simplify the copies", "Algebraic simplification of the unrolled copies."),
    Term("pass", "vectorize memory", "Loads and stores of neighbors become vector loads and stores."),
    Term("pass", "vectorize values", "The same operation in every lane becomes one vector operation."),
    Term("pass", "coalesce accesses", "Scalar accesses to neighbors in memory become one vector access."),
    Term("pass", "bool arithmetic", "Replaces arithmetic on bools by logic."),
    Term("pass", "widen small floats", "Computes 16-bit floats in float32."),
    Term("pass", "fp8 conversions", "Writes conversions of 8-bit floats as integer arithmetic."),
    Term("pass", "fp8 as bytes", "Stores 8-bit floats as bytes."),
    Term(
        "pass",
        "logistic functions",
        "Recognizes 1 / (1 + exp(x)) and related forms, and computes each as one function.",
    ),
    Term("pass", "transcendental functions", "Replaces exp, log, sin and others by polynomials."),
    Term(
        "pass",
        "signed dot products",
        "Adapts signed factors to the dot instruction, which takes one unsigned factor.",
    ),
    Term("pass", "tiles", "Loads the tiles of a CPU's matrix unit (AMX): each tile becomes one load."),
    Term("pass", "loop fission", "Gives a reduction its own loop: one loop becomes two."),
    Term("pass", "argmax", "Finds a maximum or minimum and its index in one loop."),
    Term("pass", "horizontal reductions", "Combines several sums over lanes into one over several vectors."),
    Term("pass", "accumulators", "Turns reductions into loops over registers."),
    Term("pass", "chained sums", "If two sums are added, the second accumulator starts with the result of the first."),
    Term("pass", "branches", "Moves rare, expensive code to a cold path that runs only if some lane needs it."),
    Term("pass", "dot products", "Uses the machine's dot instructions."),
    Term(
        "pass",
        "divisions",
        "Replaces divisions of floats by a power of two, and of bytes by a constant, with multiplications.",
    ),
    Term("pass", "masked addresses", "Vector loads whose mask selects no lane read the start of their buffer."),
    Term("pass", "narrow comparisons", "Compares in as few bits as the values need."),
    Term("pass", "simplify the rest", "Algebraic simplification of the remaining graph."),
    Term("pass", "prefetch", "Inserts software prefetches before loads."),
    Term("pass", "linearize", "Orders the graph: the loop program."),
    Term("pass", "interleave", "Interleaves copies of a computation, so that the processor need not wait."),
    Term(
        "pass",
        "vector accesses",
        "On a GPU: aligned neighbors that a work-item loads or stores become one vector access.",
    ),
    Term(
        "pass",
        "double buffering",
        "On a GPU: loads the next block of a staged loop while the current one is used.",
    ),
    Term(
        "pass",
        "loop barriers",
        "On a GPU: places barriers so that no step overwrites shared memory that others still read.",
    ),
    Term("pass", "render", "Writes the source text."),
    Term("pass", "compile", "Compiles the text to machine code."),
    Term("pass", "list", "Writes listings in other languages, for the reader only."),
    Term("column", "#", "The kernel's position in the schedule."),
    Term(
        "column",
        "kernel",
        "The kernel's name: E computes element by element, r reduces; the numbers are the sizes of its axes, "
        "colored by their kind.",
    ),
    Term("column", "of", "The Python calls that it computes."),
    Term("column", "opts", "The opts of its loops, in order."),
    Term("column", "time", "The time of the launch itself: no samples were taken."),
    Term("column", "median", "The median of the samples. The verdict, the roofline and the story use it as well."),
    Term("column", "verdict", "The bottleneck, and the share of this machine's limit."),
    Term(
        "column",
        "GFLOP/s",
        "10⁹ floating-point operations per second: operations divided by the median. An exp counts as one operation."
        " The verdict counts all of its instructions.",
    ),
    Term("column", "GB/s", "10⁹ bytes per second: the least traffic divided by the median."),
    Term("column", "FLOP", "Floating-point operations of one run."),
    Term("column", "bytes", "The least traffic between memory and processor."),
    Term("column", "compile", "Compile time of its program."),
    Term("column", "code", "Size of its machine code."),
    Term("column", "cache", "Whether the program was compiled or came from a cache."),
    Term("option", "DEVICE", "The default device of tensors."),
    Term("option", "NOOPT", "1: kernels run as scheduled, without opts."),
    Term("option", "BEAM", "The width of the search for opts; 0: heuristics instead of a search."),
    Term(
        "option",
        "repeat",
        "The number of samples per launch; a long launch has fewer. 1: one launch with cold caches.",
    ),
    Term("option", "target", "The machine for which code was generated: CPU, features and caches."),
    Term("option", "TARGET", "The setting that names the machine for which code is generated."),
    Term("option", "THREADS", "The most threads that a kernel may use; 0: one per core."),
    Term("option", "tinyexplore", "The version of the package that wrote the trace."),
    Term("device", "LLVM", "CPU by LLVM: kernels are LLVM IR, which the library llvmlite compiles."),
    Term("device", "CLANG", "CPU by clang: kernels are C, which the compiler clang compiles. No llvmlite is needed."),
    Term("device", "PYTHON", "Interpreter: Python executes kernels step by step. It is slow, and defines the results."),
    Term("device", "GPU", "OpenCL: kernels are OpenCL C, for the GPU (or CPU) of its driver."),
    Term("device", "CUDA", "NVIDIA GPU: kernels are CUDA C++, compiled by NVIDIA's driver libraries."),
    Term("device", "WASM", "WebAssembly: kernels run in the browser's or Node's engine, with 128-bit vectors."),
    Term("device", "WEBGPU", "WebGPU: kernels are WGSL, for the GPU that WebGPU finds."),
)


def as_markdown() -> str:
    """Returns the text of docs/glossary.md."""
    parts = [
        "# Glossary",
        "This page answers: what does a term mean, and where in the code does it happen?\n\n"
        "Tooltips and the Glossary panel show the "
        "same text. `python -m tinyexplore.explore.glossary` writes the page from `tinyexplore/explore/glossary.py`.",
    ]
    for group, title in TERM_GROUPS.items():
        rows = [f"| `{term.word}` | {term.meaning} |" for term in TERMS if term.group == group]
        parts.append("\n".join([f"## {title}", "", "| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def as_typescript() -> str:
    """Returns the text of widgets/src/glossary.ts: the groups with their words."""
    groups = {
        group: {"title": title, "terms": {term.word: term.meaning for term in TERMS if term.group == group}}
        for group, title in TERM_GROUPS.items()
    }
    text = json.dumps(groups, ensure_ascii=False, indent=2)
    return (
        "// Generated from tinyexplore/explore/glossary.py by `python -m tinyexplore.explore.glossary`. "
        "Do not edit.\n\n"
        "export interface Group {\n  title: string;\n  terms: Record<string, string>;\n}\n\n"
        f"export const GLOSSARY: Readonly<Record<string, Group>> = {text};\n"
    )


FILES = {
    ROOT / "docs" / "glossary.md": as_markdown,
    ROOT / "widgets" / "src" / "glossary.ts": as_typescript,
}


def main(arguments: list[str]) -> int:
    """Writes the files, or with `--check` lists those that are out of date."""
    stale = [path for path, make in FILES.items() if not path.exists() or path.read_text(encoding="utf-8") != make()]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current: run python -m tinyexplore.explore.glossary")
        return 1 if stale else 0
    for path in stale:
        path.write_text(FILES[path](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
