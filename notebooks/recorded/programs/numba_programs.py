"""The programs of the recorded dumps of Numba."""

import math

import numpy as np


def softmax_of_product(x, w, b):
    out = np.empty((x.shape[0], w.shape[1]), np.float32)
    for i in range(x.shape[0]):
        largest = np.float32(-np.inf)
        for j in range(w.shape[1]):
            total = b[j]
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total
            largest = max(largest, total)
        s = np.float32(0)
        for j in range(w.shape[1]):
            out[i, j] = math.exp(out[i, j] - largest)
            s += out[i, j]
        for j in range(w.shape[1]):
            out[i, j] /= s
    return out


def sum_of_squares(x):
    s = np.float32(0)
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s
