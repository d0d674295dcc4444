// Generated from the table of requests, tinyexplore/explore/analysis/requests.py, by `python -m tinyexplore.explore.schema`. Do not edit.

import type { Compared, NestLine } from "./model";

/** Which rules fired at a node, which could, and what stopped the others. `stage`, `step`: where; None: anywhere. */
export interface WhyRequest {
  ask: "why";
  node: number;
  stage?: number | null;
  step?: number | null;
  rule?: string | null;
}

/** Why the LazyBuffers `a` and `b` share a kernel, or do not. */
export interface WhyTwoKernelsRequest {
  ask: "why kernels";
  a: number;
  b: number;
}

/** Where the elements of a node lie in memory, after further `moves`: names and arguments of movements. */
export interface ShapeRequest {
  ask: "shape";
  node?: number | null;
  moves?: unknown[];
}

/** Steps the debugger of a kernel, and returns its state. do: "look" | "step" | "back" | "run to" | "run until" | "iteration" | "restart" | "finish" | "generated" (begin with generated inputs). count: steps. line: of the listing. condition: see `conditions.py`. counters: of loops, by name. lane: the only one that is shown of a vector. */
export interface DebugRequest {
  ask: "debug";
  kernel?: number;
  do?: string;
  count?: number;
  line?: number | null;
  condition?: string;
  counters?: Record<string, number> | null;
  lane?: number | null;
}

/** Runs the captured program again; the view then shows the new capture, and the response has the kernel's number in it. `kernel`: number in the present capture. `keep_inputs`: what kernels read is kept, for the debugger. `repeat`: samples of each launch; 0: as before. */
export interface AgainRequest {
  ask: "again";
  kernel?: number;
  keep_inputs?: boolean;
  repeat?: number;
}

/** The caches under a kernel with the opts `before` and those `after`, side by side; None: the opts as captured. */
export interface CachesRequest {
  ask: "caches";
  kernel?: number;
  before?: string[] | null;
  after?: string[] | null;
}

/** The grid of a GPU's kernel, the accesses of a warp, and the occupancy. `target`: a GPU ("sm_80") for which the kernel is compiled first; by default it is the captured one. */
export interface GPURequest {
  ask: "gpu";
  kernel?: number;
  target?: string;
}

/** What bounds the busiest loop of a kernel, as captured or in a branch. */
export interface ThroughputOfRequest {
  ask: "throughput";
  kernel?: number;
  branch?: number | null;
}

/** What bounds each kernel, and the program. */
export interface VerdictsRequest {
  ask: "verdicts";
}

/** A kernel in other languages, or for other machines: see `KernelView.translate`. */
export interface TranslationsRequest {
  ask: "rosetta";
  kernel?: number;
  targets?: string | string[] | null;
}

/** The result that the panel Lines shows. */
export interface LinesRequest {
  ask: "lines";
}

/** All rules, with how often each fired in the trace. */
export interface RulesRequest {
  ask: "rules";
}

/** The places at which a rule would fire, each firing checked. */
export interface MatchesRequest {
  ask: "matches";
  rule: string;
}

/** Whether a firing kept the value: the one at `step` of a stage. */
export interface CheckRequest {
  ask: "check";
  stage: number;
  step: number;
}

/** The trace of a branch, for a view of its own. `kernel`: which one, where the branch changed several. */
export interface BranchTraceRequest {
  ask: "branch";
  branch: number;
  kernel?: number | null;
}

/** A kernel after each of its opts. kernel: its number timed: whether to time each, which takes seconds */
export interface OptStepsOfRequest {
  ask: "opt steps";
  kernel: number;
  timed?: boolean;
}

/** Carries out a command: its "kind" and its arguments. `branch`: where it begins; None: where the reader is. */
export interface DoRequest {
  ask: "command";
  command: Record<string, number | string>;
  branch?: number | null;
}

/** Compiles and times a kernel as captured, without opts, and by the heuristics. */
export interface BeginRequest {
  ask: "begin";
  kernel: number;
}

/** Makes a branch the one at which the reader of its kernel, or of its schedule, is. */
export interface GoRequest {
  ask: "go";
  branch: number;
}

/** Ends the command that is being carried out, and drops those that wait. */
export interface CancelRequest {
  ask: "cancel";
}

/** Runs a text that writes rules. Only a page that carries the engine may: the code reaches nothing but the page. */
export interface WriteRulesRequest {
  ask: "write";
  text: string;
}

/** Runs a program inside a capture, in a page that carries the engine. `machine`: one of those offered; "" is the reference interpreter's own. */
export interface PlayRequest {
  ask: "play";
  text: string;
  machine?: string;
}

/** A request, as JSON. */
export type Question =
  | WhyRequest
  | WhyTwoKernelsRequest
  | ShapeRequest
  | DebugRequest
  | AgainRequest
  | CachesRequest
  | GPURequest
  | ThroughputOfRequest
  | VerdictsRequest
  | TranslationsRequest
  | LinesRequest
  | RulesRequest
  | MatchesRequest
  | CheckRequest
  | BranchTraceRequest
  | OptStepsOfRequest
  | DoRequest
  | BeginRequest
  | GoRequest
  | CancelRequest
  | WriteRulesRequest
  | PlayRequest;

/** A firing that was recorded: at step `step` (its number, from 1 on) `rule` made `after` of `before`. */
export interface RecordedRewrite {
  step: number;
  rule: string;
  before: number;
  after: number;
}

/** A line of a function that came to None or False. `because`: the condition above it, where the line itself only returns. `values`: what the names in these lines stood for. */
export interface ReturnSite {
  function: string;
  file: string;
  line: number;
  text: string;
  because: string;
  values: [string, string][];
}

/** What stopped a rule: at the node at the end of `path`, it `wanted` one thing and `found` another. `places`: where the rule's own function said no, the innermost call first. */
export interface Obstacle {
  kind: "operation" | "sources" | "type" | "argument" | "another node" | "function" | "nothing new" | "error" | "context";
  path: number[];
  wanted: string;
  found: string;
  places: ReturnSite[];
}

/** One part of a rule's pattern beside the node that it was compared with. place: the way to it in the pattern: which source, of that one which ... wanted: what it wants: operations, a constant, or the name that any node may have. state: whether the node matched; the match stopped at the one that "differs". path: the way to the node: which source, of that one which ... found: the node as text; "" where the match did not reach it. at: the node of the trace; None where it is not known. */
export interface PatternPart {
  place: number[];
  wanted: string;
  state: "matched" | "differs" | "not reached";
  path: number[];
  found: string;
  at: number | null;
}

/** A rule asked of a node. verdict: "fires", "stopped" by `obstacle`, or "unknown", as it would have to be told something that is not known here. `first`: of those that fire, the one that the pass takes. `passed` of `parts` of its pattern match; `bound`: what its names stand for; `after`: what it makes. `at`: the node of the trace at which the obstacle stands. `pattern`: its parts, the whole first, beside the nodes that they were compared with. */
export interface RuleAttempt {
  rule: string;
  law: string;
  doc: string;
  file: string;
  line: number;
  text: string;
  verdict: "fires" | "stopped" | "unknown";
  passed: number;
  parts: number;
  bound: [string, string][];
  first: boolean;
  after: string;
  obstacle: Obstacle | null;
  at: number | null;
  pattern: PatternPart[];
}

/** What can be said of a node of a trace at one step of a pass: the rules that `fired` on it or made it, those that `could` fire now, in the order of the pass, and those that are `stopped`, the nearest miss first. */
export interface WhyNot {
  stage: number;
  name: string;
  step: number;
  node: number;
  what: string;
  note: string;
  fired: RecordedRewrite[];
  could: RuleAttempt[];
  stopped: RuleAttempt[];
}

/** What became of the edge from `src` to `dst`, which reads it. mark: "fused", computed where it is read; "cut", one kernel stores it and another one reads it; "again", computed in several kernels; "read", it was in memory before. decision, reason, compared: the scheduler's word on `src`. kernels: those that compute `src`; `into`: those that compute `dst`. against_cut, against_join: what forbids cutting here, and against joining; "" where one may. */
export interface Edge {
  src: number;
  dst: number;
  mark: "fused" | "cut" | "again" | "read";
  decision: string;
  reason: string;
  compared: Compared[];
  kernels: number[];
  into: number[];
  against_cut: string;
  against_join: string;
}

/** Whether two LazyBuffers share a kernel, and why: `together` are the kernels that compute both; `edges` the way from one to the other, where there is one; `text` says it in a sentence. */
export interface WhyKernels {
  a: number;
  b: number;
  text: string;
  together: number[];
  kernels_of_a: number[];
  kernels_of_b: number[];
  edges: Edge[];
}

/** A movement, as the panel of shapes draws it. */
export interface ShapeStepData {
  op: string;
  arg: string;
  law: string;
  formula: string;
  node: number | null;
  shape: number[];
  views: ([number[], number[], number, [number, number][] | null])[];
  before: [string, string];
  after: [string, string];
}

/** Another view of the same memory, as the panel of shapes draws it. */
export interface OtherData {
  name: string;
  node: number | null;
  views: ([number[], number[], number, [number, number][] | null])[];
}

/** Where the elements of a node lie in memory, as the panel of shapes draws it. */
export interface ShapeData {
  name: string;
  size: number;
  node: number | null;
  steps: ShapeStepData[];
  others: OtherData[];
  moves: [string, string, string][];
}

/** A buffer as the panel of the debugger draws it: rows around the last access. */
export interface TensorData {
  name: string;
  size: number;
  width: number;
  first: number;
  cells: string[];
  lit: number[];
  recent: number[];
  stored: boolean;
}

/** A debugger as its panel draws it. What went wrong in the kernel is the `reason` why it stopped. */
export interface DebuggerState {
  name: string;
  note: string;
  listing: string[];
  lanes: number;
  nest: [string, string[]][];
  values: [number, string][];
  tensors: TensorData[];
  position: number;
  place: number | null;
  ended: boolean;
  reason: string;
  loops: [string, number][];
  accesses: ([string, boolean, (number | null)[], string])[];
}

/** What one access (or several together) met. `found`: touches answered by each level, and last by memory. `reuse`: touches by how many other lines were touched since the line was touched before: 0, 1, 2-3, 4-7 …, and last those of a line touched for the first time. */
export interface Traffic {
  found: number[];
  reuse: number[];
}

/** The traffic of one load or store, as the panel of caches draws it. */
export interface AccessTrafficData {
  place: number;
  text: string;
  buffer: string;
  stored: boolean;
  nbytes: number;
  loops: string[];
  found: number[];
  reuse: number[];
}

/** The cache lines that one pass of the innermost loop accesses. */
export interface TileData {
  counters: [string, number][];
  buffers: [string, number[], number][];
}

/** One kernel under its caches, as the panel of caches draws it. */
export interface CacheModelData {
  name: string;
  opts: string[];
  levels: string[];
  caches: [string, number, number, number][];
  total: Traffic;
  accesses: AccessTrafficData[];
  loops: [string, Traffic][];
  lines: [number, Traffic][];
  footprint: [string, number][];
  seconds: number;
  tile: TileData | null;
}

/** A kernel under its caches before and after, as the panel of caches draws it. */
export interface CachesData {
  after: CacheModelData;
  before: CacheModelData | null;
  rows: ([string, string, Traffic | null, Traffic | null])[];
}

/** A load or store of a GPU's kernel, as the panel of warps draws it. */
export interface WarpAccessData {
  place: number;
  text: string;
  source: string;
  buffer: string;
  space: "global" | "shared";
  stored: boolean;
  nbytes: number;
  loops: string[];
  lanes: (number | null)[];
  banks: number[];
  segments: number;
  lines: number;
  requests: number;
  mean: number;
  least: number;
  efficiency: number | null;
  degree: number;
  says: string;
  advice: string;
}

/** The occupancy of a GPU's kernel, as the panel of warps draws it. */
export interface OccupancyData {
  registers: number;
  known: boolean;
  advice: string;
  groups: number;
  limit: string;
  share: number;
  limits: [string, number, number, number][];
  says: string;
}

/** A GPU's kernel, as the panel of warps draws it. */
export interface GPUData {
  kernel: string;
  target: string;
  warp: number;
  grid: number[];
  group: number[] | null;
  at: number[];
  says: string;
  accesses: WarpAccessData[];
  shared_bytes: number;
  occupancy: OccupancyData | null;
  why: string;
}

/** What the panel of throughputs draws; ports that nothing uses are left out. */
export interface ThroughputData {
  kernel: string;
  lines: [number, number] | null;
  instructions: ([string, number, number, [string, number][], number | null])[];
  cycles: number;
  ports: [string, number][];
  front_end: number;
  bound: "ports" | "front end" | "dependencies" | "unknown";
  reason: string;
  cpu: string;
  tool: string;
  measured: number | null;
  notes: string[];
}

/** One number of a verdict. */
export interface Evidence {
  name: string;
  value: string;
  panel: string;
}

/** Something to try, and what it gained. */
export interface TrialRow {
  text: string;
  result: string;
}

/** A verdict as views show it: see `SpeedVerdict`. */
export interface VerdictRow {
  kernel: number | null;
  name: string;
  kind: string;
  likely: string;
  level: string;
  share: number | null;
  tone: string;
  text: string;
  evidence: Evidence[];
  suggestions: TrialRow[];
  missing: string[];
}

/** The verdicts on the kernels that have one, and on the program; None where no kernel has one. */
export interface VerdictList {
  rows: VerdictRow[];
  whole: VerdictRow | null;
}

/** A kernel in one language, as the panel of languages draws it. */
export interface TranslationData {
  target: string;
  words: string;
  machine: string;
  language: string;
  opts: string[];
  lines: ([string, number | null, number[]])[];
  refusal: string;
}

/** A kernel in several languages, as the panel of languages draws it. */
export interface RosettaData {
  kernel: string;
  origins: ([string, string, string, number | null, boolean])[];
  translations: TranslationData[];
}

/** A line of Python and the time of its kernels. */
export interface LineTime {
  source: number | null;
  file: string;
  line: number;
  text: string;
  time_us: number;
  share: number;
  kernels: number[];
}

/** All lines that caused kernels, in the order of the source. */
export interface LinesByTime {
  total_us: number;
  untimed: number;
  lines: LineTime[];
  how: string;
}

/** A rule: its law, the passes that have it, how often it fired in the capture. `own`: written here. */
export interface RuleRow {
  name: string;
  law: string;
  doc: string;
  passes: string[];
  firings: number;
  file: string;
  line: number;
  own: boolean;
}

/** All rules, as the panel of rules lists them. */
export interface RuleList {
  rows: RuleRow[];
  proves: string;
}

/** Values at which two graphs differ: `inputs` by name, what came of the graph `before` and of that `after`. */
export interface Counterexample {
  inputs: [string, string][];
  before: string;
  after: string;
}

/** Whether a firing keeps what is computed. status: "proved" for all values, "agrees" on `samples`, "differs" at the `counterexample`, "not checked", then `reason` says why. */
export interface Verdict {
  status: "proved" | "agrees" | "differs" | "not checked";
  samples: number;
  reason: string;
  counterexample: Counterexample | null;
  tolerance: number | null;
}

/** Where a rule would fire: on `node` of the trace, which stands in the graph of stage number `stage` (the pass `name`) after `step` of its steps. `verdict`: whether what it would make means the same. */
export interface RuleMatch {
  rule: string;
  kernel: number;
  stage: number;
  name: string;
  step: number;
  node: number;
  digest: string;
  before: string;
  after: string;
  verdict: Verdict;
}

/** The matches of one rule, as the panel of rules lists them. */
export interface MatchList {
  places: RuleMatch[];
}

/** The check of a firing; of a wrong one the inputs, and the values before and after at these. */
export interface CheckResult {
  status: string;
  says: string;
  inputs: [string, string][];
  was: string;
  has_become: string;
}

/** A trace as `trace_to_bytes` writes it, in base64. */
export interface PackedTrace {
  trace: string;
}

/** The kernel after its first opts. A worker process runs it on memory of its own and measures the times. opt: the last opt; "" for the kernel without opts nest: its loops and statements axes: name, kind and size of each axis median_us: median of the samples, in microseconds; None where it was not timed low_us: lower quartile, in microseconds high_us: upper quartile, in microseconds samples: number of samples note: why there is no time */
export interface OptStep {
  opt: string;
  nest: NestLine[];
  axes: ([string, string, number | string])[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  samples: number;
  note: string;
}

/** A kernel after each of its opts. It displays as a table, and the story's page of loops shows it. kernel: the kernel's number steps: first without opts, last with all of them */
export interface OptSteps {
  kernel: number;
  steps: OptStep[];
}

/** What a command led to. The branch itself was sent before, as a row: views have all rows, and only once. */
export interface CommandResult {
  branch: number | null;
  status: string;
  reason: string;
}

/** The names of the rules that a text wrote. */
export interface RuleNames {
  rules: string[];
}

/** What went wrong in a program. */
export interface Failure {
  text: string;
  line: number | null;
}

/** What a program led to. */
export interface PlayResult {
  output: string;
  trace: boolean;
  failed: Failure | null;
}

/** What stands for a field of a request that is left out, unless that is null. */
export const DEFAULTS: { readonly [ask: string]: Readonly<Record<string, unknown>> | undefined } = {
  "shape": {"moves": []},
  "debug": {"kernel": 0, "do": "look", "count": 1, "condition": ""},
  "again": {"kernel": 0, "keep_inputs": false, "repeat": 0},
  "caches": {"kernel": 0, "before": []},
  "gpu": {"kernel": 0, "target": ""},
  "throughput": {"kernel": 0},
  "rosetta": {"kernel": 0},
  "opt steps": {"timed": false},
  "play": {"machine": ""},
};

/** The response to each request; `unknown`: plain data, whose type its view has. */
export interface Responses {
  "why": WhyNot;
  "why kernels": WhyKernels;
  "shape": ShapeData;
  "debug": DebuggerState;
  "again": unknown;
  "caches": CachesData;
  "gpu": GPUData;
  "throughput": ThroughputData;
  "verdicts": VerdictList;
  "rosetta": RosettaData;
  "lines": LinesByTime;
  "rules": RuleList;
  "matches": MatchList;
  "check": CheckResult;
  "branch": PackedTrace;
  "opt steps": OptSteps;
  "command": CommandResult;
  "begin": CommandResult;
  "go": CommandResult;
  "cancel": CommandResult;
  "write": RuleNames;
  "play": PlayResult;
}
