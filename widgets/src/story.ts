// The way of a program told stage by stage, one sentence each; every word and figure follows from the trace.

import { callName, count, duration, figures, grouped, languageName, samples, span, truncate } from "./format";
import type { KernelInfo, NestLine, Node, Stage, Step, Trace } from "./model";
import type { TraceIndex } from "./provenance";
import type { Cursor } from "./store";

export type ChapterKey = "python" | "tensors" | "kernels" | "loops" | "rewrites" | "code" | "time";

export interface Chapter {
  key: ChapterKey;
  title: string;
  sentence: string;
  /** Where the views are that show more of it. */
  place: Partial<Cursor>;
  /** The kernel that it is about. */
  kernel: number | null;
}

/** The chapters of which the trace has something to tell, in order. */
export function chapters(index: TraceIndex): Chapter[] {
  const { trace } = index;
  const kernel = subject(index);
  const told: (Omit<Chapter, "kernel"> | null)[] = [
    { key: "python", title: "Python", sentence: python(index), place: { place: "python" } },
    { key: "tensors", title: "Tensors", sentence: tensors(index), place: { place: "lazy", graph: "lazy" } },
    {
      key: "kernels",
      title: "Kernels",
      sentence: kernels(index),
      place: { place: "kernels", graph: "lazy", panel: "kernels" },
    },
    loops(index, kernel),
    rewrites(index, kernel),
    code(index, kernel),
    { key: "time", title: "Time", sentence: time(index, slowest(index)), place: { place: "run", panel: "timing" } },
  ];
  const id = kernel?.id ?? null;
  const found = told.filter((one): one is Omit<Chapter, "kernel"> => one !== null && one.sentence !== "");
  return found.map((one) => ({
    ...one,
    kernel: id,
    place: { ...one.place, ...(id === null || trace.kernels[id] === undefined ? {} : { kernel: id }) },
  }));
}

/** Whether a line of the capture requested a LazyBuffer: what was there before is known by no call (in a trace with calls). */
function isAsked({ nodes }: Trace): (node: Node) => boolean {
  const hasCalls = nodes.some(({ calls }) => calls.length > 0);
  return ({ calls }) => calls.length > 0 || !hasCalls;
}

/** The kernel that the story follows: the slowest of those whose rewrites were recorded, else of all. */
export function subject(index: TraceIndex): KernelInfo | null {
  const own = index.trace.kernels.filter(({ id }) => !index.earlier.has(id));
  const recorded = own.filter((kernel) => typicalFiring(index, kernel) !== null);
  return slowest(index, recorded) ?? slowest(index);
}

/** The kernel that took longest; of kernels that did not run, the first. */
export function slowest(
  index: TraceIndex,
  kernels: readonly KernelInfo[] = index.trace.kernels.filter(({ id }) => !index.earlier.has(id)),
): KernelInfo | null {
  const us = ({ id }: KernelInfo): number => index.runOf(id)?.median_us ?? -1;
  return kernels.reduce<KernelInfo | null>((best, one) => (best === null || us(one) > us(best) ? one : best), null);
}

function python({ trace }: TraceIndex): string {
  const made = trace.nodes.filter((node) => node.kind === "lazybuffer" && node.user !== null);
  const lines = new Set(made.map((node) => `${trace.frames[node.user!].source}:${trace.frames[node.user!].line}`));
  if (lines.size === 0) return "";
  const asked = made.filter(isAsked(trace));
  const calls = tally(asked.flatMap(({ calls }) => calls.slice(0, 1).map(callName)));
  const others = calls.slice(3).reduce((sum, [, n]) => sum + n, 0);
  const words = [
    ...calls.slice(0, 3).map(([name, n]) => `${n} by ${name}`),
    ...(others > 0 ? [`${others} by others`] : []),
  ];
  const which = words.length === 0 ? "" : `: ${listed(words)}`;
  const earlier = made.length - asked.length;
  const before = earlier === 0 ? "" : ` ${grouped(earlier)} more ${earlier === 1 ? "was" : "were"} there before.`;
  return `${count(lines.size, "line")} of your Python built ${count(asked.length, "operation on tensors", "operations on tensors")}${which}.${before}`;
}

function tensors({ trace }: TraceIndex): string {
  const nodes = trace.nodes.filter((node) => node.kind === "lazybuffer");
  if (nodes.length === 0) return "";
  const of = (group: string): number => nodes.filter((node) => node.group === group).length;
  const [buffers, views, constants] = [of("buffer"), of("movement"), of("const")];
  const others = nodes.length - buffers - views - constants;
  const parts = [
    buffers > 0 ? `${buffers} ${buffers === 1 ? "is" : "are"} memory that holds values` : "",
    constants > 0 ? `${constants} ${constants === 1 ? "is a constant" : "are constants"}` : "",
    views > 0 ? `${views} only ${views === 1 ? "looks" : "look"} at values in another shape` : "",
    others > 0 ? `${others} ${others === 1 ? "computes" : "compute"}` : "",
  ].filter(Boolean);
  return `They are a graph of ${count(nodes.length, "node")}: ${listed(parts)}.`;
}

function kernels({ trace }: TraceIndex): string {
  if (trace.kernels.length === 0) return "";
  const decisions = trace.stages.flatMap((stage) => stage.decisions);
  const of = (word: string): number => decisions.filter(({ decision }) => decision === word).length;
  const [kept, fused, rows, parts, again, merged] = ["realize", "fuse", "keep", "split", "duplicate", "merge"].map(of);
  const number = trace.kernels.length === 1 ? "one kernel" : count(trace.kernels.length, "kernel");
  const words = [
    kept > 0
      ? `${count(kept, "result")} ${kept === 1 ? "gets" : "get"} memory of ${kept === 1 ? "its" : "their"} own`
      : "",
    fused > 0
      ? `${fused} ${fused === 1 ? "is" : "are"} computed right where ${fused === 1 ? "it is" : "they are"} read`
      : "",
    rows > 0 ? `${rows} ${rows === 1 ? "is" : "are"} kept a row at a time, in scratch memory` : "",
    parts > 0 ? `${parts} ${parts === 1 ? "is a reduction" : "are reductions"} done in parts` : "",
    again > 0 ? `${again} ${again === 1 ? "is" : "are"} computed again by each reader` : "",
    merged > 0
      ? `${merged} ${merged === 1 ? "has" : "have"} the same value as another node and ${merged === 1 ? "is" : "are"} computed with it`
      : "",
  ].filter(Boolean);
  return `The scheduler makes ${number} of them${words.length > 0 ? `: ${listed(words)}` : ""}.`;
}

function loops(index: TraceIndex, kernel: KernelInfo | null): Omit<Chapter, "kernel"> | null {
  if (kernel === null || kernel.axes.length === 0) return null;
  const stage = stagesOf(index, kernel).find(({ opts }) => opts.length > 0);
  const applied = stage?.opts.filter((opt) => opt.applied) ?? [];
  const few = kernel.opts.length <= 4 ? kernel.opts : [...kernel.opts.slice(0, 3), `${kernel.opts.length - 3} more`];
  const chosen =
    kernel.opts.length === 0
      ? "as the scheduler wrote it"
      : `after ${count(kernel.opts.length, "optimisation")}: ${listed(few)}`;
  const why =
    applied.length > 0 && applied[0].reason !== ""
      ? ` The optimiser on ${applied[0].opt}: “${applied[0].reason}”.`
      : "";
  const which =
    index.trace.kernels.length === 1
      ? "The kernel"
      : index.runOf(kernel.id) === null || kernel !== slowest(index)
        ? `Kernel ${kernel.id}`
        : `Kernel ${kernel.id}, the slowest,`;
  const place: Partial<Cursor> =
    stage === undefined ? { place: "kernels" } : { place: "passes", stage: stage.id, graph: "uops", panel: "rewrites" };
  return {
    key: "loops",
    title: "Loops",
    sentence: `${which} runs in ${count(kernel.axes.length, "loop")}, ${chosen}.${why}`,
    place,
  };
}

/** The first firing of the rule that fired most on a kernel, of those whose law says more than their name. */
export function typicalFiring(index: TraceIndex, kernel: KernelInfo): { stage: Stage; at: number; step: Step } | null {
  const own = stagesOf(index, kernel);
  const rules = tally(firedRules(own));
  const most = rules.find(([id]) => !index.trace.rules[id].law.includes(`${index.trace.rules[id].name}(`)) ?? rules[0];
  for (const stage of own) {
    const at = stage.steps.findIndex(({ rule }) => most !== undefined && rule === most[0]);
    if (at >= 0) return { stage, at: at + 1, step: stage.steps[at] };
  }
  return null;
}

function rewrites(index: TraceIndex, kernel: KernelInfo | null): Omit<Chapter, "kernel"> | null {
  const typical = kernel === null ? null : typicalFiring(index, kernel);
  if (kernel === null || typical === null) return null;
  const fired = stagesOf(index, kernel).filter((stage) => index.firings(stage) > 0);
  const rules = tally(firedRules(fired));
  const firings = rules.reduce((sum, [, n]) => sum + n, 0);
  const rule = index.trace.rules[typical.step.rule!];
  const times = rules.find(([id]) => id === rule.id)![1];
  const sentence =
    `Rules rewrite the loops into what the machine can do: ${count(firings, "firing")} of ${count(rules.length, "rule")} in ` +
    `${count(fired.length, "pass", "passes")}. This is the first of ${rule.name}, which fired ${times === 1 ? "once" : `${times} times`}.`;
  const { stage, at } = typical;
  return {
    key: "rewrites",
    title: "Rewrites",
    sentence,
    place: { place: "passes", stage: stage.id, step: at, graph: "uops", panel: "rewrites" },
  };
}

function code(index: TraceIndex, kernel: KernelInfo | null): Omit<Chapter, "kernel"> | null {
  const programs = index.programsOf(kernel?.id ?? null);
  if (kernel === null || programs.length === 0) return null;
  const sizes = programs.map(({ language, lines }) => `${count(lines.length, "line")} of ${languageWords(language)}`);
  const last = programs.find(({ language }) => language === "asm") ?? programs[programs.length - 1];
  const known = last.lines.filter(({ nodes }) => nodes.some((id) => index.frameOf(id, kernel.id) !== null)).length;
  const linked =
    known === 0
      ? ""
      : ` Of the ${languageWords(last.language)}, ${count(known, "line")} ${known === 1 ? "knows" : "know"} the line of your Python behind ${known === 1 ? "it" : "them"}: click one.`;
  return {
    key: "code",
    title: "Code",
    sentence: `The kernel written out: ${listed(sizes)}.${linked}`,
    place: { place: "code", tabs: { all: last.language } },
  };
}

/** A language within a sentence. */
function languageWords(language: string): string {
  return { "llvm-opt": "optimised LLVM IR", asm: "assembly" }[language] ?? languageName(language);
}

function time(index: TraceIndex, kernel: KernelInfo | null): string {
  const { kernels } = index.trace;
  const runs = kernels.flatMap(({ id }) => index.runOf(id) ?? []);
  const run = kernel === null ? null : index.runOf(kernel.id);
  if (kernel === null) return "";
  if (run === null) return kernel.not_run === "" ? "" : `It has no time. ${kernel.not_run}`;
  const total = runs.reduce((sum, { median_us }) => sum + median_us, 0);
  const times = run.warm ? `the median of ${samples(run)}` : samples(run);
  const one = `${span(run)}, ${times}`;
  if (runs.length === 1) return `It takes ${one}.`;
  const share = total > 0 ? `, ${figures((run.median_us / total) * 100)} % of it in kernel ${kernel.id} (${one})` : "";
  return `${runs.length === 2 ? "Both" : `All ${runs.length}`} kernels take ${duration(total)}${share}.`;
}

/** The loops of a kernel and what stands in them; of a trace that has only its axes, these in each other. */
export function nestOf({ trace }: TraceIndex, kernel: KernelInfo): Pick<NestLine, "depth" | "text" | "kind">[] {
  const { nest } = kernel.nest.length > 0 || kernel.same_as === null ? kernel : trace.kernels[kernel.same_as];
  if (nest.length > 0) return nest;
  const loops = kernel.axes.map(([name, kind, size], depth) => ({
    depth,
    text: `for ${name} in range(${size})`,
    kind,
  }));
  const step = kernel.calls.length > 0 ? `one step of ${kernel.calls.map(callName).join(", ")}` : "one step";
  return [...loops, { depth: loops.length, text: step, kind: "" }];
}

/** What an axis kind means, for those who do not know the words yet. */
export const AXIS_WORDS: Record<string, string> = {
  global: "an ordinary loop over results",
  thread: "shared among the cores: each does a part",
  warp: "the lanes of a warp, which hold the operands of a tensor core together",
  local: "shared among the lanes of a workgroup",
  reduce: "accumulates: each step adds to what the one before left",
  group: "a reduction shared by the lanes of a workgroup",
  unroll: "a reduction written out, an accumulator each",
  upcast: "written out: each has registers of its own",
  vector: "done at once by the lanes of vector instructions",
  scan: "in order: each step goes on from the one before",
  copy: "fills scratch memory, before it is read",
  row: "computes a row into scratch memory, before it is read",
  rare: "done once or not at all",
};

/** The stages that made a kernel; one that reuses a program has those of the kernel that it is the same as. */
export function stagesOf(index: TraceIndex, kernel: KernelInfo): Stage[] {
  const own = index.trace.stages.filter((stage) => stage.kernel === kernel.id);
  if (own.length > 0 || kernel.same_as === null) return own;
  return stagesOf(index, index.trace.kernels[kernel.same_as]);
}

function firedRules(stages: readonly Stage[]): number[] {
  return stages.flatMap(({ steps }) => steps.flatMap(({ rule }) => (rule === null ? [] : [rule])));
}

function tally<T>(words: readonly T[]): [T, number][] {
  const counts = new Map<T, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`;
}

export interface AskingLine {
  source: number;
  line: number;
  text: string;
  asked: number;
  /** What was built before the capture and is first used here. */
  earlier: number;
}

/** The user's lines that requested tensors, with how many each requested; of a short source, all lines. */
export function askingLines({ trace }: TraceIndex, short = 14): AskingLine[] {
  const isOwn = isAsked(trace);
  const asked = new Map<string, AskingLine>();
  const enter = (source: number, line: number, text: string): AskingLine => {
    const key = `${source}:${line}`;
    const one = asked.get(key) ?? { source, line, text: truncate(text, 160), asked: 0, earlier: 0 };
    asked.set(key, one);
    return one;
  };
  for (const node of trace.nodes) {
    if (node.kind !== "lazybuffer" || node.user === null) continue;
    const { source, line } = trace.frames[node.user];
    enter(source, line, trace.sources[source]?.text.split("\n")[line - 1] ?? "")[isOwn(node) ? "asked" : "earlier"] +=
      1;
  }
  for (const source of new Set([...asked.values()].map((one) => one.source))) {
    const lines = trace.sources[source]?.text.trimEnd().split("\n") ?? [];
    if (lines.length <= short) lines.forEach((text, i) => enter(source, i + 1, text));
  }
  return [...asked.values()].sort((a, b) => a.source - b.source || a.line - b.line);
}
