"""The structure of Tensor: classes by subject, each with the classes whose methods it calls as its bases."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path

import tinyexplore
from tinyexplore import Tensor
from tinyexplore.tensor.base import TensorBase
from tinyexplore.util.interpreter import TrackedObject

FOLDER = Path(tinyexplore.__file__).parent / "tensor"
PARTS = [part for part in Tensor.__mro__ if issubclass(part, TensorBase)]
OF_EVERY_CLASS = {*vars(type("Empty", (), {"__slots__": ()})), "__slots__", "__annotations__", "__static_attributes__"}


def test_all_parts_inherit_from_the_base() -> None:
    assert PARTS[0] is Tensor and PARTS[-1] is TensorBase
    assert TensorBase.__bases__ == (TrackedObject,)


def test_no_two_parts_have_a_method_of_the_same_name() -> None:
    # `Tensor.training = True` stores a value on Tensor that hides the default of the base
    names = Counter(name for part in PARTS for name, value in vars(part).items() if not isinstance(value, bool))
    assert {name for name, count in names.items() if count > 1} <= {*OF_EVERY_CLASS, "plain"}


def test_no_module_but_those_of_whole_tensors_imports_tensor() -> None:
    importers = {
        path.stem
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "tinyexplore.tensor.tensor"
    }
    assert importers == {"__init__", "function", "live_tensors"}


def test_a_result_of_a_subclass_is_a_tensor() -> None:
    class Parameter(Tensor):
        __slots__ = ()

    assert type(Parameter([1.0]) + 1) is type(Parameter([1.0]).sum()) is Tensor


def test_a_tensor_has_slots_and_no_dict() -> None:
    assert not hasattr(Tensor(1), "__dict__")


def test_signatures_name_the_class_tensor() -> None:
    shown = str(inspect.signature(Tensor.softmax))
    assert shown == "(self, axis: 'int' = -1, dtype: 'DTypeLike | None' = None) -> 'Tensor'"
    assert str(inspect.signature(Tensor.eye)).endswith("-> 'Tensor'")
    methods = [getattr(value, "__func__", value) for part in PARTS for value in vars(part).values()]
    notes = [note for method in methods for note in getattr(method, "__annotations__", {}).values()]
    assert notes and [note for note in notes if "Self" in note] == []
