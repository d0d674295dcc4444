// The elements of the drawn graph: boxes, edges, and frames around kernels. Few boxes are SVG groups; of many, only
// visible ones are created; at a distance, each color is one path.

import { isTensor } from "../dialect";
import { prefersReducedMotion, s } from "../dom";
import type { Flow } from "../layout_direction";
import type { GraphFrame } from "../frame_layout";
import { type Layout, edgePath } from "../layout";
import type { DrawnBox, DrawnGraph } from "../visible_graph";
import type { Store } from "../store";
import { type Rectangle, isWithin, overlaps } from "./camera";

export const CULL_ABOVE = 250; // boxes; up to this number, all have elements
const FAR = 0.32; // zoom below which boxes have no text
const NOWHERE: Rectangle = [0, 0, 0, 0];
const EVERYWHERE: Rectangle = [-Infinity, -Infinity, Infinity, Infinity];
// operations whose sources need no number
const COMMUTATIVE = new Set(["ADD", "MUL", "MAX", "AND", "OR", "XOR", "CMPNE", "CMPEQ"]);
let views = 0;

/** Callbacks for the appearance of a box. */
export interface DrawingStyle {
  boxClass: (box: DrawnBox) => string;
  tooltip: (box: DrawnBox) => string;
  /** Returns the word at the corner of a box. */
  badge: (box: DrawnBox) => string;
  through: (nodes: number[]) => string;
  /** Returns the mark of an edge, if any. */
  markEdge: (edge: DrawnGraph["edges"][number], points: readonly [number, number][], flow: Flow) => SVGElement | null;
  frame: (frame: GraphFrame) => [SVGElement, SVGElement];
}

export class Drawing {
  readonly svg: SVGSVGElement;
  readonly world = s("g", { class: "world" });
  readonly elements = new Map<number, SVGGElement>();
  private readonly far = s("g", { class: "far" });
  private readonly frames = s("g", { class: "frames" });
  private readonly edges = s("g", { class: "edges" });
  private readonly headings = s("g", { class: "headings" });
  private readonly boxes = s("g", { class: "boxes" });
  private readonly arrow = `tinyexplore-arrow-${++views}`; // a page may contain several views
  private drawn: DrawnGraph = NOTHING;
  private placed: Layout = { positions: new Map(), width: 0, height: 0, left: 0, top: 0, edges: [] };
  private byId = new Map<number, DrawnBox>();
  private classes = new Map<number, string>();
  private pathsByClass: [string, string][] = []; // the classes of boxes, each with one path of all its boxes
  private byEdge = new Map<string, DrawnGraph["edges"][number]>();
  private readonly appearanceOf = new Map<number, string>(); // the appearance and position of each element
  private lines = new Map<string, { says: string; elements: SVGElement[] }>(); // the elements of an edge, and its text
  private builtArea: Rectangle = NOWHERE; // the area in which all elements exist
  private isFar = false;
  private flow: Flow = "down";

  constructor(
    private readonly store: Store,
    private readonly looks: DrawingStyle,
  ) {
    this.svg = s(
      "svg",
      { class: "drawing", role: "img", "aria-label": "Graph of nodes" },
      makeArrowHeads(this.arrow),
      this.world,
    );
    this.world.append(this.frames, this.far, this.edges, this.headings, this.boxes);
  }

  /** Draws another graph, or the same one elsewhere; common boxes keep their elements. */
  build(
    drawn: DrawnGraph,
    placed: Layout,
    frames: readonly GraphFrame[],
    zoom: number,
    visibleArea: Rectangle,
    flow: Flow,
  ): void {
    [this.drawn, this.placed, this.flow] = [drawn, placed, flow];
    this.byId = new Map(drawn.boxes.map((box) => [box.id, box]));
    this.classes = new Map(drawn.boxes.map((box) => [box.id, this.looks.boxClass(box)]));
    this.pathsByClass = this.listPaths();
    this.byEdge = new Map(drawn.edges.map((edge) => [`${edge.src} ${edge.dst}`, edge]));
    this.keepElements(new Set(this.byId.keys()));
    this.far.replaceChildren();
    const elements = frames.map((frame) => this.looks.frame(frame));
    this.frames.replaceChildren(...elements.map(([behind]) => behind));
    this.headings.replaceChildren(...elements.map(([, heading]) => heading));
    this.builtArea = NOWHERE;
    this.show(zoom, visibleArea, visibleArea, true);
  }

  private keepElements(ids: Set<number>): void {
    for (const [id, element] of this.elements) {
      if (ids.has(id)) continue;
      element.remove();
      this.elements.delete(id);
      this.appearanceOf.delete(id);
    }
  }

  /** Creates the elements in `visibleArea` and `ahead` of it, and removes the rest; false if all exist already. */
  show(zoom: number, visibleArea: Rectangle, ahead: Rectangle, isNew = false): boolean {
    const isLarge = this.drawn.boxes.length > CULL_ABOVE;
    const isFar = zoom < FAR && isLarge;
    if (isFar === this.isFar && !isNew && (isFar || isWithin(visibleArea, this.builtArea))) return false;
    this.isFar = isFar;
    this.svg.classList.toggle("is-far", isFar);
    if (isFar) {
      this.keepElements(new Set());
      this.keepLines(new Map());
      this.builtArea = NOWHERE;
      if (this.far.childElementCount === 0) this.far.append(...this.drawFarPaths());
      return true;
    }
    this.far.replaceChildren();
    this.builtArea = isLarge ? ahead : EVERYWHERE;
    const visibleBoxes = this.drawn.boxes.filter((box) => !isLarge || overlaps(ahead, this.frameOf(box)));
    this.keepElements(new Set(visibleBoxes.map((box) => box.id)));
    for (const box of visibleBoxes) if (isNew || !this.elements.has(box.id)) this.placeBox(box, isNew);
    const lines = new Map<string, Layout["edges"][number]>();
    for (const edge of this.placed.edges) {
      if (!isLarge || edge.points.some(([x, y]) => overlaps(ahead, [x, y, x, y])))
        lines.set(`${edge.src} ${edge.dst}`, edge);
    }
    this.keepLines(lines);
    for (const [key, edge] of lines) if (isNew || !this.lines.has(key)) this.placeLine(key, edge);
    return true;
  }

  private keepLines(lines: ReadonlyMap<string, unknown>): void {
    for (const [key, { elements }] of this.lines) {
      if (lines.has(key)) continue;
      for (const element of elements) element.remove();
      this.lines.delete(key);
    }
  }

  frameOf(box: DrawnBox): Rectangle {
    const { x, y } = this.placed.positions.get(box.id)!;
    return [x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2];
  }

  private placeBox(box: DrawnBox, enters: boolean): void {
    const { x, y } = this.placed.positions.get(box.id)!;
    let element = this.elements.get(box.id);
    const fresh = element === undefined;
    if (element === undefined) {
      element = s("g", { "data-id": box.id });
      this.elements.set(box.id, element);
      this.boxes.append(element);
    }
    const badge = this.looks.badge(box);
    const key = `${badge} ${box.node} ${box.label} ${box.detail} ${box.hidden} ${box.members.length}`;
    if (element.dataset.key !== key) {
      element.dataset.key = key;
      element.dataset.node = String(box.node);
      const [left, top] = [-box.width / 2, -box.height / 2];
      const two = box.detail !== "";
      const behind = { class: "box-shadow", x: left + 3, y: top - 3, width: box.width, height: box.height, rx: 6 };
      element.replaceChildren(
        ...(box.members.length > 1 ? [s("rect", behind)] : []),
        s("title", {}, this.looks.tooltip(box)),
        s("rect", { x: left, y: top, width: box.width, height: box.height, rx: 6 }),
        s("text", { class: "label", y: two ? -4 : 4 }, box.label),
      );
      if (two) element.append(s("text", { class: "detail", y: 12 }, box.detail));
      if (badge !== "") element.append(s("text", { class: "badge", x: left + 2, y: top - 3 }, badge));
      if (box.hidden > 0)
        element.append(s("text", { class: "more", x: box.width / 2 + 3, y: top + 8 }, `+${box.hidden}`));
    }
    const cls = this.classes.get(box.id)!;
    const transform = `translate(${x.toFixed(1)}px,${y.toFixed(1)}px)`;
    const appearance = `${cls} ${transform}`;
    if (this.appearanceOf.get(box.id) === appearance) return; // writing the same value again would invalidate the browser's layout
    this.appearanceOf.set(box.id, appearance);
    element.setAttribute("class", cls);
    element.style.transform = transform;
    if (fresh && enters && !prefersReducedMotion()) element.classList.add("enter");
  }

  /** Draws an edge, unless it exists with the same text. */
  private placeLine(key: string, edge: Layout["edges"][number]): void {
    const { operands, through } = this.byEdge.get(key) ?? { operands: [], through: [] };
    const d = edgePath(edge.points, this.flow);
    const user = this.byId.get(edge.dst)!;
    const node = this.store.index.node(user.node);
    const { op, src } = node;
    // several operations, not one with several lanes
    const isMany = isTensor(this.store.index.trace, node) && user.members.length > 1;
    const sources = this.drawn.boxes.length > CULL_ABOVE || COMMUTATIVE.has(op) || isMany ? 0 : src.length;
    const isNumbered = sources >= 2 && edge.points.length > 0 && (user.members.length === 1 || operands.length <= 2);
    const number = isNumbered ? operandText(operands) : "";
    const says = [d, edge.long, through, number].join(" ");
    const existing = this.lines.get(key);
    if (existing?.says === says) return;
    for (const element of existing?.elements ?? []) element.remove();
    const elements: SVGElement[] = [
      s("path", {
        d,
        class: `edge${edge.long ? " long" : ""}${through.length > 0 ? " through-views" : ""}`,
        "data-src": edge.src,
        "data-dst": edge.dst,
        "marker-end": `url(#${this.arrow})`,
      }),
    ];
    // a wider invisible line as pointer target
    if (through.length > 0)
      elements.push(s("path", { class: "edge-target", d }, s("title", {}, this.looks.through(through))));
    const drawn = this.byEdge.get(key);
    const mark =
      drawn === undefined || edge.points.length === 0 ? null : this.looks.markEdge(drawn, edge.points, this.flow);
    if (mark !== null) elements.push(mark);
    if (number !== "") {
      const [x, y] = edge.points[edge.points.length - 1];
      const from = edge.points[edge.points.length - 2] ?? [x, y];
      const place =
        this.flow === "down"
          ? { x: x + (from[0] > x ? 7 : -7), y: y - 7 }
          : { x: x - 10, y: y + (from[1] > y ? 14 : -5) };
      elements.push(s("text", { class: "operand", ...place }, number));
    }
    this.lines.set(key, { says, elements });
    this.edges.append(...elements);
  }

  /** Returns the boxes as one path per color, for a minimap or at a distance. */
  boxPaths(): SVGElement[] {
    return this.pathsByClass.map(([cls, d]) => s("g", { class: cls }, s("path", { class: "far-boxes", d })));
  }

  private listPaths(): [string, string][] {
    const paths = new Map<string, string[]>();
    for (const box of this.drawn.boxes) {
      const { x, y } = this.placed.positions.get(box.id)!;
      const [left, top] = [Math.round(x - box.width / 2), Math.round(y - box.height / 2)];
      const cls = this.classes.get(box.id)!;
      const text = `M${left} ${top}h${box.width}v${box.height}h${-box.width}z`;
      const same = paths.get(cls);
      if (same === undefined) paths.set(cls, [text]);
      else same.push(text);
    }
    return [...paths].map(([cls, parts]) => [cls, parts.join("")]);
  }

  private drawFarPaths(): SVGElement[] {
    const lines = this.placed.edges.map(({ points }) => {
      const [a, b] = [points[0], points[points.length - 1]];
      return `M${a[0].toFixed(0)} ${a[1].toFixed(0)}L${b[0].toFixed(0)} ${b[1].toFixed(0)}`;
    });
    return [s("path", { class: "far-edges", d: lines.join("") }), ...this.boxPaths()];
  }

  /** Highlights the selection, related nodes, the hover and search hits (null: no search). */
  mark(hits: Set<number> | null): void {
    const { selected, related, hovered, hoverRelated } = this.store;
    for (const [id, element] of this.elements) {
      const box = this.byId.get(id)!;
      const isSelected = containsAny(box, selected);
      const { classList } = element;
      classList.toggle("sel", isSelected);
      classList.toggle("rel", !isSelected && containsAny(box, related));
      classList.toggle("hov", containsAny(box, hovered) || containsAny(box, hoverRelated));
      classList.toggle("hit", hits?.has(id) ?? false);
      classList.toggle("dim", hits !== null && !hits.has(id));
    }
    for (const path of this.edges.querySelectorAll<SVGPathElement>(".edge")) {
      const [src, dst] = [Number(path.dataset.src), Number(path.dataset.dst)];
      const touches = selected.has(this.byId.get(src)?.node ?? -1) || selected.has(this.byId.get(dst)?.node ?? -1);
      if (touches !== path.classList.contains("sel")) {
        path.classList.toggle("sel", touches);
        path.setAttribute("marker-end", touches ? `url(#${this.arrow}-sel)` : `url(#${this.arrow})`);
      }
      path.classList.toggle("dim", hits !== null && !(hits.has(src) && hits.has(dst)));
    }
  }
}

export const NOTHING: DrawnGraph = {
  boxes: [],
  edges: [],
  total: 0,
  folded: { constants: 0, index: 0, views: 0 },
  inRegions: 0,
  hidden: 0,
};

export function containsAny(box: DrawnBox, nodes: Set<number>): boolean {
  return nodes.size > 0 && box.members.some((node) => nodes.has(node));
}

function makeArrowHeads(name: string): SVGDefsElement {
  const head = (id: string, cls: string): SVGMarkerElement =>
    s(
      "marker",
      { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
      s("path", { d: "M0 0 8 4 0 8z", class: cls }),
    );
  return s("defs", {}, head(name, "arrow"), head(`${name}-sel`, "arrow sel"));
}

/** Returns the operand positions of an edge: 0,1 or 0…15. */
function operandText(operands: number[]): string {
  const [first, last] = [operands[0], operands[operands.length - 1]];
  if (operands.length <= 2) return operands.join(",");
  return last - first === operands.length - 1 ? `${first}…${last}` : `${first},${operands[1]},…`;
}
