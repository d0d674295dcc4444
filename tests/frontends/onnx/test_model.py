"""A loaded model: calls, replay, symbolic sizes, and rejected arguments."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is missing: pip install 'tinyexplore[onnx]'")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tinyexplore
from tests.frontends.onnx.models import BOOL, FLOAT, INT64, model_of, two_layers
from tinyexplore import Tensor
from tinyexplore.frontends.onnx import OnnxError, UnsupportedOperator, load, supported_operators
from tinyexplore.frontends.onnx.listing import short_names


def expected(proto: Any, **inputs: Any) -> list[Any]:
    return list(ReferenceEvaluator(proto).run(None, inputs))


@pytest.mark.parametrize("batch", [1, 3])
def test_calls_agree_with_the_reference_first_captured_and_replayed(batch: int) -> None:
    proto = two_layers()
    model = load(proto)
    for seed in range(4):  # evaluated, captured, replayed, replayed
        x = np.random.default_rng(seed).standard_normal((batch, 4), np.float32)
        np.testing.assert_allclose(model(x).numpy(), expected(proto, x=x)[0], rtol=1e-5)
        np.testing.assert_allclose(model(x=Tensor(x)).numpy(), expected(proto, x=x)[0], rtol=1e-5)


def test_results_of_earlier_calls_keep_their_values() -> None:
    model = load(two_layers())
    inputs = [np.full((2, 4), value, np.float32) for value in (1.0, 2.0, 3.0, 4.0)]
    results = [model(x) for x in inputs]
    for x, result in zip(inputs, results):
        np.testing.assert_allclose(result.numpy(), expected(two_layers(), x=x)[0], rtol=1e-5)


def test_a_condition_on_an_integer_input_has_a_program_for_each_value() -> None:
    def branch(name: str, operator: str) -> Any:
        return helper.make_graph(
            [helper.make_node(operator, ["x", "x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOAT, None)],
        )

    node = helper.make_node("If", ["flag"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Mul"))
    model = load(model_of([node], {"x": (FLOAT, [2]), "flag": (BOOL, [])}, ["y"]))
    x = np.array([3.0, 4.0], np.float32)
    for _ in range(4):
        np.testing.assert_array_equal(model(x, np.array(True)).numpy(), x + x)
        np.testing.assert_array_equal(model(x, np.array(False)).numpy(), x * x)


def test_a_condition_on_computed_elements_is_read_at_each_call() -> None:
    def branch(name: str, operator: str) -> Any:
        return helper.make_graph(
            [helper.make_node(operator, ["x", "x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOAT, None)],
        )

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["flag"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Mul")),
    ]
    model = load(model_of(nodes, {"x": (FLOAT, [2])}, ["y"], {"zero": np.float32(0)}))
    for sign in (1, -1, 1, -1, -1):
        x = np.array([3.0, 4.0], np.float32) * sign
        np.testing.assert_array_equal(model(x).numpy(), x + x if sign > 0 else x * x)


def test_shape_arithmetic_makes_no_kernel() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["flat"]),
        helper.make_node("Relu", ["flat"], ["y"]),
    ]
    proto = model_of(
        nodes,
        {"x": (FLOAT, ["batch", 2, 3])},
        ["y"],
        {"first": np.array([0], np.int64), "rest": np.array([-1], np.int64)},
    )
    model, x = load(proto), np.ones((2, 2, 3), np.float32)
    with tinyexplore.capture() as view:
        result = model(x).realize()
    assert result.shape == (2, 6)
    assert len(view.trace.kernels) == 1


def test_inputs_that_do_not_fit_are_refused_at_the_call() -> None:
    model = load(two_layers())
    with pytest.raises(TypeError, match="missing"):
        model()
    with pytest.raises(TypeError, match="'z'"):
        model(z=1)
    with pytest.raises(TypeError, match="twice"):
        model(np.zeros((1, 4), np.float32), x=1)
    with pytest.raises(OnnxError, match="float64"):
        model(np.zeros((1, 4)))
    with pytest.raises(OnnxError, match=r"\(1, 5\)"):
        model(np.zeros((1, 5), np.float32))
    with pytest.raises(OnnxError, match="dimensions"):
        model(np.zeros(4, np.float32))
    assert model([[1, 2, 3, 4]]).shape == (1, 2)  # numbers have no dtype of their own


def test_one_open_size_has_one_value() -> None:
    proto = model_of(
        [helper.make_node("Add", ["a", "b"], ["y"])], {"a": (FLOAT, ["n", 2]), "b": (FLOAT, ["n", 2])}, ["y"]
    )
    with pytest.raises(OnnxError, match="n is 3"):
        load(proto)(np.zeros((3, 2), np.float32), np.zeros((1, 2), np.float32))


def test_random_inputs_have_the_declared_shapes() -> None:
    model = load(two_layers())
    assert model.random_inputs({"batch": 5})["x"].shape == (5, 4)
    assert model.random_inputs()["x"].shape == (1, 4)
    with pytest.raises(OnnxError, match="batch"):
        model.random_inputs({"width": 2})


def test_an_unsupported_operator_names_itself_and_its_node() -> None:
    proto = model_of([helper.make_node("Frobnicate", ["x"], ["y"], domain="acme")], {"x": (FLOAT, [1])}, ["y"])
    with pytest.raises(UnsupportedOperator, match="acme.Frobnicate") as caught:
        load(proto)(np.zeros(1, np.float32))
    assert caught.value.operator == "acme.Frobnicate"
    assert caught.value.node.startswith("y = ")


def test_the_model_s_own_functions_are_called() -> None:
    function = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 18)],
    )
    proto = model_of([helper.make_node("Twice", ["x"], ["y"], domain="own")], {"x": (FLOAT, [2])}, ["y"])
    proto.functions.append(function)
    np.testing.assert_array_equal(load(proto)(np.array([1, 2], np.float32)).numpy(), [2, 4])


def test_the_text_has_one_line_for_each_node() -> None:
    model = load(two_layers())
    lines = [line.strip() for line in model.text.splitlines()]
    assert sum(" = " in line for line in lines) == 4
    assert any("hidden = Relu" in line for line in lines)


def test_an_error_s_traceback_shows_the_node_s_line() -> None:
    import traceback

    proto = model_of([helper.make_node("Add", ["a", "b"], ["y"])], {"a": (FLOAT, [2]), "b": (FLOAT, [3])}, ["y"])
    with pytest.raises(OnnxError, match="y = Add") as caught:
        load(proto)(np.zeros(2, np.float32), np.zeros(3, np.float32))
    cause = caught.value.__cause__
    assert cause is not None
    assert any("y = Add" in (frame.line or "") for frame in traceback.extract_tb(cause.__traceback__))


def test_supported_operators_are_listed() -> None:
    names = supported_operators()
    assert len(names) > 180
    assert {"Conv", "MatMul", "LSTM"} <= set(names)
    assert names == sorted(names)


# *** files of strangers ***


def test_bytes_that_are_no_model_are_refused(tmp_path: Path) -> None:
    for data in (b"", b"\x00" * 100, b"hello, world", two_layers().SerializeToString()[:-40]):
        with pytest.raises(OnnxError):
            load(data)
    (tmp_path / "model.onnx").write_bytes(b"hello")
    with pytest.raises(OnnxError, match="model.onnx"):
        load(tmp_path / "model.onnx")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "other.onnx")
    with pytest.raises(TypeError):
        load(3)  # type: ignore[arg-type]


def test_malformed_graphs_are_refused() -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    cycle = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    for nodes, outputs in (
        (cycle, ["a"]),
        ([relu], ["z"]),
        ([relu, relu], ["y"]),
        ([helper.make_node("Relu", ["nothing"], ["y"])], ["y"]),
    ):
        with pytest.raises(OnnxError):
            load(model_of(nodes, {"x": (FLOAT, [2])}, outputs))


def test_tensors_of_wrong_lengths_are_refused() -> None:
    proto = two_layers()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[:-4]
    with pytest.raises(OnnxError, match="first.weight"):
        load(proto)
    proto = two_layers()
    proto.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]
    with pytest.raises(OnnxError, match="elements"):
        load(proto)
    proto = two_layers()
    proto.graph.initializer[0].dims[:] = [-4, 8]
    with pytest.raises(OnnxError, match="negative"):
        load(proto)


@pytest.mark.parametrize(
    "node, constants",
    [
        (helper.make_node("ConstantOfShape", ["s"], ["y"]), {"s": np.array([1 << 20, 1 << 20], np.int64)}),
        (helper.make_node("Expand", ["x", "s"], ["y"]), {"s": np.array([1 << 40, 2], np.int64)}),
        (helper.make_node("Tile", ["x", "s"], ["y"]), {"s": np.array([1 << 40], np.int64)}),
        (helper.make_node("Range", ["a", "b", "c"], ["y"]), {
            "a": np.array(0, np.int64), "b": np.array(1 << 50, np.int64), "c": np.array(1, np.int64)}),
        (helper.make_node("OneHot", ["i", "d", "v"], ["y"]), {
            "i": np.zeros(1 << 12, np.int64), "d": np.array(1 << 40, np.int64), "v": np.zeros(2, np.float32)}),
        (helper.make_node("Pad", ["x", "p"], ["y"]), {"p": np.array([0, 1 << 40], np.int64)}),
        (helper.make_node("Resize", ["x", "", "", "s"], ["y"]), {"s": np.array([1 << 40], np.int64)}),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)  # fmt: skip
def test_huge_shapes_are_refused_before_memory_is_taken(node: Any, constants: dict[str, Any]) -> None:
    model = load(model_of([node], {"x": (FLOAT, [2])}, ["y"], constants))
    started = time.perf_counter()
    with pytest.raises(OnnxError):
        model(np.zeros(2, np.float32)).realize()
    assert time.perf_counter() - started < 5


def test_an_endless_loop_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinyexplore.frontends.onnx.evaluation.MAX_STEPS", 1_000)
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["v"], ["w"])],
        "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", BOOL, []),
         helper.make_tensor_value_info("v", FLOAT, [1])],
        [helper.make_tensor_value_info("on", BOOL, []), helper.make_tensor_value_info("w", FLOAT, [1])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)
    with pytest.raises(OnnxError, match="may not end"):
        load(model_of([node], {"x": (FLOAT, [1])}, ["y"], {"yes": np.array(True)}))(np.zeros(1, np.float32))


def test_functions_that_call_themselves_end_in_an_error() -> None:
    function = helper.make_function(
        "own", "Again", ["a"], ["b"], [helper.make_node("Again", ["a"], ["b"], domain="own")],
        [helper.make_opsetid("own", 1)],
    )  # fmt: skip
    proto = model_of([helper.make_node("Again", ["x"], ["y"], domain="own")], {"x": (FLOAT, [2])}, ["y"])
    proto.functions.append(function)
    with pytest.raises(OnnxError, match="deep"):
        load(proto)(np.zeros(2, np.float32))


def test_graphs_nested_too_deep_are_refused() -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", [], [helper.make_tensor_value_info("y", FLOAT, None)]
    )
    for _ in range(20):
        node = helper.make_node("If", ["flag"], ["y"], then_branch=graph, else_branch=graph)
        del node.attribute[1:]
        graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", FLOAT, None)])
    proto = model_of(graph.node, {"x": (FLOAT, [1]), "flag": (BOOL, [])}, ["y"])
    with pytest.raises(OnnxError, match="nested"):
        load(proto)


def test_external_data_is_read_from_the_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    weight = np.arange(32, dtype=np.float32).reshape(4, 8)

    def write(location: str, **entries: str) -> Path:
        proto = two_layers()
        tensor = proto.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=value)
        path = folder / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        return path

    (folder / "weights.bin").write_bytes(b"\0" * 16 + weight.tobytes())
    (tmp_path / "secret.bin").write_bytes(weight.tobytes())
    model = load(write("weights.bin", offset="16", length="128"))
    np.testing.assert_array_equal(model.parameters["first.weight"].numpy(), weight)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    for location in ("../secret.bin", str(tmp_path / "secret.bin"), "link.bin", "", "nothing.bin", "."):
        with pytest.raises(OnnxError):
            load(write(location))
    for entries in ({"offset": "17"}, {"offset": "-1"}, {"length": "12"}, {"offset": "x"}):
        with pytest.raises(OnnxError):
            load(write("weights.bin", **entries))
    with pytest.raises(OnnxError, match="path"):
        load(write("weights.bin").read_bytes())


def test_a_dropped_model_frees_its_text() -> None:
    import linecache

    model = load(two_layers())
    file = model._listing.file
    assert file in linecache.cache
    del model
    gc.collect()
    assert file not in linecache.cache


def test_the_package_s_name_is_the_front_end() -> None:
    assert tinyexplore.onnx.load is load
    assert numpy_helper is not None


def test_paths_are_written_as_the_shortest_end_that_no_other_name_has() -> None:
    assert short_names(["x", "a/b/w", "a/c/w", "a/c/v", "c/v", "/c/v"]) == {
        "x": "x",
        "a/b/w": "b/w",
        "a/c/w": "c/w",
        "a/c/v": "a/c/v",
        "c/v": "c/v",
        "/c/v": "/c/v",
    }
    assert len(set(short_names(f"{a}/{b}/{c}" for a in "xyz" for b in "xyz" for c in "xyz").values())) == 27
