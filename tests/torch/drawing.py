"""Generated inputs of the rows: arrays of all dtypes and shapes, with infinities, NaNs and signed zeros; arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, ...]

FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
WIDE = ("float32", "float32", "float64")
INTS = ("int32", "int64", "int8", "int16", "uint8")
FP8S = ("fp8e4m3", "fp8e5m2")
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-42, -1e-30, 65504.0, 3e38, -3e38, 0.5, -2.5, 1.5)


@dataclass(frozen=True)
class Input:
    """Numbers for a tensor of `dtype`: `values` in a type that NumPy has and that holds them."""

    values: np.ndarray
    dtype: str
    taped: bool = False

    @property
    def shape(self) -> Shape:
        return self.values.shape

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}{'*' if self.taped else ''}={self.values.tolist()}"


class Draw:
    """Draws by name; one method per kind of thing."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    # *** arguments ***

    def int(self, least: int, greatest: int) -> int:
        return self.draw(st.integers(least, greatest))

    def choice(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def axis(self, x: Input) -> int:
        return self.int(-len(x.shape), len(x.shape) - 1)

    def axes(self, x: Input) -> Any:
        """None, one axis, or several."""
        rank = len(x.shape)
        if not rank or self.flag() and self.flag():
            return None
        if self.flag():
            return self.axis(x)
        chosen = self.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
        return tuple(axis - rank if self.flag() else axis for axis in chosen)

    def order(self, rank: int) -> Shape:
        return tuple(self.draw(st.permutations(range(rank))))

    # *** shapes ***

    def shape(self, least: int = 0, most: int = 3, side: int = 4, empty: bool = True) -> Shape:
        rank = self.int(least, most)
        sides = [self.int(1, side) for _ in range(rank)]
        if empty and rank and self.int(0, 19) == 0:
            sides[self.int(0, rank - 1)] = 0
        return tuple(sides)

    def broadcast(self, shape: Shape, least: int = 0) -> Shape:
        """A shape that broadcasts to `shape`."""
        cut = self.int(0, max(len(shape) - least, 0))
        return tuple(self.choice(1, size) for size in shape[cut:])

    # *** arrays ***

    def _numbers(self) -> np.random.Generator:
        return np.random.default_rng(self.int(0, 2**32 - 1))

    def floats(
        self,
        shape: Shape | None = None,
        low: float = -3,
        high: float = 3,
        dtype: str | Sequence[str] = FLOATS,
        special: bool = False,
        taped: bool = True,
    ) -> Input:
        """Floats between two bounds; `special`: now and then with values that are not like others."""
        shape = self.shape() if shape is None else shape
        dtype = dtype if isinstance(dtype, str) else self.choice(*dtype)
        generator = self._numbers()
        values = generator.uniform(low, high, shape)
        if special and self.flag():
            which = generator.integers(0, 2, shape).astype(bool)
            values = np.where(which, generator.choice(SPECIAL, shape), values)
            taped = False
        with np.errstate(all="ignore"):
            return Input(np.asarray(values, np.float64 if dtype == "float64" else np.float32), dtype, taped)

    def ints(
        self,
        shape: Shape | None = None,
        low: int = -9,
        high: int = 9,
        dtype: str | Sequence[str] = INTS,
        extreme: bool = False,
    ) -> Input:
        """Ints between two bounds; `extreme`: anything that the type holds."""
        shape = self.shape() if shape is None else shape
        dtype = dtype if isinstance(dtype, str) else self.choice(*dtype)
        limits = np.iinfo(dtype)
        if extreme and self.flag():
            low, high = int(limits.min), int(limits.max)
        low = max(low, int(limits.min))
        return Input(np.asarray(self._numbers().integers(low, high, shape, dtype, endpoint=True)), dtype)

    def bools(self, shape: Shape | None = None) -> Input:
        shape = self.shape() if shape is None else shape
        return Input(np.asarray(self._numbers().integers(0, 2, shape).astype(bool)), "bool")

    def any(self, shape: Shape | None = None, special: bool = False) -> Input:
        """Floats, ints or bools."""
        kind = self.int(0, 3)
        if kind < 2:
            return self.floats(shape, special=special)
        return self.ints(shape, extreme=True) if kind == 2 else self.bools(shape)

    def pair(self, one: Callable[..., Input], mixed: bool = True, **kwargs: Any) -> tuple[Input, Input]:
        """Two inputs that broadcast; of two types only where both have axes (a scalar tensor is weak in PyTorch)."""
        full = self.shape(1 if mixed else 0)
        first = one(self.broadcast(full, 1 if mixed else 0), **kwargs)
        second = one(self.broadcast(full, 1 if mixed else 0), **(kwargs if mixed else {**kwargs, "dtype": first.dtype}))
        return (first, second) if self.flag() else (second, first)


Inputs = Callable[[Draw], tuple[Any, ...]]


@st.composite
def drawn(draw: st.DrawFn, inputs: Inputs) -> tuple[Any, ...]:
    found = inputs(Draw(draw))
    return found if isinstance(found, tuple) else (found,)


def einsum_of(formulas: tuple[str, ...]) -> Callable[[Draw], Any]:
    """Draws one of the formulas and operands that fit it; the axes behind its dots may broadcast."""

    def drawn(d: Draw) -> Any:
        formula, dtype = d.choice(*formulas), d.choice(*WIDE)
        sizes = {letter: d.int(1, 4) for letter in sorted({*formula} - {*"., ->"})}
        dots = d.shape(0, 2, 3, empty=False)
        xs = []
        for letters in formula.split("->")[0].replace(" ", "").split(","):
            before, has_dots, after = letters.partition("...")
            middle = d.broadcast(dots) if has_dots else ()
            xs.append(d.floats((*(sizes[a] for a in before), *middle, *(sizes[a] for a in after)), dtype=dtype))
        return formula, *xs

    return drawn
