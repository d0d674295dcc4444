"""Twelve small programs of PyTorch with random weights, for `bench.torch_models`. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Made = tuple[Any, tuple[Any, ...]]  # a module, and its arguments


def mlp() -> Made:
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers), (torch.randn(64, 784),)


# *** convolutions ***


class Residual(nn.Module):
    """Two convolutions of 3 × 3 with a residual connection."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.beside: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.beside = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Any) -> Any:
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.beside(x))


def resnet18() -> Made:
    first = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    sizes = [size for inside, outside, stride in widths for size in ((inside, outside, stride), (outside, outside, 1))]
    blocks = [Residual(*size) for size in sizes]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*first, *blocks, *last), (torch.randn(2, 3, 112, 112),)


class Inverted(nn.Module):
    """The block of MobileNetV2: a wider layer, a depthwise convolution, a narrower layer."""

    def __init__(self, inside: int, outside: int, stride: int, wider: int) -> None:
        super().__init__()
        wide = inside * wider
        parts: list[nn.Module] = []
        if wider > 1:
            parts += [nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        parts += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        parts += [nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside)]
        self.parts = nn.Sequential(*parts)
        self.is_added = stride == 1 and inside == outside

    def forward(self, x: Any) -> Any:
        return x + self.parts(x) if self.is_added else self.parts(x)


def mobilenet() -> Made:
    parts: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    inside = 32
    for wider, outside, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)):
        for number in range(count):
            parts.append(Inverted(inside, outside, stride if number == 0 else 1, wider))
            inside = outside
    parts += [nn.Conv2d(inside, 640, 1, bias=False), nn.BatchNorm2d(640), nn.ReLU6()]
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(640, 1000)]
    return nn.Sequential(*parts), (torch.randn(2, 3, 112, 112),)


class Twice(nn.Sequential):
    """Two convolutions with group normalization."""

    def __init__(self, inside: int, outside: int) -> None:
        parts: list[nn.Module] = []
        for channels in (inside, outside):
            parts += [nn.Conv2d(channels, outside, 3, 1, 1), nn.GroupNorm(8, outside), nn.SiLU()]
        super().__init__(*parts)


class UNet(nn.Module):
    """A U-Net of three levels."""

    def __init__(self, channels: int = 3, width: int = 16) -> None:
        super().__init__()
        self.down1, self.down2 = Twice(channels, width), Twice(width, 2 * width)
        self.middle = Twice(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.back2, self.back1 = Twice(4 * width, 2 * width), Twice(2 * width, width)
        self.last = nn.Conv2d(width, channels, 1)

    def forward(self, x: Any) -> Any:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        h = self.middle(F.max_pool2d(second, 2))
        h = self.back2(torch.cat([self.up2(h), second], 1))
        return self.last(self.back1(torch.cat([self.up1(h), first], 1)))


def unet() -> Made:
    return UNet(), (torch.randn(1, 3, 64, 64),)


class Denoising(nn.Module):
    """One step of a diffusion model: a U-Net with an embedding of the time, and the sample of the previous step."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.net = UNet(3 + width, width)
        self.time = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
        self.last = nn.Conv2d(3 + width, 3, 1)
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0))
        self.register_buffer("waves", torch.exp(-torch.arange(width) * 0.5))

    def forward(self, x: Any, step: Any) -> Any:
        angles = step[:, None].float() * self.waves
        embedding = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        embedding = embedding[:, :, None, None].expand(-1, -1, *x.shape[2:])
        noise = self.last(self.net(torch.cat([x, embedding], 1)))
        current, before = self.kept[step][:, None, None, None], self.kept[step - 1][:, None, None, None]
        clean = ((x - (1 - current).sqrt() * noise) / current.sqrt()).clamp(-1, 1)
        return before.sqrt() * clean + (1 - before).sqrt() * noise


def diffusion() -> Made:
    return Denoising(), (torch.randn(2, 3, 32, 32), torch.tensor([500, 20]))


# *** attention ***


class Attention(nn.Module):
    """Attention of several heads, optionally with fewer heads of keys and with rotary positions."""

    def __init__(self, width: int, heads: int, kept: int = 0, causal: bool = False, turned: bool = False) -> None:
        super().__init__()
        self.heads, self.kept, self.causal, self.turned = heads, kept or heads, causal, turned
        self.size = width // heads
        self.inner = nn.Linear(width, (heads + 2 * self.kept) * self.size, bias=not turned)
        self.outer = nn.Linear(width, width, bias=not turned)

    def forward(self, x: Any) -> Any:
        count, length, width = x.shape
        parts = self.inner(x).view(count, length, -1, self.size).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.kept, self.kept], 1)
        if self.turned:
            q, k = rotate(q), rotate(k)
        if self.kept != self.heads:
            k, v = (part.repeat_interleave(self.heads // self.kept, 1) for part in (k, v))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.outer(h.transpose(1, 2).reshape(count, length, width))


def rotate(x: Any) -> Any:
    """Return `x` with rotary positions."""
    length, half = x.shape[2], x.shape[3] // 2
    angles = torch.arange(length)[:, None] * torch.exp(-torch.arange(half) * (9.2 / half))
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


class Block(nn.Module):
    """A transformer block with normalization before each part, or (BERT) after it."""

    def __init__(self, width: int, heads: int, causal: bool = False, before: bool = True) -> None:
        super().__init__()
        self.before = before
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        if self.before:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Words(nn.Module):
    """A transformer over words.

    The result is a score for each word of the vocabulary, or for the first place.
    """

    def __init__(self, words: int, width: int, blocks: list[nn.Module], norm: nn.Module, places: int = 0) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(places, width) if places else None
        self.blocks, self.norm = nn.Sequential(*blocks), norm
        self.last = nn.Linear(width, words, bias=False)

    def forward(self, words: Any) -> Any:
        x = self.words(words)
        if self.places is not None:
            x = x + self.places(torch.arange(words.shape[1]))
        return self.last(self.norm(self.blocks(x)))


def gpt2() -> Made:
    blocks: list[nn.Module] = [Block(128, 4, causal=True) for _ in range(4)]
    return Words(1000, 128, blocks, nn.LayerNorm(128), 64), (torch.randint(0, 1000, (1, 64)),)


def bert() -> Made:
    blocks: list[nn.Module] = [Block(128, 2, before=False) for _ in range(2)]
    return Words(1000, 128, blocks, nn.LayerNorm(128), 128), (torch.randint(0, 1000, (4, 128)),)


class LlamaBlock(nn.Module):
    """A block of LLaMA: root-mean-square normalization, rotary positions, fewer key heads, a gated layer."""

    def __init__(self, width: int, heads: int, kept: int, inside: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads, kept, causal=True, turned=True)
        self.gate, self.up = nn.Linear(width, inside, bias=False), nn.Linear(width, inside, bias=False)
        self.down = nn.Linear(inside, width, bias=False)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def llama() -> Made:
    blocks: list[nn.Module] = [LlamaBlock(128, 8, 4, 352) for _ in range(4)]
    return Words(1000, 128, blocks, nn.RMSNorm(128)), (torch.randint(0, 1000, (1, 64)),)


class ViT(nn.Module):
    """A vision transformer of ViT-tiny's width."""

    def __init__(self, size: int = 96, patch: int = 16, width: int = 192, depth: int = 6) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        count = (size // patch) ** 2
        self.first, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, count + 1, width))
        self.blocks = nn.Sequential(*[Block(width, 3) for _ in range(depth)])
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Any) -> Any:
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.first.expand(x.shape[0], -1, -1), h], 1) + self.places
        return self.last(self.norm(self.blocks(h))[:, 0])


def vit() -> Made:
    return ViT(), (torch.randn(4, 3, 96, 96),)


# *** sequences and graphs ***


class Recurrent(nn.Module):
    """An LSTM, and a linear layer over its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.last = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        return self.last(self.lstm(x)[0][:, -1])


def lstm() -> Made:
    return Recurrent(), (torch.randn(16, 32, 64),)


class Messages(nn.Module):
    """Two rounds of messages along edges: gathered from the source of each edge, added at its target."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(32, width), nn.Linear(width, 8)
        self.message = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(2)])
        self.update = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(2)])

    def forward(self, x: Any, begins: Any, ends: Any) -> Any:
        h = self.first(x).relu()
        for message, update in zip(self.message, self.update):
            along = message(torch.cat([h[begins], h[ends]], 1)).relu()
            received = torch.zeros_like(h).index_add(0, ends, along)
            h = h + update(torch.cat([h, received], 1)).relu()
        return self.last(h)


def gnn() -> Made:
    return Messages(), (torch.randn(1000, 32), torch.randint(0, 1000, (5000,)), torch.randint(0, 1000, (5000,)))


class Selective(nn.Module):
    """A block of Mamba: a short convolution, and a state whose update depends on the input at each place."""

    def __init__(self, width: int, state: int = 8) -> None:
        super().__init__()
        inside = 2 * width
        self.norm = nn.RMSNorm(width)
        self.inner, self.outer = nn.Linear(width, 2 * inside, bias=False), nn.Linear(inside, width, bias=False)
        self.conv = nn.Conv1d(inside, inside, 4, padding=3, groups=inside)
        self.told, self.steps = nn.Linear(inside, 8 + 2 * state, bias=False), nn.Linear(8, inside)
        self.decay = nn.Parameter(torch.log(torch.arange(1, state + 1).float()).repeat(inside, 1))
        self.through, self.state = nn.Parameter(torch.ones(inside)), state

    def forward(self, x: Any) -> Any:
        h, gate = self.inner(self.norm(x)).chunk(2, -1)
        h = F.silu(self.conv(h.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, writes, reads = self.told(h).split([8, self.state, self.state], -1)
        step = F.softplus(self.steps(step))
        keeps = torch.exp(step[..., None] * -torch.exp(self.decay))
        adds = (step * h)[..., None] * writes[:, :, None]
        state = torch.zeros_like(adds[:, 0])
        outputs = []
        for place in range(x.shape[1]):
            state = keeps[:, place] * state + adds[:, place]
            outputs.append((state * reads[:, place, None]).sum(-1))
        return x + self.outer((torch.stack(outputs, 1) + h * self.through) * F.silu(gate))


def mamba() -> Made:
    return Words(1000, 64, [Selective(64) for _ in range(2)], nn.RMSNorm(64)), (torch.randint(0, 1000, (1, 32)),)


PROGRAMS: dict[str, Callable[[], Made]] = {
    "MLP": mlp,
    "ResNet-18": resnet18,
    "MobileNet": mobilenet,
    "ViT-tiny": vit,
    "GPT-2-tiny": gpt2,
    "LLaMA-tiny": llama,
    "BERT-tiny": bert,
    "LSTM": lstm,
    "U-Net-small": unet,
    "messages of a graph": gnn,
    "Mamba-tiny": mamba,
    "diffusion step": diffusion,
}
