"""The user's namespace cannot break a capture: objects whose attributes, comparisons or classes raise."""

from __future__ import annotations

import os
import types
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.explore import Trace, capture, explore

RAISED: list[str] = []


class Unwanted(RuntimeError):
    """The exception that hostile objects raise. A capture must not run their code."""


def raising(name: str) -> Any:
    def method(self: Any, *args: Any, **more: Any) -> Any:
        RAISED.append(name)
        raise Unwanted(name)

    return method


METHODS = (
    "__getattr__",
    "__getattribute__",
    "__eq__",
    "__hash__",
    "__repr__",
    "__str__",
    "__len__",
    "__iter__",
    "__bool__",
)
METHODS += (
    "__getitem__",
    "__contains__",
    "__call__",
    "__format__",
    "__dir__",
    "__reduce_ex__",
    "keys",
    "items",
    "values",
)


def hostile(*bases: type, properties: tuple[str, ...] = (), methods: tuple[str, ...] = METHODS) -> type:
    names: dict[str, Any] = {name: raising(name) for name in methods}
    names |= {name: property(raising(name)) for name in properties}
    return type("Hostile", bases, names)


class RaisingMeta(type):
    __name__ = property(raising("meta __name__"))  # type: ignore[assignment]
    __mro__ = property(raising("meta __mro__"))  # type: ignore[assignment]
    __dict__ = property(raising("meta __dict__"))  # type: ignore[assignment]

    def __instancecheck__(cls, instance: Any) -> bool:
        raise Unwanted("__instancecheck__")

    def __subclasscheck__(cls, kind: Any) -> bool:
        raise Unwanted("__subclasscheck__")

    def __getattribute__(cls, name: str) -> Any:
        raise Unwanted(f"meta {name}")

    __hash__ = raising("meta __hash__")
    __eq__ = raising("meta __eq__")


class OfMeta(metaclass=RaisingMeta):
    def __init__(self) -> None:
        self.held = 1


class NoSpace:
    __dict__ = "no namespace"  # type: ignore[assignment]


class Slots:
    __slots__ = ("a",)


def never_initialized() -> Tensor:
    return Tensor.__new__(Tensor)


def holds_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


OBJECTS: dict[str, Any] = {
    "a property __dict__ that raises": hostile(object, properties=("__dict__",), methods=())(),
    "a property __class__ that raises": hostile(object, properties=("__class__",), methods=())(),
    "all methods raise": hostile(object, properties=("__class__", "__dict__", "__doc__", "__module__"))(),
    "a dict whose methods raise": hostile(dict, properties=("__class__",)).__new__(hostile(dict)),
    "a list whose methods raise": hostile(list).__new__(hostile(list)),
    "a tuple whose methods raise": hostile(tuple)(),
    "a metaclass that raises": OfMeta(),
    "a __dict__ that is a text": NoSpace(),
    "slots that are empty": Slots(),
    "a mock": MagicMock(),
    "a mock of a Tensor": MagicMock(spec=Tensor),
    "a Tensor that was never initialized": never_initialized(),
    "a list that holds itself": holds_itself(),
    "a default dictionary": defaultdict(lambda: Tensor([1.0])),
    "keys of several kinds": {hostile(int, methods=("__repr__",))(3): 1, None: 2, (1, 2): 3, 5: Tensor([1.0])},
    "an ordered dictionary": OrderedDict(a=Tensor([1.0])),
    "a module that loads lazily": hostile(types.ModuleType, methods=("__getattr__", "__dir__"))("lazy"),
    "a proxy": type("Proxy", (), {"__class__": property(lambda self: Tensor)})(),
}


PLACES = ("a global", "a local", "an attribute", "an item", "an argument", "the result")
CASES = [(name, place) for name in OBJECTS for place in PLACES]
CASES.remove(("a Tensor that was never initialized", "the result"))  # realizing it is the program's own error


@pytest.mark.parametrize(("name", "place"), CASES)
def test_a_capture_ignores_objects_that_raise(name: str, place: str, tmp_path: Path) -> None:
    odd = OBJECTS[name]
    RAISED.clear()
    space: dict[str, Any] = {"Tensor": Tensor, "explore": explore, "odd": odd, "__name__": "program"}
    if place == "an attribute":
        space["odd"] = types.SimpleNamespace(odd=odd)
    elif place == "an item":
        space["odd"] = [{"odd": odd}, (odd,)]
    program = {
        "a local": "def go():\n    mine = odd\n    return explore(lambda: Tensor([1.0, 2.0]) + 1)\nview = go()",
        "an argument": "view = explore(lambda odd, x: x + 1, odd, Tensor([1.0, 2.0]))",
        "the result": "view = explore(lambda: (Tensor([1.0, 2.0]) + 1, odd))",
    }.get(place, "view = explore(lambda: Tensor([1.0, 2.0]) + 1)")
    exec(compile(program, str(tmp_path / "program.py"), "exec"), space)
    view = space["view"]
    assert len(view.trace.kernels) == 1
    assert RAISED == []
    result = view.result[0] if place == "the result" else view.result
    assert result.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", [None, 5, hostile(str, methods=("split", "startswith", "__eq__"))("x")])
def test_a_module_name_may_be_anything(name: Any) -> None:
    space = {"Tensor": Tensor, "explore": explore, "__name__": name, 7: "no name", "w": Tensor([1.0, 2.0]).realize()}
    exec("class Model:\n def __init__(self): self.w = w\n def __call__(self): return self.w + 1", space)  # type: ignore[arg-type]
    exec("view = explore(Model())", space)  # type: ignore[arg-type]
    view: Any = space["view"]
    assert [node.name for node in view.trace.nodes if node.name][:1] == ["w"]
    assert view.result.tolist() == [2.0, 3.0]


def test_explored_objects_may_hide_their_name_class_and_signature() -> None:
    def called(self: Any) -> Tensor:
        return Tensor([1.0, 2.0]) + 1

    properties = ("__name__", "__signature__", "__class__", "__dict__", "__wrapped__")
    odd = type("Odd", (), {"__call__": called, **{name: property(raising(name)) for name in properties}})()
    view = explore(odd)
    assert (view.capture.title, view.result.tolist()) == ("Odd", [2.0, 3.0])
    odd = type("Odd", (), {"__call__": called, "__name__": 5})()
    assert explore(odd).capture.title == "Odd"


def test_an_exception_that_takes_no_attributes_reaches_the_user() -> None:
    class Closed(Exception):
        __setattr__ = raising("__setattr__")
        __str__ = raising("__str__")

    def fail() -> None:
        raise Closed

    with pytest.raises(Closed):
        explore(fail)
    with pytest.raises(Closed), capture() as session:
        fail()
    assert "Closed" in session.trace.messages[0].text


def test_a_class_body_may_have_a_mapping_of_its_own() -> None:
    class Space(dict):  # type: ignore[type-arg]
        items = raising("items")

    class Meta(type):
        @classmethod
        def __prepare__(cls, name: str, bases: Any, **more: Any) -> Any:
            return Space()

    class Body(metaclass=Meta):
        view = explore(lambda: Tensor([1.0, 2.0]) + 1)

    assert len(Body.view.trace.kernels) == 1


def test_a_capture_in_a_folder_that_was_removed(tmp_path: Path) -> None:
    gone, before = tmp_path / "gone", os.getcwd()
    gone.mkdir()
    os.chdir(gone)
    try:
        gone.rmdir()
        view = explore(lambda: Tensor([1.0, 2.0]) + 1)
        trace = view.trace
        view.save(tmp_path / "trace.json.gz")
    finally:
        os.chdir(before)
    assert len(trace.kernels) == 1
    assert Trace.load(tmp_path / "trace.json.gz") == view.trace


def test_containers_that_hold_themselves_are_realized_once() -> None:
    found: list[Any] = [Tensor(np.ones(3, np.float32)) + 1]
    found.append(found)
    deep: Any = found
    for _ in range(5000):
        deep = [deep]
    assert explore(lambda: deep).trace.kernels
    assert found[0].tolist() == [2.0, 2.0, 2.0]
