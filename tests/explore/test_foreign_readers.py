"""Readers of other compilers' dumps, on the dumps recorded in notebooks/recorded."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

import pytest

from tests.support.foreign_counts import DUMPS, FOLDER, PAGE, counts, dump, is_placed, traced, with_table
from tinyexplore.explore.foreign import READERS, ForeignError, reader_of, tinygrad_versions
from tinyexplore.explore.foreign.dump import DUMP_LIMITS, Budget
from tinyexplore.explore.foreign.jax import read_hlo, read_jaxpr
from tinyexplore.explore.foreign.mlir import operations, sections
from tinyexplore.explore.foreign.tinygrad_versions import Tracking
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.model import StageText, TextLine
from tinyexplore.explore.tracefile.replay import StageReplay
from tinyexplore.explore.tracefile.trace import Trace, trace_from_bytes


def named(prefix: str) -> list[str]:
    return [name for name in DUMPS if name.startswith(prefix)]


def texts(trace: Trace, language: str) -> list[StageText]:
    return [one for one in trace.stage_texts if one.language == language]


def instructions(text: StageText) -> list[TextLine]:
    return [line for line in text.lines if line.text.startswith(" ") and not line.text.rstrip().endswith(":")]


def share(trace: Trace, lines: Sequence[TextLine]) -> float:
    return sum(is_placed(trace, line) for line in lines) / len(lines)


def test_the_recorded_dumps_are_small_and_of_every_reader() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json.gz")) < 1_000_000
    assert {reader_of(dump(name)).module for name in DUMPS} == {reader.module for reader in READERS}


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_becomes_a_valid_trace_with_a_dialect(name: str) -> None:
    trace = traced(name)
    if len(trace.nodes) < 500 and len(trace.stage_texts) < 60:  # else it takes seconds
        assert trace_from_bytes(trace_to_bytes(trace)) == trace
    assert trace.dialect is not None
    assert trace.dialect.version
    assert trace.dialect.compiler == reader_of(dump(name)).compiler or name.startswith(("triton", "xdsl"))
    assert [one.text for one in trace.messages] == []
    assert any(source.text for source in trace.sources) or name.startswith("xdsl")


# *** counts: those of the source tool ***

ASSIGNED = re.compile(r"\s+\w+(: *[^=]*)? = ")  # of FX
EQUATION = re.compile(r"\s+([a-z_]+:\S+ ?)+= [a-z]")  # of a jaxpr
INSTRUCTION = re.compile(r"\s+(ROOT )?%?[\w.\-]+ = ")  # of HLO
OPERATION = re.compile(r"\s*(%[\w:, #%-]+ = )?\"?(([a-z_]+\.)+[a-z_0-9.]+|return|call|gpu)\b")  # of MLIR


def printed(pattern: re.Pattern[str], text: str) -> int:
    """How many lines the compiler printed for operations, by a rule that no reader uses."""
    return sum(bool(pattern.match(line)) for line in text.splitlines())


def nodes_of(trace: Trace, text: StageText, without: Sequence[str]) -> int:
    """How many lines of a text the reader made nodes of."""
    return sum(bool(line.nodes) and trace.nodes[line.nodes[0]].op not in without for line in text.lines)


def is_in_order(part: Sequence[object], whole: Sequence[object]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in part)


def test_the_page_has_the_counts_of_the_recorded_dumps() -> None:
    page = PAGE.read_text("utf-8")
    assert page == with_table(page), "python -m tests.support.foreign_counts"


@pytest.mark.parametrize("name", DUMPS)
def test_operations_lead_to_lines_of_python_and_to_other_stages(name: str) -> None:
    """The required shares; for compilers that write few locations, the shares that their dumps allow."""
    found = counts(name)
    least = {"jax": 0.99, "triton": 0.98, "inductor": 1.0, "numba": 0.65}.get(name.partition("_")[0], 0.0)
    assert found.placed >= least * found.operations
    assert found.linked >= 0.5 * found.operations
    assert found.placed > 0 or name.startswith("xdsl")  # its input has no locations
    assert found.stages >= 4 and found.operations > 50


@pytest.mark.parametrize("name", named("jax"))
def test_each_text_of_jax_has_as_many_nodes_as_jax_and_xla_printed_operations(name: str) -> None:
    trace, files = traced(name), dump(name).files
    made = [(trace.stages[text.stage].name, nodes_of(trace, text, ["line"])) for text in texts(trace, "hlo")]
    snapshots = []
    for file, content in files.items():
        if match := re.search(r"/module_\d+\.[^/.]+\.(before_optimizations|\d{4}\.[^/]+)\.txt$", file):
            title = re.sub(r"^.*?\.after_(.*?)(\.before_.*)?$", r"\1", match[1]).replace("_optim", " optim")
            title = "conversion to HLO" if title == "before optimizations" else title
            snapshots.append((title, printed(INSTRUCTION, content)))
    assert is_in_order(made, snapshots) and len(snapshots) - len(made) <= 1  # one of the loop's changes nothing
    (stablehlo,), (jaxpr_text,) = texts(trace, "mlir"), texts(trace, "jaxpr")
    assert nodes_of(trace, stablehlo, ["line", "block", "module"]) == printed(OPERATION, files["stablehlo.mlir"])
    assert nodes_of(trace, jaxpr_text, ["line", "lambda"]) == printed(EQUATION, files["jaxpr.txt"])


@pytest.mark.parametrize("name", named("numba"))
def test_each_text_of_numba_has_as_many_lines_as_numba_and_llvm_printed(name: str) -> None:
    trace, files = traced(name), dump(name).files
    passes = [text for file, text in files.items() if re.fullmatch(r"numba/\d+\.txt", file)]
    statements = [nodes_of(trace, text, []) for text in texts(trace, "numba")]
    assert statements == [sum(line.startswith(" ") for line in text.splitlines()) for text in passes]
    assert [nodes_of(trace, text, []) for text in texts(trace, "bytecode")] == [len(files["bytecode.txt"].splitlines())]
    lines = [len(text.lines) for text in trace.stage_texts if text.language in ("llvm", "mir")]
    assert lines == [len(text.splitlines()) for file, text in files.items() if file.startswith("llvm/")]


@pytest.mark.parametrize("name", [*named("triton"), *named("xdsl")])
def test_each_module_of_mlir_has_as_many_nodes_as_its_compiler_printed_operations(name: str) -> None:
    trace, files = traced(name), dump(name).files
    whole = files.get("passes.txt") or files["passes.mlir"]
    modules = re.split(r"^// -----// .*\n", whole, flags=re.MULTILINE)[1:]
    shown = [text for text in trace.stage_texts if text.language in ("ttir", "ttgir", "llvmdialect", "mlir")]
    made = [nodes_of(trace, text, ["line", "block", "module"]) for text in shown]
    operations_in = [printed(OPERATION, module) for module in modules]
    assert is_in_order(made, operations_in) and made[-1] == operations_in[-1]  # others repeat the one before


@pytest.mark.parametrize("name", named("inductor"))
def test_each_graph_of_inductor_has_as_many_nodes_as_pytorch_printed_operations(name: str) -> None:
    trace = traced(name)
    log = {line.partition(";")[0].strip() for line in dump(name).files["torch_trace.log"].splitlines()}
    for text in texts(trace, "fx"):
        lines = [line.text for line in text.lines]
        assert {line.partition(";")[0].strip() for line in lines} <= log
        made = nodes_of(trace, text, ["line", "placeholder", "output"])
        assert made == printed(ASSIGNED, "\n".join(lines)) > 0


@pytest.mark.parametrize("name", named("tinygrad"))
def test_every_rewrite_of_tinygrad_replays_to_its_own_graph(name: str) -> None:
    recorded = dump(name)
    trace = traced(name)
    around = {stage.parent for stage in trace.stages}
    found = []
    for stage in trace.stages:
        if stage.id not in around:
            replay = StageReplay(trace, stage.id)
            graphs = [replay.graph_at(step, marked=False) for step in (0, replay.count)]
            found.append([stage.name, *(len(graph.nodes) for graph in graphs)])
    assert found == json.loads(recorded.files["own_graphs.json"])


def test_tinygrad_is_read_in_its_earlier_versions_too() -> None:
    """Before 0.11 it noted UOps, later their numbers; only from 0.12 on its graphs have the source code."""
    versions = {dump(name).version: traced(name) for name in named("tinygrad")}
    assert sorted(versions) == ["0.10.3", "0.12.0", "0.14.0"]
    assert {version: bool(trace.programs) for version, trace in versions.items()} == {
        "0.10.3": False,
        "0.12.0": True,
        "0.14.0": True,
    }
    for trace in versions.values():
        assert trace.kernels and len(trace.rules) > 30
        assert any(node.user is not None and node.calls for node in trace.nodes)


def test_a_version_of_tinygrad_without_notes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tinygrad_versions.metadata, "version", lambda name: "0.9.2")
    package, ops = ModuleType("tinygrad"), ModuleType("tinygrad.ops")
    for name, module in (("tinygrad", package), ("tinygrad.ops", ops)):
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ForeignError, match=r"tinygrad 0\.9\.2 .* 0\.10\.3 and later"):
        Tracking()
    monkeypatch.delitem(sys.modules, "tinygrad.ops")
    with pytest.raises(ForeignError, match=r"tinygrad 0\.9\.2"):
        Tracking()


def test_tinygrads_rules_have_text_and_place_and_kernels_have_their_source() -> None:
    trace = traced("tinygrad_softmax_of_product")
    assert len(trace.rules) > 60
    assert all(rule.text and rule.line and rule.file.startswith("tinygrad/") for rule in trace.rules)
    assert [program.language for program in trace.programs] == ["c"] * 4
    assert all(any("for (" in line.text for line in program.lines) for program in trace.programs)
    calls = {call for node in trace.nodes for call in node.calls}
    assert {"softmax", "__matmul__"} <= calls or {"softmax", "matmul"} <= calls
    lines = {trace.frames[node.user].line for node in trace.nodes if node.user is not None}
    assert lines == {8, 9}


@pytest.mark.parametrize("name", named("jax"))
def test_instructions_of_jax_lead_to_the_users_lines(name: str) -> None:
    trace = traced(name)
    for language in ("jaxpr", "mlir", "hlo"):
        lines = [
            line
            for text in texts(trace, language)
            for line in text.lines
            if line.nodes and trace.nodes[line.nodes[0]].op not in ("parameter", "lambda", "module", "func.func")
        ]
        assert share(trace, lines) >= 0.9, language
    for language in ("llvm", "asm"):
        lines = [line for text in texts(trace, language) for line in instructions(text)]
        assert share(trace, lines) >= 0.9, language


def test_a_softmax_in_jax_is_traced_from_the_jaxpr_to_assembly() -> None:
    trace = traced("jax_softmax_of_product")
    languages = list(dict.fromkeys(text.language for text in trace.stage_texts))
    assert languages == ["jaxpr", "mlir", "hlo", "buffers", "llvm", "asm"]
    passes = [trace.stages[text.stage].name for text in texts(trace, "hlo")]
    assert {"conversion to HLO", "algsimp", "fusion"} <= set(passes)
    assert [kernel.name for kernel in trace.kernels] == [
        "add_reduce_fusion",
        "broadcast_multiply_fusion",
        "reduce_divide_fusion",
        "subtract_exponential_fusion",
    ]
    assert [(program.kernel, program.language) for program in trace.programs] == [(at, "asm") for at in range(4)]
    spans = [frame.span for frame in trace.frames if frame.span]
    source = trace.sources[trace.frames[0].source].text.splitlines()
    line, start, _, end = next(span for span in spans if source[span[0] - 1][span[1] : span[3]] == "x @ w")
    assert source[line - 1][start:end] == "x @ w"


def test_a_fusion_of_xla_has_the_operations_of_its_computation_as_sources() -> None:
    trace = traced("jax_softmax_of_product")
    fusions = [node for node in trace.nodes if node.op == "fusion"]
    assert fusions
    assert all(trace.nodes[node.src[-1]].op not in ("parameter", "fusion") for node in fusions)
    assert {region.name for region in trace.regions} >= {"fused_computation", "main.3"}


@pytest.mark.parametrize("name", named("jax"))
def test_each_kernel_of_xla_has_the_graph_of_its_computation(name: str) -> None:
    """Of the instructions that it fused, without those that compute its operands."""
    trace = traced(name)
    for kernel in trace.kernels:
        stage = next(one for one in trace.stages if one.kernel == kernel.id)
        region = next(one for one in trace.regions if set(stage.after) <= set(one.nodes))
        assert stage.after and region.name != "main"
        texts_of = [text for text in trace.stage_texts if trace.stages[text.stage].kernel == kernel.id]
        assert texts_of and all(set(stage.after) <= set(line.nodes) for text in texts_of for line in text.lines)


@pytest.mark.parametrize("name", named("numba"))
def test_numba_is_traced_from_bytecode_through_llvms_passes_to_assembly(name: str) -> None:
    trace = traced(name)
    languages = list(dict.fromkeys(text.language for text in trace.stage_texts))
    assert languages == ["bytecode", "numba", "llvm", "mir", "asm"]
    names = [trace.stages[text.stage].name for text in texts(trace, "numba")]
    assert {"translate_bytecode", "reconstruct_ssa", "ir_legalization"} <= set(names)
    assert len(texts(trace, "llvm")) + len(texts(trace, "mir")) > 20
    for language in ("bytecode", "numba"):
        lines = [line for text in texts(trace, language) for line in text.lines if line.text.startswith(" ")]
        assert share(trace, lines) == 1.0
    for language, least in (("llvm", 0.5), ("mir", 0.5), ("asm", 0.7)):  # Numba gives its own code no line
        lines = [line for text in texts(trace, language) for line in instructions(text)]
        assert share(trace, lines) >= least, language


@pytest.mark.parametrize("name", named("triton"))
def test_operations_of_triton_have_locations(name: str) -> None:
    recorded = dump(name)
    trace = traced(name)
    printed = list(sections(recorded.files["passes.txt"]))
    assert len(printed) == recorded.files["passes.txt"].count("// -----// ")  # all of them parse
    own = [one for section in printed for one in operations(section.text, Budget(DUMP_LIMITS)) if one.op]
    own = [one for one in own if one.op not in ("module", "block")]
    assert sum(one.place is not None for one in own) / len(own) >= 0.93  # before they follow their origin
    lines = [
        line
        for text in trace.stage_texts
        if text.language in ("ttir", "ttgir", "llvmdialect")
        for line in text.lines
        if line.nodes and trace.nodes[line.nodes[0]].op not in ("module", "block")
    ]
    assert share(trace, lines) >= 0.95
    languages = list(dict.fromkeys(text.language for text in trace.stage_texts))
    assert languages == ["ttir", "ttgir", "llvmdialect", "llir", "ptx"]


def test_patterns_that_fired_in_xdsl_are_steps_with_their_place() -> None:
    trace = traced("xdsl_product")
    steps = {stage.name: [step.rule for step in stage.steps] for stage in trace.stages if stage.steps}
    assert {name: len(rules) for name, rules in steps.items()} == {
        "convert-linalg-to-loops": 1,
        "convert-scf-to-cf": 3,
        "canonicalize": 3,
    }
    assert steps["canonicalize"].pop() is None  # operations that nothing uses are gone, without a pattern
    assert all(rule is not None for rules in steps.values() for rule in rules)
    assert {rule.name for rule in trace.rules} >= {"convert_scf_to_cf.py:96"}
    for stage in trace.stages:
        if stage.steps:
            graph = StageReplay(trace, stage.id).graph_at(len(stage.steps))
            assert tuple(graph.nodes[root].node for root in graph.root) == stage.after


def test_inductors_graphs_lead_to_python_and_its_code_to_the_nodes() -> None:
    trace = traced("inductor_softmax_of_product")
    assert [trace.stages[text.stage].name for text in trace.stage_texts] == [
        "Dynamo",
        "joint graph",
        "forward graph",
        "backward graph",
        "post-grad passes (forward)",
        "code (forward)",
        "post-grad passes (backward)",
        "code (backward)",
    ]
    operations_of = [
        line
        for text in texts(trace, "fx")
        for line in text.lines
        if line.nodes and trace.nodes[line.nodes[0]].op not in ("placeholder", "output")
    ]
    assert share(trace, operations_of) == 1.0
    (forward,) = [program for program in trace.programs if "max" in trace.kernels[program.kernel].name][:1]
    computed = {trace.nodes[node].op for line in forward.lines for node in line.nodes}
    assert computed == {"amax", "add", "exp", "sub", "sum", "div"}
    before = {node.id for node in trace.nodes if node.op == "@"}
    after = {node.id for node in trace.nodes if node.op == "mm"}
    assert any(link.how == "Inductor" and link.src in before and link.dst in after for link in trace.links)


def test_the_type_of_an_operation_of_mlir_ends_where_its_text_closes() -> None:
    lines = {
        "  cf.cond_br %6, ^bb2(%3 : index), ^bb7": "index",
        "  %5 = scf.for %i = %a to %b step %c : i32 {": "i32",
        "  %1 = arith.addi %0, %0 : i64": "i64",
        "  %2 = func.call @f(%1) : (i64) -> (i32, i32)": "(i32, i32)",
        "  %3 = tt.load %2 : tensor<16x!tt.ptr<f32>>": "!tt.ptr<f32>",
    }
    (*made,) = (one.dtype for one in operations("\n".join(lines), Budget(DUMP_LIMITS)))
    assert made == list(lines.values())
    assert not any(re.search("[){}]$", node.dtype) for name in named("triton") for node in traced(name).nodes)


@pytest.mark.parametrize("parse", [lambda text: list(read_hlo(text)), lambda text: list(read_jaxpr(text))])
def test_parsers_preserve_the_text_of_unknown_lines(parse: Callable[[str], list[object]]) -> None:
    parse("HloModule m\n\n%f (a: f32[]) -> f32[] {\n  what is this\n}\n")
    parse("{ lambda ; a:f32[] . let\n    ?? = !!\n  in () }")
