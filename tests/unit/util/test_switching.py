"""The interval at which the interpreter goes from thread to thread: quick in blocks, as it was after the last."""

from __future__ import annotations

import sys
import threading

import pytest

from tinyexplore.util.switching import SWITCH_SECONDS, switching_quickly


def test_the_interval_comes_back_after_the_last_block() -> None:
    usual = sys.getswitchinterval()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with switching_quickly():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with switching_quickly():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
        thread.start()
        assert entered.wait(10)
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
    leave.set()
    thread.join()
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_shorter_interval_stays() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with pytest.raises(ZeroDivisionError), switching_quickly():
            assert sys.getswitchinterval() == pytest.approx(1e-5)
            raise ZeroDivisionError
        assert sys.getswitchinterval() == pytest.approx(1e-5)
    finally:
        sys.setswitchinterval(usual)
