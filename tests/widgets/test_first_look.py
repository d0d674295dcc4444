"""Regression tests of faults that first users of the explorer found."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.panels import open_panel
from tests.widgets.sample_traces import sample_trace
from tests.widgets.test_browser import Open, meaning, open_page  # noqa: F401

pytestmark = pytest.mark.browser

TRACE = sample_trace()


@pytest.mark.parametrize("width", [960, 1010, 1130, 1280])
@pytest.mark.parametrize("place", ["lazy", "passes"])
def test_the_bar_of_the_graph_has_each_control_visible_or_in_a_menu(
    open_page: Open,  # noqa: F811
    width: int,
    place: str,
) -> None:
    tab = open_page(busy=False, width=width)
    tab.click(f"[data-place={place}]")
    bar = tab.query_selector(".graph > .bar").bounding_box()
    if tab.is_visible(".overflow"):
        tab.click(".overflow")
    tools = tab.query_selector_all(".graph .tools > *")
    assert len(tools) >= 3
    for control in [*tools, *tab.query_selector_all(".graph > .bar > button"), tab.query_selector(".graph .search")]:
        if control.is_visible():
            box = control.bounding_box()
            assert box["x"] >= bar["x"] and box["x"] + box["width"] <= bar["x"] + bar["width"] + 1, control.inner_text()
    assert all(control.is_visible() for control in tools)
    tools[-1].click()  # nothing lies over it


def test_words_of_the_glossary_do_not_break_with_a_notebooks_styles(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    tab.add_style_tag(
        content="body dt { float: left; width: 20%; padding: 0 4px } body dd { width: 78%; padding-left: 24px }"
    )
    open_panel(tab, "glossary")
    lines = tab.evaluate(
        "[...document.querySelectorAll('.glossary dt span')].map((word) => [word.textContent, word.getClientRects().length])"
    )
    assert len(lines) > 60
    assert [word for word, count in lines if count > 1 and len(word) < 14] == []


def test_opts_of_a_kernel_are_on_one_line(open_page: Open) -> None:  # noqa: F811
    first, *others = TRACE.kernels
    opts = ("VECTOR(1, 16)", "UPCAST(1, 2)", "UPCAST(0, 8)", "UNROLL(2, 4)")
    tab = open_page(replace(TRACE, kernels=(replace(first, opts=opts), *others)), busy=False, width=1010)
    open_panel(tab, "kernels")
    tops = tab.evaluate(
        "[...document.querySelectorAll('.kernels tr:first-child .chip')].map((e) => e.getBoundingClientRect().top)"
    )
    assert len(tops) == 4 and len(set(tops)) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_minimap_is_opaque(open_page: Open, scheme: str) -> None:  # noqa: F811
    tab = open_page(scheme=scheme)
    color = tab.evaluate("getComputedStyle(document.querySelector('.minimap')).backgroundColor")
    assert re.fullmatch(r"rgb\(.*\)", color)  # no alpha


def test_the_story_shows_only_options_set_by_the_user(open_page: Open) -> None:  # noqa: F811
    options = (("DEVICE", "LLVM"), ("NOOPT", "1"), ("BEAM", "0"), ("target", "PYTHON"))
    tab = open_page(replace(TRACE, options=options), busy=False, mode="story")
    shown = [chip.inner_text() for chip in tab.query_selector_all("header .chip") if chip.is_visible()]
    assert shown == ["NOOPT 1", "target PYTHON"]
    tab.keyboard.press("w")
    assert tab.locator("header .chip:visible").count() == 4


def test_a_device_names_its_compiler(open_page: Open) -> None:  # noqa: F811
    """A device chip explains its device: the name CLANG alone does not."""
    tab = open_page(replace(TRACE, options=(("DEVICE", "CLANG"),)), busy=False)
    (chip,) = tab.query_selector_all("header .chip")
    assert chip.inner_text().startswith("DEVICE CLANG CPU by clang") and meaning(
        "device", "CLANG"
    ) in chip.get_attribute("title")


def test_make_lab_prints_the_address_of_the_notebook(repository: Path) -> None:
    done = subprocess.run(["make", "--dry-run", "lab"], cwd=repository, capture_output=True, text=True, check=True)
    assert "default_url=/lab/tree/01_first_look.ipynb" in done.stdout


def test_elements_do_not_overlap_in_a_cell_of_half_a_screen(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, width=380, height=980)
    tab.locator(".is-tight").wait_for()
    over = tab.evaluate(
        """() => {
          const box = (one) => one.getBoundingClientRect();
          const [root, header] = [document.querySelector(".tinyexplore"), document.querySelector("header")].map(box);
          const line = box(document.querySelector("header .chips")); // it scrolls sideways
          const chips = [line, ...[...document.querySelectorAll("header .chip")].map(box)];
          const outside = chips.filter((chip) => chip.bottom > header.bottom + 1).length + (line.right > root.right + 1);
          const [tree, steps, rule] = [...document.querySelector(".stepper").children].map(box);
          const parts = [...document.querySelectorAll(".pipeline .part, .pipeline .scope")];
          const cut = parts.filter((part) => part.scrollWidth > part.clientWidth + 1).length;
          return { outside, cut, steps: steps.width, apart: tree.right <= steps.left + 1 && rule.top >= steps.bottom - 1 };
        }"""
    )
    assert over["outside"] == over["cut"] == 0
    assert over["apart"]
    assert over["steps"] > 180
