"""The sources of the documentation site: documents and notebooks as Markdown with links that work there.

A document keeps its path below `docs/`. A notebook becomes a page of the folder `course`. Links between them are
rewritten. A link to a file that the site does not have, such as a module of the package, becomes its text.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS, NOTEBOOKS = ROOT / "docs", ROOT / "notebooks"
COURSE = Path("course")

# lessons, and the exploration of the gallery that shows what they are about
VIEWS = {
    "01_first_look": "softmax.html",
    "03_views_and_strides": "convolution.html#story=tensors",
    "04_what_is_fused": "fusion.html#panel=fusion",
    "05_a_kernel_is_a_loop_nest": "layer_norm.html#story=loops",
    "06_rewriting": "softmax.html#story=rewrites",
    "07_caches_and_roofline": "sums.html",
    "08_vectors_and_registers": "matmul.html#story=loops",
    "09_fast_matmul": "tuner.html#panel=tuner",
    "11_verdicts": "verdict.html#panel=timing",
    "12_searching": "beam.html#stage=2&panel=rewrites",
    "14_gpu_kernels": "gpu.html",
    "15_tensor_cores": "tensor_cores.html",
    "16_autodiff_as_rewriting": "training.html#story=kernels",
    "18_dtypes_and_numerics": "nan.html#panel=debugger",
    "19_jit_and_symbolic_shapes": "any_length.html",
    "20_several_devices": "devices.html",
    "21_write_a_rule": "rules.html#panel=rules",
    "28_flash_attention": "attention.html",
}

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2`*\s*?$", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r'<img[^>]*src="data:image/svg\+xml;base64,([^"]+)"')


def documents() -> list[Path]:
    """All documents, by path below `docs/`; what machines wrote in folders of measurements is left out."""
    return sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md") if "wide" not in path.parts)


def notebooks() -> list[Path]:
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def place_of(file: Path) -> Path | None:
    """Returns the place of a file of the repository in the site, or None."""
    if file.suffix == ".ipynb" and file.parent == NOTEBOOKS:
        return COURSE / f"{file.stem}.md"
    if file == ROOT / "README.md":
        return Path("index.md")
    if file.is_relative_to(DOCS) and file.relative_to(DOCS) in documents():
        below = file.relative_to(DOCS)
        return below.with_name("index.md") if below.name == "README.md" else below
    return None


def with_links(text: str, file: Path, page: Path) -> str:
    """`text` of `file` with links as they must be on `page`, a path below the site's sources."""

    def rewritten(match: re.Match[str]) -> str:
        label, link = match.groups()
        if "://" in link or link.startswith(("#", "mailto:")):
            return match.group(0)
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve()
        place = place_of(target / "README.md" if target.is_dir() else target)
        if place is None:
            return label
        relative = os.path.relpath(place, page.parent)
        return f"[{label}]({relative}{'#' * bool(anchor)}{anchor})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(rewritten, text[end : fence.start()]), fence.group(0)]
        end = fence.end()
    return "".join([*parts, LINK.sub(rewritten, text[end:])])


def write_documents(folder: Path) -> None:
    """Every document, at its place in `folder`."""
    for name in documents():
        place = place_of(DOCS / name)
        assert place is not None
        page = folder / place
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(with_links((DOCS / name).read_text("utf-8"), DOCS / name, place), encoding="utf-8")


def write_course(folder: Path) -> list[tuple[str, Path]]:
    """Every notebook as a page. Returns their titles and paths below `folder`."""
    (folder / COURSE / "pictures").mkdir(parents=True, exist_ok=True)
    pages = []
    for notebook in notebooks():
        place = COURSE / f"{notebook.stem}.md"
        parts = list(notebook_parts(notebook, folder))
        text = with_links("\n\n".join(parts), notebook, place)
        (folder / place).write_text(text + "\n", encoding="utf-8")
        pages.append((title_of(notebook), place))
    return pages


def title_of(notebook: Path) -> str:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")


def notebook_parts(notebook: Path, folder: Path) -> Iterator[str]:
    """The cells of a notebook as Markdown; pictures become files of `folder`."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield text.replace("<details>", '<details markdown="1">')
            if number == 0:
                yield f"*This page is the notebook `notebooks/{notebook.name}`. `make lab` opens it.*"
                if (view := VIEWS.get(notebook.stem)) is not None:
                    yield f'<a class="md-button" href="../../gallery/{view}">Open an interactive view</a>'
            continue
        yield f"```python\n{text}\n```"
        for place, output in enumerate(cell["outputs"]):
            yield from output_parts(output, folder, f"{notebook.stem}_{number}_{place}")


def output_parts(output: dict[str, Any], folder: Path, name: str) -> Iterator[str]:
    """One output: text, a picture, or a page of its own in a frame."""
    data = output.get("data", {})
    html, svg = ("".join(data.get(kind, "")) for kind in ("text/html", "image/svg+xml"))
    if (picture := PICTURE.search(html)) is not None:
        svg = base64.b64decode(picture.group(1)).decode("utf-8")
    if svg:
        (folder / COURSE / "pictures" / f"{name}.svg").write_text(svg, encoding="utf-8")
        yield f"![A static picture of the view](pictures/{name}.svg){{ .view }}"
    elif html:
        (folder / COURSE / "pictures" / f"{name}.html").write_text(framed(html), encoding="utf-8")
        yield f'<iframe class="output" loading="lazy" title="Output of the cell" src="pictures/{name}.html"></iframe>'
    elif text := "".join(output.get("text", "") or data.get("text/plain", "")).rstrip():
        yield '``` { .text .output title="output" }\n' + text.replace("```", "'''") + "\n```"


def framed(html: str) -> str:
    """An output as a page of its own."""
    if "<html" in html:
        return html
    style = ":root{color-scheme:light dark}body{margin:8px;font:14px/1.5 system-ui,sans-serif}"
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Output</title><style>{style}</style>{html}'
