"""How Tensor is put together: mixins side by side over one base, none of which is made of another."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path

import tinyexplore
from tinyexplore import Tensor
from tinyexplore.tensor.base import Base

FOLDER = Path(tinyexplore.__file__).parent / "tensor"
FIRST, *MIXINS = Tensor.__bases__
OF_EVERY_CLASS = {*vars(type("Empty", (), {"__slots__": ()})), "__slots__", "__annotations__", "__static_attributes__"}


def test_mixins_stand_side_by_side() -> None:
    assert FIRST is Base
    assert {mixin.__bases__ for mixin in MIXINS} == {(object,)}
    assert all(mixin.__subclasses__() == [Tensor] for mixin in MIXINS)


def test_no_two_mixins_have_a_method_of_the_same_name() -> None:
    # `Tensor.training = True` stores a value on Tensor that hides the default of a mixin
    parts = (Tensor, *Tensor.__bases__)
    names = Counter(name for part in parts for name, value in vars(part).items() if not isinstance(value, bool))
    assert {name for name, count in names.items() if count > 1} <= OF_EVERY_CLASS


def test_every_class_whose_methods_are_a_tensors_is_one_of_its_bases() -> None:
    said = {
        node.name
        for path in FOLDER.glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and "self: Tensor" in ast.unparse(node)
    }
    assert said == {part.__name__ for part in Tensor.__bases__}


def test_a_tensor_has_room_for_what_it_is_and_nothing_else() -> None:
    assert not hasattr(Tensor(1), "__dict__")


def test_a_signature_shows_self_as_any_other_class_does() -> None:
    shown = str(inspect.signature(Tensor.softmax))
    assert shown == "(self, axis: 'int' = -1, dtype: 'DTypeLike | None' = None) -> 'Tensor'"
    methods = [value for part in Tensor.__bases__ for value in vars(part).values() if inspect.isfunction(value)]
    assert [method for method in methods if "self" in method.__annotations__] == []
