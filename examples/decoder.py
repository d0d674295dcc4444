"""Trains a small decoder on one verse, then generates the verse letter by letter with a cache of keys and values.

The number of new letters and their position are Variables. So the kernels of a step are compiled once. They process
the whole prompt in one step, and then one letter in each step. Each step writes its keys and values into the cache in
place. Run it with `python examples/decoder.py`.
"""

from __future__ import annotations

import math
import time

import numpy as np

from tinyexplore import Context, Tensor, TinyJit, Variable, nn
from tinyexplore.nn.state import get_parameters

VERSE = (
    "a loop went walking down the lane, sixteen abreast in sun and rain; "
    "what one had read the next one knew, and so they stored the summer through."
)
LETTERS = sorted(set(VERSE))
LONGEST = len(VERSE)
WIDTH, HEADS, LAYERS = 32, 4, 2
STEPS = 150
PROMPT = 5  # letters of the prompt
COUNT, POSITION = Variable("count", 1, LONGEST), Variable("position", 0, LONGEST - 1)


class Block:
    """Causal attention, then a small network for each position."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.grow, self.shrink = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.cache = Tensor.zeros(2, 1, LONGEST, HEADS, WIDTH // HEADS).contiguous().realize()
        self.cache.requires_grad = False

    def __call__(self, x: Tensor, position: Variable | None) -> Tensor:
        """Maps (1, letters, WIDTH) to the same shape. With `position`, the letters follow those in the cache."""
        mixed = self.mix(self.norm1(x)).reshape(1, x.shape[1], 3, HEADS, WIDTH // HEADS)
        query, key, value = (mixed[:, :, part] for part in range(3))
        start = 0 if position is None else position
        end = start + x.shape[1]
        if position is not None:
            self.cache[:, :, position:end].assign(key.stack(value))
            key, value = self.cache[0, :, :end], self.cache[1, :, :end]
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        mask = Tensor.arange(end) <= Tensor.arange(start, end).unsqueeze(1)
        attended = query.scaled_dot_product_attention(key, value, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.shrink(self.grow(self.norm2(x)).gelu())


class Decoder:
    """Maps letters (1, length) to scores of the next letter (1, length, alphabet)."""

    def __init__(self) -> None:
        self.letters, self.positions = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = [Block() for _ in range(LAYERS)]
        self.last, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def __call__(self, letters: Tensor, position: Variable | None = None) -> Tensor:
        start = 0 if position is None else position
        x = self.letters(letters) + self.positions.weight[start : start + letters.shape[1]]
        for block in self.blocks:
            x = block(x, position)
        return self.scores(self.last(x))

    @TinyJit
    def step(self, letters: Tensor, position: Variable, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the scores after `letters`, which begin at `position`, and the next letter.

        The argmax of the scores plus Gumbel noise is a sample of their softmax at that temperature. At temperature 0
        it is the most likely letter.
        """
        scores = self(letters, position)[0, -1]
        noise = -(-Tensor.rand(len(LETTERS)).log()).log()
        return scores.realize(), (scores + noise * temperature).argmax().realize()


def train(model: Decoder) -> float:
    """Trains the model on the verse. Returns the last loss."""
    optimizer = nn.optim.Adam([x for x in get_parameters(model) if x.requires_grad is not False], lr=1e-2)
    numbers = Tensor([[LETTERS.index(letter) for letter in VERSE]])

    @TinyJit
    def learn() -> Tensor:
        optimizer.zero_grad()
        scores = model(numbers[:, :-1])
        loss = scores.reshape(-1, len(LETTERS)).sparse_categorical_crossentropy(numbers[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.realize()

    with Tensor.train():
        for _ in range(STEPS):
            loss = learn()
    return float(loss.item())


@Tensor.test()
def recite(model: Decoder, prompt: str = VERSE[:PROMPT], temperature: float = 0.0) -> tuple[str, list[np.ndarray]]:
    """Returns the prompt with the generated letters, and the scores of every step."""
    heat = Tensor([temperature])
    cached, new, scores = "", prompt, []
    while len(cached) + len(new) < LONGEST:
        numbers = Tensor([[LETTERS.index(letter) for letter in new]]).reshape(1, COUNT.bind(len(new)))
        step_scores, next_letter = model.step(numbers, POSITION.bind(len(cached)), heat)
        scores.append(step_scores.numpy())
        cached, new = cached + new, LETTERS[next_letter.item()]
    return cached + new, scores


def with_numpy(model: Decoder, text: str) -> np.ndarray:
    """Returns the scores of all letters of `text` in one pass, computed by NumPy without a cache."""

    def linear(layer: nn.Linear, x: np.ndarray) -> np.ndarray:
        return x @ layer.weight.numpy().T + layer.bias.numpy()

    def norm(layer: nn.LayerNorm, x: np.ndarray) -> np.ndarray:
        centered = x - x.mean(-1, keepdims=True)
        return (
            centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * layer.weight.numpy() + layer.bias.numpy()
        )

    numbers = [LETTERS.index(letter) for letter in text]
    x = model.letters.weight.numpy()[numbers] + model.positions.weight.numpy()[: len(text)]
    for block in model.blocks:
        mixed = linear(block.mix, norm(block.norm1, x)).reshape(len(text), 3, HEADS, -1)
        query, key, value = (mixed[:, part].transpose(1, 0, 2) for part in range(3))
        weights = query @ key.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
        weights = np.exp(np.where(np.tri(len(text), dtype=bool), weights, -np.inf))
        attended = weights / weights.sum(-1, keepdims=True) @ value
        x = x + linear(block.out, attended.transpose(1, 0, 2).reshape(len(text), WIDTH))
        grown = linear(block.grow, norm(block.norm2, x))
        grown = 0.5 * grown * (1 + np.tanh(math.sqrt(2 / math.pi) * (grown + 0.044715 * grown**3)))
        x = x + linear(block.shrink, grown)
    return linear(model.scores, norm(model.last, x))


def main() -> None:
    Tensor.manual_seed(1)
    model = Decoder()
    began = time.perf_counter()
    loss = train(model)
    print(f"trained in {time.perf_counter() - began:.1f} s, loss {loss:.4f}")
    recite(model)  # the TinyJit captures the second step and replays it from then on
    began = time.perf_counter()
    text, scores = recite(model)
    seconds = time.perf_counter() - began
    with Context(JIT=0):
        began = time.perf_counter()
        recite(model)
        eager = time.perf_counter() - began
    print(text)
    kernels = len(model.step.jit_cache)
    speeds = f"{len(scores) / seconds:.0f} letters a second, {len(scores) / eager:.0f} without a TinyJit"
    print(f"{speeds}; {kernels} kernels a letter")
    difference = float(np.abs(np.array(scores) - with_numpy(model, text[:-1])[PROMPT - 1 :]).max())
    print(f"largest difference to NumPy at any length: {difference:.1e}")
    for seed in (1, 2):
        Tensor.manual_seed(seed)
        print(f"at temperature 2, seed {seed}: {recite(model, temperature=2.0)[0][:60]}")


if __name__ == "__main__":
    main()
