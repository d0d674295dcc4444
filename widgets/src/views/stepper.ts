// The rewrite stepper: beside the tree of passes, the firings of one as before | after, and the rule that fired; or a
// transform of the whole graph, and its law.

import { button, h, oncePerFrame, replaceChildren } from "../dom";
import { meaning, optMeaning } from "../explaining";
import { count, duration, languageName, paragraphs } from "../format";
import type { Rule, Stage, Step, Transform } from "../model";
import type { Change, Store, View } from "../store";
import { tokenize } from "../tokens";
import { type TreeLine, nodeText, treeDiff, treeLines } from "../tree";
import { LONG, VirtualRows } from "../virtual";
import { firingsUpTo, nextStop, stopsOf } from "../walking";
import { paneOf } from "./code";
import { PassTree } from "./passtree";

const ROW_HEIGHT = 25; // pixels, of a decision in a long list

export class StepperView implements View {
  readonly element = h("div", { class: "stepper" });
  private readonly scrub = h("div", { class: "scrub" });
  private readonly middle = h("div", { class: "middle" });
  private readonly diff = h("div", { class: "diff scroll", tabindex: 0, role: "region", "aria-label": "What the step did" });
  private readonly detail = h("div", { class: "detail scroll", tabindex: 0, role: "region", "aria-label": "The rule, or the stage" });
  private readonly tree: PassTree;
  private skipRebuilds = true;
  private rows: VirtualRows | null = null; // of a list too long to be all elements
  private drawnStep = "";

  constructor(private readonly store: Store) {
    this.middle.append(this.scrub, this.diff);
    this.diff.addEventListener("scroll", () => this.rows?.follow());
    this.tree = new PassTree(store, (stage) => this.openStage(stage));
    this.element.append(this.tree.element, this.middle, this.detail);
    this.drawStep();
  }

  update(change: Change): void {
    if (change.cursor) {
      this.tree.follow();
      this.drawStep();
    }
    if (change.selection || change.hover) this.mark();
  }

  private get stage(): Stage | null {
    const { cursor, index } = this.store;
    return cursor.stage === null ? null : (index.trace.stages[cursor.stage] ?? null);
  }

  private childrenOf(stage: Stage): Stage[] {
    return this.store.index.children.get(stage.id) ?? [];
  }

  // *** walking, by buttons and by keys ***

  /** The numbers of steps at which ←/→ stop in a pass. */
  private stops(stage: Stage): number[] {
    return stopsOf(stage, !this.skipRebuilds);
  }

  private next(direction: 1 | -1): { stage: number; step: number } | null {
    const { stage, step } = this.store.cursor;
    return stage === null ? null : nextStop(this.store.index.trace.stages, { stage, step }, direction, !this.skipRebuilds);
  }

  /** One stop forward (1) or back (-1), into the next pass or the one before where this one has no more. */
  move(direction: 1 | -1): void {
    const to = this.next(direction);
    if (to === null) this.sayEnd(direction);
    else this.goTo(to.step, to.stage);
  }

  private sayEnd(direction: 1 | -1): void {
    const said = this.scrub.querySelector<HTMLElement>(".end");
    if (said === null) return;
    said.textContent = direction > 0 ? "the end: nothing changes after this" : "the beginning: nothing changed before this";
    said.classList.remove("flash");
    void said.offsetWidth; // restarts the animation
    said.classList.add("flash");
  }

  moveToEnd(end: boolean): void {
    if (this.stage !== null) this.goTo(end ? this.stops(this.stage).at(-1)! : 0);
  }

  /** To the next pass that the tree shows (1), or the one before (-1). */
  movePass(direction: number): void {
    const shown = this.tree.visibleStages();
    const at = shown.findIndex((stage) => stage.id === this.store.cursor.stage);
    const next = shown[at + direction] ?? (at < 0 ? shown[0] : undefined);
    if (next !== undefined) this.openStage(next);
  }

  private goTo(step: number, stage = this.store.cursor.stage): void {
    const kernel = (stage === null ? null : this.store.index.trace.stages[stage].kernel) ?? this.store.cursor.kernel;
    this.store.go({ stage, step, kernel, place: "passes", graph: "uops", panel: "rewrites" });
  }

  private openStage(stage: Stage): void {
    const kernel = stage.kernel ?? this.store.cursor.kernel;
    const { index } = this.store;
    const roots = stage.after.length > 0 ? stage.after : stage.before;
    const isLazy = roots.length > 0 && index.node(roots[0]).kind === "lazybuffer";
    const graph = isLazy ? "lazy" : "uops";
    this.store.go({ stage: stage.id, kernel, step: index.endOf(stage), place: isLazy ? "lazy" : "passes", graph, panel: "rewrites" });
  }

  private seek(found: (step: Step) => boolean): void {
    const { stage } = this;
    if (stage === null) return;
    const from = this.store.cursor.step;
    const order = [...stage.steps.keys()].map((i) => (i + from) % stage.steps.length);
    const next = order.find((i) => stage.steps[i].rule !== null && found(stage.steps[i]) && i + 1 !== from);
    if (next !== undefined) this.goTo(next + 1);
  }

  nextOfRule(): void {
    const rule = this.current()?.rule ?? null;
    if (rule !== null) this.seek((step) => step.rule === rule);
  }

  nextOnNode(): void {
    const { stage, store } = this;
    const step = this.current();
    if (stage === null) return;
    const start = store.selected.size > 0 ? store.selected : new Set(step === null ? [] : [step.after]);
    const family = store.index.related(start, stage.kernel);
    this.seek((other) => family.has(other.before) || family.has(other.after));
  }

  private current(): Step | null {
    return this.stage?.steps[this.store.cursor.step - 1] ?? null;
  }

  // *** one step ***

  private drawStep(): void {
    const { cursor } = this.store;
    const key = JSON.stringify([cursor.stage, cursor.step, this.skipRebuilds]);
    if (key === this.drawnStep) return;
    this.drawnStep = key;
    this.rows = null;
    const { stage } = this;
    if (stage === null) {
      replaceChildren(this.scrub);
      replaceChildren(this.diff, h("p", { class: "empty" }, "This trace has no stages."));
      replaceChildren(this.detail);
      return;
    }
    this.drawScrub(stage);
    if (stage.steps.length > 0) this.drawFiring(stage);
    else if (stage.decisions.length > 0) this.drawDecisions(stage);
    else if (stage.opts.length > 0 || stage.candidates.length > 0) this.drawOpts(stage);
    else this.drawPlain(stage);
    this.mark();
  }

  private drawScrub(stage: Stage): void {
    const stops = this.stops(stage);
    const { step } = this.store.cursor;
    if (stage.steps.length === 0) {
      const words = stage.decisions.length > 0 ? "decisions" : stage.opts.length > 0 ? "opts" : stage.transform !== null ? "transform" : "no firings";
      delete this.scrub.dataset.stage;
      replaceChildren(this.scrub, ...this.arrows(), h("b", {}, stage.name), h("span", { class: "faint" }, words), h("span", { class: "space" }), endStatus());
      this.showEnds();
      return;
    }
    let slider = this.scrub.querySelector<HTMLInputElement>('input[type="range"]');
    const at = Math.max(0, stops.findLastIndex((k) => k <= step));
    if (slider === null || this.scrub.dataset.stage !== String(stage.id)) {
      slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Step" });
      const seek = oncePerFrame((position: number) => {
        const now = this.stage === null ? [] : this.stops(this.stage);
        if (now[position] !== undefined) this.goTo(now[position]);
      });
      const own = slider;
      own.addEventListener("input", () => seek(Number(own.value)));
      const rebuilds = h("input", { type: "checkbox", checked: this.skipRebuilds });
      rebuilds.addEventListener("change", () => {
        this.skipRebuilds = rebuilds.checked;
        this.drawStep();
      });
      const rebuildsTitle = "Nodes made anew only because their sources changed are no stop of their own";
      replaceChildren(
        this.scrub,
        ...this.arrows(),
        own,
        h("span", { class: "at", role: "status" }),
        endStatus(),
        button("next on this node", "The next firing in the history of the selected node (N)", () => this.nextOnNode()),
        button("next of this rule", "The next firing of this rule (R)", () => this.nextOfRule()),
        h("label", { title: rebuildsTitle }, h("span", {}, "skip rebuilds"), rebuilds),
      );
      this.scrub.dataset.stage = String(stage.id);
    }
    slider.max = String(stops.length - 1);
    slider.value = String(at);
    slider.style.setProperty("--done", `${(at / Math.max(1, stops.length - 1)) * 100}%`);
    const total = this.store.index.firings(stage);
    const isTransform = stage.transform !== null;
    const text = isTransform ? (step > 0 ? "after the transform" : "before the transform") : `${firingsUpTo(stage, step)} / ${total}`;
    this.scrub.querySelector(".at")!.textContent = text;
    slider.setAttribute("aria-valuetext", isTransform ? text : `firing ${text}`);
    const isFiring = this.current()?.rule != null;
    const [, , onNode, ofRule] = this.scrub.querySelectorAll("button");
    onNode.disabled = !isFiring && this.store.selected.size === 0;
    ofRule.disabled = !isFiring;
    this.showEnds();
  }

  private arrows(): HTMLElement[] {
    return [
      button("◀", "One firing back (←), into the pass before", () => this.move(-1), "icon"),
      button("▶", "One firing on (→), into the next pass", () => this.move(1), "icon"),
    ];
  }

  /** Says where the walk ends; a button that leads nowhere looks so, and still answers. */
  private showEnds(): void {
    const [back, on] = this.scrub.querySelectorAll("button");
    back.classList.toggle("spent", this.next(-1) === null);
    on.classList.toggle("spent", this.next(1) === null);
    const isLast = this.next(1) === null && this.store.index.trace.stages.some((stage) => stage.steps.length > 0);
    this.scrub.querySelector(".end")!.textContent = isLast ? "the last firing" : "";
  }

  private drawFiring(stage: Stage): void {
    const step = this.current();
    const { trace } = this.store.index;
    if (step === null) {
      const rows = stage.before.flatMap((root) => treeLines(trace, root));
      const lines = rows.map((line) => this.treeCell(line, ""));
      const says = stage.transform === null ? "nothing has fired yet. → shows the first firing." : "→ shows what it makes of the whole graph.";
      const head = h("p", { class: "note" }, `Before ${stage.name}: ${says}`);
      replaceChildren(this.diff, head, h("div", { class: "tree" }, ...lines));
      replaceChildren(this.detail, ...(stage.transform === null ? this.summary(stage) : this.transformText(stage)));
      return;
    }
    const rows = treeDiff(trace, step.before, step.after);
    const cells = rows.flatMap(({ before, after, same }) => [
      before === null ? h("div", { class: "cell none" }) : this.treeCell(before, same ? "" : "del"),
      after === null ? h("div", { class: "cell none" }) : this.treeCell(after, same ? "" : "add"),
    ]);
    replaceChildren(this.diff, pair(cells));
    const rule = step.rule === null ? null : trace.rules[step.rule];
    const about = stage.transform !== null ? this.transformText(stage) : rule === null ? this.rebuilt(step) : this.ruleText(rule, stage, step);
    replaceChildren(this.detail, ...about);
  }

  private treeCell(line: TreeLine, cls: string): HTMLElement {
    const node = this.store.index.node(line.node);
    const folded = line.folded > 0 ? h("span", { class: "faint" }, `  + ${line.folded} below`) : null;
    const mark = cls === "del" ? "−" : cls === "add" ? "+" : " ";
    return h(
      "div",
      {
        class: `cell linked ${cls}`,
        "data-node": line.node,
        title: `${nodeText(node)}${node.dtype ? ` : ${node.dtype}` : ""}`,
        onclick: () => this.store.select([line.node]),
        onmouseenter: () => this.store.hover([line.node]),
        onmouseleave: () => this.store.hover([]),
      },
      h("span", { class: "sign", "aria-label": cls === "del" ? "removed" : cls === "add" ? "added" : null }, mark),
      h("span", { class: "faint" }, line.prefix),
      h("b", {}, node.label),
      ` ${line.text.slice(node.label.length).trim()}`,
      folded,
    );
  }

  private ruleText(rule: Rule, stage: Stage, step: Step): (Element | null)[] {
    const firings = stage.steps.filter((other) => other.rule === rule.id).length;
    const next = stage.steps[this.store.cursor.step];
    const took = (next?.at_us ?? stage.elapsed_us) - step.at_us;
    const place = rule.file === "" ? "" : `${rule.file}:${rule.line} · `;
    const nth = stage.steps.slice(0, this.store.cursor.step).filter((other) => other.rule === rule.id).length;
    return [
      h("h5", {}, rule.name),
      rule.law === "" ? null : h("div", { class: "law" }, rule.law),
      ...paragraphs(rule.doc).map(({ text, formula }) => (formula ? h("div", { class: "law" }, text) : h("p", {}, text))),
      h("p", { class: "place" }, `${place}firing ${nth} of ${firings} here · ${duration(Math.max(0, took))} to the next step`),
      rule.text === "" ? null : codeBlock(rule.text),
    ];
  }

  /** What a transform does, in words and as source, and what it did to this graph. */
  private transformText(stage: Stage): (Element | null)[] {
    const { index } = this.store;
    const transform: Transform = index.trace.transforms[stage.transform!];
    const before = new Set(index.reachable(stage.before));
    const after = new Set(index.reachable(stage.after));
    const added = [...after].filter((node) => !before.has(node)).length;
    const removed = [...before].filter((node) => !after.has(node)).length;
    const nodes = added + removed > 0 ? `${before.size} → ${count(after.size, "node")}: ${added} added, ${removed} removed` : count(after.size, "node");
    const did = index.changed(stage) ? nodes : "It changed nothing here";
    return [
      h("h5", {}, transform.name),
      h("p", {}, h("span", { class: "tag d-keep" }, "transform"), " of the whole graph, in one step"),
      ...paragraphs(transform.law).map(({ text, formula }) => (formula ? h("div", { class: "law" }, text) : h("p", {}, text))),
      h("p", { class: "place" }, `${transform.file}:${transform.line} · ${did} · ${duration(stage.elapsed_us)}`),
      transform.text === "" ? null : codeBlock(transform.text),
    ];
  }

  private rebuilt(step: Step): Element[] {
    const { index } = this.store;
    const what = index.node(step.after).label;
    return [
      h("h5", {}, "made anew"),
      h("p", {}, `No rule fired on this ${what}: its sources changed, so that an equal node over the new sources takes its place.`),
    ];
  }

  private summary(stage: Stage): Element[] {
    const { index } = this.store;
    const counts = new Map<number, number>();
    for (const step of stage.steps) if (step.rule !== null) counts.set(step.rule, (counts.get(step.rule) ?? 0) + 1);
    const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([rule, n]) => {
      const open = (): void => this.goTo(stage.steps.findIndex((step) => step.rule === rule) + 1);
      return h("button", { type: "button", class: "row", onclick: open }, h("span", { class: "name" }, index.trace.rules[rule].name), h("span", { class: "n" }, String(n)));
    });
    const does = meaning("pass", stage.name);
    return [h("h5", {}, stage.name), ...(does === "" ? [] : [h("p", {}, does)]), h("p", {}, `${count(index.firings(stage), "firing")} of ${count(counts.size, "rule")} in ${duration(stage.elapsed_us)}`), ...rows];
  }

  // *** stages without firings ***

  private drawDecisions(stage: Stage): void {
    const { index } = this.store;
    const row = (at: number): HTMLElement => {
      const { node, decision, reason } = stage.decisions[at];
      const { label, detail, name } = index.node(node);
      const choose = (): void => this.store.select([node]);
      return h(
        "div",
        {
          class: "cell decision linked",
          "data-node": node,
          tabindex: 0,
          title: reason,
          onclick: choose,
          onkeydown: (event: KeyboardEvent) => {
            if (event.key === "Enter") choose();
          },
        },
        h("span", { class: `tag d-${decision}`, title: meaning("decision", decision) || null }, decision),
        h("b", {}, name === "" ? label : `${name} = ${label}`),
        h("span", { class: "faint" }, detail),
        h("span", { class: "why" }, reason),
      );
    };
    if (stage.decisions.length > LONG) {
      replaceChildren(this.diff);
      this.diff.scrollTop = 0;
      this.rows = new VirtualRows(this.diff, stage.decisions.length, ROW_HEIGHT, row, () => this.mark());
      this.diff.append(this.rows.element);
    } else replaceChildren(this.diff, ...stage.decisions.map((_, at) => row(at)));
    const counts = tally(stage.decisions.map(({ decision }) => decision));
    const text = Object.entries(counts).map(([decision, n]) => h("p", {}, h("span", { class: `tag d-${decision}` }, `${decision} ${n}`), ` ${meaning("decision", decision)}`));
    replaceChildren(this.detail, h("h5", {}, stage.name), h("p", {}, `${count(stage.decisions.length, "decision")} in ${duration(stage.elapsed_us)}`), ...text);
  }

  private drawOpts(stage: Stage): void {
    const rows = stage.opts.map(({ opt, applied, reason }) =>
      h(
        "div",
        { class: `cell decision ${applied ? "" : "rejected"}` },
        h("span", { class: `tag ${applied ? "d-fuse" : "d-view"}` }, applied ? "applied" : "rejected"),
        h("b", { title: optMeaning(opt) || null }, opt),
        h("span", { class: "why" }, reason),
      ),
    );
    replaceChildren(this.diff, ...rows, ...candidateRows(stage), ...this.laws(stage));
    const applied = stage.opts.filter((opt) => opt.applied).length;
    const tried = stage.candidates.length > 0 ? `, ${count(stage.candidates.length, "candidate")} timed` : "";
    const text = `${applied} applied, ${stage.opts.length - applied} rejected${tried}, in ${duration(stage.elapsed_us)}`;
    replaceChildren(this.detail, h("h5", {}, stage.name), h("p", {}, text), ...this.axes(stage));
  }

  /** What each kind of opt of the stage does: its words, and a loop nest before and after. */
  private laws(stage: Stage): Element[] {
    const ids = new Set(stage.opts.flatMap((opt) => opt.laws));
    return [...ids].flatMap((id) => {
      const law = this.store.index.trace.laws[id]!;
      const nests = [h("div", {}, law.before), h("div", { class: "faint" }, "→"), h("div", {}, law.after)];
      const words = law.words.split("`").map((part, k) => (k % 2 === 1 ? h("code", {}, part) : part));
      return [h("p", { class: "says" }, h("b", {}, law.name), " ", ...words, ":"), h("div", { class: "law nests" }, ...nests)];
    });
  }

  private axes(stage: Stage): Element[] {
    const kernel = stage.kernel === null ? undefined : this.store.index.trace.kernels[stage.kernel];
    if (kernel === undefined || kernel.axes.length === 0) return [];
    const nest = kernel.axes.map(([name, kind, size], depth) =>
      h("div", { class: "cell", title: meaning("axis", kind) || null }, `${" ".repeat(depth * 2)}for `, h("b", { class: `axis-${kind}` }, name), ` in range(${size})  `, h("span", { class: "faint" }, kind)),
    );
    return [h("p", {}, "The loops of the kernel, outermost first:"), h("div", { class: "tree" }, ...nest)];
  }

  private drawPlain(stage: Stage): void {
    const { index } = this.store;
    const { trace } = index;
    const inside = this.childrenOf(stage);
    const took = `${duration(stage.elapsed_us)}${inside.length > 0 ? `, with ${count(inside.length, "stage")} inside` : ""}`;
    const changed = index.changed(stage);
    const [before] = stage.before;
    const [after] = stage.after;
    const isProgram = stage.after.length > 1 && (stage.before.length === 1 || stage.transform !== null); // nodes in order
    if (isProgram) {
      const lines = stage.after.map((node) => ({ node, prefix: "", text: nodeText(index.node(node)), folded: 0, hidden: "" }));
      replaceChildren(this.diff, h("div", { class: "tree" }, ...lines.map((line) => this.treeCell(line, ""))));
    } else if (changed && before !== undefined && after !== undefined && index.node(before).kind === index.node(after).kind) {
      const cells = treeDiff(trace, before, after).flatMap(({ before: left, after: right, same }) => [
        left === null ? h("div", { class: "cell none" }) : this.treeCell(left, same ? "" : "del"),
        right === null ? h("div", { class: "cell none" }) : this.treeCell(right, same ? "" : "add"),
      ]);
      replaceChildren(this.diff, pair(cells));
    } else if (after !== undefined) {
      const lines = stage.after.slice(0, 4).flatMap((root) => treeLines(trace, root));
      replaceChildren(this.diff, h("div", { class: "tree" }, ...lines.map((line) => this.treeCell(line, ""))));
    } else if (this.listingsOf(stage).length > 0) {
      replaceChildren(this.diff, ...this.listingsOf(stage));
    } else {
      replaceChildren(this.diff, h("p", { class: "empty" }, `${stage.name} has no graph of its own. It took ${duration(stage.elapsed_us)}.`));
    }
    const verdict = this.diff.querySelector(".listed") !== null
      ? "Every listing of this kernel; a click opens one."
      : isProgram
      ? `${count(stage.after.length, "UOp")} in order; the listings have them with their operands.`
      : changed === false
        ? "It changed nothing."
        : changed === null
          ? ""
          : "The steps inside were not recorded.";
    const last = inside.length === 0 && verdict !== "" ? h("p", {}, verdict) : null;
    if (stage.transform === null) replaceChildren(this.detail, h("h5", {}, stage.name), h("p", {}, took), last);
    else replaceChildren(this.detail, ...this.transformText(stage), changed === false ? null : last);
  }

  /** The kernel's program in every language, each a button that opens it. */
  private listingsOf(stage: Stage): HTMLElement[] {
    const { store } = this;
    return store.index.programsOf(stage.kernel).map(({ language, lines }) => {
      const open = (): void => store.go({ kernel: stage.kernel, tabs: { ...store.cursor.tabs, [paneOf(language)]: language, all: language } });
      const text = `Shows ${languageName(language)} beside the graph`;
      return h(
        "button",
        { type: "button", class: "event listed", title: text, onclick: open },
        h("b", {}, languageName(language)),
        h("span", { class: "faint" }, count(lines.length, "line")),
      );
    });
  }

  private mark(): void {
    const { selected, related, hovered } = this.store;
    for (const cell of this.diff.querySelectorAll<HTMLElement>("[data-node]")) {
      const id = Number(cell.dataset.node);
      cell.classList.toggle("sel", selected.has(id));
      cell.classList.toggle("rel", !selected.has(id) && related.has(id));
      cell.classList.toggle("hov", hovered.has(id));
    }
  }
}

/** What a search timed, the fastest first; the length of the bar is the time. */
function candidateRows(stage: Stage): Element[] {
  const times = stage.candidates.map((candidate) => candidate.best_us).filter((us): us is number => us !== null);
  const [fastest, slowest] = [Math.min(...times), Math.max(...times)];
  const byTime = [...stage.candidates].sort((a, b) => (a.best_us ?? Infinity) - (b.best_us ?? Infinity));
  return byTime.map(({ opts, best_us, note }) =>
    h(
      "div",
      { title: note || null, class: `cell candidate${best_us === fastest ? " best" : ""}` },
      h("span", { class: "num" }, best_us === null ? "failed" : duration(best_us)),
      h("span", { class: "chart" }, h("span", { class: "median", style: `width:${((best_us ?? 0) / slowest) * 100}%` })),
      h("span", {}, opts.length === 0 ? "no opts" : opts.join("  ")),
    ),
  );
}

function pair(cells: Element[]): HTMLElement {
  const heads = ["before", "after"].map((text) => h("div", { class: "cell head" }, text));
  return h("div", { class: "pair", role: "group", "aria-label": "Before and after" }, ...heads, ...cells);
}

function endStatus(): HTMLElement {
  return h("span", { class: "end", role: "status" });
}

export function codeBlock(text: string): HTMLElement {
  const lines = text.split("\n").map((line) => {
    const spans = tokenize("python", line).map(([kind, part]) => (kind === "" ? part : h("span", { class: `t-${kind}` }, part)));
    return h("div", {}, ...spans, line === "" ? " " : null);
  });
  return h("pre", { class: "rule-source", tabindex: 0, role: "group", "aria-label": "Source of the rule" }, ...lines);
}

function tally(words: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
