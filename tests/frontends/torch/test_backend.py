"""`torch.compile(f, backend="tinyexplore")` compared with eager PyTorch."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the package torch is missing: pip install torch")

from torch import nn
from torch.nn import functional

from tinyexplore import GlobalCounters
from tinyexplore.frontends.torch import program, supported_operations, tinyexplore
from tinyexplore.frontends.torch.program import AtenFallbackWarning, GraphPart, TorchProgram, divide_graph


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=tinyexplore, **options)


def assert_close(found: Any, expected: Any, share: float = 1e-5) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert found.stride() == expected.stride()
    largest = float(expected.abs().max()) if expected.numel() else 0.0
    torch.testing.assert_close(found, expected, rtol=0, atol=share * max(largest, 1e-9))


def test_pytorch_finds_the_backend_by_its_name() -> None:
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    (place,) = re.findall(r'"torch_dynamo_backends"\]\ntinyexplore = "([^"]+)"', project)
    entry = EntryPoint("tinyexplore", place, "torch_dynamo_backends")
    assert entry.load() is tinyexplore
    if "tinyexplore" not in torch._dynamo.list_backends():  # installed before the entry was there
        torch._dynamo.register_backend(entry.load(), name="tinyexplore")
    before = GlobalCounters.kernel_count
    found = torch.compile(lambda x: (x + 1).sum(), backend="tinyexplore")(torch.ones(3))
    assert float(found) == 6
    assert GlobalCounters.kernel_count > before


def test_replays_follow_their_arguments_and_do_not_overwrite_results() -> None:
    step = compiled(lambda x, y: (x @ y, x + 1))
    results = []
    for number in range(5):
        x, y = torch.full((3, 4), float(number)), torch.randn(4, 5)
        found = step(x, y)
        assert_close(found[0], x @ y)
        results.append((found[1], x + 1))
    for found, expected in results:
        assert_close(found, expected)


def test_a_replay_reads_its_results_through_views_that_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    step = compiled(lambda x: (x + 1, x.sum(0)))
    for number in range(3):
        step(torch.full((3, 4), float(number)))
    monkeypatch.setattr(program, "torch_of", lambda tensor: pytest.fail("a result was exported again"))
    first, second = step(torch.full((3, 4), 1.0)), step(torch.full((3, 4), 2.0))
    assert [float(one.sum()) for one in (*first, *second)] == [24, 12, 36, 24]


def test_parameters_are_read_in_place() -> None:
    layer = nn.Linear(4, 3)
    step = compiled(layer)
    x = torch.randn(2, 4)
    for _ in range(3):
        assert_close(step(x), layer(x))
    with torch.no_grad():
        layer.weight.mul_(2)
        layer.weight[0, 0] = 7
    assert_close(step(x), layer(x))


def test_layouts_of_arguments() -> None:
    step = compiled(lambda x: x * 2 + 1)
    x = torch.randn(2, 3, 4, 5)
    for other in (
        x,
        x.permute(0, 3, 1, 2),
        x.to(memory_format=torch.channels_last),
        x[:, 1:],
        x[:, :, ::2],
        x[:1].expand(2, 3, 4, 5),
        x[..., 0],
        x.flatten()[3:],
    ):
        assert_close(step(other), other * 2 + 1)


def test_layouts_of_results() -> None:
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    assert compiled(lambda x: x.relu())(x).stride() == x.relu().stride()
    found, expected = compiled(conv)(x), conv(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_in_place_changes_reach_the_arguments() -> None:
    def change(x: Any, y: Any) -> Any:
        x.add_(1)
        y[1:3] = x[1:3] * 2
        return x.sum() + y.sum()

    a, b = torch.randn(4), torch.randn(4)
    c, d = a.clone(), b.clone()
    for _ in range(3):
        assert_close(compiled(change)(a, b), change(c, d))
        assert_close(a, c)
        assert_close(b, d)


def test_views_stay_views() -> None:
    step = compiled(lambda x: (x.view(6), x.t(), x + 1))
    x = torch.randn(2, 3)
    flat, turned, _ = step(x)
    assert flat.data_ptr() == x.data_ptr() and turned.data_ptr() == x.data_ptr()
    flat[0] = 5
    assert x[0, 0] == 5
    same = compiled(lambda x: (x + 1).chunk(2))(torch.randn(4))
    assert same[0].untyped_storage().data_ptr() == same[1].untyped_storage().data_ptr()


def test_no_elements_no_axes_and_numbers() -> None:
    step = compiled(lambda x, n: x * n + 1)
    for shape in ((0,), (2, 0), (), (1,)):
        for number in (2, 3, 4.5):
            x = torch.randn(shape)
            assert_close(step(x, number), x * number + 1)


def test_changing_sizes() -> None:
    step = compiled(lambda x, w: (x @ w).relu())
    w = torch.randn(4, 3)
    for size in (1, 2, 5, 7, 5):
        x = torch.randn(size, 4)
        assert_close(step(x, w), (x @ w).relu())
    step = compiled(lambda x, w: (x @ w).relu(), dynamic=True)
    for size in (3, 6):
        x = torch.randn(size, 4)
        assert_close(step(x, w), (x @ w).relu())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool])
def test_dtypes(dtype: Any) -> None:
    x = (torch.randn(5, 6) * 3).to(dtype)

    def mixed(x: Any) -> Any:
        return x + x, x * 2, x > 1, x.sum(1), x / 2, x.float().mean()

    for found, expected in zip(compiled(mixed)(x), mixed(x)):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected)


def test_operations_without_a_translation_run_in_aten() -> None:
    def parts(x: Any) -> Any:
        h = (x + 1) * 2
        r = torch.special.i0(h)
        return r.sin() + h, r

    x = torch.rand(3, 4)
    with pytest.warns(AtenFallbackWarning, match="i0"):
        found = compiled(parts)(x)
    for one, other in zip(found, parts(x)):
        assert_close(one, other)


def test_random_numbers_are_those_of_pytorch() -> None:
    def noisy(x: Any) -> Any:
        return x + torch.rand(3) * 2 + functional.dropout(x, 0.5, training=True), torch.randn(2)

    x = torch.ones(3)
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AtenFallbackWarning)
        found = compiled(noisy)(x)
    torch.manual_seed(3)
    expected = torch._dynamo.optimize("aot_eager")(noisy)(x)
    for one, other in zip(found, expected):
        assert_close(one, other)


def test_value_dependent_control_flow_breaks_the_graph() -> None:
    def branches(x: Any) -> Any:
        if x.sum() > 0:
            return x * 2
        return x[x < 0] - 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AtenFallbackWarning)
        step = compiled(branches)
        for x in (torch.ones(3), -torch.ones(3)):
            assert_close(step(x), branches(x))


def trained(model: Any, make: Callable[[Any], Any], batch: Callable[[int], Any], steps: int) -> list[float]:
    """The largest difference of the losses of two copies, one compiled, for each step."""
    other = copy.deepcopy(model)
    step = make(other)
    pairs = [(m, f, torch.optim.Adam(m.parameters(), 1e-3)) for m, f in ((model, model), (other, step))]
    apart = []
    for number in range(steps):
        losses = []
        for _, function, optimizer in pairs:
            x, y = batch(number)
            optimizer.zero_grad()
            loss = functional.cross_entropy(function(x), y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        apart.append(abs(losses[0] - losses[1]))
    for (name, one), other_one in zip(model.named_buffers(), other.buffers()):
        torch.testing.assert_close(one, other_one, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    return apart


class Net(nn.Module):
    """A small convolutional network with batch normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.last = nn.Linear(8 * 16, 10)

    def forward(self, x: Any) -> Any:
        return self.last(functional.max_pool2d(self.norm(self.conv(x)).relu(), 2).flatten(1))


def test_sixty_steps_of_adam_stay_close_to_eager() -> None:
    data = [(torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))) for _ in range(60)]
    apart = trained(Net(), compiled, lambda number: data[number], 60)
    assert max(apart) < 1e-5


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (3, 8)),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 3, groups=8),
            nn.GroupNorm(2, 8), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5),
        ),
        (2, 3, 12, 12),
    ),
    "upwards": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 4, 2, stride=2), nn.ReLU(), nn.Upsample(scale_factor=2)),
        (2, 2, 4, 4),
    ),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), (2, 5, 16)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("training", [False, True])
def test_modules_written_by_others(name: str, training: bool) -> None:
    make, shape = MODELS[name]
    model = make().train(training)
    other = copy.deepcopy(model)
    x, y = (torch.randn(shape).requires_grad_(training) for _ in range(2))
    with torch.no_grad():
        y.copy_(x)
    expected, found = model(x), compiled(other)(y)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))
    if not training:
        return
    for result in (expected, found):
        (result * torch.linspace(0, 1, result.numel()).reshape(result.shape)).sum().backward()
    pairs = [(x.grad, y.grad), *[(a.grad, b.grad) for a, b in zip(model.parameters(), other.parameters())]]
    for one, two in pairs:
        torch.testing.assert_close(two, one, rtol=0, atol=1e-4 * max(float(one.abs().max()), 1e-2))


def test_a_recurrent_layer_is_compiled_where_dynamo_may() -> None:
    model = nn.LSTM(4, 6, num_layers=2, batch_first=True)
    x = torch.randn(3, 5, 4)
    with torch._dynamo.config.patch(allow_rnn=True):
        step = compiled(model)
        before = GlobalCounters.kernel_count
        found, (h, c) = step(x)
        assert GlobalCounters.kernel_count > before
    expected, (eh, ec) = model(x)
    for one, other in ((found, expected), (h, eh), (c, ec)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int16, torch.float32])
def test_numbers_in_steps_are_rounded_as_aten_rounds_them(dtype: Any) -> None:
    def numbers() -> Any:
        return [torch.arange(*args, dtype=dtype) for args in ((5, 0, -0.5), (0.5, 9, 1.5), (-2.5, 4), (7,))]

    for found, expected in zip(compiled(numbers)(), numbers()):
        assert_close(found, expected)


def test_options_are_refused() -> None:
    with pytest.raises(Exception, match="no mode"):
        compiled(lambda x: x + 1, options={"fast": True})(torch.ones(2))


# *** the division of a graph ***


def graph_of(function: Any, *tensors: Any) -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode="fake")(*tensors)


def test_parts_run_in_dependence_order() -> None:
    def program(x: Any) -> Any:
        a = x.sin()
        b = a.cos()
        c = a.exp()
        d = b + c
        e = d.cos()
        return e * c

    graph = graph_of(program, torch.ones(3)).graph
    parts = divide_graph(graph, lambda node: "cos" in str(node.target), lambda node: False)
    assert [part.by_aten for part in parts] == [False, True, False, True, False]
    known = {node for node in graph.nodes if node.op == "placeholder"}
    for part in parts:
        assert set(part.inputs) <= known
        known |= set(part.nodes)
    assert isinstance(parts[0], GraphPart)


def test_random_nodes_keep_their_order() -> None:
    def program(x: Any) -> Any:
        first = torch.special.i0(torch.rand(3) + x).sin()
        return torch.rand(3) + first, torch.rand(3)

    module = graph_of(program, torch.ones(3))
    torch.manual_seed(1)
    found = TorchProgram(module)(torch.ones(3))
    torch.manual_seed(1)
    for one, other in zip(found, program(torch.ones(3))):
        torch.testing.assert_close(one, other)


def test_a_graph_with_a_write_is_not_split() -> None:
    def program(x: Any) -> Any:
        y = x + 1
        x.mul_(2)
        return y + x

    module = graph_of(program, torch.ones(3))
    run = TorchProgram(module)
    assert set(run.left.values()) == {"the graph has a write"}
    x = torch.ones(3)
    assert run(x)[0].tolist() == [4, 4, 4]
    assert x.tolist() == [2, 2, 2]


def test_the_table_names_operations_of_pytorch() -> None:
    names = supported_operations()
    assert len(names) > 190
    for name in names:
        packet, _, overload = name.partition(".")
        assert any(hasattr(space, packet) for space in (torch.ops.aten, torch.ops.prims)), name
        if overload:
            assert hasattr(getattr(torch.ops.aten, packet), overload)
