"""The work of each operation is linear in the size of operands and results, up to a logarithm."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from tests.ops.support import random_array
from tinyexplore import Tensor
from tinyexplore.engine import create_schedule
from tinyexplore.uop import Ops


def x(n: int, *more: int) -> Tensor:
    return Tensor(random_array((n, *more))).realize()


def weights(n: int, *more: int) -> Tensor:
    return Tensor(random_array((n, *more)), requires_grad=True).realize()


def index(n: int, below: int, *more: int) -> Tensor:
    return Tensor(np.random.default_rng(n).integers(0, below, (n, *more)).astype(np.int32)).realize()


def written(n: int, key: Callable[[int], object], value: object) -> Tensor:
    t = x(n, 3)
    t[key(n)] = value
    return t


def gradient(f: Callable[[Tensor], Tensor], n: int, *more: int) -> Tensor:
    w = weights(n, *more)
    return f(w).square().sum().gradient(w)[0]


SEVERAL: dict[str, Callable[[int], Tensor]] = {
    "scatter": lambda n: x(n).scatter(0, index(n, n), x(n)),
    "scatter rows": lambda n: x(n, 3).scatter(0, index(n, n, 3), x(n, 3)),
    "scatter along the last axis": lambda n: x(3, n).scatter(1, index(3, n, n), x(3, n)),
    "scatter add": lambda n: x(n).scatter(0, index(n, n), x(n), reduce="add"),
    **{
        f"scatter_reduce {how}": lambda n, how=how: x(n).scatter_reduce(0, index(n, n), x(n), how, include_self=False)
        for how in ("sum", "prod", "mean", "amax", "amin")
    },
    **{
        f"gradient of scatter_reduce {how}": lambda n, how=how: gradient(
            lambda w: x(n).scatter_reduce(0, index(n, n), w, how), n
        )
        for how in ("sum", "prod", "mean", "amax")
    },
    "gradient of scatter": lambda n: gradient(lambda w: x(n).scatter(0, index(n, n), w), n),
    "writing rows": lambda n: written(n, lambda n: index(n, n), 1.0),
    "writing elements": lambda n: written(n, lambda n: (index(n, n), index(n, 3)), 2.0),
    "writing by a mask": lambda n: written(n, lambda n: x(n) > 0, 3.0),
    "writing a part by a list": lambda n: written(n, lambda n: (slice(1, None), [0, 2, 0]), 4.0),
    "counting": lambda n: Tensor.zeros(n).scatter_reduce(0, index(n, n), Tensor.ones(n), "sum"),
    "gather": lambda n: x(n).gather(0, index(n, n)),
    "gradient of gather": lambda n: gradient(lambda w: w.gather(0, index(n, n, 3)), n, 3),
    "gradient of reading rows": lambda n: gradient(lambda w: w[index(n, n)], n, 3),
    "gradient of reading elements": lambda n: gradient(lambda w: w[index(n, n), index(n, 3)], n, 3),
    "masked_select": lambda n: x(n).masked_select(x(n) > 0),
    "nonzero": lambda n: x(n).relu().nonzero(),
    **{
        name: lambda n, name=name: getattr(x(2, n), name)(1)
        for name in ("cumsum", "cumprod", "logcumsumexp", "argmax", "softmax")
    },
    **{
        f"gradient of {name}": lambda n, name=name: gradient(lambda w: getattr(w, name)(0), n, 2)
        for name in ("cumsum", "cumprod", "logcumsumexp", "softmax", "max", "prod")
    },
    "cummax": lambda n: x(n).cummax(0)[1],
    "gradient of cummin": lambda n: gradient(lambda w: w.cummin(0)[0], n),
    "cross entropy": lambda n: gradient(lambda w: w.cross_entropy(index(n, 10)), n, 10),
    "cross entropy of many classes": lambda n: gradient(lambda w: w.cross_entropy(index(4, n)), 4, n),
    "nll_loss": lambda n: x(n, 5).nll_loss(index(n, 5), weight=x(5)),
    "multinomial": lambda n: x(n).abs().multinomial(n, replacement=True),
    "cat of many": lambda n: Tensor.cat(*(x(4) for _ in range(n // 8))),
}
LONG = {
    "sort": lambda n: x(n).sort()[0],
    "topk": lambda n: x(n).topk(3)[1],
    "gradient of sort": lambda n: gradient(lambda w: w.sort()[0], n),
}


def steps(tensor: Tensor) -> int:
    """How often the operations of all kernels that `tensor` needs are done."""
    items = create_schedule([tensor.lazydata.base])
    asts = [item.ast for item in items if item.ast is not None]
    return sum(
        prod(axis.size for axis in node.ranges)
        for ast in asts
        for node in ast.toposort()
        if node.op not in (Ops.RANGE, Ops.CONST, Ops.DEFINE_GLOBAL)
    )


@pytest.mark.parametrize("name", sorted({**SEVERAL, **LONG}))
def test_twice_as_much_is_about_twice_the_work(name: str) -> None:
    operation = {**SEVERAL, **LONG}[name]
    size = 1 << 13 if name in LONG else 1 << 10
    few, many = steps(operation(size)), steps(operation(2 * size))
    assert 0 < few and many <= 2.5 * few
