// The entries of "Go to": panels, actions, chapters, kernels, passes, rules, listings, operations, opcodes and
// tensors.

import { countText, isTensor, findLevel, levelOf } from "../dialect";
import { canShow } from "../panel_availability";
import { selectKernel } from "../kernel_selection";
import { findMeaning } from "../term_meanings";
import { count, duration, languageName } from "../format";
import { readableName } from "../kernel_labels";
import { placeOf } from "../links";
import type { Run, Stage } from "../model";
import { GraphReader } from "../visible_graph";
import { PANEL_ROWS } from "../panel_rows";
import { PANELS, type Store } from "../store";
import { listChapters } from "../story_chapters";
import { tokenize } from "../tokenizer";
import { verdictsOf } from "../verdicts";
import { tabsWith } from "../views/code";
import { PANEL_DESCRIPTIONS } from "./panel_descriptions";

/** The kinds in the order in which equally good matches are listed. */
export const KINDS = [
  "question",
  "how-to",
  "panel",
  "action",
  "kernel",
  "pass",
  "rule",
  "tensor",
  "operation",
  "UOp",
  "opcode",
  "listing",
  "chapter",
] as const;

export interface Entry {
  kind: (typeof KINDS)[number];
  name: string;
  /** The description, which is searched, too. */
  says: string;
  /** The shortcut key for the same action. */
  key?: string;
  /** Further words that find it. */
  words?: readonly string[];
  /** The text that it copies instead of going anywhere. */
  copies?: string;
  /** Goes there; the workbench is open before. */
  go: () => void;
}

/** The functions that entries use in addition to the store. */
export interface Reach {
  store: Store;
  root: HTMLElement;
  /** Opens the workbench if the story is open. */
  openWorkbench: () => Promise<void>;
  /** Goes to the position of a link. */
  open: (link: string) => Promise<void>;
  /** Searches the visible graph. */
  find: (query: string) => void;
}

export type Explain = (language: string, word: string) => string | null;

const ACTIONS: [key: string, shown: string, name: string, says: string][] = [
  ["ArrowRight", "→", "Next firing", "one step forward, also into the next pass"],
  ["ArrowLeft", "←", "Previous firing", "one step back, also into the previous pass"],
  ["ArrowDown", "↓", "Next pass", "before its first firing"],
  ["ArrowUp", "↑", "Previous pass", "before its first firing"],
  ["Home", "Home", "First step of the pass", "before the first firing"],
  ["End", "End", "Last step of the pass", "after the last firing"],
  ["n", "N", "Next firing on this node", "in the history of the selected node"],
  ["r", "R", "Next firing of this rule", "of the rule that fired at this step"],
  ["/", "/", "Search the graph", "words, /regular expressions/, op: dtype: shape:"],
  ["f", "F", "Fit the graph", "show the whole graph"],
  ["i", "I", "Isolate", "only the selected nodes, their sources and users"],
  ["e", "E", "Unfold or fold", "the selected box of the graph"],
  ["o", "O", "Origin", "the tensors of the selected nodes, and their Python"],
  ["p", "P", "Full size", "the panel instead of graph and code, or back"],
  ["z", "Z", "Full screen", "the explorer on the whole screen, or back"],
  ["w", "W", "Story", "one stage at a time: a picture and a sentence"],
  ["Escape", "Esc", "Clear the selection", "no node is selected"],
];
const WITH_OPCODES = /^(asm|ptx|amdgcn|llvm.*)$/;

/** Returns all entries of the trace, those of the current kernel first. */
export function entriesOf(reach: Reach, explain: Explain): Entry[] {
  return [
    ...listQuestions(reach),
    ...listHowTos(reach),
    ...listPanels(reach),
    ...listActions(reach),
    ...listKernels(reach),
    ...listPasses(reach),
    ...listRules(reach),
    ...listOperations(reach, explain),
    ...listOpcodes(reach, explain),
    ...listListings(reach),
    ...listStoryPages(reach),
  ];
}

/** Returns questions that the verdict answers: they open Timing at the decisive kernel. */
function listQuestions({ store }: Reach): Entry[] {
  const { trace } = store.index;
  const slowest = trace.runs.reduce<Run | null>((a, b) => (a === null || b.median_us > a.median_us ? b : a), null);
  if (slowest === null) return [];
  const verdict = verdictsOf(store, () => undefined)?.whole ?? null;
  const kernel = verdict?.kernel ?? slowest.kernel;
  const says = verdict?.text ?? `kernel ${kernel} takes longest: ${duration(slowest.median_us)}`;
  const names = ["Why is it slow?", "Is this fast?", "Which kernel is slowest?", "What is the bottleneck?"];
  return names.map((name) => ({ kind: "question", name, says, go: () => store.go({ panel: "timing", kernel }) }));
}

/** Returns what only Python does, as code to copy; a saved page is already the file to send. */
function listHowTos({ root }: Reach): Entry[] {
  const entry = (name: string, says: string, copies: string, words: string): Entry => ({
    kind: "how-to",
    name,
    says,
    copies,
    words: words.split(" "),
    go: () => undefined,
  });
  const toShare = "save share send export html download page file publish";
  const compared = "from tinyexplore.explore import compare\ncompare(a, b)";
  const code = (text: string): string => `in Python: ${text}`;
  return [
    ...(root.dataset.page === "true"
      ? [entry("This page is a file: send it", location.href, location.href, toShare)]
      : [
          entry("Save a page to share", code('view.to_html("page.html")'), 'view.to_html("page.html")', toShare),
          entry("Save the trace", code('view.save("trace.json.gz")'), 'view.save("trace.json.gz")', `${toShare} json`),
        ]),
    entry("Compare two captures", code("compare(a, b)"), compared, "compare diff difference versus against"),
  ];
}

function listPanels({ store }: Reach): Entry[] {
  return PANELS.filter((panel) => canShow(store, panel)).map((panel) => ({
    kind: "panel",
    name: PANEL_ROWS[panel].title,
    says: PANEL_DESCRIPTIONS[panel],
    go: () => store.go({ panel }),
  }));
}

function listActions({ root }: Reach): Entry[] {
  return ACTIONS.map(([key, keyText, name, says]) => ({
    kind: "action",
    name,
    says,
    key: keyText,
    go: () => void root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })),
  }));
}

function listStoryPages({ store, open }: Reach): Entry[] {
  const pages = listChapters(store.index);
  return pages.length < 2
    ? []
    : pages.map(({ key, title, about }) => ({
        kind: "chapter",
        name: title,
        says: about,
        go: () => void open(`#story=${key}`),
      }));
}

function listKernels({ store }: Reach): Entry[] {
  const { trace } = store.index;
  const took = new Map(trace.runs.map(({ kernel, median_us }) => [kernel, median_us]));
  return trace.kernels.map((kernel) => {
    const { id, name, calls } = kernel;
    const human = readableName(kernel);
    const code = human === name ? calls.join(", ") : name;
    const time = took.get(id);
    const says = [code, time === undefined ? "" : duration(time)].filter(Boolean).join(" · ");
    return { kind: "kernel", name: `${id} · ${human}`, says, go: () => selectKernel(store, id) };
  });
}

/** Returns the stages, those of the current kernel first. */
function sortStages({ index, cursor }: Store): Stage[] {
  const { stages, kernels: all } = index.trace;
  const owner = cursor.kernel === null ? null : (all[cursor.kernel].same_as ?? cursor.kernel);
  const isHere = ({ kernel }: Stage): boolean => kernel === owner || kernel === null;
  return [...stages.filter(isHere), ...stages.filter((stage) => !isHere(stage))];
}

function listPasses({ store }: Reach): Entry[] {
  const { index } = store;
  return sortStages(store).map((stage) => {
    const fired = index.firings(stage);
    const says = [
      stage.kernel === null ? "" : `kernel ${stage.kernel}`,
      fired > 0 ? count(fired, "firing") : "",
      findMeaning("pass", stage.name),
    ]
      .filter(Boolean)
      .join(" · ");
    const go = (): void =>
      store.go({
        ...placeOf(index, stage.id),
        kernel: stage.kernel ?? store.cursor.kernel,
        step: 0,
        panel: "rewrites",
      });
    return { kind: "pass", name: stage.name, says, go };
  });
}

/** Returns an entry per rule, which goes to its next firing after the current position, first in the current kernel. */
function listRules({ store }: Reach): Entry[] {
  const { index } = store;
  const firings = new Map<number, { stage: number; step: number }[]>();
  for (const stage of sortStages(store)) {
    stage.steps.forEach(({ rule }, i) => {
      if (rule === null) return;
      if (!firings.has(rule)) firings.set(rule, []);
      firings.get(rule)!.push({ stage: stage.id, step: i + 1 });
    });
  }
  return index.trace.rules.flatMap(({ id, name, law }): Entry[] => {
    const places = firings.get(id) ?? [];
    if (places.length === 0) return [];
    const go = (): void => {
      const current = places.findIndex(({ stage, step }) => stage === store.cursor.stage && step === store.cursor.step);
      const { stage, step } = places[(current + 1) % places.length];
      store.go({
        ...placeOf(index, stage),
        kernel: index.trace.stages[stage].kernel ?? store.cursor.kernel,
        step,
        place: "passes",
        panel: "rewrites",
      });
    };
    return [{ kind: "rule", name, says: [count(places.length, "firing"), law].filter(Boolean).join(" · "), go }];
  });
}

/** Returns entries for the kinds of LazyBuffers and UOps, and for named tensors. */
function listOperations({ store }: Reach, explain: Explain): Entry[] {
  const tensors = new Map<string, number[]>();
  const named = new Map<string, number[]>();
  const uops = new Set<string>();
  const add = (to: Map<string, number[]>, key: string, node: number): void =>
    void (to.get(key)?.push(node) ?? to.set(key, [node]));
  const { trace } = store.index;
  for (const node of trace.nodes) {
    const { id, op, name } = node;
    if (!isTensor(trace, node)) {
      if (levelOf(trace, node).role === "program") uops.add(op);
    } else {
      add(tensors, op, id);
      if (name !== "") add(named, name, id);
    }
  }
  const show = (nodes: number[]): void => {
    store.go({ graph: "lazy", place: "lazy" });
    store.select(nodes);
  };
  const word = trace.dialect === null ? "UOp" : "operation";
  return [
    ...[...named].map(
      ([name, nodes]): Entry => ({
        kind: "tensor",
        name,
        says: store.index.node(nodes[0]).detail,
        go: () => show(nodes),
      }),
    ),
    ...[...tensors].map(
      ([op, nodes]): Entry => ({
        kind: "operation",
        name: op,
        says: countText(nodes.length, findLevel(trace, "tensors")),
        go: () => show(nodes),
      }),
    ),
    ...[...uops]
      .sort()
      .map((op): Entry => ({ kind: word, name: op, says: explain("uops", op) ?? "", go: () => showUops(store, op) })),
  ];
}

/**
 * Selects the UOps of a kind in the visible graph, else in the last graph that has one, if possible of the current
 * kernel.
 */
function showUops(store: Store, op: string): void {
  const { index } = store;
  const isWanted = (node: number): boolean => index.node(node).op === op && !isTensor(index.trace, index.node(node));
  const inView = [...new GraphReader(index).graphAt(store.cursor).graph.nodes.values()]
    .map(({ node }) => node)
    .filter(isWanted);
  if (inView.length > 0) return store.select(inView);
  const all = sortStages(store);
  const kernelStages = all.filter(({ kernel }) => kernel === all[0].kernel);
  for (const stage of [...all]
    .reverse()
    .sort((a, b) => Number(kernelStages.includes(b)) - Number(kernelStages.includes(a)))) {
    const matching = listReached(store, stage.after).filter(isWanted);
    if (matching.length === 0) continue;
    store.go({ ...placeOf(index, stage.id), kernel: stage.kernel ?? store.cursor.kernel, step: index.endOf(stage) });
    return store.select(matching);
  }
}

function listReached({ index }: Store, roots: readonly number[]): number[] {
  const visited = new Set(roots);
  // the iteration of a set includes items that are added meanwhile
  for (const node of visited) for (const src of index.node(node).src) visited.add(src);
  return [...visited];
}

/** Returns an entry for each opcode of machine code and LLVM IR, with its lines. */
function listOpcodes(reach: Reach, explain: Explain): Entry[] {
  const { store } = reach;
  return store.index.programsOf(store.cursor.kernel).flatMap(({ language, lines }) => {
    if (!WITH_OPCODES.test(language)) return [];
    const linesOf = new Map<string, number[]>();
    lines.forEach(({ text }, line) => {
      const words = tokenize(language, text)
        .filter(([kind]) => kind === "call")
        .map(([, word]) => word.trim());
      for (const word of new Set(words)) void (linesOf.get(word)?.push(line) ?? linesOf.set(word, [line]));
    });
    return [...linesOf].map(([word, lineNumbers]): Entry => {
      const says = [`${languageName(language)}, ${count(lineNumbers.length, "line")}`, explain(language, word) ?? ""]
        .filter(Boolean)
        .join(" · ");
      return { kind: "opcode", name: word, says, go: () => showLine(reach, language, lineNumbers) };
    });
  });
}

/** Opens a listing and selects the next of these lines after the selected one. */
function showLine({ store, root }: Reach, language: string, lines: readonly number[]): void {
  openListing(store, language);
  const pane = [...root.querySelectorAll<HTMLElement>(".code")].find(
    (element) => element.querySelector(`[data-language="${language}"]`) !== null,
  );
  const chosen = Number(pane?.querySelector<HTMLElement>(".line.caret")?.dataset.line ?? -1);
  const line = lines.find((value) => value > chosen) ?? lines[0];
  const row = pane?.querySelector<HTMLElement>(`[data-line="${line}"]`);
  row?.click();
  row?.scrollIntoView({ block: "nearest" });
}

function openListing(store: Store, language: string): void {
  store.go({ tabs: tabsWith(store.cursor.tabs, language) });
}

function listListings({ store }: Reach): Entry[] {
  const { cursor, index } = store;
  return index.programsOf(cursor.kernel).map(({ language, lines }) => {
    return {
      kind: "listing",
      name: languageName(language),
      says: `${count(lines.length, "line")} of kernel ${cursor.kernel}`,
      go: () => openListing(store, language),
    };
  });
}
