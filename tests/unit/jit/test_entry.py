"""A native call from arguments to result gives the results of the Python path in all cases."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import sysconfig
import threading
import weakref
from types import BuiltinFunctionType

import numpy as np
import pytest

from tests.support.patience import seconds
from tinyexplore import Context, Device, GlobalCounters, Tensor, TinyJit
from tinyexplore.engine import step_by_step
from tinyexplore.jit import JitError
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.entry import field_offsets, has_entries
from tinyexplore.trace import ExecItemRan, Recorder, recording

pytestmark = pytest.mark.skipif("LLVM" not in Device.available(), reason="there is no LLVM here")


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, dtype=np.float32)).realize()


def added(*, calls: int = 5) -> tuple[TinyJit, Tensor, Tensor]:
    """A captured sum, called often enough that machine code does the calls, and its arguments."""
    jit = TinyJit(lambda x, y: (x + y).realize())
    x, y = tensor(1, 2, 3), tensor(10, 20, 30)
    for _ in range(calls):
        assert jit(x, y).tolist() == [11, 22, 33]
    return jit, x, y


def is_native(jit: TinyJit) -> bool:
    return isinstance(jit.__call__, BuiltinFunctionType)


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"), reason="no GIL"
)
def test_small_batches_run_from_machine_code_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_entries(Tensor, LazyBuffer)
    assert set(field_offsets(Tensor)) == {"lazydata", "requires_grad", "grad", "_ctx", "_root", "was_changed"}
    jit, x, y = added()
    assert is_native(jit) and callable(jit)
    replays = []
    replay = type(jit.captured).__call__
    monkeypatch.setattr(type(jit.captured), "__call__", lambda *args: replays.append(1) or replay(*args))
    assert [jit(x, y).tolist() for _ in range(3)] == [[11, 22, 33]] * 3
    assert jit(*[x, y], **{}).tolist() == [11, 22, 33]
    for step in range(5):
        assert jit(tensor(step, 0, 0), y).tolist() == [step + 10, 20, 30]
        assert jit(y, y).tolist() == [20, 40, 60]
    assert replays == []
    assert jit(x + 0, tensor(0, 0, 0)).tolist() == [1, 2, 3]  # not computed yet: Python does that
    assert replays == [1]
    assert jit(x, y).tolist() == [11, 22, 33]
    assert jit(jit(x, y), y).tolist() == [21, 42, 63]  # from where it is about to be overwritten
    assert replays == [1, 1]


def test_results_are_whole_tensors() -> None:
    jit, x, y = added()
    found = jit(x, y)
    assert type(found) is Tensor
    assert (found.shape, found.requires_grad, found.grad, found._ctx, found._root) == ((3,), None, None, None, None)
    assert (found * 2).tolist() == [22, 44, 66]
    watch = weakref.ref(found)
    del found
    assert watch() is None
    leaf = jit(x, y)
    leaf.requires_grad = True
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [22, 44, 66]
    assert jit(x, y).grad is None


def test_several_results_in_a_tuple_or_a_list() -> None:
    for form in (tuple, list):
        jit = TinyJit(lambda x, form=form: form([(x + 1).realize(), (x * 2).realize()]))
        x = tensor(1, 2)
        for _ in range(5):
            found = jit(x)
            assert type(found) is form
            assert [one.tolist() for one in found] == [[2, 3], [2, 4]]
        assert is_native(jit)


def test_arguments_may_change_value_or_memory() -> None:
    jit, x, y = added()
    x.lazydata.buffer.copyin(np.array([5, 6, 7], dtype=np.float32))
    assert jit(x, y).tolist() == [15, 26, 37]
    for step in range(6):
        assert jit(tensor(step, 0, 0), y).tolist() == [step + 10, 20, 30]
        assert jit(x, y).tolist() == [15, 26, 37]
    x.assign(tensor(0, 0, 1)).realize()
    assert jit(x, y).tolist() == [10, 20, 31]
    assert jit((x + 1), y).tolist() == [11, 21, 32]


def test_arguments_that_do_not_fit_are_refused_after_any_call() -> None:
    jit, x, y = added()
    for step in range(4):
        assert jit(tensor(step, step, step), y).tolist() == [step + 10, step + 20, step + 30]
        for wrong in (
            tensor(1, 2),
            tensor(1, 2, 3).reshape(1, 3),
            Tensor([1, 2, 3]).realize(),
            Tensor([1.0, 2, 3], "NPY"),
        ):
            with pytest.raises(JitError, match="captured as"):
                jit(wrong, y)
        assert jit(y, x).tolist() == [11, 22, 33]
        assert jit(Tensor(np.arange(6, dtype=np.float32)[step % 3 :][:3]), y).tolist() == [
            step % 3 + 10,
            step % 3 + 21,
            step % 3 + 32,
        ]


def test_replaced_arguments_are_freed_and_finalizers_may_call_again() -> None:
    jit, x, y = added()
    before = GlobalCounters.mem_used
    heard: list[object] = []
    watches = []
    for step in range(200):
        other = tensor(step, 0, 0)
        if step % 10 == 0:
            weakref.finalize(other.lazydata, lambda: heard.append(jit(y, x).tolist()))
        watches.append(weakref.ref(other.lazydata))
        assert jit(other, y).tolist() == [step + 10, 20, 30]
    assert jit(x, y).tolist() == [11, 22, 33]
    del other
    assert [watch() for watch in watches] == [None] * 200
    assert heard == [[11, 22, 33]] * 20
    assert GlobalCounters.mem_used == before


def test_a_captured_tensor_is_read_after_an_assignment() -> None:
    weight = tensor(1, 1)
    jit = TinyJit(lambda x: (x * weight).realize())
    x = tensor(3, 4)
    for _ in range(5):
        assert jit(x).tolist() == [3, 4]
    assert is_native(jit)
    weight.assign(tensor(2, 10))
    assert jit(x).tolist() == [6, 40]
    assert jit(x).tolist() == [6, 40]


def test_misuse_is_an_error_and_the_next_call_is_right() -> None:
    jit, x, y = added()
    for wrong, kind in (((x,), JitError), ((x, 3), JitError), ((x, tensor(1)), JitError), ((), JitError)):
        for _ in range(2):
            with pytest.raises(kind):
                jit(*wrong)
        assert jit(x, y).tolist() == [11, 22, 33]
    for _ in range(2):
        with pytest.raises(JitError):
            jit(tensor(7, 7, 7), tensor(1))  # the first was taken before the second was refused
        assert jit(x, y).tolist() == [11, 22, 33]
        with pytest.raises(JitError):
            jit(tensor(7, 7, 7), tensor(1))
        assert jit(y, y).tolist() == [20, 40, 60]
    with pytest.raises(JitError):
        jit(x, y=y)
    with Tensor.train(), pytest.raises(JitError, match="training"):
        jit(x, y)
    assert [jit(x, y).tolist() for _ in range(2)] == [[11, 22, 33]] * 2


def test_listeners_are_called_and_launches_are_counted() -> None:
    jit, x, y = added()
    GlobalCounters.reset()
    for _ in range(7):
        jit(x, y)
    assert (GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem) == (7, 21, 7 * 36)
    assert 0 < GlobalCounters.time_sum_s < 1
    with GlobalCounters.paused():
        jit(x, y)
    assert GlobalCounters.kernel_count == 7
    with step_by_step(), recording(Recorder()) as recorder:
        jit(x, y)
    assert len([event for event in recorder.events if isinstance(event, ExecItemRan)]) == 1
    jit(x, y)
    assert GlobalCounters.kernel_count == 9


def test_the_current_options_apply(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    def double(x: Tensor) -> Tensor:
        calls.append(1)
        return (x * 2).realize()

    jit, x = TinyJit(double), tensor(1, 2)
    for _ in range(4):
        jit(x)
    assert len(calls) == 2
    with Context(JIT=0):
        assert jit(x).tolist() == [2, 4]
    assert len(calls) == 3
    with Context(BEAM=0):  # another Config, also without a recorder
        assert [jit(x).tolist() for _ in range(3)] == [[2, 4]] * 3
    assert jit(x).tolist() == [2, 4]
    capsys.readouterr()
    with Context(DEBUG=2):
        jit(x)
    assert len(capsys.readouterr().out.splitlines()) >= 1
    jit(x)
    assert capsys.readouterr().out == ""
    outer = TinyJit(lambda x: (jit(x) + 1).realize())
    for _ in range(4):
        assert outer(x).tolist() == [3, 5]


def test_reset_copies_methods_and_pickles() -> None:
    jit, x, y = added()
    jit.reset()
    assert not is_native(jit)
    for _ in range(4):
        assert jit(x, y).tolist() == [11, 22, 33]
    again = pickle.loads(pickle.dumps(jit))
    for _ in range(4):
        assert again(x, y).tolist() == [11, 22, 33]

    class Model:
        def __init__(self, by: float) -> None:
            self.by = tensor(by)

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return (x * self.by).realize()

    two, three = Model(2), Model(3)
    for _ in range(4):
        assert (two(tensor(5)).tolist(), three(tensor(5)).tolist()) == ([10], [15])


def test_calls_leave_reference_counts_and_memory_unchanged() -> None:
    gc.collect()  # what other tests left in circles
    jit, x, y = added()

    held = (x, y, x.lazydata, y.lazydata, jit.captured.single, None, True)

    def counts() -> tuple[int, ...]:
        return tuple(sys.getrefcount(one) for one in held)

    for _ in range(10):
        jit(x, y)
    before, memory = counts(), GlobalCounters.mem_used
    for _ in range(2000):
        jit(x, y)
        with pytest.raises(JitError):
            jit(x)
        jit(x, y)
    after = counts()
    assert all(abs(b - a) < 200 for a, b in zip(before, after)), (before, after)
    assert GlobalCounters.mem_used == memory
    watch = weakref.ref(jit.captured)
    gc.collect()
    gc.disable()
    try:
        del jit
        assert watch() is None  # no circle: what a TinyJit held is free as soon as it is
    finally:
        gc.enable()


def test_threads_may_call_the_same_jit() -> None:
    shared, x, y = added()
    wrong: list[object] = []

    def work(number: int) -> None:
        own = TinyJit(lambda a: (a * 2 + number).realize())
        a = tensor(number, 1)
        for turn in range(400):
            found = own(a).tolist()
            if found != [3 * number, 2 + number]:
                wrong.append(found)
            if shared(x, y).tolist() != [11, 22, 33] or own(tensor(1, turn)).tolist() != [
                2 + number,
                2 * turn + number,
            ]:
                wrong.append(turn)
            if turn % 50 == number:
                a = tensor(number, 1)
            if turn % 97 == 0:
                gc.collect(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_a_finalizer_may_call_it_again() -> None:
    jit, x, y = added()
    heard = []

    class Last:
        def __del__(self) -> None:
            heard.append(jit(x, y).tolist())

    for _ in range(50):
        circle = [Last()]
        circle.append(circle)
        del circle
        for _ in range(800):
            jit(x, y)  # new objects: the collector comes by and finds the circles
    gc.collect()
    assert heard == [[11, 22, 33]] * 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_can_call_the_jit() -> None:
    jit, x, y = added()
    child = os.fork()
    if child == 0:
        right = all(jit(x, y).tolist() == [11, 22, 33] for _ in range(5))
        os._exit(0 if right and jit(tensor(0, 0, 0), y).tolist() == [10, 20, 30] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert jit(x, y).tolist() == [11, 22, 33]


def test_the_interpreter_exits_cleanly_with_captured_functions() -> None:
    program = """
import atexit, sys
from tinyexplore import Tensor, TinyJit
jit = TinyJit(lambda x: (x + 1).realize())
x = Tensor([1.0]).realize()
for _ in range(5): jit(x)
class Late:
    def __del__(self, jit=jit, x=x): jit(x)
late = Late()
sys.kept = jit
atexit.register(lambda: print(jit(x).tolist()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds(60))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0]\n", "")
