"""Normalizing layers."""

from __future__ import annotations

from tinyexplore.dtype import dtypes, least_upper_dtype, least_upper_float
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.checks import need_int, need_tensor
from tinyexplore.tensor.precision import wide_float


def _need_channels(x: Tensor, count: int, layer_name: str) -> None:
    """Raises unless axis 1 of `x` has `count` channels. `layer_name`: the name of the layer."""
    need_tensor(x, f"{layer_name}: x")
    if x.ndim < 2 or x.shape[1] != count:
        raise ShapeError(
            f"{layer_name} for {count} channels of a tensor of shape {x.shape}: need (batch, {count}, …)"
            + (f"; make it for {x.shape[1]} channels, or move them to axis 1" if x.ndim > 1 else "")
        )


def _widen(x: Tensor) -> Tensor:
    """Converts floats to float32 or wider, and ints to the default float: the dtype in which a layer computes before it
    rounds once."""
    return x.cast(wide_float(least_upper_float(x.dtype)))


def _apply_affine(normal: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns normal · weight + bias, rounded to the promoted dtype of `x` and the parameters."""
    result = normal * weight
    if bias is not None:
        result = result + bias
    return result.cast(least_upper_float(least_upper_dtype(x.dtype, weight.dtype)))


class BatchNorm:
    """Normalizes each channel (axis 1) to mean 0 and variance 1 over the batch, then applies weight · x + bias (Ioffe
    and Szegedy, 2015).

    During training, the layer uses the statistics of the batch and updates a running average. In evaluation it uses the
    running average. Without `track_running_stats`, it uses the statistics of the batch in evaluation, too, unless
    `running_mean` and `running_var` are set.
    """

    running_mean: Tensor | None = None
    running_var: Tensor | None = None

    def __init__(
        self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True, momentum: float = 0.1
    ) -> None:
        need_int(sz, "BatchNorm: sz, the number of channels,", 0)
        self.sz = sz
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        if track_running_stats:
            self.running_mean = Tensor.zeros(sz, requires_grad=False)
            self.running_var = Tensor.ones(sz, requires_grad=False)
            self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64, requires_grad=False)

    def __call__(self, x: Tensor) -> Tensor:
        _need_channels(x, self.sz, "BatchNorm")
        mean, var = self.running_mean, self.running_var
        operands, wide_x = [x, self.weight, self.bias], _widen(x)
        if Tensor.training or mean is None or var is None:
            mean, var = self._compute_batch_statistics(wide_x)
        else:
            operands.append(mean)
        target = least_upper_float(least_upper_dtype(*[operand.dtype for operand in operands if operand is not None]))
        normal = wide_x.batchnorm(self.weight, self.bias, mean, (_widen(var) + self.eps).rsqrt())
        return normal.cast(target)

    def _compute_batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean = x.mean(axes)
        # the mean minimizes the sum of squares: the variance has no gradient through it
        centered = x._wrap_stationary(x - mean.reshape((1, -1, *(1,) * (x.ndim - 2))))
        var = centered.square().mean(axes)
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            count = x.numel() // x.shape[1]
            self._update_running(self.running_mean, mean, 1.0)
            self._update_running(self.running_var, var, count / max(count - 1, 1))
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return mean, var

    def _update_running(self, running: Tensor, statistic: Tensor, scale: float) -> None:
        share = statistic.detach() * (scale * self.momentum)
        running.assign((_widen(running) * (1 - self.momentum) + share).cast(running.dtype))


BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm:
    """Normalizes the last axes, of `normalized_shape`, to mean 0 and variance 1, then applies weight · x + bias (Ba et
    al., 2016)."""

    def __init__(
        self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5, elementwise_affine: bool = True
    ) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.axis = tuple(-1 - i for i in range(len(self.normalized_shape)))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Tensor.ones(*self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(*self.normalized_shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        need_tensor(x, f"{type(self).__name__}: x")
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            last_sizes = x.shape[-len(self.normalized_shape) :]
            raise ValueError(
                f"layer norm of shape {x.shape}: the last axes have sizes {last_sizes}, expected "
                f"{self.normalized_shape}"
            )
        if self.weight is None or self.bias is None:
            return x.layernorm(axis=self.axis, eps=self.eps)
        normal = _widen(x).layernorm(axis=self.axis, eps=self.eps)
        return _apply_affine(normal, x, self.weight, self.bias)


class LayerNorm2d(LayerNorm):
    """LayerNorm over the channels (axis 1) of images."""

    def __call__(self, x: Tensor) -> Tensor:
        need_tensor(x, "LayerNorm2d: x")
        if x.ndim != 4:
            raise ShapeError(f"LayerNorm2d of a tensor of shape {x.shape}: need (batch, channels, height, width)")
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class GroupNorm:
    """Normalizes each of `num_groups` groups of channels to mean 0 and variance 1, then applies weight · x + bias (Wu
    and He, 2018)."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        layer_name = type(self).__name__
        need_int(num_groups, f"{layer_name}: the number of groups", 1)
        need_int(num_channels, f"{layer_name}: the number of channels", 0)
        if num_channels % num_groups:
            raise ValueError(f"{num_channels} channels in {num_groups} groups: they must divide evenly")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        _need_channels(x, self.num_channels, type(self).__name__)
        grouped = _widen(x).unflatten(1, (self.num_groups, -1)).flatten(2)
        normal = grouped.layernorm(eps=self.eps).reshape(x.shape)
        if self.weight is None or self.bias is None:
            return normal.cast(least_upper_float(x.dtype))
        shape = (1, -1, *(1,) * (x.ndim - 2))
        return _apply_affine(normal, x, self.weight.reshape(shape), self.bias.reshape(shape))


class InstanceNorm(GroupNorm):
    """GroupNorm with one group per channel."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class RMSNorm:
    """Returns x / √(mean x² + eps) · weight over the last axis (Zhang and Sennrich, 2019).

    Without `elementwise_affine` there is no weight.
    """

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        need_int(dim, "RMSNorm: dim", 0)
        self.eps, self.dim = eps, dim
        self.weight = Tensor.ones(dim) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        need_tensor(x, "RMSNorm: x")
        if x.shape[-1:] != (self.dim,):
            last_size = x.shape[-1] if x.shape else "none"
            raise ShapeError(f"RMSNorm of shape {x.shape}: the last axis has size {last_size}, expected {self.dim}")
        wide_x = _widen(x)
        normal = wide_x * (wide_x.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        if self.weight is None:
            return normal.cast(least_upper_float(x.dtype))
        return _apply_affine(normal, x, self.weight)
