// Which nodes are drawn as one box: of LazyBuffers those of a kernel or of a line, of UOps the copies that unrolling
// made; the reader chooses how much, and opens and closes single ones.

import { isTensor } from "../dialect";
import { button, h } from "../dom";
import { callName, count } from "../format";
import { type ProductGroup, productsOf } from "../products";
import type { TraceIndex } from "../provenance";
import {
  type Contracted,
  contract,
  contractEarlier,
  contractKernels,
  contractProducts,
  contractTwins,
} from "../regions";
import type { ShownGraph } from "../replay";
import type { DrawnBox, Region } from "../shown";
import { nodeText } from "../tree";
import type { VerdictRow } from "../verdicts";
import { frameTitle } from "./graphwords";

/** How much of the LazyBuffer graph is drawn as boxes of their own, from the least to all. */
export type Detail = "kernels" | "lines" | "products" | "operations" | "views";

const DETAILS: Record<Detail, string> = {
  kernels: "a box a kernel",
  lines: "a box a line",
  products: "a box a product",
  operations: "operations",
  views: "every node",
};
const FEW = 16; // operations; above, a product is one box, below it is open: two operands, a multiply, a sum
const CROWDED = 40; // operations on LazyBuffers; above, what one line made for one kernel is one box,
const CROWDED_LINES = 60; // and where even those are more, a kernel is one
const CROWDED_UOPS = 90;

export class Regions {
  private chosen: Detail | null = null; // null: as the size of the graph suggests
  private fitted: Detail | null = null; // less than that, so that the canvas has room for it
  private fittedTwins = false;
  private products = new Map<number, ProductGroup>(); // of the graph as it was last contracted
  private readonly closed = new Set<number>(); // products that the reader folded, by the node of the sum
  private drawn: Detail = "operations";
  private twins: boolean | null = null; // as the reader chose
  private drawnTwins = false;
  private earlierShown = false;
  private readonly opened = new Map<number, number[]>(); // nodes whose region is drawn one by one, with all of it

  /** `verdict`: on a kernel, where it is known. */
  constructor(
    private readonly index: TraceIndex,
    private readonly verdict: (kernel: number) => VerdictRow | undefined,
  ) {}

  get detail(): Detail {
    return this.drawn;
  }

  get areKernels(): boolean {
    return this.drawn === "kernels";
  }

  get areTwinsOne(): boolean {
    return this.drawnTwins;
  }

  /** The products that are drawn part by part. */
  get openProducts(): ProductGroup[] {
    const isOpen = (sum: number): boolean =>
      this.drawn === "operations" ? !this.closed.has(sum) : this.drawn === "products" && this.opened.has(sum);
    return [...this.products].filter(([sum]) => isOpen(sum)).map(([, product]) => product);
  }

  /** What was folded for the canvas to have room, as text; null for nothing. */
  get fittedWords(): string | null {
    if (this.fitted !== null) return DETAILS[this.fitted];
    return this.fittedTwins ? "a box for all copies" : null;
  }

  /** The steps from what is drawn to the least boxes. */
  coarser(isLazy: boolean): (() => void)[] {
    if (!isLazy) return this.drawnTwins ? [] : [() => (this.fittedTwins = true)];
    const order = Object.keys(DETAILS) as Detail[];
    const less = order.slice(0, order.indexOf(this.drawn)).reverse();
    const useful = less.filter(
      (detail) =>
        (detail !== "products" || this.products.size > 0) &&
        (detail !== "kernels" || this.index.trace.kernels.length > 1),
    );
    return useful.map((detail) => () => (this.fitted = detail));
  }

  /** Draws as much as was chosen, whether there is room for it or not. */
  unfit(): void {
    [this.fitted, this.fittedTwins] = [null, false];
  }

  get openCount(): number {
    return new Set(this.opened.values()).size;
  }

  /** What was chosen, to see whether it changed. */
  get key(): unknown {
    return [
      this.chosen,
      this.fitted,
      this.twins,
      this.fittedTwins,
      this.opened.size,
      [...this.closed],
      this.earlierShown,
    ];
  }

  isOpened(node: number): boolean {
    return this.opened.has(node);
  }

  /** The graph with its regions as nodes. */
  contracted(whole: ShownGraph, isLazy: boolean, isSamePass: boolean): Contracted {
    const { index } = this;
    const open = new Set(this.opened.keys());
    if (isLazy && !this.earlierShown && index.earlier.size > 0) {
      const first = contractEarlier(index, whole, open);
      const rest = this.parts(first.graph, open);
      return { graph: rest.graph, members: new Map([...first.members, ...rest.members]) };
    }
    if (!isLazy) {
      // once in a pass, so that boxes do not come and go with a node more or less
      this.drawnTwins =
        this.fittedTwins || (this.twins ?? (whole.nodes.size > CROWDED_UOPS || (isSamePass && this.drawnTwins)));
      return this.drawnTwins ? contractTwins(index, whole, open) : { graph: whole, members: new Map() };
    }
    return this.parts(whole, open);
  }

  /** A graph of LazyBuffers with boxes for lines, or for kernels, as the reader chose. */
  private parts(whole: ShownGraph, open: Set<number>): Contracted {
    const { index } = this;
    const plain = (node: number): boolean => !["movement", "const"].includes(index.node(node).group);
    const operations = [...whole.nodes.values()].filter(({ node }) => plain(node)).length;
    const chosen = this.fitted ?? this.chosen;
    this.products = productsOf(index, whole);
    const lines = chosen === "lines" || (chosen === null && operations > CROWDED) ? contract(index, whole, open) : null;
    const tooMany =
      lines !== null && [...lines.graph.nodes.values()].filter(({ node }) => plain(node)).length > CROWDED_LINES;
    const few = operations > FEW && this.products.size > 0 ? "products" : "operations";
    const suggested = lines === null ? few : tooMany && index.trace.kernels.length > 1 ? "kernels" : "lines";
    this.drawn = chosen ?? suggested;
    if (this.areKernels) return contractKernels(index, whole, open);
    if (lines !== null) return lines;
    if (this.drawn === "views") return { graph: whole, members: new Map() };
    const isFolded = (sum: number): boolean => (this.drawn === "products" ? !open.has(sum) : this.closed.has(sum));
    return contractProducts(
      whole,
      [...this.products].filter(([sum]) => isFolded(sum)).map(([, product]) => product),
    );
  }

  /** What each box of several nodes says. */
  described(graph: ShownGraph, members: Map<number, number[]>): Map<number, Region> {
    const of = ([box, ids]: [number, number[]]): [number, Region] => [
      box,
      this.region(ids.map((id) => graph.nodes.get(id)!.node)),
    ];
    return new Map([...members].map(of));
  }

  private region(members: number[]): Region {
    const { trace, firstKernelOf } = this.index;
    const last = trace.nodes[members[members.length - 1]];
    if (!isTensor(trace, last)) return { members, label: `${members.length} × ${last.label}`, detail: last.detail };
    if (this.isEarlier(last.id)) {
      const label =
        trace.nodes[members.findLast((id) => trace.nodes[id].name !== "") ?? last.id].name || nodeText(last);
      return { members, label, detail: `computed first · ${count(members.length, "node")}` };
    }
    const product = this.products.get(last.id);
    if (product !== undefined && product.members.length === members.length && !this.areKernels)
      return { members, label: product.title, detail: product.shapes };
    if (this.areKernels) {
      const kernel = firstKernelOf.get(last.id)!;
      const [label, detail] = frameTitle(this.index, kernel, this.verdict(kernel));
      return { members, label, detail };
    }
    const user = trace.nodes[members[0]].user;
    const frame = user === null ? undefined : trace.frames[user];
    const line =
      frame === undefined ? "" : (trace.sources[frame.source]?.text.split("\n")[frame.line - 1] ?? "").trim();
    const detail = frame === undefined ? "" : `${frame.line}: ${line}`;
    const calls = [...new Set(members.map((node) => trace.nodes[node].calls[0] ?? ""))];
    const call = calls.length === 1 && calls[0] !== "" ? `${callName(calls[0])}: ` : "";
    const when = calls.length === 1 && calls[0] === "" ? " from before" : "";
    return { members, label: `${call}${members.length} nodes${when}`, detail };
  }

  /** Whether a node is drawn as part of a lazy input, which is one box. */
  isEarlier(node: number): boolean {
    const kernel = this.index.firstKernelOf.get(node);
    return !this.earlierShown && kernel !== undefined && this.index.earlier.has(kernel) && !this.opened.has(node);
  }

  // *** the reader's choice ***

  /** The button for inputs that were lazy: draws how they were computed, or each as one box. */
  earlierChoice(changed: () => void): HTMLElement | null {
    const { trace, earlier } = this.index;
    const inputs = trace.kernels.filter(({ id }) => earlier.has(id)).flatMap(({ roots }) => roots).length;
    if (inputs === 0) return null;
    const says = `${count(inputs, "input")} computed first (${count(earlier.size, "kernel")})`;
    const title = "Tensors that were requested before the capture and had no values yet";
    return button(`${says} – ${this.earlierShown ? "fold" : "show"}`, title, () => {
      this.earlierShown = !this.earlierShown;
      changed();
    });
  }

  /** Draws a box's region one by one, or, of a box of an opened region, that region as one again; whether it did. */
  toggle(box: DrawnBox): boolean {
    const product = [...this.products.values()].find(({ members }) => members.includes(box.id));
    if (product !== undefined && this.drawn === "operations") return this.toggleProduct(product.sum);
    const open = this.opened.get(box.node);
    if (open !== undefined) for (const node of open) this.opened.delete(node);
    else if (box.members.length > 1) for (const node of box.members) this.opened.set(node, box.members);
    else return false;
    return true;
  }

  /** Folds a product into one box, or opens it. */
  toggleProduct(sum: number): boolean {
    const members = this.products.get(sum)?.members ?? [];
    if (this.drawn === "operations") {
      if (!this.closed.delete(sum)) this.closed.add(sum);
    } else for (const node of members) this.opened.delete(node);
    return members.length > 0;
  }

  /** Each region as one box again. */
  close(): void {
    this.opened.clear();
  }

  flipTwins(): void {
    this.twins = !this.drawnTwins;
    this.unfit();
    this.close();
  }

  /** The one control from few boxes to all of them. */
  choice(changed: () => void): HTMLElement {
    const options = (Object.keys(DETAILS) as Detail[]).map((key) =>
      h("option", { value: key, selected: key === this.drawn }, DETAILS[key]),
    );
    const choice = h(
      "select",
      {
        class: "detail-choice",
        "aria-label": "How much is drawn",
        title: "How much is drawn: a box for each kernel, Python line, operation, or node",
      },
      ...options,
    );
    choice.addEventListener("change", () => {
      this.chosen = choice.value as Detail;
      this.unfit();
      this.close();
      changed();
    });
    return choice;
  }
}
