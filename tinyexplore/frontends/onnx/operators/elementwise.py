"""Operators that compute each element on its own: arithmetic, comparison, activations, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from tinyexplore.dtype import DType, dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import Value, dtype_of_number
from tinyexplore.tensor import Tensor

# the largest value of an 8-bit float, and the bound above which a value would round to the next larger number
FP8_LIMITS = {dtypes.fp8e4m3: (448.0, 464.0), dtypes.fp8e5m2: (57344.0, 61440.0)}
SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875

# operators whose only parameter is their input → the function of Tensor
_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": Tensor.abs,
    "Acos": Tensor.acos,
    "Acosh": Tensor.acosh,
    "Asin": Tensor.asin,
    "Asinh": Tensor.asinh,
    "Atan": Tensor.atan,
    "Atanh": Tensor.atanh,
    "BitwiseNot": Tensor.bitwise_not,
    "Ceil": Tensor.ceil,
    "Cos": Tensor.cos,
    "Cosh": Tensor.cosh,
    "Erf": Tensor.erf,
    "Exp": Tensor.exp,
    "Floor": Tensor.floor,
    "IsNaN": Tensor.isnan,
    "Log": Tensor.log,
    "Mish": Tensor.mish,
    "Neg": Tensor.neg,
    "Not": Tensor.logical_not,
    "Reciprocal": Tensor.reciprocal,
    "Relu": Tensor.relu,
    "Round": Tensor.round,
    "Sigmoid": Tensor.sigmoid,
    "Sign": Tensor.sign,
    "Sin": Tensor.sin,
    "Sinh": Tensor.sinh,
    "Softplus": Tensor.softplus,
    "Softsign": Tensor.softsign,
    "Sqrt": Tensor.sqrt,
    "Tan": Tensor.tan,
    "Tanh": Tensor.tanh,
}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": lambda a, b: a + b,
    "And": lambda a, b: a & b,
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
    "Equal": lambda a, b: a.eq(b),
    "Greater": lambda a, b: a > b,
    "GreaterOrEqual": lambda a, b: a >= b,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "Mul": lambda a, b: a * b,
    "Or": lambda a, b: a | b,
    "Sub": lambda a, b: a - b,
    "Xor": lambda a, b: a ^ b,
}


def _register() -> None:
    for name, unary in _UNARY.items():
        operator(name)(lambda node, f=unary: f(node.tensor(0)))  # type: ignore[misc]
    for name, binary in _BINARY.items():
        operator(name)(lambda node, f=binary: f(*_broadcast_operands(node)))  # type: ignore[misc]


def _broadcast_operands(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Returns the two inputs. Before operator set 7, the second one was aligned with `axis` of the first."""
    a, b = node.tensor(0), node.tensor(1)
    if node.version < 7 and node.attribute("broadcast", 0) and b.ndim < a.ndim:
        axis = node.attribute("axis", a.ndim - b.ndim)
        axis = axis + a.ndim if axis < 0 else axis
        b = b.reshape(tuple(b.shape) + (1,) * (a.ndim - axis - b.ndim))
    return a, b


_register()


@operator("Div")
def _div(node: OnnxNode) -> Tensor:
    a, b = _broadcast_operands(node)
    if dtypes.is_float(a.dtype):
        return a / b
    if dtypes.is_unsigned(a.dtype):
        return a.idiv(b)
    return (a - a.fmod(b)).idiv(b)  # rounded towards zero, as in C


@operator("Mod")
def _mod(node: OnnxNode) -> Tensor:
    a, b = node.tensor(0), node.tensor(1)
    return a.fmod(b) if node.attribute("fmod", 0) else a.mod(b)


@operator("Pow")
def _pow(node: OnnxNode) -> Tensor:
    """Returns the power. The result has the dtype of the base, whatever the dtype of the exponent."""
    base, exponent = _broadcast_operands(node)
    if dtypes.is_float(base.dtype):
        if not dtypes.is_float(exponent.dtype):
            wide = dtypes.float64 if base.dtype == dtypes.float64 else dtypes.float32
            return base.cast(wide).pow(exponent.cast(wide)).cast(base.dtype)
        wide = exponent.dtype if exponent.dtype.itemsize > base.dtype.itemsize else base.dtype
        return base.cast(wide).pow(exponent.cast(wide)).cast(base.dtype)
    if dtypes.is_float(exponent.dtype):
        return base.cast(dtypes.float64).pow(exponent.cast(dtypes.float64)).cast(base.dtype)
    return base.pow(exponent.cast(base.dtype))


@operator("BitShift")
def _bit_shift(node: OnnxNode) -> Tensor:
    a, b = node.tensor(0), node.tensor(1)
    return a << b if node.require("direction") == "LEFT" else a >> b


@operator("Sum")
def _sum(node: OnnxNode) -> Tensor:
    return reduce(lambda a, b: a + b, node.tensors())


@operator("Mean")
def _mean(node: OnnxNode) -> Tensor:
    return reduce(lambda a, b: a + b, node.tensors()) / len(node.inputs)


@operator("Max")
def _max(node: OnnxNode) -> Tensor:
    return reduce(Tensor.maximum, node.tensors())


@operator("Min")
def _min(node: OnnxNode) -> Tensor:
    return reduce(Tensor.minimum, node.tensors())


@operator("Where")
def _where(node: OnnxNode) -> Tensor:
    return node.tensor(0).where(node.tensor(1), node.tensor(2))


@operator("Identity")
def _identity(node: OnnxNode) -> Value:
    return node.inputs[0]


@operator("IsInf")
def _isinf(node: OnnxNode) -> Tensor:
    return node.tensor(0).isinf(bool(node.attribute("detect_positive", 1)), bool(node.attribute("detect_negative", 1)))


# *** casts ***


def cast_as_standard(x: Tensor, dtype: DType, saturate: bool = True) -> Tensor:
    """Casts `x` to another dtype. For an 8-bit float, `saturate` limits values beyond its range to the largest
    value."""
    if dtype not in dtypes.fp8s or x.dtype == dtype:
        return x.cast(dtype)
    wide = x.cast(dtypes.float32)
    limit, above = FP8_LIMITS[dtype]
    if saturate:
        return wide.isnan().where(wide, wide.clip(-limit, limit)).cast(dtype)
    outside = wide.abs() > above
    overflow = wide.sign() * math.inf if dtype == dtypes.fp8e5m2 else math.nan
    return outside.where(overflow, wide.clip(-limit, limit)).cast(dtype)


@operator("Cast")
def _cast(node: OnnxNode) -> Tensor:
    dtype = dtype_of_number(int(node.require("to")))
    return cast_as_standard(node.tensor(0), dtype, bool(node.attribute("saturate", 1)))


@operator("CastLike")
def _cast_like(node: OnnxNode) -> Tensor:
    return cast_as_standard(node.tensor(0), node.dtype(1), bool(node.attribute("saturate", 1)))


@operator("BitCast")
def _bitcast(node: OnnxNode) -> Tensor:
    return node.tensor(0).bitcast(dtype_of_number(int(node.require("to"))))


# *** activations ***


@operator("Clip")
def _clip(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    if node.version < 11:
        low, high = node.attribute("min", -math.inf), node.attribute("max", math.inf)
        return x.clip(low, high)
    if node.has(1):
        x = x.maximum(node.tensor(1).cast(x.dtype))
    return x.minimum(node.tensor(2).cast(x.dtype)) if node.has(2) else x


@operator("LeakyRelu")
def _leaky_relu(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return (x < 0).where(x * node.attribute("alpha", 0.01), x)


@operator("PRelu")
def _prelu(node: OnnxNode) -> Tensor:
    x, slope = node.tensor(0), node.tensor(1)
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1] and slope.shape[0] > 1:
        # one factor per channel, as exporters of the first versions wrote it
        slope = slope.reshape((-1,) + (1,) * (x.ndim - 2))
    return (x < 0).where(x * slope, x)


@operator("Elu")
def _elu(node: OnnxNode) -> Tensor:
    return node.tensor(0).elu(node.attribute("alpha", 1.0))


@operator("Celu")
def _celu(node: OnnxNode) -> Tensor:
    return node.tensor(0).celu(node.attribute("alpha", 1.0))


@operator("Selu")
def _selu(node: OnnxNode) -> Tensor:
    return node.tensor(0).selu(node.attribute("alpha", SELU_ALPHA), node.attribute("gamma", SELU_GAMMA))


@operator("ThresholdedRelu")
def _thresholded_relu(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return (x > node.attribute("alpha", 1.0)).where(x, 0)


@operator("HardSigmoid")
def _hard_sigmoid(node: OnnxNode) -> Tensor:
    return (node.tensor(0) * node.attribute("alpha", 0.2) + node.attribute("beta", 0.5)).clip(0, 1)


@operator("HardSwish")
def _hard_swish(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return x * (x * (1 / 6) + 0.5).clip(0, 1)


@operator("Gelu")
def _gelu(node: OnnxNode) -> Tensor:
    return node.tensor(0).gelu(node.attribute("approximate", "none"))


@operator("Swish")
def _swish(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return x * (x * node.attribute("alpha", 1.0)).sigmoid()


@operator("Shrink")
def _shrink(node: OnnxNode) -> Tensor:
    x, threshold, bias = node.tensor(0), node.attribute("lambd", 0.5), node.attribute("bias", 0.0)
    return (x < -threshold).where(x + bias, (x > threshold).where(x - bias, 0)).cast(x.dtype)


@operator("Dropout")
def _dropout(node: OnnxNode) -> tuple[Value, ...]:
    """Applies dropout. In training mode with a ratio above 0, the mask is random, from this package's generator."""
    x = node.tensor(0)
    ratio = float(node.scalar(1)) if node.has(1) else node.attribute("ratio", 0.5)
    training = bool(node.scalar(2)) if node.has(2) else False
    if not training or ratio == 0:
        return x, x.ones_like(dtype=dtypes.bool)
    mask = Tensor.rand(*x.shape) >= ratio
    return mask.where(x / (1 - ratio), 0).cast(x.dtype), mask
