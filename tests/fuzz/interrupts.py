"""Interrupts at any moment of a call: state changes completely or not at all, and the next call is correct.

`python -m tests.fuzz.interrupts --count 2000` sends real signals after random times; the tests in
`tests/fuzz/test_interrupts.py` raise an exception at each place, one after the other, where Python handles signals.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType

import numpy as np

from tests.backends.programs import GPUS, WORK_ITEMS
from tests.support.interrupts import Interrupted
from tinyexplore import Context, Tensor, TinyJit, Variable, nn
from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.engine import active_capture
from tinyexplore.nn.state import get_parameters
from tinyexplore.tensor import change_log
from tinyexplore.trace import Recorder, active_recorder, recorder_variable

GPU_SCENES = {"in place, GPU": WORK_ITEMS, "in place, WEBGPU": "WEBGPU"}
Arrays = list[np.ndarray]


class Scene:
    """Something with state that `call` changes. `prepare` comes before each call and is not interrupted."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []

    def prepare(self) -> None:
        pass

    def call(self) -> None:
        raise NotImplementedError

    def state(self) -> Arrays:
        return [tensor.numpy() for tensor in self.tensors]


def filled(size: int, value: float, device: str | None = None) -> Tensor:
    return Tensor(np.full(size, value, np.float32), device=device).contiguous().realize()


class Many(Scene):
    """50 tensors, each assigned to, in a replay."""

    def __init__(self) -> None:
        self.tensors = [filled(8, float(number)) for number in range(50)]

        def step() -> None:
            for tensor in self.tensors:
                tensor.assign(tensor * 0.75 + 1)
            Tensor.realize(*self.tensors)

        self.call = TinyJit(step)  # type: ignore[method-assign]


class Training(Scene):
    """A step of two layers, replayed or as it is."""

    def __init__(self, optimizer: str, jitted: bool = True) -> None:
        Tensor.manual_seed(1)
        self.layers = [nn.Linear(6, 16), nn.Linear(16, 4)]
        parameters = get_parameters(self.layers)
        self.optim = (
            nn.optim.Adam(parameters, lr=0.05)
            if optimizer == "adam"
            else nn.optim.SGD(parameters, lr=0.1, momentum=0.9)
        )
        self.tensors = get_parameters(self.optim)
        self.run = TinyJit(self.step) if jitted else self.step
        self.rng = np.random.default_rng(2)

    def prepare(self) -> None:
        self.x = Tensor(self.rng.standard_normal((8, 6), dtype=np.float32))

    def step(self, x: Tensor) -> Tensor:
        with Tensor.train():
            self.optim.zero_grad()
            loss = (self.layers[1](self.layers[0](x).relu()) - 1).square().mean()
            loss.backward()
            self.optim.step()
            return loss.realize()

    def call(self) -> None:
        self.run(self.x)


class Stepping(Training):
    """`optim.step()` alone, without a TinyJit."""

    def __init__(self) -> None:
        super().__init__("adam", jitted=False)

    def prepare(self) -> None:
        super().prepare()
        with Tensor.train():
            self.optim.zero_grad()
            (self.layers[1](self.layers[0](self.x).relu()) - 1).square().mean().backward()

    def call(self) -> None:
        self.optim.step()


class InPlace(Scene):
    """Parts of a cache written in place, beside a tensor that takes turns."""

    def __init__(self, device: str | None = None, told: bool = False) -> None:
        self.cache, self.sum = filled(64, 1, device), filled(8, 0, device)
        self.tensors = [self.cache, self.sum]
        self.number, self.told, self.device = 0, told, device
        self.run = TinyJit(self.step)

    def step(self, x: Tensor) -> Tensor:
        self.cache[8:16] = x
        self.cache[32:48] += 1
        self.sum.assign(self.sum + x)
        return Tensor.realize(self.cache, self.sum)

    def prepare(self) -> None:
        self.number += 1
        self.x = filled(8, self.number, self.device)

    def call(self) -> None:
        if self.told:
            copy_context().run(self._called_and_told)
        else:
            self.run(self.x)

    def _called_and_told(self) -> None:
        recorder_variable().set(Recorder())  # in this context, which is left whatever happens
        self.run(self.x)


class InPlaceNow(InPlace):
    """The same without a TinyJit."""

    def __init__(self, device: str | None = None) -> None:
        super().__init__(device)
        self.run = self.step  # type: ignore[assignment]


class WritesNow(Scene):
    """`x[...] += 1`, computed in place: never twice."""

    def __init__(self, device: str | None = None) -> None:
        self.x = filled(64, 0, device)
        self.tensors = [self.x]

    def prepare(self) -> None:
        self.x[16:32] += 1

    def call(self) -> None:
        self.x.realize()


class Given(Scene):
    """Arguments: one assigned to, one of which a part is written."""

    def __init__(self) -> None:
        self.whole, self.part = filled(16, 0), filled(16, 0)
        self.tensors = [self.whole, self.part]

        def step(whole: Tensor, part: Tensor) -> None:
            whole.assign(whole + 1)
            part[3:7] = part[3:7] + whole[:4]
            Tensor.realize(whole, part)

        self.run = TinyJit(step)

    def call(self) -> None:
        self.run(self.whole, self.part)


class Others(Scene):
    """Other arguments in each call, done by machine code from call to result."""

    def __init__(self) -> None:
        self.kept = [filled(8, float(number)) for number in range(6)]
        self.other = [Tensor(array) for array in np.eye(5, 8, dtype=np.float32)]
        self.run = TinyJit(lambda x, y: (x * 2 + y).realize())
        self.number = 0
        self.result = np.zeros(8, np.float32)
        self.before = self.result

    def prepare(self) -> None:
        self.number += 1
        self.before = self.result
        if self.number % 3 == 0:
            self.kept[0].assign(self.kept[0] + 0).realize()  # so that the next call comes to Python

    def call(self) -> None:
        x, y = self.kept[self.number % 6], self.other[self.number % 5]
        found = self.run(x, y)
        self.result = found.numpy()

    def state(self) -> Arrays:
        return [self.result]


class Sizes(Scene):
    """A Variable's value in each call: a cache written at a place of its own."""

    def __init__(self) -> None:
        self.cache, self.total = filled(32, 0), filled(1, 0)
        self.tensors = [self.cache, self.total]
        self.place = Variable("place", 0, 31)
        self.number = 0

        def step(x: Tensor, place: object) -> Tensor:
            self.cache.shrink(((place, place + 1),)).assign(x)  # type: ignore[operator]
            self.total.assign(self.total + x)
            seen = self.cache.shrink(((0, place + 1),)).sum()  # type: ignore[operator]
            return Tensor.realize(self.cache, self.total, seen)

        self.run = TinyJit(step)

    def prepare(self) -> None:
        self.number += 1
        self.x = filled(1, self.number)

    def call(self) -> None:
        self.run(self.x, self.place.bind(self.number * 7 % 32))


class Capturing(Scene):
    """The second call of a new TinyJit, with state of all kinds."""

    def __init__(self) -> None:
        self.inner = InPlace()
        self.tensors = self.inner.tensors

    def prepare(self) -> None:
        self.inner.run = TinyJit(self.inner.step)
        self.inner.prepare()
        self.inner.call()
        self.inner.prepare()

    def call(self) -> None:
        self.inner.call()


class Assigned(Scene):
    """Values assigned elsewhere, which the next replay takes over."""

    def __init__(self) -> None:
        self.a, self.b = filled(8, 1), filled(8, 2)
        self.tensors = [self.a, self.b]

        def step() -> None:
            self.a.assign(self.a + self.b)
            self.b.assign(self.b + 1)
            Tensor.realize(self.a, self.b)

        self.call = TinyJit(step)  # type: ignore[method-assign]

    def prepare(self) -> None:
        self.a.lazydata, self.b.lazydata = self.b.lazydata, self.a.lazydata
        self.a.assign(self.a)


class Several(Scene):
    """Several tensors assigned and realized, without a TinyJit."""

    def __init__(self) -> None:
        self.tensors = [filled(8, float(number)) for number in range(20)]

    def prepare(self) -> None:
        for tensor in self.tensors:
            tensor.assign(tensor * 0.75 + 1)

    def call(self) -> None:
        Tensor.realize(*self.tensors)


class Disk(Scene):
    """A file assigned to, as a whole."""

    def __init__(self) -> None:
        self.folder = TemporaryDirectory()
        self.device = f"DISK:{self.folder.name}/state"
        self.x = filled(64, 0).to(self.device).realize()
        self.tensors = [self.x]
        self.number = 0

    def prepare(self) -> None:
        self.number += 1

    def call(self) -> None:
        self.x.assign(filled(64, self.number).to(self.device)).realize()

    def state(self) -> Arrays:
        return [np.fromfile(f"{self.folder.name}/state", np.float32)]


class Search(Scene):
    """A kernel searched for by measuring, whose result is then computed in place."""

    def __init__(self, number: int = 0) -> None:
        self.x = filled(64, 0)
        self.tensors = [self.x]
        self.number = number

    def prepare(self) -> None:
        self.number += 1  # another kernel each time

    def call(self) -> None:
        with Context(BEAM=1, CACHELEVEL=0):
            self.x.assign(self.x + Tensor.ones(64, 8 + self.number).contiguous().sum(1)).realize()


SCENES: dict[str, Callable[[], Scene]] = {
    "50 assigned": Many,
    "SGD": lambda: Training("sgd"),
    "Adam": lambda: Training("adam"),
    "in place": InPlace,
    "in place, told": lambda: InPlace(told=True),
    "in place, PYTHON": lambda: InPlace("PYTHON"),
    "in place, WASM": lambda: InPlace("WASM"),
    "in place, GPU": lambda: InPlace("GPU"),
    "in place, WEBGPU": lambda: InPlace("WEBGPU"),
    "arguments changed": Given,
    "other arguments": Others,
    "Variable": Sizes,
    "capture": Capturing,
    "assigned elsewhere": Assigned,
    "step() now": Stepping,
    "parts now": WritesNow,
    "parts now, PYTHON": lambda: WritesNow("PYTHON"),
    "realize": Several,
    "DISK": Disk,
}


def missing(name: str) -> str:
    """Why a scene cannot be tried on this machine; "" where it can."""
    if name == "in place, WASM":
        return _unavailable("WASM")
    device = GPU_SCENES.get(name)
    return "" if device is None or device in GPUS else f"{name}: no driver for {device} on this machine"


def _unavailable(device: str) -> str:
    """Why `device` does not open; "" where it does."""
    try:
        Device[device]
    except DeviceUnavailable as error:
        return f"{device}: {error}"
    return ""


def alike(found: Arrays, wanted: Arrays) -> bool:
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(found, wanted, strict=True))


def left_behind() -> list[str]:
    """What should not be as it is outside of all calls."""
    wrong = []
    if active_capture() is not None:
        wrong.append("a capture goes on")
    if active_recorder() is not None:
        wrong.append("a recorder listens")
    if change_log._notes.get() is not None:
        wrong.append("changes are written down")
    if not gc.isenabled():
        wrong.append("garbage is not collected")
    if Tensor.no_grad or Tensor.training:
        wrong.append("a mode is on")
    if sys.getswitchinterval() != 0.005:
        wrong.append("threads switch quickly")
    return wrong


class Pair:
    """A scene that is interrupted, and one beside it that is not."""

    def __init__(self, name: str) -> None:
        self.subject, self.twin = SCENES[name](), SCENES[name]()
        self.is_torn = 0
        for _ in range(4):
            self.calm()

    def calm(self) -> None:
        for scene in (self.subject, self.twin):
            scene.prepare()
            scene.call()

    def interrupted(self, interrupt: Callable[[Callable[[], None]], bool]) -> bool:
        """One call, by `interrupt`, which returns whether it was interrupted. AssertionError if the state is torn."""
        self.subject.prepare()
        self.twin.prepare()
        before = self.twin.state()
        self.twin.call()
        after = self.twin.state()
        was_interrupted = interrupt(self.subject.call)
        wrong = left_behind()
        assert not wrong, wrong
        found = self.subject.state()
        if not alike(found, after) or not was_interrupted:
            assert not was_interrupted or alike(found, before), f"torn: {found} is neither {before} nor {after}"
            if was_interrupted:
                self.subject.call()
            assert alike(self.subject.state(), after), "the next call is wrong"
        return was_interrupted


# *** real signals ***


class Signals:
    """Interrupts a call after a random time, in one of the ways that there are."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lost: list[str] = []
        self.is_inside = False
        sys.unraisablehook = lambda told: self.lost.append(f"{told.exc_value!r} in {told.object!r}")
        for number in (signal.SIGALRM, signal.SIGINT):
            signal.signal(number, self._arrived)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self.is_inside:
            self.is_inside = False
            raise Interrupted

    def run(self, call: Callable[[], None], seconds: float) -> bool:
        """Call `call`; True if it was interrupted, after at most `seconds`."""
        delay = max(2e-6, self.random.random() * seconds)
        thread = threading.Thread(target=self._from_elsewhere, args=(threading.get_ident(), delay))
        by_thread = self.random.random() < 0.2
        try:
            if by_thread:
                thread.start()
            else:
                signal.setitimer(signal.ITIMER_REAL, delay)
            self.is_inside = True
            call()
            self.is_inside = False
            if by_thread:
                thread.join()  # what it raises here comes now
            return False
        except Interrupted:
            return True
        finally:
            self.is_inside = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            if by_thread:
                thread.join()

    def _from_elsewhere(self, main: int, delay: float) -> None:
        time.sleep(delay)
        if not self.is_inside:
            return
        if self.random.random() < 0.5:
            signal.pthread_kill(main, signal.SIGINT)
        else:
            self.is_inside = False
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(Interrupted))


def span_of(pair: Pair) -> float:
    """Seconds of one call of its subject, the shortest of some."""
    found = []
    for _ in range(5):
        pair.subject.prepare()
        began = time.perf_counter()
        pair.subject.call()
        found.append(time.perf_counter() - began)
        pair.twin.prepare()
        pair.twin.call()
    return min(found)


def tried(name: str, count: int, signals: Signals) -> int:
    """Interrupt the scene `count` times and print the outcome. Returns how often its state was inconsistent."""
    pair = Pair(name)
    span = span_of(pair)
    arrived = calls = torn = 0
    while arrived < count:
        calls += 1
        try:
            arrived += pair.interrupted(lambda call: signals.run(call, span * 1.1))
        except AssertionError as error:
            arrived += 1
            torn += 1
            print(f"{name}: {error}"[:300])
            pair = Pair(name)
    print(f"{name:20} {arrived:5} interrupts in {calls:6} calls of {span * 1e6:8.0f} µs, {torn} torn", flush=True)
    return torn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="interrupts that must have arrived")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one scene: " + ", ".join(SCENES))
    chosen = parser.parse_args()
    names = [chosen.only] if chosen.only else list(SCENES)
    for name in [one for one in names if missing(one)]:
        names.remove(name)
        print(missing(name))
    signals = Signals(chosen.seed)
    each = -(-chosen.count // len(names))
    torn = sum(tried(name, each, signals) for name in names)
    print(f"{each * len(names)} interrupts, {torn} torn, {len(signals.lost)} lost")
    for one in signals.lost[:5]:
        print("lost:", one)
    sys.exit(bool(torn or signals.lost))


if __name__ == "__main__":
    main()
