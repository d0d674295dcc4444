// The text beside a step: the rule that fired, the transform, or the pass as a whole.

import { button, h } from "../dom";
import { findMeaning } from "../term_meanings";
import { count, duration, paragraphs } from "../format";
import type { RuleInfo, Stage, Step, Transform } from "../model";
import type { TraceIndex } from "../trace_index";
import type { Store } from "../store";
import { tokenize } from "../tokenizer";
import { verdictOf, listWrongSteps } from "./firing_check";

export type StepDetails = (Element | null)[];

/** Returns the description of a rule that fired: its law, docstring, position, and source. */
export function ruleText(store: Store, rule: RuleInfo, stage: Stage, step: Step): StepDetails {
  const { cursor } = store;
  const firings = stage.steps.filter((other) => other.rule === rule.id).length;
  const next = stage.steps[cursor.step];
  const took = (next?.at_us ?? stage.elapsed_us) - step.at_us;
  const position = rule.file === "" ? "" : `${rule.file}:${rule.line} · `;
  const nth = stage.steps.slice(0, cursor.step).filter((other) => other.rule === rule.id).length;
  return [
    h("h5", {}, rule.name),
    verdictOf(store, stage, cursor.step),
    rule.law === "" ? null : h("div", { class: "law" }, rule.law),
    ...paragraphs(rule.doc).map(({ text, formula }) => (formula ? h("div", { class: "law" }, text) : h("p", {}, text))),
    h(
      "p",
      { class: "place" },
      ...addBreaks(position),
      `firing ${nth} of ${firings} here · ${duration(Math.max(0, took))} to the next step`,
    ),
    rule.text === "" ? null : codeBlock(rule.text),
  ];
}

/** Returns the description of a transform: its effect, its source, and its changes to this graph. */
export function transformText(index: TraceIndex, stage: Stage): StepDetails {
  const transform: Transform = index.trace.transforms[stage.transform!];
  const before = new Set(index.reachable(stage.before));
  const after = new Set(index.reachable(stage.after));
  const added = [...after].filter((node) => !before.has(node)).length;
  const removed = [...before].filter((node) => !after.has(node)).length;
  const nodes =
    added + removed > 0
      ? `${before.size} → ${count(after.size, "node")}: ${added} added, ${removed} removed`
      : count(after.size, "node");
  const did = index.changed(stage) ? nodes : "no change here";
  const position = transform.file === "" ? "" : `${transform.file}:${transform.line}`;
  const time = stage.elapsed_us > 0 || position !== "" ? duration(stage.elapsed_us) : "";
  return [
    h("h5", {}, transform.name),
    h("p", {}, h("span", { class: "tag d-keep" }, "transform"), " of the whole graph, in one step"),
    ...paragraphs(transform.law).map(({ text, formula }) =>
      formula ? h("div", { class: "law" }, text) : h("p", {}, text),
    ),
    h("p", { class: "place" }, ...addBreaks([position, did, time].filter((part) => part !== "").join(" · "))),
    transform.text === "" ? null : codeBlock(transform.text),
  ];
}

/** Returns the description of a node that was rebuilt with new sources. */
export function rebuiltText(index: TraceIndex, step: Step): StepDetails {
  const what = index.node(step.after).label;
  return [
    h("h5", {}, "rebuilt"),
    h(
      "p",
      {},
      `No rule fired on this ${what}. Its sources changed, so an equal node with the new sources replaces it.`,
    ),
  ];
}

/** Returns the description of a pass before its first step: the firings of each rule; `open` goes to a step. */
export function passText(index: TraceIndex, stage: Stage, open: (step: number) => void): StepDetails {
  const counts = new Map<number, number>();
  for (const step of stage.steps) if (step.rule !== null) counts.set(step.rule, (counts.get(step.rule) ?? 0) + 1);
  const rows = [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([rule, n]) => {
      const openFirst = (): void => open(stage.steps.findIndex((step) => step.rule === rule) + 1);
      return h(
        "button",
        { type: "button", class: "row", onclick: openFirst },
        h("span", { class: "name" }, index.trace.rules[rule].name),
        h("span", { class: "n" }, String(n)),
      );
    });
  const does = findMeaning("pass", stage.name);
  const wrongSteps = listWrongSteps(index, stage);
  const time = stage.elapsed_us > 0 ? ` in ${duration(stage.elapsed_us)}` : "";
  return [
    h("h5", {}, stage.name),
    wrongSteps.length === 0
      ? null
      : h(
          "p",
          {},
          button(
            `${count(wrongSteps.length, "firing")} changed the value`,
            "Go to the first of these firings",
            () => open(wrongSteps[0]),
            "wrong",
          ),
        ),
    does === "" ? null : h("p", {}, does),
    h("p", {}, `${count(index.firings(stage), "firing")} of ${count(counts.size, "rule")}${time}`),
    ...rows,
  ];
}

/** Returns a text whose paths may break after a slash, and so not inside a name. */
function addBreaks(text: string): (string | Element)[] {
  return text.split(/(?<=\/)/).flatMap((part) => [part, h("wbr", {})]);
}

/** Returns highlighted Python. */
export function codeBlock(text: string): HTMLElement {
  const lines = text.split("\n").map((line) => {
    const spans = tokenize("python", line).map(([kind, part]) =>
      kind === "" ? part : h("span", { class: `t-${kind}` }, part),
    );
    return h("div", {}, ...spans, line === "" ? " " : null);
  });
  return h("pre", { class: "rule-source", tabindex: 0, role: "group", "aria-label": "Source of the rule" }, ...lines);
}
