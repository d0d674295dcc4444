"""The site of `make site`, and the README's animated picture."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.patience import milliseconds


def load(path: Path) -> ModuleType:
    """The module of a script outside the packages."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(repository: Path) -> ModuleType:
    return load(repository / "docs" / "make_site.py")


@pytest.fixture(scope="module")
def built(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The landing page of a site with two explorations."""
    return site.build(tmp_path_factory.mktemp("site"), ["softmax", "training"], playground=False)


def test_there_are_eight_explorations_with_pages_and_titles_of_their_own(site: ModuleType) -> None:
    assert len(site.EXPLORATIONS) == 8
    assert len({one.name for one in site.EXPLORATIONS}) == len({one.title for one in site.EXPLORATIONS}) == 8


def test_the_links_of_the_landing_page_lead_to_its_pages(built: Path) -> None:
    links = re.findall(r'href="([^"]+)"', built.read_text("utf-8"))
    assert links == ["softmax.html", "training.html"]
    assert [link for link in links if not (built.parent / link).is_file()] == []


def test_with_a_playground_there_is_a_link_to_it(site: ModuleType) -> None:
    assert re.findall(r'href="([^"]+)"', site.landing_page([], playground=True)) == ["playground/index.html"]


def test_an_unknown_exploration_is_an_error_before_anything_is_written(site: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="softmaxx"):
        site.build(tmp_path / "none", ["softmaxx"], playground=False)
    assert not (tmp_path / "none").exists()


@pytest.mark.browser
def test_a_card_leads_to_an_exploration_that_draws_itself(built: Path, browser: Any) -> None:
    context = browser.new_context(offline=True, viewport={"width": 400, "height": 800})
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(built.as_uri())
    page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".cards a").first.click()
    page.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(30))
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_has_a_frame_for_each_stage(repository: Path, theme: str) -> None:
    story = load(repository / "docs" / "images" / "story.py")
    made = ElementTree.fromstring(story.Picture(story.capture(), theme).svg())
    committed = ElementTree.parse(repository / "docs" / "images" / f"story_{theme}.svg").getroot()
    frames = [[one for one in root if one.get("class") == "frame"] for root in (made, committed)]
    assert [len(one) for one in frames] == [len(story.STAGES)] * 2
    assert all(len(list(frame.iter())) > 12 for frame in frames[0])
    style = next(one.text for one in made if one.tag.endswith("style"))
    assert style is not None and "prefers-reduced-motion" in style
    assert {one.tag.rpartition("}")[2] for one in made.iter()} <= {
        "svg",
        "title",
        "desc",
        "style",
        "g",
        "rect",
        "path",
        "text",
    }
