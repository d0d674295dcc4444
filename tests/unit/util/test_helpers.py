"""The small functions that tinygrad programs import beside the tensors."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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
def test_invalid_arguments_raise_an_error(wrong: object) -> None:
    with pytest.raises(ValueError):
        wrong()  # type: ignore[operator]


def test_a_path_leads_through_attributes_dicts_and_lists() -> None:
    weight = Tensor.ones(2)
    model = SimpleNamespace(layers=[None, {"linear": SimpleNamespace(weight=weight)}])
    assert get_child(model, "layers.1.linear.weight") is weight


def test_colors_are_codes_of_the_terminal() -> None:
    assert helpers.colored("x", None) == "x" and helpers.colored("x", "red") == "\033[31mx\033[0m"
    assert helpers.colored("x", "GREEN", background=True) == "\033[102mx\033[0m"


def test_a_bar_shows_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    for i in (bar := trange(3, unit="step")):
        bar.set_description(f"loss {i}")
    shown = capsys.readouterr().err
    assert re.search(r"loss 2: .*3/3 \[.*step", shown)
    assert list(tqdm((x for x in "ab"), disable=True)) == ["a", "b"] and list(trange(0, disable=True)) == []
    with tqdm(total=10) as bar:
        bar.update(4)
    assert " 4/10 [" in capsys.readouterr().err


def test_names_places_and_nested_lists() -> None:
    assert helpers.all_int((1, 2)) and not helpers.all_int([1, 2.0]) and helpers.all_int([])
    assert helpers.argsort((3, 1, 2)) == (1, 2, 0) and helpers.argsort([0, 2, 1]) == [0, 2, 1]
    assert helpers.fully_flatten([1, (2, [3, []], "ab"), [[4]]]) == [1, 2, 3, "ab", 4]
    assert helpers.ansilen(helpers.colored("four", "red")) == 4 and helpers.ansistrip("\033[31mx\033[0m\033[K") == "x"
    sizes = [helpers.memsize_to_str(size) for size in (0, 1, 999, 1000, 2_500_000, 3 * 10**9)]
    assert sizes == ["0.00 B", "1.00 B", "999.00 B", "1.00 KB", "2.50 MB", "3.00 GB"]
    assert helpers.temp("weights") == f"{Path(tempfile.gettempdir()).as_posix()}/weights"
    called: list[int] = []
    assert helpers.cpu_time_execution(lambda: called.append(1), False) is None and called == [1]
    assert helpers.cpu_time_execution(lambda: None, True) >= 0  # type: ignore[operator]


def test_memory_as_views_and_arrays() -> None:
    content = bytearray(range(12))
    numbers = helpers.from_mv(memoryview(content), ctypes.c_uint32)
    assert len(numbers) == 3 and numbers[0] == 0x03020100
    numbers[2] = 0
    assert content[8:] == bytes(4) and helpers.from_mv(memoryview(content))[1] == b"\x01"
    view = helpers.to_mv(ctypes.addressof(numbers), 4)
    view[0] = 9
    assert content[0] == 9 and view.nbytes == 4
    grid = memoryview(content).cast("B", (3, 4))
    assert helpers.flat_mv(grid).shape == (12,) and helpers.flat_mv(memoryview(b"")).nbytes == 0


def test_options_of_tinygrad_are_accepted(tmp_path: Path) -> None:
    with Context(GRAPH=1, GRAPHPATH=str(tmp_path / "graph"), CAPTURING=0, SAVE_SCHEDULE=1):
        assert (helpers.GRAPH, helpers.CAPTURING, helpers.SAVE_SCHEDULE) == (1, 0, 1)
        assert (Tensor([1, 2]) + 1).tolist() == [2, 3]
    assert (helpers.GRAPH, helpers.CAPTURING, helpers.SAVE_SCHEDULE) == (0, 1, 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tinyexplore"


VALUES = [None, True, -3, 2.5, "text", b"\x00bytes", [1, (2, "x")], {"a": [None], 3: b""}, ""]


@pytest.mark.parametrize("value", VALUES)
def test_values_are_stored_on_disk(folder: Path, value: object) -> None:
    assert helpers.diskcache_get("table", "key") is None
    assert helpers.diskcache_put("table", {"n": 1, "name": "x"}, value) is value
    assert helpers.diskcache_get("table", {"n": 1, "name": "x"}) == value
    assert helpers.diskcache_get("table", {"n": 2, "name": "x"}) is helpers.diskcache_get("other", "key") is None
    helpers.diskcache_clear()
    assert helpers.diskcache_get("table", {"n": 1, "name": "x"}) is None
    with Context(CACHELEVEL=0):
        helpers.diskcache_put("table", 1, value)
    assert helpers.diskcache_get("table", 1) is None


def test_a_function_is_called_once_for_each_arguments(folder: Path) -> None:
    calls = []

    @helpers.diskcache
    def measure(a: int, *, b: object = None) -> object:
        """Measures."""
        calls.append((a, b))
        return None if a == 0 else [a, b]

    assert [measure(1), measure(1), measure(1, b=2), measure(0), measure(0)] == [
        [1, None],
        [1, None],
        [1, 2],
        None,
        None,
    ]
    assert calls == [(1, None), (1, 2), (0, None)] and measure.__doc__ == "Measures."


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), [1, {2}], {"a": 1j}, np.float32(1)])
def test_values_that_cannot_be_serialized_are_refused(folder: Path, value: object) -> None:
    with pytest.raises(TypeError, match="diskcache_put of .*: need None, a bool"):
        helpers.diskcache_put("table", "key", value)


def test_stored_values_are_never_executed(folder: Path, tmp_path: Path) -> None:
    """A foreign value in the place of an entry counts as missing."""
    from tinyexplore.runtime.disk_cache import keep

    helpers.diskcache_put("table", "key", 1)
    helpers.diskcache_put("table", "other", 2)
    mine, other = (helpers._cache_key("table", key) for key in ("key", "other"))
    touched = tmp_path / "touched"
    pickled = b"cposix\nsystem\n(S'touch " + os.fsencode(touched) + b"'\ntR."
    for hostile in (pickled, b"__import__('os').system('touch x')", b"(" * 10**5, b"1", b"\xff", b"(1, 2)"):
        keep(mine, hostile)
        assert helpers.diskcache_get("table", "key") is None
    keep(mine, repr(("table", "other", 2)).encode())
    assert helpers.diskcache_get("table", "key") is None and helpers.diskcache_get("table", "other") == 2
    assert not touched.exists() and mine != other
