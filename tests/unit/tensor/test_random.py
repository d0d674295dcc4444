"""The counter-based generator: published vectors, distributions, reproducibility."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reference import evaluate
from tinyexplore import Tensor, TinyJit, dtypes, nn
from tinyexplore.tensor.random import threefry

# counter, key → words: Threefry-2x32 with 20 rounds, from the known-answer file of Random123
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_threefry_gives_the_published_words(
    counter: tuple[int, int], key: tuple[int, int], words: tuple[int, int]
) -> None:
    parts = [Tensor([word], dtype=dtypes.uint32) for word in (*counter, *key)]
    found = threefry(*parts)
    assert tuple(int(evaluate(word.lazydata)[0]) for word in found) == words
    assert tuple(word.tolist()[0] for word in found) == words


def test_a_seed_repeats_its_numbers_and_calls_differ() -> None:
    Tensor.manual_seed(5)
    first, second = Tensor.rand(8).numpy(), Tensor.rand(8).numpy()
    Tensor.manual_seed(5)
    np.testing.assert_array_equal(Tensor.rand(8).numpy(), first)
    assert not np.array_equal(first, second)
    Tensor.manual_seed(6)
    assert not np.array_equal(Tensor.rand(8).numpy(), first)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON", ("LLVM", "LLVM:1")], ids=str)
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_numbers_do_not_depend_on_the_device(device: Any, size: int) -> None:
    """The definition in plain Python: first words, then second words, of counters from the count on."""
    Tensor.manual_seed(5)
    found = [Tensor.rand(size, device=device).tolist(), Tensor.rand(size, device=device).tolist()]
    half = (size + 1) // 2
    for count, values in zip((0, size), found):
        counters = [(count + place, count + place + half) for place in range(half)]
        words = [[*threefry_words(counter, (5, 0))] for counter in counters]
        flat = [pair[0] for pair in words] + [pair[1] for pair in words]
        assert values == [(word >> 8) * 2.0**-24 for word in flat[:size]]


def threefry_words(counter: tuple[int, int], key: tuple[int, int]) -> tuple[int, int]:
    parts = [Tensor([word], dtype=dtypes.uint32, device="PYTHON") for word in (*counter, *key)]
    first, second = threefry(*parts)
    return first.item(), second.item()


RECORDED = json.loads((Path(__file__).parents[2] / "fixtures" / "random" / "tinygrad.json").read_text())


def drawn(name: str, args: list, kwargs: dict) -> list[Tensor]:
    """The result of one recorded call."""
    if name == "dropout":
        with Tensor.train():
            return [Tensor(args[0]).dropout(args[1])]
    if name == "multinomial":
        return [Tensor(args[0]).multinomial(*args[1:])]
    if hasattr(nn, name):
        layer = getattr(nn, name)(*args, **kwargs)
        return [one for one in (layer.weight, getattr(layer, "bias", None)) if one is not None]
    return [getattr(Tensor, name)(*args, **kwargs)]


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: f"seed {entry['seed']}")
def test_numbers_for_a_seed_are_those_recorded_from_tinygrad(entry: dict) -> None:
    """Bit by bit but for what goes through sine and logarithm, or a bound rounded elsewhere (`fixtures/random`)."""
    Tensor.manual_seed(entry["seed"])
    for call in entry["calls"]:
        is_exact = call["name"] in ("rand", "randint", "dropout", "multinomial")
        for found, expected in zip(drawn(call["name"], call["args"], call["kwargs"]), call["results"], strict=True):
            assert list(found.shape) == expected["shape"]
            values = np.array(expected["values"], found.numpy().dtype).reshape(found.shape)
            if is_exact:
                np.testing.assert_array_equal(found.numpy(), values, err_msg=str(call["name"]))
            else:
                np.testing.assert_allclose(found.numpy(), values, rtol=2e-6, atol=5e-7, err_msg=str(call["name"]))


def test_a_jit_advances_the_generator_as_eager_code_does() -> None:
    def draw() -> Tensor:
        return (Tensor.rand(5).cat(Tensor.randn(3)) + Tensor.randint(8)).realize()

    Tensor.manual_seed(7)
    expected = [draw().tolist() for _ in range(5)] + [Tensor.rand(3).tolist()]
    Tensor.manual_seed(7)
    jit = TinyJit(draw)
    assert [jit().tolist() for _ in range(5)] + [Tensor.rand(3).tolist()] == expected


def test_wide_ranges_of_ints_reach_every_one() -> None:
    Tensor.manual_seed(2)
    found = Tensor.randint(4000, low=-(2**31), high=2**31 - 1).numpy()
    assert 0.45 < (found & 1).mean() < 0.55 and 0.45 < (found < 0).mean() < 0.55
    assert len(set(found.tolist())) > 3990
    small = Tensor.randint(500, low=-120, high=120, dtype="int8").numpy()
    assert small.min() < -110 and small.max() > 110


def test_distributions() -> None:
    Tensor.manual_seed(1)
    u = Tensor.rand(20000).numpy()
    assert 0 <= u.min() and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.005
    n = Tensor.randn(20000).numpy()
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.02 and abs((n**3).mean()) < 0.1
    whole = Tensor.randint(20000, low=-3, high=4).numpy()
    assert set(whole) == set(range(-3, 4)) and whole.dtype == np.int32
    assert np.abs(np.bincount(whole + 3) / 20000 - 1 / 7).max() < 0.02
    shifted = Tensor.normal(20000, mean=3, std=2).numpy()
    assert abs(shifted.mean() - 3) < 0.06 and abs(shifted.std() - 2) < 0.04
    ranged = Tensor.uniform(20000, low=-2, high=6).numpy()
    assert -2 <= ranged.min() and ranged.max() < 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_random_floats_of_every_type_stay_below_one(dtype: str) -> None:
    Tensor.manual_seed(2)
    u = Tensor.rand(20000, dtype=dtype)
    assert u.dtype.name == dtype
    values = u.numpy()
    assert 0 <= values.min() and values.max() < 1 and abs(float(values.astype("float64").mean()) - 0.5) < 0.01


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 1.0), (0.0, 1e-3), (100.0, 101.0), (-6e4, 6e4), (-3e38, 3e38), (-1.0, 0.0), (2, 5)]
)
def test_uniform_floats_stay_below_the_end(dtype: str, low: float, high: float) -> None:
    if dtype == "float16" and high > 1e5:
        low, high = -65504.0, 65504.0
    Tensor.manual_seed(4)
    found = Tensor.uniform(40000, low=low, high=high, dtype=dtype)
    low, high = (Tensor([end], dtype=dtype).double().item() for end in (low, high))
    values = found.double().numpy()
    assert found.dtype.name == dtype and low <= values.min() and values.max() < high
    if high - low > 1 or dtype != "bfloat16":  # which has but two numbers from 100 to 101
        assert abs((values / (high / 2 - low / 2) - low / (high / 2 - low / 2)).mean() - 1) < 0.05


def test_initial_weights_have_the_published_spread() -> None:
    Tensor.manual_seed(3)
    assert abs(Tensor.kaiming_normal(100, 200).numpy().std() - (2 / 1.0001 / 200) ** 0.5) < 2e-3
    for name, bound in (
        ("kaiming_uniform", (6 / 1.0001 / 200) ** 0.5),
        ("glorot_uniform", (6 / 300) ** 0.5),
        ("scaled_uniform", 20000**-0.5),
    ):
        values = getattr(Tensor, name)(100, 200).numpy()
        assert 0.98 * bound < np.abs(values).max() <= bound


def test_multinomial_draws_by_weight() -> None:
    Tensor.manual_seed(4)
    drawn = Tensor([0.0, 1.0, 3.0, 0.0]).multinomial(2000, replacement=True).numpy()
    shares = np.bincount(drawn, minlength=4) / 2000
    assert shares[0] == shares[3] == 0 and abs(shares[2] - 0.75) < 0.05


def test_multinomial_without_replacement_draws_each_once() -> None:
    Tensor.manual_seed(4)
    drawn = Tensor([[1.0, 2.0, 0.0, 5.0]] * 400).multinomial(3, replacement=False).numpy()
    assert drawn.shape == (400, 3)
    np.testing.assert_array_equal(np.sort(drawn, 1), np.tile([0, 1, 3], (400, 1)))
    assert abs((drawn[:, 0] == 3).mean() - 5 / 8) < 0.08
    assert sorted(Tensor([1.0, 1.0, 1.0]).multinomial(3).tolist()) == [0, 1, 2]
    with pytest.raises(ValueError, match="without replacement: "):
        Tensor([1.0, 1.0]).multinomial(3)


def test_normal_ints_are_rounded_towards_zero() -> None:
    Tensor.manual_seed(3)
    whole = Tensor.randn(200, dtype="int32").numpy()
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(whole, Tensor.randn(200).numpy().astype(np.int32))


def test_invalid_requests_raise_an_error() -> None:
    with pytest.raises(TypeError, match="need ints"):
        Tensor.randint(3, low=0.5, high=4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="low < high"):
        Tensor.randint(3, low=4, high=4)
    with pytest.raises(ValueError, match="0 ≤ p ≤ 1"):
        Tensor.ones(3).dropout(1.5)
