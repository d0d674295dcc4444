// The graph: boxes coloured by role or by kernel, framed by kernel where they are LazyBuffers, laid out in layers that
// stay put from step to step.

import { button, h, replaceChildren } from "../dom";
import { count } from "../format";
import { type Frame, framedLayout } from "../frames";
import { fateBetween, fateText, markOf } from "../fusions";
import type { Layout } from "../layout";
import { Layouter } from "../layouter";
import { type DrawnBox, type DrawnGraph, Graphs, fold, wordsOf } from "../shown";
import type { Change, Store, View } from "../store";
import { nodeText } from "../tree";
import { knownVerdicts, verdictOn, verdictsOf } from "../verdicts";
import { Camera, type Rectangle } from "./camera";
import { Drawing, NOTHING, holds } from "./drawing";
import { Finder } from "./finder";
import { Regions } from "./folding";
import {
  boxClass,
  countedText,
  drawFrame,
  headingLength,
  hopChoice,
  kernelKeys,
  ownersOf,
  toneKeys,
  tooltip,
} from "./graphwords";
import { type Direction, neighbourOf } from "./neighbours";
import { NodeCard } from "./nodecard";

const BUDGET = 400;
const AFTER_MS = 600; // after the first picture verdicts are requested
const TITLE_CHARACTER = 7.4; // pixels, of a frame's heading

export class GraphView implements View {
  readonly element = h("section", { class: "graph", "aria-label": "Graph" });
  readonly graphs: Graphs;
  private readonly title = h("span", { class: "title" });
  private readonly tools = h("span", { class: "tools" });
  private readonly canvas = h("div", { class: "canvas" });
  private readonly legend = h("div", { class: "legend", role: "group", "aria-label": "What the colours mean" });
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly drawing: Drawing;
  private readonly camera: Camera;
  readonly finder: Finder;
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
  private isTidied = false; // the reader wants it laid out again
  private foldConstants = true;
  private foldIndex = true;
  private readonly regions: Regions;
  private budget = BUDGET;
  private cone: Set<number> | null = null;
  private hops: number | null = null;
  private asked = false; // for verdicts

  constructor(
    private readonly store: Store,
    private colour: "kernel" | "role" = "kernel",
  ) {
    this.graphs = new Graphs(store.index);
    this.regions = new Regions(store.index, (kernel) => verdictOn(knownVerdicts(store), kernel));
    this.drawing = new Drawing(store, {
      boxClass: (box) => boxClass(store.index, box, this.colour === "kernel"),
      tooltip: (box) => tooltip(store.index, box, this.regions.isOpened(box.node)),
      badge: (box) => this.badge(box),
      through: (nodes) => `through ${nodes.map((node) => nodeText(store.index.node(node))).join(" → ")}`,
      frame: (frame) => drawFrame(store, frame, verdictOn(knownVerdicts(store), frame.kernel)),
      markEdge: (edge, points) => {
        if (!this.isLazy || this.regions.areKernels) return null; // there every edge is cut
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
    this.card = new NodeCard(store, {
      graph: () => this.graphs.at(store.cursor).graph,
      isolate: () => this.isolate(),
      isIsolated: () => this.cone !== null,
    });
    const more = button(
      "⋯",
      "What is folded, and colours",
      () => this.tools.classList.toggle("open"),
      "quiet overflow",
    );
    const fit = button("fit", "Fit the graph into the view (F)", () => this.fit(), "quiet");
    const space = h("span", { class: "space" });
    const bar = h(
      "div",
      { class: "bar" },
      this.title,
      space,
      this.finder.input,
      this.finder.found,
      this.tools,
      more,
      fit,
    );
    this.canvas.append(this.drawing.svg, this.camera.minimap, this.working);
    this.element.append(bar, this.legend, h("div", { class: "sight" }, this.canvas), this.status);
    this.card.stand(this.canvas);
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

  /** The whole graph where its labels can be read so, else the part around one of `nodes` or, without any, the beginning. */
  openAt(nodes: readonly number[]): void {
    const { boxes } = this.drawn;
    const around = this.rectangles(boxes.filter(({ node }) => nodes.includes(node)).map(({ id }) => id));
    this.camera.open(around[0] ?? null, this.rectangles(boxes.map(({ id }) => id)));
  }

  // *** what is drawn ***

  /** Draws what the cursor points at, at once or, of a large graph, once it is laid out; then moves the camera. */
  private draw(move: "stay" | "fit" | "open" = "stay"): void {
    const { store } = this;
    const { graph: whole, family, stage } = this.graphs.at(store.cursor);
    const steps = stage === null ? 0 : Math.min(store.cursor.step, stage.steps.length);
    const key = JSON.stringify([
      family,
      stage?.id,
      stage?.id === store.cursor.stage ? steps : -1,
      this.foldConstants,
      this.foldIndex,
      this.budget,
      this.regions.key,
      this.hops,
      this.cone && [...this.cone],
      this.colour,
      store.cursor.kernel,
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
    const { graph, members } = this.regions.contracted(whole, this.isLazy, this.isSamePass);
    const keep = new Set<number>();
    for (const [id, { node }] of graph.nodes) if (store.selected.has(node)) keep.add(id);
    const next = fold(store.index.trace, graph, {
      constants: this.foldConstants,
      index: this.foldIndex,
      views: this.isLazy && this.regions.detail !== "views",
      budget: this.budget,
      cone: this.cone,
      hops: this.hops,
      keep,
      words: (node) => wordsOf(store.index, node, stage?.kernel ?? null),
      regions: this.regions.described(whole, members),
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
      else if (isNewFamily || move === "open")
        this.camera.open(
          move === "open" ? null : (changed[0] ?? null),
          this.rectangles(next.boxes.map(({ id }) => id)),
        );
      else this.camera.bringIntoSight(changed);
      this.card.draw(this.byNode());
    });
  }

  /** Lays the boxes out: LazyBuffers in the frames of their kernels. */
  private place(next: DrawnGraph, isNew: boolean, done: (placed: Layout, frames: Frame[]) => void): void {
    const { boxes, edges } = next;
    if (this.isLazy && this.colour === "kernel" && boxes.length <= BUDGET) {
      const owners = ownersOf(this.store.index, next, this.regions.areKernels, (node) => this.regions.isEarlier(node));
      const kernelOf = (id: number): number | null => owners.get(id) ?? null;
      const made = framedLayout(
        boxes,
        edges,
        kernelOf,
        (kernel) => headingLength(this.store.index, kernel) * TITLE_CHARACTER,
      );
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

  // *** words around the drawing ***

  private writeTitle(stage: string | null, step: number, steps: number, isBefore: boolean): void {
    const lazy = stage === null;
    const what = lazy ? "Tensor graph" : "UOp graph";
    const where = lazy
      ? count(this.drawn.total, "LazyBuffer")
      : step < steps
        ? `in ${stage}, ${step} of ${steps}`
        : `${isBefore ? "before" : "after"} ${stage}`;
    const swap = (): void =>
      this.store.go(lazy ? { graph: "uops", place: "passes" } : { graph: "lazy", place: "lazy" });
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
    const { hidden } = this.drawn;
    const openRegions = this.regions.openCount;
    const close = (): void => {
      this.regions.close();
      this.draw();
    };
    const go = (hops: number | null): void => {
      this.hops = hops;
      this.draw("fit");
    };
    replaceChildren(
      this.status,
      h("span", {}, countedText(this.drawn, this.cone !== null)),
      this.isLazy ? this.regions.earlierChoice(() => this.draw("open")) : null,
      openRegions > 0
        ? button(`close ${count(openRegions, "region")}`, "Draw what was opened as one box again", close)
        : null,
      hidden > 0 && this.cone === null ? button("show all", "Draw every node", () => this.spend(Infinity)) : null,
      this.budget > BUDGET ? button(`at most ${BUDGET}`, "Draw fewer nodes", () => this.spend(BUDGET)) : null,
      ...(this.cone === null
        ? []
        : [hopChoice(this.hops, go), button("whole graph", "Leave the dependency cone", () => this.isolate())]),
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
    const constants = toggle(
      "const",
      "Fold constants into the labels of their users",
      this.foldConstants,
      () => (this.foldConstants = !this.foldConstants),
    );
    if (this.isLazy) {
      const byKernel = toggle(
        "kernels",
        "Frame and colour by kernel instead of colouring by role",
        this.colour === "kernel",
        () => (this.colour = this.colour === "kernel" ? "role" : "kernel"),
      );
      replaceChildren(
        this.tools,
        this.regions.choice(() => this.draw("open")),
        constants,
        byKernel,
      );
      return;
    }
    const tidy = (): void => {
      [this.isTidied, this.drawnKey] = [true, ""];
      this.draw("fit");
    };
    replaceChildren(
      this.tools,
      toggle(
        "copies",
        "Draw the copies that unrolling made as one box; a double click opens one",
        this.regions.areTwinsOne,
        () => this.regions.flipTwins(),
      ),
      constants,
      button("tidy", "Lay the graph out again: from step to step boxes stay where they are", tidy, "quiet"),
      toggle(
        "index",
        "Fold index arithmetic into the addresses that use it",
        this.foldIndex,
        () => (this.foldIndex = !this.foldIndex),
      ),
    );
  }

  /** Which colour is which kernel, where colours are kernels and no frame says it. */
  private writeLegend(frames: readonly Frame[]): void {
    const isNeeded = this.isLazy && this.colour === "kernel" && frames.length === 0 && !this.regions.areKernels;
    const keys = isNeeded ? kernelKeys(this.store, this.drawn) : [];
    if (this.isLazy && this.regions.areKernels) this.wantVerdicts();
    if (frames.length > 0) {
      const shown = new Set(frames.map(({ kernel }) => kernel));
      keys.push(...toneKeys((knownVerdicts(this.store)?.rows ?? []).filter(({ kernel }) => shown.has(kernel ?? -1))));
      this.wantVerdicts();
    }
    this.legend.hidden = keys.length === 0;
    replaceChildren(this.legend, ...keys);
  }

  /** Requests the verdicts for the headings of kernels, once the first picture is there. */
  private wantVerdicts(): void {
    const { store } = this;
    if (this.asked || knownVerdicts(store) !== null || store.index.trace.ceilings.length === 0) return;
    this.asked = true;
    const redraw = (): void => {
      this.drawnKey = "";
      this.draw();
    };
    setTimeout(() => verdictsOf(store, redraw), AFTER_MS);
  }

  /** The number of a box's kernel, where colours are kernels and no frame says which. */
  private badge(box: DrawnBox): string {
    const { index } = this.store;
    if (
      !this.isLazy ||
      this.isFramed ||
      this.colour !== "kernel" ||
      this.regions.areKernels ||
      index.trace.kernels.length < 2
    )
      return "";
    return String(index.firstKernelOf.get(box.node) ?? "");
  }

  // *** acting on it ***

  private mark(): void {
    this.drawing.mark(this.finder.hits);
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

  private toggleRegion(id: number): void {
    if (this.regions.toggle(this.byId.get(id)!)) this.draw();
  }

  /** Opens or closes the region of the selection. */
  toggleSelected(): void {
    const [id] = this.litBoxes();
    if (id !== undefined) this.toggleRegion(id);
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
  walk(direction: Direction): void {
    const lit = this.litBoxes();
    const [from] = lit.length > 0 ? lit : this.drawn.boxes.slice(-1).map((box) => box.id);
    if (from === undefined) return;
    const target = lit.length === 0 ? from : neighbourOf(from, direction, this.drawn, this.placed);
    if (target !== undefined) this.selectBox(target);
  }

  /** Moves a single selected box out from under its card. */
  private uncover(): void {
    const [id, more] = this.litBoxes();
    const element = id === undefined || more !== undefined ? undefined : this.drawing.elements.get(id);
    if (element === undefined || this.card.element.hidden || this.card.isDocked) return;
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
      else this.toggleRegion(id);
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
    const word = (event.target as Element).closest?.<SVGTextElement>("text[data-verdict]");
    if (word) this.store.go({ kernel: Number(word.dataset.verdict), panel: "timing" });
    else if (id === null && frame) this.store.go({ kernel: Number(frame.dataset.kernel) });
    const fate = (event.target as Element).closest?.<SVGGElement>("g.fate");
    const members = fate
      ? [Number(fate.dataset.src), Number(fate.dataset.dst)]
      : id === null
        ? []
        : this.byId.get(id)!.members;
    if (event.shiftKey && members.length > 0) this.store.toggle(members);
    else this.store.select(members);
  }
}
