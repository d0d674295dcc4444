"""The vocabulary of the explorer, in one table: tooltips and the glossary of the views, and docs/glossary.md.

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
    """One word, of one group (a word may mean one thing as an opt and another as an axis)."""

    group: str
    word: str
    meaning: str


GROUPS = {
    "stage": "The way of a program",
    "word": "Words of the explorer",
    "decision": "What the scheduler decides of a LazyBuffer",
    "axis": "Kinds of axes",
    "opt": "Opts: how a kernel's loops are walked",
    "op": "Operations",
    "role": "Roles of nodes, which colour them",
    "pass": "Stages and passes of the compiler",
    "column": "Columns of the kernel table",
    "option": "Settings of a capture",
}

TERMS: tuple[Term, ...] = (
    Term("stage", "Python", "The lines of yours that built tensors."),
    Term("stage", "LazyBuffers", "What those lines recorded, one LazyBuffer an operation: nothing is computed yet."),
    Term(
        "stage",
        "Kernels",
        "What is computed together in one loop nest, and how its loops are walked. The time is that of "
        "scheduling and of choosing opts.",
    ),
    Term("stage", "Passes", "The rewrites and transforms that turn a kernel's mathematics into a loop program."),
    Term("stage", "UOps", "The loop program, one operation a line, in the order in which it runs."),
    Term("stage", "Code", "The program as text for the compiler, and the machine code that it made of it."),
    Term(
        "stage", "Run", "One run of each kernel: the median of its timed runs. Two times beside it are the quartiles."
    ),
    Term(
        "word",
        "LazyBuffer",
        "A node of the tensor graph: an operation with a shape, computed when somebody asks for its values.",
    ),
    Term("word", "kernel", "One function that the compiler makes: a nest of loops over some buffers."),
    Term("word", "UOp", "A node of a kernel's graph, or a line of its program: one small operation."),
    Term("word", "buffer", "A piece of a device's memory."),
    Term("word", "pass", "One step of lowering, over the whole graph of a kernel."),
    Term("word", "firing", "One rule that matched a node and put another in its place."),
    Term("word", "rebuild", "A node made anew only because its sources changed; no rule fired on it."),
    Term("word", "idle", "Of a pass: it looked at the graph and changed nothing."),
    Term("word", "rule", "What a pass may do: a pattern, and what takes its place."),
    Term("word", "law", "A rule in a line: what is equal to what."),
    Term(
        "word",
        "opt",
        "One choice of how a kernel's loops are walked, such as lanes, tiles or threads. The result is the same.",
    ),
    Term("word", "axis", "One loop of a kernel, or what it became: lanes, copies, threads."),
    Term("word", "view", "Another way to look at a buffer (a reshape, a transpose): index arithmetic, no computation."),
    Term(
        "word",
        "ShapeTracker",
        "Where the elements of a view lie: one or several Views, the first of which touches memory.",
    ),
    Term(
        "word",
        "stride",
        "How far in memory a step along an axis goes; 0 reads the same place again, below 0 backwards.",
    ),
    Term("word", "mask", "The part of a view in which there are elements; outside is padding, and nothing is read."),
    Term("word", "lane", "One of the numbers that a vector instruction computes at once."),
    Term("word", "recording", "The first steps of a kernel, kept with the trace, so that a page can step them."),
    Term("word", "reuse distance", "How many other cache lines are touched before a line is touched again."),
    Term(
        "word",
        "throughput",
        "How many cycles an iteration of a loop takes when it goes on and on, and what bounds that.",
    ),
    Term(
        "word", "port", "A part of a CPU that begins one small operation in a cycle; an instruction needs some of them."
    ),
    Term("word", "front end", "The part of a CPU that begins instructions: a few in a cycle, whatever the ports do."),
    Term("word", "µop", "One of the small operations of which a CPU makes an instruction."),
    Term("word", "warp", "The work-items of a GPU's group that go in step: 32, or 64. AMD calls it a wave."),
    Term(
        "word",
        "coalesced",
        "Of a warp's load or store: its lanes touch no more segments of 32 bytes than their bytes would side by side.",
    ),
    Term("word", "segment", "A piece of memory, 32 bytes, of which a GPU moves all or nothing."),
    Term(
        "word",
        "bank conflict",
        "Lanes of a warp want different words of one bank of shared memory, which answers one at a time.",
    ),
    Term("word", "occupancy", "Of the warps that a multiprocessor of a GPU can hold, the share that it does hold."),
    Term("word", "branch", "What came of a command: kernels, or a schedule, as they would be otherwise."),
    Term("word", "rule playground", "Where rules are written, tried and checked, and others of the pipeline left out."),
    Term("word", "counterexample", "Values at which what a rule made is something else than what stood there before."),
    Term("word", "edit", "A stage of a kernel changed as text: what comes after it is made anew, run and compared."),
    Term("word", "region", "Several nodes drawn as one box, with their number."),
    Term("word", "cone", "A node with all that it is made of and all that it leads to."),
    Term("word", "twins", "The copies that unrolling made of one computation."),
    Term("word", "origin", "The LazyBuffers that a UOp or a line comes from."),
    Term("word", "biography", "The firings that led to a node, in order."),
    Term(
        "word",
        "fused",
        "On an edge between tensors (a dot): what is read is computed where it is read, without memory.",
    ),
    Term("word", "cut", "On an edge between tensors (two bars): one kernel stores what another one reads."),
    Term("word", "join", "On the fusion board: a tensor is computed where it is read, though the scheduler stored it."),
    Term("word", "fusion board", "Where the reader cuts and joins edges between tensors, and sees what comes of it."),
    Term(
        "word", "fused again", "On an edge between tensors (a ring): each kernel that reads it computes it for itself."
    ),
    Term(
        "word",
        "why",
        "Which rules could fire on a node at this step, which did, and what stopped the others, nearest miss first.",
    ),
    Term("word", "median", "The time that half of the runs are below."),
    Term(
        "word", "quartiles", "A quarter of the runs is faster than the lower one, a quarter slower than the upper one."
    ),
    Term("word", "search", "BEAM: opts tried and timed, the best ones tried further."),
    Term("decision", "realize", "It gets memory of its own."),
    Term("decision", "fuse", "It is computed inside the kernel of its user."),
    Term("decision", "duplicate", "It is computed again by each user, because that is cheaper than memory."),
    Term(
        "decision", "keep", "It is computed once for each row into scratch memory, which the kernel's loops then read."
    ),
    Term("decision", "split", "It is reduced in pieces, and the pieces' results are reduced again."),
    Term("decision", "view", "It is another way to look at a buffer; nothing is computed."),
    Term("axis", "global", "An ordinary loop over the output; on a GPU a dimension of the grid."),
    Term("axis", "thread", "A loop over the output that is divided among the cores: each call does a part of it."),
    Term("axis", "warp", "The lanes of a warp, which hold the operands of a tensor core together."),
    Term("axis", "local", "A loop over a block of the output; on a GPU a dimension of the workgroup."),
    Term("axis", "reduce", "A loop that accumulates."),
    Term("axis", "group", "A loop that accumulates in blocks, each with a partial result."),
    Term("axis", "unroll", "A reduction written out: one accumulator for each step."),
    Term("axis", "upcast", "A loop over the output written out: a tile of results in registers."),
    Term("axis", "vector", "The lanes of vector instructions."),
    Term("axis", "scan", "A loop over the output whose steps go in order, each from what the one before left."),
    Term("axis", "copy", "A loop that fills scratch memory, before the loops that read it."),
    Term("axis", "row", "A loop that computes a row into scratch memory, before the loops that read it."),
    Term("axis", "rare", "A body that is done once or not at all: only where some lane needs it."),
    Term("opt", "VECTOR", "The lanes of one vector instruction do this many neighbouring steps of the axis."),
    Term("opt", "UPCAST", "This many steps of an output axis are written out, so that what they share is done once."),
    Term("opt", "UNROLL", "This many steps of a reduction are written out, each with an accumulator of its own."),
    Term("opt", "THREAD", "The steps of the outermost output axis are divided among the cores."),
    Term(
        "opt",
        "LOCAL",
        "A block of this many steps of an output axis becomes a loop inside the others; on a GPU, a work-group.",
    ),
    Term(
        "opt",
        "GROUP",
        "A reduction is done in blocks, each with a partial result; on a GPU, by the work-items of a group.",
    ),
    Term(
        "opt", "GROUPTOP", "Each work-item of a group does a part of a reduction, from end to end; they meet in memory."
    ),
    Term("opt", "NOLOCALS", "The runtime of a GPU, and not the kernel, says what is a work-group."),
    Term("opt", "PADTO", "An axis takes as many steps as a multiple of this number; those past its end do nothing."),
    Term("opt", "SWAP", "Two output axes change places."),
    Term("opt", "MERGE", "Two output axes become one, so that lanes need not end where a short row ends."),
    Term(
        "opt",
        "STAGE",
        "What every step of the axis reads alike is first copied into scratch memory, in the order in which "
        "it is read; on a GPU, what work-items of a group read alike, into shared memory.",
    ),
    Term(
        "opt",
        "COLLECT",
        "Results that lie apart in memory are put down in scratch memory first, and stored from there in order.",
    ),
    Term("opt", "CUT", "Loops end where a mask hides all that is left."),
    Term(
        "opt",
        "TC",
        "Sums of products by dot instructions, which take this many numbers a word; of a GPU, by tensor cores.",
    ),
    Term(
        "opt",
        "AHEAD",
        "What is read in the loop is asked for this many steps earlier, so that it is in the cache by then.",
    ),
    Term(
        "opt",
        "PIPE",
        "The results of a step are stored while the next one is computed, in blocks of this many steps. On a GPU: the "
        "next block of a staged reduction is read while one is computed (double buffering).",
    ),
    Term("op", "SINK", "The root of a kernel: all its stores."),
    Term("op", "CONST", "A constant."),
    Term("op", "DEFINE_VAR", "An integer that the kernel is given when it is called."),
    Term("op", "BIND", "A variable with its value in this call."),
    Term("op", "DEFINE_GLOBAL", "A buffer that the kernel is given."),
    Term("op", "DEFINE_LOCAL", "Scratch memory of one call."),
    Term("op", "DEFINE_ACC", "A register: an accumulator with its first value."),
    Term("op", "INDEX", "The address of an element of a buffer."),
    Term("op", "LOAD", "Reads memory: one element, or the neighbours that fill a vector."),
    Term("op", "STORE", "Writes memory."),
    Term("op", "PREFETCH", "Asks for a cache line that is read some steps later."),
    Term("op", "ASSIGN", "Gives a register a new value."),
    Term("op", "RESULT", "The value of a register after its loops."),
    Term("op", "BARRIER", "What was written to scratch memory is there from here on."),
    Term("op", "RANGE", "Opens a loop."),
    Term("op", "ENDRANGE", "Closes a loop."),
    Term(
        "op", "SPECIAL", "The number of a work-item in its group (lidx), or of the group in the grid (gidx), on a GPU."
    ),
    Term("op", "REDUCE", "Combines the values of all steps of its loops: a sum, a product, a maximum or a minimum."),
    Term("op", "SCAN", "The running result along a loop."),
    Term("op", "VECTORIZE", "A vector of scalars, or one scalar in every lane."),
    Term("op", "GEP", "One lane of a vector."),
    Term("op", "HREDUCE", "All lanes of a vector combined into one."),
    Term("op", "TABLE", "One of a few numbers, by an index."),
    Term("op", "NEG", "Minus x."),
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
    Term("op", "MOD", "The rest of a division."),
    Term("op", "MAX", "The larger one."),
    Term("op", "MIN", "The smaller one."),
    Term("op", "POW", "x to the power of y."),
    Term("op", "SCALE", "x times a power of two."),
    Term("op", "CMPLT", "x < y."),
    Term("op", "CMPLE", "x ≤ y."),
    Term("op", "CMPEQ", "x = y."),
    Term("op", "CMPNE", "x ≠ y."),
    Term("op", "AND", "Bits, or truths: both."),
    Term("op", "OR", "Bits, or truths: at least one."),
    Term("op", "XOR", "Bits, or truths: exactly one."),
    Term("op", "SHL", "Bits moved up."),
    Term("op", "SHR", "Bits moved down."),
    Term("op", "WHERE", "x where the condition holds, else y."),
    Term("op", "MULACC", "x · y + z in one instruction."),
    Term("op", "WMMA", "A tensor core: C + A times B, of what all lanes of a warp hold of the three matrices."),
    Term("op", "DOT_BF16", "Adds products of pairs of bfloat16 to a float32."),
    Term("op", "DOT_I8", "Adds products of fours of int8 to an int32."),
    Term("op", "DOT_U8", "Adds products of fours of uint8 and int8 to an int32."),
    Term("op", "BUFFER", "What lay in memory before, or was put there."),
    Term("op", "IOTA", "0, 1, 2, …"),
    Term("op", "REDUCE_AXIS", "A sum, product, maximum or minimum over axes, which stay with size 1."),
    Term("op", "RESHAPE", "The same values in another shape."),
    Term("op", "EXPAND", "An axis of size 1 repeated, without copies."),
    Term("op", "PERMUTE", "The axes in another order: a transpose."),
    Term("op", "PAD", "Zeros around."),
    Term("op", "SHRINK", "A part."),
    Term("op", "FLIP", "Axes backwards."),
    Term("op", "WINDOW", "Sliding windows along an axis."),
    Term("op", "DIAGONAL", "Two axes walked as one."),
    Term("op", "GATHER", "Elements picked by an index."),
    Term("op", "SCATTER", "Values combined into the places that an index names."),
    Term("op", "FETCH_ADD", "The number that an index names, which is one more after each step that names it."),
    Term("op", "SCAN_AXIS", "The running result along an axis."),
    Term("op", "CONTIGUOUS", "Its values are to lie in memory, in order."),
    Term("op", "COPY", "The same values on another device."),
    Term("op", "WRITE", "A buffer with some of its places changed."),
    Term("role", "buffer", "Memory that comes from outside of what is drawn."),
    Term("role", "memory", "Reads and writes."),
    Term("role", "reduce", "Sums and other reductions, and their registers."),
    Term("role", "loop", "Loops."),
    Term("role", "alu", "Arithmetic."),
    Term("role", "movement", "Views, and what only rearranges lanes."),
    Term("role", "const", "Constants."),
    Term("role", "control", "What holds a program together."),
    Term("pass", "schedule", "Decides which LazyBuffers are computed together, and which get memory of their own."),
    Term("pass", "kernel", "All that is done for one kernel."),
    Term("pass", "optimise", "Chooses the opts: by rules of thumb, or by a search (BEAM)."),
    Term("pass", "lower", "Turns a kernel's mathematics into a graph of UOps."),
    Term("pass", "simplify", "Arithmetic that is known while compiling is done, the rest made shorter."),
    Term("pass", "work items", "On a GPU: output loops become a grid of work-groups, which share memory and barriers."),
    Term("pass", "wide vectors", "Merges lanes and a tile of whole vectors into one long vector."),
    Term(
        "pass",
        "early vectorization",
        "Neighbouring loads and stores along a vector axis become vectors, and what is computed from them.",
    ),
    Term("pass", "unroll tiles", "Writes out the steps of UPCAST axes."),
    Term("pass", "unroll reductions", "Writes out the steps of UNROLL axes, each with an accumulator."),
    Term("pass", "simplify the copies", "The same for what writing out has made."),
    Term("pass", "vectorize memory", "Loads and stores of neighbours become one of a vector."),
    Term("pass", "vectorize values", "What is done alike in every lane becomes one vector operation."),
    Term("pass", "coalesce accesses", "Scalar accesses that are neighbours in memory become one vector access."),
    Term("pass", "bool arithmetic", "Writes arithmetic on truths as logic."),
    Term("pass", "widen small floats", "Computes what is stored in 16 bits in float32."),
    Term("pass", "fp8 conversions", "Writes conversions of 8-bit floats as integer arithmetic."),
    Term("pass", "fp8 as bytes", "8-bit floats become bytes to the device."),
    Term("pass", "logistic functions", "Finds 1 / (1 + exp(x)) and its kin, and computes them in one go."),
    Term("pass", "transcendental functions", "Writes exp, log, sin and others as polynomials."),
    Term("pass", "signed dot products", "Fits signs to what the dot instruction takes."),
    Term("pass", "loop fission", "Gives a reduction a loop of its own where one loop cannot serve two."),
    Term("pass", "argmax", "Finds an extreme and its place in one loop."),
    Term("pass", "horizontal reductions", "Joins several sums over lanes into one over several vectors."),
    Term("pass", "accumulators", "Turns reductions into loops over registers."),
    Term("pass", "branches", "Does what is rare and dear only where some lane needs it."),
    Term("pass", "dot products", "Uses the machine's dot instructions."),
    Term("pass", "divisions", "Turns divisions by constants into multiplications and shifts."),
    Term("pass", "narrow comparisons", "Compares in as few bits as the values need."),
    Term("pass", "simplify the rest", "The same once more, over what is left."),
    Term("pass", "prefetch", "Puts requests for cache lines before loads."),
    Term("pass", "linearize", "Puts the graph in order: the loop program."),
    Term("pass", "interleave", "Lets copies of a computation go in step, so that the processor need not wait."),
    Term(
        "pass",
        "vector accesses",
        "On a GPU: aligned neighbours that a work-item loads or stores are one vector access.",
    ),
    Term(
        "pass",
        "double buffering",
        "On a GPU: in a loop that looks ahead, what the next step stages is loaded before this one is computed.",
    ),
    Term(
        "pass",
        "loop barriers",
        "On a GPU: no step of a loop fills shared memory that others still read; tiles share a barrier.",
    ),
    Term("pass", "render", "Writes the program as text for the compiler."),
    Term("pass", "compile", "The compiler makes machine code of it."),
    Term("pass", "list", "Texts in other languages, for the reader only: no program waits for them."),
    Term("column", "#", "The order of the schedule."),
    Term(
        "column",
        "kernel",
        "The kernel's name: E computes element by element, r reduces; the numbers are the sizes of its axes, "
        "coloured by their kind.",
    ),
    Term("column", "of", "The calls in Python that it computes."),
    Term("column", "opts", "What was applied to its loops, in order."),
    Term("column", "time", "The median of the timed runs."),
    Term("column", "GFLOP/s", "Thousand million floating-point operations a second: operations over the median."),
    Term("column", "GB/s", "Thousand million bytes a second: the bytes that must move, over the median."),
    Term("column", "FLOP", "Floating-point operations of one run."),
    Term("column", "bytes", "What must move between memory and processor at least."),
    Term("column", "compile", "What the compiler took for its program."),
    Term("column", "code", "What its machine code takes."),
    Term("column", "cache", "Whether the program was compiled, or came from a cache."),
    Term("option", "DEVICE", "Where kernels run, unless a tensor says otherwise."),
    Term("option", "NOOPT", "1: kernels stay as scheduled, without opts."),
    Term("option", "BEAM", "The width of the search for opts; 0: rules of thumb instead of a search."),
    Term("option", "repeat", "How often each kernel was timed."),
    Term("option", "target", "The machine that code is generated for: what the heuristics know of it."),
    Term("option", "TARGET", "The machine that code is generated for, by name."),
    Term("option", "THREADS", "How many threads a kernel may use; 0: one for each core."),
    Term("option", "tinyexplore", "The version that made this."),
)


def as_markdown() -> str:
    """docs/glossary.md."""
    parts = [
        "# Glossary",
        "What the words of the explorer mean; its tooltips and its Glossary panel say the same. Made from "
        "`tinyexplore/explore/glossary.py` by `python -m tinyexplore.explore.glossary`.",
    ]
    for group, title in GROUPS.items():
        rows = [f"| `{term.word}` | {term.meaning} |" for term in TERMS if term.group == group]
        parts.append("\n".join([f"## {title}", "", "| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def as_typescript() -> str:
    """widgets/src/glossary.ts: the groups, and for each its words."""
    groups = {
        group: {"title": title, "terms": {term.word: term.meaning for term in TERMS if term.group == group}}
        for group, title in GROUPS.items()
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
    """Writes the files, or with `--check` says which are not current."""
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
