"""Boxes keep their positions from step to step, in a real browser, in every pass of the golden traces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.machines import MACHINES, opened
from tests.golden.programs import PROGRAMS
from tests.widgets.test_browser import Open
from tests.widgets.test_browser import open_page as open_page  # the fixture
from tinyexplore.explore import capture

FAR = 40  # units of the drawing
MIN_STEPS = 20  # steps: in a shorter pass one that rearranges everything is more than a twentieth

# each firing of each pass in order: how many there are, and after how many of them a box that was there is elsewhere
WALK = """([most, far]) => {
  const places = () => new Map([...document.querySelectorAll('.boxes .box')].map((box) => {
    const [x, y] = box.style.transform.match(/-?[\\d.]+/g).map(Number);
    return [box.dataset.id, [x, y]];
  }));
  const found = [];
  for (const [id, name, firings] of most) {
    let steps = 0, moved = 0, before = null;
    for (const step of [0, ...firings]) {
      tinyexplore.handle.go({stage: id, step, graph: 'uops', place: 'passes'});
      const now = places();
      if (before !== null) {
        steps += 1;
        const isFar = ([box, [x, y]]) => before.has(box) && Math.hypot(x - before.get(box)[0], y - before.get(box)[1]) > far;
        moved += [...now].some(isFar);
      }
      before = now;
    }
    found.push([name, steps, moved]);
  }
  return found;
}"""


@pytest.mark.browser
@pytest.mark.parametrize("program", ["softmax", "argmax", "matmul", "sum of rows"])
def test_unchanged_boxes_keep_their_position_in_nineteen_of_twenty_steps(open_page: Open, program: str) -> None:
    with opened(MACHINES[1]):
        with capture(title=program) as session:
            PROGRAMS[program]()
        trace = session.trace  # while there is such a machine
    passes = [
        (stage.id, stage.name, [k for k, step in enumerate(stage.steps, 1) if step.rule is not None][:60])
        for stage in trace.stages
        if any(step.rule is not None for step in stage.steps)
    ]
    tab: Any = open_page(trace, busy=False)
    found = tab.evaluate(WALK, [passes, FAR])
    steps, moved = sum(row[1] for row in found), sum(row[2] for row in found)
    assert steps > 30
    assert moved <= max(1, steps / 20), found
    assert all(moved <= steps / 20 for _, steps, moved in found if steps >= MIN_STEPS), found
