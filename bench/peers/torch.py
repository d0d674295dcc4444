"""PyTorch on the CPU: eager (variant ""), compiled ("compile"), or compiled with all its tuning ("max")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bench.peers import Arrays, Call, Families, Unsupported
from bench.peers import Engine as Base
from bench.references import (
    ADAM_B1,
    ADAM_B2,
    ADAM_EPS,
    ADAM_RATE,
    CONVNET_TRAINED,
    HEADS,
    NORM_EPS,
    SGD_RATE,
)

families: Families[Engine] = Families("torch")
Tensors = dict[str, Tensor]


class Engine(Base):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        torch.set_num_threads(threads)
        self.version = torch.__version__

    def prepare(self, family: str, arrays: Arrays) -> Call:
        if self.variant:
            torch._dynamo.reset()
        return families.prepare(self, family, arrays)

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        results = result if isinstance(result, (tuple, list)) else (result,)
        values = (value.float() if value.dtype is torch.bfloat16 else value for value in results)
        return tuple(np.array(value.detach().numpy()) for value in values)

    def compiled(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if not self.variant:
            return f
        return torch.compile(f, mode="max-autotune-no-cudagraphs" if self.variant == "max" else None)

    def forward(self, f: Callable[..., Any], *arguments: Any) -> Call:
        """Return a call of `f(*arguments)` without a tape."""
        compiled = self.compiled(f)

        def call() -> Any:
            with torch.inference_mode():
                return compiled(*arguments)

        return call


def tensors(x: Arrays) -> Tensors:
    return {name: torch.from_numpy(value) for name, value in x.items()}


def simple(f: Callable[..., Any], *names: str) -> Callable[[Engine, Arrays], Call]:
    return lambda engine, x: engine.forward(f, *(torch.from_numpy(x[name]) for name in names))


families("ew_chain")(simple(lambda a, b, c, d: ((a * b + c).relu() * d - a).exp(), "a", "b", "c", "d"))
families("ew_add")(simple(lambda a, b: a + b, "a", "b"))
families("ew_gelu")(simple(lambda x: F.gelu(x, approximate="tanh"), "x"))
families("sum")(simple(lambda x: x.sum(), "x"))
families("colsum")(simple(lambda x: x.sum(0), "x"))
families("rowmax")(simple(lambda x: x.amax(1), "x"))
families("softmax")(simple(lambda x: x.softmax(1), "x"))
families("layernorm")(simple(lambda x, w, b: F.layer_norm(x, w.shape, w, b, NORM_EPS), "x", "w", "b"))
families("matmul")(simple(lambda a, b: a @ b, "a", "b"))
families("matmul_nt")(simple(lambda a, b: a @ b.T, "a", "b"))
families("matmul_tn")(simple(lambda a, b: a.T @ b, "a", "b"))
families("matmul_bias_relu")(simple(lambda a, b, bias: torch.addmm(bias, a, b).relu(), "a", "b", "bias"))
families("conv3x3")(simple(lambda x, w: F.conv2d(x, w, padding=1), "x", "w"))
families("maxpool2")(simple(lambda x: F.max_pool2d(x, 2), "x"))
families("transpose")(simple(lambda x: x.T.contiguous(), "x"))
families("permute_nhwc")(simple(lambda x: x.permute(0, 2, 3, 1).contiguous(), "x"))
families("embedding")(simple(lambda table, index: F.embedding(index, table), "table", "index"))
families("cumsum")(simple(lambda x: x.cumsum(-1), "x"))
families("argmax")(simple(lambda x: x.argmax(1), "x"))
families("sort")(simple(lambda x: x.sort().values, "x"))
families("sdpa")(simple(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), "q", "k", "v"))


# *** the costs of Python ***


@families("py_lazy_add")
def lazy_add(engine: Engine, arrays: Arrays) -> Call:
    if engine.variant:
        raise Unsupported("measured eagerly")
    x = tensors(arrays)
    a, b = x["a"], x["b"]
    return lambda: a + b


@families("py_mixed")
def mixed(engine: Engine, arrays: Arrays) -> Call:
    if engine.variant:
        raise Unsupported("measured eagerly")
    x = tensors(arrays)
    a, b = x["a"], x["b"]

    def call() -> Tensor:
        t = (a * 2 + b).reshape(2, 2).permute(1, 0).relu()
        return t.exp().sum(1, keepdim=True).expand(2, 3)

    return call


@families("py_jit")
def jit_call(engine: Engine, arrays: Arrays) -> Call:
    if not engine.variant:
        raise Unsupported("measured compiled")
    x = tensors(arrays)
    a, b = x["a"], x["b"]
    compiled = engine.compiled(lambda a, b: a + b)
    return lambda: compiled(a, b)


# *** nets ***


def mlp(x: Tensor, p: Tensors) -> Tensor:
    layers = sum(name.startswith("w") for name in p)
    for number in range(1, layers + 1):
        x = torch.addmm(p[f"b{number}"], x, p[f"w{number}"])
        x = x.relu() if number < layers else x
    return x


def block(x: Tensor, p: Tensors) -> Tensor:
    width = (x.shape[-1],)
    h = F.layer_norm(x, width, p["ln1_w"], p["ln1_b"], NORM_EPS)
    q, k, v = (h @ p["wqkv"] + p["bqkv"]).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    x = x + (a @ p["wo"] + p["bo"])
    h = F.layer_norm(x, width, p["ln2_w"], p["ln2_b"], NORM_EPS)
    return x + (F.gelu(h @ p["w1"] + p["b1"], approximate="tanh") @ p["w2"] + p["b2"])


def convnet(x: Tensor, p: Tensors, training: bool) -> Tensor:
    for stage in (1, 2):
        for number in (2 * stage - 1, 2 * stage):
            x = F.conv2d(x, p[f"c{number}"], p[f"d{number}"]).relu()
        mean, var = (None, None) if training else (p[f"mean{stage}"], p[f"var{stage}"])
        x = F.batch_norm(x, mean, var, p[f"g{stage}"], p[f"h{stage}"], training=training, eps=NORM_EPS)
        x = F.max_pool2d(x, 2)
    return torch.addmm(p["b"], x.flatten(1), p["w"])


@families("mlp_fwd")
def mlp_fwd(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x, _ = p.pop("x"), p.pop("y")
    return engine.forward(lambda x: mlp(x, p), x)


@families("block_fwd")
def block_fwd(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x = p.pop("x")
    return engine.forward(lambda x: block(x, p), x)


@families("convnet_fwd")
def convnet_fwd(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x, _ = p.pop("x"), p.pop("y")
    return engine.forward(lambda x: convnet(x, p, training=False), x)


@families("block_fwdbwd")
def block_fwdbwd(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x = p.pop("x")
    leaves = [value.requires_grad_() for value in p.values()]
    loss_of = engine.compiled(lambda x: block(x, p).square().mean())

    def call() -> Any:
        loss = loss_of(x)
        return (loss, *torch.autograd.grad(loss, leaves))

    return call


def training(
    engine: Engine, leaves: list[Tensor], optimizer: torch.optim.Optimizer, loss_of: Callable[[], Tensor]
) -> Call:
    compiled = engine.compiled(loss_of)

    def call() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = compiled()
        loss.backward()
        optimizer.step()
        return (loss, *leaves)

    return call


@families("mlp_sgd")
def mlp_sgd(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x, y = p.pop("x"), p.pop("y").long()
    leaves = [value.requires_grad_() for value in p.values()]
    return training(engine, leaves, torch.optim.SGD(leaves, SGD_RATE), lambda: F.cross_entropy(mlp(x, p), y))


def adam(leaves: list[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.Adam(leaves, ADAM_RATE, (ADAM_B1, ADAM_B2), ADAM_EPS, fused=True)


@families("mlp_adam")
def mlp_adam(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x, y = p.pop("x"), p.pop("y").long()
    leaves = [value.requires_grad_() for value in p.values()]
    return training(engine, leaves, adam(leaves), lambda: F.cross_entropy(mlp(x, p), y))


@families("convnet_adam")
def convnet_adam(engine: Engine, arrays: Arrays) -> Call:
    p = tensors(arrays)
    x, y = p.pop("x"), p.pop("y").long()
    leaves = [p[name].requires_grad_() for name in CONVNET_TRAINED]
    return training(engine, leaves, adam(leaves), lambda: F.cross_entropy(convnet(x, p, training=True), y))
