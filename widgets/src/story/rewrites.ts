// Fifth page: the three firings that change this program most, each before and after, as graphs.

import { type Child, button, h, replaceChildren } from "../dom";
import { count, groupDigits, truncate } from "../format";
import { readableName } from "../kernel_labels";
import type { Node } from "../model";
import type { Store } from "../store";
import { type RankedFiring, chooseLargestFirings, ruleWords, isLawNeeded } from "./firing_impact";
import { type Page, bold } from "./page";
import { type Room, fitBoxes, heightOf } from "./box_layout";
import { Scene, type SceneNode, type SceneState, makeLegend } from "./scene";

const MOST_NODES = 11;
const SIZES = [
  { w: 124, h: 48, gapX: 46, gapY: 22 },
  { w: 108, h: 44, gapX: 26, gapY: 13 },
  { w: 96, h: 40, gapX: 16, gapY: 8 },
];

const UOP_WORDS: Record<string, string> = {
  REDUCE: "Σ reduce",
  MULACC: "a × b + c",
  ASSIGN: "register = …",
  DEFINE_ACC: "register",
  DEFINE_REG: "register",
  LOAD: "load",
  STORE: "store",
  INDEX: "address",
  RANGE: "loop",
  VECTORIZE: "to a vector",
  GEP: "one lane",
  HREDUCE: "lanes combined",
  RESULT: "after the loop",
  MUL: "× multiply",
  ADD: "+ add",
  MAX: "maximum",
  MIN: "minimum",
  DEFINE_LOCAL: "scratch",
  CMPLT: "< compare",
  CMPLE: "≤ compare",
  CMPNE: "≠ compare",
  CMPEQ: "= compare",
  NEG: "− negate",
  FDIV: "÷ divide",
  TABLE: "table",
  XOR: "xor",
  SHR: "shift right",
  SHL: "shift left",
  EXP: "exp",
  WHERE: "choose",
  CAST: "convert",
};

export class RewritesPage implements Page {
  readonly element = h("div", { class: "story-rewrites" });
  readonly beat = 2100;
  readonly firings: RankedFiring[];
  private readonly tabs = h("div", { class: "firing-tabs" });
  private readonly scene = new Scene("The graph before and after the rule fired");
  private readonly phase = h("span", { class: "phase", role: "status" });
  private readonly stage = h(
    "div",
    { class: "stage", tabindex: 0, role: "group", "aria-label": "The graph of the firing" },
    this.scene.element,
  );
  private readonly card = h("section", { class: "rule-card", tabindex: 0, "aria-label": "The rule" });
  private step = 0;
  private shownFiring = -1;
  private readonly sizes = new ResizeObserver(() => this.draw(0));

  /** `open`: shows a step of this page. `leave`: shows a firing in the workbench. */
  constructor(
    private readonly store: Store,
    private readonly open: (step: number) => void,
  ) {
    this.firings = chooseLargestFirings(store.index);
    const key = makeLegend([
      ["match", "matched by the rule"],
      ["new", "created by the rule"],
      ["alu", "unchanged"],
    ]);
    const left = h(
      "div",
      { class: "fired-side" },
      this.tabs,
      h("div", { class: "phase-line" }, this.phase, key),
      this.stage,
    );
    this.element.append(left, this.card);
    replaceChildren(
      this.tabs,
      ...this.firings.map(({ rule, times, kernel }, i) => {
        const tab = button("", `Show ${rule.name}`, () => this.open(2 * i), "firing-tab");
        tab.removeAttribute("aria-label");
        tab.append(h("b", {}, rule.name), h("span", {}, `kernel ${kernel.id} · ${count(times, "firing")}`));
        return tab;
      }),
    );
    this.sizes.observe(this.stage);
  }

  get count(): number {
    return Math.max(1, 2 * this.firings.length);
  }

  show(step: number, ms: number): void {
    this.step = step;
    const firingIndex = Math.floor(step / 2);
    this.tabs
      .querySelectorAll("button")
      .forEach((tab, i) => tab.setAttribute("aria-pressed", String(i === firingIndex)));
    if (firingIndex !== this.shownFiring) this.describe(this.firings[firingIndex]);
    this.shownFiring = firingIndex;
    const isAfter = step % 2 === 1;
    this.phase.textContent = isAfter ? "after: new nodes" : "before: matched nodes";
    this.phase.classList.toggle("after", isAfter);
    this.draw(ms);
  }

  private draw(ms: number): void {
    const room = { width: this.stage.clientWidth, height: this.stage.clientHeight };
    const firing = this.firings[Math.floor(this.step / 2)];
    if (room.width < 50 || firing === undefined) return;
    const { height, ...state } = this.drawSide(firing, this.step % 2 === 1, room);
    this.scene.resize(room.width, Math.max(room.height, height));
    this.scene.set(state, ms);
  }

  /** Returns one side of a firing and the height that it needs; nodes that the other side lacks are marked. */
  private drawSide({ step }: RankedFiring, isAfter: boolean, room: Room): SceneState & { height: number } {
    const { index } = this.store;
    const [root, other] = isAfter ? [step.after, step.before] : [step.before, step.after];
    const elsewhere = new Set(index.reachable([other]));
    const nodeIds = partOf(index.trace.nodes, root, elsewhere);
    const positions = new Map(nodeIds.map((id, i) => [id, i]));
    const sources = nodeIds.map((id) => [...new Set(index.node(id).src)].flatMap((src) => positions.get(src) ?? []));
    const placement =
      fitBoxes(sources, room, SIZES) ??
      fitBoxes(sources, { ...room, height: Number.POSITIVE_INFINITY }, SIZES.slice(-1));
    if (placement === null) return { nodes: [], edges: [], height: 0 };
    const { size, centers } = placement;
    const letters = Math.floor((size.w - 10) / 6.9);
    const nodes = nodeIds.map((id, i): SceneNode => {
      const node = index.node(id);
      const mark = elsewhere.has(id) ? "" : isAfter ? " new" : " match";
      const { label, sub } = wordsOf(node, this.nameNode(node));
      return {
        id: `u${id}`,
        x: centers[i][0],
        y: centers[i][1],
        w: size.w,
        h: size.h,
        label: truncate(label, letters),
        sub: [truncate(sub, letters + 1)],
        cls: `${node.group}${mark}`,
        title: `${node.label} ${node.detail}`,
      };
    });
    const edges = nodeIds.flatMap((id, i) => sources[i].map((from) => ({ from: `u${nodeIds[from]}`, to: `u${id}` })));
    return { nodes, edges, height: heightOf(placement) };
  }

  private nameNode(node: Node): string {
    const firing = this.firings[Math.floor(this.step / 2)];
    return this.store.index.withNames(node.label, firing.kernel.same_as ?? firing.kernel.id);
  }

  private describe({ rule, stage, step, removed, added, reach, kernel, position }: RankedFiring): void {
    const { index } = this.store;
    const frame = index.frameOf(step.before, kernel.id);
    const calls =
      frame === null ? "" : (index.trace.sources[frame.source]?.text.split("\n")[frame.line - 1] ?? "").trim();
    const rows: [string, Child][] = [
      ["kernel", `${kernel.id} · ${readableName(kernel)}`],
      ["Python", calls === "" ? null : h("code", {}, truncate(calls, 60))],
      ["pass", stage.name],
      ["source", h("code", {}, `${rule.file.split("/").slice(-2).join("/")}:${rule.line}`)],
    ];
    const list = rows.flatMap(([term, value]) => (value === null ? [] : [h("dt", {}, term), h("dd", {}, value)]));
    const effect = [
      removed > 0 ? `${groupDigits(Math.round(removed))} operation${removed === 1 ? "" : "s"} replaced` : "",
      added > 0 ? `${groupDigits(Math.round(added))} new` : "",
    ].filter(Boolean);
    const share = reach > 0 ? ` ${Math.round(100 * reach)} % of the final program comes from the new operations.` : "";
    replaceChildren(
      this.card,
      h("h3", {}, rule.name),
      h("p", {}, ruleWords(rule)),
      isLawNeeded(rule) ? h("div", { class: "law" }, rule.law) : null,
      h("p", {}, h("b", {}, "Effect. "), `${effect.join(", ")}.${share}`),
      h("dl", {}, ...list),
    );
    this.store.go({ stage: stage.id, step: position, graph: "uops", panel: "rewrites", kernel: kernel.id }, true);
  }

  head(): Child[] {
    const { trace } = this.store.index;
    const firings = trace.stages.reduce(
      (sum, stage) => sum + (stage.kernel === null ? 0 : this.store.index.firings(stage)),
      0,
    );
    const which = this.firings.length === 1 ? "This one changes" : `These ${this.firings.length} change`;
    return [
      bold("A rule replaces a part of the program by an equivalent one."),
      ` Rules fired ${formatTimes(firings)} on the way from loops to machine operations. ${which} the most.`,
    ];
  }

  caption(step: number): string {
    const firing = this.firings[Math.floor(step / 2)];
    return firing === undefined ? "" : `${firing.rule.name}: ${step % 2 === 1 ? "replaced" : "matched"}`;
  }

  destroy(): void {
    this.sizes.disconnect();
    this.scene.stop();
  }
}

function formatTimes(number: number): string {
  return number === 1 ? "once" : `${groupDigits(number)} times`;
}

/** Returns the node, the nodes that only this side has, and their sources, as far as there is room; sources first. */
export function partOf(nodes: readonly Node[], root: number, elsewhere: ReadonlySet<number>): number[] {
  const chosen = new Set([root]);
  const queue = [root];
  for (let head = 0; head < queue.length && chosen.size < MOST_NODES; head += 1) {
    const isShared = elsewhere.has(queue[head]) && queue[head] !== root;
    if (isShared) continue;
    for (const src of nodes[queue[head]].src) {
      if (chosen.has(src) || chosen.size >= MOST_NODES) continue;
      if (nodes[src].op === "CONST" && elsewhere.has(src)) continue;
      chosen.add(src);
      queue.push(src);
    }
  }
  return [...chosen].sort((a, b) => depthOf(nodes, a, chosen) - depthOf(nodes, b, chosen) || a - b);
}

function depthOf(nodes: readonly Node[], id: number, within: ReadonlySet<number>): number {
  const innerSources = nodes[id].src.filter((src) => within.has(src) && src !== id);
  return innerSources.length === 0 ? 0 : 1 + Math.max(...innerSources.map((src) => depthOf(nodes, src, within)));
}

function wordsOf(node: Node, named: string): { label: string; sub: string } {
  const word = UOP_WORDS[node.op];
  const label = node.op === "CONST" ? node.detail || named : (word ?? named);
  const lanes = /x(\d+)$|vec(\d+)|×(\d+)$/.exec(node.dtype);
  const wide =
    lanes === null ? node.dtype : `${node.dtype.replace(/[x×]\d+$|vec\d+/, "")} × ${lanes[1] ?? lanes[2] ?? lanes[3]}`;
  const sub =
    word === undefined ? node.detail || wide : named === node.op ? node.detail || wide : `${named} ${node.detail}`;
  return { label, sub: sub || wide };
}
