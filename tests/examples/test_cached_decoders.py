"""Small tinygrad-style decoders: cached decoding equals full recomputation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tinyexplore import Context, Tensor, TinyJit, Variable, nn
from tinyexplore.nn.state import get_state_dict

MAX_LENGTH, WIDTH, HEADS, WORDS = 20, 16, 4, 23
TOLERANCE = 2e-5


@pytest.fixture(params=["LLVM", "PYTHON"], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEVICE=request.param):
        yield request.param


def with_values(model: Any) -> Any:
    """The model, with parameters that are the same in every run."""
    generator = np.random.default_rng(7)
    for name, parameter in get_state_dict(model).items():
        if name not in ("angles", "mask"):
            values = generator.standard_normal(parameter.shape) / np.sqrt(parameter.shape[-1])
            values += len(parameter.shape) == 1
            parameter.assign(Tensor(values.astype(np.float32))).realize()
    return model


def turned(x: Tensor, table: Tensor) -> Tensor:
    """Pairs of numbers turned by the angles of their places."""
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    cos, sin = table[..., 0:1], table[..., 1:2]
    a, b = pairs[..., 0:1], pairs[..., 1:2]
    return (a * cos - b * sin).cat(a * sin + b * cos, dim=-1).flatten(3)


class RotaryBlock:
    """Attention with fewer heads for keys than for queries; the cache is made when it is first needed."""

    def __init__(self) -> None:
        self.q, self.k, self.v = nn.Linear(WIDTH, WIDTH, False), nn.Linear(WIDTH, 8, False), nn.Linear(WIDTH, 8, False)
        self.o, self.up, self.gate, self.down = (nn.Linear(WIDTH, WIDTH, False) for _ in range(4))
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def __call__(self, x: Tensor, start: Any, angles: Tensor, mask: Tensor | None) -> Tensor:
        batch, count, _ = x.shape
        y = self.first(x)
        query = turned(self.q(y).reshape(batch, count, HEADS, -1), angles)
        key = turned(self.k(y).reshape(batch, count, 2, -1), angles)
        value = self.v(y).reshape(batch, count, 2, -1)
        if not hasattr(self, "cache"):
            self.cache = Tensor.zeros(2, batch, MAX_LENGTH, 2, 4).contiguous().realize()
        self.cache.shrink((None, None, (start, start + count), None, None)).assign(Tensor.stack(key, value)).realize()
        if start > 0:
            key = self.cache[0].shrink((None, (0, start + count), None, None))
            value = self.cache[1].shrink((None, (0, start + count), None, None))
        query, key, value = (part.transpose(1, 2) for part in (query, doubled(key), doubled(value)))
        seen = query.scaled_dot_product_attention(key, value, mask).transpose(1, 2).reshape(batch, count, -1)
        x = x + self.o(seen)
        y = self.second(x)
        return (x + self.down(self.gate(y).silu() * self.up(y))).contiguous()


def doubled(x: Tensor) -> Tensor:
    """Each head of keys for two of queries."""
    batch, count, heads, width = x.shape
    return x.repeat((1, 1, 1, 2)).reshape(batch, count, 2 * heads, width)


class RotaryDecoder:
    def __init__(self, is_jitted: bool) -> None:
        self.words, self.blocks = nn.Embedding(WORDS, WIDTH), [RotaryBlock(), RotaryBlock()]
        self.norm, self.out = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, False)
        speeds = 1.0 / (100 ** (Tensor.arange(0, 4, 2) / 4))
        angles = Tensor.arange(MAX_LENGTH).unsqueeze(1) * speeds.unsqueeze(0)
        self.angles = Tensor.stack(angles.cos(), angles.sin(), dim=-1).reshape(1, MAX_LENGTH, 1, 2, 2).contiguous()
        self.step: Callable[..., Tensor] = TinyJit(self.forward) if is_jitted else self.forward

    def forward(self, words: Tensor, start: Any) -> Tensor:
        count = words.shape[1]
        angles = self.angles.shrink((None, (start, start + count), None, None, None))
        mask = None
        if count > 1:
            mask = Tensor.full((1, 1, count, start + count), float("-inf")).triu(start + 1).realize()
        x = self.words(words)
        for block in self.blocks:
            x = block(x, start, angles, mask)
        return self.out(self.norm(x))[:, -1].realize()

    def __call__(self, words: list[int], start: int) -> np.ndarray:
        if len(words) == 1:
            return self.step(Tensor([words]), Variable("start", 0, MAX_LENGTH).bind(start)).numpy()
        return self.forward(Tensor([words]), start).numpy()


TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("prompt", [1, 5])
def test_decoding_word_by_word_equals_decoding_at_once(is_jitted: bool, prompt: int) -> None:
    model = with_values(RotaryDecoder(is_jitted))
    found = [
        model(TEXT[:prompt], 0)
    ]  # which makes the cache; of one word, in the step that TinyJit is going to capture
    found += [model([word], place) for place, word in enumerate(TEXT[prompt:], prompt)]
    at_once = [with_values(RotaryDecoder(False))(TEXT[:length], 0) for length in range(2, len(TEXT) + 1)]
    expected = at_once[max(prompt - 2, 0) :]
    np.testing.assert_allclose(np.array(found[-len(expected) :]), np.array(expected), atol=TOLERANCE, rtol=TOLERANCE)


def test_a_captured_step_is_not_replayed_if_a_guard_fails() -> None:
    model = with_values(RotaryDecoder(True))
    model(TEXT[:5], 0)
    for place in (5, 6, 7):
        model([TEXT[place]], place)
    with pytest.raises(RuntimeError, match=r"start > 0,.*start=0"):
        model([TEXT[0]], 0)


class Attention:
    """`kind`: over itself with a cache that grows, over what was encoded with keys made once, or plain."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.query, self.key, self.value = (
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, WIDTH, False),
            nn.Linear(WIDTH, WIDTH),
        )
        self.out = nn.Linear(WIDTH, WIDTH)

    def __call__(self, x: Tensor, other: Tensor | None = None, mask: Tensor | None = None, past: Any = None) -> Tensor:
        source = x if other is None else other
        key, value = self.key(source), self.value(source)
        if self.kind == "other":
            if not hasattr(self, "keys"):
                self.keys, self.values = key, value
            else:
                self.keys.assign(key).realize()
                self.values.assign(value).realize()
        elif self.kind == "self":
            if not hasattr(self, "keys"):
                self.keys, self.values = (Tensor.zeros(x.shape[0], MAX_LENGTH, WIDTH) for _ in range(2))
            key = self.keys.shrink((None, (0, past), None)).cat(key, dim=1)
            value = self.values.shrink((None, (0, past), None)).cat(value, dim=1)
            room = MAX_LENGTH - past - x.shape[1]
            self.keys.assign(key.pad((None, (0, room), None)).contiguous()).realize()
            self.values.assign(value.pad((None, (0, room), None)).contiguous()).realize()
        parts = [
            part.reshape(*part.shape[:2], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)
            for part in (self.query(x), key, value)
        ]
        count = x.shape[1]
        seen = Tensor.scaled_dot_product_attention(*parts, None if mask is None else mask[:count, :count])  # type: ignore[call-arg]
        return self.out(seen.permute(0, 2, 1, 3).flatten(start_dim=2))


class Layer:
    def __init__(self, is_decoder: bool) -> None:
        self.norm, self.attention = nn.LayerNorm(WIDTH), Attention("self" if is_decoder else "")
        self.other = Attention("other") if is_decoder else None
        self.other_norm = nn.LayerNorm(WIDTH) if is_decoder else None
        self.mlp = [nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), Tensor.gelu, nn.Linear(4 * WIDTH, WIDTH)]

    def __call__(self, x: Tensor, other: Tensor | None = None, mask: Tensor | None = None, past: Any = None) -> Tensor:
        x = x + self.attention(self.norm(x), mask=mask, past=past)
        if self.other is not None and self.other_norm is not None:
            x = x + self.other(self.other_norm(x), other)
        return (x + x.sequential(self.mlp)).realize()


class Listener:
    """Sound → text: convolutions and layers that encode, layers that decode with keys of both kept."""

    def __init__(self) -> None:
        self.conv = [nn.Conv1d(6, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)]
        self.encoder, self.decoder = [Layer(False)], [Layer(True), Layer(True)]
        self.words, self.places = nn.Embedding(WORDS, WIDTH), Tensor.zeros(MAX_LENGTH, WIDTH).contiguous()
        self.mask = Tensor.full((MAX_LENGTH, MAX_LENGTH), float("-inf")).triu(1).realize()
        self.norm = nn.LayerNorm(WIDTH)
        self.encode = TinyJit(self.encoded)
        self.steps: dict[Any, Any] = defaultdict(lambda: TinyJit(self.forward))

    def encoded(self, sound: Tensor) -> Tensor:
        x = self.conv[1](self.conv[0](sound).gelu()).gelu().permute(0, 2, 1)
        return x.sequential(self.encoder).realize()

    def __call__(self, words: list[int], start: int, heard: Tensor) -> np.ndarray:
        past = Variable("past", 1, MAX_LENGTH - 1).bind(start) if start else 0
        return self.steps[len(words), start > 0](Tensor([words]), past, heard).numpy()

    def forward(self, words: Tensor, past: Any, heard: Tensor) -> Tensor:
        x = self.words(words) + self.places.shrink(((past, past + words.shape[-1]), None, None))
        for layer in self.decoder:
            x = layer(x, heard, self.mask, past)
        return (self.norm(x) @ self.words.weight.T).realize()


def test_an_encoder_and_a_decoder_with_cached_keys() -> None:
    sounds = np.random.default_rng(1).standard_normal((3, 1, 6, 12), dtype=np.float32)
    model, fresh = (with_values(model) for model in (Listener(), Listener()))
    for sound in sounds:
        heard = Tensor(model.encode(Tensor(sound)).numpy())
        np.testing.assert_allclose(heard.numpy(), fresh.encoded(Tensor(sound)).numpy(), atol=TOLERANCE)
        found = [model(TEXT[:4], 0, heard)[0, -1]]
        found += [model([word], place, heard)[0, 0] for place, word in enumerate(TEXT[4:], 4)]
        whole = fresh.forward(Tensor([TEXT]), 0, heard).numpy()[0, 3:]
        np.testing.assert_allclose(np.array(found), whole, atol=TOLERANCE, rtol=TOLERANCE)


def test_an_assignment_to_a_realized_view_is_executed_immediately() -> None:
    """Else writes pile up, and those of two values of a Variable would be done together."""
    whole, place = Tensor.zeros(2, MAX_LENGTH, 3).contiguous().realize(), Variable("place", 0, MAX_LENGTH - 1)
    for value in range(3):
        here = place.bind(value)
        whole.shrink((None, (here, here + 1), None)).assign(Tensor.full((2, 1, 3), value + 1.0)).realize()
        assert whole.schedule() == []
    expected = np.zeros((2, MAX_LENGTH, 3), np.float32)
    expected[:, :3] = np.array([1, 2, 3])[None, :, None]
    np.testing.assert_array_equal(whole.numpy(), expected)


def test_an_embedding_accepts_integral_floats() -> None:
    words = with_values(nn.Embedding(5, 3))
    found = words(Tensor([[0.0, 4.0], [2.5, 1.0]])).numpy()
    expected = words.weight.numpy()[[[0, 4], [2, 1]]]
    expected[1, 0] = 0
    np.testing.assert_array_equal(found, expected)


def test_shrink_accepts_none_for_missing_axes() -> None:
    assert Tensor.zeros(4, 3).shrink(((1, 3), None, None)).shape == (2, 3)
    with pytest.raises(ValueError, match="need one"):
        Tensor.zeros(4, 3).shrink(((1, 3), None, (0, 1)))
