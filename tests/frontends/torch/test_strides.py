"""as_strided and as_strided_scatter compared with eager PyTorch: they use the storage, not the values."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the package torch is missing: pip install torch")

from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from tests.frontends.torch.test_backend import compiled
from tinyexplore.frontends.torch.backend import decompositions
from tinyexplore.frontends.torch.operations.strides import blocks_of, overlaps, span
from tinyexplore.frontends.torch.program import AtenFallbackWarning, TorchProgram

COUNT = 120  # elements in the storage of each base
BASES: dict[str, Callable[[], Any]] = {
    "row-major": lambda: torch.randn(4, 3, 10),
    "one axis": lambda: torch.randn(120),
    "transposed": lambda: torch.randn(12, 10).t(),
    "permuted": lambda: torch.randn(2, 3, 4, 5).permute(2, 0, 3, 1),
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.randn(6, 1, 20).expand(6, 4, 20),
    "axes of size 1": lambda: torch.randn(1, 12, 1, 10).transpose(1, 3),
    "after an offset": lambda: torch.randn(17, 10)[5:],
}


def programs(function: Any, *tensors: Any) -> TorchProgram:
    """The ATen graph of a function as a program, with writes and views replaced by operations without writes."""
    trace = make_fx(functionalize(function, remove="mutations"), decompositions(), tracing_mode="fake")
    return TorchProgram(trace(*tensors), replay=False)


def views(generator: random.Random, first: int, may_overlap: bool = True) -> list[tuple[Any, Any, Any]]:
    """Random sizes, strides and offsets that fit in a base that begins at `first` in its storage."""
    found: list[tuple[Any, Any, Any]] = []
    while len(found) < 24:
        rank = generator.randrange(5)
        size = tuple([generator.choice((1, 1, 2, 3, 4, 5, 7)) for _ in range(rank)])
        stride = tuple([generator.choice((0, 1, 1, 2, 3, 5, 10, 12, 20, 30, 60)) for _ in range(rank)])
        room = COUNT - span(size, stride)
        if room < 0 or (overlaps(size, stride) and not may_overlap):
            continue
        offset = generator.choice((None, first, first + generator.randint(0, room)))
        found.append((size, stride, offset))
    return found


@pytest.mark.parametrize("name", BASES)
def test_random_views_of_each_layout(name: str) -> None:
    torch.manual_seed(1)
    base = BASES[name]()
    given = views(random.Random(name), base.storage_offset())
    assert any(overlaps(size, stride) for size, stride, _ in given)
    assert any(blocks_of(size, stride, 0, COUNT) for size, stride, _ in given)
    assert not all(blocks_of(size, stride, 0, COUNT) for size, stride, _ in given)

    def strided(x: Any) -> Any:
        return [torch.as_strided(x, *one) * 2 for one in given] + [torch.as_strided_copy(x, *one) for one in given]

    program = programs(strided, base)
    assert not program.left
    with warnings.catch_warnings():
        warnings.simplefilter("error", AtenFallbackWarning)
        found = program(base)
    for one, expected in zip(found, strided(base)):
        assert one.shape == expected.shape and torch.equal(one, expected)


@pytest.mark.parametrize("name", BASES)
def test_random_writes_to_each_layout(name: str) -> None:
    torch.manual_seed(2)
    base = BASES[name]()
    given = views(random.Random(name), base.storage_offset(), may_overlap=False)
    if name == "expanded":  # PyTorch writes into a contiguous copy
        given = [one for one in given if one[2] is None]
    sources = [torch.randn(size) for size, _, _ in given]

    def written(x: Any, *parts: Any) -> Any:
        return [torch.as_strided_scatter(x, part, *one) + 1 for part, one in zip(parts, given)]

    program = programs(written, base, *sources)
    assert not program.left
    for one, expected in zip(program(base, *sources), written(base, *sources)):
        assert one.shape == expected.shape and torch.equal(one, expected)


@pytest.mark.parametrize("name", [name for name in BASES if name != "expanded"])
def test_random_gradients(name: str) -> None:
    torch.manual_seed(3)
    base = BASES[name]()
    given = views(random.Random(name), base.storage_offset())[:10]
    weights = [torch.randn(size) for size, _, _ in given]

    def products(x: Any, *others: Any) -> Any:
        return [
            (torch.as_strided(x * x, size, stride) * other).sum() for other, (size, stride, _) in zip(others, given)
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("error", AtenFallbackWarning)
        x = base.detach().requires_grad_()
        assert x.stride() == base.stride()
        found, expected = compiled(products)(x, *weights), products(x, *weights)
        for one, other in zip(found, expected):
            (here,), (eager,) = (torch.autograd.grad(value, x, retain_graph=True) for value in (one, other))
            torch.testing.assert_close(here, eager, rtol=1e-5, atol=1e-5)


def test_views_without_elements() -> None:
    def empty(x: Any) -> Any:
        return torch.as_strided(x, (0, 3), (3, 1)) + 1, torch.as_strided_scatter(x, x[:0], (0,), (1,)) + 1

    x = torch.randn(6)
    program = programs(empty, x)
    assert not program.left
    for one, expected in zip(program(x), empty(x)):
        assert one.shape == expected.shape and torch.equal(one, expected)
    none = torch.randn(0, 4)
    assert programs(lambda x: torch.as_strided(x, (2, 0), (1, 1)) + 1, none)(none)[0].shape == (2, 0)


@pytest.mark.parametrize(
    ("base", "size", "stride", "offset"),
    [
        (lambda: torch.randn(8, 8)[:, :4], (3, 2), (8, 1), None),  # a storage with gaps
        (lambda: torch.randn(16)[4:8], (4,), (2,), 1),  # elements outside of the base
        (lambda: torch.randn(16)[4:8], (6,), (1,), None),
    ],
)
def test_views_of_other_elements_of_the_storage_run_in_aten(base: Any, size: Any, stride: Any, offset: Any) -> None:
    x = base()

    def strided(x: Any) -> Any:
        return torch.as_strided(x, size, stride, offset) * 2

    program = programs(strided, x)
    assert len(program.left) == 1
    assert torch.equal(program(x)[0], strided(x))


def test_writes_to_one_position_twice_run_in_aten() -> None:
    def written(x: Any, part: Any) -> Any:
        return torch.as_strided_scatter(x, part, (3, 2), (1, 1))

    x, part = torch.zeros(6), torch.ones(3, 2)
    program = programs(written, x, part)
    assert len(program.left) == 1
    assert torch.equal(program(x, part)[0], written(x, part))


def test_a_call_with_another_offset_reads_its_own_storage() -> None:
    step = compiled(lambda x: torch.as_strided(x, (2, 2), (1, 1), 0) * 2)
    whole = torch.arange(12.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AtenFallbackWarning)
        for start in (0, 4, 0, 8):
            x = whole[start : start + 4]
            assert torch.equal(step(x), torch.as_strided(x, (2, 2), (1, 1), 0) * 2)


def test_compiled_views_gradients_and_writes() -> None:
    def program(x: Any) -> Any:
        y = torch.as_strided(x.exp(), (4, 3), (2, 1), 1)
        z = torch.zeros(20)
        z.as_strided((4, 3), (5, 1)).copy_(y)
        return z.sin(), y.sum(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error", AtenFallbackWarning)
        x, other = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
        step = compiled(program)
        for _ in range(3):
            for one, expected in zip(step(x), program(x)):
                torch.testing.assert_close(one, expected)
            found = torch.autograd.grad(sum(one.sum() for one in step(x)), x)
            expected = torch.autograd.grad(sum(one.sum() for one in program(x)), x)
            torch.testing.assert_close(found, expected)
        torch.testing.assert_close(step(other.t())[0], program(other.t())[0])


def test_a_returned_view_keeps_its_storage() -> None:
    def program(x: Any) -> Any:
        view = torch.as_strided(x.exp(), (3, 4), (1, 3), 2)
        return view, view.unfold(1, 2, 1)

    x = torch.randn(20)
    for one, expected in zip(compiled(program)(x), program(x)):
        assert one.stride() == expected.stride()
        torch.testing.assert_close(one, expected)
