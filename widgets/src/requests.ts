// Generated from tinyexplore/explore/notebook/requests.py by `python -m tinyexplore.explore.schema`. Do not edit.

import type { Compared } from "./model";

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

/** Steps the debugger of a kernel, and returns its state. do: "look" | "step" | "back" | "run to" | "run until" | "iteration" | "restart" | "finish" | "made up" (begin with made-up inputs). count: steps. line: of the listing. condition: see `conditions.py`. counters: of loops, by name. lane: the only one that is shown of a vector. */
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

/** The caches under a kernel with the opts `before` and those `after`, side by side; None: the opts as captured. */
export interface CachesRequest {
  ask: "caches";
  kernel?: number;
  before?: string[] | null;
  after?: string[] | null;
}

/** The grid of a GPU's kernel, the accesses of a warp, and the occupancy. */
export interface GPURequest {
  ask: "gpu";
  kernel?: number;
}

/** What bounds the busiest loop of a kernel, as captured or in a branch. */
export interface ThroughputOfRequest {
  ask: "throughput";
  kernel?: number;
  branch?: number | null;
}

/** A kernel in other languages, or for other machines: see `Explorer.rosetta`. */
export interface TranslationsRequest {
  ask: "rosetta";
  kernel?: number;
  targets?: string | string[] | null;
}

/** Runs a text that writes rules. Only a page that carries the engine may: the code reaches nothing but the page. */
export interface WriteRulesRequest {
  ask: "write";
  text: string;
}

/** A request, as JSON. */
export type Question =
  | WhyRequest
  | WhyTwoKernelsRequest
  | ShapeRequest
  | RulesRequest
  | MatchesRequest
  | CheckRequest
  | BranchTraceRequest
  | DebugRequest
  | CachesRequest
  | GPURequest
  | ThroughputOfRequest
  | TranslationsRequest
  | WriteRulesRequest;

/** A firing that was recorded: at step `step` (its number, from 1 on) `rule` made `after` of `before`. */
export interface Fired {
  step: number;
  rule: string;
  before: number;
  after: number;
}

/** A line of a function that came to None or False. `because`: the condition above it, where the line itself only returns. `values`: what the names in these lines stood for. */
export interface Place {
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
  places: Place[];
}

/** A rule asked of a node. verdict: "fires", "stopped" by `obstacle`, or "unknown", as it would have to be told something that is not known here. `first`: of those that fire, the one that the pass takes. `passed` of `parts` of its pattern match; `bound`: what its names stand for; `after`: what it makes. `at`: the node of the trace at which the obstacle stands. */
export interface Tried {
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
}

/** What can be said of a node of a trace at one step of a pass: the rules that `fired` on it or made it, those that `could` fire now, in the order of the pass, and those that are `stopped`, the nearest miss first. */
export interface WhyNot {
  stage: number;
  name: string;
  step: number;
  node: number;
  what: string;
  note: string;
  fired: Fired[];
  could: Tried[];
  stopped: Tried[];
}

/** What became of the edge from `src` to `dst`, which reads it. mark: "fused", computed where it is read; "cut", one kernel stores it and another one reads it; "again", computed in several kernels; "read", it was in memory before. decision, reason, compared: the scheduler's word on `src`. kernels: those that compute `src`; `into`: those that compute `dst`. against_cut, against_join: what stands against cutting here, and against joining; "" where one may. */
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

/** The rules of the pipeline, and those written here. `proves`: whether firings are proved, or why not. */
export interface RuleList {
  rows: unknown[];
  proves: string;
}

/** The places at which a rule would fire. */
export interface MatchList {
  places: unknown[];
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

/** The names of the rules that a text wrote. */
export interface RuleNames {
  rules: string[];
}

/** The response to each request; `unknown`: plain data, whose type its view has. */
export interface Responses {
  "why": WhyNot;
  "why kernels": WhyKernels;
  "shape": unknown;
  "rules": RuleList;
  "matches": MatchList;
  "check": CheckResult;
  "branch": PackedTrace;
  "debug": unknown;
  "caches": unknown;
  "gpu": unknown;
  "throughput": unknown;
  "rosetta": unknown;
  "write": RuleNames;
}
