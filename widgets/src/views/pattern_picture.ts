// A rule's pattern beside the graph of the node that it was compared with; matching parts share a color.

import type { PatternPart } from "../request_channel";
import { h, s } from "../dom";
import { truncate } from "../format";
import { KERNEL_HUES } from "../kernel_labels";
import { edgePath } from "../layout";
import { arrangeGraph } from "../layout_unit";

const LETTER = 6.8; // pixels
const LONGEST = 26; // characters of a box
const HIGH = 24;
const EDGE = 6; // pixels around the drawing

interface Drawn {
  id: number;
  text: string;
  title: string;
  /** The node of the trace, if known. */
  at: number | null;
  className: string;
  width: number;
  height: number;
}

/** `select`: called with a node of the trace after a click on its box. */
export function drawPattern(parts: readonly PatternPart[], select: (node: number) => void): HTMLElement {
  const colors = colorsOf(parts);
  const looks = parts.map(({ state }, i) =>
    state === "matched" ? `by-kernel k-${colors[i]}` : state === "differs" ? "differs" : "unreached",
  );
  const wants = parts.map(({ expected }, i) => drawBox(i, expected, null, looks[i]));
  const nodes = parts.flatMap(({ actual, at, state }, i) =>
    state === "not reached" ? [] : [drawBox(i, actual, at, looks[i])],
  );
  return h(
    "div",
    { class: "pattern-picture" },
    makeSide("the rule's pattern", drawTree(wants, parts, select)),
    makeSide("the node", drawTree(nodes, parts, select)),
    h("p", { class: "faint" }, "One color: a part and the node that it matches. Dashed: where the match stopped."),
  );
}

/** Returns a color for each node; parts that match the same node share it. */
function colorsOf(parts: readonly PatternPart[]): number[] {
  const colors = new Map<string, number>();
  return parts.map(({ path, at }) => {
    const key = at === null ? path.join() : `node ${at}`;
    if (!colors.has(key)) colors.set(key, colors.size % KERNEL_HUES);
    return colors.get(key)!;
  });
}

function drawBox(id: number, words: string, at: number | null, className: string): Drawn {
  const text = truncate(words, LONGEST);
  return {
    id,
    text,
    title: words,
    at,
    className,
    width: Math.max(34, text.length * LETTER + 14),
    height: HIGH,
  };
}

function makeSide(title: string, picture: SVGElement): HTMLElement {
  return h("figure", {}, h("figcaption", {}, title), picture);
}

/** Draws sources above the node that reads them, as in the graph. */
function drawTree(boxes: readonly Drawn[], parts: readonly PatternPart[], select: (node: number) => void): SVGElement {
  const there = new Set(boxes.map(({ id }) => id));
  const placeOf = new Map(parts.map(({ place }, i) => [place.join(), i]));
  const edges = parts.flatMap(({ place }, src) => {
    const dst = placeOf.get(place.slice(0, -1).join());
    return place.length === 0 || dst === undefined || !there.has(src) || !there.has(dst) ? [] : [{ src, dst }];
  });
  const { positions, edges: routed, left, top, width, height } = arrangeGraph({ nodes: boxes, edges });
  const box = ({ id, text, title, at, className, width: wide }: Drawn): SVGElement => {
    const { x, y } = positions.get(id)!;
    const choose = at === null ? null : (): void => select(at);
    return s(
      "g",
      {
        class: `box part ${className}`,
        "data-part": id,
        "data-node": at,
        onclick: choose,
        transform: `translate(${x} ${y})`,
      },
      s("title", {}, title),
      s("rect", { x: -wide / 2, y: -HIGH / 2, width: wide, height: HIGH, rx: 4 }),
      s("text", { y: 4 }, text),
    );
  };
  const [wide, high] = [width + 2 * EDGE, height + 2 * EDGE];
  return s(
    "svg",
    {
      class: "pattern",
      width: wide,
      height: high,
      viewBox: `${left - EDGE} ${top - EDGE} ${wide} ${high}`,
      role: "img",
      "aria-label": boxes.map(({ title }) => title).join(", "),
    },
    ...routed.map(({ points }) => s("path", { class: "edge", d: edgePath(points) })),
    ...boxes.map(box),
  );
}
