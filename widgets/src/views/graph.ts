// The graph: boxes coloured by role or by kernel, laid out in layers that stay put from step to step.
// Few boxes are SVG groups; of many, only those in sight are; far away, each colour is one path.

import { button, h, oncePerFrame, prefersReducedMotion, replaceChildren, s } from "../dom";
import { count, truncate } from "../format";
import { type Layout, edgePath, layout } from "../layout";
import { contract, contractTwins } from "../regions";
import type { ShownGraph } from "../replay";
import { parseQuery } from "../search";
import { type DrawnBox, type DrawnGraph, Graphs, type Region, fold } from "../shown";
import type { Change, Store, View } from "../store";
import { nodeText } from "../tree";
import { NodeCard } from "./nodecard";

const BUDGET = 400;
const CROWDED = 60; // LazyBuffers; above, what one line made for one kernel is one box
const CROWDED_UOPS = 90;
const CULL_ABOVE = 250; // boxes; below, all are kept as elements
const FAR = 0.32; // zoom below which boxes have no text
const READABLE = 0.74; // a graph taller than the view opens at this zoom, or smaller where it is wide,
const LEGIBLE = 0.5; // but never smaller than this, at which one can still read
const KERNEL_HUES = 8;
const MAX_LEGEND = 12;
let views = 0;

interface Camera {
  x: number;
  y: number;
  zoom: number;
}

export class GraphView implements View {
  readonly element = h("section", { class: "graph", "aria-label": "Graph" });
  readonly graphs: Graphs;
  private readonly title = h("span", { class: "title" });
  private readonly search: HTMLInputElement;
  private readonly found = h("span", { class: "found", role: "status" });
  private readonly tools = h("span", { class: "tools" });
  private readonly canvas = h("div", { class: "canvas" });
  private readonly legend = h("div", { class: "legend" });
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly svg: SVGSVGElement;
  private readonly world = s("g", { class: "world" });
  private readonly far = s("g", { class: "far" });
  private readonly edges = s("g", { class: "edges" });
  private readonly boxes = s("g", { class: "boxes" });
  private readonly minimap: SVGSVGElement;
  private readonly card: NodeCard;
  private readonly elements = new Map<number, SVGGElement>();
  private readonly arrow = `tinyexplore-arrow-${(views += 1)}`; // a page may hold several views
  private readonly sizes: ResizeObserver;
  private measured: { clientWidth: number; clientHeight: number } | null = null; // the canvas, until it changes size
  private drawn: DrawnGraph = { boxes: [], edges: [], total: 0, folded: { constants: 0, index: 0 }, inRegions: 0, hidden: 0 };
  private byId = new Map<number, DrawnBox>();
  private placed: Layout = { positions: new Map(), width: 0, height: 0, left: 0, top: 0, edges: [] };
  private operands = new Map<string, number[]>();
  private camera: Camera = { x: 0, y: 0, zoom: 1 };
  private family = "";
  private drawnKey = "";
  private isLazy = false;
  private showsRegions = false;
  private foldConstants = true;
  private foldIndex = true;
  private foldLines: boolean | null = null; // null: as the size of the graph suggests
  private foldTwins: boolean | null = null;
  private readonly opened = new Set<number>(); // nodes whose region is drawn one by one
  private budget = BUDGET;
  private cone: Set<number> | null = null;
  private colour: "kernel" | "role" = "kernel";
  private hits: Set<number> | null = null;
  private untouched: "open" | "fit" | null = null; // until the reader pans or zooms, a new size means a new view

  constructor(private readonly store: Store) {
    this.graphs = new Graphs(store.index);
    this.search = h("input", {
      type: "search",
      class: "search",
      placeholder: "op:LOAD /re/ shape:8…",
      "aria-label": "Search the graph: words, /regular expressions/, op: dtype: shape: group: arg:",
      title: "Words, /regular expressions/, op: dtype: shape: group: arg: detail:; Enter walks the matches",
    });
    this.search.addEventListener("input", () => this.runSearch());
    this.search.addEventListener("keydown", (event) => this.searchKey(event));
    const bar = h("div", { class: "bar" }, this.title, h("span", { class: "space" }), this.search, this.found, this.tools);
    this.svg = s("svg", { class: "drawing", role: "img", "aria-label": "Graph of nodes" }, arrowHeads(this.arrow), this.world);
    this.world.append(this.far, this.edges, this.boxes);
    this.minimap = s("svg", { class: "minimap", "aria-hidden": "true" });
    this.card = new NodeCard(store, {
      isolate: () => this.isolate(),
      isIsolated: () => this.cone !== null,
    });
    this.canvas.append(this.svg, this.legend, this.card.element, this.minimap, this.status);
    this.element.append(bar, this.canvas);
    this.listen();
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.canvas);
    this.draw();
  }

  destroy(): void {
    this.sizes.disconnect();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
    if (change.selection) {
      this.mark();
      this.card.draw(this.byNode());
      if (!this.canvas.matches(":hover")) this.bringIntoSight(this.litBoxes());
      this.uncover();
    } else if (change.hover) this.mark();
  }

  focusSearch(): void {
    this.search.focus();
    this.search.select();
  }

  // *** what is drawn ***

  private draw(): void {
    const { store } = this;
    const { graph: whole, family, stage } = this.graphs.at(store.cursor);
    const steps = stage === null ? 0 : Math.min(store.cursor.step, stage.steps.length);
    const key = JSON.stringify([
      family, stage?.id, stage?.id === store.cursor.stage ? steps : -1, this.foldConstants, this.foldIndex, this.budget,
      this.foldLines, this.foldTwins, this.opened.size,
      this.cone && [...this.cone], this.colour, store.cursor.kernel,
    ]);
    if (key === this.drawnKey) return;
    this.drawnKey = key;
    if (family !== this.family) this.cone = null;
    const isLazy = family === "lazy";
    const usesRegions = (isLazy ? this.foldLines : this.foldTwins) ?? whole.nodes.size > (isLazy ? CROWDED : CROWDED_UOPS);
    const none = { graph: whole, members: new Map<number, number[]>() };
    const { graph, members } = usesRegions ? (isLazy ? contract : contractTwins)(store.index, whole, this.opened) : none;
    const keep = new Set<number>();
    for (const [id, { node }] of graph.nodes) if (store.selected.has(node)) keep.add(id);
    const regions = this.describeRegions(whole, members);
    const cone = this.cone;
    const options = { constants: this.foldConstants, index: this.foldIndex, budget: this.budget, cone, keep, regions };
    this.drawn = fold(store.index.trace, graph, options);
    this.isLazy = isLazy;
    this.showsRegions = usesRegions;
    this.byId = new Map(this.drawn.boxes.map((box) => [box.id, box]));
    const previous = family === this.family ? this.placed.positions : undefined;
    this.placed = layout({ nodes: this.drawn.boxes, edges: this.drawn.edges }, { previous });
    this.operands = new Map(this.drawn.edges.map((edge) => [`${edge.src} ${edge.dst}`, edge.operands]));
    const isNewFamily = family !== this.family;
    this.family = family;
    this.element.dataset.family = family;
    const fired = stage?.steps.slice(0, steps).filter((step) => step.rule !== null).length ?? 0;
    this.writeTitle(stage?.name ?? null, fired, stage === null ? 0 : store.index.firings(stage));
    this.writeTools();
    this.writeLegend();
    this.build();
    this.runSearch(false);
    if (isNewFamily) this.open();
    else this.bringIntoSight(this.drawn.boxes.filter((box) => box.changed).map((box) => box.id));
    this.card.draw(this.byNode());
  }

  private describeRegions(
    graph: ShownGraph,
    members: Map<number, number[]>,
  ): Map<number, Region> {
    const { trace } = this.store.index;
    const regions = new Map<number, Region>();
    for (const [box, ids] of members) {
      const nodes = ids.map((id) => graph.nodes.get(id)!.node);
      const last = trace.nodes[nodes[nodes.length - 1]];
      if (last.kind === "uop") {
        regions.set(box, { members: nodes, label: `${nodes.length} × ${last.label}`, detail: last.detail });
        continue;
      }
      const user = trace.nodes[nodes[0]].user;
      const frame = user === null ? undefined : trace.frames[user];
      const line = frame === undefined ? "" : (trace.sources[frame.source]?.text.split("\n")[frame.line - 1] ?? "").trim();
      const detail = frame === undefined ? "" : `${frame.line}: ${line}`;
      regions.set(box, { members: nodes, label: `${nodes.length} nodes`, detail });
    }
    return regions;
  }

  private writeTitle(stage: string | null, step: number, steps: number): void {
    const { total, folded, hidden, boxes, inRegions } = this.drawn;
    const lazy = stage === null;
    const what = lazy ? "LazyBuffers" : "UOp graph";
    const where = lazy ? "" : step < steps ? `in ${stage}, ${step} of ${steps}` : `after ${stage}`;
    const swap = (): void => this.store.go(lazy ? { graph: "uops", place: "passes" } : { graph: "lazy", place: "lazy" });
    const other = lazy ? "UOps" : "LazyBuffers";
    replaceChildren(
      this.title,
      h("b", {}, what),
      h("span", { title: where || null }, lazy ? count(total, "node") : where),
      this.hasOther(lazy) ? button(`→ ${other}`, `Show the graph of ${other}`, swap, "quiet swap") : null,
    );
    const foldedAway = folded.constants + folded.index;
    const regions = boxes.filter((box) => box.members.length > 1).length;
    const alone = boxes.length - regions;
    const parts = regions === 0 ? [`${boxes.length} of ${total} shown`] : [`${alone} of ${total} shown`, `${inRegions} in ${count(regions, "region")}`];
    if (foldedAway > 0) parts.push(`${foldedAway} folded into labels`);
    if (hidden > 0) parts.push(this.cone === null ? `${hidden} hidden` : `${hidden} outside the cone`);
    const more = hidden > 0 && this.cone === null ? button("show all", "Draw every node", () => this.spend(Infinity)) : null;
    const less = this.budget > BUDGET ? button(`at most ${BUDGET}`, "Draw fewer nodes", () => this.spend(BUDGET)) : null;
    const whole = this.cone !== null ? button("whole graph", "Leave the cone", () => this.isolate()) : null;
    replaceChildren(this.status, h("span", {}, parts.join(", ")), more, less, whole);
  }

  private writeTools(): void {
    const toggle = (text: string, title: string, on: boolean, flip: () => void): HTMLElement => {
      const element = button(text, title, flip, "quiet toggle");
      element.setAttribute("aria-pressed", String(on));
      return element;
    };
    const redraw = (change: () => void) => (): void => {
      change();
      this.draw();
    };
    const lazy = this.isLazy;
    const flipRegions = redraw(() => {
      if (lazy) this.foldLines = !this.showsRegions;
      else this.foldTwins = !this.showsRegions;
      this.opened.clear();
    });
    const linesTitle = "Draw what one Python line gave one kernel as one box; a double click opens one";
    const twinsTitle = "Draw the copies that unrolling made as one box; a double click opens one";
    replaceChildren(
      this.tools,
      lazy
        ? toggle("lines", linesTitle, this.showsRegions, flipRegions)
        : toggle("copies", twinsTitle, this.showsRegions, flipRegions),
      toggle("const", "Fold constants into the labels of their users", this.foldConstants, redraw(() => (this.foldConstants = !this.foldConstants))),
      lazy
        ? toggle("kernels", "Colour by kernel instead of by role", this.colour === "kernel", redraw(() => (this.colour = this.colour === "kernel" ? "role" : "kernel")))
        : toggle("index", "Fold index arithmetic into the addresses that use it", this.foldIndex, redraw(() => (this.foldIndex = !this.foldIndex))),
      button("fit", "Fit the graph into the view (F)", () => this.fit(), "quiet"),
    );
  }

  /** Which colour is which kernel, where colours are kernels. */
  private writeLegend(): void {
    const { index, cursor } = this.store;
    const shown = new Set(this.drawn.boxes.map((box) => index.kernelOf.get(box.node)));
    const kernels = this.isLazy && this.colour === "kernel" ? index.trace.kernels.filter(({ id }) => shown.has(id)) : [];
    const keys = kernels.slice(0, MAX_LEGEND).map((kernel) => {
      const choose = (): void => this.store.go({ kernel: kernel.id });
      const key = button(truncate(kernel.name, 22), `Show the code of ${kernel.name}`, choose, `key k-${kernel.id % KERNEL_HUES}`);
      key.setAttribute("aria-pressed", String(kernel.id === cursor.kernel));
      return key;
    });
    const more = kernels.length - keys.length;
    replaceChildren(this.legend, ...keys, more > 0 ? h("span", { class: "faint" }, `and ${count(more, "kernel")} more`) : null);
  }

  private hasOther(lazy: boolean): boolean {
    return this.store.index.trace.nodes.some(({ kind }) => (kind === "uop") === lazy);
  }

  private spend(budget: number): void {
    this.budget = budget;
    this.draw();
    this.fit();
  }

  /** Only the selected nodes with what lies above and below; again: the whole graph. */
  isolate(): void {
    const lit = this.litBoxes();
    this.cone = this.cone !== null || lit.length === 0 ? null : new Set(lit);
    this.draw();
    this.fit();
  }

  private boxClass(box: DrawnBox): string {
    const { index } = this.store;
    const node = index.node(box.node);
    const classes = ["box", `g-${node.group}`];
    if (node.kind === "lazybuffer") {
      const decision = index.decisionOf.get(node.id)?.decision;
      if (decision !== undefined) classes.push(`d-${decision}`);
      const kernel = index.kernelOf.get(node.id);
      if (this.colour === "kernel") classes.push(kernel === undefined ? "no-kernel" : `k-${kernel % KERNEL_HUES}`);
    }
    if (box.members.length > 1) classes.push("region");
    if (box.changed) classes.push("new");
    return classes.join(" ");
  }

  // *** elements ***

  private get isFar(): boolean {
    return this.camera.zoom < FAR && this.drawn.boxes.length > CULL_ABOVE;
  }

  private build(): void {
    const wanted = new Set(this.drawn.boxes.map((box) => box.id));
    for (const [id, element] of this.elements) {
      if (wanted.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    this.edges.replaceChildren();
    this.far.replaceChildren();
    this.show();
    this.drawMinimap();
  }

  /** Makes what is in sight and drops the rest. */
  private show(): void {
    const many = this.drawn.boxes.length > CULL_ABOVE;
    this.svg.classList.toggle("is-far", this.isFar);
    if (this.isFar) {
      this.boxes.replaceChildren();
      this.elements.clear();
      this.edges.replaceChildren();
      if (this.far.childElementCount === 0) this.far.append(...this.farPaths());
      return;
    }
    this.far.replaceChildren();
    const inSight = many ? this.sight() : null;
    const visible = (box: DrawnBox): boolean => inSight === null || overlaps(inSight, this.frame(box));
    const shown = this.drawn.boxes.filter(visible);
    const ids = new Set(shown.map((box) => box.id));
    for (const [id, element] of this.elements) {
      if (ids.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    for (const box of shown) this.placeBox(box);
    const lines = this.placed.edges.filter(({ points }) => inSight === null || points.some(([x, y]) => inside(inSight, x, y)));
    this.edges.replaceChildren(...lines.flatMap((edge) => this.edgeElements(edge)));
    this.mark();
  }

  private frame(box: DrawnBox): [number, number, number, number] {
    const { x, y } = this.placed.positions.get(box.id)!;
    return [x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2];
  }

  private placeBox(box: DrawnBox): void {
    const { x, y } = this.placed.positions.get(box.id)!;
    let element = this.elements.get(box.id);
    const fresh = element === undefined;
    if (element === undefined) {
      element = s("g", { "data-id": box.id });
      this.elements.set(box.id, element);
      this.boxes.append(element);
    }
    const key = `${box.node} ${box.label} ${box.detail} ${box.hidden}`;
    if (element.dataset.key !== key) {
      element.dataset.key = key;
      element.dataset.node = String(box.node);
      const [left, top] = [-box.width / 2, -box.height / 2];
      const two = box.detail !== "";
      const behind = { class: "behind", x: left + 3, y: top - 3, width: box.width, height: box.height, rx: 6 };
      element.replaceChildren(
        ...(box.members.length > 1 ? [s("rect", behind)] : []),
        s("title", {}, this.tooltip(box)),
        s("rect", { x: left, y: top, width: box.width, height: box.height, rx: 6 }),
        s("text", { class: "label", y: two ? -3 : 4 }, box.label),
      );
      if (two) element.append(s("text", { class: "detail", y: 11 }, box.detail));
      if (box.hidden > 0) element.append(s("text", { class: "more", x: box.width / 2 + 3, y: top + 8 }, `+${box.hidden}`));
    }
    element.setAttribute("class", this.boxClass(box));
    const move = `translate(${x.toFixed(1)}px,${y.toFixed(1)}px)`;
    if (fresh && !prefersReducedMotion()) element.classList.add("enter");
    element.style.transform = move;
  }

  private tooltip(box: DrawnBox): string {
    if (box.members.length > 1) return `${box.members.length} nodes: ${box.label}, ${box.detail}\na double click draws them one by one`;
    const node = this.store.index.node(box.node);
    const hidden = box.hidden > 0 ? `\n${count(box.hidden, "neighbour")} not drawn` : "";
    return `${nodeText(node)}${node.dtype ? `\n${node.dtype}` : ""}${node.arg ? `\narg ${node.arg}` : ""}${hidden}`;
  }

  private edgeElements(edge: Layout["edges"][number]): SVGElement[] {
    const path = s("path", {
      d: edgePath(edge.points),
      class: edge.long ? "edge long" : "edge",
      "data-src": edge.src,
      "data-dst": edge.dst,
      "marker-end": `url(#${this.arrow})`,
    });
    const operands = this.operands.get(`${edge.src} ${edge.dst}`) ?? [];
    const target = this.byId.get(edge.dst)!;
    const sources = this.drawn.boxes.length > CULL_ABOVE ? 0 : this.store.index.node(target.node).src.length;
    if (sources < 2 || edge.points.length === 0 || (target.members.length > 1 && operands.length > 2)) return [path];
    const [x, y] = edge.points[edge.points.length - 1];
    const from = edge.points[edge.points.length - 2] ?? [x, y];
    const side = from[0] > x ? 6 : -6;
    return [path, s("text", { class: "operand", x: x + side, y: y - 6 }, operandText(operands))];
  }

  private farPaths(): SVGElement[] {
    const fills = new Map<string, string>();
    for (const box of this.drawn.boxes) {
      const [x0, y0, x1, y1] = this.frame(box).map(Math.round);
      const cls = this.boxClass(box);
      fills.set(cls, `${fills.get(cls) ?? ""}M${x0} ${y0}H${x1}V${y1}H${x0}Z`);
    }
    const lines = this.placed.edges.map(({ points }) => {
      const [a, b] = [points[0], points[points.length - 1]];
      return `M${a[0].toFixed(0)} ${a[1].toFixed(0)}L${b[0].toFixed(0)} ${b[1].toFixed(0)}`;
    });
    return [
      s("path", { class: "far-edges", d: lines.join("") }),
      ...[...fills].map(([cls, d]) => s("g", { class: cls }, s("path", { class: "far-boxes", d }))),
    ];
  }

  // *** marks: selection, relation, hover, search ***

  private byNode(): Map<number, number> {
    return new Map(this.drawn.boxes.flatMap((box) => box.members.map((node): [number, number] => [node, box.id])));
  }

  private litBoxes(): number[] {
    const { selected, related } = this.store;
    const own = this.drawn.boxes.filter((box) => holds(box, selected));
    const lit = own.length > 0 ? own : this.drawn.boxes.filter((box) => holds(box, related));
    return lit.map((box) => box.id);
  }

  private mark(): void {
    const { selected, related, hovered, hoverRelated } = this.store;
    const hitsOnly = this.hits !== null;
    for (const [id, element] of this.elements) {
      const box = this.byId.get(id)!;
      const isSelected = holds(box, selected);
      const { classList } = element;
      classList.toggle("sel", isSelected);
      classList.toggle("rel", !isSelected && holds(box, related));
      classList.toggle("hov", holds(box, hovered) || holds(box, hoverRelated));
      classList.toggle("hit", hitsOnly && this.hits!.has(id));
      classList.toggle("dim", hitsOnly && !this.hits!.has(id));
    }
    for (const path of this.edges.querySelectorAll<SVGPathElement>(".edge")) {
      const src = this.byId.get(Number(path.dataset.src))?.node ?? -1;
      const dst = this.byId.get(Number(path.dataset.dst))?.node ?? -1;
      const touches = selected.has(src) || selected.has(dst);
      path.classList.toggle("sel", touches);
      path.setAttribute("marker-end", touches ? `url(#${this.arrow}-sel)` : `url(#${this.arrow})`);
      path.classList.toggle("dim", hitsOnly && !(this.hits!.has(Number(path.dataset.src)) && this.hits!.has(Number(path.dataset.dst))));
    }
  }

  private runSearch(mark = true): void {
    const matcher = parseQuery(this.search.value);
    this.search.classList.remove("bad");
    if (matcher === null) {
      this.hits = null;
      this.found.textContent = "";
    } else if (typeof matcher !== "function") {
      this.hits = null;
      this.search.classList.add("bad");
      this.found.textContent = matcher.error;
    } else {
      const { index } = this.store;
      const isHit = (node: number): boolean => matcher(index.node(node));
      this.hits = new Set(this.drawn.boxes.filter((box) => box.members.some(isHit)).map((box) => box.id));
      const drawn = this.drawn.boxes.reduce((sum, box) => sum + box.members.filter(isHit).length, 0);
      const { graph } = this.graphs.at(this.store.cursor);
      const all = [...graph.nodes.values()].filter(({ node }) => isHit(node)).length;
      const away = all - drawn;
      this.found.textContent = `${all} found${away > 0 ? `, ${away} not drawn` : ""}`;
    }
    if (mark) this.mark();
  }

  private searchKey(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.search.value = "";
      this.runSearch();
      this.svg.closest<HTMLElement>(".tinyexplore")?.focus();
    }
    if (event.key !== "Enter" || this.hits === null || this.hits.size === 0) return;
    const hits = [...this.hits];
    const at = hits.findIndex((id) => holds(this.byId.get(id)!, this.store.selected));
    const next = hits[(at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length];
    this.store.select(this.byId.get(next)!.members);
    this.bringIntoSight([next]);
  }

  /** Moves the selection along an edge: to a source (up), a user (down), or a neighbour on the same layer. */
  walk(direction: "up" | "down" | "left" | "right"): void {
    const lit = this.litBoxes();
    const [from] = lit.length > 0 ? lit : this.drawn.boxes.slice(-1).map((box) => box.id);
    if (from === undefined) return;
    const place = this.placed.positions.get(from)!;
    const distance = (id: number): number => Math.abs(this.placed.positions.get(id)!.x - place.x);
    let candidates: number[];
    if (direction === "up") candidates = this.drawn.edges.filter((edge) => edge.dst === from).map((edge) => edge.src);
    else if (direction === "down") candidates = this.drawn.edges.filter((edge) => edge.src === from).map((edge) => edge.dst);
    else {
      const sign = direction === "left" ? -1 : 1;
      candidates = this.drawn.boxes.map((box) => box.id).filter((id) => {
        const { x, y } = this.placed.positions.get(id)!;
        return Math.abs(y - place.y) < 12 && (x - place.x) * sign > 0;
      });
    }
    candidates.sort((a, b) => distance(a) - distance(b));
    const target = lit.length === 0 ? from : candidates[0];
    if (target === undefined) return;
    this.store.select(this.byId.get(target)!.members);
    this.bringIntoSight([target]);
  }

  // *** the camera ***

  /** Asked for at every step, so measured only after a change: a measurement makes the browser lay out the page. */
  private get size(): { width: number; height: number } {
    const { clientWidth: width, clientHeight: height } = this.measured ?? this.canvas;
    if (this.measured === null && width > 0 && height > 0) this.measured = { clientWidth: width, clientHeight: height };
    return { width: width || 600, height: height || 380 };
  }

  fit(): void {
    const { width, height } = this.size;
    const margin = 18;
    const across = (width - 2 * margin) / Math.max(1, this.placed.width);
    const down = (height - 2 * margin) / Math.max(1, this.placed.height);
    const zoom = Math.max(0.02, Math.min(1.1, across, down));
    this.untouched = "fit";
    this.moveTo({
      zoom,
      x: width / 2 - (this.placed.left + this.placed.width / 2) * zoom,
      y: height / 2 - (this.placed.top + this.placed.height / 2) * zoom,
    });
  }

  /** The whole graph, or of one too tall to be read so, the part around what changed last. */
  private open(): void {
    this.fit();
    this.untouched = "open";
    const { width, height } = this.size;
    if (this.camera.zoom >= READABLE) return;
    const across = (width - 36) / Math.max(1, this.placed.width);
    const zoom = Math.min(READABLE, Math.max(this.camera.zoom, across, LEGIBLE));
    const lit = this.drawn.boxes.find((box) => box.changed) ?? this.drawn.boxes[this.drawn.boxes.length - 1];
    const { x, y } = this.placed.positions.get(lit.id)!;
    const [left, top] = [this.placed.left * zoom, this.placed.top * zoom];
    const x0 = clamp(width / 2 - x * zoom, width - 18 - left - this.placed.width * zoom, 18 - left);
    const down = clamp(height / 2 - y * zoom, height - 28 - top - this.placed.height * zoom, 18 - top);
    const isWide = this.placed.width * zoom > width - 36;
    this.moveTo({ zoom, x: isWide ? x0 : width / 2 - left - (this.placed.width * zoom) / 2, y: down });
  }

  private moveTo(camera: Camera): void {
    this.camera = camera;
    this.world.setAttribute("transform", `translate(${camera.x.toFixed(2)} ${camera.y.toFixed(2)}) scale(${camera.zoom.toFixed(4)})`);
    this.svg.classList.toggle("is-small", camera.zoom < 0.55);
    this.settle();
  }

  private readonly settle = oncePerFrame(() => {
    if (this.drawn.boxes.length > CULL_ABOVE) this.show();
    this.drawView();
  });

  /** What of the world is in sight, with a margin, so that small moves need no new elements. */
  private sight(): [number, number, number, number] {
    const { width, height } = this.size;
    const { x, y, zoom } = this.camera;
    const margin = 200;
    return [(-x - margin) / zoom, (-y - margin) / zoom, (width - x + margin) / zoom, (height - y + margin) / zoom];
  }

  /** Moves only if none of the boxes is in sight. */
  private bringIntoSight(ids: number[]): void {
    const boxes = ids.map((id) => this.byId.get(id)).filter((box) => box !== undefined);
    if (boxes.length === 0) return;
    const { width, height } = this.size;
    const { x, y, zoom } = this.camera;
    const view: [number, number, number, number] = [-x / zoom, -y / zoom, (width - x) / zoom, (height - y) / zoom];
    if (boxes.some((box) => overlaps(view, this.frame(box)))) return;
    const place = this.placed.positions.get(boxes[0].id)!;
    this.untouched = null;
    this.moveTo({ zoom, x: width / 2 - place.x * zoom, y: height / 2 - place.y * zoom });
  }

  /** Moves a single selected box out from under its card. */
  private uncover(): void {
    const [id, more] = this.litBoxes();
    const element = id === undefined || more !== undefined ? undefined : this.elements.get(id);
    if (element === undefined || this.card.element.hidden) return;
    const box = element.getBoundingClientRect();
    const card = this.card.element.getBoundingClientRect();
    if (box.left > card.right || box.bottom < card.top) return;
    this.untouched = null;
    this.moveTo({ ...this.camera, y: this.camera.y - (box.bottom - card.top) - 12 });
  }

  private zoomAt(px: number, py: number, factor: number): void {
    const zoom = Math.min(3, Math.max(0.02, this.camera.zoom * factor));
    const scale = zoom / this.camera.zoom;
    this.untouched = null;
    this.moveTo({ zoom, x: px - (px - this.camera.x) * scale, y: py - (py - this.camera.y) * scale });
  }

  private resized(): void {
    this.measured = null;
    if (this.untouched === "fit") this.fit();
    else if (this.untouched === "open") this.open();
    else this.settle();
  }

  private listen(): void {
    let from: { x: number; y: number; camera: Camera; moved: boolean } | null = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = { x: event.clientX, y: event.clientY, camera: this.camera, moved: false };
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      if (!from.moved) this.svg.setPointerCapture(event.pointerId);
      from.moved = true;
      this.untouched = null;
      this.svg.classList.add("panning");
      this.moveTo({ ...from.camera, x: from.camera.x + dx, y: from.camera.y + dy });
    });
    const stop = (event: PointerEvent): void => {
      this.svg.classList.remove("panning");
      const click = from !== null && !from.moved;
      from = null;
      if (click && event.type === "pointerup") this.choose(event);
    };
    this.svg.addEventListener("pointerup", stop);
    this.svg.addEventListener("pointercancel", stop);
    this.svg.addEventListener("dblclick", (event) => {
      const id = this.boxAt(event);
      const box = id === null ? undefined : this.byId.get(id);
      if (box !== undefined && box.members.length > 1) {
        for (const node of box.members) this.opened.add(node);
        this.draw();
      } else if (box === undefined) this.fit();
    });
    this.svg.addEventListener("mouseover", (event) => {
      const id = this.boxAt(event);
      this.store.hover(id === null ? [] : this.byId.get(id)!.members);
    });
    this.svg.addEventListener("mouseleave", () => this.store.hover([]));
    this.svg.addEventListener(
      "wheel",
      (event) => {
        // in a notebook a plain wheel scrolls the page unless the graph has the focus
        const root = this.svg.closest(".tinyexplore");
        if (!event.ctrlKey && !event.metaKey && !root?.matches(":focus-within, [data-page]")) return;
        event.preventDefault();
        const { left, top } = this.svg.getBoundingClientRect();
        this.zoomAt(event.clientX - left, event.clientY - top, Math.exp(-event.deltaY * 0.0016));
      },
      { passive: false },
    );
    const jump = (event: PointerEvent): void => {
      if (event.buttons !== 1) return;
      const { left, top, width: w, height: hh } = this.minimap.getBoundingClientRect();
      const { width, height } = this.size;
      const wx = this.placed.left + ((event.clientX - left) / w) * this.placed.width;
      const wy = this.placed.top + ((event.clientY - top) / hh) * this.placed.height;
      this.untouched = null;
      this.moveTo({ ...this.camera, x: width / 2 - wx * this.camera.zoom, y: height / 2 - wy * this.camera.zoom });
    };
    this.minimap.addEventListener("pointerdown", jump);
    this.minimap.addEventListener("pointermove", jump);
  }

  private boxAt(event: Event): number | null {
    const group = (event.target as Element).closest?.<SVGGElement>("g.box[data-id]");
    return group ? Number(group.dataset.id) : null;
  }

  private choose(event: MouseEvent): void {
    const id = this.boxAt(event);
    const members = id === null ? [] : this.byId.get(id)!.members;
    if (!event.shiftKey || members.length === 0) {
      this.store.select(members);
      return;
    }
    const next = new Set(this.store.selected);
    const had = members.every((node) => next.has(node));
    for (const node of members) if (had) next.delete(node);
    else next.add(node);
    this.store.select(next);
  }

  // *** the minimap ***

  private drawMinimap(): void {
    const { left, top, width, height } = this.placed;
    const small = this.drawn.boxes.length < 2;
    this.minimap.style.display = small ? "none" : "";
    if (small) return;
    const scale = Math.min(96 / Math.max(1, width), 72 / Math.max(1, height));
    this.minimap.style.width = `${Math.max(20, width * scale)}px`;
    this.minimap.style.height = `${Math.max(14, height * scale)}px`;
    this.minimap.setAttribute("viewBox", `${left} ${top} ${Math.max(1, width)} ${Math.max(1, height)}`);
    const fills = new Map<string, string>();
    for (const box of this.drawn.boxes) {
      const [x0, y0, x1, y1] = this.frame(box).map(Math.round);
      const cls = this.boxClass(box);
      fills.set(cls, `${fills.get(cls) ?? ""}M${x0} ${y0}H${x1}V${y1}H${x0}Z`);
    }
    const paths = [...fills].map(([cls, d]) => s("g", { class: cls }, s("path", { class: "far-boxes", d })));
    this.minimap.replaceChildren(...paths, s("rect", { class: "view" }));
    this.drawView();
  }

  private drawView(): void {
    const view = this.minimap.querySelector(".view");
    if (view === null) return;
    const { width, height } = this.size;
    const { x, y, zoom } = this.camera;
    const { left, top, width: w, height: hh } = this.placed;
    const x0 = Math.max(left, -x / zoom);
    const y0 = Math.max(top, -y / zoom);
    view.setAttribute("x", String(x0));
    view.setAttribute("y", String(y0));
    view.setAttribute("width", String(Math.max(0, Math.min(left + w, (width - x) / zoom) - x0)));
    view.setAttribute("height", String(Math.max(0, Math.min(top + hh, (height - y) / zoom) - y0)));
    const whole = x0 <= left && y0 <= top && (width - x) / zoom >= left + w && (height - y) / zoom >= top + hh;
    this.minimap.style.visibility = whole ? "hidden" : "";
  }
}

function arrowHeads(name: string): SVGDefsElement {
  const head = (id: string, cls: string): SVGMarkerElement =>
    s(
      "marker",
      { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
      s("path", { d: "M0 0 8 4 0 8z", class: cls }),
    );
  return s("defs", {}, head(name, "arrow"), head(`${name}-sel`, "arrow sel"));
}

/** 0,1 or 0…15: which sources an edge stands for. */
function operandText(operands: number[]): string {
  const [first, last] = [operands[0], operands[operands.length - 1]];
  if (operands.length <= 2) return operands.join(",");
  return last - first === operands.length - 1 ? `${first}…${last}` : `${first},${operands[1]},…`;
}

function holds(box: DrawnBox, nodes: Set<number>): boolean {
  return nodes.size > 0 && box.members.some((node) => nodes.has(node));
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, Math.min(low, high)), Math.max(low, high));
}

function overlaps(a: [number, number, number, number], b: [number, number, number, number]): boolean {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function inside(a: [number, number, number, number], x: number, y: number): boolean {
  return x >= a[0] && x <= a[2] && y >= a[1] && y <= a[3];
}
