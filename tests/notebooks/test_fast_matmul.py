"""The tuning lesson in a real JupyterLab: a reader tunes by clicking, and Python responds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.lab import LabPage
from tests.support.patience import milliseconds

NOTEBOOK = "09_fast_matmul.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_clicks_make_the_product_many_times_faster(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    tuner = lab.page.locator(".tinyexplore:has(.tuner-nest)").first
    tuner.wait_for(timeout=milliseconds(30))
    tuner.scroll_into_view_if_needed()
    tuner.locator(".tuner-bar button", has_text="No opts").click()
    assert lab.await_python("view.kernels[0].branch.kernels[0].opts", "()") == "()"
    lanes = lab.python("vectors.kernels[0].opts[0]").strip("'")
    for opts in ([lanes], [lanes, "UPCAST(1, 2)"], [lanes, "UPCAST(1, 2)", "UPCAST(0, 4)"]):
        tuner.locator(f'[data-opt="{opts[-1]}"]').click()
        expected = f"({', '.join(map(repr, opts))}{',' if len(opts) == 1 else ''})"
        assert lab.await_python("view.kernels[0].branch.kernels[0].opts", expected, timeout_s=30) == expected
        tuner.locator(".tuner-row[aria-selected=true]", has_text=opts[-1]).wait_for(timeout=milliseconds(30))
    assert (
        lab.python("plain.kernels[0].median_us / view.kernels[0].branch.kernels[0].median_us > 1.25 * lanes") == "True"
    )
    assert "as captured" in tuner.locator(".tuner-bar").inner_text()
    lab.page.screenshot(path=screenshots / "tune_by_hand.png")
    tuner.locator(".tuner-bar button", has_text="Undo").click()
    assert lab.await_python("len(view.kernels[0].branch.kernels[0].opts)", "2") == "2"
    lab.use_theme("JupyterLab Dark")
    lab.page.screenshot(path=screenshots / "tune_by_hand_dark.png")
    lab.use_theme("JupyterLab Light")
    assert lab.foreign_requests == []


def test_misses_decrease_and_throughput_increases(lab: LabPage, screenshots: Path) -> None:
    tuner = lab.page.locator(".tinyexplore:has(.tuner-nest)").first
    roof, dots = lab.page.evaluate(
        "() => { const figure = document.querySelector('.tuner-dots'); return ["
        "[...figure.querySelectorAll('.roof title')].map((one) => one.textContent),"
        "[...figure.querySelectorAll('.dot')].map("
        "(one) => [Number(one.dataset.branch), Number(one.getAttribute('cy'))])]; }"
    )
    assert roof[0].startswith("float32 arithmetic: ") and len(roof) >= 2
    heights = dict(dots)
    plain = int(lab.python("plain.id"))
    assert heights[plain] == max(heights.values()), "the loops as written are lowest: a larger y"
    panel = lab.page.locator(".tinyexplore .caches").first
    panel.locator(".pairs:not(.lines)").wait_for(timeout=milliseconds(60))
    panel.scroll_into_view_if_needed()
    opts = lab.python("' '.join(view.kernels[0].branch.kernels[0].opts)").strip("'")
    panel.locator("h5", has_text=opts).wait_for(timeout=milliseconds(60))
    before, after = (panel.locator(".pairs:not(.lines) .traffic").nth(side).inner_text() for side in (0, 1))
    assert f"{int(lab.python('view.kernels[0].caches(opts=[]).total.accesses')):,}" in before
    assert "÷" in after
    lab.page.screenshot(path=screenshots / "misses_vanish.png")
    tuner.scroll_into_view_if_needed()
    tuner.locator(".tuner-bar button", has_text="Undo").click()
    fewer = lab.await_python(
        "' '.join(view.kernels[0].branch.kernels[0].opts)", repr(opts.rpartition(" UPCAST")[0])
    ).strip("'")
    panel.locator("h5", has_text=fewer).wait_for(timeout=milliseconds(60))


SLOWLY = """
import time
def tried(self, *candidate, quickly=type(view.whatif)._add_candidate):
    time.sleep(0.2)
    return quickly(self, *candidate)
type(view.whatif)._add_candidate = tried
"""


def test_a_background_search_can_be_cancelled(lab: LabPage) -> None:
    lab.python(f"exec({SLOWLY!r})")  # on a fast machine it would be done before the next cell runs
    tuner = lab.page.locator(".tinyexplore:has(.tuner-nest)").first
    before = int(lab.python("len(view.kernels[0].branches)"))
    tuner.locator(".tuner-bar button", has_text="BEAM 2").click()
    lab.page.wait_for_function(
        "() => document.querySelector('.tuner-status progress') !== null", timeout=milliseconds(60)
    )
    assert lab.await_python(f"len(view.kernels[0].branches) > {before}", "True", timeout_s=60) == "True"
    cell = "(sum(number * number for number in range(100_000)), view.whatif._searching is not None)"
    assert lab.python(cell) == "(333328333350000, True)"  # another cell is carried out, and the search goes on
    tuner.locator(".tuner-status button", has_text="Cancel").click()
    reason = "'cancelled after' in view.kernels[0].branches[-1].reason"
    assert lab.await_python(reason, "True", timeout_s=60) == "True"
    tuner.locator(".tuner-error", has_text="cancelled after").wait_for(timeout=milliseconds(30))


def test_edited_c_shows_errors_at_the_line_and_a_crash_ends_only_the_worker(lab: LabPage) -> None:
    tuner = lab.page.locator(".tinyexplore:has(.tuner-nest)").first
    tuner.scroll_into_view_if_needed()
    tuner.locator(".tuner-bar button", has_text="No opts").click()
    assert lab.await_python("view.kernels[0].branch.kernels[0].opts", "()") == "()"
    tuner.locator('.tuner-code [role="tab"]', has_text="C").first.click()
    tuner.locator(".tuner-code button", has_text="edit").click()
    area = tuner.locator(".edit-area")
    area.wait_for(timeout=milliseconds(30))
    lines = area.input_value().splitlines()
    name = lab.python("view.kernels[0].branch.kernels[0].name").strip("'")
    number = next(number for number, line in enumerate(lines, 1) if line.startswith(f"void {name}("))
    before = lab.python("view.kernels[0].branch.id")

    def run(wrong: str) -> None:
        area.fill("\n".join([*lines[:number], f"  {wrong}", *lines[number:]]) + "\n")
        lab.page.keyboard.press("Control+Enter")

    run("floaty wrong;")
    message = tuner.locator(".edit-message", has_text="floaty")
    message.wait_for(timeout=milliseconds(60))
    assert message.inner_text().startswith(f"line {number + 1}:3 · ")
    assert tuner.locator(".edit-gutter .bad").inner_text() == str(number + 1)
    run("*(volatile int *)16 = 1;")
    tuner.locator(".edit-bad", has_text="SIGSEGV").wait_for(timeout=milliseconds(60))
    assert lab.python("view.kernels[0].branch.id") == before, (
        "the kernel of the notebook lives, and so does its reader's place"
    )
    run("// by hand")
    tuner.locator(".edit-good").wait_for(timeout=milliseconds(60))
    assert lab.await_python("view.kernels[0].branch.edited.verdict", "'same bits'") == "'same bits'"
    assert (
        lab.python(
            "view.kernels[0].branch.kernels[0].median_us > 0 and len(view.kernels[0].branch.edited.before_us) > 0"
        )
        == "True"
    )
    assert re.search(r"\nbefore .* → ", tuner.locator(".edit-says").inner_text())
    tuner.locator(".tuner-code button", has_text="edit").click()
    tuner.locator(".tuner-code-line.new", has_text="// by hand").wait_for(timeout=milliseconds(30))
    assert lab.errors == []
