// Which nodes are drawn as one box: of LazyBuffers those of a kernel or of a line, of UOps the copies that unrolling
// made; the reader chooses how much, and opens and closes single ones.

import { button, h } from "../dom";
import { callName, count } from "../format";
import type { TraceIndex } from "../provenance";
import { type Contracted, contract, contractEarlier, contractKernels, contractTwins } from "../regions";
import type { ShownGraph } from "../replay";
import type { DrawnBox, Region } from "../shown";
import { nodeText } from "../tree";
import type { VerdictRow } from "../verdicts";
import { frameTitle } from "./graphwords";

/** How much of the LazyBuffer graph is drawn as boxes of their own, from the least to all. */
type Detail = "kernels" | "lines" | "operations" | "views";

const DETAILS: Record<Detail, string> = {
  kernels: "a box a kernel",
  lines: "a box a line",
  operations: "operations",
  views: "every node",
};
const CROWDED = 40; // operations on LazyBuffers; above, what one line made for one kernel is one box,
const CROWDED_LINES = 60; // and where even those are more, a kernel is one
const CROWDED_UOPS = 90;

export class Regions {
  private chosen: Detail | null = null; // null: as the size of the graph suggests
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

  get openCount(): number {
    return new Set(this.opened.values()).size;
  }

  /** What was chosen, to see whether it changed. */
  get key(): unknown {
    return [this.chosen, this.twins, this.opened.size, this.earlierShown];
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
      this.drawnTwins = this.twins ?? (whole.nodes.size > CROWDED_UOPS || (isSamePass && this.drawnTwins));
      return this.drawnTwins ? contractTwins(index, whole, open) : { graph: whole, members: new Map() };
    }
    return this.parts(whole, open);
  }

  /** A graph of LazyBuffers with boxes for lines, or for kernels, as the reader chose. */
  private parts(whole: ShownGraph, open: Set<number>): Contracted {
    const { index } = this;
    const plain = (node: number): boolean => !["movement", "const"].includes(index.node(node).group);
    const operations = [...whole.nodes.values()].filter(({ node }) => plain(node)).length;
    const lines =
      this.chosen === "lines" || (this.chosen === null && operations > CROWDED) ? contract(index, whole, open) : null;
    const tooMany =
      lines !== null && [...lines.graph.nodes.values()].filter(({ node }) => plain(node)).length > CROWDED_LINES;
    this.drawn =
      this.chosen ?? (lines === null ? "operations" : tooMany && index.trace.kernels.length > 1 ? "kernels" : "lines");
    if (this.areKernels) return contractKernels(index, whole, open);
    return lines ?? { graph: whole, members: new Map() };
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
    if (last.kind === "uop") return { members, label: `${members.length} × ${last.label}`, detail: last.detail };
    if (this.isEarlier(last.id)) {
      const label =
        trace.nodes[members.findLast((id) => trace.nodes[id].name !== "") ?? last.id].name || nodeText(last);
      return { members, label, detail: `computed first · ${count(members.length, "node")}` };
    }
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
    const open = this.opened.get(box.node);
    if (open !== undefined) for (const node of open) this.opened.delete(node);
    else if (box.members.length > 1) for (const node of box.members) this.opened.set(node, box.members);
    else return false;
    return true;
  }

  /** Each region as one box again. */
  close(): void {
    this.opened.clear();
  }

  flipTwins(): void {
    this.twins = !this.drawnTwins;
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
      this.close();
      changed();
    });
    return choice;
  }
}
