"""Matrices taken apart: QR by Householder's reflections, singular values by Jacobi's rotations.

Both are written in tensor operations, for stacks of matrices (…, m, n): a step for each column or round of pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.ordering import Ordering
from tinyexplore.tensor.reduction import sum_dtype

if TYPE_CHECKING:
    from tinyexplore.autograd import Step
    from tinyexplore.tensor.tensor import Tensor

# sweeps over all pairs of columns until nothing changes any more, in practice: the convergence is quadratic at the end
SWEEPS = {dtypes.float32: 9, dtypes.float64: 12}


class LinearAlgebra(Ordering):
    __slots__ = ()

    def _matrices(self, what: str) -> Tensor:
        """This tensor in the type to compute with."""
        if self.ndim < 2 or 0 in self.shape:
            raise ShapeError(f"{what} of a tensor of shape {self.shape}: need matrices (…, m, n), none of them empty")
        x = self._float()
        return x.cast(sum_dtype(x.dtype))

    def qr(self) -> tuple[Tensor, Tensor]:
        """Q (…, m, m), orthogonal, and R (…, m, n), upper triangular, with Q · R = this matrix.

        Each of Householder's reflections H = 1 - 2 v vᵀ makes one column zero below the diagonal.
        """
        r = self._matrices("qr")
        rows, columns = r.shape[-2:]
        dtype = self._float().dtype
        q = cast(Any, type(self)).eye(rows, dtype=r.dtype, device=self.device)._broadcast_to((*r.shape[:-1], rows))
        places = r._places(r.ndim - 2)
        for k in range(min(rows - 1, columns)):
            column = r[..., k : k + 1]
            below = (places >= k).where(column, 0.0)
            corner = column[..., k : k + 1, :]
            length = below.square().sum(-2, keepdim=True).sqrt()
            target = (corner < 0).where(length, -length)  # the sign that does not cancel
            v = (places == k).where(below - target, below)
            square = v.square().sum(-2, keepdim=True)
            scale = (square == 0).where(0.0, 2.0 / (square == 0).where(1.0, square))
            r = (r - v * (scale * (v * r).sum(-2, keepdim=True))).contiguous()
            q = (q - (q.dot(v) * scale) * v.transpose(-2, -1)).contiguous()
        return q.cast(dtype), r.triu().cast(dtype)

    def svd(self, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """U, S, Vᵀ with U · diag(S) · Vᵀ = this matrix; S descends. U is (…, m, m) and Vᵀ (…, n, n), or, without
        `full_matrices`, (…, m, k) and (…, k, n) for k = min(m, n).

        One-sided Jacobi (Hestenes 1958): pairs of columns are rotated until all are orthogonal; their lengths are the
        singular values. All pairs of a round are rotated at once (Brent and Luk 1985). Gradients are those of distinct
        singular values; columns of U beyond the n-th have none, and there are no second derivatives.
        """
        x = self._matrices("svd")
        dtype = self._float().dtype
        if x.shape[-2] < x.shape[-1]:
            v, s, u = x.transpose(-2, -1).svd(full_matrices)
            return u.transpose(-2, -1).cast(dtype), s.cast(dtype), v.transpose(-2, -1).cast(dtype)
        taped, x = x, x.detach()
        count = x.shape[-1]
        even = count + count % 2
        w = x.pad([(0, 0)] * (x.ndim - 1) + [(0, even - count)])
        v = cast(Any, type(self)).eye(even, dtype=x.dtype, device=x.device)._broadcast_to((*x.shape[:-2], even, even))
        joined = w.cat(v, dim=-2)  # what happens to columns of W happens to those of V
        for _ in range(SWEEPS[x.dtype] * (even - 1) if even > 2 else 2):
            joined = _turned(_rotated(joined, x.shape[-2])).contiguous()
        w, v = joined.split([x.shape[-2], even], joined.ndim - 2)
        lengths = w.square().sum(-2).sqrt()
        order = lengths.argsort(-1, descending=True)[..., :count]
        s = lengths.gather(-1, order)
        w, v = (part._columns(order) for part in (w, v))
        v = v[..., :count, :]
        q, r = (w / (s == 0).where(1.0, s).unsqueeze(-2)).qr()
        signs = (r.diagonal(0, r.ndim - 2, r.ndim - 1) < 0).where(-1.0, 1.0)
        u = q[..., :count] * signs.unsqueeze(-2)
        if taped.requires_grad:
            change = taped._taped((taped - x).lazydata, svd_gradient, (taped,), None)
            u, s, v = _followed(change, u, s, v)
        else:
            u, s, v = (taped._by_own_rule(one.lazydata, svd_unmarked_gradient, (taped,)) for one in (u, s, v))
        if full_matrices and x.shape[-2] > count:
            u = u.cat(q[..., count:], dim=-1)
        return u.cast(dtype), s.cast(dtype), v.transpose(-2, -1).cast(dtype)

    def _columns(self, order: Tensor) -> Tensor:
        """The columns of each matrix in an order of its own."""
        index = order.unsqueeze(-2)._broadcast_to((*self.shape[:-1], order.shape[-1]))
        return self.gather(-1, index)


def svd_gradient(step: Step, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """dx = g. No second derivatives: `_followed` is the first order of what the factors are."""
    if not isinstance(g, LazyBuffer):
        raise NotImplementedError("svd has first derivatives only: differentiate what is wanted of it in another way")
    return (g,)


def svd_unmarked_gradient(step: Step, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """None: how the factors follow the matrix was not computed."""
    raise RuntimeError(
        "gradient through svd: make the targets with requires_grad=True, or call requires_grad_() on them, before "
        "computing with them"
    )


def _followed(change: Tensor, u: Tensor, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a matrix's small `change` (0 here, but on the tape) makes of its factors, to first order.

    P = Uᵀ · dA · V; dS is its diagonal, and with E = 1 / (sⱼ² - sᵢ²) off the diagonal dU = U (E ∘ (P S + S Pᵀ)) +
    (dA V - U P) S⁻¹ and dV = V (E ∘ (S P + Pᵀ S)) (Papadopoulo and Lourakis 2000).
    """
    moved = change.dot(v)
    p = u.transpose(-2, -1).dot(moved)
    across, down = s.unsqueeze(-2), s.unsqueeze(-1)
    gap = across.square() - down.square()
    is_same = gap == 0
    share = is_same.where(0.0, 1.0 / is_same.where(1.0, gap))
    turned = p.transpose(-2, -1)
    inverse = (across == 0).where(0.0, 1.0 / (across == 0).where(1.0, across))
    du = u.dot(share * (p * across + down * turned)) + (moved - u.dot(p)) * inverse
    dv = v.dot(share * (down * p + turned * across))
    return u + du, s + p.diagonal(0, p.ndim - 2, p.ndim - 1), v + dv


def _rotated(joined: Tensor, rows: int) -> Tensor:
    """Column i of the left half and column i of the right half, rotated so that their first `rows` are orthogonal."""
    half = joined.shape[-1] // 2
    left, right = joined.split(half, joined.ndim - 1)
    p, q = left[..., :rows, :], right[..., :rows, :]
    a, b = p.square().sum(-2, keepdim=True), q.square().sum(-2, keepdim=True)
    c = (p * q).sum(-2, keepdim=True)
    is_done = c == 0
    zeta = (b - a) / (2.0 * is_done.where(1.0, c))
    tangent = (zeta < 0).where(-1.0, 1.0) / (zeta.abs() + (1.0 + zeta.square()).sqrt())
    tangent = is_done.where(0.0, tangent)
    cosine = (1.0 + tangent.square()).rsqrt()
    sine = cosine * tangent
    return (left * cosine - right * sine).cat(left * sine + right * cosine, dim=-1)


def _turned(joined: Tensor) -> Tensor:
    """The next round of a tournament: all columns but the first move on by one place around the two halves."""
    half = joined.shape[-1] // 2
    if half == 1:
        return joined
    parts = [(0, 1), (half, half + 1), (1, half - 1), (half + 1, 2 * half), (half - 1, half)]
    found = [joined[..., start:stop] for start, stop in parts if stop > start]
    return found[0].cat(*found[1:], dim=-1)
