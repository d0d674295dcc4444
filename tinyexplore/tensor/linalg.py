"""Matrix decompositions: QR by Householder reflections, SVD by Jacobi rotations.

Both consist of tensor operations on stacks of matrices (…, m, n). QR takes one step per column, SVD one per round of
column pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from tinyexplore.dtype import dtypes
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.creation import Creation
from tinyexplore.tensor.gradients import gradient_by_tensors
from tinyexplore.tensor.products import Products
from tinyexplore.tensor.reduction import sum_dtype

if TYPE_CHECKING:
    from typing_extensions import Self

    from tinyexplore.autograd import TapeEntry

# sweeps over all column pairs; in practice, after these nothing changes: at the end, convergence is quadratic
SWEEPS = {dtypes.float32: 9, dtypes.float64: 12}

SMALLEST = {dtypes.float32: 2.0**-126, dtypes.float64: 2.0**-1022}
"""The least positive normal number."""


T = TypeVar("T", bound="LinearAlgebra")


class LinearAlgebra(Creation, Products):
    __slots__ = ()

    def _scale_matrices(self, operation: str) -> tuple[Self, Self]:
        """Scales this tensor, in the dtype to compute in, by powers of 2, so that squares neither overflow nor
        underflow.

        Returns:
            The scaled matrices (…, m, n), and the powers of 2 that they were divided by, (…, 1, 1).
        """
        if self.ndim < 2 or 0 in self.shape:
            raise ShapeError(f"{operation} of a tensor of shape {self.shape}: need non-empty matrices (…, m, n)")
        x = self._to_float()
        x = x.cast(sum_dtype(x.dtype))
        peak = x.detach().abs().max((-2, -1), keepdim=True).clip(SMALLEST[x.dtype])
        scale = peak.log2().floor().exp2()
        return x / scale, scale

    def qr(self) -> tuple[Self, Self]:
        """Returns Q (…, m, m), orthogonal, and R (…, m, n), upper triangular, with Q · R = this matrix.

        Each Householder reflection H = 1 - 2 v vᵀ makes one column zero below the diagonal.
        """
        r, unit = self._scale_matrices("qr")
        rows, columns = r.shape[-2:]
        dtype = self._to_float().dtype
        q = type(self).eye(rows, dtype=r.dtype, device=self.device)._broadcast_to((*r.shape[:-1], rows))
        row_numbers = r._positions_along(r.ndim - 2)
        for k in range(min(rows - 1, columns)):
            column = r[..., k : k + 1]
            part_below = (row_numbers >= k).where(column, 0.0)
            corner = column[..., k : k + 1, :]
            length = part_below.square().sum(-2, keepdim=True).sqrt()
            target = (corner < 0).where(length, -length)  # this sign avoids cancellation
            v = row_numbers.eq(k).where(part_below - target, part_below)
            square = v.square().sum(-2, keepdim=True)
            scale = square.eq(0).where(0.0, 2.0 / square.eq(0).where(1.0, square))
            r = (r - v * (scale * (v * r).sum(-2, keepdim=True))).contiguous()
            q = (q - (q.dot(v) * scale) * v.transpose(-2, -1)).contiguous()
        return q.cast(dtype), (r.triu() * unit).cast(dtype)

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """Returns U, S and Vᵀ with U · diag(S) · Vᵀ = this matrix. S is in descending order.

        U is (…, m, m) and Vᵀ (…, n, n). Without `full_matrices` they are (…, m, k) and (…, k, n) for k = min(m, n).

        One-sided Jacobi (Hestenes 1958): rotates column pairs until all columns are orthogonal; their lengths are the
        singular values. All pairs of a round are rotated together (Brent and Luk 1985). If singular values are equal or
        0, the choice of vectors is arbitrary. The gradients are then those of results that do not depend on this choice
        (see `svd_gradient`). Columns of U after the n-th have no gradient.
        """
        if self.ndim >= 2 and self.shape[-2] < self.shape[-1]:
            v, s, u = self.transpose(-2, -1).svd(full_matrices)
            return u.transpose(-2, -1), s, v.transpose(-2, -1)
        taped, scale = self._scale_matrices("svd")
        dtype, x = self._to_float().dtype, taped.detach()
        count = x.shape[-1]
        even_count = count + count % 2
        w = x.pad([(0, 0)] * (x.ndim - 1) + [(0, even_count - count)])
        v = (
            type(self)
            .eye(even_count, dtype=x.dtype, device=x.device)
            ._broadcast_to((*x.shape[:-2], even_count, even_count))
        )
        joined = w.cat(v, dim=-2)  # the columns of V undergo the same operations as those of W
        for _ in range(SWEEPS[x.dtype] * (even_count - 1) if even_count > 2 else 2):
            joined = _advance_round(_rotate_pairs(joined, x.shape[-2])).contiguous()
        w, v = joined.split([x.shape[-2], even_count], joined.ndim - 2)
        lengths = w.square().sum(-2).sqrt()
        order = lengths.argsort(-1, descending=True)[..., :count]
        s = lengths.gather(-1, order)
        w, v = (matrix._permute_columns(order) for matrix in (w, v))
        v = v[..., :count, :]
        q, r = (w / s.eq(0).where(1.0, s).unsqueeze(-2)).qr()
        signs = (r.diagonal(0, r.ndim - 2, r.ndim - 1) < 0).where(-1.0, 1.0)
        u = q[..., :count] * signs.unsqueeze(-2)
        factors = u.cat(s.unsqueeze(-2), v, dim=-2).contiguous()
        factors = taped._wrap_with_rule(factors.lazydata, svd_gradient, (taped,), (type(self),))
        u, s, v = factors._split_factors(x.shape[-2])
        if full_matrices and x.shape[-2] > count:
            u = u.cat(q[..., count:], dim=-1)
        return u.cast(dtype), (s * scale.squeeze(-1)).cast(dtype), v.transpose(-2, -1).cast(dtype)

    def _split_factors(self, rows: int) -> tuple[Self, Self, Self]:
        """Returns U (…, rows, n), S (…, n) and V (…, n, n), which this tensor has stacked along its rows."""
        u, s, v = self.split([rows, 1, self.shape[-1]], self.ndim - 2)
        return u, s.squeeze(-2), v

    def _permute_columns(self, order: Self) -> Self:
        """Permutes the columns of each matrix by `order`."""
        index = order.unsqueeze(-2)._broadcast_to((*self.shape[:-1], order.shape[-1]))
        return self.gather(-1, index)


@gradient_by_tensors
def svd_gradient(
    step: TapeEntry, values: Sequence[LinearAlgebra], g: LinearAlgebra
) -> tuple[LinearAlgebra | None, ...]:
    """Gradient rule of A = U S Vᵀ: dA = U (P + dS) Vᵀ + (dU - U Uᵀ dU) S⁻¹ Vᵀ, the second term for a tall A only.

    With K = Uᵀ dU - dUᵀ U and L = Vᵀ dV - dVᵀ V, Pᵢⱼ = (K + L) / 2 / (sⱼ - sᵢ) + (K - L) / 2 / (sⱼ + sᵢ): the adjoint
    of the factors' differentials (Papadopoulo and Lourakis 2000). If the result does not depend on the choice of
    vectors for equal values, the first numerator is 0. Such quotients, and S⁻¹ of 0, count as 0.
    """
    factors = step.arg[0]._wrap_on_tape(step.result)
    rows, columns = values[0].shape[-2:]
    u, s, v = factors._split_factors(rows)
    du, ds, dv = g._split_factors(rows)
    s_columns, s_rows = s.unsqueeze(-2), s.unsqueeze(-1)
    k, ell = _skew(u, du), _skew(v, dv)
    inner = _divide_safely(0.5 * (k + ell), s_columns - s_rows) + _divide_safely(0.5 * (k - ell), s_columns + s_rows)
    gradient = u.dot(inner) + u * ds.unsqueeze(-2)
    if rows > columns:
        gradient = gradient + _divide_safely(du - u.dot(u.transpose(-2, -1).dot(du)), s_columns)
    return (gradient.dot(v.transpose(-2, -1)),)


def _skew(x: LinearAlgebra, dx: LinearAlgebra) -> LinearAlgebra:
    """Returns xᵀ dx - dxᵀ x."""
    product = x.transpose(-2, -1).dot(dx)
    return product - product.transpose(-2, -1)


def _divide_safely(x: LinearAlgebra, y: LinearAlgebra) -> LinearAlgebra:
    """Returns x / y, or 0 where y is 0 or so small that 1 / y might overflow."""
    is_tiny = y.abs() < SMALLEST[y.dtype]
    return is_tiny.where(0.0, x / is_tiny.where(1.0, y))


def _rotate_pairs(joined: T, rows: int) -> T:
    """Rotates columns i of the left and right half so that their first `rows` elements are orthogonal (Jacobi)."""
    column_count = joined.shape[-1] // 2
    left, right = joined.split(column_count, joined.ndim - 1)
    p, q = left[..., :rows, :], right[..., :rows, :]
    a, b = p.square().sum(-2, keepdim=True), q.square().sum(-2, keepdim=True)
    c = (p * q).sum(-2, keepdim=True)
    is_done = c.eq(0)
    zeta = (b - a) / (2.0 * is_done.where(1.0, c))
    tangent = (zeta < 0).where(-1.0, 1.0) / (zeta.abs() + (1.0 + zeta.square()).sqrt())
    tangent = is_done.where(0.0, tangent)
    cosine = (1.0 + tangent.square()).rsqrt()
    sine = cosine * tangent
    return (left * cosine - right * sine).cat(left * sine + right * cosine, dim=-1)


def _advance_round(joined: T) -> T:
    """Permutes the columns for the next round of a tournament: all but the first move by one position around the two
    halves."""
    middle = joined.shape[-1] // 2
    if middle == 1:
        return joined
    ranges = [(0, 1), (middle, middle + 1), (1, middle - 1), (middle + 1, 2 * middle), (middle - 1, middle)]
    pieces = [joined[..., start:stop] for start, stop in ranges if stop > start]
    return pieces[0].cat(*pieces[1:], dim=-1)
