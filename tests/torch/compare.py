"""Compares one row of the table with PyTorch on one generated input: results, dtypes, shapes and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tests.torch.drawing import Input, Inputs
from tinyexplore import Tensor, dtypes
from tinyexplore.dtype import to_dtype

TORCH_DTYPES = {
    "fp8e4m3": torch.float8_e4m3fn,
    "fp8e5m2": torch.float8_e5m2,
    **{
        name: getattr(torch, name)
        for name in (
            *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
            *("float16", "bfloat16", "float32", "float64"),
        )
    },
}
NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}
TOLERANCE = {"float64": 1e-10, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2, "fp8e4m3": 0.13, "fp8e5m2": 0.26}


@dataclass(frozen=True)
class Row:
    """An operation: the names of the API that it covers, what is drawn, how it is written here and in PyTorch.

    `loose`: how many times the tolerance of the dtype is allowed · `scaled`: the tolerance is relative to the largest
    number of the result (sums), not to each · `signs`: zeros have the right sign · `counts`: ints count something,
    in default_int here and int64 there · `gradient`: of the inputs that are taped ·
    `twice`: there are second derivatives here and there.
    """

    names: tuple[str, ...]
    inputs: Inputs
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    loose: float = 1.0
    scaled: bool = True
    signs: bool = False
    counts: bool = False
    gradient: bool = True
    twice: bool = True

    @property
    def name(self) -> str:
        return self.names[0]


class Mismatch(AssertionError):
    """Where the two differ."""


def run(row: Row, drawn: tuple[Any, ...], device: str) -> None:
    """Raises Mismatch unless both agree. Gradients are compared where all numbers are finite."""
    is_plain = all(np.isfinite(one.values).all() for one in drawn if isinstance(one, Input))
    if not is_plain:
        drawn = tuple(replace(one, taped=False) if isinstance(one, Input) else one for one in drawn)
    theirs = [_to_torch(one) for one in drawn]
    ours = [_to_tensor(one, given, device) for one, given in zip(drawn, theirs)]
    wanted = _listed(row.theirs(*theirs))
    found = _listed(row.ours(*ours))
    if len(found) != len(wanted):
        raise Mismatch(f"{len(found)} results, not {len(wanted)}")
    taped = [(a, b) for a, b in zip(ours, theirs) if isinstance(a, Tensor) and a.requires_grad]
    if row.gradient and taped:
        _differentiate(found, wanted, device)
    waiting = [one for one in found if isinstance(one, Tensor)] + [a.grad for a, _ in taped if a.grad is not None]
    if waiting:
        waiting[0].realize(*waiting[1:])
    for place, (a, b) in enumerate(zip(found, wanted)):
        _compare(row, a, b, f"result {place}")
    if row.gradient:
        for place, (a, b) in enumerate(taped):
            want = torch.zeros_like(b) if b.grad is None else b.grad
            have = Tensor.zeros_like(a) if a.grad is None else a.grad
            _compare(row, have, want, f"gradient {place}", is_gradient=True)


def run_again(row: Row, drawn: tuple[Any, ...], device: str) -> None:
    """As `run`, of second derivatives: the gradient of Σ result² · weights is differentiated; floats are float32."""
    if not (row.gradient and row.twice) or not all(
        np.isfinite(one.values).all() for one in drawn if isinstance(one, Input)
    ):
        return
    drawn = tuple(replace(one, dtype="float32") if _is_float(one) else one for one in drawn)
    row = replace(row, scaled=True, loose=4 * row.loose)
    theirs = [_to_torch(one) for one in drawn]
    ours = [_to_tensor(one, given, device) for one, given in zip(drawn, theirs)]
    wanted, found = _listed(row.theirs(*theirs)), _listed(row.ours(*ours))
    pairs = [(a, b) for a, b in zip(found, wanted) if isinstance(b, torch.Tensor) and b.requires_grad]
    taped = [(a, b) for a, b in zip(ours, theirs) if isinstance(a, Tensor) and a.requires_grad]
    if not pairs or not taped:
        return
    leaves, given = zip(*taped)
    b_firsts = torch.autograd.grad(_squares([b for _, b in pairs]), given, create_graph=True, allow_unused=True)
    a_firsts = _squares([a for a, _ in pairs]).gradient(*leaves, materialize_grads=True)
    firsts = [(a, b) for a, b in zip(a_firsts, b_firsts) if b is not None]
    for place, (a, b) in enumerate(firsts):
        _compare(row, a, b, f"gradient {place}", is_gradient=True)
    curved = [(a, b) for a, b in firsts if b.requires_grad]
    if not curved:
        return
    b_seconds = torch.autograd.grad(_squares([b for _, b in curved]), given, allow_unused=True)
    a_seconds = _squares([a for a, _ in curved]).gradient(*leaves, materialize_grads=True)
    for place, (a, b) in enumerate(zip(a_seconds, b_seconds)):
        want = torch.zeros_like(given[place]) if b is None else b
        _compare(replace(row, loose=5 * row.loose), a, want, f"second gradient {place}", is_gradient=True)


def _is_float(one: Any) -> bool:
    return isinstance(one, Input) and dtypes.is_float(to_dtype(one.dtype))


def _squares(results: Any) -> Any:
    """Σ result² · weights, here or there."""
    total: Any = 0
    for place, one in enumerate(results):
        weights = np.random.default_rng(place).uniform(0.5, 1.5, tuple(one.shape))
        is_ours = isinstance(one, Tensor)
        known: Any = Tensor(weights, device=one.device) if is_ours else torch.tensor(weights)
        wide: Any = one.cast(dtypes.float64) if is_ours else one.double()
        total = total + (wide * wide * known).sum()
    return total


# *** making tensors ***


def _to_torch(one: Any) -> Any:
    if not isinstance(one, Input):
        return one
    found = torch.tensor(one.values).to(TORCH_DTYPES[one.dtype])
    return found.requires_grad_() if one.taped else found


def _to_tensor(one: Any, given: Any, device: str) -> Any:
    if not isinstance(one, Input):
        return one
    found = tensor_of(given, device)
    found.requires_grad = True if one.taped else None
    return found


def tensor_of(given: torch.Tensor, device: str) -> Tensor:
    """The same bits here."""
    given = given.detach().contiguous()
    dtype = to_dtype(NAMES[given.dtype])
    if dtype in (dtypes.bfloat16, *dtypes.fp8s):
        bits = given.view(torch.int16 if dtype.itemsize == 2 else torch.uint8).numpy()
        return Tensor(bits.copy(), device=device).bitcast(dtype).contiguous().realize()
    return Tensor(given.numpy().copy(), device=device)


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


# *** gradients ***


def _differentiate(found: list[Any], wanted: list[Any], device: str) -> None:
    """The gradient of Σ result · weights, the same here and there; of the results that have one."""
    for place, (a, b) in enumerate(zip(found, wanted)):
        if not isinstance(b, torch.Tensor) or not b.requires_grad:
            continue
        generator = np.random.default_rng(place)
        weights = torch.tensor(generator.uniform(0.5, 1.5, tuple(b.shape))).to(b.dtype)
        b.backward(weights, retain_graph=True)
        if not a.requires_grad:
            raise Mismatch(f"result {place} has no gradient here")
        a.backward(tensor_of(weights, device))


# *** comparing ***


def _compare(row: Row, found: Any, wanted: Any, what: str, is_gradient: bool = False) -> None:
    if not isinstance(wanted, torch.Tensor):
        if isinstance(wanted, torch.Size):
            wanted = tuple(wanted)
        if found != wanted:
            raise Mismatch(f"{what} is {found!r}, not {wanted!r}")
        return
    wanted = wanted.detach()
    name = NAMES[wanted.dtype]
    if found.dtype.name not in _allowed(row, name):
        raise Mismatch(f"{what} is of {found.dtype.name}, not {name}")
    if found.shape != tuple(wanted.shape):
        raise Mismatch(f"{what} has shape {found.shape}, not {tuple(wanted.shape)}")
    if not dtypes.is_float(found.dtype):
        have, want = found.numpy(), wanted.numpy()
        _same(have == want, have, want, what)
        return
    have, want = found.cast(dtypes.float64).numpy(), wanted.double().numpy()
    limit = TOLERANCE[name] * row.loose * (4 if is_gradient else 1)
    with np.errstate(all="ignore"):
        finite = np.abs(want[np.isfinite(want)])
        size = float(finite.max(initial=0)) if row.scaled else np.abs(want)
        near = np.abs(have - want) <= limit * np.maximum(size, 1)
        is_same = near | (have == want) | (np.isnan(have) & np.isnan(want))
    if row.signs and not is_gradient:
        is_same &= (have != 0) | (want != 0) | (np.signbit(have) == np.signbit(want))
    _same(is_same, have, want, what)


def _allowed(row: Row, name: str) -> tuple[str, ...]:
    return (name, "int32", "uint32") if row.counts and name == "int64" else (name,)


def _same(is_same: Any, have: np.ndarray, want: np.ndarray, what: str) -> None:
    is_same = np.asarray(is_same)
    if is_same.all():
        return
    at = tuple(int(place) for place in np.argwhere(~is_same)[0])
    count = int((~is_same).sum())
    raise Mismatch(f"{what}: {count} of {is_same.size} differ, first at {at}: {have[at]!r}, not {want[at]!r}")
