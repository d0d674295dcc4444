// The result of a command about a rule: its firings with their verdicts, and the kernels that changed.

import { button, h, tab, tabList } from "../dom";
import { addDigests } from "../digests";
import { count, languageName } from "../format";
import { baseText, ratioText, timeText } from "../tuner/time_comparison";
import { type LineChange, compareLines } from "../line_changes";
import type { Branch, KernelVariant, RuleFiring, Trace } from "../model";
import type { Store } from "../store";
import { selectChanges, makeLine } from "../tuner/listing";
import { codeBlock } from "../views/step_text";
import { makeCounterexample, makeVerdictTag } from "../views/firing_check";

const KINDS = new Set(["InsertRule", "DisableRule", "FireRule", "SkipFiring"]);
const MOST_FIRINGS = 80;
const WANTED = ["c", "uops", "llvm", "python", "asm"];

export function isAboutRules({ command }: Branch): boolean {
  return KINDS.has(command.kind);
}

/** Returns the firings, wrong ones first. */
export function firingsOf({ firings }: Branch): RuleFiring[] {
  return [...firings].sort((a, b) => Number(b.verdict === "differs") - Number(a.verdict === "differs"));
}

export function titleOf({ command }: Branch): string {
  const values = Object.fromEntries(command.arguments);
  switch (command.kind) {
    case "InsertRule":
      return `${values.rule} in ${values.stage}`;
    case "DisableRule":
      return `without ${values.rule}`;
    case "SkipFiring":
      return `kernel ${values.kernel} without step ${values.step} of ${values.stage}`;
    default:
      return `${values.rule} fired ${values.node === "" ? "everywhere" : "once"} in kernel ${values.kernel}, ${values.stage}`;
  }
}

/** `step`: opens the branch as a trace of its own, at a firing. */
export function makeBranchView(store: Store, branch: Branch, step: (firing: RuleFiring | null) => void): HTMLElement {
  const firings = firingsOf(branch);
  return h(
    "section",
    { class: "rules-branch", "aria-label": titleOf(branch) },
    h(
      "p",
      { class: branch.status === "failed" ? "note tuner-error" : "note" },
      branch.status === "failed" ? branch.reason : writeSummary(branch),
    ),
    store.sendRequest === null ? null : makeStepButton(store, branch, step),
    ...firings.slice(0, MOST_FIRINGS).map((firing) => makeFiringRow(store, firing, step)),
    firings.length > MOST_FIRINGS
      ? h("p", { class: "note faint" }, `and ${count(firings.length - MOST_FIRINGS, "firing")} more`)
      : null,
    ...branch.kernels.map((variant) => makeKernelView(store.index.trace, variant)),
    branch.rule_text === ""
      ? null
      : h("details", {}, h("summary", {}, "The rule at that time"), codeBlock(branch.rule_text)),
    store.sendRequest === null ? makeStepButton(store, branch, step) : null,
  );
}

/** Creates the button that opens the branch step by step; Python computes its steps. */
function makeStepButton(
  { sendRequest }: Store,
  { id, kernels, firings, status }: Branch,
  step: (firing: null) => void,
): HTMLElement | null {
  if (status === "failed" || kernels.length + firings.length === 0) return null;
  if (sendRequest === null)
    return h(
      "p",
      { class: "note faint" },
      "Python computes each step: ",
      h("code", {}, `Explorer(view.whatif.trace_of(${id}))`),
    );
  return h(
    "div",
    { class: "rules-actions" },
    button("Step through", "Replaces this view by the kernel with every step. Each firing has its check", () =>
      step(null),
    ),
  );
}

function writeSummary({ firings, kernels }: Branch): string {
  const wrongCount = firings.filter(({ verdict }) => verdict === "differs").length;
  const words =
    wrongCount > 0
      ? `${wrongCount} of ${count(firings.length, "firing")} changed a computed value`
      : firings.length > 0
        ? `${count(firings.length, "firing")}, none changed a computed value`
        : "The rule did not fire";
  return `${words}; ${kernels.length === 0 ? "no kernel changed" : `${count(kernels.length, "kernel")} changed`}.`;
}

function makeFiringRow(store: Store, firing: RuleFiring, step: (firing: RuleFiring) => void): HTMLElement {
  const { trace } = store.index;
  const stage = trace.stages.find(({ name, kernel }) => name === firing.stage && kernel === firing.kernel);
  const node = addDigests(trace.nodes).find(({ digest }) => digest !== "" && firing.node.startsWith(digest));
  const go = (): void => {
    if (stage !== undefined) store.go({ stage: stage.id, step: 0, graph: "uops" });
    if (node !== undefined) store.select([node.id]);
  };
  const words = h(
    "span",
    {},
    h("span", { class: "removed" }, firing.before),
    h("span", { class: "faint" }, " → "),
    h("span", { class: "added" }, firing.after),
  );
  const head = h(
    "button",
    {
      type: "button",
      class: "event",
      disabled: stage === undefined && node === undefined,
      onclick: go,
      title: node === undefined ? "This node is not in the capture" : "Show the node in the graph",
    },
    h("span", { class: "faint" }, `kernel ${firing.kernel}, ${firing.stage}, step ${firing.step}`),
    words,
  );
  const says =
    firing.verdict === "differs"
      ? firing.was === ""
        ? h("p", { class: "note" }, firing.says)
        : makeCounterexample(firing.inputs, firing.was, firing.has_become)
      : null;
  const there =
    store.sendRequest === null
      ? null
      : button("step", "This firing among the steps of its branch", () => step(firing), "quiet");
  return h("div", { class: "rules-place", title: firing.says }, head, makeVerdictTag(firing.verdict), there, says);
}

function makeKernelView(trace: Trace, variant: KernelVariant): HTMLElement {
  const { kernel, name, verdict, note } = variant;
  const [was, now, ratio] = [baseText(variant), timeText(variant), ratioText(variant)];
  const isUntimed = note.startsWith("not timed"); // the kernel is valid
  const times = now === "" || was === "" ? (isUntimed ? note : "not timed") : `${was} → ${now}`;
  const head = h(
    "summary",
    {},
    h("b", {}, `kernel ${kernel} · ${name}`),
    h("span", {}, times),
    ratio === "" ? null : h("span", { class: `tuner-ratio ${verdict}` }, ratio),
    note === "" || isUntimed ? null : h("span", { class: "rules-wrong" }, note),
  );
  const details = h("details", { class: "rules-kernel" }, head);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(makeDifference(trace, variant));
  });
  return details;
}

/** Returns the source compared with that of the capture. */
function makeDifference(trace: Trace, variant: KernelVariant): HTMLElement {
  const captured = trace.programs.filter(({ kernel }) => kernel === variant.kernel);
  const languages = WANTED.filter(
    (name) =>
      variant.listings.some(({ language }) => language === name) && captured.some(({ language }) => language === name),
  );
  const body = h("div", { class: "rules-diff" });
  const draw = (language: string): void => {
    const before = captured.find((program) => program.language === language)!.lines.map(({ text }) => text);
    const after = variant.listings.find((listing) => listing.language === language)!.lines;
    const changes: (LineChange | null)[] = selectChanges(compareLines(before, [...after]));
    const tabs = languages.map((tabLanguage) =>
      tab(tabLanguage, languageName(tabLanguage), tabLanguage === language, () => draw(tabLanguage)),
    );
    const lines = changes.map((change) =>
      change === null ? h("div", { class: "tuner-gap", "aria-hidden": "true" }, "⋯") : makeLine(change, language),
    );
    body.replaceChildren(
      h("div", { class: "bar" }, tabList("Listings", ...tabs)),
      h("div", { class: "listing scroll", tabindex: 0, role: "group", "aria-label": languageName(language) }, ...lines),
    );
  };
  if (languages.length > 0) draw(languages[0]);
  return body;
}
