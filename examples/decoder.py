"""Teach a small decoder a verse by heart, then let it recite: one letter at a time, with a cache of keys and values.

How many letters are given and how many were said before are Variables: the kernels of a step are compiled once, and
serve the prompt, all at once, as well as each letter after it. Each step stores its keys and values into the cache in
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
PROMPT = 5  # letters that are given
COUNT, POSITION = Variable("count", 1, LONGEST), Variable("position", 0, LONGEST - 1)


class Block:
    """Attention to what came before, then a small network for each place."""

    def __init__(self) -> None:
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.grow, self.shrink = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.cache = Tensor.zeros(2, 1, LONGEST, HEADS, WIDTH // HEADS).contiguous().realize()
        self.cache.requires_grad = False

    def __call__(self, x: Tensor, position: Variable | None) -> Tensor:
        """(1, letters, WIDTH), all letters at once; with `position`, letters from there on, after the cached ones."""
        mixed = self.mix(self.before(x)).reshape(1, x.shape[1], 3, HEADS, WIDTH // HEADS)
        query, key, value = (mixed[:, :, part] for part in range(3))
        start = 0 if position is None else position
        end = start + x.shape[1]
        if position is not None:
            self.cache[:, :, position:end].assign(key.stack(value))
            key, value = self.cache[0, :, :end], self.cache[1, :, :end]
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        said = Tensor.arange(end) <= Tensor.arange(start, end).unsqueeze(1)
        heard = query.scaled_dot_product_attention(key, value, attn_mask=said)
        x = x + self.out(heard.transpose(1, 2).reshape(x.shape))
        return x + self.shrink(self.grow(self.between(x)).gelu())


class Decoder:
    """Letters in, for each a score for every letter that may follow."""

    def __init__(self) -> None:
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = [Block() for _ in range(LAYERS)]
        self.last, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def __call__(self, letters: Tensor, position: Variable | None = None) -> Tensor:
        start = 0 if position is None else position
        x = self.letters(letters) + self.places.weight[start : start + letters.shape[1]]
        for block in self.blocks:
            x = block(x, position)
        return self.scores(self.last(x))

    @TinyJit
    def step(self, letters: Tensor, position: Variable, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """The scores after `letters`, which stand at `position`, and the letter that follows.

        Adding noise of this shape (Gumbel's) to the scores draws from their softmax at that temperature; with none,
        it is the likeliest letter.
        """
        scores = self(letters, position)[0, -1]
        noise = -(-Tensor.rand(len(LETTERS)).log()).log()
        return scores.realize(), (scores + noise * temperature).argmax().realize()


def train(model: Decoder) -> float:
    """Learns the verse by heart; the last loss."""
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
    """What it says from the prompt on, and the scores of every step; at temperature 0 always the likeliest letter."""
    heat = Tensor([temperature])
    said, given, scores = "", prompt, []
    while len(said) + len(given) < LONGEST:
        numbers = Tensor([[LETTERS.index(letter) for letter in given]]).reshape(1, COUNT.bind(len(given)))
        found, following = model.step(numbers, POSITION.bind(len(said)), heat)
        scores.append(found.numpy())
        said, given = said + given, LETTERS[following.item()]
    return said + given, scores


def with_numpy(model: Decoder, said: str) -> np.ndarray:
    """The scores for all letters of `said` at once, without cache, kernels or Variables."""

    def linear(layer: nn.Linear, x: np.ndarray) -> np.ndarray:
        return x @ layer.weight.numpy().T + layer.bias.numpy()

    def norm(layer: nn.LayerNorm, x: np.ndarray) -> np.ndarray:
        centered = x - x.mean(-1, keepdims=True)
        return (
            centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * layer.weight.numpy() + layer.bias.numpy()
        )

    numbers = [LETTERS.index(letter) for letter in said]
    x = model.letters.weight.numpy()[numbers] + model.places.weight.numpy()[: len(said)]
    for block in model.blocks:
        mixed = linear(block.mix, norm(block.before, x)).reshape(len(said), 3, HEADS, -1)
        query, key, value = (mixed[:, part].transpose(1, 0, 2) for part in range(3))
        weights = query @ key.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
        weights = np.exp(np.where(np.tri(len(said), dtype=bool), weights, -np.inf))
        heard = weights / weights.sum(-1, keepdims=True) @ value
        x = x + linear(block.out, heard.transpose(1, 0, 2).reshape(len(said), WIDTH))
        grown = linear(block.grow, norm(block.between, x))
        grown = 0.5 * grown * (1 + np.tanh(math.sqrt(2 / math.pi) * (grown + 0.044715 * grown**3)))
        x = x + linear(block.shrink, grown)
    return linear(model.scores, norm(model.last, x))


def main() -> None:
    Tensor.manual_seed(1)
    model = Decoder()
    began = time.perf_counter()
    loss = train(model)
    print(f"learned by heart in {time.perf_counter() - began:.1f} s, loss {loss:.4f}")
    recite(model)  # captured in its second step, replayed ever since
    began = time.perf_counter()
    said, scores = recite(model)
    seconds = time.perf_counter() - began
    with Context(JIT=0):
        began = time.perf_counter()
        recite(model)
        eager = time.perf_counter() - began
    print(said)
    kernels = len(model.step.jit_cache)
    speeds = f"{len(scores) / seconds:.0f} letters a second, {len(scores) / eager:.0f} without a TinyJit"
    print(f"{speeds}; {kernels} kernels a letter")
    difference = float(np.abs(np.array(scores) - with_numpy(model, said[:-1])[PROMPT - 1 :]).max())
    print(f"largest difference to NumPy at any length: {difference:.1e}")
    for seed in (1, 2):
        Tensor.manual_seed(seed)
        print(f"at temperature 2, seed {seed}: {recite(model, temperature=2.0)[0][:60]}")


if __name__ == "__main__":
    main()
