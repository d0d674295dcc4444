"""Fuzz of symbolic sizes: random arithmetic with Variables, in kernels and as sizes, against Python and NumPy.

`python -m tests.fuzz.sizes --count 2000` tries 2000 cases on every available device; `--device LLVM` on one,
`--only 1234` one case again. A case is one random expression, written once. Python computes it with ints. The package
computes it with bound Variables: as a value in a kernel, as a size, and as an offset. TinyJit replays it with others.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from tests.backends.programs import C_COMPILERS, EMULATED, GPUS, under
from tinyexplore import Tensor, TinyJit, Variable, dtypes
from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import SymbolicError

NAMES = {"a": (0, 6), "b": (1, 10), "c": (3, 17), "d": (2, 2)}
CONSTANTS = (-17, -7, -4, -3, -2, -1, 1, 2, 3, 4, 5, 8, 12)
WITHOUT_INT64 = ("WEBGPU",)  # devices whose language has integers of 32 bits only
LENGTH = 24  # elements of the tensor that is cut
CALLS = 4  # of each TinyJit, with other values each


def devices() -> tuple[str, ...]:
    """The devices that this machine has."""
    found = ["PYTHON", "LLVM", *(["CLANG"] if C_COMPILERS else [])]
    try:
        Device["WASM"]
        found.append("WASM")
    except DeviceUnavailable:
        pass
    return (*found, *GPUS, EMULATED)


class Mismatch(AssertionError):
    """A result differs from Python's."""


def least(x: Any, y: Any) -> Any:
    """The smaller one, also of sizes (`min` would ask which it is)."""
    if isinstance(x, UOp):
        return x.minimum(y)
    return y.minimum(x) if isinstance(y, UOp) else min(x, y)


def most(x: Any, y: Any) -> Any:
    """The greater one, also of sizes."""
    if isinstance(x, UOp):
        return x.maximum(y)
    return y.maximum(x) if isinstance(y, UOp) else max(x, y)


FUNCTIONS: dict[str, Any] = {"least": least, "most": most}


def expression(random: Random, depth: int) -> str:
    """Arithmetic with Variables and constants of either sign, as text."""
    if depth == 0 or random.random() < 0.15:
        name = random.choice(list(NAMES))
        return name if random.random() < 0.7 else f"({random.choice(CONSTANTS)})"
    first, second = expression(random, depth - 1), expression(random, depth - 1)
    match random.choice(("+", "-", "*", "//", "//", "%", "%", "by", "by", "neg", "least", "most", "compare", "bits")):
        case "by":
            return f"({first} {random.choice(('//', '%'))} {random.choice(CONSTANTS)})"
        case "neg":
            return f"(-{first})"
        case "least" | "most" as name:
            return f"{name}({first}, {second})"
        case "compare":
            return f"(({first} {random.choice(('<', '<=', '>', '>='))} {second}) * {random.choice(CONSTANTS)})"
        case "bits":
            shift = f"({first} {random.choice(('<<', '>>'))} {random.randint(0, 3)})"
            return random.choice((shift, f"({first} {random.choice('&|^')} {random.choice(CONSTANTS)})"))
        case "//" | "%" as sign:
            divisors = (f"most({second}, 1)", f"least({second}, -1)", f"({second} + 40)", second)
            return f"({first} {sign} {random.choices(divisors, (4, 4, 4, 1))[0]})"
        case sign:
            return f"({first} {sign} {second})"
    raise AssertionError


def value(text: str, names: dict[str, Any]) -> Any:
    """Evaluate the expression with ints or with Variables."""
    return eval(text, {**FUNCTIONS, **names})


# *** what is done with an expression `e`; each gives a tensor, and its NumPy array where `e` is an int ***

Use = Callable[[Any, Any], Any]


def _within(e: Any, low: int, high: int) -> Any:
    """`e` cut to low … high, as a part of the size's own arithmetic."""
    return most(least(e, high), low)


def _padded(x: Any, before: Any, after: Any) -> Any:
    if isinstance(x, Tensor):
        return x.pad(((before, after),))
    return np.pad(x, ((before, after),))


def _arange(x: Any, *parts: Any) -> Any:
    """A range on the device of `x`."""
    return Tensor.arange(*parts, device=x.device) if isinstance(x, Tensor) else np.arange(*parts, dtype=np.int32)


def _full(x: Any, shape: tuple[Any, ...], number: Any) -> Any:
    if isinstance(x, Tensor):
        dtype = dtypes.int32 if x.device in WITHOUT_INT64 else dtypes.int64
        return Tensor.full(shape, number, device=x.device, dtype=dtype)
    return np.full(shape, number, np.int64)


def _expanded(x: Any, size: Any) -> Any:
    shape = (size, x.shape[0])
    return x.reshape(1, -1).expand(shape) if isinstance(x, Tensor) else np.broadcast_to(x, shape)


def _joined(parts: list[Any]) -> Any:
    return Tensor.cat(*parts) if isinstance(parts[0], Tensor) else np.concatenate(parts)


USES: dict[str, Use] = {
    "added": lambda x, e: x + e,
    "multiplied": lambda x, e: x * e,
    "taken from": lambda x, e: e - x,
    "divided": lambda x, e: (x - 11) // most(e, 1),
    "divided by negative": lambda x, e: (x - 11) // least(e, -1),
    "remainder": lambda x, e: (x - 11) % most(e, 1),
    "remainder by negative": lambda x, e: (x - 11) % least(e, -1),
    "dividend": lambda x, e: e // (x + 1) + e % (x + 2) + e // (-x - 1) + e % (-x - 1),
    "compared": lambda x, e: (x - 8 < e).sum(),
    "full": lambda x, e: _full(x, (3,), e) + _full(x, (_within(e, 0, 5),), 2).sum(),
    "shrunk": lambda x, e: x[: _within(e, 0, LENGTH)].sum(),
    "offset": lambda x, e: x[_within(e, 0, LENGTH - 3) : _within(e, 0, LENGTH - 3) + 3],
    "element": lambda x, e: x[_within(e, 0, LENGTH - 1)],
    "from the end": lambda x, e: x[_within(e, 0, LENGTH) :].sum() + x[LENGTH - _within(e, 0, LENGTH) :].sum(),
    "padded": lambda x, e: (_padded(x, _within(e, 0, 9), _within(-e, 0, 9)) * 3 + 1).sum(),
    "padded and cut": lambda x, e: _padded(x[: _within(e, 0, 7) + 1], _within(-e, 0, 9), 1)[:2] * 3 + 1,
    "expanded": lambda x, e: (_expanded(x, _within(e, 0, 9)) + 1).sum(),
    "rows": lambda x, e: (x[: _within(e, 0, 11) * 2].reshape((_within(e, 0, 11), 2)) * _arange(x, 2)).sum(),
    "range": lambda x, e: (_arange(x, _within(e, -5, 30)) + 1).sum(),
    "range between": lambda x, e: (_arange(x, _within(e, -9, 9), _within(-e, -9, 9), 2) * 2 + 1).sum(),
    "range down": lambda x, e: (_arange(x, _within(e, -9, 9), _within(-e, -9, 9), -2) * 2 + 1).sum(),
    "range by": lambda x, e: (_arange(x, 0, 31, _within(e, 1, 9)) + 1).sum(),
    "joined": lambda x, e: (_joined([x[: _within(e, 0, 5)], x[_within(-e, 0, 5) :]]))[:4],
    "place and value": lambda x, e: (x[: _within(e, 0, LENGTH)] * e + _within(-e, 0, 3)).sum(),
}


@dataclass
class Tried:
    """Counts of the cases tried. uses: by use; refused: cases that raised an error, by its type."""

    cases: int = 0
    uses: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def run_case(number: int, device: str, tried: Tried) -> None:
    """One expression under one use. Mismatch where it differs."""
    random = Random(number)
    text, use = expression(random, random.randint(1, 4)), random.choice(list(USES))
    calls = [{name: random.randint(*NAMES[name]) for name in NAMES} for _ in range(CALLS)]
    name, context = under(device)
    tried.cases += 1
    tried.uses[use] += 1
    with context:
        dtype = random.choice((np.int32, np.int64))
        data = np.arange(LENGTH, dtype=np.int32 if device in WITHOUT_INT64 else dtype)
        x = Tensor(data, device=name)

        def compute(**variables: Any) -> Tensor:
            return USES[use](x, value(text, variables)).realize()

        jitted = TinyJit(compute)
        for call, ints in enumerate(calls):
            bound = {name: Variable(name, *NAMES[name]).bind(number) for name, number in ints.items()}
            for how, function in (("as it is", compute), ("in a TinyJit", jitted)):
                try:
                    expected = np.asarray(USES[use](data, value(text, ints)))
                    found = function(**bound).numpy()
                except (ZeroDivisionError, OverflowError, SymbolicError) as error:
                    tried.refused[type(error).__name__] += 1
                    return
                if found.shape != expected.shape or not np.array_equal(found, expected.astype(found.dtype)):
                    raise Mismatch(
                        f"case {number}, {use} with e = {text}, {how}, call {call}, on {device}: with {ints} it is "
                        f"{found.tolist()}, in Python {expected.tolist()}"
                    )


def run_cases(numbers: Iterable[int], device: str) -> Tried:
    """All `numbers`, one after the other."""
    tried = Tried()
    for number in numbers:
        try:
            run_case(number, device, tried)
        except Mismatch:
            raise
        except Exception as error:
            raise Mismatch(f"case {number} on {device}: {type(error).__name__}: {error}") from error
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="cases on each device")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="one case")
    parser.add_argument("--device", help="one device instead of all")
    args = parser.parse_args()
    numbers = range(args.first, args.first + args.count) if args.only is None else (args.only,)
    failures = 0
    for device in (args.device,) if args.device else devices():
        tried = Tried()
        for number in numbers:
            try:
                run_case(number, device, tried)
            except Exception as error:
                failures += 1
                print(f"--- case {number} on {device}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        print(f"{device}: {tried.cases} cases; refused: {dict(tried.refused)}", flush=True)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
