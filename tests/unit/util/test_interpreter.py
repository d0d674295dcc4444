"""Settings of the interpreter: changed in blocks, and restored after the last one."""

from __future__ import annotations

import gc
import os
from weakref import ref

import pytest

from tests.support.interrupts import Interrupter
from tinyexplore.util import interpreter
from tinyexplore.util.interpreter import collect_young, collecting_later


def test_garbage_collection_resumes_after_the_last_block() -> None:
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collecting_later():
        with collecting_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_objects_created_in_the_block_count_as_old() -> None:
    with collecting_later():
        made = [[number] for number in range(1000)]
    young = {id(found) for found in gc.get_objects(generation=0)}
    assert not any(id(one) in young for one in made)


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collecting_later():
            pass
        assert gc.get_freeze_count() >= frozen - 100  # some of it may have been let go
    finally:
        gc.unfreeze()


def test_disabled_garbage_collection_stays_disabled() -> None:
    gc.disable()
    try:
        with collecting_later():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


class Cycle:
    """Garbage that only a search finds."""

    def __init__(self) -> None:
        self.itself = self


def test_deferred_garbage_is_collected() -> None:
    with collecting_later():
        garbage = ref(Cycle())
        assert garbage() is not None
        collect_young()
        assert garbage() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_the_setting_of_before_the_block() -> None:
    with collecting_later():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.parametrize("is_searched", [False, True])
def test_garbage_of_many_blocks_does_not_pile_up(monkeypatch: pytest.MonkeyPatch, is_searched: bool) -> None:
    """Python never looks through what came to count as old without it; such a loop would fill the memory."""
    monkeypatch.setattr(interpreter, "MAX_UNSEARCHED_OBJECTS", 20_000)

    for _ in range(40):
        with collecting_later():
            made = [Cycle() for _ in range(2_000)]
            if is_searched:
                collect_young()
            made.clear()
    assert sum(type(one) is Cycle for one in gc.get_objects()) <= 22_000


def test_an_interrupt_restores_all_settings() -> None:
    def work() -> None:
        with collecting_later():
            assert not gc.isenabled()

    interrupter = Interrupter()
    for place in range(1, interrupter.count(work) + 1):
        interrupter.run(work, place)
        assert gc.isenabled() and gc.get_freeze_count() == 0, place
        assert collecting_later.before is None
    work()
