// Third page: the cuts of the graph into kernels, with one reason for each cut.

import { type Child, h, replaceChildren } from "../dom";
import { bytes, count, figuresText, truncate } from "../format";
import { readableName } from "../kernel_labels";
import type { Decision, KernelInfo } from "../model";
import type { TraceIndex } from "../trace_index";
import type { Store } from "../store";
import { type OpGraph, listComputing, buildOpGraph } from "./op_graph";
import { type Page, bold, code } from "./page";
import { type Room, type Size, columnsOf, fitBoxes } from "./box_layout";
import { Scene, type SceneEdge, type SceneFrame, type SceneNode, type SceneState } from "./scene";
import { SIZES, makeDrawable, squeezeSizes, stateOf } from "./tensors";

const HEAD = 46; // height of a frame's heading
const PAD = 14;
const MOST_CARDS = 3;
const BOXES: readonly Size[] = [
  { w: 236, h: 82, gapX: 44, gapY: 24 },
  { w: 196, h: 66, gapX: 30, gapY: 16 },
  { w: 168, h: 54, gapX: 18, gapY: 9 },
];

/** A decision of the scheduler as a card: title, number, and reason. */
export interface Cut {
  node: number;
  kind: "cut" | "kept" | "fused";
  title: string;
  number: string;
  text: string;
}

/** Returns the cuts with the largest memory first, then fused values that several loops read. */
export function cutsOf(index: TraceIndex, graph: OpGraph): Cut[] {
  const { trace } = index;
  const decisions = trace.stages.flatMap((stage) => stage.decisions);
  const name = (id: number): string => {
    const op = graph.opOf.get(id);
    const ownOp = op === undefined ? null : graph.ops[op];
    if (ownOp === null) return trace.nodes[id].label;
    const expression = ownOp.expression === null ? null : graph.expressions[ownOp.expression];
    const isLast = expression !== null && expression.nodes.filter((node) => graph.opOf.has(node)).at(-1) === id;
    return isLast ? truncate(expression.short, 30) : `“${ownOp.label}”`;
  };
  const size = (id: number): number => bytesOf(index, id);
  const isComputed = (id: number): boolean => {
    const op = graph.opOf.get(id);
    return op !== undefined && graph.ops[op].kind !== "input";
  };
  const stored = decisions.filter(
    ({ node, decision, legality_error, reason }) =>
      decision === "realize" && !/output of the program|asked for/.test(legality_error + reason) && isComputed(node),
  );
  const rowBuffers = decisions.filter(({ decision, node }) => decision === "keep" && isComputed(node));
  const cards = [
    ...stored
      .sort((a, b) => size(b.node) - size(a.node))
      .map(
        (comparison): Cut => ({
          node: comparison.node,
          kind: "cut",
          title: `Cut after ${name(comparison.node)}`,
          number: numberOf(comparison) || `${bytes(size(comparison.node))} stored`,
          text: writeSentence(comparison.reason, size(comparison.node)),
        }),
      ),
    ...rowBuffers.map(
      (comparison): Cut => ({
        node: comparison.node,
        kind: "kept",
        title: `Not cut: ${name(comparison.node)}`,
        number: "", // the sentence contains the size of the row
        text: capitalize(`${comparison.reason}. The operation needs no kernel of its own.`),
      }),
    ),
  ];
  if (cards.length === 0) {
    const fused = decisions.filter(({ decision, node }) => decision === "fuse" && isComputed(node));
    for (const fusedNode of fused.slice(0, 2))
      cards.push({
        node: fusedNode.node,
        kind: "fused",
        title: `Not cut: ${name(fusedNode.node)}`,
        number: numberOf(fusedNode),
        text: capitalize(`${fusedNode.reason}.`),
      });
  }
  return cards.slice(0, MOST_CARDS);
}

function numberOf({ compared }: Decision): string {
  const over =
    compared.find((comparison) => comparison.over && /times/.test(comparison.what)) ??
    compared.find((comparison) => /times/.test(comparison.what));
  return over === undefined
    ? ""
    : `computed ${over.value === 1 ? "once" : `${formatPlain(over.value)} times`}${over.over ? `, limit ${formatPlain(over.bound)}` : ""}`;
}

/** "393", "1.5", "4". */
function formatPlain(value: number): string {
  return figuresText(value)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

function writeSentence(reason: string, size: number): string {
  return `${capitalize(reason)}. Stored once instead: ${bytes(size)}.`;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function bytesOf({ trace }: TraceIndex, node: number): number {
  const { shape, dtype } = trace.nodes[node];
  const each = /64/.test(dtype) ? 8 : /16/.test(dtype) ? 2 : /8|bool/.test(dtype) ? 1 : 4;
  return (shape ?? []).reduce<number>((all, size) => all * Number(size), 1) * each;
}

interface KernelLayout {
  state: SceneState;
  height: number;
}

export class KernelsPage implements Page {
  readonly element = h("div", { class: "story-kernels" });
  readonly beat = 1900;
  private readonly graph: OpGraph;
  private readonly cuts: Cut[];
  private readonly scene = new Scene("Kernels and the operations in them");
  private readonly stage = h(
    "div",
    { class: "stage", tabindex: 0, role: "group", "aria-label": "Kernels and their operations" },
    this.scene.element,
  );
  private readonly cards = h("div", { class: "cuts" });
  private whole: SceneState | null = null;
  private framed: KernelLayout | null = null;
  private step = 0;
  private readonly sizes = new ResizeObserver(() => this.layOut());

  constructor(private readonly store: Store) {
    this.graph = buildOpGraph(store.index);
    this.cuts = cutsOf(store.index, this.graph);
    replaceChildren(
      this.cards,
      ...this.cuts.map(({ kind, title, number, text, node }) =>
        h(
          "section",
          { class: `cut ${kind}` },
          h("h3", {}, title),
          number === "" ? null : h("b", { class: "number" }, number),
          h("p", {}, text),
          h(
            "button",
            { type: "button", class: "link", title: "Select it in the graph", onclick: () => store.select([node]) },
            "select",
          ),
        ),
      ),
    );
    this.element.append(this.stage, this.cards);
    this.sizes.observe(this.stage);
  }

  get count(): number {
    return 2 + this.cuts.length;
  }

  private layOut(): void {
    const room = { width: this.stage.clientWidth, height: this.stage.clientHeight };
    if (room.width < 50) return;
    const drawn = makeDrawable(this.graph, room);
    this.whole = drawn.groups.length === this.graph.ops.length ? stateOf(drawn) : null;
    this.framed =
      (this.whole === null ? null : placeInFrames(this.store.index, this.graph, room)) ??
      placeBoxes(this.store.index, this.graph, room);
    this.scene.resize(room.width, Math.max(room.height, this.framed.height));
    this.draw(0);
  }

  show(step: number, ms: number): void {
    this.step = step;
    this.cards.querySelectorAll(".cut").forEach((card, i) => {
      card.classList.toggle("off", step < i + 2);
      card.classList.toggle("on", step === i + 2);
    });
    this.draw(ms);
  }

  private draw(ms: number): void {
    if (this.framed === null) return;
    if (this.step === 0 && this.whole !== null) return this.scene.set(this.whole, ms);
    const cut = this.cuts[this.step - 2];
    const op = cut === undefined ? undefined : this.graph.opOf.get(cut.node);
    const marked = op === undefined ? "" : `n${op}`;
    const { state } = this.framed;
    const kernel = cut === undefined ? undefined : this.store.index.firstKernelOf.get(cut.node);
    const nodes = state.nodes.map((node) =>
      node.id === marked || (node.id === `k${kernel}` && cut !== undefined)
        ? { ...node, cls: `${node.cls} match` }
        : node,
    );
    this.scene.set({ ...state, nodes }, ms);
  }

  head(step: number): Child[] {
    const { earlier } = this.store.index;
    const kernels = ownKernels(this.store.index);
    const first =
      earlier.size === 0
        ? ""
        : ` ${count(earlier.size, "kernel")} more compute${earlier.size === 1 ? "s" : ""} inputs first.`;
    const all = listComputing(this.graph).length;
    const number = kernels.length === 1 ? "one kernel" : count(kernels.length, "kernel");
    const start = [`${count(all, "operation")} become${all === 1 ? "s" : ""} `, bold(number), ".", first];
    const cut = this.cuts[step - 2];
    if (cut !== undefined) return [...start, " ", bold(`${cut.title}.`), ` ${cut.text}`];
    const cuts = this.cuts.filter(({ kind }) => kind === "cut");
    if (kernels.length === 1) return [...start, " No tensor between them is stored in memory."];
    if (cuts.length === 0) return start;
    const [largest] = cuts;
    const name = largest.title.replace(/^Cut after /, "");
    return [...start, " The largest cut: after ", code(name), "."];
  }

  caption(step: number): string {
    if (step === 0) return "the graph before the cuts";
    return step === 1 ? "a frame for each kernel" : this.cuts[step - 2].title;
  }

  destroy(): void {
    this.sizes.disconnect();
    this.scene.stop();
  }
}

/** Returns the kernels of values requested inside the capture. */
function ownKernels(index: TraceIndex): KernelInfo[] {
  return index.trace.kernels.filter(({ id }) => !index.earlier.has(id));
}

/** Places every operation in the frame of its kernel, the frames in execution order; null if there is no room. */
function placeInFrames(index: TraceIndex, graph: OpGraph, room: Room): KernelLayout | null {
  for (const bands of [1, 9]) {
    for (const size of SIZES) {
      const laid = placeInFramesAt(index, graph, room, size, bands);
      if (laid !== null) return laid;
    }
  }
  return null;
}

function placeInFramesAt(
  index: TraceIndex,
  graph: OpGraph,
  room: Room,
  size: Size,
  limit: number,
): KernelLayout | null {
  const kernels = ownKernels(index);
  const kernelOf = graph.ops.map(({ id, kind }) => (kind === "input" ? undefined : index.firstKernelOf.get(id)));
  const frames: (SceneFrame & { kernel: KernelInfo; ops: number[]; columns: number[]; rows: number[] })[] = [];
  for (const kernel of kernels) {
    const kernelOps = graph.ops.map((_, i) => i).filter((i) => kernelOf[i] === kernel.id);
    const positions = new Map(kernelOps.map((op, i) => [op, i]));
    const columns = columnsOf(
      kernelOps.map((op) => graph.ops[op].sources.flatMap(({ op: from }) => positions.get(from) ?? [])),
    );
    const filled: number[] = [];
    const rows = columns.map((column) => {
      filled[column] = (filled[column] ?? 0) + 1;
      return filled[column] - 1;
    });
    const wide = Math.max(1, filled.length);
    const tall = Math.max(1, ...filled.map((n) => n ?? 0));
    const title = readableName(kernel);
    const w = Math.max(2 * PAD + wide * size.w + (wide - 1) * size.gapX, 150);
    const hgt = HEAD + PAD + tall * size.h + (tall - 1) * size.gapY;
    const frameTitle = truncate(`${kernel.id} · ${title}`, Math.floor((w - 20) / 7.2));
    frames.push({
      id: String(kernel.id),
      x: 0,
      y: 0,
      w,
      h: hgt,
      title: frameTitle,
      sub: truncate(kernel.name, Math.floor((w - 20) / 6.8)),
      hue: hueOf(kernel.id),
      kernel,
      ops: kernelOps,
      columns,
      rows,
    });
  }
  return arrangeFrames(frames, graph, room, size, limit);
}

function hueOf(kernel: number): number {
  return [210, 75, 300, 30, 165, 260, 350, 120][kernel % 8];
}

type Block = SceneFrame & { ops: number[]; columns: number[]; rows: number[] };

function arrangeFrames(frames: Block[], graph: OpGraph, room: Room, size: Size, limit: number): KernelLayout | null {
  const gap = Math.max(34, size.gapX);
  const inputs = graph.ops.map((op, i) => ({ op, i })).filter(({ op }) => op.kind === "input");
  const inputSize = { w: Math.min(size.w, 84), h: Math.min(size.h, 46) };
  const bands: Block[][] = [[]];
  const left = inputs.length > 0 ? inputSize.w + gap : 0;
  let x = left;
  for (const frame of frames) {
    if (frame.w > room.width - left) return null;
    if (x + frame.w > room.width && bands[bands.length - 1].length > 0) {
      bands.push([]);
      x = left;
    }
    bands[bands.length - 1].push(frame);
    x += frame.w + gap;
  }
  if (bands.length > limit) return null;
  const heights = bands.map((band) => Math.max(...band.map((frame) => frame.h)));
  const total = heights.reduce((sum, value) => sum + value, 0) + (bands.length - 1) * 24;
  if (total > room.height - 4) return null;
  const spare = Math.min((room.height - total) / (bands.length + 1), 46);
  let y = Math.max(2, (room.height - total - spare * (bands.length - 1)) / 2);
  bands.forEach((band, k) => {
    const used = band.reduce((sum, frame) => sum + frame.w, 0) + (band.length - 1) * gap;
    const more = Math.max(0, (room.width - left - used - 2) / band.length);
    let x = left;
    for (const frame of band) {
      frame.w += Math.min(more, frame.w * 0.8);
      Object.assign(frame, { x, y, h: heights[k] });
      x += frame.w + gap;
    }
    y += heights[k] + 24 + spare;
  });
  const nodes: SceneNode[] = [];
  const letters = Math.floor((size.w - 10) / 6.9);
  for (const frame of frames) {
    const wide = Math.max(0, ...frame.columns);
    const counts = frame.columns.reduce<number[]>((all, column) => {
      all[column] = (all[column] ?? 0) + 1;
      return all;
    }, []);
    const step = wide === 0 ? 0 : (frame.w - 2 * PAD - size.w) / wide;
    frame.ops.forEach((op, i) => {
      const { label, shape, kind, size: dims, code: text } = graph.ops[op];
      const numbers = squeezeSizes(dims);
      const inner = frame.h - HEAD - PAD;
      const rows = counts[frame.columns[i]];
      nodes.push({
        id: `n${op}`,
        x: frame.x + (wide === 0 ? frame.w / 2 : PAD + size.w / 2 + frame.columns[i] * step),
        y:
          frame.y +
          HEAD +
          inner / 2 +
          (frame.rows[i] - (rows - 1) / 2) * Math.min(inner / rows, size.h + size.gapY * 2),
        w: size.w,
        h: size.h,
        label: truncate(label, letters),
        sub: [truncate(shape, letters + 1)],
        cls: kind,
        grid: size.h >= 80 && numbers.length > 0 ? [numbers.at(-2) ?? 1, numbers.at(-1)!] : null,
        title: `${label} · ${text} · ${shape}`,
      });
    });
  }
  placeInputs(inputs, graph, nodes, inputSize, room);
  const edges = graph.ops.flatMap(({ sources }, i): SceneEdge[] =>
    sources.map(({ op, view }) => ({ from: `n${op}`, to: `n${i}`, cls: chooseClass(view, op, i, frames) })),
  );
  return { state: { nodes, edges, frames }, height: total };
}

function chooseClass(view: string, from: number, to: number, frames: readonly Block[]): string {
  const frame = (op: number): Block | undefined => frames.find(({ ops }) => ops.includes(op));
  const [a, b] = [frame(from), frame(to)];
  return a !== undefined && b !== undefined && a !== b ? "cut" : view === "" ? "" : "view";
}

/** Places inputs left of the frames, at the height of their first reader. */
function placeInputs(
  inputs: readonly { op: OpGraph["ops"][number]; i: number }[],
  graph: OpGraph,
  nodes: SceneNode[],
  size: { w: number; h: number },
  room: Room,
): void {
  const positions = new Map(nodes.map((node) => [node.id, node]));
  const positioned = inputs.map(({ op, i }) => {
    const reader = graph.ops.findIndex(({ sources }) => sources.some((source) => source.op === i));
    return { op, i, y: positions.get(`n${reader}`)?.y ?? room.height / 2 };
  });
  positioned.sort((a, b) => a.y - b.y || a.i - b.i);
  const step = Math.min(size.h + 12, room.height / Math.max(1, positioned.length));
  const first =
    positioned.reduce((sum, { y }) => sum + y, 0) / Math.max(1, positioned.length) -
    (step * (positioned.length - 1)) / 2;
  const top = Math.max(size.h / 2 + 2, Math.min(first, room.height - step * (positioned.length - 1) - size.h / 2));
  positioned.forEach(({ op, i }, k) => {
    const letters = Math.floor((size.w - 8) / 6.9);
    nodes.push({
      id: `n${i}`,
      x: size.w / 2 + 1,
      y: top + k * step,
      w: size.w,
      h: Math.min(size.h, step - 4),
      label: truncate(op.label, letters),
      sub: step < 40 ? [] : [truncate(op.shape, letters + 1)],
      cls: "input",
      title: `${op.label} · ${op.shape}`,
    });
  });
}

/** Returns one box per kernel, if there is no room for their operations. */
function placeBoxes(index: TraceIndex, graph: OpGraph, room: Room): KernelLayout {
  const { trace } = index;
  const kernels = ownKernels(index);
  const writer = new Map<number, number>();
  const sources = kernels.map((kernel, i) => {
    const reads = new Set(kernel.nodes.flatMap((id) => trace.nodes[id].src));
    const from = [...writer].filter(([node]) => reads.has(node)).map(([, id]) => id);
    for (const root of kernel.roots) writer.set(root, i);
    return [...new Set(from)];
  });
  const position =
    fitBoxes(sources, room, BOXES) ??
    fitBoxes(sources, { ...room, height: Number.POSITIVE_INFINITY }, BOXES.slice(-1))!;
  const { size, centers } = position;
  const letters = Math.floor((size.w - 12) / 6.9);
  const nodes = kernels.map((kernel, i): SceneNode => {
    const opCount = listComputing(graph).filter(({ id }) => index.firstKernelOf.get(id) === kernel.id).length;
    const what = opCount === 0 ? "" : `${count(opCount, "operation")} → `;
    const lines = [`${what}${bytes(kernel.bytes_written)}`, kernel.name];
    return {
      id: `k${kernel.id}`,
      x: centers[i][0],
      y: centers[i][1],
      w: size.w,
      h: size.h,
      label: truncate(`${kernel.id} · ${readableName(kernel)}`, letters),
      sub: lines.slice(0, size.h > 60 ? 2 : 1).map((line) => truncate(line, letters + 2)),
      cls: "kernel",
      title: `${readableName(kernel)} · ${kernel.name}`,
    };
  });
  const edges = sources.flatMap((from, i) =>
    from.map((source) => ({ from: `k${kernels[source].id}`, to: `k${kernels[i].id}`, cls: "cut" })),
  );
  return { state: { nodes, edges }, height: Math.max(...centers.map(([, y]) => y + size.h)) };
}
