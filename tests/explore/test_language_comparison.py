"""The language comparison: a kernel in several languages, its lines aligned by the nodes of its AST."""

from __future__ import annotations

import json

import pytest

from tinyexplore import Tensor
from tinyexplore.explore import Explorer, LanguageComparison, LanguageError, explore
from tinyexplore.explore.analysis.comparisons.language_comparison import LanguageLine, align_lines
from tinyexplore.explore.analysis.comparisons.languages import COMPARED_LANGUAGES, parse_targets
from tinyexplore.explore.notebook.requests import RequestHandler

MACHINE = "x86-64-v3,threads=2,l1=32K,l2=512K"


def captured(f, **options) -> Explorer:
    return explore(f, repeat=1, **{"target": MACHINE, **options})


@pytest.fixture(scope="module")
def sum_of_two() -> Explorer:
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    return captured(lambda: a + b * 2)


def side_by_side(rosetta: LanguageComparison, *targets: str) -> list[tuple[str, ...]]:
    """What a row is aligned by, and its first line in each text, "-" for none."""
    columns = [rosetta[target].lines for target in targets]
    return [
        (
            "" if row.origin is None else rosetta.origins[row.origin].label,
            *[lines[start].text.strip() if start < stop else "-" for lines, (start, stop) in zip(columns, row.spans)],
        )
        for row in rosetta.rows(*targets)
    ]


def test_an_elementwise_kernel_on_two_gpus_and_webassembly(sum_of_two):
    rosetta = sum_of_two.kernels[0].translate(["cuda:sm_90", "metal", "wasm"])
    assert rosetta.targets == ("cuda:sm_90", "metal", "wasm")
    assert rosetta["cuda"].machine == "sm_90" and rosetta["cuda"].opts == ("LOCAL(0, 256)",)
    rows = side_by_side(rosetta, "cuda", "metal")
    start = next(number for number, row in enumerate(rows) if row[0] == "kernel")
    assert [row[0] for row in rows[start:]] == ["kernel", "g1", "LOAD", "LOAD", "MUL", "ADD", "STORE", ""]
    assert rows[start + 1][1:] == ("int gidx0 = blockIdx.x; /* 16 */", "int gidx0 = group.x; /* 16 */")
    assert rows[-2] == ("STORE", "data0[v0] = v4;", "data0[v0] = v4;")
    first = {row[0]: row for row in reversed(side_by_side(rosetta, "cuda", "wasm"))}
    assert first["MUL"][1:] == (
        "float v3 = v2 * 2.0f;",
        "(local.set $v3 (f32x4.mul (local.get $v2) (v128.const f32x4 2 2 2 2)))",
    )


@pytest.mark.parametrize("name", ["product", "softmax", "convolution", "gather"])
def test_every_load_store_and_reduction_has_a_line_in_every_language(name):
    a, b = Tensor.rand(32, 32).realize(), Tensor.rand(32, 32).realize()
    x, w = Tensor.rand(1, 2, 8, 8).realize(), Tensor.rand(4, 2, 3, 3).realize()
    places = Tensor([3, 1, 2]).realize()
    made = {
        "product": lambda: a @ b,
        "softmax": lambda: a.softmax(1),
        "convolution": lambda: x.conv2d(w),
        "gather": lambda: a[places],
    }
    rosetta = captured(made[name]).kernels[0].translate()
    assert rosetta.targets == tuple(COMPARED_LANGUAGES)
    wanted_ones = {n for n, one in enumerate(rosetta.origins) if one.label.split()[0] in ("LOAD", "STORE", "REDUCE")}
    assert wanted_ones
    for one in rosetta.translations:
        assert not one.refusal
        assert wanted_ones <= {origin for line in one.lines for origin in line.origins}, one.target
        assert sum(line.row is not None and rosetta.origins[line.row].label == "kernel" for line in one.lines) == 1


def test_a_fused_multiply_add_is_a_product_and_a_sum():
    a, b = Tensor.rand(32, 32).realize(), Tensor.rand(32, 32).realize()
    rosetta = captured(lambda: a @ b).kernels[0].translate("cuda")
    line = next(line for line in rosetta["cuda"].lines if "v2 * v3 + acc0" in line.text)
    assert [rosetta.origins[one].label for one in line.origins] == ["MUL", "REDUCE ADD"]
    assert rosetta.origins[line.row].label == "REDUCE ADD"


def test_the_text_of_its_own_machine_is_the_captured_one(sum_of_two):
    rosetta = sum_of_two.kernels[0].translate(["c", "llvm", "llvm:neoverse-n1"])
    programs = {one.language: "\n".join(line.text for line in one.lines) + "\n" for one in sum_of_two.trace.programs}
    assert rosetta["c"].source == programs["c"] and rosetta["llvm"].source == programs["llvm"]
    assert rosetta["llvm"].opts == sum_of_two.trace.kernels[0].opts
    assert rosetta["llvm:neoverse-n1"].opts == ("VECTOR(0, 4)", "UPCAST(0, 4)")


def test_origins_are_nodes_of_the_trace(sum_of_two):
    rosetta = sum_of_two.kernels[0].translate("opencl")
    nodes = sum_of_two.trace.nodes
    assert all(one.node is not None for one in rosetta.origins)
    assert [nodes[one.node].op for one in rosetta.origins if one.group == "memory"][-3:] == ["INDEX", "LOAD", "STORE"]


def test_a_gpu_kernel_in_c_and_features_that_its_language_lacks():
    x = Tensor.rand(64).double().realize()
    rosetta = captured(lambda: x + 1, target="sm_80").kernels[0].translate()
    assert rosetta["cuda"].machine == "sm_80" and "double" in rosetta["cuda"].source
    assert "double" in rosetta["c"].source and not rosetta["c"].refusal
    assert rosetta["metal"].lines == () and "float64: metal" in rosetta["metal"].refusal
    assert "float64: metal" in rosetta.text("cuda", "metal")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("fortran", "'fortran' is not a language"),
        ("fortran:sm_80", "no language 'fortran'"),
        ("cuda:gfx1100", "CUDA C\\+\\+ .* gfx1100; hip"),
        ("cuda:sm_8", "close to it: sm_89, sm_86, sm_80"),
    ],
)
def test_unknown_languages_raise_an_error(target, words):
    with pytest.raises(LanguageError, match=words):
        parse_targets(target)


def test_a_cell_shows_a_table_of_the_first_two(sum_of_two):
    found = sum_of_two.kernels[0].translate(["metal", "wgsl", "cuda"])._repr_mimebundle_()
    assert found["text/html"].count("<th style") == 3 + len(
        sum_of_two.kernels[0].translate(["metal", "wgsl"]).rows("metal", "wgsl")
    )
    assert "Metal · metal" in found["text/html"] and "CUDA" not in found["text/html"]
    assert "WGSL · webgpu" in found["text/plain"] and "data0[v0] = v4;" in found["text/plain"]


def test_machines_determine_their_language(sum_of_two):
    assert [one.name for one in parse_targets(["sm_90", "x86-64-v4", "WASM32", "CUDA"])] == [
        "cuda:sm_90",
        "llvm:x86-64-v4",
        "wasm:wasm32",
        "cuda",
    ]
    with pytest.raises(LanguageError, match="'hip' .* c"):
        sum_of_two.kernels[0].translate("c")["hip"]


def test_alignment_preserves_line_order_and_finds_counterparts():
    def text(*rows: int | None) -> list[LanguageLine]:
        return [LanguageLine("", row, () if row is None else (row,)) for row in rows]

    rows = align_lines([text(None, 1, 2, 2, 3, 2), text(1, 4, 2, 3), text(2, 1)])
    assert [(row.origin, row.spans, row.elsewhere) for row in rows] == [
        (None, ((0, 1), (0, 0), (0, 0)), (False, False, False)),
        (1, ((1, 2), (0, 1), (0, 0)), (False, False, True)),
        (4, ((0, 0), (1, 2), (0, 0)), (False, False, False)),
        (2, ((2, 4), (2, 3), (0, 1)), (False, False, False)),
        (3, ((4, 5), (3, 4), (0, 0)), (False, False, False)),
        (2, ((5, 6), (0, 0), (0, 0)), (False, True, True)),
        (1, ((0, 0), (0, 0), (1, 2)), (True, True, False)),
    ]


def test_a_request_of_a_view_returns_data(sum_of_two):
    answers = RequestHandler(lambda: sum_of_two.trace, sum_of_two.capture)
    found = answers({"ask": "rosetta", "kernel": 0, "targets": ["c", "metal"]})
    assert json.loads(json.dumps(found))["translations"][1]["words"] == "Metal"
    assert answers({"ask": "rosetta", "kernel": 0, "targets": "basic"})["error"].startswith("'basic' is not")
    assert "kernel 7: " in answers({"ask": "rosetta", "kernel": 7})["error"]
