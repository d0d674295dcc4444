"""A PyTorch program in the explorer: lines, modules, names, the ATen operations, and the graph as text."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the package torch is missing: pip install torch")

from torch import nn

from tinyexplore import explore
from tinyexplore.explore import line_frames
from tinyexplore.frontends.torch import listing


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


class Block(nn.Module):
    """A linear layer and a normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(16, 32), nn.LayerNorm(32)

    def forward(self, x: Any) -> Any:
        h = self.inner(x).relu()
        return self.norm(h)


class Net(nn.Module):
    """A block, an operation that has no translation, and a last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.last = Block(), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        h = torch.special.i0(self.block(x))
        return self.last(h).softmax(-1)


def frames(trace: Any) -> dict[tuple[str, int], set[str]]:
    """The operations of LazyBuffers, by the name of the source and the line that they lead to."""
    found: dict[tuple[str, int], set[str]] = {}
    for node in trace.nodes:
        if node.kind == "lazybuffer":
            frame = trace.frames[node.user]
            found.setdefault((trace.sources[frame.source].name, frame.line), set()).add(node.op)
    return found


def line_of(function: Any, text: str) -> int:
    """The number of the line of a function's source that has a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_every_node_leads_to_a_line_of_the_modules() -> None:
    net, x = Net(), torch.randn(8, 16)
    view = explore(net, x, repeat=2)
    found = frames(view.trace)
    assert {name.rpartition("/")[2] for name, _ in found} == {"test_explore.py"}
    by_line = {line: ops for (_, line), ops in found.items()}
    assert "MAX" in by_line[line_of(Block.forward, "relu")]
    assert "SQRT" in by_line[line_of(Block.forward, "self.norm")]
    assert "EXP" in by_line[line_of(Net.forward, "softmax")]
    torch.testing.assert_close(view.result, net(x), rtol=0, atol=1e-6)
    for program in view.trace.programs:
        for number, line in enumerate(program.lines):
            assert not line.nodes or line_frames(view.trace, program.id, number)


def test_nodes_have_a_column_range() -> None:
    view = explore(Net(), torch.randn(8, 16), repeat=2)
    node = next(one for one in view.trace.nodes if one.kind == "lazybuffer" and one.op == "EXP")
    frame = view.trace.frames[node.user]
    text = view.trace.sources[frame.source].text.splitlines()[frame.line - 1]
    assert frame.span is not None
    part = text[frame.span[1] : frame.span[3]]
    assert part.endswith(".softmax(-1)") and "return" not in part


def test_modules_and_names() -> None:
    view = explore(Net(), torch.randn(8, 16), repeat=2)
    scopes = {scope.name: scope for scope in view.trace.scopes}
    assert {"block", "inner", "norm", "last"} <= set(scopes)
    assert scopes["inner"].parameter_bytes == (16 * 32 + 32) * 4
    assert scopes["inner"].parent == scopes["block"].id
    assert {"x", "block.inner.weight", "last.bias", "i0"} <= {node.name for node in view.trace.nodes}


def test_an_aten_fallback_is_reported_with_its_line() -> None:
    view = explore(Net(), torch.randn(8, 16), repeat=2)
    (message,) = [one for one in view.trace.messages if "aten.i0" in one.text]
    assert view.trace.frames[message.frame].line == line_of(Net.forward, "i0")


def test_an_aten_operation_is_a_node_of_the_graph() -> None:
    """It has a name, a time, the user's line and columns, its module's place, and what ATen read as sources."""
    view = explore(Net(), torch.randn(8, 16), repeat=2)
    trace = view.trace
    (node,) = [one for one in trace.nodes if one.label == "aten.i0"]
    assert node.name == "i0" and node.arg == "aten.i0"
    assert re.match(r"[\d,]+ µs outside · float32 8×32$", node.detail)
    frame = trace.frames[node.user]
    assert frame.line == line_of(Net.forward, "i0") and frame.span is not None
    assert trace.sources[frame.source].text.splitlines()[frame.line - 1][frame.span[1] : frame.span[3]]
    (read,) = node.src
    assert any(read in kernel.roots for kernel in trace.kernels)
    assert any(node.id in one.src for one in trace.nodes)
    assert not any(node.id in kernel.nodes for kernel in trace.kernels)


def test_the_verdict_contains_the_time_of_aten_operations() -> None:
    """An operation with two results counts once."""
    view = explore(lambda x: torch.linalg.svd(x)[1] + torch.linalg.svd(x * 2)[1], torch.randn(64, 64), repeat=2)
    operations = view.trace.outside
    assert [operation.name for operation in operations] == ["aten._linalg_svd"] * 2
    assert all(operation.time_us > 10 for operation in operations)
    assert view.verdict().kind == "unexplained" and "aten._linalg_svd" in view.verdict().text
    assert explore(lambda x: x.exp(), torch.randn(64), repeat=1).trace.outside == ()


def test_a_final_aten_operation_is_a_node_too() -> None:
    view = explore(lambda x: torch.special.i0(x + 1).sort(), torch.randn(6), repeat=1)
    (node,) = [one for one in view.trace.nodes if one.label == "aten.i0"]
    assert node.src


def test_each_kernel_has_the_operations_that_it_computes() -> None:
    """The ATen graph, a line an operation, between the user's Python and the LazyBuffers."""
    view = explore(Net(), torch.randn(8, 16), repeat=2)
    lines = [line for program in view.trace.origins for line in program.lines]
    assert {program.language for program in view.trace.origins} == {"aten"}
    (softmax,) = [line for line in lines if line.text.startswith("_softmax = ")]
    assert f"test_explore.py:{line_of(Net.forward, 'softmax')} in forward" in softmax.text
    ops = {view.trace.nodes[node].op for node in softmax.nodes}
    assert "EXP" in ops and all(view.trace.nodes[node].kind == "lazybuffer" for node in softmax.nodes)
    (norm,) = [line for line in lines if "aten.native_layer_norm(" in line.text]
    assert "# block.norm: LayerNorm, " in norm.text
    of_softmax = next(kernel for kernel in view.kernels if "_softmax = " in "".join(kernel.listing("aten")))
    assert "aten" in of_softmax.languages and of_softmax.languages[0] == "uops"
    assert {line.text for line in lines} > set(of_softmax.listing("aten").splitlines()) > {softmax.text}


def test_a_graph_break_of_dynamo_is_reported_with_its_line() -> None:
    def cut(x: Any) -> Any:
        h = x * 2
        print(end="")
        if h.sum() > 0:
            return h + 1
        return h - 1

    view = explore(cut, torch.ones(3), repeat=1)
    found = {view.trace.frames[one.frame].line for one in view.trace.messages if "Dynamo cut" in one.text}
    assert line_of(cut, "if h.sum()") in found
    assert view.result.tolist() == [3, 3, 3]


def test_no_activations_are_saved_for_a_later_backward_pass() -> None:
    """No activation is computed for a backward pass that may come later."""
    net, x = Block(), torch.randn(8, 16)
    with torch.no_grad():
        least = explore(net, x, repeat=1).trace
    view = explore(net, x, repeat=1)
    assert not view.result.requires_grad
    assert len(view.trace.kernels) == len(least.kernels)
    assert sum(kernel.bytes_written for kernel in view.trace.kernels) == sum(one.bytes_written for one in least.kernels)


@pytest.mark.skipif(not hasattr(torch._dynamo.config, "trace_autograd_ops"), reason="PyTorch is too old")
@pytest.mark.parametrize("returned", ["loss", "nothing"])
def test_a_training_step_is_one_graph(returned: str) -> None:
    net, x, y = Block(), torch.randn(8, 16), torch.randn(8, 32)

    def step(x: Any, y: Any) -> Any:
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        return loss if returned == "loss" else None

    view = explore(step, x, y, repeat=1)
    assert not [one.text for one in view.trace.messages if "Dynamo cut" in one.text]
    other = copy.deepcopy(net)
    other.zero_grad()
    (other(x) - y).pow(2).mean().backward()
    for one, two in zip(net.parameters(), other.parameters()):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-6)
    assert any(node.backward for node in view.trace.nodes)


def test_the_graph_as_text() -> None:
    view = explore.torch(Net(), torch.randn(8, 16), repeat=2, lines="aten")
    found = frames(view.trace)
    (name,) = {name for name, _ in found}
    text = next(source.text for source in view.trace.sources if source.name == name).splitlines()
    by_text = {text[line - 1]: ops for (_, line), ops in found.items()}
    (softmax,) = [line for line, ops in by_text.items() if "EXP" in ops]
    assert softmax.startswith("_softmax = aten._softmax(")
    assert f"# float32[8, 4], test_explore.py:{line_of(Net.forward, 'softmax')} in forward" in softmax
    with pytest.raises(ValueError, match="python"):
        explore.torch(Net(), torch.randn(8, 16), lines="c")


def test_backward_nodes_have_the_lines_of_their_forward_nodes() -> None:
    net, x, y = Net(), torch.randn(8, 16), torch.randn(8, 4)

    def step(x: Any, y: Any) -> Any:
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        return loss

    forward = explore(net, x, repeat=1)
    view = explore(step, x, y, repeat=1)
    line = line_of(Block.forward, "relu")
    counts = [
        sum(1 for node in one.trace.nodes if node.kind == "lazybuffer" and one.trace.frames[node.user].line == line)
        for one in (forward, view)
    ]
    assert counts[1] > counts[0]
    assert {name.rpartition("/")[2] for name, _ in frames(view.trace)} == {"test_explore.py"}
    weight = net.last.weight.grad
    other = Net()
    other.load_state_dict(net.state_dict())
    ((other(x) - y).pow(2).mean()).backward()
    torch.testing.assert_close(weight, other.last.weight.grad, rtol=1e-4, atol=1e-6)


def test_a_container_of_pytorch_shows_its_graph() -> None:
    view = explore(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(2, 4), repeat=1)
    names = {name for name, _ in frames(view.trace)}
    assert all("test_explore" in name or name.startswith("<ATen") for name in names), names


def test_functions_without_pytorch_are_explored_as_before() -> None:
    from tinyexplore import Tensor

    view = explore(lambda: (Tensor([1.0, 2.0]) + 1).sum())
    assert view.trace.kernels


CELL = """%%explore view --repeat 2
h = step(x)
(h + 1).sum()"""


def test_a_cell_that_calls_a_compiled_function_is_explored() -> None:
    """`%%explore` shows what a function compiled for this backend runs, the first time and when it is replayed."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "tinyexplore")
        shell.run_cell(
            "import torch\nfrom tinyexplore.frontends.torch import tinyexplore\n"
            "def f(x):\n    return x.exp() * 2\n"
            "step = torch.compile(f, backend=tinyexplore)\nx = torch.ones(4, 8)"
        ).raise_error()
        for number in range(4):
            done = shell.run_cell(CELL, store_history=True)
            done.raise_error()
            view = shell.user_ns["view"]
            assert float(view.result) == pytest.approx(32 * (2 * 2.718281828 + 1))
            assert len(view.trace.kernels) == 1 and view.trace.runs
            if number == 0:
                (node,) = [one for one in view.trace.nodes if one.kind == "lazybuffer" and one.op == "EXP"]
                frame = view.trace.frames[node.user]
                line = view.trace.sources[frame.source].text.splitlines()[frame.line - 1]
                assert line == "    return x.exp() * 2"
    finally:
        shell.run_line_magic("unload_ext", "tinyexplore")
        InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    ("line", "marked", "part"),
    [
        ("h = self.up(self.norm(x))", "self.norm(x))", "self.norm(x)"),
        ("h = self.up(self.norm(x))", "self.up(self.norm(x))", "self.up(self.norm(x))"),
        ("loss = (model(x) - y).square().mean()", "model(x) - y).square().mean()", "(model(x) - y).square().mean()"),
        ("return torch.exp(x.sin()) * 2", "x.sin()) * 2", "torch.exp(x.sin()) * 2"),
    ],
)
def test_the_part_of_a_line_has_an_opening_bracket_for_each_closing_one(line: str, marked: str, part: str) -> None:
    start = line.index(marked)
    begin, end = listing._balance_brackets(line, start, start + len(marked))
    assert line[begin:end] == part


def test_the_text_of_a_graph_names_modules_and_every_module_has_a_row() -> None:
    view = explore.torch(torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), torch.randn(2, 8), repeat=2)
    text = view.trace.sources[0].text
    assert "# 0: Linear, " in text and "# 1: ReLU, " in text
    assert [kernel.title for kernel in view.trace.kernels] == ["0: Linear, 1: ReLU"]
    (whole,) = view.trace.modules().children
    assert [module.name for module in whole.children] == ["0", "1"]
    assert sum(module.time_us for module in whole.children) == pytest.approx(whole.time_us)
