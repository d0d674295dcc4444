"""An ONNX model in the explorer: the text, lines, names and modules."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the package onnx is missing: pip install 'tinyexplore[onnx]'")

from tests.frontends.onnx.models import two_layers
from tinyexplore import explore
from tinyexplore.cli import main


def test_every_node_points_at_its_line_of_the_model() -> None:
    view = explore.onnx(two_layers(), sizes={"batch": 3}, repeat=2)
    trace = view.trace
    text = next(source for source in trace.sources if "MatMul" in source.text)
    lines = text.text.splitlines()
    by_operator = {"MAX": "Relu", "REDUCE": "MatMul"}
    computed = [node for node in trace.nodes if node.kind == "lazybuffer" and node.op in by_operator]
    assert computed
    for node in computed:
        assert node.user is not None
        frame = trace.frames[node.user]
        assert frame.source == text.id
        assert by_operator[node.op] in lines[frame.line - 1]
        assert (frame.span is not None) is (sys.version_info >= (3, 11))  # which know columns


def test_weights_inputs_and_modules_have_their_names() -> None:
    view = explore.onnx(two_layers(), [np.ones((2, 4), np.float32)], repeat=2)
    names = {node.name for node in view.trace.nodes}
    assert {"x", "first.weight", "last.weight"} <= names
    scopes = {scope.name for scope in view.trace.scopes}
    assert {"first", "last"} <= scopes
    sizes = {scope.name: scope.parameter_bytes for scope in view.trace.scopes}
    assert sizes["first"] == (4 * 8 + 8) * 4


def test_the_view_shows_the_result_of_the_model() -> None:
    proto = two_layers()
    x = np.ones((2, 4), np.float32)
    view = explore.onnx(proto, {"x": x}, repeat=2)
    from tinyexplore.frontends.onnx import load

    np.testing.assert_allclose(view.result.numpy(), load(proto)(x).numpy(), rtol=1e-6)
    assert view.trace.title == "test"


def test_the_command_runs_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layers.onnx"
    path.write_bytes(two_layers().SerializeToString())
    assert main(["run", "--json", str(path), "batch=3"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["title"] == "layers.onnx"
    assert summary["kernels"]
    assert main(["run", str(path), "width=3"]) == 2
    assert "batch" in capsys.readouterr().err
    assert main(["run", str(path), "batch"]) == 2
    path.write_bytes(b"nothing")
    assert main(["run", str(path)]) == 2


@pytest.mark.parametrize("device", ["CLANG", "PYTHON"])
def test_weights_and_inputs_are_where_the_kernels_run_and_are_not_computed_in_the_capture(device: str) -> None:
    view = explore.onnx(two_layers(), sizes={"batch": 2}, repeat=1, device=device)
    assert dict(view.trace.options)["DEVICE"] == device and view.result.device == device
    assert view.trace.messages == ()
