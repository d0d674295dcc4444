"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from tinyexplore.frontends.torch.table import AtenCall, aten
from tinyexplore.tensor import Tensor


@aten("mm", "bmm", "mv")
def mm(call: AtenCall, a: Tensor, b: Tensor, *dtype: Any) -> Tensor:
    """Returns the product of matrices, of each in a batch, or of a matrix and a vector."""
    if a.shape[-1] == 0 or 0 in call.shape:
        return call.full(0)
    return a.cast(call.dtype).matmul(b.cast(call.dtype))


@aten("dot", "vdot")
def dot(call: AtenCall, a: Tensor, b: Tensor) -> Tensor:
    """Returns the dot product."""
    return (a * b).sum().cast(call.dtype)


@aten("addmm", "baddbmm", "addmv")
def addmm(call: AtenCall, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Returns beta · c + alpha · a · b. c is ignored for beta = 0."""
    result = mm(call, a, b)
    if alpha != 1:
        result = result * alpha
    if beta == 0:
        return result
    return (result + (c * beta if beta != 1 else c)).expand(call.shape)


@aten("addbmm")
def addbmm(call: AtenCall, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Returns beta · c + alpha · the sum of the products in a batch."""
    result = a.matmul(b).sum(0)
    if alpha != 1:
        result = result * alpha
    return result if beta == 0 else result + (c * beta if beta != 1 else c)


@aten("addr")
def addr(call: AtenCall, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Returns beta · c + alpha · the outer product."""
    result = call.tensor(a).unsqueeze(1) * call.tensor(b) * alpha
    return result if beta == 0 else result + call.tensor(c) * beta
