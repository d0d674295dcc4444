// A drawing whose boxes keep their identity: a new state moves, adds and fades them.

import { h, prefersReducedMotion, replaceChildren, s } from "../dom";
import { type Area, type EdgePath, EdgeRouter } from "./edge_router";

const EDGE = 2; // pixels around the boxes, for the outer half of their lines
const LETTER = 5.9; // pixels of a letter of an edge's label, on the average

/** A box, given by its center. */
export interface SceneNode {
  id: string;
  x: number;
  y: number;
  w: number;
  h: number;
  label: string;
  /** Smaller lines below the label. */
  sub?: readonly string[];
  /** Classes: the role, and "match", "new", "off". */
  cls?: string;
  /** The shape, drawn as a grid of rows and columns. */
  grid?: readonly [number, number] | null;
  /** The whole text, if the label is shortened. */
  title?: string;
}

export interface SceneEdge {
  from: string;
  to: string;
  label?: string;
  cls?: string;
}

export interface SceneFrame {
  id: string;
  x: number;
  y: number;
  w: number;
  h: number;
  title: string;
  sub: string;
  hue: number;
}

export interface SceneState {
  nodes: readonly SceneNode[];
  edges: readonly SceneEdge[];
  frames?: readonly SceneFrame[];
}

interface Drawn {
  element: SVGGElement;
  from: number[];
  to: number[];
  now: number[];
  seen: [from: number, to: number, now: number];
}

interface DrawnEdge {
  path: SVGPathElement;
  label: SVGTextElement;
  edge: SceneEdge;
  /** The final route, after the transition. */
  way: EdgePath | null;
  /** Points along the route: before the transition, and now. */
  before: EdgePath["points"];
  now: EdgePath["points"];
  seen: [from: number, to: number, now: number];
}

const ease = (t: number): number => (t < 0.5 ? 4 * t ** 3 : 1 - (-2 * t + 2) ** 3 / 2);
const mix = (a: number, b: number, t: number): number => a + (b - a) * t;

let count = 0; // several explorers of a notebook share one document, and therefore the names of markers

function nameMarker(): string {
  count += 1;
  return `story-arrow-${count}`;
}

export class Scene {
  readonly element: SVGSVGElement;
  private readonly frames = s("g");
  private readonly edges = s("g");
  private readonly boxes = s("g");
  private readonly labels = s("g");
  private readonly drawn = new Map<string, Drawn>();
  private readonly joined = new Map<string, DrawnEdge>();
  private readonly marker = nameMarker();
  private frame = 0;
  private room = { width: Number.POSITIVE_INFINITY, height: Number.POSITIVE_INFINITY };
  private places = ""; // the positions of the boxes for which the routes were computed

  constructor(label: string) {
    const head = s("path", { d: "M0 .6 8 4 0 7.4z", class: "arrow-head" });
    const marker = { id: this.marker, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8 };
    this.element = s(
      "svg",
      { class: "scene", role: "img", "aria-label": label },
      s("defs", {}, s("marker", { ...marker, orient: "auto", markerUnits: "userSpaceOnUse" }, head)),
      this.edges,
      this.frames,
      this.boxes,
      this.labels,
    );
  }

  resize(width: number, height: number): void {
    this.room = { width, height };
    this.element.setAttribute("width", String(width));
    this.element.setAttribute("height", String(height));
    this.element.setAttribute("viewBox", `${-EDGE} ${-EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`);
  }

  /** Draws a state. `ms`: the duration of the transition, 0 for none. */
  set(state: SceneState, ms: number): void {
    const boxes = new Set<string>();
    for (const frame of state.frames ?? []) {
      boxes.add(`f${frame.id}`);
      this.enter(`f${frame.id}`, [frame.x, frame.y, frame.w, frame.h], () => makeFrame(frame), this.frames);
    }
    for (const node of state.nodes) {
      boxes.add(node.id);
      const entry = this.enter(node.id, [node.x, node.y, node.w, node.h], () => s("g"), this.boxes);
      fillNode(entry.element, node);
    }
    for (const [id, entry] of this.drawn) {
      const isThere = boxes.has(id);
      entry.seen = [entry.seen[2], isThere ? 1 : 0, entry.seen[2]];
      if (!isThere) entry.to = entry.from = entry.now;
    }
    this.join(state.edges);
    this.findRoutes(state);
    this.play(ms);
  }

  private enter(id: string, position: number[], make: () => SVGGElement, layer: Element): Drawn {
    let entry = this.drawn.get(id);
    if (entry === undefined) {
      entry = { element: make(), from: position, to: position, now: position, seen: [0, 1, 0] };
      layer.append(entry.element);
      this.drawn.set(id, entry);
    }
    entry.from = entry.now;
    entry.to = position;
    return entry;
  }

  private join(edges: readonly SceneEdge[]): void {
    const present = new Set<string>();
    for (const edge of edges) {
      const id = `${edge.from}>${edge.to}`;
      present.add(id);
      let entry = this.joined.get(id);
      if (entry === undefined) {
        const path = s("path", { "marker-end": `url(#${this.marker})` });
        const label = s("text", { class: "edge-label", "text-anchor": "middle" });
        this.edges.append(path);
        this.labels.append(label);
        entry = { path, label, edge, way: null, before: [], now: [], seen: [0, 1, 0] };
        this.joined.set(id, entry);
      }
      entry.edge = edge;
      entry.path.setAttribute("class", `edge-path ${edge.cls ?? ""}`);
      entry.label.textContent = edge.label ?? "";
    }
    for (const [id, entry] of this.joined) entry.seen = [entry.seen[2], present.has(id) ? 1 : 0, entry.seen[2]];
  }

  /** Routes the edges around the final positions of boxes and around the titles of frames. */
  private findRoutes({ nodes, edges, frames = [] }: SceneState): void {
    for (const entry of this.joined.values()) entry.before = entry.now;
    const boxes = new Map<string, Area>(nodes.map(({ id, x, y, w, h: tall }) => [id, { x, y, w, h: tall }]));
    const places = JSON.stringify([this.room, [...boxes], edges.map(({ from, to }) => [from, to]), frames]);
    if (places === this.places) return;
    this.places = places;
    const ways = new EdgeRouter(boxes, frames.map(titleArea), this.room);
    for (const { from, to } of edges) this.joined.get(`${from}>${to}`)!.way = ways.route(from, to);
  }

  private play(ms: number): void {
    cancelAnimationFrame(this.frame);
    if (ms <= 0 || prefersReducedMotion() || !this.element.isConnected) return this.draw(1);
    const begin = performance.now();
    const tick = (now: number): void => {
      const t = Math.min(1, Math.max(0, (now - begin) / ms));
      this.draw(ease(t));
      if (t < 1) this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  private draw(t: number): void {
    for (const [id, entry] of this.drawn) {
      entry.now = entry.from.map((value, i) => mix(value, entry.to[i], t));
      entry.seen[2] = mix(entry.seen[0], entry.seen[1], t);
      const [x, y, w, h] = entry.now;
      const { element } = entry;
      element.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      show(element, entry.seen[2]);
      if (!id.startsWith("f")) continue;
      const rect = element.firstElementChild!;
      rect.setAttribute("width", String(w));
      rect.setAttribute("height", String(h));
    }
    for (const entry of this.joined.values()) {
      entry.seen[2] = mix(entry.seen[0], entry.seen[1], t);
      const [from, to] = [this.drawn.get(entry.edge.from), this.drawn.get(entry.edge.to)];
      if (from === undefined || to === undefined || entry.way === null) continue;
      const { d, x, y, points } = entry.way;
      const begin = entry.before.length === 0 ? points : entry.before;
      entry.now = t >= 1 ? points : points.map((end, i) => [mix(begin[i][0], end[0], t), mix(begin[i][1], end[1], t)]);
      const moved = `M${entry.now.map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L")}`;
      entry.path.setAttribute("d", t >= 1 ? d : moved);
      entry.label.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      const seen = entry.seen[2] * Math.min(from.seen[2], to.seen[2]);
      show(entry.path, seen);
      const gap = Math.abs(to.to[0] - from.to[0]) - (to.to[2] + from.to[2]) / 2;
      const hasRoom = (entry.edge.label ?? "").length * LETTER <= gap;
      show(entry.label, seen * (hasRoom && (t >= 1 || begin === points) ? 1 : 0));
    }
    if (t < 1) return;
    for (const [id, entry] of this.drawn) {
      if (entry.seen[1] > 0) continue;
      entry.element.remove();
      this.drawn.delete(id);
    }
    for (const [id, entry] of this.joined) {
      if (entry.seen[1] > 0) continue;
      entry.path.remove();
      entry.label.remove();
      this.joined.delete(id);
    }
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }
}

function show(element: SVGElement, seen: number): void {
  element.style.opacity = seen >= 1 ? "" : seen.toFixed(3);
  element.style.visibility = seen < 0.01 ? "hidden" : "";
}

/** Returns the area of a frame's title. */
function titleArea({ x, y, w, title, sub }: SceneFrame): Area {
  const wide = Math.min(w, 16 + 7.2 * Math.max(title.length, sub.length));
  return { x: x + wide / 2, y: y + 21, w: wide, h: 34 };
}

function makeFrame({ title, sub, hue }: SceneFrame): SVGGElement {
  return s(
    "g",
    { class: "kernel-frame", style: `--hue:${hue}` },
    s("rect", { rx: 11 }),
    s("text", { class: "strong halo", x: 13, y: 20 }, title),
    s("text", { class: "small mono halo", x: 13, y: 36 }, sub),
  );
}

function fillNode(group: SVGGElement, node: SceneNode): void {
  const { w, h: tall, label, sub = [], grid = null, title = label } = node;
  group.setAttribute("class", `story-node ${node.cls ?? ""}`);
  const lines = 1 + sub.length;
  const drawing = grid === null ? 0 : 34;
  const top = -(drawing + 17 + 14 * (lines - 1)) / 2;
  const first = top + drawing + 13;
  replaceChildren(
    group,
    s("title", {}, title),
    s("rect", { class: "face", x: -w / 2, y: -tall / 2, width: w, height: tall, rx: 8 }),
    grid === null ? null : gridOf(grid, top),
    s("text", { class: "strong", "text-anchor": "middle", y: first }, label),
    ...sub.map((text, i) => s("text", { class: "small mono", "text-anchor": "middle", y: first + 15 + 14 * i }, text)),
  );
}

/** Returns a matrix as a small grid; its sides are proportional to the logarithms of its sizes. */
function gridOf([rows, columns]: readonly [number, number], top: number): SVGElement {
  const side = (size: number): number => Math.max(4, Math.min(29, 3.6 * Math.log2(size + 1)));
  const [w, tall] = [side(columns), side(rows)];
  const y = top + (30 - tall) / 2;
  const lines: string[] = [];
  for (let i = 1; i < Math.round(w / 6); i += 1) lines.push(`M${-w / 2 + (i * w) / Math.round(w / 6)} ${y}v${tall}`);
  for (let i = 1; i < Math.round(tall / 6); i += 1)
    lines.push(`M${-w / 2} ${y + (i * tall) / Math.round(tall / 6)}h${w}`);
  return s(
    "g",
    { class: "grid" },
    s("rect", { x: -w / 2, y, width: w, height: tall, rx: 1 }),
    s("path", { d: lines.join("") }),
  );
}

/** Returns the legend of a drawing: pairs of a class and a text. */
export function makeLegend(rows: readonly (readonly [cls: string, text: string])[]): HTMLElement {
  const items = rows.map(([cls, text]) =>
    h("li", {}, h("i", { class: `key ${cls}`, "aria-hidden": "true" }), h("span", {}, text)),
  );
  return h("ul", { class: "story-legend", "aria-label": "Legend" }, ...items);
}
