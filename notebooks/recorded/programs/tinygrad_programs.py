"""The programs of the recorded dumps of tinygrad."""

from tinygrad import Tensor, dtypes


def softmax_of_product():
    x, w, b = Tensor.empty(64, 48), Tensor.empty(48, 32), Tensor.empty(32)
    h = x @ w + b
    return h.softmax()


def layer_norm():
    x = Tensor.empty(16, 32)
    y = x.layernorm()
    return y * 2 + 1


def matmul():
    a, b = Tensor.empty(32, 32), Tensor.empty(32, 32)
    return a @ b


def convolution():
    image, weight = Tensor.empty(1, 2, 8, 8), Tensor.empty(3, 2, 3, 3)
    return image.conv2d(weight).relu()


def mean_and_cast():
    x = Tensor.empty(20, 30)
    return (x > 0).cast(dtypes.float32).mean(axis=1) + x.sum(axis=1)
