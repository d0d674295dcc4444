"""A program of PyTorch in the explorer: lines, modules, names, what ATen computed, and the graph as text."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the package torch is missing: pip install torch")

from torch import nn

from tinyexplore import explore
from tinyexplore.explore import line_frames


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


def test_a_part_of_a_line_is_meant() -> None:
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


def test_what_aten_computed_is_said_with_its_line() -> None:
    view = explore(Net(), torch.randn(8, 16), repeat=2)
    (message,) = [one for one in view.trace.messages if "aten.i0" in one.text]
    assert view.trace.frames[message.frame].line == line_of(Net.forward, "i0")


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


def test_backward_nodes_stand_at_the_lines_that_they_are_for() -> None:
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


def test_functions_that_are_not_of_pytorch_are_as_before() -> None:
    from tinyexplore import Tensor

    view = explore(lambda: (Tensor([1.0, 2.0]) + 1).sum())
    assert view.trace.kernels
