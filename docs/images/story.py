"""Draw the README's animated picture from a real trace: `python docs/images/story.py`.

The picture has one frame for each stage of the story. It is an SVG with CSS animation, so it needs no script, and a
browser shows it through `<img>`. `story_light.svg` and `story_dark.svg` differ in their colors only. A reader who
prefers reduced motion sees the frame of the kernels, without motion.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tinyexplore import Tensor, Trace, explore  # noqa: E402
from tinyexplore.explore.tracefile.figures import figures  # noqa: E402
from tinyexplore.explore.tracefile.model import Frame, Line, NestLine, Node  # noqa: E402
from tinyexplore.explore.tracefile.pictures.drawing import COLORS, MONO, SANS, kernel_color  # noqa: E402
from tinyexplore.explore.tracefile.pictures.layout import Box, layout  # noqa: E402
from tinyexplore.explore.tracefile.texts import duration_text  # noqa: E402

Theme = Literal["light", "dark"]

TARGET = "x86-64-v3,threads=2,l1=32K,l2=512K"  # the same kernels and code on every machine; it runs on most
STAGES = ("Python", "Tensors", "Kernels", "Loops", "Rewrites", "Code", "Time")
WIDTH, HEIGHT = 960, 420
SECONDS = 4  # that a frame is shown
LEFT, TOP, BOTTOM = 28, 118, 396  # of the area below the heading
INK = {
    "light": {"bg": "#ffffff", "card": "#f7f8fa", "line": "#dfe3e8", "ink": "#1b2330", "soft": "#5b6675"},
    "dark": {"bg": "#14181f", "card": "#1a2029", "line": "#303a47", "ink": "#e8edf3", "soft": "#a9b4c2"},
}
BRAND = {"light": "#0b63ce", "dark": "#6db1ff"}
CUT = {"light": "#c62828", "dark": "#ff8a80"}
PARTS = {"light": ("#b35c00", "#00785a", "#0b63ce"), "dark": ("#f0a04b", "#3fcfa4", "#6db1ff")}  # of the expression
AXES = {"thread": 0, "global": 0, "reduce": 1, "upcast": 2, "vector": 2, "unroll": 2}  # kind of a loop → its color


@dataclass(frozen=True)
class Story:
    """What the picture shows.

    trace: the program with the default schedule.
    plain: the same program without opts.
    """

    trace: Trace
    plain: Trace


def capture() -> Story:
    """Capture the README's line twice: with the default schedule and without opts."""
    Tensor.manual_seed(0)
    x, w, b = (Tensor.rand(*shape).realize() for shape in ((64, 48), (48, 32), (32,)))

    def classify() -> Tensor:
        return (x @ w + b).softmax()

    return Story(explore(classify, target=TARGET).trace, explore(classify, target=TARGET, noopt=1).trace)


class Picture:
    """Draws one theme. Every method `python` … `time` returns the elements of one frame."""

    def __init__(self, story: Story, theme: Theme) -> None:
        self.story, self.trace, self.theme = story, story.trace, theme
        self.ink, self.brand, self.cut = INK[theme], BRAND[theme], CUT[theme]
        self.lazy = {node.id: node for node in self.trace.nodes if node.kind == "lazybuffer"}
        self.positions = self._positions()

    def svg(self) -> str:
        """The whole file."""
        frames = [getattr(self, name.lower()) for name in STAGES]
        body = "".join(
            f'<g class="frame" style="--d:{i * SECONDS}s"><g>{self._strip(i)}{"".join(frame())}</g></g>\n'
            for i, frame in enumerate(frames)
        )
        about = "; ".join(f"{cell.title}: {cell.words}" for cell in figures(self.trace).parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'role="img" aria-label="One line of Python, stage by stage" font-family="{SANS}" '
            f'fill="{self.ink["ink"]}">\n'
            f"<title>One line of Python, stage by stage</title>\n<desc>{escape(about)}</desc>\n"
            f"<style>{self._style()}</style>\n"
            f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12" fill="{self.ink["bg"]}" '
            f'stroke="{self.ink["line"]}"/>\n{body}</svg>\n'
        )

    def _style(self) -> str:
        whole = SECONDS * len(STAGES)
        share = 100 / len(STAGES)
        calm = STAGES.index("Kernels") + 1
        return (
            ".frame,.late{animation-delay:var(--d)!important}"
            f".frame{{opacity:0;animation:show {whole}s linear infinite}}"
            f"@keyframes show{{0%{{opacity:0}}1%{{opacity:1}}{share - 0.6:.2f}%{{opacity:1}}{share:.2f}%{{opacity:0}}}}"
            f".late{{animation:late {whole}s linear infinite both}}"
            f"@keyframes late{{0%,{share / 6:.2f}%{{opacity:0}}{share / 4:.2f}%,100%{{opacity:1}}}}"
            ".mono{font-family:" + MONO + ";white-space:pre}"
            "@media(prefers-reduced-motion:reduce){.frame,.late{animation:none}"
            f".frame:nth-of-type({calm}){{opacity:1}}}}"
        )

    def _strip(self, current: int) -> str:
        """The names of the stages, and the sentence of the current one."""
        views = sum(node.group == "movement" for node in self.lazy.values())
        firings = sum(step.rule is not None for stage in self.trace.stages for step in stage.steps)
        (run_us, plain_us) = (sum(run.median_us for run in trace.runs) for trace in (self.trace, self.story.plain))
        sentences = (
            "One line of Python. Each call builds tensor operations; nothing is computed yet.",
            f"A graph of {len(self.lazy)} nodes, {views} of them views (not drawn). A matmul is a multiply and a sum.",
            f"The scheduler makes {len(self.trace.kernels)} kernels of it. It cuts where fusion would repeat work.",
            "Each opt splits a loop or changes its kind: threads, tiles, vectors.",
            f"Named rules rewrite the kernels: {firings} firings. Five of them:",
            "Every line of C and every instruction knows the operation that it computes.",
            f"The kernels take {duration_text(run_us)}; without opts they take {duration_text(plain_us)}.",
        )
        parts, x = [], float(LEFT)
        for i, name in enumerate(STAGES):
            width = len(name) * 8.2 + 26
            if i == current:
                parts.append(f'<rect x="{x:g}" y="22" width="{width:g}" height="28" rx="14" fill="{self.brand}"/>')
            fill = self.ink["bg"] if i == current else self.ink["soft"]
            weight = "600" if i == current else "400"
            parts.append(_text(x + width / 2, 41, name, 14, fill, anchor="middle", weight=weight))
            x += width + 12
        parts.append(_text(LEFT + 2, 88, sentences[current], 17, self.ink["ink"]))
        return "".join(parts)

    # *** one method a stage ***

    def python(self) -> Iterator[str]:
        """The line; below each sub-expression the operations that it built."""
        calls = {frame.id: frame for node in self.lazy.values() for frame in self._frames(node)}
        frames = sorted(calls.values(), key=_end)
        source = self.trace.sources[frames[0].source].text.splitlines()
        line = source[frames[0].line - 1]
        indent = len(line) - len(line.lstrip())
        char, y = 19.2, 190
        text = line.strip()
        left = LEFT + 40
        yield self._mono(left, y, text, 32)
        for i, frame in enumerate(frames):
            start = _end(frames[i - 1]) if i else _start(frame)
            start, stop = start - indent, _end(frame) - indent
            color = PARTS[self.theme][i % 3]
            x0, x1 = left + start * char, left + stop * char
            y1 = y + 16
            made = [node for node in self.lazy.values() if frame in self._frames(node)]
            names = [node.op.replace("REDUCE_AXIS", "REDUCE") for node in made if node.group not in ("buffer", "const")]
            yield f'<path d="M{x0 + 3:g} {y1}H{x1 - 3:g}" stroke="{color}" stroke-width="5" stroke-linecap="round"/>'
            row = y1 + 48 + (len(frames) - 1 - i) * 46  # the last part on top: no label is crossed by a line
            middle = (x0 + x1) / 2
            yield f'<g class="late"><path d="M{middle:g} {y1 + 6}V{row - 17}" stroke="{color}" stroke-width="1.5"/>'
            words = " ".join(names)
            yield self._mono(min(middle - 10, WIDTH - LEFT - len(words) * 8.5), row, words, 14, color) + "</g>"

    def tensors(self) -> Iterator[str]:
        """The graph, from left to right."""
        yield from self._graph()

    def kernels(self) -> Iterator[str]:
        """The same graph in its kernels; the edges between kernels are cut."""
        owner = self._owner()
        yield '<g class="late">'
        for kernel in self.trace.kernels:
            places = [self.positions[i] for i in self.positions if owner.get(i) == kernel.id]
            left, right = min(x for x, _ in places) - 44, max(x for x, _ in places) + 44
            top, bottom = min(y for _, y in places) - 40, max(y for _, y in places) + 32
            color = kernel_color(kernel.id)
            fill, stroke = (color.light_fill, color.light) if self.theme == "light" else (color.dark_fill, color.dark)
            yield (
                f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" rx="10" '
                f'fill="{fill}" stroke="{stroke}" stroke-opacity=".5"/>'
            )
            yield _text(left + 8, bottom + 18, f"kernel {kernel.id}", 13, stroke, weight="600")
        yield "</g>"
        yield from self._graph(cut=True)

    def loops(self) -> Iterator[str]:
        """The loop nest of kernel 0, before and after its opts."""
        before, after = self.story.plain.kernels[0], self.trace.kernels[0]
        yield _text(LEFT + 4, TOP + 6, "as scheduled", 13, self.ink["soft"])
        yield from self._nest(before.nest, LEFT + 4, TOP + 32)
        yield '<g class="late">'
        yield _text(LEFT + 360, TOP + 6, "  ".join(after.opts), 13, self.brand, mono=True)
        yield from self._nest(after.nest, LEFT + 360, TOP + 32)
        yield "</g>"

    def rewrites(self) -> Iterator[str]:
        """One firing of each of the first rules that change index arithmetic."""
        shown: dict[str, tuple[str, str]] = {}
        for stage in self.trace.stages:
            for step in stage.steps:
                if step.rule is None:
                    continue
                before, after = (self._expression(i) for i in (step.before, step.after))
                name = self.trace.rules[step.rule].name
                if before and after and before != after and max(len(before), len(after)) <= 34:
                    shown.setdefault(name, (before, after))
        for i, (name, (before, after)) in enumerate(list(shown.items())[:5]):
            y = TOP + 24 + i * 50
            yield _text(LEFT + 4, y, name, 15, self.brand, mono=True)
            yield self._mono(LEFT + 226, y, before, 15)
            yield f'<g class="late">{self._mono(LEFT + 552, y, "→  " + after, 15, PARTS[self.theme][1])}</g>'

    def code(self) -> Iterator[str]:
        """The innermost loop of kernel 0 in C and as instructions; what one accumulator needs is marked in both."""
        c, asm = (self._inner(language) for language in ("c", "asm"))
        fma = min(node for line in c for node in line.nodes if self._is_product(node))
        for lines, x, width in ((c, LEFT + 4, 490), (asm, LEFT + 520, 390)):
            step = min(20.0, (BOTTOM - TOP) / len(lines))
            for row, line in enumerate(lines):
                y = TOP + 6 + row * step
                if fma in line.nodes:
                    yield (
                        f'<rect class="late" x="{x - 6}" y="{y - step + 4:g}" width="{width}" height="{step:g}" '
                        f'fill="{self.brand}" fill-opacity=".22"/>'
                    )
                yield self._mono(x, y, line.text.strip(), 12.5)

    def time(self) -> Iterator[str]:
        """A bar for each kernel, without opts and with them: medians of the samples."""
        runs = [
            (kernel.id, label, run)
            for kernel in self.trace.kernels
            for label, trace in (("without opts", self.story.plain), ("with opts", self.trace))
            for run in trace.runs
            if run.kernel == kernel.id
        ]
        longest = max(run.median_us for _, _, run in runs)
        for i, (kernel, label, run) in enumerate(runs):
            y = TOP + 20 + i * 54 + 14 * kernel
            color = kernel_color(kernel)
            width = max(3.0, 560 * run.median_us / longest)
            yield _text(LEFT + 4, y + 17, f"kernel {kernel}", 15, self.ink["ink"], weight="600")
            yield _text(LEFT + 84, y + 17, label, 15, self.ink["soft"])
            fill = color.light if self.theme == "light" else color.dark
            faint = "1" if label == "with opts" else ".45"
            place = f'x="{LEFT + 200}" y="{y}" width="{width:.1f}" height="26" rx="4"'
            yield f'<g class="late"><rect {place} fill="{fill}" opacity="{faint}"/></g>'
            yield _text(LEFT + 212 + width, y + 18, duration_text(run.median_us), 15, self.ink["ink"])

    # *** parts of frames ***

    def _frames(self, node: Node) -> Sequence[Frame]:
        return [] if node.user is None or not node.calls else [self.trace.frames[node.user]]

    def _owner(self) -> dict[int, int]:
        return {i: kernel.id for kernel in self.trace.kernels for i in kernel.nodes}

    def _sources(self, node: Node) -> list[int]:
        """The nodes that a node reads, through views; without constants."""
        read = []
        for i in node.src:
            while self.lazy[i].group == "movement" and self.lazy[i].src:
                i = self.lazy[i].src[0]
            if self.lazy[i].group != "const":
                read.append(i)
        return list(dict.fromkeys(read))

    def _positions(self) -> dict[int, tuple[float, float]]:
        """Where each operation is drawn: the layout from top to bottom, turned to run from left to right."""
        shown = [node for node in self.lazy.values() if node.group not in ("movement", "const")]
        boxes = [Box(node.id, 40.0, 66.0) for node in shown]
        made = layout(boxes, [(src, node.id) for node in shown for src in self._sources(node)])
        across = {i: y for i, (_, y) in made.positions.items()}
        low, high = min(across.values()), max(across.values())
        columns = {i: LEFT + 38 + (across[i] - low) / (high - low) * (WIDTH - 2 * LEFT - 76) for i in across}
        rows = {i: x for i, (x, _) in made.positions.items()}
        top, bottom = min(rows.values()), max(rows.values())
        spread = min(1.7, 170 / max(1.0, bottom - top))
        return {i: (columns[i], 250 + (rows[i] - (top + bottom) / 2) * spread) for i in rows}

    def _graph(self, cut: bool = False) -> Iterator[str]:
        owner = self._owner()
        for i, (x, y) in self.positions.items():
            for src in self._sources(self.lazy[i]):
                x0, y0 = self.positions[src]
                start, stop = x0 + 34, x - 36
                crosses = cut and src in owner and owner[src] != owner.get(i)
                color = self.cut if crosses else self.ink["soft"]
                dashes = ' stroke-dasharray="5 4"' if crosses else ""
                bend = 0 if abs(stop - start) < 60 else (70 if y0 <= y else -70)
                yield (
                    f'<path d="M{start:.1f} {y0:.1f}C{start + 14:.1f} {y0 + bend:.1f} {stop - 14:.1f} {y + bend:.1f} '
                    f'{stop:.1f} {y:.1f}" fill="none" stroke="{color}" stroke-width="{2.5 if crosses else 1.3}"'
                    f"{dashes}/>"
                )
        for i, (x, y) in self.positions.items():
            node = self.lazy[i]
            color = COLORS.get(node.group, COLORS["alu"])
            fill, stroke = (color.light_fill, color.light) if self.theme == "light" else (color.dark_fill, color.dark)
            name = node.detail.split(" ")[0].replace("ADD", "SUM") if node.op == "REDUCE_AXIS" else node.op
            shape = "×".join(str(size) for size in node.shape)
            place = f'x="{x - 34:.1f}" y="{y - 19:.1f}" width="68" height="38" rx="7"'
            yield f'<rect {place} fill="{fill}" stroke="{stroke}"/>'
            yield _text(x, y - 2, name, 12, self.ink["ink"], anchor="middle", mono=True)
            yield _text(x, y + 12, shape, 9.5, self.ink["soft"], anchor="middle", mono=True)

    def _nest(self, nest: Sequence[NestLine], x: float, y: float) -> Iterator[str]:
        row = 0
        for line in nest:
            color = PARTS[self.theme][AXES[line.kind]] if line.kind in AXES else self.ink["ink"]
            words = line.text if line.axis is None else f"{line.text}  # {line.kind}"
            left, _, right = words.partition("]*")  # a long statement takes two rows
            for part in (f"{left}]", f"  * {right}") if right else (words,):
                yield self._mono(x + 14 * line.depth, y + row * 21, part, 13, color)
                row += 1

    def _inner(self, language: str) -> list[Line]:
        """The lines of kernel 0's innermost loop, from its head (or label) to its end (or jump)."""
        program = next(one for one in self.trace.programs if one.kernel == 0 and one.language == language)
        lines = program.lines
        products = [i for i, line in enumerate(lines) if any(self._is_product(node) for node in line.nodes)]
        in_loop = [i for i in products if not lines[i].text.startswith(("typedef", "static"))]
        is_head = (lambda text: text.startswith("for ")) if language == "c" else (lambda text: text.endswith(":"))
        is_end = (lambda text: text == "}") if language == "c" else (lambda text: text.startswith("j"))
        first = max(i for i in range(in_loop[0]) if is_head(lines[i].text.strip()))
        last = min(i for i in range(in_loop[-1], len(lines)) if is_end(lines[i].text.strip()))
        return list(lines[first : last + 1])

    def _is_product(self, node: int) -> bool:
        return self.trace.nodes[node].op == "MULACC"

    def _expression(self, i: int) -> str:
        """Index arithmetic as text; "" for a node that is none."""
        node = self.trace.nodes[i]
        if node.op == "CONST":
            return node.label if node.label != "CONST" else node.detail.split(" ")[0]
        if node.op == "RANGE":
            return node.detail.split(" ")[0] or node.label
        signs = {"ADD": " + ", "MUL": "*", "IDIV": "//", "MOD": "%"}
        if node.op not in signs:
            return ""
        parts = [self._expression(src) for src in node.src]
        if not all(parts):
            return ""
        if node.op != "ADD":
            parts = [f"({part})" if " + " in part else part for part in parts]
        return signs[node.op].join(parts)

    def _mono(self, x: float, y: float, words: str, size: float, color: str | None = None) -> str:
        return _text(x, y, words, size, color or self.ink["ink"], mono=True)


def _start(frame: Frame) -> int:
    return frame.span[1] if frame.span is not None else 0


def _end(frame: Frame) -> int:
    return frame.span[3] if frame.span is not None else 0


def _text(
    x: float, y: float, words: str, size: float, fill: str, *, anchor: str = "", weight: str = "", mono: bool = False
) -> str:
    """One line of text."""
    more = f' text-anchor="{anchor}"' if anchor else ""
    more += f' font-weight="{weight}"' if weight else ""
    more += ' class="mono" xml:space="preserve"' if mono else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{more}>{escape(words, quote=False)}</text>'


def main() -> None:
    story = capture()
    for theme in ("light", "dark"):
        (HERE / f"story_{theme}.svg").write_text(Picture(story, theme).svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
