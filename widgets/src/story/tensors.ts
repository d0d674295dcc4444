// Second page: the graph of operations, laid out in the direction that fills the canvas, and how a product is
// computed.

import { type Child, h, s } from "../dom";
import { count, groupDigits, truncate } from "../format";
import type { Store } from "../store";
import {
  type OpGroup,
  type OpGraph,
  type Product,
  groupByExpression,
  listComputing,
  buildOpGraph,
  productOf,
  groupSingly,
} from "./op_graph";
import { type Page, bold } from "./page";
import { type Placed, type Room, type Size, fitBoxes } from "./box_layout";
import { Scene, type SceneNode, type SceneState, makeLegend } from "./scene";

export const SIZES: readonly Size[] = [
  { w: 116, h: 88, gapX: 50, gapY: 24 },
  { w: 106, h: 84, gapX: 22, gapY: 14 },
  { w: 104, h: 46, gapX: 26, gapY: 14 },
  { w: 98, h: 42, gapX: 18, gapY: 9 },
];
const GROUP_SIZES: readonly Size[] = [
  { w: 168, h: 66, gapX: 40, gapY: 22 },
  { w: 140, h: 60, gapX: 26, gapY: 14 },
  { w: 118, h: 50, gapX: 20, gapY: 9 },
];
const HAS_GRID = 80; // boxes of this height show the shape as a grid too
const LABELLED = 84; // pixels between two boxes that leave room for the label of an edge
const MOST_LETTERS = 16; // of such a label
const LETTER = 6.9; // the width of a letter of a box, on the average

/** The content of the canvas: every operation, or whole expressions if there is no room. */
export interface Drawable {
  groups: OpGroup[];
  placed: Placed;
}

export function makeDrawable(graph: OpGraph, room: Room): Drawable {
  const each = groupSingly(graph);
  const placement = fitBoxes(sourcesOf(each), room, SIZES);
  if (placement !== null) return { groups: each, placed: placement };
  for (const most of [40, 0]) {
    const groups = groupByExpression(graph, most);
    const some = fitBoxes(sourcesOf(groups), room, GROUP_SIZES);
    if (some !== null) return { groups, placed: some };
  }
  const groups = groupByExpression(graph, 0);
  return {
    groups,
    placed: fitBoxes(sourcesOf(groups), { ...room, height: Number.POSITIVE_INFINITY }, GROUP_SIZES.slice(-1))!,
  };
}

function sourcesOf(groups: readonly OpGroup[]): number[][] {
  return groups.map(({ sources }) => sources.map(({ group }) => group));
}

/** Returns the boxes and lines of a drawable graph. `marked`: groups to highlight. */
export function stateOf({ groups, placed }: Drawable, marked: ReadonlySet<number> = new Set()): SceneState {
  const { size, centers } = placed;
  const letters = Math.floor((size.w - 10) / LETTER);
  const nodes = groups.map((group, i): SceneNode => {
    const dims = squeezeSizes(group.size);
    const hasGrid = size.h >= HAS_GRID;
    const grid = hasGrid && dims.length > 0 ? ([dims.at(-2) ?? 1, dims.at(-1)!] as const) : null;
    const isWhole = group.ops.length > 1 || size.h === 66 || size.h === 60 || size.h === 50;
    const lines = isWhole && group.code.startsWith("reads") && size.h >= 60 ? [group.sub, group.code] : [group.sub];
    return {
      id: `n${i}`,
      x: centers[i][0],
      y: centers[i][1],
      w: size.w,
      h: size.h,
      label: truncate(group.label, letters),
      sub: lines.map((line) => truncate(line, letters + 1)),
      cls: `${group.kind}${marked.has(i) ? " match" : ""}`,
      grid,
      title: `${group.label} · ${group.code} · ${group.sub}`,
    };
  });
  const edges = groups.flatMap(({ sources }, i) =>
    sources.map(({ group, view }) => {
      const isRoomy = size.gapX >= 44 && centers[i][0] - centers[group][0] - size.w >= LABELLED;
      const words = view.length <= MOST_LETTERS ? view : (view.split(", ").at(-1) ?? "");
      return {
        from: `n${group}`,
        to: `n${i}`,
        label: isRoomy ? truncate(words, MOST_LETTERS) : "",
        cls: view === "" ? "" : "view",
      };
    }),
  );
  return { nodes, edges };
}

/** Returns the numeric sizes, without axes of one element if there are many axes. */
export function squeezeSizes(size: readonly (number | string)[]): number[] {
  const numbers = size.map(Number).filter((value) => Number.isFinite(value));
  return numbers.length > 2 ? numbers.filter((size) => size !== 1) : numbers;
}

const LEGEND = [
  ["input", "input, already in memory"],
  ["alu", "arithmetic on each element"],
  ["reduce", "reduction: combines the elements along an axis"],
  ["way", "data"],
  ["way view", "a view: another way to index, no copy"],
] as const;

export class TensorsPage implements Page {
  readonly element = h("div", { class: "story-tensors" });
  readonly beat = 1700;
  private readonly graph: OpGraph;
  private readonly product: Product | null;
  private readonly scene = new Scene("Graph of the tensor operations");
  private readonly stage = h(
    "div",
    { class: "stage", tabindex: 0, role: "group", "aria-label": "Graph of the tensor operations" },
    this.scene.element,
  );
  private readonly below = h("div", { class: "below" });
  private drawn: Drawable | null = null;
  private step = 0;
  private readonly sizes = new ResizeObserver(() => this.layOut());

  constructor(store: Store) {
    this.graph = buildOpGraph(store.index);
    this.product = productOf(this.graph);
    this.element.append(this.stage, this.below);
    this.below.append(this.makeExplanation(), makeLegend(LEGEND));
    this.sizes.observe(this.stage);
  }

  get count(): number {
    return this.listSteps().length + 1;
  }

  private layOut(): void {
    const room = { width: this.stage.clientWidth, height: this.stage.clientHeight };
    if (room.width < 50) return;
    this.drawn = makeDrawable(this.graph, room);
    const low = Math.max(
      room.height,
      ...this.drawn.placed.centers.map(([, y]) => y + this.drawn!.placed.size.h / 2 + 4),
    );
    this.scene.resize(room.width, low);
    this.draw(0);
  }

  /** Returns the texts of the steps: the product's parts, else the operations in order. */
  private listSteps(): { text: [string, string]; ops: number[] }[] {
    const { product, graph } = this;
    if (product !== null) {
      const [a, b] = product.operands;
      const by = (view: string): string => (view === "" ? "unchanged" : view);
      const inputs = graph.ops[product.multiply].sources.map(({ op }) => op);
      return [
        {
          text: [`${a.label}: ${by(a.view)}.`, ` ${a.shape} → ${product.products}; a view copies nothing.`],
          ops: inputs.slice(0, 1),
        },
        { text: [`${b.label}: ${by(b.view)}.`, ` ${b.shape} → ${product.products}; no copy.`], ops: inputs.slice(-1) },
        { text: ["Multiply.", ` ${product.products} products; they are never stored.`], ops: [product.multiply] },
        {
          text: ["Sum.", ` ${groupDigits(product.each)} products become one element of ${product.result}.`],
          ops: [product.sum],
        },
      ];
    }
    const all = graph.ops.map((op, i) => ({ op, i })).filter(({ op }) => op.kind !== "input");
    return all.slice(-5).map(({ op, i }) => {
      const from = op.sources.map(({ op: source }) => graph.ops[source].label.replace(/^[^\w√]+ /, ""));
      const sources = from.length === 0 ? "" : ` of ${[...new Set(from)].join(", ")}`;
      return { text: [`${op.label}`, `${sources} → ${op.shape}`], ops: [i] };
    });
  }

  private makeExplanation(): HTMLElement {
    const rows = this.listSteps().map(({ text }) => h("li", {}, h("b", {}, text[0]), text[1]));
    const picture = this.product === null ? null : drawCube(this.product);
    return h("div", { class: "product-steps" }, picture, h("ol", {}, ...rows));
  }

  show(step: number, ms: number): void {
    this.step = step;
    this.below.querySelectorAll("ol > li").forEach((row, i) => {
      row.classList.toggle("on", i === step - 1);
      row.classList.toggle("done", i < step - 1);
    });
    this.below.querySelector(".cube")?.setAttribute("data-step", String(step));
    this.draw(ms);
  }

  private draw(ms: number): void {
    if (this.drawn === null) return;
    const ops = new Set(this.step === 0 ? [] : (this.listSteps()[this.step - 1]?.ops ?? []));
    const marked = new Set<number>();
    this.drawn.groups.forEach((group, i) => {
      if (group.ops.some((op) => ops.has(op))) marked.add(i);
    });
    this.scene.set(stateOf(this.drawn, marked), ms);
  }

  head(): Child[] {
    const { product, graph } = this;
    const inputs = graph.ops.filter(({ kind }) => kind === "input").length;
    const counted = [bold(count(listComputing(graph).length, "operation")), ` on ${count(inputs, "input")}. `];
    if (product !== null) {
      const name = product.isWindowed ? "A convolution is " : "A matrix product is ";
      const what = product.isWindowed ? "windows, a repeated multiply and a sum" : "a repeated multiply and a sum";
      return [...counted, name, bold(what), ". The repeats are views; they copy nothing."];
    }
    return [...counted, "Views change how memory is indexed; they copy nothing."];
  }

  caption(step: number): string {
    if (step === 0) {
      const folded = this.drawn !== null && this.drawn.groups.length < this.graph.ops.length;
      return folded ? "one box for each part of your Python" : "the whole graph";
    }
    return this.listSteps()[step - 1].text[0].replace(/\.$/, "");
  }

  destroy(): void {
    this.sizes.disconnect();
    this.scene.stop();
  }
}

/** Draws a product as a block: its two operands are faces, repeated through the block; the sum reduces its depth. */
function drawCube({ operands: [a, b], products }: Product): SVGElement {
  const [x, y, w, d] = [78, 40, 66, 44];
  const front = `M${x} ${y + 18}h${w}v64h${-w}z`;
  const top = `M${x} ${y + 18}l${d} -28h${w}l${-d} 28z`;
  const sideFace = `M${x + w} ${y + 18}l${d} -28v64l${-d} 28z`;
  const left = `M${x - 34} ${y + 18}l${d * 0.7} -20v64l${-d * 0.7} 20z`;
  const lid = `M${x + 6} ${y - 2}l${d} -28h${w}l${-d} 28z`;
  const slices = [0.25, 0.5, 0.75].map((t) => `M${x + d * t} ${y + 18 - 28 * t}h${w}v64`).join("");
  return s(
    "svg",
    {
      class: "cube",
      viewBox: "0 0 220 142",
      width: 220,
      height: 142,
      role: "img",
      "aria-label": `${a.label} times ${b.label}: ${products} products`,
    },
    s("path", { class: "face", d: top }),
    s("path", { class: "face", d: sideFace }),
    s("path", { class: "face", d: front }),
    s("path", { class: "slices", d: slices }),
    s("path", { class: "first", d: left }),
    s("path", { class: "second", d: lid }),
    s("path", { class: "sum", d: front }),
    s("text", { class: "strong", x: x - 26, y: y + 46, "text-anchor": "middle" }, truncate(a.label, 9)),
    s("text", { class: "strong", x: x + 62, y: y - 13, "text-anchor": "middle" }, truncate(b.label, 9)),
    s(
      "text",
      { class: "small mono", x: x + w / 2, y: y + 96, "text-anchor": "middle" },
      products.length > 22 ? "" : products,
    ),
  );
}
