"""Tensors that the function creates in its first call and assigns to later, above all caches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tinyexplore import Tensor, TinyJit, Variable, nn
from tinyexplore.jit import JitError

MAKERS: dict[str, Callable[..., Tensor]] = {
    "lazy": Tensor.zeros,
    "contiguous": lambda *shape: Tensor.zeros(*shape).contiguous(),
    "realized": lambda *shape: Tensor.zeros(*shape).contiguous().realize(),
}


def keep(cache: Tensor, values: Tensor, start: object, count: int) -> Tensor:
    """`values` from `start` on, as the LLaMA of this family writes it."""
    cache.shrink((None, None, (start, start + count), None)).assign(values).realize()  # type: ignore[operator]
    return cache


def keep_by_index(cache: Tensor, values: Tensor, start: object, count: int) -> Tensor:
    cache[:, :, start : start + count] = values  # type: ignore[operator,misc]
    return cache.realize()


def keep_whole(cache: Tensor, values: Tensor, start: object, count: int) -> Tensor:
    """As tinygrad's GPT-2 did: the whole cache is assigned again."""
    end = start + count  # type: ignore[operator]
    found = cache.shrink((None, None, (0, start), None)).cat(values, dim=2)
    return cache.assign(found.pad((None, None, (0, CONTEXT - end), None)).contiguous()).realize()


CONTEXT, DIM, HEADS, VOCABULARY = 32, 16, 2, 20


class Gpt:
    """Two layers, and a cache of keys and values that the first call makes."""

    def __init__(self, make: Callable[..., Tensor], keep: Callable[[Tensor, Tensor, object, int], Tensor]) -> None:
        Tensor.manual_seed(4)
        self.make, self.keep = make, keep
        self.tokens, self.places = nn.Embedding(VOCABULARY, DIM), nn.Embedding(CONTEXT, DIM)
        self.layers = [
            (nn.LayerNorm(DIM), nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)) for _ in range(2)
        ]
        self.out = nn.Linear(DIM, VOCABULARY, bias=False)
        self.caches: list[Tensor | None] = [None, None]

    def __call__(self, tokens: Tensor, start: object) -> Tensor:
        count = tokens.shape[1]
        seen = start + count  # type: ignore[operator]
        places = Tensor.arange(CONTEXT).reshape(1, CONTEXT).shrink((None, (start, seen)))
        x = self.tokens(tokens) + self.places(places)
        mask = Tensor.full((1, 1, count, seen), float("-inf")).triu(seen - count + 1) if count > 1 else None
        for number, (norm, mix, join, further) in enumerate(self.layers):
            cache = self.caches[number]
            if cache is None:
                self.caches[number] = cache = self.make(2, HEADS, CONTEXT, DIM // HEADS)
            query, key, value = mix(norm(x)).reshape(count, 3, HEADS, DIM // HEADS).permute(1, 2, 0, 3).chunk(3)
            kept = self.keep(cache, key.cat(value), start, count).shrink((None, None, (0, seen), None))
            found = query.scaled_dot_product_attention(kept[0:1], kept[1:2], mask)
            x = x + join(found.transpose(1, 2).reshape(1, count, DIM))
            x = x + further(x).gelu()
        return self.out(x[:, -1]).realize()


def generated(
    model: Gpt, step: Callable[..., Tensor], place: Callable[[int], object], prompt: list[int]
) -> tuple[list[int], np.ndarray]:
    """20 tokens after the prompt, which goes in without `step`, and the scores that each was chosen by."""
    start, tokens, scores = 0, list(prompt), []
    if len(prompt) > 1:
        model(Tensor([prompt[:-1]]), 0)
        start = len(prompt) - 1
    for _ in range(20):
        found = step(Tensor([tokens[start:]]), place(start)).numpy()
        start = len(tokens)
        tokens.append(int(found.argmax()))
        scores.append(found)
    return tokens, np.stack(scores)


@pytest.mark.parametrize(
    ("maker", "way", "prompt"),
    [
        *[(maker, keep, [3]) for maker in MAKERS],
        *[("lazy", way, [3]) for way in (keep_by_index, keep_whole)],
        ("realized", keep, [3, 1, 7]),
        ("contiguous", keep_whole, [3, 1, 7]),
    ],
)
def test_a_cache_made_in_the_step_replays(
    maker: str, way: Callable[[Tensor, Tensor, object, int], Tensor], prompt: list[int]
) -> None:
    plain, jitted = Gpt(MAKERS[maker], way), Gpt(MAKERS[maker], way)
    jit = TinyJit(jitted.__call__)
    tokens, scores = generated(plain, plain, int, prompt)
    found, found_scores = generated(jitted, jit, Variable("start", 0, CONTEXT - 1).bind, prompt)
    assert found == tokens and jit.captured is not None
    np.testing.assert_allclose(found_scores, scores, atol=1e-6)


class Cached:
    """Its first call makes a cache and reads it; later ones compute with it, and assign to it then."""

    def __init__(self, make: Callable[..., Tensor], in_part: bool) -> None:
        self.make, self.in_part = make, in_part
        self.cache: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.cache is None:
            self.cache = self.make(4)
            return (self.cache + x).realize()
        found = (self.cache * 2 + x).realize()
        if self.in_part:
            self.cache[1:3] = found[1:3]
        else:
            self.cache.assign(found)
        return (self.cache + 1).realize()


@pytest.mark.parametrize("in_part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("maker", [*MAKERS, "computed"])
def test_lazy_state_of_the_first_call_is_captured_once_it_is_realized(maker: str, in_part: bool) -> None:
    make = MAKERS.get(maker, lambda *shape: Tensor.ones(*shape) * 3)
    plain = Cached(make, in_part)
    jit = TinyJit(Cached(make, in_part))
    inputs = [Tensor([float(number), 2.0, 1.0, 0.5]) for number in range(6)]
    assert [jit(x).tolist() for x in inputs] == [plain(x).tolist() for x in inputs]
    assert jit.captured is not None


def test_assigning_to_a_new_lazy_tensor_in_each_call_raises_an_error() -> None:
    states = [Tensor([1.0, 2.0]) * number for number in range(10)]

    def step(x: Tensor) -> Tensor:
        state = states.pop()
        total = (state.sqrt().sum() + x.sum()).realize()
        kept.append(state.assign(state * x))
        return total

    kept: list[Tensor] = []
    call, x = TinyJit(step), Tensor([1.0, 2.0]).realize()
    for _ in range(3):
        call(x)
    with pytest.raises(JitError, match="did not lie in memory"):
        call(x)
