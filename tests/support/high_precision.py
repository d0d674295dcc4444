"""The reference of functions lowered to arithmetic: NumPy's for many arguments, and mpmath's exact values."""

from __future__ import annotations

import math

import mpmath
import numpy as np

from tinyexplore.uop import Ops

REFERENCE = {
    Ops.EXP: (np.exp, mpmath.exp),
    Ops.EXP2: (np.exp2, lambda x: mpmath.mpf(2) ** x),
    Ops.LOG: (np.log, mpmath.log),
    Ops.LOG2: (np.log2, lambda x: mpmath.log(x, 2)),
    Ops.SIN: (np.sin, mpmath.sin),
    Ops.COS: (np.cos, mpmath.cos),
    Ops.TANH: (np.tanh, mpmath.tanh),
    Ops.ERF: (np.vectorize(math.erf, otypes=[float]), mpmath.erf),
}

__all__ = ["REFERENCE"]
