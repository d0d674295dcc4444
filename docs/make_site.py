"""Build the site that the README links to: `make site`, or `python docs/make_site.py FOLDER`.

The site has a landing page, eight saved explorations and the playground. Every page is one file that works offline.
Any server of static files can serve the folder; a browser can also open `index.html` from a disk.
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tinyexplore import Tensor, explore, nn  # noqa: E402
from tinyexplore.explore.exports.live_pages.page import write_playground  # noqa: E402
from tinyexplore.explore.tracefile.texts import duration_text  # noqa: E402


@dataclass(frozen=True)
class Exploration:
    """One saved exploration.

    name: of its page, without ".html".
    title: the heading on the landing page and in the exploration.
    question: what a reader finds out, one sentence.
    program: a function that makes the inputs and returns the function to capture.
    options: of `explore`, such as `target`.
    """

    name: str
    title: str
    question: str
    program: Callable[[], Callable[[], object]]
    options: tuple[tuple[str, object], ...] = ()


def random(*shape: int) -> Tensor:
    """An input that exists before the capture."""
    return Tensor.rand(*shape).realize()


def softmax_of_product() -> Callable[[], object]:
    x, w, b = random(64, 48), random(48, 32), random(32)
    return lambda: (x @ w + b).softmax()


def matmul() -> Callable[[], object]:
    a, b = random(256, 256), random(256, 256)
    return lambda: a @ b


def layer_norm() -> Callable[[], object]:
    x, weight, bias = random(128, 256), random(256), random(256)
    return lambda: x.layernorm() * weight + bias


def attention() -> Callable[[], object]:
    q, k, v = (random(4, 64, 32) for _ in range(3))
    return lambda: q.scaled_dot_product_attention(k, v, is_causal=True)


def convolution() -> Callable[[], object]:
    image, layer = random(1, 3, 32, 32), nn.Conv2d(3, 16, 3, padding=1)
    Tensor.realize(*nn.state.get_parameters(layer))
    return lambda: layer(image).relu().max_pool2d()


def columns() -> Callable[[], object]:
    big = random(512, 512)
    return lambda: (big.sum(axis=1), big.sum(axis=0))


def training_step() -> Callable[[], object]:
    x, target = random(32, 64), Tensor([i % 10 for i in range(32)]).realize()
    first, second = nn.Linear(64, 32), nn.Linear(32, 10)
    parameters = [first.weight, first.bias, second.weight, second.bias]
    Tensor.realize(*parameters)
    optimizer = nn.optim.SGD(parameters, lr=0.1)

    def step() -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = second(first(x).relu()).sparse_categorical_crossentropy(target)
            loss.backward()
            optimizer.step()
            return loss.realize()

    return step


EXPLORATIONS = (
    Exploration(
        "softmax", "A matrix product and a softmax", "Why does this line become two kernels?", softmax_of_product
    ),
    Exploration("matmul", "A matrix product", "How do tiles, vectors and threads make it fast?", matmul),
    Exploration(
        "matmul_plain", "The same product without opts", "What does the naive loop nest cost?", matmul, (("noopt", 1),)
    ),
    Exploration("attention", "Causal attention", "How does a whole attention become one kernel?", attention),
    Exploration("layer_norm", "Layer norm", "How do two reductions and a scale share one kernel?", layer_norm),
    Exploration("convolution", "A convolution, ReLU and max pooling", "What is a convolution made of?", convolution),
    Exploration("sums", "Sums of rows and of columns", "Why does the direction of a sum matter?", columns),
    Exploration("training", "One training step of an MLP", "What do gradients and the optimizer add?", training_step),
)


@dataclass(frozen=True)
class Entry:
    """What the landing page says of a written exploration.

    exploration: the exploration.
    facts: number of kernels, and their time.
    """

    exploration: Exploration
    facts: str


def write_exploration(folder: Path, exploration: Exploration) -> Entry:
    """Capture one program and write its page."""
    Tensor.manual_seed(0)
    view = explore(exploration.program(), title=exploration.title, **dict(exploration.options))
    for kernel in view.kernels:
        if kernel.info.opts and kernel.info.same_as is None:
            kernel.opt_steps()  # the story's page of loops shows them
    view.to_html(folder / f"{exploration.name}.html")
    trace = view.trace
    medians = [run.median_us for run in trace.runs]
    kernels = f"{len(trace.kernels)} kernel{'s' * (len(trace.kernels) != 1)}"
    facts = f"{kernels}, {duration_text(sum(medians))}" if medians else kernels
    return Entry(exploration, facts)


def build(
    folder: Path, only: Collection[str] = (), *, playground: bool = True, pyodide: str | Path | None = None
) -> Path:
    """Write the site; return the landing page.

    Args:
        folder: where to write; it is made if it does not exist.
        only: names of the explorations to write. Empty: all of them.
        playground: whether to write the playground (9 MB).
        pyodide: the folder or package of Pyodide; None: see `find_pyodide`.

    Raises:
        ValueError: `only` has a name that no exploration has.
    """
    names = [one.name for one in EXPLORATIONS]
    if unknown := sorted(set(only) - set(names)):
        raise ValueError(f"no exploration is called {', '.join(unknown)}; there are {', '.join(names)}")
    folder.mkdir(parents=True, exist_ok=True)
    entries = [write_exploration(folder, one) for one in EXPLORATIONS if not only or one.name in only]
    if playground:
        write_playground(folder / "playground", pyodide=pyodide)
    page = folder / "index.html"
    page.write_text(landing_page(entries, playground=playground), encoding="utf-8")
    return page


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
.cards a, .play { display: block; height: 100%; padding: 16px 18px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); color: inherit; text-decoration: none }
.cards a:hover, .cards a:focus-visible, .play:hover, .play:focus-visible { border-color: var(--brand);
  outline: 2px solid var(--brand) }
strong { display: block; color: var(--brand) } small { color: var(--soft); font-size: 14px }
"""


def landing_page(entries: Sequence[Entry], *, playground: bool = True) -> str:
    """The landing page; it loads nothing, so that it works from a disk."""
    light, dark = (_data_url(HERE / "images" / f"story_{theme}.svg") for theme in ("light", "dark"))
    cards = "\n".join(
        f'<li><a href="{entry.exploration.name}.html"><strong>{escape(entry.exploration.title)}</strong>'
        f"{escape(entry.exploration.question)}<br><small>{escape(entry.facts)}</small></a></li>"
        for entry in entries
    )
    play = (
        '<h2>Write your own</h2>\n<a class="play" href="playground/index.html"><strong>Playground</strong>'
        "Type a program. The page runs it with the engine inside, and explores it. "
        "<small>9 MB, loads in some seconds</small></a>"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="referrer" content="no-referrer">
<title>tinyexplore</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>tinyexplore</h1>
<p>A tensor compiler that shows its work: the graph, the kernels, every rewrite, the source,
the machine code and the time.</p>
</header>
<main>
<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">
<img src="{light}" width="960" height="420"
alt="One line of Python, stage by stage: from Python to kernels, loops, code and time."></picture>
<h2>Saved explorations</h2>
<ul class="cards">
{cards}
</ul>
{play if playground else ""}
</main>
</body>
</html>
"""


def _data_url(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/site"), help="default: build/site")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="write these explorations only")
    parser.add_argument("--no-playground", action="store_true", help="leave the playground out")
    parser.add_argument("--pyodide", help="a folder with Pyodide, or the .tgz of `npm pack`")
    options = parser.parse_args(arguments)
    page = build(options.folder, options.only, playground=not options.no_playground, pyodide=options.pyodide)
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
