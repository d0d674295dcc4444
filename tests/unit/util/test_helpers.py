"""The small functions that programs of this family import beside the tensors."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from tinyexplore import Context, Tensor, helpers
from tinyexplore.helpers import get_child, merge_dicts, partition, tqdm, trange


def test_options_follow_the_context() -> None:
    with Context(DEBUG=3, WINO=1, BEAM=0):
        assert helpers.DEBUG >= 2 and helpers.WINO and not helpers.BEAM
    assert not helpers.WINO


def test_lists_and_numbers() -> None:
    assert helpers.prod((2, 3)) == 6 and helpers.flatten([[1], [], [2, 3]]) == [1, 2, 3]
    assert helpers.dedup([3, 1, 3, 2, 1]) == [3, 1, 2] and partition(range(5), lambda x: x % 2 == 0) == (
        [0, 2, 4],
        [1, 3],
    )
    assert helpers.argfix(1, 2) == helpers.argfix((1, 2)) == helpers.argfix([1, 2]) == (1, 2) and helpers.argfix() == ()
    assert helpers.make_tuple(3, 2) == (3, 3) and helpers.make_tuple([1, 2], 2) == (1, 2)
    assert helpers.all_same([]) and helpers.all_same((2, 2)) and not helpers.all_same([1, 2])
    assert [helpers.ceildiv(n, 4) for n in (-5, 0, 1, 8, 9)] == [-1, 0, 1, 2, 3]
    assert [helpers.round_up(n, 4) for n in (0, 1, 8)] == [0, 4, 8]
    assert merge_dicts([{"a": 1}, {"b": 2, "a": 1}]) == {"a": 1, "b": 2} and helpers.unwrap(0) == 0


@pytest.mark.parametrize(
    "wrong",
    [lambda: merge_dicts([{"a": 1}, {"a": 2}]), lambda: helpers.argfix((1, 2), 3), lambda: helpers.unwrap(None)],
)
def test_what_makes_no_sense_is_an_error(wrong: object) -> None:
    with pytest.raises(ValueError):
        wrong()  # type: ignore[operator]


def test_a_path_leads_through_attributes_dicts_and_lists() -> None:
    weight = Tensor.ones(2)
    model = SimpleNamespace(layers=[None, {"linear": SimpleNamespace(weight=weight)}])
    assert get_child(model, "layers.1.linear.weight") is weight


def test_colours_are_codes_of_the_terminal() -> None:
    assert helpers.colored("x", None) == "x" and helpers.colored("x", "red") == "\033[31mx\033[0m"
    assert helpers.colored("x", "GREEN", background=True) == "\033[102mx\033[0m"


def test_a_bar_says_how_far_it_has_come(capsys: pytest.CaptureFixture[str]) -> None:
    for i in (bar := trange(3, unit="step")):
        bar.set_description(f"loss {i}")
    shown = capsys.readouterr().err
    assert re.search(r"loss 2: .*3/3 \[.*step", shown)
    assert list(tqdm((x for x in "ab"), disable=True)) == ["a", "b"] and list(trange(0, disable=True)) == []
    with tqdm(total=10) as bar:
        bar.update(4)
    assert " 4/10 [" in capsys.readouterr().err
