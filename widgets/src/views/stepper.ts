// The rewrite stepper: beside the tree of passes, the firings of a pass as before | after with their rules, or a
// transform of the whole graph with its law.

import { isTensor } from "../dialect";
import { button, h, oncePerFrame, replaceChildren } from "../dom";
import { duration } from "../format";
import { addChunkStyle } from "../lazy_view";
import type { Stage, Step } from "../model";
import type { Change, Store, View } from "../store";
import { diffTrees, printTree } from "../text_tree";
import { LONG, VirtualRows } from "../virtual_rows";
import { countFirings, findNextStop, listStepStops } from "../step_navigation";
import { PassTree } from "./pass_tree";
import { type StageContent, decisionsOf, optsOf, makeStageContent } from "./stages_without_firings";
import { passText, rebuiltText, ruleText, transformText } from "./step_text";
import { pairOf, treeOf } from "./step_trees";

const BEAT_MS = 900; // time of a firing during playback, at normal speed
const SPEEDS = [0.5, 1, 2, 4] as const;
const ROW_HEIGHT = 25; // pixels of a decision in a long list

export class StepperView implements View {
  readonly element = h("div", { class: "stepper" });
  private readonly scrub = h("div", { class: "scrub" });
  private readonly middle = h("div", { class: "middle" });
  private readonly diff = h("div", {
    class: "diff scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "Effect of the step",
  });
  private readonly detail = h("div", {
    class: "detail scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "The rule, or the stage",
  });
  private readonly tree: PassTree;
  private skipRebuilds = true;
  private rows: VirtualRows | null = null; // for a list too long for an element per row
  private drawnStep = "";
  private timer = 0; // of the next firing during playback
  private speed = 1;
  private text: View | null = null; // for a stage with texts

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
    this.text?.update(change);
  }

  private get stage(): Stage | null {
    const { cursor, index } = this.store;
    return cursor.stage === null ? null : (index.trace.stages[cursor.stage] ?? null);
  }

  // *** navigation by buttons and keys ***

  /** Returns the numbers of steps at which ←/→ stop in a pass. */
  private listStops(stage: Stage): number[] {
    return listStepStops(stage, !this.skipRebuilds);
  }

  private findNext(direction: 1 | -1): { stage: number; step: number } | null {
    const { stage, step } = this.store.cursor;
    return stage === null
      ? null
      : findNextStop(
          this.store.index.trace.stages,
          { stage, step },
          direction,
          !this.skipRebuilds,
          (id) => this.store.index.textsOf(id).length > 0,
        );
  }

  /** Goes one stop forward (1) or back (-1); after the last firing of a pass comes the next pass. */
  move(direction: 1 | -1): void {
    const to = this.findNext(direction);
    if (to === null) this.showEnd(direction);
    else this.goTo(to.step, to.stage);
  }

  /** Plays the firings from here on, or pauses. */
  play(): void {
    if (this.timer !== 0) this.pause();
    else {
      if (this.findNext(1) === null) return this.showEnd(1);
      this.timer = window.setTimeout(() => this.playOn(), 0);
    }
    this.nameButton();
  }

  private playOn(): void {
    this.timer = 0;
    if (this.element.isConnected && !this.element.hidden && this.findNext(1) !== null) {
      this.move(1);
      if (this.findNext(1) !== null) this.timer = window.setTimeout(() => this.playOn(), BEAT_MS / this.speed);
    }
    this.nameButton();
  }

  private pause(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
  }

  private nameButton(): void {
    const play = this.scrub.querySelector<HTMLElement>(".play-firings");
    if (play !== null) play.textContent = this.timer === 0 ? "play" : "pause";
  }

  destroy(): void {
    this.pause();
  }

  private showEnd(direction: 1 | -1): void {
    const said = this.scrub.querySelector<HTMLElement>(".end");
    if (said === null) return;
    said.textContent =
      direction > 0 ? "the end: nothing changes after this" : "the beginning: nothing changed before this";
    said.classList.remove("flash");
    void said.offsetWidth; // restarts the animation
    said.classList.add("flash");
  }

  moveToEnd(end: boolean): void {
    if (this.stage !== null) this.goTo(end ? this.listStops(this.stage).at(-1)! : 0);
  }

  /** Goes to the next pass in the tree (1), or the previous one (-1). */
  movePass(direction: number): void {
    const visibleStages = this.tree.visibleStages();
    const current = visibleStages.findIndex((stage) => stage.id === this.store.cursor.stage);
    const next = visibleStages[current + direction] ?? (current < 0 ? visibleStages[0] : undefined);
    if (next !== undefined) this.openStage(next);
  }

  private goTo(step: number, stage = this.store.cursor.stage): void {
    const kernel = (stage === null ? null : this.store.index.trace.stages[stage].kernel) ?? this.store.cursor.kernel;
    this.store.go({ stage, step, kernel, place: "passes", graph: "uops", panel: "rewrites" });
  }

  /** Opens a pass before its first step, so that → shows the first firing. */
  private openStage(stage: Stage): void {
    const kernel = stage.kernel ?? this.store.cursor.kernel;
    const { index } = this.store;
    const roots = stage.after.length > 0 ? stage.after : stage.before;
    const isLazy = roots.length > 0 && isTensor(index.trace, index.node(roots[0]));
    const graph = isLazy ? "lazy" : "uops";
    this.store.go({
      stage: stage.id,
      kernel,
      step: 0,
      place: isLazy ? "lazy" : "passes",
      graph,
      panel: "rewrites",
    });
  }

  private seek(matches: (step: Step) => boolean): void {
    const { stage } = this;
    if (stage === null) return;
    const from = this.store.cursor.step;
    const order = [...stage.steps.keys()].map((i) => (i + from) % stage.steps.length);
    const next = order.find((i) => stage.steps[i].rule !== null && matches(stage.steps[i]) && i + 1 !== from);
    if (next !== undefined) this.goTo(next + 1);
  }

  nextOfRule(): void {
    const rule = this.currentStep()?.rule ?? null;
    if (rule !== null) this.seek((step) => step.rule === rule);
  }

  nextOnNode(): void {
    const { stage, store } = this;
    const step = this.currentStep();
    if (stage === null) return;
    const start = store.selected.size > 0 ? store.selected : new Set(step === null ? [] : [step.after]);
    const family = store.index.related(start, stage.kernel);
    this.seek((other) => family.has(other.before) || family.has(other.after));
  }

  private currentStep(): Step | null {
    return this.stage?.steps[this.store.cursor.step - 1] ?? null;
  }

  // *** one step ***

  private drawStep(): void {
    const { cursor } = this.store;
    const key = JSON.stringify([cursor.stage, cursor.step, this.skipRebuilds]);
    if (key === this.drawnStep) return;
    this.drawnStep = key;
    this.rows = null;
    this.text = null;
    const { stage } = this;
    if (stage === null) {
      replaceChildren(this.scrub);
      replaceChildren(this.diff, h("p", { class: "empty" }, "This trace has no stages."));
      replaceChildren(this.detail);
      return;
    }
    this.element.classList.remove("is-text");
    this.drawScrub(stage);
    if (stage.steps.length > 0) this.drawFiring(stage);
    else if (this.store.index.textsOf(stage.id).length > 0) void this.drawText(stage);
    else
      this.drawShown(
        stage.decisions.length > 0
          ? decisionsOf(this.store, stage)
          : hasOpts(stage)
            ? optsOf(this.store, stage)
            : makeStageContent(this.store, stage),
      );
    this.mark();
  }

  private drawScrub(stage: Stage): void {
    const stops = this.listStops(stage);
    const { step } = this.store.cursor;
    if (stage.steps.length === 0) {
      const words =
        stage.decisions.length > 0
          ? "decisions"
          : stage.opts.length > 0
            ? "opts"
            : stage.transform !== null
              ? "transform"
              : this.store.index.textsOf(stage.id).length > 0
                ? "text"
                : "no firings";
      delete this.scrub.dataset.stage;
      replaceChildren(
        this.scrub,
        ...this.makeArrows(),
        h("b", {}, stage.name),
        h("span", { class: "faint" }, words),
        h("span", { class: "space" }),
        endStatus(),
      );
      this.showEnds();
      return;
    }
    let slider = this.scrub.querySelector<HTMLInputElement>('input[type="range"]');
    const stopIndex = Math.max(
      0,
      stops.findLastIndex((k) => k <= step),
    );
    if (slider === null || this.scrub.dataset.stage !== String(stage.id)) {
      slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Step" });
      const seek = oncePerFrame((position: number) => {
        const now = this.stage === null ? [] : this.listStops(this.stage);
        if (now[position] !== undefined) this.goTo(now[position]);
      });
      const newSlider = slider;
      newSlider.addEventListener("input", () => seek(Number(newSlider.value)));
      const rebuilds = h("input", { type: "checkbox", checked: this.skipRebuilds });
      rebuilds.addEventListener("change", () => {
        this.skipRebuilds = rebuilds.checked;
        this.drawStep();
      });
      const rebuildsTitle = "Skip steps in which no rule fires. They only rebuild a node whose sources changed";
      replaceChildren(
        this.scrub,
        ...this.makeArrows(),
        newSlider,
        h("span", { class: "at", role: "status" }),
        endStatus(),
        button("next on this node", "The next firing in the history of the selected node (N)", () => this.nextOnNode()),
        button("next of this rule", "The next firing of this rule (R)", () => this.nextOfRule()),
        h("label", { title: rebuildsTitle }, h("span", {}, "rule firings only"), rebuilds),
      );
      this.scrub.dataset.stage = String(stage.id);
    }
    slider.max = String(stops.length - 1);
    slider.value = String(stopIndex);
    slider.style.setProperty("--done", `${(stopIndex / Math.max(1, stops.length - 1)) * 100}%`);
    const total = this.store.index.firings(stage);
    const isTransform = stage.transform !== null;
    const text = isTransform
      ? step > 0
        ? "after the transform"
        : "before the transform"
      : `${countFirings(stage, step)} / ${total}`;
    this.scrub.querySelector(".at")!.textContent = text;
    slider.setAttribute("aria-valuetext", isTransform ? text : `firing ${text}`);
    const isFiring = this.currentStep()?.rule != null;
    const [, , , onNode, ofRule] = this.scrub.querySelectorAll("button");
    onNode.disabled = !isFiring && this.store.selected.size === 0;
    ofRule.disabled = !isFiring;
    this.showEnds();
  }

  private makeArrows(): HTMLElement[] {
    return [
      button("◀", "Previous firing (←), also in the previous pass", () => this.move(-1), "icon"),
      button("▶", "Next firing (→), also in the next pass", () => this.move(1), "icon"),
      button(
        this.timer === 0 ? "play" : "pause",
        "Play the firings one after another (Space)",
        () => this.play(),
        "play-firings",
      ),
      this.makeSpeedChoice(),
    ];
  }

  private makeSpeedChoice(): HTMLElement {
    const options = SPEEDS.map((speed) => {
      const option = h("option", { value: speed }, `${speed === 0.5 ? "½" : speed}×`);
      option.selected = speed === this.speed;
      return option;
    });
    const choice = h("select", { class: "speed", "aria-label": "Speed" }, ...options);
    choice.addEventListener("change", () => {
      this.speed = Number(choice.value);
    });
    return choice;
  }

  /** Shows the ends of the walk: a button without a target looks disabled, but still responds. */
  private showEnds(): void {
    const [back, on] = this.scrub.querySelectorAll("button");
    back.classList.toggle("at-end", this.findNext(-1) === null);
    on.classList.toggle("at-end", this.findNext(1) === null);
    const isLast = this.findNext(1) === null && this.store.index.trace.stages.some((stage) => stage.steps.length > 0);
    this.scrub.querySelector(".end")!.textContent = isLast ? "the last firing" : "";
  }

  private drawFiring(stage: Stage): void {
    const { store } = this;
    const { index } = store;
    const step = this.currentStep();
    if (step === null) {
      const rows = stage.before.flatMap((root) => printTree(index.trace, root));
      const says =
        stage.transform === null
          ? "nothing has fired yet. → shows the first firing."
          : "→ shows the whole graph after the transform.";
      replaceChildren(this.diff, h("p", { class: "note" }, `Before ${stage.name}: ${says}`), treeOf(store, rows));
      replaceChildren(
        this.detail,
        ...(stage.transform === null ? passText(index, stage, (to) => this.goTo(to)) : transformText(index, stage)),
      );
      return;
    }
    replaceChildren(this.diff, pairOf(store, diffTrees(index.trace, step.before, step.after)));
    const rule = step.rule === null ? null : index.trace.rules[step.rule];
    const about =
      stage.transform !== null
        ? transformText(index, stage)
        : rule === null
          ? rebuiltText(index, step)
          : ruleText(store, rule, stage, step);
    replaceChildren(this.detail, ...about);
  }

  /** Draws the texts of a stage beside the previous ones. */
  private async drawText(stage: Stage): Promise<void> {
    const key = this.drawnStep;
    // other compilers report no times
    const took = stage.elapsed_us > 0 ? h("p", {}, duration(stage.elapsed_us)) : null;
    this.element.classList.toggle("is-text", took === null);
    replaceChildren(this.detail, h("h5", {}, stage.name), took);
    const { makeTexts, css = "" } = await this.store.chunks.load("stage_texts");
    if (key !== this.drawnStep) return;
    addChunkStyle(this.element, "texts", css);
    this.text = makeTexts!(this.store, this.store.index.textsOf(stage.id));
    replaceChildren(this.diff, this.text.element);
  }

  /** Draws a stage without firings. */
  private drawShown(content: StageContent): void {
    replaceChildren(this.detail, ...content.detail);
    if ("body" in content) replaceChildren(this.diff, ...content.body);
    else if (content.count <= LONG)
      replaceChildren(this.diff, ...Array.from({ length: content.count }, (_, i) => content.row(i)));
    else {
      replaceChildren(this.diff);
      this.diff.scrollTop = 0;
      this.rows = new VirtualRows(this.diff, content.count, ROW_HEIGHT, content.row, () => this.mark());
      this.diff.append(this.rows.element);
    }
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

function endStatus(): HTMLElement {
  return h("span", { class: "end", role: "status" });
}

function hasOpts(stage: Stage): boolean {
  return stage.opts.length > 0 || stage.candidates.length > 0;
}
