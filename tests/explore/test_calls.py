"""The names of the calls that created a node: from the events to the trace, its queries and its pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from html import escape
from xml.etree import ElementTree

import pytest

from tinyexplore import Tensor, explore, nn
from tinyexplore.engine import create_schedule
from tinyexplore.explore.exports.html_export import static_html
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg
from tinyexplore.trace import Recorder, recording


class Net:
    def __init__(self):
        self.inner = nn.Linear(4, 3)

    def __call__(self, x):
        return self.inner(x).softmax()


@pytest.fixture(scope="module")
def trace():
    net, x = Net(), Tensor.ones(2, 4).contiguous().realize()
    weight = Tensor.ones(4, requires_grad=True)

    def program():
        net(x).realize()
        (x + 1).scaled_dot_product_attention(x, x).realize()
        (weight * 2).sum().backward()
        weight.grad.realize()
        (x + Tensor.full((4,), 2.5)).realize()

    return explore(program).trace


def calls(trace, op):
    return {node.calls for node in trace.nodes if node.op == op and node.kind == "lazybuffer"}


def test_a_node_has_the_users_call_first_and_those_inside_after_it(trace):
    assert calls(trace, "EXP") == {("softmax", "exp"), ("scaled_dot_product_attention", "softmax", "exp")}
    assert ("Linear", "linear", "dot") in calls(trace, "REDUCE_AXIS")
    assert ("__add__", "add") in calls(trace, "ADD")
    assert any(made[:1] == ("backward",) for made in calls(trace, "EXPAND"))
    assert any(made[:1] == ("full",) for made in calls(trace, "CONST"))
    assert {node.calls for node in trace.nodes if node.kind == "uop"} == {()}


def test_a_kernel_does_not_belong_to_a_call_whose_result_it_only_reads():
    x, w, b = (Tensor.ones(*shape).contiguous().realize() for shape in ((16, 8), (8, 16), (16,)))
    kernels = explore(lambda: (x @ w + b).softmax(), repeat=1).trace.kernels
    assert [kernel.calls for kernel in kernels] == [("__matmul__",), ("__add__", "softmax")]


def test_kernels_name_the_calls_that_they_compute(trace):
    softmax = next(kernel for kernel in trace.kernels if "softmax" in kernel.calls)
    assert "softmax" in softmax.title and f"<td>{escape(softmax.title)}</td>" in static_html(trace)


def test_nodes_are_found_by_their_call(trace):
    found = trace.where(call="softmax")
    assert found and all("softmax" in node.calls for node in found)
    assert trace.where(call="nothing of the kind") == ()
    assert "made by softmax → exp" in graph_svg(trace)


def test_a_schedule_item_has_its_recorded_calls():
    x = Tensor.ones(4, 4).contiguous().realize()
    with recording(Recorder()):
        y = (x + 1).relu().sum(1)
        (item,) = create_schedule([y.lazydata])
    assert item.metadata == ("__add__", "relu", "sum")
    assert "(__add__, relu, sum)" in repr(item)
    (silent,) = create_schedule([(x * 3).lazydata])
    assert silent.metadata == ()


PROGRAM = "from tinyexplore import Tensor; x = Tensor.ones(4, 4).contiguous().realize(); (x + 1).exp().sum().item()"


@pytest.mark.parametrize("path", ["", "picture", "picture.svg"])
def test_graph_1_writes_a_picture_of_the_realized_graph(path, tmp_path):
    named = str(tmp_path / path) if path else ""
    environment = {**os.environ, "GRAPH": "1", "GRAPHPATH": named, "TMPDIR": str(tmp_path), "DEVICE": "PYTHON"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    (written,) = [file for file in tmp_path.iterdir() if file.suffix == ".svg"]
    assert done.stdout.endswith(f"LazyBuffers in {written}\n") and (not path or written.name == "picture.svg")
    text = "".join(ElementTree.parse(written).getroot().itertext())
    assert "EXP" in text and "REDUCE" in text
