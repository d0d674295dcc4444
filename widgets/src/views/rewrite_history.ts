// The rewrite history of the selection: the firings that led to it, in order; a click goes to one.

import { h, replaceChildren } from "../dom";
import { callName, count, truncate } from "../format";
import { findCreatingOpts } from "../creating_opts";
import type { Change, Store, View } from "../store";
import { nodeText } from "../text_tree";
import { countFirings } from "../step_navigation";
import { findNewestNode, makeSelectionHint } from "./empty_selection";

const MOST_CALLS = 8;

export class RewriteHistoryView implements View {
  readonly element = h("div", {
    class: "history scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "Rewrite history",
  });

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(change: Change): void {
    if (change.selection || change.cursor) this.draw();
  }

  private draw(): void {
    const { index, cursor, chunks } = this.store;
    const { rules, stage_texts: texts } = index.trace;
    if (cursor.panel !== "history") return;
    if (rules[0] || !texts[0]) return this.drawFirings();
    void chunks.load("stage_texts").then((chunk) => replaceChildren(this.element, ...chunk.listHistory!(this.store)));
  }

  private drawFirings(): void {
    const { index, selected, cursor } = this.store;
    const [id] = selected;
    if (id === undefined) {
      replaceChildren(
        this.element,
        makeSelectionHint(
          this.store,
          "Where does a node come from? Select a node or a line and press B: this panel lists the rewrites that led to it, in order.",
          findNewestNode(this.store),
        ),
      );
      return;
    }
    const nodes = [...selected];
    const all = nodes.flatMap((node) => index.rewriteHistory(node, cursor.kernel));
    const listed = new Set<string>();
    const firings = all.filter(({ stage, step }) => {
      const key = `${stage.id} ${step}`;
      if (listed.has(key)) return false;
      listed.add(key);
      return true;
    });
    firings.sort((a, b) => a.stage.id - b.stage.id || a.step - b.step);
    const what = nodes.length === 1 ? nodeText(index.node(id)) : count(nodes.length, "node");
    const frame = index.frameOf(id, cursor.kernel);
    const origin =
      frame === null
        ? ""
        : ` Origin${nodes.length === 1 ? "" : " of the first"}: ${index.trace.sources[frame.source]?.name ?? "?"}:${frame.line}.`;
    const callsOf = (node: number): string =>
      nodes.length === 1
        ? index.callsOf(node, cursor.kernel).join(" → ")
        : callName(index.callsOf(node, cursor.kernel)[0] ?? "");
    const callNames = [...new Set(nodes.map(callsOf))].filter((calls) => calls !== "");
    const by =
      callNames.length > 0
        ? ` Created by ${callNames.slice(0, MOST_CALLS).join(", ")}${callNames.length > MOST_CALLS ? " and others" : ""}.`
        : "";
    const led = `: ${firings.length === 0 ? "no rewrite" : count(firings.length, "firing")}.${origin}${by}`;
    const head = h("p", { class: "note" }, h("b", {}, truncate(what, 80)), led);
    const rows = firings.map(({ stage, step, firing }) => {
      const { name } = firing.rule === null ? index.trace.transforms[stage.transform!] : index.trace.rules[firing.rule];
      const isCurrent = stage.id === cursor.stage && step === cursor.step;
      const go = (): void =>
        this.store.go({ stage: stage.id, step, kernel: stage.kernel ?? cursor.kernel, graph: "uops" });
      return h(
        "button",
        { type: "button", class: "event", "aria-current": isCurrent ? "step" : null, onclick: go },
        h(
          "span",
          { class: "faint" },
          firing.rule === null ? "transform" : `${stage.name} · ${countFirings(stage, step)}`,
        ),
        h("b", {}, name),
        h("span", { class: "removed" }, truncate(nodeText(index.node(firing.before)), 60)),
        h("span", { class: "faint" }, "→"),
        h("span", { class: "added" }, truncate(nodeText(index.node(firing.after)), 60)),
      );
    });
    const opts = this.listOpts(nodes);
    const between = opts.length > 0 && rows.length > 0 ? h("h5", {}, "Firings") : null;
    replaceChildren(this.element, head, ...opts, between, ...rows);
  }

  /** Returns the opts of the kernel that created the nodes; a click goes to the pass that applied them. */
  private listOpts(nodes: readonly number[]): Element[] {
    const { index, cursor } = this.store;
    const opts = findCreatingOpts(index, nodes, cursor.kernel);
    if (opts.length === 0) return [];
    const stage = index.trace.stages.find((candidate) => candidate.opts.includes(opts[0].opt));
    const rows = opts.map(({ opt, place, count: all }) =>
      h(
        "button",
        {
          type: "button",
          class: "event made-by",
          title: opt.reason,
          onclick: () => this.store.go({ stage: stage?.id, step: 0, panel: "rewrites" }),
        },
        h("span", { class: "faint" }, `opt ${place} of ${all}`),
        h("b", {}, opt.opt),
        h("span", {}, `splits axis ${opt.axis}`),
        h("span", { class: "faint" }, "→"),
        h("span", { class: "added" }, opt.made.join(", ")),
        h("span", { class: "faint" }, truncate(opt.reason, 70)),
      ),
    );
    return [h("h5", {}, "Opts of the kernel that made it"), ...rows];
  }
}
