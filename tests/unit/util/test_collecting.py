"""Cycles of garbage are looked for again after the last block, if they were before the first."""

from __future__ import annotations

import gc

import pytest

from tinyexplore.util.collecting import collecting_later


def test_collecting_goes_on_after_the_last_block() -> None:
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collecting_later():
        with collecting_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_turned_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with collecting_later():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
