// Selects the nodes that are drawn as one box: LazyBuffers of a kernel or of a line, unrolled copies of UOps. The user
// selects the level of detail, and opens and closes single boxes.

import { isTensor } from "../dialect";
import { button, h } from "../dom";
import { callName, count } from "../format";
import { type ProductGroup, productsOf } from "../matrix_products";
import type { TraceIndex } from "../trace_index";
import {
  type Contracted,
  contract,
  contractEarlier,
  contractKernels,
  contractProducts,
  contractUnrolledCopies,
} from "../regions";
import type { GraphSnapshot } from "../replay";
import type { DrawnBox, DrawnRegion } from "../visible_graph";
import { nodeText } from "../text_tree";
import type { VerdictRow } from "../verdicts";
import { frameTitle } from "./graph_labels";

/** The level of detail of the LazyBuffer graph, from the fewest boxes to all. */
export type DetailLevel = "kernels" | "lines" | "products" | "operations" | "views";

const DETAILS: Record<DetailLevel, string> = {
  kernels: "box per kernel",
  lines: "box per line",
  products: "box per product",
  operations: "operations",
  views: "every node",
};
const FEW = 16; // operations; above, a product is one box, below it is open: two operands, a multiplication, a sum
const CROWDED = 40; // operations on LazyBuffers; above, the part of one line in one kernel is one box,
const CROWDED_LINES = 60; // and above this number of such boxes, a kernel is one box
const CROWDED_UOPS = 90;

export class RegionSelection {
  private chosen: DetailLevel | null = null; // null: selected by the size of the graph
  private fitted: DetailLevel | null = null; // a lower level, so that the graph fits into the canvas
  private fittedCopies = false;
  private products = new Map<number, ProductGroup>(); // products of the last contracted graph
  private readonly closed = new Set<number>(); // products that the user folded, by the node of the sum
  private drawn: DetailLevel = "operations";
  private copies: boolean | null = null; // the user's choice
  private drawnCopies = false;
  private earlierShown = false;
  // nodes whose opened region is drawn node by node, with all its members
  private readonly opened = new Map<number, number[]>();

  /** `verdict`: returns the verdict on a kernel, if known. */
  constructor(
    private readonly index: TraceIndex,
    private readonly verdict: (kernel: number) => VerdictRow | undefined,
  ) {}

  get detail(): DetailLevel {
    return this.drawn;
  }

  get areKernels(): boolean {
    return this.drawn === "kernels";
  }

  get areCopiesMerged(): boolean {
    return this.drawnCopies;
  }

  /** The products that are drawn part by part. */
  get openProducts(): ProductGroup[] {
    const isOpen = (sum: number): boolean =>
      this.drawn === "operations" ? !this.closed.has(sum) : this.drawn === "products" && this.opened.has(sum);
    return [...this.products].filter(([sum]) => isOpen(sum)).map(([, product]) => product);
  }

  /** The parts that were folded to fit into the canvas, as text; null for none. */
  get fittedWords(): string | null {
    if (this.fitted !== null) return DETAILS[this.fitted];
    return this.fittedCopies ? "one box for all copies" : null;
  }

  /** Returns functions that reduce the number of boxes, step by step. */
  coarser(isLazy: boolean): (() => void)[] {
    if (!isLazy) return this.drawnCopies ? [] : [() => (this.fittedCopies = true)];
    const order = Object.keys(DETAILS) as DetailLevel[];
    const less = order.slice(0, order.indexOf(this.drawn)).reverse();
    const useful = less.filter(
      (detail) =>
        (detail !== "products" || this.products.size > 0) &&
        (detail !== "kernels" || this.index.trace.kernels.length > 1),
    );
    return useful.map((detail) => () => (this.fitted = detail));
  }

  /** Draws the selected level of detail, even if it does not fit. */
  unfit(): void {
    [this.fitted, this.fittedCopies] = [null, false];
  }

  get openCount(): number {
    return new Set(this.opened.values()).size;
  }

  /** The current choices, to detect changes. */
  get key(): unknown {
    return [
      this.chosen,
      this.fitted,
      this.copies,
      this.fittedCopies,
      this.opened.size,
      [...this.closed],
      this.earlierShown,
    ];
  }

  isOpened(node: number): boolean {
    return this.opened.has(node);
  }

  /** Returns the graph with its regions as nodes. */
  contracted(whole: GraphSnapshot, isLazy: boolean, isSamePass: boolean): Contracted {
    const { index } = this;
    const open = new Set(this.opened.keys());
    if (isLazy && !this.earlierShown && index.earlier.size > 0) {
      const first = contractEarlier(index, whole, open);
      const partsGraph = this.listParts(first.graph, open);
      return { graph: partsGraph.graph, members: new Map([...first.members, ...partsGraph.members]) };
    }
    if (!isLazy) {
      // decided once per pass, so that boxes do not flicker when a node is added
      this.drawnCopies =
        this.fittedCopies || (this.copies ?? (whole.nodes.size > CROWDED_UOPS || (isSamePass && this.drawnCopies)));
      return this.drawnCopies ? contractUnrolledCopies(index, whole, open) : { graph: whole, members: new Map() };
    }
    return this.listParts(whole, open);
  }

  /** Returns a graph of LazyBuffers with boxes for lines or kernels, as selected. */
  private listParts(whole: GraphSnapshot, open: Set<number>): Contracted {
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

  /** Returns the text of each box with several nodes. */
  describeRegions(graph: GraphSnapshot, members: Map<number, number[]>): Map<number, DrawnRegion> {
    const described = ([box, ids]: [number, number[]]): [number, DrawnRegion] => [
      box,
      this.makeRegion(ids.map((id) => graph.nodes.get(id)!.node)),
    ];
    return new Map([...members].map(described));
  }

  private makeRegion(members: number[]): DrawnRegion {
    const { trace, firstKernelOf } = this.index;
    const last = trace.nodes[members[members.length - 1]];
    if (!isTensor(trace, last)) return { members, label: `${members.length} × ${last.label}`, detail: last.detail };
    if (this.isEarlier(last.id)) {
      const label =
        trace.nodes[members.findLast((id) => trace.nodes[id].name !== "") ?? last.id].name || nodeText(last);
      return { members, label, detail: `lazy input · ${count(members.length, "node")}` };
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
    const when = calls.length === 1 && calls[0] === "" ? ", existing" : "";
    return { members, label: `${call}${members.length} nodes${when}`, detail };
  }

  /** Whether a node is part of a lazy input, which is drawn as one box. */
  isEarlier(node: number): boolean {
    const kernel = this.index.firstKernelOf.get(node);
    return !this.earlierShown && kernel !== undefined && this.index.earlier.has(kernel) && !this.opened.has(node);
  }

  // *** the user's choices ***

  /** Creates the button for lazy inputs: it draws how they were computed, or each as one box. */
  earlierChoice(changed: () => void): HTMLElement | null {
    const { trace, earlier } = this.index;
    const inputs = trace.kernels.filter(({ id }) => earlier.has(id)).flatMap(({ roots }) => roots).length;
    if (inputs === 0) return null;
    const says = `${count(inputs, "lazy input")} (${count(earlier.size, "kernel")})`;
    const title = "Lazy tensors of earlier code. The capture computes them before it uses them";
    return button(`${says} – ${this.earlierShown ? "fold" : "show"}`, title, () => {
      this.earlierShown = !this.earlierShown;
      changed();
    });
  }

  /** Opens a box's region, or closes the opened region of a box; returns whether there was one. */
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

  /** Closes all regions. */
  close(): void {
    this.opened.clear();
  }

  toggleCopies(): void {
    this.copies = !this.drawnCopies;
    this.unfit();
    this.close();
  }

  /** Creates the control of the level of detail. */
  choice(changed: () => void): HTMLElement {
    const options = (Object.keys(DETAILS) as DetailLevel[]).map((key) =>
      h("option", { value: key, selected: key === this.drawn }, DETAILS[key]),
    );
    const choice = h(
      "select",
      {
        class: "detail-choice",
        "aria-label": "Level of detail",
        title: "Level of detail: a box per kernel, Python line, product, or node",
      },
      ...options,
    );
    choice.addEventListener("change", () => {
      this.chosen = choice.value as DetailLevel;
      this.unfit();
      this.close();
      changed();
    });
    return choice;
  }
}
