// The graph: boxes colored by role or by kernel, LazyBuffers framed by kernel, in a layered layout that is stable from
// step to step.

import { countText, isTensor, findLevel, levelOf } from "../dialect";
import { button, h, replaceChildren } from "../dom";
import { count } from "../format";
import type { Flow } from "../layout_direction";
import { type GraphFrame, layOutInFrames } from "../frame_layout";
import { type Mark, edgeDecisionBetween, edgeDecisionText, makeEdgeMark } from "../fusion_decisions";
import type { Box, Edge as Line, Layout } from "../layout";
import { LayoutWorker } from "../layout_worker";
import { arrangeGraph } from "../layout_unit";
import type { Stage } from "../model";
import type { TraceIndex } from "../trace_index";
import { operandWords } from "../matrix_products";
import { readSetting, saveSetting } from "../saved_settings";
import { type DrawnBox, type DrawnGraph, GraphReader, foldGraph, labelTextOf } from "../visible_graph";
import type { Change, Store, View } from "../store";
import { nodeText } from "../text_tree";
import { findStoredVerdicts, verdictOn, verdictsOf } from "../verdicts";
import { Camera, LEGIBLE, type Rectangle } from "./camera";
import { Drawing, NOTHING, containsAny } from "./drawing";
import { GraphSearchField } from "./graph_search_field";
import { RegionSelection } from "./region_selection";
import {
  boxClass,
  countedText,
  drawFrame,
  drawProduct,
  headingLength,
  makeHopChoice,
  makeKernelKeys,
  ownersOf,
  makeToneKeys,
  writeTooltip,
} from "./graph_labels";
import { Legend, listBoxSigns, listEdgeSigns, makeProductSign } from "./legend";
import { type Direction, findNeighbor } from "./arrow_keys";
import { NodeCard } from "./node_card";

const BUDGET = 400;
const AFTER_MS = 600; // delay of the request for verdicts after the first picture
const TITLE_CHARACTER = 7.4; // pixels per character of a frame's heading
const PRODUCT_HEADER = 20; // pixels
const BETTER = 1.05; // factor by which the other direction must have more room
const WIDE = 1.6; // aspect ratio from which on a graph too large to try both directions is laid out from left to right
const ARROWS: Record<Flow, string> = { down: "↓", right: "→" };
const FLOWS: Record<Flow | "auto", string> = {
  auto: "Direction: automatic, so that more fits. A click: left to right",
  right: "Direction: left to right. A click: top to bottom",
  down: "Direction: top to bottom. A click: automatic",
};
const NEXT_FLOW = { auto: "right", right: "down", down: "auto" } as const;

/** A graph before layout. */
interface Plan {
  next: DrawnGraph;
  family: string;
  stage: Stage | null;
  steps: number;
}

/** A graph after layout. */
interface LayoutResult {
  placed: Layout;
  frames: GraphFrame[];
}

export class GraphView implements View {
  readonly element = h("section", { class: "graph", "aria-label": "Graph" });
  readonly graphs: GraphReader;
  private readonly title = h("span", { class: "title" });
  private readonly tools = h("span", { class: "tools" });
  private readonly canvas = h("div", { class: "canvas" });
  private readonly room = h("div", { class: "room" });
  private readonly foot = h("div", { class: "foot" });
  private readonly legend = new Legend();
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly drawing: Drawing;
  private readonly camera: Camera;
  readonly finder: GraphSearchField;
  private readonly card: NodeCard;
  private readonly working = h("div", { class: "working", role: "status", hidden: true });
  private readonly layouter = new LayoutWorker((boxes) => this.writeWorking(boxes));
  private drawn: DrawnGraph = NOTHING;
  private byId = new Map<number, DrawnBox>();
  private placed: Layout = { positions: new Map(), width: 0, height: 0, left: 0, top: 0, edges: [] };
  private family = "";
  private drawnKey = "";
  private isLazy = false;
  private drawnStage: number | undefined;
  private isSamePass = false; // the same pass as before, so that boxes keep their positions
  private frames: readonly GraphFrame[] = [];
  private isTidied = false; // the user requests a new layout
  private foldConstants = true;
  private foldIndex = true;
  private readonly regions: RegionSelection;
  private budget = BUDGET;
  private flow: Flow = "down";
  private chosenFlow = parseFlow(readSetting("flow")); // the user's choice, for any graph
  private sizes: Record<Flow, Layout> | null = null; // the layouts in both directions
  private isFitted = false;
  private cone: Set<number> | null = null;
  private hops: number | null = null;
  private hasRequestedVerdicts = false; // whether verdicts were requested

  constructor(
    private readonly store: Store,
    private colorBy: "kernel" | "role" = "kernel",
  ) {
    this.graphs = new GraphReader(store.index);
    this.regions = new RegionSelection(store.index, (kernel) => verdictOn(findStoredVerdicts(store), kernel));
    this.drawing = new Drawing(store, {
      boxClass: (box) => boxClass(store.index, box, this.colorBy === "kernel"),
      tooltip: (box) => writeTooltip(store.index, box, this.regions.isOpened(box.node)),
      badge: (box) => this.writeBadge(box),
      through: (nodes) => `through ${nodes.map((node) => nodeText(store.index.node(node))).join(" → ")}`,
      frame: (frame) =>
        frame.product === null
          ? drawFrame(store, frame, verdictOn(findStoredVerdicts(store), frame.kernel))
          : drawProduct(frame, this.productTitle(frame.product)),
      markEdge: (edge, points, flow) => {
        if (!this.isLazy || this.regions.areKernels) return null; // between kernels every edge is cut
        const [src, dst] = [edge.src, edge.dst].map((id) => this.byId.get(id)!.members);
        const edgeDecision = edgeDecisionBetween(store.index, src, edge.through, dst);
        return edgeDecision === null
          ? null
          : makeEdgeMark(edgeDecision, points, edgeDecisionText(store.index, edgeDecision), flow);
      },
    });
    this.camera = new Camera(this.drawing.svg, this.drawing.world, this.canvas, this.room, {
      moved: () => {
        if (this.drawing.show(this.camera.zoom, this.camera.visibleArea(), this.camera.ahead)) this.mark();
      },
      clicked: (event) => this.choose(event),
      resized: (isUntouched) => this.onResize(isUntouched),
    });
    this.finder = new GraphSearchField(store, {
      boxes: () => this.drawn.boxes,
      nodes: () => [...this.graphs.graphAt(store.cursor).graph.nodes.values()].map(({ node }) => node),
      mark: () => this.mark(),
      show: (box) => this.selectBox(box.id),
      leave: () => this.element.closest<HTMLElement>(".tinyexplore")?.focus(),
    });
    this.card = new NodeCard(store, {
      graph: () => this.graphs.graphAt(store.cursor).graph,
      isolate: () => this.isolate(),
      isIsolated: () => this.cone !== null,
    });
    const more = button("⋯", "Folding and colors", () => this.tools.classList.toggle("open"), "quiet overflow");
    const fit = button("fit", "Fit the graph into the view (F)", () => this.fit(), "quiet");
    const space = h("span", { class: "space" });
    const bar = h(
      "div",
      { class: "bar" },
      this.title,
      space,
      this.finder.input,
      this.finder.matchCount,
      this.tools,
      more,
      fit,
    );
    this.canvas.append(this.drawing.svg, this.working);
    this.room.append(this.canvas, this.camera.minimap);
    this.card.updatePlacement(this.canvas);
    this.foot.append(this.legend.element, this.status);
    this.element.append(bar, this.room, this.foot);
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
      this.camera.keepPosition();
      this.card.draw(this.mapBoxes());
      if (!this.canvas.matches(":hover")) this.camera.bringIntoView(this.listRectangles(this.listLitBoxes()));
      this.moveFromCard();
    } else if (change.hover) this.mark();
  }

  focusSearch(): void {
    this.finder.focus();
  }

  /** Moves the focus to the card of the selected node. */
  focusCard(): void {
    this.card.focus();
  }

  /**
   * Shows the whole graph, with text of at least 11 pixels: parts without room are folded. If that is not enough, the
   * view starts at the selection, at changed nodes, or at the slowest kernel.
   */
  fit(): void {
    this.regions.unfit();
    const fits = (): boolean => {
      const { boxes } = this.plan().next;
      return boxes.length <= BUDGET && this.zoomOf() >= LEGIBLE;
    };
    if (!fits()) {
      const isSmaller = this.regions.coarser(this.isLazy).some((fold) => {
        this.regions.unfit();
        fold();
        return fits();
      });
      if (!isSmaller) this.regions.unfit();
    }
    this.draw("fit");
  }

  /** Shows the whole graph if its labels are legible, else the part around one of `nodes`, by default the beginning. */
  openAt(nodes: readonly number[]): void {
    const { boxes } = this.drawn;
    const around = this.listRectangles(boxes.filter(({ node }) => nodes.includes(node)).map(({ id }) => id));
    this.camera.open(around[0] ?? null, this.listRectangles(boxes.map(({ id }) => id)));
  }

  // *** content ***

  /** Returns the graph at the cursor, with folded parts. */
  private plan(): Plan {
    const { store } = this;
    const { graph: whole, family, stage } = this.graphs.graphAt(store.cursor);
    // else that of an earlier stage, after all its steps
    const isOwn = stage !== null && stage.id === store.cursor.stage;
    const steps = stage === null ? 0 : isOwn ? Math.min(store.cursor.step, stage.steps.length) : stage.steps.length;
    const { graph, members } = this.regions.contracted(whole, this.isLazy, this.isSamePass);
    const keep = new Set<number>();
    for (const [id, { node }] of graph.nodes) if (store.selected.has(node)) keep.add(id);
    const operands = new Set(this.isLazy ? this.regions.openProducts.flatMap((product) => product.operands) : []);
    const next = foldGraph(store.index.trace, graph, {
      constants: this.foldConstants,
      index: this.foldIndex,
      views: this.isLazy && this.regions.detail !== "views",
      budget: this.budget,
      cone: this.cone,
      hops: this.hops,
      keep,
      stay: operands,
      words: (node) =>
        this.isLazy && operands.has(node.id)
          ? operandWords(store.index, node)
          : labelTextOf(store.index, node, stage?.kernel ?? null),
      regions: this.regions.describeRegions(whole, members),
    });
    return { next, family, stage, steps };
  }

  /** Draws the graph at the cursor, immediately or (if it is large) after its layout; then moves the camera. */
  private draw(move: "stay" | "fit" | "open" = "stay"): void {
    const { store } = this;
    const { family, stage } = this.graphs.graphAt(store.cursor);
    const key = JSON.stringify([
      family,
      stage?.id,
      stage?.id === store.cursor.stage ? store.cursor.step : -1,
      this.foldConstants,
      this.foldIndex,
      this.budget,
      this.regions.key,
      this.hops,
      this.cone && [...this.cone],
      this.colorBy,
      this.chosenFlow,
      store.cursor.kernel,
    ]);
    if (key === this.drawnKey) {
      if (move !== "stay" && this.working.hidden) this.moveCamera(move);
      return;
    }
    this.drawnKey = key;
    const isNewFamily = family !== this.family;
    if (isNewFamily) {
      this.cone = null;
      this.regions.unfit();
    }
    this.isLazy = family === "lazy";
    this.isSamePass = !isNewFamily && stage?.id === this.drawnStage;
    const plan = this.plan();
    this.place(plan.next, isNewFamily, isNewFamily || move !== "stay", ({ placed, frames }) => {
      this.show(plan, placed, frames);
      const changed = this.listRectangles(plan.next.boxes.filter((box) => box.changed).map((box) => box.id));
      if (isNewFamily || move !== "stay") this.moveCamera(move === "fit" ? "fit" : "open");
      else this.camera.bringIntoView(changed);
      this.card.draw(this.mapBoxes());
    });
  }

  private show({ next, family, stage, steps }: Plan, placed: Layout, frames: GraphFrame[]): void {
    const { store } = this;
    [this.drawn, this.placed, this.family, this.drawnStage] = [next, placed, family, stage?.id];
    this.byId = new Map(next.boxes.map((box) => [box.id, box]));
    this.element.dataset.family = family;
    this.element.dataset.flow = this.flow;
    const fired = stage?.steps.slice(0, steps).filter((step) => step.rule !== null).length ?? 0;
    const isBefore = stage !== null && stage.transform !== null && steps < stage.steps.length;
    this.writeTitle(stage, fired, stage === null ? 0 : store.index.firings(stage), isBefore);
    this.writeStatus();
    this.writeTools();
    this.frames = frames;
    this.writeLegend(frames);
    this.drawing.build(next, placed, frames, this.camera.zoom, this.camera.ahead, this.flow);
    this.camera.cover(placed, next.boxes.length < 2 ? [] : this.drawing.boxPaths(), this.flow);
    (this.camera.isTall ? this.room : this.foot).append(this.camera.minimap);
    this.finder.run();
    this.mark();
  }

  /** Moves the camera to the whole drawing or, if it is larger, to its most important part. */
  private moveCamera(move: "fit" | "open"): void {
    this.isFitted = move === "fit";
    const { boxes } = this.drawn;
    const changed = boxes.filter((box) => box.changed).map(({ id }) => id);
    const [first] = this.listRectangles([...this.listLitBoxes(), ...changed]);
    this.camera.open(
      first ?? (move === "fit" ? this.findSlowest() : null),
      this.listRectangles(boxes.map(({ id }) => id)),
    );
  }

  /** Returns the frame, or the box, of the slowest kernel. */
  private findSlowest(): Rectangle | null {
    const { index } = this.store;
    if (!this.isLazy) return null;
    const time = (kernel: number): number => index.runOf(kernel)?.median_us ?? 0;
    const places = [
      ...this.frames
        .filter(({ product }) => product === null)
        .map(({ kernel, left, top, width, height }) => ({
          kernel,
          area: [left, top, left + width, top + height] as Rectangle,
        })),
      ...this.drawn.boxes.flatMap((box) => {
        const kernel = index.firstKernelOf.get(box.node);
        return kernel === undefined ? [] : [{ kernel, area: this.drawing.frameOf(box) }];
      }),
    ].sort((a, b) => time(b.kernel) - time(a.kernel));
    return places.length > 0 && time(places[0].kernel) > 0 ? places[0].area : null;
  }

  /**
   * Lays out the boxes, LazyBuffers in the frames of their kernels. `decide`: whether to select the better direction.
   */
  private place(next: DrawnGraph, isNew: boolean, decide: boolean, done: (laid: LayoutResult) => void): void {
    const { boxes, edges } = next;
    const before = this.flow;
    const isSmall = boxes.length <= BUDGET;
    if (this.chosenFlow !== "auto") this.flow = this.chosenFlow;
    else if (decide && isSmall) {
      const previous = isNew || this.isLazy ? undefined : this.placed.positions;
      if (previous === undefined) this.flow = this.chooseFlow(next);
    } else if (decide && isNew) this.flow = this.camera.ratio >= WIDE ? "right" : "down";
    if (this.isLazy && isSmall) {
      this.layouter.cancel();
      done(this.layOut(next, this.flow));
      return;
    }
    const isElsewhere = isNew || this.isLazy || this.isTidied || this.flow !== before;
    const previous = isElsewhere ? undefined : this.placed.positions;
    this.isTidied = false;
    const nodes = boxes.map(({ id, width, height }) => ({ id, width, height }));
    const lines = edges.map(({ src, dst }) => ({ src, dst }));
    const request = { nodes, edges: lines, previous, isStep: this.isSamePass, flow: this.flow };
    this.layouter.layOut(request, (placed) => done({ placed, frames: [] }));
  }

  /** Returns the layout of a small graph from scratch: LazyBuffers in the frames of their kernels and products. */
  private layOut(next: DrawnGraph, flow: Flow): LayoutResult {
    const { index } = this.store;
    const { boxes, edges } = next;
    const plain = (): LayoutResult => ({ placed: arrangeGraph({ nodes: boxes, edges, flow }), frames: [] });
    if (!this.isLazy) return plain();
    const productOf = new Map(this.regions.openProducts.flatMap(({ sum, members }) => members.map((id) => [id, sum])));
    const products = (
      nodes: DrawnGraph["boxes"] | readonly Box[],
      lines: readonly Line[],
    ): Layout & { frames?: GraphFrame[] } =>
      layOutInFrames(
        nodes,
        lines,
        (id) => productOf.get(id) ?? null,
        (sum) => (this.productTitle(sum).length + 2) * TITLE_CHARACTER,
        { flow, header: PRODUCT_HEADER },
      ) ?? arrangeGraph({ nodes, edges: lines, flow });
    if (this.colorBy !== "kernel") {
      const placed = products(boxes, edges);
      return { placed, frames: (placed.frames ?? []).map((frame) => ({ ...frame, product: frame.kernel })) };
    }
    const owners = ownersOf(index, next, this.regions.areKernels, (node) => this.regions.isEarlier(node));
    const framed = layOutInFrames(
      boxes,
      edges,
      (id) => owners.get(id) ?? null,
      (kernel) => headingLength(index, kernel) * TITLE_CHARACTER,
      { flow, inside: products },
    );
    return framed === null ? plain() : { placed: framed, frames: framed.frames };
  }

  private productTitle(sum: number): string {
    return this.regions.openProducts.find((product) => product.sum === sum)?.title ?? "";
  }

  /** Returns the direction in which more of a graph fits, and stores the layouts in both. */
  private chooseFlow(next: DrawnGraph): Flow {
    const sizes = { down: this.layOut(next, "down").placed, right: this.layOut(next, "right").placed };
    this.sizes = sizes;
    const isRight = this.camera.zoomFor(sizes.right) > BETTER * this.camera.zoomFor(sizes.down);
    return isRight ? "right" : "down";
  }

  /** Returns the zoom at which the planned graph fits, in the better or the selected direction. */
  private zoomOf(): number {
    const { next } = this.plan();
    if (this.chosenFlow !== "auto") return this.camera.zoomFor(this.layOut(next, this.chosenFlow).placed);
    const flow = this.chooseFlow(next);
    return this.camera.zoomFor(this.sizes![flow]);
  }

  /** Handles a change of the room: a fitted graph is fitted again, in the other direction if that is now better. */
  private onResize(isUntouched: boolean): boolean {
    this.legend.fitCanvas(this.camera.height);
    if (!isUntouched) return false;
    if (this.isFitted) {
      this.fit();
      return true;
    }
    if (this.sizes === null || this.chosenFlow !== "auto" || this.drawn.boxes.length > BUDGET) return false;
    const { down, right } = this.sizes;
    const isRight = this.camera.zoomFor(right) > BETTER * this.camera.zoomFor(down);
    if ((isRight ? "right" : "down") === this.flow) return false;
    this.drawnKey = "";
    this.family = "";
    this.draw("open");
    return true;
  }

  /** Cycles through the directions: automatic, down, right. */
  private cycleFlow(): void {
    this.chosenFlow = NEXT_FLOW[this.chosenFlow];
    saveSetting("flow", this.chosenFlow === "auto" ? null : this.chosenFlow);
    [this.isTidied, this.family] = [true, ""];
    this.draw("open");
  }

  /** Shows that a layout is being computed, over the current drawing. */
  private writeWorking(boxes: number | null): void {
    this.working.hidden = boxes === null;
    const stop = button("stop", "Draw fewer boxes instead", () => this.setBoxBudget(BUDGET), "quiet");
    replaceChildren(this.working, ...(boxes === null ? [] : [h("span", {}, `laying out ${boxes} boxes…`), stop]));
  }

  // *** texts around the drawing ***

  private writeTitle(stage: Stage | null, step: number, steps: number, isBefore: boolean): void {
    const lazy = stage === null;
    const { trace } = this.store.index;
    const tensors = findLevel(trace, "tensors");
    const root = isBefore ? stage?.before[0] : (stage?.after[0] ?? stage?.before[0]);
    const program = root === undefined ? findLevel(trace, "program") : levelOf(trace, trace.nodes[root]);
    if (this.family === "none") {
      replaceChildren(this.title, h("b", {}, "Graph"));
      return;
    }
    const what = lazy
      ? trace.dialect === null
        ? "Tensor graph"
        : `${tensors?.name ?? "Tensor"} graph`
      : `${program?.name ?? "UOp"} graph`;
    const where = lazy
      ? count(this.drawn.total, "node")
      : step < steps
        ? `in ${stage.name}, ${step} of ${steps}`
        : `${isBefore ? "before" : isGraphOf(this.store.index, stage) ? "of" : "after"} ${stage.name}`;
    const swap = (): void =>
      this.store.go(lazy ? { graph: "uops", place: "passes" } : { graph: "lazy", place: "lazy" });
    const other = lazy
      ? (program?.plural ?? "UOps")
      : trace.dialect === null
        ? "tensors"
        : (tensors?.plural ?? "tensors");
    const hasOther = trace.nodes.some((node) => !isTensor(trace, node) === lazy);
    replaceChildren(
      this.title,
      h("b", {}, what),
      h("span", { title: lazy ? countText(this.drawn.total, tensors) : where }, where),
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
    const unfold = (): void => {
      this.regions.unfit();
      this.draw("open");
    };
    const go = (hops: number | null): void => {
      this.hops = hops;
      this.draw("fit");
    };
    const isNone = this.drawn.total === 0 && this.cone === null;
    replaceChildren(
      this.status,
      h("span", {}, isNone ? "This stage has no graph." : countedText(this.drawn, this.cone !== null)),
      this.isLazy ? this.regions.earlierChoice(() => this.draw("open")) : null,
      this.regions.fittedWords === null
        ? null
        : h("span", { class: "fitted" }, `folded to fit: ${this.regions.fittedWords}`),
      this.regions.fittedWords === null
        ? null
        : button("unfold", "Unfold the graph. The minimap shows the visible part", unfold),
      openRegions > 0 ? button(`close ${count(openRegions, "region")}`, "Fold the opened regions again", close) : null,
      hidden > 0 && this.cone === null
        ? button("show all", "Draw every node", () => this.setBoxBudget(Infinity))
        : null,
      this.budget > BUDGET ? button(`at most ${BUDGET}`, "Draw fewer nodes", () => this.setBoxBudget(BUDGET)) : null,
      ...(this.cone === null
        ? []
        : [makeHopChoice(this.hops, go), button("whole graph", "Leave the dependency cone", () => this.isolate())]),
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
    const direction = button(ARROWS[this.flow], FLOWS[this.chosenFlow], () => this.cycleFlow(), "quiet direction");
    direction.setAttribute("aria-pressed", String(this.chosenFlow !== "auto"));
    const constants = toggle(
      "const",
      "Fold constants into the labels of their users",
      this.foldConstants,
      () => (this.foldConstants = !this.foldConstants),
    );
    if (this.isLazy) {
      const byKernel = toggle(
        "kernels",
        "Frame and color by kernel instead of by role",
        this.colorBy === "kernel",
        () => (this.colorBy = this.colorBy === "kernel" ? "role" : "kernel"),
      );
      replaceChildren(
        this.tools,
        this.regions.choice(() => this.draw("open")),
        constants,
        byKernel,
        direction,
      );
      return;
    }
    const recomputeLayout = (): void => {
      [this.isTidied, this.drawnKey] = [true, ""];
      this.draw("fit");
    };
    replaceChildren(
      this.tools,
      toggle(
        "copies",
        "Draw unrolled copies as one box. A double click opens a box",
        this.regions.areCopiesMerged,
        () => this.regions.toggleCopies(),
      ),
      constants,
      button("re-layout", "Compute the layout again. Steps keep the positions of boxes", recomputeLayout, "quiet"),
      toggle(
        "index",
        "Fold index arithmetic into the addresses that use it",
        this.foldIndex,
        () => (this.foldIndex = !this.foldIndex),
      ),
      direction,
    );
  }

  /** Draws the legend of colors and shapes on the canvas, with the colors of kernels that have no frame. */
  private writeLegend(frames: readonly GraphFrame[]): void {
    const { store, drawn } = this;
    const isByKernel = this.isLazy && this.colorBy === "kernel";
    const keys = isByKernel && frames.length === 0 && !this.regions.areKernels ? makeKernelKeys(store, drawn) : [];
    if (isByKernel && this.regions.areKernels) this.requestVerdicts();
    if (isByKernel && frames.length > 0) {
      const framedKernels = new Set(frames.map(({ kernel }) => kernel));
      keys.push(
        ...makeToneKeys(
          (findStoredVerdicts(store)?.rows ?? []).filter(({ kernel }) => framedKernels.has(kernel ?? -1)),
        ),
      );
      this.requestVerdicts();
    }
    const classes = new Set(drawn.boxes.map((box) => boxClass(store.index, box, isByKernel)));
    const marks = new Set<Mark>();
    for (const edge of this.isLazy && !this.regions.areKernels && drawn.boxes.length <= BUDGET ? drawn.edges : []) {
      const [src, dst] = [edge.src, edge.dst].map((id) => this.byId.get(id)!.members);
      const edgeDecision = edgeDecisionBetween(store.index, src, edge.through, dst);
      if (edgeDecision !== null) marks.add(edgeDecision.mark);
    }
    const hasViews = drawn.edges.some(({ through }) => through.length > 0);
    const signs = [
      ...listBoxSigns([...classes], isByKernel),
      ...listEdgeSigns(
        hasViews,
        this.placed.edges.some(({ long }) => long),
        marks,
      ),
    ];
    if (frames.some(({ product }) => product !== null)) signs.push(makeProductSign());
    this.legend.write(signs, keys);
  }

  /** Requests the verdicts for the headings of kernels, after the first picture. */
  private requestVerdicts(): void {
    const { store } = this;
    if (this.hasRequestedVerdicts || findStoredVerdicts(store) !== null || store.index.trace.ceilings.length === 0)
      return;
    this.hasRequestedVerdicts = true;
    const redraw = (): void => {
      this.drawnKey = "";
      this.draw();
    };
    setTimeout(() => verdictsOf(store, redraw), AFTER_MS);
  }

  /** Returns the number of a box's kernel, if colors are kernels and no frame shows it. */
  private writeBadge(box: DrawnBox): string {
    const { index } = this.store;
    if (
      !this.isLazy ||
      this.frames.length > 0 ||
      this.colorBy !== "kernel" ||
      this.regions.areKernels ||
      index.trace.kernels.length < 2
    )
      return "";
    return String(index.firstKernelOf.get(box.node) ?? "");
  }

  // *** actions ***

  private mark(): void {
    this.drawing.mark(this.finder.hits);
  }

  private setBoxBudget(budget: number): void {
    this.budget = budget;
    this.draw("fit");
  }

  /** Restricts the graph to the selection with its ancestors and descendants; a second call shows the whole graph. */
  isolate(): void {
    const lit = this.listLitBoxes();
    this.cone = this.cone !== null || lit.length === 0 ? null : new Set(lit);
    this.draw("fit");
  }

  /** Restricts the graph to the selection and its neighbors, replacing an earlier restriction. */
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
    const [id] = this.listLitBoxes();
    if (id !== undefined) this.toggleRegion(id);
  }

  private mapBoxes(): Map<number, number> {
    return new Map(this.drawn.boxes.flatMap((box) => box.members.map((node): [number, number] => [node, box.id])));
  }

  private listLitBoxes(): number[] {
    const { selected, related } = this.store;
    const selectedBoxes = this.drawn.boxes.filter((box) => containsAny(box, selected));
    const lit = selectedBoxes.length > 0 ? selectedBoxes : this.drawn.boxes.filter((box) => containsAny(box, related));
    return lit.map((box) => box.id);
  }

  private listRectangles(ids: number[]): Rectangle[] {
    return ids.flatMap((id) => (this.byId.has(id) ? [this.drawing.frameOf(this.byId.get(id)!)] : []));
  }

  private selectBox(id: number): void {
    this.store.select(this.byId.get(id)!.members);
    this.camera.bringIntoView(this.listRectangles([id]));
  }

  /** Moves the selection along an edge: to a source (up), a user (down), or a neighbor on the same layer. */
  walk(direction: Direction): void {
    const lit = this.listLitBoxes();
    const [from] = lit.length > 0 ? lit : this.drawn.boxes.slice(-1).map((box) => box.id);
    if (from === undefined) return;
    const target = lit.length === 0 ? from : findNeighbor(from, direction, this.drawn, this.placed, this.flow);
    if (target !== undefined) this.selectBox(target);
  }

  /** Moves a single selected box out from under the card. */
  private moveFromCard(): void {
    const [rectangle, more] = this.listRectangles(this.listLitBoxes());
    if (rectangle === undefined || more !== undefined || this.card.element.hidden) return;
    this.camera.reveal(rectangle);
  }

  private listen(): void {
    const { svg } = this.drawing;
    svg.addEventListener("dblclick", (event) => {
      const id = this.findBox(event);
      if (id === null) this.fit();
      else this.toggleRegion(id);
    });
    svg.addEventListener("mouseover", (event) => {
      const id = this.findBox(event);
      this.store.hover(id === null ? [] : this.byId.get(id)!.members);
    });
    svg.addEventListener("mouseleave", () => this.store.hover([]));
  }

  private findBox(event: Event): number | null {
    const group = (event.target as Element).closest?.<SVGGElement>("g.box[data-id]");
    return group ? Number(group.dataset.id) : null;
  }

  private choose(event: MouseEvent): void {
    const id = this.findBox(event);
    const frame = (event.target as Element).closest?.<SVGGElement>("g.frame[data-kernel]");
    const word = (event.target as Element).closest?.<SVGTextElement>("text[data-verdict]");
    const product = (event.target as Element).closest?.<SVGElement>("[data-product]");
    if (product?.matches("text")) {
      this.regions.toggleProduct(Number(product.dataset.product));
      this.draw();
      return;
    }
    if (word) this.store.go({ kernel: Number(word.dataset.verdict), panel: "timing" });
    else if (id === null && frame) this.store.go({ kernel: Number(frame.dataset.kernel) });
    const edgeMark = (event.target as Element).closest?.<SVGGElement>("g.edge-decision");
    const members = edgeMark
      ? [Number(edgeMark.dataset.src), Number(edgeMark.dataset.dst)]
      : id === null
        ? []
        : this.byId.get(id)!.members;
    if (event.shiftKey && members.length > 0) this.store.toggle(members);
    else this.store.select(members);
  }
}

/** Whether a stage of another compiler only has its graph, and is no pass that could rewrite one. */
function isGraphOf(index: TraceIndex, stage: Stage): boolean {
  const { id, before, after, transform } = stage;
  const isPass = !index.children.has(id) && index.textsOf(id).length === 0;
  return index.trace.dialect !== null && !isPass && transform === null && String(before) === String(after);
}

/** Parses a direction from the browser's storage. */
function parseFlow(text: string | null): Flow | "auto" {
  return text === "right" || text === "down" ? text : "auto";
}
