"""An Enum with fast member lookup is still an Enum."""

from __future__ import annotations

import copy
import pickle
from enum import Enum

import pytest

from tinyexplore.kernel import OptOps
from tinyexplore.uop import AxisKind, Ops


def test_members_are_found_by_name_and_by_value() -> None:
    assert Ops["ADD"] is Ops.ADD is Ops(Ops.ADD.value)
    assert {op.name: op for op in Ops} == dict(Ops.__members__)
    assert len(Ops) == len(list(Ops))
    assert Ops.ADD in Ops


def test_members_are_themselves_when_copied_and_pickled() -> None:
    assert pickle.loads(pickle.dumps(Ops.ADD)) is copy.deepcopy(Ops.ADD) is Ops.ADD
    assert isinstance(Ops.ADD, Ops) and issubclass(Ops, Enum)


def test_members_are_pickled_by_name() -> None:
    for member in (Ops.ADD, AxisKind.GLOBAL, OptOps.UPCAST):
        assert member.name.encode() in pickle.dumps(member)


def test_invalid_members_are_refused() -> None:
    with pytest.raises(AttributeError):
        _ = Ops.NO_SUCH  # type: ignore[attr-defined]
    with pytest.raises(KeyError):
        Ops["NO_SUCH"]
    with pytest.raises(ValueError, match="not a valid Ops"):
        Ops(-1)


def test_no_attribute_is_looked_up_by_a_call() -> None:
    """The condition of fast lookups, in every version of Python."""
    for enum in (Ops, AxisKind, OptOps):
        assert not hasattr(type(enum), "__getattr__")
