"""Derives the polynomials of `tinyexplore/uop/transcendental.py` and `transcendental64.py`, and prints them
with their errors.

Each is the minimax polynomial P of least weighted error max |(f(t) - P(t)) * w(t)| on an interval, found by Remez
exchange: the error of the best polynomial takes its greatest value at degree + 2 places with alternating signs, so fit
those places, look where the error is greatest now, and repeat. Then the coefficients are rounded one at a time, lowest
degree first, to whichever neighbor leaves less error once the others are fitted again to the rest.

The weight makes the error relative to what is computed in the end: for exp(r) = 1 + r + r² P(r) it is r² / exp(r).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

GRID = 1500
ROUNDS = 12
mpmath.mp.dps = 40


@dataclass(frozen=True)
class Polynomial:
    """What P shall approximate, how the error counts, and in which type its coefficients are."""

    name: str
    degree: int
    low: float
    high: float
    function: Callable[[mpf], mpf]
    weight: Callable[[mpf], mpf]
    dtype: type[np.floating] = np.float32


def _series(first: int, function: Callable[[mpf], mpf], coefficient: Callable[[int], mpf]) -> Callable[[mpf], mpf]:
    """`function`, a difference divided by a power of t, by its Taylor series where the difference would cancel."""

    def value(t: mpf) -> mpf:
        if abs(t) > mpf("1e-6"):
            return function(t)
        return sum(coefficient(first + k) * t**k for k in range(4))

    return value


LN2 = mpmath.log(2)
_exp_tail = _series(2, lambda r: (mpmath.exp(r) - 1 - r) / r**2, lambda k: 1 / mpmath.factorial(k))
_exp2_tail = _series(1, lambda f: (mpf(2) ** f - 1) / f, lambda k: LN2**k / mpmath.factorial(k))
_log_tail = _series(3, lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3, lambda k: mpf(-1) ** (k + 1) / k)
_sin_tail = _series(
    1,
    lambda z: (mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda k: mpf(-1) ** k / mpmath.factorial(2 * k + 1),
)
_cos_tail = _series(
    2, lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2, lambda k: mpf(-1) ** k / mpmath.factorial(2 * k)
)
_tanh_tail = _series(
    0,
    lambda z: (mpmath.tanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda k: (mpf(-1) / 3, mpf(2) / 15, mpf(-17) / 315, mpf(62) / 2835)[k],
)
_erf_ratio = _series(
    0,
    lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z),
    lambda k: 2 / mpmath.sqrt(mpmath.pi) * mpf(-1) ** k / (mpmath.factorial(k) * (2 * k + 1)),
)
_atanh_ratio = _series(
    0, lambda z: 2 / LN2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z), lambda k: 2 / LN2 / (2 * k + 1)
)

_atanh_tail = _series(
    1, lambda z: 2 * (mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z, lambda k: mpf(2) / (2 * k + 1)
)


def _zero_where_small(function: Callable[[mpf], mpf]) -> Callable[[mpf], mpf]:
    return lambda t: mpf(0) if abs(t) < mpf("1e-12") else function(t)


POLYNOMIALS = (
    Polynomial("EXP2", 5, -0.5, 0.5, _exp2_tail, lambda f: f / mpf(2) ** f),
    Polynomial("EXP", 4, -0.3475, 0.3475, _exp_tail, lambda r: r**2 / mpmath.exp(r)),
    Polynomial("EXP2_NEAR", 2, -0.03125, 0.03125, _exp2_tail, lambda f: f / mpf(2) ** f),
    Polynomial("EXP_NEAR", 1, -0.0217, 0.0217, _exp_tail, lambda r: r**2 / mpmath.exp(r)),
    Polynomial(
        "LOG", 7, -0.29290, 0.41422, _log_tail, lambda f: f**2 if abs(f) < mpf("1e-9") else f**3 / mpmath.log1p(f)
    ),
    Polynomial("SIN", 3, 0.0, 1.0, _sin_tail, _zero_where_small(lambda z: z**1.5 / mpmath.sin(mpmath.sqrt(z)))),
    Polynomial("COS", 2, 0.0, 1.0, _cos_tail, lambda z: z**2 / mpmath.cos(mpmath.sqrt(z))),
    Polynomial("TANH", 4, 0.0, 0.3907, _tanh_tail, _zero_where_small(lambda z: z**1.5 / mpmath.tanh(mpmath.sqrt(z)))),
    Polynomial("ERF", 6, 0.0, 1.0, lambda z: _erf_ratio(z) - 1, lambda z: 1 / _erf_ratio(z)),
    Polynomial(
        "ERFC_ROOT", 8, 1.0, 4.0, lambda x: mpmath.erfc(x) ** 0.25, lambda x: 4 * mpmath.erfc(x) ** 0.75 / mpmath.erf(x)
    ),
    Polynomial("LOG2_OF_RATIO", 5, 0.0, 0.02944, _atanh_ratio, lambda z: 1 / _atanh_ratio(z), np.float64),
    Polynomial("EXP2_LONG", 7, -0.5, 0.5, _exp2_tail, lambda f: f / mpf(2) ** f, np.float64),
    Polynomial("EXP64", 9, -0.3467, 0.3467, _exp_tail, lambda r: r**2 / mpmath.exp(r), np.float64),
    Polynomial("EXP2_64", 10, -0.5, 0.5, _exp2_tail, lambda f: f / mpf(2) ** f, np.float64),
    Polynomial("EXP64_NEAR", 5, -0.0434, 0.0434, _exp_tail, lambda r: r**2 / mpmath.exp(r), np.float64),
    Polynomial("EXP2_64_NEAR", 6, -0.0625, 0.0625, _exp2_tail, lambda f: f / mpf(2) ** f, np.float64),
    Polynomial("ATANH64", 6, 0.0, 0.02944, _atanh_tail, lambda z: z / 2, np.float64),
    Polynomial(
        "SIN64",
        6,
        0.0,
        0.618,
        _sin_tail,
        _zero_where_small(lambda z: z**1.5 / mpmath.sin(mpmath.sqrt(z))),
        np.float64,
    ),
    Polynomial("COS64", 5, 0.0, 0.618, _cos_tail, lambda z: z**2 / mpmath.cos(mpmath.sqrt(z)), np.float64),
)


def _fit(t: np.ndarray, target: np.ndarray, weight: np.ndarray, count: int) -> tuple[list[mpf], float]:
    """`count` coefficients with the least greatest weighted error over the grid, and that error."""
    angles = np.cos(np.pi * np.arange(count + 1) / count)[::-1]
    places = sorted({int(round((angle + 1) / 2 * (len(t) - 1))) for angle in angles})
    best: tuple[float, list[mpf]] = (np.inf, [])
    for _ in range(ROUNDS):
        matrix = mpmath.matrix(count + 1, count + 1)
        right = mpmath.matrix(count + 1, 1)
        for row, place in enumerate(places):
            scale = mpf(float(weight[place]))
            for power in range(count):
                matrix[row, power] = mpf(float(t[place])) ** power * scale
            matrix[row, count] = (-1) ** row
            right[row] = _exact(target[place]) * scale
        solution = mpmath.lu_solve(matrix, right)
        coefficients = [solution[power] for power in range(count)]
        error = target - sum(_long(c) * t**power for power, c in enumerate(coefficients))
        error = error * weight
        worst = float(np.max(np.abs(error)))
        if worst < best[0]:
            best = (worst, coefficients)
        moved = _alternating_extrema(error, count + 1)
        if moved is None or moved == places:
            break
        places = moved
    return best[1], best[0]


def _exact(x: np.longdouble) -> mpf:
    high = float(x)
    return mpf(high) + mpf(float(x - np.longdouble(high)))


def _long(x: mpf) -> np.longdouble:
    high = float(x)
    return np.longdouble(high) + np.longdouble(float(x - mpf(high)))


def _alternating_extrema(error: np.ndarray, count: int) -> list[int] | None:
    """`count` places of greatest error with alternating signs; None where there are fewer."""
    signs = np.sign(error)
    runs: list[int] = []
    start = 0
    for place in range(1, len(error) + 1):
        if place == len(error) or (signs[place] != signs[start] and signs[place] != 0):
            runs.append(start + int(np.argmax(np.abs(error[start:place]))))
            start = place
    while len(runs) > count:
        if len(runs) == count + 1:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
            continue
        least = min(range(len(runs)), key=lambda k: abs(error[runs[k]]))
        neighbors = [k for k in (least - 1, least + 1) if 0 <= k < len(runs)]
        other = min(neighbors, key=lambda k: abs(error[runs[k]]))
        for k in sorted((least, other), reverse=True):
            runs.pop(k)
    return runs if len(runs) == count else None


def derive(wanted: Polynomial) -> tuple[list[float], float]:
    """The coefficients, lowest degree first, and the greatest weighted error of the rounded polynomial."""
    angles = np.cos(np.pi * (np.arange(GRID) + 0.5) / GRID)[::-1]
    t = (wanted.low + wanted.high) / 2 + (wanted.high - wanted.low) / 2 * angles
    target = np.array([_long(wanted.function(mpf(float(x)))) for x in t])
    weight = np.array([_long(abs(mpf(wanted.weight(mpf(float(x)))))) for x in t])
    t = t.astype(np.longdouble)
    rounded: list[float] = []
    coefficients, _ = _fit(t, target, weight, wanted.degree + 1)
    for power in range(wanted.degree + 1):
        nearest = wanted.dtype(float(coefficients[0]))
        towards = np.inf if float(nearest) < float(coefficients[0]) else -np.inf
        tries = []
        for candidate in (float(nearest), float(np.nextafter(nearest, wanted.dtype(towards)))):
            rest = target - np.longdouble(candidate)
            fitted: tuple[list[mpf], float] = ([], float(np.max(np.abs(rest * weight))))
            if power < wanted.degree:
                fitted = _fit(t, rest / t, weight * np.abs(t), wanted.degree - power)
            tries.append((fitted[1], candidate, fitted[0]))
        error, chosen, coefficients = min(tries, key=lambda attempt: attempt[0])
        rounded.append(chosen)
        target, weight = (target - np.longdouble(chosen)) / t, weight * np.abs(t)
    return rounded, error


def main() -> None:
    for wanted in POLYNOMIALS:
        coefficients, error = derive(wanted)
        print(f"{wanted.name} = (  # error {error:.2e} = 2**{np.log2(error):.1f}")
        for coefficient in coefficients:
            print(f"    {coefficient!r},")
        print(")")


if __name__ == "__main__":
    main()
