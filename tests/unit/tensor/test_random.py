"""The counting generator: published vectors, distributions, repeatability."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import evaluate
from tinyexplore import Tensor, dtypes
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


def test_numbers_do_not_depend_on_size_or_device() -> None:
    Tensor.manual_seed(5)
    many = Tensor.rand(3, 7).numpy().reshape(-1)
    Tensor.manual_seed(5)
    np.testing.assert_array_equal(Tensor.rand(5, device="PYTHON").numpy(), many[:5])


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
    with pytest.raises(ValueError, match="without replacement: there are too few"):
        Tensor([1.0, 1.0]).multinomial(3)


def test_normal_ints_are_rounded_towards_zero() -> None:
    Tensor.manual_seed(3)
    whole = Tensor.randn(200, dtype="int32").numpy()
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(whole, Tensor.randn(200).numpy().astype(np.int32))


def test_wrong_requests_are_told() -> None:
    with pytest.raises(ValueError, match="randint gives ints"):
        Tensor.rand(3, dtype="int32")
    with pytest.raises(TypeError, match="need ints"):
        Tensor.randint(3, low=0.5, high=4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="low < high"):
        Tensor.randint(3, low=4, high=4)
    with pytest.raises(ValueError, match="0 ≤ p ≤ 1"):
        Tensor.ones(3).dropout(1.5)
