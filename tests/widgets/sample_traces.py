"""Hand-made traces for the tests of the front end: every kind of stage, listing and message, without an engine.

`python tests/widgets/sample_traces.py PAGE.html` writes the sample as a page of the standalone viewer.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tinyexplore.explore.exports.html_export import chunk_scripts
from tinyexplore.explore.tracefile.derived_tables import with_derived_tables
from tinyexplore.explore.tracefile.model import (
    TRACE_VERSION,
    BufferInfo,
    Decision,
    Frame,
    KernelInfo,
    Line,
    Link,
    Message,
    Node,
    OptEffect,
    OptStep,
    Program,
    RuleInfo,
    Run,
    Source,
    Stage,
    Step,
)
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.widgets.front_end import bundle

OPT_LAWS = (
    OptEffect(
        0,
        "THREAD",
        "Divides the steps of the outermost output axis among the cores",
        "for i in 0..64: ...",
        "for i in start..stop: ...",
    ),
    OptEffect(
        1,
        "VECTOR",
        "Computes `amount` neighboring steps in the lanes of one vector instruction",
        "for i in 0..64: out[i] = f(i)",
        "for i in 0..4: out[16*i .. 16*i+15] = f(16*i .. 16*i+15)",
    ),
    OptEffect(
        2,
        "UPCAST",
        "Unrolls `amount` steps of an output axis (register tile), so that shared values are computed once",
        "for i in 0..64: out[i] = f(i)",
        "for i in 0..16: out[4*i] = f(4*i); ...; out[4*i+3] = f(4*i+3)",
    ),
)

PYTHON_TEXT = '''from tinyexplore import Tensor

def head(x, w, b):
    """Class probabilities of a batch of rows."""
    logits = x @ w + b  # one kernel: the sum runs over 48
    return logits.softmax(-1)

x = Tensor.rand(64, 48)
w, b = Tensor.rand(48, 32), Tensor.rand(32)
y = head(x, w, b)
'''

GROUPS = {
    **dict.fromkeys(("LOAD", "STORE", "INDEX"), "memory"),
    **dict.fromkeys(("REDUCE", "REDUCE_AXIS", "DEFINE_ACC", "ASSIGN", "RESULT"), "reduce"),
    **dict.fromkeys(("RANGE", "ENDRANGE"), "loop"),
    **dict.fromkeys(("RESHAPE", "EXPAND", "PERMUTE"), "movement"),
    **dict.fromkeys(("BUFFER", "DEFINE_GLOBAL"), "buffer"),
    "CONST": "const",
    "SINK": "control",
}
RuleFunction = Callable[["TraceBuilder", Node], "int | None"]


class TraceBuilder:
    """Collects the parts of a trace; equal UOps are one node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.stages: list[Stage] = []
        self.links: list[Link] = []
        self.rules: list[RuleInfo] = []
        self.clock = 0.0
        self._uops: dict[tuple, int] = {}

    def lazy(self, op: str, *src: int, shape: tuple[int, ...], detail: str = "", user: int | None = None) -> int:
        detail = detail or "×".join(map(str, shape))
        return self._add("lazybuffer", op, src, "float32", shape, detail, user, op, detail)

    def uop(self, op: str, *src: int, dtype: str = "float32", arg: str = "", label: str = "", detail: str = "") -> int:
        key = (op, src, dtype, arg)
        if key not in self._uops:
            said = detail or dtype
            self._uops[key] = self._add("uop", op, src, dtype, None, arg, None, label or op, said)
        return self._uops[key]

    def const(self, value: object, dtype: str = "int64") -> int:
        return self.uop("CONST", dtype=dtype, arg=str(value), detail=str(value))

    def _add(self, kind: str, op: str, src, dtype, shape, arg, user, label, detail) -> int:
        digest = hashlib.sha1(repr((op, [self.nodes[i].digest for i in src], dtype, arg)).encode()).hexdigest()[:12]
        group = GROUPS.get(op, "alu")
        self.nodes.append(
            Node(len(self.nodes), kind, op, tuple(src), dtype, shape, arg, digest, user, label, detail, group)
        )
        return len(self.nodes) - 1

    def rule(self, name: str, law: str, doc: str, file: str, line: int, text: str) -> int:
        self.rules.append(RuleInfo(len(self.rules), name, law, doc, file, line, text))
        return len(self.rules) - 1

    def stage(
        self, name: str, parent: int | None = None, kernel: int | None = None, took: float = 40.0, **parts
    ) -> int:
        stage = Stage(len(self.stages), name, parent, kernel, (), (), self.clock, took, (), (), ())
        self.stages.append(dataclasses.replace(stage, **parts))
        self.clock += took
        return stage.id

    def link(self, src: int, dst: int, how: str, stage: int | None) -> None:
        self.links.append(Link(src, dst, how, stage))

    def rewrite(self, name: str, root: int, rules: dict[int, RuleFunction], parent: int, kernel: int) -> int:
        """A rewrite stage: bottom-up, every node until no rule fires; steps and links as the engine records them."""
        stage = len(self.stages)
        steps: list[Step] = []
        done: dict[int, int] = {}

        def step(rule: int | None, before: int, after: int) -> None:
            steps.append(Step(rule, before, after, 1.5 * len(steps)))
            self.link(before, after, "rebuild" if rule is None else "rewrite", stage)

        def visit(node_id: int) -> int:
            if node_id in done:
                return done[node_id]
            node = self.nodes[node_id]
            src = tuple(visit(source) for source in node.src)
            current = node_id
            if src != node.src:
                current = self.uop(node.op, *src, dtype=node.dtype, arg=node.arg, label=node.label, detail=node.detail)
                step(None, node_id, current)
            for rule, function in rules.items():
                known = len(self.nodes)
                after = function(self, self.nodes[current])
                if after is not None:
                    step(rule, current, after)
                    for made in range(known, len(self.nodes)):
                        if made != after:
                            self.link(current, made, "rewrite", stage)
                    current = visit(after)
                    break
            done[node_id] = current
            return current

        after = visit(root)
        took = 12.0 + 3.5 * len(steps)
        self.stage(name, parent, kernel, took, before=(root,), after=(after,), steps=tuple(steps))
        return after


def _is_const(builder: TraceBuilder, node: int, value: str) -> bool:
    return builder.nodes[node].op == "CONST" and builder.nodes[node].arg == value


def mul_one(builder: TraceBuilder, node: Node) -> int | None:
    return node.src[0] if node.op == "MUL" and _is_const(builder, node.src[1], "1") else None


def add_zero(builder: TraceBuilder, node: Node) -> int | None:
    return node.src[0] if node.op == "ADD" and _is_const(builder, node.src[1], "0") else None


def fold_mul(builder: TraceBuilder, node: Node) -> int | None:
    if node.op != "MUL" or any(builder.nodes[src].op != "CONST" for src in node.src):
        return None
    left, right = (int(builder.nodes[src].arg) for src in node.src)
    return builder.const(left * right)


def mul_add(builder: TraceBuilder, node: Node) -> int | None:
    if node.op != "ADD" or not node.dtype.startswith("float"):
        return None
    for position in (0, 1):
        product, other = builder.nodes[node.src[position]], node.src[1 - position]
        if product.op == "MUL":
            return builder.uop("MULACC", *product.src, other, dtype=node.dtype)
    return None


def reduce_to_loop(builder: TraceBuilder, node: Node) -> int | None:
    if node.op != "REDUCE":
        return None
    value, axis = node.src
    zero = builder.const(0.0, node.dtype)
    accumulator = builder.uop("DEFINE_ACC", zero, dtype=node.dtype, arg="0", label="acc0")
    added = builder.uop("ADD", accumulator, value, dtype=node.dtype)
    assign = builder.uop("ASSIGN", accumulator, added, dtype=node.dtype, detail="acc0 = acc0 + …")
    return builder.uop("RESULT", accumulator, assign, axis, dtype=node.dtype, detail="acc0")


def sample_trace() -> Trace:
    """`(x @ w + b).softmax(-1)`: two kernels, one of them with every listing; an opt, decisions, a warning."""
    builder = TraceBuilder()
    frames = tuple(
        Frame(i, 0, line, where)
        for i, (line, where) in enumerate([(5, "head"), (6, "head"), (8, "<module>"), (9, "<module>")])
    )
    matmul_line, softmax_line, x_line, w_line = range(4)
    x = builder.lazy("BUFFER", shape=(64, 48), detail="float32 64×48 on LLVM", user=x_line)
    w = builder.lazy("BUFFER", shape=(48, 32), detail="float32 48×32 on LLVM", user=w_line)
    b = builder.lazy("BUFFER", shape=(32,), detail="float32 32 on LLVM", user=w_line)
    x2 = builder.lazy(
        "EXPAND", builder.lazy("RESHAPE", x, shape=(64, 1, 48), user=matmul_line), shape=(64, 32, 48), user=matmul_line
    )
    w2 = builder.lazy(
        "EXPAND",
        builder.lazy("PERMUTE", w, shape=(32, 48), detail="(1, 0) → 32×48", user=matmul_line),
        shape=(64, 32, 48),
        user=matmul_line,
    )
    product = builder.lazy("MUL", x2, w2, shape=(64, 32, 48), user=matmul_line)
    total = builder.lazy("REDUCE_AXIS", product, shape=(64, 32, 1), detail="ADD over 2 → 64×32×1", user=matmul_line)
    flat = builder.lazy("RESHAPE", total, shape=(64, 32), user=matmul_line)
    logits = builder.lazy(
        "ADD", flat, builder.lazy("EXPAND", b, shape=(64, 32), user=matmul_line), shape=(64, 32), user=matmul_line
    )
    top = builder.lazy("REDUCE_AXIS", logits, shape=(64, 1), detail="MAX over 1 → 64×1", user=softmax_line)
    shifted = builder.lazy(
        "ADD",
        logits,
        builder.lazy(
            "NEG", builder.lazy("EXPAND", top, shape=(64, 32), user=softmax_line), shape=(64, 32), user=softmax_line
        ),
        shape=(64, 32),
        user=softmax_line,
    )
    power = builder.lazy("EXP", shifted, shape=(64, 32), user=softmax_line)
    norm = builder.lazy("REDUCE_AXIS", power, shape=(64, 1), detail="ADD over 1 → 64×1", user=softmax_line)
    answer = builder.lazy(
        "FDIV",
        power,
        builder.lazy("EXPAND", norm, shape=(64, 32), user=softmax_line),
        shape=(64, 32),
        user=softmax_line,
    )
    builder.stage(
        "schedule",
        took=180,
        before=(answer,),
        after=(answer,),
        decisions=(
            Decision(x, "realize", "it is a buffer already: it lies in memory"),
            Decision(product, "fuse", "only the sum uses it, element by element: it never needs memory"),
            Decision(total, "fuse", "a reduction; the bias is added in the same kernel, after the loop"),
            Decision(
                logits,
                "realize",
                "two users (the row's maximum and the shift) need it whole, and its sum over 48 "
                "terms would be computed twice",
            ),
            Decision(top, "fuse", "the row's maximum is a loop inside the softmax kernel"),
            Decision(norm, "fuse", "the row's sum is a loop inside the softmax kernel"),
            Decision(power, "duplicate", "cheap: computed once for the sum and once for the quotient"),
            Decision(answer, "realize", "it is what was asked for"),
        ),
    )
    compile_stage = builder.stage("compile kernel", kernel=0, took=900)
    rules = _rules(builder)
    sink = _matmul_ast(
        builder, {"x": x2, "w": w2, "b": b, "product": product, "total": total, "logits": logits}, compile_stage
    )
    builder.stage(
        "optimize",
        compile_stage,
        0,
        55,
        before=(sink,),
        after=(sink,),
        opts=(
            OptStep("THREAD 0", True, "64 rows, 2 threads: the outermost axis is divided", (0,)),
            OptStep("VECTOR 1 by 8", True, "w is read along its rows: 8 neighbors in one load", (1,)),
            OptStep("UPCAST 0 by 3", False, "axis 0 has size 64, which 3 does not divide; choose 2, 4 or 8", (2,)),
        ),
    )
    sink = builder.rewrite(
        "simplify",
        sink,
        {rules["mul_one"]: mul_one, rules["add_zero"]: add_zero, rules["fold_mul"]: fold_mul},
        compile_stage,
        0,
    )
    sink = builder.rewrite("strength of divisions", sink, {}, compile_stage, 0)
    sink = builder.rewrite("reduce to loop", sink, {rules["reduce_to_loop"]: reduce_to_loop}, compile_stage, 0)
    sink = builder.rewrite("multiply-add", sink, {rules["mul_add"]: mul_add}, compile_stage, 0)
    linear = _linear(builder, sink)
    builder.stage("linearize", compile_stage, 0, 25, before=(sink,), after=linear)
    builder.stage("render", compile_stage, 0, 95)
    builder.stage("compile", compile_stage, 0, 17_400)
    builder.stage("run", None, None, 38)
    return Trace(
        version=TRACE_VERSION,
        title="(x @ w + b).softmax(-1)",
        options=(("device", "LLVM"), ("cpu", "znver4"), ("threads", "2"), ("NOOPT", "0"), ("BEAM", "0")),
        sources=(Source(0, "cell 3", PYTHON_TEXT),),
        frames=frames,
        nodes=tuple(builder.nodes),
        rules=tuple(builder.rules),
        laws=OPT_LAWS,
        stages=tuple(builder.stages),
        links=tuple(builder.links),
        kernels=(
            KernelInfo(
                0,
                "r_64_32_48",
                "LLVM",
                (logits,),
                (x2, w2, product, total, flat, logits),
                (3, 0, 1, 2),
                ("THREAD 0", "VECTOR 1 by 8"),
                (("t0", "thread", 64), ("g1", "vector", 32), ("r2", "reduce", 48)),
                198_656,
                26_752,
                17_400.0,
                False,
                None,
            ),
            KernelInfo(
                1,
                "softmax_64_32",
                "LLVM",
                (answer,),
                (top, shifted, power, norm, answer),
                (4, 3),
                (),
                (("g0", "global", 64), ("r1", "reduce", 32)),
                14_336,
                16_384,
                9_100.0,
                True,
                None,
            ),
        ),
        programs=_programs(builder, linear),
        runs=(
            Run(0, 0, tuple(11.4 + 0.1 * (i % 9) for i in range(50)), 11.8, 11.5, 12.1),
            Run(1, 1, tuple(6.0 + 0.1 * (i % 5) for i in range(50)), 6.2, 6.1, 6.3),
        ),
        buffers=(
            BufferInfo(0, "LLVM", "float32", 3072, 12_288, 20.0, None),
            BufferInfo(1, "LLVM", "float32", 1536, 6_144, 31.0, None),
            BufferInfo(2, "LLVM", "float32", 32, 128, 40.0, None),
            BufferInfo(3, "LLVM", "float32", 2048, 8_192, 18_500.0, 18_960.0),
            BufferInfo(4, "LLVM", "float32", 2048, 8_192, 18_700.0, None),
        ),
        messages=(
            Message(
                "warning",
                "The kernel softmax_64_32 came from the disk cache: its passes were not recorded.",
                softmax_line,
            ),
        ),
    )


def _rules(builder: TraceBuilder) -> dict[str, int]:
    return {
        "mul_one": builder.rule(
            "mul_one", "x * 1  →  x", "One is neutral.", "uop/algebra.py", 41, 'mul_one = law("mul_one", x * 1, x)'
        ),
        "add_zero": builder.rule(
            "add_zero",
            "x + 0  →  x",
            "Zero is neutral; on floats only where -0.0 cannot be.",
            "uop/algebra.py",
            37,
            'add_zero = law("add_zero", x + 0, x)',
        ),
        "fold_mul": builder.rule(
            "fold_mul",
            "c1 * c2  →  c",
            "Two constants multiply at compile time.",
            "uop/algebra.py",
            62,
            "@rule(c1 * c2)\ndef fold_mul(c1, c2):\n    return const(c1.arg * c2.arg)",
        ),
        "reduce_to_loop": builder.rule(
            "reduce_to_loop",
            "REDUCE(x, r)  →  acc after: acc = acc + x",
            "A reduction is an accumulator and a loop.",
            "codegen/rewrites/accumulators.py",
            88,
            "@rule(UPat(Ops.REDUCE))\ndef reduce_to_loop(reduce, ctx): ...",
        ),
        "mul_add": builder.rule(
            "mul_add_to_mulacc",
            "x * y + z  →  mulacc(x, y, z)",
            "One rounding instead of two where the target has a fused multiply-add.",
            "codegen/rewrites/simplify.py",
            48,
            'mul_add_to_mulacc = law("mul_add_to_mulacc", x * y + z, mulacc(x, y, z))',
        ),
    }


def _matmul_ast(builder: TraceBuilder, lazy: dict[str, int], stage: int) -> int:
    u, c = builder.uop, builder.const

    def axis(name: str, size: int, kind: str) -> int:
        return u("RANGE", c(size), dtype="int64", arg=f"{name} {kind}", detail=f"{name} < {size} · {kind}")

    def read(position: int, size: int, index: int, text: str) -> int:
        pointer = u(
            "DEFINE_GLOBAL", dtype="float32*", arg=str(position), label=f"data{position}", detail=f"float32[{size}]"
        )
        place = u("INDEX", pointer, index, dtype="float32*", detail=f"data{position}[{text}]")
        return u("LOAD", place, detail=f"data{position}[{text}]") if position else place

    def add(left: int, right: int) -> int:
        return u("ADD", left, right, dtype="int64")

    def mul(left: int, right: int) -> int:
        return u("MUL", left, right, dtype="int64")

    row, column, inner = axis("t0", 64, "thread"), axis("g1", 32, "vector"), axis("r2", 48, "reduce")
    x = read(1, 3072, add(mul(row, mul(c(6), c(8))), mul(inner, c(1))), "t0*48 + r2")
    w = read(2, 1536, add(mul(inner, c(32)), mul(column, c(1))), "r2*32 + g1")
    b = read(3, 32, add(column, c(0)), "g1")
    product = u("MUL", x, w)
    total = u("REDUCE", product, inner, arg="ADD", label="REDUCE ADD", detail="over r2")
    logits = u("ADD", total, b)
    place = read(0, 2048, add(mul(row, c(32)), add(column, c(0))), "t0*32 + g1")
    store = u("STORE", place, logits, dtype="", detail="data0[t0*32 + g1]")
    for key, node in {"x": x, "w": w, "b": b, "product": product, "total": total, "logits": logits}.items():
        builder.link(lazy[key], node, "lowered to a kernel", stage)
    builder.link(lazy["logits"], store, "realized by", stage)
    return u("SINK", store, dtype="", detail="1 store")


def _linear(builder: TraceBuilder, sink: int) -> list[int]:
    order: list[int] = []

    def visit(node: int) -> None:
        if node in order:
            return
        for src in builder.nodes[node].src:
            visit(src)
        order.append(node)

    visit(sink)
    return order[:-1]


def _programs(builder: TraceBuilder, linear: list[int]) -> tuple[Program, ...]:
    at = {node: position for position, node in enumerate(linear)}
    uops = []
    for node_id in linear:
        node = builder.nodes[node_id]
        sources = ", ".join(f"%{at[src]}" for src in node.src)
        arg = f" {node.arg}" if node.arg else ""
        uops.append(Line(f"{at[node_id]:>2}  %{at[node_id]} = {node.op}{arg} {sources} : {node.dtype}", (node_id,)))

    def named(op: str, text: str = "") -> tuple[int, ...]:
        return tuple(i for i in linear if builder.nodes[i].op == op and text in builder.nodes[i].detail)

    row, column, inner = named("RANGE", "t0"), named("RANGE", "g1"), named("RANGE", "r2")
    accumulator, multiply, store = named("DEFINE_ACC"), named("MULACC"), named("STORE")
    x, w, b, plus = named("LOAD", "data1"), named("LOAD", "data2"), named("LOAD", "data3"), named("ADD", "float32")
    c = [
        ("void r_64_32_48(float* restrict data0, const float* restrict data1, const float* restrict data2,", ()),
        ("                const float* restrict data3, long start, long stop) {", ()),
        ("  for (long t0 = start; t0 < stop; t0++) {", row),
        ("    for (long g1 = 0; g1 < 32; g1 += 8) {", column),
        ("      float8 acc0 = {0.0f};", accumulator),
        ("      for (long r2 = 0; r2 < 48; r2++) {", inner),
        ("        float val0 = data1[t0*48 + r2];", x),
        ("        float8 val1 = *(float8*)(data2 + r2*32 + g1);", w),
        ("        acc0 = val0 * val1 + acc0;  // fused", multiply),
        ("      }", inner),
        ("      float8 val2 = *(float8*)(data3 + g1);", b),
        ("      float8 alu0 = acc0 + val2;", plus),
        ("      *(float8*)(data0 + t0*32 + g1) = alu0;", store),
        ("    }", column),
        ("  }", row),
        ("}", ()),
    ]
    llvm = [
        ("define void @r_64_32_48(ptr noalias %data0, ptr noalias %data1, ptr noalias %data2, i64 %start) #0 {", ()),
        ("loop_t0:", row),
        ("  %t0 = phi i64 [ %start, %entry ], [ %t0.next, %latch_t0 ]", row),
        ("loop_r2:", inner),
        ("  %acc0 = phi <8 x float> [ zeroinitializer, %loop_g1 ], [ %v9, %loop_r2 ]", accumulator),
        ("  %p1 = getelementptr inbounds float, ptr %data1, i64 %v4", x),
        ("  %v5 = load float, ptr %p1, align 4", x),
        ("  %v7 = load <8 x float>, ptr %p2, align 4", w),
        (
            "  %v9 = call fast <8 x float> @llvm.fma.v8f32(<8 x float> %v8, <8 x float> %v7, <8 x float> %acc0)",
            multiply,
        ),
        ("  br i1 %done_r2, label %exit_r2, label %loop_r2", inner),
        ("  %v12 = fadd <8 x float> %acc0.out, %v11", plus),
        ("  store <8 x float> %v12, ptr %p0, align 4", store),
        ("  ret void", ()),
    ]
    asm = [
        ("r_64_32_48:", ()),
        ("\tvxorps\tymm0, ymm0, ymm0", accumulator),
        (".LBB0_3:", inner),
        ("\tvbroadcastss\tymm1, dword ptr [rsi + 4*rcx]", x),
        ("\tvfmadd231ps\tymm0, ymm1, ymmword ptr [rdx]", multiply + w),
        ("\tinc\trcx", inner),
        ("\tsub\trdx, -128", inner),
        ("\tcmp\trcx, 48", inner),
        ("\tjne\t.LBB0_3", inner),
        ("\tvaddps\tymm0, ymm0, ymmword ptr [r8]  # bias", plus + b),
        ("\tvmovups\tymmword ptr [rdi + 4*rax], ymm0", store),
        ("\tjne\t.LBB0_2", column),
        ("\tvzeroupper", ()),
        ("\tret", ()),
    ]
    listings = {"c": c, "llvm": llvm, "llvm-opt": llvm[3:], "asm": asm}
    programs = [Program(0, 0, "uops", tuple(uops))]
    for language, lines in listings.items():
        programs.append(Program(len(programs), 0, language, tuple(Line(text, nodes) for text, nodes in lines)))
    programs.append(
        Program(len(programs), 1, "c", (Line("void softmax_64_32(float* restrict data0) {", ()), Line("}", ())))
    )
    return tuple(programs)


def big_trace(nodes: int) -> Trace:
    """One pass over a graph of about `nodes` UOps: chains of additions over loads, in which every tenth adds zero."""
    builder = TraceBuilder()
    rule = _rules(builder)["add_zero"]
    zero = builder.const(0, "float32")
    chains = []
    while len(builder.nodes) < nodes:
        pointer = builder.uop("DEFINE_GLOBAL", dtype="float32*", arg=str(len(chains)), label=f"data{len(chains)}")
        value = builder.uop("LOAD", pointer, detail=f"data{len(chains)}[0]")
        for position in range(18):
            other = zero if position % 10 == 0 else chains[-1] if chains and position % 6 == 1 else pointer
            value = builder.uop(("ADD", "MUL", "MAX")[position % 3 if other != zero else 0], value, other)
        chains.append(value)
    root = builder.uop("SINK", *chains, dtype="", detail=f"{len(chains)} stores")
    builder.stage("compile kernel", kernel=0)
    builder.rewrite("simplify", root, {rule: add_zero}, 0, 0)
    kernel = KernelInfo(0, "big", "LLVM", (), (), (), (), (), 1, 1, 1.0, False, None)
    return Trace(
        TRACE_VERSION,
        f"{len(builder.nodes)} nodes",
        (),
        (),
        (),
        tuple(builder.nodes),
        tuple(builder.rules),
        tuple(builder.stages),
        tuple(builder.links),
        (kernel,),
        (),
        (),
        (),
        (),
    )


def unrolled_trace(copies: int) -> Trace:
    """One kernel that adds two buffers, its loop written out `copies` times."""
    builder = TraceBuilder()
    pointers = [
        builder.uop("DEFINE_GLOBAL", dtype="float32*", arg=str(position), label=f"data{position}")
        for position in range(3)
    ]
    stores = []
    for copy in range(copies):
        places = [builder.uop("INDEX", pointer, builder.const(copy), dtype="float32*") for pointer in pointers]
        loads = [builder.uop("LOAD", place, detail=f"[{copy}]") for place in places[1:]]
        stores.append(builder.uop("STORE", places[0], builder.uop("ADD", *loads), dtype="", detail=f"data0[{copy}]"))
    root = builder.uop("SINK", *stores, dtype="", detail=f"{copies} stores")
    builder.stage("lower", kernel=0, before=(root,), after=(root,))
    kernel = KernelInfo(0, "unrolled", "LLVM", (), (), (), (), (), 1, 1, 1.0, False, None)
    return Trace(
        TRACE_VERSION,
        "unrolled",
        (),
        (),
        (),
        tuple(builder.nodes),
        (),
        tuple(builder.stages),
        (),
        (kernel,),
        (),
        (),
        (),
        (),
    )


def gzipped(trace: Trace) -> bytes:
    """The trace as the widget's payload: JSON, gzipped, the same bytes every time."""
    text = json.dumps(dataclasses.asdict(with_derived_tables(trace)), separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def page(trace: Trace) -> str:
    """A page of the standalone viewer with this trace in it."""
    script = bundle("standalone.js").replace("</script", "<\\/script")
    data = base64.b64encode(gzipped(trace)).decode()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>trace</title>'
        '<meta name="viewport" content="width=device-width"></head><body><div id="explorer"></div>'
        f'<script type="application/octet-stream+base64" id="trace">{data}</script>{chunk_scripts()}'
        f"<script>{script}</script>"
        "</body></html>"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(sample_trace()), encoding="utf-8")
