"""The tree of modules in a real browser, with the figures of Python."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.panels import panels_with_tabs
from tests.widgets.sample_traces import sample_trace
from tests.widgets.test_browser import Open, open_page, state  # noqa: F401
from tinyexplore import Tensor, explore, nn
from tinyexplore.explore import Explorer, Trace
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.modules import Module
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.nn.optim import SGD

pytestmark = pytest.mark.browser


class Block:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.second(self.first(x).relu())


class Model:
    def __init__(self) -> None:
        self.blocks = [Block() for _ in range(3)]
        self.head = nn.Linear(8, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(x.sequential(self.blocks))


@pytest.fixture(scope="module")
def trace() -> Trace:
    model = Model()
    optimizer = SGD(nn.state.get_parameters(model), lr=0.1)
    x = Tensor.rand(4, 8).realize()

    def step() -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

    return explore(step, repeat=2).trace


ROWS = "[...document.querySelectorAll('[data-module]')].map((row) => [row.dataset.module, row.querySelector('.track').title])"


def told(module: Module) -> str:
    backward = f", of which {duration_text(module.backward_us)} for gradients" if module.backward_us else ""
    return (
        f"{module.name}, {module.kind}: {duration_text(module.time_us)}{backward}, "
        f"{count_text(len(module.nodes), 'LazyBuffer')}, {count_text(len(module.kernels), 'kernel')}"
    )


def at(tree: Module, key: str) -> Module:
    for place in key.split(".")[1:]:
        tree = tree.children[int(place)]
    return tree


def test_a_model_opens_by_module_with_the_figures_of_python(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    assert state(tab)["cursor"]["panel"] == "modules"
    rows = dict(tab.evaluate(ROWS))
    assert 3 < len(rows) < sum(1 for _ in trace.modules().walk())  # inner ones are closed
    while (closed := tab.query_selector("[data-module][aria-expanded=false] .disclosure")) is not None:
        closed.click()
    rows = {key: words for key, words in tab.evaluate(ROWS) if not words.startswith("(own operations)")}
    assert len(rows) == sum(1 for _ in trace.modules().walk())
    assert {key: told(at(trace.modules(), key)) for key in rows} == rows
    assert any("for gradients" in words for words in rows.values())


def test_a_click_selects_and_a_double_click_isolates(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    key, module = next(
        (key, found)
        for key, found in ((key, at(trace.modules(), key)) for key, _ in tab.evaluate(ROWS))
        if found.name == "head"
    )
    tab.click(f"[data-module='{key}'] .name b")
    assert state(tab)["selected"] == list(module.nodes)
    assert tab.get_attribute("[data-module][aria-selected=true]", "data-module") == key
    tab.dblclick(f"[data-module='{key}'] .name b")
    assert "outside the dependency cone" in tab.inner_text(".status")
    assert tab.get_attribute(".hops [aria-pressed=true]", "title") == "At most 1 edge away"
    kernel = module.kernels[0]
    tab.click(f"[data-module='{key}'] .kernel-chips .k-{kernel}")
    assert state(tab)["cursor"]["kernel"] == kernel
    assert set(state(tab)["selected"]) == {*trace.kernels[kernel].nodes, *trace.kernels[kernel].roots}
    node = next(node.id for node in trace.nodes if node.scope is not None and trace.scopes[node.scope].name == "head")
    tab.evaluate(f"tinyexplore.handle.select([{node}])")
    assert key in tab.evaluate("[...document.querySelectorAll('.module-row.lit')].map((row) => row.dataset.module)")


def test_the_tree_works_by_keyboard(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    focused = "document.activeElement.dataset.module"
    tab.focus("[data-module='0']")
    for key, there in (
        ("ArrowDown", "0.0"),
        ("ArrowDown", "0.0.0"),
        ("ArrowRight", "0.0.0"),
        ("ArrowRight", "0.0.0.0"),
    ):
        tab.keyboard.press(key)
        assert tab.evaluate(focused) == there
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate(focused) == "0.0.0"
    tab.keyboard.press("ArrowLeft")
    assert tab.get_attribute("[data-module='0.0.0']", "aria-expanded") == "false"
    tab.keyboard.press("Enter")
    assert state(tab)["selected"] == list(at(trace.modules(), "0.0.0").nodes)


def test_a_trace_without_modules_has_no_tab_of_modules(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    assert state(tab)["cursor"]["panel"] == "rewrites"
    assert "modules" not in panels_with_tabs(tab)
    tab.evaluate("tinyexplore.handle.go({panel: 'modules'})")  # a link leads there
    assert "an object that holds Tensors" in tab.inner_text(".modules")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 1280])
def test_pictures_of_the_modules(open_page: Open, trace: Trace, screenshots: Path, scheme: str, width: int) -> None:  # noqa: F811
    tab = open_page(trace, busy=False, scheme=scheme, width=width, height=1000)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.module-row')].filter((row) => row.scrollWidth > row.clientWidth + 1).length"
    assert tab.evaluate(cut) == 0
    tab.screenshot(path=screenshots / f"modules_{scheme}_{width}.png")


def test_the_modules_view_is_a_separate_widget_with_a_picture(trace: Trace) -> None:
    view = Explorer(trace)
    assert view.panels.modules.view == "modules" and view.panels.modules is view.panels.modules
    words = " ".join(ElementTree.fromstring(view.panels.modules.svg()).itertext())
    assert all(f"{module.name}" in words for _, module in trace.modules().walk())
    assert "no modules" in Explorer(sample_trace()).panels.modules.svg()
