// Generated from the table of requests, tinyexplore/explore/analysis/requests.py, by `python -m tinyexplore.explore.schema`. Do not edit.

import type { NestLine, NumberComparison } from "./model";

/** The rules at a node: which fired, which could fire, and what prevents the others. node: the node. stage: the pass, None for any. step: the number of finished steps, None for all. rule: the only rule to try, None for all. */
export interface WhyRequest {
  ask: "why";
  node: number;
  stage?: number | null;
  step?: number | null;
  rule?: string | null;
}

/** Why two LazyBuffers share a kernel, or do not. a: the first LazyBuffer. b: the second LazyBuffer. */
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

/** Run a command of a kernel's debugger; the response is its state. kernel: the number of the kernel. do: "look", "step", "back", "run to", "run until", "iteration", "restart", "finish", or "generated" (begin with generated inputs). count: the number of steps. line: the line of the listing, None for none. condition: see `conditions.py`; "" for none. counters: loop counters by name, None for none. lane: the only lane of a vector to show, None for all. */
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

/** Runs the captured program again; the view then shows the new capture, and the response has the kernel's number in it. kernel: number in the present capture. keep_inputs: whether to store the kernels' inputs, for the debugger. repeat: samples of each launch; 0: as before. */
export interface RunAgainRequest {
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

/** The grid of a GPU kernel, the accesses of a warp, and the occupancy. kernel: the number of the kernel. target: a GPU ("sm_80") for which the kernel is compiled first; "" for the captured one. */
export interface GPURequest {
  ask: "gpu";
  kernel?: number;
  target?: string;
}

/** The bottleneck of the busiest loop of a kernel. kernel: the number of the kernel. branch: the branch that has it, None for the kernel as captured. */
export interface ThroughputOfRequest {
  ask: "throughput";
  kernel?: number;
  branch?: number | null;
}

/** LLVM's passes over a kernel. */
export interface PassesOfLLVMRequest {
  ask: "passes";
  kernel?: number;
  level?: string;
  without?: string[];
  cpu?: string;
}

/** The bottleneck of each kernel, and of the program. */
export interface VerdictsRequest {
  ask: "verdicts";
}

/** A kernel in other languages, or for other machines; see `KernelView.translate`. kernel: the number of the kernel. targets: languages and machines, None for the usual ones. */
export interface TranslationsRequest {
  ask: "rosetta";
  kernel?: number;
  targets?: string | string[] | null;
}

/** The result that the panel Lines shows. */
export interface LinesRequest {
  ask: "lines";
}

/** All rules, with the number of their firings in the trace. */
export interface RulesRequest {
  ask: "rules";
}

/** The nodes at which a rule would fire, each firing checked. rule: the name of the rule. */
export interface MatchesRequest {
  ask: "matches";
  rule: string;
}

/** The check whether a firing preserved the value. stage: the id of the pass. step: the number of the firing, from 1. */
export interface CheckRequest {
  ask: "check";
  stage: number;
  step: number;
}

/** The trace of a branch, for a view of its own. branch: the number of the branch. kernel: which kernel, if the branch changed several; None for the first. */
export interface BranchTraceRequest {
  ask: "branch";
  branch: number;
  kernel?: number | null;
}

/** A kernel after each of its opts. kernel: the number of the kernel timed: whether to time each step, which takes seconds */
export interface OptStepsOfRequest {
  ask: "opt steps";
  kernel: number;
  timed?: boolean;
}

/** The times of a kernel under another LLVM pipeline, and as it was compiled. */
export interface TimesOfPipelineRequest {
  ask: "pipeline times";
  kernel?: number;
  level?: string;
  without?: string[];
  cpu?: string;
}

/** Run a command. command: its "kind" and its arguments. branch: the branch from which it starts; None for the current one. */
export interface DoRequest {
  ask: "command";
  command: Record<string, number | string>;
  branch?: number | null;
}

/** Compile and time a kernel as captured, without opts, and with the heuristics' opts. kernel: the number of the kernel. */
export interface BeginRequest {
  ask: "begin";
  kernel: number;
}

/** Make a branch the current one of its kernel or schedule. branch: the number of the branch. */
export interface GoRequest {
  ask: "go";
  branch: number;
}

/** Cancel the running command, and drop the waiting ones. */
export interface CancelRequest {
  ask: "cancel";
}

/** Run a text that defines rules. Only a page with engine accepts this request, since its code is sandboxed by the browser. text: Python. */
export interface WriteRulesRequest {
  ask: "write";
  text: string;
}

/** Run a program inside a capture, in a page with engine. text: Python. machine: one of the registered targets; "" for the reference interpreter's own. */
export interface RunProgramRequest {
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
  | RunAgainRequest
  | CachesRequest
  | GPURequest
  | ThroughputOfRequest
  | PassesOfLLVMRequest
  | VerdictsRequest
  | TranslationsRequest
  | LinesRequest
  | RulesRequest
  | MatchesRequest
  | CheckRequest
  | BranchTraceRequest
  | OptStepsOfRequest
  | TimesOfPipelineRequest
  | DoRequest
  | BeginRequest
  | GoRequest
  | CancelRequest
  | WriteRulesRequest
  | RunProgramRequest;

/** A recorded firing. step: the number of the step, from 1. rule: the name of the rule. before: the node that was replaced. after: the replacement. */
export interface RecordedRewrite {
  step: number;
  rule: string;
  before: number;
  after: number;
}

/** A line at which a function returned None or False. function: the name of the function. file: its file. line: the line number in the file. text: the text of the line. because: the condition above it, if the line itself only returns; else "". values: (name, value) of the names in these lines. */
export interface ReturnSite {
  function: string;
  file: string;
  line: number;
  text: string;
  because: string;
  values: [string, string][];
}

/** Why a rule does not fire. kind: the kind of the mismatch. path: the operand numbers from the matched node to the one that differs. expected: the pattern's requirement there. actual: the node, as text. places: the lines at which the rule's function returned nothing, the innermost call first. */
export interface Mismatch {
  kind: "operation" | "sources" | "type" | "argument" | "another node" | "function" | "nothing new" | "error" | "context";
  path: number[];
  expected: string;
  actual: string;
  places: ReturnSite[];
}

/** One part of a rule's pattern and the node that it was compared with. place: its position in the pattern, as source numbers. expected: its requirement: operations, a constant, or a name for any node. state: whether the node matched; matching stopped at the part that "differs". path: the position of the node, as operand numbers. actual: the node as text; "" if matching did not reach it. at: the node of the trace; None if unknown. */
export interface PatternPart {
  place: number[];
  expected: string;
  state: "matched" | "differs" | "not reached";
  path: number[];
  actual: string;
  at: number | null;
}

/** A rule tried on a node. rule: the name of the rule. law: the law that it states. doc: its docstring. file: the file that defines it. line: the first line of the definition. text: its source code. verdict: "fires", "stopped" (see `mismatch`), or "unknown": it needs data that the trace lacks. passed: the number of parts of its pattern that match. parts: the number of all parts of its pattern. bound: (name, node as text) of the names in its pattern. first: whether the pass would apply it, as the first of the rules that fire. after: the resulting node, as text; "" if it does not fire. mismatch: why it does not fire, None if it does. at: the node of the trace with the mismatch, None for none. pattern: its parts, the whole first, with the nodes that they were compared with. */
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
  mismatch: Mismatch | null;
  at: number | null;
  pattern: PatternPart[];
}

/** The rules at a node of a trace, at one step of a pass. stage: the id of the pass. name: the name of the pass. step: the number of finished steps. node: the node. what: the node as text. note: a remark for the reader, "" for none. fired: the rules that replaced or produced the node. could: the rules that could fire now, in the order of the pass. stopped: the rules that do not match, the nearest miss first. */
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

/** The scheduler's result for one edge: `dst` reads `src`. src: the LazyBuffer that `dst` reads. dst: the LazyBuffer that reads `src`. mark: "fused": `src` is computed in the kernel of `dst`. "cut": one kernel stores `src`, another one loads it. "again": several kernels compute `src`. "read": `src` was in memory before. decision: the scheduler's decision on `src`, "" if there is none. reason: the reason of the decision. compared: the numbers that the scheduler compared. kernels: the kernels that compute `src`. into: the kernels that compute `dst`. against_cut: why cutting this edge is illegal, "" if it is legal. against_join: why joining this edge is illegal, "" if it is legal. */
export interface Edge {
  src: number;
  dst: number;
  mark: "fused" | "cut" | "again" | "read";
  decision: string;
  reason: string;
  compared: NumberComparison[];
  kernels: number[];
  into: number[];
  against_cut: string;
  against_join: string;
}

/** Whether two LazyBuffers share a kernel, and why. a: the id of the first LazyBuffer. b: the id of the second LazyBuffer. text: the explanation as a sentence. together: the kernels that compute both. kernels_of_a: the kernels that compute `a`. kernels_of_b: the kernels that compute `b`. edges: the path from one to the other, empty if there is no path. */
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
export interface OtherViewData {
  name: string;
  node: number | null;
  views: ([number[], number[], number, [number, number][] | null])[];
}

/** The memory positions of a node's elements, as the panel of shapes draws them. */
export interface ShapeData {
  name: string;
  size: number;
  node: number | null;
  steps: ShapeStepData[];
  others: OtherViewData[];
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

/** A debugger as its panel draws it. `reason` also has the error of a failed kernel. */
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

/** The cache traffic of one access, or of several together. served: the number of cache lines that each level served, and last those that memory served. reuse: the number of accesses by reuse distance (the number of other lines accessed since the last access to the line): 0, 1, 2-3, 4-7 …, and last the first accesses to a line. */
export interface Traffic {
  served: number[];
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
  served: number[];
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

/** A load or store of a GPU kernel, as the panel of warps draws it. */
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

/** The occupancy of a GPU kernel, as the panel of warps draws it. */
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

/** A GPU kernel, as the panel of warps draws it. */
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

/** The data that the panel of throughputs draws, without unused ports. */
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

/** Texts of lines as `tracefile.columns` packs them. forms: the texts without their numbers. form: the form of each text. numbers: the numbers of all texts, as differences from the previous text of the form. */
export interface PackedLines {
  forms: string[];
  form: number[];
  numbers: number[];
}

/** LLVM's remark on an optimization that it did, or did not do. */
export interface Remark {
  text: string;
  uop: number | null;
  subject: string;
}

/** One run of a pass. number: its position in the pipeline. name: LLVM's name. argument: the option name that disables it, "" if there is none. stage: its input: "IR", "machine IR"; "assembly" for the end. changed: whether it changed the text. begins: whether the previous text is in another language, so that the whole text is new. change: lines added and removed, as text. seconds: its CPU time, None if LLVM does not measure it. edits: the changes to the previous text: (first line, lines removed, numbers of new lines). Each line number is the difference from the previous one. remarks: its optimization remarks. */
export interface PassData {
  number: number;
  name: string;
  argument: string;
  stage: string;
  changed: boolean;
  begins: boolean;
  change: string;
  seconds: number | null;
  edits: number[][];
  remarks: Remark[];
}

/** A value without a register: it is stored on the stack and loaded again. */
export interface Spill {
  slot: number;
  bytes: number;
  stores: number;
  loads: number;
  uop: number | null;
  subject: string;
  python: string[];
  blocks: string[];
}

/** LLVM's passes over a kernel. kernel: the name of the kernel. number: its number in the trace. cpu: the CPU that code was generated for. pipeline: the pipeline that LLVM ran, as text. lines: every line that occurs; texts refer to lines by number. line_uops: the UOp of each line, as the difference from the previous one; -1 stands for none. uops: for each UOp with lines its position and its nodes. A position is the difference from the previous row, a node the difference from the previous node. passes: all passes that ran, in order. seconds: the CPU time of all passes that LLVM times. instructions: the number of instructions in the assembly. spills: the values that are stored on the stack. spilled_by: the pass that spilled them. levels, cpus: the choices of the panel. */
export interface PassesData {
  kernel: string;
  number: number;
  cpu: string;
  pipeline: string;
  lines: PackedLines;
  line_uops: number[];
  uops: number[][];
  passes: PassData[];
  seconds: number;
  instructions: number;
  spills: Spill[];
  spilled_by: string;
  levels: string[];
  cpus: string[];
}

/** One number of a verdict. */
export interface Evidence {
  name: string;
  value: string;
  panel: string;
}

/** A suggestion that was tried. text: the suggestion. result: the measured gain. */
export interface TrialRow {
  text: string;
  result: string;
}

/** A verdict as views show it; see `SpeedVerdict`. kernel: the number of the kernel, None for the whole program. name: the name of the kernel. kind: the bottleneck, one of `VERDICT_KINDS`. likely: for "noise" the kind by the fastest sample, else `kind`. level: "L1", "L2", "L3" or "memory"; "" for other kinds. share: the least time on this machine / the median; None if one of them is unknown. tone: "fast", "middle", "slow", or "none" if speed does not matter or is unknown. text: the verdict as a sentence. evidence: the figures on which it is based. suggestions: possible improvements. missing: figures that were not available. */
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

/** The verdicts of a trace. rows: the verdicts on the kernels that have one. whole: the verdict on the program, None if no kernel has one. */
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
export interface LanguageComparisonData {
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

/** A rule in the list of rules. name: the name of the rule. law: the law that it states. doc: its docstring. passes: the passes that have it. firings: the number of its firings in the capture. file: the file that defines it. line: the first line of the definition. own: whether the user defined it in this session. */
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

/** All rules, in the order of the panel of rules. */
export interface RuleList {
  rows: RuleRow[];
  proves: string;
}

/** Values at which two graphs differ. inputs: (name, value) of each input. before: the value of the first graph. after: the value of the second graph. */
export interface Counterexample {
  inputs: [string, string][];
  before: string;
  after: string;
}

/** Whether a firing keeps the value of a graph. status: "proved" for all values, "agrees" on samples, "differs", or "not checked". samples: the number of samples that were compared. reason: the reason why it was not checked, else "". counterexample: inputs for which the values differ, or None. tolerance: the relative error that the rule allows, None for the usual one. */
export interface Verdict {
  status: "proved" | "agrees" | "differs" | "not checked";
  samples: number;
  reason: string;
  counterexample: Counterexample | null;
  tolerance: number | null;
}

/** A node at which a rule would fire. rule: the name of the rule. kernel: the kernel that the pass processed. stage: the id of the pass. name: the name of the pass. step: the number of steps before the match. node: the id of the node in the trace. digest: the digest of the node. before: the node, as text. after: the result of the rule, as text. verdict: whether both have the same value. */
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

/** The matches of one rule, in the order of the panel of rules. */
export interface MatchList {
  places: RuleMatch[];
}

/** The check of a firing. status: "proved", "agrees", "differs" or "not checked". says: the result as text. inputs: (name, value) of a counterexample; empty if there is none. was: the value before the firing, for the counterexample. has_become: the value after the firing, for the counterexample. */
export interface CheckResult {
  status: string;
  says: string;
  inputs: [string, string][];
  was: string;
  has_become: string;
}

/** A trace as `trace_to_bytes` writes it. trace: the bytes in base64. */
export interface PackedTrace {
  trace: string;
}

/** The kernel after its first opts. A worker process runs it on its own memory and measures the times. opt: the last opt; "" for the kernel without opts. nest: its loops and statements. axes: name, kind and size of each axis. median_us: median of the samples, in microseconds; None if it was not timed. low_us: lower quartile, in microseconds. high_us: upper quartile, in microseconds. samples: number of samples. note: why it was not timed. */
export interface MeasuredOptStep {
  opt: string;
  nest: NestLine[];
  axes: ([string, string, number | string])[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  samples: number;
  note: string;
}

/** A kernel after each of its opts. It displays as a table, also on the story's page of loops. kernel: the kernel's number. steps: first without opts, last with all of them. */
export interface OptSteps {
  kernel: number;
  steps: MeasuredOptStep[];
}

/** The times of a kernel under a pipeline, and as it was compiled. A process of its own took alternate samples of single runs. */
export interface PipelineTimes {
  times_us: number[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  base_times_us: number[];
  base_median_us: number | null;
  base_low_us: number | null;
  base_high_us: number | null;
  verdict: string;
  results: string;
  reason: string;
}

/** The result of a command. The branch itself was sent before, as a row, so that views get each row once. */
export interface CommandResult {
  branch: number | null;
  status: string;
  reason: string;
}

/** The names of the rules that a text defines. rules: the names. */
export interface RuleNames {
  rules: string[];
}

/** An error of a program. */
export interface Failure {
  text: string;
  line: number | null;
}

/** The result of a program. */
export interface RunProgramResult {
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
  "passes": {"kernel": 0, "level": "", "without": [], "cpu": ""},
  "rosetta": {"kernel": 0},
  "opt steps": {"timed": false},
  "pipeline times": {"kernel": 0, "level": "", "without": [], "cpu": ""},
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
  "passes": PassesData;
  "verdicts": VerdictList;
  "rosetta": LanguageComparisonData;
  "lines": LinesByTime;
  "rules": RuleList;
  "matches": MatchList;
  "check": CheckResult;
  "branch": PackedTrace;
  "opt steps": OptSteps;
  "pipeline times": PipelineTimes;
  "command": CommandResult;
  "begin": CommandResult;
  "go": CommandResult;
  "cancel": CommandResult;
  "write": RuleNames;
  "play": RunProgramResult;
}
