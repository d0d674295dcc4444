"""Argument checks of public functions. The error states the expected and the actual argument."""

from __future__ import annotations

from typing import Any

from tinyexplore.tensor.errors import OperandError
from tinyexplore.uop import UOp

LONGEST = 60  # the longest text of a value in a message, in characters


def shown(value: Any) -> str:
    """Returns the type and the value as text for a message. A long value is cut off."""
    text = repr(value).replace("\n", " ")
    return f"{type(value).__name__} {text if len(text) <= LONGEST else text[:LONGEST] + '…'}"


def need_tensor(value: Any, subject: str) -> None:
    """Raises unless `value` is a tensor. `subject` names the function and the argument."""
    if hasattr(value, "lazydata"):
        return
    would_do = "give a Tensor"
    if isinstance(value, (list, tuple, int, float)) or hasattr(value, "__array_interface__"):
        would_do += ": Tensor(...) makes one of numbers, lists and arrays"
    raise OperandError(f"{subject} is {shown(value)}: {would_do}")


def need_int(value: Any, subject: str, least: int | None = None) -> None:
    """Raises unless `value` is an int (or symbolic) and at least `least`. `subject` names the function and the
    argument."""
    if not isinstance(value, (int, UOp)) or isinstance(value, bool):
        raise TypeError(f"{subject} is {shown(value)}: need an int")
    if least is not None and isinstance(value, int) and value < least:
        raise ValueError(f"{subject} is {value}: need {least} or more")


def need_number(value: Any, subject: str, least: float | None = None, below: float | None = None) -> None:
    """Raises unless `value` is a number of Python or NumPy, at least `least` and less than `below`. `subject` names the
    argument."""
    if isinstance(value, str) or not (isinstance(value, (int, float, UOp)) or hasattr(value, "__float__")):
        raise TypeError(f"{subject} is {shown(value)}: need a number")
    if hasattr(value, "lazydata"):  # a tensor's value cannot be tested here
        return
    if (least is not None and not value >= least) or (below is not None and not value < below):
        range_text = f"{least} or more" if below is None else f"{least} ≤ {subject.split()[-1]} < {below}"
        raise ValueError(f"{subject} is {value}: need {range_text}")


__all__ = ["need_int", "need_number", "need_tensor", "shown"]
