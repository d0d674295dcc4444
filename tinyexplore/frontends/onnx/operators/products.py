"""Matrix products."""

from __future__ import annotations

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.tensor import Tensor


@operator("MatMul")
def _matmul(node: OnnxNode) -> Tensor:
    return node.tensor(0).matmul(node.tensor(1))


@operator("Gemm")
def _gemm(node: OnnxNode) -> Tensor:
    a, b = node.tensor(0), node.tensor(1)
    a = a.transpose() if node.attribute("transA", 0) else a
    b = b.transpose() if node.attribute("transB", 0) else b
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    product = a.matmul(b)
    if alpha != 1:
        product = (product * alpha).cast(a.dtype)
    if not node.has(2):
        return product
    c = node.tensor(2)
    return product + (c if beta == 1 else (c * beta).cast(c.dtype))


@operator("Einsum")
def _einsum(node: OnnxNode) -> Tensor:
    return Tensor.einsum(node.require("equation").replace(" ", ""), *node.tensors())


@operator("MatMulInteger")
def _matmul_integer(node: OnnxNode) -> Tensor:
    a, b = node.tensor(0).cast(dtypes.int32), node.tensor(1).cast(dtypes.int32)
    if node.has(2):
        zero = node.tensor(2).cast(dtypes.int32)  # one zero point, or one per row
        a = a - (zero.reshape((-1, 1)) if zero.ndim == 1 and zero.shape[0] > 1 else zero)
    if node.has(3):
        b = b - node.tensor(3).cast(dtypes.int32)  # one zero point, or one per column
    return a.matmul(b)


@operator("Det")
def _det(node: OnnxNode) -> Tensor:
    """Returns the determinant by expansion along the first row, for the small matrices of geometry."""
    x = node.tensor(0)
    if x.shape[-1] > 4:
        raise node.unsupported(f"a matrix of {x.shape[-1]} rows (4 at most)")
    return _minor(x, list(range(x.shape[-1])), 0)


def _minor(x: Tensor, columns: list[int], row: int) -> Tensor:
    if len(columns) == 1:
        return x[..., row, columns[0]]
    total: Tensor | None = None
    for number, column in enumerate(columns):
        term = x[..., row, column] * _minor(x, columns[:number] + columns[number + 1 :], row + 1)
        term = -term if number % 2 else term
        total = term if total is None else total + term
    assert total is not None
    return total
