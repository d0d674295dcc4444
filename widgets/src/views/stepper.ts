// The rewrite stepper: the tree of passes, the firings of one as before | after, and the rule that fired.

import { button, h, oncePerFrame, replaceChildren } from "../dom";
import { count, duration, paragraphs, truncate } from "../format";
import type { Rule, Stage, Step } from "../model";
import type { Change, Store, View } from "../store";
import { tokenize } from "../tokens";
import { type TreeLine, nodeText, treeDiff, treeLines } from "../tree";

export class StepperView implements View {
  readonly element = h("div", { class: "stepper" });
  private readonly passes = h("div", { class: "passes" });
  private readonly scrub = h("div", { class: "scrub" });
  private readonly middle = h("div", { class: "middle" });
  private readonly diff = h("div", { class: "diff scroll" });
  private readonly detail = h("div", { class: "detail scroll" });
  private readonly closed = new Set<number>();
  private hideUnchanged = true;
  private shownAt = ""; // the stage and the panel when the tree of passes was last moved to its active row
  private skipRebuilds = true;
  private drawnTree = "";
  private drawnStep = "";

  constructor(private readonly store: Store) {
    this.middle.append(this.scrub, this.diff);
    this.element.append(this.passes, this.middle, this.detail);
    for (const stage of store.index.trace.stages) {
      const other = stage.kernel !== null && stage.kernel !== store.cursor.kernel;
      if (other && this.childrenOf(stage).length > 0) this.closed.add(stage.id);
    }
    this.drawTree();
    this.drawStep();
  }

  update(change: Change): void {
    if (change.cursor) {
      this.openAround(this.store.cursor.stage);
      this.drawTree();
      this.drawStep();
      const { stage, panel } = this.store.cursor;
      if (this.shownAt !== `${stage} ${panel}`) requestAnimationFrame(() => this.showActive()); // once it is in sight
      this.shownAt = `${stage} ${panel}`;
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

  /** The numbers of steps at which ←/→ stop. */
  private stops(stage: Stage): number[] {
    const all = stage.steps.map((_, i) => i + 1);
    if (!this.skipRebuilds) return [0, ...all];
    return [0, ...all.filter((k) => stage.steps[k - 1].rule !== null)];
  }

  /** One stop forward (1) or back (-1). */
  move(direction: number): void {
    const { stage } = this;
    if (stage === null) return;
    const stops = this.stops(stage);
    const { step } = this.store.cursor;
    const to = direction > 0 ? stops.find((k) => k > step) : stops.findLast((k) => k < step);
    if (to !== undefined) this.goTo(to);
  }

  moveToEnd(end: boolean): void {
    if (this.stage !== null) this.goTo(end ? this.stops(this.stage).at(-1)! : 0);
  }

  /** To the next pass that the tree shows (1), or the one before (-1). */
  movePass(direction: number): void {
    const shown = this.visibleStages();
    const at = shown.findIndex((stage) => stage.id === this.store.cursor.stage);
    const next = shown[at + direction] ?? (at < 0 ? shown[0] : undefined);
    if (next !== undefined) this.openStage(next);
  }

  private goTo(step: number): void {
    this.store.go({ step, place: "passes", graph: "uops", panel: "rewrites" });
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

  // *** the tree of passes ***

  private isUnchanged(stage: Stage): boolean {
    const inside = this.childrenOf(stage);
    if (inside.length > 0) return inside.every((child) => this.isUnchanged(child));
    if (stage.decisions.length + stage.opts.length + stage.candidates.length > 0) return false;
    return this.store.index.changed(stage) === false;
  }

  private visibleStages(): Stage[] {
    const shown: Stage[] = [];
    const visit = (stage: Stage): void => {
      if (this.hideUnchanged && this.isUnchanged(stage) && stage.id !== this.store.cursor.stage) return;
      shown.push(stage);
      if (!this.closed.has(stage.id)) this.childrenOf(stage).forEach(visit);
    };
    (this.store.index.children.get(null) ?? []).forEach(visit);
    return shown;
  }

  private openAround(id: number | null): void {
    const { stages } = this.store.index.trace;
    for (let at = id === null ? null : stages[id].parent; at !== null; at = stages[at].parent) this.closed.delete(at);
  }

  private drawTree(): void {
    const { index, cursor } = this.store;
    const shown = this.visibleStages();
    const key = JSON.stringify([shown.map((stage) => stage.id), cursor.stage, [...this.closed], this.hideUnchanged]);
    if (key === this.drawnTree) {
      this.updateCounts();
      return;
    }
    this.drawnTree = key;
    const hidden = index.trace.stages.filter((stage) => this.childrenOf(stage).length === 0 && this.isUnchanged(stage));
    const toggle = h("input", { type: "checkbox", checked: this.hideUnchanged }) as HTMLInputElement;
    toggle.addEventListener("change", () => {
      this.hideUnchanged = toggle.checked;
      this.drawTree();
    });
    const says = hidden.length > 0 ? `hide ${hidden.length} unchanged` : "hide unchanged";
    const bar = h("div", { class: "bar" }, h("b", {}, "Passes"), h("span", { class: "space" }), h("label", { title: says }, h("span", {}, says), toggle));
    const rows = shown.map((stage) => this.treeRow(stage));
    const list = h("div", { class: "rows scroll", role: "tree", "aria-label": "Passes" }, ...rows);
    const old = this.passes.querySelector(".rows");
    const scrolled = old?.scrollTop ?? 0;
    const focused = old?.contains(document.activeElement) ?? false;
    replaceChildren(this.passes, bar, list);
    list.scrollTop = scrolled;
    const active = list.querySelector<HTMLElement>('[aria-selected="true"]');
    if (focused) active?.focus({ preventScroll: true });
    if (active !== null) keepInSight(list, active);
    this.updateCounts();
  }

  private showActive(): void {
    const list = this.passes.querySelector<HTMLElement>(".rows");
    const active = list?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (list && active && list.clientHeight > 0) keepInSight(list, active);
  }

  private treeRow(stage: Stage): HTMLElement {
    const { index, cursor } = this.store;
    let depth = 0;
    for (let at = stage.parent; at !== null; at = index.trace.stages[at].parent) depth += 1;
    const inside = this.childrenOf(stage).length > 0;
    const open = inside && !this.closed.has(stage.id);
    const active = stage.id === cursor.stage;
    const kernel = stage.kernel === null ? undefined : index.trace.kernels[stage.kernel];
    const parentKernel = stage.parent === null ? null : index.trace.stages[stage.parent].kernel;
    const name = kernel !== undefined && stage.kernel !== parentKernel ? `${stage.name} · ${kernel.name}` : stage.name;
    const fold = (event: Event): void => {
      event.stopPropagation();
      if (open) this.closed.add(stage.id);
      else this.closed.delete(stage.id);
      this.drawTree();
    };
    const twist = inside
      ? h("span", { class: "twist", "aria-hidden": "true", onclick: fold }, open ? "▾" : "▸")
      : h("span", { class: "twist" });
    return h(
      "div",
      {
        class: `row${this.isUnchanged(stage) ? " dim" : ""}`,
        role: "treeitem",
        tabindex: active ? 0 : -1,
        style: `padding-left:${6 + depth * 13}px`,
        title: `${name}: ${duration(stage.elapsed_us)}`,
        "aria-selected": String(active),
        "aria-expanded": inside ? String(open) : null,
        "aria-level": depth + 1,
        "data-stage": stage.id,
        onclick: () => this.openStage(stage),
      },
      twist,
      h("span", { class: "name" }, name),
      h("span", { class: "n" }),
      h("span", { class: "took" }, duration(stage.elapsed_us)),
    );
  }

  private updateCounts(): void {
    const { index, cursor } = this.store;
    for (const row of this.passes.querySelectorAll<HTMLElement>(".row")) {
      const stage = index.trace.stages[Number(row.dataset.stage)];
      const firings = index.firings(stage);
      const done = stage.id === cursor.stage ? firingsUpTo(stage, cursor.step) : firings;
      const counts = stage.decisions.length || stage.opts.length || stage.candidates.length;
      const text = firings > 0 ? (done < firings ? `${done} / ${firings}` : String(firings)) : counts ? `${counts}` : "";
      row.querySelector(".n")!.textContent = text;
    }
  }

  // *** one step ***

  private drawStep(): void {
    const { cursor } = this.store;
    const key = JSON.stringify([cursor.stage, cursor.step, this.skipRebuilds]);
    if (key === this.drawnStep) return;
    this.drawnStep = key;
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
      const words = stage.decisions.length > 0 ? "decisions" : stage.opts.length > 0 ? "opts" : "no firings";
      replaceChildren(this.scrub, h("b", {}, stage.name), h("span", { class: "faint" }, words), h("span", { class: "space" }));
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
        button("◀", "One firing back (←)", () => this.move(-1), "icon"),
        button("▶", "One firing on (→)", () => this.move(1), "icon"),
        own,
        h("span", { class: "at", role: "status" }),
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
    const text = `${firingsUpTo(stage, step)} / ${total}`;
    this.scrub.querySelector(".at")!.textContent = text;
    slider.setAttribute("aria-valuetext", `firing ${text}`);
    const isFiring = this.current()?.rule != null;
    const [, , onNode, ofRule] = this.scrub.querySelectorAll("button");
    onNode.disabled = !isFiring && this.store.selected.size === 0;
    ofRule.disabled = !isFiring;
  }

  private drawFiring(stage: Stage): void {
    const step = this.current();
    const { trace } = this.store.index;
    if (step === null) {
      const rows = stage.before.flatMap((root) => treeLines(trace, root));
      const lines = rows.map((line) => this.treeCell(line, ""));
      const head = h("p", { class: "note" }, `Before ${stage.name}: nothing has fired yet. → shows the first firing.`);
      replaceChildren(this.diff, head, h("div", { class: "tree" }, ...lines));
      replaceChildren(this.detail, ...this.summary(stage));
      return;
    }
    const rows = treeDiff(trace, step.before, step.after);
    const cells = rows.flatMap(({ before, after, same }) => [
      before === null ? h("div", { class: "cell none" }) : this.treeCell(before, same ? "" : "del"),
      after === null ? h("div", { class: "cell none" }) : this.treeCell(after, same ? "" : "add"),
    ]);
    replaceChildren(this.diff, pair(cells));
    const rule = step.rule === null ? null : trace.rules[step.rule];
    replaceChildren(this.detail, ...(rule === null ? this.rebuilt(step) : this.ruleText(rule, stage, step)));
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
    return [h("h5", {}, stage.name), h("p", {}, `${count(index.firings(stage), "firing")} of ${count(counts.size, "rule")} in ${duration(stage.elapsed_us)}`), ...rows];
  }

  // *** stages without firings ***

  private drawDecisions(stage: Stage): void {
    const { index } = this.store;
    const rows = stage.decisions.map(({ node, decision, reason }) =>
      h(
        "div",
        { class: "cell decision linked", "data-node": node, tabindex: 0, onclick: () => this.store.select([node]) },
        h("span", { class: `tag d-${decision}` }, decision),
        h("b", {}, index.node(node).label),
        h("span", { class: "faint" }, index.node(node).detail),
        h("span", { class: "why" }, reason),
      ),
    );
    replaceChildren(this.diff, ...rows);
    const counts = tally(stage.decisions.map(({ decision }) => decision));
    const words: Record<string, string> = {
      realize: "gets memory of its own",
      fuse: "is computed inside the kernel of its user",
      duplicate: "is computed again by each user, because that is cheaper than memory",
      keep: "is computed once for each row into scratch memory, which the kernel's loops then read",
      view: "is another way to look at a buffer; nothing is computed",
    };
    const text = Object.entries(counts).map(([decision, n]) => h("p", {}, h("span", { class: `tag d-${decision}` }, `${decision} ${n}`), ` ${words[decision] ?? ""}`));
    replaceChildren(this.detail, h("h5", {}, stage.name), h("p", {}, `${count(stage.decisions.length, "decision")} in ${duration(stage.elapsed_us)}`), ...text);
  }

  private drawOpts(stage: Stage): void {
    const rows = stage.opts.map(({ opt, applied, reason }) =>
      h(
        "div",
        { class: `cell decision ${applied ? "" : "rejected"}` },
        h("span", { class: `tag ${applied ? "d-fuse" : "d-view"}` }, applied ? "applied" : "rejected"),
        h("b", {}, opt),
        h("span", { class: "why" }, reason),
      ),
    );
    replaceChildren(this.diff, ...rows, ...candidateRows(stage));
    const applied = stage.opts.filter((opt) => opt.applied).length;
    const tried = stage.candidates.length > 0 ? `, ${count(stage.candidates.length, "candidate")} timed` : "";
    const text = `${applied} applied, ${stage.opts.length - applied} rejected${tried}, in ${duration(stage.elapsed_us)}`;
    replaceChildren(this.detail, h("h5", {}, stage.name), h("p", {}, text), ...this.axes(stage));
  }

  private axes(stage: Stage): Element[] {
    const kernel = stage.kernel === null ? undefined : this.store.index.trace.kernels[stage.kernel];
    if (kernel === undefined || kernel.axes.length === 0) return [];
    const nest = kernel.axes.map(([name, kind, size], depth) =>
      h("div", { class: "cell" }, `${" ".repeat(depth * 2)}for `, h("b", { class: `axis-${kind}` }, name), ` in range(${size})  `, h("span", { class: "faint" }, kind)),
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
    const isProgram = stage.before.length === 1 && stage.after.length > 1; // the nodes of a graph, in order
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
    } else {
      replaceChildren(this.diff, h("p", { class: "empty" }, `${stage.name} has no graph of its own. It took ${duration(stage.elapsed_us)}.`));
    }
    const verdict = isProgram
      ? `${count(stage.after.length, "UOp")} in order; the listings have them with their operands.`
      : changed === false
        ? "It changed nothing."
        : changed === null
          ? ""
          : "The steps inside were not recorded.";
    replaceChildren(this.detail, h("h5", {}, stage.name), h("p", {}, took), inside.length === 0 && verdict !== "" ? h("p", {}, verdict) : null);
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

/** The firings that led to the selected node, in order; a click goes to one. */
export class BiographyView implements View {
  readonly element = h("div", { class: "biography scroll" });

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(change: Change): void {
    if (change.selection || change.cursor) this.draw();
  }

  private draw(): void {
    const { index, selected, cursor } = this.store;
    if (cursor.panel !== "biography") return;
    const [id] = selected;
    if (id === undefined) {
      replaceChildren(this.element, h("p", { class: "empty" }, "Select a node or a line, then press B: the firings that led to it, in order."));
      return;
    }
    const nodes = [...selected];
    const all = nodes.flatMap((node) => index.biography(node, cursor.kernel));
    const seen = new Set<string>();
    const firings = all.filter(({ stage, step }) => {
      const key = `${stage.id} ${step}`;
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
    firings.sort((a, b) => a.stage.id - b.stage.id || a.step - b.step);
    const what = nodes.length === 1 ? nodeText(index.node(id)) : count(nodes.length, "node");
    const frame = index.frameOf(id, cursor.kernel);
    const origin = frame === null ? "" : ` It began at ${index.trace.sources[frame.source]?.name ?? "?"}:${frame.line}.`;
    const head = h("p", { class: "note" }, h("b", {}, truncate(what, 80)), `: ${count(firings.length, "firing")} led here.${origin}`);
    const rows = firings.map(({ stage, step, firing }) => {
      const rule = index.trace.rules[firing.rule!];
      const here = stage.id === cursor.stage && step === cursor.step;
      const go = (): void => this.store.go({ stage: stage.id, step, kernel: stage.kernel ?? cursor.kernel, graph: "uops" });
      return h(
        "button",
        { type: "button", class: "event", "aria-current": here ? "step" : null, onclick: go },
        h("span", { class: "faint" }, `${stage.name} · ${firingsUpTo(stage, step)}`),
        h("b", {}, rule.name),
        h("span", { class: "gone" }, truncate(nodeText(index.node(firing.before)), 60)),
        h("span", { class: "faint" }, "→"),
        h("span", { class: "come" }, truncate(nodeText(index.node(firing.after)), 60)),
      );
    });
    replaceChildren(this.element, head, ...rows);
  }
}

/** What a search timed, in order; the length of the bar is the time. */
function candidateRows(stage: Stage): Element[] {
  const times = stage.candidates.map((candidate) => candidate.best_us).filter((us): us is number => us !== null);
  const [fastest, slowest] = [Math.min(...times), Math.max(...times)];
  return stage.candidates.map(({ opts, best_us }) =>
    h(
      "div",
      { class: `cell candidate${best_us === fastest ? " best" : ""}` },
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

function firingsUpTo(stage: Stage, step: number): number {
  let done = 0;
  for (let i = 0; i < step; i += 1) if (stage.steps[i].rule !== null) done += 1;
  return done;
}

function codeBlock(text: string): HTMLElement {
  const lines = text.split("\n").map((line) => {
    const spans = tokenize("python", line).map(([kind, part]) => (kind === "" ? part : h("span", { class: `t-${kind}` }, part)));
    return h("div", {}, ...spans, line === "" ? " " : null);
  });
  return h("pre", { class: "rule-source" }, ...lines);
}

function keepInSight(box: HTMLElement, row: HTMLElement): void {
  const top = row.offsetTop - box.offsetTop;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + row.offsetHeight - box.clientHeight;
}

function tally(words: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
