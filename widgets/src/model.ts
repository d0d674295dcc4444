// Generated from tinyexplore/explore/tracefile/model.py by `python -m tinyexplore.explore.schema`. Do not edit.

export const TRACE_VERSION = 1;

/** A place in the user's code; `source` indexes `Trace.sources`, `line` counts from 1. `span`: the part of the expression that was at work, as (line, column, line, column) of its begin and its end, columns in characters from 0; of a method's call without what it is called on. None before Python 3.11. */
export interface Frame {
  id: number;
  source: number;
  line: number;
  function: string;
  span: [number, number, number, number] | null;
}

/** A file of the user's (or a notebook cell), copied in, so that the trace stands alone. */
export interface Source {
  id: number;
  name: string;
  text: string;
}

/** One IR value. kind: "lazybuffer" | "uop". `digest` is equal across runs for equal content. `label` is what a box says ("LOAD", "ADD"); `detail` its second line (shape, index, constant); `group` its role, which gives the colour: "memory" | "reduce" | "loop" | "alu" | "const" | "movement" | "control" | "buffer". `user` indexes `Trace.frames`. `calls`: the public functions that made a LazyBuffer, the user's own call first: ("softmax", "max"). `name`: what the user's Python calls a LazyBuffer ("x", "model.l1.weight"). `scope`: the module in which a LazyBuffer was made, or (`backward`) whose gradient it is for. */
export interface Node {
  id: number;
  kind: string;
  op: string;
  src: number[];
  dtype: string;
  shape: (number | string)[] | null;
  arg: string;
  digest: string;
  user: number | null;
  label: string;
  detail: string;
  group: string;
  calls: string[];
  name: string;
  scope: number | null;
  backward: boolean;
}

/** A module of the user's (`model`, its `layers[0]`): an object with Tensors whose methods made LazyBuffers. `name`: the variable, or the attribute of `parent`; `kind`: its class; `parameter_bytes`: its own Tensors. */
export interface Scope {
  id: number;
  name: string;
  kind: string;
  parent: number | null;
  parameter_bytes: number;
}

/** What a module cost, the modules inside included; `Trace.modules()` gives the rows as a tree. The first row is the whole trace. A kernel that several modules are fused into is divided among them by the elements that each computes: the times of the rows inside a row add up to its time. id: the row. parent: the row of the module around it, None for the whole trace. scope: the module, None for the whole trace and for what no module made. time_us: its share of the kernels' median times, in microseconds. backward_us: the part of `time_us` for gradients. parameter_bytes: size of its Tensors. result_bytes: size of the buffers that kernels stored for it. kernels: those that compute a part of it. */
export interface ModuleCost {
  id: number;
  parent: number | null;
  scope: number | null;
  time_us: number;
  backward_us: number;
  parameter_bytes: number;
  result_bytes: number;
  kernels: number[];
}

/** The figures of one part of the pipeline. place: the part. title: its name on the screen. words: its counts, as text. time_us: its time in microseconds, 0 where it takes none. */
export interface Figure {
  place: string;
  title: string;
  words: string;
  time_us: number;
}

/** The figures of a whole trace, or of one kernel. kernel: the kernel, None for the whole trace. parts: the parts of the pipeline, in order. compile_us: the sum of all parts but the run. search_us: time of searches, with all that they compiled; no part has it. run_us: one run of each kernel, by the medians. firings: how many times a rule was applied in `passes`. passes: the rewrite passes: stages that get a graph and have no stage inside. code: the last stage that made code. summary: what all kernels took, as parts of a line; empty for one kernel. */
export interface Figures {
  kernel: number | null;
  parts: Figure[];
  compile_us: number;
  search_us: number;
  run_us: number;
  firings: number;
  passes: number[];
  code: number | null;
  summary: string[];
}

/** A timed kernel in the roofline. kernel: its number. flops_per_byte: operations for each byte that it reads or writes. gflops: 10⁹ operations a second. attainable: what its roof leaves it, in GFLOP/s; None without a roof. limit: which ceiling that is: "memory", "arithmetic", or "" without a roof. ceiling: the name of that ceiling. time_us: the median of its samples, in microseconds. text: the point as text. */
export interface RooflinePoint {
  kernel: number;
  flops_per_byte: number;
  gflops: number;
  attainable: number | null;
  limit: string;
  ceiling: string;
  time_us: number;
  text: string;
}

/** A ceiling that is drawn. name: of the ceiling. kind: "memory" or "arithmetic". rate: GB/s or GFLOP/s. */
export interface RooflineCeiling {
  name: string;
  kind: string;
  rate: number;
}

/** The timed kernels of a trace under the ceilings of the machine. points: by kernel; kernels without floating-point arithmetic have none. ceilings: those of the kernels' roofs, each once. note: where the ceilings are from, and which kernels have no point. */
export interface Roofline {
  points: RooflinePoint[];
  ceilings: RooflineCeiling[];
  note: string;
}

/** A rewrite rule as the stepper shows it; `text` is its source code, copied in. */
export interface Rule {
  id: number;
  name: string;
  law: string;
  doc: string;
  file: string;
  line: number;
  text: string;
}

/** A pass over whole graphs, as the stepper shows it: `law` says in words what it does, `text` is the source code of its function, copied in. */
export interface Transform {
  id: number;
  name: string;
  law: string;
  file: string;
  line: number;
  text: string;
}

/** In a rewrite stage, `before` became `after`: by `rule`, or (rule None) because its sources changed. In the stage of a transform there is one step, of the whole graph, or none where nothing changed. `at_us`: microseconds since the stage began. */
export interface Step {
  rule: number | null;
  before: number;
  after: number;
  at_us: number;
}

/** Two numbers that led to a decision: `value` of `what`, which is `over` its `bound`, or within it. */
export interface Compared {
  what: string;
  value: number;
  bound: number;
  over: boolean;
}

/** The scheduler's decision on a LazyBuffer, and its reason. decision: "realize" | "fuse" | "duplicate" | "keep" | "view" | "split" | "merge" | "hoist". compared: the numbers that the scheduler compared, in that order. obstacle: what forbids computing the node where it is read; "" where nothing does, or only the cost. */
export interface Decision {
  node: number;
  decision: string;
  reason: string;
  compared: Compared[];
  obstacle: string;
}

/** What a kind of opt does, in words, and as a loop nest before and after. */
export interface OptLaw {
  id: number;
  name: string;
  words: string;
  before: string;
  after: string;
}

/** An opt on a kernel: applied (with its reason) or rejected (with the obstacle), and the laws of its kind. axis: the name of the axis that it changes, with its size before: "g1 of 32". "" where it was rejected. made: the names of the axes that are new after it. */
export interface OptStep {
  opt: string;
  applied: boolean;
  reason: string;
  laws: number[];
  axis: string;
  made: string[];
}

/** What a decision chose from: each of `options` with its score, and the one `chosen`, "" for none of them. `least`: the lowest score is the best. */
export interface Weighed {
  what: string;
  options: [string, number][];
  chosen: string;
  least: boolean;
}

/** A decision of the hand-coded choice of opts, in the order in which they are asked. `law`: what it decides, and why; `settled_by`: the one that had answered its question before, so that it was not asked. `opts`: those of the stage that it proposed, by their place. */
export interface Choice {
  name: string;
  law: string;
  settled_by: string;
  compared: Compared[];
  weighed: Weighed[];
  opts: number[];
}

/** One candidate of a search: the opts applied to the kernel, and its best time in microseconds. `best_us` is None for a candidate that was lost; `note` says why, or where else the time is from. */
export interface Candidate {
  opts: string[];
  best_us: number | null;
  note: string;
}

/** The outcome of a search: the hand-coded choice and the one that was found, timed in turns, in microseconds. They are the same where nothing was faster. `tried`: how many candidates were measured; `reason`: the outcome in words. A time is None where nothing could be measured. */
export interface Search {
  before_us: number | null;
  after_us: number | null;
  tried: number;
  reason: string;
}

/** One stage of the compiler. Stages form a tree by `parent`; `kernel` is the kernel it worked for. name: "schedule" | "optimise" | "lower" | a pass's name | "linearize" | "render" | "compile" | "run" ... before, after: root node ids (several for a schedule). `steps` are the firings of a rewrite pass, in order. `candidates` are those that a search timed, in order, `search` is its outcome. `thread`: 0 for the one that asked, else another that worked meanwhile; `elapsed_us` of a stage is its own and what other threads did for it. `transform`: the one that this stage is, if it is one. `choices`: the decisions that chose the opts. */
export interface Stage {
  id: number;
  name: string;
  parent: number | null;
  kernel: number | null;
  before: number[];
  after: number[];
  started_us: number;
  elapsed_us: number;
  steps: Step[];
  decisions: Decision[];
  opts: OptStep[];
  candidates: Candidate[];
  search: Search | null;
  thread: number;
  transform: number | null;
  choices: Choice[];
}

/** Provenance: node `dst` came from node `src`; `how`: "rewrite" | "rebuild" | a transform's name | words of a `Derived` event. */
export interface Link {
  src: number;
  dst: number;
  how: string;
  stage: number | null;
}

/** A line of a listing and the nodes (UOps) that made it. */
export interface Line {
  text: string;
  nodes: number[];
}

/** One listing of one kernel; language: "uops" | "c" | "llvm" | "llvm-opt" | "asm" | "python". effort: how much the compiler does for what the device compiles, "full" | "light" | "least", else "". branches: whether it simplifies branches all the same. */
export interface Program {
  id: number;
  kernel: number;
  language: string;
  lines: Line[];
  effort: string;
  branches: boolean;
}

/** One kernel: what it computes (LazyBuffer ids), the opts applied, its axes and its cost. `axes`: (name, kind, size) outermost first; a size that Variables give is their arithmetic, as text. `roots`: LazyBuffers it realises. `nodes`: all LazyBuffers fused into it. `same_as`: an earlier kernel whose program it reuses, else None. `calls`: the user's calls that these LazyBuffers are of, each once. `known`: "in this process" or "on disk" where it would have been found, had nobody wanted to see every stage. `code_bytes`: its machine code, 0 where nobody tells. `not_run`: why it has no times: this machine cannot execute it, or it takes too long to sample. `nest`: its loops and what stands in them, as the program runs them, without touches. `bytes_written`: those of `bytes_moved` that it stores. `arithmetic`: the types of its floating-point operations ("float32", "int8 dot"). `title`: its name for people, from the user's Python: "x @ w", "softmax of scores". */
export interface KernelInfo {
  id: number;
  name: string;
  device: string;
  roots: number[];
  nodes: number[];
  buffers: number[];
  opts: string[];
  axes: ([string, string, number | string])[];
  flops: number;
  bytes_moved: number;
  compile_us: number;
  cached: boolean;
  same_as: number | null;
  calls: string[];
  known: string;
  code_bytes: number;
  not_run: string;
  nest: NestLine[];
  bytes_written: number;
  arithmetic: string[];
  title: string;
}

/** Samples of one launch in microseconds, in the order measured; `median_us`, `low_us`, `high_us` (quartiles). `started_us`: when the launch itself began, in microseconds since the trace began; `first_us`: how long it took. `warm`: whether the samples are further runs with warm caches. Otherwise the only sample is the launch itself. All runs of a trace are of one kind. `single_us`: samples on one thread, of a kernel that several share. `waited`: seconds that threads waited for a core / seconds of the samples; None: unknown. */
export interface Run {
  id: number;
  kernel: number;
  times_us: number[];
  median_us: number;
  low_us: number;
  high_us: number;
  started_us: number;
  first_us: number;
  warm: boolean;
  single_us: number[];
  waited: number | null;
}

/** The best rate that a probe reached on this machine, see `explore.ceilings`. `rate`: 10⁹ operations a second ("arithmetic"), 10⁹ bytes a second ("memory"), GHz ("clock"), the microseconds of the smallest kernel ("launch"), 10⁹ loads a second from random places ("gather"), or 10⁹ bytes a second in runs of `what` bytes, each in another row of 16 KB ("runs"; "4": a single float). `holds`: the working set in bytes, 0 for any. `what`: the type of the operations ("float32", "int8 dot"), or what is done with each byte ("read", "triad": two reads and a write, "copy", "write"). `threads`: how many worked together. `samples`: all measured rates. */
export interface Ceiling {
  name: string;
  kind: string;
  rate: number;
  holds: number;
  what: string;
  threads: number;
  samples: number[];
}

/** What the ceilings leave one kernel. `gflops`: 10⁹ operations a second of its types of arithmetic; `gb_per_s`: 10⁹ bytes a second of its working set and its share of writes; 0 where no ceiling is known. `arithmetic`, `memory`: the names of these ceilings; `spread`: of their samples, as a share of the rate. */
export interface Roof {
  kernel: number;
  gflops: number;
  gb_per_s: number;
  arithmetic: string;
  memory: string;
  spread: number;
}

/** A device buffer and its life in microseconds since the trace began (None: outlived the trace). `name`: what the user's Python calls what lies in it, "" for nothing. `maker`: the first kernel that wrote it here. */
export interface BufferInfo {
  id: number;
  device: string;
  dtype: string;
  size: number;
  bytes: number;
  allocated_us: number | null;
  freed_us: number | null;
  name: string;
  maker: number | null;
}

/** What the intermediates of one schedule (or of a captured call) take, in bytes. `total_bytes`: each by itself. `bound_bytes`: the most that is live at one time. `peak_bytes`: where they share memory. `lives`: (bytes, first item, last item, offset in the shared memory) of each. */
export interface MemoryUse {
  id: number;
  total_bytes: number;
  bound_bytes: number;
  peak_bytes: number;
  lives: [number, number, number, number][];
}

/** What the reader must know of this trace. level: "error" | "warning" | "note". */
export interface Message {
  level: string;
  text: string;
  frame: number | null;
}

/** What one step of a loop touches of an operand, in bytes of the cache lines; `again`: every step of the loop reads the same of it. `stride`: by how many elements a step moves the address, None where that differs. `name` is what the user's Python calls it, else "data1"; `buffer` its position among the kernel's arguments, None for scratch memory. */
export interface Touch {
  buffer: number | null;
  name: string;
  bytes: number;
  again: boolean;
  stride: number | null;
}

/** A line of an annotated loop nest: a loop (`axis` is its id, `kind` and `size` what it is) or a statement. `touches` and `bytes`: what one step of the loop touches, its working set; `cache` the first that holds as much: "L1" | "L2" | "L3" | "memory". */
export interface NestLine {
  depth: number;
  text: string;
  axis: number | null;
  kind: string;
  size: number | string;
  touches: Touch[];
  bytes: number;
  cache: string;
}

/** An opt that may be tried on an axis, by any of `amounts`; of some kinds the amount is another axis' id, of some 0 and without a meaning. `obstacle`: what stands against it, "" where it is legal. `caution`: what speaks against a legal one. */
export interface OptOffer {
  op: string;
  axis: number;
  amounts: number[];
  obstacle: string;
  caution: string;
}

/** A listing of a kernel in a branch; the languages are those of `Program`. */
export interface Listing {
  language: string;
  lines: string[];
}

/** A stage that made a kernel of a branch: how long it took, and how many firings it had. */
export interface StageTime {
  name: string;
  elapsed_us: number;
  steps: number;
}

/** A kernel as it is in a branch. `kernel`: the captured one that it stands for, None for one that is new. `opts`: those applied, in order; `steps` tells them with reasons, and those that were refused. `bytes_loaded`: what its load instructions ask for. `caches`: those of the target, by name, in bytes. Times are of a worker process that ran it on memory of its own, in microseconds; there are none where it could not be timed. What a search timed has no listings, no nest and no offers. `base_times_us`: times of the kernel as captured (of an edit: of the text before it), taken in turns with these; none where it is that kernel itself. Only these two compare: times of two branches are of two sittings. `verdict` compares them: "faster" | "slower" | "noise" | "unknown". `note`: a remark on this kernel alone ("its results are wrong"). `uops`: how many one run executes, counted in the program, a vector's as one; 0 where that is not known. */
export interface KernelVariant {
  kernel: number | null;
  name: string;
  device: string;
  opts: string[];
  steps: OptStep[];
  axes: ([string, string, number | string])[];
  nest: NestLine[];
  offers: OptOffer[];
  listings: Listing[];
  stages: StageTime[];
  times_us: number[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  flops: number;
  bytes_moved: number;
  bytes_loaded: number;
  compile_us: number;
  caches: [string, number][];
  base_times_us: number[];
  base_median_us: number | null;
  base_low_us: number | null;
  base_high_us: number | null;
  verdict: string;
  note: string;
  uops: number;
}

/** A firing of the rule that a branch is about, in kernel `kernel`: `step` (from 1) of pass `stage` made `after` of `before`, both in words. `node`: the digest of the node that it fired on. verdict: "proved" | "agrees" | "differs" | "not checked"; `says` tells it in words. Where it differs, `inputs` are the values at which, and `was` and `has_become` what the two give there. */
export interface RuleFiring {
  kernel: number;
  stage: string;
  step: number;
  rule: string;
  before: string;
  after: string;
  node: string;
  verdict: string;
  says: string;
  inputs: [string, string][];
  was: string;
  has_become: string;
}

/** What the check says of a firing of this trace: `step` (from 1) of `stage`. verdict: "proved" | "agrees" | "differs" | "not checked"; `says` tells it in words. Where it differs, `inputs` are the values at which, and `was` and `has_become` what the two give there. */
export interface FiringCheck {
  stage: number;
  step: number;
  verdict: string;
  says: string;
  inputs: [string, string][];
  was: string;
  has_become: string;
}

/** A kernel (or copy) of a schedule in a branch: the LazyBuffers that it computes (`nodes`), stores (`roots`) and reads from memory (`reads`). `kernel`: the captured one that is the same, None for one that is new. `digest`: equal for equal kernels. Times are of a run of the whole schedule, in microseconds; None where it was not run. */
export interface FusedKernel {
  name: string;
  device: string;
  kernel: number | null;
  digest: string;
  nodes: number[];
  roots: number[];
  reads: number[];
  flops: number;
  bytes_moved: number;
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
}

/** An output of a schedule in a branch beside the same of the schedule as captured, both computed from the same made up inputs. `difference`: the largest between two finite elements that were looked at; `same`: no more than rounding. `magnitude`: of the largest finite element; `tolerance`: what `same` allows, relative to the elements (0: none). */
export interface OutputCheck {
  node: number;
  difference: number;
  same: boolean;
  dtype: string;
  magnitude: number;
  tolerance: number;
}

/** A schedule as it is in a branch. `stage`: the captured one; `cut`, `join`: the LazyBuffers that get memory, and those that are fused, because the reader wants it. `decisions`: the scheduler's last word on each LazyBuffer. `total_bytes`, `peak_bytes`: what the intermediates take, each by itself, and where they share memory. `times_us`: of all kernels, one run after another; `base_times_us`: those of the schedule as captured, run in turns with these. `verdict`: what these two say of each other: "faster" | "slower" | "noise" | "unknown". `outputs`: what came of comparing the values. */
export interface ScheduleVariant {
  stage: number;
  cut: number[];
  join: number[];
  kernels: FusedKernel[];
  decisions: Decision[];
  total_bytes: number;
  peak_bytes: number;
  times_us: number[];
  base_times_us: number[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  base_median_us: number | null;
  base_low_us: number | null;
  base_high_us: number | null;
  verdict: string;
  outputs: OutputCheck[];
}

/** A command of `explore.whatif` as data: its kind, and its arguments by name. */
export interface CommandInfo {
  kind: string;
  arguments: ([string, number | string])[];
}

/** What a compiler says of a text, at which line and column, counted from 1; 0 where it names none. */
export interface Diagnostic {
  line: number;
  column: number;
  level: string;
  text: string;
}

/** An element of a result that is not what was expected, both as text. */
export interface Difference {
  buffer: string;
  index: number;
  found: string;
  expected: string;
}

/** What became of a stage of a kernel that was edited as text: "c" | "llvm" | "uops". `ended`: how its process ended, in words, where it did not end well. `against`: what its results were compared with, "" where they were not. `compared` elements, of which `differing` are further off than rounding explains, the `first` of them; `largest_error` is an absolute one, None where one side is no finite number; `magnitude` is that of the largest finite element of that buffer, and `tolerance` what rounding may do, relative to the elements (0: nothing). `before_us`: times of the text before the edit, taken in turns with those of the branch. `unprotected`: what this system cannot guard. */
export interface Edited {
  stage: string;
  diagnostics: Diagnostic[];
  ended: string;
  against: string;
  verdict: string;
  compared: number;
  differing: number;
  largest_error: number | null;
  magnitude: number;
  tolerance: number;
  first: Difference | null;
  before_us: number[];
  unprotected: string[];
}

/** What came of a command: the trace as it would be otherwise, from branch `parent` on (None: from the capture). status: "done" | "failed", then `reason` says why; what was made until then is there all the same. `kernel`: the one that the command is about. `labels`: what it is known for ("as captured", "heuristics"). Of a command about a rule, `rule_law` and `rule_text` are what it states and its source code, `firings` its firings, each checked. `edited`: where it is about a text that was edited, what became of that. `schedule`: where it is about a schedule, likewise. `search`: where a search led there, what it measured; these times are its own, and compare with no other. */
export interface Branch {
  id: number;
  parent: number | null;
  kernel: number | null;
  command: CommandInfo;
  status: string;
  reason: string;
  kernels: KernelVariant[];
  labels: string[];
  rule_law: string;
  rule_text: string;
  firings: RuleFiring[];
  edited: Edited | null;
  schedule: ScheduleVariant | null;
  search: Search | null;
}

/** A loop of a linear program, and the lines of the listing at which it begins and ends. */
export interface RecordedLoop {
  begin: number;
  end: number;
  name: string;
}

/** What lay in the first elements of a buffer before its kernel ran; drawn in rows of `width`. */
export interface RecordedBuffer {
  name: string;
  size: number;
  width: number;
  cells: string[];
}

/** A step of a kernel: `place` is the line of the UOp that was done, `slot` the line whose value that is (of an ASSIGN, its accumulator's), `value` a text for each lane. Of an access also what it touched, of each lane the element, None where it is not valid. */
export interface RecordedStep {
  place: number;
  slot: number;
  value: string[];
  buffer: string;
  stored: boolean;
  index: (number | null)[];
}

/** The first steps of a kernel, for whoever has no engine to step it. `ended`: it has no more. */
export interface Recording {
  id: number;
  kernel: number;
  name: string;
  note: string;
  listing: string[];
  loops: RecordedLoop[];
  buffers: RecordedBuffer[];
  steps: RecordedStep[];
  ended: boolean;
}

/** One capture, whole. `Trace` (`trace.py`) adds what can be asked of it. `options` are the settings that produced it, as (name, value). `module_costs`, `figures` and `roofline` follow from the other tables: they are filled when the trace is written, for the front end, and do not count for `==`. */
export interface Trace {
  version: number;
  title: string;
  options: [string, string][];
  sources: Source[];
  frames: Frame[];
  nodes: Node[];
  rules: Rule[];
  stages: Stage[];
  links: Link[];
  kernels: KernelInfo[];
  programs: Program[];
  runs: Run[];
  buffers: BufferInfo[];
  messages: Message[];
  memory: MemoryUse[];
  scopes: Scope[];
  transforms: Transform[];
  laws: OptLaw[];
  branches: Branch[];
  ceilings: Ceiling[];
  roofs: Roof[];
  recordings: Recording[];
  checks: FiringCheck[];
  module_costs: ModuleCost[];
  figures: Figures[];
  roofline: Roofline | null;
}

/** What each field must be, for valid.ts: [shape], or [shape, what a trace without that field means]. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {
  Frame: {
    id: [{"id": true}],
    source: [{"index": "sources", "before": false}],
    line: [{"least": 1, "of": "int"}],
    function: ["str"],
    span: [{"either": [{"each": [{"least": 1, "of": "int"}, {"least": 0, "of": "int"}, {"least": 1, "of": "int"}, {"least": 0, "of": "int"}]}, "null"]}, null],
  },
  Source: {
    id: [{"id": true}],
    name: ["str"],
    text: ["str"],
  },
  Node: {
    id: [{"id": true}],
    kind: [{"words": ["lazybuffer", "uop"]}],
    op: ["str"],
    src: [{"many": {"index": "nodes", "before": true}}],
    dtype: ["str"],
    shape: [{"either": [{"many": {"either": ["int", "str"]}}, "null"]}],
    arg: ["str"],
    digest: ["str"],
    user: [{"either": [{"index": "frames", "before": false}, "null"]}],
    label: ["str"],
    detail: ["str"],
    group: ["str"],
    calls: [{"many": "str"}, []],
    name: ["str", ""],
    scope: [{"either": [{"index": "scopes", "before": false}, "null"]}, null],
    backward: ["bool", false],
  },
  Scope: {
    id: [{"id": true}],
    name: ["str"],
    kind: ["str"],
    parent: [{"either": [{"index": "scopes", "before": true}, "null"]}],
    parameter_bytes: [{"least": 0, "of": "int"}],
  },
  ModuleCost: {
    id: [{"id": true}],
    parent: [{"either": [{"index": "module_costs", "before": true}, "null"]}],
    scope: [{"either": [{"index": "scopes", "before": false}, "null"]}],
    time_us: [{"least": 0, "of": "float"}],
    backward_us: [{"least": 0, "of": "float"}],
    parameter_bytes: [{"least": 0, "of": "int"}],
    result_bytes: [{"least": 0, "of": "int"}],
    kernels: [{"many": {"index": "kernels", "before": false}}],
  },
  Figure: {
    place: [{"words": ["python", "lazy", "kernels", "passes", "uops", "code", "run"]}],
    title: ["str"],
    words: ["str"],
    time_us: [{"least": 0, "of": "float"}],
  },
  Figures: {
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    parts: [{"many": {"row": "Figure"}}],
    compile_us: [{"least": 0, "of": "float"}],
    search_us: [{"least": 0, "of": "float"}],
    run_us: [{"least": 0, "of": "float"}],
    firings: [{"least": 0, "of": "int"}],
    passes: [{"many": {"index": "stages", "before": false}}],
    code: [{"either": [{"index": "stages", "before": false}, "null"]}],
    summary: [{"many": "str"}, []],
  },
  RooflinePoint: {
    kernel: [{"index": "kernels", "before": false}],
    flops_per_byte: [{"least": 0, "of": "float"}],
    gflops: [{"least": 0, "of": "float"}],
    attainable: [{"either": [{"least": 0, "of": "float"}, "null"]}],
    limit: [{"words": ["memory", "arithmetic", ""]}],
    ceiling: ["str"],
    time_us: [{"least": 0, "of": "float"}],
    text: ["str"],
  },
  RooflineCeiling: {
    name: ["str"],
    kind: [{"words": ["memory", "arithmetic"]}],
    rate: [{"least": 0, "of": "float"}],
  },
  Roofline: {
    points: [{"many": {"row": "RooflinePoint"}}],
    ceilings: [{"many": {"row": "RooflineCeiling"}}],
    note: ["str"],
  },
  Rule: {
    id: [{"id": true}],
    name: ["str"],
    law: ["str"],
    doc: ["str"],
    file: ["str"],
    line: [{"least": 0, "of": "int"}],
    text: ["str"],
  },
  Transform: {
    id: [{"id": true}],
    name: ["str"],
    law: ["str"],
    file: ["str"],
    line: [{"least": 0, "of": "int"}],
    text: ["str"],
  },
  Step: {
    rule: [{"either": [{"index": "rules", "before": false}, "null"]}],
    before: [{"index": "nodes", "before": false}],
    after: [{"index": "nodes", "before": false}],
    at_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}],
  },
  Compared: {
    what: ["str"],
    value: ["float"],
    bound: ["float"],
    over: ["bool"],
  },
  Decision: {
    node: [{"index": "nodes", "before": false}],
    decision: ["str"],
    reason: ["str"],
    compared: [{"many": {"row": "Compared"}}, []],
    obstacle: ["str", ""],
  },
  OptLaw: {
    id: [{"id": true}],
    name: ["str"],
    words: ["str"],
    before: ["str"],
    after: ["str"],
  },
  OptStep: {
    opt: ["str"],
    applied: ["bool"],
    reason: ["str"],
    laws: [{"many": {"index": "laws", "before": false}}, []],
    axis: ["str", ""],
    made: [{"many": "str"}, []],
  },
  Weighed: {
    what: ["str"],
    options: [{"many": {"each": ["str", "float"]}}],
    chosen: ["str"],
    least: ["bool"],
  },
  Choice: {
    name: ["str"],
    law: ["str"],
    settled_by: ["str"],
    compared: [{"many": {"row": "Compared"}}],
    weighed: [{"many": {"row": "Weighed"}}],
    opts: [{"many": {"least": 0, "of": "int"}}],
  },
  Candidate: {
    opts: [{"many": "str"}],
    best_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}],
    note: ["str", ""],
  },
  Search: {
    before_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}],
    after_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}],
    tried: [{"least": 0, "of": "int"}],
    reason: ["str"],
  },
  Stage: {
    id: [{"id": true}],
    name: ["str"],
    parent: [{"either": [{"index": "stages", "before": true}, "null"]}],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    before: [{"many": {"index": "nodes", "before": false}}],
    after: [{"many": {"index": "nodes", "before": false}}],
    started_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}],
    elapsed_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}],
    steps: [{"many": {"row": "Step"}}],
    decisions: [{"many": {"row": "Decision"}}],
    opts: [{"many": {"row": "OptStep"}}],
    candidates: [{"many": {"row": "Candidate"}}, []],
    search: [{"either": [{"row": "Search"}, "null"]}, null],
    thread: [{"least": 0, "of": "int"}, 0],
    transform: [{"either": [{"index": "transforms", "before": false}, "null"]}, null],
    choices: [{"many": {"row": "Choice"}}, []],
  },
  Link: {
    src: [{"index": "nodes", "before": false}],
    dst: [{"index": "nodes", "before": false}],
    how: ["str"],
    stage: [{"either": [{"index": "stages", "before": false}, "null"]}],
  },
  Line: {
    text: ["str"],
    nodes: [{"many": {"index": "nodes", "before": false}}],
  },
  Program: {
    id: [{"id": true}],
    kernel: [{"index": "kernels", "before": false}],
    language: ["str"],
    lines: [{"many": {"row": "Line"}}],
    effort: ["str", ""],
    branches: ["bool", false],
  },
  KernelInfo: {
    id: [{"id": true}],
    name: ["str"],
    device: ["str"],
    roots: [{"many": {"index": "nodes", "before": false}}],
    nodes: [{"many": {"index": "nodes", "before": false}}],
    buffers: [{"many": {"index": "buffers", "before": false}}],
    opts: [{"many": "str"}],
    axes: [{"many": {"each": ["str", "str", {"either": ["int", "str"]}]}}],
    flops: [{"least": 0, "of": "int"}],
    bytes_moved: [{"least": 0, "of": "int"}],
    compile_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    cached: ["bool"],
    same_as: [{"either": [{"index": "kernels", "before": true}, "null"]}],
    calls: [{"many": "str"}, []],
    known: ["str", ""],
    code_bytes: [{"least": 0, "of": "int"}, 0],
    not_run: ["str", ""],
    nest: [{"many": {"row": "NestLine"}}, []],
    bytes_written: [{"least": 0, "of": "int"}, 0],
    arithmetic: [{"many": "str"}, []],
    title: ["str", ""],
  },
  Run: {
    id: [{"id": true}],
    kernel: [{"index": "kernels", "before": false}],
    times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}],
    median_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    low_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    high_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    started_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}, 0.0],
    first_us: [{"least": 0, "most": 1000000000000000, "of": "float"}, 0.0],
    warm: ["bool", false],
    single_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    waited: [{"either": [{"least": 0, "of": "float"}, "null"]}, null],
  },
  Ceiling: {
    name: ["str"],
    kind: [{"words": ["arithmetic", "memory", "clock", "launch", "gather", "runs"]}],
    rate: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    holds: [{"least": 0, "of": "int"}, 0],
    what: ["str", ""],
    threads: [{"least": 0, "of": "int"}, 0],
    samples: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
  },
  Roof: {
    kernel: [{"index": "kernels", "before": false}],
    gflops: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    gb_per_s: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    arithmetic: ["str"],
    memory: ["str"],
    spread: ["float", 0.0],
  },
  BufferInfo: {
    id: [{"id": true}],
    device: ["str"],
    dtype: ["str"],
    size: [{"least": 0, "of": "int"}],
    bytes: [{"least": 0, "of": "int"}],
    allocated_us: [{"either": [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}, "null"]}],
    freed_us: [{"either": [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}, "null"]}],
    name: ["str", ""],
    maker: [{"either": [{"index": "kernels", "before": false}, "null"]}, null],
  },
  MemoryUse: {
    id: [{"id": true}],
    total_bytes: [{"least": 0, "of": "int"}],
    bound_bytes: [{"least": 0, "of": "int"}],
    peak_bytes: [{"least": 0, "of": "int"}],
    lives: [{"many": {"each": [{"least": 0, "of": "int"}, {"least": 0, "of": "int"}, {"least": 0, "of": "int"}, {"least": 0, "of": "int"}]}}],
  },
  Message: {
    level: [{"words": ["error", "warning", "note"]}],
    text: ["str"],
    frame: [{"either": [{"index": "frames", "before": false}, "null"]}],
  },
  Touch: {
    buffer: [{"either": [{"least": 0, "of": "int"}, "null"]}],
    name: ["str"],
    bytes: [{"least": 0, "of": "int"}],
    again: ["bool"],
    stride: [{"either": ["int", "null"]}],
  },
  NestLine: {
    depth: [{"least": 0, "most": 1000, "of": "int"}],
    text: ["str"],
    axis: [{"either": [{"least": 0, "of": "int"}, "null"]}, null],
    kind: ["str", ""],
    size: [{"either": ["int", "str"]}, 0],
    touches: [{"many": {"row": "Touch"}}, []],
    bytes: [{"least": 0, "of": "int"}, 0],
    cache: ["str", ""],
  },
  OptOffer: {
    op: ["str"],
    axis: [{"least": 0, "of": "int"}],
    amounts: [{"many": {"least": 0, "of": "int"}}],
    obstacle: ["str", ""],
    caution: ["str", ""],
  },
  Listing: {
    language: ["str"],
    lines: [{"many": "str"}],
  },
  StageTime: {
    name: ["str"],
    elapsed_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    steps: [{"least": 0, "of": "int"}],
  },
  KernelVariant: {
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    name: ["str"],
    device: ["str"],
    opts: [{"many": "str"}],
    steps: [{"many": {"row": "OptStep"}}, []],
    axes: [{"many": {"each": ["str", "str", {"either": ["int", "str"]}]}}, []],
    nest: [{"many": {"row": "NestLine"}}, []],
    offers: [{"many": {"row": "OptOffer"}}, []],
    listings: [{"many": {"row": "Listing"}}, []],
    stages: [{"many": {"row": "StageTime"}}, []],
    times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    flops: [{"least": 0, "of": "int"}, 0],
    bytes_moved: [{"least": 0, "of": "int"}, 0],
    bytes_loaded: [{"least": 0, "of": "int"}, 0],
    compile_us: [{"least": 0, "most": 1000000000000000, "of": "float"}, 0.0],
    caches: [{"many": {"each": ["str", {"least": 0, "of": "int"}]}}, []],
    base_times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    base_median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    verdict: [{"words": ["faster", "slower", "noise", "unknown"]}, "unknown"],
    note: ["str", ""],
    uops: [{"least": 0, "of": "int"}, 0],
  },
  RuleFiring: {
    kernel: [{"index": "kernels", "before": false}],
    stage: ["str"],
    step: [{"least": 0, "of": "int"}],
    rule: ["str"],
    before: ["str"],
    after: ["str"],
    node: ["str"],
    verdict: [{"words": ["proved", "agrees", "differs", "not checked"]}],
    says: ["str"],
    inputs: [{"many": {"each": ["str", "str"]}}, []],
    was: ["str", ""],
    has_become: ["str", ""],
  },
  FiringCheck: {
    stage: [{"index": "stages", "before": false}],
    step: [{"least": 1, "of": "int"}],
    verdict: [{"words": ["proved", "agrees", "differs", "not checked"]}],
    says: ["str"],
    inputs: [{"many": {"each": ["str", "str"]}}, []],
    was: ["str", ""],
    has_become: ["str", ""],
  },
  FusedKernel: {
    name: ["str"],
    device: ["str"],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    digest: ["str"],
    nodes: [{"many": {"index": "nodes", "before": false}}],
    roots: [{"many": {"index": "nodes", "before": false}}],
    reads: [{"many": {"index": "nodes", "before": false}}],
    flops: [{"least": 0, "of": "int"}],
    bytes_moved: [{"least": 0, "of": "int"}],
    median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
  },
  OutputCheck: {
    node: [{"index": "nodes", "before": false}],
    difference: [{"least": 0, "of": "float"}],
    same: ["bool"],
    dtype: ["str", ""],
    magnitude: [{"least": 0, "of": "float"}, 0.0],
    tolerance: [{"least": 0, "of": "float"}, 0.0],
  },
  ScheduleVariant: {
    stage: [{"index": "stages", "before": false}],
    cut: [{"many": {"index": "nodes", "before": false}}],
    join: [{"many": {"index": "nodes", "before": false}}],
    kernels: [{"many": {"row": "FusedKernel"}}],
    decisions: [{"many": {"row": "Decision"}}],
    total_bytes: [{"least": 0, "of": "int"}],
    peak_bytes: [{"least": 0, "of": "int"}],
    times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    base_times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    verdict: [{"words": ["faster", "slower", "noise", "unknown"]}, "unknown"],
    outputs: [{"many": {"row": "OutputCheck"}}, []],
  },
  CommandInfo: {
    kind: ["str"],
    arguments: [{"many": {"each": ["str", {"either": ["int", "str"]}]}}],
  },
  Diagnostic: {
    line: [{"least": 0, "of": "int"}],
    column: [{"least": 0, "of": "int"}],
    level: [{"words": ["error", "warning", "note"]}],
    text: ["str"],
  },
  Difference: {
    buffer: ["str"],
    index: [{"least": 0, "of": "int"}],
    found: ["str"],
    expected: ["str"],
  },
  Edited: {
    stage: ["str"],
    diagnostics: [{"many": {"row": "Diagnostic"}}, []],
    ended: ["str", ""],
    against: ["str", ""],
    verdict: [{"words": ["", "same bits", "within rounding", "differs"]}, ""],
    compared: [{"least": 0, "of": "int"}, 0],
    differing: [{"least": 0, "of": "int"}, 0],
    largest_error: [{"either": ["float", "null"]}, null],
    magnitude: [{"least": 0, "of": "float"}, 0.0],
    tolerance: [{"least": 0, "of": "float"}, 0.0],
    first: [{"either": [{"row": "Difference"}, "null"]}, null],
    before_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    unprotected: [{"many": "str"}, []],
  },
  Branch: {
    id: [{"id": true}],
    parent: [{"either": [{"index": "branches", "before": true}, "null"]}],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    command: [{"row": "CommandInfo"}],
    status: [{"words": ["done", "failed"]}],
    reason: ["str"],
    kernels: [{"many": {"row": "KernelVariant"}}],
    labels: [{"many": "str"}, []],
    rule_law: ["str", ""],
    rule_text: ["str", ""],
    firings: [{"many": {"row": "RuleFiring"}}, []],
    edited: [{"either": [{"row": "Edited"}, "null"]}, null],
    schedule: [{"either": [{"row": "ScheduleVariant"}, "null"]}, null],
    search: [{"either": [{"row": "Search"}, "null"]}, null],
  },
  RecordedLoop: {
    begin: [{"least": 0, "of": "int"}],
    end: [{"least": 0, "of": "int"}],
    name: ["str"],
  },
  RecordedBuffer: {
    name: ["str"],
    size: [{"least": 0, "of": "int"}],
    width: [{"least": 1, "of": "int"}],
    cells: [{"many": "str"}],
  },
  RecordedStep: {
    place: [{"least": 0, "of": "int"}],
    slot: [{"least": 0, "of": "int"}],
    value: [{"many": "str"}],
    buffer: ["str", ""],
    stored: ["bool", false],
    index: [{"many": {"either": ["int", "null"]}}, []],
  },
  Recording: {
    id: [{"id": true}],
    kernel: [{"index": "kernels", "before": false}],
    name: ["str"],
    note: ["str"],
    listing: [{"many": "str"}],
    loops: [{"many": {"row": "RecordedLoop"}}],
    buffers: [{"many": {"row": "RecordedBuffer"}}],
    steps: [{"many": {"row": "RecordedStep"}}],
    ended: ["bool"],
  },
  Trace: {
    version: ["int"],
    title: ["str"],
    options: [{"many": {"each": ["str", "str"]}}],
    sources: [{"many": {"row": "Source"}}],
    frames: [{"many": {"row": "Frame"}}],
    nodes: [{"many": {"row": "Node"}}],
    rules: [{"many": {"row": "Rule"}}],
    stages: [{"many": {"row": "Stage"}}],
    links: [{"many": {"row": "Link"}}],
    kernels: [{"many": {"row": "KernelInfo"}}],
    programs: [{"many": {"row": "Program"}}],
    runs: [{"many": {"row": "Run"}}],
    buffers: [{"many": {"row": "BufferInfo"}}],
    messages: [{"many": {"row": "Message"}}],
    memory: [{"many": {"row": "MemoryUse"}}, []],
    scopes: [{"many": {"row": "Scope"}}, []],
    transforms: [{"many": {"row": "Transform"}}, []],
    laws: [{"many": {"row": "OptLaw"}}, []],
    branches: [{"many": {"row": "Branch"}}, []],
    ceilings: [{"many": {"row": "Ceiling"}}, []],
    roofs: [{"many": {"row": "Roof"}}, []],
    recordings: [{"many": {"row": "Recording"}}, []],
    checks: [{"many": {"row": "FiringCheck"}}, []],
    module_costs: [{"many": {"row": "ModuleCost"}}, []],
    figures: [{"many": {"row": "Figures"}}, []],
    roofline: [{"either": [{"row": "Roofline"}, "null"]}, null],
  },
};
