"""Every case as a program on a lazy Tensor, with the same code for tinyexplore and tinygrad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from bench.peers import WIDE_PREFIX, Arrays, Call, Unsupported
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
from bench.wide import DIFFERENTIATED, is_bfloat16
from bench.wide.tensors import PROGRAMS

Forward = Callable[[dict[str, Any]], Any]


@dataclass
class Simplified:
    """A simplified index expression, with the interface of a result.

    As an array, it is the value of the expression for the variables in `known`, less `number`.

    api: the module of the engine.
    expression: the simplified expression.
    known: values of the variables.
    number: the constant that this call added.
    """

    api: Any
    expression: Any
    known: dict[Any, int]
    number: int

    def numpy(self) -> np.ndarray:
        nothing = self.api.Variable("any", 0, 1) * 0
        values = {variable: nothing + value for variable, value in self.known.items()}
        (simplified,) = self.api.simplify([self.expression.substitute(values)])
        return np.array(simplified.arg - self.number)


def permuted_address(index: list[Any], dims: list[int], order: list[list[int]], plus: int) -> Any:
    """Return the address of `index` in a tensor that is repeatedly permuted and flattened, times 3, plus `plus`."""
    flat = flat_index(index, dims)
    for permutation in order:
        parts = split_index(flat, dims)
        dims = [dims[axis] for axis in permutation]
        flat = flat_index([parts[axis] for axis in permutation], dims)
    return flat * 3 + plus


def flat_index(index: list[Any], dims: list[int]) -> Any:
    """Return the flat position of `index` in a tensor of sizes `dims`."""
    flat = 0
    for position, size in zip(index, dims):
        flat = flat * size + position
    return flat


def split_index(flat: Any, dims: list[int]) -> list[Any]:
    """Return the index of the flat position `flat` in a tensor of sizes `dims`."""
    parts, step = [], 1
    for size in reversed(dims):
        parts.insert(0, (flat // step) % size)
        step *= size
    return parts


class LazyEngine(Base):
    """An engine with lazy Tensors.

    `api` has Tensor, TinyJit, SGD, Adam, training (a context), Variable, and these functions:

    - `simplify` applies the engine's rules of index arithmetic to expressions until none fires;
    - `simplify_recorded` also records them (None without a recorder);
    - `rewrites` returns the number of rule firings, as the engine counts them.

    `jit`: whether a call is a replay.
    """

    api: Any
    jit: bool = False
    replays_only: bool = False  # another peer of the same engine measures it without a replay

    def prepare(self, family: str, arrays: Arrays) -> Call:
        make = getattr(self, f"make_{family}", None)
        if make is not None:
            return make(arrays)
        if family.startswith(WIDE_PREFIX):
            return self.make_wide(family.removeprefix(WIDE_PREFIX), arrays)
        if family not in FORWARD:
            raise Unsupported(f"nothing for {family}")
        return self.forward(FORWARD[family], arrays)

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        return tuple(np.array(value.numpy()) for value in result)

    def tensors(self, arrays: Arrays) -> dict[str, Any]:
        """Return the inputs in the memory of the engine."""
        tensors = {name: self.api.Tensor(value).contiguous() for name, value in arrays.items()}
        for tensor in tensors.values():
            tensor.realize()
        return tensors

    def jitted(self, f: Callable[[], Any]) -> Callable[[], Any]:
        if not self.jit:
            return f
        jit = self.api.TinyJit(f)
        jit()  # the first call is ignored, the second recorded
        jit()
        return jit

    def forward(self, f: Forward, arrays: Arrays) -> Call:
        x = self.tensors(arrays)
        return self.jitted(lambda: (f(x).realize(),))

    def make_wide(self, family: str, arrays: Arrays) -> Call:
        """Return a call of a program of the wide table, or of its gradients."""
        program, nn = PROGRAMS[family], self.api.nn
        x = self.tensors(arrays)
        if is_bfloat16(family):
            x = {name: value.cast("bfloat16").contiguous().realize() for name, value in x.items()}
        if family not in DIFFERENTIATED:
            return self.jitted(lambda: realize_results(program(nn, x)))
        leaves = self.leaves(x, list(DIFFERENTIATED[family]))

        def step() -> Any:
            for leaf in leaves:
                leaf.grad = None
            output = program(nn, x)
            (output if "g" not in x else (output * x["g"]).sum()).backward()
            return realize_results(tuple(leaf.grad for leaf in leaves))

        return self.jitted(step)

    # *** the costs of Python ***

    def make_py_lazy_add(self, arrays: Arrays) -> Call:
        self._only_without_replay()
        x = self.tensors(arrays)
        a, b = x["a"], x["b"]
        return lambda: (a + b,)

    def make_py_mixed(self, arrays: Arrays) -> Call:
        self._only_without_replay()
        x = self.tensors(arrays)
        a, b = x["a"], x["b"]

        def call() -> Any:
            t = (a * 2 + b).reshape(2, 2).permute(1, 0).relu()
            return (t.exp().sum(axis=1, keepdim=True).expand(2, 3),)

        return call

    def make_py_realize(self, arrays: Arrays) -> Call:
        self._only_without_replay()
        x = self.tensors(arrays)
        a, b = x["a"], x["b"]
        return lambda: ((a + b).realize(),)

    def make_py_jit(self, arrays: Arrays) -> Call:
        x = self.tensors(arrays)
        return self._replayed(lambda: (x["a"] + x["b"]).realize())

    def make_py_jit_given(self, arrays: Arrays) -> Call:
        x = self.tensors(arrays)
        a, b = x["a"], x["b"]
        jit = self._captured(lambda a, b: (a + b).realize(), a, b)
        return lambda: (jit(a, b),)

    def make_py_jit_100(self, arrays: Arrays) -> Call:
        x = self.tensors(arrays)

        def call() -> Any:
            t = x["a"]
            for _ in range(100):
                t = (t + x["b"]).realize()
            return t.realize()

        return self._replayed(call)

    def make_py_simplify(self, arrays: Arrays) -> Call:
        self._only_without_replay()
        dims = [int(size) for size in arrays["dims"]]
        orders = arrays["orders"].tolist()
        calls = count()

        def call() -> Any:
            """Simplify expressions with sizes and constants of no earlier call, since results for an expression are
            memoised.
            """
            number = next(calls)
            index = [self.api.Variable(f"i{number}_{axis}", 0, size - 1) for axis, size in enumerate(dims)]
            expressions = [permuted_address(index, dims, order, number) for order in orders]
            positions = [int(position) for position in arrays["at"]]
            values = dict(zip(index, positions))
            return tuple(
                Simplified(self.api, expressions, values, number) for expressions in self.api.simplify(expressions)
            )

        return call

    def _only_without_replay(self) -> None:
        if self.replays_only:
            raise Unsupported("measured without a replay")

    def _replayed(self, f: Callable[[], Any]) -> Call:
        jit = self._captured(f)
        return lambda: (jit(),)

    def _captured(self, f: Callable[..., Any], *given: Any) -> Callable[..., Any]:
        if not self.jit:
            raise Unsupported("measured in a replay")
        jit = self.api.TinyJit(f)
        jit(*given)
        jit(*given)
        return jit

    # *** steps that need a gradient ***

    def leaves(self, x: dict[str, Any], names: list[str]) -> list[Any]:
        for name in names:
            x[name].requires_grad = True
        return [x[name] for name in names]

    def make_block_fwdbwd(self, arrays: Arrays) -> Call:
        x = self.tensors(arrays)
        leaves = self.leaves(x, [name for name in x if name != "x"])

        def step() -> Any:
            for leaf in leaves:
                leaf.grad = None
            loss = block(x).square().mean()
            loss.backward()
            grads = [leaf.grad for leaf in leaves]
            loss.realize(*grads)
            return (loss, *grads)

        return self.jitted(step)

    def training(self, arrays: Arrays, names: list[str], loss_of: Forward, optimizer: Callable[[Any], Any]) -> Call:
        x = self.tensors(arrays)
        leaves = self.leaves(x, names)
        steps = optimizer(leaves)

        def step() -> Any:
            with self.api.training():
                steps.zero_grad()
                loss = loss_of(x)
                loss.backward()
                # computed together, since the loss would use the new weights afterwards
                loss.realize(*steps.schedule_step())
                return (loss, *leaves)

        if not self.jit:
            return step
        # a result is judged after the first step from the given weights; the recorded steps must not count
        jit, first = self.api.TinyJit(step), [True]

        def call() -> Any:
            if first[0]:
                first[0] = False
                return step()
            return jit()

        return call

    def make_mlp_sgd(self, arrays: Arrays) -> Call:
        names = [name for name in arrays if name not in ("x", "y")]
        return self.training(arrays, names, mlp_loss, lambda leaves: self.api.SGD(leaves, lr=SGD_RATE))

    def make_mlp_adam(self, arrays: Arrays) -> Call:
        names = [name for name in arrays if name not in ("x", "y")]
        return self.training(arrays, names, mlp_loss, self.adam)

    def make_convnet_adam(self, arrays: Arrays) -> Call:
        return self.training(arrays, list(CONVNET_TRAINED), convnet_loss, self.adam)

    def adam(self, leaves: list[Any]) -> Any:
        return self.api.Adam(leaves, lr=ADAM_RATE, b1=ADAM_B1, b2=ADAM_B2, eps=ADAM_EPS)


def realize_results(results: Any) -> tuple[Any, ...]:
    """Return one tensor or several as a tuple, computed together."""
    tensors = results if isinstance(results, tuple) else (results,)
    tensors[0].realize(*tensors[1:])
    return tensors


# *** forward programs ***


def chain(x: dict[str, Any]) -> Any:
    return ((x["a"] * x["b"] + x["c"]).relu() * x["d"] - x["a"]).exp()


def layernorm(x: Any, w: Any, b: Any) -> Any:
    return x.layernorm(eps=NORM_EPS) * w + b


def attention(q: Any, k: Any, v: Any) -> Any:
    return q.scaled_dot_product_attention(k, v, is_causal=True)


def mlp(x: dict[str, Any]) -> Any:
    value, layers = x["x"], sum(name.startswith("w") for name in x)
    for number in range(1, layers + 1):
        value = value @ x[f"w{number}"] + x[f"b{number}"]
        value = value.relu() if number < layers else value
    return value


def mlp_loss(x: dict[str, Any]) -> Any:
    return mlp(x).sparse_categorical_crossentropy(x["y"])


def block(x: dict[str, Any]) -> Any:
    value = x["x"]
    batch, length, width = value.shape
    h = layernorm(value, x["ln1_w"], x["ln1_b"])
    qkv = (h @ x["wqkv"] + x["bqkv"]).reshape(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
    a = attention(qkv[0], qkv[1], qkv[2]).permute(0, 2, 1, 3).reshape(batch, length, width)
    value = value + (a @ x["wo"] + x["bo"])
    h = layernorm(value, x["ln2_w"], x["ln2_b"])
    return value + ((h @ x["w1"] + x["b1"]).gelu() @ x["w2"] + x["b2"])


def convnet(x: dict[str, Any], training: bool = False) -> Any:
    value = x["x"]
    for stage in (1, 2):
        for number in (2 * stage - 1, 2 * stage):
            value = value.conv2d(x[f"c{number}"], x[f"d{number}"]).relu()
        if training:
            mean = value.mean(axis=(0, 2, 3))
            centered = value - mean.reshape(1, -1, 1, 1)
            var = (centered * centered).mean(axis=(0, 2, 3))
        else:
            mean, var = x[f"mean{stage}"], x[f"var{stage}"]
        inverse = (var + NORM_EPS).rsqrt()
        value = value.batchnorm(x[f"g{stage}"], x[f"h{stage}"], mean, inverse).max_pool2d((2, 2))
    return value.flatten(1) @ x["w"] + x["b"]


def convnet_loss(x: dict[str, Any]) -> Any:
    return convnet(x, training=True).sparse_categorical_crossentropy(x["y"])


def sort(x: dict[str, Any]) -> Any:
    if not hasattr(x["x"], "sort"):
        raise Unsupported("Tensor.sort does not exist")
    return x["x"].sort()[0]


FORWARD: dict[str, Forward] = {
    "ew_chain": chain,
    "ew_add": lambda x: x["a"] + x["b"],
    "ew_gelu": lambda x: x["x"].gelu(),
    "sum": lambda x: x["x"].sum(),
    "colsum": lambda x: x["x"].sum(axis=0),
    "rowmax": lambda x: x["x"].max(axis=1),
    "softmax": lambda x: x["x"].softmax(axis=1),
    "layernorm": lambda x: layernorm(x["x"], x["w"], x["b"]),
    "matmul": lambda x: x["a"] @ x["b"],
    "matmul_nt": lambda x: x["a"] @ x["b"].transpose(0, 1),
    "matmul_tn": lambda x: x["a"].transpose(0, 1) @ x["b"],
    "matmul_bias_relu": lambda x: (x["a"] @ x["b"] + x["bias"]).relu(),
    "conv3x3": lambda x: x["x"].conv2d(x["w"], padding=1),
    "maxpool2": lambda x: x["x"].max_pool2d((2, 2)),
    "transpose": lambda x: x["x"].transpose(0, 1).contiguous(),
    "permute_nhwc": lambda x: x["x"].permute(0, 2, 3, 1).contiguous(),
    "embedding": lambda x: x["table"][x["index"]],
    "cumsum": lambda x: x["x"].cumsum(axis=x["x"].ndim - 1),
    "argmax": lambda x: x["x"].argmax(axis=1),
    "sort": sort,
    "sdpa": lambda x: attention(x["q"], x["k"], x["v"]),
    "mlp_fwd": mlp,
    "block_fwd": block,
    "convnet_fwd": convnet,
}
