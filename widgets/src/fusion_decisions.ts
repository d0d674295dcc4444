// Shows the scheduler's decision on each edge between LazyBuffers.

import type { Flow } from "./layout_direction";
import { groupDigits } from "./format";
import { h, s } from "./dom";
import type { NumberComparison, Decision, FusionEdge } from "./model";
import type { TraceIndex } from "./trace_index";
import { nodeText } from "./text_tree";

export type Mark = FusionEdge["mark"];

/** An edge, with the scheduler's decision on its source LazyBuffer. */
export interface EdgeDecision extends FusionEdge {
  decision: Decision | undefined;
}

const WORDS: Record<string, string> = {
  fused: "fused: computed by the kernel that reads it",
  cut: "cut: one kernel stores it, another loads it",
  again: "fused again: computed by each kernel that reads it",
  read: "read: already in memory",
};

/** Returns the decision on the edge from `src` to `dst`, also through movements; null if no kernel computes `dst`. */
export function edgeDecisionOf(index: TraceIndex, src: number, dst: number): EdgeDecision | null {
  const edge = index.fusionEdge(src, dst);
  return edge === undefined ? null : { ...edge, decision: index.decisionOf.get(src) };
}

/** Returns the edge between two LazyBuffers, in either direction; null if neither reads the other. */
export function findEdgeBetween(index: TraceIndex, a: number, b: number): EdgeDecision | null {
  return edgeDecisionOf(index, a, b) ?? edgeDecisionOf(index, b, a);
}

/** Returns the decision on an edge between boxes: that of the node that leaves the first box; null if there is none. */
export function edgeDecisionBetween(
  index: TraceIndex,
  src: number[],
  through: number[],
  dst: number[],
): EdgeDecision | null {
  const reads = (node: number): number[] => [node, ...index.node(node).src];
  const read = new Set([...through, ...dst].flatMap(reads));
  const leaves = src.filter((node) => read.has(node)).at(-1) ?? src[src.length - 1];
  const edgeDecisions = dst.flatMap((node) => edgeDecisionOf(index, leaves, node) ?? []);
  const edgeDecision = edgeDecisions.find(({ mark }) => mark !== "cut") ?? edgeDecisions[0];
  return edgeDecision === undefined || edgeDecision.mark === "read" ? null : edgeDecision;
}

/** Returns the decision as text ("cut: it goes through memory …") with its reason and the compared numbers. */
export function edgeDecisionText(index: TraceIndex, { mark, src, decision }: EdgeDecision): string {
  const why =
    decision === undefined
      ? []
      : [
          `${nodeText(index.node(src))}: ${decision.decision}, ${decision.reason}`,
          ...decision.compared.map(comparisonText),
        ];
  return [WORDS[mark], ...why].join("\n");
}

export function comparisonText({ what, value, bound, over }: NumberComparison): string {
  const text = (number: number): string => groupDigits(Number(number.toPrecision(6)));
  return `${what}: ${text(value)}, ${over ? "over" : "within"} ${text(bound)}`;
}

/** Returns the numbers of a decision, one row each; a number above its bound is highlighted. */
export function makeComparisons({ compared }: { compared: NumberComparison[] }): Element {
  const rows = compared.map((comparison) =>
    h("li", { class: comparison.over ? "over" : null }, comparisonText(comparison)),
  );
  return h("ul", { class: "compared", "aria-label": "NumberComparison numbers" }, ...rows);
}

/** Returns the mark in the middle of an edge: two bars for cut, a dot for fused, a ring for computed again. */
export function makeEdgeMark(
  edgeDecision: EdgeDecision,
  points: readonly [number, number][],
  text: string,
  flow: Flow,
): SVGElement {
  const half = (points.length - 1) / 2;
  const [a, b] = [points[Math.floor(half)], points[Math.ceil(half)]];
  const [x, y] = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  // an edge starts and ends along the flow, and slants between
  const lean = flow === "down" ? [2, 1] : [1, 2];
  const straight = flow === "down" ? [0, 1] : [1, 0];
  const [dx, dy] = a === b ? straight : [lean[0] * (b[0] - a[0]), lean[1] * (b[1] - a[1])];
  const turn = edgeDecision.mark === "cut" ? ` rotate(${(Math.atan2(dy, dx) * (180 / Math.PI) - 90).toFixed(0)})` : "";
  const shape =
    edgeDecision.mark === "cut"
      ? s("path", { d: "M-7-3H7M-7 3H7" })
      : s("circle", { r: edgeDecision.mark === "fused" ? 2.6 : 3.6 });
  const attributes = {
    class: `edge-decision ${edgeDecision.mark}`,
    "data-src": edgeDecision.src,
    "data-dst": edgeDecision.dst,
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})${turn}`,
  };
  return s("g", attributes, s("title", {}, text), s("circle", { class: "target", r: 10 }), shape);
}
