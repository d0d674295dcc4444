"""Large graphs in a real browser: a worker computes the layout, and the page stays responsive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.tasks import longest_task_ms
from tests.support.pages import wait_until
from tests.widgets.sample_traces import big_trace, page

pytestmark = pytest.mark.browser
NODES = 10_000

# a click by script: looking for words in a page of this size takes longer than what is measured
WATCHED_CLICK = """async ([text, until]) => {
  const watched = {frames: 0, notes: [], boxes: []};
  const note = document.querySelector('.working');
  const press = (words) => [...document.querySelectorAll('.status button')].find((one) => one.textContent === words).click();
  press(text);
  while (![...document.querySelectorAll('.status button')].some((one) => one.textContent === until)) {
    watched.notes.push(note.hidden ? '' : note.textContent);
    watched.boxes.push(document.querySelectorAll('.drawing .box').length);
    watched.frames += 1;
    await new Promise((done) => requestAnimationFrame(done));
  }
  await new Promise((done) => setTimeout(done, 300));
  return watched;
}"""


@pytest.fixture
def tab(browser: Any, tmp_path: Path) -> Iterator[Any]:
    found = opened(browser, tmp_path, page(big_trace(NODES)))
    errors: list[str] = []
    found.on("pageerror", lambda error: errors.append(str(error)))
    yield found
    found.close()
    assert errors == []


def opened(browser: Any, folder: Path, text: str) -> Any:
    path = folder / "large.html"
    path.write_text(text, encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached")
    tab.evaluate("tinyexplore.handle.go({stage: 1, step: 0, graph: 'uops', place: 'passes'})")
    return tab


def test_ten_thousand_boxes_are_laid_out_while_the_page_responds(browser: Any, tab: Any) -> None:
    watched: dict[str, Any] = {}

    def show_all() -> None:
        watched.update(tab.evaluate(WATCHED_CLICK, ["show all", "at most 400"]))

    assert longest_task_ms(browser, show_all) < 200
    assert {note for note in watched["notes"] if note} == {f"laying out {NODES + 1} boxes…stop"}
    assert watched["frames"] > 3
    assert set(watched["boxes"]) == {watched["boxes"][0]}, "the old drawing stays until the new one is there"
    assert "hidden" not in tab.inner_text(".graph .status")


def test_a_newer_graph_replaces_one_that_is_being_laid_out(tab: Any) -> None:
    tab.evaluate(
        "[...document.querySelectorAll('.status button')].find((one) => one.textContent === 'show all').click()"
    )
    assert "laying out" in tab.inner_text(".working")
    tab.evaluate("document.querySelector('.working button').click()")
    assert tab.is_hidden(".working")
    assert "400 of" in tab.inner_text(".graph .status")
    tab.wait_for_timeout(1500)  # as long as the layout would have taken
    assert "400 of" in tab.inner_text(".graph .status")


def test_without_a_worker_the_page_computes_the_layout(browser: Any, tmp_path: Path) -> None:
    policy = "<meta http-equiv='Content-Security-Policy' content=\"script-src 'unsafe-inline'; worker-src 'none'\">"
    tab = opened(browser, tmp_path, page(big_trace(3000)).replace("<head>", f"<head>{policy}"))
    try:
        for _ in range(2):  # the second time it is known
            tab.evaluate(WATCHED_CLICK, ["show all", "at most 400"])
            assert "hidden" not in tab.inner_text(".graph .status")
            assert tab.is_hidden(".working")
            tab.evaluate(WATCHED_CLICK, ["at most 400", "show all"])
    finally:
        tab.close()


WHERE = """() => {
  const {x, y, width} = document.querySelector('.drawing .box rect').getBoundingClientRect();
  return {x, y, width, moved: document.querySelector('.drawing').style.transform !== '', changes: window.changes};
}"""


def test_panning_and_zooming_move_a_picture_and_change_no_box(tab: Any) -> None:
    box = tab.query_selector(".graph .canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 40
    tab.mouse.click(x, y)  # from then on the wheel is the graph's
    tab.evaluate("""() => {
      window.changes = 0;
      const watch = new MutationObserver((list) => (window.changes += list.length));
      watch.observe(document.querySelector('.drawing .world'), {subtree: true, childList: true, attributes: true});
    }""")
    before = tab.evaluate(WHERE)
    tab.mouse.move(x, y)
    tab.mouse.down()
    for step in range(1, 11):
        tab.mouse.move(x - 6 * step, y - 3 * step)
    during = tab.evaluate(WHERE)
    assert (during["moved"], during["changes"]) == (True, before["changes"])
    tab.mouse.up()
    after = tab.evaluate(WHERE)
    assert not after["moved"]
    for at in (during, after):
        assert (at["x"] - before["x"], at["y"] - before["y"]) == pytest.approx((-60, -30), abs=0.6)

    tab.mouse.move(x, y)
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -100)
    tab.keyboard.up("Control")
    wait_until(tab, "document.querySelector('.drawing').style.transform !== ''")
    zooming = tab.evaluate(WHERE)
    wait_until(tab, "document.querySelector('.drawing').style.transform === ''")
    zoomed = tab.evaluate(WHERE)
    assert zooming["width"] == pytest.approx(after["width"] * 1.1735, rel=0.01)
    assert zoomed["width"] == pytest.approx(zooming["width"], rel=0.01)
    assert (zoomed["x"], zoomed["y"]) == pytest.approx((zooming["x"], zooming["y"]), abs=1)


def test_boxes_are_drawn_only_in_the_viewport(tab: Any) -> None:
    nodes = "[...document.querySelectorAll('.drawing .box')].map((one) => one.dataset.id)"
    first = set(tab.evaluate(nodes))
    box = tab.query_selector(".graph .canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for _ in range(8):
        tab.mouse.move(x + 250, y)
        tab.mouse.down()
        tab.mouse.move(x - 250, y, steps=5)
        tab.mouse.up()
    wait_until(tab, f"(first) => !({nodes}).some((one) => first.includes(one))", arg=sorted(first))
