"""Trains a small GPT on this file, then generates text token by token. The training step is a TinyJit.

Run it with `python examples/gpt.py [steps]`. The names of its weights are those of GPT-2.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from tqdm.auto import trange

from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.nn.state import get_parameters

SEED = 0
WIDTH, HEADS, LAYERS, CONTEXT = 64, 4, 2, 64
BATCH, STEPS = 16, 300


class Attention:
    """Causal attention: each token attends to itself and to earlier tokens."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = self.c_attn(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = split[0], split[1], split[2]
        seen = query.scaled_dot_product_attention(key, value, is_causal=True)
        return self.c_proj(seen.transpose(1, 2).reshape(batch, length, width))


class Block:
    """Attention, then two linear maps, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = {"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)}

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](self.mlp["c_fc"](self.ln_2(x)).gelu())


class GPT:
    """Maps tokens (batch, length) to scores of the next token (batch, length, vocabulary)."""

    def __init__(self, vocabulary: int, width: int = WIDTH, heads: int = HEADS, layers: int = LAYERS) -> None:
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(CONTEXT, width)
        self.h = [Block(width, heads) for _ in range(layers)]
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def __call__(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def loss_of(model: GPT, tokens: Tensor) -> Tensor:
    """Returns the mean cross entropy of the next tokens, in nats. The last token of each row is only a target."""
    return model(tokens[:, :-1]).flatten(0, 1).sparse_categorical_crossentropy(tokens[:, 1:].flatten())


def train(model: GPT, text: np.ndarray, steps: int) -> list[float]:
    """Trains with AdamW on random parts of `text`. Returns the loss of every step."""
    optimizer = nn.optim.AdamW(get_parameters(model), lr=3e-3)
    random = np.random.default_rng(SEED)

    @TinyJit
    def step(tokens: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        optimizer.step()
        return loss.realize()

    losses = []
    with Tensor.train(), trange(steps, desc="training", unit="step") as progress:
        for _ in progress:
            starts = random.integers(0, len(text) - CONTEXT - 1, BATCH)
            pieces = np.stack([text[start : start + CONTEXT + 1] for start in starts])
            losses.append(step(Tensor(pieces)).item())
            progress.set_postfix(loss=f"{losses[-1]:.3f}")
    return losses


def write(model: GPT, start: np.ndarray, count: int) -> np.ndarray:
    """Returns `start` and `count` more tokens, each the most likely one.

    The window has the same length every time, so that one set of kernels serves all: what stands after a token does
    not change its scores.
    """
    choose = TinyJit(lambda window: model(window).argmax(-1).realize())
    tokens = list(start)
    for _ in range(count):
        known = tokens[-CONTEXT:]
        window = np.zeros((1, CONTEXT), dtype=np.int32)
        window[0, : len(known)] = known
        tokens.append(int(choose(Tensor(window))[0, len(known) - 1].item()))
    return np.array(tokens)


def main(steps: int) -> None:
    Tensor.manual_seed(SEED)
    source = Path(__file__).read_text(encoding="utf-8")
    letters = sorted(set(source))
    text = np.array([letters.index(letter) for letter in source], dtype=np.int32)
    model = GPT(len(letters))
    print(f"{sum(one.numel() for one in get_parameters(model)):,} parameters, {len(text):,} letters to learn")
    start = time.perf_counter()
    losses = train(model, text, steps)
    print(f"loss {losses[0]:.2f} → {losses[-1]:.2f} nats a letter in {time.perf_counter() - start:.1f} s\n")
    print("".join(letters[token] for token in write(model, text[:40], 200)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
