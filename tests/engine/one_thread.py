"""Tensors, training steps and a capture, on any interpreter; prints the results as JSON.

`python -m tests.engine.one_thread [DEVICE] [--no-threads]`; tests/engine/pyodide.mjs runs it as a browser would. It
asks for nothing beyond the package itself: no NumPy, no test tools.
"""

from __future__ import annotations

import _thread
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any


def no_thread(*arguments: object) -> Any:
    raise RuntimeError("can't start new thread")


if "--no-threads" in sys.argv:
    threading.Thread.start = no_thread  # type: ignore[method-assign]
    _thread.start_new_thread = no_thread

from tinyexplore import Context, Explorer, Tensor, TinyJit, explore, nn  # noqa: E402
from tinyexplore.device import Device  # noqa: E402
from tinyexplore.util.locks import can_start_threads  # noqa: E402


def training() -> tuple[list[Tensor], Callable[[Tensor], Tensor]]:
    """The parameters of an MLP, and a step of Adam that returns the loss."""
    Tensor.manual_seed(3)
    first, second = nn.Linear(4, 8), nn.Linear(8, 3)
    optimizer = nn.optim.Adam(nn.state.get_parameters([first, second]), lr=0.01)
    labels = Tensor([0, 1, 2, 0, 1, 2])

    def step(x: Tensor) -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = second(first(x).relu()).sparse_categorical_crossentropy(labels).backward()
            optimizer.step()
        return loss.realize()

    return optimizer.params, step


def losses(*, jit: bool) -> list[Any]:
    """Of five steps, and the weights afterwards."""
    parameters, step = training()
    step = TinyJit(step) if jit else step
    found = [step(Tensor.rand(6, 4).realize()).item() for _ in range(5)]
    return [found, [parameter.tolist() for parameter in parameters]]


def on_two_instances(device: str) -> list[Any]:
    """Where machine code runs, enough work for each instance that both would be worth a thread."""
    size = 4 if device == "PYTHON" else 160
    pair = (device, f"{device}:1")
    with Context(THREADS=4):
        x = Tensor.rand(2 * size, size).shard(pair, 0)
        return (x @ Tensor.rand(size, size).shard(pair)).mean(1).tolist()


def captured() -> dict[str, Any]:
    """What `explore` shows of a training step."""
    _, step = training()
    x = Tensor.rand(6, 4).realize()
    view = explore(lambda: step(x), repeat=1)
    trace = view.trace
    steps = [step for stage in trace.stages for step in stage.steps]
    return {
        "kernels": [[kernel.name, kernel.device, kernel.opts, kernel.axes, kernel.flops] for kernel in trace.kernels],
        "sources": [[one.language, "\n".join(line.text for line in one.lines)] for one in sources_of(view)],
        "fired": Counter(trace.rules[step.rule].name for step in steps if step.rule is not None),
        "stages": Counter(stage.name for stage in trace.stages),
        "messages": [message.text for message in trace.messages],
        "threads": sorted({stage.thread for stage in trace.stages}),
        "text": str(view),
        "svg": "<svg" in view.trace.svg(),
        "html": "<html" in view.to_html(),
    }


def sources_of(view: Explorer) -> list[Any]:
    """The program of each kernel as it was rendered: what a compiler says of it comes after it."""
    first = {one.kernel: one for one in reversed(view.trace.programs)}
    return [first[kernel] for kernel in sorted(first)]


def searched() -> int:
    """How many candidates of a search for opts could be measured."""
    x = Tensor.rand(24, 24).realize()
    stages = explore(lambda: x @ x, repeat=1, BEAM=1).trace.stages
    return sum(candidate.best_us is not None for stage in stages for candidate in stage.candidates)


def main(device: str) -> dict[str, Any]:
    Tensor.manual_seed(5)
    x = Tensor.rand(2, 5)
    return {
        "device": device,
        "threads": can_start_threads(),
        "softmax": x.softmax().tolist(),
        "sort": [part.tolist() for part in x.sort(descending=True)],
        "convolution": nn.Conv2d(1, 2, 3)(Tensor.rand(1, 1, 6, 6)).tolist(),
        "losses": losses(jit=False),
        "losses under TinyJit": losses(jit=True),
        "instances": on_two_instances(device),
        "captured": captured(),
        "searched": searched() if device == "LLVM" else None,
    }


if __name__ == "__main__":
    named = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    with Context(DEVICE=named[0] if named else "", CACHELEVEL=0):
        print(json.dumps(main(Device.DEFAULT)))
