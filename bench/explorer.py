"""`python -m bench explorer`: measures the cost of the explorer and the speed of its page in a real Chromium.

Each figure has an aim. `--out` writes the figures to explorer.json and explorer.md. The time of a page is the CPU
time of its main thread, which other processes do not change.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from bench.tasks import longest_task_ms
from tinyexplore import Tensor, capture, explore, nn
from tinyexplore.explore import playground
from tinyexplore.explore.analysis.comparisons.comparison import compare
from tinyexplore.explore.analysis.comparisons.comparison_page import comparison_html
from tinyexplore.explore.analysis.explanations.rules import Explainer
from tinyexplore.explore.analysis.models.lru import PlainSimulator
from tinyexplore.explore.playground import Ops, UOp, UPat, check_firings
from tinyexplore.explore.tracefile.codec import trace_to_bytes, trace_to_json
from tinyexplore.explore.tracefile.model import Stage
from tinyexplore.explore.tracefile.pictures.drawn_graph import reachable
from tinyexplore.explore.tracefile.replay import StageReplay
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.nn.optim import SGD

READY = "html[data-tinyexplore=ready]"

FIRST_RUN = """
import json, sys, time
from tinyexplore import Tensor, explore
x = Tensor.ones(256, 256).contiguous().realize()
Tensor.ones(3, 3).contiguous().realize()
began = time.process_time()
if sys.argv[1] == "captured":
    explore(lambda: x.softmax(), repeat=1)
else:
    x.softmax().realize()
took = time.process_time() - began
print(json.dumps(took))
"""
TRACE_ASKED = """
import json, time
from tinyexplore import Tensor, explore
x = Tensor.ones(256, 256).contiguous().realize()
view = explore(lambda: x.softmax(), repeat=1)
began = time.process_time()
view.trace
print(json.dumps(time.process_time() - began))
"""
BUSY = 0.5  # load per core above which the report says that the machine was busy
# the time at which the browser has painted the boxes, on its clock, from the start of the navigation
FIRST_PICTURE = """new PerformanceObserver((seen) => {
  const painted = seen.getEntriesByName('first-contentful-paint')[0];
  const told = (at) => console.debug('first picture', at);
  const again = () => requestAnimationFrame(() => look(performance.now()));
  const look = (at) => document.querySelector('.drawing .box') ? told(at) : again();
  if (painted) look(painted.startTime);
}).observe({type: 'paint', buffered: true})"""
MIDDLE, NEAR = 0.36, 1.0  # zooms: the smallest at which boxes have words, and the size of a page


@dataclass(frozen=True)
class Figure:
    """One measurement.

    name: what was measured.
    value: in `unit`.
    unit: "ms", "s", "MB" or another one.
    aim: upper limit of `value`, or None.
    detail: how it was measured.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    detail: str = ""

    @property
    def verdict(self) -> str:
        return "" if self.aim is None else "yes" if self.value <= self.aim else "NO"


# *** programs ***


def chain(nodes: int) -> Trace:
    """Return the trace of about `nodes` LazyBuffers.

    An exception stops the capture before the LazyBuffers are realized, so that the trace has the whole graph.
    """
    session = capture(title=f"{nodes} LazyBuffers")
    with suppress(InterruptedError), session:
        x = Tensor.ones(8, 8).contiguous()
        y = x
        for _ in range(nodes // 2):
            y = (y * x).exp2()
        raise InterruptedError("stopped before anything is computed")
    return session.trace


class Block:
    """A transformer block of one head."""

    def __init__(self, width: int) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        normal = self.norm1(x)
        x = x + self.query(normal).scaled_dot_product_attention(self.key(normal), self.value(normal))
        return x + self.down(self.up(self.norm2(x)).gelu())


def blocks(count: int) -> Trace:
    """Return the trace of `count` transformer blocks, forward and backward, scheduled but not run.

    A block has 332 LazyBuffers.
    """
    models, x = [Block(32) for _ in range(count)], Tensor.rand(2, 16, 32).realize()
    parameters = [parameter for model in models for parameter in nn.state.get_parameters(model)]
    for parameter in parameters:
        parameter.requires_grad = True
    Tensor.realize(*parameters)
    with capture(title=f"{count} transformer blocks") as session:
        (Tensor.ones(4).contiguous() + 1).realize()
        y = x
        for model in models:
            y = model(y)
        y.square().mean().backward()
        first, *others = [parameter.grad for parameter in parameters if parameter.grad is not None]
        first.schedule(*others)
    return session.trace


class MLP:
    """An MLP of two layers."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def mlp_step() -> Trace:
    """Return the trace of a training step: loss, gradients, and the update of the optimizer."""
    model = MLP(64, 128, 10)
    optimizer = SGD(nn.state.get_parameters(model), lr=0.1)
    x, y = Tensor.rand(32, 64).realize(), Tensor.randint(32, high=10).realize()

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss

    with Tensor.train():
        return explore(step, repeat=1, title="MLP training step").trace


def block(**options: Any) -> Trace:
    """Return the trace of one block, forward and backward."""
    model, x = Block(64), Tensor.rand(2, 32, 64).realize()
    parameters = nn.state.get_parameters(model)
    for parameter in parameters:
        parameter.requires_grad = True
    Tensor.realize(*parameters)

    def both() -> list[Tensor]:
        model(x).square().mean().backward()
        return [parameter.grad for parameter in parameters if parameter.grad is not None]

    return explore(both, repeat=1, title="transformer block", **options).trace


def firing_bytes(trace: Trace) -> int:
    """Return the bytes that the firings and links of a trace add to its compressed file."""
    stages = tuple(replace(stage, steps=()) for stage in trace.stages)
    return len(trace_to_bytes(trace)) - len(trace_to_bytes(replace(trace, stages=stages, links=())))


# *** the browser ***


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("TINYEXPLORE_CHROMIUM") or next(
            (path for path in ("/usr/bin/chromium", "/usr/bin/google-chrome") if os.path.exists(path)), None
        )
        arguments = ["--no-sandbox", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """A trace as a page in a browser tab, with the workbench open."""

    def __init__(self, browser: Any, trace: Trace, folder: Path) -> None:
        from tinyexplore.explore.exports.html_export import export_html

        self.path = folder / "page.html"
        self.path.write_text(export_html(trace), encoding="utf-8")
        self.tab = browser.new_page(viewport={"width": 1280, "height": 800})
        self.tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
        self.tab.add_init_script(FIRST_PICTURE)
        self.devtools = self.tab.context.new_cdp_session(self.tab)
        self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        with self.tab.expect_console_message(
            lambda said: said.text.startswith("first picture"), timeout=60_000
        ) as heard:
            self.tab.goto(self.path.as_uri())
        self.opened_s = float(heard.value.text.split()[-1]) / 1e3
        self.worked_s = self.metric("TaskDuration")
        self.tab.wait_for_selector(READY, state="attached", timeout=60_000)

    def close(self) -> None:
        self.tab.close()

    def metric(self, name: str) -> float:
        metrics = self.devtools.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == name)

    def settle(self) -> None:
        self.tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def steps_ms(self, stage: int, count: int) -> list[float]:
        """Return the main-thread milliseconds of each of `count` steps forward in a pass."""
        self.tab.evaluate(f"tinyexplore.handle.go({{stage: {stage}, step: 0, graph: 'uops', place: 'passes'}})")
        self.tab.focus(".tinyexplore")
        self.settle()
        times = []
        for _ in range(count):
            before = self.metric("TaskDuration")
            self.tab.keyboard.press("ArrowRight")
            self.settle()
            times.append((self.metric("TaskDuration") - before) * 1e3)
        return times

    def frames_ms(self, move: Callable[[int], None], count: int = 40) -> list[float]:
        """Call `move(i)` `count` times. Return the main-thread milliseconds of each frame."""
        self.settle()
        times = []
        for i in range(count):
            before = self.metric("TaskDuration")
            move(i)
            self.settle()
            times.append((self.metric("TaskDuration") - before) * 1e3)
        return times

    def press(self, words: str) -> None:
        """Press a button of the graph by a script.

        Playwright's search for the text takes longer than the measured action.
        """
        button = "[...document.querySelectorAll('.graph button')].find((one) => one.textContent === words)"
        self.tab.evaluate(f"(words) => {button}.click()", words)

    def show_every_node(self) -> float:
        """Draw each LazyBuffer as a box. Return the seconds."""
        self.tab.select_option(".detail-choice", "views")
        began = time.perf_counter()
        self.press("show all")
        self.tab.wait_for_selector(".graph .working[hidden]", state="attached", timeout=60_000)
        self.settle()
        return time.perf_counter() - began

    def zoom_to(self, zoom: float, node: int) -> None:
        """Show boxes at `zoom` times their size, with `node` in the center. With 0: the whole graph."""
        if zoom == 0:
            self.press("fit")
        self.tab.evaluate("tinyexplore.handle.select([])")  # so that no card covers the graph
        self.tab.mouse.move(*self._middle())
        self.tab.keyboard.down("Control")
        while self.zoom_now() < zoom:
            self.tab.mouse.wheel(0, -60 if self.zoom_now() < 0.8 * zoom else -10)
            self.settle()
        self.tab.keyboard.up("Control")
        self.tab.mouse.move(1, 1)  # so that the pointer rests on no node
        self.tab.evaluate(f"tinyexplore.handle.select([{node}])")
        self.tab.wait_for_timeout(500)
        self.tab.evaluate("tinyexplore.handle.select([])")

    def zoom_now(self) -> float:
        return self.tab.evaluate("document.querySelector('.drawing .world').getScreenCTM().a")

    def _middle(self) -> tuple[float, float]:
        box = self.tab.query_selector(".canvas").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] - 30

    def pan(self) -> list[float]:
        x, y = self._middle()
        self.tab.mouse.move(x, y)
        self.tab.mouse.down()
        times = self.frames_ms(lambda i: self.tab.mouse.move(x - 4 * i, y - 4 * i))
        self.tab.mouse.up()
        return times

    def zoom(self) -> list[float]:
        self.tab.mouse.move(*self._middle())
        self.tab.keyboard.down("Control")
        times = self.frames_ms(lambda i: self.tab.mouse.wheel(0, -20 if i % 20 < 10 else 20))
        self.tab.keyboard.up("Control")
        return times


# *** measuring ***


def measure(rounds: int, say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield every figure, in the order of the table."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        # the browser of a reader has opened pages before; this browser has just started
        Page(browser, chain(2), folder).close()
        for nodes, aim in ((50, 0.3), (450, 1.5)):
            say(f"first picture of {nodes} nodes")
            trace = chain(nodes)
            yield _opened(f"first picture, {nodes} LazyBuffers", aim, browser, trace, folder, rounds)
        say("training step and block")
        traces = [(trace.title, trace) for trace in (mlp_step(), block())]
        yield from _stepping(browser, [trace for _, trace in traces], folder, rounds)
        yield from _why_not([trace for _, trace in traces])
        say("tuner")
        yield from _tuning(browser, folder)
        say("debugger")
        yield from _debugging()
        say("page with engine")
        yield from _live(browser, folder, rounds)
        say("edits")
        yield from _editing()
        say("rules")
        yield from _rules([trace for _, trace in traces])
        say("fusion board")
        yield from _fusion(browser, folder)
        say("10 000 nodes")
        yield from _large(browser, blocks(31), folder)
        for title, trace in traces:
            say(f"page of {title}")
            aims = (1000.0, 1.5) if "MLP" in title else (None, None)
            firings = sum(step.rule is not None for stage in trace.stages for step in stage.steps)
            page = Page(browser, trace, folder)
            nbytes = page.path.stat().st_size
            page.close()
            detail = f"{firings} firings, {len(trace.kernels)} kernels, {len(trace.nodes)} nodes"
            yield Figure(f"page, {title}", nbytes / 1e3, "kB", aims[0], detail)
            yield _opened(f"page opens, {title}", aims[1], browser, trace, folder, rounds)
            trace_bytes, bytes_of_firings = len(trace_to_bytes(trace)), firing_bytes(trace)
            detail = "compressed: steps and links, without nodes and listings; "
            detail += f"the whole trace is {trace_bytes / 1e3:.0f} kB"
            yield Figure(f"bytes per firing, {title}", bytes_of_firings / firings, "B", 50.0, detail)
    say("comparison")
    compared = comparison_html(compare(block(), block(NOOPT=1)))
    yield Figure("comparison page, transformer block with and without opts", len(compared.encode()) / 1e3, "kB")
    say("capture")
    yield _capture(2 * rounds)


def _capture(rounds: int) -> Figure:
    """Return the ratio of the CPU time of a first capture to that of a first run without a capture.

    Bytecode is present, as after an installation with pip: the first round of each way creates it and does not count.
    """
    ways = {"plain": (FIRST_RUN, "plain"), "captured": (FIRST_RUN, "captured"), "asked": (TRACE_ASKED,)}
    times_of_way: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(rounds + 1):  # alternately, so that noise of the machine affects all ways
            for way, program in ways.items():
                seconds = _first_run(Path(bytecode), *program)
                if number:
                    times_of_way[way].append(seconds)
    plain, captured, with_trace = (median(times) for times in times_of_way.values())
    detail = f"processor time: {plain * 1e3:.1f} ms plain, {captured * 1e3:.1f} ms captured, in fresh processes with "
    detail += f"nothing on disk but Python's bytecode; {with_trace * 1e3:.0f} ms more to build the trace"
    return Figure("capture over plain first run, softmax", captured / plain, "×", 2.0, detail)


def _opened(name: str, aim: float | None, browser: Any, trace: Trace, folder: Path, rounds: int) -> Figure:
    """Measure the time from the navigation to the first frame with boxes, and its CPU time in the main thread."""
    opened, worked = [], []
    for _ in range(rounds):
        page = Page(browser, trace, folder)
        page.close()
        opened.append(page.opened_s)
        worked.append(page.worked_s)
    detail = (
        f"until boxes are painted; {median(worked) * 1e3:.0f} ms of it are processor time of the page's main thread"
    )
    return Figure(name, median(opened), "s", aim, detail)


def _stepping(browser: Any, traces: Sequence[Trace], folder: Path, rounds: int) -> Iterator[Figure]:
    """Yield the time of a step of a pass."""
    size, firings, trace, stage = _pass_near_450_nodes(traces)
    page = Page(browser, trace, folder)
    times = page.steps_ms(stage.id, min(firings, 5 * rounds))
    page.close()
    detail = f'"{stage.name}" of {trace.title}, {len(times)} steps, most {max(times):.1f} ms'
    yield Figure(f"step, {size} nodes", median(times), "ms", 50.0, detail)


def _why_not(traces: Sequence[Trace]) -> Iterator[Figure]:
    """Yield the time to find what prevents the rules of a pass on each node of its graph, in the middle of the pass."""
    size, _, trace, stage = _pass_near_450_nodes(traces)
    step = len(stage.steps) // 2
    nodes = {shown.node for shown in StageReplay(trace, stage.id).graph_at(step).nodes.values()}
    first, later = [], []
    explainer: Explainer | None = None
    for number, node in enumerate(sorted(nodes)):
        times, explainer = (later, explainer) if number % 50 and explainer is not None else (first, Explainer(trace))
        if times is first:
            gc.collect()  # else the collection of garbage from earlier figures would take longer than the question
        began = time.perf_counter()
        explainer.why_not(node, stage, step)
        times.append((time.perf_counter() - began) * 1e3)
    place = f'"{stage.name}" of {trace.title} after step {step}'
    detail = f"{place}: of a graph requested first, most of {len(first)}, the graph replayed and rebuilt"
    yield Figure(f"why not, {size} nodes", max(first), "ms", 100.0, detail)
    yield Figure(
        f"why not again, {size} nodes", median(later), "ms", None, f"each other node; most {max(later):.1f} ms"
    )


def _tuning(browser: Any, folder: Path) -> Iterator[Figure]:
    """Yield figures of opts on a small kernel: compiled, checked and timed. Draw another branch, too."""
    a, b = Tensor.rand(128, 128).realize(), Tensor.rand(128, 128).realize()
    view = explore(lambda: a @ b, title="product")
    view.whatif.begin(0)
    view.kernels[0].set_opts()
    times = []
    for opt in ("VECTOR(1, 16)", "UPCAST(0, 4)", "UPCAST(1, 2)", "UNROLL(2, 2)"):
        began = time.perf_counter()
        branch = view.kernels[0].apply(opt)
        times.append(time.perf_counter() - began)
        assert branch.status == "done", branch.reason
    detail = f"128 × 128 by 128 × 128, most of {len(times)} opts: compiled, listed, checked, timed"
    yield Figure("opt changed, small kernel", max(times), "s", 1.0, detail)
    page = Page(browser, view.trace, folder)
    page.tab.evaluate("tinyexplore.handle.go({panel: 'tuner', kernel: 0})")
    rows = page.tab.query_selector_all(".tuner-row")
    click = "document.querySelectorAll('.tuner-row')[{}].click()"
    drawn = page.frames_ms(lambda i: page.tab.evaluate(click.format(i)), len(rows))
    page.close()
    yield Figure(
        "branch drawn, small kernel", max(drawn), "ms", None, f"nest, opts, tree and listings; most of {len(drawn)}"
    )


def _debugging() -> Iterator[Figure]:
    """Yield the time of UOps in the debugger, and of a product's addresses in the model of the caches.

    The results of the cache model are compared with those of the plain model.
    """
    a, b = Tensor.rand(32, 32).realize(), Tensor.rand(32, 32).realize()
    view = explore(lambda: a @ b, noopt=1, keep_inputs=True, repeat=1)
    debugger, times = view.kernels[0].debug(), []
    for _ in range(3):
        debugger.restart()
        began = time.perf_counter()
        debugger.finish()
        times.append(time.perf_counter() - began)
    detail = f"{debugger.position:,} UOps of a product of 32 × 32; the aim is 300 000 a second"
    yield Figure("a UOp debugged", min(times) * 1e6 / debugger.position, "µs", 1e6 / 300_000, detail)
    model = view.kernels[0].caches()
    stream = view.kernels[0].memory_stream(unit=model.caches[0].line_bytes)
    plain = PlainSimulator(model.caches, len(stream.accesses), stream.nbytes // model.caches[0].line_bytes + 1)
    for chunk in stream.chunks():
        plain.run(chunk.lines, chunk.columns)
    equal = all(
        (*access.traffic.served, *access.traffic.reuse) == (*map(int, served), *map(int, reuse))
        for access, served, reuse in zip(model.accesses, plain.served, plain.reuse, strict=True)
    )
    words = f"of a product of 32 × 32 {'each is' if equal else 'NOT each is'} what the plain simulator finds"
    a, b = Tensor.rand(256, 256).realize(), Tensor.rand(256, 256).realize()
    view = explore(lambda: a @ b, repeat=1)
    for name, opts in (("no opts", ()), ("the heuristics' opts", None)):
        began, worked = time.perf_counter(), time.process_time()
        model = view.kernels[0].caches(opts=opts)
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        detail = f"{model.total.accesses:,} accesses, {worked:.2f} s of processor time; {words}"
        yield Figure(f"caches of a product of 256 × 256, {name}", seconds, "s", 2.0, detail)


def _live(browser: Any, folder: Path, rounds: int) -> Iterator[Figure]:
    """Yield figures of a page that carries the engine: its size, and the times of its first and later answers."""
    a, b = Tensor.rand(16, 16).realize(), Tensor.rand(16, 16).realize()
    view = explore(lambda: a @ b, noopt=1, keep_inputs=True, repeat=1, title="page with engine")
    path = folder / "live.html"
    nbytes = len(view.to_html(path, live=True).encode())
    yield Figure(
        "page with engine, one file", nbytes / 1e6, "MB", 10.0, "engine, Python, front end and a trace of one kernel"
    )
    stage = next(stage for stage in view.trace.stages if any(step.rule is not None for step in stage.steps))
    request = {"ask": "why", "stage": stage.id, "step": 0, "node": stage.steps[0].before}
    first, later = [], []
    tab = None
    for _ in range(rounds):
        if tab is not None:
            tab.close()
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(path.as_uri())
        tab.wait_for_selector(READY, state="attached", timeout=60_000)
        first.append(tab.evaluate(ASKED, request) / 1e3)
        later.append(tab.evaluate(ASKED, request) / 1e3)
    yield Figure(
        "page with engine, first response", median(first), "s", 6.0, "why not: unpacked, started, the kernel rebuilt"
    )
    yield Figure("page with engine, the same request again", median(later), "s", 0.3)
    assert tab is not None
    start = {"ask": "debug", "kernel": 0, "do": "restart"}
    tab.evaluate(ASKED, start)
    seconds = tab.evaluate(ASKED, {**start, "do": "finish"})
    count = tab.evaluate("async (asked) => (await tinyexploreEngine.ask(asked)).position", {**start, "do": "look"})
    detail = f"{count:,} UOps of a product of 16 × 16; the aim is 60 000 a second"
    yield Figure("page with engine, a UOp debugged", seconds * 1e3 / count, "µs", 1e6 / 60_000, detail)
    tab.close()


ASKED = """async (asked) => {
  const began = performance.now();
  await tinyexploreEngine.ask(asked);
  return performance.now() - began;
}"""


def _editing() -> Iterator[Figure]:
    """Yield the times of edits of a small kernel's C. Each edit is compiled, run in a process, compared and timed.

    Some of the edits crash.
    """
    a, b = Tensor.rand(32, 48).realize(), Tensor.rand(48, 64).realize()
    view = explore(lambda: (a @ b).relu(), keep_inputs=True)
    text = view.kernels[0].edit_text("c")
    times, crashes = [], []
    for number in range(6):
        for taken, more in (
            (times, ""),
            (crashes, "__attribute__((constructor)) static void now(void) { __builtin_trap(); }\n"),
        ):
            began = time.perf_counter()
            branch = view.kernels[0].edit("c", f"{text}{more}// {number}\n")
            taken.append(time.perf_counter() - began)
            assert branch.status == ("failed" if more else "done"), branch.reason
            view.whatif.go(0)
    detail = f"the most of {len(times) - 1}; {times[0]:.2f} s the first"
    detail = f"compiled, run twice between guard pages, compared, timed: {detail}"
    yield Figure("C edited, small kernel", max(times[1:]), "s", 1.0, detail)
    yield Figure("edit that crashes, small kernel", max(crashes[1:]), "s", 1.0)


def _rules(traces: Sequence[Trace]) -> Iterator[Figure]:
    """Yield the times of a user's rule on a program, with every firing checked.

    The rule is previewed, fired wherever it matches, and added to the pipeline. Then every firing of other programs is
    checked.
    """
    x, a = playground.var("x"), playground.cvar("a")

    @playground.rule(UPat.of(Ops.MOD, x, a))
    def remainder_written_out(x: UOp, a: UOp) -> UOp:
        """Return x % a as x - x // a * a."""
        return x + x.alu(Ops.IDIV, a) * (a * -1)

    t = Tensor.rand(33, 64).realize()
    view = explore(lambda: [(t.permute(1, 0).reshape(33, 64) + 1).sum(0), t * 2], title="shuffled")
    began = time.perf_counter()
    places = view.rules.matches(remainder_written_out)
    detail = f"{len(places)} places in all passes, each checked: two kernels that divide their indices"
    yield Figure("where a rule matches, small program", time.perf_counter() - began, "s", None, detail)
    began = time.perf_counter()
    fired = view.rules.fire_all(remainder_written_out, places[0].kernel, places[0].name)
    detail = f"{len(fired.firings)} firings, checked; the rest of the pipeline, compiled and timed"
    yield Figure("rule fired wherever it matches, small program", time.perf_counter() - began, "s", None, detail)
    began = time.perf_counter()
    branch = view.rules.insert(remainder_written_out, "simplify")
    detail = f"{len(branch.firings)} firings, checked; {len(branch.kernels)} kernels compiled and timed"
    yield Figure("rule in the pipeline, small program", time.perf_counter() - began, "s", None, detail)
    count, wrong, seconds = 0, 0, 0.0
    for trace in traces:
        began = time.perf_counter()
        checks = check_firings(trace)
        seconds += time.perf_counter() - began
        count += len(checks)
        wrong += sum(check.verdict.status == "differs" for check in checks)
    names = " and ".join(trace.title for trace in traces)
    detail = f"{count:,} firings of {names}, equal ones once: {seconds:.1f} s in all, {wrong} found wrong"
    yield Figure("a firing checked", seconds * 1e3 / count, "ms", None, detail)


def _fusion(browser: Any, folder: Path) -> Iterator[Figure]:
    """Yield the times of a cut edge: rescheduled, compiled, compared and timed; and the time to draw its branch."""
    q, k, v = (Tensor.rand(40, 16).realize() for _ in range(3))
    view = explore(lambda: (q @ k.T).softmax() @ v, title="attention")
    root = view.fusion.branch()
    edges = [edge for edge in view.fusion.edges() if not edge.against_cut][:6]
    times = []
    for edge in edges:
        began = time.perf_counter()
        branch = view.fusion.cut(edge, branch=root)
        times.append(time.perf_counter() - began)
        assert branch.status == "done", branch.reason
    detail = f"an attention of 40 × 16, most of {len(times)} cuts: rescheduled, compiled, compared, timed"
    yield Figure("edge cut, small graph", max(times), "s", 1.0, detail)
    page = Page(browser, view.trace, folder)
    page.tab.evaluate("tinyexplore.handle.go({panel: 'fusion'})")
    page.tab.wait_for_selector(".fusion .tuner-row")
    click = "document.querySelectorAll('.fusion .tuner-row')[{}].click()"
    drawn = page.frames_ms(lambda i: page.tab.evaluate(click.format(i)), len(times) + 1)
    page.close()
    yield Figure("cut drawn, small graph", max(drawn), "ms", None, f"graph, edges, table; most of {len(drawn)}")


def _pass_near_450_nodes(traces: Sequence[Trace]) -> tuple[int, int, Trace, Stage]:
    """Return the pass whose graph is nearest to 450 nodes: its nodes, firings, trace and stage.

    It has some steps.
    """
    sized = []
    for trace in traces:
        for stage in trace.stages:
            firings = sum(step.rule is not None for step in stage.steps)
            if firings >= 5:
                size = len(reachable(dict(enumerate(trace.nodes)), stage.before))
                sized.append((abs(size - 450), size, firings, trace, stage))
    return min(sized, key=lambda found: found[0])[1:]


def _large(browser: Any, trace: Trace, folder: Path) -> Iterator[Figure]:
    """Yield figures of a graph with all nodes as boxes: layout, pan, zoom, and the explanation of the schedule."""
    page = Page(browser, trace, folder)
    lazybuffers = [node for node in trace.nodes if node.kind == "lazybuffer"]
    size = f"{len(lazybuffers)} LazyBuffers"
    yield Figure(f"opens, {size}", page.opened_s, "s", 2.0)
    schedule = max(trace.stages, key=lambda stage: len(stage.decisions))
    other = next(stage for stage in trace.stages if stage.kernel is not None)
    page.tab.evaluate(f"tinyexplore.handle.go({{stage: {other.id}}})")
    page.settle()
    go = f"tinyexplore.handle.go({{stage: {schedule.id}, step: 0, graph: 'lazy', place: 'lazy'}})"
    longest = longest_task_ms(browser, lambda: (page.tab.evaluate(go), page.settle()))
    detail = f"to a schedule of {len(schedule.decisions)} decisions; the longest task"
    yield Figure(f"goes to the schedule, {size}", longest, "ms", 200.0, detail)
    seconds: list[float] = []
    longest = longest_task_ms(browser, lambda: seconds.append(page.show_every_node()))
    detail = f"the longest task while a worker lays them out, {seconds[0]:.1f} s in all"
    yield Figure(f"lays out, {size}", longest, "ms", 200.0, detail)
    idle = median(page.frames_ms(lambda i: None))
    middle = lazybuffers[len(lazybuffers) // 2].id
    for gesture in ("pan", "zoom"):
        frame_times = {}
        for distance, zoom in (("far", 0.0), ("middle", MIDDLE), ("near", NEAR)):
            page.zoom_to(zoom, middle)
            frame_times[distance] = getattr(page, gesture)()
        medians = {distance: median(times) for distance, times in frame_times.items()}
        detail = ", ".join(f"{distance} {ms:.1f}" for distance, ms in medians.items())
        longest_ms = max(max(times) for times in frame_times.values())
        detail = f"a frame: {detail}; most {longest_ms:.1f}; {idle:.1f} where nothing moves"
        yield Figure(f"{gesture}, {size}", max(medians.values()), "ms", 16.0, detail)
    yield Figure(f"memory, {size}", page.metric("JSHeapUsedSize") / 1e6, "MB", None, "JavaScript heap")
    json_bytes = len(trace_to_json(trace).encode())
    yield Figure(f"trace, {size}", json_bytes / 1e6, "MB", None, "JSON before compression")
    page.close()


def _first_run(bytecode: Path, program: str, *words: str) -> float:
    """Return the seconds that a program reports as the first run of its process.

    All caches are empty, except `bytecode`.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "PYTHONPYCACHEPREFIX": str(bytecode)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", program, *words]
        process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(json.loads(process.stdout))


# *** output ***


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as Markdown, one row per figure."""
    rows = ["| | measured | aim | met | |", "|---|---|---|---|---|"]
    for figure in figures:
        aim = "" if figure.aim is None else f"≤ {figure.aim:g} {figure.unit}"
        rows.append(
            f"| {figure.name} | {figure.value:.3g} {figure.unit} | {aim} | {figure.verdict} | {figure.detail} |"
        )
    return "\n".join(rows)


def about_here() -> dict[str, Any]:
    """Return the time and the machine."""
    when = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"when": when, "python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}


def report(about: Mapping[str, Any], figures: Sequence[Figure]) -> str:
    """Return the page of docs/performance."""
    words = f"`tinyexplore bench explorer --out docs/performance`, {about['when'][:10]}, Python {about['python']}, "
    words += f"{about['cores']} cores of {about['machine']}, load {about['load']:.1f} when it began."
    if about["load"] > BUSY * about["cores"]:
        words += " The machine was busy: seconds and ratios are worse than they would be alone."
    aims = [figure for figure in figures if figure.aim is not None]
    met = sum(figure.verdict == "yes" for figure in aims)
    return f"# The explorer, measured\n\n{words}\n\n{met} of {len(aims)} aims are met.\n\n{table(figures)}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return the exit status 0."""
    parser = argparse.ArgumentParser(prog="tinyexplore bench explorer", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="pages and processes for each median (5)")
    parser.add_argument("--out", metavar="FOLDER", help="keep them there as explorer.json and explorer.md")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    figures = list(measure(options.rounds, lambda words: print(f"  {words} …", file=sys.stderr)))
    print(table(figures))
    if options.out:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        about = {**about_here(), "load": load}
        data = {**about, "figures": [asdict(figure) for figure in figures]}
        (folder / "explorer.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / "explorer.md").write_text(report(about, figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
