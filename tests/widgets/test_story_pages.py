"""The seven pages of the story for five programs: their texts, that they fit, and navigation by keys alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import axe
from tests.support.pages import wait_until
from tinyexplore import Tensor, nn
from tinyexplore.explore import Explorer, explore

pytestmark = [pytest.mark.browser, pytest.mark.pinned]

TARGET = "x86-64-v3,threads=2,l1=32K,l2=512K"
PAGES = ("python", "tensors", "kernels", "loops", "rewrites", "code", "time")
SIZES = ((1200, 720), (1000, 640), (700, 720))


def softmax() -> Explorer:
    x, w, b = (Tensor.rand(*shape).realize() for shape in ((64, 48), (48, 32), (32,)))
    return explore(lambda: (x @ w + b).softmax(), target=TARGET, repeat=5)


def attention() -> Explorer:
    q, k, v = (Tensor.rand(2, 32, 16).realize() for _ in range(3))

    def attend() -> Tensor:
        scores = q @ k.transpose(1, 2) * 0.25
        return scores.softmax() @ v

    return explore(attend, target=TARGET, repeat=5)


def convolution() -> Explorer:
    x, w = Tensor.rand(1, 4, 16, 16).realize(), Tensor.rand(8, 4, 3, 3).realize()
    return explore(lambda: x.conv2d(w).relu(), target=TARGET, repeat=5)


def gather() -> Explorer:
    table, ids = Tensor.rand(512, 32).realize(), Tensor(np.arange(0, 512, 7, dtype="int32")).realize()
    return explore(lambda: table[ids], target=TARGET, repeat=5)


class Net:
    """Two layers."""

    def __init__(self) -> None:
        self.l1, self.l2 = nn.Linear(16, 32), nn.Linear(32, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.l2(self.l1(x).relu())


def mlp_step() -> Explorer:
    net = Net()
    for parameter in nn.state.get_parameters(net):
        parameter.realize()
    optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.1)
    x, y = Tensor.rand(8, 16).realize(), Tensor(np.arange(8, dtype="int32") % 4).realize()

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y)
        loss.backward()
        optimizer.step()
        return loss

    with Tensor.train():
        return explore(step, target=TARGET, repeat=5)


PROGRAMS: dict[str, Callable[[], Explorer]] = {
    "softmax": softmax,
    "mlp step": mlp_step,
    "attention": attention,
    "convolution": convolution,
    "gather": gather,
}


@pytest.fixture(scope="module", params=list(PROGRAMS))
def captured(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Explorer, Path]:
    """A program, its view, and its page, which stores the times after each opt."""
    view = PROGRAMS[request.param]()
    slowest = max(view.kernels, key=lambda kernel: kernel.run.median_us if kernel.run else 0.0)
    slowest.opt_steps()
    path = tmp_path_factory.mktemp("story") / "page.html"
    view.to_html(path)
    return request.param, view, path


Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, captured: tuple[str, Explorer, Path]) -> Iterator[Open]:
    """Opens the page's story; nothing may have raised an error at the end."""
    tabs, errors = [], []

    def open_(
        size: tuple[int, int] = SIZES[0], scheme: str = "light", motion: str = "reduce", chapter: str = "python"
    ) -> Any:
        viewport = {"width": size[0], "height": size[1]}
        tab = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion=motion)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(f"{captured[2].as_uri()}#story={chapter}")
        tab.wait_for_selector(".story[data-step]")
        tabs.append(tab)
        return tab

    yield open_
    for tab in tabs:
        tab.close()
    assert errors == []


def pages_of(tab: Any) -> list[str]:
    """All seven, in order; without the rewrites where no rule fired."""
    found = [title.lower() for title in tab.locator(".chapter").all_inner_texts()]
    assert found in (list(PAGES), [page for page in PAGES if page != "rewrites"])
    return found


def turn_to(tab: Any, page: str) -> None:
    tab.click(f".chapter >> text={page.title()}")
    tab.wait_for_selector(f".story[data-chapter={page}]")


def steps(tab: Any) -> int:
    """How many steps the page has."""
    return max(1, tab.locator(".step-dot").count())


SMALLEST = """() => {
  const zoom = (text) => text.ownerSVGElement.getScreenCTM().a;
  const words = [...document.querySelectorAll('.story svg text')].filter((text) => text.textContent !== '');
  return Math.min(99, ...words.map((text) => parseFloat(getComputedStyle(text).fontSize) * zoom(text)));
}"""
OVERFLOW = """() => {
  const { scrollHeight, clientHeight, scrollWidth, clientWidth } = document.querySelector('.story .picture');
  return [scrollHeight - clientHeight, scrollWidth - clientWidth];
}"""


CUT_CARDS = """() => [...document.querySelectorAll('.time-card, .expr-card, .cut, .opt-card')]
  .filter((card) => card.scrollWidth > card.clientWidth + 1).map((card) => card.innerText)"""


@pytest.mark.parametrize("size", SIZES, ids=[f"{width}x{height}" for width, height in SIZES])
def test_every_page_fits_and_is_legible(opened: Open, captured: Any, screenshots: Path, size: tuple[int, int]) -> None:
    scheme = "dark" if size[0] == 700 else "light"
    tab = opened(size, scheme)
    for page in pages_of(tab):
        turn_to(tab, page)
        for at in range(steps(tab)):
            if tab.locator(".step-dot").count():
                tab.click(f".step-dot >> nth={at}")
            assert tab.inner_text(".sentence") != ""
            assert max(tab.evaluate(OVERFLOW)) <= 0, (page, at)
            assert tab.evaluate(SMALLEST) >= 11, (page, at)
            assert tab.evaluate(CUT_CARDS) == [], (page, at)
        name = captured[0].replace(" ", "_")
        tab.screenshot(path=screenshots / f"story_{name}_{page}_{size[0]}_{scheme}.png")


@pytest.mark.parametrize(("size", "scheme"), [(SIZES[0], "light"), (SIZES[2], "dark")], ids=["wide", "narrow dark"])
def test_every_page_is_without_grave_findings(opened: Open, size: tuple[int, int], scheme: str) -> None:
    tab = opened(size, scheme)
    found = {}
    for page in pages_of(tab):
        turn_to(tab, page)
        found[page, "first"] = axe.findings(tab)
        if steps(tab) > 1:
            tab.click(".step-dot >> nth=-1")
            found[page, "last"] = axe.findings(tab)
    assert {place: words for place, words in found.items() if words} == {}


def test_arrow_keys_step_through_every_page_to_the_workbench(opened: Open) -> None:
    tab = opened()
    tab.focus(".tinyexplore")
    for page in pages_of(tab):
        assert tab.get_attribute(".story", "data-chapter") == page
        for at in range(steps(tab)):
            assert tab.get_attribute(".story", "data-step") == str(at)
            tab.keyboard.press("ArrowRight")
    assert tab.evaluate("tinyexplore.handle.mode") == "workbench"


def test_back_opens_the_last_step_of_the_previous_page_and_shift_skips_steps(opened: Open) -> None:
    tab = opened(chapter="kernels")
    tab.focus(".tinyexplore")
    tab.keyboard.press("ArrowLeft")
    assert tab.get_attribute(".story", "data-chapter") == "tensors"
    assert tab.get_attribute(".story", "data-step") == str(steps(tab) - 1)
    tab.keyboard.press("Shift+ArrowRight")
    tab.keyboard.press("Shift+ArrowRight")
    assert tab.get_attribute(".story", "data-chapter") == "loops"
    assert tab.get_attribute(".story", "data-step") == "0"
    tab.keyboard.press("Shift+ArrowLeft")
    assert tab.get_attribute(".story", "data-chapter") == "kernels"


def test_a_page_plays_once_and_space_plays_it_again(opened: Open) -> None:
    tab = opened(motion="no-preference", chapter="tensors")
    last = steps(tab) - 1
    tab.select_option(".speed", "2")
    wait_until(tab, f"document.querySelector('.story').dataset.step === '{last}'")
    tab.focus(".tinyexplore")
    tab.keyboard.press("Shift+ArrowRight")
    tab.keyboard.press("Shift+ArrowLeft")
    tab.wait_for_timeout(2600)
    assert tab.get_attribute(".story", "data-step") == "0"  # it has played
    tab.keyboard.press(" ")
    wait_until(tab, "document.querySelector('.story').dataset.step !== '0'")
    tab.keyboard.press(" ")  # pauses
    at = tab.get_attribute(".story", "data-step")
    tab.wait_for_timeout(1500)
    assert tab.get_attribute(".story", "data-step") == at


def test_nothing_plays_under_reduced_motion_and_the_verdict_never_does(opened: Open) -> None:
    for motion, page in (("reduce", "tensors"), ("no-preference", "time")):
        tab = opened(motion=motion, chapter=page)
        tab.wait_for_timeout(2900)
        assert tab.get_attribute(".story", "data-step") == "0"


EXPECTED = {
    "softmax": {"accumulate", "exp_float32"},
    "mlp step": {"accumulate"},
    "attention": {"accumulate", "exp_float32"},
    "convolution": {"accumulate"},
}


def test_the_rewrites_are_the_consequential_ones_one_of_each_rule(opened: Open, captured: Any) -> None:
    tab = opened(chapter="rewrites")
    if captured[0] == "gather":
        assert "rewrites" not in pages_of(tab)  # no rule fires on this kernel: its vectors are whole
        return
    rules = tab.locator(".firing-tab b").all_inner_texts()
    assert len(rules) == len(set(rules)) == 3
    assert EXPECTED[captured[0]] <= set(rules)
    view = captured[1]
    fired = {view.trace.rules[step.rule].name for stage in view.trace.stages for step in stage.steps if step.rule}
    assert set(rules) <= fired | {view.trace.rules[0].name}
    for at in range(steps(tab)):
        tab.click(f".step-dot >> nth={at}")
        marked = tab.locator(".scene .new" if at % 2 else ".scene .match").count()
        assert marked > 0 or at % 2  # a rule may only take away
        assert tab.inner_text(".rule-card h3") == rules[at // 2]


def test_the_loops_change_opt_by_opt_and_end_as_the_kernel_runs(opened: Open, captured: Any) -> None:
    tab = opened(chapter="loops")
    view = captured[1]
    slowest = max(view.kernels, key=lambda kernel: kernel.run.median_us)
    cards = tab.locator(".opt-card b").all_inner_texts()
    assert cards[0] == "no opts"
    assert " ".join(cards[1:]).split(") ") == " ".join(slowest.opts).split(") ")
    tab.click(".step-dot >> nth=-1")
    assert tab.locator(".nest-row").count() == len(slowest.info.nest)
    assert tab.locator(".nest-row .axis-tag").count() == sum(line.kind != "" for line in slowest.info.nest)


def test_a_page_without_times_of_the_opts_has_its_steps_too(browser: Any, tmp_path: Path) -> None:
    view = softmax()
    path = tmp_path / "page.html"
    view.to_html(path)
    slowest = max(view.kernels, key=lambda kernel: kernel.run.median_us)
    tab = browser.new_page(viewport={"width": 1200, "height": 720}, reduced_motion="reduce")
    tab.goto(f"{path.as_uri()}#story=loops")
    tab.wait_for_selector(".story[data-step]")
    assert steps(tab) == 1 + len(slowest.opts)
    assert tab.locator(".opt-card .time i").count() == 1  # the kernel as it runs
    assert f"view.kernels[{slowest.number}].opt_steps()" in tab.inner_text(".opts")
    tab.close()


MARKS = """() => [...document.querySelectorAll('.time-picture .roof-dot circle')]
  .map((dot) => [Number(dot.getAttribute('cx')), Number(dot.getAttribute('cy'))])"""


def test_no_dot_of_the_last_page_covers_another_one(opened: Open) -> None:
    tab = opened(chapter="time")
    dots = tab.evaluate(MARKS)
    pairs = [(a, b) for i, a in enumerate(dots) for b in dots[i + 1 :]]
    assert all((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 >= 19**2 for a, b in pairs)


def test_the_python_page_colors_every_part_and_shows_its_nodes(opened: Open, captured: Any) -> None:
    tab = opened(chapter="python")
    cards = tab.locator(".expr-card h3").all_inner_texts()
    parts = tab.eval_on_selector_all(".program .part", "all => new Set(all.map((one) => one.dataset.card)).size")
    assert len(cards) == steps(tab)
    assert 1 <= parts <= len(cards)
    if captured[0] == "softmax":
        assert cards == ["x @ w", "+ b", ".softmax()"]
        assert tab.inner_text(".program") == "(x @ w + b).softmax()"


def test_a_product_is_shown_as_a_repeated_multiply_and_a_sum(opened: Open, captured: Any) -> None:
    tab = opened(chapter="tensors")
    head = tab.inner_text(".sentence")
    assert ("repeated multiply and a sum" in head) == (captured[0] != "gather")
    assert tab.locator(".story-legend li").count() == 5


def test_the_first_three_pages_count_the_same_operations(opened: Open) -> None:
    tab = opened()
    told = []
    for page in ("python", "tensors", "kernels"):
        turn_to(tab, page)
        told.append(re.search(r"(\d+) operations?", tab.inner_text(".sentence"))[1])
    assert len(set(told)) == 1
    turn_to(tab, "tensors")
    boxes = tab.locator(".story-tensors .story-node:is(.alu, .reduce)")
    if tab.locator(".story-tensors .story-node.input").count():  # every operation has a box of its own
        assert boxes.count() == int(told[0])


CROSSED = """() => [...document.querySelectorAll('.story .edge-path')].flatMap((path) => {
  const length = path.getTotalLength();
  const boxes = [...document.querySelectorAll('.story-node .face')].map((face) => face.getBoundingClientRect());
  const at = path.getScreenCTM();
  for (let far = 4; far < length - 4; far += 3) {
    const point = path.getPointAtLength(far).matrixTransform(at);
    const hit = boxes.find(({ left, right, top, bottom }) =>
      point.x > left + 1 && point.x < right - 1 && point.y > top + 1 && point.y < bottom - 1);
    if (hit !== undefined) return [path.getAttribute('d')];
  }
  return [];
})"""


@pytest.mark.parametrize("size", SIZES, ids=[f"{width}x{height}" for width, height in SIZES])
def test_no_edge_runs_behind_a_box(opened: Open, size: tuple[int, int]) -> None:
    tab = opened(size)
    for page in ("tensors", "kernels"):
        turn_to(tab, page)
        for at in range(min(2, steps(tab))):
            if tab.locator(".step-dot").count():
                tab.click(f".step-dot >> nth={at}")
            assert tab.evaluate(CROSSED) == [], (page, at)


def test_kernels_have_names_from_the_python(opened: Open, captured: Any) -> None:
    titles = [kernel.title for kernel in captured[1].trace.kernels]
    expected = {
        "softmax": ["x @ w", "+ b, softmax"],
        "attention": ["q @ k.transpose(1, 2)", "softmax of scores", "scores.softmax() @ v"],
        "convolution": ["conv2d of x and w, relu"],
        "gather": ["table[ids]"],
    }
    assert titles == expected.get(captured[0], titles)
    assert len(set(titles)) == len(titles)
    tab = opened(chapter="time")
    for shown in tab.locator(".time-card h3 span").all_inner_texts():
        assert any(title.startswith(shown.rstrip("…")) for title in titles)


def test_numbers_and_links_of_the_verdict_lead_to_the_workbench(opened: Open) -> None:
    for place, panel in ((".evidence >> nth=0", "timing"), (".verdict-card .link", "why")):
        tab = opened(chapter="time")
        tab.click(f".time-card >> nth=0 >> {place}")
        wait_until(
            tab, f"tinyexplore.handle.mode === 'workbench' && tinyexplore.handle.state.cursor.panel === '{panel}'"
        )
        tab.wait_for_selector(".low .verdict-card" if panel == "timing" else ".why-body .attempt")
