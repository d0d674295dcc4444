"""Times of the same softmax: `python times.py NAME` prints the median call and its quartiles in microseconds, as JSON.

NAME is tinyexplore, jax, numba, tinygrad or torch; each needs its package. Inputs are x (64×48), w (48×32), b (32).
"""

import json
import statistics
import sys
import time

import numpy as np

CALLS = 2_000
x, w, b = (np.random.default_rng(0).random(shape, np.float32) for shape in ((64, 48), (48, 32), (32,)))


def tinyexplore():
    from tinyexplore import Tensor, TinyJit, __version__

    x_, w_, b_ = (Tensor(one).realize() for one in (x, w, b))
    call = TinyJit(lambda x, w, b: (x @ w + b).softmax().realize())
    return __version__, lambda: call(x_, w_, b_).numpy()


def jax():
    import jax as package
    from jax_programs import softmax_of_product

    call = package.jit(softmax_of_product)
    inputs = [package.numpy.asarray(one) for one in (x, w, b)]
    return package.__version__, lambda: call(*inputs).block_until_ready()


def numba():
    import numba as package
    from numba_programs import softmax_of_product

    call = package.njit(softmax_of_product)
    return package.__version__, lambda: call(x, w, b)


def tinygrad():
    from importlib.metadata import version

    from tinygrad import Tensor, TinyJit

    x_, w_, b_ = (Tensor(one).realize() for one in (x, w, b))
    call = TinyJit(lambda x, w, b: (x @ w + b).softmax().realize())
    return version("tinygrad"), lambda: call(x_, w_, b_).numpy()


def torch():
    import torch as package
    from torch_programs import softmax_of_product

    call = package.compile(softmax_of_product)
    inputs = [package.from_numpy(one) for one in (x, w, b)]
    return package.__version__, lambda: call(*inputs)


if __name__ == "__main__":
    version, call = globals()[sys.argv[1]]()
    for _ in range(50):
        result = np.asarray(call())
    h = x @ w + b
    expected = np.exp(h - h.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(result, expected, rtol=1e-4, atol=1e-6)
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e6)
    low, median, high = statistics.quantiles(times, n=4)
    print(json.dumps({"name": sys.argv[1], "version": version, "low": low, "median": median, "high": high}))
