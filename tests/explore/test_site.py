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
    return site.build(
        tmp_path_factory.mktemp("site"), ["softmax", "training"], playground=False, documentation=False, notebooks=False
    )


def test_there_are_sixteen_explorations_that_need_no_other_framework(site: ModuleType) -> None:
    explorations = site.EXPLORATIONS
    assert len([one for one in explorations if not one.needs]) >= 16
    for field in ("name", "title", "question", "first"):
        assert len({getattr(one, field) for one in explorations} - {""}) >= len(explorations) - 1


def test_the_links_of_the_landing_page_lead_to_its_pages(built: Path) -> None:
    links = re.findall(r'(?:href|src)="([^"]+)"', built.read_text("utf-8"))
    local = [link.partition("#")[0] for link in links if not link.startswith("data:")]
    assert [link for link in local if link.endswith(".html")] == ["gallery/softmax.html", "gallery/training.html"]
    assert [link for link in local if not (built.parent / link).is_file()] == []


def test_the_landing_page_links_the_playground_and_the_documentation(site: ModuleType) -> None:
    links = re.findall(r'href="([^"]+)"', site.landing_page([]))
    assert {"playground/index.html", "docs/index.html#the-course", "docs/reference.html"} <= set(links)


@pytest.fixture(scope="module")
def sources(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Markdown from which MkDocs makes the documentation."""
    folder = tmp_path_factory.mktemp("sources")
    site.write_documents(folder)
    course = site.write_course(folder)
    site.write_tables(folder)
    (folder / "index.md").write_text(site.home_page(course), encoding="utf-8")
    return folder


def test_links_between_pages_of_the_documentation_lead_somewhere(sources: Path) -> None:
    """What MkDocs checks in strict mode, without MkDocs; it also checks anchors."""
    lost = []
    for page in sources.rglob("*.md"):
        text = re.sub(r"^( *)```.*?^\1```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if (
                "://" not in link
                and not (page.parent / link).exists()
                and not link.startswith(("images", "performance"))
            ):
                lost.append(f"{page.relative_to(sources)}: {link}")
    assert [one for one in lost if ".svg" not in one and ".png" not in one] == []


def test_lessons_link_explorations_that_exist_for_everybody(site: ModuleType, sources: Path) -> None:
    names = {one.name for one in site.EXPLORATIONS if not one.needs}
    links = {}
    for page in (sources / "course").glob("*.md"):
        links |= dict.fromkeys(re.findall(r'href="\.\./\.\./gallery/(\w+)\.html', page.read_text("utf-8")), page.name)
    assert len(links) >= 15
    assert set(links) <= names


def test_every_page_of_the_navigation_exists(site: ModuleType, sources: Path, repository: Path) -> None:
    settings = (repository / "docs" / "site" / "mkdocs.yml").read_text("utf-8")
    pages = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", settings, re.MULTILINE)
    assert len(pages) > 30
    assert [page for page in pages if not (sources / page).is_file()] == []


def test_tables_of_the_reference_have_every_opt_rule_and_setting(site: ModuleType, sources: Path) -> None:
    from tinyexplore.kernel.opts import OPT_KINDS
    from tinyexplore.uop.algebra import SIMPLIFY
    from tinyexplore.util.config import Config

    opts, rules, settings = (
        (sources / "generated" / f"{name}.md").read_text() for name in ("opts", "rules", "settings")
    )
    assert re.findall(r"^## (\w+)$", opts, re.MULTILINE) == [op.name for op in OPT_KINDS]
    assert [rule.name for rule in SIMPLIFY.rules if f"`{rule.name}`" not in rules] == []
    assert [name for name in Config.__dataclass_fields__ if f"| `{name}` |" not in settings] == []


def test_every_public_name_is_in_the_reference(sources: Path) -> None:
    import tinyexplore
    from docs.site.tables import public_names
    from tinyexplore import explore, nn
    from tinyexplore.nn import optim, state

    pages = "\n".join(page.read_text("utf-8") for page in (sources / "generated").glob("*.md"))
    headings = set(re.findall(r"^##? (\w+)$", pages, re.MULTILINE))
    names = {name for module in (tinyexplore, explore, nn, optim, state) for name, _ in public_names(module)}
    assert len(names) > 80
    assert sorted(names - headings) == []


def test_a_lesson_is_a_page_with_its_pictures_and_outputs(sources: Path) -> None:
    page = (sources / "course" / "01_first_look.md").read_text("utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\((pictures/\S+\.svg)\)", page)
    assert len(pictures) >= 2
    assert [one for one in pictures if not (sources / "course" / one).read_text().startswith("<svg")] == []
    assert '<details markdown="1">' in page and "](02_tensors_are_lazy.md)" in page


def test_an_unknown_exploration_is_an_error_before_anything_is_written(site: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="softmaxx"):
        site.build(tmp_path / "none", ["softmaxx"], playground=False, documentation=False, notebooks=False)
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
