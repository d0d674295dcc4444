"""Build the site that the README links to: `make site`, or `python docs/make_site.py FOLDER`.

The site has a landing page with the gallery, the playground, the first lessons as notebooks that run in the browser,
and the documentation: the course, recipes, reference, explanations and a search that works offline. Any server of
static files can serve the folder. A browser can also open `index.html` from a disk, all but the notebooks. MkDocs
writes the documentation in strict mode: a broken link or anchor is an error. `python -m tests.support.site_check`
checks the whole site in a browser without a network.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from docs.site.gallery import EXPLORATIONS, Exploration  # noqa: E402
from docs.site.lite import write_lite  # noqa: E402
from docs.site.sources import write_course, write_documents  # noqa: E402
from docs.site.tables import write_tables  # noqa: E402
from tinyexplore.explore.exports.engine_pages.page import write_playground  # noqa: E402
from tinyexplore.explore.tracefile.pictures.table_pictures import stage_text_svg  # noqa: E402
from tinyexplore.explore.tracefile.texts import duration_text  # noqa: E402


@dataclass(frozen=True)
class Entry:
    """What the landing page says of a written exploration.

    exploration: the exploration.
    facts: number of kernels, and their time.
    is_text: whether its static picture begins at the left edge, as a text does.
    """

    exploration: Exploration
    facts: str
    is_text: bool


def write_exploration(folder: Path, exploration: Exploration) -> Entry:
    """Capture one program; write its page and its static picture."""
    view = exploration.explore()
    view.to_html(folder / f"{exploration.name}.html", iterations=exploration.iterations)
    trace = view.trace
    texts = trace.stage_texts if exploration.dump else ()
    picture = stage_text_svg(trace, texts[0].stage) if texts else trace.svg()
    (folder / f"{exploration.name}.svg").write_text(picture, encoding="utf-8")
    medians = [run.median_us for run in trace.runs]
    kernels = f"{len(trace.kernels)} kernel{'s' * (len(trace.kernels) != 1)}"
    facts = f"{kernels}, {duration_text(sum(medians))}" if medians else kernels
    if trace.dialect is not None:
        facts = f"{trace.dialect.compiler} {trace.dialect.version}, {len(trace.stages)} stages"
    view.close()
    return Entry(exploration, facts, bool(exploration.dump))


def build(
    folder: Path,
    only: Collection[str] = (),
    *,
    playground: bool = True,
    documentation: bool = True,
    notebooks: bool = True,
    pyodide: str | Path | None = None,
) -> Path:
    """Write the site; return the landing page.

    Args:
        folder: where to write; it is made if it does not exist.
        only: names of the explorations to write. Empty: all whose packages are installed.
        playground: whether to write the playground (10 MB).
        documentation: whether to write the documentation, which needs MkDocs (the extra `site`).
        notebooks: whether to write the first lessons as notebooks in the browser (45 MB), which needs JupyterLite (the
            extra `site`).
        pyodide: the folder or package of Pyodide; None: see `find_pyodide`.

    Raises:
        ValueError: `only` has a name that no exploration has.
        subprocess.CalledProcessError: MkDocs found a broken link or anchor, or JupyterLite could not be built; the
            command has printed why.
    """
    names = [one.name for one in EXPLORATIONS]
    if unknown := sorted(set(only) - set(names)):
        raise ValueError(f"no exploration is called {', '.join(unknown)}; there are {', '.join(names)}")
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    entries, left_out = [], []
    for one in EXPLORATIONS:
        if only and one.name not in only:
            continue
        if one.missing:
            left_out.append(f"{one.title} (needs {', '.join(one.missing)})")
            print(f"left out: {left_out[-1]}")
            continue
        entries.append(write_exploration(folder / "gallery", one))
    if documentation:
        write_documentation(folder)
    if playground:
        write_playground(folder / "playground", pyodide=pyodide)
    if notebooks and find_spec("jupyterlite_core") is None:
        print("left out: notebooks in the browser. They need the extra `site`")
        notebooks = False
    if notebooks:
        write_lite(folder / "notebooks", folder.parent / f"{folder.name}-sources" / "lite", pyodide)
    page = folder / "index.html"
    text = landing_page(
        entries, playground=playground, documentation=documentation, notebooks=notebooks, left_out=left_out
    )
    page.write_text(text, encoding="utf-8")
    return page


def write_documentation(folder: Path) -> None:
    """The documentation in `folder/docs`, by MkDocs."""
    sources = folder.parent / f"{folder.name}-sources" / "docs"
    shutil.rmtree(sources, ignore_errors=True)
    pages = sources / "pages"
    pages.mkdir(parents=True)
    write_documents(pages)
    course = write_course(pages)
    write_tables(pages)
    shutil.copytree(HERE / "images", pages / "images", ignore=shutil.ignore_patterns("*.py"))
    shutil.copytree(
        HERE / "performance", pages / "performance", ignore=shutil.ignore_patterns("*.md"), dirs_exist_ok=True
    )
    (pages / "index.md").write_text(home_page(course), encoding="utf-8")
    for name in ("style.css", "iframe-worker.js"):
        shutil.copy(HERE / "site" / name, pages / name)
    lessons = "".join(f"      - {title!r}: {place.as_posix()}\n" for title, place in course)
    settings = (HERE / "site" / "mkdocs.yml").read_text("utf-8").replace("      - COURSE\n", lessons)
    (sources / "mkdocs.yml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(sources / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement for its successor
    subprocess.run([*command, "--site-dir", str((folder / "docs").resolve())], check=True, env=environment)
    (folder / "docs" / "404.html").unlink(missing_ok=True)  # its links are those of a site at the root of a server


def home_page(course: Sequence[tuple[str, Path]]) -> str:
    """The first page of the documentation: its four parts, and the course."""
    lessons = "\n".join(f"- [{title}]({place.as_posix()})" for title, place in course)
    return f"""# tinyexplore

A tensor compiler that shows its work. This documentation has four parts:

| part | answers |
|---|---|
| [Course](#the-course) | I want to learn it from the beginning. |
| [How-to](explorer/index.md) | I want to do one thing: capture, ask why, tune, debug, compare, add something. |
| [Reference](reference.md) | What does this operation, opt, rule, setting or function mean? |
| [Explanation](architecture.md) | How is it built, and why so? |

Press `/` to search. The search works without a network.

## The course

{lessons}
"""


STYLE = """
:root { color-scheme: light dark;
  --bg: #fff; --card: #f7f8fa; --line: #dfe3e8; --ink: #1b2330; --soft: #5b6675; --brand: #0b63ce }
@media (prefers-color-scheme: dark) {
  :root { --bg: #14181f; --card: #1a2029; --line: #303a47; --ink: #e8edf3; --soft: #a9b4c2; --brand: #6db1ff }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 32px 20px 56px; max-width: 1040px; background: var(--bg); color: var(--ink);
  font: 16px/1.5 Inter, system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
h1 { margin: 0; font-size: 30px } h2 { margin: 36px 0 12px; font-size: 20px } p { max-width: 70ch; margin: 8px 0 0 }
a { color: var(--brand) }
picture img { width: 100%; height: auto; margin: 24px 0 4px }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); gap: 14px;
  padding: 0; margin: 0; list-style: none }
.shot { display: block; height: 170px; overflow: hidden; border-radius: 6px; margin: 0 0 10px;
  border: 1px solid var(--line) }
.shot img { display: block; width: 210%; max-width: none; margin: -46px 0 0 -55% }
.shot.text img { width: 135%; margin: 0 }
.cards em { display: block; margin-top: 6px; font-style: normal; font-size: 14px }
.parts { display: flex; flex-wrap: wrap; gap: 8px 20px; margin: 14px 0 0; padding: 0; list-style: none }
pre { padding: 12px 14px; border: 1px solid var(--line); border-radius: 8px; background: var(--card); overflow-x: auto }
.cards a, .play { display: block; height: 100%; padding: 16px 18px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); color: inherit; text-decoration: none }
.cards a:hover, .cards a:focus-visible, .play:hover, .play:focus-visible { border-color: var(--brand);
  outline: 2px solid var(--brand) }
strong { display: block; color: var(--brand) } small { color: var(--soft); font-size: 14px }
"""


PLAYGROUND = (
    '<a class="play" href="playground/index.html"><strong>Playground</strong>'
    "Type a program. The page runs it with the engine inside, and explores it, also without a network. "
    "<small>10 MB, loads in some seconds</small></a>"
)
IN_THE_BROWSER = (
    '<a class="play" href="notebooks/lab/index.html?path=01_first_look.ipynb"><strong>Notebooks</strong>'
    "Lessons 1 to 6 in JupyterLab, with Python and the engine in the browser, also without a network. "
    "<small>25 MB, loads in 20 seconds, and needs a server: python -m http.server -d build/site</small></a>"
)

PARTS = (
    ("The course", "docs/index.html#the-course"),
    ("How-to", "docs/explorer/index.html"),
    ("Reference", "docs/reference.html"),
    ("Explanation", "docs/architecture.html"),
    ("Glossary", "docs/glossary.html"),
    ("Compared with others", "docs/compared.html"),
)


def landing_page(
    entries: Sequence[Entry],
    *,
    playground: bool = True,
    documentation: bool = True,
    notebooks: bool = True,
    left_out: Sequence[str] = (),
) -> str:
    """The landing page; it loads nothing from elsewhere, so that it works from a disk."""
    light, dark = (_data_url(HERE / "images" / f"story_{theme}.svg") for theme in ("light", "dark"))
    tries = [PLAYGROUND] * playground + [IN_THE_BROWSER] * notebooks
    note = f"<p><small>Left out of this copy: {escape('; '.join(left_out))}.</small></p>" if left_out else ""
    links = "".join(f'<li><a href="{link}">{title}</a></li>' for title, link in PARTS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'; img-src data: file: 'self'">
<meta name="referrer" content="no-referrer">
<title>tinyexplore</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>tinyexplore</h1>
<p>A tensor compiler that shows its work: the graph, the kernels, every rewrite, the source,
the machine code and the time.</p>
{f'<ul class="parts">{links}</ul>' if documentation else ""}
</header>
<main>
<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">
<img src="{light}" width="960" height="420"
alt="One line of Python, stage by stage: from Python to kernels, loops, code and time."></picture>
{f'<h2>Try it now</h2>{chr(10)}<div class="cards">{"".join(tries)}</div>' if tries else ""}
<h2>Install it</h2>
<pre>make lab     # an environment, and JupyterLab on the course
make test    # the whole suite</pre>
<h2>Gallery</h2>
<ul class="cards">
{chr(10).join(map(_card, entries))}
</ul>
{note}
</main>
</body>
</html>
"""


def _card(entry: Entry) -> str:
    one = entry.exploration
    return (
        f'<li><a href="gallery/{one.name}.html{one.place}">'
        f'<span class="shot{" text" * entry.is_text}"><img src="gallery/{one.name}.svg" alt="" loading="lazy"></span>'
        f"<strong>{escape(one.title)}</strong>{escape(one.question)} <small>{escape(entry.facts)}</small>"
        f"<em>{escape(one.first)}</em></a></li>"
    )


def _data_url(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/site"), help="default: build/site")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="write these explorations only")
    parser.add_argument("--no-playground", action="store_true", help="leave the playground out")
    parser.add_argument("--no-docs", action="store_true", help="leave the documentation out")
    parser.add_argument("--no-notebooks", action="store_true", help="leave the notebooks in the browser out")
    parser.add_argument("--pyodide", help="a folder with Pyodide, or the .tgz of `npm pack`")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    page = build(
        options.folder,
        options.only,
        playground=not options.no_playground,
        documentation=not options.no_docs,
        notebooks=not options.no_notebooks,
        pyodide=options.pyodide,
    )
    print(f"wrote {page} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
