// The graph: boxes coloured by role or by kernel, framed by kernel where they are LazyBuffers, laid out in layers that
// stay put from step to step.

import { button, h, replaceChildren, s } from "../dom";
import { meaning } from "../explaining";
import { callName, count, duration, truncate } from "../format";
import { type Frame, framedLayout } from "../frames";
import { fateBetween, fateText, markOf } from "../fusions";
import { KERNEL_HUES, kernelClass, kernelTitle } from "../kernels";
import type { Layout } from "../layout";
import { Layouter } from "../layouter";
import { type Contracted, contract, contractKernels, contractTwins } from "../regions";
import type { ShownGraph } from "../replay";
import { type DrawnBox, type DrawnGraph, Graphs, type Region, countsOf, fold, wordsOf } from "../shown";
import type { Change, Store, View } from "../store";
import { nodeText } from "../tree";
import { Camera, type Rectangle } from "./camera";
import { Drawing, NOTHING, holds } from "./drawing";
import { Finder } from "./finder";
import { NodeCard } from "./nodecard";

/** How much of the LazyBuffer graph is drawn as boxes of their own, from the least to all. */
type Detail = "kernels" | "lines" | "operations" | "views";

const DETAILS: Record<Detail, string> = {
  kernels: "a box a kernel",
  lines: "a box a line",
  operations: "operations",
  views: "every node",
};
const BUDGET = 400;
const CROWDED = 40; // operations on LazyBuffers; above, what one line made for one kernel is one box,
const CROWDED_LINES = 60; // and where even those are more, a kernel is one
const CROWDED_UOPS = 90;
const MAX_LEGEND = 12;
const HOPS = [1, 2, 3];
const TITLE_CHARACTER = 7.4; // pixels, of a frame's heading

export class GraphView implements View {
  readonly element = h("section", { class: "graph", "aria-label": "Graph" });
  readonly graphs: Graphs;
  private readonly title = h("span", { class: "title" });
  private readonly tools = h("span", { class: "tools" });
  private readonly canvas = h("div", { class: "canvas" });
  private readonly legend = h("div", { class: "legend", role: "group", "aria-label": "Colours of kernels" });
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly drawing: Drawing;
  private readonly camera: Camera;
  private readonly finder: Finder;
  private readonly card: NodeCard;
  private readonly working = h("div", { class: "working", role: "status", hidden: true });
  private readonly layouter = new Layouter((boxes) => this.writeWorking(boxes));
  private drawn: DrawnGraph = NOTHING;
  private byId = new Map<number, DrawnBox>();
  private placed: Layout = { positions: new Map(), width: 0, height: 0, left: 0, top: 0, edges: [] };
  private family = "";
  private drawnKey = "";
  private isLazy = false;
  private drawnStage: number | undefined;
  private isSamePass = false; // as what was drawn before: then boxes stay where they are
  private isFramed = false;
  private isTidied = false; // the reader wants it laid out anew
  private showsTwins = false;
  private foldConstants = true;
  private foldIndex = true;
  private detail: Detail | null = null; // null: as the size of the graph suggests
  private drawnDetail: Detail = "operations";
  private foldTwins: boolean | null = null;
  private readonly opened = new Map<number, number[]>(); // nodes whose region is drawn one by one, with all of it
  private budget = BUDGET;
  private cone: Set<number> | null = null;
  private hops: number | null = null;

  constructor(
    private readonly store: Store,
    private colour: "kernel" | "role" = "kernel",
  ) {
    this.graphs = new Graphs(store.index);
    this.drawing = new Drawing(store, {
      boxClass: (box) => this.boxClass(box),
      tooltip: (box) => this.tooltip(box),
      badge: (box) => this.badge(box),
      through: (nodes) => `through ${nodes.map((node) => nodeText(store.index.node(node))).join(" → ")}`,
      frame: (frame) => this.frame(frame),
      markEdge: (edge, points) => {
        if (!this.isLazy || this.drawnDetail === "kernels") return null; // there every edge is cut
        const [src, dst] = [edge.src, edge.dst].map((id) => this.byId.get(id)!.members);
        const fate = fateBetween(store.index, src, edge.through, dst);
        return fate === null ? null : markOf(fate, points, fateText(store.index, fate));
      },
    });
    this.camera = new Camera(this.drawing.svg, this.drawing.world, this.canvas, {
      moved: () => {
        if (this.drawing.show(this.camera.zoom, this.camera.sight(), this.camera.ahead)) this.mark();
      },
      clicked: (event) => this.choose(event),
    });
    this.finder = new Finder(store, {
      boxes: () => this.drawn.boxes,
      nodes: () => [...this.graphs.at(store.cursor).graph.nodes.values()].map(({ node }) => node),
      mark: () => this.mark(),
      show: (box) => this.selectBox(box.id),
      leave: () => this.element.closest<HTMLElement>(".tinyexplore")?.focus(),
    });
    this.card = new NodeCard(store, { isolate: () => this.isolate(), isIsolated: () => this.cone !== null });
    const more = button("⋯", "What is folded, and colours", () => this.tools.classList.toggle("open"), "quiet overflow");
    const fit = button("fit", "Fit the graph into the view (F)", () => this.fit(), "quiet");
    const space = h("span", { class: "space" });
    const bar = h("div", { class: "bar" }, this.title, space, this.finder.input, this.finder.found, this.tools, more, fit);
    this.canvas.append(this.drawing.svg, this.card.element, this.camera.minimap, this.working);
    this.element.append(bar, this.legend, this.canvas, this.status);
    this.listen();
    this.draw();
  }

  destroy(): void {
    this.layouter.cancel();
    this.camera.destroy();
  }

  update(change: Change): void {
    if (change.isolate && this.isLazy) this.isolateSelected();
    if (change.cursor) this.draw();
    if (change.selection) {
      this.mark();
      this.card.draw(this.byNode());
      if (!this.canvas.matches(":hover")) this.camera.bringIntoSight(this.rectangles(this.litBoxes()));
      this.uncover();
    } else if (change.hover) this.mark();
  }

  focusSearch(): void {
    this.finder.focus();
  }

  fit(): void {
    this.camera.fit();
  }

  // *** what is drawn ***

  /** Draws what the cursor points at, at once or, of a large graph, once it is laid out; then moves the camera. */
  private draw(move: "stay" | "fit" | "open" = "stay"): void {
    const { store } = this;
    const { graph: whole, family, stage } = this.graphs.at(store.cursor);
    const steps = stage === null ? 0 : Math.min(store.cursor.step, stage.steps.length);
    const key = JSON.stringify([
      family, stage?.id, stage?.id === store.cursor.stage ? steps : -1, this.foldConstants, this.foldIndex, this.budget,
      this.detail, this.foldTwins, this.opened.size, this.hops,
      this.cone && [...this.cone], this.colour, store.cursor.kernel,
    ]);
    if (key === this.drawnKey) {
      if (move === "fit" && this.working.hidden) this.fit();
      return;
    }
    this.drawnKey = key;
    const isNewFamily = family !== this.family;
    if (isNewFamily) this.cone = null;
    this.isLazy = family === "lazy";
    this.isSamePass = !isNewFamily && stage?.id === this.drawnStage;
    const { graph, members } = this.contracted(whole);
    const keep = new Set<number>();
    for (const [id, { node }] of graph.nodes) if (store.selected.has(node)) keep.add(id);
    const next = fold(store.index.trace, graph, {
      constants: this.foldConstants,
      index: this.foldIndex,
      views: this.isLazy && this.drawnDetail !== "views",
      budget: this.budget,
      cone: this.cone,
      hops: this.hops,
      keep,
      words: (node) => wordsOf(store.index, node, stage?.kernel ?? null),
      regions: this.describeRegions(whole, members),
    });
    this.place(next, isNewFamily, (placed, frames) => {
      [this.drawn, this.placed, this.family, this.drawnStage] = [next, placed, family, stage?.id];
      this.byId = new Map(next.boxes.map((box) => [box.id, box]));
      this.element.dataset.family = family;
      const fired = stage?.steps.slice(0, steps).filter((step) => step.rule !== null).length ?? 0;
      const isBefore = stage !== null && stage.transform !== null && steps < stage.steps.length;
      this.writeTitle(stage?.name ?? null, fired, stage === null ? 0 : store.index.firings(stage), isBefore);
      this.writeStatus();
      this.writeTools();
      this.isFramed = frames.length > 0;
      this.writeLegend(frames);
      this.drawing.build(next, placed, frames, this.camera.zoom, this.camera.ahead);
      this.camera.cover(placed, next.boxes.length < 2 ? [] : this.drawing.boxPaths());
      this.finder.run();
      this.mark();
      const changed = this.rectangles(next.boxes.filter((box) => box.changed).map((box) => box.id));
      if (move === "fit") this.fit();
      else if (isNewFamily || move === "open") this.camera.open(move === "open" ? null : (changed[0] ?? null));
      else this.camera.bringIntoSight(changed);
      this.card.draw(this.byNode());
    });
  }

  private contracted(whole: ShownGraph): Contracted {
    const { index } = this.store;
    const open = new Set(this.opened.keys());
    if (!this.isLazy) {
      // once in a pass, so that boxes do not come and go with a node more or less
      this.showsTwins = this.foldTwins ?? (whole.nodes.size > CROWDED_UOPS || (this.isSamePass && this.showsTwins));
      return this.showsTwins ? contractTwins(index, whole, open) : { graph: whole, members: new Map() };
    }
    const plain = (node: number): boolean => !["movement", "const"].includes(index.node(node).group);
    const operations = [...whole.nodes.values()].filter(({ node }) => plain(node)).length;
    const lines = this.detail === "lines" || (this.detail === null && operations > CROWDED) ? contract(index, whole, open) : null;
    const tooMany = lines !== null && [...lines.graph.nodes.values()].filter(({ node }) => plain(node)).length > CROWDED_LINES;
    this.drawnDetail = this.detail ?? (lines === null ? "operations" : tooMany && index.trace.kernels.length > 1 ? "kernels" : "lines");
    if (this.drawnDetail === "kernels") return contractKernels(index, whole, open);
    return lines ?? { graph: whole, members: new Map() };
  }

  /** Lays the boxes out: LazyBuffers in the frames of their kernels. */
  private place(next: DrawnGraph, isNew: boolean, done: (placed: Layout, frames: Frame[]) => void): void {
    const { boxes, edges } = next;
    if (this.isLazy && this.colour === "kernel" && boxes.length <= BUDGET) {
      const owners = this.owners(next);
      const kernelOf = (id: number): number | null => owners.get(id) ?? null;
      const made = framedLayout(boxes, edges, kernelOf, (kernel) => Math.max(...this.frameTitle(kernel).map((text) => text.length)) * TITLE_CHARACTER);
      if (made !== null) {
        this.layouter.cancel();
        done(made, made.frames);
        return;
      }
    }
    const previous = isNew || this.isLazy || this.isTidied ? undefined : this.placed.positions;
    this.isTidied = false;
    const nodes = boxes.map(({ id, width, height }) => ({ id, width, height }));
    const lines = edges.map(({ src, dst }) => ({ src, dst }));
    this.layouter.lay({ nodes, edges: lines, previous, isStep: this.isSamePass }, (placed) => done(placed, []));
  }

  /** Says that a layout is being made, over the drawing that is there until then. */
  private writeWorking(boxes: number | null): void {
    this.working.hidden = boxes === null;
    const stop = button("stop", "Draw fewer boxes instead", () => this.spend(BUDGET), "quiet");
    replaceChildren(this.working, ...(boxes === null ? [] : [h("span", {}, `laying out ${boxes} boxes…`), stop]));
  }

  /** The kernel in whose frame a box belongs: its own, or, of one that no kernel claims, the one that alone reads it. */
  private owners({ boxes, edges }: DrawnGraph): Map<number, number> {
    const { index } = this.store;
    const owners = new Map<number, number>();
    const users = new Map<number, Set<number | undefined>>();
    for (const box of [...boxes].reverse()) {
      const isKernel = this.drawnDetail === "kernels" && box.members.length > 1;
      const readers = [...(users.get(box.id) ?? [])];
      const adopts = index.node(box.node).group !== "buffer" && readers.length === 1 ? readers[0] : undefined;
      const kernel = isKernel ? undefined : (index.firstKernelOf.get(box.node) ?? adopts);
      if (kernel !== undefined) owners.set(box.id, kernel);
      for (const { src } of edges.filter(({ dst }) => dst === box.id)) users.set(src, (users.get(src) ?? new Set()).add(kernel));
    }
    return owners;
  }

  private describeRegions(graph: ShownGraph, members: Map<number, number[]>): Map<number, Region> {
    const { trace } = this.store.index;
    const regions = new Map<number, Region>();
    for (const [box, ids] of members) {
      const nodes = ids.map((id) => graph.nodes.get(id)!.node);
      const last = trace.nodes[nodes[nodes.length - 1]];
      if (last.kind === "uop") {
        regions.set(box, { members: nodes, label: `${nodes.length} × ${last.label}`, detail: last.detail });
        continue;
      }
      if (this.drawnDetail === "kernels") {
        const [label, detail] = this.frameTitle(this.store.index.firstKernelOf.get(last.id)!);
        regions.set(box, { members: nodes, label, detail });
        continue;
      }
      const user = trace.nodes[nodes[0]].user;
      const frame = user === null ? undefined : trace.frames[user];
      const line = frame === undefined ? "" : (trace.sources[frame.source]?.text.split("\n")[frame.line - 1] ?? "").trim();
      const detail = frame === undefined ? "" : `${frame.line}: ${line}`;
      const calls = [...new Set(nodes.map((node) => trace.nodes[node].calls[0] ?? ""))];
      const call = calls.length === 1 && calls[0] !== "" ? `${callName(calls[0])}: ` : "";
      const when = calls.length === 1 && calls[0] === "" ? " from before" : "";
      regions.set(box, { members: nodes, label: `${call}${nodes.length} nodes${when}`, detail });
    }
    return regions;
  }

  // *** words around the drawing ***

  private writeTitle(stage: string | null, step: number, steps: number, isBefore: boolean): void {
    const lazy = stage === null;
    const what = lazy ? "Tensor graph" : "UOp graph";
    const where = lazy ? count(this.drawn.total, "LazyBuffer") : step < steps ? `in ${stage}, ${step} of ${steps}` : `${isBefore ? "before" : "after"} ${stage}`;
    const swap = (): void => this.store.go(lazy ? { graph: "uops", place: "passes" } : { graph: "lazy", place: "lazy" });
    const other = lazy ? "UOps" : "tensors";
    const hasOther = this.store.index.trace.nodes.some(({ kind }) => (kind === "uop") === lazy);
    replaceChildren(
      this.title,
      h("b", {}, what),
      h("span", { title: where }, where),
      hasOther ? button(`→ ${other}`, `Show the graph of ${other}`, swap, "quiet swap") : null,
    );
  }

  private writeStatus(): void {
    const { boxes, folded } = this.drawn;
    const { shown, inRegions, hidden, total } = countsOf(this.drawn);
    const regions = boxes.filter((box) => box.members.length > 1).length;
    const constants = folded.constants + folded.index;
    const parts = [`${shown} of ${total} shown`];
    if (regions > 0) parts.push(`${inRegions} in ${count(regions, "region")}`);
    if (constants > 0) parts.push(`${constants} folded into labels`);
    if (folded.views > 0) parts.push(`${count(folded.views, "view")} folded into edges`);
    if (hidden > 0) parts.push(this.cone === null ? `${hidden} hidden` : `${hidden} outside the cone`);
    const openRegions = new Set(this.opened.values()).size;
    const close = (): void => {
      this.opened.clear();
      this.draw();
    };
    const hop = (hops: number | null): HTMLElement => {
      const text = hops === null ? "all" : String(hops);
      const title = hops === null ? "Everything above and below" : `At most ${count(hops, "edge")} away`;
      const choose = (): void => {
        this.hops = hops;
        this.draw("fit");
      };
      const made = button(text, title, choose, "quiet");
      made.setAttribute("aria-pressed", String(this.hops === hops));
      return made;
    };
    replaceChildren(
      this.status,
      h("span", {}, parts.join(", ")),
      openRegions > 0 ? button(`close ${count(openRegions, "region")}`, "Draw what was opened as one box again", close) : null,
      hidden > 0 && this.cone === null ? button("show all", "Draw every node", () => this.spend(Infinity)) : null,
      this.budget > BUDGET ? button(`at most ${BUDGET}`, "Draw fewer nodes", () => this.spend(BUDGET)) : null,
      ...(this.cone === null ? [] : [h("span", { class: "hops" }, "edges away: ", ...[...HOPS, null].map(hop)), button("whole graph", "Leave the cone", () => this.isolate())]),
    );
  }

  private writeTools(): void {
    const toggle = (text: string, title: string, on: boolean, flip: () => void): HTMLElement => {
      const act = (): void => {
        flip();
        this.draw();
      };
      const element = button(text, title, act, "quiet toggle");
      element.setAttribute("aria-pressed", String(on));
      return element;
    };
    const constants = toggle("const", "Fold constants into the labels of their users", this.foldConstants, () => (this.foldConstants = !this.foldConstants));
    if (this.isLazy) {
      const byKernel = toggle("kernels", "Frame and colour by kernel instead of colouring by role", this.colour === "kernel", () => (this.colour = this.colour === "kernel" ? "role" : "kernel"));
      replaceChildren(this.tools, this.detailChoice(), constants, byKernel);
      return;
    }
    const flipTwins = (): void => {
      this.foldTwins = !this.showsTwins;
      this.opened.clear();
    };
    replaceChildren(
      this.tools,
      toggle("copies", "Draw the copies that unrolling made as one box; a double click opens one", this.showsTwins, flipTwins),
      constants,
      button("tidy", "Lay the graph out anew: from step to step boxes stay where they are", () => this.tidy(), "quiet"),
      toggle("index", "Fold index arithmetic into the addresses that use it", this.foldIndex, () => (this.foldIndex = !this.foldIndex)),
    );
  }

  /** The one control from few boxes to all of them. */
  private detailChoice(): HTMLElement {
    const options = (Object.keys(DETAILS) as Detail[]).map((key) => h("option", { value: key, selected: key === this.drawnDetail }, DETAILS[key]));
    const choice = h("select", { class: "detail-choice", "aria-label": "How much is drawn", title: "How much is drawn: a box for each kernel, Python line, operation, or node" }, ...options);
    choice.addEventListener("change", () => {
      this.detail = choice.value as Detail;
      this.opened.clear();
      this.draw("open");
    });
    return choice;
  }

  /** Which colour is which kernel, where colours are kernels and no frame says it. */
  private writeLegend(frames: readonly Frame[]): void {
    const { index, cursor } = this.store;
    const shown = new Set(this.drawn.boxes.map((box) => index.firstKernelOf.get(box.node)));
    const isNeeded = this.isLazy && this.colour === "kernel" && frames.length === 0 && this.drawnDetail !== "kernels";
    const kernels = isNeeded ? index.trace.kernels.filter(({ id }) => shown.has(id)) : [];
    const keys = kernels.slice(0, MAX_LEGEND).map((kernel) => {
      const choose = (): void => this.store.go({ kernel: kernel.id });
      const key = button(truncate(this.frameTitle(kernel.id)[0], 26), `Show the code of ${kernelTitle(index.trace, kernel.id)}`, choose, `key ${kernelClass(kernel.id)}`);
      key.setAttribute("aria-pressed", String(kernel.id === cursor.kernel));
      return key;
    });
    const more = kernels.length - keys.length;
    const repeats = kernels.length > KERNEL_HUES ? h("span", { class: "faint" }, `${KERNEL_HUES} colours, which repeat: the numbers tell kernels apart`) : null;
    this.legend.hidden = keys.length === 0;
    replaceChildren(this.legend, ...keys, more > 0 ? h("span", { class: "faint" }, `and ${count(more, "kernel")} more`) : null, repeats);
  }

  /** A kernel's heading: its number and name; what it computes, of how many nodes, in what time. */
  private frameTitle(id: number): [string, string] {
    const { index } = this.store;
    const kernel = index.trace.kernels[id];
    const run = index.runOf(id);
    const calls = truncate(kernel.calls.map(callName).join(", "), 24);
    const facts = [calls, count(kernel.nodes.length, "node"), run === null ? "" : duration(run.median_us)].filter(Boolean);
    return [`kernel ${id} · ${truncate(kernel.name, 28)}`, facts.join(" · ")];
  }

  /** A kernel's frame, and its heading, which is drawn over the edges. */
  private frame({ kernel, left, top, width, height }: Frame): [SVGElement, SVGElement] {
    const [title, facts] = this.frameTitle(kernel);
    const on = kernel === this.store.cursor.kernel ? " on" : "";
    const attributes = { class: `frame ${kernelClass(kernel)}${on}`, "data-kernel": kernel };
    const says = (): SVGElement => s("title", {}, `Show the code of kernel ${kernel}, ${this.store.index.trace.kernels[kernel].name}`);
    const [name, what] = [{ class: "name", x: left + 12, y: top + 18 }, { class: "facts", x: left + 12, y: top + 34 }];
    return [
      s("g", attributes, says(), s("rect", { x: left, y: top, width, height, rx: 9 })),
      s("g", attributes, says(), s("text", name, title), s("text", what, facts)),
    ];
  }

  private tooltip(box: DrawnBox): string {
    if (box.members.length > 1) return `${box.members.length} nodes: ${box.label}, ${box.detail}\na double click draws them one by one`;
    const { index } = this.store;
    const node = index.node(box.node);
    const role = meaning("role", node.group);
    const does = [meaning("op", node.op), role === "" ? "" : `colour of ${node.group}: ${role}`].filter(Boolean).map((text) => `\n${text}`);
    const hidden = box.hidden > 0 ? `\n${count(box.hidden, "neighbour")} not drawn` : "";
    const name = node.name === "" ? "" : `\n${node.name} in Python`;
    const owner = node.kind === "lazybuffer" ? index.firstKernelOf.get(node.id) : undefined;
    const kernel = owner === undefined ? "" : `\nin ${kernelTitle(index.trace, owner)}`;
    const made = node.calls.length > 0 ? `\nmade by ${node.calls.join(" → ")}` : "";
    const open = this.opened.has(box.node) ? "\na double click draws its region as one box again" : "";
    return `${nodeText(node)}${node.dtype ? `\n${node.dtype}` : ""}${node.arg ? `\narg ${node.arg}` : ""}${name}${made}${kernel}${hidden}${does.join("")}${open}`;
  }

  /** The number of a box's kernel, where colours are kernels and no frame says which. */
  private badge(box: DrawnBox): string {
    const { index } = this.store;
    if (!this.isLazy || this.isFramed || this.colour !== "kernel" || this.drawnDetail === "kernels" || index.trace.kernels.length < 2) return "";
    return String(index.firstKernelOf.get(box.node) ?? "");
  }

  private boxClass(box: DrawnBox): string {
    const { index } = this.store;
    const node = index.node(box.node);
    const classes = ["box", `g-${node.group}`];
    if (node.kind === "lazybuffer") {
      const decision = index.decisionOf.get(node.id)?.decision;
      if (decision !== undefined) classes.push(`d-${decision}`);
      const kernel = index.firstKernelOf.get(node.id);
      if (this.colour === "kernel") classes.push(kernel === undefined ? "no-kernel" : kernelClass(kernel));
    }
    if (box.members.length > 1) classes.push("region");
    if (box.changed) classes.push("new");
    return classes.join(" ");
  }

  // *** acting on it ***

  private mark(): void {
    this.drawing.mark(this.finder.hits);
  }

  private tidy(): void {
    this.isTidied = true;
    this.drawnKey = "";
    this.draw("fit");
  }

  private spend(budget: number): void {
    this.budget = budget;
    this.draw("fit");
  }

  /** Only the selected nodes with what lies above and below; again: the whole graph. */
  isolate(): void {
    const lit = this.litBoxes();
    this.cone = this.cone !== null || lit.length === 0 ? null : new Set(lit);
    this.draw("fit");
  }

  /** What is selected, with its neighbours, whatever was isolated before. */
  private isolateSelected(): void {
    this.cone = null;
    this.hops = 1;
    this.draw();
    this.isolate();
  }

  /** Draws the region of a box one by one, or, of a box of an opened region, that region as one again. */
  private toggleRegion(box: DrawnBox): void {
    const open = this.opened.get(box.node);
    if (open !== undefined) for (const node of open) this.opened.delete(node);
    else if (box.members.length > 1) for (const node of box.members) this.opened.set(node, box.members);
    else return;
    this.draw();
  }

  /** Opens or closes the region of the selection. */
  toggleSelected(): void {
    const [id] = this.litBoxes();
    if (id !== undefined) this.toggleRegion(this.byId.get(id)!);
  }

  private byNode(): Map<number, number> {
    return new Map(this.drawn.boxes.flatMap((box) => box.members.map((node): [number, number] => [node, box.id])));
  }

  private litBoxes(): number[] {
    const { selected, related } = this.store;
    const own = this.drawn.boxes.filter((box) => holds(box, selected));
    const lit = own.length > 0 ? own : this.drawn.boxes.filter((box) => holds(box, related));
    return lit.map((box) => box.id);
  }

  private rectangles(ids: number[]): Rectangle[] {
    return ids.flatMap((id) => (this.byId.has(id) ? [this.drawing.frameOf(this.byId.get(id)!)] : []));
  }

  private selectBox(id: number): void {
    this.store.select(this.byId.get(id)!.members);
    this.camera.bringIntoSight(this.rectangles([id]));
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
    if (target !== undefined) this.selectBox(target);
  }

  /** Moves a single selected box out from under its card. */
  private uncover(): void {
    const [id, more] = this.litBoxes();
    const element = id === undefined || more !== undefined ? undefined : this.drawing.elements.get(id);
    if (element === undefined || this.card.element.hidden) return;
    const box = element.getBoundingClientRect();
    const card = this.card.element.getBoundingClientRect();
    if (box.left > card.right || box.bottom < card.top) return;
    this.camera.shift(card.top - box.bottom - 12);
  }

  private listen(): void {
    const { svg } = this.drawing;
    svg.addEventListener("dblclick", (event) => {
      const id = this.boxAt(event);
      if (id === null) this.fit();
      else this.toggleRegion(this.byId.get(id)!);
    });
    svg.addEventListener("mouseover", (event) => {
      const id = this.boxAt(event);
      this.store.hover(id === null ? [] : this.byId.get(id)!.members);
    });
    svg.addEventListener("mouseleave", () => this.store.hover([]));
  }

  private boxAt(event: Event): number | null {
    const group = (event.target as Element).closest?.<SVGGElement>("g.box[data-id]");
    return group ? Number(group.dataset.id) : null;
  }

  private choose(event: MouseEvent): void {
    const id = this.boxAt(event);
    const frame = (event.target as Element).closest?.<SVGGElement>("g.frame[data-kernel]");
    if (id === null && frame) this.store.go({ kernel: Number(frame.dataset.kernel) });
    const fate = (event.target as Element).closest?.<SVGGElement>("g.fate");
    const members = fate ? [Number(fate.dataset.src), Number(fate.dataset.dst)] : id === null ? [] : this.byId.get(id)!.members;
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
}
