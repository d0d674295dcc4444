// The texts of the graph's boxes and frames: headings, tooltips, classes.

import { isTensor } from "../dialect";
import { button, h, s } from "../dom";
import { findMeaning } from "../term_meanings";
import { count, duration, truncate } from "../format";
import type { GraphFrame } from "../frame_layout";
import { KERNEL_HUES, readableName, kernelClass, kernelTitle } from "../kernel_labels";
import type { TraceIndex } from "../trace_index";
import { type DrawnBox, type DrawnGraph, countsOf } from "../visible_graph";
import type { Store } from "../store";
import { nodeText } from "../text_tree";
import { TONE_WORDS, type VerdictRow } from "../verdicts";

const MAX_KEYS = 12;
const MAX_FACTS = 36; // most characters below the name in a kernel's box
const WORD = 18; // characters that a frame's heading reserves for the word of its verdict
const HOPS = [1, 2, 3, null]; // null: all

/**
 * Returns a kernel's heading: its number and name; then the verdict or the program's name, the number of nodes, and
 * the time.
 */
export function frameTitle(index: TraceIndex, id: number, verdict?: VerdictRow): [string, string] {
  const kernel = index.trace.kernels[id];
  const run = index.runOf(id);
  const facts = [
    count(kernel.nodes.length, "node"),
    ...(run === null ? [] : [run.warm ? `median ${duration(run.median_us)}` : duration(run.median_us)]),
  ].join(" · ");
  const name = readableName(kernel);
  const program = name === kernel.name ? "" : truncate(kernel.name, MAX_FACTS - facts.length - 3);
  const code = verdict === undefined ? program : makeKindWord(verdict);
  return [`kernel ${id} · ${truncate(name, 28)}`, code === "" ? facts : `${code} · ${facts}`];
}

/** Returns the characters of a kernel's heading, including room for the word of its verdict if it has a time. */
export function headingLength(index: TraceIndex, id: number): number {
  const [title, facts] = frameTitle(index, id);
  return Math.max(title.length + (index.runOf(id)?.warm ? WORD : 0), facts.length);
}

/** Draws a kernel's frame, and its heading above the edges, with its verdict as a word at the right. */
export function drawFrame(
  { index, cursor }: Store,
  { kernel, left, top, width, height }: GraphFrame,
  verdict: VerdictRow | undefined,
): [SVGElement, SVGElement] {
  const [title, facts] = frameTitle(index, kernel);
  const on = kernel === cursor.kernel ? " on" : "";
  const attributes = { class: `frame ${kernelClass(kernel)}${on}`, "data-kernel": kernel };
  const says = (): SVGElement =>
    s("title", {}, `Show the code of kernel ${kernel}, ${index.trace.kernels[kernel].name}`);
  const [name, what] = [
    { class: "name", x: left + 12, y: top + 18 },
    { class: "facts", x: left + 12, y: top + 34 },
  ];
  return [
    s("g", attributes, says(), s("rect", { x: left, y: top, width, height, rx: 9 })),
    s(
      "g",
      attributes,
      says(),
      s("text", name, title),
      s("text", what, facts),
      ...drawWord(verdict, left + width - 12, top),
    ),
  ];
}

/** Draws the frame of a product inside of its kernel's, and its heading; a click on the heading folds it. */
export function drawProduct(
  { product, left, top, width, height }: GraphFrame,
  title: string,
): [SVGElement, SVGElement] {
  const attributes = { class: "frame product", "data-product": product };
  const says = s("title", {}, "A click draws the product as one box");
  const textAttributes = { class: "name", x: left + 10, y: top + 17, "data-product": product };
  return [
    s("g", attributes, s("rect", { x: left, y: top, width, height, rx: 7 })),
    s("g", attributes, s("text", textAttributes, says, `▾ ${title}`)),
  ];
}

/** Returns the kind of a verdict as a word; for noisy samples the likely kind with a question mark. */
function makeKindWord({ kind, likely }: VerdictRow): string {
  return kind === likely || likely === "unexplained" ? kind : `${likely}?`;
}

/** Returns the verdict as one colored word; a click on it opens its numbers. */
function drawWord(verdict: VerdictRow | undefined, right: number, top: number): SVGElement[] {
  if (verdict === undefined) return [];
  const { tone, text, kernel } = verdict;
  const says = s("title", {}, `${text}\nA click shows the numbers.`);
  const attributes = { class: `verdict-word tone-${tone}`, x: right, y: top + 18, "data-verdict": kernel ?? 0 };
  return [s("text", attributes, says, makeKindWord(verdict))];
}

/** Returns the legend of the verdicts' colors. */
export function makeToneKeys(verdicts: readonly VerdictRow[]): HTMLElement[] {
  const tones = new Set(verdicts.map(({ tone }) => tone));
  const keys = Object.entries(TONE_WORDS).filter(([tone]) => tones.has(tone));
  return keys.map(([tone, says]) => h("span", { class: `tone-key tone-${tone}` }, says));
}

/** Returns a box's classes; for a LazyBuffer its decision and, if colors are kernels, its kernel. */
export function boxClass(index: TraceIndex, box: DrawnBox, isByKernel: boolean): string {
  const node = index.node(box.node);
  const classes = ["box", `g-${node.group}`];
  if (isTensor(index.trace, node)) {
    const decision = index.decisionOf.get(node.id)?.decision;
    if (decision !== undefined) classes.push(`d-${decision}`);
    const kernel = index.firstKernelOf.get(node.id);
    if (isByKernel) classes.push(kernel === undefined ? "no-kernel" : kernelClass(kernel));
  }
  if (box.members.length > 1) classes.push("region");
  if (box.changed) classes.push("new");
  return classes.join(" ");
}

/** Returns the tooltip of a box. `isOpened`: whether its region was opened. */
export function writeTooltip(index: TraceIndex, box: DrawnBox, isOpened: boolean): string {
  if (box.members.length > 1)
    return `${box.members.length} nodes: ${box.label}, ${box.detail}\na double click draws them one by one`;
  const node = index.node(box.node);
  const role = findMeaning("role", node.group);
  const does = [findMeaning("op", node.op), role === "" ? "" : `color of ${node.group}: ${role}`]
    .filter(Boolean)
    .map((text) => `\n${text}`);
  const hidden = box.hidden > 0 ? `\n${count(box.hidden, "neighbor")} not drawn` : "";
  const name = node.name === "" ? "" : `\n${node.name} in Python`;
  const owner = isTensor(index.trace, node) ? index.firstKernelOf.get(node.id) : undefined;
  const kernel = owner === undefined ? "" : `\nin ${kernelTitle(index.trace, owner)}`;
  const origin = node.calls.length > 0 ? `\nmade by ${node.calls.join(" → ")}` : "";
  const open = isOpened ? "\na double click draws its region as one box again" : "";
  return `${nodeText(node)}${node.dtype ? `\n${node.dtype}` : ""}${node.arg ? `\narg ${node.arg}` : ""}${name}${origin}${kernel}${hidden}${does.join("")}${open}`;
}

/** Returns the kernel in whose frame a box is drawn: its own, or for a box without kernel that of its only reader. */
export function ownersOf(
  index: TraceIndex,
  { boxes, edges }: DrawnGraph,
  areKernels: boolean,
  isEarlier: (node: number) => boolean,
): Map<number, number> {
  const owners = new Map<number, number>();
  const users = new Map<number, Set<number | undefined>>();
  for (const box of [...boxes].reverse()) {
    const isKernel = (areKernels && box.members.length > 1) || isEarlier(box.node);
    const readers = [...(users.get(box.id) ?? [])];
    const adopts = index.node(box.node).group !== "buffer" && readers.length === 1 ? readers[0] : undefined;
    const kernel = isKernel ? undefined : (index.firstKernelOf.get(box.node) ?? adopts);
    if (kernel !== undefined) owners.set(box.id, kernel);
    for (const { src } of edges.filter(({ dst }) => dst === box.id))
      users.set(src, (users.get(src) ?? new Set()).add(kernel));
  }
  return owners;
}

/** Returns the legend of a graph's kernel colors. */
export function makeKernelKeys(store: Store, drawn: DrawnGraph): HTMLElement[] {
  const { index, cursor } = store;
  const visibleKernels = new Set(drawn.boxes.map((box) => index.firstKernelOf.get(box.node)));
  const kernels = index.trace.kernels.filter(({ id }) => visibleKernels.has(id));
  const keys: HTMLElement[] = kernels.slice(0, MAX_KEYS).map(({ id }) => {
    const choose = (): void => store.go({ kernel: id });
    const key = button(
      truncate(frameTitle(index, id)[0], 26),
      `Show the code of ${kernelTitle(index.trace, id)}`,
      choose,
      `key ${kernelClass(id)}`,
    );
    key.setAttribute("aria-pressed", String(id === cursor.kernel));
    return key;
  });
  const more = kernels.length - keys.length;
  if (more > 0) keys.push(h("span", { class: "faint" }, `and ${count(more, "kernel")} more`));
  if (kernels.length > KERNEL_HUES)
    keys.push(h("span", { class: "faint" }, `${KERNEL_HUES} colors, which repeat: the numbers identify the kernels`));
  return keys;
}

/** Returns the number of drawn nodes, and where all others are, as text. */
export function countedText(drawn: DrawnGraph, isCone: boolean): string {
  const { boxes, folded } = drawn;
  const { shown, inRegions, hidden, total } = countsOf(drawn);
  const regions = boxes.filter((box) => box.members.length > 1).length;
  const constants = folded.constants + folded.index;
  const parts = [`${shown} of ${total} shown`];
  if (regions > 0) parts.push(`${inRegions} in ${count(regions, "region")}`);
  if (constants > 0) parts.push(`${constants} folded into labels`);
  if (folded.views > 0) parts.push(`${count(folded.views, "view")} folded into edges`);
  if (hidden > 0) parts.push(isCone ? `${hidden} outside the dependency cone` : `${hidden} hidden`);
  return parts.join(", ");
}

/** Creates the control of the distance from the isolated nodes, in edges. */
export function makeHopChoice(chosen: number | null, go: (hops: number | null) => void): HTMLElement {
  const choices = HOPS.map((hops) => {
    const title = hops === null ? "Everything above and below" : `At most ${count(hops, "edge")} away`;
    const hopButton = button(hops === null ? "all" : String(hops), title, () => go(hops), "quiet");
    hopButton.setAttribute("aria-pressed", String(hops === chosen));
    return hopButton;
  });
  return h("span", { class: "hops" }, "edges away: ", ...choices);
}
