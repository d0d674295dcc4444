// Products in the graph of LazyBuffers: a multiplication of two operands, one of them repeated along an axis, and the
// sum of the results. Matrix products and convolutions are products.

import { truncate } from "./format";
import { readableName } from "./kernel_labels";
import type { Node } from "./model";
import type { TraceIndex } from "./trace_index";
import type { GraphSnapshot } from "./replay";
import { spanText } from "./source_spans";

export interface ProductGroup {
  /** Display id of the sum. */
  sum: number;
  multiply: number;
  /** Display ids of the operands that the multiplication reads: views that only this product reads. */
  operands: number[];
  /** Display ids of all nodes in graph order; the sum is the last. */
  members: number[];
  /** "x @ w: multiply, then sum over k" */
  title: string;
  /** "64×32×48 → 64×32" */
  shapes: string;
}

const LONGEST_NAME = 24;

/** Returns every product, by the node of its sum. */
export function productsOf(index: TraceIndex, graph: GraphSnapshot): Map<number, ProductGroup> {
  const users = new Map<number, number[]>();
  for (const [id, { src }] of graph.nodes)
    for (const source of new Set(src)) users.set(source, [...(users.get(source) ?? []), id]);
  const order = new Map([...graph.nodes.keys()].map((id, i) => [id, i]));
  const roots = new Set(graph.root);
  const node = (id: number): Node => index.node(graph.nodes.get(id)!.node);
  const isOwn = (id: number, user: number): boolean =>
    !roots.has(id) && (users.get(id) ?? []).every((other) => other === user);
  const groups = new Map<number, ProductGroup>();
  const frames: (number | null)[] = []; // the Python line of each product
  for (const [sum, { src }] of graph.nodes) {
    const [multiply] = src;
    if (node(sum).op !== "REDUCE_AXIS" || !node(sum).detail.startsWith("ADD ")) continue;
    if (node(multiply).op !== "MUL" || !isOwn(multiply, sum)) continue;
    const chains = graph.nodes.get(multiply)!.src.map((top) => {
      const chain: number[] = [];
      let [id, user] = [top, multiply];
      while (node(id).group === "movement" && graph.nodes.get(id)!.src.length === 1 && isOwn(id, user)) {
        chain.push(id);
        [id, user] = [graph.nodes.get(id)!.src[0], id];
      }
      return chain;
    });
    if (!chains.flat().some((id) => node(id).op === "EXPAND")) continue;
    const members = [...new Set([...chains.flat(), multiply, sum])].sort((a, b) => order.get(a)! - order.get(b)!);
    const operands = [...new Set(chains.flatMap(([last]) => (last === undefined ? [] : [last])))];
    frames.push(node(sum).user);
    groups.set(node(sum).id, { sum, multiply, operands, members, title: "", shapes: "" });
  }
  for (const product of groups.values()) {
    const [sum, multiply] = [node(product.sum), node(product.multiply)];
    const isAlone = frames.filter((user) => user === sum.user).length === 1;
    product.title = `${truncate(nameOf(index, sum, multiply, isAlone), LONGEST_NAME)}: multiply, then sum over ${axesOf(sum)}`;
    product.shapes = `${shapeOf(multiply)} → ${shapeOf(sum)}`;
  }
  return groups;
}

function axesOf({ detail }: Node): string {
  const count = (/over ([\d, ]+)/.exec(detail)?.[1] ?? "").split(",").filter((axis) => axis.trim() !== "").length;
  return count === 1 ? "k" : `${count} axes`;
}

function shapeOf({ shape }: Node): string {
  return (shape ?? []).filter((size) => size !== 1).join("×") || "1";
}

/** Returns the user's expression if it created one product, else the operands, else the name of the kernel. */
function nameOf(index: TraceIndex, sum: Node, multiply: Node, isAlone: boolean): string {
  const frame = index.frameOf(sum.id, null);
  const expression = frame === null ? "" : spanText(index, frame);
  if (expression !== "" && isAlone && !expression.startsWith(".")) return expression;
  const [a, b] = multiply.src.map((id) => operandName(index, id));
  if (sum.calls[0] === "conv2d" && a !== "" && b !== "") return `conv2d of ${a} and ${b}`;
  if (a !== "" && b !== "" && sum.calls.some((call) => call.includes("matmul"))) return `${a} @ ${b}`;
  const kernel = index.firstKernelOf.get(sum.id);
  const info = kernel === undefined ? undefined : index.trace.kernels[kernel];
  return info === undefined || readableName(info) === info.name ? "product" : readableName(info);
}

/** Returns the Python name of the tensor below a node's views; "" if it has none. */
export function operandName(index: TraceIndex, id: number): string {
  let node = index.node(id);
  while (node.name === "" && node.group === "movement" && node.src.length === 1) node = index.node(node.src[0]);
  return node.name;
}

/** Returns the text of a view as an operand of a product: "EXPAND x", "64×48 → 64×32×48". */
export function operandWords(index: TraceIndex, node: Node): { label: string; detail: string } {
  let [base, view] = [node, node];
  while (base.group === "movement" && base.src.length === 1) [base, view] = [index.node(base.src[0]), base];
  const name = operandName(index, node.id) || base.label;
  const isRow = base.shape?.length === 1 && view.op === "RESHAPE"; // memory whose shape is that of a view
  const [from, to] = [isRow ? view : base, node].map(shapeOf);
  return { label: `${node.label} ${name}`, detail: from === to ? to : `${from} → ${to}` };
}
