// Stages without firings: the scheduler's decisions, a kernel's opts, and stages that only have a graph or listings.

import { h } from "../dom";
import { findMeaning, describeOpt } from "../term_meanings";
import { count, duration, languageName } from "../format";
import type { Stage } from "../model";
import type { TraceIndex } from "../trace_index";
import type { Store } from "../store";
import { nodeText, diffTrees, printTree } from "../text_tree";
import { tabsWith } from "./code";
import { type StepDetails, transformText } from "./step_text";
import { pairOf, treeOf } from "./step_trees";

/** The content of a stage: `body`, or `count` rows that are created when visible; and the text beside it. */
export type StageContent = { detail: StepDetails } & (
  | { body: Element[] }
  | { count: number; row: (index: number) => HTMLElement }
);

/** Returns the scheduler's decisions, one row each. */
export function decisionsOf(store: Store, stage: Stage): StageContent {
  const { index } = store;
  const row = (position: number): HTMLElement => {
    const { node, decision, reason } = stage.decisions[position];
    const { label, detail, name } = index.node(node);
    const choose = (): void => store.select([node]);
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
      h("span", { class: `tag d-${decision}`, title: findMeaning("decision", decision) || null }, decision),
      h("b", {}, name === "" ? label : `${name} = ${label}`),
      h("span", { class: "faint" }, detail),
      h("span", { class: "why" }, reason),
    );
  };
  const counts = countWords(stage.decisions.map(({ decision }) => decision));
  const text = Object.entries(counts).map(([decision, n]) =>
    h("p", {}, h("span", { class: `tag d-${decision}` }, `${decision} ${n}`), ` ${findMeaning("decision", decision)}`),
  );
  const detail = [
    h("h5", {}, stage.name),
    h("p", {}, `${count(stage.decisions.length, "decision")} in ${duration(stage.elapsed_us)}`),
    ...text,
  ];
  return { count: stage.decisions.length, row, detail };
}

/** Returns the opts of a kernel, each with its result, and the candidates of a search. */
export function optsOf({ index }: Store, stage: Stage): StageContent {
  const rows = stage.opts.map(({ opt, applied, reason }) =>
    h(
      "div",
      { class: `cell decision ${applied ? "" : "rejected"}` },
      h("span", { class: `tag ${applied ? "d-fuse" : "d-view"}` }, applied ? "applied" : "rejected"),
      h("b", { title: describeOpt(opt) || null }, opt),
      h("span", { class: "why" }, reason),
    ),
  );
  const applied = stage.opts.filter((opt) => opt.applied).length;
  const tried = stage.candidates.length > 0 ? `, ${count(stage.candidates.length, "candidate")} timed` : "";
  const text = `${applied} applied, ${stage.opts.length - applied} rejected${tried}, in ${duration(stage.elapsed_us)}`;
  return {
    body: [...rows, ...makeCandidateRows(stage), ...lawsOf(index, stage)],
    detail: [h("h5", {}, stage.name), h("p", {}, text), ...axesOf(index, stage)],
  };
}

/** Returns the law of each kind of opt in the stage: its text, and a loop nest before and after. */
function lawsOf(index: TraceIndex, stage: Stage): Element[] {
  const ids = new Set(stage.opts.flatMap((opt) => opt.laws));
  return [...ids].flatMap((id) => {
    const law = index.trace.laws[id]!;
    const nests = [h("div", {}, law.before), h("div", { class: "faint" }, "→"), h("div", {}, law.after)];
    const words = law.words.split("`").map((part, k) => (k % 2 === 1 ? h("code", {}, part) : part));
    return [
      h("p", { class: "says" }, h("b", {}, law.name), " ", ...words, ":"),
      h("div", { class: "law nests" }, ...nests),
    ];
  });
}

/** Returns the loops of the stage's kernel. */
function axesOf(index: TraceIndex, stage: Stage): Element[] {
  const kernel = stage.kernel === null ? undefined : index.trace.kernels[stage.kernel];
  if (kernel === undefined || kernel.axes.length === 0) return [];
  const nest = kernel.axes.map(([name, kind, size], depth) =>
    h(
      "div",
      { class: "cell", title: findMeaning("axis", kind) || null },
      `${" ".repeat(depth * 2)}for `,
      h("b", { class: `axis-${kind}` }, name),
      ` in range(${size})  `,
      h("span", { class: "faint" }, kind),
    ),
  );
  return [h("p", {}, "The loops of the kernel, outermost first:"), h("div", { class: "tree" }, ...nest)];
}

/** Returns the content of a stage without steps, decisions or opts: its graph, before and after if both exist. */
export function makeStageContent(store: Store, stage: Stage): StageContent {
  const { index } = store;
  const { trace } = index;
  const inside = index.children.get(stage.id) ?? [];
  const took = `${duration(stage.elapsed_us)}${inside.length > 0 ? `, with ${count(inside.length, "stage")} inside` : ""}`;
  const changed = index.changed(stage);
  const [before] = stage.before;
  const [after] = stage.after;
  const isProgram = stage.after.length > 1 && (stage.before.length === 1 || stage.transform !== null); // nodes in order
  let body: HTMLElement[];
  let verdict = changed === false ? "No change." : changed === null ? "" : "The steps inside were not recorded.";
  if (isProgram) {
    body = [
      treeOf(
        store,
        stage.after.map((node) => ({ node, prefix: "", text: nodeText(index.node(node)), folded: 0, hidden: "" })),
      ),
    ];
    verdict = `${count(stage.after.length, "UOp")} in order; the listings have them with their operands.`;
  } else if (
    changed &&
    before !== undefined &&
    after !== undefined &&
    index.node(before).kind === index.node(after).kind
  ) {
    body = [pairOf(store, diffTrees(trace, before, after))];
  } else if (after !== undefined) {
    body = [
      treeOf(
        store,
        stage.after.slice(0, 4).flatMap((root) => printTree(trace, root)),
      ),
    ];
  } else {
    body = listingsOf(store, stage);
    if (body.length > 0) verdict = "Every listing of this kernel; a click opens one.";
    else
      body = [
        h("p", { class: "empty" }, `${stage.name} has no graph of its own. It took ${duration(stage.elapsed_us)}.`),
      ];
  }
  const last = inside.length === 0 && verdict !== "" ? h("p", {}, verdict) : null;
  const detail =
    stage.transform === null
      ? [h("h5", {}, stage.name), h("p", {}, took), last]
      : [...transformText(index, stage), changed === false ? null : last];
  return { body, detail };
}

/** Returns the kernel's program in every language, each as a button that opens it. */
function listingsOf(store: Store, stage: Stage): HTMLElement[] {
  return store.index.programsOf(stage.kernel).map(({ language, lines }) => {
    const open = (): void => store.go({ kernel: stage.kernel, tabs: tabsWith(store.cursor.tabs, language) });
    const text = `Shows ${languageName(language)} beside the graph`;
    return h(
      "button",
      { type: "button", class: "event listing-link", title: text, onclick: open },
      h("b", {}, languageName(language)),
      h("span", { class: "faint" }, count(lines.length, "line")),
    );
  });
}

/** Returns the candidates of a search, the fastest first; the length of the bar is the time. */
function makeCandidateRows(stage: Stage): Element[] {
  const times = stage.candidates.map((candidate) => candidate.best_us).filter((us): us is number => us !== null);
  const [fastest, slowest] = [Math.min(...times), Math.max(...times)];
  const byTime = [...stage.candidates].sort((a, b) => (a.best_us ?? Infinity) - (b.best_us ?? Infinity));
  return byTime.map(({ opts, best_us, note }) =>
    h(
      "div",
      { title: note || null, class: `cell candidate${best_us === fastest ? " best" : ""}` },
      h("span", { class: "num" }, best_us === null ? "failed" : duration(best_us)),
      h(
        "span",
        { class: "chart" },
        h("span", { class: "median", style: `width:${((best_us ?? 0) / slowest) * 100}%` }),
      ),
      h("span", {}, opts.length === 0 ? "no opts" : opts.join("  ")),
    ),
  );
}

function countWords(words: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
