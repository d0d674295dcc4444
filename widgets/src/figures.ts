// The figures of a trace, in counts and microseconds: what the strip, the static picture, the footer and texts say.
// The same as tinyexplore/explore/tracefile/figures.py, figure for figure. One clock: a stage's time is its own, without that of
// the stages inside; the parts add up to `compileUs`. A search's time and that of listings for the reader stand apart.

import { count, duration, grouped, languageName, quartiles, samples } from "./format";
import type { BufferInfo, KernelInfo, Stage, Trace } from "./model";
import type { Place } from "./store";

export interface Figure {
  place: Place;
  title: string;
  words: string;
  /** 0 where it takes none. */
  us: number;
}

/** Of a whole trace, or of one kernel. */
export interface Figures {
  parts: Figure[];
  /** All parts but the run. */
  compileUs: number;
  searchUs: number;
  /** One run of each kernel, by the medians. */
  runUs: number;
  firings: number;
}

const IN_TITLE: Record<string, string> = { "llvm-opt": "LLVM IR" }; // two listings of one language

/** The figures of all kernels (null) or of one. A kernel that reuses a program has the stages of the first. */
export function figures(trace: Trace, kernel: number | null = null): Figures {
  const kernels = kernel === null ? trace.kernels : [trace.kernels[kernel]];
  const owners = new Set(kernels.map(ownerOf));
  const stages = trace.stages.filter((stage) => kernel === null || (stage.kernel !== null && owners.has(stage.kernel)));
  const { times, searchUs } = timesOf(trace, stages);
  const runs = new Map(trace.runs.map((run) => [run.kernel, run]));
  const timed = kernels.flatMap(({ id }) => runs.get(id) ?? []);
  const runUs = timed.reduce((sum, run) => sum + run.median_us, 0);
  const members = new Set(kernels.flatMap(({ nodes, roots }) => [...nodes, ...roots]));
  const lazy = trace.nodes.filter((node) => node.kind === "lazybuffer" && (kernel === null || members.has(node.id)));
  const views = lazy.filter((node) => node.group === "movement").length;
  const frames = lazy.flatMap(({ user }) => (user === null ? [] : [trace.frames[user]]));
  const lines = new Set(frames.map(({ source, line }) => `${source} ${line}`));
  const passes = passesOf(trace, stages);
  const firings = passes.reduce((sum, { steps }) => sum + steps.filter((step) => step.rule !== null).length, 0);
  const idle = passes.filter((stage) => !changed(stage)).length;
  const counts = new Map<string, number>();
  for (const program of trace.programs) {
    if (kernel !== null && !owners.has(program.kernel)) continue;
    counts.set(program.language, (counts.get(program.language) ?? 0) + program.lines.length);
  }
  const listed = [...counts.keys()].filter((language) => language !== "uops");
  const names = new Set(listed.map((language) => IN_TITLE[language] ?? languageName(language)));
  const lineCount = listed.reduce((sum, language) => sum + (language === "asm" ? 0 : counts.get(language)!), 0);
  const assembly = counts.get("asm");
  const code = [count(lineCount, "line"), assembly === undefined ? "" : `${number(assembly)} assembly`].filter(Boolean);
  const uops = counts.get("uops");
  times.run = runUs;
  const part = (place: Place, title: string, words: string): Figure => ({ place, title, words, us: times[place] });
  const parts = [
    part("python", "Python", count(lines.size, "line")),
    part("lazy", "LazyBuffers", `${count(lazy.length, "node")} · ${count(views, "view")}`),
    part("kernels", "Kernels", kernelWords(trace, kernel)),
    part(
      "passes",
      "Passes",
      `${count(passes.length, "pass", "passes")} · ${count(firings, "firing")}${idle > 0 ? ` · ${number(idle)} idle` : ""}`,
    ),
    part("uops", "UOps", uops === undefined ? "not listed" : `${number(uops)} linear`),
    part("code", [...names].join(" · ") || "Code", listed.length > 0 ? code.join(" · ") : "not rendered"),
    part(
      "run",
      "Run",
      timed.length === 0
        ? "not timed"
        : kernels.length > 1
          ? count(timed.length, "kernel")
          : [quartiles(timed[0]), samples(timed[0])].filter(Boolean).join(" · "),
    ),
  ];
  return { parts, compileUs: parts.reduce((sum, { us }) => sum + us, 0) - runUs, searchUs, runUs, firings };
}

/** The rewrite passes among `stages`: those that get a graph and have no stage inside. */
export function passesOf(trace: Trace, stages: readonly Stage[]): Stage[] {
  const parents = new Set(trace.stages.map((stage) => stage.parent));
  const searched = searchesOf(trace);
  return stages.filter((stage) => {
    const isLeaf = !parents.has(stage.id) && !searched.has(stage.id);
    return placeOf(stage) === "passes" && isLeaf && stage.before.length + stage.after.length > 0;
  });
}

/** To which part a stage's own time goes; null for listings in other languages, for which no program waits. */
export function placeOf(stage: Stage): Place | null {
  switch (stage.name) {
    case "list":
      return null;
    case "linearize":
    case "interleave":
      return "uops";
    case "render":
    case "compile":
      return "code";
    case "optimise":
      return "kernels";
    default:
      return stage.kernel === null ? "kernels" : "passes";
  }
}

/** Own time by part, and what searches took, with all that they compiled. */
function timesOf(trace: Trace, stages: readonly Stage[]): { times: Record<Place, number>; searchUs: number } {
  const inside = new Map<number, number>();
  for (const { parent, elapsed_us } of trace.stages) {
    if (parent !== null) inside.set(parent, (inside.get(parent) ?? 0) + elapsed_us);
  }
  const searched = searchesOf(trace);
  const times: Record<Place, number> = { python: 0, lazy: 0, kernels: 0, passes: 0, uops: 0, code: 0, run: 0 };
  let searchUs = 0;
  for (const stage of stages) {
    const own = Math.max(0, stage.elapsed_us - (inside.get(stage.id) ?? 0));
    const place = placeOf(stage);
    if (searched.has(stage.id)) searchUs += own;
    else if (place !== null) times[place] += own;
  }
  return { times, searchUs };
}

/** The stages that searched, and all inside them. */
function searchesOf(trace: Trace): Set<number> {
  const found = new Set<number>();
  for (const { id, parent, candidates, search } of trace.stages) {
    if (candidates.length > 0 || search !== null || (parent !== null && found.has(parent))) found.add(id);
  }
  return found;
}

function changed({ steps, before, after }: Stage): boolean {
  return steps.length > 0 || before.length !== after.length || before.some((id, i) => id !== after[i]);
}

function ownerOf(kernel: KernelInfo): number {
  return kernel.same_as ?? kernel.id;
}

function kernelWords(trace: Trace, kernel: number | null): string {
  if (kernel !== null) return `${kernel} of ${trace.kernels.length}`;
  const reused = trace.kernels.filter(({ same_as }) => same_as !== null).length;
  return `${number(trace.kernels.length)}${reused > 0 ? ` · ${number(reused)} reused` : ""}`;
}

function number(value: number): string {
  return grouped(value);
}

/** What all kernels took, in a line: the parts of the strip, summed. */
export function summary(trace: Trace): string[] {
  const { compileUs, searchUs, runUs } = figures(trace);
  const cached = trace.kernels.filter((kernel) => kernel.cached).length;
  const kernels = trace.kernels.length;
  return [
    kernels === 2 ? "both kernels" : kernels > 1 ? `all ${number(kernels)} kernels` : count(kernels, "kernel"),
    compileUs > 0 ? `compiled in ${duration(compileUs)}` : "",
    searchUs > 0 ? `searched for ${duration(searchUs)}` : "",
    cached > 0 ? `${cached} from the cache` : "",
    runUs > 0 ? `run in ${duration(runUs)}` : "",
  ].filter(Boolean);
}

/** (time, bytes alive from then on), in order; from 0 on what was there before. */
export function liveBytes(buffers: readonly BufferInfo[]): [number, number][] {
  const changes = buffers.flatMap((buffer): [number, number][] => {
    const start: [number, number] = [buffer.allocated_us ?? 0, buffer.bytes];
    return buffer.freed_us === null ? [start] : [start, [buffer.freed_us, -buffer.bytes]];
  });
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let live = 0;
  return changes.map(([at, change]) => {
    live += change;
    return [at, live];
  });
}
