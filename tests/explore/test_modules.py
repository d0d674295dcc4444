"""Time and memory of each module."""

from __future__ import annotations

import functools
import json
from types import MethodType

import pytest

from tinyexplore import Tensor, cli, explore, nn
from tinyexplore.explore import Explorer, Trace, capture
from tinyexplore.explore.tracefile.modules import OUTSIDE
from tinyexplore.nn.optim import SGD
from tinyexplore.util import Context


def twice(method):
    @functools.wraps(method)
    def call(*args):
        return method(*args) + method(*args)

    return call


class Inner:
    def __init__(self) -> None:
        self.scale = Tensor.ones(8).contiguous().realize()

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.scale


class Model:
    def __init__(self) -> None:
        self.layers = [nn.Linear(4, 8), Inner(), nn.Linear(8, 8)]
        self.head = {"out": nn.Linear(8, 2)}

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(x.sequential(self.layers).relu())

    def last(self, x: Tensor) -> Tensor:
        return self.head["out"](x)


@pytest.fixture(scope="module", autouse=True)
def on_the_reference_device():
    with Context(DEVICE="PYTHON"):
        yield


@pytest.fixture(scope="module")
def trace() -> Trace:
    model = Model()
    optimizer = SGD(nn.state.get_parameters(model), lr=0.1)
    x = Tensor.ones(3, 4).contiguous().realize()

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean().backward()
        optimizer.step()
        return loss

    with Tensor.train():
        return explore(step, repeat=1, title="step").trace


def test_modules_have_the_names_of_variables_and_attributes(trace):
    tree = trace.modules()
    assert [(depth, module.name, module.kind) for depth, module in tree.walk()] == [
        (0, "step", "step"),
        (1, "model", "Model"),
        (2, "layers[0]", "Linear"),
        (2, "layers[1]", "Inner"),
        (2, "layers[2]", "Linear"),
        (2, "head['out']", "Linear"),
        (1, "optimizer", "SGD"),
        (1, OUTSIDE, OUTSIDE),
    ]


def test_times_of_modules_sum_to_the_measured_time(trace):
    tree = trace.modules()
    assert tree.time_us == pytest.approx(sum(run.median_us for run in trace.runs))
    for _, module in tree.walk():
        assert 0 <= module.backward_us <= module.time_us + 1e-9
        assert module.time_us >= sum(child.time_us for child in module.children) - 1e-6
    assert tree.kernels == tuple(kernel.id for kernel in trace.kernels)


def test_gradients_belong_to_the_module_of_their_forward_node(trace):
    model = trace.modules().children[0]
    assert all(layer.backward_us > 0 for layer in model.children)
    backward = [node for node in trace.nodes if node.backward]
    assert backward
    assert {trace.scopes[node.scope].kind for node in backward} == {"Model", "Linear", "Inner"}
    assert all("backward" in node.calls for node in backward)


def test_parameters_count_once(trace):
    model, optimizer, _ = trace.modules().children
    assert [layer.parameter_bytes for layer in model.children] == [(32 + 8) * 4, 8 * 4, (64 + 8) * 4, (16 + 2) * 4]
    assert model.parameter_bytes == 4 * (40 + 8 + 72 + 18)
    assert optimizer.parameter_bytes < model.parameter_bytes


def test_the_object_that_captures_is_not_a_module():
    class Trainer:
        def __init__(self) -> None:
            self.inner = Inner()

        def run(self) -> Trace:
            with capture() as session:
                self.inner(Tensor.ones(8).contiguous()).realize()
            return session.trace

    assert [(scope.kind, scope.parent) for scope in Trainer().run().scopes] == [("Inner", None)]


def test_functions_have_no_modules():
    trace = explore(lambda: Tensor.ones(4).contiguous() + 1, repeat=1).trace
    assert trace.scopes == ()
    assert [child.name for child in trace.modules().children] == [OUTSIDE]


def test_modules_are_saved_and_printed(trace, tmp_path, capsys):
    path = str(trace.save(tmp_path / "step.json.gz"))
    assert Trace.load(path).modules() == trace.modules()
    assert cli.main(["modules", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["module", "step", "model:"]
    assert cli.main(["modules", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == trace.modules().to_dict()


class OddlyNamed:
    """Its methods call the receiver otherwise; the last is decorated, the property is none of a method's usual form."""

    def __init__(me) -> None:
        me.w = Tensor.ones(4, 4).contiguous().realize()
        me.inner = Inner()

    def __call__(m, x: Tensor) -> Tensor:
        return m.decorated(m.doubled @ x)

    @property
    def doubled(this) -> Tensor:
        return this.w + this.w

    @twice
    def decorated(module, /, x: Tensor) -> Tensor:
        return x + module.w


def free(m: OddlyNamed, x: Tensor) -> Tensor:
    """Not a method: its own operations belong to no module."""
    return x * m.w


def names_of(view: Explorer) -> dict[str, str]:
    """Operation of each computed LazyBuffer → the name of its module."""
    trace = view.trace
    nodes = [node for node in trace.nodes if node.kind == "lazybuffer" and node.scope is not None]
    return {node.op: trace.scopes[node.scope].name for node in nodes}


def test_the_receiver_is_known_by_its_position_and_not_by_its_name():
    net, x = OddlyNamed(), Tensor.ones(4, 4).contiguous().realize()
    names = names_of(explore(lambda: net(x), repeat=1))
    assert {names[op] for op in ("ADD", "MUL", "SUM") if op in names} == {"net"}
    assert names_of(explore(lambda: free(net, x), repeat=1)) == {}


def test_a_function_bound_to_an_object_is_a_method_of_it():
    net, x = OddlyNamed(), Tensor.ones(4, 4).contiguous().realize()
    net.forward = MethodType(free, net)  # type: ignore[attr-defined]
    assert set(names_of(explore(lambda: net.forward(x), repeat=1)).values()) == {"net"}  # type: ignore[attr-defined]


def test_an_explored_model_has_the_name_of_the_callers_variable():
    model, x = Model(), Tensor.ones(3, 4).contiguous().realize()
    assert explore(model, x, repeat=1).trace.modules().children[0].name == "model"
    nets = {"small": [OddlyNamed()]}
    x = Tensor.ones(4, 4).contiguous().realize()
    assert explore(nets["small"][0], x, repeat=1).trace.modules().children[0].name == "nets['small'][0]"

    class Trainer:
        def __init__(self) -> None:
            self.net = OddlyNamed()

        def run(self) -> Explorer:
            return explore(self.net, x, repeat=1)

    assert Trainer().run().trace.modules().children[0].name == "self.net"
    assert explore(OddlyNamed(), x, repeat=1).trace.modules().children[0].name == "OddlyNamed"
